"""The typed client against a service that listens."""

import subprocess
import sys

import pytest
from served import GOOD, HOT, small_detector

from eqsep.client import Answer, Client, ServiceError
from eqsep.serve.web.server import running
from eqsep.serve.workspace import Workspace

NAME = "machines, hall 1"


@pytest.fixture(scope="module")
def ws(tmp_path_factory):
    ws = Workspace.in_folder(tmp_path_factory.mktemp("store"))
    ws.ledger.add(NAME, small_detector(), by="test")
    return ws


@pytest.fixture(scope="module")
def client(ws):
    token = ws.people.issue("ada", "admin", by="test")
    with running(ws) as url:
        yield Client(url, token)


def test_rows_are_scored_and_a_bad_one_says_why(client):
    good, bad, hot = client.score(NAME, [GOOD, {"heat": "hot"}, HOT])
    assert (good.alarm, good.error) == (False, None)
    assert bad == Answer(
        error="missing columns: 'load', 'shape'. Pass null where a value is not known"
    )
    assert (hot.alarm, hot.kind) == (True, "unseen")
    (only_bad,) = client.score(NAME, [{}], keep=False)
    assert only_bad.error.startswith("missing columns")


def test_the_loop_from_an_alarm_to_its_undoing(client):
    ids = [client.score(NAME, [HOT | {"heat": 140.0 + i}])[0].id for i in range(2)]
    assert client.alarms(NAME, limit=1, order="score")["total"] >= 2
    assert client.alarm(ids[0])["alarm"]["reasons"]["reasons"][0]["column"] == "heat"
    assert client.explain(NAME, [HOT], top=1)[0]["reasons"][0]["column"] == "heat"
    before = client.models()[0]["live"]["digest"]
    assert client.preview(ids, "true", kind="hot")["rows"][0]["alarm"]["id"] == ids[0]
    given = client.judge(ids, "true", kind="hot", note="seen")
    assert client.score(NAME, [HOT], keep=False)[0].kind == "hot"
    undone = client.undo([verdict["id"] for verdict in given["verdicts"]])
    assert undone["digest"] == before


def test_learning_versions_watch_and_queue(client):
    first = client.versions(NAME)[0]["id"]
    learnt = client.learn(NAME, [HOT], ["hot"], judged=True)
    assert client.versions(NAME)[0]["id"] == learnt["id"]
    assert client.revert(NAME, first)["operation"] == "revert"
    assert client.watch(NAME)["promised"] == 0.01
    assert client.queue(NAME)["missed"]["total"] == 0


def test_what_is_refused_is_an_error_with_a_status(client):
    with pytest.raises(ServiceError, match="Model 'nothing' does not exist") as caught:
        client.score("nothing", [GOOD])
    assert caught.value.status == 404
    with pytest.raises(ServiceError, match="A token is required") as caught:
        Client(client.url, "wrong").models()
    assert caught.value.status == 401
    with pytest.raises(ServiceError, match="verdict must be one of"):
        client.judge([1], "perhaps")


def test_it_needs_the_standard_library_alone():
    code = "import sys, eqsep.client; print({'numpy', 'fastapi', 'sqlalchemy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
