"""Change the code in one place at a time, and see whether a test notices.

    python tools/mutants.py --seed 0 --count 60 --processes 2

All tests run once, to record which of them execute which line and how long they take. Then places
are drawn over all rooms of the package. For each, the code is changed in a copy of the tree, and
the tests that execute the line run in it until one fails: the room's own ones first, then the
quickest. A mutant that no test kills has survived. More than five survivors are an error.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from coverage import CoverageData
from mutations import Mutant, changed, mutants_of, short

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "eqsep"
SKIPPED = {"eqsep/engine/tiles.py", "eqsep/__main__.py"}  # run on a GPU, or in another process
MOST_SURVIVORS = 5
BUDGET = 60.0  # seconds that the tests of one mutant take together without it, at most


def drawn(count: int, seed: int) -> list[Mutant]:
    """`count` places over all rooms: one in each at least, the others by how many there are."""
    rng, by_room = random.Random(seed), defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if file not in SKIPPED:
            for mutant in mutants_of(file, path.read_text()):
                by_room[mutant.room].append(mutant)
    chosen: list[Mutant] = []
    for room in sorted(by_room):
        chosen.append(rng.choice(by_room[room]))
    rest = [mutant for room in sorted(by_room) for mutant in by_room[room]]
    lines = {(mutant.file, mutant.line) for mutant in chosen}
    while len(chosen) < count:
        mutant = rng.choice(rest)
        if (mutant.file, mutant.line) not in lines:
            lines.add((mutant.file, mutant.line))
            chosen.append(mutant)
    return sorted(rng.sample(chosen, count), key=lambda m: (m.file, m.line))


# ---- which tests execute a line


@dataclass(frozen=True)
class Recorded:
    """Seconds of each test, and the tests that execute each line of each file."""

    seconds: dict[str, float]
    by_line: dict[str, dict[int, set[str]]]

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Those that can notice, own ones first, then the quickest, within the budget."""
        lines = self.by_line.get(mutant.file, {})
        found = set(lines.get(mutant.line, ()))
        for line in _readers(mutant):  # what runs at the import is noticed where it is used
            found |= lines.get(line, set())
        if mutant.names and not found:
            found = set().union(*lines.values()) if lines else set()
        words = set(re.split(r"[/_.]", mutant.file)) - {PACKAGE, "py", "", "init"}

        def rank(test: str) -> tuple[bool, float]:
            file = test.partition("::")[0]
            own = file == mutant.file or bool(words & set(re.split(r"[/_.]", file)))
            return not own, self.seconds.get(test, 0.0)

        taken, total = [], 0.0
        for test in sorted(found & self.seconds.keys(), key=rank):
            total += self.seconds[test]
            if taken and total > BUDGET:
                break
            taken.append(test)
        return taken


def _readers(mutant: Mutant) -> set[int]:
    """The lines that use what the changed line sets: a name of the module, or a default."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse((ROOT / mutant.file).read_text())):
        if isinstance(node, ast.Name) and node.id in mutant.names:
            lines.add(node.lineno)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = range(node.body[0].lineno, (node.end_lineno or 0) + 1)
            lines |= set(body) if node.lineno <= mutant.line < body.start else set()
    return lines


def record(tree: Path, folder: Path, processes: int) -> None:
    """Run all tests in `tree` once, and leave what they execute in `folder`."""
    options = ["--cov", "--cov-context=test", "--cov-report=", "-q"]
    spread = ["-n", str(processes), "--dist", "loadfile"] if processes > 1 else []
    env = _environment(tree) | {
        "COVERAGE_FILE": str(folder / "coverage"),
        "MUTANTS_SECONDS": str(folder / "seconds.json"),
    }
    subprocess.run([*PYTEST, *options, *spread], cwd=tree, env=env, check=True)


def recorded(folder: Path) -> Recorded:
    seconds = json.loads((folder / "seconds.json").read_text())
    data = CoverageData(str(folder / "coverage"))
    data.read()
    by_line: dict[str, dict[int, set[str]]] = {}
    for path in data.measured_files():
        file = f"{PACKAGE}/{path.rpartition(f'/{PACKAGE}/')[2]}"
        lines = data.contexts_by_lineno(path)
        by_line[file] = {line: {_test(c) for c in found if c} for line, found in lines.items()}
    return Recorded(seconds, by_line)


def _test(context: str) -> str:
    """The test of a context of coverage, or of an id that names xdist's group."""
    return re.sub(r"@[\w.-]+$", "", context.rpartition("|")[0] or context)


# ---- a copy of the tree, and tests in it


PYTEST = [sys.executable, "-m", "pytest", "-p", "mutants", "-p", "no:cacheprovider"]
# A module that is named is searched for tests too: what is called Test there is none.
ONLY_THESE = ["-x", "-q", "--tb=no", "--no-header", "-W", "ignore::pytest.PytestCollectionWarning"]


def copied(folder: Path) -> Path:
    """A copy of the files that git knows or would take."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def _environment(tree: Path) -> dict[str, str]:
    data = os.environ.get("EQSEP_DATA", str(ROOT.parent / "shared" / "data"))
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tree), str(tree / "tools")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "EQSEP_DATA": data,
    }


def killed_by(mutant: Mutant, tests: list[str], tree: Path, *, seconds: float) -> str | None:
    """What notices the change: a test, or the time it takes; None where nothing does."""
    path, asked = tree / mutant.file, tree / "asked.json"
    whole = path.read_text()
    asked.write_text(json.dumps(tests))
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    path.write_text(changed(whole, mutant))
    process = subprocess.Popen(
        [*PYTEST, *ONLY_THESE, *files],
        cwd=tree,
        env=_environment(tree) | {"MUTANTS_ASKED": str(asked)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = process.communicate(timeout=60 + 5 * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "time"
    finally:
        path.write_text(whole)
    if process.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", told, re.MULTILINE)
    return failed[1] if failed else told.strip().rpartition("\n")[2]


# ---- as a plugin of pytest, in the copies


_seconds: dict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report):  # type: ignore[no-untyped-def]
    if report.outcome == "passed":
        _seconds[_test(report.nodeid)] += report.duration


def pytest_sessionfinish(session):  # type: ignore[no-untyped-def]
    if "MUTANTS_SECONDS" in os.environ and not hasattr(session.config, "workerinput"):
        Path(os.environ["MUTANTS_SECONDS"]).write_text(json.dumps(_seconds))


def pytest_collection_modifyitems(items):  # type: ignore[no-untyped-def]
    if "MUTANTS_ASKED" in os.environ:
        asked = json.loads(Path(os.environ["MUTANTS_ASKED"]).read_text())
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in asked if test in found]


# ---- the command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--record", type=Path, help="folder of a record to use, or to make")
    parser.add_argument("--list", action="store_true", help="show what is drawn, and run nothing")
    asked = parser.parse_args()
    chosen = drawn(asked.count, asked.seed)
    if asked.list:
        print(*chosen, sep="\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        trees: SimpleQueue[Path] = SimpleQueue()
        for i in range(asked.processes):
            trees.put(copied(Path(temporary, str(i))))
        folder = asked.record or Path(temporary, "record")
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "seconds.json").exists():
            record(Path(temporary, "0"), folder, asked.processes)
        known = recorded(folder)

        def judged(mutant: Mutant) -> tuple[str | None, int]:
            tests = known.tests_of(mutant)
            if not tests:
                return None, 0
            tree = trees.get()
            try:
                seconds = sum(known.seconds[test] for test in tests)
                return killed_by(mutant, tests, tree, seconds=seconds), len(tests)
            finally:
                trees.put(tree)

        survived = 0
        with ThreadPoolExecutor(asked.processes) as pool:
            for mutant, (killer, n) in zip(chosen, pool.map(judged, chosen), strict=True):
                survived += killer is None
                end = f"SURVIVED {n} tests" if killer is None else f"killed by {short(killer)}"
                print(f"{mutant}  {end}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} mutants killed, {survived} survived")
    return int(survived > MOST_SURVIVORS)


if __name__ == "__main__":
    sys.exit(main())
