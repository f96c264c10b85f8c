"""The volume of the region that separators enclose."""

from abc import ABC, abstractmethod
from math import gamma, pi, prod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr
from scipy.spatial import ConvexHull, HalfspaceIntersection

from eqsep.errors import UserError
from eqsep.theory.checks import look_up
from eqsep.theory.closing import check_normals, is_closed, unit_rows
from eqsep.theory.programme import maximise

_TOLERANCE = 1e-9  # an inscribed ball below this, in units of the region's own size, is no ball


class _Region(ABC):
    name: str
    may_be_zero = False

    @abstractmethod
    def volume(
        self, normals: NDArray[np.float64], offsets: NDArray[np.float64], widths: NDArray
    ) -> float:
        """The volume of the intersection; inf where it is open, 0.0 where it is empty."""


class _Halfspaces(_Region):
    name = "halfspace"

    def volume(
        self,
        normals: NDArray[np.float64],
        offsets: NDArray[np.float64],
        widths: NDArray,  # noqa: ARG002  a side has no width
    ) -> float:
        units, lengths = unit_rows(normals)
        return _polytope_volume(units, offsets / lengths)


class _Slabs(_Region):
    name = "equality"

    def volume(
        self, normals: NDArray[np.float64], offsets: NDArray[np.float64], widths: NDArray
    ) -> float:
        n = normals.shape[1]
        if not is_closed(normals, family="equality"):
            units, lengths = unit_rows(normals)
            return _polytope_volume(*both_sides(units, offsets / lengths, widths / lengths))
        # In units of its own half-width a slab is |u| <= 1: n independent ones make the cube
        # [-1, 1]^n, and the others cut it.
        A, c = normals / widths[:, None], offsets / widths
        _, _, order = qr(unit_rows(A)[0].T, mode="economic", pivoting=True)
        base, rest = order[:n], order[n:]
        _, log_scale = np.linalg.slogdet(A[base])
        cube = float(2.0**n * np.exp(-log_scale))
        if len(rest) == 0:
            return cube
        cuts = np.linalg.solve(A[base].T, A[rest].T).T
        shifts = c[rest] - cuts @ c[base]
        units, lengths = unit_rows(np.vstack([np.eye(n), cuts]))
        offsets = np.concatenate([np.zeros(n), shifts]) / lengths
        return cube * _polytope_volume(*both_sides(units, offsets, 1 / lengths)) / 2.0**n


class _Ball(_Region):
    name = "rbf"
    may_be_zero = True

    def volume(
        self,
        normals: NDArray[np.float64],
        offsets: NDArray[np.float64],  # noqa: ARG002  moving a ball keeps its volume
        widths: NDArray,
    ) -> float:
        if len(normals) != 1:
            raise UserError(
                f"the volume of RBF separators is known for one ball, got {len(normals)} rows. "
                "Pass one centre at a time."
            )
        n = normals.shape[1]
        return float(pi ** (n / 2) / gamma(n / 2 + 1) * widths[0] ** n)


_REGIONS: dict[str, _Region] = {r.name: r for r in (_Halfspaces(), _Slabs(), _Ball())}


def region_volume(
    normals: ArrayLike,
    offsets: ArrayLike = 0.0,
    *,
    family: str = "equality",
    epsilon: ArrayLike = 1.0,
) -> float:
    """The volume of the region where all separators agree: vol of the intersection.

    n slabs in R^n make a parallelepiped of volume 2^n prod epsilon_i / |det W|, computed by that
    formula. More slabs, and halfspaces, go through a half-space intersection.

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

    Returns
    -------
    float
        The volume: inf where the region is open, 0.0 where it is empty or flat (thinner than 1e-9
        of the largest offset; n slabs have no such limit).

    Examples
    --------
    >>> from eqsep.theory import region_volume
    >>> region_volume([[1, 0], [0, 1]], epsilon=[1, 2])
    8.0
    >>> region_volume([[1, 0], [0, 1]], family="halfspace")
    inf
    >>> round(region_volume([[1, 0], [0, 1], [-1, -1]], [0, 0, 1], family="halfspace"), 12)
    0.5
    """
    region = look_up(family, _REGIONS)
    table = check_normals(normals, may_be_zero=region.may_be_zero)
    shifts = _one_a_row(offsets, "offsets", rows=len(table))
    widths = _one_a_row(epsilon, "epsilon", rows=len(table))
    if (widths <= 0).any():
        raise UserError(f"epsilon must be positive, got {widths.min()}. A flat slab has volume 0.")
    return region.volume(table, shifts, widths)


def _one_a_row(values: ArrayLike, name: str, *, rows: int) -> NDArray[np.float64]:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape not in ((), (rows,)) or not np.isfinite(vector).all():
        raise UserError(
            f"{name} must be one finite number, or one for each of the {rows} normals, got "
            f"{values!r}."
        )
    return np.broadcast_to(vector, (rows,)).astype(np.float64)


def both_sides(
    units: NDArray[np.float64], offsets: NDArray[np.float64], widths: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The slab |u.x + b| <= e as the two halfspaces u.x + b + e >= 0 and -u.x - b + e >= 0."""
    return np.vstack([units, -units]), np.concatenate([widths + offsets, widths - offsets])


def _polytope_volume(units: NDArray[np.float64], offsets: NDArray[np.float64]) -> float:
    """The volume of {x : units x + offsets >= 0}."""
    size = np.abs(offsets).max()
    offsets = offsets / size if size > 0 else offsets
    centre, radius = inscribed_ball(units, offsets)
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
    return float(scale * _round_volume(dual))


def _round_volume(dual: NDArray[np.float64]) -> float:
    """The volume of {v : dual v <= 1}."""
    if dual.shape[1] == 1:
        return float(1 / dual.max() - 1 / dual.min())
    sides = np.column_stack([dual, -np.ones(len(dual))])
    corners = HalfspaceIntersection(sides, np.zeros(dual.shape[1])).intersections
    return float(ConvexHull(corners).volume)


def inscribed_ball(
    units: NDArray[np.float64], offsets: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """The centre and radius (1 at most, below 0 where empty) of a largest inscribed ball."""
    n = units.shape[1]
    best = maximise(
        np.append(np.zeros(n), 1.0),
        rows=np.column_stack([-units, np.ones(len(units))]),
        limits=offsets,
        bounds=[(None, None)] * n + [(None, 1.0)],
    )
    return best.x[:n], float(best.x[n])
