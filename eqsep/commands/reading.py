"""What commands read: tables from files and folders, whole or piece by piece, and models."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from eqsep.commands.bad_rows import not_divided, unreadable
from eqsep.commands.console import meant, sentence
from eqsep.commands.dialects import Layout
from eqsep.commands.sheets import open_sheet
from eqsep.commands.streams import STANDARD_INPUT, read_unchanged
from eqsep.commands.text_files import CsvFile, JsonFile, open_text
from eqsep.commands.texts import cast_as, written
from eqsep.detector.calibration import checked_rate
from eqsep.detector.model import Model
from eqsep.detector.plan import Plan
from eqsep.errors import UserError, quoted
from eqsep.files import FORMATS, READ_AS_TEXT, SHEETS, ending_of
from eqsep.persistence import ModelFileError, load_model, read_model
from eqsep.persistence.container import MAGIC
from eqsep.tables.reading import NUMERIC, PLAINLY, Table, UnreadableError, read_table

if TYPE_CHECKING:
    from eqsep.commands.arrow_files import ArrowFile
    from eqsep.detector import Detector  # which needs scikit-learn

_FORMATS = FORMATS | READ_AS_TEXT | SHEETS
_TYPES = {
    "number": pa.float64(),
    "duration": pa.float64(),
    "date": pa.timestamp("us"),
    "boolean": pa.bool_(),
}  # of text that is written plainly
Choice = Callable[[list[str]], Iterable[str]]  # from the columns of a file to those wanted of it


def files_of(paths: Iterable[str]) -> list[str]:
    """The files that are named, and those in the folders that are; refuses what is not there.

    Examples
    --------
    >>> files_of(["-"])
    ['-']
    """
    files: list[str] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = sorted(
                str(p)
                for p in path.rglob("*")
                if is_table(p) and not p.name.startswith((".", "_")) and p.is_file()
            )
            if not inside:
                raise UserError(
                    f"The folder {path} holds no table: expected files that end in {_endings()}."
                )
            files += inside
        elif given != STANDARD_INPUT and not path.exists():
            raise UserError(f"There is no file {path}: check its name and folder.")
        else:
            files.append(given)
    return files


def check_not_read(out: str | Path | None, paths: Iterable[str | Path]) -> None:
    """Refuse before the work to write over a file that is read."""
    if out is None or not Path(out).is_file():
        return
    there = (str(path) for path in paths if Path(path).exists())  # what is not, is told later
    if any(Path(path).samefile(out) for path in files_of(there)):
        raise UserError(f"{out} is read from: write to another file, or what it holds is lost.")


@contextmanager
def open_table(path: str, *, layout: Layout) -> "Iterator[ArrowFile | CsvFile | JsonFile]":
    """A file, or standard input, as a table; errors of its content name it."""
    if layout.bad_rows is not None:
        layout.bad_rows.check(path)
    name = "Standard input" if path == STANDARD_INPUT else path
    try:
        kind = "csv" if path == STANDARD_INPUT else _FORMATS.get(ending_of(path))
        with (
            read_unchanged(path, may_grow=kind in ("csv", "jsonl")),
            _opened(path, kind, layout) as f,
        ):
            yield f
    except (pa.ArrowException, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise not_divided(name, " ".join(str(error).split()).rstrip(".")) from error
    except OSError as error:
        if error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        raise UserError(f"{name} cannot be read: {sentence(error)}") from error


@contextmanager
def _opened(
    path: str, kind: str | None, layout: Layout
) -> "Iterator[ArrowFile | CsvFile | JsonFile]":
    if kind is None:
        raise UserError(f"{path} has no known ending: expected {_endings()}. Rename it.")
    if kind in ("csv", "jsonl"):
        with open_text(path, layout) as file:
            yield file
        return
    if not Path(path).is_file():
        raise UserError(f"{path} is a pipe or a device: these are read as text alone. Copy it.")
    if kind == "sheet":
        with open_sheet(path, layout) as sheet:
            yield sheet
        return
    from eqsep.commands.arrow_files import arrow_file  # pyarrow.dataset imports pandas

    yield arrow_file(path, kind)


def whole(
    paths: Sequence[str], *, layout: Layout, as_text: Iterable[str] = (), but: Iterable[str] = ()
) -> pa.Table:
    """All rows of the files, in types that all values of a column allow.

    Parameters
    ----------
    as_text : iterable of str
        Columns of text files that are kept as they are written.
    but : iterable of str
        Columns that are left out.
    """
    as_text, but = list(as_text), list(but)
    tables: list[pa.Table] = []
    for path in files_of(paths):
        with open_table(path, layout=layout) as file:
            chosen([*as_text, *but], file.columns, name=file.name)
            columns = [column for column in file.columns if column not in but]
            table = file.whole(columns, as_text=as_text)
            if tables and set(columns) != set(tables[0].schema.names):
                apart = sorted(set(columns) ^ set(tables[0].schema.names))
                raise UserError(
                    f"{file.name} has not the columns of the files before it: {quoted(apart)} not "
                    f"in all of them. Pass files of one table."
                )
            tables.append(table)
    table = joined(tables)
    if not table.num_rows:
        raise no_rows(paths)
    return table


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables of several files below each other, in types that all their values allow."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise UserError(
            f"A column has not the same type in all files: {error}. Write the files alike."
        ) from error


def no_rows(paths: Iterable[str]) -> UserError:
    """The error for files in which nothing stands below the header."""
    return UserError(f"{', '.join(paths)} has no rows: expected a header and rows below it.")


def pieces(
    paths: Sequence[str], choose: Choice, *, layout: Layout, like: Plan | None = None
) -> Iterator[tuple[str, pa.Table]]:
    """Some thousand rows at a time, each with the name of their file; text files give strings.

    Rows that a detector `like` this one cannot read are left out where bad ones are set aside.
    """
    for path in files_of(paths):
        before = 0
        with open_table(path, layout=layout) as file:
            columns = chosen(choose(file.columns), file.columns, name=file.name)
            for table in file.pieces(columns):
                rows = table.num_rows
                if layout.bad_rows is not None and like is not None:
                    bad = _unreadable(table, like)
                    table = layout.bad_rows.without(table, file.name, bad, before=before)
                before += rows
                yield file.name, table


def _unreadable(table: pa.Table, plan: Plan) -> dict[str, pa.ChunkedArray]:
    """Which values of each column a detector cannot read, where there are such."""
    bad: dict[str, Any] = {}
    for name, learnt in plan.table_columns.items():
        if learnt is None or name not in table.schema.names:
            continue
        column = _like(table, name, learnt.reads, plan.encoder.notation)
        if learnt.reads in NUMERIC and pa.types.is_string(column.type):
            mask = unreadable(column, name, learnt.reads)
            bad |= {} if mask is None else {name: mask}
    return bad


def chosen(wanted: Iterable[str], there: Sequence[str], *, name: str) -> list[str]:
    """The wanted columns, each once, if all of them are there."""
    wanted = list(dict.fromkeys(wanted))
    absent = [column for column in wanted if column not in there]
    if absent:
        raise UserError(
            f"{name} has no column {quoted(absent)}: its columns are {quoted(there)}."
            f"{meant(absent, there)}"
        )
    return wanted


def is_table(path: Path) -> bool:
    """Whether the name of a file ends as that of a table does."""
    return ending_of(path) in _FORMATS


def _endings() -> str:
    return ", ".join(f".{ending}" for ending in ("csv", "csv.gz", "tsv", "txt", "jsonl")) + (
        ", .parquet, .arrow, .feather or .xlsx"
    )


def load_detector(path: Path, *, rows: Iterable[str] = (), rate: float | None = None) -> "Detector":
    """The detector in a model file; errors name the file, and say if `rows` is the model.

    With a false-alarm `rate` it has the threshold of that one, not of its own.
    """
    detector = _loaded(path, load_model, rows=rows)
    if not isinstance(getattr(detector, "model_", None), Model):
        raise _no_detector(path, detector)
    if rate is not None:
        detector.false_alarm_rate = checked_rate(rate)
        detector.threshold_  # noqa: B018  warns where rows are too few
    return detector


def load_scoring(path: Path, *, rows: Iterable[str] = (), rate: float | None = None) -> Model:
    """The same without what learns: scikit-learn takes longer to import than a row to score."""
    model = _loaded(path, read_model, rows=rows)
    if not isinstance(model, Model):
        raise _no_detector(path, model)
    if rate is None:
        return model
    return model.promising(replace(model.promise, false_alarm_rate=checked_rate(rate)))


def _loaded(path: Path, load: Callable[[Path], Any], *, rows: Iterable[str]) -> Any:
    if not path.exists():
        raise UserError(f"There is no model {path}: write one with eqsep fit.")
    if path.is_file() and not _is_model(path):
        models = [file for file in rows if Path(file).is_file() and _is_model(Path(file))]
        raise UserError(f"{path} is not an eqsep model: {_instead(path, models)}")
    try:
        return load(path)
    except ModelFileError as error:
        raise error.at(str(path)) from error


def _no_detector(path: Path, found: object) -> UserError:
    return UserError(
        f"{path} holds a {type(found).__name__}: expected a detector, as eqsep fit writes it."
    )


def _is_model(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _instead(path: Path, models: Sequence[str]) -> str:
    """What to pass where a file that is no model was passed as one."""
    if models:
        return f"the model comes first. Pass {models[0]} before {path}."
    if is_table(path):
        return f"make one of a table with eqsep fit {path} --out model.eqsep, and pass that."
    return "pass a file that eqsep fit wrote."


def columns_for(plan: Plan, *, beside: Iterable[str] = ()) -> Choice:
    """Which columns of a file a model needs, and those that are wanted `beside` them.

    One that was fitted to an array knows its columns by their place alone.
    """
    beside = list(beside)
    learnt = plan.table_columns

    def choose(there: list[str]) -> list[str]:
        if not plan.is_named:
            used = [column for column in there if column not in beside]
            if len(used) != len(learnt):
                raise UserError(
                    f"The model knows its {len(learnt)} columns by their place, and "
                    f"the table has {len(used)}: {quoted(used)}. Pass these columns alone."
                )
            return [*used, *beside]
        used = [name for name, column in learnt.items() if column is not None]
        absent = [column for column in used if column not in there]
        if absent:
            raise UserError(
                f"Column {quoted(absent)} is missing: the model was fitted with it, and the table "
                f"has {quoted(there)}. Add it, empty where a value is not known."
                f"{meant(absent, [column for column in there if column not in used])}"
            )
        _check_groups(plan, beside, there)
        return [*used, *beside]

    return choose


def _check_groups(plan: Plan, beside: Sequence[str], there: Sequence[str]) -> None:
    """Refuse rows without the column of groups or of times that is asked for, and say why."""
    grouping = plan.holdout.grouping
    if grouping is None:
        return
    for name in filter(None, grouping.columns):
        if name in beside and name not in there:
            raise UserError(
                f"Column {name!r} is missing: by it the model holds out whole {grouping.unit}s, "
                f"so that it must know which one each row belongs to. The table has "
                f"{quoted(there)}. Add it.{meant([name], there)}"
            )


def all_columns(plan: Plan, beside: Sequence[str]) -> Choice:
    """All columns of a file, where those that a model needs and some others are there."""
    needed = columns_for(plan, beside=beside)

    def choose(there: list[str]) -> list[str]:
        chosen(needed(there), there, name="The table")
        return there

    return choose


def as_read(table: pa.Table, plan: Plan) -> Table:
    """A table, of strings or not, as the rows that a plan takes."""
    known = plan.table_columns
    by_name = plan.is_named
    names: Iterable[str] = known if by_name else table.schema.names
    written = plan.encoder.notation
    columns = {
        name: pa.nulls(len(table)) if learnt is None else _like(table, name, learnt.reads, written)
        for name, learnt in zip(names, known.values(), strict=False)
    }
    return replace(read_table(pa.table(columns), name="Detector"), named=by_name)


def _like(
    table: pa.Table, name: str, reads: str, notation: Mapping[str, dict[str, Any]]
) -> pa.ChunkedArray:
    """A column in the type that a model knows it by, as the file or else the model writes it."""
    shown, known = table.schema.field(name).metadata, notation.get(name)
    if not known and shown in (None, PLAINLY):
        return cast(table.column(name), reads)
    return cast(table.column(name), reads, written(table.schema.field(name), known))


@contextmanager
def errors_placed(name: str, *, before: int) -> Iterator[None]:
    """Let errors in some rows of a file name it, and the row where they know it.

    Parameters
    ----------
    before : int
        How many rows of the file came before these.
    """
    try:
        yield
    except UnreadableError as error:
        raise error.at(f"{name}, row {before + error.row + 1:,}") from error
    except UserError as error:
        raise error.at(name) from error


def whole_pieces(paths: Sequence[str], choose: Choice, *, layout: Layout, like: Plan) -> pa.Table:
    """All rows of the files, as they are written: text files give strings."""
    parts = pieces(paths, choose, layout=layout, like=like)
    tables = [table for _, table in parts if table.num_rows]
    if not tables:
        raise no_rows(paths)
    return joined(tables)


def cast(column: pa.ChunkedArray, reads: str, written: Sequence[Any] = ()) -> pa.ChunkedArray:
    """Strings in the type of a kind of column, where all of them can be; else as they are.

    The encoder reads what is left value by value, and says which one it cannot read.

    Parameters
    ----------
    written : sequence of Notation
        How the column is written, where that is not plain: as its file shows, as the model knows.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    if not written:
        if reads == "text":
            return column
        with suppress(pa.ArrowInvalid, KeyError):
            return pc.cast(column, _TYPES[reads])
    return cast_as(column, reads, written)
