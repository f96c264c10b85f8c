"""Names of alarms: the promise, exactness, few rows, groups, files."""

import numpy as np
import pytest
from eqsep.detector.naming import prediction_sets, rows_kept, short_kinds
from eqsep.detector.scoring import scorer_of, verdicts
from numpy.testing import assert_array_equal

from eqsep import Detector, load_model
from eqsep.detector import NewKindWarning, naming
from eqsep.errors import UserError

CENTRES = {"pump": (6.0, 0.0), "valve": (7.5, 0.5), "leak": (0.0, 9.0)}


def rows(seed, *, normal=300, **kinds):
    """Normal rows around 0 and rows of kinds around their centres."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(CENTRES[kind], 0.7, size=(n, 2)) for kind, n in kinds.items()]
    names = ["normal", *kinds]
    return np.vstack([rng.normal(size=(normal, 2)), *parts]), np.repeat(
        names, [normal, *kinds.values()]
    )


def detector(**settings):
    settings = {"false_alarm_rate": 0.05, **settings}
    return Detector(n_landmarks=60, bandwidth=1.0, random_state=0, **settings)


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(naming, "TREES_OF_A_FOLD", 8)
        yield


@pytest.fixture(scope="module")
def fitted():
    return detector().fit(*rows(0, pump=200, valve=200, leak=60))


def test_a_row_of_a_seen_kind_is_without_its_name_at_no_more_than_the_rate():
    rates = (0.05, 0.2)
    missed, unseen = np.empty((4, 2)), np.empty((4, 2))
    for seed in range(4):
        one = detector().fit(*rows(seed, pump=120, valve=120))
        X, kind = rows(100 + seed, normal=0, pump=300, valve=300)
        for i, rate in enumerate(rates):
            one.unseen_rate = rate
            sets, _ = prediction_sets(one, one.feature_map_.rows(X))
            own = sets[np.arange(len(X)), (kind[:, None] == np.array(one.kinds_)).argmax(axis=1)]
            missed[seed, i], unseen[seed, i] = np.mean(~own), np.mean(~sets.any(axis=1))
    bound = np.array(rates) + 2 * np.sqrt(np.array(rates) * (1 - np.array(rates)) / 480)
    assert (missed.mean(axis=0) < bound).all()
    assert missed.mean(axis=0)[1] > 0.05
    assert (unseen <= missed).all()


def test_one_kind_alone_is_named_without_growing_trees_in_vain():
    one = detector().fit(*rows(0, leak=60))
    X, _ = rows(1, normal=0, leak=40, pump=40)
    p, votes = one.kind_rows_.naming(one.feature_map_.packing(one.feature_map_.rows(X)))
    assert len(one.kind_rows_.naming.trees.root) == naming.N_FOLDS
    assert_array_equal(votes, np.ones_like(votes))
    assert np.median(p[:40]) > 0.2 > p[40:].max()


def test_names_are_one_several_or_unseen(fitted):
    X = [[0, 9], [6.7, 0.2], [30, 30], [0, 0]]
    said = fitted.predict_kind(X)
    assert said[[0, 2, 3]].tolist() == ["leak", "unseen", "normal"]
    assert sorted(said[1].split(" or ")) == ["pump", "valve"]
    p = dict(zip(fitted.kinds_, fitted.kind_p_values(X).T, strict=True))
    assert (p["leak"] > 0.05).tolist() == [True, False, False, False]
    assert p["pump"][1] > 0.05
    assert max(p[kind][2] for kind in p) < 0.02


def test_a_lower_rate_gives_more_names(fitted):
    X, _ = rows(5, normal=0, pump=100, valve=100)
    Z = fitted.feature_map_.rows(X)
    few, more = (prediction_sets(fitted.set_params(unseen_rate=rate), Z)[0] for rate in (0.2, 0.02))
    fitted.set_params(unseen_rate=0.05)
    assert (few <= more).all()
    assert few.sum() < more.sum()


def test_pieces_merges_and_forgetting_name_as_one_fit_does(fitted):
    X, y = rows(0, pump=200, valve=200, leak=60)
    new, _ = rows(6, pump=80, valve=80, leak=80)
    said, p = fitted.predict_kind(new), fitted.kind_p_values(new)
    like = detector(feature_map=fitted.feature_map_)
    order = np.random.default_rng(0).permutation(len(X))
    first, second = np.array_split(order, 2)
    pieces = detector(feature_map=fitted.feature_map_).fit(X[first], y[first])
    pieces.partial_fit(X[second], y[second])
    there = like.fit(X[second], y[second])
    merged = detector(feature_map=fitted.feature_map_).fit(X[first], y[first]).merge(there)
    more, kinds = rows(7, normal=50, pump=30, leak=10)
    forgetful = detector(feature_map=fitted.feature_map_).fit(X, y).partial_fit(more, kinds)
    assert (forgetful.kind_p_values(new) != p).any()
    forgetful.forget(more, kinds)
    for one in (pieces, merged, forgetful):
        columns = [one.kinds_.index(kind) for kind in fitted.kinds_]
        assert_array_equal(one.kind_p_values(new)[:, columns], p)
        assert_array_equal(one.predict_kind(new), said)


def test_few_of_many_rows_of_a_kind_are_kept_and_more_rows_keep_the_bound():
    X, y = rows(0, pump=2500)
    one = detector().fit(X, y)
    assert len(one.kind_rows_.rows) == rows_kept(2) == 1000
    streamed = detector().fit(
        [
            (part, kind)
            for part, kind in zip(np.array_split(X, 5), np.array_split(y, 5), strict=True)
        ]
    )
    assert len(streamed.kind_rows_.rows) == 1000
    again = detector(feature_map=one.feature_map_).fit(X[::2], y[::2])
    again.partial_fit(X[1::2], y[1::2])
    new, _ = rows(1, normal=0, pump=50)
    assert_array_equal(again.kind_p_values(new), one.kind_p_values(new))


def test_a_kind_with_too_few_rows_is_not_in_every_set():
    one = detector().fit(*rows(0, pump=100, leak=7))
    assert short_kinds(one) == {"leak": 7}
    assert short_kinds(one.set_params(unseen_rate=0.2)) == {}
    one.set_params(unseen_rate=0.05)
    said = one.predict_kind(rows(1, normal=0, pump=100)[0])
    assert not any("leak" in names for names in said)
    leaks = one.predict_kind(rows(2, normal=0, leak=100)[0])
    assert np.mean(leaks == "leak") > 0.7


def test_a_single_row_of_a_kind_names_few():
    one = detector().fit(*rows(0, pump=100, leak=1))
    assert not any("leak" in names for names in one.predict_kind([[6.0, 0.0], [30.0, 30.0]]))
    lonely = detector().fit(*rows(0, leak=1))
    assert lonely.predict_kind([[30.0, 30.0]]).tolist() == ["unseen"]


def test_groups_judge_each_other_whole():
    X, y = rows(0, pump=200, leak=200)
    groups = np.arange(len(X)) % 40
    one = detector(false_alarm_rate=0.1).fit(X, y, groups=groups)
    assert {one.kind_rows_.n_units(kind) for kind in ("pump", "leak")} == {40}
    fold, hashes = one.kind_rows_.naming.fold, one.kind_rows_.naming.kept.groups
    assert all(len(set(fold[hashes == group])) == 1 for group in np.unique(hashes))
    said = one.predict_kind(rows(1, normal=0, pump=100)[0])
    assert np.mean(said == "pump") > 0.8


def test_a_file_keeps_the_names(fitted, tmp_path):
    new, _ = rows(6, pump=80, valve=80, leak=80)
    fitted.save(tmp_path / "m.eqsep")
    loaded = load_model(tmp_path / "m.eqsep")
    assert_array_equal(loaded.kind_p_values(new), fitted.kind_p_values(new))
    assert_array_equal(loaded.predict_kind(new), fitted.predict_kind(new))
    more, kinds = rows(7, normal=0, pump=30)
    assert_array_equal(
        loaded.partial_fit(more, kinds).kind_p_values(new),
        detector(feature_map=fitted.feature_map_)
        .fit(*rows(0, pump=200, valve=200, leak=60))
        .partial_fit(more, kinds)
        .kind_p_values(new),
    )


def test_a_new_kind_that_looks_like_another_is_said_to(fitted):
    rng = np.random.default_rng(0)
    X, y = rows(0, pump=200, valve=200, leak=60)
    one = detector(feature_map=fitted.feature_map_).fit(X, y)
    with pytest.warns(NewKindWarning, match=r"most look like 'pump'\. If both are one kind"):
        one.partial_fit(rng.normal(CENTRES["pump"], 0.7, size=(40, 2)), ["motor"] * 40)


def test_rates_are_refused_and_alarms_alone_are_named(fitted):
    with pytest.raises(UserError, match="unseen_rate must be a number between 0 and 1, got 5"):
        detector(unseen_rate=5).fit(*rows(0, pump=20))
    said = verdicts(fitted, rows(8, pump=50)[0])
    assert ((said["kind"] == "normal") == ~said["alarm"]).all()


def test_a_row_alone_is_named_as_in_a_batch(fitted):
    X, _ = rows(7, normal=20, pump=20, valve=20, leak=20)
    fitted.unseen_rate, rate = 0.001, fitted.unseen_rate  # so that all kinds have too few rows
    for _ in range(2):
        said = verdicts(fitted, X)
        alone = [verdicts(fitted, X[i : i + 1]) for i in range(len(X))]
        for name, column in said.items():
            assert_array_equal(column, np.concatenate([one[name] for one in alone]))
        assert_array_equal(said["kind"], fitted.predict_kind(X))
        fitted.unseen_rate = rate


def test_likeness_beside_the_score_is_that_of_its_own(fitted):
    X, _ = rows(8, normal=300, pump=100, leak=300)
    Z, scorer, threshold = fitted.feature_map_.rows(X), scorer_of(fitted), fitted.threshold_
    score, likeness = scorer.scores_and_likeness(Z, threshold)
    assert_array_equal(score, scorer.scores(Z))
    alarm = score > threshold
    assert 0 < alarm.sum() < len(alarm)
    assert_array_equal(likeness, scorer.likeness(Z)[alarm])


def test_a_scorer_is_kept_until_the_detector_learns():
    one = detector().fit(*rows(0, pump=60))
    before = scorer_of(one)
    assert scorer_of(one) is before
    X, kind = rows(1, pump=40, leak=40)
    one.partial_fit(X, kind)
    assert scorer_of(one) is not before
    assert scorer_of(one).coef is one.coef_
