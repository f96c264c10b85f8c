"""Requests to the service, changed by accident and on purpose, from a seed: none may end in 500.

    python tools/fuzz_requests.py                                5,000 requests on SQLite
    python tools/fuzz_requests.py --requests 200 --seed 7
    python tools/fuzz_requests.py --database postgresql          a server of its own

All routes of the API, the console and the protocols are asked, as people of each role, browsers
and strangers: JSON, Arrow, CSV, forms and model files, with path, query and headers changed, too.
An answer of 500 and above, or none, is printed with its seed, and ends the run with 1; the log has
the fault. What a request finds in the store depends on those before it.
"""

import argparse
import asyncio
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

import numpy as np
import pyarrow as pa
from fastapi.routing import APIRoute

from eqsep.persistence.files import model_bytes
from eqsep.serve import console
from eqsep.serve.web.app import Application, create_app
from eqsep.serve.web.guards import COOKIE, session_routes
from eqsep.serve.web.limits import Limits
from eqsep.serve.workspace import Workspace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from databases import postgres_server
from served import GOOD, HOT, small_detector

ROLES = ("view", "judge", "admin")
JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
FORM, FILE = "application/x-www-form-urlencoded", "application/octet-stream"
UNLIMITED = Limits(requests=1e9, strangers=1e9, attempts=1e9)
NUMBERS = [
    *("-1", "0", "1", "2", "3", "1e999", "1.5", "NaN", "inf", "9" * 30, "9" * 5_000, "\u0661"),
    *map(str, (2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1)),
]
TEXTS = [
    "", " ", ".", "..", "/", "a/b", "\0", "a\0b", "a or b", "normal", "unseen", "x" * 150,
    "x" * 3_000, "x" * 20_000, "e\u0301", "\u202e", "\x1b[31m", "\n", "\r\nX-A: b", "%", "%00",
    "_%", "\\", '"', "'", 'a"b', "' OR 1=1 --", "[]", "{}", "<script>", "{{7*7}}", "$.a", "true",
    "null", "2026-01-31T12:00:00", "\U0001f600", "\ufffe", "machines", "heat", "shape", "machine",
    "m7", "judge", "admin", "open", "quiet", "score", "missing",
]  # fmt: skip
VALUES = [
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63) - 1, 1.5,
    1e308, -1e308, 5e-324, [], {}, [[]], [None], {"a": 1}, [1] * 30, {"": ""}, [[[[1]]]],
]  # fmt: skip
RAW = [b"NaN", b"Infinity", b"-Infinity", b'"\\ud800"', b'"\\u0000"', b"1e999", b"[" * 2_000, b"{"]
BODIES: dict[str, Any] = {  # sound ones, by the end of a path
    "/score": {"rows": [HOT, GOOD]},
    "/explain": {"rows": [HOT]},
    "/learn": {"rows": [HOT], "labels": ["hot"], "judged": True, "note": "why"},
    "/verdicts": {"rows": [1], "verdict": "true", "kind": "hot", "note": "why"},
    "/preview": {"rows": [1], "verdict": "false alarm", "kind": None},
    "/verdicts/undo": {"verdicts": [1]},
    "/assign": {"rows": [1, 2], "assignee": "ada"},
    "/note": {"note": "seen"},
    "/settings": {"entity": "machine", "time": None},
    "/revert": {"version": 1},
    "/shadow": {"version": 1},
    "/purge": {"entity": "m9"},
    "/tokens": {"name": "eve", "role": "view", "days": 1.0},
}  # fmt: skip
FIELDS = {  # of forms
    "choice": ["new", "kind:hot", "verdict:unsure", "verdict:false alarm"], "id": ["1", "1 2 3"],
    "new_kind": ["hot"], "note": ["why"], "to": ["ada", ""], "verdict": ["1"], "version": ["1"],
    "name": ["eve"], "role": ["view"], "days": ["3"], "session": ["1"], "entity": ["machine"],
    "time": [""], "again": ["machine"], "token": ["wrong"], "next": ["/"],
}  # fmt: skip
FILTERS = ["state", "kind", "entity", "assignee", "min_score", "column", "value", "order", "age"]
HEADERS = {
    "accept": [ARROW, "text/html", "*/*", ""],
    "content-encoding": ["gzip", "identity", ""],
    "content-length": ["0", "-1", "x", "9" * 30, "\u0661"],
    "content-type": [JSON, CSV, ARROW, FORM, FILE, "multipart/form-data; boundary=x", "", "a/b;;="],
    "cookie": [f"{COOKIE}=wrong", f"{COOKIE}=", "=;;,", f'{COOKIE}="\\000"', "a=b"],
    "authorization": ["Bearer", "Bearer wrong", "Basic eDp5", "bearer \xff", ""],
    "hx-request": ["true"],
    "hx-current-url": ["http://[", "//", "http://a/m/machines/inbox?a=b", "\xff", ""],
    "host": ["evil.example", "127.0.0.1:x", "[::1", ""],
    "origin": ["null", "http://[", "http://127.0.0.1"],
    "x-csrf-token": ["wrong", "\xff"],
    "x-forwarded-for": ["1.2.3.4, [", "\xff"],
}


@dataclass(frozen=True)
class Asked:
    """A request, as bytes."""

    method: str
    path: str  # with per cents
    query: str
    headers: dict[str, str]
    body: bytes

    def __str__(self) -> str:
        query = f"?{self.query}" if self.query else ""
        sent = f"{self.headers} {self.body[:200]!r}"
        return f"{self.method} {self.path[:200]}{query[:200]} {sent[:600]}"


class Fuzzer:
    """Makes requests to a service, and sends them."""

    def __init__(self, url: str) -> None:
        self.ws = Workspace(url, keep_quiet=1.0)
        self.ws.ledger.add("machines", small_detector(), by="fuzz", settings={"entity": "machine"})
        self.ws.intake.take("machines", [HOT | {"heat": 130.0 + i} for i in range(20)])
        self.tokens: dict[str, str] = {}
        self.app: Application = create_app(self.ws, limits=UNLIMITED)
        self.routes = dict(sorted(_routes(self.app, self.ws)))
        self.file = model_bytes(small_detector())

    def request(self, rng: random.Random) -> Asked:
        """A request that is sound, or changed in one or several places."""
        method, path = rng.choice([*self.routes])
        filled = "/".join(_filled(part, rng) for part in path.split("/"))
        query = _query(self.routes[method, path], rng)
        asked = Asked(method, filled, query, {"host": "127.0.0.1"}, b"")
        kind, body = self._body(path, method, rng)
        if rng.random() < 0.3 and kind != JSON:
            body = _damaged(body, rng)
        headers = asked.headers | ({"content-type": kind} if body else {})
        headers |= self._person(rng)
        while rng.random() < 0.2:
            name = rng.choice([*HEADERS])
            headers[name] = rng.choice([*HEADERS[name], _hostile(rng)])
        if "cookie" in headers and rng.random() < 0.9:
            headers["x-csrf-token"] = self._secret(headers["cookie"])
        changed = "PATCH" if rng.random() < 0.02 else method
        return replace(asked, method=changed, headers=headers, body=body)

    def _person(self, rng: random.Random) -> dict[str, str]:
        """The headers of somebody: with a token, with a browser, or of a stranger."""
        role = rng.choices(ROLES, [1, 1, 8])[0]
        if self.ws.people.check(self.tokens.get(role, "")) is None:  # another request revoked it
            self.tokens[role] = self.ws.people.issue(role, role, by="fuzz")
        way = rng.random()
        if way < 0.75:
            return {"authorization": f"Bearer {self.tokens[role]}"}
        if way < 0.95:
            person = self.ws.people.check(self.tokens[role])
            assert person is not None
            return {"cookie": f"{COOKIE}={self.ws.people.sign_in(person, address='fuzz')}"}
        return {}

    def _secret(self, cookie: str) -> str:
        session = self.ws.people.signed_in(cookie.partition("=")[2])
        return "" if session is None else session.secret

    def _body(self, path: str, method: str, rng: random.Random) -> tuple[str, bytes]:
        """The content type and the body of a request."""
        if method in ("GET", "DELETE"):
            return JSON, b""
        if path.endswith(("/models/{name}", "/merge")):
            return FILE, self.file
        is_page = not path.startswith("/api/")
        if is_page and rng.random() < 0.95:
            return FORM, _form(rng)
        if path.endswith(("/score", "/explain")) and rng.random() < 0.4:
            return (ARROW, _arrow(rng)) if rng.random() < 0.7 else (CSV, _csv(rng))
        ends = [end for end in BODIES if path.endswith(end)]
        content = BODIES[max(ends, key=len) if ends else rng.choice([*BODIES])]
        return JSON, _json(content, rng)

    async def ask(self, asked: Asked) -> int:
        """The status of the answer; 0 where there is none."""
        statuses: list[int] = []
        parts = [{"type": "http.request", "body": asked.body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return parts.pop() if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if message["type"].endswith(".start") else [])

        headers = [
            (name.encode(), value.encode("latin-1", "replace").replace(b"\n", b" "))
            for name, value in asked.headers.items()
        ]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
            "method": asked.method, "path": unquote(asked.path), "raw_path": asked.path.encode(),
            "query_string": asked.query.encode(), "root_path": "", "headers": headers,
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
        }  # fmt: skip
        try:
            await self.app(scope, receive, send)
        except Exception as fault:  # whatever it is: that is what is looked for
            print(f"{type(fault).__name__}: {fault}", file=sys.stderr)
            return 0
        return statuses[0] if statuses else 0

    async def run(self, seeds: range) -> tuple[Counter[int], list[str]]:
        """How many answers had each status, and what went wrong."""
        ended: Counter[int] = Counter()
        wrong = []
        async with self.app.router.lifespan_context(self.app):
            for seed in seeds:
                asked = self.request(random.Random(seed))
                status = await self.ask(asked)
                ended[status] += 1
                if status < 200 or status >= 500:
                    wrong.append(f"seed {seed}: {status} to {asked}")
        return ended, wrong


def _routes(app: Application, ws: Workspace) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """All routes, each with the names in its query."""
    for path, told in app.openapi()["paths"].items():
        for method, route in told.items():
            names = [one["name"] for one in route.get("parameters", []) if one["in"] == "query"]
            yield (method.upper(), path), names
    for router in (console.router(console.Pages(ws)), session_routes(ws)):
        for route in router.routes:
            if isinstance(route, APIRoute):
                names = [one.name for one in route.dependant.query_params]
                yield from (((method, route.path), [*names, *FILTERS]) for method in route.methods)


def _hostile(rng: random.Random) -> str:
    return rng.choice(NUMBERS if rng.random() < 0.4 else TEXTS)


def _filled(part: str, rng: random.Random) -> str:
    """A part of a path, with a value in the place of a parameter."""
    if not part.startswith("{"):
        return part if rng.random() < 0.99 else quote(_hostile(rng), safe="")
    sound = "machines" if part in ("{name}", "{model}") else str(rng.randint(1, 20))
    return sound if rng.random() < 0.8 else quote(_hostile(rng), safe="")


def _query(names: list[str], rng: random.Random) -> str:
    pairs = []
    while rng.random() < 0.5:
        pairs.append((rng.choice([*names, "unknown"]), _hostile(rng)))
    return urlencode(pairs)


def _form(rng: random.Random) -> bytes:
    """All fields that forms have; some are changed, left out or there twice."""
    pairs = [(name, rng.choice(sound)) for name, sound in FIELDS.items()]
    while rng.random() < 0.6:
        place, way = rng.randrange(len(pairs)), rng.random()
        if way < 0.7:
            pairs[place] = pairs[place][0], _hostile(rng)
        elif way < 0.85:
            pairs.append((pairs[place][0], _hostile(rng)))
        elif len(pairs) > 1:
            del pairs[place]
    return urlencode(pairs).encode()


def _json(content: Any, rng: random.Random) -> bytes:
    """A document with some of its parts replaced, removed or added."""
    whole = [deepcopy(content)]
    marks = []
    while rng.random() < 0.6:
        places = [*_places(whole)]
        holder, key = rng.choice(places)
        way = rng.random()
        if way < 0.2 and isinstance(holder, dict):
            del holder[key]
        elif way < 0.3 and isinstance(holder, dict):
            holder[rng.choice(TEXTS)] = deepcopy(rng.choice(VALUES))
        elif way < 0.4 and isinstance(holder, list) and holder is not whole:
            holder += deepcopy([holder[key]] * rng.choice([1, 3, 30]))
        elif way < 0.5:
            marks.append(rng.choice(RAW))
            holder[key] = f"@{len(marks) - 1}@"
        else:
            holder[key] = deepcopy(rng.choice(VALUES)) if rng.random() < 0.5 else _hostile(rng)
    body = json.dumps(whole[0]).encode()
    for i, raw in enumerate(marks):
        body = body.replace(f'"@{i}@"'.encode(), raw)
    return _damaged(body, rng) if rng.random() < 0.1 else body


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in [*(tree.items() if isinstance(tree, dict) else enumerate(tree))]:
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _arrow(rng: random.Random) -> bytes:
    odd = [
        pa.nulls(1), pa.array([2**64 - 1], pa.uint64()), pa.array([float("nan")]),
        pa.array([[1]]), pa.array([b"\xff"]), pa.array([True]),
        pa.array([10**30], pa.decimal128(38)),
        pa.array(["x\0"]).dictionary_encode(), pa.array([2**62], pa.timestamp("s")),
        pa.array([-(2**31)], pa.date32()), pa.array([2**62], pa.duration("s")),
        pa.array(["x" * 20_000]), pa.array([{"a": 1}]), pa.array([np.float16(1.5)], pa.float16()),
        pa.array([0], pa.time32("s")), pa.array(["y"], pa.large_string()),
    ]  # fmt: skip
    columns = {name: pa.array([value]) for name, value in GOOD.items()}
    while rng.random() < 0.5:
        columns[rng.choice([*GOOD, *TEXTS])] = rng.choice(odd)
    table = pa.table(columns)
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()


def _csv(rng: random.Random) -> bytes:
    row = {name: str(value) for name, value in GOOD.items()}
    while rng.random() < 0.5:
        row[rng.choice([*GOOD, *TEXTS])] = _hostile(rng)
    return f"{','.join(row)}\n{','.join(row.values())}\n".encode("utf-8", "replace")


def _damaged(body: bytes, rng: random.Random) -> bytes:
    """A body that is cut, or in which some bytes are others."""
    if rng.random() < 0.3:
        return body[: rng.randrange(len(body) + 1)]
    changed = bytearray(body)
    for _ in range(rng.choice([1, 1, 5, 50]) if body else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


@contextmanager
def database(name: str) -> Iterator[str]:
    """The URL of a database: of SQLite in memory, of a PostgreSQL server of its own, or given."""
    if name == "postgresql":
        with postgres_server() as url:
            yield url
    else:
        yield "sqlite://" if name == "sqlite" else name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="of the first request")
    parser.add_argument("--database", default="sqlite", help="sqlite, postgresql, or a URL")
    args = parser.parse_args()
    with database(args.database) as url:
        fuzzer = Fuzzer(url)
        seeds = range(args.seed, args.seed + args.requests)
        ended, wrong = asyncio.run(fuzzer.run(seeds))
    print(*wrong, sep="\n")
    counted = ", ".join(f"{n:,} of {status}" for status, n in sorted(ended.items()))
    print(f"{args.requests:,} requests to {len(fuzzer.routes)} routes, answers: {counted}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
