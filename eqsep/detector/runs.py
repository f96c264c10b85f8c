"""Runs of rows over time: windows over their last rows, and alarms that must persist."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from eqsep import schemas
from eqsep.detector.holdout import Grouping
from eqsep.errors import ParameterError, UserError
from eqsep.tables import reading
from eqsep.tables.reading import Column, RowGroups, Table, by_number, read_table, with_groups

SHORTEST = 2
_NUMERIC = ("number", "duration")


@dataclass
class Runs:
    """The last rows of each run so far, from which the windows of later rows continue."""

    last: dict[int, np.ndarray] = field(default_factory=dict)  #: its last rows, by group
    time: dict[int, float] = field(default_factory=dict)  #: of the last of them
    n_rows: int = 0  #: that `in_order` has numbered

    def in_order(self, groups: RowGroups | None, n: int) -> RowGroups:
        """The groups of n rows; row numbers, from call to call, replace missing times."""
        known = groups or _one_run(n)
        if known.columns[1] is not None:
            return known
        first, self.n_rows = self.n_rows, self.n_rows + n
        time = np.arange(first, self.n_rows, dtype=float)
        return RowGroups(known.group, time, (known.columns[0], ""))

    def arrays(self) -> dict[str, np.ndarray]:
        """The same as plain arrays, for a file."""
        tails = list(self.last.values())
        return {
            "runs": np.array(list(self.last), dtype=np.uint64),
            "run_lengths": np.array([len(tail) for tail in tails], dtype=int),
            "run_rows": np.concatenate(tails) if tails else np.empty((0, 0)),
            "run_times": np.array([self.time[run] for run in self.last]),
            "run_n_rows": np.array(self.n_rows),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The runs of these arrays."""
        keys = arrays["runs"].tolist()
        tails = np.split(arrays["run_rows"], np.cumsum(arrays["run_lengths"])[:-1])
        return cls(
            dict(zip(keys, tails, strict=False)),
            dict(zip(keys, arrays["run_times"].tolist(), strict=True)),
            int(arrays["run_n_rows"]),
        )


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
        "number" or "duration" for each column with windows, otherwise "".

    Notes
    -----
    Rows before the first of a run, and missing values, count as the mean of the others in the
    window. A window without any value is missing. The slope is that of least squares.

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
    def of(cls, X: Any, length: int, *, but: Iterable[str] = ()) -> Self:
        """Windows for the columns of a table, except `but` and windows that it already has."""
        check_length(length)
        table = read_table(X, name=cls.__name__)
        raw = [c for c in table.columns if c.derived_from is None and c.name not in {*but}]
        kinds = tuple(c.kind if c.kind in _NUMERIC and not c.is_empty else "" for c in raw)
        if not any(kinds):
            raise UserError(
                f"Windows need a column of numbers, and none of {[c.name for c in raw]} is one.",
                hint="Leave out window=.",
                topic="no_windows",
            )
        names = (c.name.removeprefix("x") if table.numbered else c.name for c in raw)
        return cls(int(length), tuple(names), kinds)

    @property
    def named(self) -> bool:
        """Whether the columns have names, not just positions."""
        return self.columns != tuple(f"x{i}" for i in range(len(self.columns)))

    @property
    def added(self) -> list[str]:
        """The columns of windows."""
        return list(self._sources)

    @property
    def _sources(self) -> dict[str, tuple[str, str]]:
        """The kind and the name of the column that each column of windows is computed from."""
        words = [
            f"{statistic} of {self.length} rows" for statistic in ("mean", "deviation", "slope")
        ]
        pairs = [pair for pair in zip(self.kinds, self.columns, strict=True) if pair[0]]
        words.append("change from the row before")
        return {f"{pair[1]}, {statistic}": pair for pair in pairs for statistic in words}

    @property
    def windowed(self) -> list[str]:
        """The columns that have windows."""
        return [name for name, kind in zip(self.columns, self.kinds, strict=True) if kind]

    def transform(
        self, X: Any, groups: Any = None, time: Any = None, *, runs: Runs | None = None
    ) -> Table:
        """The table with the columns of windows after its own, as `Detector` takes it.

        Parameters
        ----------
        X : table
            A table that already has columns with the names of the windows is returned unchanged.
        groups, time : array-like of shape (n_rows,) or str, default=None
            The run of each row and its place in the run; by default one run, in row order.
        runs : Runs, default=None
            The rows before these, updated for later calls. By default each run begins here.
        """
        table = by_number(read_table(X, name=type(self).__name__), self.columns)
        sources = self._sources
        if self.is_in(table):
            if any(column.derived_from is not None for column in table.columns):
                return table
            columns = list(table.columns)
            for i, column in enumerate(columns):  # windows that came as plain values
                if column.name in sources:
                    kind, source = sources[column.name]
                    values = column.numbers(kind)
                    columns[i] = Column(column.name, kind, values, derived_from=source)
            return replace(table, columns=columns)
        table = self._matched(with_groups(table, groups, time))
        of_kind = zip(table.columns, self.kinds, strict=False)  # others may follow
        values = np.column_stack([c.numbers(kind) for c, kind in of_kind if kind])
        windows = self._windows(values, table.groups or _one_run(len(values)), runs or Runs())
        arrays = np.stack(windows, axis=2).reshape(len(values), -1).T
        more = [
            Column(name, kind, array, derived_from=source)
            for (name, (kind, source)), array in zip(sources.items(), arrays, strict=True)
        ]
        return replace(table, columns=[*table.columns, *more])

    def short(self, table: Table, runs: Runs | None = None) -> np.ndarray:
        """Which of the next rows have fewer rows before them than a window holds."""
        groups, n = table.groups or _one_run(table.n_rows), table.n_rows
        order = np.lexsort([groups.time, groups.group])
        run, first, size = np.unique(groups.group[order], return_index=True, return_counts=True)
        last = {} if runs is None else runs.last
        before = np.array([len(last.get(key, ())) for key in run.tolist()], dtype=int)
        place = np.empty(n, dtype=int)
        place[order] = np.arange(n) - np.repeat(first - before, size)
        return place < self.length - 1

    def is_in(self, table: Table) -> bool:
        """Whether a table has these windows already."""
        return {*self.added} <= {column.name for column in table.columns}

    def apply(self, table: Table, grouping: Grouping | None, *, runs: Runs | None = None) -> Table:
        """A table with its windows, by groups and times in columns that the grouping names."""
        if self.is_in(table) or table.groups is not None or grouping is None:
            return self.transform(table, runs=runs)
        names = {column.name for column in table.columns}
        group, time = grouping.columns
        if group is not None and group not in names:
            raise UserError(
                "The model computes windows within runs, and the runs of these rows are not known.",
                hint=f"Pass the column {group!r} too."
                if group
                else "Pass detector.plan_.windows.transform(X, groups=...).",
                topic="" if group else "unknown_runs",
            )
        return self.transform(table, group, time if time in names else None, runs=runs)

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        return {"length": self.length, "columns": list(self.columns), "kinds": list(self.kinds)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The windows of these parts."""
        schemas.check_parts(state, _STATE, "Windows")
        if len(state["columns"]) != len(state["kinds"]) or not any(state["kinds"]):
            schemas.damaged("its windows are for columns that do not exist")
        return cls(state["length"], tuple(state["columns"]), tuple(state["kinds"]))

    def _matched(self, table: Table) -> Table:
        """The table with the known columns in their order, matched by name or position."""
        given = {column.name: column for column in table.columns}
        absent = [name for name in self.windowed if name not in given]
        if table.named and (self.named or not absent):
            if absent:
                raise UserError(
                    f"Columns {absent} are missing, and windows need them: got {list(given)}. "
                    f"Add them."
                )
            none = np.empty(0, dtype=object)  # ids may be absent
            columns = [given.pop(name, Column(name, "text", none)) for name in self.columns]
            return replace(table, columns=[*columns, *given.values()])
        if len(table.columns) != len(self.columns):
            raise UserError(
                f"X has {len(table.columns)} features, but Detector is expecting "
                f"{len(self.columns)} features as input."
            )
        pairs = zip(self.columns, table.columns, strict=True)
        columns = [replace(column, name=name) for name, column in pairs]
        return replace(table, columns=columns, named=True)

    def _windows(self, values: np.ndarray, groups: RowGroups, runs: Runs) -> tuple[np.ndarray, ...]:
        """Mean, deviation, slope and change of each row.  (n, d) -> four of (n, d)"""
        n, before = len(values), self.length - 1
        group, time, named = groups.group, groups.time, groups.columns[1]
        order = np.lexsort([time, group])
        starts = np.flatnonzero(np.diff(group[order])) + 1
        parts, places, end = [], np.empty(n, dtype=int), 0
        for rows in np.split(order, starts):
            run = int(group[rows[0]])
            if runs.time.get(run, -np.inf) > time[rows[0]]:
                raise UserError(
                    f"The time{f' {named!r}' if named else ''} goes back, and windows continue "
                    f"from earlier rows: rows of a run must come in order of time. Sort them."
                )
            tail = runs.last.get(run, values[:0])
            absent = np.full((before - len(tail), values.shape[1]), np.inf)  # no rows yet
            parts += [absent, tail, values[rows]]
            places[rows] = end + before + np.arange(len(rows))
            end += before + len(rows)
            runs.last[run] = np.concatenate([tail, values[rows]])[-before:]
            runs.time[run] = float(time[rows[-1]])
        return _statistics(np.concatenate(parts), places, self.length)


_STATE = {
    "length": schemas.Schema(
        "a whole number of rows",
        lambda value, sizes: type(value) is int and SHORTEST <= value < 2**31,  # noqa: ARG005
    ),
    "columns": schemas.TEXTS,
    "kinds": schemas.items(schemas.word("", *_NUMERIC)),
}


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
    deviation = np.minimum(np.sqrt(squares / length), reading.LARGEST)
    return mean, deviation, along / np.sum(steps**2), change


def check_length(length: Any) -> None:
    """Check the length of a window."""
    if not isinstance(length, Integral) or int(length) < SHORTEST:
        raise ParameterError("window", expected=f"a number of rows, {SHORTEST} or more", got=length)


def _one_run(n: int) -> RowGroups:
    return RowGroups(np.zeros(n, dtype=np.uint64), np.zeros(n), (None, None))


class PersistentAlarms:
    """Keeps an alarm only if `least` of the last `among` rows of its run are above the threshold.

    The row itself is one of them, so the false-alarm rate promised for single rows is kept. Faults
    are found at least `least` - 1 rows later.

    Parameters
    ----------
    least, among : int
        By default 3 of the last 5 rows; at the start of a run, of fewer.

    Examples
    --------
    >>> above = [1, 0, 1, 1, 0, 0, 0, 1]
    >>> alarms = PersistentAlarms(2, 3)
    >>> [alarms.update(part).astype(int).tolist() for part in (above[:3], above[3:])]
    [[0, 0, 1], [1, 0, 0, 0, 0]]
    """

    def __init__(self, least: int = 3, among: int = 5) -> None:
        if not 1 <= least <= among:
            raise UserError(
                f"Expected two whole numbers, the first at least 1 and no larger than the second, "
                f"for rows above the threshold among the last rows: got {least} and {among}."
            )
        self.least, self.among = least, among
        self._last: dict[Any, np.ndarray] = {}

    def update(self, above: Any, groups: Any = None) -> np.ndarray:
        """Which of the next rows are alarms, in order, continuing from earlier rows.

        Parameters
        ----------
        above : array-like of shape (n_rows,)
            Whether each row is above the threshold, as `Detector.predict` returns it.
        groups : array-like of shape (n_rows,), default=None
            The run of each row; by default all rows are one run.
        """
        above = np.asarray(above).astype(bool)
        groups = np.zeros(len(above), dtype=int) if groups is None else np.asarray(groups)
        if len(groups) != len(above):
            message = f"Expected a group for each of {len(above):,} rows, got {len(groups):,}."
            raise UserError(message)
        names, run = np.unique(groups, return_inverse=True)
        order = np.argsort(run, kind="stable")
        alarm = np.zeros(len(above), dtype=bool)
        starts = np.searchsorted(run[order], np.arange(1, len(names)))
        for name, rows in zip(names.tolist(), np.split(order, starts), strict=True):
            last = self._last.get(name, np.zeros(self.among - 1, dtype=bool))
            there = np.concatenate([last, above[rows]])
            counts = np.convolve(there, np.ones(self.among, dtype=int), mode="valid")
            alarm[rows] = above[rows] & (counts >= self.least)
            self._last[name] = there[len(there) - self.among + 1 :]
        return alarm
