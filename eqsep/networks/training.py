"""How networks are trained, for what, on which data, and what happened."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from eqsep.errors import UserError, UserTypeError
from eqsep.losses import Loss

# A criterion maps outputs (m, k, d) and the batch's indices (m,) to losses (m, k). One with
# `value_and_slope`, of arrays (k, m, d), is trained in NumPy, without torch's gradients.
Criterion = Callable[[Tensor, Tensor], Tensor]
Pair = tuple[np.ndarray, np.ndarray]
Progress = Callable[[int, int], None]


@dataclass
class Training(BaseEstimator):
    """How networks are trained.

    Parameters
    ----------
    epochs : int
        At most this many passes over the rows.
    batch_size : int, optional
        A thousandth of the rows, but at least 32 and at most 512, unless given.
    learning_rate : float
        Adam's.
    decay, decay_steps : float, int
        The learning rate is multiplied by `decay` after every `decay_steps` steps.
    l2 : float
        The penalty l2 · ||w||² of each member's weight matrices, and of nothing else.
    patience : int
        A member stops when its validation loss has not fallen for so many epochs, and goes back to
        its best weights.
    validation_fraction : float
        The share of rows held out for that; 0 trains on all rows, for all epochs.
    stratify : bool
        Whether the held-out rows have the classes in proportion, in random order; otherwise they
        are the last rows as they come.
    balanced : bool
        Whether both classes count the same, however many rows they have.
    """

    epochs: int = 200
    batch_size: int | None = None
    learning_rate: float = 3e-3
    decay: float = 1.0
    decay_steps: int = 1000
    l2: float = 0.0
    patience: int = 20
    validation_fraction: float = 0.1
    stratify: bool = True
    balanced: bool = False

    def batch_rows(self, n: int) -> int:
        """The rows of a batch, out of `n`."""
        return min(max(n // 1000, 32), 512) if self.batch_size is None else self.batch_size

    def rate(self, n_steps: int) -> float:
        """The learning rate after so many steps."""
        return self.learning_rate * self.decay ** (n_steps // self.decay_steps)

    def check(self) -> Self:
        """Refuse numbers that make no training, and say which were expected."""
        for name, (holds, expected) in _EXPECTED.items():
            value = getattr(self, name)
            if not holds(value) and not (name == "batch_size" and value is None):
                raise UserError(f"{name} of the training must be {expected}, got {value!r}.")
        return self


def _is_at_least_zero(value: Any) -> bool:
    return isinstance(value, Real) and 0 <= float(value) < inf


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("epochs", "batch_size", "decay_steps", "patience"),
        (lambda v: isinstance(v, Integral) and int(v) >= 1, "a whole number of at least 1"),
    ),
    "learning_rate": (lambda v: _is_at_least_zero(v) and v > 0, "a positive number"),
    **dict.fromkeys(("decay", "l2"), (_is_at_least_zero, "a number of at least 0")),
    "validation_fraction": (lambda v: _is_at_least_zero(v) and v < 1, "a number in [0, 1)"),
}


def as_training(training: Training | None) -> Training:
    """The training that was asked for, checked; the default one where none was."""
    if training is None:
        return Training()
    if not isinstance(training, Training):
        got = f"training must be an eqsep.networks.Training or None, got {training!r}"
        raise UserError(f"{got}. Write for example training=Training(epochs=100).")
    return training.check()


def check_progress(progress: Any) -> None:
    """Refuse what cannot be called as progress(done, total) after each epoch."""
    if progress is not None and not callable(progress):
        raise UserTypeError(
            f"progress must be None or a function that takes (done, total), got {progress!r}."
        )


@dataclass(frozen=True)
class TrainingHistory:
    """What happened in each epoch to each member; NaN once a member has stopped."""

    loss: np.ndarray  # (epochs, k)
    validation_loss: np.ndarray  # the same, NaN throughout where no rows were held out
    sigma: np.ndarray  # the widths of the hidden bumps, (epochs, layers, k)
    best_epoch: np.ndarray  # (k,), from 0, whose weights were kept; -1 without a finite loss


class Data(NamedTuple):
    """The columns (n, d) as the networks see them, the rows to train on and those held out."""

    X: Tensor
    rows: Tensor
    held_out: Tensor


@dataclass(frozen=True)
class MembershipLoss:
    """The weighted loss of head(z) against who is inside; `inside` and `weight` are (n, 1)."""

    inside: Tensor
    weight: Tensor
    loss: Loss
    head: Any

    def __call__(self, output: Tensor, index: Tensor) -> Tensor:
        return self.weight[index] * self.loss(output[..., 0], self.inside[index], head=self.head)

    def value_and_slope(self, output: np.ndarray, index: np.ndarray) -> Pair:
        target, weight = self._arrays
        value, slope = self.loss.value_and_slope(output[..., 0], target[index], head=self.head)
        return weight[index] * value, (weight[index] * slope)[..., None]

    @cached_property
    def _arrays(self) -> Pair:
        return self.inside[:, 0].numpy(), self.weight[:, 0].numpy()


@dataclass(frozen=True)
class Reconstruction:
    """The mean squared error over the columns of each row: that of an autoencoder."""

    columns: Tensor

    def __call__(self, output: Tensor, index: Tensor) -> Tensor:
        return ((output - self.columns[index][:, None, :]) ** 2).mean(dim=-1)

    def value_and_slope(self, output: np.ndarray, index: np.ndarray) -> Pair:
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

    def value_and_slope(self, output: np.ndarray, index: np.ndarray) -> Pair:
        far, weight = self.far.numpy()[index], self.weight.numpy()[index]
        value = np.where(far, 1 / output, output)
        slope = np.where(far, -(value**2), np.float32(1))
        return (weight * value)[..., 0], weight * slope
