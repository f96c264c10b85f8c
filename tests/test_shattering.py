"""Shattering, exactly decided, and the search for shattered points: `eqsep.theory.shattering`."""

from itertools import product

import numpy as np
import pytest

from eqsep.theory import separating_hyperplane, shatters, vc_dimension
from eqsep.theory.exact import as_rationals, homogeneous
from eqsep.theory.families import FAMILIES
from paper.theory import WITNESSES, find_shattered


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_strict_equality_shatters_2n_plus_1_points_and_no_more(n, rng):
    points = rng.standard_normal((2 * n + 2, n))
    assert shatters(points[:-1], "strict-equality", certificates=True).verify()
    assert not shatters(points, "strict-equality")
    assert not shatters(np.vstack([points, points + 10]), "strict-equality")


def lies_on_a_plane_of_its_own(part, rest):
    """Whether the hull of some points is no whole space and holds none of the others, by ranks."""
    rank = np.linalg.matrix_rank
    return rank(part) < part.shape[1] and all(
        rank(np.vstack([part, point])) > rank(part) for point in rest
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_proof_names_the_labelling_of_2n_plus_2_points_that_strict_equality_refuses(n, rng):
    """On random points, on grids full of dependent ones, and with one point twice."""
    wide = [rng.integers(-99, 100, (2 * n + 2, n)) for _ in range(10)]
    narrow = [rng.integers(0, 3, (2 * n + 2, n)) for _ in range(30)]
    on_planes = [np.column_stack([X[:, 1:], np.arange(2 * n + 2) // (n + 1)]) for X in narrow]
    exchanged = 0
    for points in wide + narrow + on_planes:
        labels = np.array(
            FAMILIES["strict-equality"].obstruction(homogeneous(as_rationals(points)))
        )
        rows = np.column_stack([points, np.ones(len(points), dtype=int)])
        for inside in (labels == 1, labels == 0):
            assert inside.sum() == n + 1
            assert not lies_on_a_plane_of_its_own(rows[inside], rows[~inside])
        exchanged += not (labels[: n + 1] == 1).all()
    assert exchanged > 0 or n == 1


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_halfspaces_shatter_n_plus_1_points_and_no_more(n, rng):
    points = rng.standard_normal((n + 2, n))
    assert shatters(points[:-1], "halfspace", certificates=True).verify()
    assert not shatters(points, "halfspace")


def test_ten_points_of_space_are_shattered_by_slabs():
    """More than the 2n + 3 = 9 of the paper's corollary, and the 2n + 2 of its conjecture."""
    answer = shatters(WITNESSES["epsilon-equality", 3], "epsilon-equality", certificates=True)
    assert answer
    assert len(answer.points) == 10
    assert len(answer.planes) == 1024
    assert answer.verify()


def test_the_same_ten_points_in_binary_floats():
    points = np.array(WITNESSES["epsilon-equality", 3], dtype=float)
    assert shatters(points, "epsilon-equality", certificates=True).verify()


@pytest.mark.parametrize(("n", "m"), [(1, 4), (2, 7), (3, 11), (4, 16)])
def test_above_the_degree_two_bound_the_dependency_names_a_refused_labelling(n, m, rng):
    points = rng.integers(-9, 10, (m, n))
    answer = shatters(points, "epsilon-equality", certificates=True)
    assert not answer
    assert not answer.verify()
    assert separating_hyperplane(points, answer.refused, family="epsilon-equality") is None


@pytest.mark.parametrize("n", [1, 2])
def test_slabs_alone_shatter_fewer_points(n, rng):
    points = WITNESSES["epsilon-equality", n]
    answer = shatters(points, "hyper-ridge", certificates=True)
    assert not answer
    assert separating_hyperplane(points, answer.refused, family="hyper-ridge") is None
    assert not shatters(rng.standard_normal((len(points) + 3, n)), "hyper-ridge")


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_shatters_agrees_with_one_decision_a_labelling(family, rng):
    answers = set()
    for m in (3, 5):
        for _ in range(4):
            points = rng.integers(0, 4, (m, 2))  # a coarse grid: often collinear, or equal
            one_by_one = all(
                separating_hyperplane(points, y, family=family) is not None
                for y in product((0, 1), repeat=m)
            )
            assert shatters(points, family) == one_by_one
            answers.add(one_by_one)
    assert answers == {True, False}


def test_an_affine_map_changes_nothing(rng):
    points = np.array([[int(1000 * float(v)) for v in p] for p in WITNESSES["hyper-ridge", 3]])
    moved = points @ rng.integers(-3, 4, (3, 3)) + rng.integers(-(10**6), 10**6, 3)
    assert shatters(points, "hyper-ridge")
    assert shatters(moved, "hyper-ridge")


def test_bad_points_and_families_are_refused():
    with pytest.raises(ValueError, match="finite real numbers"):
        shatters([[np.nan, 1.0]], "halfspace")
    with pytest.raises(ValueError, match="at least one row"):
        shatters(np.empty((0, 2)), "halfspace")
    with pytest.raises(ValueError, match="unknown family 'rbf'"):
        shatters([[0.0]], "rbf")


@pytest.mark.parametrize(
    ("family", "n", "size"),
    [
        ("halfspace", 3, 4),
        ("strict-equality", 3, 7),
        ("hyper-ridge", 2, 5),
        ("hyper-ridge", 3, 8),
        ("epsilon-equality", 2, 6),
        pytest.param("epsilon-equality", 3, 10, marks=pytest.mark.extra),
    ],
)
def test_it_finds_as_many_points_as_are_known(family, n, size):
    found = find_shattered(family, n, size, random_state=0)
    assert len(found.points) == size
    assert found.verify()


def test_the_same_seed_finds_the_same_points():
    first = find_shattered("hyper-ridge", 2, 4, random_state=3)
    assert first == find_shattered("hyper-ridge", 2, 4, random_state=3)
    assert first.points != find_shattered("hyper-ridge", 2, 4, random_state=4).points


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_above_the_bound_there_is_nothing_to_find(family):
    too_many = vc_dimension(family, 3).upper + 1
    assert find_shattered(family, 3, too_many, random_state=0) is None


def test_a_short_search_may_come_back_empty():
    assert find_shattered("epsilon-equality", 3, 10, random_state=0, max_iter=2) is None


def test_coordinates_rounded_away_are_not_certified():
    assert find_shattered("hyper-ridge", 3, 8, random_state=0, max_iter=300, decimals=0) is None


@pytest.mark.parametrize("name", ["n_features", "size", "max_iter"])
def test_bad_numbers_are_refused(name):
    numbers = {"n_features": 2, "size": 3, "max_iter": 5} | {name: 0}
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
        find_shattered(
            "halfspace", numbers["n_features"], numbers["size"], max_iter=numbers["max_iter"]
        )


def test_an_unknown_family_is_refused_by_name():
    with pytest.raises(ValueError, match="unknown family 'cone'"):
        find_shattered("cone", 2, 3)
