"""The cells of a spreadsheet as CSV: a program that `text` runs, and that imports nothing of eqsep.

Its memory is bounded: a hostile file may name a cell so far away that the reader's process aborts.
"""

import csv
import datetime as dt
import io
import json
import os
import sys
from typing import Any

REFUSED = 3  # the exit code for a file that is not a spreadsheet; standard error says why
_MOST_MEMORY = 2**32  # bytes
_MOST_WHOLE = 1e15  # larger numbers are written with an exponent


def main(path: str, wanted: str = "") -> int:
    """Write the wanted sheet, or the first with cells, as CSV; and all names on standard error."""
    from python_calamine import CalamineError, CalamineWorkbook

    rows: list[list[Any]] = []
    if os.name == "posix":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, hard))
    try:
        book = CalamineWorkbook.from_path(path)
        there: list[str] = book.sheet_names
        for name in [name for name in there if wanted in ("", name)]:
            rows = book.get_sheet_by_name(name).to_python()
            if rows:
                break
        else:
            name = None
    except (CalamineError, OSError) as error:
        sys.stderr.write(str(error))
        return REFUSED
    out = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="")
    csv.writer(out, lineterminator="\n").writerows(map(_text, row) for row in rows)
    out.flush()
    sys.stderr.write(json.dumps({"sheet": name, "sheets": there}))
    return 0


def _text(cell: Any) -> str:
    """A cell as in CSV: 1 and 1.0 alike, durations in seconds."""
    if isinstance(cell, dt.timedelta):
        cell = cell.total_seconds()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _MOST_WHOLE:
        cell = int(cell)
    return str(cell)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
