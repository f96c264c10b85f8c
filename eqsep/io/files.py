"""Tables in files and folders: opened, read whole or piece by piece."""

import csv
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import pyarrow as pa
import pyarrow.compute as pc

from eqsep.errors import UserError, did_you_mean, quoted
from eqsep.files import FORMATS, READ_AS_TEXT, SHEETS, ending_of
from eqsep.io import text
from eqsep.io.dialect import Layout
from eqsep.io.inference import (
    cast_as,
    is_text,
    notation_of,
    note_unmatched,
    understood,
    without_missing,
    written,
)
from eqsep.io.notation import is_number, strange_dates, strange_numbers
from eqsep.io.notes import note
from eqsep.io.streams import STANDARD_INPUT, raw_stream, read_unchanged
from eqsep.io.text import BadRows, CsvFile, JsonFile
from eqsep.progress import expect, reporter
from eqsep.tables.batches import record_batches
from eqsep.tables.reading import LABELS

if TYPE_CHECKING:
    from pyarrow import dataset

TableFile = Union["ArrowFile", CsvFile, JsonFile]
_FORMATS = FORMATS | READ_AS_TEXT | SHEETS
# What pyarrow and gzip raise for a damaged file, and for names of columns in no encoding.
_DAMAGED = (pa.ArrowException, EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError)
_FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_FIRST_BYTES |= dict.fromkeys((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"), "sheet")  # a zip, or older
_TYPES = {"number": pa.float64(), "duration": pa.float64()}  # of text that is written plainly
_TYPES |= {"date": pa.timestamp("us"), "boolean": pa.bool_()}
_USUAL_TYPES = {pa.string_view(): pa.string(), pa.float16(): pa.float32()}  # for rare types
_FIRST_ROWS = 1000  # rows that are looked at before all of them
_COLUMNS_PER_ROW = 5  # times as many columns as rows
_DISTINCT_TRIED = 20  # distinct values; in a column of numbers or dates, one of them has a digit
_FEW_WORDS = 5  # of a column that are proposed as missing values
_SCORED = ["score", "p_value", "alarm", "kind"]  # columns of scores that eqsep wrote
_LONGEST_HEADER = 2**20  # bytes
_LAST_BYTES = {"parquet": b"PAR1", "arrow": b"ARROW1"}
Choice = Callable[[list[str]], Iterable[str]]  # from the columns of a file to those wanted


def files_of(paths: Iterable[str], *, noted: bool = False) -> list[str]:
    """The files that are named, and those in folders but for what eqsep wrote, which is `noted`."""
    files: list[str] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = sorted(
                str(p)
                for p in path.rglob("*")
                if is_table(p) and not p.name.startswith((".", "_")) and p.is_file()
            )
            results = [file for file in inside if _is_result(file)]
            if results and noted:
                note(f"Left out {quoted(results)}: results that eqsep wrote.")
            inside = [file for file in inside if file not in results]
            if not inside:
                endings = ".csv, .csv.gz, .tsv, .txt, .jsonl, .parquet, .arrow, .feather or .xlsx"
                raise UserError(
                    f"The folder {path} holds no table: expected files that end in {endings}."
                )
            files += inside
        elif given != STANDARD_INPUT and not path.exists():
            raise UserError(f"There is no file {path}: check its name and folder.")
        else:
            files.append(given)
    return files


def _is_result(path: str) -> bool:
    """Whether the columns of a file are those of scores, or of rows that could not be read."""
    kind, names = _format_of(path), []
    with suppress(*_DAMAGED, ValueError, OSError, csv.Error):
        if kind in _LAST_BYTES:
            names = arrow_file(path, kind).columns
        elif kind == "text":
            with raw_stream(path) as raw:
                line = raw.readline(_LONGEST_HEADER).decode()
            names = list(json.loads(line)) if line[:1] == "{" else next(csv.reader([line]), [])
    results = [name.removeprefix("eqsep_") for name in names]
    is_scored = any(results[i : i + len(_SCORED)] == _SCORED for i in range(len(results)))
    return names == [*BadRows.COLUMNS] or (names[:1] == ["row"] and is_scored)


def _expected(files: list[str]) -> list[str]:
    """The files; reports how many bytes they have, unless one is a pipe."""
    if all(file != STANDARD_INPUT and Path(file).is_file() for file in files):
        expect(sum(Path(file).stat().st_size for file in files), "bytes")
    return files


def check_not_read(out: str | Path | None, paths: Iterable[str | Path]) -> None:
    """Refuse before the work to write over a file that is read."""
    if out is None or not Path(out).is_file():
        return
    there = (str(path) for path in paths if Path(path).exists())  # others are refused later
    if any(Path(path).samefile(out) for path in files_of(there)):
        raise UserError(f"{out} is also read: write to another file, or its content is lost.")


@contextmanager
def open_file(
    path: str, *, layout: Layout, bad_rows: BadRows | None = None
) -> "Iterator[TableFile]":
    """A file, or standard input, as a table; errors about its content name it.

    Rows that cannot be read go to `bad_rows`; without it, the first of them is an error.
    """
    if bad_rows is not None:
        bad_rows.check(path)
    name = "Standard input" if path == STANDARD_INPUT else path
    file: TableFile | None = None
    try:
        kind = _format_of(path)
        with (
            read_unchanged(path, may_grow=kind == "text"),
            _opened(path, kind, layout, bad_rows=bad_rows) as file,
        ):
            yield file
    except _DAMAGED as error:
        reason = " ".join(str(error).split()).rstrip(".")
        line = None
        if isinstance(file, CsvFile) and text.RAGGED.search(reason):
            line = text.ragged_line(path, file)
        raise text.not_divided(name, reason, line=line) from error
    except OSError as error:
        if error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        raise UserError(f"{name} cannot be read: {error.strerror or error}.") from error


def _format_of(path: str) -> str:
    """The format of a file by its name, else by its first bytes."""
    if path == STANDARD_INPUT:
        return "text"
    known = _FORMATS.get(ending_of(path))
    if known is not None:
        return "text" if known in ("csv", "jsonl") else known
    if not Path(path).is_file():
        return "text"
    with Path(path).open("rb") as file:
        first = file.read(max(map(len, _FIRST_BYTES)))
    return next((kind for mark, kind in _FIRST_BYTES.items() if first.startswith(mark)), "text")


def _opened(
    path: str, kind: str, layout: Layout, *, bad_rows: BadRows | None
) -> "AbstractContextManager[TableFile]":
    if kind == "text":
        return text.open_text(path, layout, bad_rows=bad_rows)
    if not Path(path).is_file():
        raise UserError(f"{path} is a pipe or a device: these are only read as text. Copy it.")
    if kind == "sheet":
        return nullcontext(text.open_sheet(path, layout, bad_rows=bad_rows))
    return nullcontext(arrow_file(path, kind))


def whole(
    paths: Sequence[str],
    *,
    layout: Layout,
    bad_rows: BadRows | None = None,
    as_text: Iterable[str] = (),
    but: Iterable[str] = (),
    for_fit: bool = True,
) -> pa.Table:
    """All rows of the files, in types that all values allow; columns `as_text` stay text."""
    as_text, but = list(as_text), list(but)
    tables: list[pa.Table] = []
    for path in _expected(files_of(paths, noted=True)):
        with open_file(path, layout=layout, bad_rows=bad_rows) as file:
            chosen([*as_text, *but], file.columns, name=file.name)
            layout.check_missing(file.columns, name=file.name)
            columns = [column for column in file.columns if column not in but]
            if not for_fit and isinstance(file, ArrowFile):
                columns = file.without_nested(columns)
            table = file.whole(columns, as_text=as_text)
            if isinstance(file, ArrowFile):  # typed: no word is missing unless it was given
                table = understood(table, layout, as_text=columns)
            if tables and set(columns) != set(tables[0].schema.names):
                apart = sorted(set(columns) ^ set(tables[0].schema.names))
                raise UserError(
                    f"{file.name} has other columns than the files before it: {quoted(apart)} not "
                    f"in all of them. Pass files of one table."
                )
            tables.append(table)
    note_unmatched(tables, layout)
    table = joined(tables).replace_schema_metadata()
    if for_fit and not table.num_rows:
        raise no_rows(paths)
    without_names = table.column_names[:2] == ["c1", "c2"]
    if without_names and table.num_columns > _COLUMNS_PER_ROW * max(table.num_rows, 10):
        size = f"{table.num_columns:,} columns without names and only {table.num_rows:,} rows"
        note(f"The table has {size}. If each column is a sample, transpose it first.")
    return table


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables of several files below each other, in types that all their values allow."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise UserError(f"Types differ from file to file: {error}. Convert them.") from error


def no_rows(paths: Iterable[str]) -> UserError:
    return UserError(f"{', '.join(paths)} has no rows: expected a header and rows below it.")


def pieces(
    paths: Sequence[str],
    choose: Choice,
    *,
    layout: Layout,
    bad_rows: BadRows | None = None,
    find_bad: Callable[[pa.Table], dict[str, Any]] | None = None,
) -> Iterator[tuple[str, pa.Table]]:
    """Some thousand rows at a time, each with the name of their file; text files give strings."""
    for path in _expected(files_of(paths, noted=True)):
        before = 0
        with open_file(path, layout=layout, bad_rows=bad_rows) as file:
            try:
                wanted = list(choose(file.columns))
            except UserError as error:
                raise error.at(file.name) from error
            columns = chosen(wanted, file.columns, name=file.name)
            for table in file.pieces(columns):
                rows = table.num_rows
                if bad_rows is not None and find_bad is not None:
                    bad = find_bad(table)
                    table = bad_rows.without(table, file.name, bad, before=before)
                before += rows
                yield file.name, table


def chosen(wanted: Iterable[str], there: Sequence[str], *, name: str) -> list[str]:
    """The wanted columns, each once, if all of them exist."""
    wanted = list(dict.fromkeys(wanted))
    absent = [column for column in wanted if column not in there]
    if absent:
        raise UserError(
            f"{name} has no column {quoted(absent)}: its columns are {quoted(there)}."
            f"{did_you_mean(absent, there)}"
        )
    return wanted


def is_table(path: Path) -> bool:
    return ending_of(path) in _FORMATS


def cast(column: pa.ChunkedArray, reads: str, written: Sequence[Any] = ()) -> pa.ChunkedArray:
    """Strings in the type of a kind of column, if all of them can be; else as they are.

    Words for a missing value are null, also numbers in a typed column.
    """
    if not is_text(column.type):
        words = [word for notation in written for word in notation.missing]
        return without_missing(column, words)[0] if words else column
    if not written:
        if reads == "text":
            return column
        with suppress(pa.ArrowInvalid, KeyError):
            return pc.cast(column, _TYPES[reads])
    return cast_as(column, reads, written)


@dataclass(frozen=True)
class ArrowFile:
    """A Parquet or Arrow file, whose columns have types."""

    name: str
    data: "dataset.Dataset"

    @property
    def columns(self) -> list[str]:
        return self.data.schema.names

    def whole(self, columns: Sequence[str], *, as_text: Iterable[str] = ()) -> pa.Table:  # noqa: ARG002
        table = self._checked(self.data.to_table(columns=list(columns)))
        reporter("bytes")(Path(self.name).stat().st_size)
        return table

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        yield self._checked(self.data.schema.empty_table().select(list(columns)))
        report = reporter("bytes")
        row_size = Path(self.name).stat().st_size / max(self.data.count_rows(), 1)
        for batch in record_batches(self.data, list(columns), text.ROWS_AT_ONCE):
            yield self._checked(pa.Table.from_batches([batch]))
            report(row_size * batch.num_rows)

    def without_nested(self, columns: Sequence[str]) -> list[str]:
        """The columns without those of lists, structures or bytes, with a note."""
        kinds = {name: self.data.schema.field(name).type for name in columns}
        left = [name for name, kind in kinds.items() if not _is_plain(kind)]
        if left:
            note(f"{self.name}: left out {quoted(left)}, which hold lists or bytes.")
        return [name for name in columns if name not in left]

    def _checked(self, table: pa.Table) -> pa.Table:
        for i, field in enumerate(table.schema):
            if field.type in _USUAL_TYPES:
                column = table.column(i).cast(_USUAL_TYPES[field.type])
                table = table.set_column(i, field.name, column)
            value = getattr(field.type, "value_type", field.type)
            if "string" in str(value):
                table.column(i).validate(full=True)  # a damaged file may hold other bytes
            if not _is_plain(field.type):
                raise UserError(
                    f"Column {field.name!r} of {self.name} holds values of type {field.type}: "
                    f"expected numbers, booleans, text, dates or durations. Leave it out."
                )
        return table


def _is_plain(kind: pa.DataType) -> bool:
    """Whether a type is one of numbers, texts, dates and the like."""
    value = getattr(kind, "value_type", kind)
    return not (pa.types.is_nested(kind) or "binary" in str(value))


def arrow_file(path: str, kind: str) -> ArrowFile:
    """A Parquet or Arrow file; refused if it was cut off."""
    from pyarrow import dataset  # which imports pandas

    last = _LAST_BYTES[kind]
    with Path(path).open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - len(last), 0))
        if file.read() != last:
            raise UserError(
                f"{path} cannot be read: it does not end as {kind.capitalize()} files do. Check "
                f"that it is complete."
            )
    return ArrowFile(path, dataset.dataset(path, format=kind))


def count_values(path: str) -> int:
    from pyarrow import parquet

    with suppress(pa.ArrowException, OSError):  # reported when it is read
        found = parquet.read_metadata(path)
        return found.num_rows * found.num_columns
    return 0


def with_categories(
    table: pa.Table, categorical: Iterable[str], *, labels: Sequence[str] = ()
) -> pa.Table:
    """The table with some columns as categories, and labels marked; notes constant columns."""
    _note_same(table.drop_columns(list(labels)))
    for name in labels:
        index = table.schema.get_field_index(name)
        field = table.schema.field(index).with_metadata({LABELS: b"true"})
        table = table.set_column(index, field, table.column(index))
    for name in categorical:
        column = table.column(name)
        if not pa.types.is_dictionary(column.type):
            index = table.schema.get_field_index(name)
            table = table.set_column(index, name, column.dictionary_encode())
    return table


def _note_same(table: pa.Table) -> None:
    """Note the columns without a value, or with the same one in all rows."""
    empty, constant = list[str](), list[str]()
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if (
            len(pc.unique(column.slice(0, _FIRST_ROWS))) == 1
            and len(found := pc.unique(column)) == 1
        ):
            (constant if found[0].is_valid else empty).append(name)
    if empty:
        note(f"Empty columns: {quoted(empty)}.")
    if constant and table.num_rows > 1:
        note(f"Constant columns: {quoted(constant)}.")


def mixed_columns(table: pa.Table, *, categorical: Iterable[str] = ()) -> "Iterator[MixedColumn]":
    """Columns of text that are nearly all numbers or dates, unless they are categorical."""
    for field in table.schema:
        if not pa.types.is_string(field.type) or field.name in categorical:
            continue
        values = pc.unique(table.column(field.name).drop_null())
        if not pc.any(pc.match_substring_regex(values[:_DISTINCT_TRIED], r"\d")).as_py():
            continue
        texts = values.to_pylist()
        found = {"numbers": strange_numbers(texts), "dates": strange_dates(texts)}
        yield from (MixedColumn(field.name, what, odd) for what, odd in found.items() if odd)


@dataclass(frozen=True)
class MixedColumn:
    """A column of numbers, or dates, with other words among them."""

    name: str
    what: str
    others: Sequence[str]

    @property
    def few_words(self) -> list[str]:
        """The first of the others that are not numbers in another notation."""
        return [other for other in self.others if not is_number(other)][:_FEW_WORDS]

    def words(self) -> dict[str, str]:
        word = next((f"{self.name}={other}" for other in self.few_words), "")
        hint = "Correct it, leave the column out (drop), or call it categorical."
        if word:
            hint += f" If that is a missing value, pass missing=[{word!r}]."
        return {
            "message": f"Column {self.name!r} holds {self.what} and also "
            f"{quoted(self.others, most=3)}.",
            "hint": hint,
            "topic": "mixed_column_or_missing" if word else "mixed_column",
            "word": word,
        }


@dataclass(frozen=True)
class TypedPieces:
    """Batches of the rows of files, in the types that the first rows show."""

    paths: list[str]
    choose: Choice
    layout: Layout
    bad_rows: BadRows | None = None

    def __iter__(self) -> Iterator[pa.Table]:
        schema: pa.Schema | None = None
        done = 0
        tables = pieces(self.paths, self.choose, layout=self.layout, bad_rows=self.bad_rows)
        for name, table in tables:
            if not table.num_rows:
                continue
            if schema is None:
                schema = understood(table, self.layout).schema
            yield _typed(table, schema, name=name, before=done)
            done += table.num_rows


def _typed(table: pa.Table, schema: pa.Schema, *, name: str, before: int) -> pa.Table:
    columns = {}
    for field in schema:
        kind = _kind(field.type)
        notation, _ = notation_of(field)
        known = None if notation is None else notation.state()
        field_read = table.schema.field(field.name)
        column = cast(table.column(field.name), kind, written(field_read, known))
        if kind != "text" and is_text(column.type):
            bad = text.unreadable(column, field.name, kind)
            if bad is None:
                column = pa.chunked_array([pa.nulls(len(column), _TYPES[kind])])
            else:
                row = pc.index(bad, True).as_py()
                raise UserError(
                    f"{name}, row {before + row + 1}: column {field.name!r} holds "
                    f"{column[row].as_py()!r}, but its first rows hold values of kind {kind!r}.",
                    hint="Correct it, or read the whole table at once with read_table.",
                )
        columns[field.name] = column
    return pa.table(columns)


def _kind(kind: pa.DataType) -> str:
    """What a column of this type holds, in the words of the encoder."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_temporal(kind):
        return "date" if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else "duration"
    return "number" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else "text"
