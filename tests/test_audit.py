"""Audit: rows learnt twice, judged rows, rows not learnt well, and suspects to judge next."""

from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from eqsep import Detector
from eqsep.detector import (
    Config,
    NewKindWarning,
    RepeatedRowsWarning,
    Repeats,
    learnt_before,
    suspects,
)

NORMAL = np.random.default_rng(0).normal(size=(1_200, 2))
MORE = np.random.default_rng(1).normal(size=(300, 2))


@pytest.fixture(scope="module")
def fitted():
    quick = {"n_landmarks": 60, "bandwidth": 1.0, "random_state": 0, "config": Config.fast()}
    detector = Detector(false_alarm_rate=0.05, **quick)
    return lambda: clone(detector).fit(NORMAL, ["normal"] * len(NORMAL))


def test_judged_rows_are_all_learnt_and_none_is_held_out(fitted):
    before, learnt, judged = fitted(), fitted(), fitted()
    learnt.partial_fit(MORE, ["normal"] * 300)
    judged.partial_fit(MORE, ["normal"] * 300, judged=True)
    assert_array_equal(
        judged.model_.evidence.held_out.normal, before.model_.evidence.held_out.normal
    )
    assert len(learnt.model_.evidence.held_out.normal) > len(before.model_.evidence.held_out.normal)
    assert judged.model_.evidence.weight[0] == before.model_.evidence.weight[0] + 300
    assert abs(judged.coef_ - before.coef_).max() > 1e-3


def test_judged_rows_are_forgotten_as_they_were_learnt(fitted):
    before, detector = fitted(), fitted()
    rows, y = np.vstack([MORE, MORE[:10] + 9]), ["normal"] * 300 + ["fraud"] * 10
    detector.partial_fit(rows, y, judged=True)
    assert (detector.predict_kind(MORE[10:40] + 9) == "fraud").mean() > 0.8
    detector.forget(rows, y, judged=True)
    assert_allclose(detector.coef_, before.coef_, atol=1e-6)
    assert detector.kinds_ == ()


def test_alarms_that_calibrate_spoil_the_rate_and_judged_ones_do_not(fitted):
    rates = {}
    for judged in (False, True):
        detector, rng = fitted(), np.random.default_rng(2)
        for _ in range(3):
            rows = rng.normal(size=(3_000, 2))
            alarms = rows[detector.predict(rows) == 1]
            asked = nullcontext() if judged else pytest.warns(NewKindWarning, match="judged=True")
            with asked:
                detector.partial_fit(alarms, ["normal"] * len(alarms), judged=judged)
        rates[judged] = detector.predict(rng.normal(size=(10_000, 2))).mean()
    low, high = fitted().calibration_.interval(0.05)[1:]
    assert rates[False] < low < rates[True] < high


def test_rows_of_a_first_fit_were_not_judged():
    with pytest.raises(NotFittedError):
        Detector().partial_fit(NORMAL, judged=True)


# ----------------------------------------------------------------------- rows learnt twice


def test_rows_that_were_learnt_are_told_from_new_ones(fitted):
    detector = fitted()
    again, new = (learnt_before(detector, X, ["normal"] * len(X)) for X in (NORMAL, MORE))
    assert (again.share, again.are_learnt) == (1.0, True)
    assert (new.share, new.are_learnt) == (0.0, False)
    assert again.checked == again.found == len(detector.model_.evidence.held_out.normal)
    half = learnt_before(detector, np.vstack([NORMAL[:300], MORE]), ["normal"] * 600)
    assert 0.3 < half.share < 0.7
    assert half.are_learnt
    assert learnt_before(detector, NORMAL).checked == 0  # without a label, none is a normal row


def test_what_repeats_by_chance_is_not_taken_for_learnt_before():
    assert Repeats(checked=100, found=30, by_chance=0.3).share == 0
    assert not Repeats(checked=100, found=30, by_chance=0.3).are_learnt
    assert Repeats(checked=100, found=65, by_chance=0.3).share == pytest.approx(0.5)
    assert Repeats(checked=100, found=65, by_chance=0.3).are_learnt
    assert Repeats(checked=0, found=0, by_chance=0.0).share == 0
    few = np.random.default_rng(0).integers(0, 4, size=(1500, 2)).astype(float)
    detector = Detector(n_landmarks=30, bandwidth=1.0, random_state=0, config=Config.fast())
    detector.fit(few[:1000])
    assert not learnt_before(detector, few[1000:]).are_learnt
    detector.partial_fit(few[1000:])  # warnings are errors here


@pytest.mark.parametrize("kind", ["normal", "fraud"])
def test_learning_rows_twice_is_told(fitted, kind):
    detector, rows = fitted(), MORE + 9 * (kind == "fraud")
    detector.partial_fit(rows, [kind] * 300, judged=kind == "fraud")
    what = "of the normal rows" if kind == "normal" else "of the rows of kind 'fraud'"
    with pytest.warns(RepeatedRowsWarning, match=f"About 100% {what} were learnt before"):
        detector.partial_fit(rows, [kind] * 300, judged=kind == "fraud")


def test_merging_what_has_learnt_the_same_rows_is_told(fitted):
    detector = fitted()
    other = Detector(plan=detector.plan_, false_alarm_rate=0.05).fit(NORMAL, ["normal"] * 1200)
    with pytest.warns(RepeatedRowsWarning, match="The two detectors have learnt the same rows"):
        detector.merge(other)


# -------------------------------------------------------------------- suspects to judge next


def quick(**parameters):
    return Detector(bandwidth=1.0, n_landmarks=60, config=Config.fast(), **parameters)


def normal_rows(rng, n):
    return rng.standard_t(df=5, size=(n, 3))


def anomalies(rng, n):
    return np.array([0.0, 6.0, 0.0]) + rng.normal(size=(n, 3))


def table(rng, *, planted, n=1500, n_labelled=150):
    """Rows without a label, a share of them anomalies, then labelled anomalies."""
    n_planted = round(planted * n)
    rows = [normal_rows(rng, n - n_planted), anomalies(rng, n_planted), anomalies(rng, n_labelled)]
    return np.vstack(rows), np.repeat(np.array([None, "leak"], dtype=object), [n, n_labelled])


@pytest.fixture(scope="module")
def whole():
    X, y = table(np.random.default_rng(1), planted=0.06)
    order = np.random.default_rng(2).permutation(len(X))
    detector = quick(random_state=0).fit(X[order], y[order])
    return detector, X[order], y[order]


def test_suspects_are_rows_without_a_label_that_calibrate(whole):
    detector, X, y = whole
    places = suspects(detector, X, y, n=1000)
    plan = detector.plan_
    calibrates = plan.holdout.hashes(plan.align(X), encoder=plan.encoder) < plan.holdout.bound
    assert_array_equal(np.sort(places), np.flatnonzero(calibrates & np.equal(y, None)))
    assert (np.diff(detector.score_samples(X[places])) <= 0).all()
    assert_array_equal(suspects(detector, X, y, n=7), places[:7])


def test_rows_labelled_normal_are_suspects_where_they_are_doubted(whole):
    _, X, y = whole
    by_number = np.where(np.equal(y, None), 0, 1)
    detector = quick(unlabelled="doubted", random_state=0).fit(X, by_number)
    places = suspects(detector, X, by_number, n=1000)
    assert len(places) == len(detector.model_.evidence.held_out.normal)
    assert (by_number[places] == 0).all()
    trusted = quick(random_state=0).fit(X, by_number)
    assert len(suspects(trusted, X, by_number)) == 0


def test_anomalies_that_a_person_finds_among_suspects_are_learnt_exactly(whole):
    detector, X, y = whole
    found = suspects(detector, X, y, n=5)
    judged = y.copy()
    judged[found] = "leak"
    plan = detector.plan_
    again = Detector(plan=plan).fit(X, y)
    again.forget(X[found], y[found]).partial_fit(X[found], judged[found])
    never = Detector(plan=plan).fit(X, judged)
    assert_allclose(again.score_samples(X), never.score_samples(X), rtol=1e-6, atol=1e-6)
    assert_allclose(again.threshold_, never.threshold_, rtol=1e-6)
    assert again.threshold_ <= detector.threshold_


def test_labelled_normal_rows_are_no_suspects():
    X, y = table(np.random.default_rng(0), planted=0.05)
    y[:1000] = "normal"
    assert not len(suspects(quick(random_state=0).fit(X, y), X, y))
