"""Rows that come in batches: their sources, batches joined to one table, and bounded samples."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from eqsep.arrays import device, namespace, objects
from eqsep.errors import UserError, quoted
from eqsep.tables.reading import Column, RowGroups, Table, check_no_labels, is_dataset, read_table

CELLS_AT_ONCE = 1_000_000  # rows times columns of a batch that is read from a dataset
FEWEST_ROWS, MOST_ROWS = 1024, 32_768
SAMPLE = 100_000  # rows
CELLS = 40_000_000  # numbers that the rows of a sample are encoded as
ANOMALIES = 6000  # up to so many may be sampled beyond their share
_BATCHES_READ_AHEAD = 3  # batches that are read while one is worked on
_END = object()
_TEXTS = {"text", "mixed"}
_OUTPUTS = 100  # at most, for a column of names
B = TypeVar("B")
Batch = tuple[Any, Any]  # rows, and their labels or None


@dataclass(frozen=True)
class Batches:
    """Batches of rows with labels or None, read from the beginning, more than once if `again`."""

    read: Callable[[], Iterator[Batch]]
    again: bool
    read_labels: Callable[[], Iterator[Batch]]

    def __iter__(self) -> Iterator[Batch]:
        return (batch for batch in self.read() if _n_rows(batch[0]))

    def labels(self) -> Iterator[tuple[int, Any]]:
        return ((_n_rows(rows), y) for rows, y in self.read_labels())


def batches_from(X: Any, y: Any, *, name: str) -> Batches:
    """The batches of a stream `X`; `y` names their column of labels, if any."""
    if y is not None and not isinstance(y, str):
        raise UserError(
            f"{name} was given batches of rows, so y must be the name of the column of labels, or "
            f"None; got {type(y).__name__}. Labels outside the table come with each batch, as "
            f"pairs (X, y)."
        )
    if is_dataset(X):
        return _from_dataset(X, y)
    begin = X if callable(X) else lambda: iter(X)

    def read() -> Iterator[Batch]:
        return (_pair(batch, y) for batch in begin())

    return Batches(read, again=callable(X) or iter(X) is not X, read_labels=read)


def prefetched(batches: Iterator[B]) -> Iterator[B]:
    """The same batches, read by a thread a few ahead of the one that is worked on."""
    context = copy_context()

    def read() -> Any:
        return context.run(next, batches, _END)

    with ThreadPoolExecutor(1, "eqsep batches") as pool:
        try:
            ahead = deque(pool.submit(read) for _ in range(_BATCHES_READ_AHEAD))
            while (batch := ahead.popleft().result()) is not _END:
                ahead.append(pool.submit(read))
                yield batch
        finally:
            pool.shutdown(cancel_futures=True)


def record_batches(data: Any, columns: list[str] | None, rows: int) -> Iterator[Any]:
    """At most `rows` rows of a dataset at a time, of some columns or all; few are read ahead."""
    options: dict[str, Any] = {"columns": columns, "batch_size": rows}
    options |= {"batch_readahead": 2, "fragment_readahead": 1}
    files = _parquet_files(data)
    if not files:
        yield from data.to_batches(**options)
    for file in files:
        # The reader of a whole file does not wait for its rows to be used, and holds them all.
        for group in file.split_by_row_group():
            yield from group.to_batches(schema=data.schema, **options)


def _parquet_files(data: Any) -> list[Any]:
    """The files of a dataset if all are Parquet and all their rows are wanted; else none."""
    try:
        files = list(data.get_fragments())
    except ValueError:  # a filtered dataset, which is read as a whole
        return []
    return files if all(hasattr(file, "split_by_row_group") for file in files) else []


def _from_dataset(data: Any, label: str | None) -> Batches:
    names = data.schema.names
    if label is not None and label not in names:
        raise UserError(_no_column(label, names))
    rows = min(max(CELLS_AT_ONCE // max(len(names), 1), FEWEST_ROWS), MOST_ROWS)
    table = import_module("pyarrow").Table.from_batches  # a dataset exists, so this is loaded

    def read(columns: list[str] | None = None) -> Iterator[Batch]:
        return (_pair(table([batch]), label) for batch in record_batches(data, columns, rows))

    return Batches(read, again=True, read_labels=lambda: read([] if label is None else [label]))


def _pair(batch: Any, label: str | None) -> Batch:
    """Rows and labels: given as a pair, or the labels as a column of the rows."""
    if isinstance(batch, tuple) and len(batch) == 2:
        if label is not None:
            raise UserError(
                f"Batches that are pairs (X, y) bring their labels, and y={label!r} names a column "
                f"of labels too. Pass y=None."
            )
        return batch
    if label is None:
        return batch, None
    library = type(batch).__module__.split(".")[0]
    if library not in _POPPED:
        raise UserError(
            f"y={label!r} names a column, and a batch is {type(batch).__name__}, whose columns "
            f"have no names. Pass pairs (X, y), or frames."
        )
    names = list(batch.schema.names if library == "pyarrow" else batch.columns)
    if label not in names:
        raise UserError(_no_column(label, names))
    return _POPPED[library](batch, label)


_POPPED: dict[str, Callable[[Any, str], Batch]] = {
    "pyarrow": lambda batch, label: (batch.drop_columns([label]), batch.column(label)),
    "pandas": lambda batch, label: (batch.drop(columns=label), batch[label]),
    "polars": lambda batch, label: (batch.drop(label), batch[label]),
}


def _no_column(label: str, names: list[Any]) -> str:
    return (
        f"The label column {label!r} is missing: the columns are {quoted(map(str, names))}. Pass "
        f"the name of one of them as y, or None where no row is labelled."
    )


def _n_rows(rows: Any) -> int:
    if isinstance(rows, Table):
        return rows.n_rows
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def tables(batches: Iterable[tuple[Any, Any]], *, name: str) -> Iterator[tuple[Table, Any]]:
    """Each batch as a table with the columns of the first one, in its order, and its labels."""
    wanted: list[str] | None = None
    named = True
    for number, (X, y) in enumerate(batches, 1):
        check_no_labels(X)
        table = read_table(X, name=name)
        columns = {column.name: column for column in table.columns}
        if wanted is None:
            wanted, named = list(columns), table.named
        apart = sorted(set(wanted) ^ set(columns))
        if apart or table.named is not named:
            why = f"{quoted(apart)} not in both" if apart else "only one has column names"
            raise UserError(
                f"Batch {number} does not have the columns of the batches before it: {why}.",
                hint="Pass batches of one table, with None where a value is not known.",
                topic="unlike_batches",
            )
        yield replace(table, columns=[columns[column] for column in wanted]), y


def width(table: Table) -> int:
    """About how many numbers a row is encoded as."""
    return sum(min(len(c.names()[0]), _OUTPUTS) if c.kind in _TEXTS else 2 for c in table.columns)


def joined(parts: Sequence[Table]) -> Table:
    """Tables of the same columns below each other; empty columns take the kind of others."""
    columns = [_joined([part.columns[j] for part in parts]) for j in range(len(parts[0].columns))]
    groups = RowGroups.join([part.groups for part in parts])
    n_rows, weight = [part.n_rows for part in parts], None
    if any(part.weight is not None for part in parts):
        weights = zip((part.weight for part in parts), n_rows, strict=True)
        weight = np.concatenate([np.ones(n) if w is None else w for w, n in weights])
    return replace(parts[0], columns=columns, n_rows=sum(n_rows), groups=groups, weight=weight)


def _joined(parts: list[Column]) -> Column:
    kinds = {part.kind for part in parts}
    if len(kinds) > 1:
        kinds = {part.kind for part in parts if not part.is_empty} or {"number"}
    if kinds == _TEXTS:
        kinds = {"mixed"}
    if len(kinds) > 1:
        found = " and ".join(sorted(kinds))
        raise UserError(
            f"Column {parts[0].name!r} is not of one kind in all batches: it is a column of "
            f"{found}. Write it alike in all of them."
        )
    kind = kinds.pop()
    values = np.concatenate([_as(part, kind) for part in parts])
    categorical = all(part.categorical for part in parts)
    return replace(parts[0], kind=kind, values=values, categorical=categorical)


def _as(column: Column, kind: str) -> np.ndarray:
    """The values of a column of this kind, of text among mixed ones, or of an empty column."""
    if column.kind == kind or (kind == "mixed" and column.kind == "text"):
        return column.values
    n = len(column.values)
    return objects([None] * n) if kind in _TEXTS else np.full(n, np.nan)


class Taken(Protocol):
    """Rows that can be selected by position."""

    def take(self, rows: np.ndarray) -> Self: ...


T = TypeVar("T", bound=Taken)


@dataclass(frozen=True)
class LabelledRows(Generic[T]):
    """Some of many rows, as a table or array: labels (None where missing), positions among all."""

    rows: T
    y: np.ndarray
    positions: np.ndarray

    def take(self, rows: np.ndarray) -> "LabelledRows[T]":
        return LabelledRows(_taken(self.rows, rows), self.y[rows], self.positions[rows])

    def after(self, n: int) -> "LabelledRows[T]":
        return replace(self, positions=self.positions + n)

    @classmethod
    def join(cls, parts: "list[LabelledRows[T]]", rows: Callable[[list[T]], T]) -> Self:
        return cls(
            rows([part.rows for part in parts]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.positions for part in parts]),
        )


def _taken(rows: Any, chosen: np.ndarray) -> Any:
    if not hasattr(rows, "ndim"):
        return rows.take(chosen)
    xp = namespace(rows)
    return xp.take(rows, xp.asarray(chosen, device=device(rows)), axis=0)


def sample_size(width: int, *, most: int | None = None) -> int:
    """How many rows of `width` numbers a sample has: `CELLS` numbers, at most `SAMPLE` rows."""
    return min(SAMPLE if most is None else most, max(CELLS // max(width, 1), 1000))


class Reservoir(Generic[T]):
    """A uniform sample of at most `size` rows: those of the lowest random priorities, so it merges.

    By Dvoretzky, Kiefer, Wolfowitz and Massart its distribution function is within
    √(ln(2 / δ) / 2 size) of that of all rows with probability 1 - δ.
    """

    def __init__(self, size: int, join: Callable[[list[T]], T]) -> None:
        self.size = size
        self._join = join
        self._bound = np.inf
        self._n = 0
        self._priorities: list[np.ndarray] = []
        self._parts: list[T] = []

    def add(self, rows: T, priorities: np.ndarray) -> None:
        """Add rows, each with a priority drawn uniformly from [0, 1)."""
        kept = np.flatnonzero(priorities < self._bound)
        if not len(kept):
            return
        self._parts.append(rows.take(kept))
        self._priorities.append(priorities[kept])
        self._n += len(kept)
        if self._n > 2 * self.size:
            self._settle()

    def merge(self, other: "Reservoir[T]", *, moved: Callable[[T], T]) -> None:
        """Add all rows that another reservoir has seen, each piece changed by `moved`."""
        self.size = min(self.size, other.size)
        for rows, priorities in zip(other._parts, other._priorities, strict=True):
            self.add(moved(rows), priorities)

    def rows(self, most: int | None = None) -> T | None:
        """The sample, or `most` rows of it, in the order in which they were seen."""
        self._settle()
        if not self._parts:
            return None
        if most is None or most >= self._n:
            return self._parts[0]
        return self._parts[0].take(np.sort(np.argsort(self._priorities[0])[:most]))

    def __len__(self) -> int:
        return min(self._n, self.size)

    def _settle(self) -> None:
        if not self._parts:
            return
        priorities = np.concatenate(self._priorities)
        kept = np.arange(len(priorities))
        if len(kept) > self.size:
            kept = np.sort(np.argpartition(priorities, self.size)[: self.size])
            self._bound = priorities[kept].max()
        rows = self._parts[0] if len(self._parts) == 1 else self._join(self._parts)
        self._parts = [rows if len(kept) == len(priorities) else rows.take(kept)]
        self._priorities, self._n = [priorities[kept]], len(kept)


class Strata(Generic[T]):
    """A sample of `size` rows: up to `most_others` that cannot be normal beyond their share."""

    def __init__(
        self, size: int, join: Callable[[list[T]], T], *, most_others: int = ANOMALIES
    ) -> None:
        self.size, self.n_normal, self.n_others = size, 0, 0
        self._join, self._most_others = join, most_others
        self._normal: Reservoir[T] = Reservoir(size, join)
        self._others: Reservoir[T] = Reservoir(size, join)

    def add(self, rows: T, *, is_normal: np.ndarray, rng: np.random.Generator) -> None:
        priorities = rng.random(len(is_normal))
        self._normal.add(rows, np.where(is_normal, priorities, np.inf))
        self._others.add(rows, np.where(is_normal, np.inf, priorities))
        self.n_normal += int(is_normal.sum())
        self.n_others += int((~is_normal).sum())

    def merge(self, other: "Strata[T]", *, moved: Callable[[T], T]) -> None:
        """Add all rows that another one has seen, each piece changed by `moved`."""
        self.size = min(self.size, other.size)
        self._normal.merge(other._normal, moved=moved)
        self._others.merge(other._others, moved=moved)
        self.n_normal += other.n_normal
        self.n_others += other.n_others

    @property
    def is_whole(self) -> bool:
        return self.n_normal + self.n_others <= self.size

    def sample(self) -> T:
        """All rows if they fit; else some of each sort, those that may be normal last."""
        n = len(self._others)
        if not self.is_whole:
            share = self.n_others / (self.n_normal + self.n_others)
            n = min(n, self.size // 3, max(self._most_others, round(self.size * share)))
        parts = (self._others.rows(n), self._normal.rows(self.size - n))
        return self._join([part for part in parts if part is not None])
