"""Spreadsheets as tables: one sheet, as the text of a CSV file."""

import csv
import datetime as dt
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from eqsep.commands.console import meant
from eqsep.commands.dialects import Layout
from eqsep.commands.streams import decoded_head
from eqsep.commands.text_files import CsvFile, csv_file
from eqsep.errors import MissingExtraError, Note, UserError, quoted, warn
from eqsep.tables.column import text_of


@contextmanager
def open_sheet(path: str, layout: Layout) -> Iterator[CsvFile]:
    """A spreadsheet, of which titles, headers and columns of text are understood as of CSV."""
    said = replace(layout, delimiter=",", encoding=None)
    data = io.StringIO()
    csv.writer(data, lineterminator="\n").writerows(map(_texts, _rows(path, layout.sheet)))
    head, stream = decoded_head(io.BytesIO(data.getvalue().encode()), said, name=path)
    yield csv_file(path, head, stream, said)


def _rows(path: str, wanted: str | None) -> list[list[Any]]:
    """The cells of the sheet that is wanted, or of the first that has any."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is a spreadsheet, and python-calamine, which reads such files, is not "
            f'installed: pip install "eqsep[excel]", or save the sheet as CSV.'
        ) from error
    try:
        book = CalamineWorkbook.from_path(path)
        there: list[str] = book.sheet_names
        names = [name for name in there if wanted in (None, name)]
        sheets = {name: book.get_sheet_by_name(name).to_python() for name in names}
    except CalamineError as error:
        raise UserError(f"{path} cannot be read: {error}. Check that it is whole.") from error
    if wanted is not None and not names:
        raise UserError(
            f"{path} has no sheet {wanted!r}: its sheets are {quoted(there)}."
            f"{meant([wanted], there)}"
        )
    name = next((name for name, rows in sheets.items() if rows), None)
    if name is None:
        raise UserError(f"{path} is empty: expected a sheet with a header and rows below it.")
    if len(sheets) > 1:
        said = f"The sheet {name!r} was read, of {quoted(sheets)}; --sheet takes another."
        warn(Note(said))
    return sheets[name]


def _texts(row: list[Any]) -> list[str]:
    return ["" if cell is None else _text(cell) for cell in row]


def _text(cell: Any) -> str:
    """A cell as CSV would have it."""
    if isinstance(cell, str | dt.datetime | dt.date | dt.time):
        return str(cell)
    return text_of(cell).removesuffix(" s")  # of a duration
