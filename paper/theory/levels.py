"""Bounds on shattering from counting slabs level by level, by how many points they contain.

The cells of slabs with k points inside are counted by vertices. Points that are shattered need many
cells at every level, and sections of the r-cube limit how many there are: `refute` finds weights
with which these inequalities add up to a contradiction.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np

from eqsep.theory.arguments import look_up
from eqsep.theory.exact import Bounds, Floats, maximise

_SAMPLES = 5  # how many sizes r of the samples above d the search for weights may use
_DIGITS = 10**6  # the largest weight of a proof, in whole numbers
_NEEDS = {"hyper-ridge": 2, "epsilon-equality": 1}  # cells a subset needs, on average


def section_numbers(d: int, r: int) -> list[int]:
    """Upper bounds on h_0 .. h_d of a simple d-dimensional section of the r-cube.

    The first half are the coefficients of (1 + t)^r (1 - t)^(d - r), the others their mirror.
    """
    series = [1]
    for i in range(1, d // 2 + 1):
        terms = (comb(r, a) * comb(r - d - 1 + i - a, i - a) for a in range(i + 1))
        series.append(comb(r, i) if r == d else sum(terms))
    return [series[min(i, d - i)] for i in range(d + 1)]


@dataclass(frozen=True)
class LevelProof:
    """Weights with which the inequalities show that m = `size` points of R^n are not shattered."""

    family: str
    n_features: int
    size: int
    weights: tuple[Fraction, ...]  # what a cell with k = 0 .. m points inside counts
    prices: tuple[tuple[int, int, Fraction], ...]  # (i, r, price) for |I| = i, and for d - i

    def verify(self) -> bool:
        """Whether what shattering needs exceeds what there is, in fractions and nothing else."""
        m, d = self.size, self.n_features + 1
        levels = needed_levels(self.family, self.n_features, m)
        return (
            (self.family == "hyper-ridge" or self.weights == self.weights[::-1])
            and len(self.weights) == m + 1
            and all(w == 0 if k not in levels else w >= 0 for k, w in enumerate(self.weights))
            and all(price >= 0 and 2 * i <= d < r <= m for i, r, price in self.prices)
            and self.needed() > self.available()
        )

    def needed(self) -> Fraction:
        """The weight of the cells that a shattered set must have."""
        cells = (comb(self.size, k) * w for k, w in enumerate(self.weights))
        return _NEEDS[self.family] * sum(cells, start=Fraction())

    def available(self) -> Fraction:
        """A bound on the weight of all cells."""
        m, d = self.size, self.n_features + 1
        total = Fraction()
        for i in range(d // 2 + 1):
            own = [(r, price) for j, r, price in self.prices if j == i]
            rest = max(
                (self.weights[c + i] + self.weights[c + d - i]) / 2
                - sum(price * comb(c, r - d) for r, price in own)
                for c in range(m - d + 1)
            )
            sampled = sum(price * comb(m, r) * section_numbers(d, r)[i] for r, price in own)
            total += (1 if 2 * i == d else 2) * (comb(m, d) * comb(d, i) * rest + sampled)
        return total


def needed_levels(family: str, n: int, m: int) -> range:
    """The numbers k of points inside at which shattering needs cells that are bounded."""
    look_up(family, _NEEDS)
    return range(n + 1, m) if family == "hyper-ridge" else range(n + 1, m - n)


def refute(family: str, n: int, m: int) -> LevelProof | None:
    """A proof that the family shatters no m points of R^n, by a linear programme, or None."""
    levels = needed_levels(family, n, m)
    if not levels:
        return None
    samples = range(n + 2, min(m, n + 1 + _SAMPLES) + 1)
    halves = range((n + 1) // 2 + 1)
    n_prices = len(halves) * len(samples)
    twice = [1.0 if 2 * i == n + 1 else 2.0 for i in halves]
    gain = np.array([1.0] * len(levels) + [-v for v in twice] * (1 + len(samples)))
    cells = [_cells(i, levels, samples, n=n, m=m, family=family) for i in halves]
    # Either part of a pair may be the one inside, so with flipping both weigh the same.
    even = np.eye(len(levels), len(gain)) * (family == "epsilon-equality")
    rows = np.vstack([np.arange(len(gain)) < len(levels), *cells, even - even[::-1]])
    least = [0.0] * len(levels) + [None] * len(halves) + [0.0] * n_prices
    bounds: Bounds = [(value, None) for value in least]
    best = maximise(gain, rows=rows, limits=np.eye(len(rows))[0], bounds=bounds).x
    weights = {k: x / comb(m, k) for k, x in zip(levels, best.tolist(), strict=False)}
    unit = _DIGITS / (max(weights.values()) or 1)
    prices = best[-n_prices:].reshape(len(samples), len(halves)) * unit * _NEEDS[family]
    proof = LevelProof(
        family=family,
        n_features=n,
        size=m,
        weights=tuple(Fraction(round(unit * weights.get(k, 0))) for k in range(m + 1)),
        prices=tuple(
            (i, r, Fraction(price) / (comb(m, r) * section_numbers(n + 1, r)[i]))
            for r, row in zip(samples, prices.tolist(), strict=True)
            for i, price in enumerate(row)
            if price > 0
        ),
    )
    return proof if proof.verify() else None


def _cells(i: int, levels: range, samples: range, *, n: int, m: int, family: str) -> Floats:
    """The rows weights(c + i)/2 + weights(c + d - i)/2 <= rest_i + sum_r price_ir C(c, r - d)."""
    # One a number c of points inside; each unknown times what it multiplies in the contradiction.
    d, n_halves = n + 1, (n + 1) // 2 + 1
    vertices, sections = comb(m, d) * comb(d, i), {r: section_numbers(d, r)[i] for r in samples}
    table = np.zeros((m - d + 1, len(levels) + n_halves * (1 + len(samples))))
    for c, row in enumerate(table):
        for k in {c + i, c + d - i} & set(levels):
            half = 1 if 2 * i == d else 0.5
            row[k - levels[0]] += half * vertices / (_NEEDS[family] * comb(m, k))
        row[len(levels) + i] = -1
        for j, r in enumerate(samples, start=1):
            inside = vertices * comb(c, r - d) / (comb(m, r) * sections[r])
            row[len(levels) + n_halves * j + i] = -inside
    # Solvers refuse numbers above 1e15.
    return table / np.maximum(np.abs(table).max(axis=1, keepdims=True) / 1e13, 1)
