"""Exact arithmetic for small questions: points as integers.

A float is a rational number, so what is asked about floats can be answered without rounding.
Points are put on a common denominator once; everything after that is integer arithmetic.
"""

from fractions import Fraction
from math import gcd, lcm
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eqsep.errors import UserError

Points: TypeAlias = tuple[tuple[Fraction, ...], ...]
Integers: TypeAlias = NDArray[np.object_]  # Python's integers: they never overflow


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


def first_axis(n: int) -> Integers:
    """The unit vector along the first of n coordinates."""
    return np.array([1] + [0] * (n - 1), dtype=object)


def range_of_first(rows: Integers) -> tuple[int, int]:
    """Whole numbers below and above the first coordinate of every point."""
    first = [Fraction(row[0], row[-1]) for row in rows.tolist()]
    return int(min(first) // 1), int(-(-max(first) // 1))


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
