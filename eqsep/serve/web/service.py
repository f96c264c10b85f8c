"""What the routes share: micro-batches of rows, figures for Prometheus, and the workspace."""

import asyncio
import os
import threading
import time
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from eqsep.serve.intake import RowAnswer
from eqsep.serve.store import Unavailable
from eqsep.serve.web import rows as forms
from eqsep.serve.web.limits import Limits, refused
from eqsep.serve.web.rows import CheckedRows, RowChecker, RowError
from eqsep.serve.workspace import Workspace

Row = dict[str, Any]
Take = Callable[[str, list[Row], bool], Sequence[Any]]  # model, rows, whether to keep them
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_FIGURES = (  # of a model: the last is an attribute of its watch
    ("eqsep_rows_total", "counter", "Rows received.", "rows"),
    ("eqsep_alarms_total", "counter", "Rows that raised an alarm.", "alarms"),
    ("eqsep_alarm_rate", "gauge", "Share of alarms.", "alarm_rate"),
    ("eqsep_promised_rate", "gauge", "Promised share of alarms among normal rows.", "promised"),
    ("eqsep_martingale", "gauge", "Evidence that rows have changed.", "martingale"),
    ("eqsep_model_version", "gauge", "The live version.", "version"),
)
_FRESH = 5.0  # seconds for which figures of the store are shown again
PATIENCE = 0.002  # seconds without another request after which a batch is not waited with
_MOST_PATIENT = 8  # such times that a batch waits at most
_SHORT_BODY = 2**15  # bytes that are decoded in less time than another thread takes to begin
_DECODERS = 2  # longer bodies that are decoded at a time
Decoded = TypeVar("Decoded")


def content_type(request: Request) -> str:
    """The type of a body, without its parameters."""
    return request.headers.get("content-type", "application/json").partition(";")[0].strip()


class Busy(Exception):
    """More rows wait than may, or longer than they may: retry later."""


@dataclass(frozen=True, eq=False)
class _Asked:
    """A request that waits."""

    model: str
    rows: list[Row]
    keep: bool
    future: asyncio.Future[Sequence[Any]]


class Batcher:
    """Scores `at_once` rows of several requests together; at most `most` wait for `seconds`."""

    def __init__(
        self, take: Take, *, at_once: int = 256, most: int = 20_000, seconds: float = 30.0
    ) -> None:
        self._take, self._at_once, self._most, self._seconds = take, at_once, most, seconds
        self.waiting = 0  # rows
        self._asked: deque[_Asked] = deque()
        self._ready = threading.Condition()
        self._ends = False
        self._expected = 0  # requests: those of the last batch, and those that came meanwhile

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
        self._thread.join()

    async def answers(self, model: str, rows: list[Row], *, keep: bool) -> Sequence[Any]:
        """The answers to rows, once their batch is done; `Busy` if that is not soon enough."""
        loop = asyncio.get_running_loop()
        asked = _Asked(model, rows, keep, loop.create_future())
        with self._ready:
            if self._ends or (self.waiting and self.waiting + len(rows) > self._most):
                raise Busy
            self._asked.append(asked)
            self.waiting += len(rows)
            if len(self._asked) == 1 or self._is_full():  # not for each: to wake takes time
                self._ready.notify()
        late = loop.call_later(self._seconds, _answer, [asked], [Busy()])
        try:
            return await asked.future
        finally:
            late.cancel()

    def _is_full(self) -> bool:
        """Whether a batch need not wait for more requests."""
        return len(self._asked) >= self._expected or self.waiting >= self._at_once or self._ends

    def _run(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._asked or self._ends)
                if not self._asked:
                    return
                n_before = 0  # wait while more come: few batches cost less
                for _ in range(_MOST_PATIENT):
                    if self._is_full() or len(self._asked) == n_before:
                        break
                    n_before = len(self._asked)
                    self._ready.wait(PATIENCE)
                batch = self._next()
            for alike in batch.values():
                self._score(alike)
            self._expected = len(self._asked) + sum(map(len, batch.values()))

    def _next(self) -> dict[tuple[str, bool], list[_Asked]]:
        """The requests that have waited longest, up to as many rows as a batch may have."""
        batch: dict[tuple[str, bool], list[_Asked]] = {}
        n_rows = 0
        while self._asked and (not batch or n_rows + len(self._asked[0].rows) <= self._at_once):
            asked = self._asked.popleft()
            self.waiting -= len(asked.rows)
            if not asked.future.done():  # else nobody waits any longer
                batch.setdefault((asked.model, asked.keep), []).append(asked)
                n_rows += len(asked.rows)
        return batch

    def _score(self, batch: list[_Asked]) -> None:
        """Score requests together; if that fails, each alone, so that one harms no other."""
        rows = [row for asked in batch for row in asked.rows]
        try:
            answers = iter(self._take(batch[0].model, rows, batch[0].keep))
            found: list[Any] = [list(islice(answers, len(asked.rows))) for asked in batch]
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, Unavailable):
                for asked in batch:
                    self._score([asked])
                return
            found = [error] * len(batch)  # each would wait in vain
        with suppress(RuntimeError):  # the loop has ended; it is woken once, as that takes time
            batch[0].future.get_loop().call_soon_threadsafe(_answer, batch, found)


def _answer(batch: list[_Asked], answers: list[Any]) -> None:
    for asked, found in zip(batch, answers, strict=True):
        if not asked.future.done():  # else nobody waits any longer
            is_error = isinstance(found, Exception)
            (asked.future.set_exception if is_error else asked.future.set_result)(found)


class Metrics:
    """The figures of this process, and those that the store has of all processes."""

    def __init__(self, ws: Workspace) -> None:
        self._ws = ws
        self._counts: dict[str, list[int]] = {}  # requests of each model, by their time
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self.refused = 0  # requests, as too many rows waited
        self._kept: tuple[float, list[str]] = (-_FRESH, [])
        self._lock = threading.Lock()

    def observe(self, model: str, seconds: float) -> None:
        """Count a request for scores that was answered."""
        counts = self._counts.setdefault(model, [0] * (len(BOUNDS) + 1))
        counts[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[model] += seconds

    def text(self, *, waiting: int) -> str:
        """All figures, as Prometheus reads them."""
        process, latency = {"process": str(os.getpid())}, "eqsep_request_seconds"
        lines = [*self._of_store()]
        lines += _family("eqsep_waiting_rows", "gauge", "Rows waiting.", [(process, waiting)])
        refused = [(process, self.refused)]
        lines += _family("eqsep_refused_total", "counter", "Requests while busy.", refused)
        lines += _family(latency, "histogram", "Time to answer.", [])
        for model, counts in list(self._counts.items()):
            labels = {"model": model} | process
            for bound, n in zip((*BOUNDS, "+Inf"), accumulate(counts), strict=True):
                lines.append(_sample(f"{latency}_bucket", labels | {"le": str(bound)}, n))
            lines.append(_sample(f"{latency}_sum", labels, self._seconds[model]))
            lines.append(_sample(f"{latency}_count", labels, sum(counts)))
        return "\n".join(lines) + "\n"

    def _of_store(self) -> list[str]:
        with self._lock:  # one caller asks the store, others see its answer
            at, lines = self._kept
            if time.monotonic() - at >= _FRESH:
                watches = {m: self._ws.watching.status(m) for m in self._ws.ledger.names()}
                lines = []
                for name, kind, meaning, figure in _FIGURES:
                    samples = [({"model": m}, getattr(w, figure)) for m, w in watches.items()]
                    lines += _family(name, kind, meaning, samples)
                self._kept = (time.monotonic(), lines)
            return lines


def _family(
    name: str, kind: str, meaning: str, samples: Iterable[tuple[dict[str, str], float]]
) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield _sample(name, labels, value)


def _sample(name: str, labels: dict[str, str], value: float | None) -> str:
    escapes = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
    inside = ",".join(f'{key}="{text.translate(escapes)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {'NaN' if value is None else value}"


class Service:
    """One process of the service."""

    def __init__(self, ws: Workspace, limits: Limits) -> None:
        self.ws, self.limits = ws, limits
        self.metrics = Metrics(ws)
        self.batcher = Batcher(self._take, most=limits.waiting, seconds=limits.seconds)
        self._readers: dict[str, RowChecker] = {}
        self._decoders = ThreadPoolExecutor(_DECODERS, "decoder")

    async def reader(self, model: str) -> RowChecker:
        """What checks rows of a model: its columns are the same in all of its versions."""
        found = self._readers.get(model)
        return await run_in_threadpool(self.known, model) if found is None else found

    def known(self, model: str) -> RowChecker:
        """The same, where a thread may wait for the store."""
        if model not in self._readers:
            self._readers[model] = RowChecker(self.ws.ledger.live_model(model), self.limits)
        return self._readers[model]

    async def rows(self, request: Request, model: str) -> CheckedRows:
        """The rows of a request, in the form that its Content-Type names."""
        reader, body = await self.reader(model), request.scope["body"]
        kind, limits = content_type(request), self.limits
        if kind == "application/json":
            return await self.decoded(body, lambda: reader.check(forms.json_rows(body, limits)))
        if kind == "text/csv":
            return await self.decoded(body, lambda: forms.csv_rows(body, limits, reader=reader))
        if kind == forms.ARROW:
            return await self.decoded(None, lambda: reader.check(forms.arrow_rows(body, limits)))
        raise refused(415, f"Expected application/json, text/csv or {forms.ARROW}, got {kind!r}.")

    async def decoded(self, body: bytes | None, decode: Callable[[], Decoded]) -> Decoded:
        """What a body says; long ones, which may take many times their bytes, few at a time."""
        if body is not None and len(body) <= _SHORT_BODY:
            return decode()
        return await asyncio.get_running_loop().run_in_executor(self._decoders, decode)

    async def answered(
        self, model: str, checked: CheckedRows, *, keep: bool
    ) -> tuple[list[RowAnswer | None], list[RowError]]:
        """An answer for each row of a request, None for a bad one, and what is wrong with those."""
        if not checked.rows:
            return [None] * checked.n_rows, checked.errors
        start = time.perf_counter()
        try:
            good = await self.batcher.answers(model, checked.rows, keep=keep)
        except Busy as error:
            self.metrics.refused += 1
            message = "Too many rows are waiting to be scored. Retry in 1 s."
            raise refused(503, message, retry_after="1") from error
        self.metrics.observe(model, time.perf_counter() - start)
        answers, errors = checked.spread(good), list(checked.errors)
        for place, answer in enumerate(answers):
            if answer is not None and answer.error is not None:
                answers[place] = None
                errors.append(RowError(place, answer.error))
        return answers, sorted(errors, key=lambda error: error.row)

    def _take(self, model: str, rows: list[Row], keep: bool) -> Sequence[RowAnswer]:
        return self.ws.intake.take(model, rows) if keep else self.ws.intake.score(model, rows)
