"""The sums from which a closed separator is solved: they add up over pieces of the data."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.linalg

from eqsep.arrays import device, is_foreign, namespace
from eqsep.kernels import Kernel

SCORED_AT_ONCE = 256  # rows whose kernel values stay in the processor's cache


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
        xp, gram = namespace(self.gram), self.gram
        matrix = gram + alpha * xp.eye(gram.shape[0], dtype=gram.dtype, device=device(gram))
        try:
            factor = xp.linalg.cholesky(matrix)
        except (np.linalg.LinAlgError, RuntimeError):  # torch's LinAlgError is a RuntimeError
            return _shortest_solution(matrix, self.moment)
        pivots = xp.linalg.diagonal(factor)
        if float(xp.min(pivots) / xp.max(pivots)) ** 2 < _rounding(matrix):
            return _shortest_solution(matrix, self.moment)
        return _substituted(factor, self.moment)


def _rounding(matrix: Any) -> float:
    """The size, relative to the matrix, below which an eigenvalue is rounding."""
    return matrix.shape[0] * float(namespace(matrix).finfo(matrix.dtype).eps)


def _substituted(factor: Any, moment: Any) -> Any:
    """The a with L Lᵀ a = r, for a lower triangular L."""
    if is_foreign(factor):
        xp = namespace(factor)
        return xp.linalg.solve(factor.T, xp.linalg.solve(factor, moment[:, None]))[:, 0]
    return scipy.linalg.cho_solve((factor, True), moment)


def _shortest_solution(matrix: Any, moment: Any) -> Any:
    """The least-squares solution of least length, through the eigenvalues that are not rounding."""
    xp = namespace(matrix)
    sizes, axes = xp.linalg.eigh(matrix)
    kept = sizes > _rounding(matrix) * xp.max(xp.abs(sizes))
    inverse = xp.where(kept, 1 / xp.where(kept, sizes, xp.ones_like(sizes)), xp.zeros_like(sizes))
    return axes @ (inverse * (axes.T @ moment))


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

    def chunks(self, X: Any, *, most: int) -> Iterator[tuple[slice, Any]]:
        """Slices of at most `most` rows, each with its kernel values (rows, n_landmarks)."""
        xp, values, size = namespace(X), self.kernel.at(self.landmarks), min(most, self.chunk_size)
        for start in range(0, X.shape[0], size):
            rows = slice(start, min(start + size, X.shape[0]))
            with np.errstate(over="ignore"):  # what is too large for the landmarks is far from them
                piece = xp.astype(X[rows, :], self.landmarks.dtype, copy=False)
            yield rows, values(piece)

    def features(self, X: Any) -> Any:
        """All kernel values at once.  (n, d) -> (n, n_landmarks)"""
        return namespace(X).concat([k for _, k in self.chunks(X, most=X.shape[0])], axis=0)

    def combine(self, X: Any, coef: Any) -> Any:
        """f(x) = Σ_j a_j k(x, c_j) for each row.  (n, d) -> (n,)"""
        xp = namespace(X)
        coef = xp.astype(coef, self.landmarks.dtype, copy=False)
        return xp.concat([k @ coef for _, k in self.chunks(X, most=SCORED_AT_ONCE)], axis=0)

    def statistics(
        self, X: Any, is_anomaly: np.ndarray, weight: np.ndarray, *, target: float
    ) -> Statistics:
        """The sums over the rows: target 1 for a normal row, `target` for an anomalous one.

        Kernel values, products and sums are all in double precision, whatever that of the rows:
        in single precision the sums of two pieces would not be those of the whole.
        """
        xp, m = namespace(X), self.landmarks.shape[0]
        double = {"dtype": xp.float64, "device": device(X)}
        exact = replace(self, landmarks=xp.astype(self.landmarks, xp.float64, copy=False))
        root = xp.asarray(np.sqrt(weight)[:, None], **double)
        pull = xp.asarray(np.sqrt(weight) * np.where(is_anomaly == 1, target, 1.0), **double)
        gram, moment = xp.zeros((m, m), **double), xp.zeros(m, **double)
        weighted = bool((weight != 1).any())
        for rows, k in exact.chunks(X, most=X.shape[0]):
            k = root[rows, :] * k if weighted else k
            gram += k.T @ k
            moment += k.T @ pull[rows]
        share = weight * is_anomaly
        return Statistics(gram, moment, np.array([weight.sum() - share.sum(), share.sum()]))
