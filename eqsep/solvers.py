"""Quasi-Newton minimisers that take many starts as one batch.

A goal maps weights (j, d) and the indices (j,) of their problems to values (j,) and gradients
(j, d), so one matrix product serves every start; starts that have converged drop out of it.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

Goal = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Solution:
    """Where each of k starts arrived."""

    weights: np.ndarray
    value: np.ndarray
    gradient_norm: np.ndarray  # the largest component of the gradient, in size
    converged: np.ndarray  # the gradient, or the decrease of the value, is below the tolerance
    n_iter: np.ndarray

    @property
    def best(self) -> int:
        """The start that arrived lowest: the first of them where several tie, to 1e-6."""
        lowest = np.nanmin(self.value)
        return int(np.argmax(self.value <= lowest + 1e-6 * max(1.0, abs(lowest))))


def _curvature(s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """1 / s·y, or 0 where the pair shows no convex curvature."""
    sy, yy = np.einsum("jd,jd->j", s, y), np.einsum("jd,jd->j", y, y)
    useful = sy > 1e-12 * yy
    return np.where(useful, 1 / np.where(useful, sy, 1), 0)


# What a quasi-Newton method knows of the curvature: `direction` gives -H g, row by row, `learn`
# takes in a step s and the change of gradient y along it, and `keep` forgets all starts but `rows`.
class _DenseMemory:
    """The inverse Hessian itself, (j, d, d)."""

    def __init__(self, k: int, d: int) -> None:
        self._inverse = np.zeros((k, d, d)) + np.eye(d)
        self._is_new = np.ones(k, dtype=bool)

    def direction(self, g: np.ndarray) -> np.ndarray:
        return -(self._inverse @ g[:, :, None])[:, :, 0]

    def learn(self, s: np.ndarray, y: np.ndarray) -> None:
        rho = _curvature(s, y)
        first = self._is_new & (rho > 0)
        if first.any():
            scale = 1 / (rho[first] * np.einsum("jd,jd->j", y[first], y[first]))
            self._inverse[first] *= scale[:, None, None]
            self._is_new &= ~first
        Hy = (self._inverse @ y[:, :, None])[:, :, 0]
        stretch = rho * (1 + rho * np.einsum("jd,jd->j", y, Hy))
        half = (stretch / 2)[:, None] * s - rho[:, None] * Hy
        outer = s[:, :, None] * half[:, None, :]
        self._inverse += outer
        self._inverse += outer.transpose(0, 2, 1)

    def keep(self, rows: np.ndarray) -> None:
        self._inverse, self._is_new = self._inverse[rows], self._is_new[rows]


class _LimitedMemory:
    """The last few steps and changes of gradient, (m, j, d): the two-loop recursion."""

    def __init__(self, memory: int) -> None:
        self._pairs: deque[tuple[np.ndarray, np.ndarray, np.ndarray]] = deque(maxlen=memory)

    def direction(self, g: np.ndarray) -> np.ndarray:
        q, pulls, scale = -g, [], np.ones(len(g))
        for s, y, rho in reversed(self._pairs):
            pull = rho * np.einsum("jd,jd->j", s, q)
            q = q - pull[:, None] * y
            pulls.append(pull)
        for _, y, rho in self._pairs:
            yy = np.einsum("jd,jd->j", y, y)
            scale = np.where(rho > 0, 1 / np.where(rho > 0, rho * yy, 1), scale)
        q = scale[:, None] * q
        for (s, y, rho), pull in zip(self._pairs, reversed(pulls), strict=True):
            q = q + (pull - rho * np.einsum("jd,jd->j", y, q))[:, None] * s
        return q

    def learn(self, s: np.ndarray, y: np.ndarray) -> None:
        self._pairs.append((s, y, _curvature(s, y)))

    def keep(self, rows: np.ndarray) -> None:
        kept = [(s[rows], y[rows], rho[rows]) for s, y, rho in self._pairs]
        self._pairs = deque(kept, maxlen=self._pairs.maxlen)


class _QuasiNewton(BaseEstimator, ABC):
    """The loop that BFGS and L-BFGS share: direction, line search, learn, drop what is done."""

    armijo: ClassVar[float] = 1e-4
    curvature: ClassVar[float] = 0.9
    max_trials: ClassVar[int] = 40
    max_iter: int
    tol: float

    @abstractmethod
    def _remember(self, k: int, d: int) -> _DenseMemory | _LimitedMemory:
        """A memory for k starts in d dimensions."""

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def minimise(self, goal: Goal, starts: np.ndarray) -> Solution:
        """Follow `goal` downhill from each row of `starts`, of shape (k, d)."""
        W = np.array(starts, dtype=np.float64)
        k, d = W.shape
        rows, memory = np.arange(k), self._remember(k, d)
        f, g = goal(W, rows)
        weights, value, size = W.copy(), f.copy(), np.abs(g).max(axis=1)
        converged, steps = size <= self.tol, np.zeros(k, dtype=int)
        going = ~converged & np.isfinite(f)
        for n_iter in range(1, self.max_iter + 1):
            if not going.all():
                rows, W, f, g = rows[going], W[going], f[going], g[going]
                memory.keep(going)
            if not len(rows):
                break
            p = memory.direction(g)
            uphill = np.einsum("jd,jd->j", p, g) >= 0
            p[uphill] = -g[uphill]
            if n_iter == 1:
                p /= np.maximum(1, np.abs(g).sum(axis=1))[:, None]
            step, f_new, g_new = self._search(partial(_along, goal, W, p, rows), f, g, p)
            memory.learn(step[:, None] * p, g_new - g)
            still = f - f_new <= 1e-3 * self.tol * np.maximum(1, np.abs(f_new))
            W, f, g = W + step[:, None] * p, f_new, g_new
            weights[rows], value[rows], steps[rows] = W, f, n_iter
            size[rows] = np.abs(g).max(axis=1)
            converged[rows] = still | (size[rows] <= self.tol)
            going = ~converged[rows] & np.isfinite(f)
        arrived = converged & np.isfinite(value)
        return Solution(
            weights=weights, value=value, gradient_norm=size, converged=arrived, n_iter=steps
        )

    def _search(
        self, along: Goal, f: np.ndarray, g: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps along p that meet the weak Wolfe conditions, by bisection (0 where none does)."""
        k, descent = len(f), np.einsum("jd,jd->j", p, g)
        low, high, t = np.zeros(k), np.full(k, np.inf), np.ones(k)
        step, f_step, g_step = np.zeros(k), f.copy(), g.copy()
        todo = np.arange(k)
        for _ in range(self.max_trials):
            f_t, g_t = along(t[todo], todo)
            falls = f_t <= f[todo] + self.armijo * t[todo] * descent[todo]
            bends = np.einsum("jd,jd->j", g_t, p[todo]) >= self.curvature * descent[todo]
            good = todo[falls]
            step[good], f_step[good], g_step[good] = t[good], f_t[falls], g_t[falls]
            low[good], high[todo[~falls]] = t[good], t[todo[~falls]]
            todo = todo[~(falls & bends)]
            if not len(todo):
                break
            t[todo] = np.where(np.isinf(high[todo]), 2 * t[todo], (low[todo] + high[todo]) / 2)
        return step, f_step, g_step


def _along(
    goal: Goal, W: np.ndarray, p: np.ndarray, rows: np.ndarray, t: np.ndarray, todo: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The goal at W + t p, for the starts `todo` of those under way."""
    return goal(W[todo] + t[:, None] * p[todo], rows[todo])


@dataclass
class BFGS(_QuasiNewton):
    """Broyden-Fletcher-Goldfarb-Shanno with the whole inverse Hessian: for up to some 100 weights.

    >>> import numpy as np
    >>> def bowl(W, problems):
    ...     return ((W - 3) ** 2).sum(axis=1), 2 * (W - 3)
    >>> BFGS().minimise(bowl, np.zeros((2, 3))).weights.round(6)
    array([[3., 3., 3.],
           [3., 3., 3.]])
    """

    max_iter: int = 1000
    tol: float = 1e-6

    def _remember(self, k: int, d: int) -> _DenseMemory:
        return _DenseMemory(k, d)


@dataclass
class LBFGS(_QuasiNewton):
    """BFGS with the last `memory` steps in place of the inverse Hessian: for many weights."""

    max_iter: int = 1000
    tol: float = 1e-6
    memory: int = 10

    def _remember(self, k: int, d: int) -> _LimitedMemory:  # noqa: ARG002  it grows with the steps
        return _LimitedMemory(self.memory)
