"""Plans: how labels are read, which rows are trusted or doubted, packed distances, equal plans."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score
from summed import gram_of

from eqsep import Detector
from eqsep.detector import Config, suspects
from eqsep.detector.isolation import KEPT, LEFT_OUT, WEIGHED
from eqsep.detector.plan import LabelScheme, Plan
from eqsep.engine.kernels import SparseManhattan
from eqsep.errors import UserError
from eqsep.labels import UNLABELLED, read_row_labels
from eqsep.tables import TableEncoder
from eqsep.tables.reading import read_table

N_NORMAL, N_UNLABELLED, N_LEAKS = 400, 300, 120


def cheap(**parameters):
    quick = {"bandwidth": 0.5, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
    return Detector(**quick | parameters)


# ------------------------------------------------------------------------ how labels are read


SHARES = Config(isolated_share=0.1, doubted_isolated_share=0.3)


def reading(is_normal, *, doubted=False, weight=0.01, isolation=KEPT, share=0.0, labelled=False):
    return LabelScheme(
        normal=None,
        unlabelled_is_normal=is_normal,
        doubted=doubted,
        unlabelled_weight=weight,
        isolation=isolation,
        isolated_share=share,
        isolates_labelled=labelled,
    )


ALL_NORMAL, LITTLE = reading(True), reading(False)
NOBODY_LOOKED = reading(True, isolation=WEIGHED, share=0.1)
DOUBTED = reading(True, doubted=True, isolation=LEFT_OUT, share=0.1, labelled=True)
IN_FULL = reading(False, doubted=True, weight=1.0, isolation=LEFT_OUT, share=0.1)
NO_KIND = reading(True, isolation=LEFT_OUT, share=0.3, labelled=True)
UNLABELLED_LEFT_OUT = reading(False, isolation=LEFT_OUT, share=0.3)
READINGS = [  # rows labelled normal, without a label, labelled anomalies; auto, trusted, doubted
    ((0, 500, 0), NOBODY_LOOKED, ALL_NORMAL, NO_KIND),
    ((500, 0, 0), LITTLE, ALL_NORMAL, NO_KIND),
    ((0, 500, 20), DOUBTED, ALL_NORMAL, DOUBTED),
    ((500, 0, 20), LITTLE, ALL_NORMAL, DOUBTED),
    ((500, 500, 20), LITTLE, ALL_NORMAL, IN_FULL),
    ((90, 500, 20), LITTLE, ALL_NORMAL, DOUBTED),  # too few labelled normal to set the threshold
    ((500, 500, 0), LITTLE, ALL_NORMAL, UNLABELLED_LEFT_OUT),
]


def choose(n, unlabelled, *, given=True, rate=0.01, normal=None):
    y = np.repeat(np.array(["normal", None, "leak"], dtype=object), n)
    labels = read_row_labels(y, n_rows=len(y), normal=normal)
    more = {"given": given, "normal": normal, "unlabelled": unlabelled, "rate": rate}
    return LabelScheme.choose(labels, np.ones(len(y)), **more, config=SHARES)


@pytest.mark.parametrize("way", range(3), ids=["auto", "trusted", "doubted"])
@pytest.mark.parametrize("case", READINGS, ids=lambda case: str(case[0]))
def test_labels_decide_how_rows_without_one_are_read(case, way):
    n, *expected = case
    reading = choose(n, ("auto", "trusted", "doubted")[way], given=n[0] + n[2] > 0)
    assert reading == expected[way]
    doubting = [NOBODY_LOOKED, DOUBTED, NO_KIND]
    assert reading.doubts_calibration == (expected[way] in doubting)


def test_rows_without_a_label_may_be_isolated_and_labelled_ones_where_they_are_doubted_too():
    y = ["normal", None, "leak"]

    def isolated(reading):
        return reading.may_be_isolated(reading.read(y, n_rows=3)).tolist()

    for reading in (ALL_NORMAL, LITTLE):
        assert isolated(reading) == [False, False, False]
    for reading in (NOBODY_LOOKED, IN_FULL, UNLABELLED_LEFT_OUT):
        assert isolated(reading) == [False, True, False]
    for reading in (DOUBTED, NO_KIND):
        assert isolated(reading) == [True, True, False]


def test_a_share_of_zero_isolates_no_row_and_still_doubts():
    assert replace(DOUBTED, isolation=KEPT).doubts_calibration


def test_whether_labelled_normal_rows_are_enough_depends_on_the_rate():
    assert choose((500, 500, 20), "doubted", rate=0.001).doubts_calibration
    assert not choose((500, 500, 20), "doubted", rate=0.01).doubts_calibration


def test_labels_of_which_none_is_normal_are_refused_with_what_to_do():
    for n, message in [
        ((0, 500, 0), "All labels are missing"),
        ((0, 0, 20), "Normal rows are needed, got only one class"),
        ((0, 10, 20), "20 rows.*, and 10 rows without a label. Pass the normal label"),
    ]:
        with pytest.raises(UserError, match=message):
            choose(n, "auto")


def test_a_reading_gives_codes_and_weights():
    little, full = LITTLE, ALL_NORMAL
    y = ["normal", None, "leak"]
    labels = little.read(y, n_rows=3)
    assert labels.code.tolist() == [0, UNLABELLED, 1]
    assert little.weights(labels).tolist() == [1, 0.01, 1]
    assert full.read(y, n_rows=3).code.tolist() == [0, 0, 1]
    assert full.weights(full.read(y, n_rows=3)).tolist() == [1, 1, 1]
    later = little.read(["leak", "crack"], n_rows=2, known=labels.of_no_row())
    assert (later.code.tolist(), later.kinds) == ([1, 2], ("leak", "crack"))


# ---------------------------------------------------------------------------- equal plans


def plan_of(X, seed=0, **more):
    labels = read_row_labels(None, n_rows=len(X), normal=None).trusting_unlabelled()
    table, rng = read_table(X, name="me"), np.random.RandomState(seed)
    scheme = {"scheme": ALL_NORMAL, "rate": 0.1}
    return Plan.choose(table, labels, Config.fast(), rng, **scheme | more)


def test_plans_are_the_same_where_every_row_is_taken_alike():
    X = np.random.default_rng(0).normal(size=(300, 2))
    plan = plan_of(X)
    assert plan.is_same(plan)
    assert plan.is_same(plan_of(X))
    assert plan.is_same(pickle.loads(pickle.dumps(plan)))
    assert plan.is_same(replace(plan, labels=replace(plan.labels, unlabelled_is_normal=False)))
    (kernel, *others), rule = plan.terms, plan.holdout
    moved = replace(kernel, landmarks=kernel.landmarks + 1)
    assert others  # the ellipsoid
    for other in [
        plan_of(X, seed=1),
        plan_of(X + 1e-6),
        plan_of(X, window=3),
        replace(plan, holdout=replace(rule, bound=rule.bound + 1)),
        replace(plan, holdout=replace(rule, kind_bounds={"leak": 7})),
        replace(plan, terms=(moved, *others)),
        replace(plan, terms=(kernel,)),
    ]:
        assert not plan.is_same(other)
        assert not other.is_same(plan)


def test_a_plan_aligns_and_encodes_what_it_has_learnt():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    plan = plan_of(X)
    assert list(plan.table_columns) == ["a", "b"]
    assert plan.is_named
    assert_array_equal(plan.encode(X[["b", "a"]]), plan.encode(X))
    assert_array_equal(plan.encode(plan.align(X)), plan.encode(X))
    assert_array_equal(np.concatenate(list(plan.encode_in_parts(X))), plan.encode(X))


# ------------------------------------------------------- trusted and doubted, in a detector


@pytest.fixture(scope="module")
def mixed():
    """Rows labelled normal, rows without a label with leaks among them, and labelled leaks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_NORMAL + N_UNLABELLED + N_LEAKS, 2))
    X[-N_LEAKS - 30 :] += 5
    y = np.repeat(["normal", None, "leak"], [N_NORMAL, N_UNLABELLED, N_LEAKS])
    order = rng.permutation(len(X))
    return X[order], y[order]


def test_trusted_rows_without_a_label_are_as_labelled_normal(mixed):
    X, y = mixed
    detector = cheap(unlabelled="trusted").fit(X, y)
    labelled = cheap().fit(X, np.where(np.equal(y, None), "normal", y))
    assert_array_equal(detector.score_samples(X), labelled.score_samples(X))
    assert_array_equal(detector.calibration_.scores, labelled.calibration_.scores)


def test_doubted_rows_without_a_label_count_in_full_and_rows_labelled_normal_calibrate(mixed):
    X, y = mixed
    detector = cheap(unlabelled="doubted").fit(X, y)
    plan, held = detector.plan_, len(detector.model_.evidence.held_out.normal)
    assert plan.labels.doubted
    calibrates = plan.holdout.hashes(plan.align(X), encoder=plan.encoder) < plan.holdout.bound
    assert held == (calibrates & (y == "normal")).sum() >= 99
    assert_allclose(detector.model_.evidence.weight, [N_NORMAL + N_UNLABELLED - held, N_LEAKS])
    assert detector.calibration_.n_left_out == 0
    assert not len(suspects(detector, X, y))


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")
@pytest.mark.parametrize(("n_normal", "rate"), [(190, 0.01), (N_NORMAL, 0.005)])
def test_where_rows_labelled_normal_are_too_few_doubted_ones_calibrate_too(mixed, n_normal, rate):
    X, y = mixed
    y = y.copy()
    y[np.flatnonzero(y == "normal")[n_normal:]] = None
    detector = cheap(unlabelled="doubted", false_alarm_rate=rate).fit(X, y)
    nobody = cheap(false_alarm_rate=rate).fit(X, np.where(y == "normal", None, y))
    assert_array_equal(detector.score_samples(X), nobody.score_samples(X))
    assert detector.threshold_ == nobody.threshold_
    places = suspects(detector, X, y, n=1000)
    assert len(places) > 0
    assert np.equal(y[places], None).all()


def test_by_default_rows_without_a_label_count_little(mixed):
    X, y = mixed
    detector = cheap().fit(X, y)
    held = len(detector.model_.evidence.held_out.normal)
    assert not detector.plan_.labels.doubted
    assert_allclose(detector.model_.evidence.weight[0], N_NORMAL - held + 0.01 * N_UNLABELLED)


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")
@pytest.mark.parametrize("unlabelled", ["trusted", "doubted"])
def test_pieces_give_what_one_fit_gives(mixed, unlabelled):
    X, y = mixed
    whole = cheap(unlabelled=unlabelled).fit(X, y)
    pieces = Detector(plan=whole.plan_, unlabelled=unlabelled)
    pieces.fit(X[:600], y[:600]).partial_fit(X[600:], y[600:])
    assert_allclose(
        gram_of(pieces.model_.evidence), gram_of(whole.model_.evidence), rtol=1e-6, atol=1e-6
    )
    assert_allclose(pieces.threshold_, whole.threshold_, rtol=1e-6)
    again = pieces.forget(X[600:], y[600:])
    never = Detector(plan=whole.plan_, unlabelled=unlabelled).fit(X[:600], y[:600])
    assert_allclose(
        gram_of(again.model_.evidence), gram_of(never.model_.evidence), rtol=1e-6, atol=1e-6
    )
    assert_array_equal(again.model_.evidence.held_out.normal, never.model_.evidence.held_out.normal)


@pytest.mark.parametrize("unlabelled", ["auto", "trusted", "doubted"])
def test_batches_are_taken_as_rows_in_memory(mixed, unlabelled):
    X, y = mixed
    few = replace(Config.fast(), max_sample=400)
    batches = [(X[start : start + 100], y[start : start + 100]) for start in range(0, len(X), 100)]
    detector = cheap(unlabelled=unlabelled, config=few).fit(batches)
    plan = detector.plan_
    memory = Detector(plan=plan, unlabelled=unlabelled).fit(X, y)
    assert (
        detector.model_.plan.labels.unlabelled_is_normal
        == memory.model_.plan.labels.unlabelled_is_normal
        == (unlabelled == "trusted")
    )
    assert plan.labels.doubted == (unlabelled == "doubted")
    assert_allclose(
        gram_of(detector.model_.evidence), gram_of(memory.model_.evidence), rtol=1e-6, atol=1e-6
    )
    assert_array_equal(
        detector.model_.evidence.held_out.normal, memory.model_.evidence.held_out.normal
    )


@pytest.mark.parametrize(("first", "asked"), [("trusted", "doubted"), ("doubted", "trusted")])
def test_a_plan_that_contradicts_what_is_asked_is_refused(mixed, first, asked):
    X, y = mixed
    plan = cheap(unlabelled=first).fit(X, y).plan_
    message = f"Rows are to be {asked}, and they are {first} in the plan: .* Leave out"
    with pytest.raises(UserError, match=message):
        Detector(plan=plan, unlabelled=asked).fit(X, y)
    with pytest.raises(UserError, match=message):
        Detector(plan=plan, unlabelled=asked).partial_fit(X, y)
    with pytest.raises(UserError, match=r"unlabelled must be one of .* got 'ignored'"):
        Detector(plan=plan, unlabelled="ignored").fit(X, y)


@pytest.mark.parametrize("y", [None, np.zeros(N_NORMAL)], ids=["no labels", "no anomaly"])
def test_doubt_without_a_labelled_anomaly_leaves_isolated_rows_out(y):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_NORMAL, 2))
    X[:10] = rng.normal(6, 0.2, size=(10, 2))  # anomalies that nobody has labelled
    trusting, doubting = (cheap(unlabelled=u).fit(X, y) for u in ("trusted", "doubted"))
    hidden = np.arange(N_NORMAL) < 10
    areas = [roc_auc_score(hidden, d.score_samples(X)) for d in (trusting, doubting)]
    assert areas[1] > 0.99 > 0.95 > areas[0]
    parts = [(X[:150], None), (X[150:], None)]
    batches = Detector(unlabelled="doubted", plan=doubting.plan_).fit(parts)
    assert_allclose(batches.score_samples(X), doubting.score_samples(X), atol=1e-6)
    with pytest.raises(UserError, match="Rows are to be trusted, and they are doubted in the plan"):
        Detector(plan=doubting.plan_, unlabelled="trusted").fit(X, y)


def test_a_plan_of_rows_nobody_has_looked_at_says_so_where_others_are_asked():
    X = np.random.default_rng(0).normal(size=(N_NORMAL, 2))
    plan = cheap().fit(X).plan_
    for asked in ("trusted", "doubted"):
        with pytest.raises(UserError, match=f"to be {asked}, and nobody has looked at them in the"):
            Detector(plan=plan, unlabelled=asked).fit(X)


# ------------------------------- packed distances: what encoded columns say, with fewer of them


def frame(rng, n, *, missing):
    """Every kind of column, with and without missing values."""
    start = np.datetime64("2025-01-01T00:00:00", "s")
    table = pd.DataFrame(
        {
            "size": rng.lognormal(sigma=3, size=n),
            "whole": rng.integers(0, 5, size=n).astype(float),
            "mostly_zero": np.where(rng.random(n) < 0.8, 0.0, rng.normal(size=n)),
            "two": rng.choice([1.5, 4.0], size=n),
            "constant": 3.0,
            "shape": rng.choice(["round", "flat", "thin"], size=n),
            "truth": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "time": start + rng.integers(0, 3 * 10**6, size=n) * np.timedelta64(1, "s"),
        }
    )
    for name in table.columns:
        table.loc[rng.random(n) < missing, name] = None
    return table


@settings(max_examples=25, deadline=None)
@given(
    missing=st.sampled_from([0.0, 0.2]),
    later=st.sampled_from([0.0, 0.3]),
    scale=st.sampled_from([1.0, 1e9, 1e-9]),
    seed=st.integers(0, 2**31),
)
def test_distances_are_those_of_all_encoded_columns(missing, later, scale, seed):
    """Also for values beyond those of training, and missing where none was."""
    rng = np.random.default_rng(seed)
    encoder = TableEncoder(numeric_encoding="both").fit(frame(rng, 60, missing=missing)).encoder_
    strange = frame(rng, 40, missing=later)
    strange["size"] = (strange["size"] - 1) * scale
    strange["constant"] = rng.choice([3.0, 4.0], size=40)
    strange["shape"] = rng.choice(["round", "new"], size=40)
    Z, C = encoder.encode(strange), encoder.encode(frame(rng, 30, missing=missing))
    expected = np.abs(Z[:, None].astype(float) - C).sum(axis=2)
    pack = encoder.pack
    assert_allclose(SparseManhattan(pack(C))(pack(Z)), expected, rtol=2e-6, atol=2e-4)


def test_ranks_and_deviations_become_one_column():
    encoder = (
        TableEncoder(numeric_encoding="both").fit([[1.0, "a"], [2.0, "b"], [4.0, "b"]]).encoder_
    )
    packing = encoder.pack
    assert_array_equal(packing.first, [0, 2, 3, 4])
    assert_array_equal(packing(np.arange(5.0)[None]), [[1, 2, 3, 4]])


@pytest.mark.parametrize("columns", ["quantile", "standard"])
def test_single_columns_stay_as_they_are(columns):
    encoder = (
        TableEncoder(numeric_encoding=columns).fit([[1.0, 7.0], [2.0, 8.0], [4.0, 5.0]]).encoder_
    )
    rows = np.arange(4.0).reshape(2, 2)
    assert_array_equal(encoder.pack(rows), rows)


def test_a_detector_that_has_scored_can_still_be_sent():
    X = np.random.default_rng(0).normal(size=(300, 3))
    detector = cheap(n_landmarks=40, bandwidth=1.0, false_alarm_rate=0.05).fit(X)
    score = detector.score_samples(X)
    assert_array_equal(pickle.loads(pickle.dumps(detector)).score_samples(X), score)


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")  # of one row
@pytest.mark.parametrize("n_normal", [1, 2, 12])
def test_of_one_normal_row_none_is_held_out_and_of_more_some_are(n_normal):
    X = np.random.default_rng(0).normal(size=(n_normal + 3, 2))
    y = np.repeat([0, 1], [n_normal, 3])
    made = cheap().fit(X, y).plan_
    assert (made.holdout.bound > 0) == (n_normal > 1)
    later = np.random.default_rng(1).normal(size=(1000, 2))
    hashes = made.holdout.hashes(made.align(later), encoder=made.encoder)
    share = (hashes < made.holdout.bound).mean()
    assert (share > 0) == (n_normal > 1)


def test_times_of_so_few_values_that_no_row_is_left_to_learn_are_refused():
    X = pd.DataFrame({"year": np.repeat([1, 2, 3], 100), "heat": np.arange(300) % 7})
    with pytest.raises(
        UserError, match=r"No row is left to learn: the times have only 3 .* values"
    ):
        cheap().fit(X, time="year")
