"""Parquet and Arrow files as tables."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import dataset, parquet

from eqsep.commands.text_files import ROWS_AT_ONCE, check_once
from eqsep.errors import UserError
from eqsep.tables.batches import record_batches

_LAST_BYTES = {"parquet": b"PAR1", "arrow": b"ARROW1"}


@dataclass(frozen=True)
class ArrowFile:
    """A Parquet or Arrow file: columns with types of their own."""

    name: str
    data: dataset.Dataset

    @property
    def columns(self) -> list[str]:
        return self.data.schema.names

    def whole(self, columns: Sequence[str], *, as_text: Iterable[str] = ()) -> pa.Table:  # noqa: ARG002
        """All rows, in the types that the file has."""
        return self._checked(self.data.to_table(columns=list(columns)))

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some thousand rows at a time."""
        yield self._checked(self.data.schema.empty_table().select(list(columns)))
        for batch in record_batches(self.data, list(columns), ROWS_AT_ONCE):
            yield self._checked(pa.Table.from_batches([batch]))

    def _checked(self, table: pa.Table) -> pa.Table:
        for i, field in enumerate(table.schema):
            if pa.types.is_string_view(field.type):  # not all of pyarrow knows it
                table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
            value = getattr(field.type, "value_type", field.type)
            if "string" in str(value):
                table.column(i).validate(full=True)  # a damaged file may hold bytes of no text
            if pa.types.is_nested(field.type) or "binary" in str(value):
                raise UserError(
                    f"Column {field.name!r} of {self.name} holds values of type {field.type}: "
                    f"expected numbers, truth values, text, dates or durations. Leave it out."
                )
        return table


def arrow_file(path: str, kind: str) -> ArrowFile:
    """A Parquet or Arrow file; refused where it was cut off, or two columns have one name."""
    _check_whole(path, kind)
    data = dataset.dataset(path, format=kind)
    check_once(data.schema.names, path)
    return ArrowFile(path, data)


def count_values(path: str) -> int:
    """How many values a Parquet file says that it holds, however small it is."""
    try:
        found = parquet.read_metadata(path)
    except (pa.ArrowException, OSError):  # told when it is read
        return 0
    return found.num_rows * found.num_columns


def _check_whole(path: str, kind: str) -> None:
    """Refuse a file that was cut off, or is of another kind: its last bytes tell."""
    last = _LAST_BYTES[kind]
    with Path(path).open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - len(last), 0))
        if file.read() != last:
            raise UserError(
                f"{path} cannot be read: it does not end as a file of {kind.capitalize()} does. "
                f"Check that it is whole."
            )
