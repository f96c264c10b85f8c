"""Which rows are held out of a fit, to calibrate: by a hash of their values, or of their group.

Whether a row is held out never depends on other rows than equal ones, so that pieces of the data
hold out what the whole does. Rows that belong together are held out together: whole groups, or
blocks of time, with a gap beside each in which rows are neither learnt nor calibrate.
"""

import math
import zlib
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.stats import rankdata

from eqsep.checks import DependentRowsWarning, Finding
from eqsep.detector.contamination import COMMON, held_out_anomalies
from eqsep.detector.scoring import MOST_HELD, held_out
from eqsep.engine.nystroem import row_keys
from eqsep.errors import UserError, quoted
from eqsep.labels import UNLABELLED, RowLabels
from eqsep.tables.column import Column, column_of
from eqsep.tables.reading import RowGroups, Table

NUMERIC = ("number", "date", "duration")
GAP = 0.1  # of a block of time, beside one that is held out
SPARE = 5  # times as many groups as a rate takes are held out where there are enough
MOST_IN_GROUPS = 10_000  # rows that calibrate, of groups that a first fit holds out
_ALL = 2**64 - 1
_LOOKED_AT = 20_000  # rows in whose order rows that follow each other are looked for
_FEWEST_ROWS, _FEWEST_VALUES = 100, 10
_FOLLOWS = 0.5  # the correlation with the row before, of the upper quarter of columns; 0 by chance
Division = tuple[np.ndarray, np.ndarray, np.ndarray]  # learnt rows, calibrating ones, all hashes
Bounds = tuple[int, int, tuple[str, ...]]  # of normal rows, of anomalies, and their kinds


def holdout_bounds(hashes: np.ndarray, labels: RowLabels, *, doubted: bool) -> Bounds:
    """The bound of normal rows, that of labelled anomalies, and the kinds it is for.

    Anomalies are held out of common kinds alone: of the others each row is needed to learn. None is
    where doubted rows have no part in the calibration, and are without a label still.
    """
    doubted = doubted and not (labels.code == UNLABELLED).any()
    times = np.bincount(labels.code[labels.code > 0], minlength=1 + len(labels.kinds))
    common = [code for code in np.flatnonzero(times >= COMMON).tolist() if doubted]
    anomalous = np.sort(hashes[np.isin(labels.code, common)])
    n_anomalous = held_out_anomalies(len(anomalous))
    normal = np.sort(hashes[labels.code == 0])
    n_normal = held_out(len(normal), doubted=n_anomalous > 0)
    bound = int(normal[n_normal]) if len(normal) > 1 else 0
    if not n_anomalous:
        return bound, 0, ()
    return bound, int(anomalous[n_anomalous]), tuple(labels.kinds[code - 1] for code in common)


def is_held_out(hashes: np.ndarray, labels: RowLabels, bounds: Bounds) -> np.ndarray:
    """Which rows with these hashes and labels are held out."""
    bound, anomaly_bound, kinds = bounds
    of_kinds = [anomaly_bound if kind in kinds else 0 for kind in labels.kinds]
    by_code = np.array([bound, *of_kinds, 0], dtype=np.uint64)  # the last for rows without a label
    held: np.ndarray = hashes < by_code[labels.code]
    return held


def contents(table: Table, columns: np.ndarray, kinds: list[str]) -> np.ndarray:
    """Some columns' values as numbers, equal where they are equal; names by a checksum.

    Each column is read as one of its kind in `kinds`, whatever its type is in this table.
    """
    out = np.empty((table.n_rows, len(columns)))
    for j, (column, kind) in enumerate(
        zip((table.columns[i] for i in columns), kinds, strict=True)
    ):
        values = column.numbers(kind) if kind in NUMERIC else _checksums(column, kind)
        out[:, j] = values if len(values) else np.nan  # an id need not be there any more
    return np.where(np.isnan(out), np.nan, out)  # one NaN for all: hashes look at the bits


def _checksums(column: Column, kind: str) -> np.ndarray:
    names, rows = column.names(truths=kind == "boolean")
    sums = [np.nan if name is None else zlib.crc32(name.encode()) for name in names]
    of_rows: np.ndarray = np.array(sums, dtype=float)[rows]
    return of_rows


def row_hashes(values: np.ndarray, *, key: int) -> np.ndarray:
    """A 64-bit hash of each row's values and of how many equal rows come before it."""
    keys = row_keys(values, rng=np.random.RandomState(key % 2**32))
    order = np.argsort(keys, kind="stable")
    starts = np.concatenate([[True], keys[order][1:] != keys[order][:-1]])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(keys)), 0))
    repeat = np.empty(len(keys))
    repeat[order] = np.arange(len(keys)) - first
    again = repeat > 0
    if again.any():
        halves = [keys[again] >> np.uint64(32), keys[again] & np.uint64(2**32 - 1), repeat[again]]
        keys[again] = row_keys(
            np.column_stack([half.astype(float) for half in halves]),
            rng=np.random.RandomState(key % 2**32),
        )
    return keys


@dataclass(frozen=True)
class Grouping:
    """How rows that belong together are held out: by group, by block of time, or by both.

    Attributes
    ----------
    columns : tuple of str or None
        The names of the columns of groups and of times, as in `RowGroups`.
    edges : tuple of float
        The times between which the blocks of the first fit lie, in rising order. Blocks beyond are
        as long as these on average. Nothing where there are no times.
    row_bound : int
        Of a held-out group the rows calibrate whose own hash is below: all, or some of many.
    """

    columns: tuple[str | None, str | None]
    edges: tuple[float, ...] = ()
    row_bound: int = _ALL

    @property
    def unit(self) -> str:
        """What is held out, and what the promise is for, in a word."""
        return "group" if self.columns[1] is None else "time block"

    @classmethod
    def of(cls, groups: RowGroups) -> "Grouping":
        """For the rows of a first fit: of n rows of a group there are about 2 sqrt(n) blocks."""
        if groups.columns[1] is None:
            return cls(groups.columns)
        n_rows = len(groups.time) / len(np.unique(groups.group))
        shares = np.linspace(0, 1, 1 + max(int(2 * math.sqrt(n_rows)), 2))
        edges = np.unique(np.quantile(groups.time, shares, method="lower"))
        if len(edges) < 3:
            raise UserError(
                "All rows, or all but a few, have the same time: expected times by which rows can "
                "be put in order. Leave it out, or pass others."
            )
        return cls(groups.columns, tuple(edges.tolist()))

    def units(self, groups: RowGroups, *, key: int, step: int = 0) -> np.ndarray:
        """The hash of what each row is held out with; with a `step`, of the block so much later."""
        halves = [groups.group >> np.uint64(32), groups.group & np.uint64(2**32 - 1)]
        block = self._places(groups.time)[0] + step if self.edges else np.zeros(len(groups.time))
        values = np.column_stack([*(half.astype(float) for half in halves), block.astype(float)])
        return row_keys(values, rng=np.random.RandomState(key % 2**32))

    def near(self, groups: RowGroups, *, key: int, bound: int) -> np.ndarray:
        """Which rows lie in the gap beside a block that is held out."""
        found = np.zeros(len(groups.time), dtype=bool)
        if not self.edges:
            return found
        share = self._places(groups.time)[1]
        for step, is_near in ((-1, share < GAP), (1, share > 1 - GAP)):
            found |= is_near & (self.units(groups, key=key, step=step) < np.uint64(bound))
        return found

    def _places(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The block of each time, and which share of it has passed then."""
        edges = np.array(self.edges)
        length = (edges[-1] - edges[0]) / (len(edges) - 1)
        inside = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, len(edges) - 2)
        share = (time - edges[inside]) / np.diff(edges)[inside]
        after, before = (time - edges[-1]) / length, (time - edges[0]) / length
        beyond = np.where(after > 0, after, np.minimum(before, 0))
        first = np.where(after > 0, len(edges) - 1, 0)
        outside = (after > 0) | (before < 0)
        block = np.where(outside, first + np.floor(beyond), inside)
        return block, np.where(outside, beyond - np.floor(beyond), share)

    @property
    def is_thinned(self) -> bool:
        """Whether some rows of a held-out group do not calibrate."""
        return self.row_bound < _ALL

    def scaled(self, more: float) -> "Grouping":
        """The same for so many times the rows."""
        return replace(self, row_bound=min(_ALL, int(self.row_bound / max(more, 1.0))))


def with_groups(table: Table, groups: Any = None, time: Any = None) -> Table:
    """The table with the group and the time of each row, which are columns of it no more.

    Parameters
    ----------
    groups, time : array-like of shape (n_rows,), Column, str or None
        Values, or the name of a column of the table that holds them.

    Examples
    --------
    >>> from eqsep.tables.reading import read_table
    >>> rows = [{"run": "a", "x": 1.0}, {"run": "b", "x": 2.0}]
    >>> table = with_groups(read_table(rows, name="Detector"), "run")
    >>> [column.name for column in table.columns], table.groups.columns
    (['x'], ('run', None))
    """
    if groups is None and time is None:
        return table
    found = [_beside(table, given, word) for given, word in ((groups, "groups"), (time, "time"))]
    names = [given if isinstance(given, str) else None for given in (groups, time)]
    kept = [column for column in table.columns if column.name not in names]
    if not kept:
        raise UserError("There is no column beside those of groups and time: nothing to learn.")
    group = _group_hashes(found[0]) if found[0] else np.zeros(table.n_rows, dtype=np.uint64)
    times = _times(found[1]) if found[1] else np.zeros(table.n_rows)
    said = [
        None if given is None else name or ""
        for given, name in zip((groups, time), names, strict=True)
    ]
    return replace(table, columns=kept, groups=RowGroups(group, times, (said[0], said[1])))


def _beside(table: Table, given: Any, word: str) -> Column | None:
    """What was passed as groups or time, as a column."""
    if given is None:
        return None
    if isinstance(given, str):
        columns = {column.name: column for column in table.columns}
        if given not in columns:
            told = f"{given!r} is no column: the columns are {quoted(columns)}."
            option = "--group" if word == "groups" else "--time"
            raise UserError(f"{word}={told}", command=f"{option} {told}")
        return columns[given]
    column = given if isinstance(given, Column) else column_of(word, np.asarray(given))
    if len(column.values) != table.n_rows:
        raise UserError(
            f"{word} holds {len(column.values):,} values, and there are {table.n_rows:,} rows: "
            f"expected one for each row."
        )
    return column


def _group_hashes(column: Column) -> np.ndarray:
    names, rows = column.names()
    if None in names:
        raise _missing(column, int(np.flatnonzero(rows == names.index(None))[0]))
    digests = [blake2b(str(name).encode(), digest_size=8).digest() for name in names]
    hashes: np.ndarray = np.array([int.from_bytes(d, "big") for d in digests], np.uint64)[rows]
    return hashes


def _times(column: Column) -> np.ndarray:
    time = column.numbers(column.kind if column.kind in NUMERIC else "date").astype(float)
    if np.isnan(time).any():
        raise _missing(column, int(np.flatnonzero(np.isnan(time))[0]))
    return time


def _missing(column: Column, row: int) -> UserError:
    return UserError(
        f"Column {column.name!r} has no value in row {row + 1:,}: expected one in each row, by "
        f"which rows are held out together. Fill it in, or leave the row out."
    )


def held_out_groups(n: int, *, rate: float) -> int:
    """How many of `n` groups to hold out: a fifth, or several times what the rate takes; or half.

    With J groups the rate that is kept is (rate (J + 1) - 1) / J on average: with as many as it
    takes, 1 / rate - 1, no held-out row at all would lie above the threshold.

    Examples
    --------
    >>> [held_out_groups(n, rate=0.1) for n in (2, 10, 300, 1000)]
    [1, 5, 60, 200]
    """
    wanted = max(n // 5, math.ceil(SPARE / rate - 1e-9) - 1)
    return min(wanted, n // 2, MOST_HELD)


def choose_groups(
    groups: RowGroups, labels: RowLabels, *, key: int, rate: float
) -> tuple[Grouping, int]:
    """How the rows of a first fit are grouped, and the bound below which groups are held out."""
    grouping = Grouping.of(groups)
    units = grouping.units(groups, key=key)
    hashes, n_rows = np.unique(units[labels.code == 0], return_counts=True)
    if len(hashes) < 2:
        raise UserError(
            f"Whole groups are held out to set the threshold: normal rows of at least 2 groups are "
            f"needed, got {len(hashes)}. Pass more, or leave the groups out."
        )
    n_held = held_out_groups(len(hashes), rate=rate)
    return grouping.scaled(n_rows[:n_held].sum() / MOST_IN_GROUPS), int(hashes[n_held])


def check_grouped(grouping: Grouping | None, groups: RowGroups | None) -> None:
    """Refuse rows that come without their groups or times, or with them, unlike the first ones."""
    words = ("groups", "time")
    had = (None, None) if grouping is None else grouping.columns
    given = (None, None) if groups is None else groups.columns
    for word, was, now in zip(words, had, given, strict=True):
        if was is not None and now is None:
            column = f" of the column {was!r}" if was else ""
            raise UserError(
                f"The first fit was told {word}{column}, so that these rows need theirs too: pass "
                f"{word}={repr(was) if was else '...'}.",
                command=f"The model was fitted in Python with {word} that are no column, and can "
                f"learn and forget there alone.",
            )
        if was is None and now is not None:
            raise UserError(
                f"The first fit was not told {word}: leave it out, or fit anew with it.",
            )


def divided_by_group(
    grouping: Grouping, groups: RowGroups, labels: RowLabels, *, key: int, bound: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows are learnt, which belong to a held-out group and are normal, and all hashes.

    Labelled anomalies are learnt wherever they are: they are few, and no normal row of a held-out
    group is learnt by it. Rows without a label are learnt as normal ones are.
    """
    units = grouping.units(groups, key=key)
    held = units < np.uint64(bound)
    near = ~held & grouping.near(groups, key=key, bound=bound)
    learnt = ~(held | near) | (labels.code > 0)
    return learnt, held & (labels.code == 0), units


def check_dependence(table: Table, code: np.ndarray) -> list[Finding]:
    """A finding where normal rows are like those before them, and no group or time is known.

    Looked at are the ranks of the values of each column of numbers, in the order of the rows: the
    correlation with the row before is 0 but for chance where rows were shuffled.

    Parameters
    ----------
    code : ndarray of int of shape (n_rows,)
        0 where a row is normal.
    """
    normal = np.flatnonzero(code == 0)[:_LOOKED_AT]
    if table.groups is not None or len(normal) < _FEWEST_ROWS:
        return []
    numbers = [c for c in table.columns if c.kind == "number" and len(c.values)]
    found = {
        column.name: r for column in numbers if (r := _follows(column.values[normal])) is not None
    }
    if not found or np.quantile(list(found.values()), 0.75) <= _FOLLOWS:
        return []
    name = max(found, key=lambda column: found[column])
    told = (
        f"Rows are like those before them: of column {name!r} the rank correlation of normal rows "
        f"with the row before is {found[name]:.2f}, and 0 where rows are shuffled. The promised "
        f"rate of false alarms holds for rows drawn from among these, and not for another run, "
        f"machine or day:"
    )
    stretches = [c.name for c in table.columns if _in_stretches(c)]
    looks = f" (column {stretches[0]!r} looks like it)" if stretches else ""
    return [
        Finding(
            DependentRowsWarning,
            told,
            f"pass groups=, which of these each row is from{looks}, or time=.",
            f"pass the column that says which of these a row is from{looks} as --group, or one of "
            f"times as --time.",
        )
    ]


def _follows(values: np.ndarray) -> float | None:
    """The rank correlation of values with the one before; None of few, and of mere counters."""
    values = values[~np.isnan(values)]
    steps = np.diff(values)
    if len(np.unique(values)) < _FEWEST_VALUES or (steps >= 0).all() or (steps <= 0).all():
        return None
    ranks = rankdata(values)
    ranks = (ranks - ranks.mean()) / ranks.std()
    return float(np.mean(ranks[1:] * ranks[:-1]))


def _in_stretches(column: Column) -> bool:
    """Whether the rows of each name stand together, as those of a recording do."""
    if column.kind not in ("text", "number") or not len(column.values) or column.is_empty:
        return False
    values = column.values if column.kind == "number" else column.names()[1]
    changes, n_values = np.count_nonzero(np.diff(values)), len(np.unique(values))
    return 1 < n_values == changes + 1 and 3 * n_values <= len(values)
