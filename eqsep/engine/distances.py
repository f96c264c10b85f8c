"""Squared distances of rows to landmarks, at any scale, for NumPy and torch alike."""

import math
from typing import Any

import numpy as np

from eqsep.arrays import namespace


class SquaredDistance:
    """X -> ||x - c||² / unit² by one matrix product, exactly 0 where x and c agree up to rounding.

    The rows are first centred on the mean of the landmarks `C`. A row too large to be squared is
    infinitely far from landmarks that are not, and compared with the others column by column.
    (n, d) -> (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> SquaredDistance(np.array([[1e8, 0.0], [1e300, 0.0]]))(np.array([[1e8, 3.0], [1e300, 0.0]]))
    array([[ 9., inf],
           [inf,  0.]])
    """

    def __init__(self, C: Any, *, unit: float = 1.0) -> None:
        xp, d = namespace(C), C.shape[1]
        precision = xp.finfo(C.dtype)
        self._unit = unit
        self._limit = math.sqrt(float(precision.max) / d) / 8 * unit
        self._noise = (d + 8) * float(precision.eps)
        self._is_far = _beyond(C, self._limit)
        self._far = None if self._is_far is None else C[self._is_far, :]
        C = _scaled(C, self._is_far, unit)
        self._centre = xp.mean(C, axis=0)
        C = C - self._centre
        cc = xp.sum(C * C, axis=1, keepdims=True)
        self._factor = xp.concat([C, xp.ones_like(cc), cc], axis=1).T

    def __call__(self, X: Any) -> Any:
        xp, is_far = namespace(X, self._factor), _beyond(X, self._limit)
        near = _scaled(X, is_far, self._unit) - self._centre
        xx = xp.sum(near * near, axis=1, keepdims=True)
        s = xp.concat([-2 * near, xx, xp.ones_like(xx)], axis=1) @ self._factor
        s *= s > self._noise * xx
        if is_far is not None:
            s[is_far, :] = math.inf
        if self._is_far is not None:
            s[:, self._is_far] = math.inf
        if is_far is not None and self._is_far is not None:
            rows, columns = xp.nonzero(is_far)[0], xp.nonzero(self._is_far)[0]
            s[rows[:, None], columns[None, :]] = self._between_far(X[is_far, :])
        return s

    def _between_far(self, X: Any) -> Any:
        """The same from far rows to far landmarks, from the differences themselves."""
        C: Any = self._far
        s: Any = 0.0
        with np.errstate(over="ignore"):
            for j in range(X.shape[1]):
                s = s + ((X[:, j : j + 1] - C[:, j : j + 1].T) / self._unit) ** 2
        return s


def _beyond(X: Any, limit: float) -> Any:
    """Which rows pass `limit`; None if none does."""
    xp = namespace(X)
    size = xp.max(xp.abs(X), axis=1)
    return None if float(xp.max(size)) <= limit else size > limit


def _scaled(X: Any, is_far: Any, unit: float) -> Any:
    """`X` / unit, with zeros for the rows that are far."""
    if is_far is not None:
        xp = namespace(X)
        X = xp.where(is_far[:, None], xp.zeros_like(X), X)
    return X if unit == 1 else X / unit
