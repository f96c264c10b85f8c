"""Some rows at a time: one loop of the graph, so that memory does not grow with the rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from eqsep.export.graph import Graph, Value

AT_ONCE = 2**20  # numbers held as differences: megabytes, whatever the number of rows


def rows_at_once(numbers_a_row: int) -> int:
    """How many rows to take at once, where each needs so many numbers.

    Examples
    --------
    >>> [rows_at_once(numbers) for numbers in (100, 10_000, 10_000_000)]
    [256, 104, 1]
    """
    return int(np.clip(AT_ONCE // numbers_a_row, 1, 256))


def in_blocks(
    graph: Graph, n: Value, body: Callable[[Graph, Value], list[Value]], *, most: int
) -> list[Value]:
    """The results of `body` for the rows 0 … n - 1, `most` of them at a time.

    Parameters
    ----------
    n : value
        The number of rows, of shape (1,).
    body : function
        From a graph and the places of some rows in it to values of one number a row, in double
        precision.
    """
    from onnx import helper

    size = graph("Max", graph("Min", n, np.array([most])), np.array([1]))
    n_blocks = graph("Div", graph("Sub", graph("Add", n, size), 1), size)
    count = graph("Squeeze", graph("Mul", n_blocks, size))
    last = graph("Sub", n, 1)
    rows = graph("Min", graph("Range", 0, count, 1), last)  # the last block repeats the last row
    blocks = graph("Reshape", rows, graph("Concat", n_blocks, size, axis=0))
    inner = graph.inner()
    places = inner.name("rows")
    results = body(inner, places)
    scan_body = helper.make_graph(
        inner.nodes, "block", [_declared(places, np.int64)], [_declared(r, float) for r in results]
    )
    names = [graph.name("blocks") for _ in results]
    graph.nodes.append(helper.make_node("Scan", [blocks], names, body=scan_body, num_scan_inputs=1))
    flat = [graph("Reshape", name, np.array([-1])) for name in names]
    return [graph("Slice", value, np.array([0]), n) for value in flat]


def _declared(name: Value, dtype: type) -> Any:
    from onnx import helper

    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, element, ["rows"])
