"""The score in the graph: the terms of the formula, the threshold and the p-value."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from eqsep.detector.model import Model
from eqsep.detector.terms.ellipsoid import EllipsoidTerm
from eqsep.detector.terms.kernel import KernelTerm
from eqsep.detector.terms.later import LaterKindsTerm
from eqsep.detector.terms.likeness import MOST_ALIKE, LikenessTerm
from eqsep.detector.terms.nearest import NearestTerm
from eqsep.detector.terms.normality import NormalityTerm
from eqsep.detector.terms.surprise import SurpriseFunction, SurpriseTerm
from eqsep.detector.terms.term import Term
from eqsep.detector.terms.votes import VoteFunction, VotesTerm
from eqsep.engine.ellipsoid import SMALLEST, Ellipsoid
from eqsep.engine.kernels import manhattan
from eqsep.engine.nearest import LEAST as LEAST_DISTANCE
from eqsep.engine.nearest import Neighbourhood
from eqsep.engine.predictions import LEAST as LEAST_PROBABILITY
from eqsep.engine.predictions import N_BINS, Predictions
from eqsep.engine.tails import Tail
from eqsep.engine.trees import Trees
from eqsep.errors import UserError, quoted
from eqsep.export.graph import Graph, Operand, Value
from eqsep.export.table import Encoded, name_outputs

T = TypeVar("T", bound=Term)
_WRITTEN = (  # as nodes of the graph
    KernelTerm,
    EllipsoidTerm,
    VotesTerm,
    LikenessTerm,
    LaterKindsTerm,
    NormalityTerm,
    NearestTerm,
    SurpriseTerm,
)
_OVER_LANDMARKS = (KernelTerm.name, NormalityTerm.name, LikenessTerm.name, LaterKindsTerm.name)
ROUNDINGS = 1.5  # typical errors of a sum by which two ways to it hardly ever differ
MANY = 64  # columns: the sums of more of them round more coarsely
_EPS = float(np.finfo(np.float32).eps)


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
    def _weights(self) -> dict[str, float]:
        return {term.name: term.weight for term in self.model.plan.terms}

    @cached_property
    def _coef(self) -> dict[str, np.ndarray]:
        """The coefficients of each term's function over the landmarks."""
        found = {}
        for name in _OVER_LANDMARKS:
            function = self.model.score.functions.get(name)
            if function is not None and function.landmark_coef is not None:
                found[name] = function.landmark_coef[:, 0]
        return found

    @cached_property
    def roundings(self) -> np.ndarray:
        """How much another order of summation may change the score of each row that calibrates."""
        rows, weights = self.model.evidence.held_out.normal, self._weights
        if not len(rows):
            return np.zeros(0)
        packed = self.model.plan.encoder.pack(rows)
        # The library rounds encoded rows as the graph does; only their sums differ.
        steps = ROUNDINGS * max(1.0, (rows.shape[1] / MANY) ** 0.5) * _EPS
        values, of_sums = self.model.score.values(rows), self._roundings_of_sums(rows, steps)
        part = weights.get(NormalityTerm.name, 0.0)
        total = (1 - part) * _of_root(values[KernelTerm.name], of_sums[KernelTerm.name])
        if part:
            total += part * _of_root(values[NormalityTerm.name], of_sums[NormalityTerm.name])
        for name in (LikenessTerm.name, LaterKindsTerm.name):
            if name in of_sums:
                total += weights[name] * of_sums[name]
        if (votes := self._term(VotesTerm)) is not None:  # a sum in single precision
            error = ROUNDINGS * _EPS * len(votes.trees.root) ** 0.5
            total += weights[votes.name] * values[votes.name] * error
        if (name := EllipsoidTerm.name) in values:
            total += weights[name] * values[name] * _EPS
        if (nearest := self._term(NearestTerm)) is not None:
            longer = nearest.tail(_longer(nearest.neighbourhood, packed, steps)[:, None])[:, 0]
            total += weights[nearest.name] * np.maximum(longer - values[nearest.name], 0.0)
        if (surprise := self._term(SurpriseTerm)) is not None:
            predictions = surprise.predictions
            p = predictions.predicted(packed, self._probability)
            less = p * (1 - ROUNDINGS * _EPS * predictions.n_each**0.5)
            more = predictions.total(predictions.surprise(less)) - values[surprise.name]
            total += weights[surprise.name] * np.maximum(more, 0.0)
        return np.asarray(total)

    def _roundings_of_sums(self, rows: np.ndarray, steps: float) -> dict[str, np.ndarray]:
        """The same of the functions over the landmarks."""
        # A relative error eps in a distance s is one of a k(s) gamma s eps in the sum f; errors at
        # several landmarks add up like independent ones. Then f itself is rounded.
        coef = np.column_stack(list(self._coef.values()))
        out = np.empty((len(rows), coef.shape[1]))
        for piece, k in self.model.plan.kernel.numpy_map.chunks(rows, most=len(rows)):
            k = np.maximum(k.astype(float), np.finfo(float).tiny)
            spread = np.sqrt(((k * (1 - np.log(k))) ** 2) @ coef**2)
            out[piece] = _EPS * np.abs(k @ coef) + steps * spread
        return dict(zip(self._coef, out.T, strict=True))

    @property
    def n_points(self) -> int:
        """How many points a row is compared with at once."""
        nearest = self._term(NearestTerm)
        n_near = 0 if nearest is None else len(nearest.neighbourhood.rows)
        return max(len(self.model.plan.kernel.landmarks), n_near)

    @cached_property
    def limit(self) -> float:
        """The score above which the graph calls a row anomalous."""
        threshold = self.model.threshold
        tied = self.model.calibration.scores == threshold
        return float(threshold + self.roundings[tied].max(initial=0.0))

    def score(self, graph: Graph, rows: Encoded) -> Value:
        """The score of each row, as `combine` puts it together.  -> (n,)"""
        weights, packed = self._weights, self._packed(graph, rows)
        values = self._at_landmarks(graph, rows, packed)
        axes = self._along(graph, rows)
        if (votes := self._term(VotesTerm)) is not None:
            seen = packed
            if axes is not None and votes.axes is not None:
                seen = graph("Concat", seen, graph.cast(axes, np.float32), axis=1)
            values[votes.name] = self._votes(graph, seen, votes.trees)
        if (excess := self._term(EllipsoidTerm)) is not None and axes is not None:
            values[excess.name] = _excess(graph, axes, excess.ellipsoid)
        if (nearest := self._term(NearestTerm)) is not None:
            values[nearest.name] = self._nearest(graph, rows, packed, nearest)
        if (surprise := self._term(SurpriseTerm)) is not None:
            values[surprise.name] = self._surprise(graph, packed, surprise.predictions)
        part = weights.get(NormalityTerm.name, 0.0)
        score = graph("Mul", graph("Sqrt", values.pop(KernelTerm.name)), 1 - part)
        if NormalityTerm.name in values:
            root = graph("Sqrt", values.pop(NormalityTerm.name))
            score = graph("Add", score, graph("Mul", root, part))
        for name, value in values.items():
            score = graph("Add", score, graph("Mul", value, weights[name]))
        return score

    def _at_landmarks(self, graph: Graph, rows: Encoded, packed: Value) -> dict[str, Value]:
        """The values of the terms that look at landmarks, each of shape (n,)."""
        kernel, pack = self.model.plan.kernel.kernel, self.model.plan.encoder.pack
        first, *others = kernel.powers
        rate = np.array(kernel.gamma * first, dtype=np.float32)
        distances = self._distances(graph, rows, packed, pack(self.model.plan.kernel.landmarks))
        k = graph("Exp", graph("Mul", distances, -rate))  # of the widest one
        total, power = k, first  # the others are powers of it
        for wanted in others:
            while power < wanted:
                k, power = graph("Mul", k, k), 2 * power
            total = graph("Add", total, k)
        if others:
            total = graph("Div", total, np.array(1.0 + len(others), dtype=np.float32))
        coef = np.column_stack(list(self._coef.values())).astype(float)
        sums = graph("MatMul", graph.cast(total, np.float64), coef)
        sums = graph.cast(graph.cast(sums, np.float32), np.float64)  # as the library rounds it
        values = {name: graph("Gather", sums, i, axis=1) for i, name in enumerate(self._coef)}
        for name in (KernelTerm.name, NormalityTerm.name):
            if name in values:
                values[name] = graph("Abs", graph("Sub", 1.0, values[name]))
        for name, most in ((LikenessTerm.name, MOST_ALIKE), (LaterKindsTerm.name, 1.0)):
            if name in values:
                values[name] = graph("Clip", values[name], 0.0, most)
        return values

    def _nearest(self, graph: Graph, rows: Encoded, packed: Value, term: NearestTerm) -> Value:
        """The tail of the distance to the nearest row of the neighbourhood.  -> (n,)"""
        near = term.neighbourhood
        distances = self._distances(graph, rows, packed, near.rows, fast=True)
        scaled = graph("Mul", distances, near.scale)
        if near.has_handicap:
            scaled = graph("Max", scaled, np.array(LEAST_DISTANCE, dtype=np.float32))
            scaled = graph("Add", scaled, near.handicap)
        least = graph("ReduceMin", scaled, np.array([1]), keepdims=1)
        least = graph("Max", graph.cast(least, np.float64), LEAST_DISTANCE)
        return graph("Squeeze", _tail(graph, graph("Log", least), term.tail), np.array([1]))

    def _surprise(self, graph: Graph, packed: Value, predictions: Predictions) -> Value:
        """The tail of the mean of the two most surprising columns.  -> (n,)"""
        bins, n_each = predictions.bins, predictions.n_each
        values = graph("Gather", packed, bins.column.astype(np.int64), axis=1)
        above = graph.cast(graph("Greater", values, bins.limit), np.float32)
        last = np.array(N_BINS - 1, dtype=np.float32)
        own = graph.cast(graph("Min", graph("MatMul", above, bins.steps), last), np.int64)
        target = np.repeat(np.arange(bins.n_targets), n_each)[:, None] * N_BINS + np.arange(N_BINS)
        p = _of_leaves(graph, packed, predictions.trees, self._probability / n_each, target)
        p = graph("Reshape", p, np.array([-1, bins.n_targets, N_BINS]))
        p = graph("GatherElements", p, graph("Unsqueeze", own, np.array([2])), axis=2)
        p = graph.cast(graph("Squeeze", p, np.array([2])), np.float64)
        p = graph("Max", p, LEAST_PROBABILITY)
        tails = _tail(graph, graph("Neg", graph("Log", p)), predictions.tail)
        largest = graph("TopK", tails, np.array([2]), n_unused=1, axis=1)
        mean = graph("ReduceMean", largest, np.array([1]), keepdims=1)
        return graph("Squeeze", _tail(graph, mean, predictions.whole), np.array([1]))

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
        mean = self._leaf_votes[:, None] / len(trees.root)
        votes = _of_leaves(graph, seen, trees, mean, np.zeros((len(trees.root), 1), dtype=int))
        return graph.cast(graph("Gather", votes, 0, axis=1), np.float64)

    @property
    def _leaf_votes(self) -> np.ndarray:
        votes = self.model.score.functions[VotesTerm.name]
        assert isinstance(votes, VoteFunction)
        return votes.leaf_votes

    @property
    def _probability(self) -> np.ndarray:
        surprise = self.model.score.functions[SurpriseTerm.name]
        assert isinstance(surprise, SurpriseFunction)
        return surprise.probability

    @cached_property
    def _to_packed(self) -> np.ndarray:
        """The packed column of each encoded one, as a matrix.  (n_encoded, n_packed)"""
        pack = self.model.plan.encoder.pack
        matrix = np.zeros((len(self.model.plan.encoder.counted), len(pack.first)), np.float32)
        matrix[pack.first, np.arange(len(pack.first))] = 1
        matrix[pack.second, pack.twice] = 1
        return matrix

    def _named(self, rows: Encoded) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each column of names, its packed columns and what they are for each name."""
        counted, found = self.model.plan.encoder.counted, []
        for c in rows.named:
            outputs, first = name_outputs(c.learnt), np.searchsorted(counted, c.first)
            to_packed = self._to_packed[first : first + len(outputs)]
            columns = np.flatnonzero(to_packed.any(axis=0))
            found.append((columns, outputs @ to_packed[:, columns]))
        return found

    def _packed(self, graph: Graph, rows: Encoded) -> Value:
        """The rows with columns that say the same twice added up.  -> (n, n_packed)"""
        parts = []
        if rows.numbers:
            places = np.searchsorted(self.model.plan.encoder.counted, rows.numbers.places)
            parts.append(graph("MatMul", rows.numbers.value, self._to_packed[places]))
        if rows.names:
            heights = []
            for columns, of_names in self._named(rows):
                heights.append(np.zeros((len(of_names), self._to_packed.shape[1]), np.float32))
                heights[-1][:, columns] = of_names
            parts.append(graph("MatMul", rows.names.value, np.concatenate(heights)))
        return graph("Add", *parts) if len(parts) == 2 else parts[0]

    def _distances(
        self, graph: Graph, rows: Encoded, packed: Value, points: np.ndarray, *, fast: bool = False
    ) -> Value:
        """||z - c||_1 for each row and packed point; names by a table of theirs.  -> (n, m)

        The `fast` way rounds as the numbers do, and not as their differences.
        """
        parts: list[Operand] = []
        named = self._named(rows)
        is_named = np.zeros(points.shape[1], dtype=bool)
        for columns, _ in named:
            is_named[columns] = True
        if rows.numbers:
            columns = np.flatnonzero(~is_named)
            numbers = graph("Gather", packed, columns, axis=1) if named else packed
            one_by_one = graph("Unsqueeze", numbers, np.array([2]))
            C = np.ascontiguousarray(points[:, columns].T)  # (k, m)
            # A product with ones: several times as fast as the sum along an axis.
            ones = np.ones((1, len(C)), np.float32)
            if fast:  # |z - c| = z + c - 2 min(z, c)
                total = graph("MatMul", -2 * ones, graph("Min", one_by_one, C))  # (n, 1, m)
                parts.append(graph("ReduceSum", numbers, np.array([1]), keepdims=1))
                parts.append(C.sum(axis=0, dtype=float).astype(np.float32))
            else:
                total = graph("MatMul", ones, graph("Abs", graph("Sub", one_by_one, C)))
            parts.append(graph("Squeeze", total, np.array([1])))
        if rows.names:
            tables = [manhattan(of_names, points[:, columns]) for columns, of_names in named]
            parts.append(graph("MatMul", rows.names.value, np.concatenate(tables)))
        distances, *others = parts
        for other in others:
            distances = graph("Add", distances, other)
        assert isinstance(distances, Value)
        return distances

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


def _of_root(value: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """How much the root of a value may change: near 0, more than the value."""
    return np.asarray(np.sqrt(value + rounding) - np.sqrt(value))


def _longer(near: Neighbourhood, packed: np.ndarray, steps: float) -> np.ndarray:
    """The largest logarithm of the distance of each row that rounding may lead to."""
    distance, size = np.exp(near.log_distance(packed)), np.abs(packed).sum(axis=1, dtype=float)
    error = steps * (distance + 2 * near.scale.max() * size)
    # Equal rows are as far apart as the error, which is nearer than counts.
    for handicap in (0.0, float(near.handicap.max())):
        error[np.isclose(distance, LEAST_DISTANCE + handicap, rtol=1e-6, atol=0.0)] = 0.0
    return np.asarray(np.log(distance + error))


def _excess(graph: Graph, axes: Value, ellipsoid: Ellipsoid) -> Value:
    """The tail of the distance from the ellipsoid.  (n, n_axes) -> (n,)"""
    squares = graph("Mul", axes, axes)
    mean = graph("ReduceMean", graph("Mul", squares, squares), np.array([1]), keepdims=1)
    distance = graph("Max", graph("Pow", mean, 0.25), SMALLEST)
    return graph("Squeeze", _tail(graph, graph("Log", distance), ellipsoid.tail), np.array([1]))


def _tail(graph: Graph, values: Value, tail: Tail) -> Value:
    """The tail of each column of values in double precision.  (n, k) -> (n, k)"""
    parts = [
        graph("Mul", graph("Max", graph("Sub", values, knot), 0.0), slope)
        for knot, slope in zip(tail.knots, tail.slopes, strict=True)
    ]
    return graph("Add", *parts)


def _of_leaves(
    graph: Graph, seen: Value, trees: Trees, of_leaf: np.ndarray, target: np.ndarray
) -> Value:
    """The sums over trees of the numbers of leaves, at the targets of each tree.

    (n, n_columns), (n_leaves, k), (n_trees, k) -> (n, n_targets)
    """
    is_leaf = trees.is_leaf
    tree = np.searchsorted(trees.root, np.arange(len(trees.column)), side="right") - 1
    first = trees.root[tree]
    node = np.arange(len(tree)) - first  # numbered in each tree
    true, false = (np.where(is_leaf, 0, side - first) for side in (trees.left, trees.right))
    k = target.shape[1]
    return graph(
        "TreeEnsembleRegressor",
        seen,
        domain="ai.onnx.ml",
        n_targets=1 + int(target.max()),
        aggregate_function="SUM",
        nodes_treeids=tree,
        nodes_nodeids=node,
        nodes_featureids=np.maximum(trees.column, 0),
        nodes_modes=np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_values=trees.limit,
        nodes_truenodeids=true,
        nodes_falsenodeids=false,
        target_treeids=np.repeat(tree[is_leaf], k),
        target_nodeids=np.repeat(node[is_leaf], k),
        target_ids=target[tree[is_leaf]].ravel(),
        target_weights=of_leaf[trees.left[is_leaf]].ravel(),
    )
