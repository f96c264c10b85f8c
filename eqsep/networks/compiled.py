"""Networks as the compiled loop of an epoch has them, and the steps that it takes.

A network is read off module by module into numbers; where one of them, or the criterion, is none
that the loop knows, there is no reading, and the steps are torch's.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn

from eqsep import activations
from eqsep.engine.loops import in_threads
from eqsep.networks import loops
from eqsep.networks.criteria import Unknown, check_known
from eqsep.networks.layers import BatchNorm, Bump, Distance, LeakyReLU, Linear, RadialBasis
from eqsep.networks.network import Network
from eqsep.networks.plan import Criterion, Data, Training


class Reading:
    """What the loop needs of a network: its layers as numbers, and the tensors behind them."""

    def __init__(self, network: Network, *, width: int, l2: float) -> None:
        self._width = width  # of what the next layer takes
        self._ops: list[Sequence[int]] = []
        self._constants: list[Sequence[float]] = []
        self.parameters: list[Tensor] = []
        self.statistics: list[Tensor] = []
        for module in (*_leaves(network.hidden), *_leaves(network.output)):
            check_known(module, _READERS)
            _READERS[type(module)](self, module)
        if any(t.dtype != torch.float32 for t in (*self.parameters, *self.statistics)):
            raise Unknown("the compiled loop works in single precision")
        matrices = {id(weight) for weight in network.penalised()}
        sizes = [prod(t.shape[1:]) for t in self.parameters]
        moves = [p.requires_grad for p in self.parameters]
        decay = [2 * l2 * (id(p) in matrices) for p in self.parameters]
        self.layers = loops.Layers(
            np.array(self._ops, dtype=np.int64),
            np.array(self._constants, dtype=np.float32),
            np.repeat(moves, sizes).astype(np.float32),
            np.repeat(decay, sizes).astype(np.float32),
        )

    def add(
        self,
        which: int,
        *,
        width: int | None = None,
        parameters: Sequence[Tensor] = (),
        statistics: Sequence[Tensor] = (),
        constants: Sequence[float] = (),
    ) -> None:
        """One more layer, as wide as the one before unless a width is given."""
        d_in, self._width = self._width, self._width if width is None else width
        at = [_place(self.parameters, p) for p in parameters]
        seat = [_place(self.statistics, s) for s in statistics]
        self._ops.append([which, d_in, self._width, *[*at, -1, -1][:2], *[*seat, -1][:1]])
        self._constants.append([*constants, 0.0, 0.0][:2])


def _place(tensors: list[Tensor], one: Tensor) -> int:
    """Where the numbers of a member begin in `one`, which comes after the others."""
    before = sum(prod(t.shape[1:]) for t in tensors)
    tensors.append(one)
    return before


def _leaves(module: nn.Module) -> list[nn.Module]:
    """The modules of nested sequences, in their order."""
    if not isinstance(module, nn.Sequential):
        return [module]
    return [leaf for part in module for leaf in _leaves(part)]


def _linear(reading: Reading, layer: Any) -> None:
    own = [layer.weight] if layer.bias is None else [layer.weight, layer.bias]
    reading.add(loops.LINEAR, width=layer.weight.shape[2], parameters=own)


def _radial(reading: Reading, layer: Any) -> None:
    gamma, width = 0.0 if layer.distance else layer.head.gamma, layer.centre.shape[2]
    reading.add(loops.RADIAL, width=width, parameters=[layer.centre], constants=[gamma])


def _norm(reading: Reading, layer: Any) -> None:
    reading.add(
        loops.NORM,
        parameters=[layer.weight, layer.bias],
        statistics=[layer.mean, layer.variance],
        constants=[layer.eps, layer.momentum],
    )


def _bump(reading: Reading, layer: Any) -> None:
    check_known(layer.head, [activations.GaussianBump])
    reading.add(loops.BUMP, parameters=[layer.sigma], constants=[layer.head.mu])


def _leaky(reading: Reading, layer: Any) -> None:
    reading.add(loops.LEAKY, constants=[layer.head.leak])


def _distance(reading: Reading, layer: Any) -> None:
    guard = layer.guard**2
    reading.add(loops.DISTANCE, width=1, statistics=[layer.centre], constants=[guard])


_READERS: dict[type, Callable[[Reading, Any], None]] = {
    Linear: _linear,
    RadialBasis: _radial,
    BatchNorm: _norm,
    Bump: _bump,
    LeakyReLU: _leaky,
    Distance: _distance,
}


class CompiledSteps:
    """A step of Adam for each batch of an epoch, member after member, in compiled code."""

    def __init__(
        self, network: Network, data: Data, criterion: Criterion, training: Training
    ) -> None:
        """Raises `Unknown` where the loop does not know the network or the criterion."""
        if not hasattr(criterion, "task"):
            raise Unknown("the compiled loop knows no criterion of others")
        self._task, self._training = criterion.task(data.X), training
        self._network, self._batch = network, training.batch_rows(len(data.rows))
        self._n_steps, self._blas = 0, ThreadpoolController()
        reading = self._read()
        k = len(reading.parameters[0])
        own, seen = (_in_rows(part, k) for part in (reading.parameters, reading.statistics))
        self._state = loops.State(own, np.zeros_like(own), np.zeros_like(own), seen)

    def _read(self) -> Reading:
        width = self._task.X.shape[1]
        self._reading = Reading(self._network, width=width, l2=self._training.l2)
        return self._reading

    def renew(self, going: Tensor) -> None:
        """Go on with some of the members: their weights are new tensors, their moments follow."""
        self._read()
        self._state = loops.State(*(part[going.numpy()] for part in self._state))

    def epoch(self, order: Tensor) -> Tensor:
        """A step for each batch of `order`; each member's mean loss.  -> (k,)"""
        plan, rows, layers = self._training, order.numpy(), self._reading.layers
        steps = self._n_steps + np.arange(-(-len(rows) // self._batch))
        rates = plan.learning_rate * plan.decay ** (steps // plan.decay_steps)
        course = loops.Course(rows, self._batch, rates, self._n_steps)
        losses = np.zeros(len(self._state.parameters))

        def work(some: slice) -> None:
            state = loops.State(*(part[some] for part in self._state))
            losses[some] = loops.epoch(layers, state, self._task, course)

        with self._blas.limit(limits=1, user_api="blas"):
            in_threads(work, len(losses), steps=len(rows) * self._state.parameters.size)
        self._n_steps += len(rates)
        _give_back(self._state.parameters, self._reading.parameters)
        _give_back(self._state.statistics, self._reading.statistics)
        return torch.as_tensor(losses / len(rows), dtype=torch.float32)


def _in_rows(tensors: list[Tensor], k: int) -> np.ndarray:
    """All numbers of a member in a row, of no tensors none.  -> (k, p)"""
    flat = [tensor.detach().numpy().reshape(k, -1) for tensor in tensors]
    return np.concatenate([np.empty((k, 0), dtype=np.float32), *flat], axis=1)


@torch.no_grad()
def _give_back(rows: np.ndarray, tensors: list[Tensor]) -> None:
    """The reverse: into the tensors, in place."""
    at = 0
    for tensor in tensors:
        size = prod(tensor.shape[1:])
        tensor.copy_(torch.from_numpy(rows[:, at : at + size]).view_as(tensor))
        at += size
