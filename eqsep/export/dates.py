"""Columns of dates in the graph: the hour and the weekday on their circles."""

import numpy as np

from eqsep.export.graph import Graph, Part, Value
from eqsep.tables.encodings import Date

DAY = 86_400.0  # seconds
WEEK = 7 * DAY
MONDAY = 4 * DAY  # the first one since 1970


def circle_parts(graph: Graph, values: Value, date: Date, *, source: int, first: int) -> list[Part]:
    """Sine and cosine of each cycle; 0 where the date is missing."""
    if not date.cycles:
        return []
    x = graph("Gather", values, np.array([source]), axis=1)
    missing = graph("IsNaN", x)
    x = graph("Where", missing, 0.0, x)
    parts: list[Part] = []
    for cycle in date.cycles:
        angle = graph("Mul", 2 * np.pi, _turn(graph, x, cycle))
        for quarter in (0.0, np.pi / 2):  # a cosine by a sine: older runtimes have no other
            place = first + len(date.elapsed.outputs) + len(parts)
            height = graph("Sin", graph("Add", angle, quarter))
            parts.append(Part(graph("Where", missing, 0.0, height), [place]))
    return parts


def _turn(graph: Graph, x: Value, cycle: str) -> Value:
    """The part of the day or week that has passed; weekdays are whole steps."""
    # Before 1970 the remainder is negative: a whole turn less, the same place on the circle.
    if cycle == "hour":
        return graph("Div", graph("Mod", x, DAY, fmod=1), DAY)
    days = graph("Div", graph("Mod", graph("Sub", x, MONDAY), WEEK, fmod=1), DAY)
    return graph("Div", graph("Floor", days), 7.0)
