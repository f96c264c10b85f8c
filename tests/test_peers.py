"""Methods that others have written: built in one place, fitted on the rows that they are for."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import is_outlier_detector

import eqsep
from eqsep.errors import MissingExtraError
from eqsep.evaluation import anomaly_score
from eqsep.evaluation.peers import PEERS, training_data

ROOT = Path(eqsep.__file__).parents[1]
INSTALLED = [name for name in PEERS if name != "XGBoost"]
# What is built in one room; OneVsSet is made of an SVC.
CLASSES = {"XGBClassifier", "RandomForestClassifier", "IsolationForest", "LocalOutlierFactor"}
CLASSES |= {"LogisticRegression", "OneClassSVM", "SVC"}
MADE_OF_ONE = ("eqsep/separators/",)


@pytest.mark.parametrize("name", INSTALLED)
def test_each_learns_from_what_it_is_for_and_finds_the_far_rows(name):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(6, 1, (20, 2))])
    y = np.repeat([0, 1], [60, 20])
    peer = PEERS[name]
    model = peer.build(random_state=0)
    assert is_outlier_detector(model) == peer.normal_only
    score = anomaly_score(model.fit(*training_data(X, y, normal_only=peer.normal_only)), X)
    assert score[y == 1].min() > np.quantile(score[y == 0], 0.9)


@pytest.mark.parametrize("name", INSTALLED)
def test_a_seed_goes_to_those_that_draw(name):
    built = PEERS[name].build(random_state=5).get_params()
    assert (built.get("random_state") == 5) == PEERS[name].is_random


def test_normal_rows_come_without_labels_and_all_rows_with_theirs():
    X, y = np.arange(4.0)[:, None], np.array([True, False, False, True])
    (normal,) = training_data(X, y, normal_only=True)
    assert_array_equal(normal, [[1.0], [2.0]])
    rows, labels = training_data(X, y, normal_only=False)
    assert rows is X
    assert labels is y


def test_without_xgboost_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match="pip install xgboost"):
        PEERS["XGBoost"].build()


@pytest.mark.parametrize("folder", ["eqsep", "paper"])
def test_nobody_else_builds_them(folder):
    texts = {path: path.read_text() for path in (ROOT / folder).rglob("*.py")}
    builders = {
        path.relative_to(ROOT).as_posix()
        for path, text in texts.items()
        if any(name in text for name in CLASSES)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and CLASSES & {alias.name for alias in node.names}
    }
    others = {path for path in builders if not path.startswith(MADE_OF_ONE)}
    assert others <= {"eqsep/evaluation/peers.py"}
