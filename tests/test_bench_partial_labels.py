"""The benchmark of one labelled kind: its labels, what is hidden, its recall and its tables."""

from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

BENCH = Path(__file__).parents[1] / "bench"
COUNTS = {"normal": 1520, "flood": 300, "scan": 120, "leak": 20}
KIND = np.random.default_rng(0).permutation(np.repeat(list(COUNTS), list(COUNTS.values())))
APART = np.arange(len(KIND))
KINDS = ("flood", "scan", "leak")


@pytest.fixture
def module(monkeypatch):
    """A function that imports a module of the benchmark as its scripts do: from their folder."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module


def divided(module, seen, seed=0):
    return module("partial_labels").divide_partly(KIND, APART, kinds=KINDS, seen=seen, seed=seed)


@pytest.mark.parametrize(("seen", "n"), [("flood", 50), ("scan", 50), ("leak", 10)])
def test_fifty_rows_of_one_kind_are_labelled_or_half_of_a_rare_one(module, seen, n):
    division = divided(module, seen)
    assert Counter(KIND[division.train[division.is_labelled]]) == {seen: n}


@pytest.mark.parametrize(
    ("seen", "hidden"),
    [
        ("flood", {"flood": 15, "scan": 15, "leak": 10}),
        ("scan", {"flood": 20, "scan": 10, "leak": 10}),
        ("leak", {"flood": 20, "scan": 20}),
    ],
)
def test_every_kind_is_hidden_in_equal_parts_as_far_as_its_rows_go(module, seen, hidden):
    division = divided(module, seen)
    unlabelled = Counter(KIND[division.train[~division.is_labelled]])
    assert unlabelled == {"normal": 760, **hidden}
    assert sum(hidden.values()) == 0.05 * sum(unlabelled.values())


@pytest.mark.parametrize("seen", KINDS)
def test_the_other_half_of_every_kind_is_tested_on_whatever_is_labelled(module, seen):
    division = divided(module, seen)
    assert not set(division.train) & set(division.test)
    assert Counter(KIND[division.test]) == {name: n // 2 for name, n in COUNTS.items()}
    assert_array_equal(division.test, divided(module, "scan").test)
    assert set(divided(module, seen, seed=1).test) != set(division.test)


def test_recall_is_of_rows_above_the_threshold_that_a_share_of_normal_rows_exceeds(module):
    kind = np.repeat(["normal", "flood", "leak"], [1000, 4, 2])
    score = np.concatenate([np.arange(1000.0), [989.0, 989.5, 990.5, 2000.0], [5.0, 3000.0]])
    recall = module("rates").recall_by_kind(score, kind, false_alarm_rate=0.01)
    assert recall == {"flood": 0.5, "leak": 0.5}
    score[:1000] = 7.0  # equal scores: none exceeds them
    assert module("rates").recall_by_kind(score, kind, false_alarm_rate=0.01)["leak"] == 0.5


def result(method, data, seen, figures):
    about = {"fit_seconds": 2.0, "score_seconds": 1.0, "package": "made 1.0", "settings": "none"}
    names = {"method": method, "data": data, "seen": seen, "seed": 0}
    return {**names, "figures": dict(zip("ab", figures, strict=True)), **about}


def test_measures_are_means_over_the_tasks_of_a_table_and_then_over_tables(module):
    tasks = [("wells", "dry"), ("wells", "salt"), ("tides", "flood")]
    figures = {"good": [(0.9, 0.1), (0.7, 0.3), (0.4, 0.6)], "fair": [(0.5, 0.5)] * 3}
    results = [
        result(method, *task, values)
        for method, some in figures.items()
        for task, values in zip(tasks, some, strict=True)
    ]
    results.append(result("late", *tasks[0], (1.0, 1.0)))
    text = module("standings").standings_by_measure(
        results, {"a": "area", "b": "recall"}, title="Means", markdown=True, by_table=True
    )
    assert "| Means | area | recall |" in text
    assert "| good | **0.600** | 0.400 |" in text
    assert "| fair | 0.500 | **0.500** |" in text
    assert "| wells | **0.800** | 0.500 |" in text
    assert "left out: late." in text


def test_all_kinds_are_named_to_the_detector_and_anomalies_to_its_peers(module, monkeypatch):
    bench, peers, given = module("leave_one_kind_out"), module("peers"), {}

    class Recorder:
        def __init__(self, name):
            self.name = name

        def fit(self, _, y):
            given[self.name] = Counter(y.tolist())

        def score(self, X):
            return np.asarray(X)[:, 0]

    names = {"named": True, "numbered": False}
    for name, mixed in names.items():
        method = peers.Method(lambda name=name: Recorder(name), "numpy", "", mixed=mixed)
        monkeypatch.setitem(bench.METHODS_OF_ALL_KINDS, name, method)
    rows = made_rows(module)
    monkeypatch.setattr(bench, "rows_of", lambda _: rows)
    monkeypatch.setitem(bench.ALL_TABLES, "made", module("tasks").Table(lambda: rows, KINDS))
    results = [
        bench.measure_all_kinds(bench.CellOfAllKinds("all_kinds", "made", name)) for name in names
    ]
    assert given["named"] == {name: n // 2 for name, n in COUNTS.items()}
    assert given["numbered"] == {0: 760, 1: 220}
    assert set(results[0]["figures"]) == set(bench.MEASURES_OF_ALL_KINDS)
    assert results[0]["figures"]["recall_0.05"] == 1.0


def made_rows(module):
    """Rows whose anomalies have larger numbers than normal rows."""
    pd = pytest.importorskip("pandas")
    X = np.arange(len(KIND), dtype=float)[:, None] + 1e4 * (KIND[:, None] != "normal")
    return module("tasks").Rows(pd.DataFrame(X), X, KIND, APART)
