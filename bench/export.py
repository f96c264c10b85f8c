"""How fast an exported detector is, and how closely it follows the library.

    python bench/export.py             made-up card payments, a minute on two cores
    python bench/export.py nsl-kdd     NSL-KDD, some minutes
    python bench/export.py --threads 2

Times are those of the clock, the shortest of several; NSL-KDD is looked for in $EQSEP_DATA, then in
../shared/data. Needs the extras `onnx` and `bench`.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime

from eqsep import Detector
from eqsep.datasets import load_nsl_kdd, make_mixed_demo

N_ROWS = 10_000


def payments() -> tuple[Any, Any, Any]:
    """Rows to learn, their kinds, and new rows."""
    seen, new = (
        make_mixed_demo(n_samples=N_ROWS, as_frame=True, random_state=seed) for seed in (0, 1)
    )
    return seen.X, seen.kind, new.X


def nsl_kdd() -> tuple[Any, Any, Any]:
    home = os.environ.get("EQSEP_DATA", Path(__file__).parents[2] / "shared" / "data")
    split = load_nsl_kdd(data_home=home, as_frame=True)
    return split.X_train, split.kind_train, split.X_test[:N_ROWS]


TABLES = {"payments": payments, "nsl-kdd": nsl_kdd}


def timed(task: Callable[[], Any], *, repeats: int = 3) -> float:
    """The shortest time that a task took, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def feed(session: Any, frame: Any) -> dict[str, np.ndarray]:
    """A frame as the graph's inputs."""
    inputs = {}
    for declared in session.get_inputs():
        column = frame[declared.name]
        if declared.type == "tensor(string)":
            values = column.astype(object).where(column.notna(), "").to_numpy(dtype=object)
        elif column.dtype.kind == "M":
            seconds = column.to_numpy("M8[us]").astype(np.int64) / 1e6
            values = np.where(column.isna(), np.nan, seconds)
        else:
            values = column.to_numpy(dtype=float, na_value=np.nan)
        inputs[declared.name] = values
    return inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", nargs="?", choices=list(TABLES), default="payments")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(asked.threads)
    X, kind, rows = TABLES[asked.table]()
    detector = Detector(random_state=0).fit(X, kind)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = asked.threads
    with TemporaryDirectory() as folder:
        path = Path(folder) / "detector.onnx"
        written = timed(lambda: detector.to_onnx(path), repeats=1)
        size = path.stat().st_size
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = feed(session, rows)
    score, label = session.run(["score", "label"], inputs)
    one = {name: values[:1] for name, values in inputs.items()}
    m, d = detector.plan_.kernel.landmarks.shape
    print(f"{asked.table}: {m:,} landmarks of {d} columns, {len(rows):,} rows")
    print(f"file                      {size / 2**20:8.2f} MiB, written in {written:.2f} s")
    print(f"largest difference        {np.abs(score - detector.score_samples(rows)).max():8.1e}")
    print(f"other decisions           {(label != (detector.decision_function(rows) > 0)).sum():8d}")
    for name, task in {
        "library": lambda: detector.decision_function(rows),
        "onnxruntime": lambda: session.run(["decision"], inputs),
    }.items():
        print(f"{name + ', all rows':26}{timed(task) / len(rows) * 1e6:8.1f} µs a row")
    for name, task in {
        "library": lambda: detector.decision_function(rows[:1]),
        "onnxruntime": lambda: session.run(["decision"], one),
    }.items():
        print(f"{name + ', one row':26}{timed(task, repeats=20) * 1e6:8.1f} µs")


if __name__ == "__main__":
    main()
