"""NSL-KDD's table to alarms on a GPU, from Parquet in memory, and the reading of it alone.

    python bench/gpu_table.py                       4 million rows
    python bench/gpu_table.py --rows 1000000000     up to a billion, in pieces of 4 million

Rows are drawn from all of NSL-KDD with replacement and written as Parquet into memory. Printed are
rows a second of pyarrow's reading, of `Detector.predict` on the table that is read, and of both one
after the other; what the parts of the detector's work cost; how far scores are from those of the
processor; what a row costs, reading included, in runs of 10^5, 10^6, … rows; and the most memory.
More rows than a piece holds are the same piece, read and scored again and again.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import torch
from tasks import DATA_HOME

from eqsep import Detector
from eqsep.datasets import load_nsl_kdd
from eqsep.detector.terms.term import EncodedRows
from eqsep.tables.tensors import READ_AT_ONCE, TensorEncoding

PIECE = 4_000_000
COMPARED = 100_000
REPEATS = 3


def fastest(work: Callable[[], Any]) -> float:
    """Seconds of the fastest of some runs, after one that does not count."""
    taken = []
    for _ in range(1 + REPEATS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begin)
    return min(taken[1:])


def written(frame: pd.DataFrame, n: int) -> pa.Buffer:
    """Some rows as a file of Parquet in memory."""
    rows = frame.iloc[np.random.default_rng(0).integers(len(frame), size=n)]
    out = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pandas(rows, preserve_index=False), out, row_group_size=2**18)
    return out.getvalue()


def read(buffer: pa.Buffer) -> pa.Table:
    return parquet.read_table(pa.BufferReader(buffer))


def count_alarms(detector: Detector, buffer: pa.Buffer, n_rows: int) -> int:
    """Of so many rows: the file again and again, read and scored each time."""
    alarms = 0
    for done in range(0, n_rows, PIECE):
        alarms += int(detector.predict(read(buffer)[: n_rows - done]).sum())
    return alarms


def tell_parts(detector: Detector, table: pa.Table) -> None:
    """What the parts of the work on some rows cost, one after the other."""
    some, n = table[:READ_AT_ONCE], READ_AT_ONCE
    plan, score = detector.plan_, detector.model_.score
    backend, functions = score.backend, score.functions
    kernel_map = plan.kernel.map_on(backend)
    encoding = TensorEncoding.of(plan.encoder, detector.device)
    aligned = plan.align(some)
    gathered = encoding.gathered(aligned)
    rows = encoding(gathered)
    parts = {
        "reading into columns": lambda: plan.align(some),
        "gathering them": lambda: encoding.gathered(aligned),
        "sending and encoding": lambda: encoding(gathered),
        "packing": lambda: plan.encoder.pack(rows),
        "kernel function": lambda: kernel_map.evaluate(rows, score.kernel.landmark_coef),
        **{  # trees look along the axes of the ellipsoid too
            f"term {name}": lambda own=own: own(EncodedRows(rows, plan.encoder.pack, backend), None)
            for name, own in functions.items()
            if own.landmark_coef is None
        },
        "score of encoded rows": lambda: score(rows),
    }
    for name, work in parts.items():
        taken = fastest(work)
        print(f"  {name}: {taken / n * 1e9:.1f} ns a row, {n / taken / 1e6:.1f} million rows/s")


def tell_agreement(detector: Detector, table: pa.Table) -> None:
    """How far scores and alarms are from those of the processor with the same coefficients."""
    some = table[:COMPARED]
    there, alarms = detector.score_samples(some), detector.predict(some)
    here = detector.set_params(device="cpu").score_samples(some)
    differ = int((alarms != detector.predict(some)).sum())
    detector.set_params(device="cuda")
    apart = np.abs(there - here)
    print(
        f"From the processor's, {COMPARED:,} scores differ by {apart.max():.1e} at most, "
        f"{np.sqrt(np.mean(apart**2)):.1e} usually; {differ} alarms differ of {alarms.sum():,}"
    )


def tell_sizes(detector: Detector, frame: pd.DataFrame, n_rows: int) -> None:
    """What a row costs in runs of ever more rows, reading included."""
    n = 10**5
    while n <= n_rows:
        buffer = written(frame, min(n, PIECE))
        if n <= PIECE:
            count_alarms(detector, buffer, n)  # memory is asked for at the first time
        begin = time.perf_counter()
        alarms = count_alarms(detector, buffer, n)
        taken = time.perf_counter() - begin
        print(
            f"{n:13,} rows: {taken:8.2f} s, {taken / n * 1e9:6.1f} ns a row, "
            f"{n / taken / 1e6:.2f} million rows/s, {alarms:,} alarms",
            flush=True,
        )
        n *= 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=PIECE)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("torch sees no GPU here.")
    if DATA_HOME is None or not (DATA_HOME / "nsl-kdd").is_dir():
        parser.error("NSL-KDD is not there: set EQSEP_DATA to the folder that holds nsl-kdd/.")
    split = load_nsl_kdd(data_home=DATA_HOME, protocol="paper", as_frame=True)
    detector = Detector(device="cuda", random_state=0).fit(split.X_train, split.y_train)
    frame = pd.concat([split.X_train, split.X_test])
    buffer = written(frame, PIECE)
    table = read(buffer)
    print(
        f"{torch.cuda.get_device_name()}, {len(table):,} rows of {table.num_columns} columns, "
        f"{buffer.size / 1e6:,.0f} MB of Parquet, {len(detector.coef_):,} landmarks"
    )
    ways = {
        "reading alone": lambda: read(buffer),
        "alarms of the table": lambda: detector.predict(table),
        "reading, then alarms": lambda: detector.predict(read(buffer)),
    }
    for name, work in ways.items():
        print(f"{name}: {PIECE / fastest(work) / 1e6:.2f} million rows/s", flush=True)
    tell_parts(detector, table)
    tell_agreement(detector, table)
    tell_sizes(detector, frame, args.rows)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    there = torch.cuda.max_memory_allocated() / 1e9
    print(f"At most {most:.1f} GB of main memory, {there:.1f} GB on the card")


if __name__ == "__main__":
    main()
