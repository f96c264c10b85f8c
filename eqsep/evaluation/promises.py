"""Counted shares with their intervals, and whether a promised false-alarm rate is kept."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import beta, betabinom, binomtest, t

from eqsep.detector.calibration import NO_PROMISE
from eqsep.evaluation.kinds import check_share

RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
KEPT, BROKEN, CANNOT_TELL = "kept", "broken", "cannot tell"
_TAIL = 0.025  # beyond each end of an interval
_SLIGHT_CHANCE = 0.001  # a chance below this is not worth mentioning
_TOLERATED_RATIO = 2  # times the promised rate: a promise is kept if the interval ends below
_MOST_UNITS = 10**6  # rows or groups: more are never asked for


@dataclass(frozen=True)
class Share:
    """A counted share, with the ends of its 95 % interval (Clopper and Pearson's).

    >>> print(Share.counted(8, 10))
    0.800 [0.444, 0.975]
    >>> print(Share.counted(0, 0))
    none
    """

    count: int
    total: int
    low: float
    high: float

    @classmethod
    def counted(cls, count: int, total: int) -> "Share":
        """`count` of `total`."""
        if not total:
            return cls(0, 0, 0.0, 1.0)
        ends = binomtest(int(count), int(total)).proportion_ci(0.95, method="exact")
        return cls(int(count), int(total), float(ends.low), float(ends.high))

    @classmethod
    def of(cls, hit: np.ndarray) -> "Share":
        """The share of rows that are True.  bool (n_rows,) -> Share"""
        return cls.counted(int(np.sum(hit)), len(hit))

    @property
    def value(self) -> float:
        """The share; NaN if there was nothing to count."""
        return self.count / self.total if self.total else float("nan")

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.total else "none"


@dataclass(frozen=True)
class PromiseVerdict:
    """Whether a promised rate is kept, as far as chance allows to tell.

    "Broken": the whole interval of the measured rate is above the promised one, and luck in the
    held-out rows does not explain that. "Kept": it includes the promised rate or lies below it, and
    ends below twice that rate. So at most 5 % of models that keep the promise are called broken,
    and at most 5 % of models with twice the rate are called kept. All else is "cannot tell".
    """

    word: str  #: "kept", "broken", "cannot tell" or "no promise was made".
    units: int | None = None  #: How many rows or groups would tell, if the rate stays as measured.
    unit: str = "normal row"
    reason: str = ""  #: Why the verdict is "cannot tell", if not for lack of rows.
    chance: float = 0.0  #: If broken: the chance of so many alarms if the promise is kept.

    @classmethod
    def of(
        cls,
        n: int,
        interval: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        by_luck: Callable[[np.ndarray], np.ndarray],
        *,
        rate: float,
        chance: float,
        unit: str = "normal row",
    ) -> "PromiseVerdict":
        """The verdict on `n` rows or groups, given the interval of any number of them.

        `by_luck` says whether luck in the held-out rows may explain a rate above the promised
        `rate`, and `chance` how likely the measured rate is if the promise is kept.
        """
        m = np.geomspace(n, max(_MOST_UNITS, 2 * n), 100).round()
        low, high = interval(m)
        broken = (low > rate) & ~by_luck(m)
        settled = broken | ((low <= rate) & (high < _TOLERATED_RATIO * rate))
        if settled[0]:
            return cls(BROKEN, unit=unit, chance=chance) if broken[0] else cls(KEPT, unit=unit)
        if not settled.any():
            return cls(CANNOT_TELL, None, unit)
        first = int(m[settled.argmax()])
        digit = 10 ** max(len(str(first)) - 2, 0)
        return cls(CANNOT_TELL, math.ceil(first / digit) * digit, unit)

    @property
    def style(self) -> str:
        """The style of its colour."""
        return {KEPT: "good", BROKEN: "bad"}.get(self.word, "late")

    def __str__(self) -> str:
        if self.word == BROKEN and self.chance >= _SLIGHT_CHANCE:
            tests = float(f"{1 / self.chance:.1g}")
            often = f"1 test in {tests:.0f} gives this many alarms"
            return f"{self.word}, or bad luck: if the promise holds, {often}"
        if self.word != CANNOT_TELL:
            return self.word
        if self.reason:
            return f"{self.word}: {self.reason}"
        if self.units is None:
            held_out = f"held-out {self.unit.removeprefix('normal ').removeprefix('such ')}s"
            return f"{self.word}: more than promised, but with so few {held_out} this may be chance"
        return f"{self.word}: about {self.units:,} {self.unit}s are needed"


@dataclass(frozen=True)
class GroupRates:
    """The share of normal rows that raise an alarm, group by group.

    >>> shares = [0.0, 0.02, 0.01, 0.03]
    >>> print(GroupRates.of(shares * 10, promised=0.05, luck=0.01, unit="group"))
    mean over 40 groups 1.50% [1.14%, 3.90%], highest 3.00%; kept
    >>> print(GroupRates.of(shares, promised=0.05, luck=0.01, unit="group").verdict)
    cannot tell: about 11 groups are needed
    """

    rates: tuple[float, ...]  #: Of each group, in rising order.
    promised: float | None  #: The highest promised mean; None without a promise.
    luck: float  #: The standard error of the mean over the calibrating groups.
    #: The ends of the 95 % interval of the mean: Student's, but the upper end is at least the mean
    #: with one more group of nothing but alarms.
    low: float
    high: float
    unit: str  #: What a group is, in a word.
    known: int = 0  #: How many of the groups calibrate the detector, so are not new.

    @classmethod
    def of(
        cls, rates: Any, *, promised: float | None, luck: float, unit: str, known: int = 0
    ) -> "GroupRates":
        """The rates of two groups or more."""
        ordered = np.sort(np.asarray(rates, dtype=float))
        low, high = map(float, _mean_interval(ordered.mean(), ordered.std(ddof=1), len(ordered)))
        rates = tuple(ordered.tolist())
        return cls(rates, promised, luck, low=low, high=high, unit=unit, known=known)

    @property
    def mean(self) -> float:
        """The mean over groups; each counts the same."""
        return float(np.mean(self.rates))

    @property
    def verdict(self) -> PromiseVerdict:
        """Whether the promise is kept, as far as chance lets one tell."""
        rate, mean, deviation = self.promised, self.mean, float(np.std(self.rates, ddof=1))
        if rate is None:
            return PromiseVerdict(NO_PROMISE)
        if self.known:
            known = f"at least {self.known:,} of these {self.unit}s"  # those that calibrate
            reason = f"{known} were in the fit, so they are not new"
            return PromiseVerdict(CANNOT_TELL, unit=self.unit, reason=reason)

        def by_luck(m: np.ndarray) -> np.ndarray:
            error = np.hypot(deviation / np.sqrt(m), self.luck)
            return np.asarray(mean - t.ppf(1 - _TAIL, m - 1) * error <= rate)

        def interval(m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return _mean_interval(mean, deviation, m)

        n, error = len(self.rates), np.hypot(deviation / np.sqrt(len(self.rates)), self.luck)
        chance = float(t.sf((mean - rate) / max(error, 1e-300), n - 1))
        return PromiseVerdict.of(n, interval, by_luck, rate=rate, chance=chance, unit=self.unit)

    def __str__(self) -> str:
        return (
            f"mean over {len(self.rates):,} {self.unit}s {self.mean:.2%} [{self.low:.2%}, "
            f"{self.high:.2%}], highest {self.rates[-1]:.2%}; {self.verdict}"
        )


def _mean_interval(mean: float, deviation: float, n: Any) -> tuple[Any, Any]:
    """The interval of the mean over n groups with this deviation."""
    reach = deviation / np.sqrt(n) * t.ppf(1 - _TAIL, n - 1)
    high = np.maximum(mean + reach, (n * mean + 1) / (n + 1))
    return np.maximum(mean - reach, 0.0), np.minimum(high, 1.0)


@dataclass(frozen=True, kw_only=True)
class MeasuredPromise:
    """A promised rate of false alarms, and the rate among new normal rows."""

    rate: float  #: The share of new normal rows that may raise an alarm.
    threshold: float = math.nan
    rows: int  #: New normal rows.
    alarms: int  #: Those above the threshold.
    low: float  #: The ends of the interval of their share (Clopper and Pearson's).
    high: float
    rank: int  #: The threshold is this one of the largest held-out scores; 0: nothing is promised.
    held_out: int  #: The held-out normal rows.
    confidence: float
    unit: str = "normal row"  #: What is counted.
    learnt: bool = False  #: Whether the model has learnt from these rows: they tell nothing.

    @property
    def measured(self) -> float:
        """The share of the new normal rows that raise an alarm."""
        return self.alarms / self.rows

    @property
    def least_expected(self) -> float:
        """The lowest share to expect if the promise is kept."""
        return float(self._expected(self.rows).ppf((1 - self.confidence) / 2)) / self.rows

    @property
    def most_expected(self) -> float:
        """The highest share to expect, with the same confidence."""
        return float(self._expected(self.rows).ppf((1 + self.confidence) / 2)) / self.rows

    def _expected(self, rows: int) -> Any:
        """The alarms among new rows, over draws of held-out ones too."""
        return betabinom(rows, self.rank, self.held_out + 1 - self.rank)

    @property
    def verdict(self) -> PromiseVerdict:
        """Whether the promise is kept, as far as chance lets one tell."""
        if not self.rank:
            return PromiseVerdict(NO_PROMISE)
        if self.learnt:
            return PromiseVerdict(CANNOT_TELL, reason="the model has learnt from these rows")

        def interval(m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            alarms = np.where(m == self.rows, self.alarms, np.round(self.measured * m))
            with np.errstate(invalid="ignore"):  # no alarm, or nothing but alarms
                low = beta.ppf(_TAIL, alarms, m - alarms + 1)
                high = beta.ppf(1 - _TAIL, alarms + 1, m - alarms)
            return np.where(alarms > 0, low, 0.0), np.where(alarms < m, high, 1.0)

        chance = float(self._expected(self.rows).sf(self.alarms - 1))

        def by_luck(m: np.ndarray) -> np.ndarray:
            mean = self.rank / (self.held_out + 1)
            v = 1 / (1 / m + 1 / (self.held_out + 2)) - 1  # of the beta with the same variance
            likely = np.asarray(beta.sf(self.measured, mean * v, (1 - mean) * v) >= _TAIL)
            # Exactly: for these rows, and for any number of them with the same share of alarms.
            likely[0] = chance >= _TAIL
            forever = beta.sf(self.measured, self.rank, self.held_out + 1 - self.rank) >= _TAIL
            return np.asarray(likely | forever)

        at = {"rate": self.rate, "chance": chance}
        return PromiseVerdict.of(self.rows, interval, by_luck, **at, unit=self.unit)


def kept_promise(
    alarms: int, rows: int, *, rate: float, rank: int, held_out: int, confidence: float = 0.95
) -> MeasuredPromise:
    """The promise of a rate, given how many of the new normal rows raise an alarm.

    The threshold is the `rank`-highest of the scores of `held_out` normal rows.

    >>> promise = kept_promise(31, 1_000, rate=0.01, rank=5, held_out=499)
    >>> promise.measured, promise.verdict.word
    (0.031, 'broken')
    """
    ends = binomtest(alarms, rows).proportion_ci(confidence, method="exact")
    counts: Any = {"rows": rows, "alarms": alarms, "rank": rank, "held_out": held_out}
    low, high = float(ends.low), float(ends.high)
    return MeasuredPromise(rate=rate, low=low, high=high, confidence=confidence, **counts)


def kept_promises(
    score: Any, *, calibration: Any, rates: Sequence[float] = RATES, confidence: float = 0.95
) -> tuple[MeasuredPromise, ...]:
    """Promises at several rates, if there are enough rows to calibrate them.

    With the k-th highest of n scores as the threshold, the alarms among new rows follow the
    beta-binomial distribution of Beta(k, n + 1 - k).

    Parameters
    ----------
    score : array-like of shape (n_rows,)
        The scores of new normal rows.
    calibration : array-like of shape (n,)
        The scores of the normal rows that calibrate.
    rates : sequence of float
        Those below 1 / (n + 1) cannot be promised, and are left out.

    Examples
    --------
    >>> kept = kept_promises(np.arange(1000) / 1000, calibration=np.arange(199) / 199)
    >>> [(p.rate, p.measured, p.verdict.word) for p in kept][:2]
    [(0.005, 0.005, 'cannot tell'), (0.01, 0.01, 'kept')]
    """
    check_share("confidence", confidence)
    score, ordered = np.asarray(score, dtype=float), np.sort(np.asarray(calibration, dtype=float))
    n, out = len(ordered), []
    for rate in rates:
        k = math.floor(rate * (n + 1) + 1e-9)
        if not 1 <= k <= n or not len(score):
            continue
        threshold = float(ordered[-k])
        alarms = int(np.sum(score > threshold))
        kept = kept_promise(
            alarms, len(score), rate=rate, rank=k, held_out=n, confidence=confidence
        )
        out.append(replace(kept, threshold=threshold))
    return tuple(out)
