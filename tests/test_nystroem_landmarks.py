"""The choice of landmarks: by value, a share of each class, all distinct rows by default."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from spheres import problem, relative

from eqsep import KernelEqualitySeparator
from eqsep.engine.nystroem import choose_landmarks, row_keys

quick = settings(max_examples=20, deadline=None)


def test_every_distinct_row_is_a_landmark_by_default():
    X, y = problem(1600)
    twice = np.vstack([X, X[:400]])
    model = KernelEqualitySeparator(random_state=0).fit(twice, np.append(y, y[:400]))
    assert model.landmarks_.shape == (1600, 3)
    assert_array_equal(np.unique(model.landmarks_, axis=0), np.unique(X, axis=0))


def test_more_landmarks_than_are_wise_are_taken_with_a_warning(monkeypatch):
    monkeypatch.setattr("eqsep.engine.nystroem.MANY", 100)
    X, y = problem(120)
    with pytest.warns(UserWarning, match=r"All 120 distinct rows.*Set n_landmarks=1500") as caught:
        model = KernelEqualitySeparator().fit(X, y)
    assert caught[0].filename == __file__
    assert len(model.landmarks_) == 120
    KernelEqualitySeparator(n_landmarks=120).fit(X, y)  # asked for: no warning, else an error


@quick
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 40),
    library=st.sampled_from([np.asarray, torch.as_tensor]),
)
def test_landmarks_depend_on_the_distinct_rows_only(seed, n, library):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-2, 3, size=(60, 2)) / 3, rng.integers(0, 2, size=60).astype(float)
    again = rng.permutation(np.concatenate([np.arange(60), rng.integers(0, 60, size=50)]))
    signed = np.where(X == 0, -0.0, X)
    chosen = choose_landmarks(library(X), y, n=n, rng=np.random.RandomState(seed))
    other = choose_landmarks(library(signed)[again], y[again], n=n, rng=np.random.RandomState(seed))
    assert_array_equal(chosen, other)
    assert len(np.unique(chosen, axis=0)) == len(chosen) == min(n, len(np.unique(X, axis=0)))


@pytest.mark.parametrize(
    ("n_normal", "n_anomalous", "got"), [(99, 99, 10), (99, 4, 4), (12, 99, 18)]
)
def test_up_to_a_third_of_the_landmarks_is_anomalous(n_normal, n_anomalous, got):
    X = np.arange(n_normal + n_anomalous)[:, None] * 1.0
    y = (X[:, 0] >= n_normal).astype(float)
    chosen = choose_landmarks(X, y, n=30, rng=np.random.RandomState(0))
    assert len(chosen) == 30
    assert (chosen >= n_normal).sum() == got


def test_keys_of_rows_of_small_integers_do_not_collide():
    X = np.stack(np.meshgrid(*[np.arange(8.0)] * 5), axis=-1).reshape(-1, 5)
    keys = row_keys(X, rng=np.random.RandomState(0))
    assert len(np.unique(keys)) == len(X) == 8**5
    assert abs((keys >> np.uint64(63)).mean() - 0.5) < 0.02


def test_another_seed_draws_other_landmarks():
    X, y = problem()
    first, same, other = (
        KernelEqualitySeparator(n_landmarks=10, random_state=seed).fit(X, y).landmarks_
        for seed in (0, 0, 1)
    )
    assert_array_equal(first, same)
    assert (first != other).any()


def test_weight_zero_is_absence_and_weight_two_is_repetition():
    X, y = problem()
    weight = np.random.default_rng(0).integers(0, 3, size=len(X))
    model = KernelEqualitySeparator(n_landmarks=20, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert_array_equal(weighted.landmarks_, repeated.landmarks_)
    assert relative(weighted.coef_, repeated.coef_) < 1e-10
