"""The one-vs-set machine: a support vector machine with a second, parallel plane."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.svm import SVC

from eqsep.separators.base import Separator, check_known
from eqsep.separators.planes import Frame

_CANDIDATES = 256
_ROOM = 1e-3  # of the span: the least room between two rows for a plane to go


@dataclass(kw_only=True, eq=False, repr=False)
class OneVsSet(Separator):
    """1(near <= s(x) <= far): normal between two parallel planes of a support vector machine.

    s is the machine's decision value towards the normal class. The planes minimise width / span +
    span / width + trade_off · (share of normal rows outside + share of anomalies inside), where
    span holds all normal rows: the open-space risk of Scheirer et al. (2013) and the error.

    Parameters
    ----------
    kernel, C, gamma
        As in `sklearn.svm.SVC`, with a linear kernel by default.
    balanced : bool, default=True
        Whether both classes count the same in the machine, however many rows they have.
    ranking : {"equality", "binary"}, default="equality"
        "equality" ranks rows by their distance to the mid-plane; "binary" only says inside or
        outside, as published.
    trade_off : float, default=10.0
        How much the training error counts against the open-space risk.
    tol : float, default=1e-6
        As in `sklearn.svm.SVC`. With many rows, 1e-3 takes a fraction of the time.
    normal : label, default=None
        As in `EqualitySeparator`.

    Attributes
    ----------
    near_, far_ : float
        The planes, as values of s.
    midplane_ : float
        Half way between them.
    svm_ : SVC
        The machine, fitted on standardised columns.

    Examples
    --------
    >>> from eqsep import OneVsSet
    >>> X, y = [[0, 0], [1, 0], [0, 1], [1, 1], [5, 5], [6, 5]], [0, 0, 0, 0, 1, 1]
    >>> OneVsSet().fit(X, y).predict([[0.5, 0.5], [5, 6], [-9, -9]])
    array([0, 1, 1])
    """

    kernel: Any = "linear"
    C: float = 1.0
    gamma: Any = "scale"
    balanced: bool = True
    ranking: str = "equality"
    trade_off: float = 10.0
    tol: float = 1e-6
    normal: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine, then set the two planes."""
        X, is_anomaly, weight = self._enter(X, y, sample_weight)
        check_known(_RANKINGS, ranking=self.ranking)
        self.frame_ = Frame.standard(X, weight / weight.sum())
        svm = SVC(kernel=self.kernel, C=self.C, gamma=self.gamma, tol=self.tol)
        svm.set_params(class_weight="balanced" if self.balanced else None)
        self.svm_ = svm.fit(self.frame_.columns(X), is_anomaly, sample_weight=weight)
        s = self._towards_normal(X)
        self.near_, self.far_ = _planes(s, is_anomaly == 1, weight, trade_off=self.trade_off)
        self.midplane_ = (self.near_ + self.far_) / 2
        return self

    def distance(self, X: Any) -> np.ndarray:
        """|s(x) - mid-plane|: how far each row lies from the middle of the slab."""
        return np.abs(self._towards_normal(self._rows(X)) - self.midplane_)

    def decision_function(self, X: Any) -> np.ndarray:
        """The distance to the mid-plane less half the width, or only its sign (`ranking`)."""
        outside = self.distance(X) - (self.far_ - self.near_) / 2
        return _RANKINGS[self.ranking](outside)

    def _towards_normal(self, X: np.ndarray) -> np.ndarray:
        return -self.svm_.decision_function(self.frame_.columns(X))


def _planes(
    s: np.ndarray, is_anomaly: np.ndarray, weight: np.ndarray, *, trade_off: float
) -> tuple[float, float]:
    """The near and the far plane of least risk, among values half way between the rows'."""
    span = max(float(np.ptp(s[~is_anomaly])), 1e-3 * float(np.ptp(s)), 1e-12)
    rim, edges = span / 20, np.sort(s)
    middles = (edges[1:] + edges[:-1])[np.diff(edges) > _ROOM * span] / 2
    rims = [s[~is_anomaly].min() - rim, s[~is_anomaly].max() + rim]
    middles = np.sort(np.concatenate([rims, middles, [edges[0] - rim, edges[-1] + rim]]))
    at = np.unique(np.linspace(0, len(middles) - 1, _CANDIDATES).round().astype(int))
    near, far = np.meshgrid(middles[at], middles[at], indexing="ij")
    width = np.where(far > near, far - near, np.inf)
    error = _outside(s[~is_anomaly], weight[~is_anomaly], near, far)
    error = error + 1 - _outside(s[is_anomaly], weight[is_anomaly], near, far)
    with np.errstate(invalid="ignore"):
        risk = width / span + span / width + trade_off * error
    best = np.unravel_index(np.argmin(risk), risk.shape)
    return float(near[best]), float(far[best])


def _outside(s: np.ndarray, weight: np.ndarray, near: np.ndarray, far: np.ndarray) -> np.ndarray:
    """The share of the rows that lie outside [near, far]."""
    order = np.argsort(s)
    below = np.concatenate([[0.0], np.cumsum(weight[order])]) / weight.sum()
    within = below[np.searchsorted(s[order], far, side="right")]
    return 1 - within + below[np.searchsorted(s[order], near, side="left")]


_RANKINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "equality": lambda outside: outside,
    "binary": lambda outside: np.where(outside > 0, 1.0, -1.0),
}
