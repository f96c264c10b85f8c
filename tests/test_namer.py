"""Names of alarms: probabilities, p-values by plain loops, promises, few rows, groups, files."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from eqsep import Detector, load_model
from eqsep.detector import Config, NewKindWarning
from eqsep.detector.evidence import KindRows, n_kind_rows
from eqsep.detector.holdout import NO_GROUPS
from eqsep.detector.namer import LIKE, KindProbability, Namer, rows_for
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


def namer_of(kept, *, kinds=None, learnt=None):
    kinds = kinds or tuple(dict.fromkeys(kept.kind.tolist()))
    counts = learnt or {kind: kept.n_units(kind) for kind in kinds}
    return Namer(
        kinds=kinds,
        learnt=tuple(float(counts.get(kind, 0)) for kind in kinds),
        examples=kept,
        config=Config.fast(),
    )


def judges_of(kept):
    return namer_of(kept).judges


def packed(seed, **kinds):
    X, kind = rows(seed, **kinds)
    return X.round().astype(np.float32), kind


def slow_p_value(ranks, unlike):
    """The weight of known rows that are as unlike, by the product of both tails."""

    def tail(i, value):
        return ranks.weight[ranks.unlike[:, i] >= value].sum() + ranks.unit

    known = np.array([tail(0, a) * tail(1, b) for a, b in ranks.unlike])
    total = ranks.unit
    for f in range(ranks.n_folds):
        product = tail(0, unlike[f, 0]) * tail(1, unlike[f, 1])
        as_unlike = (ranks.fold == f) & (known <= product * (1 + 1e-12))
        total += ranks.weight[as_unlike].sum() if len(set(ranks.fold)) > 1 else 0.0
    return total / (ranks.weight.sum() + ranks.unit)


@pytest.mark.parametrize("groups", [None, 9])
def test_p_values_are_weights_of_rows_that_are_as_unlike(groups):
    kept = kept_rows(0, pump=40, leak=1, valve=12, groups=groups)
    judges = namer_of(kept, learnt={"pump": 400, "leak": 1, "valve": 12}).judges
    new, _ = packed(1, normal=5, pump=10, leak=5, valve=5)
    judged = judges(new)
    for k, ranks in enumerate(judges.ranks_by_kind):
        want = [slow_p_value(ranks, unlike) for unlike in judged.unlike[:, :, k]]
        assert_allclose(ranks(judged.unlike[:, :, k]), want, rtol=1e-9)
    want = [slow_p_value(judges.all_ranks, unlike) for unlike in judged.unlike_all]
    assert_allclose(judges.all_ranks(judged.unlike_all), want, rtol=1e-9)
    alone = [judges(new[i : i + 1]).probability[0] for i in range(len(new))]
    assert_array_equal(judged.probability, alone)


def test_rows_weigh_as_their_kind_was_learnt_and_groups_as_one_row():
    kept = kept_rows(0, pump=40, valve=10, groups=8)
    judges = namer_of(kept, learnt={"pump": 800, "valve": 10}).judges
    for kind, n in {"pump": 800, "valve": 10}.items():
        own = judges.examples.kind == kind
        groups = judges.examples.groups[own]
        assert_allclose(judges.all_ranks.weight[own].sum(), n)
        by_group = [judges.all_ranks.weight[own][groups == g].sum() for g in set(groups)]
        assert_allclose(by_group, n / len(set(groups)))


def test_examples_are_judged_without_their_fold():
    judges = judges_of(kept_rows(0, pump=30, valve=30))
    judged = judges(judges.examples.rows)
    place = np.arange(60)
    code = (judges.examples.kind == "valve").astype(int)
    assert_allclose(judges.unlike_own, judged.unlike[place, judges.fold, code])
    assert_allclose(judges.unlike_all, judged.unlike[place, judges.fold].min(axis=1))


def test_the_nearest_row_is_one_of_another_fold():
    judges = judges_of(kept_rows(0, pump=30, leak=1))
    new = rows(1, normal=20)[0].astype(np.float32)
    _, distance = judges.votes_and_distances(new)
    far = np.abs(new[:, None] - judges.examples.rows).sum(axis=2)
    for f in range(judges.n_folds):
        for k, kind in enumerate(judges.sorted_kinds):
            others = far[:, (judges.examples.kind == kind) & (judges.fold != f)]
            want = others.min(axis=1, initial=np.inf)
            assert_allclose(distance[:, f, k], want, rtol=1e-6)
    assert np.isinf(distance).any()  # without the only leak


def test_probabilities_have_the_powers_of_the_highest_likelihood():
    rng = np.random.default_rng(0)
    code = rng.integers(3, size=400)
    votes = rng.dirichlet(np.ones(3), size=400)
    votes[np.arange(400), code] += rng.uniform(0, 1, size=400)
    votes /= votes.sum(axis=1, keepdims=True)
    distance = rng.uniform(0, 2, size=(400, 3))
    prior = np.array([1.0, 2.0, 5.0])
    found = KindProbability.fitted(votes, distance, code, prior=prior)
    weight = prior[code] / prior[code].mean()

    def loss(powers):
        p = replace(found, powers=powers)(votes, distance)
        likelihood = weight @ np.log(p[np.arange(400), code])
        return np.sum((powers - [1, 0]) ** 2) / 2 - likelihood

    best = minimize(loss, [1.0, 0.0]).x
    assert_allclose(found.powers, best, atol=1e-3)
    assert_allclose(found(votes, distance).sum(axis=1), 1)
    often = KindProbability.fitted(votes, distance, code, prior=np.ones(3))
    rare = replace(often, prior=np.array([1.0, 1.0, 1e-3]))
    assert (rare(votes, distance)[:, 2] < often(votes, distance)[:, 2]).all()


def test_rows_that_any_power_tells_apart_and_equal_rows_have_finite_powers():
    code = np.repeat([0, 1], 5)
    votes, distance = np.eye(2)[code], 1 - np.eye(2)[code]
    for d in (distance, np.zeros((10, 2)), np.full((10, 2), np.inf)):
        found = KindProbability.fitted(votes, d, code, prior=np.ones(2))
        assert (np.abs(found.powers) < 10).all()
        assert (found(votes, d).argmax(axis=1) == code).all()


def test_a_name_is_the_likeliest_kind_or_unseen():
    namer = namer_of(kept_rows(0, valve=50, leak=40, pump=60))
    new, _ = packed(1, normal=100, pump=200, valve=200, leak=50)
    kind, probability = namer.names(new, None, rate=0.05)
    p, every = namer.judges.all_ranks(namer.judges(new).unlike_all), namer.probabilities(new)
    unseen = p <= 0.05
    assert 50 < unseen.sum() < 200
    assert_array_equal(kind[unseen], "unseen")
    assert_allclose(probability[unseen], 0.05 / (p[unseen] + 0.05))
    assert_array_equal(kind[~unseen], np.array(namer.kinds)[every[~unseen].argmax(axis=1)])
    assert_array_equal(probability[~unseen], every[~unseen].max(axis=1))
    assert namer.names(new[:0], None, rate=0.05)[0].tolist() == []


def test_likeness_to_a_kind_with_few_rows_keeps_a_row_from_being_unseen():
    namer = namer_of(kept_rows(0, valve=50, leak=4, pump=30))
    assert list(namer.short_kinds(0.05)) == ["leak"]
    assert namer.needs_kind_likeness(0.05)
    assert not namer.needs_kind_likeness(0.2)
    far = np.full((3, 2), 40, np.float32)
    likeness = np.array([[0.0, 0.1, 0.0], [0.0, LIKE + 0.1, 0.0], [0.9, 0.7, 0.0]])
    assert (namer.names(far, likeness, rate=0.05)[0] == "unseen").tolist() == [True, False, True]


def test_sets_hold_kinds_as_probable_as_the_own_kind_of_most_examples():
    namer = namer_of(kept_rows(0, valve=50, leak=4, pump=19))
    new, _ = packed(1, normal=100, pump=200, valve=200, leak=50)
    p, probability, judges = namer.p_values(new), namer.probabilities(new), namer.judges
    most = probability.argmax(axis=1)[:, None] == np.arange(3)
    marginal, found = namer.members(new, coverage=0.95)
    assert_array_equal(found, probability)
    own = 1 - judges.unlike_own[:, 0]
    as_likely = (own[:, None, None] <= probability + 1e-12).sum(axis=0)
    assert_array_equal(marginal, most | ((as_likely + 1) / (len(own) + 1) > 0.05))
    by_kind, _ = namer.members(new, coverage=0.95, by_kind=True)
    few = np.array(namer.kinds) == "leak"
    assert_array_equal(by_kind, most | np.where(few, probability >= 0.05, p > 0.05 + 1e-9))
    assert namer.without_promise(0.95, by_kind=True) == ("leak",)
    assert namer.without_promise(0.95, by_kind=False) == ()
    assert namer.without_promise(0.99, by_kind=False) == namer.kinds


def test_sets_come_by_probability_with_the_name_first_and_marks():
    namer = namer_of(kept_rows(0, valve=50, leak=5, pump=50))
    new, _ = packed(1, normal=50, pump=100, valve=100, leak=50)
    likeness = np.zeros((len(new), 3))
    sets = namer.sets(new, likeness, rate=0.05, by_kind=True)
    kind, _ = namer.names(new, likeness, rate=0.05)
    probability = dict(zip(namer.kinds, namer.probabilities(new).T, strict=True))
    assert [names[0] for names in sets] == kind.tolist()
    for i, names in enumerate(sets):
        seen = [name for name in names if name != "unseen"]
        assert seen == sorted(seen, key=lambda name: (-probability[name][i], name))
        assert len(seen) >= 1
    assert {"unseen", "pump", "valve"} <= set(kind)
    assert sets.without_promise == ("leak",)
    marked = [text for text in sets.texts() if "leak" in text]
    assert marked
    assert all("leak*" in text for text in marked)
    assert any(" or " in text for text in sets.texts())


def test_the_promises_are_kept_for_rows_alone():
    """Over draws of the kept rows and of new ones: coverage, by kind too, and the unseen rate."""
    missed, by_kind, unseen = [], [], []
    for seed in range(30):
        namer = namer_of(kept_rows(seed, pump=99, valve=99))
        new, kind = packed(1000 + seed, normal=0, pump=30, valve=30)
        own = np.arange(60), (kind == "valve").astype(int)
        missed.append(np.mean(~namer.members(new, coverage=0.9)[0][own]))
        by_kind.append(np.mean(~namer.members(new, coverage=0.9, by_kind=True)[0][own]))
        unseen.append(np.mean(namer.names(new, None, rate=0.1)[0] == "unseen"))
    for rate in (missed, by_kind, unseen):
        error = np.std(rate, ddof=1) / np.sqrt(len(rate))
        assert np.mean(rate) < 0.1 + 2.5 * error


def test_without_rows_of_kinds_the_most_alike_kind_is_the_name_where_it_is_alike_enough():
    empty = kept_rows(0, pump=1).take(np.arange(0))
    namer = namer_of(empty, kinds=("pump", "leak"))
    assert namer.judges is None
    assert namer.needs_kind_likeness(0.05)
    new, likeness = np.zeros((3, 2), np.float32), np.array([[0.9, 0.6], [0.2, 0.7], [0.4, 0.3]])
    kind, probability = namer.names(new, likeness, rate=0.05)
    assert kind.tolist() == ["pump", "leak", "unseen"]
    assert np.isnan(probability).all()
    sets = namer.sets(new, likeness, rate=0.05)
    assert list(sets) == [("pump",), ("leak",), ("unseen",)]
    assert sets.without_promise == ("pump", "leak")
    with pytest.raises(UserError, match="has no rows of its kinds"):
        namer.p_values(new)
    nobody = namer_of(empty, kinds=())
    assert nobody.names(new, None, rate=0.05)[0].tolist() == ["unseen"] * 3


def test_a_kind_without_a_kept_row_is_in_no_doubt_and_never_the_likeliest():
    namer = namer_of(kept_rows(0, pump=30), kinds=("leak", "pump"))
    new = rows(1, normal=0, pump=5)[0].astype(np.float32)
    assert_array_equal(namer.p_values(new)[:, 0], np.ones(5))
    assert_array_equal(namer.probabilities(new), [[0.0, 1.0]] * 5)


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


def test_alarms_of_seen_kinds_are_called_unseen_at_the_rate_and_have_their_kind_in_sets():
    rates = (0.05, 0.2)
    missed, unseen = np.empty((4, 2)), np.empty((4, 2))
    for seed in range(4):
        one = detector().fit(*rows(seed, pump=120, valve=120))
        X, kind = rows(100 + seed, normal=0, pump=300, valve=300)
        for i, rate in enumerate(rates):
            one.unseen_rate = rate
            sets = one.predict_kinds(X, coverage=1 - rate)
            alarm = np.array([bool(names) for names in sets])
            assert_array_equal(alarm, one.predict(X) == 1)
            own = [name in names for name, names in zip(kind, sets, strict=True)]
            missed[seed, i] = np.mean(~np.array(own)[alarm])
            unseen[seed, i] = np.mean(one.predict_kind(X) == "unseen")
    bound = np.array(rates) + 2 * np.sqrt(np.array(rates) * (1 - np.array(rates)) / 480)
    assert (missed.mean(axis=0) < bound).all()
    assert (unseen.mean(axis=0) < bound).all()
    assert unseen.mean(axis=0)[1] > 0.1


def test_a_model_knows_how_well_it_names_learnt_rows_judged_without_themselves(fitted, tmp_path):
    """About as well as new rows of the same kinds."""
    expected = fitted.model_.namer.expected
    X, kind = rows(9, normal=0, pump=2_000, valve=2_000, leak=600)
    packed = fitted.plan_.encoder.pack(fitted.plan_.encode(X))
    likeliest = fitted.model_.namer.probabilities(packed).argmax(axis=1)
    right = np.mean(np.array(fitted.kinds_)[likeliest] == kind)
    assert expected.right == pytest.approx(right, abs=0.03)
    assert expected.right < 0.95 <= expected.covered
    assert 1.1 < expected.size < 2
    fitted.save(tmp_path / "model.eqsep")
    assert load_model(tmp_path / "model.eqsep").model_.namer.expected == expected
    assert detector().fit(*rows(0, pump=60)).model_.namer.expected is None
    assert detector().fit(rows(0)[0]).model_.namer.expected is None


def test_probabilities_of_names_are_shares_of_right_ones():
    right, said = [], []
    for seed in range(4):
        one = detector().fit(*rows(seed, pump=150, valve=150))
        X, kind = rows(100 + seed, normal=0, pump=300, valve=300)
        named, probability = one.predict_kind(X), one.kind_probability(X)
        seen = np.isin(named, one.kinds_)
        right.append((named == kind)[seen])
        said.append(probability[seen])
    right, said = np.concatenate(right), np.concatenate(said)
    assert right.mean() > 0.85
    for low, high in ((0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
        own = (said >= low) & (said < high)
        error = np.sqrt(0.25 / own.sum())
        assert abs(right[own].mean() - said[own].mean()) < 0.05 + 2 * error


def test_one_kind_alone_is_named_without_growing_trees_in_vain():
    one = detector().fit(*rows(0, leak=60))
    X, _ = rows(1, normal=0, leak=40, pump=40)
    judges = one.model_.namer.judges
    assert len(judges.trees.root) == judges.n_folds
    p = one.kind_p_values(X)
    assert np.median(p[:40]) > 0.2 > p[40:].max()
    kind, probability = one.predict_kind(X), one.kind_probability(X)
    assert (kind[:40] == "leak").sum() > 30
    assert_array_equal(kind[40:], "unseen")
    assert_array_equal(probability[kind == "leak"], 1)


def test_names_are_one_seen_kind_or_unseen(fitted):
    X = [[0, 9], [6.7, 0.2], [30, 30], [0, 0]]
    said, probability = fitted.predict_kind(X), fitted.kind_probability(X)
    assert said[[0, 2, 3]].tolist() == ["leak", "unseen", "normal"]
    assert said[1] in ("pump", "valve")
    sets = fitted.predict_kinds(X, coverage=0.99)
    assert [sorted(names) for names in sets[:2]] == [["leak"], ["pump", "valve"]]
    assert sets[1][0] == said[1]
    assert sets[2][0] == "unseen"
    assert sets[3] == ()
    assert probability[0] > 0.95 > probability[1] > 0.4
    assert probability[2] > 0.8
    assert np.isnan(probability[3])
    p = dict(zip(fitted.kinds_, fitted.kind_p_values(X).T, strict=True))
    assert (p["leak"] > 0.05).tolist() == [True, False, False, False]
    assert p["pump"][1] > 0.05
    assert max(p[kind][2] for kind in p) < 0.02


def test_more_coverage_and_coverage_by_kind_give_more_names(fitted):
    X, _ = rows(5, normal=0, pump=100, valve=100)
    few, more, each = (
        [set(names) for names in fitted.predict_kinds(X, coverage=c, by_kind=by_kind)]
        for c, by_kind in ((0.8, False), (0.98, False), (0.98, True))
    )
    assert all(a <= b for a, b in zip(few, more, strict=True))
    assert sum(map(len, few)) < sum(map(len, more)) <= sum(map(len, each))
    with pytest.raises(UserError, match="coverage must be a number between 0 and 1, got 95"):
        fitted.predict_kinds(X, coverage=95)


def test_pieces_merges_and_forgetting_name_as_one_fit_does(fitted):
    X, y = rows(0, pump=200, valve=200, leak=60)
    new, _ = rows(6, pump=80, valve=80, leak=80)
    said, p = fitted.predict_kind(new), fitted.kind_p_values(new)
    probability = fitted.kind_probability(new)
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
        assert_array_equal(one.kind_probability(new), probability)


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
    assert "leak" not in said
    sets = one.predict_kinds(rows(1, normal=0, pump=100)[0], by_kind=True)
    assert sets.without_promise == ("leak",)
    assert np.mean(["leak" in names for names in sets]) < 0.1
    leaks = one.predict_kind(rows(2, normal=0, leak=100)[0])
    assert np.mean(leaks == "leak") > 0.7


def test_a_single_row_of_a_kind_names_few():
    one = detector().fit(*rows(0, pump=100, leak=1))
    assert "leak" not in one.predict_kind([[6.0, 0.0], [30.0, 30.0]])
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
    assert_array_equal(loaded.kind_probability(new), fitted.kind_probability(new))
    assert loaded.predict_kinds(new).names == fitted.predict_kinds(new).names
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
    with pytest.warns(NewKindWarning, match=r"most look like 'pump'\. If both are the same kind"):
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
