"""Text files and spreadsheets as tables: CSV and JSON lines; bad rows set aside in a file."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import time
import weakref
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from eqsep.arrays import objects
from eqsep.errors import MissingExtraError, UserError, counted, did_you_mean, quoted
from eqsep.files import written_whole
from eqsep.io import cells, streams
from eqsep.io.dialect import Dialect, Layout, detect
from eqsep.io.inference import annotated, understood, without_missing
from eqsep.io.notation import Notation, strange_numbers
from eqsep.io.notes import note
from eqsep.io.streams import QUOTE, STANDARD_INPUT, Parts, Rejoined, decoded
from eqsep.io.writing import check_folder
from eqsep.progress import reporter
from eqsep.tables.reading import PLAINLY, Column, UnreadableError

ROWS_AT_ONCE = 8192
_PARALLEL_BLOCKS = 3  # blocks that are parsed in parallel
_ASCII = 128
BLOCK = 2**20  # bytes that are parsed at once
LARGEST_BLOCK = 2**22  # bytes of a block of whole lines, in the long run
_MAX_JSON_BYTES = 2**25  # bytes of JSON lines
_TRUTHS = {True: "true", False: "false"}
RAGGED = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+): (.*)")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_CHARACTERS_SHOWN = 80  # characters of a row
_MAX_SHARE_OF_MISTAKES = 0.1  # the largest share of distinct values that are set aside as mistakes


class BadRows:
    """The file of bad rows: of each the file, the number, the reason, and its text."""

    COLUMNS = ("file", "row", "reason", "text")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[tuple[str, int], str] = {}  # the reason by file and number
        self._before: dict[str, list[int]] = {}  # good rows before each ragged one
        self._rows: Any = None

    def check(self, used: str | Path) -> None:
        """Refuse to write over a file that the command reads or writes."""
        if self.path.exists() and Path(used).exists():
            same = self.path.samefile(used)
        else:
            same = self.path.absolute() == Path(used).absolute()
        if same:
            raise UserError(
                f"Bad rows cannot go to {self.path}, which is read or written: pass another file."
            )

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write the file after rows were read, if some are bad; not after an error of the user."""
        check_folder(self.path)
        if self.path.exists() and not self.path.is_file():
            raise UserError(f"{self.path} is not a file: pass the name of one for bad rows.")
        if next(self._records(), [*self.COLUMNS]) != [*self.COLUMNS]:
            raise UserError(f"{self.path} exists and is not a file of bad rows: pass another name.")
        with SpooledTemporaryFile(BLOCK, "w+", encoding="utf-8", newline="") as spool:
            self._rows = csv.writer(spool)
            try:
                yield
            except (UserError, OSError, MemoryError):
                if self.found:
                    (file, number), reason = next(iter(self.found.items()))
                    first = f"the first is row {number} of {file}: {reason}"
                    note(f"{counted(len(self.found), 'row')} could not be read; {first}.")
                raise
            except Exception:  # a command may end with an exit code
                self._write(spool)
                raise
            self._write(spool)

    def _write(self, new: Any) -> None:
        """Write the records of other files that are there, and the new ones."""
        if not self.found:
            return
        read = {file for file, _ in self.found}
        with written_whole(self.path) as file:
            out = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
            rows = csv.writer(out)
            rows.writerow(self.COLUMNS)
            rows.writerows(row for row in islice(self._records(), 1, None) if row[0] not in read)
            new.seek(0)
            shutil.copyfileobj(new, out)
            out.detach()
        note(f"{counted(len(self.found), 'row')} could not be read: {self.path}.")

    def _records(self) -> Iterator[list[str]]:
        """The lines of the file that is there, with the header; none if it is not there."""
        if not self.path.exists():
            return
        longest = csv.field_size_limit(2**31 - 1)
        try:
            with self.path.open(encoding="utf-8", errors="replace", newline="") as file:
                yield from filter(None, csv.reader(file))
        finally:
            csv.field_size_limit(longest)

    def add(self, file: str, number: int, reason: str, text: str) -> None:
        """Set a row aside, once however often it is read."""
        if (file, number) not in self.found:
            self._rows.writerow([file, number, reason, text])
            self.found[file, number] = reason

    def handler(self, file: str) -> Callable[[Any], str]:
        """What pyarrow calls for each row with more values than names, or fewer, in order."""
        before = self._before.setdefault(file, [])

        def skip(row: Any) -> str:
            if (file, row.number) not in self.found:
                reason = f"expected {row.expected_columns} values, got {row.actual_columns}"
                self.add(file, row.number, reason, row.text)
                before.append(row.number - len(before))
            return "skip"

        return skip

    def number(self, file: str, place: int) -> int:
        """The number of a row in its file, from its place among the rows that are not ragged."""
        return place + 1 + bisect_right(self._before.get(file, []), place + 1)

    def without(self, table: pa.Table, file: str, bad: dict[str, Any], *, before: int) -> pa.Table:
        """Set aside rows with a bad value; `bad` has a mask of these by column."""
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


def ragged_line(path: str, file: "CsvFile") -> tuple[int, str] | None:
    """The first line with more values than names, or fewer, and its number; None if unknown."""
    if path == STANDARD_INPUT or not Path(path).is_file() or file.dialect.split is not None:
        return None
    with streams.raw_stream(path) as raw:
        head, stream = streams.decoded_head(raw, file.layout, name=path)
        lines = map(decoded, streams.lines_of(Rejoined(head, stream), name=path))
        start = decoded(head)[: file.dialect.before].count("\n")
        rows = csv.reader(lines, delimiter=file.dialect.delimiter)
        before = 0
        with suppress(csv.Error, UserError):
            for row in rows:
                if before >= start and row and len(row) != len(file.columns):
                    return before + 1, file.dialect.delimiter.join(row)
                before = rows.line_num
    return None


def not_divided(name: str, reason: str, *, line: tuple[int, str] | None = None) -> UserError:
    """The error for a file whose rows do not have one value for each name."""
    found = RAGGED.search(reason)
    if found is None:
        if "straddling" in reason:
            reason = "a row is longer than 1 MB, or a quote is never closed"
        if "duplicate field" in reason:  # of Parquet and Arrow
            return UserError(f"{name} has more than one column of the same name: rename them.")
        return UserError(f"{name} cannot be read: {reason}. Check that it is complete.")
    row, expected, got, text = found.groups()
    place = name if row is None else f"{name}, row {row}"
    if line is not None:
        place, text = f"{name}, line {line[0]}", line[1]
    return UserError(
        f"{place}: expected {expected} values, got {got}: {text[:_CHARACTERS_SHOWN]!r}.",
        hint="Correct it, or set such rows aside: bad_rows=FILE.",
        topic="ragged_row",
    )


def no_numbers(column: Any) -> Any:
    """A mask of the values that are not numbers if nearly all others are; else None."""
    values = pc.unique(column.drop_null()).to_pylist()
    others = strange_numbers(values)
    if not others or len(others) > _MAX_SHARE_OF_MISTAKES * len(values):
        return None
    return pc.is_in(column, value_set=pa.array(others, column.type))


def unreadable(column: Any, name: str, reads: str) -> Any:
    """A mask of the texts that cannot be read as a kind of column; None if all can."""
    bad = []
    for value in pc.unique(column.drop_null()).to_pylist():
        try:
            Column(name, "text", objects([value])).numbers(reads)
        except UnreadableError:
            bad.append(value)
    return pc.is_in(column, value_set=pa.array(bad, column.type)) if bad else None


@dataclass(frozen=True)
class CsvFile:
    """A CSV file after its header; `rows` is the stream of what follows."""

    name: str
    rows: Any
    dialect: Dialect
    layout: Layout
    bad_rows: BadRows | None = None
    noted: Event = field(default_factory=Event)  # set after the note that text is not UTF-8

    @property
    def columns(self) -> list[str]:
        return list(self.dialect.columns)

    def whole(self, columns: Sequence[str], *, as_text: Iterable[str] = ()) -> pa.Table:
        """All rows, in types that all values of a column allow; some columns as text."""
        # after a blank line, which is skipped: pyarrow refuses files without any
        rows = io.BufferedReader(Rejoined(b"\n", self.rows), BLOCK)
        table = self._decoded(self._parsed(arrow_csv.read_csv, rows, columns))
        if self.bad_rows is not None:
            bad = {}
            for name in table.column_names:
                values, _ = without_missing(table.column(name), self.layout.missing_in(name))
                if name not in as_text and (mask := no_numbers(values)) is not None:
                    bad[name] = mask
            table = self.bad_rows.without(table, self.name, bad, before=0)
        return understood(table, self.layout, as_text=as_text)

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        try:
            yield self._block(b"", columns)
            rest = b"" if self.bad_rows is not None else (yield from self._blocks(columns))
            yield from self._streamed(rest, columns)
        finally:
            self.rows.end()

    def _blocks(self, columns: Sequence[str]) -> Generator[pa.Table, None, bytes]:
        """Parse lines in parallel up to a quote, in which a line may end; return what is left."""
        waiting, rest, end, size = deque[Future[pa.Table]](), b"", 1, BLOCK
        with ThreadPoolExecutor(1 + _PARALLEL_BLOCKS) as pool:
            reading = pool.submit(streams.read_fully, self.rows, size)
            try:
                while end:
                    wait({reading, *islice(waiting, 1)}, return_when=FIRST_COMPLETED)
                    if waiting and (waiting[0].done() or len(waiting) > _PARALLEL_BLOCKS):
                        yield waiting.popleft().result()
                    elif reading.done():
                        block = reading.result()
                        end = 0 if QUOTE in block else block.rfind(b"\n") + 1
                        lines, rest = rest + block[:end], block[end:] if end else rest + block
                        if end:
                            size = min(2 * size, LARGEST_BLOCK)
                            reading = pool.submit(streams.read_fully, self.rows, size)
                            waiting.append(pool.submit(self._block, lines, columns))
                while waiting:
                    yield waiting.popleft().result()
            except BaseException:
                self.rows.end()  # or the pool would wait for rows that may never come
                pool.shutdown(cancel_futures=True)
                raise
        return rest

    def _block(self, lines: bytes, columns: Sequence[str]) -> pa.Table:
        rows = pa.BufferReader(b"\n" + lines)
        parsed = self._parsed(arrow_csv.read_csv, rows, columns, quotes=False, size=len(lines))
        return self._decoded(parsed)

    def _streamed(self, first: bytes, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of these bytes and of the stream after them, parsed in sequence."""
        source = streams.Remembered(b"\n" + first, self.rows, most=2 * BLOCK)
        rows: Any = io.BufferedReader(source, BLOCK)
        held, batches = weakref.ref(rows), None
        try:
            batches = self._parsed(arrow_csv.open_csv, rows, columns)
            rows = None
            for batch in batches:
                yield self._decoded(pa.Table.from_batches([batch]))
            if source.ends_within_quotes(self.dialect.delimiter):
                raise UserError(
                    f"{self.name} ends inside quotes: an earlier quote is never closed, and what "
                    f"follows it would be lost. Close or remove it."
                )
        finally:
            self.rows.end()
            rows = batches = None
            deadline = time.monotonic() + 1  # a thread of pyarrow that holds it at exit would abort
            while held() is not None and time.monotonic() < deadline:
                time.sleep(0.001)

    def _parsed(
        self,
        parse: Callable[..., Any],
        rows: Any,
        columns: Sequence[str],
        *,
        quotes: bool = True,
        size: int = 0,
    ) -> Any:
        """The rows, with columns as bytes, which may not be UTF-8."""
        bad = self.bad_rows  # numbered only without threads
        return parse(
            rows,
            read_options=arrow_csv.ReadOptions(
                column_names=self.columns, block_size=max(size + 1, BLOCK), use_threads=bad is None
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
        """The table with bytes as strings, null if empty, and their notation."""
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
        fields = {name: pa.field(name, pa.string()) for name in self.columns}
        certain = self.dialect.decimal is not None
        for name, notation in self.dialect.notations.items():
            plain = fields[name]
            if notation == Notation():
                fields[name] = plain.with_metadata(PLAINLY if certain else None)
            elif notation is not None:
                clear = certain or bool(notation.dates)
                fields[name] = annotated(plain, notation, certain=clear)
        return fields

    def _western(self, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        """Bytes that are not UTF-8 as text in the encoding of Western Europe."""
        if self.layout.encoding is not None:
            raise streams.not_encoded(f"Column {name!r} of {self.name}", self.layout.encoding)
        note_other(self.noted)
        coded = column.combine_chunks().dictionary_encode()
        texts = pa.array(map(decoded, coded.dictionary.to_pylist()), pa.string())
        return pa.chunked_array([texts.take(coded.indices)])


def note_other(noted: Event) -> None:
    """Note once for a file that some of its text is not UTF-8."""
    if not noted.is_set():
        noted.set()
        message = "Some text is not UTF-8 and was read as cp1252"
        note(f"{message}; if that is wrong, name its encoding.")


def _plain_texts(coded: pa.ChunkedArray) -> pa.Array | None:
    """Bytes as strings, faster than Arrow's cast; None if some are empty or not ASCII."""
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
    """JSON lines, one object a line; the columns are the keys of the first rows."""

    name: str
    columns: list[str]
    rows: Iterator[list[dict[str, Any]]]
    layout: Layout

    def whole(self, columns: Sequence[str], *, as_text: Iterable[str] = ()) -> pa.Table:
        """All rows, in the types of their values; text in types that all values allow."""
        rows = list(chain.from_iterable(self.rows))
        texts = set(as_text)
        arrays = {}
        for column in columns:
            values = [row.get(column) for row in rows]
            try:
                arrays[column] = pa.array(map(_text, values) if column in texts else values)
            except (pa.ArrowException, OverflowError):  # of several types: as in a CSV file
                arrays[column] = pa.array(map(_text, values), pa.string())
        return understood(pa.table(arrays), self.layout, as_text=texts)

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        for rows in self.rows:
            texts = {c: [_text(row.get(c)) for row in rows] for c in columns}
            yield pa.table({c: pa.array(values, pa.string()) for c, values in texts.items()})


@contextmanager
def open_text(
    path: str, layout: Layout, *, bad_rows: BadRows | None = None
) -> Iterator[CsvFile | JsonFile]:
    """A text file, or standard input: JSON lines if it begins with a brace, else CSV."""
    name = "standard input" if path == STANDARD_INPUT else path
    with streams.raw_stream(path) as raw:
        head, stream = streams.decoded_head(raw, layout, name=name)
        try:
            if head.lstrip().startswith(b"{"):
                lines = streams.lines_of(Rejoined(head, stream), name=name)
                rows = _json_rows(lines, name, bad_rows)
                first = next(rows)
                columns = list(dict.fromkeys(key for row in first for key in row))
                yield JsonFile(name, columns, chain([first], rows), layout)
            else:
                tabs = ".tsv" in Path(path).suffixes
                yield csv_file(name, head, stream, layout, bad_rows=bad_rows, tabs=tabs)
        finally:
            stream.end()


def csv_file(
    name: str,
    head: bytes,
    stream: Any,
    layout: Layout,
    *,
    bad_rows: BadRows | None = None,
    tabs: bool = False,
) -> CsvFile:
    """A CSV file that begins with `head`, whole lines, and goes on with `stream`."""
    text, noted = decoded(head), Event()
    dialect = detect(text, layout, name=name, tabs=tabs)
    check_once(dialect.columns, name)
    for said in dialect.said:
        note(f"{said[0].upper()}{said[1:]}.")
    try:
        before = len(text[: dialect.before].encode())
        head.decode()
    except UnicodeDecodeError as error:
        if layout.encoding is not None:
            raise streams.not_encoded(f"The first lines of {name}", layout.encoding) from error
        before = dialect.before
        note_other(noted)
    rows: Rejoined | Parts = Rejoined(head[before:], stream)
    if bad_rows is not None and layout.encoding is None:
        rows = Parts(streams.western(rows, name=name, on_other=lambda: note_other(noted)), rows)
    if dialect.split is not None:
        rows = Parts(streams.divided(rows, dialect.split, name=name), rows)
    return CsvFile(
        name=name, rows=rows, dialect=dialect, layout=layout, bad_rows=bad_rows, noted=noted
    )


def open_sheet(path: str, layout: Layout, *, bad_rows: BadRows | None = None) -> CsvFile:
    """A spreadsheet, whose titles, headers and columns of text are read as those of CSV."""
    said = replace(layout, delimiter=",", encoding=None)
    head, stream = streams.decoded_head(io.BytesIO(_cells(path, layout.sheet)), said, name=path)
    reporter("bytes")(Path(path).stat().st_size)
    return csv_file(path, head, stream, said, bad_rows=bad_rows)


def _cells(path: str, wanted: str | None) -> bytes:
    """The wanted sheet, or the first with cells, read in another process."""
    try:
        import python_calamine  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f'{path} needs python-calamine: pip install "eqsep[excel]", or save it as CSV.'
        ) from error
    Path(path).open("rb").close()  # or raises why it cannot be opened
    words = [sys.executable, "-P", cells.__file__, path, wanted or ""]
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode == cells.REFUSED:
        reason = done.stderr.decode(errors="replace").rstrip(".")
        raise UserError(f"{path} cannot be read: {reason}. Check that it is complete.")
    if done.returncode:
        raise UserError(f"{path} is damaged, or takes more than 4 GB. Save the sheet as CSV.")
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
        note(f"Read the sheet {name!r} of {quoted(there)}; name another sheet to read it.")
    return done.stdout


def _json_rows(
    lines: Iterable[bytes], name: str, bad: BadRows | None
) -> Iterator[list[dict[str, Any]]]:
    """The rows, some thousand at a time, or fewer if they are long."""
    rows: list[dict[str, Any]] = []
    size = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(_json_row(line))
        except UserError as error:
            if bad is None:
                raise error.at(f"Line {number} of {name}") from error
            bad.add(name, number, str(error), decoded(line).strip())
        size += len(line)
        if len(rows) >= ROWS_AT_ONCE or size > _MAX_JSON_BYTES:
            yield rows
            rows, size = [], 0
    yield rows


def _json_row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UserError(f"This is not JSON: {error}.") from error
    except RecursionError as error:
        raise UserError("This is nested too deeply to be read.") from error
    if _SURROGATE.search(line):
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise UserError(f"This holds {half!r}, half of a character. Correct it.") from error
    if not isinstance(row, dict):
        raise UserError("This is not a JSON object: expected {'column': value, …}.")
    return row


def _text(value: Any) -> str | None:
    """A value of JSON as in a CSV file."""
    if value is None or isinstance(value, str):
        return value or None
    return _TRUTHS[value] if isinstance(value, bool) else json.dumps(value)


def check_once(columns: Sequence[str], name: str) -> None:
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise UserError(
            f"{name} has more than one column {quoted(twice)}.",
            hint="Rename them, or pass header=False if the first line holds values.",
            topic="repeated_names",
        )
