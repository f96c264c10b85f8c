"""Negative sampling: anomalies drawn around the rows, for any estimator."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from eqsep.errors import UserError
from eqsep.labels import listed, read_labels
from eqsep.separators.base import Separator
from eqsep.separators.scores import anomaly_score


@dataclass(eq=False, repr=False)
class NegativeSampling(Separator):
    """Any classifier, fitted on the rows and on anomalies drawn uniformly around them.

    The anomalies fill the box [min - margin · range, max + margin · range] of each column, so the
    classifier has to separate the normal rows from everywhere else. Seen anomalies are kept.

    Parameters
    ----------
    estimator : classifier or outlier detector
        Has `decision_function` or `predict_proba`. A copy is fitted on labels 0 (normal) and 1,
        which scikit-learn's outlier detectors ignore. Each `random_state` in it that is None is
        drawn.
    ratio : float, default=10
        How many anomalies are drawn for each normal row.
    balanced : bool, default=True
        Whether drawn anomalies count no more than the normal rows do: each has the weight
        1 / `ratio` if that is below 1, where the estimator takes weights. Otherwise each counts 1.
    margin : float, default=0.05
        How far the box reaches beyond the rows, as a share of their range.
    normal, random_state
        As in `EqualitySeparator`.

    Attributes
    ----------
    estimator_ : classifier
        The fitted copy.
    low_, high_ : ndarray of shape (n_features,)
        The corners of the box.

    Notes
    -----
    In many columns ever fewer of the drawn anomalies lie close to the normal rows. In few columns
    they overlap with them and, with a large `ratio`, outnumber them there: unless `balanced`, the
    threshold then leans towards the anomaly; the ranking stays useful.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep import KernelEqualitySeparator, NegativeSampling
    >>> angle = np.linspace(0, 2 * np.pi, 60)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> inner = KernelEqualitySeparator(gamma=8)
    >>> model = NegativeSampling(inner, ratio=1, random_state=0).fit(X)
    >>> model.predict([[1, 0], [0, 0], [9, 9]])
    array([0, 1, 1])
    """

    estimator: Any
    _: KW_ONLY
    ratio: float = 10
    balanced: bool = True
    margin: float = 0.05
    normal: Any = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the anomalies and fit the estimator; without `y` all rows are normal."""
        if not (self.ratio > 0 and self.margin >= 0):
            got = f"got ratio={self.ratio!r} and margin={self.margin!r}"
            raise UserError(f"ratio must be positive and margin at least 0, {got}.")
        X = self._numpy_rows(X, reset=True)
        y = np.zeros(len(X), dtype=int) if y is None else y
        labels = read_labels(y, normal=self.normal, one_class=True)
        is_anomaly = labels.encode(y).astype(int)
        check_consistent_length(X, is_anomaly)
        if is_anomaly.all():
            raise UserError(
                f"normal rows are needed: expected {labels.classes[0]} in y, got 1 class only, the "
                f"anomalous one ({listed(labels.kinds)}). Pass normal=... if that is normal."
            )
        rng = check_random_state(self.random_state)
        low, high = X.min(axis=0), X.max(axis=0)
        reach = self.margin * high - self.margin * low
        self.low_, self.high_ = low - reach, high + reach
        n_drawn = max(1, round(self.ratio * int((is_anomaly == 0).sum())))
        share = rng.uniform(size=(n_drawn, len(self.low_)))
        drawn = self.low_ * (1 - share) + self.high_ * share
        estimator = _seeded(clone(self.estimator), rng)
        weights = {}
        if self.balanced and self.ratio > 1 and has_fit_parameter(estimator, "sample_weight"):
            weights["sample_weight"] = np.repeat([1, 1 / self.ratio], [len(X), n_drawn])
        rows, anomalous = np.concatenate([X, drawn]), np.append(is_anomaly, np.ones(n_drawn, int))
        self.estimator_ = estimator.fit(rows, anomalous, **weights)
        self.classes_ = labels.classes
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The estimator's score, or its probability of an anomaly less 1/2 where it has none."""
        rows = self._rows(X)
        score = anomaly_score(self.estimator_, rows)
        return score if hasattr(self.estimator_, "decision_function") else score - 0.5

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """The estimator's probability of each class."""
        rows = self._rows(X)
        return self.estimator_.predict_proba(rows)


def _seeded(estimator: Any, rng: np.random.RandomState) -> Any:
    """The estimator with a seed for each `random_state` that is None."""
    seeds = {k: v for k, v in estimator.get_params().items() if k.endswith("random_state")}
    unset = sorted(name for name, value in seeds.items() if value is None)
    return estimator.set_params(**{name: int(rng.randint(2**31 - 1)) for name in unset})
