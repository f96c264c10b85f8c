"""Families of separators: which labellings of some points a plane of the family realises.

Every answer is exact. Points are homogeneous integer rows (D x, D), see `eqsep.theory.exact`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import ceil, comb, log2

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsep.errors import UserError
from eqsep.theory.arguments import look_up
from eqsep.theory.certificate import Hyperplane
from eqsep.theory.exact import (
    Integers,
    as_floats,
    as_rationals,
    homogeneous,
    in_lowest_terms,
    null_space,
    strict_solution,
)

_FLAT = 1e-9  # simplices with a smaller determinant, or slabs with a smaller tilt, are passed over


class PlaneFamily(ABC):
    """A family of separators: which planes it has, and which points one of them can single out."""

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
                return _exact_plane(*plane, margin_class=margin_class)
        return None

    def proposals(self, rows: Integers) -> dict[int, Hyperplane]:  # noqa: ARG002
        """Exact planes for as many labellings as come cheaply, by number; perhaps none."""
        return {}

    def obstruction(self, rows: Integers) -> list[int] | None:  # noqa: ARG002
        """A labelling of more than `limit` points that no plane realises, where one is known."""
        return None


class Halfspace(PlaneFamily):
    name = "halfspace"
    margin_classes = (1,)

    def limit(self, n: int) -> int:
        return n + 1

    def obstruction(self, rows: Integers) -> list[int] | None:
        return _signs_of_dependency(rows)

    def around(self, inside: Integers, outside: Integers) -> tuple[Integers, int, int] | None:
        if not len(inside) or not len(outside):
            w, low, high = _along_first_axis(np.vstack([inside, outside]))
            return w, (1 - low if len(inside) else -1 - high), 0
        z = strict_solution(np.vstack([inside, -outside]))
        return None if z is None else (z[:-1], z[-1], 0)


class StrictEquality(PlaneFamily):
    name = "strict-equality"
    margin_classes = (1, 0)

    def limit(self, n: int) -> int:
        return 2 * n + 1

    def obstruction(self, rows: Integers) -> list[int] | None:
        """Of 2n + 2 points split in halves A and B, or with a of A and some b of B exchanged.

        The documentation's note proves that one of these n + 2 labellings is refused.
        """
        half = rows.shape[1]
        points = rows[: 2 * half]
        inside = [1] * half + [0] * half
        plane = self.separate(points, inside)
        if plane is None:
            return inside
        # One half A lies on a plane of its own, so some a of it lies in the hull of the others.
        dependent = points[np.array(inside) == plane.margin_class]
        start = 0 if plane.margin_class else half
        (dependence, *_) = null_space(dependent.T)
        a = start + int(np.flatnonzero(dependence)[0])
        for b in range(half - start, 2 * half - start):
            swapped = inside.copy()
            swapped[a], swapped[b] = swapped[b], swapped[a]
            if self.separate(points, swapped) is None:
                return swapped
        raise AssertionError("2n + 2 points are not shattered")  # pragma: no cover

    def around(self, inside: Integers, outside: Integers) -> tuple[Integers, int, int] | None:
        """A plane through `inside` that avoids `outside`: none of it lies in the affine hull.

        Of the planes u(t) = n_0 + t n_1 + t^2 n_2 + ..., a point rules out at most as many t as
        there are powers.
        """
        basis = null_space(inside) if len(inside) else list(np.eye(inside.shape[1], dtype=object))
        if not basis or (len(outside) and not np.any(outside @ np.array(basis).T, axis=1).all()):
            return None
        for t in range(1, len(basis) * (len(outside) + 1) + 2):
            u = sum(vector * t**power for power, vector in enumerate(basis))
            if u[:-1].any() and (outside @ u != 0).all():
                return u[:-1], u[-1], 0
        raise AssertionError("a polynomial has more roots than its degree")  # pragma: no cover


class SlabTable:
    """For each of the 2^m subsets of a few points (m, n), the slab found with the most room.

    Push the two faces of a slab until they can move no further: they then touch n + 1 points T,
    some of them on the upper face. It cuts out the points strictly between the faces, and by a
    small tilt any part of T. Barycentric coordinates with respect to T give its value elsewhere.
    This is float arithmetic and proposes only; `Slab` checks in integers.

    `room` (2^m,) is how far that slab can tilt, in units of its width; 0 where none was found.
    Subset number s holds point i when bit m - 1 - i of s is set, so that labellings are in the
    order of `itertools.product((0, 1), repeat=m)`.
    """

    def __init__(self, X: NDArray[np.float64]) -> None:
        self._X = X
        m, n = X.shape
        self.room = np.zeros(2**m)
        self._source = np.zeros((2**m, 3), dtype=np.int64)  # simplex, upper face, part of T inside
        self._bits = 1 << np.arange(m - 1, -1, -1)
        self._T = np.array(list(combinations(range(m), n + 1)), dtype=np.intp).reshape(-1, n + 1)
        corners = np.concatenate([X[self._T], np.ones((len(self._T), n + 1, 1))], axis=2)
        solid = np.abs(np.linalg.det(corners)) > _FLAT * np.ptp(X, axis=0).prod()
        self._T, self._forms = self._T[solid], np.linalg.inv(corners[solid])
        self._coordinates = np.column_stack([X, np.ones(m)]) @ self._forms
        self._sizes = np.abs(self._coordinates).sum(axis=2)
        self._parts = self._bits[self._T] @ _binary(n + 1).T  # every part of T, as subset numbers
        # The first point of T is below: the mirror image is the same slab.
        for upper in range(1, 2**n):
            self._record(upper)

    def _record(self, upper: int) -> None:
        """Enter the subsets of all slabs whose upper face holds the points `upper` of each T."""
        value = self._coordinates @ _binary(self._T.shape[1])[upper]  # 0 and 1 on the two faces
        gap = np.minimum(np.abs(value), np.abs(value - 1)) / (1 + self._sizes)
        np.put_along_axis(gap, self._T, np.inf, axis=1)
        room = np.minimum(gap.min(axis=1), 0.5) / 2
        between = (value > 0) & (value < 1)
        np.put_along_axis(between, self._T, False, axis=1)
        subsets = (between @ self._bits)[:, None] + self._parts
        simplex, part = np.nonzero((room[:, None] > self.room[subsets]) & (room[:, None] > _FLAT))
        order = np.argsort(room[simplex], kind="stable")  # the last, roomiest of a subset stays
        simplex, part = simplex[order], part[order]
        found = subsets[simplex, part]
        self.room[found] = room[simplex]
        self._source[found] = np.column_stack([simplex, np.full_like(simplex, upper), part])

    def slabs(self, subsets: NDArray[np.intp]) -> Integers:
        """Whole (w, low, high), one row a subset with room; rounded, not yet checked."""
        simplex, upper, part = self._source[subsets].T
        table = _binary(self._T.shape[1])
        face, inside, room = table[upper], table[part], self.room[subsets][:, None]
        tilted = face + room * np.where(inside == face, -1.0, 1.0)
        form = np.einsum("sij,sj->si", self._forms[simplex], tilted)
        reach = np.abs(self._X).sum(axis=1).max() + 2
        bits = [ceil(log2(4 * reach / r)) for r in room.ravel().tolist()]
        rows = [
            [*(round(v * 2**k) for v in f[:-1]), round(-f[-1] * 2**k), round((1 - f[-1]) * 2**k)]
            for f, k in zip(form.tolist(), bits, strict=True)
        ]
        return np.array(rows, dtype=object).reshape(len(rows), self._X.shape[1] + 2)


def _binary(width: int) -> NDArray[np.int64]:
    """The numbers 0 .. 2^width - 1 in binary, one a row, the first column the highest bit."""
    return np.arange(2**width)[:, None] >> np.arange(width - 1, -1, -1) & 1


class Slab(PlaneFamily):
    """|w.x + b| <= epsilon around one class; either class where `margin_classes` has both."""

    def __init__(self, name: str, margin_classes: tuple[int, ...]) -> None:
        self.name = name
        self.margin_classes = margin_classes

    def limit(self, n: int) -> int:
        return comb(n + 2, 2) - 2 + len(self.margin_classes)

    def around(self, inside: Integers, outside: Integers) -> tuple[Integers, int, int] | None:
        if not len(inside) or not len(outside):
            w, low, high = _along_first_axis(np.vstack([inside, outside]))
            ends = (low - 1, high + 1) if len(inside) else (high + 1, high + 3)
            return _slab_plane(np.array([*w, *ends], dtype=object))
        z = _between(np.vstack([_above_low(inside), -_above_high(inside)]), outside, mirrored=True)
        return None if z is None else _slab_plane(z)

    def obstruction(self, rows: Integers) -> list[int] | None:
        pairs = combinations_with_replacement(range(rows.shape[1]), 2)
        return _signs_of_dependency(np.column_stack([rows[:, i] * rows[:, j] for i, j in pairs]))

    def proposals(self, rows: Integers) -> dict[int, Hyperplane]:
        """The slabs of `SlabTable` that pass the check in integers."""
        table = SlabTable(as_floats(rows))
        planes: dict[int, Hyperplane] = {}
        for margin_class in self.margin_classes:
            inside = np.flatnonzero(table.room)
            labels = inside if margin_class else len(table.room) - 1 - inside
            new = np.array([number not in planes for number in labels.tolist()], dtype=bool)
            slabs = table.slabs(inside[new])
            sound = _cuts_exactly(slabs, rows, inside[new])
            for number, z in zip(labels[new][sound].tolist(), slabs[sound], strict=True):
                planes[number] = _exact_plane(*_slab_plane(z), margin_class=margin_class)
        return planes


_SLABS = Slab("epsilon-equality", (1, 0)), Slab("hyper-ridge", (1,))
FAMILIES: dict[str, PlaneFamily] = {f.name: f for f in (Halfspace(), StrictEquality(), *_SLABS)}


def separating_hyperplane(
    X: ArrayLike, y: ArrayLike, *, family: str = "epsilon-equality", exact: bool = False
) -> Hyperplane | None:
    """The plane of a family that gives every point its label, or None where there is none.

    Planes are checked and refusals proved in integer arithmetic. For slabs the time grows fast with
    the points: this is for tens of points, not thousands.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        The points: numbers, `fractions.Fraction`, or decimals as text such as "0.1".
    y : array-like of shape (n_points,)
        Their labels, 0 or 1.
    family : {"epsilon-equality", "hyper-ridge", "strict-equality", "halfspace"}
        The planes: slabs around either class, slabs around class 1 only, strict equality with
        either class on the plane, or class 1 on the side w.x + b >= 0.
    exact : bool, default=False
        Return the plane in Fractions, as it was checked, rather than rounded to floats.

    Examples
    --------
    >>> corners, xor = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> separating_hyperplane(corners, xor, family="halfspace") is None
    True
    >>> separating_hyperplane(corners, xor, family="strict-equality")
    Hyperplane(w=array([-0.5, -0.5]), b=0.5, epsilon=0.0, margin_class=1)
    """
    chosen, points, labels = look_up(family, FAMILIES), as_rationals(X), np.asarray(y)
    n = len(points)
    if labels.shape != (n,) or not np.isin(labels, (0, 1)).all():
        raise UserError(f"y must hold a label 0 or 1 for each of the {n} points, got {y!r}.")
    plane = chosen.separate(homogeneous(points), labels.astype(int).tolist())
    return plane if plane is None or exact else plane.as_floats()


def _along_first_axis(rows: Integers) -> tuple[Integers, int, int]:
    """The first axis, and whole numbers below and above all points along it."""
    # Where all points are of one class any direction will do but w = 0, which makes no plane.
    first = [Fraction(row[0], row[-1]) for row in rows.tolist()]
    axis = np.array([1] + [0] * (rows.shape[1] - 2), dtype=object)
    return axis, int(min(first) // 1), int(-(-max(first) // 1))


def _exact_plane(coef: Integers, b: int, epsilon: int, *, margin_class: int) -> Hyperplane:
    """The plane in Fractions, with the smallest whole numbers."""
    *normal, shift, width = in_lowest_terms(np.array([*coef, b, epsilon], dtype=object)).tolist()
    w = tuple(map(Fraction, normal))
    return Hyperplane(w, Fraction(shift), Fraction(width), int(margin_class))


def _signs_of_dependency(features: Integers) -> list[int] | None:
    """Labels 1 where c > 0, for whole c with sum_i c_i f(x_i) = 0 for every feature f, or None."""
    # No combination of the features is >= 0 exactly on one class: that sum would not vanish.
    dependencies = null_space(features.T)
    return (dependencies[0] > 0).astype(int).tolist() if dependencies else None


def _slab_plane(z: Integers) -> tuple[Integers, int, int]:
    """The slab low <= w.x <= high of z = (w, low, high) as (w, b, epsilon), all doubled."""
    low, high = z[-2], z[-1]
    return 2 * z[:-2], -(low + high), high - low


def _cuts_exactly(slabs: Integers, rows: Integers, subsets: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which slabs hold exactly their subset of the points (numbered as in `SlabTable`)."""
    wanted = (subsets[:, None] >> np.arange(len(rows) - 1, -1, -1) & 1).astype(bool)
    above_low, above_high = slabs @ _above_low(rows).T, slabs @ _above_high(rows).T
    return (wanted == ((above_low >= 0) & (above_high <= 0))).all(axis=1)


def _above_low(rows: Integers) -> Integers:
    """The forms z -> w.x - low, one a point, for z = (w, low, high)."""
    return np.column_stack([rows[:, :-1], -rows[:, -1], 0 * rows[:, -1]])


def _above_high(rows: Integers) -> Integers:
    """The forms z -> w.x - high."""
    return np.column_stack([rows[:, :-1], 0 * rows[:, -1], -rows[:, -1]])


def _between(rows: Integers, outside: Integers, *, mirrored: bool) -> Integers | None:
    """z = (w, low, high) with rows z > 0 and every outside point above high or below low."""
    # Depth first: solve without the outside points, and push one that the slab has caught out on
    # either side; the first above only, since (-w, -high, -low) is the same slab upside down.
    z = strict_solution(rows)
    if z is None:
        return None
    over, under = _above_high(outside) @ z, -_above_low(outside) @ z
    depth = np.minimum(-over, -under)
    caught = int(np.argmax(depth))
    if depth[caught] < 0:
        return z
    point = outside[caught : caught + 1]
    sides = [_above_high(point)] if mirrored else [_above_high(point), -_above_low(point)]
    for side in sides:
        found = _between(np.vstack([rows, side]), outside, mirrored=False)
        if found is not None:
            return found
    return None
