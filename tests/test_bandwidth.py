"""The choice of the kernel's bandwidth, against a plain computation of what it claims to be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.metrics import average_precision_score

from eqsep.detector import bandwidth
from eqsep.detector.bandwidth import Choice, Rows, average_precision
from eqsep.detector.feature_map import Packing

GRID = (0.25, 0.5, 1, 2, 4, 8, 16, 32)  # inverse bandwidths, in units of 1 / the median distance


def rows_of(n_normal, n_anomalous, *, n_columns=4, seed=0):
    """Normal rows near a curve; anomalies beside it. Every column is one of the table."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 6, size=n_normal + n_anomalous)
    Z = np.stack([np.sin(turn * (1 + j / 3) + j) for j in range(n_columns)], axis=1)
    Z += rng.normal(scale=0.05, size=Z.shape)
    is_anomaly = np.repeat([0, 1], [n_normal, n_anomalous])
    Z[is_anomaly == 1] += rng.normal(scale=0.4, size=(n_anomalous, n_columns))
    return as_rows(Z, is_anomaly)


def as_rows(Z, is_anomaly, source=None):
    columns = np.arange(Z.shape[1])
    nothing = np.array([], dtype=int)
    source = columns if source is None else np.asarray(source)
    packing = Packing(columns, nothing, nothing)
    return Rows(Z.astype(np.float32), np.asarray(is_anomaly), packing, source)


def chosen(rows, *, alpha=1e-3, seed=0):
    choice = Choice(rows, alpha=alpha, n_landmarks=1400, rng=np.random.RandomState(seed))
    return choice.inverse_bandwidth()


def plain(rows, *, alpha=1e-3, seed=0, most_normal=3000, held=(2000, 500)):
    """What `Choice` says it computes, in double precision and with no short cut.

    Two thirds of the rows learn and one third is held out, twice; a half of the columns of held-out
    normal rows comes from normal rows that learn.
    """
    rng = np.random.RandomState(seed)
    Z, is_anomaly = rows.Z.astype(float), rows.is_anomaly
    normal, anomalous = (rng.permutation(np.flatnonzero(is_anomaly == k)) for k in (0, 1))
    n, a = min(len(normal) // 3, held[0]), min(len(anomalous) // 3, held[1])
    divisions = []
    for i in range(2):
        learn = [*normal[: i * n], *normal[i * n + n :]][:most_normal]
        kinds = [*anomalous[: i * a], *anomalous[i * a + a :]]
        divisions.append((learn, kinds, normal[i * n : i * n + n], anomalous[i * a : i * a + a]))
    exchanges = []
    for learn, _, held_normal, _ in divisions:
        shape = (len(held_normal), Z.shape[1])
        swap, giver = rng.uniform(size=shape) < 0.5, rng.randint(len(learn), size=shape)
        given = np.stack([Z[learn][giver[:, j], j] for j in range(Z.shape[1])], axis=1)
        exchanged = np.where(swap, given, Z[held_normal])
        exchanges.append(exchanged[(exchanged != Z[held_normal]).any(axis=1)])
    quality = np.zeros(len(GRID))
    for (learn, kinds, held_normal, held_kinds), exchanged in zip(
        divisions, exchanges, strict=True
    ):
        landmarks = Z[[*learn, *kinds]]
        between = cdist(landmarks, landmarks, "cityblock")
        median = np.median(between[between > 0])
        target = np.repeat([1.0, 0.0], [len(learn), len(kinds)])
        for g, inverse in enumerate(GRID):

            def kernel(X, inverse=inverse, landmarks=landmarks, median=median):
                s = cdist(X, landmarks, "cityblock") * inverse / median
                return np.mean([np.exp(-s * width) for width in (1 / 4, 1 / 2, 1, 2, 4)], axis=0)

            k = kernel(landmarks)
            coef = np.linalg.solve(k.T @ k + alpha * np.eye(len(k)), k.T @ target)
            off = [np.abs(1 - kernel(X) @ coef) for X in (Z[held_normal], exchanged, Z[held_kinds])]
            quality[g] += precision(off[0], off[1])
            quality[g] += 0.75 * precision(off[0], off[2]) if len(off[2]) else 0
    used = np.mean([len(learn) for learn, *_ in divisions])
    return quality, (len(normal) / used) ** (1 / 8)


def precision(normal, others):
    y = np.repeat([0, 1], [len(normal), len(others)])
    return average_precision_score(y, np.concatenate([normal, others]))


def top(quality, *, steps=0):
    """Where the parabola through the best and its two neighbours is highest, in powers of two.

    Where a finer one, two steps away at most, is as good but for 0.01, that one.
    """
    best = int(np.argmax(quality))
    nearby = range(min(best + 1 + steps, len(GRID)))
    finest = max(g for g in nearby if quality[g] >= quality[best] - 0.01)
    if finest > best or best in (0, len(quality) - 1):
        return GRID[finest]
    x = np.log2(GRID[best - 1 : best + 2])
    bend, slope, _ = np.polyfit(x, quality[best - 1 : best + 2], 2)
    return 2 ** (-slope / (2 * bend))


@pytest.mark.parametrize(("n_anomalous", "seed"), [(a, seed) for a in (0, 30) for seed in range(4)])
def test_it_is_what_the_plain_computation_gives(n_anomalous, seed):
    rows = rows_of(120, n_anomalous, seed=seed)
    quality, finer = plain(rows, seed=seed)
    steps = 2 if n_anomalous else 0
    assert chosen(rows, seed=seed) == pytest.approx(top(quality, steps=steps) * finer, rel=1e-3)


def test_what_is_compared_above_are_not_only_the_ends_of_the_grid():
    best = {
        int(np.argmax(plain(rows_of(120, a, seed=s), seed=s)[0])) for a in (0, 30) for s in range(4)
    }
    assert best - {0, len(GRID) - 1}


@pytest.mark.parametrize("n_normal", [90, 300])
def test_it_is_finer_for_more_rows_than_were_looked_at(n_normal, monkeypatch):
    """n^(1/8), as 60 of the normal rows learn and `n_normal` will."""
    monkeypatch.setattr(bandwidth, "MOST_NORMAL", 60)
    monkeypatch.setattr(bandwidth, "MOST_HELD_NORMAL", 30)
    rows = rows_of(n_normal, 0)
    quality, finer = plain(rows, most_normal=60, held=(30, 500))
    assert finer == pytest.approx((n_normal / 60) ** 0.125)
    assert chosen(rows) == pytest.approx(top(quality) * finer, rel=1e-3)


def test_few_anomalies_are_held_out_where_there_are_many(monkeypatch):
    monkeypatch.setattr(bandwidth, "MOST_HELD_ANOMALOUS", 5)
    rows = rows_of(90, 60)
    quality, finer = plain(rows, held=(2000, 5))
    assert chosen(rows) == pytest.approx(top(quality, steps=2) * finer, rel=1e-3)


@pytest.mark.parametrize("n_normal", [1, 2])
def test_without_rows_to_hold_out_it_is_a_middling_one(n_normal):
    assert chosen(rows_of(n_normal, 3)) == 2.0


def test_where_an_exchange_changes_nothing_it_is_a_middling_one():
    """All normal rows are the same."""
    assert chosen(as_rows(np.ones((30, 3)), np.zeros(30))) == pytest.approx(2 * 1.5**0.125)


def test_columns_of_one_column_of_the_table_are_exchanged_together():
    """The second half of the columns copies the first; the choice does not see it."""
    rows = rows_of(120, 0, n_columns=3)
    twice = as_rows(np.hstack([rows.Z, rows.Z]), rows.is_anomaly, source=[0, 1, 2, 0, 1, 2])
    assert chosen(twice) == pytest.approx(chosen(rows), rel=1e-3)


def test_half_of_the_columns_are_exchanged_for_those_of_other_rows():
    held = np.arange(4000.0).reshape(1000, 4)
    others = -held[:300] - 1
    found = bandwidth._exchanged(held, others, np.arange(4), np.random.RandomState(0))
    assert len(found) == pytest.approx(1000 * (1 - 1 / 16), abs=30), "the others are unchanged"
    for j in range(4):
        new = found[:, j] < 0
        assert set(found[new, j]) <= set(others[:, j])
        assert len(np.unique(found[new, j])) > 200, "any row may give"
    share = (found < 0).mean() * len(found) / 1000
    assert share == pytest.approx(0.5, abs=0.03)


def test_the_grid_doubles_around_the_median_distance():
    assert_array_equal(bandwidth.INVERSE_BANDWIDTHS, GRID)


def look_at(monkeypatch, quality):
    """Let every look find this quality of the grid, and list what is looked at."""
    seen = []

    def found(_, inverses, **__):
        seen.extend(inverses)
        return quality[np.searchsorted(GRID, inverses)]

    monkeypatch.setattr(bandwidth._Look, "quality", found)
    return seen


def test_at_the_ends_of_the_grid_there_is_no_parabola(monkeypatch):
    rows = rows_of(30, 0)
    finer = 1.5**0.125
    for slope, end in ((1, 32.0), (-1, 0.25)):
        rising = slope * np.arange(8.0)
        look_at(monkeypatch, rising)
        assert chosen(rows) == pytest.approx(end * finer)


def test_the_top_of_the_parabola_lies_towards_the_better_neighbour(monkeypatch):
    rows = rows_of(30, 0)
    quality = np.array([0, 0, 0, 0.5, 1, 0.9, 0.0, 0.0])
    look_at(monkeypatch, quality)
    assert_allclose(chosen(rows), top(quality) * 1.5**0.125)
    assert 4 < top(quality) < 8 / np.sqrt(2)


def test_a_finer_one_nearby_that_is_nearly_as_good_is_taken_where_kinds_are_seen(monkeypatch):
    quality = np.array([0, 0.9, 1.0, 0.97, 0.995, 0.5, 0.999, 0.0])
    look_at(monkeypatch, quality)
    assert chosen(rows_of(30, 3)) == pytest.approx(4 * 1.5**0.125)
    assert chosen(rows_of(30, 0)) == pytest.approx(top(quality) * 1.5**0.125)


@pytest.mark.parametrize(("n_anomalous", "most"), [(0, 6), (3, 7)])
@pytest.mark.parametrize("best", range(8))
def test_those_around_the_best_are_looked_at_once_and_few_others(
    best, n_anomalous, most, monkeypatch
):
    quality = -np.abs(np.arange(8.0) - best)
    seen = look_at(monkeypatch, quality)
    assert chosen(rows_of(30, n_anomalous)) == pytest.approx(GRID[best] * 1.5**0.125)
    around = GRID[max(best - 1, 0) : best + (3 if n_anomalous else 2)]
    assert set(around) <= set(seen)
    assert len(seen) == 2 * len(set(seen)), "by each of two looks"
    assert len(set(seen)) <= most


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_average_precision_is_that_of_scikit_learn_to_the_last_bit(digits):
    rng = np.random.default_rng(digits)
    for n, m in rng.integers(0, 200, size=(50, 2)):
        normal, others = rng.normal(size=n).round(digits), rng.normal(1, size=m + 1).round(digits)
        assert average_precision(normal, others) == precision(normal, others)
    assert average_precision(normal, others[:0]) == 0
