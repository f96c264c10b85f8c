"""The names of alarms compared with the labels of their rows, and their promises."""

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from eqsep.detector.calibration import NO_PROMISE
from eqsep.detector.detector import Detector
from eqsep.detector.holdout import Grouping
from eqsep.detector.model import Model, Verdicts
from eqsep.detector.namer import COVERAGE, KindSets
from eqsep.evaluation.peers import PEERS
from eqsep.evaluation.promises import MeasuredPromise, Share, kept_promise
from eqsep.labels import NORMAL, UNSEEN
from eqsep.progress import steps
from eqsep.tables.reading import Table

_BINS = 10  # of probabilities
_MIN_ROWS_OF_KIND = 4  # rows of a kind: with fewer, it is neither divided nor left out


@dataclass(frozen=True)
class NamedKind:
    """The alarms among the rows of one label, by the names that they get."""

    kind: str
    rows: int  #: With and without an alarm.
    given: dict[str, int]  #: The alarms with each name, most first.

    @property
    def alarms(self) -> int:
        """How many of the rows raise an alarm."""
        return sum(self.given.values())

    @property
    def right(self) -> int:
        """The alarms with the name of the kind."""
        return self.given.get(self.kind, 0)

    @property
    def unseen(self) -> int:
        """The alarms called "unseen"."""
        return self.given.get(UNSEEN, 0)

    @property
    def other(self) -> int:
        """The alarms with the name of another kind."""
        return self.alarms - self.right - self.unseen


@dataclass(frozen=True)
class Reliability:
    """How often names are right, by their probability.

    >>> found = Reliability.of(np.array([0.95, 0.95, 0.55]), np.array([True, True, False]))
    >>> found.points, round(found.error, 3)
    (((0.55, 0.0, 1), (0.95, 1.0, 2)), 0.217)
    """

    #: In 10 equal steps: the number of names, the sum of their probabilities, the right ones.
    bins: list[list[float]]

    @classmethod
    def of(cls, probability: np.ndarray, right: np.ndarray) -> "Reliability":
        """Names with their probabilities, and whether they are right."""
        place = np.minimum((probability * _BINS).astype(int), _BINS - 1)
        weights = (None, probability, right)
        return cls.counted([np.bincount(place, w, minlength=_BINS) for w in weights])

    @classmethod
    def counted(cls, bins: Any) -> "Reliability":
        """From counted bins, such as the sums over several tests."""
        return cls(np.asarray(bins, dtype=float).tolist())

    @property
    def points(self) -> tuple[tuple[float, float, int], ...]:
        """For each step with names: the mean probability, the share of right ones, how many."""
        found = zip(*self.bins, strict=True)
        return tuple((p / n, right / n, int(n)) for n, p, right in found if n)

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance between the two, over names."""
        total = sum(n for _, _, n in self.points)
        return sum(n * abs(p - right) for p, right, n in self.points) / total if total else math.nan


@dataclass(frozen=True)
class SetsFound:
    """Prediction sets of alarms of seen kinds."""

    #: The promised share with their kind in the set, if kinds are as common as in the fit; or None.
    promised: float | None
    covered: Share  #: The share that have it.
    size: float  #: The mean number of kinds in a set.


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names that alarms get, label by label."""

    kinds: tuple[NamedKind, ...]  #: Every label, the normal one too, in alphabetical order.
    normal: str
    seen: tuple[str, ...]  #: The kinds that the detector has learnt.
    rate: float  #: The share of rows of seen kinds that may be called "unseen".
    #: Whether that rate is kept. None if it is not promised, or if rows come in groups: rows of one
    #: group are alike, so counting rows cannot show it.
    promise: MeasuredPromise | None = None
    unit: str = ""  #: What rows come in, if in groups: "group" or "time block".
    #: Of the named alarms of seen kinds, those that a random forest names right; it is grown on the
    #: rows that the detector keeps, and its votes count as much as rows of a kind were learnt. None
    #: if only one kind is seen.
    forest: Share | None = None
    sets: SetsFound | None = None  #: None without alarms of seen kinds.
    reliability: Reliability  #: Of the named alarms of seen kinds.
    threshold: float  #: The score above which a row raises an alarm.
    normal_score: float  #: The median score of normal rows; NaN without any.
    unseen_score: float  #: The same of rows of unseen kinds.

    @property
    def right(self) -> Share:
        """Of the alarms of seen kinds that are named, not "unseen", those with the right name."""
        own = self._of(self.seen)
        named = sum(one.alarms - one.unseen for one in own)
        return Share.counted(sum(one.right for one in own), named)

    @property
    def false(self) -> Share:
        """The normal rows among alarms named as a seen kind; probabilities ignore these."""
        named = {one.kind: one.alarms - one.unseen for one in self.kinds}
        return Share.counted(named.get(self.normal, 0), sum(named.values()))

    @property
    def mistaken(self) -> Share:
        """The rows of unseen kinds among alarms named as a seen kind."""
        others = sum(one.alarms - one.unseen for one in self._of(self._unseen))
        return Share.counted(others, self.false.total)

    @property
    def called_unseen(self) -> Share:
        """Of the rows of seen kinds, those that are called "unseen"."""
        own = self._of(self.seen)
        return Share.counted(sum(one.unseen for one in own), sum(one.rows for one in own))

    @property
    def power(self) -> Share:
        """Of the alarms of unseen kinds, those that are called "unseen"."""
        own = self._of(self._unseen)
        return Share.counted(sum(one.unseen for one in own), sum(one.alarms for one in own))

    @property
    def none_found(self) -> str:
        """How rows of unseen kinds score, where none of them raises an alarm."""
        rows = sum(one.rows for one in self._of(self._unseen))
        return (
            f"none of their {rows:,} rows raises an alarm: their median score is "
            f"{self.unseen_score:.3f}, that of normal rows {self.normal_score:.3f}, and the "
            f"threshold {self.threshold:.3f}"
        )

    @property
    def judged(self) -> str:
        """Whether the promise on "unseen" is kept, or why it cannot be judged."""
        if self.promise is not None:
            return str(self.promise.verdict)
        return f"not judged: rows of one {self.unit} are alike" if self.unit else NO_PROMISE

    @property
    def _unseen(self) -> set[str]:
        return {one.kind for one in self.kinds} - {self.normal, *self.seen}

    def _of(self, names: Collection[str]) -> list[NamedKind]:
        return [one for one in self.kinds if one.kind in names]


def names_on(model: Model, X: Any, kind: np.ndarray, *, normal: str) -> Names:
    """The names that a model gives rows with these labels, and those of a forest."""
    verdicts = model.verdicts(X)
    named = verdicts.alarm & np.isin(kind, model.kinds) & (verdicts.kind != UNSEEN)
    judges, forest = model.namer.judges, None
    if judges is not None and len(judges.sorted_kinds) > 1 and named.any():
        packed = model.plan.encoder.pack(model.plan.encode(X))
        grown = PEERS["random forest"].build(random_state=0)
        grown.fit(judges.examples.rows, judges.examples.kind)
        kinds, n_kept = np.unique(judges.examples.kind, return_counts=True)  # not all, if frequent
        learnt = dict(zip(model.kinds, model.n_learnt[1:].tolist(), strict=True))
        prior = np.array([learnt[one] for one in kinds.tolist()]) / n_kept
        likeliest = kinds[(grown.predict_proba(packed[named]) * prior).argmax(axis=1)]
        forest = Share.of(likeliest == kind[named])
    return names_given(model, kind, verdicts, model.kind_sets(X), normal=normal, forest=forest)


def names_given(
    model: Model,
    kind: np.ndarray,
    verdicts: Verdicts,
    sets: KindSets,
    *,
    normal: str,
    forest: Share | None = None,
) -> Names:
    """The names that verdicts give rows with these labels, and the sets of kinds."""
    kinds, rows = np.unique(kind, return_counts=True)
    given = [Counter(verdicts.kind[verdicts.alarm & (kind == one)].tolist()) for one in kinds]
    each = zip(kinds.tolist(), rows.tolist(), given, strict=True)
    seen = verdicts.alarm & np.isin(kind, model.kinds)
    named = seen & (verdicts.kind != UNSEEN) & ~np.isnan(verdicts.kind_probability)
    right = verdicts.kind[named] == kind[named]
    parts = kind == normal, ~np.isin(kind, [normal, *model.kinds])
    medians = [float(np.median(verdicts.score[of])) if of.any() else math.nan for of in parts]
    names = Names(
        kinds=tuple(NamedKind(name, n, dict(counts.most_common())) for name, n, counts in each),
        normal=normal,
        seen=model.kinds,
        rate=float(model.promise.unseen_rate),
        forest=forest,
        sets=_sets(sets, kind, np.flatnonzero(seen)) if seen.any() else None,
        reliability=Reliability.of(verdicts.kind_probability[named], right),
        threshold=model.threshold,
        normal_score=medians[0],
        unseen_score=medians[1],
    )
    promise, unit = _promise(model, names.called_unseen)
    return replace(names, promise=promise, unit=unit)


def _sets(sets: KindSets, kind: np.ndarray, rows: np.ndarray) -> SetsFound:
    own = [(str(kind[i]), [name for name in sets[i] if name != UNSEEN]) for i in rows.tolist()]
    covered = Share.counted(sum(name in names for name, names in own), len(own))
    promised = None if sets.without_promise else COVERAGE
    return SetsFound(promised, covered, float(np.mean([len(names) for _, names in own])))


def _promise(model: Model, called: Share) -> tuple[MeasuredPromise | None, str]:
    """The promise on "unseen" for rows of seen kinds, or the unit if rows come in groups."""
    judges = model.namer.judges
    if judges is None or not called.total:
        return None, ""
    if len(model.evidence.kinds.groups):
        assert model.plan.holdout.grouping is not None
        return None, model.plan.holdout.grouping.unit
    weight = judges.all_ranks.weight  # rows of a common kind stand for several
    n, rate = int(weight.sum() ** 2 / (weight**2).sum()), float(model.promise.unseen_rate)
    rank = math.floor(rate * (n + 1) + 1e-9)
    kept = kept_promise(called.count, called.total, rate=rate, rank=rank, held_out=n)
    return replace(kept, unit="such row"), ""


@dataclass(frozen=True)
class NamesTried:
    """Names by detectors fitted to half of the rows, on the other half."""

    seen: Names  #: With all kinds in the fit.
    #: With one half of the kinds left out of the fit, and with the other; empty with one.
    left_out: tuple[Names, ...] = ()

    @property
    def power(self) -> dict[tuple[str, ...], Share]:
        """By the kinds that were left out together: of their alarms, those called "unseen"."""
        return {
            tuple(kind for kind in self.seen.seen if kind not in names.seen): names.power
            for names in self.left_out
        }


def try_names(
    detector: Detector, table: Table, kind: np.ndarray, *, normal: str, random_state: Any = 0
) -> NamesTried | None:
    """Names by clones fitted to half of the rows of each kind; None if no kind can be divided.

    One is fitted to all kinds, one without half of them, drawn at random, and one without the
    others, for the power of "unseen". Rows of one group, or else of one block of time, stay
    together.
    """
    rng = np.random.default_rng(random_state)
    groups = table.groups
    unit = np.arange(len(kind)) if groups is None else groups.group
    if groups is not None and groups.columns[0] is None:
        unit = Grouping.of(groups).units(groups, key=0)
    labels = np.where(kind == normal, NORMAL, kind).astype(object)
    first = np.zeros(len(kind), dtype=bool)
    names, counts = np.unique(kind, return_counts=True)
    for name in names[np.argsort(counts, kind="stable")].tolist():
        units = rng.permutation(np.unique(unit[kind == name]))
        first |= np.isin(unit, units[: len(units) // 2]) & (kind == name)
    parts = {name: (first[kind == name].sum(), (~first[kind == name]).sum()) for name in names}
    known = [
        name
        for name, part in parts.items()
        if name != normal and min(part) >= _MIN_ROWS_OF_KIND // 2
    ]
    if not known or min(parts[normal]) < _MIN_ROWS_OF_KIND // 2:
        return None

    def tried(learnt: list[str]) -> Names:
        rows = np.flatnonzero(first & np.isin(kind, [normal, *learnt]))
        test = np.flatnonzero(~first)
        trial = clone(detector).set_params(normal=NORMAL)  # its rows are not all of them
        fitted = trial.fit_quietly(table.take(rows), labels[rows]).model
        return names_on(fitted, table.take(test), labels[test].astype(str), normal=NORMAL)

    drawn, half = rng.permutation(known).tolist(), len(known) // 2
    fits = [known, *([drawn[half:], drawn[:half]] if half else [])]
    found = []
    with steps(len(fits), "fits") as done:
        for learnt in fits:
            found.append(tried([name for name in known if name in learnt]))
            done(1)
    return NamesTried(found[0], tuple(found[1:]))
