"""Manhattan distances by compiled loops, each row for itself to the last bit."""

from typing import Any

import numpy as np

from eqsep.arrays import is_foreign, namespace
from eqsep.engine.loops import compiled, inlined

ROWS, COLUMNS = 16, 4  # that are summed in one go
COMMON = 0.5  # the share of landmarks with one number from which on a column is mostly that number
_NONE = (np.empty(0, np.intp), np.empty((2, 0), np.float32), np.empty((3, 0, 0), np.float32))


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
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        dense = _Dense(C.astype(dtype, copy=False), np.arange(C.shape[1]))
        with np.errstate(over="ignore"):
            return dense(X) / dtype(unit)
    xp = namespace(X, C)
    s = xp.abs(X[:, :1] - C[:, :1].T)
    for j in range(1, X.shape[1]):
        s = s + xp.abs(X[:, j : j + 1] - C[:, j : j + 1].T)
    return s / unit


class _Dense:
    """X -> a total + Σ_j |x_j - c_j| over some columns, in the precision of C."""

    def __init__(self, C: np.ndarray, columns: np.ndarray, total: np.ndarray | None = None) -> None:
        n = len(columns)
        self._columns = columns
        self._landmarks = np.zeros((n + -n % COLUMNS, len(C)), dtype=C.dtype)  # side by side
        self._landmarks[:n] = C.T[columns]
        self._total = np.zeros(len(C), dtype=C.dtype) if total is None else total

    def __call__(self, X: np.ndarray, sparse: tuple[np.ndarray, ...] = _NONE) -> np.ndarray:
        """In single precision with the distances over `sparse` columns, too."""
        dtype = self._total.dtype
        X = np.ascontiguousarray(X, dtype)
        out = np.empty((len(X), len(self._total)), dtype)
        some = np.zeros((ROWS, len(self._landmarks)), dtype)  # the last columns stay 0
        dense = (X, self._columns, self._landmarks, self._total, some, out)
        if dtype == np.float32:
            _add_in_single(*dense, *sparse)
        else:
            _add_in_double(*dense)
        return out


class SparseManhattan:
    """X -> Σ_j |x_j - c_j|, for columns of which most hold one number nearly everywhere.

    With a_j the most common number of a column among the landmarks, Σ_j |a_j - c_j| is computed
    once for all rows, and a row is compared where it has another number: |x_j - c_j| - |a_j - c_j|,
    which for the second most common number is computed once, too. In single precision, and it
    rounds as the largest of the differences does, so it is for columns of one size, like those of
    an encoded table. As in `manhattan`, a row is on its own to the last bit.  (n, d) -> (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> distance = SparseManhattan(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [5.0, 4.0]]))
    >>> distance(np.array([[0.0, 1.0], [5.0, 1.0]]))
    array([[0., 1., 2., 8.],
           [5., 6., 7., 3.]], dtype=float32)
    """

    def __init__(self, C: np.ndarray) -> None:
        C = np.asarray(C, np.float32)
        common, second, share = _most_common(C)
        places = np.flatnonzero(share >= COMMON)
        columns = C[:, places].T
        numbers = np.stack([common[places], second[places]])
        usual = np.abs(columns - numbers[0][:, None])
        differences = np.abs(numbers[1][:, None] - columns) - usual
        self._sparse = places, numbers, np.stack([columns, usual, differences])
        total = usual.sum(axis=0, dtype=float).astype(np.float32)
        self._dense = _Dense(C, np.flatnonzero(share < COMMON), total)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return self._dense(X, self._sparse)


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


@inlined
def _add_dense(X: Any, columns: Any, C: Any, total: Any, some: Any, out: Any) -> None:
    # One row at a time and landmarks side by side: sums are taken in one order for all of them.
    n, m = out.shape[0], out.shape[1]
    for first in range(0, n, ROWS):
        last = first + ROWS if first + ROWS < n else n
        for i in range(first, last):
            for j in range(m):
                out[i, j] = total[j]
            for k in range(columns.shape[0]):
                some[i - first, k] = X[i, columns[k]]
        for k in range(0, C.shape[0], COLUMNS):
            for i in range(first, last):
                a, b = some[i - first, k], some[i - first, k + 1]
                c, d = some[i - first, k + 2], some[i - first, k + 3]
                for j in range(m):
                    left = abs(a - C[k, j]) + abs(b - C[k + 1, j])
                    right = abs(c - C[k + 2, j]) + abs(d - C[k + 3, j])
                    out[i, j] += left + right


@compiled
def _add_in_double(X: Any, columns: Any, C: Any, total: Any, some: Any, out: Any) -> None:
    _add_dense(X, columns, C, total, some, out)


@compiled
def _add_in_single(
    X: Any,
    columns: Any,
    C: Any,
    total: Any,
    some: Any,
    out: Any,
    places: Any,
    common: Any,
    sparse: Any,
) -> None:
    _add_dense(X, columns, C, total, some, out)
    m = out.shape[1]
    for i in range(X.shape[0]):
        for k in range(places.shape[0]):
            x = X[i, places[k]]
            if x == common[0, k]:
                continue
            if x == common[1, k]:
                for j in range(m):
                    out[i, j] += sparse[2, k, j]
            else:
                for j in range(m):
                    out[i, j] += abs(x - sparse[0, k, j]) - sparse[1, k, j]
        for j in range(m):
            if out[i, j] < 0:  # by rounding
                out[i, j] = 0
