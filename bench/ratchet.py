"""What got slower or less precise: fixed jobs and tasks beside the best record so far.

    make ratchet                                      measure, compare, and write a record
    make ratchet ONLY="explain fit"                   some parts
    make ratchet ACCEPT="fit 1,000 rows: a new term"  accept a fall of the newest record
    PYTHONPATH=../other python bench/ratchet.py       measure the package of another checkout

This takes at most ten minutes on two cores, and writes bench/history/<number>-<commit>.json. It
exits with status 1 if a time is more than a tenth above the best record of the same machine, or a
precision more than .005 below the best of all records (see history.py). Parts in which a time fell
are measured again first, and the best figure counts.

A time is in units of a fixed loop of Python and NumPy, which runs before and after the job: the
median of several rounds, in seconds of the processor with one thread, of the job's own process and
of those that it starts. So other programs disturb it little, and waiting is not seen. The rows are
made up, and a fifth of the columns are words.

Precision is deterministic, so its tolerance is absolute and small: a tenth of .98 would hide a
disaster. It is average precision of the Detector with its defaults, and, for the promise, 1 minus
the distance between the measured and the promised rate of false alarms. Data is looked for in
$EQSEP_DATA, then in ../shared/data; a task without its data or a package is skipped and says so.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before anything divides work

import history
import numpy as np
import pyarrow as pa
from history import Record
from pyarrow import csv

import eqsep
from eqsep import Detector, load_model
from eqsep.io import read_table

HISTORY = Path(__file__).parent / "history"
LOOPS_BETWEEN = 4
MAX_REPEATS = 2  # of parts in which a time fell
BUSY = 1.0  # load of a core beyond which times are not to be trusted
SECONDS_FOR_REPEATS = 400.0  # none begins later
WORDS = np.array(["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "oak"])
FIRST_FIT = """
import numpy as np
from eqsep import Detector
X = np.random.default_rng(0).normal(size=(1000, 20))
X[:50] += 3
Detector(random_state=0).fit(X, np.repeat(["anomaly", "normal"], [50, 950]))
"""


def loop() -> float:
    """The unit of times: dicts, strings, sums, sorting and matrix products."""
    rng = np.random.default_rng(0)
    A = rng.random((300, 300))
    counts: dict[str, int] = {}
    for i in range(60_000):
        counts[str(i % 997)] = counts.get(str(i % 997), 0) + i
    for _ in range(6):
        A = np.tanh(A @ A.T / 300)
        A = np.sort(A, axis=1) + rng.random((300, 300))
    return float(A.sum()) + counts["1"]


def timed(
    job: Callable[[int], Any], clock: Callable[[], float] = time.process_time
) -> Callable[[int], float]:
    """A function of the round that returns the seconds of a job."""

    def seconds(i: int) -> float:
        start = clock()
        job(i)
        return clock() - start

    return seconds


def seconds_of_loop(_: int) -> float:
    return timed(lambda _: loop())(0)


def in_loops(seconds: Callable[[int], float], *, rounds: int) -> float:
    """What is measured each round, in units of the loops before and after it: the median.

    Each round is given its number, so that it can have rows that no other round has.
    """
    ratios, before = [], [seconds_of_loop(0) for _ in range(LOOPS_BETWEEN)]
    for i in range(rounds):
        measured = seconds(i)
        after = [seconds_of_loop(i) for _ in range(LOOPS_BETWEEN)]
        ratios.append(measured / fmean(before + after))
        before = after
    return median(ratios)


def ended_processes() -> float:
    """A clock: the processor time of the processes that this one started and that have ended."""
    import resource  # not on Windows

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Rows:
    """An Arrow table, and the kind of each row."""

    table: pa.Table
    kind: np.ndarray

    def at(self, start: int, stop: int) -> "Rows":
        return Rows(self.table.slice(start, stop - start), self.kind[start:stop])

    def anomalies(self) -> pa.Table:
        return self.table.filter(self.kind != "normal")

    def fit(self) -> Detector:
        return Detector(random_state=0).fit(self.table, self.kind)


def made_up_rows(n_rows: int, n_columns: int) -> Rows:
    """Correlated columns, a fifth of them words; 5 % of the rows are of two kinds of anomaly."""
    from fit_time import made_up

    X, y = made_up(n_rows, n_columns)
    kinds = np.where(X[:, :6].sum(axis=1) > 0, "high", "low")
    places = np.clip(np.round(1.5 * X) + len(WORDS) / 2, 0, len(WORDS) - 1).astype(int)
    n_numbers = n_columns - n_columns // 5
    columns = {f"x{i}": X[:, i] if i < n_numbers else WORDS[places[:, i]] for i in range(n_columns)}
    return Rows(pa.table(columns), np.where(y == 1, kinds, "normal"))


@dataclass(frozen=True)
class Run:
    """A folder for files, and the rows and the detector that several parts use."""

    folder: Path

    @cached_property
    def fitted(self) -> Rows:
        """100,000 rows to fit."""
        return self._all_rows.at(0, 100_000)

    @cached_property
    def others(self) -> Rows:
        """50,000 rows that no detector has learnt."""
        return self._all_rows.at(100_000, 150_000)

    @cached_property
    def detector(self) -> Detector:
        return self.fitted.at(0, 10_000).fit()

    @cached_property
    def _all_rows(self) -> Rows:
        return made_up_rows(150_000, 20)


Figures = Iterator[tuple[str, float]]
Part = Callable[[Run], Figures]


def row(run: Run) -> Figures:
    """One row at a time, as a dict."""
    score, rows = run.detector.score_samples, run.others.at(0, 3_600).table.to_pylist()
    score(rows[:1])

    def job(i: int) -> None:
        for one in rows[400 * i : 400 * (i + 1)]:
            score([one])

    yield "score 400 rows one by one", in_loops(timed(job), rounds=9)


def batch(run: Run) -> Figures:
    """Many rows at once."""
    score, table = run.detector.score_samples, run.others.table
    score(table[:10])
    seconds = timed(lambda i: score(table.slice(7_000 * i, 7_000)))
    yield "score 7,000 rows", in_loops(seconds, rounds=7)


def explain(run: Run) -> Figures:
    """Reasons of alarms."""
    yield from reasons(run.detector, run.others.anomalies(), n_rows=100, folder=run.folder)
    wide = made_up_rows(10_000, 200)
    detector, alarms = wide.at(0, 5_000).fit(), wide.at(5_000, 10_000).anomalies()
    yield from reasons(detector, alarms, n_rows=20, folder=run.folder)


def reasons(detector: Detector, alarms: pa.Table, *, n_rows: int, folder: Path) -> Figures:
    """Of the first alarm that a model explains, and of several at once."""
    path, columns = folder / "explained.eqsep", f"{alarms.num_columns} columns"
    detector.save(path)
    models = [load_model(path) for _ in range(8)]  # nothing is cached
    first = timed(lambda i: models[i].explain(alarms.slice(i, 1)))
    yield f"explain the first row, {columns}", in_loops(first, rounds=7)
    several = timed(lambda i: models[-1].explain(alarms.slice(i * n_rows, n_rows)))
    yield f"explain {n_rows} rows, {columns}", in_loops(several, rounds=9)


def fit(run: Run) -> Figures:
    """Few rows and many."""
    run.fitted.at(0, 1_000).fit()
    for n_rows, rounds in ((1_000, 9), (10_000, 5), (100_000, 3)):
        job = timed(partial(refit, run.fitted.at(0, n_rows)))
        yield f"fit {n_rows:,} rows", in_loops(job, rounds=rounds)


def refit(rows: Rows, _: int) -> None:
    """The same fit in every round."""
    rows.fit()


def first_fit(run: Run) -> Figures:
    """The first fit ever, imports included: a new process, and no loop is compiled yet."""

    def job(_: int) -> None:
        in_new_process(FIRST_FIT, NUMBA_CACHE_DIR=mkdtemp(dir=run.folder))

    yield "first fit, nothing compiled", in_loops(timed(job, ended_processes), rounds=3)


def imports(_: Run) -> Figures:
    """A new process that does nothing else."""
    for line in ("import eqsep", "from eqsep import Detector"):
        in_new_process(line)
        job = timed(partial(import_again, line), ended_processes)
        yield line, in_loops(job, rounds=7)


def import_again(line: str, _: int) -> None:
    """The same import in every round."""
    in_new_process(line)


def in_new_process(code: str, **environment: str) -> None:
    """Run code in a Python of its own."""
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | environment)


def read(run: Run) -> Figures:
    """A CSV file."""
    path = run.folder / "rows.csv"
    csv.write_csv(run.others.table, path)
    read_table(path)
    yield "read 50,000 rows of CSV", in_loops(timed(lambda _: read_table(path)), rounds=9)


def serve(run: Run) -> Figures:
    """The service: single rows over 32 connections, and verdicts on alarms."""
    from serving import Load, cpu_seconds, service, times

    from eqsep.client import Client

    path, rows = run.folder / "model.eqsep", run.others.at(0, 20_000).table.to_pylist()
    run.detector.save(path)
    with service(path, Path(mkdtemp(dir=run.folder)), workers=1) as (url, token, process):
        load = Load(url, token, "/api/v1/models/model/score", connections=32, seconds=2.0)
        times(load, rows)
        load = replace(load, warm_up=0.0)

        def seconds(_: int) -> float:
            start = cpu_seconds(process)
            n_rows = len(times(load, rows)[0])
            return 100 * (cpu_seconds(process) - start) / n_rows

        yield "serve 100 rows", in_loops(seconds, rounds=7)
        client = Client(url, token)
        alarms = [one["id"] for one in client.alarms("model", limit=50)["alarms"]]

        def judge(kind: str | None, _: int) -> None:
            for _ in range(3):
                client.judge([alarms.pop()], "true" if kind else "false alarm", kind=kind)

        clock = partial(cpu_seconds, process)
        for name, kind in (("false alarm", None), ("a kind", "odd")):
            job = timed(partial(judge, kind), clock)
            yield f"give 3 verdicts, {name}", in_loops(job, rounds=7)


def one_kind(_: Run) -> Figures:
    """One kind is seen, as in leave_one_kind_out.py: means over the kinds."""
    from leave_one_kind_out import Cell, measure
    from tasks import TABLES

    for name in ("ann-thyroid", "ai4i2020"):
        results = [measure(Cell("", name, kind, "eqsep")) for kind in TABLES[name].kinds]
        for part in ("seen", "unseen", "overall"):
            areas = [result["average_precision"][part] for result in results]
            yield f"one kind seen, {name}, {part}", float(np.mean(areas))


def few_labels(_: Run) -> Figures:
    """A share of the anomalies is labelled, as in adbench.py: means over shares and divisions."""
    from adbench import SEEDS, Cell, measure
    from tasks import DATA_HOME

    for name in ("mammography", "SpamBase", "Waveform", "yeast"):
        cells = [Cell("", name, share, seed, "eqsep") for share in (5, 100) for seed in SEEDS]
        results = [measure(cell, folder=DATA_HOME / "adbench") for cell in cells]
        areas = [result["average_precision"] for result in results]
        yield f"few labels, {name}", float(np.mean(areas))


def promise(_: Run) -> Figures:
    """The rate of false alarms, as in promise.py: the mean over 20 divisions."""
    from promise import RATES, Cell, measure

    cell = Cell("", "ann-thyroid", first=0, splits=20, n_landmarks=300, bandwidth=None)
    rates = np.mean(measure(cell)["shares"], axis=0)
    for promised, rate in zip(RATES, rates, strict=True):
        yield f"promise of {promised:.0%}, ann-thyroid", 1 - abs(float(rate) - promised)


TIMES: dict[str, Part] = {
    part.__name__: part for part in (row, batch, explain, fit, first_fit, imports, read, serve)
}
PRECISION: dict[str, Part] = {part.__name__: part for part in (one_kind, few_labels, promise)}


def figures_of(
    parts: Mapping[str, Part], run: Run, only: Collection[str]
) -> dict[str, dict[str, float]]:
    """The figures of each part. They are printed, and so is what cannot be measured."""
    found: dict[str, dict[str, float]] = {}
    for part in (name for name in parts if name in only):
        found[part] = {}
        try:
            for name, value in parts[part](run):
                found[part][name] = value
                print(f"{part:12}{name:40}{value:10.4g}", flush=True)
        except (FileNotFoundError, ImportError) as missing:
            print(f"{part:12}skipped. {missing}", flush=True)
    return found


def flat(figures: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The figures of all parts."""
    return {name: value for part in figures.values() for name, value in part.items()}


def measured(commit: str, earlier: Sequence[Record], only: Collection[str]) -> Record:
    """A record of this run; where a time fell, of the best of a few."""
    begin = time.monotonic()
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made-up rows are not worth a warning
        run = Run(Path(folder))
        times = figures_of(TIMES, run, only)
        precision = figures_of(PRECISION, run, only)
        record = Record(
            commit=commit,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=machine(),
            times=flat(times),
            precision=flat(precision),
        )
        for _ in range(MAX_REPEATS):
            fallen = {fall.name for fall in history.falls(record, earlier)}
            parts = [part for part, figures in times.items() if fallen & figures.keys()]
            if not parts or time.monotonic() - begin > SECONDS_FOR_REPEATS:
                break
            print(f"again: {', '.join(parts)}")
            afresh = Run(Path(mkdtemp(dir=folder)))  # what was scored before may be cached
            more = flat(figures_of(TIMES, afresh, parts))
            best = {name: min(x, more.get(name, x)) for name, x in record.times.items()}
            record = replace(record, times=best)
    load, cores = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, os.cpu_count() or 1
    print(f"{(time.monotonic() - begin) / 60:.1f} minutes, load {load:.1f} on {cores} cores")
    if load > BUSY * cores:
        print("Other programs kept the machine busy: times may be off by a fifth. Run it again.")
    return record


def machine() -> str:
    """What times depend on: the processor, and how many cores it has."""
    model = platform.processor()
    with suppress(FileNotFoundError):
        names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        model = names[0] if names else model
    return ", ".join(filter(None, (platform.machine(), f"{os.cpu_count()} cores", model)))


def measured_commit() -> str:
    """The commit of the package that is imported here, and by the processes that are started."""
    home = Path(eqsep.__file__).parents[1]
    os.environ.update(PYTHONPATH=str(home), PYTHONSAFEPATH="1")  # not the present folder's package
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as if installed
    command = ["git", "-C", str(home), "describe", "--always", "--dirty", "--exclude=*"]
    with suppress(FileNotFoundError, subprocess.CalledProcessError):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return eqsep.__version__  # not a git clone


def report(record: Record, earlier: Sequence[Record]) -> int:
    """Print what fell, and what is accepted of it; the exit status."""
    if not any(one.machine == record.machine for one in earlier):
        print("No earlier record is of this machine: times are not compared.")
    for name, reason in record.accepted.items():
        print(f"accepted: {name}: {reason}")
    fallen = history.falls(record, earlier)
    if not fallen:
        print("Nothing fell.")
        return 0
    print(f"{'Fell since the best record':40}{'now':>10}{'best':>10}")
    for fall in fallen:
        print(fall)
    print('If a fall is meant: make ratchet ACCEPT="NAME: REASON".')
    return 1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*TIMES, *PRECISION]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="PART")
    parser.add_argument("--accept", metavar="'NAME: REASON'", help="a fall of the newest record")
    parser.add_argument("--history", type=Path, default=HISTORY, help="folder of records")
    args = parser.parse_args(argv)
    records = history.read(args.history)
    if args.accept:
        if not records:
            parser.error(f"There is no record in {args.history} yet.")
        *earlier, record = records.values()
        path = [*records][-1]
        try:
            record = history.accept(record, earlier, args.accept)
        except ValueError as error:
            parser.error(str(error))
    else:
        earlier, commit = [*records.values()], measured_commit()
        record = measured(commit, earlier, args.only)
        path = args.history / f"{len(records) + 1:04}-{commit}.json"
    history.write(record, path)
    print(path)
    return report(record, earlier)


if __name__ == "__main__":
    sys.exit(main())
