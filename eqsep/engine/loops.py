"""Compiled loops, the sums and exponentials that several modules share, and threads for rows.

Numba caches compiled code on disk and checks only the loop's own file for changes. So a loop uses
no names of other modules of this package, and its caller passes arrays of one type and layout.
"""

import math
import os
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from eqsep.arrays import is_foreign

WORTH_A_THREAD = 2**20  # steps of a loop: below, a thread costs more than it does

_this = local()  # of each thread


def compiled(loop: Any = None, *, fastmath: Collection[str] = ()) -> Callable[..., Any]:
    """Compile a loop by Numba when it is first called, and keep it on disk for other processes."""
    if loop is None:
        return partial(compiled, fastmath=fastmath)
    options = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}
    made: Callable[..., Any]
    try:
        made = njit(cache=True, **options)(loop)
    except RuntimeError:  # no folder to keep it in
        made = njit(**options)(loop)
    return made


shared: Callable[[Any], Any] = register_jitable  # both loops and plain Python may call a formula
# Makes a function a part of the loops that call it, to be compiled with them alone.
inlined: Callable[[Any], Any] = njit(inline="always")


def weighted_sums(k: np.ndarray, functions: np.ndarray) -> np.ndarray:
    """Σ_j a_j k_ij, which no other row changes, in double precision.  (n, m), (t, m) -> (n, t)"""
    out = np.empty((len(k), len(functions)))
    add = _add_weighted_single if k.dtype == np.float32 else _add_weighted_double
    add(np.ascontiguousarray(k), functions, out)
    return out


def exponentials(s: np.ndarray, *, rate: float, powers: tuple[int, ...] = (1,)) -> np.ndarray:
    """The mean of exp(-rate p s) over powers of two p, of a matrix s >= 0, which is overwritten.

    The power 1 alone and double precision are NumPy's.
    """
    if powers == (1,) or s.dtype != np.float32:
        s *= -rate
        s[:] = mean_of_powers(np.exp(s, out=s), powers)
        return s
    bits = np.empty(s.shape[1], dtype=np.int32)
    _average_exponentials(s, _SINGLE(-rate), _shares(powers), bits, bits.view(np.float32))
    return s


def mean_of_powers(k: Any, powers: tuple[int, ...]) -> Any:
    """The mean of these powers, which are powers of two, of a matrix."""
    if powers == (1,):
        return k
    total: Any = 0.0
    for power in _doubled(max(powers)):
        k = k * k if power > 1 else k
        total = total + k if power in powers else total
    return total / len(powers) if is_foreign(k) else total * k.dtype.type(1 / len(powers))


@cache
def _shares(powers: tuple[int, ...]) -> np.ndarray:
    """What 1, 2, 4, … count in a mean over powers: two of them at least."""
    doubled = _doubled(max(2, *powers))
    return np.isin(doubled, powers).astype(np.float32) / _SINGLE(len(powers))


def _doubled(most: int) -> list[int]:
    """1, 2, 4, … up to `most`."""
    return [2**i for i in range(most.bit_length())]


def in_threads(
    work: Callable[[slice], None], n: int, *, steps: int, most: int | None = None
) -> None:
    """Do `work` for `n` rows, at most so many at a time, in threads if it takes enough steps."""

    def do(part: slice) -> None:
        for some in [part] if most is None else pieces(part, most):
            work(some)

    n_parts = n_pieces(n, steps=steps)
    if n_parts == 1 and 0 < n <= (most or n):  # a single row does not wait for what follows
        work(slice(0, n))
        return
    parts = [slice(n * i // n_parts, n * (i + 1) // n_parts) for i in range(n_parts)]
    list(map(do, parts) if n_parts == 1 else _pool(n_parts).map(do, parts))


def pieces(part: slice, most: int) -> Iterator[slice]:
    """Slices of a part of the rows, of at most so many."""
    for start in range(part.start, part.stop, most):
        yield slice(start, min(start + most, part.stop))


def n_pieces(n: int, *, steps: int) -> int:
    """How many pieces `in_threads` divides work into."""
    most = min(steps // WORTH_A_THREAD, n)
    alone = most <= 1 or getattr(_this, "is_worker", False)
    return 1 if alone else min(threads(), most)


def threads() -> int:
    """The threads to use: OMP_NUM_THREADS where it is set, else the cores of this process."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else _cores()


@cache
def _cores() -> int:
    """The cores that this process may use, by its affinity and the quota of its container."""
    affine = getattr(os, "sched_getaffinity", None)  # Linux alone
    cores = len(affine(0)) if affine else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no container, or none with a quota
        return cores


@cache
def _pool(n: int) -> ThreadPoolExecutor:
    """Threads that wait for work; a forked process starts without them."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_pool.cache_clear)
    return workers(n)


def workers(n: int) -> ThreadPoolExecutor:
    """A pool of threads in which `in_threads` does not divide work again."""
    return ThreadPoolExecutor(n, "eqsep", initializer=setattr, initargs=(_this, "is_worker", True))


# Products and sums in one step, for all rows alike.
FUSED = frozenset({"contract"})

# exp(x) = 2^n exp(r) with n = x / log 2 to the nearest whole number, which adding and taking away
# 1.5 2^23 gives, and r = x - n log 2 with log 2 in two parts; exp(r) is a polynomial (Cephes).
_SINGLE = np.float32
_LOWEST_EXPONENT, _ROUNDED, _LOG2_E = (
    _SINGLE(-88),
    _SINGLE(1.5 * 2**23),
    _SINGLE(1.4426950408889634),
)
_LOG_2, _LOG_2_REST = _SINGLE(0.693359375), _SINGLE(-2.12194440e-4)
_ONE, _BIAS, _EXPONENT = _SINGLE(1), _SINGLE(127), _SINGLE(2**23)
_ZERO, _NORMAL_SQUARE = _SINGLE(0), _SINGLE(2.0**-63)
_A, _B, _C = _SINGLE(1.9875691500e-4), _SINGLE(1.3981999507e-3), _SINGLE(8.3334519073e-3)
_D, _E, _F = _SINGLE(4.1665795894e-2), _SINGLE(1.6666665459e-1), _SINGLE(5.0000001201e-1)


@compiled(fastmath=FUSED)
def _average_exponentials(s: Any, rate: Any, shares: Any, bits: Any, power: Any) -> None:
    # `bits` and `power` are the same memory: whole numbers, and the powers of two they spell.
    m = s.shape[1]
    for i in range(s.shape[0]):
        for j in range(m):
            x = s[i, j] * rate
            x = _LOWEST_EXPONENT if x < _LOWEST_EXPONENT else x
            n = (x * _LOG2_E + _ROUNDED) - _ROUNDED
            r = (x - n * _LOG_2) - n * _LOG_2_REST
            higher = ((((_A * r + _B) * r + _C) * r + _D) * r + _E) * r + _F
            s[i, j] = higher * (r * r) + r + _ONE
            bits[j] = np.int32((n + _BIAS) * _EXPONENT)
        for j in range(m):
            k = s[i, j] * power[j]
            # a subnormal square is slow, and adds nothing
            square = k if k > _NORMAL_SQUARE else _ZERO
            square *= square
            power[j] = square
            s[i, j] = shares[0] * k + shares[1] * square
        for p in range(2, shares.shape[0]):
            for j in range(m):
                k = power[j]
                k = k if k > _NORMAL_SQUARE else _ZERO
                k *= k
                power[j] = k
                s[i, j] += shares[p] * k


# Several at a time, so in another order than written, which is the same for all rows.
ANY_ORDER = frozenset({"reassoc", "contract", "nsz"})


@inlined
def _add_weighted(k: Any, functions: Any, out: Any) -> None:
    for i in range(k.shape[0]):
        for t in range(functions.shape[0]):
            total = 0.0
            for j in range(k.shape[1]):
                total += functions[t, j] * k[i, j]
            out[i, t] = total


@compiled(fastmath=ANY_ORDER)
def _add_weighted_single(k: Any, functions: Any, out: Any) -> None:
    _add_weighted(k, functions, out)


@compiled(fastmath=ANY_ORDER)
def _add_weighted_double(k: Any, functions: Any, out: Any) -> None:
    _add_weighted(k, functions, out)
