"""Rows in time: a fit looks forwards, says where rows change, and the model goes on saying it."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from invoking import CliRunner
from scipy.signal import lfilter

from eqsep import Detector, load_model
from eqsep.checks import DependentRowsWarning, DriftWarning, TimeOrderWarning
from eqsep.cli import app
from eqsep.cli.console import in_command
from eqsep.detector import Config
from eqsep.report import HeldOut, detector_report

N = 1500


def detector(**more) -> Detector:
    settings = {"n_landmarks": 60, "bandwidth": 1.0, "false_alarm_rate": 0.05, "random_state": 0}
    return Detector(config=Config.fast(), **settings | more)


def rows(how: str, *, seed: int = 0) -> pd.DataFrame:
    """Rows that stay as they are, follow each other, or change in column b."""
    X = np.random.default_rng(seed).normal(size=(N, 3))
    if how == "following":
        X = lfilter([np.sqrt(0.75)], [1, -0.5], X, axis=0)
    if how == "jump":
        X[N * 7 // 10 :, 1] += 2
    if how == "trend":
        X[:, 1] += np.linspace(0, 4, N)
    if how == "season":  # a bit more than one round
        X[:, 1] += 4 * np.sin(np.linspace(0, 2.2 * np.pi, N))
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(t=np.arange(N))


def drifts(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in caught if one.category is DriftWarning]


def fitted(frame: pd.DataFrame, y: object = None, **more) -> tuple[Detector, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = detector(**more).fit(frame, y, time="t")
    return found, drifts(caught)


@pytest.mark.parametrize("how", ["jump", "trend"])
def test_rows_that_change_are_said_with_the_rate_and_the_column(how):
    found, told = fitted(rows(how))
    (text,) = told
    assert text.startswith("Rows change over time, most of all in column 'b': fits to earlier rows")
    assert "fits to earlier rows, calibrated to 5% false alarms, had " in text
    broken, _, still = (float(part.rsplit(" ", 1)[1]) for part in text.split("%")[1:4])
    assert 7.5 < broken < 40
    assert still < broken / 1.5
    assert found.caution_.category is DriftWarning
    assert found.caution_.message in text


def test_it_is_said_that_the_promise_fails_only_if_it_does_on_the_last_rows_too():
    """Fits to a part of a year fail, but the model, which has seen all of it, does not."""
    fails, (trend,) = fitted(rows("trend"))
    holds, (season,) = fitted(rows("season"))
    assert "The promise does not hold while rows keep changing." in trend
    assert "on the last rows (within chance), compared" in season
    assert "The promise may hold if new rows are like learnt ones" in season
    assert [one.caution_.fields["goes_on"] for one in (fails, holds)] == [1, 0]
    for found, what in ((fails, "Do not rely on the promise yet"), (holds, "Measure the promise")):
        report = detector_report(found, HeldOut(rows("still")[:200], np.full(200, "normal")))
        assert report.answer.steps[0].what.startswith(what)


@pytest.mark.parametrize(("sign", "how"), [(1, "rises"), (-1, "falls")])
def test_a_column_that_only_rises_or_falls_is_new_by_nature_and_to_be_left_out(sign, how):
    day = sign * (np.arange(N) // 24)
    _, (text,) = fitted(rows("still").assign(day=day))
    assert "most of all in column 'day': fits" in text
    assert f"does not hold as long as column 'day' is learnt: it only {how} with time" in text
    assert text.endswith("Leave column 'day' out of X, and fit again.")
    assert fitted(rows("still"))[1] == []
    for other in (day % 50, np.where(day == day[700], np.nan, day), np.arange(N) > 700):
        for text in fitted(rows("still").assign(day=other))[1]:
            assert "as long as column" not in text


@pytest.mark.parametrize("how", ["still", "following"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_that_do_not_change_are_passed_over(how, seed):
    found, told = fitted(rows(how, seed=seed))
    assert told == []
    assert found.caution_ is None


def test_fits_to_earlier_rows_learn_the_labelled_anomalies_too():
    """Labelled rows among normal ones raise the threshold, above which drift takes no row."""
    among = np.random.default_rng(0).random(N) < 0.3
    frame = rows("jump")
    assert fitted(frame, among.astype(int))[1] == []
    assert len(fitted(frame[~among])[1]) == 1
    half = frame.iloc[: N // 2], among[: N // 2].astype(int)
    later = frame[N * 7 // 10 :][~among[N * 7 // 10 :]]
    assert fitted(*half)[0].predict(later).mean() < 0.075
    apart = frame.assign(a=frame["a"] + 9 * among)
    assert len(fitted(apart, among.astype(int))[1]) == 1


def test_rows_that_change_are_not_looked_for_without_times():
    frame = rows("jump")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DriftWarning)
        detector().fit(frame.drop(columns="t"), groups=frame["t"] // 20)


def test_the_order_of_the_table_does_not_matter_and_that_of_time_does():
    frame = rows("jump").sample(frac=1.0, random_state=0)
    assert len(fitted(frame)[1]) == 1
    assert fitted(frame.assign(t=np.arange(N)))[1] == []


def test_whole_groups_in_order_of_time_may_change_too():
    frame = rows("trend").assign(run=np.arange(N) // 15)
    with pytest.warns(DriftWarning, match="column 'b'"):
        found = detector(false_alarm_rate=0.1).fit(frame, groups="run", time="t")
    assert found.plan_.holdout.grouping.unit == "group"
    assert len(set(found.calibration_.groups.tolist())) == 49


def test_batches_say_it_too():
    frame = rows("jump")
    batches = [frame[i : i + 300] for i in range(0, N, 300)]
    with pytest.warns(DriftWarning, match="column 'b'"):
        assert detector().fit(batches, time="t").caution_ is not None


def test_the_model_goes_on_saying_it(tmp_path):
    found, _ = fitted(rows("jump"))
    found.save(tmp_path / "model.eqsep")
    again = load_model(tmp_path / "model.eqsep")
    assert again.caution_ == found.caution_
    told = CliRunner().invoke(app, ["info", str(tmp_path / "model.eqsep")])
    assert f"caution     {in_command(found.caution_.warning())}\n" in told.output
    assert "leave out columns that do not matter with --drop.\n" in told.output
    assert "held out by time block; times by column 't', not learnt" in told.output
    frame = rows("jump")[:200].drop(columns="t")
    report = detector_report(again, HeldOut(frame, np.full(200, "normal")))
    assert found.caution_.message in [step.finding for step in report.answer.steps]


def test_a_merged_model_says_what_one_of_its_models_says():
    frame = rows("jump")
    like, _ = fitted(frame)
    still, _ = fitted(frame[:1000], plan=like.plan_)
    assert still.caution_ is None
    other, _ = fitted(frame[1000:], plan=like.plan_)
    other.with_model(replace(other.model_, caution=like.caution_))
    assert still.merge(other).caution_ == like.caution_


@pytest.fixture(scope="module")
def in_runs(tmp_path_factory):
    """A model of rows that are like those before them, and a labelled file of such rows."""
    folder = tmp_path_factory.mktemp("runs")
    X = lfilter([0.3], [1, -0.95], np.random.default_rng(0).normal(size=(900, 3)), axis=0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.warns(DependentRowsWarning):
        detector().fit(frame[:600]).save(folder / "model.eqsep")
    frame[600:].assign(kind="normal").to_csv(folder / "new.csv", index=False)
    return folder


def test_select_warns_of_rows_in_runs(in_runs):
    model = load_model(in_runs / "model.eqsep")
    with pytest.warns(DependentRowsWarning, match="not for another run"):
        model.select(pd.read_csv(in_runs / "new.csv").drop(columns="kind")[:50])


def test_clocks_that_begin_anew_are_said():
    frame = rows("still").assign(t=np.arange(N) % 500, run=np.arange(N) // 500)
    with pytest.warns(TimeOrderWarning, match=r"goes back 2 times .* as groups="):
        detector().fit(frame.drop(columns="run"), time="t")
    with warnings.catch_warnings():
        warnings.simplefilter("error", TimeOrderWarning)
        detector().fit(frame, groups="run", time="t")  # each run has a clock of its own
        shuffled = frame.sample(frac=1.0, random_state=0)
        detector().fit(shuffled.drop(columns="run"), time="t")  # in no order
        parts = pd.concat([rows("still")[500:], rows("still")[:500]])
        detector().fit(parts, time="t")  # the later file first
    twice = frame.assign(run=0)
    with pytest.warns(TimeOrderWarning, match="goes back within a group"):
        detector().fit(twice, groups="run", time="t")
