"""The methods that are compared: each is built as a fair user of it would, with its defaults.

What a method is given beyond its defaults stands in its `settings`, which the benchmark prints. A
method is measured where its package is installed; DeepOD asks for an old torch and works with a
new one: `pip install --no-deps deepod==0.4.1` and `pip install tqdm einops`.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

import numpy as np
from sklearn.covariance import LedoitWolf
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import eqsep
from eqsep.evaluation import anomaly_score
from eqsep.evaluation.peers import PEERS, Peer, training_data

THREADS = 1


def own_score(estimator: Any, X: np.ndarray) -> np.ndarray:
    """PyOD's and DeepOD's: larger is more anomalous, though PyOD's tags are scikit-learn's."""
    return estimator.decision_function(X)


@dataclass
class Prepared:
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

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Prepared":
        used = self._used(y)
        X, *labels = training_data(X[used], y[used], normal_only=self.normal_only)
        self.scaler_ = (StandardScaler() if self.standardise else FunctionTransformer()).fit(X)
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

    build: Callable[..., Any]
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


def _imported(module: str, name: str) -> Callable[..., Any]:
    """A class that is imported when it is built: its package may not be installed."""
    return lambda **settings: getattr(import_module(module), name)(**settings)


_DEEP = {"epochs": 100, "epoch_steps": 50, "device": "cpu", "verbose": 0}
# Beside those of eqsep, those whose packages come with the benchmarks.
ALL_PEERS = PEERS | {
    "Mahalanobis": Peer(LedoitWolf, normal_only=True, is_random=False),
    "ECOD": Peer(_imported("pyod.models.ecod", "ECOD"), normal_only=True, is_random=False),
    "XGBOD": Peer(_imported("pyod.models.xgbod", "XGBOD"), {"verbosity": 0}),
    "DeepSAD": Peer(_imported("deepod.models", "DeepSAD"), _DEEP),
    "PReNet": Peer(_imported("deepod.models", "PReNet"), _DEEP),
}
_SCORES: dict[str, Callable[[Any, np.ndarray], np.ndarray]] = {
    "Mahalanobis": LedoitWolf.mahalanobis,  # squared
    **dict.fromkeys(("ECOD", "XGBOD", "DeepSAD", "PReNet"), own_score),
}


def prepared(
    name: str, *, standardise: bool = False, at_most: int | None = None, **settings: Any
) -> Prepared:
    """A peer by its name, with what its user does before it is fitted."""
    return Prepared(
        ALL_PEERS[name].build(random_state=0, **settings),
        standardise=standardise,
        normal_only=ALL_PEERS[name].normal_only,
        at_most=at_most,
        score_of=_SCORES.get(name, anomaly_score),
    )


_IN_WORDS = "of DeepOD, standardised columns, 100 epochs (its default) of at most 50 batches"
# The quick ones first, so that most of the table is soon there.
METHODS = {
    "eqsep": Method(OurDetector, "eqsep", "Detector, its defaults", mixed=True),
    "XGBoost": Method(partial(prepared, "XGBoost", n_jobs=THREADS), "xgboost", "200 trees"),
    "random forest": Method(
        partial(prepared, "random forest", n_jobs=THREADS), "sklearn", "200 trees"
    ),
    "logistic regression": Method(
        partial(prepared, "logistic regression", standardise=True, max_iter=1000),
        "sklearn",
        "standardised columns, at most 1,000 iterations",
    ),
    "isolation forest": Method(
        partial(prepared, "isolation forest", n_jobs=THREADS), "sklearn", "normal rows only"
    ),
    "Mahalanobis": Method(
        partial(prepared, "Mahalanobis", standardise=True),
        "sklearn",
        "distance by the covariance of Ledoit and Wolf, standardised columns, normal rows only",
    ),
    "ECOD": Method(partial(prepared, "ECOD"), "pyod", "normal rows only"),
    "one-class SVM": Method(
        partial(prepared, "one-class SVM", standardise=True, at_most=10_000),
        "sklearn",
        "standardised columns, normal rows only, at most 10,000 of them",
    ),
    "SVC": Method(
        partial(prepared, "SVC", standardise=True, at_most=20_000),
        "sklearn",
        "RBF kernel, standardised columns, at most 20,000 rows",
    ),
    "LOF": Method(
        partial(prepared, "LOF", standardise=True, n_jobs=THREADS),
        "sklearn",
        "standardised columns, normal rows only",
    ),
    "DeepSAD": Method(partial(prepared, "DeepSAD", standardise=True), "deepod", _IN_WORDS),
    "PReNet": Method(partial(prepared, "PReNet", standardise=True), "deepod", _IN_WORDS),
    "XGBOD": Method(
        partial(prepared, "XGBOD", at_most=2000, n_jobs=THREADS), "pyod", "at most 2,000 rows"
    ),
}
