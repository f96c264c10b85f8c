"""Nodes and constants of a graph, written down as expressions, and its loop over blocks of rows."""

from collections.abc import Callable
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
    double precision. The names in `taken` are those of the caller's values.
    """

    taken: frozenset[str] = frozenset()
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    _numbers: Any = field(default_factory=count)

    def __call__(
        self,
        kind: str,
        *operands: Operand,
        result: str = "",
        n_unused: int = 0,
        domain: str = "",
        **attributes: Any,
    ) -> Value:
        """Add a node; the name of its result is `result`, or a new one.

        Where `n_unused` results follow the first one, nothing uses them.
        """
        from onnx import helper

        result = result or self.name(kind)
        names = [o if isinstance(o, str) else self.constant(o) for o in operands]
        results = [result, *(self.name(kind) for _ in range(n_unused))]
        self.nodes.append(helper.make_node(kind, names, results, domain=domain, **attributes))
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
        """The graph of a loop's body, with the same names and constants."""
        return Graph(self.taken, [], self.constants, self._numbers)


def in_blocks(
    graph: Graph, n: Value, body: Callable[[Graph, Value], list[Value]], *, most: int
) -> list[Value]:
    """The results of `body` for the rows 0 … n - 1, `most` of them at a time; n has shape (1,).

    The body takes a graph and the places of some rows, and gives values of one double a row.
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

    def declared(name: Value, dtype: type) -> Any:
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, element, ["rows"])

    outputs = [declared(result, float) for result in results]
    scan_body = helper.make_graph(inner.nodes, "block", [declared(places, np.int64)], outputs)
    names = [graph.name("blocks") for _ in results]
    graph.nodes.append(helper.make_node("Scan", [blocks], names, body=scan_body, num_scan_inputs=1))
    flat = [graph("Reshape", name, np.array([-1])) for name in names]
    return [graph("Slice", value, np.array([0]), n) for value in flat]
