"""The votes term: what trees that separate labelled anomalies from normal rows say of a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.detector.terms.ellipsoid import EllipsoidTerm
from eqsep.detector.terms.term import (
    EncodedRows,
    FirstRows,
    LearntSums,
    RowsToSum,
    Sums,
    Term,
    TermFunction,
)
from eqsep.engine.backends import NUMPY, Backend
from eqsep.engine.trees import Trees, anomalous_shares
from eqsep.tables.encoder import Encoder, Packing


@dataclass(frozen=True, eq=False, kw_only=True)
class VotesTerm(Term):
    """The mean vote of trees: the share of anomalies among the learnt rows of a row's leaf.

    The trees are grown on the first rows; what their leaves hold adds up over all rows.
    """

    trees: Trees  # every second one also sees the axes
    weight: float
    pack: Packing
    axes: EllipsoidTerm | None  # None where trees see no axes

    name: ClassVar = "vote"
    SCHEMAS: ClassVar = {"trees": schemas.kept(Trees), "weight": schemas.NOT_NEGATIVE}

    @classmethod
    def choose(cls, first: FirstRows) -> Self | None:
        """Trees over the first rows, if there are normal and anomalous ones."""
        config, packed = first.config, first.packed
        axes = first.chosen.get(EllipsoidTerm.name)
        if not isinstance(axes, EllipsoidTerm) or axes.ellipsoid.is_heavy:
            axes = None
        seen = packed if axes is None else NUMPY.beside(packed, axes.along(first.rows, NUMPY))
        n_packed = packed.shape[1]
        trees = Trees.grown(
            seen,
            first.is_anomaly,
            first.rng,
            n=config.n_trees,
            most=(config.max_tree_normal, config.max_tree_anomalous),
            least=config.min_leaf,
            columns=min(config.tree_columns, config.max_tree_columns / n_packed),
            narrow=n_packed,
        )
        if trees is None:
            return None
        sees_axes = trees.n_columns > n_packed
        pack, axes = first.encoder.pack, axes if sees_axes else None
        return cls(trees=trees, weight=config.vote_weight, pack=pack, axes=axes)

    def seen(self, rows: EncodedRows) -> Any:
        """What trees see of encoded rows.  -> (n, n_packed + n_axes)"""
        if self.axes is None:
            return rows.packed
        return rows.backend.beside(rows.packed, rows.once(self.axes, self.axes.along))

    def accumulate(self, rows: RowsToSum) -> Sums:
        """The weight of the rows of each class in each leaf."""
        seen = self.seen(EncodedRows(rows.rows, self.pack, NUMPY))
        return Sums(by_class={"leaves": self.trees.sums(seen, rows.weight[:, None] * rows.target)})

    def solve(self, learnt: LearntSums) -> "VoteFunction":
        """The share of anomalies in each leaf; of doubted rows, its mean with a balanced share."""
        leaves = learnt.of_terms[self.name].by_class["leaves"]
        votes = anomalous_shares(leaves)
        if learnt.doubted:
            votes = (votes + anomalous_shares(leaves, balanced=True)) / 2
        return VoteFunction(self, votes)

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, Term]) -> Self:
        trees, pack = state.get("trees"), encoder.pack
        sees_axes = isinstance(trees, Trees) and trees.n_columns > len(pack.first)
        axes = before.get(EllipsoidTerm.name) if sees_axes else None
        assert isinstance(axes, EllipsoidTerm | None)
        n_axes = 0 if axes is None else axes.ellipsoid.axes.shape[1]
        term = cls.from_state(state, pack=pack, axes=axes)
        if term.trees.n_columns > len(pack.first) + n_axes:
            schemas.damaged("its trees do not match the columns of its table")
        return term


@dataclass(frozen=True, eq=False)
class VoteFunction(TermFunction):
    """The mean over trees of the votes of the leaves in which a row ends."""

    term: VotesTerm
    leaf_votes: np.ndarray

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        del at_landmarks
        backend: Backend = rows.backend
        return backend.votes(self.term.trees, self.term.seen(rows), self.leaf_votes)
