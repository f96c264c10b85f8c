"""The ablation: scores without a term, what changes by it, and what terms cost."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector
from eqsep.detector import Config

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture
def ablation(monkeypatch):
    """The benchmark, imported as its scripts do: from their folder."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module("ablation")


def rows(n=300, n_anomalies=30, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(n, 3)), rng.normal(5, 1, size=(n_anomalies, 3))])
    return X, np.repeat([0, 1], [n, n_anomalies])


@pytest.fixture(scope="module")
def model():
    return Detector(config=Config.fast(), random_state=0).fit_quietly(*rows()).model


def values_and_weights(model, X):
    values = model.score.values(model.plan.encode(X))
    return values, {term.name: term.weight for term in model.plan.terms}


def test_with_all_terms_the_score_is_that_of_the_model(ablation, model):
    X, _ = rows(seed=1)
    without = ablation.score_without(*values_and_weights(model, X), "")
    assert_allclose(without, model.scores(X), rtol=1e-6)


@pytest.mark.parametrize("name", ["excess", "vote", "nearest", "surprise"])
def test_a_term_that_is_out_takes_what_it_adds(ablation, model, name):
    values, weights = values_and_weights(model, rows(seed=1)[0])
    whole, less = (ablation.score_without(values, weights, out) for out in ("", name))
    assert_allclose(whole - less, weights[name] * values[name], atol=1e-12)


def test_residual_and_normality_take_over_from_each_other(ablation, model):
    values, weights = values_and_weights(model, rows(seed=1)[0])
    others = {name: v for name, v in values.items() if name not in ("residual", "normality")}
    rest = sum(weights[name] * v for name, v in others.items())
    for out, left in (("residual", "normality"), ("normality", "residual")):
        found = ablation.score_without(values, weights, out)
        assert_allclose(found, np.sqrt(values[left]) + rest, rtol=1e-12)
    alone = {name: v for name, v in values.items() if name != "normality"}
    assert_allclose(ablation.score_without(alone, weights, "residual"), rest, rtol=1e-12)


def test_scoring_takes_time_by_the_terms_that_are_scored(ablation, model):
    seconds = ablation.scoring_seconds(model, model.plan.encode(rows()[0]))
    assert list(seconds) == list(model.score.functions)
    assert seconds["residual"] > 0


def test_the_seconds_of_a_fit_are_those_of_its_terms(ablation):
    detector = Detector(config=Config.fast(), random_state=0)
    with ablation.fit_timed() as seconds:
        model = detector.fit_quietly(*rows()).model
    assert all(seconds[term.name] > 0 for term in model.plan.terms)
    before = dict(seconds)
    detector.fit_quietly(*rows())  # timed no more
    assert seconds == before


def result(benchmark, data, area, without):
    return {
        "benchmark": benchmark,
        "data": data,
        "average_precision": {"all": area},
        "without": {name: {"all": value} for name, value in without.items()},
        "fit_seconds": dict.fromkeys(without, 0.25),
        "score_seconds": dict.fromkeys(without, 0.5),
    }


RESULTS = [
    result("adbench", "wells", 0.5, {"residual": 0.3, "vote": 0.4}),
    result("adbench", "wells", 0.7, {"residual": 0.5}),  # no vote: nothing changes
    result("adbench", "tides", 0.9, {"residual": 0.8, "vote": 0.9}),
]


def test_changes_are_means_over_the_tasks_of_a_table_and_then_over_tables(ablation):
    head, line = ablation.effects(RESULTS)
    shown = dict(zip(head, line, strict=True))
    assert shown["average precision"] == "adbench: all"
    assert (shown["tables"], shown["all terms"]) == ("2", "0.750")
    assert (shown["no residual"], shown["no vote"]) == ("-0.150", "-0.025")
    assert shown["no surprise"] == "+0.000"


def test_costs_are_means_over_the_tasks_that_have_the_term(ablation):
    _, *lines = ablation.costs(RESULTS)
    assert lines[:2] == [["residual", "3", "0.2500", "0.5000"], ["vote", "2", "0.2500", "0.5000"]]
    assert lines[-1][:2] == ["all terms", "3"]


def test_a_run_measures_each_task_once_and_prints_both_tables(
    ablation, tmp_path, monkeypatch, capsys
):
    (tmp_path / "adbench").mkdir()
    X, y = rows(400, 40)
    np.savez(tmp_path / "adbench" / "made.npz", X=X, y=y)
    command = ["ablation.py", "--only", "adbench", "--tables", "made", "--commit", "abc"]
    command += ["--data", str(tmp_path), "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", command)
    monkeypatch.setattr("cells.measure_missing", measured_here)
    ablation.main()
    files = sorted((tmp_path / "out").rglob("*.json"))
    assert len(files) == len(import_module("adbench").SHARES)
    printed = capsys.readouterr().out
    assert "Commit abc." in printed
    assert "| adbench: 100 % labelled | 1 |" in printed
    assert "| surprise | 4 |" in printed
    before = [file.stat().st_mtime_ns for file in files]
    ablation.main()
    assert_array_equal([file.stat().st_mtime_ns for file in files], before)
    assert json.loads(files[0].read_text())["average_precision"].keys() == {"1 % labelled"}


def measured_here(cells, measure, *, out, **_):
    """Without other processes, in which Python would start anew."""
    for cell in cells:
        import_module("cells").measured(cell, measure, out=out)
    return {}
