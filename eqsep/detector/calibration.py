"""The promise: a threshold that new normal rows pass at a chosen rate."""

import math
import warnings
from dataclasses import dataclass

import numpy as np

from eqsep.errors import EqsepWarning, UserError

STEP = 100  # with 99, 199, … rows a rate of a whole number of percents is met, not only bounded
MOST_HELD = 3999  # rows that a first fit holds out


class PromiseWarning(EqsepWarning):
    """There are too few held-out normal rows to promise the rate of false alarms."""


@dataclass(frozen=True)
class Calibration:
    """Normal rows that were held out of the fit, and their scores, in the same random order.

    A new normal row is as likely to have any rank among them (split-conformal prediction): so
    p(s) = (1 + the number of their scores >= s) / (n + 1) is at most a with a chance of a or less.

    Attributes
    ----------
    rows : ndarray of shape (n, n_columns)
    scores : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> calibration = Calibration(np.zeros((199, 1)), np.arange(199.0))
    >>> calibration.threshold(0.01), calibration.p_value(np.array([0.0, 500.0]))
    (197.0, array([1.   , 0.005]))
    """

    rows: np.ndarray
    scores: np.ndarray

    @property
    def ordered(self) -> np.ndarray:
        """The scores that count, in order: one less than a multiple of 100 where there are 99."""
        n = len(self.scores)
        return np.sort(self.scores[: usable(n)])

    @property
    def least_rate(self) -> float:
        """The least rate of false alarms that can be promised."""
        return 1 / (usable(len(self.scores)) + 1)

    def threshold(self, rate: float) -> float:
        """The score above which p(s) <= rate; the largest one where no score is that rare."""
        ordered = self.ordered
        if not len(ordered):
            return 0.5  # half of what a row far from all normal ones scores
        allowed = math.floor(rate * (len(ordered) + 1) + 1e-9)
        return float(ordered[-max(allowed, 1)]) if allowed <= len(ordered) else -math.inf

    def without(self, gone: np.ndarray) -> np.ndarray:
        """The rows less one for each equal one among `gone`, all of which must be there."""
        places: dict[bytes, list[int]] = {}
        for i, row in enumerate(np.ascontiguousarray(self.rows)):
            places.setdefault(row.tobytes(), []).append(i)
        drop = []
        for row in np.ascontiguousarray(gone):
            if not places.get(row.tobytes()):
                raise UserError(
                    "Cannot forget a row that was not learnt: a normal row that calibrates is not "
                    "among those held out. Pass rows and labels as they were learnt."
                )
            drop.append(places[row.tobytes()].pop())
        return np.delete(self.rows, drop, axis=0)

    def warn_if_short(self, rate: float) -> None:
        """Warn where there are too few rows to promise this rate."""
        if self.least_rate <= rate + 1e-12:
            return
        n, wanted = len(self.scores), math.ceil(1 / rate - 1e-9) - 1
        digit = 10 ** math.floor(math.log10(self.least_rate))
        enough = float(f"{math.ceil(self.least_rate / digit - 1e-9) * digit:.1g}")
        told = (
            f"A false-alarm rate of {rate:g} cannot be promised: it takes {wanted:,} held-out "
            f"normal rows, and there are {n:,}. Add normal rows"
        )
        other = f", or set false_alarm_rate={enough:g}" if enough < 1 else ""
        option = f", or pass --false-alarm-rate {enough:g}" if enough < 1 else ""
        warnings.warn(
            PromiseWarning(f"{told}{other}.", command=f"{told}{option}."),
            stacklevel=3,
        )

    def p_value(self, score: np.ndarray) -> np.ndarray:
        """p(s) for each score."""
        ordered = self.ordered
        as_high = len(ordered) - np.searchsorted(ordered, score, side="left")
        return (1 + as_high) / (len(ordered) + 1)


def usable(n: int) -> int:
    """How many of `n` held-out rows count: 99, 199, … or, where there are fewer, all of them."""
    return (n + 1) // STEP * STEP - 1 if n + 1 >= STEP else n


def held_out(n: int) -> int:
    """How many of `n` normal rows to hold out: a fifth, of few rows more, of many at most 3,999.

    Examples
    --------
    >>> [held_out(n) for n in (10, 300, 1000, 100_000)]
    [5, 99, 199, 3999]
    """
    return usable(int(min(max(n / 5, min(120, n / 2)), MOST_HELD)))
