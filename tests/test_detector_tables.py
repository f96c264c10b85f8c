"""Tables as a detector takes them: from every library, whatever their columns hold."""

import datetime as dt
import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from eqsep import Detector, load_model
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config
from eqsep.engine.loops import WORTH_A_THREAD
from eqsep.tables import ColumnMatchWarning
from eqsep.tables.reading import column_name


def cheap(**parameters):
    quick = {"bandwidth": 0.125, "n_landmarks": 61, "random_state": 0, "config": Config.fast()}
    return Detector(**quick | parameters)


@pytest.fixture(scope="module")
def demo():
    return make_mixed_demo(n_samples=600, random_state=0)


@pytest.fixture(scope="module")
def frame(demo):
    return pd.DataFrame(demo.X)


@pytest.fixture(scope="module")
def fitted(demo):
    return cheap().fit(demo.X, demo.kind)


def objects_of(rows):
    out = np.empty((len(rows), len(rows[0])), dtype=object)
    out[:] = [list(row.values()) for row in rows]
    return out


LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas categorical": lambda rows: pd.DataFrame(rows).astype({"purpose": "category"}),
    "pandas arrow": lambda rows: pa.Table.from_pylist(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "polars categorical": lambda rows: pl.DataFrame(rows).cast({"purpose": pl.Categorical}),
    "pyarrow": pa.Table.from_pylist,
}
WITHOUT_NAMES = {
    "array of objects": objects_of,
    "list of lists": lambda rows: [list(row.values()) for row in rows],
    "list of tuples": lambda rows: [tuple(row.values()) for row in rows],
}


@pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)
def test_every_library_gives_the_same_scores(make, demo, fitted):
    table = make(demo.X)
    assert_array_equal(fitted.score_samples(table), fitted.score_samples(demo.X))
    detector = cheap().fit(table, demo.kind)
    assert_array_equal(detector.score_samples(table), fitted.score_samples(demo.X))
    assert detector.threshold_ == fitted.threshold_
    assert detector.feature_names_in_.tolist() == list(demo.X[0])


@pytest.mark.parametrize("make", WITHOUT_NAMES.values(), ids=WITHOUT_NAMES)
def test_tables_without_names_give_the_same_scores(make, demo, fitted):
    table = make(demo.X)
    detector = cheap().fit(table, demo.kind)
    assert_array_equal(detector.score_samples(table), fitted.score_samples(demo.X))
    assert not hasattr(detector, "feature_names_in_")


def test_numbers_in_every_type_give_the_same_scores():
    X = np.random.default_rng(0).integers(-5, 5, size=(300, 3))
    expected = cheap().fit(X).score_samples(X)
    for table in (X.astype(float), X.astype(np.float32), X.tolist(), pd.DataFrame(X)):
        assert_array_equal(cheap().fit(table).score_samples(table), expected)


def test_a_name_of_the_columns_forgotten_by_a_second_fit(demo):
    detector = cheap().fit(demo.X, demo.kind)
    detector.fit(objects_of(demo.X), demo.kind)
    assert not hasattr(detector, "feature_names_in_")


def test_columns_go_by_name(frame, fitted):
    assert_array_equal(
        fitted.score_samples(frame[frame.columns[::-1]]), fitted.score_samples(frame)
    )
    with pytest.raises(ValueError, match=r"Columns \['amount', 'purpose'\] are missing"):
        fitted.predict(frame.drop(columns=["amount", "purpose"]))
    with pytest.warns(UserWarning, match=r"\['colour'\] were not learnt and are ignored"):
        scores = fitted.score_samples(frame.assign(colour="red"))
    assert_array_equal(scores, fitted.score_samples(frame))


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_a_score_does_not_depend_on_the_rows_beside_it(demo, frame, threads, monkeypatch):
    """To the last bit: alone, in a batch, and whatever the number of threads."""
    fitted = cheap(n_landmarks=500).fit(demo.X, demo.kind)
    score, Z = fitted.model_.score, fitted.plan_.encode(frame)
    n_values = len(Z) * len(fitted.plan_.kernel.landmarks) * fitted.plan_.encoder.pack(Z).shape[1]
    assert n_values > 3 * WORTH_A_THREAD
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    together, likeness = fitted.score_samples(frame), score.kind_likeness(Z)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert_array_equal(fitted.score_samples(frame), together)
    assert_array_equal(score.kind_likeness(Z), likeness)
    some = range(0, len(frame), 23)
    alone = np.concatenate([fitted.score_samples(frame.iloc[[i]]) for i in some])
    assert_array_equal(alone, together[::23])
    assert_array_equal(fitted.score_samples(frame.iloc[::-1])[::-1], together)
    alone = [score.kind_likeness(Z[i : i + 1])[0] for i in some]
    assert_array_equal(alone, likeness[::23])


@pytest.mark.parametrize("width", [3, 20, 45])
def test_nor_does_it_with_more_columns(width):
    X = np.random.default_rng(0).normal(size=(300, width))
    detector = cheap().fit(X)
    together = detector.score_samples(X[:40])
    alone = np.concatenate([detector.score_samples(X[i : i + 1]) for i in range(40)])
    assert_array_equal(alone, together)
    assert_array_equal(detector.score_samples(np.asfortranarray(X[:40])), together)


def test_a_new_name_is_farther_than_a_known_one_and_all_new_ones_alike(frame, demo, fitted):
    usual = frame[demo.kind == "normal"].iloc[:50]
    new = fitted.score_samples(usual.assign(country="XX"))
    known = fitted.score_samples(usual.assign(country="DE"))
    assert new.mean() > known.mean() + 0.05
    assert (new > known).mean() > 0.8
    assert_array_equal(new, fitted.score_samples(usual.assign(country="YY")))


def test_a_value_missing_for_the_first_time_is_seen(frame, demo):
    usual = frame[demo.kind == "normal"].iloc[:50]
    detector = cheap(false_alarm_rate=0.1, config=Config()).fit(demo.X, demo.kind)
    assert detector.predict(usual.assign(amount=None, channel=None)).mean() >= 0.9


def odd_columns(n=300):
    rng = np.random.default_rng(1)
    return {
        "usual": rng.normal(size=n),
        "constant": np.ones(n),
        "tiny": rng.normal(size=n) * 1e-200,
        "huge": rng.normal(size=n) * 1e200,
        "heavy": rng.standard_cauchy(size=n) ** 3,
        "infinite": np.where(rng.uniform(size=n) < 0.1, np.inf, rng.normal(size=n)),
        "empty": [None] * n,
        "rare": ["usual"] * (n - 1) + ["once"],
        "when": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=7 * i) for i in range(n)],
        "took": [dt.timedelta(seconds=i % 40) for i in range(n)],
        "truth": [bool(i % 3) for i in range(n)],
    }


def test_odd_columns_give_finite_scores_and_what_is_new_in_them_is_seen():
    odd = pd.DataFrame(odd_columns())
    detector = cheap(n_landmarks=200).fit(odd)
    scores = detector.score_samples(odd)
    assert np.isfinite(scores).all()
    assert detector.predict(odd).mean() < 0.1
    usual = odd.iloc[np.argsort(scores)[:20]]
    calm = detector.score_samples(usual).mean()
    changes = {"constant": 2.0, "tiny": 1.0, "huge": np.inf, "empty": "something", "rare": "never"}
    for name, value in changes.items():
        assert detector.score_samples(usual.assign(**{name: value})).mean() > calm + 0.1, name


def test_a_column_counts_whatever_its_scale():
    scale = np.array([1e-9, 1, 1e9])
    X = np.random.default_rng(0).normal(size=(400, 3)) * scale
    far = 10 * scale * np.vstack([np.eye(3), -np.eye(3)])
    assert cheap().fit(X).predict(far).all()


def test_ids_have_no_part(frame, demo):
    ids = [f"u{i}" for i in range(len(frame))]
    with pytest.warns(UserWarning, match="'id': 100% of its values occur once, as ids do"):
        detector = cheap().fit(frame.assign(id=ids), demo.kind)
    scores = detector.score_samples(frame.assign(id=ids))
    assert_array_equal(detector.score_samples(frame.assign(id="other")), scores)
    assert_array_equal(detector.score_samples(frame), scores)
    with pytest.raises(
        ValueError, match="If these are numbers or dates stored as text, convert them"
    ):
        cheap().fit(
            pd.DataFrame({"size": [f"{v:.4f}" for v in np.random.default_rng(0).normal(size=99)]})
        )


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")  # few rows on purpose
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0, 2.0]], None),
        ([[1.0], [2.0]], None),
        ([[1.0], [2.0]], [0, 1]),
        (np.random.default_rng(0).normal(size=(5, 3)), None),
        (np.random.default_rng(0).normal(size=(10, 3)), [0] + [1] * 9),
        (np.ones((60, 2)), None),
        (np.ones((60, 2)), np.arange(60) % 2),
        (np.full((60, 2), np.nan), None),
        ([["a"], ["b"], ["a"]], None),
    ],
    ids=["1 row", "2 rows", "one of each", "5 rows", "1 normal", "equal", "torn", "empty", "names"],
)
def test_very_little_is_learnt_without_an_accident(X, y):
    """The chosen width too: there is next to nothing to choose it from."""
    detector = Detector(random_state=0).fit(X, y)
    assert np.isfinite(detector.score_samples(X)).all()
    assert len(detector.explain(X)) == len(X)
    assert set(detector.predict_kind(X)) <= {"normal", "unseen", "anomaly"}
    assert (detector.p_value(X) > 0).all()


def test_twenty_thousand_names():
    names = [f"n{i % 20_000}" for i in range(40_000)]
    table = pd.DataFrame({"name": names, "size": np.random.default_rng(0).normal(size=40_000)})
    detector = cheap(n_landmarks=50).fit(table)
    assert len(detector.plan_.encoder.weights) < 200
    assert detector.predict(table).mean() < 0.02
    new = pd.DataFrame({"name": ["other"], "size": [0.0]})
    assert detector.score_samples(new) > np.median(detector.score_samples(table))


@pytest.mark.parametrize(
    ("X", "told"),
    [
        (np.zeros((0, 3)), "Found array with 0 sample"),
        (np.zeros(3), "Expected 2D array"),
        (pd.Series([1.0]), r"X.to_frame\(\)"),
        (
            pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"]),
            r"every column name once, got \['a', 'a'\]",
        ),
        ([{"a": 1}, {"a": [1]}], "Column 'a' holds a list"),
    ],
)
def test_what_is_no_table_is_refused(X, told):
    with pytest.raises((ValueError, TypeError), match=told):
        cheap().fit(X)


def test_text_in_a_column_of_numbers_is_read_or_refused():
    X = np.random.default_rng(0).normal(size=(300, 2))
    detector = cheap().fit(X)
    assert_array_equal(
        detector.score_samples([["0.25", "-1"]]), detector.score_samples([[0.25, -1.0]])
    )
    with pytest.raises(ValueError, match="Column 'x1' held numbers in training, and 'red' cannot"):
        detector.score_samples([[0.25, "red"]])


NAMES = {
    "numbers": [3, 1, 2],
    "numbers from 0": [0, 1, 2],
    "numbers from 0 in another order": [2, 0, 1],
    "tuples": [("heat", 1), ("heat", 2), ("load", 1)],
    "mixed": ["heat", 7, ("load", 1)],
    "dates": [*pd.date_range("2025-01-01", periods=3)],
    "floats": [0.5, 1.0, 2.0],
}
ROWS = np.random.default_rng(0).normal(size=(300, 3)) * [1, 10, 100] + [0, 50, 900]


def named(names):
    return pd.DataFrame(ROWS, columns=pd.Index(names, dtype=object, tupleize_cols=False))


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("window", [None, 2])
def test_columns_are_matched_by_name_whatever_the_names_are(names, window, tmp_path):
    frame = named(names)
    detector = cheap(false_alarm_rate=0.05, window=window).fit(frame)
    expected = detector.score_samples(frame)
    detector.save(tmp_path / "a.eqsep")
    for model in (detector, load_model(tmp_path / "a.eqsep")):
        for order in itertools.permutations(range(3)):
            other = frame.iloc[:, list(order)]
            assert_array_equal(model.score_samples(other), expected)
            rows = [dict(zip(other.columns, row, strict=True)) for row in other.to_numpy()]
            assert_array_equal(model.score_samples(rows), expected)


def test_the_columns_of_a_multi_index_are_names():
    frame = named(pd.MultiIndex.from_tuples(NAMES["tuples"]))
    detector = cheap(false_alarm_rate=0.05).fit(frame)
    assert detector.feature_names_in_.tolist() == ["('heat', 1)", "('heat', 2)", "('load', 1)"]
    assert_array_equal(
        detector.score_samples(frame.iloc[:, [2, 0, 1]]), detector.score_samples(frame)
    )


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_missing_and_other_columns_are_named(names):
    frame = named(names)
    detector = cheap(false_alarm_rate=0.05).fit(frame)
    gone = column_name(names[1])
    other = frame.rename(columns={names[1]: 99})
    with pytest.raises(ValueError, match=re.escape(f"Columns [{gone!r}] are missing")) as caught:
        detector.predict(other)
    assert "'99'" in str(caught.value)
    with pytest.warns(ColumnMatchWarning, match=r"Columns \['99'\] were not learnt"):
        scores = detector.score_samples(frame.assign(**{"99": 0.0}).rename(columns={"99": 99}))
    assert_array_equal(scores, detector.score_samples(frame))


@pytest.mark.parametrize("window", [None, 2])
def test_numbers_from_0_are_positions_too(window):
    frame = named([0, 1, 2])
    of_frame, of_array = (cheap(false_alarm_rate=0.05, window=window).fit(X) for X in (frame, ROWS))
    expected = of_array.score_samples(ROWS)
    for detector in (of_frame, of_array):
        for X in (frame, ROWS, ROWS.tolist()):
            assert_array_equal(detector.score_samples(X), expected)
    with pytest.raises(ValueError, match="X has 2 features"):
        of_frame.predict(ROWS[:, :2])


def test_a_frame_numbered_from_0_is_matched_by_the_names_of_another_order():
    detector = cheap(false_alarm_rate=0.05).fit(named([2, 0, 1]))
    assert_array_equal(
        detector.score_samples(named([2, 0, 1])[[0, 1, 2]]),
        detector.score_samples(named([2, 0, 1])),
    )
    with pytest.warns(ColumnMatchWarning, match="columns are matched by position"):
        detector.score_samples(ROWS)


@pytest.mark.parametrize("names", [[0, 1, 2, 3], [3, 9, 1, 2]], ids=str)
def test_groups_may_be_a_column_with_a_number(names):
    runs = np.arange(300) % 30
    frame = pd.DataFrame(np.column_stack([ROWS[:, :1], runs, ROWS[:, 1:]]), columns=names)
    rest = frame.drop(columns=names[1])
    by_name = cheap(false_alarm_rate=0.1).fit(frame, groups=names[1])
    by_values = cheap(false_alarm_rate=0.1).fit(rest, groups=runs)
    assert by_name.n_features_in_ == 3
    expected = by_values.score_samples(rest)
    for X in (frame, rest, frame.iloc[:, ::-1]):
        assert_array_equal(by_name.score_samples(X), expected)
