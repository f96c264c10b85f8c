"""The likeness term: nearness to labelled anomalies, where the other rows are doubted."""

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

MOST_ALIKE = 1.5  # beyond, likeness counts no more
_MIN_WEIGHT = 1e-300  # of anomalies: none of them divides by nothing


@dataclass(frozen=True, eq=False, kw_only=True)
class LikenessTerm(Term):
    """g(x) = Σ_j b_j k(x, c_j), 1 at labelled anomalies of any kind and 0 at other rows.

    Anomalies together weigh as much as all other rows, so that few of them count.
    """

    kernel: KernelTerm
    weight: float

    name: ClassVar = "likeness"
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
        gram = self.kernel.statistics(anomalous, report=_not_again).gram
        return Sums(symmetric={"gram": gram})

    def solve(self, learnt: LearntSums) -> "LikenessFunction":
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

    def solved(self, learnt: LearntSums, state: dict[str, Any]) -> "LikenessFunction":
        """The function with the coefficients of a model file."""
        del learnt
        shape = schemas.bounded(len(self.kernel.landmarks), dtype="float64")
        schemas.check_parts(state, {"coef": shape}, "LikenessTerm")
        return LikenessFunction(state["coef"])

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, Term]) -> Self:
        del encoder
        kernel = before[KernelTerm.name]
        assert isinstance(kernel, KernelTerm)
        return cls.from_state(state, kernel=kernel)


@dataclass(frozen=True, eq=False)
class LikenessFunction(TermFunction):
    """g of rows, from 0 to 1.5."""

    coef: np.ndarray  # (n_landmarks,)

    @property
    def landmark_coef(self) -> np.ndarray:
        return self.coef[:, None]

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        return rows.backend.clipped(at_landmarks[:, 0], 0.0, MOST_ALIKE)

    def state(self) -> dict[str, Any]:
        return {"coef": self.coef}


def _not_again(n_rows: int) -> None:
    """Progress of rows that the kernel term has reported."""
