"""Watching: how many rows and alarms came, and whether rows still look like those learnt."""

import io
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from eqsep.detector import Detector
from eqsep.detector.model import Verdicts
from eqsep.errors import UserError
from eqsep.monitor import Monitor, Recent
from eqsep.serve import schema
from eqsep.serve.ledger import Ledger, Row, rows_for
from eqsep.serve.store import Store, now

DELTA = 0.01  # the probability of a false drift alert in an episode, over all workers
MOST_WATCHED = 100_000  # rows of an episode: all their scores are stored
_SAVED_EVERY = 20.0  # seconds
_FORGOTTEN_AFTER = 86_400.0  # seconds without news from a worker
_SHOWN = 3 * 3600  # seconds of counts
_MINUTE = 60
_KEY, _COUNTED = ("model", "minute", "version", "worker"), ("rows", "alarms", "shadow_alarms")
_SUMS = [func.sum(schema.counts.c[column]) for column in _COUNTED]
_ADDED = (  # made once: it is done with every batch of rows
    update(schema.counts)
    .where(*(schema.counts.c[column] == bindparam(f"its_{column}") for column in _KEY))
    .values({c: schema.counts.c[c] + bindparam(f"more_{c}") for c in _COUNTED})
)


@dataclass(frozen=True)
class Minute:
    """What came in one minute: `at` is when it began, in seconds since 1970."""

    at: int
    rows: int
    alarms: int
    shadow_alarms: int


@dataclass(frozen=True)
class Watch:
    """How a model does."""

    version: int  # the live one: an episode begins with each version
    rows: int  # that came in the episode
    alarms: int
    promised: float | None  # the share of normal rows that may raise an alarm; None: no promise
    martingale: float | None  # the highest evidence of drift; None where no rows were watched
    broken_at: int | None  # the row of the episode at which it was too high to be chance
    too_many: bool  # whether more of the last rows raised an alarm than the promise allows
    shifts: list[tuple[str, float]]  # columns with moved means, in standard errors, farthest first
    per_minute: list[Minute]  # the last hours, of all versions
    banner: str | None = None  # what is wrong
    advice: str | None = None  # what to do

    @property
    def alarm_rate(self) -> float:
        """The share of rows that raised an alarm."""
        return self.alarms / max(self.rows, 1)


class Watching:
    """Watches the models of a store; each worker watches the rows that it scores.

    An episode ends with its version, or after 100,000 rows of a worker without drift.
    """

    def __init__(self, store: Store, ledger: Ledger, *, workers: int = 1) -> None:
        self._store, self._ledger, self._workers = store, ledger, workers
        self._worker = secrets.token_hex(8)
        self._monitors: dict[str, tuple[int, Monitor | None]] = {}
        self._saved: dict[str, float] = {}
        self._lock = threading.Lock()

    def update(
        self, name: str, number: int, rows: list[Row], encoded: np.ndarray, verdicts: Verdicts
    ) -> None:
        """Watch rows that a version has encoded and judged."""
        with self._lock:
            monitor = self._monitor(name, number)
            if monitor is None or monitor.watched.rows >= MOST_WATCHED:  # drift was found
                return
            model, groups = monitor.detector.model_, None
            with suppress(UserError):  # rows without their group are not watched
                if model.plan.holdout.grouping is not None:
                    groups = model.plan.grouped(rows_for(model, rows)).groups
                monitor.update_scored(encoded, verdicts.score, groups=groups)
            if time.monotonic() - self._saved.get(name, 0.0) >= _SAVED_EVERY:
                self._save(name, monitor)

    def count(
        self, connection: Connection, name: str, number: int, counted: dict[str, int]
    ) -> None:
        """Add rows, alarms and shadow alarms to the counts of this minute."""
        table, minute = schema.counts, int(now()) // _MINUTE * _MINUTE
        key = {"model": name, "minute": minute, "version": number, "worker": self._worker}
        values = {f"its_{column}": value for column, value in key.items()}
        values |= {f"more_{column}": n for column, n in counted.items()}
        if not connection.execute(_ADDED, values).rowcount:
            connection.execute(insert(table).values(**key, **counted))

    def save(self) -> None:
        """Store the state of all monitors."""
        with self._lock:
            for name, (_, monitor) in self._monitors.items():
                if monitor is not None:
                    self._save(name, monitor)

    def status(self, name: str) -> Watch:
        """How a model does now."""
        self.save()
        number = self._ledger.live(name).id
        detector = self._ledger.detector(number)
        since = int(now() - _SHOWN) // _MINUTE * _MINUTE
        counts, monitors = schema.counts, schema.monitors
        mine = counts.c.model == name
        rows, alarms, _ = self._store.first(select(*_SUMS).where(mine, counts.c.version == number))
        minutes = select(counts.c.minute, *_SUMS).where(mine, counts.c.minute >= since)
        minutes = minutes.group_by(counts.c.minute).order_by(counts.c.minute)
        states = self._store.rows(select(monitors.c.state).where(monitors.c.model == name))
        watched = [m for m in (_read(row.state, detector) for row in states) if m is not None]
        worst = max(watched, key=lambda monitor: monitor.watched.highest, default=None)
        recent = None if worst is None else worst.recent()
        shifts = [] if worst is None else worst.shifts()[:10]
        broken = [m.watched.broken_at for m in watched if m.watched.broken_at is not None]
        watch = Watch(
            version=number,
            rows=int(rows or 0),
            alarms=int(alarms or 0),
            promised=detector.false_alarm_rate if detector.model_.rank else None,
            martingale=None if worst is None else worst.watched.highest,
            broken_at=min(broken, default=None),
            too_many=recent is not None and recent.too_many,
            shifts=[(shift.column, shift.standard_errors) for shift in shifts],
            per_minute=[Minute(*map(int, row)) for row in self._store.rows(minutes)],
        )
        banner, advice = _advice(watch, recent)
        return replace(watch, banner=banner, advice=advice)

    def _monitor(self, name: str, number: int) -> Monitor | None:
        """The monitor of this episode; None where rows cannot be watched one by one."""
        at, monitor = self._monitors.get(name, (None, None))
        seen = None if monitor is None else monitor.watched
        is_over = seen is not None and seen.rows >= MOST_WATCHED and seen.broken_at is None
        if at != number or is_over:
            try:
                monitor = Monitor(self._ledger.detector(number), delta=DELTA / self._workers)
            except UserError:  # there is nothing to compare with
                monitor = None
            self._monitors[name] = number, monitor
        return monitor

    def _save(self, name: str, monitor: Monitor) -> None:
        file, table = io.BytesIO(), schema.monitors
        monitor.write(file)
        mine = (table.c.model == name) & (table.c.worker == self._worker)
        values = {"at": now(), "state": file.getvalue()}
        with self._store.writing(synced=False) as connection:
            if not connection.execute(update(table).where(mine).values(**values)).rowcount:
                old = table.c.at < now() - _FORGOTTEN_AFTER
                connection.execute(delete(table).where(old))
                connection.execute(insert(table).values(model=name, worker=self._worker, **values))
        self._saved[name] = time.monotonic()


def _read(state: bytes, detector: Detector) -> Monitor | None:
    """The monitor that a worker has stored, if it is of this version and has seen rows."""
    try:
        monitor = Monitor.read(io.BytesIO(state), detector)
    except UserError:
        return None
    return monitor if monitor.watched.rows else None


def _advice(watch: Watch, recent: Recent | None) -> tuple[str | None, str | None]:
    """What is wrong, if anything, and what to do."""
    if watch.broken_at is not None:
        moved = ", ".join(column for column, _ in watch.shifts[:3])
        broken = ""
        if watch.promised is not None:
            broken = f": the promised {watch.promised:.1%} of false alarms does not hold"
        return (
            f"Rows no longer look like those that were learnt (since row {watch.broken_at:,} of "
            f"this version){broken}.",
            f"Look at the columns that have moved ({moved}). If the new rows are normal, judge "
            f"rows of the queue, or fit again with recent rows; if not, look at the alarms.",
        )
    if recent is not None and recent.too_many and watch.promised is not None:
        return (
            f"{recent.alarm_rate:.1%} of the last {recent.rows:,} rows raised an alarm, where "
            f"{watch.promised:.1%} of normal ones may.",
            "Either there are more anomalies, or normal rows have changed: judge some of the "
            "latest alarms to find out.",
        )
    return None, None
