"""P-values of kinds: ranks among the rows of each kind, as plain loops give them."""

import numpy as np
import pytest
from eqsep.detector.ranks import Peers, nearest_without
from numpy.testing import assert_array_equal

N_FOLDS = 5


def slow_p_value(lacking, distance, peers, row, n_folds=N_FOLDS):
    """The share of rows of one kind that are as unlike it; each weighs as its group says."""
    (their_lacking, their_distance), fold, weight = peers
    n_units = round(weight.sum())
    if len(set(fold)) < 2:
        return 1 / (n_units + 1)

    def rank(a, b):
        return max((their_lacking < a).sum(), (their_distance < b).sum())

    ranks = np.array([rank(a, b) for a, b in zip(their_lacking, their_distance, strict=True)])
    total = 1.0
    for f in range(n_folds):
        own = rank(lacking[row, f], distance[row, f])
        total += weight[(fold == f) & (ranks >= own)].sum()
    return total / (n_units + 1)


@pytest.mark.parametrize("grouped", [False, True])
def test_p_values_are_shares_of_rows_that_are_as_unlike_the_kind(grouped):
    rng = np.random.default_rng(0)
    sizes = [40, 1, 12]
    first = np.cumsum([0, *sizes])
    unlike = rng.integers(0, 8, size=(2, first[-1])) / 8  # with ties
    unlike[1, 3] = np.inf
    fold = rng.integers(0, 4, size=first[-1])  # one fold is empty
    groups = rng.integers(0, 9, size=first[-1]).astype(np.uint64) if grouped else np.empty(0)
    peers = Peers.of(first, unlike, fold, groups, N_FOLDS)
    lacking, distance = rng.integers(0, 9, size=(2, 25, N_FOLDS, 3)) / 8
    distance[:3] = np.inf
    found = peers.p_values(lacking, distance)
    for k in range(3):
        own = slice(first[k], first[k + 1])
        weight = np.ones(sizes[k])
        if grouped:
            weight = 1 / np.array([(groups[own] == g).sum() for g in groups[own]])
        told = unlike[:, own], fold[own], weight
        rows = range(25)
        want = [slow_p_value(lacking[..., k], distance[..., k], told, row) for row in rows]
        np.testing.assert_allclose(found[:, k], want, rtol=1e-12)
    alone = [peers.p_values(lacking[i : i + 1], distance[i : i + 1])[0] for i in range(25)]
    assert_array_equal(found, alone)


def test_the_nearest_row_is_one_of_another_fold():
    distances = np.array([[3, 1, 1, 2, 9], [5, 7, 6, 8, 4]], dtype=np.float32)
    starts, cells = np.array([0, 2, 3, 4, 5]), np.array([0, 1, 4, N_FOLDS + 2])
    out = np.empty((2, N_FOLDS, 2))
    nearest_without(distances, starts, cells, out)
    assert_array_equal(out[:, :, 0], [[1, 1, 1, 1, 1], [6, 5, 5, 5, 5]])
    assert_array_equal(out[0, :, 1], [9, 9, np.inf, 9, 9])
