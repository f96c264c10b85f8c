"""Nodes and constants of a graph, written down as expressions, and its loop over blocks of rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

AT_ONCE = 2**20  # numbers held as differences: megabytes, whatever the number of rows
Value = str  # the name of a value in the graph
Operand = Value | np.ndarray | float | int


@dataclass(frozen=True)
class Part:
    """Weighted outputs of an encoder, side by side, and their places among all of its outputs."""

    value: Value
    places: list[int]


@dataclass
class Graph:
    """A list of nodes in order; a call adds one and returns the name of its result.

    Numbers and arrays among the operands become constants: whole numbers of 64 bits, others in
    double precision. The graphs that `inner` makes share names and constants with this one.

    Parameters
    ----------
    taken : iterable of str
        Names that the caller's own values have.

    Examples
    --------
    >>> graph = Graph(taken=["x"])
    >>> doubled = graph("Mul", graph("Sub", "x", 1.0), 2.0)
    >>> [node.op_type for node in graph.nodes]
    ['Sub', 'Mul']
    """

    taken: Iterable[str] = ()
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    _numbers: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self.taken = frozenset(self.taken)

    def __call__(
        self, kind: str, *operands: Operand, result: str = "", domain: str = "", **attributes: Any
    ) -> Value:
        """Add a node; the name of its result is `result`, or a new one."""
        from onnx import helper

        result = result or self.name(kind)
        names = [o if isinstance(o, str) else self.constant(o) for o in operands]
        node = helper.make_node(kind, names, [result], domain=domain, **attributes)
        self.nodes.append(node)
        return result

    def cast(self, value: Value, dtype: type, *, result: str = "") -> Value:
        """The value in another of NumPy's types."""
        from onnx import helper

        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self("Cast", value, result=result, to=element)

    def constant(self, value: Any) -> Value:
        """The name of a constant."""
        from onnx import numpy_helper

        name = self.name("constant")
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def name(self, kind: str) -> Value:
        """A name that no other value has."""
        return next(n for i in self._numbers if (n := f"{kind}_{i}") not in self.taken)

    def inner(self) -> "Graph":
        """The graph of a loop's body."""
        return Graph(self.taken, [], self.constants, self._numbers)


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
