"""Slabs |w.x + b| <= epsilon: which subsets of some points they cut, exactly decided."""

from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from eqsep.theory.inequalities import strict_solution
from eqsep.theory.planes import Hyperplane, PlaneFamily, exact_plane, signs_of_dependency
from eqsep.theory.rational import Integers, as_floats, first_axis, range_of_first
from eqsep.theory.slabs import SlabTable

_ROOM = 1e-4  # a slab found by search must survive the rounding of the points' coordinates


class Slab(PlaneFamily):
    """|w.x + b| <= epsilon around one class; either class where `margin_classes` has both."""

    def __init__(self, name: str, margin_classes: tuple[int, ...]) -> None:
        self.name = name
        self.margin_classes = margin_classes

    def limit(self, n: int) -> int:
        return comb(n + 2, 2) - 2 + len(self.margin_classes)

    def around(self, inside: Integers, outside: Integers) -> tuple[Integers, int, int] | None:
        if not len(inside) or not len(outside):
            low, high = range_of_first(np.vstack([inside, outside]))
            w = first_axis(inside.shape[1] - 1)
            ends = (low - 1, high + 1) if len(inside) else (high + 1, high + 3)
            return _slab_plane(np.array([*w, *ends], dtype=object))
        rows = np.vstack([_above_low(inside), -_above_high(inside)])
        z = _between(rows, outside, mirrored=True)
        return None if z is None else _slab_plane(z)

    def obstruction(self, rows: Integers) -> list[int] | None:
        pairs = combinations_with_replacement(range(rows.shape[1]), 2)
        return signs_of_dependency(np.column_stack([rows[:, i] * rows[:, j] for i, j in pairs]))

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
                planes[number] = exact_plane(*_slab_plane(z), margin_class=margin_class)
        return planes

    def missing(self, X: NDArray[np.float64]) -> int:
        seen = SlabTable(X).room > _ROOM
        if 0 in self.margin_classes:
            seen = seen | seen[::-1]
        return int(np.sum(~seen))

    def settle(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        if 0 in self.margin_classes:
            return X
        return X / np.linalg.norm(X, axis=1, keepdims=True)  # slabs alone need an ellipsoid


def _slab_plane(z: Integers) -> tuple[Integers, int, int]:
    """The slab low <= w.x <= high of z = (w, low, high) as (w, b, epsilon), all doubled."""
    low, high = z[-2], z[-1]
    return 2 * z[:-2], -(low + high), high - low


def _cuts_exactly(slabs: Integers, rows: Integers, subsets: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which slabs hold exactly their subset of the points (numbered as in `SlabTable`)."""
    places = np.arange(len(rows) - 1, -1, -1)
    wanted = (subsets[:, None] >> places & 1).astype(bool)
    above_low, above_high = slabs @ _above_low(rows).T, slabs @ _above_high(rows).T
    return (wanted == ((above_low >= 0) & (above_high <= 0))).all(axis=1)


def _above_low(rows: Integers) -> Integers:
    """The forms z -> w.x - low, one a point, for z = (w, low, high)."""
    return np.column_stack([rows[:, :-1], -rows[:, -1], 0 * rows[:, -1]])


def _above_high(rows: Integers) -> Integers:
    """The forms z -> w.x - high."""
    return np.column_stack([rows[:, :-1], 0 * rows[:, -1], -rows[:, -1]])


def _between(rows: Integers, outside: Integers, *, mirrored: bool) -> Integers | None:
    """z = (w, low, high) with rows z > 0 and every outside point above high or below low.

    Depth first: solve without the outside points, take one that the slab has caught, and try to
    push it out on either side. The first goes out above only, since (-w, -high, -low) is the same
    slab upside down.
    """
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
