"""Which alarms look alike: those that depart from normal rows in the same way."""

import threading
from collections import OrderedDict

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from eqsep.detector.model import Model
from eqsep.serve.records import Alarm
from eqsep.serve.teaching import rows_for

ALIKE = 0.7  # the product of two directions from which on alarms look alike
_KEPT = 6_000  # directions in memory


class Likeness:
    """The directions in which alarms depart from normal rows, kept while they may be asked again.

    They are those of `eqsep.detector.explainer.Explainer.departures`.
    """

    def __init__(self) -> None:
        self._directions: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()
        self._lock = threading.Lock()

    def directions(self, version: int, model: Model, alarms: list[Alarm]) -> np.ndarray:
        """Of alarms, by the model of a version.  -> (n_alarms, n_directions)"""
        with self._lock:
            kept = self._directions
            found = {a.id: kept[version, a.id] for a in alarms if (version, a.id) in kept}
        new = [alarm for alarm in alarms if alarm.id not in found]
        if new:
            rows = model.plan.encode(rows_for(model, [alarm.row for alarm in new]))
            made = model.explainer.departures(rows).astype(np.float32)
            found |= {alarm.id: row for alarm, row in zip(new, made, strict=True)}
            with self._lock:
                self._directions |= {(version, alarm.id): found[alarm.id] for alarm in new}
                while len(self._directions) > _KEPT:
                    self._directions.popitem(last=False)
        return np.stack([found[alarm.id] for alarm in alarms])


def groups_of(directions: np.ndarray) -> np.ndarray:
    """Which group each alarm belongs to, from 1 on: average linkage, cut where they are alike.

    Examples
    --------
    >>> groups_of(np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.4]])).tolist()
    [1, 2, 1]
    """
    if len(directions) < 2:
        return np.ones(len(directions), dtype=int)
    apart = np.maximum(1.0 - directions @ directions.T, 0.0).astype(float)
    np.fill_diagonal(apart, 0.0)
    joined = linkage(squareform(apart, checks=False), "average")
    group: np.ndarray = fcluster(joined, 1.0 - ALIKE, "distance")
    return group
