"""Spreadsheets as tables: one sheet, as the text of a CSV file."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from eqsep.errors import MissingExtraError, Note, UserError, did_you_mean, quoted, warn
from eqsep.io import cells
from eqsep.io.dialect import Layout
from eqsep.io.streams import decoded_head
from eqsep.io.text import CsvFile, csv_file
from eqsep.progress import reporter


def open_sheet(path: str, layout: Layout) -> CsvFile:
    """A spreadsheet, whose titles, headers and columns of text are read as those of CSV."""
    said = replace(layout, delimiter=",", encoding=None)
    head, stream = decoded_head(io.BytesIO(_cells(path, layout.sheet)), said, name=path)
    reporter("bytes")(Path(path).stat().st_size)
    return csv_file(path, head, stream, said)


def _cells(path: str, wanted: str | None) -> bytes:
    """The wanted sheet, or the first with cells, read in another process."""
    try:
        import python_calamine  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"{path} is a spreadsheet, and python-calamine, which reads such files, is not "
            f'installed: pip install "eqsep[excel]", or save the sheet as CSV.'
        ) from error
    Path(path).open("rb").close()  # or raises why it cannot be opened
    words = [sys.executable, "-P", cells.__file__, path, wanted or ""]
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode == cells.REFUSED:
        reason = done.stderr.decode(errors="replace").rstrip(".")
        raise UserError(f"{path} cannot be read: {reason}. Check that it is whole.")
    if done.returncode:
        raise UserError(
            f"{path} cannot be read: it is damaged, or its cells take more memory than 4 GB. Save "
            f"the sheet as CSV."
        )
    found = json.loads(done.stderr)
    name, there = found["sheet"], found["sheets"]
    if wanted is not None and wanted not in there:
        raise UserError(
            f"{path} has no sheet {wanted!r}: its sheets are {quoted(there)}."
            f"{did_you_mean([wanted], there)}"
        )
    if name is None:
        raise UserError(f"{path} is empty: expected a sheet with a header and rows below it.")
    if wanted is None and len(there) > 1:
        warn(Note(f"Read the sheet {name!r} of {quoted(there)}; name another sheet to read it."))
    return done.stdout
