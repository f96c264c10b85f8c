"""The linear equality separator: one neuron that classifies XOR."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from eqsep.activations import GaussianBump, Head
from eqsep.errors import ParameterError, UserError
from eqsep.losses import Loss, as_loss
from eqsep.separators import planes
from eqsep.separators.base import Separator, check_known
from eqsep.separators.planes import Frame, Search, distance, signed_distance
from eqsep.solvers import BFGS, LBFGS


@dataclass(kw_only=True, eq=False, repr=False)
class EqualitySeparator(Separator):
    """1(|w·x + b| <= epsilon): a class lies on the hyperplane, the other anywhere off it.

    The hyperplane minimises the mean loss of the head at w·x + b plus alpha / 2 · ||w||², over
    several starts and, with `margin_class="auto"`, over both choices of the class in the margin. If
    rows are of one class only, all are of that class: to learn from normal rows alone, wrap it in
    `NegativeSampling`.

    Parameters
    ----------
    sigma : float, default=None
        The width of the Gaussian bump, 1 by default. Without a penalty it only sets the scale of w.
        Leave it out if `head` is given.
    head : Head, default=None
        A bump of `eqsep.activations`; `GaussianBump(sigma)` by default.
    loss : {"squared", "logistic"} or Loss, default="squared"
    margin_class : label or "auto", default="auto"
        The label of the class that lies in the margin. "auto" tries both and keeps the one with
        the lower training loss (label flipping).
    alpha : float, default=0.0
        The ridge penalty on the (standardised) weights.
    n_init : int, default=10
        How many random starts are made for each margin class.
    init : {"informed", "normal"}, default="informed"
        "informed" standardises columns and adds planes fitted in closed form to the random starts;
        "normal" starts from standard normal weights in the columns as they are.
    rule : {"epsilon", "strict"}, default="epsilon"
        "epsilon" learns the margin's half-width from the training rows; "strict" asks for the
        plane itself, up to rounding.
    solver : BFGS or LBFGS, default=None
        `BFGS()` for up to 100 columns, `LBFGS()` above.
    normal : label, default=None
        Which label is normal; by default 0, False or "normal", whichever occurs.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    epsilon_ : float
        The half-width of the margin in units of w·x + b.
    margin_class_ : label
        The class in the margin.
    head_ : Head
        The head, centred on the hyperplane.
    loss_ : float
        The training loss of the best start.
    n_iter_ : int
    classes_ : ndarray of shape (2,)
        The normal label, then the anomalous one.

    Examples
    --------
    >>> from eqsep import EqualitySeparator
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> EqualitySeparator(random_state=0).fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    sigma: float | None = None
    head: Head | None = None
    loss: str | Loss = "squared"
    margin_class: Any = "auto"
    alpha: float = 0.0
    n_init: int = 10
    init: str = "informed"
    rule: str = "epsilon"
    solver: BFGS | LBFGS | None = None
    normal: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the hyperplane, the class in its margin and the margin's width."""
        X, is_anomaly, weight = self._enter(X, y, sample_weight, one_class=True)
        search, sides, weight = self.search(), self._sides(), weight / weight.sum()
        rng = check_random_state(self.random_state)
        frame = _FRAMES[self.init](X, weight)
        rows = frame.rows(X)
        targets = np.column_stack([1 - is_anomaly, is_anomaly])[:, sides]
        reach = search.head.half_width
        if is_anomaly.min() < is_anomaly.max():
            starts = self._starts(rows, targets, weight, reach, rng)
            found, side = search.run(rows, targets, weight, starts, rng=rng)
        else:
            beyond = planes.plane_beyond(rows, reach=2 * reach)
            found, side = search.at(rows, targets, weight, beyond)
        best = found.best
        planes.warn_unless_converged(found, best)
        inside = targets[:, side[best]] == 1
        w = found.weights[best]
        if self.rule == "strict":
            w = planes.plane_through(rows[inside], w)
        self.coef_, self.intercept_ = frame.plane(w)
        self.head_, self.margin_class_ = search.head, self.classes_[sides[side[best]]]
        if self.rule == "strict":  # what rounding can make of w·x + b = 0 for rows of this size
            largest = np.abs(X).max(axis=0) @ np.abs(self.coef_) + abs(self.intercept_)
            self.epsilon_ = float(32 * (X.shape[1] + 1) * np.finfo(np.float64).eps * largest)
        else:
            z = np.abs(signed_distance(X, self.coef_, self.intercept_))
            self.epsilon_ = planes.least_error_width(z, inside=inside, weight=weight)
        self.loss_, self.n_iter_ = float(found.value[best]), max(1, int(found.n_iter[best]))
        return self

    def search(self) -> Search:
        """The head, loss, penalty and solver these parameters stand for; refuses what cannot be."""
        if self.sigma is not None and self.head is not None:
            raise UserError("sigma and head were both given. Put the width into the head.")
        if self.sigma is not None and not self.sigma > 0:
            raise ParameterError("sigma", expected="positive", got=self.sigma)
        head = GaussianBump(self.sigma or 1.0) if self.head is None else clone(self.head).centred()
        loss = as_loss(self.loss)
        if head.family != "equality":
            why = "only a bump has a margin on both sides of the hyperplane"
            got = f"head must be a bump (GaussianBump, TanhBump or Ridge), got {head!r}"
            raise UserError(f"{got}: {why}.")
        if loss.needs_logarithm and not head.has_logarithm:
            raise UserError(f"{loss!r} needs log p, which {head!r} lacks. Use loss='squared'.")
        check_known(_FRAMES, init=self.init)
        check_known(("epsilon", "strict"), rule=self.rule)
        if not (self.n_init >= 1 and self.alpha >= 0):
            got = f"got n_init={self.n_init!r} and alpha={self.alpha!r}"
            raise UserError(f"n_init must be at least 1 and alpha at least 0, {got}.")
        return Search(head, loss, self.alpha, self.solver)

    def _sides(self) -> list[int]:
        """The classes to try in the margin, by their place in `classes_`."""
        if isinstance(self.margin_class, str) and self.margin_class == "auto":
            return [0, 1]
        labels, side = self.classes_.tolist(), self.margin_class
        if side not in labels:
            raise UserError(f"margin_class must be 'auto' or one of {labels}, got {side!r}.")
        return [labels.index(side)]

    def _starts(
        self, rows: np.ndarray, targets: np.ndarray, weight: np.ndarray, reach: float, rng: Any
    ) -> list[np.ndarray]:
        """Random starts, the same for each side, behind the closed-form ones of that side."""
        drawn = rng.standard_normal((self.n_init, rows.shape[1]))
        if self.init == "normal":
            return [drawn for _ in targets.T]
        drawn *= reach / np.sqrt(rows.shape[1])
        sides = targets.T == 1
        fitted = [planes.closed_form_starts(rows, s, weight, reach=2 * reach) for s in sides]
        return [np.concatenate([starts, drawn]) for starts in fitted]

    def distance(self, X: Any) -> np.ndarray:
        """|w·x + b| / ||w||: how far each row lies from the hyperplane."""
        return distance(self._rows(X), self.coef_, self.intercept_)

    def decision_function(self, X: Any) -> np.ndarray:
        """|w·x + b| - epsilon where the normal class is in the margin, its negative elsewhere."""
        z = signed_distance(self._rows(X), self.coef_, self.intercept_)
        outside = np.abs(z) - self.epsilon_
        return outside if self.margin_class_ == self.classes_[0] else -outside

    def predict_proba(self, X: Any) -> np.ndarray:
        """The head's membership for the margin class, 1/2 at epsilon; one column a class."""
        z = signed_distance(self._rows(X), self.coef_, self.intercept_)
        reach = 1e100 * self.epsilon_
        p = self.head_.membership(np.clip(z, -reach, reach) / self.epsilon_ * self.head_.half_width)
        return np.where(self.classes_ == self.margin_class_, p[:, None], 1 - p[:, None])


_FRAMES = {
    "informed": Frame.standard,
    "normal": lambda X, weight: Frame.identity(X.shape[1]),  # noqa: ARG005  same signature
}
