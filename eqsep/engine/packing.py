"""Encoded columns that say the same twice, as one.

A column of numbers is encoded twice, by ranks and by deviations. Both rise with the value, so the
two differences between two rows have one sign and |a| + |b| = |a + b|: one column does for both.
"""

from dataclasses import dataclass

import numpy as np

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
