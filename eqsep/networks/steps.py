"""Adam's steps over an epoch: one after the other, or captured once as a CUDA graph."""

from typing import Any

import torch
from torch import Tensor, nn

from eqsep.networks.network import Network
from eqsep.networks.plan import Criterion, Data, Training


class Steps:
    """A step for each batch of an epoch, all members in one product."""

    def __init__(
        self, network: Network, data: Data, criterion: Criterion, training: Training
    ) -> None:
        self._network, self._X, self._criterion = network, data.X, criterion
        self._training, self._batch = training, training.batch_rows(len(data.rows))
        self._n_steps = 0
        self._adam = self._new_adam()

    def _new_adam(self) -> torch.optim.Adam:
        """Adam with the penalty l2 · ||w||², whose slope is 2 l2 w, on weight matrices alone."""
        shrunk = {id(weight) for weight in self._network.penalised()}
        learnt = [p for p in self._network.parameters() if p.requires_grad]
        groups = [
            {
                "params": [p for p in learnt if id(p) in shrunk],
                "weight_decay": 2 * self._training.l2,
            },
            {"params": [p for p in learnt if id(p) not in shrunk], "weight_decay": 0.0},
        ]
        return torch.optim.Adam([g for g in groups if g["params"]], **self._adam_options())

    def _adam_options(self) -> dict[str, Any]:
        return {"lr": self._rate(), "fused": True}

    def _learnt(self) -> list[nn.Parameter]:
        """What Adam moves, group by group."""
        return [p for group in self._adam.param_groups for p in group["params"]]

    def _rate(self) -> float:
        """The learning rate of the step to come."""
        plan = self._training
        return plan.learning_rate * plan.decay ** (self._n_steps // plan.decay_steps)

    def _set_rate(self) -> None:
        for group in self._adam.param_groups:
            group["lr"] = self._rate()

    def renew(self, going: Tensor) -> None:
        """Go on with some of the members: their weights are new tensors, their moments follow."""
        before = [self._adam.state[p] for p in self._learnt()]
        self._adam = self._new_adam()
        for parameter, state in zip(self._learnt(), before, strict=True):
            self._adam.state[parameter] = {
                name: value[going].clone() if value.ndim else value for name, value in state.items()
            }

    def step(self, index: Tensor) -> Tensor:
        """One step on the rows `index`; each member's summed loss before it.  -> (k,)"""
        losses = self._criterion(self._network(self._X[index]), index).sum(dim=0)
        self._adam.zero_grad(set_to_none=True)
        (losses.sum() / len(index)).backward()
        self._adam.step()
        return losses.detach()

    def epoch(self, order: Tensor) -> Tensor:
        """A step for each batch of `order`; each member's mean loss.  -> (k,)"""
        total = torch.zeros((), device=order.device)
        for index in order.split(self._batch):
            self._set_rate()
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
        self._warm = 0

    def _adam_options(self) -> dict[str, Any]:
        rate = torch.tensor(self._rate(), device=self._X.device)  # where the graph reads it
        return {"lr": rate, "fused": True, "capturable": True}

    def _set_rate(self) -> None:
        for group in self._adam.param_groups:
            group["lr"].fill_(self._rate())

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
            with torch.cuda.graph(self._graph):
                self._losses = self.step(self._index)
        self._index.copy_(index)
        self._graph.replay()
        return self._losses


STEPS = {"cpu": Steps, "cuda": GraphSteps}
