"""Rows selected as they come: few of the alarms false, by a rule that does not run dry."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eqsep import Detector
from eqsep.errors import UserError
from eqsep.monitor import OnlineSelector


@pytest.fixture(scope="module")
def detector():
    X = np.random.default_rng(0).normal(size=(2_500, 2))
    return Detector(n_landmarks=60, bandwidth=1.0, random_state=0).fit(X)


def test_the_division_of_the_rows_does_not_matter(detector):
    p = np.random.default_rng(1).random(3_000) ** 3
    whole, pieces = OnlineSelector(detector), OnlineSelector(detector)
    mask = whole.decide(p)
    assert_array_equal(mask, np.concatenate([pieces.decide(q) for q in np.split(p, 6)]))
    assert whole.alarms == mask.sum() > 10
    assert whole.level == pieces.level


def test_the_level_follows_the_formula(detector):
    selector = OnlineSelector(detector, fdr=0.2, memory=50)
    p = np.random.default_rng(2).random(400) ** 2
    levels = []
    for value in p:
        levels.append(selector.level)
        selector.decide(np.array([value]))
    alarms = np.flatnonzero(p <= np.array(levels)) + 1
    ago = 400.0 - alarms[alarms < 400]
    gamma = 0.07720838 * np.log(np.maximum(ago, 2)) / (ago * np.exp(np.sqrt(np.log(ago))))
    expected = 0.2 * (1 / 50 + ((1 - 1 / 50) ** ago * gamma).sum())
    assert levels[-1] == pytest.approx(expected)
    assert min(levels) >= 0.2 / 50


def test_after_any_quiet_time_a_single_row_is_selected(detector):
    selector = OnlineSelector(detector, fdr=0.1)
    assert not selector.decide(np.full(5_000, 0.5)).any()
    assert selector.select([[0.0, 0.0], [9.0, 9.0]]).tolist() == [False, True]


def test_false_alarms_in_the_memory_are_few_where_most_rows_are_normal(detector):
    shares = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        selector, is_normal = OnlineSelector(detector, fdr=0.1), rng.random(500) >= 0.05
        mask = selector.decide(np.where(is_normal, rng.random(500), 0.0))
        weight = (1 - 1 / selector.memory) ** np.arange(500)[::-1]
        shares.append((weight * (mask & is_normal)).sum() / ((weight * mask).sum() + 1))
        assert mask[~is_normal].all()
    assert 0 < np.mean(shares) < 0.1


def test_old_alarms_are_let_go(detector):
    selector = OnlineSelector(detector, fdr=0.1, memory=2)
    selector.decide(np.concatenate([np.zeros(5), np.ones(1_000)]))
    assert selector.level == pytest.approx(0.05)
    assert selector.alarms == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"memory": 80},
            "80 rows needs 799 held-out normal rows to select any row, and there are 499",
        ),
        ({"fdr": 0.003}, "A memory of 2 rows needs 666 held-out normal rows"),
        ({"fdr": 2}, "fdr must be a number between 0 and 1"),
    ],
)
def test_what_no_held_out_rows_resolve_is_refused(detector, options, message):
    with pytest.raises(UserError, match=message):
        OnlineSelector(detector, **options)
