"""The ledger: models as logs of what they were taught, so that any version can be had again."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np
from sqlalchemy import Connection, insert, select, update

from eqsep.detector import Detector
from eqsep.errors import UserError
from eqsep.serve import schema
from eqsep.serve.log import (
    ADD,
    FORGET,
    IMPORT,
    KINDS,
    LEARN,
    MERGE,
    REVERT,
    Change,
    Lesson,
    Version,
    content_of,
    entry,
    lesson_of,
    line,
    lineage,
    placed,
    purged,
    remembered,
    replaced,
    values_of,
    version_of,
    written,
)
from eqsep.serve.people import noted
from eqsep.serve.store import Conflict, Missing, Store
from eqsep.serve.teaching import check_servable, digest, done

SNAPSHOT_EVERY = 25  # operations: so many are done again at most to have a version
_KEPT = 6  # detectors in memory
ATTEMPTS = 20  # to write before other writers


Within = Callable[[Connection, int, Detector], None]  # what else is written with a version


class Alongside(TypedDict, total=False):
    """What else is done in the transaction of a version, and the live one that was `seen`."""

    within: Within | None
    seen: int | None


class Moved(Conflict):
    """The live version is no longer the one that the caller has seen."""


@dataclass(frozen=True)
class Replay:
    """What comes out when a model's log is done again from its beginning.

    Attributes
    ----------
    versions : int
        How many were made again.
    same_bits : bool
        Whether every one of them holds the same bits as when it was first made.
    largest_difference : float
        Between a coefficient of the live detector and the one made again.
    """

    versions: int
    same_bits: bool
    largest_difference: float


class Ledger:
    """The models of a store, each with its log of versions.

    A version is an operation (learn, forget, merge, or going back) done to its parent, and nothing
    but that. Model files are kept of one in 25: others are made again from there, with the same
    bits. Writers on several machines go one after the other, as each names the version that it
    has seen as the live one.

    Examples
    --------
    >>> rows = [{"x": float(x)} for x in np.random.default_rng(0).normal(size=600)]
    >>> detector = Detector(bandwidth=1.0, n_landmarks=30, random_state=0).fit(rows)
    >>> ledger = Ledger(Store("sqlite://"))
    >>> first = ledger.add("pump", detector, by="ada")
    >>> second = ledger.learn("pump", Lesson([{"x": 7.0}], ["leak"], judged=True), by="ada")
    >>> ledger.detector(second.id).kinds_, ledger.live("pump").id == second.id
    (('leak',), True)
    >>> ledger.revert("pump", first.id, by="ada").digest == first.digest
    True
    >>> ledger.replay("pump").same_bits
    True
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._detectors: OrderedDict[int, Detector] = OrderedDict()
        self._previewed: tuple[int, Lesson, tuple[Detector, tuple[str, ...]]] | None = None
        self._lock, self._learning = threading.RLock(), threading.Lock()

    def names(self) -> list[str]:
        """The models that there are."""
        with self._store.reading() as connection:
            query = select(schema.models.c.name).order_by(schema.models.c.name)
            return list(connection.execute(query).scalars())

    def add(
        self, name: str, detector: Detector, *, by: str, settings: dict[str, Any] | None = None
    ) -> Version:
        """Keep a fitted detector as a model; its settings name the columns "entity" and "time"."""
        check_servable(name, detector)
        values = values_of(Change(ADD, by), name, None, digest(detector.model_), depth=0)
        with self._store.writing() as connection:
            same = select(schema.models.c.name).where(schema.models.c.name == name)
            if connection.execute(same).first():
                raise UserError(
                    f"There is a model {name!r} already: merge with it, or choose another name."
                )
            number = written(connection, values, detector)
            there = placed(settings or {}, detector.kinds_)
            connection.execute(insert(schema.models).values(name=name, live=number, settings=there))
            connection.execute(noted(by, ADD, model=name, version=number))
        self._keep(number, detector)
        return self.version(number)

    def settings(self, name: str) -> dict[str, Any]:
        """What was set for a model."""
        return {k: v for k, v in self._model(name).settings.items() if k != KINDS}

    def places(self, name: str) -> dict[str, int]:
        """The kinds of the live version, each with its place: a new one moves no other."""
        row = self._model(name)
        kinds = self.detector(row.live).kinds_
        order = placed(row.settings, kinds)[KINDS]
        return {kind: order.index(kind) for kind in sorted(kinds, key=order.index)}

    def set_settings(self, name: str, **changes: Any) -> None:
        """Change settings of a model; None takes one away."""
        with self._store.writing() as connection:
            table = schema.models
            row = connection.execute(select(table).where(table.c.name == name)).first()
            if row is None:
                raise _no_model(name)
            there = {k: v for k, v in (row.settings | changes).items() if v is not None}
            connection.execute(update(table).where(table.c.name == name).values(settings=there))

    def live(self, name: str) -> Version:
        """The version that raises alarms."""
        return self.version(self._model(name).live)

    def shadow(self, name: str) -> Version | None:
        """The version that scores beside it, and raises none."""
        number = self._model(name).shadow
        return None if number is None else self.version(number)

    def in_use(self, name: str) -> tuple[int, int | None, dict[str, Any]]:
        """The numbers of the live version and of the shadow, and the settings."""
        row = self._model(name)
        return row.live, row.shadow, row.settings

    def set_shadow(self, name: str, number: int | None) -> None:
        """Let a version score in the live one's shadow; None ends that."""
        if number is not None:
            self._own(name, number)
        with self._store.writing() as connection:
            table = schema.models
            connection.execute(update(table).where(table.c.name == name).values(shadow=number))

    def version(self, number: int) -> Version:
        """The version of a number."""
        with self._store.reading() as connection:
            return version_of(entry(connection, number))

    def versions(self, name: str, *, limit: int = 100) -> list[Version]:
        """The latest versions of a model, the newest first."""
        table = schema.versions
        mine = (table.c.model == name) & (table.c.operation != IMPORT)
        query = select(table).where(mine).order_by(table.c.id.desc()).limit(limit)
        with self._store.reading() as connection:
            return [version_of(row) for row in connection.execute(query)]

    def purged(self, name: str) -> set[int]:
        """The versions of a model that cannot be had again."""
        with self._store.reading() as connection:
            return purged(connection, name)

    def detector(self, number: int) -> Detector:
        """The detector of a version. It is shared: copy it before you change it."""
        with self._lock:
            if number not in self._detectors:
                self._keep(number, self._made(number))
            self._detectors.move_to_end(number)
            return self._detectors[number]

    def at_hand(self, number: int) -> Detector | None:
        """The detector of a version, if it is in memory."""
        with self._lock:
            return self._detectors.get(number)

    def learnt(self, number: int, lesson: Lesson) -> tuple[Detector, tuple[str, ...]]:
        """What a version would become by a lesson, and what is warned of; nothing is kept."""
        with self._learning:  # who applies it meanwhile waits, and need not do it again
            previewed, like, would = self._previewed or (None, None, None)
            if would is None or (previewed, like) != (number, lesson):
                would = done(self.detector(number), LEARN, lesson)
                self._previewed = number, lesson, would
            return would

    def learn(
        self,
        name: str,
        lesson: Lesson,
        *,
        by: str,
        note: str = "",
        **more: Unpack[Alongside],
    ) -> Version:
        """Teach the live version labelled rows."""
        return self._append(name, Change(LEARN, by, note, lesson), **more)

    def forget(
        self,
        name: str,
        lesson: Lesson,
        *,
        by: str,
        note: str = "",
        **more: Unpack[Alongside],
    ) -> Version:
        """Let the live version unlearn rows, with the labels that they were learnt with."""
        return self._append(name, Change(FORGET, by, note, lesson), **more)

    def merge(self, name: str, other: Detector, *, by: str, note: str = "") -> Version:
        """Take in what a detector with the same plan has learnt elsewhere."""
        self._model(name)
        with self._store.writing() as connection:
            values = values_of(Change(IMPORT, by), name, None, digest(other.model_), depth=0)
            number = written(connection, values, other)
        return self._append(name, Change(MERGE, by, note, source=number))

    def revert(
        self, name: str, number: int, *, by: str, note: str = "", **more: Unpack[Alongside]
    ) -> Version:
        """Go back to a version: the live one holds its bits again."""
        self._own(name, number)
        return self._append(name, Change(REVERT, by, note, source=number), **more)

    def lesson(self, number: int) -> Lesson | None:
        """What a version has learnt or forgotten."""
        with self._store.reading() as connection:
            return lesson_of(entry(connection, number))

    def lineage(self, number: int) -> list[int]:
        """The versions that a version is made of, the first one first.

        Those that were gone back behind are not among them.
        """
        with self._store.reading() as connection:
            return lineage(connection, number)

    def replay(self, name: str) -> Replay:
        """Do the log of the live version again from its beginning, without kept models between."""
        live = self._model(name).live
        with self._store.reading() as connection:
            entries = [entry(connection, number) for number in lineage(connection, live)]
            start = max(i for i, row in enumerate(entries) if _is_beginning(row))
            detector = content_of(connection, entries[start].id)
        same = digest(detector.model_) == entries[start].digest
        for row in entries[start + 1 :]:
            detector = self._next(detector, row)
            same &= digest(detector.model_) == row.digest
        difference = np.abs(detector.coef_ - self.detector(live).coef_).max(initial=0.0)
        return Replay(len(entries) - start, bool(same), float(difference))

    def _append(
        self,
        name: str,
        change: Change,
        *,
        within: Within | None = None,
        seen: int | None = None,
    ) -> Version:
        """Make a version of the live one, and let it be the live one; at once, or not at all."""
        for _ in range(ATTEMPTS):
            parent = self._model(name).live
            if seen is not None and parent != seen:
                raise Moved(f"Version {parent} of {name!r} is live now, not {seen}: look again.")
            detector, told = self._changed(parent, change)
            with self._store.writing() as connection:
                number = _written(connection, name, parent, change, detector)
                is_first = replaced(connection, name, parent, number)
                if not is_first:
                    connection.rollback()
                    continue
                remembered(connection, name, detector.kinds_)
                if within is not None:
                    within(connection, number, detector)
                else:
                    told_of = {"model": name, "version": number}
                    connection.execute(noted(change.by, change.operation, **told_of))
            self._keep(number, detector)
            return replace(self.version(number), warnings=told)
        raise Conflict(
            f"The model {name!r} was changed by others {ATTEMPTS} times meanwhile: nothing was "
            f"kept. Try again."
        )

    def _changed(self, parent: int, change: Change) -> tuple[Detector, tuple[str, ...]]:
        if change.operation == REVERT:
            return self.detector(change.source or 0), ()
        if change.operation == LEARN and change.lesson is not None:
            return self.learnt(parent, change.lesson)  # as it was previewed a moment ago
        more = change.lesson or self.detector(change.source or 0)
        return done(self.detector(parent), change.operation, more)

    def _made(self, number: int) -> Detector:
        """The detector of a version, from the nearest one that is at hand."""
        later: list[Any] = []
        with self._store.reading() as connection:
            for row in line(connection, number):
                if row.id in self._detectors:
                    detector = self._detectors[row.id]
                    break
                if row.depth == 0:
                    detector = content_of(connection, row.id)
                    break
                later.append(row)
        for row in reversed(later):
            detector = self._next(detector, row)
        return detector

    def _next(self, detector: Detector, row: Any) -> Detector:
        more = self.detector(row.source) if row.operation == MERGE else lesson_of(row)
        if more is None:
            raise Missing(f"Version {row.id} was purged: what it held cannot be had again.")
        return done(detector, row.operation, more)[0]

    def _keep(self, number: int, detector: Detector) -> None:
        with self._lock:
            self._detectors[number] = detector
            while len(self._detectors) > _KEPT:
                self._detectors.popitem(last=False)

    def forget_kept(self) -> None:
        """Let detectors in memory go, once others have changed what the store holds of them."""
        with self._lock:
            self._detectors.clear()
            self._previewed = None

    def _model(self, name: str) -> Any:
        with self._store.reading() as connection:
            query = select(schema.models).where(schema.models.c.name == name)
            row = connection.execute(query).first()
        if row is None:
            raise _no_model(name)
        return row

    def _own(self, name: str, number: int) -> None:
        version = self.version(number)
        if version.model != name or version.operation == IMPORT:
            raise Missing(f"Version {number} is not one of the model {name!r}.")


def _written(
    connection: Connection, name: str, parent: int, change: Change, detector: Detector
) -> int:
    """Write a version that a change has made of its parent; one in 25 is kept whole."""
    is_back = change.operation == REVERT
    depth = entry(connection, change.source or 0).depth if is_back else 1
    depth += 0 if is_back else entry(connection, parent).depth
    depth = 0 if depth >= SNAPSHOT_EVERY else depth
    values = values_of(change, name, parent, digest(detector.model_), depth=depth)
    return written(connection, values, None if is_back or depth else detector)


def _is_beginning(row: Any) -> bool:
    """Whether an entry is kept whole since nothing before it is there, or is there any more."""
    return row.operation == ADD or (row.operation in (LEARN, FORGET) and row.lesson is None)


def _no_model(name: str) -> Missing:
    return Missing(f"There is no model {name!r}.")
