"""Boxes as intersections of separators: `eqsep.theory.boxes`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eqsep.theory import bounding_parallelepiped, closing_number


@pytest.fixture
def rng():
    return np.random.default_rng(0)


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
