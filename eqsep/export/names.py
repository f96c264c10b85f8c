"""Columns of names and truth values in the graph: a code for each value, then 0, 1 or far."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eqsep.export.graph import Graph, Part, Value
from eqsep.tables.category import FAR, Category


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
    """The weighted outputs of all columns of names.  (n, n_columns) of codes -> (n, k)"""
    source: list[int] = []
    place: list[int] = []
    weight: list[float] = []
    places: list[int] = []
    for column in columns:
        weights = np.array(column.category.weights)
        weights[-1] *= FAR
        source += [column.source] * len(weights)
        place += range(len(weights))
        weight += weights.tolist()
        places += range(column.first, column.first + len(weights))
    code = graph("Gather", codes, np.array(source), axis=1)
    is_it = graph("Equal", code, np.array(place))
    return Part(graph("Where", is_it, np.array(weight), 0.0), places)


def _codes(category: Category) -> dict[str, int]:
    codes = {name: i for i, name in enumerate(category.frequent)}
    codes |= dict.fromkeys(category.rare, len(category.frequent))
    codes[""] = _new(category) - category.with_missing
    return codes


def _new(category: Category) -> int:
    return len(category.outputs) - 1
