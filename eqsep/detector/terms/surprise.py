"""The surprise term: columns whose values the other columns did not let expect."""

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
from eqsep.engine.predictions import Predictions
from eqsep.tables.encoder import Encoder, Packing


@dataclass(frozen=True, eq=False, kw_only=True)
class SurpriseTerm(Term):
    """-log p of a row's own values, each predicted by trees from the other columns, as a tail.

    The trees are grown on the first normal rows; what their leaves hold adds up over all rows.
    """

    predictions: Predictions
    weight: float
    pack: Packing

    name: ClassVar = "surprise"
    SCHEMAS: ClassVar = {
        "predictions": schemas.kept(Predictions),
        "weight": schemas.NOT_NEGATIVE,
    }

    @classmethod
    def choose(cls, first: FirstRows) -> Self | None:
        """The term, if at least two columns of the table vary among normal rows."""
        config, pack = first.config, first.encoder.pack
        if not (config.surprise_weight and config.n_surprise_trees):
            return None
        rows, source = first.packed[first.describing], first.encoder.source[pack.first]
        predictions = Predictions.of(
            rows,
            source,
            n_trees=config.n_surprise_trees,
            key=first.key,
            weight=None if first.weight is None else first.weight[first.describing],
        )
        if predictions is None:
            return None
        return cls(predictions=predictions, weight=config.surprise_weight, pack=pack)

    def predicted_columns(self, source: np.ndarray) -> np.ndarray:
        """The table's column of each target; `source` has that of each encoded column."""
        bins = self.predictions.bins
        first = np.unique(bins.target, return_index=True)[1]
        return np.asarray(source[self.pack.first][bins.column[first]])

    def accumulate(self, rows: RowsToSum) -> Sums:
        """The weight of the rows that look normal in each bin of each leaf."""
        places = np.flatnonzero(rows.looks_normal)
        sums = self.predictions.sums(self.pack(rows.rows[places]), rows.weight[places])
        return Sums(totals={"leaves": sums})

    def solve(self, learnt: LearntSums) -> "SurpriseFunction":
        leaves = learnt.of_terms[self.name].totals["leaves"]
        return SurpriseFunction(self, self.predictions.probabilities(leaves))

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, Term]) -> Self:
        del before
        term = cls.from_state(state, pack=encoder.pack)
        if not term.predictions.fits(n_columns=len(encoder.pack.first)):
            schemas.damaged("the trees that predict its columns do not match these")
        return term


@dataclass(frozen=True, eq=False)
class SurpriseFunction(TermFunction):
    """0 where the columns of a row fit together; 1 more for each power of ten they do so less."""

    term: SurpriseTerm
    probability: np.ndarray  # of each bin in each leaf

    def of_columns(self, rows: EncodedRows) -> Any:
        """How surprising each predicted column is.  -> (n, n_targets)"""
        predictions = self.term.predictions
        found = rows.backend.predicted(predictions, rows.packed, self.probability)
        return predictions.surprise(found)

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        del at_landmarks
        return self.term.predictions.total(self.of_columns(rows))
