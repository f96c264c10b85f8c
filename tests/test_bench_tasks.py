"""The benchmark of seen and unseen kinds: its divisions do not leak, its tables say what is so."""

import sys
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

BENCH = Path(__file__).parents[1] / "bench"
COUNTS = {"normal": 400, "flood": 101, "scan": 40, "leak": 20}
KIND = np.random.default_rng(0).permutation(np.repeat(list(COUNTS), list(COUNTS.values())))
APART = np.arange(len(KIND))
SEEN = ["flood", "scan", "leak"]


@pytest.fixture
def module(monkeypatch):
    """A function that imports a module of the benchmark as its scripts do: from their folder."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module


@pytest.mark.parametrize("seen", SEEN)
def test_training_and_test_share_no_row_and_the_test_has_every_other_row(module, seen):
    division = module("tasks").divide(KIND, APART, seen=seen)
    assert_array_equal(np.sort(np.concatenate([division.train, division.test])), APART)


@pytest.mark.parametrize("seen", SEEN)
def test_training_has_half_of_the_normal_rows_and_of_the_seen_kind_alone(module, seen):
    division = module("tasks").divide(KIND, APART, seen=seen)
    names, counts = np.unique(KIND[division.train], return_counts=True)
    assert dict(zip(names, counts, strict=True)) == {
        "normal": 200,
        seen: COUNTS[seen] // 2,
    }


def test_where_all_kinds_are_seen_half_of_each_is_trained_on_and_the_rest_tested_on(module):
    division = module("tasks").divide(KIND, APART, seen=SEEN)
    assert_array_equal(np.sort(np.concatenate([division.train, division.test])), APART)
    assert Counter(KIND[division.train]) == {name: n // 2 for name, n in COUNTS.items()}


def test_a_division_is_the_same_at_every_call_and_for_the_normal_rows_of_every_task(module):
    divide = module("tasks").divide
    first, second = (divide(KIND, APART, seen="scan") for _ in range(2))
    assert_array_equal(first.train, second.train)
    assert_array_equal(first.test, second.test)
    normals = [
        [row for row in divide(KIND, APART, seen=seen).train if KIND[row] == "normal"]
        for seen in SEEN
    ]
    assert normals[0] == normals[1] == normals[2]


@pytest.mark.parametrize("seen", SEEN)
def test_no_group_has_known_rows_on_both_sides(module, seen):
    group = np.random.default_rng(1).integers(90, size=len(KIND))
    division = module("tasks").divide(KIND, group, seen=seen)
    known = division.test[np.isin(KIND[division.test], ("normal", seen))]
    assert not set(group[division.train]) & set(group[known])
    assert (KIND[known] == seen).any()
    assert 120 < np.sum(KIND[division.train] == "normal") < 280


def test_rows_beyond_the_most_are_neither_trained_nor_tested_on(module, monkeypatch):
    tasks = module("tasks")
    free = tasks.divide(KIND, APART, seen="flood")
    monkeypatch.setattr(tasks, "MOST_NORMAL", 30)
    monkeypatch.setattr(tasks, "MOST_SEEN", 7)
    capped = tasks.divide(KIND, APART, seen="flood")
    assert_array_equal(capped.test, free.test)
    assert set(capped.train) < set(free.train)
    assert [np.sum(KIND[capped.train] == name) for name in ("normal", "flood")] == [30, 7]


def test_a_kind_of_few_rows_cannot_be_the_seen_one(module):
    with pytest.raises(ValueError, match=r"at least 20 rows, 'leak' has 19 of 560"):
        module("tasks").divide(
            np.delete(KIND, np.flatnonzero(KIND == "leak")[0]), APART[1:], seen="leak"
        )


def test_the_tables_hold_every_kind_they_name(module, home_of):
    tasks = module("tasks")
    home_of("satimage")
    for name in ("satimage/1", "satimage/7"):
        rows = tasks.rows_of(name)
        assert {*np.unique(rows.kind)} == {"normal", *tasks.TABLES[name].kinds}
        assert rows.frame.shape == rows.matrix.shape == (6435, 36)


def test_no_run_of_the_process_is_torn_apart(module):
    tasks = module("tasks")
    rows = tasks.rows_of("process/0")
    assert {*np.unique(rows.kind)} == {"normal", *tasks.MADE_UP["process/0"].kinds}
    division = tasks.divide(rows.kind, rows.group, seen="leak")
    trained, tested = set(rows.group[division.train]), set(rows.group[division.test])
    assert not trained & tested
    assert trained | tested == set(range(80))
    assert Counter(rows.kind[division.train]) == {"normal": 20 * 300, "leak": 2 * 225}


def test_what_is_made_up_is_measured_only_where_it_is_named(module, monkeypatch):
    options = module("leave_one_kind_out").options
    monkeypatch.setattr("sys.argv", ["bench"])
    assert options().tables == list(module("tasks").TABLES)
    assert not set(module("tasks").MADE_UP) & set(options().tables)
    monkeypatch.setattr("sys.argv", ["bench", "--tables", "process/1"])
    assert options().tables == ["process/1"]


def test_the_distance_of_mahalanobis_is_by_the_covariance_of_the_normal_rows(module):
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(400, 2)) @ [[1.0, 0.9], [0.0, 0.4]]
    X = np.concatenate([normal, [[30.0, 30.0]]])
    model = module("peers").METHODS["Mahalanobis"].build().fit(X, np.arange(401) // 400)
    along, across = model.score(np.array([[2.0, 2.0], [1.0, -1.0]]))
    assert along < 8 < across


class Recorder:
    """An estimator that keeps what it is fitted on."""

    def fit(self, X, *labels):
        self.X_, self.labels_ = X, labels


def fitted_on(peer, *, n_normal, n_anomalous):
    """What a peer's estimator is given, where anomalous rows are 1 and normal ones 0."""
    y = np.repeat([0, 1], [n_normal, n_anomalous])
    return peer.fit(y[:, None].astype(float), y).estimator


def test_a_peer_of_normal_rows_sees_neither_anomalies_nor_labels(module):
    peer = module("peers").Prepared(Recorder(), normal_only=True, at_most=30)
    given = fitted_on(peer, n_normal=50, n_anomalous=50)
    assert given.labels_ == ()
    assert_array_equal(given.X_, np.zeros((30, 1)))


def test_tabpfn_without_its_weights_says_where_they_are(module, monkeypatch):
    peers = module("peers")
    monkeypatch.setitem(sys.modules, "tabpfn", SimpleNamespace(TabPFNRegressor=dict))
    monkeypatch.setenv("TABPFN_WEIGHTS", "")
    with pytest.raises(ImportError, match=r"TABPFN_WEIGHTS .*tabpfn-time-series"):
        peers.TABPFN.build()
    monkeypatch.setenv("TABPFN_WEIGHTS", __file__)
    assert peers.TABPFN.build().estimator["model_path"] == __file__


@pytest.mark.parametrize(("n_anomalous", "kept"), [(3, 3), (90, 20)])
def test_rare_anomalies_stay_where_rows_are_too_many(module, n_anomalous, kept):
    peer = module("peers").Prepared(Recorder(), at_most=40)
    given = fitted_on(peer, n_normal=200, n_anomalous=n_anomalous)
    assert_array_equal(given.X_[:, 0], given.labels_[0])
    assert np.bincount(given.labels_[0]).tolist() == [40 - kept, kept]


def test_a_cell_is_measured_once_and_a_failure_leaves_no_file(module, tmp_path):
    @dataclass(frozen=True)
    class Cell:
        table: str
        seen: str

    def fail(cell):
        raise RuntimeError(cell.seen)

    measured, cell = module("cells").measured, Cell("kinds", "fpv close")
    with pytest.raises(RuntimeError):
        measured(cell, fail, out=tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    first = measured(cell, lambda _: {"area": 0.5}, out=tmp_path)
    assert measured(cell, fail, out=tmp_path) == first == {**vars(cell), "area": 0.5}
    assert [path.name for path in (tmp_path / "kinds").iterdir()] == ["seen_fpv_close.json"]


def result(method, data, seen, area):
    three = dict.fromkeys(("seen", "unseen", "overall"), area)
    return {
        "method": method,
        "data": data,
        "seen": seen,
        "average_precision": three,
        "prevalence": dict.fromkeys(three, 0.125),
        "fit_seconds": 2.0,
        "score_seconds": 1.0,
        "package": "made 1.0",
        "settings": "none",
    }


def test_the_standings_average_within_tables_first_and_leave_out_who_lacks_a_task(module):
    tasks = [("wells", "dry"), ("wells", "salt"), ("wells", "iron"), ("tides", "flood")]
    areas = {
        "good": (0.9, 0.8, 0.7, 0.4),
        "fair": (0.5, 0.5, 0.5, 0.5),
        "poor": (0.2, 0.2, 0.2, 0.2),
    }
    results = [
        result(method, *task, area)
        for method, values in areas.items()
        for task, area in zip(tasks, values, strict=True)
    ]
    results.append(result("late", *tasks[0], 1.0))
    text = module("standings").standings(results, markdown=True)
    assert "| good | **0.800** | 0.400 | 0.600 | 1.50 | 1.25 |" in text
    assert "| fair | 0.500 | **0.500** | 0.500 | 1.50 | 1.75 |" in text
    assert "| (prevalence) | 0.125 | 0.125 | 0.125 |  |  |" in text
    assert "| good | 8.0 | 4.0 |" in text
    assert "left out: late." in text


def test_the_standings_say_from_whom_the_best_is_not_told_apart(module):
    tasks = [(name, "dry") for name in "abcdefghi"]
    areas = {"good": 0.9, "close": 0.8, "poor": 0.1}
    results = [result(method, *task, area) for method, area in areas.items() for task in tasks]
    text = module("standings").standings(results, markdown=True)
    assert "By tables, good is not told apart from: close." in text


def test_ranks_are_computed_from_a_page_with_satimage_once(module):
    page = """
| All anomalies together | tides | satimage/1 | satimage/7 | mean |
| --- | ---: | ---: | ---: | ---: |
| good | **0.9** | **0.6** | 0.2 | 0.57 |
| fair | 0.5 | 0.5 | **0.5** | 0.50 |
| poor | 0.1 | 0.1 | 0.1 | 0.10 |
| (prevalence) | 0.1 | 0.1 | 0.1 | 0.10 |

More words."""
    each, once = module("standings").ranks_of_page(page)
    assert "3 tables: critical difference" in each
    assert "good 1.33, fair 1.67, poor 3.00" in each
    assert "2 tables, satimage as one" in once
    assert "good 1.50, fair 1.50, poor 3.00" in once


def test_the_best_published_figures_are_those_of_networks_and_of_all_but_constant_scores(module):
    published = module("paper_protocol").published
    assert published("nsl-kdd") == {
        "best network": [0.974, 0.795, 0.1, 0.51, 0.952],
        "best of any method": [0.974, 0.96, 0.405, 0.76, 0.957],
    }
    assert published("ann-thyroid")["best network"] == [0.934, 0.596, 0.726]
