"""What encoded values say: from outputs back to the words and units of the table."""

from functools import singledispatch

import numpy as np

from eqsep.tables.column import LARGEST, WRITERS
from eqsep.tables.encodings import JUMP, LINEAR, Category, Date, Learnt, Number

_SINGLE = 2**-22  # of a deviation is what single precision leaves open of it
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@singledispatch
def described(column: Learnt, output: int, value: float) -> str:
    """What a value of an output of a learnt column says, in the column's own unit.

    Examples
    --------
    >>> described(Category(["flat", "round"], [], with_missing=False), 1, 1.0)
    '= round'
    """
    raise TypeError(f"expected a learnt column, got {column!r}, {output!r}, {value!r}")


@singledispatch
def value_of(column: Learnt, outputs: np.ndarray) -> str:
    """The value that the outputs of one row encode, as text in the column's own unit."""
    raise TypeError(f"expected a learnt column, got {column!r}, {outputs!r}")


@described.register
def _(column: Number, output: int, value: float) -> str:
    if output == len(column.forms):
        return "is missing" if value > 0.5 else "is not missing"
    form = column.forms[output]
    if not column.with_missing and np.isclose(value, column.missing(form), rtol=1e-6):
        return "is missing"
    x = _of_rank(column, value) if form == "quantile" else _of_deviation(column, value)
    near = _SINGLE * abs(x - column.centre) * (abs(value) if abs(value) > LINEAR else 1.0)
    return f"= {WRITERS[column.unit](_shown(x, within=near))}"


@value_of.register
def _(column: Number, outputs: np.ndarray) -> str:
    if column.with_missing and outputs[-1] > 0.5:
        return "missing"
    form = len(column.forms) - 1  # deviations say it more finely than ranks
    return described(column, form, float(outputs[form])).removeprefix("= ").removeprefix("is ")


@described.register
def _(column: Date, output: int, value: float) -> str:
    n_elapsed = len(column.elapsed.outputs)
    if output < n_elapsed:
        return described(column.elapsed, output, value)
    cycle, is_cos = column.cycles[(output - n_elapsed) // 2], (output - n_elapsed) % 2
    angle = float((np.arccos if is_cos else np.arcsin)(np.clip(value, -1, 1)))
    turns = [t / (2 * np.pi) % 1 for t in (angle, -angle if is_cos else np.pi - angle)]
    return "at " + " or ".join(dict.fromkeys(_written_turn(t, cycle) for t in sorted(turns)))


@value_of.register
def _(column: Date, outputs: np.ndarray) -> str:
    return value_of(column.elapsed, outputs[: len(column.elapsed.outputs)])


@described.register
def _(column: Category, output: int, value: float) -> str:
    told = column.outputs[output]
    yes = value > 0.5
    if told.startswith("=") and output < len(column.frequent):
        return f"= {told[1:]}" if yes else f"is not {told[1:]}"
    said = {":rare": "rare", ":missing": "missing", ":new": "new"}[told]
    return f"is {said}" if yes else f"is not {said}"


@value_of.register
def _(column: Category, outputs: np.ndarray) -> str:
    told = column.outputs[int(np.argmax(outputs))]
    return told.removeprefix("=") if told.startswith("=") else told.removeprefix(":")


def _of_rank(column: Number, rank: float) -> float:
    if rank < 0 or rank > 1:
        t = min(abs(rank if rank < 0 else rank - 1), 1 - 1e-9)
        steps = column.width * t / (1 - t)
        return column.knots[0] - steps if rank < 0 else column.knots[-1] + steps
    ranks = np.column_stack([column.low, column.high])
    if len(ranks) > 1:
        ranks[0, 0], ranks[-1, -1] = 0, 1
    return float(np.interp(rank, ranks.ravel(), np.repeat(column.knots, 2)))


def _of_deviation(column: Number, value: float) -> float:
    size = abs(value)
    if size > LINEAR:
        size = LINEAR + float(np.expm1(min(size - LINEAR, 690.0)))
    if len(column.knots) == 1:
        size = max(size - JUMP, 0.0)
    return float(column.centre + np.copysign(min(size * column.scale, LARGEST), value))


def _shown(x: float, *, within: float) -> float:
    """The shortest number so near to `x`, of at most six digits, or all before the point."""
    x = min(max(x, -LARGEST), LARGEST)
    for digits in range(1, 7):
        short = float(f"{x:.{digits}g}")
        if abs(short - x) <= within:
            return short
    return float(round(x)) if 1e5 < abs(x) < 1e15 else short


def _written_turn(turn: float, cycle: str) -> str:
    if cycle == "weekday":
        return _DAYS[round(turn * 7) % 7]
    minutes = round(turn * 24 * 60) % (24 * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
