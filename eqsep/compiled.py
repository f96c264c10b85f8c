"""Loops compiled when first used, for what NumPy would need many passes over memory."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import cpu_count

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
    X, C = np.ascontiguousarray(X), np.ascontiguousarray(C)
    out = np.empty((len(X), len(C)), dtype=X.dtype)
    pieces = min(threads(), max(1, out.size * X.shape[1] // WORTH_A_THREAD), max(1, len(X)))
    bounds = [len(X) * i // pieces for i in range(pieces + 1)]
    rows = [slice(*pair) for pair in pairwise(bounds)]
    fill = _manhattan()
    if pieces == 1:
        fill(X, C, out)
    else:
        with ThreadPoolExecutor(pieces) as pool:
            list(pool.map(lambda part: fill(X[part], C, out[part]), rows))
    return out


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
        for i in range(X.shape[0]):
            for j in range(C.shape[0]):
                total = X.dtype.type(0)
                for k in range(X.shape[1]):
                    total += abs(X[i, k] - C[j, k])
                out[i, j] = total

    return fill
