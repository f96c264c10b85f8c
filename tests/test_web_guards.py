"""Nobody comes in who should not: tokens, roles, forged requests, hosts, sizes, rates, scripts."""

import io
import json
import logging
import re
import time
from functools import partial
from html.parser import HTMLParser
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from served import GOOD, HOME, HOT, served

from eqsep.serve.web.guards import COOKIE, HEADERS
from eqsep.serve.web.limits import Limits, TokenBuckets
from eqsep.serve.web.server import _OneLine

API = "/api/v1"
SCORE = f"{API}/models/machines/score"
HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m\u202e"
ROLES = ("view", "judge", "admin")
# What each role may do, with what a request needs beside it.
NEEDS = {
    ("POST", f"{SCORE}?keep=false"): ("view", GOOD),
    ("POST", SCORE): ("judge", GOOD),
    ("POST", f"{API}/models/machines/explain"): ("view", GOOD),
    ("GET", f"{API}/models/machines/alarms"): ("view", None),
    ("GET", f"{API}/models/machines/groups"): ("view", None),
    ("GET", f"{API}/models/machines/queue"): ("view", None),
    ("GET", f"{API}/models/machines/watch"): ("view", None),
    ("GET", f"{API}/models/machines/incidents"): ("view", None),
    ("GET", f"{API}/models/machines/incidents/1"): ("view", None),
    ("GET", f"{API}/models/machines/exemptions"): ("view", None),
    ("POST", f"{API}/models/machines/exemptions"): ("judge", {"entity": "m9", "days": 1}),
    ("DELETE", f"{API}/models/machines/exemptions/1"): ("judge", None),
    ("POST", f"{API}/models/machines/kinds"): ("judge", {"old": "a", "new": "b"}),
    ("GET", f"{API}/models/machines/notices"): ("admin", None),
    ("POST", f"{API}/models/machines/notices"): ("admin", {"url": ""}),
    ("GET", f"{API}/models/machines/verdicts"): ("view", None),
    ("GET", f"{API}/models/machines/versions"): ("view", None),
    ("GET", f"{API}/models"): ("view", None),
    ("GET", f"{API}/models/machines"): ("view", None),
    ("GET", f"{API}/alarms/1"): ("view", None),
    ("GET", f"{API}/alarms/1/alike"): ("view", None),
    ("POST", f"{API}/alarms/assign"): ("judge", {"rows": [1], "assignee": "ada"}),
    ("POST", f"{API}/alarms/1/note"): ("judge", {"note": "x"}),
    ("POST", f"{API}/verdicts/preview"): ("view", {"rows": [1], "verdict": "unsure"}),
    ("POST", f"{API}/verdicts"): ("judge", {"rows": [1], "verdict": "unsure"}),
    ("POST", f"{API}/verdicts/1/undo"): ("judge", None),
    ("POST", f"{API}/verdicts/undo"): ("judge", {"verdicts": [1]}),
    ("POST", f"{API}/models/machines/groups"): ("judge", {"rows": [1], "name": "x"}),
    ("POST", f"{API}/models/machines/learn"): ("judge", {"rows": [GOOD], "labels": ["normal"]}),
    ("POST", f"{API}/models/machines/replay"): ("judge", None),
    ("POST", f"{API}/models/machines/settings"): ("admin", {"entity": "machine"}),
    ("POST", f"{API}/models/machines/revert"): ("admin", {"version": 1}),
    ("POST", f"{API}/models/machines/shadow"): ("admin", {"version": None}),
    ("POST", f"{API}/models/machines/merge"): ("admin", None),
    ("POST", f"{API}/models/machines/purge"): ("admin", {"entity": "m9"}),
    ("POST", f"{API}/models/new"): ("admin", None),
    ("GET", f"{API}/tokens"): ("admin", None),
    ("POST", f"{API}/tokens"): ("admin", {"name": "eve", "role": "view"}),
    ("DELETE", f"{API}/tokens/eve"): ("admin", None),
    ("GET", f"{API}/audit"): ("admin", None),
    ("GET", f"{API}/sessions"): ("admin", None),
    ("DELETE", f"{API}/sessions/1"): ("admin", None),
    ("GET", f"{API}/me"): ("view", None),
    ("GET", "/metrics"): ("view", None),
    ("GET", "/openapi.json"): ("view", None),
}


@pytest.fixture(scope="module")
def service():
    made = served()
    made.ws.intake.take("machines", [HOT])
    return made


@pytest.fixture
def nobody(service):
    return service.client()


@pytest.fixture(scope="module")
def clients(service):
    with service.client("view") as view:  # one of them runs the application
        yield {"view": view, "judge": service.client("judge"), "admin": service.client("admin")}


@pytest.mark.parametrize(("method", "path"), NEEDS)
def test_each_route_asks_for_a_token_and_a_role(clients, nobody, method, path):
    least, body = NEEDS[method, path]
    assert nobody.request(method, path, json=body).status_code == 401
    lesser = ROLES[: ROLES.index(least)]
    for role in lesser:
        assert clients[role].request(method, path, json=body).status_code == 403
    assert clients[least].request(method, path, json=body).status_code not in (401, 403, 500)


def test_no_route_is_forgotten_here(clients):
    """All routes of the API are in the table above, or are open on purpose."""
    paths = clients["view"].get("/openapi.json").json()["paths"]
    there = {(method.upper(), path) for path, told in paths.items() for method in told}
    names = {"machines": "{name}", "new": "{name}", "eve": "{name}", "1": "{id}"}
    told = set()
    for method, path in NEEDS:
        parts = path.partition("?")[0].split("/")
        told.add((method, "/".join(names.get(part, part) for part in parts)))
    assert {path for _, path in there - told if not path.startswith("/health")} == set()


def test_a_wrong_token_is_none(service):
    client = served(limits=Limits(attempts=3)).client()
    wrong = {"Authorization": "Bearer wrong"}
    told = [client.get(f"{API}/me", headers=wrong).status_code for _ in range(5)]
    assert told == [401, 401, 401, 429, 429]
    late = client.get(f"{API}/me", headers=wrong)
    assert int(late.headers["retry-after"]) >= 1
    for form in ("Basic eDp5", "Bearer", "bearer \xff", ""):
        assert (
            service.client()
            .get(f"{API}/me", headers={"Authorization": form.encode("latin-1")})
            .status_code
            == 401
        )


def test_wrong_tokens_lock_out_no_right_one(monkeypatch):
    stopped = partial(TokenBuckets, clock=lambda: 0.0)
    monkeypatch.setattr("eqsep.serve.web.guards.TokenBuckets", stopped)
    there = served(limits=Limits(attempts=3))
    wrong, right = there.client(), there.client("view")
    for _ in range(9):
        wrong.get(f"{API}/me", headers={"Authorization": "Bearer wrong"})
    assert wrong.get(f"{API}/me", headers={"Authorization": "Bearer wrong"}).status_code == 429
    assert right.get(f"{API}/me").status_code == 200
    assert login(there.client(), "wrong").status_code == 429
    assert login(there.client(), there.tokens["view"]).headers["location"] == "/"


def test_too_many_requests_of_one_caller_are_refused(monkeypatch):
    stopped = partial(TokenBuckets, clock=lambda: 0.0)  # none comes late enough to be let in again
    monkeypatch.setattr("eqsep.serve.web.guards.TokenBuckets", stopped)
    client = served(limits=Limits(requests=2, strangers=2)).client("view")
    codes = [client.get(f"{API}/me").status_code for _ in range(6)]
    assert codes == [200] * 4 + [429] * 2
    assert [client.get("/login").status_code for _ in range(5)] == [200] * 4 + [429]
    for path in ("/health", "/health/live", "/health/ready"):
        assert [client.get(path).status_code for _ in range(9)] == [200] * 9


def login(client, token, **told):
    return client.post("/login", data={"token": token} | told, follow_redirects=False)


def test_a_browser_enters_its_token_once_and_scripts_cannot_read_it(service):
    client = service.client()
    answer = login(client, service.tokens["judge"], next="/m/machines/inbox")
    assert (answer.status_code, answer.headers["location"]) == (303, "/m/machines/inbox")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get(f"{API}/me").json()["name"] == "judge"
    assert service.ws.people.audit()[0].action == "login"
    csrf = _csrf(client)
    gone = client.post("/logout", headers={"X-CSRF-Token": csrf}, follow_redirects=False)
    assert gone.headers["location"] == "/login"
    assert client.get(f"{API}/me").status_code == 401


def _csrf(client):
    """The token of forms, from a page."""
    return re.search(r'name="csrf" value="([^"]+)"', client.get("/settings").text)[1]


def test_a_session_is_not_the_token_and_ends_with_logout_revocation_and_time(service, monkeypatch):
    people, clock = service.ws.people, [time.time()]
    monkeypatch.setattr("eqsep.serve.people.now", lambda: clock[0])
    monkeypatch.setattr("eqsep.serve.people.time.monotonic", lambda: clock[0])
    token = people.issue("cy", "admin", by="test")

    def entered():
        client = service.client()
        login(client, token)
        return client

    first, second, third = entered(), entered(), entered()
    cookie = first.cookies[COOKIE]
    assert cookie != token
    stolen = {"Cookie": f"{COOKIE}={cookie}"}
    assert first.get(f"{API}/me").json()["name"] == "cy"
    assert first.post("/logout", data={"csrf": _csrf(first)}).status_code == 200
    clock[0] += 3
    assert service.client().get(f"{API}/me", headers=stolen).status_code == 401
    assert second.get(f"{API}/me").status_code == 200
    ids = [one["id"] for one in service.client("admin").get(f"{API}/sessions").json()]
    assert service.client("admin").delete(f"{API}/sessions/{ids[0]}").status_code == 200
    assert third.get(f"{API}/me").status_code == 401
    clock[0] += 13 * 3600
    assert second.get(f"{API}/me").status_code == 401
    fourth = entered()
    people.revoke("cy", by="test")
    assert fourth.get(f"{API}/me").status_code == 401


def test_a_session_gets_another_cookie_and_pages_stay_valid(service, monkeypatch):
    clock = [time.time()]
    monkeypatch.setattr("eqsep.serve.people.now", lambda: clock[0])
    monkeypatch.setattr("eqsep.serve.people.time.monotonic", lambda: clock[0])
    client = service.client()
    login(client, service.tokens["judge"])
    before, csrf = client.cookies[COOKIE], _csrf(client)
    clock[0] += 3700
    assert client.get(f"{API}/me").status_code == 200
    assert client.cookies[COOKIE] != before
    old = {"Cookie": f"{COOKIE}={before}"}
    assert service.client().get(f"{API}/me", headers=old).status_code == 200  # was under way
    clock[0] += 100
    assert service.client().get(f"{API}/me", headers=old).status_code == 401
    body = {"rows": [1], "assignee": "ada"}
    page = client.post(f"{API}/alarms/assign", json=body, headers={"X-CSRF-Token": csrf})
    assert page.status_code == 200


def test_a_token_with_an_end_lets_in_until_then(service, monkeypatch):
    asked = {"name": "guest", "role": "view", "days": 2}
    token = service.client("admin").post(f"{API}/tokens", json=asked).json()["token"]
    guest = service.client()
    login(guest, token)
    assert guest.get(f"{API}/me").json()["expires"] > time.time()
    later = time.time() + 3 * 86_400
    monkeypatch.setattr("eqsep.serve.people.now", lambda: later)
    monkeypatch.setattr("eqsep.serve.people.time.monotonic", lambda: later)
    assert guest.get(f"{API}/me").status_code == 401
    headers = {"Authorization": f"Bearer {token}"}
    assert service.client().get(f"{API}/me", headers=headers).status_code == 401
    for days in (0, -1, 1e9, "NaN"):
        refused = service.client("admin").post(f"{API}/tokens", json=asked | {"days": days})
        assert refused.status_code == 422


@pytest.mark.parametrize(
    "there", ["//evil.example", "https://evil.example", "/\\evil.example", "x", "/\r\nA: b"]
)
def test_a_login_leads_to_no_other_site(service, there):
    answer = login(service.client(), service.tokens["view"], next=there)
    assert answer.headers["location"] == "/"


def test_a_wrong_login_is_refused_and_a_form_of_another_site_too(service):
    client = service.client()
    wrong = login(client, "guessed")
    assert (wrong.status_code, wrong.headers["location"]) == (303, "/login?error=token")
    assert "set-cookie" not in wrong.headers
    told = {"token": service.tokens["view"]}
    for origin in ("https://evil.example", "null"):
        answer = client.post(
            "/login", data=told, headers={"Origin": origin}, follow_redirects=False
        )
        assert answer.status_code == 403
    own = client.post(
        "/login", data=told, headers={"Origin": "http://127.0.0.1"}, follow_redirects=False
    )
    assert own.status_code == 303


def test_a_cookie_alone_changes_nothing(service, clients):
    assert clients  # the application runs
    client = service.client()
    login(client, service.tokens["judge"])
    body = {"rows": [1], "assignee": "mallory"}
    assert client.post(f"{API}/alarms/assign", json=body).status_code == 403
    other = service.client()
    login(other, service.tokens["view"])
    wrong = {"X-CSRF-Token": _csrf(other)}
    assert client.post(f"{API}/alarms/assign", json=body, headers=wrong).status_code == 403
    assert client.post("/logout", data={"csrf": "guessed"}).status_code == 403
    right = {"X-CSRF-Token": _csrf(client)}
    assert client.post(f"{API}/alarms/assign", json=body, headers=right).status_code == 200
    form = {"csrf": _csrf(client)}
    assert client.post("/logout", data=form, follow_redirects=False).status_code == 303


def test_a_browser_without_a_token_is_sent_to_the_door(nobody):
    page = "/m/machines/inbox?kind=a%20b&page=2"
    answer = nobody.get(page, follow_redirects=False)
    assert answer.status_code == 303
    there = urlsplit(answer.headers["location"])
    assert (there.path, parse_qs(there.query)) == ("/login", {"next": [page]})
    told = {"HX-Request": "true", "HX-Current-URL": f"{HOME}{page}"}  # a part asks for its page
    part = nobody.get("/m/machines/inbox/fresh?after=1", headers=told)
    assert (part.status_code, part.headers["hx-redirect"]) == (401, answer.headers["location"])


@pytest.mark.parametrize("path", ["/health", f"{API}/me", "/", "/nothing", SCORE])
def test_every_answer_tells_browsers_what_they_may(nobody, path):
    answer = nobody.get(path, follow_redirects=False)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "'unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["content-security-policy"].startswith(
        "default-src 'none'; script-src 'self';"
    )


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil", ""])
def test_another_name_of_this_machine_is_refused(clients, host):
    answer = clients["view"].get(f"{API}/me", headers={"Host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000"])
def test_the_names_of_this_machine_are_taken(clients, host):
    assert clients["view"].get(f"{API}/me", headers={"Host": host}).status_code == 200


def test_what_is_too_large_is_refused_before_it_is_read():
    small = served(limits=Limits(body=1000, rows=5))
    with small.client("judge") as client:
        sent = []

        def chunks():
            for _ in range(100):
                sent.append(1)
                yield b" " * 100

        assert client.post(SCORE, content=b" " * 1001).status_code == 413
        assert client.post(SCORE, content=chunks()).status_code == 413
        for length in ("9" * 5_000, "\xb2", "-1", "x"):  # a superscript is a digit, too
            lies = {"Content-Length": length.encode("latin-1")}
            assert client.post(SCORE, content=b" ", headers=lies).status_code == 413
        assert client.post(SCORE, json={"rows": [1] * 6}).status_code == 413
        assert client.post(f"{API}/verdicts", content=b" " * 1001).status_code == 413
        assert client.post(SCORE, json=GOOD).status_code == 200
        packed = client.post(SCORE, content=b"x", headers={"Content-Encoding": "gzip"})
        assert packed.status_code == 415
        file = client.post(f"{API}/models/x", content=b" " * 1001)
        assert file.status_code == 413  # larger ones are for administrators
        form = b"csrf=x&" + b"a" * 2000
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        assert client.post("/login", content=form, headers=kind).status_code == 413


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize("path", [SCORE, f"{API}/verdicts"])
def test_deep_nesting_is_refused(clients, path, depth):
    body = b'{"rows":' + b"[" * depth + b"]" * depth + b"}"
    answer = clients["judge"].post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static//etc/passwd",
        f"{API}/models/..%2f..%2fetc%2fpasswd",
        f"{API}/models/%2e%2e/score",
        "/..%5c..%5cetc/passwd",
    ],
)
def test_no_path_leads_out(clients, path):
    answer = clients["admin"].get(path)
    assert answer.status_code in (404, 405)
    assert "root:" not in answer.text


def test_a_name_with_a_path_in_it_is_no_model(clients):
    answer = clients["admin"].post(f"{API}/models/..%2Fx", content=b"x")
    assert answer.status_code in (400, 404)


def test_hostile_names_and_values_come_back_as_json_alone(clients):
    row = GOOD | {"shape": HOSTILE, HOSTILE: HOSTILE, "heat": 140.0}
    client = clients["judge"]
    answer = client.post(SCORE, json=row)
    number = answer.json()["answers"][0]["id"]
    given = {"rows": [number], "verdict": "true", "kind": "<img src=x onerror=alert(1)>"}
    client.post(f"{API}/verdicts", json=given)
    for path in (
        f"{API}/alarms/{number}",
        f"{API}/models/machines/verdicts",
        f"{API}/models/{quote(HOSTILE)}",
    ):
        told = client.get(path)
        assert told.headers["content-type"] == "application/json"
        assert told.headers["x-content-type-options"] == "nosniff"
    alarm = client.get(f"{API}/alarms/{number}").json()
    assert alarm["alarm"]["row"] == row
    assert alarm["alarm"]["verdict"]["kind"] == given["kind"]
    bad = client.post(SCORE, json=GOOD | {"heat": HOSTILE})
    assert bad.headers["content-type"] == "application/json"


def inline(page):
    """What the content security policy would refuse: scripts, handlers and styles in the page."""
    found = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            names = [name for name, _ in attrs]
            found.extend(name for name in names if name.startswith("on") or name == "style")
            found.extend([tag] * (tag == "style" or (tag == "script" and "src" not in names)))

    Tags().feed(page)
    return found


@pytest.mark.parametrize("screen", ["inbox", "groups", "judge", "model", "watch"])
def test_hostile_names_and_values_are_text_on_every_screen(service, clients, screen):
    kind = "<img src=x onerror=alert(1)>"
    row = GOOD | {"shape": HOSTILE, HOSTILE: HOSTILE, "heat": 140.0, "machine": HOSTILE}
    rows = {"rows": [row, row]}
    first, second = (a["id"] for a in clients["judge"].post(SCORE, json=rows).json()["answers"])
    note = HOSTILE.replace("\x1b", "")  # a note holds no control characters
    given = {"rows": [first], "verdict": "true", "kind": kind, "note": note}
    verdict = clients["judge"].post(f"{API}/verdicts", json=given).json()["verdicts"][0]["id"]
    client = service.client()
    login(client, service.tokens["admin"])
    for path in (f"/m/machines/{screen}", f"/m/machines/alarms/{second}", "/settings"):
        page = client.get(path)
        assert page.status_code == 200, path
        assert page.headers["content-type"].startswith("text/html")
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert inline(page.text) == []
    clients["judge"].post(f"{API}/verdicts/{verdict}/undo")


def test_a_fault_tells_nothing_of_the_inside(service, clients, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("secret of the inside")

    monkeypatch.setattr(service.ws.ledger, "names", fail)
    log = io.StringIO()
    monkeypatch.setattr(logging.getLogger("eqsep.serve"), "handlers", [logging.StreamHandler(log)])
    answer = clients["admin"].get(f"{API}/models")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["content-security-policy"]
    number = answer.json()["error"].rsplit(" ", 1)[1].rstrip(".")
    assert number in log.getvalue()
    assert "secret of the inside" in log.getvalue()


def test_a_log_has_no_line_that_a_request_wrote():
    record = logging.LogRecord("x", 30, "", 0, "path %s", ("/a\nWARNING forged\x1b[2J",), None)
    told = _OneLine("%(levelname)s %(message)s").format(record)
    assert told == "WARNING path /a\\nWARNING forged\\x1b[2J"


def test_errors_of_fields_do_not_repeat_what_was_sent(clients):
    answer = clients["judge"].post(f"{API}/verdicts", json={"rows": HOSTILE, "verdict": 3})
    assert answer.status_code == 422
    assert "script" not in json.dumps(answer.json())
