"""The score in the graph: residual, vote, excess and likeness, the threshold and p-value."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from eqsep.detector.model import Model
from eqsep.detector.terms.ellipsoid import EllipsoidTerm
from eqsep.detector.terms.kernel import KernelTerm
from eqsep.detector.terms.likeness import MOST_ALIKE, LikenessTerm
from eqsep.detector.terms.term import Term
from eqsep.detector.terms.votes import VoteFunction, VotesTerm
from eqsep.engine.ellipsoid import FARTHEST, Ellipsoid
from eqsep.engine.kernels import manhattan
from eqsep.engine.trees import Trees
from eqsep.errors import UserError, quoted
from eqsep.export.graph import Graph, Value
from eqsep.export.table import Encoded, name_outputs

T = TypeVar("T", bound=Term)
_WRITTEN = (KernelTerm, EllipsoidTerm, VotesTerm, LikenessTerm)  # as nodes of the graph
ROUNDINGS = 1.5  # typical errors of a sum by which two ways to it hardly ever differ
MANY = 64  # columns: the sums of more of them round more coarsely


@dataclass(frozen=True)
class ScoreGraph:
    """A model's score of encoded rows: the formula of `eqsep.detector.score.combine`.

    ONNX has operators of its own, so the formula is written a second time here, and a test holds
    both to the same scores. Another order of summation could carry rows over the threshold that are
    equal to it: scores are compared with those of calibration plus what rounding may make of each.
    """

    model: Model

    def __post_init__(self) -> None:
        others = [type(one).__name__ for one in self.model.plan.terms if type(one) not in _WRITTEN]
        if others:
            raise UserError(
                f"ONNX export has no graph for the score term {quoted(others)}: expected only "
                f"{quoted(sorted(term.__name__ for term in _WRITTEN))}. Score with eqsep instead."
            )

    def _term(self, kind: type[T]) -> T | None:
        """The term of this class, if the plan has one."""
        return next((term for term in self.model.plan.terms if isinstance(term, kind)), None)

    @cached_property
    def _functions(self) -> tuple[np.ndarray, float]:
        """The coefficients of f, with those of g where likeness counts; and its weight."""
        f, likeness = self.model.score.kernel.coef[:, :1], self._term(LikenessTerm)
        if likeness is None:
            return f, 0.0
        g = self.model.score.functions[LikenessTerm.name].landmark_coef
        assert g is not None
        return np.column_stack([f, g]), likeness.weight

    @cached_property
    def roundings(self) -> np.ndarray:
        """How much another order of summation may change the score of each row that calibrates."""
        # A relative error eps in a distance s is one of a k(s) gamma s eps in the sum f; errors at
        # several landmarks add up like independent ones. Then f itself is rounded.
        coef, weight = self._functions
        rows, votes = self.model.evidence.held_out.normal, self._term(VotesTerm)
        parts = np.array([1.0, weight])[: coef.shape[1]]
        f, error = np.zeros(len(rows)), np.zeros(len(rows))
        kernel_map = self.model.plan.kernel.numpy_map
        for piece, k in kernel_map.chunks(rows, most=len(rows)) if len(rows) else ():
            k = np.maximum(k.astype(float), np.finfo(float).tiny)
            f[piece] = np.abs(k @ coef) @ parts
            error[piece] = np.sqrt(((k * (1 - np.log(k))) ** 2) @ coef**2) @ parts
        coarseness = max(1.0, (rows.shape[1] / MANY) ** 0.5)
        eps = float(np.finfo(np.float32).eps)
        values, others = self.model.score.values(rows), np.zeros(len(rows))
        if votes is not None:
            others += (1 + votes.weight) * values[VotesTerm.name]
        if EllipsoidTerm.name in values:
            others += values[EllipsoidTerm.name]
        return eps * (f + ROUNDINGS * coarseness * error + others)

    @cached_property
    def limit(self) -> float:
        """The score above which the graph calls a row anomalous."""
        threshold = self.model.threshold
        tied = self.model.calibration.scores == threshold
        return float(threshold + self.roundings[tied].max(initial=0.0))

    def score(self, graph: Graph, rows: Encoded) -> Value:
        """The score of each row, as `combine` puts it together.  -> (n,)"""
        kernel, (coef, weight) = self.model.plan.kernel.kernel, self._functions
        first, *others = kernel.powers
        rate = np.array(kernel.gamma * first, dtype=np.float32)
        k = graph("Exp", graph("Mul", self._distances(graph, rows), -rate))  # of the widest one
        total, power = k, first  # the others are powers of it
        for wanted in others:
            while power < wanted:
                k, power = graph("Mul", k, k), 2 * power
            total = graph("Add", total, k)
        if others:
            total = graph("Div", total, np.array(1.0 + len(others), dtype=np.float32))
        sums = graph("MatMul", graph.cast(total, np.float64), coef.astype(float))
        sums = graph.cast(graph.cast(sums, np.float32), np.float64)  # as the library rounds it
        score = graph("Abs", graph("Sub", 1.0, graph("Gather", sums, 0, axis=1)))
        axes = self._along(graph, rows)
        if (votes := self._term(VotesTerm)) is not None:
            seen = self._packed(graph, rows)
            if axes is not None and votes.axes is not None:
                seen = graph("Concat", seen, graph.cast(axes, np.float32), axis=1)
            vote = self._votes(graph, seen, votes.trees)
            score = score if self.model.plan.labels.doubted else graph("Max", score, vote)
            score = graph("Add", score, graph("Mul", vote, votes.weight))
        if weight:
            likeness = graph("Clip", graph("Gather", sums, 1, axis=1), 0.0, MOST_ALIKE)
            score = graph("Add", score, graph("Mul", likeness, weight))
        if (excess := self._term(EllipsoidTerm)) is not None and axes is not None:
            score = graph("Add", score, _excess(graph, axes, excess.ellipsoid))
        return score

    def _along(self, graph: Graph, rows: Encoded) -> Value | None:
        """The rows along the axes of the ellipsoid, if there is one.  -> (n, n_axes)"""
        term, numbers = self._term(EllipsoidTerm), rows.numbers
        if term is None or not numbers:
            return None
        ellipsoid, wanted = term.ellipsoid, self.model.plan.encoder.counted[term.columns]
        there = np.array([numbers.places.index(place) for place in wanted], dtype=np.int64)
        x = graph.cast(graph("Gather", numbers.value, there, axis=1), np.float64)
        return graph("MatMul", graph("Sub", x, ellipsoid.centre), ellipsoid.axes)

    def _votes(self, graph: Graph, seen: Value, trees: Trees) -> Value:
        """How anomalous the rows are by the vote of the trees.  -> (n,)"""
        is_leaf = trees.column < 0
        tree = np.searchsorted(trees.root, np.arange(len(trees.column)), side="right") - 1
        first = trees.root[tree]
        node = np.arange(len(tree)) - first  # numbered in each tree
        true, false = (np.where(is_leaf, 0, side - first) for side in (trees.left, trees.right))
        votes = graph(
            "TreeEnsembleRegressor",
            seen,
            domain="ai.onnx.ml",
            n_targets=1,
            aggregate_function="SUM",
            nodes_treeids=tree,
            nodes_nodeids=node,
            nodes_featureids=np.maximum(trees.column, 0),
            nodes_modes=np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
            nodes_values=trees.limit,
            nodes_truenodeids=true,
            nodes_falsenodeids=false,
            target_treeids=tree[is_leaf],
            target_nodeids=node[is_leaf],
            target_ids=np.zeros(is_leaf.sum(), dtype=int),
            target_weights=self._leaf_votes[trees.left[is_leaf]] / len(trees.root),
        )
        return graph.cast(graph("Gather", votes, 0, axis=1), np.float64)

    @property
    def _leaf_votes(self) -> np.ndarray:
        votes = self.model.score.functions[VotesTerm.name]
        assert isinstance(votes, VoteFunction)
        return votes.leaf_votes

    def _packed(self, graph: Graph, rows: Encoded) -> Value:
        """The rows with columns that say the same twice added up.  -> (n, n_packed)"""
        counted, pack = self.model.plan.encoder.counted, self.model.plan.encoder.pack
        to_packed = np.zeros((len(counted), len(pack.first)), dtype=np.float32)
        to_packed[pack.first, np.arange(to_packed.shape[1])] = 1
        to_packed[pack.second, pack.twice] = 1
        parts = []
        if rows.numbers:
            places = np.searchsorted(counted, rows.numbers.places)
            parts.append(graph("MatMul", rows.numbers.value, to_packed[places]))
        if rows.names:
            starts = np.searchsorted(counted, [c.first for c in rows.named])
            named = zip((name_outputs(c.learnt) for c in rows.named), starts, strict=True)
            heights = [outputs @ to_packed[at : at + len(outputs)] for outputs, at in named]
            parts.append(graph("MatMul", rows.names.value, np.concatenate(heights)))
        return graph("Add", *parts) if len(parts) == 2 else parts[0]

    def _distances(self, graph: Graph, rows: Encoded) -> Value:
        """||z - c||_1 for each row and landmark; names by a table of theirs.  -> (n, m)"""
        parts = []
        if rows.numbers:
            C = np.ascontiguousarray(self._landmarks(rows.numbers.places).T)  # (k, m)
            differences = graph("Sub", graph("Unsqueeze", rows.numbers.value, np.array([2])), C)
            # A product with ones: several times as fast as the sum along an axis.
            ones = np.ones((1, len(C)), np.float32)
            total = graph("MatMul", ones, graph("Abs", differences))  # (n, 1, m)
            parts.append(graph("Squeeze", total, np.array([1])))
        if rows.names:
            tables = []
            for c in rows.named:
                places = range(c.first, c.first + len(c.learnt.outputs))
                landmarks = self._landmarks(places)  # (m, k)
                tables.append(manhattan(name_outputs(c.learnt).astype(landmarks.dtype), landmarks))
            parts.append(graph("MatMul", rows.names.value, np.concatenate(tables)))
        return graph("Add", *parts) if len(parts) == 2 else parts[0]

    def _landmarks(self, places: Sequence[int]) -> np.ndarray:
        """The landmarks' columns that are the encoder's outputs at these places."""
        plan = self.model.plan
        return plan.kernel.landmarks[:, np.searchsorted(plan.encoder.counted, places)]

    def p_value(self, graph: Graph, score: Value) -> Value:
        """(1 + the weight of calibrating scores as high) / (that of all + 1).  (n,) -> (n,)"""
        calibration = self.model.calibration
        n = calibration.n_units
        if not n:
            return graph("Add", graph("Mul", score, 0.0), 1.0)
        column = graph("Unsqueeze", score, np.array([1]))
        limits = (calibration.scores + self.roundings)[calibration.counting]
        as_high = graph.cast(graph("GreaterOrEqual", limits, column), np.float64)
        weight = graph("MatMul", as_high, calibration.weights)
        return graph("Div", graph("Add", 1.0, weight), n + 1.0)


def _excess(graph: Graph, axes: Value, ellipsoid: Ellipsoid) -> Value:
    """What columns count that do not move together.  (n, n_axes) -> (n,)"""
    squares = graph("Mul", axes, axes)
    mean = graph("ReduceMean", graph("Mul", squares, squares), np.array([1]), keepdims=0)
    distance = graph("Max", graph("Pow", mean, 0.25), ellipsoid.edge)
    steps = graph("Div", graph("Log", graph("Div", distance, ellipsoid.edge)), ellipsoid.tail)
    return graph("Mul", graph("Min", steps, FARTHEST), ellipsoid.weight)
