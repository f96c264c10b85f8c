"""Trees that are grown once, and whose leaves hold sums."""

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score
from sklearn.tree import DecisionTreeClassifier
from summed import leaves_of, sums_of, term_of

from eqsep import Detector, load_model
from eqsep.arrays import same_parts
from eqsep.detector.terms import EllipsoidTerm, VotesTerm
from eqsep.detector.terms.term import EncodedRows
from eqsep.engine.backends import NUMPY
from eqsep.engine.trees import Trees, anomalous_shares
from eqsep.persistence import ModelFileError


def striped(n, *, seed=0):
    """Rows of which those in every other stripe of the first column are anomalous."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 8, size=(n, 4)).astype(np.float32)
    return rows, (rows[:, 0].astype(int) % 2).astype(int)


def grown(rows, y, n=50, **options):
    return Trees.grown(rows, y, np.random.RandomState(0), n=n, **options)


def target(y):
    return np.column_stack([1.0 - y, y])


def seen_by_trees(plan, rows):
    encoded = EncodedRows(plan.encode(rows), plan.encoder.pack, NUMPY)
    return term_of(plan, VotesTerm).seen(encoded)


def slow_leaf(trees, row, tree):
    """The way down as the attributes say it."""
    node = trees.root[tree]
    while trees.column[node] >= 0:
        is_left = row[trees.column[node]] <= trees.limit[node]
        node = (trees.left if is_left else trees.right)[node]
    return trees.left[node]


@pytest.mark.parametrize("n", [1, 5, 16, 19])
def test_each_row_ends_where_the_nodes_lead(n):
    rows, y = striped(300)
    trees = grown(rows, y, n=n)
    found = trees.leaves(rows)
    assert found.shape == (300, n)
    assert_array_equal(found, [[slow_leaf(trees, row, t) for t in range(n)] for row in rows])
    assert_array_equal(np.unique(found), np.arange(trees.n_leaves))


def test_every_second_tree_sees_the_first_columns_alone():
    rows, y = striped(400)
    trees = grown(rows[:, ::-1], y, n=6, narrow=3)  # the column that tells is the last
    ends = np.append(trees.root[1:], len(trees.column))
    last = [trees.column[a:b].max() for a, b in zip(trees.root, ends, strict=True)]
    assert last == [2, 3, 2, 3, 2, 3]
    assert trees.n_columns == 4


def out_of_step(n, *, seed=0):
    """Two columns that move together; anomalies are what leaves their band on one side."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 1)) + 0.1 * rng.normal(size=(n, 2))
    return rows, ((rows[:, 0] - rows[:, 1]) > 0.2).astype(int)


def test_trees_see_how_columns_move_together():
    """A step along a diagonal takes many cuts along columns and one along an axis."""
    rows, y = out_of_step(3000)
    plan = detector().fit(rows, y).plan_
    assert term_of(plan, VotesTerm).axes is not None
    assert seen_by_trees(plan, rows).shape == (3000, 4)
    new, kind = out_of_step(3000, seed=1)
    ways = []
    for narrow in (2, 4):  # columns alone, and axes too
        seen = [seen_by_trees(plan, some)[:, :narrow] for some in (rows, new)]
        trees = grown(seen[0], y, n=10)
        share = anomalous_shares(trees.sums(seen[0], target(y)))
        ways.append(average_precision_score(kind, trees.mean(seen[1], share)))
    assert ways[1] > ways[0] + 0.02


def test_axes_that_few_rows_have_turned_are_not_looked_at():
    rng = np.random.default_rng(0)
    rows, far = rng.normal(size=(3000, 20)), rng.random(3000) < 0.06
    rows[far] *= rng.lognormal(3, 2, size=(far.sum(), 1))
    plan = detector().fit(rows, (rows[:, 0] > 2).astype(int)).plan_
    assert term_of(plan, EllipsoidTerm).ellipsoid.is_heavy
    assert term_of(plan, VotesTerm).axes is None


@pytest.mark.parametrize("n", [6, 50, 140])
def test_means_are_numpys_of_what_leaves_hold_alone_and_in_a_batch(n):
    rows, y = striped(1200)
    trees = grown(rows, y, n=n)
    rng = np.random.default_rng(0)
    one, several = rng.random(trees.n_leaves), rng.random((trees.n_leaves, 3))
    leaves = trees.leaves(rows)
    found = trees.mean(rows, one)
    assert_array_equal(found, np.add.reduce(one[leaves], axis=1) / n)
    assert_array_equal(found[:9], [trees.mean(row[None], one)[0] for row in rows[:9]])
    parts = trees.means(rows, several, n_parts=2)
    halves = np.split(several[leaves], 2, axis=1)
    assert_allclose(parts, np.stack([half.mean(axis=1) for half in halves], axis=1), rtol=1e-12)
    assert_array_equal(
        parts[:9], [trees.means(row[None], several, n_parts=2)[0] for row in rows[:9]]
    )


def test_leaves_are_those_of_scikit_learn(monkeypatch):
    """A value at a limit too: limits are rounded so that no value of the rows changes sides."""
    kept, fit = [], DecisionTreeClassifier.fit
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # they are grown in their order

    def keep(tree, *data, **options):
        kept.append(tree)
        return fit(tree, *data, **options)

    monkeypatch.setattr(DecisionTreeClassifier, "fit", keep)
    rows, y = striped(400)
    rows = rows.round(1)
    trees = grown(rows, y, n=3)
    at_limits = rows.copy()
    inner = np.flatnonzero(trees.column >= 0)
    for i, node in enumerate(inner[:400]):
        at_limits[i, trees.column[node]] = trees.limit[node]
    for sample in (rows, at_limits):
        for found, tree in zip(trees.leaves(sample).T, kept, strict=True):
            theirs = tree.apply(sample)
            pairs = set(zip(found.tolist(), theirs.tolist(), strict=True))
            assert len(pairs) == len(set(found.tolist())) == len(set(theirs.tolist()))


def test_sums_of_pieces_add_up_and_can_be_taken_away():
    rows, y = striped(9000)
    trees = grown(rows, y, n=5)
    whole = trees.sums(rows, target(y))
    assert_array_equal(whole.sum(axis=0), 5 * np.bincount(y))
    first, rest = (trees.sums(rows[s], target(y)[s]) for s in (slice(4000), slice(4000, None)))
    assert_array_equal(first + rest, whole)
    assert_array_equal(whole - rest, first)


def test_a_row_votes_alike_alone_and_among_others():
    rows, y = striped(5000)
    trees = grown(rows, y)
    share = anomalous_shares(trees.sums(rows, target(y)))
    together = trees.mean(rows, share)
    assert_array_equal(together[:50], [trees.mean(row[None], share)[0] for row in rows[:50]])
    assert 0 <= together.min() < together.max() <= 1


def test_the_vote_is_as_good_as_that_of_a_forest():
    rows, y = striped(3000)
    new, y_new = striped(3000, seed=1)
    trees = grown(rows, y)
    vote = trees.mean(new, anomalous_shares(trees.sums(rows, target(y))))
    forest = RandomForestClassifier(50, random_state=0).fit(rows, y).predict_proba(new)[:, 1]
    ours, theirs = (average_precision_score(y_new, score) for score in (vote, forest))
    assert ours > theirs - 0.01 > 0.9


def test_few_rows_are_drawn_of_many():
    rows, y = striped(3000)
    assert grown(rows, y, n=4, most=(40, 30)).n_leaves <= 4 * 70
    assert grown(rows, y, n=4, most=(40, 30), least=10).n_leaves <= 4 * 7


def test_nothing_is_grown_of_one_class():
    rows, _ = striped(30)
    assert grown(rows, np.zeros(30)) is None
    assert grown(rows, np.ones(30)) is None
    assert grown(rows, np.repeat([-1, 0], 15)) is None


def test_shares():
    sums = np.array([[6.0, 1.0, 1.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    assert_allclose(anomalous_shares(sums), [0.25, 0, 0, 1])
    assert_allclose(anomalous_shares(sums, balanced=True), [0.4, 0, 0, 1])
    assert_array_equal(anomalous_shares(sums * [1, 0, 0], balanced=True), np.zeros(4))


def test_same_trees_are_told_from_others():
    rows, y = striped(200)
    trees = grown(rows, y, n=2)
    assert same_parts(trees, grown(rows, y, n=2))
    assert same_parts(None, None)
    assert not same_parts(trees, None)
    assert not same_parts(None, trees)
    for part in fields(Trees):
        assert not same_parts(trees, replace(trees, **{part.name: getattr(trees, part.name) + 1}))


FORGED = {
    "shared": lambda t: {"left": np.where(np.arange(len(t.left)) == 0, t.right, t.left)},
    "in no tree": lambda t: {"root": t.root[:1]},
    "below itself": lambda t: {"left": np.where(np.arange(len(t.left)) == 0, 0, t.left)},
    "past the end": lambda t: {"left": np.where(np.arange(len(t.left)) == 0, 10**6, t.left)},
    "out of order": lambda t: {"root": t.root[::-1].copy()},
    "of another tree": lambda t: {
        "left": np.where(np.arange(len(t.left)) == 0, t.root[1], t.left),
        "root": np.array([t.root[0], t.left[0]], dtype=t.root.dtype),
    },
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_forged_node_is_in_one_tree_alone(change):
    """A node in several places would let one walk of all paths double at every level."""
    rows, y = striped(200)
    trees = grown(rows, y, n=2)
    parts = {part.name: getattr(trees, part.name) for part in fields(Trees)}
    assert same_parts(Trees.from_state(parts), trees)
    with pytest.raises(ModelFileError, match="its trees"):
        Trees.from_state(parts | change(trees))


# -------------------------------------------------------------------------------- the detector


def detector(**options):
    return Detector(n_landmarks=60, bandwidth=1.0, random_state=0, **options)


@pytest.fixture(scope="module")
def fitted():
    rows, y = striped(3000)
    return detector().fit(rows, y), rows, y


def test_the_vote_finds_what_the_kernel_does_not(fitted):
    found, _, _ = fitted
    new, y_new = striped(2000, seed=1)
    score, rows = found.model_.score, found.plan_.encode(new)
    functions = {name: one for name, one in score.functions.items() if name != "vote"}
    mute = replace(score, functions=functions)
    ours, without = (average_precision_score(y_new, one(rows)) for one in (score, mute))
    assert ours > without + 0.1


def test_a_row_that_trees_are_sure_of_is_more_anomalous_than_any_that_looks_odd(fitted):
    found, rows, _ = fitted
    weight = term_of(found.plan_, VotesTerm).weight
    values = found.model_.score.values(found.plan_.encode(rows))
    assert weight > 1 > 0.9 < values["vote"].max()
    assert (found.score_samples(rows) >= weight * values["vote"] - 1e-12).all()


def test_the_vote_is_that_of_learnt_rows_alone(fitted):
    found, rows, y = fitted
    plan, model = found.plan_, found.model_
    table = plan.align(rows)
    labels = plan.labels.read(y, n_rows=len(y), known=model.evidence.labels)
    learnt = plan.holdout.split(table, labels, encoder=plan.encoder).learnt
    seen = seen_by_trees(plan, rows)
    sums = term_of(plan, VotesTerm).trees.sums(seen[learnt], target(y[learnt]))
    assert_array_equal(leaves_of(model), sums)
    assert_array_equal(model.score.functions["vote"].leaf_votes, anomalous_shares(sums))


def test_rows_that_are_doubted_vote_by_balanced_classes_too():
    rows, y = striped(1500)
    found = detector(unlabelled="doubted").fit(rows, y)
    both = [anomalous_shares(leaves_of(found.model_), balanced=b) for b in (False, True)]
    assert_allclose(found.model_.score.functions["vote"].leaf_votes, np.mean(both, axis=0))
    assert not np.allclose(*both)


def test_shuffled_labels_raise_no_vote():
    """Held-out rows of labels that mean nothing get no more votes than there are anomalies."""
    rows, y = striped(3000)
    shuffled = np.random.default_rng(0).permutation(y)
    found = detector().fit(rows, shuffled)
    new, _ = striped(1000, seed=2)
    score = found.score_samples(new)
    assert abs(average_precision_score(striped(1000, seed=2)[1], score) - 0.5) < 0.06


def test_one_class_has_no_trees(fitted):
    found = detector().fit(fitted[1])
    assert term_of(found.plan_, VotesTerm) is None
    assert "vote" not in sums_of(found.model_)
    assert "vote" not in found.model_.score.functions


def test_pieces_merges_and_forgetting_keep_the_leaves(fitted, tmp_path):
    """A kind that comes later, and goes again with its rows."""
    found, rows, y = fitted
    kinds = np.where(y == 1, "stripe", "normal").astype(object)
    first = detector(plan=found.plan_).fit(rows[:2000], kinds[:2000])
    later = kinds[2000:].copy()
    later[:20] = "late"
    before = first.score_samples(rows)
    there = detector(plan=found.plan_).fit(rows[2000:], later)
    both = first.merge(there)
    whole = detector(plan=found.plan_).fit(rows, np.r_[kinds[:2000], later])
    columns = [0, *(1 + whole.kinds_.index(kind) for kind in both.kinds_)]
    assert_array_equal(leaves_of(both.model_), leaves_of(whole.model_)[:, columns])
    assert_allclose(both.score_samples(rows), whole.score_samples(rows), atol=1e-6)
    both.forget(rows[2000:], later)
    assert both.kinds_ == ("stripe",)
    assert leaves_of(both.model_).shape[1] == 2
    assert_allclose(both.score_samples(rows), before, atol=1e-6)
    both.save(tmp_path / "model.eqsep")
    assert_array_equal(
        load_model(tmp_path / "model.eqsep").score_samples(rows), both.score_samples(rows)
    )


def test_means_over_parts_of_the_trees_are_those_of_each_part():
    rng = np.random.RandomState(0)
    rows, code = rng.normal(size=(80, 3)).astype(np.float32), np.repeat([0, 1, 2, 1], 20)
    places = np.arange(80)
    trees, shares = Trees.of_kinds(rows, code, [places, places[::2]], rng, n=6)
    leaves = trees.leaves(rows)
    expected = [shares[leaves[:, part]].mean(axis=1) for part in (slice(0, 6), slice(6, 12))]
    found = trees.means(rows, shares, n_parts=2)
    assert_allclose(found, np.stack(expected, axis=1), rtol=1e-15, atol=1e-15)
