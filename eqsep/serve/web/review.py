"""The API of those who judge: alarms, verdicts, what they teach, and what to judge next."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from eqsep.errors import UserError
from eqsep.evaluation.promises import Share
from eqsep.serve.log import Lesson, Version
from eqsep.serve.previews import Preview
from eqsep.serve.queue import Offered
from eqsep.serve.records import Alarm, Filter, Group, Page, Verdict
from eqsep.serve.verdicts import Given
from eqsep.serve.watching import Watch
from eqsep.serve.web.guards import require
from eqsep.serve.web.rows import RowReader, counted_rows
from eqsep.serve.web.service import Service

Limit = Annotated[int, Query(ge=1, le=500)]
Ids = Annotated[list[int], Field(min_length=1, max_length=10_000)]
Text = Annotated[str, Field(max_length=200)]
Note = Annotated[str, Field(max_length=2_000)]


class Body(BaseModel):
    """What a request says; a field that is not known is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Sought(BaseModel):
    """Which alarms are asked for; an assignee of "" is nobody."""

    model_config = ConfigDict(extra="forbid")

    state: Literal["open", "unsure", "judged", "cleared", "quiet"] = "open"
    kind: Text | None = None
    entity: Text | None = None
    assignee: Text | None = None
    min_score: float | None = None
    since: float | None = None
    column: Text | None = None
    value: Text | None = None
    order: Literal["at", "score"] = "at"
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    offset: Annotated[int, Field(ge=0)] = 0


class Judgement(Body):
    """A verdict on rows: "true" with its kind, "false alarm", "expected" or "unsure"."""

    rows: Ids
    verdict: Text
    kind: Text | None = None
    note: Note = ""


class Undone(Body):
    """Verdicts that are taken back, by their numbers."""

    verdicts: Ids


class Taught(Body):
    """Rows and their labels: kinds, or "normal". `judged` rows had raised an alarm before."""

    rows: list[dict[str, Any]]
    labels: list[Text]
    judged: bool = False
    note: Note = ""


class Assignment(Body):
    """Who looks at rows; null is nobody."""

    rows: Ids
    assignee: Text | None


class Remark(Body):
    """A note on a row."""

    note: Note


@dataclass(frozen=True)
class Judged:
    """An alarm with its reasons, and all verdicts that were given on it, the undone too."""

    alarm: Alarm
    verdicts: list[Verdict]


@dataclass(frozen=True)
class ToJudge:
    """Rows whose labels would help most, and what random quiet rows say of misses."""

    offered: list[Offered]
    missed: Share


def router(service: Service) -> APIRouter:
    """All of it."""
    routes = APIRouter()
    routes.include_router(_alarms(service), tags=["alarms"])
    routes.include_router(_verdicts(service), tags=["verdicts"])
    return routes


def _alarms(service: Service) -> APIRouter:
    routes, ws = APIRouter(), service.ws

    @routes.get("/models/{name}/alarms")
    def alarms(request: Request, name: str, sought: Annotated[Sought, Query()]) -> Page:
        """The alarms of a model that pass the filter, the newest first."""
        require(request, "view")
        wanted = Filter(**sought.model_dump(exclude={"limit", "offset"}))
        return ws.alarms.inbox(name, wanted, limit=sought.limit, offset=sought.offset)

    @routes.get("/models/{name}/groups")
    def groups(request: Request, name: str) -> list[Group]:
        """Open alarms of kinds that nobody has named, those together that look alike."""
        require(request, "view")
        return ws.alarms.groups(name)

    @routes.get("/models/{name}/queue")
    def queue(request: Request, name: str, limit: Limit = 20) -> ToJudge:
        """The rows whose labels would help most, and what share of anomalies is missed."""
        require(request, "view")
        return ToJudge(ws.queue.offered(name, limit=limit), ws.queue.missed(name))

    @routes.get("/models/{name}/watch")
    def watch(request: Request, name: str) -> Watch:
        """Whether rows are still as those that set the threshold."""
        require(request, "view")
        return ws.watching.status(name)

    @routes.post("/alarms/assign")
    def assign(request: Request, asked: Assignment) -> None:
        """Say who looks at alarms."""
        by = require(request, "judge").name
        ws.alarms.assign(asked.rows, asked.assignee)
        ws.people.log(by, "assigned", rows=asked.rows, to=asked.assignee)

    @routes.get("/alarms/{id}")
    def alarm(request: Request, id: int) -> Judged:
        """An alarm: its row, its reasons, what the live version says of it, its verdicts."""
        require(request, "view")
        return Judged(ws.alarms.explained(id), ws.verdicts.of_row(id))

    @routes.get("/alarms/{id}/alike")
    def alike(request: Request, id: int, limit: Limit = 20) -> list[Alarm]:
        """The alarms nearest to this one."""
        require(request, "view")
        return ws.alarms.alike(id, limit=limit)

    @routes.post("/alarms/{id}/note")
    def annotate(request: Request, id: int, asked: Remark) -> None:
        """Note something on an alarm."""
        by = require(request, "judge").name
        ws.alarms.annotate(id, asked.note)
        ws.people.log(by, "annotated", rows=[id])

    return routes


def _verdicts(service: Service) -> APIRouter:
    routes, ws = APIRouter(), service.ws

    @routes.get("/models/{name}/verdicts")
    def latest(request: Request, name: str, limit: Limit = 50) -> list[Verdict]:
        """The latest verdicts, the newest first."""
        require(request, "view")
        return ws.verdicts.latest(name, limit=limit)

    @routes.post("/verdicts")
    def give(request: Request, asked: Judgement) -> Given:
        """Give a verdict on one row or many; the model learns it before the answer comes."""
        by = require(request, "judge").name
        kind, note = asked.kind, asked.note
        return ws.verdicts.give(asked.rows, asked.verdict, kind=kind, note=note, by=by)

    @routes.post("/verdicts/preview")
    def preview(request: Request, asked: Judgement) -> Preview:
        """What a verdict would change: alarms that go, rows that rise. Nothing is kept."""
        require(request, "view")
        return ws.verdicts.preview(asked.rows, asked.verdict, kind=asked.kind)

    @routes.post("/verdicts/undo")
    def undo_all(request: Request, asked: Undone) -> Version:
        """Take verdicts back, all of one model: it forgets them."""
        by = require(request, "judge").name
        return ws.verdicts.undo(asked.verdicts, by=by)

    @routes.post("/verdicts/{id}/undo")
    def undo(request: Request, id: int) -> Version:
        """Take a verdict back: the model forgets it."""
        return undo_all(request, Undone(verdicts=[id]))

    @routes.post("/models/{name}/learn")
    async def learn(request: Request, name: str, asked: Taught) -> Version:
        """Teach labelled rows, all or none."""
        by = require(request, "judge").name
        return await _taught(service, await service.reader(name), (name, asked, by))

    return routes


async def _taught(service: Service, reader: RowReader, told: tuple[str, Taught, str]) -> Version:
    name, asked, by = told
    rows = counted_rows(asked.rows, service.limits)
    if len(rows) != len(asked.labels):
        raise UserError(f"Expected a label for each of {len(rows)} rows, got {len(asked.labels)}.")
    errors = reader.check(rows).errors
    if errors:
        raise UserError(f"Row {errors[0].row}: {errors[0].error}. Nothing was learnt.")
    lesson = Lesson(rows, list(asked.labels), judged=asked.judged)
    learnt = partial(service.ws.ledger.learn, name, lesson, by=by, note=asked.note)
    version: Version = await run_in_threadpool(learnt)
    await run_in_threadpool(service.ws.people.log, by, "taught", model=name, rows=len(rows))
    return version
