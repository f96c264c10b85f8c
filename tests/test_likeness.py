"""Alarms that look alike: directions of departure, and groups of them."""

import numpy as np
import pytest

from eqsep import Detector
from eqsep.serve.alarms import Likeness, groups_of


@pytest.fixture(scope="module")
def detector():
    X = np.random.default_rng(0).normal(size=(500, 3))
    return Detector(bandwidth=0.3, n_landmarks=60, random_state=0).fit(X)


def directions(detector, X):
    return departures(detector, detector.plan_.encode(np.asarray(X, dtype=float)))


def departures(detector, rows):
    return detector.model_.explainer.departures(rows)


def test_rows_that_depart_alike_are_one_group_however_far_they_are(detector):
    far = np.linspace(5, 40, 8)
    X = [[0.1, x, 0] for x in far] + [[0.1, -x, 0] for x in far] + [[-x, 0, x] for x in far]
    Z = detector.plan_.encode(np.asarray(X, dtype=float))
    assert detector.plan_.kernel.kernel(Z[:1], Z[7:8])[0, 0] < 0.1  # no neighbours
    group = groups_of(departures(detector, Z)).tolist()
    assert [len(set(group[i : i + 8])) for i in (0, 8, 16)] == [1, 1, 1]
    assert len({*group}) == 3


def test_directions_have_length_one_and_follow_signs(detector):
    found = directions(detector, [[0, 9, 0], [0, -9, 0], [9, 0, 0]])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    assert (found @ found.T)[0, 1] < -0.7
    assert abs((found @ found.T)[0, 2]) < 0.3


def test_a_normal_row_itself_has_no_direction(detector):
    row = detector.plan_.kernel.landmarks[detector.plan_.kernel.is_normal][:1]
    assert np.isfinite(departures(detector, row)).all()


@pytest.mark.parametrize("n", [0, 1])
def test_few_alarms_are_no_problem(n):
    assert len(groups_of(np.ones((n, 4)))) == n


class _Counting:
    """An alarm that counts how often its row is read."""

    def __init__(self, number, row):
        self.id, self._row, self.read = number, row, 0

    @property
    def row(self):
        self.read += 1
        return self._row


def test_directions_are_made_once_for_a_version(detector):
    names = detector.plan_.table_columns
    alarms = [_Counting(i, dict(zip(names, (0, 6 + i, 0), strict=True))) for i in range(3)]
    likeness = Likeness()
    first = likeness.directions(1, detector.model_, alarms[:2])
    again = likeness.directions(1, detector.model_, alarms[::-1])
    assert [alarm.read for alarm in alarms] == [1, 1, 1]
    np.testing.assert_array_equal(again[::-1][:2], first)
    likeness.directions(2, detector.model_, alarms[:1])
    assert alarms[0].read == 2
