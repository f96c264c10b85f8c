"""Columns that move together: how far a row is from the ellipsoid in which normal rows lie."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from eqsep.engine.loops import compiled, in_threads
from eqsep.engine.tails import Tail
from eqsep.schemas import NOT_NEGATIVE, Kept, bounded, kept

MOST_ROWS, MOST_COLUMNS, MOST_VALUES = 20_000, 1500, 10_000_000  # that are looked at
EDGE = 0.95  # the share of normal rows within the ellipsoid
_FULL_TRUST = 1.2  # R² / (1 - R²) from which on columns clearly move together
_GAUSSIAN = 0.33  # the tail of a sphere of Gaussian rows, times the root of its dimension
_HEAVY = 5.0  # times that: few rows, far out, have turned the axes
_ROWS_OF_AN_AXIS, _ROWS_IN_DOUBLE = 16, 512  # that a loop takes an axis for, or converts
SMALLEST = 1e-9  # of a distance, so that it has a logarithm
_CONSTANT = 1e-6  # deviations: a column that varies less does not vary


@dataclass(frozen=True, eq=False)
class Ellipsoid(Kept):
    """Normal rows by the mean and covariance of their columns, and what lies beyond them.

    With y the row in axes in which normal rows are uncorrelated and of variance 1, its distance is
    r = (mean of y_j⁴)^(1/4): unlike the Mahalanobis distance it is sensitive to a single axis. How
    rare it is follows from the other half of the rows, where an ellipsoid is learnt from one half.
    """

    centre: np.ndarray
    axes: np.ndarray  # from deviations from the centre to y; (n_columns, n_axes)
    tail: Tail  # of log r
    heaviness: float  # the tail of the rows themselves, relative to that of Gaussian ones
    trust: float  # how clearly columns move together, from 0 to 1

    SCHEMAS: ClassVar = {
        "centre": bounded("d", dtype="float64"),
        "axes": bounded("d", "r", dtype="float64"),
        "tail": kept(Tail),
        "heaviness": NOT_NEGATIVE,
        "trust": NOT_NEGATIVE,
    }

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        rng: np.random.RandomState,
        weight: np.ndarray | None = None,
    ) -> Self | None:
        """The ellipsoid of some normal rows; None if fewer than two columns vary, or too many.

        With R² the mean share of a column's variance that the others explain, the trust grows with
        R² / (1 - R²), less for a tail heavier than Gaussian.
        """
        most = min(MOST_ROWS, MOST_VALUES // max(rows.shape[1], 1))
        if len(rows) > most:
            some = rng.permutation(len(rows))[:most]
            rows, weight = rows[some], None if weight is None else weight[some]
        found = _axes(rows, weight)
        if found is None:
            return None
        centre, axes, explained = found
        distance = _distance(rows, centre, axes)
        edge = _quantile(distance, EDGE, weight)
        out = np.flatnonzero(distance > edge)
        if edge <= 0 or not len(out):
            return None
        beyond = np.log(distance[out] / edge)
        mean = max(float(np.average(beyond, weights=None if weight is None else weight[out])), 1e-3)
        heaviness = float(axes.shape[1] ** 0.5 * mean / _GAUSSIAN)
        return cls(
            centre=centre,
            axes=axes,
            tail=Tail.of(np.log(_of_other_half(rows, rng, weight, distance))[:, None]),
            heaviness=heaviness,
            trust=min(max(explained, 0.0) / _FULL_TRUST * min(1.0, 1 / heaviness), 1.0),
        )

    @property
    def is_heavy(self) -> bool:
        """Whether so many normal rows lie far out that a single axis means little."""
        return self.heaviness > _HEAVY


def _axes(
    rows: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """The centre and the axes of rows, and R² / (1 - R²); None if fewer than two columns vary."""
    rows = rows.astype(float)
    spread = _deviation(rows, weight) if len(rows) else np.zeros(rows.shape[1])
    varies = spread > _CONSTANT
    if not 2 <= varies.sum() <= MOST_COLUMNS:
        return None
    centre = np.average(rows, axis=0, weights=weight)
    covariance = _covariance((rows - centre)[:, varies] / spread[varies], weight)
    sizes, directions = np.linalg.eigh(covariance)
    sizes = np.maximum(sizes, sizes[-1] * 1e-9)
    axes = np.zeros((rows.shape[1], int(varies.sum())))
    axes[varies] = directions / np.sqrt(sizes) / spread[varies, None]
    unexplained = float(np.mean(1 / ((directions**2 / sizes).sum(axis=1))))
    return centre, axes, 1 / unexplained - 1


def _distance(rows: np.ndarray, centre: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """That of rows from an ellipsoid's centre, above 0."""
    every = np.arange(rows.shape[1])
    distance = distances(along(rows.astype(float), every, centre, axes))
    return np.asarray(np.maximum(distance, SMALLEST))


def _of_other_half(
    rows: np.ndarray, rng: np.random.RandomState, weight: np.ndarray | None, distance: np.ndarray
) -> np.ndarray:
    """The distances of half of the rows by the ellipsoid of the other half, or as they are."""
    order = rng.permutation(len(rows))
    one, other = order[: len(rows) // 2], order[len(rows) // 2 :]
    found = _axes(rows[one], None if weight is None else weight[one])
    return distance if found is None else _distance(rows[other], *found[:2])


def _deviation(rows: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    if weight is None:
        return np.asarray(rows.std(axis=0))
    centre = np.average(rows, axis=0, weights=weight)
    return np.asarray(np.sqrt(np.average((rows - centre) ** 2, axis=0, weights=weight)))


def _covariance(rows: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The covariance of centred rows by Ledoit and Wolf."""
    if weight is None:
        from sklearn.covariance import ledoit_wolf  # slow to import, and only a fit needs it

        return np.asarray(ledoit_wolf(rows)[0])
    n, n_columns = weight.sum(), rows.shape[1]
    raw = (rows * weight[:, None]).T @ rows / n
    mean, square = np.trace(raw) / n_columns, np.sum(raw**2)
    spread = square / n_columns - mean**2
    noise = (weight @ (rows**2).sum(axis=1) ** 2 / n - square) / (n_columns * n)
    shrinkage = min(max(noise, 0.0) / spread, 1.0) if spread > 0 else 0.0
    return np.asarray((1 - shrinkage) * raw + shrinkage * mean * np.eye(n_columns))


def _quantile(values: np.ndarray, share: float, weight: np.ndarray | None) -> float:
    """NumPy's quantile, linear between values, of weighted values."""
    if weight is None:
        return float(np.quantile(values, share))
    order = np.argsort(values, kind="stable")
    counted = np.cumsum(weight[order])
    place = max(share * (counted[-1] - 1), 0.0)
    below, part = int(place), place % 1
    at = np.searchsorted(counted, [below, below + 1], side="right")
    low, high = values[order][np.minimum(at, len(values) - 1)]
    return float(low + part * (high - low))


def along(
    rows: np.ndarray, columns: np.ndarray, centre: np.ndarray, axes: np.ndarray
) -> np.ndarray:
    """(rows[:, columns] - centre) @ axes, which no other row changes.  (n, d) -> (n, n_axes)"""
    y = np.zeros((len(rows), axes.shape[1]))

    def fill(some: slice) -> None:
        exact = np.ascontiguousarray(rows[some], dtype=np.float64)
        _add_products(exact, columns, centre, axes, y[some])

    in_threads(fill, len(rows), steps=y.size * len(columns), most=_ROWS_IN_DOUBLE)
    return y


@compiled
def _add_products(X: Any, places: Any, centre: Any, axes: Any, y: Any) -> None:
    n = X.shape[0]
    for first in range(0, n, _ROWS_OF_AN_AXIS):
        last = min(first + _ROWS_OF_AN_AXIS, n)
        for j in range(places.shape[0]):
            for i in range(first, last):
                x = X[i, places[j]] - centre[j]
                for k in range(y.shape[1]):
                    y[i, k] += x * axes[j, k]


def distances(y: np.ndarray) -> np.ndarray:
    """(mean of y_j⁴)^(1/4) of each row.  (n, n_axes) -> (n,)"""
    fourth = np.square(y)
    np.square(fourth, out=fourth)
    return np.asarray((np.add.reduce(fourth, axis=1) / y.shape[1]) ** 0.25)
