"""Connections that send no request, or never end one, harm nobody else."""

import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from served import small_detector

from eqsep.serve.web.limits import Limits
from eqsep.serve.web.server import running
from eqsep.serve.workspace import Workspace

LIMITS = Limits(head=1.5, head_bytes=4_000, headers=20, per_address=40, connections=60, seconds=0.6)


@pytest.fixture(scope="module")
def service():
    ws = Workspace("sqlite://")
    ws.ledger.add("machines", small_detector(), by="test")
    token = ws.people.issue("judge", "judge", by="test")
    with running(ws, limits=LIMITS) as url:
        yield url, token


@pytest.fixture
def connect(service):
    parts = urlsplit(service[0])
    with ExitStack() as stack:

        def connected(*sent):
            sock = stack.enter_context(socket.create_connection((parts.hostname, parts.port), 10))
            for data in sent:
                sock.sendall(data)
            return sock

        yield connected


def said(sock):
    """All that comes until the connection ends."""
    found = b""
    try:
        while data := sock.recv(2**16):
            found += data
    except ConnectionResetError:  # closed while it was still sending
        pass
    return found


def head(*lines):
    return b"\r\n".join([b"GET /health/live HTTP/1.1", b"Host: 127.0.0.1", *lines])


def drip(sock, data, *, times=600):
    """Whether the other end closes while a little is sent again and again."""
    try:
        for _ in range(times):
            sock.sendall(data)
            time.sleep(0.05)
    except (BrokenPipeError, ConnectionResetError):
        return True
    return False


def is_closed(sock):
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False


def is_alive(url):
    return urlopen(f"{url}/health/live", timeout=5).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        head(b"A: b"),
        *(pytest.param(sent, marks=pytest.mark.extra) for sent in (b"\r\n", b"GET /", b"GET")),
    ],
)
def test_an_unfinished_head_is_not_waited_for(connect, sent):
    answer = said(connect(sent))
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
    assert bool(answer) == sent.startswith(b"GET")


@pytest.mark.parametrize(
    "data",
    [b"X-A: b\r\n", *(pytest.param(data, marks=pytest.mark.extra) for data in (b"\r\n", b"x"))],
)
def test_a_head_that_drips_is_not_waited_for(connect, data):
    first = b"" if data == b"\r\n" else head(b"")
    assert drip(connect(first), data)


def test_a_body_that_drips_is_not_waited_for(service, connect):
    """With a token and without one."""
    for line in (b"", b"Authorization: Bearer " + service[1].encode() + b"\r\n"):
        start = b"POST /api/v1/models/machines/score HTTP/1.1\r\nHost: 127.0.0.1\r\n" + line
        assert drip(connect(start + b"Content-Length: 1000000\r\n\r\n"), b" ")


LARGE = {
    "endless URL": (b"GET /" + b"a" * 5_000, b"a" * 5_000),
    "long URL": (b"GET /" + b"a" * 5_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",),
    "endless header": (head(b"A: b"), b"b" * 5_000),
    "long header": (head(b"A: " + b"b" * 5_000, b"", b""),),
    "many headers": (head(*[b"A: b"] * 21, b"", b""),),
    "long name": (head(b"A" * 5_000 + b": b", b"", b""),),
}


@pytest.mark.parametrize("sent", LARGE.values(), ids=LARGE)
def test_a_large_head_is_refused(connect, sent):
    sock = connect(sent[0])
    time.sleep(0.05)
    for data in sent[1:]:
        sock.sendall(data)
    assert said(sock).startswith(b"HTTP/1.1 431 ")


def test_a_head_within_limits_is_taken_byte_by_byte(connect):
    sock = connect()
    for byte in head(b"A: " + b"b" * 100, b"Connection: close", b"", b""):
        sock.sendall(bytes([byte]))
    assert b'{"status":"live"}' in said(sock)


def test_several_requests_at_once_are_answered_on_one_connection(connect):
    many = head(b"", b"") * 30
    answer = said(connect(many + head(b"Connection: close", b"", b"")))
    assert answer.count(b'{"status":"live"}') == 31


def test_connections_that_send_nothing_lock_out_nobody(service, connect):
    start = time.monotonic()
    held = [connect(b"GET /") for _ in range(150)]
    assert is_alive(service[0])
    assert sum(is_closed(sock) for sock in held) >= 110
    assert time.monotonic() - start < LIMITS.head, "the limit of time has closed them, too"


def test_connections_in_all_are_bounded(service, connect):
    """Linux has many addresses for this machine."""
    port = urlsplit(service[0]).port
    with ExitStack() as stack:
        held = []
        for i in range(90):
            one = socket.create_connection(("127.0.0.1", port), 10, (f"127.0.0.{2 + i % 3}", 0))
            held.append(stack.enter_context(one))
            one.sendall(b"GET /")
        assert b'{"status":"live"}' in said(connect(head(b"Connection: close", b"", b"")))
        assert 30 <= sum(is_closed(sock) for sock in held) < 90
