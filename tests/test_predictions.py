"""Predictions of columns by others: bins, the trees that predict them, and how surprising rows are.

The packed columns of the tables here are two numbers and a word with three values, of which each is
a column of its own; the word follows the first number, and the second number nothing.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eqsep.engine.growth import prediction_trees
from eqsep.engine.predictions import N_BINS, Bins, Predictions

SOURCE = np.array([0, 1, 2, 2, 2])  # the table's column of each packed one


def table(n, *, seed=0):
    rng = np.random.default_rng(seed)
    level, other = rng.normal(size=(2, n))
    word = np.digitize(level, [-0.5, 0.5])
    return np.column_stack([level, other, np.eye(3)[word]]).astype(np.float32)


ROWS, NEW = table(3000), table(1000, seed=1)
PREDICTIONS = Predictions.of(ROWS, SOURCE, n_trees=30, key=1)
SUMS = PREDICTIONS.sums(ROWS, np.ones(len(ROWS)))
ODD = np.array([[-1.2, 0, 0, 0, 1], [1.2, 0, 1, 0, 0]], dtype=np.float32)  # each value is usual


def of_columns(rows, sums=SUMS):
    probability = PREDICTIONS.probabilities(sums)
    return PREDICTIONS.surprise(PREDICTIONS.predicted(rows, probability))


def total(rows, sums=SUMS):
    return PREDICTIONS.total(of_columns(rows, sums))


def test_numbers_are_binned_by_quantiles_and_words_by_themselves():
    bins = Bins.of(ROWS, SOURCE)
    assert bins.n_targets == 3
    found = bins(ROWS)
    shares = [np.bincount(column, minlength=N_BINS) / len(ROWS) for column in found.T]
    for share in shares[:2]:
        assert_allclose(share, 1 / N_BINS, atol=0.001)
    order = ROWS[:, 0].argsort()
    assert (np.diff(found[order, 0]) >= 0).all()
    words = ROWS[:, 2:].argmax(axis=1)
    assert len({*zip(words.tolist(), found[:, 2].tolist(), strict=True)}) == 3
    unknown = np.array([[0, 0, 0, 0, 0]], dtype=np.float32)
    assert bins(unknown)[0, 2] not in found[:, 2]


def test_of_many_words_the_most_frequent_have_a_bin_each_and_the_others_one():
    word = np.minimum(np.random.default_rng(0).geometric(0.3, size=5000), 30)
    rows = np.eye(31, dtype=np.float32)[word]
    found = Bins.of(rows, np.zeros(31, dtype=int))(rows)[:, 0]
    assert found.max() == N_BINS - 1
    for value in range(1, 10):
        assert len(set(found[word == value].tolist())) == 1
    assert len(set(found[word >= 10].tolist())) == 1


def test_constant_columns_have_no_bins_and_fewer_than_two_others_nothing_to_predict():
    rows = np.column_stack([ROWS[:, :1], np.full((3000, 1), 7, np.float32)])
    assert Bins.of(rows, np.arange(2)).n_targets == 1
    assert Predictions.of(rows, np.arange(2), n_trees=30, key=1) is None
    assert Predictions.of(ROWS[:10], SOURCE, n_trees=30, key=1) is None


def test_usual_values_that_do_not_go_together_are_surprising():
    assert (total(ODD) > 1).all()
    level, other, word = of_columns(ODD).T
    assert (np.minimum(level, word) > 1).all()
    assert (other < 1).all()
    assert 0.03 < np.mean(total(NEW) > 0) < 0.13
    assert np.mean(total(NEW) > 1) < 0.02


def test_the_whole_is_the_tail_of_the_mean_of_the_two_largest():
    largest = np.sort(of_columns(NEW), axis=1)[:, -2:]
    assert_allclose(total(NEW), PREDICTIONS.whole(largest.mean(axis=1)[:, None])[:, 0])


def test_a_probability_is_the_share_of_the_learnt_rows_in_the_leaf():
    """Of many rows: the prior weighs two."""
    places, n = PREDICTIONS.trees.leaves(NEW), PREDICTIONS.n_each
    bins = PREDICTIONS.bins(NEW)
    shares = SUMS / np.maximum(SUMS.sum(axis=1, keepdims=True), 1e-9)
    of_tree = shares[places, np.repeat(bins, n, axis=1)]
    expected = of_tree.reshape(len(NEW), -1, n).mean(axis=2)
    found = PREDICTIONS.predicted(NEW, PREDICTIONS.probabilities(SUMS))
    assert_allclose(found, expected, atol=0.05)
    assert_allclose(PREDICTIONS.probabilities(SUMS).sum(axis=1), 1)


def test_sums_of_parts_are_those_of_the_whole_and_weights_count_rows():
    weight = np.random.default_rng(0).integers(1, 4, size=len(ROWS)).astype(float)
    parts = np.array_split(np.arange(len(ROWS)), 7)
    summed = sum(PREDICTIONS.sums(ROWS[part], weight[part]) for part in parts)
    repeated = PREDICTIONS.sums(ROWS.repeat(weight.astype(int), axis=0), np.ones(int(weight.sum())))
    assert_array_equal(summed, PREDICTIONS.sums(ROWS, weight))
    assert_array_equal(summed, repeated)
    assert summed.sum() == weight.sum() * len(PREDICTIONS.trees.root)


def test_what_is_learnt_again_and_again_surprises_less():
    often = PREDICTIONS.sums(ODD.repeat(500, axis=0), np.ones(1000))
    assert (total(ODD, SUMS + often) < total(ODD) / 2).all()
    assert_array_equal(total(NEW, SUMS + often - often), total(NEW))


def test_no_tree_looks_at_the_column_that_it_predicts():
    trees = PREDICTIONS.trees
    first = [*trees.root.tolist(), len(trees.column)]
    for tree in range(len(trees.root)):
        split = ~trees.is_leaf[first[tree] : first[tree + 1]]
        columns = trees.column[first[tree] : first[tree + 1]][split]
        assert not set(SOURCE[columns].tolist()) & {tree // PREDICTIONS.n_each}


def test_a_tree_splits_where_the_target_changes():
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(1000, 6)).astype(np.float32)
    is_high = (rows[:, 0] > 0.3).astype(np.int64)  # the other columns say nothing of it
    own, target = np.array([1, -1, -1, -1, -1, -1]), np.zeros(40, dtype=int)
    trees, drawn = prediction_trees(
        rows, np.stack([is_high, 0 * is_high], axis=1), own, rng, target=target, size=300, depth=4
    )
    assert drawn.shape == (40, 300)
    counts = np.zeros((trees.n_leaves, 2))
    np.add.at(counts, (trees.leaves(rows), is_high[:, None]), 1)
    right = counts.max(axis=1).sum() / counts.sum()
    assert right > 0.85 > 0.65 > 1 - is_high.mean()


def test_a_file_keeps_predictions_and_knows_of_how_many_columns_they_are():
    loaded = Predictions.from_state(PREDICTIONS.state())
    assert_array_equal(loaded.sums(NEW, np.ones(1000)), PREDICTIONS.sums(NEW, np.ones(1000)))
    assert loaded.fits(n_columns=5)
    assert not loaded.fits(n_columns=4)


def test_a_tensor_is_as_surprising():
    torch = pytest.importorskip("torch", reason="the extra nn is not installed")
    probability = PREDICTIONS.probabilities(SUMS)
    found = PREDICTIONS.predicted_of_tensor(torch.tensor(NEW), probability)
    assert_allclose(found.numpy(), PREDICTIONS.predicted(NEW, probability), atol=1e-12)
    surprise = PREDICTIONS.total(PREDICTIONS.surprise(found))
    assert_allclose(surprise.numpy(), total(NEW), atol=1e-9)
