"""The one training loop: mini-batches, Adam, and a stop for each member on its own.

A criterion maps what the network says of a batch (n, k, d) and the batch's indices (n,) to losses
(n, k). Members share the order of the rows and nothing else, so a member's path does not depend on
the others; those that have stopped leave the tensors and cost nothing more.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from eqsep.networks.network import Network
from eqsep.networks.plan import Criterion, Data, History, Training
from eqsep.networks.steps import steps_for

CHUNK = 8192  # rows that are scored at once


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
    steps = steps_for(network, data, criterion, training)
    book = _Book(network, patience=training.patience if len(held_out) else None)
    while book.n_epochs < training.epochs and len(book.alive):
        network.train()
        order = torch.randperm(len(rows), generator=generator).to(X.device)
        loss = steps.epoch(rows[order])
        network.eval()
        held = _mean_loss(network, X, criterion, held_out) if len(held_out) else None
        going = book.write(network, loss, held)
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
        self._held: list[Tensor] = []
        self._sigma: list[Tensor] = []

    @property
    def n_epochs(self) -> int:
        return len(self._loss)

    def write(self, network: Network, loss: Tensor, held: Tensor | None) -> Tensor:
        """Note an epoch; which of the members under way go on.  -> (alive,) bool

        `held` are the losses on the rows held out; where there are none, those in training serve.
        """
        watched = loss if held is None else held
        epoch, finite = self.n_epochs, torch.isfinite(watched)
        unknown = torch.full_like(loss, torch.nan)
        for pages, values in ((self._loss, loss), (self._held, unknown if held is None else held)):
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
        pages = (self._loss, self._held, self._sigma)
        loss, held, sigma = (torch.stack(page).cpu().numpy() for page in pages)
        return History(loss, held, sigma, self._best_epoch.cpu().numpy())

    def _spread(self, values: Tensor) -> Tensor:
        """The values of those under way at their places among all members, NaN elsewhere."""
        page = torch.full_like(self._lowest, torch.nan)
        page[self.alive] = values.to(page.dtype)
        return page
