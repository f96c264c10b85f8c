"""Bounds on the VC dimension and the points behind them: `eqsep.theory.vc`."""

from itertools import combinations, pairwise, product
from math import comb

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from eqsep.theory import separating_hyperplane, shatters, vc_dimension
from eqsep.theory.certificate import realises
from eqsep.theory.counting import epsilon_limit
from eqsep.theory.exact import as_rationals
from eqsep.theory.families import FAMILIES
from paper.theory import WITNESSES


@pytest.mark.parametrize(
    ("family", "n"),
    [
        pytest.param(family, n, marks=[pytest.mark.extra] if n > 3 else [])
        for family, n in sorted(WITNESSES)
    ],
)
def test_every_lower_bound_by_points_is_certified(family, n):
    """Of more than 13 points for labellings that are drawn."""
    points = WITNESSES[family, n]
    assert all(len(point) == n for point in points)
    assert vc_dimension(family, n).lower >= len(points)
    labellings = list(product((0, 1), repeat=len(points)))
    if len(points) > 13:
        drawn = np.random.default_rng(0).choice(len(labellings), 60, replace=False)
        labellings = [labellings[i] for i in drawn]
        planes = [separating_hyperplane(points, y, family=family, exact=True) for y in labellings]
    else:
        proof = shatters(points, family, certificates=True)
        assert len(proof.planes) == len(labellings)
        step = len(labellings) // 2048 + 1  # `proof.verify()` checks all
        planes, labellings = proof.planes[::step], labellings[::step]
    for plane, labels in zip(planes, labellings, strict=True):
        assert realises(plane, as_rationals(points), labels, family=family)


@pytest.mark.parametrize(("n", "expected"), [(1, 3), (2, 6), (3, 10)])
def test_epsilon_equality_is_settled_up_to_three_dimensions(n, expected):
    bounds = vc_dimension("epsilon-equality", n)
    assert tuple(bounds) == (expected, expected)
    assert bounds.is_exact


@pytest.mark.parametrize(("n", "expected"), [(1, 2), (2, 5), (3, 8)])
def test_hyper_ridge_is_settled_up_to_three_dimensions(n, expected):
    assert tuple(vc_dimension("hyper-ridge", n)) == (expected, expected)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_the_classical_dimensions(n):
    assert tuple(vc_dimension("halfspace", n)) == (n + 1, n + 1)
    assert tuple(vc_dimension("strict-equality", n)) == (2 * n + 1, 2 * n + 1)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_bounds_are_in_order_grow_with_n_and_have_a_source(family):
    bounds = [vc_dimension(family, n) for n in range(1, 30)]
    for here, there in pairwise(bounds):
        assert here.lower <= here.upper
        assert here.lower < there.lower
        assert here.upper < there.upper
    assert all(b.lower_source and b.upper_source for b in bounds)


@pytest.mark.parametrize("n", range(1, 30))
def test_the_families_are_ordered_as_they_contain_each_other(n):
    strict, slab = vc_dimension("strict-equality", n), vc_dimension("epsilon-equality", n)
    ridge = vc_dimension("hyper-ridge", n)
    assert strict.lower <= slab.lower
    assert ridge.lower + 1 <= slab.lower
    assert ridge.upper + 1 <= slab.upper
    assert slab.upper <= min(comb(n + 2, 2), epsilon_limit(n))


@pytest.mark.parametrize("n", [*range(2, 40), 200])
def test_slabs_alone_shatter_more_points_than_halfspaces(n):
    """The paper takes both dimensions to be n + 1, and one generalisation bound for both."""
    assert vc_dimension("hyper-ridge", n).lower > vc_dimension("halfspace", n).upper


@pytest.mark.parametrize("labels", [(0, 1, 1, 1), (0, 0, 0, 1)], ids=["or", "and"])
def test_one_hyper_ridge_does_or_and_one_does_and(labels):
    """The paper says that hyper-ridges cannot classify both."""
    corners = ((0, 0), (0, 1), (1, 0), (1, 1))
    plane = separating_hyperplane(corners, labels, family="hyper-ridge", exact=True)
    assert plane.margin_class == 1
    assert realises(plane, corners, labels, family="hyper-ridge")


@pytest.mark.parametrize("n", [*range(3, 40), 200])
def test_the_published_bound_fails_in_every_dimension_from_three_on(n):
    assert vc_dimension("epsilon-equality", n).lower > 2 * n + 3


@pytest.mark.parametrize("seed", range(4))
def test_three_corners_without_an_edge_are_not_what_a_slab_leaves_out(seed):
    """Why nine points of space are too many for slabs alone: four colours give such a triple."""
    X = np.random.default_rng(seed).standard_normal((9, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    edges = {pair for face in ConvexHull(X).simplices for pair in combinations(sorted(face), 2)}
    apart = [t for t in combinations(range(9), 3) if edges.isdisjoint(combinations(t, 2))]
    assert apart
    for triple in apart:
        labels = [int(i not in triple) for i in range(9)]
        assert separating_hyperplane(X, labels, family="hyper-ridge") is None


def test_a_far_point_adds_one_to_hyper_ridges():
    points = [*WITNESSES["hyper-ridge", 2], ("1000", "1")]
    assert not shatters(points, "hyper-ridge")
    assert shatters(points, "epsilon-equality")


@pytest.mark.parametrize(
    ("family", "a", "b"), [("hyper-ridge", 1, 1), ("epsilon-equality", 1, 1), ("hyper-ridge", 2, 1)]
)
def test_points_in_skew_subspaces_are_shattered_together(family, a, b):
    first, second = as_rationals(WITNESSES[family, a]), as_rationals(WITNESSES["hyper-ridge", b])
    joined = [(*p, *[0] * b, 0) for p in first] + [(*[0] * a, *q, 1) for q in second]
    assert shatters(joined, family)
    assert len(joined) <= vc_dimension(family, a + b + 1).lower


@pytest.mark.parametrize(
    ("family", "n"),
    [(family, n) for family in ("hyper-ridge", "epsilon-equality") for n in (1, 2)],
)
def test_two_close_points_above_are_shattered_with_the_others(family, n):
    points = as_rationals(WITNESSES[family, n])
    close = [0.01 / (i + 1) for i in range(n)]
    lifted = [(*p, 0) for p in points] + [(*[0] * n, 1), (*close, 1)]
    assert shatters(lifted, family)
    assert vc_dimension(family, n + 1).lower >= len(lifted)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="n_features must be a whole number of at least 1, got 0"):
        vc_dimension("halfspace", 0)
    with pytest.raises(ValueError, match="unknown family 'rbf'"):
        vc_dimension("rbf", 2)
