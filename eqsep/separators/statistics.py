"""The sums from which a closed separator is solved: they add up over pieces of the data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg

from eqsep.arrays import is_foreign, namespace
from eqsep.kernels import Kernel


@dataclass(frozen=True)
class Statistics:
    """G = Σ w k kᵀ and r = Σ w t k of rows with kernel values k, weight w and target t.

    Attributes
    ----------
    gram : array of shape (n_landmarks, n_landmarks)
        G, in double precision.
    moment : array of shape (n_landmarks,)
        r, in double precision.
    weight : ndarray of shape (2,)
        The weight of the normal rows, then that of the anomalous ones.
    """

    gram: Any
    moment: Any
    weight: np.ndarray

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.gram + other.gram, self.moment + other.moment, self.weight + other.weight
        )

    def __sub__(self, other: Self) -> Self:
        return type(self)(
            self.gram - other.gram,
            self.moment - other.moment,
            np.maximum(0.0, self.weight - other.weight),
        )

    def solve(self, alpha: float) -> Any:
        """The a that minimises Σ w (a·k - t)² + alpha ||a||²: (G + alpha I) a = r.

        By Cholesky; where rounding or alpha = 0 leaves the matrix without full rank, the shortest
        least-squares solution.
        """
        xp = namespace(self.gram)
        matrix = self.gram + alpha * xp.eye(
            self.gram.shape[0], dtype=self.gram.dtype, device=self.gram.device
        )
        try:
            return _cholesky_solve(matrix, self.moment)
        except (np.linalg.LinAlgError, RuntimeError):  # torch's LinAlgError is a RuntimeError
            sizes, axes = xp.linalg.eigh(matrix)
            floor = sizes.shape[0] * float(xp.finfo(sizes.dtype).eps) * xp.max(xp.abs(sizes))
            kept = sizes > floor
            inverse = xp.where(kept, 1 / xp.where(kept, sizes, 1.0), 0.0)
            return axes @ (inverse * (axes.T @ self.moment))


def _cholesky_solve(matrix: Any, moment: Any) -> Any:
    if is_foreign(matrix):
        xp = namespace(matrix)
        factor = xp.linalg.cholesky(matrix)
        half = xp.linalg.solve(factor, moment[:, None])
        return xp.linalg.solve(factor.T, half)[:, 0]
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix, overwrite_a=True), moment)


@dataclass(frozen=True)
class KernelMap:
    """Rows as their kernel values at the landmarks, some at a time.

    Attributes
    ----------
    kernel : Kernel
    landmarks : array of shape (n_landmarks, n_features)
    chunk_size : int
        The most rows held as kernel values at once.
    """

    kernel: Kernel
    landmarks: Any
    chunk_size: int

    def chunks(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """Slices of the rows, each with its kernel values (rows, n_landmarks)."""
        xp = namespace(X, self.landmarks)
        for start in range(0, X.shape[0], self.chunk_size):
            rows = slice(start, min(start + self.chunk_size, X.shape[0]))
            yield (
                rows,
                self.kernel(
                    xp.astype(X[rows, :], self.landmarks.dtype, copy=False), self.landmarks
                ),
            )

    def features(self, X: Any) -> Any:
        """All kernel values at once.  (n, d) -> (n, n_landmarks)"""
        return namespace(X).concat([k for _, k in self.chunks(X)], axis=0)

    def combine(self, X: Any, coef: Any) -> Any:
        """f(x) = Σ_j a_j k(x, c_j) for each row.  (n, d) -> (n,)"""
        xp = namespace(X)
        coef = xp.astype(coef, self.landmarks.dtype, copy=False)
        return xp.concat([k @ coef for _, k in self.chunks(X)], axis=0)

    def statistics(
        self, X: Any, is_anomaly: np.ndarray, weight: np.ndarray, *, target: float
    ) -> Statistics:
        """The sums over the rows: target 1 for a normal row, `target` for an anomalous one."""
        xp, m = namespace(X), self.landmarks.shape[0]
        double = {"dtype": xp.float64, "device": X.device}
        root = xp.asarray(np.sqrt(weight), **double)[:, None]
        pull = xp.asarray(np.sqrt(weight) * np.where(is_anomaly == 1, target, 1.0), **double)
        gram, moment = xp.zeros((m, m), **double), xp.zeros(m, **double)
        for rows, values in self.chunks(X):
            k = root[rows, :] * xp.astype(values, xp.float64, copy=False)
            gram += k.T @ k
            moment += k.T @ pull[rows]
        share = weight * is_anomaly
        return Statistics(gram, moment, np.array([weight.sum() - share.sum(), share.sum()]))
