"""Commands and promises: a rate with a confidence, a false-discovery rate, judged rows."""

import numpy as np
import pyarrow.csv
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

from eqsep import Detector, load_model
from eqsep.cli import app
from eqsep.detector import Config

NORMAL = np.random.default_rng(0).normal(size=(1_200, 2))
MORE = np.random.default_rng(1).normal(size=(300, 2))


def quick(**parameters):
    settings = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
    return Detector(**settings | parameters)


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


@pytest.fixture(scope="module")
def detector():
    return quick().fit(rows(2_500))


def batch(rng, n_normal, n_anomalies):
    return np.vstack([rng.normal(size=(n_normal, 2)), rng.normal(6, 1, size=(n_anomalies, 2))])


def test_fit_and_info_tell_the_rate_on_average_and_the_interval(tmp_path, capsys):
    np.savetxt(tmp_path / "r.csv", rows(2_500), delimiter=",", header="a,b", comments="")
    file, model = str(tmp_path / "r.csv"), str(tmp_path / "m.eqsep")
    words = ["fit", file, "--clean", "--landmarks", "60", "--out", model]

    def said(*words):
        app(list(words), standalone_mode=False)
        return capsys.readouterr().out

    said(*words)
    told = said("info", model)
    assert (
        "promise     1.00% of new normal rows raise an alarm, on average (calibrated on 499 h"
        in told
    )
    assert "interval    0.33% to 2.04% for 95 of 100 models like this one\n" in told
    page = tmp_path / "page.html"
    told = said(*words, "--confidence", "0.95", "--report", str(page))
    assert (
        "promise     at most 1.00% of new normal rows raise an alarm, with a confidence of 0.9"
        in told
    )
    assert "interval    0.05% to 1.11% for 95 of 100 models like this one, 0.40% on" in told
    assert "between 0.05% and 1.11% for 95 of 100 models" in page.read_text()


@pytest.mark.parametrize("n_anomalies", [30, 0])
def test_the_command_selects_from_all_files_at_once(detector, tmp_path, capsys, n_anomalies):
    X = batch(np.random.default_rng(2), 300, n_anomalies)
    detector.save(tmp_path / "m.eqsep")
    files = [str(tmp_path / f"{i}.csv") for i in range(2)]
    for file, part in zip(files, np.array_split(X, 2), strict=True):
        np.savetxt(file, part, delimiter=",", header="a,b", comments="", fmt="%.17g")
    out = str(tmp_path / "scores.csv")
    with pytest.raises(SystemExit) as ended:
        app(["score", str(tmp_path / "m.eqsep"), *files, "--fdr", "0.1", "--out", out])
    assert ended.value.code == 0
    told, needed = " ".join(capsys.readouterr().out.split()), -(-len(X) // 50)  # 499 rows calibrate
    assert f"--fdr gives {needed} alarms or more, or none (fewer could be chance)" in told
    alarm = pyarrow.csv.read_csv(out).column("alarm").to_numpy(zero_copy_only=False)
    assert_array_equal(alarm.astype(bool), detector.select(X, fdr=0.1))
    assert alarm.sum() >= n_anomalies


def test_the_command_refuses_two_promises_and_input_that_comes_once(detector, tmp_path, capsys):
    detector.save(tmp_path / "m.eqsep")
    words = ["score", str(tmp_path / "m.eqsep"), "-", "--fdr"]
    for more, told in (
        (["0.1"], "--fdr reads all rows twice"),
        (["0.1", "--false-alarm-rate", "0.1"], "are two promises"),
    ):
        with pytest.raises(SystemExit):
            app([*words, *more])
        assert told in " ".join(capsys.readouterr().err.split())


# ------------------------------------------------------------------------------ judged rows


@pytest.fixture(scope="module")
def fitted():
    return lambda: quick(false_alarm_rate=0.05).fit(NORMAL, ["normal"] * len(NORMAL))


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
        assert_array_equal(
            now.model_.evidence.held_out.normal, before.model_.evidence.held_out.normal
        )
        assert now.model_.evidence.weight[0] == before.model_.evidence.weight[0] + weight


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
    assert "is not a kind in column 'kind'" in told
    assert "Did you mean 'fraud'?" in told
