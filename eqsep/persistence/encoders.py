"""The encoder of a detector's table: what it has learnt of each column."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.persistence.codecs import (
    FLAG,
    LARGE,
    NUMBER,
    POSITIVE,
    TEXTS,
    WHOLE,
    Codec,
    Schema,
    array,
    check,
    check_names,
    either,
    items,
    word,
)
from eqsep.persistence.container import damaged
from eqsep.tables.column import LARGEST
from eqsep.tables.fitted import output_weights, state_of, with_state

_FORMS = Schema(
    'a list of "quantile", "standard" or both',
    lambda value, sizes: value in (["quantile"], ["standard"], ["quantile", "standard"]),  # noqa: ARG005
)
_CYCLES = Schema(
    'a list of "hour", "weekday", both or none',
    lambda value, sizes: value in ([], ["hour"], ["weekday"], ["hour", "weekday"]),  # noqa: ARG005
)
_DICT = Schema("a dict", lambda value, sizes: type(value) is dict)  # noqa: ARG005
_REASONS = Schema(
    "a dict of strings",
    lambda value, sizes: (  # noqa: ARG005
        type(value) is dict and all(type(reason) is str for reason in value.values())
    ),
)
_MARKS = {
    "decimal": (",",),
    "thousands": (".", ",", " ", "'"),
    "dates": ("day first", "month first"),
    "minus": ("behind", "brackets", "long"),
}
_LONGEST_UNIT = 8
_NOT_WEIGHED = "the columns of its table cannot be weighed"


def _is_notation(value: Any) -> bool:
    """Whether it says how a column is written: marks that are known, and words of text."""
    if type(value) is not dict or not set(value) <= {*_MARKS, "missing", "unit"}:
        return False
    words, unit = value.get("missing", []), value.get("unit", "")
    if type(unit) is not str or len(unit) > _LONGEST_UNIT:
        return False
    known = all(value[mark] in some for mark, some in _MARKS.items() if mark in value)
    return known and type(words) is list and all(type(w) is str for w in words)


_NOTATIONS = Schema(
    "a dict of notations",
    lambda value, sizes: type(value) is dict and all(map(_is_notation, value.values())),  # noqa: ARG005
)
_ENCODER_PARTS = {
    "parameters": _DICT,
    "names": either(word(None), TEXTS),
    "dropped": _REASONS,
    "columns": items(either(word(None), _DICT), least=1),
    "notation": _NOTATIONS,
}
_ENCODER_PARAMETERS = {
    "numeric_encoding": word("quantile", "standard", "both"),
    "max_categories": WHOLE,
    "min_count": WHOLE,
    "max_new": NUMBER,
}
_NUMBER = {
    "kind": word("number"),
    "unit": word("number", "duration"),
    "forms": _FORMS,
    "ranks": array(3, "knots"),
    "centre": NUMBER,
    "scale": POSITIVE,
    "with_missing": FLAG,
}
_COLUMNS: Mapping[str, Mapping[str, Schema]] = {
    "number": _NUMBER,
    "date": {"kind": word("date"), "elapsed": _DICT, "cycles": _CYCLES},
    "category": {
        "kind": word("category"),
        "frequent": TEXTS,
        "rare": TEXTS,
        "with_missing": FLAG,
        "boolean": FLAG,
    },
}


@dataclass(frozen=True)
class EncoderCodec(Codec):
    """A fitted `TableEncoder`: its state, knots and ranks of each column as an array."""

    def encode(self, value: Any) -> dict[str, Any]:
        state = state_of(value)
        names = state["names"]
        return {
            "parameters": state["parameters"],
            "names": None if names is None else [str(name) for name in names],
            "dropped": {str(name): reason for name, reason in state["dropped"].items()},
            "columns": [None if c is None else _packed(c) for c in state["columns"]],
            **({"notation": state["notation"]} if state["notation"] else {}),
        }

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        parts = {"notation": {}} | parts  # which older files, and those of plain columns, lack
        _checked(parts, _ENCODER_PARTS, name)
        _checked(parts["parameters"], _ENCODER_PARAMETERS, "parameters")
        columns = [None if c is None else _unpacked(c) for c in parts["columns"]]
        _check_names_of_columns(parts["names"], parts["dropped"], columns)
        try:
            encoder = self.cls(name)(**parts["parameters"])
            with_state(encoder, parts | {"columns": columns})
        except ZeroDivisionError:  # two values that are no deviation apart
            damaged(_NOT_WEIGHED)
        _check_weights(encoder)
        return encoder


def _checked(parts: dict[str, Any], schemas: Mapping[str, Schema], name: str) -> None:
    check_names(parts, name, required=schemas)
    check(parts, schemas, name, sizes={})


def _packed(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a column as it is in the file."""
    if state["kind"] == "date":
        return state | {"elapsed": _packed(state["elapsed"])}
    if state["kind"] == "category":
        return state | {part: [str(n) for n in state[part]] for part in ("frequent", "rare")}
    ranks = np.array([state["knots"], state["low"], state["high"]], dtype=np.float64)
    others = {key: state[key] for key in state if key not in ("knots", "low", "high")}
    return others | {"ranks": ranks}


def _unpacked(column: dict[str, Any]) -> dict[str, Any]:
    """The state of a column, once it is known to be one."""
    kind = column.get("kind")
    if type(kind) is not str or kind not in _COLUMNS:
        damaged("a column of its table is of no known kind")
    _checked(column, _COLUMNS[kind], f"{kind} column")
    if kind == "number":
        return _number(column)
    if kind == "date":
        _checked(column["elapsed"], _NUMBER | {"unit": word("date")}, "date column")
        return column | {"elapsed": _number(column["elapsed"])}
    if set(column["frequent"]) & set(column["rare"]):
        damaged("a name in its table is both frequent and rare")
    return column


def _number(column: dict[str, Any]) -> dict[str, Any]:
    knots, low, high = column["ranks"].astype(np.float64)
    ranks = np.column_stack([low, high]).ravel()
    with np.errstate(invalid="ignore"):  # a NaN that signals
        in_order = bool((np.diff(knots) > 0).all() and (np.diff(ranks) >= 0).all())
        in_range = np.abs(knots).max() <= LARGEST and ranks[0] >= 0 and ranks[-1] <= 1
    if not (in_order and in_range and abs(column["centre"]) <= LARGEST):
        damaged("the numbers of a column of its table are not finite, or not in order")
    learnt = {"knots": knots.tolist(), "low": low.tolist(), "high": high.tolist()}
    sizes = {"centre": float(column["centre"]), "scale": float(column["scale"])}
    return {key: column[key] for key in column if key != "ranks"} | learnt | sizes


def _check_names_of_columns(names: Any, dropped: dict[str, str], columns: list[Any]) -> None:
    """Refuse names that are not those of the columns, and reasons to drop others than dropped."""
    names = [f"x{i}" for i in range(len(columns))] if names is None else names
    if len(names) != len(columns):
        damaged("the columns of its table have more names, or fewer, than there are")
    if {name for name, column in zip(names, columns, strict=True) if column is None} != set(
        dropped
    ):
        damaged("the columns dropped from its table are not those with a reason")


def _check_weights(encoder: Any) -> None:
    """Refuse outputs that would not be finite, and a table of which nothing counts."""
    weights = output_weights(encoder).tolist()
    if not all(0 <= weight <= math.sqrt(LARGE) for weight in weights) or not any(weights):
        damaged(_NOT_WEIGHED)
