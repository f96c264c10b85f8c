"""Tables of any dialect in and out of files: what the command reads, Python reads too."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa

from eqsep.errors import EqsepWarning, UserError, did_you_mean, warn
from eqsep.io.dialect import Layout
from eqsep.io.files import TypedPieces, mixed_columns, whole, with_categories
from eqsep.io.notes import in_one_warning
from eqsep.io.text import BadRows
from eqsep.io.writing import check_table_out, output_format, table_writer

__all__ = ["open_table", "read_table", "write_table"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_table(
    path: Paths,
    *,
    drop: str | Iterable[str] = (),
    categorical: str | Iterable[str] = (),
    label: str | None = None,
    **options: Any,
) -> pa.Table:
    """A table from a file, whatever its dialect, as `eqsep fit` reads it.

    What was inferred (delimiter, units, dates, words for missing values) is given as one warning
    of class `eqsep.errors.Note`, with a line for each. A column of numbers with words among them
    stays text, and columns of lists or bytes are left out, with a warning.

    Parameters
    ----------
    path : path or sequence of paths
        CSV and other delimited or aligned text, JSON lines, Parquet, Arrow, spreadsheets, gzipped
        or not; folders of them; "-" is standard input. Several files are one table.
    drop : str or iterable of str
        Columns to leave out.
    categorical : str or iterable of str
        Columns of categories, even if they look like numbers.
    label : str, default=None
        The column of labels, which is kept as it is written. It is marked, and a Detector refuses
        to learn it: pass `table.drop_columns([label])` and `table[label]`.
    **options
        How text is written, if that should not be inferred: `delimiter`, `header` (a bool),
        `decimal`, `thousands`, `encoding`, `skip` (lines before the table), `missing` (words for
        missing values; "column=word" for one column), `sheet`; and `bad_rows`, a file for rows
        that cannot be read.

    Returns
    -------
    pyarrow.Table
        Numbers, dates, truth values, durations, categories and text in types of their own. A
        Detector takes it, as does `pandas` by `.to_pandas()` and `polars` by `polars.from_arrow`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "sensors.csv")
    >>> _ = path.write_text("id,heat\\n7,1.5\\n8,?\\n")
    >>> read_table(path, drop=["id"], missing=["?"]).to_pydict()
    {'heat': [1.5, None]}
    """
    layout, bad_rows = _layout(options)
    writing = nullcontext() if bad_rows is None else bad_rows.written()
    categorical, drop = _listed(categorical), _listed(drop)
    labels = [] if label is None else [label]
    paths = _paths(path)
    with in_one_warning(", ".join(paths)), writing:
        texts = [*categorical, *labels]
        table = whole(
            paths, layout=layout, bad_rows=bad_rows, as_text=texts, but=drop, for_fit=False
        )
        for mixed in mixed_columns(table, categorical=texts):
            warn(EqsepWarning(**mixed.words()))
        return with_categories(table, categorical, labels=labels)


@contextmanager
def open_table(
    path: Paths, *, columns: Iterable[str] | None = None, **options: Any
) -> Iterator[TypedPieces]:
    """A table that is read in batches of some thousand rows, for files larger than memory.

    The first batch sets the types of a text file's columns; numbers are floats.

    Parameters
    ----------
    path, **options
        As for `read_table`.
    columns : iterable of str, default=None
        Columns to read; all of them by default.

    Yields
    ------
    iterable of pyarrow.Table

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "sensors.csv")
    >>> _ = path.write_text("id,heat\\n7,1.5\\n8,2\\n")
    >>> with open_table(path, columns=["heat"]) as batches:
    ...     [batch.to_pydict() for batch in batches]
    [{'heat': [1.5, 2.0]}]
    """
    layout, bad_rows = _layout(options)
    writing = nullcontext() if bad_rows is None else bad_rows.written()
    wanted = None if columns is None else list(columns)
    with writing:
        yield TypedPieces(
            _paths(path), lambda there: there if wanted is None else wanted, layout, bad_rows
        )


def write_table(table: object, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a table to a file; a file that is there is replaced only by a complete one.

    Parameters
    ----------
    table : pyarrow.Table, dict of columns, or frame of pandas or polars
    path : path
        Its ending sets the format; "-" is standard output, as CSV.
    format : {"csv", "jsonl", "parquet", "arrow", "spreadsheet"}, default=None
        Overrides the ending. "spreadsheet" is CSV in which no text is run as a formula.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "scores.csv")
    >>> write_table({"row": [1, 2], "alarm": [False, True]}, path)
    >>> path.read_text()
    'row,alarm\\n1,false\\n2,true\\n'
    """
    out = os.fspath(path)
    kind = output_format(out, format)
    check_table_out(out)
    try:
        content = table if isinstance(table, pa.Table) else pa.table(table)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"write_table expects a table of pyarrow, a frame, or a dict of columns, got "
            f"{type(table).__name__}: {error}."
        ) from error
    with table_writer(out, kind) as write:
        write(content)


def _listed(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | os.PathLike) else list(given)


def _paths(path: Paths) -> list[str]:
    return [os.fspath(one) for one in _listed(path)]


def _layout(options: dict[str, Any]) -> tuple[Layout, BadRows | None]:
    """The layout of text files, and the file for rows that cannot be read, if one is given."""
    known = [*Layout.__dataclass_fields__, "bad_rows"]
    for name in [name for name in options if name not in known]:
        meant = did_you_mean([name], ["label", "drop", "categorical", "columns", *known])
        raise TypeError(f"Unknown option {name!r}: expected one of {', '.join(known)}.{meant}")
    if options.get("missing") is not None:
        options["missing"] = tuple(_listed(options["missing"]))
    path = options.pop("bad_rows", None)
    return Layout(**options), None if path is None else BadRows(Path(path))
