"""Regions that separators enclose: `eqsep.theory.regions`."""

from bisect import bisect_left
from math import factorial, inf, pi
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eqsep.theory import (
    closing_number,
    closing_probability,
    is_closed,
    region_volume,
)
from paper.theory import bounding_parallelepiped, enclosing_probability

FAMILIES = ["rbf", "equality", "halfspace"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_closing_numbers_are_those_of_the_paper(n):
    assert [closing_number(family, n) for family in FAMILIES] == [1, n, n + 1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_closing_number_is_where_the_probability_leaves_zero(family, n):
    number = closing_number(family, n)
    assert closing_probability(family, n, number) > 0
    for k in range(1, number):
        assert closing_probability(family, n, k) == 0


@pytest.mark.parametrize(
    "n", [2, *(pytest.param(n, marks=pytest.mark.extra) for n in (3, 4, 5, 6))]
)
def test_halfspaces_close_as_often_as_the_formula_says(n, rng):
    draws, ks = 100, range(n, 3 * n + 1)
    first = np.empty(draws)
    for i in range(draws):
        normals = rng.standard_normal((3 * n, n))
        # More halfspaces never open a region, so the first k that closes is found by halving.
        first[i] = ks[0] + bisect_left(
            ks, True, key=lambda k, w=normals: bool(is_closed(w[:k], family="halfspace"))
        )
    for k in ks:
        p = closing_probability("halfspace", n, k)
        assert abs(np.mean(first <= k) - p) <= 3 * np.sqrt(p * (1 - p) / draws), k


@pytest.mark.parametrize("n", range(2, 7))
def test_equality_separators_close_from_the_nth_on(n, rng):
    normals = rng.standard_normal((50, 3 * n, n))
    for k in range(n, 3 * n + 1):
        assert all(is_closed(w[:k], family="equality") for w in normals)
        assert closing_probability("equality", n, k) == 1
    assert not any(is_closed(w[: n - 1], family="equality") for w in normals)


@pytest.mark.parametrize("n", range(1, 9))
def test_wendels_symmetry(n):
    """k vectors miss a halfspace as often as their Gale dual in k - n dimensions hits one."""
    assert closing_probability("halfspace", n, 2 * n) == 0.5
    for k in range(n + 1, 3 * n):
        p, q = closing_probability("halfspace", n, k), closing_probability("halfspace", k - n, k)
        assert_allclose(p + q, 1, atol=1e-15)


def test_many_separators_neither_overflow_nor_cancel():
    assert closing_probability("halfspace", 600, 1200) == 0.5
    assert closing_probability("halfspace", 60, 61) == 2.0**-60
    assert closing_probability("halfspace", 3000, 3001) == 0.0  # 2^-3000 is no float
    assert closing_probability("halfspace", 2, 3000) == 1.0


def test_more_separators_close_more_often():
    p = [closing_probability("halfspace", 4, k) for k in range(1, 40)]
    assert np.all(np.diff(p) >= 0)
    assert p[-1] > 0.999999


@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_halfspace_certificates_prove_the_answer(n, rng):
    answers = set()
    for _ in range(30):
        normals = rng.standard_normal((2 * n, n))  # closed half of the time
        closure = is_closed(normals, family="halfspace")
        answers.add(bool(closure))
        if closure:
            assert (closure.combination > 0).all()
            assert_allclose(closure.combination @ normals, 0, atol=1e-9)
            assert np.linalg.matrix_rank(normals) == n
        else:
            assert_allclose(np.linalg.norm(closure.escape), 1)
            assert (normals @ closure.escape >= -1e-9).all()
    assert answers == {True, False}


def test_equality_certificates_prove_the_answer(rng):
    flat = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 4))
    closure = is_closed(flat, family="equality")
    assert not closure
    assert_allclose(flat @ closure.escape, 0, atol=1e-12)
    full = np.vstack([flat, rng.standard_normal((2, 4))])
    closure = is_closed(full, family="equality")
    assert closure
    assert np.linalg.matrix_rank(full[list(closure.basis)]) == 4


@pytest.mark.parametrize("family", ["equality", "halfspace"])
def test_lengths_and_order_of_normals_do_not_matter(family, rng):
    for _ in range(20):
        normals = rng.standard_normal((7, 3))
        lengths = 10.0 ** rng.integers(-12, 13, size=(7, 1))
        scaled = (lengths * normals)[rng.permutation(7)]
        assert bool(is_closed(normals, family=family)) == bool(is_closed(scaled, family=family))


def test_tiny_and_huge_normals_do_not_overflow():
    normals = np.array([[1e-200, 0], [0, 1e200], [-1e-200, -1e-200]])
    assert is_closed(normals, family="halfspace")
    assert is_closed(normals, family="equality")


def test_parallel_normals_close_only_with_both_signs_and_every_direction():
    assert is_closed([[1.0], [-2.0]], family="halfspace")
    assert not is_closed([[1.0], [2.0]], family="halfspace")
    strip = is_closed([[1, 0], [-1, 0]], family="halfspace")
    assert not strip
    assert_allclose(np.abs(strip.escape), [0, 1])
    # Half of a strip: the normals span, but no positive combination vanishes.
    assert not is_closed([[1, 0], [-1, 0], [0, 1]], family="halfspace")


def test_a_ball_is_closed_wherever_its_centre_is():
    assert is_closed([[0.0, 0.0]], family="rbf")


@pytest.mark.parametrize(
    ("normals", "message"),
    [
        ([1.0, 2.0], r"table of shape .*got shape \(2,\).*\[normal\]"),
        (np.empty((0, 3)), r"at least one row, got shape \(0, 3\)"),
        ([[1.0, np.nan]], r"finite, got .*nan.* in row 0"),
        ([[1.0, 0.0], [0.0, 0.0]], r"non-zero, got zeros in row 1"),
    ],
)
def test_bad_normals_are_refused(normals, message):
    with pytest.raises(ValueError, match=message):
        is_closed(normals)


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "3"])
def test_bad_counts_are_refused(value):
    with pytest.raises(ValueError, match="n_features must be a whole number of at least 1"):
        closing_number("rbf", value)
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        closing_probability("rbf", 2, value)


def test_an_unknown_family_is_refused_by_name():
    for call in (
        lambda: closing_number("slab", 2),
        lambda: closing_probability("slab", 2, 2),
        lambda: is_closed([[1.0]], family="slab"),
    ):
        with pytest.raises(ValueError, match=r"'slab': expected one of \['equality', 'halfspace'"):
            call()


def measured(family, n, k, *, draws, margin=1.0, seed=1):
    """The share of random regions whose volume is finite and positive, by their volumes."""
    rng = np.random.default_rng(seed)
    volumes = np.array(
        [
            region_volume(
                rng.standard_normal((k, n)), rng.standard_normal(k), family=family, epsilon=margin
            )
            for _ in range(draws)
        ]
    )
    share = np.mean((volumes > 0) & np.isfinite(volumes))
    return share, np.sqrt(max(share * (1 - share), 1 / draws) / draws)


@pytest.mark.parametrize(
    ("n", "k"),
    [(2, 5), *(pytest.param(n, n + 3, marks=pytest.mark.extra) for n in (1, 3))],
)
def test_halfspaces_enclose_as_often_as_the_formula_says(n, k):
    value, error = enclosing_probability("halfspace", n, k)
    share, spread = measured("halfspace", n, k, draws=100)
    assert error == 0
    assert abs(share - value) <= 3.5 * spread


@pytest.mark.parametrize(
    ("n", "k", "margin"), [(1, 3, 0.5), pytest.param(3, 5, 0.7, marks=pytest.mark.extra)]
)
def test_slabs_enclose_as_often_as_their_volumes_say(n, k, margin):
    value, error = enclosing_probability("equality", n, k, margin=margin)
    share, spread = measured("equality", n, k, draws=100, margin=margin)
    assert 0.1 < value < 1
    assert 0 < error < 0.03
    assert abs(share - value) <= 3.5 * np.hypot(error, spread)


def test_slabs_are_measured_to_the_third_digit_where_corners_can_be_counted():
    """0.568 by 100,000 draws of five slabs, and a look at each of their corners."""
    value, error = enclosing_probability("equality", 2, 5)
    assert error < 0.003
    assert abs(value - 0.568) < 3.5 * np.hypot(error, 0.0016)


@pytest.mark.extra
@pytest.mark.parametrize(("n", "k", "margin"), [(12, 24, 3.0), (2, 900, 0.5), (40, 4000, 10.0)])
def test_corners_are_not_counted_where_draws_of_all_slabs_say_more(n, k, margin, monkeypatch):
    found = SimpleNamespace(x=np.ones(n + 1))  # a ball of radius 1 in all slabs
    monkeypatch.setattr("paper.theory.chances.maximise", lambda *_, **__: found)
    value, error = enclosing_probability("equality", n, k, margin=margin)
    assert value == 1
    assert 0 < error < 0.03


@pytest.mark.extra
def test_the_offsets_of_halfspaces_may_have_any_size():
    """The law holds for every distribution that a change of all signs leaves as it is."""
    rng = np.random.default_rng(0)
    volumes = [
        region_volume(
            rng.uniform(-1, 1, (5, 2)), 30 * rng.uniform(-1, 1, 5) ** 3, family="halfspace"
        )
        for _ in range(200)
    ]
    share = np.mean([0 < volume < np.inf for volume in volumes])
    assert abs(share - 0.1875) < 3.5 * np.sqrt(0.1875 * 0.8125 / 200)


@pytest.mark.parametrize("family", ["equality", "halfspace"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_positive_volume_asks_for_more_than_no_way_out(family, n):
    number = closing_number(family, n)
    assert enclosing_probability(family, n, number).value > 0
    for k in (*range(1, number + 1), 2 * n):
        assert enclosing_probability(family, n, k).value <= closing_probability(family, n, k)


def test_n_slabs_always_meet_and_wide_ones_nearly_always():
    assert enclosing_probability("equality", 7, 7) == (1, 0)
    narrow, wide = (enclosing_probability("equality", 2, 6, margin=m).value for m in (0.1, 10))
    assert narrow < 0.1 < 0.98 < wide <= 1


def test_one_ball_is_closed_and_several_are_refused():
    assert enclosing_probability("rbf", 3, 1) == (1, 0)
    with pytest.raises(ValueError, match="known for one ball, got k=2"):
        enclosing_probability("rbf", 3, 2)


def test_bad_arguments_of_a_chance_are_refused():
    with pytest.raises(ValueError, match="margin must be positive, got 0"):
        enclosing_probability("equality", 2, 3, margin=0)
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, got 0"):
        enclosing_probability("equality", 2, 0)


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


def test_bad_arguments_of_a_volume_are_refused():
    with pytest.raises(ValueError, match="offsets must be one finite number, or one for each of"):
        region_volume([[1, 0]], [1, 2])
    with pytest.raises(ValueError, match="epsilon must be one finite number"):
        region_volume([[1, 0]], epsilon=np.nan)
    with pytest.raises(ValueError, match="epsilon must be positive, got 0"):
        region_volume([[1, 0]], epsilon=0)
    with pytest.raises(ValueError, match="unknown family 'cone'"):
        region_volume([[1, 0]], family="cone")


@pytest.mark.parametrize("n", [1, 2, 5])
def test_along_the_axes_it_is_the_hyperrectangle_of_least_and_largest_values(n, rng):
    rows, others = rng.standard_normal((30, n)) * 3, rng.standard_normal((500, n)) * 3
    box = bounding_parallelepiped(rows)
    assert len(box.planes) == closing_number("equality", n)
    assert box.contains(rows).all()
    low, high = rows.min(axis=0), rows.max(axis=0)
    within = ((low <= others) & (others <= high)).all(axis=1)
    assert (box.contains(others) == within).all()
    assert within.any()
    assert not within.all()
    assert_allclose(box.volume, np.prod(high - low))


@pytest.mark.parametrize("n", [2, 3])
def test_other_normals_make_a_parallelepiped(n, rng):
    """A cube carried by a linear map A has the normals of A^-1, and holds what A makes of it."""
    A, shift = rng.standard_normal((n, n)), rng.standard_normal(n)
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * n), axis=-1).reshape(-1, n)
    box = bounding_parallelepiped(corners @ A.T + shift, np.linalg.inv(A))
    points = rng.uniform(-1.5, 1.5, (400, n))
    assert (box.contains(points @ A.T + shift) == (np.abs(points) <= 1).all(axis=1)).all()
    assert box.contains(corners @ A.T + shift).all()
    assert_allclose(box.volume, 2**n * abs(np.linalg.det(A)))


def test_one_row_is_a_box_of_no_volume():
    box = bounding_parallelepiped([[1.0, 2.0]])
    assert box.volume == 0
    assert box.contains([[1, 2], [1, 2.001]]).tolist() == [True, False]


def test_normals_that_leave_a_direction_open_are_refused():
    rows = np.zeros((2, 2))
    for normals in ([[1, 0]], [[1, 2], [2, 4]], [[1, 0], [0, 1], [1, 1]]):
        with pytest.raises(ValueError, match="2 independent vectors"):
            bounding_parallelepiped(rows, normals)
    with pytest.raises(ValueError, match="X must be a finite table"):
        bounding_parallelepiped([[np.nan, 1]])
