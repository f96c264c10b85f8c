"""Average precision, kind by kind, beside what chance gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score
from sklearn.utils.validation import column_or_1d

from eqsep.evaluation.kinds import OVERALL, anomalous_kinds, check_kinds, checked_scores


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
    metric: Callable[..., float], score: Any, kind: Any, *, normal: str = "normal"
) -> dict[str, float]:
    """metric(score, is_anomaly=...) of each kind against all normal rows, then of everything."""
    score, kind = checked_scores(score, kind, normal=normal)
    is_normal = kind == normal

    def against_normal(is_anomaly: np.ndarray) -> float:
        rows = is_normal | is_anomaly
        return metric(score[rows], is_anomaly=is_anomaly[rows])

    areas = {str(name): against_normal(kind == name) for name in anomalous_kinds(kind, normal)}
    return areas | {OVERALL: against_normal(~is_normal)}


def _average_precision(score: np.ndarray, *, is_anomaly: np.ndarray) -> float:
    return float(average_precision_score(is_anomaly, score))
