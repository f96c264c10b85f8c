"""What the networks here are trained for, in torch, and with its slopes in NumPy.

A criterion maps outputs (m, k, d) and the batch's indices (m,) to losses (m, k). One with
`value_and_slope`, of arrays (k, m, d), is trained without torch's gradients.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eqsep.losses import Loss


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

    def value_and_slope(
        self, output: np.ndarray, index: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        target, weight = self._arrays
        value, slope = self.loss.value_and_slope(output[..., 0], target[index], head=self.head)
        return weight[index] * value, (weight[index] * slope)[..., None]

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return self.inside[:, 0].numpy(), self.weight[:, 0].numpy()


@dataclass(frozen=True)
class Reconstruction:
    """The mean squared error over the columns of each row: that of an autoencoder."""

    columns: Tensor

    def __call__(self, output: Tensor, index: Tensor) -> Tensor:
        return ((output - self.columns[index][:, None, :]) ** 2).mean(dim=-1)

    def value_and_slope(
        self, output: np.ndarray, index: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        miss = output - self.columns.numpy()[index]
        return (miss**2).mean(axis=-1), 2 * miss / miss.shape[-1]


@dataclass(frozen=True)
class Attraction:
    """The distance of a normal row, 1 / distance of an anomaly; `far` and `weight` are (n, 1)."""

    far: Tensor
    weight: Tensor

    def __call__(self, output: Tensor, index: Tensor) -> Tensor:
        distance = output[..., 0]
        return self.weight[index] * torch.where(self.far[index], 1 / distance, distance)

    def value_and_slope(
        self, output: np.ndarray, index: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        far, weight = self.far.numpy()[index], self.weight.numpy()[index]
        value = np.where(far, 1 / output, output)
        slope = np.where(far, -(value**2), np.float32(1))
        return (weight * value)[..., 0], weight * slope
