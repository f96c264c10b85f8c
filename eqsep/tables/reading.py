"""Tables as they arrive, from any library, as named columns; pandas and polars are not imported."""

import datetime as dt
import json
import math
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from numbers import Integral, Real
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from eqsep.arrays import is_foreign, objects, to_numpy
from eqsep.engine.loops import in_threads
from eqsep.errors import ParameterError, UserError, UserTypeError, quoted

if TYPE_CHECKING:
    import pyarrow as pa

NAME_WEIGHT = 3**0.5  # what a difference between two names counts in a distance between rows
_ROWS_FOUND_BY_PYTHON = 5000  # rows whose distinct texts Python finds as fast as pyarrow
LARGEST = 1e300  # infinity counts as this: beyond every number, with finite differences
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}  # by name: pandas need not be installed
_MIDNIGHT = dt.datetime.min
_KINDS = {"number": "numbers", "boolean": "truth values", "date": "dates", "duration": "durations"}
_TRUTHS = {"0": "False", "1": "True", "false": "False", "true": "True"}
_ALSO_READ = {("boolean", "number"), ("number", "duration")}
NOTATION = b"eqsep.notation"  # in the metadata of a field: how text wrote the values
PLAINLY = {NOTATION: b"{}"}
LABELS = b"eqsep.labels"  # in the metadata of the field that holds the labels
MOST_CELLS = 2**28  # numbers of a sparse matrix made dense
LARGE, AT_ONCE = 40_000_000, 4_000_000  # numbers that are learnt in batches, and of a batch
NUMERIC = ("number", "date", "duration")  # kinds of columns
SMALL_SAMPLE = 1000  # rows that a fit to batches holds at least


class UnreadableError(UserError):
    """A value that cannot be read like those of its column in training; `row` is its place."""

    def __init__(self, message: str, *, row: int = 0, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.row = row


@dataclass(frozen=True)
class Column:
    """A named column: `kind` is "number", "boolean", "date", "duration", "text" or "mixed"."""

    name: str
    kind: str
    values: np.ndarray  # floats, of times in seconds, NaN if missing; texts or objects, None if so
    categorical: bool = field(default=False, repr=False)  # names, whatever they look like
    notation: dict[str, Any] | None = field(default=None, repr=False)  # how text wrote it
    derived_from: str | None = field(default=None, repr=False)  # the column it was computed from

    @classmethod
    def coded(
        cls, name: str, names: list[str | None], rows: np.ndarray, *, categorical: bool = False
    ) -> "Column":
        """A column of text, from its distinct texts and the place of each row's text among them."""
        column = cls(name, "text", rows, categorical)
        del vars(column)["values"]
        vars(column)["_distinct"] = names, rows
        return column

    def __getattr__(self, name: str) -> Any:
        if name != "values" or "_distinct" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        names, rows = self._distinct
        vars(self)["values"] = values = objects(names)[rows]
        return values

    @property
    def is_empty(self) -> bool:
        if self.kind in _KINDS:
            return bool(np.isnan(self.values).all())
        return all(v is None for v in self.values)

    def numbers(self, kind: str) -> np.ndarray:
        """The values as floats of a learnt kind; text is parsed, or refused."""
        if self.kind in _KINDS:
            if self.kind != kind and (self.kind, kind) not in _ALSO_READ and not self.is_empty:
                raise UserError(
                    f"Column {self.name!r} held {_KINDS[kind]} in training and holds "
                    f"{_KINDS[self.kind]} now. Convert it, or fit again."
                )
            return self.values
        n = len(self.values)
        return np.fromiter((self._read(row, kind) for row in range(n)), float, n)

    def texts(self) -> list[str | None]:
        if self.kind == "text":
            values: list[str | None] = self.values.tolist()
            return values
        if self.kind == "mixed":
            return [None if v is None else text_of(v) for v in self.values]
        write = WRITERS[self.kind]
        return [None if v != v else write(v) for v in self.values.tolist()]

    def names(self, *, truths: bool = False) -> tuple[list[str | None], np.ndarray]:
        """The distinct texts, None if missing, and the place of each row's text among them."""
        names, rows = self._distinct
        if truths and self.kind != "boolean":
            names = [None if v is None else truth_of(v) for v in names]
        return names, rows

    def counts(self) -> Counter[str]:
        names, rows = self.names()
        times = np.bincount(rows, minlength=len(names)).tolist()
        return Counter({name: n for name, n in zip(names, times, strict=True) if name is not None})

    @cached_property
    def _distinct(self) -> tuple[list[str | None], np.ndarray]:
        texts = self.texts()
        if len(texts) <= _ROWS_FOUND_BY_PYTHON:
            place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
            return list(place), np.array([place[text] for text in texts], dtype=np.intp)
        import pyarrow as pa  # takes a second, with the pandas that it imports

        found = pa.array(texts, pa.large_string()).dictionary_encode(null_encoding="encode")
        return found.dictionary.to_pylist(), found.indices.to_numpy().astype(np.intp)

    def _read(self, row: int, kind: str) -> float:
        value = self.values[row]
        if value is None or value == "":
            return math.nan
        try:
            return _READERS[kind](value)
        except (TypeError, ValueError, OverflowError) as error:
            raise UnreadableError(
                f"Column {self.name!r} held {_KINDS[kind]} in training, and {value!r} cannot be "
                f"read as one.",
                hint="Correct the value, or pass None where it is missing.",
                row=row,
            ) from error


def column_of(name: str, values: np.ndarray, *, categorical: bool = False) -> Column:
    """A NumPy array of any type as a column; `categorical` values are names whatever their type."""
    code = values.dtype.kind
    if code in "iuf":
        column = Column(name, "number", _bounded(values))
    elif code == "b":
        column = Column(name, "boolean", values.astype(float))
    elif code in "Mm":
        column = Column(name, "date" if code == "M" else "duration", _seconds(values))
    elif code in "OUT":
        column = _object_column(name, values.tolist())
    elif code == "c":
        raise UserError(f"Complex data not supported: column {name!r} is {values.dtype}.")
    else:
        raise UserTypeError(
            f"Column {name!r} is of type {values.dtype}: expected numbers, truth values, text, "
            f"dates or durations. Convert it first."
        )
    if categorical:
        texts = column.values if column.kind == "text" else objects(column.texts())
        return Column(name, "text", texts, categorical)
    return column


def _object_column(name: str, values: list[Any]) -> Column:
    """A column of Python objects: of their kind if they share one, else mixed."""
    types = set(map(type, values))
    if types <= {float, int}:  # the most frequent case
        with suppress(OverflowError):  # an integer beyond all floats is bounded below
            return Column(name, "number", _bounded(np.array(values, dtype=float)))
    gone = {t for t in types if t.__name__ in _MISSING_TYPES}
    for t in types - gone:
        _kind_of_type(t, name)  # refuses before values of that type are compared
    if types != {str}:
        values = [None if type(v) in gone or v != v else v for v in values]
    kinds = {_kind_of_type(t, name) for t in set(map(type, values)) - {type(None)}}
    if kinds == {"text"}:
        return Column(name, "text", objects(values))
    if len(kinds) > 1:
        return Column(name, "mixed", objects(values))
    kind = kinds.pop() if kinds else "number"
    read = _READERS["number" if kind == "boolean" else kind]
    numbers = np.fromiter((math.nan if v is None else read(v) for v in values), float, len(values))
    return Column(name, kind, _bounded(numbers))


def _kind_of_type(t: type, name: str) -> str:
    for types, kind in _KIND_OF_TYPES:
        if issubclass(t, types):
            return kind
    raise UserTypeError(
        f"Column {name!r} holds a {t.__name__}: each value's argument must be a string, a number, "
        f"a truth value, a date or a duration. Convert it first."
    )


_KIND_OF_TYPES: Iterable[tuple[tuple[type, ...], str]] = (
    ((str,), "text"),
    ((bool, np.bool_), "boolean"),
    ((np.timedelta64, dt.timedelta, dt.time), "duration"),  # before numbers: NumPy's is an integer
    ((np.datetime64, dt.date), "date"),
    ((Real, Decimal), "number"),
)


def _bounded(values: np.ndarray) -> np.ndarray:
    values = values.astype(np.float64, copy=False)
    if values.min(initial=0) >= -LARGEST and values.max(initial=0) <= LARGEST:
        return values  # most columns have no missing and no infinite value
    return np.asarray(np.clip(values, -LARGEST, LARGEST))


def _seconds(values: np.ndarray) -> np.ndarray:
    """Dates or durations in NumPy's types as seconds, to the microsecond."""
    ticks = values.astype(f"{values.dtype.kind}8[us]")
    return np.where(np.isnat(ticks), np.nan, ticks.astype(np.int64) / 1e6)


def _read_number(value: Any) -> float:
    number = float(value) if isinstance(value, str) else value  # an integer may exceed floats
    return float(min(max(number, -LARGEST), LARGEST))


def _read_date(value: Any) -> float:
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    if not isinstance(value, dt.date | np.datetime64):
        raise UserTypeError(f"{value!r} is not a date")
    return float(_seconds(np.array([value], dtype="M8[us]"))[0])


def _read_duration(value: Any) -> float:
    if isinstance(value, dt.time):
        value = dt.datetime.combine(_MIDNIGHT, value.replace(tzinfo=None)) - _MIDNIGHT
    if isinstance(value, dt.timedelta | np.timedelta64):
        return float(_seconds(np.array([value], dtype="m8[us]"))[0])
    return _read_number(value)


_READERS: dict[str, Callable[[Any], float]] = {
    "number": _read_number,
    "date": _read_date,
    "duration": _read_duration,
}


def text_of(value: Any) -> str:
    kind = _kind_of_type(type(value), "")
    if kind == "text":
        return str(value)
    return WRITERS[kind](_READERS["number" if kind == "boolean" else kind](value))


def truth_of(name: str) -> str:
    """ "False" and "True" for 0, 1, "false", "TRUE", …; other names as they are."""
    return _TRUTHS.get(name.lower(), name)


def _write_number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


WRITERS: dict[str, Callable[[float], str]] = {
    "number": _write_number,
    "boolean": lambda value: str(bool(value)),
    "date": lambda value: str(np.datetime64(round(min(max(value, -6e10), 2.5e11)), "s")),
    "duration": lambda value: f"{_write_number(value)} s",
}


@dataclass(frozen=True)
class RowGroups:
    """Which rows belong together: the group and the time of each row."""

    group: np.ndarray  # uint64: a hash of the group's name; 0 without groups
    time: np.ndarray  # float64: 0 without times
    columns: tuple[str | None, str | None]  # the names of both; "" if not from the table

    def take(self, rows: np.ndarray) -> "RowGroups":
        return RowGroups(self.group[rows], self.time[rows], self.columns)

    @classmethod
    def join(cls, parts: "Sequence[RowGroups | None]") -> "RowGroups | None":
        there = [part for part in parts if part is not None]
        if not there:
            return None
        group, time = (np.concatenate([getattr(p, n) for p in there]) for n in ("group", "time"))
        return cls(group, time, there[0].columns)


@dataclass(frozen=True)
class Table:
    """The columns of a table, with the groups and weights of its rows."""

    columns: list[Column]
    named: bool  # whether the caller named the columns; if not, they are called x0, x1, …
    n_rows: int
    numbered: bool = False  # whether these are a frame's, which has the numbers 0, 1, … for names
    groups: RowGroups | None = None
    weight: np.ndarray | None = None  # None: all rows count 1

    def take(self, rows: np.ndarray) -> "Table":
        """Some of the rows, by position; a dropped column may be empty."""
        columns = [replace(c, values=v[rows] if len(v := c.values) else v) for c in self.columns]
        groups = None if self.groups is None else self.groups.take(rows)
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, columns=columns, n_rows=len(rows), groups=groups, weight=weight)

    def contents(self, columns: Sequence[int], kinds: Sequence[str]) -> np.ndarray:
        """The values of some columns, read as these kinds, as numbers; names by a checksum."""
        out = np.empty((self.n_rows, len(columns)))
        for j, (at, kind) in enumerate(zip(columns, kinds, strict=True)):
            column = self.columns[at]
            if kind in NUMERIC:
                values = column.numbers(kind)
            else:
                names, rows = column.names(truths=kind == "boolean")
                sums = [np.nan if name is None else zlib.crc32(name.encode()) for name in names]
                values = np.array(sums, dtype=float).take(rows)
            out[:, j] = values if len(values) else np.nan  # a column of ids may be absent
        return np.where(np.isnan(out), np.nan, out)  # one NaN for all: hashes look at the bits


_Coded = tuple[list[str | None], np.ndarray]  # distinct texts, and the place of each row's text
_Values = np.ndarray | _Coded
# names, or None if there are none; values, categorical columns, rows
_Pieces = tuple[list[Any] | None, Sequence[_Values], set[int], int]


def read_table(X: Any, *, name: str) -> Table:
    """A frame, Arrow table, array, or list of rows or dicts as a `Table`; `name` is the caller."""
    if isinstance(X, Table):
        return X
    if isinstance(X, str | bytes | os.PathLike):
        raise UserTypeError(
            f"{name} expects a table, got {X!r}.",
            hint="Read the file first: table = eqsep.io.read_table(path). To fit with labels, pass "
            "them apart from the other columns: Detector(normal='ok')"
            ".fit(table.drop_columns(['kind']), table['kind']).",
        )
    if X is None or np.isscalar(X):
        raise UserTypeError(
            f"{name} expects a table of rows and columns, got {X!r}.",
            hint="Pass a frame, an array of two dimensions, or a list of rows.",
        )
    given, values, categorical, n_rows = _adapter(X)(X)
    for count, what in ((n_rows, "sample"), (len(values), "feature")):
        if count == 0:
            raise UserError(
                f"Found array with 0 {what}(s) (shape=({n_rows}, {len(values)})) while a minimum "
                f"of 1 is required by {name}."
            )
    numbered = given == [*range(len(values))]
    named = given is not None and not numbered
    names = [f"x{i}" for i in range(len(values))]
    if given is not None and named:
        names = [column_name(n) for n in given]
        often = Counter(names)
        twice = [n for n, text in zip(given, names, strict=True) if often[text] > 1]
        if twice:
            raise UserError(f"{name} expects every column name once, got {twice}. Rename them.")
    columns: dict[int, Column] = {}
    written = _notations(X)

    def make(some: slice) -> None:
        for i in range(len(values))[some]:
            n, v, is_category = names[i], values[i], i in categorical
            if isinstance(v, tuple):
                column = Column.coded(n, *v, categorical=is_category)
            else:
                column = column_of(n, v, categorical=is_category)
            columns[i] = replace(column, notation=written[n]) if n in written else column

    in_threads(make, len(values), steps=n_rows * len(values))
    return Table([columns[i] for i in range(len(values))], named, n_rows, numbered)


def column_name(name: Any) -> str:
    """The name of a column as text: the same for 1, 1.0 and "1"."""
    if isinstance(name, tuple):
        return f"({', '.join(repr(n) if isinstance(n, str) else column_name(n) for n in name)})"
    if isinstance(name, Real) and not isinstance(name, bool | np.bool_):
        return _write_number(float(name)) if float(name).is_integer() else str(float(name))
    return str(name)


def by_number(table: Table, known: Iterable[str]) -> Table:
    """The table, with the numbers of a frame for names if some `known` names are numbers."""
    if not table.numbered or not any(map(str.isdigit, known)):
        return table
    columns = [replace(column, name=str(i)) for i, column in enumerate(table.columns)]
    return replace(table, columns=columns, named=True, numbered=False)


def with_groups(table: Table, groups: Any = None, time: Any = None) -> Table:
    """The table with group and time of each row, given as values, or as columns, which go."""
    if groups is None and time is None:
        return table
    numbers = [str(given) for given in (groups, time) if isinstance(given, Integral)]
    table = by_number(table, numbers)
    groups, time = (_column_given(table, given) for given in (groups, time))
    names = [given for given in (groups, time) if isinstance(given, str)]
    kept = [column for column in table.columns if column.name not in names]
    group, group_name = _given(table, groups, "groups")
    when, time_name = _given(table, time, "time")
    if not kept:
        raise UserError("The table has only groups and time: expected a column to learn.")
    found = RowGroups(
        np.zeros(table.n_rows, dtype=np.uint64) if group is None else _group_hashes(group),
        np.zeros(table.n_rows) if when is None else _times(when),
        (group_name, time_name),
    )
    numbered = table.numbered and len(kept) == len(table.columns)
    return replace(table, columns=kept, groups=found, numbered=numbered)


def _column_given(table: Table, given: Any) -> Any:
    """What was given as groups or times: a number, or a tuple of the table, as a column's name."""
    if isinstance(given, Integral):
        return column_name(given) if table.named else f"x{given}"
    if isinstance(given, tuple) and column_name(given) in {c.name for c in table.columns}:
        return column_name(given)
    return given


def _given(table: Table, given: Any, word: str) -> tuple[Column | None, str | None]:
    """Groups or times as a column, and its name; "" if it is not of the table."""
    if given is None:
        return None, None
    if isinstance(given, str):
        columns = {column.name: column for column in table.columns}
        if given not in columns:
            raise ParameterError(word, expected=f"a column ({quoted(columns)})", got=given)
        return columns[given], given
    if not isinstance(given, Column) and np.ndim(given) != 1:
        raise UserError(f"{word} must hold one value for each row, or be a name, got {given!r}.")
    column = given if isinstance(given, Column) else column_of(word, np.asarray(given))
    if len(column.values) != table.n_rows:
        raise UserError(
            f"{word} holds {len(column.values):,} values, and there are {table.n_rows:,} rows: "
            f"expected one for each row."
        )
    return column, ""


def _group_hashes(column: Column) -> np.ndarray:
    names, rows = column.names()
    if None in names:
        raise _missing(column, int(np.flatnonzero(rows == names.index(None))[0]))
    digests = [blake2b(str(name).encode(), digest_size=8).digest() for name in names]
    return np.array([int.from_bytes(d, "big") for d in digests], np.uint64).take(rows)


def _times(column: Column) -> np.ndarray:
    try:
        time = column.numbers(column.kind if column.kind in NUMERIC else "date").astype(float)
    except UserError as error:
        value = next(text for text in column.texts() if text)
        raise UserError(
            f"Column {column.name!r} does not hold times: expected numbers or dates by which rows "
            f"can be put in order, got values such as {value!r}. Pass another column."
        ) from error
    if np.isnan(time).any():
        raise _missing(column, int(np.flatnonzero(np.isnan(time))[0]))
    return time


def _missing(column: Column, row: int) -> UserError:
    return UserError(
        f"Column {column.name!r} has no value in row {row + 1}: expected one in each row, by "
        f"which rows are held out together. Fill it in, or leave the row out."
    )


def _notations(X: Any) -> dict[str, dict[str, Any]]:
    """How text wrote the columns of an Arrow table, by its metadata."""
    if not hasattr(getattr(X, "schema", None), "metadata"):
        return {}
    said = {field.name: (field.metadata or {}).get(NOTATION) for field in X.schema}
    states = {name: json.loads(text) for name, text in said.items() if text is not None}
    return {n: {k: v for k, v in s.items() if k != "certain"} for n, s in states.items()}


def check_no_labels(X: Any) -> None:
    """Refuse to learn an Arrow table with its labels, which `eqsep.io.read_table` marks."""
    if not hasattr(getattr(X, "schema", None), "metadata"):
        return
    for name in (one.name for one in X.schema if LABELS in (one.metadata or {})):
        raise UserError(
            f"Column {name!r} of X holds the labels, as read_table(label={name!r}) has marked it: "
            f"it would be learnt like any other column.",
            hint=f"Pass it apart: fit(table.drop_columns([{name!r}]), table[{name!r}]).",
        )


def is_stream(X: Any) -> bool:
    """Whether `X` is batches: a dataset, function or iterable, or a list that begins with one."""
    if hasattr(X, "shape") or isinstance(X, str | bytes | Mapping | type):
        return False
    if isinstance(X, list | tuple):
        first = X[0] if len(X) else None
        first = first[0] if isinstance(first, tuple) and len(first) == 2 else first
        return len(getattr(first, "shape", ())) == 2
    return is_dataset(X) or callable(X) or hasattr(X, "__iter__")


def row_parts(X: Any, *, most: int | None = None) -> list[Any]:
    """`X` in slices of at most `most` rows, a sparse one in small slices; a `Table` whole."""
    if not _is_sparse(X):
        n_rows = len(X) if isinstance(X, list | tuple) else getattr(X, "shape", (0,))[0]
        if most is None or n_rows <= most:
            return [X]
        rows = getattr(X, "iloc", X)
        return [rows[start : start + most] for start in range(0, n_rows, most)]
    X, rows = X.tocsr(), max(AT_ONCE // max(X.shape[1], 1), 1)
    return [X[start : start + rows] for start in range(0, max(X.shape[0], 1), rows)]


def large_in_batches(X: Any, y: Any) -> tuple[Any, Any]:
    """Rows and labels as they are; for a large sparse matrix, a list of pairs with some of both."""
    if not _is_sparse(X) or X.shape[0] * X.shape[1] <= LARGE:
        return X, y
    if y is not None and len(y) != X.shape[0]:
        raise UserError(
            f"Found input variables with inconsistent numbers of samples: X has {X.shape[0]} rows, "
            f"y has {len(y)} labels. Pass one label a row, None where it is not known."
        )
    if SMALL_SAMPLE * X.shape[1] > MOST_CELLS:
        raise _too_wide(*X.shape)
    parts = row_parts(X)
    if y is None:
        return parts, None
    labels = objects(y) if isinstance(y, list | tuple) else np.asarray(y)
    ends = np.cumsum([part.shape[0] for part in parts])[:-1]
    return list(zip(parts, np.split(labels, ends), strict=True)), None


def is_dataset(X: Any) -> bool:
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(X, module.Dataset)


def _adapter(X: Any) -> Callable[[Any], _Pieces]:
    for kind in type(X).__mro__:
        library = kind.__module__.split(".")[0]
        if library in _ADAPTERS:
            return _ADAPTERS[library]
    if _is_sparse(X):
        return _from_sparse
    if isinstance(X, list | tuple) and X and not is_foreign(X[0]):
        return _from_dicts if isinstance(X[0], Mapping) else _from_rows
    return _from_array


def _from_pandas(frame: Any) -> _Pieces:
    _check_frame(frame, hint="X.to_frame(), or a single row with X.to_frame().T")
    series = [frame.iloc[:, i] for i in range(frame.shape[1])]
    categorical = {i for i, s in enumerate(series) if s.dtype.name == "category"}
    return list(frame.columns), [_pandas_values(s) for s in series], categorical, len(frame)


def _pandas_values(series: Any) -> _Values:
    """The values in NumPy's types; nullable numbers as floats, times in UTC, texts by codes."""
    values: np.ndarray
    if getattr(series.dtype, "storage", None) == "pyarrow":
        return _arrow_values(series.array.__arrow_array__())
    if isinstance(series.dtype, np.dtype):
        values = series.to_numpy()
    elif series.dtype.kind in "iuf":
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        is_time = series.dtype.name.startswith("datetime64")
        values = series.to_numpy(dtype="M8[us]" if is_time else object)
    return values


def _from_polars(frame: Any) -> _Pieces:
    _check_frame(frame, hint="X.collect() or X.to_frame()")
    return _from_pyarrow(frame.to_arrow())


def _from_pyarrow(table: "pa.Table | pa.RecordBatch") -> _Pieces:
    _check_frame(table, hint="pyarrow.table({'name': X})")
    columns = list(table.columns)
    categorical = {i for i, c in enumerate(columns) if str(c.type).startswith("dictionary")}
    for i in categorical:  # in a chunked column `to_numpy` gives a name where there is a null
        columns[i] = columns[i].cast(columns[i].type.value_type)
    values = [_arrow_values(column) for column in columns]
    return list(table.schema.names), values, categorical, table.num_rows


_GAPPED = {"float": "float32", "double": "float64"}  # of Arrow; NumPy's have missing values too
_GAPPED |= {f"timestamp[{unit}]": f"M8[{unit}]" for unit in ("s", "ms", "us", "ns")}
_WHOLE_NUMBERS = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


def _arrow_values(column: Any) -> _Values:
    kind, nulls = str(column.type), column.null_count
    if nulls < len(column) and (kind in _GAPPED or (kind in _WHOLE_NUMBERS and not nulls)):
        return arrow_numbers(column)
    if kind not in ("string", "large_string") or nulls == len(column):
        values: np.ndarray = column.to_numpy(zero_copy_only=False)
        return values
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    coded = column.dictionary_encode()
    names = coded.dictionary.to_pylist()
    codes = arrow_numbers(coded.indices, missing=len(names)).astype(np.intp)
    return [*names, None] if nulls else names, codes


def arrow_numbers(column: Any, *, missing: Any = None) -> np.ndarray:
    """The values of an Arrow array, NaN for nulls; its `to_numpy` would import pandas, slowly."""
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    valid, values = array.buffers()
    here, kind = slice(array.offset, array.offset + len(array)), str(array.type)
    if kind == "bool":
        return _bits(values)[here].view(bool)
    dtype = np.dtype(_GAPPED.get(kind, kind))
    numbers = np.frombuffer(values or b"", dtype)[here]
    if not array.null_count:
        return numbers
    gap = np.array("NaT" if dtype.kind == "M" else "nan" if missing is None else missing, dtype)
    return np.where(_bits(valid)[here], numbers, gap)


def _bits(buffer: Any) -> np.ndarray:
    return np.unpackbits(np.frombuffer(buffer or b"", np.uint8), bitorder="little")


def _check_frame(frame: Any, *, hint: str) -> None:
    if len(getattr(frame, "shape", ())) != 2:
        raise UserError(
            f"Expected a table of rows and columns, got {type(frame).__name__}. Reshape your data "
            f"with {hint}."
        )


def _from_dicts(rows: Sequence[Mapping[Any, Any]]) -> _Pieces:
    """Rows by name; a key that a row lacks is a missing value."""
    names = list(rows[0])
    if len(names) > 1 and all(row.keys() == rows[0].keys() for row in rows):
        values = [objects(column) for column in zip(*map(itemgetter(*names), rows), strict=True)]
        return names, values, set(), len(rows)
    names = list(dict.fromkeys(key for row in rows for key in row))
    return names, [objects(row.get(n) for row in rows) for n in names], set(), len(rows)


def _from_rows(rows: Sequence[Any]) -> _Pieces:
    if any(isinstance(row, str) or not hasattr(row, "__len__") for row in rows):
        raise UserError(
            f"Expected a list of rows, got a list of {type(rows[0]).__name__}. Reshape your data "
            f"either using array.reshape(-1, 1) or, where it is a single row, [row]."
        )
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise UserError(
            f"Expected rows of one length, got lengths from {widths[0]} to {widths[-1]}. Pass "
            f"None where a value is missing."
        )
    return None, [objects(column) for column in zip(*rows, strict=True)], set(), len(rows)


def _is_sparse(X: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")  # imported if there is such a matrix
    return sparse is not None and bool(sparse.issparse(X)) and len(getattr(X, "shape", ())) == 2


def _from_sparse(X: Any) -> _Pieces:
    n_rows, n_columns = X.shape
    if n_rows * n_columns > MOST_CELLS:
        raise _too_wide(n_rows, n_columns)
    return None, list(X.T.toarray(order="C")), set(), n_rows


def _too_wide(n_rows: int, n_columns: int) -> UserError:
    return UserError(
        f"A sparse matrix of {n_rows:,} rows and {n_columns:,} columns takes "
        f"{n_rows * n_columns * 8 / 1e9:,.0f} GB of memory as a table, which holds every value: "
        f"expected at most {MOST_CELLS * 8 / 1e9:.0f} GB at a time. Pass fewer rows, or reduce the "
        f"columns first, by sklearn.decomposition.TruncatedSVD for example."
    )


def _from_array(X: Any) -> _Pieces:
    if isinstance(X, Mapping):
        raise UserError("Expected a table of rows and columns, got a dict. Pass a row as [row].")
    array = to_numpy(X)
    if array.dtype.names is not None:
        raise UserTypeError(
            f"Expected a table of rows and columns, got a structured array with the fields "
            f"{quoted(array.dtype.names)}.",
            hint="Pass it as a frame: pandas.DataFrame(X), or polars.DataFrame(X).",
        )
    if array.ndim != 2:
        raise UserError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data either using "
            f"array.reshape(-1, 1) if it has a single column or array.reshape(1, -1) if it is a "
            f"single row."
        )
    return None, list(np.ascontiguousarray(array.T)), set(), len(array)


_ADAPTERS: dict[str, Callable[[Any], _Pieces]] = {
    "pandas": _from_pandas,
    "polars": _from_polars,
    "pyarrow": _from_pyarrow,
}
