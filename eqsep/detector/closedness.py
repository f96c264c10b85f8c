"""Is the normal region closed along each column? What the score does as one value goes far out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from eqsep.arrays import objects
from eqsep.detector.audit import Fitted
from eqsep.detector.model import NEW_NAME, Model
from eqsep.tables.encodings import Category, Date, Number
from eqsep.tables.reading import WRITERS, Column, Table

_SECONDS_A_DAY = 86_400.0
_INNER_VALUES, _OUTER_VALUES = 31, 25  # values that are tried
NEAR = 0.5  # ranges of the normal rows beyond them: who rings later rings late
_NEAREST_RANGE, _FARTHEST_RANGE = 0.005, 5e5  # in ranges; NEAR is among the values that are tried
_MAX_NAMES = 8
_MAX_DRAWN_ROWS = 5_000  # normal rows of a large table
_RANGES_BEYOND = np.geomspace(_NEAREST_RANGE, _FARTHEST_RANGE, _OUTER_VALUES).round(6)


@dataclass(frozen=True)
class End:
    """Where a column leaves what normal rows have."""

    where: str  #: "below", "above", "new name" or "missing"
    alarm: float  #: the share of the rows that raise an alarm as far out as was tried
    #: the value, going outwards from the median, from which half of them do; None if no value or
    #: the median, too
    since: str | None = None
    beyond: float | None = None  #: how far that is beyond the normal rows, in ranges of theirs

    @property
    def rings(self) -> bool:
        """Whether at least half of the rows raise an alarm."""
        return self.alarm >= 0.5

    @property
    def is_late(self) -> bool:
        """Whether they do, but only more than half a range beyond the normal rows."""
        return self.rings and self.beyond is not None and self.beyond > NEAR


@dataclass(frozen=True)
class ColumnClosedness:
    """The scores of normal rows in which one column takes other values."""

    column: str
    values: tuple[str, ...]  #: what the column was set to
    #: where a number lies: the share of normal rows that are smaller, and d ranges beyond them at
    #: 1 + d / (1 + d) or -d / (1 + d); None for a column of names
    position: np.ndarray | None
    score: np.ndarray  #: the 10 %, 50 % and 90 % quantiles of the scores, (n_values, 3)
    threshold: float
    ends: tuple[End, ...]

    @property
    def closed(self) -> bool:
        """Whether at least half of the rows raise an alarm at every end."""
        return all(end.rings for end in self.ends)

    @property
    def at_far_values(self) -> bool | None:
        """Whether they do at some end but a missing value; None if there is no such end."""
        rings = [end.rings for end in self.ends if end.where != "missing"]
        return any(rings) if rings else None

    @property
    def is_late(self) -> bool:
        """Whether they do so at some end only far beyond the normal rows."""
        return any(end.is_late for end in self.ends)


def closedness_by_column(
    detector: Fitted, X: Any, *, n_rows: int = 24, random_state: Any = 0
) -> tuple[ColumnClosedness, ...]:
    """How the score of normal rows behaves as one column after the other leaves what is usual.

    Parameters
    ----------
    detector : Detector
        Fitted.
    X : table
        Normal rows. Their range is what "far out" is measured in.
    n_rows : int, default=24
        How many of them, drawn among those that raise no alarm, are varied.
    random_state : int, RandomState or None, default=0
        Decides the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> for column in closedness_by_column(Detector(random_state=0).fit(X), X):
    ...     print(column.column, [(end.where, end.rings) for end in column.ends])
    x0 [('below', True), ('above', True), ('missing', True)]
    x1 [('below', True), ('above', True), ('missing', True)]
    """
    model = detector.model_
    table = model.plan.align(X)
    score = model.scores(table)
    passing = np.flatnonzero(score <= model.threshold)
    passing = passing if len(passing) else np.argsort(score)
    chosen = np.sort(check_random_state(random_state).permutation(passing)[:n_rows])
    Z = model.plan.encode(table.take(chosen))
    return tuple(
        _vary(model, Z, table.columns[j], chosen, index=j)
        for j, learnt in enumerate(model.plan.encoder.columns)
        if learnt is not None
    )


def varied_rows(table: Table) -> Table:
    """Some of the normal rows of a table, drawn at random: enough to see what is far out."""
    return table.take(np.random.default_rng(0).permutation(table.n_rows)[:_MAX_DRAWN_ROWS])


def _vary(
    model: Model, Z: np.ndarray, column: Column, chosen: np.ndarray, *, index: int
) -> ColumnClosedness:
    learnt = model.plan.encoder.columns[index]
    assert learnt is not None
    if not isinstance(learnt, Category):
        numbers = column.numbers(learnt.reads)
        has_missing = bool(np.isnan(numbers).any())
        tried, position, texts = _numbers(numbers, chosen, learnt)
        tried = np.vstack([tried, np.full(len(chosen), np.nan)])
        scores = _scores(model, Z, Column(column.name, learnt.reads, tried.ravel()), index)
        alarm = (scores > model.threshold).mean(axis=1)
        middle = _OUTER_VALUES + _INNER_VALUES // 2
        ends = [
            _side("below", alarm[middle::-1], texts[middle::-1]),
            _side("above", alarm[middle:-1], texts[middle:]),
        ]
    else:
        truths = learnt.reads == "boolean"
        found, place = column.names(truths=truths)
        counts = np.bincount(place, minlength=len(found))
        order = np.argsort(-counts, kind="stable")  # the most frequent names first
        names = [found[i] for i in order if found[i] is not None][:_MAX_NAMES]
        has_missing, new = None in column.names()[0], [] if truths else [NEW_NAME]
        values = objects(np.repeat(objects([*names, *new, None]), len(chosen)))
        scores = _scores(model, Z, Column(column.name, "text", values), index)
        alarm = (scores > model.threshold).mean(axis=1)
        ends = [End("new name", float(alarm[-2]))] if new else []
        position, texts = None, [*names, *new, *["missing"] * has_missing]
    if not has_missing:
        ends.append(End("missing", float(alarm[-1])))
    spread = np.quantile(scores, [0.1, 0.5, 0.9], axis=1).T
    return ColumnClosedness(
        column=column.name,
        values=tuple(texts),
        position=position,
        score=spread[: len(texts)],
        threshold=float(model.threshold),
        ends=tuple(ends),
    )


def _numbers(
    numbers: np.ndarray, chosen: np.ndarray, learnt: Date | Number
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Values for each row, whose dates keep hour and weekday; their positions; their texts."""
    unit, there = learnt.reads, numbers[~np.isnan(numbers)]
    there = there if len(there) else np.array(learnt.number.knots or [0.0])  # those of anomalies
    share = np.linspace(0, 1, _INNER_VALUES)
    inside = np.quantile(there, share, method="nearest")
    low, high = float(inside[0]), float(inside[-1])
    width = (high - low) or abs(high) or 1.0
    values = np.concatenate(
        [low - width * _RANGES_BEYOND[::-1], inside, high + width * _RANGES_BEYOND]
    )
    far = _RANGES_BEYOND / (1 + _RANGES_BEYOND)
    position = np.concatenate([-far[::-1], share, 1 + far])
    tried = np.repeat(values[:, None], len(chosen), axis=1)
    if unit != "date":
        return tried, position, [WRITERS[unit](float(f"{value:.3g}")) for value in values.tolist()]
    step = (
        7 * _SECONDS_A_DAY
        if width > 28 * _SECONDS_A_DAY
        else _SECONDS_A_DAY
        if width > 4 * _SECONDS_A_DAY
        else 1.0
    )
    own = np.where(np.isnan(numbers[chosen]), low, numbers[chosen])
    tried = own + step * np.round((tried - own) / step)
    dates = [WRITERS[unit](value) for value in values.tolist()]
    return tried, position, [date.split("T")[0] if step > 1 else date for date in dates]


def _scores(model: Model, Z: np.ndarray, column: Column, index: int) -> np.ndarray:
    """The scores of the rows with this column instead of theirs.  -> (n_values, n_rows)"""
    encoder = model.plan.encoder
    rows = np.tile(Z, (len(column.values) // len(Z), 1))
    rows[:, encoder.source == index] = encoder.encode_column(index, column)
    return model.score(rows).reshape(-1, len(Z))


def _side(where: str, alarm: np.ndarray, texts: list[str]) -> End:
    """An end, from the shares of rows that raise an alarm at values going outwards."""
    quiet = np.flatnonzero(alarm < 0.5)
    first = int(quiet[-1]) + 1 if len(quiet) else 0
    if first in (0, len(texts)):  # learnt values ring too, or none does
        return End(where, float(alarm[-1]))
    inside = len(texts) - _OUTER_VALUES
    since = float(_RANGES_BEYOND[first - inside]) if first >= inside else 0.0
    return End(where, float(alarm[-1]), texts[first], since)
