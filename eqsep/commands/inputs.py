"""The labelled rows of files: which columns they have, and what the column of labels says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eqsep.arrays import objects
from eqsep.commands.dialects import Layout
from eqsep.commands.label_columns import LabelColumn, label_texts, read_label_column
from eqsep.commands.notation import is_number, strange_dates, strange_numbers
from eqsep.commands.reading import (
    Choice,
    as_read,
    cast,
    chosen,
    columns_for,
    whole,
    whole_pieces,
)
from eqsep.detector.plan import Plan
from eqsep.detector.runs import Windows
from eqsep.errors import Note, UserError, quoted, warn
from eqsep.tables.reading import NUMERIC, Column, Table, read_table, with_groups

_FIRST = 1000  # rows that are looked at before all of them
_FEW = 20  # distinct values, of which one at least has a digit in a column of numbers or dates


@dataclass(frozen=True)
class InputSpec:
    """Which files hold the rows, and what their columns are.

    Attributes
    ----------
    label : str or None
        The column of labels; without one all rows are normal.
    normal : sequence of str
        The label of normal rows, and other words for it.
    seen : sequence of str
        The kinds of anomaly to learn; rows of others are left out. Nothing is all of them.
    drop, names : sequence of str
        Columns that are left out, and columns that hold names whatever they look like.
    group, time : str or None
        The columns of groups and of times: rows that belong together are held out together.
    window : int or None
        Of how many last rows columns of numbers get windows.
    """

    paths: Sequence[str]
    layout: Layout
    label: str | None = None
    normal: Sequence[str] = ()
    seen: Sequence[str] = ()
    drop: Sequence[str] = ()
    names: Sequence[str] = ()
    group: str | None = None
    time: str | None = None
    window: int | None = None

    @property
    def groups(self) -> list[str]:
        """The columns of groups and of times, as far as there are such."""
        return [name for name in (self.group, self.time) if name is not None]

    @property
    def told(self) -> dict[str, Any]:
        """What somebody has said of the labels: the normal one, and those that are none."""
        none = () if self.label is None else self.layout.said_missing(self.label)
        return {"normal": self.normal, "missing": none}

    def label_words(self) -> tuple[str, ...]:
        """The options by which other files with the same labels are read."""
        several = self.normal if len(self.normal) > 1 else ()
        said = [("--normal", label) for label in several]
        own = (word for word in self.layout.missing or () if word.startswith(f"{self.label}="))
        said += [("--missing", word) for word in own]
        return tuple(word for option in said for word in option)

    @property
    def beside(self) -> list[str]:
        """The same, and last the column of labels."""
        return self.groups + ([] if self.label is None else [self.label])

    def read(self, like: Plan | None = None) -> tuple[Table, LabelColumn | None]:
        """The rows without what is left out, and their labels; inferred, or read as by a plan."""
        self.check()
        rows, column = self._inferred() if like is None else self.read_like(like)
        if self.window is not None:  # before rows are left out
            rows = Windows.of(rows, self.window).transform(rows)
        if self.label is None or column is None:
            return rows, None
        labels = read_label_column(column, name=self.label, **self.told)
        if self.seen:
            kept = np.flatnonzero(labels.seen(self.seen))
            return rows.take(kept), labels.take(kept)
        return rows, labels

    def read_like(self, plan: Plan) -> "tuple[Table, pa.ChunkedArray | None]":
        """The rows as a model takes them, with their groups, and the column of labels."""
        table = whole_pieces(
            self.paths, columns_for(plan, beside=self.beside), layout=self.layout, like=plan
        )
        labels = None if self.label is None else table.column(self.label)
        windows, rows = plan.windows, self.with_groups(as_read(table, plan), table)
        return rows if windows is None else windows.transform(rows), labels

    def grouped_like(self, plan: Plan) -> "InputSpec":
        """The same with the columns of groups and times that a model knows, where none is named."""
        grouping = plan.holdout.grouping
        if grouping is None:
            return self
        group, time = (name or None for name in grouping.columns)
        return replace(self, group=self.group or group, time=self.time or time)

    def with_groups(self, rows: Table, table: pa.Table) -> Table:
        """Rows with their groups and times, from the table that they were read from."""
        group = None if self.group is None else _column(table, self.group, reads=["text"])
        time = None if self.time is None else _column(table, self.time, reads=NUMERIC)
        grouped = with_groups(rows, group, time)
        if grouped.groups is None:
            return rows
        return replace(grouped, groups=replace(grouped.groups, columns=(self.group, self.time)))

    def check(self) -> None:
        """Refuse options that contradict each other."""
        twice = [name for name in self.beside if self.beside.count(name) > 1 or name in self.drop]
        if (self.group is not None or self.time is not None) and twice:
            raise UserError(
                f"Column {twice[0]!r} cannot be two of --label, --group, --time and --drop."
            )
        if self.label is None and (self.normal or self.seen):
            raise UserError("--normal and --seen speak of labels: pass their column as --label.")
        if self.label in (*self.drop, *self.names):
            raise UserError(f"Column {self.label!r} holds the labels: it is not to --drop or name.")
        both = [name for name in self.names if name in self.drop]
        if both:
            raise UserError(f"Column {quoted(both)} cannot be both --names and --drop.")

    def columns(self, like: Plan | None) -> Choice:
        """The columns of a file that are wanted, the label last: those of a model, or all."""
        beside = self.beside
        if like is not None:
            return columns_for(like, beside=beside)

        def choose(there: list[str]) -> list[str]:
            rest = (column for column in there if column not in (*self.drop, *beside))
            chosen([*self.drop, *self.names, *self.groups], there, name="The table")
            return [*rest, *beside]

        return choose

    def written_labels(self, table: pa.Table) -> np.ndarray:
        """The labels of some rows as they are written, None where there is none."""
        if self.label is None:
            return objects([None] * table.num_rows)
        column = table.column(self.label).cast(pa.string()).combine_chunks()
        return objects(column.to_pylist())

    def with_names(self, table: pa.Table) -> pa.Table:
        """The table with columns of names as such; refuses numbers with words among them."""
        _check_numbers(table, names=self.names)
        _note_same(table)
        for name in self.names:
            column = table.column(name)
            if not pa.types.is_dictionary(column.type):
                index = table.schema.get_field_index(name)
                table = table.set_column(index, name, column.dictionary_encode())
        return table

    def _inferred(self) -> tuple[Table, pa.ChunkedArray | None]:
        texts = [*self.names, *(name for name in (self.label, self.group) if name is not None)]
        table = whole(self.paths, layout=self.layout, as_text=texts, but=self.drop)
        chosen(self.groups, table.column_names, name="The table")
        labels = None if self.label is None else table.column(self.label)
        values = self.with_names(table.drop_columns(self.beside))
        return self.with_groups(read_table(values, name="Detector"), table), labels


def _column(table: pa.Table, name: str, *, reads: Sequence[str]) -> Column:
    """A column of a table, strings in the first type that all of them can have."""
    column = table.column(name)
    types = (found for kind in reads if (found := cast(column, kind)).type != column.type)
    column = next(types, column)
    if reads == ["text"] and not pa.types.is_string(column.type):
        column = pa.chunked_array([pa.array(label_texts(column, name), pa.string())])
    found = read_table(pa.table({name: column}), name="Detector")
    return found.columns[0]


def _note_same(table: pa.Table) -> None:
    """Name the columns that say nothing: without a value, or with the same one in all rows."""
    distinct = {
        name: pc.unique(column.slice(0, _FIRST))
        for name, column in zip(table.schema.names, table.columns, strict=True)
    }
    few = {name: found for name, found in distinct.items() if len(found) == 1}
    same = {name: pc.unique(table.column(name)) for name in few}
    same = {name: found[0].is_valid for name, found in same.items() if len(found) == 1}
    empty = [name for name, is_valid in same.items() if not is_valid]
    constant = [name for name, is_valid in same.items() if is_valid]
    if empty:
        warn(Note(f"Without any value: {quoted(empty)}. A value there will be new."))
    if constant and table.num_rows > 1:
        warn(Note(f"The same in all rows: {quoted(constant)}. Another value there will be new."))


def _check_numbers(table: pa.Table, *, names: Iterable[str]) -> None:
    """Refuse a column of text that is nearly all numbers, or dates, unless it holds names."""
    for field in table.schema:
        if not pa.types.is_string(field.type) or field.name in names:
            continue
        values = pc.unique(table.column(field.name).drop_null())
        if not pc.any(pc.match_substring_regex(values[:_FEW], r"\d")).as_py():
            continue
        texts = values.to_pylist()
        found = {"numbers": strange_numbers(texts), "dates": strange_dates(texts)}
        for what, others in ((what, others) for what, others in found.items() if others):
            word = next((f"{field.name}={o}" for o in others if not is_number(o)), None)
            told = "" if word is None else f" If that is a missing value, say --missing {word!r}."
            raise UserError(
                f"Column {field.name!r} holds {what} and also {quoted(others, most=3)}: correct "
                f"it, leave the column out with --drop, or take its values as names with --names."
                f"{told}"
            )
