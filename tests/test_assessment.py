"""A fitted detector measured on labelled rows: counts that can be made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.metrics import average_precision_score, roc_auc_score

from eqsep import Detector
from eqsep.cli.test import promise_line
from eqsep.detector.calibration import Calibration, CalibrationWarning, Promise
from eqsep.detector.model import Verdicts
from eqsep.detector.namer import KindSets
from eqsep.errors import UserError
from eqsep.evaluation import Review, Share, assess, average_precision_by_kind, roc_auc_interval
from eqsep.evaluation.promises import GroupRates, kept_promise
from eqsep.tables.reading import read_table, with_groups


class FixedModel:
    """What `assess` asks of a model, with scores that are given as the rows."""

    plan = SimpleNamespace(
        encode=lambda X: np.asarray(X, dtype=float)[:, None],
        holdout=SimpleNamespace(grouping=None),
        terms=SimpleNamespace(kernel=lambda a, b: (a == b.T).astype(float)),
    )
    kinds = ("scan",)
    threshold = 0.5
    promise = Promise(false_alarm_rate=0.1, unseen_rate=0.2)
    namer = SimpleNamespace(judges=None)
    calibration = Calibration(np.linspace(0, 0.555, 19))
    rank = 2

    def scores(self, X):
        return np.asarray(X, dtype=float)

    def verdicts(self, X):
        score = self.scores(X)
        alarm = score > self.threshold
        kind = np.where(alarm, np.where(score > 0.8, "scan", "unseen"), "normal")
        return Verdicts(score, 1 - score, alarm, kind, np.where(alarm, 0.9, np.nan))

    def kind_sets(self, X):
        return KindSets(tuple((name,) for name in self.verdicts(X).kind.tolist()), ())


class Fixed:
    """A detector with that model."""

    model_ = FixedModel()


KIND = np.array(["normal"] * 6 + ["scan"] * 3 + ["flood"] * 2)
SCORE = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.2, 0.9, 0.85, 0.3, 0.7, 0.95])


def by_kind(found):
    return {one.kind: one for one in found.kinds}


def test_counts_are_those_made_by_hand():
    found = assess(Fixed(), SCORE, KIND)
    kinds = by_kind(found)
    assert [(one.kind, one.seen, one.rows) for one in found.kinds] == [
        ("flood", False, 2),
        ("scan", True, 3),
    ]
    recall, precision = kinds["scan"].recall, kinds["scan"].precision
    assert (recall.count, recall.total) == (2, 3)
    assert (precision.count, precision.total) == (2, 3)  # one false alarm beside two
    assert (found.overall.precision.count, found.overall.precision.total) == (4, 5)
    assert (found.false_alarms.count, found.false_alarms.total) == (1, 6)
    assert found.promise.alarms == 1
    assert found.verdict.word == "cannot tell"


def test_names_are_counted_by_label():
    found = assess(Fixed(), SCORE, KIND)
    assert {one.kind: one.given for one in found.names.kinds} == {
        "flood": {"unseen": 1, "scan": 1},
        "normal": {"unseen": 1},
        "scan": {"scan": 2},
    }
    assert (found.names.right.count, found.names.right.total) == (2, 2)
    assert (found.names.power.count, found.names.power.total) == (1, 2)


def test_areas_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    kind = np.repeat(["normal", "scan", "flood"], [80, 12, 9])
    score = np.round(rng.normal(np.repeat([0.0, 1.0, 0.5], [80, 12, 9])), 1)  # with ties
    found = assess(Fixed(), score, kind)
    roc = roc_auc_interval(score, kind, n_resamples=5, random_state=0)
    rows = kind != "flood"
    assert_allclose(roc["scan"].value, roc_auc_score(kind[rows] == "scan", score[rows]))
    assert_allclose(roc["overall"].value, roc_auc_score(kind != "normal", score))
    assert by_kind(found)["scan"].roc_auc.value == roc["scan"].value
    areas = average_precision_by_kind(score, kind)
    assert_allclose(found.mean_average_precision, (areas["scan"] + areas["flood"]) / 2)
    one = found.overall.average_precision
    assert_allclose(one.value, average_precision_score(kind != "normal", score))
    assert one.low < one.value < one.high


def test_a_share_lies_in_its_interval_as_clopper_and_pearson_say():
    share = Share.counted(3, 20)
    assert_allclose(binom.sf(2, 20, share.low), 0.025, rtol=1e-6)
    assert_allclose(binom.cdf(3, 20, share.high), 0.025, rtol=1e-6)


def test_the_highest_of_all_of_each_day_and_of_each_entity():
    day = np.array(["1", "1", "1", "2", "2", "2", "1", "1", "1", "2", "2"])
    entity = np.array(list("aabbccaabbc"))
    found = assess(Fixed(), SCORE, KIND, review=Review(top=1, day=day, entity=entity))
    told = [
        (t.among, t.incidents, t.groups, t.precision.count, t.precision.total, t.recall.total)
        for t in found.top
    ]
    assert told == [
        ("all", False, 1, 1, 1, 5),
        ("all", True, 1, 1, 1, 4),  # a on day 1 holds two scans
        ("day", False, 2, 2, 2, 5),
        ("day", True, 2, 2, 2, 4),
        ("entity", False, 3, 3, 3, 5),
        ("entity", True, 3, 3, 3, 4),
    ]
    without = assess(Fixed(), SCORE, KIND, review=Review(top=2, entity=entity)).top
    assert [(t.among, t.incidents) for t in without] == [
        ("all", False),
        ("all", True),
        ("entity", False),
    ]
    assert (without[0].precision.count, without[0].recall.total) == (2, 5)
    daily = assess(Fixed(), SCORE, KIND, review=Review(day=np.arange(11))).top
    assert [one.among for one in daily] == ["all"]  # of each day all rows would be looked at


def test_rows_without_an_entity_are_no_incident_together():
    entity = np.array(["a"] * 9 + [None, None], dtype=object)
    found = assess(Fixed(), SCORE, KIND, review=Review(top=3, entity=entity))
    assert found.top[1].incidents
    assert (found.top[1].precision.total, found.top[1].recall.total) == (3, 3)
    assert found.top[2].groups == 3


def test_the_best_threshold_costs_least_of_all():
    review = Review(cost_alarm=1.0, cost_miss=2.5)
    costs = assess(Fixed(), SCORE, KIND, review=review).costs
    anomalous = KIND != "normal"

    def cost(threshold):
        alarm = threshold < SCORE
        return alarm.sum() + 2.5 * (anomalous & ~alarm).sum()

    assert costs["present"].total == cost(0.5) == 7.5
    assert costs["best"].total == min(cost(t) for t in [-1.0, *SCORE]) == cost(0.6)
    assert (costs["best"].threshold, costs["best"].false_alarms, costs["best"].missed) == (
        0.6,
        0,
        1,
    )
    free = assess(Fixed(), SCORE, KIND, review=Review(cost_alarm=0.0, cost_miss=1.0)).costs["best"]
    assert free.missed == 0
    assert free.alarms < len(SCORE)  # the highest of the thresholds that cost nothing


def test_normal_rows_alone_say_whether_the_promise_is_kept():
    rng = np.random.default_rng(0)
    found = assess(Fixed(), rng.uniform(0.4, 0.7, size=300), ["normal"] * 300)
    assert found.overall is None
    assert found.kinds == ()
    assert found.verdict.word == "broken"


def test_a_promise_with_a_confidence_is_measured_at_its_own_threshold():
    X = np.random.default_rng(0).normal(size=(900, 2))
    detector = Detector(n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.1, random_state=0)
    detector.fit(X[:600])
    plain = assess(detector, X[600:], ["normal"] * 300).promise
    detector.set_params(confidence=0.95)
    sure = assess(detector, X[600:], ["normal"] * 300)
    assert plain.rate == 0.1
    assert sure.promise.rank < plain.rank
    assert sure.promise.threshold == detector.threshold_ > plain.threshold
    assert sure.promise.alarms == sure.false_alarms.count
    detector.set_params(confidence=None, false_alarm_rate=0.001)
    assert assess(detector, X[600:], ["normal"] * 300).promise.rank == 0


@pytest.mark.parametrize(
    ("review", "told"),
    [
        (Review(top=0), "1 or more, got 0"),
        (Review(cost_alarm=1.0), "both cost_alarm and cost_miss, or neither"),
        (Review(cost_alarm=1.0, cost_miss=-1.0), "cost_miss must be a number of at least 0"),
        (Review(day=["1"]), "the day of each of 11 rows"),
    ],
)
def test_what_cannot_be_is_refused(review, told):
    with pytest.raises(UserError, match=told):
        assess(Fixed(), SCORE, KIND, review=review)


def test_rows_of_which_none_is_normal_are_refused():
    with pytest.raises(UserError, match="no row is 'ok'"):
        assess(Fixed(), SCORE, KIND, normal="ok")
    with pytest.raises(UserError, match="kind of each of 11 rows, got 10"):
        assess(Fixed(), SCORE, KIND[1:])


def test_a_model_by_groups_is_judged_by_the_mean_over_groups():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 20)
    X = rng.normal(size=(1_200, 2)) + rng.normal(0, 0.5, size=(60, 2))[group]
    detector = Detector(n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.2, random_state=0)
    detector.fit(X[:800], groups=group[:800])
    rows = with_groups(read_table(X[800:], name="test"), group[800:])
    found = assess(detector, rows, np.full(400, "normal"))
    alarm = detector.predict(X[800:]) == 1
    rates = [alarm[group[800:] == name].mean() for name in range(40, 60)]
    assert found.groups.rates == pytest.approx(sorted(rates))
    assert found.groups.low < found.groups.mean == pytest.approx(np.mean(rates))
    assert found.verdict.word == "kept"
    far = with_groups(read_table(X[800:] + 3, name="test"), group[800:])
    far = assess(detector, far, np.full(400, "normal"))
    assert far.verdict.word == "broken"
    same = with_groups(read_table(X[:800], name="test"), group[:800])
    same = assess(detector, same, np.full(800, "normal"))
    assert same.groups.known == detector.model_.calibration.n_units == 20
    why = "at least 20 of these groups were in the fit, so they are not new"
    assert str(same.verdict) == f"cannot tell: {why}"
    assert str(same.groups).endswith(f"highest {max(same.groups.rates):.2%}; cannot tell: {why}")
    alone = assess(detector, X[800:], np.full(400, "normal"))
    assert alone.groups is None
    assert alone.promised_for == "new groups"


def test_a_model_by_time_promises_new_time_blocks():
    X = np.random.default_rng(0).normal(size=(500, 2))
    detector = Detector(n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.2, random_state=0)
    detector.fit(X, time=np.arange(500))
    found = assess(detector, X, np.full(500, "normal"))
    assert found.promised_for == "new time blocks"
    report = SimpleNamespace(assessment=found, rate=0.2, promised=True)
    assert "promised at most 20.00% of those of new time blocks" in promise_line(report)


def test_a_model_by_time_is_not_judged_by_the_times_of_its_fit():
    X = np.random.default_rng(0).normal(size=(500, 2))
    detector = Detector(n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.2, random_state=0)
    detector.fit(X, time=np.arange(500))

    def verdict(time):
        rows = with_groups(read_table(X, name="test"), time=time)
        return str(assess(detector, rows, np.full(500, "normal")).verdict)

    within = "cannot tell: at least 44 of these time blocks were in the fit, so they are not new"
    assert verdict(np.arange(500)) == within
    assert verdict(np.arange(499, 999)).startswith("cannot tell: at least 1 of these time ")
    assert verdict(np.arange(500, 1000)) == "kept"


@pytest.mark.parametrize("in_groups", [False, True])
def test_a_model_without_a_promise_keeps_none(in_groups):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 10)
    X = rng.normal(size=(400, 2))
    detector = Detector(n_landmarks=30, bandwidth=1.0, false_alarm_rate=0.001, random_state=0)
    with pytest.warns(CalibrationWarning):
        detector.fit(X[:200], groups=group if in_groups else None)
    rows = read_table(X[200:], name="test")
    found = assess(detector, with_groups(rows, group) if in_groups else rows, ["normal"] * 200)
    assert str(found.verdict) == "no promise was made"
    unit = detector.plan_.holdout.unit
    assert unit == ("group" if in_groups else "row")
    report = SimpleNamespace(assessment=found, rate=0.001, promised=False, unit=unit)
    told = f"no promise was made: too few {unit}s calibrate for 0.10%"
    assert promise_line(report).endswith(told)


def test_few_groups_are_judged_by_students_distribution():
    """With one more degree of freedom, the first of these promises would count as broken."""
    rates, luck = [0.3199, 0.32, 0.3201], 0.01
    for promised, word in ((0.32 - 3.7 * luck, "cannot tell"), (0.32 - 4.9 * luck, "broken")):
        found = GroupRates.of(rates, promised=promised, luck=luck, unit="group")
        assert found.verdict.word == word


def test_as_many_rows_as_a_verdict_asks_for_settle_it():
    """Of 1.5 % false alarms at a promised 1 %, which luck in 2,199 held-out rows may explain."""

    def verdict(rows):
        alarms = round(0.015 * rows)
        return kept_promise(alarms, rows, rate=0.01, rank=22, held_out=2199).verdict

    asked = verdict(4814)
    assert asked.word == "cannot tell"
    assert 10_000 < asked.units < 16_000
    assert verdict(asked.units).word == "broken"
    assert verdict(8000).word == "cannot tell"
