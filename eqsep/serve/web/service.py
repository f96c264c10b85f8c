"""What the routes share: micro-batches of rows, figures for Prometheus, and the workspace."""

import asyncio
import os
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from eqsep.errors import UserError
from eqsep.serve.intake import Answer
from eqsep.serve.web.limits import Limits, refused
from eqsep.serve.web.rows import (
    ARROW,
    CheckedRows,
    RowError,
    RowReader,
    arrow_rows,
    csv_rows,
    json_rows,
)
from eqsep.serve.workspace import Workspace

Row = dict[str, Any]
Take = Callable[[str, list[Row], bool], Sequence[Any]]  # model, rows, whether to keep them
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_FIGURES = (  # of a model: the last is an attribute of its watch
    ("eqsep_rows_total", "counter", "Rows taken in.", "rows"),
    ("eqsep_alarms_total", "counter", "Rows that raised an alarm.", "alarms"),
    ("eqsep_alarm_rate", "gauge", "Share of alarms.", "alarm_rate"),
    ("eqsep_promised_rate", "gauge", "Share promised of normal rows.", "promised"),
    ("eqsep_martingale", "gauge", "Evidence that rows have changed.", "martingale"),
    ("eqsep_model_version", "gauge", "The live version.", "version"),
)
_FRESH = 5.0  # seconds that what the store says is shown again


class Busy(Exception):
    """More rows wait than may: retry later."""


@dataclass(eq=False, slots=True)
class _Asked:
    """A request that waits: its rows, and where its answers go."""

    model: str
    rows: list[Row]
    keep: bool
    future: asyncio.Future[Sequence[Any]]
    answers: Sequence[Any] = ()
    error: Exception | None = None


@dataclass(eq=False)
class Batcher:
    """Gathers rows of requests, and has them scored by one thread in one transaction.

    While it scores, requests gather; the next batch is all of them. A request that comes alone
    waits for nobody.
    """

    take: Take
    at_once: int = 256  # rows of a batch; a request with more is a batch of its own
    most: int = 20_000  # rows that may wait
    patience: float = 0.004  # seconds to wait for as many requests as came with the last batch
    waiting: int = 0
    _asked: deque[_Asked] = field(default_factory=deque)
    _ready: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None
    _ends: bool = False
    _last: int = 0

    def start(self) -> None:
        """Begin to score."""
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="scoring", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Score what waits, and end."""
        with self._ready:
            self._ends = True
            self._ready.notify()
        if self._thread is not None:
            self._thread.join()

    async def answers(self, model: str, rows: list[Row], *, keep: bool) -> Sequence[Any]:
        """The answers to rows, once their batch is done."""
        asked = _Asked(model, rows, keep, asyncio.get_running_loop().create_future())
        with self._ready:
            if self._ends or (self.waiting and self.waiting + len(rows) > self.most):
                raise Busy
            self._asked.append(asked)
            self.waiting += len(rows)
            self._ready.notify()
        return await asked.future

    def _run(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._asked or self._ends)
                if not self._asked:
                    return
                self._gather()
                batch = self._next()
            same: dict[tuple[str, bool], list[_Asked]] = {}
            for asked in batch:
                same.setdefault((asked.model, asked.keep), []).append(asked)
            for alike in same.values():
                self._score(alike)
            _tell(batch)

    def _gather(self) -> None:
        """Wait a moment for as many requests as came together last: few batches cost less."""
        if self._last > 1:
            self._ready.wait_for(
                lambda: len(self._asked) >= self._last or self._ends, timeout=self.patience
            )
        self._last = len(self._asked)

    def _next(self) -> list[_Asked]:
        """The requests that have waited longest, of so many rows as one batch has."""
        batch: list[_Asked] = []
        n_rows = 0
        while self._asked and (not batch or n_rows + len(self._asked[0].rows) <= self.at_once):
            asked = self._asked.popleft()
            self.waiting -= len(asked.rows)
            if not asked.future.done():  # else nobody waits any longer
                batch.append(asked)
                n_rows += len(asked.rows)
        return batch

    def _score(self, batch: list[_Asked]) -> None:
        """Score requests together; where that fails each alone, so that one harms no other."""
        rows = [row for asked in batch for row in asked.rows]
        try:
            answers = self.take(batch[0].model, rows, batch[0].keep)
        except Exception as error:
            if len(batch) == 1:
                batch[0].error = error
                return
            for asked in batch:
                self._score([asked])
            return
        start = 0
        for asked in batch:
            end = start + len(asked.rows)
            asked.answers = answers[start:end]
            start = end


def _tell(batch: list[_Asked]) -> None:
    """Wake those who wait, once for all of a loop."""
    loops: dict[asyncio.AbstractEventLoop, list[_Asked]] = {}
    for asked in batch:
        loops.setdefault(asked.future.get_loop(), []).append(asked)
    for loop, waiting in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_tell_all, waiting)


def _tell_all(batch: list[_Asked]) -> None:
    for asked in batch:
        if asked.future.done():  # nobody waits any longer
            continue
        if asked.error is None:
            asked.future.set_result(asked.answers)
        else:
            asked.future.set_exception(asked.error)


class Histogram:
    """How many requests took how long.

    Examples
    --------
    >>> histogram = Histogram()
    >>> for seconds in (0.002, 0.004, 9.0):
    ...     histogram.observe(seconds)
    >>> [n for bound, n in histogram.cumulative() if bound in ("0.0025", "0.005", "+Inf")]
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self.total, self.seconds = 0, 0.0
        self._counts = [0] * (len(BOUNDS) + 1)

    def observe(self, seconds: float) -> None:
        """Count one request."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += 1
        self.seconds += seconds

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """The requests up to each bound."""
        so_far = 0
        for bound, n in zip((*map(str, BOUNDS), "+Inf"), self._counts, strict=True):
            so_far += n
            yield bound, so_far


class Metrics:
    """The figures of this process, and those that the store has of all processes."""

    def __init__(self, ws: Workspace) -> None:
        self._ws = ws
        self._latency: dict[str, Histogram] = {}
        self._refused = 0
        self._kept: tuple[float, list[str]] = (-_FRESH, [])
        self._lock = threading.Lock()

    def observe(self, model: str, seconds: float) -> None:
        """A request for scores was answered."""
        self._latency.setdefault(model, Histogram()).observe(seconds)

    def refuse(self) -> None:
        """A request was refused, as too many rows wait."""
        self._refused += 1

    def text(self, *, waiting: int) -> str:
        """All of it, as Prometheus reads it."""
        process = {"process": str(os.getpid())}
        lines = [*self._of_store()]
        lines += _family("eqsep_waiting_rows", "gauge", "Rows that wait.", [(process, waiting)])
        refused = [(process, self._refused)]
        lines += _family("eqsep_refused_total", "counter", "Requests while busy.", refused)
        lines += [
            "# HELP eqsep_request_seconds Time to answer.",
            "# TYPE eqsep_request_seconds histogram",
        ]
        for model, histogram in list(self._latency.items()):
            labels = {"model": model} | process
            for bound, n in histogram.cumulative():
                lines.append(_sample("eqsep_request_seconds_bucket", labels | {"le": bound}, n))
            lines.append(_sample("eqsep_request_seconds_sum", labels, histogram.seconds))
            lines.append(_sample("eqsep_request_seconds_count", labels, histogram.total))
        return "\n".join(lines) + "\n"

    def _of_store(self) -> list[str]:
        with self._lock:  # one caller asks the store, others see its answer
            at, lines = self._kept
            if time.monotonic() - at >= _FRESH:
                lines = list(self._asked())
                self._kept = (time.monotonic(), lines)
            return lines

    def _asked(self) -> Iterator[str]:
        watches = {name: self._ws.watching.status(name) for name in self._ws.ledger.names()}
        for name, kind, meaning, figure in _FIGURES:
            samples = [({"model": model}, getattr(w, figure)) for model, w in watches.items()]
            yield from _family(name, kind, meaning, samples)


def _family(
    name: str, kind: str, meaning: str, samples: Iterable[tuple[dict[str, str], float]]
) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield _sample(name, labels, value)


def _sample(name: str, labels: dict[str, Any], value: float | None) -> str:
    inside = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {'NaN' if value is None else value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class Service:
    """One process of the service."""

    def __init__(self, ws: Workspace, limits: Limits) -> None:
        self.ws, self.limits = ws, limits
        self.metrics = Metrics(ws)
        self.batcher = Batcher(self._take, most=limits.waiting)
        self._readers: dict[str, RowReader] = {}

    async def reader(self, model: str) -> RowReader:
        """What checks rows of a model: its columns are the same in all of its versions."""
        found = self._readers.get(model)
        return await run_in_threadpool(self.known, model) if found is None else found

    def known(self, model: str) -> RowReader:
        """The same, where a thread may wait for the store."""
        if model not in self._readers:
            ledger = self.ws.ledger
            detector = ledger.detector(ledger.live(model).id)
            self._readers[model] = RowReader(detector, self.limits)
        return self._readers[model]

    async def rows(self, request: Request, model: str) -> CheckedRows:
        """The rows of a request, in the form that its Content-Type names."""
        reader, body = await self.reader(model), await request.body()
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
        if kind == "application/json":
            return reader.check(json_rows(body, self.limits))
        if kind == "text/csv":
            return csv_rows(body, self.limits, reader=reader)
        if kind == ARROW:
            return reader.check(arrow_rows(body, self.limits))
        raise refused(415, f"Expected application/json, text/csv or {ARROW}, got {kind!r}.")

    async def answers(self, model: str, rows: list[Row], *, keep: bool) -> Sequence[Answer]:
        """The answers to good rows, together with whatever else comes at this moment."""
        start = time.perf_counter()
        try:
            async with asyncio.timeout(self.limits.seconds):
                answers = await self.batcher.answers(model, rows, keep=keep)
        except (Busy, TimeoutError) as error:
            self.metrics.refuse()
            message = "More rows wait than can be scored in time. Retry in 1 s."
            raise refused(503, message, retry_after="1") from error
        self.metrics.observe(model, time.perf_counter() - start)
        return answers

    async def answered(
        self, model: str, checked: CheckedRows, *, keep: bool
    ) -> tuple[list[Answer | None], list[RowError]]:
        """An answer for each row of a request, None where it is bad, and what is wrong then."""
        if not checked.rows:
            return [None] * checked.n_rows, checked.errors
        answers = checked.spread(await self.answers(model, checked.rows, keep=keep))
        errors = list(checked.errors)
        for place, answer in enumerate(answers):
            if answer is not None and answer.error is not None:
                answers[place] = None
                errors.append(RowError(place, answer.error))
        return answers, sorted(errors, key=lambda error: error.row)

    def only_model(self) -> str:
        """The name of the model, where there is one alone."""
        names = self.ws.ledger.names()
        if len(names) != 1:
            raise UserError(f"Which model? There are {len(names)}: name one with ?model=NAME.")
        return names[0]

    def _take(self, model: str, rows: list[Row], keep: bool) -> Sequence[Answer]:
        return self.ws.intake.take(model, rows) if keep else self.ws.intake.score(model, rows)
