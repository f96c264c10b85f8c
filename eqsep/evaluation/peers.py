"""Other methods that a detector is compared with: how each is built, and what it learns from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import SVC, OneClassSVM

from eqsep.errors import MissingExtraError


@dataclass(frozen=True)
class Peer:
    """Another method: `PEERS["random forest"].build(random_state=0, n_estimators=50)`."""

    make: Callable[..., Any]  # from settings to an estimator
    settings: Mapping[str, Any] = field(default_factory=dict)  # unless `build` is given others
    normal_only: bool = False  # an outlier detector, fitted on the normal rows, without labels
    is_random: bool = True  # takes a `random_state`

    def build(self, *, random_state: Any = None, **settings: Any) -> Any:
        """The estimator, not fitted yet."""
        seed = {"random_state": random_state} if self.is_random else {}
        return self.make(**{**self.settings, **seed, **settings})


def training_data(X: Any, y: Any, *, normal_only: bool) -> tuple[Any, ...]:
    """What an estimator's `fit` is given: all rows with their labels, or the normal ones alone."""
    return (X[np.asarray(y) == 0],) if normal_only else (X, y)


def _xgboost(**settings: Any) -> Any:
    try:
        from xgboost import XGBClassifier
    except ImportError as error:
        raise MissingExtraError(
            "XGBoost is not installed. Install it with: pip install xgboost"
        ) from error
    return XGBClassifier(**settings)


PEERS: dict[str, Peer] = {
    "XGBoost": Peer(_xgboost, {"n_estimators": 200}),
    "random forest": Peer(RandomForestClassifier, {"n_estimators": 200}),
    "logistic regression": Peer(LogisticRegression, is_random=False),
    "SVC": Peer(SVC, is_random=False),
    "isolation forest": Peer(IsolationForest, normal_only=True),
    "one-class SVM": Peer(OneClassSVM, normal_only=True, is_random=False),
    "LOF": Peer(LocalOutlierFactor, {"novelty": True}, normal_only=True, is_random=False),
}
