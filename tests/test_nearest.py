"""Distances to the nearest of some rows, in units of what surrounds these."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from eqsep.engine.nearest import LEAST, Neighbourhood

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 4)).astype(np.float32)
NEW = RNG.normal(scale=3, size=(200, 4)).astype(np.float32)
NONE = np.zeros(300, dtype=bool)
ISOLATED = np.arange(300) < 5


def brute(rows, others, isolated=NONE, k=10):
    """The scaled distances of rows to all others, without a handicap."""
    between = cdist(others, others, "cityblock")
    around = np.sort(between, axis=1)[:, 1 : k + 1].mean(axis=1)
    scaled = cdist(rows, others, "cityblock") / (around + 2 * around.mean())
    return np.where(isolated, np.inf, scaled)


def test_it_is_the_least_distance_in_units_of_what_surrounds_each_row():
    neighbourhood, alone = Neighbourhood.of(ROWS, NONE)
    assert_allclose(
        np.exp(neighbourhood.log_distance(NEW)), brute(NEW, ROWS).min(axis=1), rtol=1e-5
    )
    others = brute(ROWS, ROWS)
    np.fill_diagonal(others, np.inf)
    assert_allclose(np.exp(alone), others.min(axis=1), rtol=1e-5)
    assert_array_equal(neighbourhood.handicap, 0)


def test_what_is_near_to_isolated_rows_alone_is_not_near():
    rows = ROWS.copy()
    rows[ISOLATED] += 30
    neighbourhood, alone = Neighbourhood.of(rows, ISOLATED)
    assert len(alone) == 295
    far = np.quantile(np.exp(alone), 0.99)
    assert_allclose(np.unique(neighbourhood.handicap), [0, far], rtol=1e-5)
    at_them, near_others = (
        np.exp(neighbourhood.log_distance(part)) for part in (rows[:5], rows[5:])
    )
    assert (at_them >= far * 0.999).all()
    assert_allclose(near_others, LEAST)  # they are among the rows
    trusting, _ = Neighbourhood.of(rows, NONE)
    assert_allclose(np.exp(trusting.log_distance(rows[:5])), LEAST)


def test_where_a_row_is_near_enough_it_need_not_be_known_how_near():
    neighbourhood, alone = Neighbourhood.of(ROWS, ISOLATED)
    enough = float(np.quantile(alone, 0.5))
    exact, quick = (neighbourhood.log_distance(NEW, enough=e) for e in (-np.inf, enough))
    assert_array_equal(quick[exact > enough], exact[exact > enough])
    assert (quick[exact <= enough] <= enough + 1e-6).all()


def test_a_row_is_on_its_own_to_the_last_bit():
    neighbourhood, _ = Neighbourhood.of(ROWS, ISOLATED)
    alone = [neighbourhood.log_distance(NEW[i : i + 3]) for i in range(0, len(NEW), 3)]
    assert_array_equal(neighbourhood.log_distance(NEW), np.concatenate(alone))


def test_equal_rows_are_no_error():
    neighbourhood, alone = Neighbourhood.of(np.zeros((30, 2), np.float32), NONE[:30])
    assert np.isfinite(alone).all()
    assert np.isfinite(neighbourhood.log_distance(np.ones((1, 2), np.float32))).all()


def test_a_tensor_has_the_same_distances():
    torch = pytest.importorskip("torch", reason="the extra nn is not installed")
    neighbourhood, _ = Neighbourhood.of(ROWS, ISOLATED)
    found = neighbourhood.log_distance_of_tensor(torch.tensor(NEW))
    assert_allclose(found.numpy(), neighbourhood.log_distance(NEW), atol=1e-5)
