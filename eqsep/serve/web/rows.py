"""Rows of requests, in JSON, CSV and Arrow; each is checked alone, so a bad one harms no other."""

import csv
import io
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from eqsep.arrays import objects
from eqsep.detector.model import Model
from eqsep.errors import UserError, quoted
from eqsep.serve.intake import run_columns
from eqsep.serve.texts import Invalid
from eqsep.serve.web.limits import Limits, TooMany
from eqsep.tables.reading import LARGEST, Column, UnreadableError

_DATE = "a date as in 2026-01-31T12:00:00"
_READ = {"number": "a number", "date": _DATE, "duration": "seconds", "time": f"a number or {_DATE}"}
_NUMBERS = {int, float, bool, type(None)}
_PLAIN = {*_NUMBERS, str}
_CHARACTERS_SHOWN = 60  # characters of a value in a message
_PARTS = 25  # objects and lists in JSON for each row that a request may have
_CELL = 16  # bytes of a value of Arrow, at least
Row = dict[str, Any]
ARROW = "application/vnd.apache.arrow.stream"
_ANSWER = pa.schema(
    {"score": "double", "p_value": "double", "alarm": "bool", "kind": "string"}
    | {"kind_probability": "double", "id": "int64", "version": "int64", "error": "string"}
)
_TYPES = (
    *(types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null),
    *(types.is_string, types.is_large_string),
    *(types.is_timestamp, types.is_date, types.is_duration),
)


@dataclass(frozen=True)
class RowError:
    """What is wrong with a row, by its place in the request."""

    row: int
    error: str


@dataclass(frozen=True)
class CheckedRows:
    """The good rows of a request, their places in it, and the errors of the others."""

    n_rows: int
    rows: list[Row] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    errors: list[RowError] = field(default_factory=list)

    def spread(self, answers: Sequence[Any]) -> list[Any]:
        """An answer for each row of the request: None for a bad one."""
        if len(answers) == self.n_rows:
            return list(answers)
        out: list[Any] = [None] * self.n_rows
        for place, answer in zip(self.places, answers, strict=True):
            out[place] = answer
        return out


class RowChecker:
    """Checks rows: each has every column of the fit, or null, and with windows, run and time."""

    def __init__(self, model: Model, limits: Limits) -> None:
        learnt = model.plan.table_columns
        self.reads = {name: column.reads for name, column in learnt.items() if column is not None}
        group, time = run_columns(model.plan)
        self._run = [name for name in (group, time) if name is not None]
        self.reads |= {name: "time" if name == time else "text" for name in self._run}
        self._limits = limits
        self._names = frozenset(self.reads)
        self._readable = [name for name, reads in self.reads.items() if reads in _READ]
        self._has_dates = not {"date", "time"}.isdisjoint(self.reads.values())

    def check(self, rows: Sequence[Any]) -> CheckedRows:
        """The rows that can be scored, and the errors of the others."""
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
        """A row of CSV: numbers are read, and an empty text is a missing value."""
        out: Row = {name: value if value != "" else None for name, value in row.items()}
        for name in self._readable:
            if isinstance(out.get(name), str) and self.reads[name] != "date":
                with suppress(ValueError):  # the check will refuse it
                    out[name] = finite(float(out[name]))
        return out

    def _problem(self, row: Any) -> str | None:
        if type(row) is not dict:
            return f"expected an object of columns and values, got {_shown(row)}"
        if not row.keys() >= self._names:
            absent = [name for name in self.reads if name not in row]
            return f"missing columns: {quoted(absent)}. Pass null where a value is not known"
        for name in self._run:
            if row[name] is None:
                return f"column {_shown(name)}: expected a value in every row, as windows need it"
        if len(row) > self._limits.columns:
            return f"expected at most {self._limits.columns:,} columns, got {len(row):,}"
        for name in row.keys() - self._names:
            if "\0" in name or len(name) > self._limits.text:
                return f"column {_shown(name)}: a name cannot be this long, or contain U+0000"
        for name, value in row.items():
            if type(value) not in _PLAIN:
                return f"column {_shown(name)}: expected a single value, got {_shown(value)}"
            if type(value) is str and "\0" in value:
                return f"column {_shown(name)}: text cannot contain the character U+0000"
            if type(value) is str and len(value) > self._limits.text:
                most = f"expected at most {self._limits.text:,} characters, got {len(value):,}"
                return f"column {_shown(name)}: {most}"
        if not self._has_dates and _NUMBERS.issuperset(map(type, map(row.get, self._readable))):
            return None
        for name in self._readable:
            value, reads = row[name], self.reads[name]
            if reads == "time":
                reads = "date" if isinstance(value, str) else "number"
            try:
                Column(name, "mixed", objects([value])).numbers(reads)
            except UnreadableError:
                expected = _READ[self.reads[name]]
                return f"column {_shown(name)}: expected {expected}, got {_shown(value)}"
        return None


def json_rows(body: bytes, limits: Limits) -> list[Any]:
    """The rows of `{"rows": [...]}`, or an object without `rows` as one row."""
    read = parsed(body, limits)
    rows = read.get("rows", [read]) if isinstance(read, dict) else read
    if not isinstance(rows, list):
        raise UserError(f'Expected {{"rows": [...]}} or one row as an object, got {_shown(read)}.')
    return counted_rows(rows, limits)


def parsed(body: bytes, limits: Limits) -> Any:
    """The content of a body in JSON: without NaN and infinity, and counted before it is made."""
    # Characters within texts count too, so no value can be hidden.
    n_parts, n_values = body.count(b"{") + body.count(b"["), body.count(b",")
    if n_parts > _PARTS * limits.rows or n_values > limits.values:
        raise TooMany(
            f"Expected at most {limits.values:,} values in {limits.rows:,} rows: send them in "
            f"several requests."
        )
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"Expected JSON in UTF-8: {error}.") from error


def csv_rows(body: bytes, limits: Limits, *, reader: RowChecker) -> CheckedRows:
    """Rows of CSV in UTF-8: names in the first line, commas between values."""
    try:
        lines = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
        names = next(lines, [])
        if len(set(names)) < len(names):
            raise UserError("Expected each column name only once in the first line of the CSV.")
        values = counted_rows(list(islice(filter(None, lines), limits.rows + 1)), limits)
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
    """The same rows, unless there are none or too many."""
    if not rows:
        raise UserError("Expected at least one row, got none.")
    if len(rows) > limits.rows:
        raise TooMany(
            f"Expected at most {limits.rows:,} rows in a request, got {len(rows):,}: send them in "
            f"several."
        )
    return rows


def finite(value: Any) -> Any:
    """A number as JSON can hold it: NaN is missing, and infinity is 1e300."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if value != value else math.copysign(LARGEST, value)


def _shown(value: Any) -> str:
    """A value in a message, shortened; of lists and objects only what they are."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value[: _CHARACTERS_SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _CHARACTERS_SHOWN else f"{text[:_CHARACTERS_SHOWN]}…"


def arrow_rows(body: bytes, limits: Limits) -> list[dict[str, Any]]:
    """The rows of an Arrow stream; a few bytes can stand for gigabytes, so values are counted."""
    try:
        _refuse_compressed(body)
        with pa.ipc.open_stream(body) as stream:
            names = stream.schema.names
            if len(set(names)) < len(names) or len(names) > limits.columns:
                raise UserError(f"Expected each column once, at most {limits.columns:,} in all.")
            columns: list[list[Any]] = [[] for _ in names]
            n_rows = n_bytes = 0
            for batch in stream:
                n_rows += batch.num_rows
                if n_rows > limits.rows or n_rows * len(names) > limits.values:
                    most = f"{limits.rows:,} rows of {limits.values:,} values"
                    raise TooMany(f"Expected at most {most} in a request.")
                batch.validate(full=True)
                n_bytes += sum(_n_bytes(column, limits) for column in batch.columns)
                if n_bytes > limits.decoded:
                    raise TooMany(f"Expected at most {limits.decoded:,} bytes of values.")
                for values, column in zip(columns, batch.columns, strict=True):
                    values.extend(_values(column))
    except UserError:
        raise
    except (pa.ArrowException, OSError, ValueError, IndexError, OverflowError) as error:
        raise UserError("Expected a readable Arrow stream.") from error
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return counted_rows(rows, limits)


def answers_stream(answers: Sequence[Any], errors: dict[int, str]) -> bytes:
    """Answers as an Arrow stream of one batch, a row for each row of the request."""
    rows = [{"error": errors.get(i)} if a is None else vars(a) for i, a in enumerate(answers)]
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, _ANSWER) as stream:
        stream.write_table(pa.Table.from_pylist(rows, _ANSWER))
    return out.getvalue().to_pybytes()


def _values(column: Any) -> list[Any]:
    is_coded = types.is_dictionary(column.type)
    kind = column.type.value_type if is_coded else column.type
    if not any(is_it(kind) for is_it in _TYPES):  # before a dictionary of lists is written out
        raise UserError(
            f"A column of type {kind} cannot be read: expected numbers, booleans, text, dates "
            f"or durations."
        )
    column = column.dictionary_decode() if is_coded else column
    if types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz))
    if types.is_timestamp(kind) or types.is_date(kind):
        return [None if value is None else value.isoformat() for value in column.to_pylist()]
    if types.is_duration(kind):
        micros = column.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
        return [None if value is None else value / 1e6 for value in micros]
    if types.is_decimal(kind) or types.is_float16(kind):
        column = column.cast(pa.float64())
    values = column.to_pylist()
    return [finite(value) for value in values] if types.is_floating(column.type) else values


def _n_bytes(column: Any, limits: Limits) -> int:
    """The bytes of all values of a column, with a text of a dictionary counted at each index."""
    is_coded = types.is_dictionary(column.type)
    texts = column.dictionary if is_coded else column
    if not (types.is_string(texts.type) or types.is_large_string(texts.type)):
        return _CELL * len(column)
    lengths = pc.binary_length(texts).cast(pa.int64())
    if (pc.max(lengths).as_py() or 0) > 4 * limits.text:
        raise TooMany(f"Expected text of at most {limits.text:,} characters.")
    lengths = lengths.take(column.indices) if is_coded else lengths
    return _CELL * len(column) + int(pc.sum(lengths).as_py() or 0)


def _refuse_compressed(body: bytes) -> None:
    """Refuse compressed batches by their FlatBuffers headers, as pyarrow does not name them."""
    # The header is field 2 of a message, the batch field 1 of a dictionary, the compression field 3
    # of a batch.
    for message in pa.ipc.MessageReader.open_stream(body):
        if message.type not in ("dictionary", "record batch"):
            continue
        metadata = message.metadata.to_pybytes()
        table = int.from_bytes(metadata[:4], "little")
        for number in (2, 1) if message.type == "dictionary" else (2,):
            at = _field(metadata, table, number)
            if at is not None:
                table = at + int.from_bytes(metadata[at : at + 4], "little")
        if _field(metadata, table, 3) is not None:
            raise UserError("Send the stream without compression.")


def _field(buffer: bytes, table: int, number: int) -> int | None:
    """The position of a field in a table of FlatBuffers, if it is present."""
    entries = table - int.from_bytes(buffer[table : table + 4], "little", signed=True)
    size = int.from_bytes(buffer[entries : entries + 2], "little")
    at = 4 + 2 * number
    offset = int.from_bytes(buffer[entries + at : entries + at + 2], "little") if at < size else 0
    return table + offset if offset else None
