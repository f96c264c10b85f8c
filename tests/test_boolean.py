"""Counts of Boolean functions: `paper.theory.boolean`."""

from itertools import permutations, product

import numpy as np
import pytest

from eqsep.theory import separating_hyperplane
from eqsep.theory.families import FAMILIES
from paper.theory import count_boolean_functions
from paper.theory.boolean import count_cells


def halfspaces_by_brute_force(n):
    """Threshold functions of up to three inputs need whole weights of two at most."""
    X = np.array(list(product((0, 1), repeat=n)))
    thresholds = np.arange(-8, 9) + 0.5
    weights = product(range(-2, 3), repeat=n)
    return len({tuple(X @ w > t) for w in weights for t in thresholds})


def equalities_by_brute_force(n):
    """Planes through corners of the square and the cube have whole weights of two at most."""
    X = np.array(list(product((0, 1), repeat=n)))
    planes = ({tuple(X @ w == t) for t in range(-9, 10)} for w in product(range(-3, 4), repeat=n))
    on = set().union(*planes)
    return len(on | {tuple(not v for v in row) for row in on})


def slabs_by_brute_force(n, *, flips):
    X = np.array(list(product((0, 1), repeat=n)))
    cut = set()
    for w in product(range(-3, 4), repeat=n):
        z = X @ w
        ends = np.unique(z)
        cut |= {tuple((low <= z) & (z <= high)) for low in ends for high in ends}
    cut.add((False,) * len(X))
    return len(cut | {tuple(not v for v in row) for row in cut} if flips else cut)


@pytest.mark.parametrize(("n", "known"), [(1, 4), (2, 14), (3, 104), (4, 1882)])
def test_threshold_functions_are_as_many_as_is_known(n, known):
    assert count_boolean_functions("halfspace", n) == known


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.extra)])
def test_the_theory_agrees_with_brute_force(n):
    assert count_boolean_functions("halfspace", n) == halfspaces_by_brute_force(n)
    assert count_boolean_functions("strict-equality", n) == equalities_by_brute_force(n)
    assert count_boolean_functions("hyper-ridge", n) == slabs_by_brute_force(n, flips=False)
    assert count_boolean_functions("epsilon-equality", n) == slabs_by_brute_force(n, flips=True)


@pytest.mark.parametrize("family", ["strict-equality", "epsilon-equality", "hyper-ridge"])
def test_equality_computes_every_function_of_two_inputs(family):
    assert count_boolean_functions(family, 2) == 16


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_one_decision_a_function_gives_the_same_count(family):
    """Of the functions that a turn or a reflection of the cube makes of each other, one."""
    corners = list(product((0, 1), repeat=3))
    turns = [
        [corners.index(tuple(corner[i] ^ flip[i] for i in order)) for corner in corners]
        for order in permutations(range(3))
        for flip in corners
    ]
    functions = product((0, 1), repeat=8)
    orbits = {frozenset(tuple(y[i] for i in turn) for turn in turns) for y in functions}
    assert len(orbits) == 22  # Pólya's count
    realised = [
        len(orbit)
        for orbit in orbits
        if separating_hyperplane(corners, min(orbit), family=family) is not None
    ]
    assert count_boolean_functions(family, 3) == sum(realised)


def test_cells_of_lines_in_the_plane():
    assert count_cells(frozenset()) == 1
    assert count_cells(frozenset({(1, 0)})) == 2
    assert count_cells(frozenset({(1, 0), (0, 1), (1, 1), (1, -1)})) == 8


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="n_inputs must be a whole number of at least 1, got 0"):
        count_boolean_functions("halfspace", 0)
    with pytest.raises(ValueError, match="unknown family 'rbf'"):
        count_boolean_functions("rbf", 2)
