"""Model files for commands, and tables as a model reads them."""

import datetime as dt
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eqsep.commands.console import meant
from eqsep.commands.reading import Choice, is_table, joined, no_rows, pieces
from eqsep.commands.text_files import MISSING, Layout
from eqsep.detector import Detector
from eqsep.detector.scoring import checked_rate
from eqsep.errors import UserError, quoted
from eqsep.persistence import ModelFileError, load_model
from eqsep.persistence.container import MAGIC
from eqsep.tables.column import UnreadableError
from eqsep.tables.reading import Table, read_table

_TYPES: dict[str, list[pa.DataType]] = {
    "number": [pa.float64()],
    "duration": [pa.float64()],
    "date": [pa.timestamp("us"), pa.timestamp("us", "UTC")],
    "boolean": [pa.bool_()],
}


def load_detector(path: Path, *, rows: Iterable[str] = (), rate: float | None = None) -> Detector:
    """The detector in a model file; errors name the file, and say if `rows` is the model.

    With a `rate` of false alarms it has the threshold of that one, not of its own.
    """
    if not path.exists():
        raise UserError(f"There is no model {path}: write one with eqsep fit.")
    if path.is_file() and not _is_model(path):
        models = [file for file in rows if Path(file).is_file() and _is_model(Path(file))]
        raise UserError(f"{path} is not an eqsep model: {_instead(path, models)}")
    try:
        model = load_model(path)
    except ModelFileError as error:
        raise error.at(str(path)) from error
    if not isinstance(model, Detector):
        raise UserError(
            f"{path} holds a {type(model).__name__}: expected a detector, as eqsep fit writes it."
        )
    if rate is not None:
        model.false_alarm_rate = checked_rate(rate)
        model.calibration_.warn_if_short(rate)
    return model


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


def check_model_out(path: Path) -> None:
    """Refuse before the work, not after it, a place where no model can be written."""
    if path.is_dir():
        raise UserError(f"{path} is a folder: pass the name of a file for the model.")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is a device or a pipe: pass the name of a file for the model.")
    check_folder(path)


def check_folder(path: Path) -> None:
    """Refuse a file in a folder that is not there, or in which one may not write."""
    if not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent}: make it first.")
    if not os.access(path.parent, os.W_OK):
        raise UserError(
            f"No file can be written in the folder {path.parent}: permission denied. "
            f"Change the rights to it, or pass another folder."
        )


def columns_for(detector: Detector, *, beside: Iterable[str] = ()) -> Choice:
    """Which columns of a file the detector needs, and those that are wanted `beside` them.

    A detector that was fitted to an array knows its columns by their place alone.
    """
    beside = list(beside)
    encoder = detector.feature_map_.encoder

    def choose(there: list[str]) -> list[str]:
        if not hasattr(encoder, "feature_names_in_"):
            used = [column for column in there if column not in beside]
            if len(used) != encoder.n_features_in_:
                raise UserError(
                    f"The model knows its {encoder.n_features_in_} columns by their place, and "
                    f"the table has {len(used)}: {quoted(used)}. Pass these columns alone."
                )
            return [*used, *beside]
        used = [c for c in encoder.feature_names_in_.tolist() if c not in encoder.dropped_]
        absent = [column for column in used if column not in there]
        if absent:
            raise UserError(
                f"Column {quoted(absent)} is missing: the model was fitted with it, and the table "
                f"has {quoted(there)}. Add it, empty where a value is not known."
                f"{meant(absent, [column for column in there if column not in used])}"
            )
        return [*used, *beside]

    return choose


def as_read(table: pa.Table, detector: Detector) -> Table:
    """A table, of strings or not, as the rows that a detector takes."""
    encoder = detector.feature_map_.encoder
    by_name = hasattr(encoder, "feature_names_in_")
    names: Sequence[str] = encoder.feature_names_in_.tolist() if by_name else table.schema.names
    columns = {
        name: pa.nulls(len(table)) if learnt is None else cast(table.column(name), learnt.reads)
        for name, learnt in zip(names, encoder.columns_, strict=False)
    }
    return replace(read_table(pa.table(columns), name="Detector"), named=by_name)


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


def model_rows(paths: Sequence[str], detector: Detector, *, layout: Layout) -> Table:
    """All rows as a detector takes them."""
    return as_read(_joined(paths, columns_for(detector), layout), detector)


def labelled_rows(
    paths: Sequence[str], label: str, detector: Detector, *, layout: Layout
) -> tuple[Table, pa.ChunkedArray]:
    """All rows as a detector takes them, and their labels."""
    table = _joined(paths, columns_for(detector, beside=[label]), layout)
    return as_read(table, detector), table.column(label)


def _joined(paths: Sequence[str], choose: Choice, layout: Layout) -> pa.Table:
    tables = [table for _, table in pieces(paths, choose, layout=layout) if table.num_rows]
    if not tables:
        raise no_rows(paths)
    return joined(tables)


def cast(column: pa.ChunkedArray, reads: str) -> pa.ChunkedArray:
    """Strings in the type of a kind of column, where all of them can be; else as they are.

    The encoder reads what is left value by value, and says which one it cannot read.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    if reads == "text":
        return column
    gone = pc.is_in(column, value_set=pa.array(MISSING, column.type))
    column = pc.if_else(gone, pa.scalar(None, column.type), column)
    for wanted in _TYPES.get(reads, []):
        try:
            return pc.cast(column, wanted)
        except pa.ArrowInvalid:
            continue
    return _times(column) if reads == "duration" else column


def _times(column: pa.ChunkedArray) -> Any:
    """Times of day, which a fit takes as durations."""
    try:
        times = [None if v is None else dt.time.fromisoformat(v) for v in column.to_pylist()]
    except ValueError:
        return column
    return pa.chunked_array([times], pa.time64("us"))
