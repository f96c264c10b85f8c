"""Pages from templates, the files that browsers fetch, and error pages."""

import hashlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Depends
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from eqsep.serve.console.formats import FILTERS
from eqsep.serve.store import Missing
from eqsep.serve.texts import Invalid, number
from eqsep.serve.web import guards
from eqsep.serve.workspace import Workspace

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OF_MODEL = ("inbox", "groups", "judge", "verdicts", "model", "watch")
Values = dict[str, Any]  # of a template
Add = Callable[[Callable[..., Values]], None]
Read = TypeVar("Read", bound=BaseModel)


class Assets:
    """The files that browsers fetch, read once: no other file can be asked for."""

    def __init__(self) -> None:
        folder = Path(__file__).parent / "static"
        found = (path for path in sorted(folder.rglob("*")) if path.suffix in _TYPES)
        self.files = {
            path.relative_to(folder).as_posix(): (path.read_bytes(), _TYPES[path.suffix])
            for path in found
        }

    def address(self, name: str) -> str:
        """The address of a file, with a hash of its content."""
        return f"/static/{name}?v={hashlib.sha256(self.files[name][0]).hexdigest()[:12]}"

    def answer(self, name: str) -> Response:
        """A file as a response; browsers keep it, as a changed one has another address."""
        if name not in self.files:
            raise Missing(f"There is no file {name!r}.")
        content, media_type = self.files[name]
        kept = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(content, media_type=media_type, headers=kept)


async def _posted(request: Request) -> FormData:
    form = await request.form()
    if any("\0" in text for _, text in form.multi_items() if isinstance(text, str)):
        raise Invalid("A text cannot hold the character U+0000.")
    return form


Posted = Annotated[FormData, Depends(_posted)]  # the fields of a form


def texts_in(form: FormData, *names: str) -> list[str]:
    """The texts in the fields of a form, without blanks around them."""
    return [str(form.get(name, "")).strip() for name in names]


def read(record: type[Read], given: Values) -> Read:
    """A record of the texts that are not empty; an age in seconds says since when."""
    values = {name: value for name, value in given.items() if value != ""}
    if "age" in values:
        values["since"] = time.time() - number(values.pop("age"), what="seconds")
    try:
        return record(**values)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


def go(model: str, screen: str) -> Response:
    """Lead the browser to a screen of a model."""
    return RedirectResponse(f"{path_of(model)}/{screen}", 303)


class Pages:
    """Makes pages from templates, for one workspace."""

    def __init__(self, ws: Workspace) -> None:
        self.ws, self.assets = ws, Assets()
        self.routes = APIRouter(include_in_schema=False)
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

    def route(self, path: str, show: Callable[..., Response], method: str = "GET") -> Add:
        """Answer at a path by `show`, with the values that a function returns."""

        def add(values: Callable[..., Values]) -> None:
            @self.routes.api_route(path, methods=[method])
            def shown(request: Request, found: Annotated[Values, Depends(values)]) -> Response:
                return show(request, **found)

        return add

    def screen(self, path: str, template: str, **fixed: Any) -> Add:
        """Show a page at a path."""
        return self.route(path, partial(self.show, template=template, **fixed))

    def part(self, path: str, template: str, method: str = "POST", **fixed: Any) -> Add:
        """Answer a form with a part of a page."""
        return self.route(path, partial(self._panel, template=template, **fixed), method)

    def bare(self, template: str, **values: Any) -> HTMLResponse:
        """A page without the sidebar."""
        return HTMLResponse(self._environment.get_template(template).render(values))

    def show(self, request: Request, template: str, *, heading: str, **values: Any) -> HTMLResponse:
        """A page about the `model` that is given, or that its path names."""
        model = values.pop("model", request.path_params.get("model"))
        names, status = self.ws.ledger.names(), values.pop("status", 200)
        screens = _screens(model or next(iter(names), None))
        known = {
            "models": names,
            "screens": screens,
            "heading": heading,
            "current": heading.lower(),
        }
        page = self._environment.get_template(template)
        return HTMLResponse(page.render(self._known(request, model) | known | values), status)

    def _panel(self, request: Request, template: str, **values: Any) -> HTMLResponse:
        """A part of a page if a script asks for it, otherwise a page of its own."""
        changed = values.pop("changed_alarms", False)
        if "hx-request" not in request.headers:
            return self.show(request, "panel_page.html", panel=template, **values)
        known = self._known(request, request.path_params["model"])
        part = self._environment.get_template(template).render(known | values)
        return HTMLResponse(
            part, headers={"HX-Trigger-After-Swap": "alarms-changed"} if changed else {}
        )

    def _known(self, request: Request, model: str | None) -> Values:
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

    def problem(self, request: Request, problem: str, status: int) -> Response:
        """An error, as a page or as the part that was asked for."""
        if "hx-request" in request.headers:
            part = self._environment.get_template("panel_problem.html")
            again = status == 409  # the page is out of date
            return HTMLResponse(part.render(problem=problem, again=again), status)
        values: Values = {"problem": problem, "again": False, "status": status, "model": None}
        return self.show(request, "problem.html", heading="A problem", **values)


def path_of(model: str) -> str:
    """The path of a model's screens."""
    return f"/m/{quote(model, safe='')}"


def _screens(model: str | None) -> list[tuple[str, str]]:
    """The entries of the sidebar: names and paths."""
    own = [] if model is None else [(name, f"{path_of(model)}/{name}") for name in _OF_MODEL]
    of_model = "" if model is None else f"?model={quote(model, safe='')}"
    return [*own, ("playground", "/playground"), ("settings", f"/settings{of_model}")]
