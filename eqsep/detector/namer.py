"""Namer: the likeliest seen kind of an alarm, the kinds it may be, or "unseen".

Learnt rows of each kind, judged by trees and distances without their own fold, calibrate the
probabilities, the prediction sets, and the test that calls an alarm "unseen" (cross-conformal).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self, overload

import numpy as np

from eqsep import schemas
from eqsep.arrays import WithoutCaches
from eqsep.detector.config import Config
from eqsep.detector.evidence import KindRows
from eqsep.engine.kernels import SparseManhattan
from eqsep.engine.loops import compiled, in_threads
from eqsep.engine.trees import Trees
from eqsep.errors import UserError
from eqsep.labels import OR, UNSEEN

LIKE = 0.5  # above this likeness, an alarm gets the name of a kind with too few rows for a test
COVERAGE = 0.95
MARK = "*"  # after the name of a kind without a promise, in the text of a prediction set
_VOTE_FLOOR = 0.05  # added to shares of votes: no vote for a kind does not exclude it
_NEAR_DISTANCE = 0.3  # of the mean distance to the nearest row: closer rows are equally near
_FIRST_POWERS = np.array([1.0, 0.0])  # of votes and distances, before any row is seen
_MAX_STEPS = 50  # of Newton's method
_TIE = 1e-9
_ROWS_PER_PIECE = 256  # rows held as distances
_COUNTED_EXAMPLES = 500  # examples by which sets are counted
_NO_NAN = frozenset({"nnan", "nsz"})  # so that the least of several is found several at a time
_BARE_WORDS = frozenset({"yes", "no", "y", "n", "true", "false"})


def kind_text(kind: str, column: str | None = None) -> str:
    """A kind as people read it: a bare "no" or number with its column, or else in quotes."""
    if kind.casefold() not in _BARE_WORDS and not kind.lstrip("-").replace(".", "", 1).isdigit():
        return kind
    return repr(kind) if column is None else f"{column} = {kind}"


def rows_for(rate: float) -> int:
    """How many rows of a kind are needed to promise a rate: 1 / rate - 1."""
    return math.ceil(1 / rate - 1 - 1e-9)


@dataclass(frozen=True, eq=False, kw_only=True)
class KindProbability(schemas.Kept):
    """The probability of each kind: prior x (votes + 0.05)^b / (distance + reach)^c, normalised."""

    prior: np.ndarray  # of each kind: learnt rows per example
    powers: np.ndarray  # b and c
    reach: float
    far: float  # distances beyond this are equal

    SCHEMAS: ClassVar = {
        "prior": schemas.bounded("kinds", dtype="float64"),
        "powers": schemas.bounded(2, dtype="float64"),
        "reach": schemas.POSITIVE,
        "far": schemas.POSITIVE,
    }

    @classmethod
    def fitted(
        cls, votes: np.ndarray, distance: np.ndarray, code: np.ndarray, *, prior: np.ndarray
    ) -> Self:
        """The powers that suit rows of the kinds `code`.  (n, n_kinds) twice, (n,) -> …"""
        finite = distance[np.isfinite(distance)]
        nearest = distance.min(axis=1, initial=np.inf)
        mean = nearest[np.isfinite(nearest)].mean() if np.isfinite(nearest).any() else 0.0
        reach, far = float(_NEAR_DISTANCE * mean) or 1.0, float(finite.max(initial=0.0)) or 1.0
        start = cls(prior=prior, powers=_FIRST_POWERS, reach=reach, far=far)
        weight = prior[code] / prior[code].mean()
        powers = _most_likely(start._terms(votes, distance), np.log(prior), code, weight)
        return replace(start, powers=powers)

    def __call__(self, votes: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """The probabilities of the kinds.  (…, n_kinds) twice -> (…, n_kinds)"""
        return _softmax(np.log(self.prior) + self._terms(votes, distance) @ self.powers)

    def _terms(self, votes: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """What the powers multiply, as logarithms.  -> (…, n_kinds, 2)"""
        near = -np.log(np.minimum(distance, self.far) + self.reach)
        return np.stack([np.log(votes + _VOTE_FLOOR), near], axis=-1)


def _softmax(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def _most_likely(
    terms: np.ndarray, prior: np.ndarray, code: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """The powers with the highest likelihood, by Newton's method, with a penalty of one row."""
    rows = np.arange(len(code))

    def loss(powers: np.ndarray) -> float:
        own = _softmax(prior + terms @ powers)[rows, code]
        penalty = np.sum((powers - _FIRST_POWERS) ** 2) / 2
        return float(penalty - weight @ np.log(np.maximum(own, 1e-300)))

    powers = _FIRST_POWERS
    for _ in range(_MAX_STEPS):
        p = _softmax(prior + terms @ powers)
        mean = (p[..., None] * terms).sum(axis=1)
        slope = weight @ (mean - terms[rows, code]) + powers - _FIRST_POWERS
        weighted = (weight[:, None] * p)[..., None] * terms
        curvature = np.tensordot(weighted, terms, axes=([0, 1], [0, 1])) - mean.T * weight @ mean
        step, now = np.linalg.solve(curvature + np.eye(2), slope), loss(powers)
        while loss(powers - step) > now and np.abs(step).max() > _TIE:
            step = step / 2
        powers = powers - step
        if np.abs(step).max() <= 1e-6:
            break
    return np.asarray(powers)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranks:
    """P-values of rows: ranks, fold by fold, by the product of two tail weights of known rows."""

    unlike: np.ndarray  # (n, 2), of the known rows
    fold: np.ndarray
    weight: np.ndarray
    unit: float  # the weight of one more row
    n_folds: int

    @property
    def least(self) -> float:
        """The lowest possible p-value."""
        return self.unit / self._total

    @property
    def _total(self) -> float:
        return float(self.weight.sum()) + self.unit

    def __call__(self, unlike: np.ndarray) -> np.ndarray:
        """The p-values of rows, from how unlike they are without each fold.  (n, folds, 2) -> n"""
        total = np.full(len(unlike), self.unit)
        if len(self._by_fold) > 1:  # else no known row can be compared with others
            product = self._product(unlike)
            for fold, tail in self._by_fold.items():
                total += tail(-product[:, fold])
        return total / self._total

    @cached_property
    def _tails(self) -> tuple["_Tail", "_Tail"]:
        first, second = (_Tail.of(values, self.weight) for values in self.unlike.T)
        return first, second

    @cached_property
    def _by_fold(self) -> dict[int, "_Tail"]:
        product = self._product(self.unlike)
        parts = ((f, self.fold == f) for f in range(self.n_folds))
        return {f: _Tail.of(-product[own], self.weight[own]) for f, own in parts if own.any()}

    def _product(self, unlike: np.ndarray) -> np.ndarray:
        first, second = (tail(unlike[..., i]) + self.unit for i, tail in enumerate(self._tails))
        return np.asarray(first * second)


class _Tail(NamedTuple):
    """The weight of known values from each one on."""

    ordered: np.ndarray
    weight: np.ndarray  # one more: 0 beyond all

    @classmethod
    def of(cls, values: np.ndarray, weight: np.ndarray) -> Self:
        order = np.argsort(values, kind="stable")
        return cls(values[order], np.append(np.cumsum(weight[order][::-1])[::-1], 0.0))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """The weight of the known values that are at least as high."""
        found: np.ndarray = self.weight[self.ordered.searchsorted(values)]
        return found


class Judged(NamedTuple):
    """How judges rate packed rows; kinds are in alphabetical order."""

    probability: np.ndarray  # (n, n_kinds)
    # How unlike each kind rows are, without each fold: one less its probability, and the distance
    # to the nearest row of it.
    unlike: np.ndarray  # (n, n_folds, n_kinds, 2)

    @property
    def unlike_all(self) -> np.ndarray:
        """The same of the likeliest and of the nearest kind.  -> (n, n_folds, 2)"""
        return np.asarray(self.unlike.min(axis=2))


class NamesExpected(NamedTuple):
    """How well learnt rows are named, judged without their fold, with kinds as common as learnt."""

    right: float  # the share with the right likeliest kind
    covered: float  # the share with their kind in the prediction set
    size: float  # the mean number of kinds in a set

    def __str__(self) -> str:
        return (
            f"{self.right:.1%} of learnt anomalies get the right name in cross-validation; sets "
            f"hold {self.size:.2f} kinds on average, with the right one in {self.covered:.1%}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Judges(schemas.Kept, WithoutCaches):
    """Compare packed rows with examples of each kind, by trees and by distance."""

    examples: KindRows  # in the order of kinds, those of a kind by their hashes
    fold: np.ndarray  # of each example
    trees: Trees  # the same number for each fold, grown without its rows
    shares: np.ndarray  # (n_leaves, n_kinds): of the kinds, in alphabetical order, in each leaf
    n_folds: int
    max_near: int  # the most rows of a kind to which distances are taken
    # How unlike its kind, and all kinds, each example is, judged without its fold: (n, 2), as in
    # `Judged`. None until `calibrated`.
    unlike_own: np.ndarray | None = None
    unlike_all: np.ndarray | None = None
    probability: KindProbability | None = None

    SCHEMAS: ClassVar = {  # the examples are in the evidence
        "fold": schemas.array_of(None, kinds="i"),
        "trees": schemas.kept(Trees),
        "shares": schemas.bounded(None, None, dtype="float64"),
        "unlike_own": schemas.array_of(None, 2, finite=False),  # distances may be infinite
        "unlike_all": schemas.array_of(None, 2, finite=False),
        "probability": schemas.kept(KindProbability),
    }

    @classmethod
    def of(cls, examples: KindRows, config: Config, *, learnt: Mapping[str, float]) -> Self:
        """The judges for these examples, in any order; `learnt` counts the rows of each kind."""
        examples = examples.sorted()
        code = np.unique(examples.kind, return_inverse=True)[1]
        rows, groups = np.arange(len(code)), examples.groups
        turn = rows - np.searchsorted(code, code)  # the rows of a kind in turn, or whole groups
        turn = np.unique(groups, return_inverse=True)[1] if len(groups) else turn
        n_folds, max_near = config.n_folds, config.max_near_rows
        fold = turn % n_folds
        parts = [np.flatnonzero(fold != f) for f in range(n_folds)]
        parts = [part if len(part) else rows for part in parts]  # only one fold has rows
        rng = np.random.RandomState(examples.key % 2**32)
        n = config.n_trees_per_fold if code[-1] else 1  # one kind alone gets all votes of any tree
        trees, shares = Trees.of_kinds(examples.rows, code, parts, rng, n=n)
        judges = cls(
            examples=examples,
            fold=fold,
            trees=trees,
            shares=shares,
            n_folds=n_folds,
            max_near=max_near,
        )
        return judges.calibrated(learnt)

    def calibrated(self, learnt: Mapping[str, float]) -> Self:
        """The same with probabilities, calibrated on examples judged without their fold."""
        rows, code = np.arange(len(self.fold)), self._code
        votes, distance = (
            part[rows, self.fold] for part in self.votes_and_distances(self.examples.rows)
        )
        prior = [learnt.get(kind, 0.0) / self.examples.n_units(kind) for kind in self.sorted_kinds]
        probability = KindProbability.fitted(votes, distance, code, prior=np.maximum(prior, _TIE))
        unlike = np.stack([1 - probability(votes, distance), distance], axis=-1)
        own, least = unlike[rows, code], unlike.min(axis=1)
        return replace(self, unlike_own=own, unlike_all=least, probability=probability)

    @cached_property
    def sorted_kinds(self) -> tuple[str, ...]:
        """The kinds in alphabetical order, as in all arrays here."""
        return tuple(sorted(set(self.examples.kind.tolist())))

    def __call__(self, rows: np.ndarray) -> Judged:
        """The probability of each kind for packed rows, and how unlike it they are."""
        assert self.probability is not None
        votes, distance = self.votes_and_distances(rows)
        unlike = np.stack([1 - self.probability(votes, distance), distance], axis=-1)
        of_all = np.add.reduce(votes, axis=1) / self.n_folds, distance.min(axis=1)
        return Judged(self.probability(*of_all), unlike)

    def votes_and_distances(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each kind, without each fold.  -> (n, n_folds, n_kinds) twice"""
        distances, starts, cells = self._near
        nearest = np.empty((len(rows), self.n_folds, len(self.sorted_kinds)))

        def fill(some: slice) -> None:
            _nearest_without(distances(rows[some]), starts, cells, nearest[some])

        steps = rows.size * len(cells) * self.max_near // self.n_folds
        in_threads(fill, len(rows), steps=steps, most=_ROWS_PER_PIECE)
        return self.trees.means(rows, self.shares, n_parts=self.n_folds), nearest

    @cached_property
    def all_ranks(self) -> Ranks:
        """The ranks of rows of seen kinds, as common as they were learnt, by `unlike_all`."""
        return self._ranks(self.unlike_all, self._weight, float(self._prior.max()))

    @cached_property
    def ranks_by_kind(self) -> list[Ranks]:
        """The ranks of rows among those of each kind, by `unlike_own`."""
        weight = self._weight / self._prior[self._code]
        parts = (slice(*ends) for ends in pairwise(self._first.tolist()))
        return [self._ranks(self.unlike_own, weight, 1.0, own) for own in parts]

    def _ranks(
        self, unlike: np.ndarray | None, weight: np.ndarray, unit: float, own: slice = slice(None)
    ) -> Ranks:
        assert unlike is not None
        fold, n_folds = self.fold[own], self.n_folds
        return Ranks(unlike=unlike[own], fold=fold, weight=weight[own], unit=unit, n_folds=n_folds)

    def is_likely(self, probability: np.ndarray, *, coverage: float) -> np.ndarray:
        """Which kinds are as probable as the right kind is for this share of the examples."""
        assert self.unlike_own is not None
        unit, total = float(self._prior.max()), float(self._weight.sum())
        tail = _Tail.of(self.unlike_own[:, 0], self._weight)(1 - probability)
        return np.asarray((tail + unit) / (total + unit) > 1 - coverage + _TIE)

    def promises(self, coverage: float) -> bool:
        """Whether there are enough examples to promise prediction sets with this coverage."""
        return self.all_ranks.least <= 1 - coverage + _TIE

    @cached_property
    def expected(self) -> NamesExpected:
        """How well the examples (for sets, some of them) are named, judged without their fold."""
        assert self.probability is not None
        assert self.unlike_own is not None
        assert self.unlike_all is not None
        n = len(self.fold)
        some, weight = np.arange(0, n, math.ceil(n / _COUNTED_EXAMPLES)), self._weight
        votes, distance = (
            part[np.arange(len(some)), self.fold[some]]
            for part in self.votes_and_distances(self.examples.rows[some])
        )
        probability = self.probability(votes, distance)
        members = self.is_likely(probability, coverage=COVERAGE)
        if not self.promises(COVERAGE):
            members = probability >= 1 - COVERAGE
        members[np.arange(len(some)), probability.argmax(axis=1)] = True
        covered = members[np.arange(len(some)), self._code[some]]
        right = self.unlike_own[:, 0] <= self.unlike_all[:, 0] + _TIE
        return NamesExpected(
            right=float(np.average(right, weights=weight)),
            covered=float(np.average(covered, weights=weight[some])),
            size=float(np.average(members.sum(axis=1), weights=weight[some])),
        )

    @property
    def _prior(self) -> np.ndarray:
        assert self.probability is not None
        return self.probability.prior

    @cached_property
    def _weight(self) -> np.ndarray:
        """Of each example: learnt rows per example, or per group, of its kind."""
        weight, groups = self._prior[self._code], self.examples.groups
        if len(groups):
            both = np.stack([self._code.astype(np.uint64), groups])
            _, place, counts = np.unique(both, axis=1, return_inverse=True, return_counts=True)
            weight = weight / counts[place.ravel()]
        return np.asarray(weight)

    def taken_for(self, kind: str) -> dict[str, float]:
        """The share of the examples of a kind that trees without their fold take for each kind."""
        own = self.examples.kind == kind
        votes, _ = self.votes_and_distances(self.examples.rows[own])
        times = np.bincount(votes[np.arange(own.sum()), self.fold[own]].argmax(axis=1))
        counted = zip(self.sorted_kinds, times.tolist(), strict=False)
        return {k: n / own.sum() for k, n in counted if n}

    @cached_property
    def _first(self) -> np.ndarray:
        """Where the examples of each kind begin, and the last ones end."""
        kind = self.examples.kind
        return np.append(np.searchsorted(kind, self.sorted_kinds), len(kind))

    @cached_property
    def _code(self) -> np.ndarray:
        """The kind of each example, by its place in the alphabet."""
        return np.repeat(np.arange(len(self.sorted_kinds)), np.diff(self._first))

    @cached_property
    def _near(self) -> tuple[SparseManhattan, np.ndarray, np.ndarray]:
        """Distances to some examples of each kind, and where those of each kind and fold begin."""
        code = self._code
        some = np.flatnonzero(np.arange(len(code)) - self._first[code] < self.max_near)
        cell = code[some] * self.n_folds + self.fold[some]
        order = np.argsort(cell, kind="stable")
        cells, first = np.unique(cell[order], return_index=True)
        return SparseManhattan(self.examples.rows[some[order]]), np.append(first, len(some)), cells

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        """The judges of these parts."""
        made = super().from_state(state, **others)
        examples, n_kinds = made.examples, len(made.sorted_kinds)
        in_order = (examples.kind[1:] >= examples.kind[:-1]).all()
        if len(made.fold) != len(examples.rows) or not in_order:
            schemas.damaged("the rows that name its alarms are not in order")
        trees, n_folds = made.trees, made.n_folds
        if (
            not 0 <= made.fold.min() <= made.fold.max() < n_folds
            or len(trees.root) % n_folds
            or made.shares.shape != (trees.n_leaves, n_kinds)
            or trees.column.max(initial=0) >= examples.rows.shape[1]
        ):
            schemas.damaged("the trees that name its alarms do not match its folds and kinds")
        prior = state["probability"].prior
        if len(prior) != n_kinds or prior.min() <= 0:
            schemas.damaged("the probabilities of names do not match its kinds")
        for unlike in (state["unlike_own"], state["unlike_all"]):
            if len(unlike) != len(examples.rows) or np.isnan(unlike).any():
                schemas.damaged("some rows that name its alarms have no rank")
        return made


@dataclass(frozen=True, eq=False)
class KindSets(Sequence[tuple[str, ...]]):
    """The kinds that each row may be, the likeliest first; none for a row without an alarm.

    The set of an alarm called "unseen" starts with "unseen"; the other names are the kinds that it
    may be if it is of a seen kind after all.

    Examples
    --------
    >>> sets = KindSets((("pump", "leak"), ()), without_promise=("leak",))
    >>> sets[0], len(sets), sets.texts()
    (('pump', 'leak'), 2, ['pump or leak*', ''])
    """

    names: tuple[tuple[str, ...], ...]
    without_promise: tuple[str, ...]  # kinds with too few rows: they are in sets by probability

    @overload
    def __getitem__(self, index: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[str, ...], ...]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.names[index]

    def __len__(self) -> int:
        return len(self.names)

    def texts(self) -> list[str]:
        """Each set as a text, "a or b"; a star after kinds without a promise."""
        marked = {kind: f"{kind}{MARK}" for kind in self.without_promise}
        return [OR.join(marked.get(kind, kind) for kind in names) for names in self.names]


@dataclass(frozen=True, eq=False, kw_only=True)
class Namer(WithoutCaches):
    """Names of alarms, with their probabilities, and prediction sets over the seen kinds."""

    kinds: tuple[str, ...]  # the seen ones, in the order in which they were learnt
    learnt: tuple[float, ...]  # how many rows of each
    examples: KindRows  # some of them
    config: Config

    @cached_property
    def judges(self) -> Judges | None:
        """The judges, made on first use; None without examples."""
        if not len(self.examples.rows):
            return None
        return Judges.of(self.examples, self.config, learnt=self.learnt_by_kind)

    @property
    def learnt_by_kind(self) -> dict[str, float]:
        """How many rows of each kind were learnt."""
        return dict(zip(self.kinds, self.learnt, strict=True))

    @property
    def expected(self) -> NamesExpected | None:
        """How well learnt rows are named; None with fewer than two kinds."""
        known = self.judges if len(self.kinds) > 1 else None
        return None if known is None or len(known.sorted_kinds) < 2 else known.expected

    def is_same(self, other: "Namer") -> bool:
        """Whether both know the same rows of kinds, so that one can stand for the other."""
        mine, others = ((one.kinds, one.learnt, one.config) for one in (self, other))
        return mine == others and self.examples.is_same(other.examples)

    def with_judges(self, judges: Judges) -> "Namer":
        """The same namer with existing judges."""
        namer = replace(self, examples=judges.examples)
        vars(namer)["judges"] = judges
        return namer

    def short_kinds(self, rate: float) -> dict[str, int]:
        """The kinds with too few examples, or groups, to promise a rate; and how many they have."""
        units = zip(self.kinds, self._n_units.tolist(), strict=True)
        return {kind: n for kind, n in units if n < rows_for(rate)}

    def needs_kind_likeness(self, rate: float) -> bool:
        """Whether some kinds have too few examples, so that likeness may name them."""
        return bool(self.short_kinds(rate))

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """The probability of each kind for packed rows of seen kinds.  -> (n, n_kinds)"""
        return self._spread(self._known_judges(rows).probability, missing=0.0)

    def p_values(self, rows: np.ndarray) -> np.ndarray:
        """The p-value of "this row is of kind k" for packed rows.  -> (n, n_kinds)"""
        return self._p_values(self._known_judges(rows))

    def names(
        self, rows: np.ndarray, likeness: np.ndarray | None, *, rate: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The likeliest kind of each packed row, an alarm, or "unseen", and its probability."""
        kinds, unknown = np.array([*self.kinds, UNSEEN], dtype=object), np.full(len(rows), np.nan)
        if not self.kinds or not len(rows):
            return np.full(len(rows), UNSEEN, dtype=object), unknown
        if self.judges is None:  # an alarm gets the name of the kind that it is most like
            assert likeness is not None
            return kinds[_most_like(likeness)], unknown
        judged, ranks = self.judges(rows), self.judges.all_ranks
        probability = self._spread(judged.probability, missing=0.0)
        named, p = probability.argmax(axis=1), ranks(judged.unlike_all)
        unseen = p <= max(rate, ranks.least) + _TIE
        if likeness is not None:
            few = np.append(self._n_units < rows_for(rate), False)
            unseen &= ~few[_most_like(likeness)]
        named_probability = probability[np.arange(len(rows)), named]
        named[unseen] = len(self.kinds)
        return kinds[named], np.where(unseen, rate / (p + rate), named_probability)

    def sets(
        self,
        rows: np.ndarray,
        likeness: np.ndarray | None,
        *,
        rate: float,
        coverage: float = COVERAGE,
        by_kind: bool = False,
    ) -> KindSets:
        """The seen kinds that each packed row, an alarm, may be, the likeliest first."""
        kind, _ = self.names(rows, likeness, rate=rate)
        if not self.kinds or not len(rows) or self.judges is None:
            return KindSets(tuple((name,) for name in kind.tolist()), self.kinds)
        members, probability = self.members(rows, coverage=coverage, by_kind=by_kind)
        found = []
        for name, own, p in zip(kind.tolist(), members, probability, strict=True):
            likely = sorted(np.flatnonzero(own).tolist(), key=lambda k: (-p[k], self.kinds[k]))
            found.append((UNSEEN,) * (name == UNSEEN) + tuple(self.kinds[k] for k in likely))
        return KindSets(tuple(found), self.without_promise(coverage, by_kind=by_kind))

    def members(
        self, rows: np.ndarray, *, coverage: float = COVERAGE, by_kind: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which kinds are in the set of each packed row; their probabilities.  -> (n, n_kinds)"""
        judged = self._known_judges(rows)
        probability = self._spread(judged.probability, missing=0.0)
        if by_kind:
            members = self._p_values(judged) > 1 - coverage + _TIE
        else:
            likely = self._known_judges.is_likely(judged.probability, coverage=coverage)
            members = self._spread(likely, missing=0.0) > 0
        without = np.isin(self.kinds, self.without_promise(coverage, by_kind=by_kind))
        members = np.where(without, probability >= 1 - coverage, members)
        members[np.arange(len(rows)), probability.argmax(axis=1)] = True
        return members, probability

    def without_promise(self, coverage: float, *, by_kind: bool) -> tuple[str, ...]:
        """The kinds with too few examples, or groups, for prediction sets with this coverage."""
        if by_kind:
            return tuple(self.short_kinds(1 - coverage))
        return () if self.judges is not None and self.judges.promises(coverage) else self.kinds

    def taken_for(
        self, kind: str, rows: np.ndarray, likeness: np.ndarray | None, *, rate: float
    ) -> dict[str, float]:
        """The share of a kind's rows that get the name of each kind, judged without themselves."""
        if self.judges is not None and kind not in self.short_kinds(rate):
            return self.judges.taken_for(kind)
        counts = Counter(self.names(rows, likeness, rate=rate)[0].tolist())
        return {name: counts[name] / len(rows) for name in self.kinds if counts[name]}

    @property
    def _known_judges(self) -> Judges:
        if self.judges is None:
            raise UserError(
                "Names have no probabilities: the model has no rows of its kinds. Fit again."
            )
        return self.judges

    def _spread(self, values: np.ndarray, *, missing: float) -> np.ndarray:
        """Values of the judges' kinds as those of `kinds`, some of which have no example."""
        out = np.full((len(values), len(self.kinds)), missing)
        out[:, [self.kinds.index(kind) for kind in self._known_judges.sorted_kinds]] = values
        return out

    def _p_values(self, judged: Judged) -> np.ndarray:
        ranks = self._known_judges.ranks_by_kind
        p = np.stack([one(judged.unlike[:, :, k]) for k, one in enumerate(ranks)], axis=1)
        return self._spread(p, missing=1.0)

    @cached_property
    def _n_units(self) -> np.ndarray:
        """How many examples, or groups of them, there are of each kind."""
        return np.array([self.examples.n_units(kind) for kind in self.kinds], dtype=int)


def _most_like(likeness: np.ndarray) -> np.ndarray:
    """The place of the kind that a row is most like; beyond the last if it is not like any."""
    most, none = likeness.argmax(axis=1), likeness.shape[1]
    return np.asarray(np.where(likeness.max(axis=1) > LIKE, most, none))


@compiled(fastmath=_NO_NAN)
def _nearest_without(distances: Any, starts: Any, cells: Any, out: Any) -> None:
    """The least distance to rows of each kind without each fold.  -> (n, n_folds, n_kinds)"""
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
