"""The results on disk, each read once: all that rendering looks at."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eqsep.experiments.cell import Cell, Result, read_result


class Results:
    """A folder of results.

    Examples
    --------
    >>> Results(Path("/nowhere")).of(Cell("circles", "circles", "DT")) is None
    True
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._read: dict[Cell, Result | None] = {}

    def of(self, cell: Cell) -> Result | None:
        """The result of a cell; None where it has not been run."""
        if cell not in self._read:
            self._read[cell] = read_result(cell, self.out)
        return self._read[cell]

    def made(self, cells: Iterable[Cell] | None = None) -> list[Mapping[str, Any]]:
        """What measured results say of their making: those of the cells, or all that were read."""
        found = self._read.values() if cells is None else map(self.of, cells)
        return [result["made"] for result in found if result and "made" in result]
