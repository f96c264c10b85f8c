"""The normality term: how far a row is off the surface of the rows that look normal alone."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.detector.terms.kernel import KernelTerm, LandmarkFunction, LandmarkTerm, not_reported
from eqsep.detector.terms.term import (
    EncodedRows,
    FirstRows,
    LearntSums,
    RowsToSum,
    Sums,
)
from eqsep.engine.nystroem import solve_ridge


@dataclass(frozen=True, eq=False)
class NormalityFunction(LandmarkFunction):
    """|1 - h| of rows."""

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        del rows
        return abs(1 - at_landmarks[:, 0])


@dataclass(frozen=True, eq=False, kw_only=True)
class NormalityTerm(LandmarkTerm):
    """|1 - h|, h over the landmarks of the kernel: 1 at rows that look normal, without the others.

    What anomalies are labelled, and what isolated rows nobody has looked at, does not bend h.
    """

    name: ClassVar = "normality"
    FUNCTION: ClassVar = NormalityFunction
    SCHEMAS: ClassVar = {"weight": schemas.RATE}

    @classmethod
    def choose(cls, first: FirstRows) -> Self | None:
        """The term, where the kernel also learns rows that do not look normal."""
        kernel, weight = first.chosen[KernelTerm.name], first.config.normality_weight
        assert isinstance(kernel, KernelTerm)
        differs = first.isolation == "weighed" or (
            first.isolation == "kept" and first.is_anomaly.any()
        )
        return cls(kernel=kernel, weight=weight) if weight and differs else None

    def accumulate(self, rows: RowsToSum) -> Sums:
        """Σ w k kᵀ and Σ w t k of the rows that do not look normal."""
        others = rows.take(np.flatnonzero(~rows.looks_normal))
        sums = self.kernel.statistics(others, report=not_reported)
        return Sums(symmetric={"gram": sums.gram}, by_class={"moment": sums.moment})

    def solve(self, learnt: LearntSums) -> NormalityFunction:
        """The ridge regression of the kernel on the other rows alone."""
        kernel, own = learnt.of_terms[KernelTerm.name], learnt.of_terms[self.name]
        gram = kernel.symmetric["gram"] - own.symmetric["gram"]
        moment = kernel.by_class["moment"][:, 0] - own.by_class["moment"][:, 0]
        return NormalityFunction(solve_ridge(gram, moment, learnt.config.alpha))
