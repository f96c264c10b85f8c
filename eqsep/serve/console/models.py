"""The screens about a model: its versions, the watch, and the settings."""

import time
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from eqsep.detector.model import Model
from eqsep.errors import UserError
from eqsep.labels import NORMAL
from eqsep.serve.console.pages import Pages, Posted, Values, fields, go, plural, read, score, share
from eqsep.serve.incidents import GAP, MOST_GAP
from eqsep.serve.ledger import REVERT
from eqsep.serve.notices import Subscription
from eqsep.serve.texts import number
from eqsep.serve.watching import DELTA, Minute
from eqsep.serve.web import guards
from eqsep.serve.web.guards import Admin, Judge

_MINUTES_SHOWN = 180  # minutes that are shown
ROLES = (("view", "look"), ("judge", "also give verdicts"), ("admin", "everything"))
_ENTRIES = 100


def add_routes(pages: Pages) -> None:
    """The routes of these screens."""
    ws, ledger, routes = pages.ws, pages.ws.ledger, pages.routes
    _add_settings(pages)

    def lessons(model: str, made: str = "") -> Values:
        live, shadow = ledger.live(model), ledger.shadow(model)
        learnt = ledger.model(live.id)
        facts = {"facts": _facts(learnt), "kinds": sorted(learnt.kinds)}
        versions = {"versions": ledger.versions(model), "purged": ledger.purged(model)}
        done = f"reverted to version {live.source}" if live.operation == REVERT else live.note
        said = f"Version {live.id} is live: {done}." if made == str(live.id) else ""
        return {"live": live, "shadow": shadow, "said": said} | facts | versions

    def refused(request: Request, **values: Any) -> Response:
        values |= lessons(request.path_params["model"])
        return pages.show(request, "model.html", heading="Model", **values)

    pages.screen("/m/{model}/model", "model.html", heading="Model")(lessons)
    pages.forms["/m/{model}/kinds"] = refused

    @routes.post("/m/{model}/kinds")
    def rename(request: Request, by: Judge, model: str, form: Posted) -> Response:
        old, new, confirmed = fields(form, "old", "new", "confirmed")
        merging = None if confirmed else ws.verdicts.merging(model, old, new)
        if merging is not None:
            values: Values = {"panel": "panel_merge.html", "merging": merging}
            return pages.show(request, "panel_page.html", heading="Model", **values)
        version = ws.verdicts.rename(model, old, new, by=by)
        return go(model, f"model?made={version.id}")

    @pages.part("/m/{model}/revert", "panel_revert.html", "GET", heading="Revert")
    def asked(request: Request, _: Admin, model: str) -> Values:
        asked_for = request.query_params.get("version", "")
        version = ledger.version(number(asked_for, what="a version"))
        reopened, again = ws.verdicts.swayed(model, version.id)
        return {"version": version, "reopened": reopened, "again": again}

    @routes.post("/m/{model}/revert")
    def revert(by: Admin, model: str, form: Posted) -> Response:
        to = number(*fields(form, "version"), what="a version")
        version = ws.verdicts.revert(model, to, by=by)
        return go(model, f"model?made={version.id}")

    @routes.post("/m/{model}/shadow")
    def shadow(by: Admin, model: str, form: Posted) -> Response:
        (wanted,) = fields(form, "version")
        version = number(wanted, what="a version") if wanted else None
        ledger.set_shadow(model, version)
        ws.people.log(by, "shadow", model=model, version=version)
        return go(model, "model")

    @pages.part("/m/{model}/replay", "panel_replay.html", heading="Replay")
    def replay(_: Admin, model: str) -> Values:
        return {"replay": ledger.replay(model)}

    @pages.screen("/m/{model}/watch", "watch.html", heading="Watch", too_high=round(1 / DELTA))
    def watch(model: str) -> Values:
        status, now = ws.watching.status(model), int(time.time()) // 60 * 60
        shown = _every([minute for minute in status.per_minute if minute.at < now])
        has_shadow = ledger.shadow(model) is not None or any(m.shadow_alarms for m in shown)
        plotted: list[list[int | None]] = [
            [getattr(minute, name) for minute in shown] for name in ("at", "rows", "alarms")
        ]
        if has_shadow:
            plotted.append(_of_shadow(shown, ws.watching.shadowed(model)))
        last = sum(minute.rows for minute in shown if minute.at == now - 60)
        values = {"watch": status, "plotted": plotted, "shown": shown, "per_minute_now": last}
        return values | {"of_shadow": plotted[3] if has_shadow else None}


def _of_shadow(minutes: list[Minute], spans: list[tuple[float, float]]) -> list[int | None]:
    """The alarms of the shadow in each minute; None where there was no shadow."""

    def is_there(minute: Minute) -> bool:
        return minute.shadow_alarms > 0 or any(
            a < minute.at + 60 and minute.at < b for a, b in spans
        )

    return [minute.shadow_alarms if is_there(minute) else None for minute in minutes]


def _facts(model: Model) -> list[tuple[str, str]]:
    """Facts about a model, with their titles."""
    learnt = zip((NORMAL, *model.kinds), model.n_learnt.tolist(), strict=True)
    held_out = plural(len(model.calibration.counting), "normal row")
    promise = f"{share(model.promise.false_alarm_rate)} of new normal rows raise an alarm"
    if not model.rank:
        promise = f"none: too few held-out rows for {share(model.promise.false_alarm_rate)}"
    expected = model.namer.expected
    return [
        ("Rows learnt", ", ".join(f"{round(weight, 2):,.12g} {kind}" for kind, weight in learnt)),
        ("Held out", f"{held_out} set the threshold"),
        ("Threshold", score(model.threshold)),
        ("Promise", promise),
        *([] if expected is None else [("Names", str(expected))]),
        ("Landmarks", f"{len(model.plan.kernel.landmarks):,}"),
    ]


def _every(counted: list[Minute]) -> list[Minute]:
    """The minutes from the first with rows to the last, also those between without any."""
    if not counted:
        return []
    found, last = {minute.at: minute for minute in counted}, counted[-1].at
    first = max(counted[0].at, last - 60 * (_MINUTES_SHOWN - 1))
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


def _add_settings(pages: Pages) -> None:
    ws = pages.ws

    def shown(request: Request, **said: Any) -> Response:
        names = ws.ledger.names()
        chosen = request.path_params.get("model") or request.query_params.get("model")
        chosen = chosen or next(iter(names), None)
        values: Values = {
            "token": "",
            "issued_to": "",
            "said": "",
            "replaced": None,
            "revoking": None,
        }
        values |= said
        values |= {"model": chosen, "roles": ROLES, "gap": GAP}
        if chosen is not None:
            nothing = {"entity": None, "time": None, "gap": None}
            values["columns_set"] = nothing | ws.ledger.settings(chosen)
        if guards.person(request).may("admin"):
            values |= {"people": ws.people.all(), "sessions": ws.people.sessions()}
            values["audit"] = ws.people.audit(limit=_ENTRIES)
            if chosen is not None:
                wanted = ws.notices.subscription(chosen)
                values |= {"notices": wanted, "mail_server": _without_password(wanted.mail_server)}
                values["console"] = wanted.console or f"{request.base_url}".rstrip("/")
                values["deliveries"] = ws.notices.deliveries(chosen, limit=20)
        return pages.show(request, "settings.html", heading="Settings", **values)

    pages.route("/settings", shown)(lambda: {})
    form = partial(pages.form, show=shown)

    @form("/settings/tokens")
    def issue(by: Admin, form: Posted) -> Values:
        name, role, days, replace = fields(form, "name", "role", "days", "replace")
        if days and not days.isdecimal():
            raise UserError(f"Expected a whole number of days, got {days!r}.")
        known = None if replace else ws.people.holder(name)
        if known is not None:
            ws.people.check_role(known.name, role)
            return {"replaced": known, "wanted": {"name": known.name, "role": role, "days": days}}
        token = ws.people.issue(name, role, by=by, days=float(days) if days else None)
        return {"token": token, "issued_to": name}

    @form("/settings/revoke")
    def revoke(by: Admin, form: Posted) -> Values:
        name = str(form.get("name", ""))
        known = None if form.get("confirmed") else ws.people.holder(name)
        if known is not None:
            return {"revoking": known}
        ws.people.revoke(name, by=by)
        return {"said": f"The token of {name} is revoked."}

    @form("/settings/sessions")
    def end(by: Admin, form: Posted) -> Values:
        ws.people.sign_out(number(str(form.get("session", "")), what="a session"), by=by)
        return {"said": "The session has ended."}

    @form("/m/{model}/settings")
    def change(by: Admin, model: str, form: Posted) -> Values:
        changes: Values = {name: str(form.get(name, "")) or None for name in ("entity", "time")}
        entity, known = changes["entity"], ws.ledger.stored_columns(model)
        is_new = entity != ws.ledger.settings(model).get("entity")
        if entity and is_new and known and entity not in known:
            there = ", ".join(known)
            raise UserError(f"No stored row has a column {entity!r}. Their columns: {there}.")
        changes["gap"] = _minutes(*fields(form, "gap"))
        ws.ledger.set_settings(model, **changes)
        ws.people.log(by, "settings", model=model, **changes)
        return {"said": "Saved for rows that arrive from now on."}

    @form("/m/{model}/notices")
    def subscribe(by: Admin, model: str, form: Posted) -> Values:
        names = ("url", "min_score", "mail_server", "mail_from", "mail_to", "hours", "console")
        given: Values = dict(zip(names, fields(form, *names), strict=True))
        kept = ws.notices.subscription(model).mail_server
        if given["mail_server"] == _without_password(kept):
            given["mail_server"] = kept
        wanted = read(Subscription, given | {"events": form.getlist("event")})
        is_same = ws.notices.subscription(model).tells_like(wanted)
        secret = ws.notices.subscribe(model, wanted, by=by)
        signed = f" Requests are signed with the secret {secret}" if wanted.url else ""
        return {"said": f"Saved{'' if is_same else ' for events from now on'}.{signed}"}

    @form("/m/{model}/notices/test")
    def test(by: Admin, model: str) -> Values:
        ws.notices.test(model)
        ws.people.log(by, "notices tested", model=model)
        return {"said": "Sending a test: its result will appear below."}

    @form("/m/{model}/purge")
    def purge(by: Admin, model: str, form: Posted) -> Values:
        entity, again = fields(form, "entity", "again")
        if not entity or entity != again:
            raise UserError("Nothing was deleted: enter the same entity in both fields.")
        done = ws.purging.purge(model, entity, by=by)
        if not done.rows and not done.lessons:
            return {"said": f"No stored row of {entity}."}
        forgotten = f"{plural(done.lessons, 'lesson')} forgotten"
        return {"said": f"{plural(done.rows, 'row')} deleted, {forgotten}."}
