"""Anomalies that nobody has labelled among the rows that calibrate."""

from dataclasses import replace

import numpy as np
import pytest
from eqsep.batches import sampling
from eqsep.detector.contamination import anomalies_among, counting, held_out_anomalies
from eqsep.detector.fitting import accumulate, context_of
from eqsep.detector.scoring import Calibration
from eqsep.tables.fitted import aligned
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector
from eqsep.detector import CalibrationWarning, contamination, fitting, suspects

RATES = (0.01, 0.05, 0.1)
QUICK = {"bandwidth": 1.0, "n_landmarks": 60}


def normal_rows(rng, n):
    return rng.standard_t(df=5, size=(n, 3))


def anomalies(rng, n):
    return np.array([0.0, 6.0, 0.0]) + rng.normal(size=(n, 3))


def table(rng, *, planted, n=1500, n_labelled=150):
    """Rows without a label, a share of them anomalies, then labelled anomalies."""
    n_planted = round(planted * n)
    rows = [normal_rows(rng, n - n_planted), anomalies(rng, n_planted), anomalies(rng, n_labelled)]
    return np.vstack(rows), np.repeat(np.array([None, "leak"], dtype=object), [n, n_labelled])


def plain(detector):
    """By all rows that calibrate."""
    return Calibration(detector.calibration_.rows, detector.calibration_.scores)


@pytest.mark.parametrize("planted", [0.0, 0.01, 0.05, 0.1])
def test_the_promise_is_kept_and_more_is_caught(planted):
    alarms, caught = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        detector = Detector(**QUICK, random_state=seed).fit(*table(rng, planted=planted))
        fresh = detector.score_samples(normal_rows(rng, 500))
        later = detector.score_samples(anomalies(rng, 200))
        ways = plain(detector), detector.calibration_
        thresholds = np.array([[way.threshold(rate) for rate in RATES] for way in ways])
        alarms.append((fresh[:, None] > thresholds[1]).mean(axis=0))
        caught.append((later[:, None, None] > thresholds).mean(axis=0))
    alarms, caught = np.array(alarms), np.mean(caught, axis=0)
    error = alarms.std(axis=0, ddof=1) / np.sqrt(len(alarms))
    assert (alarms.mean(axis=0) < RATES + 2 * error).all(), alarms.mean(axis=0)
    if planted >= 0.05:
        assert caught[1, 0] > caught[0, 0] + 0.03
    assert (caught[1] >= caught[0] - 0.01).all()


def test_the_estimate_is_a_lower_one_and_not_far_off():
    found = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.normal(0, 0.1, size=950), rng.normal(1, 0.2, size=50)])
        found.append(anomalies_among(rows, rng.normal(1, 0.2, size=60)))
    assert 20 < np.mean(found) < 50
    assert np.max(found) < 50


def test_normal_rows_that_are_like_a_seen_kind_are_not_taken_for_it():
    """One in twenty is as much like it as some of the anomalies are, and none is more."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 0.1, size=950), rng.uniform(0.25, 0.35, size=50)])
    assert anomalies_among(rows, rng.uniform(0, 1, size=100)) == 0


def test_one_normal_row_in_a_hundred_may_be_like_the_seen_kinds():
    """As much as any anomaly is: nothing tells it from one."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 0.1, size=990), rng.normal(1, 0.2, size=10)])
    assert anomalies_among(rows, rng.normal(1, 0.2, size=60)) == 0


def test_without_held_out_anomalies_all_rows_count():
    scores = np.random.default_rng(0).uniform(size=200)
    assert anomalies_among(scores, np.empty(0)) == 0
    assert counting(scores, np.empty(0), 0.0).all()
    assert Calibration(np.zeros((200, 1)), scores).n_left_out == 0


@given(
    scores=st.lists(st.floats(0, 2), min_size=1, max_size=150),
    anomaly_scores=st.lists(st.floats(0, 2), min_size=1, max_size=30),
    n_anomalies=st.floats(0, 60),
)
def test_a_threshold_has_as_many_normal_rows_above_it_as_it_may(
    scores, anomaly_scores, n_anomalies
):
    """The lowest score at which the rows, less the anomalies, are no more than that."""
    scores, anomaly_scores = np.array(scores), np.array(anomaly_scores)
    kept = np.sort(scores[counting(scores, anomaly_scores, n_anomalies)])[::-1]
    highest = np.sort(scores)[::-1]
    share = np.sum(anomaly_scores >= highest[:, None], axis=1) / (len(anomaly_scores) + 1)
    normal = np.arange(1, len(scores) + 1) - np.floor(n_anomalies * share)
    assert len(scores) - len(kept) <= n_anomalies
    for allowed, threshold in enumerate(kept, start=1):
        assert threshold == highest[np.flatnonzero(normal <= allowed).max()]


def test_of_anomalies_that_score_highest_the_number_is_left_out():
    scores = np.concatenate([np.linspace(0, 0.5, 180), np.linspace(0.8, 0.9, 20)])
    counts = counting(scores, np.linspace(0.7, 0.8, 99), 15.0)
    assert (~counts).sum() == 14  # 15 times 99 / 100
    assert counts[:180].all()


def test_some_labelled_anomalies_are_held_out_of_common_kinds():
    rng = np.random.default_rng(0)
    X, y = table(rng, planted=0.05)
    y[-5:] = "rare"
    detector = Detector(**QUICK, random_state=0).fit(X, y)
    feature_map, held = detector.feature_map_, detector.calibration_.anomaly_rows
    assert feature_map.held_kinds == ("leak",)
    assert len(held) == held_out_anomalies(145) == 14
    assert_allclose(detector.statistics_.weight[1:], [145 - 14, 5])
    landmarks = {bytes(row) for row in feature_map.landmarks}
    assert not any(bytes(row) in landmarks for row in held)


@pytest.mark.parametrize("few", ["labels", "kind", "trusted", "no labels"])
def test_else_none_is(few):
    rng = np.random.default_rng(0)
    X, y = table(rng, planted=0.05)
    if few == "labels":
        X, y = X[:-101], y[:-101]
    elif few == "kind":
        y[-150:] = np.repeat([f"kind {i}" for i in range(10)], 15)
    elif few == "trusted":
        y[y == None] = "normal"  # noqa: E711
    else:
        y = None
    detector = Detector(**QUICK, random_state=0).fit(X, y)
    assert not len(detector.calibration_.anomaly_rows)
    assert detector.calibration_.n_left_out == 0
    assert len(detector.calibration_.rows) == 299


def assert_same(detector, other, X):
    assert_allclose(detector.score_samples(X), other.score_samples(X), rtol=1e-6, atol=1e-6)
    for mine, theirs in zip(detector.calibration_.held, other.calibration_.held, strict=True):
        assert_array_equal(mine, theirs)
    assert detector.calibration_.n_anomalies == other.calibration_.n_anomalies > 0
    assert_allclose(detector.threshold_, other.threshold_, rtol=1e-6)


@pytest.fixture(scope="module")
def whole():
    X, y = table(np.random.default_rng(1), planted=0.06)
    order = np.random.default_rng(2).permutation(len(X))
    detector = Detector(**QUICK, random_state=0).fit(X[order], y[order])
    return detector, X[order], y[order]


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")
@settings(max_examples=8, deadline=None)
@given(cut=st.integers(200, 1400), merged=st.booleans())
def test_pieces_and_merging_give_what_one_fit_gives(whole, cut, merged):
    detector, X, y = whole
    first, second = (Detector(feature_map=detector.feature_map_) for _ in range(2))
    first.fit(X[:cut], y[:cut])
    if merged:
        first.merge(second.fit(X[cut:], y[cut:]))
    else:
        first.partial_fit(X[cut:], y[cut:])
    assert_same(first, detector, X)


def test_forgetting_gives_what_never_learning_gives(whole):
    detector, X, y = whole
    left, never = (Detector(feature_map=detector.feature_map_) for _ in range(2))
    assert_same(left.fit(X, y).forget(X[:400], y[:400]), never.fit(X[400:], y[400:]), X)


@pytest.mark.parametrize("once", [False, True])
def test_batches_give_what_they_give_in_memory(once, monkeypatch):
    X, y = table(np.random.default_rng(0), planted=0.05, n_labelled=300)
    order = np.random.default_rng(1).permutation(len(X))
    X, y = X[order], y[order]
    kinds = np.where(np.arange(len(y)) % 200 < 100, "leak", "crack")  # one in each batch
    y = np.where(np.equal(y, None), None, kinds)
    monkeypatch.setattr(sampling, "SAMPLE", 600)
    for module in (contamination, fitting):
        monkeypatch.setattr(module, "MOST", 5)  # of anomalies held out, so that some are too many
    pairs = [(X[start : start + 100], y[start : start + 100]) for start in range(0, len(X), 100)]
    detector = Detector(**QUICK, random_state=0).fit(iter(pairs) if once else pairs)
    held = len(detector.calibration_.anomaly_rows)
    assert 0 < held <= 10
    memory = Detector(feature_map=detector.feature_map_).fit(X, y)
    assert_array_equal(detector.calibration_.anomaly_rows, memory.calibration_.anomaly_rows)
    assert_allclose(detector.statistics_.gram, memory.statistics_.gram, rtol=1e-6, atol=1e-6)
    of_kind = {k: detector.statistics_.moment[:, 1 + i] for i, k in enumerate(detector.kinds_)}
    for i, kind in enumerate(memory.kinds_):
        assert_allclose(of_kind[kind], memory.statistics_.moment[:, 1 + i], rtol=1e-6, atol=1e-6)


def test_partial_statistics_agree_on_the_kinds_of_held_out_anomalies():
    """As pieces from several machines do, none of which knows the kinds of the others."""
    X, y = table(np.random.default_rng(0), planted=0.05)
    y[-75:] = "crack"
    context = context_of(Detector(**QUICK, random_state=0).fit(X, y))
    context = replace(context, known=replace(context.known, kinds=()))
    leaks, cracks = (
        accumulate(context, X[rows], y[rows]) for rows in np.split(np.arange(1500, 1650), 2)
    )
    both = leaks + cracks
    assert both.known.kinds == ("leak", "crack")
    assert set(leaks.held_out.code) == set(cracks.held_out.code) == {1}
    n = len(leaks.held_out.code)
    assert_array_equal(both.held_out.code, np.repeat([1, 2], [n, len(cracks.held_out.code)]))


def test_too_few_rows_are_left_for_a_promise():
    X, y = table(np.random.default_rng(0), planted=0.4, n=250, n_labelled=200)
    with pytest.warns(CalibrationWarning, match=r"and there are \d+ beside \d+ that are taken for"):
        Detector(**QUICK, random_state=0).fit(X, y)


def test_suspects_are_rows_without_a_label_that_calibrate(whole):
    detector, X, y = whole
    places = suspects(detector, X, y, n=1000)
    feature_map = detector.feature_map_
    calibrates = feature_map.calibrates(aligned(feature_map.encoder, X))
    assert_array_equal(np.sort(places), np.flatnonzero(calibrates & np.equal(y, None)))
    assert (np.diff(detector.score_samples(X[places])) <= 0).all()
    assert_array_equal(suspects(detector, X, y, n=7), places[:7])


def test_rows_labelled_normal_are_suspects_where_they_are_doubted(whole):
    _, X, y = whole
    by_number = np.where(np.equal(y, None), 0, 1)
    detector = Detector(**QUICK, unlabelled="doubted", random_state=0).fit(X, by_number)
    places = suspects(detector, X, by_number, n=1000)
    assert len(places) == len(detector.calibration_.rows)
    assert (by_number[places] == 0).all()
    trusted = Detector(**QUICK, random_state=0).fit(X, by_number)
    assert len(suspects(trusted, X, by_number)) == 0


def test_anomalies_that_a_person_finds_among_suspects_are_learnt_exactly(whole):
    detector, X, y = whole
    found = suspects(detector, X, y, n=5)
    judged = y.copy()
    judged[found] = "leak"
    feature_map = detector.feature_map_
    again = Detector(feature_map=feature_map).fit(X, y)
    again.forget(X[found], y[found]).partial_fit(X[found], judged[found])
    assert_same(again, Detector(feature_map=feature_map).fit(X, judged), X)
    assert again.threshold_ <= detector.threshold_


def test_labelled_normal_rows_are_no_suspects():
    X, y = table(np.random.default_rng(0), planted=0.05)
    y[:1000] = "normal"
    assert not len(suspects(Detector(**QUICK, random_state=0).fit(X, y), X, y))
