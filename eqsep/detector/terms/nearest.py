"""The nearest-distance term: how far away a row is from all normal rows, without saturating."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.detector.isolation import LEFT_OUT
from eqsep.detector.terms.term import (
    EncodedRows,
    FirstRows,
    LearntSums,
    RowsToSum,
    Sums,
    Term,
    TermFunction,
)
from eqsep.engine.nearest import Neighbourhood
from eqsep.engine.tails import Tail
from eqsep.tables.encoder import Encoder

_FEWEST = 20  # rows to measure distances to
_MOST_VALUES = 2_000_000  # of the rows that are kept


@dataclass(frozen=True, eq=False, kw_only=True)
class NearestTerm(Term):
    """The tail of the distance to the nearest of some normal rows among the first ones.

    |1 - f| is near 1 for all that is far away, and loses the order of far rows; this keeps it.
    """

    neighbourhood: Neighbourhood
    tail: Tail
    weight: float

    name: ClassVar = "nearest"
    SCHEMAS: ClassVar = {
        "neighbourhood": schemas.kept(Neighbourhood),
        "tail": schemas.kept(Tail),
        "weight": schemas.NOT_NEGATIVE,
    }

    @classmethod
    def choose(cls, first: FirstRows) -> Self | None:
        """The term over normal rows drawn from the first ones, if there are enough."""
        config, counts = first.config, first.is_anomaly == 0
        if first.isolation == LEFT_OUT:
            counts &= ~first.isolated
        places, most = np.flatnonzero(counts), config.n_references
        most = min(most, _MOST_VALUES // max(first.packed.shape[1], 1))
        if len(places) > most:
            places = np.random.RandomState(first.key).permutation(places)[:most]
        isolated = first.isolated[places]
        if (~isolated).sum() < _FEWEST or not config.nearest_weight:
            return None
        rows = np.ascontiguousarray(first.packed[places])
        neighbourhood, alone = Neighbourhood.of(rows, isolated)
        tail = Tail.of(alone[:, None])
        return cls(neighbourhood=neighbourhood, tail=tail, weight=config.nearest_weight)

    def accumulate(self, rows: RowsToSum) -> Sums:
        """Nothing: distances are to the first rows."""
        del rows
        return Sums()

    def solve(self, learnt: LearntSums) -> "NearestFunction":
        del learnt
        return NearestFunction(self)

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, Term]) -> Self:
        del before
        term = cls.from_state(state)
        if not term.neighbourhood.fits(n_columns=len(encoder.pack.first)):
            schemas.damaged("the rows that distances are measured to do not match its columns")
        if term.tail.n_columns != 1:
            schemas.damaged("the tail of its distances is not of one number")
        return term


@dataclass(frozen=True, eq=False)
class NearestFunction(TermFunction):
    """0 near normal rows; 1 more for each power of ten by which so distant rows are rarer."""

    term: NearestTerm

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        del at_landmarks
        tail, near = self.term.tail, self.term.neighbourhood
        distance = rows.backend.nearest(near, rows.packed, enough=float(tail.knots[0, 0]))
        return tail(distance[:, None])[:, 0]
