"""Calibration: p-values, thresholds and promises, and how often a normal row raises an alarm."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from summed import gram_of, moment_of

from eqsep import Detector, load_model
from eqsep.detector import CalibrationWarning, Config
from eqsep.detector.calibration import (
    Calibration,
    Promise,
    alarms_needed,
    anomalies_among,
    certified_rank,
    check_selection,
    rate_interval,
    rows_needed,
    rows_that_count,
    select,
)
from eqsep.detector.evidence import gather
from eqsep.detector.holdout import (
    Grouping,
    n_held_out,
    n_held_out_anomalies,
    rows_to_hold_out,
    usable,
)
from eqsep.errors import UserError

RATES = (0.01, 0.05, 0.1)
FIRST, FRESH = 700, 500  # rows learnt, and rows to count alarms in


def cheap(**parameters):
    quick = {"bandwidth": 0.5, "n_landmarks": 50, "config": Config.fast()}
    return Detector(**quick | parameters)


def calibration(n, seed=0):
    return Calibration(np.random.default_rng(seed).normal(size=n))


def continuous(rng, n):
    return rng.standard_t(df=4, size=(n, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]])


def discrete(rng, n):
    """Few distinct rows, many of them repeated hundreds of times."""
    return np.column_stack([rng.poisson(0.4, size=n), rng.binomial(3, 0.1, size=n)])


def nearly_discrete(rng, n):
    """Half of the rows equal, the others all different."""
    return np.where(rng.uniform(size=(n, 1)) < 0.5, 0.0, rng.normal(size=(n, 2)))


def false_alarms(draw, *, n_splits, learn):
    """The share of alarms among fresh normal rows: a row for each split, a column for each rate."""
    out = []
    for seed in range(n_splits):
        rng = np.random.default_rng(seed)
        detector = learn(draw(rng, FIRST), seed)
        fresh = detector.score_samples(draw(rng, FRESH))
        out.append(
            [(fresh > detector.set_params(false_alarm_rate=r).threshold_).mean() for r in RATES]
        )
    return np.array(out)


def in_one_go(X, seed):
    anomalies = np.full((20, X.shape[1]), 9.0) + np.arange(20)[:, None]
    y = np.repeat(["normal", "known"], [len(X), 20])
    return cheap(random_state=seed).fit(np.vstack([X, anomalies]), y)


def in_pieces(X, seed):
    """A first piece, one more, one from another detector, and some rows forgotten."""
    detector = cheap(random_state=seed).fit(X[:300])
    other = cheap(plan=detector.plan_, false_alarm_rate=0.1).fit(X[300:500])
    return detector.merge(other).partial_fit(X[500:]).forget(X[:100])


@pytest.mark.parametrize("learn", [in_one_go, in_pieces])
def test_the_promise_is_kept_on_average(learn):
    alarms = false_alarms(continuous, n_splits=40, learn=learn)
    error = alarms.std(axis=0, ddof=1) / np.sqrt(len(alarms))
    assert (np.abs(alarms.mean(axis=0) - RATES) < 2.5 * error).all(), alarms.mean(axis=0)


@pytest.mark.parametrize(
    ("draw", "learn"),
    [
        (discrete, in_one_go),
        (nearly_discrete, in_pieces),
        pytest.param(discrete, in_pieces, marks=pytest.mark.extra),
        pytest.param(nearly_discrete, in_one_go, marks=pytest.mark.extra),
    ],
)
def test_repeated_rows_do_not_break_the_promise(draw, learn):
    alarms = false_alarms(draw, n_splits=20, learn=learn)
    error = alarms.std(axis=0, ddof=1) / np.sqrt(len(alarms))
    assert (alarms.mean(axis=0) < RATES + 2.5 * error).all(), alarms.mean(axis=0)


def test_p_values_of_normal_rows_are_at_most_as_small_as_they_say():
    """Super-uniform: P(p <= a) <= a for every a; and about a, where scores do not tie."""
    ps = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        detector = in_one_go(continuous(rng, FIRST), seed)
        ps.append(detector.p_value(continuous(rng, 100)))
    for a in (0.01, 0.05, 0.2, 0.5, 0.8):
        share = np.mean(np.array(ps) <= a, axis=1)
        error = share.std(ddof=1) / np.sqrt(len(share))
        assert a - 3 * error < share.mean() < a + 3 * error


def test_the_rate_may_be_changed_after_fitting():
    rng = np.random.default_rng(0)
    X = continuous(rng, 2_000)
    detector = cheap(random_state=0).fit(X)
    coef, alarms = detector.coef_.copy(), {}
    for rate in (0.01, 0.05, 0.3):
        detector.set_params(false_alarm_rate=rate)
        alarms[rate] = detector.predict(X).mean()
        score = detector.decision_function(X)
        assert_array_equal(detector.predict(X), (score > 0).astype(int))
        assert_array_equal(
            detector.predict(X) == 1, detector.score_samples(X) > detector.threshold_
        )
        assert_allclose(
            (detector.calibration_.scores > detector.threshold_).mean(), rate, atol=0.006
        )
    assert alarms[0.01] < alarms[0.05] < alarms[0.3]
    assert_array_equal(detector.coef_, coef)
    anew = cheap(random_state=0, false_alarm_rate=0.3).fit(X)
    assert anew.threshold_ == detector.threshold_


@pytest.mark.parametrize(
    ("n", "rate", "told"),
    [
        (100, 0.01, r"it takes 99 held-out normal rows, and there are 50.*false_alarm_rate=0.02"),
        (
            1,
            0.05,
            r"there are 0. Add at least 37 normal rows and fit again\.$",
        ),
        (400, 0.001, "it takes 999 held-out normal rows, and there are 99"),
    ],
)
def test_too_few_rows_for_the_promise_are_told(n, rate, told):
    X = np.random.default_rng(0).normal(size=(n, 2))
    with pytest.warns(CalibrationWarning, match=told) as warned:
        cheap(random_state=0, false_alarm_rate=rate).fit(X)
    assert len(warned) == 1


@pytest.mark.parametrize(("n", "rate"), [(240, 0.01), (100, 0.02), (40, 0.05), (18, 0.1)])
def test_enough_rows_raise_no_warning(n, rate):
    """Warnings are errors here."""
    detector = cheap(random_state=0, false_alarm_rate=rate)
    assert (
        detector.fit(np.random.default_rng(0).normal(size=(n, 2))).calibration_.least_rate <= rate
    )


@given(n=st.integers(0, 20_000))
def test_whole_percentages_are_met_by_the_rows_that_count(n):
    assert 0 <= usable(n) <= n
    if n >= 99:
        assert (usable(n) + 1) % 100 == 0
        assert n - usable(n) < 100
    assert n_held_out(n, config=Config()) <= min(n / 2, 3_999)


@given(scores=st.lists(st.floats(0, 2), max_size=250), rate=st.floats(0.004, 0.996))
def test_alarms_and_p_values_say_the_same(scores, rate):
    """Above the threshold means a p-value of at most the rate, wherever it can be promised."""
    calibration = Calibration(np.array(scores, dtype=float))
    probe = np.linspace(-0.5, 2.5, 301)
    if calibration.least_rate <= rate:
        alarm = probe > calibration.threshold(rate)
        p = calibration.p_value(probe)
        assert (p[alarm] <= rate + 1e-9).all()
        assert (p[~alarm & ~np.isin(probe, scores)] > rate - 1e-9).all()


def test_equal_scores_count_as_high():
    """Ties are on the side of caution: a row that scores as held-out ones do is like them."""
    calibration = Calibration(np.repeat([0.0, 1.0], [4, 5]))
    assert_allclose(calibration.p_value(np.array([0.0, 0.5, 1.0, 1.5])), [1.0, 0.6, 0.6, 0.1])
    assert calibration.threshold(0.3) == 1.0


def test_p_values_of_new_scores_are_uniform():
    """Over draws of the held-out scores and of the new one, on the steps of 1 / (n + 1)."""
    rng = np.random.default_rng(0)
    p = [Calibration(rng.normal(size=99)).p_value(rng.normal(size=1))[0] for _ in range(4000)]
    assert stats.kstest(np.array(p) - rng.uniform(0, 0.01, size=4000), "uniform").pvalue > 0.01
    assert set(np.round(np.array(p) * 100, 9)) <= set(range(1, 101))


def test_a_promise_is_refused_with_what_is_expected_and_what_came():
    assert Promise() == Promise(0.01, None, 0.05)
    for wrong, message in [
        ({"false_alarm_rate": 2}, "false_alarm_rate must be a number between 0 and 1, got 2. 0.01"),
        ({"confidence": 0}, "confidence must be a number between 0 and 1, got 0. With 0.95"),
        ({"unseen_rate": "5%"}, "unseen_rate must be a number between 0 and 1, got '5%'. 0.05"),
    ]:
        with pytest.raises(UserError, match=message):
            Promise(**wrong)


# ------------------------------------------------------- one model's rate, with a confidence


CASES = [(499, 0.01, 0.95), (199, 0.05, 0.9), (99, 0.1, 0.99), (30, 0.2, 0.5), (3999, 0.003, 0.95)]


def plane(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


@pytest.mark.parametrize(("n", "rate", "confidence"), CASES)
def test_the_rank_is_the_largest_that_the_law_of_beta_certifies(n, rate, confidence):
    k = certified_rank(n, rate=rate, confidence=confidence)
    assert stats.beta(k, n + 1 - k).cdf(rate) >= confidence > stats.beta(k + 1, n - k).cdf(rate)


def test_of_499_rows_the_second_largest_certifies_one_percent():
    assert certified_rank(499, rate=0.01, confidence=0.95) == 2
    assert_allclose(rate_interval(499, 5), [0.01, 0.0033, 0.0204], atol=5e-5)
    scores = calibration(499)
    assert scores.threshold(0.01, 0.95) == np.sort(scores.scores)[-2]
    assert scores.threshold(0.01) == np.sort(scores.scores)[-5]


@pytest.mark.parametrize(("n", "rate", "confidence"), CASES)
def test_so_many_models_keep_the_rate(n, rate, confidence):
    """Scores are drawn uniformly, so that the true rate above a threshold is known."""
    drawn = np.random.default_rng(1).uniform(size=(2_000, n))
    k = certified_rank(n, rate=rate, confidence=confidence)
    true = 1 - np.sort(drawn, axis=1)[:, [-k, -k - 1]]
    kept = (true <= rate).mean(axis=0)
    error = np.sqrt(confidence * (1 - confidence) / len(drawn))
    assert kept[0] >= confidence - 3 * error
    assert kept[1] < confidence + 3 * error  # one rank further none is certified
    mean, low, high = rate_interval(n, k)
    assert_allclose(true[:, 0].mean(), mean, rtol=0.1)
    assert_allclose(((low <= true[:, 0]) & (true[:, 0] <= high)).mean(), 0.95, atol=0.016)


@pytest.mark.parametrize(("rate", "confidence"), [(0.01, 0.95), (0.05, 0.9), (0.3, 0.999)])
def test_rows_needed_are_the_fewest(rate, confidence):
    n = rows_needed(rate=rate, confidence=confidence)
    assert certified_rank(n, rate=rate, confidence=confidence) == 1
    assert certified_rank(n - 1, rate=rate, confidence=confidence) == 0


def test_the_confidence_may_be_set_after_fitting():
    X = plane(2_500)
    detector = cheap(random_state=0, bandwidth=1.0).fit(X)
    mean = detector.threshold_
    detector.confidence = 0.95
    assert detector.threshold_ > mean
    assert (
        detector.threshold_
        == cheap(random_state=0, bandwidth=1.0, confidence=0.95).fit(X).threshold_
    )
    detector.confidence = None
    assert detector.threshold_ == mean


def test_a_rate_that_no_score_certifies_is_told():
    message = (
        r"rate of 0.01 cannot be promised with a confidence of 0.95: it takes 299 held-out normal "
        r"rows, and there are 199\. Add at least 495 normal rows and fit again, or set "
        r"false_alarm_rate=0.02, or set confidence=None: the rate can be promised on average\."
    )
    with pytest.warns(CalibrationWarning, match=message) as warned:
        detector = cheap(random_state=0, bandwidth=1.0, confidence=0.95).fit(plane(1_000))
    assert len(warned) == 1
    assert detector.threshold_ == detector.calibration_.ordered[-1]
    (short,) = calibration(199).check_rate(0.001, 0.99)
    assert "it takes 4,699 held-out" in short.message
    assert not calibration(199).check_rate(0.02, 0.95)  # as was said
    (short,) = calibration(24).check_rate(0.01)
    assert short.hint.endswith("or set false_alarm_rate=0.05.")  # of the usual rates
    groups = np.arange(17, dtype=np.uint64)  # of 34 or 35: half of them
    grouped = replace(calibration(17), groups=groups)
    (short,) = grouped.check_rate(0.01, grouping=Grouping(("g", None)))
    assert short.hint.startswith("Add groups of normal rows (198 in all) and fit again, or set")


@pytest.mark.parametrize("confidence", [0, 1.0, "high", -0.5])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(UserError, match="confidence must be a number between 0 and 1"):
        cheap(random_state=0, bandwidth=1.0, confidence=confidence).fit(plane(300))


def test_files_keep_the_confidence(tmp_path):
    detector = cheap(random_state=0, bandwidth=1.0, confidence=0.9).fit(plane(2_500))
    detector.save(tmp_path / "m.eqsep")
    again = load_model(tmp_path / "m.eqsep")
    assert again.confidence == 0.9
    assert again.threshold_ == detector.threshold_


# ---------------------------------------------------------------- chances without steps


@pytest.fixture(scope="module")
def drawn():
    return calibration(199), np.random.default_rng(1).normal(size=1000)


def test_chances_tell_scores_apart_that_share_a_p_value(drawn):
    held, new = drawn
    held = Calibration(np.abs(held.scores))
    score = np.unique(np.abs(new))
    assert len(np.unique(held.p_value(score))) < len(score)
    assert (np.diff(held.survival(score)) < 0).all()


def test_survival_is_the_p_value_without_its_steps(drawn):
    held, new = drawn
    held, new = Calibration(np.abs(held.scores)), np.abs(new)
    p, q = held.p_value(new), held.survival(new)
    assert (q <= p).all()
    assert (p - q <= 1 / (held.n_units + 1) + 1e-12).all()


def test_at_the_threshold_both_chances_are_equal_and_the_rate_decides(drawn):
    held, new = drawn
    held, new = Calibration(np.abs(held.scores)), np.abs(new)
    threshold = held.threshold(0.01)
    assert_allclose(held.survival(threshold), 0.01)
    chance = held.probabilities(new, threshold=threshold)
    assert_allclose(chance.sum(axis=1), 1)
    assert_allclose(chance[:, 1], 0.01 / (held.survival(new) + 0.01))
    assert_allclose(held.probabilities(np.array([threshold]), threshold=threshold), [[0.5, 0.5]])


def test_without_a_row_that_calibrates_a_chance_is_an_even_one_up_to_the_threshold():
    assert Calibration(np.empty(0)).survival(np.array([0.0, 0.5, 1.0])).tolist() == [1, 1, 0.5]
    assert Calibration(np.empty(0)).threshold(0.01) == 0.5


def test_normal_rows_that_all_score_0_leave_no_chance_to_others():
    assert Calibration(np.zeros(9)).survival(np.array([0.0, 0.1])).round(6).tolist() == [1, 0]


# ------------------------------------------------------------------------ whole groups


def test_every_group_counts_the_same():
    scores = np.array([0.0, 1.0, 2.0, 3.0, 0.5])
    groups = np.array([1, 1, 1, 1, 2], dtype=np.uint64)
    calibration = Calibration(scores, groups=groups)
    assert_allclose(
        calibration.p_value(np.array([2.0, 0.5, -1.0, 9.0])), [1.5 / 3, 2.75 / 3, 1, 1 / 3]
    )
    assert calibration.threshold(0.5) == 1.0  # above it lies half of one group
    assert calibration.threshold(0.34) == 3.0


def test_a_new_group_counts_by_its_own_rows_where_they_are_at_hand():
    groups = np.array([1, 1, 1, 1, 2], dtype=np.uint64)
    held = Calibration(np.array([0.0, 1.0, 2.0, 3.0, 0.5]), groups=groups)
    scores, new = np.array([9.0, 2.0, 2.0, 0.7]), np.array([7, 8, 7, 8], dtype=np.uint64)
    assert_allclose(
        held.p_value(scores, groups=new), [0.5 / 3, (0.5 + 0.5) / 3, (1 + 0.5) / 3, (1 + 0.75) / 3]
    )


def test_of_whole_groups_the_rate_is_the_promised_one_and_of_single_rows_at_most():
    """Groups that score alike in part: over many draws, where the mean shares lie."""
    rng = np.random.default_rng(0)
    rate, n_groups, n_rows, shares = 0.1, 20, 10, []
    group = np.repeat(np.arange(n_groups, dtype=np.uint64), n_rows)
    for _ in range(2000):
        score = rng.normal(size=n_groups)[group] + rng.normal(size=len(group))
        is_new = group == 0
        held = Calibration(score[~is_new], groups=group[~is_new])
        whole = held.p_value(score[is_new], groups=group[is_new])
        one_by_one = held.p_value(score[is_new])
        assert (whole <= one_by_one + 1e-9).all()
        shares.append([(whole <= rate).mean(), (one_by_one <= rate).mean()])
    (whole, one_by_one), error = np.mean(shares, axis=0), np.std(shares, axis=0) / np.sqrt(2000)
    assert abs(whole - rate) < 3 * error[0]
    assert one_by_one < rate - 3 * error[1]


# ------------------------------------------------------------------------------ selection


FDRS = (0.05, 0.1, 0.2)


@pytest.fixture(scope="module")
def detector():
    return cheap(bandwidth=1.0, random_state=0).fit(plane(2_500))


def batch(rng, n_normal, n_anomalies):
    return np.vstack([rng.normal(size=(n_normal, 2)), rng.normal(6, 1, size=(n_anomalies, 2))])


def test_false_discoveries_are_at_most_the_share_on_average():
    """Over draws of held-out scores and batch, of which 450 scores are normal and 50 higher."""
    false, found = [], []
    for seed in range(600):
        rng = np.random.default_rng(seed)
        calibration = Calibration(rng.normal(size=999))
        p = calibration.p_value(np.concatenate([rng.normal(size=450), rng.normal(3.5, 1, 50)]))
        masks = [select(p, fdr=fdr) for fdr in FDRS]
        false.append([mask[:450].sum() / max(mask.sum(), 1) for mask in masks])
        found.append([mask[450:].mean() for mask in masks])
    mean, error = np.mean(false, axis=0), np.std(false, axis=0, ddof=1) / np.sqrt(len(false))
    assert (mean < 0.9 * np.array(FDRS) + 2.5 * error).all(), mean  # nine in ten are normal
    assert (mean > 0.9 * np.array(FDRS) - 4 * error).all(), mean  # and not far below
    assert (np.mean(found, axis=0) > 0.3).all()


def test_a_detector_selects_by_its_p_values(detector):
    X = batch(np.random.default_rng(1), 400, 40)
    mask = detector.select(X, fdr=0.2)
    assert_array_equal(mask, stats.false_discovery_control(detector.p_value(X)) <= 0.2)
    assert mask[400:].mean() > 0.9
    assert not detector.select(X[:400]).any()


def test_what_too_few_held_out_rows_cannot_resolve_is_told():
    """Perfectly separated: with 499 held-out rows none of 50 among 10,000, with 4,999 all."""
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.uniform(size=9_950), np.full(50, 9.0)])
    few, many = (Calibration(rng.uniform(size=n)) for n in (499, 4_999))
    message = r"With 499 held-out .* at least 200 of .* with 9,999 held-out rows, 10 are enough"
    none = select(few.p_value(scores), fdr=0.1)
    assert not none.any()
    (found,) = check_selection(none, fdr=0.1, n_calibrating=499)
    assert re.search(message, found.message)
    mask = select(many.p_value(scores), fdr=0.1)
    assert not check_selection(mask, fdr=0.1, n_calibrating=4_999)
    assert mask[9_950:].all()
    assert mask[:9_950].sum() < 12
    (found,) = check_selection(np.zeros(100, dtype=bool), fdr=0.1, n_calibrating=9)
    assert re.search(r"With 9 .* is 0\.1, .* with 99 held-out rows, 10 are", found.message)


@pytest.mark.parametrize(("m", "n", "fdr"), [(1_000, 99, 0.1), (10_000, 499, 0.2), (50, 999, 0.1)])
def test_as_many_alarms_as_are_needed_are_selected_and_one_less_is_not(m, n, fdr):
    needed = alarms_needed(m, fdr=fdr, n_calibrating=n)
    for k, is_selected in ((needed, True), (needed - 1, False)):
        p = np.where(np.arange(m) < k, 1 / (n + 1), 1.0)
        chosen = select(p, fdr=fdr)
        assert chosen.sum() == k * is_selected
        found = check_selection(chosen, fdr=fdr, n_calibrating=n)
        assert bool(found) == (k > 10 and not is_selected)


@pytest.mark.parametrize("fdr", [0, 1, "low"])
def test_a_share_that_is_none_is_refused(detector, fdr):
    with pytest.raises(UserError, match="fdr must be a number between 0 and 1"):
        detector.select(np.zeros((3, 2)), fdr=fdr)


def test_rows_in_groups_are_refused():
    X = np.random.default_rng(0).normal(size=(800, 2))
    grouped = cheap(bandwidth=1.0, false_alarm_rate=0.2, random_state=0)
    grouped.fit(X, groups=np.arange(800) // 10)
    with pytest.raises(UserError, match="where whole groups are held out"):
        grouped.select(X)


# --------------------------------------- anomalies that nobody has labelled among the rows


def quick(**parameters):
    return cheap(**{"bandwidth": 1.0, "n_landmarks": 60} | parameters)


def normal_rows(rng, n):
    return rng.standard_t(df=5, size=(n, 3))


def anomalies(rng, n):
    return np.array([0.0, 6.0, 0.0]) + rng.normal(size=(n, 3))


def table(rng, *, planted, n=1500, n_labelled=150):
    """Rows without a label, a share of them anomalies, then labelled anomalies."""
    n_planted = round(planted * n)
    rows = [normal_rows(rng, n - n_planted), anomalies(rng, n_planted), anomalies(rng, n_labelled)]
    return np.vstack(rows), np.repeat(np.array([None, "leak"], dtype=object), [n, n_labelled])


def plain(detector):
    """By all rows that calibrate."""
    return Calibration(detector.calibration_.scores)


@pytest.mark.parametrize(
    "planted",
    [
        0.0,
        pytest.param(0.01, marks=pytest.mark.extra),
        0.05,
        pytest.param(0.1, marks=pytest.mark.extra),
    ],
)
def test_the_promise_is_kept_and_more_is_caught(planted):
    alarms, caught = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        detector = quick(random_state=seed).fit(*table(rng, planted=planted))
        fresh = detector.score_samples(normal_rows(rng, 500))
        later = detector.score_samples(anomalies(rng, 200))
        ways = plain(detector), detector.calibration_
        thresholds = np.array([[way.threshold(rate) for rate in RATES] for way in ways])
        alarms.append((fresh[:, None] > thresholds[1]).mean(axis=0))
        caught.append((later[:, None, None] > thresholds).mean(axis=0))
    alarms, caught = np.array(alarms), np.mean(caught, axis=0)
    error = alarms.std(axis=0, ddof=1) / np.sqrt(len(alarms))
    assert (alarms.mean(axis=0) < RATES + 2 * error).all(), alarms.mean(axis=0)
    if planted >= 0.05:
        assert caught[1, 0] > caught[0, 0] + 0.03
    assert (caught[1] >= caught[0] - 0.01).all()


def test_the_estimate_is_a_lower_one_and_not_far_off():
    found = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.normal(0, 0.1, size=950), rng.normal(1, 0.2, size=50)])
        found.append(anomalies_among(rows, rng.normal(1, 0.2, size=60)))
    assert 20 < np.mean(found) < 50
    assert np.max(found) < 50


def test_normal_rows_that_are_like_a_seen_kind_are_not_taken_for_it():
    """One in twenty is as much like it as some of the anomalies are, and none is more."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 0.1, size=950), rng.uniform(0.25, 0.35, size=50)])
    assert anomalies_among(rows, rng.uniform(0, 1, size=100)) == 0


def test_rows_that_tie_with_the_anomalies_of_a_seen_kind_are_counted():
    rows = np.repeat([0.0, 1.0], [900, 100])  # of the last, 10 may be normal
    assert 60 < anomalies_among(rows, np.ones(60)) < 100


@pytest.mark.parametrize(("share", "some"), [(0.2, True), (0.6, False)])
def test_no_row_is_left_out_where_normal_ones_look_like_anomalies(share, some):
    """Which of them are anomalies nobody can tell, and the promise must hold if none is."""
    rng = np.random.default_rng(0)
    alike = int(share * 1000)
    rows = np.concatenate([rng.normal(0, 0.1, size=1000 - alike), rng.normal(1, 0.2, size=alike)])
    assert (anomalies_among(rows, rng.normal(1, 0.2, size=60)) > 100) == some


def test_one_normal_row_in_a_hundred_may_be_like_the_seen_kinds():
    """As much as any anomaly is: nothing tells it from one."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 0.1, size=990), rng.normal(1, 0.2, size=10)])
    assert anomalies_among(rows, rng.normal(1, 0.2, size=60)) == 0


def test_without_held_out_anomalies_all_rows_count():
    scores = np.random.default_rng(0).uniform(size=200)
    assert anomalies_among(scores, np.empty(0)) == 0
    assert rows_that_count(scores, np.empty(0), 0.0).all()
    assert Calibration(scores).n_left_out == 0


@given(
    scores=st.lists(st.floats(0, 2), min_size=1, max_size=150),
    anomaly_scores=st.lists(st.floats(0, 2), min_size=1, max_size=30),
    n_anomalies=st.floats(0, 60),
)
def test_a_threshold_has_as_many_normal_rows_above_it_as_it_may(
    scores, anomaly_scores, n_anomalies
):
    """The lowest score at which the rows, less the anomalies, are no more than that."""
    scores, anomaly_scores = np.array(scores), np.array(anomaly_scores)
    kept = np.sort(scores[rows_that_count(scores, anomaly_scores, n_anomalies)])[::-1]
    highest = np.sort(scores)[::-1]
    share = np.sum(anomaly_scores >= highest[:, None], axis=1) / (len(anomaly_scores) + 1)
    normal = np.arange(1, len(scores) + 1) - np.floor(n_anomalies * share)
    assert len(scores) - len(kept) <= n_anomalies
    for allowed, threshold in enumerate(kept, start=1):
        assert threshold == highest[np.flatnonzero(normal <= allowed).max()]


def test_of_anomalies_that_score_highest_the_number_is_left_out():
    scores = np.concatenate([np.linspace(0, 0.5, 180), np.linspace(0.8, 0.9, 20)])
    counts = rows_that_count(scores, np.linspace(0.7, 0.8, 99), 15.0)
    assert (~counts).sum() == 14  # 15 times 99 / 100
    assert counts[:180].all()


def test_some_labelled_anomalies_are_held_out_of_common_kinds():
    rng = np.random.default_rng(0)
    X, y = table(rng, planted=0.05)
    y[-5:] = "rare"
    detector = quick(random_state=0).fit(X, y)
    plan, held = detector.plan_, detector.model_.evidence.held_out.anomalies
    assert plan.holdout.anomaly_kinds == ("leak",)
    assert len(held) == n_held_out_anomalies(145, config=Config()) == 14
    assert_allclose(detector.model_.evidence.weight[1:], [145 - 14, 5])
    landmarks = {bytes(row) for row in plan.kernel.landmarks}
    assert not any(bytes(row) in landmarks for row in held)


@pytest.mark.parametrize("few", ["labels", "kind", "trusted", "no labels"])
def test_else_none_is(few):
    rng = np.random.default_rng(0)
    X, y = table(rng, planted=0.05)
    if few == "labels":
        X, y = X[:-101], y[:-101]
    elif few == "kind":
        y[-150:] = np.repeat([f"kind {i}" for i in range(10)], 15)
    elif few == "trusted":
        y[y == None] = "normal"  # noqa: E711
    else:
        y = None
    detector = quick(random_state=0).fit(X, y)
    assert not len(detector.model_.evidence.held_out.anomalies)
    assert detector.calibration_.n_left_out == 0
    assert len(detector.model_.evidence.held_out.normal) == 299


def assert_same(detector, other, X):
    assert_allclose(detector.score_samples(X), other.score_samples(X), rtol=1e-6, atol=1e-6)
    mine, theirs = (one.model_.evidence.held_out for one in (detector, other))
    assert_array_equal(mine.rows, theirs.rows)
    assert_array_equal(mine.kind, theirs.kind)
    assert detector.calibration_.n_anomalies == other.calibration_.n_anomalies > 0
    assert_allclose(detector.threshold_, other.threshold_, rtol=1e-6)


@pytest.fixture(scope="module")
def whole():
    X, y = table(np.random.default_rng(1), planted=0.06)
    order = np.random.default_rng(2).permutation(len(X))
    detector = quick(random_state=0).fit(X[order], y[order])
    return detector, X[order], y[order]


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")
@settings(max_examples=8, deadline=None)
@given(cut=st.integers(200, 1400), merged=st.booleans())
def test_pieces_and_merging_give_what_one_fit_gives(whole, cut, merged):
    detector, X, y = whole
    first, second = (Detector(plan=detector.plan_) for _ in range(2))
    first.fit(X[:cut], y[:cut])
    if merged:
        first.merge(second.fit(X[cut:], y[cut:]))
    else:
        first.partial_fit(X[cut:], y[cut:])
    assert_same(first, detector, X)


def test_forgetting_gives_what_never_learning_gives(whole):
    detector, X, y = whole
    left, never = (Detector(plan=detector.plan_) for _ in range(2))
    assert_same(left.fit(X, y).forget(X[:400], y[:400]), never.fit(X[400:], y[400:]), X)


@pytest.mark.parametrize("once", [False, True])
def test_batches_give_what_they_give_in_memory(once):
    X, y = table(np.random.default_rng(0), planted=0.05, n_labelled=300)
    order = np.random.default_rng(1).permutation(len(X))
    X, y = X[order], y[order]
    kinds = np.where(np.arange(len(y)) % 200 < 100, "leak", "crack")  # one in each batch
    y = np.where(np.equal(y, None), None, kinds)
    few = Config(n_trees=10, max_sample=600, max_held_out_anomalies=5)  # some are too many
    pairs = [(X[start : start + 100], y[start : start + 100]) for start in range(0, len(X), 100)]
    detector = quick(random_state=0, config=few).fit(iter(pairs) if once else pairs)
    held = len(detector.model_.evidence.held_out.anomalies)
    assert 0 < held <= (5 if once else 5 + 6 * 5**0.5)
    memory = Detector(plan=detector.plan_).fit(X, y)
    mine, theirs = detector.model_.evidence, memory.model_.evidence
    n = len(mine.held_out.anomalies)  # of rows that come once, the others are dropped
    assert n == len(theirs.held_out.anomalies) or once
    assert {*map(bytes, mine.held_out.anomalies)} <= {*map(bytes, theirs.held_out.anomalies)}
    assert_allclose(gram_of(mine), gram_of(theirs), rtol=1e-6, atol=1e-6)
    of_kind = dict(zip(detector.kinds_, moment_of(mine)[:, 1:].T, strict=True))
    for kind, moment in zip(memory.kinds_, moment_of(theirs)[:, 1:].T, strict=True):
        assert_allclose(of_kind[kind], moment, rtol=1e-6, atol=1e-6)


def test_partial_statistics_agree_on_the_kinds_of_held_out_anomalies():
    """As pieces from several machines do, none of which knows the kinds of the others."""
    X, y = table(np.random.default_rng(0), planted=0.05)
    y[-75:] = "crack"
    plan = quick(random_state=0).fit(X, y).plan_
    leaks, cracks = (
        gather(plan, plan.align(X[rows]), plan.labels.read(y[rows], n_rows=75))
        for rows in np.split(np.arange(1500, 1650), 2)
    )
    both = leaks + cracks
    assert both.labels.kinds == ("leak", "crack")
    n = len(leaks.held_out.kind), len(cracks.held_out.kind)
    assert min(n) > 0
    assert_array_equal(both.held_out.kind, np.repeat(["leak", "crack"], n))


def test_too_few_rows_are_left_for_a_promise():
    X, y = table(np.random.default_rng(0), planted=0.25, n=220, n_labelled=200)
    with pytest.warns(CalibrationWarning, match=r"there are \d+, not counting \d+ that look like"):
        quick(random_state=0).fit(X, y)


def test_small_cases_by_hand():
    rows = np.concatenate([np.linspace(0, 0.3, 900), np.linspace(0.5, 1, 100)])
    assert round(anomalies_among(rows, np.linspace(0.5, 1, 99))) == 68
    counts = rows_that_count(np.array([0.2, 0.9, 0.8, 0.1]), np.array([0.7, 0.85, 0.9]), 1.5)
    assert counts.tolist() == [True, True, False, True]
    survival = Calibration(np.array([0.1, 0.2, 0.4])).survival([0.0, 0.1, 0.3, 0.4, 0.8])
    assert survival.tolist() == [1.0, 0.75, 0.375, 0.25, 0.125]


def test_so_many_more_rows_as_the_warning_says_are_enough():
    for n, more in ((60, 138), (197, 1)):
        with pytest.warns(CalibrationWarning, match=f"Add at least {more} normal row"):
            cheap(random_state=0, bandwidth=1.0).fit(plane(n))
        cheap(random_state=0, bandwidth=1.0).fit(plane(n + more))  # warnings are errors here
    for n in (99, 199, 999, 9999):
        total = rows_to_hold_out(n, config=Config())
        assert n_held_out(total, config=Config()) == n
        assert n_held_out(total - 1, config=Config()) < n
    assert rows_to_hold_out(99_999, config=Config()) == 0  # never so many
