"""A backtest: what would have happened, period by period, with labels that come late."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from eqsep.errors import UserError
from eqsep.evaluation.contenders import AHEAD, JUDGED, LABELLED, SEEN, Contender
from eqsep.evaluation.kinds import anomalous_kinds
from eqsep.evaluation.review import Share
from eqsep.evaluation.schedule import Schedule, Timeline
from eqsep.labels import NORMAL
from eqsep.tables.reading import Table, read_table


@dataclass(frozen=True)
class Period:
    """A day, say, and what was caught in it.

    Attributes
    ----------
    name : str
        When it begins.
    rows, anomalies : int
    known : int
        The rows whose label was known when it began.
    alarms, caught : dict of str to int
        By method, the rows that were looked at, and the anomalies among them.
    """

    name: str
    rows: int
    anomalies: int
    known: int
    alarms: dict[str, int]
    caught: dict[str, int]


@dataclass(frozen=True)
class CaughtKind:
    """What one method caught of one kind.

    Attributes
    ----------
    kind : str
    recall : Share
        Of its rows, those that were looked at.
    early : Share
        The same of the rows that came while no label of the kind was known.
    first : str
        When its first row came, of those from the first model on.
    appeared, caught : int and int or None
        The number of the period of its first row, counted from 1, and of the first one that was
        looked at.
    """

    kind: str
    recall: Share
    early: Share
    first: str
    appeared: int
    caught: int | None

    @property
    def told(self) -> str:
        """When it was caught first, in words."""
        if self.caught is None:
            return "never caught"
        late = self.caught - self.appeared
        when = "with its first rows" if not late else f"{late:,} period{'s' * (late > 1)} later"
        if not self.early.total:
            return f"{when}; known before the first period"
        return f"{when}, before any label" if self.early.count else f"{when}, by its labels"


@dataclass(frozen=True, eq=False)
class Backtest:
    """What would have happened from the first model on.

    Attributes
    ----------
    schedule : Schedule
    methods : tuple of str
    periods : tuple of Period
    kinds : dict of str to tuple of CaughtKind
        By method.
    precision, recall : dict of str to Share
        Of the rows that were looked at, and of all anomalies, those that are both.
    false_alarms : dict of str to Share
        Of the normal rows, those above the threshold of the method, where it has one.
    promised : dict of str to float
        The rate that was promised of them.
    seconds : dict of str to float
        What learning took.
    alarms : dict of str to ndarray of bool of shape (n_rows,)
        Which rows were looked at; none before the first model.
    waited : int
        The rows that came before the first model.
    """

    schedule: Schedule
    methods: tuple[str, ...]
    periods: tuple[Period, ...]
    kinds: dict[str, tuple[CaughtKind, ...]]
    precision: dict[str, Share]
    recall: dict[str, Share]
    false_alarms: dict[str, Share]
    promised: dict[str, float]
    seconds: dict[str, float]
    alarms: dict[str, np.ndarray]
    waited: int

    def verdict(self, method: str) -> str:
        """Whether the share of false alarms is as promised, but for chance; else which it is."""
        share, promised = self.false_alarms[method], self.promised[method]
        if share.low > promised:
            return "more"
        return "fewer" if share.high < promised else "as promised"

    def folded(self, most: int) -> list[Period]:
        """The periods, or at most so many of several of them each."""
        size = -(-len(self.periods) // most)
        starts = range(0, len(self.periods), size)
        return [_joined(self.periods[start : start + size]) for start in starts]


def _joined(periods: tuple[Period, ...]) -> Period:
    first, last = periods[0], periods[-1]
    return Period(
        name=first.name if len(periods) == 1 else f"{first.name} to {last.name}",
        rows=sum(one.rows for one in periods),
        anomalies=sum(one.anomalies for one in periods),
        known=last.known,
        alarms={name: sum(one.alarms[name] for one in periods) for name in first.alarms},
        caught={name: sum(one.caught[name] for one in periods) for name in first.alarms},
    )


def backtest(
    contenders: Mapping[str, Contender],
    X: Any,
    kind: Any,
    *,
    time: Any,
    schedule: Schedule | None = None,
) -> Backtest:
    """Let methods learn as labels came, and look at their highest scores of each period.

    Before each period all learn from what was known then, and from nothing else. The alarms of the
    first are those that people look at: where verdicts on alarms come sooner than labels, they are
    verdicts on these. The others run in its shadow.

    Parameters
    ----------
    contenders : mapping of str to Contender
        `Learning`, `Retrained` or `Fixed`, by name.
    X : table
    kind : array-like of str of shape (n_rows,)
        What each row turned out to be; "normal" rows among them.
    time : array-like of shape (n_rows,)
        Dates, or numbers by which rows are put in order.
    schedule : Schedule, default=None
        By default a period is a day and labels come after seven.

    Examples
    --------
    >>> from eqsep import Detector
    >>> from eqsep.datasets import make_mixed_demo
    >>> from eqsep.evaluation import Learning
    >>> demo = make_mixed_demo(n_samples=1500, as_frame=True, random_state=0)
    >>> detector = Detector(n_landmarks=60, bandwidth=1.0, random_state=0)
    >>> found = backtest(
    ...     {"eqsep": Learning(detector)}, demo.X.drop(columns="time"), demo.kind,
    ...     time=demo.X["time"], schedule=Schedule(every="7d", delay="14d", alarms=20, first=200),
    ... )
    >>> len(found.periods), found.precision["eqsep"].total
    (9, 180)
    """
    schedule, rows = schedule or Schedule(), read_table(X, name="backtest")
    kind = np.asarray(kind).astype(str).astype(object)
    line = schedule.timeline(time)
    if not len(line.at) == len(kind) == rows.n_rows:
        raise UserError(
            f"Expected the kind and the time of each of {rows.n_rows:,} rows, got {len(kind):,} "
            f"kinds and {len(line.at):,} times."
        )
    run = _Run(contenders=dict(contenders), rows=rows, kind=kind, line=line, schedule=schedule)
    run.all_periods()
    return _summed_up(run)


class _Run:
    """A backtest under way: what was looked at so far, and by whom."""

    def __init__(
        self,
        contenders: dict[str, Contender],
        rows: Table,
        kind: np.ndarray,
        line: Timeline,
        schedule: Schedule,
    ) -> None:
        self.contenders, self.rows, self.kind = contenders, rows, kind
        self.line, self.schedule = line, schedule
        self.first = next(iter(contenders))
        self.alarms = {name: np.zeros(len(kind), dtype=bool) for name in contenders}
        self.above = {name: np.zeros(len(kind), dtype=bool) for name in contenders}
        self.seconds = dict.fromkeys(contenders, 0.0)
        self.places: dict[int, np.ndarray] = {}  # the rows of each period from the first model on
        self.known: dict[int, np.ndarray] = {}  # what was known when it began

    def all_periods(self) -> None:
        periods = self.line.period
        for period in np.unique(periods).tolist():
            known = self._known(period)
            labelled = known == LABELLED
            enough = labelled.sum() >= self.schedule.first and NORMAL in self.kind[labelled]
            if self.places or enough:
                self._one(period, np.flatnonzero(periods == period), known)
        if not self.places:
            most = int(self.line.labelled(int(periods.max())).sum())
            raise UserError(
                f"The first model takes {self.schedule.first:,} labelled rows, normal ones among "
                f"them, and when the last period begins {most:,} have their label.",
                hint="Pass more rows, a shorter delay, or a lower first.",
                topic="no_first_model",
            )

    def _known(self, period: int) -> np.ndarray:
        known = np.where(self.line.period < period, SEEN, AHEAD)
        known[self.line.judged(period, self.alarms[self.first])] = JUDGED
        known[self.line.labelled(period)] = LABELLED
        return known

    def _one(self, period: int, places: np.ndarray, known: np.ndarray) -> None:
        """Learn what is known, score the rows of a period, and look at the highest."""
        rows, told = self.rows.take(places), self.kind.copy()
        told[known < JUDGED] = None
        for name, contender in self.contenders.items():
            start = perf_counter()
            contender.learn(self.rows, told, known)
            self.seconds[name] += perf_counter() - start
            score = contender.scores(rows)
            if score is not None:
                highest = np.argsort(-score, kind="stable")[: self.schedule.alarms]
                self.alarms[name][places[highest]] = True
                self.above[name][places[score > 0]] = True
        self.places[period], self.known[period] = places, known


def _summed_up(run: _Run) -> Backtest:
    kind, is_anomaly = run.kind, run.kind != NORMAL
    tested = np.sort(np.concatenate(list(run.places.values())))
    normal, anomalous = tested[~is_anomaly[tested]], tested[is_anomaly[tested]]
    periods = tuple(
        Period(
            name=run.line.name(number),
            rows=len(places),
            anomalies=int(is_anomaly[places].sum()),
            known=int((run.known[number] == LABELLED).sum()),
            alarms={name: int(alarm[places].sum()) for name, alarm in run.alarms.items()},
            caught={
                name: int(alarm[places][is_anomaly[places]].sum())
                for name, alarm in run.alarms.items()
            },
        )
        for number, places in run.places.items()
    )
    promised = {
        name: one.promised for name, one in run.contenders.items() if one.promised is not None
    }
    return Backtest(
        schedule=run.schedule,
        methods=tuple(run.contenders),
        periods=periods,
        kinds={name: tuple(_caught(run, name)) for name in run.contenders},
        precision={name: _share(is_anomaly[tested][a[tested]]) for name, a in run.alarms.items()},
        recall={name: _share(a[anomalous]) for name, a in run.alarms.items()},
        false_alarms={name: _share(run.above[name][normal]) for name in promised},
        promised=promised,
        seconds=run.seconds,
        alarms=run.alarms,
        waited=len(kind) - len(tested),
    )


def _caught(run: _Run, name: str) -> list[CaughtKind]:
    """What a method caught of each kind, the one that appeared first before the others."""
    numbers = list(run.places)
    found = []
    for kind in anomalous_kinds(run.kind.astype(str), NORMAL):
        of_kind = run.kind == kind
        rows = {n: places[of_kind[places]] for n, places in run.places.items()}
        rows = {n: places for n, places in rows.items() if len(places)}
        if not rows:
            continue
        early = [p for n, p in rows.items() if not (of_kind & (run.known[n] >= JUDGED)).any()]
        caught = [n for n, places in rows.items() if run.alarms[name][places].any()]
        found.append(
            CaughtKind(
                kind=kind,
                recall=_share(run.alarms[name][np.concatenate(list(rows.values()))]),
                early=_share(run.alarms[name][np.concatenate([np.empty(0, int), *early])]),
                first=run.line.when(run.line.at[np.concatenate(list(rows.values()))].min()),
                appeared=numbers.index(min(rows)) + 1,
                caught=numbers.index(min(caught)) + 1 if caught else None,
            )
        )
    return sorted(found, key=lambda one: one.appeared)


def _share(hit: np.ndarray) -> Share:
    return Share.counted(int(np.sum(hit)), len(hit))
