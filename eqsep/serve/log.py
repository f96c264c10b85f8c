"""The log of models: versions, what each has learnt, and how they are written."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, case, insert, null, select, update

from eqsep.detector import Detector
from eqsep.persistence.files import model_bytes, model_of
from eqsep.serve import schema
from eqsep.serve.store import Missing, now

ADD, LEARN, FORGET, MERGE, REVERT = "add", "learn", "forget", "merge", "revert"
IMPORT = "import"  # what is merged: kept beside the log, and never live itself
KINDS = "kinds"  # among a model's settings: the kinds in the order in which they came

Row = dict[str, Any]


@dataclass(frozen=True)
class Lesson:
    """Labelled rows: what a version has learnt or forgotten.

    Attributes
    ----------
    rows : list of dict
    labels : list of str
        Kinds, or "normal".
    judged : bool
        Whether rows were judged because they raised an alarm: then none of them calibrates.
    """

    rows: list[Row]
    labels: list[str]
    judged: bool


@dataclass(frozen=True)
class Version:
    """An entry of a model's log.

    Attributes
    ----------
    id : int
    model : str
    parent : int or None
        The version that it was made of.
    operation : str
        "add", "learn", "forget", "merge" or "revert".
    by, at, note
        Who made it, when (seconds since 1970), and why.
    n_rows : int
        How many rows were learnt or forgotten.
    digest : str
        A hash of all that the detector holds then.
    source : int or None
        The version that was gone back to, or merged.
    warnings : tuple of str
        What the detector said when it was made; known to its maker alone.
    """

    id: int
    model: str
    parent: int | None
    operation: str
    by: str
    at: float
    note: str
    n_rows: int
    digest: str
    source: int | None = None
    warnings: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Change:
    """A version that is to be made."""

    operation: str
    by: str
    note: str = ""
    lesson: Lesson | None = None
    source: int | None = None


def line(connection: Connection, number: int) -> Iterator[Any]:
    """The entries that a version is made of, the last first; what was gone back behind is not."""
    at: int | None = number
    while at is not None:
        row = entry(connection, at)
        if row.operation == REVERT:
            at = row.source
            continue
        yield row
        at = row.parent


def lineage(connection: Connection, number: int) -> list[int]:
    """The numbers of these entries, the first one first, at once."""
    table = schema.versions
    columns = (table.c.id, table.c.parent, table.c.operation, table.c.source)
    there = select(*columns).where(table.c.id == number).cte(recursive=True)
    before = case((there.c.operation == REVERT, there.c.source), else_=there.c.parent)
    there = there.union(select(*columns).join(there, table.c.id == before))
    query = select(there.c.id).where(there.c.operation != REVERT).order_by(there.c.id)
    return list(connection.execute(query).scalars())  # what is before has a lower number


def entry(connection: Connection, number: int) -> Any:
    """What is written of a version."""
    row = connection.execute(select(schema.versions).where(schema.versions.c.id == number)).first()
    if row is None:
        raise Missing(f"There is no version {number}.")
    return row


def purged(connection: Connection, name: str) -> set[int]:
    """The versions of a model that cannot be had again: something that they are made of is gone."""
    table, snapshots = schema.versions, schema.snapshots
    mine = table.c.model == name
    whole = select(snapshots.c.version).join(table, table.c.id == snapshots.c.version).where(mine)
    kept = set(connection.execute(whole).scalars())
    columns = (table.c.id, table.c.parent, table.c.operation, table.c.source, table.c.depth)
    query = select(*columns, table.c.lesson.is_(null()).label("is_empty")).where(mine)
    found: set[int] = set()
    for row in connection.execute(query.order_by(table.c.id)):
        if row.operation == REVERT:
            is_gone = row.source in found
        elif row.depth == 0:
            is_gone = row.id not in kept
        else:
            is_gone = row.operation != MERGE and row.is_empty
            is_gone |= row.parent in found or row.source in found
        if is_gone:
            found.add(row.id)
    return found


def version_of(row: Any) -> Version:
    """The version of an entry."""
    return Version(
        *(row.id, row.model, row.parent, row.operation, row.by, row.at, row.note),
        n_rows=row.n_rows,
        digest=row.digest,
        source=row.source,
    )


def lesson_of(row: Any) -> Lesson | None:
    """What an entry has taught, if that is still there."""
    return None if row.lesson is None else Lesson(**row.lesson)


def values_of(
    change: Change, name: str, parent: int | None, learnt: str, *, depth: int
) -> dict[str, Any]:
    """A new entry; `depth` is how many operations the last kept model is away."""
    lesson = change.lesson
    return {
        "model": name,
        "parent": parent,
        "operation": change.operation,
        "lesson": None if lesson is None else dict(vars(lesson)),
        "source": change.source,
        "by": change.by,
        "at": now(),
        "note": change.note,
        "n_rows": 0 if lesson is None else len(lesson.rows),
        "digest": learnt,
        "depth": depth,
    }


def written(connection: Connection, values: dict[str, Any], snapshot: Detector | None) -> int:
    """Write a version, and the model file of one that is kept whole; its number."""
    done = connection.execute(insert(schema.versions).values(**values))
    number = int(done.inserted_primary_key[0])  # type: ignore[index]  # there is a primary key
    if snapshot is not None:
        kept = insert(schema.snapshots).values(version=number, content=model_bytes(snapshot))
        connection.execute(kept)
    return number


def replaced(connection: Connection, name: str, old: int, new: int) -> bool:
    """Whether a version could take the place of the live one that it was made of."""
    table = schema.models
    mine = (table.c.name == name) & (table.c.live == old)
    return bool(connection.execute(update(table).where(mine).values(live=new)).rowcount)


def placed(settings: dict[str, Any], kinds: Iterable[str]) -> dict[str, Any]:
    """Settings that remember the place of each kind: one that is gone keeps it for those after it.

    Examples
    --------
    >>> settings = placed(placed({}, ["leak", "spill", "flood"]), ["leak", "flood", "drought"])
    >>> settings["kinds"], placed(settings, ["leak", "frost"])["kinds"]
    (['leak', 'spill', 'flood', 'drought'], ['leak', 'frost'])
    """
    there, order = list(kinds), list(settings.get(KINDS, ()))
    while order and order[-1] not in there:
        order.pop()
    return settings | {KINDS: [*order, *(kind for kind in there if kind not in order)]}


def remembered(connection: Connection, name: str, kinds: Iterable[str]) -> None:
    """Write down the places of a model's kinds, where some are new."""
    table = schema.models
    settings = connection.execute(select(table.c.settings).where(table.c.name == name)).scalar_one()
    if set(kinds) - set(settings.get(KINDS, ())):
        mine = update(table).where(table.c.name == name)
        connection.execute(mine.values(settings=placed(settings, kinds)))


def content_of(connection: Connection, number: int) -> Detector:
    """The detector of an entry that is kept whole."""
    table = schema.snapshots
    content = connection.execute(select(table.c.content).where(table.c.version == number)).scalar()
    if content is None:
        raise Missing(
            f"The versions before {number} were purged: what they held cannot be had again."
        )
    detector: Detector = model_of(content)
    return detector
