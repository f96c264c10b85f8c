"""Evidence: what rows teach, and all that learning changes. It can be added and subtracted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.arrays import WithoutCaches
from eqsep.detector.config import Config
from eqsep.detector.holdout import NO_GROUPS, n_kind_rows, row_hashes
from eqsep.detector.plan import Plan
from eqsep.detector.terms.term import LearntSums, RowsToSum, Sums
from eqsep.engine.backends import NUMPY, Backend
from eqsep.engine.nystroem import row_keys
from eqsep.errors import UserError
from eqsep.labels import RowLabels
from eqsep.progress import reporter
from eqsep.tables.reading import Table


@dataclass(frozen=True, eq=False, kw_only=True)
class _Rows(schemas.Kept, WithoutCaches):
    """Rows, each with its kind and more; an array that is not needed is empty."""

    rows: np.ndarray  # float32
    kind: np.ndarray

    ARRAYS: ClassVar[tuple[str, ...]]  # with an item for each row

    def take(self, places: np.ndarray) -> Self:
        """The subset at these places."""
        own = {name: getattr(self, name) for name in self.ARRAYS}
        return replace(self, **{name: a[places] if len(a) else a for name, a in own.items()})

    def renamed(self, old: str, new: str) -> Self:
        """The same rows with another name for a kind."""
        return replace(self, kind=np.where(self.kind == old, new, self.kind))

    def __add__(self, other: Self) -> Self:
        if not len(other.kind):
            return self  # with what it has cached
        pairs = {name: [getattr(self, name), getattr(other, name)] for name in self.ARRAYS}
        return replace(self, **{name: np.concatenate(pair) for name, pair in pairs.items()})


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutRows(_Rows):
    """Encoded rows held out of the fit: normal ones, with the kind "", and some anomalies."""

    hashes: np.ndarray  # uint64, by which rows are held out: of the row, or of its group
    in_groups: bool  # whether whole groups are held out
    weight: np.ndarray  # what each row would count if it were learnt

    ARRAYS: ClassVar = ("rows", "kind", "hashes", "weight")
    SCHEMAS: ClassVar = {
        "rows": schemas.bounded(None, None, dtype="float32"),
        "kind": schemas.array_of(None, kinds="U"),
        "hashes": schemas.array_of(None, kinds="u"),
        "weight": schemas.bounded(None, dtype="float64"),
        "in_groups": schemas.FLAG,
    }

    @cached_property
    def is_normal(self) -> np.ndarray:
        """Which of them are normal rows."""
        return np.asarray(self.kind == "")

    @cached_property
    def normal(self) -> np.ndarray:
        """The normal rows."""
        return np.asarray(self.rows[self.is_normal])

    @cached_property
    def anomalies(self) -> np.ndarray:
        """The labelled anomalies."""
        return np.asarray(self.rows[~self.is_normal])

    @property
    def groups(self) -> np.ndarray:
        """The group of each normal row, as a hash; empty if rows are held out one by one."""
        return self.hashes[self.is_normal] if self.in_groups else NO_GROUPS

    def __sub__(self, gone: "HeldOutRows") -> "HeldOutRows":
        """The rows left without `gone`; refused if one of these was not held out."""
        parts = [(one.rows, one.is_normal, *[one.hashes] * one.in_groups) for one in (self, gone)]
        left, some_missing = _remaining(*parts)
        if some_missing:
            raise UserError(
                "Cannot forget a row that was not learnt: it belongs to the held-out rows, and is "
                "not among them. Pass rows and labels as they were learnt."
            )
        return self.take(left)

    def fewest(self, n_normal: int, n_anomalies: int) -> "HeldOutRows":
        """At most so many of the rows, those with the lowest hashes."""
        stay = np.ones(len(self.kind), dtype=bool)
        for part, n in ((self.is_normal, n_normal), (~self.is_normal, n_anomalies)):
            if part.sum() > n:
                stay[part] = self.hashes[part] < np.sort(self.hashes[part])[n]
        return self if stay.all() else self.take(np.flatnonzero(stay))

    def sorted(self, *, key: int) -> "HeldOutRows":
        """The same rows in a random order that depends on them alone, normal ones first."""
        first = self.take(np.argsort(self.hashes, kind="stable")) if self.in_groups else self
        order = []
        for part in (np.flatnonzero(first.is_normal), np.flatnonzero(~first.is_normal)):
            order.append(part[np.argsort(row_hashes(first.rows[part], key=key), kind="stable")])
        return first.take(np.concatenate(order))

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        made = super().from_state(state, **others)
        if len({len(state[name]) for name in cls.ARRAYS}) != 1:
            schemas.damaged("its held-out rows do not each have a kind, a hash and a weight")
        return made


@dataclass(frozen=True, eq=False, kw_only=True)
class KindRows(_Rows):
    """Learnt rows of the seen kinds, packed as trees see them, to name alarms."""

    groups: np.ndarray  # uint64, a hash of the group of each row; empty without groups
    key: int  # of the hashes

    ARRAYS: ClassVar = ("rows", "kind", "groups")
    SCHEMAS: ClassVar = {
        "rows": schemas.bounded(None, None, dtype="float32"),
        "kind": schemas.array_of(None, kinds="U"),
        "groups": schemas.array_of(None, kinds="u"),
        "key": schemas.KEY,
    }

    def __sub__(self, gone: "KindRows") -> "KindRows":
        """The rows left without `gone`, which may include rows that are not kept."""
        parts = [
            (one.rows, one.kind, *[one.groups] * bool(len(one.groups))) for one in (self, gone)
        ]
        return self.take(_remaining(*parts)[0])

    def below(self, bounds: Mapping[str, int]) -> "KindRows":
        """The rows with a hash below the bound of their kind; all rows of kinds without a bound."""
        if not bounds:
            return self
        is_below = np.ones(len(self.kind), dtype=bool)
        for kind, bound in bounds.items():
            is_below &= (self.kind != kind) | (self.hashes < np.uint64(bound))
        return self.take(np.flatnonzero(is_below))

    @cached_property
    def hashes(self) -> np.ndarray:
        """A hash of each row, which depends only on the row and equal rows of its kind."""
        out = np.empty(len(self.rows), dtype=np.uint64)
        for name in np.unique(self.kind):
            places = self.kind == name
            out[places] = row_hashes(self.rows[places], key=self.key)
        return out

    def is_same(self, other: "KindRows") -> bool:
        """Whether both are the same rows in the same order."""
        arrays = ((getattr(one, name) for name in self.ARRAYS) for one in (self, other))
        return self is other or (self.key == other.key and all(map(np.array_equal, *arrays)))

    def sorted(self) -> "KindRows":
        """The same rows in an order that depends on them alone."""
        return self.take(np.lexsort((self.hashes, self.kind)))

    def n_units(self, kind: str) -> int:
        """How many rows, or groups of rows, there are of a kind."""
        return self._units.get(kind, 0)

    @cached_property
    def _units(self) -> dict[str, int]:
        own = self.groups if len(self.groups) else np.arange(len(self.kind))
        distinct = set(zip(self.kind.tolist(), own.tolist(), strict=True))
        return Counter(kind for kind, _ in distinct)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(WithoutCaches):
    """What rows teach under a plan."""

    sums: tuple[Sums, ...]  # over learnt rows, for each term of the plan
    weight: np.ndarray  # of the learnt normal rows, then of those of each kind
    # By class too: the sum of the hashes of these rows, modulo 2^64, which no order or rounding
    # changes.
    learnt: np.ndarray
    held_out: HeldOutRows  # rows that calibrate
    kinds: KindRows  # some learnt rows of the seen kinds
    labels: RowLabels  # the labels and kinds seen so far; `plan.labels` is how they are read
    n_normal: int  # normal rows, held out or not

    SCHEMAS: ClassVar = {
        "sums": schemas.items(schemas.DICT),
        "weight": schemas.bounded("classes", dtype="float64"),
        "learnt": schemas.array_of("classes", kinds="u"),
        "held_out": schemas.kept(HeldOutRows),
        "kinds": schemas.DICT,
        "labels": schemas.kept(RowLabels),
        "n_normal": schemas.NOT_NEGATIVE,
    }

    def __add__(self, other: "Evidence") -> "Evidence":
        labels = self.labels.joined(other.labels)
        ours, weight, hashes = self._sums_of(labels)
        others, more, more_hashes = other._sums_of(labels)
        return Evidence(
            sums=tuple(one + another for one, another in zip(ours, others, strict=True)),
            weight=weight + more,
            learnt=hashes + more_hashes,
            held_out=self.held_out + other.held_out,
            kinds=self.kinds + other.kinds,
            labels=labels,
            n_normal=self.n_normal + other.n_normal,
        )

    def __sub__(self, other: "Evidence") -> "Evidence":
        """The evidence without some learnt rows; a kind left without rows is dropped."""
        labels = self.labels.joined(other.labels)
        learnt, gone = self._sums_of(labels)[1], other._sums_of(labels)[1]
        if (gone > learnt * (1 + 1e-9) + 1e-9).any():
            names = ("normal", *labels.kinds)
            given, had = (
                ", ".join(f"{w:g} {name}" for w, name in zip(weights, names, strict=True))
                for weights in (gone, learnt)
            )
            raise UserError(
                f"Cannot forget more than was learnt: got {given} rows (without held-out ones), "
                f"and {had} were learnt. Pass rows and labels as they were learnt, and rows that "
                f"occur several times in the same pieces."
            )
        others, less, hashes = other._sums_of(self.labels)
        left = np.maximum(0.0, self.weight - less)
        stay = [0, *(1 + i for i, weight in enumerate(left[1:]) if weight > 1e-9)]
        pairs = zip(self.sums, others, strict=True)
        hashes = self.learnt - hashes
        learnt_now = hashes[stay]
        learnt_now[:1] += np.delete(hashes, stay).sum()  # not 0 if other rows were forgotten
        return Evidence(
            sums=tuple(
                (one - gone).with_classes(lambda sums: sums[..., stay]) for one, gone in pairs
            ),
            weight=left[stay],
            learnt=learnt_now,
            held_out=self.held_out - other.held_out,
            kinds=self.kinds - other.kinds,
            labels=replace(self.labels, kinds=tuple(self.labels.kinds[i - 1] for i in stay[1:])),
            n_normal=max(self.n_normal - other.n_normal, 0),
        )

    def _sums_of(self, labels: RowLabels) -> tuple[tuple[Sums, ...], np.ndarray, np.ndarray]:
        """The sums, weights and hashes by the classes of these labels: normal, then the kinds."""
        places = [1 + labels.kinds.index(k) for k in self.labels.kinds if k in labels.kinds]
        return self._moved([0, *places], n=1 + len(labels.kinds))

    def _moved(
        self, places: list[int], *, n: int
    ) -> tuple[tuple[Sums, ...], np.ndarray, np.ndarray]:
        """The sums, weights and hashes, each class added to the one that `places` names, of `n`."""

        def moved(sums: np.ndarray) -> np.ndarray:
            out = np.zeros((*sums.shape[:-1], n), dtype=sums.dtype)
            for before, after in enumerate(places):
                out[..., after] += sums[..., before]
            return out

        sums = tuple(one.with_classes(moved) for one in self.sums)
        return sums, moved(self.weight), moved(self.learnt)

    def learnt_sums(self, plan: Plan, config: Config) -> LearntSums:
        """What the terms of the plan are solved from."""
        return LearntSums(
            of_terms={term.name: one for term, one in zip(plan.terms, self.sums, strict=True)},
            weight=self.weight,
            kinds=self.labels.kinds,
            config=config,
            doubted=plan.labels.doubted,
        )

    def renamed(self, old: str, new: str) -> "Evidence":
        """The same with a kind renamed; if the new name exists, both kinds become one."""
        now = [new if kind == old else kind for kind in self.labels.kinds]
        kinds = tuple(dict.fromkeys(now))
        reader = None if self.labels.reader is None else self.labels.reader.renamed(old, new)
        places = [0, *(1 + kinds.index(kind) for kind in now)]
        sums, weight, learnt = self._moved(places, n=1 + len(kinds))
        return replace(
            self,
            sums=sums,
            weight=weight,
            learnt=learnt,
            held_out=self.held_out.renamed(old, new),
            kinds=self.kinds.renamed(old, new),
            labels=replace(self.labels, kinds=kinds, reader=reader),
        )

    def trimmed(self, config: Config, *, slack: float = 1.0) -> "Evidence":
        """The same without rows that calibrate, or name alarms, beyond those that are needed.

        Where there are over `slack` times as many, those with the lowest hashes stay.
        """
        held, kinds = self.held_out, self.kinds
        most = config.max_held_out, config.max_held_out_anomalies
        n_normal = int(held.is_normal.sum())
        is_large = (slack * most[0] < n_normal, slack * most[1] < len(held.kind) - n_normal)
        if not held.in_groups and any(is_large):
            held = held.fewest(*most)
        n_each = n_kind_rows(kinds.rows.shape[1], config=config)
        names, counts = np.unique(kinds.kind, return_counts=True)
        large = names[counts > slack * n_each].tolist()
        bounds = {k: int(np.sort(kinds.hashes[kinds.kind == k])[n_each]) for k in large}
        return replace(self, held_out=held, kinds=kinds.below(bounds))

    @property
    def is_empty(self) -> bool:
        """Whether no row is left, learnt or held out."""
        return not len(self.held_out.rows) and bool(self.weight.max() <= 1e-9)

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        own = {name: getattr(self, name) for name in self.SCHEMAS}
        sums = [one.state() for one in self.sums]
        return own | {"sums": sums, "kinds": self.kinds.state(), "n_normal": float(self.n_normal)}

    @classmethod
    def from_state(cls, state: dict[str, Any], *, plan: Plan) -> Self:
        """The evidence of these parts, under a plan."""
        schemas.check_parts(state, cls.SCHEMAS, "Evidence")
        kinds, n_normal = KindRows.from_state(state["kinds"]), int(state["n_normal"])
        sums = tuple(map(Sums.from_state, state["sums"]))
        evidence = cls(**state | {"sums": sums, "kinds": kinds, "n_normal": n_normal})
        held, holdout, landmarks = evidence.held_out, plan.holdout, plan.kernel.landmarks
        nothing = RowsToSum(
            rows=landmarks[:0],
            target=np.empty((0, 1 + len(evidence.labels.kinds))),
            weight=np.empty(0),
            isolated=np.empty(0, dtype=bool),
            backend=NUMPY,
        )
        n_classes = nothing.target.shape[1]
        if len(sums) != len(plan.terms) or len(evidence.weight) != n_classes:
            schemas.damaged("its sums do not match its terms and kinds")
        for term, one in zip(plan.terms, sums, strict=True):
            expected, found = term.accumulate(nothing).shapes(), one.shapes()
            if found != expected:
                what = f"of its term {term.name!r} it has sums of shapes {found}"
                schemas.damaged(f"{what}, and {expected} are expected")
        if evidence.learnt.dtype != np.uint64:
            schemas.damaged("the hashes of its rows do not have 64 bits")
        if (evidence.weight < 0).any():
            schemas.damaged("a weight of its rows is below 0")
        if held.rows.shape[1] != landmarks.shape[1] or held.hashes.dtype != np.uint64:
            schemas.damaged("its held-out rows do not have the columns of its table")
        in_groups = holdout.grouping is not None
        kinds_in_groups = bool(len(kinds.groups)) if len(kinds.rows) else in_groups
        if not held.in_groups == kinds_in_groups == in_groups:
            schemas.damaged("only some of its rows have groups")
        if (
            len(kinds.kind) != len(kinds.rows)
            or len(kinds.groups) not in (0, len(kinds.rows))
            or kinds.groups.dtype != np.uint64
            or kinds.key != holdout.key
            or kinds.rows.shape[1] != len(plan.encoder.pack.first)
            or not set(kinds.kind.tolist()) <= set(evidence.labels.kinds)
        ):
            schemas.damaged("the rows that name its alarms do not match its columns and kinds")
        return evidence


def _sums_of_hashes(
    rows: np.ndarray, code: np.ndarray, weight: np.ndarray, *, n_classes: int, key: int
) -> np.ndarray:
    """The sum modulo 2^64, for each class, of a hash of each row and its weight."""
    hashes = row_keys(rows, rng=np.random.RandomState(key))
    halves = hashes >> np.uint64(32), hashes & np.uint64(2**32 - 1)
    described = np.column_stack([*halves, weight]).astype(float)
    sums = np.zeros(n_classes, dtype=np.uint64)
    np.add.at(sums, code, row_keys(described, rng=np.random.RandomState(key)))
    return sums


def _remaining(
    had: tuple[np.ndarray, ...], gone: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, bool]:
    """The places of the rows that stay, and whether a row that should go is missing."""

    def rows(parts: tuple[np.ndarray, ...]) -> list[tuple[Any, ...]]:
        texts = (part.tolist() if part.ndim == 1 else map(bytes, part) for part in parts)
        return list(zip(*texts, strict=True))

    places: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(rows(had)):
        places.setdefault(row, []).append(i)
    go = rows(gone)
    found = [places[row].pop() for row in go if places.get(row)]
    return np.delete(np.arange(len(had[0])), found), len(found) < len(go)


def gather(
    plan: Plan,
    table: Table,
    labels: RowLabels,
    *,
    judged: bool = False,
    backend: Backend = NUMPY,
) -> Evidence:
    """The evidence in an aligned table.

    Rows `judged` because of an alarm are never held out, nor isolated: somebody has looked at them.
    """
    rows = plan.encoder.encode(table)
    holdout = replace(plan.holdout, bound=0, anomaly_bound=0) if judged else plan.holdout
    split = holdout.split(table, labels, encoder=plan.encoder)
    learnt, held = np.flatnonzero(split.learnt), np.flatnonzero(split.held_out)
    reporter("rows")(table.n_rows - len(learnt))  # the sums report the others
    weight = plan.labels.weights(labels)
    weight = weight if table.weight is None else weight * table.weight
    kinds, code = np.array(("", *labels.kinds)), np.maximum(labels.code, 0)
    held_out = HeldOutRows(
        rows=rows[held],
        kind=kinds[code[held]],
        hashes=split.hashes[held],
        in_groups=plan.holdout.grouping is not None,
        weight=weight[held],
    )
    isolated = np.zeros(len(learnt), dtype=bool)
    if not judged:
        isolated = plan.isolated(rows[learnt], labels.take(learnt))
    rows, code, weight, hashes = (p[learnt] for p in (rows, code, weight, split.hashes))
    target = np.zeros((len(code), len(kinds)))
    target[np.arange(len(code)), code] = 1.0
    kept = np.flatnonzero(code > 0)
    kind_rows = KindRows(
        rows=plan.encoder.pack(rows[kept]),
        kind=kinds[code[kept]],
        groups=NO_GROUPS if holdout.grouping is None else hashes[kept],
        key=holdout.key,
    )
    to_sum = RowsToSum(rows=rows, target=target, weight=weight, isolated=isolated, backend=backend)
    return Evidence(
        sums=tuple(term.accumulate(to_sum) for term in plan.terms),
        weight=weight @ target,
        held_out=held_out,
        kinds=kind_rows.below(holdout.kind_bounds),
        labels=labels.of_no_row(),
        n_normal=int((labels.code == 0).sum()),
        learnt=_sums_of_hashes(rows, code, weight, n_classes=len(kinds), key=holdout.key % 2**32),
    )


@dataclass(frozen=True, kw_only=True)
class Gather:
    """Gathers what batches of rows teach under a plan; it can be sent to other processes."""

    plan: Plan
    known: RowLabels  # how labels are read
    backend: Backend = NUMPY

    def __call__(self, table: Table, y: Any, *, known: RowLabels | None = None) -> Evidence:
        """What a batch teaches; `known` are the labels of more rows than the plan has seen."""
        table = self.plan.align(table)
        labels = self.plan.labels.read(y, n_rows=table.n_rows, known=known or self.known)
        return gather(self.plan, table, labels, backend=self.backend)
