"""The score in the graph: |1 - Σ_j a_j exp(-gamma ||z - c_j||_1)|, its threshold and p-value."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from eqsep.detector import Detector
from eqsep.detector.calibration import Calibration
from eqsep.export.graph import Graph, Value

LEAST_ROUNDING = 1e-6
ROUNDINGS = 4  # another order of summation may round as much again, in each of two scores


@dataclass(frozen=True)
class ScoreGraph:
    """A detector's score of encoded rows.

    The threshold is the score of a row that calibrates, so rows equal to it are at the threshold,
    and another order of summation would carry some of them over it. So the graph's scores are
    compared with those of calibration plus what single precision may make of a score.
    """

    detector: Detector

    @cached_property
    def rounding(self) -> float:
        """What the calibrating rows' scores differ by from double precision, several times over."""
        feature_map, calibration = self.detector.feature_map_, self.detector.calibration_
        exact = replace(feature_map.values, landmarks=feature_map.landmarks.astype(np.float64))
        if not len(calibration.rows):
            return LEAST_ROUNDING
        f = exact.combine(calibration.rows.astype(np.float64), self.detector.coef_[:, 0])
        error = np.abs(np.abs(1 - f) - calibration.scores).max()
        return max(LEAST_ROUNDING, ROUNDINGS * float(error))

    @property
    def limit(self) -> float:
        """The score above which the graph calls a row anomalous."""
        return float(self.detector.threshold_) + self.rounding

    def score(self, graph: Graph, Z: Value, *, places: list[int]) -> Value:
        """The score of rows whose columns are the encoder's outputs at `places`.  (n, k) -> (n,)"""
        feature_map = self.detector.feature_map_
        kept = np.flatnonzero(feature_map.encoder.weights_ > 0)
        order = np.searchsorted(kept, places)
        C = np.ascontiguousarray(feature_map.landmarks[:, order].T)  # (k, m)
        away = graph("Abs", graph("Sub", graph("Unsqueeze", Z, np.array([2])), C))
        # A product with ones: several times as fast as the sum along an axis.
        distance = graph("MatMul", np.ones((1, len(C)), np.float32), away)  # (n, 1, m)
        rate = np.array(feature_map.kernel.gamma, dtype=np.float32)
        k = graph("Exp", graph("Mul", graph("Squeeze", distance, np.array([1])), -rate))
        f = graph("MatMul", graph.cast(k, np.float64), self.detector.coef_[:, 0].astype(float))
        f = graph.cast(graph.cast(f, np.float32), np.float64)  # as the library rounds it
        return graph("Abs", graph("Sub", 1.0, f))

    def p_value(self, graph: Graph, score: Value) -> Value:
        """(1 + the number of calibrating scores as high) / (their number + 1).  (n,) -> (n,)"""
        ordered = self.calibration.ordered
        if not len(ordered):
            return graph("Add", graph("Mul", score, 0.0), 1.0)
        column = graph("Unsqueeze", score, np.array([1]))
        as_high = graph("GreaterOrEqual", ordered + self.rounding, column)
        n = graph("ReduceSum", graph.cast(as_high, np.float32), np.array([1]), keepdims=0)
        return graph("Div", graph("Add", 1.0, graph.cast(n, np.float64)), len(ordered) + 1.0)

    @property
    def calibration(self) -> Calibration:
        """The rows that calibrate."""
        return self.detector.calibration_
