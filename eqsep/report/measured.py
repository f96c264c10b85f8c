"""What a detector finds among rows that it has not learnt."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eqsep.detector import Detector
from eqsep.detector.model import Model
from eqsep.evaluation import (
    OVERALL,
    Curve,
    Interval,
    Promise,
    ScoreHistogram,
    average_precision_interval,
    kept_promises,
    precision_recall_by_kind,
    score_histogram,
)
from eqsep.evaluation.names import Names, names_given
from eqsep.evaluation.promises import RATES

_RESAMPLES = 300


@dataclass(frozen=True)
class FoundKind:
    """What is found of one kind, or of several together.

    Attributes
    ----------
    kind : str
    rows : int
    precision : Interval
        Average precision against all normal rows, with its interval and what chance gets.
    caught : float
        The share of its rows that raise an alarm.
    caught_at : dict of float to float
        The same at other rates of false alarms than the one that is asked for.
    """

    kind: str
    rows: int
    precision: Interval
    caught: float
    caught_at: dict[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupShares:
    """The share of normal rows that raise an alarm, group by group.

    Attributes
    ----------
    groups : int
        How many there are.
    mean, error : float
        Over the groups, each of which counts the same; the error is the standard one.
    """

    groups: int
    mean: float
    error: float


@dataclass(frozen=True)
class Measured:
    """Curves, scores and false alarms on held-out rows.

    Attributes
    ----------
    normal : str
        What the rows are called that stand for normal ones.
    normal_rows : int
        How many of them there are.
    doubted : bool
        Whether some of them may be anomalies.
    seen, unseen : tuple of FoundKind
        Each kind by itself, those that were seen in training and those that were not.
    together : dict of str to FoundKind
        All "seen" kinds, all "unseen" ones, and "overall", where there are both.
    curves : dict of str to Curve
    histogram : ScoreHistogram
    promises : tuple of Promise
        None where whole groups calibrate.
    names : Names
        Those that alarms are given.
    by_group : GroupShares or None
        Where whole groups calibrate, the shares of groups, where there are two at least.
    """

    normal: str
    normal_rows: int
    doubted: bool
    seen: tuple[FoundKind, ...]
    unseen: tuple[FoundKind, ...]
    together: dict[str, FoundKind]
    curves: dict[str, Curve]
    histogram: ScoreHistogram
    promises: tuple[Promise, ...]
    names: Names
    by_group: GroupShares | None = None


def measured_on(
    detector: Detector,
    X: Any,
    kind: np.ndarray,
    *,
    normal: str,
    doubted: bool = False,
    random_state: Any = 0,
) -> Measured:
    """Measure a fitted detector on rows that it has not learnt.

    Parameters
    ----------
    X : table
    kind : ndarray of str of shape (n_rows,)
        Normal rows among them, and any kinds of anomaly or none.
    doubted : bool, default=False
        Whether rows that stand for normal ones may be anomalies.
    random_state : int, RandomState or None, default=0
        Decides the draws behind the intervals.
    """
    model = detector.model_
    score, threshold = model.scores(X), model.threshold
    alarm = score > threshold
    is_normal = kind == normal
    names = [name for name in np.unique(kind).tolist() if name != normal]
    seen = [name for name in names if name in model.kinds]
    unseen = [name for name in names if name not in model.kinds]

    promises = (
        ()
        if model.plan.holdout.grouping  # that is of new groups, of which there are few
        else kept_promises(
            score[is_normal],
            calibration=model.calibration.ordered,
            rates=sorted({*RATES, float(model.promise.false_alarm_rate)}),
        )
    )

    def intervals(wanted: list[str]) -> dict[str, Interval]:
        rows = is_normal | np.isin(kind, wanted)
        return average_precision_interval(
            score[rows],
            kind[rows],
            normal=normal,
            n_resamples=_RESAMPLES,
            random_state=random_state,
        )

    def found(name: str, rows: np.ndarray, precision: Interval) -> FoundKind:
        at = {one.rate: float(np.mean(score[rows] > one.threshold)) for one in promises}
        return FoundKind(
            kind=name,
            rows=int(rows.sum()),
            precision=precision,
            caught=float(alarm[rows].mean()),
            caught_at=at,
        )

    def together(wanted: list[str], name: str) -> dict[str, FoundKind]:
        if not wanted:
            return {}
        return {name: found(name, np.isin(kind, wanted), intervals(wanted)[OVERALL])}

    by_kind = intervals(names) if names else {}
    return Measured(
        normal=normal,
        normal_rows=int(is_normal.sum()),
        doubted=doubted,
        seen=tuple(found(name, kind == name, by_kind[name]) for name in seen),
        unseen=tuple(found(name, kind == name, by_kind[name]) for name in unseen),
        together=together(seen, "seen")
        | together(unseen, "unseen")
        | (together(names, "overall") if seen and unseen else {}),
        curves=precision_recall_by_kind(score, kind, normal=normal) if names else {},
        histogram=score_histogram(score, kind, normal=normal, threshold=threshold),
        promises=promises,
        by_group=_group_shares(model, X, alarm, is_normal),
        names=names_given(model, kind, alarm, model.kind_of(X), normal=normal),
    )


def _group_shares(
    model: Model, X: Any, alarm: np.ndarray, is_normal: np.ndarray
) -> GroupShares | None:
    """Of the groups or blocks of time of normal rows, where these are known and calibrate."""
    grouping, groups = model.plan.holdout.grouping, getattr(X, "groups", None)
    if grouping is None or groups is None:
        return None
    units = grouping.units(groups, key=0)[is_normal]
    unit = np.unique(units, return_inverse=True)[1]
    shares = np.bincount(unit, alarm[is_normal]) / np.bincount(unit)
    if len(shares) < 2:
        return None
    error = float(shares.std(ddof=1) / np.sqrt(len(shares)))
    return GroupShares(len(shares), float(shares.mean()), error)
