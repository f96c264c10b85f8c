"""The API under /api/v1: rows to score, alarms to judge, models and tokens to manage."""

import re
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from eqsep.detector.explainer import Explanation
from eqsep.errors import UserError
from eqsep.evaluation.promises import Share
from eqsep.persistence.files import model_of
from eqsep.serve.alarms import Alarm, Filter, Group, Offered, Page, Verdict
from eqsep.serve.exemptions import Exempted, Exemption
from eqsep.serve.incidents import MOST_GAP, Incident, Incidents
from eqsep.serve.intake import RowAnswer
from eqsep.serve.ledger import Lesson, Replay, Version
from eqsep.serve.notices import Delivery, Subscription
from eqsep.serve.people import Entry, Person, Session
from eqsep.serve.purging import Purged
from eqsep.serve.texts import Asked, Invalid, NoteText, Text, WholeNumber
from eqsep.serve.verdicts import Given, Preview, Reviewed
from eqsep.serve.watching import Watch
from eqsep.serve.web.guards import Admin, Judge, Viewer, person, require
from eqsep.serve.web.limits import TooMany, problem, refused
from eqsep.serve.web.rows import ARROW, CheckedRows, RowError, answers_stream, counted_rows, parsed
from eqsep.serve.web.service import Service

JSON = "application/json"
_SCORE = re.compile(r"/api/v1/models/([^/]+)/score")
_KEEPS = {b"": True, b"keep=true": True, b"keep=false": False}
_MOST_EXPLAINED = 100  # rows of a request: an explanation costs a hundred scores
_ROW = {"type": "object", "additionalProperties": True, "description": "Values by column."}
_LIST = {"rows": {"type": "array", "items": _ROW}}
_ROWS = {"oneOf": [{"type": "object", "required": ["rows"], "properties": _LIST}, _ROW]}
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_FORMS = {JSON: {"schema": _ROWS}, "text/csv": {"schema": {"type": "string"}}, ARROW: _BYTES}
_ROWS_IN = {"requestBody": {"required": True, "content": _FORMS}}
_FILE = {"requestBody": {"required": True, "content": {"application/octet-stream": _BYTES}}}
Limit = Annotated[int, Query(ge=1, le=500)]
One = TypeVar("One")
Top = Annotated[int, Query(ge=1, le=100)]
Ids = Annotated[list[WholeNumber], Field(min_length=1, max_length=10_000)]


class Answers(BaseModel, Generic[One]):
    """An answer for each row; null for an invalid one, which is listed in `errors`."""

    model: str
    answers: list[One | None]
    errors: list[RowError]


def _responses(model: type) -> dict[int | str, dict[str, Any]]:
    """The responses of a route for rows, for OpenAPI."""
    return {
        200: {"model": model},
        422: {"model": model, "description": "All rows are invalid."},
        503: {"description": "Too many rows are waiting: retry after Retry-After."},
    }


def _scoring(routes: APIRouter, service: Service) -> None:
    scores, explanations = _responses(Answers[RowAnswer]), _responses(Answers[Explanation])
    scores[200]["content"] = {ARROW: _BYTES}

    @routes.post("/models/{name}/score", openapi_extra=_ROWS_IN, responses=scores)
    async def score(name: str, request: Request, keep: bool = True) -> Response:
        """Score rows. Alarms are stored for the inbox, unless `keep` is false."""
        return await _scored(service, name, request, keep=keep)

    @routes.post("/models/{name}/explain", openapi_extra=_ROWS_IN, responses=explanations)
    async def explain(name: str, request: Request, _: Viewer, top: Top = 5) -> Response:
        """Explain scores by the columns that drive them."""
        checked = await service.rows(request, name)
        answers = await run_in_threadpool(_explained, service, name, checked, top)
        return _json(name, answers, checked.errors)


def direct(service: Service, otherwise: ASGIApp) -> ASGIApp:
    """Answer requests for scores without the router, which costs more than the score does."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        keep = _KEEPS.get(scope.get("query_string", b""))
        found = _SCORE.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is None or keep is None or scope["method"] != "POST":
            await otherwise(scope, receive, send)
            return
        answer = await _scored(service, found[1], Request(scope, receive), keep=keep)
        await answer(scope, receive, send)

    return app


async def _scored(service: Service, name: str, request: Request, *, keep: bool) -> Response:
    require(request, "judge" if keep else "view")
    checked = await service.rows(request, name)
    answers, errors = await service.answered(name, checked, keep=keep)
    if ARROW in request.headers.get("accept", "") and any(answers):
        by_row = {error.row: error.error for error in errors}
        return Response(answers_stream(answers, by_row), media_type=ARROW)
    return _json(name, answers, errors)


def _explained(service: Service, name: str, checked: CheckedRows, top: int) -> list[Any]:
    if checked.n_rows > _MOST_EXPLAINED:
        raise TooMany(f"Expected at most {_MOST_EXPLAINED} rows to explain, got {checked.n_rows}.")
    explained = service.ws.intake.explain(name, checked.rows, top=top) if checked.rows else []
    found = checked.spread(explained)
    checked.errors.extend([RowError(i, one) for i, one in enumerate(found) if isinstance(one, str)])
    return [asdict(one) if isinstance(one, Explanation) else None for one in found]


def _json(name: str, answers: list[Any], errors: list[RowError]) -> Response:
    body: dict[str, Any] = {"model": name, "answers": answers, "errors": errors}
    if not any(answers):
        body["error"] = f"No row can be read: {errors[0].error}."
    return Response(orjson.dumps(body), 200 if any(answers) else 422, media_type=JSON)


class Body(Asked):
    """The body of a request; an unknown field is an error."""

    model_config = ConfigDict(strict=True)


class Paged(Asked):
    """Which part of a list to return."""

    limit: Annotated[int, Field(ge=1, le=500)] = 50
    offset: WholeNumber = 0


class AlarmQuery(Filter, Paged):
    """Which alarms to return; an assignee of "" means nobody."""


class VerdictQuery(Reviewed, Paged):
    """Which verdicts to return."""


class VerdictRequest(Body):
    """A verdict on rows: "true" with its kind, "false alarm", "expected" or "unsure"."""

    rows: Ids
    verdict: Text
    kind: Text | None = None
    note: NoteText = ""
    replaces: list[WholeNumber] | None = Field(
        default=None,
        description="Verdicts that you know of and replace: if others by somebody else stand, "
        "nothing is done. Without it, any that teach nothing are replaced.",
    )


class UndoRequest(Body):
    """The numbers of the verdicts to undo."""

    verdicts: Ids


class LearnRequest(Body):
    """Rows and their labels: kinds, or "normal". Set `judged` if the rows had raised an alarm."""

    rows: Annotated[list[Any], Field(json_schema_extra={"items": _ROW})]
    labels: list[Text]
    judged: bool = False
    note: NoteText = ""


class Assignment(Body):
    """Who looks at the rows; null means nobody."""

    rows: Ids
    assignee: Text | None


class GroupsNamed(Body):
    """The new name of the groups that rows are in; "" removes it."""

    rows: Ids
    name: Text


class Remark(Body):
    """A note on a row."""

    note: NoteText


@dataclass(frozen=True)
class JudgedAlarm:
    """An alarm with its reasons and all its verdicts, including undone ones."""

    alarm: Alarm
    verdicts: list[Verdict]


@dataclass(frozen=True)
class ToJudge:
    """Rows that would help most if labelled, and the share of anomalies that are missed."""

    offered: list[Offered]
    missed: Share


def _alarms(routes: APIRouter, service: Service) -> None:
    ws = service.ws

    @routes.get("/models/{name}/alarms")
    def alarms(_: Viewer, name: str, sought: Annotated[AlarmQuery, Query()]) -> Page:
        """The alarms of a model that match the filter, newest first."""
        return ws.alarms.inbox(name, sought, limit=sought.limit, offset=sought.offset)

    @routes.get("/models/{name}/incidents")
    def incidents(_: Viewer, name: str, sought: Annotated[AlarmQuery, Query()]) -> Incidents:
        """The alarms that match the filter, folded by entity and time; latest incident first."""
        return ws.folding.incidents(name, sought, limit=sought.limit, offset=sought.offset)

    @routes.get("/models/{name}/incidents/{id}")
    def incident(_: Viewer, name: str, id: WholeNumber) -> Incident:
        """The incident of an alarm."""
        return ws.folding.incident(name, id)

    @routes.get("/models/{name}/groups")
    def groups(_: Viewer, name: str) -> list[Group]:
        """Open alarms of unseen kinds, grouped by similarity."""
        return ws.alarms.groups(name)

    @routes.post("/models/{name}/groups")
    def name_groups(by: Judge, name: str, asked: GroupsNamed) -> list[Group]:
        """Name the groups of some alarms; groups with the same name are merged."""
        ws.alarms.rename_groups(name, asked.rows, asked.name)
        ws.people.log(by, "groups named", model=name, rows=asked.rows, name=asked.name)
        return ws.alarms.groups(name)

    @routes.get("/models/{name}/queue")
    def queue(_: Viewer, name: str, limit: Limit = 20) -> ToJudge:
        """The rows that would help most if labelled, and the share of anomalies missed."""
        return ToJudge(ws.queue.offered(name, limit=limit), ws.queue.missed(name))

    @routes.get("/models/{name}/watch")
    def watch(_: Viewer, name: str) -> Watch:
        """Whether rows still look like those that set the threshold."""
        return ws.watching.status(name)

    @routes.post("/alarms/assign")
    def assign(by: Judge, asked: Assignment) -> None:
        """Assign alarms to somebody."""
        ws.alarms.assign(asked.rows, asked.assignee)
        ws.people.log(by, "assigned", rows=asked.rows, to=asked.assignee)

    @routes.get("/alarms/{id}")
    def alarm(_: Viewer, id: WholeNumber) -> JudgedAlarm:
        """An alarm: its row, reasons, current score and verdicts."""
        return JudgedAlarm(ws.alarms.explained(id), ws.verdicts.of_row(id))

    @routes.get("/alarms/{id}/alike")
    def alike(_: Viewer, id: WholeNumber, limit: Limit = 20) -> list[Alarm]:
        """The alarms most similar to this one."""
        return ws.alarms.alike(id, limit=limit)

    @routes.post("/alarms/{id}/note")
    def annotate(by: Judge, id: WholeNumber, asked: Remark) -> None:
        """Write a note on an alarm."""
        ws.alarms.annotate(id, asked.note)
        ws.people.log(by, "annotated", rows=[id])


def _verdicts(routes: APIRouter, service: Service) -> None:
    ws = service.ws

    @routes.get("/models/{name}/verdicts")
    def latest(_: Viewer, name: str, sought: Annotated[VerdictQuery, Query()]) -> list[Verdict]:
        """The latest verdicts that match the filter, newest first."""
        return ws.verdicts.latest(name, sought, limit=sought.limit, offset=sought.offset)

    @routes.post("/verdicts")
    def give(by: Judge, asked: VerdictRequest) -> Given:
        """Give a verdict on one or more rows; the model has learnt it when the response arrives."""
        given = asked.model_dump(include={"kind", "note", "replaces"})
        return ws.verdicts.give(asked.rows, asked.verdict, by=by, **given)

    @routes.post("/verdicts/preview")
    def preview(_: Viewer, asked: VerdictRequest) -> Preview:
        """What a verdict would change: alarms that clear, rows that alarm. Nothing is stored."""
        return ws.verdicts.preview(asked.rows, asked.verdict, kind=asked.kind)

    @routes.post("/verdicts/undo")
    def undo_all(by: Judge, asked: UndoRequest) -> Version:
        """Undo verdicts, all on one model, which forgets them."""
        return ws.verdicts.undo(asked.verdicts, by=by)

    @routes.post("/verdicts/{id}/undo")
    def undo(by: Judge, id: WholeNumber) -> Version:
        """Undo a verdict: the model forgets it."""
        return ws.verdicts.undo([id], by=by)

    @routes.get("/models/{name}/exemptions")
    def exemptions(_: Viewer, name: str) -> list[Exemption]:
        """The exemptions that keep alarms out of the inbox for a while, newest first."""
        return ws.exemptions.all(name)

    @routes.post("/models/{name}/exemptions")
    def exempt(by: Judge, name: str, asked: Exempted) -> Exemption:
        """Keep alarms of an entity, or with values in a range, out of the inbox for some days."""
        return ws.exemptions.add(name, asked, by=by)

    @routes.delete("/models/{name}/exemptions/{id}")
    def revoke(by: Judge, name: str, id: WholeNumber) -> None:
        """End an exemption: the alarms it kept out of the inbox are open again."""
        ws.exemptions.revoke(name, id, by=by)

    @routes.post("/models/{name}/learn")
    def learn(by: Judge, name: str, asked: LearnRequest) -> Version:
        """Teach the model labelled rows: all of them, or none if one is invalid."""
        rows, n_labels = counted_rows(asked.rows, service.limits), len(asked.labels)
        if len(rows) != n_labels:
            raise UserError(f"Expected a label for each of {len(rows)} rows, got {n_labels}.")
        errors = service.known(name).check(rows).errors
        if errors:
            raise Invalid(f"Row {errors[0].row}: {errors[0].error}. Nothing was learnt.")
        lesson = Lesson(rows, asked.labels, judged=asked.judged)
        version = ws.verdicts.teach(name, lesson, by=by, note=asked.note)
        ws.people.log(by, "taught", model=name, rows=len(rows))
        return version


class RevertRequest(Body):
    """The number of a version."""

    version: WholeNumber


class Shadow(Body):
    """The version to run as a shadow of the live one; null for none."""

    version: WholeNumber | None


class ModelSettings(Body):
    """Columns that the service uses; a field that is left out does not change."""

    entity: Text | None = None
    time: Text | None = None
    # minutes without an alarm that end an incident
    gap: Annotated[float, Field(gt=0, le=MOST_GAP)] | None = None


class Renamed(Body):
    """A kind and its new name; the name of another kind merges the two."""

    old: Text
    new: Text


class NewToken(Body):
    """A token to issue."""

    name: Text
    role: Literal["view", "judge", "admin"]
    days: Annotated[float, Field(gt=0, le=3650)] | None = None  # null: until it is revoked


class Subject(Body):
    """An entity: a value in the entity column."""

    entity: Text


@dataclass(frozen=True)
class ModelOverview:
    """A model: its columns and how each is read, its kinds, and its versions in use."""

    name: str
    live: Version
    shadow: Version | None
    settings: dict[str, Any]
    columns: dict[str, str]
    kinds: tuple[str, ...]
    false_alarm_rate: float
    threshold: float


@dataclass(frozen=True)
class Subscribed:
    """The secret that signs webhook requests; it changes only with the URL."""

    secret: str


@dataclass(frozen=True)
class Issued:
    """A token, which is shown only once."""

    name: str
    role: str
    token: str


def _json_route(service: Service) -> type[APIRoute]:
    """Routes that decode JSON as rows are decoded: counted first, and in another thread."""

    class Decoding(Request):
        async def json(self) -> Any:
            body = await self.body()
            try:
                return await service.decoded(body, lambda: parsed(body, service.limits))
            except UserError as error:
                raise refused(*problem(error)[:2]) from error

    class Route(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()

            async def handle(request: Request) -> Response:
                return await handler(Decoding(request.scope, request.receive))

            return handle

    return Route


def router(service: Service) -> APIRouter:
    """All routes of the API."""
    routes = APIRouter()
    route_class = _json_route(service)
    parts = {"scoring": _scoring, "alarms": _alarms, "verdicts": _verdicts}
    for tag, add in (parts | {"models": _models, "people": _people}).items():
        part = APIRouter(tags=[tag], route_class=route_class)
        add(part, service)
        routes.include_router(part)
    return routes


def _models(routes: APIRouter, service: Service) -> None:
    ws = service.ws

    @routes.get("/models")
    def models(_: Viewer) -> list[ModelOverview]:
        """All models."""
        return [_model(service, name) for name in ws.ledger.names()]

    @routes.post("/models/{name}", openapi_extra=_FILE)
    async def add(request: Request, by: Admin, name: Text) -> Version:
        """Add a model: the body is a file as `eqsep fit` writes it."""
        content = await request.body()
        return await run_in_threadpool(lambda: ws.ledger.add(name, model_of(content), by=by))

    @routes.get("/models/{name}")
    def model(_: Viewer, name: str) -> ModelOverview:
        """A model, its columns and its settings."""
        return _model(service, name)

    @routes.post("/models/{name}/settings")
    def settings(by: Admin, name: str, asked: ModelSettings) -> ModelOverview:
        """Set the columns of the entity and of the time, and the gap between incidents."""
        changes = asked.model_dump(exclude_unset=True)
        ws.ledger.set_settings(name, **changes)
        ws.people.log(by, "settings", model=name, **changes)
        return _model(service, name)

    @routes.post("/models/{name}/kinds")
    def rename(by: Judge, name: str, asked: Renamed) -> Version:
        """Rename a kind, or merge it with the kind that has the new name."""
        return ws.verdicts.rename(name, asked.old, asked.new, by=by)

    @routes.get("/models/{name}/notices")
    def notices(_: Admin, name: str) -> list[Delivery]:
        """The notices sent by webhook or e-mail, newest first."""
        return ws.notices.deliveries(name)

    @routes.post("/models/{name}/notices")
    def subscribe(by: Admin, name: str, asked: Subscription) -> Subscribed:
        """Send incidents, new kinds and drift to a webhook or by e-mail from now on."""
        return Subscribed(ws.notices.subscribe(name, asked, by=by))

    @routes.get("/models/{name}/versions")
    def versions(_: Viewer, name: str, limit: Limit = 100) -> list[Version]:
        """The log of a model, newest version first."""
        ws.ledger.live(name)  # an error if the model does not exist
        return ws.ledger.versions(name, limit=limit)

    @routes.post("/models/{name}/revert")
    def revert(by: Admin, name: str, asked: RevertRequest) -> Version:
        """Revert to a version, bit for bit."""
        return ws.verdicts.revert(name, asked.version, by=by)

    @routes.post("/models/{name}/shadow")
    def shadow(by: Admin, name: str, asked: Shadow) -> ModelOverview:
        """Run a version as a shadow of the live one; null stops it."""
        ws.ledger.set_shadow(name, asked.version)
        ws.people.log(by, "shadow", model=name, version=asked.version)
        return _model(service, name)

    @routes.post("/models/{name}/merge", openapi_extra=_FILE)
    async def merge(request: Request, by: Admin, name: str) -> Version:
        """Merge a model that has the same feature map and learnt elsewhere."""
        content = await request.body()
        return await run_in_threadpool(lambda: ws.ledger.merge(name, model_of(content), by=by))

    @routes.post("/models/{name}/replay")
    def replay(_: Judge, name: str) -> Replay:
        """Rebuild every version of a model from its log, and compare it with the stored one."""
        return ws.ledger.replay(name)

    @routes.post("/models/{name}/purge")
    def purge(by: Admin, name: str, asked: Subject) -> Purged:
        """Delete an entity's rows and forget what was learnt from them. This cannot be undone."""
        return ws.purging.purge(name, asked.entity, by=by)


def _people(routes: APIRouter, service: Service) -> None:
    ws = service.ws

    @routes.get("/me")
    def me(request: Request) -> Person:
        """The person the token belongs to, with their role."""
        return person(request)

    @routes.get("/tokens")
    def tokens(_: Admin) -> list[Person]:
        """All people with a token."""
        return ws.people.all()

    @routes.post("/tokens")
    def issue(by: Admin, asked: NewToken) -> Issued:
        """Issue a token, shown only in this response; it replaces an earlier one of this name."""
        token = ws.people.issue(asked.name, asked.role, by=by, days=asked.days)
        return Issued(asked.name, asked.role, token)

    @routes.delete("/tokens/{name}")
    def revoke(by: Admin, name: str) -> None:
        """Revoke a token: other processes refuse it within seconds."""
        if name == by:
            raise UserError("You cannot revoke your own token: ask another administrator.")
        ws.people.revoke(name, by=by)

    @routes.get("/sessions")
    def sessions(_: Admin) -> list[Session]:
        """The browsers that are signed in."""
        return ws.people.sessions()

    @routes.delete("/sessions/{id}")
    def end(by: Admin, id: WholeNumber) -> None:
        """End a session: the browser has to sign in again."""
        ws.people.sign_out(id, by=by)

    @routes.get("/audit")
    def audit(_: Admin, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[Entry]:
        """Who did what, newest first."""
        return ws.people.audit(limit=limit)


def _model(service: Service, name: str) -> ModelOverview:
    ledger = service.ws.ledger
    live = ledger.live(name)
    model = ledger.model(live.id)
    return ModelOverview(
        name=name,
        live=live,
        shadow=ledger.shadow(name),
        settings=ledger.settings(name),
        columns=service.known(name).reads,
        kinds=model.kinds,
        false_alarm_rate=float(model.promise.false_alarm_rate),
        threshold=float(model.threshold),
    )
