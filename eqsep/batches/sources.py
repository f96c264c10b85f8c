"""Where batches of rows come from, and the next one read while one is worked on."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

import numpy as np

from eqsep.errors import UserError
from eqsep.labels import listed
from eqsep.tables.reading import Table, is_dataset

CELLS_AT_ONCE = 1_000_000  # rows times columns of a batch that is read from a dataset
FEWEST_ROWS, MOST_ROWS = 1024, 32_768
_AHEAD = 2  # batches that wait to be worked on
_PATIENCE = 0.1  # seconds after which a waiting reader asks whether it is still wanted
T = TypeVar("T")
Batch = tuple[Any, Any]  # rows, and their labels or None


@dataclass(frozen=True)
class Source:
    """Batches of rows, each with its labels or None; those without a row are left out.

    Attributes
    ----------
    read : callable
        Begins anew to read the batches.
    again : bool
        Whether it may be called more than once.
    read_labels : callable
        The same with as little of the rows as will do.
    """

    read: Callable[[], Iterator[Batch]]
    again: bool
    read_labels: Callable[[], Iterator[Batch]]

    def __iter__(self) -> Iterator[Batch]:
        return (batch for batch in self.read() if _n_rows(batch[0]))

    def labels(self) -> Iterator[tuple[int, Any]]:
        """How many rows each batch has, and their labels."""
        return ((_n_rows(rows), y) for rows, y in self.read_labels())


def source_of(X: Any, y: Any, *, name: str) -> Source:
    """The batches of `X`, for which `is_stream` holds.

    Parameters
    ----------
    y : str or None
        The name of the column of labels, where there is one.
    name : str
        Who asks, for the messages.
    """
    if y is not None and not isinstance(y, str):
        raise UserError(
            f"{name} was given batches of rows, so y must be the name of the column of labels, or "
            f"None; got {type(y).__name__}. Labels that are no column come with each batch, as "
            f"pairs (X, y)."
        )
    if is_dataset(X):
        return _from_dataset(X, y)
    begin = X if callable(X) else lambda: iter(X)

    def read() -> Iterator[Batch]:
        return (_pair(batch, y) for batch in begin())

    return Source(read, again=callable(X) or iter(X) is not X, read_labels=read)


def prefetched(batches: Iterator[T]) -> Iterator[T]:
    """The same, each read in a thread while the one before is worked on.

    Examples
    --------
    >>> list(prefetched(iter(range(3))))
    [0, 1, 2]
    """
    waiting: Queue[tuple[bool, Any]] = Queue(maxsize=_AHEAD)
    unwanted = Event()

    def put(is_batch: bool, value: Any) -> None:
        while not unwanted.is_set():
            with suppress(Full):
                waiting.put((is_batch, value), timeout=_PATIENCE)
                break

    def read() -> None:
        try:
            for batch in batches:
                put(True, batch)
                if unwanted.is_set():
                    return
            put(False, None)
        except BaseException as error:
            put(False, error)

    reader = Thread(target=read, daemon=True, name="eqsep batches")
    reader.start()
    try:
        while True:
            is_batch, value = waiting.get()
            if is_batch:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        unwanted.set()
        reader.join()


def record_batches(data: Any, columns: list[str] | None, rows: int) -> Iterator[Any]:
    """At most `rows` rows of a dataset at a time, read little ahead: memory must not grow with it.

    Parameters
    ----------
    columns : list of str or None
        Those to read; None reads all.
    """
    told: dict[str, Any] = {"columns": columns, "batch_size": rows}
    told |= {"batch_readahead": 2, "fragment_readahead": 1}
    files = _parquet_files(data)
    if not files:
        yield from data.to_batches(**told)
    for file in files:
        # The reader of a whole file does not wait for who works on its rows, and holds them all.
        for group in file.split_by_row_group():
            yield from group.to_batches(schema=data.schema, **told)


def _parquet_files(data: Any) -> list[Any]:
    """The files of a dataset where all are Parquet and all their rows are wanted; else none."""
    try:
        files = list(data.get_fragments())
    except ValueError:  # of a filtered dataset, which is read as a whole
        return []
    return files if all(hasattr(file, "split_by_row_group") for file in files) else []


def _from_dataset(data: Any, label: str | None) -> Source:
    names = data.schema.names
    if label is not None and label not in names:
        raise UserError(_no_column(label, names))
    rows = min(max(CELLS_AT_ONCE // max(len(names), 1), FEWEST_ROWS), MOST_ROWS)
    table = import_module("pyarrow").Table.from_batches  # has been imported: there is a dataset

    def read(columns: list[str] | None = None) -> Iterator[Batch]:
        return (_pair(table([batch]), label) for batch in record_batches(data, columns, rows))

    return Source(read, again=True, read_labels=lambda: read([] if label is None else [label]))


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
        f"There is no column {label!r} of labels: the columns are {listed(np.array(names))}. Pass "
        f"the name of one of them as y, or None where no row is labelled."
    )


def _n_rows(rows: Any) -> int:
    if isinstance(rows, Table):
        return rows.n_rows
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)
