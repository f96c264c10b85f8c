"""Closing numbers, probabilities and certificates: `eqsep.theory.closing`."""

from bisect import bisect_left

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eqsep.theory import closing_number, closing_probability, is_closed

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


@pytest.mark.parametrize("n", range(2, 7))
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
