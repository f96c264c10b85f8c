"""Alarms as people look at them: what was said, why, what is said now, and what is alike."""

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, and_, bindparam, func, select, update

from eqsep.detector.model import Model
from eqsep.labels import OR, UNSEEN
from eqsep.serve import schema
from eqsep.serve.ledger import Ledger
from eqsep.serve.likeness import ALIKE, Likeness, groups_of
from eqsep.serve.log import Row
from eqsep.serve.records import JUDGED, Alarm, Filter, Group, Page, Said, found
from eqsep.serve.store import Missing, Store
from eqsep.serve.teaching import rows_for

MOST = 2_000  # rows that are looked at together
_REASONS = 8
_FIRST = 5  # alarms of a group of which the reasons are given at once
_OPEN = Filter()


class Alarms:
    """The rows of a store that are to be looked at, or were."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store, self._ledger = store, ledger
        self._likeness = Likeness()
        self._refreshing = threading.Lock()  # once, not by every request that comes after a lesson

    def get(self, number: int) -> Alarm:
        """The row of a number."""
        return self.some([number])[0]

    def some(self, numbers: Sequence[int]) -> list[Alarm]:
        """Rows by their numbers, in that order."""
        query = select(schema.rows).where(_among(numbers))
        there = {alarm.id: alarm for alarm in found(self._store, query)}
        lacking = [number for number in numbers if number not in there]
        if lacking:
            raise Missing(f"There is no row {lacking[0]}.")
        return [there[number] for number in numbers]

    def inbox(self, name: str, wanted: Filter = _OPEN, *, limit: int = 50, offset: int = 0) -> Page:
        """The rows of a model that are asked for, as the live version sees them."""
        self.refresh(name)
        table = schema.rows
        where = and_(table.c.model == name, *wanted.conditions())
        first = table.c.now_score.desc() if wanted.order == "score" else table.c.at.desc()
        query = select(table).where(where).order_by(first, table.c.id.desc())
        with self._store.reading() as connection:
            counted = connection.execute(select(func.count()).select_from(table).where(where))
            total = int(counted.scalar() or 0)
        return Page(found(self._store, query.limit(limit).offset(offset)), total)

    def kinds(self, name: str) -> dict[str, int]:
        """How many open alarms have each kind as their first name, the most frequent first."""
        self.refresh(name)
        table = schema.rows
        query = select(table.c.now_kind, func.count()).group_by(table.c.now_kind)
        where = and_(table.c.model == name, *_OPEN.conditions())
        with self._store.reading() as connection:
            rows = connection.execute(query.where(where)).all()
        counted: Counter[str] = Counter()
        for named, n in rows:
            counted[named.split(OR)[0]] += int(n)
        return dict(counted.most_common())

    def explained(self, number: int) -> Alarm:
        """A row with the reasons of its score, by the version that scored it."""
        alarm = self.get(number)
        if alarm.reasons is not None:
            return alarm
        with suppress(Missing):  # it was purged
            self._ledger.detector(alarm.said.version)
        return self.with_reasons([alarm])[0]

    def with_reasons(self, alarms: Sequence[Alarm]) -> list[Alarm]:
        """Rows with the reasons of their scores, by the versions that scored them.

        Where such a version is not at hand, the live one gives its reasons; they are not kept.
        """
        reasons: dict[int, dict[str, Any]] = {}
        kept: list[int] = []
        for version in {alarm.said.version for alarm in alarms if alarm.reasons is None}:
            asked = [a for a in alarms if a.reasons is None and a.said.version == version]
            detector = self._ledger.at_hand(version)
            kept += [] if detector is None else [alarm.id for alarm in asked]
            model = self._live(asked[0].model) if detector is None else detector.model_
            explained = model.explain(rows_for(model, [alarm.row for alarm in asked]), top=_REASONS)
            for alarm, one in zip(asked, explained, strict=True):  # as it comes back from the store
                reasons[alarm.id] = asdict(one) | {"reasons": [asdict(why) for why in one.reasons]}
        if kept:
            one_row = update(schema.rows).where(schema.rows.c.id == bindparam("number"))
            values = [{"number": number, "reasons": reasons[number]} for number in kept]
            with self._store.writing() as connection:
                connection.execute(one_row, values)
        return [replace(alarm, reasons=reasons.get(alarm.id, alarm.reasons)) for alarm in alarms]

    def normal_rows(self, number: int, *, n: int = 5) -> list[dict[str, str]]:
        """The normal rows nearest to a row, in the units of the table."""
        alarm = self.get(number)
        model = self._live(alarm.model)
        table = model.plan.align(rows_for(model, [alarm.row]))
        return model.explainer.nearest_normal_rows(table, n=n)[0]

    def alike(self, number: int, *, limit: int = 20) -> list[Alarm]:
        """Open alarms that look like a row, the likest first."""
        alarm = self.get(number)
        others = [a for a in self._opened(alarm.model) if a.id != number]
        if not others:
            return []
        directions = self._directions(alarm.model, [alarm, *others])
        likeness = directions[1:] @ directions[0]
        order = np.argsort(-likeness, kind="stable")[:limit].tolist()
        return [others[i] for i in order if likeness[i] >= ALIKE]

    def of_entity(self, number: int, *, limit: int = 50) -> list[Alarm]:
        """What else is kept of a row's entity, the newest first."""
        alarm = self.get(number)
        if alarm.entity is None:
            return []
        rows = self.history(alarm.model, alarm.entity, limit=limit + 1)
        return [row for row in rows if row.id != number][:limit]

    def history(self, name: str, entity: str, *, limit: int = 500) -> list[Alarm]:
        """All that is kept of an entity, judged or not, the newest first."""
        self.refresh(name)
        table = schema.rows
        where = and_(table.c.model == name, table.c.entity == entity)
        query = select(table).where(where).order_by(table.c.at.desc(), table.c.id.desc())
        return found(self._store, query.limit(limit))

    def groups(self, name: str, *, limit: int = 20) -> list[Group]:
        """Open alarms of no seen kind that look alike: the largest groups of two and more."""
        grouped = self._grouped(name)[:limit]
        first = self.with_reasons([a for alarms in grouped for a in alarms[:_FIRST]])
        explained = {alarm.id: alarm for alarm in first}
        return [
            Group(
                [explained.get(alarm.id, alarm) for alarm in alarms],
                _columns([explained[alarm.id] for alarm in alarms[:_FIRST]]),
            )
            for alarms in grouped
        ]

    def group(self, name: str, number: int) -> Group:
        """The group that holds a row, all of it with reasons."""
        for alarms in self._grouped(name):
            if number in {alarm.id for alarm in alarms}:
                explained = self.with_reasons(alarms)
                return Group(explained, _columns(explained[:_FIRST]))
        raise Missing(f"Row {number} is in no group now: it was judged, named, or stands alone.")

    def _grouped(self, name: str) -> list[list[Alarm]]:
        """All groups, the largest first; the alarms of each with the highest first."""
        unseen = [alarm for alarm in self._opened(name) if alarm.now.kind == UNSEEN]
        unseen.sort(key=lambda alarm: -alarm.now.score)
        if len(unseen) < 2:
            return []
        members: dict[int, list[Alarm]] = {}
        for alarm, group in zip(
            unseen, groups_of(self._directions(name, unseen)).tolist(), strict=True
        ):
            members.setdefault(group, []).append(alarm)
        return sorted((m for m in members.values() if len(m) > 1), key=lambda m: -len(m))

    def _directions(self, name: str, alarms: list[Alarm]) -> np.ndarray:
        live = self._ledger.in_use(name)[0]
        return self._likeness.directions(live, self._ledger.detector(live).model_, alarms)

    def assign(self, numbers: Sequence[int], assignee: str | None) -> None:
        """Give rows to somebody, or to nobody."""
        self._change(numbers, assignee=assignee or None)

    def annotate(self, number: int, note: str) -> None:
        """Write a note on a row."""
        self._change([number], note=note)

    def refresh(self, name: str) -> None:
        """Let the live version, if it is new, look at the newest rows that nobody has judged."""
        with self._refreshing:
            self._refresh(name)

    def _refresh(self, name: str) -> None:
        table = schema.rows
        live = self._ledger.in_use(name)[0]
        stale = and_(table.c.model == name, table.c.state != JUDGED, table.c.now_version != live)
        query = select(table.c.id, table.c.row).where(stale).order_by(table.c.id.desc())
        with self._store.reading() as connection:
            rows = connection.execute(query.limit(2 * MOST)).all()
        if not rows:
            return
        answers = said_of(self._ledger.detector(live).model_, live, [row.row for row in rows])
        changed = [
            {"number": row.id, **{f"now_{key}": value for key, value in asdict(said).items()}}
            for row, said in zip(rows, answers, strict=True)
        ]
        one = update(table).where(table.c.id == bindparam("number"))
        with self._store.writing() as connection:
            connection.execute(one, changed)

    def looked_at(self, name: str) -> list[Alarm]:
        """The newest rows that nobody has judged: open alarms, and those that raise none."""
        self.refresh(name)
        table = schema.rows
        where = and_(table.c.model == name, table.c.state != JUDGED)
        return [
            alarm
            for is_alarm in (True, False)
            for alarm in found(
                self._store,
                select(table)
                .where(where, table.c.now_alarm == is_alarm)
                .order_by(table.c.id.desc())
                .limit(MOST),
            )
        ]

    def _opened(self, name: str) -> list[Alarm]:
        return self.inbox(name, limit=MOST).alarms

    def _live(self, name: str) -> Model:
        return self._ledger.detector(self._ledger.in_use(name)[0]).model_

    def _change(self, numbers: Sequence[int], **values: Any) -> None:
        self.some(numbers)
        with self._store.writing() as connection:
            connection.execute(update(schema.rows).where(_among(numbers)).values(**values))


def said_of(model: Model, number: int, rows: list[Row]) -> list[Said]:
    """What a version says of rows."""
    if not rows:
        return []
    verdicts = model.verdicts(rows_for(model, rows))
    return [
        Said(version=number, score=score, p_value=p_value, alarm=alarm, kind=kind)
        for score, p_value, alarm, kind in zip(*(v.tolist() for v in verdicts), strict=True)
    ]


def _columns(alarms: list[Alarm], *, most: int = 3) -> list[str]:
    """The columns that add most to the scores of alarms together."""
    added: Counter[str] = Counter()
    for alarm in alarms:
        for one in (alarm.reasons or {}).get("reasons", []):
            added[one["column"]] += one["contribution"]
    return [column for column, sum_ in added.most_common(most) if sum_ > 0]


def _among(numbers: Iterable[int]) -> ColumnElement[bool]:
    return schema.rows.c.id.in_(list(numbers))
