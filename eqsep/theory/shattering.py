"""Shattering: does a family realise every labelling of some points?"""

from typing import Literal, overload

from numpy.typing import ArrayLike

from eqsep.theory.arguments import look_up
from eqsep.theory.certificate import Hyperplane, Points, Shattering
from eqsep.theory.exact import Integers, as_rationals, homogeneous
from eqsep.theory.families import FAMILIES, PlaneFamily

Planes = tuple[Hyperplane, ...]


@overload
def shatters(points: ArrayLike, family: str, *, certificates: Literal[False] = False) -> bool: ...


@overload
def shatters(points: ArrayLike, family: str, *, certificates: Literal[True]) -> Shattering: ...


def shatters(points: ArrayLike, family: str, *, certificates: bool = False) -> bool | Shattering:
    """Whether the family realises all 2^m labellings of the points, exactly decided.

    Parameters
    ----------
    points : array-like of shape (m, n_features)
        The points: numbers, `fractions.Fraction`, or decimals as text such as "0.1".
    family : {"epsilon-equality", "hyper-ridge", "strict-equality", "halfspace"}
        The planes, as in `separating_hyperplane`.
    certificates : bool, default=False
        Return the evidence: a plane for each labelling, or a labelling that has none.

    Examples
    --------
    The corners of a square: halfspaces fail at XOR, equality separators do not.

    >>> square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> shatters(square, "strict-equality")
    True
    >>> shatters(square, "halfspace", certificates=True).refused
    (1, 0, 0, 1)
    >>> proof = shatters(square, "hyper-ridge", certificates=True)
    >>> len(proof.planes), proof.verify()
    (16, True)
    """
    answer = _certify(look_up(family, FAMILIES), as_rationals(points))
    return answer if certificates else bool(answer)


def _certify(family: PlaneFamily, points: Points) -> Shattering:
    """The certificate that the family shatters the points, or the labelling that it refuses."""
    rows = homogeneous(points)
    limit = family.limit(rows.shape[1] - 1)
    refused = family.obstruction(rows) if len(rows) > limit else None
    if refused is None:
        # What cannot be done on a part of the points cannot be done on all of them.
        planes, refused = _realise_all(family, rows[: limit + 1])
    if refused is None:
        return Shattering(family.name, points, planes)
    rest = [0] * (len(points) - len(refused))
    return Shattering(family.name, points, refused=(*refused, *rest))


def _realise_all(family: PlaneFamily, rows: Integers) -> tuple[Planes, list[int] | None]:
    """A plane for every labelling and None, or no planes and a labelling that has none."""
    planes = family.proposals(rows)
    # Those with classes of equal size are the likeliest to fail.
    for number in sorted(range(2 ** len(rows)), key=lambda i: abs(2 * i.bit_count() - len(rows))):
        if number not in planes:
            labels = [number >> place & 1 for place in reversed(range(len(rows)))]
            plane = family.separate(rows, labels)
            if plane is None:
                return (), labels
            planes[number] = plane
    return tuple(planes[number] for number in range(2 ** len(rows))), None
