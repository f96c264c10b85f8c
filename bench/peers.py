"""The methods that are compared: each is built as a fair user of it would, with its defaults.

What a method is given beyond its defaults stands in its `settings`, which the benchmark prints. A
method is measured where its package is installed; DeepOD asks for an old torch and works with a
new one: `pip install --no-deps deepod==0.4.1` and `pip install tqdm einops`.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, OneClassSVM

import eqsep
from eqsep.evaluation import anomaly_score

THREADS = 1


def own_score(estimator: Any, X: np.ndarray) -> np.ndarray:
    """PyOD's and DeepOD's: larger is more anomalous, though PyOD's tags are scikit-learn's."""
    return estimator.decision_function(X)


@dataclass
class Peer:
    """An estimator with what its user does before it is fitted.

    Attributes
    ----------
    standardise : bool
        Whether the columns are brought to mean 0 and variance 1 by the training rows.
    normal_only : bool
        Whether it is fitted on the normal rows, without labels.
    at_most : int or None
        The number of training rows where there are more: all anomalies, or half of the number
        where these are more, and normal rows for the rest, drawn at random.
    """

    estimator: Any
    standardise: bool = False
    normal_only: bool = False
    at_most: int | None = None
    score_of: Callable[[Any, np.ndarray], np.ndarray] = anomaly_score

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Peer":
        used = self._used(y)
        X, y = X[used], y[used]
        self.scaler_ = (StandardScaler() if self.standardise else FunctionTransformer()).fit(X)
        labels = () if self.normal_only else (y,)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old names and of rounding, in others' code
            self.estimator.fit(self.scaler_.transform(X), *labels)
        return self

    def _used(self, y: np.ndarray) -> np.ndarray:
        """The places of the rows that it is fitted on."""
        order = np.random.default_rng(0).permutation(len(y))
        normal, anomalous = order[y[order] == 0], order[y[order] == 1]
        if self.normal_only:
            return np.sort(normal[: self.at_most])
        if self.at_most is None or len(y) <= self.at_most:
            return np.arange(len(y))
        kept = anomalous[: self.at_most // 2]
        return np.sort(np.concatenate([kept, normal[: self.at_most - len(kept)]]))

    def score(self, X: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.score_of(self.estimator, self.scaler_.transform(X))


class OurDetector:
    """The Detector of eqsep, with its defaults, on the table as it is."""

    def fit(self, X: Any, y: np.ndarray) -> "OurDetector":
        self.detector_ = eqsep.Detector(random_state=0).fit(X, y)
        return self

    def score(self, X: Any) -> np.ndarray:
        return self.detector_.decision_function(X)


@dataclass(frozen=True)
class Method:
    """A way to build what has `fit(X, y)` and `score(X)`.

    Attributes
    ----------
    module : str
        The package that it comes from, by the name under which it is imported.
    settings : str
        What differs from the defaults, in words.
    mixed : bool
        Whether it takes the table as it is, words included, rather than a matrix of numbers.
    """

    build: Callable[[], Any]
    module: str
    settings: str
    mixed: bool = False

    def package(self) -> str | None:
        """What is installed under the module's name, with its version; None for nothing."""
        (name, *_) = packages_distributions().get(self.module, [self.module])
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            return None


def xgboost(*, threads: int = THREADS) -> Peer:
    """200 trees."""
    from xgboost import XGBClassifier

    return Peer(XGBClassifier(n_estimators=200, n_jobs=threads, random_state=0))


def _xgbod() -> Peer:
    from pyod.models.xgbod import XGBOD

    model = XGBOD(random_state=0, n_jobs=THREADS, verbosity=0)
    return Peer(model, at_most=2000, score_of=own_score)


def _ecod() -> Peer:
    from pyod.models.ecod import ECOD

    return Peer(ECOD(), normal_only=True, score_of=own_score)


_DEEP = "of DeepOD, standardised columns, 100 epochs (its default) of at most 50 batches"
_TRAINING = {"epochs": 100, "epoch_steps": 50}


def _deep_sad() -> Peer:
    from deepod.models import DeepSAD

    model = DeepSAD(**_TRAINING, device="cpu", verbose=0, random_state=0)
    return Peer(model, standardise=True, score_of=own_score)


def _prenet() -> Peer:
    from deepod.models import PReNet

    model = PReNet(**_TRAINING, device="cpu", verbose=0, random_state=0)
    return Peer(model, standardise=True, score_of=own_score)


# The quick ones first, so that most of the table is soon there.
METHODS = {
    "XGBoost": Method(xgboost, "xgboost", "200 trees"),
    "random forest": Method(
        lambda: Peer(RandomForestClassifier(200, n_jobs=THREADS, random_state=0)),
        "sklearn",
        "200 trees",
    ),
    "logistic regression": Method(
        lambda: Peer(LogisticRegression(max_iter=1000), standardise=True),
        "sklearn",
        "standardised columns, at most 1,000 iterations",
    ),
    "isolation forest": Method(
        lambda: Peer(IsolationForest(n_jobs=THREADS, random_state=0), normal_only=True),
        "sklearn",
        "normal rows only",
    ),
    "ECOD": Method(_ecod, "pyod", "normal rows only"),
    "one-class SVM": Method(
        lambda: Peer(OneClassSVM(), standardise=True, normal_only=True, at_most=10_000),
        "sklearn",
        "standardised columns, normal rows only, at most 10,000 of them",
    ),
    "SVC": Method(
        lambda: Peer(SVC(), standardise=True, at_most=20_000),
        "sklearn",
        "RBF kernel, standardised columns, at most 20,000 rows",
    ),
    "LOF": Method(
        lambda: Peer(
            LocalOutlierFactor(novelty=True, n_jobs=THREADS), standardise=True, normal_only=True
        ),
        "sklearn",
        "standardised columns, normal rows only",
    ),
    "DeepSAD": Method(_deep_sad, "deepod", _DEEP),
    "PReNet": Method(
        _prenet,
        "deepod",
        _DEEP,
    ),
    "XGBOD": Method(_xgbod, "pyod", "at most 2,000 rows"),
}
if "Detector" in eqsep.__all__:
    METHODS = {
        "eqsep": Method(OurDetector, "eqsep", "Detector, its defaults", mixed=True)
    } | METHODS
