"""The ellipsoid term: columns of numbers that do not move together as they do in normal rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.detector.terms.term import (
    EncodedRows,
    FirstRows,
    LearntSums,
    RowsToSum,
    Sums,
    Term,
    TermFunction,
)
from eqsep.engine.backends import Backend
from eqsep.engine.ellipsoid import SMALLEST, Ellipsoid
from eqsep.tables.encoder import Encoder


@dataclass(frozen=True, eq=False, kw_only=True)
class EllipsoidTerm(Term):
    """The tail of the distance from the ellipsoid that the first normal rows lie in."""

    ellipsoid: Ellipsoid
    columns: np.ndarray  # the encoded columns that it is of: deviations of numbers
    weight: float

    name: ClassVar = "excess"
    SCHEMAS: ClassVar = {
        "ellipsoid": schemas.kept(Ellipsoid),
        "weight": schemas.NOT_NEGATIVE,
    }

    @classmethod
    def choose(cls, first: FirstRows) -> Self | None:
        """The ellipsoid of the normal rows, if at least two columns of numbers vary."""
        normal, columns = first.describing, first.encoder.deviations
        ellipsoid = Ellipsoid.of(
            first.rows[normal][:, columns],
            np.random.RandomState(first.key),
            None if first.weight is None else first.weight[normal],
        )
        if ellipsoid is None:
            return None
        weight = first.config.excess_weight * ellipsoid.trust
        return cls(ellipsoid=ellipsoid, columns=columns, weight=weight)

    def along(self, rows: Any, backend: Backend) -> Any:
        """Encoded rows along the axes.  (n, n_encoded) -> (n, n_axes)"""
        return backend.along(rows, self.columns, self.ellipsoid.centre, self.ellipsoid.axes)

    def accumulate(self, rows: RowsToSum) -> Sums:
        """Nothing: the ellipsoid is that of the first rows."""
        del rows
        return Sums()

    def solve(self, learnt: LearntSums) -> "ExcessFunction":
        del learnt
        return ExcessFunction(self)

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, Term]) -> Self:
        del before
        term = cls.from_state(state, columns=encoder.deviations)
        if len(term.ellipsoid.centre) != len(term.columns):
            schemas.damaged("its ellipsoid does not have the numbers of its table")
        return term


@dataclass(frozen=True, eq=False)
class ExcessFunction(TermFunction):
    """0 where most normal rows lie; 1 more for each power of ten by which so distant are rarer."""

    term: EllipsoidTerm

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        del at_landmarks
        backend = rows.backend
        distance = backend.distance(rows.once(self.term, self.term.along))
        logarithm = backend.log(backend.clipped(distance, SMALLEST, np.inf))
        return self.term.ellipsoid.tail(logarithm[:, None])[:, 0]
