"""How many Boolean functions one separator can compute."""

from collections.abc import Callable
from functools import partial
from itertools import combinations, permutations, product

import numpy as np

from eqsep.theory.arguments import check_dimension, look_up
from eqsep.theory.exact import Integers, in_lowest_terms, null_space
from eqsep.theory.families import FAMILIES


def count_boolean_functions(family: str, n_inputs: int) -> int:
    """The number of the 2^(2^n) Boolean functions of n inputs that one separator can compute.

    Meant for three or four inputs.

    Parameters
    ----------
    family : {"epsilon-equality", "hyper-ridge", "strict-equality", "halfspace"}
        The planes, as in `separating_hyperplane`.
    n_inputs : int

    Examples
    --------
    One halfspace misses XOR and its negation, one equality separator misses nothing.

    >>> count_boolean_functions("halfspace", 2), count_boolean_functions("strict-equality", 2)
    (14, 16)
    """
    return look_up(family, _COUNTERS)(check_dimension(n_inputs, name="n_inputs"))


def _strict_equality(n: int) -> int:
    """The sets on a plane are the flats of the corners; their complements come by flipping."""
    rows = _cube(n)
    full = (1 << len(rows)) - 1
    flats = {0}
    for size in range(1, n + 1):
        for chosen in combinations(range(len(rows)), size):
            on = np.all(rows @ np.array(null_space(rows[list(chosen)])).T == 0, axis=1)
            flats.add(sum(1 << i for i in np.flatnonzero(on).tolist()))
    return len(flats | {full ^ flat for flat in flats})


def _slabs(n: int, *, family: str) -> int:
    """One exact decision for each class of functions alike up to the symmetries of the cube."""
    rows, separate = _cube(n), FAMILIES[family].separate
    places = np.arange(len(rows))
    labelled = (((function >> places & 1).tolist(), size) for function, size in _orbits(n))
    return sum(size for labels, size in labelled if separate(rows, labels) is not None)


_COUNTERS: dict[str, Callable[[int], int]] = {
    # Labellings of points x are the cells of the hyperplanes (w, b) : w.x + b = 0.
    "halfspace": lambda n: count_cells(frozenset(map(tuple, _cube(n).tolist()))),
    "strict-equality": _strict_equality,
    **{name: partial(_slabs, family=name) for name in ("epsilon-equality", "hyper-ridge")},
}


def _cube(n: int) -> Integers:
    """The corners of the unit cube as homogeneous rows (x, 1)."""
    return np.array([(*corner, 1) for corner in product((0, 1), repeat=n)], dtype=object)


def count_cells(normals: frozenset[tuple[int, ...]]) -> int:
    """The cells of the hyperplanes {z : v.z = 0}, one for each v of a set with no two parallel.

    One hyperplane cuts as many cells in two as the others have when restricted to it.
    """
    if not normals:
        return 1
    (first, *rest) = sorted(normals)
    pivot = next(i for i, value in enumerate(first) if value)
    lead = np.array(first, dtype=object)
    restricted = set()
    for vector in rest:
        shadow = np.array(vector, dtype=object) * lead[pivot] - lead * vector[pivot]
        shadow = in_lowest_terms(np.delete(shadow, pivot))
        sign = next(value for value in shadow.tolist() if value) > 0
        restricted.add(tuple((shadow if sign else -shadow).tolist()))
    return count_cells(frozenset(rest)) + count_cells(frozenset(restricted))


def _orbits(n: int) -> list[tuple[int, int]]:
    """One function and the size of its class, for each class under flips and swaps of inputs."""
    functions = np.arange(2 ** (2**n))
    least = functions.copy()
    for order in permutations(range(n)):
        for flip in range(2**n):
            moved = np.zeros_like(functions)
            for corner in range(2**n):
                image = sum((corner >> i & 1) << j for i, j in enumerate(order)) ^ flip
                moved |= (functions >> corner & 1) << image
            least = np.minimum(least, moved)
    representatives, sizes = np.unique(least, return_counts=True)
    return list(zip(representatives.tolist(), sizes.tolist(), strict=True))
