"""What is measured of scores: both areas under the precision-recall curve, side by side.

A protocol reads one of them: the paper's figures are trapezoidal areas, whatever they are called
in its text; the corrected protocol's are average precisions.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from sklearn.metrics import average_precision_score

from eqsep.evaluation import average_precision_by_kind, trapezoid_area, trapezoid_by_kind

METRICS = {"paper": "trapezoid", "corrected": "average precision"}


def key(protocol: str, kind: str) -> str:
    """The name under which the protocol's area of a kind is kept."""
    return f"{METRICS[protocol]}, {kind}"


def areas_of_normal(score: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Both areas with the *normal* class as positive, as in the paper's synthetic problems.

    Examples
    --------
    >>> areas_of_normal(np.array([0.1, 0.2, 0.9, 0.8]), np.array([0, 0, 1, 1]))
    {'trapezoid, normal': 1.0, 'average precision, normal': 1.0}
    """
    is_normal, normality = np.asarray(y) == 0, -np.asarray(score)
    return {
        key("paper", "normal"): trapezoid_area(normality, is_anomaly=is_normal),
        key("corrected", "normal"): float(average_precision_score(is_normal, normality)),
    }


def areas_by_kind(score: np.ndarray, kind: np.ndarray) -> dict[str, float]:
    """Both areas of each kind of anomaly against all normal rows, and of all together."""
    by_protocol = {"paper": trapezoid_by_kind, "corrected": average_precision_by_kind}
    return {
        key(protocol, name): area
        for protocol, by_kind in by_protocol.items()
        for name, area in by_kind(score, kind).items()
    }


def by_seed(rows: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    """One list for each key, with a number for each seed.

    Examples
    --------
    >>> by_seed([{"a": 1.0}, {"a": 2.0}])
    {'a': [1.0, 2.0]}
    """
    rows = list(rows)
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def tied_at_the_top(scores: Iterable[np.ndarray]) -> list[float]:
    """Of each seed's scores, the share of the rows that have the highest one.

    The trapezoid flatters them: it takes the precision for 1 before the first row.

    Examples
    --------
    >>> tied_at_the_top([np.array([0.1, 0.9, 0.9, 0.2]), np.array([0.1, 0.9, 0.8, 0.2])])
    [0.5, 0.25]
    """
    return [float(np.mean(score == score.max())) for score in scores]
