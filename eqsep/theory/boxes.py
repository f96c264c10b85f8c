"""Hyperrectangles and parallelepipeds as classifiers: n separators that all say normal."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsep.errors import UserError
from eqsep.theory.closing import check_normals, is_closed
from eqsep.theory.planes import Hyperplane
from eqsep.theory.volume import region_volume


@dataclass(frozen=True)
class Parallelepiped:
    """The intersection of n epsilon-error separators |w_i.x + b_i| <= epsilon_i of R^n.

    With normals along the axes it is a hyperrectangle.

    Attributes
    ----------
    planes : tuple of Hyperplane
        The separators, with class 1 inside.
    """

    planes: tuple[Hyperplane, ...]

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

    def _arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        normals = np.array([plane.w for plane in self.planes], dtype=np.float64)
        rest = np.array([(plane.b, plane.epsilon) for plane in self.planes], dtype=np.float64)
        return normals, rest[:, 0], rest[:, 1]


def bounding_parallelepiped(X: ArrayLike, normals: ArrayLike | None = None) -> Parallelepiped:
    """The tightest parallelepiped with these normals around some rows.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The rows to hold.
    normals : array-like of shape (n_features, n_features) or None
        One linearly independent normal vector a row. None takes the axes: the hyperrectangle of the
        least and largest values of each column.

    Returns
    -------
    Parallelepiped

    Examples
    --------
    >>> from eqsep.theory import bounding_parallelepiped
    >>> rows = [[0, 0], [1, 1.5], [2, 2]]
    >>> box = bounding_parallelepiped(rows)
    >>> box.contains([[1, 1], [0, 2], [3, 3]]), box.volume
    (array([ True,  True, False]), 4.0)
    >>> tilted = bounding_parallelepiped(rows, [[1, 1], [1, -1]])
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
    W = np.eye(n) if normals is None else check_normals(normals)
    if W.shape != (n, n) or not is_closed(W):
        raise UserError(
            f"normals must be {n} independent vectors of {n} entries, got shape {W.shape}. "
            "Fewer, or dependent ones, leave a direction open."
        )
    z = rows @ W.T
    low, high = z.min(axis=0), z.max(axis=0)
    return Parallelepiped(
        tuple(
            Hyperplane(w, -float(middle), float(width), 1)
            for w, middle, width in zip(W, (low + high) / 2, (high - low) / 2, strict=True)
        )
    )
