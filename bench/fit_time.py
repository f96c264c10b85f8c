"""How long a fit takes: eqsep's Detector beside boosted trees and an isolation forest.

    python bench/fit_time.py                       all tables, two threads, the best of three
    python bench/fit_time.py --tables 10000x20 nsl-kdd --threads 1
    python bench/fit_time.py --only eqsep HistGradientBoosting

A table is ROWSxCOLUMNS, made up (correlated normal columns; 5 % of the rows are of two kinds of
anomaly, shifted in three columns each), or nsl-kdd: all 113,279 training rows by the paper's
protocol, looked for in $EQSEP_DATA, then in ../shared/data. Every fit runs in a process of its own,
which first fits 2,000 rows so that imports and compiled loops do not count. Peers have their
defaults, boosted trees 200 (XGBoost), 300 (CatBoost) and 100 (HistGradientBoosting) rounds. MB is
how much the process grows in the fit; precision is that of all anomalies on other rows.
"""

import argparse
import os
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from kernel import PeakMemory, Stopwatch
from peers import METHODS, Method, prepared
from sklearn.metrics import average_precision_score
from tasks import DATA_HOME

from eqsep.datasets import load_nsl_kdd

TABLES = ("1000x20", "10000x20", "100000x20", "1000000x20", "10000x100", "100000x100", "nsl-kdd")
WARM_UP_ROWS = 2000
TEST_ROWS = 20_000


@dataclass(frozen=True)
class Fit:
    """What a fit took, and the average precision it came to."""

    seconds: float
    megabytes: float
    precision: float


def methods(threads: int) -> dict[str, Method]:
    """Each method with so many threads."""
    jobs = {"n_jobs": threads}
    found = {
        "eqsep": METHODS["eqsep"],
        "HistGradientBoosting": Method(
            partial(prepared, "HistGradientBoosting"), "sklearn", "its defaults"
        ),
        "XGBoost": Method(partial(prepared, "XGBoost", settings=jobs), "xgboost", "200 trees"),
        "CatBoost": Method(
            partial(prepared, "CatBoost", settings={"thread_count": threads}),
            "catboost",
            "300 trees",
        ),
        "isolation forest": Method(
            partial(prepared, "isolation forest", settings=jobs), "sklearn", "normal rows only"
        ),
    }
    return {name: method for name, method in found.items() if method.package()}


def made_up(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and their labels: 0 for normal ones, 1 for both kinds of anomaly."""
    rng = np.random.default_rng(0)
    mixing = np.eye(n_columns) + 0.5 * rng.normal(size=(n_columns, n_columns)) / n_columns**0.5
    X = (rng.normal(size=(n_rows, n_columns)) @ mixing).astype(np.float32)
    anomalies = rng.choice(n_rows, n_rows // 20, replace=False)
    X[anomalies[::2], :3] += 3
    X[anomalies[1::2], 3:6] -= 3
    y = np.zeros(n_rows, dtype=int)
    y[anomalies] = 1
    return X, y


def rows_of(table: str, *, mixed: bool) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Rows and labels to fit, and to test."""
    if table == "nsl-kdd":
        split = load_nsl_kdd(data_home=DATA_HOME, protocol="paper", as_frame=mixed)
        return split.X_train, split.y_train, split.X_test, split.y_test
    n_rows, n_columns = map(int, table.split("x"))
    X, y = made_up(n_rows + TEST_ROWS, n_columns)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def measure(name: str, table: str, threads: int) -> Fit:
    """One fit, in a process that does nothing else."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    method = methods(threads)[name]
    X, y, X_test, y_test = rows_of(table, mixed=method.mixed)
    few = np.random.default_rng(0).permutation(len(y))[:WARM_UP_ROWS]
    method.build().fit(X.iloc[few] if hasattr(X, "iloc") else X[few], y[few])
    model = method.build()
    with PeakMemory() as memory:
        seconds, _ = Stopwatch(threads)(lambda: model.fit(X, y))
    precision = average_precision_score(y_test, model.score(X_test))
    return Fit(seconds, memory.megabytes, float(precision))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=TABLES, metavar="ROWSxCOLUMNS")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="METHOD")
    args = parser.parse_args()
    names = args.only or list(methods(args.threads))
    print(f"{args.threads} threads, best of {args.repeats}; load before: {os.getloadavg()[0]:.1f}")
    print(f"{'table':12}{'method':22}{'fit s':>8}{'of HGB':>8}{'MB':>7}{'precision':>11}")
    for table in args.tables:
        fits: dict[str, list[Fit]] = {name: [] for name in names}
        for _ in range(args.repeats):
            for name in names:
                with get_context("spawn").Pool(1) as pool:
                    fits[name].append(pool.apply(measure, (name, table, args.threads)))
        best = {name: min(some, key=lambda fit: fit.seconds) for name, some in fits.items()}
        peer = best.get("HistGradientBoosting")
        for name, fit in best.items():
            ratio = f"{fit.seconds / peer.seconds:.2f}" if peer else ""
            print(
                f"{table:12}{name:22}{fit.seconds:>8.2f}{ratio:>8}{fit.megabytes:>7.0f}"
                f"{fit.precision:>11.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
