"""The one-class SVM where the library's takes hours: many rows, a smooth kernel and a large nu.

Its dual problem, with a box and one equality, is solved by an interior-point method. Each step
factorises a matrix as wide as the rank of the kernel matrix, which is about 3,000 for the 113,279
rows of NSL-KDD, and not one as wide as the rows.
"""

from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.metrics.pairwise import rbf_kernel

_BLOCK = 16  # pivots that are looked for at once
_STEPS = 200  # of the interior-point method, at most: thirty do
_TO_BOUND = 0.995  # of the way to the next bound
_CHUNK = 1_000  # rows that are scored at once


def low_rank(X: np.ndarray, *, gamma: float, tol: float) -> np.ndarray:
    """L of shape (n, rank) with 0 <= (K - L L')_ii <= tol, by pivoted Cholesky decomposition."""
    left = np.ones(len(X))  # what the diagonal of K has more than that of L L'
    blocks: list[np.ndarray] = []
    while left.max() > tol:
        near = np.argpartition(left, -_BLOCK)[-_BLOCK:]
        rest = rbf_kernel(X, X[near], gamma=gamma)
        for block in blocks:
            rest -= block @ block[near].T
        least, columns = max(tol, 0.1 * left.max()), list[np.ndarray]()
        while left[near].max() > least:
            pivot = int(np.argmax(left[near]))
            columns.append(rest[:, pivot] / np.sqrt(rest[near[pivot], pivot]))
            rest -= np.outer(columns[-1], columns[-1][near])
            left -= columns[-1] ** 2
        blocks.append(np.column_stack(columns))
    return np.hstack(blocks)


def box_dual(factor: np.ndarray, *, nu: float, tol: float) -> tuple[np.ndarray, float]:
    """The weights a that minimise |L' a|² / 2 with 0 <= a <= 1 and the sum nu n, by Mehrotra.

    With them comes rho, the multiplier of the sum: the score at which a row is on the boundary.
    """
    n, rank = factor.shape
    a, room = np.full(n, nu), np.full(n, 1 - nu)
    gradient = factor @ (factor.T @ a)
    rho = float(gradient.mean())
    # multipliers of a >= 0 and of a <= 1
    low = np.maximum(gradient - rho, 0) + gradient.std()
    high = np.maximum(rho - gradient, 0) + gradient.std()
    for _ in range(_STEPS):
        gap = (a @ low + room @ high) / (2 * n)
        if gap <= tol * nu * abs(rho):  # of what the primal and the dual objective sum to
            return a, rho
        off = factor @ (factor.T @ a) - rho - low + high
        weight = 1 / (low / a + high / room)
        inner = cho_factor(np.eye(rank) + factor.T @ (factor * weight[:, None]))

        def solved(b: np.ndarray) -> np.ndarray:
            scaled = weight * b  # noqa: B023  used within the step
            return scaled - weight * (factor @ cho_solve(inner, factor.T @ scaled))  # noqa: B023

        flat = solved(np.ones(n))

        def step(to_low: np.ndarray, to_high: np.ndarray) -> tuple[np.ndarray, ...]:
            toward = solved(to_low / a - to_high / room - off)  # noqa: B023
            d_rho = (nu * n - a.sum() - toward.sum()) / flat.sum()  # noqa: B023
            d_a = toward + d_rho * flat  # noqa: B023
            return d_a, (to_low - low * d_a) / a, (to_high + high * d_a) / room, d_rho  # noqa: B023

        d_a, d_low, d_high, d_rho = step(-a * low, -room * high)
        far = _step_to_bound((a, d_a), (room, -d_a), (low, d_low), (high, d_high))
        then = (a + far * d_a) @ (low + far * d_low) + (room - far * d_a) @ (high + far * d_high)
        aim = gap * (then / (2 * n * gap)) ** 3
        d_a, d_low, d_high, d_rho = step(
            aim - a * low - d_a * d_low, aim - room * high + d_a * d_high
        )
        far = _TO_BOUND * _step_to_bound((a, d_a), (room, -d_a), (low, d_low), (high, d_high))
        a, room, rho = a + far * d_a, room - far * d_a, rho + float(far * d_rho)
        low, high = low + far * d_low, high + far * d_high
    raise ArithmeticError(f"The one-class SVM is not solved after {_STEPS} steps: gap {gap:g}.")


def _step_to_bound(*moves: tuple[np.ndarray, np.ndarray]) -> float:
    """How far all values can move until one is zero; 1 at most."""
    return min(1.0, *(float(np.min(-x[d < 0] / d[d < 0], initial=1.0)) for x, d in moves))


class LowRankOneClassSVM(OutlierMixin, BaseEstimator):
    """scikit-learn's `OneClassSVM` with an RBF kernel, for many rows and a large `nu`.

    Examples
    --------
    >>> from sklearn.svm import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> ours = LowRankOneClassSVM(nu=0.4).fit(X).score_samples(X)
    >>> bool(np.allclose(ours, OneClassSVM(nu=0.4, tol=1e-6).fit(X).score_samples(X), atol=1e-3))
    True
    """

    def __init__(self, *, nu: float = 0.5) -> None:
        self.nu = nu

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  the signature of an estimator
        """Solve the dual problem; gamma is 1 / (columns x variance)."""
        X = np.asarray(X, dtype=float)
        self.gamma_ = 1 / (X.shape[1] * X.var())
        factor = low_rank(X, gamma=self.gamma_, tol=1e-3)
        weights, self.offset_ = box_dual(factor, nu=self.nu, tol=1e-9)
        used = weights > 1e-6
        self.rows_, self.dual_coef_ = X[used], weights[used]
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """The weighted sum of kernel values, larger for the more normal."""
        X = np.asarray(X, dtype=float)
        chunks = (X[start : start + _CHUNK] for start in range(0, len(X), _CHUNK))
        sums = [rbf_kernel(x, self.rows_, gamma=self.gamma_) @ self.dual_coef_ for x in chunks]
        return np.concatenate(sums)

    def decision_function(self, X: Any) -> np.ndarray:
        """The same, with 0 on the boundary."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 inside the boundary, -1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
