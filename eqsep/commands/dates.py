"""Columns of dates: rows that come later lie beyond all that a model has learnt."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from eqsep.commands.console import counted
from eqsep.detector import Detector
from eqsep.tables.column import WRITERS, Column
from eqsep.tables.date import Date
from eqsep.tables.reading import Table

LATER, EARLIER = "later", "earlier"
Beyond = Counter[tuple[str, str, str]]  # rows by column, LATER or EARLIER, and the last date learnt


def dates_learnt(detector: Detector, rows: Table) -> list[str]:
    """A sentence for each column of dates that a detector of such rows uses."""
    return [
        f"Column {column.name!r} holds dates, from {_written(learnt, 0)} to "
        f"{_written(learnt, -1)}: rows that come later lie beyond all that was learnt, and may "
        f"raise alarms for that alone. Unless the date matters, leave it out: "
        f"--drop {column.name!r}."
        for column, learnt in _used(detector, rows)
    ]


def rows_beyond(detector: Detector, rows: Table) -> Beyond:
    """How many rows have a later date, or an earlier one, than all that were learnt."""
    found: Beyond = Counter()
    for column, learnt in _used(detector, rows):
        seconds = column.numbers("date")
        knots = learnt.elapsed.knots
        found[column.name, LATER, _written(learnt, -1)] += int(np.sum(seconds > knots[-1]))
        found[column.name, EARLIER, _written(learnt, 0)] += int(np.sum(seconds < knots[0]))
    return found


def tell_beyond(found: Beyond, *, n_rows: int) -> list[str]:
    """A sentence for each column by which more than half of the rows are beyond what was learnt."""
    return [
        f"{n:,} of {counted(n_rows, 'row')} {'has' if n == 1 else 'have'} a {side} date in "
        f"column {name!r} than all that were learnt ({limit}), and may raise alarms for "
        f"that alone: fit to rows of their time, or without the column, by "
        f"eqsep fit … --drop {name!r}."
        for (name, side, limit), n in found.items()
        if 2 * n > n_rows
    ]


def _used(detector: Detector, rows: Table) -> Iterator[tuple[Column, Date]]:
    encoder = detector.feature_map_.encoder
    for column, learnt in zip(rows.columns, encoder.columns_, strict=True):
        if isinstance(learnt, Date):
            yield column, learnt


def _written(learnt: Date, place: int) -> str:
    return WRITERS["date"](learnt.elapsed.knots[place]).replace("T", " ")
