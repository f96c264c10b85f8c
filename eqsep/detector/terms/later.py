"""The later-kinds term: nearness to rows of kinds that were labelled after the first fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.detector.terms.kernel import KernelTerm, LandmarkFunction, LandmarkTerm
from eqsep.detector.terms.term import (
    EncodedRows,
    FirstRows,
    LearntSums,
    RowsToSum,
    Sums,
    Term,
)
from eqsep.engine.nystroem import solve_ridge
from eqsep.tables.encoder import Encoder


@dataclass(frozen=True, eq=False)
class LaterKindsFunction(LandmarkFunction):
    """The function of rows, from 0 to 1."""

    @property
    def landmark_coef(self) -> np.ndarray | None:
        return self.coef[:, None] if self.coef.any() else None

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        if at_landmarks is None:
            return 0.0 * rows.rows[:, 0]
        return rows.backend.clipped(at_landmarks[:, 0], 0.0, 1.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class LaterKindsTerm(LandmarkTerm):
    """The kernel's function of all kinds that the plan does not know, from 0 to 1.

    Trees are grown at the first fit, and do not separate kinds that came later.
    """

    kinds: tuple[str, ...]  # that the plan knows

    name: ClassVar = "later"
    FUNCTION: ClassVar = LaterKindsFunction
    SCHEMAS: ClassVar = {"kinds": schemas.TEXTS, "weight": schemas.NOT_NEGATIVE}

    @classmethod
    def choose(cls, first: FirstRows) -> Self | None:
        """The term over the landmarks of the kernel; doubted rows have their likeness."""
        kernel, weight = first.chosen[KernelTerm.name], first.config.vote_weight
        assert isinstance(kernel, KernelTerm)
        return None if first.doubted else cls(kernel=kernel, kinds=first.kinds, weight=weight)

    def accumulate(self, rows: RowsToSum) -> Sums:
        """Nothing: the sums of the kernel are enough."""
        del rows
        return Sums()

    def solve(self, learnt: LearntSums) -> LaterKindsFunction:
        """A ridge regression: 1 at rows of later kinds, 0 at all others."""
        later = [1 + i for i, kind in enumerate(learnt.kinds) if kind not in self.kinds]
        if not later:
            return LaterKindsFunction(np.zeros(len(self.kernel.landmarks)))
        own = learnt.of_terms[KernelTerm.name]
        moment = own.by_class["moment"][:, later].sum(axis=1)
        return LaterKindsFunction(solve_ridge(own.symmetric["gram"], moment, learnt.config.alpha))

    def state(self) -> dict[str, Any]:
        return super().state() | {"kinds": list(self.kinds)}

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, Term]) -> Self:
        del encoder
        kernel = before[KernelTerm.name]
        assert isinstance(kernel, KernelTerm)
        schemas.check_parts(state, cls.SCHEMAS, "LaterKindsTerm")
        return cls(kernel=kernel, kinds=tuple(state["kinds"]), weight=state["weight"])
