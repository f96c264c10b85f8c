"""All subsets that slabs cut from a few points, by their extreme slabs.

Push the two faces of a slab until they can move no further: together they then touch n + 1 points T
of R^n, a set S of them on the upper face and the rest on the lower one. So every subset that a slab
can cut from points in general position is found from such a pair (T, S): the other points strictly
between the faces, and any part of T, since a small tilt decides for each point touched whether it
is in or out. Barycentric coordinates with respect to T give the tilted slab's value everywhere
else: one small inverse for each T, no linear programme.

This is float arithmetic and proposes only; `eqsep.theory.families` checks in integers.
"""

from itertools import combinations
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from eqsep.theory.exact import Integers

_FLAT = 1e-9  # simplices with a smaller determinant, or slabs with a smaller tilt, are passed over


class SlabTable:
    """For each of the 2^m subsets of a few points (m, n), the slab found with the most room.

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
        better = (room[:, None] > self.room[subsets]) & (room[:, None] > _FLAT)
        simplex, part = np.nonzero(better)
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
