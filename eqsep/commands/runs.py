"""Rows of files that go on from the rows before them, run by run."""

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from eqsep.commands.dialects import Layout
from eqsep.commands.inputs import InputSpec
from eqsep.commands.reading import Choice, as_read, columns_for
from eqsep.detector import Detector, Runs
from eqsep.errors import UserError
from eqsep.tables.reading import Table


class RunReader:
    """From pieces of files to the rows that a detector takes, with what came before in their run.

    Where a detector takes no windows, rows are taken as they are.
    """

    def __init__(self, detector: Detector) -> None:
        self.detector, self.runs = detector, Runs()
        self.windows = detector.feature_map_.windows
        self.spec = InputSpec((), Layout()).grouped_like(detector)
        grouping = detector.feature_map_.grouping
        if self.windows is not None and grouping is not None and grouping.columns[0] == "":
            raise UserError(
                "The model was fitted in Python with groups that are no column, and takes windows "
                "of their rows: it can score there alone."
            )

    def columns(self, *, beside: Iterable[str] = ()) -> Choice:
        """The columns of a file that are read: those of the run too, where rows go on."""

        def choose(there: list[str]) -> Iterable[str]:
            run = [] if self.windows is None else self._there(there).groups
            return columns_for(self.detector, beside=[*beside, *run])(there)

        return choose

    def _there(self, names: list[str]) -> InputSpec:
        """The group must be there; without times rows are taken in their order."""
        return self.spec if self.spec.time in names else replace(self.spec, time=None)

    def __call__(self, table: pa.Table) -> Table:
        """The rows of a piece."""
        rows = as_read(table, self.detector)
        if self.windows is None:
            return rows
        rows = self._there(table.schema.names).with_groups(rows, table)
        return self.windows.transform(rows, runs=self.runs)
