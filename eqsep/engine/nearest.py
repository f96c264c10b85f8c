"""The distance of rows to the nearest of some others, in units of what surrounds these."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep.arrays import WithoutCaches
from eqsep.engine import gpu
from eqsep.engine.kernels import SparseManhattan
from eqsep.engine.loops import compiled, in_threads
from eqsep.schemas import Kept, bounded

_NEIGHBOURS = 10  # whose mean distance is what surrounds a row
_ROWS_AT_ONCE = 128  # rows held as distances
_SIDE_BY_SIDE = 64  # rows that one is compared with before it may be near enough
_SHARE_NEARER = 0.99  # of rows are nearer to others than the handicap
LEAST = 2.0**-10  # of a scaled distance: what is nearer is equal, up to rounding
_NARROWEST = 1e-3  # surroundings, as a share of the rows' own size: closer rows are equal


@dataclass(frozen=True, eq=False)
class Neighbourhood(WithoutCaches, Kept):
    """Rows, each with the inverse of its surroundings.

    The surroundings of a row are the mean distance to its ten nearest, and twice the mean of that
    over all rows: where rows are sparse, more distance means less. Rows that may be
    anomalies have a handicap, so that what is near to them alone is not near.
    """

    rows: np.ndarray  # float32, (m, d)
    scale: np.ndarray  # float32, (m,)
    handicap: np.ndarray  # float32, (m,): what is added to scaled distances to a row

    SCHEMAS: ClassVar = {
        "rows": bounded("m", "d", dtype="float32"),
        "scale": bounded("m", dtype="float32"),
        "handicap": bounded("m", dtype="float32"),
    }

    @classmethod
    def of(cls, rows: np.ndarray, isolated: np.ndarray) -> tuple[Self, np.ndarray]:
        """The neighbourhood of rows, of which some are `isolated` and may be anomalies.

        And how far each of the others is from all, as `log_distance`. The handicap is the distance
        that a hundredth of them exceeds.
        """
        distances = SparseManhattan(rows)
        k, around = min(_NEIGHBOURS, len(rows) - 1), np.empty(len(rows))
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            between = distances(rows[first : first + _ROWS_AT_ONCE])
            nearest = np.sort(np.partition(between, k, axis=1)[:, : k + 1], axis=1)[:, 1:]
            around[first : first + _ROWS_AT_ONCE] = nearest.mean(axis=1)
        dense = np.argsort(around, kind="stable")  # first those that most rows are near to
        rows, isolated, around = rows[dense], isolated[dense], around[dense]
        distances = SparseManhattan(rows)
        narrowest = max(_NARROWEST * float(np.abs(rows).sum(axis=1).mean()), LEAST)
        scale = (1 / (around + max(2 * float(np.mean(around)), narrowest))).astype(np.float32)
        alone, usual = np.empty(len(rows)), np.where(isolated, np.inf, 0).astype(np.float32)
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            scaled = distances(rows[first : first + _ROWS_AT_ONCE]) * scale + usual
            here = np.arange(len(scaled))
            scaled[here, first + here] = np.inf
            alone[first : first + _ROWS_AT_ONCE] = scaled.min(axis=1)
        alone = np.maximum(alone, LEAST)
        far = np.quantile(alone[~isolated], _SHARE_NEARER)
        handicap = np.where(isolated, far, 0.0).astype(np.float32)
        back = np.argsort(dense)  # in the order in which the rows came
        return cls(rows, scale, handicap), np.log(alone[back][~isolated[back]])

    def fits(self, *, n_columns: int) -> bool:
        """Whether distances of rows of so many columns are finite, and at least 0."""
        return (
            len(self.rows) > 0
            and self.rows.shape[1] == n_columns
            and float(self.scale.min()) > 0
            and float(self.scale.max()) <= 1 / LEAST
            and float(self.handicap.min()) >= 0
        )

    def log_distance(self, rows: np.ndarray, *, enough: float = -np.inf) -> np.ndarray:
        """The logarithm of the least scaled distance of each row.  (n, d) -> (n,)

        Of rows nearer than `enough`, one that is: they need not be compared with all others.
        """
        blocks, scale, handicap = self._blocks
        rows, out = np.ascontiguousarray(rows, dtype=np.float32), np.empty(len(rows), np.float32)
        limits = np.float32(LEAST), np.float32(np.exp(enough))

        def fill(some: slice) -> None:
            _nearest(rows[some], blocks, scale, handicap, *limits, out[some])

        in_threads(fill, len(rows), steps=rows.size * len(self.rows) // 4, most=_ROWS_AT_ONCE)
        return np.asarray(np.log(np.maximum(out.astype(float), LEAST)))

    def log_distance_of_tensor(self, rows: Any) -> Any:
        """The same of a tensor, on its device."""
        import torch

        here = {"device": rows.device, "dtype": rows.dtype}
        parts = (self.rows, self.scale, self.handicap)
        others, scale, handicap = (torch.as_tensor(part, **here) for part in parts)
        least = gpu.least(rows, others, scale, handicap, lowest=LEAST)
        return least.double().clip(LEAST).log()

    @cached_property
    def has_handicap(self) -> bool:
        """Whether there are rows that may be anomalies."""
        return bool(self.handicap.any())

    @cached_property
    def _blocks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows in blocks, side by side, the last filled with rows that are infinitely far."""
        m, d = self.rows.shape
        spare = -m % _SIDE_BY_SIDE
        rows = np.concatenate([self.rows, np.zeros((spare, d), np.float32)])
        blocks = np.ascontiguousarray(rows.reshape(-1, _SIDE_BY_SIDE, d).transpose(0, 2, 1))
        scale = np.append(self.scale, np.ones(spare, np.float32)).reshape(-1, _SIDE_BY_SIDE)
        far = np.append(self.handicap, np.full(spare, np.inf, np.float32))
        return blocks, scale, far.reshape(-1, _SIDE_BY_SIDE)


@compiled
def _nearest(
    X: Any, blocks: Any, scale: Any, handicap: Any, lowest: Any, enough: Any, out: Any
) -> None:
    width = blocks.shape[2]
    total = np.empty(width, np.float32)
    for i in range(X.shape[0]):
        least = np.float32(np.inf)
        for b in range(blocks.shape[0]):
            for j in range(width):
                total[j] = 0.0
            for k in range(blocks.shape[1]):
                x = X[i, k]
                for j in range(width):
                    total[j] += abs(x - blocks[b, k, j])
            for j in range(width):
                distance = max(total[j] * scale[b, j], lowest) + handicap[b, j]
                if distance < least:
                    least = distance
            if least <= enough:
                break
        out[i] = least
