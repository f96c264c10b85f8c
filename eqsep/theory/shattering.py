"""Shattering: does a family realise every labelling of some points, and which points does it?"""

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsep.theory.arguments import check_dimension, look_up
from eqsep.theory.certificate import Hyperplane, Points, Shattering
from eqsep.theory.exact import Integers, as_rationals, homogeneous
from eqsep.theory.families import FAMILIES, PlaneFamily
from eqsep.theory.vc import vc_dimension

Planes = tuple[Hyperplane, ...]
_RESTART = 5_000  # moves before the search starts again


@overload
def shatters(points: ArrayLike, family: str, *, certificates: Literal[False] = False) -> bool: ...


@overload
def shatters(points: ArrayLike, family: str, *, certificates: Literal[True]) -> Shattering: ...


def shatters(points: ArrayLike, family: str, *, certificates: bool = False) -> bool | Shattering:
    """Whether the family realises all 2^m labellings of the points, exactly decided.

    Parameters
    ----------
    points : array-like of shape (m, n_features)
        The points: numbers, `fractions.Fraction`, or decimals as text such as "0.1".
    family : {"epsilon-equality", "hyper-ridge", "strict-equality", "halfspace"}
        The planes, as in `separating_hyperplane`.
    certificates : bool, default=False
        Return the evidence: a plane for each labelling, or a labelling that has none.

    Examples
    --------
    The corners of a square: halfspaces fail at XOR, equality separators do not.

    >>> square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> shatters(square, "strict-equality")
    True
    >>> shatters(square, "halfspace", certificates=True).refused
    (1, 0, 0, 1)
    >>> proof = shatters(square, "hyper-ridge", certificates=True)
    >>> len(proof.planes), proof.verify()
    (16, True)
    """
    answer = _certify(look_up(family, FAMILIES), as_rationals(points))
    return answer if certificates else bool(answer)


def find_shattered(
    family: str,
    n_features: int,
    size: int,
    *,
    random_state: int | np.random.Generator | None = None,
    max_iter: int = 20_000,
    decimals: int = 3,
) -> Shattering | None:
    """Points of R^n that the family shatters, with the proof, or None if the search found none.

    Simulated annealing moves one point at a time to lower the number of labellings that no slab
    realises; "hyper-ridge" searches on the unit sphere. What `shatters` does not confirm once
    coordinates are rounded is not returned. None proves that there is nothing to find if `size` is
    above the bound of `vc_dimension`, and else nothing.

    Parameters
    ----------
    family, n_features
        As in `vc_dimension`.
    size : int
        The number of points.
    random_state : int, Generator or None
    max_iter : int, default=20000
        The number of point sets to look at.
    decimals : int, default=3
        Decimals kept of each coordinate.

    Examples
    --------
    >>> six = find_shattered("epsilon-equality", 2, 6, random_state=0)
    >>> len(six.points), len(six.planes), six.verify()
    (6, 64, True)
    """
    chosen = look_up(family, FAMILIES)
    n, m = check_dimension(n_features), check_dimension(size, name="size")
    if m > vc_dimension(family, n).upper:
        return None
    rng = np.random.default_rng(random_state)
    left = check_dimension(max_iter, name="max_iter")
    while left > 0:
        start = chosen.settle(rng.standard_normal((m, n)))
        X, used = _anneal(chosen, start, rng, iterations=min(left, _RESTART))
        left -= used
        if X is not None:
            text = [[f"{value:.{decimals}f}" for value in row] for row in X.tolist()]
            if answer := _certify(chosen, as_rationals(text)):
                return answer
    return None


def _certify(family: PlaneFamily, points: Points) -> Shattering:
    """The certificate that the family shatters the points, or the labelling that it refuses."""
    rows = homogeneous(points)
    limit = family.limit(rows.shape[1] - 1)
    refused = family.obstruction(rows) if len(rows) > limit else None
    if refused is None:
        # What cannot be done on a part of the points cannot be done on all of them.
        planes, refused = _realise_all(family, rows[: limit + 1])
    if refused is None:
        return Shattering(family.name, points, planes)
    rest = [0] * (len(points) - len(refused))
    return Shattering(family.name, points, refused=(*refused, *rest))


def _realise_all(family: PlaneFamily, rows: Integers) -> tuple[Planes, list[int] | None]:
    """A plane for every labelling and None, or no planes and a labelling that has none."""
    planes = family.proposals(rows)
    # Those with classes of equal size are the likeliest to fail.
    for number in sorted(range(2 ** len(rows)), key=lambda i: abs(2 * i.bit_count() - len(rows))):
        if number not in planes:
            labels = [number >> place & 1 for place in reversed(range(len(rows)))]
            plane = family.separate(rows, labels)
            if plane is None:
                return (), labels
            planes[number] = plane
    return tuple(planes[number] for number in range(2 ** len(rows))), None


def _anneal(
    family: PlaneFamily, X: NDArray[np.float64], rng: np.random.Generator, *, iterations: int
) -> tuple[NDArray[np.float64] | None, int]:
    """Points with no labelling missing, or None; and the number of point sets looked at."""
    cost = family.missing(X)
    for i in range(1, iterations + 1):
        if cost == 0:
            return X, i
        step = 0.6 * 0.05 ** (i / iterations) * np.exp(0.7 * rng.standard_normal())
        trial = X.copy()
        trial[rng.integers(len(X))] += step * rng.standard_normal(X.shape[1])
        trial = family.settle(trial)
        trial_cost = family.missing(trial)
        heat = 1e-3 * 2 ** len(X) * 1e-3 ** (i / iterations) + 0.05
        if trial_cost <= cost or rng.uniform() < np.exp((cost - trial_cost) / heat):
            X, cost = trial, trial_cost
    return None, iterations
