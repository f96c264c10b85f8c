"""Learnt columns and their encodings: numbers by ranks and deviations, dates, and names.

Each has `outputs`, what follows the column's name in the names of its outputs; `weights`, what each
output counts in a distance between rows; `groups`, a number for each output, the same for those
that rise together with the value; `reads`, the kind of column that its values are read as.

`rank` and `deviation` are the formulas of one number: plain Python for a few of them, and part of
the machine code of `encode_numbers` for many.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from eqsep.arrays import namespace
from eqsep.tables.column import LARGEST, NAME_WEIGHT, Column, truth_of

KNOTS = 256
LINEAR = 8.0  # robust deviations: beyond, standard values grow by their logarithm
JUMP = 4.0  # robust deviations from a value that never varied to any other one
KNOT, GAP, HIGH, RISE, AT = range(5)  # of a column's ranks
CENTRE, SCALE, WIDTH, CONSTANT = range(4)  # of a column's scale
RANK, DEVIATION, MISSING = range(3)  # outputs
RANK_WEIGHT = 12**0.5
_UNSEEN_RANK = -2.0  # the rank of a missing value where training had none; numbers stay above -1
_UNSEEN_STEP = 8.0  # the same on the standard scale, below the least value of training
_DAY = 86_400.0
_WEEK = 7 * _DAY
_MONDAY = 4 * _DAY  # 1970 began on a Thursday: its first Monday is the fifth
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
    def number(self) -> "Number":
        """What of the column is a number."""
        return self

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
            least, most = (deviation(knot, self.scales) for knot in self.knots)
            step = most - least
            weight = {"quantile": 0.0, "standard": 1 + RANK_WEIGHT / step}
        return [weight[form] for form in self.forms] + [NAME_WEIGHT] * self.with_missing

    @property
    def groups(self) -> list[int]:  # ranks and deviations rise together with the value
        return [0] * len(self.forms) + [1] * self.with_missing

    def state(self) -> dict[str, Any]:
        return asdict(self) | {"kind": self.kind}

    def missing(self, form: str) -> float:
        """Where a missing value is: at the median, or outside all of training."""
        if form == "quantile":
            middle = float(rank(self.centre, self.ranks, self.width))
            return middle if self.with_missing else _UNSEEN_RANK
        least = float(deviation(self.knots[0], self.scales))
        return 0.0 if self.with_missing else least - _UNSEEN_STEP

    @property
    def width(self) -> float:
        """The range of training, or the size of the only value."""
        return (self.knots[-1] - self.knots[0]) or abs(self.centre) or 1.0

    @property
    def scales(self) -> tuple[float, ...]:
        """What `deviation` takes."""
        return self.centre, self.scale, self.width, float(len(self.knots) == 1)

    @cached_property
    def ranks(self) -> np.ndarray:
        """What `rank` takes: knots, gaps, ranks of the last row on each, rises, and the knot's."""
        knots, low, high = map(np.array, (self.knots, self.low, self.high))
        at = (low + high) / 2
        at[[0, -1]] = 0, 1
        gap, rise = np.append(np.diff(knots), 1.0), np.append(low[1:] - high[:-1], 0.0)
        return np.stack([knots, gap, high, rise, at])


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

    @property
    def number(self) -> Number:
        return self.elapsed

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

    def circles(self, x: Any) -> Any:
        """Sine and cosine of each cycle; a missing date is at the centre.  (n,) -> (n, k)"""
        if not self.cycles:
            return x[:, None][:, :0]
        xp = np if isinstance(x, np.ndarray) else namespace(x)
        angles = [2 * np.pi * _turn(x, cycle, xp) for cycle in self.cycles]
        parts = [wave(angle) for angle in angles for wave in (xp.sin, xp.cos)]
        circles = xp.stack(parts, axis=1)
        return xp.where(xp.isnan(circles), 0.0, circles)

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
    with_rare : bool
        Whether rare names have an output although none is left.
    """

    frequent: list[str]
    rare: list[str]
    with_missing: bool
    boolean: bool = False
    with_rare: bool = False

    kind = "category"
    number = None

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
        rare = [":rare"] * (bool(self.rare) or self.with_rare)
        return [*known, *rare, *[":missing"] * self.with_missing, ":new"]

    @property
    def weights(self) -> list[float]:
        return [NAME_WEIGHT] * len(self.outputs)

    @property
    def groups(self) -> list[int]:  # each output is one of its own
        return list(range(len(self.outputs)))

    def places(self, names: Sequence[str | None]) -> np.ndarray:
        """The only output that is not 0 for each name; None is a missing one.  (n,) -> (n,)"""
        new, place = self._place_of
        return np.array([place.get(name, new) for name in names], np.intp)

    def plain_names(self, values: Sequence[Any]) -> list[str | None]:
        """Strings, truth values and None as names."""
        names = [str(v) if type(v) is bool else v for v in values]
        return [None if v is None else truth_of(v) for v in names] if self.boolean else names

    @cached_property
    def heights(self) -> np.ndarray:
        """What each output is where it is not 0."""
        return np.append(np.ones(len(self.outputs) - 1), FAR)

    @cached_property
    def _place_of(self) -> tuple[int, dict[str | None, int]]:
        """The output of new names, and that of each other one."""
        new = len(self.outputs) - 1
        place: dict[str | None, int] = {name: i for i, name in enumerate(self.frequent)}
        place |= dict.fromkeys(self.rare, len(self.frequent))
        return new, place | ({None: new - 1} if self.with_missing else {})

    def state(self) -> dict[str, Any]:
        return asdict(self) | {"kind": self.kind}


def _centre_and_scale(x: np.ndarray) -> tuple[float, float]:
    """The median and a deviation that no tail reaches; x is in order."""
    lower, centre, upper = np.quantile(x, [0.25, 0.5, 0.75])
    if upper > lower:
        return float(centre), float((upper - lower) / 1.349)
    others = np.abs(x - centre)[x != centre]
    return float(centre), float(np.median(others)) if len(others) else abs(float(centre)) or 1.0


Learnt = Number | Category | Date  # a learnt column


def _turn(seconds: Any, cycle: str, xp: Any) -> Any:
    """The part of the day or week that has passed; weekdays are whole steps."""
    if cycle == "hour":
        return seconds % _DAY / _DAY
    return xp.floor((seconds - _MONDAY) % _WEEK / _DAY) / 7


def rank(x: Any, ranks: Any, width: Any) -> Any:
    """The interpolated rank; beyond the range of training towards -1 and 2, never arriving.

    `ranks` has a column for each knot: the knot, the gap to the next, the rank of the last row on
    it, how ranks rise to the next, and the knot's own.
    """
    last = ranks.shape[1] - 1
    if x < ranks[KNOT, 0]:
        return -beyond(ranks[KNOT, 0] - x, width)
    if x > ranks[KNOT, last]:
        return 1 + beyond(x - ranks[KNOT, last], width)
    if last == 0:
        return 0.5
    if x == ranks[KNOT, last]:
        return 1.0
    below, above = 0, last
    while above - below > 1:
        middle = (below + above) >> 1
        if ranks[KNOT, middle] <= x:
            below = middle
        else:
            above = middle
    step = x - ranks[KNOT, below]
    if step == 0:
        return ranks[AT, below]
    return ranks[HIGH, below] + step / ranks[GAP, below] * ranks[RISE, below]


def beyond(distance: Any, width: Any) -> Any:
    """d / (width + d): 0 at the edge of training, 1/2 one width from it, 1 in the limit."""
    return 1 - 1 / (1 + distance / width)


def deviation(x: Any, scale: Any) -> Any:
    """Robust deviations from the centre, by their logarithm where they are large.

    `scale` has the centre, the size of a deviation, and (last) 1 where training had one value.
    """
    z = min(max((x - scale[CENTRE]) / scale[SCALE], -LARGEST), LARGEST)
    size = abs(z)
    if size > 0:
        size += JUMP * scale[CONSTANT]
    if size > LINEAR:
        size = LINEAR + math.log1p(size - LINEAR)
    return math.copysign(size, z)


def encode_numbers(
    X: Any, bits: Any, ranks: Any, scales: Any, outputs: Any, out: Any
) -> None:  # pragma: no cover  compiled
    """Columns of numbers, a row of `X` each, to their outputs, which are columns of `out`.

    `ranks` are those of all columns and where each column's begin; `outputs` say where the rank,
    the deviation and the 1 of a missing value go (-1: nowhere), what each counts, and what the
    first two are for a missing value.
    """
    knots, first = ranks
    places, weights, missing = outputs
    for k in range(X.shape[0]):
        to_rank, to_deviation, to_missing = (
            places[k, RANK],
            places[k, DEVIATION],
            places[k, MISSING],
        )
        own, scale = knots[:, first[k] : first[k + 1]], scales[k]
        a = b = gone = 0.0
        for i in range(X.shape[1]):
            if i == 0 or bits[k, i] != bits[k, i - 1]:  # else it is as the row before: often so
                x = X[k, i]
                if x != x:
                    a, b, gone = missing[k, RANK], missing[k, DEVIATION], weights[k, MISSING]
                else:
                    gone = 0.0
                    if to_rank >= 0:
                        a = rank(x, own, scale[WIDTH]) * weights[k, RANK]
                    if to_deviation >= 0:
                        b = deviation(x, scale) * weights[k, DEVIATION]
            if to_rank >= 0:
                out[i, to_rank] = a
            if to_deviation >= 0:
                out[i, to_deviation] = b
            if to_missing >= 0:
                out[i, to_missing] = gone


def place_names(
    rows: Any, output: Any, places: Any, heights: Any, out: Any
) -> None:  # pragma: no cover  compiled
    """The output of each row's name, by the code of the name: the others are 0 already."""
    for i in range(rows.shape[0]):
        j = output[rows[i]]
        out[i, places[j]] = heights[j]
