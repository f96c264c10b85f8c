"""Rows that cannot be read, set aside in a file of their own so that the others go on."""

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eqsep.commands.notation import strange_numbers
from eqsep.errors import UserError
from eqsep.tables.column import Column, UnreadableError, objects

_RAGGED = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)")
_SHOWN = 80  # characters of a row
_MOST = 0.1  # of the distinct values, that are set aside as mistakes


@dataclass(frozen=True)
class BadRows:
    """The file of bad rows: of each the file, the number, the reason, and what it holds."""

    path: Path
    found: set[tuple[str, int]] = field(default_factory=set, compare=False, repr=False)
    ragged: set[tuple[str, int]] = field(default_factory=set, compare=False, repr=False)

    def check(self, file: str) -> None:
        """Refuse to write over a file that is read, and to write where no folder is."""
        if self.path.is_file() and Path(file).exists() and self.path.samefile(file):
            raise UserError(f"--bad-rows {self.path} is read from: pass another file.")
        if not self.path.parent.is_dir():
            raise UserError(f"There is no folder {self.path.parent} for --bad-rows: make it first.")

    def add(self, file: str, number: int, reason: str, text: str) -> None:
        """Set one aside, once however often it is read."""
        if (file, number) in self.found:
            return
        with self.path.open("a" if self.found else "w", encoding="utf-8", newline="") as out:
            rows = csv.writer(out)
            if not self.found:
                rows.writerow(["file", "row", "reason", "text"])
            rows.writerow([file, number, reason, text])
        self.found.add((file, number))

    def handler(self, file: str) -> Callable[[Any], str]:
        """What pyarrow calls for a row with more values than names, or fewer."""

        def skip(row: Any) -> str:
            reason = f"expected {row.expected_columns} values, got {row.actual_columns}"
            self.add(file, row.number, reason, row.text)
            self.ragged.add((file, row.number))
            return "skip"

        return skip

    def number(self, file: str, place: int) -> int:
        """The number of a row in its file, of its place among those that were divided."""
        number = place + 1
        for gone in sorted(n for name, n in self.ragged if name == file):
            number += gone <= number
        return number

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


def ragged(name: str, reason: str) -> UserError | None:
    """The error for a row with more values than names, or fewer, where it is that."""
    found = _RAGGED.search(reason)
    if found is None:
        return None
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
