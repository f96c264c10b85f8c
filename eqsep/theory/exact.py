"""Exact arithmetic for small questions: points as integers, null spaces, strict inequalities.

A float is a rational number, so what is asked about floats can be answered without rounding.
Points are put on a common denominator once; everything after that is integer arithmetic.
"""

from fractions import Fraction
from math import gcd, lcm
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from eqsep.errors import UserError
from eqsep.theory.certificate import Points

Integers: TypeAlias = NDArray[np.object_]  # Python's integers: they never overflow
Floats: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = list[tuple[float | None, float | None]]
_ROUNDINGS = (6, 12, 24, 50)  # bits kept of a float solution: the fewest that still solve win


def as_rationals(points: ArrayLike) -> Points:
    """The exact values of a table of numbers: ints, floats, Fractions, or decimals as text."""
    try:
        table = np.asarray(points)
    except ValueError as ragged:
        raise UserError("points must be a table: expected rows of equal length.") from ragged
    if table.ndim != 2 or 0 in table.shape:
        raise UserError(
            f"points must be a table of shape (n_points, n_features) with at least one row, got "
            f"shape {table.shape}. A single point goes in as [point]."
        )
    try:
        return tuple(tuple(Fraction(value) for value in row) for row in table.tolist())
    except (TypeError, ValueError, OverflowError) as unfit:
        raise UserError(
            f"points must be finite real numbers, got a value that is not ({unfit}). Drop or "
            "impute such rows."
        ) from unfit


def homogeneous(points: Points) -> Integers:
    """The integer rows (D x, D), with D the common denominator of all coordinates."""
    scale = lcm(*(value.denominator for point in points for value in point))
    rows = [[int(value * scale) for value in point] + [scale] for point in points]
    return np.array(rows, dtype=object).reshape(len(rows), -1)


def as_floats(rows: Integers) -> NDArray[np.float64]:
    """The points of homogeneous integer rows, in floats."""
    return np.array([[value / row[-1] for value in row[:-1]] for row in rows.tolist()])


def in_lowest_terms(vector: Integers) -> Integers:
    """The same direction with the smallest whole entries."""
    return vector // (gcd(*vector.tolist()) or 1)


def null_space(rows: Integers) -> list[Integers]:
    """A basis of {u : rows u = 0}, in integers, by fraction-free elimination."""
    table = [row.copy() for row in rows]
    width = rows.shape[1]
    pivots: list[int] = []
    for column in range(width):
        done = len(pivots)
        found = next((i for i in range(done, len(table)) if table[i][column]), None)
        if found is None:
            continue
        table[done], table[found] = table[found], table[done]
        lead = table[done]
        for i, row in enumerate(table):
            if i != done and row[column]:
                table[i] = in_lowest_terms(row * lead[column] - lead * row[column])
        pivots.append(column)
    basis = []
    for free in sorted(set(range(width)) - set(pivots)):
        common = lcm(*(table[i][column] for i, column in enumerate(pivots)))
        vector = np.zeros(width, dtype=object)
        vector[free] = common
        for i, column in enumerate(pivots):
            vector[column] = -table[i][free] * common // table[i][column]
        basis.append(in_lowest_terms(vector))
    return basis


class Alternative(NamedTuple):
    """Gordan's alternative for a matrix G: exactly one of the two exists."""

    solution: Integers | None  # z with G z > 0 in every row
    combination: Integers | None  # y >= 0, not all zero, with y G = 0


def gordan(rows: Integers) -> Alternative:
    """Which half of Gordan's alternative holds, by the simplex method in integers.

    Of y G = 0, sum y = 1, y >= 0 the sum of artificial variables is minimised, by Bland's rule and
    exact divisions. A minimum of zero is a combination; else the dual prices are a solution.
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

    A linear programme in floats suggests the answer, and integers confirm it: its solution after
    rounding, its refusal by Gordan's combination of the few rows that it found to clash.
    """
    guess, clash = _programme(rows)
    for bits in _ROUNDINGS:
        rounded = np.array([round(value * 2**bits) for value in guess.tolist()], dtype=object)
        if (rows @ rounded > 0).all():
            return in_lowest_terms(rounded)
    return None if gordan(rows[clash]).combination is not None else gordan(rows).solution


class Optimum(NamedTuple):
    """The best x, its value, and prices p >= 0: rows^T p = gain where x is within its bounds."""

    x: Floats
    value: float
    prices: Floats


def maximise(gain: Floats, *, rows: Floats, limits: Floats, bounds: Bounds) -> Optimum:
    """The largest gain.x with rows x <= limits and x within bounds, by SciPy's HiGHS."""
    best = linprog(-gain, A_ub=rows, b_ub=limits, bounds=bounds)
    if best.x is None:
        raise RuntimeError(f"the linear programme has no optimum: {best.message}")
    return Optimum(best.x, float(gain @ best.x), -best.ineqlin.marginals)


def _programme(rows: Integers) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The z in the unit cube of largest margin t, rows z >= t, in floats; the rows that bind it."""
    tops = [max(map(abs, row)) or 1 for row in rows.tolist()]
    scaled = [[v / top for v in row] for row, top in zip(rows.tolist(), tops, strict=True)]
    m, d = rows.shape
    gain, slack = np.append(np.zeros(d), 1.0), np.column_stack([-np.array(scaled), np.ones(m)])
    best = maximise(gain, rows=slack, limits=np.zeros(m), bounds=[(-1, 1)] * (d + 1))
    return best.x[:-1], np.flatnonzero(best.prices > 1e-9)
