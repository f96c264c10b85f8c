"""Heads and hidden activations: each formula once, for NumPy and torch alike.

A head is a function from the signed distance z to a membership in [0, 1]. A sigmoid makes a
halfspace of it, a bump the margin around a hyperplane, a radial basis function a ball.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from eqsep.arrays import namespace


class Activation(BaseEstimator, ABC):
    """A function of z with its exact derivative."""

    has_sigma: ClassVar[bool] = False  # a width, which a network can learn
    vanishes: ClassVar[bool] = False  # far from its peak, on either side

    @abstractmethod
    def __call__(self, z: Any) -> Any:
        """The value at `z`, of the same shape."""

    @abstractmethod
    def slope(self, z: Any) -> Any:
        """The derivative at `z`."""

    def value_and_slope(self, z: Any) -> tuple[Any, Any]:
        """The value and the derivative at `z`, sharing what they have in common."""
        return self(z), self.slope(z)


class Head(Activation):
    """A function from the signed distance z to a membership p in [0, 1].

    Attributes
    ----------
    family : {"halfspace", "equality", "rbf"}
        What one unit of it cuts out of the space.
    has_logarithm : bool
        Whether p is a probability with a finite logarithm, as the logistic loss needs.
    """

    family: ClassVar[str]
    has_logarithm: ClassVar[bool] = True

    def membership(self, z: Any) -> Any:
        """The value at `z`, kept within [0, 1]."""
        return self(z)

    @property
    @abstractmethod
    def half_width(self) -> float:
        """How far from its peak the membership falls to 1/2."""

    def centred(self) -> Self:
        """The same head with its peak at 0: a bias can take up the shift."""
        return self


class ProbabilisticHead(Head):
    """A head with log p and log(1 - p) computed from z, never by clipping p."""

    @abstractmethod
    def log(self, z: Any) -> Any:
        """log p: exact where p itself would underflow."""

    @abstractmethod
    def log_slope(self, z: Any) -> Any:
        """The derivative of log p."""

    @abstractmethod
    def log1m(self, z: Any) -> Any:
        """log(1 - p): exact where 1 - p itself would vanish."""

    @abstractmethod
    def log1m_slope(self, z: Any) -> Any:
        """The derivative of log(1 - p)."""

    def logs_and_slopes(self, z: Any) -> tuple[Any, Any, Any, Any]:
        """log p, log(1 - p) and the derivatives of both, sharing what they have in common."""
        return self.log(z), self.log1m(z), self.log_slope(z), self.log1m_slope(z)

    def slope(self, z: Any) -> Any:
        return self.value_and_slope(z)[1]

    def value_and_slope(self, z: Any) -> tuple[Any, Any]:
        p = self(z)
        return p, self.log_slope(z) * p


def _power_of_smallest(z: Any, power: float) -> float:
    """A small number for the precision of `z`: the smallest normal one to a power below 1."""
    return float(namespace(z).finfo(z.dtype).smallest_normal) ** power


def _complement(log_p: Any) -> Any:
    """1 - p from log p <= 0: exact where p is close to 1, and its inverse is finite."""
    xp, floor = namespace(log_p), _power_of_smallest(log_p, 0.75)
    rest = -xp.expm1(log_p)
    return xp.where(rest < floor, floor, rest)


class _ExponentialHead(ProbabilisticHead):
    """p = exp(log p), with log p <= 0 a polynomial of z: all else follows from it."""

    def __call__(self, z: Any) -> Any:
        return namespace(z).exp(self.log(z))

    def log1m(self, z: Any) -> Any:
        return namespace(z).log(_complement(self.log(z)))

    def log1m_slope(self, z: Any) -> Any:
        return self.logs_and_slopes(z)[3]

    def logs_and_slopes(self, z: Any) -> tuple[Any, Any, Any, Any]:
        xp, log_p, slope = namespace(z), self.log(z), self.log_slope(z)
        rest = _complement(log_p)
        return log_p, xp.log(rest), slope, -slope * xp.exp(log_p) / rest


@dataclass
class GaussianBump(_ExponentialHead):
    """exp(-(z - mu)² / 2 sigma²): one on the hyperplane, zero far from it.

    Parameters
    ----------
    sigma : float
        The bump's width.
    mu : float
        Where it peaks. Separators put it at 0, since a bias says where their surface lies.

    Examples
    --------
    >>> import numpy as np
    >>> GaussianBump(sigma=0.5)(np.array([-0.5, 0.0, 0.5])).round(3)
    array([0.607, 1.   , 0.607])
    """

    sigma: float = 1.0
    mu: float = 0.0

    family: ClassVar[str] = "equality"
    has_sigma: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True

    def log(self, z: Any) -> Any:
        return -0.5 * ((z - self.mu) / self.sigma) ** 2

    def log_slope(self, z: Any) -> Any:
        return -(z - self.mu) / self.sigma**2

    @property
    def half_width(self) -> float:
        return self.sigma * math.sqrt(2 * math.log(2))

    def centred(self) -> Self:
        return replace(self, mu=0.0)


@dataclass
class RadialBasis(_ExponentialHead):
    """exp(-gamma r²) of the distance r to a centre: one at the point, zero far from it."""

    gamma: float = 1.0

    family: ClassVar[str] = "rbf"
    vanishes: ClassVar[bool] = True

    def log(self, z: Any) -> Any:
        return -self.gamma * z**2

    def log_slope(self, z: Any) -> Any:
        return -2 * self.gamma * z

    @property
    def half_width(self) -> float:
        return math.sqrt(math.log(2) / self.gamma)


@dataclass
class TanhBump(ProbabilisticHead):
    """tanh((sigma / z)²): flat in the margin |z| < sigma, falling off like 1 / z² outside it.

    >>> import numpy as np
    >>> TanhBump(sigma=1.0)(np.array([0.0, 0.5, 1.0, 4.0])).round(3)
    array([1.   , 0.999, 0.762, 0.062])
    """

    sigma: float = 1.0

    family: ClassVar[str] = "equality"
    has_sigma: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True

    def _ratio(self, z: Any) -> tuple[Any, Any]:
        """q = (sigma / z)² and its derivative -2 q / z, finite whatever sigma is."""
        u = z / self.sigma
        xp, floor = namespace(u), _power_of_smallest(u, 0.3)
        u = xp.where(xp.abs(u) < floor, xp.full_like(u, floor), u)  # so that 1 / u³ is finite
        q = (1 / u) ** 2
        return q, -2 * q / u / self.sigma

    def __call__(self, z: Any) -> Any:
        return namespace(z).tanh(self._ratio(z)[0])

    def log(self, z: Any) -> Any:
        xp, (q, _) = namespace(z), self._ratio(z)
        return xp.log(_complement(-2 * q)) - xp.log1p(xp.exp(-2 * q))

    def log_slope(self, z: Any) -> Any:
        xp, (q, dq) = namespace(z), self._ratio(z)
        return dq * 4 * xp.exp(-2 * q) / -xp.expm1(-4 * q)

    def log1m(self, z: Any) -> Any:
        xp, (q, _) = namespace(z), self._ratio(z)
        wide = xp.log1p(-xp.tanh(xp.where(q < 1, q, xp.ones_like(q))))
        return xp.where(q < 1, wide, math.log(2) - 2 * q - xp.log1p(xp.exp(-2 * q)))

    def log1m_slope(self, z: Any) -> Any:
        xp, (q, dq) = namespace(z), self._ratio(z)
        return -2 * dq / (1 + xp.exp(-2 * q))

    @property
    def half_width(self) -> float:
        return self.sigma / math.sqrt(math.atanh(0.5))


@dataclass
class Ridge(Head):
    """1 - z²: positive in the margin |z| < 1 and only there, the hyper-ridge rule.

    A rule, not a probability: below zero outside the margin, so it goes with the squared loss.
    """

    family: ClassVar[str] = "equality"
    has_logarithm: ClassVar[bool] = False

    def __call__(self, z: Any) -> Any:
        return 1 - z**2

    def slope(self, z: Any) -> Any:
        return -2 * z

    def membership(self, z: Any) -> Any:
        xp = namespace(z)
        return xp.where(xp.abs(z) < 1, self(z), xp.zeros_like(z))

    @property
    def half_width(self) -> float:
        return math.sqrt(0.5)


@dataclass
class Sigmoid(ProbabilisticHead):
    """1 / (1 + exp(-z)): one deep inside the halfspace z > 0, zero deep outside it.

    >>> import numpy as np
    >>> Sigmoid()(np.array([-800.0, 0.0, 800.0]))
    array([0. , 0.5, 1. ])
    """

    family: ClassVar[str] = "halfspace"

    def __call__(self, z: Any) -> Any:
        return 0.5 * (1 + namespace(z).tanh(0.5 * z))

    def log(self, z: Any) -> Any:
        xp = namespace(z)
        return -xp.logaddexp(xp.zeros_like(z), -z)

    def log_slope(self, z: Any) -> Any:
        return self(-z)

    def log1m(self, z: Any) -> Any:
        return self.log(-z)

    def log1m_slope(self, z: Any) -> Any:
        return -self(z)

    @property
    def half_width(self) -> float:
        return 0.0


@dataclass
class LeakyReLU(Activation):
    """max(z, leak z): a hidden activation that is open on one side."""

    leak: float = 0.01

    family: ClassVar[str] = "halfspace"

    def __call__(self, z: Any) -> Any:
        return namespace(z).where(z > 0, z, self.leak * z)

    def slope(self, z: Any) -> Any:
        xp = namespace(z)
        return xp.where(z > 0, xp.ones_like(z), xp.full_like(z, self.leak))
