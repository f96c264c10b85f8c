"""The score: how anomalous a row is. The formula stands here, once, and names every term."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from eqsep import schemas
from eqsep.arrays import WithoutCaches
from eqsep.detector.plan import Plan
from eqsep.detector.terms.kernel import KernelFunction, KernelTerm
from eqsep.detector.terms.term import EncodedRows, LearntSums, TermFunction
from eqsep.engine.backends import NUMPY, Backend, LandmarkMap
from eqsep.engine.loops import weighted_sums


def combine(values: Mapping[str, Any], *, weights: Mapping[str, float], backend: Backend) -> Any:
    """The formula: the roots of residual and normality in parts, and the other terms weighted.

    (1 - a) sqrt(residual) + a sqrt(normality) + Σ w_t t. The root, as small residuals differ more
    than large ones. A term that the plan lacks counts nothing, and its part is the residual's.
    """
    part = weights["normality"] if "normality" in values else 0.0
    score = (1 - part) * backend.root(values["residual"])
    if part:
        score = score + part * backend.root(values["normality"])
    for name in ("vote", "excess", "likeness", "later", "nearest", "surprise"):
        if name in values:
            score = score + weights[name] * values[name]
    return score


@dataclass(frozen=True, eq=False, kw_only=True)
class Score(WithoutCaches):
    """The terms of a plan with what was solved for them: from encoded rows to scores."""

    plan: Plan
    functions: Mapping[str, TermFunction]  # of each term, by its name
    backend: Backend = NUMPY  # where rows are scored

    @classmethod
    def solve(cls, plan: Plan, learnt: LearntSums) -> "Score":
        """The score that the sums over all learnt rows give."""
        return cls(plan=plan, functions={term.name: term.solve(learnt) for term in plan.terms})

    def state(self) -> dict[str, Any]:
        """The parts of a model file, beside the sums."""
        return {name: function.state() for name, function in self.functions.items()}

    @classmethod
    def from_state(cls, state: dict[str, Any], *, plan: Plan, learnt: LearntSums) -> "Score":
        """The score of these parts."""
        schemas.check_names(state, "Score", required=[term.name for term in plan.terms])
        functions = {term.name: term.solved(learnt, state[term.name]) for term in plan.terms}
        return cls(plan=plan, functions=functions)

    @property
    def kernel(self) -> KernelFunction:
        """f, and the functions of the kinds."""
        function = self.functions[KernelTerm.name]
        assert isinstance(function, KernelFunction)
        return function

    def __call__(self, rows: Any) -> np.ndarray:
        """The scores of encoded rows, an array or a tensor of the device.  -> (n,)"""
        backend, parts = self.backend, []
        for piece in backend.pieces(rows):
            at_landmarks = backend.double(self._map.evaluate(piece, self._landmark_coef))
            values = self._others(piece) | self._at_landmarks(piece, at_landmarks)
            parts.append(backend.fetched(self._combined(values)))
        return np.concatenate(parts)

    def with_kind_likeness(
        self, rows: np.ndarray, threshold: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The scores, and the likeness to kinds of rows above the threshold.  -> (n,), (m, k)"""
        functions, kinds = self._landmark_coef.T, self._kinds.T
        score, likeness = np.empty(len(rows)), np.empty((len(rows), len(kinds)))
        others = self._others(rows)

        def fill(part: slice, k: np.ndarray) -> None:
            sums = weighted_sums(k, functions).astype(k.dtype)  # rounded as in `__call__`
            values = self._at_landmarks(rows[part], sums.astype(float))
            values |= {name: value[part] for name, value in others.items()}
            own = score[part] = self._combined(values)
            above = own > threshold
            likeness[part][above] = weighted_sums(k[above], kinds)

        self.plan.kernel.numpy_map.each(rows, fill)
        return score, likeness[score > threshold]

    def residual(self, rows: np.ndarray) -> np.ndarray:
        """|1 - f| alone: near 1 for a row near no landmark.  (n, n_encoded) -> (n,)"""
        f = self._map.evaluate(rows, self.kernel.coef[:, 0]).astype(float)  # rounded as the score
        return np.asarray(np.abs(1 - f))

    def kind_likeness(self, rows: np.ndarray) -> np.ndarray:
        """How much each row is like each kind: 1 at rows of that kind.  -> (n, n_kinds)"""
        likeness: np.ndarray = self._map.evaluate(rows, self._kinds, dtype=float)
        return likeness

    def values(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """What each term says of encoded rows, by its name; computed in main memory."""
        here = self if self.backend is NUMPY else replace(self, backend=NUMPY)
        sums = NUMPY.double(here._map.evaluate(rows, here._landmark_coef))
        return here._others(rows) | here._at_landmarks(rows, sums)

    def _combined(self, values: Mapping[str, Any]) -> Any:
        return combine(values, weights=self._weights, backend=self.backend)

    def _others(self, rows: Any) -> dict[str, Any]:
        """The values of the terms that look at no landmark."""
        seen = self._encoded(rows)
        with_landmarks = self._columns
        return {n: f(seen, None) for n, f in self.functions.items() if n not in with_landmarks}

    def _at_landmarks(self, rows: Any, sums: Any) -> dict[str, Any]:
        """The values of the others, from sums of kernel values at the landmarks."""
        seen = self._encoded(rows)
        return {n: self.functions[n](seen, sums[:, part]) for n, part in self._columns.items()}

    def _encoded(self, rows: Any) -> EncodedRows:
        return EncodedRows(rows, self.plan.encoder.pack, self.backend)

    @property
    def _map(self) -> LandmarkMap:
        return self.plan.kernel.map_on(self.backend)

    @cached_property
    def _weights(self) -> dict[str, float]:
        return {term.name: term.weight for term in self.plan.terms}

    @cached_property
    def _columns(self) -> dict[str, slice]:
        """The functions over the landmarks that each term looks at."""
        columns, first = {}, 0
        for name, function in self.functions.items():
            if (coef := function.landmark_coef) is not None:
                columns[name] = slice(first, first := first + coef.shape[1])
        return columns

    @cached_property
    def _landmark_coef(self) -> np.ndarray:
        """The coefficients of all of these, a column each."""
        found = [function.landmark_coef for function in self.functions.values()]
        return np.asfortranarray(np.column_stack([coef for coef in found if coef is not None]))

    @cached_property
    def _kinds(self) -> np.ndarray:
        return np.asfortranarray(self.kernel.coef[:, 1:])
