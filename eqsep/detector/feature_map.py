"""What a detector fixes at its first fit, so that all that it learns afterwards adds up."""

import zlib
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from eqsep.detector.answers import Answers
from eqsep.detector.calibration import held_out
from eqsep.detector.width import Rows, choose_width
from eqsep.engine.compiled import in_threads
from eqsep.engine.kernels import Laplacian, SparseLaplacian
from eqsep.engine.landmarks import choose_landmarks, row_keys
from eqsep.engine.packing import Packing
from eqsep.engine.statistics import KernelMap
from eqsep.engine.tensors import DeviceMap
from eqsep.tables import TableEncoder
from eqsep.tables.category import Category
from eqsep.tables.column import Column
from eqsep.tables.reading import Table, read_table

AT_ONCE = 4096  # rows held as kernel values
NUMERIC = ("number", "date", "duration")


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """A table's rows as kernel values at landmarks, and the rule by which rows calibrate.

    Attributes
    ----------
    encoder : TableEncoder
    landmarks : ndarray of float32 of shape (n_landmarks, n_columns)
        Encoded rows.
    is_normal : ndarray of bool of shape (n_landmarks,)
    kernel : Laplacian
    hashed : ndarray of int
        The table's columns whose values decide whether a row calibrates: all but ids.
    key, cut : int
        A normal row calibrates where the hash of its values under `key` is below `cut`: it never
        depends on other rows than equal ones, so that pieces of the data give what the whole gives.
    """

    encoder: TableEncoder
    landmarks: np.ndarray
    is_normal: np.ndarray
    kernel: Laplacian
    hashed: np.ndarray
    key: int
    cut: int

    @cached_property
    def kernel_map(self) -> KernelMap:
        """Encoded rows as kernel values, in NumPy."""
        kernel, landmarks = SparseLaplacian(self.kernel.gamma), self.packing(self.landmarks)
        return KernelMap(kernel, landmarks, AT_ONCE, self.packing)

    def on(self, device: str) -> KernelMap | DeviceMap:
        """The same, computed on a device: "cpu", "cuda", or "auto" for a GPU where there is one."""
        if device == "cpu":
            return self.kernel_map
        if device not in self._elsewhere:
            there = DeviceMap.of(self.kernel, self.landmarks, self.packing, device)
            self._elsewhere[device] = there
        return self._elsewhere[device]

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made from the rest, and may be on a device that is not everywhere."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _elsewhere(self) -> dict[str, DeviceMap]:
        return {}

    @cached_property
    def packing(self) -> Packing:
        """Which encoded columns count as one."""
        return Packing.of(self.encoder)

    @property
    def source(self) -> np.ndarray:
        """The table's column from which each encoded one comes."""
        return self.encoder.source_[self.encoder.weights_ > 0]

    def rows(self, X: Any) -> np.ndarray:
        """The encoded rows of a table.  (n, d) -> (n, n_columns)"""
        return encoded(self.encoder, read_table(X, name="Detector"))

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Encoded rows as the outputs of the encoder; those that count nothing are 0."""
        weight = self.encoder.weights_
        out = np.zeros((len(rows), len(weight)))
        out[:, weight > 0] = rows / weight[weight > 0]
        return out

    def calibrates(self, table: Table) -> np.ndarray:
        """Which rows of an aligned table calibrate if they are normal."""
        return self.hashes(table) < np.uint64(self.cut)

    def hashes(self, table: Table) -> np.ndarray:
        """What is held against `cut`: a number of 64 bits for each row of an aligned table."""
        learnt = [self.encoder.columns_[j] for j in self.hashed]
        kinds = ["text" if column is None else column.reads for column in learnt]
        return row_hashes(contents(table, self.hashed, kinds), key=self.key)

    def is_same(self, other: "FeatureMap") -> bool:
        """Whether two maps take every row to the same values."""
        return self is other or (
            (self.key, self.cut, self.kernel) == (other.key, other.cut, other.kernel)
            and np.array_equal(self.landmarks, other.landmarks)
            and self.encoder.state() == other.encoder.state()
        )


def encoded(encoder: TableEncoder, X: Any) -> np.ndarray:
    """A table as weighted outputs in single precision, without those that count nothing."""
    table, weight = encoder.align(X), encoder.weights_
    place = np.cumsum(weight > 0) - 1
    learnt = [(j, column) for j, column in enumerate(encoder.columns_) if column is not None]
    # Row by row, so that sums are taken in one order.
    out = np.zeros((table.n_rows, int((weight > 0).sum())), dtype=np.float32)

    def encode(columns: slice) -> None:
        for j, column in learnt[columns]:
            there = np.flatnonzero(encoder.source_ == j)
            counts = weight[there] > 0
            if isinstance(column, Category):  # one output of many: the others are 0 already
                output, height = column.places(table.columns[j])
                output = there[output]
                out[np.arange(len(out)), place[output]] = height * weight[output]
            else:
                block = column.encode(table.columns[j])
                out[:, place[there[counts]]] = block[:, counts] * weight[there[counts]]

    in_threads(encode, len(learnt), steps=out.size)
    return out


@dataclass(frozen=True)
class Plan:
    """How a feature map is made."""

    n_landmarks: int
    alpha: float
    width: float | None
    rng: np.random.RandomState


def make_feature_map(table: Table, answers: Answers, plan: Plan) -> tuple[FeatureMap, np.ndarray]:
    """The feature map of a table's first rows, and these rows encoded.

    Rows that calibrate have no part in it.
    """
    ids = TableEncoder(columns="both").reasons_to_drop(table)
    hashed = np.array([j for j, c in enumerate(table.columns) if c.name not in ids], dtype=int)
    kinds = ["text" if c.is_empty else c.kind for c in (table.columns[j] for j in hashed)]
    values = contents(table, hashed, kinds)
    key = int(plan.rng.randint(2**31 - 1)) ^ zlib.crc32(values.tobytes())
    hashes = row_hashes(values, key=key)
    normal = np.flatnonzero(answers.code == 0)
    cut = np.sort(hashes[normal])[held_out(len(normal))] if len(normal) > 1 else np.uint64(0)
    trains = (answers.code != 0) | (hashes >= cut)
    encoder = TableEncoder(columns="both").fit(table.take(np.flatnonzero(trains)))
    Z = encoded(encoder, table)
    is_anomaly = answers.is_anomaly[trains]
    learnt, packing = Z[trains], Packing.of(encoder)
    landmarks = choose_landmarks(learnt, is_anomaly, n=plan.n_landmarks, rng=plan.rng)
    source = encoder.source_[encoder.weights_ > 0][packing.first]
    rows = Rows(learnt, is_anomaly, packing, source)
    width = plan.width or choose_width(rows, alpha=plan.alpha, rng=plan.rng)
    kernel = Laplacian(gamma=width * float(Laplacian().resolved(landmarks).gamma))
    is_normal = ~_among(landmarks, learnt[is_anomaly == 1])
    feature_map = FeatureMap(encoder, landmarks, is_normal, kernel, hashed, key, int(cut))
    return feature_map, Z


def _among(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of the rows occur among the others."""
    found = set(map(bytes, np.ascontiguousarray(others)))
    return np.array([bytes(row) in found for row in np.ascontiguousarray(rows)], dtype=bool)


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
    return np.array(sums, dtype=float)[rows]


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
