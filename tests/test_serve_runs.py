"""Models with windows in the service: rows that come one by one score as in their whole run."""

import threading

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from served import Served

from eqsep import Detector
from eqsep.detector import Config
from eqsep.detector.audit import NewKindWarning
from eqsep.errors import UserError
from eqsep.serve import intake
from eqsep.serve.alarms import Filter
from eqsep.serve.web.app import create_app
from eqsep.serve.workspace import Workspace

SETTINGS = {"bandwidth": 1.0, "n_landmarks": 40, "false_alarm_rate": 0.2, "random_state": 0}
VALUES = ["temperature", "flow"]


def sensors(seed=0, n_runs=12, n_rows=40):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n_runs * n_rows, 2)), columns=VALUES)
    return frame.assign(
        run=np.repeat([f"r{i:02d}" for i in range(n_runs)], n_rows),
        minute=np.tile(np.arange(n_rows), n_runs),
    )


def as_rows(frame):
    return frame.to_dict("records")


@pytest.fixture(scope="module")
def detector():
    fit = Detector(**SETTINGS, window=5, config=Config.fast())
    return fit.fit(sensors(), groups="run", time="minute")


@pytest.fixture
def work(url, detector):
    work = Workspace(url, keep_quiet=1.0)
    work.ledger.add("plant", detector, by="ada", settings={"entity": "run"})
    yield work
    work.close()


def scores(answers):
    assert [a.error for a in answers] == [None] * len(answers)
    return [answer.score for answer in answers]


def test_rows_that_come_one_by_one_score_as_the_whole_run(work, detector, url):
    """Three runs side by side, in requests of some rows, with a restart in the middle."""
    new = sensors(seed=1, n_runs=3).sort_values(["minute", "run"], kind="stable")
    sizes, got, start = [1, 1, 2, 5, 1, 9, 1], [], 0
    other = Workspace(url, keep_quiet=1.0)
    while start < len(new):
        size = sizes[len(got) % len(sizes)]
        taker = work if start < 60 else other
        got += scores(taker.intake.take("plant", as_rows(new[start : start + size])))
        start += size
    assert_array_equal(got, detector.score_samples(new))
    other.close()


def test_rows_without_groups_are_one_run(url):
    rows = sensors()[VALUES]
    with pytest.warns(UserWarning, match="promise"):
        detector = Detector(**SETTINGS, window=3).fit(rows.cumsum() / 10)
    work = Workspace(url)
    work.ledger.add("plant", detector, by="ada")
    new = as_rows(sensors(seed=1, n_runs=1)[VALUES])
    got = [score for row in new for score in scores(work.intake.take("plant", [row]))]
    assert_array_equal(got, detector.score_samples(new))
    work.close()


def test_a_row_that_comes_too_late_is_refused_and_is_no_part_of_its_run(work, detector):
    new = as_rows(sensors(seed=1, n_runs=2))
    first = work.intake.take("plant", [new[0], new[2], new[1], new[40], new[3]])
    assert [answer.error is None for answer in first] == [True, True, False, True, True]
    told = "column 'minute': expected 2 or later, the time of the last row of run 'r00', got 1"
    assert first[2].error == told
    again = work.intake.take("plant", [new[1]])
    assert again[0].error == told.replace("expected 2", "expected 3")
    rest = work.intake.take("plant", new[4:9])  # after a gap too
    whole = detector.score_samples([new[0], new[2], new[3], *new[4:9]])
    assert_array_equal([first[i].score for i in (0, 1, 4)] + scores(rest), whole)


def test_a_row_that_cannot_be_read_harms_no_other(work, detector):
    new = as_rows(sensors(seed=1, n_runs=1))
    bad = {**new[1], "flow": "much"}
    answers = work.intake.take("plant", [new[0], bad, {**new[2], "run": None}, new[3]])
    assert [answer.error is None for answer in answers] == [True, False, False, True]
    assert "'run' has no value" in answers[2].error
    whole = detector.score_samples([new[0], new[3]])
    assert_array_equal([answers[0].score, answers[3].score], whole)


def test_what_is_not_kept_is_no_part_of_a_run(work, detector):
    new = as_rows(sensors(seed=1, n_runs=1))
    work.intake.take("plant", new[:6])
    whole = detector.score_samples(new[:8])
    for _ in range(2):
        assert_array_equal(scores(work.intake.score("plant", new[6:8])), whole[6:])
    late = work.intake.score("plant", [new[1]])
    assert "expected 5 or later" in late[0].error
    [why] = work.intake.explain("plant", new[6:7], top=2)
    assert why == detector.explain(new[:7], top=2)[6]
    assert_array_equal(scores(work.intake.take("plant", new[6:8])), whole[6:])


def test_a_verdict_teaches_the_row_with_its_windows(work, detector):
    frame = sensors(seed=1, n_runs=2)
    frame.loc[frame.index % 40 >= 20, "flow"] += 6
    answers = [a for row in as_rows(frame) for a in work.intake.take("plant", [row])]
    alarms = [i for i, answer in enumerate(answers) if answer.alarm and i % 40 >= 20][:5]
    ids = [answers[i].id for i in alarms]
    before = work.ledger.live("plant")
    given = work.verdicts.give(ids, "true", kind="leak", by="ada")
    windowed = detector.plan_.windows.transform(frame, "run", "minute").take(np.array(alarms))
    fit = Detector(**SETTINGS, window=5, config=Config.fast())
    same = fit.fit(sensors(), groups="run", time="minute")
    with pytest.warns(NewKindWarning):
        same.partial_fit(windowed, ["leak"] * len(alarms), judged=True)
    assert_array_equal(work.ledger.model(given.version.id).score.kernel.coef, same.coef_)
    assert work.ledger.replay("plant").same_bits
    page = work.alarms.inbox("plant")
    assert {alarm.now.version for alarm in page.alarms} == {given.version.id}
    now = {alarm.id: alarm.now.score for alarm in page.alarms}
    whole = same.score_samples(frame)
    assert all(whole[i] == now[a.id] for i, a in enumerate(answers) if a.id in now)
    undone = work.verdicts.undo([verdict.id for verdict in given.verdicts], by="ada")
    assert undone.digest == before.digest
    reasons = work.alarms.explained(ids[0]).reasons["reasons"]
    assert any("of 5 rows" in one["column"] for one in reasons)


def test_requests_of_one_run_go_one_after_the_other(url):
    """Each row is the one before of one other: nobody has read a run that another was writing."""
    rows = sensors()[["run", *VALUES]]
    fit = Detector(**SETTINGS, window=2, config=Config.fast())
    detector = fit.fit(rows, groups="run")
    works = [Workspace(url, keep_quiet=1.0) for _ in range(2)]
    works[0].ledger.add("plant", detector, by="ada")

    def send(work, first):
        for i in range(first, first + 20):
            work.intake.take("plant", [{"run": 7, "temperature": float(i), "flow": 0.0}])

    threads = [threading.Thread(target=send, args=(w, 100 * i)) for i, w in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = [alarm.row for state in ("open", "quiet") for alarm in _all(works[0], state)]
    change = "temperature, change from the row before"
    before = [row["temperature"] - row[change] for row in kept]
    assert len(kept) == 40
    assert len(set(before)) >= 39  # the first row has itself before it
    for work in works:
        work.close()


def _all(work, state):
    return work.alarms.inbox("plant", Filter(state=state), limit=500).alarms


def test_only_so_many_runs_are_kept(work, monkeypatch):
    monkeypatch.setattr(intake, "MOST_RUNS", 2)
    new = sensors(seed=1, n_runs=4)
    for minute in (0, 1):
        for run in ("r00", "r01", "r02", "r03"):
            row = new[(new["run"] == run) & (new["minute"] == minute)]
            answer = work.intake.take("plant", as_rows(row))
            assert answer[0].error is None
    late = work.intake.take("plant", as_rows(new[(new["minute"] == 0)]))
    assert [answer.error is None for answer in late] == [True, True, False, False]


def test_a_purged_entity_leaves_no_run_behind(work, detector):
    new = as_rows(sensors(seed=1, n_runs=2))
    work.intake.take("plant", new)
    work.purging.purge("plant", "r00", by="ada")
    again = work.intake.take("plant", [new[0], new[40]])
    assert again[0].score == detector.score_samples(new[:1])[0]
    assert "expected 39 or later" in again[1].error


def test_runs_are_watched_one_bet_each(work):
    for seed in (1, 2):
        new = sensors(seed=seed, n_runs=12)
        work.intake.take("plant", as_rows(new.assign(run=new["run"] + str(seed))))
    status = work.watching.status("plant")
    assert status.rows == 960
    assert status.martingale is not None
    assert status.broken_at is None
    new = sensors(seed=3, n_runs=12).assign(flow=lambda f: f["flow"] + 5)
    work.intake.take("plant", as_rows(new.assign(run=new["run"] + "3")))
    assert work.watching.status("plant").martingale > 1.5


def test_the_api_says_what_a_run_needs(detector):
    ws = Workspace("sqlite://")
    ws.ledger.add("plant", detector, by="test")
    tokens = {role: ws.people.issue(role, role, by="test") for role in ("judge", "admin")}
    new = as_rows(sensors(seed=1, n_runs=1))
    url = "/api/v1/models/plant"
    with Served(ws, create_app(ws), tokens).client("judge") as client:

        def refused(row):
            answer = client.post(f"{url}/score", json={"rows": [row]})
            assert answer.status_code == 422
            return answer.json()["errors"][0]["error"]

        whole = detector.score_samples(new[:10])
        got = [client.post(f"{url}/score", json=row).json()["answers"][0] for row in new[:8]]
        assert_array_equal([answer["score"] for answer in got], whole[:8])
        assert "expected 7 or later, the time of the last row of run 'r00'" in refused(new[3])
        assert "missing columns: 'run'" in refused({k: v for k, v in new[8].items() if k != "run"})
        assert "expected a value in every row" in refused({**new[8], "minute": None})
        assert "'minute': expected a number or a date" in refused({**new[8], "minute": "soon"})
        csv = pd.DataFrame(new[8:9]).to_csv(index=False)
        sent = client.post(f"{url}/score", content=csv, headers={"Content-Type": "text/csv"})
        assert sent.json()["answers"][0]["score"] == whole[8]
        asked = client.post(f"{url}/explain", json={"rows": [new[9], new[0]]}).json()
        assert asked["answers"][0]["score"] == whole[9]
        assert asked["answers"][1] is None
        assert "expected 9 or later" in asked["errors"][0]["error"]
        columns = client.get(url).json()["columns"]
        assert (columns["run"], columns["minute"]) == ("text", "time")
        taught = {"rows": new[:10], "labels": ["normal"] * 10, "judged": True}
        assert client.post(f"{url}/learn", json=taught).status_code == 200
        kept = client.get(f"{url}/alarms").json()["alarms"] or [{"row": new[0]}]
        mixed = {"rows": [new[0], kept[0]["row"] | _windows(detector)], "labels": ["normal"] * 2}
        answer = client.post(f"{url}/learn", json=mixed)
        assert "windows for every row, or for none" in answer.json()["error"]
        assert client.post(f"{url}/replay").json()["same_bits"]


def _windows(detector):
    return dict.fromkeys(detector.plan_.windows.added, 0.0)


def test_groups_that_are_no_column_cannot_be_served(work):
    rows = sensors()
    fit = Detector(**SETTINGS, window=3, config=Config.fast())
    beside = fit.fit(rows[VALUES], groups=rows["run"])
    with pytest.raises(UserError, match="cannot say which run they belong to"):
        work.ledger.add("beside", beside, by="ada")


def test_rows_that_do_not_say_their_group_are_scored_and_not_watched(url):
    """Windows need the group; a model without them scores a row alone, as it always did."""
    rows = sensors()[["run", *VALUES]]
    detector = Detector(**SETTINGS, config=Config.fast()).fit(rows, groups="run")
    work = Workspace(url)
    work.ledger.add("plant", detector, by="ada")
    new = as_rows(sensors(seed=1, n_runs=1)[["run", *VALUES]])
    without = {name: new[0][name] for name in VALUES}
    assert len(scores(work.intake.take("plant", [new[0], without, {**without, "run": None}]))) == 3
    assert work.watching.status("plant").martingale is None
    scores(work.intake.take("plant", new))
    assert work.watching.status("plant").martingale is not None
    work.close()


def test_rows_are_scored_again_as_they_came_as_a_process_does_that_reads_them(work, url):
    """What was encoded to be scored, with windows and missing values, is kept for that."""
    new = as_rows(sensors(seed=3, n_runs=2))
    new[3]["flow"] = None
    taken = [answer.id for answer in work.intake.take("plant", new)]
    work.verdicts.give(taken[:5], "false alarm", by="ada")
    live = work.ledger.live("plant").id
    other = Workspace(url)
    for named in (True, False):
        found = [
            one.alarms.said_by(one.ledger.model(live), live, "plant", taken, named=named)
            for one in (work, other)
        ]
        assert found[0] == found[1]
    assert [*found[0]] == taken
    standing = work.alarms.standing("plant")
    assert standing == other.alarms.standing("plant")
    assert {said.version for said in standing.values()} == {live}
    other.close()
