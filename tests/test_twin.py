import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import balanced_accuracy_score

from eqsep import EqualitySeparator, TwinSeparator
from eqsep.datasets import make_gaussians, make_logic


@pytest.fixture(scope="module")
def split():
    return make_gaussians(noise_multiplier=1.0, n_samples=200, random_state=0)


def test_parallel_planes_with_t_1_decide_as_the_halfspace_between_them(split):
    twin = TwinSeparator(parallel=True, t=1, random_state=0).fit(split.X_train, split.y_train)
    w, (b1, b2) = twin.coef_[0], twin.intercept_
    assert_allclose(twin.coef_[1], w)
    X = np.random.default_rng(1).uniform(-20, 20, (10_000, 2))
    halfspace = (b1 - b2) * (2 * X @ w + b1 + b2) > 0
    assert_array_equal(twin.predict(X) == 1, halfspace)
    assert 0.1 < halfspace.mean() < 0.9


def test_parallel_planes_separate_gaussians(split):
    twin = TwinSeparator(parallel=True, random_state=0).fit(split.X_train, split.y_train)
    assert twin.score(split.X_test, split.y_test) > 0.97


def test_each_free_plane_is_an_equality_separator_of_its_class(split):
    twin = TwinSeparator(random_state=0).fit(split.X_train, split.y_train)
    for side in (0, 1):
        alone = EqualitySeparator(margin_class=side, random_state=0)
        alone.fit(split.X_train, split.y_train)
        assert_allclose(
            twin.distances(split.X_test)[:, side],
            alone.distance(split.X_test),
            rtol=1e-3,
            atol=1e-3,
        )


def test_the_decision_is_the_ratio_of_distances_against_t(split):
    for t in (0.5, 1.0, 3.0):
        twin = TwinSeparator(t=t, random_state=0).fit(split.X_train, split.y_train)
        d1, d2 = twin.distances(split.X_test).T
        assert_array_equal(twin.predict(split.X_test) == 1, d2 / d1 < t)


def test_a_larger_t_raises_more_alarms(split):
    alarms = [
        TwinSeparator(t=t, random_state=0)
        .fit(split.X_train, split.y_train)
        .predict(split.X_test)
        .mean()
        for t in (0.1, 1.0, 10.0)
    ]
    assert alarms[0] <= alarms[1] <= alarms[2]
    assert alarms[0] < alarms[2]


def test_xor_has_two_free_planes_and_no_parallel_pair():
    X, y = make_logic("xor")
    free = TwinSeparator(random_state=0).fit(X, y)
    assert free.predict(X).tolist() == y.tolist()
    parallel = TwinSeparator(parallel=True, random_state=0).fit(X, y)
    assert (parallel.predict(X) != y).any(), "no halfspace classifies XOR"


def test_shuffled_labels_ruin_the_score(split):
    def quality(y, parallel):
        twin = TwinSeparator(parallel=parallel, random_state=0).fit(split.X_train, y)
        return balanced_accuracy_score(split.y_test, twin.predict(split.X_test))

    shuffled = np.random.default_rng(0).permutation(split.y_train)
    for parallel in (False, True):
        assert quality(split.y_train, parallel) > 0.9
        assert quality(shuffled, parallel) < 0.8


def test_weights_count_as_repetitions(split):
    X, y = split.X_train[:60], split.y_train[:60]
    times = np.random.default_rng(0).integers(1, 4, 60)
    twin = TwinSeparator(parallel=True, separator=EqualitySeparator(alpha=0.1), random_state=0)
    weighted = twin.fit(X, y, sample_weight=times).coef_
    repeated = twin.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).coef_
    assert_allclose(weighted, repeated, rtol=1e-4)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e300])
def test_scale_does_not_matter_and_no_row_is_too_far_to_score(split, parallel, scale):
    twin = TwinSeparator(parallel=parallel, random_state=0)
    twin.fit(split.X_train * scale, split.y_train)
    assert balanced_accuracy_score(split.y_test, twin.predict(split.X_test * scale)) > 0.9
    assert np.isfinite(twin.decision_function([[1.7e308, 1.7e308], [-1.7e308, 0.0]])).all()


def test_rows_that_are_all_alike_give_a_finite_score():
    twin = TwinSeparator(random_state=0).fit(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
    assert np.isfinite(twin.decision_function(np.ones((2, 2)))).all()


@pytest.mark.parametrize("t", [0, -1, float("nan")])
def test_t_must_be_positive(split, t):
    with pytest.raises(ValueError, match="t must be positive"):
        TwinSeparator(t=t).fit(split.X_train, split.y_train)
