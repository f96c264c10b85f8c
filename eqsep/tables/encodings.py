"""Learnt columns (numbers, dates, names), and all columns of a table encoded as one matrix.

A learnt column has `outputs`, the suffixes of its output names; `weights`, what each output counts
in a distance between rows; `groups`, equal for outputs that rise together with the value; `reads`,
the kind of column that its values are read as.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np

from eqsep.arrays import namespace, objects
from eqsep.engine.loops import compiled, in_threads, inlined, shared
from eqsep.tables.reading import LARGEST, NAME_WEIGHT, WRITERS, Column, column_of, truth_of

_ROWS_PER_PIECE = 512  # rows, which stay in the processor's cache while column by column is encoded
_NUMBERS = {int, float, bool, type(None)}  # types of values that need no reading
_NAMES = {str, bool, type(None)}
Output = tuple[int, float]  # where it goes, and what it is
Coded = tuple[np.ndarray, np.ndarray]  # the name of each row by its code, and each code's output
KNOTS = 256
LINEAR = 8.0  # robust deviations: beyond, standard values grow by their logarithm
JUMP = 4.0  # robust deviations from a value that never varied to any other one
KNOT, GAP, HIGH, RISE, AT = range(5)  # of a column's ranks
CENTRE, SCALE, WIDTH, CONSTANT, MOST = range(5)  # of a column's scale
WEIGHTS, IF_MISSING = 5, 8  # after these: what outputs count, and what they are if missing
RANK, DEVIATION, MISSING = range(3)  # outputs
FIRST, LAST = 3, 4  # after their places: a column's first and last knot
RANK_WEIGHT = 12**0.5
_UNSEEN_RANK = -2.0  # the rank of a missing value where training had none; numbers stay above -1
_UNSEEN_STEP = 8.0  # the same on the standard scale, below the least value of training
DAY = 86_400.0
WEEK = 7 * DAY
MONDAY = 4 * DAY  # 1970 began on a Thursday: its first Monday is the fifth
FAR = 2.0  # a name never seen is farther from every seen one than those are from each other
_SINGLE = 2**-22  # of a deviation is what single precision leaves open of it
_DIGITS = 6  # of a number that is shown
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Number:
    """Numbers as ranks in [0, 1], robust deviations or both, and whether they are missing."""

    unit: str  # "number", "date" or "duration"
    forms: list[str]  # "quantile", "standard"
    knots: list[float]  # at most `KNOTS` values of training, in order
    low: list[float]  # the rank, as a fraction, of the first row with each of them
    high: list[float]  # and of the last one
    centre: float  # the median
    scale: float  # the interquartile range / 1.349; if 0, the median distance of other values
    with_missing: bool

    kind = "number"

    @classmethod
    def learn(cls, column: Column, *, unit: str, forms: list[str]) -> Self:
        values = column.numbers(unit)
        x = np.sort(values[~np.isnan(values)])
        last = len(x) - 1
        chosen = np.concatenate([[True], x[1:] != x[:-1]])
        if np.count_nonzero(chosen) > KNOTS:
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
        return self

    @property
    def outputs(self) -> list[str]:
        return [f":{form}" for form in self.forms] + [":missing"] * self.with_missing

    @property
    def weights(self) -> list[float]:
        """Ranks have variance 1 / 12, deviations about 1; of two values one form says it all."""
        weight = {"quantile": RANK_WEIGHT, "standard": 1.0}
        if len(self.knots) == 2 and len(self.forms) == 2:
            least, most = (deviation(knot, self.scales) for knot in self.knots)
            weight = {"quantile": 0.0, "standard": 1 + RANK_WEIGHT / (most - least)}
        return [weight[form] for form in self.forms] + [NAME_WEIGHT] * self.with_missing

    @property
    def groups(self) -> list[int]:  # ranks and deviations rise together with the value
        return [0] * len(self.forms) + [1] * self.with_missing

    def state(self) -> dict[str, Any]:
        """The parts of a model file; knots and their ranks are one array."""
        parts = ("unit", "forms", "centre", "scale", "with_missing", "kind")
        ranks = np.array([self.knots, self.low, self.high], dtype=np.float64)
        return {part: getattr(self, part) for part in parts} | {"ranks": ranks}

    def missing(self, form: str) -> float:
        """Where a missing value is: at the median, or outside all of training."""
        if form == "quantile":
            middle = float(rank(self.centre, self.ranks, 0, len(self.knots) - 1, self.width))
            return middle if self.with_missing else _UNSEEN_RANK
        least = float(deviation(self.knots[0], self.scales))
        return 0.0 if self.with_missing else least - _UNSEEN_STEP

    @property
    def width(self) -> float:
        """The range of training, or the size of the only value."""
        return (self.knots[-1] - self.knots[0]) or abs(self.centre) or 1.0

    @property
    def scales(self) -> tuple[float, ...]:
        """The centre, a deviation, the range, 1 if training had one value, the most deviations."""
        return self.centre, self.scale, self.width, float(len(self.knots) == 1), LARGEST

    @cached_property
    def ranks(self) -> np.ndarray:
        """By knot: its value, the gap to the next, its last row's rank, the rise, its own rank."""
        knots, low, high = map(np.array, (self.knots, self.low, self.high))
        at = (low + high) / 2
        at[[0, -1]] = 0, 1
        gap, rise = np.append(np.diff(knots), 1.0), np.append(low[1:] - high[:-1], 0.0)
        return np.stack([knots, gap, high, rise, at])

    def described(self, output: int, value: float) -> str:
        if output == len(self.forms):
            return "is missing" if value > 0.5 else "is not missing"
        form = self.forms[output]
        if not self.with_missing and np.isclose(value, self.missing(form), rtol=1e-6):
            return "is missing"
        is_rank = form == "quantile"
        x = _of_rank(self, value) if is_rank else float(_of_deviation(value, self.scales))
        near = _SINGLE * abs(x - self.centre) * (abs(value) if abs(value) > LINEAR else 1.0)
        return f"= {self._written(x, within=near)}"

    def moved(self, was: np.ndarray, now: np.ndarray, errors: np.ndarray) -> str:
        """How the mean has moved, the share of missing values, or both if about as much.

        After the means of outputs, `was` and `now` hold those that `Encoder.with_values` adds.
        """
        k, gone, going = int(np.argmax(np.abs(errors))), was[-1], now[-1]
        missing = _share("missing", gone, going)
        if k == len(self.forms) or max(gone, going) > 1 - 1e-9:
            return missing
        code, moved = self.missing(self.forms[k]), now[k] - was[k]
        rise = (now[k] - going * code) / (1 - going) - (was[k] - gone * code) / (1 - gone)
        a, b = was[-2] / (1 - gone), now[-2] / (1 - going)  # of values that are not missing
        within = abs(a - b) / 20
        if self.unit == "date" and within > DAY:
            a, b, within = round(a / DAY) * DAY, round(b / DAY) * DAY, 0.0
        shown = (WRITERS[self.unit](_shown(x, within=within)) for x in (a, b))
        then, recent = (text.removesuffix("T00:00:00") for text in shown)
        ways = ("earlier", "later") if self.unit == "date" else ("lower", "higher")
        if (rise > 0) != (b > a) or then == recent:  # as with more zeros and a longer tail
            ways = ("distribution differs",) * 2
        parts = {f"{ways[int(b > a)]}, mean {recent} (was {then})": rise, missing: moved - rise}
        return ", ".join(part for part, by in parts.items() if abs(by) >= abs(moved) / 2)

    @cached_property
    def _decimals(self) -> int | None:
        """How many decimals the numbers of training have; None if more than six."""
        exact = (np.array_equal(np.round(self.knots, n), self.knots) for n in range(_DIGITS + 1))
        return next((n for n, is_exact in enumerate(exact) if is_exact), None)

    def _written(self, x: float, *, within: float) -> str:
        """A number within a distance of `x`, as round as in training; "about" if several are."""
        write, knots, n = WRITERS[self.unit], np.array(self.knots), self._decimals
        nearest = float(knots[np.abs(knots - x).argmin()])
        if abs(nearest - x) <= within:
            return write(nearest if n is not None else _shown(nearest, within=within))
        if n is None or self.unit == "date":
            return write(_shown(x, within=within))
        if within < 0.5 * 10.0**-n:
            return write(round(x, n) + 0.0)
        return f"about {write(_shown(x, within=within))}"

    def text(self, outputs: np.ndarray) -> str:
        if self.with_missing and outputs[-1] > 0.5:
            return "missing"
        form = len(self.forms) - 1  # deviations say it more finely than ranks
        return self.described(form, float(outputs[form])).removeprefix("= ").removeprefix("is ")


@dataclass(frozen=True)
class Date:
    """Elapsed seconds as a `Number`, then (sin, cos) of the hour and of the weekday."""

    elapsed: Number
    cycles: list[str]  # "hour", "weekday"

    kind = "date"
    reads = "date"

    @property
    def number(self) -> Number:
        return self.elapsed

    @classmethod
    def learn(cls, column: Column, *, forms: list[str]) -> Self:
        x = column.numbers("date")
        x = x[~np.isnan(x)]
        has = {"hour": np.ptp(x % DAY) > 0, "weekday": np.ptp(x) >= WEEK}
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
        circles = xp.stack([wave(angle) for angle in angles for wave in (xp.sin, xp.cos)], axis=1)
        return xp.where(xp.isnan(circles), 0.0, circles)

    def state(self) -> dict[str, Any]:
        return {"elapsed": self.elapsed.state(), "cycles": self.cycles, "kind": self.kind}

    def described(self, output: int, value: float) -> str:
        n_elapsed = len(self.elapsed.outputs)
        if output < n_elapsed:
            return self.elapsed.described(output, value)
        cycle, is_cos = self.cycles[(output - n_elapsed) // 2], (output - n_elapsed) % 2
        angle = float((np.arccos if is_cos else np.arcsin)(np.clip(value, -1, 1)))
        turns = [t / (2 * np.pi) % 1 for t in (angle, -angle if is_cos else np.pi - angle)]
        return "at " + " or ".join(dict.fromkeys(_written_turn(t, cycle) for t in sorted(turns)))

    def text(self, outputs: np.ndarray) -> str:
        return self.elapsed.text(outputs[: len(self.elapsed.outputs)])

    def moved(self, was: np.ndarray, now: np.ndarray, errors: np.ndarray) -> str:
        """How the elapsed time, the hours or the weekdays have moved, whichever did so farthest."""
        k, n_elapsed = int(np.argmax(np.abs(errors))), len(self.elapsed.outputs)
        if k >= n_elapsed:
            return f"other {self.cycles[(k - n_elapsed) // 2]}s"
        return self.elapsed.moved(was, now, errors[:n_elapsed])


@dataclass(frozen=True)
class Category:
    """Names as outputs of 0 and 1, with rare names pooled and new ones at `FAR`."""

    frequent: list[str]  # each with its own output, the most frequent first
    rare: list[str]  # the names of training that share one output
    with_missing: bool  # whether training had missing values; else they count as new
    boolean: bool = False  # whether the names are "False" and "True"; 0 and 1 are read so

    kind = "category"
    number = None

    @classmethod
    def learn(cls, column: Column, *, max_categories: int, min_count: int) -> Self:
        counts = column.counts()
        with_missing = counts.total() < len(column.values)
        names = sorted(counts, key=lambda name: (-counts[name], name))
        frequent = [name for name in names[:max_categories] if counts[name] >= min_count]
        if column.kind == "boolean":  # both names count, however rare one is
            frequent = sorted(names)
        return cls(frequent, names[len(frequent) :], with_missing, column.kind == "boolean")

    @property
    def reads(self) -> str:
        return "boolean" if self.boolean else "text"

    @property
    def outputs(self) -> list[str]:
        known = [f"={name}" for name in self.frequent]
        rare = [":rare"] * bool(self.rare)
        return [*known, *rare, *[":missing"] * self.with_missing, ":new"]

    @property
    def weights(self) -> list[float]:
        return [NAME_WEIGHT] * len(self.outputs)

    @property
    def groups(self) -> list[int]:
        return list(range(len(self.outputs)))

    def places(self, names: Sequence[str | None]) -> np.ndarray:
        """The only output that is not 0 for each name; None is missing.  (n,) -> (n,)"""
        new, place = self._place_of
        return np.array([place.get(name, new) for name in names], np.intp)

    def plain_names(self, values: Sequence[Any]) -> list[str | None]:
        names = [str(v) if type(v) is bool else v for v in values]
        return [None if v is None else truth_of(v) for v in names] if self.boolean else names

    @cached_property
    def heights(self) -> np.ndarray:
        return np.append(np.ones(len(self.outputs) - 1), FAR)

    @cached_property
    def _place_of(self) -> tuple[int, dict[str | None, int]]:
        """The output of new names, and of each known one."""
        new = len(self.outputs) - 1
        place: dict[str | None, int] = {name: i for i, name in enumerate(self.frequent)}
        place |= dict.fromkeys(self.rare, len(self.frequent))
        return new, place | ({None: new - 1} if self.with_missing else {})

    def state(self) -> dict[str, Any]:
        names = {part: [str(n) for n in getattr(self, part)] for part in ("frequent", "rare")}
        return asdict(self) | names | {"kind": self.kind}

    def described(self, output: int, value: float) -> str:
        name = self.outputs[output][1:]
        if value <= 0.5:
            return f"is not {name}"
        return f"= {name}" if output < len(self.frequent) else f"is {name}"

    def text(self, outputs: np.ndarray) -> str:
        output = self.outputs[int(np.argmax(outputs))]
        return "a rare value" if output == ":rare" else output[1:]

    def moved(self, was: np.ndarray, now: np.ndarray, errors: np.ndarray) -> str:
        """Which names have become more frequent, and which less, if about as clearly."""
        new = "missing or " * (not self.with_missing) + "never learnt"
        words = {":rare": "rare values", ":missing": "missing", ":new": new}
        names = [words.get(output, repr(output[1:])) for output in self.outputs]
        ends = dict.fromkeys((int(np.argmax(errors)), int(np.argmin(errors))))
        clear = [k for k in ends if abs(errors[k]) >= np.abs(errors).max() / 2]
        was, now = was / self.heights, now / self.heights
        return ", ".join(_share(names[k], was[k], now[k]) for k in clear)


def _share(what: str, was: float, now: float) -> str:
    return f"{what} in {now:.1%} of rows (was {was:.1%})"


def _centre_and_scale(x: np.ndarray) -> tuple[float, float]:
    """The median and a deviation that no tail reaches; x is in order."""
    lower, centre, upper = np.quantile(x, [0.25, 0.5, 0.75])
    if upper > lower:
        return float(centre), float((upper - lower) / 1.349)
    others = np.abs(x - centre)[x != centre]
    return float(centre), float(np.median(others)) if len(others) else abs(float(centre)) or 1.0


Learnt = Number | Category | Date  # a learnt column


def _of_rank(column: Number, rank: float) -> float:
    if rank < 0 or rank > 1:
        t = min(abs(rank if rank < 0 else rank - 1), 1 - 1e-9)
        steps = column.width * t / (1 - t)
        return column.knots[0] - steps if rank < 0 else column.knots[-1] + steps
    ranks = np.column_stack([column.low, column.high])
    if len(ranks) > 1:
        ranks[0, 0], ranks[-1, -1] = 0, 1
    return float(np.interp(rank, ranks.ravel(), np.repeat(column.knots, 2)))


def _of_deviation(z: Any, scales: Any) -> Any:
    """The numbers that deviations stand for, by `Number.scales`, also of many columns."""
    beyond = np.clip(np.abs(z) - LINEAR, 0, 690.0)
    size = np.minimum(np.abs(z), LINEAR) + np.expm1(beyond) - JUMP * scales[CONSTANT]
    with np.errstate(over="ignore"):
        size = np.minimum(np.maximum(size, 0.0) * scales[SCALE], LARGEST)
    return scales[CENTRE] + np.copysign(size, z)


def _shown(x: float, *, within: float) -> float:
    """The shortest number near enough to `x`, of at most six digits, or all before the point."""
    x = min(max(x, -LARGEST), LARGEST)
    for digits in range(1, _DIGITS + 1):
        short = float(f"{x:.{digits}g}")
        if abs(short - x) <= within:
            return short
    return float(round(x)) if 1e5 < abs(x) < 1e15 else short


def _written_turn(turn: float, cycle: str) -> str:
    if cycle == "weekday":
        return _DAYS[round(turn * 7) % 7]
    minutes = round(turn * 24 * 60) % (24 * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _turn(seconds: Any, cycle: str, xp: Any) -> Any:
    """The part of the day or week that has passed; weekdays are whole steps."""
    if cycle == "hour":
        return seconds % DAY / DAY
    return xp.floor((seconds - MONDAY) % WEEK / DAY) / 7


@shared
def rank(x: Any, ranks: Any, first: int, last: int, width: Any) -> Any:
    """The interpolated rank of `Number.ranks`; beyond training it approaches -1 and 2."""
    if x < ranks[KNOT, first]:
        return -beyond(ranks[KNOT, first] - x, width)
    if x > ranks[KNOT, last]:
        return 1 + beyond(x - ranks[KNOT, last], width)
    if first == last:
        return 0.5
    if x == ranks[KNOT, last]:
        return 1.0
    below, above = first, last
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


@shared
def beyond(distance: Any, width: Any) -> Any:
    """d / (width + d): 0 at the edge of training, 1/2 one width from it, 1 in the limit."""
    return 1 - 1 / (1 + distance / width)


@shared
def deviation(x: Any, scale: Any) -> Any:
    """Robust deviations by `Number.scales`, and their logarithm where they are large."""
    z = (x - scale[CENTRE]) / scale[SCALE]
    size = abs(z) if abs(z) < scale[MOST] else scale[MOST]
    if size > 0:
        size += JUMP * scale[CONSTANT]
    if size > LINEAR:
        size = LINEAR + math.log1p(size - LINEAR)
    return math.copysign(size, z)


@inlined
def _encode(X: Any, bits: Any, knots: Any, scales: Any, places: Any, out: Any) -> None:
    for k in range(X.shape[0]):
        first, last, scale = places[k, FIRST], places[k, LAST], scales[k]
        to_rank, to_deviation = places[k, RANK], places[k, DEVIATION]
        to_missing = places[k, MISSING]
        a = b = gone = 0.0
        for i in range(X.shape[1]):
            if i == 0 or bits[k, i] != bits[k, i - 1]:  # else it is as the row before: often so
                x = X[k, i]
                if x != x:
                    a, b = scale[IF_MISSING + RANK], scale[IF_MISSING + DEVIATION]
                    gone = scale[WEIGHTS + MISSING]
                else:
                    gone = 0.0
                    if to_rank >= 0:
                        a = rank(x, knots, first, last, scale[WIDTH]) * scale[WEIGHTS + RANK]
                    if to_deviation >= 0:
                        b = deviation(x, scale) * scale[WEIGHTS + DEVIATION]
            if to_rank >= 0:
                out[i, to_rank] = a
            if to_deviation >= 0:
                out[i, to_deviation] = b
            if to_missing >= 0:
                out[i, to_missing] = gone


@compiled
def encode_in_single(X: Any, bits: Any, knots: Any, scales: Any, places: Any, out: Any) -> None:
    """Encode columns of numbers, rows of `X` (`bits` as int64), by `Encoding.numbers`."""
    _encode(X, bits, knots, scales, places, out)


@compiled
def encode_in_double(X: Any, bits: Any, knots: Any, scales: Any, places: Any, out: Any) -> None:
    """The same for an `out` in double precision."""
    _encode(X, bits, knots, scales, places, out)


class Numbers(NamedTuple):
    """All columns of numbers, and the time elapsed of dates, as `encode_in_single` takes them."""

    sources: list[int]
    reads: list[str]
    knots: np.ndarray
    scales: np.ndarray
    places: np.ndarray


class Encoding:
    """The rows of a table as a matrix of weighted outputs; a row does not depend on others."""

    def __init__(
        self,
        columns: Sequence[Learnt | None],
        weights: np.ndarray,
        dtype: type[np.floating],
        names: list[str] | None = None,
    ) -> None:
        self._columns, self._weights, self._dtype, self._names = columns, weights, dtype, names
        self._named = set(names or ())

    def __reduce__(self) -> tuple[Any, ...]:  # without what is made from the rest
        return type(self), (self._columns, self._weights, self._dtype, self._names)

    def of_table(self, columns: Sequence[Column], n_rows: int) -> np.ndarray:
        """The matrix of a table with these columns.  -> (n_rows, n_outputs)"""
        return self._matrix(n_rows, *self.read(columns))

    def read(self, columns: Sequence[Column]) -> tuple[list[np.ndarray], list[Coded]]:
        """The numbers of a table by column, and for each column of names its codes."""
        sources = zip(self.numbers.sources, self.numbers.reads, strict=True)
        numbers = [columns[j].numbers(reads) for j, reads in sources]
        coded = []
        for j, category, _ in self.categories:
            names, rows = columns[j].names(truths=category.boolean)
            coded.append((rows, category.places(names)))
        return numbers, coded

    @cached_property
    def n_outputs(self) -> int:
        return int(np.count_nonzero(self._weights))

    def of_plain(self, X: Any) -> np.ndarray | None:
        """The matrix of dicts or numbers; None if they need a table, or more careful reading."""
        if isinstance(X, np.ndarray):
            fits = X.ndim == 2 and X.shape[1] == len(self._columns) and len(X)
            if not fits or self._names is not None or X.dtype.kind not in "iuf":
                return None
            if set(self.numbers.reads) != {"number"} or self.categories:
                return None
            return self._matrix(len(X), _bounded(X.T[self.numbers.sources]), [])
        if not isinstance(X, list) or not X or type(X[0]) is not dict or self._names is None:
            return None
        if not all(type(row) is dict and row.keys() == self._named for row in X):
            return None
        return self._of_dicts(X, self._names)

    def _of_dicts(self, X: list[dict[str, Any]], column_names: list[str]) -> np.ndarray | None:
        numbers_of, names_of = self._values
        numbers = list(chain.from_iterable(map(numbers_of, X)))
        if not _NUMBERS.issuperset(map(type, numbers)):
            return None
        names = list(zip(*map(names_of, X), strict=True))
        if not _NAMES.issuperset(map(type, chain.from_iterable(names))):
            return None
        try:
            by_column = np.array(numbers, dtype=float).reshape(len(X), -1).T
        except OverflowError:  # an integer beyond all floats
            return None
        by_column = _bounded(by_column)
        if self.dates:
            columns, others = [], iter(by_column)
            for j in self.numbers.sources:
                if j in self.dates:
                    date = column_names[j]
                    dates = column_of(date, objects([row[date] for row in X]))
                    columns.append(dates.numbers("date"))
                else:
                    columns.append(next(others))
            by_column = np.array(columns)
        out = self._matrix(len(X), by_column, None)
        for own, (category, known, new) in zip(names, self._known, strict=True):
            for i, name in enumerate(category.plain_names(own)):
                place, height = known.get(name, new)
                out[i, place] = height
        return out

    def values(self, rows: np.ndarray) -> np.ndarray:
        """The numbers and dates of encoded rows; NaN if missing.  (n, n_outputs) -> (n, k)"""
        scales, places = self.numbers.scales, self.numbers.places[:, :FIRST]
        if_missing = scales[:, [IF_MISSING + RANK, IF_MISSING + DEVIATION, WEIGHTS + MISSING]]
        is_near = np.abs(rows[:, places] - if_missing) <= 1e-6 * (1 + np.abs(if_missing))
        is_missing = ((places < 0) | is_near).all(axis=2)
        deviations = rows[:, places[:, DEVIATION]] / scales[:, WEIGHTS + DEVIATION]
        return np.where(is_missing, np.nan, _of_deviation(deviations, scales.T))

    def _matrix(self, n: int, numbers: Any, coded: list[Coded] | None) -> np.ndarray:
        """From numbers by column, and by column of names codes and their outputs, unless None."""
        out = np.zeros((n, self.n_outputs), self._dtype)
        encode = encode_in_single if self._dtype == np.float32 else encode_in_double
        learnt = self.numbers[2:]
        is_matrix = isinstance(numbers, np.ndarray)
        pairs = zip(coded or (), self.categories, strict=False)
        placed = [(codes, at[o], heights[o]) for (codes, o), (_, _, (at, heights)) in pairs]

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, _ROWS_PER_PIECE):
                some = slice(start, min(start + _ROWS_PER_PIECE, part.stop))
                if len(numbers):
                    whole = is_matrix and some == slice(0, n)
                    X = numbers if whole else np.array([column[some] for column in numbers])
                    encode(X, X.view(np.int64), *learnt, out[some])
                for codes, places, heights in placed:
                    code = codes[some]
                    out[np.arange(start, some.stop), places[code]] = heights[code]

        in_threads(fill, n, steps=out.size)
        for j, (date, places, weights) in self.dates.items():
            out[:, places] = date.circles(numbers[self.numbers.sources.index(j)]) * weights
        return out

    @cached_property
    def _values(self) -> tuple[Callable[[dict[str, Any]], Any], ...]:
        """Functions from a dict to its numbers and to its names, in the order of the columns."""
        numbers = [j for j in self.numbers.sources if j not in self.dates]
        return _getter(self._names, numbers), _getter(self._names, [j for j, *_ in self.categories])

    @cached_property
    def _known(self) -> list[tuple[Category, dict[str | None, Output], Output]]:
        """Each column of names, with the output of each known name and of new ones."""
        found = []
        for _, category, (places, heights) in self.categories:
            outputs = list(zip(places.tolist(), heights.tolist(), strict=True))
            names = [*category.frequent, *category.rare, None]
            at = category.places(names).tolist()
            known = {name: outputs[i] for name, i in zip(names, at, strict=True)}
            found.append((category, known, outputs[-1]))
        return found

    @cached_property
    def _placed(self) -> list[tuple[int, Learnt, np.ndarray, np.ndarray]]:
        """Each column that was not dropped, the places of its outputs (-1: none) and weights."""
        counts = self._weights > 0
        place, end, placed = np.where(counts, np.cumsum(counts) - 1, -1), 0, []
        for j, column in enumerate(self._columns):
            if column is not None:
                start, end = end, end + len(column.outputs)
                placed.append((j, column, place[start:end], self._weights[start:end]))
        return placed

    @cached_property
    def numbers(self) -> Numbers:
        """The columns of numbers, and the time elapsed of dates."""
        sources, reads, knots, scales, places, first = [], [], [], [], [], 0
        for j, column, place, weight in self._placed:
            number = column.number
            if number is None:
                continue
            outputs, weights, missing = [-1, -1, -1], [0.0, 0.0, 1.0], [0.0, 0.0]
            forms = [*number.forms, *["missing"] * number.with_missing]
            for form, at, counts in zip(forms, place, weight, strict=False):  # circles come after
                output = {"quantile": RANK, "standard": DEVIATION, "missing": MISSING}[form]
                outputs[output], weights[output] = int(at), float(counts)
                if output != MISSING:
                    missing[output] = number.missing(form) * float(counts)
            last = first + len(number.knots) - 1
            sources.append(j)
            reads.append(column.reads)
            knots.append(number.ranks)
            scales.append([*number.scales, *weights, *missing])
            places.append([*outputs, first, last])  # outputs of rank, deviation, missing; knots
            first = last + 1
        return Numbers(
            sources=sources,
            reads=reads,
            knots=np.concatenate([np.empty((AT + 1, 0)), *knots], axis=1),
            scales=np.array(scales).reshape(len(sources), IF_MISSING + MISSING),
            places=np.array(places, dtype=np.int64).reshape(len(sources), LAST + 1),
        )

    @cached_property
    def categories(self) -> list[tuple[int, Category, tuple[np.ndarray, np.ndarray]]]:
        """Each column of names, and the places and values of its outputs."""
        return [
            (j, column, (place, column.heights * weight))
            for j, column, place, weight in self._placed
            if isinstance(column, Category)
        ]

    @cached_property
    def dates(self) -> dict[int, tuple[Date, np.ndarray, np.ndarray]]:
        """The columns of dates, and the places and weights of their circles."""
        found = {}
        for j, column, place, weight in self._placed:
            if isinstance(column, Date):
                n = len(column.elapsed.outputs)
                found[j] = (column, place[n:], weight[n:])
        return found


def _getter(names: list[str] | None, places: list[int]) -> Callable[[dict[str, Any]], Any]:
    """A function from a dict to the values of some columns."""
    wanted = [] if names is None else [names[j] for j in places]
    return itemgetter(*wanted) if len(wanted) > 1 else lambda row: [row[n] for n in wanted]


def _bounded(columns: Any) -> np.ndarray:
    X = np.array(columns, dtype=float, order="C")
    return np.clip(X, -LARGEST, LARGEST, out=X)
