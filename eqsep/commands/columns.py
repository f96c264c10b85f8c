"""Columns that spoil a model: words among numbers, counters of rows, and given-away labels."""

import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eqsep.commands.console import listed
from eqsep.commands.labelling import Labels
from eqsep.errors import UserError
from eqsep.tables.column import Column
from eqsep.tables.reading import Table

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_FEW = 20  # distinct values: so few are names, even where most of them are numbers
_MOSTLY = 0.9  # the share of numbers from which on the others are taken for mistakes
_ENOUGH = 5  # anomalies: fewer are told apart by chance
_REPEATED = 2  # rows for each name: where there are fewer, names tell rows apart, not kinds


def check_numbers(table: pa.Table, *, names: Iterable[str]) -> None:
    """Refuse a column of text that is nearly all numbers, unless it is said to hold names."""
    for field in table.schema:
        if not pa.types.is_string(field.type) or field.name in names:
            continue
        values = pc.unique(table.column(field.name).drop_null())
        if len(values) <= _FEW:
            continue
        is_number = pc.match_substring_regex(values, _NUMBER)
        others = values.filter(pc.invert(is_number))
        if 1 - len(others) / len(values) >= _MOSTLY and len(others):
            raise UserError(
                f"Column {field.name!r} holds numbers and also {others[0].as_py()!r}: correct it, "
                f"leave the column out with --drop, or take its values as names with --names."
            )


def counters(rows: Table) -> list[str]:
    """A sentence for each column of numbers that rises or falls from row to row; some may tie."""
    if rows.n_rows <= _FEW:
        return []
    return [
        f"Column {column.name!r} rises or falls from row to row, as numbers of rows do: new rows "
        f"may lie beyond all that was learnt, and raise alarms for that alone. If it only counts "
        f"the rows, leave it out: --drop {column.name!r}."
        for column in rows.columns
        if column.kind == "number" and _is_counter(column.values)
    ]


def _is_counter(values: np.ndarray) -> bool:
    steps = np.diff(values)
    one_way = bool((steps >= 0).all() or (steps <= 0).all())
    return one_way and int(np.count_nonzero(steps)) >= _FEW


def decimal_commas(rows: Table, *, names: Iterable[str]) -> list[str]:
    """A sentence, where columns of text are mostly numbers with a decimal comma."""
    found: dict[str, str] = {}
    for column in rows.columns:
        if column.kind != "text" or column.name in names:
            continue
        texts = [text for text in column.names()[0] if text is not None]
        commas = [text for text in texts if _COMMA.fullmatch(text)]
        if 2 * len(commas) > len(texts):
            found[column.name] = commas[0]
    if not found:
        return []
    name, text = next(iter(found.items()))
    which, were = ("Column", "holds") if len(found) == 1 else ("Columns", "hold")
    return [
        f"{which} {listed(found, most=len(found))} {were} numbers with a decimal comma, such as "
        f"{text!r}, read as names here: write them with a point, {text.strip().replace(',', '.')}. "
        f"If they are names, say so: --names {name!r}{', and so on' * (len(found) > 1)}."
    ]


def giveaways(rows: Table, labels: Labels) -> list[str]:
    """A sentence for each column that alone tells all anomalous rows from the normal ones."""
    anomalous, normal = labels.is_anomaly, labels.is_normal
    if anomalous.sum() < _ENOUGH or normal.sum() < _ENOUGH:
        return []
    return [
        f"Column {column.name!r} alone tells every anomalous row from every normal one. If it is "
        f"known only together with the label, leave it out: --drop {column.name!r}."
        for column in rows.columns
        if _separates(column, anomalous, normal)
    ]


def _separates(column: Column, anomalous: np.ndarray, normal: np.ndarray) -> bool:
    if column.kind in ("text", "mixed", "boolean"):
        names, place = column.names()
        few = len(names) * _REPEATED <= len(place)
        return few and not set(place[anomalous].tolist()) & set(place[normal].tolist())
    values = np.where(np.isnan(column.values), -np.inf, column.values)
    high, low = values[anomalous], values[normal]
    return bool(high.min() > low.max() or high.max() < low.min())
