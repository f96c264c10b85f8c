"""The server: the application on a socket, in one process or several that share a store."""

import asyncio
import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from eqsep.errors import UserError, visible
from eqsep.serve.web.app import create_app
from eqsep.serve.web.guards import LOOPBACK
from eqsep.serve.web.limits import Limits
from eqsep.serve.workspace import Workspace

_ASKED = "EQSEP_SERVE"  # what to serve, for the processes of several workers
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_STARTED = 30.0  # seconds for a server to start
_CLOSES = b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large" + _CLOSES
_REQUEST_TIMEOUT = b"HTTP/1.1 408 Request Timeout" + _CLOSES


@dataclass(frozen=True)
class Serving:
    """What to serve, and where."""

    database: str  # the URL of the store
    host: str = "127.0.0.1"
    port: int = 8000  # 0 for any free one
    workers: int = 1  # processes
    keep_quiet: float = 0.05  # the share of rows without an alarm that is stored
    names: tuple[str, ...] = ()  # accepted Host headers; none for any, or for those of loopback

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in _LOOPBACK

    def workspace(self) -> Workspace:
        """The workspace."""
        return Workspace(self.database, keep_quiet=self.keep_quiet, workers=self.workers)

    def application(self, ws: Workspace) -> FastAPI:
        """The ASGI application."""
        sys.setswitchinterval(0.001)  # seconds: what is learnt holds up rows no longer
        names = frozenset(self.names)
        return create_app(ws, hosts=LOOPBACK | names if self.is_local else names or None)

    def bound(self) -> socket.socket:
        """A socket bound to host and port."""
        sock = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((self.host, self.port))
        except OSError as error:
            sock.close()
            raise UserError(
                f"Cannot listen on {self.host}:{self.port}: {error.strerror}. Pass another port, "
                f"or 0 for any free one."
            ) from error
        sock.set_inheritable(True)
        return sock


def serve(asked: Serving, sock: socket.socket) -> None:
    """Serve until the process is asked to end; pending requests are answered first."""
    if asked.workers == 1:
        uvicorn.Server(_config(asked.application(asked.workspace()))).run(sockets=[sock])
        return
    os.environ[_ASKED] = json.dumps(asdict(asked))
    config = _config(f"{__name__}:application_asked_for", factory=True, workers=asked.workers)
    Multiprocess(config, sockets=[sock]).run()


def application_asked_for() -> FastAPI:
    """The application of one of several worker processes."""
    settings = json.loads(os.environ[_ASKED])
    asked = Serving(**settings | {"names": tuple(settings["names"])})
    return asked.application(asked.workspace())


@contextmanager
def running(ws: Workspace, *, limits: Limits | None = None) -> Iterator[str]:
    """Run a service in a thread of this process, and yield its address."""
    sock = Serving("", port=0).bound()
    server = uvicorn.Server(_config(create_app(ws, limits=limits), limits=limits))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + _STARTED
        while not server.started and thread.is_alive() and time.monotonic() < until:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        sock.close()


class Connection(HttpToolsProtocol):
    """A connection of uvicorn's, within limits; of too many, the one that waits longest closes."""

    def __init__(self, *args: Any, limits: Limits, per_address: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.limits, self.per_address = limits, per_address
        self.waits_since: float | None = None  # for the head of a request
        self.in_head, self.head_bytes = False, 0
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, and close others that wait if there are too many."""
        super().connection_made(transport)
        self._wait()
        self._look()
        found = [one for one in self.connections if isinstance(one, Connection)]
        everybody = [one for one in found if not one.transport.is_closing()]
        alike = [one for one in everybody if one.address == self.address]
        too_many = everybody if len(everybody) > self.limits.connections else []
        too_many = alike if len(alike) > self.per_address else too_many
        if too_many:  # the new one waits, too
            waiting = [one for one in too_many if one.waits_since is not None]
            min(waiting, key=lambda one: one.waits_since or 0.0).transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what comes before a head is complete."""
        was_in_head = self.in_head
        super().data_received(data)
        if was_in_head and self.in_head:  # all of it is part of one head
            self.head_bytes += len(data)
            self._check_head()

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of the head, from its first byte on."""
        super().on_message_begin()
        self.in_head = True
        self._wait()

    def on_headers_complete(self) -> None:
        """Let the request in, unless its head is too large."""
        fields = sum(len(name) + len(value) for name, value in self.headers)
        self.head_bytes = max(self.head_bytes, len(self.url) + fields)
        self._check_head()
        self.in_head = False
        if not self.transport.is_closing():
            self.waits_since = None
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle is not None:  # it was let in
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.cycle is not None:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or a while for the rest of one that was refused."""
        has_next = bool(self.pipeline)
        super().on_response_complete()
        if not self.transport.is_closing() and not has_next:
            self._wait()

    @property
    def address(self) -> str:
        """The address of the other end."""
        return self.client[0] if self.client else ""

    def _wait(self) -> None:
        self.waits_since, self.head_bytes = self.loop.time(), 0

    def _look(self) -> None:
        """Close if it has waited too long; look again when it may have. One timer is enough."""
        waited = 0.0 if self.waits_since is None else self.loop.time() - self.waits_since
        if waited >= self.limits.head:
            self._refuse(_REQUEST_TIMEOUT)
        else:
            self.timer = self.loop.call_later(self.limits.head - waited, self._look)

    def _check_head(self) -> None:
        if self.head_bytes > self.limits.head_bytes or len(self.headers) > self.limits.headers:
            self._refuse(_TOO_LARGE)

    def _refuse(self, answer: bytes) -> None:
        """Close, with an answer if none was given to this request or is under way."""
        if not self.transport.is_closing():
            if self.in_head and (self.cycle is None or self.cycle.response_complete):
                self.transport.write(answer)
            self.transport.close()


class _OneLine(logging.Formatter):
    """A log in which requests can forge neither lines nor terminal commands."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(super().formatMessage(record)).replace("\n", "\\n")

    def formatException(self, info: Any) -> str:
        return visible(super().formatException(info))


def _config(app: Any, *, limits: Limits | None = None, **options: Any) -> uvicorn.Config:
    limits = limits or Limits()
    log: dict[str, Any] = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"()": _OneLine, "fmt": "%(asctime)s %(levelname)s %(message)s"}},
        "handlers": {"err": {"class": "logging.StreamHandler", "formatter": "plain"}},
        "loggers": {
            name: {"handlers": ["err"], "level": "WARNING", "propagate": False}
            for name in ("uvicorn", "eqsep.serve")
        },
    }
    trusted = os.environ.get("FORWARDED_ALLOW_IPS")  # of a proxy in front
    per_address = limits.connections if trusted else limits.per_address
    protocol: Any = partial(Connection, limits=limits, per_address=per_address)
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        timeout_keep_alive=5,  # seconds, fewer than a head may take
        access_log=False,
        log_config=log,
        proxy_headers=bool(trusted),
        forwarded_allow_ips=trusted,
        server_header=False,
        timeout_graceful_shutdown=20,
        timeout_worker_healthcheck=60,  # seconds; a process imports much before it answers
        **options,
    )
