"""Search for points that a family of separators shatters."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eqsep.theory.certificate import Shattering
from eqsep.theory.checks import check_dimension, look_up
from eqsep.theory.families import FAMILIES
from eqsep.theory.planes import PlaneFamily
from eqsep.theory.rational import as_rationals
from eqsep.theory.shattering import certify
from eqsep.theory.vc import vc_dimension


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
    realises. Points that slabs alone shatter lie on an ellipsoid (see the note on the VC
    dimension), so "hyper-ridge" searches on the unit sphere. Coordinates are rounded to a few
    decimals and only what `shatters` then confirms in exact arithmetic is returned.

    Parameters
    ----------
    family : {"epsilon-equality", "hyper-ridge", "strict-equality", "halfspace"}
        The planes, as in `separating_hyperplane`.
    n_features : int
        The dimension n of the space.
    size : int
        The number of points.
    random_state : int, Generator or None
        The source of the starting points and moves.
    max_iter : int, default=20000
        The number of point sets to look at.
    decimals : int, default=3
        Decimals kept of each coordinate.

    Returns
    -------
    Shattering or None
        The certificate; None where nothing was found, which proves nothing, or where `size` is
        above the bound, which is a proof that there is nothing to find.

    Examples
    --------
    >>> from eqsep.theory import find_shattered
    >>> six = find_shattered("epsilon-equality", 2, 6, random_state=0)
    >>> len(six.points), len(six.planes), six.verify()
    (6, 64, True)
    >>> find_shattered("epsilon-equality", 2, 7, random_state=0) is None
    True
    """
    chosen = look_up(family, FAMILIES)
    n, m = check_dimension(n_features), check_dimension(size, name="size")
    if m > vc_dimension(family, n).upper:
        return None
    rng = np.random.default_rng(random_state)
    left = check_dimension(max_iter, name="max_iter")
    while left > 0:
        walk = _Walk(chosen, rng, iterations=min(left, _RESTART))
        X, used = walk.run(rng.standard_normal((m, n)))
        left -= used
        if X is not None:
            text = [[f"{value:.{decimals}f}" for value in row] for row in X.tolist()]
            answer = certify(chosen, as_rationals(text))
            if answer:
                return answer
    return None


_RESTART = 5_000  # moves before a walk starts afresh


@dataclass(frozen=True)
class _Walk:
    """One run of simulated annealing."""

    family: PlaneFamily
    rng: np.random.Generator
    iterations: int

    def run(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64] | None, int]:
        """Points with no labelling missing, or None; and the number of point sets looked at."""
        X = self.family.settle(X)
        cost = self.family.missing(X)
        for i in range(1, self.iterations + 1):
            if cost == 0:
                return X, i
            trial = self._moved(X, step=0.6 * 0.05 ** (i / self.iterations))
            trial_cost = self.family.missing(trial)
            heat = 1e-3 * 2 ** len(X) * 1e-3 ** (i / self.iterations) + 0.05
            if trial_cost <= cost or self.rng.uniform() < np.exp((cost - trial_cost) / heat):
                X, cost = trial, trial_cost
        return None, self.iterations

    def _moved(self, X: NDArray[np.float64], *, step: float) -> NDArray[np.float64]:
        X = X.copy()
        length = step * np.exp(0.7 * self.rng.standard_normal())
        X[self.rng.integers(len(X))] += length * self.rng.standard_normal(X.shape[1])
        return self.family.settle(X)
