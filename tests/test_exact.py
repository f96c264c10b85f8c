"""Exact points, null spaces and strict inequalities: `eqsep.theory.exact`."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsep.theory.exact import (
    as_floats,
    as_rationals,
    gordan,
    homogeneous,
    maximise,
    null_space,
    strict_solution,
)


def test_a_float_is_taken_at_its_exact_value_and_text_at_its_word():
    ((binary, decimal, fraction, number),) = as_rationals([[0.1, "0.1", "1/10", "3"]])
    assert binary == decimal == fraction == Fraction(1, 10)  # a list of text is text throughout
    assert number == 3
    assert as_rationals(np.array([[0.1]])) == ((Fraction(0.1),),)
    assert as_rationals([[0.1]])[0][0] != Fraction(1, 10)
    assert as_rationals([[Decimal("0.1"), Fraction(1, 3)]]) == ((Fraction(1, 10), Fraction(1, 3)),)


def test_numpy_integers_do_not_overflow():
    (point,) = as_rationals(np.array([[2**62]], dtype=np.int64))
    assert point[0] * 4 == 2**64


def test_homogeneous_rows_keep_the_points():
    points = as_rationals([["1/2", "1/3"], ["-2", "0"]])
    rows = homogeneous(points)
    assert rows.tolist() == [[3, 2, 6], [-12, 0, 6]]
    assert as_floats(rows).tolist() == [[0.5, 2 / 6], [-2.0, 0.0]]


@pytest.mark.parametrize("shape", [(1, 4), (2, 4), (3, 5), (4, 4), (6, 3)])
def test_null_space_is_orthogonal_and_complete(shape):
    rng = np.random.default_rng(0)
    for rank in range(min(shape) + 1):
        low = rng.integers(-5, 6, (shape[0], rank)) @ rng.integers(-5, 6, (rank, shape[1]))
        rows = low.astype(object)
        basis = null_space(rows)
        assert len(basis) == shape[1] - np.linalg.matrix_rank(low)
        for vector in basis:
            assert not np.any(rows @ vector)
            assert np.any(vector)


def test_null_space_sees_what_floats_cannot():
    one = 10**40
    assert null_space(np.array([[one, one + 1], [one - 1, one]], dtype=object)) == []


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([1.0, 2.0], r"got shape \(2,\)\. A single point goes in as \[point\]"),
        (np.empty((0, 2)), r"at least one row, got shape \(0, 2\)"),
        ([[1.0, 2.0], [3.0]], "rows of equal length"),
        ([[np.nan]], "finite real numbers"),
        ([[np.inf]], "finite real numbers"),
        ([["one"]], "finite real numbers"),
        ([[1j]], "finite real numbers"),
    ],
)
def test_bad_points_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        as_rationals(points)


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
