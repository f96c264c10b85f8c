"""Tables on a device: columns are read in main memory, sent and encoded there, some at a time.

While the device computes with some rows, threads read the next ones.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from eqsep.engine.loops import threads
from eqsep.engine.nystroem import DeviceMap
from eqsep.tables.reading import read_table, row_parts
from eqsep.tables.tensors import TensorEncoding

READ_AT_ONCE = 2**17  # rows
MOST_THREADS = 8  # more of them wait for memory


def device_map(feature_map: Any, device: str) -> DeviceMap:
    """The landmarks, and the encoding of tables, of a feature map on a device."""
    parts = feature_map.kernel, feature_map.landmarks, feature_map.packing
    return DeviceMap.of(*parts, TensorEncoding.of(feature_map.encoder, device), device=device)


def encoded_parts(feature_map: Any, X: Any, device: str) -> Iterator[Any]:
    """The rows of a table as tensors on a device, encoded, some at a time.

    Where columns look at the rows before a row, all at once.
    """
    encoding = feature_map.on(device).encoding
    most = READ_AT_ONCE if feature_map.windows is None else None

    def gathered(part: Any) -> Any:
        return encoding.gathered(feature_map.aligned(read_table(part, name="Detector")))

    for columns in _in_advance(gathered, row_parts(X, most=most)):
        yield encoding(columns)


def _in_advance(work: Callable[[Any], Any], parts: list[Any]) -> Iterable[Any]:
    """What is made of each part, in their order, some of them before they are asked for."""
    n_threads = min(threads(), MOST_THREADS, len(parts))
    if len(parts) == 1:
        yield work(parts[0])
        return
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(n_threads, "eqsep") as pool:
        for part in parts:
            waiting.append(pool.submit(work, part))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
