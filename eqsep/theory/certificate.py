"""Certificates of shattering: points, a plane for each labelling, and a check anyone can read.

The check uses additions, multiplications and comparisons of `fractions.Fraction`, and shares no
code with the search: if you trust `Shattering.verify`, you need not trust the rest of this package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from operator import mul
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from eqsep.theory.arguments import look_up

Points: TypeAlias = tuple[tuple[Fraction, ...], ...]


class Hyperplane(NamedTuple):
    """The plane w.x + b = 0 with the half-width of its margin and the class inside it.

    Numbers are floats for use, or Fractions in a certificate. For halfspaces the "margin" is the
    side w.x + b >= 0.
    """

    w: Any
    b: Any
    epsilon: Any
    margin_class: int

    def as_floats(self) -> "Hyperplane":
        """The same plane in floats. Whole numbers below 2^53 come through unrounded."""
        top = 2 ** int(max(map(abs, self.w))).bit_length()  # a power of two: dividing is exact
        w = np.array([float(value / top) for value in self.w])
        return Hyperplane(w, float(self.b / top), float(self.epsilon / top), self.margin_class)


class _Rule(NamedTuple):
    """Which planes belong to a family, and which points lie inside one of them."""

    classes: tuple[int, ...]  # that may lie inside
    is_side: bool = False  # inside is w.x + b >= 0, not |w.x + b| <= epsilon
    is_strict: bool = False  # epsilon is 0

    def belongs(self, plane: Hyperplane) -> bool:
        width = self.is_side or (plane.epsilon == 0 if self.is_strict else plane.epsilon > 0)
        return width and plane.margin_class in self.classes

    def inside(self, value: Fraction, epsilon: Fraction) -> bool:
        return value >= 0 if self.is_side else abs(value) <= epsilon


_RULES = {
    "halfspace": _Rule(classes=(1,), is_side=True),
    "strict-equality": _Rule(classes=(0, 1), is_strict=True),
    "epsilon-equality": _Rule(classes=(0, 1)),
    "hyper-ridge": _Rule(classes=(1,)),
}


def realises(plane: Hyperplane, points: Points, labels: Sequence[int], *, family: str) -> bool:
    """Whether the plane belongs to the family and gives every point its label, exactly."""
    rule = look_up(family, _RULES)
    if not rule.belongs(plane):
        return False
    for point, label in zip(points, labels, strict=True):
        value = sum(map(mul, plane.w, point), start=plane.b)
        given = plane.margin_class if rule.inside(value, plane.epsilon) else 1 - plane.margin_class
        if given != label:
            return False
    return True


@dataclass(frozen=True)
class Shattering:
    """Whether a family shatters some points, with the evidence. True in an `if` when it does."""

    family: str
    points: Points  #: In Fractions.
    #: One for each labelling, in the order of `itertools.product((0, 1), repeat=n_points)`; none
    #: where a labelling was refused.
    planes: tuple[Hyperplane, ...] = ()
    refused: tuple[int, ...] | None = None  #: A labelling that no plane of the family realises.

    def __bool__(self) -> bool:
        return self.refused is None

    def verify(self) -> bool:
        """Check every labelling's plane again, in Fractions and nothing else."""
        labellings = list(product((0, 1), repeat=len(self.points)))
        return len(self.planes) == len(labellings) and all(
            realises(plane, self.points, labels, family=self.family)
            for plane, labels in zip(self.planes, labellings, strict=True)
        )
