"""Hyperrectangles and parallelepipeds, which n equality separators enclose; an estimator."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsep.errors import UserError
from eqsep.separators.base import Separator
from eqsep.theory import Hyperplane, is_closed, region_volume

Array = NDArray[np.float64]
_LARGEST_DISTANCE = np.finfo(np.float64).max / 4


@dataclass(frozen=True)
class Parallelepiped:
    """The intersection of n epsilon-error separators |w_i.x + b_i| <= epsilon_i of R^n."""

    planes: tuple[Hyperplane, ...]  #: The separators, with class 1 inside.

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Which rows lie in the margin of every separator.  (n_rows, n_features) -> (n_rows,)"""
        normals, offsets, widths = self._arrays()
        z = np.asarray(X, dtype=np.float64) @ normals.T + offsets
        # The last digits of the products that made a width must not shut its own row out.
        slack = 1e-12 * (np.abs(np.asarray(X)) @ np.abs(normals).T + np.abs(offsets))
        return (np.abs(z) <= widths + slack).all(axis=1)

    @property
    def volume(self) -> float:
        """2^n prod epsilon_i / |det W|; 0 where a margin has no width."""
        normals, offsets, widths = self._arrays()
        return region_volume(normals, offsets, epsilon=widths) if (widths > 0).all() else 0.0

    def _arrays(self) -> tuple[Array, Array, Array]:
        normals = np.array([plane.w for plane in self.planes], dtype=np.float64)
        rest = np.array([(plane.b, plane.epsilon) for plane in self.planes], dtype=np.float64)
        return normals, rest[:, 0], rest[:, 1]


def bounding_parallelepiped(X: ArrayLike, normals: ArrayLike | None = None) -> Parallelepiped:
    """The tightest parallelepiped with these normals around some rows.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
    normals : array-like of shape (n_features, n_features) or None
        One linearly independent normal vector a row. None takes the axes: the hyperrectangle of the
        least and largest values of each column.

    Examples
    --------
    >>> tilted = bounding_parallelepiped([[0, 0], [1, 1.5], [2, 2]], [[1, 1], [1, -1]])
    >>> tilted.contains([[1, 1], [0, 2], [3, 3]]), tilted.volume
    (array([ True, False, False]), 1.0)
    """
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape or not np.isfinite(rows).all():
        raise UserError(
            f"X must be a finite table of shape (n_rows, n_features) with at least one row, got "
            f"shape {rows.shape}. Drop or impute what is not finite."
        )
    n = rows.shape[1]
    W = np.eye(n) if normals is None else np.asarray(normals, dtype=np.float64)
    if W.shape != (n, n) or not is_closed(W):
        raise UserError(
            f"normals must be {n} independent vectors of {n} entries, got shape {W.shape}. "
            "Fewer, or dependent ones, leave a direction open."
        )
    z = rows @ W.T
    low, high = z.min(axis=0), z.max(axis=0)
    margins = zip(W, (low + high) / 2, (high - low) / 2, strict=True)
    return Parallelepiped(tuple(Hyperplane(w, -float(b), float(e), 1) for w, b, e in margins))


@dataclass(kw_only=True, eq=False, repr=False)
class HyperrectangleSeparator(Separator):
    """|w_i·x + b_i| <= epsilon_i for all i: n equality separators that enclose the normal rows.

    The tightest box of its directions around the normal rows; halfspaces would need 2n. Anomalies
    may be among the rows, and do not change it.

    Parameters
    ----------
    directions : array-like of shape (n_features, n_features), default=None
        The vectors w_i, one a row, which must be independent; the axes by default. Others make a
        parallelepiped, which can follow columns that move together.
    normal : label, default=None
        As in `EqualitySeparator`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features, n_features)
    intercept_ : ndarray of shape (n_features,)
    epsilon_ : ndarray of shape (n_features,)
        The half-width of each margin.

    Examples
    --------
    >>> from paper.theory import HyperrectangleSeparator
    >>> X, y = [[0, 0], [2, 1], [1, 1], [9, 9]], [0, 0, 0, 1]
    >>> HyperrectangleSeparator().fit(X, y).predict([[1, 0.5], [1, 1.5]])
    array([0, 1])
    """

    directions: Any = None
    normal: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the margin of each direction from the normal rows."""
        X, is_anomaly, _ = self._enter(X, y, sample_weight, one_class=True)
        rows = X[is_anomaly == 0]
        if not len(rows):
            raise UserError(
                "normal rows are needed: expected some in y, got one class only, the anomalous "
                "one. Add normal rows, or say which label is normal by `normal`."
            )
        planes = bounding_parallelepiped(rows, self._normals(X.shape[1])).planes
        self.coef_ = np.array([plane.w for plane in planes], dtype=np.float64)
        self.intercept_ = np.array([plane.b for plane in planes], dtype=np.float64)
        widths = np.array([plane.epsilon for plane in planes], dtype=np.float64)
        # A row on the edge is inside, whatever rounding makes of w·x + b.
        size = np.abs(self.coef_) @ np.abs(rows).max(axis=0) + np.abs(self.intercept_)
        slack = 32 * X.shape[1] * np.finfo(np.float64).eps * np.maximum(size, 1e-100)
        self.epsilon_ = widths + slack
        return self

    def _normals(self, n: int) -> np.ndarray | None:
        if self.directions is None:
            return None
        normals = np.asarray(self.directions, dtype=np.float64)
        if normals.shape != (n, n) or not is_closed(normals):
            raise UserError(
                f"directions must be {n} independent vectors of {n} entries, got shape "
                f"{normals.shape}. Fewer, or dependent ones, leave a direction open."
            )
        return normals

    def decision_function(self, X: Any) -> np.ndarray:
        """The largest |w_i·x + b_i| in units of epsilon_i, less 1: above 0 outside the region."""
        X = self._rows(X)
        with np.errstate(over="ignore"):
            ratio = np.abs(X @ self.coef_.T + self.intercept_) / self.epsilon_
        return np.minimum(ratio.max(axis=1), _LARGEST_DISTANCE) - 1
