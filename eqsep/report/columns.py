"""What one strange value of each column does, and which columns matter most."""

from collections.abc import Sequence
from dataclasses import dataclass

from eqsep.checks import counting_columns
from eqsep.detector import ColumnClosedness
from eqsep.report.alarms import Alarm
from eqsep.tables.reading import Table

MOST, SHOWN = 12, 10  # columns that are shown at once; of more than these, so many


@dataclass(frozen=True)
class ColumnVerdict:
    """What becomes of rows in which one column leaves what is usual.

    Attributes
    ----------
    closedness : ColumnClosedness
    outgrown : str or None
        The side, "above" or "below", to which the column moves as time goes by, where rows raise
        an alarm there: as rows to come lie beyond all that was learnt, all of them do.
    weight : float
        What the column adds to the scores of the alarms that are explained.
    """

    closedness: ColumnClosedness
    outgrown: str | None = None
    weight: float = 0.0

    @property
    def name(self) -> str:
        return self.closedness.column

    @property
    def since(self) -> str | None:
        """The value from which on rows to come raise an alarm, where the column is outgrown."""
        ends = {end.where: end.since for end in self.closedness.ends}
        return ends[self.outgrown] if self.outgrown else None

    @property
    def word(self) -> str:
        """The verdict; what is missing is named where it alone raises no alarm."""
        if self.outgrown:
            return "all later rows"
        if self.closedness.is_late:
            return "late"
        if self.closedness.closed:
            return "close"
        silent = [end.where for end in self.closedness.ends if not end.rings]
        return "no, where missing" if silent == ["missing"] else "no"

    @property
    def style(self) -> str:
        """How it is coloured."""
        return {"close": "good", "late": "late", "no, where missing": "late"}.get(self.word, "bad")


def column_verdicts(
    closedness: Sequence[ColumnClosedness],
    *,
    reads: dict[str, str],
    usual: Table,
    alarms: Sequence[Alarm],
) -> tuple[ColumnVerdict, ...]:
    """The verdict on each column.

    Parameters
    ----------
    reads : dict of str to str
        What each column is read as: dates move on.
    usual : Table
        Normal rows, in their order: numbers that count them move on too.
    alarms : sequence of Alarm
        Whose reasons say which columns matter.
    """
    counting = {
        column.name
        for column in usual.columns
        if counting_columns(Table([column], usual.named, usual.n_rows))
    }
    weights: dict[str, float] = {}
    for reason in (reason for alarm in alarms for reason in alarm.reasons):
        weights[reason.column] = weights.get(reason.column, 0.0) + reason.contribution
    found = []
    for one in closedness:
        moves = reads.get(one.column) == "dates" or one.column in counting
        ways = [end.where for end in one.ends if end.where in ("above", "below") and end.rings]
        outgrown = ways[-1] if moves and ways else None
        if outgrown == "below" and one.column not in counting:
            outgrown = None  # dates go on, never back
        found.append(ColumnVerdict(one, outgrown, weights.get(one.column, 0.0)))
    return tuple(found)


def that_matter(columns: Sequence[ColumnVerdict]) -> tuple[ColumnVerdict, ...]:
    """All columns where they are few; else the ten that matter, those that say most first.

    Columns that rows outgrow come first, then those that add most to alarms, then those in which a
    strange value raises no alarm.
    """
    if len(columns) <= MOST:
        return tuple(columns)
    order = ("no", "late", "no, where missing", "close")

    def place(one: ColumnVerdict) -> tuple[bool, float, int]:
        return not one.outgrown, -one.weight, 0 if one.outgrown else order.index(one.word)

    return tuple(sorted(columns, key=place)[:SHOWN])
