"""The highest alarms of each kind, with their reasons."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from eqsep.detector import Detector
from eqsep.detector.explainer import Explanation, Reason
from eqsep.detector.model import Model
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
    alike : int
        How many rows with the same label it stands for, itself among them: to the detector they
        are the same.
    """

    row: str
    label: str
    said: str
    p_value: float
    explanation: Explanation
    alike: int = 1

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

    Rows that are the same to the detector are one alarm.

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
    model = detector.model_
    score = model.scores(table)
    above = score > model.threshold
    turns: list[tuple[int, str, int]] = []
    sizes: dict[int, int] = {}
    for label in np.unique(kind[above]):
        rows = np.flatnonzero(above & (kind == label))
        rows = rows[np.argsort(-score[rows], kind="stable")]
        groups = list(islice(_groups(model, table, rows, score), most))
        sizes |= {group[0]: len(group) for group in groups}
        turns += [(turn, str(label), group[0]) for turn, group in enumerate(groups)]
    chosen = np.array([row for _, _, row in sorted(turns)[:most]], dtype=int)
    chosen = chosen[np.argsort(-score[chosen], kind="stable")]
    if not len(chosen):
        return ()
    picked = table.take(chosen)
    found = zip(
        chosen.tolist(),
        model.kind_of(picked).tolist(),
        model.p_value(picked).tolist(),
        model.explain(picked, top=reasons),
        strict=True,
    )
    return tuple(
        Alarm(
            row=names[i],
            label=str(kind[i]),
            said=name,
            p_value=p,
            explanation=explanation,
            alike=sizes[i],
        )
        for i, name, p, explanation in found
    )


def _groups(model: Model, table: Table, rows: np.ndarray, score: np.ndarray) -> Iterator[list[int]]:
    """Rows that go down in their score, those together that are the same to the detector."""
    start = 0
    while start < len(rows):
        tied = rows[start:][score[rows[start:]] == score[rows[start]]]
        start += len(tied)
        alike: dict[bytes, list[int]] = {}
        encoded = model.plan.encode(table.take(tied)) if len(tied) > 1 else tied[:, None]
        for row, values in zip(tied.tolist(), encoded, strict=True):
            alike.setdefault(values.tobytes(), []).append(row)
        yield from alike.values()
