"""Kernels: their values, their laws, their limits, and one formula for two array libraries."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import (
    euclidean_distances,
    kernel_metrics,
    laplacian_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from eqsep.engine.kernels import PAIRWISE, SparseLaplacian, SquaredDistance, are_powers, unit_of
from eqsep.engine.loops import mean_of_powers
from eqsep.kernels import (
    LOCAL_KERNELS,
    RBF,
    Exponential,
    FunctionKernel,
    Kernel,
    Laplacian,
    PairwiseKernel,
    as_kernel,
)

LOCAL = [kernel(gamma=0.3) for kernel in LOCAL_KERNELS.values()]
SKLEARN = {
    "rbf": rbf_kernel,
    "laplacian": laplacian_kernel,
    "exponential": lambda X, C, gamma: np.exp(-gamma * euclidean_distances(X, C)),
}


def rows(n, d, *, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("name", SKLEARN)
def test_values_are_those_of_scikit_learn(name):
    X, C = rows(30, 7), rows(20, 7, seed=1)
    assert_allclose(as_kernel(name, gamma=0.3)(X, C), SKLEARN[name](X, C, gamma=0.3), rtol=1e-12)


@pytest.mark.parametrize("kernel", LOCAL, ids=repr)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), d=st.integers(1, 40), scale=st.sampled_from([1e-6, 1, 1e3]))
def test_a_gram_matrix_is_symmetric_one_on_the_diagonal_and_positive(kernel, seed, d, scale):
    X = rows(15, d, seed=seed) * scale + 100
    K = clone(kernel).set_params(gamma=0.3 / scale)(X, X)
    assert_array_equal(np.diag(K), 1)
    assert_allclose(K, K.T, rtol=1e-9, atol=1e-9)
    assert np.linalg.eigvalsh(K).min() > -1e-6
    assert K.max() <= 1


@pytest.mark.parametrize("kernel", LOCAL, ids=repr)
def test_identical_rows_far_from_the_origin_are_recognised(kernel):
    X = np.repeat(1e9 + rows(4, 50), 2, axis=0)
    K = kernel(X, X)
    assert_array_equal(K[::2, ::2].diagonal(), 1)
    assert_array_equal(K[::2, 1::2].diagonal(), 1)


def test_centring_keeps_small_distances_between_large_numbers():
    C = np.array([[1e8, 0.0], [1e8, 2.0]])
    assert_allclose(SquaredDistance(C)(C + np.array([0.0, 1.0])), [[1.0, 1.0], [9.0, 1.0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", LOCAL, ids=repr)
@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
def test_far_away_the_value_is_zero_and_never_nan(kernel, library, dtype):
    largest = float(np.finfo(dtype).max)
    far = library(np.array([[largest, -largest], [largest / 1e8, 0.0], [1e6, 1e6]], dtype=dtype))
    assert_array_equal(kernel(far, library(np.array([[0.0, 1.0]], dtype=dtype))), 0)


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("kernel", LOCAL, ids=repr)
def test_a_landmark_too_large_to_be_squared_is_near_itself_alone(kernel, library):
    X = library(np.array([[0.0, 1.0], [1e300, 0.0], [0.0, 1e300], [1.1e300, 0.0]]))
    assert_array_equal(kernel(X, X), np.eye(4))
    assert_array_equal(kernel(X[:1, :], X[1:, :]), 0)


# The largest and smallest numbers of each precision, where squares overflow or vanish.
SCALES = [(np.float64, 2.0**e) for e in (-1060, -1000, -600, 600, 1000, 1018)] + [
    (np.float32, 2.0**e) for e in (-140, -120, -70, 70, 120)
]


@pytest.mark.parametrize(("dtype", "scale"), SCALES)
@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("kernel", LOCAL_KERNELS.values())
def test_the_median_gamma_works_at_any_scale(kernel, library, dtype, scale):
    plain = np.random.default_rng(0).integers(-8, 8, size=(30, 3)).astype(dtype)
    C = plain * dtype(scale)
    expected = kernel().resolved(plain)(plain, plain)
    found = kernel().resolved(library(C))
    values = found(library(C), library(C))
    assert_allclose(values, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-30)
    assert_array_equal(np.diag(values), 1)
    if scale < 1:
        far = library(np.full((1, 3), np.finfo(dtype).max, dtype=dtype))
        assert_array_equal(found(far, library(C)), 0)


def test_one_landmark_far_off_does_not_set_the_unit():
    C = np.vstack([rows(9, 2), [[1e300, 0.0]]])
    assert unit_of(C) == 1
    assert unit_of(np.vstack([C[:9] * 1e-200, C[9:]])) < 1e-190
    assert RBF().resolved(C).gamma == pytest.approx(RBF().resolved(C[:9]).gamma)


def test_a_gamma_that_is_a_float_is_put_in_its_place_at_any_scale():
    C = rows(20, 3)
    plain = Exponential().resolved(C).gamma
    assert Exponential().resolved(C * 2.0**900).gamma == pytest.approx(plain / 2.0**900)
    assert RBF().resolved(C * 2.0**900).gamma == "median"  # about 1e-542: no float
    K = Exponential(gamma=1e-300)(C * 1e300, C * 1e300)
    assert_allclose(K, Exponential(gamma=1.0)(C, C), rtol=1e-9)


@pytest.mark.parametrize("gamma", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("scale", [1e-300, 1e300])
@pytest.mark.parametrize("kernel", LOCAL_KERNELS.values())
def test_no_gamma_makes_a_value_that_is_no_number(kernel, gamma, scale):
    X = rows(5, 3) * scale
    K = kernel(gamma=gamma)(np.vstack([X, np.full((1, 3), 1.7e308)]), X)
    assert np.isfinite(K).all()
    assert_array_equal(np.diag(K), 1)


@pytest.mark.parametrize("kernel", LOCAL, ids=repr)
def test_numpy_and_torch_agree(kernel):
    X, C = rows(30, 7), rows(20, 7, seed=1)
    values = kernel(torch.tensor(X), torch.tensor(C))
    assert values.dtype == torch.float64
    assert_allclose(values, kernel(X, C), rtol=1e-12)


@pytest.mark.parametrize("kernel", LOCAL, ids=repr)
def test_single_precision_stays_single(kernel):
    X = rows(30, 7).astype(np.float32)
    assert kernel(X, X).dtype == np.float32
    assert_allclose(kernel(X, X), kernel(X.astype(float), X.astype(float)), atol=2e-3)


@pytest.mark.parametrize("kernel", LOCAL, ids=repr)
def test_the_inputs_stay_as_they_were(kernel):
    X, C = rows(5, 3), rows(4, 3, seed=1)
    kept = X.copy(), C.copy()
    kernel(X, C)
    assert_array_equal(X, kept[0])
    assert_array_equal(C, kept[1])


@pytest.mark.parametrize("kernel", LOCAL_KERNELS.values())
def test_the_median_gamma_puts_half_of_the_pairs_below_one_over_e(kernel):
    C = rows(41, 3)
    found = kernel().resolved(C)
    pairs = found(C, C)[np.triu_indices(41, 1)]
    assert_allclose(np.median(pairs), np.exp(-1), rtol=1e-3)
    assert found.gamma == pytest.approx(kernel().resolved(torch.tensor(C)).gamma, rel=1e-12)
    assert kernel().gamma == "median"


def test_the_median_of_many_landmarks_is_that_of_some():
    C = rows(3000, 2)
    assert RBF().resolved(C).gamma == pytest.approx(RBF().resolved(C[:400]).gamma, rel=0.2)


def test_identical_landmarks_have_gamma_one():
    for size in (1.0, 1e300, 1e-300, 0.0):
        C = np.full((5, 2), size)
        assert RBF().resolved(C).gamma == 1.0
        assert_array_equal(RBF().resolved(C)(C, C), 1)


def test_a_number_for_gamma_stays():
    assert RBF(gamma=2).resolved(rows(5, 2)) == RBF(gamma=2.0)


@pytest.mark.parametrize("gamma", [0, -1.0, np.nan, np.inf, "scale"])
def test_gamma_must_be_positive(gamma):
    with pytest.raises(ValueError, match="gamma must be a number above 0"):
        RBF(gamma=gamma).resolved(rows(5, 2))


def test_other_names_come_from_scikit_learn():
    X, C = rows(5, 3), rows(4, 3, seed=1)
    kernel = as_kernel("polynomial", gamma=0.5)
    assert kernel == PairwiseKernel("polynomial", {"gamma": 0.5})
    assert_allclose(kernel(X, C), polynomial_kernel(X, C, gamma=0.5))
    assert_allclose(as_kernel("linear")(X, C), X @ C.T)
    assert not kernel.is_local


def test_a_kernel_of_scikit_learn_refuses_tensors():
    with pytest.raises(TypeError, match="takes NumPy arrays, got Tensor"):
        as_kernel("linear")(torch.ones(2, 2), torch.ones(2, 2))


def test_a_function_is_a_kernel():
    kernel = as_kernel(lambda X, C: X @ C.T)
    assert not kernel.is_local
    assert FunctionKernel(kernel.function, is_local=True).is_local
    assert_array_equal(kernel(np.ones((2, 3)), np.ones((4, 3))), np.full((2, 4), 3))


@pytest.mark.parametrize("function", [lambda x, c: float(x[0] @ c[0]), lambda X, C: X + C[0]])
def test_a_function_must_return_the_whole_matrix(function):
    with pytest.raises(ValueError, match=r"to a matrix \(n, m\): expected shape \(2, 4\)"):
        as_kernel(function)(np.ones((2, 3)), np.ones((4, 3)))


def test_a_kernel_is_itself():
    kernel = Laplacian(gamma=0.1)
    assert as_kernel(kernel) is kernel
    assert isinstance(kernel, Kernel)
    assert kernel.is_local
    assert clone(kernel) == kernel


@pytest.mark.parametrize(
    ("kernel", "gamma", "message"),
    [
        ("rfb", "median", "Unknown kernel 'rfb': expected one of .*exponential, laplacian.*rbf"),
        (3, "median", "must be a name, a Kernel or a function"),
        (Exponential(1.0), 2.0, "were both given"),
        ("polynomial", -1.0, "gamma must be a number above 0"),
    ],
)
def test_what_is_no_kernel_is_refused(kernel, gamma, message):
    with pytest.raises(ValueError, match=message):
        as_kernel(kernel, gamma=gamma)


@pytest.mark.parametrize("powers", [(1,), (2,), (1, 2, 4, 8, 16), (4, 32)])
@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_of_several_bandwidths_a_laplacian_kernel_is_the_mean(powers, make):
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(9, 3)), rng.normal(size=(5, 3))
    s = np.abs(X[:, None] - C).sum(axis=2)
    wanted = np.mean([np.exp(-0.2 * p * s) for p in powers], axis=0)
    assert_allclose(Laplacian(gamma=0.2, powers=powers)(make(X), make(C)), wanted, rtol=1e-12)
    sparse = SparseLaplacian(gamma=0.2, powers=powers)
    assert_allclose(sparse(X.astype(np.float32), C.astype(np.float32)), wanted, rtol=2e-5)


def test_the_kernels_of_scikit_learn_are_all_known_by_their_names():
    assert set(PAIRWISE) == set(kernel_metrics())


def test_powers_are_few_powers_of_two_in_rising_order():
    assert [are_powers(p) for p in ([1, 2, 8], [2, 1], [3], [])] == [True, False, False, False]
    assert mean_of_powers(np.array([[0.5]]), (1, 4)) == 0.28125
