"""The screen of a model: what it has learnt, its versions, and going back."""

from fastapi import APIRouter
from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from eqsep.detector.model import Model
from eqsep.errors import UserError
from eqsep.labels import NORMAL
from eqsep.serve.console.formats import plural, score, share
from eqsep.serve.console.pages import Pages, Posted, path_of
from eqsep.serve.log import ADD, FORGET, LEARN, MERGE, REVERT
from eqsep.serve.web import guards

_OPERATIONS = {
    ADD: "added",
    LEARN: "learnt",
    FORGET: "forgotten",
    MERGE: "merged with",
    REVERT: "back to",
}


def add_routes(routes: APIRouter, pages: Pages) -> None:
    """Versions of a model: looking at them, going back, a shadow, and the log done again."""
    ledger = pages.ws.ledger

    @routes.get("/m/{model}/model")
    def lessons(request: Request, model: str) -> Response:
        live = ledger.live(model)
        detector = ledger.detector(live.id)
        return pages.show(
            request,
            "model.html",
            heading="Model",
            model=model,
            live=live,
            shadow=ledger.shadow(model),
            versions=ledger.versions(model),
            purged=ledger.purged(model),
            facts=_facts(detector.model_),
            kinds=sorted(detector.kinds_),
            operations=_OPERATIONS,
        )

    @routes.get("/m/{model}/revert")
    def asked(request: Request, model: str) -> Response:
        guards.require(request, "admin")
        version = ledger.version(_version(request.query_params))
        reopened, again = pages.ws.verdicts.swayed(model, version.id)
        return pages.panel(
            request,
            "panel_revert.html",
            heading="Going back",
            model=model,
            version=version,
            reopened=reopened,
            again=again,
        )

    @routes.post("/m/{model}/revert")
    def revert(request: Request, model: str, form: Posted) -> Response:
        person = guards.require(request, "admin")
        pages.ws.verdicts.revert(model, _version(form), by=person.name)
        return RedirectResponse(f"{path_of(model)}/model", 303)

    @routes.post("/m/{model}/shadow")
    def shadow(request: Request, model: str, form: Posted) -> Response:
        person = guards.require(request, "admin")
        number = _version(form) if form.get("version") else None
        ledger.set_shadow(model, number)
        pages.ws.people.log(person.name, "shadow", model=model, version=number)
        return RedirectResponse(f"{path_of(model)}/model", 303)

    @routes.post("/m/{model}/replay")
    def replay(request: Request, model: str) -> Response:
        guards.require(request, "admin")
        return pages.panel(
            request,
            "panel_replay.html",
            heading="Replay",
            model=model,
            replay=ledger.replay(model),
        )


def _version(form: FormData | QueryParams) -> int:
    text = str(form.get("version", ""))
    if not text.isdecimal():
        raise UserError(f"Expected the number of a version, got {text!r}.")
    return int(text)


def _facts(model: Model) -> list[tuple[str, str]]:
    """What a model is, as words and values."""
    learnt = zip((NORMAL, *model.kinds), model.n_learnt.tolist(), strict=True)
    held_out = plural(len(model.calibration.scores), "normal row")
    return [
        ("Rows learnt", ", ".join(f"{round(weight, 2):,.12g} {kind}" for kind, weight in learnt)),
        ("Held out", f"{held_out} set the threshold"),
        ("Threshold", score(model.threshold)),
        (
            "Promise",
            f"{share(model.promise.false_alarm_rate)} of new normal rows raise an alarm",
        ),
        ("Landmarks", f"{len(model.plan.terms.landmarks):,}"),
    ]
