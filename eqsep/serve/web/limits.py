"""How much a caller may ask for, and the answer when a request is refused."""

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from eqsep.errors import UserError
from eqsep.serve.store import Conflict, Missing, Unavailable
from eqsep.serve.texts import Invalid

_MOST_KEYS = 10_000  # callers that are remembered: the least recent are forgotten first
API = ("/api/", "/metrics", "/health", "/openapi.json")
_LOG = logging.getLogger("eqsep.serve")
_FIELDS = 5  # fields of a request that an error names


@dataclass(frozen=True)
class Limits:
    """Limits on requests.

    Attributes
    ----------
    body, short, model : int
        Bytes in a request with rows, in any other, and in a model file from an administrator.
    rows, columns, values : int
        Rows in a request, values in a row (including unknown columns), and values in all rows.
    text, decoded : int
        Characters in a value; bytes of an Arrow stream's values, counted at each occurrence.
    waiting : int
        Rows waiting to be scored: beyond this, callers have to retry.
    seconds, head : float
        Seconds to send and score a request, and to send its head, or the rest of a refused one.
    head_bytes, headers : int
        Total bytes and number of the headers of a request.
    connections, per_address : int
        Connections of a process, and from one address; behind a proxy, all share its address.
    requests, strangers : float
        Requests per second with one token, and from an address without one; bursts of twice that.
    attempts : float
        Wrong tokens per minute from one address.
    """

    body: int = 16 * 2**20
    short: int = 2**20
    model: int = 512 * 2**20
    rows: int = 10_000
    columns: int = 2_000
    values: int = 1_000_000
    text: int = 10_000
    decoded: int = 64 * 2**20
    waiting: int = 20_000
    seconds: float = 30.0
    head: float = 10.0
    head_bytes: int = 64 * 2**10
    headers: int = 100
    connections: int = 800
    per_address: int = 200
    requests: float = 5_000.0
    strangers: float = 50.0
    attempts: float = 10.0


class TokenBuckets:
    """A bucket of `size` tokens for each caller; `rate` tokens a second are added."""

    def __init__(
        self, *, rate: float, size: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._size, self._clock = rate, size, clock
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """Take a token if there is one, and return 0; otherwise the seconds until there is."""
        now = self._clock()
        tokens, since = self._held.get(key, (self._size, now))
        tokens = min(tokens + (now - since) * self._rate, self._size)
        if tokens < 1:
            return (1 - tokens) / self._rate
        self._held[key] = (tokens - 1, now)
        self._held.move_to_end(key)
        if len(self._held) > _MOST_KEYS:
            self._held.popitem(last=False)
        return 0.0


class TooMany(UserError):
    """A request is too large."""


_STATUS = {Missing: 404, Conflict: 409, TooMany: 413, Invalid: 422}
_RETRY = "5"  # seconds after which a database may be there again


def refused(status: int, message: str, **headers: str) -> HTTPException:
    """An error for a request; `retry_after` is the header `Retry-After`."""
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return HTTPException(status, message, named)


def answer(error: Exception, path: str) -> Response:
    """An error as a response: in JSON for programs, else text."""
    status, message, headers = problem(error)
    if not path.startswith(API):
        return Response(message, status, headers, media_type="text/plain")
    body = orjson.dumps({"error": message})
    return Response(body, status, headers, media_type="application/json")


def problem(error: Exception) -> tuple[int, str, dict[str, str]]:
    """The status, message and headers for an error; a bug is logged."""
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail), dict(error.headers or {})
    if isinstance(error, RequestValidationError):
        found = error.errors()[:_FIELDS]  # without the values, which may be secret
        return 422, "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in found), {}
    if isinstance(error, Unavailable):
        _LOG.error("%s", error)
        return 503, str(error), {"Retry-After": _RETRY}
    if isinstance(error, UserError):
        return next((s for t, s in _STATUS.items() if isinstance(error, t)), 400), str(error), {}
    number = secrets.token_hex(4)
    _LOG.error("fault %s", number, exc_info=error)
    return 500, f"Something went wrong: see the log for fault {number}.", {}
