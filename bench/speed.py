"""How fast each job is, beside a peer or a limit of the same run, as one table.

    python bench/speed.py                     all of it, about a quarter of an hour on two cores
    python bench/speed.py --only row explain  some of it
    python bench/speed.py --threads 1         seconds of the processor, which others disturb little

NSL-KDD, its 41 columns as they are in the files for eqsep, 122 numbers for the peers, all training
rows by the paper's protocol; 1,000 landmarks, XGBoost with 200 trees. A figure is the best of
several. The ratio is that of our figure to the one beside it: of seconds less is better, of rows a
second more. Peers are measured where they are installed (the extra `bench`). NSL-KDD is looked for
in $EQSEP_DATA, then in ../shared/data; `bench/serving.py` measures the service and `bench/gpu.py` a
GPU.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from kernel import Stopwatch
from peers import METHODS
from pyarrow import csv
from score_file import cost
from tasks import DATA_HOME

from eqsep import Detector, load_model
from eqsep.datasets import load_nsl_kdd
from eqsep.errors import MissingExtraError

COMMAND = [sys.executable, "-m", "eqsep"]
SAYING = ("score_samples", "predict", "predict_kind", "p_value")
PEERS = ("XGBoost", "isolation forest", "LOF", "ECOD")
FILE_ROWS = 5_000_000


@dataclass(frozen=True)
class Line:
    """A job, our figure, and what stands beside it."""

    job: str
    figure: float
    unit: str
    beside: str
    other: float

    def __str__(self) -> str:
        ratio = self.figure / self.other
        figures = f"{_written(self.figure):>11} {self.unit:7}{_written(self.other):>11}"
        return f"{self.job:34}{figures}  {self.beside:34}{ratio:9.2f}"


@dataclass(frozen=True)
class Run:
    """The data, the model and the stopwatch of all parts, each made when it is first asked for."""

    threads: int
    folder: Path
    model_file: Path | None

    @cached_property
    def watch(self) -> Stopwatch:
        return Stopwatch(self.threads)

    @cached_property
    def frames(self) -> Any:
        return load_nsl_kdd(data_home=DATA_HOME, protocol="paper", as_frame=True)

    @cached_property
    def arrays(self) -> Any:
        return load_nsl_kdd(data_home=DATA_HOME, protocol="paper")

    @cached_property
    def model(self) -> Path:
        path = self.model_file or self.folder / "model.eqsep"
        if not path.exists():
            Detector(random_state=0).fit(self.frames.X_train, self.frames.kind_train).save(path)
        return path

    @cached_property
    def detector(self) -> Detector:
        return load_model(self.model)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        return self.frames.X_test[:2000].to_dict("records")

    def best(self, task: Callable[[], Any], *, repeats: int = 5) -> float:
        task()
        return self.watch(task, repeats=repeats)[0]

    def peers(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Those of these names that are installed."""
        for name in filter(METHODS.__contains__, names):
            settings = {"settings": {"n_jobs": self.threads}} if name != "ECOD" else {}
            with suppress(ImportError, MissingExtraError):
                yield name, METHODS[name].build(**settings)


def first(run: Run) -> Iterator[Line]:
    """The command in a process of its own, for the second time: with bytecode, as if installed."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(run.folder / "bytecode")
    one = run.folder / "one.csv"
    run.frames.X_test[:1].to_csv(one, index=False)
    limits = {
        "eqsep --help": (["--help"], 0.3),
        "eqsep score, one row": (["score", str(run.model), str(one)], 1.5),
    }
    for name, (words, limit) in limits.items():
        seconds = min(cost([*COMMAND, *words])[0] for _ in range(4))
        yield Line(name, seconds, "s", "limit", limit)
    needed = "numba, pyarrow"
    seconds = min(cost([sys.executable, "-c", f"import {needed}"])[0] for _ in range(3))
    yield Line(f"import {needed}", seconds, "s", "limit of eqsep score", 1.5)
    words = [sys.executable, "-X", "importtime", *COMMAND[1:], "score", str(run.model), str(one)]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    found = re.findall(r"import time: +(\d+) \| +\d+ \| *([^.\s]+)", told)
    by_package: dict[str, int] = {}
    for own, package in found:
        by_package[package] = by_package.get(package, 0) + int(own)
    slowest = sorted(by_package, key=by_package.__getitem__, reverse=True)[:6]
    print("imports:", ", ".join(f"{name} {by_package[name] / 1e6:.2f} s" for name in slowest))


def row(run: Run) -> Iterator[Line]:
    """One row as a dict, call by call."""
    detector, rows = run.detector, run.rows
    for method in SAYING:
        say = getattr(detector, method)
        seconds = run.best(lambda say=say: [say([one]) for one in rows[:100]], repeats=25) / 100
        yield Line(f"{method}, one row", seconds * 1e3, "ms", "limit", 0.3)
    X, y = run.arrays.X_train[:20_000], run.arrays.y_train[:20_000]
    for name, peer in run.peers("isolation forest", "XGBoost"):
        model, few = peer.fit(X, y), run.arrays.X_test[:20]
        other = run.best(lambda m=model, few=few: [m.score(one[None]) for one in few]) / 20
        yield Line("score_samples, one row", _first(run) * 1e3, "ms", name, other * 1e3)


def _first(run: Run) -> float:
    rows, say = run.rows, run.detector.score_samples
    return run.best(lambda: [say([one]) for one in rows[:100]]) / 100


def explain(run: Run) -> Iterator[Line]:
    """Reasons of many rows at once, and of one."""
    detector, rows = run.detector, run.rows[:1000]
    seconds = run.best(lambda: detector.explain(rows), repeats=3)
    yield Line("explain, 1,000 rows", 1000 / seconds, "rows/s", "limit", 2000)
    scored = run.best(lambda: detector.score_samples(rows))
    yield Line("explain, 1,000 rows", 1000 / seconds, "rows/s", "score_samples", 1000 / scored)
    alone = run.best(lambda: detector.explain(rows[:1]), repeats=20)
    yield Line("explain, one row", alone * 1e3, "ms", "score_samples", _first(run) * 1e3)


def encode(run: Run) -> Iterator[Line]:
    """A table in memory as the numbers that distances are taken of."""
    frame, plan = run.frames.X_train, run.detector.plan_
    table, n = pa.Table.from_pandas(frame, preserve_index=False), len(frame)
    rate = n / run.best(lambda: plan.encode(table))
    yield Line("encode, Arrow", rate, "rows/s", "limit", 1e6)
    path = run.folder / "rows.csv"
    csv.write_csv(table, path)
    reading = csv.ReadOptions(use_threads=run.threads > 1)
    read = n / run.best(lambda: csv.read_csv(path, read_options=reading))
    yield Line("encode, Arrow", rate, "rows/s", "pyarrow reads the same CSV", read)
    pandas = n / run.best(lambda: plan.encode(frame))
    yield Line("encode, pandas", pandas, "rows/s", "limit", 1e6)


def score(run: Run) -> Iterator[Line]:
    """Test rows scored: from the table, encoded before, and by the machine's own product."""
    detector, frame = run.detector, run.frames.X_test
    rate = len(frame) / run.best(lambda: detector.score_samples(frame), repeats=3)
    model = detector.model_
    Z = model.plan.encode(frame)
    encoded = len(Z) / run.best(lambda: model.score(Z), repeats=3)
    yield Line("score", rate, "rows/s", "encoded before", encoded)
    rows, landmarks = (model.plan.encoder.pack(A) for A in (Z, model.plan.kernel.landmarks))
    product = len(rows) / run.best(lambda: rows @ landmarks.T)
    yield Line("score, encoded", encoded, "rows/s", "matrix product with the landmarks", product)
    X, y = run.arrays.X_train[:20_000], run.arrays.y_train[:20_000]
    for name, peer in run.peers(*PEERS):
        model, some = peer.fit(X, y), run.arrays.X_test[:5000]
        other = len(some) / run.best(lambda m=model, some=some: m.score(some), repeats=2)
        yield Line("score", rate, "rows/s", f"{name}, 20,000 rows learnt", other)


def fit(run: Run) -> Iterator[Line]:
    """All training rows."""
    frames, arrays = run.frames, run.arrays
    fitting = Detector(random_state=0)
    Detector(random_state=0).fit(frames.X_train[::40], frames.kind_train[::40])  # compiles
    seconds = run.watch(lambda: fitting.fit(frames.X_train, frames.kind_train), repeats=2)[0]
    for name, model in run.peers("XGBoost", "isolation forest", "ECOD"):
        other = run.watch(lambda m=model: m.fit(arrays.X_train, arrays.y_train), repeats=2)[0]
        yield Line("fit", seconds, "s", name, other)


def file(run: Run) -> Iterator[Line]:
    """`eqsep score` of a CSV, beside pyarrow's reading of it.

    The training rows again and again, and the same with durations that differ from one time to the
    next, so that no row comes twice: one that came before is not scored again.
    """
    frame, path, out = run.frames.X_train, run.folder / "many.csv", run.folder / "scores.parquet"
    changes: dict[str, Callable[[int], Any]] = {
        f"each {FILE_ROWS // len(frame)} times": lambda _: frame,
        "none twice": lambda i: frame.drop_duplicates().assign(duration=frame.duration + i / 1000),
    }
    for told, changed in changes.items():
        with path.open("w") as many:
            many.write(",".join(frame.columns) + "\n")
            n = 0
            for i in range(FILE_ROWS // len(frame)):
                rows = changed(i)
                many.write(rows.to_csv(index=False, header=False))
                n += len(rows)
        seconds = min(_scored(run.model, path, out) for _ in range(2))
        reading = min(_read(path) for _ in range(2))
        yield Line(f"eqsep score, {n:,} rows", seconds, "s", f"pyarrow reads; {told}", reading)


def _read(path: Path) -> float:
    begin = time.perf_counter()
    csv.read_csv(path)
    return time.perf_counter() - begin


def _scored(model: Path, rows: Path, out: Path) -> float:
    return cost([*COMMAND, "score", str(model), str(rows), "--out", str(out)])[0]


PARTS = {part.__name__: part for part in (first, row, explain, encode, score, fit, file)}


def _written(x: float) -> str:
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--model", type=Path, help="a file with the detector, to fit it once")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {args.threads} threads, commit "
        f"{commit.stdout.strip()}, load {os.getloadavg()[0]:.1f}"
    )
    print(f"{'job':34}{'figure':>19}{'beside it':>11}  {'what that is':34}{'ratio':>9}")
    with TemporaryDirectory() as name:
        run = Run(args.threads, Path(name), args.model)
        for part in args.only:
            for line in PARTS[part](run):
                print(line, flush=True)


if __name__ == "__main__":
    main()
