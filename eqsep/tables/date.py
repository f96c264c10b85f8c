"""A learnt column of dates: time elapsed as a number, and the hour and weekday on their circles."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from eqsep.tables.column import Column
from eqsep.tables.number import Number

_DAY = 86_400.0
_WEEK = 7 * _DAY
_MONDAY = 4 * _DAY  # 1970 began on a Thursday: its first Monday is the fifth
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Date:
    """Elapsed seconds as a `Number`, then (sin, cos) of the hour and of the weekday.

    Attributes
    ----------
    elapsed : Number
    cycles : list of {"hour", "weekday"}
        The hour where the time of day varies in training, the weekday where a week is spanned.
    """

    elapsed: Number
    cycles: list[str]

    kind = "date"
    reads = "date"  # the kind of column that the values are read as

    @classmethod
    def learn(cls, column: Column, *, forms: list[str]) -> Self:
        """Learn from the dates that are there: at least one."""
        x = column.numbers("date")
        x = x[~np.isnan(x)]
        has = {"hour": np.ptp(x % _DAY) > 0, "weekday": np.ptp(x) >= _WEEK}
        return cls(
            Number.learn(column, unit="date", forms=forms),
            [cycle for cycle, there in has.items() if there],
        )

    @property
    def outputs(self) -> list[str]:
        """What follows the column's name in the names of the outputs."""
        circles = [f":{cycle}_{part}" for cycle in self.cycles for part in ("sin", "cos")]
        return self.elapsed.outputs + circles

    @property
    def weights(self) -> list[float]:
        """What each output counts in a distance between rows."""
        return self.elapsed.weights + [1.0] * (2 * len(self.cycles))

    @property
    def groups(self) -> list[int]:
        """Outputs of one group rise together; those of a circle do not."""
        elapsed = self.elapsed.groups
        return elapsed + [elapsed[-1] + 1 + i for i in range(2 * len(self.cycles))]

    def value(self, outputs: np.ndarray) -> str:
        """The date that the outputs of one row encode."""
        return self.elapsed.value(outputs[: len(self.elapsed.outputs)])

    def encode(self, column: Column) -> np.ndarray:
        """The outputs side by side; a missing date is at the centre of its circles."""
        x = column.numbers("date")
        parts = [self.elapsed.encode(column)]
        for cycle in self.cycles:
            angle = 2 * np.pi * _turn(x, cycle)
            parts.append(np.nan_to_num(np.column_stack([np.sin(angle), np.cos(angle)])))
        return np.hstack(parts)

    def describe(self, output: int, value: float) -> str:
        """What the encoded value says: a date, or the two times of the circle that fit."""
        n_elapsed = len(self.elapsed.outputs)
        if output < n_elapsed:
            return self.elapsed.describe(output, value)
        cycle, is_cos = self.cycles[(output - n_elapsed) // 2], (output - n_elapsed) % 2
        angle = float((np.arccos if is_cos else np.arcsin)(np.clip(value, -1, 1)))
        turns = [t / (2 * np.pi) % 1 for t in (angle, -angle if is_cos else np.pi - angle)]
        write = _clock if cycle == "hour" else _weekday
        return "at " + " or ".join(dict.fromkeys(write(t) for t in sorted(turns)))

    def state(self) -> dict[str, Any]:
        """Plain data from which `from_state` makes the same again."""
        return {"elapsed": self.elapsed.state(), "cycles": self.cycles, "kind": self.kind}


def _turn(seconds: np.ndarray, cycle: str) -> np.ndarray:
    """The part of the day or week that has passed; weekdays are whole steps."""
    if cycle == "hour":
        return seconds % _DAY / _DAY
    return np.floor((seconds - _MONDAY) % _WEEK / _DAY) / 7


def _clock(turn: float) -> str:
    minutes = round(turn * 24 * 60) % (24 * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _weekday(turn: float) -> str:
    return _DAYS[round(turn * 7) % 7]
