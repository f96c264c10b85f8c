"""Counting bounds: `eqsep.theory.counting`."""

from itertools import product
from math import comb

import numpy as np
import pytest

from eqsep.theory.counting import (
    count_halfspace_labellings,
    count_placements,
    epsilon_limit,
    max_large_subsets,
    max_slab_subsets,
    ridge_limit,
)
from eqsep.theory.exact import strict_solution


def placements_by_programme(X):
    """Count the words over {below, inside, above} that some slab writes on the points."""
    n = X.shape[1]
    low = [np.array([*x, -1, 0], dtype=object) for x in X.tolist()]
    high = [np.array([*x, 0, -1], dtype=object) for x in X.tolist()]
    width = np.array([0] * n + [-1, 1], dtype=object)
    letters = [[(-a,), (a, -b), (b,)] for a, b in zip(low, high, strict=True)]
    words = ([width, *(row for rows in word for row in rows)] for word in product(*letters))
    return sum(strict_solution(np.array(word, dtype=object)) is not None for word in words)


MORE = [pytest.param(5, n, marks=pytest.mark.extra) for n in (2, 3)]


@pytest.mark.parametrize(("m", "n"), [(1, 1), (4, 1), (3, 2), (4, 2), *MORE])
def test_placements_are_those_that_slabs_make(m, n):
    X = np.random.default_rng(0).integers(-99, 100, (m, n)).astype(object)
    assert placements_by_programme(X) == count_placements(m, n)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_few_points_may_be_placed_and_labelled_freely(n):
    for m in range(1, n + 2):
        assert count_placements(m, n) == 3**m
        assert count_halfspace_labellings(m, n) == 2**m


def test_on_a_line_the_bound_is_the_number_of_intervals():
    for m in range(2, 9):
        assert max_slab_subsets(m, 1) == m * (m + 1) // 2 + 1


def test_the_splits_of_thin_slabs_are_summed_right():
    def slowly(m, n):
        thin = sum(
            comb(m, k) * 2 * sum(comb(m - k - 1, j) for j in range(n - k + 1))
            for k in range(1, n + 1)
        )
        return (count_placements(m, n) - count_halfspace_labellings(m, n) - 1 - thin) // 2

    for n in range(1, 7):
        for m in range(n + 2, 3 * n + 5):
            assert max_large_subsets(m, n) == slowly(m, n)


@pytest.mark.parametrize("n", range(1, 15))
def test_the_limits_are_where_the_count_runs_out(n):
    ridge, both = ridge_limit(n), epsilon_limit(n)
    assert 2**ridge <= max_slab_subsets(ridge, n)
    assert 2 ** (ridge + 1) > max_slab_subsets(ridge + 1, n)
    for m in (both, both + 1):
        small = sum(comb(m, k) for k in range(n + 1))
        assert (2 ** (m - 1) <= small + max_large_subsets(m, n)) == (m == both)


def test_the_limits_grow_linearly():
    """The slope tends to 1/x with H(x) + x = 1, about 4.40."""
    assert epsilon_limit(60) < 4.41 * 60
    assert 4.2 < (epsilon_limit(60) - epsilon_limit(40)) / 20 < 4.5
