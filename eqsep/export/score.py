"""The score in the graph: |1 - Σ_j a_j exp(-gamma ||z - c_j||_1)|, its threshold and p-value."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eqsep.detector import Detector
from eqsep.export.columns import name_distances
from eqsep.export.graph import Graph, Value
from eqsep.export.table import Encoded
from eqsep.tables.encoder import output_weights

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
    def roundings(self) -> np.ndarray:
        """How much another order of summation may change the score of each row that calibrates.

        A relative error eps in a distance s is one of a k(s) gamma s eps in the sum f; errors at
        several landmarks add up like independent ones. Then f itself is rounded.
        """
        values, coef = self.detector.feature_map_.kernel_map, self.detector.coef_[:, 0]
        rows = self.detector.calibration_.rows
        f, error = np.zeros(len(rows)), np.zeros(len(rows))
        for piece, k in values.chunks(rows, most=len(rows)) if len(rows) else ():
            k = np.maximum(k.astype(float), np.finfo(float).tiny)
            f[piece] = k @ coef
            error[piece] = np.sqrt(((k * (1 - np.log(k)) * coef) ** 2).sum(axis=1))
        coarseness = max(1.0, (rows.shape[1] / MANY) ** 0.5)
        eps = float(np.finfo(np.float32).eps)
        return eps * (np.abs(f) + ROUNDINGS * coarseness * error)

    @cached_property
    def limit(self) -> float:
        """The score above which the graph calls a row anomalous."""
        threshold = self.detector.threshold_
        tied = self.detector.calibration_.scores == threshold
        return float(threshold + self.roundings[tied].max(initial=0.0))

    def score(self, graph: Graph, rows: Encoded) -> Value:
        """The score of each row.  -> (n,)"""
        rate = np.array(self.detector.feature_map_.kernel.gamma, dtype=np.float32)
        k = graph("Exp", graph("Mul", self._distances(graph, rows), -rate))
        f = graph("MatMul", graph.cast(k, np.float64), self.detector.coef_[:, 0].astype(float))
        f = graph.cast(graph.cast(f, np.float32), np.float64)  # as the library rounds it
        return graph("Abs", graph("Sub", 1.0, f))

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
        """(1 + the number of calibrating scores as high) / (their number + 1).  (n,) -> (n,)"""
        calibration = self.detector.calibration_
        n = len(calibration.counting)
        if not n:
            return graph("Add", graph("Mul", score, 0.0), 1.0)
        column = graph("Unsqueeze", score, np.array([1]))
        limits = (calibration.scores + self.roundings)[calibration.counting]
        as_high = graph.cast(graph("GreaterOrEqual", limits, column), np.float32)
        count = graph("ReduceSum", as_high, np.array([1]), keepdims=0)
        return graph("Div", graph("Add", 1.0, graph.cast(count, np.float64)), n + 1.0)
