"""What a row costs `Detector.fit` on a folder of Parquet files, from 10^4 rows on: time and memory.

    python bench/scale.py                                   10^4 to 10^6 rows, some minutes
    python bench/scale.py --rows 10000 100000                a minute
    python bench/scale.py --rows 1000000 10000000 100000000 --landmarks 500
    python bench/scale.py --rows 100000 --columns 10 30 100 300 1000 --landmarks 300
    python bench/scale.py --rows 200000 --landmarks 100 500 1400 2000 --threads 1 2

Rows are those of `scale_data.py`, made where they are not in --data yet. Each line is a process of
its own, bound to as many cores as it has threads, after a small fit that loads and compiles what
there is to load. Of a line: microseconds of the clock for a row, and of the processor; the part
that reading both passes takes on its own; the clock's time as a multiple of what the products of a
row's kernel values with themselves (m² operations) take at the speed of a matrix product, and of
what copying its values in memory takes, both measured in the same process; and the most memory
that the process ever had, with Python and the libraries in it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
from scale_data import make

from eqsep import Detector
from eqsep.tables.batches import batches_from, record_batches

WARM_ROWS = 3000


@dataclass(frozen=True)
class Case:
    """One fit."""

    rows: int
    columns: int
    landmarks: int
    threads: int


@dataclass(frozen=True)
class Cost:
    """Of one fit; seconds, bytes a second, operations a second."""

    clock: float
    processor: float
    reading: float
    megabytes: float
    product_rate: float
    copy_rate: float


def measured(folder: Path, case: Case) -> Cost:
    """Where it is called: in a process that does nothing else."""
    pa.set_cpu_count(case.threads)
    data = pa.dataset.dataset(sorted(map(str, folder.glob("*.parquet"))))
    detector = Detector(n_landmarks=case.landmarks, random_state=0)
    warm = pa.Table.from_batches([next(record_batches(data, None, WARM_ROWS))])
    detector.fit(warm.drop_columns(["kind"]), warm["kind"])
    clock, processor = _seconds(lambda: detector.fit(data, "kind"))
    peak = _peak_megabytes()
    reading, _ = _seconds(lambda: [_read(data) for _ in range(2)])
    return Cost(clock, processor, reading, peak, _product_rate(), _copy_rate())


def _read(data: object) -> None:
    for _ in batches_from(data, "kind", name="scale"):
        pass


def _seconds(task: Callable[[], object]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - clock, time.process_time() - processor


def _product_rate(n: int = 1500) -> float:
    """Operations a second of a product of matrices in double precision."""
    a = np.random.default_rng(0).normal(size=(n, n))
    return 2 * n**3 / min(_seconds(lambda: a @ a)[0] for _ in range(3))


def _copy_rate(n: int = 25_000_000) -> float:
    """Bytes a second that are read and written again."""
    a, b = np.ones(n), np.empty(n)
    return 8 * n / min(_seconds(lambda: np.copyto(b, a))[0] for _ in range(3))


def _peak_megabytes() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in status if line.startswith("VmHWM"))


def in_a_process(folder: Path, case: Case) -> Cost:
    """The cost of a case, in a fresh process with its number of threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    env = os.environ | dict.fromkeys(names, str(case.threads))
    words = [sys.executable, __file__, "--one", json.dumps(asdict(case)), "--data", str(folder)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{case} ended with {done.returncode}: {done.stderr[-2000:]}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def line(case: Case, cost: Cost) -> str:
    """A case and what it costs."""
    micro = 1e6 / case.rows
    products = cost.clock * cost.product_rate / (case.rows * case.landmarks**2)
    copies = cost.clock * cost.copy_rate / (case.rows * case.columns * 8)
    return (
        f"{case.rows:>12,}{case.columns:>8}{case.landmarks:>10}{case.threads:>8}"
        f"{cost.clock * micro:>11.2f}{cost.processor * micro:>11.2f}{cost.reading * micro:>10.2f}"
        f"{products:>10.1f}{copies:>9.0f}{cost.megabytes:>9,.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--columns", type=int, nargs="+", default=[30])
    parser.add_argument("--landmarks", type=int, nargs="+", default=[200])
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count()])
    parser.add_argument("--data", type=Path, help="where rows are kept; else they are made anew")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        case = Case(**json.loads(args.one))
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: case.threads])
        print(json.dumps(asdict(measured(args.data, case))))
        return
    heads = ("rows", "columns", "landmarks", "threads", "µs clock", "µs cpu", "reading")
    print(
        "".join(f"{h:>{w}}" for h, w in zip(heads, (12, 8, 10, 8, 11, 11, 10), strict=True))
        + f"{'products':>10}{'copies':>9}{'peak MB':>9}   load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory() as temporary:
        home = args.data or Path(temporary)
        for columns in args.columns:
            for rows in args.rows:
                folder = make(home / f"{rows}x{columns}", rows=rows, columns=columns)
                for landmarks in args.landmarks:
                    for threads in args.threads:
                        case = Case(rows, columns, landmarks, threads)
                        print(line(case, in_a_process(folder, case)), flush=True)


if __name__ == "__main__":
    main()
