"""What is made of each unit of rows by Ray Data and added up in a tree, or of any items."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import pyarrow as pa
from threadpoolctl import threadpool_limits

from eqsep.distributed.cluster import RETRIES, cluster, load_ray
from eqsep.distributed.units import Opened, Units
from eqsep.engine.loops import threads
from eqsep.errors import UserError

FAN = 8  # how many results one task adds up
# Of a task's processors, those of the tasks that add up, and of those that add up what these give.
# They differ, as Ray Data would run steps that ask for the same in one task, without a tree.
LEVELS = (0.5, 0.25)
_MENDABLE = (ValueError, FileNotFoundError, PermissionError)  # by the user
T = TypeVar("T")
Work = Callable[..., Iterator[pa.Table]]
Task = Callable[[Any, int], T | None]  # of what is in a unit, and the number that tells it apart


def total(units: Units, task: Task[T], add: Callable[[T, T], T], *, cpus: float = 1) -> T | None:
    """The sum of what `task` makes of all units, in their order; None if there are none.

    Each task takes `cpus` processors, and as many threads.
    """
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
        raise WorkerDiedError(
            f"A process of the cluster died at the same rows {1 + RETRIES} times, usually for lack "
            f"of memory.",
            hint="Divide the rows into smaller files, or give a task more: cpus_per_task=2.",
        ) from error
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
