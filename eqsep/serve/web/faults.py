"""What is said when something goes wrong, in the form that the caller expects."""

import logging
import secrets
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from eqsep.errors import UserError
from eqsep.serve.store import Conflict, Missing
from eqsep.serve.web.rows import TooMany

API = ("/api/", "/v2", "/invocations", "/metrics", "/health", "/ping", "/version", "/openapi.json")
_LOG = logging.getLogger("eqsep.serve")
_STATUS = {Missing: 404, Conflict: 409, TooMany: 413}
_MOST = 5  # fields that are named


def refused(status: int, told: str, **headers: str) -> HTTPException:
    """The error by which a request is refused; `retry_after` is the header `Retry-After`."""
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return HTTPException(status, told, named)


def answer(error: Exception, path: str) -> Response:
    """In JSON for programs, as MLflow's server writes it where that was asked; else as text."""
    status, told, headers = _what(error)
    if not path.startswith(API):
        return Response(told, status, headers, media_type="text/plain")
    body: dict[str, Any] = {"error": told}
    if path == "/invocations":
        code = "INTERNAL_ERROR" if status >= 500 else "BAD_REQUEST"
        body = {"error_code": code, "message": told}
    return Response(orjson.dumps(body), status, headers, media_type="application/json")


def _what(error: Exception) -> tuple[int, str, dict[str, str]]:
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail), dict(error.headers or {})
    if isinstance(error, RequestValidationError):
        return 422, _invalid(error), {}
    if isinstance(error, UserError):
        return next((s for t, s in _STATUS.items() if isinstance(error, t)), 400), str(error), {}
    number = secrets.token_hex(4)
    _LOG.error("fault %s", number, exc_info=error)
    return 500, f"Something went wrong here: the log has it under {number}.", {}


def _invalid(error: RequestValidationError) -> str:
    """What is wrong with the fields of a request, without what they hold."""
    told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:_MOST]]
    return "; ".join(told)
