"""Linear programmes in floats: one call, one record."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog


class Optimum(NamedTuple):
    """The best x, its value, and prices p >= 0: rows^T p = gain where x is within its bounds."""

    x: NDArray[np.float64]
    value: float
    prices: NDArray[np.float64]


def maximise(
    gain: NDArray[np.float64],
    *,
    rows: NDArray[np.float64],
    limits: NDArray[np.float64],
    bounds: list[tuple[float | None, float | None]],
) -> Optimum:
    """The largest gain.x with rows x <= limits and x within bounds, by SciPy's HiGHS."""
    best = linprog(-gain, A_ub=rows, b_ub=limits, bounds=bounds)
    if best.x is None:
        raise RuntimeError(f"the linear programme has no optimum: {best.message}")
    return Optimum(best.x, float(gain @ best.x), -best.ineqlin.marginals)
