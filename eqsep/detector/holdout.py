"""Which rows are held out of a fit, to calibrate: by a hash of their values, or of their group.

Whether a row is held out never depends on other rows than equal ones, so that pieces of the data
hold out what the whole does. Rows that belong together are held out together
(`eqsep.detector.grouping`).
"""

import zlib
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np

from eqsep.checks import CopiedRowsWarning, DependentRowsWarning, Finding
from eqsep.detector.contamination import COMMON, held_out_anomalies
from eqsep.detector.grouping import Grouping
from eqsep.detector.scoring import MOST_HELD, usable
from eqsep.engine.nystroem import row_keys
from eqsep.errors import ParameterError, UserError, quoted
from eqsep.labels import UNLABELLED, RowLabels
from eqsep.tables.column import Column, column_of
from eqsep.tables.reading import RowGroups, Table, read_table

PLENTY = 25  # of so many normal rows one may always be held out
NUMERIC = ("number", "date", "duration")
_LOOKED_AT = 20_000  # rows in whose order rows that follow each other are looked for
_FEWEST_ROWS, _FEWEST_VALUES = 100, 10
_FEWEST_DISTINCT = 20  # rows: fewer may be there equally often by chance
_COPIED = 0.9  # the share of distinct rows that are there equally often where they were copied
# The correlation with the row before, 0 by chance: of the upper quarter of columns, or of one.
_FOLLOWS, _FOLLOWS_CLOSELY = 0.5, 0.9
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
    n_anomalous = held_out_anomalies(len(anomalous)) if common else 0
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


def new_groups(feature_map: Any, X: Any, groups: Any) -> np.ndarray:
    """The group of each row of a table with all rows of groups that are new, as a hash."""
    grouping = feature_map.grouping
    if grouping is None or grouping.edges:
        held = "rows one by one" if grouping is None else "blocks of time"
        raise UserError(
            f"groups tell how rows of a new group score where whole groups were held out; this "
            f"detector has held out {held}. Fit it with groups=, or leave them out here."
        )
    found = with_groups(read_table(X, name="Detector"), groups).groups
    assert found is not None  # there are groups
    return found.group


def _beside(table: Table, given: Any, word: str) -> Column | None:
    """What was passed as groups or time, as a column."""
    if given is None:
        return None
    if isinstance(given, str):
        columns = {column.name: column for column in table.columns}
        if given not in columns:
            expected = f"a column ({quoted(columns)})"
            raise ParameterError(word, expected=expected, got=given)
        return columns[given]
    if not isinstance(given, Column) and np.ndim(given) != 1:
        raise UserError(f"{word} must hold one value for each row, or be a name, got {given!r}.")
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
    try:
        time = column.numbers(column.kind if column.kind in NUMERIC else "date").astype(float)
    except UserError as no_time:
        value = next(text for text in column.texts() if text)
        raise UserError(
            f"Column {column.name!r} holds no times: expected numbers or dates by which rows can "
            f"be put in order, got values such as {value!r}. Pass another column."
        ) from no_time
    if np.isnan(time).any():
        raise _missing(column, int(np.flatnonzero(np.isnan(time))[0]))
    return time


def _missing(column: Column, row: int) -> UserError:
    return UserError(
        f"Column {column.name!r} has no value in row {row + 1:,}: expected one in each row, by "
        f"which rows are held out together. Fill it in, or leave the row out."
    )


def check_grouped(grouping: Grouping | None, groups: RowGroups | None) -> None:
    """Refuse rows that come without their groups or times, or with them, unlike the first ones."""
    words = ("groups", "time")
    had = (None, None) if grouping is None else grouping.columns
    given = (None, None) if groups is None else groups.columns
    for word, was, now in zip(words, had, given, strict=True):
        if was is not None and now is None:
            column = f" of the column {was!r}" if was else ""
            raise UserError(
                f"The first fit had {word}{column}, so these rows need theirs too.",
                hint=f"Pass {word}={repr(was) if was else '...'}.",
                topic="lost_groups",
            )
        if was is None and now is not None:
            raise UserError(
                f"The first fit had no {word}: leave it out, or fit again with it.",
            )


def without_copies(table: Table, labels: RowLabels) -> tuple[Table, RowLabels, list[Finding]]:
    """Each row once where all were copied, as often as each other, and then a finding; else all.

    A copy of a row that is learnt says nothing of new ones, and must not calibrate. Rows that are
    equal by chance, as those of a few names are, are not there equally often, and stay.
    """
    normal = labels.code == 0
    if table.groups is not None or normal.sum() < 2 * _FEWEST_DISTINCT:
        return table, labels, []
    keys = np.zeros(table.n_rows, dtype=np.uint64)
    for j in sorted(range(len(table.columns)), key=lambda j: table.columns[j].kind not in NUMERIC):
        values = contents(table, np.array([j]), [table.columns[j].kind])[:, 0]
        halves = (
            half.astype(float) for half in (keys >> np.uint64(32), keys & np.uint64(2**32 - 1))
        )
        keys = row_keys(np.column_stack([*halves, values]), rng=np.random.RandomState(0))
        times = np.unique(keys[normal], return_counts=True)[1]
        if (times == 1).sum() > (1 - _COPIED) * normal.sum():  # and with more columns more
            return table, labels, []
    usual = int(np.bincount(times).argmax())
    if usual < 2 or len(times) < _FEWEST_DISTINCT or (times == usual).mean() < _COPIED:
        return table, labels, []
    both = np.unique(
        np.column_stack([keys, labels.code.astype(np.uint64)]), axis=0, return_index=True
    )
    kept = np.sort(both[1])
    told = (
        f"Each row is there {usual} times: of {normal.sum():,} normal rows {len(times):,} are "
        f"distinct. Each is learnt once, as copies of a row promise nothing of new ones."
    )
    hint = "If they were measured again each time, add a column that tells them apart."
    found = Finding(CopiedRowsWarning, told, hint)
    return table.take(kept), replace(labels, code=labels.code[kept]), [found]


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
    if not found:
        return []
    name = max(found, key=lambda column: found[column])
    if np.quantile(list(found.values()), 0.75) <= _FOLLOWS and found[name] <= _FOLLOWS_CLOSELY:
        return []
    stretches = [c.name for c in table.columns if _in_stretches(c)]
    looks = f" (column {stretches[0]!r} looks like it)" if stretches else ""
    told = (
        f"Rows are like those before them: of column {name!r} the rank correlation of normal rows "
        f"with the row before is {found[name]:.2f}, and 0 where rows are shuffled. The promised "
        f"rate of false alarms holds for rows drawn from among these, and not for another run, "
        f"machine or day{looks}."
    )
    return [
        Finding(
            DependentRowsWarning,
            told,
            "Pass groups=, which of these each row is from, or time=.",
        )
    ]


def _follows(values: np.ndarray) -> float | None:
    """The rank correlation of values with the one before; None of few, and of mere counters."""
    values = values[~np.isnan(values)]
    steps = np.diff(values)
    if len(np.unique(values)) < _FEWEST_VALUES or (steps >= 0).all() or (steps <= 0).all():
        return None
    from scipy.stats import rankdata  # half a second: scoring does not wait for it

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


def held_out(n: int, *, doubted: bool = False) -> int:
    """How many of `n` normal rows to hold out: a fifth, of few rows more.

    Of many at most 3,999, or one in 25 if that is more, and never above 19,999.

    Where they are `doubted`, some to spare, so that enough are left without the anomalies.

    Examples
    --------
    >>> [held_out(n) for n in (10, 300, 1000, 50_000, 200_000, 1_000_000)]
    [5, 99, 199, 3999, 7999, 19999]
    >>> [held_out(n, doubted=True) for n in (10, 300, 1000, 50_000)]
    [5, 124, 200, 3999]
    """
    many = min(max(3999, n / PLENTY), MOST_HELD)
    most = int(min(max(n / 5, min(124 if doubted else 120, n / 2)), many))
    return most if doubted else usable(most)
