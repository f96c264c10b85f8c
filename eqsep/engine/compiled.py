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

from eqsep.arrays import is_foreign
from eqsep.engine.machine_code import Loop

ROWS = 16  # for which what is read stays at hand
WORTH_A_THREAD = 2**20  # steps of a loop: below, a thread costs more than it does

ALL = np.empty(0, dtype=bool)  # rows are wanted

_this = local()  # of each thread


def weighted_sums(
    k: np.ndarray, functions: np.ndarray, out: np.ndarray | None = None, wanted: np.ndarray = ALL
) -> np.ndarray:
    """Σ_j a_j k_ij of each row, summed in double precision, each row for itself.

    Not a product of matrices: its sums would depend on the rows beside each row.

    Parameters
    ----------
    k : ndarray of shape (n, m)
    functions : ndarray of shape (t, m)
        The coefficients a of each.
    out : ndarray of shape (n, t), default=None
        What is written to, and returned; else an array of double precision.
    wanted : ndarray of bool of shape (n,), default=ALL
        Which rows are written.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_sums(np.array([[1.0, 2.0]], dtype=np.float32), np.array([[3.0, 4.0]]))
    array([[11.]])
    """
    out = np.empty((len(k), len(functions))) if out is None else out
    compiled(_add_weighted, fastmath=ANY_ORDER)(k, functions, wanted, out)
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
    return workers(n)


def workers(n: int) -> ThreadPoolExecutor:
    """Threads in which work is not divided again."""
    return ThreadPoolExecutor(n, "eqsep", initializer=setattr, initargs=(_this, "is_worker", True))


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


def _add_triangle(part: Any, total: Any) -> None:  # pragma: no cover  compiled
    for i in range(total.shape[0]):
        row, more = total[i], part[i]
        for j in range(i + 1):
            row[j] += more[j]


# Several at a time, so in another order than written, which is the same for all rows.
ANY_ORDER = frozenset({"reassoc", "contract", "nsz"})


def _add_weighted(k: Any, functions: Any, wanted: Any, out: Any) -> None:  # pragma: no cover
    for i in range(k.shape[0]):
        if wanted.shape[0] and not wanted[i]:
            continue
        row = k[i]
        for t in range(functions.shape[0]):
            a, total = functions[t], 0.0
            for j in range(row.shape[0]):
                total += a[j] * row[j]
            out[i, t] = total


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
