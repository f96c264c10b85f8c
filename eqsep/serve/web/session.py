"""The session of a browser: a token is entered once, and kept in a cookie beyond scripts."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from eqsep.serve.web.faults import refused
from eqsep.serve.web.guards import COOKIE, Guard, person
from eqsep.serve.workspace import Workspace


def router(ws: Workspace) -> APIRouter:
    """Entering a token, and leaving."""
    routes = APIRouter(include_in_schema=False)

    @routes.post("/login")
    async def login(
        request: Request, token: Annotated[str, Form()], next: Annotated[str, Form()] = "/"
    ) -> Response:
        guard: Guard = request.scope["guard"]
        _check_origin(request)
        address = request.client.host if request.client else "unknown"
        found = await guard.whose(token.strip(), address)
        if found is None:
            await run_in_threadpool(ws.people.log, "nobody", "login refused", address=address)
            return RedirectResponse("/login?error=token", 303)
        await run_in_threadpool(ws.people.log, found.name, "login", address=address)
        answer = RedirectResponse(_local(next), 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            COOKIE, token.strip(), httponly=True, samesite="strict", secure=secure, path="/"
        )
        return answer

    @routes.post("/logout")
    async def logout(request: Request) -> Response:
        await run_in_threadpool(ws.people.log, person(request).name, "logout")
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    return routes


def _check_origin(request: Request) -> None:
    """Refuse a form of another site: it would let somebody work under a name that is not theirs."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise refused(403, "Enter the token on the page of this service.")


def _local(there: str) -> str:
    """A path of this service: no other site is gone to from here."""
    is_path = there.startswith("/") and not there.startswith(("//", "/\\"))
    return there if is_path and there.isprintable() else "/"
