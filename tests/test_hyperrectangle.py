"""The hyperrectangle as an estimator: `paper.theory.hyperrectangle`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from paper.theory import HyperrectangleSeparator, bounding_parallelepiped


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_it_holds_the_normal_rows_and_nothing_beyond_their_least_and_largest_values(n, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(scale=10.0 ** rng.integers(-8, 8), size=(30, n)), np.arange(30) % 3 == 0
    box = HyperrectangleSeparator().fit(X, y)
    assert not box.predict(X[~y]).any()
    rows = rng.normal(scale=2 * X.std(), size=(200, n))
    low, high = X[~y].min(axis=0), X[~y].max(axis=0)
    assert_array_equal(box.predict(rows), ((rows < low) | (rows > high)).any(axis=1))


@given(st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_with_directions_it_is_the_parallelepiped_of_the_theory(n, seed):
    rng = np.random.default_rng(seed)
    X, directions = rng.normal(size=(30, n)), rng.normal(size=(n, n))
    separator = HyperrectangleSeparator(directions=directions).fit(X, np.zeros(30, dtype=int))
    rows = rng.normal(scale=2.0, size=(200, n))
    inside = bounding_parallelepiped(X, directions).contains(rows)
    assert_array_equal(separator.predict(rows) == 0, inside)


def test_anomalies_do_not_change_it_and_may_be_absent():
    X = np.random.default_rng(0).normal(size=(40, 2))
    alone = HyperrectangleSeparator().fit(X, np.zeros(40, dtype=int))
    among = HyperrectangleSeparator().fit(np.vstack([X, X + 5]), np.repeat([0, 1], 40))
    assert_array_equal(alone.epsilon_, among.epsilon_)
    assert alone.predict([[1e6, 0], [0, -1e6]]).tolist() == [1, 1], "it is closed"


def test_a_new_value_in_a_constant_column_is_outside():
    box = HyperrectangleSeparator().fit([[1.0, 0.0], [2.0, 0.0]], [0, 0])
    assert box.predict([[1.5, 0.0], [1.5, 0.1], [1.5, 1e300]]).tolist() == [0, 1, 1]
    assert np.isfinite(box.decision_function([[1.5, 1e300]])).all()


@pytest.mark.parametrize("directions", [[[1.0, 0.0]], [[1.0, 1.0], [2.0, 2.0]]], ids=str)
def test_open_directions_are_refused(directions):
    with pytest.raises(ValueError, match="directions must be 2 independent vectors"):
        HyperrectangleSeparator(directions=directions).fit([[0.0, 1.0], [1.0, 0.0]], [0, 0])


def test_normal_rows_are_needed():
    with pytest.raises(ValueError, match="expected some in y, got one class only"):
        HyperrectangleSeparator().fit([[0.0], [1.0]], [1, 1])
