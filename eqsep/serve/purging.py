"""Purging: forget what was learnt of an entity, and delete its rows."""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, insert, null, select, update

from eqsep.detector import Detector
from eqsep.errors import UserError
from eqsep.persistence.files import model_bytes
from eqsep.serve import schema
from eqsep.serve.alarms import Alarms
from eqsep.serve.ledger import FORGET, LEARN, RENAME, Ledger, Lesson, Row, entity_column
from eqsep.serve.people import audit_entry
from eqsep.serve.runs import forget_runs, run_columns
from eqsep.serve.store import Store
from eqsep.serve.verdicts import name_now


@dataclass(frozen=True)
class Purged:
    """How many rows were deleted, and how many lessons with rows of the entity."""

    rows: int
    lessons: int


class Purging:
    """Deletes what a store holds of an entity: a card, a patient, a machine.

    The live version forgets what it has learnt of it in this service; the rows from which the first
    model file was fitted are not known here.
    """

    def __init__(self, store: Store, ledger: Ledger, alarms: Alarms) -> None:
        self._store, self._ledger, self._alarms = store, ledger, alarms

    def purge(self, name: str, entity: str, *, by: str) -> Purged:
        """Forget and delete all rows of an entity.

        Versions from its first lesson until now cannot be restored afterwards.
        """
        live, _, settings = self._ledger.in_use(name)
        plan = self._ledger.detector(live).plan_
        column = entity_column(settings, plan)
        if column is None:
            raise UserError(
                f"The model {name!r} has no column for the entity of a row: set its entity first."
            )
        is_run = run_columns(plan)[0] == column
        lessons, learnt = self._lessons(name, column, entity)
        done: list[int] = []

        def delete_rows(connection: Connection) -> None:
            table = schema.rows
            mine = and_(table.c.model == name, table.c.entity == entity)
            exemptions, deliveries = schema.exemptions, schema.deliveries
            own = (exemptions.c.model == name) & (exemptions.c.entity == entity)
            connection.execute(delete(exemptions).where(own))
            of_it = deliveries.c.content["entity"].as_string() == entity
            connection.execute(delete(deliveries).where(deliveries.c.model == name, of_it))
            judged = schema.verdicts.c.row.in_(select(table.c.id).where(mine))
            connection.execute(delete(schema.verdicts).where(judged))
            done.append(int(connection.execute(delete(table).where(mine)).rowcount))
            connection.execute(audit_entry(by, "purged", model=name, rows=done[0]))  # not of whom
            forget_runs(connection, name, entity if is_run else None)

        def write(connection: Connection, number: int, detector: Detector) -> None:
            """Delete lessons and the model files since the first of them; the log begins here."""
            versions, snapshots, models = schema.versions, schema.snapshots, schema.models
            first = min([*lessons, number])
            empty = update(versions).where(versions.c.id.in_([*lessons, number]))
            connection.execute(empty.values(lesson=null()))
            later = select(versions.c.id).where(versions.c.model == name, versions.c.id >= first)
            connection.execute(delete(snapshots).where(snapshots.c.version.in_(later)))
            shadowed = update(models).where(models.c.name == name, models.c.shadow >= first)
            connection.execute(shadowed.values(shadow=None))
            begins = {"depth": 0, "operation": FORGET, "source": None}
            connection.execute(update(versions).where(versions.c.id == number).values(**begins))
            content = {"version": number, "content": model_bytes(detector)}
            connection.execute(insert(snapshots).values(**content))
            delete_rows(connection)

        # Judged and other rows are forgotten in turn; the last version deletes the rest.
        while learnt:
            lesson = learnt.pop()
            within = None if learnt else write
            self._ledger.forget(name, lesson, by=by, note="purged", within=within)
            if within is None:
                lessons.append(self._ledger.in_use(name)[0])
        if not done and lessons:
            self._ledger.revert(name, live, by=by, note="purged", within=write)
        elif not done:
            with self._store.writing() as connection:
                delete_rows(connection)
        self._ledger.forget_kept()
        self._alarms.forget_kept()
        self._store.scrub()
        return Purged(done[0], len(lessons))

    def _lessons(self, name: str, column: str, entity: str) -> tuple[list[int], list[Lesson]]:
        """All versions with rows of the entity, and what the live one has learnt of these rows.

        That is a lesson of judged rows, and one of others.
        """
        table = schema.versions
        line = set(self._ledger.lineage(self._ledger.in_use(name)[0]))
        numbers: list[int] = []
        learnt: dict[bool, list[tuple[Row, str]]] = {True: [], False: []}
        query = select(table).where(table.c.model == name).order_by(table.c.id)
        for version in self._store.rows(query):
            lesson = Lesson(**version.lesson or {"rows": [], "labels": [], "judged": False})
            if version.operation == RENAME:
                for pairs in learnt.values() if version.id in line else ():
                    pairs[:] = [(row, name_now(label, [lesson.labels])) for row, label in pairs]
                continue
            pairs = [
                pair
                for pair in zip(lesson.rows, lesson.labels, strict=True)
                if pair[0].get(column) is not None and str(pair[0][column])[:200] == entity
            ]
            if pairs:
                numbers.append(version.id)
            for pair in pairs if version.id in line else ():
                if version.operation == LEARN:
                    learnt[lesson.judged].append(pair)
                else:
                    learnt[lesson.judged].remove(pair)
        return numbers, [
            Lesson([row for row, _ in pairs], [label for _, label in pairs], judged=judged)
            for judged, pairs in learnt.items()
            if pairs
        ]
