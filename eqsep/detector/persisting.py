"""Alarms that must persist: several of the last rows of a run above the threshold."""

import re
from typing import Any

import numpy as np

from eqsep.errors import ParameterError, UserError


class PersistentAlarms:
    """Alarms of rows above the threshold, where `least` of the last `among` rows of the run are.

    The row itself is one of them, so that these alarms are some of all: whatever rate of false
    alarms is promised for single rows is kept, and with how much to spare depends on how long
    normal rows stay above the threshold. A fault is found `least` - 1 rows later, or more.

    Parameters
    ----------
    least, among : int
        3 of the last 5 rows by default. At the beginning of a run there are fewer.

    Examples
    --------
    >>> above = [1, 0, 1, 1, 0, 0, 0, 1]
    >>> PersistentAlarms(2, 3).update(above).astype(int)
    array([0, 0, 1, 1, 0, 0, 0, 0])
    >>> alarms = PersistentAlarms(2, 3)
    >>> [alarms.update(part).astype(int).tolist() for part in (above[:3], above[3:])]
    [[0, 0, 1], [1, 0, 0, 0, 0]]
    """

    def __init__(self, least: int = 3, among: int = 5) -> None:
        if not 1 <= least <= among:
            raise UserError(
                f"Alarms persist where {least} of the last {among} rows are above the threshold: "
                f"expected two whole numbers, the first at least 1 and no larger than the second."
            )
        self.least, self.among = least, among
        self._last: dict[Any, np.ndarray] = {}

    @classmethod
    def read(cls, text: str) -> "PersistentAlarms":
        """From a text such as "3/5"."""
        found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            expected = "two whole numbers as in 3/5, the first at least 1 and not above the second"
            raise ParameterError("persist", expected=expected, got=text)
        return cls(int(found[1]), int(found[2]))

    def update(self, above: Any, groups: Any = None) -> np.ndarray:
        """Which of the next rows are alarms, in their order; it goes on from the rows before.

        Parameters
        ----------
        above : array-like of shape (n_rows,)
            Whether each row is above the threshold, as `Detector.predict` says.
        groups : array-like of shape (n_rows,), default=None
            The run of each row; else all rows are one run.
        """
        above = np.asarray(above).astype(bool)
        groups = np.zeros(len(above), dtype=int) if groups is None else np.asarray(groups)
        if len(groups) != len(above):
            raise UserError(
                f"groups holds {len(groups):,} values, and there are {len(above):,} rows: expected "
                f"one for each row."
            )
        names, run = np.unique(groups, return_inverse=True)
        order = np.argsort(run, kind="stable")
        alarm = np.zeros(len(above), dtype=bool)
        starts = np.searchsorted(run[order], np.arange(1, len(names)))
        for name, rows in zip(names.tolist(), np.split(order, starts), strict=True):
            last = self._last.get(name, np.zeros(self.among - 1, dtype=bool))
            there = np.concatenate([last, above[rows]])
            counts = np.convolve(there, np.ones(self.among, dtype=int), mode="valid")
            alarm[rows] = above[rows] & (counts >= self.least)
            self._last[name] = there[len(there) - self.among + 1 :]
        return alarm
