"""The likeness term: nearness to labelled anomalies, where the other rows are doubted."""

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

MOST_ALIKE = 1.5  # beyond, likeness counts no more
_MIN_WEIGHT = 1e-300  # of anomalies: none of them divides by nothing


@dataclass(frozen=True, eq=False)
class LikenessFunction(LandmarkFunction):
    """g of rows, from 0 to 1.5."""

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        return rows.backend.clipped(at_landmarks[:, 0], 0.0, MOST_ALIKE)


@dataclass(frozen=True, eq=False, kw_only=True)
class LikenessTerm(LandmarkTerm):
    """g(x) = Σ_j b_j k(x, c_j), 1 at labelled anomalies of any kind and 0 at other rows.

    Anomalies together weigh as much as all other rows, so that few of them count.
    """

    name: ClassVar = "likeness"
    FUNCTION: ClassVar = LikenessFunction
    SCHEMAS: ClassVar = {"weight": schemas.POSITIVE}

    @classmethod
    def choose(cls, first: FirstRows) -> Self | None:
        """The term over the landmarks of the kernel, where rows are doubted."""
        kernel, weight = first.chosen[KernelTerm.name], first.config.likeness_weight
        assert isinstance(kernel, KernelTerm)
        return cls(kernel=kernel, weight=weight) if first.doubted and weight else None

    def accumulate(self, rows: RowsToSum) -> Sums:
        """Σ w k kᵀ of the anomalous rows."""
        anomalous = rows.take(np.flatnonzero(rows.target[:, 0] == 0))
        gram = self.kernel.statistics(anomalous, report=not_reported).gram
        return Sums(symmetric={"gram": gram})

    def solve(self, learnt: LearntSums) -> LikenessFunction:
        """A ridge regression on the sums with both classes of equal weight."""
        kernel, n_anomalies = learnt.of_terms[KernelTerm.name], learnt.n_anomalies
        if not n_anomalies:
            return LikenessFunction(np.zeros(len(self.kernel.landmarks)))
        times = learnt.weight[0] / max(n_anomalies, _MIN_WEIGHT)
        anomalous = learnt.of_terms[self.name].symmetric["gram"]
        gram = kernel.symmetric["gram"] + (times - 1) * anomalous
        moment = (kernel.by_class["moment"][:, 1:] * times).sum(axis=1)
        alpha = max(learnt.config.likeness_ridge / n_anomalies, 1.0)
        return LikenessFunction(solve_ridge(gram, moment, alpha))
