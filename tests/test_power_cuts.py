"""What a service has answered outlasts a power cut, wherever it comes; and its backups."""

import random
import sqlite3
import stat
import threading
from contextlib import closing
from functools import partial

import pytest
import sqlalchemy
from invoking import CliRunner
from served import GOOD, HOT, small_detector

from eqsep.cli import app
from eqsep.errors import UserError
from eqsep.serve import store
from eqsep.serve.backups import back_up, check, restore
from eqsep.serve.ledger import Lesson
from eqsep.serve.workspace import DATABASE, Workspace


def facts(ws):
    """What a service knows that it must not lose."""
    live = ws.ledger.live("machines")
    said = ws.store.rows(sqlalchemy.select(store.schema.verdicts.c.row))
    return {
        "digest": live.digest,
        "verdicts": {row.row for row in said},
        "people": {person.name for person in ws.people.all()},
        "audit": len(ws.people.audit(limit=1000)),
    }


@pytest.fixture
def folder(tmp_path):
    """The folder of a service with a model and some alarms."""
    there = tmp_path / "served"
    with closing(Workspace.in_folder(there)) as ws:
        ws.ledger.add("machines", small_detector(), by="test")
        ws.intake.take("machines", [HOT | {"heat": 120.0 + i} for i in range(6)])
    return there


def test_what_was_answered_outlasts_a_power_cut_at_any_sync(folder, tmp_path, monkeypatch):
    power_cuts = pytest.importorskip("power_cuts", reason="needs apsw")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    disk = power_cuts.Disk()
    recorder = power_cuts.Recorder(disk)
    driven = partial(sqlalchemy.create_engine, module=power_cuts.Driver)
    answered = []  # (steps of the disk, what was known by then)
    with monkeypatch.context() as patched:
        patched.setattr(sqlalchemy, "create_engine", driven)
        with closing(Workspace.in_folder(folder)) as ws:
            lesson = Lesson([GOOD], ["normal"], judged=False)
            for act in (
                lambda: ws.people.issue("bo", "judge", by="test"),
                lambda: ws.verdicts.give([1, 2], "true", kind="heat", by="bo"),
                lambda: ws.intake.take("machines", [HOT]),
                lambda: ws.verdicts.give([3], "false alarm", by="bo"),
                lambda: ws.ledger.learn("machines", lesson, by="bo"),
                lambda: ws.people.revoke("bo", by="test"),
            ):
                act()
                answered.append((len(disk.steps), facts(ws)))
    recorder.unregister()
    assert len(disk.syncs) >= len(answered)
    for number, cut in enumerate([*disk.syncs, len(disk.steps)]):
        left = tmp_path / f"cut{number}"
        left.mkdir()
        for name, content in disk.left(before, cut, random.Random(number)).items():
            if not name.endswith("-shm"):  # of memory alone
                (left / name).write_bytes(content)
        known = [was for at, was in answered if at <= cut]
        check(left / DATABASE)
        with closing(Workspace.in_folder(left)) as ws:
            assert ws.ledger.replay("machines").same_bits
            if known:
                now = facts(ws)
                assert now["verdicts"] >= known[-1]["verdicts"]
                assert now["audit"] >= known[-1]["audit"]
                at_least_as_new = [was["digest"] for _, was in answered[len(known) - 1 :]]
                assert now["digest"] in at_least_as_new
                assert now["people"] in [was["people"] for _, was in answered[len(known) - 1 :]]


def test_files_of_a_service_are_its_owners_alone(folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with closing(Workspace.in_folder(folder)) as ws:
        ws.people.issue("ada", "view", by="test")  # there is a log now
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert DATABASE in modes


def test_an_error_of_the_database_shows_no_value_of_a_row(folder):
    with closing(Workspace.in_folder(folder)) as ws, ws.store.writing() as connection:
        statement = sqlalchemy.text("INSERT INTO people (name, token, at) VALUES (:name, :name, 0)")
        with pytest.raises(sqlalchemy.exc.IntegrityError) as caught:
            connection.execute(statement, {"name": "a secret"})
    assert "a secret" not in str(caught.value)


def test_a_damaged_database_is_noticed_at_the_start(folder):
    path = folder / DATABASE
    content = bytearray(path.read_bytes())
    for page in range(4, len(content) // 4096):  # the schema stays
        content[page * 4096 + 8 : page * 4096 + 600] = bytes(592)
    path.write_bytes(content)
    ran = CliRunner().invoke(app, ["serve", "--data", str(folder), "--port", "0"])
    assert ran.exit_code == 2
    assert "is damaged" in ran.stderr
    assert "backup" in ran.stderr


def test_a_backup_under_load_is_one_state_and_can_be_restored(folder, tmp_path):
    out, ends = tmp_path / "backup.db", threading.Event()
    with closing(Workspace.in_folder(folder)) as ws:

        def issue():
            number = 0
            while not ends.is_set():
                ws.people.issue(f"p{number}", "view", by="test")
                number += 1

        writer = threading.Thread(target=issue)
        writer.start()
        try:
            ran = CliRunner().invoke(app, ["serve", "backup", str(out), "--data", str(folder)])
        finally:
            ends.set()
            writer.join()
        assert ran.exit_code == 0, ran.stderr
        with pytest.raises(UserError, match="is in use"):
            restore(out, folder / DATABASE)
        digest = ws.ledger.live("machines").digest
        ws.verdicts.give([1], "true", kind="heat", by="test")
        changed = ws.ledger.live("machines").digest
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    ran = CliRunner().invoke(app, ["serve", "restore", str(out), "--data", str(folder)])
    assert ran.exit_code == 0, ran.stderr
    (aside,) = folder.glob(f"{DATABASE}.*")
    with closing(Workspace.in_folder(folder)) as ws:
        assert ws.ledger.live("machines").digest == digest
        people = {person.name for person in ws.people.all()}
        n_issued = sum(entry.action == "token issued" for entry in ws.people.audit(limit=10**5))
        assert len(people) == n_issued  # a token and its entry came together
    with closing(Workspace(f"sqlite:///{aside}")) as ws:
        assert ws.ledger.live("machines").digest == changed


@pytest.mark.parametrize("content", [b"", b"not a database", None])
def test_what_is_no_backup_is_refused_and_nothing_is_changed(folder, tmp_path, content):
    before = (folder / DATABASE).read_bytes()
    file = tmp_path / "backup.db"
    if content is None:
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE other (a)")
    else:
        file.write_bytes(content)
    with pytest.raises(UserError, match=r"backup"):
        restore(file, folder / DATABASE)
    assert (folder / DATABASE).read_bytes() == before
    assert [path.name for path in folder.iterdir()] == [DATABASE]


def test_a_backup_overwrites_nothing(folder, tmp_path):
    out = tmp_path / "there"
    out.write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        back_up(folder / DATABASE, out)
    assert out.read_text() == "mine"
