"""How long tables and figures take: by what results say of their making, never by guess."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from paper.archive import unpacked
from paper.cells import Cell, Results
from paper.runner import STUDIES


@dataclass(frozen=True)
class Times:
    """Recorded seconds of processor time by cell, and by study how many one planned second takes.

    Examples
    --------
    >>> cell = Cell("formulas", "output", "tanh")
    >>> Times({cell: 90.0}, {}).of_cells([cell, cell]), Times({}, {}).of_cells([cell])
    ('2 min', '–')
    >>> Times({}, {"formulas": 30.0}).of_cells([cell])
    'about 30 s'
    """

    recorded: Mapping[Cell, float]
    rates: Mapping[str, float]

    @classmethod
    def of(cls, cells: Iterable[Cell], sources: Sequence[Path]) -> "Times":
        """Of the cells that have a result in one of the sources, folders or archives."""
        with ExitStack() as stack:
            folders = [
                Results(s if s.is_dir() else stack.enter_context(unpacked(s)).folder)
                for s in sources
            ]
            recorded: dict[Cell, float] = {}
            for cell in dict.fromkeys(cells):
                for folder in folders:
                    made = (folder.of(cell) or {}).get("made")
                    if made:
                        recorded[cell] = float(made.get("processor_seconds", made["seconds"]))
                        break
        planned: dict[str, float] = {}
        taken: dict[str, float] = {}
        for cell, seconds in recorded.items():
            planned[cell.study] = planned.get(cell.study, 0.0) + _planned(cell)
            taken[cell.study] = taken.get(cell.study, 0.0) + seconds
        return cls(recorded, {study: taken[study] / planned[study] for study in planned})

    def of_cells(self, cells: Iterable[Cell]) -> str:
        """How long these cells take together, in words."""
        cells = list(dict.fromkeys(cells))
        unknown = [cell for cell in cells if cell not in self.recorded]
        if any(cell.study not in self.rates for cell in unknown):
            return "–"
        seconds = sum(self.recorded[cell] for cell in cells if cell in self.recorded)
        seconds += sum(self.rates[cell.study] * _planned(cell) for cell in unknown)
        return ("about " if unknown else "") + _in_words(seconds)


def _planned(cell: Cell) -> float:
    return STUDIES[cell.study].seconds(cell)


def _in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
