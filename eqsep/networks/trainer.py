"""The training of all members: which rows are held out, the loop, and what can go wrong.

Members share the order of the rows and nothing else, so a member's path does not depend on the
others; those that have stopped leave the tensors and cost nothing more.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from eqsep.errors import UserError
from eqsep.networks.layers import Network
from eqsep.networks.steps import steps_for
from eqsep.networks.training import Criterion, Data, Progress, Training, TrainingHistory

CHUNK = 8192  # rows that are scored at once
_SMALL_STEP = 2_000_000  # multiplications: below it, a second thread costs more than it gives


def class_weights(is_anomaly: np.ndarray, training: Training) -> np.ndarray:
    """A weight for each row, 1 on average; in a balanced training, half of it for each class."""
    share = is_anomaly.mean()
    if not training.balanced or share in (0, 1):
        return np.ones(len(is_anomaly), dtype=np.float32)
    return np.where(is_anomaly == 1, 0.5 / share, 0.5 / (1 - share)).astype(np.float32)


def hold_out(
    is_anomaly: np.ndarray, training: Training, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the rows to train on and of those held out."""
    n = len(is_anomaly)
    if training.stratify:
        classes = [rng.permutation(np.flatnonzero(is_anomaly == c)) for c in (0, 1)]
        counts = [round(training.validation_fraction * len(rows)) for rows in classes]
        held_out = np.concatenate([r[:count] for r, count in zip(classes, counts, strict=True)])
        rows = rng.permutation(np.setdiff1d(np.arange(n), held_out))
    else:
        last = n - round(training.validation_fraction * n)
        rows, held_out = np.arange(last), np.arange(last, n)
    if len(held_out) and not is_anomaly[held_out].any() and is_anomaly.any():
        warnings.warn(
            f"None of the {len(held_out)} rows held out is anomalous, so early stopping watches "
            f"normal rows alone. Raise validation_fraction, or set it to 0 to use all epochs.",
            stacklevel=3,  # the line that called fit
        )
    return rows, held_out


def data_of(X: torch.Tensor, rows: np.ndarray, held_out: np.ndarray) -> Data:
    """Columns and indices, all on the device of the columns."""
    return Data(X, *(torch.as_tensor(r, device=X.device) for r in (rows, held_out)))


def fit_members(
    network: Network,
    data: Data,
    criterion: Criterion,
    training: Training,
    *,
    rng: np.random.RandomState,
    progress: Progress | None = None,
) -> TrainingHistory:
    """Train all members; those that never had a finite loss are left out, with a warning."""
    generator = torch.Generator().manual_seed(int(rng.randint(2**31 - 1)))
    work = training.batch_rows(len(data.rows)) * sum(p.numel() for p in network.parameters())
    count = 1 if work < _SMALL_STEP else torch.get_num_threads()

    def on_epoch(done: int, under_way: int) -> None:
        if progress is not None:
            progress(done if under_way else training.epochs, training.epochs)

    with clear_memory_errors(), _quick_arithmetic(count):
        history = train(
            network, data, criterion, training=training, generator=generator, on_epoch=on_epoch
        )
    sound = history.best_epoch >= 0
    if not sound.any():
        raise UserError(
            f"The loss of all {len(sound)} members was NaN or infinite from the first epoch on. "
            f"Scale the columns, or lower the learning rate "
            f"({training.learning_rate} now): training=Training(learning_rate=...)."
        )
    if not sound.all():
        warnings.warn(
            f"{(~sound).sum()} of {len(sound)} members never had a finite loss and were left out. "
            f"A lower learning rate than {training.learning_rate} may keep them.",
            stacklevel=3,
        )
        network.keep(torch.as_tensor(np.flatnonzero(sound), device=data.X.device))
    return history


@torch.no_grad()
def outputs(network: Network, X: torch.Tensor, *, features: bool = False) -> np.ndarray:
    """The outputs of `network`, or of its last hidden layer, some thousand rows at a time."""
    function = network.features if features else network
    return torch.cat([function(rows) for rows in X.split(CHUNK)]).numpy()


@contextmanager
def clear_memory_errors() -> Iterator[None]:
    """Say what to do when the tensors do not fit into memory."""
    try:
        yield
    except RuntimeError as error:
        if not any(word in str(error) for word in ("memory", "overflow")):
            raise
        raise MemoryError(
            "The networks do not fit into memory. Use fewer members (n_members), narrower layers "
            "(hidden) or a smaller batch: training=Training(batch_size=...)."
        ) from error


@contextmanager
def _quick_arithmetic(n_threads: int) -> Iterator[None]:
    """torch with so many threads, and zero for numbers below 1e-38, which far rows leave."""
    before, were_kept = torch.get_num_threads(), bool(torch.tensor(1e-40) * 1 > 0)
    torch.set_num_threads(n_threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(not were_kept)


def train(
    network: Network,
    data: Data,
    criterion: Criterion,
    *,
    training: Training,
    generator: torch.Generator,
    on_epoch: Callable[[int, int], None] | None = None,
) -> TrainingHistory:
    """Train all members to their best weights; `on_epoch` gets the epochs done and members left."""
    X, rows, held_out = data
    steps = steps_for(network, data, criterion, training)
    book = _Book(network, patience=training.patience if len(held_out) else None)
    while book.n_epochs < training.epochs and len(book.alive):
        network.train()
        loss = steps.epoch(rows[torch.randperm(len(rows), generator=generator).to(X.device)])
        network.eval()
        held = None
        if len(held_out):
            held = mean_over(held_out, lambda index: criterion(network(X[index]), index))
        going = book.write(network, loss, held)
        if not bool(going.all()):
            network.keep(going)
            steps.renew(going)
        if on_epoch is not None:
            on_epoch(book.n_epochs, len(book.alive))
    return book.close(network)


@torch.no_grad()
def mean_over(rows: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean of a function of rows, or of their numbers, some thousand at a time."""
    total = [function(some).sum(dim=0) for some in rows.split(CHUNK)]
    return torch.stack(total).sum(dim=0) / len(rows)


class _Book:
    """Who is under way, who was when at its best, and the weights it had then."""

    def __init__(self, network: Network, *, patience: int | None) -> None:
        self._best = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        self._patience, first = patience, next(iter(self._best.values()))
        self.alive = torch.arange(len(first), device=first.device)
        self._lowest = torch.full((len(first),), torch.inf, device=first.device)
        self._best_epoch = torch.full_like(self.alive, -1)
        self._loss: list[Tensor] = []
        self._held: list[Tensor] = []
        self._sigma: list[Tensor] = []

    @property
    def n_epochs(self) -> int:
        return len(self._loss)

    def write(self, network: Network, loss: Tensor, held: Tensor | None) -> Tensor:
        """Note an epoch; which of the members under way go on.  -> (alive,) bool"""
        watched = loss if held is None else held
        epoch, finite = self.n_epochs, torch.isfinite(watched)
        self._loss.append(self._spread(loss))
        self._held.append(self._spread(torch.full_like(loss, torch.nan) if held is None else held))
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

    def close(self, network: Network) -> TrainingHistory:
        """Give every member its best weights back."""
        network.restore(self._best)
        network.eval()
        pages = torch.stack(self._loss), torch.stack(self._held), torch.stack(self._sigma)
        return TrainingHistory(*(page.cpu().numpy() for page in (*pages, self._best_epoch)))

    def _spread(self, values: Tensor) -> Tensor:
        """The values of those under way at their places among all members, NaN elsewhere."""
        page = torch.full_like(self._lowest, torch.nan)
        page[self.alive] = values.to(page.dtype)
        return page
