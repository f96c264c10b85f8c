"""Isolation: which rows may be anomalies that nobody has noticed."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import IsolationForest
from summed import sums_of

from eqsep import Detector
from eqsep.detector import Config
from eqsep.detector.isolation import Isolation
from eqsep.engine.growth import isolation_trees

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(2000, 3)).astype(np.float32)


def isolation_of(rows, share=0.1):
    return Isolation.of(rows, share=share, key=1)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.4])
def test_a_share_of_the_first_rows_and_of_others_like_them_is_isolated(share):
    isolated = isolation_of(ROWS, share)
    assert isolated(ROWS).mean() == pytest.approx(share, abs=0.001)
    new = RNG.normal(size=(5000, 3)).astype(np.float32)
    assert isolated(new).mean() == pytest.approx(share, abs=0.03)


def test_few_rows_together_far_from_the_others_are_isolated():
    """Each is nearest to the other ones; fewer than a thirtieth of all."""
    rows = ROWS.copy()
    rows[:50] = RNG.normal((5, -5, 5), 0.01, size=(50, 3))
    assert isolation_of(rows)(rows)[:50].all()


def test_the_rank_falls_towards_the_middle():
    along = np.linspace(0, 8, 9)[:, None] * np.ones((1, 3))
    ranks = isolation_of(ROWS).ranks(along.astype(np.float32))
    assert ranks[0] < 0.5
    assert (np.diff(ranks) >= 0).all()
    assert ranks[-1] == 2


def test_a_row_is_on_its_own_to_the_last_bit():
    isolated = isolation_of(ROWS)
    assert_array_equal(
        isolated.ranks(ROWS), np.concatenate([isolated.ranks(p) for p in np.split(ROWS, 400)])
    )
    assert isolated(ROWS[:0]).shape == (0,)


def test_a_file_keeps_it_and_knows_of_how_many_columns_it_is():
    isolated = isolation_of(ROWS)
    loaded = Isolation.from_state(isolated.state())
    assert_array_equal(loaded(ROWS), isolated(ROWS))
    assert loaded.fits(n_columns=3)
    assert not loaded.fits(n_columns=2)
    assert not replace(loaded, depth=loaded.depth[1:]).fits(n_columns=3)


def test_depths_are_those_of_an_isolation_forest():
    """Of rows in whose columns all values differ; trees are random."""
    rng = np.random.RandomState(0)
    trees, depth = isolation_trees(ROWS, rng, n=300, size=256)
    forest = IsolationForest(n_estimators=300, random_state=0).fit(ROWS)
    ours, theirs = -trees.mean(ROWS, depth), -forest.score_samples(ROWS)
    assert np.corrcoef(ours.argsort().argsort(), theirs.argsort().argsort())[0, 1] > 0.95
    expected = -np.log2(theirs)  # its score is 2 ** (-depth / mean depth)
    assert np.polyfit(-ours, expected, 1)[0] == pytest.approx(1 / 10.24, rel=0.1)


def test_a_tree_of_equal_rows_is_a_leaf():
    trees, depth = isolation_trees(
        np.zeros((50, 2), np.float32), np.random.RandomState(0), n=3, size=20
    )
    assert trees.n_leaves == len(depth) == 3
    assert len(set(depth.tolist())) == 1


def test_columns_that_hardly_vary_do_not_end_a_tree():
    """As those of rare names, of which there may be many."""
    rng = np.random.RandomState(0)
    rows = np.column_stack([ROWS[:, :1], np.zeros((len(ROWS), 4), np.float32)])
    rows[0, 0] = 20
    trees, depth = isolation_trees(rows, rng, n=50, size=256)
    assert trees.mean(rows, depth)[1:].mean() > 8
    assert isolation_of(rows)(rows[:1]).all()


# ------------------------------------------------------------ exactness with isolated rows


MIXED = np.vstack([ROWS[:700], RNG.normal((6, 6, 6), 1.5, size=(40, 3))])[RNG.permutation(740)]
SOME_KIND = np.where(np.arange(740) % 11 == 0, "leak", None)  # others are doubted
SETTINGS = {"n_landmarks": 60, "bandwidth": 1.0, "random_state": 0, "config": Config.fast()}
READINGS = {
    "nobody has looked": ("auto", None),
    "doubted": ("doubted", None),
    "doubted with a kind": ("auto", SOME_KIND),
}


def part_of(y, part):
    return None if y is None else y[part]


def same_model(one, other):
    for ours, theirs in zip(one.model_.evidence.sums, other.model_.evidence.sums, strict=True):
        for form in ("symmetric", "totals", "by_class"):
            for a, b in zip(
                getattr(ours, form).values(), getattr(theirs, form).values(), strict=True
            ):
                assert_allclose(a, b, rtol=1e-9, atol=1e-6)
    assert_allclose(one.score_samples(ROWS), other.score_samples(ROWS), atol=1e-5)
    assert_allclose(one.threshold_, other.threshold_, atol=1e-5)


@pytest.mark.parametrize(("unlabelled", "y"), READINGS.values(), ids=READINGS)
def test_parts_in_any_division_are_the_whole_and_what_is_forgotten_is_gone(unlabelled, y):
    whole = Detector(unlabelled=unlabelled, **SETTINGS).fit(MIXED, y)
    assert 0 < whole.plan_.isolation(whole.plan_.encoder.pack(whole.plan_.encode(MIXED))).mean() < 1
    like = {"plan": whole.plan_, "config": SETTINGS["config"], "false_alarm_rate": 0.05}
    whole = Detector(**like).fit(MIXED, y)
    first, *others = np.array_split(np.random.default_rng(1).permutation(740), 3)
    parts = Detector(**like).fit(MIXED[first], part_of(y, first))
    before = deepcopy(parts)
    for part in others:
        parts.partial_fit(MIXED[part], part_of(y, part))
    same_model(parts, whole)
    merged = deepcopy(before)
    for part in others:
        merged.merge(Detector(**like).fit(MIXED[part], part_of(y, part)))
    same_model(merged, whole)
    batches = [(MIXED[part], part_of(y, part)) for part in (first, *others)]
    same_model(Detector(**like).fit(batches), whole)
    for part in others:
        parts.forget(MIXED[part], part_of(y, part))
    same_model(parts, before)


@pytest.mark.filterwarnings(
    "ignore::eqsep.detector.NewKindWarning", "ignore::eqsep.detector.CalibrationWarning"
)
def test_rows_labelled_later_are_not_isolated_in_any_way_of_learning():
    """Where nobody had looked at the first ones."""
    first = Detector(**SETTINGS).fit(MIXED)
    like = {"plan": first.plan_, "config": SETTINGS["config"], "false_alarm_rate": 0.05}
    far = np.random.default_rng(2).normal(8, 1, size=(60, 3))
    found = []
    for labels in (["normal"] * 60, None):
        learnt = Detector(**like).fit(MIXED).partial_fit(far, labels)
        merged = Detector(**like).fit(MIXED).merge(Detector(**like).fit(far, labels))
        same_model(learnt, merged)
        found.append(term_sums(learnt))
    assert found[0] < found[1]  # the weight of rows that do not look normal


def term_sums(detector):
    return np.trace(sums_of(detector.model_)["normality"].symmetric["gram"])


def test_a_row_judged_normal_because_of_an_alarm_is_learnt_even_if_it_is_isolated():
    detector = Detector(unlabelled="doubted", **SETTINGS).fit(MIXED)
    rows = MIXED[detector.predict(MIXED) == 1][:5]
    before = detector.model_.score.residual(detector.plan_.encode(rows))
    detector.partial_fit(rows.repeat(20, axis=0), ["normal"] * 5 * 20, judged=True)
    assert (detector.model_.score.residual(detector.plan_.encode(rows)) < before / 2).all()
