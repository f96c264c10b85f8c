"""From encoded rows to verdicts: score, p-value, alarm and kind, by the calibration set."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from operator import is_not
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from eqsep.arrays import clipped
from eqsep.detector.contamination import anomalies_among, counting
from eqsep.detector.promise import (
    RateInterval,
    certified_rank,
    least_certified,
    rate_interval,
    rows_needed,
    shares_as_high,
)
from eqsep.engine.loops import weighted_sums
from eqsep.errors import EqsepWarning, UserError, warn

STEP = 100  # with 99, 199, … rows a rate of a whole number of percents is met, not only bounded
MOST_HELD = 19_999  # rows that a first fit holds out, if it has so many to spare
MOST_ALIKE = 1.5  # of g
VERDICTS = ("score", "p_value", "alarm", "kind")
NO_GROUPS = np.empty(0, dtype=np.uint64)
_SCORERS: WeakKeyDictionary[Any, "Scorer"] = WeakKeyDictionary()  # of detectors


class Held(NamedTuple):
    """Rows held out, encoded: normal ones, labelled anomalies, and the group of each normal one."""

    rows: np.ndarray
    anomalies: np.ndarray
    groups: np.ndarray = NO_GROUPS

    def __add__(self, more: "Held") -> "Held":  # type: ignore[override]
        return Held(*(np.concatenate(both) for both in zip(self, more, strict=True)))

    def sorted(self, by: Callable[[np.ndarray], np.ndarray]) -> "Held":
        """The same by hashes of the rows; of equal ones, by their groups."""
        rows, anomalies, groups = self
        if len(groups):
            first = np.argsort(groups, kind="stable")
            rows, groups = rows[first], groups[first]
        order, last = (np.argsort(by(part), kind="stable") for part in (rows, anomalies))
        return Held(rows[order], anomalies[last], groups[order] if len(groups) else groups)


class CalibrationWarning(EqsepWarning):
    """There are too few held-out normal rows to promise the rate of false alarms."""


@dataclass(frozen=True)
class Scorer:
    """The functions over the landmarks that a fit has learnt.

    Attributes
    ----------
    feature_map : FeatureMap
    kernel_map : KernelMap or DeviceMap
        From encoded rows to kernel values.
    coef : ndarray of shape (n_landmarks, 1 + n_kinds)
        The coefficients of f, which is 1 at normal rows, then those of each kind's function.
    anomaly_coef : ndarray of shape (n_landmarks,)
        Those of g, which is 1 at labelled anomalies of any kind.
    leaf_votes : ndarray of shape (n_leaves,)
        What each leaf of the trees votes: the share of anomalies among its rows.
    """

    feature_map: Any
    kernel_map: Any
    coef: np.ndarray
    anomaly_coef: np.ndarray
    leaf_votes: np.ndarray

    def scores(self, Z: Any) -> np.ndarray:
        """|1 - f| and what trees, g and columns out of step count.  (n, n_columns) -> (n,)"""
        return np.concatenate([fetched(self._scores(p)) for p in self.kernel_map.pieces(Z)])

    def _scores(self, Z: Any) -> Any:
        """The same of rows on the device of the kernel map, where the scores stay."""
        values, beside = self.kernel_map.combine(Z, self._functions), self._beside(Z)
        values = values.astype(float) if isinstance(Z, np.ndarray) else values.double()
        return self._together(values, *beside)

    def _beside(self, Z: Any) -> tuple[Any, Any]:
        """What encoded rows score for columns out of step, and the vote of the trees."""
        y = self.feature_map.along(Z)
        return self.feature_map.excess(y), self.feature_map.votes(Z, y, self.leaf_votes)

    def _together(self, values: Any, excess: Any, votes: Any) -> Any:
        """The score, of f and g among other things.  (n, 1 or 2), (n,), (n,) -> (n,)"""
        f, *likeness = values.T
        score = excess + self.feature_map.with_votes(abs(1 - f), votes)
        for g in likeness:
            score += self.feature_map.likeness_weight * clipped(g, 0, MOST_ALIKE)
        return score

    @cached_property
    def _functions(self) -> np.ndarray:
        """The coefficients of f, and of g where it counts, those of each side by side."""
        functions = self.coef[:, :1]
        if self.feature_map.likeness_weight and self.anomaly_coef.any():
            functions = np.column_stack([functions, self.anomaly_coef])
        return np.asfortranarray(functions)

    @cached_property
    def _kinds(self) -> np.ndarray:
        return np.asfortranarray(self.coef[:, 1:])

    def scores_and_likeness(self, Z: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """The scores, and the likeness of rows that score above the threshold.  -> (n,), (m, …)

        Kernel values, which most of the time goes to, are computed once for both.
        """
        functions, kinds = self._functions.T, self._kinds.T
        score, likeness = np.empty(len(Z)), np.empty((len(Z), len(kinds)))
        excess, votes = self._beside(Z)

        def fill(rows: slice, k: np.ndarray) -> None:
            values = weighted_sums(k, functions).astype(k.dtype)  # rounded as in `scores`
            own = score[rows] = self._together(values.astype(float), excess[rows], votes[rows])
            above = own > threshold
            likeness[rows][above] = weighted_sums(k[above], kinds)

        self.kernel_map.each(Z, fill)
        return score, likeness[score > threshold]

    def away(self, Z: np.ndarray) -> np.ndarray:
        """|1 - f| alone: near 1 for a row that is near no landmark.  (n, n_columns) -> (n,)"""
        away: np.ndarray = np.abs(1 - self.kernel_map.combine(Z, self.coef[:, 0]).astype(float))
        return away  # rounded as the score is, which may be the threshold

    def likeness(self, Z: np.ndarray) -> np.ndarray:
        """How much each row is like each kind: 1 at the rows of that kind.  -> (n, n_kinds)"""
        likeness: np.ndarray = self.kernel_map.combine(Z, self._kinds, dtype=float)
        return likeness


def fetched(values: Any) -> np.ndarray:
    """An array, or a tensor wherever it is, in main memory."""
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()


def scorer_of(detector: Any) -> Scorer:
    """What a fitted detector scores encoded rows with, on its device; the same until it learns."""
    feature_map = detector.feature_map_
    learnt = (detector.coef_, detector.anomaly_coef_, detector.leaf_votes_)
    parts = (feature_map, feature_map.on(detector.device), *learnt)
    known = _SCORERS.get(detector)
    if known is None or any(map(is_not, vars(known).values(), parts)):  # its fields come first
        known = _SCORERS[detector] = Scorer(*parts)
    return known


def verdicts(detector: Any, X: Any, *, threshold: float | None = None) -> dict[str, np.ndarray]:
    """Score, p_value, alarm and kind of each row of the table `X`, as columns.

    Alarms are above the detector's threshold, or above the one given.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> detector = Detector(n_landmarks=50, random_state=0).fit(X)
    >>> {name: column.tolist() for name, column in verdicts(detector, [[0, 9]]).items()}
    {'score': [0.8...], 'p_value': [0.01], 'alarm': [True], 'kind': ['unseen']}
    """
    parts = detector.feature_map_.encoded(X, device=detector.device)
    said = [encoded_verdicts(detector, Z, threshold=threshold) for Z in parts]
    return {name: np.concatenate([part[name] for part in said]) for name in VERDICTS}


def encoded_verdicts(detector: Any, Z: Any, *, threshold: float | None) -> dict[str, Any]:
    """The `verdicts` on rows that are encoded."""
    from eqsep.detector.naming import scores_and_kinds  # names know the scorer

    threshold = detector.threshold_ if threshold is None else threshold
    score, kind = scores_and_kinds(detector, Z, threshold)
    p_value, alarm = detector.calibration_.p_value(score), score > threshold
    return {"score": score, "p_value": p_value, "alarm": alarm, "kind": kind}


@dataclass(frozen=True)
class Calibration:
    """Normal rows that were held out of the fit, and their scores, in the same random order.

    A new normal row is as likely to have any rank among them (split-conformal prediction): so
    p(s) = (1 + the number of their scores >= s) / (n + 1) is at most a with a chance of a or less.

    Where whole groups of rows were held out, each of the J groups counts the same (hierarchical
    conformal prediction): p(s) = (1 + the sum over the groups of the share of its rows with a score
    >= s) / (J + 1), for a row of a group that is new. The 1 is the most that its own share can be;
    where all rows of it are at hand, their share stands there, and the chance is a itself.

    Rows without a label may be anomalies, and these do not count, as far as labelled anomalies
    that were held out too tell how many there are (`eqsep.detector.contamination`).

    Attributes
    ----------
    rows : ndarray of shape (n, n_columns)
    scores : ndarray of shape (n,)
    anomaly_rows : ndarray of shape (m, n_columns)
        Labelled anomalies held out of the fit; none where the rows are trusted.
    anomaly_scores : ndarray of shape (m,)
    n_anomalies : float
        How many of the rows are anomalies that nobody has labelled, at least.
    groups : ndarray of uint64 of shape (n,)
        A hash of the group of each row; empty where rows were held out one by one.

    Examples
    --------
    >>> import numpy as np
    >>> calibration = Calibration(np.zeros((199, 1)), np.arange(199.0))
    >>> calibration.threshold(0.01), calibration.p_value(np.array([0.0, 500.0]))
    (197.0, array([1.   , 0.005]))
    """

    rows: np.ndarray
    scores: np.ndarray
    anomaly_rows: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    anomaly_scores: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_anomalies: float = 0.0
    groups: np.ndarray = field(default_factory=lambda: NO_GROUPS)

    @classmethod
    def of(cls, scorer: Scorer, held: Held) -> "Calibration":
        """By these held-out rows, encoded."""
        rows, anomalies, groups = held
        n_anomalies = 0.0
        if len(anomalies):
            likeness = (scorer.likeness(part).sum(axis=1) for part in (rows, anomalies))
            n_anomalies = anomalies_among(*likeness)
        scores = (scorer.scores(rows), anomalies, scorer.scores(anomalies))
        return cls(rows, *scores, n_anomalies, groups)

    @property
    def held(self) -> Held:
        """The rows, the labelled anomalies beside them, and the groups."""
        return Held(self.rows, self.anomaly_rows, self.groups)

    @cached_property
    def _is_normal(self) -> np.ndarray:
        if not self.n_anomalies:
            return np.ones(len(self.scores), dtype=bool)
        return counting(self.scores, self.anomaly_scores, self.n_anomalies)

    @property
    def n_left_out(self) -> int:
        """How many rows are taken for anomalies that nobody has labelled."""
        return int((~self._is_normal).sum())

    @cached_property
    def counting(self) -> np.ndarray:
        """The places of the rows that count: one less than a multiple of 100 where there are 99."""
        places = np.flatnonzero(self._is_normal)
        return places if len(self.groups) else places[: usable(len(places))]

    @cached_property
    def weights(self) -> np.ndarray:
        """What each row that counts does: 1, or in a group 1 over the number of its rows."""
        counting = self.counting
        if not len(self.groups):
            return np.ones(len(counting))
        _, place, n_rows = np.unique(self.groups[counting], return_inverse=True, return_counts=True)
        weights: np.ndarray = 1 / n_rows[place]
        return weights

    @cached_property
    def n_units(self) -> int:
        """How many rows count, or how many groups of them."""
        return len(np.unique(self.groups[self.counting]) if len(self.groups) else self.counting)

    @property
    def ordered(self) -> np.ndarray:
        """The scores that count, in order."""
        return np.sort(self.scores[self.counting])

    @property
    def least_rate(self) -> float:
        """The least rate of false alarms that can be promised."""
        return 1 / (self.n_units + 1)

    @cached_property
    def _from_the_top(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The scores that count, in order; the weight of each and all higher; -(1 + the rest)."""
        scores = self.scores[self.counting]
        order = np.argsort(scores, kind="stable")
        sums = np.append(np.cumsum(self.weights[order][::-1])[::-1], 0.0)
        above = sums[np.searchsorted(scores[order], scores[order], "right")]
        return scores[order], sums, -(1 + above)

    def rank(self, rate: float, confidence: float | None = None) -> int:
        """Which of the largest scores is the threshold of a promise; 0 where none can be."""
        n = self.n_units
        if confidence is None:
            return math.floor(rate * (n + 1) + 1e-9)
        if len(self.groups):
            told = "cannot be kept where whole groups are held out: leave it out."
            raise UserError(f"confidence {told}", command=f"--confidence {told}")
        return certified_rank(n, rate=rate, confidence=confidence)

    def threshold(self, rate: float, confidence: float | None = None) -> float:
        """The score above which p(s) <= rate; the largest one where no score is that rare.

        With a confidence, the one above which so many of all models would keep the rate.
        """
        if (rate, confidence) not in self._thresholds:
            self._thresholds[rate, confidence] = self._threshold(rate, confidence)
        return self._thresholds[rate, confidence]

    @cached_property
    def _thresholds(self) -> dict[tuple[float, float | None], float]:
        return {}

    def _threshold(self, rate: float, confidence: float | None) -> float:
        ordered, from_the_top, rising = self._from_the_top
        if not len(ordered):
            return 0.5  # half of what a row far from all normal ones scores
        rank = self.rank(rate, confidence)
        most = rate * (self.n_units + 1) + 1e-9 if confidence is None else rank
        if 1 + from_the_top[0] <= most:
            return -math.inf
        return float(ordered[rising.searchsorted(-max(most, 1))])

    def interval(self, rate: float, confidence: float | None = None) -> RateInterval:
        """The rate of false alarms on average, and where that of one model lies with 95 %."""
        return rate_interval(len(self.counting), self.rank(rate, confidence))

    def warn_if_short(
        self, rate: float, confidence: float | None = None, *, grouping: Any = None
    ) -> None:
        """Warn where there are too few rows, or groups or blocks of them, to promise this rate."""
        if self.rank(rate, confidence):
            return
        n, least, wanted = len(self.scores) - self.n_left_out, self.least_rate, 1 / rate - 1
        certainly, what, more = "", "normal rows", "normal rows"
        if grouping is not None:
            n, what = self.n_units, f"{grouping.unit}s of normal rows"
            more = "rows of a longer time" if grouping.edges else what
        if confidence is not None:
            certainly = f" with a confidence of {confidence:g}"
            least = least_certified(len(self.counting), confidence=confidence)
            wanted = rows_needed(rate=rate, confidence=confidence)
            wanted = wanted if wanted < STEP else math.ceil((wanted + 1) / STEP) * STEP - 1
        digit = 10 ** math.floor(math.log10(least))
        enough = float(f"{math.ceil(least / digit - 1e-9) * digit:.1g}")
        told = (
            f"A false-alarm rate of {rate:g} cannot be promised{certainly}: it takes "
            f"{math.ceil(wanted - 1e-9):,} held-out {what}, and there are {n:,}"
            + f" beside {self.n_left_out:,} that are taken for anomalies" * (self.n_left_out > 0)
            + f". Add {more}"
        )
        other = f", or set false_alarm_rate={enough:g}" if enough < 1 else ""
        option = f", or pass --false-alarm-rate {enough:g}" if enough < 1 else ""
        if confidence is not None and self.rank(rate):
            other += ", or set confidence=None: on average it can be promised"
            option += ", or leave out --confidence: on average it can be promised"
        warn(CalibrationWarning(f"{told}{other}.", command=f"{told}{option}."))

    def p_value(self, score: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
        """p(s) for each score, of rows one by one or of all rows of new `groups`."""
        ordered, from_the_top, _ = self._from_the_top
        as_high = from_the_top[np.searchsorted(ordered, score, side="left")]
        own = 1.0 if groups is None else shares_as_high(score, groups)
        p: np.ndarray = (own + as_high) / (self.n_units + 1)
        return p if groups is None else p.round(12)  # thirds add up to one


def usable(n: int) -> int:
    """How many of `n` held-out rows count: 99, 199, … or, where there are fewer, all of them."""
    return (n + 1) // STEP * STEP - 1 if n + 1 >= STEP else n
