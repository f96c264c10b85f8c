"""The Nystroem approximation: landmarks, kernel values at them, and the sums that are solved.

Landmarks are chosen among rows by value, so that order and repetition do not matter. The sums from
which a closed separator is solved add up over pieces of the data.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

from eqsep.arrays import device, is_foreign, namespace, to_numpy
from eqsep.engine.compiled import in_threads, n_pieces, weighted_sums
from eqsep.engine.gram import BLOCK, Gram
from eqsep.engine.kernels import Kernel
from eqsep.engine.keys import mixed_bits
from eqsep.errors import EqsepWarning, UserError, warn
from eqsep.schemas import NONE, bounded, check_parts, damaged, either

ANOMALOUS_SHARE = 1 / 3
MANY = 5000  # landmarks, whose sums take 200 MB
CACHED_ROWS = 256  # whose kernel values stay in the processor's cache


def given_landmarks(landmarks: Any, X: Any) -> Any:
    """Landmarks as an array like the rows `X`: of their library, device, precision and width."""
    xp = namespace(X)
    landmarks = xp.asarray(landmarks, dtype=X.dtype, device=device(X))
    if landmarks.ndim != 2 or landmarks.shape[1] != X.shape[1] or not landmarks.shape[0]:
        raise UserError(
            f"landmarks must have shape (n_landmarks, {X.shape[1]}), as wide as X, got "
            f"{tuple(landmarks.shape)}."
        )
    if not bool(xp.all(xp.isfinite(landmarks))):
        raise UserError("landmarks contain NaN or infinity: expected finite numbers.")
    return landmarks


def choose_landmarks(
    X: Any, is_anomaly: np.ndarray, *, n: int | None, rng: np.random.RandomState
) -> Any:
    """`n` distinct rows of `X`, up to a third anomalous; all if they are fewer or `n` is None.

    Which rows are drawn, and their order, depends on `rng` and the set of distinct rows only:
    repeating a row, or shuffling them, changes nothing. A row found in both classes is normal.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [1.0], [2.0], [3.0]]), np.array([0.0, 0.0, 0.0, 1.0])
    >>> np.sort(choose_landmarks(X, y, n=9, rng=np.random.RandomState(0)), axis=0).ravel()
    array([1., 2., 3.])
    """
    key = row_keys(X, rng=rng)
    order = np.lexsort((is_anomaly, key))
    first = np.concatenate([[True], key[order][1:] != key[order][:-1]])
    distinct = order[first]
    if n is None and len(distinct) > MANY:
        warn(
            EqsepWarning(
                f"All {len(distinct):,} distinct rows become landmarks, and their sums take "
                f"{len(distinct) ** 2 * 8 / 1e9:.1f} GB. Set n_landmarks=1500, for example."
            )
        )
    n = len(distinct) if n is None else n
    chosen = distinct[_stratified(is_anomaly[distinct] == 1, n)]
    xp = namespace(X)
    return xp.take(X, xp.asarray(chosen, device=device(X)), axis=0)


def _stratified(is_anomaly: np.ndarray, n: int) -> np.ndarray:
    """The first rows of each class, `n` in all: a third anomalous as far as both classes last."""
    anomalies, normals = np.flatnonzero(is_anomaly), np.flatnonzero(~is_anomaly)
    share = max(n - len(normals), int(n * ANOMALOUS_SHARE))
    anomalies = anomalies[:share]
    return np.sort(np.concatenate([anomalies, normals[: n - len(anomalies)]]))


def row_keys(X: Any, *, rng: np.random.RandomState) -> np.ndarray:
    """A random 64-bit key for each row, the same for equal rows.

    Each column's bits are mixed, multiplied by an odd number of its own and added up: distinct rows
    share a key with a chance of about 2^-64.
    """
    X = to_numpy(X)
    factors = rng.randint(0, 2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    key = np.empty(len(X), dtype=np.uint64)

    def fill(rows: slice) -> None:
        key[rows] = mixed_bits(X[rows], factors)

    in_threads(fill, len(X), steps=X.size)
    return key


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
    anomalous : array of shape (n_landmarks, n_landmarks), or None
        What the anomalous rows have in G, where classes may be weighed against each other.
    leaves : ndarray of shape (n_leaves, n_targets), or None
        Σ w t of the rows in each leaf, where there are trees.
    """

    gram: Any
    moment: Any
    weight: np.ndarray
    anomalous: Any = None
    leaves: Any = None

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.gram + other.gram,
            self.moment + other.moment,
            self.weight + other.weight,
            None if self.anomalous is None else self.anomalous + other.anomalous,
            None if self.leaves is None else self.leaves + other.leaves,
        )

    def __sub__(self, other: Self) -> Self:
        return type(self)(
            self.gram - other.gram,
            self.moment - other.moment,
            np.maximum(0.0, self.weight - other.weight),
            None if self.anomalous is None else self.anomalous - other.anomalous,
            None if self.leaves is None else self.leaves - other.leaves,
        )

    @property
    def balanced(self) -> Self:
        """The sums in which all anomalous rows together weigh what the normal rows weigh."""
        times = self.weight[0] / max(float(self.weight[1:].sum()), 1e-300)
        columns = np.r_[1.0, np.full(len(self.weight) - 1, times)]
        gram = self.gram + (times - 1) * self.anomalous
        return type(self)(gram, self.moment * columns, self.weight * columns)

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

    def state(self) -> dict[str, Any]:
        """The parts of a model file; of a symmetric matrix, the lower triangle alone."""
        sums = {"gram": _triangle(self.gram), "anomalous": _triangle(self.anomalous)}
        return {"moment": self.moment, "weight": self.weight, "leaves": self.leaves} | sums

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The sums of these parts."""
        check_parts(state, _STATE, "Statistics")
        if (state["weight"] < 0).any():
            damaged("a weight of its rows is below 0")
        n = len(state["moment"])
        return cls(**state | {part: _square(state[part], n=n) for part in ("gram", "anomalous")})


_DOUBLE = "float64"
_GRAM = either(bounded("m", "m", dtype=_DOUBLE), bounded(None, dtype=_DOUBLE))
_STATE = {
    "moment": bounded("m", "t", dtype=_DOUBLE),
    "gram": _GRAM,
    "weight": bounded("t", dtype=_DOUBLE),
    "anomalous": either(NONE, _GRAM),
    "leaves": either(NONE, bounded(None, "t", dtype=_DOUBLE)),
}


def _triangle(gram: np.ndarray | None) -> np.ndarray | None:
    """The lower triangle, if that is all."""
    if gram is None or not np.array_equal(gram, gram.T):
        return gram
    return gram[np.tril_indices(len(gram))]


def _square(gram: np.ndarray | None, *, n: int) -> np.ndarray | None:
    """The symmetric matrix of which `gram` may be the lower triangle."""
    if gram is None or gram.ndim == 2:
        return gram
    if len(gram) != n * (n + 1) // 2:
        damaged("the matrix of its sums is no triangle")
    whole, (i, j) = np.empty((n, n)), np.tril_indices(n)
    whole[i, j] = whole[j, i] = gram
    return whole


def widened(statistics: Statistics, n: int, *, columns: list[int] | None = None) -> Statistics:
    """The same sums with `n` targets, of which theirs stand in `columns`; the others are 0."""
    columns = list(range(statistics.moment.shape[1])) if columns is None else columns

    def wide(sums: np.ndarray) -> np.ndarray:
        out = np.zeros((*sums.shape[:-1], n))
        out[..., columns] = sums
        return out

    leaves = None if statistics.leaves is None else wide(statistics.leaves)
    return replace(
        statistics, moment=wide(statistics.moment), weight=wide(statistics.weight), leaves=leaves
    )


def narrowed(statistics: Statistics, columns: list[int]) -> Statistics:
    """The same sums with the targets in these columns alone."""
    leaves = None if statistics.leaves is None else statistics.leaves[:, columns]
    moment, weight = statistics.moment[:, columns], statistics.weight[columns]
    return replace(statistics, moment=moment, weight=weight, leaves=leaves)


def _rounding(matrix: Any) -> float:
    """The size, relative to the matrix, below which an eigenvalue is rounding."""
    return len(matrix) * float(namespace(matrix).finfo(matrix.dtype).eps)


def _substituted(factor: Any, moment: Any) -> Any:
    """The a with L Lᵀ a = r, for a lower triangular L."""
    if is_foreign(factor):
        xp = namespace(factor)
        return xp.linalg.solve(factor.T, xp.linalg.solve(factor, moment))
    from scipy.linalg import cho_solve  # scoring does not wait for it

    return cho_solve((factor, True), moment)


def _shortest_solution(matrix: Any, moment: Any) -> Any:
    """The least-squares solution of least length, through the eigenvalues that are not rounding."""
    xp = namespace(matrix)
    sizes, axes = xp.linalg.eigh(matrix)
    kept = sizes > _rounding(matrix) * xp.max(xp.abs(sizes))
    inverse = xp.where(kept, 1 / xp.where(kept, sizes, xp.ones_like(sizes)), xp.zeros_like(sizes))
    return axes @ (inverse[:, None] * (axes.T @ moment))


def _as_they_are(rows: np.ndarray) -> np.ndarray:
    return rows


@dataclass(frozen=True, eq=False)
class KernelMap:
    """Rows of NumPy as their kernel values at the landmarks, some at a time.

    Attributes
    ----------
    kernel : Kernel
    landmarks : ndarray of shape (n_landmarks, n_columns)
    chunk_size : int
        The most rows held as kernel values at once.
    pack : callable
        From rows as they come to rows with the columns of the landmarks.
    """

    kernel: Kernel
    landmarks: np.ndarray
    chunk_size: int
    pack: Callable[[np.ndarray], np.ndarray] = field(default=_as_they_are)

    @cached_property
    def _values(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.kernel.at(self.landmarks)

    def chunks(
        self, X: np.ndarray, *, most: int, dtype: Any = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Slices of at most `most` rows, each with its kernel values (rows, n_landmarks).

        In the precision of the landmarks, or in `dtype`.
        """
        size = min(most, self.chunk_size) or 1  # no rows: no slices
        for start in range(0, len(X), size):
            rows = slice(start, min(start + size, len(X)))
            yield rows, self._kernel_values(X[rows], dtype or self.landmarks.dtype)

    def _kernel_values(self, X: np.ndarray, dtype: Any) -> np.ndarray:
        X = self.pack(X)
        if X.dtype != self.landmarks.dtype:
            with np.errstate(over="ignore"):  # what is too large for the landmarks is far from them
                X = X.astype(self.landmarks.dtype)
        if not self.kernel.is_rowwise or len(X) <= CACHED_ROWS:
            return self._values(X).astype(dtype, copy=False)
        out = np.empty((len(X), len(self.landmarks)), dtype=dtype)
        for start in range(0, len(X), CACHED_ROWS):
            part = slice(start, min(start + CACHED_ROWS, len(X)))
            out[part] = self._values(X[part])
        return out

    def pieces(self, X: np.ndarray) -> list[np.ndarray]:
        """The rows where they are computed with: as they are."""
        return [X]

    def features(self, X: np.ndarray) -> np.ndarray:
        """All kernel values at once.  (n, d) -> (n, n_landmarks)"""
        out = np.empty((len(X), len(self.landmarks)), dtype=self.landmarks.dtype)

        def fill(rows: slice) -> None:
            for part, k in self.chunks(X[rows], most=len(X)):
                out[rows][part] = k

        self._divided(fill, X)
        return out

    def combine(self, X: np.ndarray, coef: np.ndarray, *, dtype: Any = None) -> np.ndarray:
        """f(x) = Σ_j a_j k(x, c_j) of each row, or of each column of `coef`.  (n, d) -> (n, …)

        Summed in double precision, and given in that of the landmarks, or in `dtype`.
        """
        out = np.empty((len(X), *coef.shape[1:]), dtype=dtype or self.landmarks.dtype)
        functions = np.ascontiguousarray(coef.reshape(len(coef), -1).T)
        tall = out.reshape(len(X), len(functions))

        def fill(rows: slice, k: np.ndarray) -> None:
            weighted_sums(k, functions, tall[rows])

        self.each(X, fill)
        return out

    def each(self, X: np.ndarray, work: Callable[[slice, np.ndarray], None]) -> None:
        """Do `work` in threads with some rows each time, and their kernel values in the cache."""

        def fill(rows: slice) -> None:
            for part, k in self.chunks(X[rows], most=CACHED_ROWS):
                work(slice(rows.start + part.start, rows.start + part.stop), k)

        self._divided(fill, X)

    def _divided(self, work: Callable[[slice], None], X: np.ndarray) -> None:
        """Some rows in each thread, unless the kernel is a product of matrices, which has its own.

        Nothing below divides rows again.
        """
        steps = len(X) * X.shape[1] * len(self.landmarks) if self.kernel.is_rowwise else 0
        in_threads(work, len(X), steps=steps)

    def statistics(
        self, X: np.ndarray, target: np.ndarray, weight: np.ndarray, *, total: np.ndarray
    ) -> Statistics:
        """The sums over the rows, of which `total` is the weight, class by class.

        Sums are in double precision (of many rows and a narrow kernel as `Gram` says), whatever
        that of the rows, and so are kernel values that depend on the rows beside a row: in single
        precision the sums of two pieces would not be those of the whole.
        """
        if self.kernel.is_rowwise:
            return Statistics(*self._sums_in_threads(X, target, weight), total)
        exact = replace(self, landmarks=self.landmarks.astype(np.float64, copy=False))
        gram = Gram(len(self.landmarks), n_rows=len(X))
        moment = exact._sums(X, target, weight, gram)
        return Statistics(gram.matrix(), moment, total)

    def _sums(
        self, X: np.ndarray, target: np.ndarray, weight: np.ndarray, gram: Gram
    ) -> np.ndarray:
        """Σ w t k; Σ w k kᵀ is added to `gram`."""
        root, pull = np.sqrt(weight)[:, None], (np.sqrt(weight) * target.T).T
        moment = np.zeros((len(self.landmarks), *target.shape[1:]))
        weighted = bool((weight != 1).any())
        for rows, k in self.chunks(X, most=BLOCK if self.kernel.is_rowwise else len(X)):
            k = root[rows] * k if weighted else k
            gram.add(k)
            moment += (pull[rows].T @ k.astype(np.float64, copy=False)).T
        return moment

    def _sums_in_threads(
        self, X: np.ndarray, target: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Σ w k kᵀ and Σ w t k, by threads that each have rows and sums of their own.

        BLAS's own threads would wait for each other, and spin while kernel values are computed.
        """
        n, m = len(X), len(self.landmarks)
        steps = n * X.shape[1] * m
        parts: dict[int, tuple[Gram, np.ndarray]] = {}

        def add(rows: slice) -> None:
            gram = Gram(m, n_rows=n)
            parts[rows.start] = gram, self._sums(X[rows], target[rows], weight[rows], gram)

        alone = n_pieces(n, steps=steps) == 1
        with nullcontext() if alone else threadpool_limits(1, user_api="blas"):
            in_threads(add, n, steps=steps)
        (gram, moment), *others = (parts[start] for start in sorted(parts))
        for more, pull in others:
            gram += more
            moment += pull
        return gram.matrix(), moment
