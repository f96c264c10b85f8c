"""Pieces of the data: partial_fit, merge and forget give what one fit gives."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from spheres import problem, relative

from eqsep import KernelEqualitySeparator
from eqsep.kernels import LOCAL_KERNELS, Exponential

NAMES = sorted(LOCAL_KERNELS)
quick = settings(max_examples=20, deadline=None)


@quick
@given(data=st.data())
def test_pieces_in_any_number_and_order_give_one_fit(data):
    X, y = problem(80, seed=data.draw(st.integers(0, 100)))
    X = X.astype(data.draw(st.sampled_from([np.float64, np.float32])))
    weight = np.random.default_rng(0).uniform(0, 2, size=80) if data.draw(st.booleans()) else None
    settings = {
        "kernel": data.draw(st.sampled_from(NAMES)),
        "alpha": data.draw(st.sampled_from([1e-3, 1.0])),
        "target": data.draw(st.sampled_from([0.0, -1.0])),
        "landmarks": X[:25],
        "chunk_size": data.draw(st.integers(1, 100)),
    }
    whole = KernelEqualitySeparator(**settings).fit(X, y, sample_weight=weight)
    order = np.array(data.draw(st.permutations(range(80))))
    cuts = data.draw(st.lists(st.integers(1, 79), max_size=12, unique=True))
    model = KernelEqualitySeparator(**settings)
    for piece in np.split(order, sorted(cuts)):
        model.partial_fit(
            X[piece], y[piece], sample_weight=None if weight is None else weight[piece]
        )
    assert relative(model.coef_, whole.coef_) < 1e-6
    assert_allclose(model.weight_sum_, whole.weight_sum_)
    assert_array_equal(model.classes_, whole.classes_)


@quick
@given(data=st.data())
def test_merging_gives_one_fit(data):
    X, y = problem(80, seed=data.draw(st.integers(0, 100)))
    kernel = Exponential(data.draw(st.sampled_from([0.3, 3.0])))
    model = KernelEqualitySeparator(kernel=kernel, landmarks=X[:25])
    cuts = sorted(data.draw(st.lists(st.integers(2, 78), min_size=1, max_size=5, unique=True)))
    parts = [clone(model).partial_fit(X[p], y[p]) for p in np.split(np.arange(80), cuts)]
    first = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
    for part in data.draw(st.permutations(parts)):
        kept = part.gram_.copy()
        assert first.merge(part) is first
        assert_array_equal(part.gram_, kept)
    assert relative(first.coef_, model.fit(X, y).coef_) < 1e-6


@quick
@given(data=st.data())
def test_forgetting_undoes_learning(data):
    X, y = problem(80, seed=data.draw(st.integers(0, 100)))
    kept = data.draw(st.integers(10, 79))
    model = KernelEqualitySeparator(kernel=data.draw(st.sampled_from(NAMES)), landmarks=X[:25])
    before = clone(model).fit(X[:kept], y[:kept])
    model.fit(X, y).forget(X[kept:], y[kept:])
    assert relative(model.coef_, before.coef_) < 1e-6
    assert_allclose(model.weight_sum_, before.weight_sum_)


def test_a_fit_starts_afresh_and_learning_goes_on_from_it():
    X, y = problem()
    model = KernelEqualitySeparator(landmarks=X[:20])
    model.partial_fit(X, y).fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    assert relative(model.coef_, clone(model).fit(X, y).coef_) < 1e-10
    model.set_params(closed=False).fit(X, y)
    model.set_params(closed=True).partial_fit(X, y)
    assert_array_equal(model.weight_sum_, [90, 30])
    assert "separator_" not in vars(model)


def test_only_so_much_can_be_forgotten():
    X, y = problem()
    model = KernelEqualitySeparator().fit(X, y)
    with pytest.raises(ValueError, match="Cannot forget more than was learnt"):
        model.forget(np.vstack([X, X[:1]]), np.append(y, y[0]))
    with pytest.raises(ValueError, match="Unknown labels 7"):
        model.forget(X[:1], [7])
    assert_allclose(model.forget(X, y).coef_, 0, atol=1e-9)


def test_pieces_of_one_class_are_learnt_by_the_names_of_their_labels():
    X, y = problem()
    kinds = np.where(y == 0, "normal", np.where(X[:, 0] > 0, "smurf", "neptune"))
    whole = KernelEqualitySeparator(landmarks=X[:20]).fit(X, kinds)
    for order in (["normal", "smurf", "neptune"], ["smurf", "neptune", "normal"]):
        model = KernelEqualitySeparator(landmarks=X[:20])
        for kind in order:
            model.partial_fit(X[kinds == kind], kinds[kinds == kind])
        assert relative(model.coef_, whole.coef_) < 1e-10
        assert_array_equal(model.classes_, whole.classes_)
    parts = [clone(model).partial_fit(X[kinds == kind], kinds[kinds == kind]) for kind in order]
    assert_array_equal(parts[0].classes_, ["normal", "smurf"])
    assert_array_equal(parts[0].merge(parts[1]).merge(parts[2]).classes_, ["normal", "anomaly"])


def test_a_label_without_a_meaning_needs_its_classes():
    X, y = problem()
    with pytest.raises(ValueError, match="Say which label is normal: normal=7"):
        KernelEqualitySeparator().partial_fit(X, np.full(len(X), 7))
    model = KernelEqualitySeparator(normal=7)
    model.partial_fit(X[y == 0], np.full(90, 7), classes=[7, 3]).partial_fit(X[y == 1], [3] * 30)
    assert_array_equal(model.classes_, [7, 3])
    with pytest.raises(ValueError, match="Unknown labels 4"):
        model.partial_fit(X, y + 3)


@pytest.mark.parametrize(("normal", "other"), [(1, 0), (1, -1), (7, 3)])
def test_a_normal_label_settles_what_a_piece_of_one_class_means(normal, other):
    X, y = problem()
    labels = np.where(y == 0, normal, other)
    whole = KernelEqualitySeparator(normal=normal, landmarks=X[:20]).fit(X, labels)
    parts = [clone(whole).partial_fit(X[y == c], labels[y == c]) for c in (0, 1)]
    for first, second in (parts, parts[::-1]):
        merged = copy.deepcopy(first).merge(second)
        assert_array_equal(merged.classes_, whole.classes_)
        assert relative(merged.coef_, whole.coef_) < 1e-9
        assert merged.partial_fit(X, labels).score(X, labels) > 0.9


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"alpha": 2.0}, "alpha"),
        ({"target": -1.0}, "target"),
        ({"gamma": 9.0}, "kernel_"),
        ({"kernel": "laplacian"}, "kernel_"),
        ({"landmarks": np.ones((5, 3))}, "landmarks_"),
        ({"landmarks": np.ones((6, 3))}, "landmarks_"),
        ({"closed": False}, "closed"),
    ],
)
def test_what_differs_does_not_merge(change, name):
    X, y = problem()
    model = KernelEqualitySeparator(gamma=1.0, landmarks=X[:5]).fit(X, y)
    other = clone(model).set_params(**change).fit(X, y)
    with pytest.raises(ValueError, match=f"same {name} can be merged"):
        model.merge(other)


def test_two_meanings_of_normal_do_not_merge():
    X, y = problem()
    model = KernelEqualitySeparator(landmarks=X[:5])
    with pytest.raises(ValueError, match="same normal label"):
        clone(model).fit(X, y).merge(model.set_params(normal=1).fit(X, y))


@pytest.mark.parametrize("method", ["partial_fit", "merge", "forget"])
def test_an_open_separator_has_no_sums(method):
    with pytest.raises(AttributeError, match=f"no attribute '{method}'"):
        getattr(KernelEqualitySeparator(closed=False), method)
    assert callable(getattr(KernelEqualitySeparator(), method))


@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
def test_rounding_bears_on_the_coefficients_as_documented(library, dtype, alpha):
    X, y = problem(600)
    X = library(X.astype(dtype))
    model = KernelEqualitySeparator(landmarks=X[:100], alpha=alpha)
    whole = clone(model).fit(X, y)
    for piece in np.split(np.random.default_rng(0).permutation(600), [1, 2, 50, 400]):
        model.partial_fit(X[piece], y[piece])
    largest = np.linalg.eigvalsh(np.asarray(whole.gram_))[-1]
    assert relative(model.coef_, whole.coef_) <= 2e-16 * largest / alpha


def test_sums_of_single_precision_are_kept_in_double():
    X, y = problem()
    for library in (np.asarray, torch.as_tensor):
        model = KernelEqualitySeparator(landmarks=X[:20]).fit(library(X.astype(np.float32)), y)
        assert str(model.gram_.dtype).endswith("float64")
        assert str(model.decision_function(library(X)).dtype).endswith("float32")
        assert (
            relative(model.coef_, KernelEqualitySeparator(landmarks=X[:20]).fit(X, y).coef_) < 1e-3
        )
