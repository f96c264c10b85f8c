"""Where to cut: the distance that tells the training rows apart best."""

import numpy as np


def least_error_width(distance: np.ndarray, *, inside: np.ndarray, weight: np.ndarray) -> float:
    """The half-width with the least training error, in the middle of its widest gap.

    Rows up to the width count as inside. The width may leave all rows out, or hold all of them.

    Examples
    --------
    >>> inside = np.array([True, True, False, False])
    >>> least_error_width(np.array([0.1, 0.2, 0.8, 3.0]), inside=inside, weight=np.ones(4))
    0.5
    """
    order = np.argsort(distance)
    edges = np.concatenate([[0.0], distance[order], [2 * distance[order[-1]]]])
    lost = np.where(inside, weight, 0.0)[order]
    held = np.where(inside, 0.0, weight)[order]
    error = lost.sum() + np.concatenate([[0.0], np.cumsum(held - lost)])
    gap = np.diff(edges)
    least = error <= error[gap > 0].min() + 1e-12
    widest = int(np.argmax(np.where(least, gap, -1.0)))
    return float((edges[widest] + edges[widest + 1]) / 2)
