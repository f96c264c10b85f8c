"""Templates to pages: what every page knows, the files that browsers fetch, and error pages."""

import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from eqsep.errors import UserError
from eqsep.serve.console.formats import FILTERS
from eqsep.serve.store import Conflict, Missing
from eqsep.serve.web import guards
from eqsep.serve.workspace import Workspace

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OF_MODEL = ("inbox", "groups", "judge", "model", "watch")
_STATUS = {Missing: 404, Conflict: 409}


@dataclass(frozen=True)
class Asset:
    """A file with its type, and the address under which it never changes."""

    content: bytes
    media_type: str
    address: str


class Assets:
    """All of them by name, read once: a request names one of these or gets nothing."""

    def __init__(self) -> None:
        self._files = dict(_found(files("eqsep.serve.console") / "static", ""))

    def address(self, name: str) -> str:
        """Where browsers find a file."""
        return self._files[name].address

    def names(self) -> list[str]:
        """The files that there are."""
        return sorted(self._files)

    def answer(self, name: str) -> Response:
        """A file as an answer; browsers keep it, as a changed one has another address."""
        if name not in self._files:
            raise Missing(f"There is no file {name!r}.")
        asset = self._files[name]
        kept = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(asset.content, media_type=asset.media_type, headers=kept)


def _found(folder: Traversable, within: str) -> list[tuple[str, Asset]]:
    found = []
    for entry in folder.iterdir():
        name = within + entry.name
        suffix = "." + entry.name.rpartition(".")[2]
        if entry.is_dir():
            found += _found(entry, f"{name}/")
        elif suffix in _TYPES:
            content = entry.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:12]
            found.append((name, Asset(content, _TYPES[suffix], f"/static/{name}?v={digest}")))
    return found


async def _posted(request: Request) -> FormData:
    return await request.form()


Posted = Annotated[FormData, Depends(_posted)]  # the fields of a form, in a view that may block


@dataclass(frozen=True)
class Screen:
    """An entry of the sidebar."""

    name: str
    title: str
    path: str


class Pages:
    """Makes pages of templates, for one workspace."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self.assets = Assets()
        self._environment = Environment(
            loader=PackageLoader("eqsep.serve.console", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= FILTERS
        self._environment.globals |= {"static": self.assets.address}
        self._environment.globals["m"] = self._environment.get_template("macros.html").module

    def bare(self, template: str, **values: Any) -> HTMLResponse:
        """A page outside the console: the one on which people sign in."""
        return HTMLResponse(self._environment.get_template(template).render(values))

    def show(self, request: Request, template: str, *, heading: str, **values: Any) -> HTMLResponse:
        """A page: of the `model` that is given, or that its path names."""
        model = values.pop("model", request.path_params.get("model"))
        names = self.ws.ledger.names()
        status = values.pop("status", 200)
        values.setdefault("current", heading.lower())
        page = self._environment.get_template(template).render(
            **self._known(request, model),
            models=names,
            screens=_screens(model or next(iter(names), None)),
            heading=heading,
            **values,
        )
        return HTMLResponse(page, status)

    def panel(
        self, request: Request, template: str, *, heading: str, **values: Any
    ) -> HTMLResponse:
        """A part of a page, for the script that puts it in its place; else a page of its own."""
        changed = values.pop("changed_alarms", False)
        if "hx-request" not in request.headers:
            return self.show(request, "panel_page.html", heading=heading, panel=template, **values)
        known = self._known(request, request.path_params["model"])
        content = self._environment.get_template(template).render(
            heading=heading, **known, **values
        )
        return HTMLResponse(
            content, headers={"HX-Trigger-After-Swap": "alarms-changed"} if changed else None
        )

    def _known(self, request: Request, model: str | None) -> dict[str, Any]:
        person = guards.person(request)
        return {
            "model": model,
            "path": "" if model is None else path_of(model),
            "here": str(request.url.path) + (f"?{request.url.query}" if request.url.query else ""),
            "person": person,
            "csrf": guards.csrf_token(request),
            "may_judge": person.may("judge"),
            "may_admin": person.may("admin"),
        }

    def route_class(self) -> type[APIRoute]:
        """Routes that show errors on a page."""
        pages = self

        class TellingRoute(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def handled(request: Request) -> Response:
                    try:
                        return await handle(request)
                    except UserError as error:
                        return pages.problem(request, str(error), _STATUS.get(type(error), 422))
                    except HTTPException as error:
                        return pages.problem(request, error.detail, error.status_code)

                return handled

        return TellingRoute

    def problem(self, request: Request, problem: str, status: int) -> Response:
        """What was wrong, in the place where an answer was expected."""
        if request.scope.get("person") is None:
            raise HTTPException(status, problem)
        if "hx-request" in request.headers:
            part = self._environment.get_template("panel_problem.html")
            again = status == _STATUS[Conflict]  # the page it was asked from is behind
            return HTMLResponse(part.render(problem=problem, again=again), status)
        values: dict[str, Any] = {"problem": problem, "again": False, "status": status}
        return self.show(request, "problem.html", heading="A problem", model=None, **values)


def path_of(model: str) -> str:
    """Where the screens of a model are."""
    return f"/m/{quote(model, safe='')}"


def _screens(model: str | None) -> list[Screen]:
    own = [] if model is None else [(name, f"{path_of(model)}/{name}") for name in _OF_MODEL]
    of_model = "" if model is None else f"?model={quote(model, safe='')}"
    free = [("playground", "/playground"), ("settings", f"/settings{of_model}")]
    return [Screen(name, name.capitalize(), path) for name, path in (*own, *free)]
