"""Adam's steps over an epoch: one after the other, or captured once as a CUDA graph."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Self

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from eqsep.networks.network import Network
from eqsep.networks.plan import Criterion, Data, Training


@dataclass
class _Moved:
    """Tensors that Adam moves under one penalty, with its mean slopes and mean squared slopes."""

    tensors: list[nn.Parameter]
    l2: float
    slopes: list[Tensor] = field(init=False)
    squares: list[Tensor] = field(init=False)
    counts: list[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.slopes, self.squares = ([torch.zeros_like(t) for t in self.tensors] for _ in range(2))
        self.counts = [torch.zeros((), device=t.device) for t in self.tensors]

    def keep(self, before: Self, going: Tensor) -> None:
        """Take over what is known of the members `going` of those `before`."""
        self.slopes = [mean[going].clone() for mean in before.slopes]
        self.squares = [mean[going].clone() for mean in before.squares]
        self.counts = before.counts

    def move(self, slopes: Iterable[Tensor], rate: float | Tensor) -> None:
        """A step against the slopes of the loss and of the penalty l2 · ||w||², which is 2 l2 w."""
        adam(
            self.tensors,
            [slope.contiguous() for slope in slopes],  # the kernel reads memory as it lies
            self.slopes,
            self.squares,
            [],
            self.counts,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=2 * self.l2,
            eps=1e-8,
            maximize=False,
        )


class Steps:
    """A step for each batch of an epoch, all members in one product.

    Adam's arithmetic is torch's; its optimizer is not used, whose bookkeeping is a good part of a
    small network's step.
    """

    def __init__(
        self, network: Network, data: Data, criterion: Criterion, training: Training
    ) -> None:
        self._network, self._X, self._criterion = network, data.X, criterion
        self._training, self._batch = training, training.batch_rows(len(data.rows))
        self._n_steps = 0
        self._rate: float | Tensor = training.learning_rate
        self._moved = self._new_moved()

    def _new_moved(self) -> list[_Moved]:
        """All that is learnt; the weight matrices apart from the rest where a penalty is theirs."""
        l2, learnt = self._training.l2, [p for p in self._network.parameters() if p.requires_grad]
        matrices = {id(weight) for weight in self._network.penalised()} if l2 else set()
        shrunk = [p for p in learnt if id(p) in matrices]
        free = [p for p in learnt if id(p) not in matrices]
        parts = [_Moved(shrunk, l2), _Moved(free, 0.0)]
        return [part for part in parts if part.tensors]

    def _set_rate(self) -> None:
        """The learning rate of the step to come."""
        plan = self._training
        self._rate = plan.learning_rate * plan.decay ** (self._n_steps // plan.decay_steps)

    def renew(self, going: Tensor) -> None:
        """Go on with some of the members: their weights are new tensors, their moments follow."""
        before, self._moved = self._moved, self._new_moved()
        for now, then in zip(self._moved, before, strict=True):
            now.keep(then, going)

    def step(self, index: Tensor) -> Tensor:
        """One step on the rows `index`; each member's summed loss before it.  -> (k,)"""
        losses = self._criterion(self._network(self._X[index]), index).sum(dim=0)
        tensors = [t for moved in self._moved for t in moved.tensors]
        slopes = iter(torch.autograd.grad(losses.sum() / len(index), tensors))
        with torch.no_grad():
            for moved in self._moved:
                moved.move(islice(slopes, len(moved.tensors)), self._rate)
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
        self._warm, self._held_rate = 0, torch.zeros((), device=data.X.device)

    def _set_rate(self) -> None:
        super()._set_rate()
        self._held_rate.fill_(self._rate)
        self._rate = self._held_rate  # a tensor, which the graph reads

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
