"""Every endpoint of the API, as a program uses it."""

import io
import json
from copy import deepcopy

import pyarrow as pa
import pytest
from served import GOOD, HOT, machine_rows, served, small_detector

from eqsep.serve.web.rows import ARROW

BAD = {"heat": "hot", "load": 0, "shape": "fan"}
SCORE = "/api/v1/models/machines/score"


@pytest.fixture
def service():
    return served()


@pytest.fixture
def client(service):
    with service.client("admin") as client:
        yield client


def alarm_of(client, row=HOT):
    """The number under which an alarm was kept."""
    return client.post(SCORE, json=row).json()["answers"][0]["id"]


@pytest.fixture(scope="module")
def refused():
    """A client of a service with one alarm, for requests that change nothing."""
    with served().client("admin") as client:
        alarm_of(client)
        yield client


def test_one_row_is_scored_as_the_library_does_and_the_alarm_is_kept(service, client):
    answer = client.post(SCORE, json=HOT)
    assert answer.status_code == 200
    (told,) = answer.json()["answers"]
    row = {name: HOT[name] for name in GOOD}
    detector = small_detector()
    assert told["score"] == detector.score_samples([row])[0]
    assert told["p_value"] == detector.p_value([row])[0]
    assert (told["alarm"], told["kind"]) == (True, "unseen")
    kept = service.ws.alarms.get(told["id"])
    assert (kept.row, kept.entity, kept.said.score) == (HOT, "m7", told["score"])


def test_a_bad_row_gets_its_own_error_and_the_others_are_served(client):
    body = client.post(SCORE, json={"rows": [GOOD, BAD, HOT, {"heat": 1}]}).json()
    assert [answer is None for answer in body["answers"]] == [False, True, False, True]
    assert body["errors"] == [
        {"row": 1, "error": "column 'heat': expected a number, got 'hot'"},
        {
            "row": 3,
            "error": "missing columns: 'load', 'shape'. Pass null where a value is not known",
        },
    ]


def test_nothing_but_bad_rows_is_an_error(refused):
    answer = refused.post(SCORE, json={"rows": [BAD, 3]})
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == 2
    assert "expected a number" in answer.json()["error"]


def test_json_csv_and_arrow_say_the_same(client):
    rows = [{name: row[name] for name in GOOD} for row in (GOOD, HOT)]
    as_json = client.post(f"{SCORE}?keep=false", json={"rows": rows}).json()["answers"]
    lines = ["heat,load,shape", *(f"{r['heat']},{r['load']},{r['shape']}" for r in rows)]
    sent = {"Content-Type": "text/csv"}
    as_csv = client.post(f"{SCORE}?keep=false", content="\n".join(lines), headers=sent).json()
    assert as_csv["answers"] == as_json
    out = io.BytesIO()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    both = {"Content-Type": ARROW, "Accept": ARROW}
    answer = client.post(f"{SCORE}?keep=false", content=out.getvalue(), headers=both)
    assert answer.headers["content-type"] == ARROW
    read = pa.ipc.open_stream(answer.content).read_all().to_pylist()
    assert [{**row, "error": None} for row in as_json] == read


def test_pure_scoring_keeps_nothing(service, client):
    (told,) = client.post(f"{SCORE}?keep=false", json=HOT).json()["answers"]
    assert told["alarm"]
    assert told["id"] is None
    assert service.ws.alarms.inbox("machines").total == 0
    assert service.ws.watching.status("machines").rows == 0


@pytest.mark.parametrize("form", ["application/xml", "multipart/form-data"])
def test_other_forms_are_refused(refused, form):
    assert refused.post(SCORE, content="x", headers={"Content-Type": form}).status_code == 415


def test_reasons_add_up_to_the_score(client):
    url = "/api/v1/models/machines/explain"
    body = client.post(f"{url}?top=2", json={"rows": [HOT, BAD]}).json()
    first, bad = body["answers"]
    assert bad is None
    assert first["reasons"][0]["column"] == "heat"
    parts = first["base"] + sum(one["contribution"] for one in first["reasons"]) + first["rest"]
    assert parts == pytest.approx(first["score"])
    assert client.post(url, json={"rows": [GOOD] * 101}).status_code == 413
    assert client.post(url, json={"rows": [3]}).status_code == 422


def test_alarms_are_filtered_and_paged(client):
    ids = [alarm_of(client, HOT | {"heat": heat}) for heat in (140.0, 150.0, 160.0)]
    url = "/api/v1/models/machines/alarms"
    page = client.get(url, params={"limit": 2}).json()
    assert page["total"] == 3
    assert [alarm["id"] for alarm in page["alarms"]] == ids[:0:-1]
    assert client.get(url, params={"entity": "m7", "offset": 2}).json()["alarms"][0]["id"] == ids[0]
    assert client.get(url, params={"kind": "leak"}).json()["total"] == 0
    assert client.get(url, params={"since": 4e9}).json()["total"] == 0
    for wrong in ({"limit": 501}, {"state": "gone"}, {"offset": -1}, {"colour": "red"}):
        assert client.get(url, params=wrong).status_code == 422


def test_an_alarm_has_reasons_neighbours_a_note_and_an_assignee(client):
    first, second = alarm_of(client), alarm_of(client, HOT | {"heat": 141.0})
    assert (
        client.post("/api/v1/alarms/assign", json={"rows": [first], "assignee": "ada"}).json()
        is None
    )
    client.post(f"/api/v1/alarms/{first}/note", json={"note": "look again"})
    alarm = client.get(f"/api/v1/alarms/{first}").json()["alarm"]
    assert (alarm["assignee"], alarm["note"]) == ("ada", "look again")
    assert alarm["reasons"]["reasons"][0]["column"] == "heat"
    alike = client.get(f"/api/v1/alarms/{first}/alike").json()
    assert [one["id"] for one in alike] == [second]
    (group,) = client.get("/api/v1/models/machines/groups").json()
    assert {one["id"] for one in group["alarms"]} == {first, second}
    named = {"rows": [second], "name": "hot bearings"}
    (group,) = client.post("/api/v1/models/machines/groups", json=named).json()
    assert group["name"] == "hot bearings"
    assert client.get("/api/v1/alarms/999").status_code == 404


def test_a_verdict_teaches_and_its_undo_brings_the_very_bits_back(service, client):
    ids = [alarm_of(client, HOT | {"heat": 140.0 + i}) for i in range(3)]
    before = service.ws.ledger.live("machines").digest
    asked = {"rows": ids[:2], "verdict": "true", "kind": "overheated", "note": "seen"}
    preview = client.post("/api/v1/verdicts/preview", json=asked).json()
    assert [change["alarm"]["id"] for change in preview["renamed"]] == ids[2:]
    assert service.ws.ledger.live("machines").digest == before
    given = client.post("/api/v1/verdicts", json=asked).json()
    assert given["version"]["digest"] != before
    assert client.post(SCORE, json=HOT).json()["answers"][0]["kind"] == "overheated"
    told = client.get("/api/v1/models/machines/verdicts").json()
    assert {(one["by"], one["kind"], one["note"]) for one in told} == {
        ("admin", "overheated", "seen")
    }
    for query, n in (("by=admin&undone=false", len(told)), ("by=eve", 0), ("verdict=unsure", 0)):
        assert len(client.get(f"/api/v1/models/machines/verdicts?{query}").json()) == n
    assert client.get("/api/v1/models/machines/verdicts?verdict=maybe").status_code == 422
    numbers = [verdict["id"] for verdict in given["verdicts"]]
    undone = client.post("/api/v1/verdicts/undo", json={"verdicts": numbers}).json()
    assert undone["digest"] == before
    assert client.post(f"/api/v1/verdicts/{numbers[0]}/undo").status_code == 409
    verdicts = client.get(f"/api/v1/alarms/{ids[0]}").json()["verdicts"]
    assert [verdict["undone_by"] for verdict in verdicts] == ["admin"]


def test_one_verdict_of_two_is_undone(service, client):
    ids = [alarm_of(client, HOT | {"heat": 140.0 + i}) for i in range(2)]
    given = client.post(
        "/api/v1/verdicts", json={"rows": ids, "verdict": "true", "kind": "overheated"}
    ).json()
    client.post(f"/api/v1/verdicts/{given['verdicts'][0]['id']}/undo")
    assert service.ws.alarms.get(ids[0]).verdict is None
    assert service.ws.alarms.get(ids[1]).verdict is not None


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"rows": [], "verdict": "unsure"}, 422),
        ({"rows": [1], "verdict": "perhaps"}, 400),
        ({"rows": [1], "verdict": "true"}, 422),
        ({"rows": [1], "verdict": "true", "kind": "normal"}, 422),
        ({"rows": [1], "verdict": "unsure", "colour": 1}, 422),
        ({"rows": ["1"], "verdict": "unsure"}, 422),
        ({"rows": [77], "verdict": "unsure"}, 404),
        ({"rows": [1], "verdict": "unsure", "note": "x" * 2001}, 422),
    ],
)
def test_a_verdict_that_cannot_be_is_refused(refused, asked, status):
    answer = refused.post("/api/v1/verdicts", json=asked)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])


def test_labelled_rows_are_learnt_all_or_none(service, client):
    url = "/api/v1/models/machines/learn"
    rows = [HOT | {"heat": 140.0 + i} for i in range(3)]
    version = client.post(url, json={"rows": rows, "labels": ["overheated"] * 3}).json()
    assert (version["operation"], version["n_rows"], version["by"]) == ("learn", 3, "admin")
    assert service.ws.ledger.model(version["id"]).kinds == ("overheated",)
    refused = [([HOT, BAD], ["a", "b"], 422), ([HOT], ["a", "b"], 400), ([], [], 400)]
    for rows, labels, status in (*refused, ([3], ["a"], 422)):
        answer = client.post(url, json={"rows": rows, "labels": labels})
        assert answer.status_code == status
    answer = client.post(url, json={"rows": [HOT], "labels": ["hot or cold"]})
    assert (answer.status_code, "Choose another" in answer.json()["error"]) == (422, True)
    assert service.ws.ledger.live("machines").id == version["id"]


def test_models_versions_shadow_revert_and_replay(client):
    (model,) = client.get("/api/v1/models").json()
    assert model["columns"] == {"heat": "number", "load": "number", "shape": "text"}
    first = model["live"]["id"]
    lesson = {"rows": [HOT], "labels": ["overheated"]}
    learnt = client.post("/api/v1/models/machines/learn", json=lesson).json()
    shadowed = client.post("/api/v1/models/machines/shadow", json={"version": first}).json()
    assert shadowed["shadow"]["id"] == first
    alarm_of(client)
    shown = client.get("/api/v1/models/machines/alarms", params={"limit": 1}).json()["alarms"][0]
    assert shown["shadow_score"] == pytest.approx(shown["said"]["score"], abs=0.5)
    client.post("/api/v1/models/machines/shadow", json={"version": None})
    back = client.post("/api/v1/models/machines/revert", json={"version": first}).json()
    assert back["digest"] == model["live"]["digest"]
    versions = client.get("/api/v1/models/machines/versions").json()
    assert [one["operation"] for one in versions] == ["revert", "learn", "add"]
    assert versions[1]["id"] == learnt["id"]
    assert client.post("/api/v1/models/machines/replay").json()["same_bits"] is True
    assert client.get("/api/v1/models/nothing").status_code == 404
    assert client.get("/api/v1/models/nothing/versions").status_code == 404
    assert client.post("/api/v1/models/machines/revert", json={"version": 99}).status_code == 404


@pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning")
def test_a_model_is_added_and_merged_from_its_file(service, client, tmp_path):
    detector = small_detector()
    detector.save(tmp_path / "model.eqsep")
    content = (tmp_path / "model.eqsep").read_bytes()
    assert client.post("/api/v1/models/fans", content=content).json()["model"] == "fans"
    assert client.post("/api/v1/models/fans", content=content).status_code == 400
    assert client.post("/api/v1/models/other", content=b"PK\3\4junk").status_code == 400
    assert client.post("/api/v1/models/fans/score", json=GOOD).status_code == 200
    row = {name: HOT[name] for name in GOOD}
    other = deepcopy(detector).partial_fit([row], ["overheated"], judged=True)
    other.save(tmp_path / "other.eqsep")
    merged = client.post(
        "/api/v1/models/fans/merge", content=(tmp_path / "other.eqsep").read_bytes()
    ).json()
    assert merged["operation"] == "merge"
    assert service.ws.ledger.model(merged["id"]).kinds == ("overheated",)


def test_settings_name_the_entity(service, client):
    url = "/api/v1/models/machines/settings"
    assert client.post(url, json={"entity": "shape"}).json()["settings"] == {"entity": "shape"}
    assert service.ws.alarms.get(alarm_of(client)).entity == "fan"
    assert client.post(url, json={"entity": None}).json()["settings"] == {}


def test_the_queue_and_the_watch(client):
    client.post(SCORE, json={"rows": machine_rows(200, seed=1)})
    queue = client.get("/api/v1/models/machines/queue").json()
    assert queue["missed"]["total"] == 0
    assert all(one["why"] for one in queue["offered"])
    watch = client.get("/api/v1/models/machines/watch").json()
    assert watch["rows"] == 200
    assert watch["promised"] == 0.01


def test_what_is_kept_of_an_entity_is_purged(client):
    number = alarm_of(client)
    client.post("/api/v1/verdicts", json={"rows": [number], "verdict": "true", "kind": "hot"})
    purged = client.post("/api/v1/models/machines/purge", json={"entity": "m7"}).json()
    assert purged["rows"] == 1
    assert client.get(f"/api/v1/alarms/{number}").status_code == 404
    entry = client.get("/api/v1/audit").json()[0]
    assert (entry["who"], entry["action"]) == ("admin", "purged")
    assert "m7" not in json.dumps(entry)


def test_tokens_are_issued_and_revoked(client):
    issued = client.post("/api/v1/tokens", json={"name": "eve", "role": "view"}).json()
    there = {"Authorization": f"Bearer {issued['token']}"}
    assert client.get("/api/v1/me", headers=there).json()["name"] == "eve"
    people = client.get("/api/v1/tokens").json()
    assert {person["name"] for person in people} == {"view", "judge", "admin", "eve"}
    assert issued["token"] not in json.dumps(people)
    assert client.delete("/api/v1/tokens/eve").status_code == 200
    assert client.get("/api/v1/me", headers=there).status_code == 401
    assert client.delete("/api/v1/tokens/admin").status_code == 400
    assert client.post("/api/v1/tokens", json={"name": "x", "role": "king"}).status_code == 422


def test_the_audit_log_has_who_did_what(client):
    number = alarm_of(client)
    given = client.post("/api/v1/verdicts", json={"rows": [number], "verdict": "unsure"}).json()
    client.post(f"/api/v1/verdicts/{given['verdicts'][0]['id']}/undo")
    actions = [entry["action"] for entry in client.get("/api/v1/audit").json()]
    assert actions[:2] == ["undone", "verdict"]


def test_health_metrics_and_openapi(service, client):
    client.post(SCORE, json={"rows": [GOOD, HOT]})
    nobody = service.client()
    assert nobody.get("/health/live").json() == {"status": "live"}
    assert nobody.get("/health").status_code == 200
    assert nobody.get("/health/ready").json() == {"status": "ready"}
    text = client.get("/metrics").text
    assert 'eqsep_rows_total{model="machines"} 2\n' in text
    assert 'eqsep_alarms_total{model="machines"} 1\n' in text
    assert 'le="+Inf"} 1\n' in text
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) > 6
    paths = client.get("/openapi.json").json()["paths"]
    assert len(paths) > 30
    for path, methods in paths.items():
        for method, operation in methods.items():
            assert operation.get("description") or operation.get("summary"), (method, path)
    score = paths["/api/v1/models/{name}/score"]["post"]
    assert set(score["requestBody"]["content"]) == {"application/json", "text/csv", ARROW}


def test_an_admin_alone_sets_who_is_told(service):
    path = "/api/v1/models/machines/notices"
    asked = {"url": "https://plant.example/hook", "events": ["drift"]}
    judge, client = service.client("judge"), service.client("admin")
    assert judge.post(path, json=asked).status_code == 403
    assert judge.get(path).status_code == 403
    secret = client.post(path, json=asked).json()["secret"]
    assert client.post(path, json=asked).json() == {"secret": secret}
    assert client.get(path).json() == []
    for wrong in ({"url": "ftp://plant.example"}, {"events": ["all"]}, {"hours": 0}):
        assert client.post(path, json=wrong).status_code in (400, 422)
