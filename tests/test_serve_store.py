"""What the service says while its store fails, and that it goes on once it works again."""

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from databases import HOMES, WHY_NOT, postgres_server
from served import GOOD, HOT, served
from sqlalchemy import event, insert, select

from eqsep.serve import schema
from eqsep.serve.store import Store, Unavailable
from eqsep.serve.web.service import Batcher

API = "/api/v1"
SCORE = f"{API}/models/machines/score"
READY = "/health/ready"


def assert_unavailable(answer):
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) >= 1
    assert "database" in answer.text


def writes(client):
    """Requests that write, of the API and of the console."""
    return [
        client.post(SCORE, json={"rows": [HOT] * 40}),
        client.post(f"{API}/alarms/1/note", json={"note": "x" * 2_000}),
        client.post(f"{API}/verdicts", json={"rows": [1], "verdict": "unsure"}),
        client.post("/m/machines/alarms/1/note", data={"note": "x" * 2_000}),
    ]


def test_a_locked_database_is_told_and_waited_for(tmp_path):
    path = tmp_path / "eqsep.db"
    service = served(f"sqlite:///{path}?timeout=0.1")
    with service.client("admin") as client:
        client.post(SCORE, json=HOT)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for answer in writes(client):
            assert_unavailable(answer)
        assert client.get(READY).status_code == 503
        assert client.get("/health/live").status_code == 200
        assert client.get(f"{API}/models").status_code == 200  # readers go on
        other.execute("ROLLBACK")
        other.close()
        assert client.get(READY).status_code == 200
        assert [answer.status_code for answer in writes(client)] == [200] * 4


def test_threads_take_turns_at_a_database_in_memory():
    store, table = Store("sqlite://"), schema.monitors

    def write(n):
        store.write(insert(table).values(model=f"{n}", worker="", at=0.0, state=b""))
        return len(store.rows(select(table.c.model).where(table.c.model == f"{n}")))

    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(write, range(100))] == [1] * 100


def test_threads_wait_for_each_other_and_not_in_the_database(tmp_path):
    """SQLite, which waits here for no writer, would refuse the second."""
    store, table = Store(f"sqlite:///{tmp_path / 'eqsep.db'}?timeout=0"), schema.monitors

    def write(n):
        with store.writing() as connection:
            connection.execute(insert(table).values(model=f"{n}", worker="", at=0.0, state=b""))
            time.sleep(0.02)

    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(write, range(12))] == [None] * 12
    store.close()


def test_a_full_disk_is_told(tmp_path):
    service = served(f"sqlite:///{tmp_path / 'eqsep.db'}")
    most = 10**6  # pages

    def limit(connection, *_):
        connection.execute(f"PRAGMA max_page_count={most}")

    # SQLite limits a connection, and the pool has several, as many as threads have used at once.
    event.listen(service.ws.store.engine, "checkout", limit)
    with service.client("admin") as client:
        client.post(SCORE, json=HOT)
        with service.ws.store.engine.connect() as connection:
            most = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        answers = [client.post(SCORE, json={"rows": [HOT] * 400}) for _ in range(5)]
        assert_unavailable(answers[-1])
        assert_unavailable(client.get(READY))  # a small write may still find a place in a page
        assert client.get(f"{API}/models").status_code == 200
        most = 10**6
        assert client.get("/health/ready").status_code == 200
        assert client.post(SCORE, json=HOT).status_code == 200


@pytest.mark.extra
@pytest.mark.skipif(not HOMES, reason=WHY_NOT)
def test_a_database_that_is_gone_is_told():
    with ExitStack() as server:
        service = served(server.enter_context(postgres_server()))
        client = service.client("admin")
        assert client.get("/health/ready").status_code == 200
        server.close()
        for path in (READY, f"{API}/models", "/m/machines/inbox", "/metrics"):
            assert_unavailable(client.get(path))
        assert_unavailable(client.post(SCORE, json=GOOD))
        assert client.get("/health/live").status_code == 200


def test_requests_that_wait_together_fail_together():
    """One by one, each would wait for the database in vain."""
    tried = []

    def take(_model, rows, _keep):
        tried.append(len(rows))
        raise Unavailable("The database is unavailable.")

    batcher = Batcher(take, most=100)

    async def ask():
        asked = [asyncio.ensure_future(batcher.answers("m", [{}], keep=True)) for _ in range(5)]
        await asyncio.sleep(0)
        batcher.start()
        return await asyncio.gather(*asked, return_exceptions=True)

    found = asyncio.run(ask())
    batcher.stop()
    assert [type(one) for one in found] == [Unavailable] * 5
    assert tried == [5]
