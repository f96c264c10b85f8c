"""Deep semi-supervised anomaly detection: a learnt code that keeps normal rows by a centre."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from eqsep import activations
from eqsep.arrays import resolve_device
from eqsep.networks import Distance, Hidden, Linear, Network, Training, member_streams, trainer
from eqsep.networks.trainer import data_of, fit_members, hold_out, outputs
from eqsep.networks.training import (
    Attraction,
    Progress,
    Reconstruction,
    as_training,
    check_progress,
)
from eqsep.separators.base import Separator
from eqsep.separators.network import Columns, check_counts, check_positive, made
from eqsep.separators.planes import least_error_width

# eqsep.networks comes before torch, since it says what to install without it
# isort: split
import torch
from torch import Generator, nn


@dataclass(kw_only=True, eq=False, repr=False)
class DeepSAD(Separator):
    """||code(x) - centre||: an autoencoder's encoder, trained to keep normal rows near a centre.

    First an autoencoder learns to reproduce all training rows; the centre is the mean of their
    codes. Then the encoder alone is trained: the loss of a normal row is its distance from the
    centre, that of an anomaly 1 / distance.

    Parameters
    ----------
    activation : {"bump", "leaky_relu", "rbf"} or Activation, default="bump"
        Of all layers except the decoder's last and a linear code. The three make ES-, HS- and
        RS-SAD.
    hidden : sequence of int, default=(90,)
        The widths of the encoder's layers before the code; the decoder has them in reverse.
    code : int, default=60
        The width of the code.
    linear_code : bool, default=False
        Whether the code is a linear map, as in Ruff et al. (2020), not activated and normalised.
    sigma : float, default=0.5
        The width of the bumps that are asked for by name.
    batch_norm : bool, default=False
        Needs some thousand rows for its statistics to settle; with fewer it hurts.
    n_members : int, default=1
    pretraining, training : Training, default=None
        Of the autoencoder and of the encoder; `eqsep.networks.Training()` unless given.
    standardize, device, progress, normal, random_state
        As in `NetworkSeparator`.

    Attributes
    ----------
    network_ : eqsep.networks.Network
        The encoders, each with its centre, from rows to distances.
    centre_ : ndarray of shape (k, code)
    threshold_ : float
        The mean distance above which a row is called an anomaly: the least training error.
    pretraining_history_, history_ : eqsep.networks.TrainingHistory
        Losses by epoch and member, of the autoencoder and of the encoder.

    Notes
    -----
    The published ES-, HS- and RS-SAD were trained with `Training(epochs=500, batch_size=32,
    learning_rate=3e-4, patience=10)` in both stages, with batch normalisation and, judging by their
    figures, with a linear code.

    Examples
    --------
    >>> from eqsep import DeepSAD
    >>> from eqsep.datasets import make_circles
    >>> split = make_circles(random_state=0)
    >>> model = DeepSAD(hidden=(16,), code=8, random_state=0)
    >>> model.fit(split.X_train, split.y_train).predict([[1, 0], [9, 9]])
    array([0, 1])
    """

    activation: str | activations.Activation = "bump"
    hidden: Sequence[int] = (90,)
    code: int = 60
    linear_code: bool = False
    sigma: float = 0.5
    batch_norm: bool = False
    n_members: int = 1
    pretraining: Training | None = None
    training: Training | None = None
    standardize: bool = True
    device: str = "auto"
    progress: Progress | None = None
    normal: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Train the autoencoder on the rows `X`, then the encoder with their labels `y`."""
        X, is_anomaly, _ = self._enter(X, y, merge=False)
        hidden, pretraining, training = self._resolve()
        check_progress(self.progress)
        device, rng = resolve_device(self.device), check_random_state(self.random_state)
        self.columns_ = Columns.of(X, standardize=self.standardize)
        columns = self.columns_.tensor(X, device=device)
        members = member_streams(self.n_members, rng)
        with trainer.clear_memory_errors():
            network = build_autoencoder(
                X.shape[1], hidden, code=self.code, linear_code=self.linear_code, members=members
            ).to(device)
        data = data_of(columns, *hold_out(is_anomaly, pretraining, rng))
        self.pretraining_history_ = fit_members(
            network, data, Reconstruction(columns), pretraining, rng=rng, progress=self.progress
        )
        with trainer.clear_memory_errors():
            network = Network(
                network.hidden, Distance(trainer.mean_over(columns, network.features))
            )
        weight = trainer.class_weights(is_anomaly, training)
        data = data_of(columns, *hold_out(is_anomaly, training, rng))
        goal = attraction(is_anomaly, weight=weight, device=device)
        self.history_ = fit_members(network, data, goal, training, rng=rng, progress=self.progress)
        self.network_ = network.cpu().double()
        self.centre_ = self.network_.output.centre.numpy()
        far = self._distances(X).mean(axis=1)
        self.threshold_ = least_error_width(far, inside=is_anomaly == 0, weight=weight)
        return self

    def distances(self, X: Any) -> np.ndarray:
        """How far each member puts the code of each row from its centre.  -> (n, k)"""
        return self._distances(self._rows(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """How far the members' mean distance lies beyond the threshold."""
        return self.distances(X).mean(axis=1) - self.threshold_

    def codes(self, X: Any) -> np.ndarray:
        """What the encoders make of each row.  -> (n, k, code)"""
        rows = self._rows(X)
        columns = self.columns_.tensor(rows, dtype=torch.float64)
        return outputs(self.network_, columns, features=True)

    def _distances(self, X: np.ndarray) -> np.ndarray:
        return outputs(self.network_, self.columns_.tensor(X, dtype=torch.float64))[..., 0]

    def _resolve(self) -> tuple[Hidden, Training, Training]:
        """The objects that the parameters stand for, checked."""
        check_positive(sigma=self.sigma)
        activation = made("activation", self.activation, sigma=self.sigma)
        check_counts(n_members=[self.n_members], hidden=self.hidden, code=[self.code])
        hidden = Hidden(tuple(self.hidden), activation, batch_norm=self.batch_norm)
        return hidden, as_training(self.pretraining), as_training(self.training)


def build_autoencoder(
    d_in: int, hidden: Hidden, *, code: int, members: Sequence[Generator], linear_code: bool = False
) -> Network:
    """Networks whose last hidden layer is a code, from which the rest restores the rows."""
    decoder = replace(hidden, widths=hidden.widths[::-1])
    blocks = decoder.blocks(code, members)
    output = nn.Sequential(blocks, Linear([code, *decoder.widths][-1], d_in, members=members))
    encoder, last = hidden.blocks(d_in, members), [d_in, *hidden.widths][-1]
    if linear_code:
        encoder.append(nn.Sequential(Linear(last, code, members=members)))
    else:
        encoder.append(hidden.block(last, code, members))
    return Network(encoder, output)


def attraction(is_anomaly: np.ndarray, *, weight: np.ndarray, device: Any = "cpu") -> Attraction:
    """The criterion of the encoder: the distance of a normal row, 1 / distance of an anomaly."""
    far = torch.as_tensor(is_anomaly == 1, device=device)[:, None]
    return Attraction(far, torch.as_tensor(weight, device=device)[:, None])
