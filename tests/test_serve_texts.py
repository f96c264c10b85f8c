"""Texts and numbers that are sent to the service: the same checks in API and console."""

import unicodedata

import pytest
from databases import HOMES, WHY_NOT, postgres_server
from served import GOOD, HOT, served

from eqsep.detector import Detector
from eqsep.serve.texts import LARGEST, Invalid, name, note, number

API = "/api/v1"
LEARN = f"{API}/models/machines/learn"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request):
    if request.param == "sqlite":
        yield "sqlite://"
        return
    if not HOMES:
        pytest.skip(WHY_NOT)
    with postgres_server() as found:
        yield found


@pytest.fixture(scope="module")
def service(url):
    return served(url)


@pytest.fixture(scope="module")
def client(service):
    with service.client("admin") as found:
        found.post(f"{API}/models/machines/score", json={"rows": [HOT] * 3})
        yield found


def test_a_text_is_composed_and_trimmed():
    assert name(" cafe\u0301 ") == "caf\u00e9"
    assert note(" a\nb ") == "a\nb"
    assert number("7", what="a row") == 7
    for bad in ("", " ", "a\0", "a\x1b[31m", "x" * 101, "a\nb", "\u202e"):
        with pytest.raises(Invalid, match="1 to 100 printable characters"):
            name(bad)
    for bad in ("a\0", "\x1b[2J", "x" * 2_001, "\ud800"):
        with pytest.raises(Invalid, match="A note"):
            note(bad)
    for bad in ("", "-1", "1.0", "\u0661", str(LARGEST + 1), "9" * 5_000):
        with pytest.raises(Invalid, match="number of a row"):
            number(bad, what="a row")


KINDS = ["", " ", "hot or cold", "a\0b", "a\x1bb", "x" * 101, "Normal", "unseen", "false alarm"]


@pytest.mark.parametrize("kind", KINDS)
def test_learning_and_verdicts_refuse_the_same_kinds(client, kind):
    lesson = {"rows": [HOT], "labels": [kind]}
    verdict = {"rows": [1], "verdict": "true", "kind": kind}
    form = {"id": "1", "choice": "new", "new_kind": kind}
    posted = [
        client.post(LEARN, json=lesson),
        client.post(f"{API}/verdicts", json=verdict),
        client.post("/m/machines/verdicts", data=form),
    ]
    assert [one.status_code for one in posted] == [422] * 3


def test_kinds_that_look_the_same_are_the_same(service, client):
    composed, apart = (unicodedata.normalize(form, "sté") for form in ("NFC", "NFD"))
    for text in (composed, f" {apart}", apart):
        assert client.post(LEARN, json={"rows": [HOT], "labels": [text]}).status_code == 200
    given = client.post(f"{API}/verdicts", json={"rows": [2], "verdict": "true", "kind": apart})
    assert given.json()["verdicts"][0]["kind"] == composed
    assert service.ws.ledger.live_model("machines").kinds == (composed,)


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", '"\\ud800"', "1e999", "["])
def test_what_json_cannot_hold_is_refused(client, token):
    headers = {"Content-Type": "application/json"}
    row = f'{{"heat": 1.0, "load": 2.0, "shape": {token}}}'
    bodies = {
        LEARN: f'{{"rows": [{row}], "labels": ["normal"]}}',
        f"{API}/models/machines/score": row,
        f"{API}/alarms/1/note": f'{{"note": {token}}}',
        f"{API}/verdicts": f'{{"rows": [{token}], "verdict": "unsure"}}',
    }
    for path, body in bodies.items():
        answer = client.post(path, content=body, headers=headers)
        assert (path, answer.status_code) == (path, 422)
        assert list(answer.json()) == ["error"]


@pytest.mark.parametrize("text", ["a\0b", "x" * 900_000], ids=["NUL", "long"])
def test_no_text_is_too_much_for_the_database(client, text):
    posted = [
        client.post(f"{API}/alarms/1/note", json={"note": text}),
        client.post(f"{API}/alarms/assign", json={"rows": [1], "assignee": text}),
        client.post(f"{API}/verdicts", json={"rows": [1], "verdict": "unsure", "note": text}),
        client.post(LEARN, json={"rows": [HOT], "labels": ["normal"], "note": text}),
        client.post(LEARN, json={"rows": [HOT | {text: 1}], "labels": ["normal"]}),
        client.post(f"{API}/models/machines/score", json=HOT | {text: 1}),
        client.post(f"{API}/models/machines/score", json=HOT | {"shape": text}),
        client.post(f"{API}/models/machines/settings", json={"entity": text}),
        client.post(f"{API}/models/machines/purge", json={"entity": text}),
        client.post(f"{API}/tokens", json={"name": text, "role": "view"}),
        client.post("/m/machines/alarms/1/note", data={"note": text}),
        client.post("/m/machines/assign", data={"id": "1", "to": text}),
        client.post(
            "/m/machines/verdicts", data={"id": 1, "choice": "verdict:unsure", "note": text}
        ),
        client.post("/m/machines/settings", data={"entity": text}),
        client.post("/settings/tokens", data={"name": text, "role": "view"}),
    ]
    assert [one.status_code for one in posted] == [422] * len(posted)


def test_no_address_holds_a_nul(client):
    for path in ("/models/a%00b", "/models/machines/alarms?entity=a%00", "/tokens/a%00"):
        method = "DELETE" if "tokens" in path else "GET"
        assert client.request(method, f"{API}{path}").status_code == 422
    for path in ("/m/a%00b/inbox", "/m/machines/inbox?kind=%00", "/m/machines/entity?name=%00"):
        assert client.get(path).status_code == 422


@pytest.mark.parametrize(
    "n", [2**63, 2**64, 10**30, 10**400], ids=["2^63", "2^64", "10^30", "long"]
)
def test_numbers_beyond_the_store_are_refused(client, n):
    asked = [
        *(client.get(f"{API}/alarms/{n}{more}") for more in ("", "/alike")),
        client.get(f"{API}/models/machines/alarms?offset={n}"),
        client.post(f"{API}/verdicts/{n}/undo"),
        client.delete(f"{API}/sessions/{n}"),
        client.delete(f"{API}/models/machines/exemptions/{n}"),
        client.get(f"{API}/models/machines/incidents/{n}"),
        client.post(f"{API}/verdicts", json={"rows": [n], "verdict": "unsure"}),
        client.post(f"{API}/verdicts/undo", json={"verdicts": [n]}),
        client.post(f"{API}/alarms/assign", json={"rows": [n], "assignee": None}),
        client.post(f"{API}/models/machines/revert", json={"version": n}),
        client.post(f"{API}/models/machines/shadow", json={"version": n}),
        client.get(f"/m/machines/inbox?page={n}"),
        client.get(f"/m/machines/inbox?age={n}"),
        client.get(f"/m/machines/alarms/{n}"),
        client.get(f"/m/machines/groups/{n}"),
        client.get(f"/m/machines/incidents/{n}"),
        client.get(f"/m/machines/revert?version={n}"),
        client.post("/m/machines/revert", data={"version": n}),
        client.post("/m/machines/undo", data={"verdict": n}),
        client.post("/settings/sessions", data={"session": n}),
        client.post("/m/machines/exemptions/revoke", data={"exemption": n}),
    ]
    below = client.delete(f"{API}/models/machines/exemptions/{-n}")
    assert [one.status_code for one in (*asked, below)] == [422] * (len(asked) + 1)


@pytest.mark.parametrize("called", [" ", ".", "..", " a", "a/b", "x" * 101])
def test_names_that_no_model_can_have(service, called):
    with pytest.raises(Invalid):
        service.ws.ledger.add(
            called, Detector.of(service.ws.ledger.live_model("machines")), by="test"
        )


def test_a_page_of_no_address_leads_to_the_login(service):
    headers = {"HX-Request": "true", "HX-Current-URL": "http://["}
    answer = service.client().get("/m/machines/inbox", headers=headers)
    assert (answer.status_code, answer.headers["hx-redirect"]) == (401, "/login?next=%2F")


def test_a_row_with_every_name_is_scored(client):
    row = GOOD | {"a b": 1, "\u202e": 2, "x" * 200: 3}
    assert client.post(f"{API}/models/machines/score", json=row).status_code == 200
