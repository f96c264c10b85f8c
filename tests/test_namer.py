"""Names of alarms: p-values by plain loops, the promise, exactness, few rows, groups, files."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector, load_model
from eqsep.detector import Config, NewKindWarning
from eqsep.detector.evidence import KindRows, n_kind_rows
from eqsep.detector.holdout import NO_GROUPS
from eqsep.detector.namer import LIKE, RIVAL, Judges, Namer, rows_for
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
    settings = {"false_alarm_rate": 0.05, "config": Config.fast(), **settings}
    return Detector(n_landmarks=60, bandwidth=1.0, random_state=0, **settings)


# ------------------------------------------------------------------------- without a detector


def kept_rows(seed, *, groups=None, **kinds):
    """Rows of kinds as a namer keeps them; whole numbers, so that many distances tie."""
    X, kind = rows(seed, normal=0, **kinds)
    own = NO_GROUPS if groups is None else np.random.default_rng(seed).integers(groups, size=len(X))
    return KindRows(rows=X.round().astype(np.float32), kind=kind, groups=own.astype("u8"), key=3)


def namer_of(kept, *, kinds=None, has_promise=True):
    kinds = kinds or tuple(dict.fromkeys(kept.kind.tolist()))
    return Namer(kinds=kinds, examples=kept, has_promise=has_promise, config=Config.fast())


def slow_p_value(judges, kind, lacking, distance):
    """The share of rows of a kind that are as unlike it; each weighs as its group says."""
    own = judges.examples.kind == kind
    fold, groups = judges.fold[own], judges.examples.groups
    theirs = judges.lacking[own], judges.distance[own]
    weight = np.ones(own.sum())
    if len(groups):
        weight = 1 / np.array([(groups[own] == group).sum() for group in groups[own]])
    n_units = round(weight.sum())
    if len(set(fold)) < 2:
        return 1 / (n_units + 1)

    def rank(a, b):
        return max((theirs[0] < a).sum(), (theirs[1] < b).sum())

    ranks = np.array([rank(a, b) for a, b in zip(*theirs, strict=True)])
    total = 1.0
    for f in range(judges.n_folds):
        total += weight[(fold == f) & (ranks >= rank(lacking[f], distance[f]))].sum()
    return total / (n_units + 1)


@pytest.mark.parametrize("groups", [None, 9])
def test_p_values_are_shares_of_rows_that_are_as_unlike_the_kind(groups):
    judges = Judges.of(kept_rows(0, pump=40, leak=1, valve=12, groups=groups), Config.fast())
    new = rows(1, normal=5, pump=10, leak=5, valve=5)[0].astype(np.float32)
    lacking, distance = judges.unlikeness(new)
    found, votes = judges(new)
    for k, kind in enumerate(judges.sorted_kinds):
        pairs = zip(lacking[..., k], distance[..., k], strict=True)
        want = [slow_p_value(judges, kind, a, b) for a, b in pairs]
        assert_allclose(found[:, k], want, rtol=1e-12)
    alone = [judges(new[i : i + 1])[0][0] for i in range(len(new))]
    assert_array_equal(found, alone)
    assert_allclose(votes, 1 - lacking.mean(axis=1))


def test_the_nearest_row_is_one_of_another_fold():
    judges = Judges.of(kept_rows(0, pump=30, leak=1), Config.fast())
    new = rows(1, normal=20)[0].astype(np.float32)
    _, distance = judges.unlikeness(new)
    far = np.abs(new[:, None] - judges.examples.rows).sum(axis=2)
    for f in range(judges.n_folds):
        for k, kind in enumerate(judges.sorted_kinds):
            others = far[:, (judges.examples.kind == kind) & (judges.fold != f)]
            want = others.min(axis=1, initial=np.inf)
            assert_allclose(distance[:, f, k], want, rtol=1e-6)
    assert np.isinf(distance).any()  # without the only leak


def test_sets_are_p_values_above_the_rate_likeness_and_rivals():
    namer = namer_of(kept_rows(0, valve=50, leak=4, pump=19))
    assert list(namer.short_kinds(0.05)) == ["leak"]
    assert namer.needs_kind_likeness(0.05)
    assert not namer.needs_kind_likeness(0.2)
    new = rows(1, normal=100, pump=200, valve=200, leak=50)[0].astype(np.float32)
    likeness = np.random.default_rng(0).uniform(0, 0.8, size=(len(new), 3))
    p = namer.p_values(new)
    found, votes = namer.sets(new, likeness, rate=0.05)
    most = likeness.argmax(axis=1)
    for i in range(len(new)):
        own = p[i] > np.array([0.05, 0.2, 0.05]) + 1e-9
        own[1] |= most[i] == 1 and likeness[i, 1] > LIKE
        if own.any():
            own |= (votes[i] >= RIVAL) | (votes[i] == votes[i].max())
        assert_array_equal(found[i], own)
    assert 10 < found.any(axis=1).sum() < len(new) - 10
    assert {1, 2} <= set(found.sum(axis=1).tolist())


def test_names_come_by_votes_and_then_by_the_alphabet():
    namer = namer_of(kept_rows(0, valve=50, leak=50, pump=50))
    new = rows(1, normal=100, pump=100, valve=100, leak=50)[0].astype(np.float32)
    sets, votes = namer.sets(new, None, rate=0.05)
    for name, own, vote in zip(namer.names(new, None, rate=0.05), sets, votes, strict=True):
        said = [(-v, kind) for kind, v, is_in in zip(namer.kinds, vote, own, strict=True) if is_in]
        assert name == (" or ".join(kind for _, kind in sorted(said)) or "unseen")
    assert "unseen" in namer.names(new, None, rate=0.05)
    assert namer.names(new[:0], None, rate=0.05).tolist() == []


def test_the_promise_is_kept_for_rows_alone():
    """A row of a kind is without its name at the rate, over draws of the kept rows and of it."""
    missed = []
    for seed in range(30):
        kept = kept_rows(seed, pump=99, valve=99)
        namer, (new, kind) = namer_of(kept), rows(1000 + seed, normal=0, pump=30, valve=30)
        sets, _ = namer.sets(new.round().astype(np.float32), None, rate=0.1)
        missed.append(np.mean(~sets[np.arange(60), (kind == "valve").astype(int)]))
    error = np.std(missed, ddof=1) / np.sqrt(len(missed))
    assert np.mean(missed) < 0.1 + 2.5 * error


def test_without_a_promise_the_most_alike_kind_is_the_name_where_it_is_alike_enough():
    empty = kept_rows(0, pump=1).take(np.arange(0))
    namer = namer_of(empty, kinds=("pump", "leak"), has_promise=False)
    assert namer.judges is None
    assert namer.needs_kind_likeness(0.05)
    new, likeness = np.zeros((3, 2), np.float32), np.array([[0.9, 0.6], [0.2, 0.7], [0.4, 0.3]])
    assert namer.names(new, likeness, rate=0.05).tolist() == ["pump", "leak", "unseen"]
    with pytest.raises(UserError, match="no rows of its kinds to compare with"):
        namer.p_values(new)
    nobody = namer_of(empty, kinds=())
    assert nobody.names(new, None, rate=0.05).tolist() == ["unseen"] * 3


def test_a_kind_without_a_kept_row_is_in_no_doubt_and_has_no_votes():
    namer = namer_of(kept_rows(0, pump=30), kinds=("leak", "pump"))
    new = rows(1, normal=0, pump=5)[0].astype(np.float32)
    assert_array_equal(namer.p_values(new)[:, 0], np.ones(5))
    assert_array_equal(namer.sets(new, None, rate=0.1)[1], [[0.0, 1.0]] * 5)


def test_kinds_are_short_of_the_rows_that_a_rate_takes():
    namer = namer_of(kept_rows(0, pump=19, leak=18))
    assert namer.short_kinds(0.05) == {"leak": 18}
    assert rows_for(0.05) == 19
    grouped = namer_of(kept_rows(0, pump=100, groups=9))
    assert grouped.short_kinds(0.05) == {"pump": 9}


# ----------------------------------------------------------------------------- in a detector


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
            sets, _ = one.model_.kind_sets(one.plan_.encode(X))
            own = sets[np.arange(len(X)), (kind[:, None] == np.array(one.kinds_)).argmax(axis=1)]
            missed[seed, i], unseen[seed, i] = np.mean(~own), np.mean(~sets.any(axis=1))
    bound = np.array(rates) + 2 * np.sqrt(np.array(rates) * (1 - np.array(rates)) / 480)
    assert (missed.mean(axis=0) < bound).all()
    assert missed.mean(axis=0)[1] > 0.05
    assert (unseen <= missed).all()


def test_one_kind_alone_is_named_without_growing_trees_in_vain():
    one = detector().fit(*rows(0, leak=60))
    X, _ = rows(1, normal=0, leak=40, pump=40)
    judges = one.model_.namer.judges
    p, votes = judges(one.plan_.encoder.pack(one.plan_.encode(X)))
    assert len(judges.trees.root) == judges.n_folds
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
    Z = fitted.plan_.encode(X)
    few, more = (fitted.set_params(unseen_rate=rate).model_.kind_sets(Z)[0] for rate in (0.2, 0.02))
    fitted.set_params(unseen_rate=0.05)
    assert (few <= more).all()
    assert few.sum() < more.sum()


def test_pieces_merges_and_forgetting_name_as_one_fit_does(fitted):
    X, y = rows(0, pump=200, valve=200, leak=60)
    new, _ = rows(6, pump=80, valve=80, leak=80)
    said, p = fitted.predict_kind(new), fitted.kind_p_values(new)
    like = detector(plan=fitted.plan_)
    order = np.random.default_rng(0).permutation(len(X))
    first, second = np.array_split(order, 2)
    pieces = detector(plan=fitted.plan_).fit(X[first], y[first])
    pieces.partial_fit(X[second], y[second])
    there = like.fit(X[second], y[second])
    merged = detector(plan=fitted.plan_).fit(X[first], y[first]).merge(there)
    more, kinds = rows(7, normal=50, pump=30, leak=10)
    forgetful = detector(plan=fitted.plan_).fit(X, y).partial_fit(more, kinds)
    assert (forgetful.kind_p_values(new) != p).any()
    forgetful.forget(more, kinds)
    for one in (pieces, merged, forgetful):
        columns = [one.kinds_.index(kind) for kind in fitted.kinds_]
        assert_array_equal(one.kind_p_values(new)[:, columns], p)
        assert_array_equal(one.predict_kind(new), said)


def test_few_of_many_rows_of_a_kind_are_kept_and_more_rows_keep_the_bound():
    X, y = rows(0, pump=2500)
    one = detector().fit(X, y)
    assert len(one.model_.evidence.kinds.rows) == n_kind_rows(2, config=Config()) == 1000
    streamed = detector().fit(
        [
            (part, kind)
            for part, kind in zip(np.array_split(X, 5), np.array_split(y, 5), strict=True)
        ]
    )
    assert len(streamed.model_.evidence.kinds.rows) == 1000
    again = detector(plan=one.plan_).fit(X[::2], y[::2])
    again.partial_fit(X[1::2], y[1::2])
    new, _ = rows(1, normal=0, pump=50)
    assert_array_equal(again.kind_p_values(new), one.kind_p_values(new))


def test_a_kind_with_too_few_rows_is_not_in_every_set():
    one = detector().fit(*rows(0, pump=100, leak=7))
    assert one.model_.namer.short_kinds(0.05) == {"leak": 7}
    assert one.model_.namer.short_kinds(0.2) == {}
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
    assert {one.model_.evidence.kinds.n_units(kind) for kind in ("pump", "leak")} == {40}
    fold, hashes = one.model_.namer.judges.fold, one.model_.namer.judges.examples.groups
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
        detector(plan=fitted.plan_)
        .fit(*rows(0, pump=200, valve=200, leak=60))
        .partial_fit(more, kinds)
        .kind_p_values(new),
    )


def test_a_new_kind_that_looks_like_another_is_said_to(fitted):
    rng = np.random.default_rng(0)
    X, y = rows(0, pump=200, valve=200, leak=60)
    one = detector(plan=fitted.plan_).fit(X, y)
    with pytest.warns(NewKindWarning, match=r"most look like 'pump'\. If both are one kind"):
        one.partial_fit(rng.normal(CENTRES["pump"], 0.7, size=(40, 2)), ["motor"] * 40)


def test_rates_are_refused_and_alarms_alone_are_named(fitted):
    with pytest.raises(UserError, match="unseen_rate must be a number between 0 and 1, got 5"):
        detector(unseen_rate=5).fit(*rows(0, pump=20))
    said = fitted.model_.verdicts(rows(8, pump=50)[0])
    assert ((said.kind == "normal") == ~said.alarm).all()


def test_a_row_alone_is_named_as_in_a_batch(fitted):
    X, _ = rows(7, normal=20, pump=20, valve=20, leak=20)
    fitted.unseen_rate, rate = 0.001, fitted.unseen_rate  # so that all kinds have too few rows
    for _ in range(2):
        said = fitted.model_.verdicts(X)
        alone = [fitted.model_.verdicts(X[i : i + 1]) for i in range(len(X))]
        for column, parts in zip(said, zip(*alone, strict=True), strict=True):
            assert_array_equal(column, np.concatenate(parts))
        assert_array_equal(said.kind, fitted.predict_kind(X))
        fitted.unseen_rate = rate


def test_likeness_beside_the_score_is_that_of_its_own(fitted):
    X, _ = rows(8, normal=300, pump=100, leak=300)
    Z, function, threshold = fitted.plan_.encode(X), fitted.model_.score, fitted.threshold_
    score, likeness = function.with_kind_likeness(Z, threshold)
    assert_array_equal(score, function(Z))
    alarm = score > threshold
    assert 0 < alarm.sum() < len(alarm)
    assert_array_equal(likeness, function.kind_likeness(Z)[alarm])
