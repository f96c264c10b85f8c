"""A detector in PyOD's shape: its attributes, its threshold, and PyOD's own functions on it."""

import math
from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from eqsep import Detector
from eqsep.compat.pyod import PyODDetector
from eqsep.detector import Config
from eqsep.evaluation import anomaly_score

QUICK = Detector(n_landmarks=40, random_state=0, config=Config.fast())


@pytest.fixture(scope="module")
def rows():
    """Rows of which the last twentieth are far away, here and there, and new ones alike."""
    rng = np.random.default_rng(0)

    def far(n):
        rows = rng.normal(size=(n, 3))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) * rng.uniform(9, 20, size=(n, 1))

    train, new = (np.concatenate([rng.normal(size=(19 * n, 3)), far(n)]) for n in (20, 5))
    return train, new


@pytest.fixture(scope="module")
def fitted(rows):
    return PyODDetector(QUICK, contamination=0.05).fit(rows[0])


def test_training_rows_have_scores_and_labels(fitted, rows):
    train, new = rows
    assert_array_equal(fitted.decision_scores_, fitted.detector_.score_samples(train))
    assert_array_equal(fitted.labels_, fitted.decision_scores_ > fitted.threshold_)
    assert fitted.labels_.sum() == 20
    assert_array_equal(fitted.predict(train), fitted.labels_)
    assert_array_equal(fitted.predict(new)[-5:], 1)
    assert_array_equal(anomaly_score(fitted, new), fitted.decision_function(new))


def test_labels_are_learnt(rows):
    train, new = rows
    y = np.repeat([0, 1], [380, 20])
    taught = PyODDetector(QUICK, contamination=0.05).fit(train, y)
    assert taught.detector_.kinds_ == ("anomaly",)
    assert taught.decision_function(new)[-5:].min() > taught.threshold_


def test_without_a_detector_it_is_one_of_ours():
    adapter = PyODDetector()
    assert adapter.contamination == 0.1
    assert clone(adapter).get_params() == {"contamination": 0.1, "detector": None}
    with pytest.raises(NotFittedError):
        adapter.predict([[0.0]])


@pytest.mark.parametrize("contamination", [0, 0.6, -1])
def test_a_share_that_cannot_be_is_refused(rows, contamination):
    with pytest.raises(ValueError, match=r"contamination must be a share above 0 and at most 0\.5"):
        PyODDetector(QUICK, contamination=contamination).fit(rows[0])


def test_probabilities_are_shares_of_the_range(fitted, rows):
    for method in ("linear", "unify"):
        p = fitted.predict_proba(rows[1], method=method)
        assert_allclose(p.sum(axis=1), 1)
        assert p.min() >= 0
        assert (p[-5:, 1].min() > p[:-5, 1]).mean() > 0.9
    with pytest.raises(ValueError, match="method must be one of"):
        fitted.predict_proba(rows[1], method="rank")


def test_unified_probabilities_are_the_error_function_of_the_z_score(fitted, rows):
    known, scores = fitted.decision_scores_, fitted.decision_function(rows[1])
    z = (scores - known.mean()) / known.std()
    expected = [max(0.0, math.erf(one / math.sqrt(2))) for one in z]
    assert_allclose(fitted.predict_proba(rows[1], method="unify")[:, 1], expected)


def test_a_range_of_zero_counts_as_one(fitted, rows):
    flat, scores = copy(fitted), fitted.decision_function(rows[1])
    flat.decision_scores_ = np.full(400, np.median(scores))
    outlier = (scores - np.median(scores)).clip(0, 1)
    assert_allclose(flat.predict_proba(rows[1])[:, 1], outlier)
    assert ((outlier > 0) & (outlier < 1)).any()


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_threshold_and_probabilities_are_those_of_pyod(fitted, rows, method):
    base = pytest.importorskip("pyod.models.base", reason="PyOD is not installed: eqsep[bench]")

    class Own(base.BaseDetector):
        """The same scores, with all else by PyOD."""

        def __init__(self, contamination):
            super().__init__(contamination=contamination)

        def fit(self, X, y=None):
            self._set_n_classes(y)
            self.decision_scores_ = self.decision_function(X)
            self._process_decision_scores()
            return self

        def decision_function(self, X):
            return fitted.decision_function(X)

    train, new = rows
    theirs = Own(contamination=0.05).fit(train)
    assert fitted.threshold_ == pytest.approx(theirs.threshold_, rel=1e-12)
    assert_array_equal(fitted.labels_, theirs.labels_)
    assert_array_equal(fitted.predict(new), theirs.predict(new))
    ours = fitted.predict_proba(new, method=method)
    assert_allclose(ours, theirs.predict_proba(new, method=method), atol=1e-12)


def test_scores_are_combined_by_pyod(fitted, rows):
    """With those of a detector of PyOD, as its examples do it."""
    pytest.importorskip(
        "combo", reason="PyOD combines by combo, which is not installed: eqsep[bench]"
    )
    combination = pytest.importorskip(
        "pyod.models.combination", reason="PyOD is not installed: eqsep[bench]"
    )
    from pyod.models.ecod import ECOD
    from pyod.models.hbos import HBOS
    from pyod.utils.utility import standardizer

    train, new = rows
    models = [fitted, clone(fitted).set_params(detector__random_state=1).fit(train)]
    models += [make(contamination=0.05).fit(train) for make in (ECOD, HBOS)]
    known, scores = (
        np.column_stack(columns)
        for columns in (
            [model.decision_scores_ for model in models],
            [model.decision_function(new) for model in models],
        )
    )
    _, scores = standardizer(known, scores)
    labels = np.column_stack([model.predict(new) for model in models])
    assert_allclose(combination.average(scores), scores.mean(axis=1))
    assert_allclose(combination.maximization(scores), scores.max(axis=1))
    assert_allclose(combination.median(scores), np.median(scores, axis=1))
    for combined in (
        combination.average(scores),
        combination.maximization(scores),
        combination.median(scores),
        combination.aom(scores, n_buckets=2, random_state=0),
        combination.moa(scores, n_buckets=2, random_state=0),
    ):
        assert combined[-5:].min() > np.quantile(combined[:-5], 0.95)
    assert_array_equal(combination.majority_vote(labels).ravel()[-5:], 1)
