"""What is kept of rows: what was said of them, what was decided, and which are asked for."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, String, and_, cast, or_, select

from eqsep.errors import UserError
from eqsep.labels import OR
from eqsep.serve import schema
from eqsep.serve.log import Row
from eqsep.serve.store import Store

OPEN, UNSURE, JUDGED = "open", "unsure", "judged"  # what a row's state is
MISSING = "missing"  # how a value is called that is not there
_BOOLEANS = {"true": ("true", "1"), "false": ("false", "0")}  # as databases have them in JSON
STATES = (OPEN, UNSURE, JUDGED, "cleared", "quiet")  # what may be asked for


@dataclass(frozen=True)
class Said:
    """What a version says of a row."""

    version: int
    score: float
    p_value: float
    alarm: bool
    kind: str


@dataclass(frozen=True)
class Verdict:
    """What somebody has decided of a row.

    Attributes
    ----------
    id, row : int
    verdict : {"true", "false alarm", "expected", "unsure"}
    kind : str or None
        Of a true alarm.
    note, by : str
    at : float
        Seconds since 1970.
    version : int or None
        That has learnt it; None where it teaches nothing.
    undone_at, undone_by
        When and by whom it was taken back.
    """

    id: int
    row: int
    verdict: str
    kind: str | None
    note: str
    by: str
    at: float
    version: int | None
    undone_at: float | None
    undone_by: str | None


@dataclass(frozen=True)
class Proposal:
    """A verdict that somebody proposes, and why."""

    verdict: str
    kind: str | None
    note: str
    by: str
    at: float


@dataclass(frozen=True)
class Alarm:
    """A row that is kept: one that raised an alarm, or one of the random share that did not.

    Attributes
    ----------
    id : int
    model : str
    at : float
        When it came, in seconds since 1970.
    row : dict
        As it came.
    entity : str or None
        The card, machine or host that it is of.
    said, now : Said
        When it came, and by the live version as far as that has looked.
    shadow_score : float or None
        What the version in the shadow said.
    drawn : bool
        Whether it is one that was drawn at random to be judged.
    state : {"open", "unsure", "judged"}
    assignee : str or None
    note : str
    reasons : dict or None
        Why it was said: None until it was asked for.
    proposal : Proposal or None
        A verdict that a program proposes: it does nothing until a person gives it.
    verdict : Verdict or None
        That stands.
    """

    id: int
    model: str
    at: float
    row: Row
    entity: str | None
    said: Said
    now: Said
    shadow_score: float | None
    drawn: bool
    state: str
    assignee: str | None
    note: str
    reasons: dict[str, Any] | None
    proposal: Proposal | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Filter:
    """Which rows are asked for.

    Attributes
    ----------
    state : {"open", "unsure", "judged", "cleared", "quiet"}, default="open"
        "cleared" are those that raised an alarm and no longer would, "quiet" those that never did.
    kind, entity, assignee : str, default=None
        A kind is the first name of a row: "a" finds "a" and "a or b", not "b or a". An assignee of
        "" is nobody.
    min_score : float, default=None
    since : float, default=None
        In seconds since 1970.
    column, value : str, default=None
        What rows have in a column, as it is shown: "missing" where they have nothing.
    order : {"at", "score"}, default="at"
        The newest first, or the highest.
    """

    state: str = OPEN
    kind: str | None = None
    entity: str | None = None
    assignee: str | None = None
    min_score: float | None = None
    since: float | None = None
    column: str | None = None
    value: str | None = None
    order: str = "at"

    def conditions(self) -> list[ColumnElement[bool]]:
        """What holds of the rows."""
        table = schema.rows.c
        alarms = {
            "quiet": and_(~table.alarm, ~table.now_alarm, table.state == OPEN),
            "cleared": and_(table.alarm, ~table.now_alarm, table.state == OPEN),
            OPEN: and_(table.now_alarm, table.state == OPEN),
        }
        found = [alarms.get(self.state, table.state == self.state)]
        if self.kind:
            found.append(_is_first(table.now_kind, self.kind))
        if self.entity:
            found.append(table.entity == self.entity)
        if self.assignee is not None:
            found.append(
                table.assignee == self.assignee if self.assignee else table.assignee.is_(None)
            )
        if self.min_score is not None:
            found.append(table.now_score >= self.min_score)
        if self.since is not None:
            found.append(table.at >= self.since)
        if self.column and self.value is not None:
            found.append(_holds(self.column, self.value))
        return found


@dataclass(frozen=True)
class Page:
    """Some of the rows that were asked for, and how many there are in all."""

    alarms: list[Alarm]
    total: int


@dataclass(frozen=True)
class Group:
    """Open alarms of no seen kind that look alike, the highest first, and what they have in common.

    Attributes
    ----------
    alarms : list of Alarm
    columns : list of str
        Those that add most to the scores of the first five.
    """

    alarms: list[Alarm]
    columns: list[str]


def _holds(column: str, value: str) -> ColumnElement[bool]:
    """Whether rows have a value in a column, however the database writes numbers."""
    if '"' in column:  # no path of SQLite's can name it
        raise UserError(f"A column with a quotation mark in its name cannot be a filter: {column}.")
    there = cast(schema.rows.c.row[column].as_string(), String)
    if value == MISSING:
        return there.is_(None)
    texts = {value, *_BOOLEANS.get(value.lower(), ())}
    try:
        number = float(value)
    except ValueError:
        return there.in_(texts)
    return there.in_({*texts, repr(number), f"{number:.15g}"})


def _is_first(named: Column[str], kind: str) -> ColumnElement[bool]:
    """Whether a kind is the name of a row, or the first of several."""
    return or_(named == kind, named.startswith(kind + OR, autoescape=True))


def found(store: Store, query: Select[Any]) -> list[Alarm]:
    """Rows that a query selects, with the verdicts that stand."""
    verdicts = schema.verdicts
    with store.reading() as connection:
        rows = connection.execute(query).all()
        stand = and_(verdicts.c.row.in_([row.id for row in rows]), verdicts.c.undone_at.is_(None))
        given = connection.execute(select(verdicts).where(stand).order_by(verdicts.c.id))
        by_row = {row.row: verdict_of(row) for row in given}
    return [_alarm(row, by_row.get(row.id)) for row in rows]


def verdict_of(row: Any) -> Verdict:
    """The verdict of an entry."""
    told = (row.id, row.row, row.verdict, row.kind, row.note, row.by, row.at)
    return Verdict(*told, row.version, row.undone_at, row.undone_by)


def _alarm(row: Any, verdict: Verdict | None) -> Alarm:
    said = Said(
        version=row.version,
        score=row.score,
        p_value=row.p_value,
        alarm=row.alarm,
        kind=row.kind,
    )
    now = Said(
        version=row.now_version,
        score=row.now_score,
        p_value=row.now_p_value,
        alarm=row.now_alarm,
        kind=row.now_kind,
    )
    return Alarm(
        *(row.id, row.model, row.at, row.row, row.entity, said, now, row.shadow_score, row.drawn),
        state=row.state,
        assignee=row.assignee,
        note=row.note,
        reasons=row.reasons,
        proposal=None if row.proposal is None else Proposal(**row.proposal),
        verdict=verdict,
    )
