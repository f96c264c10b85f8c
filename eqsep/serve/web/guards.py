"""Who may come in: hosts, tokens and roles, forged requests, rates, sizes, a browser's session.

One layer around the whole application, so that no route can forget it: a route is open only if
it is named in `OPEN`.
"""

import asyncio
import hashlib
import hmac
import re
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Annotated
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import APIRouter, Form
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eqsep.serve.people import People, Person
from eqsep.serve.web.limits import API, Limits, TokenBuckets, answer, refused
from eqsep.serve.workspace import Workspace

COOKIE = "eqsep_token"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
OPEN = ("/health", "/ping", "/v2/health/", "/login", "/static/")  # without a token
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_MODEL_FILE = re.compile(r"/api/v1/models/[^/]+(/merge)?")
_SAFE = ("GET", "HEAD", "OPTIONS")
_FORM = b"application/x-www-form-urlencoded"
_MOST_FORM = 2**20  # bytes of a form


def person(request: Request) -> Person:
    """Who asks; a request without a token does not come so far."""
    found = request.scope.get("person")
    if found is None:
        raise HTTPException(401, "A token is needed.")
    return found


def require(request: Request, role: str) -> Person:
    """Who asks, if this role is among those that the person has."""
    asks = person(request)
    if not asks.may(role):
        raise HTTPException(403, f"This needs the role {role!r}: the token's is {asks.role!r}.")
    return asks


def csrf_token(request: Request) -> str:
    """What a page's own requests carry to show that they come from it."""
    return _csrf(request.cookies.get(COOKIE, ""))


def _csrf(token: str) -> str:
    return hmac.new(token.encode(), b"eqsep csrf", hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class _Asked:
    """What the guard looks at in a request."""

    path: str
    query: str
    method: str
    address: str
    headers: dict[bytes, bytes]

    @classmethod
    def of(cls, scope: Scope) -> "_Asked":
        client = scope.get("client") or ("unknown", 0)
        query = scope["query_string"].decode("latin-1")
        return cls(scope["path"], query, scope["method"], client[0], dict(scope["headers"]))

    def page(self) -> str:
        """The page that somebody looks at: it is asked for, or a script asks from it."""
        seen = self.headers.get(b"hx-current-url")
        if seen is None:
            path, query = quote(self.path), self.query
        else:
            path, query = urlsplit(seen.decode("latin-1"))[2:4]
        return f"{path}?{query}" if query else path

    def bearer(self) -> str | None:
        kind, _, token = self.headers.get(b"authorization", b"").partition(b" ")
        return token.strip().decode("latin-1") if kind.lower() == b"bearer" else None

    def cookie(self) -> str | None:
        raw = self.headers.get(b"cookie")
        if raw is None:
            return None
        try:
            found = SimpleCookie(raw.decode("latin-1")).get(COOKIE)
        except CookieError:
            return None
        return None if found is None else found.value


class Guard:
    """The layer around the application.

    `hosts` are the names by which the service may be called; None takes any. A page of another site
    that lets its own name point to this machine is refused by it.
    """

    def __init__(
        self, app: ASGIApp, *, people: People, limits: Limits, hosts: frozenset[str] | None
    ) -> None:
        self.app, self.people, self.limits, self.hosts = app, people, limits, hosts
        self.requests = TokenBuckets(rate=limits.requests, size=2 * limits.requests)
        self.strangers = TokenBuckets(rate=limits.strangers, size=2 * limits.strangers)
        self.attempts = TokenBuckets(rate=limits.attempts / 60, size=limits.attempts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no route has a web socket
            await send({"type": "websocket.close", "code": 1008})
            return

        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                said = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in _HEADERS if header[0] not in said),
                ]
            await send(message)

        asked = _Asked.of(scope)
        try:
            self._check_host(scope)
            receive = await self._let_in(scope, asked, receive)
            await self.app(scope, receive, send_guarded)
        except Exception as error:
            if scope.get("told") is error:  # by the application, in its last moment
                return
            told = _answer(error, asked)  # a fault of the software is logged by it
            if not begun:
                await told(scope, receive, send_guarded)

    def _check_host(self, scope: Scope) -> None:
        if self.hosts is None:
            return
        named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or _host(named[0]) not in self.hosts:
            raise refused(421, f"This service is not called {' or '.join(named) or 'nothing'}.")

    def _bounded(self, scope: Scope, asked: _Asked, receive: Receive) -> Receive:
        """The body of the request, refused before it is read where it says how long it is."""
        is_file = asked.method == "POST" and _MODEL_FILE.fullmatch(asked.path)
        found: Person | None = scope.get("person")
        may_be_long = is_file and found is not None and found.may("admin")
        most = self.limits.model if may_be_long else self.limits.body
        if asked.headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise refused(415, "Send the body as it is: compressed ones are not taken.")
        length = asked.headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > most:
            raise refused(413, f"Expected at most {most:,} bytes.", connection="close")
        return _bounded(receive, most, self.limits.seconds)

    async def _let_in(self, scope: Scope, asked: _Asked, receive: Receive) -> Receive:
        """Find out who asks, and whether so much may be asked; the body as it may be read."""
        scope["guard"] = self
        if asked.path.startswith(OPEN):
            self._wait(self.strangers, asked.address)
            return self._bounded(scope, asked, receive)
        bearer, cookie = asked.bearer(), asked.cookie()
        token = cookie if bearer is None else bearer
        found = None if token is None else await self.whose(token, asked.address)
        if found is None:
            self._wait(self.strangers, asked.address)
            told = "A token is needed: Authorization: Bearer TOKEN."
            raise refused(401, told, www_authenticate="Bearer")
        self._wait(self.requests, found.name)
        scope["person"] = found
        receive = self._bounded(scope, asked, receive)
        if bearer is None and asked.method not in _SAFE:
            receive = await _check_csrf(asked, cookie or "", receive)
        return receive

    async def whose(self, token: str, address: str) -> Person | None:
        """Whose token it is; refused where too many wrong ones came from the address."""
        found = self.people.known(token)
        if found is None:
            seconds = self.attempts.wait(address)
            if seconds:
                raise _later(seconds, "Too many wrong tokens came from this address.")
            found = await run_in_threadpool(self.people.check, token)
            if found is None:
                self.attempts.take(address)
        return found

    def _wait(self, buckets: TokenBuckets, key: str) -> None:
        seconds = buckets.take(key)
        if seconds:
            raise _later(seconds, "Too many requests.")


def _later(seconds: float, told: str) -> HTTPException:
    whole = max(1, int(seconds + 0.999))
    return refused(429, f"{told} Come again in {whole} s.", retry_after=str(whole))


def _host(named: str) -> str:
    """A host without its port, in small letters."""
    name, _, port = named.lower().rpartition(":")
    return name if name and port.isdigit() else named.lower()


def _answer(error: Exception, asked: _Asked) -> Response:
    """What is wrong; browsers without a token are sent to where they enter one."""
    told = answer(error, asked.path)
    if told.status_code != 401 or asked.path.startswith(API):
        return told
    there = f"/login?next={quote(asked.page(), safe='')}"
    gone = {"Set-Cookie": f"{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"}
    if b"hx-request" in asked.headers:
        return Response(status_code=401, headers=gone | {"HX-Redirect": there})
    if asked.method in _SAFE:
        return Response(status_code=303, headers=gone | {"Location": there})
    return told


def _bounded(receive: Receive, most: int, seconds: float) -> Receive:
    """The body of a request, refused once it is too long, or too slow to come."""
    size, until, whole = 0, time.monotonic() + seconds, False

    async def bounded() -> Message:
        nonlocal size, whole
        if whole:  # from now on it only says that the caller has gone
            return await receive()
        try:
            async with asyncio.timeout(max(until - time.monotonic(), 0.0)):
                message = await receive()
        except TimeoutError as error:
            raise refused(408, "The body of the request took too long.") from error
        size += len(message.get("body", b""))
        if size > most:
            raise refused(413, f"Expected at most {most:,} bytes.", connection="close")
        whole = not message.get("more_body", False)
        return message

    return bounded


async def _check_csrf(asked: _Asked, cookie: str, receive: Receive) -> Receive:
    """Refuse what a page of another site may have sent with this browser's cookie.

    The proof is a header, or a field of a form, which is read here and handed on.
    """
    given = asked.headers.get(b"x-csrf-token", b"").decode("latin-1")
    if not given and asked.headers.get(b"content-type", b"").startswith(_FORM):
        body = await _whole(receive)
        given = parse_qs(body.decode("utf-8", "replace")).get("csrf", [""])[0]
        receive = _again(body, receive)
    if not hmac.compare_digest(given.encode(), _csrf(cookie).encode()):
        raise refused(403, "The page is out of date, or not one of this service: load it again.")
    return receive


async def _whole(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size > _MOST_FORM:
            raise refused(413, f"Expected a form of at most {_MOST_FORM:,} bytes.")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read once more."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def session_routes(ws: Workspace) -> APIRouter:
    """Entering a token, and leaving."""
    routes = APIRouter(include_in_schema=False)

    @routes.post("/login")
    async def login(
        request: Request, token: Annotated[str, Form()], next: Annotated[str, Form()] = "/"
    ) -> Response:
        guard: Guard = request.scope["guard"]
        _check_origin(request)
        address = request.client.host if request.client else "unknown"
        found = await guard.whose(token.strip(), address)
        if found is None:
            await run_in_threadpool(ws.people.log, "nobody", "login refused", address=address)
            return RedirectResponse("/login?error=token", 303)
        await run_in_threadpool(ws.people.log, found.name, "login", address=address)
        answer = RedirectResponse(_local(next), 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            COOKIE, token.strip(), httponly=True, samesite="strict", secure=secure, path="/"
        )
        return answer

    @routes.post("/logout")
    async def logout(request: Request) -> Response:
        await run_in_threadpool(ws.people.log, person(request).name, "logout")
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer

    return routes


def _check_origin(request: Request) -> None:
    """Refuse a form of another site: it would let somebody work under a name that is not theirs."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise refused(403, "Enter the token on the page of this service.")


def _local(there: str) -> str:
    """A path of this service: no other site is gone to from here."""
    is_path = there.startswith("/") and not there.startswith(("//", "/\\"))
    return there if is_path and there.isprintable() else "/"
