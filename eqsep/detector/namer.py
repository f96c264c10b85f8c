"""Namer: which seen kinds an alarm may be of, with a promise.

For each seen kind k a row has a p-value of "this row is of kind k": its rank among learnt rows of
that kind, by how unlike the kind each is. No row judges itself: rows are divided into folds, and
those of a fold are judged by the others, as the row is (cross-conformal prediction). A row is
unlike a kind where few trees vote for it or where no row of the kind is near, by whichever of the
two is rarer among rows of the kind. Kinds with a p-value above the rate that the user allows are
the names of the row, so that a row of a seen kind is without its name at no more than that rate.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from eqsep.arrays import WithoutCaches
from eqsep.detector.config import Config
from eqsep.detector.evidence import KindRows
from eqsep.engine.kernels import SparseManhattan
from eqsep.engine.loops import compiled, in_threads, inlined
from eqsep.engine.trees import Trees
from eqsep.errors import UserError
from eqsep.labels import OR, UNSEEN
from eqsep.schemas import Kept, array_of, bounded, damaged, kept

LIKE = 0.5  # the likeness above which an alarm gets the name of a kind without a promise
RIVAL = 0.1  # the share of votes from which on a kind is named besides others
_TREES = kept(Trees)
_AT_ONCE = 256  # rows held as distances
_NO_NAN = frozenset({"nnan", "nsz"})  # so that the least of several is found several at a time


def rows_for(rate: float) -> int:
    """How many rows of a kind it takes to promise a rate: 1 / rate - 1.

    Examples
    --------
    >>> [rows_for(rate) for rate in (0.01, 0.05, 0.1)]
    [99, 19, 9]
    """
    return math.ceil(1 / rate - 1 - 1e-9)


@dataclass(frozen=True, eq=False, kw_only=True)
class Judges(Kept, WithoutCaches):
    """What tells the kinds apart: trees and distances, and how the kept rows themselves fare.

    Attributes
    ----------
    kept : KindRows
        In the order of kinds, those of a kind by their hashes.
    fold : ndarray of int of shape (n,)
    trees : Trees
        Of each fold as many, grown without its rows.
    shares : ndarray of shape (n_leaves, n_kinds)
        Of the kinds, in alphabetical order, in each leaf.
    lacking, distance : ndarray of shape (n,)
        How unlike its kind each row is, judged without its fold: the share of trees that do not
        vote for the kind, and the distance to the nearest row of it.
    n_folds, max_near : int
        The number of folds, and the most rows of a kind to which distances are taken.
    """

    kept: KindRows
    fold: np.ndarray
    trees: Trees
    shares: np.ndarray
    lacking: np.ndarray
    distance: np.ndarray
    n_folds: int
    max_near: int

    SCHEMAS: ClassVar = {  # the rows are kept in the evidence
        "fold": array_of(None, kinds="i"),
        "trees": _TREES,
        "shares": bounded(None, None, dtype="float64"),
        "lacking": array_of(None, finite=False),
        "distance": array_of(None, finite=False),  # may be infinite
    }

    @classmethod
    def of(cls, kept: KindRows, config: Config) -> Self:
        """By these rows; their order does not matter."""
        kept = kept.take(np.lexsort((kept.hashes, kept.kind)))
        code = np.unique(kept.kind, return_inverse=True)[1]
        fold, rows = _folds(kept, code, config.n_folds), np.arange(len(code))
        parts = [np.flatnonzero(fold != f) for f in range(config.n_folds)]
        parts = [part if len(part) else rows for part in parts]  # only one fold has rows
        rng = np.random.RandomState(kept.key % 2**32)
        n = config.n_trees_per_fold if code[-1] else 1  # one kind alone gets all votes of any tree
        trees, shares = Trees.of_kinds(kept.rows, code, parts, rng, n=n)
        bare = cls(
            kept=kept,
            fold=fold,
            trees=trees,
            shares=shares,
            lacking=np.empty(0),
            distance=np.empty(0),
            n_folds=config.n_folds,
            max_near=config.max_near_rows,
        )
        lacking, distance = (unlike[rows, fold, code] for unlike in bare.unlikeness(kept.rows))
        return replace(bare, lacking=lacking, distance=distance)

    @cached_property
    def sorted_kinds(self) -> tuple[str, ...]:
        """The kinds in alphabetical order, as in all arrays here."""
        return tuple(sorted(set(self.kept.kind.tolist())))

    def __call__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P-values and shares of votes, by kind, of packed rows.  -> (n, n_kinds) twice"""
        lacking, distance = self.unlikeness(rows)
        votes = 1 - np.add.reduce(lacking, axis=1) / self.n_folds
        return self._ranks.p_values(lacking, distance), votes

    def unlikeness(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lack of votes and the distance, without each fold.  -> (n, n_folds, n_kinds) twice

        The kinds are `self.sorted_kinds`, in alphabetical order.
        """
        distances, starts, cells = self._near
        nearest = np.empty((len(rows), self.n_folds, len(self.sorted_kinds)))

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, _AT_ONCE):
                some = slice(start, min(start + _AT_ONCE, part.stop))
                _nearest_without(distances(rows[some]), starts, cells, nearest[some])

        in_threads(fill, len(rows), steps=rows.size * len(cells) * self.max_near // self.n_folds)
        return 1 - self.trees.means(rows, self.shares, n_parts=self.n_folds), nearest

    def taken_for(self, kind: str) -> dict[str, float]:
        """The share of the rows of a kind that trees without their fold take for each kind."""
        own = self.kept.kind == kind
        lacking, _ = self.unlikeness(self.kept.rows[own])
        times = np.bincount(lacking[np.arange(own.sum()), self.fold[own]].argmin(axis=1))
        counted = zip(self.sorted_kinds, times.tolist(), strict=False)
        return {k: n / own.sum() for k, n in counted if n}

    @cached_property
    def _first(self) -> np.ndarray:
        """Where the rows of each kind begin, and the last ones end."""
        return np.append(np.searchsorted(self.kept.kind, self.sorted_kinds), len(self.kept.kind))

    @cached_property
    def _ranks(self) -> "_Ranks":
        return _Ranks.of(self, np.stack([self.lacking, self.distance]), first=self._first)

    @cached_property
    def _near(self) -> tuple[SparseManhattan, np.ndarray, np.ndarray]:
        """The distances to some rows of each kind, and where those of each kind and fold begin."""
        code = np.repeat(np.arange(len(self.sorted_kinds)), np.diff(self._first))
        some = np.flatnonzero(np.arange(len(code)) - self._first[code] < self.max_near)
        cell = code[some] * self.n_folds + self.fold[some]
        order = np.argsort(cell, kind="stable")
        cells, first = np.unique(cell[order], return_index=True)
        return SparseManhattan(self.kept.rows[some[order]]), np.append(first, len(some)), cells

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        """The judges of these parts, for kept rows in the order in which `of` puts them."""
        made = super().from_state(state, **others)
        kept, n_kinds = made.kept, len(made.sorted_kinds)
        if {len(made.fold), len(made.lacking), len(made.distance)} != {len(kept.rows)}:
            damaged("the rows that it names alarms by have not a fold and a rank each")
        in_range = made.fold.min() >= 0 and made.fold.max() < made.n_folds
        if not in_range or (kept.kind[1:] < kept.kind[:-1]).any():
            damaged("the rows that it names alarms by are not in order")
        trees, n_folds = made.trees, made.n_folds
        if len(trees.root) % n_folds or made.shares.shape != (trees.n_leaves, n_kinds):
            damaged("the trees that it names alarms by are not those of its folds and kinds")
        if trees.column.max(initial=0) >= kept.rows.shape[1]:
            damaged("the trees that it names alarms by look at columns that its rows have not")
        if np.isnan(made.lacking).any() or np.isnan(made.distance).any():
            damaged("how unlike its kind a row is, is no number")
        return made


def _folds(kept: KindRows, code: np.ndarray, n: int) -> np.ndarray:
    """The fold of each row: the rows of a kind in turn, or whole groups."""
    if len(kept.groups):
        fold: np.ndarray = np.unique(kept.groups, return_inverse=True)[1] % n
        return fold
    first = np.searchsorted(code, code)  # rows stand in the order of kinds
    return (np.arange(len(code)) - first) % n


@dataclass(frozen=True, eq=False, kw_only=True)
class _Ranks:
    """How unlike their kind the kept rows are, in order, and what they weigh by fold.

    A rank is the number of rows of the kind that are less unlike it, in the way in which that is
    more.

    Attributes
    ----------
    first : ndarray of int of shape (n_kinds + 1,)
        Where the rows of each kind begin.
    lacking, distance : ndarray of shape (n_rows,)
        In order within each kind.
    as_unlike : ndarray of shape (n_rows + n_kinds, n_folds)
        For each rank, from 0 to the number of rows of a kind, the weight of the rows of each fold
        that have this rank or a higher one.
    n_units : ndarray of int of shape (n_kinds,)
        How many rows, or groups of rows, there are of each kind.
    """

    first: np.ndarray
    lacking: np.ndarray
    distance: np.ndarray
    as_unlike: np.ndarray
    n_units: np.ndarray

    @classmethod
    def of(cls, judges: Judges, unlike: np.ndarray, *, first: np.ndarray) -> Self:
        ordered, tables, n_units = unlike.copy(), [], []
        groups = judges.kept.groups
        for start, end in pairwise(first.tolist()):
            own = slice(start, end)
            ordered[:, own].sort(axis=1)
            pairs = zip(ordered[:, own], unlike[:, own], strict=True)
            rank = np.maximum(*(known.searchsorted(values) for known, values in pairs))
            weight = np.ones(end - start)
            n_units.append(end - start)
            if len(groups):
                _, place, counts = np.unique(groups[own], return_inverse=True, return_counts=True)
                n_units[-1], weight = len(counts), 1 / counts[place]
            tables.append(_weights_by_rank(rank, weight, judges.fold[own], judges.n_folds))
        lacking, distance = ordered
        return cls(
            first=first,
            lacking=lacking,
            distance=distance,
            as_unlike=np.concatenate(tables),
            n_units=np.array(n_units),
        )

    def p_values(self, lacking: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Of rows that each fold's judges have judged.  (n, n_folds, n_kinds) -> (n, n_kinds)"""
        p = np.empty((len(lacking), len(self.n_units)))
        known = (self.first, self.lacking, self.distance, self.as_unlike, self.n_units)
        in_threads(
            lambda part: _p_values(lacking[part], distance[part], *known, p[part]),
            len(p),
            steps=20 * lacking.size,
        )
        return p


def _weights_by_rank(rank: np.ndarray, weight: np.ndarray, fold: np.ndarray, n: int) -> np.ndarray:
    """The weight of the rows of each fold with each rank or a higher one.  -> (n_rows + 1, n)"""
    table = np.zeros((len(rank) + 1, n))
    if len(np.unique(fold)) < 2:
        return table  # none is judged by others of its kind
    for f in range(n):
        order = np.flatnonzero(fold == f)[np.argsort(rank[fold == f], kind="stable")]
        from_the_top = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
        table[:, f] = from_the_top[rank[order].searchsorted(np.arange(len(table)))]
    return table


@dataclass(frozen=True, eq=False, kw_only=True)
class Namer(WithoutCaches):
    """Names of alarms: prediction sets over the seen kinds.

    Attributes
    ----------
    kinds : tuple of str
        The seen ones, in the order in which they were learnt.
    rows : KindRows
        Learnt rows of them.
    has_promise : bool
        Whether names come with a promise. In models of version 0.1, which keep no rows of their
        kinds, an alarm has the name of the kind that it is most like, or none.
    config : Config
    """

    kinds: tuple[str, ...]
    rows: KindRows
    has_promise: bool
    config: Config

    @cached_property
    def judges(self) -> Judges | None:
        """What tells the kinds apart, made when it is first asked for; None without rows."""
        return Judges.of(self.rows, self.config) if len(self.rows.rows) else None

    def with_judges(self, judges: Judges) -> "Namer":
        """The same with judges that were made before."""
        namer = replace(self, rows=judges.kept)
        vars(namer)["judges"] = judges
        return namer

    def short_kinds(self, rate: float) -> dict[str, int]:
        """The kinds with too few rows, or groups, to promise a rate; and how many they have."""
        units = {kind: self.rows.n_units(kind) for kind in self.kinds}
        return {kind: n for kind, n in units.items() if n < rows_for(rate)}

    def needs_kind_likeness(self, rate: float) -> bool:
        """Whether some names come by likeness: of kinds that have too few rows."""
        return bool(self.kinds) and (not self.has_promise or self._limits(rate).any_short)

    def p_values(self, rows: np.ndarray) -> np.ndarray:
        """The p-value of "this row is of kind k" for packed rows.  -> (n, n_kinds)"""
        if not self.has_promise:
            raise UserError(
                "The model is from a file that has no rows of its kinds to compare with: names "
                "come without p-values. Fit again."
            )
        return self._judged(rows)[0]

    def sets(
        self, rows: np.ndarray, likeness: np.ndarray | None, *, rate: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which kinds each packed row may be of, and the votes by which these are ordered.

        Those with a p-value above the rate; of a kind with n rows, too few for that, above
        1 / (n + 1), or by likeness. The kind that most trees vote for joins the others, and so does
        one with many votes: one name alone has no rival.
        """
        if not self.has_promise:
            assert likeness is not None
            most = likeness.argmax(axis=1)[:, None] == np.arange(likeness.shape[1])
            is_like = most & (likeness > LIKE)
            return is_like, is_like.astype(float)
        p, votes = self._judged(rows)
        return self._limits(rate).sets(p, votes, likeness), votes

    def names(self, rows: np.ndarray, likeness: np.ndarray | None, *, rate: float) -> np.ndarray:
        """The seen kinds that each packed row, an alarm, may be of: "a", "a or b", or "unseen"."""
        if not self.kinds or not len(rows):
            return np.full(len(rows), UNSEEN, dtype=object)
        return self._limits(rate).names(*self.sets(rows, likeness, rate=rate))

    def taken_for(
        self, kind: str, rows: np.ndarray, likeness: np.ndarray | None, *, rate: float
    ) -> dict[str, float]:
        """The share of a kind's rows that are taken for each kind.

        Each row is judged without itself; where the rows are too few, all are by their likeness.
        """
        if self.has_promise and self.judges is not None and kind not in self.short_kinds(rate):
            return self.judges.taken_for(kind)
        sets, _ = self.sets(rows, likeness, rate=rate)
        return dict(zip(self.kinds, sets.mean(axis=0).tolist(), strict=True))

    def _judged(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The p-values and votes of all kinds; of one of which no row is kept, 1 and 0."""
        shape = (len(rows), len(self.kinds))
        if self.judges is None or not len(rows):
            return np.ones(shape), np.zeros(shape)
        judged = self.judges(rows)
        if self.judges.sorted_kinds == self.kinds:
            return judged
        p, votes = np.ones(shape), np.zeros(shape)
        columns = [self.kinds.index(kind) for kind in self.judges.sorted_kinds]
        p[:, columns], votes[:, columns] = judged
        return p, votes

    def _limits(self, rate: float) -> "_Limits":
        if rate not in self._known_limits:
            units = [self.rows.n_units(kind) for kind in self.kinds]
            self._known_limits[rate] = _Limits.of(self.kinds, units, rate)
        return self._known_limits[rate]

    @cached_property
    def _known_limits(self) -> dict[float, "_Limits"]:
        return {}


@dataclass(frozen=True, eq=False, kw_only=True)
class _Limits:
    """What decides on the names of a row, for each kind.

    Attributes
    ----------
    least : ndarray of shape (n_kinds,)
        The p-value above which a kind is a name: the rate; of a kind with n rows, too few for
        that, 1 / (n + 1).
    is_short : ndarray of bool of shape (n_kinds,)
        Which have too few rows.
    order : ndarray of int of shape (n_kinds,)
        The alphabetical one.
    kinds : ndarray of object of shape (n_kinds + 1,)
        Their names, and what a row of none of them is called.
    """

    least: np.ndarray
    is_short: np.ndarray
    order: np.ndarray
    kinds: np.ndarray

    @classmethod
    def of(cls, kinds: tuple[str, ...], n_units: list[int], rate: float) -> Self:
        is_short = np.array([n < rows_for(rate) for n in n_units], dtype=bool)
        least = [1 / (n + 1) if short else rate for n, short in zip(n_units, is_short, strict=True)]
        names = np.array([*kinds, UNSEEN], dtype=object)
        order = np.argsort(names[:-1])
        return cls(least=np.array(least), is_short=is_short, order=order, kinds=names)

    @cached_property
    def any_short(self) -> bool:
        return bool(self.is_short.any())

    def sets(self, p: np.ndarray, votes: np.ndarray, likeness: np.ndarray | None) -> np.ndarray:
        """Which kinds are names of each row, by p-values, votes and likeness.  -> (n, n_kinds)"""
        sets = np.empty(p.shape, dtype=bool)
        likeness = np.zeros(p.shape) if likeness is None else likeness
        _choose(p, votes, likeness, self.least, self.is_short, sets)
        return sets

    def names(self, sets: np.ndarray, votes: np.ndarray) -> np.ndarray:
        """The names of each row, those with most votes first."""
        ordered, code = np.empty(sets.shape, dtype=int), np.empty(len(sets), dtype=int)
        _order(sets, votes, self.order, ordered, code)
        names: np.ndarray = self.kinds[code]
        for i in (code < 0).nonzero()[0].tolist():
            own = tuple(ordered[i].tolist())
            if own not in self._joined:
                self._joined[own] = OR.join(self.kinds[k] for k in own if k >= 0)
            names[i] = self._joined[own]
        return names

    @cached_property
    def _joined(self) -> dict[tuple[int, ...], str]:
        return {}


@compiled(fastmath=_NO_NAN)
def _nearest_without(distances: Any, starts: Any, cells: Any, out: Any) -> None:
    """The least distance to the rows of each kind without each fold.  -> (n, n_folds, n_kinds)

    Distances are to rows that stand cell by cell, which begin at `starts`; a cell is a kind, times
    the number of folds, and a fold.
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
    """The first place from `low` up to `high`, of numbers in order, that is not less."""
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
    as_unlike: Any,
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
                total += as_unlike[max(by_votes, by_distance) + k, f]
            p[i, k] = total / (n_units[k] + 1)


@compiled
def _choose(p: Any, votes: Any, likeness: Any, least: Any, is_short: Any, sets: Any) -> None:
    for i in range(sets.shape[0]):
        like = voted = 0
        is_named = False
        for k in range(sets.shape[1]):
            like = k if likeness[i, k] > likeness[i, like] else like
            voted = k if votes[i, k] > votes[i, voted] else voted
        for k in range(sets.shape[1]):
            is_like = k == like and is_short[k] and likeness[i, k] > LIKE
            sets[i, k] = p[i, k] > least[k] + 1e-9 or is_like
            is_named |= sets[i, k]
        for k in range(sets.shape[1]):
            sets[i, k] |= is_named and votes[i, k] >= min(votes[i, voted], RIVAL)


@compiled
def _order(sets: Any, votes: Any, order: Any, ordered: Any, code: Any) -> None:
    """The kinds of each row, those with most votes first, then in their order; -1 after them.

    The code of a row is its only kind, the number of kinds where it has none, or else -1.
    """
    for i in range(sets.shape[0]):
        n = 0
        for j in range(order.shape[0]):
            ordered[i, j] = -1
        for j in range(order.shape[0]):
            k = order[j]
            if sets[i, k]:
                at = n
                while at and votes[i, k] > votes[i, ordered[i, at - 1]]:
                    ordered[i, at] = ordered[i, at - 1]
                    at -= 1
                ordered[i, at] = k
                n += 1
        code[i] = -1 if n > 1 else (ordered[i, 0] if n else order.shape[0])
