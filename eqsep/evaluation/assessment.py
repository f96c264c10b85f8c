"""Measure a fitted detector on labelled rows: what it finds, how soon, and at what cost."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import poisson

from eqsep.detector.detector import Detector
from eqsep.detector.model import Model
from eqsep.errors import ParameterError, UserError
from eqsep.evaluation.kinds import OVERALL, Interval, average_precision_interval, roc_auc_interval
from eqsep.evaluation.names import Names, names_on
from eqsep.evaluation.promises import (
    GroupRates,
    MeasuredPromise,
    PromiseVerdict,
    Share,
    kept_promise,
)
from eqsep.labels import NORMAL, UNLABELLED, label_codes
from eqsep.tables.reading import read_table

_RESAMPLES = 300
_CHANCE = 0.05  # of alarms that come as soon if nothing is wrong


@dataclass(frozen=True, eq=False)
class Review:
    """How alarms are reviewed: how many of the highest scores, by day and entity, at what cost.

    Days, entities, times and runs are array-likes of shape (n_rows,).
    """

    top: int = 20  #: How many of the highest scores to look at, in all and by day and entity.
    day: Any = None
    entity: Any = None  #: The card, host or machine of each row; a row without one is its own.
    #: What it costs to look at an alarm, true or false, and to miss an anomaly: both or neither.
    cost_alarm: float | None = None
    cost_miss: float | None = None
    time: Any = None  #: Numbers or dates. With times or runs, the detection delay is measured.
    run: Any = None
    persist: Any = None  #: Which alarms count for the delay, as in `detection_delay`.

    def check(self, n_rows: int) -> None:
        """Refuse values that do not fit this number of rows."""
        if self.top < 1:
            raise ParameterError("top", expected="a number of rows, 1 or more", got=self.top)
        for name in ("cost_alarm", "cost_miss"):
            cost = getattr(self, name)
            if cost is not None and cost < 0:
                raise ParameterError(name, expected="a number of at least 0", got=cost)
        if (self.cost_alarm is None) != (self.cost_miss is None):
            hint = "Pass both cost_alarm and cost_miss, or neither."
            message = "Got one cost: the cost of an alarm and the cost of a miss go together."
            raise UserError(message, hint=hint, topic="lone_cost")
        for name in ("day", "entity", "time", "run"):
            values = getattr(self, name)
            if values is not None and len(values) != n_rows:
                message = f"Expected the {name} of each of {n_rows:,} rows, got {len(values):,}."
                raise UserError(message)


@dataclass(frozen=True)
class TopScores:
    """What you find if you look only at the highest scores."""

    among: str  #: Where the highest are taken from: "all", each "day" or each "entity".
    #: Whether the rows of one entity (on one day) are one incident, which has the score of its
    #: highest row and is anomalous if one of its rows is. Otherwise single rows are counted.
    incidents: bool
    groups: int  #: How many days or entities there are.
    precision: Share
    recall: Share


@dataclass(frozen=True)
class Cost:
    """The cost of a threshold on these rows: alarms to look at, and missed anomalies."""

    threshold: float
    alarms: int
    false_alarms: int
    missed: int
    total: float


@dataclass(frozen=True)
class AssessedKind:
    """What is found of one kind of anomaly, or of all together."""

    kind: str
    seen: bool  #: Whether the detector has learnt rows of it.
    recall: Share  #: Of its rows, those that raise an alarm.
    precision: Share  #: Of the alarms among its rows and normal ones, those among its rows.
    average_precision: Interval  #: Of its rows against all normal ones, whatever the threshold.
    roc_auc: Interval

    @property
    def rows(self) -> int:
        """How many rows of it there are."""
        return self.recall.total


@dataclass(frozen=True)
class KindDelay:
    """The episodes of one kind, or of all together."""

    kind: str
    found: Share  #: Of its episodes, those in which a row raises an alarm.
    rows: tuple[int, ...]  #: The rows before the first alarm of each episode that is found, sorted.
    times: tuple[float, ...] = ()  #: The same in time, if known; in seconds if times are dates.
    by_chance: float = 0.0  #: The share of its episodes that false alarms alone would find.
    chance_rows: float = 0.0  #: The median delay of those.
    #: Whether alarms come sooner or more often than false alarms explain (5 % level).
    beats_chance: bool = True


@dataclass(frozen=True)
class DetectionDelay:
    """How many episodes are found, how soon, and with how many false alarms."""

    kinds: tuple[KindDelay, ...]  #: In alphabetical order, and last "overall", all together.
    false_episodes: int  #: Stretches of consecutive normal rows in a run that all raise an alarm.
    normal_rows: int
    by_date: bool = False  #: Whether times are dates.
    persistent: bool = False  #: Whether only persistent alarms count.


@dataclass(frozen=True)
class Assessment:
    """How a fitted detector does on labelled rows."""

    kinds: tuple[AssessedKind, ...]  #: In alphabetical order.
    overall: AssessedKind | None  #: All anomalies together; None if there are none.
    threshold: float
    false_alarms: Share  #: Of the normal rows, those that raise an alarm.
    promise: MeasuredPromise | None  #: None if whole groups calibrate.
    #: "new groups" or "new time blocks" if whole ones calibrate. Their rows are alike, so counting
    #: rows cannot show whether the promise is kept.
    promised_for: str | None
    groups: GroupRates | None  #: If whole groups calibrate, and those of the rows are known.
    names: Names
    top: tuple[TopScores, ...]
    costs: dict[str, Cost]  #: At the "present" and the "best" threshold; empty without costs.
    review: Review
    delay: DetectionDelay | None = None  #: None if neither times nor runs are known.

    @property
    def verdict(self) -> PromiseVerdict | None:
        """Whether the promise is kept; None if it is for groups that are not known."""
        kept = self.groups if self.promise is None else self.promise
        return None if kept is None else kept.verdict

    @property
    def mean_average_precision(self) -> float:
        """The mean over kinds, in which a rare kind counts as much as a common one."""
        return float(np.mean([one.average_precision.value for one in self.kinds]))


def assess(
    detector: Detector,
    X: Any,
    kind: Any,
    *,
    normal: str = NORMAL,
    review: Review | None = None,
    random_state: Any = 0,
) -> Assessment:
    """Measure a fitted `eqsep.Detector` on labelled rows that it has not learnt.

    Learnt rows would flatter the detector: `eqsep.detector.learnt_before` finds them. The best
    threshold is the best for *these* rows; on other rows it will cost somewhat more.

    Parameters
    ----------
    detector : Detector
    X : table
    kind : array-like of str of shape (n_rows,)
        The kind of each row, named as in the fit; some must be normal.
    normal : str, default="normal"
        The name of the normal kind.
    review : Review, default=None
        How many of the highest scores to look at, by day and entity, and at what cost.
    random_state : int, RandomState or None, default=0
        Of the intervals of average precision and ROC AUC.

    Examples
    --------
    >>> from eqsep.datasets import make_mixed_demo
    >>> old, new = (make_mixed_demo(n_samples=900, random_state=seed) for seed in (0, 1))
    >>> detector = Detector(n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.05, random_state=0)
    >>> found = assess(detector.fit(old.X, old.kind), new.X, new.kind)
    >>> str(found.verdict), found.overall.rows, [one.seen for one in found.kinds][:2]
    ('kept', 90, [True, True])
    """
    review, model = review or Review(), detector.model_
    score, kind = model.scores(X), np.asarray(kind).astype(str)
    if len(score) != len(kind):
        raise UserError(f"Expected the kind of each of {len(score):,} rows, got {len(kind):,}.")
    if normal not in kind:
        raise UserError(
            f"A test measures false alarms, and no row is {normal!r}: the kinds are "
            f"{sorted(set(kind.tolist()))}. Pass the name of the normal kind: normal=..."
        )
    review.check(len(score))
    alarm, is_anomaly = score > model.threshold, kind != normal
    draws = {"normal": normal, "n_resamples": _RESAMPLES, "random_state": random_state}
    kinds = _by_kind(score, kind, alarm, seen=model.kinds, **draws) if is_anomaly.any() else []
    grouping = model.plan.holdout.grouping
    delay = None
    if review.time is not None or review.run is not None:
        rows: Any = {"time": review.time, "groups": review.run, "persist": review.persist}
        delay = detection_delay(alarm, kind, normal=normal, **rows)
    return Assessment(
        kinds=tuple(kinds[:-1]),
        overall=kinds[-1] if kinds else None,
        threshold=model.threshold,
        false_alarms=Share.of(alarm[~is_anomaly]),
        promise=promise_of(model, alarm[~is_anomaly]) if grouping is None else None,
        promised_for=None if grouping is None else grouping.promised,
        groups=group_rates(model, X, alarm, ~is_anomaly, known_times=True),
        names=names_on(model, X, kind, normal=normal),
        top=tuple(_top_scores(score, is_anomaly, review)),
        costs=_costs(score, is_anomaly, model.threshold, review),
        review=review,
        delay=delay,
    )


def group_rates(
    model: Model, X: Any, alarm: np.ndarray, is_normal: np.ndarray, *, known_times: bool = False
) -> GroupRates | None:
    """The false-alarm rate of each group; None unless whole groups calibrate and 2 are known."""
    grouping = model.plan.holdout.grouping
    if grouping is None or (groups := read_table(X, name="assess").groups) is None:
        return None
    units = grouping.units(groups, key=model.plan.holdout.key)[is_normal]
    _, place, n_rows = np.unique(units, return_inverse=True, return_counts=True)
    if len(n_rows) < 2:
        return None
    rates = np.bincount(place, weights=alarm[is_normal]) / n_rows
    held, counting = model.calibration, model.calibration.counting
    _, place, n_rows = np.unique(held.groups[counting], return_inverse=True, return_counts=True)
    above = np.bincount(place, weights=held.scores[counting] > model.threshold) / n_rows
    in_fit = np.isin(units, held.groups)
    if grouping.edges and grouping.columns[0] is None:
        time = groups.time[is_normal]
        in_fit = (grouping.edges[0] <= time) & (time <= grouping.edges[-1])
    return GroupRates.of(
        rates,
        promised=float(model.promise.false_alarm_rate) if model.rank else None,
        luck=float(np.std(above) / np.sqrt(max(len(above), 1))),
        unit=grouping.unit,
        # Without `known_times`, blocks were cut out of those of the fit.
        known=len(np.unique(units[in_fit])) if known_times or not grouping.edges else 0,
    )


def promise_of(model: Model, alarm: np.ndarray) -> MeasuredPromise:
    """The promise of a model without groups, given the alarms among normal rows."""
    rate, n = float(model.promise.false_alarm_rate), model.calibration.n_units
    kept = kept_promise(int(alarm.sum()), len(alarm), rate=rate, rank=model.rank, held_out=n)
    return replace(kept, threshold=model.threshold)


def _by_kind(
    score: np.ndarray, kind: np.ndarray, alarm: np.ndarray, *, seen: tuple[str, ...], **draws: Any
) -> list[AssessedKind]:
    """Each kind of anomaly in order, then all together."""
    is_normal = kind == draws["normal"]
    precision = average_precision_interval(score, kind, **draws)
    roc = roc_auc_interval(score, kind, **draws)
    n_false = int(alarm[is_normal].sum())
    recalls = {
        name: Share.of(alarm[~is_normal if name == OVERALL else kind == name]) for name in precision
    }
    true = {name: Share.counted(one.count, one.count + n_false) for name, one in recalls.items()}
    return [
        AssessedKind(
            name,
            name in seen,
            recall=recall,
            precision=true[name],
            average_precision=precision[name],
            roc_auc=roc[name],
        )
        for name, recall in recalls.items()
    ]


def _top_scores(score: np.ndarray, is_anomaly: np.ndarray, review: Review) -> Iterator[TopScores]:
    """The highest of all, of each day and of each entity: rows, and incidents if known."""
    n = len(score)
    groups = {"all": np.zeros(n, dtype=int)}
    incident = None
    if review.day is not None:
        groups["day"] = label_codes(review.day, n)[1]
    if review.entity is not None:
        entity = label_codes(review.entity, n)[1]
        groups["entity"] = np.where(entity == UNLABELLED, n + np.arange(n), entity)  # one by itself
        both = np.column_stack([groups["entity"], groups.get("day", groups["all"])])
        incident = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    for among, group in groups.items():
        if among != "all" and np.unique(group, return_counts=True)[1].max() <= review.top:
            continue  # every row would be looked at
        yield _highest(score, is_anomaly, group, top=review.top, among=among, incidents=False)
        if incident is None or (among == "entity" and "day" not in groups):  # one of each entity
            continue
        m = incident.max() + 1
        high, anomalous, of_group = np.full(m, -np.inf), np.zeros(m, bool), np.zeros(m, int)
        np.maximum.at(high, incident, score)
        np.logical_or.at(anomalous, incident, is_anomaly)
        of_group[incident] = group
        yield _highest(high, anomalous, of_group, top=review.top, among=among, incidents=True)


def _highest(
    score: np.ndarray, is_anomaly: np.ndarray, group: np.ndarray, *, top: int, **what: Any
) -> TopScores:
    order = np.lexsort([-score, group])
    first = np.searchsorted(group[order], group[order])  # where the group of each begins
    looked = order[np.arange(len(order)) - first < top]
    hits = int(is_anomaly[looked].sum())
    return TopScores(
        **what,
        groups=len(np.unique(group)),
        precision=Share.counted(hits, len(looked)),
        recall=Share.counted(hits, int(is_anomaly.sum())),
    )


def _costs(
    score: np.ndarray, is_anomaly: np.ndarray, threshold: float, review: Review
) -> dict[str, Cost]:
    """At the present threshold and at the cheapest one (of equals, the highest)."""
    a_alarm, a_miss = review.cost_alarm, review.cost_miss
    if a_alarm is None or a_miss is None:
        return {}

    def cost(limit: float) -> Cost:
        alarm = score > limit
        alarms, missed = int(alarm.sum()), int((is_anomaly & ~alarm).sum())
        false, total = int((alarm & ~is_anomaly).sum()), a_alarm * alarms + a_miss * missed
        return Cost(threshold=limit, alarms=alarms, false_alarms=false, missed=missed, total=total)

    limits, place = np.unique(score, return_inverse=True)  # an alarm is above, not at the limit
    limits = np.concatenate([[-np.inf], limits])
    at = np.bincount(place + 1, minlength=len(limits))
    caught = np.bincount(place + 1, weights=is_anomaly, minlength=len(limits))
    totals = a_alarm * (len(score) - np.cumsum(at)) + a_miss * np.cumsum(caught)
    best = len(totals) - 1 - int(np.argmin(totals[::-1]))
    return {"present": cost(threshold), "best": cost(float(limits[best]))}


def detection_delay(
    alarm: Any,
    kind: Any,
    *,
    time: Any = None,
    groups: Any = None,
    normal: str = NORMAL,
    persist: Callable[..., np.ndarray] | None = None,
) -> DetectionDelay:
    """How soon the episodes of anomalous rows are found.

    An episode is a stretch of rows of one kind in a run. False alarms alone would find some too. So
    the alarms that find episodes are compared with those expected by then from how often false
    alarms begin on normal rows and how long they last (one-sample log-rank test).

    Parameters
    ----------
    alarm : array-like of shape (n_rows,)
        Whether each row raises an alarm.
    kind : array-like of str of shape (n_rows,)
    time : array-like of shape (n_rows,), default=None
        Numbers or dates that put the rows of a run in order.
    groups : array-like of shape (n_rows,), default=None
        The run of each row (default: all rows are one).
    normal : str, default="normal"
    persist : callable, default=None
        Maps alarms in order, and their runs, to those that count: `PersistentAlarms(3, 5).update`.

    Examples
    --------
    >>> kind = ["normal", "leak", "leak", "leak", "normal", "jam"]
    >>> found = detection_delay([0, 0, 0, 1, 1, 0], kind)
    >>> [(one.kind, one.found.count, one.rows) for one in found.kinds], found.false_episodes
    ([('jam', 0, ()), ('leak', 1, (2,)), ('overall', 1, (2,))], 1)
    """
    alarm, kind = np.asarray(alarm).astype(bool), np.asarray(kind).astype(str)
    seconds = np.zeros(len(kind)) if time is None else np.asarray(time)
    by_date = seconds.dtype.kind == "M"
    seconds = seconds.astype("M8[us]").astype(np.int64) / 1e6 if by_date else seconds.astype(float)
    run = np.zeros(len(kind), int) if groups is None else np.unique(groups, return_inverse=True)[1]
    for name, values in (("alarm", alarm), ("time", seconds), ("groups", run)):
        if len(values) != len(kind):
            message = f"Expected the {name} of each of {len(kind):,} rows, got {len(values):,}."
            raise UserError(message)
    order = np.lexsort([seconds, run])
    alarm, kind, seconds, run = alarm[order], kind[order], seconds[order], run[order]
    alarm = alarm if persist is None else persist(alarm, run)
    is_next = (run[1:] == run[:-1]) & (kind[1:] == kind[:-1])
    starts = np.flatnonzero(np.concatenate([[True], ~is_next]))
    ends = np.append(starts[1:], len(kind))
    rows = np.array([np.argmax(alarm[a:b]) for a, b in zip(starts, ends, strict=True)])
    times = seconds[starts + rows] - seconds[starts]
    hit = alarm[starts + rows]

    names, is_normal = kind[starts], kind == normal
    false = alarm & is_normal
    begins = false & ~np.concatenate([[False], false[:-1] & is_next])
    # If nothing is wrong: the chance of an alarm at the first row, and of one that begins later.
    at_once = (false.sum() + 1) / (is_normal.sum() + 1)
    later = (begins.sum() + 1) / ((is_normal & ~false).sum() + 1)
    at_once, later = min(at_once, 0.999), min(later, 0.999)
    length = ends - starts

    def one(name: str, of_kind: np.ndarray) -> KindDelay:
        there = of_kind & hit
        delays = tuple(np.sort(times[there]).tolist()) if time is not None else ()
        found = Share.counted(int(there.sum()), int(of_kind.sum()))
        waited = np.where(hit, rows, length - 1)[of_kind]
        by_chance = 1 - (1 - at_once) * (1 - later) ** (length[of_kind] - 1.0)
        expected = (at_once + later * waited).sum()
        quiet = (1 - np.median(by_chance) / 2) / (1 - at_once)  # at the median delay
        return KindDelay(
            name,
            found,
            tuple(np.sort(rows[there]).tolist()),
            delays,
            by_chance=float(by_chance.mean()),
            chance_rows=max(math.ceil(math.log(quiet) / math.log(1 - later)), 0),
            beats_chance=bool(poisson.sf(found.count - 1, expected) < _CHANCE),
        )

    kinds = [one(name, names == name) for name in np.unique(names).tolist() if name != normal]
    return DetectionDelay(
        kinds=(*kinds, *([one(OVERALL, names != normal)] if kinds else [])),
        false_episodes=int(begins.sum()),
        normal_rows=int(is_normal.sum()),
        by_date=by_date,
        persistent=persist is not None,
    )
