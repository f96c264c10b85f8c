"""What a fitted detector says of rows, in scikit-learn's words and in its own."""

from typing import Any

import numpy as np

from eqsep.arrays import check_is_fitted
from eqsep.checks import Finding
from eqsep.detector.explanation import Explanation, explain_rows
from eqsep.detector.feature_map import FeatureMap
from eqsep.detector.naming import KindRows, kind_p_values, scores_and_kinds
from eqsep.detector.probability import probabilities
from eqsep.detector.promise import checked_promise
from eqsep.detector.scoring import Calibration, scorer_of
from eqsep.detector.trust import accuracy
from eqsep.engine.nystroem import Statistics
from eqsep.labels import RowLabels
from eqsep.renames import DEPRECATED
from eqsep.tables.reading import read_table


class FittedDetector:
    """Scores, alarms, names, chances and reasons: what a `Detector` says once it is fitted.

    It has the parameters and attributes of a `Detector`, and learns nothing: so it comes without
    scikit-learn, which takes longer to import than a row to score.
    """

    promised_rate_: float
    promised_confidence_: float | None
    feature_map_: FeatureMap
    caution_: Finding | None
    statistics_: Statistics
    calibration_: Calibration
    kind_rows_: KindRows
    anomaly_coef_: np.ndarray
    leaf_votes_: np.ndarray
    labels_: RowLabels
    coef_: np.ndarray
    classes_: np.ndarray

    def __init__(
        self,
        *,
        normal: Any = None,
        false_alarm_rate: float = 0.01,
        confidence: float | None = None,
        unseen_rate: float = 0.05,
        n_landmarks: int = 1400,
        bandwidth: float | None = None,
        alpha: float = 0.1,
        unlabelled: str = "auto",
        unlabelled_weight: float = 0.01,
        feature_map: FeatureMap | None = None,
        window: int | None = None,
        device: str = "cpu",
        random_state: Any = None,
        width: float | str | None = DEPRECATED,
    ) -> None:
        self.normal = normal
        self.false_alarm_rate = false_alarm_rate
        self.confidence = confidence
        self.unseen_rate = unseen_rate
        self.n_landmarks = n_landmarks
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.feature_map = feature_map
        self.window = window
        self.device = device
        self.random_state = random_state
        self.width = width

    @property
    def kinds_(self) -> tuple[str, ...]:
        """The kinds of anomaly seen so far."""
        return self.labels_.kinds

    @property
    def threshold_(self) -> float:
        """The score above which a row is called anomalous, for the present `false_alarm_rate`."""
        promise = checked_promise(self)
        if promise != (self.promised_rate_, self.promised_confidence_):  # set after the fit
            self.calibration_.warn_if_short(*promise, grouping=self.feature_map_.grouping)
        return self.calibration_.threshold(*promise)

    def score_samples(self, X: Any) -> np.ndarray:
        """0 where a row is normal, near 1 or above where it is not; far away at least 1."""
        check_is_fitted(self, "feature_map_")
        scorer, rows = scorer_of(self), self.feature_map_.encoded(X, device=self.device)
        return np.concatenate([scorer.scores(Z) for Z in rows])

    def decision_function(self, X: Any) -> np.ndarray:
        """How far the score of each row is above the threshold; above 0 it is an alarm."""
        above: np.ndarray = self.score_samples(X) - self.threshold_
        return above

    def predict(self, X: Any) -> np.ndarray:
        """1 for an alarm, 0 for a row that passes; or the labels, where these are numbers."""
        alarm = self.decision_function(X) > 0
        label: np.ndarray = self.classes_[alarm.astype(int)]
        return label

    def predict_kind(self, X: Any) -> np.ndarray:
        """ "normal" for a row that passes; for an alarm its seen kind, "a or b", or "unseen"."""
        check_is_fitted(self, "feature_map_")
        threshold, rows = self.threshold_, self.feature_map_.encoded(X, device=self.device)
        return np.concatenate([scores_and_kinds(self, Z, threshold)[1] for Z in rows]).astype(str)

    def kind_p_values(self, X: Any) -> np.ndarray:
        """The p-value of each of `kinds_` for each row: above `unseen_rate`, it names an alarm."""
        check_is_fitted(self, "feature_map_")
        return kind_p_values(self, self.feature_map_.rows(X))

    def p_value(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """The chance that a new normal row scores as high as each row does.

        Parameters
        ----------
        groups : array-like of shape (n_rows,) or str, default=None
            Where `X` has all rows of groups that are new, which one each row is from, or the name
            of such a column, of a detector that was fitted with groups. A group then counts by its
            own rows, and not as one whose rows all score as high.
        """
        score = self.score_samples(X)
        if groups is None:
            return self.calibration_.p_value(score)
        from eqsep.detector.holdout import new_groups

        return self.calibration_.p_value(score, groups=new_groups(self.feature_map_, X, groups))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The chances that each row is normal, and anomalous: a column for each of `classes_`.

        An anomaly has c / (q + c), with q the chance that a new normal row scores higher (`p_value`
        without its steps) and c that of a row at the threshold, the rate of false alarms: 1/2 at
        the threshold. That is the share of anomalies among rows that score as high, where they are
        as common as false alarms and all of them score so high.

        Examples
        --------
        >>> from eqsep import Detector
        >>> X = np.random.default_rng(0).normal(size=(900, 2))
        >>> detector = Detector(bandwidth=1.0, n_landmarks=50, random_state=0).fit(X)
        >>> detector.predict_proba([[0.0, 0.0], [0.0, 9.0]]).round(2)
        array([[0.98, 0.02],
               [0.17, 0.83]])
        """
        return probabilities(self, self.score_samples(X))

    def select(self, X: Any, *, fdr: float = 0.1) -> np.ndarray:
        """Which rows of the batch `X` are anomalies, at most a share of `fdr` of them falsely."""
        from eqsep.detector.selection import calibrating, selected  # imports scipy.stats

        return selected(self.p_value(X), fdr=fdr, n_calibrating=calibrating(self))

    def explain(self, X: Any, *, top: int = 5) -> list[Explanation]:
        """Why each row has its score: the columns that drive it, and the nearest normal row.

        Parameters
        ----------
        top : int, default=5
            How many columns are named; the others are summed up.
        """
        check_is_fitted(self, "feature_map_")
        table = self.feature_map_.aligned(read_table(X, name="Detector"))
        return explain_rows(self, table, top=top)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labelled rows told right, normal from anomalous."""
        return accuracy(self, X, y, sample_weight)
