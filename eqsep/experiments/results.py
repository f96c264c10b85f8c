"""The results on disk, each read once: all that rendering looks at."""

from collections.abc import Mapping
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

    def made(self) -> list[Mapping[str, Any]]:
        """What every measured result that was read says of its making."""
        return [result["made"] for result in self._read.values() if result and "made" in result]
