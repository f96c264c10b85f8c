"""A fit: what is agreed on first, and what rows teach under it, as sums that add up.

A fit is the same three steps in memory, over a stream and over several machines: agree on the
context from some rows, accumulate the partial statistics of all of them, and finish. Partial
statistics depend on the context and their own rows alone; both can be sent, and partial statistics
add up in any order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from eqsep.batches.joining import joined
from eqsep.checks import (
    CAUTIONS,
    Finding,
    check_columns,
    check_dates,
    check_doubt,
    check_row_labels,
    check_threshold,
)
from eqsep.detector.choosing import make_feature_map
from eqsep.detector.contamination import MOST
from eqsep.detector.feature_map import FeatureMap, name_columns
from eqsep.detector.holdout import check_dependence, held_out, without_copies
from eqsep.detector.naming import KindRows, thinned
from eqsep.detector.scoring import MOST_HELD, NO_GROUPS, Held
from eqsep.detector.trust import is_calibration_doubted, is_doubted, opened
from eqsep.detector.windows import Windows
from eqsep.engine.nystroem import Statistics, widened
from eqsep.labels import UNLABELLED, RowLabels, read_row_labels
from eqsep.tables.reading import Table, read_table

Names = Mapping[str, frozenset[str]]  # some names of some columns


@dataclass(frozen=True)
class FitContext:
    """What is agreed on before rows are learnt, so that partial statistics add up.

    Attributes
    ----------
    feature_map : FeatureMap
    known : RowLabels
        How labels are read, and the kinds known so far; no rows.
    one_class : bool
        Whether rows without a label are normal ones, of which some calibrate.
    normal : label or None
    unlabelled_weight : float
        What a row without a label counts where it is not; 1 where it is doubted.
    device : {"cpu", "cuda", "auto"}
        Where kernel values are computed and summed up.
    unconfirmed_names : mapping of str to set of str
        Names that the encoder knows only from having counted all rows: such a name goes in the
        end where none but held-out rows have it.
    findings : tuple of Finding
        What is to be looked at in the first rows, or in the sample of all.
    """

    feature_map: FeatureMap
    known: RowLabels
    one_class: bool
    normal: Any = None
    unlabelled_weight: float = 0.01
    device: str = "cpu"
    unconfirmed_names: Names = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(
        cls, detector: Any, feature_map: FeatureMap, known: RowLabels, *, one_class: bool
    ) -> "FitContext":
        """The context of a detector's parameters with this feature map."""
        weight = 1.0 if feature_map.doubted and not one_class else detector.unlabelled_weight
        parameters = (detector.normal, weight, detector.device)
        return cls(feature_map, known.of_no_row(), one_class, *parameters)

    def row_labels(self, y: Any, *, n_rows: int) -> RowLabels:
        """What the labels of more rows say."""
        labels = read_row_labels(y, n_rows=n_rows, normal=self.normal, known=self.known)
        return labels.trusting_unlabelled() if self.one_class else labels

    def holding_out_below(self, bound: int, *, anomalous: bool = False) -> "FitContext":
        """The same where fewer rows, normal or `anomalous`, are held out."""
        old, bound = self.feature_map, int(bound)
        by_bound = (
            replace(old, anomaly_bound=bound) if anomalous else replace(old, holdout_bound=bound)
        )
        return replace(self, feature_map=by_bound)


@dataclass(frozen=True)
class HeldOut:
    """Rows held out of the fit: as they came, their hashes, all below the bounds, and their codes.

    Of rows in groups the hash is that of the group. Those of code 0 are the normal rows of the
    calibration set, the others labelled anomalies.
    """

    table: Table
    hashes: np.ndarray
    code: np.ndarray

    def __add__(self, other: "HeldOut") -> "HeldOut":
        if not len(other.hashes):
            return self
        table = joined([self.table, other.table]) if len(self.hashes) else other.table
        hashes = np.concatenate([self.hashes, other.hashes])
        return HeldOut(table, hashes, np.concatenate([self.code, other.code]))

    def take(self, rows: np.ndarray) -> "HeldOut":
        """Some of them."""
        return HeldOut(self.table.take(rows), self.hashes[rows], self.code[rows])

    def encoded(self, feature_map: FeatureMap) -> Held:
        """The normal rows and the anomalies, encoded."""
        rows, normal = feature_map.rows(self.table), self.code == 0
        groups = self.hashes[normal] if feature_map.grouping else NO_GROUPS
        return Held(rows[normal], rows[self.code > 0], groups)


@dataclass(frozen=True)
class PartialStatistics:
    """What some rows teach.

    Attributes
    ----------
    statistics : Statistics
        The sums over the rows that are learnt.
    held_out : HeldOut
    kind_rows : KindRows
        Some of the learnt rows of the seen kinds, to name alarms by.
    known : RowLabels
        How labels are read, and the kinds known so far; no rows.
    n_normal : int
        The normal rows, held out or not.
    confirmed_names : mapping of str to set of str
        Which of the context's unconfirmed names a learnt row has.
    """

    statistics: Statistics
    held_out: HeldOut
    kind_rows: KindRows
    known: RowLabels
    n_normal: int
    confirmed_names: Names

    def __add__(self, other: "PartialStatistics") -> "PartialStatistics":
        kinds = tuple(dict.fromkeys((*self.known.kinds, *other.known.kinds)))
        columns = [0, *(1 + kinds.index(kind) for kind in other.known.kinds)]
        mine = widened(self.statistics, 1 + len(kinds))
        names = {
            column: self.confirmed_names.get(column, frozenset()) | found
            for column, found in other.confirmed_names.items()
        }
        return PartialStatistics(
            mine + widened(other.statistics, 1 + len(kinds), columns=columns),
            self.held_out + replace(other.held_out, code=np.array(columns)[other.held_out.code]),
            self.kind_rows + other.kind_rows,
            self.known.joined(other.known),
            self.n_normal + other.n_normal,
            {**self.confirmed_names, **names},
        )


def context_of(detector: Any, *, judged: bool = False) -> FitContext:
    """What a fitted detector has agreed on: more rows are accumulated in it.

    Rows that were `judged` because they raised an alarm are all learnt: none is held out.
    """
    check_is_fitted(detector)
    feature_map, known = detector.feature_map_, detector.labels_
    if judged:
        feature_map = replace(feature_map, holdout_bound=0, anomaly_bound=0)
    return FitContext.of(detector, feature_map, known, one_class=detector.one_class_)


def record_context(detector: Any, context: FitContext) -> None:
    """Record what a first fit has agreed on; the columns as scikit-learn's estimators do.

    Of what is to be looked at, what breaks the promise is kept.
    """
    detector.feature_map_, detector.one_class_ = context.feature_map, context.one_class
    detector.caution_ = next((f for f in context.findings if f.category in CAUTIONS), None)
    name_columns(detector)


def classes_of(known: RowLabels) -> np.ndarray:
    """The two labels that `predict` answers with."""
    labels = known.labels
    classes = np.arange(2) if labels is None or labels.by_name else labels.classes
    if classes.dtype.kind == "f" and not (classes % 1).any():
        classes = classes.astype(int)  # floats only because a label was missing
    return classes


def first_fit(
    detector: Any,
    rng: np.random.RandomState,
    table: Table,
    labels: RowLabels,
    *,
    given: bool,
    whole: bool = True,
) -> tuple[FitContext, PartialStatistics]:
    """The context that all rows, or the first ones, give, and what these rows teach.

    Parameters
    ----------
    given : bool
        Whether labels were passed at all.
    whole : bool, default=True
        Whether these are all rows: only then it is known which are copies of others.
    """
    found = check_row_labels(labels)
    labels, one_class = opened(detector, labels, np.ones(len(labels.code)), given=given)
    if whole and detector.feature_map is None and detector.window is None:
        table, labels, copies = without_copies(table, labels)
        found += copies
    found += check_columns(table, labels.code)
    feature_map = detector.feature_map
    if feature_map is None:
        doubted = is_doubted(detector, labels, one_class=one_class)
        if detector.window is not None:
            table = Windows.of(table, detector.window).transform(table)
        feature_map, Z = make_feature_map(table, labels, detector, rng, doubted=doubted)
    else:
        table = feature_map.aligned(table)
        Z = feature_map.rows(table)
    found += check_order(table, labels.code, detector=detector, feature_map=feature_map)
    context = FitContext.of(detector, feature_map, labels, one_class=one_class)
    context = replace(context, findings=tuple(found))
    partial = accumulate_encoded(context, table, labels, Z)
    return (context, partial) if detector.feature_map is not None else thin(context, partial)


def check_order(
    table: Table, code: np.ndarray, *, detector: Any, feature_map: FeatureMap
) -> list[Finding]:
    """What the order of the rows says against the promise: by their times, or as they came."""
    if table.groups is None or table.groups.columns[1] is None:
        return check_dependence(table, code)
    from eqsep.detector.drift import check_time  # makes small fits, and only of rows in time

    return check_time(table, code, detector=detector, feature_map=feature_map)


def accumulate(context: FitContext, X: Any, y: Any = None) -> PartialStatistics:
    """What the rows of the table `X` with the labels `y` teach in this context.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> detector = Detector(n_landmarks=50, bandwidth=0.5, random_state=0).fit(X)
    >>> context = context_of(detector)
    >>> both = accumulate(context, X[:300]) + accumulate(context, X[300:])
    >>> bool(np.allclose(both.statistics.gram, detector.statistics_.gram))
    True
    """
    table = context.feature_map.aligned(read_table(X, name="Detector"))
    labels = context.row_labels(y, n_rows=table.n_rows)
    return accumulate_encoded(context, table, labels, context.feature_map.rows(table))


def accumulate_encoded(
    context: FitContext, table: Table, labels: RowLabels, Z: np.ndarray
) -> PartialStatistics:
    """The same of an aligned table whose labels have been read; `Z` are its rows encoded."""
    feature_map = context.feature_map
    *parts, hashes = feature_map.divided(table, labels)
    learnt, kept = map(np.flatnonzero, parts)
    return PartialStatistics(
        _sums(context, Z[learnt], labels.code[learnt], len(labels.kinds), table.weights(learnt)),
        HeldOut(table.take(kept), hashes[kept], labels.code[kept]),
        KindRows.of(feature_map, Z, labels, learnt, hashes),
        labels.of_no_row(),
        int((labels.code == 0).sum()),
        _confirmed(context, table, learnt),
    )


def hold_out_at_most(
    context: FitContext, partial: PartialStatistics, *, most: int, anomalous: bool = False
) -> tuple[FitContext, PartialStatistics]:
    """A lower bound, under which at most so many rows, normal or `anomalous`, are held out.

    The others are learnt: all is as if the bound had been that from the start. Equal rows of
    different pieces go together; where that would leave less than half, more rows stay held out.
    """
    held = partial.held_out
    concerned = (held.code > 0) == anomalous
    hashes = np.sort(held.hashes[concerned])
    if len(hashes) <= most:
        return context, partial
    bound = hashes[most]
    if 2 * (hashes < bound).sum() < most:
        bound = bound + np.uint64(1)
    lower = context.holding_out_below(bound, anomalous=anomalous)
    leaves = concerned & (held.hashes >= bound)
    kept, moved = np.flatnonzero(~leaves), np.flatnonzero(leaves)
    table, labels = held.table.take(moved), replace(partial.known, code=held.code[moved])
    Z, all_rows = lower.feature_map.rows(table), np.arange(len(moved))
    more = PartialStatistics(
        _sums(lower, Z, labels.code, len(labels.kinds), table.weight),
        held.take(moved[:0]),
        KindRows.of(lower.feature_map, Z, labels, all_rows, held.hashes[moved]),
        partial.known,
        0,
        _confirmed(lower, table, all_rows),
    )
    return lower, replace(partial, held_out=held.take(kept)) + more


def bounded(
    context: FitContext, partial: PartialStatistics
) -> tuple[FitContext, PartialStatistics]:
    """The same, or lower bounds where more rows are held out than are ever needed."""
    context, partial = thin(context, partial, most=2.0)
    if context.feature_map.grouping is not None:
        return context, partial  # of large groups some rows calibrate
    for most, anomalous in ((MOST_HELD, False), (MOST, True)):
        if ((partial.held_out.code > 0) == anomalous).sum() > 2 * most:
            context, partial = hold_out_at_most(context, partial, most=most, anomalous=anomalous)
    return context, partial


def settled(
    context: FitContext, partial: PartialStatistics
) -> tuple[FitContext, PartialStatistics]:
    """The bound that all rows together ask for: the one that a fit in memory would have chosen."""
    context, partial = thin(context, partial)
    if context.feature_map.grouping is not None:
        return context, partial
    doubted = context.feature_map.anomaly_bound > 0
    return hold_out_at_most(context, partial, most=held_out(partial.n_normal, doubted=doubted))


def thin(
    context: FitContext, partial: PartialStatistics, *, most: float = 1.0
) -> tuple[FitContext, PartialStatistics]:
    """The same with fewer rows to name alarms by, where there are more than it takes."""
    feature_map, kept = thinned(context.feature_map, partial.kind_rows, most=most)
    return replace(context, feature_map=feature_map), replace(partial, kind_rows=kept)


def _sums(
    context: FitContext, Z: np.ndarray, code: np.ndarray, n_kinds: int, counts: np.ndarray | None
) -> Statistics:
    weight = np.where(code == UNLABELLED, context.unlabelled_weight, 1.0)
    weight = weight if counts is None else weight * counts
    target = np.zeros((len(code), 1 + n_kinds))
    target[np.arange(len(code)), np.maximum(code, 0)] = 1.0
    kernel_map = context.feature_map.on(context.device)

    def of(rows: np.ndarray) -> Statistics:
        total = weight[rows] @ target[rows]
        return kernel_map.statistics(Z[rows], target[rows], weight[rows], total=total)

    if context.feature_map.likeness_weight:
        others, anomalous = of(np.flatnonzero(code <= 0)), of(np.flatnonzero(code > 0))
        sums = replace(others + anomalous, anomalous=anomalous.gram)
    else:
        sums = of(np.arange(len(code)))
    feature_map = context.feature_map
    if feature_map.trees is None:
        return sums
    seen = feature_map.seen(Z, feature_map.along(Z))
    return replace(sums, leaves=feature_map.trees.sums(seen, weight[:, None] * target))


def _confirmed(context: FitContext, table: Table, learnt: np.ndarray) -> Names:
    """Which unconfirmed names some learnt rows have."""
    confirmed: dict[str, frozenset[str]] = {}
    for column in table.columns:
        unconfirmed = context.unconfirmed_names.get(column.name)
        if unconfirmed:
            names, rows = column.names()
            found = np.unique(rows[learnt]).tolist()
            confirmed[column.name] = frozenset(n for i in found if (n := names[i]) in unconfirmed)
    return confirmed


def check_fitted(detector: Any) -> list[Finding]:
    """What is to be looked at in a detector once it is fitted."""
    found = check_doubt(detector.unlabelled, kinds=detector.kinds_)
    found += check_dates(detector.feature_map_.encoder)
    rate, doubted = detector.promised_rate_, is_calibration_doubted(detector)
    return found + check_threshold(detector.threshold_, rate=rate, doubted=doubted)
