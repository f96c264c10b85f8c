"""A detector as an ONNX graph: row by row what the library says."""

import json
import os
import sys
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from roundings import rounding

from eqsep import Detector, __version__
from eqsep.datasets import make_mixed_demo
from eqsep.detector import CalibrationWarning, Config
from eqsep.detector.score import combine
from eqsep.detector.terms import TERMS
from eqsep.engine.backends import NUMPY
from eqsep.export import to_onnx
from eqsep.export.score import ScoreGraph

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

UNBOUNDED = ("excess", "nearest", "surprise")
QUICK = {"n_landmarks": 60, "bandwidth": 1.0, "random_state": 0, "config": Config.fast()}


class Exported:
    """The graph of a detector, run by onnxruntime."""

    def __init__(self, detector, folder):
        path = folder / "detector.onnx"
        detector.to_onnx(path)
        self.model = onnx.load(path)
        onnx.checker.check_model(self.model, full_check=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"]
        )
        self.types = {i.name: i.type for i in self.session.get_inputs()}
        self.notes = {note.key: note.value for note in self.model.metadata_props}

    def __call__(self, X):
        names = [output.name for output in self.session.get_outputs()]
        return dict(zip(names, self.session.run(None, self.feed(X)), strict=True))

    def feed(self, X):
        if isinstance(X, np.ndarray):
            return {"X": X.astype(float)}
        return {name: values(X[name], of=kind) for name, kind in self.types.items()}


def values(series, *, of):
    """A column as the graph takes it."""
    if of == "tensor(string)":
        return series.astype(object).where(series.notna(), "").to_numpy(dtype=object)
    if series.dtype.kind in "mM":
        seconds = series.to_numpy(f"{series.dtype.kind}8[us]").astype(np.int64) / 1e6
        return np.where(series.isna(), np.nan, seconds)
    return series.to_numpy(dtype=float, na_value=np.nan)


def assert_agree(detector, exported, X):
    got, score = exported(X), detector.score_samples(X)
    error = rounding(detector, X)
    assert (np.abs(got["score"] - score) <= error).all()
    assert (np.abs(got["decision"] - detector.decision_function(X)) <= 2 * error).all()
    assert got["label"].dtype == np.int64
    assert_array_equal(got["label"], detector.decision_function(X) > 0)
    assert_array_equal(got["label"], got["decision"] > 0)
    for step, compare in ((error, np.greater_equal), (-error, np.less_equal)):
        assert compare(got["p_value"], detector.calibration_.p_value(score + step)).all()


def mixed(n, *, random_state, missing=0.1):
    """Rows of every kind of column; those at the end are gone in `missing` of the rows."""
    rng = np.random.default_rng(random_state)
    start = np.datetime64("2025-01-01T00:00:00", "us")
    frame = pd.DataFrame(
        {
            "size": rng.lognormal(size=n),
            "whole": rng.integers(0, 6, size=n),
            "constant": 3.0,
            "zero": 0,
            "two": rng.choice([1.5, 4.0], size=n),
            "truth": rng.random(n) < 0.3,
            "shape": rng.choice(["round", "flat", "ß", "a b"], size=n, p=[0.5, 0.3, 0.15, 0.05]),
            "empty": np.full(n, np.nan),
            "day": start + rng.integers(0, 30, size=n) * np.timedelta64(1, "D"),
            "level": pd.Categorical(rng.integers(1, 4, size=n)),
            "time": start + rng.integers(0, 3 * 10**6, size=n) * np.timedelta64(1, "s"),
            "took": rng.integers(1, 10**7, size=n) * np.timedelta64(1, "us"),
            "load": rng.normal(size=n),
            "pair": rng.choice([0.0, 1.0], size=n),
            "steady": 7.0,
            "known": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "colour": rng.choice([*"rgb", *map(str, range(40))], size=n),
        }
    )
    for name in frame.columns[10:]:
        frame.loc[rng.random(n) < missing, name] = None
    return frame


def beyond(frame, *, random_state):
    """The same rows with numbers, names and dates that training did not have."""
    rng = np.random.default_rng(random_state)
    frame = frame.copy()
    for name, strange in {
        "size": [1e300, -1e300, np.inf, -np.inf, 1e-300, np.nan],
        "load": [1e300, -1e300, np.inf, -np.inf, 40.0],
        "constant": [4.0, -1e9, np.inf, np.nan],
        "zero": [1e-9, 5.0],
        "two": [0.0, 2.0, 9.0, np.nan],
        "pair": [0.5, -1.0, 1e300],
        "steady": [6.9, 8.0],
        "shape": ["new", "Round", None],
        "colour": ["c", "rr"],
        "empty": [1.0, -5.0],
        "day": [np.datetime64("1901-02-03"), np.datetime64("2200-01-01T12:00:00.25"), None],
        "time": [np.datetime64("1969-12-31T23:59:59"), np.datetime64("2025-01-09")],
        "took": [np.timedelta64(-5, "s"), np.timedelta64(400, "D")],
    }.items():
        column = frame[name].astype(object)
        strange_rows = rng.random(len(frame)) < 0.05
        column[strange_rows] = rng.choice(np.array(strange, dtype=object), strange_rows.sum())
        kind = frame[name].dtype
        frame[name] = column.astype(float if kind.kind in "iu" else kind)
    return frame


@pytest.fixture(scope="module")
def table():
    return mixed(1200, random_state=0)


@pytest.fixture(scope="module")
def detector(table):
    y = np.where(table["size"] > 4, "large", "normal")
    return Detector(**QUICK).fit(table, y)


@pytest.fixture(scope="module")
def exported(detector, tmp_path_factory):
    return Exported(detector, tmp_path_factory.mktemp("export"))


@pytest.mark.parametrize("n_landmarks", [60, pytest.param(500, marks=pytest.mark.extra)])
def test_ten_thousand_payments_are_told_as_by_the_library(n_landmarks, tmp_path):
    seen, new = (
        make_mixed_demo(n_samples=n, as_frame=True, random_state=seed)
        for n, seed in ((2000, 0), (10_000, 1))
    )
    detector = Detector(**QUICK | {"n_landmarks": n_landmarks}).fit(seen.X, seen.kind)
    rng = np.random.default_rng(0)
    rows = new.X.copy()
    rows["card_present"] = rows["card_present"].astype("boolean")
    for name in rows.columns:
        rows.loc[rng.random(len(rows)) < 0.05, name] = None
    for name, strange in {"amount": np.inf, "items": 1e300, "distance_km": -1e300}.items():
        rows.loc[rng.random(len(rows)) < 0.02, name] = strange
    rows.loc[rng.random(len(rows)) < 0.05, "country"] = "Atlantis"
    assert_agree(detector, Exported(detector, tmp_path), rows)


def test_every_kind_of_column_is_told_as_by_the_library(detector, exported):
    rows = mixed(3000, random_state=1)
    assert_agree(detector, exported, rows)
    assert_agree(detector, exported, beyond(rows, random_state=2))
    assert exported(rows)["label"].mean() < exported(beyond(rows, random_state=2))["label"].mean()


def test_rows_of_training_are_told_as_by_the_library(detector, exported, table):
    assert_agree(detector, exported, table)


@pytest.mark.parametrize("n", [1, 2, 31, 257])
def test_the_number_of_rows_does_not_matter(exported, n):
    rows = mixed(300, random_state=3)
    for name, whole in exported(rows).items():
        assert_allclose(exported(rows[:n])[name], whole[:n], atol=1e-6, rtol=0)


def test_inputs_carry_the_names_of_the_columns(exported, table):
    names = {"shape", "level", "colour"}
    assert list(exported.types) == list(table.columns)
    assert {n for n, kind in exported.types.items() if kind == "tensor(string)"} == names
    assert {kind for n, kind in exported.types.items() if n not in names} == {"tensor(double)"}
    assert all(i.shape == ["n"] for i in exported.session.get_inputs())


def test_the_file_describes_itself(detector, exported):
    assert exported.notes["eqsep"] == exported.model.producer_version == __version__
    assert json.loads(exported.notes["kinds"]) == ["large"]
    assert float(exported.notes["false_alarm_rate"]) == 0.01
    assert float(exported.notes["threshold"]) == pytest.approx(detector.threshold_, abs=1e-5)
    kinds = json.loads(exported.notes["columns"])
    wanted = {"size": "number", "truth": "truth", "shape": "name", "empty": "empty"}
    wanted |= {"day": "date", "took": "duration"}
    assert {name: kinds[name] for name in wanted} == wanted


@pytest.mark.parametrize("missing", [0, 0.1])
def test_an_array_is_one_input(tmp_path, missing):
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(600, 3)), rng.standard_t(2, size=(2000, 3))
    X[:, 2] = np.round(X[:, 2])
    X[rng.random(X.shape) < missing] = np.nan
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[::7] = X[: len(rows[::7])]
    rows[::50, 0], rows[1::50, 1] = np.inf, -np.inf
    detector = Detector(**QUICK).fit(X)
    exported = Exported(detector, tmp_path)
    assert exported.types == {"X": "tensor(double)"}
    assert exported.session.get_inputs()[0].shape == ["n", 3]
    assert_agree(detector, exported, rows)
    assert 0 < exported(rows)["label"].mean() < 1


def test_columns_without_names_are_counted_where_some_are_text(tmp_path):
    rng = np.random.default_rng(0)
    rows = [[float(x), name] for x, name in zip(rng.normal(size=400), "ab" * 200, strict=False)]
    detector = Detector(**QUICK).fit(rows)
    exported = Exported(detector, tmp_path)
    assert exported.types == {"x0": "tensor(double)", "x1": "tensor(string)"}
    new = pd.DataFrame({"x0": [0.0, 9.0, 0.0], "x1": ["a", "b", "c"]})
    assert_allclose(
        exported(new)["score"], detector.score_samples(new.to_numpy().tolist()), atol=1e-5
    )


def test_names_alone_will_do(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice(list("abcd"), size=(500, 3)), columns=["u", "v", "w"])
    detector = Detector(**QUICK).fit(frame)
    assert_agree(detector, Exported(detector, tmp_path), frame.replace({"u": {"a": "z"}}))


def test_dropped_columns_are_no_inputs(tmp_path):
    frame = pd.DataFrame({"id": [f"row {i}" for i in range(400)]})
    frame["x"] = np.random.default_rng(0).normal(size=400)
    with pytest.warns(UserWarning, match="Columns were dropped: 'id'"):
        detector = Detector(**QUICK).fit(frame)
    exported = Exported(detector, tmp_path)
    assert list(exported.types) == ["x"]
    assert_agree(detector, exported, frame)


def test_rows_at_the_threshold_pass_in_both(tmp_path):
    """Whole numbers: many rows are equal to the one whose score is the threshold."""
    X = np.random.default_rng(0).binomial(5, 0.5, size=(3000, 3)).astype(float)
    detector = Detector(**QUICK | {"false_alarm_rate": 0.2}).fit(X)
    assert (detector.decision_function(X) == 0).sum() > 10
    assert_agree(detector, Exported(detector, tmp_path), X)


def test_far_rows_are_alarms_where_the_threshold_is_nearly_theirs(tmp_path):
    """Some normal rows are so far from all others that their score is 1 up to rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    X[:60] *= 100
    bounded = dict.fromkeys((f"unlabelled_{name}_weight" for name in UNBOUNDED), 0.0)
    changes = {"bandwidth": 1 / 8, "n_landmarks": 20, "config": replace(Config.fast(), **bounded)}
    detector = Detector(**QUICK | changes).fit(X)
    assert 1 - 1e-5 < detector.threshold_ < 1
    rows = rng.normal(size=(500, 2)) * 10.0 ** rng.integers(0, 60, size=(500, 1))
    assert_agree(detector, Exported(detector, tmp_path), rows)
    assert detector.predict(rows).sum() > 100


def test_the_threshold_is_that_of_the_present_rate(tmp_path):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(1200, 2)), rng.normal(size=(3000, 2))
    detector = Detector(**QUICK).fit(X, ["normal"] * 1200)
    alarms = []
    for rate in (0.01, 0.2):
        exported = Exported(detector.set_params(false_alarm_rate=rate), tmp_path)
        assert_agree(detector, exported, X)
        alarms.append(exported(new)["label"].mean())
    assert_allclose(alarms, [0.01, 0.2], atol=0.03)
    assert alarms[0] < alarms[1]


@pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning")  # scores are compared
def test_a_detector_that_learnt_on_is_exported_as_it_is_now(tmp_path):
    rng = np.random.default_rng(0)
    X, more = rng.normal(size=(800, 2)), rng.normal((7, 0), 0.3, size=(30, 2))
    detector = Detector(**QUICK).fit(X).partial_fit(more, ["leak"] * 30)
    exported = Exported(detector, tmp_path)
    assert_agree(detector, exported, np.vstack([X, more]))
    assert json.loads(exported.notes["kinds"]) == ["leak"]


def test_nothing_calibrates_a_single_normal_row(tmp_path):
    X = np.array([[0.0], [5.0], [6.0]])
    with pytest.warns(CalibrationWarning):
        detector = Detector(**QUICK).fit(X, [0, 1, 1])
    assert not len(detector.model_.evidence.held_out.normal)
    assert_agree(detector, Exported(detector, tmp_path), X)


@pytest.mark.parametrize("name", ["score", "p_value", ""])
def test_a_column_may_not_have_an_outputs_name(tmp_path, name):
    frame = pd.DataFrame({name: np.arange(300.0), "x": 1.0})
    detector = Detector(**QUICK).fit(frame)
    with pytest.raises(ValueError, match=rf"Column '{name}' cannot be an input.*Rename the column"):
        detector.to_onnx(tmp_path / "detector.onnx")


def test_names_of_inner_values_are_free_for_columns(tmp_path):
    inner = ["constant_0", "Concat_1", "Unsqueeze_2", "rows_3", "X", "Where_40"]
    X = np.random.default_rng(0).normal(size=(400, len(inner)))
    frame = pd.DataFrame(X, columns=inner)
    detector = Detector(**QUICK).fit(frame)
    assert_agree(detector, Exported(detector, tmp_path), frame)


def test_an_empty_name_is_refused(tmp_path):
    detector = Detector(**QUICK).fit(pd.DataFrame({"shape": ["", "round", "flat"] * 100}))
    with pytest.raises(ValueError, match="'shape' has the empty string among its names"):
        detector.to_onnx(tmp_path / "detector.onnx")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, detector):
    path = tmp_path / "detector.onnx"
    path.write_bytes(b"old")

    def full(_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        detector.to_onnx(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path, detector):
    with pytest.raises(FileNotFoundError, match=r"Folder not found.*nowhere"):
        detector.to_onnx(tmp_path / "nowhere" / "detector.onnx")


def test_an_unfitted_detector_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        Detector().to_onnx(tmp_path / "detector.onnx")


def test_without_onnx_the_message_says_what_to_install(tmp_path, detector, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    message = r"^to_onnx needs ONNX. Install it with: pip install 'eqsep\[onnx\]'$"
    with pytest.raises(ImportError, match=message):
        detector.to_onnx(tmp_path / "detector.onnx")
    assert not list(tmp_path.iterdir())


def test_rows_that_are_taken_for_anomalies_do_not_count(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    X[1000:] = 3 * (X[1000:] + np.array([0.0, 6.0, 0.0]))
    y = np.repeat(np.array([None, "leak"], dtype=object), [1080, 120])
    detector = Detector(**QUICK).fit(X, y)
    assert detector.calibration_.n_left_out > 1
    assert_agree(detector, Exported(detector, tmp_path), X)


@pytest.mark.parametrize("doubted", [False, True])
def test_the_graph_says_the_formula_of_the_score(tmp_path, doubted):
    """Every term counts for some row, and the graph puts them together as `combine` does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    X[:, 2] = X[:, 0] + X[:, 1] + rng.normal(scale=0.05, size=1500)
    X[1380:] += np.array([0.0, 4.0, 4.0])
    y = np.repeat(np.array([None if doubted else "normal", "leak"], dtype=object), [1380, 120])
    detector = Detector(**QUICK).fit(X, y)
    if not doubted:
        detector.partial_fit(X[:60] + np.array([0.0, 0.0, -4.0]), np.repeat("crack", 60))
    rows = np.vstack([X, X[:300] + rng.normal(scale=2, size=(300, 3))])
    values = detector.model_.score.values(detector.plan_.encode(rows))
    absent = {"normality", "later"} if doubted else {"likeness"}
    assert values.keys() == {term.name for term in TERMS} - absent
    assert all((part > 0.05).any() for part in values.values())
    weights = {term.name: term.weight for term in detector.plan_.terms}
    combined = combine(values, weights=weights, backend=NUMPY)
    assert_allclose(combined, detector.score_samples(rows), atol=1e-6)
    found = Exported(detector, tmp_path)(rows)["score"]
    assert (np.abs(found - combined) <= rounding(detector, rows)).all()


@pytest.mark.parametrize("n_columns", [2, 40])
@pytest.mark.parametrize("labelled", [False, True])
def test_rows_that_calibrate_score_at_most_their_rounding_more(tmp_path, n_columns, labelled):
    """So that none of those at the threshold passes it, whatever it scores by."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, n_columns)) * rng.lognormal(sigma=2, size=(2000, 1))
    kind = np.where(rng.uniform(size=2000) < 0.2, "leak", "normal") if labelled else None
    prefix = "" if labelled else "unlabelled_"
    weights = {f"{prefix}{name}_weight": 50.0 for name in UNBOUNDED}
    weights["vote_weight"] = 50.0
    detector = Detector(**QUICK | {"config": replace(Config.fast(), **weights)}).fit(X, kind)
    scores, roundings = detector.calibration_.scores, ScoreGraph(detector.model_).roundings
    held_out, place = np.nonzero(detector.score_samples(X)[:, None] == scores)
    assert len(set(place)) == len(scores)
    more = Exported(detector, tmp_path)(X)["score"][held_out] - scores[place]
    assert labelled == ("vote" in detector.model_.score.functions)
    assert np.abs(more).max() > 1e-6
    assert (more <= roundings[place]).all()
    assert (roundings < 2e-2).all()


def test_a_term_that_has_no_graph_is_refused(tmp_path, detector):
    class Unheard(type(detector.plan_.kernel)):
        name = "unheard"

    kernel = detector.plan_.kernel
    term = Unheard(**{field.name: getattr(kernel, field.name) for field in fields(kernel)})
    plan = replace(detector.plan_, terms=(*detector.plan_.terms, term))
    with pytest.raises(ValueError, match="no graph for the score term 'Unheard'"):
        to_onnx(replace(detector.model_, plan=plan), tmp_path / "detector.onnx")


def test_a_model_is_written_as_its_detector_is(tmp_path, detector):
    to_onnx(detector, tmp_path / "detector.onnx")
    to_onnx(detector.model_, tmp_path / "model.onnx")
    to_onnx(detector.model_.on("auto"), tmp_path / "device.onnx")
    names = ("detector.onnx", "model.onnx", "device.onnx")
    first, *others = [(tmp_path / name).read_bytes() for name in names]
    assert others == [first, first]
