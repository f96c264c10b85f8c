"""Nodes and constants of a graph, written down as expressions."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

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
