"""The score: one formula of the values of terms, and what solves for them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from summed import term_of

from eqsep.detector import Config
from eqsep.detector.isolation import KEPT, LEFT_OUT, WEIGHED
from eqsep.detector.plan import LabelScheme, Plan
from eqsep.detector.score import Score, combine
from eqsep.detector.terms import (
    TERMS,
    EllipsoidTerm,
    KernelTerm,
    LikenessTerm,
    NearestTerm,
    NormalityTerm,
    SurpriseTerm,
    VotesTerm,
)
from eqsep.detector.terms.kernel import kernel_over
from eqsep.detector.terms.likeness import MOST_ALIKE, LikenessFunction
from eqsep.detector.terms.term import EncodedRows, FirstRows, LearntSums, RowsToSum
from eqsep.engine.backends import NUMPY
from eqsep.engine.kernels import Laplacian
from eqsep.tables.encoder import Encoder
from eqsep.tables.reading import read_table

CONFIG = Config(n_landmarks=60, n_trees=7, bandwidth=1.0, doubted_bandwidth=1.0)
RNG = np.random.default_rng(0)
ROWS = np.vstack([RNG.normal(size=(400, 2)), RNG.normal((6, 0), size=(60, 2))])
IS_ANOMALY = np.repeat([0, 1], [400, 60])
TARGET = np.column_stack([1 - IS_ANOMALY, IS_ANOMALY]).astype(float)


def plan_of(rows, is_anomaly, doubted=False, config=CONFIG, isolation=KEPT, isolated=()):
    """A plan of rows without a detector, and these rows encoded; some of them are isolated."""
    table, places = read_table(rows, name="me"), np.arange(len(rows))
    encoder = Encoder.learn(table)
    first = FirstRows(
        rows=encoder.encode(table),
        is_anomaly=is_anomaly,
        kinds=("seen",),
        weight=None,
        encoder=encoder,
        config=config.for_rows(doubted=doubted),
        doubted=doubted,
        isolation=isolation,
        isolated=np.isin(places, isolated),
        rng=np.random.RandomState(0),
        key=3,
    )
    chosen = {}
    for term in TERMS:
        if (one := term.choose(replace(first, chosen=chosen))) is not None:
            chosen[term.name] = one
    labels = LabelScheme(
        normal=None,
        unlabelled_is_normal=False,
        doubted=doubted,
        unlabelled_weight=0.01,
        isolation=isolation,
        isolated_share=0.1 * (isolation != KEPT),
        isolates_labelled=False,
    )
    plan = Plan(encoder=encoder, terms=tuple(chosen.values()), holdout=None, labels=labels)
    return plan, first.rows


def learnt_of(plan, rows, target, config=CONFIG, isolated=()):
    """What terms are solved from, where encoded rows count once, and some are isolated."""
    weight, isolated = np.ones(len(rows)), np.isin(np.arange(len(rows)), isolated)
    some = RowsToSum(rows=rows, target=target, weight=weight, isolated=isolated, backend=NUMPY)
    of_terms = {term.name: term.accumulate(some) for term in plan.terms}
    doubted = plan.labels.doubted
    return LearntSums(
        of_terms=of_terms,
        weight=weight @ target,
        kinds=("seen",),
        config=config,
        doubted=doubted,
    )


def made(doubted=False, config=CONFIG):
    """A score, the rows that it has learnt, encoded, and their sums."""
    plan, Z = plan_of(ROWS, IS_ANOMALY, doubted, config)
    learnt = learnt_of(plan, Z, TARGET, config)
    return Score.solve(plan, learnt), Z, learnt


@cache
def trusted():
    return made()


@cache
def doubted():
    return made(doubted=True)


both = pytest.mark.parametrize("made", [trusted, doubted])


def combined(score, values):
    """The formula, for the plan of a score."""
    weights = {term.name: term.weight for term in score.plan.terms}
    return combine(values, weights=weights, backend=NUMPY)


def test_terms_have_the_weights_of_the_config():
    config = replace(CONFIG, vote_weight=0.25, doubted_vote_weight=0.5, likeness_weight=0.75)
    trusted, doubted = (made(doubted, config)[0].plan for doubted in (False, True))
    assert [term_of(plan, VotesTerm).weight for plan in (trusted, doubted)] == [0.25, 0.5]
    assert term_of(trusted, LikenessTerm) is None
    assert term_of(doubted, LikenessTerm).weight == 0.75
    without = plan_of(ROWS, IS_ANOMALY, True, replace(config, likeness_weight=0.0))[0]
    assert term_of(without, LikenessTerm) is None


def test_the_formula():
    """(1 - a) sqrt(r) + a sqrt(n) + the other terms, each with its weight."""
    names = ["residual", "normality", "vote", "excess", "likeness", "nearest", "surprise"]
    values = dict(zip(names, np.random.default_rng(1).uniform(0, 3, size=(7, 50)), strict=True))
    weights = dict(zip(names, [1.0, 0.3, 0.5, 0.7, 0.2, 0.1, 0.9], strict=True))

    def of(**some):
        return combine(some, weights=weights, backend=NUMPY)

    root = np.sqrt(values["residual"])
    others = sum(weights[name] * values[name] for name in names[2:])
    assert_allclose(of(**values), 0.7 * root + 0.3 * np.sqrt(values["normality"]) + others)
    assert_allclose(of(residual=values["residual"]), root)
    for name in names[2:]:
        one = {name: values[name]}
        assert_allclose(of(residual=values["residual"], **one), root + weights[name] * one[name])


@both
def test_a_score_is_its_terms_combined(made):
    score, Z, _ = made()
    k = score.plan.kernel.numpy_map.features(Z).astype(float)
    values, coef = score.values(Z), score.kernel.coef
    assert values.keys() == score.functions.keys()
    assert ("likeness" in values) == score.plan.labels.doubted
    if "likeness" in values:
        g = k @ score.functions["likeness"].coef
        assert_allclose(values["likeness"], np.clip(g, 0, MOST_ALIKE), atol=1e-5)
    assert_allclose(values["residual"], abs(1 - k @ coef[:, 0]), atol=1e-5)
    assert_allclose(score(Z), combined(score, values), atol=1e-12)
    assert_allclose(score.residual(Z), abs(1 - k @ coef[:, 0]), atol=1e-5)
    assert_allclose(score.kind_likeness(Z), k @ coef[:, 1:], atol=1e-5)
    scores, likeness = score.with_kind_likeness(Z, 0.5)
    assert_array_equal(scores, score(Z))
    assert_allclose(likeness, (k @ coef[:, 1:])[scores > 0.5], atol=1e-5)


def test_likeness_counts_from_0_to_one_and_a_half():
    g = np.array([-1.0, 0.0, 0.7, 1.5, 9.0])
    values = LikenessFunction(np.zeros(3))(EncodedRows(None, None, NUMPY), g[:, None])
    assert_array_equal(values, [0, 0, 0.7, 1.5, 1.5])


def test_f_is_a_ridge_regression():
    score, Z, _ = trusted()
    k = score.plan.kernel.numpy_map.features(Z).astype(float)
    ridge = Ridge(alpha=CONFIG.alpha, fit_intercept=False).fit(k, TARGET)
    assert_allclose(k @ score.kernel.coef, ridge.predict(k), atol=1e-3)


def test_normality_is_a_fit_without_the_rows_that_do_not_look_normal():
    """Neither labelled anomalies nor isolated rows bend it, and the residual learns both."""
    isolated = np.arange(0, 400, 10)
    plan, Z = plan_of(ROWS, IS_ANOMALY, isolation=WEIGHED, isolated=isolated)
    learnt = learnt_of(plan, Z, TARGET, isolated=isolated)
    looks_normal = np.flatnonzero((IS_ANOMALY == 0) & ~np.isin(np.arange(460), isolated))
    alone = learnt_of(plan, Z[looks_normal], TARGET[looks_normal])
    expected = term_of(plan, KernelTerm).solve(alone).coef[:, 0]
    assert_allclose(term_of(plan, NormalityTerm).solve(learnt).coef, expected, atol=1e-6)
    kept = learnt_of(plan, Z, TARGET)
    assert_array_equal(
        term_of(plan, KernelTerm).solve(learnt).coef, term_of(plan, KernelTerm).solve(kept).coef
    )


def test_isolated_rows_that_are_left_out_bend_nothing_but_what_knows_the_labels():
    isolated = np.arange(0, 400, 10)
    plan, Z = plan_of(ROWS, IS_ANOMALY, True, isolation=LEFT_OUT, isolated=isolated)
    others = np.setdiff1d(np.arange(460), isolated)
    of_all = learnt_of(plan, Z, TARGET, isolated=isolated)
    of_others = learnt_of(plan, Z[others], TARGET[others])
    assert term_of(plan, NormalityTerm) is None
    for kind in (KernelTerm, SurpriseTerm):
        parts, expected = (
            np.concatenate(
                [a.ravel() for s in (x.symmetric, x.by_class, x.totals) for a in s.values()]
            )
            for x in (learnt.of_terms[kind.name] for learnt in (of_all, of_others))
        )
        assert_allclose(parts, expected)
    votes = of_all.of_terms["vote"].by_class["leaves"]
    assert_allclose(votes.sum(axis=0), [400 * CONFIG.n_trees, 60 * CONFIG.n_trees])


@pytest.mark.parametrize(
    ("isolation", "with_anomalies", "differs"),
    [
        (KEPT, False, False),
        (KEPT, True, True),
        (WEIGHED, False, True),
        (WEIGHED, True, True),
        (LEFT_OUT, False, False),
        (LEFT_OUT, True, False),
    ],
)
def test_normality_is_chosen_where_the_kernel_learns_other_rows_too(
    isolation, with_anomalies, differs
):
    n = 460 if with_anomalies else 400
    plan, _ = plan_of(ROWS[:n], IS_ANOMALY[:n], isolation=isolation)
    assert (term_of(plan, NormalityTerm) is not None) == differs


def test_leaves_vote_by_their_share_of_anomalies_and_where_rows_are_doubted_by_a_balanced_one():
    score, Z, learnt = trusted()
    votes = term_of(score.plan, VotesTerm)
    normal, anomalous = learnt.of_terms["vote"].by_class["leaves"].T
    assert normal.sum() / 400 == anomalous.sum() / 60 == CONFIG.n_trees
    share, balanced = (w * anomalous / (normal + w * anomalous) for w in (1, 400 / 60))
    assert_allclose(votes.solve(learnt).leaf_votes, share)
    doubting = votes.solve(replace(learnt, doubted=True))
    assert_allclose(doubting.leaf_votes, (share + balanced) / 2)
    vote = score.values(Z)["vote"]
    assert vote[IS_ANOMALY == 1].mean() > 0.9 > 0.1 > vote[IS_ANOMALY == 0].mean()


@both
def test_sums_of_pieces_are_those_of_the_whole(made):
    score, Z, learnt = made()
    parts = np.array_split(np.random.default_rng(0).permutation(len(Z)), 3)
    first, *others = (learnt_of(score.plan, Z[part], TARGET[part]).of_terms for part in parts)
    for name, whole in learnt.of_terms.items():
        total = first[name]
        for other in others:
            total = total + other[name]
        for kind in ("symmetric", "totals", "by_class"):
            arrays, expected = getattr(total, kind), getattr(whole, kind)
            assert arrays.keys() == expected.keys()
            for part, array in arrays.items():
                assert_allclose(array, expected[part], rtol=1e-9, atol=1e-9)
    assert ("likeness" in learnt.of_terms) == score.plan.labels.doubted


def test_terms_are_the_same_where_the_same_sums_give_the_same_score():
    terms, again = (
        {type(term): term for made in both for term in made.plan.terms}
        for both in (
            (trusted()[0], doubted()[0]),
            (made()[0], made(doubted=True)[0]),
        )
    )
    assert terms.keys() == again.keys() == set(TERMS)
    for kind, term in terms.items():
        assert [other for other in again if term.is_same(again[other])] == [kind]
    kernel, ellipsoid = terms[KernelTerm], terms[EllipsoidTerm].ellipsoid
    trees, near = terms[VotesTerm].trees, terms[NearestTerm].neighbourhood
    found = terms[SurpriseTerm].predictions
    tail = found.whole
    assert kernel.is_same(replace(kernel, max_landmarks=kernel.max_landmarks + 1))
    for term, change in (
        (VotesTerm, {"weight": 0.7}),
        (VotesTerm, {"trees": replace(trees, limit=trees.limit + 1)}),
        (LikenessTerm, {"weight": 0.7}),
        (KernelTerm, {"landmarks": kernel.landmarks + 1}),
        (KernelTerm, {"kernel": Laplacian(gamma=3.0, powers=(1,))}),
        (EllipsoidTerm, {"weight": 0.7}),
        (EllipsoidTerm, {"ellipsoid": replace(ellipsoid, axes=2 * ellipsoid.axes)}),
        (NormalityTerm, {"weight": 0.7}),
        (NearestTerm, {"weight": 0.7}),
        (NearestTerm, {"neighbourhood": replace(near, handicap=near.handicap + 1)}),
        (
            SurpriseTerm,
            {"predictions": replace(found, whole=replace(tail, slopes=2 * tail.slopes))},
        ),
    ):
        assert not terms[term].is_same(replace(terms[term], **change))


def test_without_a_labelled_anomaly_nothing_votes():
    plan, Z = plan_of(ROWS[:400], np.zeros(400, dtype=int))
    score = Score.solve(plan, learnt_of(plan, Z, np.ones((400, 1))))
    assert term_of(plan, VotesTerm) is None
    assert "vote" not in score.functions
    assert score.kind_likeness(Z).shape == (400, 0)
    far = np.full((1, Z.shape[1]), 1e4, dtype=np.float32)
    assert score(far)[0] >= 1 - 1e-9


def test_the_bandwidth_is_in_units_of_the_median_distance():
    landmarks = trusted()[0].plan.kernel.landmarks
    narrow, wide = (kernel_over(landmarks, config=replace(CONFIG, bandwidth=b)) for b in (1.0, 4.0))
    assert_allclose(narrow.gamma / wide.gamma, 4)
    assert narrow.powers == CONFIG.powers
    median = Laplacian().resolved(landmarks).gamma
    assert_allclose(narrow.gamma * 4, median)
