"""Compiled loops: what NumPy gives, and each row for itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import cpu_count
from numpy.testing import assert_allclose, assert_array_equal

from eqsep.engine.kernels import Laplacian
from eqsep.engine.loops import (
    add_triangle,
    exponentials,
    in_threads,
    threads,
    weighted_sums,
)
from eqsep.engine.manhattan import SparseManhattan, manhattan
from eqsep.engine.nystroem import KernelMap

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
    kernel_map, coef = KernelMap(Laplacian(gamma=0.1), C, 7), rng.normal(size=30)
    expected = kernel_map.combine(X, coef), kernel_map.features(X)
    monkeypatch.setenv("OMP_NUM_THREADS", n_threads)
    monkeypatch.setattr(compiled, "WORTH_A_THREAD", 1)
    assert threads() == int(n_threads)
    assert_array_equal(kernel_map.combine(X, coef), expected[0])
    assert_array_equal(kernel_map.features(X), expected[1])
    assert_array_equal(expected[1], np.exp(-0.1 * manhattan(X, C)))


@pytest.mark.parametrize("asked", ["", "0", "many"])
def test_without_a_number_all_cores_are_used(asked, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert threads() == cpu_count()


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


def test_sums_are_in_double_precision_and_each_row_is_on_its_own():
    rng = np.random.default_rng(0)
    k, coef = rng.uniform(size=(30, 501)).astype(np.float32), rng.normal(size=(3, 501)) * 1e3
    together = weighted_sums(k, coef)
    assert_allclose(together, k.astype(float) @ coef.T, rtol=1e-12, atol=1e-9)
    assert_array_equal(np.concatenate([weighted_sums(row[None], coef) for row in k]), together)
    assert_array_equal(np.column_stack([weighted_sums(k, a[None]) for a in coef]), together)


def test_sums_of_rows_that_are_not_wanted_are_left_alone():
    k, coef, wanted = np.ones((4, 5), np.float32), np.ones((2, 5)), np.array([1, 0, 0, 1], bool)
    out = weighted_sums(k, coef, np.full((4, 2), -1.0), wanted)
    assert_array_equal(out, [[5, 5], [-1, -1], [-1, -1], [5, 5]])


def test_exponentials_are_as_good_as_single_precision_allows():
    s = np.linspace(0, 87, 10**6, dtype=np.float32)[None]
    found = exponentials(s.copy(), rate=1.0, powers=(1, 2))
    wanted = (np.exp(-s.astype(float)) + np.exp(-2 * s.astype(float))) / 2
    assert found.dtype == np.float32
    assert_allclose(found, wanted, rtol=2**-22)
    one = exponentials(s[:, :1000].copy(), rate=1.0, powers=(2,))
    assert_allclose(one, np.exp(-2 * s[:, :1000].astype(float)), rtol=2**-21)


@pytest.mark.parametrize("powers", [(1,), (1, 2), (4,), (1, 2, 4, 8, 16)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_are_1_at_the_landmark_and_0_far_away(powers, dtype):
    s = np.array([[0.0, 1.0, 200.0, 1e30, np.inf, np.nan]], dtype=dtype)
    wanted = np.mean([np.exp(-3.0 * p * s.astype(float)) for p in powers], axis=0)
    found = exponentials(s, rate=3.0, powers=powers)
    assert_allclose(found, wanted, rtol=1e-5, atol=1e-38)
    assert found[0, 0] == 1
    assert found[0, 3] == found[0, 4] == 0


def test_rows_of_exponentials_are_on_their_own():
    s = np.random.default_rng(0).uniform(0, 30, size=(50, 37)).astype(np.float32)
    together = exponentials(s.copy(), rate=0.7, powers=(1, 2, 4))
    alone = [exponentials(row[None].copy(), rate=0.7, powers=(1, 2, 4)) for row in s]
    assert_array_equal(np.concatenate(alone), together)


def test_a_single_power_is_numpys():
    """Models of before are answered to the last bit."""
    s = np.linspace(0, 9, 99, dtype=np.float32)[None]
    wanted = np.exp(s * -0.3)
    assert_array_equal(exponentials(s, rate=0.3), wanted)


def test_a_triangle_is_added_and_the_other_left():
    part, total = np.full((3, 3), 0.5, dtype=np.float32), np.ones((3, 3))
    add_triangle(part, total)
    assert_array_equal(total, 1 + 0.5 * np.tril(np.ones((3, 3))))


def test_work_in_a_thread_is_not_divided_again(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    parts = []

    def inner(rows):
        parts.append(rows)

    def outer(rows):
        in_threads(inner, rows.stop - rows.start, steps=2**40)

    in_threads(outer, 10, steps=2**40)
    assert parts == [slice(0, 5), slice(0, 5)]


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    def fail(rows):
        raise ValueError(f"in {rows.start}")

    with pytest.raises(ValueError, match="in 0"):
        in_threads(fail, 10, steps=2**40)
