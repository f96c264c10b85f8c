"""Boolean functions as data."""

from operator import and_, ge, le, or_, xor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eqsep.datasets import make_logic
from eqsep.datasets.logic import LOGIC_NAMES

MEANINGS = {
    "false": lambda *_: False,
    "and": and_,
    "not implies": lambda a, b: not le(a, b),
    "x1": lambda a, _: a,
    "not implied by": lambda a, b: not ge(a, b),
    "x2": lambda _, b: b,
    "xor": xor,
    "or": or_,
    "nor": lambda a, b: not (a or b),
    "xnor": lambda a, b: a == b,
    "not x2": lambda _, b: not b,
    "implied by": ge,
    "not x1": lambda a, _: not a,
    "implies": le,
    "nand": lambda a, b: not (a and b),
    "true": lambda *_: True,
}


def test_the_sixteen_functions_are_all_there_and_all_different():
    assert set(LOGIC_NAMES) == set(MEANINGS)
    assert len({tuple(make_logic(name)[1]) for name in LOGIC_NAMES}) == 16


@pytest.mark.parametrize("name", LOGIC_NAMES)
def test_each_name_means_what_it_says(name):
    X, y = make_logic(name=name)
    assert y.tolist() == [int(MEANINGS[name](bool(a), bool(b))) for a, b in X]


@pytest.mark.parametrize("number", range(16))
def test_number_name_and_truth_table_are_three_routes_to_one_function(number):
    X, y = make_logic(number)
    assert int("".join(map(str, y)), 2) == number
    for route in (LOGIC_NAMES[number], LOGIC_NAMES[number].upper(), np.int64(number), y):
        assert_array_equal(make_logic(route)[1], y)
    assert_array_equal(X, [[0, 0], [0, 1], [1, 0], [1, 1]])


@pytest.mark.parametrize("n_inputs", [1, 2, 3, 5])
def test_corners_are_in_lexicographic_order_for_any_number_of_inputs(n_inputs):
    X, _ = make_logic([0, 1] * 2 ** (n_inputs - 1))
    assert X.shape == (2**n_inputs, n_inputs)
    assert_array_equal(X @ 2.0 ** np.arange(n_inputs)[::-1], np.arange(2**n_inputs))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("xro", "'xro': expected one of false, and,"),
        (16, "0 to 15, got 16"),
        (-1, "0 to 15, got -1"),
        ([0, 1, 1], r"shape \(3,\)"),
        ([1], r"shape \(1,\)"),
        ([[0, 1], [1, 0]], r"shape \(2, 2\)"),
        ([0, 1, 2, 0], r"only 0 and 1, got \[0, 1, 2\]"),
    ],
)
def test_what_is_no_boolean_function_is_refused(function, message):
    with pytest.raises(ValueError, match=message):
        make_logic(function)
