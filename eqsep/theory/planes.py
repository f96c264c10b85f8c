"""Planes with a margin, and what is asked of a family of them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eqsep.theory.rational import Integers, in_lowest_terms, null_space


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


class PlaneFamily(ABC):
    """A family of separators: which planes it has, and which points one of them can single out.

    Points are homogeneous integer rows (D x, D), see `eqsep.theory.rational`.
    """

    name: str
    margin_classes: tuple[int, ...]  # (1, 0) where either class may lie in the margin

    @abstractmethod
    def limit(self, n: int) -> int:
        """A number of points of R^n above which the family shatters no set."""

    @abstractmethod
    def around(self, inside: Integers, outside: Integers) -> tuple[Integers, int, int] | None:
        """Whole (w, b, epsilon) with exactly `inside` in the margin, or None if there is none."""

    def separate(self, rows: Integers, labels: Sequence[int]) -> Hyperplane | None:
        """The exact plane that realises the labels, or None."""
        y = np.asarray(labels)
        for margin_class in self.margin_classes:
            plane = self.around(rows[y == margin_class], rows[y != margin_class])
            if plane is not None:
                return exact_plane(*plane, margin_class=margin_class)
        return None

    def proposals(self, rows: Integers) -> dict[int, Hyperplane]:  # noqa: ARG002
        """Exact planes for as many labellings as come cheaply, by number; perhaps none."""
        return {}

    def obstruction(self, rows: Integers) -> list[int] | None:  # noqa: ARG002
        """A labelling of more than `limit` points that no plane realises, where one is known."""
        return None

    def missing(self, X: NDArray[np.float64]) -> int:  # noqa: ARG002
        """How many labellings were not seen realised, in floats: what a search lowers.

        Zero where any points in general position will do.
        """
        return 0

    def settle(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The points moved to where a search should look for shattered ones."""
        return X


def exact_plane(w: Integers, b: int, epsilon: int, *, margin_class: int) -> Hyperplane:
    """The plane in Fractions, with the smallest whole numbers."""
    *normal, shift, width = in_lowest_terms(np.array([*w, b, epsilon], dtype=object)).tolist()
    return Hyperplane(
        tuple(map(Fraction, normal)), Fraction(shift), Fraction(width), int(margin_class)
    )


def signs_of_dependency(features: Integers) -> list[int] | None:
    """Labels 1 where c > 0, for whole c with sum_i c_i f(x_i) = 0 for every feature f.

    No combination q of the features has q >= 0 exactly on class 1 (or exactly on class 0): the sum
    of c_i q(x_i) would not vanish. None where the points have no such dependency.
    """
    dependencies = null_space(features.T)
    return (dependencies[0] > 0).astype(int).tolist() if dependencies else None
