"""Shattering: does a family of separators realise every labelling of some points?"""

from typing import Literal, overload

from numpy.typing import ArrayLike

from eqsep.theory.certificate import Shattering
from eqsep.theory.checks import look_up
from eqsep.theory.families import FAMILIES
from eqsep.theory.planes import Hyperplane, PlaneFamily
from eqsep.theory.rational import Integers, Points, as_rationals, homogeneous


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

    Returns
    -------
    bool or Shattering
        The answer, or the record that proves it. The record is true in an `if` when the points
        are shattered, and `Shattering.verify` checks its planes independently.

    Examples
    --------
    The corners of a square: halfspaces fail at XOR, equality separators do not.

    >>> from eqsep.theory import shatters
    >>> square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> shatters(square, "halfspace"), shatters(square, "strict-equality")
    (False, True)
    >>> shatters(square, "halfspace", certificates=True).refused
    (1, 0, 0, 1)
    >>> proof = shatters(square, "hyper-ridge", certificates=True)
    >>> len(proof.planes), proof.verify()
    (16, True)
    """
    chosen = look_up(family, FAMILIES)
    answer = certify(chosen, as_rationals(points))
    return answer if certificates else bool(answer)


def certify(family: PlaneFamily, points: Points) -> Shattering:
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


def _realise_all(
    family: PlaneFamily, rows: Integers
) -> tuple[tuple[Hyperplane, ...], list[int] | None]:
    """A plane for every labelling and None, or no planes and a labelling that has none."""
    planes = family.proposals(rows)
    for number in _balanced_first(len(rows)):
        if number not in planes:
            labels = [number >> place & 1 for place in reversed(range(len(rows)))]
            plane = family.separate(rows, labels)
            if plane is None:
                return (), labels
            planes[number] = plane
    return tuple(planes[number] for number in range(2 ** len(rows))), None


def _balanced_first(m: int) -> list[int]:
    """All labellings, those with classes of equal size first: they are the likeliest to fail."""
    return sorted(range(2**m), key=lambda number: abs(2 * number.bit_count() - m))
