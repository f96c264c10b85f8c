"""Loops compiled when first used, for what NumPy would need many passes over memory."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from threading import local
from typing import Any

import numpy as np
from joblib import cpu_count

COLUMNS, ROWS = 4, 16  # columns that are summed in one go, and rows that they stay at hand for
WORTH_A_THREAD = 2**20  # steps of a loop: below, a thread costs more than it does
COMMON = 0.5  # the share of landmarks with one number from which on a column is mostly that number

_this = local()  # of each thread


def manhattan(X: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Σ_j |x_j - c_j| for each row and each landmark, in the precision of both.

    Each number depends on its row and its landmark alone, to the last bit: neither the rows
    beside it nor the number of threads changes it.  (n, d), (m, d) -> (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> manhattan(np.array([[0.0, 3.0]]), np.array([[1.0, 1.0], [0.0, 3.0]]))
    array([[3., 0.]])
    """
    return _filled(X, _by_column(C), np.zeros(len(C), dtype=C.dtype))


class SparseManhattan:
    """X -> Σ_j |x_j - c_j|, for columns of which most hold one number nearly everywhere.

    With a_j the most common number of a column among the landmarks, Σ_j |a_j - c_j| is there once
    for all rows, and a row is compared where it has another number: |x_j - c_j| - |a_j - c_j|. This
    rounds as the largest of the differences does, so it is for columns of one size, like those of
    an encoded table. As in `manhattan`, a row is on its own to the last bit.  (n, d) -> (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> distance = SparseManhattan(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [5.0, 4.0]]))
    >>> distance(np.array([[0.0, 1.0], [5.0, 1.0]]))
    array([[0., 1., 2., 8.],
           [5., 6., 7., 3.]])
    """

    def __init__(self, C: np.ndarray) -> None:
        number, share = _most_common(C)
        self._sparse = np.flatnonzero(share >= COMMON)
        self._dense = np.flatnonzero(share < COMMON)
        self._common = number[self._sparse]
        self._columns = np.ascontiguousarray(C[:, self._sparse].T)
        self._usual = np.abs(self._columns - self._common[:, None])
        self._total = self._usual.sum(axis=0, dtype=float).astype(C.dtype)
        self._landmarks = _by_column(C[:, self._dense])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(X[:, self._sparse])
        sparse = (rows, self._common, self._columns, self._usual)
        return _filled(X[:, self._dense], self._landmarks, self._total, sparse)


def weighted_sums(k: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Σ_j a_j k_ij of each row in double precision, each row for itself.  (n, m), (m,) -> (n,)

    Examples
    --------
    >>> import numpy as np
    >>> weighted_sums(np.array([[1.0, 2.0]], dtype=np.float32), np.array([3.0, 4.0]))
    array([11.])
    """
    out = np.empty(len(k))
    sums = _compiled(_weighted_sums, fastmath=ANY_ORDER)
    in_threads(lambda rows: sums(k[rows], coef, out[rows]), len(k), steps=k.size)
    return out


def in_threads(work: Callable[[slice], None], n: int, *, steps: int) -> None:
    """Do `work` for all of `n` rows, some in each thread, if it is of so many steps.

    What is done in a thread is not divided again.
    """
    pieces = n_pieces(n, steps=steps)
    parts = [slice(*ends) for ends in pairwise(n * i // pieces for i in range(pieces + 1))]
    if pieces == 1:
        work(parts[0])
    else:
        list(_pool(pieces).map(work, parts))


def n_pieces(n: int, *, steps: int) -> int:
    """Into how many pieces `in_threads` divides work."""
    most = 1 if getattr(_this, "is_worker", False) else threads()
    return max(1, min(most, steps // WORTH_A_THREAD, n))


def threads() -> int:
    """The threads to use: OMP_NUM_THREADS where it is set, else the cores of this process."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else cpu_count()


@cache
def _pool(n: int) -> ThreadPoolExecutor:
    """Threads that wait for work; a process that is forked off begins with none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_pool.cache_clear)
    return ThreadPoolExecutor(n, "eqsep", initializer=setattr, initargs=(_this, "is_worker", True))


def _padded(X: np.ndarray) -> np.ndarray:
    """`X` with columns of zeros beside it, up to a multiple of `COLUMNS`."""
    more = -X.shape[1] % COLUMNS
    return np.ascontiguousarray(np.pad(X, [(0, 0), (0, more)]) if more else X)


def _by_column(C: np.ndarray) -> np.ndarray:
    """Landmarks with the numbers of each column side by side, and columns of zeros."""
    return np.ascontiguousarray(_padded(C).T)


def _most_common(C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each column's most common number, and the share of rows that have it."""
    ordered, n = np.sort(C, axis=0), len(C)
    starts = np.ones(C.shape, dtype=bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(n)[:, None], 0), axis=0)
    length = np.arange(1, n + 1)[:, None] - first  # of each run up to here
    longest = length.argmax(axis=0)
    columns = np.arange(C.shape[1])
    return ordered[longest, columns], length[longest, columns] / n


def _filled(
    X: np.ndarray, C: np.ndarray, total: np.ndarray, sparse: tuple[np.ndarray, ...] | None = None
) -> np.ndarray:
    """The distances to landmarks given by column, plus `total`, plus those in sparse columns."""
    X = _padded(X)
    out = np.empty((len(X), C.shape[1]), dtype=X.dtype)
    dense, add = _compiled(_dense), _compiled(_sparse)

    def work(rows: slice) -> None:
        dense(X[rows], C, total, out[rows])
        if sparse is not None:
            add(sparse[0][rows], *sparse[1:], out[rows])

    in_threads(work, len(X), steps=out.size * (X.shape[1] + COLUMNS))
    return out


def _dense(X: Any, C: Any, total: Any, out: Any) -> None:  # pragma: no cover  compiled
    # One row at a time and landmarks side by side: sums are taken in one order for all of them.
    n, m = out.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = total[j]
    for first in range(0, n, ROWS):
        for k in range(0, X.shape[1], COLUMNS):
            a, b, c, d = C[k], C[k + 1], C[k + 2], C[k + 3]
            for i in range(first, min(first + ROWS, n)):
                row, xa, xb, xc, xd = out[i], X[i, k], X[i, k + 1], X[i, k + 2], X[i, k + 3]
                for j in range(m):
                    row[j] += (abs(xa - a[j]) + abs(xb - b[j])) + (abs(xc - c[j]) + abs(xd - d[j]))


def _sparse(X: Any, common: Any, C: Any, usual: Any, out: Any) -> None:  # pragma: no cover
    for i in range(X.shape[0]):
        row = out[i]
        for k in range(X.shape[1]):
            x, c, u = X[i, k], C[k], usual[k]
            if x != common[k]:
                for j in range(row.shape[0]):
                    row[j] += abs(x - c[j]) - u[j]
        for j in range(row.shape[0]):
            if row[j] < 0:  # by rounding
                row[j] = 0


# Several at a time, so in another order than written, which is the same for all rows.
ANY_ORDER = frozenset({"reassoc", "contract", "nsz"})


def _weighted_sums(k: Any, coef: Any, out: Any) -> None:  # pragma: no cover  compiled
    for i in range(k.shape[0]):
        row, total = k[i], 0.0
        for j in range(row.shape[0]):
            total += coef[j] * row[j]
        out[i] = total


@cache
def _compiled(loop: Callable[..., None], *, fastmath: frozenset[str] = frozenset()) -> Any:
    """`loop` as machine code, kept on disk for the next process wherever numba may write."""
    from numba import njit  # half a second to import: only those who need it wait

    options = {"nogil": True, "fastmath": set(fastmath) or False}
    try:
        return njit(cache=True, **options)(loop)
    except RuntimeError:  # neither beside this file nor in the user's cache folder
        return njit(**options)(loop)
