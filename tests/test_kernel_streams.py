"""Batches of rows teach a kernel separator what they teach it all at once."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from spheres import problem, relative

import eqsep.tables.batches
from eqsep import KernelEqualitySeparator
from eqsep.separators.kernel import begin_stream
from eqsep.tables.batches import batches_from


@pytest.fixture(scope="module")
def rows():
    return problem(600, seed=0)


def batches(X, y, size=70):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


def test_batches_give_what_all_rows_give(rows):
    X, y = rows
    whole = KernelEqualitySeparator(n_landmarks=50, random_state=0).fit(X, y)
    for stream in (batches(X, y), lambda: iter(batches(X, y, 200)), iter(batches(X, y))):
        model = KernelEqualitySeparator(n_landmarks=50, random_state=0).fit(stream)
        assert_array_equal(model.landmarks_, whole.landmarks_)
        assert relative(model.coef_, whole.coef_) < 1e-6
        assert_array_equal(model.weight_sum_, whole.weight_sum_)
        assert_array_equal(model.classes_, whole.classes_)


def test_a_dataset_has_names_of_columns_and_one_of_them_holds_the_labels(rows):
    X, y = rows
    frame = pd.DataFrame(X).add_prefix("x").assign(kind=np.where(y == 1, "odd", "normal"))
    data = pa.dataset.dataset(pa.Table.from_pandas(frame))
    model = KernelEqualitySeparator(n_landmarks=50, random_state=0).fit(data, "kind")
    assert model.feature_names_in_.tolist() == list(frame.columns[:-1])
    whole = KernelEqualitySeparator(n_landmarks=50, random_state=0)
    whole.fit(frame.drop(columns="kind"), frame["kind"])
    assert relative(model.coef_, whole.coef_) < 1e-6
    assert model.predict(frame[:5].drop(columns="kind")).dtype.kind == "U"


def test_landmarks_of_many_rows_come_from_a_sample(rows, monkeypatch):
    monkeypatch.setattr(eqsep.tables.batches, "SAMPLE", 100)
    X, y = rows
    model = KernelEqualitySeparator(n_landmarks=60, random_state=0).fit(batches(X, y))
    there = set(map(bytes, X))
    assert all(bytes(row) in there for row in model.landmarks_)
    whole = KernelEqualitySeparator(kernel=model.kernel_, landmarks=model.landmarks_).fit(X, y)
    assert relative(model.coef_, whole.coef_) < 1e-6
    with pytest.raises(ValueError, match="not all can become landmarks: set n_landmarks"):
        KernelEqualitySeparator().fit(batches(X, y))


@pytest.mark.parametrize(
    ("names", "normal"), [((0, 1), None), (("normal", "a"), None), (("ok", "a"), "ok"), ((0, 1), 1)]
)
def test_few_anomalies_are_all_in_the_sample(names, normal, monkeypatch):
    """Normal is 0 or "normal", or what is said; of the others up to a third of the sample."""
    monkeypatch.setattr(eqsep.tables.batches, "SAMPLE", 60)
    y = np.array(names)[(np.arange(300) % 30 == 7).astype(int)]
    source = batches_from([(np.arange(300.0)[:, None], y)], None, name="me")
    stream = begin_stream(source, np.asarray, normal=normal, rng=np.random.default_rng(0))
    usual = names[0] if normal is None else normal
    n_others = min((y != usual).sum(), 20)
    assert (stream.rows.y != usual).sum() == n_others
    assert (stream.rows.y == usual).sum() == min((y == usual).sum(), 60 - n_others)


def test_of_rows_that_come_once_the_first_become_landmarks(rows, monkeypatch):
    monkeypatch.setattr(eqsep.tables.batches, "SAMPLE", 100)
    X, y = rows
    order = np.argsort(y, kind="stable")  # one class first
    model = KernelEqualitySeparator(n_landmarks=40, random_state=0)
    model.fit(iter(batches(X[order], y[order])))
    first = set(map(bytes, X[order][:140]))
    assert all(bytes(row) in first for row in model.landmarks_)
    assert model.weight_sum_.tolist() == [(y == 0).sum(), (y == 1).sum()]


def test_tensors_stay_tensors(rows):
    X, y = torch.as_tensor(rows[0]), rows[1]
    model = KernelEqualitySeparator(n_landmarks=30, random_state=0).fit(batches(X, y))
    assert isinstance(model.coef_, torch.Tensor)
    whole = KernelEqualitySeparator(n_landmarks=30, random_state=0).fit(X, y)
    assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(
    ("stream", "told"),
    [
        ([], "There are no rows"),
        ([np.zeros((3, 2))], "requires y to be passed"),
        ([(np.zeros((3, 2)), [0, 1])], "a batch has 3 rows and 2 labels"),
        ([(np.eye(2), [0, 1]), (np.eye(3), [0, 1, 0])], "X has 3 features, but .* expecting 2"),
        ([(np.eye(2), [0, 0])], "normal and anomalous rows are needed"),
        ([(np.array([["a"], ["b"]]), [0, 1])], "could not convert"),
    ],
)
def test_bad_batches_are_refused(stream, told, once):
    with pytest.raises(ValueError, match=told):
        KernelEqualitySeparator().fit(iter(stream) if once else lambda: iter(stream))


def test_what_needs_all_rows_at_once_is_refused(rows):
    with pytest.raises(ValueError, match="closed=False holds all rows at once"):
        KernelEqualitySeparator(closed=False).fit(batches(*rows))
    with pytest.raises(ValueError, match="sample_weight goes with rows in memory"):
        KernelEqualitySeparator().fit(batches(*rows), sample_weight=rows[1])
