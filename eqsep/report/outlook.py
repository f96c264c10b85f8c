"""What rows to come bring: how many alarms, how many of them false, and what changes with time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.detector import Detector
from eqsep.report.learnt import Learnt
from eqsep.report.measured import Measured
from eqsep.tables.reading import read_table


@dataclass(frozen=True)
class Workload:
    """What there is to look at, where as many rows are anomalies as in the fit.

    Attributes
    ----------
    anomalies : float
        The share of rows that are of a seen kind.
    alarms, false_alarms : float
        In a thousand rows.
    """

    anomalies: float
    alarms: float
    false_alarms: float

    @property
    def false_share(self) -> float:
        """Of the alarms."""
        return self.false_alarms / self.alarms if self.alarms else 0.0


@dataclass(frozen=True)
class LaterRows:
    """Rows that came last, and a detector that has learnt those before alone.

    Attributes
    ----------
    X : table
    kind : ndarray of str
    detector : Detector
    n_before : int
        How many rows it was fitted to.
    """

    X: Any
    kind: np.ndarray
    detector: Detector
    n_before: int


@dataclass(frozen=True)
class LaterShares:
    """What a detector of earlier rows makes of those that came last.

    Attributes
    ----------
    before, after : int
        The rows that it learnt, and those that came last.
    normal : float
        The share of later normal rows that raise an alarm.
    caught : dict of str to tuple of int and float
        Of each kind that is seen later too, its rows and the share of them that raise an alarm.
    """

    before: int
    after: int
    normal: float
    caught: dict[str, tuple[int, float]]


def workload(learnt: Learnt, measured: Measured) -> Workload | None:
    """What a thousand rows bring at the measured shares; None where false alarms are not known."""
    own = [one.measured for one in measured.promises if one.rate == learnt.rate]
    if measured.by_group is not None:
        own.append(measured.by_group.mean)
    normal = learnt.counts.get(measured.normal, 0)
    if measured.doubted or not own or not normal:
        return None
    rows = {one.kind: learnt.counts.get(one.kind, 0) for one in measured.seen}
    found = sum(rows[one.kind] * one.caught for one in measured.seen)
    total = normal + sum(rows.values())
    false = 1000 * own[0] * normal / total
    return Workload(1 - normal / total, false + 1000 * found / total, false)


def later_shares(later: LaterRows, *, normal: str) -> LaterShares:
    """The alarms among rows that came last."""
    table = read_table(later.X, name="later_shares")
    alarm = later.detector.score_samples(table) > later.detector.threshold_
    caught = {
        name: (int(rows.sum()), float(alarm[rows].mean()))
        for name in np.unique(later.kind).tolist()
        if name != normal and (rows := later.kind == name).any()
    }
    share = float(alarm[later.kind == normal].mean())
    return LaterShares(later.n_before, table.n_rows, share, caught)
