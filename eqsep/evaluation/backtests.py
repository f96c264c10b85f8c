"""A backtest: what would have happened, period by period, with labels that come late."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone

from eqsep.arrays import objects
from eqsep.checks import DependentRowsWarning, warn_of
from eqsep.detector import learning
from eqsep.detector.detector import Detector
from eqsep.detector.learning import Learned
from eqsep.detector.model import Model
from eqsep.errors import ParameterError, UserError
from eqsep.evaluation.assessment import promise_of
from eqsep.evaluation.kinds import anomalous_kinds
from eqsep.evaluation.promises import MeasuredPromise, Share
from eqsep.labels import NORMAL
from eqsep.progress import steps
from eqsep.separators.scores import anomaly_score
from eqsep.tables import TableEncoder
from eqsep.tables.reading import WRITERS, Table, column_of, read_table

# What is known of a row when a period begins: it is still to come, it was seen, it was judged
# because of an alarm, or it has the label that all rows get in the end.
AHEAD, SEEN, JUDGED, LABELLED = range(4)
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d+\.?\d*|\.\d+)\s*([a-z]*)")
_CHANCE = 0.05  # of so many rows of a kind among rows drawn at random
Span = str | float


@dataclass(frozen=True)
class Schedule:
    """How often models learn, how many alarms are looked at, and when labels come.

    Spans are texts such as "7d" or "30min" if times are dates, otherwise numbers of rows.
    """

    every: Span = "1d"  #: The length of a period. Models learn before it begins.
    delay: Span = "7d"  #: How long after a row its label is known.
    #: How long after their period alarms that were looked at are judged; None: with all labels.
    verdict: Span | None = None
    alarms: int = 50  #: How many of the highest scores of each period are looked at.
    first: int = 500  #: The labelled rows that the first model needs.

    def timeline(self, time: Any) -> "Timeline":
        """The periods of rows with these times, and when they are known."""
        for name, least in (("alarms", 1), ("first", 2)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                expected = f"a whole number of at least {least}"
                raise ParameterError(name, expected=expected, got=value)
        column = column_of("time", np.asarray(time))
        if column.kind not in ("date", "number") or np.isnan(column.values).any():
            raise UserError(
                "Expected a date or a number as the time of each row, and some are neither: fill "
                "them in, or leave these rows out."
            )
        is_date = column.kind == "date"
        line = Timeline(
            at=column.values if is_date else stats.rankdata(column.values, method="ordinal") - 1.0,
            is_date=is_date,
            every=self._length("every", is_date=is_date),
            delay=self._length("delay", is_date=is_date),
            verdict=None if self.verdict is None else self._length("verdict", is_date=is_date),
        )
        if not line.every > 0:
            raise ParameterError("every", expected="a span above 0", got=self.every)
        return line

    def _length(self, name: str, *, is_date: bool) -> float:
        """A span in seconds, or in rows if times are numbers."""
        span = getattr(self, name)
        units = _SECONDS if is_date else {"": 1}
        match = _SPAN.fullmatch(str(span).strip().lower())
        if match and match[2] in units:
            return float(match[1]) * units[match[2]]
        expected = "a number of rows, since times are numbers and not dates"
        if is_date:
            expected = "a span such as 7d, 12h or 30min, since times are dates"
        raise ParameterError(name, expected=expected, got=span)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Rows over time. Times and spans are in seconds, or in rows from 0."""

    at: np.ndarray
    is_date: bool
    every: float
    delay: float
    verdict: float | None

    @property
    def period(self) -> np.ndarray:
        """The number of each row's period; those without rows are counted too."""
        return np.asarray(np.floor(self.at / self.every).astype(int))

    def known(self, period: int, alarm: np.ndarray) -> np.ndarray:
        """What is known of each row when a period begins, if these raised an alarm before."""
        begins, past = period * self.every, self.period < period
        known = np.where(past, SEEN, AHEAD)
        if self.verdict is not None:
            known[alarm & ((self.period + 1) * self.every + self.verdict <= begins)] = JUDGED
        known[past & (self.at + self.delay <= begins)] = LABELLED
        return known

    def when(self, at: float) -> str:
        """A time as text."""
        if not self.is_date:
            return f"row {int(at) + 1}"
        return WRITERS["date"](at).removesuffix("T00:00:00").removesuffix(":00").replace("T", " ")


class Contender(ABC):
    """A method that learns as labels come, and scores the rows of each period."""

    promised: float | None = None  #: The promised share of normal rows with a score above 0.
    first: Model | None = None  #: The first model with enough held-out rows to promise it.

    @abstractmethod
    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        """Learn what is known now of all rows: 0 ahead, 1 seen, 2 judged, 3 labelled."""

    @abstractmethod
    def scores(self, rows: Table) -> np.ndarray | None:
        """The score of each row, larger for more anomalous rows; None without a model."""


class Learning(Contender):
    """A detector that keeps learning: each period's model is the exact sum of what was known then.

    Rows judged because of an alarm are learnt but do not calibrate until their label comes, as for
    all other rows, so held-out rows stay a fair sample.

    Parameters
    ----------
    detector : Detector
        Not fitted.
    refit : int, default=0
        Fit again after this many periods, with landmarks from all known rows; 0: never.
    pending : bool, default=False
        Also learn rows as unlabelled before their label is known.
    """

    def __init__(self, detector: Detector, *, refit: int = 0, pending: bool = False) -> None:
        self.detector, self.refit, self.pending = detector, refit, pending
        self.promised = float(detector.false_alarm_rate)
        self._learnt: np.ndarray | None = None
        self._age = 0

    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        known = known if self.pending else np.where(known == SEEN, AHEAD, known)
        self._age += 1
        is_first, learned = self._learnt is None, list[Learned]()
        if self._learnt is None or (self.refit and self._age > self.refit):
            first = np.flatnonzero(known == LABELLED)
            self.detector = clone(self.detector)
            learned.append(self.detector.fit_quietly(rows.take(first), kind[first]))
            self._learnt, self._age = np.where(known == LABELLED, LABELLED, AHEAD), 1
        learned += self._move(rows, kind, self._learnt, known)
        self._learnt = known
        if is_first:  # later findings are the same ones
            found = (finding for one in learned for finding in one.findings)
            # Later rows are measured here, whether they depend on earlier ones or not.
            warn_of(one for one in found if one.category is not DependentRowsWarning)
        if self.first is None or not self.first.rank:
            self.first = self.detector.model_

    def _move(
        self, rows: Table, kind: np.ndarray, was: np.ndarray, now: np.ndarray
    ) -> Iterator[Learned]:
        """Forget rows as they were learnt, and learn them as they are known now."""
        labels = {SEEN: objects([None] * len(kind)), JUDGED: kind, LABELLED: kind}
        for stage in (SEEN, JUDGED):  # neither calibrates
            gone = np.flatnonzero((was == stage) & (now != stage))
            if len(gone):
                self.detector.forget(rows.take(gone), labels[stage][gone], judged=True)
        for stage, y in labels.items():
            new = np.flatnonzero((now == stage) & (was != stage))
            if len(new):
                judged, model = stage != LABELLED, self.detector.model_
                learned = learning.learn(model, rows.take(new), y[new], judged=judged)
                self.detector.with_model(learned.model)
                yield learned

    def scores(self, rows: Table) -> np.ndarray | None:
        return None if self._learnt is None else self.detector.decision_function(rows)


class Fixed(Contender):
    """A fitted detector that never changes."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.promised, self.first = float(detector.false_alarm_rate), detector.model_

    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        """Do nothing."""

    def scores(self, rows: Table) -> np.ndarray | None:
        return self.detector.decision_function(rows)


class Retrained(Contender):
    """A scikit-learn classifier, fitted again before each period, once an anomaly is known."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._fitted: tuple[TableEncoder, Any] | None = None

    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        places = np.flatnonzero(known >= JUDGED)
        y = (kind[places] != NORMAL).astype(int)
        if len(np.unique(y)) == 2:
            known_rows = rows.take(places)
            encoder = TableEncoder().fit(known_rows)
            self._fitted = encoder, clone(self.estimator).fit(encoder.transform(known_rows), y)

    def scores(self, rows: Table) -> np.ndarray | None:
        if self._fitted is None:
            return None
        encoder, fitted = self._fitted
        return anomaly_score(fitted, encoder.transform(rows))


@dataclass(frozen=True)
class Period:
    """A period, such as a day, and what was caught in it."""

    name: str  #: When it begins.
    rows: int
    anomalies: int
    known: int  #: The rows with a known label when it began.
    alarms: dict[str, int]  #: By method, the rows that were looked at.
    caught: dict[str, int]  #: The anomalies among them.


@dataclass(frozen=True)
class CaughtKind:
    """What one method caught of one kind."""

    kind: str
    recall: Share  #: The share of its rows that were looked at.
    early: Share  #: The same for rows that came before any label of the kind was known.
    first: str  #: When its first row came, after the first model.
    appeared: int  #: The number, from 1, of the period of its first row.
    caught: int | None  #: The same for its first row that was looked at.
    by_chance: float = 0.0  #: The share of all rows that was looked at.

    @property
    def told(self) -> str:
        """When it was caught first, in words."""
        if self.caught is None:
            return "never caught"
        if stats.binom.sf(self.recall.count - 1, self.recall.total, self.by_chance) >= _CHANCE:
            return "no more than by chance"
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
    precision: dict[str, Share]  #: Of the rows that were looked at.
    recall: dict[str, Share]
    false_alarms: dict[str, Share]  #: The normal rows above the threshold of methods with one.
    #: Of methods that calibrate on single rows, from the first model that makes a promise on.
    promises: dict[str, MeasuredPromise]
    seconds: dict[str, float]  #: The time spent learning.
    alarms: dict[str, np.ndarray]  #: Whether each row was looked at.
    waited: int  #: The rows that came before the first model.

    def folded(self, most: int) -> list[Period]:
        """At most this many periods: if there are more, neighbours are joined."""
        size = -(-len(self.periods) // most)
        return [
            Period(
                name=one[0].name if len(one) == 1 else f"{one[0].name} to {one[-1].name}",
                rows=sum(period.rows for period in one),
                anomalies=sum(period.anomalies for period in one),
                known=one[-1].known,
                alarms={name: sum(period.alarms[name] for period in one) for name in self.methods},
                caught={name: sum(period.caught[name] for period in one) for name in self.methods},
            )
            for one in [self.periods[i : i + size] for i in range(0, len(self.periods), size)]
        ]


def backtest(
    contenders: Mapping[str, Contender],
    X: Any,
    kind: Any,
    *,
    time: Any,
    schedule: Schedule | None = None,
) -> Backtest:
    """Let methods learn as labels came, and look at their highest scores of each period.

    Before each period, all methods learn only from what was known then. If verdicts on alarms come
    sooner than labels, they are verdicts on the alarms of the first method.

    Parameters
    ----------
    contenders : mapping of str to Contender
        `Learning`, `Retrained` or `Fixed`, by name.
    X : table
    kind : array-like of str of shape (n_rows,)
        What each row turned out to be; some are "normal".
    time : array-like of shape (n_rows,)
        Dates, or numbers that put the rows in order.
    schedule : Schedule, default=None

    Examples
    --------
    >>> from eqsep.datasets import make_mixed_demo
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
    numbers = np.unique(line.period).tolist()
    with steps(len(numbers), "periods") as report:
        for number in numbers:
            run.play(number)
            report(1)
    if not run.places:
        known = line.known(numbers[-1], np.zeros(len(kind), dtype=bool))
        message = (
            f"The first model needs {schedule.first:,} labelled rows, some of them normal, and "
            f"only {(known == LABELLED).sum():,} have their label when the last period begins."
        )
        hint = "Pass more rows, a shorter delay, or a lower first."
        raise UserError(message, hint=hint, topic="no_first_model")
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
        self.promised = {name: np.zeros(len(self.kind), dtype=bool) for name in self.contenders}
        self.seconds = dict.fromkeys(self.contenders, 0.0)
        self.places: dict[int, np.ndarray] = {}  # the rows of each period from the first model on
        self.known: dict[int, np.ndarray] = {}  # what was known when it began

    def play(self, period: int) -> None:
        """Learn what is known, score the rows of a period, and look at the highest."""
        known = self.line.known(period, next(iter(self.alarms.values())))
        labelled = known == LABELLED
        enough = labelled.sum() >= self.schedule.first and NORMAL in self.kind[labelled]
        if not (self.places or enough):
            return
        places = np.flatnonzero(self.line.period == period)
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
                self.promised[name][places] = contender.first is not None and contender.first.rank
        self.places[period], self.known[period] = places, known

    def result(self) -> Backtest:
        is_anomaly = self.kind != NORMAL
        tested = np.sort(np.concatenate(list(self.places.values())))
        normal, anomalous = tested[~is_anomaly[tested]], tested[is_anomaly[tested]]
        alarms, contenders = self.alarms.items(), self.contenders.items()
        promising = [name for name, one in contenders if one.promised is not None]
        promises = {}
        for name, one in contenders:
            if one.first is not None and one.first.plan.holdout.grouping is None:
                rows = normal[self.promised[name][normal]] if one.first.rank else normal
                if len(rows):
                    promises[name] = promise_of(one.first, self.above[name][rows])
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
                    caught={name: int((a & is_anomaly)[places].sum()) for name, a in alarms},
                )
                for number, places in self.places.items()
            ),
            kinds={name: tuple(self._caught(alarm)) for name, alarm in alarms},
            precision={name: Share.of(is_anomaly[tested][a[tested]]) for name, a in alarms},
            recall={name: Share.of(alarm[anomalous]) for name, alarm in alarms},
            false_alarms={name: Share.of(self.above[name][normal]) for name in promising},
            promises=promises,
            seconds=self.seconds,
            alarms=self.alarms,
            waited=len(self.kind) - len(tested),
        )

    def _caught(self, alarm: np.ndarray) -> list[CaughtKind]:
        """What a method caught of each kind, in the order in which they appeared."""
        found = []
        for kind in anomalous_kinds(self.kind.astype(str), NORMAL):
            of_kind = self.kind == kind
            each = enumerate(self.places.items(), 1)
            rows = {i: (n, p[of_kind[p]]) for i, (n, p) in each if of_kind[p].any()}
            if not rows:
                continue
            early = [p for n, p in rows.values() if not (of_kind & (self.known[n] >= JUDGED)).any()]
            places = np.concatenate([p for _, p in rows.values()])
            found.append(
                CaughtKind(
                    kind=kind,
                    recall=Share.of(alarm[places]),
                    early=Share.of(alarm[np.concatenate([np.empty(0, int), *early])]),
                    first=self.line.when(self.line.at[places].min()),
                    appeared=min(rows),
                    caught=next((i for i, (_, p) in rows.items() if alarm[p].any()), None),
                    by_chance=float(alarm[np.concatenate(list(self.places.values()))].mean()),
                )
            )
        return sorted(found, key=lambda one: one.appeared)
