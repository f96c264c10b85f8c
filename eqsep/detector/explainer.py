"""Explainer: why a row has its score, which columns drive it, and towards which normal value."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from eqsep.detector.namer import kind_text
from eqsep.detector.plan import Plan
from eqsep.detector.score import Score
from eqsep.detector.terms.surprise import SurpriseFunction, SurpriseTerm
from eqsep.detector.terms.term import EncodedRows
from eqsep.engine.backends import NUMPY
from eqsep.engine.kernels import SparseManhattan
from eqsep.engine.loops import in_threads
from eqsep.engine.nystroem import CACHED_ROWS
from eqsep.errors import ParameterError
from eqsep.tables.encodings import Date, Number
from eqsep.tables.reading import Column, Table

_ROWS_PER_PIECE = 256  # rows
_ROUNDING = 1e-12  # of the largest value of a column: below, what windows hold is rounding
_COLUMNS_ONE_BY_ONE = 32  # columns that are exchanged one by one; the nearer ones go together
_USUAL_SHARE = 0.9  # of the kept normal rows: those with higher scores explain no alarm
_NEIGHBOURS = 50  # normal rows around a row
_UNUSUAL_SHARE = 0.1  # of them have a value as far out, if it is unusual
_MAIN_SHARE = 0.5  # of the difference in score
_MINOR_SHARE = 0.1  # of it: a column with a usual value that adds less may be left out
COMBINED = (
    "most of the difference comes from values that are usual by themselves, but not together:"
)
_SURPRISING = 1.0  # powers of ten, beyond one row in ten: a column is surprising from here on
_KNOWN_SHARE = 0.01  # of normal rows have a value as high and as low: a known value, if rare
_PAIRED = 32  # columns, the most different ones, that a surprising one is paired with
_EXPLAINED_SHARE = 0.5  # of the surprise that goes if the other column of a pair is exchanged
_SHOWN_SHARE = 0.01  # of the difference in score: what adds less is not worth a line


@dataclass(frozen=True)
class Reason:
    """What one column adds to a row's score."""

    column: str  #: its name in the table
    value: str  #: that of the row
    normal_value: str  #: one that is typical of the normal rows around it
    contribution: float  #: how much the score falls if the column takes the nearest row's value
    #: whether a tenth or more of the kept normal rows have a value as high, and as many one as low
    usual: bool = False


@dataclass(frozen=True)
class ColumnValue:
    """What a row has in a column."""

    column: str  #: its name in the table
    value: str

    def __str__(self) -> str:
        return f"{self.column or '(no name)'} = {self.value}"


@dataclass(frozen=True)
class Explanation:
    """A row's score as a sum: `base`, what each of the `reasons` adds, and the `rest`."""

    score: float
    base: float  #: the score of the nearest normal row
    reasons: tuple[Reason, ...]  #: the columns that add most, in that order
    rest: float  #: what all other columns add together
    nearest_normal: dict[str, str]  #: its values; those of a kept row with a low score, no alarm
    nearest_kind: str | None  #: the seen kind that the row is most like; None if no kind was seen
    likeness: float  #: how much it is like that kind: about 1 for a row of it, 0 for none
    combined: bool = False  #: of an alarm: whether columns with unusual values add less than half
    #: of an alarm: a value that the others did not let expect, and the one that it goes least with
    together: tuple[ColumnValue, ColumnValue] | None = None

    def worth_a_line(self, digits: int = 3) -> tuple[Reason, ...]:
        least = max(_SHOWN_SHARE * abs(self.score - self.base), 0.5 * 10**-digits)
        return tuple(r for r in self.reasons if abs(r.contribution) >= least)

    def shown(self, digits: int = 3) -> tuple[tuple[Reason, ...], float | None]:
        """Reasons worth a line, and the rest, None without other columns; rounded, they add up."""
        reasons = self.worth_a_line(digits)
        parts = [round(part, digits) for part in (self.base, *(r.contribution for r in reasons))]
        rest = round(round(self.score, digits) - sum(parts), digits) + 0.0  # not -0.0
        if not reasons or len(reasons) < len(self.nearest_normal):
            return reasons, rest
        return (replace(reasons[0], contribution=parts[1] + rest), *reasons[1:]), None

    def __str__(self) -> str:
        """One line for each reason worth it, and one for the nearest kind."""
        lines = [f"score {self.score:.3f}; the nearest normal row scores {self.base:.3f}"]
        if self.together is not None:
            lines.append(f"  {together_text(self.together)}")
        elif self.combined:
            lines.append(f"  {COMBINED}")
        reasons, rest = self.shown()
        for reason in reasons:
            normal = "usual by itself; normal here" if reason.usual else "normal"
            lines.append(
                f"  {reason.contribution:+.3f}  {reason.column or '(no name)'} = {reason.value}"
                f" ({normal}: {reason.normal_value})"
            )
        lines += [] if rest is None else [f"  {rest:+.3f}  all other columns"]
        if self.nearest_kind is not None:
            likeness = max(self.likeness, 0.0)  # below 0 is as unlike as 0
            lines.append(f"  likeness to {kind_text(self.nearest_kind)}: {likeness:.2f}")
        return "\n".join(lines)


def together_text(pair: tuple[ColumnValue, ColumnValue]) -> str:
    """Two values that are unusual together, in words."""
    one, other = pair
    return f"{one} and {other} are unusual together"


@dataclass(frozen=True, eq=False, kw_only=True)
class Explainer:
    """Compares rows with kept normal rows that have low scores."""

    plan: Plan
    score: Score
    threshold: float  # above which a row raises an alarm
    calibrating: np.ndarray  # normal rows, encoded, in addition to those among the landmarks
    kinds: tuple[str, ...]  # the seen ones

    def explain(self, table: Table, *, top: int) -> list[Explanation]:
        """An explanation of each row of an aligned table.

        The row is turned into the nearest normal row column by column, the most different columns
        first and then last. A column adds the mean fall of the score at its turn: parts add up.
        """
        if not top >= 1:
            raise ParameterError("top", expected="at least 1", got=top)
        Z = self.plan.encoder.encode(table)
        kinds: tuple[str | None, ...] = self.kinds or (None,)
        likeness = self.score.kind_likeness(Z) if self.kinds else np.zeros((len(Z), 1))
        names, columns = self.plan.encoder.column_names, self._columns
        texts, exact = cache(lambda j: _texts(table, j)), cache(lambda j: table.columns[j].texts())

        def value(row: int, j: int) -> ColumnValue:
            text = texts(j)[row]
            return ColumnValue(names[j], text if text == text.strip() else repr(text))

        def reason(row: int, j: int, near: np.ndarray, adds: float, usual: bool) -> Reason:
            value, normal = texts(j)[row], self._typical(j, near, unlike=Z[row])
            value = (exact(j)[row] or value) if value == normal else value  # they differ slightly
            value, normal = (v if v == v.strip() else repr(v) for v in (value, normal))
            return Reason(names[j], value, normal, contribution=adds, usual=usual)

        out = []
        for start in range(0, len(Z), _ROWS_PER_PIECE):
            rows = Z[start : start + _ROWS_PER_PIECE]
            near, score, base, share = self._compared(rows, self._unknown(rows), self._high)
            reasons_of = self._reasons(rows, near, share, top=top)
            alarms = np.flatnonzero(score > self.threshold)
            pairs = self._together(rows, near[:, 0], share, places=alarms)
            for i, (best, usual, combined) in enumerate(reasons_of):
                reasons = tuple(
                    reason(start + i, int(columns[b]), near[i], float(share[i, b]), bool(usual[b]))
                    for b in best
                )
                kind = int(likeness[start + i].argmax())
                out.append(
                    Explanation(
                        score=float(score[i]),
                        base=float(base[i]),
                        reasons=reasons,
                        rest=float(share[i].sum() - share[i, best].sum()),
                        nearest_normal=self._values(int(near[i, 0])),
                        nearest_kind=kinds[kind],
                        likeness=float(likeness[start + i, kind]),
                        combined=combined and bool(score[i] > self.threshold),
                        together=_both(value(start + i, j) for j in pairs.get(i, ())),
                    )
                )
        return out

    def nearest_normal_rows(self, table: Table, *, n: int) -> list[list[dict[str, str]]]:
        """The `n` kept normal rows nearest to each row, nearest first, in units of the table."""
        rows = self.plan.encoder.encode(table)
        distance = self._distance(rows, self._unknown(rows), self._high)
        order = distance.argsort(axis=1, kind="stable")
        return [[self._values(i) for i in near[:n].tolist()] for near in order]

    def departures(self, Z: np.ndarray) -> np.ndarray:
        """The directions, of length 1, in which rows depart from normal ones.  (n, d) -> (n, 2 d)

        One half is the difference, the other the root of what each column adds to the score by it.
        """
        column = np.unique(self.plan.encoder.source, return_inverse=True)[1]
        out = np.empty((len(Z), 2 * Z.shape[1]))
        none = np.zeros(len(self._normal[0]), dtype=bool)
        for start in range(0, len(Z), _ROWS_PER_PIECE):
            rows = Z[start : start + _ROWS_PER_PIECE]
            near, _, _, share = self._compared(rows, np.zeros(rows.shape, dtype=bool), none)
            gap = (rows - self._normal[0][near[:, 0]]).astype(float)
            length = np.zeros((len(rows), share.shape[1]))
            np.add.at(length.T, column, gap.T**2)
            added = np.sqrt(np.maximum(share, 0.0) / np.where(length > 0, length, 1.0))
            halves = _of_length_1(gap), _of_length_1(gap * added[:, column])
            out[start : start + _ROWS_PER_PIECE] = np.concatenate(halves, axis=1) / np.sqrt(2)
        return out

    @cached_property
    def _normal(self) -> tuple[np.ndarray, np.ndarray]:
        """The kept normal rows that raise no alarm, encoded, and their scores."""
        kernel = self.plan.kernel
        rows = np.concatenate([kernel.landmarks[kernel.is_normal], self.calibrating])
        scores = self.score(rows)
        usable = scores <= max(self.threshold, scores.min())
        return rows[usable], scores[usable]

    @cached_property
    def _high(self) -> np.ndarray:
        """Which of them score so high that they share the cause of an alarm next to them."""
        return np.asarray(
            self._normal[1] > np.quantile(self._normal[1], _USUAL_SHARE, method="higher")
        )

    @cached_property
    def _columns(self) -> np.ndarray:
        """The input columns that count."""
        return np.unique(self.plan.encoder.source)

    @cached_property
    def _distances(self) -> SparseManhattan:
        """From packed rows to the normal ones.  (n, n_packed) -> (n, n_normal)"""
        return SparseManhattan(self.plan.encoder.pack(self._normal[0]))

    @cached_property
    def _nothing(self) -> np.ndarray:
        """A missing number or date, encoded, of columns that always had one; NaN for others."""
        encoder, nan = self.plan.encoder, np.array([np.nan])
        out = np.full((1, len(encoder.source)), np.nan, np.float32)
        for j, one in enumerate(encoder.columns):
            if isinstance(one, Number | Date) and not one.number.with_missing:
                out[:, encoder.source == j] = encoder.encode_column(j, Column("", one.reads, nan))
        return out

    def _unknown(self, rows: np.ndarray) -> np.ndarray:
        """Where encoded rows hold nothing: far out, at the low end, which must not choose rows."""
        _, first, counts = np.unique(self.plan.encoder.source, True, return_counts=True)
        there = np.logical_and.reduceat(rows == self._nothing, first, axis=1)
        return np.repeat(there, counts, axis=1)

    def _distance(self, rows: np.ndarray, unknown: np.ndarray, without: np.ndarray) -> np.ndarray:
        """From encoded rows to the normal ones, by what is known; infinite to those left out."""
        out = self._distances(self.plan.encoder.pack(rows))
        for i in np.flatnonzero(unknown.any(axis=1)):
            gaps = self._normal[0][:, ~unknown[i]] - rows[i, ~unknown[i]]
            out[i] = np.abs(gaps).sum(axis=1)
        out[:, without] = np.inf
        return out

    @cached_property
    def _value(self) -> Callable[[int, int], str]:
        """What the i-th normal row has in the j-th column."""
        encoder = self.plan.encoder
        outputs = encoder.outputs_of(self._normal[0])
        return cache(lambda i, j: encoder.decode(j, outputs[i]))

    def _values(self, i: int) -> dict[str, str]:
        """What the i-th normal row has in each column."""
        names = self.plan.encoder.column_names
        return {names[j]: self._value(i, j) for j in self._columns.tolist()}

    def _typical(self, j: int, near: np.ndarray, *, unlike: np.ndarray) -> str:
        """The middle one of the values of normal rows nearby that differ from the row's, if any."""
        encoder = self.plan.encoder
        own = encoder.decode(j, encoder.outputs_of(unlike[None])[0])
        unlike_it = [i for i in near.tolist() if self._value(i, j) != own]
        near = np.array(unlike_it or near.tolist())
        values = self._normal[0][np.ix_(near, np.flatnonzero(encoder.source == j))]
        middle = np.abs(values[:, None] - values).sum(axis=(1, 2)).argmin()
        return self._value(int(near[middle]), j)

    def _reasons(
        self, rows: np.ndarray, near: np.ndarray, share: np.ndarray, *, top: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, bool]]:
        """The columns that are reasons for each row, those that add most first; all if so many.

        A column that is usual among the normal rows around is left out if it adds less than a
        tenth, unless it adds most, or all that are left out add more together than the first. With
        them come those usual among all normal rows, and whether the others add less than half.
        """
        for row, around, adds in zip(rows, self._normal[0][near], share, strict=True):
            counts = (adds > 0) & ~self._are_usual(row, around)
            total = np.maximum(adds, 0).sum()
            usual = self._are_usual(row, self._normal[0])
            combined = np.maximum(adds[~usual], 0).sum() < _MAIN_SHARE * total
            order = np.argsort(-adds, kind="stable")
            first, best = (
                adds[order[0]],
                order[(counts | (adds >= _MINOR_SHARE * total))[order]][:top],
            )
            if top >= len(adds) or not len(best) or adds.sum() - adds[best].sum() > first:
                best = order[:top]
            yield best, usual, bool(combined)

    def _are_usual(
        self, row: np.ndarray, others: np.ndarray, *, share: float = _UNUSUAL_SHARE
    ) -> np.ndarray:
        """Which columns of a row are usual: a tenth of others are as high, and a tenth as low."""
        first = np.unique(self.plan.encoder.source, return_index=True)[1]
        far = np.minimum((others >= row).sum(axis=0), (others <= row).sum(axis=0))
        return np.asarray(np.minimum.reduceat(far, first) >= max(share * len(others), 1))

    def _together(
        self, rows: np.ndarray, near: np.ndarray, share: np.ndarray, *, places: np.ndarray
    ) -> dict[int, tuple[int, int]]:
        """The two columns of some rows that are unusual together, by the places of these rows.

        The first is the most surprising one, given the others, of which the exchange of another for
        the nearest normal row's value takes half; the second is the one that takes most. Both have
        values that normal rows have, and together add a tenth of the difference in score.
        """
        surprise = self.score.functions.get(SurpriseTerm.name)
        if not isinstance(surprise, SurpriseFunction) or not len(places):
            return {}
        source, columns, found = self.plan.encoder.source, self._columns, {}
        predicted = surprise.term.predicted_columns(source)

        def surprises(some: np.ndarray) -> np.ndarray:
            encoded = EncodedRows(some, self.plan.encoder.pack, NUMPY)
            return np.asarray(surprise.of_columns(encoded))

        for place, own in zip(places.tolist(), surprises(rows[places]), strict=True):
            if own.max() < _SURPRISING:
                continue
            row, normal = rows[place], self._normal[0][near[place]]
            usual = columns[self._are_usual(row, self._normal[0], share=_KNOWN_SHARE)]
            targets = np.flatnonzero((own >= _SURPRISING) & np.isin(predicted, usual))
            gap = np.bincount(source, np.abs(row - normal), minlength=columns[-1] + 1)[usual]
            others = usual[np.argsort(-gap, kind="stable")[: min((gap > 0).sum(), _PAIRED)]]
            if not len(targets) or not len(others):
                continue
            left = surprises(np.where(source == others[:, None], normal, row))[:, targets]
            left[others[:, None] == predicted[targets]] = np.inf
            explained = left.min(axis=0) <= own[targets] * (1 - _EXPLAINED_SHARE)
            if explained.any():
                best = np.where(explained, own[targets], 0.0).argmax()
                pair = int(predicted[targets[best]]), int(others[left[:, best].argmin()])
                adds = np.maximum(share[place], 0.0)
                if adds[np.searchsorted(columns, pair)].sum() >= _MINOR_SHARE * adds.sum():
                    found[place] = pair
        return found

    def _compared(
        self, rows: np.ndarray, unknown: np.ndarray, without: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The normal rows nearby, nearest first, the scores of both, and what each column adds."""
        (normal, normal_scores), source = self._normal, self.plan.encoder.source
        n_near, _ = min(_NEIGHBOURS, int((~without).sum())), self._distances  # not in each thread
        near = np.empty((len(rows), n_near), dtype=np.intp)

        def fill(some: slice) -> None:
            distance = self._distance(rows[some], unknown[some], without)
            near[some] = np.argpartition(distance, n_near - 1, axis=1)[:, :n_near]
            near[some, 0] = distance.argmin(axis=1)

        in_threads(fill, len(rows), steps=rows.size * len(normal), most=CACHED_ROWS)
        score, base = self.score(rows), normal_scores[near[:, 0]]
        share = _shares(self.score, source, [rows, normal[near[:, 0]]], [score, base])
        return near, score, base, share


def _both(values: Iterator[ColumnValue]) -> tuple[ColumnValue, ColumnValue] | None:
    """Two values, or None for none."""
    found = tuple(values)
    return (found[0], found[1]) if found else None


def _of_length_1(rows: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1.0))


def _texts(table: Table, j: int) -> list[str]:
    """The values as they came; those of windows, or with more than six decimals, in six digits."""
    column = table.columns[j]
    if column.derived_from is None:
        if column.kind == "number":
            x = column.values.tolist()
            short = [float(f"{v:.6g}") if abs(v) < 1e5 and round(v, 6) != v else v for v in x]
            column = replace(column, values=np.array(short))
        return ["missing" if text is None else text for text in column.texts()]
    source = next(one for one in table.columns if one.name == column.derived_from)
    size = np.abs(source.values)
    least = _ROUNDING * size[np.isfinite(size)].max(initial=0.0)
    values = np.where(np.abs(column.values) <= least, 0.0, column.values)
    return ["missing" if value != value else f"{value:.6g}" for value in values.tolist()]


def _shares(
    score: Score, source: np.ndarray, ends: list[np.ndarray], scores: list[np.ndarray]
) -> np.ndarray:
    """Each column's part of the difference between the scores of rows and of their normal ones."""
    rows, normal = ends
    columns, first, column = np.unique(source, return_index=True, return_inverse=True)
    gap = np.add.reduceat(np.abs(rows - normal).astype(float), first, axis=1)
    order = np.argsort(-gap, axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    steps = min(len(columns), _COLUMNS_ONE_BY_ONE)
    turn = np.minimum(rank, steps - 1)[:, column]  # when each encoded column is exchanged
    n_differ = np.minimum((gap > 0).sum(axis=1), steps)[:, None]
    t = np.arange(steps + 1)
    both = []
    for when, passed in ((turn, t), (steps - 1 - turn, t + n_differ - steps)):
        path = np.where(passed < n_differ, scores[0][:, None], scores[1][:, None])
        row, at = np.nonzero((passed > 0) & (passed < n_differ))
        path[row, at] = score(np.where(when[row] < at[:, None], normal[row], rows[row]))
        both.append(path[:, :-1] - path[:, 1:])
    fall = (both[0] + both[1][:, ::-1]) / 2
    share: np.ndarray = np.take_along_axis(fall, np.minimum(rank, steps - 1), axis=1)
    # Columns that were exchanged together share their part by how far they are from normal.
    last = rank >= steps - 1
    weight = np.where(last, gap + 1e-300, 1.0)
    weight = np.where(last, weight / np.where(last, weight, 0).sum(axis=1, keepdims=True), 1.0)
    return share * weight
