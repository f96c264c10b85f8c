"""The table in the graph: the inputs, a value a column, and the rows as the encoder gives them.

All columns of numbers are done at once, side by side, in the precision of the library.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from eqsep.errors import UserError
from eqsep.export.graph import Graph, Part, Value
from eqsep.tables import encodings as enc
from eqsep.tables.encoder import Encoder
from eqsep.tables.encodings import FAR, JUMP, LINEAR, Category, Date, Learnt, Number, rank
from eqsep.tables.reading import LARGEST

T = TypeVar("T")
MATRIX = "X"  # the only input where the columns have no names and all are numbers


@dataclass(frozen=True)
class Placed(Generic[T]):
    """A learnt column, its place among the values or codes, and the first place of its outputs."""

    learnt: T
    source: int
    first: int


def number_parts(graph: Graph, values: Value, columns: Sequence[Placed[Number]]) -> list[Part]:
    """The weighted outputs of the columns; those that count nothing are left out."""
    parts = []
    for form, encode in (("quantile", _ranks), ("standard", _deviations)):
        if not (chosen := [c for c in columns if _weight(c.learnt, form) > 0]):
            continue
        x = graph("Gather", values, np.array([c.source for c in chosen]), axis=1)
        missing = graph("IsNaN", x)
        x = graph("Where", missing, np.array([c.learnt.centre for c in chosen]), x)
        x = graph("Min", graph("Max", x, -LARGEST), LARGEST)
        out = encode(graph, x, [c.learnt for c in chosen])
        out = graph("Where", missing, np.array([c.learnt.missing(form) for c in chosen]), out)
        weights = np.array([_weight(c.learnt, form) for c in chosen])
        places = [c.first + c.learnt.forms.index(form) for c in chosen]
        parts.append(Part(graph("Mul", out, weights), places))
    if chosen := [c for c in columns if c.learnt.with_missing]:
        x = graph("Gather", values, np.array([c.source for c in chosen]), axis=1)
        weights = np.array([c.learnt.weights[-1] for c in chosen])
        missing = graph("Where", graph("IsNaN", x), weights, 0.0)
        parts.append(Part(missing, [c.first + len(c.learnt.forms) for c in chosen]))
    return parts


def _ranks(graph: Graph, x: Value, numbers: Sequence[Number]) -> Value:
    """Interpolated ranks between the knots, and towards -1 and 2 beyond them."""
    size = max(len(number.knots) for number in numbers)
    # A column with fewer knots has some at infinity, which no value reaches.
    knots = np.full((len(numbers), size), np.inf)
    step, rise, high, at = (np.zeros((len(numbers), size)) for _ in range(4))
    for j, number in enumerate(numbers):
        n = len(number.knots)
        knots[j, :n], high[j, :n] = number.knots, number.high
        at[j, :n] = [rank(knot, number.ranks, 0, n - 1, number.width) for knot in number.knots]
        step[j, : n - 1] = np.diff(number.knots)
        rise[j, : n - 1] = np.array(number.low[1:]) - np.array(number.high[:-1])
        step[j, n - 1] = 1.0  # nothing is above the last knot: divided by, not used
    least, most = knots[:, 0], np.array([number.knots[-1] for number in numbers])
    width = np.array([number.width for number in numbers])

    inside = graph("Min", graph("Max", x, least), most)
    passed = graph("GreaterOrEqual", graph("Unsqueeze", inside, np.array([2])), knots)
    n_passed = graph("ReduceSum", graph.cast(passed, np.int32), np.array([2]), keepdims=0)
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
    centre, scale = (np.array([getattr(n, name) for n in numbers]) for name in ("centre", "scale"))
    jump = np.array([JUMP * (len(number.knots) == 1) for number in numbers])
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


def name_codes(graph: Graph, names: Value, category: Category) -> Value:
    """The output that says each name; an empty one is missing.  (n,) of strings -> (n,)"""
    codes = _codes(category)
    table: dict[str, Any] = {"keys_strings": list(codes), "values_int64s": list(codes.values())}
    return graph("LabelEncoder", names, domain="ai.onnx.ml", default_int64=_new(category), **table)


def truth_codes(graph: Graph, values: Value, category: Category, *, source: int) -> Value:
    """The same for 0, 1 and NaN.  (n, n_columns) -> (n, 1)"""
    x = graph("Gather", values, np.array([source]), axis=1)
    known, new = _codes(category), _new(category)
    code = graph("Where", graph("Equal", x, 1.0), known.get("True", new), new)
    code = graph("Where", graph("Equal", x, 0.0), known.get("False", new), code)
    return graph("Where", graph("IsNaN", x), known[""], code)


def name_part(graph: Graph, codes: Value, columns: Sequence[Placed[Category]]) -> Part:
    """1 where a row has the name of an output, else 0.  (n, n_columns) of codes -> (n, k)"""
    outputs = [(column, code) for column in columns for code in range(len(column.learnt.outputs))]
    given = graph("Gather", codes, np.array([column.source for column, _ in outputs]), axis=1)
    is_named = graph("Equal", given, np.array([code for _, code in outputs]))
    return Part(graph.cast(is_named, np.float32), [column.first + code for column, code in outputs])


def name_outputs(category: Category) -> np.ndarray:
    """The weighted outputs of a row with each name.  -> (k, k)"""
    weights = np.array(category.weights)
    weights[-1] *= FAR
    return np.diag(weights).astype(np.float32)


def _codes(category: Category) -> dict[str, int]:
    names = [*category.frequent, *category.rare, None]
    return {n or "": code for n, code in zip(names, category.places(names).tolist(), strict=True)}


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
        return graph("Div", graph("Mod", x, enc.DAY, fmod=1), enc.DAY)
    days = graph("Div", graph("Mod", graph("Sub", x, enc.MONDAY), enc.WEEK, fmod=1), enc.DAY)
    return graph("Div", graph("Floor", days), 7.0)


@dataclass(frozen=True)
class InputColumn:
    """A column that counts: its name, what was learnt of it, and its outputs' first place."""

    name: str
    column: Learnt
    first: int

    @property
    def category(self) -> Category:
        """What was learnt of a column of names."""
        assert isinstance(self.column, Category)
        return self.column

    @property
    def is_text(self) -> bool:
        """Whether its values come in as strings."""
        column = self.column  # truth values, and a column without any value, come in as numbers
        if not isinstance(column, Category) or column.boolean:
            return False
        return bool(column.frequent or column.rare)

    @property
    def kind(self) -> str:
        """What the column is called in the description of the model."""
        if isinstance(self.column, Category):
            return "name" if self.is_text else "truth" if self.column.boolean else "empty"
        return self.column.unit if isinstance(self.column, Number) else "date"


@dataclass(frozen=True)
class Encoded:
    """Encoded rows: what is measured by differences, and what by the names that it has."""

    numbers: Part | None  # weighted outputs in single precision
    names: Part | None  # 1.0 where a row has the name of an output, else 0.0
    named: list[Placed[Category]]  # the columns of names, in the order of `names`


class TableGraph:
    """An encoder's columns in the graph."""

    def __init__(self, encoder: Encoder) -> None:
        self.columns = [  # those that were not dropped, in the table's order
            InputColumn(name, column, int(np.searchsorted(encoder.output_source, j)))
            for j, (name, column) in enumerate(encoder.by_name.items())
            if column is not None
        ]
        self.numbers = [column for column in self.columns if not column.is_text]
        self.names = [column for column in self.columns if column.is_text]
        # A table of numbers alone, without names, comes in as one matrix.
        self.is_matrix = encoder.names is None and len(self.numbers) == len(encoder.columns)

    @property
    def n_differences(self) -> int:
        """How many packed columns are compared with each landmark's: names are looked up."""
        columns = [c.column for c in self.columns if not isinstance(c.column, Category)]
        groups = [zip(column.groups, column.weights, strict=True) for column in columns]
        return 1 + sum(len({group for group, weight in both if weight > 0}) for both in groups)

    def inputs(self) -> list[Any]:
        """The declared inputs: doubles and strings of shape (n,), or doubles (n, d)."""
        from onnx import TensorProto, helper

        if self.is_matrix:
            shape = ["n", len(self.numbers)]
            return [helper.make_tensor_value_info(MATRIX, TensorProto.DOUBLE, shape)]
        types = {True: TensorProto.STRING, False: TensorProto.DOUBLE}
        return [
            helper.make_tensor_value_info(column.name, types[column.is_text], ["n"])
            for column in self.columns
        ]

    def check(self, *, reserved: Sequence[str]) -> None:
        """Refuse columns that cannot be inputs: the names in `reserved` are those of outputs."""
        for column in () if self.is_matrix else self.columns:
            if column.name in ("", *reserved):
                raise UserError(
                    f"Column {column.name!r} cannot be an input of the graph: expected a name that "
                    f"is not empty and none of its outputs' ({', '.join(reserved)}). Rename the "
                    f"column and fit again."
                )
        for column in self.names:
            if "" in (*column.category.frequent, *column.category.rare):
                raise UserError(
                    f"Column {column.name!r} has the empty string among its names, which in the "
                    f"graph says that a name is missing. Replace it by None or by another name, "
                    f"and fit again."
                )

    def read(self, graph: Graph) -> tuple[Value | None, Value | None]:
        """The inputs side by side: numbers (n, p) and codes of names (n, q), if there are any."""
        if self.is_matrix:
            return MATRIX, None
        codes = [name_codes(graph, c.name, c.category) for c in self.names]
        numbers = _side_by_side(graph, [column.name for column in self.numbers])
        return numbers, _side_by_side(graph, codes)

    def encode(self, graph: Graph, numbers_in: Value | None, codes_in: Value | None) -> Encoded:
        """The rows as the encoder's outputs."""
        parts, codes, named = [], [], []
        if codes_in:
            codes.append(codes_in)
            named += [Placed(c.category, i, c.first) for i, c in enumerate(self.names)]
        if numbers_in:
            placed = []
            for i, learnt in enumerate(self.numbers):
                column = learnt.column
                if isinstance(column, Category):
                    codes.append(truth_codes(graph, numbers_in, column, source=i))
                    named.append(Placed(column, len(named), learnt.first))
                    continue
                placed.append(Placed(column.number, i, learnt.first))
                if isinstance(column, Date):
                    parts += circle_parts(graph, numbers_in, column, source=i, first=learnt.first)
            parts += number_parts(graph, numbers_in, placed)
        numbers = names = None
        if parts:
            whole = graph("Concat", *(part.value for part in parts), axis=1)
            places = [place for part in parts for place in part.places]
            numbers = Part(graph.cast(whole, np.float32), places)
        if named:
            names = name_part(graph, graph("Concat", *codes, axis=1), named)
        return Encoded(numbers, names, named)


def _side_by_side(graph: Graph, columns: list[Value]) -> Value | None:
    """(n,), … -> (n, k)"""
    if not columns:
        return None
    return graph("Concat", *(graph("Unsqueeze", c, np.array([1])) for c in columns), axis=1)
