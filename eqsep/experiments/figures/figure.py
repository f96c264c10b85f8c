"""A figure as data: the cells whose results it draws."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eqsep.experiments.cell import Cell, Result
from eqsep.experiments.table import Place, Plan

Drawn = Mapping[tuple[str, str], Result]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes
    ----------
    name, title, caption : str
    study : str
        The study whose cells it draws.
    places : tuple of Place
    draw : callable
        From results by data set and method to a matplotlib figure.
    """

    name: str
    title: str
    caption: str
    study: str
    places: tuple[Place, ...]
    draw: Callable[[Drawn], Any]

    def cells(self, plan: Plan) -> list[Cell]:
        """Its cells, by the first protocol of the plan."""
        found = (place.cell(self.study, plan, plan.protocols[0]) for place in self.places)
        return list(dict.fromkeys(found))
