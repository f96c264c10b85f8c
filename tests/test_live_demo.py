"""`eqsep demo --serve`: payments arrive, and somebody can sign in."""

import io
import re
import socket
import time

import pytest

from eqsep.cli import demo as live_demo
from eqsep.cli.console import Screen
from eqsep.demo.arrivals import ENTITY, FRAUDS, arriving, fitted_detector
from eqsep.errors import UserError
from eqsep.serve.alarms import Filter
from eqsep.serve.workspace import Workspace


@pytest.fixture
def small(monkeypatch):
    """A demonstration that is filled soon."""
    monkeypatch.setattr(
        live_demo, "fitted_detector", lambda: fitted_detector(n_rows=600, n_landmarks=60)
    )


def until_payments_arrive(asked, listener):
    """In place of the server: it ends once payments have arrived."""
    ws = asked.workspace()
    while ws.watching.status("payments").rows <= 900:
        time.sleep(0.02)
    assert listener.getsockname()[0] == "127.0.0.1"
    ws.close()


@pytest.mark.usefixtures("small")
def test_it_serves_payments_that_arrive(monkeypatch, tmp_path):
    monkeypatch.setattr("eqsep.serve.web.server.serve", until_payments_arrive)
    folder = tmp_path / "out" / "serve"
    console = Screen(file=io.StringIO(), width=300)
    live_demo.serve_payments(console, tmp_path / "out", speed=200, port=0)
    told = console.file.getvalue()
    assert all(kind in told for kind in FRAUDS)
    token = re.search(r"http://127.0.0.1:\d+/login#(\S+)", told)[1]
    ws = Workspace.in_folder(folder)
    assert ws.people.check(token).role == "admin"
    alarms = ws.alarms.inbox("payments", Filter()).alarms
    assert "unseen" in {alarm.now.kind for alarm in alarms}
    assert all(alarm.entity == alarm.row[ENTITY] for alarm in alarms)
    versions = ws.ledger.versions("payments")
    ws.close()
    live_demo.serve_payments(console, tmp_path / "out", speed=200, port=0)  # goes on from there
    again = Workspace.in_folder(folder)
    assert again.ledger.versions("payments") == versions
    again.close()


def test_what_cannot_be_is_said(tmp_path):
    with pytest.raises(UserError, match="--speed expects up to 1,000"):
        live_demo.serve_payments(Screen(), tmp_path, speed=0, port=0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"Cannot listen on 127.0.0.1:{port}"):
            live_demo.serve_payments(Screen(), tmp_path, speed=1, port=port)


def test_frauds_come_in_bursts_on_few_cards():
    rows = arriving(random_state=0)
    payments = [next(rows) for _ in range(2_000)]
    kinds = [kind for _, kind in payments]
    assert set(kinds) == {"normal", *FRAUDS}
    assert 0.8 < kinds.count("normal") / 2_000 < 0.97
    cards = {kind: [row[ENTITY] for row, k in payments if k == kind] for kind in FRAUDS}
    assert all(len(set(of_kind)) < 0.8 * len(of_kind) for of_kind in cards.values())
    assert all("time" not in row and 0 <= row["hour"] <= 24 for row, _ in payments)
