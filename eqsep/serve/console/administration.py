"""The settings: tokens, the columns of a model, deleting an entity, and who did what."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from eqsep.errors import UserError
from eqsep.serve.console.formats import plural
from eqsep.serve.console.pages import Pages, Posted
from eqsep.serve.web import guards

ROLES = (("view", "look"), ("judge", "and give verdicts"), ("admin", "and everything else"))
_ENTRIES = 100


def add_routes(routes: APIRouter, pages: Pages) -> None:
    """One screen, and what its forms do."""
    ws = pages.ws

    def shown(request: Request, model: str = "", **said: Any) -> Response:
        names = ws.ledger.names()
        chosen = model or request.query_params.get("model") or next(iter(names), None)
        is_admin = guards.person(request).may("admin")
        values: dict[str, Any] = {"token": "", "issued_to": "", "said": ""} | said
        if chosen is not None:
            values["columns_set"] = {"entity": None, "time": None} | ws.ledger.settings(chosen)
        return pages.show(
            request,
            "settings.html",
            heading="Settings",
            model=chosen,
            roles=ROLES,
            people=ws.people.all() if is_admin else [],
            audit=ws.people.audit(limit=_ENTRIES) if is_admin else [],
            **values,
        )

    @routes.get("/settings")
    def settings(request: Request) -> Response:
        return shown(request)

    @routes.post("/settings/tokens")
    def issue(request: Request, form: Posted) -> Response:
        person = guards.require(request, "admin")
        name, role = str(form.get("name", "")).strip(), str(form.get("role", ""))
        token = ws.people.issue(name, role, by=person.name)
        return shown(request, token=token, issued_to=name)

    @routes.post("/settings/revoke")
    def revoke(request: Request, form: Posted) -> Response:
        person = guards.require(request, "admin")
        name = str(form.get("name", ""))
        ws.people.revoke(name, by=person.name)
        return shown(request, said=f"The token of {name} no longer lets anybody in.")

    @routes.post("/m/{model}/settings")
    def change(request: Request, model: str, form: Posted) -> Response:
        person = guards.require(request, "admin")
        changes = {name: str(form.get(name, "")) or None for name in ("entity", "time")}
        ws.ledger.set_settings(model, **changes)
        ws.people.log(person.name, "settings", model=model, **changes)
        return shown(request, model, said="Saved: it holds for rows that arrive from now on.")

    @routes.post("/m/{model}/purge")
    def purge(request: Request, model: str, form: Posted) -> Response:
        person = guards.require(request, "admin")
        entity, again = (str(form.get(name, "")).strip() for name in ("entity", "again"))
        if not entity or entity != again:
            raise UserError("Write the entity twice, the same both times: nothing was deleted.")
        done = ws.purging.purge(model, entity, by=person.name)
        told = f"{plural(done.rows, 'row')} deleted, {plural(done.lessons, 'lesson')} forgotten."
        return shown(request, model, said=told)
