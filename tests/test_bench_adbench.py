"""The benchmark of few and incomplete labels: what is labelled, what is told, what is shown."""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

BENCH = Path(__file__).parents[1] / "bench"
Y = np.random.default_rng(0).permutation(np.repeat([0, 1], [130, 70]))
SHARES = [1, 5, 25, 100]


@pytest.fixture
def module(monkeypatch):
    """A function that imports a module of the benchmark as its scripts do: from their folder."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module


@pytest.fixture
def folder(tmp_path):
    """Two small tables whose anomalies lie apart."""
    for seed, name in enumerate(["wells", "tides"]):
        y = np.repeat([0, 1], [80, 20]).astype(np.int8)
        X = np.random.default_rng(seed).normal(size=(100, 3)) + 4 * y[:, None]
        np.savez(tmp_path / f"{name}.npz", X=X.astype(np.float32), y=y)
    return tmp_path


@pytest.mark.parametrize("share", SHARES)
def test_seven_tenths_of_each_class_are_trained_on_and_no_row_twice(module, share):
    division = module("adbench").divide(Y, share=share, seed=0)
    assert_array_equal(np.sort(np.concatenate([division.train, division.test])), np.arange(200))
    assert np.bincount(Y[division.train]).tolist() == [91, 49]


@pytest.mark.parametrize(("share", "n"), [(1, 1), (5, 3), (25, 13), (100, 49)])
def test_the_share_of_the_training_anomalies_is_rounded_up(module, share, n):
    division = module("adbench").divide(Y, share=share, seed=0)
    assert Y[division.train][division.is_labelled].tolist() == [1] * n


def test_a_larger_share_labels_more_of_the_same_rows_and_a_seed_draws_others(module):
    divide = module("adbench").divide
    few, many = (divide(Y, share=share, seed=3) for share in (5, 25))
    assert_array_equal(few.train, many.train)
    assert (many.is_labelled | ~few.is_labelled).all()
    assert set(divide(Y, share=5, seed=4).test) != set(few.test)


def test_what_nobody_labelled_has_no_label_for_the_detector_and_0_for_its_peers(
    module, folder, monkeypatch
):
    adbench, given = module("adbench"), []

    class Recorder:
        def fit(self, X, y):
            given.append((X, y))

        def score(self, X):
            return X[:, 0]

    monkeypatch.setitem(adbench.METHODS, "made", module("peers").Method(Recorder, "numpy", ""))
    cell = adbench.Cell("adbench", "wells", 25, 0, "made")
    result = adbench.measure(cell, folder=folder)
    [(X, y)] = given
    assert X.shape == (70, 3)
    assert np.bincount(y).tolist() == [66, 4]
    assert result["n_labelled"] == 4
    assert result["average_precision"] > result["prevalence"] == 0.2
    assert adbench.named(y * 0) is None
    assert adbench.named(np.array([1, 0])).tolist() == ["anomaly", None]


def test_a_run_measures_what_is_missing_and_prints_what_is_kept(
    module, folder, monkeypatch, capsys
):
    adbench = module("adbench")
    methods = ["isolation forest", "random forest"]
    out = folder / "out"
    command = ["adbench.py", "--data", str(folder), "--out", str(out), "--seeds", "0"]
    monkeypatch.setattr(sys, "argv", [*command, "--shares", "5", "100", "--only", *methods])
    adbench.main()
    first = capsys.readouterr().out
    cells = [json.loads(path.read_text()) for path in (out / "adbench").iterdir()]
    assert {(c["data"], c["share"], c["seed"], c["method"]) for c in cells} == {
        (data, share, 0, m) for data in ("wells", "tides") for share in (5, 100) for m in methods
    }
    assert min(c["average_precision"] for c in cells if c["share"] == 100) > 0.8
    monkeypatch.setattr(sys, "argv", [*command, "--kept"])
    monkeypatch.setattr(adbench, "measure", print)  # whose words would be more of them
    adbench.main()
    assert sorted(capsys.readouterr().out.split()) == sorted(first.split())


def result(method, data, share, seed, area):
    return {
        "method": method,
        "data": data,
        "share": share,
        "seed": seed,
        "average_precision": area,
        "prevalence": 0.125,
        "fit_seconds": 2.0,
        "score_seconds": 1.0,
        "package": "made 1.0",
        "settings": "none",
    }


def test_the_standings_take_whole_seeds_and_rank_tables(module):
    areas = {
        "good": {5: (0.9, 0.7), 100: (1.0, 0.8)},
        "fair": {5: (0.5, 0.7), 100: (0.6, 0.6)},
        "poor": {5: (0.2, 0.2), 100: (0.2, 0.4)},
    }
    results = [
        result(method, data, share, seed, area)
        for method, by_share in areas.items()
        for share, pair in by_share.items()
        for data, area in zip(["wells", "tides"], pair, strict=True)
        for seed in (0, 1)
    ]
    results[0]["average_precision"] = 0.7
    results += [result("good", "wells", 5, 2, 0.0), result("late", "wells", 5, 0, 1.0)]
    text = module("standings").standings_by_share(results, markdown=True, by_table=True)
    assert "| good | **0.750** | **0.900** | **0.825** | 2 |" in text
    assert "| fair | 0.600 | 0.600 | 0.600 | 2 |" in text
    assert "| (prevalence) | 0.125 | 0.125 | 0.125 |  |" in text
    assert "| good | 1.25 | 1.00 | 1.00 |" in text
    assert "| fair | 1.75 | 2.00 | 2.00 |" in text
    assert "| 100 % labelled | good | fair | poor |" in text
    assert "| tides | **0.800** | 0.600 | 0.400 |" in text
    assert "| good | 2.0 | 1.0 |" in text
    assert "left out: late." in text


def test_a_single_anomaly_is_repeated_where_pairs_are_drawn(module):
    class Recorder:
        def fit(self, X, y):
            self.X_, self.y_ = X, y

    peer = module("peers").Prepared(Recorder(), at_least=2)
    X, y = np.arange(4.0)[:, None], np.array([0, 0, 1, 0])
    given = peer.fit(X, y).estimator
    assert given.X_[:, 0].tolist() == [0, 1, 2, 3, 2]
    assert given.y_.tolist() == [0, 0, 1, 0, 1]
