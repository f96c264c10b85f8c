"""Rows of a run: windows over its last rows, and alarms that must persist, in pieces too."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from eqsep import Detector, load_model
from eqsep.detector import Config, PersistentAlarms, Runs, Windows
from eqsep.errors import UserError
from eqsep.persistence import ModelFileError
from eqsep.tables.reading import read_table

ROWS, RUNS = 60, 12
SETTINGS = {
    "bandwidth": 1.0,
    "n_landmarks": 60,
    "false_alarm_rate": 0.2,
    "random_state": 0,
    "config": Config.fast(),
}


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


def columns(table):
    return {column.name: column.values for column in table.columns}


@pytest.fixture(scope="module")
def detector():
    frame = sensors()
    return Detector(window=5, **SETTINGS).fit(frame, groups="run", time="minute")


def test_windows_are_those_of_pandas():
    frame = sensors()
    found = columns(Windows.of(frame, 5, but=["run", "minute"]).transform(frame, "run", "minute"))
    full = frame["minute"] >= 4
    rolling = frame["flow"].rolling(5)
    expected = {
        "mean": rolling.mean(),
        "deviation": rolling.std(ddof=0),
        "slope": rolling.apply(lambda part: np.polyfit(np.arange(5), part, 1)[0]),
    }
    for word, values in expected.items():
        np.testing.assert_allclose(found[f"flow, {word} of 5 rows"][full], values[full], atol=1e-12)
    change = frame.groupby("run")["flow"].diff().fillna(0.0)
    np.testing.assert_array_equal(found["flow, change from the row before"], change)
    assert not any(name.startswith("state,") for name in found)


def test_a_run_begins_at_the_mean_of_its_rows():
    found = columns(Windows.of([[1.0]], 4).transform([[1.0], [3.0]]))
    at_once = columns(Windows.of([[1.0]], 4).transform([[2.0], [2.0], [1.0], [3.0]]))
    for name, values in list(found.items())[1:]:
        assert values[0] == (1.0 if "mean" in name else 0.0)
        assert values[1] == pytest.approx(at_once[name][3])


def test_missing_values_are_left_out_of_a_window():
    found = columns(Windows.of([[1.0]], 3).transform([[np.nan], [2.0], [np.nan], [6.0]]))
    np.testing.assert_array_equal(found["x0, mean of 3 rows"], [np.nan, 2.0, 2.0, 4.0])
    np.testing.assert_array_equal(found["x0, slope of 3 rows"], [np.nan, 0.0, 0.0, 2.0])
    np.testing.assert_array_equal(found["x0, change from the row before"], [0.0, *3 * [np.nan]])


def test_no_row_looks_ahead():
    frame = sensors(n_runs=1)
    windows = Windows.of(frame, 5)
    part, whole = (columns(windows.transform(frame[:n])) for n in (30, ROWS))
    for name, values in part.items():
        np.testing.assert_array_equal(whole[name][:30], values)


@pytest.mark.parametrize("at_once", [1, 59])
def test_batches_give_the_same_bits_as_the_whole(detector, at_once):
    frame = sensors(seed=1, n_runs=2).sort_values("minute", kind="stable")  # runs side by side
    windows, runs = detector.plan_.windows, Runs()
    parts = [
        detector.score_samples(
            windows.transform(frame[i : i + at_once], "run", "minute", runs=runs)
        )
        for i in range(0, len(frame), at_once)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), detector.score_samples(frame))


def test_rows_are_taken_in_the_order_of_time(detector):
    frame = sensors(seed=1)
    mixed = frame.sample(frac=1, random_state=0)
    score = pd.Series(detector.score_samples(mixed), mixed.index).sort_index()
    np.testing.assert_array_equal(score, detector.score_samples(frame))
    runs, windows = Runs(), detector.plan_.windows
    windows.transform(frame[30:60], "run", "minute", runs=runs)
    with pytest.raises(UserError, match="goes back"):
        windows.transform(frame[:30], "run", "minute", runs=runs)


def test_a_fit_in_batches_is_the_fit_in_memory():
    frame = sensors()
    batches = [frame[i : i + 50] for i in range(0, len(frame), 50)]
    settings = SETTINGS | {"window": 5}
    whole = Detector(**settings).fit(frame, groups="run")
    parts = Detector(**settings).fit(batches, groups="run")
    np.testing.assert_array_equal(whole.score_samples(frame), parts.score_samples(frame))
    assert whole.plan_.is_same(parts.plan_)


def test_the_file_keeps_the_windows(detector, tmp_path):
    detector.save(tmp_path / "m.eqsep")
    again = load_model(tmp_path / "m.eqsep")
    assert again.plan_.windows == detector.plan_.windows
    assert again.plan_.holdout.grouping == detector.plan_.holdout.grouping
    assert again.feature_names_in_.tolist() == ["temperature", "flow", "state"]
    frame = sensors(seed=1)
    np.testing.assert_array_equal(again.score_samples(frame), detector.score_samples(frame))


def test_a_file_whose_windows_are_of_other_columns_is_damaged(detector, tmp_path):
    windows = replace(detector.plan_.windows, columns=("temperature", "pressure", "state"))
    model = detector.model_
    forged = copy(detector).with_model(replace(model, plan=replace(model.plan, windows=windows)))
    with pytest.raises(ModelFileError, match="windows do not match the columns"):
        forged.save(tmp_path / "m.eqsep")


def test_whole_runs_can_be_learnt_and_forgotten(detector, tmp_path):
    detector.save(tmp_path / "m.eqsep")
    changed, more = load_model(tmp_path / "m.eqsep"), sensors(seed=2, n_runs=3)
    more["run"] = "new " + more["run"]
    before = changed.score_samples(more)
    after = changed.partial_fit(more).score_samples(more)
    assert np.abs(after - before).max() > 1e-4
    np.testing.assert_allclose(changed.forget(more).score_samples(more), before, atol=1e-8)


def test_an_explanation_names_the_window(detector):
    frame = sensors(seed=3, n_runs=1)
    frame.loc[40:, "flow"] += 1.5  # within the range of single values, and it stays there
    reasons = {reason.column: reason for reason in detector.explain(frame)[50].reasons[:2]}
    mean = frame["flow"][46:51].mean()
    assert reasons["flow, mean of 5 rows"].value == f"{mean:.6g}"


def test_an_explanation_shows_no_rounding(detector):
    frame = sensors(seed=3, n_runs=1)
    frame.loc[40:, "flow"] = 0.11  # frozen: the mean of five is another number, by its last digit
    reasons = {reason.column: reason for reason in detector.explain(frame, top=20)[50].reasons}
    assert reasons["flow, deviation of 5 rows"].value == "0"


def test_blocks_of_time_are_wider_than_windows():
    in_time = Detector(window=20, **SETTINGS).fit(sensors(n_runs=20), time=np.arange(1200.0))
    grouping = in_time.plan_.holdout.grouping
    lengths = np.diff(grouping.edges)
    assert (lengths * grouping.gap >= 20 - 1).all()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda: Detector(window=1).fit(sensors()), "2 or more"),
        (lambda: Windows.of([["a"], ["b"]], 3), "need a column of numbers"),
        (lambda: Windows.of(sensors(), 3).transform(sensors()[["flow"]]), "temperature.*missing"),
        (lambda: Windows.of(np.zeros((3, 2)), 3).transform(np.zeros((3, 5))), "expecting 2"),
    ],
)
def test_what_cannot_be_is_refused(change, told):
    with pytest.raises(UserError, match=told):
        change()


def test_the_runs_of_rows_must_be_known(detector, tmp_path):
    frame = sensors()
    with pytest.raises(UserError, match="column 'run'"):
        detector.predict(frame.drop(columns="run"))
    with pytest.raises(UserError, match="row by row"):
        detector.to_onnx(tmp_path / "m.onnx")
    other = Detector(window=9, plan=detector.plan_)
    with pytest.raises(UserError, match="contradict the plan"):
        other.fit(frame, groups="run", time="minute")


def test_a_table_with_its_windows_is_taken_as_it_is():
    frame = sensors()
    windows = Windows.of(frame, 5)
    table = windows.transform(frame)
    assert windows.transform(table) is table
    assert Windows.of(table, 5) == windows
    assert read_table(table, name="Detector") is table


# ------------------------------------------------------------------- alarms that must persist


RNG = np.random.default_rng(0)
ABOVE = RNG.random(300) < 0.4
RUN = RNG.integers(0, 4, size=300)


def slowly(above, run, least, among):
    """The same, row by row."""
    alarm = []
    for i in range(len(above)):
        mine = [above[j] for j in range(i + 1) if run[j] == run[i]]
        alarm.append(bool(above[i]) and sum(mine[-among:]) >= least)
    return alarm


@pytest.mark.parametrize(("least", "among"), [(1, 1), (3, 5), (2, 2), (1, 4)])
def test_alarms_are_those_of_enough_rows_of_the_run(least, among):
    alarm = PersistentAlarms(least, among).update(ABOVE, RUN)
    assert alarm.tolist() == slowly(ABOVE, RUN, least, among)
    assert not (alarm & ~ABOVE).any()


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_pieces_give_the_alarms_of_the_whole(at_once):
    alarms = PersistentAlarms(3, 5)
    parts = [
        alarms.update(ABOVE[i : i + at_once], RUN[i : i + at_once]) for i in range(0, 300, at_once)
    ]
    assert np.concatenate(parts).tolist() == slowly(ABOVE, RUN, 3, 5)


@pytest.mark.parametrize(("least", "among"), [(5, 3), (0, 2)])
def test_what_is_no_rule_is_refused(least, among):
    with pytest.raises(UserError, match=f"Expected two .* got {least} and {among}"):
        PersistentAlarms(least, among)


def test_each_row_has_its_run():
    with pytest.raises(UserError, match="of 2 rows, got 1"):
        PersistentAlarms().update([1, 0], ["a"])


def test_windows_that_come_as_plain_values_are_taken_as_windows():
    """As the service keeps them with a row: a row alone then scores as it did in its run."""
    frame = sensors()
    detector = Detector(**SETTINGS, window=5).fit(frame, groups="run")
    windows = detector.plan_.windows
    table = windows.transform(frame, "run")
    added = {c.name: c.values.tolist() for c in table.columns if c.name in windows.added}
    rows = pd.DataFrame(added).assign(**frame).sample(frac=1.0, random_state=0)
    scores = detector.score_samples(rows.to_dict("records"))
    assert_array_equal(scores, detector.score_samples(frame)[rows.index])
    [why] = detector.explain(rows[:1].to_dict("records"), top=1)
    assert why == detector.explain(table, top=1)[rows.index[0]]
