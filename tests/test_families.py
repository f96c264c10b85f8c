"""Exact separating hyperplanes: `eqsep.theory.families`."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from eqsep.theory import separating_hyperplane
from eqsep.theory.certificate import realises
from eqsep.theory.exact import as_rationals
from eqsep.theory.families import FAMILIES

SQUARE = [[0, 0], [0, 1], [1, 0], [1, 1]]
XOR = [0, 1, 1, 0]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_xor_needs_equality():
    assert separating_hyperplane(SQUARE, XOR, family="halfspace") is None
    for family in ("strict-equality", "epsilon-equality", "hyper-ridge"):
        w, b, epsilon, margin_class = separating_hyperplane(SQUARE, XOR, family=family)
        value = np.abs(np.array(SQUARE) @ w + b)
        assert ((value <= epsilon) == (np.array(XOR) == margin_class)).all()


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("n", [1, 2, pytest.param(3, marks=pytest.mark.extra)])
def test_planes_are_exact_and_their_floats_still_separate(family, n, rng):
    found = 0
    for _ in range(25):
        X, y = rng.standard_normal((n + 3, n)), rng.integers(0, 2, n + 3)
        plane = separating_hyperplane(X, y, family=family, exact=True)
        if plane is not None:
            found += 1
            assert isinstance(plane.b, Fraction)
            assert realises(plane, as_rationals(X), y.tolist(), family=family)
            w, b, epsilon, margin_class = separating_hyperplane(X, y, family=family)
            tolerance = 1e-9 if family == "strict-equality" else 0.0
            z = X @ w + b
            inside = z >= 0 if family == "halfspace" else np.abs(z) <= epsilon + tolerance
            assert (inside == (y == margin_class)).all()
    assert found > 5


def linear_order_says(x, y, classes):
    """On a line a slab is an interval: some class is a run of the sorted points."""
    ordered = np.asarray(y)[np.argsort(x)]
    for c in classes:
        places = np.flatnonzero(ordered == c)
        if len(places) == 0 or places[-1] - places[0] + 1 == len(places):
            return True
    return False


@pytest.mark.parametrize("family", ["epsilon-equality", "hyper-ridge"])
def test_slabs_of_a_line_are_intervals(family, rng):
    x = rng.permutation(6).astype(float)
    for y in product((0, 1), repeat=6):
        plane = separating_hyperplane(x[:, None], y, family=family)
        assert (plane is not None) == linear_order_says(x, y, FAMILIES[family].margin_classes)


def test_the_angle_sweep_agrees_in_the_plane(rng):
    """Every order of points in the plane appears between two angles at which a pair changes."""
    X = rng.standard_normal((6, 2))
    pairs = [(i, j) for i in range(6) for j in range(i)]
    turns = np.sort([np.arctan2(*(X[i] - X[j])[[0, 1]] * [-1, 1]) % np.pi for i, j in pairs])
    middles = (turns + np.roll(turns, -1)) / 2 + np.pi / 2 * (np.roll(turns, -1) < turns)
    intervals = {frozenset()}
    for angle in middles:
        order = np.argsort(X @ [np.cos(angle), np.sin(angle)])
        intervals |= {frozenset(order[i:j].tolist()) for i in range(6) for j in range(i + 1, 7)}
    for y in product((0, 1), repeat=6):
        plane = separating_hyperplane(X, y, family="hyper-ridge")
        assert (plane is not None) == (frozenset(np.flatnonzero(y).tolist()) in intervals)


def test_a_point_a_hair_off_the_line_is_off_it():
    on = [["0", "0"], ["1", "1/3"], ["3", "1"]]
    hair = [*on[:2], ["3", "1.000000000000000000000000000001"]]
    assert separating_hyperplane(on, [1, 1, 0], family="strict-equality").margin_class == 0
    assert separating_hyperplane(hair, [1, 1, 0], family="strict-equality").margin_class == 1


def test_equal_points_with_different_labels_are_refused():
    for family in FAMILIES:
        assert separating_hyperplane([[1, 2], [1, 2]], [0, 1], family=family) is None


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_alone_gets_a_real_plane(family, label):
    points = [["1/2", "7"], ["-3/2", "8"]]
    plane = separating_hyperplane(points, [label] * 2, family=family, exact=True)
    assert any(plane.w)
    assert realises(plane, as_rationals(points), [label] * 2, family=family)


def test_a_few_hundred_rows_are_no_trouble(rng):
    X, w = rng.standard_normal((300, 5)), rng.standard_normal(5)
    y = (np.abs(X @ w) < 0.5).astype(int)
    plane = separating_hyperplane(X, y)
    assert ((np.abs(X @ plane.w + plane.b) <= plane.epsilon) == (y == plane.margin_class)).all()


@pytest.mark.parametrize("y", [[0, 1], [0, 1, 2, 1], [0.5, 1, 0, 1], ["a", "b", "a", "b"], []])
def test_bad_labels_are_refused(y):
    with pytest.raises(ValueError, match="y must hold a label 0 or 1 for each of the 4 points"):
        separating_hyperplane(SQUARE, y)


def test_an_unknown_family_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'cone': expected one of \['epsilon-equality', 'half"):
        separating_hyperplane(SQUARE, XOR, family="cone")
