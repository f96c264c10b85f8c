"""The encoder: a mixed table as weighted columns of floats, and back to words and units."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from eqsep import schemas
from eqsep.engine.loops import compiled
from eqsep.errors import EqsepWarning, UserError, warn
from eqsep.schemas import Schema, check_parts, damaged, word
from eqsep.tables.encodings import Category, Date, Encoding, Learnt, Number
from eqsep.tables.reading import LARGEST, Column, Table, by_number, read_table

BOTH = ("quantile", "standard")  # the forms of a number: its rank, and robust deviations
_MAX_NAMES_NEVER_IDS = 20  # distinct names: so few are never ids, however few the rows
_CONVERT = "If these are numbers or dates stored as text, convert them"


class ColumnMatchWarning(EqsepWarning):
    """The columns of a table are not named as in training, or there are more of them."""


class DroppedColumnWarning(EqsepWarning):
    """Columns were left out because they look like ids."""


@dataclass(frozen=True, eq=False)
class Packing:
    """Encoded columns added up that rise together, as |a| + |b| = |a + b|: rank and deviation."""

    first: np.ndarray  # the first encoded column that each packed one stands for
    twice: np.ndarray  # the packed columns that stand for two encoded ones
    second: np.ndarray  # and the second of these

    def __call__(self, rows: Any) -> Any:
        """Pack encoded rows, an array or a tensor.  (n, n_encoded) -> (n, n_packed)"""
        if isinstance(rows, np.ndarray):
            out = np.empty((len(rows), len(self.first)), rows.dtype)
            _pack(np.ascontiguousarray(rows), self.first, self.twice, self.second, out)
            return out
        packed = rows[:, self.first]
        packed[:, self.twice] += rows[:, self.second]
        return packed


@compiled
def _pack(rows: Any, first: Any, twice: Any, second: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        for j in range(first.shape[0]):
            out[i, j] = rows[i, first[j]]
        for j in range(twice.shape[0]):
            out[i, twice[j]] += rows[i, second[j]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoder:
    """What was learnt of a table's columns, whose outputs of weight above 0 are an encoded row."""

    columns: tuple[Learnt | None, ...]  # None where a column was dropped
    names: tuple[str, ...] | None = None  # None if tables are matched by position
    numbered: bool = False  # whether the numbers of places were names, as in a frame 0, 1, …
    dropped: Mapping[str, str]  # the reason for each dropped column
    notation: Mapping[str, dict[str, Any]]  # how text wrote a column, if not plainly

    def dropped_warning(self, *, keeps_ids: str = "") -> DroppedColumnWarning | None:
        """What to say of the dropped columns, if there are any."""
        if not self.dropped:
            return None
        message = f"Columns were dropped: {_listed(self.dropped)}."
        hint = f"{_CONVERT}{keeps_ids}."
        return DroppedColumnWarning(message, hint=hint, dropped=tuple(self.dropped))

    @classmethod
    def learn(
        cls,
        X: Any,
        *,
        forms: Sequence[str] = BOTH,
        max_categories: int = 100,
        min_count: int = 2,
        max_new: float = 0.5,
        keeps_ids: str = "",
    ) -> Self:
        """Learn each column of a table; the parameters are those of `TableEncoder`."""
        table = read_table(X, name="Detector")
        dropped = id_columns(table, max_new=max_new)
        if len(dropped) == len(table.columns):
            raise UserError(
                f"No column to encode: expected at least one that is not an id, got "
                f"{_listed(dropped)}.",
                hint=f"{_CONVERT}, a decimal comma to a point too{keeps_ids}.",
                topic="no_column",
            )

        def learn(column: Column) -> Learnt:
            if column.is_empty or column.kind in ("text", "mixed", "boolean"):
                return Category.learn(column, max_categories=max_categories, min_count=min_count)
            if column.kind == "date":
                return Date.learn(column, forms=list(forms))
            return Number.learn(column, unit=column.kind, forms=list(forms))

        return cls(
            columns=tuple(None if c.name in dropped else learn(c) for c in table.columns),
            names=tuple(c.name for c in table.columns) if table.named else None,
            numbered=table.numbered,
            dropped=dropped,
            notation={c.name: c.notation for c in table.columns if c.notation},
        )

    @property
    def column_names(self) -> list[str]:
        """The names of the input columns: x0, x1, … where they have none."""
        return [f"x{i}" for i in range(len(self.columns))] if self.names is None else [*self.names]

    @property
    def by_name(self) -> dict[str, Learnt | None]:
        return dict(zip(self.column_names, self.columns, strict=True))

    @cached_property
    def output_source(self) -> np.ndarray:
        counts = [0 if c is None else len(c.outputs) for c in self.columns]
        return np.repeat(np.arange(len(self.columns)), counts)

    @cached_property
    def weights(self) -> np.ndarray:
        """What each output counts in a distance; 0 if another one says the same."""
        return np.array([weight for c in self.columns if c is not None for weight in c.weights])

    @cached_property
    def counted(self) -> np.ndarray:
        """The outputs that are the columns of an encoded row."""
        return np.flatnonzero(self.weights > 0)

    @cached_property
    def source(self) -> np.ndarray:
        return self.output_source.take(self.counted)

    @cached_property
    def deviations(self) -> np.ndarray:
        """The encoded columns that are deviations of a number from its centre."""
        place = np.cumsum(self.weights > 0) - 1
        found = []
        for j, column in enumerate(self.columns):
            if isinstance(column, Number) and "standard" in column.forms:
                first = np.searchsorted(self.output_source, j) + column.forms.index("standard")
                found.append(int(place[first]))
        return np.array(found, dtype=int)

    @cached_property
    def pack(self) -> Packing:
        """Encoded rows with fewer columns and the same distances."""
        groups = [np.array(column.groups) for column in self.columns if column is not None]
        starts = np.cumsum([0, *(group[-1] + 1 for group in groups[:-1])])
        numbered = [start + group for start, group in zip(starts, groups, strict=True)]
        group = np.concatenate(numbered)[self.counted]
        is_first = np.concatenate([[True], group[1:] != group[:-1]])
        second = np.flatnonzero(~is_first)
        return Packing(np.flatnonzero(is_first), np.cumsum(is_first)[second] - 1, second)

    def align(self, X: Any, *, name: str = "Detector") -> Table:
        """The table with the columns of the fit, in its order."""
        table = by_number(read_table(X, name=name), self.names or ())
        named, names = self.names is not None, self.column_names
        called = {n: n.removeprefix("x") if self.numbered else n for n in names}
        own = {column.name for column in table.columns}
        if table.named and (named or (self.numbered and not own.isdisjoint(called.values()))):
            return replace(table, columns=self._by_name(table, called, name=name), named=named)
        if len(table.columns) != len(self.columns):
            raise UserError(
                f"X has {len(table.columns)} features, but {name} is expecting "
                f"{len(self.columns)} features as input."
            )
        if named or table.named:
            has, was = ("has", "without") if table.named else ("does not have valid", "with")
            fitted = f"{name} was fitted {was} feature names: columns are matched by position."
            warn(ColumnMatchWarning(f"X {has} feature names, but {fitted}"))
        columns = [Column(n, c.kind, c.values) for n, c in zip(names, table.columns, strict=True)]
        return replace(table, columns=columns, named=named)

    def encode(self, X: Any) -> np.ndarray:
        """A table as encoded rows in single precision.  (n, d) -> (n, n_encoded)"""
        if (plain := self.encode_plain(X)) is not None:
            return plain
        table = self.align(X)
        return self._weighted.of_table(table.columns, table.n_rows)

    def encode_plain(self, X: Any) -> np.ndarray | None:
        """The same without making a table; None if the rows need more careful reading."""
        return self._weighted.of_plain(X)

    def transform(self, X: Any, *, name: str = "TableEncoder") -> np.ndarray:
        """A table as all outputs, without weights, in double precision."""
        table, ones = self.align(X, name=name), np.ones(len(self.weights))
        encoding = Encoding(list(self.columns), ones, np.float64, self.column_names)
        return encoding.of_table(table.columns, table.n_rows)

    def encode_column(self, j: int, column: Column) -> np.ndarray:
        """The encoded columns of one input column.  -> (n_values, k)"""
        encoding = Encoding([self.columns[j]], self.weights[self.output_source == j], np.float32)
        return encoding.of_table([column], len(column.values))

    @cached_property
    def _weighted(self) -> Encoding:
        names = None if self.names is None else list(self.names)
        return Encoding(list(self.columns), self.weights, np.float32, names)

    def _by_name(self, table: Table, called: Mapping[str, str], *, name: str) -> list[Column]:
        """The columns of the fit, by what the table calls each of them."""
        given = {column.name: column for column in table.columns}
        absent = [own for n, own in called.items() if n not in self.dropped and own not in given]
        if absent:
            raise UserError(
                f"Columns {absent} are missing: {name} was fitted with them, and got "
                f"{list(given)}.",
                hint="Add them, with None where a value is not known.",
                topic="missing_columns",
            )
        extra = [n for n in given if n not in called.values()]
        if extra:
            warn(ColumnMatchWarning(f"Columns {extra} were not learnt and are ignored."))
        empty = Column("", "text", np.empty(0, dtype=object))  # of a dropped column not there
        found = {n: given.get(own, empty) for n, own in called.items()}
        return [c if c.name == n else replace(c, name=n) for n, c in found.items()]

    def outputs_of(self, rows: np.ndarray) -> np.ndarray:
        """Encoded rows as outputs without weights; those that do not count are 0."""
        out = np.zeros((len(rows), len(self.weights)))
        out[:, self.counted] = rows / self.weights[self.counted]
        return out

    def decode(self, j: int, outputs: np.ndarray) -> str:
        """The value of an input column that the outputs of a row stand for, as text."""
        column = self.columns[j]
        if column is None:
            raise UserError(f"Column {self.column_names[j]!r} was dropped, so it has no value.")
        return column.text(outputs[self.output_source == j])

    def describe(self, output: int, value: float) -> str:
        """What a value of an output says, in the words and units of the table."""
        j = int(self.output_source[output])
        column = self.columns[j]
        assert column is not None  # a dropped column has no outputs
        first = int(np.searchsorted(self.output_source, j))
        return f"{self.column_names[j]} {column.described(output - first, float(value))}"

    def moved(self, was: np.ndarray, now: np.ndarray, errors: np.ndarray) -> dict[str, str]:
        """How each column has moved, in words.

        By the means of rows `with_values`, and how far those of the encoded columns have moved.
        """
        n, sources = len(errors), self._weighted.numbers.sources
        errors = errors * self.weights[self.counted]  # as outputs, they lose it again
        outputs = self.outputs_of(np.stack([was[:n], now[:n], errors]))
        added = np.reshape([was[n:], now[n:]], (2, 2, -1))  # was or now, value or missing, column
        changes = {}
        for j, (name, column) in enumerate(self.by_name.items()):
            if column is not None:
                then, recent, away = outputs[:, self.output_source == j]
                more = added[:, :, [place for place, source in enumerate(sources) if source == j]]
                means = np.append(then, more[0]), np.append(recent, more[1])
                changes[name] = column.moved(*means, away)
        return changes

    def with_values(self, rows: np.ndarray) -> np.ndarray:
        """Encoded rows, then all their numbers, 0 if missing, and whether each is missing."""
        values = self._weighted.values(rows)
        return np.hstack([rows, np.nan_to_num(values), np.isnan(values)])

    def is_same(self, other: "Encoder") -> bool:
        return self is other or (self.names, self.columns) == (other.names, other.columns)

    def __getstate__(self) -> dict[str, Any]:
        parts = ("columns", "names", "numbered", "dropped", "notation")
        return {name: getattr(self, name) for name in parts}

    def state(self) -> dict[str, Any]:
        return {
            "names": None if self.names is None else [str(name) for name in self.names],
            "dropped": {str(name): reason for name, reason in self.dropped.items()},
            "columns": [None if c is None else c.state() for c in self.columns],
            "notation": dict(self.notation),
            "numbered": self.numbered,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_parts(state, _STATE, "Encoder")
        columns = [None if c is None else _column(c) for c in state["columns"]]
        names = state["names"]
        encoder = cls(
            columns=tuple(columns),
            names=None if names is None else tuple(names),
            numbered=state["numbered"],
            dropped=state["dropped"],
            notation=state["notation"],
        )
        if names is not None and (len(names) != len(columns) or encoder.numbered):
            damaged("the columns of its table have more names, or fewer, than there are")
        if {n for n, column in encoder.by_name.items() if column is None} != set(encoder.dropped):
            damaged("the columns dropped from its table are not those with a reason")
        try:
            weights = encoder.weights.tolist()
        except ZeroDivisionError:  # two values without a deviation between them
            weights = []
        if not any(weights) or not all(0 <= w <= math.sqrt(schemas.LARGE) for w in weights):
            damaged("the columns of its table cannot be weighed")
        return encoder


def id_columns(table: Table, *, max_new: float = 0.5) -> dict[str, str]:
    """The columns that look like ids, and why: most rows to come would have a new name there."""
    found = {}
    for column in table.columns:
        if (
            column.kind in ("text", "mixed")
            and len(counts := column.counts()) > _MAX_NAMES_NEVER_IDS
        ):
            once = sum(count == 1 for count in counts.values()) / counts.total()
            if once > max_new:  # Good and Turing's estimate of the probability of a new name
                found[column.name] = f"{once:.0%} of its values occur once, as ids do"
    return found


def _listed(dropped: Mapping[str, str]) -> str:
    return "; ".join(f"{name!r}: {reason}" for name, reason in dropped.items())


_NOTATION = {
    "decimal": word(","),
    "thousands": word(".", ",", " ", "'"),
    "dates": word("day first", "month first"),
    "minus": word("behind", "brackets", "long"),
    "missing": schemas.items(schemas.TEXT),
    "unit": Schema("a short string", lambda value, sizes: type(value) is str and len(value) <= 8),  # noqa: ARG005
}


def _is_notation(value: Any, sizes: dict[str, int]) -> bool:
    return type(value) is dict and all(
        part in _NOTATION and _NOTATION[part].accepts(given, sizes) for part, given in value.items()
    )


_STATE = {
    "names": schemas.either(schemas.NONE, schemas.TEXTS),
    "numbered": schemas.FLAG,
    "dropped": schemas.entries(schemas.TEXT),
    "columns": schemas.items(schemas.either(schemas.NONE, schemas.DICT), least=1),
    "notation": schemas.entries(Schema("a notation", _is_notation)),
}
_NUMBER = {
    "kind": word("number"),
    "unit": word("number", "duration"),
    "forms": word(["quantile"], ["standard"], list(BOTH)),
    "ranks": schemas.array_of(3, "knots"),
    "centre": schemas.NUMBER,
    "scale": schemas.POSITIVE,
    "with_missing": schemas.FLAG,
}
_COLUMNS: Mapping[str, Mapping[str, Schema]] = {
    "number": _NUMBER,
    "date": {
        "kind": word("date"),
        "elapsed": schemas.DICT,
        "cycles": word([], ["hour"], ["weekday"], ["hour", "weekday"]),
    },
    "category": {
        "kind": word("category"),
        **dict.fromkeys(("frequent", "rare"), schemas.TEXTS),
        **dict.fromkeys(("with_missing", "boolean"), schemas.FLAG),
    },
}


def _column(state: dict[str, Any]) -> Learnt:
    kind = state.get("kind")
    if type(kind) is not str or kind not in _COLUMNS:
        damaged("a column of its table is of no known kind")
    check_parts(state, _COLUMNS[kind], f"{kind} column")
    if kind == "number":
        return _number(state)
    if kind == "date":
        check_parts(state["elapsed"], _NUMBER | {"unit": word("date")}, "date column")
        return Date(_number(state["elapsed"]), state["cycles"])
    if set(state["frequent"]) & set(state["rare"]):
        damaged("a name in its table is both frequent and rare")
    return Category(**{key: value for key, value in state.items() if key != "kind"})


def _number(state: dict[str, Any]) -> Number:
    knots, low, high = state["ranks"].astype(np.float64)
    ranks = np.column_stack([low, high]).ravel()
    with np.errstate(invalid="ignore"):  # a NaN that signals
        in_order = bool((np.diff(knots) > 0).all() and (np.diff(ranks) >= 0).all())
        in_range = np.abs(knots).max() <= LARGEST and ranks[0] >= 0 and ranks[-1] <= 1
    if not (in_order and in_range and abs(state["centre"]) <= LARGEST):
        damaged("the numbers of a column of its table are not finite, or not in order")
    parts = {part: state[part] for part in ("unit", "forms", "with_missing")}
    parts |= {"knots": knots.tolist(), "low": low.tolist(), "high": high.tolist()}
    return Number(**parts, centre=float(state["centre"]), scale=float(state["scale"]))
