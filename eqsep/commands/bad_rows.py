"""Rows that cannot be read, set aside in a file of their own so that the others go on."""

import csv
import io
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from eqsep.arrays import objects
from eqsep.commands.console import counted, tell
from eqsep.commands.notation import strange_numbers
from eqsep.errors import UserError
from eqsep.files import written_whole
from eqsep.tables.reading import Column, UnreadableError

_RAGGED = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)")
_SHOWN = 80  # characters of a row
_MOST = 0.1  # of the distinct values, that are set aside as mistakes


class BadRows:
    """The file of bad rows: of each the file, the number, the reason, and what it holds.

    Parameters
    ----------
    path : Path
        It is there, whole, when the command that reads the rows has ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: set[tuple[str, int]] = set()
        self._before: dict[str, list[int]] = {}  # of each ragged row, those that are not
        self._rows: Any = None

    def check(self, used: str | Path) -> None:
        """Refuse to write over a file that the command reads or writes."""
        if self.path.exists() and Path(used).exists():
            same = self.path.samefile(used)
        else:
            same = self.path.absolute() == Path(used).absolute()
        if same:
            raise UserError(
                f"--bad-rows {self.path} is read from, or written to: pass another file."
            )

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write the file while rows are read; of rows that end in an error, if there are bad ones.

        Where there are none otherwise, it has a header alone.
        """
        if not self.path.parent.is_dir():
            raise UserError(f"There is no folder {self.path.parent} for --bad-rows: make it first.")
        if self.path.exists() and not self.path.is_file():
            raise UserError(f"--bad-rows {self.path} is no file: pass the name of one.")
        ended: Exception | None = None
        with written_whole(self.path) as file:
            out = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
            self._rows = csv.writer(out)
            self._rows.writerow(["file", "row", "reason", "text"])
            try:
                yield
            except Exception as error:
                in_order = isinstance(error, typer.Exit) and error.__cause__ is None
                if not self.found and not in_order:
                    raise
                ended = error
            out.detach()
        tell(f"Note: {counted(len(self.found), 'row')} could not be read: {self.path}.")
        if ended is not None:
            raise ended

    def add(self, file: str, number: int, reason: str, text: str) -> None:
        """Set one aside, once however often it is read."""
        if (file, number) not in self.found:
            self._rows.writerow([file, number, reason, text])
            self.found.add((file, number))

    def handler(self, file: str) -> Callable[[Any], str]:
        """What pyarrow calls for a row with more values than names, or fewer, in their order."""
        before = self._before.setdefault(file, [])

        def skip(row: Any) -> str:
            if (file, row.number) not in self.found:
                reason = f"expected {row.expected_columns} values, got {row.actual_columns}"
                self.add(file, row.number, reason, row.text)
                before.append(row.number - len(before))
            return "skip"

        return skip

    def number(self, file: str, place: int) -> int:
        """The number of a row in its file, of its place among those that were divided."""
        return place + 1 + bisect_right(self._before.get(file, []), place + 1)

    def without(self, table: pa.Table, file: str, bad: dict[str, Any], *, before: int) -> pa.Table:
        """The table without rows that have a bad value in a column, which are set aside."""
        kept = pa.chunked_array([pa.array([True] * table.num_rows, pa.bool_())])
        for name, mask in bad.items():
            mask = pc.and_(pc.fill_null(mask, False), kept)
            kept = pc.and_(kept, pc.invert(mask))
            for place in pc.indices_nonzero(mask).to_pylist():
                row = table.slice(place, 1).to_pylist()[0]
                text = ",".join("" if value is None else str(value) for value in row.values())
                reason = f"column {name!r} cannot be read: {row[name]!r}"
                self.add(file, self.number(file, before + place), reason, text)
        return table.filter(kept)


def not_divided(name: str, reason: str) -> UserError:
    """The error for a file that cannot be divided into rows with a value for each name."""
    found = _RAGGED.search(reason)
    if found is None:
        if "straddling" in reason:
            reason = "a row of it is longer than 1 MB, or a quote is never closed"
        return UserError(f"{name} cannot be read: {reason}. Check that it is whole.")
    row, expected, got, text = found.groups()
    place = name if row is None else f"{name}, row {int(row):,}"
    return UserError(
        f"{place}: expected {expected} values, got {got}: {text[:_SHOWN]!r}. Correct it, or set "
        f"such rows aside with --bad-rows FILE."
    )


def no_numbers(column: Any) -> Any:
    """Which values of a column of text are none, where nearly all are numbers; else None."""
    values = pc.unique(column.drop_null()).to_pylist()
    others = strange_numbers(values)
    if not others or len(others) > _MOST * len(values):
        return None
    return pc.is_in(column, value_set=pa.array(others, column.type))


def unreadable(column: Any, name: str, reads: str) -> Any:
    """Which values of a column of text cannot be read as those of a kind; None if there is none."""
    bad = []
    for value in pc.unique(column.drop_null()).to_pylist():
        try:
            Column(name, "text", objects([value])).numbers(reads)
        except UnreadableError:
            bad.append(value)
    return pc.is_in(column, value_set=pa.array(bad, column.type)) if bad else None
