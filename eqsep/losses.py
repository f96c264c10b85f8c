"""Losses of a membership against its target, as functions of the signed distance z.

Both take z and the head, not p = head(z), since p may have rounded to 0 or 1 where log p has not.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from eqsep.activations import Head, ProbabilisticHead
from eqsep.errors import UserError


class Loss(BaseEstimator, ABC):
    """The loss of head(z) against a target in [0, 1], element by element.

    A subclass has `__call__`, and `slope` or `value_and_slope`.
    """

    needs_logarithm: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, z: Any, target: Any, *, head: Any) -> Any:
        """The loss at each `z`."""

    def slope(self, z: Any, target: Any, *, head: Any) -> Any:
        """The derivative in `z`."""
        return self.value_and_slope(z, target, head=head)[1]

    def value_and_slope(self, z: Any, target: Any, *, head: Any) -> tuple[Any, Any]:
        """The loss and its derivative at each `z`, sharing what they have in common."""
        return self(z, target, head=head), self.slope(z, target, head=head)


@dataclass
class SquaredLoss(Loss):
    """(p - target)²: forgiving to a wrong label, whose loss is at most 1.

    >>> import numpy as np
    >>> from eqsep.activations import GaussianBump
    >>> SquaredLoss()(np.array([0.0, 3.0]), np.array([1.0, 1.0]), head=GaussianBump()).round(3)
    array([0.   , 0.978])
    """

    def __call__(self, z: Any, target: Any, *, head: Head) -> Any:
        return (head(z) - target) ** 2

    def value_and_slope(self, z: Any, target: Any, *, head: Head) -> tuple[Any, Any]:
        p, dp = head.value_and_slope(z)
        miss = p - target
        return miss**2, 2 * miss * dp


@dataclass
class LogisticLoss(Loss):
    """-target log p - (1 - target) log(1 - p): strict, it grows without bound with the error.

    >>> import numpy as np
    >>> from eqsep.activations import GaussianBump
    >>> LogisticLoss()(np.array([1e6, 1e-12]), np.array([1.0, 0.0]), head=GaussianBump())
    array([5.00000000e+11, 5.59551894e+01])
    """

    needs_logarithm: ClassVar[bool] = True

    def __call__(self, z: Any, target: Any, *, head: ProbabilisticHead) -> Any:
        # Not target (log(1 - p) - log p): the larger logarithm would swallow the smaller.
        return -target * head.log(z) - (1 - target) * head.log1m(z)

    def value_and_slope(self, z: Any, target: Any, *, head: ProbabilisticHead) -> tuple[Any, Any]:
        log, log1m, slope, slope1m = head.logs_and_slopes(z)
        rest = 1 - target
        return -target * log - rest * log1m, -target * slope - rest * slope1m


LOSSES: dict[str, type[Loss]] = {"squared": SquaredLoss, "logistic": LogisticLoss}


def as_loss(loss: Any) -> Loss:
    """A loss by name ("squared", "logistic") or as itself."""
    if not isinstance(loss, str):
        return loss
    if loss not in LOSSES:
        raise UserError(f"Unknown loss {loss!r}: expected a Loss or one of {sorted(LOSSES)}.")
    return LOSSES[loss]()


def objective(
    X: np.ndarray, target: np.ndarray, weight: np.ndarray, *, head: Any, loss: Any, alpha: Any
) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The penalised weighted mean loss of w -> head(X w), for many w at once, with its gradient.

    `target` (n, k) is the membership of each row in each of k problems, and the `weight` (n,) sums
    to one. Returns a function (W (j, d), problems (j,)) -> values (j,), gradients (j, d).
    """

    def value_and_gradient(W: np.ndarray, problems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slope = loss.value_and_slope(X @ W.T, target[:, problems], head=head)
        gradient = (weight[:, None] * slope).T @ X
        return weight @ value + (alpha * W**2).sum(axis=1) / 2, gradient + alpha * W

    return value_and_gradient
