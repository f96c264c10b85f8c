"""Compiled loops: what NumPy gives, and each row for itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import compiled
from eqsep.compiled import manhattan, threads

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


@pytest.mark.parametrize("n_threads", ["1", "2", "5", "99"])
def test_threads_change_nothing(n_threads, monkeypatch):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(50, 20)), rng.normal(size=(30, 20))
    expected = manhattan(X, C)
    monkeypatch.setenv("OMP_NUM_THREADS", n_threads)
    monkeypatch.setattr(compiled, "WORTH_A_THREAD", 1)
    assert threads() == int(n_threads)
    assert_array_equal(manhattan(X, C), expected)


@pytest.mark.parametrize("asked", ["", "0", "many"])
def test_without_a_number_all_cores_are_used(asked, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert threads() == compiled.cpu_count()


def test_infinity_and_nan_keep_their_meaning():
    X = np.array([[np.inf, 0.0], [np.nan, 1.0], [1.0, 1.0]])
    assert_array_equal(manhattan(X, np.zeros((1, 2))).ravel(), [np.inf, np.nan, 2])
