"""Manhattan distances by compiled loops, each row for itself to the last bit."""

from typing import Any

import numpy as np

from eqsep.arrays import is_foreign, namespace
from eqsep.engine.compiled import ROWS, compiled

COLUMNS = 4  # that are summed in one go
COMMON = 0.5  # the share of landmarks with one number from which on a column is mostly that number


def manhattan(X: Any, C: Any, *, unit: float = 1.0) -> Any:
    """Σ_j |x_j - c_j| / unit for each row and each landmark, in the precision of both.

    In NumPy, each number depends on its row and its landmark alone, to the last bit. Nowhere is
    there a temporary of n m d numbers.  (n, d), (m, d) -> (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> manhattan(np.array([[0.0, 3.0]]), np.array([[1.0, 1.0], [0.0, 3.0]]))
    array([[3., 0.]])
    """
    if unit > 1:  # the sum might be too large: divide first; a small unit divides what is small
        return manhattan(X / unit, C / unit)
    if not is_foreign(X):
        dense = _Dense(C.astype(X.dtype, copy=False), np.arange(C.shape[1]))
        with np.errstate(over="ignore"):
            return dense(X) / X.dtype.type(unit)
    xp = namespace(X, C)
    s = xp.abs(X[:, :1] - C[:, :1].T)
    for j in range(1, X.shape[1]):
        s = s + xp.abs(X[:, j : j + 1] - C[:, j : j + 1].T)
    return s / unit


class _Dense:
    """X -> a total + Σ_j |x_j - c_j| over some columns."""

    def __init__(self, C: np.ndarray, columns: np.ndarray, total: np.ndarray | None = None) -> None:
        n = len(columns)
        self._columns = columns
        self._landmarks = np.zeros((n + -n % COLUMNS, len(C)), dtype=C.dtype)  # side by side
        self._landmarks[:n] = C.T[columns]
        self._total = np.zeros(len(C), dtype=C.dtype) if total is None else total

    def __call__(self, X: np.ndarray) -> np.ndarray:
        X = np.ascontiguousarray(X)
        out = np.empty((len(X), len(self._total)), dtype=X.dtype)
        some = np.zeros((ROWS, len(self._landmarks)), dtype=X.dtype)  # the last columns stay 0
        compiled(_add_dense)(X, self._columns, self._landmarks, self._total, some, out)
        return out


class SparseManhattan:
    """X -> Σ_j |x_j - c_j|, for columns of which most hold one number nearly everywhere.

    With a_j the most common number of a column among the landmarks, Σ_j |a_j - c_j| is there once
    for all rows, and a row is compared where it has another number: |x_j - c_j| - |a_j - c_j|,
    which for the second most common number is there, too. This rounds as the largest of the
    differences does, so it is for columns of one size, like those of an encoded table. As in
    `manhattan`, a row is on its own to the last bit.  (n, d) -> (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> distance = SparseManhattan(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [5.0, 4.0]]))
    >>> distance(np.array([[0.0, 1.0], [5.0, 1.0]]))
    array([[0., 1., 2., 8.],
           [5., 6., 7., 3.]])
    """

    def __init__(self, C: np.ndarray) -> None:
        common, second, share = _most_common(C)
        sparse = np.flatnonzero(share >= COMMON)
        columns = np.ascontiguousarray(C[:, sparse].T)
        common, second = common[sparse], second[sparse]
        usual = np.abs(columns - common[:, None])
        differences = np.abs(second[:, None] - columns) - usual
        self._sparse = sparse, common, second, columns, usual, differences
        total = usual.sum(axis=0, dtype=float).astype(C.dtype)
        self._dense = _Dense(C, np.flatnonzero(share < COMMON), total)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        X = np.ascontiguousarray(X)
        out = self._dense(X)
        compiled(_add_sparse)(X, self._sparse, out)
        return out


def _most_common(C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each column's most common number, the second most common, and the share of the first."""
    ordered, n = np.sort(C, axis=0), len(C)
    starts = np.ones(C.shape, dtype=bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(n)[:, None], 0), axis=0)
    length = np.arange(1, n + 1)[:, None] - first  # of each run up to here
    longest, columns = length.argmax(axis=0), np.arange(C.shape[1])
    number, share = ordered[longest, columns], length[longest, columns] / n
    second = np.where(ordered == number, 0, length).argmax(axis=0)
    return number, ordered[second, columns], share


def _add_dense(
    X: Any, columns: Any, C: Any, total: Any, some: Any, out: Any
) -> None:  # pragma: no cover  compiled
    # One row at a time and landmarks side by side: sums are taken in one order for all of them.
    n, m = out.shape
    for first in range(0, n, ROWS):
        last = min(first + ROWS, n)
        for i in range(first, last):
            row, x = out[i], some[i - first]
            for j in range(m):
                row[j] = total[j]
            for k in range(columns.shape[0]):
                x[k] = X[i, columns[k]]
        for k in range(0, C.shape[0], COLUMNS):
            a, b, c, d = C[k], C[k + 1], C[k + 2], C[k + 3]
            for i in range(first, last):
                row, x = out[i], some[i - first]
                xa, xb, xc, xd = x[k], x[k + 1], x[k + 2], x[k + 3]
                for j in range(m):
                    row[j] += (abs(xa - a[j]) + abs(xb - b[j])) + (abs(xc - c[j]) + abs(xd - d[j]))


def _add_sparse(X: Any, sparse: Any, out: Any) -> None:  # pragma: no cover  compiled
    places, common, second, C, usual, differences = sparse
    for i in range(X.shape[0]):
        row = out[i]
        for k in range(places.shape[0]):
            x = X[i, places[k]]
            if x == common[k]:
                continue
            if x == second[k]:
                difference = differences[k]
                for j in range(row.shape[0]):
                    row[j] += difference[j]
            else:
                c, u = C[k], usual[k]
                for j in range(row.shape[0]):
                    row[j] += abs(x - c[j]) - u[j]
        for j in range(row.shape[0]):
            if row[j] < 0:  # by rounding
                row[j] = 0
