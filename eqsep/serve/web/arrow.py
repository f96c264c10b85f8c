"""Rows and answers as Arrow streams. A stream is checked before a value of it is touched."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from eqsep.errors import UserError
from eqsep.serve.web.limits import Limits
from eqsep.serve.web.rows import TooMany, counted_rows, finite

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
_COLUMNS = {
    "score": pa.float64(),
    "p_value": pa.float64(),
    "alarm": pa.bool_(),
    "kind": pa.string(),
    "id": pa.int64(),
    "version": pa.int64(),
    "error": pa.string(),
}
_PLAIN = (
    *(types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null),
    *(types.is_string, types.is_large_string),
)
_TIMES = (types.is_timestamp, types.is_date)
_COMPRESSED = 3  # the field of a record batch that says so, in the format's own table
_HEADER_TYPE, _HEADER = 1, 2  # the fields of a message
_DICTIONARY, _BATCH = 2, 3  # types of a header


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
    if not any(is_it(kind) for is_it in _PLAIN):
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
