"""What every separator shares: checked rows, labels and weights, and `predict`."""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from eqsep.arrays import check_weight, is_foreign, to_numpy, validate_rows
from eqsep.errors import ParameterError, UserError
from eqsep.labels import LabelReader, read_labels

MERGED_ROWS = 10_000


class Separator(ClassifierMixin, BaseEstimator, ABC):
    """A binary scikit-learn classifier whose second class is the anomaly.

    `decision_function` is larger where a row is more anomalous; its 0 is the decision threshold.
    """

    normal: Any
    classes_: np.ndarray
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @abstractmethod
    def decision_function(self, X: Any) -> Any:
        """How anomalous each row is; above 0 it is called an anomaly."""

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row: anomalous where `decision_function` is positive."""
        score = self.decision_function(X)
        return self.classes_[to_numpy(score > 0).astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows classified right, as normal or anomalous, whatever their kind."""
        by_name = self.classes_.dtype.kind in "US"
        is_anomaly = LabelReader(self.classes_, self.classes_[1:], by_name).encode(y)
        alarm = to_numpy(self.decision_function(X) > 0)
        return float(accuracy_score(is_anomaly, alarm, sample_weight=sample_weight))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted separator to one file, without pickle; `eqsep.load_model` reads it."""
        from eqsep.persistence import save_model  # model files know the separators: only when asked

        save_model(self, path)

    def _enter(
        self, X: Any, y: Any, weight: Any = None, *, merge: bool = True, one_class: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, 1.0 where anomalous, and weights, without rows of weight zero."""
        X = self._numpy_rows(X, reset=True)
        labels = read_labels(y, normal=self.normal, one_class=one_class)
        is_anomaly = labels.encode(y)
        check_consistent_length(X, is_anomaly)
        weight = check_weight(weight, n=len(is_anomaly))
        self.classes_ = labels.classes
        counted = weight > 0
        if not one_class:
            check_both_classes(is_anomaly[counted])
        X, is_anomaly, weight = X[counted], is_anomaly[counted], weight[counted]
        if not merge or len(X) > MERGED_ROWS:
            return X, is_anomaly, weight
        # Sorted, and equal rows merged: the fit is the same bit for bit in any order.
        distinct, place = np.unique(np.column_stack([is_anomaly, X]), axis=0, return_inverse=True)
        return distinct[:, 1:], distinct[:, 0], np.bincount(place.ravel(), weights=weight)

    def _rows(self, X: Any) -> np.ndarray:
        """Rows to score, checked against those of the fit."""
        check_is_fitted(self)
        return self._numpy_rows(X, reset=False)

    def _numpy_rows(self, X: Any, *, reset: bool) -> np.ndarray:
        return validate_rows(self, to_numpy(X) if is_foreign(X) else X, reset=reset)


def check_known(known: Collection[str], **parameter: Any) -> None:
    """Refuse a parameter that is not among those known."""
    for name, value in parameter.items():
        if value not in known:
            raise ParameterError(name, expected=f"one of {sorted(known)}", got=value)


def check_both_classes(is_anomaly: np.ndarray) -> None:
    """Refuse rows of one class only, as those of positive weight may be."""
    if len(np.unique(is_anomaly)) < 2:
        raise UserError(
            "normal and anomalous rows are needed: expected 2 classes of positive weight, got "
            "one class only once rows of weight 0 are left out. Give both classes some weight."
        )
