"""The table of extreme slabs: `eqsep.theory.families.SlabTable`."""

from itertools import product

import numpy as np
import pytest

from eqsep.theory.counting import max_slab_subsets
from eqsep.theory.exact import as_rationals, homogeneous
from eqsep.theory.families import FAMILIES, SlabTable
from paper.theory import WITNESSES

LARGE = [pytest.param(5 + n, n, marks=pytest.mark.extra) for n in (2, 3)]


@pytest.mark.parametrize(("m", "n"), [(5, 1), (6, 2), *LARGE])
def test_the_table_is_complete_in_general_position(m, n):
    X = np.random.default_rng(0).standard_normal((m, n))
    room, rows = SlabTable(X).room, homogeneous(as_rationals(X))
    for number, y in enumerate(product((0, 1), repeat=m)):
        plane = FAMILIES["hyper-ridge"].separate(rows, y)
        assert (room[number] > 0) == (plane is not None), y


@pytest.mark.parametrize("m", [2, 5, 8])
def test_on_a_line_it_finds_the_intervals(m):
    X = np.random.default_rng(0).standard_normal((m, 1))
    assert np.sum(SlabTable(X).room > 0) == m * (m + 1) // 2 + 1


@pytest.mark.parametrize(("m", "n"), [(6, 1), (9, 2), (12, 2), (10, 3), (12, 4)])
def test_slabs_cut_no_more_subsets_than_the_counting_bound(m, n):
    for seed in range(3):
        X = np.random.default_rng(seed).standard_normal((m, n))
        assert np.sum(SlabTable(X).room > 0) <= max_slab_subsets(m, n)


def test_points_on_a_grid_are_passed_over_in_silence():
    grid = np.array(list(product((0.0, 1.0, 2.0), repeat=2)))
    room = SlabTable(grid).room
    assert 0 < np.sum(room > 0) < len(room)


def test_the_ten_points_of_space_need_no_linear_programme():
    """Every rounded slab passes the check in integers."""
    rows = homogeneous(as_rationals(WITNESSES["epsilon-equality", 3]))
    assert sorted(FAMILIES["epsilon-equality"].proposals(rows)) == list(range(1024))
