"""Columns of a table in the graph: numbers, names and truth values, and the circles of dates.

All columns of numbers are done at once, side by side; a value on a knot, below all, above all or
missing goes where `eqsep.tables` puts it, by the same operations in the same precision. A name is a
code, 1 where a row has it, and a date has its hour and weekday on their circles.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eqsep.engine.kernels import manhattan
from eqsep.export.graph import Graph, Part, Value
from eqsep.tables.encodings import FAR, JUMP, LINEAR, Category, Date, Number, rank
from eqsep.tables.reading import LARGEST

DAY = 86_400.0  # seconds
WEEK = 7 * DAY
MONDAY = 4 * DAY  # the first one since 1970


@dataclass(frozen=True)
class PlacedNumber:
    """A learnt column of numbers: its place among the values, and its outputs' first place."""

    number: Number
    source: int
    first: int


def number_parts(graph: Graph, values: Value, columns: Sequence[PlacedNumber]) -> list[Part]:
    """The weighted outputs of the columns; those that count nothing are left out."""
    parts = []
    for form, encode in (("quantile", _ranks), ("standard", _deviations)):
        chosen = [c for c in columns if _weight(c.number, form) > 0]
        if not chosen:
            continue
        x = graph("Gather", values, _array([c.source for c in chosen]), axis=1)
        missing = graph("IsNaN", x)
        x = graph("Where", missing, _array([c.number.centre for c in chosen]), x)
        x = graph("Min", graph("Max", x, -LARGEST), LARGEST)
        out = encode(graph, x, [c.number for c in chosen])
        gone = _array([c.number.missing(form) for c in chosen])
        out = graph("Where", missing, gone, out)
        weights = _array([_weight(c.number, form) for c in chosen])
        places = [c.first + c.number.forms.index(form) for c in chosen]
        parts.append(Part(graph("Mul", out, weights), places))
    chosen = [c for c in columns if c.number.with_missing]
    if chosen:
        x = graph("Gather", values, _array([c.source for c in chosen]), axis=1)
        weights = _array([c.number.weights[-1] for c in chosen])
        missing = graph("Where", graph("IsNaN", x), weights, 0.0)
        parts.append(Part(missing, [c.first + len(c.number.forms) for c in chosen]))
    return parts


def _ranks(graph: Graph, x: Value, numbers: Sequence[Number]) -> Value:
    """Interpolated ranks between the knots, and towards -1 and 2 beyond them."""
    size = max(len(number.knots) for number in numbers)
    knots = np.full(
        (len(numbers), size), np.inf
    )  # beyond its own knots a column has some that no value reaches
    step, rise, high, at = (np.zeros((len(numbers), size)) for _ in range(4))
    for j, number in enumerate(numbers):
        n = len(number.knots)
        knots[j, :n], high[j, :n] = number.knots, number.high
        at[j, :n] = [rank(knot, number.ranks, 0, n - 1, number.width) for knot in number.knots]
        step[j, : n - 1] = np.diff(number.knots)
        rise[j, : n - 1] = np.array(number.low[1:]) - np.array(number.high[:-1])
        step[j, n - 1] = 1.0  # nothing is above the last knot: divided by, not used
    least, most = knots[:, 0], _array([number.knots[-1] for number in numbers])
    width = _array([number.width for number in numbers])

    inside = graph("Min", graph("Max", x, least), most)
    passed = graph("GreaterOrEqual", graph("Unsqueeze", inside, _array([2])), knots)
    n_passed = graph("ReduceSum", graph.cast(passed, np.int32), _array([2]), keepdims=0)
    starts = np.arange(len(numbers)) * size - 1  # of each column in the flat tables, less one
    i = graph("Add", graph.cast(n_passed, np.int64), starts)
    base, step_i, rise_i, high_i, at_i = (
        graph("Gather", table.ravel(), i) for table in (knots, step, rise, high, at)
    )
    share = graph("Div", graph("Sub", inside, base), step_i)
    between = graph("Add", high_i, graph("Mul", share, rise_i))
    ranks = graph("Where", graph("Equal", inside, base), at_i, between)
    below = graph("Neg", _beyond(graph, graph("Sub", least, x), width))
    above = graph("Add", 1.0, _beyond(graph, graph("Sub", x, most), width))
    ranks = graph("Where", graph("Less", x, least), below, ranks)
    return graph("Where", graph("Greater", x, most), above, ranks)


def _beyond(graph: Graph, distance: Value, width: np.ndarray) -> Value:
    """d / (width + d), as 1 - 1 / (1 + d / width); 0 where d is negative."""
    t = graph("Div", graph("Max", distance, 0.0), width)
    return graph("Sub", 1.0, graph("Div", 1.0, graph("Add", 1.0, t)))


def _deviations(graph: Graph, x: Value, numbers: Sequence[Number]) -> Value:
    """Robust deviations from the centre, by their logarithm where they are large."""
    centre, scale = (_array([getattr(n, name) for n in numbers]) for name in ("centre", "scale"))
    jump = _array([JUMP * (len(number.knots) == 1) for number in numbers])
    z = graph("Div", graph("Sub", x, centre), scale)
    z = graph("Min", graph("Max", z, -LARGEST), LARGEST)
    size = graph("Abs", z)
    size = graph("Where", graph("Greater", size, 0.0), graph("Add", size, jump), size)
    more = graph("Max", graph("Sub", size, LINEAR), 0.0)
    large = graph("Add", LINEAR, graph("Log", graph("Add", 1.0, more)))
    size = graph("Where", graph("Greater", size, LINEAR), large, size)
    return graph("Mul", graph("Sign", z), size)


def _weight(number: Number, form: str) -> float:
    return number.weights[number.forms.index(form)] if form in number.forms else 0.0


def _array(values: Sequence[float]) -> np.ndarray:
    return np.array(values)


@dataclass(frozen=True)
class PlacedNames:
    """A learnt column of names: its place among the codes, and its outputs' first place."""

    category: Category
    source: int
    first: int


def takes_numbers(category: Category) -> bool:
    """Whether its values are 0, 1 and NaN; as a column without any value in training has them."""
    return category.boolean or not (category.frequent or category.rare)


def name_codes(graph: Graph, names: Value, category: Category) -> Value:
    """The output that says each name; an empty one is missing.  (n,) of strings -> (n,)"""
    codes = _codes(category)
    return graph(
        "LabelEncoder",
        names,
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_int64s=list(codes.values()),
        default_int64=_new(category),
    )


def truth_codes(graph: Graph, values: Value, category: Category, *, source: int) -> Value:
    """The same for 0, 1 and NaN.  (n, n_columns) -> (n, 1)"""
    x = graph("Gather", values, np.array([source]), axis=1)
    known, new = _codes(category), _new(category)
    code = graph("Where", graph("Equal", x, 1.0), known.get("True", new), new)
    code = graph("Where", graph("Equal", x, 0.0), known.get("False", new), code)
    return graph("Where", graph("IsNaN", x), known[""], code)


def name_part(graph: Graph, codes: Value, columns: Sequence[PlacedNames]) -> Part:
    """1 where a row has the name of an output, else 0.  (n, n_columns) of codes -> (n, k)"""
    source: list[int] = []
    code: list[int] = []
    places: list[int] = []
    for column in columns:
        k = len(column.category.outputs)
        source += [column.source] * k
        code += range(k)
        places += range(column.first, column.first + k)
    given = graph("Gather", codes, np.array(source), axis=1)
    return Part(graph.cast(graph("Equal", given, np.array(code)), np.float32), places)


def name_distances(category: Category, landmarks: np.ndarray) -> np.ndarray:
    """How far each name is from the landmarks' outputs of that column.  (m, k) -> (k, m)"""
    return manhattan(name_outputs(category).astype(landmarks.dtype), landmarks)


def name_outputs(category: Category) -> np.ndarray:
    """The weighted outputs of a row with each name.  -> (k, k)"""
    weights = np.array(category.weights)
    weights[-1] *= FAR
    return np.diag(weights).astype(np.float32)


def _codes(category: Category) -> dict[str, int]:
    codes = {name: i for i, name in enumerate(category.frequent)}
    codes |= dict.fromkeys(category.rare, len(category.frequent))
    codes[""] = _new(category) - category.with_missing
    return codes


def _new(category: Category) -> int:
    return len(category.outputs) - 1


def circle_parts(graph: Graph, values: Value, date: Date, *, source: int, first: int) -> list[Part]:
    """Sine and cosine of each cycle; 0 where the date is missing."""
    if not date.cycles:
        return []
    x = graph("Gather", values, np.array([source]), axis=1)
    missing = graph("IsNaN", x)
    x = graph("Where", missing, 0.0, x)
    parts: list[Part] = []
    for cycle in date.cycles:
        angle = graph("Mul", 2 * np.pi, _turn(graph, x, cycle))
        for quarter in (0.0, np.pi / 2):  # a cosine by a sine: older runtimes have no other
            place = first + len(date.elapsed.outputs) + len(parts)
            height = graph("Sin", graph("Add", angle, quarter))
            parts.append(Part(graph("Where", missing, 0.0, height), [place]))
    return parts


def _turn(graph: Graph, x: Value, cycle: str) -> Value:
    """The part of the day or week that has passed; weekdays are whole steps."""
    # Before 1970 the remainder is negative: a whole turn less, the same place on the circle.
    if cycle == "hour":
        return graph("Div", graph("Mod", x, DAY, fmod=1), DAY)
    days = graph("Div", graph("Mod", graph("Sub", x, MONDAY), WEEK, fmod=1), DAY)
    return graph("Div", graph("Floor", days), 7.0)
