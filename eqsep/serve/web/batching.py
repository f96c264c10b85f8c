"""Micro-batches: requests that come together are scored together, in one transaction.

One thread of a process scores. While it does, requests gather; the next batch is all of them. A
request that comes alone waits for nobody.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Take = Callable[[str, list[Row], bool], Sequence[Any]]  # model, rows, whether to keep them


class Busy(Exception):
    """More rows wait than may: come again later."""


@dataclass(eq=False, slots=True)
class _Asked:
    """A request that waits: its rows, and where its answers go."""

    model: str
    rows: list[Row]
    keep: bool
    future: asyncio.Future[Sequence[Any]]
    answers: Sequence[Any] = ()
    error: Exception | None = None

    def tell(self) -> None:
        if self.future.done():  # nobody waits any longer
            return
        if self.error is None:
            self.future.set_result(self.answers)
        else:
            self.future.set_exception(self.error)


@dataclass(eq=False)
class Batcher:
    """Gathers rows of requests and has them scored by one thread.

    Parameters
    ----------
    take : callable
        From a model's name, rows, and whether to keep them, to an answer for each row.
    at_once : int
        Rows of a batch; a request with more is a batch of its own.
    most : int
        Rows that may wait.
    patience : float
        Seconds that a batch waits at most for requests such as came with the last one.
    """

    take: Take
    at_once: int = 256
    most: int = 20_000
    patience: float = 0.004
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
            for same in _alike(batch):
                self._score(same)
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


def _alike(batch: list[_Asked]) -> list[list[_Asked]]:
    """The requests of a batch by their model, and by whether rows are kept."""
    groups: dict[tuple[str, bool], list[_Asked]] = {}
    for asked in batch:
        groups.setdefault((asked.model, asked.keep), []).append(asked)
    return list(groups.values())


def _tell(batch: list[_Asked]) -> None:
    """Wake those who wait, once for all of a loop."""
    loops: dict[asyncio.AbstractEventLoop, list[_Asked]] = {}
    for asked in batch:
        loops.setdefault(asked.future.get_loop(), []).append(asked)
    for loop, told in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_tell_all, told)


def _tell_all(batch: list[_Asked]) -> None:
    for asked in batch:
        asked.tell()
