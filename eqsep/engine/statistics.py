"""The sums from which a closed separator is solved: they add up over pieces of the data."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from eqsep.arrays import device, is_foreign, namespace
from eqsep.engine import on_gpu
from eqsep.engine.compiled import in_threads, n_pieces, weighted_sums
from eqsep.engine.fused import is_fast
from eqsep.engine.kernels import Kernel, LocalKernel

SCORED_AT_ONCE = 256  # rows whose kernel values stay in the processor's cache


@dataclass(frozen=True)
class Statistics:
    """G = Σ w k kᵀ and r = Σ w t k of rows with kernel values k, weight w and target t.

    With several targets a row, r has a column for each of them.

    Attributes
    ----------
    gram : array of shape (n_landmarks, n_landmarks)
        G, in double precision.
    moment : array of shape (n_landmarks,) or (n_landmarks, n_targets)
        r, in double precision.
    weight : ndarray
        The weight of the normal rows, then that of the anomalous ones (of each kind).
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
        moment = xp.reshape(self.moment, (gram.shape[0], -1))
        matrix = gram + alpha * xp.eye(gram.shape[0], dtype=gram.dtype, device=device(gram))
        try:
            factor = xp.linalg.cholesky(matrix)
        except (np.linalg.LinAlgError, RuntimeError):  # torch's LinAlgError is a RuntimeError
            return xp.reshape(_shortest_solution(matrix, moment), self.moment.shape)
        pivots = xp.linalg.diagonal(factor)
        if float(xp.min(pivots) / xp.max(pivots)) ** 2 < _rounding(matrix):
            return xp.reshape(_shortest_solution(matrix, moment), self.moment.shape)
        return xp.reshape(_substituted(factor, moment), self.moment.shape)


def widened(statistics: Statistics, n: int, *, places: list[int] | None = None) -> Statistics:
    """The same sums with `n` targets, of which theirs stand at `places`; the others are 0."""
    places = list(range(statistics.moment.shape[1])) if places is None else places
    moment, weight = np.zeros((len(statistics.gram), n)), np.zeros(n)
    moment[:, places], weight[places] = statistics.moment, statistics.weight
    return Statistics(statistics.gram, moment, weight)


def _rounding(matrix: Any) -> float:
    """The size, relative to the matrix, below which an eigenvalue is rounding."""
    return matrix.shape[0] * float(namespace(matrix).finfo(matrix.dtype).eps)


def _substituted(factor: Any, moment: Any) -> Any:
    """The a with L Lᵀ a = r, for a lower triangular L."""
    if is_foreign(factor):
        xp = namespace(factor)
        return xp.linalg.solve(factor.T, xp.linalg.solve(factor, moment))
    return scipy.linalg.cho_solve((factor, True), moment)


def _shortest_solution(matrix: Any, moment: Any) -> Any:
    """The least-squares solution of least length, through the eigenvalues that are not rounding."""
    xp = namespace(matrix)
    sizes, axes = xp.linalg.eigh(matrix)
    kept = sizes > _rounding(matrix) * xp.max(xp.abs(sizes))
    inverse = xp.where(kept, 1 / xp.where(kept, sizes, xp.ones_like(sizes)), xp.zeros_like(sizes))
    return axes @ (inverse[:, None] * (axes.T @ moment))


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

    def chunks(self, X: Any, *, most: int, dtype: Any = None) -> Iterator[tuple[slice, Any]]:
        """Slices of at most `most` rows, each with its kernel values (rows, n_landmarks).

        In the precision of the landmarks, or in `dtype`.
        """
        values, size = self.kernel.at(self.landmarks), min(most, self.chunk_size)
        for start in range(0, X.shape[0], size or 1):  # no rows: no slices
            rows = slice(start, min(start + size, X.shape[0]))
            yield rows, self._values(values, X[rows, :], dtype or self.landmarks.dtype)

    def _values(self, values: Callable[[Any], Any], X: Any, dtype: Any) -> Any:
        xp, m = namespace(X), self.landmarks.shape[0]
        with np.errstate(over="ignore"):  # what is too large for the landmarks is far from them
            X = xp.astype(X, self.landmarks.dtype, copy=False)
        if is_foreign(X) or not self.kernel.is_rowwise:
            return xp.astype(values(X), dtype, copy=False)
        out = np.empty((len(X), m), dtype=dtype)

        def fill(rows: slice) -> None:
            for start in range(rows.start, rows.stop, SCORED_AT_ONCE):
                part = slice(start, min(start + SCORED_AT_ONCE, rows.stop))
                out[part] = values(X[part])

        in_threads(fill, len(X), steps=out.size * X.shape[1])
        return out

    def features(self, X: Any) -> Any:
        """All kernel values at once.  (n, d) -> (n, n_landmarks)"""
        return namespace(X).concat([k for _, k in self.chunks(X, most=X.shape[0])], axis=0)

    def combine(self, X: Any, coef: Any) -> Any:
        """f(x) = Σ_j a_j k(x, c_j) for each row.  (n, d) -> (n,)"""
        xp = namespace(X)
        if is_fast(X) and isinstance(self.kernel, LocalKernel):
            return on_gpu.combined(self.kernel, self.landmarks, X, coef)
        if is_foreign(X):
            coef = xp.astype(coef, self.landmarks.dtype, copy=False)
            return xp.concat([k @ coef for _, k in self.chunks(X, most=SCORED_AT_ONCE)], axis=0)
        out = np.empty(len(X), dtype=self.landmarks.dtype)

        def fill(rows: slice) -> None:
            # Not a product of matrices: its sums would depend on the rows beside each row.
            for part, k in self.chunks(X[rows], most=SCORED_AT_ONCE):
                out[rows][part] = weighted_sums(k, coef)

        if self.kernel.is_rowwise:
            in_threads(fill, len(X), steps=len(X) * self.landmarks.size)
        else:
            fill(slice(0, len(X)))
        return out

    def statistics(
        self, X: Any, target: np.ndarray, weight: np.ndarray, *, total: np.ndarray
    ) -> Statistics:
        """The sums over the rows, of which `total` is the weight, class by class.

        Products and sums are in double precision, whatever that of the rows, and so are kernel
        values that depend on the rows beside a row: in single precision the sums of two pieces
        would not be those of the whole. Tensors in single precision on a GPU are summed exactly
        too, once their kernel values are rounded (`on_gpu`).
        """
        if is_fast(X) and isinstance(self.kernel, LocalKernel):
            parts = on_gpu.summed(self.kernel, self.landmarks, X, target, weight)
            return Statistics(*parts, total)
        if not is_foreign(X) and self.kernel.is_rowwise:
            return Statistics(*self._sums_in_threads(X, target, weight), total)
        xp = namespace(X)
        exact = replace(self, landmarks=xp.astype(self.landmarks, xp.float64, copy=False))
        return Statistics(*exact._sums(X, target, weight), total)

    def _sums(self, X: Any, target: np.ndarray, weight: np.ndarray) -> tuple[Any, Any]:
        """Σ w k kᵀ and Σ w t k."""
        xp, m = namespace(X), self.landmarks.shape[0]
        double = {"dtype": xp.float64, "device": device(X)}
        root = xp.asarray(np.sqrt(weight)[:, None], **double)
        pull = xp.asarray((np.sqrt(weight) * target.T).T, **double)
        gram, moment = xp.zeros((m, m), **double), xp.zeros((m, *target.shape[1:]), **double)
        weighted = bool((weight != 1).any())
        for rows, k in self.chunks(X, most=X.shape[0], dtype=xp.float64):
            k = root[rows, :] * k if weighted else k
            gram += k.T @ k
            moment += k.T @ pull[rows]
        return gram, moment

    def _sums_in_threads(
        self, X: np.ndarray, target: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same, by threads that each have rows and sums of their own.

        BLAS's own threads would wait for each other, and spin while kernel values are computed.
        """
        steps = len(X) * self.landmarks.size
        parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}

        def add(rows: slice) -> None:
            parts[rows.start] = self._sums(X[rows], target[rows], weight[rows])

        alone = n_pieces(len(X), steps=steps) == 1
        with nullcontext() if alone else threadpool_limits(1, user_api="blas"):
            in_threads(add, len(X), steps=steps)
        (gram, moment), *others = (parts[start] for start in sorted(parts))
        for more, pull in others:
            gram += more
            moment += pull
        return gram, moment
