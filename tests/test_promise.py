"""Promises of one model: a rate with a confidence, and the interval in which the rate lies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from eqsep import Detector, load_model
from eqsep.cli import app
from eqsep.detector import CalibrationWarning
from eqsep.detector.calibration import (
    Calibration,
    certified_rank,
    least_certified,
    rate_interval,
    rows_needed,
)
from eqsep.errors import UserError

CASES = [(499, 0.01, 0.95), (199, 0.05, 0.9), (99, 0.1, 0.99), (30, 0.2, 0.5), (3999, 0.003, 0.95)]


def cheap(**parameters):
    return Detector(**{"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0} | parameters)


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def calibration(n, seed=0):
    return Calibration(np.random.default_rng(seed).normal(size=n))


@pytest.mark.parametrize(("n", "rate", "confidence"), CASES)
def test_the_rank_is_the_largest_that_the_law_of_beta_certifies(n, rate, confidence):
    k = certified_rank(n, rate=rate, confidence=confidence)
    assert stats.beta(k, n + 1 - k).cdf(rate) >= confidence > stats.beta(k + 1, n - k).cdf(rate)


def test_of_499_rows_the_second_largest_certifies_one_percent():
    assert certified_rank(499, rate=0.01, confidence=0.95) == 2
    assert_allclose(rate_interval(499, 5), [0.01, 0.0033, 0.0204], atol=5e-5)
    scores = calibration(499)
    assert scores.threshold(0.01, 0.95) == np.sort(scores.scores)[-2]
    assert scores.threshold(0.01) == np.sort(scores.scores)[-5]


@pytest.mark.parametrize(("n", "rate", "confidence"), CASES)
def test_so_many_models_keep_the_rate(n, rate, confidence):
    """Scores are drawn uniformly, so that the true rate above a threshold is known."""
    drawn = np.random.default_rng(1).uniform(size=(2_000, n))
    k = certified_rank(n, rate=rate, confidence=confidence)
    true = 1 - np.sort(drawn, axis=1)[:, [-k, -k - 1]]
    kept = (true <= rate).mean(axis=0)
    error = np.sqrt(confidence * (1 - confidence) / len(drawn))
    assert kept[0] >= confidence - 3 * error
    assert kept[1] < confidence + 3 * error  # one rank further none is certified
    mean, low, high = rate_interval(n, k)
    assert_allclose(true[:, 0].mean(), mean, rtol=0.1)
    assert_allclose(((low <= true[:, 0]) & (true[:, 0] <= high)).mean(), 0.95, atol=0.016)


@pytest.mark.parametrize(("rate", "confidence"), [(0.01, 0.95), (0.05, 0.9), (0.3, 0.999)])
def test_rows_needed_are_the_fewest(rate, confidence):
    n = rows_needed(rate=rate, confidence=confidence)
    assert certified_rank(n, rate=rate, confidence=confidence) == 1
    assert certified_rank(n - 1, rate=rate, confidence=confidence) == 0
    least = least_certified(n, confidence=confidence)
    assert certified_rank(n, rate=least * 1.0001, confidence=confidence) == 1
    assert certified_rank(n, rate=least * 0.9999, confidence=confidence) == 0


def test_the_confidence_may_be_set_after_fitting():
    X = rows(2_500)
    detector = cheap().fit(X)
    mean = detector.threshold_
    detector.confidence = 0.95
    assert detector.threshold_ > mean
    assert detector.threshold_ == cheap(confidence=0.95).fit(X).threshold_
    detector.confidence = None
    assert detector.threshold_ == mean


def test_a_rate_that_no_score_certifies_is_told():
    told = (
        r"rate of 0.01 cannot be promised with a confidence of 0.95: it takes 299 held-out normal "
        r"rows, and there are 199\. Add normal rows, or set false_alarm_rate=0.02, or set "
        r"confidence=None: on average it can be promised\."
    )
    with pytest.warns(CalibrationWarning, match=told) as warned:
        detector = cheap(confidence=0.95).fit(rows(1_000))
    assert len(warned) == 1
    assert detector.threshold_ == detector.calibration_.ordered[-1]
    with pytest.warns(CalibrationWarning, match="it takes 4,699 held-out"):
        calibration(199).warn_if_short(0.001, 0.99)
    calibration(199).warn_if_short(0.02, 0.95)  # as was said: warnings are errors here


@pytest.mark.parametrize("confidence", [0, 1.0, "high", -0.5])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(UserError, match="confidence must be a number between 0 and 1"):
        cheap(confidence=confidence).fit(rows(300))


def test_files_keep_the_confidence(tmp_path):
    detector = cheap(confidence=0.9).fit(rows(2_500))
    detector.save(tmp_path / "m.eqsep")
    again = load_model(tmp_path / "m.eqsep")
    assert again.confidence == 0.9
    assert again.threshold_ == detector.threshold_


def test_fit_and_info_tell_the_rate_on_average_and_the_interval(tmp_path, capsys):
    np.savetxt(tmp_path / "r.csv", rows(2_500), delimiter=",", header="a,b", comments="")
    file, model = str(tmp_path / "r.csv"), str(tmp_path / "m.eqsep")
    words = ["fit", file, "--landmarks", "60", "--out", model]

    def said(*words):
        app(list(words), standalone_mode=False)
        return capsys.readouterr().out

    said(*words)
    told = said("info", model)
    assert "promise     1.00% of new normal rows raise an alarm, on average (by 499 h" in told
    assert "interval    0.33% to 2.04% for 95 of 100 models like this one\n" in told
    page = tmp_path / "page.html"
    told = said(*words, "--confidence", "0.95", "--report", str(page))
    assert (
        "promise     at most 1.00% of new normal rows raise an alarm, with a confidence of 0.9"
        in told
    )
    assert "interval    0.05% to 1.11% for 95 of 100 models like this one, 0.40% on" in told
    assert "between 0.05% and 1.11% for 95 of 100 models" in page.read_text()
