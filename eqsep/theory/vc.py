"""The VC dimension of separators: what is proved, from below and from above."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

from eqsep.theory.checks import check_dimension, look_up
from eqsep.theory.counting import epsilon_limit, ridge_limit
from eqsep.theory.levels import LIMITS
from eqsep.theory.witnesses import WITNESSES


@dataclass(frozen=True)
class VCBounds:
    """lower <= VC dimension <= upper, each with its source. Unpacks as (lower, upper).

    Attributes
    ----------
    lower, upper : int
        The bounds.
    lower_source, upper_source : str
        Where each comes from, in a line.
    """

    lower: int
    upper: int
    lower_source: str
    upper_source: str

    def __iter__(self) -> Iterator[int]:
        return iter((self.lower, self.upper))

    @property
    def is_exact(self) -> bool:
        """Whether the two bounds meet."""
        return self.lower == self.upper


class _Bound(NamedTuple):
    value: int
    source: str


class _Family(ABC):
    name: str

    @abstractmethod
    def lower(self, n: int) -> _Bound:
        """The most points known to be shattered."""

    @abstractmethod
    def upper(self, n: int) -> _Bound:
        """The fewest points above which none are."""


class _Halfspace(_Family):
    name = "halfspace"

    def lower(self, n: int) -> _Bound:
        return _Bound(n + 1, "the corners of a simplex")

    def upper(self, n: int) -> _Bound:
        return _Bound(n + 1, "Radon's theorem")


class _StrictEquality(_Family):
    name = "strict-equality"

    def lower(self, n: int) -> _Bound:
        return _Bound(2 * n + 1, "points in general position: a plane through the smaller class")

    def upper(self, n: int) -> _Bound:
        source = "of 2n + 2 points some n + 1 and the others, neither on a plane of its own"
        return _Bound(2 * n + 1, source)


class _HyperRidge(_Family):
    name = "hyper-ridge"

    def lower(self, n: int) -> _Bound:
        return _ridges(n)[n]

    def upper(self, n: int) -> _Bound:
        epsilon = _EpsilonEquality().upper(n)
        beside = _Bound(
            epsilon.value - 1,
            f"one less than epsilon-equality, which adds a far point: {epsilon.source}",
        )
        counted = _Bound(ridge_limit(n), "counting the cells of m pairs of parallel hyperplanes")
        known = [*_by_level(self.name, n), _RIDGE_IN_SPACE.get(n, beside)]
        return min(beside, counted, *known, key=_by_value)


class _EpsilonEquality(_Family):
    name = "epsilon-equality"

    def lower(self, n: int) -> _Bound:
        ridges = _ridges(n)
        best = [_POINT, *_witness(self.name, 1)]
        for dimension in range(2, n + 1):
            candidates = [
                *_witness(self.name, dimension),
                _Bound(ridges[dimension].value + 1, "slabs around class 1, and one far point"),
                _Bound(2 * dimension + 1, "thin slabs do what strict equality does"),
                *_built_up(best, ridges, dimension),
            ]
            best.append(max(candidates, key=_by_value))
        return best[n]

    def upper(self, n: int) -> _Bound:
        squares = _Bound(comb(n + 2, 2), "a slab is the sign of a polynomial of degree two")
        counted = _Bound(epsilon_limit(n), "counting the cells of m pairs of parallel hyperplanes")
        return min(squares, counted, *_by_level(self.name, n), key=_by_value)


_FAMILIES: dict[str, _Family] = {
    family.name: family
    for family in (_Halfspace(), _StrictEquality(), _HyperRidge(), _EpsilonEquality())
}
_POINT = _Bound(1, "one point of R^0")
_RIDGE_IN_SPACE = {
    3: _Bound(
        8, "four colours: of nine corners of a polyhedron some three have no edge between them"
    )
}
_LARGEST = max(n for _, n in WITNESSES)


def vc_dimension(family: str, n_features: int) -> VCBounds:
    """Proved bounds on the VC dimension of a family of separators in R^n.

    Lower bounds rest on point sets that ship with the package (`eqsep.theory.witnesses`), which
    `shatters` confirms exactly, and on joining them; upper bounds on the proofs in the
    documentation's note on the VC dimension.

    Parameters
    ----------
    family : {"epsilon-equality", "hyper-ridge", "strict-equality", "halfspace"}
        The planes, as in `separating_hyperplane`.
    n_features : int
        The dimension n of the space.

    Returns
    -------
    VCBounds
        Unpacks as (lower, upper); says where each bound comes from.

    Examples
    --------
    >>> from eqsep.theory import vc_dimension
    >>> lower, upper = vc_dimension("epsilon-equality", 3)
    >>> lower, upper
    (10, 10)
    >>> vc_dimension("epsilon-equality", 3).upper_source
    'a slab is the sign of a polynomial of degree two'
    """
    chosen = look_up(family, _FAMILIES)
    n = check_dimension(n_features)
    lower, upper = chosen.lower(n), chosen.upper(n)
    return VCBounds(lower.value, upper.value, lower.source, upper.source)


def _by_value(bound: _Bound) -> int:
    return bound.value


def _witness(family: str, n: int) -> list[_Bound]:
    """The point set of the package in this dimension, if it has one."""
    points = WITNESSES.get((family, n), ())
    return [_Bound(len(points), f"{len(points)} points with a plane for each labelling")] * bool(
        points
    )


def _by_level(family: str, n: int) -> list[_Bound]:
    """The bound from counting slabs by the points that they hold, where it has been worked out."""
    limit = LIMITS[family].get(n)
    source = "counting slabs level by level, by the number of points that they hold"
    return [] if limit is None else [_Bound(limit, source)]


def _built_up(first: list[_Bound], ridges: list[_Bound], n: int) -> list[_Bound]:
    """Bounds in R^n, n >= 2, from those in fewer dimensions.

    A lift: two more points, close together, above the space of the others. A join: two sets in
    skew subspaces of dimensions a + b + 1 = n, each with its own slab.
    """
    below = first[n - 1].value
    lift = _Bound(below + 2, f"{below} points of R^{n - 1} and two close together above them")
    joins = [
        _Bound(
            first[n - 1 - b].value + ridges[b].value,
            f"{first[n - 1 - b].value} points of R^{n - 1 - b} and {ridges[b].value} of R^{b} in "
            "skew subspaces",
        )
        for b in range(1, min(n, _LARGEST + 1))
    ]
    return [lift, *joins]


def _ridges(n: int) -> list[_Bound]:
    """The lower bounds for hyper-ridges in the dimensions 0 to n."""
    best = [_POINT, *_witness("hyper-ridge", 1)]
    for dimension in range(2, n + 1):
        candidates = [*_witness("hyper-ridge", dimension), *_built_up(best, best, dimension)]
        best.append(max(candidates, key=_by_value))
    return best
