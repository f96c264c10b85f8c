"""The application: all routes behind one guard, and the responses to errors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from eqsep import __version__
from eqsep.errors import UserError
from eqsep.serve import console
from eqsep.serve.console.pages import sentences
from eqsep.serve.store import Unavailable
from eqsep.serve.web import api
from eqsep.serve.web.guards import LOOPBACK, Guard, require, session_routes
from eqsep.serve.web.limits import API, Limits, answer, problem
from eqsep.serve.web.service import PROMETHEUS, Service
from eqsep.serve.workspace import Workspace

_API_DESCRIPTION = """Score rows, judge alarms, and teach the model what was judged.

Requests carry `Authorization: Bearer TOKEN`; the roles are view, judge and admin."""


class _Json(JSONResponse):
    """JSON in which NaN and infinity are null."""

    def render(self, content: Any) -> bytes:
        return orjson.dumps(content)


class Application(FastAPI):
    """All routes, behind a guard."""

    guard: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.guard(scope, receive, send)


def create_app(
    ws: Workspace, *, limits: Limits | None = None, hosts: frozenset[str] | None = LOOPBACK
) -> Application:
    """The service for a workspace, as an ASGI application.

    Parameters
    ----------
    ws : Workspace
        It is closed when the application ends.
    limits : Limits, default=None
        None means `Limits()`.
    hosts : frozenset of str or None
        The accepted Host headers, by default those of this machine; None accepts any.
    """
    service = Service(ws, limits or Limits())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        ws.notices.start()
        yield
        await run_in_threadpool(service.batcher.stop)
        await run_in_threadpool(ws.notices.stop)
        ws.close()

    app = Application(
        title="eqsep",
        description=_API_DESCRIPTION,
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # its page takes scripts from another site
        redoc_url=None,
        default_response_class=_Json,
    )
    pages = console.Pages(ws)

    async def answered(request: Request, error: Exception) -> Response:
        request.scope["answered"] = error
        return answer(error, request.url.path)

    async def answered_refusal(request: Request, error: Exception) -> Response:
        if request.url.path.startswith(API) or request.scope.get("person") is None:
            return await answered(request, error)
        status, message, headers = problem(error)  # somebody looks at a page
        status = 422 if status == 400 else status
        if isinstance(error, RequestValidationError):
            message = sentences(error)
        try:
            page = await run_in_threadpool(pages.problem, request, message, status)
        except Unavailable:  # a page needs the store, too
            return await answered(request, error)
        page.headers.update(headers)
        return page

    app.add_exception_handler(Exception, answered)
    for kind in (HTTPException, RequestValidationError, UserError):
        app.add_exception_handler(kind, answered_refusal)
    app.include_router(api.router(service), prefix="/api/v1")
    for routes in (_state(service), session_routes(ws), console.router(pages)):
        app.include_router(routes)
    inside = api.direct(service, super(Application, app).__call__)
    app.guard = Guard(inside, people=ws.people, limits=service.limits, hosts=hosts)
    return app


def _state(service: Service) -> APIRouter:
    routes = APIRouter(tags=["state"])

    @routes.get("/health/live")
    @routes.get("/health")
    async def live() -> dict[str, str]:
        """Whether the process runs."""
        return {"status": "live"}

    @routes.get("/health/ready")
    def ready() -> dict[str, str]:
        """Whether the store answers, and takes what is written."""
        service.ws.store.check()
        return {"status": "ready"}

    @routes.get("/metrics", response_class=Response)
    def metrics(request: Request) -> Response:
        """Metrics for Prometheus: rows, alarms, latency, version, martingale."""
        require(request, "view")
        text = service.metrics.text(waiting=service.batcher.waiting)
        return Response(text, media_type=PROMETHEUS)

    return routes
