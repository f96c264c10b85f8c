"""Fitting hyperplanes: comparable columns, distances, starts, the search, the margin's width."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from eqsep.activations import Head
from eqsep.losses import Loss, objective
from eqsep.solvers import BFGS, LBFGS, Goal, Solution

SCREENED_ROWS = 10_000
DENSE_WEIGHTS = 100
CLOSED_FORM_STARTS = 2
Starts = list[np.ndarray]  # for each side, (j, d)
_LARGEST_DISTANCE = np.finfo(np.float64).max / 4  # so that differences stay finite


@dataclass(frozen=True)
class Frame:
    """An affine change of columns, x -> (x - centre) / scale, and planes back and forth."""

    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def identity(cls, d: int) -> Self:
        """The columns as they are."""
        return cls(np.zeros(d), np.ones(d))

    @classmethod
    def standard(cls, X: np.ndarray, weight: np.ndarray, *, keep_constant: bool = False) -> Self:
        """Mean 0 and variance 1 in all columns that vary; others count if `keep_constant`."""
        size = np.maximum(np.abs(X).max(axis=0), np.finfo(np.float64).tiny)
        unit = X / size
        mean = weight @ unit
        deviation = np.sqrt(weight @ (unit - mean) ** 2)
        constant = np.maximum(size, 1.0) if keep_constant else np.inf
        return cls(mean * size, np.where(deviation > 1e-12, deviation * size, constant))

    def columns(self, X: np.ndarray) -> np.ndarray:
        """The rows in this frame.  (n, d) -> (n, d)"""
        return X / self.scale - self.centre / self.scale

    def rows(self, X: np.ndarray) -> np.ndarray:
        """The rows in this frame with a column of ones for the bias.  (n, d) -> (n, d + 1)"""
        return np.column_stack([self.columns(X), np.ones(len(X))])

    def plane(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """The plane `w` of this frame in the columns as they are: coefficients and intercept."""
        coef = w[:-1] / self.scale
        return coef, float(w[-1] - (w[:-1] / self.scale) @ self.centre)


def signed_distance(X: np.ndarray, coef: np.ndarray, intercept: float) -> np.ndarray:
    """w·x + b, without overflow on the way: rows of huge numbers are scaled down first."""
    scale = np.abs(X).max(axis=1)
    scale = np.where(scale > 1e100, scale, 1.0)
    with np.errstate(over="ignore"):
        z = scale * ((X / scale[:, None]) @ coef + intercept / scale)
    return np.clip(z, -_LARGEST_DISTANCE, _LARGEST_DISTANCE)


def distance(X: np.ndarray, coef: np.ndarray, intercept: float) -> np.ndarray:
    """|w·x + b| / ||w||, whatever the scale of the columns; never more than a finite bound."""
    size = max(float(np.abs(coef).max()), np.finfo(np.float64).tiny)
    length = max(float(np.linalg.norm(coef / size)), np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        far = np.abs(signed_distance(X, coef, intercept)) / length / size
    return np.minimum(far, _LARGEST_DISTANCE)


def closed_form_starts(
    rows: np.ndarray, inside: np.ndarray, weight: np.ndarray, *, reach: float
) -> np.ndarray:
    """Planes of the least ratio of both classes' mean squared distances, the other `reach` away."""
    d = rows.shape[1]
    share = np.where(inside, weight, 0.0)
    near = (rows * share[:, None]).T @ rows / share.sum()
    rest = weight - share
    far = (rows * rest[:, None]).T @ rows / rest.sum()
    ground = 1e-3 * np.eye(d)  # so that the planes stay the same up to rounding where rows are few
    first = (0, min(CLOSED_FORM_STARTS, d) - 1)
    _, vectors = scipy.linalg.eigh(near + ground, far + ground, subset_by_index=first)
    planes = vectors.T
    spread = np.sqrt(np.maximum(0, np.einsum("kd,de,ke->k", planes, far, planes)))
    return planes * (reach / np.maximum(spread, 1e-12))[:, None]


def plane_beyond(rows: np.ndarray, *, reach: float) -> np.ndarray:
    """A plane that meets none of the rows, all of which lie at least `reach` on one side of it."""
    low, span = rows[:, :-1].min(axis=0), np.ptp(rows[:, :-1], axis=0)
    widest = int(np.argmax(span))
    w = np.zeros(rows.shape[1])
    w[widest] = reach / span[widest] if span[widest] > 0 else 0.0
    w[-1] = reach - w[widest] * low[widest]
    return w


def plane_through(rows: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The plane nearest to `w` among those through all `rows`; `w` itself if there is none."""
    _, sizes, axes = np.linalg.svd(np.linalg.qr(rows, mode="r"), full_matrices=True)
    sizes = np.concatenate([sizes, np.zeros(len(axes) - len(sizes))])
    free = axes[sizes <= 1e-10 * sizes[0]]
    nearest = (free @ w) @ free
    return nearest if np.linalg.norm(nearest[:-1]) > 1e-6 * np.linalg.norm(w) else w


def least_error_width(distance: np.ndarray, *, inside: np.ndarray, weight: np.ndarray) -> float:
    """The half-width with the least training error, in the middle of its widest gap."""
    order = np.argsort(distance)
    edges = np.concatenate([[0.0], distance[order], [2 * distance[order[-1]]]])
    lost = np.where(inside, weight, 0.0)[order]
    held = np.where(inside, 0.0, weight)[order]
    error = lost.sum() + np.concatenate([[0.0], np.cumsum(held - lost)])
    gap = np.diff(edges)
    widest = int(np.argmax(np.where(error <= error[gap > 0].min() + 1e-12, gap, -1.0)))
    return float((edges[widest] + edges[widest + 1]) / 2)


def warn_unless_converged(found: Solution, best: int) -> None:
    """Say how far the best start got, if it stopped before it arrived."""
    if not found.converged[best]:
        warnings.warn(
            f"The search stopped after {found.n_iter[best]} iterations with a gradient of "
            f"{found.gradient_norm[best]:.1e}. Raise alpha, or allow more: "
            f"solver=LBFGS(max_iter=...).",
            ConvergenceWarning,
            stacklevel=3,
        )


@dataclass(frozen=True)
class Search:
    """Minimise the loss from many starts as one batch, whichever class each puts in the margin."""

    head: Head
    loss: Loss
    alpha: float
    solver: BFGS | LBFGS | None
    n_biases: int = 1  # the last weights of a start, which the penalty leaves alone

    def run(
        self, rows: np.ndarray, targets: np.ndarray, weight: np.ndarray, starts: Starts, *, rng: Any
    ) -> tuple[Solution, np.ndarray]:
        """Where the starts arrive, and the side of each: `starts[s]` go with `targets[:, s]`.

        Beyond `SCREENED_ROWS` rows, all starts run on a sample of that size, and only the best
        of each side on all rows.
        """
        if len(rows) > SCREENED_ROWS:
            some = np.sort(rng.choice(len(rows), SCREENED_ROWS, replace=False))
            share = weight[some] / weight[some].sum()
            found, side = self._minimise(rows[some], targets[some], share, starts)
            values = [np.where(side == s, found.value, np.inf) for s in range(len(starts))]
            starts = [found.weights[[int(np.argmin(value))]] for value in values]
        return self._minimise(rows, targets, weight, starts)

    def at(
        self, rows: np.ndarray, targets: np.ndarray, weight: np.ndarray, w: np.ndarray
    ) -> tuple[Solution, np.ndarray]:
        """The loss of the plane `w` with each side in the margin, without a search."""
        side = np.arange(targets.shape[1])
        weights = np.tile(w, (len(side), 1))
        value, gradient = self._goal(rows, targets, weight)(weights, side)
        solution = Solution(
            weights=weights,
            value=value,
            gradient_norm=np.abs(gradient).max(axis=1),
            converged=np.isfinite(value),
            n_iter=np.zeros(len(side), int),
        )
        return solution, side

    def _minimise(
        self, rows: np.ndarray, targets: np.ndarray, weight: np.ndarray, starts: Starts
    ) -> tuple[Solution, np.ndarray]:
        solver = self.solver or (BFGS() if rows.shape[1] <= DENSE_WEIGHTS else LBFGS())
        side = np.repeat(np.arange(len(starts)), [len(s) for s in starts])
        goal = self._goal(rows, targets[:, side], weight)
        return solver.minimise(goal, np.concatenate(starts)), side

    def _goal(self, rows: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> Goal:
        penalty = np.full(rows.shape[1], self.alpha)
        penalty[-self.n_biases :] = 0
        return objective(rows, targets, weight, head=self.head, loss=self.loss, alpha=penalty)
