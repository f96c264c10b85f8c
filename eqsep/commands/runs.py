"""Rows of files that go on from the rows before them, run by run."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from eqsep.commands.dialects import Layout
from eqsep.commands.inputs import InputSpec
from eqsep.commands.reading import Choice, as_read, columns_for
from eqsep.detector.answers import FittedDetector
from eqsep.detector.persisting import PersistentAlarms
from eqsep.detector.windows import Runs
from eqsep.errors import UserError, quoted
from eqsep.tables.reading import Table


class RunReader:
    """From pieces of files to the rows that a detector takes, with what came before in their run.

    Parameters
    ----------
    detector : Detector
        Where it takes no windows, rows are taken as they are.
    persist : str, default=None
        How many of how many last rows must be above the threshold, as in "3/5".
    """

    looks_back = True

    def __init__(self, detector: FittedDetector, *, persist: str | None = None) -> None:
        self.detector, self.runs = detector, Runs()
        self.alarms = PersistentAlarms(1, 1) if persist is None else PersistentAlarms.read(persist)
        self.windows = detector.feature_map_.windows
        self.spec = InputSpec((), Layout()).grouped_like(detector)
        grouping = detector.feature_map_.grouping
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
            return columns_for(self.detector, beside=[*beside, *run])(there)

        return choose

    def _there(self, names: list[str]) -> InputSpec:
        """The same without times that are not there: then rows are in their order."""
        return self.spec if self.spec.time in names else replace(self.spec, time=None)

    def __call__(self, table: pa.Table) -> Table:
        """The rows of a piece."""
        rows = as_read(table, self.detector)
        rows = self._there(table.schema.names).with_groups(rows, table)
        return rows if self.windows is None else self.windows.transform(rows, runs=self.runs)

    def persisting(self, alarm: np.ndarray, rows: Table) -> np.ndarray:
        """Which alarms stay: those of runs in which enough of the last rows are alarms."""
        return self.alarms.update(alarm, None if rows.groups is None else rows.groups.group)
