"""A first fit to rows that come in batches: what one pass over them tells, and all rows learnt.

Rows that can be read again are read twice: for a summary (labels and names counted, a sample drawn)
and to be learnt. Of rows that come once, the first ones stand for all.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.batches.joining import joined, tables, width
from eqsep.batches.sampling import LabelledRows, Strata, frequent, sample_size
from eqsep.batches.sources import Source, prefetched
from eqsep.checks import check_columns, check_row_labels
from eqsep.detector.choosing import make_feature_map
from eqsep.detector.contamination import held_out_anomalies
from eqsep.detector.feature_map import FeatureMap
from eqsep.detector.fitting import (
    FitContext,
    PartialStatistics,
    accumulate,
    bounded,
    check_order,
    first_fit,
    settled,
)
from eqsep.detector.holdout import held_out
from eqsep.detector.naming import with_expected_bounds
from eqsep.detector.trust import is_doubted, opened
from eqsep.errors import UserError
from eqsep.labels import (
    UNLABELLED,
    RowLabels,
    label_codes,
    label_objects,
    may_be_normal,
    read_row_labels,
)
from eqsep.tables.column import objects
from eqsep.tables.encoder import encoder_of
from eqsep.tables.encodings import Category
from eqsep.tables.fitted import FittedEncoder, state_of
from eqsep.tables.reading import Table

MOST_NAMES = 10_000  # that are counted in a column
MOST_LABELS = 1000  # different ones: more are ids or measurements
_NAMED = ("text", "mixed")
_SLACK = 1.2  # more rows are held out than counted on, so that enough are there in the end
_Batches = Iterator[tuple[Table, Any]]
_Fit = tuple[FitContext, PartialStatistics]


class StreamSummary:
    """The labels and names of all rows, counted, and a uniform sample of the rows.

    Summaries of pieces of the data `merge` into one of all of it.

    Parameters
    ----------
    normal : label or None
        As of the detector. Rows whose label is another one than this (than 0, False and "normal")
        are sampled apart, so that there are enough of them.
    rng : Generator
        Draws the sample.
    most : int, default=None
        The most rows of the sample, `eqsep.batches.sampling.SAMPLE` by default; fewer where rows
        are wide.
    """

    def __init__(self, *, normal: Any, rng: np.random.Generator, most: int | None = None) -> None:
        self.n_rows = 0
        self.labelled = False
        self.names: dict[str, Counter[str]] = {}
        self._counts: Counter[Any] = Counter()  # in the order in which labels were first seen
        self._normal = normal
        self._rng = rng
        self._most = most
        self._strata: Strata[LabelledRows[Table]] | None = None

    def add(self, table: Table, y: Any) -> None:
        """See one more batch."""
        labels, code = self._count_labels(y, table.n_rows)
        for column in table.columns:
            if column.kind in _NAMED:
                self._count_names(column.name, column.counts())
        if self._strata is None:
            self._strata = Strata(sample_size(width(table), most=self._most), _joined_rows)
        labels = [*labels, None]
        is_normal = np.array([may_be_normal(k, normal=self._normal) for k in labels])[code]
        positions = np.arange(self.n_rows, self.n_rows + table.n_rows)
        rows = LabelledRows(table, objects(labels)[code], positions)
        self._strata.add(rows, is_normal=is_normal, rng=self._rng)
        self.n_rows += table.n_rows

    def add_labels(self, y: Any, *, n_rows: int) -> None:
        """See the labels of one more batch, and nothing else of it."""
        self._count_labels(y, n_rows)
        self.n_rows += n_rows

    def merge(self, other: "StreamSummary") -> None:
        """Take in what a summary of later rows has seen."""
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
        """What each different label says, a missing one too, and how many rows have it."""
        labels = list(self._counts) or [None]
        read = read_row_labels(objects(labels), n_rows=len(labels), normal=self._normal)
        return read, np.array([self._counts[label] for label in labels])

    def sample(self) -> LabelledRows[Table]:
        """All rows where they are few, else some, in the order in which they came."""
        if self._strata is None:
            raise _no_rows()
        sample = self._strata.sample()
        return sample.take(np.argsort(sample.positions))

    def _count_labels(self, y: Any, n_rows: int) -> tuple[list[Any], np.ndarray]:
        """The different labels of a batch, and the code of each row's; counted."""
        distinct, code = label_codes(y, n_rows)
        if y is not None and len(code) != n_rows:
            read_row_labels(y, n_rows=n_rows, normal=None)  # says what is wrong
        labels = distinct.tolist()
        times = np.bincount(np.where(code == UNLABELLED, len(labels), code))
        self._add_counts({k: n for k, n in zip([*labels, None], times.tolist(), strict=False) if n})
        self.labelled |= y is not None
        return labels, code

    def _add_counts(self, counts: dict[Any, int]) -> None:
        self._counts.update(counts)
        if len(self._counts) > MOST_LABELS:
            raise UserError(
                f"There are more than {MOST_LABELS:,} different labels: expected 0 and 1, or names "
                f"of kinds. Pass the column that holds them."
            )

    def _count_names(self, column: str, counts: Counter[str]) -> None:
        counts = self.names.get(column, Counter()) + counts
        self.names[column] = frequent(counts, most=MOST_NAMES)


def _joined_rows(parts: list[LabelledRows[Table]]) -> LabelledRows[Table]:
    return LabelledRows.join(parts, joined)


def read(source: Source, *, name: str) -> _Batches:
    """The batches as tables of the same columns, with their labels, read and converted ahead."""
    return prefetched(tables(source, name=name))


def fit_stream(detector: Any, rng: np.random.RandomState, source: Source) -> _Fit:
    """The context and what all rows teach in it; memory does not grow with their number."""
    name = type(detector).__name__
    if not source.again:
        return _fit_once(detector, rng, read(source, name=name))
    summary = StreamSummary(normal=detector.normal, rng=np.random.default_rng(seed_of(rng)))
    summarise(summary, source, labels_alone=detector.feature_map is not None, name=name)

    def sums(context: FitContext) -> _Fit:
        batches = read(source, name=name)
        return _accumulated(detector, context, accumulate(context, *next(batches)), batches)

    return fit_summarised(detector, rng, summary, sums)


def fit_summarised(
    detector: Any,
    rng: np.random.RandomState,
    summary: StreamSummary,
    sums: Callable[[FitContext], _Fit],
) -> _Fit:
    """The context that a summary of all rows gives, and what these teach, by `sums`, in it.

    Where the rows are few enough for the sample to be all of them, all is as in memory.
    """
    if not summary.n_rows:
        raise _no_rows()
    if detector.feature_map is None and summary.is_whole:
        sample = summary.sample()
        return _fit_rows(detector, rng, sample.rows, sample.y, given=summary.labelled)
    return _ended(detector, *sums(agree(detector, rng, summary)))


def summarise(summary: StreamSummary, source: Source, *, labels_alone: bool, name: str) -> None:
    """See all rows, or their labels alone: with a feature map no more is asked for."""
    if labels_alone:
        for n_rows, y in source.labels():
            summary.add_labels(y, n_rows=n_rows)
    else:
        for table, y in read(source, name=name):
            summary.add(table, y)


def seed_of(rng: np.random.RandomState) -> int:
    """The seed of a summary; drawn so that rows in memory draw the same landmarks after it."""
    return int(deepcopy(rng).randint(2**31 - 1))


def agree(detector: Any, rng: np.random.RandomState, summary: StreamSummary) -> FitContext:
    """The context that a summary of all rows gives, of which it holds a sample.

    Encoding, landmarks and trees come from the sample. Names that are not in the sample and were
    counted are rare, not new. About as many rows are held out as of all rows in memory.
    """
    labels, counts = summary.row_labels()
    found = check_row_labels(labels, counts)
    labels, one_class = opened(detector, labels, counts, given=summary.labelled)
    if detector.feature_map is not None:
        context = FitContext.of(detector, detector.feature_map, labels, one_class=one_class)
        return replace(context, findings=tuple(found))
    sample = summary.sample()
    read = read_row_labels(sample.y, n_rows=len(sample.y), normal=detector.normal, known=labels)
    read = read.trusting_unlabelled() if one_class else read
    doubted = is_doubted(detector, labels, one_class=one_class)
    feature_map, _ = make_feature_map(sample.rows, read, detector, rng, doubted=doubted)
    more = counts[labels.code <= 0].sum() / (read.code <= 0).sum()
    feature_map = _scaled_bounds(feature_map, labels, counts, more=more)
    unconfirmed = unknown_names(feature_map, summary.names)
    rare = rare_names(feature_map)
    more_rare = {name: [*rare[name], *sorted(names)] for name, names in unconfirmed.items()}
    feature_map = with_rare_names(feature_map, more_rare)
    context = FitContext.of(detector, feature_map, labels, one_class=one_class)
    found += check_columns(sample.rows, read.code)
    found += check_order(sample.rows, read.code, detector=detector, feature_map=feature_map)
    return replace(context, unconfirmed_names=unconfirmed, findings=tuple(found))


def _scaled_bounds(
    feature_map: FeatureMap, labels: RowLabels, counts: np.ndarray, *, more: float
) -> FeatureMap:
    """The same with the bounds that so many rows of each label ask for; of normal ones `more`."""
    n_normal = int(counts[labels.code == 0].sum())
    feature_map = with_expected_bounds(feature_map, labels, counts)
    if feature_map.grouping is not None:
        return replace(feature_map, grouping=feature_map.grouping.scaled(more))
    share = held_out(n_normal, doubted=feature_map.anomaly_bound > 0) / n_normal
    share = min(_SLACK * share, 1.0)
    bound = min(feature_map.holdout_bound, int(share * (2**64 - 1)))
    held = [1 + labels.kinds.index(kind) for kind in feature_map.held_kinds]
    n_anomalous = max(int(counts[np.isin(labels.code, held)].sum()), 1)
    share = held_out_anomalies(n_anomalous) / n_anomalous
    anomaly_bound = min(feature_map.anomaly_bound, int(share * (2**64 - 1)))
    return replace(feature_map, holdout_bound=bound, anomaly_bound=anomaly_bound)


def finished(context: FitContext, partial: PartialStatistics) -> _Fit:
    """The context of `agree` when all rows have been summed up: with the bound that these ask for.

    Names that none but held-out rows have are new ones to all others: so held-out rows are read as
    new rows will be. No row that was learnt has such a name, and the sums stay what they are.
    """
    context, partial = settled(context, partial)
    rare = rare_names(context.feature_map)
    confirmed = partial.confirmed_names
    new = {
        c: names - confirmed.get(c, frozenset()) for c, names in context.unconfirmed_names.items()
    }
    kept = {c: [name for name in rare[c] if name not in names] for c, names in new.items()}
    feature_map = with_rare_names(context.feature_map, kept) if kept else context.feature_map
    return replace(context, feature_map=feature_map, unconfirmed_names={}), partial


def _fit_once(detector: Any, rng: np.random.RandomState, batches: _Batches) -> _Fit:
    """The first rows give the context; the bound falls as more come, so that few are held out."""
    first: list[tuple[Table, Any]] = []
    n_rows = 0
    for table, y in batches:
        first.append((table, y))
        n_rows += table.n_rows
        if n_rows >= sample_size(width(table)):
            break
    if not first:
        raise _no_rows()
    table = joined([table for table, _ in first])
    y = np.concatenate([label_objects(y, table.n_rows) for table, y in first])
    fit = _fit_rows(detector, rng, table, y, given=any(y is not None for _, y in first))
    return _ended(detector, *_accumulated(detector, *fit, batches))


def _accumulated(
    detector: Any, context: FitContext, partial: PartialStatistics, batches: _Batches
) -> _Fit:
    """All other batches too, with a lower bound where more rows are held out than are needed."""
    for table, y in batches:
        context = replace(context, known=partial.known)
        partial = partial + accumulate(context, table, y)
        if detector.feature_map is None:
            context, partial = bounded(context, partial)
    return context, partial


def _ended(detector: Any, context: FitContext, partial: PartialStatistics) -> _Fit:
    """The bound settled, where the feature map is this fit's own."""
    return finished(context, partial) if detector.feature_map is None else (context, partial)


def _fit_rows(
    detector: Any, rng: np.random.RandomState, table: Table, y: np.ndarray, *, given: bool
) -> _Fit:
    labels = read_row_labels(y if given else None, n_rows=table.n_rows, normal=detector.normal)
    return first_fit(detector, rng, table, labels, given=given, whole=False)


def _no_rows() -> UserError:
    return UserError("There are no rows: expected at least one batch with some.")


def rare_names(feature_map: FeatureMap) -> dict[str, list[str]]:
    """The rare names of each column of names."""
    return {name: learnt.rare for name, learnt in _categories(feature_map.encoder).items()}


def unknown_names(
    feature_map: FeatureMap, counted: Mapping[str, Mapping[str, int]]
) -> dict[str, frozenset[str]]:
    """Those of the names counted in each column that the encoder takes for new ones."""
    found = {
        name: frozenset(counted.get(name, ())) - {*learnt.frequent, *learnt.rare}
        for name, learnt in _categories(feature_map.encoder).items()
    }
    return {name: names for name, names in found.items() if names}


def with_rare_names(feature_map: FeatureMap, rare: Mapping[str, list[str]]) -> FeatureMap:
    """The same map with other rare names, none of which a landmark has or loses.

    Where a column has its first rare name, or none any more, it has one output more or less, which
    is 0 at all landmarks.
    """
    state = state_of(feature_map.encoder)
    for name, column in zip(_names(feature_map.encoder), state["columns"], strict=True):
        if name in rare:
            column["rare"] = list(rare[name])
    encoder = encoder_of(state)
    old, new = _outputs(feature_map.encoder), _outputs(encoder)
    landmarks = np.zeros((len(feature_map.landmarks), len(new)), dtype=np.float32)
    there = [i for i, output in enumerate(old) if output in new]
    landmarks[:, [new.index(old[i]) for i in there]] = feature_map.landmarks[:, there]
    return replace(feature_map, encoder=encoder, landmarks=landmarks)


def _categories(encoder: FittedEncoder) -> dict[str, Category]:
    columns = zip(_names(encoder), encoder.columns_, strict=True)
    return {n: c for n, c in columns if isinstance(c, Category) and not c.boolean}


def _names(encoder: FittedEncoder) -> list[str]:
    n = encoder.n_features_in_
    return list(getattr(encoder, "feature_names_in_", [f"x{i}" for i in range(n)]))


def _outputs(encoder: FittedEncoder) -> list[tuple[int, str]]:
    """The outputs that count, each by its column and what it says."""
    return [
        (j, output)
        for j, learnt in enumerate(encoder.columns_)
        if learnt is not None
        for output, weight in zip(learnt.outputs, learnt.weights, strict=True)
        if weight > 0
    ]
