"""A function of many items, spread over a cluster."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from eqsep.distributed.cluster import RETRIES, cluster
from eqsep.distributed.mapping import as_threads

T = TypeVar("T")


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
