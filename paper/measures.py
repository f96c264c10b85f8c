"""What is measured of scores: both areas under the precision-recall curve, and a heat map.

A protocol reads one of them: the paper's figures are trapezoidal areas, whatever they are called
in its text; the corrected protocol's are average precisions.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.metrics import auc, average_precision_score, precision_recall_curve

from eqsep.datasets import TrainTestSplit
from eqsep.evaluation import anomaly_score, average_precision_by_kind
from eqsep.evaluation.kinds import metric_by_kind
from paper.cells import seeds_of

METRICS = {"paper": "trapezoid", "corrected": "average precision"}


def key(protocol: str, kind: str) -> str:
    """The name under which the protocol's area of a kind is kept."""
    return f"{METRICS[protocol]}, {kind}"


def areas_of_normal(score: np.ndarray, y: np.ndarray, *, name: str = "normal") -> dict[str, float]:
    """Both areas with the *normal* class as positive, as in the paper's synthetic problems.

    Examples
    --------
    >>> areas_of_normal(np.array([0.1, 0.2, 0.9, 0.8]), np.array([0, 0, 1, 1]))
    {'trapezoid, normal': 1.0, 'average precision, normal': 1.0}
    """
    is_normal, normality = np.asarray(y) == 0, -np.asarray(score)
    return {
        key("paper", name): trapezoid_area(normality, is_anomaly=is_normal),
        key("corrected", name): float(average_precision_score(is_normal, normality)),
    }


def areas_over_draws(
    draw: Callable[..., TrainTestSplit], make: Callable[[int], Any], *, n_seeds: int
) -> dict[str, list[float]]:
    """`areas_of_normal` on the test rows of a problem drawn anew for each seed, one for each."""

    def areas(repetition: int) -> dict[str, float]:
        seeds = seeds_of(repetition)
        split = draw(random_state=seeds.data)
        model = make(seeds.model).fit(split.X_train, split.y_train)
        return areas_of_normal(anomaly_score(model, split.X_test), split.y_test)

    return by_seed(areas(i) for i in range(n_seeds))


def trapezoid_area(score: Any, *, is_anomaly: Any) -> float:
    """The trapezoidal area under the precision-recall curve.

    The straight line between two points of the curve lies above what can be reached, so this
    is far too kind where scores are tied: a *constant* score, which knows nothing, gets
    (1 + prevalence) / 2, where its average precision is the prevalence. Compare detectors by
    average precision.

    Examples
    --------
    >>> trapezoid_area([7.0, 7.0, 7.0, 7.0], is_anomaly=[0, 0, 0, 1])  # (1 + 0.25) / 2
    0.625
    """
    precision, recall, _ = precision_recall_curve(is_anomaly, score)
    return float(auc(recall, precision))


def trapezoid_by_kind(score: Any, kind: Any) -> dict[str, float]:
    """`trapezoid_area` of each kind against all normal rows, then of all together as "overall".

    Examples
    --------
    >>> trapezoid_by_kind([0.0, 0.0, 0.0, 0.0], ["normal", "normal", "normal", "scan"])
    {'scan': 0.625, 'overall': 0.625}
    """
    return metric_by_kind(trapezoid_area, score, kind)


def areas_by_kind(score: np.ndarray, kind: np.ndarray) -> dict[str, float]:
    """Both areas of each kind of anomaly against all normal rows, and of all together."""
    by_protocol = {"paper": trapezoid_by_kind, "corrected": average_precision_by_kind}
    return {
        key(protocol, name): area
        for protocol, by_kind in by_protocol.items()
        for name, area in by_kind(score, kind).items()
    }


def areas_in_training(score: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Both areas of the anomalies among the training rows."""
    is_anomaly = np.asarray(y) == 1
    return {
        key("paper", "train"): trapezoid_area(score, is_anomaly=is_anomaly),
        key("corrected", "train"): float(average_precision_score(is_anomaly, score)),
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


def score_grid(
    score: Callable[[np.ndarray], np.ndarray], *, low: float, high: float, size: int = 61
) -> dict[str, Any]:
    """The score on a square grid, to four digits.

    Examples
    --------
    >>> score_grid(lambda X: X[:, 0], low=0.0, high=1.0, size=2)
    {'low': 0.0, 'high': 1.0, 'score': [[0.0, 1.0], [0.0, 1.0]]}
    """
    xx0, xx1 = axes(low, high, size)
    values = np.asarray(score(np.column_stack([xx0.ravel(), xx1.ravel()])), dtype=float)
    rounded = [[float(f"{v:.4g}") for v in row] for row in values.reshape(xx0.shape)]
    return {"low": low, "high": high, "score": rounded}


def axes(low: float, high: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of the grid's points."""
    xx0, xx1 = np.meshgrid(*[np.linspace(low, high, size)] * 2)
    return xx0, xx1


def drawn_rows(split: TrainTestSplit) -> dict[str, Any]:
    """The rows of both parts with their kinds, to draw on the grid."""
    X = np.concatenate([split.X_train, split.X_test])
    kind = np.concatenate([split.kind_train, split.kind_test])
    return {"X": np.round(X, 3).tolist(), "kind": kind.tolist()}
