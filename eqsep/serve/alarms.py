"""Alarms as people see them: scores and reasons, similar alarms, and what to judge next."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sqlalchemy import (
    ColumnElement,
    Dialect,
    Select,
    String,
    and_,
    bindparam,
    cast,
    func,
    select,
    update,
)

from eqsep.detector.model import Model
from eqsep.detector.plan import Plan
from eqsep.errors import UserError
from eqsep.evaluation.promises import Share
from eqsep.labels import NORMAL, OR, UNSEEN
from eqsep.serve import schema, texts
from eqsep.serve.ledger import Ledger, Row, rows_for
from eqsep.serve.store import Missing, Store, columns_of, now
from eqsep.serve.texts import Asked, Text

OPEN, UNSURE, JUDGED = "open", "unsure", "judged"  # states of a row
EXEMPT = "exempt"  # another one: an alarm that an exemption keeps out of the inbox
_STATES = (OPEN, UNSURE, JUDGED, EXEMPT)
REOPENED = {"state": OPEN, "exemption": None, "now_version": 0}  # to be scored again
TRUE, FALSE = "true", "false alarm"  # verdicts
State = Literal["open", "unsure", "judged", "cleared", "quiet", "exempt"]  # asked for
Word = Literal["true", "false alarm", "expected", "unsure"]  # a verdict
_RESERVED_NAMES = (NORMAL, UNSEEN, *get_args(Word)[1:])  # names that no kind can have
MISSING = "missing"  # shown in place of a missing value
_BOOLEANS = {"true": ("true", "1"), "false": ("false", "0")}  # as databases have them in JSON
ALIKE = 0.7  # the least product of two directions for alarms to look alike
_DIRECTIONS_IN_MEMORY = 6_000  # directions in memory
_MAX_ROWS_COMPARED = 2_000  # rows that are compared with each other
_STANDING = 30_000  # rows that nobody has judged and that each version scores: the newest
AT_ONCE = 1_000  # rows that are read together, so that nobody waits for long
PIECE = 250  # rows that are scored and written again, before others may write
_ONE_ROW = update(schema.rows).where(schema.rows.c.id == bindparam("number"))
_REASONS = 8
_ALARMS_EXPLAINED = 5  # alarms of a group that are explained at once
RANDOM = "picked at random from quiet rows, to measure how many anomalies are missed"
NEAR = "among the highest scores of quiet rows"
DOUBTED = 0.9  # probabilities of names below this are worth a verdict
BETWEEN = "the name {kind} is in doubt: a verdict would settle it"


@dataclass(frozen=True)
class Said:
    """What a version says about a row."""

    version: int
    score: float
    p_value: float
    alarm: bool
    kind: str
    kind_probability: float | None = None  # None where it is not known


@dataclass(frozen=True)
class Verdict:
    """What somebody has decided about a row."""

    id: int
    row: int
    verdict: str  # {"true", "false alarm", "expected", "unsure"}
    kind: str | None  # of a true alarm
    note: str
    by: str
    at: float  # seconds since 1970
    version: int | None  # that has learnt it; None where it teaches nothing
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
    """A stored row: one that raised an alarm, or one of the random share that did not."""

    id: int
    model: str
    at: float  # when it came, in seconds since 1970
    row: Row  # as it came
    entity: str | None  # its card, machine or host
    said: Said  # when it came
    now: Said  # by the live version, as of the last refresh
    shadow_score: float | None
    drawn: bool  # whether it was drawn at random to be judged
    state: str  # {"open", "unsure", "judged", "exempt"}
    assignee: str | None
    note: str
    reasons: dict[str, Any] | None  # None until somebody asks
    proposal: Proposal | None = None  # by a program: it does nothing until a person gives it
    group_name: str | None = None  # of the group that it was in when somebody named it
    verdict: Verdict | None = None  # that stands


class Filter(Asked):
    """Which rows are asked for."""

    # "cleared" rows raised an alarm and no longer would, "quiet" ones never did
    state: State = "open"
    kind: Text | None = None  # the first name of a row: "a" finds "a" and "a or b", not "b or a"
    entity: Text | None = None
    assignee: Text | None = None  # "" is nobody
    min_score: float | None = None
    since: float | None = None  # in seconds since 1970, as is `until`
    until: float | None = None
    column: Text | None = None  # rows with this value in this column; "missing" finds none
    value: Text | None = None
    order: Literal["at", "score"] = "at"  # newest or highest first

    def conditions(self) -> list[ColumnElement[bool]]:
        """The same in SQL."""
        table = schema.rows.c
        found = [table.state == (self.state if self.state in _STATES else OPEN)]
        if self.state in (OPEN, "cleared", "quiet"):
            found.append(table.now_alarm if self.state == OPEN else ~table.now_alarm)
        if self.state in ("cleared", "quiet"):
            found.append(table.alarm if self.state == "cleared" else ~table.alarm)
        if self.kind:
            several = table.now_kind.startswith(self.kind + OR, autoescape=True)
            found.append((table.now_kind == self.kind) | several)
        if self.entity:
            found.append(table.entity == self.entity)
        if self.assignee is not None:
            found.append(table.assignee.is_not_distinct_from(self.assignee or None))
        bounds = [(table.now_score.__ge__, self.min_score), (table.at.__ge__, self.since)]
        bounds.append((table.at.__lt__, self.until))
        found += [holds(bound) for holds, bound in bounds if bound is not None]
        if bool(self.column) != (self.value is not None):
            raise UserError("To filter by a value, choose both a column and a value.")
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
    """Open alarms of no seen kind that look alike, the highest first."""

    alarms: list[Alarm]
    columns: list[str]  # those that add most to the scores of the first five
    name: str | None = None  # that somebody gave it


def checked_name(text: str, *, what: str) -> str:
    """The name of a kind or of a group as it is stored, which may become a kind's."""
    found, words = (
        texts.name(text, what=what[0].upper() + what[1:], most=texts.MOST_KIND),
        _RESERVED_NAMES,
    )
    if found.casefold() in words or OR in found:
        raise texts.Invalid(
            f"{found!r} cannot be {what}: {', '.join(words)}, and names with the word "
            f"{OR.strip()!r} between words, have other meanings. Choose another."
        )
    return found


def first_name(kind: str) -> str:
    """The most likely of several names."""
    return kind.split(OR)[0]


def _holds(column: str, value: str) -> ColumnElement[bool]:
    """Whether rows have a value in a column, however the database writes numbers."""
    if '"' in column:  # a path in SQLite cannot name it
        raise UserError(f"Cannot filter by a column with a quotation mark in its name: {column}.")
    there = cast(schema.rows.c.row[column].as_string(), String)
    if value == MISSING:
        return there.is_(None)
    texts = {value, *_BOOLEANS.get(value.lower(), ())}
    with suppress(ValueError):
        texts |= {repr(float(value)), f"{float(value):.15g}"}
    return there.in_(texts)


def _alarm(row: Any, verdict: Verdict | None) -> Alarm:
    values: dict[str, Any] = {f.name: getattr(row, f.name, None) for f in fields(Alarm)}
    for name, prefix in (("said", ""), ("now", "now_")):
        said = {field.name: getattr(row, prefix + field.name) for field in fields(Said)}
        values[name] = Said(**said)
    values["proposal"] = None if row.proposal is None else Proposal(**row.proposal)
    return Alarm(**values | {"verdict": verdict})


class EncodingCache:
    """Stored rows as a model encodes them, cached: what it learns changes nothing of that."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._plans: dict[str, Plan] = {}
        self._rows: dict[str, dict[int, np.ndarray]] = {}
        self._lock = threading.Lock()

    def rows(self, name: str, model: Model, numbers: Sequence[int]) -> tuple[list[int], np.ndarray]:
        """The rows with these numbers that are stored, and their numbers."""
        with self._lock:
            kept = self._kept(name, model)
            known = {number: kept[number] for number in numbers if number in kept}
        new = [number for number in numbers if number not in known]
        for start in range(0, len(new), AT_ONCE):
            query = select(schema.rows.c.id, schema.rows.c.row)
            found = self._store.rows(query.where(_among(new[start : start + AT_ONCE])))
            encoded = model.plan.encode(rows_for(model, [row.row for row in found]))
            read = dict(zip((row.id for row in found), encoded, strict=True))
            self.keep(name, model, read)
            known |= read
        there = [number for number in numbers if number in known]
        width = len(model.plan.encoder.counted)
        return there, np.reshape([known[number] for number in there], (-1, width))

    def keep(self, name: str, model: Model, rows: Mapping[int, np.ndarray]) -> None:
        """Keep stored rows, by their numbers, that a model has encoded; the oldest make room."""
        with self._lock:
            kept = self._kept(name, model)
            kept |= rows
            for number in [*islice(kept, max(len(kept) - 2 * _STANDING, 0))]:
                del kept[number]

    def _kept(self, name: str, model: Model) -> dict[int, np.ndarray]:
        if self._plans.get(name) is not model.plan:
            self._plans[name], self._rows[name] = model.plan, {}
        return self._rows[name]


class Likeness:
    """The directions in which alarms depart from normal rows (`Explainer.departures`), cached."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], np.ndarray] = {}  # replaced, never changed

    def directions(self, version: int, model: Model, alarms: list[Alarm]) -> np.ndarray:
        """The directions of alarms, by the model of a version.  -> (n_alarms, n_directions)"""
        kept, keys = self._kept, [(version, alarm.id) for alarm in alarms]
        new = {key: a.row for key, a in zip(keys, alarms, strict=True) if key not in kept}
        if new:
            rows = model.plan.encode(rows_for(model, [*new.values()]))
            made = model.explainer.departures(rows).astype(np.float32)
            kept = kept | dict(zip(new, made, strict=True))
            self._kept = dict([*kept.items()][-_DIRECTIONS_IN_MEMORY:])
        return np.stack([kept[key] for key in keys])


def groups_of(directions: np.ndarray) -> np.ndarray:
    """Which group each alarm belongs to, from 1 on: average linkage, cut where they are alike."""
    if len(directions) < 2:
        return np.ones(len(directions), dtype=int)
    apart = np.maximum(1.0 - directions @ directions.T, 0.0).astype(float)
    np.fill_diagonal(apart, 0.0)
    joined = linkage(squareform(apart, checks=False), "average")
    group: np.ndarray = fcluster(joined, 1.0 - ALIKE, "distance")
    return group


_OPEN = Filter()


class Alarms:
    """The stored rows: what people look at."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store, self._ledger = store, ledger
        self._likeness, self.encoded = Likeness(), EncodingCache(store)
        self._named: tuple[Model | None, dict[int, Any]] = None, {}  # what a model said last
        self._refreshing = threading.Lock()  # once, not by every request that comes after a lesson

    def get(self, number: int) -> Alarm:
        """A row by its number."""
        return self.some([number])[0]

    def some(self, numbers: Sequence[int]) -> list[Alarm]:
        """Rows by their numbers, in that order."""
        there = self.left(numbers)
        lacking = [number for number in numbers if number not in there]
        if lacking:
            raise Missing(f"Row {lacking[0]} does not exist.")
        return [there[number] for number in numbers]

    def left(self, numbers: Sequence[int]) -> dict[int, Alarm]:
        """Those of some rows that are still stored, by their numbers."""
        query = select(schema.rows).where(_among(numbers))
        return {alarm.id: alarm for alarm in self._found(query)}

    def inbox(self, name: str, wanted: Filter = _OPEN, *, limit: int = 50, offset: int = 0) -> Page:
        """The rows of a model that pass a filter, as the live version sees them."""
        self.refresh(name)
        table, where = schema.rows, wanted.conditions()
        first = table.c.now_score if wanted.order == "score" else table.c.at
        count = select(func.count()).select_from(table).where(table.c.model == name, *where)
        rows = self.rows(name, *where, order=[first.desc()], limit=limit, offset=offset)
        return Page(rows, int(self._store.first(count)[0]))

    def rows(
        self,
        name: str,
        *where: ColumnElement[bool],
        order: Sequence[ColumnElement[Any]] = (),
        limit: int = _MAX_ROWS_COMPARED,
        offset: int = 0,
    ) -> list[Alarm]:
        """The rows of a model that meet all conditions, in this order, then the newest first."""
        table = schema.rows
        query = select(table).where(table.c.model == name, *where)
        query = query.order_by(*order, table.c.id.desc())
        return self._found(query.limit(limit).offset(offset))

    def _found(self, query: Select[Any]) -> list[Alarm]:
        """The rows that a query selects, with the verdicts that stand."""
        table = schema.verdicts
        with self._store.reading() as connection:
            rows = connection.execute(query).all()
            stand = and_(table.c.row.in_([row.id for row in rows]), table.c.undone_at.is_(None))
            query = select(*columns_of(Verdict, table)).where(stand).order_by(table.c.id)
            by_row = {row.row: Verdict(*row) for row in connection.execute(query)}
        return [_alarm(row, by_row.get(row.id)) for row in rows]

    def kinds(self, name: str, wanted: Filter = _OPEN) -> dict[str, int]:
        """How many of some alarms have each kind as their first name, the most frequent first."""
        self.refresh(name)
        table = schema.rows
        query = select(table.c.now_kind, func.count()).group_by(table.c.now_kind)
        where = and_(table.c.model == name, *wanted.conditions())
        counted: Counter[str] = Counter()
        for named, n in self._store.rows(query.where(where)):
            counted[first_name(named)] += int(n)
        return dict(counted.most_common())

    def explained(self, number: int) -> Alarm:
        """A row with the reasons for its score, by the version that scored it."""
        self._release()
        alarm = self.get(number)
        if alarm.reasons is not None:
            return alarm
        with suppress(Missing):  # it was purged
            self._ledger.model(alarm.said.version)
        return self.with_reasons([alarm])[0]

    def with_reasons(self, alarms: Sequence[Alarm]) -> list[Alarm]:
        """Rows with the reasons for their scores, by the versions that scored them if in memory."""
        reasons: dict[int, dict[str, Any]] = {}
        kept: list[int] = []
        for version in {alarm.said.version for alarm in alarms if alarm.reasons is None}:
            asked = [a for a in alarms if a.reasons is None and a.said.version == version]
            model = self._ledger.at_hand(version)
            kept += [] if model is None else [alarm.id for alarm in asked]  # others may change
            model = self._ledger.live_model(asked[0].model) if model is None else model
            explained = model.explain(rows_for(model, [alarm.row for alarm in asked]), top=_REASONS)
            for alarm, one in zip(asked, explained, strict=True):  # as it comes back from the store
                reasons[alarm.id] = asdict(one) | {"reasons": [asdict(why) for why in one.reasons]}
        if kept:
            values = [{"number": number, "reasons": reasons[number]} for number in kept]
            with self._store.writing() as connection:
                connection.execute(_ONE_ROW, values)
        return [replace(alarm, reasons=reasons.get(alarm.id, alarm.reasons)) for alarm in alarms]

    def normal_rows(self, number: int, *, n: int = 5) -> list[dict[str, str]]:
        """The normal rows nearest to a row, in the units of the table."""
        alarm = self.get(number)
        model = self._ledger.live_model(alarm.model)
        table = model.plan.align(rows_for(model, [alarm.row]))
        return model.explainer.nearest_normal_rows(table, n=n)[0]

    def alike(self, number: int, *, limit: int = 20) -> list[Alarm]:
        """Open alarms that look like a row, the likest first."""
        alarm = self.get(number)
        others = [
            a for a in self.inbox(alarm.model, limit=_MAX_ROWS_COMPARED).alarms if a.id != number
        ]
        directions = self._directions(alarm.model, [alarm, *others])
        likeness = directions[1:] @ directions[0]
        order = np.argsort(-likeness, kind="stable")[:limit].tolist()
        return [others[i] for i in order if likeness[i] >= ALIKE]

    def of_entity(self, number: int, *, limit: int = 50) -> list[Alarm]:
        """The other stored rows of a row's entity, the newest first."""
        alarm = self.get(number)
        if alarm.entity is None:
            return []
        rows = self.history(alarm.model, alarm.entity, limit=limit + 1)
        return [row for row in rows if row.id != number][:limit]

    def history(self, name: str, entity: str, *, limit: int = 500) -> list[Alarm]:
        """All stored rows of an entity, judged or not, the newest first."""
        self.refresh(name)
        table = schema.rows.c
        return self.rows(name, table.entity == entity, order=[table.at.desc()], limit=limit)

    def groups(self, name: str, *, limit: int = 20) -> list[Group]:
        """Open alarms of unseen kinds that look alike: the largest groups of two and more."""
        grouped = self._grouped(name)[:limit]
        first = self.with_reasons([a for alarms in grouped for a in alarms[:_ALARMS_EXPLAINED]])
        explained = {alarm.id: alarm for alarm in first}
        return [_group([explained.get(a.id, a) for a in alarms]) for alarms in grouped]

    def group(self, name: str, number: int) -> Group:
        """The group of a row, with reasons for all of it."""
        for alarms in self._grouped(name):
            if number in {alarm.id for alarm in alarms}:
                return _group(self.with_reasons(alarms))
        raise Missing(f"Row {number} is not in a group: it was judged or named, or is alone.")

    def rename_groups(self, name: str, numbers: Sequence[int], new: str) -> int:
        """Name the groups of some rows, which become one; an empty name ends that. How many."""
        to = checked_name(new, what="a group name") if new else None
        found = [g for g in self._grouped(name) if not {a.id for a in g}.isdisjoint(numbers)]
        if not found:
            raise Missing("None of these rows is in a group any more: reload the groups.")
        members = _among(alarm.id for alarms in found for alarm in alarms)
        self._store.write(update(schema.rows).where(members).values(group_name=to))
        return len(found)

    def _grouped(self, name: str) -> list[list[Alarm]]:
        """All groups, the largest first; in each the highest alarm first."""
        alarms = self.inbox(name, limit=_MAX_ROWS_COMPARED).alarms
        unseen = [alarm for alarm in alarms if alarm.now.kind == UNSEEN]
        unseen.sort(key=lambda alarm: -alarm.now.score)
        members: dict[int, list[Alarm]] = {}
        for alarm, look in zip(unseen, self._looks(name, unseen), strict=True):
            members.setdefault(look, []).append(alarm)
        return sorted((m for m in members.values() if len(m) > 1), key=lambda m: -len(m))

    def looks(self, name: str, numbers: Sequence[int]) -> dict[int, int]:
        """Which rows look alike: those with the same number. Of many rows, the newest have one."""
        alarms = self.some(sorted(numbers)[-_MAX_ROWS_COMPARED:])
        return {a.id: look for a, look in zip(alarms, self._looks(name, alarms), strict=True)}

    def _looks(self, name: str, alarms: list[Alarm]) -> list[int]:
        """The group of each alarm; groups with the same name are one."""
        if not alarms:
            return []
        looks, members = groups_of(self._directions(name, alarms)).tolist(), dict[int, Any]()
        for look, alarm in zip(looks, alarms, strict=True):
            members.setdefault(look, []).append(alarm)
        first: dict[Any, int] = {}  # the first group with each name
        one = {look: first.setdefault(_name(m) or look, look) for look, m in members.items()}
        return [one[look] for look in looks]

    def _directions(self, name: str, alarms: list[Alarm]) -> np.ndarray:
        live = self._ledger.in_use(name)[0]
        return self._likeness.directions(live, self._ledger.model(live), alarms)

    def assign(self, numbers: Sequence[int], assignee: str | None) -> None:
        """Assign rows to somebody, or to nobody."""
        to = texts.name(assignee, what="An assignee") if assignee else None
        self.some(numbers)  # an error if one is not stored
        self._store.write(update(schema.rows).where(_among(numbers)).values(assignee=to))

    def annotate(self, number: int, note: str) -> None:
        """Write a note on a row."""
        self.get(number)
        self._store.write(update(schema.rows).where(_among([number])).values(note=texts.note(note)))

    def refresh(self, name: str) -> None:
        """Score the newest rows that nobody has judged again, if the live version is new."""
        with self._refreshing:
            self._release()
            table, live = schema.rows, self._ledger.in_use(name)[0]
            query = _undecided(name, table.c.id).where(table.c.now_version != live)
            numbers = [row.id for row in self._store.rows(query)]
            for start in range(0, len(numbers), PIECE):  # others write meanwhile: they come first
                live = self._ledger.in_use(name)[0]  # the newest, if that has changed
                model, some = self._ledger.model(live), numbers[start : start + PIECE]
                changed = self._judged(model, name, some)
                if changed:
                    rewriting = _rewriting(self._store.engine.dialect, live, changed)
                    with self._store.writing(synced=False) as connection:  # it can be done again
                        connection.exec_driver_sql(*rewriting)

    def _release(self) -> None:
        """Open alarms again whose exemption has ended; whichever process looks first does it."""
        table, exemptions = schema.rows, schema.exemptions.c
        ended = select(exemptions.id).where(exemptions.expires <= now())
        kept = table.c.exemption.in_(ended) & (table.c.state == EXEMPT)
        if self._store.first(select(table.c.id).where(kept).limit(1)) is not None:
            self._store.write(update(table).where(kept).values(**REOPENED))

    def standing(self, name: str) -> dict[int, Said]:
        """What the live version says about the newest rows that nobody has judged, by number."""
        self.refresh(name)
        columns = columns_of(Said, schema.rows, "now_")
        rows = self._store.rows(_undecided(name, schema.rows.c.id, *columns))
        return {number: Said(*values) for number, *values in rows}

    def n_raised(self, numbers: Sequence[int]) -> int:
        """How many of some rows raised an alarm when they came."""
        count = select(func.count()).where(_among(numbers), schema.rows.c.alarm)
        return int(self._store.first(count)[0])

    def names(self, name: str) -> dict[int, tuple[bool, str]]:
        """Whether the rows of `standing` raise an alarm, and their kinds: in half the time."""
        self.refresh(name)
        table = schema.rows.c
        rows = self._store.rows(_undecided(name, table.id, table.now_alarm, table.now_kind))
        return {number: (alarm, kind) for number, alarm, kind in rows}

    def said_by(
        self, model: Model, version: int, name: str, numbers: Sequence[int], *, named: bool = True
    ) -> dict[int, Said]:
        """What a model says about rows that are stored; without names, alarms have the kind ""."""
        if not named:
            there, rows = self.encoded.rows(name, model, numbers)
            score = model.score(rows)
            alarm, p_value = score > model.threshold, model.calibration.p_value(score)
            values = zip(there, score.tolist(), p_value.tolist(), alarm.tolist(), strict=True)
            return {n: Said(version, s, p, a, "" if a else NORMAL) for n, s, p, a in values}
        return {n: Said(version=version, **said) for n, said in self._judged(model, name, numbers)}

    def _judged(self, model: Model, name: str, numbers: Sequence[int]) -> list[tuple[int, Any]]:
        """The verdicts of a model on rows that are stored, with the numbers of these."""
        last, known = self._named
        known = known if last is model else {}
        new = [number for number in numbers if number not in known]
        if new:
            new, rows = self.encoded.rows(name, model, new)
            known = known | dict(zip(new, model.judge(rows).each(), strict=True))
        self._named = model, known  # what was previewed is mostly given next
        return [(number, known[number]) for number in numbers if number in known]

    def forget_kept(self) -> None:
        """Drop rows from memory, once the store no longer has some of them."""
        self._named = None, {}
        self._likeness, self.encoded = Likeness(), EncodingCache(self._store)


def _rewriting(
    dialect: Dialect, version: int, said: Sequence[tuple[int, Any]]
) -> tuple[str, tuple[Any, ...]]:
    """A statement that writes what a version says of rows, unless they are judged, and its values.

    It is one for all rows: after each of several, a driver lets other threads go first.
    """
    names = ["now_version", *(f"now_{name}" for name in said[0][1])]
    table, mark = schema.rows.c, "?" if dialect.paramstyle == "qmark" else "%s"
    types = {name: table[name].type.compile(dialect) for name in ("id", *names)}
    of_new = {name: f"CAST(new.{name} AS {kind})" for name, kind in types.items()}
    one = f"({', '.join([mark] * len(types))})"
    statement = (
        f"WITH new (id, {', '.join(names)}) AS (VALUES {', '.join([one] * len(said))}) "
        f"UPDATE rows SET {', '.join(f'{name} = {of_new[name]}' for name in names)} "
        f"FROM new WHERE rows.id = {of_new['id']} AND rows.state <> '{JUDGED}'"
    )
    return statement, tuple(v for number, one in said for v in (number, version, *one.values()))


def _undecided(name: str, *columns: ColumnElement[Any]) -> Select[Any]:
    """The newest rows of a model that nobody has judged."""
    table = schema.rows.c
    where = (table.model == name, table.state.in_((OPEN, UNSURE)))
    return select(*columns).where(*where).order_by(table.id.desc()).limit(_STANDING)


def _group(alarms: list[Alarm]) -> Group:
    """A group, with the columns that add most to the scores of its first alarms."""
    added: Counter[str] = Counter()
    for alarm in alarms[:_ALARMS_EXPLAINED]:
        for one in (alarm.reasons or {}).get("reasons", []):
            added[one["column"]] += one["contribution"]
    columns = [column for column, sum_ in added.most_common(3) if sum_ > 0]
    return Group(alarms, columns, _name(alarms))


def _name(alarms: list[Alarm]) -> str | None:
    """The name that most alarms of a group were given; new ones among them have none."""
    names = Counter(alarm.group_name for alarm in alarms if alarm.group_name)
    return max(sorted(names), key=names.__getitem__, default=None)


def _among(numbers: Iterable[int]) -> ColumnElement[bool]:
    return schema.rows.c.id.in_(list(numbers))


@dataclass(frozen=True)
class Offered:
    """A row that is worth a verdict, and why."""

    alarm: Alarm
    why: str


class Queue:
    """What to judge next."""

    def __init__(self, store: Store, alarms: Alarms) -> None:
        self._store, self._alarms = store, alarms

    def offered(self, name: str, *, limit: int = 20) -> list[Offered]:
        """Rows to judge: alarms between kinds, random rows that passed, and the highest others."""
        self._alarms.refresh(name)
        table = schema.rows.c
        passed, probability = ~table.now_alarm, table.now_kind_probability
        # A random row is never offered for its score, so those judged stay a random share.
        parts = (
            (BETWEEN, table.now_alarm & (probability < DOUBTED), probability),
            (RANDOM, passed & table.drawn, (table.id * 7919) % 10_007),
            (NEAR, passed & ~table.drawn, -table.now_score),
        )
        return [
            Offered(alarm, why.format(kind=alarm.now.kind))
            for why, where, first in parts
            for alarm in self._alarms.rows(
                name, table.state == OPEN, where, order=[first, table.id], limit=max(1, limit // 3)
            )
        ]

    def missed(self, name: str) -> Share:
        """The share of anomalies among random rows that were not alarms when they were judged."""
        rows, verdicts = schema.rows.c, schema.verdicts.c
        quiet = (rows.model == name) & rows.drawn & ~rows.now_alarm & verdicts.undone_at.is_(None)
        query = select(verdicts.verdict, func.count()).group_by(verdicts.verdict)
        counted = self._store.rows(query.where(verdicts.row == rows.id, quiet))
        given = Counter({verdict: int(n) for verdict, n in counted})
        return Share.counted(given[TRUE], given[TRUE] + given[FALSE])
