"""The volume of enclosed regions: `eqsep.theory.volume`."""

from math import factorial, inf, pi

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eqsep.theory import region_volume


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_n_slabs_make_a_parallelepiped(n, rng):
    W, b, eps = rng.standard_normal((n, n)), rng.standard_normal(n), rng.uniform(0.1, 2, n)
    expected = 2**n * np.prod(eps) / abs(np.linalg.det(W))
    assert_allclose(region_volume(W, b, epsilon=eps), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_slabs_and_the_halfspaces_of_their_faces_agree(n, rng):
    W, b, eps = rng.standard_normal((n + 2, n)), 0.1 * rng.standard_normal(n + 2), 1.0
    slabs = region_volume(W, b, epsilon=eps)
    faces = region_volume(
        np.vstack([W, -W]), np.concatenate([eps + b, eps - b]), family="halfspace"
    )
    assert_allclose(slabs, faces, rtol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_simplex_has_volume_one_over_n_factorial(n):
    normals = np.vstack([np.eye(n), -np.ones(n)])
    offsets = np.append(np.zeros(n), 1.0)
    assert_allclose(region_volume(normals, offsets, family="halfspace"), 1 / factorial(n))


def test_a_cut_cube_against_random_points(rng):
    W = np.vstack([np.eye(3), [[1, 1, 1]], [[1, -2, 0.5]]])
    b = np.array([0, 0, 0, 0.3, -0.2])
    x = rng.uniform(-1, 1, (200_000, 3))
    inside = np.mean(np.all(np.abs(x @ W.T + b) <= 1, axis=1))
    error = np.sqrt(inside * (1 - inside) / len(x))
    assert abs(region_volume(W, b) / 8 - inside) <= 3 * error


@pytest.mark.parametrize("family", ["equality", "halfspace"])
def test_volume_scales_with_the_determinant(family, rng):
    W = np.vstack([np.eye(3), -np.ones((1, 3)), rng.standard_normal((1, 3))])
    b = np.array([0.1, 0.2, 0.3, 1.0, 0.5])
    A = rng.standard_normal((3, 3))
    moved = region_volume(W @ np.linalg.inv(A), b, family=family)
    assert_allclose(moved, abs(np.linalg.det(A)) * region_volume(W, b, family=family), rtol=1e-8)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_scale_does_not_matter(size):
    normals, offsets = np.array([[1, 0], [0, 1], [-1, -1]]), np.array([0, 0, 1.0])
    assert_allclose(region_volume(normals / size, offsets, family="halfspace"), size**2 / 2)
    assert_allclose(region_volume(normals, offsets * size, family="halfspace"), size**2 / 2)


def test_a_needle_of_slabs_keeps_its_digits():
    needle = region_volume([[1, 0], [1e-7, 1], [1, 1]], epsilon=[1e-9, 1, 5])
    assert_allclose(needle, 4e-9)


def test_a_needle_of_halfspaces_keeps_its_digits():
    normals = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]])
    volume = region_volume(normals, [1e-6, 1e-6, 1, 1], family="halfspace")
    assert_allclose(volume, 2e-6, rtol=1e-9)


def test_open_regions_are_infinite():
    assert region_volume([[1, 0]]) == inf
    assert region_volume([[1, 0], [2, 0]], [0, 1]) == inf
    assert region_volume([[1, 0], [0, 1]], family="halfspace") == inf


def test_empty_and_flat_regions_have_no_volume():
    assert region_volume([[1, 0], [1, 0]], [0, 5]) == 0.0
    assert region_volume([[1, 0], [0, 1], [1, 0]], [0, 0, 5]) == 0.0
    assert region_volume([[1.0], [-1.0]], [0, 0], family="halfspace") == 0.0
    assert region_volume([[1.0], [-1.0]], [0, -1], family="halfspace") == 0.0


def test_the_ball():
    assert_allclose(region_volume([[5, 5]], family="rbf", epsilon=3), 9 * pi)
    assert_allclose(region_volume([[0, 0, 0]], family="rbf"), 4 / 3 * pi)
    with pytest.raises(ValueError, match="one ball, got 2 rows"):
        region_volume([[0, 0], [1, 1]], family="rbf")


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="offsets must be one finite number, or one for each of"):
        region_volume([[1, 0]], [1, 2])
    with pytest.raises(ValueError, match="epsilon must be one finite number"):
        region_volume([[1, 0]], epsilon=np.nan)
    with pytest.raises(ValueError, match="epsilon must be positive, got 0"):
        region_volume([[1, 0]], epsilon=0)
    with pytest.raises(ValueError, match="unknown family 'cone'"):
        region_volume([[1, 0]], family="cone")
