"""The score in the graph: |1 - f|, g, the ellipsoid and trees, its threshold and p-value."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eqsep.detector import Detector
from eqsep.detector.feature_map import deviations
from eqsep.detector.scoring import MOST_ALIKE
from eqsep.engine.ellipsoid import FARTHEST, Ellipsoid
from eqsep.engine.trees import Trees
from eqsep.export.columns import name_distances, name_outputs
from eqsep.export.graph import Graph, Value
from eqsep.export.table import Encoded
from eqsep.tables.fitted import output_weights

ROUNDINGS = 1.5  # typical errors of a sum by which two ways to it hardly ever differ
MANY = 64  # columns: the sums of more of them round more coarsely


@dataclass(frozen=True)
class ScoreGraph:
    """A detector's score of encoded rows.

    The threshold is the score of a row that calibrates, so rows equal to it are at the threshold,
    and another order of summation would carry some of them over it. So the graph's scores are
    compared with those of calibration plus what single precision may make of each.
    """

    detector: Detector

    @cached_property
    def _functions(self) -> tuple[np.ndarray, float]:
        """The coefficients of f, and beside them those of g where it counts; and its weight."""
        weight, g = self.detector.feature_map_.likeness_weight, self.detector.anomaly_coef_
        f = self.detector.coef_[:, 0]
        return (np.column_stack([f, g]), weight) if weight and g.any() else (f[:, None], 0.0)

    @cached_property
    def roundings(self) -> np.ndarray:
        """How much another order of summation may change the score of each row that calibrates.

        A relative error eps in a distance s is one of a k(s) gamma s eps in the sum f; errors at
        several landmarks add up like independent ones. Then f itself is rounded.
        """
        values, (coef, weight) = self.detector.feature_map_.kernel_map, self._functions
        rows, parts = self.detector.calibration_.rows, np.array([1.0, weight])[: coef.shape[1]]
        f, error = np.zeros(len(rows)), np.zeros(len(rows))
        for piece, k in values.chunks(rows, most=len(rows)) if len(rows) else ():
            k = np.maximum(k.astype(float), np.finfo(float).tiny)
            f[piece] = np.abs(k @ coef) @ parts
            error[piece] = np.sqrt(((k * (1 - np.log(k))) ** 2) @ coef**2) @ parts
        coarseness = max(1.0, (rows.shape[1] / MANY) ** 0.5)
        eps = float(np.finfo(np.float32).eps)
        feature_map = self.detector.feature_map_
        y = feature_map.along(rows)
        t = feature_map.votes(rows, y, self.detector.leaf_votes_)
        others = feature_map.excess(y) + (1 + feature_map.vote_weight) * t
        return eps * (f + ROUNDINGS * coarseness * error + others)

    @cached_property
    def limit(self) -> float:
        """The score above which the graph calls a row anomalous."""
        threshold = self.detector.threshold_
        tied = self.detector.calibration_.scores == threshold
        return float(threshold + self.roundings[tied].max(initial=0.0))

    def score(self, graph: Graph, rows: Encoded) -> Value:
        """The score of each row.  -> (n,)"""
        (coef, weight), (first, *others) = self._functions, self.detector.feature_map_.kernel.powers
        k = self._widest(graph, rows)
        total, power = k, first
        for wanted in others:
            while power < wanted:
                k, power = graph("Mul", k, k), 2 * power
            total = graph("Add", total, k)
        if others:
            total = graph("Div", total, np.array(1.0 + len(others), dtype=np.float32))
        sums = graph("MatMul", graph.cast(total, np.float64), coef.astype(float))
        sums = graph.cast(graph.cast(sums, np.float32), np.float64)  # as the library rounds it
        score = graph("Abs", graph("Sub", 1.0, _column(graph, sums, 0)))
        feature_map = self.detector.feature_map_
        y = self._along(graph, rows)
        if feature_map.trees is not None:
            t = self._votes(graph, self._seen(graph, rows, y), feature_map.trees)
            score = score if feature_map.doubted else graph("Max", score, t)
            score = graph("Add", score, graph("Mul", t, feature_map.vote_weight))
        if weight:
            g = graph("Clip", _column(graph, sums, 1), 0.0, MOST_ALIKE)
            score = graph("Add", score, graph("Mul", g, weight))
        if feature_map.ellipsoid is not None and y is not None:
            score = graph("Add", score, _excess(graph, y, feature_map.ellipsoid))
        return score

    def _widest(self, graph: Graph, rows: Encoded) -> Value:
        """The kernel of the widest bandwidth, which others are powers of.  -> (n, m)"""
        kernel = self.detector.feature_map_.kernel
        rate = np.array(kernel.gamma * kernel.powers[0], dtype=np.float32)
        return graph("Exp", graph("Mul", self._distances(graph, rows), -rate))

    def _along(self, graph: Graph, rows: Encoded) -> Value | None:
        """The rows along the axes of the ellipsoid, if there is one.  -> (n, n_axes)"""
        ellipsoid, numbers = self.detector.feature_map_.ellipsoid, rows.numbers
        if ellipsoid is None or not numbers:
            return None
        encoder = self.detector.feature_map_.encoder
        wanted = np.flatnonzero(output_weights(encoder) > 0)[deviations(encoder)]
        there = np.array([numbers.places.index(place) for place in wanted], dtype=np.int64)
        x = graph.cast(graph("Gather", numbers.value, there, axis=1), np.float64)
        return graph("MatMul", graph("Sub", x, ellipsoid.centre), ellipsoid.axes)

    def _seen(self, graph: Graph, rows: Encoded, y: Value | None) -> Value:
        """What trees see of the rows.  -> (n, n_packed + n_axes)"""
        packed = self._packed(graph, rows)
        if y is None or not self.detector.feature_map_.sees_axes:
            return packed
        return graph("Concat", packed, graph.cast(y, np.float32), axis=1)

    def _votes(self, graph: Graph, seen: Value, trees: Trees) -> Value:
        """How anomalous the rows are by the vote of the trees.  -> (n,)"""
        is_leaf = trees.column < 0
        tree = np.searchsorted(trees.root, np.arange(len(trees.column)), side="right") - 1
        node = np.arange(len(tree)) - trees.root[tree]  # numbered in each tree
        true, false = (
            np.where(is_leaf, 0, side - trees.root[tree]) for side in (trees.left, trees.right)
        )
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
            target_weights=self.detector.leaf_votes_[trees.left[is_leaf]] / len(trees.root),
        )
        return graph.cast(_column(graph, votes, 0), np.float64)

    def _packed(self, graph: Graph, rows: Encoded) -> Value:
        """The rows with columns that say the same twice added up.  -> (n, n_packed)"""
        feature_map = self.detector.feature_map_
        kept = np.flatnonzero(output_weights(feature_map.encoder) > 0)
        to_packed = np.zeros((len(kept), len(feature_map.packing.first)), dtype=np.float32)
        to_packed[feature_map.packing.first, np.arange(to_packed.shape[1])] = 1
        to_packed[feature_map.packing.second, feature_map.packing.twice] = 1
        parts = []
        if rows.numbers:
            places = np.searchsorted(kept, rows.numbers.places)
            parts.append(graph("MatMul", rows.numbers.value, to_packed[places]))
        if rows.names:
            heights = []
            for c in rows.named:
                outputs = name_outputs(c.category)
                first = int(np.searchsorted(kept, c.first))
                heights.append(outputs @ to_packed[first : first + len(outputs)])
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
                places = range(c.first, c.first + len(c.category.outputs))
                tables.append(name_distances(c.category, self._landmarks(places)))
            parts.append(graph("MatMul", rows.names.value, np.concatenate(tables)))
        return graph("Add", *parts) if len(parts) == 2 else parts[0]

    def _landmarks(self, places: Sequence[int]) -> np.ndarray:
        """The landmarks' columns that are the encoder's outputs at these places."""
        feature_map = self.detector.feature_map_
        kept = np.flatnonzero(output_weights(feature_map.encoder) > 0)
        return feature_map.landmarks[:, np.searchsorted(kept, places)]

    def p_value(self, graph: Graph, score: Value) -> Value:
        """(1 + the weight of calibrating scores as high) / (that of all + 1).  (n,) -> (n,)"""
        calibration = self.detector.calibration_
        n = calibration.n_units
        if not n:
            return graph("Add", graph("Mul", score, 0.0), 1.0)
        column = graph("Unsqueeze", score, np.array([1]))
        limits = (calibration.scores + self.roundings)[calibration.counting]
        as_high = graph.cast(graph("GreaterOrEqual", limits, column), np.float64)
        weight = graph("MatMul", as_high, calibration.weights)
        return graph("Div", graph("Add", 1.0, weight), n + 1.0)


def _excess(graph: Graph, y: Value, ellipsoid: Ellipsoid) -> Value:
    """What columns count that do not move together.  (n, n_axes) -> (n,)"""
    squares = graph("Mul", y, y)
    mean = graph("ReduceMean", graph("Mul", squares, squares), np.array([1]), keepdims=0)
    distance = graph("Max", graph("Pow", mean, 0.25), ellipsoid.edge)
    steps = graph("Div", graph("Log", graph("Div", distance, ellipsoid.edge)), ellipsoid.tail)
    return graph("Mul", graph("Min", steps, FARTHEST), ellipsoid.weight)


def _column(graph: Graph, values: Value, j: int) -> Value:
    """One column of a matrix.  (n, k) -> (n,)"""
    return graph("Gather", values, j, axis=1)
