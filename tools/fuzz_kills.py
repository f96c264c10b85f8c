"""Commands ended by a signal while they write, from a seed: files stay whole, and nothing is left.

    python tools/fuzz_kills.py                     100 kills
    python tools/fuzz_kills.py --kills 20 --seed 7
    python tools/fuzz_kills.py --signal SIGHUP     a terminal that is closed

Each is a `merge`, an `export`, a `fit --report` or a `score --bad-rows` that gets the
signal at some step after it has begun to write, over old files or none. What is then neither the
old file nor a new one that is whole is printed with its seed, and ends the run with 1; so is what
is left besides: after SIGKILL, what the next write in the folder does not clean away.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from eqsep import Detector, load_model
from eqsep.files import written_whole

OLD = b"file,row,reason,text\n"  # bad rows go to a file of such ones, or to a new one
BEYOND_YOUTH = 3600  # seconds after which what nobody writes any more is taken for a rest
ROWS = 120
COMMANDS: dict[str, tuple[list[str], float]] = {  # and ten to which power steps there may be
    "merge": (["merge", "a.eqsep", "b.eqsep", "--out", "out/new.eqsep"], 2.5),
    "export": (["export", "a.eqsep", "--onnx", "out/new.onnx"], 2.5),
    "fit": (
        [
            *("fit", "rows.csv", "--label", "kind", "--landmarks", "20", "--bandwidth", "1"),
            *("--out", "out/new.eqsep", "--report", "out/new.html"),
        ],
        6.0,
    ),
    "score": (
        ["score", "a.eqsep", "bad.csv", "--bad-rows", "out/bad.csv", "--out", "out/new.csv"],
        4.5,
    ),
}


def onnx_is_whole(path: Path) -> bool:
    import onnx

    onnx.checker.check_model(onnx.load(path))
    return True


WHOLE: dict[str, Callable[[Path], bool]] = {
    "new.eqsep": lambda path: isinstance(load_model(path), Detector),
    "new.onnx": onnx_is_whole,
    "new.html": lambda path: path.read_text().rstrip().endswith("</html>"),
    "new.csv": lambda path: path.read_text().count("\n") == ROWS + 1,
    "bad.csv": lambda path: path.read_text().count("\n") == 3,
}


def serve() -> None:
    """Run the commands that come in, each in a process of its own that dies at a given step."""
    import onnx  # noqa: F401

    from eqsep.cli import app

    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            by = signal.Signals[asked["signal"]]
            if by != signal.SIGKILL:
                signal.signal(by, signal.SIG_DFL)  # nohup ignores it
            die_at(asked["step"], by)
            try:
                app(asked["words"])
            except SystemExit as end:
                os._exit(int(end.code or 0))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def die_at(step: int, by: signal.Signals) -> None:
    """Send this process a signal so many steps after it has opened its first file to write."""
    left = step

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            sys.setprofile(None)
            os.kill(os.getpid(), by)

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and str(args[0]).endswith(".part"):
            sys.setprofile(count)

    sys.addaudithook(watch)


@contextmanager
def server(folder: Path) -> Iterator[Callable[[list[str], int, str], int]]:
    """A function from a command, a step and a signal to the exit code."""
    words = [sys.executable, str(Path(__file__).resolve()), "--serve"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, cwd=folder) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(command: list[str], step: int, by: str) -> int:
            asked = {"words": command, "step": step, "signal": by}
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield ask
        process.stdin.close()


def prepare(folder: Path) -> None:
    """Two models that merge, and rows to fit to and to score."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2)).round(3)
    X[::6] += 6
    kind = np.where(np.arange(ROWS) % 6 == 0, "hot", "normal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = Detector(bandwidth=1.0, n_landmarks=20, random_state=0).fit(X, kind)
        first.save(folder / "a.eqsep")
        Detector(plan=first.plan_).fit(X + 0.01, kind).save(folder / "b.eqsep")
    rows = [f"{a},{b}" for a, b in X]
    (folder / "rows.csv").write_text(
        "\n".join(["x,y,kind", *(f"{r},{k}" for r, k in zip(rows, kind, strict=True))]) + "\n"
    )
    (folder / "bad.csv").write_text("\n".join(["x0,x1", *rows, "1", "1,2,3"]) + "\n")


def fuzz(seeds: range, folder: Path, *, by: str = "SIGKILL") -> tuple[Counter[str], list[str]]:
    """How many commands were killed and how many were not, and what went wrong."""
    prepare(folder)
    ended: Counter[str] = Counter()
    wrong: list[str] = []
    with server(folder) as ask:
        for seed in seeds:
            rng = np.random.default_rng(seed)
            name = list(COMMANDS)[seed % len(COMMANDS)]
            words, most = COMMANDS[name]
            targets = [Path(word) for word in words if word.startswith("out/")]
            out = folder / "out"
            out.mkdir()
            if rng.random() < 0.5:
                for target in targets:
                    (folder / target).write_bytes(OLD)
            step = int(10 ** rng.uniform(0, most))
            code = ask(words, step, by)
            killed = code in (-signal.Signals[by], 128 + signal.Signals[by])
            ended["killed" if killed else "done"] += 1
            found = [*amiss(out, killed=killed, may_leave=killed and by == "SIGKILL")]
            found += [f"exit code {code}"] if code and not killed else []
            wrong += [f"seed {seed}, {name}: {what}" for what in found]
            for path in out.iterdir():
                path.unlink()
            out.rmdir()
    return ended, wrong


def amiss(out: Path, *, killed: bool, may_leave: bool) -> Iterator[str]:
    """What is wrong in a folder into which a command has written."""
    for path in out.iterdir():
        if path.name in WHOLE:
            old = path.read_bytes() == OLD
            if (old and not killed) or not (old or WHOLE[path.name](path)):
                yield f"{path.name} is not whole"
        elif path.name.startswith(".eqsep-") and may_leave:
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - BEYOND_YOUTH))
        else:
            yield f"{path.name} is left"
    with written_whole(out / "another") as file:
        file.write(b"")
    yield from (f"{path.name} stays" for path in out.glob(".*"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first kill")
    parser.add_argument("--signal", default="SIGKILL", choices=("SIGKILL", "SIGTERM", "SIGHUP"))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve()
        return 0
    with tempfile.TemporaryDirectory() as folder:
        ended, wrong = fuzz(range(args.seed, args.seed + args.kills), Path(folder), by=args.signal)
    print(*wrong, sep="\n")
    print(f"{args.kills:,} commands: " + ", ".join(f"{n:,} {how}" for how, n in ended.items()))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
