"""Closing numbers: how many separators it takes to enclose a finite, positive volume.

A separator takes part with the region it calls normal, seen from its normal vector w:

========= ============================== ==========================================
family    region                         closed when
========= ============================== ==========================================
rbf       the ball ||x - w|| <= r        always
equality  the slab |w.x + b| <= epsilon  the normals span the space
halfspace the side w.x + b >= 0          they span it and sum y_i w_i = 0 for some
                                         y > 0 (Stiemke's lemma)
========= ============================== ==========================================

Offsets and widths do not matter: they move and shrink the region, they never open it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

from eqsep.errors import UserError
from eqsep.theory.checks import check_dimension, look_up
from eqsep.theory.programme import maximise

_TOLERANCE = 1e-9  # on unit normals: a singular value, or a slope, below this counts as zero


@dataclass(frozen=True)
class Closure:
    """Whether separators leave no way out, with the proof. True in an `if` when they do.

    The region that they enclose is then bounded wherever the offsets put them; it may be empty.

    Attributes
    ----------
    closed : bool
        The answer.
    family : str
        The family of the separators.
    basis : tuple of int or None
        Equality, when closed: rows whose normals are linearly independent and span the space.
    combination : ndarray of shape (k,) or None
        Halfspace, when closed: y > 0 with sum_i y_i w_i = 0.
    escape : ndarray of shape (n_features,) or None
        When open: a unit vector v along which the region never ends. w_i.v = 0 for every slab,
        w_i.v >= 0 for every halfspace.
    """

    closed: bool
    family: str
    basis: tuple[int, ...] | None = None
    combination: NDArray[np.float64] | None = None
    escape: NDArray[np.float64] | None = None

    def __bool__(self) -> bool:
        return self.closed


class _Family(ABC):
    """What the closing number asks of a family of separators."""

    name: str
    may_be_zero = False

    @abstractmethod
    def number(self, n: int) -> int:
        """The fewest separators that can enclose a finite volume in n dimensions."""

    @abstractmethod
    def probability(self, n: int, k: int) -> float:
        """The chance that k spherically symmetric normals leave no way out."""

    @abstractmethod
    def closure(self, normals: NDArray[np.float64]) -> Closure:
        """Whether these normals do, with the proof."""


class _Radial(_Family):
    name = "rbf"
    may_be_zero = True  # the row is a centre, not a normal

    def number(self, n: int) -> int:  # noqa: ARG002  a ball is a ball in any dimension
        return 1

    def probability(self, n: int, k: int) -> float:  # noqa: ARG002
        return 1.0

    def closure(self, normals: NDArray[np.float64]) -> Closure:  # noqa: ARG002
        return Closure(True, self.name)


class _Equality(_Family):
    name = "equality"

    def number(self, n: int) -> int:
        return n

    def probability(self, n: int, k: int) -> float:
        return float(k >= n)

    def closure(self, normals: NDArray[np.float64]) -> Closure:
        units, _ = unit_rows(normals)
        escape = _null_direction(units)
        if escape is not None:
            return Closure(False, self.name, escape=escape)
        _, _, order = qr(units.T, mode="economic", pivoting=True)
        basis = sorted(int(row) for row in order[: units.shape[1]])
        return Closure(True, self.name, basis=tuple(basis))


class _Halfspace(_Family):
    name = "halfspace"

    def number(self, n: int) -> int:
        return n + 1

    def probability(self, n: int, k: int) -> float:
        # Wendel (1962): the chance that k such vectors share an open half of the space.
        # Whole numbers until the one division: no float overflows, and no small chance cancels.
        return sum(comb(k - 1, i) for i in range(n, k)) / 2 ** (k - 1)

    def closure(self, normals: NDArray[np.float64]) -> Closure:
        """Push as far as the sides allow: the farthest step is the escape, its price the proof."""
        units, lengths = unit_rows(normals)
        escape = _null_direction(units)
        if escape is not None:
            return Closure(False, self.name, escape=escape)
        k, n = units.shape
        push = maximise(units.sum(axis=0), rows=-units, limits=np.zeros(k), bounds=[(-1, 1)] * n)
        if push.value > _TOLERANCE:
            return Closure(False, self.name, escape=push.x / np.linalg.norm(push.x))
        # At v = 0 no bound is active, so the dual prices p >= 0 give sum (1 + p_i) w_i = 0.
        combination = (1 + push.prices) / lengths
        return Closure(True, self.name, combination=combination / combination.max())


_FAMILIES: dict[str, _Family] = {f.name: f for f in (_Radial(), _Equality(), _Halfspace())}


def closing_number(family: str, n_features: int) -> int:
    """The fewest separators that enclose a finite, positive volume: 1, n or n + 1.

    Parameters
    ----------
    family : {"rbf", "equality", "halfspace"}
        The kind of separator.
    n_features : int
        The dimension n of the space.

    Returns
    -------
    int
        1 for RBF, n for equality and n + 1 for halfspace separators.

    Examples
    --------
    >>> from eqsep.theory import closing_number
    >>> [closing_number(family, 5) for family in ("rbf", "equality", "halfspace")]
    [1, 5, 6]
    """
    return look_up(family, _FAMILIES).number(check_dimension(n_features))


def closing_probability(family: str, n_features: int, k: int) -> float:
    """The chance that the normals of k random separators leave no way out: a bounded region.

    The normals are independent with a spherically symmetric distribution, as in a network at its
    start. For halfspaces this is one minus Wendel's formula, 1 - 2^(1-k) sum_{i<n} C(k-1, i).

    Offsets play no part: they never open a region, but they can make it empty. The chance that the
    region is bounded and not empty is `enclosing_probability`.

    Parameters
    ----------
    family : {"rbf", "equality", "halfspace"}
        The kind of separator.
    n_features : int
        The dimension n of the space.
    k : int
        The number of separators, at least 1.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    Thirty equality separators leave no way out of R^30, almost surely. Thirty-one halfspaces, their
    closing number, always do in practice, and sixty half of the time.

    >>> from eqsep.theory import closing_probability
    >>> closing_probability("equality", 30, 30)
    1.0
    >>> closing_probability("halfspace", 30, 31) < 1e-8
    True
    >>> closing_probability("halfspace", 30, 60)
    0.5
    """
    chosen = look_up(family, _FAMILIES)
    n = check_dimension(n_features)
    return chosen.probability(n, check_dimension(k, name="k"))


def is_closed(normals: ArrayLike, *, family: str = "equality") -> Closure:
    """Whether separators with these normals enclose a finite volume, with the proof.

    The lengths of the normals are free: only their directions count.

    Parameters
    ----------
    normals : array-like of shape (k, n_features)
        One normal vector w a row (a centre, for "rbf"). A halfspace is the side w.x + b >= 0.
    family : {"equality", "halfspace", "rbf"}, default="equality"
        The kind of separator.

    Returns
    -------
    Closure
        True in an `if` when the region is closed; carries the certificate either way.

    Examples
    --------
    >>> from eqsep.theory import is_closed
    >>> bool(is_closed([[1, 0], [1, 1]], family="equality"))
    True
    >>> triangle = is_closed([[1, 0], [0, 1], [-1, -1]], family="halfspace")
    >>> triangle.closed, triangle.combination
    (True, array([1., 1., 1.]))
    >>> corner = is_closed([[1, 0], [0, 1]], family="halfspace")
    >>> bool(corner), bool(min(corner.escape) >= 0)
    (False, True)
    """
    chosen = look_up(family, _FAMILIES)
    return chosen.closure(check_normals(normals, may_be_zero=chosen.may_be_zero))


def check_normals(normals: ArrayLike, *, may_be_zero: bool = False) -> NDArray[np.float64]:
    """The normals as a finite table of floats with no zero row, or an error that says why not."""
    table = np.asarray(normals, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise UserError(
            f"normals must be a table of shape (k, n_features) with at least one row, got shape "
            f"{table.shape}. A single normal goes in as [normal]."
        )
    if not np.isfinite(table).all():
        row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise UserError(
            f"normals must be finite, got {table[row]} in row {row}. Drop the row or impute it."
        )
    if not may_be_zero and not table.any(axis=1).all():
        row = int(np.flatnonzero(~table.any(axis=1))[0])
        raise UserError(
            f"every normal must be non-zero, got zeros in row {row}. A separator without a "
            "direction bounds nothing: drop the row."
        )
    return table


def unit_rows(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows of length one, and the lengths they had."""
    tops = np.abs(table).max(
        axis=1
    )  # divided out first, so that squares neither over- nor underflow
    scaled = table / tops[:, None]
    lengths = np.linalg.norm(scaled, axis=1)
    return scaled / lengths[:, None], tops * lengths


def _null_direction(units: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """A unit vector orthogonal to every row, if the rows leave one."""
    _, values, directions = np.linalg.svd(units)
    rank = int(np.sum(values > _TOLERANCE))
    return None if rank == units.shape[1] else directions[-1]
