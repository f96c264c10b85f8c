"""Purging: forget what was learnt of an entity, and delete its rows."""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, insert, null, select, update

from eqsep.detector import Detector
from eqsep.errors import UserError
from eqsep.persistence.files import model_bytes
from eqsep.serve import schema
from eqsep.serve.ledger import FORGET, LEARN, Ledger, Lesson, Row
from eqsep.serve.people import audit_entry
from eqsep.serve.runs import forget_runs, run_columns
from eqsep.serve.store import Store


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

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store, self._ledger = store, ledger

    def purge(self, name: str, entity: str, *, by: str) -> Purged:
        """Forget and delete all rows of an entity.

        Versions from its first lesson until now cannot be restored afterwards.
        """
        live, _, settings = self._ledger.in_use(name)
        column = settings.get("entity")
        if column is None:
            raise UserError(
                f"The model {name!r} has no column for the entity of a row: set its entity first."
            )
        lessons = self._lessons(name, column, entity)
        is_run = run_columns(self._ledger.detector(live).plan_)[0] == column
        done: list[int] = []

        def delete_rows(connection: Connection) -> None:
            done.append(_delete_rows(connection, name, entity, by))
            forget_runs(connection, name, entity if is_run else None)

        def write(connection: Connection, number: int, detector: Detector) -> None:
            table = schema.versions
            _delete_versions(connection, name, [*lessons, number])
            begins = {"depth": 0, "operation": FORGET, "source": None}  # nothing before is needed
            connection.execute(update(table).where(table.c.id == number).values(**begins))
            content = {"version": number, "content": model_bytes(detector)}
            connection.execute(insert(schema.snapshots).values(**content))
            delete_rows(connection)

        # Judged and other rows are forgotten in turn; the last version deletes the rest.
        learnt = self._learnt(live, column, entity)
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
        self._store.scrub()
        return Purged(sum(done), len(lessons))

    def _lessons(self, name: str, column: str, entity: str) -> list[int]:
        """All versions with rows of the entity in their lessons."""
        table = schema.versions
        query = select(table.c.id, table.c.lesson).where(table.c.model == name)
        return [
            row.id
            for row in self._store.rows(query.order_by(table.c.id))
            if row.lesson and any(_is_of(one, column, entity) for one in row.lesson["rows"])
        ]

    def _learnt(self, live: int, column: str, entity: str) -> list[Lesson]:
        """What the live version has learnt of the entity: judged rows, and others."""
        known: dict[bool, list[tuple[Row, str]]] = {True: [], False: []}
        for number in self._ledger.lineage(live):
            lesson = self._ledger.lesson(number)
            if lesson is None:
                continue
            operation = self._ledger.version(number).operation
            for pair in zip(lesson.rows, lesson.labels, strict=True):
                if not _is_of(pair[0], column, entity):
                    continue
                if operation == LEARN:
                    known[lesson.judged].append(pair)
                elif operation == FORGET:
                    known[lesson.judged].remove(pair)
        return [
            Lesson([row for row, _ in pairs], [label for _, label in pairs], judged=judged)
            for judged, pairs in known.items()
            if pairs
        ]


def _is_of(row: Row, column: str, entity: str) -> bool:
    return row.get(column) is not None and str(row[column])[:200] == entity


def _delete_versions(connection: Connection, name: str, numbers: list[int]) -> None:
    """Empty lessons, and delete the model files from the first of them on."""
    versions, snapshots, models = schema.versions, schema.snapshots, schema.models
    lessons = versions.c.id.in_(numbers)
    connection.execute(update(versions).where(lessons).values(lesson=null()))
    later = select(versions.c.id).where(versions.c.model == name, versions.c.id >= min(numbers))
    connection.execute(delete(snapshots).where(snapshots.c.version.in_(later)))
    shadowed = and_(models.c.name == name, models.c.shadow >= min(numbers))
    connection.execute(update(models).where(shadowed).values(shadow=None))


def _delete_rows(connection: Connection, name: str, entity: str, by: str) -> int:
    table = schema.rows
    mine = and_(table.c.model == name, table.c.entity == entity)
    judged = schema.verdicts.c.row.in_(select(table.c.id).where(mine))
    connection.execute(delete(schema.verdicts).where(judged))
    n_rows = int(connection.execute(delete(table).where(mine)).rowcount)
    connection.execute(audit_entry(by, "purged", model=name, rows=n_rows))  # without the entity
    return n_rows
