"""Scores counted in bins, kind by kind."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from eqsep.evaluation.kinds import anomalous_kinds


@dataclass(frozen=True)
class ScoreHistogram:
    """How the scores of each kind are spread.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        The same for all kinds.
    shares : dict of str to ndarray of shape (n_bins,)
        The share of the kind's rows in each bin, the normal kind first.
    above : dict of str to float
        The share of the kind's rows above the threshold.
    threshold : float or None
    """

    edges: np.ndarray
    shares: dict[str, np.ndarray]
    above: dict[str, float]
    threshold: float | None


def score_histogram(
    score: Any,
    kind: Any,
    *,
    normal: str = "normal",
    threshold: float | None = None,
    bins: int = 48,
) -> ScoreHistogram:
    """Count the scores of each kind in the same bins.

    Parameters
    ----------
    score : array-like of shape (n_rows,)
    kind : array-like of str of shape (n_rows,)
        The normal kind may be all there is.
    threshold : float, default=None
        The score above which a row raises an alarm.

    Examples
    --------
    >>> found = score_histogram([0, 1, 2, 4], ["normal"] * 3 + ["scan"], threshold=1.5, bins=2)
    >>> found.edges.tolist(), found.shares["scan"].tolist(), round(found.above["normal"], 2)
    ([0.0, 2.0, 4.0], [0.0, 1.0], 0.33)
    """
    score, kind = np.asarray(column_or_1d(score), dtype=float), np.asarray(column_or_1d(kind))
    low = float(min(score.min(), score.min() if threshold is None else threshold))
    high = float(max(score.max(), score.max() if threshold is None else threshold))
    if low >= 0:
        low = 0.0
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    names = [n for n in (normal, *anomalous_kinds(kind, normal)) if (kind == n).any()]
    return ScoreHistogram(
        edges,
        {str(n): np.histogram(score[kind == n], edges)[0] / np.sum(kind == n) for n in names},
        {
            str(n): float("nan")
            if threshold is None
            else float(np.mean(score[kind == n] > threshold))
            for n in names
        },
        threshold,
    )
