"""The sums behind closed separators, with several targets a row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from eqsep.engine.nystroem import KernelMap
from eqsep.kernels import Laplacian

N_TARGETS = 3


@pytest.fixture(scope="module")
def kernel_map():
    landmarks = np.random.default_rng(0).normal(size=(12, 2))
    return KernelMap(Laplacian(gamma=0.7), landmarks, 50)


def problem(seed, n=80):
    rng = np.random.default_rng(seed)
    X, code = rng.normal(size=(n, 2)), rng.integers(0, N_TARGETS, size=n)
    return X, np.eye(N_TARGETS)[code], rng.uniform(0.2, 2, size=n)


def sums(kernel_map, X, target, weight):
    return kernel_map.statistics(X, target, weight, total=weight @ target)


def test_several_targets_are_several_problems(kernel_map):
    X, target, weight = problem(0)
    together = sums(kernel_map, X, target, weight)
    assert together.moment.shape == (12, N_TARGETS)
    coef = together.solve(0.1)
    for j in range(N_TARGETS):
        alone = kernel_map.statistics(X, target[:, j], weight, total=weight @ target)
        assert_allclose(alone.moment, together.moment[:, j], rtol=1e-12)
        assert_allclose(alone.solve(0.1), coef[:, j], rtol=1e-8, atol=1e-12)


def test_they_solve_weighted_least_squares(kernel_map):
    X, target, weight = problem(1)
    K = kernel_map.features(X)
    rows = np.vstack([np.sqrt(weight)[:, None] * K, np.sqrt(0.1) * np.eye(12)])
    goal = np.vstack([np.sqrt(weight)[:, None] * target, np.zeros((12, N_TARGETS))])
    expected, *_ = np.linalg.lstsq(rows, goal, rcond=None)
    assert_allclose(sums(kernel_map, X, target, weight).solve(0.1), expected, rtol=1e-7, atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), cut=st.integers(1, 79))
def test_sums_add_up_and_are_taken_away(seed, cut, kernel_map):
    X, target, weight = problem(seed)
    whole = sums(kernel_map, X, target, weight)
    first = sums(kernel_map, X[:cut], target[:cut], weight[:cut])
    second = sums(kernel_map, X[cut:], target[cut:], weight[cut:])
    for found, expected in ((first + second, whole), (whole - second, first)):
        assert_allclose(found.gram, expected.gram, atol=1e-10)
        assert_allclose(found.moment, expected.moment, atol=1e-10)
        assert_allclose(found.weight, expected.weight, atol=1e-10)


def test_a_matrix_without_full_rank_has_the_shortest_solution(kernel_map):
    """One row and no penalty: every target has its own shortest solution."""
    X, target, weight = problem(2, n=1)
    coef = sums(kernel_map, X, target, weight).solve(0.0)
    k = kernel_map.features(X)[0]
    assert_allclose(coef, np.outer(k / (k @ k), target[0]), atol=1e-8)
