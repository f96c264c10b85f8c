"""How fast the closed kernel separator is, and how good: against SVC, and against n.

    python bench/kernel.py               both parts, some minutes on two cores
    python bench/kernel.py svc           NSL-KDD against SVC(kernel="rbf"), side by side
    python bench/kernel.py growth        time and memory from 10^4 to 10^6 rows
    python bench/kernel.py --threads 2   with two threads for matrix products

Seconds are those of the processor with one thread, which a busy machine does not disturb, and
those of the clock with several.

NSL-KDD is looked for in $EQSEP_DATA, then in ../shared/data.
"""

import argparse
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from eqsep import KernelEqualitySeparator
from eqsep.datasets import TrainTestSplit, load_nsl_kdd
from eqsep.evaluation import average_precision_by_kind

PRINTED = ["dos", "probe", "privilege", "access", "overall"]


def sample(
    split: TrainTestSplit, n: int | None, scaling: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n training rows (None: all), 1 where they are anomalous, and the test rows, scaled."""
    total = len(split.X_train)
    some = np.random.default_rng(0).choice(total, total if n is None else n, replace=False)
    scaling.fit(split.X_train[some])
    return (
        scaling.transform(split.X_train[some]),
        split.y_train[some],
        scaling.transform(split.X_test),
    )


@dataclass(frozen=True)
class Stopwatch:
    """Processor time with one thread, wall-clock time with several."""

    threads: int

    def __call__(self, task: Callable[[], Any], *, repeats: int = 1) -> tuple[float, Any]:
        """The shortest time that a task took, and what it returned."""
        now, times = time.process_time if self.threads == 1 else time.perf_counter, []
        with threadpool_limits(self.threads):
            for _ in range(repeats):
                start = now()
                result = task()
                times.append(now() - start)
        return min(times), result


def on_gpu() -> Any:
    """A function that moves an array to the GPU in single precision; None where there is none."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    return lambda X: torch.as_tensor(X, dtype=torch.float32, device="cuda")


def single(X: np.ndarray) -> np.ndarray:
    return X.astype(np.float32)


def against_svc(data_home: Path, stopwatch: Stopwatch) -> None:
    """Fit, score and average precision of both, on the same rows and the same columns."""
    try:
        split = load_nsl_kdd(data_home=data_home)
    except FileNotFoundError as missing:
        print(f"This part is skipped. {missing}")
        return
    landmarks = {"n_landmarks": 1500, "random_state": 0}
    rbf, exponential = (
        KernelEqualitySeparator(kernel=k, **landmarks) for k in ("rbf", "exponential")
    )
    contenders: list[tuple[str, Any, Any]] = [
        ("SVC, rbf", SVC(kernel="rbf"), np.asarray),
        ("closed, rbf", rbf, np.asarray),
        ("closed, exponential", exponential, np.asarray),
        ("closed, exp., float32", exponential, single),
    ]
    if on_gpu() is not None:
        contenders.append(("closed, exp., GPU", exponential, on_gpu()))
    columns = {
        "standardised": StandardScaler(),
        "quantile ranks, standardised": make_pipeline(
            QuantileTransformer(n_quantiles=1000, subsample=None, random_state=0), StandardScaler()
        ),
    }
    print(
        "Average precision on KDDTest+ by kind (only DoS was seen); seconds, best of the repeats;"
    )
    print("in brackets, how many times faster than SVC. All with their default parameters;")
    print("closed: KernelEqualitySeparator with 1,500 landmarks. Scaling the columns is not timed.")
    standardised = {"standardised": columns["standardised"]}
    for n, repeats, scalings in [(20_000, 3, columns), (None, 1, standardised)]:
        for name, scaling in scalings.items():
            X, y, test = sample(split, n, scaling)
            print(f"\n{len(X):,} training rows, {X.shape[1]} columns: {name}")
            print(f"{'':24}{'fit':>14}{'score':>14}" + "".join(f"{k:>11}" for k in PRINTED))
            svc = None
            for label, model, move in contenders:
                rows = move(X), y, move(test)
                times, score = measure(model, rows, stopwatch, repeats)
                svc = times if svc is None else svc
                precision = average_precision_by_kind(score, split.kind_test)
                print(line(label, times, svc, precision), flush=True)


def measure(
    model: Any, rows: tuple[Any, Any, Any], stopwatch: Stopwatch, repeats: int
) -> tuple[tuple[float, float], np.ndarray]:
    """Seconds to fit and to score, and the scores."""
    X, y, test = rows
    fit, _ = stopwatch(lambda: model.fit(X, y), repeats=repeats)
    score, scores = stopwatch(lambda: to_host(model.decision_function(test)), repeats=repeats)
    return (fit, score), scores


def line(label: str, times: tuple, svc: tuple, precision: dict[str, float]) -> str:
    """One line of the table: times, how many times faster than SVC, and average precisions."""
    fast = "".join(f"{t:7.2f} ({s / t:4.1f})" for t, s in zip(times, svc, strict=True))
    return f"{label:24}{fast}" + "".join(f"{precision[k]:11.3f}" for k in PRINTED)


def to_host(score: Any) -> np.ndarray:
    return score if isinstance(score, np.ndarray) else score.cpu().numpy()


class PeakMemory:
    """How many MB a process grows inside the with-block, looked at every two milliseconds."""

    def __enter__(self) -> "PeakMemory":
        self._process, self._done = psutil.Process(), threading.Event()
        self._before = self._peak = self._process.memory_info().rss
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.002):
            self._peak = max(self._peak, self._process.memory_info().rss)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()
        self.megabytes = (self._peak - self._before) / 2**20


def growth_at(n: int, stopwatch: Stopwatch) -> tuple[float, float, float]:
    """Seconds to fit and to score n rows of 20 columns, and MB beyond the rows themselves."""
    rng, X = np.random.default_rng(0), np.empty((n, 20))
    rng.standard_normal(out=X)
    y = np.zeros(n, dtype=int)
    y[: n // 10] = 1
    X[: n // 10] *= 2
    model = KernelEqualitySeparator(n_landmarks=500, random_state=0)
    with PeakMemory() as memory:
        fit_time, _ = stopwatch(lambda: model.fit(X, y))
        score_time, _ = stopwatch(lambda: model.decision_function(X))
    return fit_time, score_time, memory.megabytes


def growth(stopwatch: Stopwatch) -> None:
    """Time and memory against n, each n in a process of its own."""
    sizes = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    print("\n20 columns, 500 landmarks; MB: the growth of the process beyond the rows themselves")
    print(f"{'rows':>10}{'fit s':>10}{'score s':>10}{'MB':>10}{'rows MB':>10}")
    measured = []
    for n in sizes:
        with get_context("spawn").Pool(1) as pool:
            measured.append(pool.apply(growth_at, (n, stopwatch)))
        fit_time, score_time, memory = measured[-1]
        print(f"{n:10,}{fit_time:10.2f}{score_time:10.2f}{memory:10.0f}{n * 160 / 2**20:10.0f}")
    for name, values in zip(["fit", "score", "memory"], np.array(measured).T, strict=True):
        slope = np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0]
        print(f"log-log slope of {name}: {slope:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["svc", "growth"], help="both by default")
    parser.add_argument("--threads", type=int, default=1, help="of matrix products (default: 1)")
    options = parser.parse_args()
    part, stopwatch = options.part, Stopwatch(options.threads)
    data_home = Path(os.environ.get("EQSEP_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if part != "growth":
        against_svc(data_home, stopwatch)
    if part != "svc":
        growth(stopwatch)


if __name__ == "__main__":
    main()
