"""Scores of fitted estimators, larger for the more anomalous."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.naive_bayes import GaussianNB

from eqsep.evaluation import anomaly_score


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
