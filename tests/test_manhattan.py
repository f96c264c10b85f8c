"""Manhattan distances: what NumPy gives, each row for itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from eqsep.engine.kernels import SparseManhattan, manhattan

LAYOUTS = {
    "by rows": np.ascontiguousarray,
    "every other": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read only": lambda X: np.frombuffer(X.tobytes(), dtype=X.dtype).reshape(X.shape),
}
every_width = pytest.mark.parametrize("width", [1, 7, 8, 33, 64, 65, 90, 128])


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(0, 9), m=st.integers(1, 9), width=st.integers(1, 70), seed=st.integers(0, 2**31)
)
def test_it_is_the_sum_of_absolute_differences(n, m, width, seed):
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(n, width)), rng.normal(size=(m, width))
    assert_allclose(manhattan(X, C), np.abs(X[:, None] - C).sum(axis=2), rtol=1e-12)


@every_width
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_depends_neither_on_its_neighbours_nor_on_where_it_lies(dtype, layout, width):
    """To the last bit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(21, width)).astype(dtype)
    C = rng.normal(size=(13, width)).astype(dtype)
    together = manhattan(layout(X), layout(C))
    assert together.dtype == dtype
    assert_array_equal(together, manhattan(X, C))
    alone = np.concatenate([manhattan(layout(X)[i : i + 1], C) for i in range(len(X))])
    assert_array_equal(alone, together)
    by_landmark = np.column_stack([manhattan(X, C[j : j + 1]) for j in range(len(C))])
    assert_array_equal(by_landmark, together)


def test_nor_on_the_order_of_the_array():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(21, 90)), rng.normal(size=(13, 90))
    assert_array_equal(manhattan(np.asfortranarray(X), C), manhattan(X, C))


def test_infinity_and_nan_keep_their_meaning():
    X = np.array([[np.inf, 0.0], [np.nan, 1.0], [1.0, 1.0]])
    assert_array_equal(manhattan(X, np.zeros((1, 2))).ravel(), [np.inf, np.nan, 2])


def mostly_the_same(rng, n, width, dtype=np.float32):
    """Rows of columns that hold one number nearly everywhere, and of columns that do not."""
    usual = rng.normal(size=width)
    rare = rng.uniform(size=(n, width)) < rng.choice([0.05, 0.3, 1.0], size=width)
    return np.where(rare, rng.normal(size=(n, width)), usual).astype(dtype)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(0, 40), m=st.integers(1, 40), width=st.integers(1, 30), seed=st.integers(0, 2**31)
)
def test_columns_that_are_mostly_one_number_change_nothing_but_the_work(n, m, width, seed):
    rows = mostly_the_same(np.random.default_rng(seed), n + m, width)
    X, C = rows[:n], rows[n:]
    expected = np.abs(X[:, None].astype(float) - C).sum(axis=2)
    got = SparseManhattan(C)(X)
    assert got.dtype == np.float32
    assert (got >= 0).all()
    assert_allclose(got, expected, atol=1e-5)


def test_columns_that_are_one_number_for_all_landmarks_still_count():
    distance = SparseManhattan(np.array([[1.0], [1.0]]))
    assert_array_equal(distance(np.array([[1.0], [4.0]])), [[0, 0], [3, 3]])


def test_the_second_most_common_number_counts_as_every_other():
    landmarks = np.array([[0, 1], [0, 2], [0, 1], [3, 1], [3, 1], [7, 2]], dtype=np.float32)
    rows = np.array([[0, 1], [3, 2], [7, 1], [np.nan, 2]], dtype=np.float32)
    expected = np.abs(rows[:, None] - landmarks).sum(axis=2)
    assert_array_equal(SparseManhattan(landmarks)(rows), expected)


def test_sparse_rows_do_not_depend_on_their_neighbours():
    rows = mostly_the_same(np.random.default_rng(0), 200, 40)
    distance = SparseManhattan(rows[50:])
    together = distance(rows)
    assert_array_equal(np.concatenate([distance(row[None]) for row in rows]), together)
