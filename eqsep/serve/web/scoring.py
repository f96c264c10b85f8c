"""The API's hot half: rows come in, scores and reasons go out."""

import re
from dataclasses import asdict
from typing import Any

import orjson
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from eqsep.detector.explainer import Explanation
from eqsep.serve.web.arrow import MEDIA_TYPE as ARROW
from eqsep.serve.web.arrow import answers_stream
from eqsep.serve.web.guards import require
from eqsep.serve.web.rows import CheckedRows, RowError, TooMany
from eqsep.serve.web.service import Service

JSON = "application/json"
_SCORE = re.compile(r"/api/v1/models/([^/]+)/score")
_KEEPS = {b"": True, b"keep=true": True, b"keep=false": False}
_MOST_EXPLAINED = 100  # rows of a request: reasons cost a hundred times what a score does
_ROW = {"type": "object", "additionalProperties": True, "description": "Values by column."}
_ROWS = {
    "oneOf": [
        {
            "type": "object",
            "required": ["rows"],
            "properties": {"rows": {"type": "array", "items": _ROW}},
        },
        _ROW,
    ]
}
_BYTES = {"schema": {"type": "string", "format": "binary"}}
ROWS_IN = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": _ROWS},
            "text/csv": {"schema": {"type": "string"}},
            ARROW: _BYTES,
        },
    }
}
_ERRORS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"row": {"type": "integer"}, "error": {"type": "string"}},
    },
}


def _answers_of(properties: dict[str, Any], **content: Any) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of an answer for each row."""
    answer = {"type": ["object", "null"], "properties": properties}
    told = {"model": {"type": "string"}, "answers": {"type": "array", "items": answer}}
    schema = {"type": "object", "properties": told | {"errors": _ERRORS}}
    return {
        200: {
            "description": "An answer for each row; null for a bad one, which is in `errors`.",
            "content": {JSON: {"schema": schema}} | content,
        },
        422: {"description": "All rows are bad.", "content": {JSON: {"schema": schema}}},
        503: {"description": "Too many rows wait: come again after Retry-After."},
    }


_NUMBER, _TEXT = {"type": "number"}, {"type": "string"}
_SCORED = _answers_of(
    {
        "score": _NUMBER,
        "p_value": _NUMBER,
        "alarm": {"type": "boolean"},
        "kind": _TEXT,
        "id": {"type": ["integer", "null"], "description": "Under which the row was kept."},
        "version": {"type": "integer"},
    },
    **{ARROW: _BYTES},
)
_REASON = {"column": _TEXT, "value": _TEXT, "normal_value": _TEXT, "contribution": _NUMBER}
_EXPLAINED = _answers_of(
    {
        "score": _NUMBER,
        "base": _NUMBER,
        "reasons": {"type": "array", "items": {"type": "object", "properties": _REASON}},
        "rest": _NUMBER,
        "nearest_normal": {"type": "object"},
        "nearest_kind": {"type": ["string", "null"]},
        "likeness": _NUMBER,
    }
)


def router(service: Service) -> APIRouter:
    """Scores and reasons."""
    routes = APIRouter(tags=["scoring"])

    @routes.post("/models/{name}/score", openapi_extra=ROWS_IN, responses=_SCORED)
    async def score(name: str, request: Request, keep: bool = True) -> Response:
        """Score rows. Alarms are kept for the inbox, unless `keep` is false: then nothing is."""
        return await _scored(service, name, request, keep=keep)

    @routes.post("/models/{name}/explain", openapi_extra=ROWS_IN, responses=_EXPLAINED)
    async def explain(name: str, request: Request, top: int = Query(5, ge=1, le=100)) -> Response:
        """Say why rows have their scores: the columns that drive them."""
        require(request, "view")
        checked = await service.rows(request, name)
        answers = await run_in_threadpool(_explained, service, name, checked, top)
        return _json(name, answers, checked.errors, _status(answers))

    return routes


def direct(service: Service, otherwise: ASGIApp) -> ASGIApp:
    """Requests for scores straight to what answers them; all others to the routes.

    Nearly all requests are for scores, and finding the route costs more than the score does.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        keep = _KEEPS.get(scope.get("query_string", b""))
        found = _SCORE.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is None or keep is None or scope["method"] != "POST":
            await otherwise(scope, receive, send)
            return
        answer = await _scored(service, found[1], Request(scope, receive), keep=keep)
        await answer(scope, receive, send)

    return app


async def _scored(service: Service, name: str, request: Request, *, keep: bool) -> Response:
    require(request, "judge" if keep else "view")
    checked = await service.rows(request, name)
    answers, errors = await service.answered(name, checked, keep=keep)
    status = _status(answers)
    if ARROW in request.headers.get("accept", "") and status == 200:
        told = {error.row: error.error for error in errors}
        return Response(answers_stream(answers, told), media_type=ARROW)
    return _json(name, answers, errors, status)


def _explained(service: Service, name: str, checked: CheckedRows, top: int) -> list[Any]:
    if checked.n_rows > _MOST_EXPLAINED:
        raise TooMany(f"Expected at most {_MOST_EXPLAINED} rows to explain, got {checked.n_rows}.")
    if not checked.rows:
        return [None] * checked.n_rows
    found = checked.spread(service.ws.intake.explain(name, checked.rows, top=top))
    for place, one in enumerate(found):
        if isinstance(one, str):
            checked.errors.append(RowError(place, one))
    return [asdict(one) if isinstance(one, Explanation) else None for one in found]


def _status(answers: list[Any]) -> int:
    return 422 if all(answer is None for answer in answers) else 200


def _json(name: str, answers: list[Any], errors: list[RowError], status: int) -> Response:
    body: dict[str, Any] = {"model": name, "answers": answers, "errors": errors}
    if status != 200:
        body["error"] = f"None of the rows can be taken: {errors[0].error}."
    return Response(orjson.dumps(body), status, media_type=JSON)
