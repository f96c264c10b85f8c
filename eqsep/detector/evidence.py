"""Evidence: all that rows teach, the only thing that learning changes. It adds and subtracts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep.arrays import WithoutCaches
from eqsep.detector.config import Config
from eqsep.detector.holdout import NO_GROUPS, n_held_out, row_hashes
from eqsep.detector.plan import Names, Plan
from eqsep.engine.nystroem import Statistics, narrowed, widened
from eqsep.errors import UserError
from eqsep.labels import RowLabels
from eqsep.progress import reporter
from eqsep.schemas import (
    DICT,
    FLAG,
    KEY,
    NOT_NEGATIVE,
    Kept,
    array_of,
    bounded,
    check_parts,
    damaged,
    kept,
)
from eqsep.tables.encodings import FAR
from eqsep.tables.reading import Table

_FEWEST_KIND_ROWS, _MOST_VALUES = 200, 200_000  # of a kind that are kept where rows are wide


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutRows(Kept, WithoutCaches):
    """Encoded rows held out of the fit.

    Attributes
    ----------
    rows : ndarray of float32 of shape (n, n_encoded)
    kind : ndarray of str of shape (n,)
        Of labelled anomalies; "" for normal rows, which calibrate.
    hashes : ndarray of uint64 of shape (n,)
        By which they are held out: of the row, or of its group.
    in_groups : bool
        Whether whole groups are.
    weight : ndarray of shape (n,)
        What each would count if it were learnt.
    names : mapping of str to ndarray
        For columns with provisional names, the name in each row.
    """

    rows: np.ndarray
    kind: np.ndarray
    hashes: np.ndarray
    in_groups: bool
    weight: np.ndarray
    names: Mapping[str, np.ndarray] = field(default_factory=dict)

    SCHEMAS: ClassVar = {
        "rows": bounded(None, None, dtype="float32"),
        "kind": array_of(None, kinds="U"),
        "hashes": array_of(None, kinds="u"),
        "weight": bounded(None, dtype="float64"),
        "in_groups": FLAG,
    }

    @cached_property
    def is_normal(self) -> np.ndarray:
        """Which of them are normal rows."""
        return np.asarray(self.kind == "")

    @cached_property
    def normal(self) -> np.ndarray:
        """The normal rows."""
        rows: np.ndarray = self.rows[self.is_normal]
        return rows

    @cached_property
    def anomalies(self) -> np.ndarray:
        """The labelled anomalies."""
        rows: np.ndarray = self.rows[~self.is_normal]
        return rows

    @property
    def groups(self) -> np.ndarray:
        """The group of each normal row, as a hash; empty where rows are held out one by one."""
        return self.hashes[self.is_normal] if self.in_groups else NO_GROUPS

    def take(self, places: np.ndarray) -> "HeldOutRows":
        """The subset at these places."""
        parts: dict[str, Any] = {name: getattr(self, name)[places] for name in _HELD_ARRAYS}
        names = {column: names[places] for column, names in self.names.items()}
        return replace(self, **parts, names=names)

    def __add__(self, other: "HeldOutRows") -> "HeldOutRows":
        def joined(one: Any, two: Any) -> np.ndarray:
            return np.concatenate([one, two])

        names = {c: joined(self.names[c], other.names[c]) for c in self.names if c in other.names}
        parts: dict[str, Any] = {
            n: joined(getattr(self, n), getattr(other, n)) for n in _HELD_ARRAYS
        }
        return replace(self, **parts, names=names)

    def __sub__(self, gone: "HeldOutRows") -> "HeldOutRows":
        """Those that stay when some go; refused where one that is to go is not there."""
        own, others = (
            _contents(one.rows, one.is_normal, *[one.hashes] * one.in_groups)
            for one in (self, gone)
        )
        kept, is_lacking = _remaining(own, others)
        if is_lacking:
            raise UserError(
                "Cannot forget a row that was not learnt: one that would be held out is not among "
                "those that are. Pass rows and labels as they were learnt."
            )
        return self.take(kept)

    def sorted(self, *, key: int) -> "HeldOutRows":
        """The same in a random order that depends on the rows alone, normal ones first."""
        first = self.take(np.argsort(self.hashes, kind="stable")) if self.in_groups else self
        order = []
        for part in (np.flatnonzero(first.is_normal), np.flatnonzero(~first.is_normal)):
            hashes = row_hashes(first.rows[part], key=key)
            order.append(part[np.argsort(hashes, kind="stable")])
        return first.take(np.concatenate(order))

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        """The rows of these parts."""
        made = super().from_state(state, **others)
        if len({len(state[name]) for name in _HELD_ARRAYS}) != 1:
            damaged("its held-out rows have not a kind, a hash and a weight each")
        return made


_HELD_ARRAYS = ("rows", "kind", "hashes", "weight")


@dataclass(frozen=True, eq=False, kw_only=True)
class KindRows(WithoutCaches):
    """Learnt rows of the seen kinds, by which alarms are named.

    Attributes
    ----------
    rows : ndarray of float32 of shape (n, n_packed)
        Packed, as trees see them.
    kind : ndarray of str of shape (n,)
    groups : ndarray of uint64 of shape (n,)
        A hash of the group of each; empty where rows are held out one by one.
    key : int
        Of the hashes.
    """

    rows: np.ndarray
    kind: np.ndarray
    groups: np.ndarray
    key: int

    @classmethod
    def none(cls, n_columns: int, *, key: int) -> Self:
        """No rows yet."""
        rows = np.empty((0, n_columns), dtype=np.float32)
        return cls(rows=rows, kind=np.empty(0, dtype=str), groups=NO_GROUPS, key=key)

    def __add__(self, other: "KindRows") -> "KindRows":
        if not len(other.kind):
            return self  # with what was made of it
        parts = {n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in _KIND_ARRAYS}
        return KindRows(**parts, key=self.key)

    def __sub__(self, gone: "KindRows") -> "KindRows":
        """Those that stay when some go, as far as they are there."""
        own, others = (
            _contents(one.rows, one.kind, *[one.groups] * bool(len(one.groups)))
            for one in (self, gone)
        )
        return self.take(_remaining(own, others)[0])

    def below(self, bounds: Mapping[str, int]) -> "KindRows":
        """Those with a hash below the bound of their kind; of kinds without a bound all."""
        if not bounds:
            return self
        kept = np.ones(len(self.kind), dtype=bool)
        for name, bound in bounds.items():
            kept &= (self.kind != name) | (self.hashes < np.uint64(bound))
        return self.take(np.flatnonzero(kept))

    def take(self, places: np.ndarray) -> "KindRows":
        """The subset at these places."""
        groups = self.groups[places] if len(self.groups) else self.groups
        return KindRows(rows=self.rows[places], kind=self.kind[places], groups=groups, key=self.key)

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


_KIND_ARRAYS = ("rows", "kind", "groups")


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(WithoutCaches):
    """What rows teach under a plan.

    Attributes
    ----------
    sums : Statistics
        Over the rows that are learnt; the score is solved from them.
    held_out : HeldOutRows
        The rows that calibrate.
    kinds : KindRows
        Some of the learnt rows of the seen kinds, to name alarms by.
    labels : RowLabels
        How labels are read, and the kinds seen so far; no rows.
    n_normal : int
        The normal rows, held out or not.
    learnt_names : mapping of str to set of str
        Which of the plan's provisional names a learnt row has.
    """

    sums: Statistics
    held_out: HeldOutRows
    kinds: KindRows
    labels: RowLabels
    n_normal: int
    learnt_names: Names = field(default_factory=dict)

    def __add__(self, other: "Evidence") -> "Evidence":
        labels = self.labels.joined(other.labels)
        n, columns = 1 + len(labels.kinds), _columns(other.labels, labels)
        names = {
            column: self.learnt_names.get(column, frozenset()) | found
            for column, found in other.learnt_names.items()
        }
        return Evidence(
            sums=widened(self.sums, n) + widened(other.sums, n, columns=columns),
            held_out=self.held_out + other.held_out,
            kinds=self.kinds + other.kinds,
            labels=labels,
            n_normal=self.n_normal + other.n_normal,
            learnt_names={**self.learnt_names, **names},
        )

    def __sub__(self, other: "Evidence") -> "Evidence":
        """Without rows that were learnt; a kind of which no row is left is not a seen one."""
        self._check_had(other)
        n, columns = 1 + len(self.labels.kinds), _columns(other.labels, self.labels)
        left = self.sums - widened(other.sums, n, columns=columns)
        kept = [0, *(1 + i for i, weight in enumerate(left.weight[1:]) if weight > 1e-9)]
        return Evidence(
            sums=narrowed(left, kept),
            held_out=self.held_out - other.held_out,
            kinds=self.kinds - other.kinds,
            labels=replace(self.labels, kinds=tuple(self.labels.kinds[i - 1] for i in kept[1:])),
            n_normal=max(self.n_normal - other.n_normal, 0),
            learnt_names=self.learnt_names,
        )

    def _check_had(self, other: "Evidence") -> None:
        """Refuse to forget more rows than were learnt."""
        labels = self.labels.joined(other.labels)
        n = 1 + len(labels.kinds)
        learnt = widened(self.sums, n).weight
        gone = widened(other.sums, n, columns=_columns(other.labels, labels)).weight
        if (gone <= learnt * (1 + 1e-9) + 1e-9).all():
            return
        names = ("normal", *labels.kinds)
        given, had = (
            ", ".join(f"{w:g} {name}" for w, name in zip(weights, names, strict=True))
            for weights in (gone, learnt)
        )
        raise UserError(
            f"Cannot forget more than was learnt: {given} rows (that do not calibrate) were given, "
            f"{had} were learnt. Pass rows and labels as they were learnt."
        )

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        return {
            "sums": self.sums,
            "held_out": self.held_out,
            "kinds": {name: getattr(self.kinds, name) for name in (*_KIND_ARRAYS, "key")},
            "labels": self.labels,
            "n_normal": float(self.n_normal),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], *, plan: Plan) -> Self:
        """The evidence of these parts, under a plan."""
        check_parts(state, _EVIDENCE, "Evidence")
        check_parts(state["kinds"], _KINDS, "KindRows")
        evidence = cls(
            sums=state["sums"],
            held_out=state["held_out"],
            kinds=KindRows(**state["kinds"]),
            labels=state["labels"],
            n_normal=int(state["n_normal"]),
        )
        evidence._check(plan)
        return evidence

    def _check(self, plan: Plan) -> None:
        """Refuse parts of a file that do not fit the plan."""
        terms, n = plan.terms, 1 + len(self.labels.kinds)
        if self.sums.moment.shape != (len(terms.landmarks), n):
            damaged("its sums are not those of its landmarks and kinds")
        if terms.likeness_weight and self.sums.anomalous is None:
            damaged("the sums of its anomalous rows are not there")
        n_leaves = 0 if terms.trees is None else terms.trees.n_leaves
        if (0 if self.sums.leaves is None else len(self.sums.leaves)) != n_leaves:
            damaged("the leaves of its trees have not one sum each")
        held, kinds, in_groups = self.held_out, self.kinds, plan.holdout.grouping is not None
        if held.rows.shape[1] != terms.landmarks.shape[1] or held.hashes.dtype != np.uint64:
            damaged("its held-out rows have not the columns of its table")
        if held.in_groups != in_groups or (
            len(kinds.rows) and in_groups != bool(len(kinds.groups))
        ):
            damaged("its rows have groups, or lack them")
        if len(kinds.kind) != len(kinds.rows) or len(kinds.groups) not in (0, len(kinds.rows)):
            damaged("the rows that it names alarms by have not a kind each, or not a group")
        if kinds.groups.dtype != np.uint64 or kinds.key != plan.holdout.key:
            damaged("the rows that it names alarms by are hashed by another key")
        if kinds.rows.shape[1] != len(terms.pack.first):
            damaged("the rows that it names alarms by are not of its columns")
        if not set(kinds.kind.tolist()) <= set(self.labels.kinds):
            damaged("the rows that it names alarms by are not of its kinds")
        if len(kinds.rows) and not plan.holdout.keeps_kinds:
            damaged("it has rows to name alarms by, and keeps none")


_EVIDENCE = {
    "sums": kept(Statistics),
    "held_out": kept(HeldOutRows),
    "kinds": DICT,
    "labels": kept(RowLabels),
    "n_normal": NOT_NEGATIVE,
}
_KINDS = {
    "rows": bounded(None, None, dtype="float32"),
    "kind": array_of(None, kinds="U"),
    "groups": array_of(None, kinds="u"),
    "key": KEY,
}


def _columns(labels: RowLabels, others: RowLabels) -> list[int]:
    """The columns of targets, normal first and then the kinds, among those of others."""
    return [0, *(1 + others.kinds.index(kind) for kind in labels.kinds if kind in others.kinds)]


def _contents(*parts: np.ndarray) -> list[tuple[bytes, ...]]:
    """What each row, and all that goes with it, is made of."""
    columns: Iterable[list[bytes]] = (
        [
            one.item().encode() if part.dtype.kind == "U" else one.tobytes()
            for one in np.ascontiguousarray(part)
        ]
        for part in parts
    )
    return list(zip(*columns, strict=True))


def _remaining(
    had: list[tuple[bytes, ...]], gone: list[tuple[bytes, ...]]
) -> tuple[np.ndarray, bool]:
    """The places of what stays, and whether something that is to go is not there."""
    places: dict[tuple[bytes, ...], list[int]] = {}
    for i, row in enumerate(had):
        places.setdefault(row, []).append(i)
    found = [places[row].pop() for row in gone if places.get(row)]
    return np.delete(np.arange(len(had)), found), len(found) < len(gone)


def gather(
    plan: Plan, table: Table, labels: RowLabels, *, judged: bool = False, device: str = "cpu"
) -> Evidence:
    """What the rows of an aligned table teach under a plan.

    A fit in memory, over a stream or on a cluster, and everything learnt later are sums of this.

    Parameters
    ----------
    labels : RowLabels
        As the plan reads them.
    judged : bool, default=False
        Whether rows were judged because they raised an alarm: then none of them is held out.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where kernel values are summed up.

    Examples
    --------
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> detector = Detector(n_landmarks=50, random_state=0).fit(X)
    >>> plan, known = detector.plan_, detector.model_.evidence.labels
    >>> def taught(rows):
    ...     return gather(plan, plan.align(rows), plan.labels.read(None, n_rows=len(rows)))
    >>> both = taught(X[:300]) + taught(X[300:])
    >>> bool(np.allclose(both.sums.gram, detector.model_.evidence.sums.gram))
    True
    """
    rows = plan.encoder.encode(table)
    holdout = plan.holdout.without_any() if judged else plan.holdout
    split = holdout.split(table, labels, encoder=plan.encoder)
    learnt, held = np.flatnonzero(split.learnt), np.flatnonzero(split.held_out)
    reporter("rows")(table.n_rows - len(learnt))  # the sums report the others
    weight = plan.labels.weights(labels)
    weight = weight if table.weight is None else weight * table.weight
    names, code = np.array(("", *labels.kinds)), np.maximum(labels.code, 0)
    return Evidence(
        sums=_sums(plan, rows[learnt], code[learnt], weight[learnt], n=len(names), device=device),
        held_out=HeldOutRows(
            rows=rows[held],
            kind=names[code[held]],
            hashes=split.hashes[held],
            in_groups=plan.holdout.grouping is not None,
            weight=weight[held],
            names={c: _names(table, c)[held] for c in plan.provisional},
        ),
        kinds=_kind_rows(plan, rows[learnt], names, code[learnt], split.hashes[learnt]),
        labels=labels.of_no_row(),
        n_normal=int((labels.code == 0).sum()),
        learnt_names={
            c: plan.provisional[c] & set(_names(table, c)[learnt].tolist())
            for c in plan.provisional
        },
    )


def _sums(
    plan: Plan,
    rows: np.ndarray,
    code: np.ndarray,
    weight: np.ndarray,
    *,
    n: int,
    device: str = "cpu",
) -> Statistics:
    """The sums over rows that are learnt, of `n` classes; rows without a label are of the first."""
    target = np.zeros((len(code), n))
    target[np.arange(len(code)), code] = 1.0
    return plan.terms.sums(rows, target, weight, device=device)


def _kind_rows(
    plan: Plan, rows: np.ndarray, names: np.ndarray, code: np.ndarray, hashes: np.ndarray
) -> KindRows:
    """Those of the anomalies among learnt rows that are kept to name alarms by."""
    holdout = plan.holdout
    if not holdout.keeps_kinds:
        return KindRows.none(len(plan.terms.pack.first), key=holdout.key)
    places = np.flatnonzero(code > 0)
    return KindRows(
        rows=plan.terms.pack(rows[places]),
        kind=names[code[places]],
        groups=NO_GROUPS if holdout.grouping is None else hashes[places],
        key=holdout.key,
    ).below(holdout.kind_bounds)


def _names(table: Table, column: str) -> np.ndarray:
    """The name of each row in a column."""
    found = next(c for c in table.columns if c.name == column)
    names, rows = found.names()
    own: np.ndarray = np.array(names, dtype=object)[rows]
    return own


# Bounds: a first fit holds out, and keeps of each kind, no more rows than it takes. Which rows
# these are is all the same as if the bounds had been so from the start.


def thin(
    plan: Plan, evidence: Evidence, *, config: Config, slack: float = 1.0
) -> tuple[Plan, Evidence]:
    """The same with fewer rows to name alarms by, where there are `slack` times too many."""
    kept, holdout = evidence.kinds, plan.holdout
    limit = n_kind_rows(kept.rows.shape[1], config=config)
    names, counts = np.unique(kept.kind, return_counts=True)
    large = names[counts > slack * limit]
    if not len(large):
        return plan, evidence
    lower = {k: int(np.sort(kept.hashes[kept.kind == k])[limit]) for k in large.tolist()}
    holdout = replace(holdout, kind_bounds={**holdout.kind_bounds, **lower})
    return replace(plan, holdout=holdout), replace(evidence, kinds=kept.below(lower))


def n_kind_rows(n_columns: int, *, config: Config) -> int:
    """How many rows of a kind are kept at most: fewer where they are wide."""
    wide = max(_FEWEST_KIND_ROWS, _MOST_VALUES // max(n_columns, 1))
    return min(config.max_kind_rows, wide)


def bound(plan: Plan, evidence: Evidence, *, config: Config) -> tuple[Plan, Evidence]:
    """Lower bounds where far more rows are held out than are ever needed."""
    plan, evidence = thin(plan, evidence, config=config, slack=2.0)
    if plan.holdout.grouping is not None:
        return plan, evidence  # of large groups some rows calibrate
    limits = ((config.max_held_out, False), (config.max_held_out_anomalies, True))
    for most, anomalous in limits:
        if (evidence.held_out.is_normal != anomalous).sum() > 2 * most:
            plan, evidence = _hold_out_at_most(plan, evidence, most=most, anomalous=anomalous)
    return plan, evidence


def settle(plan: Plan, evidence: Evidence, *, config: Config) -> tuple[Plan, Evidence]:
    """The plan that all rows together ask for, as a fit in memory would have chosen it.

    Provisional names that none but held-out rows have become new ones, so that held-out rows are
    read as new rows will be. No learnt row has such a name, and the sums stay what they are.
    """
    plan, evidence = thin(plan, evidence, config=config)
    if plan.holdout.grouping is None:
        doubted = plan.holdout.anomaly_bound > 0
        most = n_held_out(evidence.n_normal, config=config, doubted=doubted)
        plan, evidence = _hold_out_at_most(plan, evidence, most=most)
    if not plan.provisional:
        return plan, evidence
    new = {
        c: names - evidence.learnt_names.get(c, frozenset())
        for c, names in plan.provisional.items()
    }
    rare = {
        c: [name for name in plan.encoder.name_columns[c].rare if name not in names]
        for c, names in new.items()
    }
    rows = evidence.held_out.rows.copy()
    for column, names in new.items():
        is_new = np.isin(evidence.held_out.names[column], list(names))
        _make_new(plan, rows, column, is_new)
    held = replace(evidence.held_out, rows=rows, names={})
    plan = replace(plan, encoder=plan.encoder.with_rare_names(rare), provisional={})
    return plan, replace(evidence, held_out=held, learnt_names={})


def _make_new(plan: Plan, rows: np.ndarray, column: str, is_new: np.ndarray) -> None:
    """Encode names that were rare as new ones, in place."""
    encoder = plan.encoder
    j, learnt = encoder.column_names.index(column), encoder.name_columns[column]
    own = np.flatnonzero(encoder.source == j)  # every output of a name counts
    rare, new = own[len(learnt.frequent)], own[-1]
    rows[is_new, rare] = 0.0
    rows[is_new, new] = FAR * learnt.weights[-1]


def _hold_out_at_most(
    plan: Plan, evidence: Evidence, *, most: int, anomalous: bool = False
) -> tuple[Plan, Evidence]:
    """A lower bound, under which at most so many rows, normal or `anomalous`, are held out.

    The others are learnt. Equal rows of different pieces go together; where that would leave less
    than half, more rows stay held out.
    """
    held = evidence.held_out
    concerned = held.is_normal != anomalous
    hashes = np.sort(held.hashes[concerned])
    if len(hashes) <= most:
        return plan, evidence
    lower = int(hashes[most])
    if 2 * (hashes < np.uint64(lower)).sum() < most:
        lower += 1
    rule = plan.holdout
    rule = replace(rule, anomaly_bound=lower) if anomalous else replace(rule, bound=lower)
    plan = replace(plan, holdout=rule)
    leaves = concerned & (held.hashes >= np.uint64(lower))
    moved = held.take(np.flatnonzero(leaves))
    kinds = ("", *evidence.labels.kinds)
    code = np.array([kinds.index(kind) for kind in moved.kind.tolist()], dtype=int)
    more = Evidence(
        sums=_sums(plan, moved.rows, code, moved.weight, n=len(kinds)),
        held_out=moved.take(np.arange(0)),
        kinds=_kind_rows(plan, moved.rows, np.array(kinds), code, moved.hashes),
        labels=evidence.labels,
        n_normal=0,
        learnt_names={
            c: plan.provisional[c] & set(names.tolist()) for c, names in moved.names.items()
        },
    )
    return plan, replace(evidence, held_out=held.take(np.flatnonzero(~leaves))) + more
