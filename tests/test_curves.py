"""Curves by kind, counted scores, and promises of false alarms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score

from eqsep.detector.calibration import Calibration
from eqsep.evaluation import kept_promises, precision_recall_by_kind, score_histogram


def test_a_curve_of_many_rows_keeps_its_shape_and_its_area():
    rng = np.random.default_rng(0)
    kind = np.repeat(["normal", "scan"], [3000, 2000])
    score = rng.normal(np.repeat([0, 1], [3000, 2000]))
    curve = precision_recall_by_kind(score, kind)["scan"]
    assert len(curve.recall) <= 400
    assert curve.recall[-1] == 1
    assert curve.average_precision == average_precision_score(kind == "scan", score)
    assert_allclose(
        np.sum(np.diff(np.append(0, curve.recall)) * curve.precision),
        curve.average_precision,
        atol=0.01,
    )
    assert curve.prevalence == 0.4


def test_overall_comes_last_and_holds_all_kinds():
    curves = precision_recall_by_kind([0, 1, 2, 3], ["normal", "b", "normal", "a"])
    assert list(curves) == ["a", "b", "overall"]
    assert curves["overall"].prevalence == 0.5


def test_bins_hold_every_row_and_the_threshold():
    score = np.array([0.1, 0.2, 0.4, 3.0])
    found = score_histogram(score, ["normal", "normal", "x", "x"], threshold=5.0, bins=10)
    assert (found.edges[0], found.edges[-1]) == (0, 5)
    assert list(found.shares) == ["normal", "x"]
    assert_allclose([shares.sum() for shares in found.shares.values()], 1)
    assert found.above == {"normal": 0, "x": 0}


def test_equal_scores_have_a_bin_too():
    assert_allclose(score_histogram([2.0, 2.0], ["normal"] * 2).shares["normal"].sum(), 1)


def test_the_thresholds_are_those_of_the_calibration():
    rng = np.random.default_rng(0)
    held = rng.normal(size=399)
    calibration = Calibration(held)
    for promise in kept_promises(rng.normal(size=100), calibration=calibration.ordered):
        assert promise.threshold == calibration.threshold(promise.rate)


def test_rates_that_cannot_be_promised_are_left_out():
    rates = [p.rate for p in kept_promises(np.zeros(9), calibration=np.arange(99))]
    assert rates == [0.01, 0.02, 0.05, 0.1]
    assert kept_promises([], calibration=np.arange(99)) == ()


@pytest.mark.extra
def test_promises_are_kept_as_often_as_the_confidence_says():
    rng = np.random.default_rng(0)
    verdicts = [
        kept_promises(rng.normal(size=500), calibration=rng.normal(size=199), rates=[0.05])[0]
        for _ in range(400)
    ]
    assert 0.92 < np.mean([v.verdict == "as promised" for v in verdicts]) <= 0.99
    assert_allclose(np.mean([v.measured for v in verdicts]), 0.05, atol=0.005)


@pytest.mark.parametrize(("shift", "verdict"), [(1.0, "more"), (-1.5, "fewer")])
def test_other_rows_break_the_promise(shift, verdict):
    rng = np.random.default_rng(0)
    promise = kept_promises(
        rng.normal(shift, size=2000), calibration=rng.normal(size=999), rates=[0.05]
    )[0]
    assert promise.verdict == verdict
    assert promise.low <= promise.measured <= promise.high
