"""Backends: where encoded rows are worked on, in main memory by NumPy or on a device by PyTorch."""

from collections.abc import Iterable
from functools import cache
from typing import Any, Protocol

import numpy as np

from eqsep.arrays import resolve_device, to_numpy
from eqsep.engine import gpu
from eqsep.engine.ellipsoid import along, distances
from eqsep.engine.kernels import Laplacian, SparseLaplacian
from eqsep.engine.nearest import Neighbourhood
from eqsep.engine.nystroem import DeviceMap, KernelMap, Pack, Report, Statistics, pieces_on
from eqsep.engine.predictions import Predictions
from eqsep.engine.trees import Trees

DEVICES = ("cpu", "cuda", "auto")
_MAP_ROWS = 4096  # rows held as kernel values


class LandmarkMap(Protocol):
    """Encoded rows as their kernel values at the landmarks."""

    def statistics(
        self,
        X: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        *,
        total: np.ndarray,
        report: Report | None = None,
    ) -> Statistics: ...

    def evaluate(self, X: Any, coef: np.ndarray, *, dtype: Any = None) -> Any: ...


class Backend(Protocol):
    """The arithmetic of a score, on arrays of one library."""

    device: str

    def pieces(self, rows: Any) -> Iterable[Any]:
        """Encoded rows where they are worked on, some at a time."""

    def map_of(self, kernel: Laplacian, landmarks: np.ndarray, pack: Pack) -> LandmarkMap:
        """The map of encoded rows to kernel values at encoded landmarks."""

    def beside(self, rows: Any, more: Any) -> Any:
        """The columns of both, in the precision of the first.  (n, d), (n, e) -> (n, d + e)"""

    def root(self, x: Any) -> Any: ...

    def clipped(self, x: Any, low: float, high: float) -> Any: ...

    def log(self, x: Any) -> Any: ...

    def double(self, x: Any) -> Any:
        """The same numbers in double precision."""

    def along(self, rows: Any, columns: np.ndarray, centre: np.ndarray, axes: np.ndarray) -> Any:
        """(rows[:, columns] - centre) @ axes, in double precision.  -> (n, n_axes)"""

    def distance(self, y: Any) -> Any:
        """(mean of y_j⁴)^(1/4) of each row.  (n, n_axes) -> (n,)"""

    def votes(self, trees: Trees, rows: Any, of_leaf: np.ndarray) -> Any:
        """The mean over trees of the number of the leaf in which a row ends.  -> (n,)"""

    def nearest(self, neighbourhood: Neighbourhood, rows: Any, *, enough: float) -> Any:
        """The logarithm of the least scaled distance, or one below `enough`.  (n, d) -> (n,)"""

    def predicted(self, predictions: Predictions, rows: Any, probability: np.ndarray) -> Any:
        """How probable the bins of rows are, given the other columns.  -> (n, n_targets)"""

    def fetched(self, values: Any) -> np.ndarray:
        """The values as an array in main memory, where they may be already."""


class NumPyBackend:
    """Arrays in main memory: compiled loops, and threads that share the rows."""

    device = "cpu"

    def __reduce__(self) -> tuple[Any, ...]:
        return backend_for, (self.device,)  # there is one in each process

    def pieces(self, rows: np.ndarray) -> list[np.ndarray]:
        return [rows]

    def map_of(self, kernel: Laplacian, landmarks: np.ndarray, pack: Pack) -> KernelMap:
        sparse = SparseLaplacian(kernel.gamma, kernel.powers)
        return KernelMap(sparse, pack(landmarks), _MAP_ROWS, pack)

    def beside(self, rows: np.ndarray, more: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # too large is infinite
            return np.concatenate([rows, more], axis=1, dtype=rows.dtype, casting="same_kind")

    def root(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(x))

    def clipped(self, x: np.ndarray, low: float, high: float) -> np.ndarray:
        return np.asarray(np.minimum(np.maximum(x, low), high))

    def log(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(x))

    def double(self, x: np.ndarray) -> np.ndarray:
        return x.astype(float)

    def along(
        self, rows: np.ndarray, columns: np.ndarray, centre: np.ndarray, axes: np.ndarray
    ) -> np.ndarray:
        return along(rows, columns, centre, axes)

    def distance(self, y: np.ndarray) -> np.ndarray:
        return distances(y)

    def votes(self, trees: Trees, rows: np.ndarray, of_leaf: np.ndarray) -> np.ndarray:
        return trees.mean(rows, of_leaf)

    def nearest(
        self, neighbourhood: Neighbourhood, rows: np.ndarray, *, enough: float
    ) -> np.ndarray:
        return neighbourhood.log_distance(rows, enough=enough)

    def predicted(
        self, predictions: Predictions, rows: np.ndarray, probability: np.ndarray
    ) -> np.ndarray:
        return predictions.predicted(rows, probability)

    def fetched(self, values: np.ndarray) -> np.ndarray:
        return values


class TorchBackend:
    """Tensors on a device of PyTorch."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._where = resolve_device(device)  # says what to install where torch is missing

    def __reduce__(self) -> tuple[Any, ...]:
        return backend_for, (self.device,)  # there is one in each process

    def pieces(self, rows: Any) -> Iterable[Any]:
        return pieces_on(self._where, rows)

    def map_of(self, kernel: Laplacian, landmarks: np.ndarray, pack: Pack) -> DeviceMap:
        return DeviceMap.of(kernel, landmarks, pack, device=self.device)

    def beside(self, rows: Any, more: Any) -> Any:
        import torch

        return torch.cat([rows, more.to(rows.dtype)], dim=1)

    def root(self, x: Any) -> Any:
        return x.sqrt()

    def clipped(self, x: Any, low: float, high: float) -> Any:
        return x.clip(low, high)

    def log(self, x: Any) -> Any:
        return x.log()

    def double(self, x: Any) -> Any:
        return x.double()

    def along(self, rows: Any, columns: np.ndarray, centre: np.ndarray, axes: np.ndarray) -> Any:
        import torch

        middle, directions = (torch.as_tensor(part, device=rows.device) for part in (centre, axes))
        return (
            rows[:, torch.as_tensor(columns, device=rows.device)].double() - middle
        ) @ directions

    def distance(self, y: Any) -> Any:
        # rounded, so that it does not matter how many rows there are
        return (((y * y) ** 2).mean(dim=1) ** 0.25).float().double()

    def votes(self, trees: Trees, rows: Any, of_leaf: np.ndarray) -> Any:
        return gpu.votes(trees, rows, of_leaf)

    def nearest(self, neighbourhood: Neighbourhood, rows: Any, *, enough: float) -> Any:
        del enough  # all rows are compared at once
        return neighbourhood.log_distance_of_tensor(rows)

    def predicted(self, predictions: Predictions, rows: Any, probability: np.ndarray) -> Any:
        return predictions.predicted_of_tensor(rows, probability)

    def fetched(self, values: Any) -> np.ndarray:
        return to_numpy(values)


NUMPY = NumPyBackend()


@cache
def backend_for(device: str) -> Backend:
    """The backend of a device: "cpu", "cuda", or "auto" for a GPU if there is one."""
    return NUMPY if device == "cpu" else TorchBackend(device)
