"""Negative sampling: the box, how many are drawn, what is kept, and what it is for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from eqsep import EqualitySeparator, KernelEqualitySeparator, NegativeSampling
from eqsep.datasets import make_circles


class Witness(ClassifierMixin, BaseEstimator):
    """Keeps what it was fitted on."""

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = X, y, np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]


class WeightWitness(Witness):
    """Keeps the weights, too."""

    def fit(self, X, y, sample_weight=None):
        self.weight_ = sample_weight
        return super().fit(X, y)


def seen_by_witness(X, y=None, **parameters):
    inner = NegativeSampling(Witness(), random_state=0, **parameters).fit(X, y).estimator_
    return inner.X_, inner.y_


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1, 100, 0.01]
    return X, np.repeat([0, 1], [30, 10])


def test_given_rows_come_first_with_their_labels_and_drawn_ones_are_anomalies(rows):
    X, y = rows
    X_seen, y_seen = seen_by_witness(X, y)
    assert_array_equal(X_seen[:40], X)
    assert_array_equal(y_seen[:40], y)
    assert y_seen[40:].all()


@pytest.mark.parametrize(("ratio", "drawn"), [(10, 300), (1, 30), (0.5, 15), (0.001, 1)])
def test_the_ratio_is_to_the_normal_rows_alone(rows, ratio, drawn):
    X_seen, _ = seen_by_witness(*rows, ratio=ratio)
    assert len(X_seen) == 40 + drawn


@pytest.mark.filterwarnings("ignore:Neither of the labels:UserWarning")
def test_a_linear_classifier_keeps_the_contract_of_scikit_learn():
    """Ten drawn rows for each normal one once made everything an anomaly."""
    check_estimator(NegativeSampling(LogisticRegression()), on_skip=None)


@pytest.mark.parametrize(
    ("ratio", "balanced", "each"), [(4, True, 0.25), (4, False, 1), (1, True, 1)]
)
def test_drawn_anomalies_count_no_more_than_the_normal_rows(rows, ratio, balanced, each):
    X, y = rows
    inner = WeightWitness()
    model = NegativeSampling(inner, ratio=ratio, balanced=balanced, random_state=0).fit(X, y)
    weight = model.estimator_.weight_
    if each == 1:
        assert weight is None
    else:
        assert_array_equal(weight, np.repeat([1, each], [40, 30 * ratio]))


def test_the_box_is_that_of_all_rows_and_is_filled_uniformly(rows):
    X, y = rows
    X_seen, _ = seen_by_witness(X, y, ratio=300, margin=0.25)
    drawn, span = X_seen[40:], np.ptp(X, axis=0)
    low, high = X.min(axis=0) - 0.25 * span, X.max(axis=0) + 0.25 * span
    assert ((drawn >= low) & (drawn <= high)).all()
    assert_allclose(drawn.min(axis=0), low, atol=2e-3 * span.max())
    share = (drawn - low) / (high - low)
    assert_allclose(
        np.quantile(share, [0.001, 0.25, 0.5, 0.75, 0.999], axis=0).T,
        np.tile([0.001, 0.25, 0.5, 0.75, 0.999], (3, 1)),
        atol=0.02,
    )
    assert np.abs(np.corrcoef(share.T) - np.eye(3)).max() < 0.05


def test_the_box_stretches_with_the_columns(rows):
    """Drawing before or after standardisation is the same."""
    X, y = rows
    scaler = StandardScaler().fit(X)
    raw, _ = seen_by_witness(X, y)
    standard, _ = seen_by_witness(scaler.transform(X), y)
    assert_allclose(scaler.transform(raw), standard, atol=1e-9)


def test_a_constant_column_stays_constant():
    X_seen, _ = seen_by_witness(np.column_stack([np.arange(5.0), np.full(5, 7.0)]))
    assert_array_equal(X_seen[:, 1], 7.0)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (None, [0, 1]),
        (np.zeros(60, dtype=int), [0, 1]),
        (np.full(60, "normal"), ["normal", "anomaly"]),
    ],
    ids=["no labels", "zeros", "names"],
)
def test_one_class_is_enough(y, classes):
    angle = np.linspace(0, 2 * np.pi, 60)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    inner = KernelEqualitySeparator(gamma=8)
    model = NegativeSampling(inner, ratio=1, random_state=0).fit(X, y)
    assert model.classes_.tolist() == classes
    assert model.predict([[0, 1], [0, 0], [5, 5]]).tolist() == [classes[0], classes[1], classes[1]]


def test_without_the_drawn_anomalies_the_unseen_kind_is_missed():
    """A forest sees the outer circle only; the drawn anomalies tell it of the inside."""
    split = make_circles(noise=0.05, random_state=0)
    unseen = split.y_test
    forest = RandomForestClassifier(50, random_state=0)
    plain = forest.fit(split.X_train, split.y_train).predict_proba(split.X_test)[:, 1]
    wrapped = NegativeSampling(forest, random_state=0).fit(split.X_train, split.y_train)
    better = average_precision_score(unseen, wrapped.decision_function(split.X_test))
    assert better > average_precision_score(unseen, plain) + 0.3


def test_a_probability_becomes_a_score_with_its_threshold_at_zero(rows):
    X, y = rows
    model = NegativeSampling(RandomForestClassifier(20), random_state=0).fit(X, y)
    p = model.predict_proba(X)
    assert_allclose(model.decision_function(X), p[:, 1] - 0.5)
    assert_array_equal(model.predict(X), p.argmax(axis=1))


def test_a_score_is_handed_through(rows):
    X, y = rows
    model = NegativeSampling(LogisticRegression(), random_state=0).fit(X, y)
    assert_array_equal(model.decision_function(X), model.estimator_.decision_function(X))
    assert_array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))


def test_probabilities_only_where_the_estimator_has_them():
    assert hasattr(NegativeSampling(EqualitySeparator()), "predict_proba")
    assert not hasattr(NegativeSampling(Witness()), "predict_proba")


def test_one_seed_settles_the_estimator_within_too(rows):
    X, y = rows
    inner = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    first, second, other = (
        NegativeSampling(inner, random_state=seed).fit(X, y).decision_function(X)
        for seed in (0, 0, 1)
    )
    assert_array_equal(first, second)
    assert (first != other).any()
    assert inner.get_params()["randomforestclassifier__random_state"] is None


def test_a_seed_that_was_given_is_kept(rows):
    inner = RandomForestClassifier(5, random_state=7)
    model = NegativeSampling(inner, random_state=0).fit(*rows)
    assert model.estimator_.random_state == 7


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"ratio": 0}, None, r"ratio must be positive .* got ratio=0 and margin=0\.05"),
        ({"margin": -1}, None, r"margin at least 0, got ratio=10 and margin=-1"),
        ({}, np.ones(40, dtype=int), r"expected 0 in y, got 1 class only, the anomalous one \(1\)"),
        ({}, np.full(40, "attack"), r"expected normal in y, got 1 class .* \(attack\)\. Pass nor"),
    ],
)
def test_what_cannot_be_is_refused(rows, parameters, y, message):
    with pytest.raises(ValueError, match=message):
        NegativeSampling(EqualitySeparator(), **parameters).fit(rows[0], y)


@pytest.mark.parametrize(
    "inner",
    [
        IsolationForest(contamination=0.5),
        make_pipeline(StandardScaler(), IsolationForest(contamination=0.5)),
        make_pipeline(PolynomialFeatures(), StandardScaler(), LogisticRegression()),
        RandomForestClassifier(50),
    ],
    ids=["outlier detector", "in a pipeline", "score", "probability"],
)
def test_a_larger_score_is_more_anomalous_whatever_the_estimator(inner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) * 0.2
    X[0], X[1] = -3, 3  # so that the box is wide
    model = NegativeSampling(inner, ratio=5, random_state=0).fit(X)
    corners = np.array([[-3, 3], [3, -3], [2.9, -2.9]], dtype=float)
    near, far = model.decision_function(np.zeros((3, 2))), model.decision_function(corners)
    assert near.max() < 0 < far.min()
    assert_array_equal(model.predict(corners), 1)
    assert_array_equal(model.predict(np.zeros((3, 2))), 0)
