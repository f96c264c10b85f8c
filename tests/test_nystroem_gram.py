"""Sums of products of kernel values: what NumPy gives, and where they may be rounded."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eqsep.engine import nystroem
from eqsep.engine.kernels import SparseLaplacian
from eqsep.engine.nystroem import BLOCK, LIGHT, Gram, KernelMap


@pytest.fixture
def rounding(monkeypatch):
    """As if every sum were worth it."""
    monkeypatch.setattr(nystroem, "WORTH_ROUNDING", 0)


def values(n, m=30, *, scale=1.0, dtype=np.float32, seed=0):
    k = np.random.default_rng(seed).uniform(size=(n, m)) ** 4
    return (k * scale).astype(dtype)


def light(n=BLOCK, m=30, seed=0):
    """Values of which the sum may be rounded, if only just."""
    k = values(n, m, dtype=float, seed=seed)
    return (k * np.sqrt(0.99 * LIGHT / (k**2).sum(axis=0).max())).astype(np.float32)


def summed(blocks, *, n_rows=10**6):
    total = Gram(blocks[0].shape[1], n_rows=n_rows)
    for k in blocks:
        total.add(k)
    return total.matrix()


def exact(blocks):
    doubles = [k.astype(float) for k in blocks]
    return sum(k.T @ k for k in doubles)


@pytest.mark.parametrize("n", [0, 1, BLOCK, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_the_sum_of_products(n, dtype):
    blocks = [values(n, dtype=dtype), values(n, dtype=dtype, seed=1)]
    found = summed(blocks)
    assert found.dtype == np.float64
    assert_allclose(found, exact(blocks), rtol=1e-12)
    assert_array_equal(found, found.T)


@pytest.mark.usefixtures("rounding")
def test_light_blocks_are_rounded_to_what_values_are_rounded_to():
    blocks = [light(seed=seed) for seed in range(5)]
    off = summed(blocks) / exact(blocks) - 1
    assert np.abs(off).max() < 5e-7
    assert np.abs(off).max() > 1e-9, "they are not rounded: nothing is compared"
    assert_array_equal(summed(blocks), summed(blocks).T)


@pytest.mark.usefixtures("rounding")
@pytest.mark.parametrize(
    "k",
    [light() * np.float32(1.01), light().astype(float), np.concatenate([light(), light()[:1] * 0])],
    ids=["at a landmark near many rows", "in double precision", "of many rows"],
)
def test_others_are_not(k):
    assert_allclose(summed([k]), exact([k]), rtol=1e-13)


def test_nor_are_few_rows_in_all():
    assert_allclose(summed([light()], n_rows=BLOCK), exact([light()]), rtol=1e-13)


def test_what_is_no_number_is_seen(monkeypatch):
    k = light()
    k[3, 5] = np.nan
    for worth in (0, 2**60):
        monkeypatch.setattr(nystroem, "WORTH_ROUNDING", worth)
        found = summed([k, light()])
        assert np.isnan(found[5]).all()
        assert np.isnan(found).sum() == 2 * len(found) - 1


def test_sums_of_others_are_added():
    first, second = Gram(30, n_rows=9), Gram(30, n_rows=9)
    first.add(values(9))
    second.add(values(9, seed=1))
    first += second
    assert_allclose(first.matrix(), exact([values(9), values(9, seed=1)]), rtol=1e-12)


@pytest.mark.usefixtures("rounding")
def test_pieces_of_a_narrow_kernel_give_the_functions_that_the_whole_gives():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 6)).astype(np.float32)
    kernel_map = KernelMap(SparseLaplacian(8.0, (1, 2, 4)), X[:200], 4096)
    target, weight = np.eye(2)[rng.integers(0, 2, size=3000)], np.ones(3000)

    def coef(*pieces):
        found = [
            kernel_map.statistics(X[p], target[p], weight[p], total=weight[p] @ target[p])
            for p in pieces
        ]
        return sum(found[1:], start=found[0]).solve(0.1)

    whole = coef(slice(0, 3000))
    order = np.random.default_rng(1).permutation(3000)
    pieces = coef(order[:700], order[700:703], order[703:])
    f = kernel_map.evaluate(X, whole, dtype=float)
    assert_allclose(kernel_map.evaluate(X, pieces, dtype=float), f, atol=1e-6)
    assert f.std() > 0.1, "nothing is learnt"
