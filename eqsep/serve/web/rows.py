"""Rows of requests, in JSON, CSV and Arrow; each is checked alone against the model's columns.

A bad row gets an error of its own, and the others are served.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from eqsep.arrays import objects
from eqsep.detector import Detector
from eqsep.errors import UserError, quoted
from eqsep.serve.runs import run_columns
from eqsep.serve.web.limits import Limits, TooMany
from eqsep.tables.reading import LARGEST, Column, UnreadableError

_DATE = "a date as in 2026-01-31T12:00:00"
_READ = {"number": "a number", "date": _DATE, "duration": "seconds", "time": f"a number or {_DATE}"}
_NUMBERS = {int, float, bool, type(None)}
_PLAIN = {*_NUMBERS, str}
_SHOWN = 60  # characters of a value in a message
Row = dict[str, Any]
ARROW = "application/vnd.apache.arrow.stream"
_COLUMNS = {
    "score": pa.float64(),
    "p_value": pa.float64(),
    "alarm": pa.bool_(),
    "kind": pa.string(),
    "id": pa.int64(),
    "version": pa.int64(),
    "error": pa.string(),
}
_PLAIN_TYPES = (
    *(types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null),
    *(types.is_string, types.is_large_string),
)
_TIMES = (types.is_timestamp, types.is_date)
_COMPRESSED = 3  # the field of a record batch that says so, in the format's own table
_HEADER_TYPE, _HEADER = 1, 2  # the fields of a message
_DICTIONARY, _BATCH = 2, 3  # types of a header


@dataclass(frozen=True)
class RowError:
    """What is wrong with the row at this place of a request."""

    row: int
    error: str


@dataclass(frozen=True)
class CheckedRows:
    """The good rows of a request, their places in it, and what is wrong with the others."""

    n_rows: int
    rows: list[Row] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    errors: list[RowError] = field(default_factory=list)

    def spread(self, answers: Sequence[Any]) -> list[Any]:
        """An answer for each row of the request: None where the row was bad."""
        if len(answers) == self.n_rows:
            return list(answers)
        out: list[Any] = [None] * self.n_rows
        for place, answer in zip(self.places, answers, strict=True):
            out[place] = answer
        return out


class RowReader:
    """Checks rows against the columns of a detector.

    A row must have every column that the detector was fitted with; null says that a value is
    missing. Columns that it does not know may come along: they are kept with the row. A model with
    windows also needs the columns of the run and of the time, which cannot be missing.

    Examples
    --------
    >>> detector = Detector(bandwidth=1.0, n_landmarks=30, random_state=0)
    >>> detector = detector.fit([{"x": float(i % 7), "shape": "ab"[i % 2]} for i in range(600)])
    >>> reader = RowReader(detector, Limits())
    >>> checked = reader.check([{"x": 1, "shape": "a"}, {"x": "wide", "shape": "a"}, {"x": 2}])
    >>> checked.places
    [0]
    >>> for error in checked.errors:
    ...     print(error.row, error.error)
    1 column 'x': expected a number, got 'wide'
    2 missing columns: 'shape'. Pass null where a value is not known
    """

    def __init__(self, detector: Detector, limits: Limits) -> None:
        learnt = detector.plan_.table_columns
        self.reads = {name: column.reads for name, column in learnt.items() if column is not None}
        group, time = run_columns(detector.plan_)
        self._run = [name for name in (group, time) if name is not None]
        self.reads |= {name: "time" if name == time else "text" for name in self._run}
        self._limits = limits
        self._names = frozenset(self.reads)
        self._readable = [name for name, reads in self.reads.items() if reads in _READ]
        self._dates = [name for name in self._readable if self.reads[name] in ("date", "time")]
        self._numbers = _getter([name for name in self._readable if name not in self._dates])

    def check(self, rows: Sequence[Any]) -> CheckedRows:
        """The rows that can be scored, and what is wrong with the others."""
        checked = CheckedRows(len(rows))
        for place, row in enumerate(rows):
            problem = self._problem(row)
            if problem is None:
                checked.rows.append(row)
                checked.places.append(place)
            else:
                checked.errors.append(RowError(place, problem))
        return checked

    def of_texts(self, row: Row) -> Row:
        """A row of texts, as CSV has it: numbers are read, and what is empty is missing."""
        out: Row = {name: value if value != "" else None for name, value in row.items()}
        for name in self._readable:
            if isinstance(out.get(name), str) and self.reads[name] != "date":
                out[name] = _number(out[name])
        return out

    def _problem(self, row: Any) -> str | None:
        if type(row) is not dict:
            return f"expected an object of columns and values, got {_shown(row)}"
        if not row.keys() >= self._names:
            absent = [name for name in self.reads if name not in row]
            return f"missing columns: {quoted(absent)}. Pass null where a value is not known"
        for name in self._run:
            if row[name] is None:
                return f"column {_shown(name)}: expected a value in every row, as it orders them"
        if len(row) > self._limits.columns:
            return f"expected at most {self._limits.columns:,} columns, got {len(row):,}"
        for name, value in row.items():
            kind = type(value)
            if kind is str:
                if len(value) > self._limits.text or "\0" in value:
                    return self._bad_text(name, value)
            elif kind not in _PLAIN:
                return f"column {_shown(name)}: expected a single value, got {_shown(value)}"
        if self._dates or not _NUMBERS.issuperset(map(type, self._numbers(row))):
            return next(
                filter(None, (self._unread(name, row[name]) for name in self._readable)), None
            )
        return None

    def _bad_text(self, name: str, value: str) -> str:
        if "\0" in value:
            return f"column {_shown(name)}: a text cannot hold the character U+0000"
        most = f"expected at most {self._limits.text:,} characters, got {len(value):,}"
        return f"column {_shown(name)}: {most}"

    def _unread(self, name: str, value: Any) -> str | None:
        """What is wrong with a value that must be a number, a date or a duration."""
        reads = self.reads[name]
        if reads == "time":
            reads = "date" if isinstance(value, str) else "number"
        try:
            Column(name, "mixed", objects([value])).numbers(reads)
        except UnreadableError:
            return f"column {_shown(name)}: expected {_READ[self.reads[name]]}, got {_shown(value)}"
        return None


def json_rows(body: bytes, limits: Limits) -> list[Any]:
    """The rows of `{"rows": [...]}`, or the one row that an object without `rows` is."""
    read = parsed(body)
    rows = read.get("rows", [read]) if isinstance(read, dict) else read
    if not isinstance(rows, list):
        raise UserError(f'Expected {{"rows": [...]}} or one row as an object, got {_shown(read)}.')
    return counted_rows(rows, limits)


def parsed(body: bytes) -> Any:
    """What JSON says."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UserError(f"Expected JSON in UTF-8: {error}.") from error


def csv_rows(body: bytes, limits: Limits, *, reader: RowReader) -> CheckedRows:
    """Rows of CSV in UTF-8: names in the first line, a comma between values, empty is missing."""
    try:
        lines = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
        names = next(lines, [])
        if len(set(names)) < len(names):
            raise UserError("Expected every column's name once in the first line of the CSV.")
        values = _lines(lines, limits)
    except UnicodeDecodeError as error:
        raise UserError("Expected CSV in UTF-8.") from error
    except csv.Error as error:
        raise UserError(f"The CSV cannot be read: {error}.") from error
    width = f"expected {len(names)} values, as in the first line, got"
    ragged = {i: f"{width} {len(v)}" for i, v in enumerate(values) if len(v) != len(names)}
    rows = [reader.of_texts(dict(zip(names, line, strict=False))) for line in values]
    checked = reader.check([row if i not in ragged else None for i, row in enumerate(rows)])
    errors = [RowError(e.row, ragged.get(e.row, e.error)) for e in checked.errors]
    return CheckedRows(checked.n_rows, checked.rows, checked.places, errors)


def counted_rows(rows: list[Any], limits: Limits) -> list[Any]:
    """The same rows, if there are any and not too many."""
    if not rows:
        raise UserError("Expected at least one row, got none.")
    if len(rows) > limits.rows:
        raise TooMany(
            f"Expected at most {limits.rows:,} rows in a request, got {len(rows):,}: send them in "
            f"several."
        )
    return rows


def finite(value: Any) -> Any:
    """A number as JSON can hold it: what is none is missing, and infinity is 1e300."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if value != value else math.copysign(LARGEST, value)


def _lines(lines: Iterable[list[str]], limits: Limits) -> list[list[str]]:
    values = []
    for line in lines:
        if line:
            values.append(line)
        if len(values) > limits.rows:
            break
    return counted_rows(values, limits)


def _number(text: str) -> Any:
    try:
        return finite(float(text))
    except ValueError:
        return text  # the check says what is wrong with it


def _getter(names: list[str]) -> Callable[[Row], Iterable[Any]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda row: [row[name] for name in names]


def _shown(value: Any) -> str:
    """A value in a message: not all of a long one, and nothing of what is inside a list."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def arrow_rows(body: bytes, limits: Limits) -> list[dict[str, Any]]:
    """The rows of an Arrow stream; dates are written as ISO 8601."""
    try:
        _refuse_compressed(body)
        with pa.ipc.open_stream(body) as stream:
            names = stream.schema.names
            if len(set(names)) < len(names) or len(names) > limits.columns:
                raise UserError("Expected every column once, and not too many of them.")
            columns: list[list[Any]] = [[] for _ in names]
            n_rows = 0
            for batch in stream:
                n_rows += batch.num_rows
                if n_rows > limits.rows:
                    raise TooMany(f"Expected at most {limits.rows:,} rows in a request.")
                batch.validate(full=True)
                for values, column in zip(columns, batch.columns, strict=True):
                    values.extend(_values(column, limits))
    except UserError:
        raise
    except (pa.ArrowException, OSError, ValueError, IndexError, OverflowError) as error:
        raise UserError("Expected an Arrow stream that can be read.") from error
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return counted_rows(rows, limits)


def answers_stream(answers: Sequence[Any], errors: dict[int, str]) -> bytes:
    """Answers as an Arrow stream of one batch, a row for each row of the request."""
    arrays = {}
    for name, kind in _COLUMNS.items():
        if name == "error":
            values = [errors.get(i) for i in range(len(answers))]
        else:
            values = [None if answer is None else getattr(answer, name) for answer in answers]
        arrays[name] = pa.array(values, kind)
    table = pa.table(arrays)
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue().to_pybytes()


def _values(column: Any, limits: Limits) -> list[Any]:
    if types.is_dictionary(column.type):
        _check_length(column.dictionary, limits)
        column = column.dictionary_decode()
    kind = column.type
    if any(is_it(kind) for is_it in _TIMES):
        if types.is_timestamp(kind):
            column = column.cast(pa.timestamp("us", kind.tz))
        return [None if value is None else value.isoformat() for value in column.to_pylist()]
    if types.is_duration(kind):
        micros = column.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
        return [None if value is None else value / 1e6 for value in micros]
    if not any(is_it(kind) for is_it in _PLAIN_TYPES):
        raise UserError(
            f"A column of type {kind} cannot be read: expected numbers, truth values, text, dates "
            f"or durations."
        )
    _check_length(column, limits)
    if types.is_decimal(kind) or types.is_float16(kind):
        column = column.cast(pa.float64())
    values = column.to_pylist()
    return [finite(value) for value in values] if types.is_floating(column.type) else values


def _check_length(texts: Any, limits: Limits) -> None:
    """Refuse long texts before many rows of a dictionary get a copy each."""
    if types.is_string(texts.type) or types.is_large_string(texts.type):
        longest = pc.max(pc.binary_length(texts)).as_py()
        if longest is not None and longest > 4 * limits.text:
            raise TooMany(f"Expected texts of at most {limits.text:,} characters.")


def _refuse_compressed(body: bytes) -> None:
    """A few bytes could become gigabytes: compressed batches are not read."""
    messages = pa.ipc.MessageReader.open_stream(body)
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        metadata = message.metadata.to_pybytes()
        root = int.from_bytes(metadata[:4], "little")
        kind = _field(metadata, root, _HEADER_TYPE)
        header = _field(metadata, root, _HEADER)
        if kind is None or header is None or metadata[kind] not in (_DICTIONARY, _BATCH):
            continue
        batch = header + _unsigned(metadata, header)
        if metadata[kind] == _DICTIONARY:
            data = _field(metadata, batch, 1)
            batch = batch if data is None else data + _unsigned(metadata, data)
        if _field(metadata, batch, _COMPRESSED) is not None:
            raise UserError("Send the stream without compression: compressed ones are not taken.")


def _field(buffer: bytes, table: int, number: int) -> int | None:
    """Where a field of a table of FlatBuffers lies; None where it is not there."""
    entries = table - int.from_bytes(buffer[table : table + 4], "little", signed=True)
    size = int.from_bytes(buffer[entries : entries + 2], "little")
    at = 4 + 2 * number
    offset = int.from_bytes(buffer[entries + at : entries + at + 2], "little") if at < size else 0
    return table + offset if offset else None


def _unsigned(buffer: bytes, at: int) -> int:
    return int.from_bytes(buffer[at : at + 4], "little")
