"""Average precision by kind, the trapezoid, and leaving one kind out."""

from dataclasses import fields
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.metrics import average_precision_score
from sklearn.svm import SVC

from eqsep.evaluation import (
    anomaly_score,
    average_precision_by_kind,
    cross_validate_kind,
    leave_one_kind_out,
)
from paper.measures import trapezoid_area, trapezoid_by_kind

BY_KIND = [average_precision_by_kind, trapezoid_by_kind]
FORESTS = [RandomForestClassifier, IsolationForest]  # by probability; turned round


@pytest.fixture
def rows():
    """Normal rows around 0, one kind above, one below, one beside; in random order."""
    rng = np.random.default_rng(0)
    kind = rng.permutation(np.repeat(["normal", "above", "below", "beside"], [60, 11, 20, 7]))
    centre = {"normal": (0, 0), "above": (0, 6), "below": (0, -6), "beside": (9, 0)}
    return rng.normal([centre[name] for name in kind]), kind


class Witness(ClassifierMixin, BaseEstimator):
    """Scores a row by its first coordinate and keeps what it was fitted on."""

    fits: ClassVar = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        Witness.fits.append((X, y))
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0].astype(float)


def test_each_kind_is_compared_with_all_normal_rows_and_no_other_kind(rows):
    X, kind = rows
    found = average_precision_by_kind(X[:, 1], kind)
    assert list(found) == ["above", "below", "beside", "overall"]
    for name in ("above", "below", "beside"):
        chosen = np.isin(kind, ["normal", name])
        expected = average_precision_score(kind[chosen] == name, X[chosen, 1])
        assert_allclose(found[name], expected)
    assert_allclose(found["overall"], average_precision_score(kind != "normal", X[:, 1]))


def test_a_constant_score_gets_the_prevalence_but_half_of_one_plus_it_by_trapezoid(rows):
    _, kind = rows
    constant = np.full(len(kind), 3.0)
    prevalence = {name: np.sum(kind == name) for name in ("above", "below", "beside")}
    prevalence = {name: n / (n + 60) for name, n in prevalence.items()}
    prevalence["overall"] = 38 / 98
    assert average_precision_by_kind(constant, kind) == pytest.approx(prevalence)
    assert trapezoid_by_kind(constant, kind) == pytest.approx(
        {name: (1 + p) / 2 for name, p in prevalence.items()}
    )


def test_published_constant_rows_of_nsl_kdd_are_reproduced_by_a_constant_score():
    # Test rows of NSL-KDD under the published grouping, and the published OVS rows.
    counts = {"normal": 9711, "dos": 7460, "probe": 2421, "privilege": 65, "access": 2743}
    counts["unassigned"] = 144
    kind = np.repeat(list(counts), list(counts.values()))
    areas = trapezoid_by_kind(np.zeros(len(kind)), kind)
    published = {"dos": 0.717, "probe": 0.600, "privilege": 0.503, "access": 0.610}
    assert {name: round(areas[name], 3) for name in published} == published
    assert round(areas["overall"], 3) == 0.785


@settings(max_examples=30, deadline=None)
@given(
    score=st.lists(st.integers(0, 4), min_size=6, max_size=30),
    scale=st.floats(0.1, 10),
    shift=st.floats(-5, 5),
)
def test_only_the_order_of_the_scores_matters(score, scale, shift):
    score = np.array(score, dtype=float)
    kind = np.resize(["normal", "a", "b"], len(score))
    for by_kind in BY_KIND:
        assert by_kind(scale * score + shift, kind) == pytest.approx(by_kind(score, kind))


def test_a_perfect_score_gets_one_by_either_metric():
    kind = ["normal", "a", "normal", "b"]
    for by_kind in BY_KIND:
        assert by_kind([0, 2, 1, 3], kind) == {"a": 1.0, "b": 1.0, "overall": 1.0}
    assert trapezoid_area([0, 1], is_anomaly=[False, True]) == 1.0


def test_the_normal_kind_may_have_another_name():
    found = average_precision_by_kind([0, 1, 2], ["good", "good", "normal"], normal="good")
    assert found == {"normal": 1.0, "overall": 1.0}


@pytest.mark.parametrize("by_kind", BY_KIND)
@pytest.mark.parametrize(
    ("score", "kind", "message"),
    [
        ([0, 1], ["scan", "flood"], r"'normal', found only \['flood', 'scan'\]"),
        ([0, 1], ["normal", "normal"], "anomalous rows as well as 'normal', found none"),
        ([0, np.nan], ["normal", "scan"], "1 of 2 are NaN or infinite"),
        ([0, np.inf], ["normal", "scan"], "1 of 2 are NaN or infinite"),
        ([0, 1, 2], ["normal", "scan"], "got 3 scores and 2 kinds"),
        ([0, 1], ["normal", "overall"], "No kind may be called 'overall'"),
    ],
)
def test_what_cannot_be_compared_is_refused(by_kind, score, kind, message):
    with pytest.raises(ValueError, match=message):
        by_kind(score, kind)


def test_scores_grow_with_strangeness_whatever_the_estimator(rows):
    X, kind = rows
    y = (kind != "normal").astype(int)
    forests = [forest(n_estimators=20, random_state=0) for forest in FORESTS]
    for estimator in (SVC(), *forests):
        score = anomaly_score(estimator.fit(X, y), X)
        assert score.shape == y.shape
        assert score[y == 1].mean() > score[y == 0].mean()


@pytest.mark.parametrize("test_size", [0.5, 0.2])
def test_training_rows_are_normal_and_seen_only_and_test_rows_are_all_the_rest(rows, test_size):
    _, kind = rows
    X = np.arange(len(kind), dtype=float)[:, None]  # a row's only coordinate is its number
    Witness.fits = []
    result = leave_one_kind_out(Witness(), X, kind, test_size=test_size, random_state=0)
    kinds = ["above", "below", "beside"]
    assert [one.kind for one in result.results] == kinds
    assert len(Witness.fits) == 3
    for one, (X_train, y_train) in zip(result.results, Witness.fits, strict=True):
        train = X_train[:, 0].astype(int)
        assert_array_equal(y_train, (kind[train] == one.kind).astype(int))
        assert set(kind[train]) == {"normal", one.kind}
        assert np.sum(kind[train] == "normal") == 60 * (1 - test_size)
        test = np.setdiff1d(np.arange(len(kind)), train)
        assert one.by_kind == average_precision_by_kind(X[test, 0], kind[test])
        assert one.by_kind[one.kind] == one.seen
        unseen = np.isin(kind[test], [*(set(kinds) - {one.kind}), "normal"])
        assert_allclose(
            one.unseen, average_precision_score(kind[test][unseen] != "normal", X[test, 0][unseen])
        )
        assert_allclose(one.unseen_prevalence, np.mean(kind[test][unseen] != "normal"))
        assert_allclose(one.overall_prevalence, np.mean(kind[test] != "normal"))
    normals = [X[kind[X[:, 0].astype(int)] == "normal"].tolist() for X, _ in Witness.fits]
    assert normals[0] == normals[1] == normals[2]


def test_arrays_frames_and_sparse_matrices_give_one_result(rows):
    X, kind = rows
    svc = SVC(kernel="linear")
    results = [
        leave_one_kind_out(svc, form, kind, random_state=1)
        for form in (X, pd.DataFrame(X, columns=["a", "b"]), csr_array(X), X.tolist())
    ]
    for other in results[1:]:
        for one, same in zip(results[0].results, other.results, strict=True):
            assert same.by_kind == pytest.approx(one.by_kind)
    assert not hasattr(svc, "classes_")


def test_a_seed_decides_the_division(rows):
    X, kind = rows
    first, again, other = (
        leave_one_kind_out(SVC(kernel="linear"), X, kind, random_state=seed) for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other


def test_only_the_kinds_that_are_asked_for_are_the_seen_one(rows):
    X, kind = rows
    model = SVC(kernel="linear")
    every = leave_one_kind_out(model, X, kind, random_state=0).results
    wanted = every[-1].kind
    (one,) = leave_one_kind_out(model, X, kind, seen=[wanted], random_state=0).results
    assert one == every[-1]
    for seen in ([], ["normal"], [wanted, "nothing"]):
        with pytest.raises(ValueError, match="seen must be some of the kinds"):
            leave_one_kind_out(model, X, kind, seen=seen)


def test_a_halfspace_catches_what_it_saw_and_misses_the_other_side(rows):
    X, kind = rows
    above, below, _ = leave_one_kind_out(SVC(kernel="linear"), X, kind, random_state=0).results
    for one, other in ((above, "below"), (below, "above")):
        assert one.seen > 0.99
        assert one.by_kind[other] < 0.5


def test_the_mean_is_the_mean_of_every_column(rows):
    X, kind = rows
    result = leave_one_kind_out(SVC(), X, kind, random_state=0)
    *each, mean = result.rows()
    assert mean["kind"] == "mean"
    assert [*mean, "tested"] == [field.name for field in fields(result.mean)]
    assert result.mean.tested is None
    for one in result.results:
        tested = one.tested
        np.testing.assert_array_equal(tested.kind, kind[tested.rows])
        areas = average_precision_by_kind(tested.score, tested.kind)
        assert areas == one.by_kind
    for name in ("seen", "unseen", "overall", "seen_prevalence", "unseen_prevalence"):
        assert_allclose(mean[name], np.mean([row[name] for row in each]))
    assert_allclose(mean["by_kind"]["above"], np.mean([row["by_kind"]["above"] for row in each]))


def test_the_table_is_aligned_and_has_a_line_for_each_kind_and_the_mean(rows):
    X, kind = rows
    result = leave_one_kind_out(SVC(), X, kind, random_state=0)
    header, *lines = str(result).splitlines()
    assert len({len(line) for line in (header, *lines)}) == 1
    assert [line.split()[0] for line in lines] == ["above", "below", "beside", "mean"]
    assert f"{result.mean.unseen:.3f}" in lines[-1]


def test_at_least_one_row_of_a_kind_is_kept_on_either_side():
    kind = np.array(["normal"] * 10 + ["a"] * 2 + ["b"] * 2)
    X = np.arange(14.0)[:, None]
    for test_size in (0.01, 0.99):
        result = leave_one_kind_out(SVC(), X, kind, test_size=test_size, random_state=0)
        assert {"a", "b"} < set(result.results[0].by_kind)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (["normal", "normal", "a", "a"], {}, r"at least two kinds of anomaly.*\['a'\]"),
        (["normal", "normal", "a", "a", "b"], {}, r"at least 2 rows.*\{'b': 1\}"),
        (["normal", "a", "a", "b", "b"], {}, r"at least 2 rows.*\{'normal': 1\}"),
        (["ok", "a", "a", "b", "b"], {}, r"found only \['a', 'b', 'ok'\]"),
        (["normal", "a", None, np.nan], {}, "the kind of every row, and 2 of 4 are missing"),
        (["normal"] * 2 + ["a"] * 2 + ["b"] * 2, {"test_size": 1.0}, "between 0 and 1, got 1.0"),
    ],
)
def test_kinds_that_cannot_be_left_out_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        leave_one_kind_out(SVC(), np.zeros((len(kind), 1)), kind, **options)


class Shifting(ClassifierMixin, BaseEstimator):
    """A perfect score, on another scale in each fit; knows the rows that it was fitted on."""

    fits: ClassVar[list[np.ndarray]] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.rows_ = set(X[:, 0].tolist())
        self.fits.append(X[:, 0])
        self.scale_ = 10.0 ** len(self.fits)
        return self

    def decision_function(self, X):
        learnt = np.isin(X[:, 0], list(self.rows_))
        return np.where(learnt, -1, X[:, 1]) * self.scale_ - 5 * self.scale_


@pytest.mark.parametrize(("n_anomalies", "n_parts"), [(20, 5), (3, 3)])
def test_the_only_kind_is_measured_on_rows_that_were_not_learnt(n_anomalies, n_parts):
    kind = np.repeat(["normal", "a"], [50, n_anomalies])
    X = np.column_stack([np.arange(len(kind)), kind == "a"]).astype(float)
    Shifting.fits.clear()
    (result,) = cross_validate_kind(Shifting(), X, kind, random_state=0).results
    assert len(Shifting.fits) == n_parts
    assert {len(set(rows)) for rows in Shifting.fits} <= set(range(len(kind) - 20, len(kind)))
    assert result.seen == result.overall == 1.0
    assert np.isnan(result.unseen)
    assert result.seen_prevalence == pytest.approx(n_anomalies / len(kind))
    assert_array_equal(result.tested.rows, np.arange(len(kind)))


def test_the_only_kind_is_found_as_often_as_chance_where_nothing_tells_it():
    rng = np.random.default_rng(0)
    kind = np.repeat(["normal", "a"], [400, 100])
    result = cross_validate_kind(SVC(), rng.normal(size=(500, 2)), kind, random_state=0).mean
    assert result.seen == pytest.approx(0.2, abs=0.06)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            ["normal", "a", "a", "b", "b"],
            {},
            r"one kind .* got \['a', 'b'\]. Use leave_one_kind_out",
        ),
        (["normal", "normal", "a"], {}, "at least 2 parts.*, 1 rows of 'a' and 2 of 'normal'"),
        (["normal", "normal", "a", "a"], {"n_folds": 1}, "got n_folds=1"),
        (["normal", "normal"], {}, "anomalous rows as well as 'normal', found none"),
    ],
)
def test_what_cannot_be_cross_validated_is_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        cross_validate_kind(SVC(), np.zeros((len(kind), 1)), kind, **options)


def test_a_failing_fit_is_not_hidden(rows):
    X, kind = rows
    with pytest.raises(ValueError, match="kernel"):
        leave_one_kind_out(SVC(kernel="nonsense"), X, kind)


def test_kinds_may_be_numbers():
    areas = average_precision_by_kind([0.1, 0.2, 0.9, 0.8], [0, 0, 1, 2], normal=0)
    assert areas == {"1": 1.0, "2": 1.0, "overall": 1.0}
    rng = np.random.default_rng(0)
    X, kind = rng.standard_normal((60, 2)), np.repeat([0, 1, 2], 20)
    X[kind > 0] += 9
    table = leave_one_kind_out(SVC(), X, kind, normal=0, random_state=0)
    assert [str(row.kind) for row in table.results] == ["1", "2"]
    assert table.mean.unseen > 0.9
