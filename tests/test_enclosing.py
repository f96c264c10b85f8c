"""The chance of a finite, positive volume: `eqsep.theory.enclosing`."""

import numpy as np
import pytest

from eqsep.theory import (
    closing_number,
    closing_probability,
    enclosing_probability,
    region_volume,
)


def measured(family, n, k, *, draws, margin=1.0, seed=1):
    """The share of random regions whose volume is finite and positive, by their volumes."""
    rng = np.random.default_rng(seed)
    volumes = np.array(
        [
            region_volume(
                rng.standard_normal((k, n)), rng.standard_normal(k), family=family, epsilon=margin
            )
            for _ in range(draws)
        ]
    )
    share = np.mean((volumes > 0) & np.isfinite(volumes))
    return share, np.sqrt(max(share * (1 - share), 1 / draws) / draws)


@pytest.mark.parametrize(("n", "k"), [(1, 4), (2, 5), (3, 6)])
def test_halfspaces_enclose_as_often_as_the_formula_says(n, k):
    value, error = enclosing_probability("halfspace", n, k)
    share, spread = measured("halfspace", n, k, draws=100)
    assert error == 0
    assert abs(share - value) <= 3.5 * spread


@pytest.mark.parametrize(("n", "k", "margin"), [(1, 3, 0.5), (3, 5, 0.7)])
def test_slabs_enclose_as_often_as_their_volumes_say(n, k, margin):
    value, error = enclosing_probability("equality", n, k, margin=margin)
    share, spread = measured("equality", n, k, draws=100, margin=margin)
    assert 0.1 < value < 1
    assert 0 < error < 0.03
    assert abs(share - value) <= 3.5 * np.hypot(error, spread)


def test_slabs_are_measured_to_the_third_digit_where_corners_can_be_counted():
    """0.568 by 100,000 draws of five slabs, and a look at each of their corners."""
    value, error = enclosing_probability("equality", 2, 5)
    assert error < 0.003
    assert abs(value - 0.568) < 3.5 * np.hypot(error, 0.0016)


@pytest.mark.parametrize(("n", "k", "margin"), [(12, 24, 3.0), (2, 900, 0.5), (40, 4000, 10.0)])
def test_corners_are_not_counted_where_draws_of_all_slabs_say_more(n, k, margin, monkeypatch):
    monkeypatch.setattr("eqsep.theory.enclosing._slabs_meet", lambda *_, **__: True)
    value, error = enclosing_probability("equality", n, k, margin=margin)
    assert value == 1
    assert 0 < error < 0.03


def test_the_offsets_of_halfspaces_may_have_any_size():
    """The law holds for every distribution that a change of all signs leaves as it is."""
    rng = np.random.default_rng(0)
    volumes = [
        region_volume(
            rng.uniform(-1, 1, (5, 2)), 30 * rng.uniform(-1, 1, 5) ** 3, family="halfspace"
        )
        for _ in range(200)
    ]
    share = np.mean([0 < volume < np.inf for volume in volumes])
    assert abs(share - 0.1875) < 3.5 * np.sqrt(0.1875 * 0.8125 / 200)


@pytest.mark.parametrize("family", ["equality", "halfspace"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_positive_volume_asks_for_more_than_no_way_out(family, n):
    number = closing_number(family, n)
    assert enclosing_probability(family, n, number).value > 0
    for k in (*range(1, number + 1), 2 * n):
        assert enclosing_probability(family, n, k).value <= closing_probability(family, n, k)


def test_n_slabs_always_meet_and_wide_ones_nearly_always():
    assert enclosing_probability("equality", 7, 7) == (1, 0)
    narrow, wide = (enclosing_probability("equality", 2, 6, margin=m).value for m in (0.1, 10))
    assert narrow < 0.1 < 0.98 < wide


def test_one_ball_is_closed_and_several_are_refused():
    assert enclosing_probability("rbf", 3, 1) == (1, 0)
    with pytest.raises(ValueError, match="known for one ball, got k=2"):
        enclosing_probability("rbf", 3, 2)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="margin must be positive, got 0"):
        enclosing_probability("equality", 2, 3, margin=0)
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, got 0"):
        enclosing_probability("equality", 2, 0)
