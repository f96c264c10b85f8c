"""How soon faults are found: episodes of a run, the first alarm in each, and false ones."""

import re

import numpy as np
import pandas as pd
import pytest
from invoking import CliRunner
from report_page import Page

from eqsep import Detector
from eqsep.cli import app
from eqsep.detector import PersistentAlarms
from eqsep.errors import UserError
from eqsep.evaluation import Review, assess, detection_delay

KIND = ["normal"] * 3 + ["leak"] * 4 + ["normal"] * 2 + ["leak"] * 2 + ["jam"] * 2
ALARM = [1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0]


def by_kind(found):
    return {one.kind: (one.found.count, one.found.total, one.rows) for one in found.kinds}


def test_the_delay_is_that_of_the_first_alarm():
    found = detection_delay(ALARM, KIND)
    expected = {"jam": (1, 1, (0,)), "leak": (1, 2, (2,)), "overall": (2, 3, (0, 2))}
    assert by_kind(found) == expected
    assert (found.false_episodes, found.normal_rows) == (2, 5)
    assert all(one.times == () for one in found.kinds)


def test_times_put_rows_in_order_and_measure():
    order = np.random.default_rng(0).permutation(len(KIND))
    seconds = 10.0 * np.arange(len(KIND))
    shuffled = [np.array(values)[order] for values in (ALARM, KIND, seconds)]
    found = detection_delay(*shuffled[:2], time=shuffled[2])
    assert by_kind(found) == by_kind(detection_delay(ALARM, KIND))
    assert [one.times for one in found.kinds] == [(0.0,), (20.0,), (0.0, 20.0)]
    dates = np.datetime64("2026-01-01") + shuffled[2].astype("m8[s]")
    by_date = detection_delay(*shuffled[:2], time=dates)
    assert by_date.by_date
    assert by_date.kinds == found.kinds


def test_episodes_end_with_their_run():
    found = detection_delay(ALARM, KIND, groups=[0] * 5 + [1] * 8)
    assert by_kind(found)["leak"] == (1, 3, (0,))
    one_run = detection_delay([1, 1], ["normal"] * 2)
    assert (one_run.false_episodes, one_run.kinds) == (1, ())
    assert detection_delay([1, 1], ["normal"] * 2, groups=["a", "b"]).false_episodes == 2


def test_alarms_that_persist_come_later():
    found = detection_delay(ALARM, KIND, persist=PersistentAlarms(2, 2).update)
    assert by_kind(found)["overall"] == (1, 3, (3,))
    assert found.false_episodes == 1
    assert found.persistent


@pytest.mark.parametrize(
    "persist", [None, pytest.param(PersistentAlarms(2, 5).update, marks=pytest.mark.extra)]
)
def test_false_alarms_alone_hardly_ever_beat_chance(persist):
    rng = np.random.default_rng(0)
    kind = np.tile(np.repeat(["normal", "leak"], [100, 50]), 4)
    groups = np.repeat(np.arange(4), 150)
    beats, found, expected = [], [], []
    for _ in range(100):
        alarm = rng.random(len(kind)) < 0.03
        one = detection_delay(alarm, kind, groups=groups, persist=persist).kinds[0]
        beats.append(one.beats_chance)
        found.append(one.found.value)
        expected.append(one.by_chance)
    assert np.mean(beats) <= 0.05
    assert np.mean(expected) == pytest.approx(np.mean(found), abs=0.1)


def test_a_delay_counts_if_false_alarms_do_not_explain_it():
    kind = np.repeat(["normal", "leak"], [400, 100])
    alarm = np.zeros(500, dtype=bool)
    alarm[:400:100] = alarm[[406, 450, 480]] = True  # a recall of 3 %, found after 6 rows
    weak = detection_delay(alarm, kind).kinds[0]
    assert (weak.rows, weak.beats_chance) == ((6,), False)
    assert weak.by_chance == pytest.approx(0.7, abs=0.1)
    assert weak.chance_rows == pytest.approx(34, abs=5)
    alarm[401:] = True
    assert detection_delay(alarm, kind).kinds[0].beats_chance


def test_what_does_not_fit_is_refused():
    with pytest.raises(UserError, match="the time of each of 13"):
        detection_delay(ALARM, KIND, time=[1.0])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A model by run, and new runs: in each of them a fault from row 20 on."""
    folder, rng = tmp_path_factory.mktemp("delay"), np.random.default_rng(0)
    old, new = (pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"]) for n in (900, 120))
    old["run"], new["run"] = np.repeat(np.arange(30), 30), np.repeat(["x", "y", "z"], 40)
    new["at"] = np.tile(pd.date_range("2026-01-01", periods=40, freq="min"), 3)
    new["kind"] = np.where(np.arange(120) % 40 >= 20, "leak", "normal")
    new.loc[new["kind"] == "leak", "a"] += 5
    settings = {"bandwidth": 1.0, "n_landmarks": 60, "false_alarm_rate": 0.2, "random_state": 0}
    Detector(**settings).fit(old, groups="run").save(folder / "m.eqsep")
    new.to_csv(folder / "new.csv", index=False)
    return folder, new


def test_assess_measures_the_delay_where_runs_are_known(home):
    from eqsep import load_model

    folder, new = home
    detector, rows = load_model(folder / "m.eqsep"), new[["a", "b", "run"]]
    assert assess(detector, rows, new["kind"]).delay is None
    found = assess(detector, rows, new["kind"], review=Review(run=new["run"])).delay
    above = detector.predict(rows)
    assert found == detection_delay(above, new["kind"], groups=new["run"])


def test_the_command_and_its_page_say_how_soon(home):
    folder, _ = home
    page = folder / "page.html"
    words = ["--label", "kind", "--time", "at", "--persist", "2/3", "--report", str(page)]
    done = CliRunner().invoke(
        app, ["test", f"{folder}/m.eqsep", f"{folder}/new.csv", *words], env={"COLUMNS": "150"}
    )
    assert done.exit_code == 0, done.output
    assert "the first alarm that persists" in done.output
    assert "All other figures are of single alarms" in done.output
    assert "all others count single alarms" in page.read_text()
    once = "false alarms alone would find (with one extra false alarm)"  # there may be none
    assert all(once in text for text in (" ".join(done.output.split()), page.read_text()))
    told = r"^ leak .*3 +1\.00 .* (\d+), at most (\d+) +(\d+) (?:s|min), at most (\d+) min +"
    told += r"\d+%, \d+ rows"
    line = re.search(told, done.output, re.MULTILINE)
    assert line is not None, done.output
    assert (line[1], line[2]) == (line[3], line[4])  # a row a minute, and the run is the model's
    assert re.search(
        r"In 60 normal rows, false alarms come in \d+ stretch(es)?, one in \d+ rows", done.output
    )
    rows = Page(page.read_text()).rows("How soon")
    assert [row[0] for row in rows[1:]] == ["leak", "overall"]
    assert "--time at --persist 2/3" in re.sub("<[^>]*>", "", page.read_text())


def test_persistence_needs_an_order(home):
    folder, new = home
    settings = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0}
    Detector(**settings).fit(np.random.default_rng(0).normal(size=(300, 2))).save(
        folder / "bare.eqsep"
    )
    new[["a", "b", "kind"]].to_csv(folder / "bare.csv", index=False)
    words = ["--label", "kind", "--persist", "2/3"]
    done = CliRunner().invoke(app, ["test", f"{folder}/bare.eqsep", f"{folder}/bare.csv", *words])
    assert done.exit_code == 2
    assert "--persist needs --time, when a row was taken" in " ".join(done.output.split())
