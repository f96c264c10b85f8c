"""Rows of files that go on from the rows before them, run by run."""

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from eqsep.commands.dialects import Layout
from eqsep.commands.inputs import InputSpec
from eqsep.commands.reading import Choice, as_read, columns_for
from eqsep.detector.model import Model
from eqsep.detector.runs import PersistentAlarms, Runs
from eqsep.errors import UserError, quoted
from eqsep.tables.reading import Table


def persistent_alarms(text: str) -> PersistentAlarms:
    """Alarms that persist for 3 of 5 rows, from "3/5"."""
    found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(
            f"--persist must be two whole numbers as in 3/5, the first at least 1 and not above "
            f"the second, got {text!r}."
        )
    return PersistentAlarms(int(found[1]), int(found[2]))


class RunReader:
    """From pieces of files to the rows that a detector takes, with what came before in their run.

    Parameters
    ----------
    model : Model
        Where it takes no windows, rows are taken as they are.
    persist : str, default=None
        How many of how many last rows must be above the threshold, as in "3/5".
    """

    looks_back = True

    def __init__(self, model: Model, *, persist: str | None = None) -> None:
        self.model, self.runs = model, Runs()
        self.alarms = PersistentAlarms(1, 1) if persist is None else persistent_alarms(persist)
        self.windows = model.plan.windows
        self.spec = InputSpec((), Layout()).grouped_like(model.plan)
        grouping = model.plan.holdout.grouping
        if grouping is not None and grouping.columns[0] == "":
            raise UserError(
                "The model was fitted in Python with groups that are no column, so that it is not "
                "known which rows are of one run: windows and --persist can be had there alone."
            )

    def columns(self, *, beside: Iterable[str] = ()) -> Choice:
        """The columns of a file that are read, those of the run too."""

        def choose(there: list[str]) -> Iterable[str]:
            if self.spec.group is not None and self.spec.group not in there:
                raise UserError(
                    f"Column {self.spec.group!r} is missing: it says which run a row is of, and "
                    f"windows and alarms that persist go on within a run. The table has "
                    f"{quoted(there)}."
                )
            run = self._there(there).groups
            return columns_for(self.model.plan, beside=[*beside, *run])(there)

        return choose

    def _there(self, names: list[str]) -> InputSpec:
        """The same without times that are not there: then rows are in their order."""
        return self.spec if self.spec.time in names else replace(self.spec, time=None)

    def __call__(self, table: pa.Table) -> Table:
        """The rows of a piece."""
        rows = as_read(table, self.model.plan)
        rows = self._there(table.schema.names).with_groups(rows, table)
        return rows if self.windows is None else self.windows.transform(rows, runs=self.runs)

    def persisting(self, alarm: np.ndarray, rows: Table) -> np.ndarray:
        """Which alarms stay: those of runs in which enough of the last rows are alarms."""
        return self.alarms.update(alarm, None if rows.groups is None else rows.groups.group)
