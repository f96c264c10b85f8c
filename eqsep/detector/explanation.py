"""Why a row has its score: which columns drive it, and towards which normal value."""

import weakref
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from eqsep.detector.scoring import Scorer, scorer_of
from eqsep.engine.loops import in_threads
from eqsep.engine.manhattan import SparseManhattan
from eqsep.engine.nystroem import CACHED_ROWS
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
    normal = _normal_rows(detector)
    likeness = scorer.likeness(Z) if detector.kinds_ else np.zeros((len(Z), 0))
    names, columns = normal.names, normal.columns
    texts = cache(lambda j: _texts(table, j, feature_map.table_columns))

    out = []
    for start in range(0, len(Z), AT_ONCE):
        rows = Z[start : start + AT_ONCE]
        nearest = normal.nearest(rows)
        score, base = scorer.scores(rows), normal.scores[nearest]
        share = _shares(scorer, (rows, normal.rows[nearest]), (score, base))
        order = np.argsort(-share, axis=1, kind="stable")[:, :top]
        for i, (n, best) in enumerate(zip(nearest.tolist(), order, strict=True)):
            there = normal.values(n)
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
    normal = _normal_rows(detector)
    order = normal.distance(detector.feature_map_.rows(table)).argsort(axis=1, kind="stable")
    return [[normal.values(i) for i in near[:n].tolist()] for near in order]


def departures(detector: Any, Z: np.ndarray) -> np.ndarray:
    """The directions in which encoded rows depart from their nearest normal rows, of length 1.

    One half of a direction is the difference, the other one the root of what each column adds to
    the score by it, with the sign of the difference. Of two rows that depart alike the product is
    near 1, however far they are and whatever the bandwidth.  (n, d) -> (n, 2 d)
    """
    feature_map, scorer = detector.feature_map_, scorer_of(detector)
    normal = _normal_rows(detector)
    column = np.unique(feature_map.source, return_inverse=True)[1]
    out = np.empty((len(Z), 2 * Z.shape[1]))
    for start in range(0, len(Z), AT_ONCE):
        rows = Z[start : start + AT_ONCE]
        place = normal.nearest(rows)
        nearest = normal.rows[place]
        share = _shares(scorer, (rows, nearest), (scorer.scores(rows), normal.scores[place]))
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

    def __init__(self, detector: Any) -> None:
        feature_map = detector.feature_map_
        landmarks = feature_map.landmarks[feature_map.is_normal]
        rows = np.concatenate([landmarks, detector.calibration_.rows])
        scores = scorer_of(detector).scores(rows)
        passes = scores <= detector.threshold_  # others are no measure, unless there are none
        kept = passes if passes.any() else ~passes
        self.rows, self.scores = rows[kept], scores[kept]
        encoder = feature_map.encoder
        names = getattr(encoder, "feature_names_in_", [f"x{i}" for i in range(len(rows[0]))])
        self.names, self.columns = list(names), np.unique(feature_map.source)
        self._feature_map, self._outputs = feature_map, feature_map.outputs(self.rows)
        self._distance = SparseManhattan(feature_map.packing(self.rows))
        self._values: dict[int, dict[str, str]] = {}
        self._texts: dict[tuple[int, bytes], str] = {}

    def distance(self, rows: np.ndarray) -> np.ndarray:
        """To encoded rows.  (n, n_columns) -> (n, n_normal)"""
        far: np.ndarray = self._distance(self._feature_map.packing(rows))
        return far

    def nearest(self, rows: np.ndarray) -> np.ndarray:
        """The place of the nearest one to each of the rows.  (n, n_columns) -> (n,)"""
        out = np.empty(len(rows), dtype=np.intp)

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, CACHED_ROWS):
                some = slice(start, min(start + CACHED_ROWS, part.stop))
                out[some] = self.distance(rows[some]).argmin(axis=1)

        in_threads(fill, len(rows), steps=rows.size * len(self.rows))
        return out

    def values(self, i: int) -> dict[str, str]:
        """What the i-th one has in each column."""
        if i not in self._values:
            there = self._outputs[i]
            self._values[i] = {self.names[j]: self._text(j, there) for j in self.columns.tolist()}
        return dict(self._values[i])

    def _text(self, j: int, outputs: np.ndarray) -> str:
        """What outputs say of a column; most have few values."""
        source = self._feature_map.encoder.source_
        key = j, outputs[slice(*np.searchsorted(source, [j, j + 1]))].tobytes()
        if key not in self._texts:
            self._texts[key] = decoded(self._feature_map.encoder, j, outputs)
        return self._texts[key]


_kept: dict[tuple[int, float], _NormalRows] = {}


def _normal_rows(detector: Any) -> _NormalRows:
    """The normal rows of a detector, kept as long as its calibration set lives: learning makes one.

    To score them costs as much as some explanations do.
    """
    key = id(detector.calibration_), float(detector.threshold_)
    if key not in _kept:
        made = _NormalRows(detector)
        weakref.finalize(detector.calibration_, _kept.pop, key, None)
        _kept[key] = made
    return _kept[key]


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
    scorer: Scorer,
    ends: tuple[np.ndarray, np.ndarray],
    scores: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Each column's part of the difference between the scores of rows and of their normal ones.

    Columns are exchanged one by one, those that differ most first and once last. Where a column
    does not differ, nothing changes: only rows on the way that are new are scored.
    """
    rows, normal = ends
    columns, first, column = np.unique(
        scorer.feature_map.source, return_index=True, return_inverse=True
    )
    gap = np.add.reduceat(np.abs(rows - normal).astype(float), first, axis=1)
    order = np.argsort(-gap, axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    steps = min(len(columns), LONGEST)
    turn = np.minimum(rank, steps - 1)[:, column]  # when each encoded column is exchanged
    n_differ = np.minimum((gap > 0).sum(axis=1), steps)[:, None]
    t = np.arange(steps + 1)
    both = []
    for when, passed in ((turn, t), (steps - 1 - turn, t + n_differ - steps)):
        path = np.where(passed < n_differ, scores[0][:, None], scores[1][:, None])
        row, at = np.nonzero((passed > 0) & (passed < n_differ))
        path[row, at] = scorer.scores(np.where(when[row] < at[:, None], normal[row], rows[row]))
        both.append(path[:, :-1] - path[:, 1:])
    fall = (both[0] + both[1][:, ::-1]) / 2
    share: np.ndarray = np.take_along_axis(fall, np.minimum(rank, steps - 1), axis=1)
    # Columns that were exchanged together share their part by how far they are from normal.
    last = rank >= steps - 1
    weight = np.where(last, gap + 1e-300, 1.0)
    weight = np.where(last, weight / np.where(last, weight, 0).sum(axis=1, keepdims=True), 1.0)
    return share * weight
