"""The queue: rows whose labels would help most, and what judged ones tell of those missed."""

from dataclasses import dataclass

from sqlalchemy import and_, func, select
from sqlalchemy.sql.expression import ColumnElement

from eqsep.evaluation.promises import Share
from eqsep.labels import OR
from eqsep.serve import schema
from eqsep.serve.alarms import Alarms
from eqsep.serve.records import OPEN, Alarm, found
from eqsep.serve.store import Store
from eqsep.serve.verdicts import FALSE, TRUE

RANDOM = "drawn at random among rows that passed: judged, it measures what is missed"
NEAR = "passed, and scores highest among those that did"
BETWEEN = "named {kind}: a verdict tells which"


@dataclass(frozen=True)
class Offered:
    """A row that is worth a verdict, and why."""

    alarm: Alarm
    why: str


class Queue:
    """What to judge next, of a store."""

    def __init__(self, store: Store, alarms: Alarms) -> None:
        self._store, self._alarms = store, alarms

    def offered(self, name: str, *, limit: int = 20) -> list[Offered]:
        """Rows to judge: alarms between kinds, random ones that passed, and the highest of these.

        A row that was drawn at random is never offered for its score: those that are judged must
        stay a random share.
        """
        self._alarms.refresh(name)
        table = schema.rows.c
        each = max(1, limit // 3)
        passed, shuffled = ~table.now_alarm, (table.id * 7919) % 10_007
        random = self._rows(name, and_(passed, table.drawn), shuffled, each)
        near = self._rows(name, and_(passed, ~table.drawn), -table.now_score, each)
        between = self._rows(
            name, and_(table.now_alarm, table.now_kind.contains(OR)), -table.at, each
        )
        return [
            *(Offered(alarm, BETWEEN.format(kind=alarm.now.kind)) for alarm in between),
            *(Offered(alarm, RANDOM) for alarm in random),
            *(Offered(alarm, NEAR) for alarm in near),
        ]

    def missed(self, name: str) -> Share:
        """The share of anomalies among the random rows that passed still when they were judged.

        One that had risen to an alarm was not missed, and people look at alarms first.
        """
        rows, verdicts = schema.rows.c, schema.verdicts.c
        query = select(verdicts.verdict, func.count()).join_from(
            schema.rows, schema.verdicts, verdicts.row == rows.id
        )
        judged = and_(rows.model == name, rows.drawn, ~rows.now_alarm, verdicts.undone_at.is_(None))
        with self._store.reading() as connection:
            counted = connection.execute(query.where(judged).group_by(verdicts.verdict)).all()
        given = {verdict: int(n) for verdict, n in counted}
        return Share.counted(given.get(TRUE, 0), given.get(TRUE, 0) + given.get(FALSE, 0))

    def _rows(
        self, name: str, where: ColumnElement[bool], first: ColumnElement[int], limit: int
    ) -> list[Alarm]:
        table = schema.rows
        mine = and_(table.c.model == name, table.c.state == OPEN, where)
        return found(
            self._store, select(table).where(mine).order_by(first, table.c.id).limit(limit)
        )
