"""What a detector finds among rows that it has not learnt, and what to expect of new rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.detector import Detector
from eqsep.detector.model import Model
from eqsep.evaluation import OVERALL, Curve, Interval, ScoreHistogram, precision_recall_by_kind
from eqsep.evaluation.assessment import group_rates, promise_of
from eqsep.evaluation.kinds import anomalous_kinds, average_precision_interval, score_histogram
from eqsep.evaluation.names import Names, names_on
from eqsep.evaluation.promises import (
    BROKEN,
    RATES,
    GroupRates,
    MeasuredPromise,
    Share,
    kept_promises,
)
from eqsep.labels import WITHOUT
from eqsep.report.learnt import LearntSummary
from eqsep.tables.reading import Table, read_table

_RESAMPLES = 300


@dataclass(frozen=True)
class FoundKind:
    """What is found of one kind, or of several together."""

    kind: str
    rows: int
    precision: Interval  # average precision against all normal rows
    caught: float  # the share of its rows above the threshold of the report's detector
    caught_at: dict[float, float]  # at other false-alarm rates
    caught_by_copy: float  # above the threshold of the copy that is measured

    @property
    def recall(self) -> Share:
        """The same share with its interval."""
        return Share.counted(round(self.caught * self.rows), self.rows)


@dataclass(frozen=True)
class Spread:
    """How the scores of held-out rows are spread: by kind, and over promised thresholds."""

    curves: dict[str, Curve]  # none without anomalies
    histogram: ScoreHistogram
    promises: tuple[MeasuredPromise, ...]  # none if whole groups calibrate


def spread_of(model: Model, score: np.ndarray, kind: np.ndarray, *, normal: str) -> Spread:
    """The curves, the histogram and the promises of scored rows, normal ones among them."""
    is_normal = kind == normal
    promises: tuple[MeasuredPromise, ...] = ()
    if model.plan.holdout.grouping is None:  # otherwise they are for new groups, of which few exist
        normal_scores, ordered = score[is_normal], model.calibration.ordered
        rates = {*RATES} - {float(model.promise.false_alarm_rate)}
        others = kept_promises(normal_scores, calibration=ordered, rates=sorted(rates))
        own = [promise_of(model, normal_scores > model.threshold)] * (model.rank > 0)
        promises = tuple(sorted((*others, *own), key=lambda one: one.rate))
    return Spread(
        curves={} if is_normal.all() else precision_recall_by_kind(score, kind, normal=normal),
        histogram=score_histogram(score, kind, normal=normal, threshold=model.threshold),
        promises=promises,
    )


@dataclass(frozen=True)
class Measured(Spread):
    """What a detector finds among held-out rows."""

    normal: str  # the name of the rows that count as normal
    normal_rows: int
    doubted: bool  # whether some of these may be anomalies
    seen: tuple[FoundKind, ...]
    unseen: tuple[FoundKind, ...]
    together: dict[str, FoundKind]  # all "seen" kinds, all "unseen" ones; "overall" if both exist
    names: Names
    by_group: GroupRates | None = None


def measured_on(
    trial: Detector, table: Table, kind: np.ndarray, *, normal: str, limit: float, doubted: bool
) -> Measured:
    """Measure a detector, also at a threshold of `limit`, on rows that it has not learnt."""
    model = trial.model_
    score = model.scores(table)
    alarm, is_normal = score > model.threshold, kind == normal
    spread = spread_of(model, score, kind, normal=normal)
    names = anomalous_kinds(kind, normal)
    seen, unseen = ([n for n in names if (n in model.kinds) == known] for known in (True, False))

    def intervals(wanted: list[str]) -> dict[str, Interval]:
        rows = is_normal | np.isin(kind, wanted)
        return average_precision_interval(
            score[rows], kind[rows], normal=normal, n_resamples=_RESAMPLES, random_state=0
        )

    def found(name: str, rows: np.ndarray, precision: Interval) -> FoundKind:
        return FoundKind(
            kind=name,
            rows=int(rows.sum()),
            precision=precision,
            caught=float(np.mean(score[rows] > limit)),
            caught_at={p.rate: float(np.mean(score[rows] > p.threshold)) for p in spread.promises},
            caught_by_copy=float(alarm[rows].mean()),
        )

    by_kind = intervals(names) if names else {}
    parts = {"seen": seen, "unseen": unseen, OVERALL: names if seen and unseen else []}
    together = {}
    for name, part in parts.items():
        if part:
            precision = (by_kind if part == names else intervals(part))[OVERALL]
            together[name] = found(name, np.isin(kind, part), precision)
    return Measured(
        **vars(spread),
        normal=normal,
        normal_rows=int(is_normal.sum()),
        doubted=doubted,
        seen=tuple(found(name, kind == name, by_kind[name]) for name in seen),
        unseen=tuple(found(name, kind == name, by_kind[name]) for name in unseen),
        together=together,
        by_group=group_rates(model, table, alarm, is_normal),
        names=names_on(model, table, kind, normal=normal),
    )


@dataclass(frozen=True)
class Workload:
    """The alarms to look at in a thousand rows, if anomalies are as common as in the fit."""

    anomalies: float  # the share of rows that are of a seen kind
    alarms: float
    false_alarms: float

    @property
    def false_share(self) -> float:
        """Of the alarms."""
        return self.false_alarms / self.alarms if self.alarms else 0.0


def workload(learnt: LearntSummary, measured: Measured) -> Workload | None:
    """The alarms in a thousand rows, at the model's threshold; None if no rate is promised."""
    # The copy's false alarms are counted at its own threshold, so the promised rate is used.
    own = [(one.verdict, one.measured) for one in measured.promises if one.rate == learnt.rate]
    if measured.by_group is not None:
        own.append((measured.by_group.verdict, measured.by_group.mean))
    broken = [rate for verdict, rate in own if verdict.word == BROKEN]
    # A row without a label is most likely normal.
    normal = learnt.counts.get(measured.normal, 0) + learnt.counts.get(WITHOUT, 0)
    if measured.doubted or not learnt.promised or not normal:
        return None
    rows = {one.kind: learnt.counts.get(one.kind, 0) for one in measured.seen}
    found = sum(rows[one.kind] * one.caught for one in measured.seen)
    total = normal + sum(rows.values())
    false = 1000 * max([learnt.rate, *broken]) * normal / total
    return Workload(1 - normal / total, false + 1000 * found / total, false)


@dataclass(frozen=True)
class LaterRows:
    """The last rows in time, and a detector fitted only to the rows before them."""

    X: Any
    kind: np.ndarray
    detector: Detector
    n_before: int


@dataclass(frozen=True)
class LaterShares:
    """How a detector of earlier rows does on the last rows."""

    before: int  # the rows that it learnt
    after: int  # those that came last
    normal: float  # the share of later normal rows that raise an alarm
    caught: dict[str, tuple[int, float]]  # of each later kind, its rows and the share of alarms


def later_shares(later: LaterRows, *, normal: str) -> LaterShares:
    """The alarms among the last rows."""
    table = read_table(later.X, name="later_shares")
    alarm = later.detector.score_samples(table) > later.detector.threshold_
    caught = {}
    for name in anomalous_kinds(later.kind, normal):
        rows = later.kind == name
        caught[name] = int(rows.sum()), float(alarm[rows].mean())
    share = float(alarm[later.kind == normal].mean())
    return LaterShares(later.n_before, table.n_rows, share, caught)
