"""Rows that belong together: all of them train, or all of them test.

Groups are taken whole. In time it is blocks, and rows that are near one of the test do not train.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from eqsep.errors import UserError

BLOCKS = 2.0  # of n rows there are so many times sqrt(n) blocks of time
GAP = 0.1  # of a block, beside one of the test


@dataclass(frozen=True)
class Units:
    """What each row belongs to: its group, or its block of time and the share of it that passed.

    Attributes
    ----------
    unit : ndarray of int of shape (n_rows,)
        From 0 on; blocks in the order of time.
    share : ndarray of shape (n_rows,)
        1/2 where there are groups: no row is near another one.
    """

    unit: np.ndarray
    share: np.ndarray

    def near(self, in_test: np.ndarray) -> np.ndarray:
        """Which rows are in no unit of the test and near one.  (n_rows,) -> (n_rows,)"""
        tested = np.unique(self.unit[in_test])
        before = (self.share < GAP) & np.isin(self.unit - 1, tested)
        after = (self.share > 1 - GAP) & np.isin(self.unit + 1, tested)
        near: np.ndarray = (before | after) & ~in_test
        return near


def units_of(groups: Any, time: Any, *, n_rows: int) -> Units | None:
    """What rows belong to: their groups, else blocks of their times; None where neither is known.

    Examples
    --------
    >>> units_of(["a", "b", "a"], None, n_rows=3).unit
    array([0, 1, 0])
    >>> int(units_of(None, range(100), n_rows=100).unit.max())
    19
    """
    if groups is None and time is None:
        return None
    if groups is not None:
        group = np.unique(_one_each(groups, "groups", n_rows), return_inverse=True)[1]
        return Units(group, np.full(n_rows, 0.5))
    when = _one_each(time, "time", n_rows)
    if when.dtype.kind not in "iufmM" or np.isnan(when).any():
        raise UserError(
            f"time expects a number or a date for each row, got values such as {when[0]!r}. Pass "
            f"times by which rows can be put in order."
        )
    when = when.astype("int64" if when.dtype.kind in "mM" else float).astype(float)
    shares = np.linspace(0, 1, 1 + max(int(BLOCKS * np.sqrt(n_rows)), 2))
    edges = np.unique(np.quantile(when, shares, method="lower"))
    if len(edges) < 3:
        raise UserError("All rows, or all but a few, have the same time: leave it out.")
    block = np.clip(np.searchsorted(edges, when, side="right") - 1, 0, len(edges) - 2)
    return Units(block, (when - edges[block]) / np.diff(edges)[block])


def _one_each(values: Any, name: str, n_rows: int) -> np.ndarray:
    found = np.asarray(column_or_1d(values))
    if len(found) != n_rows:
        raise UserError(f"{name} holds {len(found):,} values, and there are {n_rows:,} rows.")
    return found


def divide_units(
    kind: np.ndarray, units: Units, *, normal: str, test_size: float, rng: Any
) -> np.ndarray:
    """Whether each row is kept for the test: that share of the units of every kind.

    Units with the rarest kind are divided first. A kind of one unit is in the test: it is unseen.
    """
    unit = units.unit
    in_test = np.full(unit.max() + 1, -1)
    names = {name: np.unique(unit[kind == name]) for name in np.unique(kind).tolist()}
    if len(names[normal]) < 2:
        raise UserError(
            f"Rows are trained on or tested on with all that belong to them, and rows that are "
            f"{normal!r} all belong together: expected those of 2 groups or blocks of time at "
            f"least. Leave out the groups, or pass others."
        )
    for mine in sorted(names.values(), key=len):
        wanted = int(np.clip(round(test_size * len(mine)), 1, max(len(mine) - 1, 1)))
        free = rng.permutation(mine[in_test[mine] < 0])
        n = max(wanted - int((in_test[mine] == 1).sum()), 0)
        in_test[free[:n]], in_test[free[n:]] = 1, 0
    divided: np.ndarray = in_test[unit] == 1
    return divided
