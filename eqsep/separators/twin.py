"""Two equality separators, one a class: a likelihood ratio test by distances."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from eqsep.errors import UserError
from eqsep.separators.base import Separator
from eqsep.separators.linear import EqualitySeparator
from eqsep.separators.planes import Frame, distance, warn_unless_converged


@dataclass(kw_only=True, eq=False, repr=False)
class TwinSeparator(Separator):
    """1(t · d₁(x) > d₂(x)): anomalous where the anomalies' plane is the nearer one.

    d₁ and d₂ are the distances to a hyperplane fitted to the normal rows and one fitted to the
    anomalies. With parallel planes and t = 1 the boundary is the halfspace half way between
    them, 2 w·x + b₁ + b₂ = 0, learnt from the mass of both classes and not from support vectors.

    Parameters
    ----------
    separator : EqualitySeparator, default=None
        What each plane is fitted with (its `margin_class` and `random_state` are set here).
    t : float, default=1.0
        The threshold of the ratio of distances; a larger one calls more rows anomalous.
    parallel : bool, default=False
        Whether the two planes share their normal vector.
    normal, random_state
        As in `EqualitySeparator`.

    Attributes
    ----------
    coef_ : ndarray of shape (2, n_features)
        The normal vectors of the normal rows' plane and of the anomalies'.
    intercept_ : ndarray of shape (2,)

    Examples
    --------
    >>> from eqsep import TwinSeparator
    >>> X, y = [[0, 0], [1, 0.1], [2, 0], [0, 3], [1, 3.1], [2, 3]], [0, 0, 0, 1, 1, 1]
    >>> TwinSeparator(parallel=True, random_state=0).fit(X, y).predict([[5, 0.4], [5, 2.8]])
    array([0, 1])
    """

    separator: EqualitySeparator | None = None
    t: float = 1.0
    parallel: bool = False
    normal: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn a plane for the normal rows and one for the anomalies."""
        X, is_anomaly, weight = self._enter(X, y, sample_weight)
        weight = weight / weight.sum()
        if not self.t > 0:
            raise UserError(f"t must be positive, got {self.t!r}: it is a ratio of distances.")
        template = EqualitySeparator() if self.separator is None else clone(self.separator)
        rng = check_random_state(self.random_state)
        if self.parallel:
            planes = _parallel_planes(template, X, is_anomaly, weight, rng)
        else:
            planes = []
            for side in (0.0, 1.0):
                separator = clone(template).set_params(margin_class=side, random_state=rng)
                separator.fit(X, is_anomaly, sample_weight=weight)
                planes.append((separator.coef_, separator.intercept_))
        coefs, intercepts = zip(*planes, strict=True)
        self.coef_, self.intercept_ = np.stack(coefs), np.array(intercepts)
        return self

    def distances(self, X: Any) -> np.ndarray:
        """The distance of each row to the normal rows' plane and to the anomalies'.  -> (n, 2)"""
        X = self._rows(X)
        planes = zip(self.coef_, self.intercept_, strict=True)
        return np.column_stack([distance(X, coef, intercept) for coef, intercept in planes])

    def decision_function(self, X: Any) -> np.ndarray:
        """t times the distance to the normal rows' plane, less that to the anomalies'."""
        to_normal, to_anomaly = self.distances(X).T
        return self.t * to_normal - to_anomaly


def _parallel_planes(
    template: EqualitySeparator, X: np.ndarray, is_anomaly: np.ndarray, weight: np.ndarray, rng: Any
) -> list[tuple[np.ndarray, float]]:
    """Two planes w·x + b₁ = 0 and w·x + b₂ = 0, learnt together from each row with either bias."""
    search = replace(template.search(), n_biases=2)
    frame = Frame.standard(X, weight)
    columns = frame.columns(X)
    ones, zeros = np.ones((len(X), 1)), np.zeros((len(X), 1))
    rows = np.block([[columns, ones, zeros], [columns, zeros, ones]])
    target = np.concatenate([1 - is_anomaly, is_anomaly])
    reach, d = search.head.half_width, rows.shape[1]
    starts = rng.standard_normal((template.n_init, d)) * reach / np.sqrt(d)
    doubled = np.concatenate([weight, weight]) / 2
    found, _ = search.run(rows, target[:, None], doubled, [starts], rng=rng)
    warn_unless_converged(found, found.best)
    w = found.weights[found.best]
    return [frame.plane(np.append(w[:-2], bias)) for bias in w[-2:]]
