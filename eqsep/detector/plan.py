"""Plan: what the first rows decide. It never changes, so that models can be merged."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.arrays import WithoutCaches, same_parts
from eqsep.detector.config import Config
from eqsep.detector.holdout import STEP, HoldOut, Population, n_held_out
from eqsep.detector.isolation import KEPT, LEFT_OUT, WEIGHED, Isolation
from eqsep.detector.runs import Runs, Windows
from eqsep.detector.terms import TERMS
from eqsep.detector.terms.kernel import KernelTerm
from eqsep.detector.terms.term import FirstRows, Term
from eqsep.errors import UserError, counted
from eqsep.labels import UNLABELLED, RowLabels, read_row_labels, with_counts
from eqsep.tables.encoder import Encoder
from eqsep.tables.encodings import Learnt
from eqsep.tables.reading import Table, by_number, read_table, row_parts, with_groups
from eqsep.tables.tensors import READ_AT_ONCE, TensorEncoding, encoded_parts

_MIN_ROWS_TO_ISOLATE = 40  # fewer rows say too little of what is isolated


@dataclass(frozen=True, kw_only=True)
class LabelScheme(schemas.Kept):
    """How labels, and missing ones, are read; a doubted row may be an anomaly nobody noticed."""

    normal: Any  # the label of normal rows; None: 0, False or "normal", whichever occurs
    unlabelled_is_normal: bool  # whether rows without a label count as normal, and calibrate
    doubted: bool  # whether rows learnt as normal may be anomalies
    unlabelled_weight: float  # of a row without a label, where it does not count as normal
    isolation: str  # what becomes of isolated rows without a label: kept, weighed or left out
    isolated_share: float  # of these rows, that are isolated
    isolates_labelled: bool  # whether isolated rows labelled normal are treated alike

    SCHEMAS: ClassVar = {
        "normal": schemas.either(schemas.NONE, schemas.LABEL),
        "unlabelled_is_normal": schemas.FLAG,
        "doubted": schemas.FLAG,
        "unlabelled_weight": schemas.POSITIVE,
        "isolation": schemas.word(KEPT, WEIGHED, LEFT_OUT),
        "isolated_share": schemas.NOT_NEGATIVE,
        "isolates_labelled": schemas.FLAG,
    }

    @classmethod
    def choose(
        cls,
        labels: RowLabels,
        counts: np.ndarray,
        *,
        given: bool,
        normal: Any,
        unlabelled: str,
        rate: float,
        config: Config,
        doubted: bool | None = None,
    ) -> Self:
        """The reading of labels that `counts` rows have; a given plan has settled `doubted`."""
        _check_first_labels(labels, counts, normal=normal, given=given)
        n_normal = int(counts[labels.code == 0].sum())
        enough = n_held_out(n_normal, config=config) + 1 >= max(STEP, 1 / rate)
        alone = enough and bool((labels.code == UNLABELLED).any())
        is_normal = {"auto": not n_normal, "trusted": True, "doubted": not alone}[unlabelled]
        if doubted is None:
            asked = {"auto": is_normal, "trusted": False, "doubted": True}[unlabelled]
            doubted = asked and bool(labels.kinds)
        isolation, share = KEPT, 0.0
        if doubted:
            isolation, share = LEFT_OUT, config.isolated_share
        elif unlabelled == "doubted":
            isolation, share = LEFT_OUT, config.doubted_isolated_share
        elif unlabelled == "auto" and not labels.kinds and not n_normal:
            isolation, share = WEIGHED, config.isolated_share
        return cls(
            normal=normal,
            unlabelled_is_normal=is_normal,
            doubted=doubted,
            unlabelled_weight=1.0 if doubted and not is_normal else float(config.unlabelled_weight),
            isolation=isolation if share else KEPT,
            isolated_share=float(share),
            isolates_labelled=bool(share) and isolation == LEFT_OUT and is_normal,
        )

    @property
    def doubts_calibration(self) -> bool:
        """Whether rows that set the threshold may be anomalies."""
        return (self.doubted or self.isolation != KEPT) and self.unlabelled_is_normal

    @property
    def trust(self) -> str:
        """What `unlabelled` the reading is that of; "auto" where isolated rows are weighed."""
        if self.doubted or self.isolation == LEFT_OUT:
            return "doubted"
        return "auto" if self.isolation == WEIGHED else "trusted"

    def may_be_isolated(self, labels: RowLabels) -> np.ndarray:
        """Which rows nobody has looked at, so that they may be left out as isolated ones."""
        if self.isolation == KEPT:
            return np.zeros(len(labels.code), dtype=bool)
        unseen = labels.is_unlabelled
        return unseen | (labels.code == 0) if self.isolates_labelled else unseen

    def read(self, y: Any, *, n_rows: int, known: RowLabels | None = None) -> RowLabels:
        """The labels of rows; `known` are those of earlier ones."""
        return self.apply(read_row_labels(y, n_rows=n_rows, normal=self.normal, known=known))

    def apply(self, labels: RowLabels) -> RowLabels:
        """The same labels, with missing ones as normal if they count as normal."""
        return labels.trusting_unlabelled() if self.unlabelled_is_normal else labels

    def weights(self, labels: RowLabels) -> np.ndarray:
        """The weight of each row by its label."""
        return np.where(labels.code == UNLABELLED, self.unlabelled_weight, 1.0)


def _check_first_labels(labels: RowLabels, counts: np.ndarray, *, normal: Any, given: bool) -> None:
    """Refuse the labels of a first fit that are more likely a mistake than a choice."""
    if given and labels.reader is None:
        raise UserError(
            "All labels are missing.",
            hint="Pass y=None to learn all rows as normal, or check where the labels were lost.",
            topic="no_label",
        )
    unlabelled = int(counts[labels.code == UNLABELLED].sum())
    labelled = int(counts.sum()) - unlabelled
    if (labels.code == 0).any() or not labelled:
        return
    wanted = "0, False or 'normal'" if normal is None else repr(normal)
    rows = {kind: int(counts[labels.code == i + 1].sum()) for i, kind in enumerate(labels.kinds)}
    found = f"every label is a kind of anomaly, {with_counts(Counter(rows))}"
    alike = {kind.strip().casefold() for kind in labels.kinds}
    if not unlabelled:
        message = f"Normal rows are needed, got only one class: {found}, and none is {wanted}."
        other = "add rows that are normal or without a label."
    elif labelled >= unlabelled or str(normal).strip().casefold() in alike:
        message = (
            f"No label is {wanted}: {found}, and {counted(unlabelled, 'row')} without a label."
        )
        other = "add rows without a label, if those are the normal ones."
    else:
        return
    hint, topic = f"Pass the normal label as normal=..., or {other}", "no_normal_label"
    if normal is not None:
        hint, topic = f"Correct normal={normal!r}, or {other}", "wrong_normal_label"
    raise UserError(message, hint=hint, topic=topic, other=other)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan(WithoutCaches):
    """What the first rows decide. Models with equal plans can be merged."""

    encoder: Encoder  #: from tables to encoded rows, and back to words and units
    terms: tuple[Term, ...]  #: what a row is scored by
    holdout: HoldOut  #: which rows calibrate
    labels: LabelScheme  #: how labels are read
    isolation: Isolation | None = None  #: which rows that nobody has looked at may be anomalies
    windows: Windows | None = None  #: columns over the last rows of a run

    @classmethod
    def choose(
        cls,
        table: Table,
        labels: RowLabels,
        config: Config,
        rng: np.random.RandomState,
        *,
        scheme: LabelScheme,
        rate: float,
        window: int | None = None,
        population: Population | None = None,
    ) -> Self:
        """The plan that rows decide: all of them, or a sample of a larger population."""
        holdout, split = HoldOut.choose(
            table,
            labels,
            config=config,
            doubted=scheme.doubted,
            rate=rate,
            window=window,
            rng=rng,
            population=population,
        )
        if (
            not split.learnt.any()
            and table.groups is not None
            and table.groups.columns[1] is not None
        ):
            n_times = len(np.unique(table.groups.time))
            raise UserError(
                f"No row is left to learn: the times have only {n_times:,} different values, so "
                f"all rows are held out or too near in time to those that are. Pass times that "
                f"differ, or leave the time out."
            )
        learnt = table.take(np.flatnonzero(split.learnt))
        encoder = Encoder.learn(learnt)
        rows, code = encoder.encode(learnt), labels.code[split.learnt]
        of_kind = {kind: rows[code == i] for i, kind in enumerate(labels.kinds, 1)}
        packed = {kind: encoder.pack(some) for kind, some in of_kind.items()}
        holdout = holdout.with_kinds(packed, config=config, population=population)
        unseen, isolation = scheme.may_be_isolated(labels.take(np.flatnonzero(split.learnt))), None
        isolated = np.zeros(len(rows), dtype=bool)
        if unseen.sum() >= _MIN_ROWS_TO_ISOLATE:
            seen = encoder.pack(rows[unseen])
            isolation = Isolation.of(seen, share=scheme.isolated_share, key=holdout.key % 2**32)
            isolated[unseen] = isolation(seen)
        first = FirstRows(
            rows=rows,
            is_anomaly=labels.is_anomaly[split.learnt],
            kinds=labels.kinds,
            weight=learnt.weight,
            encoder=encoder,
            config=config.for_rows(doubted=scheme.doubted, labelled=bool(labels.is_anomaly.any())),
            doubted=scheme.doubted,
            isolation=scheme.isolation if isolation is not None else KEPT,
            isolated=isolated,
            rng=rng,
            key=holdout.key % 2**32,
        )
        return cls(
            encoder=encoder,
            terms=_chosen(first),
            holdout=holdout,
            labels=scheme,
            isolation=isolation,
            windows=None if window is None else Windows.of(table, window),
        )

    @cached_property
    def kernel(self) -> KernelTerm:
        """The term with the landmarks."""
        return next(term for term in self.terms if isinstance(term, KernelTerm))

    def isolated(self, rows: np.ndarray, labels: RowLabels) -> np.ndarray:
        """Which encoded rows nobody has looked at and are isolated."""
        found = self.labels.may_be_isolated(labels)
        if self.isolation is None:
            return np.zeros(len(found), dtype=bool)
        found[found] = self.isolation(self.encoder.pack(rows[found]))
        return found

    @property
    def table_columns(self) -> dict[str, Learnt | None]:
        """What was learnt of each column of the table by its name, windows left out."""
        learnt = self.encoder.by_name
        return learnt if self.windows is None else {n: learnt[n] for n in self.windows.columns}

    @property
    def is_named(self) -> bool:
        """Whether columns are matched by name."""
        return self.encoder.names is not None if self.windows is None else self.windows.named

    def grouped(self, X: Any, groups: Any = None, time: Any = None) -> Table:
        """A table with its groups and times, found by column name if they are not given."""
        table, grouping = self._read(X), self.holdout.grouping
        if grouping is not None and table.groups is None:
            names = {column.name for column in table.columns}
            groups, time = (
                name if given is None and name in names else given
                for given, name in zip((groups, time), grouping.columns, strict=True)
            )
        return with_groups(table, groups, time)

    def continued(self, X: Any, runs: Runs, groups: Any = None, time: Any = None) -> Table:
        """A table with its groups, times and windows, which continue from the rows before."""
        table = self.grouped(X, groups, time)
        if self.windows is None:
            return table
        return self.windows.apply(table, self.holdout.grouping, runs=runs)

    def align(self, X: Any) -> Table:
        """A table with the columns of the fit, without those of groups and times."""
        return self.encoder.align(self._values(self._read(X)))

    def encode(self, X: Any) -> np.ndarray:
        """A table as encoded rows.  (n, d) -> (n, n_encoded)"""
        if self.windows is None and (plain := self.encoder.encode_plain(X)) is not None:
            return plain
        return self.encoder.encode(self._values(self._read(X)))

    def encode_in_parts(self, X: Any, *, device: str = "cpu") -> Iterable[Any]:
        """The same, some rows at a time: arrays, or tensors on a device other than "cpu"."""
        if device == "cpu":
            return map(self.encode, row_parts(X))
        if device not in self._tensor_encodings:
            self._tensor_encodings[device] = TensorEncoding.of(self.encoder, device)
        most = READ_AT_ONCE if self.windows is None else None  # windows need the rows before a row
        return encoded_parts(self._tensor_encodings[device], X, align=self.align, most=most)

    @cached_property
    def _tensor_encodings(self) -> dict[str, TensorEncoding]:
        return {}

    def _read(self, X: Any) -> Table:
        return by_number(read_table(X, name="Detector"), self.table_columns)

    def _values(self, table: Table) -> Table:
        """The table with its windows, and without the columns of groups and times."""
        grouping = self.holdout.grouping
        if self.windows is not None:
            table = self.windows.apply(table, grouping)
        names = () if grouping is None else grouping.columns
        columns = [column for column in table.columns if column.name not in names]
        return table if len(columns) == len(table.columns) else replace(table, columns=columns)

    def is_same(self, other: "Plan") -> bool:
        """Whether two plans treat every row the same way, however they read missing labels."""
        return self is other or (
            self.windows == other.windows
            and self.labels.doubted == other.labels.doubted
            and self.labels.isolation == other.labels.isolation
            and same_parts(self.isolation, other.isolation)
            and self.holdout.is_same(other.holdout)
            and len(self.terms) == len(other.terms)
            and all(map(Term.is_same, self.terms, other.terms))
            and self.encoder.is_same(other.encoder)
        )

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        own = {name: getattr(self, name) for name in _PLAN}
        terms = {term.name: term.state() for term in self.terms}
        return own | {"terms": terms, "holdout": self.holdout.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The plan of these parts."""
        schemas.check_parts(state, _PLAN, "Plan")
        encoder, windows = state["encoder"], state["windows"]
        added = () if windows is None else (*windows.columns, *windows.added)
        if not set(added) <= set(encoder.names or ()):
            schemas.damaged("its windows do not match the columns of its table")
        terms = _loaded(state["terms"], encoder=encoder)
        holdout = HoldOut.from_state(state["holdout"], encoder=encoder)
        isolation = state["isolation"]
        if isolation is not None and not isolation.fits(n_columns=len(encoder.pack.first)):
            schemas.damaged("what isolates its rows does not match its columns")
        return cls(
            encoder=encoder,
            terms=terms,
            holdout=holdout,
            labels=state["labels"],
            isolation=isolation,
            windows=windows,
        )


def _chosen(first: FirstRows) -> tuple[Term, ...]:
    """The terms that have something to say of the first rows."""
    chosen: dict[str, Term] = {}
    for term in TERMS:
        if (one := term.choose(replace(first, chosen=chosen))) is not None:
            assert term.name not in chosen, f"two terms are called {term.name!r}"
            chosen[term.name] = one
    return tuple(chosen.values())


def _loaded(state: dict[str, Any], *, encoder: Encoder) -> tuple[Term, ...]:
    """The terms of the parts of a model file."""
    names = [term.name for term in TERMS]
    schemas.check_names(state, "Terms", required=[KernelTerm.name], optional=names)
    loaded: dict[str, Term] = {}
    for term in TERMS:
        if term.name in state:
            schemas.check(state, {term.name: schemas.DICT}, "Terms", sizes={})
            loaded[term.name] = term.load(state[term.name], encoder=encoder, before=loaded)
    return tuple(loaded.values())


_PLAN = {
    "encoder": schemas.kept(Encoder),
    "terms": schemas.DICT,
    "holdout": schemas.DICT,
    "labels": schemas.kept(LabelScheme),
    "isolation": schemas.kept(Isolation, optional=True),
    "windows": schemas.kept(Windows, optional=True),
}
