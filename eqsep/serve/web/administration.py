"""The API of those who run the service: models and their versions, tokens, the log, purging."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from eqsep.errors import UserError
from eqsep.persistence.files import model_of
from eqsep.serve.ledger import Replay
from eqsep.serve.log import Version
from eqsep.serve.people import Entry, Person
from eqsep.serve.purging import Purged
from eqsep.serve.web.guards import person, require
from eqsep.serve.web.review import Body, Limit, Text
from eqsep.serve.web.service import Service
from eqsep.serve.workspace import Workspace

_FILE = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class Wanted(Body):
    """A version, by its number."""

    version: int


class Shadow(Body):
    """The version that scores beside the live one; null is none."""

    version: int | None


class Settings(Body):
    """What a service knows of a model beside the model; what is not said stays as it is."""

    entity: Text | None = None
    time: Text | None = None


class NewToken(Body):
    """Whom a token is for, and what it lets them do."""

    name: Text
    role: Literal["view", "judge", "admin"]


class Subject(Body):
    """Whose rows: a value of the column of entities."""

    entity: Text


@dataclass(frozen=True)
class Model:
    """A model: its columns with what each is read as, its kinds, and its versions in use."""

    name: str
    live: Version
    shadow: Version | None
    settings: dict[str, Any]
    columns: dict[str, str]
    kinds: tuple[str, ...]
    false_alarm_rate: float
    threshold: float


@dataclass(frozen=True)
class Issued:
    """A token, which is shown this once."""

    name: str
    role: str
    token: str


def router(service: Service) -> APIRouter:
    """All of it."""
    routes = APIRouter()
    routes.include_router(_models(service), tags=["models"])
    routes.include_router(_people(service), tags=["people"])
    return routes


def _models(service: Service) -> APIRouter:
    routes, ws = APIRouter(), service.ws

    @routes.get("/models")
    def models(request: Request) -> list[Model]:
        """The models that there are."""
        require(request, "view")
        return [_model(service, name) for name in ws.ledger.names()]

    @routes.post("/models/{name}", openapi_extra=_FILE)
    async def add(request: Request, name: Text) -> Version:
        """Add a model: the body is a file as `eqsep fit` writes it."""
        by = require(request, "admin").name
        content = await request.body()
        return await run_in_threadpool(_added, ws, (name, content, by))

    @routes.get("/models/{name}")
    def model(request: Request, name: str) -> Model:
        """A model, its columns and its settings."""
        require(request, "view")
        return _model(service, name)

    @routes.post("/models/{name}/settings")
    def settings(request: Request, name: str, asked: Settings) -> Model:
        """Say which column names the entity of a row, and which its time."""
        by = require(request, "admin").name
        changes = {n: getattr(asked, n) for n in asked.model_fields_set}
        ws.ledger.set_settings(name, **changes)
        ws.people.log(by, "settings", model=name, **changes)
        return _model(service, name)

    @routes.get("/models/{name}/versions")
    def versions(request: Request, name: str, limit: Limit = 100) -> list[Version]:
        """The log of a model, the newest version first."""
        require(request, "view")
        ws.ledger.live(name)  # says where there is no such model
        return ws.ledger.versions(name, limit=limit)

    @routes.post("/models/{name}/revert")
    def revert(request: Request, name: str, asked: Wanted) -> Version:
        """Go back to a version: the live one holds its bits again."""
        by = require(request, "admin").name
        return ws.verdicts.revert(name, asked.version, by=by)

    @routes.post("/models/{name}/shadow")
    def shadow(request: Request, name: str, asked: Shadow) -> Model:
        """Let a version score in the shadow of the live one; null ends that."""
        by = require(request, "admin").name
        ws.ledger.set_shadow(name, asked.version)
        ws.people.log(by, "shadow", model=name, version=asked.version)
        return _model(service, name)

    @routes.post("/models/{name}/merge", openapi_extra=_FILE)
    async def merge(request: Request, name: str) -> Version:
        """Take in what a model with the same feature map has learnt elsewhere."""
        by = require(request, "admin").name
        content = await request.body()
        return await run_in_threadpool(_merged, ws, (name, content, by))

    @routes.post("/models/{name}/replay")
    def replay(request: Request, name: str) -> Replay:
        """Do the log of a model again from its beginning, and say whether it is the same."""
        require(request, "judge")
        return ws.ledger.replay(name)

    @routes.post("/models/{name}/purge")
    def purge(request: Request, name: str, asked: Subject) -> Purged:
        """Forget what was learnt of an entity, and delete its rows. It cannot be undone."""
        by = require(request, "admin").name
        return ws.purging.purge(name, asked.entity, by=by)

    return routes


def _people(service: Service) -> APIRouter:
    routes, ws = APIRouter(), service.ws

    @routes.get("/me")
    def me(request: Request) -> Person:
        """Whose token it is, and the role."""
        return person(request)

    @routes.get("/tokens")
    def tokens(request: Request) -> list[Person]:
        """Who has a token, and in which role."""
        require(request, "admin")
        return ws.people.all()

    @routes.post("/tokens")
    def issue(request: Request, asked: NewToken) -> Issued:
        """Issue a token; it is in the answer, and nowhere else."""
        by = require(request, "admin").name
        return Issued(asked.name, asked.role, ws.people.issue(asked.name, asked.role, by=by))

    @routes.delete("/tokens/{name}")
    def revoke(request: Request, name: str) -> None:
        """Take a token back: other processes know of it within seconds."""
        by = require(request, "admin").name
        if name == by:
            raise UserError("Your own token is taken back by another administrator.")
        ws.people.revoke(name, by=by)

    @routes.get("/audit")
    def audit(request: Request, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[Entry]:
        """Who did what, the newest first."""
        require(request, "admin")
        return ws.people.audit(limit=limit)

    return routes


def _added(ws: Workspace, told: tuple[str, bytes, str]) -> Version:
    name, content, by = told
    return ws.ledger.add(name, model_of(content), by=by)


def _merged(ws: Workspace, told: tuple[str, bytes, str]) -> Version:
    name, content, by = told
    return ws.ledger.merge(name, model_of(content), by=by)


def _model(service: Service, name: str) -> Model:
    ledger = service.ws.ledger
    live = ledger.live(name)
    detector = ledger.detector(live.id)
    return Model(
        name,
        live,
        ledger.shadow(name),
        settings=ledger.settings(name),
        columns=service.known(name).reads,
        kinds=tuple(detector.kinds_),
        false_alarm_rate=float(detector.false_alarm_rate),
        threshold=float(detector.threshold_),
    )
