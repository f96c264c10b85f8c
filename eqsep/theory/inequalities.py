"""Strict linear inequalities, exactly decided."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eqsep.theory.programme import maximise
from eqsep.theory.rational import Integers, in_lowest_terms

_ROUNDINGS = (6, 12, 24, 50)  # bits kept of a float solution: the fewest that still solve win


class Alternative(NamedTuple):
    """Gordan's alternative for a matrix G: exactly one of the two exists.

    solution : z with G z > 0 in every row; combination : y >= 0, not all zero, with y G = 0.
    """

    solution: Integers | None
    combination: Integers | None


def gordan(rows: Integers) -> Alternative:
    """Which half of Gordan's alternative holds, by the simplex method in integers.

    Minimise the sum of the artificial variables of y G = 0, sum y = 1, y >= 0 from the artificial
    basis. A minimum of zero is a combination; otherwise the dual prices are a solution. Bland's
    rule makes it end, and integer pivoting (each division is exact) keeps it exact.
    """
    m, d = rows.shape
    tableau = np.zeros((d + 2, m + d + 2), dtype=object)
    tableau[:d, :m], tableau[d, :m] = rows.T, 1
    tableau[: d + 1, m : m + d + 1] = np.eye(d + 1, dtype=int)
    tableau[d, -1] = 1
    tableau[-1] = -tableau[:-1].sum(axis=0)
    tableau[-1, m : m + d + 1] = 0
    basis, unit = list(range(m, m + d + 1)), 1
    while (enter := next((j for j in range(m) if tableau[-1, j] < 0), None)) is not None:
        ahead = [i for i in range(d + 1) if tableau[i, enter] > 0]
        leave = min(ahead, key=lambda i: (Fraction(tableau[i, -1], tableau[i, enter]), basis[i]))
        pivot, row = tableau[leave, enter], tableau[leave].copy()
        tableau = (tableau * pivot - np.outer(tableau[:, enter], row)) // unit
        tableau[leave], basis[leave], unit = row, enter, pivot
    if tableau[-1, -1] == 0:
        combination = np.zeros(m, dtype=object)
        for i, j in enumerate(basis):
            if j < m:
                combination[j] = tableau[i, -1]
        return Alternative(None, in_lowest_terms(combination))
    return Alternative(in_lowest_terms(tableau[-1, m : m + d] - unit), None)


def strict_solution(rows: Integers) -> Integers | None:
    """Integers z with rows z > 0, or None where there are none, exactly decided.

    A linear programme in floats suggests the answer. Its solution counts only if it passes in
    integers after rounding; its refusal only if Gordan's combination confirms it, on the few rows
    that the programme found to clash.
    """
    guess, clash = _programme(rows)
    for bits in _ROUNDINGS:
        rounded = np.array([round(value * 2**bits) for value in guess.tolist()], dtype=object)
        if (rows @ rounded > 0).all():
            return in_lowest_terms(rounded)
    if gordan(rows[clash]).combination is not None:
        return None
    return gordan(rows).solution


def _programme(rows: Integers) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The z in the unit cube of largest margin t, rows z >= t, in floats; the rows that bind it."""
    tops = [max(map(abs, row)) or 1 for row in rows.tolist()]
    scaled = [[v / top for v in row] for row, top in zip(rows.tolist(), tops, strict=True)]
    m, d = rows.shape
    best = maximise(
        np.append(np.zeros(d), 1.0),
        rows=np.column_stack([-np.array(scaled), np.ones(m)]),
        limits=np.zeros(m),
        bounds=[(-1, 1)] * (d + 1),
    )
    return best.x[:-1], np.flatnonzero(best.prices > 1e-9)
