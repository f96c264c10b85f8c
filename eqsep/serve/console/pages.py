"""Pages from templates, with values as people read them, and the files that browsers fetch."""

import hashlib
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Depends
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from eqsep.detector.namer import kind_text
from eqsep.errors import UserError
from eqsep.labels import NORMAL, OR, UNSEEN
from eqsep.serve.alarms import DOUBTED, MISSING, Alarm, first_name
from eqsep.serve.store import Missing
from eqsep.serve.texts import Invalid, number
from eqsep.serve.verdicts import KindFit
from eqsep.serve.web import guards
from eqsep.serve.workspace import Workspace

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OF_MODEL = ("inbox", "groups", "judge", "verdicts", "model", "watch")
Values = dict[str, Any]  # of a template
Add = Callable[[Callable[..., Values]], None]
Read = TypeVar("Read", bound=BaseModel)
_HUES = 8
_MIN_ROWS_OF_KIND = 4  # rows of a kind; with fewer, no p-value is below 0.2
_LABELS = {  # of fields that a form names otherwise
    "age": "Age",
    "at": "Order",
    "days": "Days",
    "events": "Notify about",
    "high": "To",
    "hours": "Hours between e-mails",
    "low": "From",
    "min_score": "Score at least",
    "note": "The note",
    "number": "The number in the address",
    "page": "The page",
    "url": "Webhook URL",
}
_RULES = {  # by the type of an error
    "float_parsing": "must be a number",
    "int_parsing": "must be a whole number",
    "finite_number": "must be a number",
    "missing": "is missing",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "string_too_long": "must have at most {max_length:,} characters",
    "string_too_short": "is empty",
}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def hue(kind: str) -> str:
    """The CSS class for the colour of a kind, always the same for the same name."""
    if kind in (UNSEEN, NORMAL):
        return kind
    return f"kind-{hashlib.sha256(kind.encode()).digest()[0] % _HUES}"


def fitting(fit: KindFit, p_value: float | None) -> str:
    """How well a row fits a kind, in words."""
    if p_value is None:
        return "unknown"
    if fit.n_rows < _MIN_ROWS_OF_KIND:
        return "too few rows to tell"
    if p_value <= 1 / (min(fit.n_rows, fit.n_needed) + 1) + 1e-9:
        return "unlike its rows"
    return "like most of its rows" if p_value >= 0.5 else "like a few of its rows"


def ago(at: float) -> str:
    """How long ago a time was, in the largest unit that it fills."""
    seconds = time.time() - at
    found = (f"{int(seconds // size)} {unit} ago" for size, unit in _UNITS if seconds >= size)
    return next(found, "now")


def lasting(seconds: float) -> str:
    """A length of time, in the largest unit that it fills."""
    size, unit = next((one for one in _UNITS if seconds >= one[0]), _UNITS[-1])
    n = seconds / size
    return f"{f'{n:.0f}' if n >= 10 else f'{n:.1f}'.removesuffix('.0')} {unit}"


def _utc(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def clock(at: float, *, seconds: bool = False) -> str:
    """A time of day, with the date where it is another day."""
    is_today = _utc(at).date() == _utc(time.time()).date()
    form = ("" if is_today else "%Y-%m-%d ") + ("%H:%M:%S" if seconds else "%H:%M")
    return f"{_utc(at):{form}} UTC"


def score(value: float) -> str:
    """A score, to three places."""
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.3g}"


def share(value: float) -> str:
    """A share as a percentage."""
    return f"{100 * value:.3g}%"


def percent(probability: float) -> str:
    """A probability, rounded down: 99% for a name that is almost certain."""
    return f"{min(math.floor(100 * probability + 1e-9), 99)}%"


def certainty(alarm: Alarm) -> str:
    """How probable the name of an alarm is, in words; nothing where it cannot be otherwise."""
    name, probability = first_name(alarm.now.kind), alarm.now.kind_probability
    if probability is None or probability == 1 or name == UNSEEN:
        return ""
    likely = f"{percent(probability)} likely to be {kind_text(name)}"
    return f"{likely}, if it is of a kind that the model has seen"


def shown(value: Any) -> str:
    """A value of a row: numbers without needless digits, and "missing"."""
    if value is None or value != value:
        return MISSING
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def plural(n: int, word: str) -> str:
    """A count with its noun."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


_PLAIN = (ago, certainty, clock, first_name, fitting, hue, kind_text, lasting, percent, plural)
FILTERS = {f.__name__: f for f in _PLAIN} | {
    "in_query": lambda v: quote(repr(v) if isinstance(v, float) and v == v else shown(v), safe=""),
    "iso": lambda at: _utc(at).isoformat(timespec="seconds"),
    "moment": lambda at: f"{_utc(at):%Y-%m-%d %H:%M:%S} UTC",
    "other_names": lambda kind: (
        "or " + ", ".join(map(kind_text, kind.split(OR)[1:])) if OR in kind else ""
    ),
    "score": score,
    "share": share,
    "shown": shown,
    "signed": lambda value: f"{value:+.3f}".replace("-", "−"),
}


class Assets:
    """The files that browsers fetch, read once: no other file can be asked for."""

    def __init__(self) -> None:
        folder = Path(__file__).parent / "static"
        found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.*"))}
        types = {name: _TYPES.get(path.suffix) for name, path in found.items()}
        self.files = {n: (found[n].read_bytes(), kind) for n, kind in types.items() if kind}

    def address(self, name: str) -> str:
        """The address of a file, with a hash of its content."""
        return f"/static/{name}?v={hashlib.sha256(self.files[name][0]).hexdigest()[:12]}"

    def answer(self, name: str) -> Response:
        """A file as a response; browsers keep it, as a changed one has another address."""
        if name not in self.files:
            raise Missing(f"File {name!r} does not exist.")
        content, media_type = self.files[name]
        kept = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(content, media_type=media_type, headers=kept)


async def _posted(request: Request) -> FormData:
    form = await request.form()
    if any("\0" in text for _, text in form.multi_items() if isinstance(text, str)):
        raise Invalid("Text cannot contain the character U+0000.")
    return form


Posted = Annotated[FormData, Depends(_posted)]  # the fields of a form


def fields(form: FormData, *names: str) -> list[str]:
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


def sentences(error: RequestValidationError) -> str:
    """What is wrong with the fields of a form, by their labels."""
    return " ".join(dict.fromkeys(_sentence(one) for one in error.errors()))


def _sentence(wrong: Any) -> str:
    name = next((str(one) for one in reversed(wrong["loc"]) if isinstance(one, str)), "")
    label = _LABELS.get(name, name.replace("_", " ").capitalize())
    rule = _RULES.get(wrong["type"])
    if rule is None:
        return f"{label}: {wrong['msg']}."
    return f"{label} {rule.format(**wrong.get('ctx', {}))}."


def go(model: str, screen: str) -> Response:
    """Lead the browser to a screen of a model."""
    return RedirectResponse(f"{path_of(model)}/{screen}", 303)


@dataclass(frozen=True)
class Refused:
    """A form that was refused, to be shown again as it was filled in."""

    form: str = ""  # the last part of its path
    problem: str = ""
    filled: FormData = field(default_factory=FormData)

    def of(self, form: str) -> FormData:
        """What was filled in, if this is the form."""
        return self.filled if form == self.form else FormData()


class Pages:
    """Makes pages from templates, for one workspace."""

    def __init__(self, ws: Workspace) -> None:
        self.ws, self.assets = ws, Assets()
        self.routes = APIRouter(include_in_schema=False)
        # By the path of a form: what shows it again, with `refused`, if it was filled in wrongly.
        self.forms: dict[str, Callable[..., Response]] = {}
        self._environment = Environment(
            loader=PackageLoader("eqsep.serve.console", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= FILTERS
        self._environment.globals |= {"static": self.assets.address, "doubted": DOUBTED}
        self._environment.globals["is_stored"] = ws.exemptions.is_stored
        self._environment.globals["m"] = self._environment.get_template("macros.html").module

    def route(self, path: str, show: Callable[..., Response], method: str = "GET") -> Add:
        """Answer at a path by `show`, with the values that a function returns."""

        def add(values: Callable[..., Values]) -> None:
            @self.routes.api_route(path, methods=[method])
            def shown(request: Request, found: Annotated[Values, Depends(values)]) -> Response:
                return show(request, **found)

        return add

    def form(self, path: str, show: Callable[..., Response]) -> Add:
        """Answer a form by `show`, also if it was filled in wrongly."""
        self.forms[path] = show
        return self.route(path, show, "POST")

    def screen(self, path: str, template: str, **fixed: Any) -> Add:
        """Show a page at a path."""
        return self.route(path, partial(self.show, template=template, **fixed))

    def part(self, path: str, template: str, method: str = "POST", **fixed: Any) -> Add:
        """Answer a form with a part of a page."""
        return self.route(path, partial(self.panel, template=template, **fixed), method)

    def bare(self, template: str, **values: Any) -> HTMLResponse:
        """A page without the sidebar."""
        return HTMLResponse(self._rendered(template, values))

    def _rendered(self, template: str, values: Values) -> str:
        return self._environment.get_template(template).render(values)

    def show(self, request: Request, template: str, *, heading: str, **values: Any) -> HTMLResponse:
        """A page about the `model` that is given, or that its path names."""
        model = values.pop("model", request.path_params.get("model"))
        names, status = self.ws.ledger.names(), values.pop("status", 200)
        known = self._known(request, model) | {"models": names, "heading": heading}
        known["screens"] = _screens(model or next(iter(names), None))
        known["current"] = heading.lower()
        return HTMLResponse(self._rendered(template, known | values), status)

    def panel(self, request: Request, template: str, **values: Any) -> HTMLResponse:
        """A part of a page if a script asks for it, otherwise a page of its own."""
        changed, status = values.pop("changed_alarms", False), values.pop("status", 200)
        if "hx-request" not in request.headers:
            return self.show(request, "panel_page.html", panel=template, status=status, **values)
        known = self._known(request, request.path_params["model"])
        headers = {"HX-Trigger-After-Swap": "alarms-changed"} if changed else {}
        if "refused" in values:  # it takes the place of the form
            headers |= {"HX-Retarget": "this", "HX-Reswap": "outerHTML"}
        return HTMLResponse(self._rendered(template, known | values), status, headers)

    def _known(self, request: Request, model: str | None) -> Values:
        person, query = guards.person(request), request.url.query
        known = {"person": person, "csrf": guards.csrf_token(request), "model": model}
        known |= {"may_judge": person.may("judge"), "may_admin": person.may("admin")}
        known["refused"] = Refused()
        here = str(request.url.path) + (f"?{query}" if query else "")
        return known | {"here": here, "path": "" if model is None else path_of(model)}

    def problem(self, request: Request, problem: str, status: int) -> Response:
        """An error: at its form if it has one, else as a page or as the part that was asked for."""
        path = getattr(request.scope.get("route"), "path", "")
        if status == 422 and path in self.forms:
            body = request.scope.get("body", b"").decode(errors="replace")
            filled = FormData(parse_qsl(body, keep_blank_values=True))
            refused = Refused(path.rpartition("/")[2], problem, filled)
            with suppress(UserError):  # there may be no such model
                return self.forms[path](request, refused=refused, status=status)
        if "hx-request" in request.headers:
            values: Values = {"problem": problem, "again": status == 409}  # it is out of date
            return HTMLResponse(self._rendered("panel_problem.html", values), status)
        values = {"problem": problem, "again": False, "status": status, "model": None}
        return self.show(request, "problem.html", heading="Error", **values)


def path_of(model: str) -> str:
    """The path of a model's screens."""
    return f"/m/{quote(model, safe='')}"


def _screens(model: str | None) -> list[tuple[str, str]]:
    """The entries of the sidebar: names and paths."""
    own = [] if model is None else [(name, f"{path_of(model)}/{name}") for name in _OF_MODEL]
    of_model = "" if model is None else f"?model={quote(model, safe='')}"
    return [*own, ("settings", f"/settings{of_model}")]
