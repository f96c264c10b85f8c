"""Incidents: how alarms fold, by entity, name, look and time."""

from itertools import pairwise

import numpy as np
import pytest
from consoled import consoled, pump_rows
from hypothesis import given
from hypothesis import strategies as st

from eqsep import Detector
from eqsep.detector import Config
from eqsep.serve import schema
from eqsep.serve.alarms import Filter
from eqsep.serve.incidents import folded, over_time
from eqsep.serve.store import Missing
from eqsep.serve.workspace import Workspace


@pytest.fixture
def ws(url):
    made = consoled(url).ws
    yield made
    made.close()


def came(ws, rows, *, model="pumps", at):
    """The numbers of rows that came at a time."""
    numbers = [answer.id for answer in ws.intake.take(model, rows)]
    table = schema.rows
    with ws.store.writing() as connection:
        connection.execute(table.update().where(table.c.id.in_(numbers)).values(at=at))
    return numbers


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 100)), max_size=30), st.floats(0.1, 50)
)
def test_each_value_is_folded_once_with_its_key_and_without_a_gap(values, gap):
    keys, at = [key for key, _ in values], [time for _, time in values]
    found = folded(keys, at, gap=gap)
    assert sorted(place for places in found for place in places) == list(range(len(values)))
    for places in found:
        times = [at[place] for place in places]
        assert len({keys[place] for place in places}) == 1
        assert all(0 <= b - a <= gap for a, b in pairwise(times))
    starts = [(keys[places[0]], at[places[0]], at[places[-1]]) for places in found]
    for key, first, _ in starts:  # another one of the key ended long before, or begins after
        others = [end for other, begin, end in starts if other == key and begin < first]
        assert all(first - end > gap for end in others)


@given(st.lists(st.floats(1e9, 2e9), min_size=1, max_size=50))
def test_bars_count_every_alarm_of_the_time_that_they_show(at):
    bars = over_time(at)
    assert 0 < len(bars) <= 60
    assert all(a.end == b.start for a, b in pairwise(bars))
    shown = [time for time in at if time >= bars[0].start]
    assert sum(bar.alarms for bar in bars) == len(shown) > 0
    assert max(at) < bars[-1].end


@pytest.mark.parametrize(
    ("span", "width"), [(30, 1), (3000, 60), (86_400, 3600), (40 * 86_400, 86_400)]
)
def test_bars_are_seconds_minutes_hours_or_days(span, width):
    bars = over_time([1e9, 1e9 + span])
    assert {bar.end - bar.start for bar in bars} == {width}
    assert bars[0].start % width == 0


def test_alarms_of_an_entity_are_one_incident_until_it_is_quiet_for_long(ws):
    first = came(ws, pump_rows((6, 0), 3, seed=1, machine="m7"), at=1000.0)
    unseen = came(ws, pump_rows((-7, -7), 1, seed=2, machine="m7"), at=1500.0)
    later = came(ws, pump_rows((6, 0), 1, seed=3, machine="m7"), at=2101.0)
    page = ws.folding.incidents("pumps", Filter(entity="m7"))
    assert [one.alarms for one in page.incidents] == [later, first + unseen]
    assert (page.total, page.n_alarms) == (2, 5)
    incident = page.incidents[1]
    assert (incident.id, incident.entity, incident.kind) == (first[0], "m7", "leak")
    assert (incident.first, incident.last) == (1000.0, 1500.0)
    alarms = {alarm.id: alarm.now.score for alarm in ws.alarms.some(incident.alarms)}
    assert incident.score == max(alarms.values()) == alarms[incident.worst]
    assert [bar.alarms for bar in page.over_time if bar.alarms] == [3, 1, 1]
    ws.ledger.set_settings("pumps", gap=11)
    assert ws.folding.incidents("pumps", Filter(entity="m7")).total == 1
    by_score = ws.folding.incidents("pumps", Filter(order="score"))
    found = [one.score for one in by_score.incidents]
    assert found == sorted(found, reverse=True)


def test_an_incident_has_the_name_of_most_or_else_of_the_worst(ws):
    numbers = came(ws, pump_rows((6, 0), 4, seed=4, machine="m8"), at=1000.0)
    table = schema.rows

    def named(*kinds):
        with ws.store.writing() as connection:
            for number, kind, score in zip(numbers, kinds, (0.9, 0.5, 0.4, 0.3), strict=True):
                one = table.update().where(table.c.id == number)
                connection.execute(one.values(now_kind=kind, now_score=score))
        return ws.folding.incident("pumps", numbers[0]).kind

    assert named("a", "b", "b", "c or b") == "b"
    assert named("a or b", "b", "b", "a") == "a"
    assert named("a", "b", "b", "b") == "b"


def test_a_verdict_on_an_incident_is_one_on_its_rows(ws):
    (incident,) = ws.folding.incidents("pumps", Filter(entity="m2")).incidents
    assert len(incident.alarms) == 3
    assert ws.folding.incident("pumps", incident.alarms[-1]) == incident
    ws.alarms.assign(incident.alarms[:1], "ada")
    assert ws.folding.incident("pumps", incident.id).assignees == ["ada"]
    ws.verdicts.give(incident.alarms, "expected", by="ada")
    assert ws.folding.incidents("pumps", Filter(entity="m2")).total == 0
    judged = ws.folding.incidents("pumps", Filter(state="judged")).incidents
    assert [one.alarms for one in judged] == [incident.alarms]
    assert ws.folding.incident("pumps", incident.id).alarms == incident.alarms
    quiet = ws.alarms.inbox("pumps", Filter(state="quiet")).alarms[0].id
    with pytest.raises(Missing, match=f"Row {quiet} is not in an incident"):
        ws.folding.incident("pumps", quiet)


def test_without_an_entity_alarms_fold_by_name_or_by_look(ws):
    ws.ledger.set_settings("pumps", entity=None)
    leaks = came(ws, pump_rows((6, 0), 3, seed=4), at=1000.0)
    left = came(ws, pump_rows((-7, -7), 4, seed=12), at=1001.0)
    up = came(ws, pump_rows((0, 9), 4, seed=13), at=1002.0)
    found = ws.folding.incidents("pumps", Filter(until=2000.0)).incidents
    assert {one.kind: one.alarms for one in found if one.kind == "leak"} == {"leak": leaks}
    assert sorted(one.alarms for one in found if one.kind == "unseen") == [left, up]


def test_the_entity_is_the_groups_column_unless_another_is_set(url):
    rng = np.random.default_rng(0)
    rows = [{"x": float(x), "host": f"h{i % 90}"} for i, x in enumerate(rng.normal(size=900))]
    detector = Detector(false_alarm_rate=0.05, n_landmarks=30, random_state=0, config=Config.fast())
    ws = Workspace(url)
    ws.ledger.add("hosts", detector.fit(rows, groups="host"), by="ada")
    alarms = [answer.id for answer in ws.intake.take("hosts", [{"x": 9.0, "host": "h3"}] * 2)]
    assert [one.entity for one in ws.alarms.some(alarms)] == ["h3", "h3"]
    assert ws.folding.incidents("hosts").incidents[0].alarms == alarms
    assert ws.purging.purge("hosts", "h3", by="ada").rows == 2
    ws.close()
