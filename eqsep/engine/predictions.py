"""Predictions of columns by others: how surprising the values of a row are, column by column."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep.engine import gpu
from eqsep.engine.growth import prediction_trees
from eqsep.engine.loops import compiled, in_threads
from eqsep.engine.tails import Tail
from eqsep.engine.trees import Trees
from eqsep.schemas import Kept, array_of, bounded, kept

N_BINS = 10  # of a number; of names, the most frequent ones and all others
_MOST_TARGETS = 40  # columns that are predicted
_TREES = (2, 10)  # the fewest and the most for a column
_ROWS_OF_A_TREE, _DEPTH = 512, 6
_ROWS_TO_JUDGE = 2000  # rows by which surprises are judged
_PRIOR = 2.0  # rows that each leaf has beforehand, of all bins as they are in the tree
_ROWS_AT_ONCE = 512
LEAST = 1e-6  # of a probability, so that it has a logarithm


@dataclass(frozen=True, eq=False)
class Bins(Kept):
    """Packed columns as bins of their table's columns: of quantiles, or of names.

    The bin of a row in a target is the sum of the steps of the cuts that it lies above.
    """

    column: np.ndarray  # the packed column of each cut
    limit: np.ndarray  # float32
    target: np.ndarray  # what the cut is of
    step: np.ndarray

    SCHEMAS: ClassVar = {
        "column": array_of("cuts", kinds="i"),
        "limit": bounded("cuts", dtype="float32"),
        "target": array_of("cuts", kinds="i"),
        "step": array_of("cuts", kinds="i"),
    }

    @classmethod
    def of(cls, rows: np.ndarray, source: np.ndarray) -> Self:
        """The bins of the table's columns that vary; `source` has that of each packed column."""
        cuts_of: list[list[tuple[int, float, int]]] = []
        for one in np.unique(source):
            places = np.flatnonzero(source == one)
            if len(places) == 1:
                values = rows[:, places[0]]
                shares = np.linspace(0, 1, N_BINS + 1)[1:-1]
                limits = np.unique(np.quantile(values, shares, method="lower"))
                found = [(int(places[0]), float(x), 1) for x in limits[limits < values.max()]]
            else:
                counts = (rows[:, places] > 0).sum(axis=0)
                common = np.argsort(-counts, kind="stable")[: N_BINS - 1]
                common = common[counts[common] > 0]
                found = [(int(places[k]), 0.0, i + 1) for i, k in enumerate(common)]
                found = found if len(common) > 1 else []
            if found:
                cuts_of.append(found)
        cuts = [(*cut, target) for target, found in enumerate(cuts_of) for cut in found]
        column, step, target = (np.array([cut[k] for cut in cuts], np.int32) for k in (0, 2, 3))
        limit = np.array([cut[1] for cut in cuts], dtype=np.float32)
        return cls(column, limit, target, step)

    def some(self, targets: np.ndarray) -> Self:
        """Those of some targets, numbered again."""
        kept_ = np.isin(self.target, targets)
        number = np.searchsorted(targets, self.target[kept_]).astype(np.int32)
        return replace(
            self,
            column=self.column[kept_],
            limit=self.limit[kept_],
            target=number,
            step=self.step[kept_],
        )

    @property
    def n_targets(self) -> int:
        return 1 + int(self.target.max(initial=-1))

    @cached_property
    def steps(self) -> np.ndarray:
        """The step of each cut, at its target.  (n_cuts, n_targets), float32"""
        steps = np.zeros((len(self.target), self.n_targets), dtype=np.float32)
        steps[np.arange(len(self.target)), self.target] = self.step
        return steps

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """(n, n_packed) -> (n, n_targets), whole numbers"""
        above = (rows[:, self.column] > self.limit).astype(np.float32)
        bins: np.ndarray = (above @ self.steps).astype(np.int64)
        return np.asarray(np.minimum(bins, N_BINS - 1))


@dataclass(frozen=True, eq=False)
class Predictions(Kept):
    """Trees that predict the bin of each target from other columns, equally many for each."""

    trees: Trees
    bins: Bins
    tail: Tail  # of the surprise of each target among rows that its trees were not grown on
    whole: Tail  # of the mean of the two largest of these tails

    SCHEMAS: ClassVar = {
        "trees": kept(Trees),
        "bins": kept(Bins),
        "tail": kept(Tail),
        "whole": kept(Tail),
    }

    @classmethod
    def of(cls, rows: np.ndarray, source: np.ndarray, *, n_trees: int, key: int) -> Self | None:
        """The predictions that normal rows teach; None if fewer than two columns vary."""
        rng = np.random.RandomState(key)
        bins = Bins.of(rows, source)
        if bins.n_targets < 2 or len(rows) < 2 * N_BINS:
            return None
        if bins.n_targets > _MOST_TARGETS:
            bins = bins.some(np.sort(rng.permutation(bins.n_targets)[:_MOST_TARGETS]))
        rows = rows[rng.permutation(len(rows))[:_ROWS_TO_JUDGE]]
        binned, target_of = bins(rows), np.full(rows.shape[1], -1)
        own = {int(source[c]): t for c, t in zip(bins.column, bins.target, strict=True)}
        for column, one in enumerate(source.tolist()):
            target_of[column] = own.get(one, -1)
        fewest, most = _TREES
        n_each = min(max(n_trees // bins.n_targets, fewest), most)
        size = min(_ROWS_OF_A_TREE, len(rows) * 2 // 3)
        trees, drawn = prediction_trees(
            rows,
            binned,
            target_of,
            rng,
            target=np.repeat(np.arange(bins.n_targets), n_each),
            size=size,
            depth=_DEPTH,
        )
        nothing = Tail(np.zeros((2, 1)), np.zeros((2, 1)))
        found = cls(trees, bins, nothing, nothing)
        surprise = found._of_rows_left_out(rows, drawn)
        tail = Tail.of(surprise)
        found = replace(found, tail=tail)
        largest = np.sort(tail(surprise), axis=1)[:, -2:].mean(axis=1)
        return replace(found, whole=Tail.of(largest[:, None]))

    def fits(self, *, n_columns: int) -> bool:
        """Whether rows of so many columns can be predicted."""
        n = self.bins.n_targets
        return (
            n >= 2
            and len(self.trees.root) % n == 0
            and self.tail.n_columns == n
            and self.whole.n_columns == 1
            and self.trees.n_columns <= n_columns
            and int(self.bins.column.min(initial=0)) >= 0
            and int(self.bins.column.max(initial=0)) < n_columns
            and int(self.bins.target.min(initial=0)) >= 0
            and int(self.bins.step.min(initial=0)) >= 0
        )

    @property
    def n_each(self) -> int:
        """How many trees a target has."""
        return len(self.trees.root) // self.bins.n_targets

    def sums(self, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The weight of the rows of each bin in each leaf.  -> (n_leaves, N_BINS)"""
        total = np.zeros(self.trees.n_leaves * N_BINS)
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            some = slice(first, first + _ROWS_AT_ONCE)
            places = self._places(rows[some])
            weights = np.repeat(weight[some], places.shape[1])
            total += np.bincount(places.ravel(), weights=weights, minlength=len(total))
        return total.reshape(-1, N_BINS)

    def probabilities(self, sums: np.ndarray) -> np.ndarray:
        """That of each bin in each leaf.  -> (n_leaves, N_BINS)"""
        prior = self._prior(sums)[self._target_of_leaf]
        shares = np.maximum(sums, 0.0) + _PRIOR * prior
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def predicted(self, rows: np.ndarray, probability: np.ndarray) -> np.ndarray:
        """The probability of each target's bin by its trees.  (n, n_packed) -> (n, n_targets)"""
        rows, out = np.ascontiguousarray(rows, np.float32), np.empty((len(rows), self._shape[0]))
        bins, flat = self.bins, probability.ravel()
        cuts = (bins.column, bins.limit, bins.target, bins.step)

        def fill(some: slice) -> None:
            _average(self.trees.leaves(rows[some]), rows[some], *cuts, flat, N_BINS, out[some])

        steps = 10 * len(rows) * len(self.trees.root)
        in_threads(fill, len(rows), steps=steps, most=_ROWS_AT_ONCE)
        return out

    def predicted_of_tensor(self, rows: Any, probability: np.ndarray) -> Any:
        """The same of a tensor, on its device."""
        import torch

        here = {"device": rows.device}
        column, limit, steps = (
            torch.as_tensor(part, **here)
            for part in (self.bins.column, self.bins.limit, self.bins.steps)
        )
        flat, parts = torch.as_tensor(probability.ravel(), **here), []
        for some in rows.split(gpu.WALKED_AT_ONCE):
            above = (some[:, column.long()] > limit).float()
            bins = (above @ steps).long().clip(max=N_BINS - 1).repeat_interleave(self.n_each, dim=1)
            places = gpu.leaves(self.trees, some) * N_BINS + bins
            parts.append(flat[places].reshape(-1, *self._shape).mean(dim=2))
        return torch.cat(parts)

    def surprise(self, probability: Any) -> Any:
        """How surprising each target is, as a tail.  (n, n_targets) -> (n, n_targets)"""
        if isinstance(probability, np.ndarray):
            return self.tail(-np.log(np.maximum(probability, LEAST)))
        return self.tail(-probability.clip(LEAST).log())

    def total(self, surprise: Any) -> Any:
        """The tail of the mean of the two largest of each row.  (n, n_targets) -> (n,)"""
        if isinstance(surprise, np.ndarray):
            ordered = np.partition(surprise, -2, axis=1)
        else:
            ordered = surprise.sort(dim=1).values
        return self.whole((ordered[:, -1:] + ordered[:, -2:-1]) / 2)[:, 0]

    @property
    def _shape(self) -> tuple[int, int]:
        return self.bins.n_targets, self.n_each

    def _places(self, rows: np.ndarray) -> np.ndarray:
        """Where sums of a row's leaves and bins are.  -> (n, n_trees)"""
        bins = np.repeat(self.bins(rows), self.n_each, axis=1)
        return np.asarray(self.trees.leaves(rows).astype(np.int64) * N_BINS + bins)

    @cached_property
    def _target_of_leaf(self) -> np.ndarray:
        """Leaves are numbered tree by tree."""
        n_leaves = np.add.reduceat(self.trees.is_leaf.astype(int), self.trees.root)
        return np.repeat(np.repeat(np.arange(self.bins.n_targets), self.n_each), n_leaves)

    def _prior(self, sums: np.ndarray) -> np.ndarray:
        """The share of each bin of each target.  -> (n_targets, N_BINS)"""
        total = np.full((self.bins.n_targets, N_BINS), 0.5)
        np.add.at(total, self._target_of_leaf, np.maximum(sums, 0.0))
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def _of_rows_left_out(self, rows: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """The surprise of each row by the trees that it did not grow, less the row itself."""
        places, n = self._places(rows), len(rows)
        sums = self.sums(rows, np.ones(n))
        prior = self._prior(sums)[self._target_of_leaf].ravel()
        total = sums.sum(axis=1)[places // N_BINS] - 1
        p = (sums.ravel()[places] - 1 + _PRIOR * prior[places]) / (total + _PRIOR)
        is_out = np.ones(places.shape, dtype=bool)
        is_out[drawn, np.arange(drawn.shape[0])[:, None]] = False
        of_target = is_out.reshape(n, *self._shape)
        counts = np.where(of_target.any(axis=2, keepdims=True), of_target, True)
        mean = (p.reshape(n, *self._shape) * counts).sum(axis=2) / counts.sum(axis=2)
        return np.asarray(-np.log(np.maximum(mean, LEAST)))


@compiled
def _average(
    leaves: Any,
    X: Any,
    column: Any,
    limit: Any,
    target: Any,
    step: Any,
    flat: Any,
    n_bins: Any,
    out: Any,
) -> None:
    # Bins as in `Bins`, then the mean over the trees of each target, which follow one another.
    n_each = leaves.shape[1] // out.shape[1]
    own = np.empty(out.shape[1], np.int64)
    for i in range(out.shape[0]):
        own[:] = 0
        for k in range(len(column)):
            if X[i, column[k]] > limit[k]:
                own[target[k]] += step[k]
        for j in range(out.shape[1]):
            total, bin_ = 0.0, min(own[j], n_bins - 1)
            for t in range(j * n_each, (j + 1) * n_each):
                total += flat[leaves[i, t] * n_bins + bin_]
            out[i, j] = total / n_each
