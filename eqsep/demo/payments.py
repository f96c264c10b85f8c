"""What `eqsep demo` shows: card payments with one seen kind of anomaly and five unseen ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

from eqsep.datasets import LabelledTable, make_mixed_demo
from eqsep.detector import Detector
from eqsep.evaluation import OVERALL, anomaly_score, average_precision_by_kind, prevalence_by_kind
from eqsep.evaluation.peers import PEERS, training_data
from eqsep.report import DetectorReport, HeldOut, detector_report
from eqsep.report.reasons import ExplainedAlarm
from eqsep.tables import TableEncoder

SEEN = "card testing"
_THRESHOLDS = {"random forest": 0.5, "isolation forest": 0.0}  # of a probability, of a score


@dataclass(frozen=True)
class PaymentsResult:
    """How a method that saw one kind of anomaly does on new payments."""

    method: str
    seen: float  # average precision
    unseen: float  # of all unseen kinds together
    promised: float | None  # the share of false alarms
    false_alarms: float  # the share of normal payments above the method's threshold
    caught: float  # the share of unseen kinds above it


@dataclass(frozen=True)
class PaymentsDemo:
    """All results of the demonstration."""

    detector: Detector
    old: LabelledTable  # the payments that were learnt, with one kind of anomaly
    new: LabelledTable
    contenders: tuple[PaymentsResult, ...]  # the detector first
    chance: tuple[float, ...]  # average precision of a random score, on seen and unseen kinds
    alarms: tuple[ExplainedAlarm, ...]  # the highest of each of some unseen kinds
    report: DetectorReport

    @property
    def unseen(self) -> tuple[str, ...]:
        """The kinds that only the new payments have."""
        return tuple(sorted(set(self.new.kind.tolist()) - {"normal", SEEN}))


def run_payments(
    *,
    n_rows: int = 4_000,
    n_landmarks: int = 1_000,
    on_step: Callable[[str], None] = lambda step: None,  # noqa: ARG005
) -> PaymentsDemo:
    """Learn `n_rows` payments with one kind of anomaly, and meet five more in as many new ones."""
    rng = check_random_state(0)
    old, new = (make_mixed_demo(n_samples=n_rows, random_state=rng) for _ in range(2))
    known = np.flatnonzero(np.isin(old.kind, ("normal", SEEN)))
    old = replace(old, X=[old.X[i] for i in known], kind=old.kind[known])
    seed = int(rng.randint(2**31 - 1))
    on_step("eqsep")
    detector = Detector(n_landmarks=n_landmarks, random_state=seed)
    detector.fit_quietly(old.X, old.kind)  # made-up rows, of the same months
    score = detector.decision_function(new.X)
    contenders = [_result("eqsep", score, new, promised=detector.false_alarm_rate)]
    for name, score in _others(old, new, seed, on_step):
        contenders.append(_result(name, score, new))
    on_step("report")
    report = detector_report(
        detector,
        HeldOut(new.X, new.kind, note=f"Measured on {n_rows:,} payments that were not learnt."),
        counts={name: int(np.sum(old.kind == name)) for name in ("normal", SEEN)},
        title="Card payments: one kind of anomaly seen",
    )
    return PaymentsDemo(
        detector=detector,
        old=old,
        new=new,
        contenders=tuple(contenders),
        chance=tuple(prevalence_by_kind(new.kind[rows])[OVERALL] for rows in _parts(new.kind)),
        alarms=_one_of_each(report.alarms),
        report=report,
    )


def _others(
    old: LabelledTable, new: LabelledTable, seed: int, on_step: Callable[[str], None]
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


def _result(
    method: str, score: np.ndarray, new: LabelledTable, *, promised: float | None = None
) -> PaymentsResult:
    parts = [average_precision_by_kind(score[r], new.kind[r])[OVERALL] for r in _parts(new.kind)]
    is_normal, is_seen = new.kind == "normal", new.kind == SEEN
    return PaymentsResult(
        method=method,
        seen=parts[0],
        unseen=parts[1],
        promised=promised,
        false_alarms=float(np.mean(score[is_normal] > 0)),
        caught=float(np.mean(score[~is_normal & ~is_seen] > 0)),
    )


def _parts(kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows on which the seen kind is measured, and those on which the unseen ones are."""
    return np.isin(kind, ("normal", SEEN)), kind != SEEN


def _one_of_each(
    alarms: tuple[ExplainedAlarm, ...], *, most: int = 3
) -> tuple[ExplainedAlarm, ...]:
    """The highest alarm of each unseen kind; `alarms` are in falling order."""
    first: dict[str, ExplainedAlarm] = {}
    for alarm in alarms:
        if alarm.label not in ("normal", SEEN):
            first.setdefault(alarm.label, alarm)
    return tuple(first.values())[:most]
