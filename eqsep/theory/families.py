"""The families of separators whose shattering is studied, by name."""

import numpy as np

from eqsep.theory.inequalities import strict_solution
from eqsep.theory.planes import PlaneFamily, signs_of_dependency
from eqsep.theory.rational import (
    Integers,
    first_axis,
    null_space,
    range_of_first,
)
from eqsep.theory.slab_family import Slab


class Halfspace(PlaneFamily):
    name = "halfspace"
    margin_classes = (1,)

    def limit(self, n: int) -> int:
        return n + 1

    def obstruction(self, rows: Integers) -> list[int] | None:
        return signs_of_dependency(rows)

    def around(self, inside: Integers, outside: Integers) -> tuple[Integers, int, int] | None:
        if not len(inside) or not len(outside):
            # Any direction will do, but an answer with w = 0 would be no plane.
            low, high = range_of_first(np.vstack([inside, outside]))
            w = first_axis(inside.shape[1] - 1)
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

        The proof of VC dimension 2n + 1 in the documentation's note shows that one of these n + 2
        labellings is refused.
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

        Among the planes u(t) = n_0 + t n_1 + t^2 n_2 + ... of the null space, a point off the hull
        rules out at most as many t as there are powers, so some small whole t avoids them all.
        """
        basis = null_space(inside) if len(inside) else list(np.eye(inside.shape[1], dtype=object))
        if not basis or (len(outside) and not np.any(outside @ np.array(basis).T, axis=1).all()):
            return None
        for t in range(1, len(basis) * (len(outside) + 1) + 2):
            u = sum(vector * t**power for power, vector in enumerate(basis))
            if u[:-1].any() and (outside @ u != 0).all():
                return u[:-1], u[-1], 0
        raise AssertionError("a polynomial has more roots than its degree")  # pragma: no cover


FAMILIES: dict[str, PlaneFamily] = {
    family.name: family
    for family in (
        Halfspace(),
        StrictEquality(),
        Slab("epsilon-equality", (1, 0)),
        Slab("hyper-ridge", (1,)),
    )
}
