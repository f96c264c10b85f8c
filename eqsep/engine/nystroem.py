"""The Nystroem approximation: landmarks, kernel values at them, and the sums that are solved."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits

from eqsep.arrays import device, is_foreign, namespace, resolve_device, to_numpy
from eqsep.engine import gpu
from eqsep.engine.kernels import Kernel, LocalKernel
from eqsep.engine.loops import in_threads, n_pieces, weighted_sums
from eqsep.errors import EqsepWarning, UserError, warn
from eqsep.progress import reporter

ANOMALOUS_SHARE = 1 / 3
MANY = 5000  # landmarks: their sums take 200 MB
CACHED_ROWS = 256  # few enough for their kernel values to stay in the processor's cache
_MIXED_AT_ONCE = 512  # rows: their bits stay in the processor's cache
_FIRST_MULTIPLIER, _SECOND_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
BLOCK = 256  # rows summed at once: few enough for single precision, and their values stay cached
LIGHT = 4.0  # the most Σ k² of a block's rows at a landmark for its sum to be rounded
WORTH_ROUNDING = 2**34  # products of all rows: fewer take a second in double precision
SENT_AT_ONCE = 2**18  # rows that go to a device
_STRIP = 128  # rows of a triangle that are added at once
Pack = Callable[[Any], Any]
Report = Callable[[int], None]  # how many more rows are done


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

    Which rows, and their order, depends on `rng` and the set of distinct rows only.
    """
    key = row_keys(X, rng=rng)
    order = np.lexsort((is_anomaly, key))
    distinct = order[np.concatenate([[True], key[order][1:] != key[order][:-1]])]
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
    anomalies = anomalies[: max(n - len(normals), int(n * ANOMALOUS_SHARE))]
    return np.sort(np.concatenate([anomalies, normals[: n - len(anomalies)]]))


def row_keys(X: Any, *, rng: np.random.RandomState) -> np.ndarray:
    """A random 64-bit key for each row, the same for equal rows."""
    X = to_numpy(X)
    factors = rng.randint(0, 2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    key = np.empty(len(X), dtype=np.uint64)

    def fill(some: slice) -> None:
        key[some] = mixed_bits(X[some], factors)

    in_threads(fill, len(X), steps=X.size, most=_MIXED_AT_ONCE)
    return key


def mixed_bits(X: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Each row's bits in double precision, mixed with odd factors; -0 is 0.  (n, d) -> (n,)"""
    bits = (X.astype(np.float64, order="C") + 0.0).view(np.uint64)
    return _finalised((_finalised(bits + factors) * factors).sum(axis=1, dtype=np.uint64))


def _finalised(b: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64."""
    b = (b ^ (b >> _30)) * _FIRST_MULTIPLIER
    b = (b ^ (b >> _27)) * _SECOND_MULTIPLIER
    return np.asarray(b ^ (b >> _31))


@dataclass(frozen=True)
class Statistics:
    """G = Σ w k kᵀ and r = Σ w t k, a column per target t, of rows with kernel values k."""

    gram: Any  # G
    moment: Any  # r
    weight: np.ndarray  # of the normal rows, then of the anomalous ones (of each kind)

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.gram + other.gram, self.moment + other.moment, self.weight + other.weight
        )

    def __sub__(self, other: Self) -> Self:
        left = np.maximum(0.0, self.weight - other.weight)
        return type(self)(self.gram - other.gram, self.moment - other.moment, left)

    def solve(self, alpha: float) -> Any:
        """The a with (G + alpha I) a = r."""
        return solve_ridge(self.gram, self.moment, alpha)


def solve_ridge(gram: Any, moment: Any, alpha: float) -> Any:
    """The a with (G + alpha I) a = r: by Cholesky, or if that is singular the shortest one."""
    xp = namespace(gram)
    tall = xp.reshape(moment, (gram.shape[0], -1))
    matrix = gram + alpha * xp.eye(gram.shape[0], dtype=gram.dtype, device=device(gram))
    try:
        factor = xp.linalg.cholesky(matrix)
        pivots = xp.linalg.diagonal(factor)
        is_singular = float(xp.min(pivots) / xp.max(pivots)) ** 2 < _rounding(matrix)
    except (np.linalg.LinAlgError, RuntimeError):  # torch's LinAlgError is a RuntimeError
        is_singular = True
    solution = _shortest_solution(matrix, tall) if is_singular else _substituted(factor, tall)
    return xp.reshape(solution, moment.shape)


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


class Gram:
    """The sum of k kᵀ over rows with kernel values k at m landmarks: its lower triangle.

    Of many rows, blocks with no landmark near many of them are summed in single precision, which is
    twice as fast and changes scores by some 1e-6; all others, where it matters, in double.
    """

    def __init__(self, m: int, *, n_rows: int) -> None:
        self._lower = np.zeros((m, m))
        self._rounds = n_rows * m**2 >= WORTH_ROUNDING
        self._products = {np.dtype(t): np.empty((m, m), dtype=t) for t in (np.float32, np.float64)}

    def add(self, k: np.ndarray) -> None:
        """Some rows more.  (n, m)"""
        may_round = self._rounds and k.dtype == np.float32 and len(k) <= BLOCK
        is_light = may_round and np.einsum("ij,ij->j", k, k).max(initial=0.0) <= LIGHT
        values = k if is_light else k.astype(np.float64, copy=False)
        # Not SciPy's syrk, which would let no other thread run.
        product = np.matmul(values.T, values, out=self._products[values.dtype])
        for start in range(0, len(product), _STRIP):
            strip = np.s_[start : start + _STRIP, : start + _STRIP]
            self._lower[strip] += product[strip]

    def __iadd__(self, other: "Gram") -> "Gram":
        self._lower += other._lower
        return self

    def matrix(self) -> np.ndarray:
        """All of it.  (m, m)"""
        lower = np.tril(self._lower)
        return lower + np.tril(lower, -1).T


@dataclass(frozen=True, eq=False)
class KernelMap:
    """Rows of NumPy as their kernel values at the landmarks, some at a time."""

    kernel: Kernel
    landmarks: np.ndarray
    chunk_size: int  # the most rows held as kernel values at once
    pack: Pack = np.asarray  # to rows with the columns of the landmarks

    @cached_property
    def _values(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.kernel.at(self.landmarks)

    def chunks(self, X: np.ndarray, *, most: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Slices of at most `most` rows, each with its kernel values (rows, n_landmarks)."""
        most = min(most, CACHED_ROWS) if self.kernel.is_rowwise else most
        size = min(most, self.chunk_size) or 1  # no rows: no slices
        for start in range(0, len(X), size):
            rows = slice(start, min(start + size, len(X)))
            packed, dtype = self.pack(X[rows]), self.landmarks.dtype
            if packed.dtype != dtype:
                with np.errstate(over="ignore"):  # what is too large for landmarks is far from them
                    packed = packed.astype(dtype)
            yield rows, self._values(packed).astype(dtype, copy=False)

    def features(self, X: np.ndarray) -> np.ndarray:
        """All kernel values at once.  (n, d) -> (n, n_landmarks)"""
        out = np.empty((len(X), len(self.landmarks)), dtype=self.landmarks.dtype)
        self.each(X, out.__setitem__, most=len(X))
        return out

    def evaluate(self, X: np.ndarray, coef: np.ndarray, *, dtype: Any = None) -> np.ndarray:
        """f(x) = Σ_j a_j k(x, c_j) of each row, or of each column of `coef`.  (n, d) -> (n, …)"""
        out = np.empty((len(X), *coef.shape[1:]), dtype=dtype or self.landmarks.dtype)
        functions = np.ascontiguousarray(coef.reshape(len(coef), -1).T)
        tall = out.reshape(len(X), len(functions))

        def fill(rows: slice, k: np.ndarray) -> None:
            tall[rows] = weighted_sums(k, functions)

        self.each(X, fill)
        return out

    def each(
        self, X: np.ndarray, work: Callable[[slice, np.ndarray], None], *, most: int = CACHED_ROWS
    ) -> None:
        """Do `work` with at most so many rows each time, and their kernel values, in threads."""

        def fill(rows: slice) -> None:
            for part, k in self.chunks(X[rows], most=most):
                work(slice(rows.start + part.start, rows.start + part.stop), k)

        steps = len(X) * X.shape[1] * len(self.landmarks) if self.kernel.is_rowwise else 0
        in_threads(fill, len(X), steps=steps)

    def statistics(
        self,
        X: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        *,
        total: np.ndarray,
        report: Report | None = None,
    ) -> Statistics:
        """The sums over rows with the weight `total`, class by class, in double precision."""
        n, m = len(X), len(self.landmarks)
        exact, steps, most = self, n * X.shape[1] * m, BLOCK
        if not self.kernel.is_rowwise:  # a product of matrices, which has its own threads
            exact = replace(self, landmarks=self.landmarks.astype(np.float64, copy=False))
            steps, most = 0, n
        parts: dict[int, tuple[Gram, np.ndarray]] = {}
        report = report or reporter("rows")

        def add(rows: slice) -> None:
            gram, moment = Gram(m, n_rows=n), np.zeros((m, *target.shape[1:]))
            w = weight[rows]
            root, pull = np.sqrt(w)[:, None], (np.sqrt(w) * target[rows].T).T
            is_weighted = bool((w != 1).any())
            for part, k in exact.chunks(X[rows], most=most):
                k = root[part] * k if is_weighted else k
                gram.add(k)
                moment += (pull[part].T @ k.astype(np.float64, copy=False)).T
                report(len(k))
            parts[rows.start] = gram, moment

        # BLAS's threads would wait for each other, and spin while kernel values are computed.
        alone = n_pieces(n, steps=steps) == 1
        with nullcontext() if alone else threadpool_limits(1, user_api="blas"):
            in_threads(add, n, steps=steps)
        (gram, moment), *others = (parts[start] for start in sorted(parts))
        for more, pull in others:
            gram += more
            moment += pull
        return Statistics(gram.matrix(), moment, total)


@dataclass(frozen=True, eq=False)
class TensorMap:
    """What a `KernelMap` does, for tensors; those in single precision on a GPU go through `gpu`."""

    kernel: Kernel
    landmarks: Any
    chunk_size: int

    def chunks(self, X: Any, *, most: int) -> Iterator[tuple[slice, Any]]:
        """Slices of at most `most` rows, each with its kernel values (rows, n_landmarks)."""
        xp, values = namespace(X), self.kernel.at(self.landmarks)
        size = min(most, self.chunk_size) or 1
        for start in range(0, X.shape[0], size):
            rows = slice(start, min(start + size, X.shape[0]))
            k = values(xp.astype(X[rows, :], self.landmarks.dtype, copy=False))
            yield rows, xp.astype(k, self.landmarks.dtype, copy=False)

    def features(self, X: Any) -> Any:
        """All kernel values at once.  (n, d) -> (n, n_landmarks)"""
        return namespace(X).concat([k for _, k in self.chunks(X, most=X.shape[0])], axis=0)

    def evaluate(self, X: Any, coef: Any) -> Any:
        """f(x) = Σ_j a_j k(x, c_j) of each row.  (n, d) -> (n,)"""
        kernel = self._kernel_on_gpu(X)
        if kernel is not None:
            return gpu.combined(kernel, self.landmarks, X, coef)
        xp = namespace(X)
        coef = xp.astype(coef, self.landmarks.dtype, copy=False)
        return xp.concat([k @ coef for _, k in self.chunks(X, most=CACHED_ROWS)], axis=0)

    def statistics(
        self, X: Any, target: np.ndarray, weight: np.ndarray, *, total: np.ndarray
    ) -> Statistics:
        """The sums over rows with the weight `total`, in double precision."""
        kernel = self._kernel_on_gpu(X)
        if kernel is not None:
            sums = gpu.summed(kernel, self.landmarks, X, target, weight)
            return Statistics(*sums, weight=total)
        xp, m = namespace(X), self.landmarks.shape[0]
        double = {"dtype": xp.float64, "device": device(X)}
        exact = replace(self, landmarks=xp.astype(self.landmarks, xp.float64, copy=False))
        root = xp.asarray(np.sqrt(weight)[:, None], **double)
        pull = xp.asarray((np.sqrt(weight) * target.T).T, **double)
        gram, moment = xp.zeros((m, m), **double), xp.zeros((m, *target.shape[1:]), **double)
        weighted = bool((weight != 1).any())
        for rows, k in exact.chunks(X, most=X.shape[0]):
            k = root[rows, :] * k if weighted else k
            gram += k.T @ k
            moment += k.T @ pull[rows]
        return Statistics(gram, moment, total)

    def _kernel_on_gpu(self, X: Any) -> LocalKernel | None:
        """The kernel, if `gpu` can sum its values at these rows."""
        return self.kernel if gpu.is_fast(X) and isinstance(self.kernel, LocalKernel) else None


def pieces_on(where: Any, X: Any) -> Iterator[Any]:
    """Encoded rows on a device of torch: all where they are there, else some at a time."""
    if is_foreign(X):
        yield X
        return
    import torch

    for start in range(0, max(len(X), 1), SENT_AT_ONCE):
        yield torch.as_tensor(X[start : start + SENT_AT_ONCE]).to(where)


@dataclass(frozen=True, eq=False)
class DeviceMap:
    """What a `KernelMap` does, for landmarks on a device, and rows there or in main memory."""

    there: TensorMap  # over packed landmarks, a tensor on the device
    pack: Pack  # from encoded rows to rows with the columns of the landmarks

    @classmethod
    def of(cls, kernel: Kernel, landmarks: np.ndarray, pack: Pack, *, device: str) -> "DeviceMap":
        """The map of encoded landmarks on a device."""
        where = resolve_device(device)  # says what to install where torch is missing
        import torch

        packed = torch.as_tensor(pack(landmarks), device=where)
        return cls(TensorMap(kernel, packed, SENT_AT_ONCE), pack)

    def statistics(
        self,
        X: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        *,
        total: np.ndarray,
        report: Report | None = None,
    ) -> Statistics:
        """As `KernelMap.statistics`, of encoded rows."""
        m = self.there.landmarks.shape[0]
        sums = Statistics(np.zeros((m, m)), np.zeros((m, *target.shape[1:])), total)
        start, none, report = 0, 0 * total, report or reporter("rows")
        for sent in pieces_on(self.there.landmarks.device, X):
            rows = slice(start, start + len(sent))
            start = rows.stop
            piece = self.there.statistics(self.pack(sent), target[rows], weight[rows], total=none)
            gram, moment = (part.cpu().numpy() for part in (piece.gram, piece.moment))
            sums += Statistics(gram, moment, none)
            report(len(sent))
        return sums

    def evaluate(self, X: Any, coef: np.ndarray, *, dtype: Any = np.float32) -> Any:
        """As `KernelMap.evaluate`, of encoded rows; of those on the device it stays there."""
        import torch

        where = self.there.landmarks.device
        functions = torch.as_tensor(coef.reshape(len(coef), -1).T.copy(), device=where)
        parts = []
        for piece in pieces_on(self.there.landmarks.device, X):
            packed = self.pack(piece)
            part = torch.empty((len(piece), len(functions)), device=packed.device)
            for j, a in enumerate(functions if len(piece) else ()):
                part[:, j] = self.there.evaluate(packed, a)
            parts.append(part)
        tall = torch.cat(parts).reshape(len(X), *coef.shape[1:])
        return tall if is_foreign(X) else tall.cpu().numpy().astype(dtype)
