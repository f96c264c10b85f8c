"""Connections before there is a request: how many, how long, and how much each may send.

A guard sees a request once its head is complete; what never completes one is stopped here.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from eqsep.serve.web.limits import Limits

_CLOSES = b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large" + _CLOSES
_LATE = b"HTTP/1.1 408 Request Timeout" + _CLOSES


class Connection(HttpToolsProtocol):
    """A connection of uvicorn's, within limits.

    Where there are too many, the one closes that has waited longest for its next request, so those
    that send nothing lock out nobody.
    """

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
        everybody = self._all()
        alike = [one for one in everybody if one.address == self.address]
        if len(alike) > self.per_address:
            _close_longest(alike)
        elif len(everybody) > self.limits.connections:
            _close_longest(everybody)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
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
        if len(self.headers) > self.limits.headers:
            self._refuse(_TOO_LARGE)
        self._check_head()
        self.in_head = False
        if not self.transport.is_closing():
            self.waits_since = None
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body of a request that was let in."""
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request that was let in."""
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

    def _all(self) -> "list[Connection]":
        """All connections of this server that are open, including this one."""
        found = [one for one in self.connections if isinstance(one, Connection)]
        return [one for one in found if not one.transport.is_closing()]

    def _wait(self) -> None:
        """Wait for the head of a request, but not for long."""
        self.waits_since, self.head_bytes = self.loop.time(), 0

    def _look(self) -> None:
        """Close if it has waited too long; look again when it may have. One timer is enough."""
        waited = 0.0 if self.waits_since is None else self.loop.time() - self.waits_since
        if waited >= self.limits.head:
            self._refuse(_LATE)
        else:
            self.timer = self.loop.call_later(self.limits.head - waited, self._look)

    def _check_head(self) -> None:
        if self.head_bytes > self.limits.head_bytes:
            self._refuse(_TOO_LARGE)

    def _refuse(self, answer: bytes) -> None:
        """Close, with an answer if none was given to this request or is under way."""
        if not self.transport.is_closing():
            if self.in_head and (self.cycle is None or self.cycle.response_complete):
                self.transport.write(answer)
            self.transport.close()


def _close_longest(connections: list[Connection]) -> None:
    """Close the connection that has waited longest for a request; the new one if none does."""
    waiting = [one for one in connections if one.waits_since is not None]
    min(waiting, key=lambda one: one.waits_since or 0.0).transport.close()
