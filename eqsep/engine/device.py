"""A detector's kernel values on a GPU: rows go there some at a time, and sums come back."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.arrays import resolve_device
from eqsep.engine.packing import Packing
from eqsep.engine.statistics import KernelMap, Statistics

SENT_AT_ONCE = 2**18  # rows


@dataclass(frozen=True)
class DeviceMap:
    """What a `KernelMap` does, for rows in main memory and landmarks on a device.

    Attributes
    ----------
    there : KernelMap
        Over packed landmarks, a tensor on the device.
    packing : Packing
    """

    there: KernelMap
    packing: Packing

    @classmethod
    def of(cls, kernel: Any, landmarks: np.ndarray, packing: Packing, device: str) -> "DeviceMap":
        """The map of encoded landmarks on a device."""
        import torch

        packed = torch.as_tensor(packing(landmarks), device=resolve_device(device))
        return cls(KernelMap(kernel, packed, SENT_AT_ONCE), packing)

    def statistics(
        self, Z: np.ndarray, target: np.ndarray, weight: np.ndarray, *, total: np.ndarray
    ) -> Statistics:
        """As `KernelMap.statistics`, of encoded rows."""
        m = self.there.landmarks.shape[0]
        sums = Statistics(np.zeros((m, m)), np.zeros((m, *target.shape[1:])), total)
        for rows, X in self._sent(Z):
            piece = self.there.statistics(X, target[rows], weight[rows], total=0 * total)
            sums = sums + Statistics(
                piece.gram.cpu().numpy(), piece.moment.cpu().numpy(), 0 * total
            )
        return sums

    def combine(self, Z: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """As `KernelMap.combine`, of encoded rows."""
        import torch

        there = torch.as_tensor(coef, device=self.there.landmarks.device)
        out = np.empty(len(Z), dtype=np.float32)
        for rows, X in self._sent(Z):
            out[rows] = self.there.combine(X, there).cpu().numpy()
        return out

    def chunks(self, Z: np.ndarray, *, most: int) -> Iterator[tuple[slice, np.ndarray]]:
        """As `KernelMap.chunks`, of encoded rows."""
        for rows, X in self._sent(Z):
            for part, k in self.there.chunks(X, most=most):
                yield slice(rows.start + part.start, rows.start + part.stop), k.cpu().numpy()

    def _sent(self, Z: np.ndarray) -> Iterator[tuple[slice, Any]]:
        import torch

        device = self.there.landmarks.device
        for start in range(0, len(Z), SENT_AT_ONCE):
            rows = slice(start, min(start + SENT_AT_ONCE, len(Z)))
            yield rows, torch.as_tensor(self.packing(Z[rows])).to(device)
