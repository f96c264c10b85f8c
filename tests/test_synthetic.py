"""Synthetic problems and Boolean functions: `eqsep.datasets.synthetic`."""

from operator import and_, ge, le, or_, xor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eqsep.datasets import make_circles, make_gaussians, make_hyperplane, make_logic
from eqsep.datasets.synthetic import LOGIC_NAMES

MAKERS = [make_hyperplane, make_gaussians, make_circles]
PROTOCOLS = ["corrected", "paper"]


def radius(X):
    return np.linalg.norm(X, axis=1)


def normals(split):
    return np.vstack([split.X_train[split.y_train == 0], split.X_test[split.y_test == 0]])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("make", MAKERS)
class TestEveryGenerator:
    def test_a_seed_gives_the_same_rows_again_and_another_seed_does_not(self, make, protocol):
        first, again, other = (make(protocol=protocol, random_state=seed) for seed in (3, 3, 4))
        assert_array_equal(first.X_train, again.X_train)
        assert_array_equal(first.X_test, again.X_test)
        assert_array_equal(first.kind_test, again.kind_test)
        assert not np.allclose(first.X_train, other.X_train)

    def test_global_random_state_is_left_alone(self, make, protocol):
        before = np.random.get_state()[1].copy()  # noqa: NPY002  it is read, not used
        make(protocol=protocol, random_state=0)
        assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002

    @pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
    def test_fractions_hold_in_training_and_test(self, make, protocol, fraction):
        split = make(n_samples=80, anomaly_fraction=fraction, protocol=protocol, random_state=0)
        assert len(split.X_train) == len(split.X_test) == 80
        assert split.y_train.mean() == split.y_test.mean() == fraction
        assert split.X_train.shape[1] == len(split.feature_names)

    def test_rows_are_shuffled(self, make, protocol):
        y = make(protocol=protocol, random_state=0).y_train
        assert (np.diff(y) != 0).sum() > 5


@pytest.mark.parametrize("make", MAKERS)
def test_every_generator_refuses_an_unknown_protocol(make):
    with pytest.raises(ValueError, match="Unknown protocol 'Paper'"):
        make(protocol="Paper")


@pytest.mark.parametrize("fraction", [0.0, 0.001, 1.0, -0.1])
@pytest.mark.parametrize("make", MAKERS)
def test_every_generator_needs_both_classes(make, fraction):
    with pytest.raises(ValueError, match="at least one normal and one anomalous row"):
        make(anomaly_fraction=fraction)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("n_features", [2, 5, 30])
def test_normal_rows_of_training_and_test_span_one_hyperplane(n_features, protocol):
    split = make_hyperplane(n_features=n_features, protocol=protocol, random_state=0)
    rows = normals(split)
    size = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
    assert size[-1] < 1e-8 * size[0] < size[-2]
    anomalies = split.X_train[split.kind_train == "uniform"]
    assert np.abs(anomalies).max() <= 10
    assert np.linalg.matrix_rank(np.vstack([rows, anomalies]) - rows.mean(axis=0)) == n_features


def test_the_papers_test_rows_are_the_training_rows_without_noise():
    split = make_hyperplane(n_samples=5000, noise=0.5, protocol="paper", random_state=0)
    noise = split.X_train - split.X_test
    assert_array_equal(split.kind_train, split.kind_test)
    assert_allclose([noise.mean(), noise.std()], [0, 0.5], atol=0.01)
    silent = make_hyperplane(noise=0.0, protocol="paper", random_state=0)
    assert_array_equal(silent.X_train, silent.X_test)


def test_corrected_test_rows_are_fresh_and_as_noisy_as_training():
    quiet = make_hyperplane(n_samples=3000, random_state=0)
    noisy = make_hyperplane(n_samples=3000, noise=0.5, random_state=0)
    assert not np.isin(noisy.X_test, noisy.X_train).any()
    rows = normals(quiet)
    direction = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][-1]
    for X, y in ((noisy.X_train, noisy.y_train), (noisy.X_test, noisy.y_test)):
        off_plane = (X[y == 0] - rows.mean(axis=0)) @ direction
        assert_allclose([off_plane.mean(), off_plane.std()], [0, 0.5], atol=0.03)


@pytest.mark.parametrize(
    ("n_features", "covariance"),
    [(2, [[0.2, 0.1], [0.1, 0.2]]), (3, 0.1 * np.eye(3)), (1, [[0.1]])],
)
def test_gaussians_have_the_papers_means_and_covariances(n_features, covariance):
    k = 4.0
    split = make_gaussians(
        n_samples=40_000, n_features=n_features, noise_multiplier=k, random_state=0
    )
    for kind, mean in (("normal", 1), ("other gaussian", -1)):
        rows = split.X_test[split.kind_test == kind]
        assert_allclose(rows.mean(axis=0), mean, atol=0.05)
        assert_allclose(
            np.cov(rows.T).reshape(n_features, -1), np.multiply(k, covariance), atol=0.06
        )


def test_both_protocols_draw_the_same_gaussians():
    draws = [make_gaussians(n_features=4, protocol=p, random_state=0).X_test for p in PROTOCOLS]
    assert_array_equal(*draws)


@pytest.mark.parametrize(
    ("protocol", "outer", "inner"), [("corrected", 2.0, 0.5), ("paper", 4.0, 0.25)]
)
def test_circles_have_the_stated_radii(protocol, outer, inner):
    split = make_circles(protocol=protocol, random_state=0)
    assert_allclose(radius(normals(split)), 1)
    assert_allclose(radius(split.X_train[split.kind_train == "outer"]), outer)
    assert_allclose(radius(split.X_test[split.kind_test == "inner"]), inner)
    assert (split.y_train.sum(), split.y_test.sum()) == (25, 25)
    assert "inner" not in split.kind_train
    assert "outer" not in split.kind_test


def test_noise_blurs_the_circles():
    split = make_circles(n_samples=4000, noise=0.1, random_state=0)
    assert_allclose(np.std(radius(normals(split))), 0.1, atol=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_hyperplane(n_features=1), "n_features must be at least 2, got 1"),
        (lambda: make_gaussians(n_features=0), "n_features must be at least 1, got 0"),
        (lambda: make_hyperplane(noise=-1.0), "noise must be a finite number, zero or more"),
        (lambda: make_circles(noise=float("nan")), "noise must be .* got nan"),
        (lambda: make_gaussians(noise_multiplier=float("inf")), "noise_multiplier .* got inf"),
    ],
)
def test_impossible_shapes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


MEANINGS = {
    "false": lambda *_: False,
    "and": and_,
    "not implies": lambda a, b: not le(a, b),
    "x1": lambda a, _: a,
    "not implied by": lambda a, b: not ge(a, b),
    "x2": lambda _, b: b,
    "xor": xor,
    "or": or_,
    "nor": lambda a, b: not (a or b),
    "xnor": lambda a, b: a == b,
    "not x2": lambda _, b: not b,
    "implied by": ge,
    "not x1": lambda a, _: not a,
    "implies": le,
    "nand": lambda a, b: not (a and b),
    "true": lambda *_: True,
}


def test_the_sixteen_functions_are_all_there_and_all_different():
    assert set(LOGIC_NAMES) == set(MEANINGS)
    assert len({tuple(make_logic(name)[1]) for name in LOGIC_NAMES}) == 16


@pytest.mark.parametrize("name", LOGIC_NAMES)
def test_each_name_means_what_it_says(name):
    X, y = make_logic(name=name)
    assert y.tolist() == [int(MEANINGS[name](bool(a), bool(b))) for a, b in X]


@pytest.mark.parametrize("number", range(16))
def test_number_name_and_truth_table_are_three_routes_to_one_function(number):
    X, y = make_logic(number)
    assert int("".join(map(str, y)), 2) == number
    for route in (LOGIC_NAMES[number], LOGIC_NAMES[number].upper(), np.int64(number), y):
        assert_array_equal(make_logic(route)[1], y)
    assert_array_equal(X, [[0, 0], [0, 1], [1, 0], [1, 1]])


@pytest.mark.parametrize("n_inputs", [1, 2, 3, 5])
def test_corners_are_in_lexicographic_order_for_any_number_of_inputs(n_inputs):
    X, _ = make_logic([0, 1] * 2 ** (n_inputs - 1))
    assert X.shape == (2**n_inputs, n_inputs)
    assert_array_equal(X @ 2.0 ** np.arange(n_inputs)[::-1], np.arange(2**n_inputs))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("xro", "'xro': expected one of false, and,"),
        (16, "0 to 15, got 16"),
        (-1, "0 to 15, got -1"),
        ([0, 1, 1], r"shape \(3,\)"),
        ([1], r"shape \(1,\)"),
        ([[0, 1], [1, 0]], r"shape \(2, 2\)"),
        ([0, 1, 2, 0], r"only 0 and 1, got \[0, 1, 2\]"),
    ],
)
def test_what_is_no_boolean_function_is_refused(function, message):
    with pytest.raises(ValueError, match=message):
        make_logic(function)
