"""Why a row has its score: which columns drive it, and towards which normal value."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from eqsep.detector.scoring import Scorer, scorer_of
from eqsep.engine.compiled import SparseManhattan
from eqsep.errors import UserError
from eqsep.tables.decodings import decoded
from eqsep.tables.reading import Table

AT_ONCE = 256  # rows
ROUNDED = 1e-12  # of the largest value of a column: below, what windows of it hold is rounding
LONGEST = 32  # columns that are exchanged one by one; the nearer ones go together


@dataclass(frozen=True)
class Reason:
    """What one column adds to a row's score.

    Attributes
    ----------
    column : str
        The column's name in the table.
    value, normal_value : str
        What the row has there, and what the nearest normal row has.
    contribution : float
        How much of the score is due to the difference.
    """

    column: str
    value: str
    normal_value: str
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """A row's score as a sum: `base`, what each of the `reasons` adds, and the `rest`.

    Attributes
    ----------
    score : float
    base : float
        The score of the nearest normal row.
    reasons : tuple of Reason
        The columns that add most, in that order.
    rest : float
        What all other columns add together.
    nearest_normal : dict of str to str
        The values of the nearest normal row, among those kept that raise no alarm.
    nearest_kind : str or None
        The seen kind that the row is most like; None where no kind was seen.
    likeness : float
        How much it is like that kind: about 1 for a row of it, 0 for none.
    """

    score: float
    base: float
    reasons: tuple[Reason, ...]
    rest: float
    nearest_normal: dict[str, str]
    nearest_kind: str | None
    likeness: float

    def __str__(self) -> str:
        """One line for each reason that adds something, and one for the nearest kind."""
        lines = [f"score {self.score:.3f}; the nearest normal row has {self.base:.3f}"]
        for reason in filter(lambda reason: reason.contribution, self.reasons):
            lines.append(
                f"  {reason.contribution:+.3f}  {reason.column} = {reason.value}"
                f" (normal: {reason.normal_value})"
            )
        lines.append(f"  {self.rest:+.3f}  all other columns")
        if self.nearest_kind is not None:
            likeness = max(self.likeness, 0.0)  # below 0 is as unlike as 0
            lines.append(f"  likeness to {self.nearest_kind}: {likeness:.2f}")
        return "\n".join(lines)


def explain_rows(detector: Any, table: Table, *, top: int) -> list[Explanation]:
    """An explanation of each row of an aligned table by a fitted detector.

    The row is turned into the nearest normal row column by column, once the most different columns
    first and once last; what a column adds is the mean fall of the score at its turn. So the parts
    add up to the score exactly, whatever the function.
    """
    if not top >= 1:
        raise UserError(f"top must be at least 1, got {top!r}.")
    feature_map, scorer = detector.feature_map_, scorer_of(detector)
    Z = feature_map.rows(table)
    normal = _NormalRows(detector, [column.name for column in table.columns])
    likeness = scorer.likeness(Z) if detector.kinds_ else np.zeros((len(Z), 0))
    names, columns = normal.names, normal.columns
    texts = cache(lambda j: _texts(table, j, feature_map.table_columns))
    normal_values = cache(normal.values)

    out = []
    for start in range(0, len(Z), AT_ONCE):
        rows = Z[start : start + AT_ONCE]
        nearest = normal.distance(rows).argmin(axis=1)
        score, base, share = _shares(scorer, rows, normal.rows[nearest], feature_map.source)
        order = np.argsort(-share, axis=1, kind="stable")[:, :top]
        for i, (n, best) in enumerate(zip(nearest.tolist(), order, strict=True)):
            there = normal_values(n)
            reasons = tuple(
                Reason(
                    names[columns[b]],
                    _shown(texts(int(columns[b]))[start + i]),
                    there[names[columns[b]]],
                    float(share[i, b]),
                )
                for b in best
            )
            kind = int(likeness[start + i].argmax()) if detector.kinds_ else None
            out.append(
                Explanation(
                    score=float(score[i]),
                    base=float(base[i]),
                    reasons=reasons,
                    rest=float(share[i].sum() - share[i, best].sum()),
                    nearest_normal=there,
                    nearest_kind=None if kind is None else detector.kinds_[kind],
                    likeness=0.0 if kind is None else float(likeness[start + i, kind]),
                )
            )
    return out


def nearest_normal_rows(detector: Any, table: Table, *, n: int) -> list[list[dict[str, str]]]:
    """The `n` kept normal rows that are nearest to each row of an aligned table, the nearest first.

    Like the one of an `Explanation`, in the units of the table.
    """
    normal = _NormalRows(detector, [column.name for column in table.columns])
    order = normal.distance(detector.feature_map_.rows(table)).argsort(axis=1, kind="stable")
    return [[normal.values(i) for i in near[:n].tolist()] for near in order]


def departures(detector: Any, Z: np.ndarray) -> np.ndarray:
    """The directions in which encoded rows depart from their nearest normal rows, of length 1.

    One half of a direction is the difference, the other one the root of what each column adds to
    the score by it, with the sign of the difference. Of two rows that depart alike the product is
    near 1, however far they are and whatever the bandwidth.  (n, d) -> (n, 2 d)
    """
    feature_map, scorer = detector.feature_map_, scorer_of(detector)
    normal = _NormalRows(detector, [])
    column = np.unique(feature_map.source, return_inverse=True)[1]
    out = np.empty((len(Z), 2 * Z.shape[1]))
    for start in range(0, len(Z), AT_ONCE):
        rows = Z[start : start + AT_ONCE]
        nearest = normal.rows[normal.distance(rows).argmin(axis=1)]
        share = _shares(scorer, rows, nearest, feature_map.source)[2]
        gap = (rows - nearest).astype(float)
        length = np.zeros((len(rows), share.shape[1]))
        np.add.at(length.T, column, gap.T**2)
        added = np.sqrt(np.maximum(share, 0.0) / np.where(length > 0, length, 1.0))
        halves = _of_length_1(gap), _of_length_1(gap * added[:, column])
        out[start : start + AT_ONCE] = np.concatenate(halves, axis=1) / np.sqrt(2)
    return out


def _of_length_1(rows: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: np.ndarray = rows / np.where(length > 0, length, 1.0)
    return scaled


class _NormalRows:
    """The normal rows that are kept and raise no alarm: how far they are, and their values."""

    def __init__(self, detector: Any, names: list[str]) -> None:
        feature_map = detector.feature_map_
        landmarks = feature_map.landmarks[feature_map.is_normal]
        self.rows = _passing(detector, np.concatenate([landmarks, detector.calibration_.rows]))
        self.names, self.columns = names, np.unique(feature_map.source)
        self._feature_map, self._outputs = feature_map, feature_map.outputs(self.rows)
        self._distance = SparseManhattan(feature_map.packing(self.rows))

    def distance(self, rows: np.ndarray) -> np.ndarray:
        """To encoded rows.  (n, n_columns) -> (n, n_normal)"""
        far: np.ndarray = self._distance(self._feature_map.packing(rows))
        return far

    def values(self, i: int) -> dict[str, str]:
        """What the i-th one has in each column."""
        encoder, there = self._feature_map.encoder, self._outputs[i]
        return {self.names[j]: decoded(encoder, j, there) for j in self.columns.tolist()}


def _passing(detector: Any, normal: np.ndarray) -> np.ndarray:
    """The normal rows that raise no alarm: others are no measure. All where there are none."""
    passes = scorer_of(detector).scores(normal) <= detector.threshold_
    return normal[passes] if passes.any() else normal


def _texts(table: Table, j: int, of_the_table: Collection[str]) -> list[str | None]:
    """The values as they came; those of windows, which were computed, with six digits.

    What rounding leaves of values that are all the same is 0.
    """
    column = table.columns[j]
    if column.name in of_the_table:
        return column.texts()
    source = next(one for one in table.columns if one.name == column.name.rsplit(", ", 1)[0])
    size = np.abs(source.values)
    least = ROUNDED * size[np.isfinite(size)].max(initial=0.0)
    values = np.where(np.abs(column.values) <= least, 0.0, column.values)
    return [None if value != value else f"{value:.6g}" for value in values.tolist()]


def _shown(text: str | None) -> str:
    return "missing" if text is None else text


def _shares(
    scorer: Scorer, rows: np.ndarray, normal: np.ndarray, source: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The scores of the rows and of their normal ones, and each column's part of the difference."""
    columns, column = np.unique(source, return_inverse=True)
    gap = np.zeros((len(rows), len(columns)))
    np.add.at(gap.T, column, np.abs(rows - normal).T.astype(float))
    order = np.argsort(-gap, axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    steps = min(len(columns), LONGEST)
    turn = np.minimum(rank, steps - 1)[:, column]  # when each encoded column is exchanged
    both = []
    for when in (turn, steps - 1 - turn):
        points = np.stack([np.where(when < t, normal, rows) for t in range(steps + 1)], axis=1)
        scores = scorer.scores(points.reshape(-1, rows.shape[1])).reshape(len(rows), steps + 1)
        both.append(scores[:, :-1] - scores[:, 1:])
    fall = (both[0] + both[1][:, ::-1]) / 2
    share = np.take_along_axis(fall, np.minimum(rank, steps - 1), axis=1)
    # Columns that were exchanged together share their part by how far they are from normal.
    last = rank >= steps - 1
    weight = np.where(last, gap + 1e-300, 1.0)
    weight = np.where(last, weight / np.where(last, weight, 0).sum(axis=1, keepdims=True), 1.0)
    return scores[:, 0], scores[:, -1], share * weight
