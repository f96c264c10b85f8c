"""Precision against recall, a curve for each kind."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve

from eqsep.evaluation.kinds import OVERALL, anomalous_kinds, checked_scores

_MOST_POINTS = 400  # of a curve: more cannot be told apart in a picture


@dataclass(frozen=True)
class Curve:
    """Precision and recall as the threshold falls, and the average precision.

    Attributes
    ----------
    recall, precision : ndarray of shape (n_points,)
        From the highest threshold to the highest that finds all anomalies.
    average_precision : float
        Of all rows, however few points the curve has.
    prevalence : float
        The precision of a score that knows nothing.
    """

    recall: np.ndarray
    precision: np.ndarray
    average_precision: float
    prevalence: float


def precision_recall_by_kind(score: Any, kind: Any, *, normal: str = "normal") -> dict[str, Curve]:
    """The precision-recall curve of each kind of anomaly against all normal rows.

    Parameters
    ----------
    score : array-like of shape (n_rows,)
        Larger is more anomalous.
    kind : array-like of str of shape (n_rows,)
        The kind of each row.
    normal : str, default="normal"
        The name of the normal kind.

    Returns
    -------
    dict of str to Curve
        For each kind in alphabetical order, then for all anomalies as "overall".

    Examples
    --------
    >>> curves = precision_recall_by_kind([0.1, 0.5, 0.9, 0.3], ["normal", "normal", "a", "b"])
    >>> curves["a"].average_precision, curves["b"].precision.tolist()
    (1.0, [0.0, 0.5])
    """
    score, kind = checked_scores(score, kind, normal=normal)
    is_normal = kind == normal
    found = {str(name): kind == name for name in anomalous_kinds(kind, normal)}
    return {
        name: _curve(score[rows | is_normal], rows[rows | is_normal])
        for name, rows in (found | {OVERALL: ~is_normal}).items()
    }


def _curve(score: np.ndarray, is_anomaly: np.ndarray) -> Curve:
    precision, recall, _ = precision_recall_curve(is_anomaly, score, drop_intermediate=True)
    # From the first threshold that finds anything to the first that finds all.
    end = len(recall) - 1 - int(np.flatnonzero(recall == 1)[-1])
    precision, recall = precision[::-1][1 : end + 1], recall[::-1][1 : end + 1]
    if len(recall) > _MOST_POINTS:
        chosen = np.unique(np.searchsorted(recall, np.linspace(0, 1, _MOST_POINTS)))
        precision, recall = precision[chosen], recall[chosen]
    return Curve(
        recall,
        precision,
        average_precision=float(average_precision_score(is_anomaly, score)),
        prevalence=float(is_anomaly.mean()),
    )
