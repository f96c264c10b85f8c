"""Counting slabs level by level: `paper.theory.levels`."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from eqsep.theory import vc_dimension
from eqsep.theory.counting import LIMITS, epsilon_limit, ridge_limit
from paper.theory.levels import LevelProof, refute, section_numbers


@pytest.mark.parametrize("family", sorted(LIMITS))
def test_every_limit_is_proved_in_fractions(family):
    counted = {"hyper-ridge": ridge_limit, "epsilon-equality": epsilon_limit}[family]
    for n, limit in LIMITS[family].items():
        assert refute(family, n, limit + 1).verify()
        assert limit < counted(n)
        assert vc_dimension(family, n).upper == limit
        assert "level by level" in vc_dimension(family, n).upper_source


@pytest.mark.parametrize(("family", "n"), [("hyper-ridge", 4), ("epsilon-equality", 3)])
def test_sets_that_are_shattered_are_not_refuted(family, n):
    assert all(refute(family, n, m) is None for m in range(1, vc_dimension(family, n).lower + 1))


def test_numbers_that_a_solver_would_refuse_are_scaled():
    """Above 1e15, from n = 17 on: it says that the model is wrong."""
    assert refute("hyper-ridge", 17, 67).verify()


def test_a_proof_with_other_numbers_is_no_proof():
    proof = refute("hyper-ridge", 5, 19)
    assert proof.verify()
    assert not replace(proof, size=18, weights=proof.weights[:-1]).verify()
    assert not replace(proof, prices=()).verify()
    assert not replace(proof, weights=tuple(-w for w in proof.weights)).verify()
    assert not replace(proof, weights=(Fraction(10**9), *proof.weights[1:])).verify()
    assert not replace(proof, weights=proof.weights[:-1]).verify()
    (i, r, price), *others = proof.prices
    assert not replace(proof, prices=((i, r, -price), *others)).verify()
    assert not replace(proof, family="epsilon-equality").verify()


def test_the_certificate_of_fourteen_numbers():
    """The one that the note on the VC dimension adds up by hand."""
    weights = (*[0] * 6, 1, 2, 4, 6, 8, 11, 14, 17, 21, 25, 30, 35, 40, 0)
    prices = tuple((i, 8, Fraction(2, 5)) for i in range(4))
    proof = LevelProof("hyper-ridge", 5, 19, tuple(map(Fraction, weights)), prices)
    assert (proof.needed(), proof.available()) == (8197018, Fraction(81791352, 10))
    assert proof.verify()


def test_a_cube_is_its_own_section():
    for d in range(1, 7):
        assert section_numbers(d, d) == [comb(d, i) for i in range(d + 1)]
    for r in range(3, 9):  # a polygon with two sides a pair of facets
        assert sum(section_numbers(2, r)) == 2 * r


def vertices_by_level(X, rng):
    """V(i, c), by solving for every vertex of the arrangement, its offsets moved a little."""
    m, n = X.shape
    rows, functional = np.column_stack([X, -np.ones(m)]), rng.standard_normal(n + 1)
    low = 1e-7 * rng.standard_normal(m)
    table = np.zeros((n + 2, m - n), dtype=int)
    for T in map(list, combinations(range(m), n + 1)):
        signs = np.linalg.solve(rows[T].T, functional) > 0
        for upper in product((False, True), repeat=n + 1):
            value = rows @ np.linalg.solve(rows[T], np.where(upper, 1 - low[T], low[T]))
            inside = (value > low) & (value < 1 - low)
            inside[T] = False
            table[np.sum(signs == upper), inside.sum()] += 1
    return table


@pytest.mark.parametrize(("m", "n"), [(6, 1), (7, 2), (8, 3)])
@pytest.mark.parametrize("round_off", [False, True])
def test_vertices_obey_the_two_laws_of_the_proof(m, n, round_off):
    rng = np.random.default_rng(m)
    X = rng.standard_normal((m, n))
    if round_off and n > 1:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    V, d = vertices_by_level(X, rng), n + 1
    assert (np.flipud(V) == V).all()
    assert V.sum(axis=1).tolist() == [comb(m, d) * comb(d, i) for i in range(d + 1)]
    for r in range(d, m + 1):
        sampled = V @ [comb(c, r - d) for c in range(m - d + 1)]
        limits = comb(m, r) * np.array(section_numbers(d, r))
        assert (sampled <= limits).all()
        assert r > d or (sampled == limits).all()


def cells_by_sampling(X, rng):
    """How many placements with k points inside random slabs were seen to make, by k."""
    m, n = X.shape
    values = X @ rng.standard_normal((n, 20_000))
    i, j = rng.integers(m, size=(2, values.shape[1]))
    ends = np.sort(np.take_along_axis(values, np.array([i, j]), axis=0), axis=0)
    words = np.unique((values > ends[1]).astype(int) - (values < ends[0]), axis=1)
    return np.bincount((words == 0).sum(axis=0), minlength=m + 1)


@pytest.mark.parametrize(("m", "n"), [(7, 2), (8, 3)])
def test_cells_of_more_than_n_points_are_counted_by_vertices(m, n):
    rng = np.random.default_rng(m)
    X = rng.standard_normal((m, n))
    V, seen = vertices_by_level(X, rng), cells_by_sampling(X, rng)
    for k in range(n + 1, m):
        there = sum(V[i, k - i] for i in range(n + 2) if 0 <= k - i <= m - n - 1)
        assert 0.3 * there < seen[k] <= there


@pytest.mark.parametrize(("m", "n"), [(7, 2), (8, 3)])
def test_no_cells_weigh_more_than_there_is(m, n):
    """Whatever the weights and prices: the bound holds for the vertices of real points."""
    rng = np.random.default_rng(m)
    V, d = vertices_by_level(rng.standard_normal((m, n)), rng), n + 1
    for _ in range(20):
        weights = [
            Fraction(int(w)) if n < k < m else Fraction()
            for k, w in enumerate(rng.integers(0, 9, m + 1))
        ]
        prices = [
            (int(i), int(r), Fraction(int(rng.integers(0, 4)), 3))
            for i in range(d // 2 + 1)
            for r in (d + 1, d + 2)
        ]
        proof = LevelProof("hyper-ridge", n, m, tuple(weights), tuple(prices))
        weighed = sum(int(V[i, c]) * weights[c + i] for i in range(d + 1) for c in range(m - d + 1))
        assert 0 < weighed <= proof.available()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="unknown family 'halfspace'"):
        refute("halfspace", 2, 5)
