"""Loops compiled when first used, for what NumPy would need many passes over memory."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import cpu_count

TOGETHER = 4  # rows that are compared with a landmark while it is at hand
WORTH_A_THREAD = 2**22  # differences: below, a thread costs more than it does


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
    n, width = X.shape
    # Columns of zeros, so that a processor's registers are full; rows, so that all go one way.
    step = 32 if width > 64 else 8
    X, C = _padded(X, TOGETHER, step), _padded(C, 1, step)
    out = np.empty((len(X), len(C)), dtype=X.dtype)
    groups = len(X) // TOGETHER
    pieces = max(1, min(threads(), out.size * X.shape[1] // WORTH_A_THREAD, groups))
    bounds = [groups * i // pieces * TOGETHER for i in range(pieces + 1)]
    fill = _manhattan()
    if pieces == 1:
        fill(X, C, out)
    else:
        parts = [slice(*ends) for ends in pairwise(bounds)]
        with ThreadPoolExecutor(pieces) as pool:
            list(pool.map(lambda part: fill(X[part], C, out[part]), parts))
    return out[:n]


def _padded(X: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """`X` with zeros below and beside it, up to a multiple of so many rows and columns."""
    more = [(0, -X.shape[0] % rows), (0, -X.shape[1] % columns)]
    padded = np.pad(X, more) if any(after for _, after in more) else X
    return np.ascontiguousarray(padded)  # row by row: sums are taken in one order


def threads() -> int:
    """The threads to use: OMP_NUM_THREADS where it is set, else the cores of this process."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else cpu_count()


@cache
def _manhattan() -> Callable[[Any, Any, Any], None]:
    from numba import njit  # half a second to import: only those who need it wait

    # Sums may be taken in any order, so that the loop is done several columns at a time; infinity
    # and NaN keep their meaning.
    @njit(nogil=True, fastmath={"reassoc", "contract", "nsz"})
    def fill(X: Any, C: Any, out: Any) -> None:  # pragma: no cover  compiled, not interpreted
        for i in range(0, X.shape[0], 4):
            for j in range(C.shape[0]):
                a = b = c = d = X.dtype.type(0)
                for k in range(X.shape[1]):
                    there = C[j, k]
                    a += abs(X[i, k] - there)
                    b += abs(X[i + 1, k] - there)
                    c += abs(X[i + 2, k] - there)
                    d += abs(X[i + 3, k] - there)
                out[i, j], out[i + 1, j], out[i + 2, j], out[i + 3, j] = a, b, c, d

    return fill
