"""What a detector fixes at its first fit, so that all that it learns afterwards adds up."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from eqsep.arrays import beside, clipped, zeros
from eqsep.detector.grouping import Grouping, divided_by_group
from eqsep.detector.holdout import Division, check_grouped, contents, is_held_out, row_hashes
from eqsep.detector.windows import Windows, widened
from eqsep.engine.ellipsoid import Ellipsoid
from eqsep.engine.kernels import Laplacian, SparseLaplacian
from eqsep.engine.loops import compiled
from eqsep.engine.nystroem import DeviceMap, KernelMap
from eqsep.engine.trees import Trees, same_trees
from eqsep.labels import RowLabels
from eqsep.tables.encodings import Number
from eqsep.tables.fitted import (
    FittedEncoder,
    aligned,
    encoded,
    encoded_values,
    output_groups,
    output_weights,
    state_of,
)
from eqsep.tables.reading import Table, read_table, row_parts

AT_ONCE = 4096  # rows held as kernel values


@dataclass(frozen=True, eq=False)
class Packing:
    """Which encoded columns are added up to one, since they say the same twice.

    A column of numbers is encoded by ranks and by deviations. Both rise with the value, so the two
    differences between two rows have one sign and |a| + |b| = |a + b|: one column does for both.

    Attributes
    ----------
    first : ndarray of int
        For each packed column the first of those that it stands for.
    twice, second : ndarray of int
        The packed columns that stand for two, and the second of these.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep.tables import TableEncoder
    >>> encoder = TableEncoder(numeric_encoding="both").fit([[1.0], [2.0], [4.0]])
    >>> Packing.of(encoder)(np.array([[0.25, 3.0]]))
    array([[3.25]])
    """

    first: np.ndarray
    twice: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, encoder: FittedEncoder) -> "Packing":
        """Of the outputs of an encoder that count."""
        group = output_groups(encoder)[output_weights(encoder) > 0]
        starts = np.concatenate([[True], group[1:] != group[:-1]]) if len(group) else group > 0
        second = np.flatnonzero(~starts)
        return cls(np.flatnonzero(starts), np.cumsum(starts)[second] - 1, second)

    def __call__(self, rows: Any) -> Any:
        """Encoded rows as packed ones.  (n, n_columns) -> (n, n_packed)"""
        if isinstance(rows, np.ndarray):
            out = np.empty((len(rows), len(self.first)), rows.dtype)
            _pack(np.ascontiguousarray(rows), self.first, self.twice, self.second, out)
            return out
        packed = rows[:, self.first]
        packed[:, self.twice] += rows[:, self.second]
        return packed


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """A table's rows as kernel values at landmarks, and the rule by which rows calibrate.

    Attributes
    ----------
    encoder : TableEncoder or FittedEncoder
    landmarks : ndarray of float32 of shape (n_landmarks, n_columns)
        Encoded rows.
    is_normal : ndarray of bool of shape (n_landmarks,)
    kernel : Laplacian
    holdout_columns : ndarray of int
        The table's columns whose values decide whether a row is held out: all but ids.
    holdout_key, holdout_bound : int
        A normal row calibrates where the hash of its values under the key is below the bound.
    anomaly_bound : int
        The bound of labelled anomalies of `held_kinds`, which tell how high anomalies score, or 0.
    held_kinds : tuple of str
    doubted : bool
        Whether rows that stand for normal ones may be anomalies.
    likeness_weight : float
        What being like the labelled anomalies counts in the score.
    ellipsoid : Ellipsoid or None
        How the columns of numbers move together in normal rows.
    trees : Trees or None
        Over packed rows, of which every second tree sees the axes of the ellipsoid too; None where
        no anomaly was labelled at the first fit.
    vote_weight : float
        What their vote counts in the score.
    grouping : Grouping or None
        How rows that belong together are held out; `holdout_bound` is then that of groups.
    windows : Windows or None
        Columns over the last rows of a run that are added to a table before it is encoded.
    kind_bounds : dict of str to int, or None
        Of kinds with many rows, the bound of those by which alarms are named; None in older files.
    """

    encoder: FittedEncoder
    landmarks: np.ndarray
    is_normal: np.ndarray
    kernel: Laplacian
    holdout_columns: np.ndarray
    holdout_key: int
    holdout_bound: int
    anomaly_bound: int = 0
    held_kinds: tuple[str, ...] = ()
    doubted: bool = False
    likeness_weight: float = 0.0
    ellipsoid: Ellipsoid | None = None
    trees: Trees | None = None
    vote_weight: float = 0.0
    grouping: Grouping | None = None
    windows: Windows | None = None
    kind_bounds: dict[str, int] | None = None

    @cached_property
    def kernel_map(self) -> KernelMap:
        """Encoded rows as kernel values, in NumPy."""
        kernel = SparseLaplacian(self.kernel.gamma, self.kernel.powers)
        landmarks = self.packing(self.landmarks)
        return KernelMap(kernel, landmarks, AT_ONCE, self.packing)

    def on(self, device: str) -> KernelMap | DeviceMap:
        """The same, computed on a device: "cpu", "cuda", or "auto" for a GPU where there is one."""
        if device == "cpu":
            return self.kernel_map
        if device not in self._elsewhere:
            from eqsep.detector.on_device import device_map  # knows torch

            self._elsewhere[device] = device_map(self, device)
        return self._elsewhere[device]

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made from the rest, and may be on a device that is not everywhere."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _elsewhere(self) -> dict[str, DeviceMap]:
        return {}

    @property
    def _agreed(self) -> tuple[Any, ...]:
        held_out = (self.holdout_key, self.holdout_bound, self.anomaly_bound, self.held_kinds)
        told = (self.doubted, self.grouping, self.windows, self.kind_bounds)
        return *held_out, *told, self.likeness_weight, self.vote_weight

    @cached_property
    def packing(self) -> Packing:
        """Which encoded columns count as one."""
        return Packing.of(self.encoder)

    @property
    def source(self) -> np.ndarray:
        """The table's column from which each encoded one comes."""
        return self.encoder.source_[output_weights(self.encoder) > 0]

    @property
    def table_columns(self) -> dict[str, Any]:
        """What was learnt of each column of a table as it comes, without windows, by its name."""
        encoder, n = self.encoder, self.encoder.n_features_in_
        names = getattr(encoder, "feature_names_in_", [f"x{i}" for i in range(n)])
        learnt = dict(zip(names, encoder.columns_, strict=True))
        return learnt if self.windows is None else {n: learnt[n] for n in self.windows.columns}

    def rows(self, X: Any) -> np.ndarray:
        """The encoded rows of a table.  (n, d) -> (n, n_columns)"""
        if self.windows is None and (plain := encoded_values(self.encoder, X)) is not None:
            return plain
        return encoded(self.encoder, self._values(read_table(X, name="Detector")))

    def encoded(self, X: Any, *, device: str = "cpu") -> Iterable[Any]:
        """The encoded rows of a table, some at a time; other than the "cpu", tensors there."""
        if device == "cpu":
            return map(self.rows, row_parts(X))
        from eqsep.detector.on_device import encoded_parts

        return encoded_parts(self, X, device)

    def aligned(self, table: Table) -> Table:
        """A table with the columns of the fit; those of groups and times are left out."""
        return aligned(self.encoder, self._values(table))

    def _values(self, table: Table) -> Table:
        if self.windows is not None:
            table = widened(self.windows, table, self.grouping)
        beside = () if self.grouping is None else self.grouping.columns
        columns = [column for column in table.columns if column.name not in beside]
        return table if len(columns) == len(table.columns) else replace(table, columns=columns)

    def along(self, rows: Any) -> Any:
        """Encoded rows along the axes of the ellipsoid.  (n, n_columns) -> (n, n_axes)"""
        if self.ellipsoid is None:
            return zeros(rows)[:, None][:, :0]
        return self.ellipsoid.along(rows, self._deviations)

    def excess(self, y: Any) -> Any:
        """What rows along the axes score for columns that do not move as in normal rows."""
        return zeros(y) if self.ellipsoid is None else self.ellipsoid.excess(y)

    def votes(self, rows: Any, y: Any, of_leaf: np.ndarray) -> Any:
        """How anomalous encoded rows, and the same along the axes, are by the vote of the trees.

        From 0 to 1.
        """
        return zeros(rows) if self.trees is None else self.trees.mean(self.seen(rows, y), of_leaf)

    def seen(self, rows: Any, y: Any) -> Any:
        """What trees see of encoded rows: packed, and along the axes.  -> (n, n_packed + n_axes)"""
        packed = self.packing(rows)
        return beside(packed, y) if self.sees_axes else packed

    @cached_property
    def sees_axes(self) -> bool:
        """Whether a tree looks at an axis: in older files none does."""
        return self.trees is not None and self.trees.n_columns > len(self.packing.first)

    def with_votes(self, away: Any, votes: Any) -> Any:
        """|1 - f|, or where rows are trusted the vote if it is more, and the vote by its weight."""
        least = away if self.doubted else clipped(away, votes)
        return least + self.vote_weight * votes

    @cached_property
    def _deviations(self) -> np.ndarray:
        return deviations(self.encoder)

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Encoded rows as the outputs of the encoder; those that count nothing are 0."""
        weight = output_weights(self.encoder)
        out = np.zeros((len(rows), len(weight)))
        out[:, weight > 0] = rows / weight[weight > 0]
        return out

    def calibrates(self, table: Table) -> np.ndarray:
        """Which rows of an aligned table are held out if they are normal."""
        return self.hashes(table) < np.uint64(self.holdout_bound)

    def hashes(self, table: Table) -> np.ndarray:
        """What the bound is held against: 64 bits for each row of an aligned table."""
        learnt = [self.encoder.columns_[j] for j in self.holdout_columns]
        kinds = ["text" if column is None else column.reads for column in learnt]
        return row_hashes(contents(table, self.holdout_columns, kinds), key=self.holdout_key)

    def divided(self, table: Table, labels: RowLabels) -> Division:
        """Which rows of an aligned table are learnt, which calibrate, and their hashes.

        The hash is what the bound is held against: that of the row, or of its group.
        """
        grouping, groups = self.grouping, table.groups
        check_grouped(grouping, groups)
        if grouping is None or groups is None:
            hashes = self.hashes(table)
            bounds = (self.holdout_bound, self.anomaly_bound, self.held_kinds)
            held = is_held_out(hashes, labels, bounds)
            return ~held, held, hashes
        learnt, kept, units = divided_by_group(
            grouping, groups, labels, key=self.holdout_key, bound=self.holdout_bound
        )
        if grouping.is_thinned:
            kept &= self.hashes(table) < np.uint64(grouping.row_bound)
        return learnt, kept, units

    def is_same(self, other: "FeatureMap") -> bool:
        """Whether two maps take every row to the same values."""
        return self is other or (
            self._agreed == other._agreed
            and self.kernel == other.kernel
            and np.array_equal(self.landmarks, other.landmarks)
            and same_trees(self.trees, other.trees)
            and state_of(self.encoder) == state_of(other.encoder)
        )


@compiled
def _pack(rows: Any, first: Any, twice: Any, second: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        for j in range(first.shape[0]):
            out[i, j] = rows[i, first[j]]
        for j in range(twice.shape[0]):
            out[i, twice[j]] += rows[i, second[j]]


def deviations(encoder: FittedEncoder) -> np.ndarray:
    """The places of the outputs that count and are deviations of a number from its centre."""
    place = np.cumsum(output_weights(encoder) > 0) - 1
    found = []
    for j, column in enumerate(encoder.columns_):
        if isinstance(column, Number) and "standard" in column.forms:
            first = np.searchsorted(encoder.source_, j) + column.forms.index("standard")
            found.append(int(place[first]))
    return np.array(found, dtype=int)


def name_columns(detector: Any) -> None:
    """Record the columns of a table as scikit-learn's estimators do."""
    feature_map = detector.feature_map_
    encoder, windows, columns = feature_map.encoder, feature_map.windows, feature_map.table_columns
    detector.n_features_in_ = len(columns)
    vars(detector).pop("feature_names_in_", None)
    if hasattr(encoder, "feature_names_in_") if windows is None else windows.named:
        detector.feature_names_in_ = np.array(list(columns), dtype=object)
