"""What the network estimators share at their door: columns as tensors, pieces by name, counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import clone

from eqsep.separators.planes import Frame

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
        columns = np.clip(self.frame.columns(X), -_FAR, _FAR)
        return torch.as_tensor(columns, dtype=dtype, device=device)


def named(piece: Any, known: Mapping[str, type], *, what: str, sigma: float) -> Any:
    """A piece by its name, of width `sigma` where it has one, or a copy of the piece itself."""
    if not isinstance(piece, str):
        return clone(piece)
    if piece not in known:
        raise ValueError(f"{what} must be one of {sorted(known)} or an object, got {piece!r}.")
    made = known[piece]
    return made(sigma=sigma) if "sigma" in {f.name for f in fields(made)} else made()


def check_counts(**counts: Sequence[int]) -> None:
    """Refuse counts that are not whole numbers of at least one."""
    for name, values in counts.items():
        if not all(isinstance(v, int | np.integer) and v >= 1 for v in values):
            raise ValueError(f"{name} must be whole numbers of at least 1, got {values!r}.")
