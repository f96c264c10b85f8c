"""The score of a row, whatever estimator it comes from."""

from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.metrics import average_precision_score

from eqsep.errors import UserError
from eqsep.labels import label_objects, read_labels


def anomaly_score(estimator: Any, X: Any, *, normal: Any = None) -> np.ndarray:
    """The score of each row by a fitted estimator, larger for the more anomalous.

    That is `decision_function`, negated for scikit-learn's outlier detectors and where the normal
    class sorts last, or the probability of not being normal where there is none.

    Parameters
    ----------
    normal : label, default=None
        The normal one of the estimator's `classes_`: 0, False or "normal" where it occurs, else the
        first of them.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> forest = IsolationForest(random_state=0).fit([[0.0], [0.1], [0.2], [0.3]])
    >>> near, far = anomaly_score(forest, [[0.15], [9.0]])
    >>> bool(near < far)
    True
    """
    if is_outlier_detector(estimator):
        score = estimator.decision_function(X)
        # PyOD's detectors carry the same mark and count as we do; they keep their training scores.
        return score if hasattr(estimator, "decision_scores_") else -score
    classes = getattr(estimator, "classes_", np.arange(2)).tolist()
    at = _place_of_normal(classes, normal)
    if hasattr(estimator, "decision_function") and len(classes) == 2:
        score = estimator.decision_function(X)
        return score if at == 0 else -score
    if not hasattr(estimator, "predict_proba"):
        raise UserError(
            f"{type(estimator).__name__} tells {len(classes)} classes apart and has no "
            f"predict_proba: expected normal and anomalous. Fit it on kind != 'normal'."
        )
    # Summed, not 1 - p: that would make one and the same 0 of all small probabilities.
    return np.delete(estimator.predict_proba(X), at, axis=1).sum(axis=1)


def anomaly_average_precision(estimator: Any, X: Any, y: Any, *, normal: Any = None) -> float:
    """The average precision of a fitted estimator on labels of any kind, names included.

    Pass it as `scoring=`: scikit-learn's own scorers go by the order of the labels, and refuse
    several kinds. Rows without a label (None, NaN) are left out.

    Parameters
    ----------
    normal : label, default=None
        Which label is normal: the estimator's own `normal` where it has one, in a pipeline too;
        else 0, False or "normal", whichever occurs.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from eqsep import EqualitySeparator
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [-5.0]]
    >>> kind = ["normal", "normal", "normal", "high", "high", "low"]
    >>> model = EqualitySeparator(margin_class="normal", random_state=0)
    >>> halves = [([0, 1, 3, 5], [2, 4])]
    >>> cross_val_score(model, X, kind, scoring=anomaly_average_precision, cv=halves)
    array([1.])
    """
    y = label_objects(y, len(y))
    known = np.flatnonzero([label is not None for label in y])
    if normal is None:  # of the estimator, or of a step of a pipeline
        params = {name.split("__")[-1]: value for name, value in estimator.get_params().items()}
        normal = params.get("normal")
    labels, given = read_labels(y[known], normal=normal), y[known]
    of_classes = normal if normal in getattr(estimator, "classes_", np.arange(2)).tolist() else None
    score = anomaly_score(estimator, X, normal=of_classes)
    return float(average_precision_score(labels.encode(given), score[known]))


def _place_of_normal(classes: list[Any], normal: Any) -> int:
    if normal is None:
        return next((i for i, label in enumerate(classes) if label in (0, "normal")), 0)
    if normal not in classes:
        raise UserError(f"normal={normal!r} is not among the classes {classes} of the estimator.")
    return classes.index(normal)
