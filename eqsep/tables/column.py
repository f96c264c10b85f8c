"""One column as it arrives: its kind, its values in one form, and the readings of them.

Numbers, truths, dates and durations are floats with NaN where missing: dates are seconds since
1970 (UTC where a time zone is known), durations are seconds. Text is strings, with None where
missing; a mixed column holds objects of several types until somebody says what they should be.
"""

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from eqsep.errors import UserError, UserTypeError

NAME_WEIGHT = 3**0.5  # what a difference between two names counts in a distance between rows
_FEW = 5000  # rows, whose texts are told apart as fast by Python
LARGEST = 1e300  # infinity counts as this: beyond every number, yet of finite differences
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}  # by name: pandas need not be there
_MIDNIGHT = dt.datetime.min
_KINDS = {"number": "numbers", "boolean": "truth values", "date": "dates", "duration": "durations"}
_TRUTHS = {"0": "False", "1": "True", "false": "False", "true": "True"}
_ALSO_READ = {("boolean", "number"), ("number", "duration")}


class UnreadableError(UserError):
    """A value that cannot be read as those of its column in training; `row` is its place."""

    def __init__(self, message: str, *, row: int = 0, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.row = row


@dataclass(frozen=True)
class Column:
    """A named column: `kind` is "number", "boolean", "date", "duration", "text" or "mixed"."""

    name: str
    kind: str
    values: np.ndarray
    categorical: bool = field(default=False, repr=False)  # names, whatever they look like
    notation: dict[str, Any] | None = field(default=None, repr=False)  # of a file's text
    derived_from: str | None = field(default=None, repr=False)  # the column it was computed from

    @classmethod
    def coded(
        cls, name: str, names: list[str | None], rows: np.ndarray, *, categorical: bool = False
    ) -> "Column":
        """A column of text, from its distinct texts and the place of each row's among them.

        Its values are made when they are asked for.
        """
        column = object.__new__(cls)
        known = {"name": name, "kind": "text", "categorical": categorical}
        known |= {"notation": None, "derived_from": None}
        vars(column).update(known, _distinct=(names, rows))  # nobody looks for them again
        return column

    def __getattr__(self, name: str) -> Any:
        if name != "values" or "_distinct" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        names, rows = self._distinct
        vars(self)["values"] = values = objects(names)[rows]
        return values

    @property
    def is_empty(self) -> bool:
        """Whether every value is missing."""
        if self.kind in _KINDS:
            return bool(np.isnan(self.values).all())
        return all(v is None for v in self.values)

    def numbers(self, kind: str) -> np.ndarray:
        """The values as floats of a learnt `kind`: "number", "date" or "duration".

        Truth values are 0 and 1, numbers are durations in seconds, and text is parsed; what cannot
        be read is an error.
        """
        if self.kind == kind or (self.kind, kind) in _ALSO_READ:
            return self.values
        if self.kind in _KINDS:
            if not self.is_empty:
                raise UserError(
                    f"Column {self.name!r} held {_KINDS[kind]} in training and holds "
                    f"{_KINDS[self.kind]} now. Convert it, or fit anew."
                )
            return self.values
        read = (self._read(row, kind) for row in range(len(self.values)))
        return np.fromiter(read, float, len(self.values))

    def texts(self) -> list[str | None]:
        """The values as strings, None where missing."""
        if self.kind == "text":
            values: list[str | None] = self.values.tolist()
            return values
        if self.kind == "mixed":
            return [None if v is None else text_of(v) for v in self.values]
        write = WRITERS[self.kind]
        return [None if v != v else write(v) for v in self.values.tolist()]

    def names(self, *, truths: bool = False) -> tuple[list[str | None], np.ndarray]:
        """The distinct texts, None for missing ones, and the place of each row's text among them.

        With `truths`, 0, 1, "false", "TRUE", … are called "False" and "True".
        """
        names, rows = self._distinct
        if truths and self.kind != "boolean":
            names = [None if v is None else truth_of(v) for v in names]
        return names, rows

    def counts(self) -> Counter[str]:
        """How often each name occurs."""
        names, rows = self.names()
        times = np.bincount(rows, minlength=len(names)).tolist()
        return Counter({name: n for name, n in zip(names, times, strict=True) if name is not None})

    def share_of_new(self) -> float:
        """Good and Turing's estimate of the chance that the next name is one never seen."""
        counts = self.counts()
        return sum(count == 1 for count in counts.values()) / max(counts.total(), 1)

    @cached_property
    def _distinct(self) -> tuple[list[str | None], np.ndarray]:
        texts = self.texts()
        if len(texts) <= _FEW:
            place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
            return list(place), np.array([place[text] for text in texts], dtype=np.intp)
        import pyarrow as pa  # a second, with the pandas that it imports: many rows alone wait

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
    """A NumPy array of any type as a column; `categorical` values are names whatever their type.

    Examples
    --------
    >>> import numpy as np
    >>> column_of("size", np.array([1, None, 2.5], dtype=object))
    Column(name='size', kind='number', values=array([1. , nan, 2.5]))
    """
    column = _column(name, values)
    if not categorical:
        return column
    texts = column.values if column.kind == "text" else objects(column.texts())
    return Column(name, "text", texts, categorical)


def _column(name: str, values: np.ndarray) -> Column:
    code = values.dtype.kind
    if code in "iuf":
        return Column(name, "number", _bounded(values))
    if code == "b":
        return Column(name, "boolean", values.astype(float))
    if code in "Mm":
        return Column(name, "date" if code == "M" else "duration", _seconds(values))
    if code in "OUT":
        return _object_column(name, values.tolist())
    if code == "c":
        raise UserError(f"Complex data not supported: column {name!r} is {values.dtype}.")
    raise UserTypeError(
        f"Column {name!r} is of type {values.dtype}: expected numbers, truth values, text, dates "
        f"or durations. Convert it first."
    )


def _object_column(name: str, values: list[Any]) -> Column:
    """A column of Python objects: of the one kind that all of them are, or mixed."""
    types = set(map(type, values))
    if types <= {float, int}:  # the most frequent column
        with suppress(OverflowError):  # an integer beyond all floats: it is bounded below
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
    if values.dtype.kind in "iu":
        return values.astype(np.float64)
    values = values.astype(np.float64, copy=False)
    if values.min(initial=0) >= -LARGEST and values.max(initial=0) <= LARGEST:
        return values  # as it came: most columns are neither missing nor infinite anywhere
    return np.asarray(np.clip(values, -LARGEST, LARGEST))


def _seconds(values: np.ndarray) -> np.ndarray:
    """Dates or durations in NumPy's types as seconds, to the microsecond."""
    ticks = values.astype(f"{values.dtype.kind}8[us]")
    return np.where(np.isnat(ticks), np.nan, ticks.astype(np.int64) / 1e6)


def objects(values: Iterable[Any]) -> np.ndarray:
    """The values as an array of objects."""
    listed = list(values)
    out = np.empty(len(listed), dtype=object)
    out[:] = listed
    return out


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
    """How a single value is named: 1 and 1.0 alike, whatever type a missing neighbour made it."""
    for types, kind in _KIND_OF_TYPES:
        if isinstance(value, types):
            if kind == "text":
                return str(value)
            return WRITERS[kind](_READERS["number" if kind == "boolean" else kind](value))
    raise UserTypeError(f"{value!r} has no name")  # pragma: no cover  refused at the door


def truth_of(name: str) -> str:
    """ "False" and "True" for 0, 1, "false", "TRUE", …; other names as they are."""
    return _TRUTHS.get(name.lower(), name)


def _write_number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _write_date(value: float) -> str:
    return str(np.datetime64(round(min(max(value, -6e10), 2.5e11)), "s"))


WRITERS: dict[str, Callable[[float], str]] = {
    "number": _write_number,
    "boolean": lambda value: str(bool(value)),
    "date": _write_date,
    "duration": lambda value: f"{_write_number(value)} s",
}
