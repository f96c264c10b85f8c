"""Tails: how rare a value is among those of normal rows, in powers of ten."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from eqsep.arrays import device, namespace
from eqsep.engine.loops import compiled
from eqsep.schemas import Kept, bounded

USUAL, EDGE = 0.90, 0.95  # shares of normal rows below the two knots
_NARROWEST = 0.01  # of a logarithm: closer values do not differ


@dataclass(frozen=True, eq=False)
class Tail(Kept):
    """-log10 of the share of normal rows beyond a value, less the 1 of one row in ten.

    0 for the lower nine tenths; linear up to the 95 % quantile; beyond it linear again, an
    exponential tail with the mean excess of the normal rows there, so that it never saturates.
    Values are logarithms: of distances, or of probabilities.
    """

    knots: np.ndarray  # (2, k): where the slope changes
    slopes: np.ndarray  # (2, k): by how much

    SCHEMAS: ClassVar = {
        "knots": bounded(2, "columns", dtype="float64"),
        "slopes": bounded(2, "columns", dtype="float64"),
    }

    @classmethod
    def of(cls, values: np.ndarray) -> Self:
        """The tail of each column of values of normal rows.  (n, k)"""
        usual, edge = np.quantile(values, [USUAL, EDGE], axis=0)
        edge = np.maximum(edge, usual + _NARROWEST)
        beyond = values > edge
        excess = np.where(beyond, values - edge, 0.0).sum(axis=0) / np.maximum(beyond.sum(0), 1)
        first = np.log10((1 - USUAL) / (1 - EDGE)) / (edge - usual)
        second = 1 / np.log(10) / np.maximum(excess, _NARROWEST)
        return cls(np.stack([usual, edge]), np.stack([first, second - first]))

    @property
    def n_columns(self) -> int:
        """Of how many columns of values it is."""
        return int(self.knots.shape[1])

    def __call__(self, values: Any) -> Any:
        """The tails of an array or a tensor.  (n, k) -> (n, k)"""
        if isinstance(values, np.ndarray):
            values = np.ascontiguousarray(values, dtype=float)
            out = np.empty(values.shape)
            _add_hinges(values, self.knots, self.slopes, out)
            return out
        xp = namespace(values)
        here = {"dtype": values.dtype, "device": device(values)}
        (low, high), (first, more) = (
            [xp.asarray(part, **here) for part in parts] for parts in (self.knots, self.slopes)
        )
        return xp.clip(values - low, min=0.0) * first + xp.clip(values - high, min=0.0) * more


@compiled
def _add_hinges(values: Any, knots: Any, slopes: Any, out: Any) -> None:
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            low = max(values[i, k] - knots[0, k], 0.0)
            out[i, k] = low * slopes[0, k] + max(values[i, k] - knots[1, k], 0.0) * slopes[1, k]
