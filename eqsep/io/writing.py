"""Tables written to files piece by piece, checked before the work."""

import csv
import gzip
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import csv as arrow_csv

from eqsep.errors import EqsepWarning, UserError, visible, warn
from eqsep.files import FORMATS, ending_of, written_whole
from eqsep.io.inference import plain_type
from eqsep.tables.reading import arrow_numbers

STANDARD_OUTPUT = "-"
SPREADSHEET = "spreadsheet"  # CSV in which nothing is a formula
_AS_TEXT = ("csv", SPREADSHEET)
_FORMULA = re.compile(r"^[=@\t\r]|^[+-].*[A-Za-z(|!]")
_RUN = (
    "Some texts of the output begin with =, +, - or @: a spreadsheet would run them as formulas. "
    f"In the format {SPREADSHEET!r} they are written as text, after an apostrophe."
)
_DIGITS, _SMALLEST_SCORE = 6, 1e-300
Write = Callable[[pa.Table], None]


def output_format(out: str, wanted: str | None) -> str:
    """The format that was asked for, or that the ending of the name sets."""
    if wanted == SPREADSHEET:
        return SPREADSHEET
    kind = FORMATS.get(wanted or ("csv" if out == STANDARD_OUTPUT else ending_of(out)))
    if kind is None:
        expected = ", ".join((*FORMATS, SPREADSHEET))
        raise UserError(
            f"{wanted or out!r} is not a known table format: expected one of {expected}, as the "
            f"format or the end of the name."
        )
    if kind in ("parquet", "arrow") and (out == STANDARD_OUTPUT or out.endswith(".gz")):
        raise UserError(f"{kind} is only written to files, not to {out}: choose the format csv.")
    return kind


def check_table_out(out: str) -> None:
    if out == STANDARD_OUTPUT:
        return
    if Path(out).is_dir():
        raise UserError(f"{out} is a folder: pass the name of a file for the scores.")
    check_folder(Path(out))


def check_folder(path: Path) -> None:
    """Refuse a file in a folder that does not exist or is not writable."""
    if not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent}: make it first.")
    if not os.access(path.parent, os.W_OK):
        raise UserError(
            f"No file can be written in the folder {path.parent}: permission denied. "
            f"Change its permissions, or pass another folder."
        )


@contextmanager
def table_writer(out: str, kind: str) -> Iterator[Write]:
    """A function that appends a table; a file appears at the end, unless there is an error."""
    path = Path(out)
    if out == STANDARD_OUTPUT:
        file = _Terminal(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
        with _writer(file, kind) as write:
            yield write
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        with path.open("wb") as device, _writer(device, kind) as write:
            yield write
    else:
        with written_whole(path) as file:
            # zipped without the file's temporary name
            packed = gzip.GzipFile("", "wb", fileobj=file) if out.endswith(".gz") else None
            with packed or nullcontext(file) as target, _writer(target, kind) as write:
                yield write


class _Terminal:
    """A terminal, to which control characters go as visible text."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(visible(data.decode()).encode())


@contextmanager
def _writer(file: Any, kind: str) -> Iterator[Write]:
    opened: list[Any] = []
    schema: pa.Schema | None = None

    def write(table: pa.Table) -> None:
        nonlocal schema
        if kind in _ENCODERS:
            file.write(_ENCODERS[kind](table, not opened))
            opened.append(file)
            return
        if not opened:
            schema = _with_types(table)
            if not table.num_rows:
                return  # without rows, types are not known yet
            opened.append(_OPENERS[kind](file, schema))
        opened[0].write_table(_in_types(table, schema))

    try:
        yield write
        if not opened and schema is not None:
            opened.append(_OPENERS[kind](file, schema))
    finally:
        if opened and kind in _OPENERS:
            opened[0].close()


def _with_types(table: pa.Table) -> pa.Schema:
    """The schema of scores, with types for the columns of text before them."""
    schema = table.schema
    if table.num_rows:
        for i in range(schema.get_field_index("score")):
            if pa.types.is_string(schema.field(i).type):
                schema = schema.set(i, pa.field(schema.names[i], plain_type(table.column(i))))
    return schema


def _in_types(table: pa.Table, schema: pa.Schema | None) -> pa.Table:
    if schema is None or table.schema.equals(schema):
        return table
    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        raise UserError(
            f"A kept column has values of different types: {error}. Keep it in a CSV file."
        ) from error


def _csv(table: pa.Table, first: bool, *, safe: bool = False) -> bytes:
    for i, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = pa.array(map(_in_words, table.column(i).to_pylist()), pa.string())
            table = table.set_column(i, field.name, texts)
    table = _without_formulas(table, safe=safe)
    header = io.StringIO()
    if first:
        csv.writer(header, lineterminator="\n").writerow(table.schema.names)
    return header.getvalue().encode() + _csv_rows(table)


def _without_formulas(table: pa.Table, *, safe: bool) -> pa.Table:
    """Quote texts that a spreadsheet would run as formulas, if `safe`; else warn of them."""
    risky = False
    for i, field in enumerate(table.schema):
        kind = getattr(field.type, "value_type", field.type)  # of a dictionary
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            continue
        column = table.column(i).cast(pa.string())
        formulas = pc.match_substring_regex(column, _FORMULA.pattern)
        if not pc.any(formulas).as_py():
            continue
        risky = True
        if safe:
            quoted = pc.binary_join_element_wise("'", column, "")
            table = table.set_column(i, field.name, pc.if_else(formulas, quoted, column))
    names = [f"'{name}" if _FORMULA.search(name) else name for name in table.column_names]
    if safe:
        return table.rename_columns(names)
    if risky or names != table.column_names:
        warn(EqsepWarning(_RUN))
    return table


def _csv_rows(table: pa.Table) -> bytes:
    """The rows, with quotes only where they are needed."""
    options = arrow_csv.WriteOptions(include_header=False, quoting_style="none")
    sink = pa.BufferOutputStream()
    try:
        arrow_csv.write_csv(table, sink, options)
    except pa.ArrowInvalid:  # some value has a quote, a comma or a line break
        texts = [column.cast(pa.string()).to_pylist() for column in table.columns]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(zip(*texts, strict=True))
        return out.getvalue().encode()
    return sink.getvalue().to_pybytes()


def _in_words(reasons: list[dict[str, Any]] | None) -> str | None:
    if reasons is None:
        return None
    return "; ".join(
        f"{r['column'] or '(no name)'} = {r['value']} "
        f"({'usual by itself; normal here' if r['usual'] else 'normal'}: {r['normal_value']}) "
        f"{r['contribution']:+.3f}"
        for r in reasons
    )


def _jsonl(table: pa.Table, first: bool) -> bytes:  # noqa: ARG001  no header
    rows = ({k: None if v != v else v for k, v in row.items()} for row in table.to_pylist())
    lines = (json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in rows)
    return "".join(lines).encode()


def _parquet(file: Any, schema: pa.Schema) -> Any:
    from pyarrow.parquet import ParquetWriter  # with file systems that need the network

    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return ParquetWriter(file, schema, compression="zstd", use_dictionary=texts or False)


_ENCODERS: dict[str, Any] = {"csv": _csv, SPREADSHEET: partial(_csv, safe=True), "jsonl": _jsonl}
_OPENERS: dict[str, Any] = {"parquet": _parquet, "arrow": pa.ipc.new_file}


def as_column(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """An Arrow array of values that all exist; `pyarrow.array` would import pandas, slowly."""
    if pa.types.is_nested(kind):
        return pa.array(values, kind)
    if pa.types.is_string(kind):
        places = {text: i for i, text in enumerate(dict.fromkeys(values))}  # often few
        texts = [text.encode() for text in places]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
        distinct = pa.Array.from_buffers(kind, len(texts), buffers)
        rows = np.fromiter(map(places.__getitem__, values), np.int64, len(values))
        return distinct.take(as_column(rows, pa.int64()))
    if pa.types.is_boolean(kind):
        held = np.packbits(values, bitorder="little")
    else:
        held = np.ascontiguousarray(values, dtype=np.int64 if pa.types.is_int64(kind) else float)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(held)])


def with_nulls(values: np.ndarray) -> pa.Array:
    """An Arrow array of numbers, with a null in place of each NaN."""
    missing = np.isnan(values)
    mask = as_column(~missing, pa.bool_()).buffers()[1] if missing.any() else None
    held = pa.py_buffer(np.ascontiguousarray(values, dtype=float))
    return pa.Array.from_buffers(pa.float64(), len(values), [mask, held])


def shortened(table: pa.Table, kind: str) -> pa.Table:
    """The table with scores and probabilities of six digits, if it is written as text."""
    if kind not in _AS_TEXT:
        return table
    for name in {"score", "p_value", "kind_probability"}.intersection(table.column_names):
        values = arrow_numbers(table.column(name))
        size = np.floor(np.log10(np.maximum(np.abs(values), _SMALLEST_SCORE)))
        factor = 10.0 ** np.clip(_DIGITS - 1 - size, 0, 15)  # powers of ten that are exact
        place = table.schema.get_field_index(name)
        rounded = with_nulls(np.round(values * factor) / factor)
        table = table.set_column(place, name, rounded)
    return table
