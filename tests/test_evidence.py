"""Evidence adds and subtracts: the order does not matter, and what is taken away is gone."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from summed import gram_of, moment_of

from eqsep.detector import Config
from eqsep.detector.evidence import (
    KindRows,
    gather,
)
from eqsep.detector.holdout import NO_GROUPS, Population
from eqsep.detector.isolation import WEIGHED
from eqsep.detector.plan import LabelScheme, Plan
from eqsep.errors import UserError
from eqsep.labels import read_row_labels
from eqsep.tables.reading import read_table

READING = LabelScheme(
    normal=None,
    unlabelled_is_normal=False,
    doubted=False,
    unlabelled_weight=0.01,
    isolation=WEIGHED,
    isolated_share=0.2,
    isolates_labelled=True,
)
CONFIG = Config(n_landmarks=40, n_trees=5, bandwidth=1.0)
PLACES = {"normal": (0, 0), "leak": (6, 0), "crack": (0, -6)}


def rows(seed, **counts):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(PLACES[kind], size=(n, 2)) for kind, n in counts.items()])
    return X, np.repeat(list(counts), list(counts.values()))


@pytest.fixture(scope="module")
def plan():
    X, y = rows(0, normal=600, leak=40)
    labels = read_row_labels(y, n_rows=len(X), normal=None)
    table, rng = read_table(X, name="me"), np.random.RandomState(0)
    return Plan.choose(table, labels, CONFIG, rng, scheme=READING, rate=0.05)


def taught(plan, X, y, **more):
    return gather(plan, plan.align(X), plan.labels.read(y, n_rows=len(X)), **more)


def sums_by_kind(evidence):
    """The sums of the evidence, those of each class by its name."""
    names = ("normal", *evidence.labels.kinds)
    columns = [names.index(name) for name in sorted(names)]
    parts = [evidence.weight[columns]]
    for sums in evidence.sums:
        parts += [*sums.symmetric.values(), *sums.totals.values()]
        parts += [array[..., columns] for array in sums.by_class.values()]
    assert len(parts) == 7  # matrix and moment of residual and normality, and leaves of two terms
    return parts


def held(evidence):
    return sorted(zip(evidence.held_out.rows.tolist(), evidence.held_out.kind, strict=True))


def kept(evidence):
    return sorted(zip(evidence.kinds.rows.tolist(), evidence.kinds.kind, strict=True))


def assert_same(one, other):
    assert set(one.labels.kinds) == set(other.labels.kinds)
    for mine, theirs in zip(sums_by_kind(one), sums_by_kind(other), strict=True):
        assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    assert held(one) == held(other)
    assert kept(one) == kept(other)
    assert one.n_normal == other.n_normal


def test_the_sum_of_pieces_is_the_whole_in_any_order(plan):
    X, y = rows(1, normal=400, leak=30, crack=20)
    a = taught(plan, X[:250], y[:250])  # normal rows alone
    b, c = taught(plan, X[250:440], y[250:440]), taught(plan, X[440:], y[440:])
    whole = taught(plan, X, y)
    for total in (a + b + c, c + b + a, a + (c + b), (b + a) + c):
        assert_same(total, whole)
    assert (c + b + a).labels.kinds == ("crack", "leak")


def test_what_is_added_and_taken_away_leaves_what_was_there(plan):
    a, b = taught(plan, *rows(1, normal=300, leak=20)), taught(plan, *rows(2, normal=80, leak=9))
    assert_same(a + b - b, a)
    assert_same(a + b - a, b)


def test_kinds_appear_with_their_first_row_and_vanish_with_their_last(plan):
    a, b = taught(plan, *rows(1, normal=300, leak=20)), taught(plan, *rows(2, normal=50, crack=9))
    assert a.labels.kinds == ("leak",)
    both = a + b
    assert both.labels.kinds == ("leak", "crack")
    assert both.weight[1:].tolist() == [20, 9]
    assert_array_equal(moment_of(both)[:, 1], moment_of(a)[:, 1])
    assert_array_equal(moment_of(both)[:, 2], moment_of(b)[:, 1])
    less = both - b
    assert less.labels.kinds == ("leak",)
    assert moment_of(less).shape[1] == 2
    alone = both - taught(plan, *rows(1, normal=300, leak=20))
    assert alone.labels.kinds == ("crack",)
    assert_same(alone, b)


def test_more_than_was_learnt_is_not_forgotten(plan):
    a = taught(plan, *rows(1, normal=300, leak=20))
    with pytest.raises(UserError, match=r"Cannot forget more than was learnt: .* 21 leak"):
        a - taught(plan, *rows(2, normal=1, leak=21))
    with pytest.raises(UserError, match=r"Cannot forget more than was learnt: .* 1 crack"):
        a - taught(plan, *rows(2, normal=1, crack=1))
    with pytest.raises(UserError, match="Cannot forget a row that was not learnt"):
        a - taught(plan, *rows(3, normal=100))


def test_every_normal_row_is_learnt_or_held_out_and_judged_ones_are_learnt(plan):
    X, y = rows(1, normal=500, leak=20)
    found = taught(plan, X, y)
    assert len(found.held_out.normal) + found.weight[0] == found.n_normal == 500
    assert found.weight[1] == len(found.kinds.rows) == 20
    judged = taught(plan, X, y, judged=True)
    assert len(judged.held_out.rows) == 0
    assert judged.weight.tolist() == [500, 20]


def test_weights_count_in_sums_alone(plan):
    X, y = rows(1, normal=500, leak=20)
    table, labels = plan.align(X), plan.labels.read(y, n_rows=520)
    heavy = gather(plan, replace(table, weight=np.full(520, 3.0)), labels)
    plain = gather(plan, table, labels)
    assert_allclose(gram_of(heavy), 3 * gram_of(plain))
    assert held(heavy) == held(plain)
    assert_array_equal(heavy.held_out.weight, 3.0)


def test_rows_without_a_label_count_little_and_are_never_held_out(plan):
    X, _ = rows(1, normal=100)
    found = taught(plan, X, ["normal"] + [None] * 99)
    assert len(found.held_out.rows) <= 1
    assert_allclose(found.weight[0], 1 - len(found.held_out.rows) + 0.99)


def test_held_out_rows_stand_in_an_order_that_depends_on_them_alone(plan):
    X, y = rows(1, normal=500)
    order = np.random.default_rng(0).permutation(500)
    one, other = (taught(plan, X[o], y[o]).held_out for o in (np.arange(500), order))
    assert (one.rows != other.rows).any()
    assert_array_equal(one.sorted(key=7).rows, other.sorted(key=7).rows)
    assert (one.sorted(key=7).rows != one.sorted(key=8).rows).any()


def test_of_many_rows_of_a_kind_some_are_kept_and_more_pieces_keep_the_same():
    few = replace(CONFIG, max_kind_rows=30)
    X, y = rows(1, normal=600, leak=200, crack=20)
    labels = read_row_labels(y, n_rows=len(X), normal=None)
    table, rng = read_table(X, name="me"), np.random.RandomState(0)
    plan = Plan.choose(table, labels, few, rng, scheme=READING, rate=0.05)
    assert set(plan.holdout.kind_bounds) == {"leak"}
    whole = taught(plan, X, y)
    assert np.unique(whole.kinds.kind, return_counts=True)[1].tolist() == [20, 30]
    pieces = taught(plan, X[::2], y[::2]) + taught(plan, X[1::2], y[1::2])
    assert kept(pieces) == kept(whole)


def test_a_sample_of_many_rows_holds_out_the_share_that_all_of_them_need():
    few = replace(CONFIG, max_held_out=100, max_kind_rows=30)
    X, y = rows(1, normal=20_000, leak=2_000)
    part = np.r_[:1000, 20_000:20_100]
    labels = read_row_labels(y[part], n_rows=1100, normal=None)
    all_rows = Population(n_normal=20_000, n_of_kind={"leak": 2_000}, times_sample=20.0)
    table, rng = read_table(X[part], name="me"), np.random.RandomState(0)
    more = {"scheme": READING, "rate": 0.05, "population": all_rows}
    whole = taught(Plan.choose(table, labels, few, rng, **more), X, y)
    assert 100 <= len(whole.held_out.normal) <= 100 + 6 * 100**0.5
    assert 10 <= len(whole.kinds.rows) <= 60


def test_kind_rows_are_counted_by_row_or_by_group():
    parts = {"rows": np.zeros((4, 1), np.float32), "kind": np.array(["a", "a", "b", "b"]), "key": 3}
    rows = KindRows(**parts, groups=NO_GROUPS)
    assert (rows.n_units("a"), rows.n_units("b"), rows.n_units("c")) == (2, 2, 0)
    grouped = KindRows(**parts, groups=np.array([1, 1, 1, 2], dtype=np.uint64))
    assert (grouped.n_units("a"), grouped.n_units("b")) == (1, 2)
    assert len((grouped - grouped.take(np.array([0]))).rows) == 3
    assert (rows + rows.take(np.arange(0))) is rows
