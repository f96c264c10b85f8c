"""A score over the plane, as numbers that a small JSON can hold."""

from collections.abc import Callable
from typing import Any

import numpy as np

from eqsep.datasets import Split


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


def drawn_rows(split: Split) -> dict[str, Any]:
    """The rows of both parts with their kinds, to draw on the grid."""
    X = np.concatenate([split.X_train, split.X_test])
    kind = np.concatenate([split.kind_train, split.kind_test])
    return {"X": np.round(X, 3).tolist(), "kind": kind.tolist()}
