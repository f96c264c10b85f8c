"""Exemptions: expected alarms stay out of the inbox for a while, and come back."""

import time

import pytest
from consoled import consoled, pump_rows
from pydantic import ValidationError

from eqsep.errors import UserError
from eqsep.serve import schema
from eqsep.serve.alarms import Filter
from eqsep.serve.exemptions import Exempted
from eqsep.serve.ledger import Lesson
from eqsep.serve.notices import Subscription
from eqsep.serve.store import Missing
from eqsep.serve.verdicts import n_like_it
from eqsep.serve.workspace import Workspace


@pytest.fixture
def ws(url):
    made = consoled(url).ws
    yield made
    made.close()


def n_open(ws, **wanted):
    return ws.alarms.inbox("pumps", Filter(**wanted)).total


def test_alarms_of_an_entity_and_range_leave_the_inbox_until_it_is_revoked(ws):
    asked = Exempted(entity="m3", column="heat", low=-9.0, high=-5.0, days=30, note="a trial")
    made = ws.exemptions.add("pumps", asked, by="ada")
    assert made.expires == pytest.approx(time.time() + 30 * 86_400, abs=60)
    assert (n_open(ws, entity="m3"), n_open(ws, state="exempt")) == (0, 12)
    answers = ws.intake.take("pumps", pump_rows((-7, -7), 4, seed=5, machine="m3"))
    assert all(answer.alarm for answer in answers)  # the model says what it said
    ws.intake.take("pumps", pump_rows((-7, -7), 3, seed=5, machine="m4"))  # another entity
    ws.intake.take("pumps", pump_rows((7, -7), 2, seed=5, machine="m3"))  # another range
    assert (n_open(ws, entity="m3"), n_open(ws, entity="m4")) == (2, 3)
    assert ws.exemptions.covered("pumps") == {made.id: 16}
    assert ws.folding.incidents("pumps", Filter(entity="m3")).n_alarms == 2
    assert ws.verdicts.preview([answers[0].id], "expected").n_looked_at == len(
        ws.alarms.standing("pumps")
    )
    ws.exemptions.revoke("pumps", made.id, by="bob")
    assert (n_open(ws, entity="m3"), n_open(ws, state="exempt")) == (18, 0)
    assert ws.exemptions.all("pumps")[0].revoked_by == "bob"
    told = [(entry.who, entry.action) for entry in ws.people.audit()][:2]
    assert told == [("bob", "exemption revoked"), ("ada", "exempted")]
    with pytest.raises(Missing):
        ws.exemptions.revoke("pumps", made.id, by="bob")


def test_an_exemption_ends_by_itself(ws):
    ws.exemptions.add("pumps", Exempted(entity="m5", days=1), by="ada")
    ws.intake.take("pumps", pump_rows((-7, -7), 2, seed=5, machine="m5"))
    assert n_open(ws, entity="m5") == 0
    with ws.store.writing() as connection:
        connection.execute(schema.exemptions.update().values(expires=time.time() - 1))
    ws.intake.take("pumps", pump_rows((-7, -7), 2, seed=6, machine="m5"))
    assert n_open(ws, entity="m5") == 4  # those that were exempt, too


def test_alarms_of_an_ended_exemption_are_open_again_also_in_another_process(ws, url):
    made = ws.exemptions.add("pumps", Exempted(entity="m3", days=1), by="ada")
    kept = ws.exemptions.add("pumps", Exempted(column="heat", low=5.0, days=1), by="ada")
    assert ws.exemptions.covered("pumps") == {made.id: 12, kept.id: 3}
    number = min(a.id for a in ws.alarms.history("pumps", "m3"))
    with ws.store.writing() as connection:
        mine = schema.exemptions.c.id == made.id
        ended = schema.exemptions.update().where(mine).values(expires=time.time() - 1)
        connection.execute(ended)
    others = Workspace(url)
    assert others.alarms.explained(number).state == "open"
    assert n_open(others, state="exempt") == 3
    assert n_open(others, entity="m3") == 12
    assert others.folding.incidents("pumps", Filter(entity="m3")).n_alarms == 12
    assert others.exemptions.covered("pumps") == {kept.id: 3}
    others.close()


def test_a_purge_leaves_no_exemption_and_no_notice_of_an_entity(ws):
    ws.notices.subscribe("pumps", Subscription(url="http://127.0.0.1:9/"), by="ada")
    for machine in ("m3", "m4"):
        ws.intake.take("pumps", pump_rows((-7, -7), 2, seed=5, machine=machine))
    ws.notices.tick()
    assert len(ws.notices.deliveries("pumps")) == 2
    ws.exemptions.add("pumps", Exempted(entity="m3", days=1), by="ada")
    ws.purging.purge("pumps", "m3", by="ada")
    assert ws.exemptions.all("pumps") == []
    assert len(ws.notices.deliveries("pumps")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"column": "heat"},
        {"entity": "m1", "low": 1.0},
        {"column": "heat", "low": 2.0, "high": 1.0},
        {"column": "colour", "low": 2.0},
    ],
)
def test_what_exempts_all_or_nothing_is_refused(ws, wrong):
    with pytest.raises(UserError):
        ws.exemptions.add("pumps", Exempted(days=1, **wrong), by="ada")
    assert ws.exemptions.all("pumps") == []


@pytest.mark.parametrize("days", [0, -1, 1e9, float("nan")])
def test_an_exemption_has_an_end(days):
    with pytest.raises(ValidationError):
        Exempted(entity="m1", days=days)


def test_so_many_false_alarms_like_one_would_end_it(ws):
    row = {"heat": 3.6, "load": -3.4}
    model = ws.ledger.live_model("pumps")
    assert model.verdicts([row]).alarm[0]
    n = n_like_it(model, row)
    assert n > 1

    def raises(n_rows):
        learned = ws.ledger.learnt(
            ws.ledger.live("pumps").id, Lesson([row] * n_rows, ["normal"] * n_rows, judged=True)
        )
        return bool(learned.model.verdicts([row]).alarm[0])

    assert not raises(n)
    assert raises(n - max(1, n // 4))
