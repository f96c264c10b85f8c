"""`PyODDetector`: attributes and threshold as in PyOD, which need not be installed."""

from typing import Any, Self

import numpy as np
from scipy.special import erf
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from eqsep.checks import warn_of
from eqsep.detector import CalibrationWarning, Detector
from eqsep.errors import ParameterError


class PyODDetector(OutlierMixin, BaseEstimator):
    """A `Detector` for code that expects one of PyOD's.

    The threshold is set as in PyOD: the share `contamination` of the training rows lies above it.
    It promises no false-alarm rate; the fitted detector, `detector_`, does.

    Parameters
    ----------
    detector : Detector, default=None
        A copy of it is fitted; None means `Detector()`.
    contamination : float, default=0.1
        The share of the training rows that are outliers, above 0 and at most 0.5.

    Attributes
    ----------
    detector_ : Detector
        The fitted copy.
    decision_scores_ : ndarray of shape (n_rows,)
        The scores of the training rows; larger is more anomalous.
    threshold_ : float
        The score above which a row is an outlier.
    labels_ : ndarray of shape (n_rows,)
        1 for the training rows above the threshold, 0 for the others.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> detector = PyODDetector(Detector(random_state=0), contamination=0.05).fit(X)
    >>> float(detector.labels_.mean()), detector.predict([[0.0, 0.0], [9.0, 9.0]])
    (0.05, array([0, 1]))
    """

    def __init__(self, detector: Detector | None = None, *, contamination: float = 0.1) -> None:
        self.detector = detector
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the detector to a table, with labels if you have any, as in `Detector.fit`."""
        if not 0 < self.contamination <= 0.5:
            expected = "a share above 0 and at most 0.5"
            raise ParameterError("contamination", expected=expected, got=self.contamination)
        detector = Detector() if self.detector is None else clone(self.detector)
        found = detector.fit_quietly(X, y).findings
        warn_of(one for one in found if one.category is not CalibrationWarning)  # it promises none
        self.detector_ = detector
        self.decision_scores_ = self.decision_function(X)
        percent = 100 - 100 * self.contamination
        self.threshold_ = float(np.percentile(self.decision_scores_, percent))
        self.labels_ = (self.decision_scores_ > self.threshold_).astype(int)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The score of each row; larger is more anomalous. The threshold is not 0."""
        check_is_fitted(self, "detector_")
        return self.detector_.score_samples(X)

    def predict(self, X: Any) -> np.ndarray:
        """1 for a row above the threshold, 0 for the others."""
        return (self.decision_function(X) > self.threshold_).astype(int)

    def predict_proba(self, X: Any, method: str = "linear") -> np.ndarray:
        """The probability that each row is an inlier or an outlier, converted as in PyOD.

        Parameters
        ----------
        method : {"linear", "unify"}, default="linear"
            By the range of the training scores, or by their mean and deviation.
        """
        scores, known = self.decision_function(X), self.decision_scores_
        if method == "linear":
            outlier = (scores - known.min()) / (np.ptp(known) or 1.0)
        elif method == "unify":
            outlier = erf((scores - known.mean()) / (known.std() * np.sqrt(2) or 1.0))
        else:
            raise ParameterError("method", expected="one of ['linear', 'unify']", got=method)
        outlier = outlier.clip(0, 1)
        return np.column_stack([1 - outlier, outlier])
