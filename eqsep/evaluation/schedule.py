"""A schedule: into which periods rows fall, and when what they are becomes known."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.errors import ParameterError, UserError
from eqsep.tables.reading import WRITERS, column_of

_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)")
Span = str | float


@dataclass(frozen=True)
class Schedule:
    """How often models learn and alarms are looked at, how many, and when labels come.

    Where times are dates, spans are texts such as "7d", "1h" or "30min"; where times are numbers,
    they are numbers of rows.

    Attributes
    ----------
    every : str or float, default="1d"
        The length of a period. Models learn before it begins, from what is known then.
    delay : str or float, default="7d"
        How long after a row its label is known.
    verdict : str or float, default=None
        How long after the end of their period the alarms that were looked at are known for what
        they are, where that is sooner; None where they wait for their labels like all others.
    alarms : int, default=50
        How many of the highest scores of each period are looked at.
    first : int, default=500
        The labelled rows that the first model takes.
    """

    every: Span = "1d"
    delay: Span = "7d"
    verdict: Span | None = None
    alarms: int = 50
    first: int = 500

    def timeline(self, time: Any) -> "Timeline":
        """The periods of rows with these times, and when they are known."""
        for name, least in (("alarms", 1), ("first", 2)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise ParameterError(
                    name, expected=f"a whole number of at least {least}", got=value
                )
        column = column_of("time", np.asarray(time))
        if column.kind not in ("date", "number") or np.isnan(column.values).any():
            raise UserError(
                "Expected the time of each row, a date or a number, and some are neither: fill "
                "them in, or leave these rows out."
            )
        is_date = column.kind == "date"
        every, delay, verdict = (
            None if span is None else _length(span, name, is_date=is_date)
            for name, span in (
                ("every", self.every),
                ("delay", self.delay),
                ("verdict", self.verdict),
            )
        )
        assert every is not None
        assert delay is not None
        if not every > 0:
            raise ParameterError("every", expected="a span above 0", got=self.every)
        at = column.values
        if not is_date:  # the place of each row in the order of times
            at = np.empty(len(at))
            at[np.argsort(column.values, kind="stable")] = np.arange(len(at))
        return Timeline(at=at, is_date=is_date, every=every, delay=delay, verdict=verdict)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Rows in time: seconds, or places in their order.

    Attributes
    ----------
    at : ndarray of float of shape (n_rows,)
    is_date : bool
    every, delay : float
    verdict : float or None
    """

    at: np.ndarray
    is_date: bool
    every: float
    delay: float
    verdict: float | None

    @property
    def period(self) -> np.ndarray:
        """The number of each row's period; those without rows are counted too."""
        numbers: np.ndarray = np.floor(self.at / self.every).astype(int)
        return numbers

    def labelled(self, period: int) -> np.ndarray:
        """Which rows have their label when a period begins."""
        known: np.ndarray = self.at + self.delay <= period * self.every
        return known & (self.period < period)

    def judged(self, period: int, alarm: np.ndarray) -> np.ndarray:
        """Which rows that raised an alarm are known for what they are when a period begins."""
        if self.verdict is None:
            return np.zeros(len(alarm), dtype=bool)
        ends = (self.period + 1) * self.every
        known: np.ndarray = alarm & (ends + self.verdict <= period * self.every)
        return known

    def name(self, period: int) -> str:
        """When a period begins, in words."""
        return self.when(period * self.every)

    def when(self, at: float) -> str:
        """A time in words, or a place in the order of rows."""
        if not self.is_date:
            return f"row {int(at) + 1:,}"
        text = WRITERS["date"](at)
        return text.removesuffix("T00:00:00").removesuffix(":00").replace("T", " ")


def _length(span: Span, name: str, *, is_date: bool) -> float:
    """A span in seconds, or in rows where times are numbers."""
    match = _SPAN.fullmatch(str(span).strip().lower())
    unit = match[2] if match else ""
    if match and is_date and unit in _SECONDS:
        return float(match[1]) * _SECONDS[unit]
    if match and not is_date and not unit:
        return float(match[1])
    expected = (
        "a span such as 7d, 12h or 30min, as times are dates"
        if is_date
        else "a number of rows, as times are numbers and not dates"
    )
    raise ParameterError(name, expected=expected, got=span)
