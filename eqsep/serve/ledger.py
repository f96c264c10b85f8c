"""The ledger: models as logs of what they were taught, so that any version can be restored."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Update, case, insert, null, select, update

from eqsep.detector import Detector, learning
from eqsep.detector.audit import rows_to_learn
from eqsep.detector.evidence import Evidence, gather
from eqsep.detector.learning import Learned
from eqsep.detector.model import Model
from eqsep.detector.plan import Plan
from eqsep.errors import UserError
from eqsep.labels import NORMAL
from eqsep.persistence.files import model_bytes, model_of, state_hash
from eqsep.serve import schema, texts
from eqsep.serve.people import audit_entry
from eqsep.serve.store import Conflict, Missing, Store, now

ADD, LEARN, FORGET, MERGE, REVERT = "add", "learn", "forget", "merge", "revert"
RENAME = "rename"  # its lesson has no rows, and the old and the new name as labels
IMPORT = "import"  # what is merged: kept outside the log, and never live itself
_LOOKED_AT = 1_000  # stored rows that show which columns there are
KINDS = "kinds"  # among a model's settings: the kinds in the order in which they came
Row = dict[str, Any]
SNAPSHOT_EVERY = 25  # versions, of which one gets a model file
_MODELS_IN_MEMORY = 6
ATTEMPTS = 20  # to write before other writers
Within = Callable[[Connection, Any, Any], None]  # writes more with a version and its model


@dataclass(frozen=True)
class Lesson:
    """Labelled rows: what a version has learnt or forgotten."""

    rows: list[Row]
    labels: list[str]  # kinds, or "normal"
    # whether rows were judged because they raised an alarm: then none of them calibrates
    judged: bool


@dataclass(frozen=True)
class Version:
    """An entry of a model's log."""

    id: int
    model: str
    parent: int | None  # the version that it was made of
    operation: str  # "add", "learn", "forget", "merge", "rename" or "revert"
    by: str  # who made it, when (seconds since 1970), and why
    at: float
    note: str
    n_rows: int  # how many rows were learnt or forgotten
    digest: str  # a hash of all that the model has learnt
    source: int | None = None  # the version that was reverted to, or merged
    # of the model when the version was made; not stored
    warnings: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class NewVersion:
    """A version to be made."""

    operation: str
    by: str
    note: str = ""
    lesson: Lesson | None = None
    source: int | None = None
    digest: str = ""  # of what it makes, where that is known


Planned = NewVersion | Callable[[int], NewVersion | None]  # it may depend on the live version


def entity_column(settings: dict[str, Any], plan: Plan) -> str | None:
    """The column that names the entity of a row: the one that was set, else that of groups."""
    grouping = plan.holdout.grouping
    return settings.get("entity") or (None if grouping is None else grouping.columns[0]) or None


def lineage(connection: Connection, number: int) -> list[int]:
    """The versions that a version is made of, oldest first; those reverted are left out."""
    table = schema.versions
    columns = (table.c.id, table.c.parent, table.c.operation, table.c.source)
    there = select(*columns).where(table.c.id == number).cte(recursive=True)
    before = case((there.c.operation == REVERT, there.c.source), else_=there.c.parent)
    there = there.union(select(*columns).join(there, table.c.id == before))
    query = select(there.c.id).where(there.c.operation != REVERT).order_by(there.c.id)
    return list(connection.execute(query).scalars())  # a parent has a lower number


def _entry(connection: Connection, number: int) -> Any:
    row = connection.execute(select(schema.versions).where(schema.versions.c.id == number)).first()
    if row is None:
        raise Missing(f"Version {number} does not exist.")
    return row


def _lesson(row: Any) -> Lesson | None:
    return None if row.lesson is None else Lesson(**row.lesson)


def _write(
    connection: Connection, name: str, new: NewVersion, model: Model, parent: int | None = None
) -> int:
    """Write a version and return its number; the first and every 25th also get a model file."""
    depth, lesson, table = 0, new.lesson, schema.versions
    if new.operation == REVERT:
        depth = _entry(connection, new.source or 0).depth
    elif parent is not None:
        depth = (_entry(connection, parent).depth + 1) % SNAPSHOT_EVERY
    values = {**vars(new), "model": name, "parent": parent, "at": now(), "depth": depth}
    values |= {"lesson": lesson and vars(lesson), "n_rows": len(lesson.rows) if lesson else 0}
    values["digest"] = new.digest or digest(model)
    made = insert(table).values(**values).returning(table.c.id)
    number = int(connection.execute(made).scalar_one())
    if not depth and new.operation != REVERT:
        write_file(connection, number, model)
    return number


def write_file(connection: Connection, number: int, model: Model) -> None:
    """Write the model file of a version."""
    content = model_bytes(Detector.of(model))
    connection.execute(insert(schema.snapshots).values(version=number, content=content))


def _placed(settings: dict[str, Any], kinds: Iterable[str]) -> dict[str, Any]:
    """Settings with the place of each kind: one that is gone keeps its place before later ones."""
    there, order = list(kinds), list(settings.get(KINDS, ()))
    while order and order[-1] not in there:
        order.pop()
    return settings | {KINDS: [*order, *(kind for kind in there if kind not in order)]}


def _renamed(
    settings: dict[str, Any], renames: Iterable[Sequence[str]], kinds: Collection[str]
) -> dict[str, Any]:
    """Settings where kinds keep their places under new names, with the kinds that there are."""
    order = list(settings.get(KINDS, ()))
    for old, new in renames:
        if old in order and new not in order and old not in kinds:
            order[order.index(old)] = new
    return settings | {KINDS: order}


def _settings(connection: Connection, name: str) -> dict[str, Any]:
    query = select(schema.models.c.settings).where(schema.models.c.name == name)
    return dict(connection.execute(query).scalar_one())


def _changed(name: str, **values: Any) -> Update:
    return update(schema.models).where(schema.models.c.name == name).values(**values)


def _read_file(connection: Connection, number: int) -> Model:
    """The model in the model file of a version."""
    table = schema.snapshots
    content = connection.execute(select(table.c.content).where(table.c.version == number)).scalar()
    if content is None:
        raise Missing(f"The versions before {number} were purged: they cannot be restored.")
    model: Model = model_of(content, scoring=True)
    return model


def digest(model: Model) -> str:
    """A hash of all that a model has learnt: equal for equal bits."""
    return state_hash(model.state_without_judges())


def _labels_for(model: Model, labels: Sequence[str]) -> list[Any]:
    """Labels as the model knows them: its own normal one, or its numbers."""
    known = model.evidence.labels.reader
    if known is None or known.by_name:
        normal = NORMAL if known is None else known.classes[0]
        return [normal if label == NORMAL else label for label in labels]
    numbers = {NORMAL: known.classes[0]} | {str(kind): kind for kind in known.kinds}
    for label in labels:
        if label not in numbers:
            raise UserError(
                f"This model was fitted with numbers as labels and knows only {sorted(numbers)}: "
                f"it cannot learn {label!r}. Fit it again with names of kinds as labels."
            )
    return [numbers[label] for label in labels]


def apply(model: Model, operation: str, more: Lesson | Model) -> Learned:
    """What an operation makes of a model."""
    if isinstance(more, Model):
        return learning.merge(model, more)
    if operation == RENAME:
        return learning.rename(model, *more.labels)
    rows, labels = rows_for(model, more.rows), _labels_for(model, more.labels)
    if operation == LEARN:
        return learning.learn(model, rows, labels, judged=more.judged)
    left = learning.forget(model, rows, labels, judged=more.judged)
    if left is None:
        raise UserError("The model would forget all rows that it has learnt.")
    return left


def messages(learned: Learned) -> tuple[str, ...]:
    """What was found, each message once."""
    return tuple(dict.fromkeys(str(finding.warning()) for finding in learned.findings))


def learnt_from(model: Model, lesson: Lesson) -> Evidence:
    """What a lesson adds to the evidence of a model."""
    rows, labels = rows_for(model, lesson.rows), _labels_for(model, lesson.labels)
    return gather(model.plan, *rows_to_learn(model, rows, labels), judged=lesson.judged)


def rows_for(model: Model, rows: list[Row]) -> list[Any]:
    """Rows without the columns that the model does not know."""
    plan = model.plan
    names, grouping = [*plan.table_columns], plan.holdout.grouping
    if plan.encoder.names is None:  # fitted to an array
        return [[row.get(name) for name in names] for row in rows]
    known = {*names, *(() if grouping is None else grouping.columns)}
    if plan.windows is not None:
        known |= {*plan.windows.added}
        if len({plan.windows.added[0] in row for row in rows}) > 1:
            raise UserError("Expected windows for every row, or for none if the runs are whole.")
    if all(row.keys() <= known for row in rows):
        return rows
    return [{name: value for name, value in row.items() if name in known} for row in rows]


def _model_in(detector: object) -> Model:
    """The model of a fitted detector; refuses anything else."""
    if not isinstance(detector, Detector) or not hasattr(detector, "model_"):
        kind = type(detector).__name__
        raise UserError(f"Expected a fitted Detector, got {kind}: fit one with eqsep fit.")
    return detector.model_


def _check_servable(name: str, model: Model) -> None:
    """Refuse a name that a model cannot have, and a model that cannot score single rows."""
    if texts.name(name, what="A model name") != name or "/" in name or name in (".", ".."):
        raise texts.Invalid(
            f"{name!r} cannot be a model name: it must not contain a slash, begin or end with a "
            f"space, or be a dot."
        )
    grouping = model.plan.holdout.grouping
    if model.plan.windows is not None and grouping is not None and grouping.columns[0] == "":
        raise UserError(
            "This model takes windows run by run, but its groups were not a column when it was "
            "fitted, so rows cannot say which run they belong to. Fit it with groups='COLUMN'."
        )


def _reads(model: Model) -> dict[str, str | None]:
    """The columns of a model, and as what each is read."""
    learnt = model.plan.table_columns
    return {name: None if column is None else column.reads for name, column in learnt.items()}


@dataclass(frozen=True)
class Replay:
    """The result of repeating a model's log from its beginning."""

    versions: int  # how many were repeated
    same_bits: bool  # whether each of them has the same bits as at first
    largest_difference: float  # between coefficients of the live model and of the repeated one


@dataclass(frozen=True)
class _Lecture:
    """A lesson that a version is taught, perhaps by another thread."""

    number: int
    lesson: Lesson
    learned: Future[Learned] = field(default_factory=Future, compare=False)


class Ledger:
    """The models of a store: each version is an operation on its parent, and can be restored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._models: OrderedDict[int, Model] = OrderedDict()
        self._lecture: _Lecture | None = None  # the latest
        self._lock = threading.Lock()
        self._publishing = threading.RLock()
        self._restoring: dict[int, Future[Model]] = {}  # versions, each by one thread

    def names(self) -> list[str]:
        """The names of the models."""
        query = select(schema.models.c.name).order_by(schema.models.c.name)
        return [row.name for row in self._store.rows(query)]

    def add(
        self, name: str, detector: Detector, *, by: str, settings: dict[str, Any] | None = None
    ) -> Version:
        """Add a fitted detector as a model; its settings name the columns "entity" and "time"."""
        model = _model_in(detector)
        _check_servable(name, model)
        with self._store.writing() as connection:
            same = select(schema.models.c.name).where(schema.models.c.name == name)
            if connection.execute(same).first():
                raise UserError(f"A model {name!r} already exists: merge, or choose another name.")
            number = _write(connection, name, NewVersion(ADD, by), model)
            there = _placed(settings or {}, model.kinds)
            connection.execute(insert(schema.models).values(name=name, live=number, settings=there))
            connection.execute(audit_entry(by, ADD, model=name, version=number))
        self._keep(number, model)
        return self.version(number)

    def added(self, name: str) -> Version:
        """The latest version that came from a file, not from what was learnt here."""
        table = schema.versions.c
        return self._versions(table.model == name, table.operation == ADD, limit=1)[0]

    def take(self, name: str, detector: Detector, *, by: str) -> Version:
        """Make another fitted detector live in the place of a model, whose log `revert` finds."""
        model = _model_in(detector)
        _check_servable(name, model)
        if _reads(model) != _reads(self.live_model(name)):
            raise UserError(f"The columns of the file differ from {name!r}: use another name.")
        with self._store.writing() as connection:
            number = _write(connection, name, NewVersion(ADD, by, "taken from its file"), model)
            placed = _placed(_settings(connection, name), model.kinds)
            connection.execute(_changed(name, live=number, settings=placed))
            connection.execute(audit_entry(by, "take", model=name, version=number))
        self._keep(number, model)
        return self.version(number)

    def settings(self, name: str) -> dict[str, Any]:
        """The settings of a model."""
        return {k: v for k, v in self._row(name).settings.items() if k != KINDS}

    def places(self, name: str) -> dict[str, int]:
        """The kinds of the live version, each with its place, which never changes."""
        row = self._row(name)
        kinds = self.model(row.live).kinds
        order = _placed(row.settings, kinds)[KINDS]
        return {kind: order.index(kind) for kind in sorted(kinds, key=order.index)}

    def set_settings(self, name: str, **changes: str | float | None) -> None:
        """Change settings of a model; None removes one."""
        self._row(name)
        changes = {k: texts.value(v) if isinstance(v, str) else v for k, v in changes.items()}
        with self._store.writing() as connection:
            there = _settings(connection, name) | changes
            there = {key: value for key, value in there.items() if value is not None}
            connection.execute(_changed(name, settings=there))

    def stored_columns(self, name: str) -> list[str]:
        """The columns that the newest stored rows have."""
        table = schema.rows.c
        query = select(table.row).where(table.model == name).order_by(table.id.desc())
        rows = self._store.rows(query.limit(_LOOKED_AT))
        return sorted({column for (row,) in rows for column in row})

    def live(self, name: str) -> Version:
        """The version that raises alarms."""
        return self.version(self._row(name).live)

    def live_model(self, name: str) -> Model:
        """The model of that version."""
        return self.model(self._row(name).live)

    def shadow(self, name: str) -> Version | None:
        """The version that also scores, but raises no alarms."""
        number = self._row(name).shadow
        return None if number is None else self.version(number)

    def in_use(self, name: str) -> tuple[int, int | None, dict[str, Any]]:
        """The numbers of the live and the shadow version, and the settings."""
        row = self._row(name)
        return row.live, row.shadow, row.settings

    def set_shadow(self, name: str, number: int | None) -> None:
        """Let a version score as a shadow of the live one; None ends that."""
        if number is not None:
            self._own(name, number)
        self._store.write(_changed(name, shadow=number))

    def version(self, number: int) -> Version:
        """A version by its number."""
        found = self._versions(schema.versions.c.id == number)
        if not found:
            raise Missing(f"Version {number} does not exist.")
        return found[0]

    def versions(self, name: str, *, limit: int = 100) -> list[Version]:
        """The latest versions of a model, the newest first."""
        table = schema.versions.c
        return self._versions(table.model == name, table.operation != IMPORT, limit=limit)

    def _versions(self, *where: ColumnElement[bool], limit: int | None = None) -> list[Version]:
        return self._store.newest(Version, schema.versions, *where, limit=limit)

    def purged(self, name: str) -> set[int]:
        """The versions of a model that cannot be restored: something they are made of is gone."""
        table, snapshots = schema.versions, schema.snapshots
        mine = table.c.model == name
        files = select(snapshots.c.version).join(table, table.c.id == snapshots.c.version)
        columns = (table.c.id, table.c.parent, table.c.operation, table.c.source, table.c.depth)
        query = select(*columns, table.c.lesson.is_(null()).label("is_empty")).where(mine)
        kept = {row.version for row in self._store.rows(files.where(mine))}
        gone: set[int] = set()
        for row in self._store.rows(query.order_by(table.c.id)):
            is_gone = row.source in gone
            if row.operation != REVERT and row.depth == 0:
                is_gone = row.id not in kept
            elif row.operation != REVERT:
                is_gone |= row.parent in gone or (row.operation != MERGE and row.is_empty)
            gone |= {row.id} if is_gone else set()
        return gone

    def model(self, number: int) -> Model:
        """The model of a version."""
        found = self.at_hand(number)
        if found is None:
            with self._publishing:  # once it is over, what is live is in memory
                pass
            found = self._restored(number)
        return found

    def at_hand(self, number: int) -> Model | None:
        """The model of a version, if it is in memory."""
        with self._lock:
            if number in self._models:
                self._models.move_to_end(number)
            return self._models.get(number)

    def learnt(self, number: int, lesson: Lesson) -> Learned:
        """What a lesson would make of a version; no version is made.

        Of the latest lesson it is remembered: a verdict learns nothing that its preview has learnt.
        """
        asked = _Lecture(number, lesson)
        with self._lock:
            lecture = self._lecture
            if lecture is None or lecture != asked:
                lecture = self._lecture = asked
        if lecture is asked:  # else another thread learns it, or has done so
            try:
                asked.learned.set_result(apply(self.model(number), LEARN, lesson))
            except BaseException as error:
                asked.learned.set_exception(error)
                with self._lock:
                    self._lecture = None if self._lecture is asked else self._lecture
        return lecture.learned.result()

    def learn(self, name: str, lesson: Lesson, *, by: str, note: str = "") -> Version:
        """Teach the live version labelled rows."""
        return self.append(name, NewVersion(LEARN, by, note, lesson))

    def rename(self, name: str, old: str, new: str, *, by: str) -> Version:
        """Give a kind another name; if that is the name of another kind, both become one."""
        lesson, kinds = Lesson([], [old, new], judged=False), self.live_model(name).kinds
        if new == old and old in kinds:
            raise UserError("That is its name already.")
        note = f"merged {old} into {new}" if new in kinds else f"{old} is now {new}"
        return self.append(name, NewVersion(RENAME, by, note, lesson))

    def renames(self, number: int, *, since: int) -> list[list[str]]:
        """The old and the new names of kinds that a version has renamed after another one."""
        table = schema.versions
        later = [one for one in self.lineage(number) if one > since]
        mine = table.c.id.in_(later) & (table.c.operation == RENAME)
        query = select(table.c.lesson).where(mine).order_by(table.c.id)
        return [row.lesson["labels"] for row in self._store.rows(query)]

    def merge(self, name: str, other: Detector, *, by: str) -> Version:
        """Merge a detector with the same plan that has learnt elsewhere."""
        self._row(name)
        model = _model_in(other)
        with self._store.writing() as connection:
            number = _write(connection, name, NewVersion(IMPORT, by), model)
        return self.append(name, NewVersion(MERGE, by, source=number))

    def revert(
        self, name: str, number: int, *, by: str, note: str = "", within: Within | None = None
    ) -> Version:
        """Go back to a version, bit for bit."""
        self._own(name, number)
        return self.append(name, NewVersion(REVERT, by, note, source=number), within=within)

    def lesson(self, number: int) -> Lesson | None:
        """What a version has learnt or forgotten."""
        with self._store.reading() as connection:
            return _lesson(_entry(connection, number))

    def lineage(self, number: int) -> list[int]:
        """The versions that a version is made of, oldest first; those reverted are left out."""
        with self._store.reading() as connection:
            return lineage(connection, number)

    def replay(self, name: str) -> Replay:
        """Repeat the log of the live version from its beginning, using no later model files."""
        live = self._row(name).live
        with self._store.reading() as connection:
            entries = [_entry(connection, number) for number in lineage(connection, live)]
            # nothing before a model that was added, or before the last purge, is needed
            is_first = [row.operation != MERGE and row.lesson is None for row in entries]
            start = int(np.flatnonzero(is_first)[-1])
            model = _read_file(connection, entries[start].id)
        same = digest(model) == entries[start].digest
        for row in entries[start + 1 :]:
            model = self._next(model, row)
            same &= digest(model) == row.digest
        coef, again = (one.score.kernel.coef for one in (self.model(live), model))
        difference = np.abs(coef - again).max(initial=0.0)
        return Replay(len(entries) - start, bool(same), float(difference))

    def append(self, name: str, planned: Planned, *, within: Within | None = None) -> Version:
        """Make a version of the live one, if one is planned, and make it live."""
        for _ in range(ATTEMPTS):
            parent = self._row(name).live
            new = planned(parent) if callable(planned) else planned
            if new is None:
                with self._store.writing() as connection:
                    if within is not None:
                        within(connection, None, None)
                return self.version(parent)
            if new.operation == REVERT:
                learned = Learned(self.model(new.source or 0))
            elif new.operation == LEARN and new.lesson is not None:
                learned = self.learnt(parent, new.lesson)  # perhaps previewed before
            else:
                more = new.lesson or self.model(new.source or 0)
                learned = apply(self.model(parent), new.operation, more)
            renames, warned = self._renaming(parent, new), messages(learned)
            model = learned.model  # the first row that it names, and its hash, take it long
            model.judge(model.plan.kernel.landmarks[:1], threshold=-np.inf)
            new = replace(new, digest=digest(model))
            with self._publishing:  # those who see that it is live find it in memory
                with self._store.writing() as connection:
                    number = _write(connection, name, new, model, parent)
                    made_live = _changed(name, live=number).where(schema.models.c.live == parent)
                    if not connection.execute(made_live).rowcount:
                        connection.rollback()  # somebody else was first
                        continue
                    before = _settings(connection, name)
                    settings = _renamed(before, renames, model.kinds)
                    is_moved = settings[KINDS] != list(before.get(KINDS, ()))
                    if is_moved or set(model.kinds) - set(settings[KINDS]):
                        placed = _placed(settings, model.kinds)
                        connection.execute(_changed(name, settings=placed))
                    if within is not None:
                        within(connection, number, model)
                    else:
                        what: dict[str, Any] = {"model": name, "version": number}
                        if new.operation == RENAME:
                            what["note"] = new.note
                        connection.execute(audit_entry(new.by, new.operation, **what))
                self._keep(number, model)
            return replace(self.version(number), warnings=warned)
        raise Conflict(
            f"Others changed the model {name!r} {ATTEMPTS} times in the meantime, so nothing was "
            f"saved. Try again."
        )

    def _renaming(self, parent: int, made: NewVersion) -> list[Sequence[str]]:
        """The names that a version replaces in its parent, each with the new one."""
        if made.operation == RENAME and made.lesson is not None:
            return [made.lesson.labels]
        if made.operation != REVERT:
            return []
        undone = [(new, old) for old, new in reversed(self.renames(parent, since=0))]
        return [*undone, *self.renames(made.source or 0, since=0)]

    def _restored(self, number: int) -> Model:
        """The model of a version: from memory, or made once, for all who ask for it meanwhile."""
        with self._lock:
            if number in self._models:
                return self._models[number]
            is_first = number not in self._restoring
            restored = self._restoring.setdefault(number, Future())
        if is_first:
            try:
                model = self._made(number)
                self._keep(number, model)
                restored.set_result(model)
            except BaseException as error:
                restored.set_exception(error)
            finally:
                with self._lock:
                    del self._restoring[number]
        return restored.result()

    def _made(self, number: int) -> Model:
        """The model of a version, from the nearest one in memory or in a model file."""
        later: list[Any] = []
        with self._store.reading() as connection:
            for before in reversed(lineage(connection, number)):
                row = _entry(connection, before)
                kept = self.at_hand(before)
                if kept is not None or row.depth == 0:
                    model = _read_file(connection, before) if kept is None else kept
                    break
                later.append(row)
        for row in reversed(later):
            model = self._next(model, row)
        return model

    def _next(self, model: Model, row: Any) -> Model:
        more = self._restored(row.source) if row.operation == MERGE else _lesson(row)
        if more is None:
            raise Missing(f"Version {row.id} was purged: it cannot be restored.")
        return apply(model, row.operation, more).model

    def _keep(self, number: int, model: Model) -> None:
        with self._lock:
            self._models[number] = model
            while len(self._models) > _MODELS_IN_MEMORY:
                self._models.popitem(last=False)

    def forget_kept(self) -> None:
        """Drop models from memory, once the store no longer holds what they know."""
        with self._lock:
            self._models.clear()
            self._lecture = None

    def _row(self, name: str) -> Any:
        row = self._store.first(select(schema.models).where(schema.models.c.name == name))
        if row is None:
            raise Missing(f"Model {name!r} does not exist.")
        return row

    def _own(self, name: str, number: int) -> None:
        version = self.version(number)
        if version.model != name or version.operation == IMPORT:
            raise Missing(f"Version {number} does not belong to the model {name!r}.")
