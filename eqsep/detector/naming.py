"""Names of alarms: prediction sets over the seen kinds, with a promise.

For each seen kind k a row has a p-value of "this row is of kind k": its rank among learnt rows of
that kind, by how unlike the kind each is. No row judges itself: rows are divided into folds, and
those of a fold are judged by the others, as the row is (cross-conformal prediction). A row is
unlike a kind where few trees vote for it or where no row of the kind is near, by whichever of the
two is rarer among rows of the kind. Kinds with a p-value above the rate that the user allows are
the names of the row, so that a row of a seen kind is without its name at no more than that rate.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from eqsep.detector.holdout import row_hashes
from eqsep.detector.promise import checked_share
from eqsep.detector.ranks import Peers, nearest_without
from eqsep.detector.scoring import NO_GROUPS, fetched, scorer_of
from eqsep.detector.sets import LIKE, Limits, rows_for
from eqsep.engine.loops import in_threads
from eqsep.engine.manhattan import SparseManhattan
from eqsep.engine.trees import Trees
from eqsep.errors import UserError
from eqsep.labels import NORMAL, UNSEEN, RowLabels

N_FOLDS, TREES_OF_A_FOLD = 5, 40
MOST_ROWS, FEWEST_ROWS, MOST_VALUES = 1000, 200, 200_000  # that are kept of a kind
MOST_NEAR = 250  # rows of a kind to which distances are taken
_AT_ONCE = 256  # rows held as distances


@dataclass(frozen=True, eq=False)
class KindRows:
    """Learnt rows of the seen kinds, by which alarms are named.

    Attributes
    ----------
    rows : ndarray of float32 of shape (n, n_packed)
        Packed, as trees see them.
    kind : ndarray of str of shape (n,)
    groups : ndarray of uint64 of shape (n,)
        A hash of the group of each; empty where rows are held out one by one.
    key : int
        That of the hashes.
    """

    rows: np.ndarray
    kind: np.ndarray
    groups: np.ndarray
    key: int

    @classmethod
    def of(
        cls,
        feature_map: Any,
        Z: np.ndarray,
        labels: RowLabels,
        learnt: np.ndarray,
        hashes: np.ndarray,
    ) -> "KindRows":
        """Those of the anomalies among learnt rows that the feature map's bounds keep.

        The hashes, of all rows, are those of groups where whole groups are held out.
        """
        bounds = feature_map.kind_bounds
        places = learnt[labels.code[learnt] > 0][: 0 if bounds is None else None]
        kind = np.array(("", *labels.kinds))[labels.code[places]]
        groups = NO_GROUPS if feature_map.grouping is None else hashes[places]
        rows = feature_map.packing(Z[places])
        return cls(rows, kind, groups, feature_map.holdout_key).below(bounds or {})

    def __add__(self, more: "KindRows") -> "KindRows":
        if not len(more.kind):
            return self  # with its trees, where they are made
        rows, kind = np.concatenate([self.rows, more.rows]), np.concatenate([self.kind, more.kind])
        return KindRows(rows, kind, np.concatenate([self.groups, more.groups]), self.key)

    def below(self, bounds: Mapping[str, int]) -> "KindRows":
        """Those with a hash below the bound of their kind; of kinds without a bound all."""
        if not bounds:
            return self
        kept = np.ones(len(self.kind), dtype=bool)
        for name, bound in bounds.items():
            kept &= (self.kind != name) | (self.hashes < np.uint64(bound))
        return self.take(np.flatnonzero(kept))

    def take(self, places: np.ndarray) -> "KindRows":
        """Some of them."""
        groups = self.groups[places] if len(self.groups) else self.groups
        return KindRows(self.rows[places], self.kind[places], groups, self.key)

    @cached_property
    def hashes(self) -> np.ndarray:
        """A hash of each row, which depends on no other rows than equal ones of its kind."""
        out = np.empty(len(self.rows), dtype=np.uint64)
        for name in np.unique(self.kind):
            places = self.kind == name
            out[places] = row_hashes(self.rows[places], key=self.key)
        return out

    def n_units(self, kind: str) -> int:
        """How many rows, or groups of rows, there are of a kind."""
        return self._units.get(kind, 0)

    @cached_property
    def _units(self) -> dict[str, int]:
        own = self.groups if len(self.groups) else np.arange(len(self.kind))
        distinct = set(zip(self.kind.tolist(), own.tolist(), strict=True))
        return Counter(kind for kind, _ in distinct)

    def limits(self, kinds: tuple[str, ...], rate: float) -> "Limits":
        """By which p-values these kinds are names of a row, at a rate of rows called unseen."""
        if (kinds, rate) not in self._limits:
            self._limits[kinds, rate] = Limits.of(kinds, [self.n_units(k) for k in kinds], rate)
        return self._limits[kinds, rate]

    @cached_property
    def _limits(self) -> dict[tuple[tuple[str, ...], float], "Limits"]:
        return {}

    @cached_property
    def naming(self) -> "Naming":
        """What tells the kinds apart, made when it is first asked for, or from a model's file."""
        return Naming.of(self)


def thinned(feature_map: Any, kept: KindRows, *, most: float = 1.0) -> tuple[Any, KindRows]:
    """Lower bounds, under which at most so many rows of each kind are kept to name alarms by.

    Up to `most` times as many are left alone. All is as if the bounds had been these from the
    start.
    """
    limit = rows_kept(kept.rows.shape[1])
    names, counts = np.unique(kept.kind, return_counts=True)
    large = names[counts > most * limit]
    if feature_map.kind_bounds is None or not len(large):
        return feature_map, kept
    lower = {k: int(np.sort(kept.hashes[kept.kind == k])[limit]) for k in large.tolist()}
    bounds = {**feature_map.kind_bounds, **lower}
    return replace(feature_map, kind_bounds=bounds), kept.below(lower)


def with_expected_bounds(feature_map: Any, labels: RowLabels, counts: np.ndarray) -> Any:
    """The same with bounds below which about twice as many rows as it takes lie.

    Each of the labels is that of so many rows.
    """
    most = 2 * rows_kept(len(feature_map.packing.first))
    n_rows = {k: int(counts[labels.code == i].sum()) for i, k in enumerate(labels.kinds, start=1)}
    bounds = {kind: int(most / n * (2**64 - 1)) for kind, n in n_rows.items() if n > most}
    return replace(feature_map, kind_bounds=bounds)


def rows_kept(n_columns: int) -> int:
    """How many rows of a kind are kept at most: 1,000, of wide ones fewer."""
    return min(MOST_ROWS, max(FEWEST_ROWS, MOST_VALUES // max(n_columns, 1)))


@dataclass(frozen=True, eq=False)
class Naming:
    """What tells the seen kinds apart: their rows, and trees; and how the rows themselves fare.

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
    """

    kept: KindRows
    fold: np.ndarray
    trees: Trees
    shares: np.ndarray
    lacking: np.ndarray
    distance: np.ndarray

    @classmethod
    def of(cls, kept: KindRows) -> "Naming":
        """By these rows; their order does not matter."""
        kept = kept.take(np.lexsort((kept.hashes, kept.kind)))
        code = np.unique(kept.kind, return_inverse=True)[1]
        fold, rows = _folds(kept, code), np.arange(len(code))
        parts = [np.flatnonzero(fold != f) for f in range(N_FOLDS)]
        parts = [part if len(part) else rows for part in parts]  # a lonely row
        rng = np.random.RandomState(kept.key % 2**32)
        n = TREES_OF_A_FOLD if code[-1] else 1  # one kind alone gets all votes of any tree
        trees, shares = Trees.of_kinds(kept.rows, code, parts, rng, n=n)
        bare = cls(kept, fold, trees, shares, np.empty(0), np.empty(0))
        lacking, distance = (unlike[rows, fold, code] for unlike in bare.judged(kept.rows))
        return replace(bare, lacking=lacking, distance=distance)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """In alphabetical order."""
        return tuple(sorted(set(self.kept.kind.tolist())))

    @cached_property
    def _first(self) -> np.ndarray:
        """Where the rows of each kind begin, and the last ones end."""
        return np.append(np.searchsorted(self.kept.kind, self.kinds), len(self.kept.kind))

    @cached_property
    def _peers(self) -> Peers:
        unlike = np.stack([self.lacking, self.distance])
        return Peers.of(self._first, unlike, self.fold, self.kept.groups, N_FOLDS)

    def taken_for(self, kind: str) -> dict[str, float]:
        """The share of the rows of a kind that trees without their fold take for each kind."""
        own = self.kept.kind == kind
        lacking, _ = self.judged(self.kept.rows[own])
        times = np.bincount(lacking[np.arange(own.sum()), self.fold[own]].argmin(axis=1))
        return {k: n / own.sum() for k, n in zip(self.kinds, times.tolist(), strict=False) if n}

    def __call__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P-values and shares of votes, by kind, of packed rows.  -> (n, n_kinds) twice"""
        lacking, distance = self.judged(rows)
        votes = 1 - np.add.reduce(lacking, axis=1) / N_FOLDS
        return self._peers.p_values(lacking, distance), votes

    def judged(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lack of votes and the distance, without each fold.  -> (n, n_folds, n_kinds) twice"""
        distances, starts, cells = self._near
        nearest = np.empty((len(rows), N_FOLDS, len(self.kinds)))

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, _AT_ONCE):
                some = slice(start, min(start + _AT_ONCE, part.stop))
                nearest_without(distances(rows[some]), starts, cells, nearest[some])

        in_threads(fill, len(rows), steps=rows.size * len(cells) * MOST_NEAR // N_FOLDS)
        return 1 - self.trees.means(rows, self.shares, n_parts=N_FOLDS), nearest

    @cached_property
    def _near(self) -> tuple[SparseManhattan, np.ndarray, np.ndarray]:
        """The distances to some rows of each kind, and where those of each kind and fold begin."""
        code = np.repeat(np.arange(len(self.kinds)), np.diff(self._first))
        some = np.flatnonzero(np.arange(len(code)) - self._first[code] < MOST_NEAR)
        cell = code[some] * N_FOLDS + self.fold[some]
        order = np.argsort(cell, kind="stable")
        cells, first = np.unique(cell[order], return_index=True)
        return SparseManhattan(self.kept.rows[some[order]]), np.append(first, len(some)), cells


def _folds(kept: KindRows, code: np.ndarray) -> np.ndarray:
    """The fold of each row: the rows of a kind in turn, or whole groups."""
    if len(kept.groups):
        fold: np.ndarray = np.unique(kept.groups, return_inverse=True)[1] % N_FOLDS
        return fold
    first = np.searchsorted(code, code)  # rows stand in the order of kinds
    return (np.arange(len(code)) - first) % N_FOLDS


def checked_unseen_rate(rate: float) -> float:
    """A rate of rows of seen kinds that are called unseen, as a number between 0 and 1."""
    means = "0.05 lets one row in twenty of a seen kind be called unseen."
    return checked_share(rate, name="unseen_rate", means=means)


def short_kinds(detector: Any) -> dict[str, int]:
    """The kinds with too few rows, or groups of rows, for a promise; and how many they have."""
    needed = rows_for(checked_unseen_rate(detector.unseen_rate))
    units = {kind: detector.kind_rows_.n_units(kind) for kind in detector.kinds_}
    return {kind: n for kind, n in units.items() if n < needed}


def has_promise(detector: Any) -> bool:
    """Whether names come with a promise: those of a model of an older file do not."""
    return detector.feature_map_.kind_bounds is not None


def kind_p_values(detector: Any, Z: np.ndarray) -> np.ndarray:
    """The p-value of "this row is of kind k" for encoded rows.  (n, n_columns) -> (n, n_kinds)"""
    if not has_promise(detector):
        raise UserError(
            "The model is of a file that has no rows of its kinds to compare with: names come "
            "without p-values. Fit anew."
        )
    return _judged(detector, Z)[0]


def _judged(detector: Any, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The p-values and votes of all kinds; of one of which no row is kept, 1 and 0."""
    kinds, shape = detector.kinds_, (len(Z), len(detector.kinds_))
    if not len(detector.kind_rows_.rows) or not len(Z):
        return np.ones(shape), np.zeros(shape)
    naming: Naming = detector.kind_rows_.naming
    judged = naming(detector.feature_map_.packing(Z))
    if naming.kinds == kinds:
        return judged
    p, votes, columns = np.ones(shape), np.zeros(shape), [kinds.index(k) for k in naming.kinds]
    p[:, columns], votes[:, columns] = judged
    return p, votes


def prediction_sets(
    detector: Any, Z: np.ndarray, likeness: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Which kinds each encoded row may be of, and in which order they are told.

    Those with a p-value above the rate; of a kind with n rows, too few for that, above 1 / (n + 1),
    or by likeness, as all are in a model of an older file. The kind that most trees vote for joins
    the others, and so does one with many votes: one name alone has no rival.
    """
    if likeness is None and needs_likeness(detector):
        likeness = scorer_of(detector).likeness(Z)
    if not has_promise(detector):
        assert likeness is not None
        most = likeness.argmax(axis=1)[:, None] == np.arange(likeness.shape[1])
        is_like = most & (likeness > LIKE)
        return is_like, is_like.astype(float)
    p, votes = _judged(detector, Z)
    return _limits(detector).sets(p, votes, likeness), votes


def needs_likeness(detector: Any) -> bool:
    """Whether some names come by likeness: of kinds with too few rows, or of an older file."""
    return bool(detector.kinds_) and (not has_promise(detector) or _limits(detector).any_short)


def _limits(detector: Any) -> Limits:
    rate = checked_unseen_rate(detector.unseen_rate)
    limits: Limits = detector.kind_rows_.limits(detector.kinds_, rate)
    return limits


def named_kinds(detector: Any, Z: np.ndarray, likeness: np.ndarray | None = None) -> np.ndarray:
    """The seen kinds that each encoded row, an alarm, may be of: "a", "a or b", or "unseen"."""
    if not detector.kinds_ or not len(Z):
        return np.full(len(Z), UNSEEN, dtype=object)
    return _limits(detector).names(*prediction_sets(detector, Z, likeness))


def scores_and_kinds(detector: Any, Z: Any, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """The score and the kind of each encoded row, of which those above a threshold are alarms."""
    scorer, likeness = scorer_of(detector), None
    if isinstance(Z, np.ndarray) and needs_likeness(detector):
        score, likeness = scorer.scores_and_likeness(Z, threshold)
    else:
        score = scorer.scores(Z)
    alarms = (score > threshold).nonzero()[0]
    if len(alarms) == len(score):
        return score, named_kinds(detector, fetched(Z), likeness)
    kind = np.full(len(score), NORMAL, dtype=object)
    if len(alarms):
        kind[alarms] = named_kinds(detector, fetched(Z[alarms]), likeness)
    return score, kind
