"""The VC dimension of separators: what is proved, from below and from above."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb
from operator import attrgetter
from typing import NamedTuple

from eqsep.theory.arguments import check_dimension, look_up
from eqsep.theory.counting import LIMITS, epsilon_limit, ridge_limit

# Point sets shattered by slabs, the evidence behind the lower bounds. The five points of R^2 are a
# regular pentagon; the others were found by simulated annealing, as in `find_shattered`, and
# rounded. `shatters(WITNESSES[family, n], family)` confirms each in exact arithmetic: the decimals
# are text so that they are taken at their exact value.
_TABLES = {
    ("epsilon-equality", 1): "0, 1, 2",
    ("epsilon-equality", 2): """
        0.356 0.707, 0.011 1.786, 0.127 0.402, 1.883 -1.348, -1.27 0.969, -1.173 1.944""",
    ("epsilon-equality", 3): """
        1.945 1.519 0.089, 0.556 0.898 -0.576, -0.986 0.851 1.22, -0.551 1.903 0.124,
        0.113 -0.077 -1.901, 0.245 1.062 0.594, -0.47 -0.217 -0.592, 0.119 -0.064 0.585,
        -0.082 -1.1 -0.759, 0.828 -0.63 -0.773""",
    ("epsilon-equality", 4): """
        -0.76 7.84 3.07 -5.85, -1.49 0.39 1.13 -1.83, -1.56 -3.82 -2.47 1.47, -4.32 3.39 0.59 -3.6,
        -3.55 -1.69 1.49 -3.83, -4.78 -1.18 -0.92 -1.13, 1.23 -1.38 -1.15 3.05,
        -3.8 0.91 1.35 -1.39, -2.36 2.49 -0.46 -3.03, 0.79 1.21 -2.72 1.79, -3.37 1.69 -3.03 0.38,
        1.11 -0.87 -1 0.64, -2.6 -3.84 -0.08 0.95""",
    ("epsilon-equality", 5): """
        -0.905 -0.186 -0.526 -1.217 0.431, -0.753 0.273 2.315 -0.09 -0.101,
        0.964 -1.972 -0.303 -0.658 0.58, -1.722 -1.093 0.736 0.108 1.488,
        -2.354 1.008 -0.482 0.5 0.1, 0.227 -0.638 1.42 -1.307 1.157,
        0.072 -0.845 -0.724 1.874 0.631, 0.898 1.058 -1.158 -1.738 1.458,
        -0.09 -0.813 -0.833 0.553 2.108, -0.451 -0.623 -1.632 0.033 -0.702,
        -0.827 1.4 0.565 0.112 1.554, 0.48 1.701 0.501 1.858 1.381, 0.746 0.329 0.715 -1.623 -0.613,
        0.319 -0.781 1.903 1.465 0.81, -0.201 1.423 -0.791 0.372 0.378,
        0.393 0.42 1.096 1.087 -0.644""",
    ("hyper-ridge", 1): "0, 1",
    ("hyper-ridge", 2): "0 1, 1 0.3, 0.6 -0.8, -0.6 -0.8, -1 0.3",
    ("hyper-ridge", 3): """
        -0.82 0.41 0.41, -0.04 -0.96 -0.26, 0.8 0.58 -0.14, -0.81 -0.17 -0.56, -0.37 0.34 0.86,
        -0.5 -0.37 0.78, 0.09 0.3 -0.95, 0.93 -0.35 -0.14""",
    ("hyper-ridge", 4): """
        -0.45 -0.2 0.71 -0.51, 0.47 0.5 0.13 0.71, -0.22 -0.77 -0.1 0.59, -0.48 -0.57 -0.61 -0.27,
        -0.4 0.79 0.24 0.41, -0.63 -0.05 -0.44 0.63, -0.05 -0.94 0.28 -0.16, -0.56 -0.16 0.26 -0.77,
        0.17 0.92 -0.21 0.28, -0.89 -0.16 0.33 0.27, 0.48 -0.14 -0.69 0.51""",
    ("hyper-ridge", 5): """
        0.23 0.0042 0.3196 -0.7808 -0.485, 0.204 0.5038 0.832 0.109 -0.0208,
        -0.2505 0.3525 0.8342 -0.1158 0.322, 0.1656 0.3079 -0.9128 -0.141 0.1572,
        0.0355 -0.1962 0.4621 0.8622 0.0575, 0.4801 -0.7076 -0.3911 -0.1063 0.3234,
        -0.2709 -0.1966 -0.168 -0.8808 -0.2898, -0.1432 0.3229 -0.5044 -0.5634 0.5508,
        -0.0903 0.9739 -0.1325 -0.1546 0.0435, -0.1738 -0.5879 0.4952 0.0679 -0.6118,
        0.5935 -0.5943 -0.2336 0.3876 -0.2996, -0.2635 0.2442 -0.3263 -0.5265 -0.698,
        0.5377 0.2601 -0.2085 -0.5773 0.5162, -0.6829 0.6077 0.3728 0.1311 -0.0899""",
}
WITNESSES: dict[tuple[str, int], tuple[tuple[str, ...], ...]] = {
    key: tuple(tuple(point.split()) for point in table.split(",")) for key, table in _TABLES.items()
}


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

    Lower bounds rest on point sets that ship with the package (`eqsep.theory.WITNESSES`), which
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
_LARGEST_WITNESSED = max(n for _, n in WITNESSES)
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
    """The point set of the package in this dimension, if it has one."""
    size = len(WITNESSES.get((family, n), ()))
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
