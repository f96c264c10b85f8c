"""Learnt columns and their encodings: numbers by ranks and deviations, dates, and names.

Each has `outputs`, what follows the column's name in the names of its outputs; `weights`, what each
output counts in a distance between rows; `groups`, a number for each output, the same for those
that rise together with the value; `reads`, the kind of column that its values are read as.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from eqsep.tables.column import LARGEST, NAME_WEIGHT, WRITERS, Column

KNOTS = 256
RANK_WEIGHT = 12**0.5
_LINEAR = 8.0  # robust deviations: beyond, standard values grow by their logarithm
_JUMP = 4.0  # robust deviations from a value that never varied to any other one
_UNSEEN_RANK = -2.0  # the rank of a missing value where training had none; numbers stay above -1
_SINGLE = 2**-22  # of a deviation is what single precision leaves open of it
_UNSEEN_STEP = 8.0  # the same on the standard scale, below the least value of training
_DAY = 86_400.0
_WEEK = 7 * _DAY
_MONDAY = 4 * _DAY  # 1970 began on a Thursday: its first Monday is the fifth
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FAR = 2.0  # a name never seen is farther from every seen one than those are from each other


@dataclass(frozen=True)
class Number:
    """Numbers as ranks in [0, 1], on a robust standard scale, or both.

    Attributes
    ----------
    unit : {"number", "date", "duration"}
    forms : list of {"quantile", "standard"}
        The outputs, in this order; one more says where a value is missing if training had any.
    knots, low, high : list of float
        At most `KNOTS` values of training in order, and the ranks of the first and last row that
        has each of them, as fractions.
    centre, scale : float
        The median, and the range between the quartiles over 1.349; where this is 0, the median
        distance of the other values from the median.
    with_missing : bool
        Whether training had missing values.
    """

    unit: str
    forms: list[str]
    knots: list[float]
    low: list[float]
    high: list[float]
    centre: float
    scale: float
    with_missing: bool

    kind = "number"

    @classmethod
    def learn(cls, column: Column, *, unit: str, forms: list[str]) -> Self:
        """Learn from the values that are there: at least one."""
        values = column.numbers(unit)
        x = np.sort(values[~np.isnan(values)])
        last = len(x) - 1
        first_of = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
        chosen = first_of
        if len(first_of) > KNOTS:
            chosen = np.round(np.linspace(0, last, KNOTS)).astype(int)
        knots = np.unique(x[chosen])
        low = np.searchsorted(x, knots, side="left") / max(last, 1)
        high = (np.searchsorted(x, knots, side="right") - 1) / max(last, 1)
        centre, scale = _centre_and_scale(x)
        ranks = (knots.tolist(), low.tolist(), high.tolist())
        return cls(unit, forms, *ranks, centre, scale, with_missing=len(x) < len(values))

    @property
    def reads(self) -> str:
        return self.unit

    @property
    def outputs(self) -> list[str]:
        return [f":{form}" for form in self.forms] + [":missing"] * self.with_missing

    @property
    def weights(self) -> list[float]:
        """Ranks have the variance 1 / 12, deviations about 1. Where training has two values the two
        forms say the same, and one stands for both.
        """
        weight = {"quantile": RANK_WEIGHT, "standard": 1.0}
        if len(self.knots) == 2 and len(self.forms) == 2:
            step = float(np.diff(self._deviations(np.array(self.knots)))[0])
            weight = {"quantile": 0.0, "standard": 1 + RANK_WEIGHT / step}
        return [weight[form] for form in self.forms] + [NAME_WEIGHT] * self.with_missing

    @property
    def groups(self) -> list[int]:  # ranks and deviations rise together with the value
        return [0] * len(self.forms) + [1] * self.with_missing

    def value(self, outputs: np.ndarray) -> str:
        """The value that the outputs of one row encode, as text in the column's own unit."""
        if self.with_missing and outputs[-1] > 0.5:
            return "missing"
        form = len(self.forms) - 1  # deviations say it more finely than ranks
        return self.describe(form, float(outputs[form])).removeprefix("= ").removeprefix("is ")

    def encode(self, column: Column) -> np.ndarray:
        """The outputs side by side.  (n,) -> (n, k)"""
        x = column.numbers(self.unit)
        missing = np.isnan(x)
        some = np.count_nonzero(missing) > 0
        if some:
            x = np.where(missing, self.centre, x)
        out = np.empty((len(x), len(self.outputs)))
        for j, form in enumerate(self.forms):
            out[:, j] = self._ranks(x) if form == "quantile" else self._deviations(x)
            if some:
                out[missing, j] = self._place_of_missing(form)
        if self.with_missing:
            out[:, -1] = missing
        return out

    def describe(self, output: int, value: float) -> str:
        """What the encoded value says, in the column's own unit."""
        if output == len(self.forms):
            return "is missing" if value > 0.5 else "is not missing"
        form = self.forms[output]
        if not self.with_missing and np.isclose(value, self._place_of_missing(form), rtol=1e-6):
            return "is missing"
        x = self._of_rank(value) if form == "quantile" else self._of_deviation(value)
        near = _SINGLE * abs(x - self.centre) * (abs(value) if abs(value) > _LINEAR else 1.0)
        return f"= {WRITERS[self.unit](_shown(x, within=near))}"

    def state(self) -> dict[str, Any]:
        return asdict(self) | {"kind": self.kind}

    def _place_of_missing(self, form: str) -> float:  # the median's, or outside all of training
        if form == "quantile":
            middle = float(self._ranks(np.array([self.centre]))[0])
            return middle if self.with_missing else _UNSEEN_RANK
        least = self._deviations(np.array(self.knots[:1]))[0]
        return 0.0 if self.with_missing else float(least) - _UNSEEN_STEP

    @property
    def _width(self) -> float:  # the range of training, or the size of the only value
        return (self.knots[-1] - self.knots[0]) or abs(self.centre) or 1.0

    def _ranks(self, x: np.ndarray) -> np.ndarray:
        """Interpolated ranks; beyond the range of training towards -1 and 2, never arriving."""
        knots, gap, high, rise, at = self._knots
        if len(knots) == 1:
            rank = np.full(len(x), 0.5)
        else:
            inside = np.minimum(np.maximum(x, knots[0]), knots[-1])
            i = np.minimum(knots.searchsorted(inside, side="right") - 1, len(gap) - 1)
            below_it = knots[i]
            rank = high[i] + (inside - below_it) / gap[i] * rise[i]
            rank = np.where(inside == below_it, at[i], rank)
            rank[inside == knots[-1]] = 1
        below, above = x < knots[0], x > knots[-1]
        if np.count_nonzero(below):
            rank[below] = -_beyond(knots[0] - x[below], width=self._width)
        if np.count_nonzero(above):
            rank[above] = 1 + _beyond(x[above] - knots[-1], width=self._width)
        return rank

    @cached_property
    def _knots(self) -> tuple[np.ndarray, ...]:
        """Knots, the gaps between, ranks of the last row on each, how they rise, and the knot's."""
        knots, low, high = map(np.array, (self.knots, self.low, self.high))
        at = (low + high) / 2
        at[[0, -1]] = 0, 1
        return knots, np.diff(knots), high, low[1:] - high[:-1], at

    def _of_rank(self, rank: float) -> float:
        if rank < 0 or rank > 1:
            t = min(abs(rank if rank < 0 else rank - 1), 1 - 1e-9)
            steps = self._width * t / (1 - t)
            return self.knots[0] - steps if rank < 0 else self.knots[-1] + steps
        ranks = np.column_stack([self.low, self.high])
        if len(ranks) > 1:
            ranks[0, 0], ranks[-1, -1] = 0, 1
        return float(np.interp(rank, ranks.ravel(), np.repeat(self.knots, 2)))

    def _deviations(self, x: np.ndarray) -> np.ndarray:
        """Robust deviations from the centre, by their logarithm where they are large."""
        with np.errstate(over="ignore"):  # a tiny scale: infinite, and bounded in the next line
            z = np.minimum(np.maximum((x - self.centre) / self.scale, -LARGEST), LARGEST)
        size = np.abs(z)
        if len(self.knots) == 1:
            size += _JUMP * (size > 0)
        large = size > _LINEAR
        if np.count_nonzero(large):
            size[large] = _LINEAR + np.log1p(size[large] - _LINEAR)
        return np.copysign(size, z)

    def _of_deviation(self, value: float) -> float:
        size = abs(value)
        if size > _LINEAR:
            size = _LINEAR + float(np.expm1(min(size - _LINEAR, 690.0)))
        if len(self.knots) == 1:
            size = max(size - _JUMP, 0.0)
        return float(self.centre + np.copysign(min(size * self.scale, LARGEST), value))


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
        elapsed = Number.learn(column, unit="date", forms=forms)
        return cls(elapsed, [cycle for cycle, there in has.items() if there])

    @property
    def outputs(self) -> list[str]:
        circles = [f":{cycle}_{part}" for cycle in self.cycles for part in ("sin", "cos")]
        return self.elapsed.outputs + circles

    @property
    def weights(self) -> list[float]:
        return self.elapsed.weights + [1.0] * (2 * len(self.cycles))

    @property
    def groups(self) -> list[int]:  # the outputs of a circle do not rise together
        elapsed = self.elapsed.groups
        return elapsed + [elapsed[-1] + 1 + i for i in range(2 * len(self.cycles))]

    def value(self, outputs: np.ndarray) -> str:
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
        n_elapsed = len(self.elapsed.outputs)
        if output < n_elapsed:
            return self.elapsed.describe(output, value)
        cycle, is_cos = self.cycles[(output - n_elapsed) // 2], (output - n_elapsed) % 2
        angle = float((np.arccos if is_cos else np.arcsin)(np.clip(value, -1, 1)))
        turns = [t / (2 * np.pi) % 1 for t in (angle, -angle if is_cos else np.pi - angle)]
        return "at " + " or ".join(dict.fromkeys(_written_turn(t, cycle) for t in sorted(turns)))

    def state(self) -> dict[str, Any]:
        return {"elapsed": self.elapsed.state(), "cycles": self.cycles, "kind": self.kind}


@dataclass(frozen=True)
class Category:
    """Names as outputs of 0 and 1, with rare names pooled and new ones at `FAR`.

    Attributes
    ----------
    frequent : list of str
        The names that have an output of their own, the most frequent first.
    rare : list of str
        The names of training that share one output.
    with_missing : bool
        Whether training had missing values, which then have an output; else they are new.
    boolean : bool
        Whether the names are "False" and "True", which 0 and 1 are read as.
    """

    frequent: list[str]
    rare: list[str]
    with_missing: bool
    boolean: bool = False

    kind = "category"

    @classmethod
    def learn(cls, column: Column, *, max_categories: int, min_count: int) -> Self:
        """Count the names."""
        counts = column.counts()
        with_missing = counts.total() < len(column.values)
        names = sorted(counts, key=lambda name: (-counts[name], name))
        frequent = [name for name in names[:max_categories] if counts[name] >= min_count]
        if column.kind == "boolean":  # two names are never too many, nor a truth too rare
            frequent = sorted(names)
        return cls(frequent, names[len(frequent) :], with_missing, column.kind == "boolean")

    @property
    def reads(self) -> str:
        return "boolean" if self.boolean else "text"

    @property
    def outputs(self) -> list[str]:
        known = [f"={name}" for name in self.frequent]
        return [*known, *[":rare"] * bool(self.rare), *[":missing"] * self.with_missing, ":new"]

    @property
    def weights(self) -> list[float]:
        return [NAME_WEIGHT] * len(self.outputs)

    @property
    def groups(self) -> list[int]:  # each output is one of its own
        return list(range(len(self.outputs)))

    def value(self, outputs: np.ndarray) -> str:
        """The name that the outputs of one row encode."""
        told = self.outputs[int(np.argmax(outputs))]
        return told.removeprefix("=") if told.startswith("=") else told.removeprefix(":")

    def encode(self, column: Column) -> np.ndarray:
        """The outputs side by side.  (n,) -> (n, k)"""
        place, height = self.places(column)
        out = np.zeros((len(place), len(self.outputs)))
        out[np.arange(len(place)), place] = height
        return out

    def places(self, column: Column) -> tuple[np.ndarray, np.ndarray]:
        """The only output of each row that is not 0, and what it is.  (n,) -> (n,), (n,)"""
        names, rows = column.names(truths=self.boolean)
        new, place = self._place_of
        code = np.array([place.get(name, new) for name in names], np.intp)
        return code[rows], np.where(code == new, FAR, 1.0)[rows]

    @cached_property
    def _place_of(self) -> tuple[int, dict[str | None, int]]:
        """The output of new names, and that of each other one."""
        new = len(self.outputs) - 1
        place: dict[str | None, int] = {name: i for i, name in enumerate(self.frequent)}
        place |= dict.fromkeys(self.rare, len(self.frequent))
        return new, place | ({None: new - 1} if self.with_missing else {})

    def describe(self, output: int, value: float) -> str:
        """What the encoded value says."""
        told = self.outputs[output]
        yes = value > 0.5
        if told.startswith("=") and output < len(self.frequent):
            return f"= {told[1:]}" if yes else f"is not {told[1:]}"
        said = {":rare": "rare", ":missing": "missing", ":new": "new"}[told]
        return f"is {said}" if yes else f"is not {said}"

    def state(self) -> dict[str, Any]:
        return asdict(self) | {"kind": self.kind}


def _beyond(distance: np.ndarray, *, width: float) -> np.ndarray:
    """d / (width + d): 0 at the edge of training, 1/2 one width from it, 1 in the limit."""
    with np.errstate(over="ignore"):  # a tiny width: infinitely far, and 1 in the next line
        t = distance / width
    return 1 - 1 / (1 + t)


def _shown(x: float, *, within: float) -> float:
    """The shortest number so near to `x`, of at most six digits, or all before the point."""
    x = min(max(x, -LARGEST), LARGEST)
    for digits in range(1, 7):
        short = float(f"{x:.{digits}g}")
        if abs(short - x) <= within:
            return short
    return float(round(x)) if 1e5 < abs(x) < 1e15 else short


def _centre_and_scale(x: np.ndarray) -> tuple[float, float]:
    """The median and a deviation that no tail reaches; x is in order."""
    lower, centre, upper = np.quantile(x, [0.25, 0.5, 0.75])
    if upper > lower:
        return float(centre), float((upper - lower) / 1.349)
    others = np.abs(x - centre)[x != centre]
    return float(centre), float(np.median(others)) if len(others) else abs(float(centre)) or 1.0


def _turn(seconds: np.ndarray, cycle: str) -> np.ndarray:
    """The part of the day or week that has passed; weekdays are whole steps."""
    if cycle == "hour":
        return seconds % _DAY / _DAY
    return np.floor((seconds - _MONDAY) % _WEEK / _DAY) / 7


def _written_turn(turn: float, cycle: str) -> str:
    if cycle == "weekday":
        return _DAYS[round(turn * 7) % 7]
    minutes = round(turn * 24 * 60) % (24 * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
