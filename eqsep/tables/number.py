"""A learnt column of numbers: its ranks, its robust scale, and where a missing value goes."""

from dataclasses import asdict, dataclass
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
        return cls(
            unit=unit,
            forms=forms,
            knots=knots.tolist(),
            low=low.tolist(),
            high=high.tolist(),
            centre=centre,
            scale=scale,
            with_missing=len(x) < len(values),
        )

    @property
    def reads(self) -> str:
        """The kind of column that the values are read as."""
        return self.unit

    @property
    def outputs(self) -> list[str]:
        """What follows the column's name in the names of the outputs."""
        return [f":{form}" for form in self.forms] + [":missing"] * self.with_missing

    @property
    def weights(self) -> list[float]:
        """What each output counts in a distance between rows.

        Ranks have the variance 1 / 12, deviations about 1. Where training has two values the two
        forms say the same, and one stands for both.
        """
        weight = {"quantile": RANK_WEIGHT, "standard": 1.0}
        if len(self.knots) == 2 and len(self.forms) == 2:
            step = float(np.diff(self._deviations(np.array(self.knots)))[0])
            weight = {"quantile": 0.0, "standard": 1 + RANK_WEIGHT / step}
        return [weight[form] for form in self.forms] + [NAME_WEIGHT] * self.with_missing

    @property
    def groups(self) -> list[int]:
        """Outputs of one group rise together with the value: ranks and deviations do."""
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
        some = bool(missing.any())
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
        """Plain data from which `from_state` makes the same again."""
        return asdict(self) | {"kind": self.kind}

    def _place_of_missing(self, form: str) -> float:
        """That of the median where an output of its own says it; else outside all of training."""
        if form == "quantile":
            middle = float(self._ranks(np.array([self.centre]))[0])
            return middle if self.with_missing else _UNSEEN_RANK
        least = self._deviations(np.array(self.knots[:1]))[0]
        return 0.0 if self.with_missing else float(least) - _UNSEEN_STEP

    @property
    def _width(self) -> float:
        """The range of training, or the size of the only value."""
        return (self.knots[-1] - self.knots[0]) or abs(self.centre) or 1.0

    def _ranks(self, x: np.ndarray) -> np.ndarray:
        """Interpolated ranks; beyond the range of training towards -1 and 2, never arriving."""
        knots, low, high = map(np.array, (self.knots, self.low, self.high))
        if len(knots) == 1:
            rank = np.full(len(x), 0.5)
        else:
            at = (low + high) / 2
            at[[0, -1]] = 0, 1
            inside = np.clip(x, knots[0], knots[-1])
            i = np.minimum(np.searchsorted(knots, inside, side="right") - 1, len(knots) - 2)
            share = (inside - knots[i]) / (knots[i + 1] - knots[i])
            rank = high[i] + share * (low[i + 1] - high[i])
            on_knot = inside == knots[i]
            rank[on_knot] = at[i[on_knot]]
            rank[inside == knots[-1]] = 1
        below, above = x < knots[0], x > knots[-1]
        rank[below] = -_beyond(knots[0] - x[below], width=self._width)
        rank[above] = 1 + _beyond(x[above] - knots[-1], width=self._width)
        return rank

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
            z = np.clip((x - self.centre) / self.scale, -LARGEST, LARGEST)
        size = np.abs(z)
        if len(self.knots) == 1:
            size += _JUMP * (size > 0)
        large = size > _LINEAR
        size[large] = _LINEAR + np.log1p(size[large] - _LINEAR)
        return np.copysign(size, z)

    def _of_deviation(self, value: float) -> float:
        size = abs(value)
        if size > _LINEAR:
            size = _LINEAR + float(np.expm1(min(size - _LINEAR, 690.0)))
        if len(self.knots) == 1:
            size = max(size - _JUMP, 0.0)
        return float(self.centre + np.copysign(min(size * self.scale, LARGEST), value))


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
