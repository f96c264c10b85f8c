"""Model files of the detector: the same answers in another process, and learning on."""

import json
import subprocess
import sys
import warnings
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from forged_files import taken_apart
from numpy.testing import assert_allclose, assert_array_equal
from saved_detectors import (
    DETECTORS,
    FEW,
    FRESH,
    IS_ANOMALY,
    NEW_IS_ANOMALY,
    NEW_X,
    PUMP,
    TABLE,
    X,
    answers,
    fitted,
    kept,
    same,
)
from sklearn.base import clone
from summed import gram_of

from eqsep import Detector, NegativeSampling, load_model
from eqsep.checks import DriftWarning, Finding
from eqsep.detector import RepeatedRowsWarning
from eqsep.detector.config import Config
from eqsep.detector.model import Model
from eqsep.errors import UserError
from eqsep.persistence import ModelFileError, read_model
from eqsep.persistence.files import content_hash


@pytest.fixture
def path(tmp_path):
    return tmp_path / "detector.eqsep"


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_comes_back_to_the_last_bit(name, path):
    detector, rows = fitted(name)
    loaded = kept(detector, path)
    assert same(loaded, detector)
    assert answers(loaded, rows) == answers(detector, rows)
    assert loaded.get_params().keys() == detector.get_params().keys()
    assert loaded.classes_.dtype == detector.classes_.dtype
    assert_array_equal(loaded.classes_, detector.classes_)
    assert loaded.n_features_in_ == detector.n_features_in_
    assert loaded.plan_.is_same(detector.plan_)
    assert loaded.plan_.encoder.dropped == detector.plan_.encoder.dropped
    assert type(loaded.plan_.holdout.bound) is int


@pytest.mark.extra
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


def test_a_model_is_read_and_scores_without_scikit_learn(tmp_path):
    detector, rows = fitted("mixed")
    detector.save(tmp_path / "mixed.eqsep")
    alarm = rows[detector.predict(rows).astype(bool)].iloc[[0]]
    asked = [json.loads(row.to_json(date_format="iso")) for _, row in alarm.iterrows()]
    (tmp_path / "rows.json").write_text(json.dumps(asked))
    code = (
        "import json, sys\n"
        "from eqsep.persistence import read_model\n"
        "model = read_model('mixed.eqsep')\n"
        "found = model.verdicts(json.load(open('rows.json')))\n"
        "print(type(model).__name__, found.score.tobytes().hex(), found.alarm[0], found.kind[0])\n"
        "print([name for name in ('sklearn', 'torch', 'pandas') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    name, score, alarmed, *kind = done.stdout.splitlines()[0].split()
    assert (name, alarmed) == ("Model", "True")
    assert score == detector.score_samples(asked).tobytes().hex()
    assert " ".join(kind) == detector.predict_kind(asked)[0]
    assert done.stdout.splitlines()[1] == "[]"


@pytest.mark.parametrize("name", DETECTORS)
def test_a_model_that_is_read_alone_gives_the_bits_of_its_detector(name, path):
    detector, rows = fitted(name)
    detector.save(path)
    model = read_model(path)
    assert type(model) is Model
    found = model.verdicts(rows)
    assert found.score.tobytes() == detector.score_samples(rows).tobytes()
    assert found.p_value.tobytes() == detector.p_value(rows).tobytes()
    assert_array_equal(found.kind, detector.predict_kind(rows))
    assert_array_equal(model.classes[found.alarm.astype(int)], detector.predict(rows))
    assert [str(why) for why in model.explain(rows[:2])] == [
        str(why) for why in detector.explain(rows[:2])
    ]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0.0, 1.0, np.nan], [0, 1]),
        ([0, 1, None], [0, 1]),
        ([0.0, 1.0, 0.0], [0, 1]),
        ([0, 1, 0], [0, 1]),
        ([2, 1, 2], [2, 1]),
        ([False, True, False], [False, True]),
        (["normal", "leak", None], [0, 1]),
        (["works", "leak", "works"], [0, 1]),
    ],
    ids=str,
)
def test_classes_are_the_same_after_a_fit_and_after_loading(labels, classes, path):
    normal = labels[0]
    y = [labels[1] if is_anomaly else normal for is_anomaly in IS_ANOMALY]
    y[::7] = [labels[2]] * len(y[::7])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = Detector(normal=normal, **FEW).fit(X, y)
    loaded = kept(detector, path)
    for model in (detector, loaded):
        assert model.classes_.tolist() == classes
        assert model.classes_.dtype == np.asarray(classes).dtype
        assert model.predict(NEW_X).dtype == np.asarray(classes).dtype
        assert set(model.predict(NEW_X).tolist()) == set(classes)
    assert_array_equal(read_model(path).classes, classes)
    again = kept(loaded, path)
    assert again.classes_.dtype == loaded.classes_.dtype


def test_names_of_columns_are_kept(path):
    detector, rows = fitted("strange")
    loaded = kept(detector, path)
    assert loaded.feature_names_in_.tolist() == list(rows.columns)
    assert_array_equal(
        loaded.score_samples(rows[rows.columns[::-1]].drop(columns="id")),
        detector.score_samples(rows),
    )
    assert "a\0" in loaded.plan_.encoder.columns[-1].frequent
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
            other = clone(model).set_params(plan=model.plan_).fit(rows, labels)
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
    before = fitted("one class")[0].model_.evidence.held_out.normal
    found = one_by_one.model_.evidence.held_out.normal
    assert len(found) > len(before)
    assert_array_equal(found, at_once.model_.evidence.held_out.normal)
    assert_allclose(one_by_one.score_samples(NEW_X), at_once.score_samples(NEW_X), atol=1e-5)


def test_what_was_saved_apart_is_merged(path):
    detector, _ = fitted("0/1")
    here, there = kept(detector, path), kept(detector, path)
    assert here.plan_ is not there.plan_
    with pytest.warns(RepeatedRowsWarning, match="have learnt the same rows"):
        here.merge(there)
    once, twice = (gram_of(one.model_.evidence) for one in (detector, here))
    assert_array_equal(twice, 2 * once)


def test_a_given_plan_is_kept_once(path):
    detector, _ = fitted("given plan")
    loaded = kept(detector, path)
    assert loaded.plan is loaded.plan_
    with_one = path.stat().st_size
    kept(deepcopy(detector).set_params(plan=None), path)
    assert abs(path.stat().st_size - with_one) < 100
    moved = deepcopy(detector).set_params(plan=fitted("names")[0].plan_)
    assert kept(moved, path).plan.is_same(fitted("names")[0].plan_)


def test_a_loaded_detector_can_be_fitted_anew(path):
    detector, rows = fitted("mixed")
    again = clone(kept(detector, path)).fit(TABLE.X, TABLE.kind)
    assert_array_equal(again.score_samples(rows), detector.score_samples(rows))


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
        ({"alpha": "much"}, "alpha should be None or a finite number above 0"),
        ({"normal": print}, "normal cannot be saved"),
    ],
)
def test_what_has_no_place_in_a_file_is_refused(change, message, path):
    detector = deepcopy(fitted("0/1")[0]).set_params(**change)
    with pytest.raises(ModelFileError, match=message):
        detector.save(path)
    assert not path.exists()


def test_a_rate_that_cannot_be_promised_is_refused(path):
    detector = deepcopy(fitted("0/1")[0]).set_params(false_alarm_rate=1.5)
    with pytest.raises(UserError, match="false_alarm_rate must be a number between 0 and 1"):
        detector.save(path)
    assert not path.exists()


def test_a_config_of_numpy_numbers_and_zeros_is_kept(path):
    config = Config(alpha=np.float64(0.2), n_trees=np.int64(5), vote_weight=0, likeness_weight=0)
    detector = Detector(**FEW | {"config": config}).fit(X, IS_ANOMALY.astype(int))
    loaded = kept(detector, path)
    assert loaded.config == config
    assert answers(loaded, NEW_X) == answers(detector, NEW_X)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_trees": 0}, "n_trees must be a whole number of at least 1, got 0"),
        ({"n_folds": 2.5}, "n_folds must be a whole number of at least 2, got 2.5"),
        ({"likeness_ridge": 0}, "likeness_ridge must be a number above 0"),
        ({"vote_weight": -1}, "vote_weight must be a number of at least 0, got -1"),
        ({"excess_weight": float("nan")}, "excess_weight must be a number of at least 0"),
        ({"powers": (2, 1)}, r"powers must be a tuple of powers of two .* got \(2, 1\)"),
        ({"powers": 2}, "powers must be a tuple"),
    ],
)
def test_a_config_that_could_not_be_loaded_cannot_be_made(wrong, message):
    with pytest.raises(UserError, match=message):
        Config(**wrong)


def test_names_that_fill_more_than_a_header_are_refused(path):
    detector = deepcopy(fitted("mixed")[0])
    model = detector.model_
    encoder = model.plan.encoder
    place, learnt = encoder.column_names.index("purpose"), encoder.by_name["purpose"]
    columns = [*encoder.columns]
    columns[place] = replace(learnt, rare=["x" * 2**24])
    encoder = replace(encoder, columns=tuple(columns))
    detector.with_model(replace(model, plan=replace(model.plan, encoder=encoder)))
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


def test_what_a_fit_has_found_is_kept_with_its_hint_and_fields(path):
    detector = deepcopy(fitted("0/1")[0])
    fields = {"column": "run", "rows": 3, "rate": 0.5}
    caution = Finding(DriftWarning, "Rows change.", "Fit again.", fields)
    detector.with_model(replace(detector.model_, caution=caution))
    assert kept(detector, path).caution_ == detector.caution_


def test_the_hash_of_a_merged_kind_is_that_of_rows_learnt_under_one_name():
    plan, kinds = fitted("0/1")[0].plan_, PUMP.copy()
    kinds[np.flatnonzero(IS_ANOMALY)[::2]] = "leak"
    merged, one = (Detector(plan=plan, **FEW).fit(X, labels) for labels in (kinds, PUMP))
    assert content_hash(merged.model_) != content_hash(one.model_)
    merged.rename_kind("leak", "pump")
    assert content_hash(merged.model_) == content_hash(one.model_)
    labels = np.where(NEW_IS_ANOMALY, "pump", "normal")
    merged.partial_fit(NEW_X, labels)
    assert content_hash(merged.model_) != content_hash(one.model_)
    assert content_hash(merged.forget(NEW_X, labels).model_) == content_hash(one.model_)
