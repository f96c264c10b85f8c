"""The one training loop: mini-batches, Adam, and a stop for each member on its own.

A criterion maps what the network says of a batch (n, k, d) and the batch's indices (n,) to losses
(n, k). Members share the order of the rows and nothing else, so a member's path does not depend on
the others; those that have stopped leave the tensors and cost nothing more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from eqsep.networks.network import Network

CHUNK = 8192  # rows that are scored at once
Criterion = Callable[[Tensor, Tensor], Tensor]


@dataclass
class Training(BaseEstimator):
    """How networks are trained.

    Parameters
    ----------
    epochs : int
        At most this many passes over the rows.
    batch_size : int
    learning_rate : float
        Adam's.
    decay, decay_steps : float, int
        The learning rate is multiplied by `decay` after every `decay_steps` steps.
    l2 : float
        The penalty l2 · ||w||² on all weights.
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
    batch_size: int = 128
    learning_rate: float = 1e-3
    decay: float = 1.0
    decay_steps: int = 1000
    l2: float = 0.0
    patience: int = 10
    validation_fraction: float = 0.1
    stratify: bool = True
    balanced: bool = False


@dataclass(frozen=True)
class History:
    """What happened in each epoch to each member; NaN once a member has stopped.

    Attributes
    ----------
    loss, validation_loss : ndarray of shape (epochs, k)
    sigma : ndarray of shape (epochs, layers, k)
        The widths of the hidden bumps after each epoch.
    best_epoch : ndarray of shape (k,)
        The epoch, from 0, whose weights were kept; -1 for a member that never had a finite loss.
    """

    loss: np.ndarray
    validation_loss: np.ndarray
    sigma: np.ndarray
    best_epoch: np.ndarray


class Data(NamedTuple):
    """The columns (n, d) as the networks see them, the rows to train on and those held out."""

    X: Tensor
    rows: Tensor
    held_out: Tensor


def train(
    network: Network,
    data: Data,
    criterion: Criterion,
    *,
    training: Training,
    generator: torch.Generator,
    on_epoch: Callable[[int, int], None] | None = None,
) -> History:
    """Train the members of `network` together; each ends with the best weights it had.

    Parameters
    ----------
    criterion : callable
        (outputs (m, k, d_out), indices (m,)) -> losses (m, k).
    generator : torch.Generator
        Shuffles the rows before each epoch.
    on_epoch : callable, optional
        Called with the number of epochs done and of members still under way.
    """
    X, rows, held_out = data
    steps = _STEPS[X.device.type](network, X, criterion, training)
    book = _Book(network, patience=training.patience if len(held_out) else None)
    while book.n_epochs < training.epochs and len(book.alive):
        network.train()
        order = torch.randperm(len(rows), generator=generator).to(X.device)
        loss = steps.epoch(rows[order])
        network.eval()
        watched = _mean_loss(network, X, criterion, held_out) if len(held_out) else loss
        going = book.write(network, loss, watched)
        if not bool(going.all()):
            network.keep(going)
            steps.renew(going)
        if on_epoch is not None:
            on_epoch(book.n_epochs, len(book.alive))
    return book.close(network)


@torch.no_grad()
def _mean_loss(network: Network, X: Tensor, criterion: Criterion, held_out: Tensor) -> Tensor:
    """The mean loss of each member on the rows held out.  -> (k,)"""
    total = [criterion(network(X[index]), index).sum(dim=0) for index in held_out.split(CHUNK)]
    return torch.stack(total).sum(dim=0) / len(held_out)


class _Book:
    """Who is under way, who was when at its best, and the weights it had then."""

    def __init__(self, network: Network, *, patience: int | None) -> None:
        self._best = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        self._patience = patience
        k = len(next(iter(self._best.values())))
        device = next(iter(self._best.values())).device
        self.alive = torch.arange(k, device=device)
        self._lowest = torch.full((k,), torch.inf, device=device)
        self._best_epoch = torch.full((k,), -1, device=device)
        self._loss: list[Tensor] = []
        self._watched: list[Tensor] = []
        self._sigma: list[Tensor] = []

    @property
    def n_epochs(self) -> int:
        return len(self._loss)

    def write(self, network: Network, loss: Tensor, watched: Tensor) -> Tensor:
        """Note an epoch; which of the members under way go on.  -> (alive,) bool"""
        epoch, finite = self.n_epochs, torch.isfinite(watched)
        for pages, values in ((self._loss, loss), (self._watched, watched)):
            pages.append(self._spread(values))
        widths = [self._spread(s) for s in network.sigmas()]
        self._sigma.append(torch.stack(widths) if widths else self._lowest[None, :][:0])
        better = finite if self._patience is None else watched < self._lowest[self.alive]
        who = self.alive[better]
        self._lowest[who], self._best_epoch[who] = watched[better], epoch
        for name, tensor in network.state_dict().items():
            self._best[name][who] = tensor[better]
        going = finite
        if self._patience is not None:
            going = finite & (epoch - self._best_epoch[self.alive] < self._patience)
        self.alive = self.alive[going]
        return going

    def close(self, network: Network) -> History:
        """Give every member its best weights back."""
        network.restore(self._best)
        network.eval()
        pages = (self._loss, self._watched, self._sigma)
        loss, watched, sigma = (torch.stack(page).cpu().numpy() for page in pages)
        return History(loss, watched, sigma, self._best_epoch.cpu().numpy())

    def _spread(self, values: Tensor) -> Tensor:
        """The values of those under way at their places among all members, NaN elsewhere."""
        page = torch.full_like(self._lowest, torch.nan)
        page[self.alive] = values.to(page.dtype)
        return page


class _Steps:
    """Adam's steps over an epoch, one batch after the other."""

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
        plan = self._training
        return plan.learning_rate * plan.decay ** (self._n_steps // plan.decay_steps)

    def renew(self, going: Tensor) -> None:
        """Go on with some of the members: their weights are new tensors, their moments follow."""
        before = list(self._adam.state.values())
        self._adam = self._new_adam()
        for parameter, state in zip(self._adam.param_groups[0]["params"], before, strict=True):
            self._adam.state[parameter] = {
                name: value[going].clone() if value.ndim else value for name, value in state.items()
            }

    def step(self, index: Tensor) -> Tensor:
        """One step on the rows `index`; each member's mean loss before it.  -> (k,)"""
        losses = self._criterion(self._network(self._X[index]), index).mean(dim=0)
        self._adam.zero_grad(set_to_none=True)
        losses.sum().backward()
        self._adam.step()
        return losses.detach()

    def epoch(self, order: Tensor) -> Tensor:
        """A step for each batch of `order`; each member's mean loss.  -> (k,)"""
        batches = order.split(self._training.batch_size)
        total = torch.zeros((), device=order.device)
        for index in batches:
            self._adam.param_groups[0]["lr"] = self._rate()
            total = total + self.step(index) * len(index)
            self._n_steps += 1
        return total / len(order)


_STEPS = {"cpu": _Steps, "cuda": _Steps}
