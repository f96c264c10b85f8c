"""What is made of each unit of rows by Ray Data and added up in a tree, or of any items."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
_TOLD = (ValueError, FileNotFoundError, PermissionError)  # what a user can mend
T = TypeVar("T")
Task = Callable[[Any, int], T | None]  # of what is in a unit, and the number that tells it apart


def total(units: Units, task: Task[T], add: Callable[[T, T], T], *, cpus: float = 1) -> T | None:
    """The sum of what `task` makes of all units, in their order; None where there are none.

    Parameters
    ----------
    task, add : callable
        They are sent to where units are, once for each machine; so are their results, pickled.
    cpus : float
        The processors, and so the threads, of one task.
    """
    sent = [load_ray().put(task)]  # within a list: it is to be fetched by those who want it
    made = units.data.map_batches(
        _made,
        batch_size=units.at_once,
        batch_format="pyarrow",
        fn_kwargs={"task": sent, "opened": units.opened},
        num_cpus=cpus,
        ray_remote_args_fn=_tried_again,
    )
    for share in LEVELS:
        made = made.map_batches(
            _added,
            batch_size=FAN,
            batch_format="pyarrow",
            fn_kwargs={"add": add},
            num_cpus=share * cpus,
            ray_remote_args_fn=_tried_again,
        )
    return _sum(_unpacked(made), add)


def each(units: Units, task: Callable[[Any], Iterable[T]]) -> Iterator[T]:
    """What `task` gives for each unit, one after the other, in their order."""
    sent = [load_ray().put(task)]
    made = units.data.map_batches(
        _each,
        batch_size=units.at_once,
        batch_format="pyarrow",
        fn_kwargs={"task": sent, "opened": units.opened},
        num_cpus=1,
        ray_remote_args_fn=_tried_again,
    )
    return _unpacked(made)


@contextmanager
def as_threads() -> Iterator[None]:
    """As many threads as Ray has told this task to take, by OMP_NUM_THREADS."""
    with threadpool_limits(threads()):
        yield


class WorkerDiedError(UserError, ChildProcessError):
    """A process of the cluster ended at the same rows again and again."""


@dataclass(frozen=True)
class _Failed:
    """What is wrong with some rows: sent as a result, as Ray would wrap an error in its own."""

    error: Exception


def _made(batch: pa.Table, *, task: list[Any], opened: Opened) -> pa.Table:
    (work,) = load_ray().get(task)
    try:
        with as_threads():
            found = [work(unit, number) for unit, number in opened(batch)]
    except _TOLD as error:
        return _packed([_Failed(error)])
    return _packed([result for result in found if result is not None])


def _added(batch: pa.Table, *, add: Callable[[T, T], T]) -> pa.Table:
    try:
        with as_threads():
            result = _sum(_results(batch), add)
    except _TOLD as error:
        return _packed([_Failed(error)])
    return _packed([] if result is None else [result])


def _each(batch: pa.Table, *, task: list[Any], opened: Opened) -> Iterator[pa.Table]:
    (work,) = load_ray().get(task)
    try:
        for unit, _ in opened(batch):
            with as_threads():
                for result in work(unit):
                    yield _packed([result])
    except _TOLD as error:
        yield _packed([_Failed(error)])


def _tried_again() -> dict[str, Any]:
    return {"max_retries": RETRIES}


def _sum(results: Iterable[T], add: Callable[[T, T], T]) -> T | None:
    sum_: T | None = None
    for result in results:
        sum_ = result if sum_ is None else add(sum_, result)
    return sum_


def _packed(results: list[Any]) -> pa.Table:
    packed = [pickle.dumps(result, protocol=5) for result in results]
    return pa.table({"made": pa.array(packed, pa.large_binary())})


def _results(batch: pa.Table) -> Iterator[Any]:
    """What was packed; raises what was wrong where something was."""
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

    Each is a task of one processor. Where its process dies, it is tried again, `RETRIES` times.
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
