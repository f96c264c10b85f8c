"""What `eqsep demo` shows: card payments, one kind of anomaly seen, five that nobody has seen."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from eqsep.checks import DataWarning
from eqsep.datasets import Table, make_mixed_demo
from eqsep.detector import Detector
from eqsep.evaluation import OVERALL, anomaly_score, average_precision_by_kind, prevalence_by_kind
from eqsep.evaluation.peers import PEERS, training_data
from eqsep.report import DetectorReport, HeldOut, Usage, detector_report
from eqsep.report.reasons import Alarm
from eqsep.tables import TableEncoder

SEEN = "card testing"
_THRESHOLDS = {"random forest": 0.5, "isolation forest": 0.0}  # of a probability, of a score


@dataclass(frozen=True)
class Contender:
    """What a method that saw one kind of anomaly makes of new payments.

    Attributes
    ----------
    method : str
    seen, unseen : float
        Average precision of the seen kind, and of all unseen ones together.
    promised : float or None
        The share of false alarms that was promised; None where nothing is.
    false_alarms, caught : float
        The shares of normal payments and of unseen kinds that raise an alarm by the method's own
        threshold.
    """

    method: str
    seen: float
    unseen: float
    promised: float | None
    false_alarms: float
    caught: float


@dataclass(frozen=True)
class PaymentsDemo:
    """All results of the demonstration.

    Attributes
    ----------
    detector : Detector
    old, new : Table
        The payments that were learnt, among them one kind of anomaly, and those that were not.
    contenders : tuple of Contender
        The detector first.
    chance : tuple of float
        The average precision of a score that knows nothing, on the seen and the unseen kinds.
    alarms : tuple of Alarm
        The highest alarm of each of some unseen kinds, with their reasons.
    report : DetectorReport
    """

    detector: Detector
    old: Table
    new: Table
    contenders: tuple[Contender, ...]
    chance: tuple[float, float]
    alarms: tuple[Alarm, ...]
    report: DetectorReport

    @property
    def unseen(self) -> tuple[str, ...]:
        """The kinds that are among the new payments alone."""
        return tuple(sorted(set(self.new.kind.tolist()) - {"normal", SEEN}))


def run_payments(
    *,
    n_rows: int = 4_000,
    n_landmarks: int = 1_000,
    random_state: Any = 0,
    on_step: Callable[[str], None] = lambda step: None,  # noqa: ARG005
) -> PaymentsDemo:
    """Learn payments with one kind of anomaly, and meet five more: half a minute, no network.

    Parameters
    ----------
    n_rows : int, default=4000
        Of the old payments, and again of the new ones.
    n_landmarks : int, default=1000
        Of the detector.
    random_state : int, RandomState or None, default=0
        Decides the payments and the methods.
    on_step : callable
        Told what is being done.

    Examples
    --------
    >>> demo = run_payments(n_rows=600, n_landmarks=60)
    >>> [one.method for one in demo.contenders]
    ['eqsep', 'random forest', 'isolation forest']
    """
    rng = check_random_state(random_state)
    old, new = (make_mixed_demo(n_samples=n_rows, random_state=rng) for _ in range(2))
    known = np.flatnonzero(np.isin(old.kind, ("normal", SEEN)))
    old = replace(old, X=[old.X[i] for i in known], kind=old.kind[known])
    seed = int(rng.randint(2**31 - 1))
    on_step("eqsep")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # made-up rows, of the same months
        detector = Detector(n_landmarks=n_landmarks, random_state=seed).fit(old.X, old.kind)
    contenders = [
        _contend(
            "eqsep", detector.decision_function(new.X), new, promised=detector.false_alarm_rate
        )
    ]
    for name, score in _others(old, new, seed, on_step):
        contenders.append(_contend(name, score, new))
    seen_rows, unseen_rows = _parts(new.kind)
    on_step("report")
    counts = {name: int(np.sum(old.kind == name)) for name in ("normal", SEEN)}
    report = detector_report(
        detector,
        HeldOut(new.X, new.kind, note=f"Measured on {n_rows:,} payments that were not learnt."),
        counts=counts,
        title="Card payments: one kind of anomaly seen",
        usage=Usage(),
    )
    return PaymentsDemo(
        detector=detector,
        old=old,
        new=new,
        contenders=tuple(contenders),
        chance=(_chance(new.kind[seen_rows]), _chance(new.kind[unseen_rows])),
        alarms=_one_of_each(report.alarms),
        report=report,
    )


def _others(
    old: Table, new: Table, seed: int, on_step: Callable[[str], None]
) -> Iterator[tuple[str, np.ndarray]]:
    """The scores of methods for matrices of numbers, above 0 for an alarm."""
    encoder = TableEncoder().fit(old.X)
    known, fresh = encoder.transform(old.X), encoder.transform(new.X)
    is_anomaly = old.kind != "normal"
    for name, threshold in _THRESHOLDS.items():
        on_step(name)
        rows = training_data(known, is_anomaly, normal_only=PEERS[name].normal_only)
        model = PEERS[name].build(random_state=seed).fit(*rows)
        yield name, anomaly_score(model, fresh) - threshold


def _contend(
    method: str, score: np.ndarray, new: Table, *, promised: float | None = None
) -> Contender:
    seen, unseen = (
        average_precision_by_kind(score[rows], new.kind[rows])[OVERALL] for rows in _parts(new.kind)
    )
    is_normal, is_seen = new.kind == "normal", new.kind == SEEN
    return Contender(
        method=method,
        seen=seen,
        unseen=unseen,
        promised=promised,
        false_alarms=float(np.mean(score[is_normal] > 0)),
        caught=float(np.mean(score[~is_normal & ~is_seen] > 0)),
    )


def _parts(kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows on which the seen kind is measured, and those on which the unseen ones are."""
    return np.isin(kind, ("normal", SEEN)), kind != SEEN


def _chance(kind: np.ndarray) -> float:
    return prevalence_by_kind(kind)[OVERALL]


def _one_of_each(alarms: tuple[Alarm, ...], *, most: int = 3) -> tuple[Alarm, ...]:
    """The highest alarm of each unseen kind."""
    first = {
        alarm.label: alarm for alarm in reversed(alarms) if alarm.label not in ("normal", SEEN)
    }
    return tuple(sorted(first.values(), key=lambda alarm: -alarm.score))[:most]
