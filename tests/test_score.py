"""The score: one formula of four terms, and what solves for them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from eqsep.detector import Config
from eqsep.detector.score import MOST_ALIKE, Score, Terms, TermValues, kernel_over, leaf_votes
from eqsep.engine.kernels import Laplacian
from eqsep.tables.encoder import Encoder
from eqsep.tables.reading import read_table

CONFIG = Config(n_landmarks=60, n_trees=7, bandwidth=1.0, doubted_bandwidth=1.0)
RNG = np.random.default_rng(0)
ROWS = np.vstack([RNG.normal(size=(400, 2)), RNG.normal((6, 0), size=(60, 2))])
IS_ANOMALY = np.repeat([0, 1], [400, 60])
TARGET = np.column_stack([1 - IS_ANOMALY, IS_ANOMALY]).astype(float)


def made(doubted=False, config=CONFIG):
    """A score of rows without a detector, and these rows encoded."""
    table = read_table(ROWS, name="me")
    encoder = Encoder.learn(table)
    Z, rng = encoder.encode(table), np.random.RandomState(0)
    more = {"encoder": encoder, "weight": None, "config": config, "doubted": doubted, "key": 3}
    terms = Terms.choose(Z, IS_ANOMALY, **more, rng=rng)
    sums = terms.sums(Z, TARGET, np.ones(len(Z)))
    return Score.solve(terms, sums, config), Z, sums


@cache
def trusted():
    return made()


@cache
def doubted():
    return made(doubted=True)


both = pytest.mark.parametrize("made", [trusted, doubted])


def test_terms_have_the_weights_of_the_config():
    config = replace(CONFIG, vote_weight=0.25, doubted_vote_weight=0.5, likeness_weight=0.75)
    found = [made(doubted, config)[0].terms for doubted in (False, True)]
    assert [(one.vote_weight, one.likeness_weight) for one in found] == [(0.25, 0), (0.5, 0.75)]


@pytest.mark.parametrize("v", [0.0, 0.5])
def test_the_formula(v):
    """max(d, t) + v t + e; where rows are doubted d + v t + e + w min(max(g, 0), 1.5)."""
    d, t, e, g = np.random.default_rng(1).uniform(-1, 3, size=(4, 50))
    d, t, e = abs(d), abs(t) / 3, abs(e)
    score = trusted()[0]
    score = replace(score, terms=replace(score.terms, vote_weight=v))
    found = score.combine(TermValues(residual=d, vote=t, excess=e))
    assert_allclose(found, np.maximum(d, t) + v * t + e)
    other = doubted()[0]
    other = replace(other, terms=replace(other.terms, vote_weight=v))
    w = other.terms.likeness_weight
    found = other.combine(TermValues(residual=d, vote=t, excess=e, likeness=g))
    assert_allclose(found, d + v * t + e + w * np.clip(g, 0, MOST_ALIKE))
    assert_allclose(other.combine(TermValues(residual=d, vote=t, excess=e)), d + v * t + e)


@both
def test_a_score_is_its_terms_combined(made):
    score, Z, _ = made()
    terms = score.terms
    k = terms.kernel_map.features(Z).astype(float)
    g = k @ score.likeness_coef if score.counts_likeness else None
    assert score.counts_likeness == terms.doubted
    values = terms.values(Z, score.leaf_votes)
    want = score.combine(replace(values, residual=abs(1 - k @ score.coef[:, 0]), likeness=g))
    assert_allclose(score(Z), want, atol=1e-5)
    assert_allclose(score.residual(Z), abs(1 - k @ score.coef[:, 0]), atol=1e-5)
    assert_allclose(score.kind_likeness(Z), k @ score.coef[:, 1:], atol=1e-5)


def test_f_is_a_ridge_regression():
    score, Z, _ = trusted()
    k = score.terms.kernel_map.features(Z).astype(float)
    ridge = Ridge(alpha=CONFIG.alpha, fit_intercept=False).fit(k, TARGET)
    assert_allclose(k @ score.coef, ridge.predict(k), atol=1e-3)


def test_few_labelled_anomalies_among_doubted_rows_make_f_smoother():
    score, _, sums = doubted()
    few = Score.solve(score.terms, sums, replace(CONFIG, few_anomalies=600))
    stiff = Score.solve(score.terms, sums, replace(CONFIG, few_anomalies=1, alpha=1.0))
    assert_allclose(few.coef, stiff.coef)  # ten times the penalty, and no more
    plain, _, own = trusted()
    same = Score.solve(plain.terms, own, replace(CONFIG, few_anomalies=600))
    assert_array_equal(same.coef, plain.coef)


def test_leaves_vote_by_their_share_of_anomalies_and_where_rows_are_doubted_by_a_balanced_one():
    _, Z, sums = trusted()
    normal, anomalous = sums.leaves.T
    assert normal.sum() / 400 == anomalous.sum() / 60 == CONFIG.n_trees
    share, balanced = (w * anomalous / (normal + w * anomalous) for w in (1, 400 / 60))
    assert_allclose(leaf_votes(sums, doubted=False), share)
    assert_allclose(leaf_votes(sums, doubted=True), (share + balanced) / 2)
    assert_array_equal(leaf_votes(replace(sums, leaves=None), doubted=False), [])
    terms = trusted()[0].terms
    votes = terms.votes(Z, terms.along(Z), share)
    assert votes[IS_ANOMALY == 1].mean() > 0.9 > 0.1 > votes[IS_ANOMALY == 0].mean()


@both
def test_sums_of_pieces_are_those_of_the_whole(made):
    score, Z, sums = made()
    pieces = [
        score.terms.sums(Z[part], TARGET[part], np.ones(len(part)))
        for part in np.array_split(np.random.default_rng(0).permutation(len(Z)), 3)
    ]
    total = pieces[0] + pieces[1] + pieces[2]
    assert_allclose(total.gram, sums.gram, rtol=1e-9, atol=1e-9)
    assert_allclose(total.leaves, sums.leaves)
    assert (total.anomalous is not None) == score.terms.doubted


def test_terms_are_the_same_where_the_same_sums_give_the_same_score():
    terms = trusted()[0].terms
    assert terms.is_same(made()[0].terms)
    assert not terms.is_same(doubted()[0].terms)
    for other in (
        replace(terms, vote_weight=0.7),
        replace(terms, landmarks=terms.landmarks + 1),
        replace(terms, trees=None),
        replace(terms, ellipsoid=None),
        replace(terms, ellipsoid=replace(terms.ellipsoid, weight=1 + terms.ellipsoid.weight)),
        replace(terms, kernel=Laplacian(gamma=3.0, powers=(1,))),
    ):
        assert not terms.is_same(other)


def test_without_a_labelled_anomaly_nothing_votes():
    table = read_table(ROWS[:400], name="me")
    encoder = Encoder.learn(table)
    Z, rng = encoder.encode(table), np.random.RandomState(0)
    more = {"encoder": encoder, "weight": None, "config": CONFIG, "doubted": False, "key": 3}
    terms = Terms.choose(Z, np.zeros(400, dtype=int), **more, rng=rng)
    score = Score.solve(terms, terms.sums(Z, np.ones((400, 1)), np.ones(400)), CONFIG)
    assert terms.trees is None
    assert len(score.leaf_votes) == 0
    assert score.kind_likeness(Z).shape == (400, 0)
    far = np.full((1, Z.shape[1]), 1e4, dtype=np.float32)
    assert score(far)[0] >= 1 - 1e-9


def test_the_bandwidth_is_in_units_of_the_median_distance():
    landmarks = trusted()[0].terms.landmarks
    narrow, wide = (kernel_over(landmarks, config=replace(CONFIG, bandwidth=b)) for b in (1.0, 4.0))
    assert_allclose(narrow.gamma / wide.gamma, 4)
    assert narrow.powers == CONFIG.powers
    median = Laplacian().resolved(landmarks).gamma
    assert_allclose(narrow.gamma * 4, median)
