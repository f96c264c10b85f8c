"""The console: pages on which people look at alarms, judge them, and see what was learnt."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from eqsep.serve.console import inbox, models
from eqsep.serve.console.pages import Pages, go

_PROBLEMS = {  # why somebody is asked for a token
    "token": "Unknown token: check that you copied all of it.",
    "session": "You were signed out: your token was revoked or replaced, or your session ended.",
}


def router(pages: Pages) -> APIRouter:
    """The routes of all pages and files."""
    routes = pages.routes

    @routes.get("/login")
    def login(error: str = "", next: str = "/") -> Response:
        return pages.bare("login.html", problem=_PROBLEMS.get(error, ""), next=next)

    routes.get("/static/{name:path}")(pages.assets.answer)

    @routes.get("/")
    def start(request: Request, model: str = "") -> Response:
        names = pages.ws.ledger.names()
        if not names:
            return pages.show(request, "empty.html", heading="No model yet")
        return go(model if model in names else names[0], "inbox")

    inbox.add_routes(pages)
    models.add_routes(pages)
    return routes
