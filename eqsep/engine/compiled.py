"""Distances and sums by compiled loops, each row for itself, and the threads that rows go to.

The loops know no threads: whoever has all rows at hand divides them, once, by `in_threads`.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import local
from typing import Any

import numpy as np

from eqsep.arrays import is_foreign, namespace
from eqsep.engine.machine_code import Loop

COLUMNS, ROWS = 4, 16  # columns that are summed in one go, and rows that they stay at hand for
WORTH_A_THREAD = 2**20  # steps of a loop: below, a thread costs more than it does
COMMON = 0.5  # the share of landmarks with one number from which on a column is mostly that number

_this = local()  # of each thread


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
        C = C.astype(X.dtype, copy=False)
        with np.errstate(over="ignore"):
            s = _dense(_padded(X), _by_column(C), np.zeros(len(C), dtype=C.dtype))
            return s / X.dtype.type(unit)
    xp = namespace(X, C)
    s = xp.abs(X[:, :1] - C[:, :1].T)
    for j in range(1, X.shape[1]):
        s = s + xp.abs(X[:, j : j + 1] - C[:, j : j + 1].T)
    return s / unit


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
        self._others = np.flatnonzero(share < COMMON)
        self._common = number[self._sparse]
        self._columns = np.ascontiguousarray(C[:, self._sparse].T)
        self._usual = np.abs(self._columns - self._common[:, None])
        self._total = self._usual.sum(axis=0, dtype=float).astype(C.dtype)
        self._landmarks = _by_column(C[:, self._others])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        rows, others = X.take(self._sparse, axis=1), X.take(self._others, axis=1)
        out = _dense(_padded(others), self._landmarks, self._total)
        compiled(_add_sparse)(rows, self._common, self._columns, self._usual, out)
        return out


def weighted_sums(k: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Σ_j a_j k_ij of each row in double precision, each row for itself.  (n, m), (m,) -> (n,)

    Examples
    --------
    >>> import numpy as np
    >>> weighted_sums(np.array([[1.0, 2.0]], dtype=np.float32), np.array([3.0, 4.0]))
    array([11.])
    """
    out = np.empty(len(k))
    compiled(_add_weighted, fastmath=ANY_ORDER)(k, coef, out)
    return out


def exponentials(s: np.ndarray, *, rate: float, powers: tuple[int, ...] = (1,)) -> np.ndarray:
    """The mean of exp(-rate p s) over powers of two p, of a matrix s >= 0 that is written over.

    In single precision exp(-rate s) has an error of 2^-23 of its size, and is 0 below 2^-126. The
    power 1 alone, by which models of version 0.1.0 answer, and double precision are NumPy's.

    Examples
    --------
    >>> import numpy as np
    >>> s = np.array([[0.0, 1.0, 1e9]], dtype=np.float32)
    >>> exponentials(s, rate=0.5, powers=(1, 2)).round(3)
    array([[1.   , 0.487, 0.   ]], dtype=float32)
    """
    if powers == (1,) or s.dtype != np.float32:
        s *= -rate
        np.exp(s, out=s)
        mean_of_powers(s, powers)
        return s
    bits = np.empty(s.shape[1], dtype=np.int32)
    compiled(_average_exponentials, fastmath=FUSED)(s, _SINGLE(-rate), _shares(powers), bits)
    return s


def mean_of_powers(k: Any, powers: tuple[int, ...]) -> Any:
    """The mean of these powers, which are powers of two, of a matrix that may be written over.

    Examples
    --------
    >>> import numpy as np
    >>> mean_of_powers(np.array([[0.5]]), (1, 4))
    array([[0.28125]])
    """
    if powers == (1,):
        return k
    counts = np.isin(_doubled(max(powers)), powers)
    if is_foreign(k):
        total = 0.0
        for i, is_one in enumerate(counts.tolist()):
            k = k * k if i else k
            total = total + k if is_one else total
        return total / len(powers)
    compiled(_average_powers)(k, counts, np.empty(k.shape[1], dtype=k.dtype))
    return k


def add_triangle(part: np.ndarray, total: np.ndarray) -> None:
    """Add the lower triangle of `part`, whatever its precision, to that of `total`."""
    compiled(_add_triangle)(part, total)


def row_products(X: np.ndarray, A: np.ndarray) -> np.ndarray:
    """X A in double precision, each row for itself to the last bit.  (n, d), (d, r) -> (n, r)

    Examples
    --------
    >>> import numpy as np
    >>> row_products(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
    array([[11.]])
    """
    out = np.zeros((len(X), A.shape[1]))
    compiled(_add_products)(np.ascontiguousarray(X, dtype=float), np.ascontiguousarray(A), out)
    return out


def mixed_bits(X: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Each row's bits in double precision, mixed with an odd number for each column, as 64 bits.

    -0 is 0.  (n, d), (d,) -> (n,)
    """
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    out = np.empty(len(X), dtype=np.uint64)
    compiled(_mix, calls=(_finalised,))(X, factors, np.empty(X.shape[1]), out)
    return out


@cache
def _shares(powers: tuple[int, ...]) -> tuple[Any, ...]:  # of 1, 2, 4, … in a mean over powers
    return tuple(_SINGLE(p in powers) / _SINGLE(len(powers)) for p in _doubled(max(powers)))


def _doubled(most: int) -> list[int]:
    """1, 2, 4, … up to `most`."""
    return [2**i for i in range(most.bit_length())]


def in_threads(work: Callable[[slice], None], n: int, *, steps: int) -> None:
    """Do `work` for all of `n` rows, some in each thread, if it is of so many steps.

    What is done in a thread is not divided again.
    """
    pieces = n_pieces(n, steps=steps)
    if pieces == 1:
        work(slice(0, n))
    else:
        parts = [slice(n * i // pieces, n * (i + 1) // pieces) for i in range(pieces)]
        list(_pool(pieces).map(work, parts))


def n_pieces(n: int, *, steps: int) -> int:
    """Into how many pieces `in_threads` divides work."""
    most = min(steps // WORTH_A_THREAD, n)
    alone = most <= 1 or getattr(_this, "is_worker", False)
    return 1 if alone else min(threads(), most)


def threads() -> int:
    """The threads to use: OMP_NUM_THREADS where it is set, else the cores of this process."""
    from joblib import cpu_count  # slow to import: a few rows do not wait for it

    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else cpu_count()


@cache
def _pool(n: int) -> ThreadPoolExecutor:
    """Threads that wait for work; a process that is forked off begins with none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_pool.cache_clear)
    return ThreadPoolExecutor(n, "eqsep", initializer=setattr, initargs=(_this, "is_worker", True))


def _dense(X: np.ndarray, C: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The distances of padded rows to landmarks given by column, plus `total`."""
    out = np.empty((len(X), C.shape[1]), dtype=X.dtype)
    compiled(_add_dense)(X, C, total, out)
    return out


def _padded(X: np.ndarray) -> np.ndarray:
    """`X` with columns of zeros beside it, up to a multiple of what is summed in one go."""
    n, width = X.shape
    if width % COLUMNS == 0:
        return np.ascontiguousarray(X)
    out = np.zeros((n, width + -width % COLUMNS), dtype=X.dtype)
    out[:, :width] = X
    return out


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


def _add_dense(X: Any, C: Any, total: Any, out: Any) -> None:  # pragma: no cover  compiled
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


def _average_powers(k: Any, counts: Any, total: Any) -> None:  # pragma: no cover  compiled
    share = k.dtype.type(1 / counts.sum())
    for i in range(k.shape[0]):
        row = k[i]
        total[:] = 0
        for power in range(counts.shape[0]):
            if power:
                for j in range(row.shape[0]):
                    row[j] *= row[j]
            if counts[power]:
                for j in range(row.shape[0]):
                    total[j] += row[j]
        for j in range(row.shape[0]):
            row[j] = total[j] * share


# Products and sums in one step, for all rows alike.
FUSED = frozenset({"contract"})

# exp(x) = 2^n exp(r) with n = x / log 2 to the nearest whole number, which adding and taking away
# 1.5 2^23 gives, and r = x - n log 2 with log 2 in two parts; exp(r) is a polynomial (Cephes).
_SINGLE = np.float32
_LOWEST, _ROUNDED, _LOG2_E = _SINGLE(-88), _SINGLE(1.5 * 2**23), _SINGLE(1.4426950408889634)
_LOG_2, _REST = _SINGLE(0.693359375), _SINGLE(-2.12194440e-4)
_ONE, _BIAS, _EXPONENT = _SINGLE(1), _SINGLE(127), _SINGLE(2**23)
_ZERO, _SEEN = _SINGLE(0), _SINGLE(2.0**-63)
_A, _B, _C = _SINGLE(1.9875691500e-4), _SINGLE(1.3981999507e-3), _SINGLE(8.3334519073e-3)
_D, _E, _F = _SINGLE(4.1665795894e-2), _SINGLE(1.6666665459e-1), _SINGLE(5.0000001201e-1)


def _average_exponentials(s: Any, rate: Any, shares: Any, bits: Any) -> None:  # pragma: no cover
    power_of_two = bits.view(np.float32)
    for i in range(s.shape[0]):
        row = s[i]
        for j in range(row.shape[0]):
            x = row[j] * rate
            x = _LOWEST if x < _LOWEST else x
            n = (x * _LOG2_E + _ROUNDED) - _ROUNDED
            r = (x - n * _LOG_2) - n * _REST
            higher = ((((_A * r + _B) * r + _C) * r + _D) * r + _E) * r + _F
            row[j] = higher * (r * r) + r + _ONE
            bits[j] = np.int32((n + _BIAS) * _EXPONENT)
        for j in range(row.shape[0]):
            k = row[j] * power_of_two[j]
            total = shares[0] * k
            for power in range(1, len(shares)):
                k = k if k > _SEEN else _ZERO  # a subnormal square is slow, and adds nothing
                k *= k
                total += shares[power] * k
            row[j] = total


_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


def _mix(X: Any, factors: Any, row: Any, out: Any) -> None:  # pragma: no cover  compiled
    bits = row.view(np.uint64)
    for i in range(X.shape[0]):
        x, total = X[i], np.uint64(0)
        for j in range(x.shape[0]):
            row[j] = x[j] + 0.0
        for j in range(x.shape[0]):
            total += _finalised(bits[j] + factors[j]) * factors[j]
        out[i] = _finalised(total)


def _finalised(b: Any) -> Any:  # pragma: no cover  compiled
    """As in SplitMix64."""
    b = (b ^ (b >> _30)) * _FIRST
    b = (b ^ (b >> _27)) * _SECOND
    return b ^ (b >> _31)


def _add_triangle(part: Any, total: Any) -> None:  # pragma: no cover  compiled
    for i in range(total.shape[0]):
        row, more = total[i], part[i]
        for j in range(i + 1):
            row[j] += more[j]


def _add_products(X: Any, A: Any, out: Any) -> None:  # pragma: no cover  compiled
    for first in range(0, X.shape[0], ROWS):
        for j in range(X.shape[1]):
            a = A[j]
            for i in range(first, min(first + ROWS, X.shape[0])):
                row, x = out[i], X[i, j]
                for k in range(row.shape[0]):
                    row[k] += x * a[k]


def _add_sparse(X: Any, common: Any, C: Any, usual: Any, out: Any) -> None:  # pragma: no cover
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


def _add_weighted(k: Any, coef: Any, out: Any) -> None:  # pragma: no cover  compiled
    for i in range(k.shape[0]):
        row, total = k[i], 0.0
        for j in range(row.shape[0]):
            total += coef[j] * row[j]
        out[i] = total


@cache
def compiled(
    loop: Callable[..., None],
    *,
    fastmath: frozenset[str] = frozenset(),
    calls: tuple[Callable[..., Any], ...] = (),
) -> Loop:
    """`loop` as machine code, kept on disk for the next process (`eqsep.engine.machine_code`).

    What it `calls` is of the same file, and stays plain Python for whoever else calls it. A loop
    that allocates memory, or takes more than arrays, needs Numba in every process.
    """
    return Loop(loop, fastmath=fastmath, calls=calls)
