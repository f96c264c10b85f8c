"""Why rows raise alarms: the highest alarms with their reasons, and what each column does alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from eqsep.checks import counting_columns
from eqsep.detector import ColumnClosedness, Detector
from eqsep.detector.explainer import Explanation, Reason
from eqsep.detector.model import Model
from eqsep.tables.reading import Table

_DIGITS = 3  # of numbers that are shown
_ALARMS, _REASONS = 12, 4  # alarms that are explained, and columns that are named for each
_RANGES_REACHED_SOON = 3.0  # ranges beyond the learnt rows that a column which moves on will reach
_STYLES = {"later rows": "bad", "no": "bad", "close": "good"}  # of verdicts; others are late
_MAX_COLUMNS_SHOWN = 12  # all of so many columns are shown
_COLUMNS_SHOWN_OF_MORE = 10


@dataclass(frozen=True)
class ExplainedAlarm:
    """One alarm."""

    row: str  # what the row is called
    label: str
    name: str  # that the detector gives: a seen kind, or "unseen"
    p_value: float
    explanation: Explanation
    alike: int = 1  # rows with the same label and the same encoded values, this one among them

    @property
    def score(self) -> float:
        return self.explanation.score

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The columns that add something to the score, as it is shown."""
        return self.explanation.shown(_DIGITS)[0]

    @property
    def rest(self) -> float | None:
        """What other columns add, so that what is shown adds up to the score; None without any."""
        return self.explanation.shown(_DIGITS)[1]


def top_alarms(
    detector: Detector, table: Table, kind: np.ndarray, *, names: Sequence[str] | None
) -> tuple[ExplainedAlarm, ...]:
    """The highest alarms of distinct rows, from each label in turn; `names` are the rows' names."""
    model = detector.model_
    score = model.scores(table)
    above = score > model.threshold
    turns: list[tuple[int, str, int]] = []
    sizes: dict[int, int] = {}
    for label in np.unique(kind[above]):
        rows = np.flatnonzero(above & (kind == label))
        rows = rows[np.argsort(-score[rows], kind="stable")]
        groups = list(islice(_groups(model, table, rows, score), _ALARMS))
        sizes |= {group[0]: len(group) for group in groups}
        turns += [(turn, str(label), group[0]) for turn, group in enumerate(groups)]
    chosen = np.array([row for _, _, row in sorted(turns)[:_ALARMS]], dtype=int)
    chosen = chosen[np.argsort(-score[chosen], kind="stable")]
    if not len(chosen):
        return ()
    picked = table.take(chosen)
    given, p_value = model.kind_of(picked).tolist(), model.p_value(picked).tolist()
    why = model.explain(picked, top=_REASONS)
    return tuple(
        ExplainedAlarm(
            row=names[i] if names else f"row {i + 1}",
            label=str(kind[i]),
            name=name,
            p_value=p,
            explanation=reasons,
            alike=sizes[i],
        )
        for i, name, p, reasons in zip(chosen.tolist(), given, p_value, why, strict=True)
    )


def _groups(model: Model, table: Table, rows: np.ndarray, score: np.ndarray) -> Iterator[list[int]]:
    """Rows in falling order of their score, grouped by their encoded values."""
    start = 0
    while start < len(rows):
        tied = rows[start:][score[rows[start:]] == score[rows[start]]]
        start += len(tied)
        alike: dict[bytes, list[int]] = {}
        encoded = model.plan.encode(table.take(tied)) if len(tied) > 1 else tied[:, None]
        for row, values in zip(tied.tolist(), encoded, strict=True):
            alike.setdefault(values.tobytes(), []).append(row)
        yield from alike.values()


@dataclass(frozen=True)
class ColumnVerdict:
    """What becomes of rows in which one column takes unusual values."""

    closedness: ColumnClosedness
    # "above" or "below", if the column moves there as time goes by and at least half of the rows
    # there raise an alarm.
    outgrown: str | None = None
    weight: float = 0.0  # what it adds to the scores of the alarms that are explained

    @property
    def name(self) -> str:
        return self.closedness.column

    @property
    def since(self) -> str | None:
        """The value from which on later rows raise an alarm, if the column is outgrown."""
        ends = {end.where: end.since for end in self.closedness.ends}
        return ends[self.outgrown] if self.outgrown else None

    @property
    def word(self) -> str:
        """The verdict. A missing value is named if it is the only one that raises no alarm."""
        if self.outgrown:
            return "later rows"
        if self.closedness.closed:
            return "late" if self.closedness.is_late else "close"
        far = [end for end in self.closedness.ends if end.where != "missing"]
        silent = [end for end in far if not end.rings]
        if not silent:
            return "no, where missing"
        return "no" if silent == far else "one side"

    @property
    def style(self) -> str:
        """How it is coloured."""
        return _STYLES.get(self.word, "late")


def column_verdicts(
    closedness: Sequence[ColumnClosedness],
    *,
    reads: dict[str, str],
    usual: Table,
    alarms: Sequence[ExplainedAlarm],
) -> tuple[ColumnVerdict, ...]:
    """The verdict on each column: `reads` says what each is read as, `alarms` which matter."""
    tables = {one.name: Table([one], usual.named, usual.n_rows) for one in usual.columns}
    counting = {name for name, table in tables.items() if counting_columns(table)}
    weights: dict[str, float] = {}
    for reason in (reason for alarm in alarms for reason in alarm.reasons):
        weights[reason.column] = weights.get(reason.column, 0.0) + reason.contribution
    found = []
    for one in closedness:
        moves = reads.get(one.column) == "dates" or one.column in counting  # with time
        sides = [end for end in one.ends if end.where in ("above", "below") and end.rings]
        ways = [
            end.where
            for end in sides
            if end.beyond is not None and end.beyond <= _RANGES_REACHED_SOON
        ]
        outgrown = ways[-1] if moves and ways else None
        if outgrown == "below" and one.column not in counting:
            outgrown = None  # dates never go back
        found.append(ColumnVerdict(one, outgrown, weights.get(one.column, 0.0)))
    return tuple(found)


def that_matter(columns: Sequence[ColumnVerdict]) -> tuple[ColumnVerdict, ...]:
    """All columns if they are few; else the ten that matter most: first those that rows outgrow."""
    if len(columns) <= _MAX_COLUMNS_SHOWN:
        return tuple(columns)
    order = ("later rows", "no", "one side", "late", "no, where missing", "close")
    chosen = sorted(columns, key=lambda c: (not c.outgrown, -c.weight, order.index(c.word)))
    return tuple(chosen[:_COLUMNS_SHOWN_OF_MORE])
