"""The half-width of least training error, against a look at every gap."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsep.separators.planes import least_error_width

few = st.lists(
    st.tuples(st.integers(0, 6), st.booleans(), st.integers(1, 3)), min_size=1, max_size=8
)


def width(distance, inside, weight=None):
    distance, inside = np.asarray(distance, dtype=float), np.asarray(inside, dtype=bool)
    weight = np.ones(len(distance)) if weight is None else np.asarray(weight, dtype=float)
    return least_error_width(distance, inside=inside, weight=weight)


def error(at, distance, inside, weight):
    """The weight of rows on the wrong side, those up to `at` being inside."""
    return sum(w for d, i, w in zip(distance, inside, weight, strict=True) if (d <= at) != i)


@settings(max_examples=100, deadline=None)
@given(few.filter(lambda rows: any(distance for distance, *_ in rows)))
def test_no_gap_has_a_smaller_error_and_no_wider_one_the_same(rows):
    """Many distances are equal: no width lies between those, and none is on a row."""
    distance, inside, weight = zip(*rows, strict=True)
    found = width(distance, inside, weight)
    edges = sorted({0, *distance, 2 * max(distance)})
    gaps = list(pairwise(edges))
    errors = [error((low + high) / 2, distance, inside, weight) for low, high in gaps]
    least = [gap for gap, e in zip(gaps, errors, strict=True) if e == min(errors)]
    widest = max(high - low for low, high in least)
    middles = [(low + high) / 2 for low, high in least if high - low == widest]
    assert found == middles[0]


def test_equal_distances_stay_together():
    """Two rows inside and one outside at 1: all of them in; the other way round none."""
    assert width([1, 1, 1], [True, True, False]) == 1.5
    assert width([1, 1, 1], [True, False, False]) == 0.5


def test_a_weight_counts_as_so_many_rows():
    assert width([1, 1], [True, False], [1, 3]) == width([1] * 4, [True] + 3 * [False]) == 0.5


@pytest.mark.parametrize(("inside", "expected"), [(False, 0.5), (True, 6.0)])
def test_all_rows_may_be_out_or_in(inside, expected):
    assert width([1, 2, 4], [inside] * 3) == expected
