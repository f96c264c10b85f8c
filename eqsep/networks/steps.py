"""Adam's steps over an epoch: by torch, captured once as a CUDA graph, or in compiled code.

For compiled code a network is read module by module into numbers. Where the compiled loop does not
know one of them, or the criterion, torch takes the steps.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn
from torch.optim import Adam

from eqsep import activations
from eqsep.engine.loops import in_threads
from eqsep.networks import compiled
from eqsep.networks.criteria import Unknown, check_known
from eqsep.networks.layers import (
    BatchNorm,
    Bump,
    Distance,
    LeakyReLU,
    Linear,
    Network,
    RadialBasis,
)
from eqsep.networks.training import Criterion, Data, Training


class Steps:
    """A step of Adam for each batch of an epoch, all members in one product."""

    def __init__(
        self, network: Network, data: Data, criterion: Criterion, training: Training
    ) -> None:
        self._network, self._X, self._criterion = network, data.X, criterion
        self._training, self._batch = training, training.batch_rows(len(data.rows))
        self._n_steps = 0
        self._adam = self._new_adam()

    def _new_adam(self) -> Adam:
        """Adam of all that is learnt, with the penalty l2 · ||w||² (slope 2 l2 w) of matrices."""
        l2, learnt = self._training.l2, [p for p in self._network.parameters() if p.requires_grad]
        matrices = {id(weight) for weight in self._network.penalised()} if l2 else set()
        groups: list[dict[str, Any]] = [
            {"params": [p for p in learnt if id(p) in matrices], "weight_decay": 2 * l2},
            {"params": [p for p in learnt if id(p) not in matrices]},
        ]
        return Adam([group for group in groups if group["params"]], fused=True)

    def _rate(self) -> float | Tensor:
        """The learning rate of the step to come."""
        plan = self._training
        return plan.learning_rate * plan.decay ** (self._n_steps // plan.decay_steps)

    def renew(self, going: Tensor) -> None:
        """Go on with some of the members: their weights are new tensors, their moments follow."""
        before, self._adam = self._adam, self._new_adam()
        for then, now in zip(_moved(before), _moved(self._adam), strict=True):
            self._adam.state[now] = {
                name: value[going] if value.ndim else value  # a count of steps has no members
                for name, value in before.state[then].items()
            }

    def step(self, index: Tensor) -> Tensor:
        """One step on the rows `index`; each member's summed loss before it.  -> (k,)"""
        losses = self._criterion(self._network(self._X[index]), index).sum(dim=0)
        self._adam.zero_grad()
        (losses.sum() / len(index)).backward()
        self._adam.step()
        return losses.detach()

    def epoch(self, order: Tensor) -> Tensor:
        """A step for each batch of `order`; each member's mean loss.  -> (k,)"""
        total = torch.zeros((), device=order.device)
        for index in order.split(self._batch):
            _set(self._adam, lr=self._rate())
            total = total + self._advance(index)
            self._n_steps += 1
        return total / len(order)

    def _advance(self, index: Tensor) -> Tensor:
        """How a step of an epoch is taken: as it is."""
        return self.step(index)


class GraphSteps(Steps):
    """The same steps, captured as a CUDA graph: tiny networks are bound by launches, not by work.

    The first full batches of a set of members run as they are, which warms up what a capture needs;
    the step is then captured and replayed, until a member leaves.
    """

    warm_up = 3

    def __init__(
        self, network: Network, data: Data, criterion: Criterion, training: Training
    ) -> None:
        super().__init__(network, data, criterion, training)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm, self._held_rate = 0, torch.zeros((), device=data.X.device)

    def _rate(self) -> Tensor:
        return self._held_rate.fill_(super()._rate())  # a tensor, which the graph reads

    def renew(self, going: Tensor) -> None:
        super().renew(going)
        self._graph, self._warm = None, 0

    def _advance(self, index: Tensor) -> Tensor:
        """A full batch as it is while warming up, from the graph afterwards; the rest as it is."""
        if len(index) < self._batch:
            return self.step(index)
        if self._warm < self.warm_up:
            self._warm += 1
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                losses = self.step(index)
            torch.cuda.current_stream().wait_stream(stream)
            return losses
        if self._graph is None:
            self._index, self._graph = index.clone(), torch.cuda.CUDAGraph()
            _set(self._adam, capturable=True)
            with torch.cuda.graph(self._graph):
                self._losses = self.step(self._index)
            _set(self._adam, capturable=False)  # of steps that are not captured torch warns
        self._index.copy_(index)
        self._graph.replay()
        return self._losses


def _moved(adam: Adam) -> list[Tensor]:
    """The tensors that `adam` moves."""
    return [tensor for group in adam.param_groups for tensor in group["params"]]


def _set(adam: Adam, **options: Any) -> None:
    """Give all groups of tensors of `adam` the same options."""
    for group in adam.param_groups:
        group.update(options)


class _Op(NamedTuple):
    """A layer as the loop has it; without a width, it is as wide as the layer before."""

    which: int
    width: int | None = None
    parameters: Sequence[Tensor] = ()
    statistics: Sequence[Tensor] = ()
    constants: Sequence[float] = ()


def _bump(layer: Any) -> _Op:
    check_known(layer.head, [activations.GaussianBump])
    return _Op(compiled.BUMP, parameters=[layer.sigma], constants=[layer.head.mu])


_OPS: dict[type, Callable[[Any], _Op]] = {
    Linear: lambda layer: _Op(
        compiled.LINEAR,
        layer.weight.shape[2],
        [layer.weight] if layer.bias is None else [layer.weight, layer.bias],
    ),
    RadialBasis: lambda layer: _Op(
        compiled.RADIAL,
        layer.centre.shape[2],
        [layer.centre],
        constants=[0.0 if layer.distance else layer.head.gamma],
    ),
    BatchNorm: lambda layer: _Op(
        compiled.NORM,
        parameters=[layer.weight, layer.bias],
        statistics=[layer.mean, layer.variance],
        constants=[layer.eps, layer.momentum],
    ),
    Bump: _bump,
    LeakyReLU: lambda layer: _Op(compiled.LEAKY, constants=[layer.head.leak]),
    Distance: lambda layer: _Op(
        compiled.DISTANCE, 1, statistics=[layer.centre], constants=[layer.guard**2]
    ),
}


class Reading(NamedTuple):
    """What the loop needs of a network: its layers as numbers, and the tensors behind them."""

    layers: compiled.Layers
    parameters: list[Tensor]
    statistics: list[Tensor]


def read(network: Network, *, width: int, l2: float) -> Reading:
    """The layers of a network that takes rows of `width` columns; raises `Unknown`."""
    parameters: list[Tensor] = []
    statistics: list[Tensor] = []
    ops, constants = [], []
    for module in (*_leaves(network.hidden), *_leaves(network.output)):
        check_known(module, _OPS)
        op = _OPS[type(module)](module)
        d_in, width = width, width if op.width is None else op.width
        at = [_place(parameters, p) for p in op.parameters]
        seat = [_place(statistics, s) for s in op.statistics]
        ops.append([op.which, d_in, width, *[*at, -1, -1][:2], *[*seat, -1][:1]])
        constants.append([*op.constants, 0.0, 0.0][:2])
    if any(t.dtype != torch.float32 for t in (*parameters, *statistics)):
        raise Unknown("the compiled loop works in single precision")
    matrices = {id(weight) for weight in network.penalised()}
    sizes = [prod(p.shape[1:]) for p in parameters]
    layers = compiled.Layers(
        np.array(ops, dtype=np.int64),
        np.array(constants, dtype=np.float32),
        np.repeat([p.requires_grad for p in parameters], sizes).astype(np.float32),
        np.repeat([2 * l2 * (id(p) in matrices) for p in parameters], sizes).astype(np.float32),
    )
    return Reading(layers, parameters, statistics)


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
        self._reading = self._read()
        k = len(self._reading.parameters[0])
        own, seen = (_in_rows(part, k) for part in self._reading[1:])
        self._state = compiled.State(own, np.zeros_like(own), np.zeros_like(own), seen)

    def _read(self) -> Reading:
        return read(self._network, width=self._task.X.shape[1], l2=self._training.l2)

    def renew(self, going: Tensor) -> None:
        """Go on with some of the members: their weights are new tensors, their moments follow."""
        self._reading = self._read()
        self._state = compiled.State(*(part[going.numpy()] for part in self._state))

    def epoch(self, order: Tensor) -> Tensor:
        """A step for each batch of `order`; each member's mean loss.  -> (k,)"""
        plan, rows, layers = self._training, order.numpy(), self._reading.layers
        steps = self._n_steps + np.arange(-(-len(rows) // self._batch))
        rates = plan.learning_rate * plan.decay ** (steps // plan.decay_steps)
        course = compiled.Course(rows, self._batch, rates, self._n_steps)
        losses = np.zeros(len(self._state.parameters))

        def work(some: slice) -> None:
            state = compiled.State(*(part[some] for part in self._state))
            compiled.epoch(layers, state, self._task, course, losses[some])

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


def steps_for(
    network: Network, data: Data, criterion: Criterion, training: Training
) -> Steps | CompiledSteps:
    """In compiled code, on a GPU as a graph, and by torch's own calls where neither can be."""
    if data.X.device.type == "cuda":
        return GraphSteps(network, data, criterion, training)
    try:
        return CompiledSteps(network, data, criterion, training)
    except Unknown:
        return Steps(network, data, criterion, training)
