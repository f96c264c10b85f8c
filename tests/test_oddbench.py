"""The benchmark nobody tuned on: its searches keep to their time, and its tables say what is so."""

import json
import sys
from importlib import import_module
from multiprocessing import TimeoutError as OutOfTime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCH = Path(__file__).parents[1] / "bench"
N = 90
Y = np.repeat([0, 1], [N - 12, 12])
X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32) + 4 * Y[:, None]


@pytest.fixture
def module(monkeypatch):
    """A function that imports a module of the benchmark as its scripts do: from their folder."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module


@pytest.fixture
def folder(tmp_path):
    """Two small tables whose anomalies lie apart."""
    for name in ("wells", "tides"):
        np.savez(tmp_path / f"{name}.npz", X=X.astype(np.float32), y=Y.astype(np.int8))
    return tmp_path


class Ranker:
    """A peer that ranks by the first column, upwards where its setting is "up"."""

    def __init__(self, *, settings=None, **_):
        self.way = (settings or {}).get("way", "down")

    def fit(self, X, y):
        assert len(X) == len(y) > np.sum(y) > 0
        return self

    def score(self, X):
        return X[:, 0] if self.way == "up" else -X[:, 0]


@pytest.fixture
def oddbench(module, monkeypatch):
    """The benchmark with a peer "made", which is good with other settings than its default."""
    oddbench = module("oddbench")
    made = module("peers").Method(Ranker, "numpy", "none")
    monkeypatch.setitem(oddbench.DEFAULTS, "made", made)
    monkeypatch.setitem(oddbench.GRIDS, "made", {"way": ["down", "up"]})
    for name in ("made", "made, tuned", "made, tuned 10x"):
        monkeypatch.setitem(oddbench.METHODS, name, made)
    return oddbench


def test_a_search_with_time_finds_better_settings_and_compares_the_whole_grid(oddbench):
    found = oddbench.search("made", X, Y, seconds=60)
    assert found.chosen == {"way": "up"}
    assert found.n_candidates == 3


def test_a_search_without_time_or_with_a_single_anomaly_keeps_the_default(oddbench):
    assert oddbench.search("made", X, Y, seconds=0).chosen == {}
    one = np.arange(N) == N - 1
    found = oddbench.search("made", X, one.astype(int), seconds=60)
    assert (found.chosen, found.n_candidates, found.seconds) == ({}, 1, 0.0)


def test_two_anomalies_are_searched_with_two_folds(oddbench):
    two = (np.arange(N) >= N - 2).astype(int)
    assert oddbench.search("made", X, two, seconds=60).chosen == {"way": "up"}


def kept(oddbench, out, *, ours, default):
    """The JSONs of the Detector and of the default, with the seconds that their fits took."""
    for method, seconds in (("eqsep", ours), ("made", default)):
        cell = oddbench.Cell("oddbench", "wells", 100, 0, method)
        path = import_module("cells").path_of(cell, out)
        path.parent.mkdir(parents=True, exist_ok=True)
        result = {**vars(cell), "fit_seconds": seconds, "average_precision": 0.25, "load": 0.0}
        path.write_text(json.dumps(result))


def tuned(oddbench, folder, method):
    cell = oddbench.Cell("oddbench", "wells", 100, 0, method)
    return oddbench.measure(cell, folder=folder, out=folder / "out", commit="abc")


def test_a_tuned_peer_is_searched_in_the_time_of_the_detector_and_fitted_again(oddbench, folder):
    kept(oddbench, folder / "out", ours=60.0, default=0.1)
    result = tuned(oddbench, folder, "made, tuned")
    assert result["chosen"] == {"way": "up"}
    assert result["average_precision"] > 0.9
    assert result["fit_seconds"] >= result["search_seconds"] > 0
    assert result["commit"] == "abc"


def test_a_peer_slower_than_the_detector_keeps_its_default_and_that_result(oddbench, folder):
    kept(oddbench, folder / "out", ours=2.0, default=10.0)
    result = tuned(oddbench, folder, "made, tuned")
    assert (result["chosen"], result["n_candidates"]) == ({}, 1)
    assert (result["average_precision"], result["fit_seconds"]) == (0.25, 10.0)
    assert tuned(oddbench, folder, "made, tuned 10x")["chosen"] == {"way": "up"}


@pytest.mark.parametrize("name", ["isolation forest", "LOF", "HistGradientBoosting"])
def test_every_setting_of_a_grid_is_one_that_the_peer_has(module, name):
    oddbench = module("oddbench")
    for setting, values in oddbench.GRIDS[name].items():
        for value in values:
            estimator = oddbench.built(name, {setting: value}).estimator
            assert estimator.get_params()[setting] == value


def test_all_peers_have_a_grid_and_are_measured_in_both_ways(module):
    oddbench = module("oddbench")
    assert set(oddbench.GRIDS) == set(oddbench.DEFAULTS)
    assert set(oddbench.METHODS) >= {"CatBoost", "CatBoost, tuned", "TabM", "DeepSAD, tuned"}


def test_a_method_whose_package_is_missing_is_left_out_by_name(module):
    made, absent = (module("peers").Method(Ranker, name, "") for name in ("numpy", "no_such_thing"))
    assert dict(module("cells").left_out({"made": made, "absent": absent})) == {
        "absent": "no_such_thing is not installed."
    }


class InTurn:
    """In place of a pool of processes, each of which would import all libraries."""

    def __init__(self, *_):
        self.done = iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def imap_unordered(self, measure, cells):
        self.done = map(measure, cells)
        return self

    def next(self, timeout):
        """What comes next; nothing is begun once time is out, as a thread could not be ended."""
        if timeout <= 0:
            raise OutOfTime
        return next(self.done)


@pytest.mark.parametrize("pool", [InTurn, pytest.param(None, marks=pytest.mark.extra)])
def test_a_run_in_processes_is_continued_and_a_limit_says_that_it_is_incomplete(
    module, folder, monkeypatch, capsys, pool
):
    oddbench = module("oddbench")
    monkeypatch.setattr(oddbench, "warm_up", lambda: None)  # nothing of ours is measured
    if pool:
        monkeypatch.setattr("cells.get_context", lambda _: SimpleNamespace(Pool=pool))
    command = ["oddbench.py", "--data", str(folder), "--out", str(folder / "out")]
    command += ["--shares", "25", "--divisions", "0", "--commit", "abc"]

    def run(*more):
        monkeypatch.setattr(sys, "argv", [*command, *more])
        oddbench.main()
        return capsys.readouterr()

    first = run("--only", "LOF", "--tables", "wells")
    assert first.out.startswith("Commit abc.\n")
    assert "1/1 data_wells-share_25-seed_0-method_LOF" in first.err
    stopped = run("--only", "LOF", "--limit-seconds", "0")
    assert "Out of time after 0 of 1 cells." in stopped.err
    assert "INCOMPLETE: 1 of 2 cells." in stopped.out
    assert "Tables won, of 1 " in stopped.out
    whole = run("--only", "LOF", "--processes", "2")
    assert "1/1 data_tides" in whole.err
    assert "INCOMPLETE" not in whole.out
    assert "Tables won, of 2" in whole.out


def result(method, data, seed, area, **more):
    about = {"prevalence": 0.125, "fit_seconds": 2.0, "score_seconds": 1.0}
    names = {"method": method, "data": data, "share": 5, "seed": seed}
    words = {"package": "made 1.0", "settings": "none", "commit": "abc"}
    return {**names, "average_precision": area, **about, **words, **more}


def test_the_standings_have_intervals_distances_wins_and_searches(module):
    areas = {"eqsep": (0.9, 0.7), "made": (0.5, 0.8), "made, tuned": (0.9, 0.2)}
    results = [
        result(
            method,
            data,
            seed,
            area,
            **({"n_candidates": 3, "chosen": {"a": 1}} if "," in method else {}),
        )
        for method, pair in areas.items()
        for data, area in zip(["wells", "tides"], pair, strict=True)
        for seed in (0, 1)
    ]
    text = module("standings").standings_by_share(
        results, markdown=True, by_table=False, reference="eqsep"
    )
    assert "| eqsep | **0.800 [0.700, 0.900]** | **0.800 [0.700, 0.900]** | 2 |" in text
    assert "| made | +0.150 [-0.100, +0.400] | +0.150 [-0.100, +0.400] | 1 | 1 |" in text
    assert "| made, tuned | +0.250 [+0.000, +0.500] | +0.250 [+0.000, +0.500] | 1 | 0 |" in text
    wins = text[text.index("Tables won, of 2") :]
    assert wins.count("| 1 | 1 |") == 3
    assert "| made, tuned | 3 | 3 | 100% | 100% |" in text


def test_a_method_without_the_share_0_counts_at_the_other_shares(module):
    areas = {("eqsep", 0): 0.25, ("eqsep", 5): 0.5, ("made", 5): 0.75}
    results = [
        result(method, data, 0, area) | {"share": share}
        for (method, share), area in areas.items()
        for data in ("wells", "tides")
    ]
    text = module("standings").standings_by_share(
        results, markdown=True, by_table=True, reference="eqsep"
    )
    assert "interval | 0 % | 5 % | mean | seeds |" in text
    assert "| eqsep | **0.250 [0.250, 0.250]** | 0.500 [0.500, 0.500] | 0.500 " in text
    assert "| made |  | **0.750 [0.750, 0.750]** | **0.750 " in text
    assert "| made |  | -0.250 [-0.250, -0.250] | -0.250 [-0.250, -0.250] | 0 | 2 |" in text
    assert "| 0 % labelled | eqsep |\n" in text
    text = module("standings").standings_by_share(
        results[1:], markdown=True, by_table=True, reference="eqsep"
    )
    assert "| 0 %" not in text
    assert "left out: eqsep." in text


def test_where_nothing_is_labelled_only_methods_that_need_no_labels_are_measured(
    oddbench, folder, monkeypatch, capsys
):
    monkeypatch.setattr(oddbench, "warm_up", lambda: None)
    monkeypatch.setattr("cells.get_context", lambda _: SimpleNamespace(Pool=InTurn))
    command = ["oddbench.py", "--data", str(folder), "--out", str(folder / "out"), "--seeds", "0"]
    monkeypatch.setattr(sys, "argv", [*command, "--shares", "0", "5", "--only", "LOF", "made"])
    oddbench.main()
    assert "6/6" in (printed := capsys.readouterr()).err
    cells = [json.loads(path.read_text()) for path in (folder / "out" / "oddbench").iterdir()]
    assert {(c["method"], c["share"]) for c in cells} == {("LOF", 0), ("LOF", 5), ("made", 5)}
    assert {c["n_labelled"] for c in cells if c["share"] == 0} == {0}
    assert "0 %" in printed.out


def test_results_of_several_commits_are_told(module):
    head_of = module("cells").head_of
    some = [result("eqsep", "wells", 0, 0.5), result("made", "wells", 0, 0.5, commit="def")]
    assert head_of(some[:1], 1) == "Commit abc."
    assert "COMMITS DIFFER: ['abc', 'def']" in head_of(some, 2)
