"""Calibration: from scores to p-values, thresholds and promises, by held-out normal rows."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from eqsep import schemas
from eqsep.arrays import WithoutCaches
from eqsep.checks import Finding
from eqsep.detector.config import Config
from eqsep.detector.holdout import NO_GROUPS, STEP, Grouping, rows_to_hold_out, usable
from eqsep.errors import EqsepWarning, ParameterError, UserError

CONFIDENCE = 0.95  # of the interval shown for every model
NO_PROMISE = "no promise was made"  # too few rows calibrate
_LEVELS = (0.5, 0.75, 0.9)  # shares of the held-out anomalies, the most alike ones, to count
_NORMAL_SHARE_ALIKE = 0.01  # the share of normal rows that may be as much like the seen kinds
_ANOMALY_SHARE = 1 / 3  # of the rows: if more seem to be anomalies, normal ones look like anomalies
_SMALLEST_SCORE = 1e-12  # no score lies between this and 0
_ALARMS_WORTH_WARNING = 10  # alarms needed at once: more are worth a warning
USUAL_RATES = tuple(float(f"{digit}e{power}") for power in range(-6, 0) for digit in (1, 2, 5))


class CalibrationWarning(EqsepWarning):
    """There are too few held-out normal rows to promise the false-alarm rate."""


def checked_share(share: object, *, name: str, hint: str) -> float:
    """A parameter as a number between 0 and 1, or an error with the hint."""
    if not isinstance(share, Real) or not 0 < float(share) < 1:
        raise ParameterError(name, expected="a number between 0 and 1", got=share, hint=hint)
    return float(share)


def checked_rate(rate: object) -> float:
    """A false-alarm rate as a number between 0 and 1."""
    hint = "0.01 allows one false alarm in a hundred normal rows."
    return checked_share(rate, name="false_alarm_rate", hint=hint)


def checked_fdr(fdr: object) -> float:
    """A false-discovery rate as a number between 0 and 1."""
    return checked_share(fdr, name="fdr", hint="With 0.1, one alarm in ten is false.")


@dataclass(frozen=True)
class Promise(schemas.Kept):
    """The rates that a model promises; they may change after the fit."""

    false_alarm_rate: float = 0.01  # the share of new normal rows that may raise an alarm
    confidence: float | None = None  # the share of models that keep the rate; None: on average
    unseen_rate: float = 0.05  # the share of rows of a seen kind that may be called "unseen"

    SCHEMAS: ClassVar = {
        "false_alarm_rate": schemas.RATE,
        "confidence": schemas.either(schemas.NONE, schemas.RATE),
        "unseen_rate": schemas.RATE,
    }

    def __post_init__(self) -> None:
        checked_rate(self.false_alarm_rate)
        if self.confidence is not None:
            hint = "With 0.95, 95 of 100 models keep the false-alarm rate; None: on average."
            checked_share(self.confidence, name="confidence", hint=hint)
        hint = "0.05 lets one row in twenty of a seen kind be called unseen."
        checked_share(self.unseen_rate, name="unseen_rate", hint=hint)


class RateInterval(NamedTuple):
    """The false-alarm rate over draws of the held-out rows: its mean and 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Calibration(schemas.Kept, WithoutCaches):
    """The scores of normal rows that were held out of the fit, in a random order.

    A new normal row has any rank among them with equal probability (split conformal prediction), so
    p(s) = (1 + the number of their scores >= s) / (n + 1) is at most a with probability a or less.

    If whole groups were held out, each of the J groups counts the same (hierarchical conformal
    prediction): p(s) = (1 + the sum over groups of the share of rows with a score >= s) / (J + 1).
    """

    scores: np.ndarray
    # Of held-out labelled anomalies; none where rows are trusted.
    anomaly_scores: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_anomalies: float = 0.0  # lower bound of the unlabelled anomalies among the rows
    # A hash of the group of each row; empty if rows were held out one by one.
    groups: np.ndarray = field(default_factory=lambda: NO_GROUPS)

    SCHEMAS: ClassVar = {
        "scores": schemas.bounded(None, dtype="float64"),
        "anomaly_scores": schemas.bounded(None, dtype="float64"),
        "n_anomalies": schemas.NOT_NEGATIVE,
        "groups": schemas.array_of(None, kinds="u"),
    }

    @cached_property
    def _is_normal(self) -> np.ndarray:
        if not self.n_anomalies:
            return np.ones(len(self.scores), dtype=bool)
        return rows_that_count(self.scores, self.anomaly_scores, self.n_anomalies)

    @property
    def n_left_out(self) -> int:
        """How many rows are treated as unlabelled anomalies."""
        return int((~self._is_normal).sum())

    @cached_property
    def counting(self) -> np.ndarray:
        """The places of the rows that count; if at least 99, one less than a multiple of 100."""
        places = np.flatnonzero(self._is_normal)
        return places if len(self.groups) else places[: usable(len(places))]

    @cached_property
    def weights(self) -> np.ndarray:
        """The weight of each calibrating row: 1, or 1 / the size of its group."""
        counting = self.counting
        if not len(self.groups):
            return np.ones(len(counting))
        _, place, n_rows = np.unique(self.groups[counting], return_inverse=True, return_counts=True)
        return np.asarray(1 / n_rows[place])

    @cached_property
    def n_units(self) -> int:
        """How many rows count, or how many groups of them."""
        return len(np.unique(self.groups[self.counting]) if len(self.groups) else self.counting)

    @property
    def ordered(self) -> np.ndarray:
        """The scores that count, in rising order."""
        return self._from_the_top[0]

    @property
    def least_rate(self) -> float:
        """The lowest false-alarm rate that can be promised."""
        return 1 / (self.n_units + 1)

    @cached_property
    def _from_the_top(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The ordered scores that count, the weight of each and all above it, and -(1 + above)."""
        scores = self.scores[self.counting]
        order = np.argsort(scores, kind="stable")
        sums = np.append(np.cumsum(self.weights[order][::-1])[::-1], 0.0)
        above = sums[np.searchsorted(scores[order], scores[order], "right")]
        return scores[order], sums, -(1 + above)

    def rank(self, rate: float, confidence: float | None = None) -> int:
        """Which of the largest scores is the threshold of a promise; 0 if it cannot be kept."""
        n = self.n_units
        if confidence is None:
            return math.floor(rate * (n + 1) + 1e-9)
        if len(self.groups):
            raise UserError(
                "A confidence cannot be promised if whole groups are held out: leave it out."
            )
        return certified_rank(n, rate=rate, confidence=confidence)

    def threshold(self, rate: float, confidence: float | None = None) -> float:
        """The score above which p(s) <= rate; the largest one if no score is that rare."""
        ordered, from_the_top, rising = self._from_the_top
        if not len(ordered):
            return 0.5  # half of what a row far from all normal ones scores
        rank = self.rank(rate, confidence)
        most = rate * (self.n_units + 1) + 1e-9 if confidence is None else rank
        if 1 + from_the_top[0] <= most:
            return -math.inf
        return float(ordered[rising.searchsorted(-max(most, 1))])

    def interval(self, rate: float, confidence: float | None = None) -> RateInterval:
        """The false-alarm rate on average, and the interval in which 95 % of models lie."""
        return rate_interval(len(self.counting), self.rank(rate, confidence))

    def usual_thresholds(self, confidence: float | None = None) -> dict[float, float]:
        """The usual rates that can be promised, the lowest first, and the threshold of each."""
        promised = [rate for rate in USUAL_RATES if self.rank(rate, confidence)]
        return {rate: self.threshold(rate, confidence) for rate in promised}

    def check_rate(
        self,
        rate: float,
        confidence: float | None = None,
        *,
        grouping: Grouping | None = None,
        config: Config | None = None,
        n_normal: int = 0,
        advised: float | None = None,
    ) -> list[Finding]:
        """A finding if too few of `n_normal` rows calibrate for a rate; one may be `advised`."""
        if self.rank(rate, confidence):
            return []
        left_out, wanted = self.n_left_out, 1 / rate - 1
        n, certainly, what, missing = len(self.scores) - left_out, "", "normal rows", 0
        if grouping is not None:
            n, what = self.n_units, f"{grouping.unit}s of normal rows"
        if confidence is not None:
            certainly = f" with a confidence of {confidence:g}"
            wanted = rows_needed(rate=rate, confidence=confidence)
            wanted = wanted if wanted < STEP else math.ceil((wanted + 1) / STEP) * STEP - 1
        wanted = math.ceil(wanted - 1e-9)
        if grouping is None:
            doubted, held = len(self.anomaly_scores) > 0, wanted + left_out
            total = rows_to_hold_out(held, config=config, doubted=doubted) if config else 0
            missing = total - n_normal
        more = f"at least {missing:,} {what if missing > 1 else what[:-1]}" if missing > 0 else what
        if grouping is not None:  # half of the groups are held out
            more = "rows of a longer time" if grouping.edges else f"{what} ({2 * wanted:,} in all)"
        enough = next(iter(self.usual_thresholds(confidence)), None) if advised is None else advised
        uncounted = f", not counting {left_out:,} that look like anomalies" * bool(left_out)
        message = (
            f"A false-alarm rate of {rate:g} cannot be promised{certainly}: it takes "
            f"{wanted:,} held-out {what}, and there are {n:,}{uncounted}."
        )
        hint, topic = f"Add {more} and fit again.", "more_rows"
        if enough is not None:
            hint = f"Add {more} and fit again, or set false_alarm_rate={enough:g}."
            topic = "higher_rate"
        if enough is not None and confidence is not None and self.rank(rate):
            topic = "higher_rate_or_no_confidence"
            hint = f"{hint[:-1]}, or set confidence=None: the rate can be promised on average."
        fields = {"topic": topic, "more": more, "rate": enough}
        return [Finding(CalibrationWarning, message, hint, fields)]

    def p_value(self, score: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
        """p(s) for each score, of single rows or of all rows of new `groups`."""
        ordered, from_the_top, _ = self._from_the_top
        as_high = from_the_top[np.searchsorted(ordered, score, side="left")]
        own = 1.0 if groups is None else shares_as_high(score, groups)
        p: np.ndarray = (own + as_high) / (self.n_units + 1)
        return p if groups is None else p.round(12)  # thirds add up to one

    def survival(self, score: Any) -> np.ndarray:
        """The share of new normal rows that score higher: a p-value without steps."""
        scores, from_the_top, _ = self._from_the_top
        ordered, first = np.unique(scores, return_index=True)
        as_high = from_the_top[first]
        positive = ordered > 0  # at 0, the least score, all are as high
        highest = (
            max(ordered[-1], _SMALLEST_SCORE) if len(ordered) else 0.5
        )  # without scores, the threshold
        share = np.append(1.0, as_high[positive] / (self.n_units + 1))
        score = np.asarray(score, dtype=float)
        beyond = highest / np.maximum(score, highest)
        found: np.ndarray = np.interp(score, np.append(0.0, ordered[positive]), share) * beyond
        return found

    def probabilities(self, score: np.ndarray, *, threshold: float) -> np.ndarray:
        """Those of `Detector.predict_proba` for rows with these scores.  (n,) -> (n, 2)"""
        q, c = (self.survival(np.atleast_1d(s)) for s in (score, max(threshold, 0.0)))
        return np.asarray(np.column_stack([q, np.broadcast_to(c, q.shape)]) / (q + c)[:, None])

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        made = super().from_state(state, **others)
        if len(made.groups) not in (0, len(made.scores)) or made.groups.dtype != np.uint64:
            schemas.damaged("the number of groups differs from that of its held-out rows")
        return made


# One model's rate. With the k-th largest of n held-out scores as the threshold, the share of new
# normal rows above it is Beta(k, n + 1 - k) over draws of the held-out rows, with mean k / (n + 1).


def certified_rank(n: int, *, rate: float, confidence: float) -> int:
    """The largest k with P(Beta(k, n + 1 - k) <= rate) >= confidence; 0 if there is none."""
    from scipy.special import betainc  # imported lazily: rarely needed

    k = np.arange(1, n + 1)
    return int((betainc(k, n + 1 - k, rate) >= confidence).sum())


def rate_interval(n: int, k: int) -> RateInterval:
    """The interval of one model's rate if its threshold is the k-th largest of n scores."""
    if not 0 < k <= n:
        return RateInterval(*(float(k > n),) * 3)
    from scipy.special import betaincinv  # imported lazily: rarely needed

    tail = (1 - CONFIDENCE) / 2
    low, high = betaincinv(k, n + 1 - k, [tail, 1 - tail])
    return RateInterval(k / (n + 1), float(low), float(high))


def rows_needed(*, rate: float, confidence: float) -> int:
    """The fewest held-out rows that can certify the rate."""
    return math.ceil(math.log1p(-confidence) / math.log1p(-rate) - 1e-9)


def shares_as_high(score: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """For each row, the share of the rows of its group that score at least as high."""
    shares = np.empty(len(score))
    order = np.argsort(groups, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        ordered = np.sort(score[places])
        shares[places] = 1 - np.searchsorted(ordered, score[places]) / max(len(places), 1)
    return shares


# Anomalies among the calibrating rows raise the threshold, so fewer are found. Labelled anomalies
# that were held out too show how much anomalies are like the seen kinds, and how high they score.


def anomalies_among(likeness: np.ndarray, anomaly_likeness: np.ndarray) -> float:
    """How many of the calibrating rows, at least, are anomalies of the seen kinds.

    Let S be the share of the m held-out anomalies with a likeness of t or more. Then x = (the rows
    with such a likeness, less the 1 % of all rows that may be normal) / S are anomalies. The result
    is x less one standard error, the least for three t; S is known from m rows, and x by chance.
    """
    m, highest = len(anomaly_likeness), np.sort(anomaly_likeness)[::-1]
    if not m:
        return 0.0
    least = math.inf
    for level in _LEVELS:
        place = math.ceil(level * m)
        share = place / (m + 1)
        alike = np.sum(likeness >= highest[place - 1]) - _NORMAL_SHARE_ALIKE * len(likeness)
        x = max(float(alike), 0.0) / share
        least = min(least, x - math.sqrt((1 - share) / share * (x + x**2 / m)))
    return max(least, 0.0) if x <= _ANOMALY_SHARE * len(likeness) else 0.0


def rows_that_count(
    scores: np.ndarray, anomaly_scores: np.ndarray, n_anomalies: float
) -> np.ndarray:
    """Which rows count: of those that score t or more, all but as many as are anomalies."""
    order = np.argsort(-scores, kind="stable")
    below = np.searchsorted(np.sort(anomaly_scores), scores[order], side="left")
    share = (len(anomaly_scores) - below) / (len(anomaly_scores) + 1)
    normal = np.maximum(np.arange(1, len(scores) + 1) - np.floor(n_anomalies * share), 1)
    normal = np.minimum.accumulate(normal[::-1])[::-1]  # no more of them above a higher score
    counts = np.empty(len(scores), dtype=bool)
    counts[order] = np.diff(normal, append=np.inf) > 0
    return counts


def select(p: np.ndarray, *, fdr: float) -> np.ndarray:
    """Which rows of a batch to select, by Benjamini and Hochberg, at most a share `fdr` falsely."""
    from scipy.stats import false_discovery_control  # imported lazily: slow, and rarely needed

    if not len(p):
        return np.zeros(0, dtype=bool)
    chosen: np.ndarray = false_discovery_control(p) <= checked_fdr(fdr) + 1e-12
    return chosen


def check_selection(chosen: np.ndarray, *, fdr: float, n_calibrating: int) -> list[Finding]:
    """A finding if no row was chosen because too few calibrate for a batch of this size."""
    n_rows = len(chosen)
    needed = alarms_needed(n_rows, fdr=fdr, n_calibrating=n_calibrating)
    if not n_rows or chosen.any() or needed <= _ALARMS_WORTH_WARNING:
        return []
    least, enough = 1 / (n_calibrating + 1), math.ceil(n_rows / (fdr * _ALARMS_WORTH_WARNING)) - 1
    message = (
        f"No row is selected. With {n_calibrating:,} held-out normal rows, the lowest p-value is "
        f"{least:.2g}, so at least {needed:,} of {n_rows:,} rows must score above all of them for "
        f"any to be selected; with {enough:,} held-out rows, {_ALARMS_WORTH_WARNING} are enough."
    )
    hint = "Add normal rows, pass fewer rows at a time, or allow a higher fdr."
    return [Finding(CalibrationWarning, message, hint, {"topic": "none_selected"})]


def alarms_needed(n_rows: int, *, fdr: float, n_calibrating: int) -> int:
    """How many rows of a batch must score above all held-out ones for any to be selected."""
    return max(math.ceil(n_rows / (fdr * (n_calibrating + 1)) - 1e-9), 1)
