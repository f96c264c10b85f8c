import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import average_precision_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from eqsep import OneVsSet
from eqsep.datasets import make_gaussians


@pytest.fixture(scope="module")
def split():
    return make_gaussians(noise_multiplier=2.0, n_samples=200, random_state=0)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_equality_score_ranks_by_the_distance_to_the_midplane(split, kernel):
    machine = OneVsSet(kernel=kernel, ranking="equality").fit(split.X_train, split.y_train)
    score = machine.decision_function(split.X_test)
    s = -machine.svm_.decision_function(machine.frame_.columns(split.X_test))
    to_midplane = np.abs(s - (machine.near_ + machine.far_) / 2)
    assert_array_equal(np.argsort(score), np.argsort(to_midplane))
    assert_allclose(machine.distance(split.X_test), to_midplane)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_both_scores_decide_alike(split, kernel):
    equality = OneVsSet(kernel=kernel).fit(split.X_train, split.y_train)
    binary = OneVsSet(kernel=kernel, ranking="binary").fit(split.X_train, split.y_train)
    assert_array_equal(equality.predict(split.X_test), binary.predict(split.X_test))
    assert set(binary.decision_function(split.X_test)) <= {-1.0, 1.0}
    assert len(set(equality.decision_function(split.X_test))) > 100


def test_the_second_plane_catches_what_the_machine_alone_calls_normal(split):
    beyond = [[9.0, 9.0]]  # behind the normal class, seen from the anomalies
    svm = SVC(kernel="linear").fit(split.X_train, split.y_train)
    assert svm.predict(beyond).tolist() == [0]
    assert OneVsSet().fit(split.X_train, split.y_train).predict(beyond).tolist() == [1]


def test_normal_rows_lie_between_the_planes_where_the_classes_are_apart():
    split = make_gaussians(noise_multiplier=0.1, n_samples=200, random_state=0)
    machine = OneVsSet().fit(split.X_train, split.y_train)
    assert machine.near_ < machine.midplane_ < machine.far_
    assert machine.score(split.X_train, split.y_train) == 1.0


def test_ranking_is_a_parameter_and_score_a_method(split):
    machine = clone(OneVsSet(ranking="binary"))
    assert machine.get_params()["ranking"] == "binary"
    assert "binary" in repr(machine)
    machine.set_params(ranking="equality").fit(split.X_train, split.y_train)
    expected = np.mean(machine.predict(split.X_test) == split.y_test)
    assert machine.score(split.X_test, split.y_test) == expected
    search = GridSearchCV(OneVsSet(), {"ranking": ["equality", "binary"], "C": [0.1, 1.0]})
    assert search.fit(split.X_train, split.y_train).best_score_ > 0.8
    with pytest.raises(ValueError, match=r"ranking must be one of \['binary', 'equality'\], got"):
        OneVsSet(ranking="x").fit(split.X_train, split.y_train)


def test_a_higher_trade_off_leaves_a_lower_training_error(split):
    def quality(trade_off):
        machine = OneVsSet(trade_off=trade_off).fit(split.X_train, split.y_train)
        return balanced_accuracy_score(split.y_train, machine.predict(split.X_train))

    assert quality(100.0) > quality(0.1)


def test_shuffled_labels_ruin_the_score(split):
    def quality(y):
        score = OneVsSet().fit(split.X_train, y).decision_function(split.X_test)
        return average_precision_score(split.y_test, score)

    rng = np.random.default_rng(0)
    shuffled = [quality(rng.permutation(split.y_train)) for _ in range(5)]
    assert np.mean(shuffled) < quality(split.y_train) - 0.2
