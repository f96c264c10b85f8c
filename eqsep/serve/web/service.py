"""What the routes share: the workspace, the micro-batches, the limits and the figures."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from eqsep.errors import UserError
from eqsep.serve.intake import Answer
from eqsep.serve.web.arrow import MEDIA_TYPE as ARROW
from eqsep.serve.web.arrow import arrow_rows
from eqsep.serve.web.batching import Batcher, Busy
from eqsep.serve.web.faults import refused
from eqsep.serve.web.limits import Limits
from eqsep.serve.web.metrics import Metrics
from eqsep.serve.web.rows import CheckedRows, RowError, RowReader, csv_rows, json_rows
from eqsep.serve.workspace import Workspace

Row = dict[str, Any]


class Service:
    """One process of the service.

    Parameters
    ----------
    ws : Workspace
    limits : Limits
    """

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
            told = "More rows wait than can be scored in time. Come again in 1 s."
            raise refused(503, told, retry_after="1") from error
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
