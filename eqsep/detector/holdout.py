"""Which rows are held out of a fit, to calibrate: by a hash of their values.

Whether a row is held out never depends on other rows than equal ones, so that pieces of the data
hold out what the whole does.
"""

import zlib

import numpy as np

from eqsep.detector.contamination import COMMON, held_out_anomalies
from eqsep.detector.scoring import held_out
from eqsep.engine.nystroem import row_keys
from eqsep.labels import UNLABELLED, RowLabels
from eqsep.tables.column import Column
from eqsep.tables.reading import Table

NUMERIC = ("number", "date", "duration")
Bounds = tuple[int, int, tuple[str, ...]]  # of normal rows, of anomalies, and their kinds


def holdout_bounds(hashes: np.ndarray, labels: RowLabels, *, doubted: bool) -> Bounds:
    """The bound of normal rows, that of labelled anomalies, and the kinds it is for.

    Anomalies are held out of common kinds alone: of the others each row is needed to learn. None is
    where doubted rows have no part in the calibration, and are without a label still.
    """
    doubted = doubted and not (labels.code == UNLABELLED).any()
    times = np.bincount(labels.code[labels.code > 0], minlength=1 + len(labels.kinds))
    common = [code for code in np.flatnonzero(times >= COMMON).tolist() if doubted]
    anomalous = np.sort(hashes[np.isin(labels.code, common)])
    n_anomalous = held_out_anomalies(len(anomalous))
    normal = np.sort(hashes[labels.code == 0])
    n_normal = held_out(len(normal), doubted=n_anomalous > 0)
    bound = int(normal[n_normal]) if len(normal) > 1 else 0
    if not n_anomalous:
        return bound, 0, ()
    return bound, int(anomalous[n_anomalous]), tuple(labels.kinds[code - 1] for code in common)


def is_held_out(hashes: np.ndarray, labels: RowLabels, bounds: Bounds) -> np.ndarray:
    """Which rows with these hashes and labels are held out."""
    bound, anomaly_bound, kinds = bounds
    of_kinds = [anomaly_bound if kind in kinds else 0 for kind in labels.kinds]
    by_code = np.array([bound, *of_kinds, 0], dtype=np.uint64)  # the last for rows without a label
    held: np.ndarray = hashes < by_code[labels.code]
    return held


def contents(table: Table, columns: np.ndarray, kinds: list[str]) -> np.ndarray:
    """Some columns' values as numbers, equal where they are equal; names by a checksum.

    Each column is read as one of its kind in `kinds`, whatever its type is in this table.
    """
    out = np.empty((table.n_rows, len(columns)))
    for j, (column, kind) in enumerate(
        zip((table.columns[i] for i in columns), kinds, strict=True)
    ):
        values = column.numbers(kind) if kind in NUMERIC else _checksums(column, kind)
        out[:, j] = values if len(values) else np.nan  # an id need not be there any more
    return np.where(np.isnan(out), np.nan, out)  # one NaN for all: hashes look at the bits


def _checksums(column: Column, kind: str) -> np.ndarray:
    names, rows = column.names(truths=kind == "boolean")
    sums = [np.nan if name is None else zlib.crc32(name.encode()) for name in names]
    of_rows: np.ndarray = np.array(sums, dtype=float)[rows]
    return of_rows


def row_hashes(values: np.ndarray, *, key: int) -> np.ndarray:
    """A 64-bit hash of each row's values and of how many equal rows come before it."""
    keys = row_keys(values, rng=np.random.RandomState(key % 2**32))
    order = np.argsort(keys, kind="stable")
    starts = np.concatenate([[True], keys[order][1:] != keys[order][:-1]])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(keys)), 0))
    repeat = np.empty(len(keys))
    repeat[order] = np.arange(len(keys)) - first
    again = repeat > 0
    if again.any():
        halves = [keys[again] >> np.uint64(32), keys[again] & np.uint64(2**32 - 1), repeat[again]]
        keys[again] = row_keys(
            np.column_stack([half.astype(float) for half in halves]),
            rng=np.random.RandomState(key % 2**32),
        )
    return keys
