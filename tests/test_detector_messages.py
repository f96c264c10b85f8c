"""What a detector says of tables and labels that it cannot take."""

import inspect
import warnings
from copy import copy
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from eqsep import Detector
from eqsep.checks import HighThresholdWarning
from eqsep.detector import CalibrationWarning, Config
from eqsep.labels import WITHOUT
from eqsep.report.learnt import learnt_by


@pytest.fixture(scope="module")
def detector():
    X = np.random.default_rng(0).normal(size=(300, 2))
    return Detector(
        false_alarm_rate=0.05, n_landmarks=50, random_state=0, config=Config.fast()
    ).fit(pd.DataFrame(X, columns=["a", "b"]))


@pytest.mark.parametrize(
    "method", ["score_samples", "predict", "predict_kind", "p_value", "explain", "partial_fit"]
)
def test_an_empty_table_is_refused_in_the_name_of_the_detector(detector, method):
    with pytest.raises(ValueError, match=r"0 sample\(s\).*required by Detector"):
        getattr(detector, method)(pd.DataFrame({"a": [], "b": []}))


def test_a_row_that_is_no_table_is_told_how_to_become_one(detector):
    row = pd.DataFrame({"a": [0.0], "b": [0.0]}).iloc[0]
    with pytest.raises(ValueError, match=r"a single row with X\.to_frame\(\)\.T"):
        detector.predict(row)
    assert detector.predict(row.to_frame().T) == detector.predict([dict(row)])
    with pytest.raises(ValueError, match=r"got a dict\. Pass a row as \[row\]"):
        detector.predict(dict(row))


@pytest.mark.parametrize(
    ("kind", "normal", "meaning"),
    [("unseen", None, "alarms like no seen kind"), ("normal", "fine", "rows that pass")],
)
def test_a_kind_may_not_be_called_as_predict_kind_calls_others(kind, normal, meaning):
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = np.repeat([normal or "normal", kind], [40, 10])
    with pytest.raises(ValueError, match=rf"called '{kind}', which is what {meaning} .*Rename"):
        Detector(normal=normal).fit(X, y)


def test_nor_may_a_kind_that_is_learnt_later():
    X = np.random.default_rng(0).normal(size=(300, 2))
    detector = Detector(false_alarm_rate=0.05, n_landmarks=50, random_state=0, config=Config.fast())
    detector.fit(X, np.repeat(["normal", "pump"], [280, 20]))
    with pytest.raises(ValueError, match="called 'unseen'"):
        detector.partial_fit(X[:2], ["unseen", "unseen"])
    assert detector.kinds_ == ("pump",)


@pytest.mark.parametrize("kind", ["leak or dos", "a or "])
def test_a_kind_may_not_look_like_several_names(detector, kind):
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match=rf"called '{kind}', and 'or' is .*Rename that kind"):
        Detector().fit(X, np.repeat(["normal", kind], [40, 10]))
    with pytest.raises(ValueError, match=rf"called '{kind}', and 'or' is .*Rename that kind"):
        copy(detector).partial_fit(pd.DataFrame(X[:2], columns=["a", "b"]), [kind] * 2)


TABLES = {
    "nothing": (None, r"Detector expects a table of rows and columns, got None\. Pass a frame"),
    "a number": (3, r"Detector expects a table of rows and columns, got 3\. Pass a frame"),
    "a file": (
        "rows.csv",
        r"Detector expects a table, got 'rows.csv'\. Read the file first: .*eqsep\.io\.read_table",
    ),
    "a path": (
        Path("rows.csv"),
        r"Detector expects a table, got .*Read the file first: .*eqsep\.io",
    ),
    "a structured array": (
        np.zeros(9, dtype=[("a", float), ("b", int)]),
        r"got a structured array with the fields 'a', 'b'\. Pass it as a frame: pandas\.DataFrame",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_is_no_table_gets_a_sentence_of_its_own(detector, name):
    X, words = TABLES[name]
    for method in (Detector().fit, detector.predict, detector.partial_fit, detector.forget):
        with pytest.raises(TypeError, match=words):
            method(X)


def test_a_parameter_of_other_detectors_is_met_with_ours():
    with pytest.raises(TypeError, match=r"no parameter 'contamination'\. Pass false_alarm_rate"):
        Detector(contamination=0.1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'contaminated'"):
        Detector(contaminated=0.1)
    with pytest.raises(TypeError, match="positional argument"):
        Detector(0.1)
    assert "contamination" not in Detector().get_params()
    assert (
        list(inspect.signature(Detector).parameters)
        == [*inspect.signature(Detector.__init__).parameters][1:]
    )
    assert clone(Detector(false_alarm_rate=0.1)).false_alarm_rate == 0.1


@pytest.mark.parametrize("window", [None, 2])
def test_messages_name_the_detector(window):
    X = np.random.default_rng(0).normal(size=(300, 2))
    detector = Detector(
        false_alarm_rate=0.05, n_landmarks=50, random_state=0, window=window, config=Config.fast()
    )
    with pytest.raises(ValueError, match="X has 3 features, but Detector is expecting"):
        detector.fit(X).predict(np.ones((4, 3)))
    ids = pd.DataFrame({"a": X[:, 0], "id": [f"id {i}" for i in range(300)]})
    with pytest.warns(UserWarning, match="Columns were dropped: 'id'") as caught:
        detector.fit(ids)
    words = next(str(one.message) for one in caught if "dropped" in str(one.message))
    assert words.endswith("stored as text, convert them.")
    with pytest.raises(TypeError, match="merge expects a fitted Detector, got NoneType"):
        detector.merge(None)


def test_a_detector_that_has_forgotten_all_rows_is_not_fitted(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.repeat(["normal", "leak"], [280, 20])
    settings = {"n_landmarks": 50, "false_alarm_rate": 0.05, "random_state": 0}
    detector = Detector(**settings, config=Config.fast()).fit(X, y)
    expected = detector.score_samples(X)
    detector.forget(X[:100], y[:100]).predict(X)
    detector.forget(X[100:], y[100:])
    methods = ("predict", "score_samples", "predict_kind", "p_value", "explain", "forget")
    for use in (
        *(partial(getattr(detector, method), X) for method in methods),
        lambda: detector.threshold_,
        lambda: detector.save(tmp_path / "a.eqsep"),
        lambda: Detector(**settings).fit(X, y).merge(detector),
    ):
        with pytest.raises(NotFittedError, match=r"has forgotten all rows .*Fit it again\."):
            use()
    assert not hasattr(detector, "classes_")
    assert not (tmp_path / "a.eqsep").exists()
    with pytest.raises(NotFittedError):
        check_is_fitted(detector)
    assert_array_equal(detector.partial_fit(X, y).score_samples(X), expected)
    assert_array_equal(detector.forget(X, y).fit(X, y).score_samples(X), expected)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_the_warnings_of_a_fit_and_its_report_advise_one_rate(seed):
    """A lower one could be promised, but would not lower the threshold enough."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(120, 3)), rng.normal((1.5, 0, 0), 1, size=(20, 3))])
    detector = Detector(random_state=0, config=Config.fast())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detector.fit(X, np.repeat(["normal", "bad"], [120, 20]))
    assert {w.category for w in caught} == {CalibrationWarning, HighThresholdWarning}
    (rate,) = {w.message.fields["rate"] for w in caught}
    assert rate > min(detector.calibration_.usual_thresholds())
    assert learnt_by(detector, normal="normal", counts={}).advised_rate == rate


def test_rows_between_groups_are_not_counted_where_unlabelled_rows_count_in_part():
    rng = np.random.default_rng(0)
    group, y = np.arange(600) % 60, np.resize(["normal", None, "bad"], 600)
    X = rng.normal(size=(600, 2)) + 5 * (y == "bad")[:, None]
    detector = Detector(random_state=0, config=Config.fast(), false_alarm_rate=0.1)
    detector.fit(X, y, groups=group)
    counts = {"normal": 200, WITHOUT: 200, "bad": 200}
    learnt = learnt_by(detector, normal="normal", counts=counts)
    assert (learnt.shaping, learnt.between) == (0, 0)
