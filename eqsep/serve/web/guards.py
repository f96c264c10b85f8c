"""Who may call: one layer around the whole application, so only routes in `OPEN` are open."""

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import APIRouter, Depends, Form
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eqsep.serve.people import People, Person, SignedIn
from eqsep.serve.web.limits import API, Limits, TokenBuckets, answer, refused
from eqsep.serve.workspace import Workspace

COOKIE = "eqsep_session"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
HEALTH = ("/health",)  # never limited: who asks acts on the answer
OPEN = (*HEALTH, "/login", "/static/")  # without a token
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
_WITH_ROWS = re.compile(r"/api/v1/models/[^/]+/(score|explain|learn)")
_SAFE = ("GET", "HEAD", "OPTIONS")
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 20_000


def person(request: Request) -> Person:
    """Who sent the request."""
    found = request.scope.get("person")
    if found is None:  # an open route
        raise HTTPException(401, "A token is required.")
    return found


def require(request: Request, role: str) -> Person:
    """Who sent the request, if the person has this role."""
    sender = person(request)
    if not sender.may(role):
        raise HTTPException(403, f"This needs the role {role!r}; the token has {sender.role!r}.")
    return sender


def _name(role: str) -> Callable[[Request], Awaitable[str]]:
    async def name(request: Request) -> str:
        return require(request, role).name

    return name


# Parameters of routes that need a role: the name of the person.
Viewer = Annotated[str, Depends(_name("view"))]
Judge = Annotated[str, Depends(_name("judge"))]
Admin = Annotated[str, Depends(_name("admin"))]


def csrf_token(request: Request) -> str:
    """A token in the requests of our pages, which pages of other sites cannot know."""
    session: SignedIn | None = request.scope.get("session")
    return "" if session is None else session.secret


def _address(asked: Request) -> str:
    return asked.client.host if asked.client else "unknown"


class Guard:
    """The layer around the application; `hosts` (or None for any) stop DNS rebinding."""

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
        if scope["type"] != "http":  # the service has no web sockets
            await send({"type": "websocket.close", "code": 1008})
            return

        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                present = {name for name, _ in message["headers"]}
                message["headers"] += [one for one in _HEADERS if one[0] not in present]
                if scope.get("renewed") is not None and b"set-cookie" not in present:
                    renewed = Response()
                    _set_cookie(renewed, asked, scope["renewed"])
                    message["headers"] += renewed.raw_headers[-1:]
            await send(message)

        asked = Request(scope)
        try:
            named = asked.headers.getlist("host")
            if self.hosts is not None and (len(named) != 1 or _host(named[0]) not in self.hosts):
                raise refused(421, f"Unknown Host header: {' and '.join(named) or 'none'}.")
            receive = await self._let_in(asked, receive)
            await self.app(scope, receive, send_guarded)
        except Exception as error:
            if scope.get("answered") is error:  # by the application already
                return
            response = _answer(error, asked)  # this logs a bug
            if not begun:
                await response(scope, receive, send_guarded)

    async def _let_in(self, asked: Request, receive: Receive) -> Receive:
        """Check rate, token, size and forgery, in this order; the body to be read again."""
        asked.scope["guard"] = self
        path = asked.scope["path"]
        if "\0" in path or b"%00" in asked.scope["query_string"]:
            raise refused(422, "A URL cannot contain the character U+0000.")
        if path.startswith(OPEN):
            if not path.startswith(HEALTH):
                _take(self.strangers, _address(asked))
            return _again(await self._read(asked, receive), receive)
        kind, _, bearer = asked.headers.get("authorization", "").partition(" ")
        is_bearer = kind.lower() == "bearer"
        if is_bearer:
            found = await self.whose(bearer.strip(), _address(asked))
        else:
            found = await self._signed_in(asked)
        if found is None:
            _take(self.strangers, _address(asked))
            message = "A token is required: Authorization: Bearer TOKEN."
            raise refused(401, message, www_authenticate="Bearer")
        _take(self.requests, found.name)
        asked.scope["person"] = found
        body = await self._read(asked, receive)
        if not is_bearer and asked.method not in _SAFE:
            _check_csrf(asked, body)
        return _again(body, receive)

    async def _read(self, asked: Request, receive: Receive) -> bytes:
        """The body of a request, refused if it is compressed, too long, or too slow to come."""
        most, path = min(self.limits.short, self.limits.body), asked.scope["path"]
        sender: Person | None = asked.scope.get("person")
        if asked.method == "POST" and _WITH_ROWS.fullmatch(path):
            most = self.limits.body
        elif asked.method == "POST" and _MODEL_FILE.fullmatch(path) and sender is not None:
            most = self.limits.model if sender.may("admin") else most
        if asked.headers.get("content-encoding", "identity").lower() != "identity":
            raise refused(415, "Send the body without compression.")
        length = asked.headers.get("content-length", "0")
        is_short = re.fullmatch("[0-9]{1,18}", length) is not None and int(length) <= most
        body, has_more = bytearray(), is_short
        try:
            async with asyncio.timeout(self.limits.seconds):
                while has_more and is_short:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    body += message.get("body", b"")
                    has_more, is_short = message.get("more_body", False), len(body) <= most
        except TimeoutError as error:
            raise refused(408, "The request body took too long to arrive.") from error
        if not is_short:
            raise refused(413, f"Expected at most {most:,} bytes.", connection="close")
        asked.scope["body"] = bytes(body)  # for those who need no stream
        return asked.scope["body"]

    async def whose(self, token: str, address: str) -> Person | None:
        """Whose token it is; only wrong ones are limited, so they lock out no right one."""
        found = self.people.known(token) or await run_in_threadpool(self.people.check, token)
        if found is None:
            _take(self.attempts, address, "Too many wrong tokens from this address.")
        return found

    async def _signed_in(self, asked: Request) -> Person | None:
        """Whose session it is; from time to time it gets another cookie."""
        cookie = asked.cookies.get(COOKIE, "")
        session = await run_in_threadpool(self.people.signed_in, cookie) if cookie else None
        if session is None:
            return None
        asked.scope["session"] = session
        if session.is_old:
            asked.scope["renewed"] = await run_in_threadpool(self.people.renew, cookie)
        return session.person


def _take(buckets: TokenBuckets, key: str, refusal: str = "Too many requests.") -> None:
    """Take a token of a caller, or refuse the request until there is one."""
    seconds = buckets.take(key)
    if seconds:
        whole = max(1, int(seconds + 0.999))
        raise refused(429, f"{refusal} Retry in {whole} s.", retry_after=str(whole))


def _host(named: str) -> str:
    """A host without its port, in small letters."""
    name, _, port = named.lower().rpartition(":")
    return name if name and port.isdigit() else named.lower()


def _answer(error: Exception, asked: Request) -> Response:
    """The response to an error; browsers without a token are sent to the login."""
    path, query = asked.scope["path"], asked.scope["query_string"].decode("latin-1")
    response = answer(error, path)
    if response.status_code != 401 or path.startswith(API):
        return response
    seen, path = asked.headers.get("hx-current-url"), quote(path)  # the page of the script
    if seen is not None:
        try:
            path, query = urlsplit(seen)[2:4]
        except ValueError:  # it is not an address
            path, query = "/", ""
    there = f"/login?next={quote(f'{path}?{query}' if query else path, safe='')}"
    if COOKIE in asked.cookies:
        there += "&error=session"  # it has ended, and the page says so
    gone = {"Set-Cookie": f"{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"}
    if "hx-request" in asked.headers:
        return Response(status_code=401, headers=gone | {"HX-Redirect": there})
    if asked.method in _SAFE:
        return Response(status_code=303, headers=gone | {"Location": there})
    return response


def _check_csrf(asked: Request, body: bytes) -> None:
    """Refuse a request that a page of another site may have sent with this browser's cookie."""
    given = asked.headers.get("x-csrf-token", "")
    if not given and asked.headers.get("content-type", "").startswith(_FORM):
        try:
            fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
        except ValueError as error:
            raise refused(413, f"Expected at most {_MOST_FIELDS:,} fields.") from error
        given = fields.get("csrf", [""])[0]
    own = csrf_token(asked)
    if not own or not hmac.compare_digest(given.encode(), own.encode()):
        raise refused(403, "The page is out of date or not from this service: reload it.")


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read again."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def session_routes(ws: Workspace) -> APIRouter:
    """Login and logout."""
    routes = APIRouter(include_in_schema=False)

    @routes.post("/login")
    async def login(
        request: Request, token: Annotated[str, Form()], next: Annotated[str, Form()] = "/"
    ) -> Response:
        guard: Guard = request.scope["guard"]
        origin, address = request.headers.get("origin"), _address(request)
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            # A form of another site could log somebody in under another name.
            raise refused(403, "Enter the token on this service's own page.")
        found = await guard.whose(token.strip(), address)
        if found is None:
            await run_in_threadpool(ws.people.log, "nobody", "login refused", address=address)
            return RedirectResponse("/login?error=token", 303)
        cookie = await run_in_threadpool(ws.people.sign_in, found, address=address)
        answer = RedirectResponse(_local(next), 303)
        _set_cookie(answer, request, cookie)
        return answer

    @routes.post("/logout")
    async def logout(request: Request) -> Response:
        session: SignedIn | None = request.scope.get("session")
        if session is not None:
            await run_in_threadpool(ws.people.sign_out, session.id, by=person(request).name)
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    return routes


def _set_cookie(answer: Response, asked: Request, cookie: str) -> None:
    secure = asked.url.scheme == "https"
    answer.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=secure)


def _local(there: str) -> str:
    """The path if it is one of this service, otherwise "/"."""
    is_path = there.startswith("/") and not there.startswith(("//", "/\\"))
    return there if is_path and there.isprintable() else "/"
