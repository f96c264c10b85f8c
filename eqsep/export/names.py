"""Columns of names and truth values in the graph: a code for each value, and its distances."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eqsep.engine.compiled import manhattan
from eqsep.export.graph import Graph, Part, Value
from eqsep.tables.encodings import FAR, Category


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
    weights = np.array(category.weights)
    weights[-1] *= FAR
    return manhattan(np.diag(weights).astype(landmarks.dtype), landmarks)


def _codes(category: Category) -> dict[str, int]:
    codes = {name: i for i, name in enumerate(category.frequent)}
    codes |= dict.fromkeys(category.rare, len(category.frequent))
    codes[""] = _new(category) - category.with_missing
    return codes


def _new(category: Category) -> int:
    return len(category.outputs) - 1
