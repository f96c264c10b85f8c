"""Networks with any head: a separating surface in a learnt space, as an ensemble."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from eqsep import activations
from eqsep.arrays import resolve_device
from eqsep.losses import Loss, as_loss
from eqsep.networks import Hidden, Training, build_separator, member_streams, trainer
from eqsep.networks.trainer import clear_memory_errors, data_of, fit_members, hold_out, outputs
from eqsep.networks.training import MembershipLoss, Progress, as_training, check_progress
from eqsep.separators.base import Separator, check_known
from eqsep.separators.planes import Frame
from eqsep.theory import closing_number

# eqsep.networks comes before torch, since it says what to install without it
# isort: split
import torch

from eqsep.errors import ParameterError, UserError

_FAR_DEVIATIONS = 1e6  # standard deviations: beyond, all rows are equally far


_BUMP, _RBF = activations.GaussianBump, activations.RadialBasis
_HEADS = {"equality": _BUMP, "halfspace": activations.Sigmoid, "rbf": _RBF}
_ACTIVATIONS = {"bump": _BUMP, "leaky_relu": activations.LeakyReLU, "rbf": _RBF}
_PIECES: dict[str, tuple[Any, Any]] = {
    "head": (activations.Head, _HEADS),
    "activation": (activations.Activation, _ACTIVATIONS),
}


def made(what: str, piece: Any, *, sigma: float) -> Any:
    """The head or activation of a name, of width `sigma` where it has one, or a copy of a piece."""
    kind, known = _PIECES[what]
    if isinstance(piece, str) and piece in known:
        piece = known[piece](**{"sigma": sigma} if known[piece].has_sigma else {})
    if not isinstance(piece, kind):
        raise UserError(
            f"{what} must be one of {sorted(known)} or an eqsep.activations.{kind.__name__}, got "
            f"{piece!r}."
        )
    if piece.has_sigma:
        check_positive(**{f"sigma of {what}": piece.sigma})
    return clone(piece)


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkSeparator(Separator):
    """head(f(x)): where the last layer of a network puts a row, and whether that is inside.

    The head says what surface is learnt: a bump asks for a hyperplane (equality separation), a
    sigmoid for one side of it, a radial basis function for a point. Normal rows are inside.
    `n_members` networks train side by side, each with its own start, early stop and best weights.

    Parameters
    ----------
    head : {"equality", "halfspace", "rbf"} or Head, default="equality"
    activation : {"bump", "leaky_relu", "rbf"} or Activation, default="bump"
        Of the hidden layers. A `RadialBasis` is applied to the distances to learnt centres, the
        others to linear maps.
    hidden : sequence of int, default=(60,)
        The widths of the hidden layers; none makes a linear separator.
    sigma : float, default=0.5
        The width of the bumps that are asked for by name.
    learn_sigma : bool, default=False
        Whether each hidden layer learns the width of its bumps.
    closed : bool, default=True
        Whether the last bias is held off the surface instead of learnt, so that far rows, where
        hidden bumps vanish, are outside. It matters for an equality head over one hidden layer, of
        bumps or of RBFs without batch normalisation.
    batch_norm : bool, default=False
        Whether each hidden layer is normalised over the batch. On small tables it usually hurts.
    loss : {"logistic", "squared"} or Loss, default="logistic"
    n_members : int, default=10
    training : Training, default=None
        `eqsep.networks.Training()` unless given.
    standardize : bool, default=True
        Whether columns are brought to mean 0 and variance 1 first.
    score_by : {"membership", "distance"}, default="membership"
        The mean membership of the members, or the mean of their squared distances.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the networks train. They score on the CPU.
    progress : callable or None, default=None
        Called as progress(done, total) after each epoch, with the epochs done and the most there
        can be; done is total once all members have stopped. Not kept in files.
    normal, random_state
        As in `EqualitySeparator`.

    Attributes
    ----------
    network_ : eqsep.networks.Network
        The members with their best weights.
    history_ : eqsep.networks.TrainingHistory
        Losses and sigmas by epoch and member.
    head_ : Head

    Examples
    --------
    >>> from eqsep import NetworkSeparator
    >>> from eqsep.datasets import make_circles
    >>> split = make_circles(random_state=0)
    >>> network = NetworkSeparator(n_members=3, random_state=0).fit(split.X_train, split.y_train)
    >>> network.member_scores(split.X_test).shape
    (100, 3)
    """

    head: str | activations.Head = "equality"
    activation: str | activations.Activation = "bump"
    hidden: Sequence[int] = (60,)
    sigma: float = 0.5
    learn_sigma: bool = False
    closed: bool = True
    batch_norm: bool = False
    loss: str | Loss = "logistic"
    n_members: int = 10
    training: Training | None = None
    standardize: bool = True
    score_by: str = "membership"
    device: str = "auto"
    progress: Progress | None = None
    normal: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Train the members on the rows `X`, whose labels `y` say which are anomalous."""
        X, is_anomaly, _ = self._enter(X, y, merge=False)
        head, hidden, loss, training = self._resolve()
        warn_of_narrow_layers(X.shape[1], hidden)
        check_progress(self.progress)
        device, rng = resolve_device(self.device), check_random_state(self.random_state)
        self.columns_ = Columns.of(X, standardize=self.standardize)
        members, rows = member_streams(self.n_members, rng), hold_out(is_anomaly, training, rng)
        with clear_memory_errors():
            network = build_separator(X.shape[1], hidden, head, members=members, closed=self.closed)
            network.to(device)
            inside = torch.as_tensor(1 - is_anomaly, dtype=torch.float32, device=device)[:, None]
            weights = trainer.class_weights(is_anomaly, training)
            weight = torch.as_tensor(weights, device=device)[:, None]
            data = data_of(self.columns_.tensor(X, device=device), *rows)
        goal = MembershipLoss(inside, weight, loss, head)
        self.history_ = fit_members(network, data, goal, training, rng=rng, progress=self.progress)
        self.network_, self.head_ = network.cpu().double(), head
        return self

    def member_scores(self, X: Any) -> np.ndarray:
        """The score of each member on its own, as in `decision_function`.  -> (n, k)"""
        return _SCORES[self.score_by](self._signed_distances(X), self.head_)

    def decision_function(self, X: Any) -> np.ndarray:
        """How far the members' mean lies beyond the threshold: membership 1/2, or its distance."""
        return self.member_scores(X).mean(axis=1)

    @available_if(lambda self: self.score_by == "membership")
    def predict_proba(self, X: Any) -> np.ndarray:
        """The mean membership of the members, and its complement."""
        p = 0.5 - self.decision_function(X)
        return np.column_stack([p, 1 - p])

    def spread(self, X: Any) -> np.ndarray:
        """The standard deviation of the members' scores: where they disagree."""
        return self.member_scores(X).std(axis=1)

    def distances(self, X: Any) -> np.ndarray:
        """How far each member puts each row from its surface, in the last layer.  -> (n, k)"""
        return np.abs(self._signed_distances(X))

    def _signed_distances(self, X: Any) -> np.ndarray:
        rows = self._rows(X)
        return outputs(self.network_, self.columns_.tensor(rows, dtype=torch.float64))[..., 0]

    def _resolve(self) -> tuple[Any, Hidden, Loss, Training]:
        """The objects that the parameters stand for, checked."""
        check_positive(sigma=self.sigma)
        head = made("head", self.head, sigma=self.sigma).centred()
        activation = made("activation", self.activation, sigma=self.sigma)
        loss = as_loss(self.loss)
        if loss.needs_logarithm and not head.has_logarithm:
            raise UserError(f"{loss!r} needs log p, which {head!r} lacks. Use loss='squared'.")
        check_known(_SCORES, score_by=self.score_by)
        check_counts(n_members=[self.n_members], hidden=self.hidden)
        hidden = Hidden(tuple(self.hidden), activation, self.learn_sigma, self.batch_norm)
        return head, hidden, loss, as_training(self.training)


def warn_of_narrow_layers(n_features: int, hidden: Hidden) -> None:
    """Warn of hidden layers that are narrower than their closing number."""
    family, d_in = hidden.activation.family, n_features
    for layer, width in enumerate(hidden.widths, start=1):
        needed = closing_number(family, d_in)
        if width < needed:
            warnings.warn(
                f"Hidden layer {layer} has {width} units on {d_in} inputs, fewer than the closing "
                f"number {needed} of its activation: whatever is learnt, some directions leave all "
                f"its units unchanged, and an anomaly along them looks normal. Widen it to "
                f"{needed} or more to rule that out.",
                NarrowLayerWarning,
                stacklevel=3,
            )
        d_in = width


class NarrowLayerWarning(UserWarning):
    """A hidden layer cannot enclose a region of its inputs."""


_SCORES: dict[str, Callable[[np.ndarray, Any], np.ndarray]] = {
    "membership": lambda z, head: 0.5 - head.membership(z),
    # z² beyond where the membership is 1/2; for a halfspace, how far on the wrong side
    "distance": lambda z, head: -z if head.family == "halfspace" else z**2 - head.half_width**2,
}


@dataclass(frozen=True)
class Columns:
    """The columns as a network sees them: standardised, or as they are, within reach of floats."""

    frame: Frame

    @classmethod
    def of(cls, X: np.ndarray, *, standardize: bool) -> Self:
        """Learn the frame of the training rows."""
        if not standardize:
            return cls(Frame.identity(X.shape[1]))
        return cls(Frame.standard(X, np.full(len(X), 1 / len(X)), keep_constant=True))

    def tensor(
        self, X: np.ndarray, *, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> torch.Tensor:
        """The rows as a tensor.  (n, d) -> (n, d)"""
        with np.errstate(over="ignore"):  # a row beyond all floats is as far as any
            columns = np.clip(self.frame.columns(X), -_FAR_DEVIATIONS, _FAR_DEVIATIONS)
        with clear_memory_errors():
            return torch.as_tensor(columns, dtype=dtype, device=device)


def check_positive(**numbers: Any) -> None:
    """Refuse what is not a positive number."""
    for name, value in numbers.items():
        if not (isinstance(value, Real) and 0 < float(value) < np.inf):
            raise ParameterError(name, expected="a positive number", got=value)


def check_counts(**counts: Sequence[int]) -> None:
    """Refuse counts that are not whole numbers of at least one."""
    for name, values in counts.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise UserError(
                f"{name} must be a sequence of whole numbers, got {values!r}. "
                f"For one layer of 60 units write {name}=(60,)."
            )
        if not all(isinstance(v, int | np.integer) and v >= 1 for v in values):
            raise ParameterError(name, expected="whole numbers of at least 1", got=values)
