"""The highest alarms of each kind, with their reasons."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eqsep.detector import Detector
from eqsep.detector.explanation import Explanation, Reason
from eqsep.tables.reading import Table

_DIGITS = 3  # of what is shown


@dataclass(frozen=True)
class Alarm:
    """One alarm.

    Attributes
    ----------
    row : str
        What the row is called.
    label : str
        Its label.
    said : str
        What the detector takes it for: a seen kind, or "unseen".
    p_value : float
        The chance that a new normal row scores as high.
    explanation : Explanation
    """

    row: str
    label: str
    said: str
    p_value: float
    explanation: Explanation

    @property
    def score(self) -> float:
        return self.explanation.score

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The columns that add something to the score, as it is shown."""
        return tuple(r for r in self.explanation.reasons if round(r.contribution, _DIGITS))

    @property
    def rest(self) -> float:
        """What is left for all other columns, so that what is shown adds up to the score shown."""
        shown = (self.explanation.base, *(reason.contribution for reason in self.reasons))
        return round(self.score, _DIGITS) - sum(round(part, _DIGITS) for part in shown)


def top_alarms(
    detector: Detector,
    table: Table,
    kind: np.ndarray,
    *,
    names: Sequence[str],
    most: int = 12,
    reasons: int = 4,
) -> tuple[Alarm, ...]:
    """The highest alarms, from every label in turn, so that no kind hides the others.

    Parameters
    ----------
    table : Table
        Rows that the detector has not learnt.
    kind : ndarray of str
        Their labels.
    names : sequence of str
        What each row is called.
    most : int
    reasons : int
        How many columns are named for each alarm.
    """
    score = detector.score_samples(table)
    above = score > detector.threshold_
    turns = []
    for label in np.unique(kind[above]):
        rows = np.flatnonzero(above & (kind == label))
        highest = rows[np.argsort(-score[rows], kind="stable")][:most]
        turns += [(turn, str(label), row) for turn, row in enumerate(highest.tolist())]
    chosen = np.array([row for _, _, row in sorted(turns)[:most]], dtype=int)
    chosen = chosen[np.argsort(-score[chosen], kind="stable")]
    if not len(chosen):
        return ()
    picked = table.take(chosen)
    told = zip(
        chosen.tolist(),
        detector.predict_kind(picked).tolist(),
        detector.p_value(picked).tolist(),
        detector.explain(picked, top=reasons),
        strict=True,
    )
    return tuple(Alarm(names[i], str(kind[i]), said, p, why) for i, said, p, why in told)
