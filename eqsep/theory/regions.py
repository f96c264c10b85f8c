"""Regions that separators enclose: closing numbers, closed regions and volumes.

A separator takes part with the region it calls normal. The ball ||x - w|| <= r of "rbf" is closed;
slabs |w.x + b| <= epsilon are where the normals span the space; sides w.x + b >= 0 where they also
have sum y_i w_i = 0 for some y > 0 (Stiemke's lemma). Offsets and widths never open a region.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, gamma, pi, prod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr
from scipy.spatial import ConvexHull, HalfspaceIntersection

from eqsep.errors import UserError
from eqsep.theory.arguments import check_dimension, look_up
from eqsep.theory.exact import Bounds, maximise

Array = NDArray[np.float64]
# On unit normals, a singular value or slope below this is zero; so is the radius of an inscribed
# ball, in units of the region's size.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Closure:
    """Whether separators leave no way out, with the proof. True in an `if` when they do.

    The region that they enclose is then bounded whatever the offsets are; it may be empty.
    """

    closed: bool
    family: str
    basis: tuple[int, ...] | None = None  #: Slabs, when closed: rows with independent normals.
    combination: Array | None = None  #: Halfspaces, when closed: y > 0 with sum_i y_i w_i = 0.
    #: When open: a unit vector v along which the region never ends; w_i.v is 0 for every slab, and
    #: at least 0 for every halfspace.
    escape: Array | None = None

    def __bool__(self) -> bool:
        return self.closed


def closing_number(family: str, n_features: int) -> int:
    """The fewest separators that enclose a finite, positive volume of R^n: 1, n or n + 1.

    Parameters
    ----------
    family : {"rbf", "equality", "halfspace"}
    n_features : int
        The dimension n of the space.

    Examples
    --------
    >>> [closing_number(family, 5) for family in ("rbf", "equality", "halfspace")]
    [1, 5, 6]
    """
    n = check_dimension(n_features)
    return look_up(family, {"rbf": 1, "equality": n, "halfspace": n + 1})


def closing_probability(family: str, n_features: int, k: int) -> float:
    """The chance that the normals of k random separators leave no way out: a bounded region.

    The normals are independent with a spherically symmetric distribution, as in a network at its
    start. For halfspaces this is one minus Wendel's formula, 1 - 2^(1-k) sum_{i<n} C(k-1, i).
    Offsets play no part: they never open a region, but they can make it empty.

    Parameters
    ----------
    family, n_features
        As in `closing_number`.
    k : int
        The number of separators, at least 1.

    Examples
    --------
    >>> closing_probability("equality", 30, 30), closing_probability("halfspace", 30, 60)
    (1.0, 0.5)
    >>> closing_probability("halfspace", 30, 31) < 1e-8
    True
    """
    n, k = check_dimension(n_features), check_dimension(k, name="k")
    if family != "halfspace":
        look_up(family, _CLOSURES)
        return 1.0 if family == "rbf" else float(k >= n)
    # Wendel (1962): the chance that k such vectors share an open half of the space.
    # Whole numbers until the one division: no float overflows, and no small chance cancels.
    return sum(comb(k - 1, i) for i in range(n, k)) / 2 ** (k - 1)


def is_closed(normals: ArrayLike, *, family: str = "equality") -> Closure:
    """Whether separators with these normals enclose a finite volume, with the proof.

    Parameters
    ----------
    normals : array-like of shape (k, n_features)
        One normal vector w a row, of any length (a centre, for "rbf"). A halfspace is the side
        w.x + b >= 0.
    family : {"equality", "halfspace", "rbf"}, default="equality"

    Examples
    --------
    >>> triangle = is_closed([[1, 0], [0, 1], [-1, -1]], family="halfspace")
    >>> triangle.closed, triangle.combination
    (True, array([1., 1., 1.]))
    >>> corner = is_closed([[1, 0], [0, 1]], family="halfspace")
    >>> bool(corner), bool(min(corner.escape) >= 0)
    (False, True)
    """
    return look_up(family, _CLOSURES)(_check_normals(normals, may_be_zero=family == "rbf"))


def region_volume(
    normals: ArrayLike, offsets: ArrayLike = 0, *, family: str = "equality", epsilon: ArrayLike = 1
) -> float:
    """The volume of the intersection of all separators' regions; inf where it is open.

    n slabs in R^n make a parallelepiped of volume 2^n prod epsilon_i / |det W|. More slabs, and
    halfspaces, have volume 0 where thinner than 1e-9 of the largest offset.

    Parameters
    ----------
    normals : array-like of shape (k, n_features)
        One normal vector w a row; the centre, for "rbf".
    offsets : float or array-like of shape (k,), default=0
        The offsets b of w.x + b. Not used for "rbf".
    family : {"equality", "halfspace", "rbf"}, default="equality"
        Slabs |w.x + b| <= epsilon, sides w.x + b >= 0, or one ball ||x - w|| <= epsilon.
    epsilon : float or array-like of shape (k,), default=1
        Half-widths of the slabs, or the radius of the ball. Not used for halfspaces.

    Examples
    --------
    >>> region_volume([[1, 0], [0, 1]], epsilon=[1, 2])
    8.0
    >>> region_volume([[1, 0], [0, 1]], family="halfspace")
    inf
    """
    volume = look_up(family, _VOLUMES)
    table = _check_normals(normals, may_be_zero=family == "rbf")
    shifts = _one_a_row(offsets, "offsets", rows=len(table))
    widths = _one_a_row(epsilon, "epsilon", rows=len(table))
    if (widths <= 0).any():
        raise UserError(f"epsilon must be positive, got {widths.min()}. A flat slab has volume 0.")
    return volume(table, shifts, widths)


def _slab_closure(normals: Array) -> Closure:
    units, _ = _unit_rows(normals)
    escape = _null_direction(units)
    if escape is not None:
        return Closure(False, "equality", escape=escape)
    _, _, order = qr(units.T, mode="economic", pivoting=True)
    basis = sorted(int(row) for row in order[: units.shape[1]])
    return Closure(True, "equality", basis=tuple(basis))


def _halfspace_closure(normals: Array) -> Closure:
    """Push as far as the sides allow: the farthest step is the escape, its price the proof."""
    units, lengths = _unit_rows(normals)
    escape = _null_direction(units)
    if escape is not None:
        return Closure(False, "halfspace", escape=escape)
    k, n = units.shape
    push = maximise(units.sum(axis=0), rows=-units, limits=np.zeros(k), bounds=[(-1, 1)] * n)
    if push.value > _TOLERANCE:
        return Closure(False, "halfspace", escape=push.x / np.linalg.norm(push.x))
    # At v = 0 no bound is active, so the dual prices p >= 0 give sum (1 + p_i) w_i = 0.
    combination = (1 + push.prices) / lengths
    return Closure(True, "halfspace", combination=combination / combination.max())


def _ball_volume(centres: Array, _: Array, radii: Array) -> float:
    if len(centres) != 1:
        raise UserError(
            f"the volume of RBF separators is known for one ball, got {len(centres)} rows. "
            "Pass one centre at a time."
        )
    n = centres.shape[1]
    return float(pi ** (n / 2) / gamma(n / 2 + 1) * radii[0] ** n)


def _slab_volume(normals: Array, offsets: Array, widths: Array) -> float:
    n = normals.shape[1]
    if not _slab_closure(normals):
        units, lengths = _unit_rows(normals)
        return _polytope_volume(*_both_sides(units, offsets / lengths, widths / lengths))
    # In units of its own half-width a slab is |u| <= 1: n independent ones make the cube
    # [-1, 1]^n, and the others cut it.
    A, c = normals / widths[:, None], offsets / widths
    _, _, order = qr(_unit_rows(A)[0].T, mode="economic", pivoting=True)
    base, rest = order[:n], order[n:]
    _, log_scale = np.linalg.slogdet(A[base])
    cube = float(2.0**n * np.exp(-log_scale))
    if len(rest) == 0:
        return cube
    cuts = np.linalg.solve(A[base].T, A[rest].T).T
    shifts = c[rest] - cuts @ c[base]
    units, lengths = _unit_rows(np.vstack([np.eye(n), cuts]))
    offsets = np.concatenate([np.zeros(n), shifts]) / lengths
    return cube * _polytope_volume(*_both_sides(units, offsets, 1 / lengths)) / 2.0**n


def _halfspace_volume(normals: Array, offsets: Array, _: Array) -> float:
    units, lengths = _unit_rows(normals)
    return _polytope_volume(units, offsets / lengths)


_CLOSURES: dict[str, Callable[[Array], Closure]] = {
    "rbf": lambda _: Closure(True, "rbf"),
    "equality": _slab_closure,
    "halfspace": _halfspace_closure,
}
_VOLUMES: dict[str, Callable[[Array, Array, Array], float]] = {
    "rbf": _ball_volume,
    "equality": _slab_volume,
    "halfspace": _halfspace_volume,
}


def _check_normals(normals: ArrayLike, *, may_be_zero: bool = False) -> Array:
    """The normals as a finite table of floats without zero rows."""
    table = np.asarray(normals, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise UserError(
            f"normals must be a table of shape (k, n_features) with at least one row, got shape "
            f"{table.shape}. A single normal goes in as [normal]."
        )
    for row in np.flatnonzero(~np.isfinite(table).all(axis=1)):
        raise UserError(
            f"normals must be finite, got {table[row]} in row {row}. Drop the row or impute it."
        )
    for row in () if may_be_zero else np.flatnonzero(~table.any(axis=1)):  # a centre may be zero
        raise UserError(
            f"every normal must be non-zero, got zeros in row {row}. A separator without a "
            "direction bounds nothing: drop the row."
        )
    return table


def _one_a_row(values: ArrayLike, name: str, *, rows: int) -> Array:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape not in ((), (rows,)) or not np.isfinite(vector).all():
        raise UserError(
            f"{name} must be one finite number, or one for each of the {rows} normals, got "
            f"{values!r}."
        )
    return np.broadcast_to(vector, (rows,)).astype(np.float64)


def _unit_rows(table: Array) -> tuple[Array, Array]:
    """Rows of length one, and the lengths they had."""
    tops = np.abs(table).max(axis=1)  # divided out first: squares neither over- nor underflow
    scaled = table / tops[:, None]
    lengths = np.linalg.norm(scaled, axis=1)
    return scaled / lengths[:, None], tops * lengths


def _null_direction(units: Array) -> Array | None:
    """A unit vector orthogonal to every row, if the rows leave one."""
    _, values, directions = np.linalg.svd(units)
    return None if int(np.sum(values > _TOLERANCE)) == units.shape[1] else directions[-1]


def _both_sides(units: Array, offsets: Array, widths: Array) -> tuple[Array, Array]:
    """The slab |u.x + b| <= e as the two halfspaces u.x + b + e >= 0 and -u.x - b + e >= 0."""
    return np.vstack([units, -units]), np.concatenate([widths + offsets, widths - offsets])


def _inscribed_ball(units: Array, offsets: Array) -> tuple[Array, float]:
    """The centre and radius (1 at most, below 0 where empty) of a largest inscribed ball."""
    n = units.shape[1]
    gain, rows = np.append(np.zeros(n), 1.0), np.column_stack([-units, np.ones(len(units))])
    bounds: Bounds = [(None, None)] * n + [(None, 1.0)]
    best = maximise(gain, rows=rows, limits=offsets, bounds=bounds)
    return best.x[:n], float(best.x[n])


def _polytope_volume(units: Array, offsets: Array) -> float:
    """The volume of {x : units x + offsets >= 0}."""
    size = np.abs(offsets).max()
    offsets = offsets / size if size > 0 else offsets
    centre, radius = _inscribed_ball(units, offsets)
    if radius < _TOLERANCE:
        return 0.0
    if not is_closed(units, family="halfspace"):
        return float("inf")
    n = units.shape[1]
    # The body seen from its centre is {v : D v <= 1}. Whitening the rows of D makes it round, so
    # that needles and pancakes are as easy as cubes.
    dual = -units / (units @ centre + offsets)[:, None]
    root = np.linalg.cholesky(dual.T @ dual / len(dual))
    dual = np.linalg.solve(root, dual.T).T
    scale = size**n / prod(np.diag(root))
    if n == 1:
        return float(scale * float(1 / dual.max() - 1 / dual.min()))
    sides = np.column_stack([dual, -np.ones(len(dual))])
    corners = HalfspaceIntersection(sides, np.zeros(n)).intersections
    return float(scale * float(ConvexHull(corners).volume))
