"""Which verdicts stand: how they are written, taken back, and follow the version that is live."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, insert, null, select, update

from eqsep.serve import schema
from eqsep.serve.log import lineage
from eqsep.serve.people import noted
from eqsep.serve.records import JUDGED, OPEN, UNSURE, Alarm
from eqsep.serve.store import Conflict, now

TRUE, FALSE, EXPECTED = "true", "false alarm", "expected"
VERDICTS = (TRUE, FALSE, EXPECTED, UNSURE)
TEACHING = (TRUE, FALSE)


def check_open(connection: Connection, numbers: Sequence[int], by: str) -> None:
    """See that nobody was first; what taught nothing makes way."""
    table = schema.verdicts
    standing = and_(table.c.row.in_(numbers), table.c.undone_at.is_(None))
    taught = select(table.c.row, table.c.by).where(standing, table.c.verdict.in_(TEACHING))
    first = connection.execute(taught).first()
    if first is not None:
        raise Conflict(f"Row {first.row} was judged by {first.by} just now: look at it again.")
    connection.execute(update(table).where(standing).values(undone_at=now(), undone_by=by))


def write_down(connection: Connection, alarms: list[Alarm], values: dict[str, object]) -> None:
    """Write verdicts down, beside their rows too."""
    at = now()
    connection.execute(
        insert(schema.verdicts),
        [{"row": alarm.id, "model": alarm.model, "at": at} | values for alarm in alarms],
    )
    told = {key: values[key] for key in ("verdict", "kind", "version")}
    rows = [alarm.id for alarm in alarms]
    connection.execute(noted(str(values["by"]), "verdict", rows=rows, **told))
    state = UNSURE if values["verdict"] == UNSURE else JUDGED
    among = schema.rows.c.id.in_(rows)
    connection.execute(update(schema.rows).where(among).values(state=state, proposal=null()))


def take_back(connection: Connection, numbers: Sequence[int], by: str, version: int | None) -> None:
    """Write down that verdicts stand no more, once a version has forgotten them."""
    table = schema.verdicts
    mine = and_(table.c.id.in_(numbers), table.c.undone_at.is_(None))
    told = {"undone_at": now(), "undone_by": by, "undone_version": version}
    gone = connection.execute(update(table).where(mine).values(**told))
    if gone.rowcount != len(numbers):
        raise Conflict("Somebody has taken one of these verdicts back just now: look again.")
    connection.execute(noted(by, "undone", verdicts=list(numbers)))


def reopen(connection: Connection, rows: Sequence[int]) -> None:
    """Open rows again; the live version has not looked at them meanwhile."""
    among = schema.rows.c.id.in_(rows)
    connection.execute(update(schema.rows).where(among).values(state=OPEN, now_version=0))


def unlike(connection: Connection, model: str, version: int) -> list[Any]:
    """The verdicts that stand and would not by a version, and those that would and do not."""
    table = schema.verdicts
    line = set(lineage(connection, version))
    query = select(table).where(table.c.model == model, table.c.version.is_not(None))
    return [
        row
        for row in connection.execute(query)
        if (row.version in line and row.undone_version not in line) != (row.undone_at is None)
    ]


def reconcile(connection: Connection, model: str, version: int, by: str) -> None:
    """Let those verdicts stand that a version has learnt and not forgotten, and no others."""
    table = schema.verdicts
    for row in unlike(connection, model, version):
        stands = row.undone_at is not None
        told: dict[str, Any] = {"undone_at": None, "undone_by": None, "undone_version": None}
        if not stands:
            told |= {"undone_at": now(), "undone_by": by}
        connection.execute(update(table).where(table.c.id == row.id).values(**told))
        if stands:
            judged = update(schema.rows).where(schema.rows.c.id == row.row).values(state=JUDGED)
            connection.execute(judged)
        else:
            reopen(connection, [row.row])
