"""Exemptions: alarms of an entity, or with values in a range, that are expected for a while."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from sqlalchemy import Connection, func, insert, select, update

from eqsep.errors import UserError
from eqsep.serve import schema
from eqsep.serve.alarms import EXEMPT, OPEN, REOPENED, Alarm, Alarms
from eqsep.serve.ledger import Ledger, Row
from eqsep.serve.people import audit_entry
from eqsep.serve.store import Missing, Store, columns_of, now
from eqsep.serve.texts import Asked

MOST_DAYS = 365
_DAY = 86_400.0  # seconds
_MAX_OPEN_ALARMS = 30_000  # open alarms that an exemption is applied to: the newest


class Exempted(Asked):
    """What is to be exempted: alarms of an entity, or with values in a range, or both."""

    entity: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    column: Annotated[str, Field(max_length=200)] | None = None
    low: Annotated[float, Field(allow_inf_nan=False)] | None = None
    high: Annotated[float, Field(allow_inf_nan=False)] | None = None
    days: Annotated[float, Field(gt=0, le=MOST_DAYS)]
    note: Annotated[str, Field(max_length=2_000)] = ""

    def checked(self) -> "Exempted":
        """The same, or an error if it exempts all alarms, or none."""
        bounds = [bound for bound in (self.low, self.high) if bound is not None]
        if self.entity is None and self.column is None:
            raise UserError("An exemption needs an entity, a column with a range, or both.")
        if (self.column is None) != (not bounds):
            raise UserError("A range needs a column, and a lower or an upper bound.")
        if sorted(bounds) != bounds:
            low, high = (f"{bound:.10g}" for bound in bounds)
            raise UserError(f'"From" must not be larger than "To" ({low}, {high}).')
        return self


@dataclass(frozen=True)
class Exemption:
    """Alarms that stay out of the inbox: those that meet all of its conditions."""

    id: int
    entity: str | None  # None: of any entity
    column: str | None  # None: with any values
    low: float | None  # the range of values in the column; None: without a bound
    high: float | None
    expires: float  # in seconds since 1970
    note: str
    by: str
    at: float
    revoked_at: float | None = None
    revoked_by: str | None = None


def covers(asked: Exempted | Exemption, row: Row, entity: str | None) -> bool:
    """Whether an exemption, made or asked for, exempts the alarm of a row."""
    if asked.entity not in (None, entity) or asked.column is None:
        return asked.entity in (None, entity)
    try:
        value = float(row[asked.column])
    except (KeyError, TypeError, ValueError):
        return False
    return (asked.low is None or value >= asked.low) and (asked.high is None or value <= asked.high)


def in_force(connection: Connection, name: str) -> list[Exemption]:
    """The exemptions of a model that hold now, the newest first."""
    table = schema.exemptions
    holds = (table.c.model == name) & table.c.revoked_at.is_(None) & (table.c.expires > now())
    query = select(*columns_of(Exemption, table)).where(holds).order_by(table.c.id.desc())
    return [Exemption(*row) for row in connection.execute(query)]


class Exemptions:
    """Keeps expected alarms in a state of their own, until a time or until that is revoked.

    Alarms whose exemption has ended are open again when somebody next looks (`Alarms.refresh`).
    """

    def __init__(self, store: Store, ledger: Ledger, alarms: Alarms) -> None:
        self._store, self._ledger, self._alarms = store, ledger, alarms

    def add(self, name: str, asked: Exempted, *, by: str) -> Exemption:
        """Exempt alarms, those that are open now among them."""
        alarms, table, rows = self.covering(name, asked), schema.exemptions, schema.rows
        values = asked.model_dump(exclude={"days"})
        values |= {"by": by, "at": now(), "expires": now() + asked.days * _DAY}
        with self._store.writing() as connection:
            made = insert(table).values(model=name, **values).returning(table.c.id)
            exemption = Exemption(id=connection.execute(made).scalar_one(), **values)
            ids = [alarm.id for alarm in alarms]
            mine = rows.c.id.in_(ids) & (rows.c.state == OPEN)
            exempt = {"state": EXEMPT, "exemption": exemption.id}
            connection.execute(update(rows).where(mine).values(**exempt))
            what = {"model": name, "id": exemption.id, "rows": len(ids), "days": asked.days}
            connection.execute(audit_entry(by, "exempted", **what))
        return exemption

    def covering(self, name: str, asked: Exempted) -> list[Alarm]:
        """The open alarms that an exemption would keep out of the inbox, the newest first."""
        columns = self._ledger.live_model(name).plan.table_columns
        if asked.column is not None and asked.column not in columns:
            raise UserError(f"{asked.column!r} is not a column of the model {name!r}.")
        asked, table = asked.checked(), schema.rows.c
        own = [] if asked.entity is None else [table.entity == asked.entity]
        self._alarms.refresh(name)
        alarms = self._alarms.rows(
            name, table.state == OPEN, table.now_alarm, *own, limit=_MAX_OPEN_ALARMS
        )
        return [alarm for alarm in alarms if covers(asked, alarm.row, alarm.entity)]

    def is_stored(self, name: str, entity: str) -> bool:
        """Whether there are stored rows of an entity."""
        table = schema.rows.c
        query = select(table.id).where(table.model == name, table.entity == entity).limit(1)
        return self._store.first(query) is not None

    def all(self, name: str) -> list[Exemption]:
        """All exemptions of a model, the newest first."""
        table = schema.exemptions
        return self._store.newest(Exemption, table, table.c.model == name)

    def covered(self, name: str) -> dict[int, int]:
        """How many alarms each exemption has kept out of the inbox."""
        table = schema.rows.c
        is_kept = (table.model == name) & table.exemption.is_not(None)
        query = select(table.exemption, func.count()).where(is_kept).group_by(table.exemption)
        return {number: int(n) for number, n in self._store.rows(query)}

    def revoke(self, name: str, number: int, *, by: str) -> None:
        """End an exemption: the alarms that it has kept out of the inbox are open again."""
        table, rows = schema.exemptions, schema.rows
        mine = (table.c.id == number) & (table.c.model == name) & table.c.revoked_at.is_(None)
        with self._store.writing() as connection:
            ended = update(table).where(mine).values(revoked_at=now(), revoked_by=by)
            if not connection.execute(ended).rowcount:
                raise Missing(f"Model {name!r} has no exemption {number} to revoke.")
            kept = (rows.c.exemption == number) & (rows.c.state == EXEMPT)
            connection.execute(update(rows).where(kept).values(**REOPENED))
            connection.execute(audit_entry(by, "exemption revoked", model=name, id=number))
