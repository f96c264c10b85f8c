"""Isolation: which rows that nobody has looked at are so isolated that they may be anomalies."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.engine.growth import isolation_trees
from eqsep.engine.kernels import SparseManhattan
from eqsep.engine.loops import in_threads
from eqsep.engine.trees import Trees

KEPT, WEIGHED, LEFT_OUT = "kept", "weighed", "left out"
_N_TREES, _ROWS_OF_A_TREE = 100, 256
_N_REFERENCES = 500  # rows that distances are measured to
_NEIGHBOUR = 100  # the neighbour whose distance counts: few anomalies together are isolated too
_NEIGHBOUR_SHARE = 0.1, 1 / 3  # at least and at most, of all rows
_RANKS = np.linspace(0, 1, 201)
_ROWS_AT_ONCE = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class Isolation(schemas.Kept):
    """How isolated a row is: its rank among the first rows by trees, plus that by a distance.

    Random trees cut off a row that is far from most others early; the distance is that to about
    the hundredth neighbour, so that few anomalies together are isolated too.
    """

    trees: Trees
    depth: np.ndarray  # of each leaf
    references: np.ndarray  # float32, packed rows
    neighbour: int  # which of the nearest references the distance is to
    depths: np.ndarray  # quantiles of both among the first rows
    distances: np.ndarray
    limit: float  # rows above it are isolated

    SCHEMAS: ClassVar = {
        "trees": schemas.kept(Trees),
        "depth": schemas.bounded(None, dtype="float64"),
        "references": schemas.bounded(None, None, dtype="float32"),
        "neighbour": schemas.WHOLE,
        "depths": schemas.bounded(len(_RANKS), dtype="float64"),
        "distances": schemas.bounded(len(_RANKS), dtype="float64"),
        "limit": schemas.NOT_NEGATIVE,
    }

    @classmethod
    def of(cls, rows: np.ndarray, *, share: float, key: int) -> Self:
        """The isolation by which a share of these packed rows is isolated."""
        rng = np.random.RandomState(key)
        trees, depth = isolation_trees(rows, rng, n=_N_TREES, size=_ROWS_OF_A_TREE)
        references = rows[rng.permutation(len(rows))[:_N_REFERENCES]]
        least, most = _NEIGHBOUR_SHARE
        part = min(max(_NEIGHBOUR / len(rows), least), most)
        found = cls(
            trees=trees,
            depth=depth,
            references=np.ascontiguousarray(references),
            neighbour=max(round(part * len(references)), 1),
            depths=_RANKS,
            distances=_RANKS,
            limit=0.0,
        )
        depths, distances = found._measured(rows)
        found = replace(
            found, depths=np.quantile(depths, _RANKS), distances=np.quantile(distances, _RANKS)
        )
        limit = float(np.quantile(found._ranks(depths, distances), 1 - share))
        return replace(found, limit=max(limit, 0.0))

    def fits(self, *, n_columns: int) -> bool:
        """Whether it can measure rows of so many columns."""
        return (
            self.references.shape[1] == n_columns
            and len(self.references) > self.neighbour
            and self.trees.n_columns <= n_columns
            and len(self.depth) == self.trees.n_leaves
        )

    def ranks(self, rows: np.ndarray) -> np.ndarray:
        """How isolated packed rows are, from 0 to 2.  (n, n_packed) -> (n,)"""
        return self._ranks(*self._measured(rows))

    def _ranks(self, depths: np.ndarray, distances: np.ndarray) -> np.ndarray:
        by_depth = 1 - np.interp(depths, self.depths, _RANKS)
        return np.asarray(by_depth + np.interp(distances, self.distances, _RANKS))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Which packed rows are isolated."""
        return np.asarray(self.ranks(rows) > self.limit) if len(rows) else np.zeros(0, dtype=bool)

    def _measured(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean depth of rows in the trees, and their distance to the references."""
        distance = np.empty(len(rows))
        place = self.neighbour

        def fill(some: slice) -> None:
            between = self._to_references(rows[some])
            distance[some] = np.partition(between, place, axis=1)[:, place]

        in_threads(fill, len(rows), steps=rows.size * len(self.references), most=_ROWS_AT_ONCE)
        return self.trees.mean(rows, self.depth), distance

    @cached_property
    def _to_references(self) -> Any:
        return SparseManhattan(self.references)
