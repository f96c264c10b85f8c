"""Scores by kind: average precision, curves and histograms, each kind against all normal rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve
from sklearn.utils.validation import column_or_1d

from eqsep.errors import UserError
from eqsep.labels import is_missing

OVERALL = "overall"
_MOST_POINTS = 400  # of a curve: a picture shows no more
T = TypeVar("T")


@dataclass(frozen=True)
class Curve:
    """Precision and recall as the threshold falls, and the average precision."""

    recall: np.ndarray  #: (n_points,), from the highest threshold to the first that finds all.
    precision: np.ndarray  #: (n_points,)
    average_precision: float  #: Of all rows, however few points the curve has.
    prevalence: float  #: The precision of a random score.


@dataclass(frozen=True)
class ScoreHistogram:
    """How the scores of each kind are spread."""

    edges: np.ndarray  #: (n_bins + 1,), the same for all kinds.
    shares: dict[str, np.ndarray]  #: (n_bins,), of each kind's rows; the normal kind first.
    above: dict[str, float]  #: The share of the kind's rows above the threshold.
    threshold: float | None


def average_precision_by_kind(score: Any, kind: Any, *, normal: str = "normal") -> dict[str, float]:
    """Average precision of each kind of anomaly against all normal rows, and then "overall".

    Parameters
    ----------
    score : array-like of shape (n_rows,)
        Larger is more anomalous.
    kind : array-like of str of shape (n_rows,)
    normal : str, default="normal"
        The name of the normal kind.

    Examples
    --------
    >>> average_precision_by_kind([0.1, 0.5, 0.9, 0.3], ["normal", "normal", "scan", "flood"])
    {'flood': 0.5, 'scan': 1.0, 'overall': 0.8333333333333333}
    """
    return metric_by_kind(_average_precision, score, kind, normal=normal)


def precision_recall_by_kind(score: Any, kind: Any, *, normal: str = "normal") -> dict[str, Curve]:
    """The precision-recall curve of each kind, with the parameters of `average_precision_by_kind`.

    Examples
    --------
    >>> curves = precision_recall_by_kind([0.1, 0.5, 0.9, 0.3], ["normal", "normal", "a", "b"])
    >>> curves["a"].average_precision, curves["b"].precision.tolist()
    (1.0, [0.0, 0.5])
    """
    return metric_by_kind(_curve, score, kind, normal=normal)


def prevalence_by_kind(kind: Any, *, normal: str = "normal") -> dict[str, float]:
    """The share of each kind among its rows and the normal ones: what a random score gets.

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


def score_histogram(
    score: Any,
    kind: Any,
    *,
    normal: str = "normal",
    threshold: float | None = None,
    bins: int = 48,
) -> ScoreHistogram:
    """Count the scores of each kind in the same bins.

    Rows raise an alarm if their score is above the `threshold`. All rows may be normal.

    Examples
    --------
    >>> found = score_histogram([0, 1, 2, 4], ["normal"] * 3 + ["scan"], threshold=1.5, bins=2)
    >>> found.edges.tolist(), found.shares["scan"].tolist(), round(found.above["normal"], 2)
    ([0.0, 2.0, 4.0], [0.0, 1.0], 0.33)
    """
    score, kind = np.asarray(column_or_1d(score), dtype=float), np.asarray(column_or_1d(kind))
    shown = score if threshold is None else np.append(score, threshold)
    low, high = min(0.0, float(shown.min())), float(shown.max())
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    shares, above = {}, {}
    for name in (normal, *anomalous_kinds(kind, normal)):
        scores = score[kind == name]
        if len(scores):
            shares[str(name)] = np.histogram(scores, edges)[0] / len(scores)
            above[str(name)] = np.nan if threshold is None else float(np.mean(scores > threshold))
    return ScoreHistogram(edges, shares, above, threshold)


def anomalous_kinds(kind: np.ndarray, normal: Any) -> list[Any]:
    """The kinds of anomaly in order, names or numbers as they are."""
    return [name for name in np.unique(kind).tolist() if name != normal]


def check_kinds(kind: np.ndarray, *, normal: str) -> None:
    """Refuse missing kinds, and kinds that leave nothing to compare."""
    if missing := sum(map(is_missing, kind.tolist())):
        raise UserError(
            f"Expected the kind of every row, and {missing:,} of {len(kind):,} are missing. Leave "
            f"out rows of unknown kind: X[known], kind[known]."
        )
    found = np.unique(kind).tolist()
    if normal not in found:
        raise UserError(
            f"Expected rows of the normal kind {normal!r}, found only {found}. "
            f"Name the normal kind: normal=..."
        )
    if len(found) < 2:
        raise UserError(
            f"Expected anomalous rows as well as {normal!r}, found none. Add rows of some kind."
        )
    if OVERALL in found:
        raise UserError(
            f"No kind may be called {OVERALL!r}: it names the result of all kinds together. "
            f"Rename that kind."
        )


def checked_scores(score: Any, kind: Any, *, normal: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores and kinds as arrays, one of each for every row, with something to compare."""
    score, kind = np.asarray(column_or_1d(score), dtype=float), np.asarray(column_or_1d(kind))
    if len(score) != len(kind):
        raise UserError(
            f"Expected one score for each row: got {len(score)} scores and {len(kind)} kinds. "
            f"Score and name the same rows."
        )
    if not np.isfinite(score).all():
        raise UserError(
            f"Scores must be finite: {np.sum(~np.isfinite(score))} of {len(score)} are NaN or "
            f"infinite. Find the rows that the estimator could not score, or drop them."
        )
    check_kinds(kind, normal=normal)
    return score, kind


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
