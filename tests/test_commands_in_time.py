"""Commands on rows in time and in groups: windows, alarms that persist, groups and drift."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from typer.testing import CliRunner

from eqsep import Detector, load_model
from eqsep.checks import DependentRowsWarning, DriftWarning
from eqsep.cli import app
from eqsep.detector import Config, PersistentAlarms
from eqsep.report import HeldOut, detector_report

ROWS, RUNS = 60, 12
SETTINGS = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}


def sensors(seed=0, n_runs=RUNS):
    """Two sensors and a state, in runs of equal length."""
    rng = np.random.default_rng(seed)
    n = ROWS * n_runs
    return pd.DataFrame(
        {
            "run": np.repeat([f"r{i:02d}" for i in range(n_runs)], ROWS),
            "minute": np.tile(np.arange(ROWS), n_runs),
            "temperature": rng.normal(size=n),
            "flow": rng.normal(size=n),
            "state": rng.choice(["on", "off"], size=n),
        }
    )


def command(*words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Labelled rows of runs, new ones, and a model with windows."""
    folder = tmp_path_factory.mktemp("windows")
    new = sensors(seed=1)
    new["kind"] = np.where((new["run"] == "r03") & (new["minute"] >= 30), "drift", "normal")
    new.loc[new["kind"] == "drift", "flow"] += 3
    sensors().assign(kind="normal").to_csv(folder / "old.csv", index=False)
    new.to_csv(folder / "new.csv", index=False)
    fit = ("--label", "kind", "--group", "run", "--time", "minute", "--window", 5)
    told = command(
        *("fit", folder / "old.csv", *fit, "--landmarks", 60, "--false-alarm-rate", 0.2),
        *("--out", folder / "m.eqsep"),
    )
    assert "for 2 of them also the mean, deviation and slope over 5 rows" in told
    return folder


def test_the_command_scores_as_python_does(files, monkeypatch):
    detector, frame = load_model(files / "m.eqsep"), pd.read_csv(files / "new.csv")
    monkeypatch.setattr("eqsep.io.text.ROWS_AT_ONCE", 50)
    command("score", files / "m.eqsep", files / "new.csv", "--out", files / "scores.parquet")
    scores = pd.read_parquet(files / "scores.parquet")
    expected = detector.score_samples(frame.drop(columns="kind"))
    np.testing.assert_array_equal(scores["score"], expected)


def test_all_commands_take_the_windows_of_the_model(files):
    model, new = files / "m.eqsep", files / "new.csv"
    assert "flow, mean of 5 rows" in command("explain", model, new, "--most", 1)
    assert "drift" in command("test", model, new, "--label", "kind")
    learnt = command("learn", model, new, "--label", "kind", "--out", files / "more.eqsep")
    assert "seen kinds  drift" in learnt
    command("forget", files / "more.eqsep", new, "--label", "kind", "--out", files / "less.eqsep")
    assert "window=5" in command("info", files / "less.eqsep")
    few = files / "few.csv"
    pd.read_csv(new)[120:240].to_csv(few, index=False)
    bare = ("--drop", "run", "--drop", "minute", "--window", 5, "--landmarks", 60)
    assert "drift" in command("evaluate", few, "--label", "kind", *bare)


def test_rows_with_short_windows_are_counted_with_their_alarms(files, monkeypatch):
    """The first four rows of each run have no full window, however the file is read."""
    monkeypatch.setattr("eqsep.io.text.ROWS_AT_ONCE", 50)
    model, new, out = files / "m.eqsep", files / "new.csv", files / "short.csv"
    frame = pd.read_csv(new)
    short = frame.groupby("run").cumcount() < 4
    alarms = load_model(model).predict(frame.drop(columns="kind"))[short].sum()
    note = (
        f"Note: {short.sum()} rows near the start of a run: windows of 5 rows are not full there, "
        f"and {alarms} of these rows raise an alarm."
    )
    for words in (("score", model, new, "--out", out), ("explain", model, new, "--most", 1)):
        assert note in command(*words)
    told = command("test", model, new, "--label", "kind")
    assert note in told
    assert "earlier rows, score these in the same call." in told


def test_large_files_are_learnt_with_windows_that_go_on(files, monkeypatch):
    fit = ("--label", "kind", "--group", "run", "--window", 5, "--landmarks", 60)
    command("fit", files / "old.csv", *fit, "--drop", "minute", "--out", files / "whole.eqsep")
    monkeypatch.setattr("eqsep.cli.fit.LARGE", 1)
    monkeypatch.setattr("eqsep.cli.fit.ROWS_AT_ONCE", 100)
    command("fit", files / "old.csv", *fit, "--drop", "minute", "--out", files / "parts.eqsep")
    whole, parts = (load_model(files / f"{name}.eqsep") for name in ("whole", "parts"))
    np.testing.assert_array_equal(whole.plan_.kernel.landmarks, parts.plan_.kernel.landmarks)
    np.testing.assert_allclose(whole.coef_, parts.coef_, atol=1e-8)


def test_the_run_of_a_row_must_be_there(files):
    pd.read_csv(files / "new.csv").drop(columns="run").to_csv(files / "bare.csv", index=False)
    done = CliRunner().invoke(app, ["score", str(files / "m.eqsep"), str(files / "bare.csv")])
    assert done.exit_code == 2
    assert "'run' is missing: it says which run a row belongs to" in " ".join(done.output.split())


def test_windows_go_on_while_rows_are_watched(files):
    fit = ("--label", "kind", "--drop", "run", "--drop", "minute", "--landmarks", 60)
    command("fit", files / "old.csv", *fit, "--window", 5, "--out", files / "w.eqsep")
    assert f"{ROWS * RUNS:,} in episode 1" in command("watch", files / "w.eqsep", files / "new.csv")


# ------------------------------------------------------------------- alarms that must persist


@pytest.fixture(scope="module")
def persisting(tmp_path_factory):
    """A model by run, new rows of three runs side by side, and how many are above the threshold."""
    folder, rng = tmp_path_factory.mktemp("persist"), np.random.default_rng(1)
    old = pd.DataFrame(rng.normal(size=(900, 2)), columns=["a", "b"])
    old["run"] = np.repeat(np.arange(30), 30)
    new = pd.DataFrame(rng.normal(size=(240, 2)), columns=["a", "b"])
    new["run"] = np.tile(np.arange(3), 80)
    new.loc[new["run"] == 1, "a"] += np.where(np.arange(80) > 40, 3.0, 0.0)
    detector = Detector(**SETTINGS | {"false_alarm_rate": 0.3}).fit(old, groups="run")
    detector.save(folder / "m.eqsep")
    new.to_csv(folder / "new.csv", index=False)
    return folder, detector.predict(new), new["run"].to_numpy()


def score(folder, *words):
    out = folder / "scores.parquet"
    options = [str(word) for word in (*words, "--out", out)]
    done = CliRunner().invoke(app, ["score", f"{folder}/m.eqsep", f"{folder}/new.csv", *options])
    return done, pd.read_parquet(out) if done.exit_code == 0 else None


def test_the_command_asks_for_alarms_that_persist(persisting, monkeypatch):
    folder, above, run = persisting
    monkeypatch.setattr("eqsep.io.text.ROWS_AT_ONCE", 50)
    done, scores = score(folder, "--persist", "3/5")
    expected = PersistentAlarms(3, 5).update(above, run)
    assert 0 < expected.sum() < above.sum()
    np.testing.assert_array_equal(scores["alarm"], expected)
    assert set(scores["kind"][~expected]) == {"normal"}
    assert f"{expected.sum()} alarms" in done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [(["3/5", "--fdr", 0.1], "pass one of them"), (["5/3"], "got '5/3'"), (["x"], "got 'x'")],
)
def test_the_command_refuses_what_cannot_be(persisting, words, told):
    done, _ = score(persisting[0], "--persist", *words)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())


# ------------------------------------------------------------------------------------- groups


def runs(n: int, *, rows: int = 30, spread: float = 0.3, seed: int = 0) -> pd.DataFrame:
    """Normal runs, each around a place of its own, and a fault in half of every tenth."""
    rng = np.random.default_rng(seed)
    run = np.repeat(np.arange(n), rows)
    X = rng.normal(size=(n, 3))[run] + rng.normal(0, spread, size=(len(run), 3))
    kind = np.where((run % 10 == 0) & (np.arange(len(run)) % rows >= rows // 2), "fault", "normal")
    X[kind == "fault"] += 6
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return frame.assign(run=[f"run {i}" for i in run], time=np.tile(np.arange(rows), n), kind=kind)


TABLE = runs(120)


def assert_same(one: Detector, other: Detector) -> None:
    mine, theirs = one.model_.evidence.held_out, other.model_.evidence.held_out
    assert_array_equal(mine.rows, theirs.rows)
    assert_array_equal(mine.groups, theirs.groups)
    assert_allclose(one.coef_, other.coef_, atol=1e-8)
    assert one.threshold_ == pytest.approx(other.threshold_)


def test_groups_are_held_out_learnt_and_forgotten(tmp_path):
    path, model = str(tmp_path / "rows.csv"), str(tmp_path / "m.eqsep")
    TABLE.drop(columns="time").to_csv(path, index=False)
    options = ["--label", "kind", "--out", model]
    fit = ["fit", path, "--group", "run", "--false-alarm-rate", "0.1", "--landmarks", "60"]
    done = CliRunner().invoke(app, [*fit, *options, "--report", str(tmp_path / "r.html")])
    assert done.exit_code == 0, done.output
    assert "at most 10.00% of new normal rows of new groups" in done.output
    assert "calibrated on 49 held-out groups" in done.output
    assert "rows of new groups" in " ".join((tmp_path / "r.html").read_text().split())
    before = load_model(model)
    assert before.plan_.holdout.grouping.columns == ("run", None)
    for command in (["learn", "--again"], ["forget"]):
        done = CliRunner().invoke(app, [*command, model, path, *options])
        assert done.exit_code == 0, done.output
    assert_same(load_model(model), before)
    assert (
        CliRunner().invoke(app, ["score", model, path, "--out", str(tmp_path / "s.csv")]).exit_code
        == 0
    )
    twice = CliRunner().invoke(app, [*fit, "--label", "run", "--out", model])
    assert "is in two of" in twice.output


def test_groups_in_batches_are_those_in_memory(tmp_path, monkeypatch):
    from eqsep.cli import fit as training_data

    path, model = str(tmp_path / "rows.csv"), str(tmp_path / "m.eqsep")
    TABLE.to_csv(path, index=False)
    fit = ["fit", path, "--label", "kind", "--group", "run", "--time", "time", "--landmarks", "60"]
    assert CliRunner().invoke(app, [*fit, "--out", model]).exit_code == 0
    monkeypatch.setattr(training_data, "LARGE", 100)
    done = CliRunner().invoke(app, [*fit, "--out", f"{model}2"])
    assert done.exit_code == 0, done.output
    whole, batches = load_model(model), load_model(f"{model}2")
    assert batches.plan_.holdout.grouping.columns == ("run", "time")
    assert_same(batches, whole)


def test_rows_to_learn_without_their_group_are_told_why_it_is_needed(tmp_path):
    fitted = Detector(**SETTINGS, false_alarm_rate=0.1)
    fitted.fit(TABLE[["a", "b", "c", "run"]], TABLE["kind"], groups="run")
    fitted.save(tmp_path / "m.eqsep")
    TABLE.drop(columns=["run", "time"])[:40].to_csv(tmp_path / "rows.csv", index=False)
    for command in ("learn", "forget"):
        words = [command, str(tmp_path / "m.eqsep"), str(tmp_path / "rows.csv"), "--label", "kind"]
        done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "n.eqsep")])
        assert done.exit_code == 2
        assert "the model needs it to hold out whole groups" in done.output


def test_a_time_that_is_misspelt_is_said(tmp_path):
    path = str(tmp_path / "rows.csv")
    TABLE.to_csv(path, index=False)
    fit = ["fit", path, "--label", "kind", "--time", "tiem", "--out", str(tmp_path / "m.eqsep")]
    done = CliRunner().invoke(app, fit)
    assert done.exit_code == 2
    assert "no column 'tiem'" in done.output


@pytest.mark.parametrize(
    ("n_runs", "told"),
    [
        (120, "rows of new groups raise"),
        (6, "rows of new time blocks of known groups raise"),
    ],
)
def test_a_promise_in_time_speaks_of_groups_where_there_are_enough(n_runs, told, tmp_path):
    path = str(tmp_path / "rows.csv")
    TABLE[: 30 * n_runs].to_csv(path, index=False)
    options = ["--label", "kind", "--group", "run", "--time", "time", "--landmarks", "60"]
    rate = ["--false-alarm-rate", "0.2", "--out", str(tmp_path / "m.eqsep")]
    done = CliRunner().invoke(app, ["fit", path, *options, *rate])
    assert done.exit_code == 0, done.output
    assert told in done.output
    assert ("none for new groups, which takes 8 groups or more" in done.output) == (n_runs == 6)


def test_rows_without_a_label_are_no_kind_in_a_report(tmp_path):
    path, page = str(tmp_path / "rows.csv"), tmp_path / "r.html"
    partly = TABLE.drop(columns="time")
    partly["kind"] = partly["kind"].where(np.arange(len(partly)) % 3 > 0)
    partly.to_csv(path, index=False)
    options = ["--label", "kind", "--group", "run", "--false-alarm-rate", "0.1"]
    out = ["--landmarks", "60", "--out", str(tmp_path / "m.eqsep"), "--report", str(page)]
    done = CliRunner().invoke(app, ["fit", path, *options, "--drop", "c", *out])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "None" not in text
    assert "of new normal rows of new groups, at most, on average" in text
    assert "raise an alarm on average over the groups [" in text
    told = CliRunner().invoke(app, ["info", str(tmp_path / "m.eqsep")]).output
    assert "columns     2: 2 numbers; without c\n" in told
    assert "held out by group; groups by column 'run', not learnt" in told


# -------------------------------------------------------------------------------------- drift


def test_a_model_of_rows_that_change_goes_on_saying_it(tmp_path):
    X = np.random.default_rng(0).normal(size=(1500, 3))
    X[1050:, 1] += 2
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.warns(DriftWarning):
        found = Detector(**SETTINGS, false_alarm_rate=0.05).fit(frame, time=np.arange(1500))
    found.save(tmp_path / "model.eqsep")
    again = load_model(tmp_path / "model.eqsep")
    told = CliRunner().invoke(app, ["info", str(tmp_path / "model.eqsep")])
    assert f"caution     {found.caution_.message} Fit again as rows come" in told.output
    assert "that do not matter with --drop.\n" in told.output
    assert "held out by time block" in told.output
    report = detector_report(again, HeldOut(frame[:200], np.full(200, "normal")))
    assert found.caution_.message in [step.finding for step in report.answer.steps]


@pytest.fixture(scope="module")
def in_runs(tmp_path_factory):
    """A model of rows that are like those before them, and a labelled file of such rows."""
    folder = tmp_path_factory.mktemp("runs")
    X = lfilter([0.3], [1, -0.95], np.random.default_rng(0).normal(size=(900, 3)), axis=0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.warns(DependentRowsWarning):
        Detector(**SETTINGS, false_alarm_rate=0.05).fit(frame[:600]).save(folder / "model.eqsep")
    frame[600:].assign(kind="normal").to_csv(folder / "new.csv", index=False)
    return folder


@pytest.mark.parametrize(
    "words", [["score", "--fdr", "0.1", "--out", "out.csv"], ["test", "--label", "kind"], ["info"]]
)
def test_commands_go_on_saying_that_rows_are_like_those_before(in_runs, words, monkeypatch):
    monkeypatch.chdir(in_runs)
    files = ["model.eqsep"] if words == ["info"] else ["model.eqsep", "new.csv"]
    done = CliRunner().invoke(app, [words[0], *files, *words[1:]])
    assert done.exit_code == 0, done.output
    assert "Rows are like those before them" in done.output


@pytest.mark.parametrize("large", [False, True])
def test_ordered_rows_are_fitted_as_with_a_column_of_their_numbers(tmp_path, monkeypatch, large):
    frame = sensors().drop(columns=["run", "minute"])
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.assign(t=np.arange(len(frame))).to_csv(tmp_path / "timed.csv", index=False)
    sensors(1).assign(kind="normal").to_csv(tmp_path / "kinds.csv", index=False)
    if large:
        monkeypatch.setattr("eqsep.cli.fit.LARGE", 1)
        monkeypatch.setattr("eqsep.cli.fit.ROWS_AT_ONCE", 100)
    words = ("--window", 5, "--landmarks", 60, "--false-alarm-rate", 0.2, "--out")
    told = command("fit", tmp_path / "plain.csv", "--ordered", *words, tmp_path / "a.eqsep")
    assert "held out by time block; times by the order of rows, or given apart\n" in told
    command("fit", tmp_path / "timed.csv", "--time", "t", *words, tmp_path / "b.eqsep")
    first = command("score", tmp_path / "a.eqsep", tmp_path / "plain.csv")
    told = command("test", tmp_path / "a.eqsep", tmp_path / "kinds.csv", "--label", "kind")
    assert "Rows are taken to be in time order, after those of the fit.\n" in told
    assert re.search(r"of new time blocks, on average: mean over \d+ time blocks", told)
    assert (
        first.splitlines()[:700]
        == (command("score", tmp_path / "b.eqsep", tmp_path / "timed.csv").splitlines()[:700])
    )


def test_an_ordered_backtest_is_that_by_row_numbers(files, tmp_path):
    frame = pd.read_csv(files / "new.csv").drop(columns=["run", "minute"])
    frame["kind"] = np.where(np.arange(len(frame)) % 9 == 0, "drift", "normal")
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.assign(t=np.arange(len(frame))).to_csv(tmp_path / "timed.csv", index=False)
    words = ("--label", "kind", "--every", 200, "--delay", 100, "--first", 100, "--against", "")
    words += ("--landmarks", 60)
    plain = command("backtest", tmp_path / "plain.csv", "--ordered", *words)
    timed = command("backtest", tmp_path / "timed.csv", "--time", "t", *words)
    plain, timed = (re.sub(r"[\d.]+ s\b", "", text) for text in (plain, timed))  # how long it took
    assert plain == timed


def test_either_a_column_of_times_or_the_order_is_given(files):
    rows = files / "new.csv"
    for words in (["backtest", rows], ["fit", rows, "--out", "m", "--time", "minute", "--ordered"]):
        done = CliRunner().invoke(app, [*map(str, words), "--label", "kind"])
        assert done.exit_code == 2
        assert "--ordered" in done.stderr
