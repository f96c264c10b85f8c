"""Watching: how many rows and alarms came, and whether rows still look like those learnt."""

import io
import math
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from eqsep.detector.model import Model, Verdicts
from eqsep.errors import UserError
from eqsep.monitor import Monitor, Recent, Watched
from eqsep.serve import schema
from eqsep.serve.ledger import Ledger, Row, rows_for
from eqsep.serve.store import Store, now

DELTA = 0.01  # the probability of a false drift alert in an episode, over all workers
MOST_REAL = 0.2  # a larger share of alarms is hardly that of anomalies
_WORDS = {10.0: "moderate", 3.0: "weak", 0.0: "none"}  # evidence from such a capital on
MOST_WATCHED = 100_000  # rows of an episode: all their scores are stored
_SAVED_EVERY = 20.0  # seconds
_FORGOTTEN_AFTER = 86_400.0  # seconds without news from a worker
_SECONDS_SHOWN = 3 * 3600  # seconds of counts
_MINUTE = 60
_KEY = ("model", "minute", "version", "worker")
_COUNTED_COLUMNS = ("rows", "alarms", "shadow_alarms")
_SUMS = [func.sum(schema.counts.c[column]) for column in _COUNTED_COLUMNS]
_ADDED = (  # made once: it is done with every batch of rows
    update(schema.counts)
    .where(*(schema.counts.c[column] == bindparam(f"its_{column}") for column in _KEY))
    .values({c: schema.counts.c[c] + bindparam(f"more_{c}") for c in _COUNTED_COLUMNS})
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
    # of drift among rows that raise no alarm: "none", "weak", "moderate" or "strong", which comes
    # up by chance in one episode of 100; None where no rows were watched
    evidence: str | None
    drift_since: float | None  # when it became strong, in seconds since 1970
    martingale: float | None  # the highest capital of a bet on drift that began with 1
    broken_at: int | None  # the row of the episode at which it became strong
    too_many: bool  # whether more of the last rows raised an alarm than the promise allows
    shifts: list[tuple[str, float]]  # columns with moved means, in standard errors, farthest first
    changes: dict[str, str]  # how each of these has moved, in words
    far: float | None  # the standard errors beyond which a column has moved
    compared: str  # the rows by which columns are compared, such as "the last 563 rows"
    per_minute: list[Minute]  # the last hours, of all versions
    banner: str | None = None  # what is wrong
    advice: str | None = None  # what to do
    note: str | None = None  # what to know, where nothing is wrong

    @property
    def alarm_rate(self) -> float:
        """The share of rows that raised an alarm."""
        return self.alarms / max(self.rows, 1)

    @property
    def moved(self) -> list[str]:
        """The columns that have moved, the farthest first."""
        far = math.inf if self.far is None else self.far
        return [column for column, errors in self.shifts if abs(errors) > far]

    @property
    def is_early(self) -> bool:
        """Whether too few rows came in the episode to say anything."""
        return self.far is None


@dataclass(frozen=True)
class _Fixed:
    """A fitted detector, to a monitor: a version never learns."""

    model_: Model


class Watching:
    """Watches models by rows that raise no alarm, as anomalies may be common without any drift."""

    def __init__(self, store: Store, ledger: Ledger, *, workers: int = 1) -> None:
        self._store, self._ledger, self._workers = store, ledger, workers
        self._worker = secrets.token_hex(8)
        self._monitors: dict[str, tuple[int, Monitor | None]] = {}
        self._drift_at: dict[str, float] = {}
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
                seen = monitor.update_scored(encoded, verdicts.score, groups=groups)
                if seen.broken_at is not None:
                    self._drift_at.setdefault(name, now())
            if time.monotonic() - self._saved.get(name, 0.0) >= _SAVED_EVERY:
                self._save(name, monitor)

    def count(self, connection: Connection, name: str, number: int, n: dict[str, int]) -> None:
        """Add rows, alarms and shadow alarms to the counts of this minute."""
        key = {"model": name, "version": number, "worker": self._worker}
        key["minute"] = int(now()) // _MINUTE * _MINUTE
        values = {f"its_{column}": value for column, value in key.items()}
        values |= {f"more_{column}": value for column, value in n.items()}
        if not connection.execute(_ADDED, values).rowcount:
            connection.execute(insert(schema.counts).values(**key, **n))

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
        model = self._ledger.model(number)
        shown = int(now() - _SECONDS_SHOWN) // _MINUTE * _MINUTE
        counts, monitors = schema.counts.c, schema.monitors.c
        mine = counts.model == name
        rows, alarms, _ = self._store.first(select(*_SUMS).where(mine, counts.version == number))
        minutes = select(counts.minute, *_SUMS).where(mine, counts.minute >= shown)
        minutes = minutes.group_by(counts.minute).order_by(counts.minute)
        kept = select(monitors.state, monitors.drift_at).where(monitors.model == name)
        found = [(_read(row.state, model), row.drift_at) for row in self._store.rows(kept)]
        watched = [monitor for monitor, _ in found if monitor is not None]
        since = [at for monitor, at in found if monitor is not None and at is not None]
        worst = max(watched, key=lambda monitor: monitor.watched.highest, default=None)
        recent = None if worst is None else worst.recent()
        shifts = [] if worst is None else worst.shifts()[:10]
        broken = [m.watched.broken_at for m in watched if m.watched.broken_at is not None]
        watch = Watch(
            version=number,
            rows=int(rows or 0),
            alarms=int(alarms or 0),
            promised=model.promise.false_alarm_rate if model.rank else None,
            evidence=None if worst is None else evidence_of(worst.watched),
            drift_since=min(since, default=None),
            martingale=None if worst is None else worst.watched.highest,
            broken_at=min(broken, default=None),
            too_many=recent is not None and recent.too_many,
            shifts=[(shift.column, shift.standard_errors) for shift in shifts],
            changes={shift.column: shift.change for shift in shifts},
            compared="" if recent is None else recent.compared,
            far=None if recent is None or recent.unjudged else recent.far,
            per_minute=[Minute(*map(int, row)) for row in self._store.rows(minutes)],
        )
        return replace(watch, **_advice(watch, recent))

    def shadowed(self, name: str) -> list[tuple[float, float]]:
        """From when to when versions scored as a shadow, in seconds since 1970."""
        audit = schema.audit.c
        query = select(audit.at, audit.detail).where(audit.action == "shadow").order_by(audit.id)
        found = [(row.at, row.detail) for row in self._store.rows(query)]
        mine = [(at, detail["version"]) for at, detail in found if detail.get("model") == name]
        ends = [at for at, _ in mine[1:]] + [math.inf]
        return [(at, end) for (at, version), end in zip(mine, ends, strict=False) if version]

    def _monitor(self, name: str, number: int) -> Monitor | None:
        """The monitor of this episode; None where rows cannot be watched one by one."""
        at, monitor = self._monitors.get(name, (None, None))
        seen = None if monitor is None else monitor.watched
        is_over = seen is not None and seen.rows >= MOST_WATCHED and seen.broken_at is None
        if at != number or is_over:
            try:
                fixed, delta = _Fixed(self._ledger.model(number)), DELTA / self._workers
                monitor = Monitor(fixed, delta=delta, quiet_only=True)
            except UserError:  # there is nothing to compare with
                monitor = None
            self._monitors[name] = number, monitor
            self._drift_at.pop(name, None)
        return monitor

    def _save(self, name: str, monitor: Monitor) -> None:
        file, table = io.BytesIO(), schema.monitors
        monitor.write(file)
        mine = (table.c.model == name) & (table.c.worker == self._worker)
        values = {"at": now(), "state": file.getvalue(), "drift_at": self._drift_at.get(name)}
        with self._store.writing(synced=False) as connection:
            if not connection.execute(update(table).where(mine).values(**values)).rowcount:
                connection.execute(delete(table).where(table.c.at < now() - _FORGOTTEN_AFTER))
                connection.execute(insert(table).values(model=name, worker=self._worker, **values))
        self._saved[name] = time.monotonic()


def _read(state: bytes, model: Model) -> Monitor | None:
    """The monitor that a worker has stored, if it is of this version and has seen quiet rows."""
    try:
        monitor = Monitor.read(io.BytesIO(state), _Fixed(model))
    except UserError:
        return None
    return monitor if monitor.watched.rows and monitor.quiet_only else None


def evidence_of(seen: Watched) -> str:
    """How strong the evidence of drift is, in a word; once strong, it stays so."""
    if seen.broken_at is not None:
        return "strong"
    return next(word for least, word in _WORDS.items() if seen.martingale >= least)


def _advice(watch: Watch, recent: Recent | None) -> dict[str, Any]:
    """What is wrong, if anything, what to do, and what to know where nothing is wrong."""
    if watch.broken_at is not None:
        moved = ", ".join(column for column, _ in watch.shifts[:3])
        broken = "Rows without an alarm no longer look like the rows learnt"
        if watch.promised is not None:
            broken += f": the promised false-alarm rate of {watch.promised:.1%} does not hold"
        advice = (
            f"Look at the columns that have moved ({moved}). If the new rows are normal, judge "
            f"rows from the queue or fit again with recent rows. If not, look at the alarms."
        )
        return {"banner": f"{broken}.", "advice": advice}
    seen = "Rows without an alarm show no evidence of change"
    moved = " and ".join(watch.moved[:3])
    if moved:
        has, it = ("have", "them") if len(watch.moved) > 1 else ("has", "it")
        seen = "The scores of rows without an alarm have not changed"
        seen += f", but {moved} {has} moved: look at {it}."
    if recent is None or not recent.too_many or watch.promised is None:
        return {"note": seen} if moved else {}
    many = (
        f"{recent.alarm_rate:.1%} of the last {recent.rows:,} rows raised an alarm; the promise "
        f"allows {watch.promised:.1%} of normal rows."
    )
    if recent.alarm_rate > MOST_REAL:
        changed = "They can hardly all be anomalies: normal rows may have changed."
        return {"banner": many, "advice": f"{changed} Judge some of the latest alarms to find out."}
    if not moved:
        seen += ", so the alarms are anomalies or a new sort of normal row"
        seen += ": judge some of the latest ones to find out."
    return {"note": f"{many} {seen}"}
