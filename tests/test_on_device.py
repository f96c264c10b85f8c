"""Tables sent to a device and encoded there: by torch, on the processor where there is no GPU."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from roundings import rounding

from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config
from eqsep.detector.terms.ellipsoid import EllipsoidTerm, ExcessFunction
from eqsep.detector.terms.term import EncodedRows
from eqsep.engine import gpu
from eqsep.engine.backends import NUMPY, TorchBackend
from eqsep.engine.ellipsoid import Ellipsoid
from eqsep.engine.gpu import WALKED_AT_ONCE
from eqsep.engine.nearest import LEAST, Neighbourhood
from eqsep.engine.trees import Trees
from eqsep.tables import TableEncoder
from eqsep.tables.reading import read_table, row_parts
from eqsep.tables.tensors import TensorEncoding, encoded_parts

torch = pytest.importorskip("torch", reason="the extra nn is not installed")
SETTINGS = {"n_landmarks": 60, "bandwidth": 1.0, "random_state": 0, "config": Config.fast()}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def payments():
    return make_mixed_demo(n_samples=1500, as_frame=True, random_state=0)


@pytest.fixture(scope="module")
def detector(payments):
    return Detector(**SETTINGS).fit(payments.X, payments.kind)


@pytest.fixture
def on_device(detector):
    """The detector on a device."""
    return detector.set_params(device="auto")


@pytest.fixture(autouse=True)
def here_again(detector):
    yield
    detector.set_params(device="cpu")


def frames():
    """A table of training with all kinds of columns, and another one with all that may come."""
    rng = np.random.default_rng(0)
    n = 400
    train = pd.DataFrame(
        {
            "size": rng.lognormal(sigma=2, size=n),
            "many": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.integers(0, 30, n)),
            "two": rng.integers(0, 2, n) * 3.5,
            "one": np.full(n, 7),
            "flag": rng.uniform(size=n) < 0.2,
            "shape": rng.choice(["round", "flat", "long"], n),
            "gone": rng.choice(["a", "b", None], n),
            "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 10**7, n), "s"),
        }
    )
    fresh = train.iloc[:60].reset_index(drop=True)
    fresh["size"] = np.r_[np.inf, -np.inf, np.nan, 0.0, 1e300, -1e9, train["size"][6:60]]
    fresh["two"] = np.r_[np.nan, 1.0, 9.0, fresh["two"][3:]]
    fresh["one"] = np.r_[7, 8, -7e12, np.nan, np.full(56, 7)]
    fresh.loc[[1, 2], "shape"] = "odd"
    fresh.loc[[3], "shape"] = None
    fresh.loc[[4, 5], "when"] = [pd.NaT, pd.Timestamp("2031-05-05 12:00")]
    return train, fresh


@pytest.mark.parametrize("form", ["quantile", "standard", "both"])
def test_rows_are_encoded_as_by_the_processor(form):
    train, fresh = frames()
    encoder = TableEncoder(numeric_encoding=form).fit(train).encoder_
    encoding = TensorEncoding.of(encoder, "auto")
    for frame in (train, fresh):
        there = encoding(encoding.gathered(read_table(frame, name="")))
        assert there.dtype == torch.float32
        assert_allclose(there.cpu().numpy(), encoder.encode(frame), rtol=2e-7, atol=1e-7)


def test_a_table_of_names_alone_is_encoded():
    frame = pd.DataFrame({"shape": ["round", "flat", "flat", "round"], "flag": [True, False] * 2})
    encoder = TableEncoder().fit(frame).encoder_
    encoding = TensorEncoding.of(encoder, "auto")
    there = encoding(encoding.gathered(read_table(frame, name="")))
    assert_array_equal(there.cpu().numpy(), encoder.encode(frame))


def test_tensors_end_in_the_leaves_in_which_arrays_end():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(WALKED_AT_ONCE + 300, 4)).astype(np.float32)  # more than go at once
    some = X[:300]
    trees = Trees.grown(some, 1 * (some[:, 0] > some[:, 1]), np.random.RandomState(0), n=7)
    votes = rng.uniform(size=trees.n_leaves)
    backend = TorchBackend(DEVICE)
    there = backend.votes(trees, torch.as_tensor(X, device=DEVICE), votes)
    assert_allclose(there.cpu().numpy(), trees.mean(X, votes), rtol=1e-14)
    assert backend.votes(trees, torch.as_tensor(X[:0], device=DEVICE), votes).shape == (0,)


def test_tensors_are_as_far_beyond_the_ellipsoid_as_arrays():
    rng = np.random.RandomState(0)
    rows = (rng.normal(size=(900, 1)) + rng.normal(scale=0.1, size=(900, 3))).astype(np.float32)
    ellipsoid = Ellipsoid.of(rows, rng)
    rows[::7, 0] += 3
    term = EllipsoidTerm(ellipsoid=ellipsoid, columns=np.arange(3))
    excess = ExcessFunction(term)
    here = excess(EncodedRows(rows, None, NUMPY), None)
    assert here.max() > 5
    moved = torch.as_tensor(rows, device=DEVICE)
    there = excess(EncodedRows(moved, None, TorchBackend(DEVICE)), None)
    assert_allclose(there.cpu().numpy(), here, atol=1e-5)


@pytest.mark.parametrize("name", ["excess", "vote", "nearest", "surprise"])
@pytest.mark.parametrize("n", [1500, 3, 0])
def test_a_term_has_the_same_values_by_tensors(name, n, payments, detector, monkeypatch):
    monkeypatch.setattr(gpu, "WALKED_AT_ONCE", 400)
    monkeypatch.setattr(gpu, "DISTANCES_AT_ONCE", 2**18)
    plan, function = detector.plan_, detector.model_.score.functions[name]
    Z = plan.encode(payments.X)[:n]
    moved = torch.as_tensor(Z, device=DEVICE)
    there = function(EncodedRows(moved, plan.encoder.pack, TorchBackend(DEVICE)), None)
    here = function(EncodedRows(Z, plan.encoder.pack, NUMPY), None)
    assert there.dtype == torch.float64
    assert_allclose(there.cpu().numpy(), here, atol=1e-5)
    assert n < 1500 or here.max() > 0.5


@pytest.mark.parametrize("name", ["residual", "normality"])
def test_functions_over_landmarks_have_the_same_values_by_tensors(name, payments, detector):
    plan, function = detector.plan_, detector.model_.score.functions[name]
    Z = plan.encode(payments.X)
    there = plan.kernel.map_on(TorchBackend(DEVICE)).evaluate(
        torch.as_tensor(Z, device=DEVICE), function.landmark_coef
    )
    here = plan.kernel.numpy_map.evaluate(Z, function.landmark_coef)
    assert_allclose(there.cpu().numpy(), here, atol=1e-5)


def test_equal_rows_are_as_near_by_tensors():
    """Distances that differ from 0 by rounding alone count nothing, whoever sums them."""
    rng = np.random.default_rng(0)
    rows = rng.choice([0.1, 0.7, 3.3], size=(400, 6)).astype(np.float32)
    rows[:20] += rng.normal(size=(20, 6)).astype(np.float32)
    neighbourhood, _ = Neighbourhood.of(rows, np.arange(400) < 20)
    assert neighbourhood.has_handicap
    new = np.concatenate([rows, rows + np.float32(0.5)])
    here = neighbourhood.log_distance(new)
    there = neighbourhood.log_distance_of_tensor(torch.as_tensor(new, device=DEVICE))
    assert_allclose(there.cpu().numpy(), here, atol=1e-5)
    assert (np.exp(here[20:400]) == LEAST).mean() > 0.5


def assert_agree(there, detector, X):
    """Scores of a device are those of the detector in memory."""
    step, others = (1e-5, 1e-3) if DEVICE == "cuda" else (1e-6, 2e-5)
    error = rounding(detector, read_table(X, name=""), step=step, others=others)
    assert (np.abs(there - detector.score_samples(X)) <= error).all()


def as_arrow(frame):
    pa = pytest.importorskip("pyarrow")
    return pa.Table.from_pandas(frame, preserve_index=False)


FORMS = {"pandas": lambda x: x, "pyarrow": as_arrow, "dicts": lambda x: x.to_dict("records")}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_on_a_device_scores_as_in_memory(form, payments, detector, on_device):
    X = FORMS[form](payments.X)
    there = on_device.score_samples(X)
    kinds, p = on_device.predict_kind(X), on_device.p_value(X)
    detector.set_params(device="cpu")
    assert_agree(there, detector, X)
    assert (kinds == detector.predict_kind(X)).mean() > 0.999
    assert_allclose(p, detector.p_value(X), atol=0.01)
    assert len(set(kinds)) > 2


def test_doubted_rows_score_as_in_memory(payments):
    """By two functions over the landmarks."""
    labels = np.where(payments.kind == "normal", None, payments.kind)
    detector = Detector(**SETTINGS).fit(payments.X, labels)
    assert detector.model_.score.functions["likeness"].coef.any()
    here = detector.score_samples(payments.X)
    there = detector.set_params(device="auto").score_samples(payments.X)
    assert_agree(there, detector.set_params(device="cpu"), payments.X)
    assert_array_equal(detector.score_samples(payments.X), here)


def encoded_in(detector, X, most):
    """The encoded rows, of many parts read by several threads."""
    encoding = TensorEncoding.of(detector.plan_.encoder, "auto")
    parts = encoded_parts(encoding, X, align=detector.plan_.align, most=most)
    return [part.cpu().numpy() for part in parts]


@pytest.mark.parametrize("form", FORMS)
def test_the_division_into_parts_changes_no_row(form, payments, detector, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    X = FORMS[form](payments.X)
    (whole,) = encoded_in(detector, X, None)
    parts = encoded_in(detector, X, 100)
    assert len(parts) == 15
    assert_array_equal(np.concatenate(parts), whole)
    assert_allclose(whole, detector.plan_.encode(X), rtol=2e-7, atol=1e-7)


def test_rows_that_look_back_are_read_in_one_piece():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 2)), columns=["a", "b"])
    detector = Detector(window=5, false_alarm_rate=0.1, **SETTINGS).fit(X, time=np.arange(400))
    here = detector.score_samples(X)  # a root near 0 is coarser than its number
    assert_allclose(detector.set_params(device="auto").score_samples(X), here, atol=4e-3)


def test_what_cannot_be_read_in_a_thread_is_an_error(payments, detector, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    X = payments.X.astype({"amount": object})
    X.loc[777, "amount"] = "a lot"
    with pytest.raises(ValueError, match="'amount' held numbers in training, and 'a lot' cannot"):
        encoded_in(detector, X, 100)


def test_rows_in_parts_are_all_of_them():
    frame = pd.DataFrame({"a": range(7)})
    for X in (frame, frame.to_numpy(), frame.to_dict("records"), as_arrow(frame)):
        parts = row_parts(X, most=3)
        assert [len(part) for part in parts] == [3, 3, 1]
        assert row_parts(X, most=7) == [X] or row_parts(X, most=7)[0] is X
    table = read_table(frame, name="")
    assert row_parts(table, most=3) == [table]


def test_rows_that_are_encoded_in_memory_are_judged_on_a_device(payments, detector, on_device):
    Z = detector.plan_.encode(payments.X)
    model = on_device.model_
    assert_allclose(model.judge(Z).score, model.scores(payments.X), atol=4e-3)
    assert (model.judge(Z).kind == model.kind_of(payments.X)).mean() > 0.999
    assert set(model.judge(Z, threshold=-np.inf).kind) >= set(detector.kinds_)
    values, here = model.score.values(Z), model.on("cpu").score.values(Z)
    assert values.keys() == here.keys()
    for name, value in values.items():
        assert_array_equal(value, here[name])
