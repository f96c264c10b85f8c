"""Distances between encoded rows, without the work that says the same twice.

A column of numbers is encoded twice, by ranks and by deviations. Both rise with the value, so the
two differences between two rows have one sign and |a| + |b| = |a + b|: one column does for both.
And most names, and many numbers, are the same nearly everywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.engine.compiled import SparseManhattan
from eqsep.engine.kernels import Laplacian
from eqsep.tables import TableEncoder


@dataclass(frozen=True, eq=False)
class Packing:
    """Which encoded columns are added up to one.

    Attributes
    ----------
    first : ndarray of int
        For each packed column the first of those that it stands for.
    twice, second : ndarray of int
        The packed columns that stand for two, and the second of these.

    Examples
    --------
    >>> import numpy as np
    >>> encoder = TableEncoder(columns="both").fit([[1.0], [2.0], [4.0]])
    >>> Packing.of(encoder)(np.array([[0.25, 3.0]]))
    array([[3.25]])
    """

    first: np.ndarray
    twice: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, encoder: TableEncoder) -> "Packing":
        """Of the outputs of an encoder that count."""
        group = encoder.groups_[encoder.weights_ > 0]
        starts = np.concatenate([[True], group[1:] != group[:-1]]) if len(group) else group > 0
        second = np.flatnonzero(~starts)
        return cls(np.flatnonzero(starts), np.cumsum(starts)[second] - 1, second)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Encoded rows as packed ones.  (n, n_columns) -> (n, n_packed)"""
        packed = rows[:, self.first]
        packed[:, self.twice] += rows[:, self.second]
        return packed


class PackedDistance:
    """X -> Σ_j |x_j - c_j| from encoded rows to encoded landmarks.  (n, n_columns) -> (n, m)"""

    def __init__(self, landmarks: np.ndarray, packing: Packing) -> None:
        self._packing, self._distance = packing, SparseManhattan(packing(landmarks))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return self._distance(self._packing(X))


@dataclass
class PackedLaplacian(Laplacian):
    """The Laplacian kernel at the landmarks to which `distance` leads."""

    distance: PackedDistance | None = None

    def dissimilarity_to(self, C: Any, *, unit: float = 1.0) -> Callable[[Any], Any]:  # noqa: ARG002
        assert self.distance is not None  # a default only because gamma has one
        return self.distance
