"""The layers of all members in NumPy, forwards and backwards, and Adam over them.

Networks of this size are bound by the number of calls, and a call of NumPy costs a fraction of one
of torch with its gradient. Arrays are (k, n, d): members, rows, columns.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from math import prod, sqrt
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn

from eqsep.networks import layers
from eqsep.networks.training import Criterion, Data, Training

_BETAS, _EPS = (0.9, 0.999), 1e-8  # Adam's own


class Unknown(Exception):
    """A module or criterion without slopes in NumPy."""


class _Part(ABC):
    """A layer: `values` are the arrays of its tensors, `slopes` where those of them go."""

    learnt: tuple[str, ...] = ()  # the names of its tensors
    is_first = False  # of all layers: the slopes in its inputs are not needed

    def __init__(self, module: Any) -> None:
        self.module = module
        named = [getattr(module, name) for name in self.learnt]
        self.tensors: list[Tensor] = [tensor for tensor in named if tensor is not None]
        self.values: list[np.ndarray] = []
        self.slopes: list[np.ndarray] = []

    @abstractmethod
    def forward(self, x: np.ndarray) -> np.ndarray:
        """The outputs; what the slopes need is kept."""

    @abstractmethod
    def backward(self, sy: np.ndarray) -> np.ndarray:
        """From the slopes in the outputs to those in the tensors, and in the inputs."""


class _Linear(_Part):
    learnt = ("weight", "bias")

    def forward(self, x: np.ndarray) -> np.ndarray:
        self._x = x
        y = x @ self.values[0]
        for bias in self.values[1:]:
            y += bias[:, None]
        return y

    def backward(self, sy: np.ndarray) -> np.ndarray:
        np.matmul(self._x.swapaxes(-1, -2), sy, out=self.slopes[0])
        for slope in self.slopes[1:]:
            sy.sum(axis=1, out=slope)
        return sy if self.is_first else sy @ self.values[0].swapaxes(1, 2)


class _RadialBasis(_Part):
    learnt = ("centre",)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self._x, centre = x, self.values[0]
        square = (x**2).sum(axis=-1, keepdims=True) - 2 * (x @ centre)
        square += (centre**2).sum(axis=1, keepdims=True)
        r = np.sqrt(np.maximum(square, 0) + 1e-12)
        if self.module.distance:
            self._slope = 0.5 / r  # in r²
            return r
        y, slope = self.module.head.value_and_slope(r)
        self._slope = slope * (0.5 / r)
        return y

    def backward(self, sy: np.ndarray) -> np.ndarray:
        x, centre, squares = self._x, self.values[0], sy * self._slope
        slope = centre * squares.sum(axis=1, keepdims=True)
        np.multiply(2, slope - x.swapaxes(-1, -2) @ squares, out=self.slopes[0])
        if self.is_first:
            return sy
        return 2 * (x * squares.sum(axis=-1, keepdims=True) - squares @ centre.swapaxes(1, 2))


class _BatchNorm(_Part):
    learnt = ("weight", "bias")

    def forward(self, x: np.ndarray) -> np.ndarray:
        mean = x.mean(axis=1, keepdims=True)
        centred = x - mean
        variance = (centred**2).mean(axis=1, keepdims=True)
        self._inverse = 1 / np.sqrt(variance + self.module.eps)
        self._unit = centred * self._inverse
        for kept, new in ((self.module.mean, mean), (self.module.variance, variance)):
            statistic = kept.numpy()  # the same memory
            statistic += (1 - self.module.momentum) * (new[:, 0] - statistic)
        scale, shift = self.values
        return self._unit * scale[:, None] + shift[:, None]

    def backward(self, sy: np.ndarray) -> np.ndarray:
        scale, shift = self.slopes
        np.sum(sy * self._unit, axis=1, out=scale)
        np.sum(sy, axis=1, out=shift)
        along = (shift[:, None] + self._unit * scale[:, None]) / sy.shape[1]
        return self.values[0][:, None] * self._inverse * (sy - along)


class _Activate(_Part):
    def forward(self, x: np.ndarray) -> np.ndarray:
        y, self._slope = self.module.head.value_and_slope(x)
        return y

    def backward(self, sy: np.ndarray) -> np.ndarray:
        return sy * self._slope


class _Bump(_Part):
    learnt = ("sigma",)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self._head = replace(self.module.head, sigma=self.values[0][:, None])
        y, self._slope = self._head.value_and_slope(x)
        self._from_peak = x - getattr(self._head, "mu", 0.0)
        return y

    def backward(self, sy: np.ndarray) -> np.ndarray:
        sx = sy * self._slope
        for slope in self.slopes:  # a bump is a function of (x - mu) / sigma
            np.divide((sx * self._from_peak).sum(axis=(1, 2))[:, None], -self.values[0], out=slope)
        return sx


class _Distance(_Part):
    def forward(self, x: np.ndarray) -> np.ndarray:
        self._away = x - self.module.centre.numpy()[:, None]
        self._y = np.sqrt((self._away**2).sum(axis=-1, keepdims=True) + self.module.guard**2)
        return self._y

    def backward(self, sy: np.ndarray) -> np.ndarray:
        return sy / self._y * self._away


_PARTS: dict[type, type[_Part]] = {
    layers.Linear: _Linear,
    layers.RadialBasisLayer: _RadialBasis,
    layers.BatchNorm: _BatchNorm,
    layers.Bump: _Bump,
    **{layers.LeakyReLULayer: _Activate, layers.Activate: _Activate, layers.Distance: _Distance},
}


def _leaves(module: nn.Module) -> list[nn.Module]:
    """The modules of nested sequences, in their order."""
    if not isinstance(module, nn.Sequential):
        return [module]
    return [leaf for part in module for leaf in _leaves(part)]


class ArraySteps:
    """A step of Adam for each batch of an epoch, all members side by side in NumPy."""

    def __init__(
        self, network: layers.Network, data: Data, criterion: Criterion, training: Training
    ) -> None:
        """Raises `Unknown` where the network or the criterion has no slopes here."""
        if not hasattr(criterion, "value_and_slope"):
            raise Unknown(f"no slopes are known of {criterion!r}")
        self._network, self._criterion, self._training = network, criterion, training
        self._X, self._batch = data.X.numpy(), training.batch_rows(len(data.rows))
        self._n_steps, self._blas = 0, ThreadpoolController()
        self._read()
        self._first, self._second = np.zeros_like(self._values), np.zeros_like(self._values)

    def _read(self) -> None:
        """The parts of the network; what is learnt of a member is one row of `_values`."""
        modules = [*_leaves(self._network.hidden), *_leaves(self._network.output)]
        unknown = [type(module).__name__ for module in modules if type(module) not in _PARTS]
        if unknown:
            raise Unknown(f"no slopes are known of {', '.join(unknown)}")
        self._parts = [_PARTS[type(module)](module) for module in modules]
        self._parts[0].is_first = True
        if any(t.dtype != torch.float32 for t in self._network.state_dict().values()):
            raise Unknown("networks in double precision are trained by torch")
        learnt = [t for part in self._parts for t in part.tensors if t.requires_grad]
        rows = [_array(t).reshape(len(t), prod(t.shape[1:])) for t in learnt]
        self._values = np.concatenate(rows, axis=1)
        self._slopes = np.zeros_like(self._values)
        matrices = {id(weight) for weight in self._network.penalised()}
        decay = [2 * self._training.l2 * (id(tensor) in matrices) for tensor in learnt]
        self._decay = np.repeat(decay, [row.shape[1] for row in rows]).astype(np.float32)
        at = 0
        for part in self._parts:
            for tensor in part.tensors:
                if not tensor.requires_grad:
                    part.values.append(_array(tensor))
                    continue
                own = slice(at, at := at + prod(tensor.shape[1:]))
                part.values.append(self._values[:, own].reshape(tensor.shape))
                part.slopes.append(self._slopes[:, own].reshape(tensor.shape))

    def renew(self, going: Tensor) -> None:
        """Go on with some of the members: their weights are new tensors, their moments follow."""
        self._read()
        self._first, self._second = self._first[going.numpy()], self._second[going.numpy()]

    @np.errstate(all="ignore")  # a loss that is not finite ends the training of its member
    def epoch(self, order: Tensor) -> Tensor:
        """A step for each batch of `order`; each member's mean loss.  -> (k,)"""
        total = np.zeros(len(self._values))
        with self._blas.limit(limits=1, user_api="blas"):  # the same bits in any number of threads
            for index in np.split(order.numpy(), range(self._batch, len(order), self._batch)):
                total += self._step(index)
        for part in self._parts:
            for tensor, values in zip(part.tensors, part.values, strict=True):
                tensor.data.copy_(torch.from_numpy(values))
        return torch.as_tensor(total / len(order), dtype=torch.float32)

    def _step(self, index: np.ndarray) -> np.ndarray:
        """One step on the rows `index`; each member's summed loss before it.  -> (k,)"""
        y = self._X[index]
        for part in self._parts:
            y = part.forward(y)
        losses, slopes = self._criterion.value_and_slope(y, index)
        slopes = slopes / np.float32(len(index))
        for part in reversed(self._parts):
            slopes = part.backward(slopes)
        self._adam()
        return losses.sum(axis=1)

    def _adam(self) -> None:
        (b1, b2), rate = _BETAS, self._training.rate(self._n_steps)
        self._n_steps += 1
        root = sqrt(1 - b2**self._n_steps)
        slopes = self._slopes + self._decay * self._values if self._training.l2 else self._slopes
        self._first += (1 - b1) * (slopes - self._first)
        self._second += (1 - b2) * (slopes * slopes - self._second)
        size = rate * root / (1 - b1**self._n_steps)
        self._values -= size * self._first / (np.sqrt(self._second) + _EPS * root)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()
