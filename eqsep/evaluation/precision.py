"""Average precision and precision-recall curves, kind by kind, beside what chance gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve
from sklearn.utils.validation import column_or_1d

from eqsep.evaluation.kinds import OVERALL, anomalous_kinds, check_kinds, checked_scores

_MOST_POINTS = 400  # of a curve: more cannot be told apart in a picture
T = TypeVar("T")


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


def average_precision_by_kind(score: Any, kind: Any, *, normal: str = "normal") -> dict[str, float]:
    """Average precision of each kind of anomaly against all normal rows, and of all together.

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
    dict
        The average precision of each kind in alphabetical order, then of all anomalies as
        "overall". A score that knows nothing gets the prevalence of the kind.

    Examples
    --------
    >>> average_precision_by_kind([0.1, 0.5, 0.9, 0.3], ["normal", "normal", "scan", "flood"])
    {'flood': 0.5, 'scan': 1.0, 'overall': 0.8333333333333333}
    """
    return metric_by_kind(_average_precision, score, kind, normal=normal)


def precision_recall_by_kind(score: Any, kind: Any, *, normal: str = "normal") -> dict[str, Curve]:
    """The precision-recall curve of each kind of anomaly against all normal rows.

    Parameters
    ----------
    score, kind, normal
        As in `average_precision_by_kind`.

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
    return metric_by_kind(_curve, score, kind, normal=normal)


def prevalence_by_kind(kind: Any, *, normal: str = "normal") -> dict[str, float]:
    """The share of each kind beside the normal rows: what a score that knows nothing gets.

    Takes kinds and returns what `average_precision_by_kind` would for a constant score.

    Examples
    --------
    >>> prevalence_by_kind(["normal", "normal", "normal", "scan", "flood"])
    {'flood': 0.25, 'scan': 0.25, 'overall': 0.4}
    """
    kind = np.asarray(column_or_1d(kind))
    check_kinds(kind, normal=normal)
    n_normal = int(np.sum(kind == normal))
    counts = {str(name): int(np.sum(kind == name)) for name in anomalous_kinds(kind, normal)}
    counts |= {OVERALL: len(kind) - n_normal}
    return {name: n / (n + n_normal) for name, n in counts.items()}


def metric_by_kind(
    metric: Callable[..., T], score: Any, kind: Any, *, normal: str = "normal"
) -> dict[str, T]:
    """metric(score, is_anomaly=...) of each kind against all normal rows, then of everything."""
    score, kind = checked_scores(score, kind, normal=normal)
    is_normal = kind == normal

    def against_normal(is_anomaly: np.ndarray) -> T:
        rows = is_normal | is_anomaly
        return metric(score[rows], is_anomaly=is_anomaly[rows])

    areas = {str(name): against_normal(kind == name) for name in anomalous_kinds(kind, normal)}
    return areas | {OVERALL: against_normal(~is_normal)}


def _average_precision(score: np.ndarray, *, is_anomaly: np.ndarray) -> float:
    return float(average_precision_score(is_anomaly, score))


def _curve(score: np.ndarray, *, is_anomaly: np.ndarray) -> Curve:
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
        average_precision=_average_precision(score, is_anomaly=is_anomaly),
        prevalence=float(is_anomaly.mean()),
    )
