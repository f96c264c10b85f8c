"""Pages from templates, the files that browsers fetch, and error pages."""

import hashlib
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from eqsep.serve.console.formats import FILTERS
from eqsep.serve.store import Missing
from eqsep.serve.texts import Invalid
from eqsep.serve.web import guards
from eqsep.serve.workspace import Workspace

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OF_MODEL = ("inbox", "groups", "judge", "verdicts", "model", "watch")


class Assets:
    """The files that browsers fetch, read once: no other file can be asked for."""

    def __init__(self) -> None:
        folder = Path(__file__).parent / "static"
        found = (path for path in sorted(folder.rglob("*")) if path.suffix in _TYPES)
        self._files = {
            path.relative_to(folder).as_posix(): (path.read_bytes(), _TYPES[path.suffix])
            for path in found
        }

    def names(self) -> list[str]:
        """The names of the files."""
        return [*self._files]

    def address(self, name: str) -> str:
        """The address of a file, with a hash of its content."""
        return f"/static/{name}?v={hashlib.sha256(self._files[name][0]).hexdigest()[:12]}"

    def answer(self, name: str) -> Response:
        """A file as a response; browsers keep it, as a changed one has another address."""
        if name not in self._files:
            raise Missing(f"There is no file {name!r}.")
        content, media_type = self._files[name]
        kept = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(content, media_type=media_type, headers=kept)


async def _posted(request: Request) -> FormData:
    form = await request.form()
    if any("\0" in text for _, text in form.multi_items() if isinstance(text, str)):
        raise Invalid("A text cannot hold the character U+0000.")
    return form


Posted = Annotated[FormData, Depends(_posted)]  # the fields of a form


class Pages:
    """Makes pages from templates, for one workspace."""

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
        """A page without the sidebar."""
        return HTMLResponse(self._environment.get_template(template).render(values))

    def show(self, request: Request, template: str, *, heading: str, **values: Any) -> HTMLResponse:
        """A page about the `model` that is given, or that its path names."""
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
        """A part of a page if a script asks for it, otherwise a page of its own."""
        changed = values.pop("changed_alarms", False)
        if "hx-request" not in request.headers:
            return self.show(request, "panel_page.html", heading=heading, panel=template, **values)
        known = self._known(request, request.path_params["model"])
        part = self._environment.get_template(template)
        headers = {"HX-Trigger-After-Swap": "alarms-changed"} if changed else None
        return HTMLResponse(part.render(heading=heading, **known, **values), headers=headers)

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

    def problem(self, request: Request, problem: str, status: int) -> Response:
        """An error, as a page or as the part that was asked for."""
        if "hx-request" in request.headers:
            part = self._environment.get_template("panel_problem.html")
            again = status == 409  # the page is out of date
            return HTMLResponse(part.render(problem=problem, again=again), status)
        values: dict[str, Any] = {"problem": problem, "again": False, "status": status}
        return self.show(request, "problem.html", heading="A problem", model=None, **values)


def path_of(model: str) -> str:
    """The path of a model's screens."""
    return f"/m/{quote(model, safe='')}"


def _screens(model: str | None) -> list[tuple[str, str]]:
    """The entries of the sidebar: names and paths."""
    own = [] if model is None else [(name, f"{path_of(model)}/{name}") for name in _OF_MODEL]
    of_model = "" if model is None else f"?model={quote(model, safe='')}"
    return [*own, ("playground", "/playground"), ("settings", f"/settings{of_model}")]
