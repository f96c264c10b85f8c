"""The inbox, the page of an alarm, groups of similar alarms, and the verdicts given on them."""

import math
import time
from collections import Counter
from contextlib import suppress
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

from fastapi import Query
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from eqsep.errors import UserError
from eqsep.labels import UNSEEN
from eqsep.serve.alarms import OPEN, Alarm, Filter, Said, Verdict, first_name
from eqsep.serve.console.pages import (
    Pages,
    Posted,
    Refused,
    Values,
    fields,
    go,
    plural,
    read,
    score,
)
from eqsep.serve.exemptions import Exempted
from eqsep.serve.incidents import over_time
from eqsep.serve.ledger import entity_column
from eqsep.serve.store import Missing
from eqsep.serve.texts import LARGEST, WholeNumber, number
from eqsep.serve.verdicts import (
    FALSE,
    TEACHING,
    TRUE,
    VERDICTS,
    Outdated,
    Preview,
    Reviewed,
    fits_now,
)
from eqsep.serve.web.guards import Judge

PER_PAGE = 50
PageNumber = Annotated[int, Query(le=LARGEST // PER_PAGE)]
_AGES = {"": "any", "3600": "last hour", "86400": "last day", "604800": "last week"}
_WORDS: Values = {"ages": _AGES, "words": VERDICTS}
_DEFAULT_FILTERS = {"by": "incident", "state": "open", "order": "at"}  # filters at first
_DEFAULT_FILTERS |= dict.fromkeys(
    ("kind", "entity", "assignee", "column", "value", "min_score"), ""
)
_DEFAULT_FILTERS |= dict.fromkeys(("age", "since", "until"), "")
_REVIEWED = dict.fromkeys(("by", "verdict", "kind", "age", "undone"), "")  # filters of verdicts
_LATEST = 5  # verdicts that are shown
_FIRST_KEY = 4  # of a kind; those before are verdicts
_OF_GROUP = 5  # alarms that are shown
SIMILAR = 20  # alarms shown as similar to one
_IN_DOUBT = "the name is in doubt: a verdict would settle the kind"
_QUIET_ROWS_FOR_SHARE = 20  # quiet rows judged, for a share of them to be meaningful


def _chosen(request: Request, first: dict[str, str]) -> dict[str, str]:
    """The filters in the page's address."""
    return {name: request.query_params.get(name, text).strip() for name, text in first.items()}


def _query(chosen: dict[str, str], first: dict[str, str]) -> str:
    """The filters that are set, as the beginning of a query."""
    query = urlencode({name: text for name, text in chosen.items() if text != first[name]})
    return query and query + "&"


def _filter(chosen: dict[str, str]) -> Filter:
    if chosen["by"] not in ("incident", "alarm"):
        raise UserError(f"by must be incident or alarm, got {chosen['by']!r}.")
    return read(Filter, {name: text for name, text in chosen.items() if name != "by"})


def _n_pages(total: int) -> int:
    return max(1, math.ceil(total / PER_PAGE))


def add_routes(pages: Pages) -> None:
    """The inbox, the page of an alarm, groups, and verdicts."""
    ws = pages.ws
    _add_verdicts(pages)

    def judging(model: str) -> Values:
        """What a page with a form for verdicts needs, and what an entity is called: its column."""
        settings, plan = ws.ledger.settings(model), ws.ledger.live_model(model).plan
        kinds = {kind: place + _FIRST_KEY for kind, place in ws.ledger.places(model).items()}
        latest = ws.verdicts.together(model, limit=_LATEST)
        name = entity_column(settings, plan) or "entity"
        renamed, judged = ws.verdicts.renamed(model), [verdicts[0].row for verdicts in latest]
        values = {"kinds": kinds, "latest": latest, "judged_rows": ws.alarms.left(judged)}
        replaced = ws.verdicts.replaced(verdicts[0] for verdicts in latest)
        return values | {"renamed": renamed, "entity_name": name, "replaced": replaced}

    @pages.screen("/m/{model}/inbox", "inbox.html", heading="Inbox", ages=_AGES)
    def inbox(request: Request, model: str, page: PageNumber = 1) -> Values:
        chosen, page = _chosen(request, _DEFAULT_FILTERS), max(page, 1)
        is_folded = chosen["by"] == "incident" and chosen["state"] != "quiet"
        wanted, start = _filter(chosen), PER_PAGE * (page - 1)
        n = PER_PAGE if is_folded else 0
        found = ws.folding.incidents(model, wanted, limit=n, offset=start)
        if is_folded:
            alarms = ws.alarms.some([incident.worst for incident in found.incidents])
        else:
            alarms = ws.alarms.inbox(model, wanted, limit=PER_PAGE, offset=start).alarms
        alarms = ws.alarms.with_reasons(alarms)
        kinds = ws.alarms.kinds(model, wanted.model_copy(update={"kind": None}))
        columns = [*ws.ledger.live_model(model).plan.table_columns]
        for kind in (*ws.ledger.places(model), chosen["kind"]):  # also shown without alarms
            kinds.setdefault(kind, 0)
        kinds.pop("", None)
        if chosen["column"]:  # also shown if the model does not know it
            columns.append(chosen["column"])
        shown = {"found": found, "is_folded": is_folded, "page": page, "chosen": chosen}
        shown |= {"alarms": alarms, "kinds_open": kinds, "columns": dict.fromkeys(columns)}
        return judging(model) | {
            **shown,
            "lines": [*zip(found.incidents, alarms, strict=is_folded)],
            "pages": _n_pages(found.total if is_folded else found.n_alarms),
            "filtered": chosen != _DEFAULT_FILTERS,
            "query": _query(chosen, _DEFAULT_FILTERS),
            "unbounded": _query({**chosen, "since": "", "until": ""}, _DEFAULT_FILTERS),
            "newest": time.time(),
            "people": sorted(person.name for person in ws.people.all()),
            "banner": ws.watching.status(model).banner,
        }

    @pages.part("/m/{model}/inbox/fresh", "panel_fresh.html", "GET", heading="Inbox")
    def fresh(request: Request, model: str, after: float) -> Values:
        chosen = _chosen(request, _DEFAULT_FILTERS)
        newer = _filter(chosen).model_copy(update={"since": after})
        return {
            "n": ws.alarms.inbox(model, newer, limit=1).total,
            "query": _query(chosen, _DEFAULT_FILTERS),
        }

    of_inbox = {"current": "inbox"}

    @pages.screen("/m/{model}/incidents/{number}", "incident.html", heading="Incident", **of_inbox)
    def incident(model: str, number: WholeNumber) -> Values:
        found, alarms = None, list[Alarm]()
        with suppress(Missing):
            found = ws.folding.incident(model, number)
            alarms = ws.alarms.with_reasons(ws.alarms.some(found.alarms))
        bars = over_time([alarm.at for alarm in alarms])
        judged = {(a.verdict.verdict, a.verdict.kind): a for a in alarms if a.verdict}
        values = {"number": number, "incident": found, "alarms": alarms, "bars": bars}
        values["judged"] = list(judged.values())  # one for each verdict
        return judging(model) | values

    @pages.screen("/m/{model}/alarms/{number}", "alarm.html", **of_inbox)
    def alarm(model: str, number: WholeNumber) -> Values:
        found = ws.alarms.explained(number)
        if found.model != model:
            raise Missing(f"Model {model!r} has no row {number}.")
        reasons = (found.reasons or {})["reasons"]
        reasons = [one for one in reasons if abs(one["contribution"]) > 5e-4]
        live = ws.ledger.in_use(model)[0]
        learnt = ws.ledger.model(live)
        is_live = found.now.version == live  # not of a row that was judged
        then = {} if is_live else ws.alarms.said_by(learnt, live, model, [number], named=False)
        alike = ws.alarms.alike(number, limit=LARGEST)
        values, verdicts = judging(model), ws.verdicts.of_row(number)
        values["replaced"] |= ws.verdicts.replaced(verdicts)
        return values | {
            "heading": f"Alarm {number}",
            "alarm": found,
            "reasons": reasons,
            "most_added": max((abs(one["contribution"]) for one in reasons), default=0) or 1,
            "main_columns": {one["column"] for one in reasons[:3]},
            "normal_rows": ws.alarms.normal_rows(number),
            "fits": fits_now(learnt, found),
            "threshold": learnt.threshold,
            "live": found.now if is_live else then[number],
            "alike": ws.alarms.with_reasons(alike[:SIMILAR]),
            "n_alike": len(alike),
            "may_be_grouped": found.state == OPEN and found.now.kind == UNSEEN,
            "history": ws.alarms.with_reasons(ws.alarms.of_entity(number)),
            "verdicts": verdicts,
            "batch": [] if found.verdict is None else ws.verdicts.given_with(found.verdict),
        }

    @pages.screen("/m/{model}/entity", "entity.html", heading="Entity", **of_inbox)
    def entity(model: str, name: str) -> Values:
        history = ws.alarms.with_reasons(ws.alarms.history(model, name))
        return judging(model) | {"name": name, "history": history}

    @pages.screen("/m/{model}/groups", "groups.html", heading="Groups", shown=_OF_GROUP)
    def groups(model: str) -> Values:
        found = ws.alarms.groups(model)
        alone = ws.alarms.kinds(model).get(UNSEEN, 0) - sum(len(one.alarms) for one in found)
        return judging(model) | {"groups": found, "alone": alone}

    @pages.screen("/m/{model}/groups/{number}", "group.html", heading="Group", current="groups")
    def group(model: str, number: WholeNumber) -> Values:
        found = None
        with suppress(Missing):
            found = ws.alarms.group(model, number)
        return judging(model) | {"number": number, "group": found}

    @pages.part("/m/{model}/groups", "panel_said.html", heading="Renamed", changed_alarms=True)
    def rename(by: Judge, model: str, form: Posted) -> Values:
        ids, (new,) = _numbers(form, "id", what="a row"), fields(form, "name")
        if not ids:
            raise UserError("No group is selected: select the groups to rename.")
        n = ws.alarms.rename_groups(model, ids, new)
        ws.people.log(by, "groups named", model=model, rows=ids, name=new)
        if not new:
            return {"detail": "Name removed: its alarms are in separate groups again."}
        merged = ", and merged" if n > 1 else ""
        return {"detail": f"{plural(n, 'group')} named {new!r}{merged}."}

    @pages.screen("/m/{model}/judge", "judge.html", heading="Judge", enough=_QUIET_ROWS_FOR_SHARE)
    def judge(model: str) -> Values:
        offered: dict[str, list[Alarm]] = {}
        for one in ws.queue.offered(model):
            why = _IN_DOUBT if one.alarm.now.alarm else one.why
            offered.setdefault(why, []).append(one.alarm)
        explained = [(why, ws.alarms.with_reasons(alarms)) for why, alarms in offered.items()]
        return judging(model) | {"offered": explained, "missed": ws.queue.missed(model)}


class _Judgement(NamedTuple):
    """A verdict in a form."""

    ids: list[int]
    choice: str
    verdict: str
    kind: str | None
    note: str


def _judgement(form: FormData) -> _Judgement:
    ids, choice = _numbers(form, "id", what="a row"), str(form.get("choice", ""))
    if not ids:
        raise UserError("No alarm is selected: select those to judge.")
    word, _, name = choice.partition(":")
    new, note = fields(form, "new_kind", "note")
    kind = None if word == "verdict" else name if word == "kind" else new
    if kind == "":
        raise UserError("Enter a name for the new kind.")
    verdict = name if word == "verdict" else TRUE
    return _Judgement(ids=ids, choice=choice, verdict=verdict, kind=kind, note=note)


def _numbers(form: FormData, name: str, *, what: str) -> list[int]:
    """The numbers in all fields with a name; the field of a group has several."""
    found = [text for value in form.getlist(name) for text in str(value).split()]
    return list(dict.fromkeys(number(text, what=what) for text in found))


def _is_renamed(before: Said, after: Said) -> bool:
    """Whether an alarm gets another first name."""
    return before.alarm and after.alarm and first_name(before.kind) != first_name(after.kind)


def _previewed(preview: Preview) -> Values:
    renamed = [one for one in preview.renamed if _is_renamed(one.alarm.now, one.then)]
    changed = [one for one in preview.rows if one.then.kind != one.alarm.now.kind]
    values = {"preview": preview, "renamed": renamed, "changed": changed}
    return values | {"by_threshold": _by_threshold(preview)}


def _by_threshold(preview: Preview) -> str | None:
    """How many rows change only because the threshold does; None if no row does."""
    before, after = preview.threshold
    if after > before:
        total, n = len(preview.goes), sum(one.then.score > before for one in preview.goes)
        what, one, some = "alarm", "clears", "clear"
        why = "it looks" if n == 1 else "they look"
        why += " normal"
    else:
        total, n = len(preview.rises), sum(one.then.score <= before for one in preview.rises)
        what, one, some = "quiet row", "raises an alarm", "raise an alarm"
        why = "its score rises" if n == 1 else "their scores rise"
    if not n:
        return None
    which = f"the {what}" if total == 1 else f"{n:,} of the {plural(total, what)}"
    moves = f"The threshold {'rises' if after > before else 'falls'}"
    return (
        f"{moves} from {score(before)} to {score(after)}: {which} {one if n == 1 else some} for "
        f"that reason, not because {why}."
    )


def _add_verdicts(pages: Pages) -> None:
    """Preview, verdict, undo, exemptions, assignment and notes."""
    ws = pages.ws

    def judged(verdicts: list[Verdict]) -> Values:
        """The rows of verdicts, by number."""
        return {"judged_rows": ws.alarms.left([verdict.row for verdict in verdicts])}

    def changed(
        model: str, before: dict[int, Said], rows: set[int], *, is_undo: bool = False
    ) -> Values:
        """What has changed for rows whose verdicts are undone, and for other open ones."""
        after = ws.alarms.standing(model)
        reopened = [after[number] for number in rows if number in after]
        others = {n: said for n, said in after.items() if n in before and n not in rows}
        pairs = [(before[number], now) for number, now in others.items()]
        rises = [n for n, said in others.items() if said.alarm and not before[n].alarm]
        back = ws.alarms.n_raised(rises) if rises else 0
        again = f"reopened, {sum(said.alarm for said in reopened)} in the inbox now"
        counts = (
            ("judged row", again, len(reopened) if is_undo else 0),
            ("open alarm", "renamed", sum(_is_renamed(*pair) for pair in pairs)),
            ("open alarm", "no longer in the inbox", sum(a.alarm > b.alarm for a, b in pairs)),
            ("cleared alarm", "back in the inbox", back),
            ("quiet row", "in the inbox now", len(rises) - back),
        )
        return {"changed": [f"{plural(n, what)} {then}" for what, then, n in counts if n]}

    def shown(request: Request, model: str, form: FormData, outdated: str = "") -> Values:
        """A preview as it is shown; `outdated` says why an earlier one no longer holds."""
        said = _judgement(form)
        teaches = said.verdict in TEACHING
        named = not (teaches and "hx-request" in request.headers)  # a script asks for names later
        found = ws.verdicts.preview(said.ids, said.verdict, kind=said.kind, named=named)
        still = [one for one in found.rows if one.then.alarm] if said.verdict == FALSE else []
        row = still[0].alarm.row if still else {}
        values = {"named": named, "teaches": teaches, "still": still, "outdated": outdated}
        numbers = [name for name, value in row.items() if type(value) in (int, float)]
        main = (still[0].alarm.reasons or {"reasons": []})["reasons"] if still else []
        first = [reason["column"] for reason in main if reason["column"] in numbers]
        values["numbers"] = [*dict.fromkeys([*first, *numbers])]  # the main reasons first
        values["n_normal"] = round(ws.ledger.live_model(model).n_learnt[0])
        return values | said._asdict() | _previewed(found)

    @pages.part("/m/{model}/preview", "panel_preview.html", heading="Preview")
    def preview(request: Request, _: Judge, model: str, form: Posted) -> Values:
        return shown(request, model, form)

    @pages.part("/m/{model}/preview/names", "panel_names.html", heading="Names")
    def names(_: Judge, form: Posted) -> Values:
        said = _judgement(form)
        return _previewed(ws.verdicts.preview(said.ids, said.verdict, kind=said.kind))

    @pages.screen("/m/{model}/verdicts", "verdicts.html", heading="Verdicts", **_WORDS)
    def review(request: Request, model: str, page: PageNumber = 1) -> Values:
        chosen, page = _chosen(request, _REVIEWED), max(page, 1)
        wanted = read(Reviewed, chosen)
        found = ws.verdicts.latest(model, wanted, limit=PER_PAGE, offset=PER_PAGE * (page - 1))
        counted = ws.verdicts.counted(model, wanted)
        total = sum(counted.values())
        shown = {"verdicts": found, "counted": counted, "page": page, "chosen": chosen}
        return shown | {
            "alarms": ws.alarms.left([verdict.row for verdict in found]),
            "replaced": ws.verdicts.replaced(found),
            "total": total,
            "pages": _n_pages(total),
            "query": _query(chosen, _REVIEWED),
            "people": ws.verdicts.counted(model),
            "kinds": list(ws.ledger.places(model)),
            "renamed": ws.verdicts.renamed(model),
            "exemptions": ws.exemptions.all(model),
            "covered": ws.exemptions.covered(model),
            "now": time.time(),
        }

    @pages.part("/m/{model}/verdicts", "panel_given.html", changed_alarms=True)
    def give(request: Request, by: Judge, model: str, form: Posted) -> Values:
        said, before = _judgement(form), ws.alarms.standing(model)
        (version,) = fields(form, "previewed")
        previewed = number(version, what="a version") if version else None
        replaces = _numbers(form, "replaces", what="a verdict")
        what: Values = {"kind": said.kind, "note": said.note, "previewed": previewed}
        try:
            given = ws.verdicts.give(said.ids, said.verdict, by=by, replaces=replaces, **what)
        except Outdated as error:
            again: Values = {"template": "panel_preview.html", "heading": "Preview", "status": 409}
            live = ws.ledger.live(model)
            why = f"The model changed: version {live.id}, by {live.by}, is live now."
            if said.verdict not in TEACHING or previewed in (None, live.id):
                why = str(error)
            return again | {"changed_alarms": False} | shown(request, model, form, why)
        teaches = said.verdict in TEACHING
        heading = "Learnt" if teaches else "Noted"
        values = {"heading": heading, "given": given, "version": given.version}
        values |= judged(given.verdicts) | {"undone": [], "same_as": None, "renamed": {}}
        return changed(model, before, set(said.ids)) | values | {"is_new": teaches}

    @pages.part("/m/{model}/undo", "panel_given.html", heading="Undone", changed_alarms=True)
    def undo(by: Judge, model: str, form: Posted) -> Values:
        numbers, before = _numbers(form, "verdict", what="a verdict"), ws.alarms.standing(model)
        live = ws.ledger.in_use(model)[0]
        version = ws.verdicts.undo(numbers, by=by)
        undone = [ws.verdicts.get(number) for number in numbers]
        same = [v.id for v in ws.ledger.versions(model) if v.digest == version.digest]
        values: Values = {"given": None, "version": version, "undone": undone}
        values |= judged(undone) | {"renamed": ws.verdicts.renamed(model)}
        values |= {"same_as": min(same) if same[1:] else None, "is_new": version.id != live}
        return changed(model, before, {v.row for v in undone}, is_undo=True) | values

    @pages.part("/m/{model}/exemptions", "panel_said.html", heading="Exempted", changed_alarms=True)
    def exempt(by: Judge, model: str, form: Posted) -> Values:
        names = ("entity", "column", "low", "high", "days", "note")
        given = dict(zip(names, fields(form, *names), strict=True))
        if not given["low"] and not given["high"]:
            given["column"] = ""
        asked = read(Exempted, given)
        if not form.get("confirmed"):
            kinds = Counter(first_name(a.now.kind) for a in ws.exemptions.covering(model, asked))
            shown = {"asked": asked, "given": given, "kinds": dict(kinds.most_common())}
            question = {"template": "panel_exempt.html", "heading": "Exempt", "unseen": UNSEEN}
            return {**question, **shown, "changed_alarms": False}
        made = ws.exemptions.add(model, asked, by=by)
        n = ws.exemptions.covered(model).get(made.id, 0)
        link = ("verdicts#exempt-title", "See or revoke exemptions")
        return {"detail": f"{plural(n, 'open alarm')} left the inbox.", "link": link}

    def exempt_again(request: Request, *, refused: Refused, status: int) -> Response:
        columns = ws.ledger.live_model(request.path_params["model"]).plan.table_columns
        filled = refused.of("exemptions")
        form: Values = {"title": "Exempt alarms", "columns": columns, "filled": filled}
        form |= {"heading": "Exempt", "refused": refused, "status": status}
        return pages.panel(request, "panel_exempt_form.html", **form)

    pages.forms["/m/{model}/exemptions"] = exempt_again

    @pages.routes.post("/m/{model}/exemptions/revoke")
    def revoke(by: Judge, model: str, form: Posted) -> Response:
        for one in _numbers(form, "exemption", what="an exemption"):
            ws.exemptions.revoke(model, one, by=by)
        return go(model, "verdicts")

    def check_assignee(to: str) -> None:
        """Refuse a name that is nobody's: an alarm assigned to it would wait for ever."""
        if to and ws.people.holder(to) is None:
            known = ", ".join(person.name for person in ws.people.all())
            raise UserError(f"{to!r} has no token here. Alarms can be assigned to: {known}.")

    @pages.part("/m/{model}/assign", "panel_said.html", heading="Assigned", changed_alarms=True)
    def assign(by: Judge, form: Posted) -> Values:
        ids, (to,) = _numbers(form, "id", what="a row"), fields(form, "to")
        if not ids:
            raise UserError("No alarm is selected: select those to assign.")
        check_assignee(to)
        ws.alarms.assign(ids, to or None)
        ws.people.log(by, "assigned", rows=ids, to=to)
        return {"detail": f"{plural(len(ids), 'alarm')} assigned to {to or 'nobody'}"}

    @pages.part("/m/{model}/alarms/{number}/note", "panel_said.html", heading="Saved", detail="")
    def annotate(by: Judge, number: WholeNumber, form: Posted) -> Values:
        to, note = fields(form, "to", "note")
        if to != ws.alarms.get(number).assignee:  # somebody who has left may keep an alarm
            check_assignee(to)
        ws.alarms.annotate(number, note)
        ws.alarms.assign([number], to or None)
        ws.people.log(by, "annotated", rows=[number], to=to)
        return {}
