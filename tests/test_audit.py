"""Rows that were judged because they raised an alarm: they teach, and never calibrate."""

from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

from eqsep import Detector, load_model
from eqsep.cli import app
from eqsep.detector import NewKindWarning

NORMAL = np.random.default_rng(0).normal(size=(1_200, 2))
MORE = np.random.default_rng(1).normal(size=(300, 2))


@pytest.fixture(scope="module")
def fitted():
    detector = Detector(n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.05, random_state=0)
    return lambda: clone(detector).fit(NORMAL, ["normal"] * len(NORMAL))


def test_judged_rows_are_all_learnt_and_none_is_held_out(fitted):
    before, learnt, judged = fitted(), fitted(), fitted()
    learnt.partial_fit(MORE, ["normal"] * 300)
    judged.partial_fit(MORE, ["normal"] * 300, judged=True)
    assert_array_equal(judged.model_.evidence.held_out.normal, before.model_.evidence.held_out.normal)
    assert len(learnt.model_.evidence.held_out.normal) > len(before.model_.evidence.held_out.normal)
    assert judged.model_.evidence.sums.weight[0] == before.model_.evidence.sums.weight[0] + 300
    assert abs(judged.coef_ - before.coef_).max() > 1e-3


def test_judged_rows_are_forgotten_as_they_were_learnt(fitted):
    before, detector = fitted(), fitted()
    rows, y = np.vstack([MORE, MORE[:10] + 9]), ["normal"] * 300 + ["fraud"] * 10
    detector.partial_fit(rows, y, judged=True)
    assert (detector.predict_kind(MORE[10:40] + 9) == "fraud").mean() > 0.8
    detector.forget(rows, y, judged=True)
    assert_allclose(detector.coef_, before.coef_, atol=1e-6)
    assert detector.kinds_ == ()


def test_alarms_that_calibrate_spoil_the_rate_and_judged_ones_do_not(fitted):
    rates = {}
    for judged in (False, True):
        detector, rng = fitted(), np.random.default_rng(2)
        for _ in range(3):
            rows = rng.normal(size=(3_000, 2))
            alarms = rows[detector.predict(rows) == 1]
            asked = nullcontext() if judged else pytest.warns(NewKindWarning, match="judged=True")
            with asked:
                detector.partial_fit(alarms, ["normal"] * len(alarms), judged=judged)
        rates[judged] = detector.predict(rng.normal(size=(10_000, 2))).mean()
    low, high = fitted().calibration_.interval(0.05)[1:]
    assert rates[False] < low < rates[True] < high


def test_rows_of_a_first_fit_were_not_judged():
    with pytest.raises(NotFittedError):
        Detector().partial_fit(NORMAL, judged=True)


def test_the_command_learns_and_forgets_judged_rows(fitted, tmp_path):
    model, out, rows = (tmp_path / name for name in ("a.eqsep", "b.eqsep", "rows.csv"))
    fitted().save(model)
    lines = [f"{x},{y},normal" for x, y in MORE.tolist()]
    rows.write_text("\n".join(["x0,x1,kind", *lines]))
    before = load_model(model)
    for command, weight in (("learn", 300), ("forget", 0)):
        words = [command, model if weight else out, rows, "--label", "kind", "--judged"]
        result = CliRunner().invoke(app, [*map(str, words), "--out", str(out)])
        assert result.exit_code == 0, result.output
        now = load_model(out)
        assert_array_equal(now.model_.evidence.held_out.normal, before.model_.evidence.held_out.normal)
        assert now.model_.evidence.sums.weight[0] == before.model_.evidence.sums.weight[0] + weight


def test_the_command_learns_and_forgets_seen_kinds_alone(fitted, tmp_path):
    model, out, rows = (tmp_path / name for name in ("a.eqsep", "b.eqsep", "rows.csv"))
    fitted().save(model)
    kinds = ["normal", "fraud", "other"] * 100
    lines = [f"{x},{y},{kind}" for (x, y), kind in zip(MORE.tolist(), kinds, strict=True)]
    rows.write_text("\n".join(["x0,x1,kind", *lines]))

    def run(command, model, *seen):
        words = (command, model, rows, "--label", "kind", "--out", out, *seen)
        return CliRunner().invoke(app, [str(word) for word in words])

    result = run("learn", model, "--seen", "fraud")
    assert result.exit_code == 0, result.output
    assert "200: 100 fraud, 100 normal" in result.stdout
    assert load_model(out).kinds_ == ("fraud",)
    assert run("forget", out).exit_code == 2  # it has learnt no row of the other kind
    result = run("forget", out, "--seen", "fraud")
    assert result.exit_code == 0, result.output
    assert_allclose(load_model(out).coef_, load_model(model).coef_, atol=1e-6)
    told = run("learn", model, "--seen", "froud").stderr
    assert "is no kind in column 'kind'" in told
    assert "Did you mean 'fraud'?" in told
