"""What a detector says of tables and labels that it cannot take."""

from copy import copy

import numpy as np
import pandas as pd
import pytest

from eqsep import Detector
from eqsep.detector import Config


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
