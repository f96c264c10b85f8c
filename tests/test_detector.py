"""The detector: what labels mean, what is refused, what it answers, and closed regions."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import average_precision_score, roc_auc_score
from summed import term_of

from eqsep import Detector, load_model
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config
from eqsep.detector.terms import (
    EllipsoidTerm,
    LikenessTerm,
    NearestTerm,
    NormalityTerm,
    SurpriseTerm,
    VotesTerm,
)
from eqsep.detector.terms.term import EncodedRows
from eqsep.engine.backends import NUMPY
from eqsep.labels import UNLABELLED, read_row_labels

KINDS = np.repeat(["normal", "pump", "leak"], [400, 20, 20])


@pytest.fixture(scope="module")
def rows():
    """Normal rows around 0, pumps to the right, leaks below."""
    rng = np.random.default_rng(0)
    places = {"normal": (0, 0), "pump": (8, 0), "leak": (0, -8)}
    return np.array([rng.normal(places[kind]) for kind in KINDS])


def cheap(**parameters):
    quick = {"bandwidth": 0.5, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
    return Detector(**quick | parameters)


# ---------------------------------------------------------------------------------- labels


MISSING = {
    "list with None": ["normal", None, "pump", "normal"],
    "list with NaN": ["normal", float("nan"), "pump", "normal"],
    "list with NA": ["normal", pd.NA, "pump", "normal"],
    "list with an empty name": ["normal", "", "pump", "normal"],
    "objects": np.array(["normal", None, "pump", "normal"], dtype=object),
    "pandas": pd.Series(["normal", None, "pump", "normal"]),
    "pandas string": pd.Series(["normal", None, "pump", "normal"], dtype="string"),
    "pandas categorical": pd.Series(pd.Categorical(["normal", None, "pump", "normal"])),
    "categorical": pd.Categorical(["normal", None, "pump", "normal"]),
    "polars": pl.Series(["normal", None, "pump", "normal"]),
    "polars categorical": pl.Series(["normal", None, "pump", "normal"], dtype=pl.Categorical),
    "pyarrow": pa.array(["normal", None, "pump", "normal"]),
    "pyarrow chunks": pa.chunked_array([["normal", None], ["pump", "normal"]]),
    "numbers": [0, None, 1, 0],
    "floats": np.array([0.0, np.nan, 1.0, 0.0]),
    "truths": [False, None, True, False],
    "pandas Int64": pd.Series([0, None, 1, 0], dtype="Int64"),
    "pandas boolean": pd.Series([False, None, True, False], dtype="boolean"),
    "polars numbers": pl.Series([0, None, 1, 0]),
    "pyarrow numbers": pa.array([0, None, 1, 0]),
}


@pytest.mark.parametrize("y", MISSING.values(), ids=MISSING)
def test_missing_labels_of_every_library_are_missing(y):
    labels = read_row_labels(y, n_rows=4, normal=None)
    assert labels.code.tolist() == [0, UNLABELLED, 1, 0]
    assert labels.kinds in [("pump",), ("anomaly",)]


WHOLE = {
    "numbers": [0, 1, 0],
    "truths": np.array([False, True, False]),
    "names": ["normal", "pump", "normal"],
    "pandas categorical": pd.Series(pd.Categorical(["normal", "pump", "normal"])),
    "polars": pl.Series(["normal", "pump", "normal"]),
}


@pytest.mark.parametrize("y", WHOLE.values(), ids=WHOLE)
def test_normal_is_0_false_or_normal(y):
    assert read_row_labels(y, n_rows=3, normal=None).code.tolist() == [0, 1, 0]


def test_normal_may_be_said():
    labels = read_row_labels(["ok", "pump", "leak"], n_rows=3, normal="ok")
    assert (labels.code.tolist(), labels.kinds) == ([0, 1, 2], ("pump", "leak"))
    labels = read_row_labels([1, 0, 1], n_rows=3, normal=1)
    assert labels.code.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["good"] * 9 + ["bad"] * 3, "'good' (9 rows), 'bad' (3 rows). Name the normal one: "),
        ([1] * 9 + [-1] * 3, "1 (9 rows), -1 (3 rows). Name the normal one: normal=1, if"),
        ([2.0] * 9 + [1.0] * 3, "2 (9 rows), 1 (3 rows). Name the normal one: normal=2, if"),
        ([1.0, 2.0, None] * 4, "1 (4 rows), 2 (4 rows). Name the normal one: normal=1, if"),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_batches", [1, 3])
def test_a_normal_label_is_never_guessed(y, words, n_batches):
    X = np.arange(24.0).reshape(12, 2)
    batches = [(X[i::n_batches], y[i::n_batches]) for i in range(n_batches)]
    with pytest.raises(ValueError, match=re.escape(words)):
        cheap().fit(batches) if n_batches > 1 else cheap().fit(X, y)


def test_nor_in_later_rows():
    unlabelled = read_row_labels(None, n_rows=3, normal=None)
    with pytest.raises(ValueError, match="Which label is normal is not known"):
        read_row_labels([-1, 1], n_rows=2, normal=None, known=unlabelled)
    known = read_row_labels(["normal", "leak"], n_rows=2, normal=None)
    with pytest.raises(ValueError, match="names of normal rows: 'normal', 'benign'"):
        read_row_labels(["benign"], n_rows=1, normal=None, known=known)


def test_whole_numbers_name_kinds_and_nan_is_no_label():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.repeat([0.0, 1.0, 2.0, np.nan], [200, 30, 30, 40])
    X[200:230] += 6
    X[230:260] -= 6
    of_floats, of_integers = cheap().fit(X, y), cheap().fit(X, pd.array(y, dtype="Int64"))
    for detector in (of_floats, of_integers):
        assert detector.kinds_ == ("1", "2")
        assert detector.normal_ == 0
        assert detector.model_.evidence.labels.reader.encode([0, 1, 2]).tolist() == [0, 1, 1]
        assert detector.predict(X[[0, 215, 245]]).tolist() == [0, 1, 1]
    assert_array_equal(of_floats.score_samples(X), of_integers.score_samples(X))
    of_floats.partial_fit(X[:2] + 40, np.array([3, 3], np.int16))
    assert of_floats.kinds_ == ("1", "2", "3")
    with pytest.raises(ValueError, match=r"negative numbers among 3 labels \(-1, 0, 1\).*None"):
        cheap().fit(X[:3], [0, 1, -1])


@pytest.mark.parametrize(
    ("y", "normal"), [([0, 1], 0), ([False, True], False), (["Benign", "x"], "Benign")], ids=str
)
def test_the_normal_label_can_be_looked_up(y, normal):
    X = np.random.default_rng(0).normal(size=(60, 2))
    detector = cheap(false_alarm_rate=0.1).fit(X, np.repeat(y, [50, 10]))
    assert detector.normal_ == normal
    assert isinstance(detector.normal_, type(normal))


def test_without_labels_no_label_is_normal():
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert cheap(false_alarm_rate=0.1).fit(X).normal_ is None


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float32, float, bool, object])
def test_classes_have_one_type_before_and_after_saving(dtype, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.repeat([0, 1], [50, 10])
    detector = cheap(false_alarm_rate=0.1).fit(X, y.astype(dtype))
    detector.save(tmp_path / "a.eqsep")
    for one in (detector, load_model(tmp_path / "a.eqsep")):
        assert one.classes_.dtype == (bool if dtype is bool else np.int64)
        assert one.predict(X).dtype == one.classes_.dtype


def test_beside_missing_labels_every_name_is_a_kind():
    labels = read_row_labels(["pump", None, "leak", None], n_rows=4, normal=None)
    assert (labels.code.tolist(), labels.kinds) == ([1, -1, 2, -1], ("pump", "leak"))
    labels = read_row_labels(["pump", None, "leak"], n_rows=3, normal="ok")
    assert (labels.code.tolist(), labels.kinds) == ([1, -1, 2], ("pump", "leak"))


@pytest.mark.parametrize(
    ("y", "normal", "told"),
    [
        (["a", "b", "c"] * 2, None, r"The labels are 'a' \(2 rows\), 'b' \(2 rows\), 'c'"),
        ([2, 3, 4] * 2, None, r"The labels are 2 \(2 rows\), 3 \(2 rows\), 4 \(2 rows\)"),
        (["a", "b", "c"] * 2, "z", "normal must be one of the labels .*, got 'z'"),
        (
            ["pump"] * 6,
            None,
            r"every label is a kind of anomaly, 'pump' \(6 rows\), and none is 0, False or",
        ),
        (["pump"] * 6, "ok", "none is 'ok'"),
        ([1] * 6, None, r"every label is a kind of anomaly, 'anomaly' \(6 rows\)"),
        (["good"] * 3 + ["leak", None, None], None, "and 2 rows without a label. Pass the normal"),
        (["ok", "leak"] + [None] * 4, "OK", "No label is 'OK': every label"),
        ([5] * 6, None, "Only the label 5 occurs, so its meaning is open"),
        ([None] * 6, None, "All labels are missing"),
        ([0, 1], None, "X has 6 rows, y has 2 labels"),
        (np.zeros((6, 2)), None, r"one label a row, got an array of shape \(6, 2\)"),
        ("normal", None, r"one label a row, got 'normal'. If that is a column of X, pass"),
        ([0.5, 0.1, 0.2, 0.3, 0.4, 0.6], None, "Unknown label type: continuous"),
    ],
)
def test_labels_that_say_nothing_clear_are_refused(y, normal, told):
    with pytest.raises(ValueError, match=told):
        cheap(normal=normal).fit(np.arange(12.0).reshape(6, 2), y)


def test_a_column_of_labels_is_taken_with_a_warning(rows):
    with pytest.warns(UserWarning, match="column-vector y"):
        detector = cheap().fit(rows, KINDS[:, None])
    assert_array_equal(detector.coef_, cheap().fit(rows, KINDS).coef_)


def test_names_are_answered_by_0_and_1_and_numbers_by_themselves(rows):
    assert_array_equal(cheap().fit(rows, KINDS).classes_, [0, 1])
    assert set(cheap().fit(rows, KINDS).predict(rows)) == {0, 1}
    assert cheap().fit(rows, KINDS != "normal").predict(rows).dtype == bool
    flipped = cheap(normal=1).fit(rows, (KINDS == "normal").astype(int))
    assert_array_equal(flipped.classes_, [1, 0])
    assert flipped.predict([[0.0, 0.0], [8.0, 0.0]]).tolist() == [1, 0]


def test_a_seen_kind_is_named_and_another_is_unseen(rows):
    detector = cheap(false_alarm_rate=0.05).fit(rows, KINDS)
    assert detector.kinds_ == ("pump", "leak")
    far = [[0.0, 0.0], [8.0, 0.0], [0.0, -8.0], [0.0, 9.0]]
    assert detector.predict_kind(far).tolist() == ["normal", "pump", "leak", "unseen"]
    numbers = cheap(false_alarm_rate=0.05).fit(rows, KINDS != "normal")
    assert numbers.predict_kind(far).tolist() == ["normal", "anomaly", "anomaly", "unseen"]
    nothing = cheap(false_alarm_rate=0.05).fit(rows[KINDS == "normal"])
    assert nothing.predict_kind(far).tolist() == ["normal", "unseen", "unseen", "unseen"]


def test_kinds_and_numbers_are_the_same_problem(rows):
    by_name, by_number = cheap().fit(rows, KINDS), cheap().fit(rows, KINDS != "normal")
    assert_allclose(by_name.score_samples(rows), by_number.score_samples(rows), atol=1e-6)
    assert by_name.score(rows, KINDS) == by_number.score(rows, KINDS != "normal") > 0.97
    partly = np.where(np.arange(len(rows)) % 2, KINDS, None)
    odd = np.arange(len(rows)) % 2 == 1
    assert by_name.score(rows, partly) == by_name.score(rows[odd], KINDS[odd])


@pytest.mark.parametrize("unlabelled", ["trusted", "doubted"])
def test_above_one_is_as_odd_as_below(rows, unlabelled):
    """The score has the root of the distance of f from 1, and of h, and what adds to it."""
    detector = cheap(unlabelled=unlabelled).fit(rows, KINDS)
    some = np.concatenate([np.random.default_rng(1).normal(size=(500, 2)), rows[-50:]])
    plan, Z = detector.plan_, detector.plan_.encode(some)
    score, votes = detector.model_.score, term_of(plan, VotesTerm)
    k = plan.kernel.numpy_map.features(Z).astype(float)
    f = k @ detector.coef_[:, 0]
    assert (f > 1).any()
    expected = np.sqrt(np.abs(1 - f))
    if unlabelled == "doubted":
        alike = np.clip(k @ score.functions["likeness"].coef, 0, 1.5)
        assert (alike > 1e-3).any()
        expected += term_of(plan, LikenessTerm).weight * alike
    else:
        h = k @ score.functions["normality"].coef
        part = term_of(plan, NormalityTerm).weight
        expected = (1 - part) * expected + part * np.sqrt(np.abs(1 - h))
    leaves = votes.trees.leaves(votes.seen(EncodedRows(Z, plan.encoder.pack, NUMPY)))
    vote = score.functions["vote"].leaf_votes[leaves].mean(axis=1)
    assert (vote > 0.1).any()
    expected += votes.weight * vote
    values = score.values(Z)
    for kind in (EllipsoidTerm, NearestTerm, SurpriseTerm):
        if (term := term_of(plan, kind)) is not None:
            expected += term.weight * values[term.name]
    assert_allclose(detector.score_samples(some), expected, atol=1e-3)  # roots of single precision


def test_g_is_the_balanced_regression_of_labelled_anomalies(rows):
    """As scikit-learn solves it, of the rows that are learnt; 0 where normal rows are trusted."""
    detector = cheap(unlabelled="doubted").fit(rows, KINDS)
    plan = detector.plan_
    hashes = plan.holdout.hashes(plan.align(rows), encoder=plan.encoder)
    held = (hashes < plan.holdout.bound) & (KINDS == "normal")
    isolated = plan.isolation(plan.encoder.pack(plan.encode(rows))) & (KINDS == "normal")
    learnt = ~held & ~isolated
    k = plan.kernel.numpy_map.features(plan.encode(rows[learnt])).astype(float)
    is_anomaly = (KINDS[learnt] != "normal").astype(float)
    n, m = (~held & (KINDS == "normal")).sum(), is_anomaly.sum()
    ridge = Ridge(alpha=max(300 / m, 1.0), fit_intercept=False)
    ridge.fit(k, is_anomaly, sample_weight=np.where(is_anomaly == 1, n / m, 1.0))
    assert_allclose(
        k @ detector.model_.score.functions["likeness"].coef, ridge.predict(k), atol=1e-4
    )
    assert term_of(cheap().fit(rows, KINDS).plan_, LikenessTerm) is None


# -------------------------------------------------------------------------- unlabelled rows


def test_a_row_without_a_label_counts_less_than_a_normal_one(rows):
    """Far from all others, f is larger the more weight says that the row is normal."""
    alone = np.vstack([rows, np.full((40, 2), 30.0)])
    scores = {}
    for label in ("normal", None):
        y = np.append(KINDS.astype(object), [label] * 40)
        scores[label] = cheap(n_landmarks=500, alpha=5.0).fit(alone, y).score_samples([[30, 30]])
    assert scores["normal"] < scores[None] < 0.95
    assert Config().unlabelled_weight == 0.01


def test_rows_without_a_label_do_not_calibrate(rows):
    y = np.where(np.arange(len(KINDS)) % 2, KINDS, None)
    detector = cheap().fit(rows, y)
    n_normal = (y == "normal").sum()
    assert 0 < len(detector.model_.evidence.held_out.normal) < n_normal
    weight = (
        0.01 * sum(label is None for label in y)
        + n_normal
        - len(detector.model_.evidence.held_out.normal)
    )
    assert_allclose(detector.model_.evidence.weight[0], weight)


def test_without_any_label_trusted_rows_are_as_if_labelled_normal(rows):
    normal = rows[KINDS == "normal"]
    trusted, labelled = cheap(unlabelled="trusted"), cheap()
    trusted.fit(normal)
    assert trusted.model_.plan.labels.unlabelled_is_normal
    assert trusted.kinds_ == ()
    labelled.fit(normal, np.zeros(len(normal)))
    assert_array_equal(trusted.score_samples(rows), labelled.score_samples(rows))
    assert trusted.threshold_ == labelled.threshold_
    assert trusted.predict([[0.0, 0.0], [9.0, 9.0]]).tolist() == [0, 1]
    assert not trusted.model_.promises_at_most


def test_where_nobody_has_looked_hidden_anomalies_count_less_than_in_trusted_rows(rows):
    """And the promise is a bound, which clean rows do not exceed either."""
    rng = np.random.default_rng(0)
    hidden = rng.normal((7, -7), 0.3, size=(12, 2))
    mixed = np.vstack([rows[KINDS == "normal"], hidden])
    unseen, trusted = cheap().fit(mixed), cheap(unlabelled="trusted").fit(mixed)
    assert unseen.model_.promises_at_most
    areas = [
        roc_auc_score(np.arange(len(mixed)) >= len(mixed) - 12, d.score_samples(mixed))
        for d in (unseen, trusted)
    ]
    assert areas[0] > areas[1]
    rates = [
        cheap(random_state=seed, false_alarm_rate=0.05)
        .fit(rng.normal(size=(600, 2)))
        .predict(rng.normal(size=(4000, 2)))
        .mean()
        for seed in range(8)
    ]
    assert np.mean(rates) == pytest.approx(0.05, abs=0.015)


def test_anomalies_beside_unlabelled_rows_are_enough(rows):
    y = np.where(KINDS == "normal", None, KINDS)
    detector, labelled = cheap(unlabelled="trusted").fit(rows, y), cheap().fit(rows, KINDS)
    assert detector.model_.plan.labels.unlabelled_is_normal
    assert not labelled.model_.plan.labels.unlabelled_is_normal
    assert_array_equal(detector.score_samples(rows), labelled.score_samples(rows))


def test_rows_without_a_label_beside_anomalies_are_doubted_as_normal_ones_are_when_told(rows):
    y = np.where(KINDS == "normal", None, KINDS)
    detector, told = cheap().fit(rows, y), cheap(unlabelled="doubted").fit(rows, KINDS)
    assert detector.plan_.labels.doubted
    assert not cheap().fit(rows).plan_.labels.doubted
    assert_array_equal(detector.score_samples(rows), told.score_samples(rows))


def test_anomalies_among_doubted_rows_are_found_by_the_likeness_to_the_few_that_are_labelled():
    """Half of the table's anomalies sit among the rows without a label, as many as there are."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(600, 3)), rng.normal((3, 3, 0), 0.3, size=(120, 3))])
    y = np.array([None] * 720, dtype=object)
    y[-6:] = "leak"
    fresh = np.vstack([rng.normal(size=(300, 3)), rng.normal((3, 3, 0), 0.3, size=(60, 3))])
    is_leak = np.repeat([0, 1], [300, 60])
    found = {
        unlabelled: average_precision_score(
            is_leak, cheap(unlabelled=unlabelled).fit(X, y).score_samples(fresh)
        )
        for unlabelled in ("trusted", "doubted")
    }
    assert found["doubted"] > 0.9 > found["trusted"] + 0.2


# ------------------------------------------------------------------------------ parameters


@pytest.mark.parametrize(
    "wrong",
    [
        {"false_alarm_rate": 0},
        {"false_alarm_rate": 1.0},
        {"false_alarm_rate": "1%"},
        {"n_landmarks": 1},
        {"n_landmarks": 50.0},
        {"config": "fast"},
        {"bandwidth": 0},
        {"bandwidth": "median"},
        {"alpha": 0},
        {"alpha": float("nan")},
        {"unlabelled_weight": -1},
        {"plan": "mine"},
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused_by_name(wrong, rows):
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"{name} must be"):
        Detector(**wrong).fit(rows, KINDS)
    if name == "false_alarm_rate":
        with pytest.raises(ValueError, match="allows one false alarm in a hundred normal rows"):
            cheap().fit(rows, KINDS).set_params(false_alarm_rate=value).predict(rows)


def test_parameters_that_a_plan_has_settled_are_refused_where_they_contradict_it(rows):
    first = cheap(n_landmarks=60, bandwidth=0.7).fit(rows, KINDS)
    for wrong in ({"n_landmarks": 50}, {"n_landmarks": 70}, {"bandwidth": 0.5}):
        [(name, value)] = wrong.items()
        planned = {"n_landmarks": 60, "bandwidth": 0.7}[name]
        message = f"{name} must be {planned}, as in the plan, or left out, got {value}"
        with pytest.raises(ValueError, match=message):
            Detector(plan=first.plan_, **wrong).fit(rows, KINDS)
    same = Detector(plan=first.plan_, n_landmarks=60, bandwidth=0.7).fit(rows, KINDS)
    assert_array_equal(same.coef_, Detector(plan=first.plan_).fit(rows, KINDS).coef_)
    few = cheap(n_landmarks=5000).fit(rows, KINDS)
    assert len(few.plan_.kernel.landmarks) < 5000
    Detector(plan=few.plan_, n_landmarks=5000).fit(rows, KINDS)


@pytest.mark.parametrize("ask", ["predict", "score_samples", "predict_kind", "p_value", "explain"])
def test_nothing_is_answered_before_a_fit(ask, rows):
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        getattr(Detector(), ask)(rows)


def test_the_same_seed_gives_the_same_detector(rows):
    first, second = (Detector(random_state=3).fit(rows, KINDS) for _ in range(2))
    assert_array_equal(first.coef_, second.coef_)
    assert first.plan_.is_same(second.plan_)
    other = Detector(random_state=4).fit(rows, KINDS)
    assert not first.plan_.is_same(other.plan_)
    copy = clone(cheap(plan=first.plan_))
    assert copy.plan.is_same(first.plan_)


# -------------------------------------------------------------------------------- closedness


def test_far_rows_are_alarms_in_every_direction():
    table = make_mixed_demo(n_samples=1_500, as_frame=True, random_state=0)
    quick = {"n_landmarks": 300, "false_alarm_rate": 0.05, "config": Config.fast()}
    detector = Detector(random_state=0, **quick).fit(table.X, table.kind)
    usual = table.X[table.kind == "normal"].iloc[:20]
    numeric = ["amount", "items", "distance_km", "minutes_since_last", "account_age_days"]
    spread = {name: float(np.ptp(usual[name].dropna())) for name in numeric}
    rng = np.random.default_rng(0)
    for size in (1e6, 1e12):
        for name in numeric:
            for sign in (-1, 1):
                far = usual.assign(**{name: sign * size * spread[name]})
                assert detector.predict(far).all(), (name, size)
        directions = rng.normal(size=(len(usual), len(numeric)))
        far = usual.assign(
            **{n: size * spread[n] * directions[:, j] for j, n in enumerate(numeric)}
        )
        assert detector.predict(far).all()
        values = detector.model_.score.values(detector.plan_.encode(far))
        assert_allclose(values["residual"], 1, atol=0.04)
        assert_allclose(values["normality"], 1, atol=0.2)
        assert (values["nearest"] > 3).all()
    infinite = usual.assign(amount=np.inf, distance_km=-np.inf)
    assert detector.predict(infinite).all()


# ------------------------------------------------------------------- what it says of rows


QUICK = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
RNG = np.random.default_rng(0)
NORMAL, PUMP = RNG.normal(size=(900, 2)), RNG.normal((6, 0), 0.5, size=(20, 2))
X, KIND = np.vstack([NORMAL, PUMP]), np.repeat(["normal", "pump"], [900, 20])
NEW = np.vstack([RNG.normal(size=(500, 2)), RNG.normal(scale=4, size=(500, 2))])


@pytest.fixture(scope="module")
def detector():
    return Detector(**QUICK).fit(X, KIND)


def labelled(**parameters):
    return Detector(**QUICK, **parameters).fit(X, KIND)


def few_rows():
    with pytest.warns(UserWarning, match="cannot be promised"):
        return Detector(**QUICK).fit(NORMAL[:60])


FITTED = {
    "names": labelled,
    "many alarms": lambda: labelled(false_alarm_rate=0.2),
    "confidence": lambda: labelled(false_alarm_rate=0.1, confidence=0.9),
    "signs": lambda: Detector(normal=1, **QUICK).fit(X, np.where(KIND == "normal", 1, -1)),
    "few rows": few_rows,
    "groups": lambda: Detector(false_alarm_rate=0.1, **QUICK).fit(
        NORMAL, groups=np.arange(900) // 10
    ),
}


@pytest.mark.parametrize("fitted", FITTED.values(), ids=FITTED)
def test_the_larger_chance_is_what_predict_says(fitted):
    fitted = fitted()
    chance = fitted.predict_proba(NEW)
    assert chance.shape == (len(NEW), 2)
    assert_allclose(chance.sum(axis=1), 1)
    assert_array_equal(fitted.classes_[chance.argmax(axis=1)], fitted.predict(NEW))
    assert fitted.decision_function(NEW).max() > 0


def test_fit_predict_is_fit_and_predict():
    groups = np.arange(len(X)) // 10
    once = Detector(false_alarm_rate=0.1, **QUICK)
    two = Detector(false_alarm_rate=0.1, **QUICK).fit(X, KIND, groups=groups)
    assert_array_equal(once.fit_predict(X, KIND, groups=groups), two.predict(X))
    assert two.predict(X).sum() > 20


SAID = ("score_samples", "decision_function", "predict", "predict_kind", "kind_p_values", "p_value")


@pytest.mark.parametrize("method", SAID)
def test_a_row_alone_gets_the_bits_of_its_batch_in_whatever_form_it_comes(method):
    """A dict or an array goes straight to its code; a frame becomes a table before."""
    frame = pd.DataFrame(X, columns=["pressure", "flow"])
    frame["state"] = np.where(RNG.random(len(X)) < 0.9, "on", "off")
    detector = Detector(**QUICK).fit(frame, KIND)
    rows = pd.DataFrame(NEW[400:600], columns=["pressure", "flow"])
    rows["state"] = np.where(NEW[400:600, 0] < 2, "on", "broken")
    plain = rows.to_dict("records")
    say = getattr(detector, method)
    together = say(rows)
    assert_array_equal(say(plain), together)
    assert_array_equal(np.concatenate([say([row]) for row in plain]), together)


@pytest.mark.parametrize("method", SAID)
def test_a_row_of_an_array_alone_gets_the_bits_of_its_batch(detector, method):
    say = getattr(detector, method)
    together = say(NEW[400:600].tolist())
    assert_array_equal(say(NEW[400:600]), together)
    alone = [say(NEW[i : i + 1]) for i in range(400, 600)]
    assert_array_equal(np.concatenate(alone), together)


def test_parameters_that_are_given_stand_in_the_place_of_those_of_the_config():
    config = Config(n_landmarks=30, bandwidth=3.0, alpha=2.0, n_trees=4)
    by_config = Detector(config=config, random_state=0).fit(X, KIND)
    given = Detector(
        config=Config(n_trees=4), n_landmarks=30, bandwidth=3.0, alpha=2.0, random_state=0
    ).fit(X, KIND)
    assert_array_equal(by_config.score_samples(NEW), given.score_samples(NEW))
    assert len(given.plan_.kernel.landmarks) == 30
    assert given.model_.config.doubted_bandwidth == 3.0
    assert by_config.model_.config.doubted_bandwidth == Config().doubted_bandwidth
