"""Sources of the rows of a fit: in memory, in batches, or read elsewhere.

A source is asked twice. Its summary, with a sample of the rows, decides the plan; then it sums what
all its rows teach under that plan.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from eqsep.arrays import check_weight, objects
from eqsep.detector.config import Config
from eqsep.detector.evidence import Evidence, Gather
from eqsep.detector.holdout import Population
from eqsep.detector.runs import Runs, Windows
from eqsep.errors import ParameterError, UserError, quoted
from eqsep.labels import RowLabels, label_codes, label_objects, may_be_normal, read_row_labels
from eqsep.progress import phase
from eqsep.tables import batches as streams
from eqsep.tables.batches import Batch, Batches, LabelledRows, Strata, joined, sample_size, width
from eqsep.tables.reading import Table, read_table, with_groups

MAX_LABELS = 1000  # different ones: more are ids or measurements
TableBatches = Iterator[tuple[Table, Any]]


@dataclass(frozen=True, kw_only=True)
class SummaryRequest:
    """What a fit asks for in a summary."""

    normal: Any  # the label of normal rows, if it was named
    config: Config  # with the size of the sample
    seed: int  # of the sample
    labels_alone: bool  # whether a plan is there already, which no sample decides


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The labels of all rows, counted, and a sample of the rows."""

    labels: RowLabels  # of each distinct label, or of each row
    counts: np.ndarray  # how many rows have each of these
    given: bool  # whether labels were given at all
    sample: Table | None  # None if labels alone were asked for
    sampled: RowLabels  # the labels of the sample
    is_whole: bool  # whether the sample holds all rows

    @classmethod
    def of_rows(cls, table: Table, y: Any, *, normal: Any, is_whole: bool = True) -> "Summary":
        """Of rows in memory, which are their own sample."""
        labels = read_row_labels(y, n_rows=table.n_rows, normal=normal)
        return cls(
            labels=labels,
            counts=np.ones(table.n_rows),
            given=y is not None,
            sample=table,
            sampled=labels,
            is_whole=is_whole,
        )

    @classmethod
    def of_labels(
        cls,
        counts: Counter[Any],
        *,
        normal: Any,
        given: bool,
        sample: LabelledRows[Table] | None,
        is_whole: bool = False,
    ) -> "Summary":
        """Of rows whose labels were counted."""
        if sample is not None and is_whole:
            return cls.of_rows(sample.rows, sample.y if given else None, normal=normal)
        n_each = np.array([counts[label] for label in counts])
        distinct = objects(counts)
        labels = read_row_labels(distinct, n_rows=len(distinct), normal=normal, counts=n_each)
        rows, y = (None, ()) if sample is None else (sample.rows, sample.y)
        sampled = read_row_labels(y, n_rows=len(y), normal=normal, known=labels)
        return cls(
            labels=labels, counts=n_each, given=given, sample=rows, sampled=sampled, is_whole=False
        )

    def population(self, labels: RowLabels, sampled: RowLabels) -> Population | None:
        """How many rows there are of each label; None if no more are known than the sample."""
        if self.labels is self.sampled:
            return None
        codes, kinds = labels.code, enumerate(labels.kinds, 1)
        usual = (float(self.counts[codes <= 0].sum()), int((sampled.code <= 0).sum()))
        return Population(
            n_normal=int(self.counts[codes == 0].sum()),
            n_of_kind={kind: int(self.counts[codes == code].sum()) for code, kind in kinds},
            times_sample=usual[0] / usual[1],
        )


class Source(Protocol):
    """Rows to fit to."""

    def summary(self, wanted: SummaryRequest) -> Summary:
        """The labels of all rows, and a sample of the rows."""

    def total(self, gather: Gather) -> Evidence:
        """The sum of what all rows teach."""


@dataclass(frozen=True)
class RowsInMemory:
    """A table as a source of one batch."""

    table: Table
    y: Any  # 0 and 1 or names of kinds; None where nothing is known

    def summary(self, wanted: SummaryRequest) -> Summary:
        return Summary.of_rows(self.table, self.y, normal=wanted.normal)

    def total(self, gather: Gather) -> Evidence:
        return gather(self.table, self.y)


@dataclass(frozen=True)
class BatchesReadTwice:
    """Batches that can be read from the beginning again; memory does not grow with their number."""

    batches: Batches

    def summary(self, wanted: SummaryRequest) -> Summary:
        phase("reading")
        tally = Tally(normal=wanted.normal, config=wanted.config, seed=wanted.seed)
        tally.read(self.batches, labels_alone=wanted.labels_alone)
        return tally.summary()

    def total(self, gather: Gather) -> Evidence:
        return summed(gather(table, y) for table, y in read(self.batches))


class BatchesReadOnce:
    """Batches of which the first rows decide the plan, since none can be read again.

    The plan holds out a share of the first rows. Of rows held out beyond what calibrates, and of
    rows of kinds beyond what names alarms, those with the lowest hashes stay; the others are
    neither learnt nor kept.
    """

    def __init__(self, batches: Batches) -> None:
        self._rest = read(batches)
        self._first: tuple[Table, Any] | None = None
        self._config = Config()

    def summary(self, wanted: SummaryRequest) -> Summary:
        phase("reading")
        first: list[tuple[Table, Any]] = []
        n_rows, size = 0, 1
        while n_rows < size and (batch := next(self._rest, None)) is not None:
            first.append(batch)
            n_rows += batch[0].n_rows
            size = sample_size(width(batch[0]), most=wanted.config.max_sample)
        if not first:
            raise no_rows()
        table = joined([table for table, _ in first])
        given = any(y is not None for _, y in first)
        y = np.concatenate([label_objects(y, table.n_rows) for table, y in first])
        self._first, self._config = (table, y if given else None), wanted.config
        is_whole = n_rows < size
        return Summary.of_rows(*self._first, normal=wanted.normal, is_whole=is_whole)

    def total(self, gather: Gather) -> Evidence:
        assert self._first is not None  # the summary comes first
        evidence = gather(*self._first)
        for table, y in self._rest:
            evidence = evidence + gather(table, y, known=evidence.labels)
            evidence = evidence.trimmed(self._config, slack=2.0)
        return evidence.trimmed(self._config)


@dataclass(frozen=True)
class SampledBefore:
    """A source whose rows were counted and sampled before, on the way to their types, say."""

    source: Source
    counts: Counter[Any]  # of each label, None where it is missing
    sample: LabelledRows[Table]
    is_whole: bool
    given: bool = True  # whether rows have labels

    def summary(self, wanted: SummaryRequest) -> Summary:
        return Summary.of_labels(
            self.counts,
            normal=wanted.normal,
            given=self.given,
            sample=None if wanted.labels_alone else self.sample,
            is_whole=self.is_whole,
        )

    def total(self, gather: Gather) -> Evidence:
        return self.source.total(gather)


def source_of(batches: Batches) -> Source:
    """The source that batches are."""
    return BatchesReadTwice(batches) if batches.again else BatchesReadOnce(batches)


def summed(parts: Iterable[Evidence]) -> Evidence:
    """The sum of what parts of the rows teach."""
    found = iter(parts)
    if (first := next(found, None)) is None:
        raise no_rows()
    return reduce(add, found, first)


class Tally:
    """Labels counted as rows are read, and a sample with enough of those not `normal`."""

    def __init__(self, *, normal: Any, config: Config, seed: Any) -> None:
        self.n_rows = 0
        self._given = False
        self._counts: Counter[Any] = Counter()  # in the order in which labels were first seen
        self._normal, self._config = normal, config
        self._rng = np.random.default_rng(seed)
        self._strata: Strata[LabelledRows[Table]] | None = None

    def read(self, batches: Batches, *, labels_alone: bool) -> None:
        """Count all rows, or their labels alone."""
        if labels_alone:
            for n_rows, y in batches.labels():
                self._count_labels(y, n_rows)
                self.n_rows += n_rows
        else:
            for table, y in read(batches):
                self.add(table, y)

    def add(self, table: Table, y: Any) -> None:
        """Count one more batch."""
        labels, code = self._count_labels(y, table.n_rows)
        if self._strata is None:
            size = sample_size(width(table), most=self._config.max_sample)
            join = partial(LabelledRows.join, rows=joined)
            self._strata = Strata(size, join, most_others=self._config.max_sample_anomalies)
        labels = [*labels, None]
        is_normal = np.array([may_be_normal(k, normal=self._normal) for k in labels])[code]
        positions = np.arange(self.n_rows, self.n_rows + table.n_rows)
        rows = LabelledRows(table, objects(labels)[code], positions)
        self._strata.add(rows, is_normal=is_normal, rng=self._rng)
        self.n_rows += table.n_rows

    def merge(self, other: "Tally") -> "Tally":
        """Add a tally of later rows."""
        self._add_counts(other._counts)
        self._given |= other._given
        if self._strata is None:
            self._strata = other._strata
        elif other._strata is not None:
            self._strata.merge(other._strata, moved=lambda rows: rows.after(self.n_rows))
        self.n_rows += other.n_rows
        return self

    def summary(self) -> Summary:
        """What was counted; of few rows, the rows themselves, in the order in which they came."""
        if not self.n_rows:
            raise no_rows()
        sample, is_whole = None, False
        if self._strata is not None:
            sample, is_whole = self._strata.sample(), self._strata.is_whole
            sample = sample.take(np.argsort(sample.positions))
        counts, given = self._counts, self._given
        return Summary.of_labels(
            counts, normal=self._normal, given=given, sample=sample, is_whole=is_whole
        )

    def _count_labels(self, y: Any, n_rows: int) -> tuple[list[Any], np.ndarray]:
        """The distinct labels of a batch, and the code of each row."""
        distinct, code = label_codes(y, n_rows)
        if y is not None and len(code) != n_rows:
            read_row_labels(y, n_rows=n_rows, normal=None)  # says what is wrong
        labels = distinct.tolist()
        times = np.bincount(np.where(code < 0, len(labels), code))
        self._add_counts({k: n for k, n in zip([*labels, None], times.tolist(), strict=False) if n})
        self._given |= y is not None
        return labels, code

    def _add_counts(self, counts: dict[Any, int]) -> None:
        self._counts.update(counts)
        if len(self._counts) > MAX_LABELS:
            raise UserError(
                f"Got more than {MAX_LABELS:,} different labels: expected 0 and 1, or names of "
                f"kinds. Pass the column that holds the labels."
            )


def read(batches: Batches) -> TableBatches:
    """The batches as tables of the same columns, with their labels, read and converted ahead."""
    return streams.prefetched(streams.tables(batches, name="Detector"))


def seed_of(rng: np.random.RandomState) -> int:
    """The seed of a sample; drawn so that rows in memory draw the same landmarks after it."""
    return int(deepcopy(rng).randint(2**31 - 1))


def no_rows() -> UserError:
    """The error that there is nothing to fit to."""
    return UserError("Got no rows: expected at least one batch with rows.")


def batches_of(
    X: Any, y: Any, groups: Any, time: Any, sample_weight: Any, *, window: Windows | int | None
) -> Batches:
    """The batches of `X` `with_columns`, and with windows that continue from batch to batch."""
    source = streams.batches_from(X, y, name="Detector")
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
    source: Batches, *, groups: Any = None, time: Any = None, sample_weight: Any = None
) -> Batches:
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
