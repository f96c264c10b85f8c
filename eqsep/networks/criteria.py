"""What the networks here are trained for, in torch, and as the compiled loop has it.

A criterion maps the outputs of a network for a batch (m, k, d) and the batch's indices (m,) to
losses (m, k). One with a `task` can be trained by compiled code.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eqsep import activations
from eqsep.losses import LogisticLoss, Loss, SquaredLoss
from eqsep.networks import compiled


class Unknown(Exception):
    """Something that the compiled loop does not know."""


def check_known(part: Any, known: Any) -> None:
    """Raise `Unknown` for what is of no type in `known`; a subclass may be anything."""
    if type(part) not in known:
        raise Unknown(f"the compiled loop knows no {type(part).__name__}")


_LOSSES: dict[type, int] = {LogisticLoss: compiled.LOGISTIC, SquaredLoss: compiled.SQUARED}
_HEADS: dict[type, tuple[int, Callable[[Any], Sequence[float]]]] = {
    activations.GaussianBump: (compiled.EXPONENTIAL, lambda head: (0.5 / head.sigma**2, head.mu)),
    activations.RadialBasis: (compiled.EXPONENTIAL, lambda head: (head.gamma, 0.0)),
    activations.Sigmoid: (compiled.SIGMOID, lambda head: (0.0, 0.0)),  # noqa: ARG005  it has none
}


@dataclass(frozen=True)
class MembershipLoss:
    """The weighted loss of head(z) against who is inside; `inside` and `weight` are (n, 1)."""

    inside: Tensor
    weight: Tensor
    loss: Loss
    head: Any

    def __call__(self, output: Tensor, index: Tensor) -> Tensor:
        target = self.inside[index]
        return self.weight[index] * self.loss(output[..., 0], target, head=self.head)

    def task(self, X: Tensor) -> compiled.Task:
        """What the compiled loop needs of it."""
        check_known(self.loss, _LOSSES)
        check_known(self.head, _HEADS)
        columns = (X, self.inside[:, 0], self.weight[:, 0])
        head, numbers = _HEADS[type(self.head)]
        return _task(*columns, _LOSSES[type(self.loss)], head, numbers(self.head))


@dataclass(frozen=True)
class Reconstruction:
    """The mean squared error over the columns of each row: that of an autoencoder."""

    columns: Tensor

    def __call__(self, output: Tensor, index: Tensor) -> Tensor:
        return ((output - self.columns[index][:, None, :]) ** 2).mean(dim=-1)

    def task(self, X: Tensor) -> compiled.Task:
        """What the compiled loop needs of it: there, rows are their own targets."""
        ones = torch.ones(len(X))
        return _task(X, ones, ones, compiled.RECONSTRUCTION)


@dataclass(frozen=True)
class Attraction:
    """The distance of a normal row, 1 / distance of an anomaly; `far` and `weight` are (n, 1)."""

    far: Tensor
    weight: Tensor

    def __call__(self, output: Tensor, index: Tensor) -> Tensor:
        distance = output[..., 0]
        return self.weight[index] * torch.where(self.far[index], 1 / distance, distance)

    def task(self, X: Tensor) -> compiled.Task:
        """What the compiled loop needs of it."""
        return _task(X, self.far[:, 0], self.weight[:, 0], compiled.ATTRACTION)


def _task(
    X: Tensor,
    target: Tensor,
    weight: Tensor,
    criterion: int,
    head: int = 0,
    numbers: Sequence[float] = (0.0, 0.0),
) -> compiled.Task:
    rows, targets, weights = (
        tensor.numpy().astype(np.float32, copy=False) for tensor in (X, target, weight)
    )
    return compiled.Task(rows, targets, weights, criterion, head, np.array(numbers, dtype=float))
