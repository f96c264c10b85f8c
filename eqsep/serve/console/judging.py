"""Verdicts: what they would change, giving them, taking them back; and rows worth judging."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from eqsep.errors import UserError
from eqsep.serve.console.formats import first_name, plural
from eqsep.serve.console.inbox import judging_values
from eqsep.serve.console.pages import Pages, Posted
from eqsep.serve.previews import Change, Preview
from eqsep.serve.records import Alarm, Said
from eqsep.serve.verdicts import FALSE, TEACHING
from eqsep.serve.web import guards

_ENOUGH = 20  # quiet rows judged, for a share of them to say something


@dataclass(frozen=True)
class _Said:
    """What a form says: which rows are what."""

    ids: list[int]
    choice: str
    verdict: str
    kind: str | None
    note: str

    @classmethod
    def of(cls, form: FormData) -> "_Said":
        ids = _numbers(form, "id")
        if not ids:
            raise UserError("Select the alarms that the verdict is for: none is selected.")
        choice = str(form.get("choice", ""))
        word, _, name = choice.partition(":")
        kind = name if word == "kind" else str(form.get("new_kind", "")).strip()
        if word == "verdict":
            return cls(ids, choice, name, None, str(form.get("note", "")))
        if not kind:
            raise UserError("Name the new kind: its name is empty.")
        return cls(ids, choice, "true", kind, str(form.get("note", "")))

    @property
    def teaches(self) -> bool:
        return self.verdict in TEACHING


def _numbers(form: FormData, name: str) -> list[int]:
    """The numbers of all fields of a name; a group's field holds several."""
    texts = [text for value in form.getlist(name) for text in str(value).split()]
    if not all(text.isdecimal() for text in texts):
        raise UserError(f"Expected whole numbers as {name!r}, got {texts}.")
    return list(dict.fromkeys(map(int, texts)))


def _changed(before: list[Alarm], after: list[Alarm]) -> list[tuple[str, int]]:
    """What is said otherwise of rows that nobody has judged, in words and how often."""
    said = {alarm.id: alarm.now for alarm in before}
    pairs = [(said[alarm.id], alarm.now) for alarm in after if alarm.id in said]
    counts = (
        ("open alarms have another name", sum(_is_renamed(*pair) for pair in pairs)),
        ("open alarms went: they are no alarms now", sum(a.alarm > b.alarm for a, b in pairs)),
        ("quiet rows rose to alarms", sum(a.alarm < b.alarm for a, b in pairs)),
    )
    return [(words, n) for words, n in counts if n]


def _is_renamed(before: Said, after: Said) -> bool:
    """Whether an alarm gets another first name: what may be said beside it does not count."""
    is_alarm = before.alarm and after.alarm
    return is_alarm and first_name(before.kind) != first_name(after.kind)


def _renamed(preview: Preview) -> list[Change]:
    return [one for one in preview.renamed if _is_renamed(one.alarm.now, one.then)]


def add_routes(routes: APIRouter, pages: Pages) -> None:
    """Preview, verdict, undo, handing over, notes, and the queue of rows to judge."""
    ws = pages.ws

    @routes.post("/m/{model}/preview")
    def preview(request: Request, model: str, form: Posted) -> Response:
        guards.require(request, "judge")
        said = _Said.of(form)
        named = not (said.teaches and "hx-request" in request.headers)  # a script asks for names
        found = ws.verdicts.preview(said.ids, said.verdict, kind=said.kind, named=named)
        return pages.panel(
            request,
            "panel_preview.html",
            heading="Preview",
            model=model,
            preview=found,
            named=named,
            renamed=_renamed(found),
            teaches=said.teaches,
            still=sum(one.then.alarm for one in found.rows) if said.verdict == FALSE else 0,
            n_normal=round(ws.ledger.detector(ws.ledger.live(model).id).model_.n_learnt[0]),
            **_fields(said),
        )

    @routes.post("/m/{model}/preview/names")
    def names(request: Request, model: str, form: Posted) -> Response:
        guards.require(request, "judge")
        said = _Said.of(form)
        found = ws.verdicts.preview(said.ids, said.verdict, kind=said.kind)
        return pages.panel(
            request,
            "panel_names.html",
            heading="Names",
            model=model,
            preview=found,
            renamed=_renamed(found),
        )

    @routes.post("/m/{model}/verdicts")
    def give(request: Request, model: str, form: Posted) -> Response:
        person = guards.require(request, "judge")
        said = _Said.of(form)
        before = ws.alarms.looked_at(model)
        given = ws.verdicts.give(
            said.ids, said.verdict, kind=said.kind, note=said.note, by=person.name
        )
        return pages.panel(
            request,
            "panel_given.html",
            heading="Learnt" if said.teaches else "Noted",
            model=model,
            given=given,
            undone=[],
            version=given.version,
            same_as=None,
            changed=_changed(before, ws.alarms.looked_at(model)),
            changed_alarms=True,
        )

    @routes.post("/m/{model}/undo")
    def undo(request: Request, model: str, form: Posted) -> Response:
        person = guards.require(request, "judge")
        before = ws.alarms.looked_at(model)
        numbers = _numbers(form, "verdict")
        version = ws.verdicts.undo(numbers, by=person.name)
        same = [v.id for v in ws.ledger.versions(model) if v.digest == version.digest]
        return pages.panel(
            request,
            "panel_given.html",
            heading="Undone",
            model=model,
            given=None,
            undone=[ws.verdicts.get(number) for number in numbers],
            version=version,
            same_as=min(same) if len(same) > 1 else None,
            changed=_changed(before, ws.alarms.looked_at(model)),
            changed_alarms=True,
        )

    @routes.post("/m/{model}/assign")
    def assign(request: Request, model: str, form: Posted) -> Response:
        person = guards.require(request, "judge")
        ids, to = _numbers(form, "id"), str(form.get("to", "")).strip()
        if not ids:
            raise UserError("Select the alarms to hand over: none is selected.")
        ws.alarms.assign(ids, to or None)
        ws.people.log(person.name, "assigned", rows=ids, to=to)
        told = f"{plural(len(ids), 'alarm')} {f'with {to}' if to else 'with nobody'}"
        return pages.panel(
            request,
            "panel_said.html",
            heading="Handed over",
            model=model,
            detail=told,
            changed_alarms=True,
        )

    @routes.post("/m/{model}/alarms/{number}/note")
    def annotate(request: Request, model: str, number: int, form: Posted) -> Response:
        person = guards.require(request, "judge")
        to = str(form.get("to", "")).strip()
        ws.alarms.annotate(number, str(form.get("note", "")).strip())
        ws.alarms.assign([number], to or None)
        ws.people.log(person.name, "annotated", rows=[number], to=to)
        return pages.panel(request, "panel_said.html", heading="Saved", model=model, detail="")

    @routes.get("/m/{model}/judge")
    def judge(request: Request, model: str) -> Response:
        offered: dict[str, list[Any]] = {}
        for one in ws.queue.offered(model):
            offered.setdefault(one.why, []).append(one.alarm)
        shown = [(why, ws.alarms.with_reasons(alarms)) for why, alarms in offered.items()]
        return pages.show(
            request,
            "judge.html",
            heading="Judge",
            model=model,
            offered=shown,
            missed=ws.queue.missed(model),
            enough=_ENOUGH,
            **judging_values(pages, model),
        )


def _fields(said: _Said) -> dict[str, Any]:
    return {name: getattr(said, name) for name in ("ids", "choice", "verdict", "kind", "note")}
