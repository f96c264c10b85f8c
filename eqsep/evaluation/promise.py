"""Promised against measured false alarms: is a promise kept?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import betabinom, binomtest

from eqsep.evaluation.intervals import check_confidence

RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)


@dataclass(frozen=True)
class Promise:
    """A promised rate of false alarms, and what new normal rows made of it.

    Attributes
    ----------
    rate : float
        The share of new normal rows that was to raise an alarm, on average.
    threshold : float
    rows, alarms : int
        New normal rows, and those among them above the threshold.
    low, high : float
        The interval of the share of alarms under this threshold (Clopper and Pearson's).
    least_expected, most_expected : float
        Between these the measured share lies, with the same confidence, if the promise is kept:
        that both the calibrating and the new rows are few is accounted for.
    """

    rate: float
    threshold: float
    rows: int
    alarms: int
    low: float
    high: float
    least_expected: float
    most_expected: float

    @property
    def measured(self) -> float:
        """The share of the new normal rows that raise an alarm."""
        return self.alarms / self.rows

    @property
    def verdict(self) -> str:
        """ "as promised", or "more" or "fewer" than chance would explain."""
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
        The scores of normal rows that were neither learnt nor calibrated with.
    calibration : array-like of shape (n,)
        The scores of the normal rows that calibrate.
    rates : sequence of float
        Those below 1 / (n + 1) cannot be promised, and are left out.

    Notes
    -----
    With the k-th highest of n scores as the threshold, the share of normal rows above it is
    distributed as Beta(k, n + 1 - k) over draws of the calibrating rows, and the number of alarms
    among m new rows as the beta-binomial of the same parameters.

    Examples
    --------
    >>> import numpy as np
    >>> kept = kept_promises(np.arange(1000) / 1000, calibration=np.arange(199) / 199)
    >>> [(p.rate, p.measured, p.verdict) for p in kept][:2]
    [(0.005, 0.005, 'as promised'), (0.01, 0.01, 'as promised')]
    """
    check_confidence(confidence)
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
