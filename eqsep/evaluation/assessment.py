"""A fitted detector on labelled rows: what it finds and names, and whether it keeps its promise.

Every row here has a verdict already; nothing is fitted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.detector.detector import Detector
from eqsep.detector.model import Model
from eqsep.errors import UserError
from eqsep.evaluation.delay import DetectionDelay, detection_delay
from eqsep.evaluation.intervals import Interval, average_precision_interval, roc_auc_interval
from eqsep.evaluation.kinds import OVERALL, anomalous_kinds
from eqsep.evaluation.names import Names, names_given
from eqsep.evaluation.promise import Promise, kept_promises
from eqsep.evaluation.review import (
    Cost,
    GroupRates,
    Review,
    Share,
    TopScores,
    alike,
    costs_of,
    top_scores,
)
from eqsep.labels import NORMAL
from eqsep.tables.reading import read_table

_RESAMPLES = 300


@dataclass(frozen=True)
class AssessedKind:
    """What is found of one kind of anomaly, or of all together.

    Attributes
    ----------
    kind : str
    seen : bool
        Whether the detector has learnt rows of it.
    recall : Share
        Of its rows, those that raise an alarm.
    precision : Share
        Of the alarms among its rows and normal ones, those among its rows.
    average_precision, roc_auc : Interval
        Of its rows against all normal ones, whatever the threshold.
    """

    kind: str
    seen: bool
    recall: Share
    precision: Share
    average_precision: Interval
    roc_auc: Interval

    @property
    def rows(self) -> int:
        """How many rows of it there are."""
        return self.recall.total


@dataclass(frozen=True)
class Assessment:
    """What a fitted detector makes of labelled rows.

    Attributes
    ----------
    kinds : tuple of AssessedKind
        In alphabetical order.
    overall : AssessedKind or None
        All anomalies together; None where there is none.
    threshold : float
    false_alarms : Share
        Of the normal rows, those that raise an alarm.
    promise : Promise or None
        The rate that is expected at this threshold, and the verdict; None where too few rows
        calibrate to promise any, and where whole groups do.
    promised_for : str or None
        "new groups" or "new time blocks", where whole ones calibrate: the promise is one of these
        then, and their rows are alike, so that a count of rows cannot tell whether it is kept.
    groups : GroupRates or None
        The rate of each group and their mean, where whole groups calibrate and those of the rows
        are known.
    names : Names
        Those that alarms are given, and whether "unseen" is said of rows of seen kinds as promised.
    top : tuple of TopScores
    costs : dict of str to Cost
        At the "present" threshold, and at the "best" one for these rows; empty without costs.
    review : Review
    delay : DetectionDelay or None
        How soon faults are found; None where neither times nor runs are known.
    """

    kinds: tuple[AssessedKind, ...]
    overall: AssessedKind | None
    threshold: float
    false_alarms: Share
    promise: Promise | None
    promised_for: str | None
    groups: GroupRates | None
    names: Names
    top: tuple[TopScores, ...]
    costs: dict[str, Cost]
    review: Review
    delay: DetectionDelay | None = None

    @property
    def mean_average_precision(self) -> float:
        """The mean over kinds, in which a rare kind counts as much as a common one."""
        return float(np.mean([one.average_precision.value for one in self.kinds]))


def assess(
    detector: Detector,
    X: Any,
    kind: Any,
    *,
    normal: str = NORMAL,
    review: Review | None = None,
    random_state: Any = 0,
) -> Assessment:
    """Measure a fitted `eqsep.Detector` on labelled rows that it has not learnt.

    Parameters
    ----------
    detector : Detector
    X : table
    kind : array-like of str of shape (n_rows,)
        The kind of each row, by the names that the detector gives; normal rows among them.
    normal : str, default="normal"
        The name of the normal kind.
    review : Review, default=None
        How many of the highest scores are looked at, by day and entity, and at what cost.
    random_state : int, RandomState or None, default=0
        Decides the draws behind the intervals of average precision and ROC AUC.

    Notes
    -----
    Rows that were learnt score as they were taught, and say nothing of new ones:
    `eqsep.detector.learnt_before` tells whether some of them are. The best threshold is the best
    one of *these* rows: on others it costs somewhat more.

    Examples
    --------
    >>> from eqsep import Detector
    >>> from eqsep.datasets import make_mixed_demo
    >>> old, new = (make_mixed_demo(n_samples=900, random_state=seed) for seed in (0, 1))
    >>> detector = Detector(n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.05, random_state=0)
    >>> found = assess(detector.fit(old.X, old.kind), new.X, new.kind)
    >>> found.promise.verdict, found.overall.rows, [one.seen for one in found.kinds][:2]
    ('as promised', 90, [True, True])
    """
    review, model = review or Review(), detector.model_
    score = model.scores(X)
    kind = np.asarray(kind).astype(str)
    _check(score, kind, review, normal=normal)
    threshold = model.threshold
    alarm, is_anomaly = score > threshold, kind != normal
    assessed = _assessed(
        score, kind, alarm, normal=normal, random_state=random_state, seen=model.kinds
    )
    grouping = model.plan.holdout.grouping
    return Assessment(
        kinds=tuple(one for name, one in assessed.items() if name != OVERALL),
        overall=assessed.get(OVERALL),
        threshold=threshold,
        false_alarms=_share(alarm[~is_anomaly]),
        promise=_promise(model, score[~is_anomaly]),
        promised_for=None if grouping is None else grouping.promised,
        groups=_group_rates(model, X, alarm, is_anomaly),
        names=names_given(model, kind, alarm, model.kind_of(X), normal=normal),
        top=(
            *top_scores(score, is_anomaly, review),
            *_incidents(model, X, score, is_anomaly, review),
        ),
        costs=costs_of(score, is_anomaly, threshold, review),
        review=review,
        delay=_delay(alarm, kind, review, normal=normal),
    )


def _delay(
    alarm: np.ndarray, kind: np.ndarray, review: Review, *, normal: str
) -> DetectionDelay | None:
    if review.time is None and review.run is None:
        return None
    return detection_delay(
        alarm, kind, normal=normal, time=review.time, groups=review.run, persist=review.persist
    )


def _check(score: np.ndarray, kind: np.ndarray, review: Review, *, normal: str) -> None:
    if len(score) != len(kind):
        raise UserError(f"Expected the kind of each of {len(score):,} rows, got {len(kind):,}.")
    if normal not in kind:
        raise UserError(
            f"A test measures false alarms, and no row is {normal!r}: the kinds are "
            f"{sorted(set(kind.tolist()))}. Say which is the normal one: normal=..."
        )
    review.check(len(score))


def _incidents(
    model: Model, X: Any, score: np.ndarray, is_anomaly: np.ndarray, review: Review
) -> Iterator[TopScores]:
    """The highest incidents of alarms that look alike."""
    alarm = score > model.threshold
    alarms_first = is_anomaly[np.argsort(~alarm, kind="stable")]
    rows, kernel = model.plan.encode(X)[alarm], model.plan.terms.kernel
    return alike(score[alarm], alarms_first, rows, kernel=kernel, review=review)


def _group_rates(
    model: Model, X: Any, alarm: np.ndarray, is_anomaly: np.ndarray
) -> GroupRates | None:
    """The rate of false alarms of each group, where whole groups calibrate and are known here."""
    grouping = model.plan.holdout.grouping
    groups = None if grouping is None else read_table(X, name="assess").groups
    if grouping is None or groups is None:
        return None
    units = grouping.units(groups, key=model.plan.holdout.key)[~is_anomaly]
    _, place, n_rows = np.unique(units, return_inverse=True, return_counts=True)
    if len(n_rows) < 2:
        return None
    rates = np.bincount(place, weights=alarm[~is_anomaly]) / n_rows
    rate = float(model.promise.false_alarm_rate)
    return GroupRates.of(rates, promised=rate, unit=grouping.unit)


def _promise(model: Model, score: np.ndarray) -> Promise | None:
    """Whether as many normal rows as expected are above the threshold, if one can be promised."""
    if len(model.calibration.groups):
        return None
    ordered = model.calibration.ordered
    rank = model.calibration.rank(model.promise.false_alarm_rate, model.promise.confidence)
    rates = [rank / (len(ordered) + 1)]  # on average; with a confidence less than was asked for
    kept = kept_promises(score, calibration=ordered, rates=rates)
    return kept[0] if kept else None


def _share(hit: np.ndarray) -> Share:
    return Share.counted(int(np.sum(hit)), len(hit))


def _assessed(
    score: np.ndarray,
    kind: np.ndarray,
    alarm: np.ndarray,
    *,
    normal: str,
    random_state: Any,
    seen: Sequence[str],
) -> dict[str, AssessedKind]:
    kinds = anomalous_kinds(kind, normal)
    if not kinds:
        return {}
    draws = {"normal": normal, "n_resamples": _RESAMPLES, "random_state": random_state}
    precise = average_precision_interval(score, kind, **draws)
    roc = roc_auc_interval(score, kind, **draws)
    false = int(alarm[kind == normal].sum())

    def one(name: str, rows: np.ndarray) -> AssessedKind:
        recall = _share(alarm[rows])
        precision = Share.counted(recall.count, recall.count + false)
        return AssessedKind(
            kind=name,
            seen=name in seen,
            recall=recall,
            precision=precision,
            average_precision=precise[name],
            roc_auc=roc[name],
        )

    return {name: one(name, kind == name) for name in kinds} | {
        OVERALL: one(OVERALL, kind != normal)
    }
