"""Text files as tables: CSV, plain or gzipped, and JSON lines.

Text has no types. A fit takes those that all values of a column allow. What is read piece by piece
comes as strings: a model reads them as its own kinds of column, in every piece alike.
"""

import csv
import gzip
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from eqsep.errors import UserError, quoted

STANDARD_INPUT = "-"
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")
ROWS_AT_ONCE = 8192
_BLOCK = 2**20  # bytes that are parsed at once
_LONGEST_LINE = 2**22  # bytes of a header
_OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", " ": "spaces"}
_TRUTHS = {True: "true", False: "false"}


@dataclass(frozen=True)
class Layout:
    """How text files are laid out.

    Attributes
    ----------
    delimiter : str or None
        What stands between values; None is a comma, in .tsv files a tab.
    header : bool
        Whether the first line names the columns; else they are called c1, c2, …
    """

    delimiter: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        given = self.delimiter
        if given is not None and (len(given) != 1 or not given.isascii() or given in '"\r\n\0'):
            raise UserError(
                f"--delimiter expects one character, no quote or end of a line, got {given!r}. "
                f"Pass ';', for example."
            )


@dataclass(frozen=True)
class CsvFile:
    """A CSV file of which the header has been read."""

    name: str
    columns: list[str]
    rows: Any
    delimiter: str

    def whole(self, columns: Sequence[str], *, as_text: Iterable[str] = ()) -> pa.Table:
        """All rows, in types that all values of a column allow; some columns as they are."""
        texts = [column for column in as_text if column in columns]
        return self._decoded(self._parsed(arrow_csv.read_csv, columns, texts))

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows as strings, some thousand at a time."""
        batches = self._parsed(arrow_csv.open_csv, columns, columns)
        yield self._decoded(batches.schema.empty_table())
        for batch in batches:
            yield self._decoded(pa.Table.from_batches([batch]))

    def _parsed(self, parse: Callable[..., Any], columns: Sequence[str], texts: Any) -> Any:
        """The rows, with columns of text as bytes: whether these are UTF-8 is seen afterwards."""
        # A blank line is skipped, and pyarrow refuses files without any.
        rows = io.BufferedReader(_Rejoined(b"\n", self.rows), _BLOCK)
        return parse(
            rows,
            read_options=arrow_csv.ReadOptions(column_names=self.columns, block_size=_BLOCK),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(columns),
                column_types=dict.fromkeys(texts, pa.binary()),
                null_values=list(MISSING),
            ),
        )

    def _decoded(self, table: pa.Table) -> pa.Table:
        """The table with bytes as strings, empty ones missing; other bytes are no UTF-8."""
        for i, field in enumerate(table.schema):
            if pa.types.is_binary(field.type):
                try:
                    column = table.column(i).cast(pa.string())
                except pa.ArrowInvalid as error:
                    raise not_utf8(f"Column {field.name!r} of {self.name}") from error
                table = table.set_column(i, field.name, column)
        return without_empty_text(table)


@dataclass(frozen=True)
class JsonFile:
    """JSON lines: an object a line. Its columns are the names in the first rows."""

    name: str
    columns: list[str]
    rows: Iterator[dict[str, Any]]

    def whole(self, columns: Sequence[str], *, as_text: Iterable[str] = ()) -> pa.Table:
        """All rows, in the types of their values."""
        rows = list(self.rows)
        texts = set(as_text)
        arrays = {}
        for column in columns:
            values = [row.get(column) for row in rows]
            try:
                arrays[column] = pa.array(map(_text, values) if column in texts else values)
            except (pa.ArrowException, OverflowError) as error:
                raise UserError(
                    f"Column {column!r} of {self.name} holds values of several types, or numbers "
                    f"of more than 64 bits: write them alike, or leave it out with --drop "
                    f"{column!r}."
                ) from error
        return pa.table(arrays)

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows as strings, some thousand at a time."""
        while rows := list(islice(self.rows, ROWS_AT_ONCE)):
            yield pa.table(
                {c: pa.array([_text(row.get(c)) for row in rows], pa.string()) for c in columns}
            )


@contextmanager
def open_text(path: str, layout: Layout) -> Iterator[CsvFile | JsonFile]:
    """A text file, or standard input: JSON lines where it begins with a brace, else CSV."""
    name = "standard input" if path == STANDARD_INPUT else path
    with _stream(path) as stream:
        first = stream.readline(_LONGEST_LINE)
        while first and not first.strip():
            first = stream.readline(_LONGEST_LINE)
        if not first:
            raise UserError(f"{name} is empty: expected a line with the names of the columns.")
        first = first.removeprefix(b"\xef\xbb\xbf")  # the mark that some programs put first
        if first.lstrip().startswith(b"{"):
            yield _json_file(name, chain([first], stream))
        else:
            yield _csv_file(path, name, first, stream, layout)


@contextmanager
def _stream(path: str) -> Iterator[Any]:
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
    elif path.endswith(".gz"):
        with gzip.open(path, "rb") as file:
            yield file
    else:
        with Path(path).open("rb") as file:
            yield file


def _csv_file(path: str, name: str, first: bytes, stream: Any, layout: Layout) -> CsvFile:
    delimiter = layout.delimiter or ("\t" if ".tsv" in Path(path).suffixes else ",")
    try:
        line = first.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(f"The first line of {name}") from error
    columns = next(csv.reader([line], delimiter=delimiter))
    others = {mark: word for mark, word in _OTHERS.items() if mark != delimiter and mark in line}
    if len(columns) == 1 and others:
        mark, word = max(others.items(), key=lambda other: line.count(other[0]))
        raise UserError(
            f"{name} has one column, {columns[0]!r}: it seems to be divided by {word}. Pass "
            f"--delimiter {mark!r}."
        )
    if not layout.header:
        columns = [f"c{i + 1}" for i in range(len(columns))]
        return CsvFile(name, columns, io.BufferedReader(_Rejoined(first, stream)), delimiter)
    check_once(columns, name)
    return CsvFile(name, columns, stream, delimiter)


class _Rejoined(io.RawIOBase):
    """A line that was read, and the stream that goes on after it."""

    def __init__(self, first: bytes, rest: Any) -> None:
        self._first, self._rest = first, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._first[: len(buffer)] or self._rest.read(len(buffer))
        self._first = self._first[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def _json_file(name: str, lines: Iterable[bytes]) -> JsonFile:
    rows = _json_rows(lines, name)
    first = list(islice(rows, ROWS_AT_ONCE))
    columns = list(dict.fromkeys(key for row in first for key in row))
    return JsonFile(name, columns, chain(first, rows))


def _json_rows(lines: Iterable[bytes], name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UserError(f"Line {number:,} of {name} is no JSON: {error}.") from error
        if not isinstance(row, dict):
            raise UserError(
                f"Line {number:,} of {name} is no JSON object: expected {{'column': value, …}}."
            )
        yield row


def _text(value: Any) -> str | None:
    """A value of JSON as it would stand in a CSV file."""
    if value is None or isinstance(value, str):
        return value or None
    return _TRUTHS[value] if isinstance(value, bool) else json.dumps(value)


def without_empty_text(table: pa.Table) -> pa.Table:
    """The table with empty strings as missing values."""
    for i, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            column = table.column(i)
            filled = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
            table = table.set_column(i, field, filled)
    return table


def check_once(columns: Sequence[str], name: str) -> None:
    """Refuse two columns of one name."""
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise UserError(
            f"{name} has more than one column {quoted(twice)}: rename them, or pass --no-header if "
            f"its first line holds values."
        )


def not_utf8(what: str) -> UserError:
    """The error for text in another encoding."""
    return UserError(
        f"{what} is not UTF-8: convert the file, for example by iconv -f latin1 -t utf-8."
    )
