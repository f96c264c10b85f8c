"""Scores of fitted estimators, larger for the more anomalous."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from eqsep import Detector, KernelEqualitySeparator
from eqsep.detector import Config
from eqsep.evaluation import anomaly_average_precision, anomaly_score


def test_small_probabilities_stay_apart():
    X = np.array([[-1.0], [1.0], [9.0], [11.0]])
    model = GaussianNB().fit(X, [0, 0, 1, 1])
    score = anomaly_score(model, [[-1.0], [-0.5], [0.0]])
    assert 0 < score[0] < score[1] < score[2] < 1e-15


def test_any_number_of_kinds_adds_up_to_not_being_normal():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    model = GaussianNB().fit(X, ["low", "low", "normal", "normal", "high", "high"])
    normal = model.classes_.tolist().index("normal")
    assert_allclose(anomaly_score(model, X), 1 - model.predict_proba(X)[:, normal], atol=1e-12)


class LikePyOD(OutlierMixin, BaseEstimator):
    """PyOD's convention: the mark of an outlier detector, and larger for the more anomalous."""

    def fit(self, X):
        self.decision_scores_ = self.decision_function(X)
        return self

    def decision_function(self, X):
        return np.abs(np.asarray(X)[:, 0])


def test_detectors_of_pyod_are_not_turned_round():
    near, far = anomaly_score(LikePyOD().fit([[0.0], [1.0]]), [[0.5], [9.0]])
    assert near < far


@pytest.fixture(scope="module")
def valves():
    """Rows, and what each is called: "fine", or one of two kinds of anomaly."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(at, 1, size=(n, 2)) for at, n in ((0, 300), (4, 30), (-4, 30))]
    return np.vstack(parts), np.repeat(["fine", "blocked", "leaking"], [300, 30, 30])


QUICK = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")
def test_cross_validation_by_named_kinds_is_that_by_0_and_1(valves):
    X, kind = valves
    by_name = cross_val_score(
        Detector(normal="fine", **QUICK), X, kind, scoring=anomaly_average_precision, cv=3
    )
    folds = list(StratifiedKFold(3).split(X, kind))
    numbers = Detector(**QUICK)
    by_number = cross_val_score(numbers, X, kind != "fine", scoring="average_precision", cv=folds)
    assert_allclose(by_name, by_number, atol=0.02)  # f is the same; names have sums of their own
    assert by_name.min() > 0.8


def test_a_grid_search_over_a_pipeline_finds_the_normal_name(valves):
    X, kind = valves
    model = make_pipeline(StandardScaler(), KernelEqualitySeparator(normal="fine", random_state=0))
    grid = {"kernelequalityseparator__gamma": [1e6, 0.5]}
    search = GridSearchCV(model, grid, scoring=anomaly_average_precision, cv=3, error_score="raise")
    assert search.fit(X, kind).best_params_ == {"kernelequalityseparator__gamma": 0.5}
    score = search.decision_function(X)
    assert anomaly_average_precision(search, X, kind) == average_precision_score(
        kind != "fine", score
    )


def test_rows_without_a_label_are_left_out(valves):
    X, kind = valves
    known = np.arange(len(X)) % 3 > 0
    model = KernelEqualitySeparator(normal="fine", random_state=0).fit(X, kind)
    some = np.where(known, kind.astype(object), None)
    wanted = average_precision_score(kind[known] != "fine", model.decision_function(X[known]))
    assert_allclose(anomaly_average_precision(model, X, some), wanted)
