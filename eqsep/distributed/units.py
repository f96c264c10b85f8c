"""Rows divided into units of work, and what tasks make of these, added up in a tree.

The division depends on the rows and files alone, never on how many processes there are.
"""

import hashlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.dataset
from pyarrow import fs
from threadpoolctl import threadpool_limits

from eqsep.distributed.cluster import RETRIES, cluster, load_ray
from eqsep.engine.loops import threads
from eqsep.errors import UserError
from eqsep.files import FORMATS
from eqsep.labels import listed
from eqsep.tables.batches import MOST_ROWS, Batches, batches_from

ROWS_OF_A_UNIT = 2**18  # at most, but for whole row groups of a Parquet file
MANY_FILES = 1000  # of so many each is a unit: their insides need not be looked at
_MOST_TASKS = 10_000  # units beyond so many share one
_FORMATS = {ending: form for ending, form in FORMATS.items() if form != "jsonl"}
_DIGESTED = 1000  # rows by which a block is known
FAN = 8  # how many results one task adds up
# Of a task's processors, those of the tasks that add up, and of those that add up what these give.
# They differ, as Ray Data would run steps that ask for the same in one task, without a tree.
LEVELS = (0.5, 0.25)
_MENDABLE = (ValueError, FileNotFoundError, PermissionError)  # by the user
T = TypeVar("T")
Work = Callable[..., Iterator[pa.Table]]
Task = Callable[[Any, int], T | None]  # of what is in a unit, and the number that tells it apart
Opened = Callable[[pa.Table], Iterator[tuple[Any, int]]]


@dataclass(frozen=True)
class Units:
    """Rows to be worked on unit by unit."""

    data: Any  # a ray.data.Dataset with a row for each unit, or of the rows, in blocks
    opened: Opened  # from a batch of `data` to sources of rows, each with the number of its unit
    at_once: int | None  # how many rows of `data` are a batch; None is a block
    names: list[str] | None = None  # the columns of the rows, if they are known


@dataclass(frozen=True)
class Divided:
    """Things that are turned into batches of rows where they are worked on."""

    items: Sequence[Any]  # names of files, say
    read: Callable[[Any], Any]  # from one of them to what `Detector.fit` takes as batches


def units_of(data: Any, label: str | None = None) -> Units:
    """The units of what `eqsep.distributed.fit` takes; refuses a label that is not a column."""
    if isinstance(data, load_ray().data.Dataset):
        names = data.columns() or []
        empty = pa.table({name: pa.array([], pa.float64()) for name in names})
        list(batches_from([empty], label, name="fit").read())  # says where the label is missing
        return Units(data, partial(_open_block, names=names, label=label), None, names)
    if isinstance(data, str | os.PathLike):
        data = dataset_of(data)
    if isinstance(data, pa.dataset.FileSystemDataset):
        batches_from(data, label, name="fit")
        opened = partial(_source, read=None, label=label)
        return replace(as_units(list(_parts(data)), opened), names=data.schema.names)
    if isinstance(data, Divided):
        return as_units(data.items, partial(_source, read=data.read, label=label))
    raise UserError(
        f"Expected a ray.data.Dataset, a pyarrow dataset of files, or the path of Parquet or CSV "
        f"files, got {type(data).__name__}. Rows in memory are fitted by Detector.fit."
    )


def dataset_of(path: str | os.PathLike[str]) -> pa.dataset.FileSystemDataset:
    """The files at a path or address, or in the folder there, as one table."""
    system, place = fs.LocalFileSystem(), str(Path(path).resolve())
    if "://" in str(path):
        system, place = fs.FileSystem.from_uri(str(path))
    info = system.get_file_info(place)
    if info.type == fs.FileType.NotFound:
        raise UserError(f"There is no file {path}: check its name and folder.")
    files = [info]
    if info.type == fs.FileType.Directory:
        files = system.get_file_info(fs.FileSelector(place, recursive=True))
    hidden = (".", "_")
    forms = {f.path: f.extension.lower() for f in files if not f.base_name.startswith(hidden)}
    names = [path for path, form in forms.items() if form in _FORMATS]
    formats = {_FORMATS[forms[path]] for path in names}
    if len(formats) != 1:
        found = sorted(f".{form}" for form in set(forms.values())) or ["no file"]
        raise UserError(
            f"{path} is not a table of one form: expected files that end in .parquet, .csv or "
            f".arrow, got {listed(np.array(found))}."
        )
    return pa.dataset.dataset(sorted(names), format=formats.pop(), filesystem=system)


def _parts(data: pa.dataset.FileSystemDataset) -> Iterator[pa.dataset.FileSystemDataset]:
    """Files, and those of Parquet in parts of whole row groups, as data sets of their own."""
    many = len(data.files) > MANY_FILES
    for file in data.get_fragments():
        parts = [file]
        if not many and isinstance(file, pa.dataset.ParquetFileFragment):
            sizes = [group.num_rows for group in file.row_groups]
            parts = [file.subset(row_group_ids=ids) for ids in _together(sizes)]
        for part in parts:
            yield pa.dataset.FileSystemDataset([part], data.schema, data.format, data.filesystem)


def _together(sizes: Sequence[int]) -> list[list[int]]:
    """The places of neighbours that add up to the size of a unit."""
    groups: list[list[int]] = []
    for place, size in enumerate(sizes):
        if groups and sum(sizes[i] for i in groups[-1]) + size <= ROWS_OF_A_UNIT:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def as_units(items: Sequence[Any], opened: Callable[[Any], Any]) -> Units:
    """Each item as a unit, which `opened` turns into what is worked on, where it is."""
    rows = [{"number": i, "item": pickle.dumps(item)} for i, item in enumerate(items)]
    data = load_ray().data.from_items(rows, override_num_blocks=max(min(len(rows), _MOST_TASKS), 1))
    return Units(data, partial(_open_items, opened=opened), 1)


def _open_items(batch: pa.Table, *, opened: Callable[[Any], Any]) -> Iterator[tuple[Any, int]]:
    for row in batch.to_pylist():
        yield opened(pickle.loads(row["item"])), row["number"]


def _source(item: Any, *, read: Callable[[Any], Any] | None, label: str | None) -> Batches:
    return batches_from(item if read is None else read(item), label, name="Detector")


def _open_block(
    table: pa.Table, *, names: list[str], label: str | None
) -> Iterator[tuple[Batches, int]]:
    if set(table.schema.names) != set(names):
        both = f"{listed(np.array(sorted(set(table.schema.names) ^ set(names))))} not in both"
        message = f"A block does not have the columns of the dataset: {both}."
        hint = "Pass blocks of one table, with None where a value is not known."
        raise UserError(message, hint=hint, topic="unlike_batches")
    table = table.select(names)
    slices = [table.slice(start, MOST_ROWS) for start in range(0, table.num_rows, MOST_ROWS)]
    # The number of a block is the same whenever and by whichever process it is made.
    first = table.slice(0, _DIGESTED).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, first.schema.remove_metadata()) as writer:
        writer.write_table(first.replace_schema_metadata(None))
    digest = hashlib.blake2b(sink.getvalue(), digest_size=8)
    digest.update(str(table.num_rows).encode())
    yield batches_from(slices, label, name="Detector"), int.from_bytes(digest.digest())


def total(units: Units, task: Task[T], add: Callable[[T, T], T], *, cpus: float = 1) -> T | None:
    """The sum, in order, of what `task` makes of all units on `cpus` threads each, or None."""
    made = _on_units(units, _made, task, cpus=cpus)
    for share in LEVELS:
        made = _mapped(made, _added, FAN, cpus=share * cpus, add=add)
    return _sum(_unpacked(made), add)


def each(units: Units, task: Callable[[Any], Iterable[T]]) -> Iterator[T]:
    """What `task` gives for each unit, one after the other, in their order."""
    return _unpacked(_on_units(units, _each, task, cpus=1))


def _on_units(units: Units, work: Work, task: object, *, cpus: float) -> Any:
    sent = [load_ray().put(task)]  # within a list: Ray would fetch it before it is needed
    return _mapped(units.data, work, units.at_once, cpus=cpus, task=sent, opened=units.opened)


def _mapped(data: Any, work: Work, size: int | None, *, cpus: float, **given: Any) -> Any:
    return data.map_batches(
        work,
        batch_size=size,
        batch_format="pyarrow",
        fn_kwargs=given,
        num_cpus=cpus,
        ray_remote_args_fn=lambda: {"max_retries": RETRIES},
    )


@contextmanager
def as_threads() -> Iterator[None]:
    """As many threads as Ray gives this task, by OMP_NUM_THREADS."""
    with threadpool_limits(threads()):
        yield


class WorkerDiedError(UserError, ChildProcessError):
    """A process of the cluster ended at the same rows again and again."""


@dataclass(frozen=True)
class _Failed:
    """What is wrong with some rows: sent as a result, as Ray would wrap an error in its own."""

    error: Exception


def _made(batch: pa.Table, *, task: list[Any], opened: Opened) -> Iterator[pa.Table]:
    (work,) = load_ray().get(task)
    return _packed(work(unit, number) for unit, number in opened(batch))


def _each(batch: pa.Table, *, task: list[Any], opened: Opened) -> Iterator[pa.Table]:
    (work,) = load_ray().get(task)
    return _packed(result for unit, _ in opened(batch) for result in work(unit))


def _added(batch: pa.Table, *, add: Callable[[T, T], T]) -> Iterator[pa.Table]:
    return _packed(_sum(results, add) for results in [_results(batch)])  # errors are packed too


def _sum(results: Iterator[T], add: Callable[[T, T], T]) -> T | None:
    first = next(results, None)
    return None if first is None else reduce(add, results, first)


def _packed(results: Iterator[Any]) -> Iterator[pa.Table]:
    """Each result but None, or the error that ends them, pickled in a table of one row."""

    def row(result: Any) -> pa.Table:
        return pa.table({"made": pa.array([pickle.dumps(result, protocol=5)], pa.large_binary())})

    try:
        with as_threads():
            yield from (row(result) for result in results if result is not None)
    except _MENDABLE as error:
        yield row(_Failed(error))


def _results(batch: pa.Table) -> Iterator[Any]:
    """What was packed; raises an error that was."""
    for packed in batch.column("made") if batch.num_rows else ():
        result = pickle.loads(packed.as_buffer())
        if isinstance(result, _Failed):
            raise result.error
        yield result


def _unpacked(data: Any) -> Iterator[Any]:
    """All results in order, as they come."""
    crashed = load_ray().exceptions.WorkerCrashedError, load_ray().exceptions.OutOfMemoryError
    options = data.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        for batch in data.iter_batches(batch_size=None, batch_format="pyarrow"):
            yield from _results(batch)
    except crashed as error:
        times = f"{1 + RETRIES} times, usually for lack of memory"
        hint = "Divide the rows into smaller files, or give a task more: cpus_per_task=2."
        message = f"A process of the cluster died at the same rows {times}."
        raise WorkerDiedError(message, hint=hint) from error
    finally:
        options.preserve_order = before


def spread(
    function: Callable[[T], Any], items: Sequence[T], *, address: str | None
) -> Iterator[tuple[T, Any]]:
    """Each item with what the function gives for it, or with the error, as they end.

    Each is a task of one processor. If its process dies, it is tried again, `RETRIES` times.
    """
    with cluster(address) as ray:
        call = ray.remote(num_cpus=1, max_retries=RETRIES)(_call)
        sent = ray.put(function)
        waiting = {call.remote(sent, item): item for item in items}
        try:
            while waiting:
                (done,), _ = ray.wait(list(waiting), num_returns=1)
                item = waiting.pop(done)
                try:
                    result = ray.get(done)
                except ray.exceptions.RayError as error:
                    result = error
                yield item, result
        finally:
            for task in waiting:
                ray.cancel(task)


def _call(function: Callable[[T], Any], item: T) -> Any:
    with as_threads():
        return function(item)
