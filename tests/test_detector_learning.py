"""Learning on: pieces, merging and forgetting give what one fit gives."""

import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from eqsep import Detector, load_model
from eqsep.checks import HighThresholdWarning
from eqsep.datasets import make_mixed_demo
from eqsep.detector import CalibrationWarning, Config, NewKindWarning, RepeatedRowsWarning
from eqsep.errors import UserError
from eqsep.persistence.files import state_hash

# A few rows are no ground for a promise, nor for a name; here scores are compared.
pytestmark = [
    pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning"),
    pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning"),
]


def quick(**parameters):
    settings = {"bandwidth": 0.5, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
    return Detector(**settings | parameters)


def like(plan, **parameters):
    """What can be merged with a detector that has this plan."""
    return Detector(plan=plan, config=Config.fast(), **parameters)


@pytest.fixture(scope="module")
def demo():
    """Payments with the kind of each; the labels of every seventh are lost."""
    table = make_mixed_demo(n_samples=900, as_frame=True, random_state=0)
    lost = np.arange(len(table.kind)) % 7 == 0
    return table.X, np.where(lost, None, table.kind)


@pytest.fixture(scope="module")
def plan(demo):
    X, y = demo
    return quick().fit(X[:400], y[:400]).plan_


@pytest.fixture(scope="module")
def whole(demo, plan):
    return like(plan).fit(*demo)


def assert_same(detector, other, X):
    """The same scores, threshold, sums and kinds, whatever order the kinds were seen in."""
    assert_allclose(detector.score_samples(X), other.score_samples(X), rtol=1e-6, atol=1e-6)
    assert_allclose(detector.threshold_, other.threshold_, rtol=1e-6, atol=1e-6)
    assert_array_equal(
        detector.model_.evidence.held_out.normal, other.model_.evidence.held_out.normal
    )
    assert set(detector.kinds_) == set(other.kinds_)
    weight, expected = (
        dict(zip(("", *d.kinds_), d.model_.evidence.weight, strict=True)) for d in (detector, other)
    )
    assert_allclose([weight[kind] for kind in expected], list(expected.values()))
    assert_array_equal(detector.predict_kind(X), other.predict_kind(X))


def state(detector):
    return (
        detector.coef_.tobytes(),
        detector.threshold_,
        detector.kinds_,
        detector.classes_.tolist(),
    )


def take(demo, rows):
    X, y = demo
    return X.iloc[rows], y[rows]


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_pieces_in_any_order_give_what_one_fit_gives(data, demo, plan, whole):
    n = len(demo[1])
    order = np.random.default_rng(data.draw(st.integers(0, 2**31))).permutation(n)
    order = np.append(np.flatnonzero(demo[1] == "normal")[0], order)  # a first row that is normal
    order = order[np.sort(np.unique(order, return_index=True)[1])]
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=5)))
    detector = like(plan)
    for rows in np.split(order, cuts):
        detector.partial_fit(*take(demo, rows))
    assert_same(detector, whole, demo[0])


@settings(max_examples=5, deadline=None)
@given(cut=st.integers(50, 850), reverse=st.booleans())
def test_merging_gives_what_one_fit_gives(cut, reverse, demo, plan, whole):
    first = like(plan).fit(*take(demo, np.arange(cut)))
    second = like(plan).fit(*take(demo, np.arange(cut, len(demo[1]))))
    a, b = (second, first) if reverse else (first, second)
    before = state(b)
    assert_same(a.merge(b), whole, demo[0])
    assert state(b) == before


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 600))
def test_forgetting_gives_what_never_learning_gives(seed, n, demo, plan):
    rows = np.random.default_rng(seed).permutation(len(demo[1]))
    gone, kept = rows[:n], rows[n:]
    detector = like(plan).fit(*demo).forget(*take(demo, gone))
    expected = like(plan).fit(*take(demo, kept))
    assert_allclose(
        detector.score_samples(demo[0]), expected.score_samples(demo[0]), rtol=1e-6, atol=1e-6
    )
    assert_allclose(detector.threshold_, expected.threshold_, rtol=1e-6, atol=1e-6)


def repeated(rng, n):
    X = rng.integers(0, 3, size=(n, 2))
    return X.astype(float), np.where(X.sum(axis=1) == 4, "corner", "normal")


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 80))
def test_learning_and_forgetting_leaves_nothing_even_of_repeated_rows(seed, n):
    rng = np.random.default_rng(seed)
    detector = quick(n_landmarks=20).fit(*repeated(rng, 300))
    X, y = repeated(rng, n)
    before, rows = detector.score_samples(X), detector.model_.evidence.held_out.normal
    threshold = detector.threshold_
    detector.partial_fit(X, y).forget(X, y)
    assert_allclose(detector.score_samples(X), before, rtol=1e-6, atol=1e-9)
    assert_array_equal(detector.model_.evidence.held_out.normal, rows)
    assert_allclose(detector.threshold_, threshold, rtol=1e-6)


def test_a_table_may_come_from_another_library_or_as_text(demo, plan):
    """Which rows calibrate goes by what a column says, not by its type."""
    X, y = take(demo, np.arange(400))
    detector = like(plan).fit(X, y)
    rows = detector.model_.evidence.held_out.normal
    as_text = X.assign(
        amount=[None if v != v else repr(v) for v in X["amount"]],
        card_present=X["card_present"].astype(str).str.upper(),
        purpose=pd.Categorical(X["purpose"]),
        time=[str(moment) for moment in X["time"]],
    )
    assert_array_equal(calibrating(plan, as_text), calibrating(plan, X))
    with pytest.warns(RepeatedRowsWarning, match="were learnt before"):
        detector.partial_fit(as_text, y)
    emptied = detector.forget(X, y)
    assert_array_equal(emptied.model_.evidence.held_out.normal, rows)


def calibrating(plan, X):
    return plan.holdout.hashes(plan.align(X), encoder=plan.encoder) < plan.holdout.bound


def test_a_new_kind_becomes_a_seen_one():
    rng = np.random.default_rng(0)
    normal, pump, leak = (
        rng.normal(place, size=(n, 2)) for place, n in (((0, 0), 600), ((9, 0), 30), ((0, -9), 30))
    )
    X, y = np.vstack([normal, pump]), np.repeat(["normal", "pump"], [600, 30])
    # Landmarks near what is new: without any, nothing could tell it from other new things.
    more = np.vstack([X, leak[:15]]), np.append(y, ["leak"] * 15)
    landmarks = quick(n_landmarks=1000, config=Config()).fit(*more)
    detector = like(landmarks.plan_, false_alarm_rate=0.02).fit(X, y)
    fresh = rng.normal((0, -9), size=(50, 2))
    assert set(detector.predict_kind(fresh)) == {"unseen"}
    detector.partial_fit(leak, ["leak"] * 30)
    assert detector.kinds_ == ("pump", "leak")
    assert (detector.predict_kind(fresh) == "leak").mean() > 0.8
    assert detector.predict(fresh).all()
    assert (detector.predict_kind(rng.normal((9, 0), size=(50, 2))) == "pump").mean() > 0.8
    assert detector.predict(rng.normal(size=(500, 2))).mean() < 0.03


def test_kinds_of_both_are_merged(demo, plan):
    X, y = demo
    labelled = np.array([label is not None for label in y])
    takeover, skimming = (
        like(plan).fit(X[rows], y[rows])
        for rows in (
            labelled & np.isin(y.astype(str), ["normal", "takeover"]) & (np.arange(len(y)) < 600),
            labelled & np.isin(y.astype(str), ["normal", "skimming"]) & (np.arange(len(y)) >= 600),
        )
    )
    merged = takeover.merge(skimming)
    assert merged.kinds_ == ("takeover", "skimming")
    rows = y == "skimming"
    named = merged.predict_kind(X[rows])
    assert "takeover" not in named
    assert merged.coef_.shape[1] == 3


def test_numbers_and_no_labels_are_merged_too(plan, demo):
    X, y = demo
    unlabelled = like(plan).fit(X[:300])
    numbers = like(plan).fit(X[300:], (y[300:] == "takeover").astype(int))
    assert unlabelled.plan_.labels != numbers.plan_.labels
    merged = unlabelled.merge(numbers)
    assert merged.kinds_ == ("anomaly",)
    assert_array_equal(merged.classes_, [0, 1])


def test_unlabelled_rows_count_the_same_in_every_piece(demo, plan):
    """Where the first fit had no normal label, rows without one are normal ones from then on."""
    X, y = demo
    kinds = np.where(y == "normal", None, y)
    whole = like(plan).fit(X, kinds)
    pieces = like(plan).fit(X[:300], kinds[:300])
    pieces.partial_fit(X[300:500], kinds[300:500]).partial_fit(X[500:], kinds[500:])
    assert_same(pieces, whole, X)


def test_the_first_piece_is_a_fit(demo):
    X, y = demo
    first, second = (quick() for _ in range(2))
    assert_array_equal(first.partial_fit(X, y).coef_, second.fit(X, y).coef_)


REFUSED = {
    "merging another map": (
        lambda d, X, y: d.merge(quick(n_landmarks=30, random_state=1).fit(X, y)),
        r"Detector\(plan=one.plan_\)",
    ),
    "merging another penalty": (
        lambda d, X, y: d.merge(Detector(plan=d.plan_, alpha=3.0).fit(X, y)),
        "same alpha can be merged: this has 0.1, the other 3.0",
    ),
    "forgetting a kind that was not learnt": (
        lambda d, X, y: d.forget(X, ["burglary"] * len(y)),
        "Cannot forget more than was learnt",
    ),
    "forgetting more than was learnt": (
        lambda d, X, y: d.forget(
            pd.concat([X[y == "takeover"]] * 9), ["takeover"] * 9 * sum(y == "takeover")
        ),
        "Cannot forget more than was learnt",
    ),
    "forgetting normal rows that were not learnt": (
        lambda d, X, y: d.forget(X[y == "normal"][:300].assign(amount=0.5), ["normal"] * 300),
        "Cannot forget a row that was not learnt",
    ),
    "learning numbers in text after names": (
        lambda d, X, y: d.partial_fit(X, (y == "normal").astype(int).astype(str)),
        "now '0', '1', which would be new .* Where 0 means normal, pass 'normal', and for 1 the",
    ),
    "learning numbers after names": (
        lambda d, X, y: d.partial_fit(X, np.zeros(len(y))),
        "Pass names again",
    ),
    "learning another table": (
        lambda d, X, y: d.partial_fit(X.drop(columns="amount"), y),
        r"Columns \['amount'\] are missing",
    ),
    "labels of another length": (lambda d, X, y: d.partial_fit(X, y[:-1]), "X has 900 rows"),
}


@pytest.mark.parametrize(("change", "told"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_and_changes_nothing(change, told, demo, plan):
    X, y = demo
    detector = like(plan).fit(X, y)
    before = state(detector)
    with pytest.raises(ValueError, match=told):
        change(detector, X, y)
    assert state(detector) == before


def test_a_piece_that_is_too_small_for_the_promise_is_told_only_by_fit(demo, plan):
    X, y = take(demo, np.arange(60))
    with pytest.warns(CalibrationWarning):
        like(plan).fit(X, y)


def far_from_landmarks():
    """A detector of one cluster, and a kind in the midst of its normal rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    return quick(n_landmarks=30).fit(X), rng.normal(size=(40, 3))


@pytest.mark.parametrize("n_far", [10, 200])
def test_normal_rows_far_from_all_landmarks_are_told(n_far):
    """Few of them raise alarms for ever; many raise the threshold above all scores."""
    rng = np.random.default_rng(0)
    detector = quick(n_landmarks=30).fit(rng.normal(size=(3000, 3)))
    with pytest.warns(
        NewKindWarning, match=rf"100% of {n_far} normal rows still have \|1 - f\| above 0\.\d+ "
    ):
        detector.partial_fit(rng.normal(40, 0.1, size=(n_far, 3)), np.zeros(n_far, dtype=int))


def test_a_new_kind_that_passes_as_normal_is_told():
    detector, rows = far_from_landmarks()
    with pytest.warns(
        NewKindWarning,
        match=r"'faint' is new\. After learning its rows \(40\), \d+% raise an alarm and \d+% are "
        r"recognised as 'faint'",
    ):
        detector.partial_fit(rows, np.full(40, "faint"))
    assert detector.kinds_ == ("faint",)


def test_a_kind_that_is_forgotten_is_not_a_seen_one():
    detector, rows = far_from_landmarks()
    before = detector.score_samples(rows)
    with pytest.warns(NewKindWarning):
        detector.partial_fit(rows, np.full(40, "faint"))
    detector.forget(rows, np.full(40, "faint"))
    assert detector.kinds_ == ()
    assert_allclose(detector.score_samples(rows), before, atol=1e-9)


def test_no_detector_is_merged_with_itself():
    detector, _ = far_from_landmarks()
    with pytest.raises(ValueError, match="cannot be merged with itself"):
        detector.merge(detector)


def test_a_rate_set_after_the_fit_that_cannot_be_promised_is_told():
    detector, rows = far_from_landmarks()
    detector.predict(rows)
    detector.false_alarm_rate = 0.0001
    with pytest.warns(CalibrationWarning, match=r"rate of 0\.0001 cannot be promised"):
        detector.predict(rows)


def test_missing_labels_do_not_make_floats_of_the_answers():
    X = np.random.default_rng(0).normal(size=(800, 2))
    y = np.repeat([0.0, 1.0, np.nan], [700, 50, 50])
    detector = quick(n_landmarks=30).fit(X, y)
    assert detector.predict(X[:3]).dtype.kind == "i"


def test_a_kind_that_is_renamed_or_merged_is_as_if_learnt_so():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(600, 2)), rng.normal((7, 0), 0.3, size=(40, 2))])
    y = ["normal"] * 600 + ["leak"] * 40
    more = rng.normal((7, 0.5), 0.3, size=(30, 2))
    probe = np.vstack([rng.normal(size=(50, 2)), rng.normal((7, 0), 0.4, size=(50, 2))])

    def learnt(kind):
        detector = Detector(n_landmarks=60, bandwidth=1.0, random_state=0, config=Config.fast())
        return detector.fit(X, y).partial_fit(more, [kind] * 30)

    detector, expected = learnt("spill"), learnt("leak")
    assert detector.kinds_ == ("leak", "spill")
    detector.rename_kind("spill", "leak")
    assert detector.kinds_ == expected.kinds_ == ("leak",)
    assert_allclose(detector.decision_function(probe), expected.decision_function(probe), atol=1e-9)
    assert_array_equal(detector.predict_kind(probe), expected.predict_kind(probe))
    detector.forget(more, ["leak"] * 30)  # under its new name
    assert_allclose(detector.model_.n_learnt, expected.model_.n_learnt - [0, 30])
    other, expected = (
        learnt("spill").rename_kind("spill", "spill of a longer name"),
        learnt("spill"),
    )
    found = expected.predict_kind(probe)
    renamed = [name.replace("spill", "spill of a longer name") for name in found.tolist()]
    assert other.predict_kind(probe).tolist() == renamed
    for old, new in (("flood", "x"), ("leak", "normal"), ("leak", ""), ("leak", "leak")):
        with pytest.raises(UserError):
            other.rename_kind(old, new)


def warned_of_threshold(call, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    return [w for w in caught if issubclass(w.category, HighThresholdWarning)]


def with_anomalies(*, seed, wrong):
    """Normal rows and a kind far from them; so many of its rows are labelled normal."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(400, 2)), rng.normal((6, 0), 0.5, size=(40 + wrong, 2))])
    return X, np.repeat(["normal", "pump", "normal"], [400, 40, wrong])


def test_rows_that_make_the_threshold_too_high_are_warned_of_once():
    """By the first piece, as by a fit; the next ones do not make it so."""
    first, wrong = with_anomalies(seed=0, wrong=0), with_anomalies(seed=1, wrong=80)
    detector = quick()
    assert not warned_of_threshold(detector.fit, *first)
    assert not warned_of_threshold(detector.partial_fit, *with_anomalies(seed=2, wrong=0))
    (found,) = warned_of_threshold(detector.partial_fit, *wrong)
    assert "Correct wrong labels" in str(found.message).replace("correct", "Correct")
    assert not warned_of_threshold(detector.partial_fit, *with_anomalies(seed=3, wrong=80))
    other = like(detector.plan_).fit(*with_anomalies(seed=4, wrong=0))
    assert len(warned_of_threshold(other.merge, detector)) == 1


def test_a_quiet_fit_returns_what_a_fit_warns_of(demo):
    X, y = demo
    quiet = quick(false_alarm_rate=0.001)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned = quiet.fit_quietly(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = quick(false_alarm_rate=0.001).fit(X, y)
    messages = [str(finding.warning()) for finding in learned.findings]
    assert messages == [str(one.message) for one in caught]
    assert CalibrationWarning in [finding.category for finding in learned.findings]
    assert quiet.model_ is learned.model
    assert_same(quiet, fitted, X)


def test_a_detector_of_a_model_is_kept_with_its_promise(whole, tmp_path):
    model = copy(whole).set_params(false_alarm_rate=0.05).model_
    Detector.of(model).save(tmp_path / "model.eqsep")
    read = load_model(tmp_path / "model.eqsep")
    assert (read.false_alarm_rate, read.config) == (0.05, model.config)
    assert state_hash(read.model_.state()) == state_hash(model.state())
    assert read.threshold_ == model.threshold
