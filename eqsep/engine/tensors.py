"""Kernel values of tensors, and of rows in main memory with landmarks on a device."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eqsep.arrays import device, is_foreign, namespace, resolve_device
from eqsep.engine import gpu
from eqsep.engine.kernels import Kernel, LocalKernel
from eqsep.engine.nystroem import CACHED_ROWS, KernelMap, Statistics

SENT_AT_ONCE = 2**18  # rows
Pack = Callable[[Any], Any]


def map_of(kernel: Kernel, landmarks: Any, chunk_size: int) -> "KernelMap | TensorMap":
    """The map to landmarks of any library."""
    kind = TensorMap if is_foreign(landmarks) else KernelMap
    return kind(kernel, landmarks, chunk_size)


@dataclass(frozen=True, eq=False)
class TensorMap:
    """What a `KernelMap` does, for arrays of another library than NumPy: they stay where they are.

    Tensors in single precision on a GPU go through `gpu`, which sums them up exactly.
    """

    kernel: Kernel
    landmarks: Any
    chunk_size: int

    def chunks(self, X: Any, *, most: int, dtype: Any = None) -> Iterator[tuple[slice, Any]]:
        """Slices of at most `most` rows, each with its kernel values (rows, n_landmarks)."""
        xp, values = namespace(X), self.kernel.at(self.landmarks)
        size = min(most, self.chunk_size) or 1
        for start in range(0, X.shape[0], size):
            rows = slice(start, min(start + size, X.shape[0]))
            k = values(xp.astype(X[rows, :], self.landmarks.dtype, copy=False))
            yield rows, xp.astype(k, dtype or self.landmarks.dtype, copy=False)

    def features(self, X: Any) -> Any:
        """All kernel values at once.  (n, d) -> (n, n_landmarks)"""
        return namespace(X).concat([k for _, k in self.chunks(X, most=X.shape[0])], axis=0)

    def combine(self, X: Any, coef: Any) -> Any:
        """f(x) = Σ_j a_j k(x, c_j) of each row.  (n, d) -> (n,)"""
        if self._is_fast(X):
            return gpu.combined(self.kernel, self.landmarks, X, coef)
        xp = namespace(X)
        coef = xp.astype(coef, self.landmarks.dtype, copy=False)
        return xp.concat([k @ coef for _, k in self.chunks(X, most=CACHED_ROWS)], axis=0)

    def statistics(
        self, X: Any, target: np.ndarray, weight: np.ndarray, *, total: np.ndarray
    ) -> Statistics:
        """The sums over the rows, in double precision, of which `total` is the weight."""
        if self._is_fast(X):
            return Statistics(
                *gpu.summed(self.kernel, self.landmarks, X, target, weight), weight=total
            )
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

    def _is_fast(self, X: Any) -> bool:
        return gpu.is_fast(X) and isinstance(self.kernel, LocalKernel)


@dataclass(frozen=True, eq=False)
class DeviceMap:
    """What a `KernelMap` does, for landmarks on a device, and rows there or in main memory.

    Attributes
    ----------
    there : TensorMap
        Over packed landmarks, a tensor on the device.
    pack : callable
        From encoded rows to rows with the columns of the landmarks.
    encoding : callable
        From columns of a table to encoded rows on the device.
    """

    there: TensorMap
    pack: Pack
    encoding: Any

    @classmethod
    def of(
        cls, kernel: Kernel, landmarks: np.ndarray, pack: Pack, encoding: Any, *, device: str
    ) -> "DeviceMap":
        """The map of encoded landmarks on a device."""
        where = resolve_device(device)  # says what to install where torch is missing
        import torch

        packed = torch.as_tensor(pack(landmarks), device=where)
        return cls(TensorMap(kernel, packed, SENT_AT_ONCE), pack, encoding)

    def pieces(self, X: Any) -> Iterator[Any]:
        """Encoded rows on the device: all where they are there, else some at a time."""
        if is_foreign(X):
            yield X
            return
        import torch

        for start in range(0, max(len(X), 1), SENT_AT_ONCE):
            piece = torch.as_tensor(X[start : start + SENT_AT_ONCE])
            yield piece.to(self.there.landmarks.device)

    def statistics(
        self, X: np.ndarray, target: np.ndarray, weight: np.ndarray, *, total: np.ndarray
    ) -> Statistics:
        """As `KernelMap.statistics`, of encoded rows."""
        m = self.there.landmarks.shape[0]
        sums = Statistics(np.zeros((m, m)), np.zeros((m, *target.shape[1:])), total)
        start = 0
        for sent in self.pieces(X):
            rows = slice(start, start + len(sent))
            start = rows.stop
            piece = self.there.statistics(
                self.pack(sent), target[rows], weight[rows], total=0 * total
            )
            sums = sums + Statistics(
                piece.gram.cpu().numpy(), piece.moment.cpu().numpy(), 0 * total
            )
        return sums

    def combine(self, X: Any, coef: np.ndarray, *, dtype: Any = np.float32) -> Any:
        """As `KernelMap.combine`, of encoded rows; of those on the device it stays there."""
        import torch

        functions = torch.as_tensor(
            coef.reshape(len(coef), -1).T.copy(), device=self.there.landmarks.device
        )
        parts = []
        for piece in self.pieces(X):
            packed = self.pack(piece)
            part = torch.empty((len(piece), len(functions)), device=packed.device)
            for j, a in enumerate(functions if len(piece) else ()):
                part[:, j] = self.there.combine(packed, a)
            parts.append(part)
        tall = torch.cat(parts).reshape(len(X), *coef.shape[1:])
        return tall if is_foreign(X) else tall.cpu().numpy().astype(dtype)
