"""The first fit: to rows in memory, to a stream of batches, or to rows spread over a cluster."""

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from eqsep.arrays import check_weight, objects
from eqsep.checks import (
    Finding,
    check_columns,
    check_dependence,
    check_row_labels,
    times_in_order,
    without_copies,
)
from eqsep.detector.config import Config
from eqsep.detector.drift import check_time
from eqsep.detector.evidence import Evidence, gather, n_kind_rows, settled, with_lower_bounds
from eqsep.detector.holdout import n_held_out, n_held_out_anomalies
from eqsep.detector.plan import LabelScheme, Plan
from eqsep.detector.runs import Runs, Windows
from eqsep.engine.backends import NUMPY, Backend
from eqsep.errors import ParameterError, UserError, quoted
from eqsep.labels import RowLabels, label_codes, label_objects, may_be_normal, read_row_labels
from eqsep.progress import phase
from eqsep.tables import batches as streams
from eqsep.tables.batches import Batch, LabelledRows, Source, joined, sample_size, width
from eqsep.tables.reading import Table, read_table, with_groups

MOST_NAMES = 10_000  # that are counted in a column
MOST_LABELS = 1000  # different ones: more are ids or measurements
_NAMED = ("text", "mixed")
_SLACK = 1.2  # more rows are held out than needed, so that enough remain in the end
_WHOLE = 2**64 - 1
Batches = Iterator[tuple[Table, Any]]
Taught = tuple[Plan, Evidence]


class Fit(NamedTuple):
    """The result of a first fit: plan, evidence, findings to warn of, and times that order rows."""

    plan: Plan
    evidence: Evidence
    findings: list[Finding]
    times: list[str]


@dataclass(frozen=True, kw_only=True)
class FirstFit:
    """The settings of a first fit."""

    config: Config
    rate: float  # the false-alarm rate to promise
    normal: Any = None
    unlabelled: str = "auto"
    window: int | None = None  # the length of windows
    plan: Plan | None = None  # of another fit, so that the models can be merged
    backend: Backend = NUMPY  # where kernel values are summed

    def to_rows(
        self, table: Table, y: Any, rng: np.random.RandomState, *, given: bool, whole: bool = True
    ) -> Fit:
        """The fit to rows in memory; copies of rows are found only in `whole` data."""
        phase("planning")
        labels = read_row_labels(y if given else None, n_rows=table.n_rows, normal=self.normal)
        found = check_row_labels(labels)
        reading = self._reading(labels, np.ones(len(labels.code)), given=given)
        labels = reading.apply(labels)
        if whole and self.plan is None and self.window is None:
            table, labels, copies = without_copies(table, labels)
            found += copies
        found += check_columns(table, labels.code, labels.kinds)
        times = times_in_order(table)
        if self.plan is None:
            if self.window is not None:
                table = Windows.of(table, self.window).transform(table)
            plan = Plan.choose(
                table, labels, self.config, rng, reading=reading, rate=self.rate, window=self.window
            )
        else:
            plan = replace(self.plan, labels=reading)
        table = plan.align(table)
        found += self._check_order(table, labels, plan)
        phase("learning", table.n_rows, "rows")
        return self._settled(plan, gather(plan, table, labels, backend=self.backend), found, times)

    def to_stream(self, source: Source, rng: np.random.RandomState) -> Fit:
        """The fit to batches; memory does not grow with their number."""
        if not source.again:
            return self._to_batches_once(read(source), rng)
        summary = StreamSummary(
            normal=self.normal,
            rng=np.random.default_rng(seed_of(rng)),
            most=self.config.max_sample,
            most_anomalies=self.config.max_sample_anomalies,
        )
        phase("reading")
        summarise(summary, source, labels_alone=self.plan is not None)

        def gather_all(plan: Plan, known: RowLabels) -> Taught:
            batches = read(source)
            first = self.gather_batch(plan, *next(batches), known=known)
            return self._gather_batches(plan, first, batches)

        return self.to_summary(summary, rng, gather_all)

    def to_summary(
        self,
        summary: "StreamSummary",
        rng: np.random.RandomState,
        gather_all: Callable[[Plan, RowLabels], Taught],
    ) -> Fit:
        """The plan that a summary of all rows gives, and what `gather_all` gathers under it."""
        if not summary.n_rows:
            raise _no_rows()
        if self.plan is None and summary.is_whole:
            sample = summary.sample()
            return self.to_rows(sample.rows, sample.y, rng, given=summary.labelled, whole=False)
        phase("planning")
        labels, counts = summary.row_labels()
        found, times = check_row_labels(labels, counts), list[str]()
        reading = self._reading(labels, counts, given=summary.labelled)
        labels = reading.apply(labels)
        if self.plan is not None:
            plan = replace(self.plan, labels=reading)
        else:
            sample = summary.sample()
            own = reading.read(sample.y, n_rows=len(sample.y), known=labels)
            plan = Plan.choose(
                sample.rows,
                own,
                self.config,
                rng,
                reading=reading,
                rate=self.rate,
                window=self.window,
                more_names=summary.names,
            )
            more = counts[labels.code <= 0].sum() / (own.code <= 0).sum()
            plan = self._scaled(plan, labels, counts, more=more)
            found += check_columns(sample.rows, own.code, own.kinds)
            times = times_in_order(sample.rows)
            found += self._check_order(sample.rows, own, plan)
        phase("learning")
        return self._settled(*gather_all(plan, labels.of_no_row()), found, times)

    def gather_batch(self, plan: Plan, table: Table, y: Any, *, known: RowLabels) -> Evidence:
        """The evidence in a batch."""
        table = plan.align(table)
        labels = plan.labels.read(y, n_rows=table.n_rows, known=known)
        return gather(plan, table, labels, backend=self.backend)

    def _to_batches_once(self, batches: Batches, rng: np.random.RandomState) -> Fit:
        """The first rows decide the plan; as more rows come, a smaller share is held out."""
        first: list[tuple[Table, Any]] = []
        n_rows = 0
        for table, y in batches:
            first.append((table, y))
            n_rows += table.n_rows
            if n_rows >= sample_size(width(table), most=self.config.max_sample):
                break
        if not first:
            raise _no_rows()
        table = joined([table for table, _ in first])
        y = np.concatenate([label_objects(y, table.n_rows) for table, y in first])
        given = any(y is not None for _, y in first)
        plan, evidence, found, times = self.to_rows(table, y, rng, given=given, whole=False)
        return self._settled(*self._gather_batches(plan, evidence, batches), found, times)

    def _gather_batches(self, plan: Plan, evidence: Evidence, batches: Batches) -> Taught:
        """Add all other batches, and lower the bounds if more rows are held out than needed."""
        for table, y in batches:
            evidence = evidence + self.gather_batch(plan, table, y, known=evidence.labels)
            if self.plan is None:
                plan, evidence = with_lower_bounds(plan, evidence, config=self.config)
        return plan, evidence

    def _settled(
        self, plan: Plan, evidence: Evidence, found: list[Finding], times: list[str]
    ) -> Fit:
        if self.plan is None:
            plan, evidence = settled(plan, evidence, config=self.config)
        return Fit(plan, evidence, found, times)

    def _scaled(self, plan: Plan, labels: RowLabels, counts: np.ndarray, *, more: float) -> Plan:
        """The plan with bounds for this number of rows of each label, `more` times the sample."""
        holdout, config = plan.holdout, self.config
        most = 2 * n_kind_rows(len(plan.encoder.pack.first), config=config)
        n_rows = {k: int(counts[labels.code == i].sum()) for i, k in enumerate(labels.kinds, 1)}
        kind_bounds = {k: int(most / n * _WHOLE) for k, n in n_rows.items() if n > most}
        holdout = replace(holdout, kind_bounds=kind_bounds)
        if holdout.grouping is not None:
            holdout = replace(holdout, grouping=holdout.grouping.scaled(more))
        else:
            n_normal = int(counts[labels.code == 0].sum())
            n = n_held_out(n_normal, config=config, doubted=holdout.anomaly_bound > 0)
            bound = int(min(_SLACK * (n / n_normal), 1.0) * _WHOLE)
            n_anomalous = max(sum(n_rows[kind] for kind in holdout.anomaly_kinds), 1)
            share = n_held_out_anomalies(n_anomalous, config=config) / n_anomalous
            holdout = replace(
                holdout,
                bound=min(holdout.bound, bound),
                anomaly_bound=min(holdout.anomaly_bound, int(share * _WHOLE)),
            )
        return replace(plan, holdout=holdout)

    def _reading(self, labels: RowLabels, counts: np.ndarray, *, given: bool) -> LabelScheme:
        return LabelScheme.choose(
            labels,
            counts,
            given=given,
            normal=self.normal,
            unlabelled=self.unlabelled,
            rate=self.rate,
            config=self.config,
            doubted=None if self.plan is None else self.plan.labels.doubted,
        )

    def _check_order(self, table: Table, labels: RowLabels, plan: Plan) -> list[Finding]:
        """Findings on the order of rows, by time or as they came, that break the promise."""
        if table.groups is None or table.groups.columns[1] is None:
            return check_dependence(table, labels.code)
        return check_time(table, labels, plan, self.config, rate=self.rate)


class StreamSummary:
    """The labels and names of all rows, counted, and a sample with enough of those not `normal`."""

    def __init__(
        self, *, normal: Any, rng: np.random.Generator, most: int, most_anomalies: int
    ) -> None:
        self.n_rows = 0
        self.labelled = False
        self.names: dict[str, Counter[str]] = {}
        self._counts: Counter[Any] = Counter()  # in the order in which labels were first seen
        self._normal, self._rng = normal, rng
        self._most, self._most_anomalies = most, most_anomalies
        self._strata: streams.Strata[LabelledRows[Table]] | None = None

    def add(self, table: Table, y: Any) -> None:
        """Count one more batch."""
        labels, code = self._count_labels(y, table.n_rows)
        for column in table.columns:
            if column.kind in _NAMED:
                self._count_names(column.name, column.counts())
        if self._strata is None:
            size = sample_size(width(table), most=self._most)
            join = partial(LabelledRows.join, rows=joined)
            self._strata = streams.Strata(size, join, most_others=self._most_anomalies)
        labels = [*labels, None]
        is_normal = np.array([may_be_normal(k, normal=self._normal) for k in labels])[code]
        positions = np.arange(self.n_rows, self.n_rows + table.n_rows)
        rows = LabelledRows(table, objects(labels)[code], positions)
        self._strata.add(rows, is_normal=is_normal, rng=self._rng)
        self.n_rows += table.n_rows

    def add_labels(self, y: Any, *, n_rows: int) -> None:
        """Count only the labels of one more batch."""
        self._count_labels(y, n_rows)
        self.n_rows += n_rows

    def merge(self, other: "StreamSummary") -> None:
        """Add a summary of later rows."""
        for name, counts in other.names.items():
            self._count_names(name, counts)
        self._add_counts(other._counts)
        self.labelled |= other.labelled
        if self._strata is None:
            self._strata = other._strata
        elif other._strata is not None:
            self._strata.merge(other._strata, moved=lambda rows: rows.after(self.n_rows))
        self.n_rows += other.n_rows

    @property
    def is_whole(self) -> bool:
        """Whether the sample holds all rows."""
        return self._strata is not None and self._strata.is_whole

    def row_labels(self) -> tuple[RowLabels, np.ndarray]:
        """How each distinct label is read, a missing one too, and how many rows have it."""
        labels = list(self._counts) or [None]
        counts = np.array([self._counts[label] for label in labels])
        given, n = objects(labels), len(labels)
        return read_row_labels(given, n_rows=n, normal=self._normal, counts=counts), counts

    def sample(self) -> LabelledRows[Table]:
        """All rows if they are few, else some, in the order in which they came."""
        assert self._strata is not None  # there are rows
        sample = self._strata.sample()
        return sample.take(np.argsort(sample.positions))

    def _count_labels(self, y: Any, n_rows: int) -> tuple[list[Any], np.ndarray]:
        """The distinct labels of a batch, and the code of each row."""
        distinct, code = label_codes(y, n_rows)
        if y is not None and len(code) != n_rows:
            read_row_labels(y, n_rows=n_rows, normal=None)  # says what is wrong
        labels = distinct.tolist()
        times = np.bincount(np.where(code < 0, len(labels), code))
        self._add_counts({k: n for k, n in zip([*labels, None], times.tolist(), strict=False) if n})
        self.labelled |= y is not None
        return labels, code

    def _add_counts(self, counts: dict[Any, int]) -> None:
        self._counts.update(counts)
        if len(self._counts) > MOST_LABELS:
            raise UserError(
                f"Got more than {MOST_LABELS:,} different labels: expected 0 and 1, or names of "
                f"kinds. Pass the column that holds the labels."
            )

    def _count_names(self, column: str, counts: Counter[str]) -> None:
        counts = self.names.get(column, Counter()) + counts
        self.names[column] = streams.frequent(counts, most=MOST_NAMES)


def read(source: Source) -> Batches:
    """The batches as tables of the same columns, with their labels, read and converted ahead."""
    return streams.prefetched(streams.tables(source, name="Detector"))


def summarise(summary: StreamSummary, source: Source, *, labels_alone: bool) -> None:
    """Count all rows, or their labels alone, which a given plan needs."""
    if labels_alone:
        for n_rows, y in source.labels():
            summary.add_labels(y, n_rows=n_rows)
    else:
        for table, y in read(source):
            summary.add(table, y)


def seed_of(rng: np.random.RandomState) -> int:
    """The seed of a summary; drawn so that rows in memory draw the same landmarks after it."""
    return int(deepcopy(rng).randint(2**31 - 1))


def _no_rows() -> UserError:
    return UserError("Got no rows: expected at least one batch with rows.")


def batches_of(
    X: Any, y: Any, groups: Any, time: Any, sample_weight: Any, *, window: Windows | int | None
) -> Source:
    """The batches of `X` `with_columns`, and with windows that continue from batch to batch."""
    source = streams.source_of(X, y, name="Detector")
    source = with_columns(source, groups=groups, time=time, sample_weight=sample_weight)
    if window is None:
        return source

    def read_windows() -> Iterator[Batch]:
        runs, windows = Runs(), window
        for rows, labels in source:
            table = read_table(rows, name="Detector")
            windows = Windows.of(table, windows) if isinstance(windows, int) else windows
            yield windows.transform(table, runs=runs), labels

    return replace(source, read=read_windows)


def with_weight(table: Table, y: Any, sample_weight: Any) -> tuple[Table, Any]:
    """The table with the weight of each row, and the labels; rows of weight 0 are left out."""
    if isinstance(sample_weight, str):
        columns = {column.name: column for column in table.columns}
        if sample_weight not in columns:
            expected = f"a column ({quoted(columns)})"
            raise ParameterError("sample_weight", expected=expected, got=sample_weight)
        kept = [column for column in table.columns if column.name != sample_weight]
        table = replace(table, columns=kept)
        sample_weight = columns[sample_weight].numbers("number")
    weight = check_weight(sample_weight, n=table.n_rows)
    counted = np.flatnonzero(weight > 0)
    if len(counted) == len(weight):
        return replace(table, weight=weight), y
    y = y if y is None else label_objects(y, table.n_rows)[counted]
    return replace(table, weight=weight).take(counted), y


def with_columns(
    source: Source, *, groups: Any = None, time: Any = None, sample_weight: Any = None
) -> Source:
    """The same batches, with the group, time and weight of each row from columns of these names."""
    given = {"groups": groups, "time": time, "sample_weight": sample_weight}
    if all(column is None for column in given.values()):
        return source
    for word, column in given.items():
        if not isinstance(column, str | None):
            raise UserError(
                f"With batches of rows, {word} must be the name of a column or None, got "
                f"{type(column).__name__}."
            )

    def read() -> Iterator[Batch]:
        for X, y in source:
            table = with_groups(read_table(X, name="Detector"), groups, time)
            if sample_weight is None:
                yield table, y
                continue
            weights = [c.numbers("number") for c in table.columns if c.name == sample_weight]
            if not weights or weights[0].any():  # if no row counts here, others may
                yield with_weight(table, y, sample_weight)

    read_labels = source.read_labels if sample_weight is None else read
    return replace(source, read=read, read_labels=read_labels)
