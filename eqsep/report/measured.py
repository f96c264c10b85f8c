"""What a detector finds among rows that it has not learnt."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.detector import Detector
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
from eqsep.evaluation.promise import RATES

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
    """

    kind: str
    rows: int
    precision: Interval
    caught: float


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
    score = detector.score_samples(X)
    threshold = detector.threshold_
    alarm = score > threshold
    is_normal = kind == normal
    names = [name for name in np.unique(kind).tolist() if name != normal]
    seen = [name for name in names if name in detector.kinds_]
    unseen = [name for name in names if name not in detector.kinds_]

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
        return FoundKind(name, int(rows.sum()), precision, float(alarm[rows].mean()))

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
        promises=()
        if detector.feature_map_.grouping  # that is of new groups, of which there are few
        else kept_promises(
            score[is_normal],
            calibration=detector.calibration_.ordered,
            rates=sorted({*RATES, float(detector.false_alarm_rate)}),
        ),
    )
