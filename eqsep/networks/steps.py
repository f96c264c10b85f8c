"""Adam's steps over an epoch: in NumPy, or by torch, on a GPU captured once as a CUDA graph."""

from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from eqsep.networks.backpropagation import ArraySteps, Unknown
from eqsep.networks.layers import Network
from eqsep.networks.training import Criterion, Data, Training


class Steps:
    """A step of Adam for each batch of an epoch, all members in one product."""

    def __init__(self, network: Network, data: Data, goal: Criterion, training: Training) -> None:
        self._network, self._X, self._criterion = network, data.X, goal
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
        return self._training.rate(self._n_steps)

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

    _advance = step  # how a step of an epoch is taken


class GraphSteps(Steps):
    """The same steps as a CUDA graph: tiny networks are bound by launches, not by work."""

    warm_up = 3  # steps before the capture, as they are

    def __init__(self, network: Network, data: Data, goal: Criterion, training: Training) -> None:
        super().__init__(network, data, goal, training)
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


def steps_for(
    network: Network, data: Data, criterion: Criterion, training: Training
) -> Steps | ArraySteps:
    """In NumPy, on a GPU as a graph, and by torch's own calls where neither can be."""
    if data.X.device.type == "cuda":
        return GraphSteps(network, data, criterion, training)
    try:
        return ArraySteps(network, data, criterion, training)
    except Unknown:
        return Steps(network, data, criterion, training)
