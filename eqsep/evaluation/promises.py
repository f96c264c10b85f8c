"""Counted shares with their intervals, and whether a promised rate of false alarms is kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import betabinom, binomtest, sem, t

from eqsep.evaluation.intervals import check_share

RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Share:
    """A counted share, with the ends of its 95 % interval (Clopper and Pearson's).

    Examples
    --------
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
        """So many of so many."""
        if not total:
            return cls(0, 0, 0.0, 1.0)
        ends = binomtest(int(count), int(total)).proportion_ci(0.95, method="exact")
        return cls(int(count), int(total), float(ends.low), float(ends.high))

    @classmethod
    def of(cls, hit: np.ndarray) -> "Share":
        """The share of the rows that are hit.  bool (n_rows,) -> Share"""
        return cls.counted(int(np.sum(hit)), len(hit))

    @property
    def value(self) -> float:
        """The share; NaN if there was nothing to count."""
        return self.count / self.total if self.total else float("nan")

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.total else "none"


@dataclass(frozen=True)
class GroupRates:
    """The share of normal rows that raise an alarm, group by group.

    Examples
    --------
    >>> rate = GroupRates.of([0.0, 0.02, 0.01, 0.03], promised=0.05, unit="group")
    >>> print(rate)
    mean over 4 groups 1.50% [0.00%, 3.55%], as promised; at worst 3.00%
    """

    rates: tuple[float, ...]  #: Of each group, in rising order.
    promised: float  #: The highest mean that is promised.
    low: float  #: The ends of the 95 % interval of the mean (Student's).
    high: float
    unit: str  #: What a group is, in a word.

    @classmethod
    def of(cls, rates: Any, *, promised: float, unit: str) -> "GroupRates":
        """The rates of two groups or more."""
        ordered = np.sort(np.asarray(rates, dtype=float))
        mean, reach = ordered.mean(), sem(ordered) * t.ppf(0.975, len(ordered) - 1)
        low, high = max(mean - reach, 0.0), min(mean + reach, 1.0)
        return cls(tuple(ordered.tolist()), promised, float(low), float(high), unit)

    @property
    def mean(self) -> float:
        """The mean over groups; each counts the same."""
        return float(np.mean(self.rates))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return float(sem(self.rates))

    @property
    def verdict(self) -> str:
        """Whether the promise is kept, as far as chance lets one tell."""
        return "more than chance explains" if self.low > self.promised else "as promised"

    def __str__(self) -> str:
        return (
            f"mean over {len(self.rates):,} {self.unit}s {self.mean:.2%} [{self.low:.2%}, "
            f"{self.high:.2%}], {self.verdict}; at worst {self.rates[-1]:.2%}"
        )


@dataclass(frozen=True)
class Promise:
    """A promised rate of false alarms, and the rate among new normal rows."""

    rate: float  #: The share of new normal rows that was to raise an alarm, on average.
    threshold: float
    rows: int  #: New normal rows.
    alarms: int  #: Those above the threshold.
    low: float  #: The ends of the interval of their share (Clopper and Pearson's).
    high: float
    least_expected: float  #: The lowest share to expect if the promise is kept.
    most_expected: float  #: The highest, with the same confidence.

    @property
    def measured(self) -> float:
        """The share of the new normal rows that raise an alarm."""
        return self.alarms / self.rows

    @property
    def verdict(self) -> str:
        """Whether alarms are "as promised", or "more" or "fewer" than chance explains."""
        if self.measured > self.most_expected:
            return "more"
        return "fewer" if self.measured < self.least_expected else "as promised"


def kept_promises(
    score: Any,
    *,
    calibration: Any,
    rates: Sequence[float] = RATES,
    confidence: float = 0.95,
) -> tuple[Promise, ...]:
    """Promises at several rates, as far as there are rows to calibrate them.

    Parameters
    ----------
    score : array-like of shape (n_rows,)
        The scores of new normal rows.
    calibration : array-like of shape (n,)
        The scores of the normal rows that calibrate.
    rates : sequence of float
        Those below 1 / (n + 1) cannot be promised, and are left out.

    Notes
    -----
    With the k-th highest of n scores as the threshold, the share of normal rows above it follows
    Beta(k, n + 1 - k) over draws of the calibrating rows, and the alarms among new rows the
    beta-binomial distribution.

    Examples
    --------
    >>> import numpy as np
    >>> kept = kept_promises(np.arange(1000) / 1000, calibration=np.arange(199) / 199)
    >>> [(p.rate, p.measured, p.verdict) for p in kept][:2]
    [(0.005, 0.005, 'as promised'), (0.01, 0.01, 'as promised')]
    """
    check_share("confidence", confidence)
    score, ordered = np.asarray(score, dtype=float), np.sort(np.asarray(calibration, dtype=float))
    n, m = len(ordered), len(score)
    tail = (1 - confidence) / 2
    out = []
    for rate in rates:
        k = math.floor(rate * (n + 1) + 1e-9)
        if not 1 <= k <= n or not m:
            continue
        threshold = float(ordered[-k])
        alarms = int(np.sum(score > threshold))
        interval = binomtest(alarms, m).proportion_ci(confidence, method="exact")
        expected = betabinom(m, k, n + 1 - k)
        out.append(
            Promise(
                rate=rate,
                threshold=threshold,
                rows=m,
                alarms=alarms,
                low=float(interval.low),
                high=float(interval.high),
                least_expected=float(expected.ppf(tail)) / m,
                most_expected=float(expected.ppf(1 - tail)) / m,
            )
        )
    return tuple(out)
