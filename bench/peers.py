"""The methods that are compared: each is built as a fair user of it would, with its defaults.

What a method is given beyond its defaults stands in its `settings`, which the benchmark prints. A
method is measured where its package is installed; DeepOD asks for an old torch and works with a
new one: `pip install --no-deps deepod==0.4.1` and `pip install tqdm einops`. `METHODS` are those
of `leave_one_kind_out.py`; `adbench.py` names its own, of the same `ALL_PEERS`.
"""

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.covariance import LedoitWolf
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

import eqsep
from eqsep.evaluation import anomaly_score
from eqsep.evaluation.peers import PEERS, Peer, training_data

THREADS = 1
_distributions = cache(packages_distributions)  # it reads the files of all packages


def own_score(estimator: Any, X: np.ndarray) -> np.ndarray:
    """Larger is more anomalous, though PyOD's tags are scikit-learn's."""
    return estimator.decision_function(X)


@dataclass
class Prepared:
    """An estimator with what its user does before it is fitted.

    Attributes
    ----------
    scaler : transformer
        What the columns go through, learnt from the training rows.
    normal_only : bool
        Whether it is fitted on the normal rows, without labels.
    at_most : int or None
        The number of training rows where there are more: all anomalies, or half of the number
        where these are more, and normal rows for the rest, drawn at random.
    at_least : int
        The number of anomalies where there are fewer: they are repeated.
    """

    estimator: Any
    scaler: Any = field(default_factory=FunctionTransformer)
    normal_only: bool = False
    at_most: int | None = None
    at_least: int = 0
    score_of: Callable[[Any, np.ndarray], np.ndarray] = anomaly_score

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Prepared":
        used = self._used(y)
        X, *labels = training_data(X[used], y[used], normal_only=self.normal_only)
        self.scaler_ = clone(self.scaler).fit(X)
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
            lacking = max(self.at_least - len(anomalous), 0)
            return np.concatenate([np.arange(len(y)), np.resize(anomalous, lacking)])
        kept = anomalous[: self.at_most // 2]
        return np.sort(np.concatenate([kept, normal[: self.at_most - len(kept)]]))

    def score(self, X: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.score_of(self.estimator, self.scaler_.transform(X))


@dataclass
class OurDetector:
    """The Detector of eqsep, with its defaults, on the table as it is.

    Attributes
    ----------
    labels_of : callable
        From 0 and 1 to the labels as its user has them, or to None where there are none.
    settings : mapping
        The parameters that its user has changed.
    """

    labels_of: Callable[[np.ndarray], np.ndarray | None] = np.asarray
    settings: Mapping[str, Any] = field(default_factory=dict)

    def fit(self, X: Any, y: np.ndarray) -> "OurDetector":
        detector = eqsep.Detector(random_state=0, **self.settings)
        self.detector_ = detector.fit(X, self.labels_of(y))
        return self

    def score(self, X: Any) -> np.ndarray:
        return self.detector_.decision_function(X)


def named(y: np.ndarray) -> np.ndarray | None:
    """The labels as people have them: "anomaly" for what is known to be one, else None.

    None where nothing is known of any row.
    """
    return np.where(y == 1, "anomaly", None) if np.any(y) else None


def nobody(y: np.ndarray) -> None:
    """The labels where nobody has looked at the rows."""


@cache
def warm_up() -> None:
    """Fit and score once in this process, which loads what Numba has compiled."""
    y = (np.arange(400) % 50 == 0).astype(int)
    X = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32) + 4 * y[:, None]
    for labels in (y, y * (np.arange(400) == 0), y * 0):
        OurDetector(labels_of=named).fit(X.astype(np.float32), labels).score(X)


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
        if self.module == "eqsep":
            return f"eqsep {eqsep.__version__}"  # though it may be a folder that is not installed
        (name, *_) = _distributions().get(self.module, [self.module])
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            return None


def described(method: Method) -> dict[str, Any]:
    """What a method comes from, and its settings in words."""
    return {"package": method.package(), "settings": method.settings}


def fitted_and_scored(
    model: Any, X: Any, y: np.ndarray, X_test: Any
) -> tuple[np.ndarray, dict[str, Any]]:
    """The scores of test rows, and the seconds and rows that they took, on one thread."""
    with threadpool_limits(THREADS):
        begin = perf_counter()
        model.fit(X, y)
        fitted = perf_counter()
        score = model.score(X_test)
        scored = perf_counter()
    return score, {
        "fit_seconds": fitted - begin,
        "score_seconds": scored - fitted,
        "n_train": len(y),
        "n_test": len(score),
        "load": os.getloadavg()[0],
    }


def _imported(module: str, name: str) -> Callable[..., Any]:
    """A class that is imported when it is built: its package may not be installed."""
    return lambda **settings: getattr(import_module(module), name)(**settings)


def _rosas(**settings: Any) -> Any:
    """RoSAS, in batches that small tables can fill: it draws each without replacement."""
    from deepod.models import RoSAS

    class RoSASOfSmallTables(RoSAS):
        def training_prepare(self, X: np.ndarray, y: np.ndarray) -> Any:
            self.batch_size = min(self.batch_size, int(np.sum(y == 0)) // 2)
            return super().training_prepare(X, y)

    return RoSASOfSmallTables(**settings)


def _wsad_dt(**settings: Any) -> Any:
    """WSAD-DT in as many steps as those of DeepOD: each of 5 members has 100 epochs of 10 batches.

    An epoch of it draws as many rows as there are, and it has no setting for fewer.
    """
    reference, ten_batches = import_module("wsad_dt._reference"), 640

    def at_most(*, num_samples: int, **how: Any) -> Any:
        sampler = import_module("torch.utils.data").WeightedRandomSampler
        return sampler(num_samples=min(num_samples, ten_batches), **how)

    reference.WeightedRandomSampler = at_most
    return import_module("wsad_dt").WSADDT(**settings)


class Neighbours(NearestNeighbors):
    """How far the nearest training rows are: on average, or only the last of them.

    Where there are fewer rows than neighbours, all of them are the neighbours.
    """

    def __init__(self, n_neighbors: int = 5, *, only_last: bool = False, n_jobs: int | None = None):
        super().__init__(n_neighbors=n_neighbors, n_jobs=n_jobs)
        self.only_last = only_last

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Larger is more anomalous, as in PyOD."""
        distances, _ = self.kneighbors(X, min(self.n_neighbors, self.n_samples_fit_))
        return distances[:, -1] if self.only_last else distances.mean(axis=1)


def _tabpfn(**settings: Any) -> Any:
    """TabPFN v2's regressor, whose weights are at TABPFN_WEIGHTS; it sends no telemetry."""
    os.environ.setdefault("TABPFN_DISABLE_TELEMETRY", "1")
    make = import_module("tabpfn").TabPFNRegressor
    weights = os.environ.get("TABPFN_WEIGHTS", "")
    if not os.path.isfile(weights):  # noqa: PTH113
        raise ImportError(
            "TABPFN_WEIGHTS names no file. It should name tabpfn-v2-regressor-2noar4o2.ckpt, which "
            "the source distribution of tabpfn-time-series 0.1.3 holds."
        )
    return make(model_path=weights, **settings)


_DEEP = {"epochs": 100, "epoch_steps": 50, "device": "cpu", "verbose": 0}
# Beside those of eqsep, those whose packages come with the benchmarks.
ALL_PEERS = PEERS | {
    "Mahalanobis": Peer(LedoitWolf, normal_only=True, is_random=False),
    "ECOD": Peer(_imported("pyod.models.ecod", "ECOD"), normal_only=True, is_random=False),
    # Components without variance would make every score infinite.
    "PCA": Peer(_imported("pyod.models.pca", "PCA"), {"n_components": 0.999}, normal_only=True),
    "neighbours": Peer(Neighbours, normal_only=True, is_random=False),
    "TabPFN": Peer(_tabpfn, {"ignore_pretraining_limits": True}),
    "XGBOD": Peer(_imported("pyod.models.xgbod", "XGBOD"), {"verbosity": 0}),
    "DeepSAD": Peer(_imported("deepod.models", "DeepSAD"), _DEEP),
    "PReNet": Peer(_imported("deepod.models", "PReNet"), _DEEP),
    "RoSAS": Peer(_rosas, _DEEP),
    "WSAD-DT": Peer(_wsad_dt, is_random=False),  # its seed is 100
    "TabM": Peer(_imported("tabm_training", "TabMClassifier")),
    "HistGradientBoosting": Peer(HistGradientBoostingClassifier),
    "CatBoost": Peer(
        _imported("catboost", "CatBoostClassifier"),
        {"iterations": 300, "verbose": False, "allow_writing_files": False},
    ),
}
_SCORES: dict[str, Callable[[Any, np.ndarray], np.ndarray]] = {
    "Mahalanobis": LedoitWolf.mahalanobis,  # squared
    "TabPFN": lambda regressor, X: regressor.predict(X),
    **dict.fromkeys(("ECOD", "PCA", "neighbours", "XGBOD"), own_score),
    **dict.fromkeys(("DeepSAD", "PReNet", "RoSAS", "WSAD-DT"), own_score),
}


def prepared(name: str, *, settings: Mapping[str, Any] | None = None, **before: Any) -> Prepared:
    """A peer by its name, with what its user does before it is fitted."""
    return Prepared(
        ALL_PEERS[name].build(random_state=0, **(settings or {})),
        normal_only=ALL_PEERS[name].normal_only,
        **before,
        score_of=_SCORES.get(name, anomaly_score),
    )


_ONE_JOB = {"n_jobs": THREADS}
CATBOOST = Method(
    partial(prepared, "CatBoost", settings={"thread_count": THREADS}), "catboost", "300 trees"
)
TABPFN = Method(
    partial(prepared, "TabPFN", at_most=10_000),
    "tabpfn",
    "the regressor of version 2 on labels 0 and 1, at most 10,000 rows, on a GPU where there is "
    "one; built with PriorLabs-TabPFN",
)
NEIGHBOURS = {
    "5 neighbours": Method(
        partial(prepared, "neighbours", scaler=StandardScaler(), settings=_ONE_JOB),
        "sklearn",
        "mean distance to the 5 nearest rows (as DTE-NP has it), standardised columns",
    ),
    "100 neighbours": Method(
        partial(
            prepared,
            "neighbours",
            scaler=StandardScaler(),
            settings={"n_neighbors": 100, "only_last": True, **_ONE_JOB},
        ),
        "sklearn",
        "distance to the 100th nearest row, standardised columns",
    ),
}
OF_DEEPOD = "of DeepOD, standardised columns, 100 epochs (its default) of at most 50 batches"
# The quick ones first, so that most of the table is soon there.
METHODS = {
    "eqsep": Method(OurDetector, "eqsep", "Detector, its defaults", mixed=True),
    "XGBoost": Method(partial(prepared, "XGBoost", settings=_ONE_JOB), "xgboost", "200 trees"),
    "random forest": Method(
        partial(prepared, "random forest", settings=_ONE_JOB), "sklearn", "200 trees"
    ),
    "logistic regression": Method(
        partial(
            prepared, "logistic regression", scaler=StandardScaler(), settings={"max_iter": 1000}
        ),
        "sklearn",
        "standardised columns, at most 1,000 iterations",
    ),
    "isolation forest": Method(
        partial(prepared, "isolation forest", settings=_ONE_JOB), "sklearn", "normal rows only"
    ),
    "Mahalanobis": Method(
        partial(prepared, "Mahalanobis", scaler=StandardScaler()),
        "sklearn",
        "distance by the covariance of Ledoit and Wolf, standardised columns, normal rows only",
    ),
    "ECOD": Method(partial(prepared, "ECOD"), "pyod", "normal rows only"),
    "one-class SVM": Method(
        partial(prepared, "one-class SVM", scaler=StandardScaler(), at_most=10_000),
        "sklearn",
        "standardised columns, normal rows only, at most 10,000 of them",
    ),
    "SVC": Method(
        partial(prepared, "SVC", scaler=StandardScaler(), at_most=20_000),
        "sklearn",
        "RBF kernel, standardised columns, at most 20,000 rows",
    ),
    "LOF": Method(
        partial(prepared, "LOF", scaler=StandardScaler(), settings=_ONE_JOB),
        "sklearn",
        "standardised columns, normal rows only",
    ),
    "DeepSAD": Method(partial(prepared, "DeepSAD", scaler=StandardScaler()), "deepod", OF_DEEPOD),
    "PReNet": Method(
        partial(prepared, "PReNet", scaler=StandardScaler(), at_least=2),
        "deepod",
        f"{OF_DEEPOD}, a single anomaly twice (it draws pairs)",
    ),
    "XGBOD": Method(
        partial(prepared, "XGBOD", at_most=2000, settings=_ONE_JOB), "pyod", "at most 2,000 rows"
    ),
}
