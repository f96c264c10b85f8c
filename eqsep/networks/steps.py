"""Adam's steps over an epoch: one after the other, or captured once as a CUDA graph."""

import torch
from torch import Tensor

from eqsep.networks.network import Network
from eqsep.networks.plan import Criterion, Training


class Steps:
    """A step for each batch of an epoch, all members in one product."""

    def __init__(
        self, network: Network, X: Tensor, criterion: Criterion, training: Training
    ) -> None:
        self._network, self._X, self._criterion, self._training = network, X, criterion, training
        self._n_steps = 0
        self._adam = self._new_adam()

    def _new_adam(self) -> torch.optim.Adam:
        learnt = [p for p in self._network.parameters() if p.requires_grad]
        return torch.optim.Adam(
            learnt, lr=self._rate(), weight_decay=2 * self._training.l2, fused=True
        )

    def _rate(self) -> float:
        """The learning rate of the step to come."""
        plan = self._training
        return plan.learning_rate * plan.decay ** (self._n_steps // plan.decay_steps)

    def _set_rate(self) -> None:
        self._adam.param_groups[0]["lr"] = self._rate()

    def renew(self, going: Tensor) -> None:
        """Go on with some of the members: their weights are new tensors, their moments follow."""
        before = list(self._adam.state.values())
        self._adam = self._new_adam()
        for parameter, state in zip(self._adam.param_groups[0]["params"], before, strict=True):
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
        for index in order.split(self._training.batch_rows(len(order))):
            self._set_rate()
            total = total + self.step(index)
            self._n_steps += 1
        return total / len(order)


class GraphSteps(Steps):
    """The same steps, captured as a CUDA graph: tiny networks are bound by launches, not by work.

    The first full batches of a set of members run as they are, which warms up what a capture needs;
    the step is then captured and replayed, until a member leaves.
    """

    warm_up = 3

    def __init__(
        self, network: Network, X: Tensor, criterion: Criterion, training: Training
    ) -> None:
        super().__init__(network, X, criterion, training)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = 0

    def _new_adam(self) -> torch.optim.Adam:
        learnt = [p for p in self._network.parameters() if p.requires_grad]
        return torch.optim.Adam(
            learnt,
            lr=torch.tensor(self._rate(), device=self._X.device),
            weight_decay=2 * self._training.l2,
            fused=True,
            capturable=True,
        )

    def _set_rate(self) -> None:
        self._adam.param_groups[0]["lr"].fill_(self._rate())

    def renew(self, going: Tensor) -> None:
        super().renew(going)
        self._graph, self._warm = None, 0

    def epoch(self, order: Tensor) -> Tensor:
        batch = self._training.batch_rows(len(order))
        total = torch.zeros((), device=order.device)
        for index in order.split(batch):
            self._set_rate()
            whole = len(index) == batch
            total = total + (self._replay(index) if whole else self.step(index))
            self._n_steps += 1
        return total / len(order)

    def _replay(self, index: Tensor) -> Tensor:
        """A step on a full batch: as it is while warming up, from the graph afterwards."""
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
