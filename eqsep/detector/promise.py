"""What held-out rows can promise of one model, beyond the average over models; what is asked for.

With the k-th largest of n held-out scores as the threshold, the share of new normal rows above it
is Beta(k, n + 1 - k) over draws of the held-out rows: k / (n + 1) on average, and that of one model
by luck more or less.
"""

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from eqsep.errors import ParameterError

CONFIDENCE = 0.95  # of the interval that is told of every model


class RateInterval(NamedTuple):
    """The rate of false alarms over draws of the held-out rows: its mean, and where 95 % lie."""

    mean: float
    low: float
    high: float


def certified_rank(n: int, *, rate: float, confidence: float) -> int:
    """The largest k for which P(Beta(k, n + 1 - k) <= rate) >= confidence; 0 where there is none.

    Examples
    --------
    >>> [certified_rank(n, rate=0.01, confidence=0.95) for n in (298, 299, 499)]
    [0, 1, 2]
    """
    from scipy.special import betainc  # scoring does not wait for it

    k = np.arange(1, n + 1)
    return int((betainc(k, n + 1 - k, rate) >= confidence).sum())


def rate_interval(n: int, k: int) -> RateInterval:
    """Where the rate of one model lies whose threshold is the k-th largest of n scores.

    Examples
    --------
    >>> [f"{share:.2%}" for share in rate_interval(499, 5)]
    ['1.00%', '0.33%', '2.04%']
    """
    if not 0 < k <= n:
        return RateInterval(*(float(k > n),) * 3)
    from scipy.special import betaincinv  # likewise

    tail = (1 - CONFIDENCE) / 2
    low, high = betaincinv(k, n + 1 - k, [tail, 1 - tail])
    return RateInterval(k / (n + 1), float(low), float(high))


def rows_needed(*, rate: float, confidence: float) -> int:
    """The least number of held-out rows of which the largest score certifies the rate."""
    return math.ceil(math.log1p(-confidence) / math.log1p(-rate) - 1e-9)


def least_certified(n: int, *, confidence: float) -> float:
    """The least rate that the largest of n scores certifies."""
    return -math.expm1(math.log1p(-confidence) / n) if n else 1.0


def shares_as_high(score: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """For each row, the share of the rows of its group that score at least as high.

    Examples
    --------
    >>> import numpy as np
    >>> shares_as_high(np.array([9.0, 2.0, 3.0]), np.array([7, 7, 8])).tolist()
    [0.5, 1.0, 1.0]
    """
    shares = np.empty(len(score))
    order = np.argsort(groups, kind="stable")
    first = np.flatnonzero(np.diff(groups[order])) + 1
    for places in np.split(order, first):
        ordered = np.sort(score[places])
        shares[places] = 1 - np.searchsorted(ordered, score[places]) / max(len(places), 1)
    return shares


def checked_share(share: object, *, name: str, means: str) -> float:
    """A parameter of this name as a number between 0 and 1; else an error says what it means."""
    if not isinstance(share, Real) or not 0 < float(share) < 1:
        raise ParameterError(name, expected="a number between 0 and 1", got=share, hint=means)
    return float(share)


def checked_rate(rate: float) -> float:
    """A rate of false alarms as a number between 0 and 1."""
    means = "0.01 allows one false alarm in a hundred normal rows."
    return checked_share(rate, name="false_alarm_rate", means=means)


def checked_promise(detector: Any) -> tuple[float, float | None]:
    """The rate of false alarms, and the confidence with which it is kept: None is on average."""
    rate, confidence = checked_rate(detector.false_alarm_rate), detector.confidence
    if confidence is None:
        return rate, None
    means = (
        "With 0.95, 95 of 100 models keep the rate of false alarms; without it, it is kept on "
        "average."
    )
    return rate, checked_share(confidence, name="confidence", means=means)
