"""The console: pages on which people look at alarms, judge them, and see what was learnt."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from eqsep.serve.console import inbox, models
from eqsep.serve.console.pages import Pages, path_of


def router(pages: Pages) -> APIRouter:
    """The routes of all pages and files."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/login")
    def login(error: str = "", next: str = "/") -> Response:
        problem = "This token is not known: copy all of it." if error else ""
        return pages.bare("login.html", problem=problem, next=next)

    @routes.get("/static/{name:path}")
    def static(name: str) -> Response:
        return pages.assets.answer(name)

    @routes.get("/")
    def start(request: Request, model: str = "") -> Response:
        names = pages.ws.ledger.names()
        if not names:
            return pages.show(request, "empty.html", heading="No model yet")
        return RedirectResponse(f"{path_of(model if model in names else names[0])}/inbox", 303)

    @routes.get("/playground")
    def playground(request: Request) -> Response:
        return pages.show(request, "playground.html", heading="Playground")

    inbox.add_routes(routes, pages)
    models.add_routes(routes, pages)
    return routes
