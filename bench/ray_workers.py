"""Rows a second of fits and scores on Ray with 1, 2, ... workers, against one process without it.

    python bench/ray_workers.py                        10^6 rows of 30 columns, some minutes
    python bench/ray_workers.py --rows 200000 --landmarks 100
    python bench/ray_workers.py --workers 1 2 4 8

Rows are those of `scale_data.py`. Every worker, and the process without Ray, computes with one
thread; each is warmed up by a small fit and score first, so that what is loaded and compiled once
is not counted. Coefficients of all fits by Ray are the same: the last column is how far they are
apart at most. Processors that are busy with other things tell nothing: the load is printed.
"""

import argparse
import logging
import os
import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy is imported; workers inherit it

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import ray
from scale_data import make

from eqsep import Detector
from eqsep.detector.evidence import gather
from eqsep.distributed import fit, score
from eqsep.distributed.cluster import load_ray
from eqsep.tables.batches import batches_from

WARM_ROWS = 20_000


def seconds(task: Callable[[], object]) -> tuple[float, object]:
    """How long it takes, and what it gives."""
    start = time.perf_counter()
    result = task()
    return time.perf_counter() - start, result


def without_ray(folder: Path, settings: dict[str, int]) -> tuple[float, float, Detector]:
    """Seconds of a fit and of scores by this process, and the detector."""
    pa.set_cpu_count(1)
    data = pa.dataset.dataset(sorted(map(str, folder.glob("*.parquet"))))

    def scored() -> int:
        batches = batches_from(data, "kind", name="ray_workers")
        return sum(len(detector.model_.verdicts(rows).score) for rows, _ in batches)

    fitting, detector = seconds(lambda: Detector(**settings).fit(data, "kind"))
    return fitting, seconds(scored)[0], detector


def on_ray(folder: Path, settings: dict[str, int]) -> tuple[float, float, Detector]:
    """The same by the cluster that was joined."""
    fitting, detector = seconds(lambda: fit(folder, "kind", **settings))

    def scored() -> int:
        rows = score(detector, folder, keep=())
        return sum(batch.num_rows for batch in rows.iter_batches(batch_format="pyarrow"))

    return fitting, seconds(scored)[0], detector


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--landmarks", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    settings = {"n_landmarks": args.landmarks, "random_state": 0}
    print(
        f"{args.rows:,} rows of {args.columns} columns, {args.landmarks} landmarks, ",
        end="",
    )
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print(f"{'':12}{'fit rows/s':>12}{'score rows/s':>14}{'coefficients apart':>20}")
    load_ray()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        folder, warm = (
            make(home / str(n), rows=n, columns=args.columns) for n in (args.rows, WARM_ROWS)
        )
        without_ray(warm, settings)
        fitting, scoring, _ = without_ray(folder, settings)
        line = f"{'no Ray':12}{args.rows / fitting:>12,.0f}{args.rows / scoring:>14,.0f}"
        print(line, flush=True)
        first = None
        for workers in args.workers:
            ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
            ray.data.DataContext.get_current().enable_progress_bars = False
            logging.getLogger("ray.data").setLevel(logging.ERROR)
            on_ray(warm, settings)
            fitting, scoring, detector = on_ray(folder, settings)
            ray.shutdown()
            first = first or detector
            apart = np.abs(detector.coef_ - first.coef_).max()
            name = f"{workers} worker{'s' * (workers > 1)}"
            line = f"{name:12}{args.rows / fitting:>12,.0f}{args.rows / scoring:>14,.0f}"
            print(f"{line}{apart:>20.1e}", flush=True)
        table = pa.dataset.dataset(sorted(map(str, warm.glob("*.parquet")))).to_table()
        plan, known = first.plan_, first.model_.evidence.labels
        labels = plan.labels.read(table["kind"], n_rows=table.num_rows, known=known)
        evidence = gather(plan, plan.align(table.drop_columns(["kind"])), labels)
        sizes = (len(pickle.dumps(thing, protocol=5)) / 1e6 for thing in (plan, evidence))
        print("MB sent: plan {:.2f}, evidence {:.2f}".format(*sizes))


if __name__ == "__main__":
    main()
