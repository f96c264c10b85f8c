"""Isolation: which rows may be anomalies that nobody has noticed."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import IsolationForest

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
