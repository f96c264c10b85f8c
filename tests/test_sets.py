"""Prediction sets of kinds, and the names that they give."""

import numpy as np
from eqsep.detector.sets import LIKE, RIVAL, Limits
from numpy.testing import assert_array_equal

KINDS = ("valve", "leak", "pump")


def test_sets_are_p_values_above_the_rate_likeness_and_rivals():
    rng = np.random.default_rng(0)
    limits = Limits.of(KINDS, [50, 4, 19], 0.05)
    assert limits.is_short.tolist() == [False, True, False]
    p, votes, likeness = rng.choice([0.01, 0.05, 0.1, 0.2, 0.21, 0.6], size=(3, 500, 3))
    found = limits.sets(p, votes, likeness)
    most = likeness.argmax(axis=1)
    for i in range(500):
        own = p[i] > np.array([0.05, 0.2, 0.05]) + 1e-9
        own[1] |= most[i] == 1 and likeness[i, 1] > LIKE
        if own.any():
            own |= (votes[i] >= RIVAL) | (votes[i] == votes[i].max())
        assert_array_equal(found[i], own)
    assert found.any(axis=1).tolist().count(False) > 10
    assert not limits.sets(p * 0, votes, None).any()


def test_names_come_by_votes_and_then_by_the_alphabet():
    limits = Limits.of(KINDS, [50, 50, 50], 0.05)
    sets = np.array([[1, 1, 1], [1, 1, 1], [0, 1, 0], [0, 0, 0], [1, 0, 1]], dtype=bool)
    votes = np.array([[0.2, 0.2, 0.6], [0, 0, 0], [0, 0, 1], [1, 0, 0], [0.7, 0, 0.3]])
    assert limits.names(sets, votes).tolist() == [
        "pump or leak or valve",
        "leak or pump or valve",
        "leak",
        "unseen",
        "valve or pump",
    ]
