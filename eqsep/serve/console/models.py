"""The screens about a model: its versions, the watch, and the settings."""

import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter
from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from eqsep.detector.model import Model
from eqsep.errors import UserError
from eqsep.labels import NORMAL
from eqsep.serve.console.formats import plural, score, share
from eqsep.serve.console.pages import Pages, Posted, path_of
from eqsep.serve.incidents import GAP, MOST_GAP
from eqsep.serve.ledger import ADD, FORGET, LEARN, MERGE, RENAME, REVERT
from eqsep.serve.notices import read_subscription
from eqsep.serve.texts import number
from eqsep.serve.watching import DELTA, Minute
from eqsep.serve.web import guards
from eqsep.serve.web.guards import Admin, Judge

_OPERATIONS = {
    ADD: "added",
    LEARN: "learnt",
    FORGET: "forgotten",
    MERGE: "merged with",
    RENAME: "renamed",
    REVERT: "back to",
}
_MOST = 180  # minutes that are shown
_SERIES = ("at", "rows", "alarms")
ROLES = (("view", "look"), ("judge", "and give verdicts"), ("admin", "and everything else"))
_ENTRIES = 100


def add_routes(routes: APIRouter, pages: Pages) -> None:
    """The routes of these screens."""
    ws, ledger = pages.ws, pages.ws.ledger
    _add_settings(routes, pages)

    @routes.get("/m/{model}/model")
    def lessons(request: Request, model: str) -> Response:
        live = ledger.live(model)
        detector = ledger.detector(live.id)
        return pages.show(
            request,
            "model.html",
            heading="Model",
            live=live,
            shadow=ledger.shadow(model),
            versions=ledger.versions(model),
            purged=ledger.purged(model),
            facts=_facts(detector.model_),
            kinds=sorted(detector.kinds_),
            operations=_OPERATIONS,
        )

    @routes.post("/m/{model}/kinds")
    def rename(by: Judge, model: str, form: Posted) -> Response:
        old, new = (str(form.get(name, "")).strip() for name in ("old", "new"))
        ws.verdicts.rename(model, old, new, by=by)
        return RedirectResponse(f"{path_of(model)}/model", 303)

    @routes.get("/m/{model}/revert")
    def asked(request: Request, _: Admin, model: str) -> Response:
        version = ledger.version(_version(request.query_params))
        reopened, again = ws.verdicts.swayed(model, version.id)
        values = {"version": version, "reopened": reopened, "again": again}
        return pages.panel(request, "panel_revert.html", heading="Going back", **values)

    @routes.post("/m/{model}/revert")
    def revert(by: Admin, model: str, form: Posted) -> Response:
        ws.verdicts.revert(model, _version(form), by=by)
        return RedirectResponse(f"{path_of(model)}/model", 303)

    @routes.post("/m/{model}/shadow")
    def shadow(by: Admin, model: str, form: Posted) -> Response:
        version = _version(form) if form.get("version") else None
        ledger.set_shadow(model, version)
        ws.people.log(by, "shadow", model=model, version=version)
        return RedirectResponse(f"{path_of(model)}/model", 303)

    @routes.post("/m/{model}/replay")
    def replay(request: Request, _: Admin, model: str) -> Response:
        found = ledger.replay(model)
        return pages.panel(request, "panel_replay.html", heading="Replay", replay=found)

    @routes.get("/m/{model}/watch")
    def watch(request: Request, model: str) -> Response:
        status = ws.watching.status(model)
        now = int(time.time()) // 60 * 60
        shown = _every([minute for minute in status.per_minute if minute.at < now])
        has_shadow = ledger.shadow(model) is not None or any(m.shadow_alarms for m in shown)
        series = [*_SERIES, *(["shadow_alarms"] if has_shadow else [])]
        return pages.show(
            request,
            "watch.html",
            heading="Watch",
            watch=status,
            too_high=round(1 / DELTA),
            plotted=[[getattr(minute, name) for minute in shown] for name in series],
            shown=shown,
            has_shadow=has_shadow,
            per_minute_now=sum(minute.rows for minute in shown if minute.at == now - 60),
        )


def _version(form: FormData | QueryParams) -> int:
    return number(str(form.get("version", "")), what="a version")


def _facts(model: Model) -> list[tuple[str, str]]:
    """Facts about a model, with their titles."""
    learnt = zip((NORMAL, *model.kinds), model.n_learnt.tolist(), strict=True)
    held_out = plural(len(model.calibration.counting), "normal row")
    promise = f"{share(model.promise.false_alarm_rate)} of new normal rows raise an alarm"
    if not model.rank:
        promise = f"none: too few rows calibrate for {share(model.promise.false_alarm_rate)}"
    return [
        ("Rows learnt", ", ".join(f"{round(weight, 2):,.12g} {kind}" for kind, weight in learnt)),
        ("Held out", f"{held_out} set the threshold"),
        ("Threshold", score(model.threshold)),
        ("Promise", promise),
        ("Landmarks", f"{len(model.plan.terms.landmarks):,}"),
    ]


def _every(counted: list[Minute]) -> list[Minute]:
    """The minutes from the first with rows to the last, also those between without any."""
    if not counted:
        return []
    found, last = {minute.at: minute for minute in counted}, counted[-1].at
    first = max(counted[0].at, last - 60 * (_MOST - 1))
    return [found.get(at, Minute(at, 0, 0, 0)) for at in range(first, last + 1, 60)]


def _minutes(text: str) -> float | None:
    """A number of minutes; None for an empty text."""
    with suppress(ValueError):
        if not text or 0 < float(text) <= MOST_GAP:
            return float(text) if text else None
    raise UserError(f"Expected up to {MOST_GAP:,.0f} minutes, got {text!r}.")


def _without_password(address: str) -> str:
    """An address of a mail server as it is shown."""
    password = urlsplit(address).password
    return address.replace(f":{password}@", ":***@", 1) if password else address


def _add_settings(routes: APIRouter, pages: Pages) -> None:
    ws = pages.ws

    def shown(request: Request, model: str = "", **said: Any) -> Response:
        names = ws.ledger.names()
        chosen = model or request.query_params.get("model") or next(iter(names), None)
        is_admin = guards.person(request).may("admin")
        values: dict[str, Any] = {"token": "", "issued_to": "", "said": ""} | said
        if chosen is not None:
            nothing = {"entity": None, "time": None, "gap": None}
            values["columns_set"] = nothing | ws.ledger.settings(chosen)
            values["gap"] = GAP
        if chosen is not None and is_admin:
            wanted = ws.notices.subscription(chosen)
            values["notices"] = wanted
            values["mail_server"] = _without_password(wanted.mail_server)
            values["deliveries"] = ws.notices.deliveries(chosen, limit=20)
        return pages.show(
            request,
            "settings.html",
            heading="Settings",
            model=chosen,
            roles=ROLES,
            people=ws.people.all() if is_admin else [],
            sessions=ws.people.sessions() if is_admin else [],
            audit=ws.people.audit(limit=_ENTRIES) if is_admin else [],
            **values,
        )

    @routes.get("/settings")
    def settings(request: Request) -> Response:
        return shown(request)

    @routes.post("/settings/tokens")
    def issue(request: Request, by: Admin, form: Posted) -> Response:
        name, role = str(form.get("name", "")).strip(), str(form.get("role", ""))
        days = str(form.get("days", "")).strip()
        if days and not days.isdecimal():
            raise UserError(f"Expected a whole number of days, got {days!r}.")
        token = ws.people.issue(name, role, by=by, days=float(days) if days else None)
        return shown(request, token=token, issued_to=name)

    @routes.post("/settings/revoke")
    def revoke(request: Request, by: Admin, form: Posted) -> Response:
        name = str(form.get("name", ""))
        ws.people.revoke(name, by=by)
        return shown(request, said=f"The token of {name} no longer lets anybody in.")

    @routes.post("/settings/sessions")
    def end(request: Request, by: Admin, form: Posted) -> Response:
        session = number(str(form.get("session", "")), what="a session")
        ws.people.sign_out(session, by=by)
        return shown(request, said="The session has ended.")

    @routes.post("/m/{model}/settings")
    def change(request: Request, by: Admin, model: str, form: Posted) -> Response:
        changes: dict[str, Any] = {
            name: str(form.get(name, "")) or None for name in ("entity", "time")
        }
        changes["gap"] = _minutes(str(form.get("gap", "")).strip())
        ws.ledger.set_settings(model, **changes)
        ws.people.log(by, "settings", model=model, **changes)
        return shown(request, model, said="Saved: it holds for rows that arrive from now on.")

    @routes.post("/m/{model}/notices")
    def subscribe(request: Request, by: Admin, model: str, form: Posted) -> Response:
        names = ("url", "min_score", "mail_server", "mail_from", "mail_to", "hours")
        given: dict[str, Any] = {name: str(form.get(name, "")).strip() for name in names}
        given = {name: text for name, text in given.items() if text}
        kept = ws.notices.subscription(model).mail_server
        if given.get("mail_server") == _without_password(kept):
            given["mail_server"] = kept
        wanted = read_subscription({**given, "events": form.getlist("event")})
        secret = ws.notices.subscribe(model, wanted, by=by)
        said = "Saved: it holds for what happens from now on."
        if wanted.url:
            said += f" What is posted is signed with the secret {secret}"
        return shown(request, model, said=said)

    @routes.post("/m/{model}/notices/test")
    def test(request: Request, by: Admin, model: str) -> Response:
        ws.notices.test(model)
        ws.people.log(by, "notices tested", model=model)
        return shown(request, model, said="A test is on its way: the log below will show it.")

    @routes.post("/m/{model}/purge")
    def purge(request: Request, by: Admin, model: str, form: Posted) -> Response:
        entity, again = (str(form.get(name, "")).strip() for name in ("entity", "again"))
        if not entity or entity != again:
            raise UserError("Write the entity twice, the same both times: nothing was deleted.")
        done = ws.purging.purge(model, entity, by=by)
        message = f"{plural(done.rows, 'row')} deleted, {plural(done.lessons, 'lesson')} forgotten."
        return shown(request, model, said=message)
