"""Alarms that must persist: in one go and in pieces, run by run, and never more than without."""

import numpy as np
import pandas as pd
import pytest
from invoking import CliRunner

from eqsep import Detector
from eqsep.cli import app
from eqsep.detector import PersistentAlarms
from eqsep.errors import ParameterError, UserError

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


@pytest.mark.parametrize("words", ["5/3", "0/2", "3", "three/five"])
def test_what_is_no_rule_is_refused(words):
    with pytest.raises(ParameterError, match="persist must be two whole numbers as in 3/5"):
        PersistentAlarms.read(words)


def test_alarms_that_cannot_persist_are_refused():
    with pytest.raises(UserError, match="no larger than the second"):
        PersistentAlarms(5, 3)


def test_each_row_has_its_run():
    with pytest.raises(UserError, match="one for each row"):
        PersistentAlarms().update([1, 0], ["a"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model by run, new rows of three runs side by side, and how many are above the threshold."""
    folder, rng = tmp_path_factory.mktemp("persist"), np.random.default_rng(1)
    old = pd.DataFrame(rng.normal(size=(900, 2)), columns=["a", "b"])
    old["run"] = np.repeat(np.arange(30), 30)
    new = pd.DataFrame(rng.normal(size=(240, 2)), columns=["a", "b"])
    new["run"] = np.tile(np.arange(3), 80)
    new.loc[new["run"] == 1, "a"] += np.where(np.arange(80) > 40, 3.0, 0.0)
    settings = {"bandwidth": 1.0, "n_landmarks": 60, "false_alarm_rate": 0.3, "random_state": 0}
    detector = Detector(**settings).fit(old, groups="run")
    detector.save(folder / "m.eqsep")
    new.to_csv(folder / "new.csv", index=False)
    return folder, detector.predict(new), new["run"].to_numpy()


def score(folder, *words):
    out = folder / "scores.parquet"
    options = [str(word) for word in (*words, "--out", out)]
    done = CliRunner().invoke(app, ["score", f"{folder}/m.eqsep", f"{folder}/new.csv", *options])
    return done, pd.read_parquet(out) if done.exit_code == 0 else None


def test_the_command_asks_for_alarms_that_persist(files, monkeypatch):
    folder, above, run = files
    monkeypatch.setattr("eqsep.commands.text_files.ROWS_AT_ONCE", 50)
    done, scores = score(folder, "--persist", "3/5")
    expected = PersistentAlarms(3, 5).update(above, run)
    assert 0 < expected.sum() < above.sum()
    np.testing.assert_array_equal(scores["alarm"], expected)
    assert set(scores["kind"][~expected]) == {"normal"}
    assert f"{expected.sum()} alarms" in done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [(["3/5", "--fdr", 0.1], "Pass one of them"), (["5/3"], "got '5/3'"), (["x"], "got 'x'")],
)
def test_the_command_refuses_what_cannot_be(files, words, told):
    done, _ = score(files[0], "--persist", *words)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())
