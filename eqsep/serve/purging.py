"""Purging: forget what was learnt of an entity, and delete its rows."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, null, select, update

from eqsep.detector.model import Model
from eqsep.errors import UserError
from eqsep.serve import schema
from eqsep.serve.alarms import Alarms
from eqsep.serve.intake import run_columns
from eqsep.serve.ledger import (
    FORGET,
    LEARN,
    RENAME,
    Ledger,
    Lesson,
    NewVersion,
    Row,
    entity_column,
    write_file,
)
from eqsep.serve.people import audit_entry
from eqsep.serve.store import Store
from eqsep.serve.verdicts import name_now


@dataclass(frozen=True)
class Purged:
    """How many rows were deleted, and how many lessons with rows of the entity."""

    rows: int
    lessons: int


class Purging:
    """Deletes what a store holds of an entity, but not what the first model file has learnt."""

    def __init__(self, store: Store, ledger: Ledger, alarms: Alarms) -> None:
        self._store, self._ledger, self._alarms = store, ledger, alarms

    def purge(self, name: str, entity: str, *, by: str) -> Purged:
        """Forget and delete all rows of an entity; versions since its first lesson are gone."""
        live, _, settings = self._ledger.in_use(name)
        plan = self._ledger.model(live).plan
        column = entity_column(settings, plan)
        if column is None:
            raise UserError(f"The model {name!r} has no entity column: set one first.")
        is_run = run_columns(plan)[0] == column
        lessons, learnt = self._lessons(name, column, entity)
        done: list[int] = []

        def delete_rows(connection: Connection) -> None:
            rows, mine = schema.rows, {"model": name, "entity": entity}
            judged = schema.verdicts.c.row.in_(select(rows.c.id).filter_by(**mine))
            of_it = schema.deliveries.c.content["entity"].as_string() == entity
            connection.execute(delete(schema.exemptions).filter_by(**mine))
            connection.execute(delete(schema.deliveries).filter_by(model=name).where(of_it))
            connection.execute(delete(schema.verdicts).where(judged))
            runs = {"model": name, "name": entity} if is_run else {"model": name}  # else in windows
            connection.execute(delete(schema.runs).filter_by(**runs))
            done.append(int(connection.execute(delete(rows).filter_by(**mine)).rowcount))
            connection.execute(audit_entry(by, "purged", model=name, rows=done[0]))  # not of whom

        def write(connection: Connection, number: int, model: Model) -> None:
            """Delete lessons and the model files since the first of them; the log begins here."""
            versions, snapshots, models = schema.versions, schema.snapshots, schema.models
            first, its = min([*lessons, number]), versions.c.id
            later = select(its).where(versions.c.model == name, its >= first)
            shadowed = (models.c.name == name) & (models.c.shadow >= first)
            begins = {"depth": 0, "operation": FORGET, "source": None}
            for statement in (
                update(versions).where(its.in_([*lessons, number])).values(lesson=null()),
                delete(snapshots).where(snapshots.c.version.in_(later)),
                update(models).where(shadowed).values(shadow=None),
                update(versions).where(its == number).values(**begins),
            ):
                connection.execute(statement)
            write_file(connection, number, model)
            delete_rows(connection)

        # Judged and other rows are forgotten in turn; the last version deletes the rest.
        while learnt:
            lesson = learnt.pop()
            within = None if learnt else write
            self._ledger.append(name, NewVersion(FORGET, by, "purged", lesson), within=within)
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
        """The versions with rows of the entity, and what the live one has learnt of them."""
        table = schema.versions
        line = set(self._ledger.lineage(self._ledger.in_use(name)[0]))
        numbers: list[int] = []
        learnt: dict[bool, list[tuple[Row, str]]] = {True: [], False: []}
        query = select(table).where(table.c.model == name).order_by(table.c.id)
        for version in self._store.rows(query):
            lesson = Lesson(**version.lesson or vars(Lesson([], [], judged=False)))
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
