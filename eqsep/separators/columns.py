"""What the network estimators share at their door: columns as tensors, pieces by name, counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from eqsep.activations import Activation
from eqsep.networks.fitting import clear_memory_errors
from eqsep.separators.planes import Frame

# eqsep.networks comes before torch, since it says what to install without it
# isort: split
import torch

from eqsep.errors import ParameterError, UserError

_FAR = 1e6  # standard deviations: beyond, all rows are equally far


@dataclass(frozen=True)
class Columns:
    """The columns as a network sees them: standardised, or as they are, within reach of floats."""

    frame: Frame

    @classmethod
    def of(cls, X: np.ndarray, *, standardize: bool) -> Self:
        """Learn the frame of the training rows."""
        if not standardize:
            return cls(Frame.identity(X.shape[1]))
        return cls(Frame.standard(X, np.full(len(X), 1 / len(X)), keep_constant=True))

    def tensor(
        self, X: np.ndarray, *, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> torch.Tensor:
        """The rows as a tensor.  (n, d) -> (n, d)"""
        with np.errstate(over="ignore"):  # a row beyond all floats is as far as any
            columns = np.clip(self.frame.columns(X), -_FAR, _FAR)
        with clear_memory_errors():
            return torch.as_tensor(columns, dtype=dtype, device=device)


@dataclass(frozen=True)
class Choice:
    """What a parameter may be: a name out of `known`, or an object of the class `kind`."""

    what: str
    known: Mapping[str, Any]
    kind: Any = Activation

    def made(self, piece: Any, *, sigma: float) -> Any:
        """The piece of that name, of width `sigma` where it has one, or a copy of the piece."""
        if isinstance(piece, str) and piece in self.known:
            named = self.known[piece]
            piece = named(sigma=sigma) if named.has_sigma else named()
        if not isinstance(piece, self.kind):
            raise UserError(
                f"{self.what} must be one of {sorted(self.known)} or an "
                f"eqsep.activations.{self.kind.__name__}, got {piece!r}."
            )
        if piece.has_sigma:
            check_positive(**{f"sigma of {self.what}": piece.sigma})
        return clone(piece)


def check_positive(**numbers: Any) -> None:
    """Refuse what is not a positive number."""
    for name, value in numbers.items():
        if not (isinstance(value, Real) and 0 < float(value) < np.inf):
            raise ParameterError(name, expected="a positive number", got=value)


def check_counts(**counts: Sequence[int]) -> None:
    """Refuse counts that are not whole numbers of at least one."""
    for name, values in counts.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise UserError(
                f"{name} must be a sequence of whole numbers, got {values!r}. "
                f"For one layer of 60 units write {name}=(60,)."
            )
        if not all(isinstance(v, int | np.integer) and v >= 1 for v in values):
            raise ParameterError(name, expected="whole numbers of at least 1", got=values)
