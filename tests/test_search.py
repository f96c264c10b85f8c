"""The search for shattered points: `eqsep.theory.search`."""

import pytest

from eqsep.theory import find_shattered, vc_dimension
from eqsep.theory.families import FAMILIES


@pytest.mark.parametrize(
    ("family", "n", "size"),
    [
        ("halfspace", 3, 4),
        ("strict-equality", 3, 7),
        ("hyper-ridge", 2, 5),
        ("hyper-ridge", 3, 8),
        ("epsilon-equality", 2, 6),
        ("epsilon-equality", 3, 10),
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
