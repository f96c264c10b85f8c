"""Gordan's alternative and strict inequalities: `eqsep.theory.inequalities`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsep.theory.inequalities import gordan, strict_solution
from eqsep.theory.programme import maximise


@st.composite
def integer_matrices(draw):
    m, d = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    values = draw(st.lists(st.integers(-4, 4), min_size=m * d, max_size=m * d))
    return np.array(values, dtype=object).reshape(m, d)


@given(integer_matrices())
@settings(max_examples=150, deadline=None)
def test_exactly_one_half_of_the_alternative_holds_and_proves_itself(G):
    z, y = gordan(G)
    assert (z is None) != (y is None)
    if z is None:
        assert (y >= 0).all()
        assert y.any()
        assert not np.any(y @ G)
        assert strict_solution(G) is None
    else:
        assert (G @ z > 0).all()
        assert (G @ strict_solution(G) > 0).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_margin_far_below_rounding_is_seen(sign):
    """(1, t), (-1, t - s 10^-60) and (0, -1): two rows lean on the third by a hair or miss it."""
    one = 10**60
    rows = np.array([[one, one], [-one, -one + sign], [0, 1]], dtype=object)
    z = strict_solution(rows)
    assert (z is not None) == (sign > 0)
    if z is not None:
        assert (rows @ z > 0).all()


def test_entries_beyond_the_range_of_floats():
    huge = 10**400
    rows = np.array([[huge, 1], [-huge + 1, 0]], dtype=object)
    z = strict_solution(rows)
    assert (rows @ z > 0).all()


def test_a_programme_without_optimum_says_so():
    with pytest.raises(RuntimeError, match="no optimum"):
        maximise(np.ones(1), rows=-np.ones((1, 1)), limits=np.ones(1), bounds=[(None, None)])
