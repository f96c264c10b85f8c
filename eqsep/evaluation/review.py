"""The work that alarms make: the highest scores of each day and entity, incidents, and costs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest, t

from eqsep.engine.kernels import Kernel
from eqsep.errors import ParameterError, UserError
from eqsep.labels import UNLABELLED, label_codes

ALIKE = 0.2  # the kernel value above which two alarms look alike
MOST_ALARMS = 3000  # the highest, that are compared with each other


@dataclass(frozen=True, eq=False)
class Review:
    """How alarms are worked off: so many of the highest scores, by day and entity, at what cost.

    Attributes
    ----------
    top : int, default=20
        How many of the highest scores are looked at: of all rows, and of each day and entity.
    day, entity : array-like of shape (n_rows,), default=None
        The day of each row, and whom or what it is about: a card, a host, a machine. A row without
        an entity is one of its own.
    cost_alarm, cost_miss : float, default=None
        What it costs to look at an alarm, true or false, and to miss an anomaly. Both or neither.
    time, run : array-like of shape (n_rows,), default=None
        When each row was taken, numbers or dates, and in which run: with one of them it is measured
        how soon faults are found.
    persist : callable, default=None
        Which alarms stay, as in `detection_delay`; counts there alone.
    """

    top: int = 20
    day: Any = None
    entity: Any = None
    cost_alarm: float | None = None
    cost_miss: float | None = None
    time: Any = None
    run: Any = None
    persist: Any = None

    def check(self, n_rows: int) -> None:
        """Refuse what cannot be, of so many rows."""
        if self.top < 1:
            raise ParameterError("top", expected="a number of rows, 1 or more", got=self.top)
        costs = {"cost_alarm": self.cost_alarm, "cost_miss": self.cost_miss}
        for name, cost in costs.items():
            if cost is not None and cost < 0:
                raise ParameterError(name, expected="a number of at least 0", got=cost)
        if None in costs.values() and set(costs.values()) != {None}:
            raise UserError(
                "Costs come in pairs, that of an alarm and that of a miss: got one of them.",
                hint="Pass both cost_alarm and cost_miss, or neither.",
                topic="lone_cost",
            )
        for name in ("day", "entity", "time", "run"):
            values = getattr(self, name)
            if values is not None and len(values) != n_rows:
                raise UserError(f"Expected the {name} of each of {n_rows:,} rows: {len(values):,}.")


@dataclass(frozen=True)
class Share:
    """A counted share, with the ends of its 95 % interval (Clopper and Pearson's).

    Examples
    --------
    >>> print(Share.counted(8, 10))
    0.800 [0.444, 0.975]
    >>> print(Share.counted(0, 0))
    none
    """

    count: int
    total: int
    low: float
    high: float

    @classmethod
    def counted(cls, count: int, total: int) -> "Share":
        """So many of so many."""
        if not total:
            return cls(0, 0, 0.0, 1.0)
        ends = binomtest(int(count), int(total)).proportion_ci(0.95, method="exact")
        return cls(int(count), int(total), float(ends.low), float(ends.high))

    @property
    def value(self) -> float:
        """The share; not a number where there was nothing to count."""
        return self.count / self.total if self.total else float("nan")

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.total else "none"


@dataclass(frozen=True)
class GroupRates:
    """The share of normal rows that raise an alarm, group by group.

    Attributes
    ----------
    rates : tuple of float
        Of each group, in rising order.
    promised : float
        At most this is promised of their mean.
    low, high : float
        The ends of the 95 % interval of the mean (Student's), for groups that are drawn alike.
    unit : str
        What a group is, in a word.

    Examples
    --------
    >>> rate = GroupRates.of([0.0, 0.02, 0.01, 0.03], promised=0.05, unit="group")
    >>> print(rate)
    mean over 4 groups 1.50% [0.00%, 3.55%], as promised; at worst 3.00%
    """

    rates: tuple[float, ...]
    promised: float
    low: float
    high: float
    unit: str

    @classmethod
    def of(cls, rates: Any, *, promised: float, unit: str) -> "GroupRates":
        """The same of the rates of two groups or more."""
        ordered = np.sort(np.asarray(rates, dtype=float))
        error = ordered.std(ddof=1) / np.sqrt(len(ordered)) * t.ppf(0.975, len(ordered) - 1)
        low, high = max(ordered.mean() - error, 0.0), min(ordered.mean() + error, 1.0)
        return cls(tuple(ordered.tolist()), promised, float(low), float(high), unit)

    @property
    def mean(self) -> float:
        """The mean over groups, each of which counts the same."""
        return float(np.mean(self.rates))

    @property
    def verdict(self) -> str:
        """Whether the promise is kept, as far as chance lets one tell."""
        return "more than chance explains" if self.low > self.promised else "as promised"

    def __str__(self) -> str:
        return (
            f"mean over {len(self.rates):,} {self.unit}s {self.mean:.2%} [{self.low:.2%}, "
            f"{self.high:.2%}], {self.verdict}; at worst {self.rates[-1]:.2%}"
        )


@dataclass(frozen=True)
class TopScores:
    """What is found where the highest scores are looked at, and nothing else.

    Attributes
    ----------
    among : {"all", "day", "entity", "alarms"}
        Of what the highest are taken: of all, of each day or entity, or of the alarms.
    incidents : bool
        Whether the rows of one entity, on one day where days are known, or alarms that look alike
        are one incident. It scores as its highest row, and is anomalous where one of its rows is.
    groups : int
        How many days, entities, or incidents of alarms there are.
    precision, recall : Share
        Of those that are looked at, and of all rows or incidents, the anomalous ones. Of alarms
        that look alike, recall is that of rows: those of the incidents that are looked at.
    """

    among: str
    incidents: bool
    groups: int
    precision: Share
    recall: Share


@dataclass(frozen=True)
class Cost:
    """What a threshold costs on these rows: alarms that are looked at, and anomalies missed."""

    threshold: float
    alarms: int
    false_alarms: int
    missed: int
    total: float


def top_scores(score: np.ndarray, is_anomaly: np.ndarray, review: Review) -> Iterator[TopScores]:
    """The highest of all, of each day and of each entity: rows, and incidents where there are."""
    n = len(score)
    day = None if review.day is None else label_codes(review.day, n)[1]
    entity = None if review.entity is None else label_codes(review.entity, n)[1]
    if entity is not None:
        entity = np.where(entity == UNLABELLED, n + np.arange(n), entity)  # each its own
    groups = {"all": np.zeros(n, dtype=int), "day": day, "entity": entity}
    incident = None
    if entity is not None:
        days = np.zeros_like(entity) if day is None else day
        both = np.column_stack([entity, days])
        incident = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    for among, group in groups.items():
        if group is None:
            continue
        yield _highest(score, is_anomaly, group, among=among, top=review.top)
        if incident is None or (among == "entity" and day is None):  # one of each entity
            continue
        m = incident.max() + 1
        high, anomalous, of_group = np.full(m, -np.inf), np.zeros(m, bool), np.zeros(m, int)
        np.maximum.at(high, incident, score)
        np.logical_or.at(anomalous, incident, is_anomaly)
        of_group[incident] = group
        yield _highest(high, anomalous, of_group, among=among, top=review.top, incidents=True)


def alike(
    score: np.ndarray, is_anomaly: np.ndarray, rows: np.ndarray, *, kernel: Kernel, review: Review
) -> Iterator[TopScores]:
    """The highest incidents, where alarms that look alike are one; nothing without two alarms.

    From the highest on, an alarm joins the incident whose first row it is most like, by the kernel
    of the detector, or begins another.

    Parameters
    ----------
    score : ndarray of shape (n_alarms,)
    is_anomaly : ndarray of bool of shape (n_rows,)
        Of all rows, the alarms first.
    rows : ndarray of shape (n_alarms, n_columns)
        The alarms, encoded.
    """
    order = np.argsort(-score, kind="stable")[:MOST_ALARMS]
    if len(order) < 2:
        return
    incident = incidents(rows[order], kernel=kernel)
    hits = is_anomaly[order]
    n_incidents = int(incident.max()) + 1
    looked = min(review.top, n_incidents)
    anomalous = len(np.unique(incident[hits & (incident < looked)]))
    yield TopScores(
        among="alarms",
        incidents=True,
        groups=n_incidents,
        precision=Share.counted(anomalous, looked),
        recall=Share.counted(int(hits[incident < looked].sum()), int(is_anomaly.sum())),
    )


def incidents(rows: np.ndarray, *, kernel: Kernel) -> np.ndarray:
    """Which incident each of the encoded `rows` belongs to: those that look alike share one.

    In their order, a row joins the incident whose first row it is most like, or begins another.

    Examples
    --------
    >>> from eqsep.kernels import Laplacian
    >>> incidents(np.array([[0.0], [9.0], [0.1]]), kernel=Laplacian(gamma=1.0)).tolist()
    [0, 1, 0]
    """
    likeness = np.asarray(kernel(rows, rows), dtype=float)
    firsts: list[int] = []
    incident = np.empty(len(rows), dtype=int)
    for i in range(len(rows)):
        best = int(np.argmax(likeness[i, firsts])) if firsts else -1
        if best < 0 or likeness[i, firsts[best]] <= ALIKE:
            firsts.append(i)
            best = len(firsts) - 1
        incident[i] = best
    return incident


def _highest(
    score: np.ndarray,
    is_anomaly: np.ndarray,
    group: np.ndarray,
    *,
    among: str,
    top: int,
    incidents: bool = False,
) -> TopScores:
    order = np.lexsort([-score, group])
    first = np.searchsorted(group[order], group[order])  # where the group of each begins
    looked = order[np.arange(len(order)) - first < top]
    hits = int(is_anomaly[looked].sum())
    return TopScores(
        among=among,
        incidents=incidents,
        groups=len(np.unique(group)),
        precision=Share.counted(hits, len(looked)),
        recall=Share.counted(hits, int(is_anomaly.sum())),
    )


def costs_of(
    score: np.ndarray, is_anomaly: np.ndarray, threshold: float, review: Review
) -> dict[str, Cost]:
    """At the present threshold, and at the one which costs least; the highest of equal ones."""
    if review.cost_alarm is None or review.cost_miss is None:
        return {}
    a_alarm, a_miss = review.cost_alarm, review.cost_miss

    def cost(limit: float) -> Cost:
        alarm = score > limit
        missed = int((is_anomaly & ~alarm).sum())
        total = a_alarm * int(alarm.sum()) + a_miss * missed
        return Cost(
            threshold=limit,
            alarms=int(alarm.sum()),
            false_alarms=int((alarm & ~is_anomaly).sum()),
            missed=missed,
            total=total,
        )

    limits, place = np.unique(score, return_inverse=True)  # an alarm is above, not at the limit
    limits = np.concatenate([[-np.inf], limits])
    at = np.bincount(place + 1, minlength=len(limits))
    caught = np.bincount(place + 1, weights=is_anomaly, minlength=len(limits))
    totals = a_alarm * (len(score) - np.cumsum(at)) + a_miss * np.cumsum(caught)
    best = len(totals) - 1 - int(np.argmin(totals[::-1]))
    return {"present": cost(threshold), "best": cost(float(limits[best]))}
