"""Runs: rows that come one by one get the windows that they have in their whole run.

The store has the last rows of each run, so any process can go on from them, also after a restart.
Rows are stored with their windows as values.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from eqsep.detector.model import Model
from eqsep.detector.plan import Plan
from eqsep.detector.runs import Runs
from eqsep.errors import UserError
from eqsep.serve import schema
from eqsep.serve.ledger import Row, rows_for
from eqsep.serve.store import now

MOST_RUNS = 100_000  # of a model: those with the oldest last row are forgotten first


def run_columns(plan: Plan) -> tuple[str | None, str | None]:
    """The columns of the run and of the time; a model without windows has none.

    Where time was not a column of the fit, rows are in the order in which they come.
    """
    grouping = plan.holdout.grouping
    if plan.windows is None or grouping is None:
        return None, None
    return grouping.columns[0], grouping.columns[1] or None


class OpenRuns:
    """The runs of a model, within a transaction; all versions have the same windows."""

    def __init__(self, connection: Connection, name: str, model: Model) -> None:
        self._connection, self._name, self._model = connection, name, model
        self._runs = Runs()
        self._shown: dict[int, tuple[str, str]] = {}  # the name of each run, and its last time

    def lock(self) -> None:
        """Let no other process take rows of the model until the transaction ends."""
        table = schema.models
        query = select(table.c.name).where(table.c.name == self._name).with_for_update()
        self._connection.execute(query)

    def extended(self, rows: Sequence[Row]) -> list[Row | str]:
        """Each row with its windows, or what is wrong with it: it is then not part of its run."""
        added = {*self._model.plan.windows.added}  # type: ignore[union-attr]  # it has windows
        plain = [{n: value for n, value in row.items() if n not in added} for row in rows]
        try:
            return self._extended(plain)
        except UserError as error:
            if len(rows) == 1:
                return [str(error)]
        return [found for row in plain for found in self.extended([row])]

    def _extended(self, rows: list[Row]) -> list[Row | str]:
        plan = self._model.plan
        group, time = run_columns(plan)
        named = rows if group is None else [{**row, group: _name(row.get(group))} for row in rows]
        table = plan.grouped(rows_for(self._model, named))
        keys = [0] * len(rows) if table.groups is None else table.groups.group.tolist()
        times = [0.0] * len(rows) if table.groups is None else table.groups.time.tolist()
        self._read(keys)
        found: list[Row | str] = [*rows]
        latest, good = dict(self._runs.time), []
        shown = {key: text for key, (_, text) in self._shown.items()}
        for i, (key, at) in enumerate(zip(keys, times, strict=True)):
            if at < latest.get(key, at):
                run = "the run" if group is None else f"{group} {rows[i][group]!r}"
                found[i] = (
                    f"column {time!r}: expected {shown[key]} or later, the time of the last row of "
                    f"{run}, got {rows[i][str(time)]!r}"
                )
            else:
                good.append(i)
                latest[key], shown[key] = at, str(rows[i].get(str(time)))
        if good:
            windowed = plan.windows.apply(  # type: ignore[union-attr]  # it has windows
                table.take(np.array(good)), plan.holdout.grouping, runs=self._runs
            )
            values = {c.name: c.values.tolist() for c in windowed.columns if c.derived_from}
            for place, i in enumerate(good):
                own = {n: column[place] for n, column in values.items()}
                found[i] = rows[i] | {n: None if v != v else v for n, v in own.items()}  # NaN: null
                name = "" if group is None else str(named[i][group])
                self._shown[keys[i]] = name, shown[keys[i]]
        return found

    def save(self) -> None:
        """Store the last rows of the runs."""
        table, runs, at = schema.runs, self._runs, now()
        values = [
            {
                "model": self._name,
                "run": f"{key:016x}",
                "name": self._shown[key][0][:200],
                "time": runs.time[key],
                "time_shown": self._shown[key][1],
                "last": np.ascontiguousarray(last, dtype="<f8").tobytes(),
                "at": at,
            }
            for key, last in runs.last.items()
        ]
        if not values:
            return
        mine = table.c.model == self._name
        there = mine & table.c.run.in_([value["run"] for value in values])
        n_before = self._connection.execute(delete(table).where(there)).rowcount
        self._connection.execute(insert(table), values)
        if len(values) > n_before:  # some are new
            newest = select(table.c.run).where(mine).order_by(table.c.at.desc(), table.c.run.desc())
            oldest = table.c.run.in_(newest.offset(MOST_RUNS).scalar_subquery())
            self._connection.execute(delete(table).where(mine, oldest))

    def _read(self, keys: list[int]) -> None:
        """Read those of these runs that are not in memory."""
        table, windows = schema.runs, self._model.plan.windows
        lacking = sorted({f"{key:016x}" for key in keys if key not in self._runs.last})
        query = select(table).where(table.c.model == self._name, table.c.run.in_(lacking))
        for row in self._connection.execute(query) if lacking else ():
            key, last = int(row.run, 16), np.frombuffer(row.last, dtype="<f8")
            n_columns = len(windows.windowed)  # type: ignore[union-attr]  # it has windows
            self._runs.last[key] = last.reshape(-1, n_columns)
            self._runs.time[key] = row.time
            self._shown[key] = row.name, row.time_shown


def forget_runs(connection: Connection, model: str, entity: str | None) -> None:
    """Delete an entity's run, or all runs: their windows begin again."""
    table = schema.runs
    mine = delete(table).where(table.c.model == model)
    connection.execute(mine if entity is None else mine.where(table.c.name == entity))


def _name(value: Any) -> Any:
    """The name of a run, the same in every request: 3 and 3.0 are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None else str(value)
