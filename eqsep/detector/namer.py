"""Namer: which seen kinds an alarm may be of, so that few rows of a seen kind lack its name.

A row has the names of the kinds with a p-value above the allowed rate: its rank among learnt rows
of the kind by how unlike it each is, by folds (cross-conformal prediction).
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from eqsep import schemas
from eqsep.arrays import WithoutCaches
from eqsep.detector.config import Config
from eqsep.detector.evidence import KindRows
from eqsep.engine.kernels import SparseManhattan
from eqsep.engine.loops import compiled, in_threads, inlined
from eqsep.engine.trees import Trees
from eqsep.errors import UserError
from eqsep.labels import OR, UNSEEN

LIKE = 0.5  # the likeness above which an alarm gets the name of a kind without a promise
RIVAL = 0.1  # the share of votes from which on a kind is named besides others
_AT_ONCE = 256  # rows held as distances
_NO_NAN = frozenset({"nnan", "nsz"})  # so that the least of several is found several at a time


def rows_for(rate: float) -> int:
    """How many rows of a kind it takes to promise a rate: 1 / rate - 1.

    >>> [rows_for(rate) for rate in (0.01, 0.05, 0.1)]
    [99, 19, 9]
    """
    return math.ceil(1 / rate - 1 - 1e-9)


@dataclass(frozen=True, eq=False, kw_only=True)
class Judges(schemas.Kept, WithoutCaches):
    """Compare packed rows with examples of each kind, by trees and by distance.

    A row is unlike a kind where few trees vote for it, or where no row of the kind is near:
    whichever of the two is rarer among the examples of the kind counts.
    """

    examples: KindRows  # in the order of kinds, those of a kind by their hashes
    fold: np.ndarray  # of each example
    trees: Trees  # the same number for each fold, grown without its rows
    shares: np.ndarray  # (n_leaves, n_kinds): of the kinds, in alphabetical order, in each leaf
    # How unlike its kind each example is, judged without its fold: the share of trees that do not
    # vote for the kind, and the distance to the nearest row of it.
    lacking: np.ndarray
    distance: np.ndarray
    n_folds: int
    max_near: int  # the most rows of a kind to which distances are taken

    SCHEMAS: ClassVar = {  # the examples are in the evidence
        "fold": schemas.array_of(None, kinds="i"),
        "trees": schemas.kept(Trees),
        "shares": schemas.bounded(None, None, dtype="float64"),
        "lacking": schemas.array_of(None, finite=False),
        "distance": schemas.array_of(None, finite=False),  # may be infinite
    }

    @classmethod
    def of(cls, examples: KindRows, config: Config) -> Self:
        """The judges for these examples, in any order."""
        examples = examples.take(np.lexsort((examples.hashes, examples.kind)))
        code = np.unique(examples.kind, return_inverse=True)[1]
        rows, groups = np.arange(len(code)), examples.groups
        turn = rows - np.searchsorted(code, code)  # the rows of a kind in turn, or whole groups
        turn = np.unique(groups, return_inverse=True)[1] if len(groups) else turn
        fold = turn % config.n_folds
        parts = [np.flatnonzero(fold != f) for f in range(config.n_folds)]
        parts = [part if len(part) else rows for part in parts]  # only one fold has rows
        rng = np.random.RandomState(examples.key % 2**32)
        n = config.n_trees_per_fold if code[-1] else 1  # one kind alone gets all votes of any tree
        trees, shares = Trees.of_kinds(examples.rows, code, parts, rng, n=n)
        bare = cls(
            examples=examples,
            fold=fold,
            trees=trees,
            shares=shares,
            lacking=np.empty(0),
            distance=np.empty(0),
            n_folds=config.n_folds,
            max_near=config.max_near_rows,
        )
        lacking, distance = (unlike[rows, fold, code] for unlike in bare.unlikeness(examples.rows))
        return replace(bare, lacking=lacking, distance=distance)

    @cached_property
    def sorted_kinds(self) -> tuple[str, ...]:
        """The kinds in alphabetical order, as in all arrays here."""
        return tuple(sorted(set(self.examples.kind.tolist())))

    def __call__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P-values and shares of votes, by kind, of packed rows.  -> (n, n_kinds) twice"""
        lacking, distance = self.unlikeness(rows)
        votes = 1 - np.add.reduce(lacking, axis=1) / self.n_folds
        p, ranks = np.empty(votes.shape), self._ranks
        in_threads(
            lambda part: _p_values(lacking[part], distance[part], *ranks, p[part]),
            len(p),
            steps=20 * lacking.size,
        )
        return p, votes

    def unlikeness(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Missing votes and distance, without each fold.  -> (n, n_folds, n_kinds) twice"""
        distances, starts, cells = self._near
        nearest = np.empty((len(rows), self.n_folds, len(self.sorted_kinds)))

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, _AT_ONCE):
                some = slice(start, min(start + _AT_ONCE, part.stop))
                _nearest_without(distances(rows[some]), starts, cells, nearest[some])

        in_threads(fill, len(rows), steps=rows.size * len(cells) * self.max_near // self.n_folds)
        return 1 - self.trees.means(rows, self.shares, n_parts=self.n_folds), nearest

    def taken_for(self, kind: str) -> dict[str, float]:
        """The share of the examples of a kind that trees without their fold take for each kind."""
        own = self.examples.kind == kind
        lacking, _ = self.unlikeness(self.examples.rows[own])
        times = np.bincount(lacking[np.arange(own.sum()), self.fold[own]].argmin(axis=1))
        counted = zip(self.sorted_kinds, times.tolist(), strict=False)
        return {k: n / own.sum() for k, n in counted if n}

    @cached_property
    def _first(self) -> np.ndarray:
        """Where the examples of each kind begin, and the last ones end."""
        kind = self.examples.kind
        return np.append(np.searchsorted(kind, self.sorted_kinds), len(kind))

    @cached_property
    def _ranks(self) -> "_Ranks":
        unlike = np.stack([self.lacking, self.distance])
        ordered, tables, n_units = unlike.copy(), [], []
        groups = self.examples.groups
        for start, end in pairwise(self._first.tolist()):
            own = slice(start, end)
            ordered[:, own].sort(axis=1)
            pairs = zip(ordered[:, own], unlike[:, own], strict=True)
            rank = np.maximum(*(known.searchsorted(values) for known, values in pairs))
            weight = np.ones(end - start)
            n_units.append(end - start)
            if len(groups):
                _, place, counts = np.unique(groups[own], return_inverse=True, return_counts=True)
                n_units[-1], weight = len(counts), 1 / counts[place]
            tables.append(_weights_by_rank(rank, weight, self.fold[own], self.n_folds))
        lacking, distance = ordered
        return _Ranks(
            first=self._first,
            lacking=lacking,
            distance=distance,
            weight_from_rank=np.concatenate(tables),
            n_units=np.array(n_units),
        )

    @cached_property
    def _near(self) -> tuple[SparseManhattan, np.ndarray, np.ndarray]:
        """Distances to some examples of each kind, and where those of each kind and fold begin."""
        code = np.repeat(np.arange(len(self.sorted_kinds)), np.diff(self._first))
        some = np.flatnonzero(np.arange(len(code)) - self._first[code] < self.max_near)
        cell = code[some] * self.n_folds + self.fold[some]
        order = np.argsort(cell, kind="stable")
        cells, first = np.unique(cell[order], return_index=True)
        return SparseManhattan(self.examples.rows[some[order]]), np.append(first, len(some)), cells

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        """The judges of these parts, for examples in the order in which `of` puts them."""
        made = super().from_state(state, **others)
        examples, n_kinds = made.examples, len(made.sorted_kinds)
        if {len(made.fold), len(made.lacking), len(made.distance)} != {len(examples.rows)}:
            schemas.damaged("the rows that it names alarms by do not each have a fold and a rank")
        in_range = made.fold.min() >= 0 and made.fold.max() < made.n_folds
        if not in_range or (examples.kind[1:] < examples.kind[:-1]).any():
            schemas.damaged("the rows that it names alarms by are not in order")
        trees, n_folds = made.trees, made.n_folds
        if len(trees.root) % n_folds or made.shares.shape != (trees.n_leaves, n_kinds):
            schemas.damaged(
                "the trees that it names alarms by are not those of its folds and kinds"
            )
        if trees.column.max(initial=0) >= examples.rows.shape[1]:
            schemas.damaged("the trees that it names alarms by look at columns that its rows lack")
        if np.isnan(made.lacking).any() or np.isnan(made.distance).any():
            schemas.damaged("how unlike its kind a row is, is not a number")
        return made


class _Ranks(NamedTuple):
    """How unlike their kind the examples are, in order, and how much they weigh from each rank on.

    The rank of a row is the number of examples of the kind that are less unlike it, by votes or by
    distance, whichever is more.
    """

    first: np.ndarray  # where the examples of each kind begin, and the last ones end
    lacking: np.ndarray  # in rising order within each kind
    distance: np.ndarray  # likewise
    # (n + n_kinds, n_folds): for each kind and each rank, from 0 to the number n_k of its examples,
    # the weight of a fold's examples with that rank or a higher one. As a kind has n_k + 1 ranks,
    # those of kind k begin at first[k] + k.
    weight_from_rank: np.ndarray
    n_units: np.ndarray  # examples of each kind, or groups of them


def _weights_by_rank(rank: np.ndarray, weight: np.ndarray, fold: np.ndarray, n: int) -> np.ndarray:
    """The weight of the rows of each fold with each rank or a higher one.  -> (n_rows + 1, n)"""
    table = np.zeros((len(rank) + 1, n))
    if len(np.unique(fold)) < 2:
        return table  # no example can be compared with others of its kind
    for f in range(n):
        order = np.flatnonzero(fold == f)[np.argsort(rank[fold == f], kind="stable")]
        from_the_top = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
        table[:, f] = from_the_top[rank[order].searchsorted(np.arange(len(table)))]
    return table


@dataclass(frozen=True, eq=False, kw_only=True)
class Namer(WithoutCaches):
    """Names of alarms: prediction sets over the seen kinds."""

    kinds: tuple[str, ...]  # the seen ones, in the order in which they were learnt
    examples: KindRows  # learnt rows of them
    # False for models of version 0.1, which keep no examples: there an alarm has the name of the
    # kind that it is most like, or none.
    has_promise: bool
    config: Config

    @cached_property
    def judges(self) -> Judges | None:
        """What tells the kinds apart, made on first use; None without examples."""
        return Judges.of(self.examples, self.config) if len(self.examples.rows) else None

    def with_judges(self, judges: Judges) -> "Namer":
        """The same namer with judges made before."""
        namer = replace(self, examples=judges.examples)
        vars(namer)["judges"] = judges
        return namer

    def short_kinds(self, rate: float) -> dict[str, int]:
        """The kinds with too few examples, or groups, to promise a rate; and how many they have."""
        units = zip(self.kinds, self._n_units.tolist(), strict=True)
        return {kind: n for kind, n in units if n < rows_for(rate)}

    def needs_kind_likeness(self, rate: float) -> bool:
        """Whether some kinds have too few examples, so that likeness may name them."""
        return bool(self.kinds) and (not self.has_promise or bool(self.short_kinds(rate)))

    def p_values(self, rows: np.ndarray) -> np.ndarray:
        """The p-value of "this row is of kind k" for packed rows.  -> (n, n_kinds)"""
        if not self.has_promise:
            raise UserError(
                "The model is from a file that has no rows of its kinds to compare with: names "
                "come without p-values. Fit again."
            )
        return self._p_values_and_votes(rows)[0]

    def sets(
        self, rows: np.ndarray, likeness: np.ndarray | None, *, rate: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which kinds each packed row may be of, and the votes by which these are ordered.

        A kind is a name if its p-value is above the rate; a kind with only n examples, too few for
        that, if it is above 1 / (n + 1), or by likeness. The kind with most votes joins these, and
        so does one with many votes: a name that stands alone has no rival.
        """
        if not self.has_promise:
            assert likeness is not None
            is_like = _most_like(likeness)
            return is_like, is_like.astype(float)
        p, votes = self._p_values_and_votes(rows)
        few = self._n_units < rows_for(rate)
        sets = p > np.where(few, 1 / (self._n_units + 1), rate) + 1e-9
        if likeness is not None:
            sets |= few & _most_like(likeness)
        many_votes = np.minimum(votes.max(axis=1, keepdims=True, initial=0.0), RIVAL)
        return sets | (sets.any(axis=1, keepdims=True) & (votes >= many_votes)), votes

    def names(self, rows: np.ndarray, likeness: np.ndarray | None, *, rate: float) -> np.ndarray:
        """The seen kinds that each packed row, an alarm, may be of: "a", "a or b", or "unseen"."""
        if not self.kinds or not len(rows):
            return np.full(len(rows), UNSEEN, dtype=object)
        sets, votes = self.sets(rows, likeness, rate=rate)
        n_names, kinds = sets.sum(axis=1), np.array([*self.kinds, UNSEEN], dtype=object)
        names: np.ndarray = kinds[np.where(n_names, sets.argmax(axis=1), len(self.kinds))]
        for i in np.flatnonzero(n_names > 1):  # those with most votes first, then alphabetically
            own = [(-votes[i, k], self.kinds[k]) for k in np.flatnonzero(sets[i])]
            names[i] = OR.join(kind for _, kind in sorted(own))
        return names

    def taken_for(
        self, kind: str, rows: np.ndarray, likeness: np.ndarray | None, *, rate: float
    ) -> dict[str, float]:
        """The share of a kind's rows that are taken for each kind.

        Each row is judged without itself; where there are too few rows for that, by likeness.
        """
        if self.has_promise and self.judges is not None and kind not in self.short_kinds(rate):
            return self.judges.taken_for(kind)
        sets, _ = self.sets(rows, likeness, rate=rate)
        return dict(zip(self.kinds, sets.mean(axis=0).tolist(), strict=True))

    def _p_values_and_votes(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each of `kinds`; 1 and 0 for a kind without examples."""
        p = np.ones((len(rows), len(self.kinds)))
        votes = np.zeros(p.shape)
        if self.judges is not None and len(rows):
            columns = [self.kinds.index(kind) for kind in self.judges.sorted_kinds]
            p[:, columns], votes[:, columns] = self.judges(rows)
        return p, votes

    @cached_property
    def _n_units(self) -> np.ndarray:
        """How many examples, or groups of them, there are of each kind."""
        return np.array([self.examples.n_units(kind) for kind in self.kinds], dtype=int)


def _most_like(likeness: np.ndarray) -> np.ndarray:
    """Whether each kind is the one that a row is most like, and enough to be called so."""
    most = likeness.argmax(axis=1)[:, None] == np.arange(likeness.shape[1])
    return np.asarray(most & (likeness > LIKE))


@compiled(fastmath=_NO_NAN)
def _nearest_without(distances: Any, starts: Any, cells: Any, out: Any) -> None:
    """The least distance to the rows of each kind without each fold.  -> (n, n_folds, n_kinds)

    Distances are to rows that stand cell by cell, beginning at `starts`; the cell of kind k and
    fold f is k * n_folds + f.
    """
    n_folds = out.shape[1]
    for i in range(out.shape[0]):
        for f in range(n_folds):
            for k in range(out.shape[2]):
                out[i, f, k] = np.inf
        for c in range(cells.shape[0]):
            least = distances[i, starts[c]]
            for j in range(starts[c] + 1, starts[c + 1]):
                least = distances[i, j] if distances[i, j] < least else least
            k, own = cells[c] // n_folds, cells[c] % n_folds
            for f in range(n_folds):
                if f != own and least < out[i, f, k]:
                    out[i, f, k] = least


@inlined
def _first_not_less(ordered: Any, low: Any, high: Any, value: Any) -> Any:
    """The first place from `low` to `high`, in ordered numbers, that is not less."""
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _p_values(
    lacking: Any,
    distance: Any,
    first: Any,
    their_lacking: Any,
    their_distance: Any,
    weight_from_rank: Any,
    n_units: Any,
    p: Any,
) -> None:
    for i in range(p.shape[0]):
        for k in range(p.shape[1]):
            total = 1.0
            for f in range(lacking.shape[1]):
                by_votes = _first_not_less(their_lacking, first[k], first[k + 1], lacking[i, f, k])
                by_distance = _first_not_less(
                    their_distance, first[k], first[k + 1], distance[i, f, k]
                )
                total += weight_from_rank[max(by_votes, by_distance) + k, f]
            p[i, k] = total / (n_units[k] + 1)
