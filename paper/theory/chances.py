"""How likely random separators are to enclose a region that is not empty."""

from math import comb, log, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import erf

from eqsep.errors import UserError
from eqsep.theory import closing_number
from eqsep.theory.arguments import check_dimension
from eqsep.theory.exact import Bounds, maximise

_DRAWS = 400  # of k slabs, with a linear programme each
_NUMBERS = 4_000_000  # in the draws of n slabs, without one


class Chance(NamedTuple):
    """A probability and its standard error: 0 where it is known exactly."""

    value: float
    error: float


def enclosing_probability(
    family: str,
    n_features: int,
    k: int,
    *,
    margin: float = 1.0,
    random_state: int | np.random.Generator | None = 0,
) -> Chance:
    """The chance that k random separators enclose a volume that is finite, and not empty.

    Parameters
    ----------
    family, n_features, k
        As in `closing_probability`; for "rbf" k must be 1.
    margin : float, default=1.0
        The half-width epsilon of the slabs, in standard deviations of their offsets.
    random_state : int, Generator or None, default=0
        The source of the draws, where there are any.

    Notes
    -----
    Halfspaces: exactly C(k - 1, n) / 2^k, if normals and offsets are in general position and each
    plane is as likely as its reverse. k hyperplanes leave C(k - 1, n) bounded cells, each by one of
    2^k equally likely choices of sides. Slabs: 1 for k = n. Above that it is measured, with
    standard normal w and b.

    Examples
    --------
    >>> from eqsep.theory import closing_probability
    >>> closing_probability("halfspace", 2, 5), enclosing_probability("halfspace", 2, 5)
    (0.6875, Chance(value=0.1875, error=0.0))
    """
    closing_number(family, n_features)  # refuses what it does not know
    if not margin > 0:
        raise UserError(f"margin must be positive, got {margin}. A flat slab has volume 0.")
    n, k = check_dimension(n_features), check_dimension(k, name="k")
    if family == "equality" and k > n:
        return _slab_chance(n, k, margin=margin, rng=np.random.default_rng(random_state))
    if family == "rbf" and k != 1:
        raise UserError(
            f"the chance for RBF separators is known for one ball, got k={k}. Whether several "
            "meet depends on where their centres are drawn."
        )
    exact = {"rbf": 1.0, "equality": float(k == n), "halfspace": comb(k - 1, n) / 2**k}
    return Chance(exact[family], 0.0)


def _slab_chance(n: int, k: int, *, margin: float, rng: np.random.Generator) -> Chance:
    """The chance that k > n slabs meet, by the highest corner or by draws of all of them."""
    counted = _by_highest_corner(n, k, margin=margin, rng=rng)
    share = min(counted.value, 1.0)
    if counted.error**2 < share * (1 - share) / _DRAWS:
        return counted
    hits = sum(_slabs_meet(n, k, margin=margin, rng=rng) for _ in range(_DRAWS))
    share = (hits + 1) / (_DRAWS + 2)  # never quite 0 or 1, and so neither is the error
    return Chance(hits / _DRAWS, sqrt(share * (1 - share) / _DRAWS))


def _by_highest_corner(n: int, k: int, *, margin: float, rng: np.random.Generator) -> Chance:
    """The expected number of choices of n slabs whose highest corner lies in the k - n others."""
    # There is one such choice where the k slabs meet, else none. Each of the others holds a corner
    # p with the chance that a normal variable of variance 1 + |p|^2 is at most the margin.
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
    normals = rng.standard_normal((k, n))
    lengths = np.linalg.norm(normals, axis=1)
    units, offsets = normals / lengths[:, None], rng.standard_normal(k) / lengths
    sides, limits = np.vstack([units, -units]), [margin / lengths + s * offsets for s in (1, -1)]
    gain, rows = np.append(np.zeros(n), 1.0), np.column_stack([-sides, np.ones(2 * k)])
    bounds: Bounds = [(None, None)] * n + [(None, 1.0)]
    radius = maximise(gain, rows=rows, limits=np.concatenate(limits), bounds=bounds).x[n]
    return bool(radius > 0)
