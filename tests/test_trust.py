"""Rows that nobody has called anomalous: trusted, doubted, or of little weight beside others."""

import numpy as np
import pytest
from eqsep.batches import sampling
from eqsep.tables.fitted import aligned
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector
from eqsep.checks import UnusedDoubtWarning
from eqsep.detector import suspects
from eqsep.errors import UserError

N_NORMAL, N_UNLABELLED, N_LEAKS = 400, 300, 120


def cheap(**parameters):
    return Detector(**{"bandwidth": 0.5, "n_landmarks": 60, "random_state": 0} | parameters)


@pytest.fixture(scope="module")
def mixed():
    """Rows labelled normal, rows without a label with leaks among them, and labelled leaks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_NORMAL + N_UNLABELLED + N_LEAKS, 2))
    X[-N_LEAKS - 30 :] += 5
    y = np.repeat(["normal", None, "leak"], [N_NORMAL, N_UNLABELLED, N_LEAKS])
    order = rng.permutation(len(X))
    return X[order], y[order]


def test_trusted_rows_without_a_label_are_as_labelled_normal(mixed):
    X, y = mixed
    detector = cheap(unlabelled="trusted").fit(X, y)
    labelled = cheap().fit(X, np.where(np.equal(y, None), "normal", y))
    assert_array_equal(detector.score_samples(X), labelled.score_samples(X))
    assert_array_equal(detector.calibration_.scores, labelled.calibration_.scores)


def test_doubted_rows_without_a_label_count_in_full_and_rows_labelled_normal_calibrate(mixed):
    X, y = mixed
    detector = cheap(unlabelled="doubted").fit(X, y)
    feature_map, held = detector.feature_map_, len(detector.calibration_.rows)
    assert feature_map.doubted
    calibrates = feature_map.calibrates(aligned(feature_map.encoder, X))
    assert held == (calibrates & (y == "normal")).sum() >= 99
    assert_allclose(detector.statistics_.weight, [N_NORMAL + N_UNLABELLED - held, N_LEAKS])
    assert detector.calibration_.n_left_out == 0
    assert not len(suspects(detector, X, y))


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")
@pytest.mark.parametrize(("n_normal", "rate"), [(190, 0.01), (N_NORMAL, 0.005)])
def test_where_rows_labelled_normal_are_too_few_doubted_ones_calibrate_too(mixed, n_normal, rate):
    X, y = mixed
    y = y.copy()
    y[np.flatnonzero(y == "normal")[n_normal:]] = None
    detector = cheap(unlabelled="doubted", false_alarm_rate=rate).fit(X, y)
    nobody = cheap(false_alarm_rate=rate).fit(X, np.where(y == "normal", None, y))
    assert_array_equal(detector.score_samples(X), nobody.score_samples(X))
    assert detector.threshold_ == nobody.threshold_
    places = suspects(detector, X, y, n=1000)
    assert len(places) > 0
    assert np.equal(y[places], None).all()


def test_by_default_rows_without_a_label_count_little(mixed):
    X, y = mixed
    detector = cheap().fit(X, y)
    held = len(detector.calibration_.rows)
    assert not detector.feature_map_.doubted
    assert_allclose(detector.statistics_.weight[0], N_NORMAL - held + 0.01 * N_UNLABELLED)


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")
@pytest.mark.parametrize("unlabelled", ["trusted", "doubted"])
def test_pieces_give_what_one_fit_gives(mixed, unlabelled):
    X, y = mixed
    whole = cheap(unlabelled=unlabelled).fit(X, y)
    pieces = Detector(feature_map=whole.feature_map_, unlabelled=unlabelled)
    pieces.fit(X[:600], y[:600]).partial_fit(X[600:], y[600:])
    assert_allclose(pieces.statistics_.gram, whole.statistics_.gram, rtol=1e-6, atol=1e-6)
    assert_allclose(pieces.threshold_, whole.threshold_, rtol=1e-6)
    again = pieces.forget(X[600:], y[600:])
    never = Detector(feature_map=whole.feature_map_, unlabelled=unlabelled).fit(X[:600], y[:600])
    assert_allclose(again.statistics_.gram, never.statistics_.gram, rtol=1e-6, atol=1e-6)
    assert_array_equal(again.calibration_.rows, never.calibration_.rows)


@pytest.mark.parametrize("unlabelled", ["auto", "trusted", "doubted"])
def test_batches_are_taken_as_rows_in_memory(mixed, unlabelled, monkeypatch):
    X, y = mixed
    monkeypatch.setattr(sampling, "SAMPLE", 400)
    batches = [(X[start : start + 100], y[start : start + 100]) for start in range(0, len(X), 100)]
    detector = cheap(unlabelled=unlabelled).fit(batches)
    feature_map = detector.feature_map_
    memory = Detector(feature_map=feature_map, unlabelled=unlabelled).fit(X, y)
    assert detector.one_class_ == memory.one_class_ == (unlabelled == "trusted")
    assert feature_map.doubted == (unlabelled == "doubted")
    assert_allclose(detector.statistics_.gram, memory.statistics_.gram, rtol=1e-6, atol=1e-6)
    assert_array_equal(detector.calibration_.rows, memory.calibration_.rows)


@pytest.mark.parametrize(("first", "asked"), [("trusted", "doubted"), ("doubted", "trusted")])
def test_a_feature_map_that_contradicts_what_is_asked_is_refused(mixed, first, asked):
    X, y = mixed
    feature_map = cheap(unlabelled=first).fit(X, y).feature_map_
    told = f"unlabelled='{asked}' contradicts feature_map, in which rows are {first}: .* Leave out"
    with pytest.raises(UserError, match=told):
        Detector(feature_map=feature_map, unlabelled=asked).fit(X, y)
    with pytest.raises(UserError, match=told):
        Detector(feature_map=feature_map, unlabelled=asked).partial_fit(X, y)


@pytest.mark.parametrize("y", [None, np.zeros(N_NORMAL)], ids=["no labels", "no anomaly"])
@pytest.mark.parametrize("batches", [False, True])
def test_doubt_without_a_labelled_anomaly_is_told_to_do_nothing(y, batches):
    X = np.random.default_rng(0).normal(size=(N_NORMAL, 2))
    plain = cheap().fit(X, y)
    told = "no anomaly is labelled, .* Pass y with some labelled anomalies, or leave out"
    with pytest.warns(UnusedDoubtWarning, match=told):
        detector = cheap(unlabelled="doubted").fit(*([[(X, y)]] if batches else [X, y]))
    assert_array_equal(detector.score_samples(X), plain.score_samples(X))
