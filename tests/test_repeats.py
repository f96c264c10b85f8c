"""Rows that were learnt before are noticed, and rows that merely look alike are not."""

from copy import deepcopy
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from typer.testing import CliRunner

from eqsep import Detector, load_model
from eqsep.checks import CopiedRowsWarning
from eqsep.cli import app
from eqsep.detector import RepeatedRowsWarning, learnt_before

SMALL = {"n_landmarks": 60, "bandwidth": 1.0, "false_alarm_rate": 0.05, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(1200, 3))


def test_learnt_rows_are_told_from_new_ones(rows):
    detector = Detector(**SMALL).fit(rows[:800])
    all_of_them, half, none = (
        learnt_before(detector, part) for part in (rows[:800], rows[400:], rows[800:])
    )
    assert all_of_them.share == 1.0
    assert all_of_them.found == len(detector.calibration_.rows)
    assert all_of_them.are_learnt
    assert half.are_learnt
    assert 0.3 < half.share < 0.7
    assert (none.found, none.are_learnt) == (0, False)
    assert none.checked > 0


def test_anomalies_and_single_rows_cannot_tell(rows):
    y = np.repeat(["normal", "leak"], [700, 100])
    detector = Detector(**SMALL).fit(rows[:800], y)
    assert learnt_before(detector, rows[700:800], ["leak"] * 100).checked == 0
    each = (i for i in range(700) if learnt_before(detector, rows[[i]], ["normal"]).checked)
    held = list(islice(each, 2))
    assert not learnt_before(detector, rows[held[:1]], ["normal"]).are_learnt
    assert learnt_before(detector, rows[held], ["normal"] * 2).are_learnt


def test_new_rows_of_a_table_whose_values_repeat_are_not_taken_for_learnt_ones():
    rng = np.random.default_rng(0)
    draw = [[str(v) for v in row] for row in rng.integers(6, size=(1600, 3))]  # 216 different rows
    detector = Detector(**SMALL).fit(draw[:800])
    found = learnt_before(detector, draw[800:])
    assert found.found > 0.6 * found.checked  # and yet
    assert not found.are_learnt


@pytest.fixture
def detector(rows):
    return Detector(**SMALL).fit(rows[:800])


def test_learning_rows_twice_is_warned_of(detector, rows):
    with pytest.warns(
        RepeatedRowsWarning, match="About 100% of the normal rows were learnt before"
    ):
        detector.partial_fit(rows[100:400])
    assert detector.partial_fit(rows[800:]).threshold_ > 0  # no warning, or the test fails


def test_merging_what_was_learnt_twice_is_warned_of(detector, rows):
    other = Detector(**SMALL, feature_map=detector.feature_map_).fit(rows[800:])
    learnt_on = deepcopy(detector).partial_fit(rows[800:])
    with pytest.warns(RepeatedRowsWarning, match="The two have learnt the same rows"):
        deepcopy(learnt_on).merge(detector)
    with pytest.warns(RepeatedRowsWarning, match="The two have learnt the same rows"):
        deepcopy(detector).merge(learnt_on)
    assert len(detector.merge(other).calibration_.rows) == len(learnt_on.calibration_.rows)


def test_the_command_refuses_rows_that_were_learnt_unless_told(detector, rows, tmp_path):
    model, out, file = tmp_path / "m.eqsep", tmp_path / "out.eqsep", tmp_path / "rows.csv"
    detector.save(model)
    lines = [",".join(map(repr, [*row.tolist(), 0])) for row in rows[:300]]
    file.write_text("\n".join(["a,b,c,bad", *lines]))
    for words in (
        ("learn", str(model), str(file), "--label", "bad", "--out", str(out)),
        ("merge", str(model), str(model), "--out", str(out)),
    ):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2
        assert "pass --again" in result.stderr
        assert not out.exists()
        result = CliRunner().invoke(app, [*words, "--again"])
        assert result.exit_code == 0, result.output
        assert "twice" not in result.stderr
        held = len(load_model(out).calibration_.rows)
        assert held > len(detector.calibration_.rows)
        out.unlink()


def test_anomalies_alone_are_known_again_by_the_landmarks_of_an_older_model():
    rng = np.random.default_rng(0)
    normal, pump = rng.normal(size=(600, 2)), rng.normal((6, 0), 0.5, size=(20, 2))
    detector = Detector(n_landmarks=60, bandwidth=1.0, random_state=0)
    detector.fit(np.vstack([normal, pump]), ["normal"] * 600 + ["pump"] * 20)
    detector.feature_map_ = replace(detector.feature_map_, kind_bounds=None)
    detector.kind_rows_ = detector.kind_rows_.take(np.arange(0))
    with pytest.warns(RepeatedRowsWarning, match="20 of the 20 anomalies were learnt before"):
        detector.partial_fit(pump, ["pump"] * 20)
    detector.partial_fit(pump + 0.01, ["pump"] * 20)  # others: not a word


def test_judged_anomalies_are_known_again_and_repeated_values_are_not():
    """By the rows that are kept for names; of judged rows none calibrates."""
    rng = np.random.default_rng(0)
    detector = Detector(n_landmarks=60, bandwidth=1.0, random_state=0)
    detector.fit(
        np.vstack([rng.normal(size=(600, 2)), rng.normal((6, 0), 0.5, size=(200, 2))]),
        ["normal"] * 600 + ["pump"] * 200,
    )
    judged = np.vstack([rng.normal((6, 0), 0.5, size=(30, 2)), rng.normal(size=(10, 2))])
    kind = ["pump"] * 30 + ["normal"] * 10
    detector.partial_fit(judged, kind, judged=True)  # new: not a word
    with pytest.warns(RepeatedRowsWarning, match="About 100% of the rows of kind 'pump' were"):
        deepcopy(detector).partial_fit(judged, kind, judged=True)
    later = np.vstack([judged, rng.normal((6, 0), 0.5, size=(30, 2)), rng.normal(size=(200, 2))])
    with pytest.warns(RepeatedRowsWarning, match="of 60 that are to be kept for names, 30 are"):
        deepcopy(detector).partial_fit(later, [*kind, *["pump"] * 30, *["normal"] * 200])
    whole = rng.integers(3, size=(400, 2)) + 20.0  # nine rows, again and again
    detector.partial_fit(whole[:200], ["valve"] * 200).partial_fit(whole[200:], ["valve"] * 200)


def copied(*, times, seed=0, n=200):
    rng = np.random.default_rng(seed)
    return rng.permutation(np.repeat(rng.normal(size=(n, 3)), times, axis=0))


def small(X, y=None, **params):
    return Detector(bandwidth=1.0, n_landmarks=60, random_state=0, **params).fit(X, y)


def test_copied_rows_are_learnt_once_and_the_promise_is_kept():
    rates = []
    for seed in range(12):
        with pytest.warns(CopiedRowsWarning, match="10 times: of 2,000 normal rows 200 are dist"):
            detector = small(copied(times=10, seed=seed), false_alarm_rate=0.05)
        new = np.random.default_rng(99).normal(size=(4000, 3))
        rates.append(detector.predict(new).mean())
    assert detector.calibration_.n_units == 99
    assert np.mean(rates) == pytest.approx(0.05, abs=0.008)  # 0.072 where copies calibrate


def test_a_file_that_was_doubled_is_as_the_file():
    X, y = copied(times=1), np.repeat([0, 0, 0, 1], 50)
    with pytest.warns(CopiedRowsWarning):
        twice = small(np.vstack([X, X]), np.hstack([y, y]), false_alarm_rate=0.05)
    once = small(X, y, false_alarm_rate=0.05)
    np.testing.assert_array_equal(twice.score_samples(X), once.score_samples(X))


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")
@pytest.mark.filterwarnings("error::eqsep.checks.CopiedRowsWarning")
@pytest.mark.parametrize(
    "X",
    [
        copied(times=1),
        np.random.default_rng(0).integers(0, 6, size=(900, 2)).astype(float),  # equal by chance
        np.repeat(np.arange(10.0)[:, None], 5, axis=0),  # too few to tell
        np.vstack([copied(times=1), np.zeros((300, 3))]),  # a machine that stands still
        np.vstack([copied(times=2), copied(times=1, seed=1)]),
    ],
    ids=["once", "values of few columns", "few", "one state", "partly"],
)
def test_rows_that_are_equal_otherwise_are_all_learnt(X):
    detector = small(X)
    assert detector.statistics_.weight[0] + len(detector.calibration_.rows) == len(X)
