"""`eqsep serve` as a person starts it: one process or two, its words, and its end."""

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from copy import copy
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from invoking import CliRunner
from served import HOT, machine_rows, small_detector

from eqsep import Detector
from eqsep.cli import app
from eqsep.detector import Config
from eqsep.serve.ledger import digest
from eqsep.serve.workspace import Workspace


@pytest.fixture
def model(tmp_path):
    small_detector().save(tmp_path / "machines.eqsep")
    return tmp_path / "machines.eqsep"


def ask(url, token, body=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, headers), timeout=30) as answer:
        return json.load(answer)


def started(*words):
    """The service as a process, its address and its token, once it answers."""
    command = [sys.executable, "-m", "eqsep", "serve", *map(str, words), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = {}
    while "token" not in told:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        told.update([line.split(maxsplit=1)])
    url, token = told["console"].strip(), told["token"].strip()
    for _ in range(600):
        try:
            urlopen(f"{url}/health/ready", timeout=5).close()
            break
        except (URLError, OSError):
            time.sleep(0.1)
    return process, url, token


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize("n_processes", [1, pytest.param(2, marks=pytest.mark.extra)])
def test_a_service_is_started_used_and_ended_in_order(model, tmp_path, n_processes):
    words = (model, "--data", tmp_path / "kept", "--entity", "machine", "--workers", n_processes)
    process, url, token = started(*words)
    try:
        (answer,) = ask(f"{url}/api/v1/models/machines/score", token, HOT)["answers"]
        assert answer["alarm"]
        told = ask(f"{url}/api/v1/models/machines", token)
        assert told["settings"] == {"entity": "machine"}
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert errors == ""
    assert process.returncode in (0, -signal.SIGTERM)
    ws = Workspace.in_folder(tmp_path / "kept")
    assert ws.alarms.get(answer["id"]).entity == "m7"
    ws.close()


def run(*words):
    return CliRunner().invoke(app, ["serve", *map(str, words)])


@pytest.fixture
def kept(tmp_path):
    ws = Workspace.in_folder(tmp_path)
    ws.ledger.add("machines", small_detector(), by="test")
    ws.intake.take("machines", [HOT])
    ws.verdicts.give([1], "true", kind="overheated", by="test")
    yield tmp_path
    ws.close()


def test_replay_says_that_the_log_is_the_model(kept):
    result = run("replay", "--data", kept)
    assert result.exit_code == 0
    told = "machines: 2 versions replayed, identical bits; largest difference 0.0e+00"
    assert result.output.strip() == told


def test_replay_ends_with_1_where_the_log_was_changed(kept):
    ws = Workspace.in_folder(kept)
    with ws.store.writing() as connection:
        lesson = connection.exec_driver_sql("SELECT lesson FROM versions WHERE id = 2").scalar()
        changed = lesson.replace("140.0", "139.0")
        assert changed != lesson
        connection.exec_driver_sql("UPDATE versions SET lesson = ? WHERE id = 2", (changed,))
    ws.close()
    result = run("replay", "--data", kept, "--model", "machines")
    assert result.exit_code == 1
    assert "different bits" in result.output


def test_a_token_is_issued_and_taken_back(kept):
    result = run("token", "ada", "--role", "view", "--data", kept)
    ws = Workspace.in_folder(kept)
    token = result.output.strip()
    assert ws.people.check(token).role == "view"
    assert (
        run("token", "ada", "--revoke", "--data", kept).output == "The token of ada is revoked.\n"
    )
    ws.close()
    assert Workspace.in_folder(kept).people.check(token) is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["replay", "--data", "nowhere"], "There is no service in nowhere"),
        (["token", "ada", "--data", "nowhere"], "There is no service in nowhere"),
        (["--entity", "card"], "--entity needs MODEL: pass the model too"),
        (["nothing.eqsep"], "nothing.eqsep"),
        (["--database", "nonsense"], "'nonsense' is not the URL of a database"),
        (["--keep-quiet", "7"], "--keep-quiet must be a share between 0 and 1"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    result = run(*words, *([] if words[0] in ("replay", "token") else ["--port", "0"]))
    assert result.exit_code == 2
    assert told in re.sub(r"\s+", " ", result.output)


def test_a_port_that_is_taken_is_said(tmp_path, monkeypatch):
    import socket

    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = run("--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "Cannot listen on" in result.output


def test_other_machines_are_warned_of_and_a_team_keeps_its_tokens(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eqsep.cli.serve.serve", lambda *_: None)
    url = f"sqlite:///{tmp_path / 'team.db'}"
    words = (model, "--database", url, "--host", "0.0.0.0", "--port", "0", "--name", "Box.example")
    first, second = run(*words), run(*words)
    assert "can be reached from other machines" in first.output
    assert "machines, version 1: added" in first.output
    assert "machines, version 1\n" in second.output
    assert "a new one: eqsep serve token NAME" in second.output


def test_a_file_that_was_replaced_is_named_at_the_start_and_taken_if_asked(
    tmp_path, monkeypatch, model
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eqsep.cli.serve.serve", lambda *_: None)
    words = (model, "--port", "0")
    assert "added" in run(*words).output
    before = small_detector().model_
    copy(small_detector()).partial_fit(machine_rows(50, seed=3)).save(model)
    second = run(*words)
    assert "version 1: not that of" in second.output
    assert "--take makes it live" in second.output
    third = run(*words, "--take")
    assert "version 2: taken from" in third.output
    assert "--take" not in run(*words).output
    with closing(Workspace.in_folder(tmp_path / "eqsep-serve")) as ws:
        assert ws.ledger.replay("machines").same_bits
        assert [(e.who, e.action) for e in ws.people.audit() if e.action == "take"] == [
            ("eqsep serve", "take")
        ]
        assert ws.ledger.revert("machines", 1, by="ada").digest == digest(before)


def test_a_file_with_other_columns_is_not_taken(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eqsep.cli.serve.serve", lambda *_: None)
    run(model, "--port", "0")
    rows = [{"heat": row["heat"]} for row in machine_rows()]
    Detector(n_landmarks=20, random_state=0, config=Config.fast()).fit(rows).save(model)
    ran = run(model, "--port", "0", "--take")
    assert ran.exit_code == 2
    assert "columns of the file differ" in ran.output
