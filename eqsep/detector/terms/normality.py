"""The normality term: how far a row is off the surface of the rows that look normal alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.detector.terms.kernel import KernelTerm
from eqsep.detector.terms.term import (
    EncodedRows,
    FirstRows,
    LearntSums,
    RowsToSum,
    Sums,
    Term,
    TermFunction,
)
from eqsep.engine.nystroem import solve_ridge
from eqsep.tables.encoder import Encoder


@dataclass(frozen=True, eq=False, kw_only=True)
class NormalityTerm(Term):
    """|1 - h|, h over the landmarks of the kernel: 1 at rows that look normal, without the others.

    What anomalies are labelled, and what isolated rows nobody has looked at, does not bend h.
    """

    kernel: KernelTerm
    weight: float

    name: ClassVar = "normality"
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
        sums = self.kernel.statistics(others, report=_not_again)
        return Sums(symmetric={"gram": sums.gram}, by_class={"moment": sums.moment})

    def solve(self, learnt: LearntSums) -> "NormalityFunction":
        """The ridge regression of the kernel on the other rows alone."""
        kernel, own = learnt.of_terms[KernelTerm.name], learnt.of_terms[self.name]
        gram = kernel.symmetric["gram"] - own.symmetric["gram"]
        moment = kernel.by_class["moment"][:, 0] - own.by_class["moment"][:, 0]
        return NormalityFunction(solve_ridge(gram, moment, learnt.config.alpha))

    def solved(self, learnt: LearntSums, state: dict[str, Any]) -> "NormalityFunction":
        """The function with the coefficients of a model file."""
        del learnt
        shape = schemas.bounded(len(self.kernel.landmarks), dtype="float64")
        schemas.check_parts(state, {"coef": shape}, "NormalityTerm")
        return NormalityFunction(state["coef"])

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, Term]) -> Self:
        del encoder
        kernel = before[KernelTerm.name]
        assert isinstance(kernel, KernelTerm)
        return cls.from_state(state, kernel=kernel)


@dataclass(frozen=True, eq=False)
class NormalityFunction(TermFunction):
    """|1 - h| of rows."""

    coef: np.ndarray  # (n_landmarks,)

    @property
    def landmark_coef(self) -> np.ndarray:
        return self.coef[:, None]

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        del rows
        return abs(1 - at_landmarks[:, 0])

    def state(self) -> dict[str, Any]:
        return {"coef": self.coef}


def _not_again(n_rows: int) -> None:
    """Progress of rows that the kernel term has reported."""
