"""The score of a row, whatever estimator it comes from."""

from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector


def anomaly_score(estimator: Any, X: Any) -> np.ndarray:
    """The score of each row by a fitted estimator, larger for the more anomalous.

    That is `decision_function`, or the probability of the last class where there is none.
    scikit-learn's outlier detectors count the other way round; they are turned here, and nowhere
    else.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> forest = IsolationForest(random_state=0).fit([[0.0], [0.1], [0.2], [0.3]])
    >>> near, far = anomaly_score(forest, [[0.15], [9.0]])
    >>> bool(near < far)
    True
    """
    if is_outlier_detector(estimator):
        return -estimator.decision_function(X)
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    return estimator.predict_proba(X)[:, -1]
