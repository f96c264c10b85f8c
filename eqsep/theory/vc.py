"""The VC dimension of separators: what is proved, from below and from above."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb
from operator import attrgetter
from typing import NamedTuple

from eqsep.theory.arguments import check_dimension, look_up
from eqsep.theory.counting import LIMITS, epsilon_limit, ridge_limit

# How many points slabs are known to shatter, by dimension: `paper.theory.witnesses` has the points.
_WITNESSED = {
    "epsilon-equality": {1: 3, 2: 6, 3: 10, 4: 13, 5: 16},
    "hyper-ridge": {1: 2, 2: 5, 3: 8, 4: 11, 5: 14},
}
_LARGEST_WITNESSED = max(max(sizes) for sizes in _WITNESSED.values())


@dataclass(frozen=True)
class VCBounds:
    """lower <= VC dimension <= upper, each with its source in a line. Unpacks as (lower, upper)."""

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


def vc_dimension(family: str, n_features: int) -> VCBounds:
    """Proved bounds on the VC dimension of a family of separators in R^n.

    Lower bounds rest on sets of points (`paper.theory.WITNESSES` in the repository), which
    `shatters` confirms exactly, and on joining them; upper bounds on the proofs in the
    documentation's note on the VC dimension.

    Parameters
    ----------
    family : {"epsilon-equality", "hyper-ridge", "strict-equality", "halfspace"}
        The planes, as in `separating_hyperplane`.
    n_features : int
        The dimension n of the space.

    Examples
    --------
    >>> tuple(vc_dimension("epsilon-equality", 3))
    (10, 10)
    >>> vc_dimension("epsilon-equality", 3).upper_source
    'a slab is the sign of a polynomial of degree two'
    """
    lower, upper = look_up(family, _BOUNDS)(check_dimension(n_features))
    return VCBounds(lower.value, upper.value, lower.source, upper.source)


class _Bound(NamedTuple):
    value: int
    source: str


_POINT = _Bound(1, "one point of R^0")
_VALUE = attrgetter("value")


def _halfspace(n: int) -> tuple[_Bound, _Bound]:
    return _Bound(n + 1, "the corners of a simplex"), _Bound(n + 1, "Radon's theorem")


def _strict_equality(n: int) -> tuple[_Bound, _Bound]:
    lower = "points in general position: a plane through the smaller class"
    upper = "of 2n + 2 points some n + 1 and the others, neither on a plane of its own"
    return _Bound(2 * n + 1, lower), _Bound(2 * n + 1, upper)


def _hyper_ridge(n: int) -> tuple[_Bound, _Bound]:
    epsilon = _epsilon_upper(n)
    one_less = f"one less than epsilon-equality, which adds a far point: {epsilon.source}"
    uppers = [_Bound(epsilon.value - 1, one_less), *_counted("hyper-ridge", n, ridge_limit(n))]
    if n == 3:
        corners = "of nine corners of a polyhedron some three have no edge between them"
        uppers.append(_Bound(8, f"four colours: {corners}"))
    return _ridges(n)[n], min(uppers, key=_VALUE)


def _epsilon_equality(n: int) -> tuple[_Bound, _Bound]:
    ridges = _ridges(n)
    best = [_POINT, *_witness("epsilon-equality", 1)]
    for dimension in range(2, n + 1):
        candidates = [
            *_witness("epsilon-equality", dimension),
            _Bound(ridges[dimension].value + 1, "slabs around class 1, and one far point"),
            _Bound(2 * dimension + 1, "thin slabs do what strict equality does"),
            *_built_up(best, ridges, dimension),
        ]
        best.append(max(candidates, key=_VALUE))
    return best[n], _epsilon_upper(n)


_BOUNDS: dict[str, Callable[[int], tuple[_Bound, _Bound]]] = {
    "halfspace": _halfspace,
    "strict-equality": _strict_equality,
    "hyper-ridge": _hyper_ridge,
    "epsilon-equality": _epsilon_equality,
}


def _epsilon_upper(n: int) -> _Bound:
    squares = _Bound(comb(n + 2, 2), "a slab is the sign of a polynomial of degree two")
    return min(squares, *_counted("epsilon-equality", n, epsilon_limit(n)), key=_VALUE)


def _counted(family: str, n: int, limit: int) -> list[_Bound]:
    """The bound from counting cells, and that from counting level by level where it is known."""
    cells = _Bound(limit, "counting the cells of m pairs of parallel hyperplanes")
    source = "counting slabs level by level, by the number of points that they hold"
    return [cells, *([_Bound(LIMITS[family][n], source)] if n in LIMITS[family] else [])]


def _witness(family: str, n: int) -> list[_Bound]:
    """The set of points that is known in this dimension, if there is one."""
    size = _WITNESSED[family].get(n, 0)
    return [_Bound(size, f"{size} points with a plane for each labelling")] if size else []


def _built_up(first: list[_Bound], ridges: list[_Bound], n: int) -> list[_Bound]:
    """Bounds in R^n, n >= 2, from those in fewer dimensions, by two more points or two sets."""
    below = first[n - 1].value
    lift = _Bound(below + 2, f"{below} points of R^{n - 1} and two close together above them")
    joins = []
    for b in range(1, min(n, _LARGEST_WITNESSED + 1)):
        p, q = first[n - 1 - b].value, ridges[b].value
        source = f"{p} points of R^{n - 1 - b} and {q} of R^{b} in skew subspaces"
        joins.append(_Bound(p + q, source))
    return [lift, *joins]


def _ridges(n: int) -> list[_Bound]:
    """The lower bounds for hyper-ridges in the dimensions 0 to n."""
    best = [_POINT, *_witness("hyper-ridge", 1)]
    for dimension in range(2, n + 1):
        candidates = [*_witness("hyper-ridge", dimension), *_built_up(best, best, dimension)]
        best.append(max(candidates, key=_VALUE))
    return best
