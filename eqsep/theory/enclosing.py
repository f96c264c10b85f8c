"""The chance that random separators enclose a finite, positive volume."""

from abc import ABC, abstractmethod
from math import comb, log, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import erf

from eqsep.errors import UserError
from eqsep.theory.checks import check_dimension, look_up
from eqsep.theory.closing import unit_rows
from eqsep.theory.volume import both_sides, inscribed_ball


class Chance(NamedTuple):
    """A probability and its standard error: 0 where it is known exactly."""

    value: float
    error: float


class _Family(ABC):
    name: str

    @abstractmethod
    def chance(self, n: int, k: int, *, margin: float, rng: np.random.Generator) -> Chance:
        """The chance of k separators in n dimensions."""


class _Radial(_Family):
    name = "rbf"

    def chance(self, n: int, k: int, *, margin: float, rng: np.random.Generator) -> Chance:  # noqa: ARG002
        if k != 1:
            raise UserError(
                f"the chance for RBF separators is known for one ball, got k={k}. Whether several "
                "meet depends on where their centres are drawn."
            )
        return Chance(1.0, 0.0)


class _Halfspaces(_Family):
    """Each of the 2^k ways to turn k hyperplanes is as likely, and C(k-1, n) are bounded cells."""

    name = "halfspace"

    def chance(self, n: int, k: int, *, margin: float, rng: np.random.Generator) -> Chance:  # noqa: ARG002
        return Chance(comb(k - 1, n) / 2**k, 0.0)


class _Slabs(_Family):
    """n slabs always meet, in a parallelepiped; whether more do depends on where they lie."""

    name = "equality"

    def chance(self, n: int, k: int, *, margin: float, rng: np.random.Generator) -> Chance:
        if k <= n:
            return Chance(float(k == n), 0.0)
        counted = _by_highest_corner(n, k, margin=margin, rng=rng)
        share = min(counted.value, 1.0)
        if counted.error**2 < share * (1 - share) / _DRAWS:
            return counted
        hits = sum(_slabs_meet(n, k, margin=margin, rng=rng) for _ in range(_DRAWS))
        share = (hits + 1) / (_DRAWS + 2)  # never quite 0 or 1, and so neither is the error
        return Chance(hits / _DRAWS, sqrt(share * (1 - share) / _DRAWS))


_FAMILIES: dict[str, _Family] = {f.name: f for f in (_Radial(), _Halfspaces(), _Slabs())}
_DRAWS = 400  # of k slabs, with a linear programme each
_NUMBERS = 4_000_000  # in the draws of n slabs, without one


def enclosing_probability(
    family: str,
    n_features: int,
    k: int,
    *,
    margin: float = 1.0,
    random_state: int | np.random.Generator | None = 0,
) -> Chance:
    """The chance that k random separators enclose a finite and positive volume.

    `closing_probability` asks for a region that is bounded; this also asks that it is not empty.

    Halfspaces: exactly C(k - 1, n) / 2^k, for all normals w and offsets b in general position whose
    distribution does not change when (w, b) is turned into (-w, -b), independently for each. k
    hyperplanes leave C(k - 1, n) bounded cells, and every cell is one of 2^k equally likely ways
    to choose sides.

    Slabs: 1 for k = n, whatever the offsets. Above that it depends on the offsets and widths: it is
    measured for slabs |w.x + b| <= margin with standard normal w and b. A region that is not empty
    has one highest corner, on n of the slabs: the highest corner p of their parallelepiped, which
    each of the others holds with the chance that a normal variable of variance 1 + |p|^2 is at
    most margin. The mean of the product over random p, times C(k, n), is the chance. Where 400
    draws of all k slabs are the better measurement, as for chances close to 1, they are made.

    Parameters
    ----------
    family : {"rbf", "equality", "halfspace"}
        The kind of separator; for "rbf" k must be 1.
    n_features : int
        The dimension n of the space.
    k : int
        The number of separators, at least 1.
    margin : float, default=1.0
        The half-width epsilon of the slabs, in standard deviations of their offsets.
    random_state : int, Generator or None, default=0
        The source of the draws, where there are any.

    Returns
    -------
    Chance
        Named tuple (value, error): the probability and its standard error, 0 where it is exact.

    Examples
    --------
    Of five halfspaces in the plane eleven in sixteen leave no way out, but most regions are empty.

    >>> from eqsep.theory import closing_probability, enclosing_probability
    >>> closing_probability("halfspace", 2, 5)
    0.6875
    >>> enclosing_probability("halfspace", 2, 5)
    Chance(value=0.1875, error=0.0)
    >>> enclosing_probability("equality", 2, 2)
    Chance(value=1.0, error=0.0)
    """
    chosen = look_up(family, _FAMILIES)
    if not margin > 0:
        raise UserError(f"margin must be positive, got {margin}. A flat slab has volume 0.")
    n, k = check_dimension(n_features), check_dimension(k, name="k")
    return chosen.chance(n, k, margin=margin, rng=np.random.default_rng(random_state))


def _by_highest_corner(n: int, k: int, *, margin: float, rng: np.random.Generator) -> Chance:
    """The expected number of choices of n slabs whose highest corner lies in the k - n others.

    There is one such choice where the k slabs meet, and none where they do not.
    """
    draws = max(100, min(100_000, _NUMBERS // n**2))
    normals, offsets = rng.standard_normal((draws, n, n)), rng.standard_normal((draws, n))
    # Up, along the first axis, is a sum of the normals: their signs there say which face is higher.
    signs = np.sign(np.linalg.inv(normals)[:, 0, :])
    corners = np.linalg.solve(normals, (margin * signs - offsets)[..., None])[..., 0]
    with np.errstate(all="ignore"):  # logarithms, as C(k, n) may be too large for a float
        held = np.log(erf(margin / np.sqrt(2 + 2 * np.sum(corners**2, axis=1))))
        number = np.exp(log(comb(k, n)) + (k - n) * held)
        return Chance(float(number.mean()), float(number.std() / sqrt(draws)))


def _slabs_meet(n: int, k: int, *, margin: float, rng: np.random.Generator) -> bool:
    """Whether k random slabs have a ball in common."""
    units, lengths = unit_rows(rng.standard_normal((k, n)))
    offsets, widths = rng.standard_normal(k) / lengths, margin / lengths
    return inscribed_ball(*both_sides(units, offsets, widths))[1] > 0
