"""What a sensor did of late: mean, deviation, slope and change over the last rows of a run.

A step from table to table, before the encoder: columns of numbers are followed by what the rows of
the same group up to each one say of them. Nothing looks ahead. A row's windows are computed from
the values in them alone, in one order, so that batches give the same bits as the whole.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np

from eqsep.batches.sources import Source, source_of
from eqsep.detector.grouping import Grouping
from eqsep.detector.holdout import with_groups
from eqsep.errors import ParameterError, UserError
from eqsep.tables.column import LARGEST, Column
from eqsep.tables.reading import RowGroups, Table, read_table

SHORTEST = 2
_NUMERIC = ("number", "duration")


@dataclass
class Runs:
    """The last rows of each run so far: what windows of later rows reach back to.

    Attributes
    ----------
    last : dict of int to ndarray of shape (at most length - 1, n_columns)
        By the hash of the group, the values of its last rows.
    time : dict of int to float
        The time of the last of them.
    """

    last: dict[int, np.ndarray] = field(default_factory=dict)
    time: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Windows:
    """Columns of numbers with their mean, deviation, slope and change over the last rows.

    Attributes
    ----------
    length : int
        Rows of a window, the present one among them.
    columns : tuple of str
        The columns of the table, in their order.
    kinds : tuple of str
        What each is read as where it has windows, "number" or "duration"; else "".

    Notes
    -----
    A run begins with short windows. Rows that are not there yet, and missing values, count as the
    mean of the others in the window: of the first row the mean is its value, and deviation, slope
    and change are 0. Of a window without any value nothing is known. The slope is that of least
    squares, for each row.

    Examples
    --------
    >>> windows = Windows.of([[1.0], [2.0], [4.0]], length=2)
    >>> rows = windows.transform([[1.0], [2.0], [4.0], [8.0]], groups=["a", "a", "b", "b"])
    >>> for column in rows.columns[1:]:
    ...     print(column.name, column.values)
    x0, mean of 2 rows [1.  1.5 4.  6. ]
    x0, deviation of 2 rows [0.  0.5 0.  2. ]
    x0, slope of 2 rows [0. 1. 0. 4.]
    x0, change from the row before [0. 1. 0. 4.]
    """

    length: int
    columns: tuple[str, ...]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, X: Any, length: int, *, but: Iterable[str] = ()) -> "Windows":
        """For the columns of a table, `but` those of groups and times; it may have its windows."""
        check_length(length)
        table = read_table(X, name=cls.__name__)
        added = {said for c in table.columns for said in _names(c.name, int(length))}
        raw = [column for column in table.columns if column.name not in {*added, *but}]
        kinds = tuple(c.kind if c.kind in _NUMERIC and not c.is_empty else "" for c in raw)
        if not any(kinds):
            raise UserError(
                f"There is no column of numbers to take windows of: {[c.name for c in raw]}.",
                hint="Leave out window=.",
                topic="no_windows",
            )
        return cls(int(length), tuple(column.name for column in raw), kinds)

    @property
    def named(self) -> bool:
        """Whether the names are the table's own, and do not stand for places."""
        return self.columns != tuple(f"x{i}" for i in range(len(self.columns)))

    @property
    def names(self) -> list[str]:
        """The columns of the table, and those of their windows."""
        return [*self.columns, *(n for c in self.windowed for n in _names(c, self.length))]

    @property
    def windowed(self) -> list[str]:
        """The columns that have windows."""
        return [name for name, kind in zip(self.columns, self.kinds, strict=True) if kind]

    def transform(
        self, X: Any, groups: Any = None, time: Any = None, *, runs: Runs | None = None
    ) -> Table:
        """The table with the columns of windows behind its own, as `Detector` takes it.

        Parameters
        ----------
        X : table
            One that has its windows already is returned as it is.
        groups, time : array-like of shape (n_rows,) or str, default=None
            The run of each row, and its place in it; else all rows are one run, in their order.
        runs : Runs, default=None
            What came before; it is updated, so that the next rows go on from these. Else each run
            begins here.
        """
        table = read_table(X, name=type(self).__name__)
        if self.is_in(table):
            return table
        table = self._matched(with_groups(table, groups, time))
        of_kind = zip(table.columns, self.kinds, strict=False)  # others may follow
        values = np.column_stack([c.numbers(kind) for c, kind in of_kind if kind])
        runs = Runs() if runs is None else runs
        windows = self._windows(values, table.groups, runs)
        names = self.names[len(self.columns) :]
        kinds = (kind for kind in self.kinds if kind for _ in windows)
        arrays = np.stack(windows, axis=2).reshape(len(values), -1).T
        more = [Column(n, kind, array) for n, kind, array in zip(names, kinds, arrays, strict=True)]
        return replace(table, columns=[*table.columns, *more])

    def is_in(self, table: Table) -> bool:
        """Whether a table has these windows already."""
        there = {column.name for column in table.columns}
        return set(_names(self.windowed[0], self.length)) <= there

    def _matched(self, table: Table) -> Table:
        """The table with the columns that are known, in their order, by their names or places."""
        given = {column.name: column for column in table.columns}
        absent = [name for name in self.windowed if name not in given]
        if table.named and (self.named or not absent):
            if absent:
                told = f"Columns {absent} are missing: windows are taken of them, and there are"
                raise UserError(f"{told} {list(given)}. Add them.")
            none = np.empty(0, dtype=object)  # ids need not be there
            columns = [given.pop(name, Column(name, "text", none)) for name in self.columns]
            return replace(table, columns=[*columns, *given.values()])
        if len(table.columns) != len(self.columns):
            raise UserError(
                f"X has {len(table.columns)} features, but {type(self).__name__} is expecting "
                f"{len(self.columns)} features as input."
            )
        pairs = zip(self.columns, table.columns, strict=True)
        columns = [replace(column, name=name) for name, column in pairs]
        return replace(table, columns=columns, named=True)

    def _windows(
        self, values: np.ndarray, groups: RowGroups | None, runs: Runs
    ) -> tuple[np.ndarray, ...]:
        """Mean, deviation, slope and change of each row.  (n, d) -> four of (n, d)"""
        n, before = len(values), self.length - 1
        group = np.zeros(n, dtype=np.uint64) if groups is None else groups.group
        time = np.zeros(n) if groups is None else groups.time
        order = np.lexsort([time, group])
        starts = np.flatnonzero(np.diff(group[order])) + 1
        parts, places, end = [], np.empty(n, dtype=int), 0
        for rows in np.split(order, starts):
            run = int(group[rows[0]])
            if runs.time.get(run, -np.inf) > time[rows[0]]:
                raise _goes_back(groups)
            tail = runs.last.get(run, values[:0])
            absent = np.full((before - len(tail), values.shape[1]), np.inf)  # no row is there
            parts += [absent, tail, values[rows]]
            places[rows] = end + before + np.arange(len(rows))
            end += before + len(rows)
            runs.last[run] = np.concatenate([tail, values[rows]])[-before:]
            runs.time[run] = float(time[rows[-1]])
        return _statistics(np.concatenate(parts), places, self.length)


def _statistics(values: np.ndarray, places: np.ndarray, length: int) -> tuple[np.ndarray, ...]:
    """Of the windows that end at these places; infinity stands for rows before a run begins."""
    there = np.isfinite(values)
    known = np.where(there, values, 0.0)
    n, total, squares, along = (np.zeros((len(places), values.shape[1])) for _ in range(4))
    for back in range(length):  # value by value, so that sums have one order
        n += there[places - back]
        total += known[places - back]
    steps = (length - 1) / 2 - np.arange(length)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = total / n
        for back in range(length):
            away = np.where(there[places - back], known[places - back] - mean, 0.0 * mean)
            squares += away**2
            along += steps[back] * away
        last = values[places - 1]
        change = np.where(np.isposinf(last), 0.0, values[places] - last)
    deviation = np.minimum(np.sqrt(squares / length), LARGEST)
    return mean, deviation, along / np.sum(steps**2), change


def _names(column: str, length: int) -> list[str]:
    """What the windows of a column are called."""
    said = [f"{word} of {length} rows" for word in ("mean", "deviation", "slope")]
    return [f"{column}, {words}" for words in (*said, "change from the row before")]


def check_length(length: Any) -> None:
    """Refuse what is no length of a window."""
    if not isinstance(length, Integral) or int(length) < SHORTEST:
        raise ParameterError("window", expected=f"a number of rows, {SHORTEST} or more", got=length)


def check_window(detector: Any) -> None:
    """Refuse what is no length of a window, and another one than that of the feature map."""
    check_length(detector.window)
    given = detector.feature_map
    if given is not None and (given.windows is None or given.windows.length != detector.window):
        raise UserError(
            f"Windows of {detector.window} rows contradict the feature map, which has others or "
            f"none: that is settled at the first fit.",
            hint="Leave out window=.",
            topic="no_windows",
        )


def _goes_back(groups: RowGroups | None) -> UserError:
    column = None if groups is None else groups.columns[1]
    return UserError(
        f"Windows go on from the rows before, and the time{f' {column!r}' if column else ''} goes "
        f"back: rows of a run must come in the order of their time. Sort them."
    )


def widened(windows: Windows, table: Table, grouping: Grouping | None) -> Table:
    """A table with its windows, by the groups and times that a fitted detector knows by name."""
    if windows.is_in(table) or table.groups is not None or grouping is None:
        return windows.transform(table)
    there = {column.name for column in table.columns}
    group, time = grouping.columns
    if group is not None and group not in there:
        raise UserError(
            "The windows of the model are taken run by run, and the runs are not known.",
            hint=f"Pass the column {group!r} too."
            if group
            else "Pass detector.feature_map_.windows.transform(X, groups=...).",
            topic="" if group else "unknown_runs",
        )
    return windows.transform(table, group, time if time in there else None)


def grouped(
    detector: Any, X: Any, y: Any, groups: Any, time: Any, sample_weight: Any = None
) -> Source:
    """The batches of `X`, with the group and the time of each row from columns of these names.

    Its weight too.
    Where the detector takes windows, with these: they go on from batch to batch.
    """
    name = type(detector).__name__
    source = with_group_columns(source_of(X, y, name=name), groups, time, name=name)
    if sample_weight is not None:
        from eqsep.detector.weighting import with_weight_column  # few rows have weights

        source = with_weight_column(source, sample_weight, name=name)
    window = detector.window
    for feature_map in (detector.feature_map, getattr(detector, "feature_map_", None)):
        window = window if feature_map is None else feature_map.windows
    if window is None:
        return source

    def read() -> Iterator[tuple[Table, Any]]:
        return _going_on(((read_table(X, name=name), y) for X, y in source), window)

    return replace(source, read=read)


def with_group_columns(source: Source, groups: Any, time: Any, *, name: str) -> Source:
    """The same batches, with the group and the time of each row from columns of these names."""
    if groups is None and time is None:
        return source
    for word, given in (("groups", groups), ("time", time)):
        if not isinstance(given, str | None):
            raise UserError(
                f"{name} was given batches of rows, so {word} must be the name of a column, or "
                f"None; got {type(given).__name__}."
            )

    def with_columns() -> Iterator[tuple[Table, Any]]:
        return ((with_groups(read_table(X, name=name), groups, time), y) for X, y in source)

    return replace(source, read=with_columns)


def _going_on(
    batches: Iterable[tuple[Table, Any]], window: Windows | int
) -> Iterator[tuple[Table, Any]]:
    runs = Runs()
    for table, y in batches:
        window = Windows.of(table, window) if isinstance(window, int) else window
        yield window.transform(table, runs=runs), y
