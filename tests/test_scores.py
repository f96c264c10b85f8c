import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import average_precision_score
from sklearn.svm import SVC

from eqsep import EqualitySeparator
from eqsep.datasets import make_gaussians
from eqsep.evaluation import anomaly_average_precision, anomaly_score

SPLIT = make_gaussians(n_samples=200, random_state=0)
NAMES = np.where(SPLIT.y_train == 1, "attack", "normal")
MODELS = [
    SVC(),
    LogisticRegression(),
    RandomForestClassifier(20, random_state=0),
    EqualitySeparator(random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_names_that_sort_before_normal_do_not_turn_the_score(model):
    by_number = anomaly_score(model.fit(SPLIT.X_train, SPLIT.y_train), SPLIT.X_test)
    by_name = anomaly_score(model.fit(SPLIT.X_train, NAMES), SPLIT.X_test)
    quality = [average_precision_score(SPLIT.y_test, score) for score in (by_number, by_name)]
    assert_allclose(quality[1], quality[0], atol=0.02)
    assert quality[0] > 0.9


@pytest.mark.parametrize("model", MODELS[:3], ids=lambda m: type(m).__name__)
def test_the_normal_class_can_be_named(model):
    flipped = np.where(SPLIT.y_train == 1, "bad", "good")
    score = anomaly_score(model.fit(SPLIT.X_train, flipped), SPLIT.X_test, normal="good")
    assert average_precision_score(SPLIT.y_test, score) > 0.9
    with pytest.raises(ValueError, match=r"normal='fine' is not among the classes"):
        anomaly_score(model, SPLIT.X_test, normal="fine")


def test_more_classes_are_all_but_the_normal_one():
    kinds = np.where(SPLIT.y_train == 1, np.where(SPLIT.X_train[:, 0] > -1, "a", "z"), "normal")
    forest = RandomForestClassifier(20, random_state=0).fit(SPLIT.X_train, kinds)
    assert_allclose(
        anomaly_score(forest, SPLIT.X_test), 1 - forest.predict_proba(SPLIT.X_test)[:, 1]
    )
    with pytest.raises(ValueError, match="tells 3 classes apart and has no predict_proba"):
        anomaly_score(RidgeClassifier().fit(SPLIT.X_train, kinds), SPLIT.X_test)


def test_outlier_detectors_are_turned():
    forest = IsolationForest(random_state=0).fit(SPLIT.X_train[SPLIT.y_train == 0])
    score = anomaly_score(forest, SPLIT.X_test)
    assert_allclose(score, -forest.decision_function(SPLIT.X_test))
    assert average_precision_score(SPLIT.y_test, score) > 0.5


def test_the_scorer_reads_names_and_numbers_alike():
    model = EqualitySeparator(random_state=0).fit(SPLIT.X_train, NAMES)
    kind = np.where(SPLIT.y_test == 1, "another", "normal")
    area = anomaly_average_precision(model, SPLIT.X_test, kind)
    assert area == average_precision_score(SPLIT.y_test, model.decision_function(SPLIT.X_test))
    assert anomaly_average_precision(model, SPLIT.X_test, SPLIT.y_test) == area
