"""The one-class SVM by low rank is the library's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM

from paper.one_class import LowRankOneClassSVM, box_dual, low_rank


@pytest.fixture(scope="module")
def rows():
    """Two clouds, one of them flat, and some rows twice."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 4)), rng.normal(size=(100, 4)) * [3, 1, 0.1, 0] + 2])
    return np.vstack([X, X[:20]])


def test_the_factor_gives_the_kernel_back(rows):
    factor = low_rank(rows, gamma=0.05, tol=1e-5)
    assert factor.shape[1] < 250
    left = rbf_kernel(rows, gamma=0.05) - factor @ factor.T
    assert_allclose(left, 0, atol=1e-5)
    assert np.diag(left).min() > -1e-12


@pytest.mark.parametrize("nu", [0.01, 0.15, 0.4055, 0.9])
def test_scores_are_those_of_the_library(rows, nu):
    peer = OneClassSVM(nu=nu, tol=1e-9).fit(rows)
    ours = LowRankOneClassSVM(nu=nu).fit(rows)
    new = np.random.default_rng(1).normal(size=(50, 4)) * 3
    scores = peer.score_samples(new)
    assert_allclose(ours.score_samples(new), scores, rtol=2e-3, atol=2e-4 * scores.max())
    assert ours.offset_ == pytest.approx(peer.offset_[0], rel=5e-3)
    assert ours.dual_coef_.sum() == pytest.approx(nu * len(rows), rel=1e-4)


def test_weights_are_optimal(rows):
    factor = low_rank(rows, gamma=0.05, tol=1e-5)
    weights, rho = box_dual(factor, nu=0.3, tol=1e-8)
    assert weights.min() > 0
    assert weights.max() < 1
    gradient = factor @ (factor.T @ weights)
    # no weight can move from a row to another and lower the objective
    assert gradient[weights > 1e-4].max() < rho + 1e-3
    assert gradient[weights < 1 - 1e-4].min() > rho - 1e-3
