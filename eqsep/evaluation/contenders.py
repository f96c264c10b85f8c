"""Contenders of a backtest: what each learns from what is known, when a period begins.

Of each row it is known, at that time, that it was not seen yet, was seen, was judged because it
raised an alarm, or has the label that all rows get in the end.
"""

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import clone

from eqsep.arrays import objects
from eqsep.detector.detector import Detector
from eqsep.errors import EqsepWarning
from eqsep.labels import NORMAL
from eqsep.separators.scores import anomaly_score
from eqsep.tables import TableEncoder
from eqsep.tables.reading import Table

AHEAD, SEEN, JUDGED, LABELLED = range(4)  # what is known of a row


class Contender(ABC):
    """A method that learns as labels come, and scores the rows of each period."""

    @abstractmethod
    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        """Learn what is known now of all rows: 0 ahead, 1 seen, 2 judged, 3 labelled."""

    @abstractmethod
    def scores(self, rows: Table) -> np.ndarray | None:
        """The score of each row, larger for the more anomalous; None where there is no model."""

    @property
    def promised(self) -> float | None:
        """The rate of false alarms above 0 that is promised; None where there is none."""
        return None


class Learning(Contender):
    """A detector that learns on: each day's model is the exact sum of what was known then.

    Rows wait until they are known for what they are, and are learnt then. A row that was judged
    because of an alarm teaches without calibrating; once it has its label as all others have, it is
    forgotten as that and learnt like them, so that held-out rows stay a fair sample. With `pending`
    rows teach before, too, as rows without a label, and are forgotten as such later: that costs
    each row three sums instead of one, and next to rows labelled normal it counts little.

    Parameters
    ----------
    detector : Detector
        Not fitted.
    refit : int, default=0
        Fit again before each so many periods, with landmarks from all that is known; 0 is never.
    pending : bool, default=False
    """

    def __init__(self, detector: Detector, *, refit: int = 0, pending: bool = False) -> None:
        self.detector, self.refit, self.pending = detector, refit, pending
        self._learnt: np.ndarray | None = None
        self._age = 0

    @property
    def promised(self) -> float | None:
        return float(self.detector.false_alarm_rate)

    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        known = known if self.pending else np.where(known == SEEN, AHEAD, known)
        self._age += 1
        begin = self._learnt is None
        with warnings.catch_warnings():
            if not begin:
                warnings.simplefilter("ignore", EqsepWarning)  # the first fit has given them
            if self._learnt is None or (self.refit and self._age > self.refit):
                first = np.flatnonzero(known == LABELLED)
                self.detector = clone(self.detector).fit(rows.take(first), kind[first])
                self._learnt, self._age = np.where(known == LABELLED, LABELLED, AHEAD), 1
            self._move(rows, kind, self._learnt, known)
        self._learnt = known

    def _move(self, rows: Table, kind: np.ndarray, was: np.ndarray, now: np.ndarray) -> None:
        """Forget rows as they were learnt, and learn them as they are known now."""
        for stage in (SEEN, JUDGED):  # neither calibrates
            gone = np.flatnonzero((was == stage) & (now != stage))
            if len(gone):
                self.detector.forget(rows.take(gone), _labels(kind, gone, stage), judged=True)
        for stage in (SEEN, JUDGED, LABELLED):
            new = np.flatnonzero((now == stage) & (was != stage))
            if len(new):
                self.detector.partial_fit(
                    rows.take(new), _labels(kind, new, stage), judged=stage != LABELLED
                )

    def scores(self, rows: Table) -> np.ndarray | None:
        if self._learnt is None:
            return None
        return self.detector.decision_function(rows)


class Fixed(Contender):
    """A fitted detector that stays as it is, in the shadow of others."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector

    @property
    def promised(self) -> float | None:
        return float(self.detector.false_alarm_rate)

    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        """Nothing."""

    def scores(self, rows: Table) -> np.ndarray | None:
        return self.detector.decision_function(rows)


class Retrained(Contender):
    """A classifier of scikit-learn's kind, fitted again before each period to all that is known.

    It takes rows of both classes: until an anomaly is known there is no model.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self._fitted: tuple[TableEncoder, Any] | None = None

    def learn(self, rows: Table, kind: np.ndarray, known: np.ndarray) -> None:
        places = np.flatnonzero(known >= JUDGED)
        y = (kind[places] != NORMAL).astype(int)
        if len(np.unique(y)) < 2:
            return
        encoder = TableEncoder().fit(rows.take(places))
        encoded = encoder.transform(rows.take(places))
        self._fitted = encoder, clone(self.estimator).fit(encoded, y)

    def scores(self, rows: Table) -> np.ndarray | None:
        if self._fitted is None:
            return None
        encoder, fitted = self._fitted
        return anomaly_score(fitted, encoder.transform(rows))


def _labels(kind: np.ndarray, rows: np.ndarray, stage: int) -> np.ndarray:
    return objects([None] * len(rows)) if stage == SEEN else kind[rows]
