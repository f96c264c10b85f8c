"""The table in the graph: what comes in, a value a column, and the encoded rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.errors import UserError
from eqsep.export.columns import (
    PlacedNames,
    PlacedNumber,
    circle_parts,
    name_codes,
    name_part,
    number_parts,
    takes_numbers,
    truth_codes,
)
from eqsep.export.graph import Graph, Part, Value
from eqsep.tables.encoder import Encoder
from eqsep.tables.encodings import Category, Date, Learnt, Number

MATRIX = "X"  # the only input where the columns have no names and all are numbers


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
        return isinstance(self.column, Category) and not takes_numbers(self.column)

    @property
    def kind(self) -> str:
        """What the column is called in the description of the model."""
        if isinstance(self.column, Category):
            return "name" if self.is_text else "truth" if self.column.boolean else "empty"
        return self.column.unit if isinstance(self.column, Number) else "date"


@dataclass(frozen=True)
class Read:
    """What the inputs hold: numbers (n, p) and codes of names (n, q); None where there are none."""

    numbers: Value | None
    codes: Value | None

    def take(self, graph: Graph, rows: Value) -> "Read":
        """Some of the rows."""
        taken = (v and graph("Gather", v, rows, axis=0) for v in (self.numbers, self.codes))
        return Read(*taken)


@dataclass(frozen=True)
class Encoded:
    """Encoded rows: what is measured by differences, and what by the names that it has.

    Attributes
    ----------
    numbers : Part or None
        Weighted outputs in single precision.
    names : Part or None
        1.0 where a row has the name of an output, else 0.0.
    named : list of PlacedNames
        The columns of names, in the order of `names`.
    """

    numbers: Part | None
    names: Part | None
    named: list[PlacedNames]


class TableGraph:
    """An encoder's columns in the graph.

    Attributes
    ----------
    columns : list of InputColumn
        Those that were not dropped, in the table's order.
    numbers, names : list of InputColumn
        Those of them that come in as doubles, and as strings.
    is_matrix : bool
        Whether the table has no names and numbers alone, which come in as one matrix.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.columns = [
            InputColumn(name, column, int(np.searchsorted(encoder.output_source, j)))
            for j, (name, column) in enumerate(encoder.by_name.items())
            if column is not None
        ]
        self.numbers = [column for column in self.columns if not column.is_text]
        self.names = [column for column in self.columns if column.is_text]
        self.is_matrix = encoder.names is None and len(self.numbers) == len(encoder.columns)

    @property
    def n_differences(self) -> int:
        """How many outputs of a row are compared with each landmark's: names are looked up."""
        columns = [c.column for c in self.columns if not isinstance(c.column, Category)]
        return 1 + sum(weight > 0 for column in columns for weight in column.weights)

    def kinds(self) -> dict[str, str]:
        """The kind of each column by its name, in the table's order."""
        return {column.name: column.kind for column in self.columns}

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
        """Refuse columns that cannot be inputs of a graph whose outputs are called `reserved`."""
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

    def read(self, graph: Graph) -> Read:
        """The inputs side by side."""
        codes = [name_codes(graph, c.name, c.category) for c in self.names]
        if self.is_matrix:
            return Read(MATRIX, None)
        return Read(
            _side_by_side(graph, [column.name for column in self.numbers]),
            _side_by_side(graph, codes),
        )

    def encode(self, graph: Graph, read: Read) -> Encoded:
        """The rows as the encoder's outputs."""
        parts, codes, named = [], [], []
        if read.codes:
            codes.append(read.codes)
            named += [PlacedNames(c.category, i, c.first) for i, c in enumerate(self.names)]
        if read.numbers:
            placed = []
            for i, learnt in enumerate(self.numbers):
                column = learnt.column
                if isinstance(column, Category):
                    codes.append(truth_codes(graph, read.numbers, column, source=i))
                    named.append(PlacedNames(column, len(named), learnt.first))
                elif isinstance(column, Date):
                    placed.append(PlacedNumber(column.elapsed, i, learnt.first))
                    parts += circle_parts(graph, read.numbers, column, source=i, first=learnt.first)
                else:
                    placed.append(PlacedNumber(column, i, learnt.first))
            parts += number_parts(graph, read.numbers, placed)
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
