"""The inbox, its filters, the page of one alarm, and groups of alarms that look alike."""

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from eqsep.errors import UserError
from eqsep.labels import UNSEEN
from eqsep.serve.console.pages import Pages
from eqsep.serve.previews import fits_now
from eqsep.serve.records import Alarm, Filter
from eqsep.serve.store import Missing

PER_PAGE = 50
STATES = (
    ("open", "open"),
    ("unsure", "unsure"),
    ("judged", "judged"),
    ("cleared", "cleared: alarms no more"),
    ("quiet", "quiet: never were"),
)
ORDERS = (("at", "newest first"), ("score", "highest first"))
AGES = (("", "any"), ("3600", "last hour"), ("86400", "last day"), ("604800", "last week"))
_LATEST, _VERDICTS = 5, 50
_FIRST_KEY = 4  # of a kind; those before are verdicts
_OF_GROUP = 5  # alarms that are shown


@dataclass(frozen=True)
class Chosen:
    """What was chosen in the filters, as texts of the page's address."""

    kind: str = ""
    state: str = "open"
    min_score: str = ""
    age: str = ""
    entity: str = ""
    assignee: str = ""
    column: str = ""
    value: str = ""
    order: str = "at"

    @classmethod
    def of(cls, request: Request) -> "Chosen":
        """Those of a request; what it does not name is as at first."""
        asked = request.query_params
        return cls(
            **{name: asked[name].strip() for name in cls.__dataclass_fields__ if name in asked}
        )

    def filter(self) -> Filter:
        """The filter of the store."""
        age = _number("age", self.age)
        return Filter(
            kind=self.kind or None,
            state=_one_of(STATES, self.state),
            order=_one_of(ORDERS, self.order),
            min_score=_number("score", self.min_score),
            since=None if age is None else time.time() - age,
            entity=self.entity or None,
            assignee=self.assignee or None,
            column=self.column or None,
            value=self.value or None,
        )

    def query(self) -> str:
        """The filters for an address to which more is added; those as at first are left out."""
        chosen = {k: v for k, v in vars(self).items() if v != getattr(Chosen, k)}
        return urlencode(chosen) + "&" if chosen else ""


def _one_of(choices: tuple[tuple[str, str], ...], text: str) -> str:
    names = [name for name, _ in choices]
    if text not in names:
        raise UserError(f"Expected one of {', '.join(names)}, got {text!r}.")
    return text


def _number(name: str, text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise UserError(f"The filter {name} is a number, got {text!r}.") from None


@dataclass(frozen=True)
class _Page:
    """Alarms of one page, and where it is among the others."""

    alarms: list[Alarm]
    total: int
    number: int

    @property
    def pages(self) -> int:
        return max(1, math.ceil(self.total / PER_PAGE))


def _with(kinds: dict[str, int], chosen: str) -> dict[str, int]:
    """Kinds with their open alarms, and the chosen one even where it has none."""
    return kinds if not chosen or chosen in kinds else kinds | {chosen: 0}


def _columns(pages: Pages, model: str, chosen: str) -> list[str]:
    """The columns of a model, and the chosen one even where it is not among them."""
    ledger = pages.ws.ledger
    names = [*ledger.detector(ledger.live(model).id).plan_.table_columns]
    return names if not chosen or chosen in names else [*names, chosen]


def judging_values(pages: Pages, model: str) -> dict[str, Any]:
    """What a page with a form for verdicts needs."""
    ws = pages.ws
    return {
        "kinds": {kind: place + _FIRST_KEY for kind, place in ws.ledger.places(model).items()},
        "latest": ws.verdicts.together(model, limit=_LATEST),
    }


def add_routes(routes: APIRouter, pages: Pages) -> None:
    """The inbox, the page of an alarm, and groups."""
    ws = pages.ws

    @routes.get("/m/{model}/inbox")
    def inbox(request: Request, model: str, page: int = 1) -> Response:
        chosen = Chosen.of(request)
        number = max(page, 1)
        found = ws.alarms.inbox(
            model, chosen.filter(), limit=PER_PAGE, offset=PER_PAGE * (number - 1)
        )
        values = judging_values(pages, model)
        return pages.show(
            request,
            "inbox.html",
            heading="Inbox",
            model=model,
            page=_Page(ws.alarms.with_reasons(found.alarms), found.total, number),
            chosen=chosen,
            filtered=chosen != Chosen(),
            query=chosen.query(),
            newest=time.time(),
            kinds_open=_with(ws.alarms.kinds(model), chosen.kind),
            orders=ORDERS,
            states=STATES,
            ages=AGES,
            columns=_columns(pages, model, chosen.column),
            people=sorted(person.name for person in ws.people.all()),
            banner=ws.watching.status(model).banner,
            **values,
        )

    @routes.get("/m/{model}/inbox/fresh")
    def fresh(request: Request, model: str, after: float) -> Response:
        chosen = Chosen.of(request)
        newer = Filter(**{**vars(chosen.filter()), "since": after})
        n = ws.alarms.inbox(model, newer, limit=1).total
        return pages.panel(
            request, "panel_fresh.html", heading="Inbox", model=model, n=n, query=chosen.query()
        )

    @routes.get("/m/{model}/alarms/{number}")
    def alarm(request: Request, model: str, number: int) -> Response:
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
            model=model,
            alarm=found,
            reasons=reasons,
            most_added=max((abs(one["contribution"]) for one in reasons), default=0) or 1,
            told={one["column"] for one in reasons[:3]},
            normal_rows=ws.alarms.normal_rows(number),
            fits=fits_now(ws.ledger.detector(ws.ledger.live(model).id).model_, found),
            alike=ws.alarms.with_reasons(ws.alarms.alike(number)),
            history=ws.alarms.with_reasons(ws.alarms.of_entity(number)),
            verdicts=ws.verdicts.of_row(number),
            batch=[] if found.verdict is None else ws.verdicts.given_with(found.verdict),
            entity_name=ws.ledger.settings(model).get("entity") or "entity",
            **judging_values(pages, model),
        )

    @routes.get("/m/{model}/entity")
    def entity(request: Request, model: str, name: str) -> Response:
        return pages.show(
            request,
            "entity.html",
            heading="Entity",
            current="inbox",
            model=model,
            name=name,
            history=ws.alarms.with_reasons(ws.alarms.history(model, name)),
            entity_name=ws.ledger.settings(model).get("entity") or "entity",
            **judging_values(pages, model),
        )

    @routes.get("/m/{model}/groups")
    def groups(request: Request, model: str) -> Response:
        found = ws.alarms.groups(model)
        return pages.show(
            request,
            "groups.html",
            heading="Groups",
            model=model,
            groups=found,
            shown=_OF_GROUP,
            alone=ws.alarms.kinds(model).get(UNSEEN, 0) - sum(len(one.alarms) for one in found),
            **judging_values(pages, model),
        )

    @routes.get("/m/{model}/groups/{number}")
    def group(request: Request, model: str, number: int) -> Response:
        found = None
        with suppress(Missing):
            found = ws.alarms.group(model, number)
        return pages.show(
            request,
            "group.html",
            heading="Group",
            current="groups",
            model=model,
            number=number,
            group=found,
            **judging_values(pages, model),
        )
