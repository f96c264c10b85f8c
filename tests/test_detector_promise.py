"""The promise: how often a new normal row raises an alarm."""

import numpy as np
import pytest
from eqsep.detector.scoring import Calibration, usable
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector
from eqsep.detector import CalibrationWarning
from eqsep.detector.holdout import held_out

RATES = (0.01, 0.05, 0.1)
FIRST, FRESH = 700, 500  # rows learnt, and rows to count alarms in


def cheap(**parameters):
    return Detector(**{"bandwidth": 0.5, "n_landmarks": 50} | parameters)


def continuous(rng, n):
    return rng.standard_t(df=4, size=(n, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]])


def discrete(rng, n):
    """Few distinct rows, many of them repeated hundreds of times."""
    return np.column_stack([rng.poisson(0.4, size=n), rng.binomial(3, 0.1, size=n)])


def nearly_discrete(rng, n):
    """Half of the rows equal, the others all different."""
    return np.where(rng.uniform(size=(n, 1)) < 0.5, 0.0, rng.normal(size=(n, 2)))


def false_alarms(draw, *, n_splits, learn):
    """The share of alarms among fresh normal rows: a row for each split, a column for each rate."""
    out = []
    for seed in range(n_splits):
        rng = np.random.default_rng(seed)
        detector = learn(draw(rng, FIRST), seed)
        fresh = detector.score_samples(draw(rng, FRESH))
        out.append(
            [(fresh > detector.set_params(false_alarm_rate=r).threshold_).mean() for r in RATES]
        )
    return np.array(out)


def in_one_go(X, seed):
    anomalies = np.full((20, X.shape[1]), 9.0) + np.arange(20)[:, None]
    y = np.repeat(["normal", "known"], [len(X), 20])
    return cheap(random_state=seed).fit(np.vstack([X, anomalies]), y)


def in_pieces(X, seed):
    """A first piece, one more, one from another detector, and some rows forgotten."""
    detector = cheap(random_state=seed).fit(X[:300])
    other = cheap(feature_map=detector.feature_map_, false_alarm_rate=0.1).fit(X[300:500])
    return detector.merge(other).partial_fit(X[500:]).forget(X[:100])


@pytest.mark.parametrize("learn", [in_one_go, in_pieces])
def test_the_promise_is_kept_on_average(learn):
    alarms = false_alarms(continuous, n_splits=40, learn=learn)
    error = alarms.std(axis=0, ddof=1) / np.sqrt(len(alarms))
    assert (np.abs(alarms.mean(axis=0) - RATES) < 2.5 * error).all(), alarms.mean(axis=0)


@pytest.mark.parametrize("draw", [discrete, nearly_discrete])
@pytest.mark.parametrize("learn", [in_one_go, in_pieces])
def test_repeated_rows_do_not_break_the_promise(draw, learn):
    alarms = false_alarms(draw, n_splits=20, learn=learn)
    error = alarms.std(axis=0, ddof=1) / np.sqrt(len(alarms))
    assert (alarms.mean(axis=0) < RATES + 2.5 * error).all(), alarms.mean(axis=0)


def test_p_values_of_normal_rows_are_at_most_as_small_as_they_say():
    """Super-uniform: P(p <= a) <= a for every a; and about a, where scores do not tie."""
    ps = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        detector = in_one_go(continuous(rng, FIRST), seed)
        ps.append(detector.p_value(continuous(rng, 100)))
    for a in (0.01, 0.05, 0.2, 0.5, 0.8):
        share = np.mean(np.array(ps) <= a, axis=1)
        error = share.std(ddof=1) / np.sqrt(len(share))
        assert a - 3 * error < share.mean() < a + 3 * error


def test_the_rate_may_be_changed_after_fitting():
    rng = np.random.default_rng(0)
    X = continuous(rng, 2_000)
    detector = cheap(random_state=0).fit(X)
    coef, alarms = detector.coef_.copy(), {}
    for rate in (0.01, 0.05, 0.3):
        detector.set_params(false_alarm_rate=rate)
        alarms[rate] = detector.predict(X).mean()
        score = detector.decision_function(X)
        assert_array_equal(detector.predict(X), (score > 0).astype(int))
        assert_array_equal(
            detector.predict(X) == 1, detector.score_samples(X) > detector.threshold_
        )
        assert_allclose(
            (detector.calibration_.scores > detector.threshold_).mean(), rate, atol=0.006
        )
    assert alarms[0.01] < alarms[0.05] < alarms[0.3]
    assert_array_equal(detector.coef_, coef)
    anew = cheap(random_state=0, false_alarm_rate=0.3).fit(X)
    assert anew.threshold_ == detector.threshold_


@pytest.mark.parametrize(
    ("n", "rate", "told"),
    [
        (100, 0.01, r"it takes 99 held-out normal rows, and there are 50.*false_alarm_rate=0.02"),
        (1, 0.05, r"it takes 19 held-out normal rows, and there are 0. Add normal rows\.$"),
        (400, 0.001, "it takes 999 held-out normal rows, and there are 99"),
    ],
)
def test_too_few_rows_for_the_promise_are_told(n, rate, told):
    X = np.random.default_rng(0).normal(size=(n, 2))
    with pytest.warns(CalibrationWarning, match=told) as warned:
        cheap(random_state=0, false_alarm_rate=rate).fit(X)
    assert len(warned) == 1


@pytest.mark.parametrize(("n", "rate"), [(240, 0.01), (100, 0.02), (40, 0.05), (18, 0.1)])
def test_enough_rows_raise_no_warning(n, rate):
    """Warnings are errors here."""
    detector = cheap(random_state=0, false_alarm_rate=rate)
    assert (
        detector.fit(np.random.default_rng(0).normal(size=(n, 2))).calibration_.least_rate <= rate
    )


@given(n=st.integers(0, 20_000))
def test_whole_percentages_are_met_by_the_rows_that_count(n):
    assert 0 <= usable(n) <= n
    if n >= 99:
        assert (usable(n) + 1) % 100 == 0
        assert n - usable(n) < 100
    assert held_out(n) <= n / 2
    assert held_out(n) <= 3_999


@given(scores=st.lists(st.floats(0, 2), max_size=250), rate=st.floats(0.004, 0.996))
def test_alarms_and_p_values_say_the_same(scores, rate):
    """Above the threshold means a p-value of at most the rate, wherever it can be promised."""
    calibration = Calibration(np.zeros((len(scores), 1)), np.array(scores))
    probe = np.linspace(-0.5, 2.5, 301)
    if calibration.least_rate <= rate:
        alarm = probe > calibration.threshold(rate)
        p = calibration.p_value(probe)
        assert (p[alarm] <= rate + 1e-9).all()
        assert (p[~alarm & ~np.isin(probe, scores)] > rate - 1e-9).all()


def test_equal_scores_count_as_high():
    """Ties are on the side of caution: a row that scores as held-out ones do is like them."""
    calibration = Calibration(np.zeros((9, 1)), np.repeat([0.0, 1.0], [4, 5]))
    assert_allclose(calibration.p_value(np.array([0.0, 0.5, 1.0, 1.5])), [1.0, 0.6, 0.6, 0.1])
    assert calibration.threshold(0.3) == 1.0
