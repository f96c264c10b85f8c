"""A search for points that a family shatters, by simulated annealing."""

import numpy as np
from numpy.typing import NDArray

from eqsep.theory import shatters, vc_dimension
from eqsep.theory.arguments import check_dimension
from eqsep.theory.certificate import Shattering
from eqsep.theory.families import FAMILIES, SlabTable

_RESTART = 5_000  # moves before the search starts again
_ROOM = 1e-4  # a slab found by search must survive the rounding of the points' coordinates
_SLABS = ("epsilon-equality", "hyper-ridge")


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
    n, m = check_dimension(n_features), check_dimension(size, name="size")
    if m > vc_dimension(family, n).upper:
        return None
    rng = np.random.default_rng(random_state)
    left = check_dimension(max_iter, name="max_iter")
    while left > 0:
        start = _settled(rng.standard_normal((m, n)), family)
        X, used = _anneal(family, start, rng, iterations=min(left, _RESTART))
        left -= used
        if X is not None:
            text = [[f"{value:.{decimals}f}" for value in row] for row in X.tolist()]
            if answer := shatters(text, family, certificates=True):
                return answer
    return None


def _anneal(
    family: str, X: NDArray[np.float64], rng: np.random.Generator, *, iterations: int
) -> tuple[NDArray[np.float64] | None, int]:
    """Points with no labelling missing, or None; and the number of point sets looked at."""
    cost = missing(X, family)
    for i in range(1, iterations + 1):
        if cost == 0:
            return X, i
        step = 0.6 * 0.05 ** (i / iterations) * np.exp(0.7 * rng.standard_normal())
        trial = X.copy()
        trial[rng.integers(len(X))] += step * rng.standard_normal(X.shape[1])
        trial = _settled(trial, family)
        trial_cost = missing(trial, family)
        heat = 1e-3 * 2 ** len(X) * 1e-3 ** (i / iterations) + 0.05
        if trial_cost <= cost or rng.uniform() < np.exp((cost - trial_cost) / heat):
            X, cost = trial, trial_cost
    return None, iterations


def missing(X: NDArray[np.float64], family: str) -> int:
    """How many labellings no slab was seen to realise, in floats: what the search lowers."""
    if family not in _SLABS:
        return 0
    seen = SlabTable(X).room > _ROOM
    if 0 in FAMILIES[family].margin_classes:
        seen = seen | seen[::-1]
    return int(np.sum(~seen))


def _settled(X: NDArray[np.float64], family: str) -> NDArray[np.float64]:
    """The points moved to where the search should look: slabs around class 1 need an ellipsoid."""
    return X / np.linalg.norm(X, axis=1, keepdims=True) if family == "hyper-ridge" else X
