"""Text files as tables: CSV, plain or gzipped, and JSON lines.

Text has no types. A fit takes those that all values of a column allow. What is read piece by piece
comes as strings: a model reads them as its own kinds of column, in every piece alike.
"""

import io
import json
import weakref
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from eqsep.commands.bad_rows import BadRows, no_numbers
from eqsep.commands.dialects import Dialect, Layout, detect
from eqsep.commands.notation import Notation
from eqsep.commands.streams import (
    QUOTE,
    STANDARD_INPUT,
    Lines,
    Rejoined,
    Remembered,
    await_release,
    decoded,
    decoded_head,
    lines_of,
    not_encoded,
    raw_stream,
    read_fully,
)
from eqsep.commands.texts import annotated, understood, without_missing
from eqsep.errors import Note, UserError, quoted, warn
from eqsep.tables.reading import PLAINLY

ROWS_AT_ONCE = 8192
NOT_UTF8 = "Some text is not UTF-8 and was read as cp1252, of Western Europe; --encoding says it."
_AT_ONCE = 3  # blocks that are parsed
_ASCII = 128
_BLOCK = 2**20  # bytes that are parsed at once, one block after the other
_LARGEST = 2**22  # likewise, in the long run, of whole lines in blocks beside each other
_MOST_JSON = 2**25  # likewise of JSON
_TRUTHS = {True: "true", False: "false"}


@dataclass(frozen=True)
class CsvFile:
    """A CSV file of which the header has been read; `rows` is the stream of what follows."""

    name: str
    rows: Any
    dialect: Dialect
    layout: Layout

    @property
    def columns(self) -> list[str]:
        return list(self.dialect.columns)

    def whole(self, columns: Sequence[str], *, as_text: Iterable[str] = ()) -> pa.Table:
        """All rows, in types that all values of a column allow; some columns as they are."""
        table = self._decoded(self._parsed(arrow_csv.read_csv, self._from_first(), columns))
        table = _without_bad(table, self.name, self.layout, but=as_text)
        return understood(table, self.layout, as_text=as_text)

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows as strings, some thousand at a time."""
        try:
            yield self._block(b"", columns)
            rest = b"" if self.layout.bad_rows is not None else (yield from self._blocks(columns))
            yield from self._streamed(rest, columns)
        finally:
            self.rows.end()

    def _blocks(self, columns: Sequence[str]) -> Generator[pa.Table, None, bytes]:
        """Blocks of whole lines, several parsed at a time, up to one with a quote; what is left.

        Within quotes the end of a line is part of a value: where lines end is not known then.
        """
        waiting, rest, end, size = deque[Future[pa.Table]](), b"", 1, _BLOCK
        with ThreadPoolExecutor(1 + _AT_ONCE) as pool:
            reading = pool.submit(read_fully, self.rows, size)
            try:
                while end:
                    wait({reading, *islice(waiting, 1)}, return_when=FIRST_COMPLETED)
                    if waiting and (waiting[0].done() or len(waiting) > _AT_ONCE):
                        yield waiting.popleft().result()
                    elif reading.done():
                        block = reading.result()
                        end = 0 if QUOTE in block else block.rfind(b"\n") + 1
                        lines, rest = rest + block[:end], block[end:] if end else rest + block
                        if end:
                            size = min(2 * size, _LARGEST)
                            reading = pool.submit(read_fully, self.rows, size)
                            waiting.append(pool.submit(self._block, lines, columns))
                while waiting:
                    yield waiting.popleft().result()
            except BaseException:
                self.rows.end()  # nobody waits for more, which may never come
                pool.shutdown(cancel_futures=True)
                raise
        return rest

    def _block(self, lines: bytes, columns: Sequence[str]) -> pa.Table:
        """Whole lines without a quote."""
        rows = pa.BufferReader(b"\n" + lines)
        parsed = self._parsed(arrow_csv.read_csv, rows, columns, quotes=False, size=len(lines))
        return self._decoded(parsed)

    def _streamed(self, first: bytes, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of these bytes and of the stream after them, parsed one after the other."""
        source = Remembered(b"\n" + first, self.rows, most=2 * _BLOCK)
        rows: Any = io.BufferedReader(source, _BLOCK)
        held, batches = weakref.ref(rows), None
        try:
            batches = self._parsed(arrow_csv.open_csv, rows, columns)
            rows = None
            for batch in batches:
                yield self._decoded(pa.Table.from_batches([batch]))
            if source.ends_within_quotes(self.dialect.delimiter):
                raise UserError(
                    f"{self.name} ends within quotes: one before is never closed, and what follows "
                    f"it would be lost. Close it, or leave it out."
                )
        finally:
            self.rows.end()
            rows = batches = None
            await_release(held)

    def _from_first(self) -> io.BufferedReader:
        """The rows after a blank line, which is skipped: pyarrow refuses files without any."""
        return io.BufferedReader(Rejoined(b"\n", self.rows), _BLOCK)

    def _parsed(
        self,
        parse: Callable[..., Any],
        rows: Any,
        columns: Sequence[str],
        *,
        quotes: bool = True,
        size: int = 0,
    ) -> Any:
        """The rows, with columns of text as bytes: whether these are UTF-8 is seen afterwards."""
        bad = self.layout.bad_rows  # without threads, these have numbers
        return parse(
            rows,
            read_options=arrow_csv.ReadOptions(
                column_names=self.columns, block_size=max(size + 1, _BLOCK), use_threads=bad is None
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.dialect.delimiter,
                quote_char='"' if quotes else False,
                newlines_in_values=quotes,
                invalid_row_handler=None if bad is None else bad.handler(self.name),
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(columns), column_types=dict.fromkeys(columns, pa.binary())
            ),
        )

    def _decoded(self, table: pa.Table) -> pa.Table:
        """The table with bytes as strings, empty ones missing, and how these are written."""
        columns, missing = [], pa.nulls(1, pa.string())[0]
        nothing = pa.StringArray.from_buffers(1, pa.py_buffer(bytes(8)), pa.py_buffer(b""))[0]
        for name, coded in zip(table.column_names, table.columns, strict=True):
            if (plain := _plain_texts(coded)) is not None:
                columns.append(plain)
                continue
            try:
                column = coded.cast(pa.string())
            except pa.ArrowInvalid:
                column = self._western(coded, name)
            columns.append(pc.if_else(pc.equal(column, nothing), missing, column))
        fields = [self._fields[name] for name in table.column_names]
        return pa.table(columns, schema=pa.schema(fields))

    @cached_property
    def _fields(self) -> dict[str, pa.Field]:
        return {name: self._field(name) for name in self.columns}

    def _field(self, name: str) -> pa.Field:
        """A column of strings, and how these are written."""
        notation = self.dialect.notation(name)
        certain = self.dialect.decimal is not None
        if notation is None or notation == Notation():
            plainly = PLAINLY if notation is not None and certain else None
            return pa.field(name, pa.string(), metadata=plainly)
        return annotated(pa.field(name, pa.string()), notation, certain=certain)

    def _western(self, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        """Bytes that are no UTF-8 as text in the encoding of Western Europe."""
        if self.layout.encoding is not None:
            raise not_encoded(f"Column {name!r} of {self.name}", self.layout.encoding)
        warn(Note(NOT_UTF8))
        coded = column.combine_chunks().dictionary_encode()
        texts = pa.array(map(decoded, coded.dictionary.to_pylist()), pa.string())
        return pa.chunked_array([texts.take(coded.indices)])


def _plain_texts(coded: pa.ChunkedArray) -> pa.Array | None:
    """Bytes as the strings that they are, without a copy; None where not all are ASCII, or empty.

    Arrow's own cast looks at each value for itself, which takes as long as the parsing.
    """
    if coded.num_chunks != 1 or coded.null_count:
        return None
    chunk = coded.chunk(0)
    _, offsets, data = chunk.buffers()
    ends = np.frombuffer(offsets, np.int32)[chunk.offset :][: len(chunk) + 1]
    texts = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    if not (ends[1:] > ends[:-1]).all() or texts.max(initial=0) >= _ASCII:
        return None
    return pa.Array.from_buffers(pa.string(), len(chunk), chunk.buffers(), 0, chunk.offset)


@dataclass(frozen=True)
class JsonFile:
    """JSON lines: an object a line. Its columns are the names in the first rows."""

    name: str
    columns: list[str]
    rows: Iterator[list[dict[str, Any]]]
    layout: Layout

    def whole(self, columns: Sequence[str], *, as_text: Iterable[str] = ()) -> pa.Table:
        """All rows, in the types of their values; text in types that all of a column allow."""
        rows = list(chain.from_iterable(self.rows))
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
        return understood(pa.table(arrays), self.layout, as_text=texts)

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows as strings, some thousand at a time."""
        for rows in self.rows:
            yield pa.table(
                {c: pa.array([_text(row.get(c)) for row in rows], pa.string()) for c in columns}
            )


@contextmanager
def open_text(path: str, layout: Layout) -> Iterator[CsvFile | JsonFile]:
    """A text file, or standard input: JSON lines where it begins with a brace, else CSV."""
    name = "standard input" if path == STANDARD_INPUT else path
    with raw_stream(path) as raw:
        head, stream = decoded_head(raw, layout, name=name)
        try:
            if head.lstrip().startswith(b"{"):
                yield _json_file(name, lines_of(Rejoined(head, stream), name=name), layout)
            else:
                tabs = ".tsv" in Path(path).suffixes
                yield csv_file(name, head, stream, layout, tabs=tabs)
        finally:
            stream.end()


def csv_file(name: str, head: bytes, stream: Any, layout: Layout, *, tabs: bool = False) -> CsvFile:
    """A CSV file that begins with `head`, whole lines, and goes on with `stream`."""
    text = decoded(head)
    dialect = detect(text, layout, name=name, tabs=tabs)
    check_once(dialect.columns, name)
    for said in dialect.said:
        warn(Note(f"{said[0].upper()}{said[1:]}."))
    try:
        before = len(text[: dialect.before].encode())
        head.decode()
    except UnicodeDecodeError as error:
        if layout.encoding is not None:
            raise not_encoded(f"The first lines of {name}", layout.encoding) from error
        before = dialect.before
        warn(Note(NOT_UTF8))
    rows = Rejoined(head[before:], stream)
    if dialect.split is not None:
        rows = Rejoined(b"", Lines(lines_of(rows, name=name), dialect.split))
    return CsvFile(name, rows, dialect, layout)


def _json_file(name: str, lines: Iterable[bytes], layout: Layout) -> JsonFile:
    rows = _json_rows(lines, name, layout.bad_rows)
    first = next(rows)
    columns = list(dict.fromkeys(key for row in first for key in row))
    return JsonFile(name, columns, chain([first], rows), layout)


def _json_rows(
    lines: Iterable[bytes], name: str, bad: BadRows | None
) -> Iterator[list[dict[str, Any]]]:
    """The rows, some thousand at a time, or fewer where they are long."""
    rows: list[dict[str, Any]] = []
    size = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(_json_row(line))
        except UserError as error:
            if bad is None:
                raise error.at(f"Line {number:,} of {name}") from error
            bad.add(name, number, str(error), decoded(line).strip())
        size += len(line)
        if len(rows) >= ROWS_AT_ONCE or size > _MOST_JSON:
            yield rows
            rows, size = [], 0
    yield rows


def _json_row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UserError(f"This is no JSON: {error}.") from error
    except RecursionError as error:
        raise UserError("This is nested too deep to be read.") from error
    if not isinstance(row, dict):
        raise UserError("This is no JSON object: expected {'column': value, …}.")
    return row


def _without_bad(table: pa.Table, name: str, layout: Layout, *, but: Iterable[str]) -> pa.Table:
    """The table without rows that have a word in a column of numbers, where these are wanted."""
    if layout.bad_rows is None:
        return table
    bad: dict[str, Any] = {}
    for column in set(table.schema.names) - set(but):
        values, _ = without_missing(table.column(column), layout.missing_in(column))
        mask = no_numbers(values)
        if mask is not None:
            bad[column] = mask
    return layout.bad_rows.without(table, name, bad, before=0) if bad else table


def _text(value: Any) -> str | None:
    """A value of JSON as it would stand in a CSV file."""
    if value is None or isinstance(value, str):
        return value or None
    return _TRUTHS[value] if isinstance(value, bool) else json.dumps(value)


def check_once(columns: Sequence[str], name: str) -> None:
    """Refuse two columns of one name."""
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise UserError(
            f"{name} has more than one column {quoted(twice)}: rename them, or pass --no-header if "
            f"its first line holds values."
        )
