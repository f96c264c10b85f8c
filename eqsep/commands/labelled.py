"""Labelled rows from files, all at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eqsep.commands.columns import check_numbers
from eqsep.commands.console import listed
from eqsep.commands.labelling import Labels, read_labels
from eqsep.commands.models import labelled_rows, model_rows
from eqsep.commands.reading import whole
from eqsep.commands.text_files import Layout
from eqsep.detector import Detector
from eqsep.errors import UserError
from eqsep.tables.reading import Table, read_table


@dataclass(frozen=True)
class Labelled:
    """Which files hold the rows, and what their columns are.

    Attributes
    ----------
    label : str or None
        The column of labels; without one all rows are normal.
    normal : str or None
        The label of normal rows.
    seen : sequence of str
        The kinds of anomaly to learn; rows of others are left out. Nothing is all of them.
    drop, names : sequence of str
        Columns that are left out, and columns that hold names whatever they look like.
    """

    paths: Sequence[str]
    layout: Layout
    label: str | None = None
    normal: str | None = None
    seen: Sequence[str] = ()
    drop: Sequence[str] = ()
    names: Sequence[str] = ()

    def read(self, like: Detector | None = None) -> tuple[Table, Labels | None]:
        """The rows without what is left out, and their labels; read `like` a model, or anew."""
        self.check()
        if like is None:
            table, column = self._inferred()
            rows = read_table(table, name="Detector")
        elif self.label is None:
            rows, column = model_rows(self.paths, like, layout=self.layout), None
        else:
            rows, column = labelled_rows(self.paths, self.label, like, layout=self.layout)
        if self.label is None or column is None:
            return rows, None
        labels = read_labels(column, name=self.label, normal=self.normal)
        if self.seen:
            kept = np.flatnonzero(labels.seen(self.seen))
            return rows.take(kept), labels.take(kept)
        return rows, labels

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.label is None and (self.normal is not None or self.seen):
            raise UserError("--normal and --seen speak of labels: pass their column as --label.")
        if self.label in (*self.drop, *self.names):
            raise UserError(f"Column {self.label!r} holds the labels: it is not to --drop or name.")
        both = [name for name in self.names if name in self.drop]
        if both:
            raise UserError(f"Column {listed(both)} cannot be both --names and --drop.")

    def _inferred(self) -> tuple[pa.Table, pa.ChunkedArray | None]:
        texts = [*self.names, *([] if self.label is None else [self.label])]
        table = whole(self.paths, layout=self.layout, as_text=texts, but=self.drop)
        labels = None
        if self.label is not None:
            labels = table.column(self.label)
            table = table.drop_columns([self.label])
        return self.named(table), labels

    def named(self, table: pa.Table) -> pa.Table:
        """The table with columns of names as such; refuses numbers with words among them."""
        check_numbers(table, names=self.names)
        for name in self.names:
            column = table.column(name)
            if not pa.types.is_dictionary(column.type):
                place = table.schema.get_field_index(name)
                table = table.set_column(place, name, column.dictionary_encode())
        return table
