"""Model files of the detector: the same answers in another process, and learning on."""

import subprocess
import sys
import warnings
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from eqsep.tables.fitted import state_of
from forged_files import taken_apart
from numpy.testing import assert_allclose, assert_array_equal
from saved_detectors import (
    DETECTORS,
    FEW,
    FRESH,
    IS_ANOMALY,
    NEW_IS_ANOMALY,
    NEW_X,
    TABLE,
    X,
    answers,
    fitted,
    kept,
    same,
)
from sklearn.base import clone

from eqsep import Detector, NegativeSampling, load_model
from eqsep.detector import RepeatedRowsWarning
from eqsep.persistence import ModelFileError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "detector.eqsep"


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_comes_back_to_the_last_bit(name, path):
    detector, rows = fitted(name)
    loaded = kept(detector, path)
    assert same(loaded, detector)
    assert answers(loaded, rows) == answers(detector, rows)
    assert set(vars(loaded)) == set(vars(detector))
    assert loaded.classes_.dtype == detector.classes_.dtype
    assert_array_equal(loaded.classes_, detector.classes_)
    assert loaded.n_features_in_ == detector.n_features_in_
    assert state_of(loaded.feature_map_.encoder) == state_of(detector.feature_map_.encoder)
    assert type(loaded.feature_map_.holdout_bound) is int


def test_a_new_process_says_the_same(tmp_path):
    for i, name in enumerate(DETECTORS):
        fitted(name)[0].save(tmp_path / f"{i}.eqsep")
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from saved_detectors import DETECTORS, answers, load_model\n"
        "for i, (_, rows) in enumerate(DETECTORS.values()):\n"
        "    print(answers(load_model(f'{i}.eqsep'), rows))\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    *lines, with_torch = done.stdout.splitlines()
    for name, line in zip(DETECTORS, lines, strict=True):
        assert line == answers(*fitted(name)), name
    assert with_torch == "False"


def test_names_of_columns_are_kept(path):
    detector, rows = fitted("strange")
    loaded = kept(detector, path)
    assert loaded.feature_names_in_.tolist() == list(rows.columns)
    assert_array_equal(
        loaded.score_samples(rows[rows.columns[::-1]].drop(columns="id")),
        detector.score_samples(rows),
    )
    assert "a\0" in loaded.feature_map_.encoder.columns_[-1].frequent
    assert not hasattr(kept(fitted("0/1")[0], path), "feature_names_in_")


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("mixed", FRESH.kind[:40]),
        ("0/1", NEW_IS_ANOMALY[:40].astype(int)),
        ("names", np.where(NEW_IS_ANOMALY[:40], "leak", "works")),
        ("one class", None),
    ],
)
def test_a_loaded_detector_learns_on(name, labels, path):
    detector, rows = fitted(name)
    here, there = deepcopy(detector), kept(detector, path)
    rows = rows[:40]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows promise little
        for model in (here, there):
            other = Detector(feature_map=model.feature_map_, **FEW).fit(rows, labels)
            model.partial_fit(rows, labels).merge(other).forget(rows, labels)
    assert same(here, there)
    assert not same(here, detector)
    assert answers(here, rows) == answers(there, rows)
    assert answers(kept(there, path), rows) == answers(there, rows)


def test_a_loaded_detector_learns_row_by_row(path):
    at_once, one_by_one = deepcopy(fitted("one class")[0]), kept(fitted("one class")[0], path)
    at_once.partial_fit(NEW_X)
    for row in NEW_X:  # some of them calibrate, and leave nothing to sum up
        one_by_one.partial_fit(row[None])
    assert len(one_by_one.calibration_.rows) > len(fitted("one class")[0].calibration_.rows)
    assert_array_equal(one_by_one.calibration_.rows, at_once.calibration_.rows)
    assert_allclose(one_by_one.score_samples(NEW_X), at_once.score_samples(NEW_X), atol=1e-5)


def test_what_was_saved_apart_is_merged(path):
    detector, _ = fitted("0/1")
    here, there = kept(detector, path), kept(detector, path)
    assert here.feature_map_ is not there.feature_map_
    with pytest.warns(RepeatedRowsWarning, match="have learnt the same rows"):
        here.merge(there)
    assert_array_equal(here.statistics_.gram, 2 * detector.statistics_.gram)


def test_a_given_feature_map_is_kept_once(path):
    detector, _ = fitted("given map")
    loaded = kept(detector, path)
    assert loaded.feature_map is loaded.feature_map_
    with_one = path.stat().st_size
    kept(deepcopy(detector).set_params(feature_map=None), path)
    assert abs(path.stat().st_size - with_one) < 100
    moved = deepcopy(detector).set_params(feature_map=fitted("names")[0].feature_map_)
    assert kept(moved, path).feature_map.is_same(fitted("names")[0].feature_map_)


def test_a_loaded_detector_can_be_fitted_anew(path):
    detector, rows = fitted("mixed")
    again = clone(kept(detector, path)).fit(TABLE.X, TABLE.kind)
    assert_array_equal(again.score_samples(rows), detector.score_samples(rows))


def test_a_matrix_that_is_not_symmetric_is_kept_too(path):
    detector = deepcopy(fitted("0/1")[0])
    gram = detector.statistics_.gram + np.triu(np.full((40, 40), 1e-12))
    detector.statistics_ = replace(detector.statistics_, gram=gram)
    assert_array_equal(kept(detector, path).statistics_.gram, gram)


def test_half_of_a_symmetric_matrix_is_in_the_file(path):
    fitted("mixed")[0].save(path)
    entries = taken_apart(path.read_bytes())[0]["arrays"]
    assert [40 * 41 // 2] in [entry["shape"] for entry in entries]
    assert [40, 40] not in [entry["shape"] for entry in entries]


def test_detectors_inside_of_others(path):
    model = NegativeSampling(Detector(**FEW), ratio=1, random_state=0).fit(X[~IS_ANOMALY, :2])
    assert_array_equal(kept(model, path).predict(NEW_X[:, :2]), model.predict(NEW_X[:, :2]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"random_state": np.random.RandomState(0)}, "Set it to an int or None"),
        ({"false_alarm_rate": 1.5}, "false_alarm_rate should be a number between 0 and 1"),
        ({"alpha": "much"}, "alpha should be a finite number above 0"),
        ({"normal": print}, "normal cannot be saved"),
    ],
)
def test_what_has_no_place_in_a_file_is_refused(change, message, path):
    detector = deepcopy(fitted("0/1")[0]).set_params(**change)
    with pytest.raises(ModelFileError, match=message):
        detector.save(path)
    assert not path.exists()


def test_names_that_fill_more_than_a_header_are_refused(path):
    detector = deepcopy(fitted("mixed")[0])
    encoder = detector.feature_map_.encoder
    encoder.columns_[6] = replace(encoder.columns_[6], rare=["x" * 2**24])
    with pytest.raises(ModelFileError, match="Leave out columns of very many names"):
        detector.save(path)


def test_a_kind_of_one_row_is_kept(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = ["normal"] * 79 + ["fraud"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = Detector(bandwidth=1.0, n_landmarks=20, random_state=0).fit(X, y)
    detector.save(tmp_path / "m")
    assert load_model(tmp_path / "m").kinds_ == ("fraud",)
