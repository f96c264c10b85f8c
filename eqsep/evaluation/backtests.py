"""A backtest: what would have happened, period by period, with labels that come late.

A `Schedule` divides rows into periods, a `Contender` learns before each what is known then, and
`backtest` looks at its highest scores.
"""

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from eqsep.arrays import objects
from eqsep.detector.detector import Detector
from eqsep.errors import EqsepWarning, ParameterError, UserError
from eqsep.evaluation.kinds import anomalous_kinds
from eqsep.evaluation.promises import Share
from eqsep.labels import NORMAL
from eqsep.progress import steps
from eqsep.separators.scores import anomaly_score
from eqsep.tables import TableEncoder
from eqsep.tables.reading import WRITERS, Table, column_of, read_table

# What is known of a row when a period begins: it is still to come, was seen, was judged because
# it raised an alarm, or has the label that all rows get in the end.
AHEAD, SEEN, JUDGED, LABELLED = range(4)
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)")
Span = str | float


@dataclass(frozen=True)
class Schedule:
    """How often models learn and alarms are looked at, how many, and when labels come.

    Spans are texts such as "7d", "1h" or "30min" if times are dates, and numbers of rows if times
    are numbers.
    """

    #: The length of a period. Models learn before it begins, from what is known then.
    every: Span = "1d"
    delay: Span = "7d"  #: How long after a row its label is known.
    #: How long after the end of their period the alarms that were looked at are judged, if that is
    #: sooner; None if they wait for their labels like all other rows.
    verdict: Span | None = None
    alarms: int = 50  #: How many of the highest scores of each period are looked at.
    first: int = 500  #: The labelled rows that the first model takes.

    def timeline(self, time: Any) -> "Timeline":
        """The periods of rows with these times, and when they are known."""
        for name, least in (("alarms", 1), ("first", 2)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise ParameterError(
                    name, expected=f"a whole number of at least {least}", got=value
                )
        column = column_of("time", np.asarray(time))
        if column.kind not in ("date", "number") or np.isnan(column.values).any():
            raise UserError(
                "Expected the time of each row, a date or a number, and some are neither: fill "
                "them in, or leave these rows out."
            )
        is_date = column.kind == "date"
        every, delay = (
            _length(getattr(self, name), name, is_date=is_date) for name in ("every", "delay")
        )
        verdict = self.verdict
        if verdict is not None:
            verdict = _length(verdict, "verdict", is_date=is_date)
        if not every > 0:
            raise ParameterError("every", expected="a span above 0", got=self.every)
        at = column.values
        if not is_date:  # the place of each row in the order of times
            at = np.empty(len(at))
            at[np.argsort(column.values, kind="stable")] = np.arange(len(at))
        return Timeline(at=at, is_date=is_date, every=every, delay=delay, verdict=verdict)


def _length(span: Span, name: str, *, is_date: bool) -> float:
    """A span in seconds, or in rows if times are numbers."""
    match = _SPAN.fullmatch(str(span).strip().lower())
    unit = match[2] if match else ""
    if match and is_date and unit in _SECONDS:
        return float(match[1]) * _SECONDS[unit]
    if match and not is_date and not unit:
        return float(match[1])
    expected = (
        "a span such as 7d, 12h or 30min, as times are dates"
        if is_date
        else "a number of rows, as times are numbers and not dates"
    )
    raise ParameterError(name, expected=expected, got=span)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Rows in time. Times and spans are seconds, or places in the order of rows."""

    at: np.ndarray
    is_date: bool
    every: float
    delay: float
    verdict: float | None

    @property
    def period(self) -> np.ndarray:
        """The number of each row's period; those without rows are counted too."""
        numbers: np.ndarray = np.floor(self.at / self.every).astype(int)
        return numbers

    def labelled(self, period: int) -> np.ndarray:
        """Which rows have their label when a period begins."""
        known: np.ndarray = self.at + self.delay <= period * self.every
        return known & (self.period < period)

    def judged(self, period: int, alarm: np.ndarray) -> np.ndarray:
        """Which rows that raised an alarm have been judged when a period begins."""
        if self.verdict is None:
            return np.zeros(len(alarm), dtype=bool)
        ends = (self.period + 1) * self.every
        known: np.ndarray = alarm & (ends + self.verdict <= period * self.every)
        return known

    def when(self, at: float) -> str:
        """A time in words, or a place in the order of rows."""
        if not self.is_date:
            return f"row {int(at) + 1:,}"
        text = WRITERS["date"](at)
        return text.removesuffix("T00:00:00").removesuffix(":00").replace("T", " ")


class Contender(ABC):
    """A method that learns as labels come, and scores the rows of each period."""

    @abstractmethod
    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        """Learn what is known now of all rows: 0 ahead, 1 seen, 2 judged, 3 labelled."""

    @abstractmethod
    def scores(self, rows: Table) -> np.ndarray | None:
        """The score of each row, larger for the more anomalous; None without a model."""

    @property
    def promised(self) -> float | None:
        """The promised share of normal rows with a score above 0; None without a promise."""
        return None


class Learning(Contender):
    """A detector that learns on: each day's model is the exact sum of what was known then.

    Rows are learnt when it is known what they are. A row that was judged because of an alarm
    teaches without calibrating; once it has its label like all others, it is forgotten as that and
    learnt like them, so that held-out rows stay a fair sample. With `pending`, rows also teach
    before, as rows without a label, and are forgotten as such later: that costs three sums for
    each row instead of one, and next to rows labelled normal it counts little.

    Parameters
    ----------
    detector : Detector
        Not fitted.
    refit : int, default=0
        Fit again after so many periods, with landmarks from all that is known; 0 is never.
    pending : bool, default=False
    """

    def __init__(self, detector: Detector, *, refit: int = 0, pending: bool = False) -> None:
        self.detector, self.refit, self.pending = detector, refit, pending
        self._learnt: np.ndarray | None = None
        self._age = 0

    @property
    def promised(self) -> float | None:
        return float(self.detector.false_alarm_rate)

    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        known = known if self.pending else np.where(known == SEEN, AHEAD, known)
        self._age += 1
        with warnings.catch_warnings():
            if self._learnt is not None:
                warnings.simplefilter("ignore", EqsepWarning)  # the first fit has given them
            if self._learnt is None or (self.refit and self._age > self.refit):
                first = np.flatnonzero(known == LABELLED)
                self.detector = clone(self.detector).fit(rows.take(first), kind[first])
                self._learnt, self._age = np.where(known == LABELLED, LABELLED, AHEAD), 1
            self._move(rows, kind, self._learnt, known)
        self._learnt = known

    def _move(self, rows: Table, kind: np.ndarray, was: np.ndarray, now: np.ndarray) -> None:
        """Forget rows as they were learnt, and learn them as they are known now."""
        for stage in (SEEN, JUDGED):  # neither calibrates
            gone = np.flatnonzero((was == stage) & (now != stage))
            if len(gone):
                self.detector.forget(rows.take(gone), _labels(kind, gone, stage), judged=True)
        for stage in (SEEN, JUDGED, LABELLED):
            new = np.flatnonzero((now == stage) & (was != stage))
            if len(new):
                self.detector.partial_fit(
                    rows.take(new), _labels(kind, new, stage), judged=stage != LABELLED
                )

    def scores(self, rows: Table) -> np.ndarray | None:
        return None if self._learnt is None else self.detector.decision_function(rows)


def _labels(kind: np.ndarray, rows: np.ndarray, stage: int) -> np.ndarray:
    return objects([None] * len(rows)) if stage == SEEN else kind[rows]


class Fixed(Contender):
    """A fitted detector that stays as it is, in the shadow of others."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector

    @property
    def promised(self) -> float | None:
        return float(self.detector.false_alarm_rate)

    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        """Nothing."""

    def scores(self, rows: Table) -> np.ndarray | None:
        return self.detector.decision_function(rows)


class Retrained(Contender):
    """A scikit-learn classifier, fitted again before each period to all that is known.

    It takes rows of both classes: until an anomaly is known there is no model.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._fitted: tuple[TableEncoder, Any] | None = None

    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        places = np.flatnonzero(known >= JUDGED)
        y = (kind[places] != NORMAL).astype(int)
        if len(np.unique(y)) < 2:
            return
        encoder = TableEncoder().fit(rows.take(places))
        encoded = encoder.transform(rows.take(places))
        self._fitted = encoder, clone(self.estimator).fit(encoded, y)

    def scores(self, rows: Table) -> np.ndarray | None:
        if self._fitted is None:
            return None
        encoder, fitted = self._fitted
        return anomaly_score(fitted, encoder.transform(rows))


@dataclass(frozen=True)
class Period:
    """A day, say, and what was caught in it."""

    name: str  #: When it begins.
    rows: int
    anomalies: int
    known: int  #: The rows whose label was known when it began.
    #: By method, the rows that were looked at, and the anomalies among them.
    alarms: dict[str, int]
    caught: dict[str, int]


@dataclass(frozen=True)
class CaughtKind:
    """What one method caught of one kind."""

    kind: str
    recall: Share  #: Of its rows, those that were looked at.
    early: Share  #: The same for the rows that came while no label of the kind was known.
    first: str  #: When its first row came, after the first model.
    #: The numbers, from 1, of the periods of its first row and of its first row that was looked
    #: at.
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
    """What would have happened from the first model on."""

    schedule: Schedule
    methods: tuple[str, ...]
    periods: tuple[Period, ...]
    kinds: dict[str, tuple[CaughtKind, ...]]  #: By method.
    #: Of the rows that were looked at, and of all anomalies, those that are both.
    precision: dict[str, Share]
    recall: dict[str, Share]
    #: Of the normal rows, those above the threshold of the method, if it has one.
    false_alarms: dict[str, Share]
    promised: dict[str, float]  #: The rate that was promised.
    seconds: dict[str, float]  #: What learning took.
    #: (dict of str to ndarray of bool of shape (n_rows,)) Which rows were looked at; none before
    #: the first model.
    alarms: dict[str, np.ndarray]
    waited: int  #: The rows that came before the first model.

    def verdict(self, method: str) -> str:
        """Whether false alarms are "as promised", or "more" or "fewer" than chance explains."""
        share, promised = self.false_alarms[method], self.promised[method]
        if share.low > promised:
            return "more"
        return "fewer" if share.high < promised else "as promised"

    def folded(self, most: int) -> list[Period]:
        """At most so many periods: if there are more, neighbours are joined."""
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

    Before each period all learn from what was known then, and from nothing else. People look at
    the alarms of the first method: if verdicts on alarms come sooner than labels, they are verdicts
    on these. The others run in its shadow.

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
    run = _Run(dict(contenders), rows, kind, line=line, schedule=schedule)
    run.all_periods()
    return run.result()


@dataclass
class _Run:
    """A backtest under way."""

    contenders: dict[str, Contender]
    rows: Table
    kind: np.ndarray
    line: Timeline
    schedule: Schedule

    def __post_init__(self) -> None:
        self.alarms = {name: np.zeros(len(self.kind), dtype=bool) for name in self.contenders}
        self.above = {name: np.zeros(len(self.kind), dtype=bool) for name in self.contenders}
        self.seconds = dict.fromkeys(self.contenders, 0.0)
        self.places: dict[int, np.ndarray] = {}  # the rows of each period from the first model on
        self.known: dict[int, np.ndarray] = {}  # what was known when it began

    def all_periods(self) -> None:
        periods = self.line.period
        numbers = np.unique(periods).tolist()
        with steps(len(numbers), "periods") as report:
            for period in numbers:
                known = self._known(period)
                labelled = known == LABELLED
                enough = labelled.sum() >= self.schedule.first and NORMAL in self.kind[labelled]
                if self.places or enough:
                    self._one(period, np.flatnonzero(periods == period), known)
                report(1)
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
        first = next(iter(self.alarms.values()))
        known[self.line.judged(period, first)] = JUDGED
        known[self.line.labelled(period)] = LABELLED
        return known

    def _one(self, period: int, places: np.ndarray, known: np.ndarray) -> None:
        """Learn what is known, score the rows of a period, and look at the highest."""
        rows, known_kind = self.rows.take(places), self.kind.copy()
        known_kind[known < JUDGED] = None
        for name, contender in self.contenders.items():
            start = perf_counter()
            contender.learn(self.rows, known_kind, known)
            self.seconds[name] += perf_counter() - start
            score = contender.scores(rows)
            if score is not None:
                highest = np.argsort(-score, kind="stable")[: self.schedule.alarms]
                self.alarms[name][places[highest]] = True
                self.above[name][places[score > 0]] = True
        self.places[period], self.known[period] = places, known

    def result(self) -> Backtest:
        is_anomaly = self.kind != NORMAL
        tested = np.sort(np.concatenate(list(self.places.values())))
        normal, anomalous = tested[~is_anomaly[tested]], tested[is_anomaly[tested]]
        promised = {
            name: one.promised for name, one in self.contenders.items() if one.promised is not None
        }
        alarms = self.alarms.items()
        return Backtest(
            schedule=self.schedule,
            methods=tuple(self.contenders),
            periods=tuple(
                Period(
                    name=self.line.when(number * self.line.every),
                    rows=len(places),
                    anomalies=int(is_anomaly[places].sum()),
                    known=int((self.known[number] == LABELLED).sum()),
                    alarms={name: int(alarm[places].sum()) for name, alarm in alarms},
                    caught={
                        name: int((alarm & is_anomaly)[places].sum()) for name, alarm in alarms
                    },
                )
                for number, places in self.places.items()
            ),
            kinds={name: tuple(self._caught(alarm)) for name, alarm in alarms},
            precision={name: Share.of(is_anomaly[tested][a[tested]]) for name, a in alarms},
            recall={name: Share.of(alarm[anomalous]) for name, alarm in alarms},
            false_alarms={name: Share.of(self.above[name][normal]) for name in promised},
            promised=promised,
            seconds=self.seconds,
            alarms=self.alarms,
            waited=len(self.kind) - len(tested),
        )

    def _caught(self, alarm: np.ndarray) -> list[CaughtKind]:
        """What a method caught of each kind, in the order in which they appeared."""
        numbers = list(self.places)
        found = []
        for kind in anomalous_kinds(self.kind.astype(str), NORMAL):
            of_kind = self.kind == kind
            rows = {n: places[of_kind[places]] for n, places in self.places.items()}
            rows = {n: places for n, places in rows.items() if len(places)}
            if not rows:
                continue
            early = [p for n, p in rows.items() if not (of_kind & (self.known[n] >= JUDGED)).any()]
            caught = [n for n, places in rows.items() if alarm[places].any()]
            places = np.concatenate(list(rows.values()))
            found.append(
                CaughtKind(
                    kind=kind,
                    recall=Share.of(alarm[places]),
                    early=Share.of(alarm[np.concatenate([np.empty(0, int), *early])]),
                    first=self.line.when(self.line.at[places].min()),
                    appeared=numbers.index(min(rows)) + 1,
                    caught=numbers.index(min(caught)) + 1 if caught else None,
                )
            )
        return sorted(found, key=lambda one: one.appeared)
