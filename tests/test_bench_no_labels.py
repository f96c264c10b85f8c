"""The benchmark without labels: which rows are trained on, what is told, what is shown."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

BENCH = Path(__file__).parents[1] / "bench"
CLEAN, CONTAMINATED = "only normal rows", "nobody has looked"


@pytest.fixture
def no_labels(monkeypatch):
    """The benchmark, imported as its scripts do: from their folder."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module("no_labels")


@pytest.fixture
def folder(tmp_path):
    """A table of each collection, whose rows are their own numbers; anomalies are above 1,000."""
    y = np.repeat([0, 1], [140, 60])
    X = (np.arange(200) + 1000 * y)[:, None].astype(np.float32)
    test, y_test = X[90:180], y[90:180]  # 50 normal rows, 40 anomalies
    for name, arrays in {
        "adbench": {"X": X, "y": y},
        "oddbench-splits": {"train": X[:90], "test": test, "y": y_test},
    }.items():
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "wells.npz", **arrays)
    return tmp_path


def task(no_labels, folder, case, collection, *, seed=0):
    cell = no_labels.Cell("no_labels", case, collection, "wells", seed, "LOF")
    return no_labels.task_of(cell, folder=folder)


@pytest.mark.parametrize("collection", ["adbench", "oddbench-splits"])
def test_normal_rows_alone_are_trained_on_and_no_row_twice(no_labels, folder, collection):
    clean = task(no_labels, folder, CLEAN, collection)
    assert clean.X.max() < 1000
    assert not np.isin(clean.X, clean.X_test).any()
    assert_array_equal(clean.X_test[:, 0] > 1000, clean.y_test)


@pytest.mark.parametrize(("collection", "n_normal"), [("adbench", 98), ("oddbench-splits", 90)])
def test_a_tenth_of_the_rows_nobody_looked_at_are_anomalies(
    no_labels, folder, collection, n_normal
):
    rows = task(no_labels, folder, CONTAMINATED, collection)
    assert np.bincount(rows.X[:, 0] > 1000).tolist() == [n_normal, 10]
    assert len(np.unique(rows.X)) == len(rows.X)
    assert not np.isin(rows.X, rows.X_test).any()
    assert_array_equal(rows.X_test[:, 0] > 1000, rows.y_test)


def test_anomalies_that_are_trained_on_leave_the_test_of_a_split_and_are_drawn(no_labels, folder):
    clean = task(no_labels, folder, CLEAN, "oddbench-splits")
    first, second = (
        task(no_labels, folder, CONTAMINATED, "oddbench-splits", seed=seed) for seed in (0, 1)
    )
    assert len(first.X_test) == len(clean.X_test) - 10
    assert set(first.X_test[:, 0]) != set(second.X_test[:, 0])
    assert set(first.X[:, 0]) | set(first.X_test[:, 0]) == set(clean.X[:, 0]) | set(
        clean.X_test[:, 0]
    )


def test_few_anomalies_of_a_split_are_halved(no_labels, folder):
    rng = np.random.default_rng(0)
    y = (np.arange(50) < 6).astype(np.int8)
    np.savez(
        folder / "oddbench-splits" / "wells.npz",
        train=rng.normal(size=(200, 1)),
        test=rng.normal(size=(50, 1)),
        y=y,
    )
    rows = task(no_labels, folder, CONTAMINATED, "oddbench-splits")
    assert (len(rows.X), int(rows.y_test.sum())) == (203, 3)


@pytest.mark.parametrize(
    ("method", "case", "y", "unlabelled"),
    [
        ("eqsep", CLEAN, None, "auto"),
        ("eqsep", CONTAMINATED, None, "auto"),
        ("eqsep, told", CLEAN, [0, 0], "auto"),
        ("eqsep, told", CONTAMINATED, None, "doubted"),
    ],
)
def test_the_detector_is_told_the_case_only_where_its_name_says_so(
    no_labels, monkeypatch, method, case, y, unlabelled
):
    given = {}

    class Recorder:
        def __init__(self, **settings):
            given["unlabelled"] = settings.get("unlabelled", "auto")

        def fit(self, _, y):
            given["y"] = None if y is None else list(y)

    monkeypatch.setattr("eqsep.Detector", Recorder)
    cell = no_labels.Cell("no_labels", case, "adbench", "wells", 0, method)
    no_labels.model_of(cell).fit(np.zeros((2, 1)), np.zeros(2, dtype=int))
    assert given == {"y": y, "unlabelled": unlabelled}


def test_every_method_ranks_far_rows_first(no_labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    far = np.concatenate([X[:30], X[:5] + 20])
    measured = {n: one for n, one in no_labels.METHODS.items() if one.package() is not None}
    assert {"eqsep", "isolation forest", "LOF"} <= measured.keys()  # others may not be installed
    for name, method in measured.items():
        score = method.build().fit(X, np.zeros(300, dtype=int)).score(far)
        assert min(score[30:]) > max(score[:30]), name


def test_fewer_rows_than_neighbours_are_all_neighbours(no_labels):
    model = no_labels.METHODS["100 neighbours"].build()
    X = np.array([[0.0], [2.0]])
    score = model.fit(X, np.zeros(2, dtype=int)).score(np.array([[0.0], [6.0]]))
    assert score.tolist() == [2.0, 6.0]


def test_a_run_measures_what_is_missing_and_a_split_of_its_own_once(
    no_labels, folder, monkeypatch, capsys
):
    monkeypatch.setattr(no_labels, "warm_up", lambda: None)
    monkeypatch.setattr("cells.get_context", lambda _: InThisProcess())
    command = ["no_labels.py", "--data", str(folder), "--out", str(folder / "out")]
    command += ["--commit", "abc", "--only", "LOF", "5 neighbours"]
    monkeypatch.setattr(sys, "argv", command)
    no_labels.main()
    first = capsys.readouterr()
    assert "20/20" in first.err
    assert "| " not in first.out
    monkeypatch.setattr(sys, "argv", [*command, "--kept", "--markdown"])
    no_labels.main()
    kept = capsys.readouterr()
    assert kept.out.startswith("Commit abc.\n")
    assert "| Tables won, of 1 (equals all win) |" in kept.out


class InThisProcess:
    """In place of processes, each of which would import all libraries."""

    def Pool(self, *_):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def imap_unordered(self, measure, cells):
        self.done = map(measure, cells)
        return self

    def next(self, _):
        return next(self.done)


def result(method, case, collection, data, seed, area):
    about = {"prevalence": 0.125, "fit_seconds": 2.0, "score_seconds": 1.0}
    words = {"package": "made 1.0", "settings": "none"}
    names = {"method": method, "case": case, "collection": collection, "data": data, "seed": seed}
    return {**names, "average_precision": area, **about, **words}


def test_the_standings_have_a_column_for_each_case_and_collection(no_labels):
    areas = {"eqsep": (0.9, 0.7), "made": (0.5, 0.8)}
    results = [
        result(method, CLEAN, "adbench", data, seed, area)
        for method, pair in areas.items()
        for data, area in zip(["wells", "tides"], pair, strict=True)
        for seed in (0, 1)
    ]
    results += [result("eqsep", CLEAN, "oddbench-splits", "gusts", 0, 0.25)]
    results += [result("late", CLEAN, "adbench", "wells", 0, 1.0)]
    text = no_labels.standings_without_labels(
        results, markdown=True, by_table=True, reference="eqsep"
    )
    columns = "only normal rows: adbench | only normal rows: oddbench-splits |"
    assert f"| Average precision without labels, 95 % interval | {columns}" in text
    assert "| eqsep | **0.800 [0.700, 0.900]** | **0.250 [0.250, 0.250]** |" in text
    assert "| made | 0.650 [0.500, 0.800] |  |" in text
    assert "| made | +0.150 [-0.100, +0.400] |  | 1 | 1 |" in text
    assert "| tides | 0.700 | **0.800** |" in text
    assert "left out: made, late." in text
