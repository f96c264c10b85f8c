"""Tails: how rare a value is among those of normal rows, in powers of ten."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eqsep.engine.tails import EDGE, USUAL, Tail

RNG = np.random.default_rng(0)
VALUES = np.column_stack([RNG.exponential(size=50_000), 3 + 0.2 * RNG.exponential(size=50_000)])
TAIL = Tail.of(VALUES)
SOME = np.linspace(-2, 40, 500)[:, None] * [1, 1]


def test_nine_tenths_of_the_rows_count_nothing_and_the_others_by_how_rare_they_are():
    found = TAIL(VALUES)
    assert_array_equal((found > 0).mean(axis=0), [0.1, 0.1])
    for rarer in (0.1, 0.3, 1, 2):  # powers of ten
        assert_allclose((found > rarer).mean(axis=0), 0.1 * 10**-rarer, rtol=0.25)


def test_the_tail_rises_without_an_end():
    found = TAIL(SOME)
    assert (np.diff(found, axis=0) >= 0).all()
    assert (np.diff(found, axis=0)[SOME[1:, 0] > 6] > 0).all()


def test_both_knots_are_quantiles_and_the_second_halves_the_rows():
    usual, edge = np.quantile(VALUES, [USUAL, EDGE], axis=0, method="inverted_cdf")
    assert_allclose(TAIL(np.stack([usual, edge])), [[0, 0], [np.log10(2)] * 2], atol=1e-12)


def test_rows_that_count_twice_are_two():
    weight = RNG.integers(0, 5, size=len(VALUES))
    weighted, repeated = (
        Tail.of(VALUES, weight.astype(float)),
        Tail.of(VALUES.repeat(weight, axis=0)),
    )
    assert_allclose(weighted(SOME), repeated(SOME))
    assert_allclose(Tail.of(VALUES, weight / 1e6)(SOME), weighted(SOME))


@pytest.mark.parametrize("values", [np.zeros((30, 1)), np.full((1, 1), 5.0), np.eye(20)[:, :1]])
def test_values_that_are_all_alike_make_no_tail_too_steep_to_count(values):
    tail = Tail.of(values)
    assert (tail(values.min(keepdims=True)) == 0).all()
    assert np.isfinite(tail(values.max(keepdims=True) + 1e6)).all()


def test_a_tensor_has_the_tail_of_its_values():
    torch = pytest.importorskip("torch", reason="the extra nn is not installed")
    assert_allclose(TAIL(torch.tensor(SOME)).numpy(), TAIL(SOME), atol=1e-12)
    single = TAIL(torch.tensor(SOME, dtype=torch.float32))
    assert single.dtype == torch.float32
    assert_allclose(single.numpy(), TAIL(SOME), rtol=1e-4, atol=1e-4)
