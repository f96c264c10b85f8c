"""The inbox, the page of an alarm, groups of similar alarms, and the verdicts given on them."""

import math
import time
from contextlib import suppress
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from eqsep.errors import UserError
from eqsep.labels import UNSEEN
from eqsep.serve.alarms import Alarm, Filter, Said, first_name
from eqsep.serve.console.formats import plural
from eqsep.serve.console.pages import Pages, Posted, path_of
from eqsep.serve.exemptions import Exempted
from eqsep.serve.incidents import Incident, over_time
from eqsep.serve.ledger import entity_column
from eqsep.serve.store import Missing
from eqsep.serve.texts import LARGEST, Number, number
from eqsep.serve.verdicts import (
    FALSE,
    TEACHING,
    TRUE,
    VERDICTS,
    Change,
    Preview,
    Reviewed,
    fits_now,
)
from eqsep.serve.web.guards import Judge

PER_PAGE = 50
PageNumber = Annotated[int, Query(le=LARGEST // PER_PAGE)]
_STATES = {
    "open": "open",
    "unsure": "unsure",
    "judged": "judged",
    "cleared": "cleared: no longer alarms",
    "quiet": "quiet: never alarms",
    "exempt": "exempt: expected for a while",
}
_ORDERS = {"at": "newest first", "score": "highest first"}
_AGES = {"": "any", "3600": "last hour", "86400": "last day", "604800": "last week"}
_FOLDS = {"incident": "incidents", "alarm": "single alarms"}
_CHOSEN = {"by": "incident", "state": "open", "order": "at", "min_score": ""}  # filters at first
_CHOSEN |= dict.fromkeys(("kind", "entity", "assignee", "column", "value"), "")
_CHOSEN |= dict.fromkeys(("age", "since", "until"), "")
_REVIEWED = ("by", "verdict", "kind", "age", "undone")  # filters of verdicts
_LATEST = 5  # verdicts that are shown
_FIRST_KEY = 4  # of a kind; those before are verdicts
_OF_GROUP = 5  # alarms that are shown
_ENOUGH = 20  # quiet rows judged, for a share of them to be meaningful


def _chosen(request: Request) -> dict[str, str]:
    """The filters in the page's address."""
    asked = request.query_params
    return {name: asked.get(name, first).strip() for name, first in _CHOSEN.items()}


def _query(chosen: dict[str, str]) -> str:
    """The filters that are set, as the beginning of a query."""
    query = urlencode({name: text for name, text in chosen.items() if text != _CHOSEN[name]})
    return query and query + "&"


def _since(age: str) -> float:
    """When something of an age in seconds began."""
    return time.time() - number(age, what="seconds")


def _filter(chosen: dict[str, str]) -> Filter:
    given: dict[str, Any] = {n: text for n, text in chosen.items() if text and n != "by"}
    if "age" in given:
        given["since"] = _since(given.pop("age"))
    try:
        return Filter(**given)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


class _Line(NamedTuple):
    """A line of the inbox: an incident, and the alarm of it with the highest score."""

    incident: Incident
    alarm: Alarm


def _entity_name(pages: Pages, model: str) -> str:
    """What an entity is called: its column."""
    ledger = pages.ws.ledger
    return entity_column(ledger.settings(model), ledger.live_detector(model).plan_) or "entity"


def _judging(pages: Pages, model: str) -> dict[str, Any]:
    """What a page with a form for verdicts needs."""
    ws = pages.ws
    return {
        "kinds": {kind: place + _FIRST_KEY for kind, place in ws.ledger.places(model).items()},
        "latest": ws.verdicts.together(model, limit=_LATEST),
    }


def add_routes(routes: APIRouter, pages: Pages) -> None:
    """The inbox, the page of an alarm, groups, and verdicts."""
    ws = pages.ws
    _add_verdicts(routes, pages)

    @routes.get("/m/{model}/inbox")
    def inbox(request: Request, model: str, page: PageNumber = 1) -> Response:
        chosen, page = _chosen(request), max(page, 1)
        start = PER_PAGE * (page - 1)
        if chosen["by"] not in _FOLDS:
            raise UserError(f"The filter by is one of {', '.join(_FOLDS)}, got {chosen['by']!r}.")
        is_folded = chosen["by"] == "incident" and chosen["state"] != "quiet"
        wanted, n = _filter(chosen), PER_PAGE if is_folded else 0
        found = ws.folding.incidents(model, wanted, limit=n, offset=start)
        worst = [incident.worst for incident in found.incidents]
        alarms = ws.alarms.with_reasons(
            ws.alarms.some(worst)
            if is_folded
            else ws.alarms.inbox(model, wanted, limit=PER_PAGE, offset=start).alarms
        )
        total = found.total if is_folded else found.n_alarms
        kinds = ws.alarms.kinds(model)
        columns = dict.fromkeys(ws.ledger.live_detector(model).plan_.table_columns)
        if chosen["kind"]:  # also shown without open alarms
            kinds.setdefault(chosen["kind"], 0)
        if chosen["column"]:  # also shown if the model does not know it
            columns.setdefault(chosen["column"])
        return pages.show(
            request,
            "inbox.html",
            heading="Inbox",
            alarms=alarms,
            lines=[_Line(*both) for both in zip(found.incidents, alarms, strict=is_folded)],
            found=found,
            is_folded=is_folded,
            page=page,
            pages=max(1, math.ceil(total / PER_PAGE)),
            chosen=chosen,
            filtered=chosen != _CHOSEN,
            query=_query(chosen),
            newest=time.time(),
            kinds_open=kinds,
            orders=_ORDERS,
            folds=_FOLDS,
            unbounded=_query({**chosen, "since": "", "until": ""}),
            states=_STATES,
            ages=_AGES,
            columns=columns,
            people=sorted(person.name for person in ws.people.all()),
            banner=ws.watching.status(model).banner,
            **_judging(pages, model),
        )

    @routes.get("/m/{model}/inbox/fresh")
    def fresh(request: Request, model: str, after: float) -> Response:
        chosen = _chosen(request)
        newer = _filter(chosen).model_copy(update={"since": after})
        n = ws.alarms.inbox(model, newer, limit=1).total
        return pages.panel(request, "panel_fresh.html", heading="Inbox", n=n, query=_query(chosen))

    @routes.get("/m/{model}/incidents/{number}")
    def incident(request: Request, model: str, number: int) -> Response:
        found = None
        with suppress(Missing):
            found = ws.folding.incident(model, number)
        alarms = [] if found is None else ws.alarms.with_reasons(ws.alarms.some(found.alarms))
        return pages.show(
            request,
            "incident.html",
            heading="Incident",
            current="inbox",
            number=number,
            incident=found,
            alarms=alarms,
            bars=over_time([alarm.at for alarm in alarms]),
            entity_name=_entity_name(pages, model),
            **_judging(pages, model),
        )

    @routes.get("/m/{model}/alarms/{number}")
    def alarm(request: Request, model: str, number: Number) -> Response:
        found = ws.alarms.explained(number)
        if found.model != model:
            raise Missing(f"There is no row {number} of the model {model!r}.")
        reasons = [
            one for one in (found.reasons or {})["reasons"] if abs(one["contribution"]) > 5e-4
        ]
        return pages.show(
            request,
            "alarm.html",
            heading=f"Alarm {number}",
            current="inbox",
            alarm=found,
            reasons=reasons,
            most_added=max((abs(one["contribution"]) for one in reasons), default=0) or 1,
            main_columns={one["column"] for one in reasons[:3]},
            normal_rows=ws.alarms.normal_rows(number),
            fits=fits_now(ws.ledger.live_detector(model).model_, found),
            alike=ws.alarms.with_reasons(ws.alarms.alike(number)),
            history=ws.alarms.with_reasons(ws.alarms.of_entity(number)),
            verdicts=ws.verdicts.of_row(number),
            batch=[] if found.verdict is None else ws.verdicts.given_with(found.verdict),
            entity_name=_entity_name(pages, model),
            **_judging(pages, model),
        )

    @routes.get("/m/{model}/entity")
    def entity(request: Request, model: str, name: str) -> Response:
        return pages.show(
            request,
            "entity.html",
            heading="Entity",
            current="inbox",
            name=name,
            history=ws.alarms.with_reasons(ws.alarms.history(model, name)),
            entity_name=_entity_name(pages, model),
            **_judging(pages, model),
        )

    @routes.get("/m/{model}/groups")
    def groups(request: Request, model: str) -> Response:
        found = ws.alarms.groups(model)
        return pages.show(
            request,
            "groups.html",
            heading="Groups",
            groups=found,
            shown=_OF_GROUP,
            alone=ws.alarms.kinds(model).get(UNSEEN, 0) - sum(len(one.alarms) for one in found),
            **_judging(pages, model),
        )

    @routes.get("/m/{model}/groups/{number}")
    def group(request: Request, model: str, number: Number) -> Response:
        found = None
        with suppress(Missing):
            found = ws.alarms.group(model, number)
        return pages.show(
            request,
            "group.html",
            heading="Group",
            current="groups",
            number=number,
            group=found,
            **_judging(pages, model),
        )


class _Judgement(NamedTuple):
    """A verdict in a form."""

    ids: list[int]
    choice: str
    verdict: str
    kind: str | None
    note: str


def _judgement(form: FormData) -> _Judgement:
    ids, choice = _numbers(form, "id"), str(form.get("choice", ""))
    if not ids:
        raise UserError("Select the alarms that the verdict is for: none is selected.")
    word, _, name = choice.partition(":")
    note = str(form.get("note", ""))
    if word == "verdict":
        return _Judgement(ids=ids, choice=choice, verdict=name, kind=None, note=note)
    kind = name if word == "kind" else str(form.get("new_kind", "")).strip()
    if not kind:
        raise UserError("Name the new kind: its name is empty.")
    return _Judgement(ids=ids, choice=choice, verdict=TRUE, kind=kind, note=note)


def _numbers(form: FormData, name: str) -> list[int]:
    """The numbers in all fields with a name; the field of a group has several."""
    found = [text for value in form.getlist(name) for text in str(value).split()]
    what = "a row" if name == "id" else f"a {name}"
    return list(dict.fromkeys(number(text, what=what) for text in found))


def _changed(before: dict[int, Said], after: dict[int, Said]) -> list[tuple[str, int]]:
    """What has changed for rows that nobody has judged, with counts."""
    pairs = [(before[number], now) for number, now in after.items() if number in before]
    counts = (
        ("open alarms have another name", sum(_is_renamed(*pair) for pair in pairs)),
        ("open alarms are no longer alarms", sum(a.alarm > b.alarm for a, b in pairs)),
        ("quiet rows rose to alarms", sum(a.alarm < b.alarm for a, b in pairs)),
    )
    return [(words, n) for words, n in counts if n]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_renamed(before: Said, after: Said) -> bool:
    """Whether an alarm gets another first name."""
    return before.alarm and after.alarm and first_name(before.kind) != first_name(after.kind)


def _renamed(preview: Preview) -> list[Change]:
    return [one for one in preview.renamed if _is_renamed(one.alarm.now, one.then)]


def _add_verdicts(routes: APIRouter, pages: Pages) -> None:
    """Preview, verdict, undo, assignment, notes, and the queue of rows to judge."""
    ws = pages.ws

    @routes.post("/m/{model}/preview")
    def preview(request: Request, _: Judge, model: str, form: Posted) -> Response:
        said = _judgement(form)
        teaches = said.verdict in TEACHING
        named = not (teaches and "hx-request" in request.headers)  # a script asks for names later
        found = ws.verdicts.preview(said.ids, said.verdict, kind=said.kind, named=named)
        still = [one for one in found.rows if one.then.alarm] if said.verdict == FALSE else []
        numbers = (
            [name for name, value in still[0].alarm.row.items() if _is_number(value)]
            if still
            else []
        )
        return pages.panel(
            request,
            "panel_preview.html",
            heading="Preview",
            preview=found,
            named=named,
            renamed=_renamed(found),
            teaches=teaches,
            still=still,
            numbers=numbers,
            n_normal=round(ws.ledger.live_detector(model).model_.n_learnt[0]),
            **said._asdict(),
        )

    @routes.post("/m/{model}/preview/names")
    def names(request: Request, _: Judge, form: Posted) -> Response:
        said = _judgement(form)
        found = ws.verdicts.preview(said.ids, said.verdict, kind=said.kind)
        values = {"preview": found, "renamed": _renamed(found)}
        return pages.panel(request, "panel_names.html", heading="Names", **values)

    @routes.get("/m/{model}/verdicts")
    def review(request: Request, model: str, page: int = 1) -> Response:
        asked, page = request.query_params, max(page, 1)
        chosen = {name: asked.get(name, "").strip() for name in _REVIEWED}
        given: dict[str, Any] = {name: text for name, text in chosen.items() if text}
        query = urlencode(given)
        if "age" in given:
            given["since"] = _since(given.pop("age"))
        if "undone" in given:
            given["undone"] = given["undone"] == "yes"
        try:
            wanted = Reviewed(**given)
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from error
        found = ws.verdicts.latest(model, wanted, limit=PER_PAGE, offset=PER_PAGE * (page - 1))
        counted = ws.verdicts.counted(model, wanted)
        total = sum(counted.values())
        return pages.show(
            request,
            "verdicts.html",
            heading="Verdicts",
            verdicts=found,
            alarms=ws.alarms.left([verdict.row for verdict in found]),
            counted=counted,
            total=total,
            page=page,
            pages=max(1, math.ceil(total / PER_PAGE)),
            chosen=chosen,
            query=query and query + "&",
            people=ws.verdicts.counted(model),
            kinds=list(ws.ledger.places(model)),
            exemptions=ws.exemptions.all(model),
            covered=ws.exemptions.covered(model),
            now=time.time(),
            words=VERDICTS,
            ages=_AGES,
        )

    @routes.post("/m/{model}/verdicts")
    def give(request: Request, by: Judge, model: str, form: Posted) -> Response:
        said = _judgement(form)
        before = ws.alarms.standing(model)
        given = ws.verdicts.give(said.ids, said.verdict, kind=said.kind, note=said.note, by=by)
        return pages.panel(
            request,
            "panel_given.html",
            heading="Learnt" if said.verdict in TEACHING else "Noted",
            given=given,
            undone=[],
            version=given.version,
            same_as=None,
            changed=_changed(before, ws.alarms.standing(model)),
            changed_alarms=True,
        )

    @routes.post("/m/{model}/exemptions")
    def exempt(request: Request, by: Judge, model: str, form: Posted) -> Response:
        names = ("entity", "column", "low", "high", "days", "note")
        given = {name: str(form.get(name, "")).strip() for name in names}
        if not given["low"] and not given["high"]:
            given["column"] = ""
        try:
            asked = Exempted(**{name: text for name, text in given.items() if text})  # type: ignore[arg-type]
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from error
        made = ws.exemptions.add(model, asked, by=by)
        n = ws.exemptions.covered(model).get(made.id, 0)
        values = {"detail": f"{plural(n, 'open alarm')} left the inbox. Verdicts lists exemptions."}
        heading = "Exempted"
        return pages.panel(
            request, "panel_said.html", heading=heading, changed_alarms=True, **values
        )

    @routes.post("/m/{model}/exemptions/revoke")
    def revoke(by: Judge, model: str, form: Posted) -> Response:
        for one in _numbers(form, "exemption"):
            ws.exemptions.revoke(model, one, by=by)
        return RedirectResponse(f"{path_of(model)}/verdicts", 303)

    @routes.post("/m/{model}/undo")
    def undo(request: Request, by: Judge, model: str, form: Posted) -> Response:
        before = ws.alarms.standing(model)
        numbers = _numbers(form, "verdict")
        version = ws.verdicts.undo(numbers, by=by)
        same = [v.id for v in ws.ledger.versions(model) if v.digest == version.digest]
        return pages.panel(
            request,
            "panel_given.html",
            heading="Undone",
            given=None,
            undone=[ws.verdicts.get(number) for number in numbers],
            version=version,
            same_as=min(same) if len(same) > 1 else None,
            changed=_changed(before, ws.alarms.standing(model)),
            changed_alarms=True,
        )

    @routes.post("/m/{model}/assign")
    def assign(request: Request, by: Judge, form: Posted) -> Response:
        ids, to = _numbers(form, "id"), str(form.get("to", "")).strip()
        if not ids:
            raise UserError("Select the alarms to assign: none is selected.")
        ws.alarms.assign(ids, to or None)
        ws.people.log(by, "assigned", rows=ids, to=to)
        values = {"detail": f"{plural(len(ids), 'alarm')} assigned to {to or 'nobody'}"}
        return pages.panel(
            request, "panel_said.html", heading="Assigned", changed_alarms=True, **values
        )

    @routes.post("/m/{model}/alarms/{number}/note")
    def annotate(request: Request, by: Judge, number: Number, form: Posted) -> Response:
        to = str(form.get("to", "")).strip()
        ws.alarms.annotate(number, str(form.get("note", "")).strip())
        ws.alarms.assign([number], to or None)
        ws.people.log(by, "annotated", rows=[number], to=to)
        return pages.panel(request, "panel_said.html", heading="Saved", detail="")

    @routes.get("/m/{model}/judge")
    def judge(request: Request, model: str) -> Response:
        offered: dict[str, list[Alarm]] = {}
        for one in ws.queue.offered(model):
            offered.setdefault(one.why, []).append(one.alarm)
        return pages.show(
            request,
            "judge.html",
            heading="Judge",
            offered=[(why, ws.alarms.with_reasons(alarms)) for why, alarms in offered.items()],
            missed=ws.queue.missed(model),
            enough=_ENOUGH,
            **_judging(pages, model),
        )
