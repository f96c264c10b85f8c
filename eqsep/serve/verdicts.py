"""Verdicts: what people decide about rows, what that would change, and how it is undone."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, Update, and_, func, insert, null, select, update

from eqsep.detector.learning import Learned
from eqsep.detector.model import Model
from eqsep.detector.namer import rows_for as rows_needed
from eqsep.errors import UserError
from eqsep.labels import NORMAL, TRUTHS
from eqsep.serve import schema, texts
from eqsep.serve.alarms import (
    FALSE,
    JUDGED,
    OPEN,
    TRUE,
    UNSURE,
    Alarm,
    Alarms,
    Said,
    Verdict,
    Word,
    checked_name,
)
from eqsep.serve.ledger import (
    FORGET,
    LEARN,
    REVERT,
    Ledger,
    Lesson,
    NewVersion,
    Version,
    learnt_from,
    messages,
    rows_for,
)
from eqsep.serve.people import audit_entry
from eqsep.serve.store import Conflict, Missing, Store, now

VERDICTS = get_args(Word)
TEACHING = (TRUE, FALSE)
MOST_AT_ONCE = 1_000  # rows
_POWERS = 11  # of two, up to 1,024 rows


@dataclass(frozen=True)
class RowChange:
    """A row, and what its score and name would be."""

    alarm: Alarm
    then: Said


@dataclass(frozen=True)
class KindFit:
    """How well a row fits a kind."""

    # the share of the kind's rows that are at least as unlike it as this row; None where the kind
    # is not known
    before: float | None
    after: float | None
    n_rows: int  # rows, or groups of rows, of the kind to compare with afterwards
    n_needed: int  # for a promise on its name

    @property
    def is_short(self) -> bool:
        """Whether the kind has too few rows for a promise."""
        return self.n_rows < self.n_needed


@dataclass(frozen=True)
class Preview:
    """What a verdict would change: for its rows, and among the newest stored rows."""

    rows: list[RowChange]
    goes: list[RowChange]  # alarms that would no longer be alarms
    rises: list[RowChange]  # rows that would become alarms
    renamed: list[RowChange]  # alarms that would get another name
    n_looked_at: int  # how many stored rows were compared
    fits: dict[str, KindFit]  # how well the first row fits each kind
    threshold: tuple[float, float]  # before and after
    warnings: tuple[str, ...]
    version: int  # the live one, which the verdict would change
    replaces: tuple[Verdict, ...] = ()  # that stand on its rows, and teach nothing
    # rows like the first that stays an alarm, and are judged normal, until it is none; None if it
    # is none anyway, or if more than 1,000 are needed
    n_needed: int | None = None


class Reviewed(texts.Asked):
    """Which verdicts are asked for."""

    by: texts.Text | None = None
    verdict: Word | None = None
    kind: texts.Text | None = None
    since: float | None = None  # in seconds since 1970
    undone: bool | None = None  # None: those that stand and those taken back

    def conditions(self, renamed: Mapping[str, str]) -> list[ColumnElement[bool]]:
        """The same in SQL; a kind is found by the names that it had before, too."""
        table = schema.verdicts.c
        same = {table.by: self.by, table.verdict: self.verdict}
        found = [column == value for column, value in same.items() if value]
        if self.kind:
            names = [self.kind, *(old for old, now in renamed.items() if now == self.kind)]
            found.append(table.kind.in_(names))
        if self.since is not None:
            found.append(table.at >= self.since)
        if self.undone is not None:
            found.append(table.undone_at.is_not(None) == self.undone)
        return found


_ALL_VERDICTS = Reviewed()


@dataclass(frozen=True)
class Given:
    """The verdicts that were given, and the version that is live now."""

    verdicts: list[Verdict]
    version: Version


@dataclass(frozen=True)
class Merging:
    """Two kinds that would become one, named as the second, and what there is of each."""

    kinds: tuple[str, str]
    learnt: tuple[float, float]  # the weight of the rows
    open: tuple[int, int]  # alarms


def fits_now(model: Model, alarm: Alarm) -> dict[str, KindFit]:
    """How well a row fits each kind by a model, the best first."""
    return dict(sorted(_fits(model, model, alarm).items(), key=lambda one: -(one[1].after or 0.0)))


def _fits(before: Model, after: Model, alarm: Alarm) -> dict[str, KindFit]:
    was, would = _p_values(before, alarm), _p_values(after, alarm)
    needed, kept = rows_needed(after.promise.unseen_rate), after.evidence.kinds
    return {k: KindFit(was.get(k), would.get(k), kept.n_units(k), needed) for k in was | would}


def _p_values(model: Model, alarm: Alarm) -> dict[str, float]:
    """The p-value of a row for each kind that has rows to compare with."""
    if model.namer.judges is None:
        return {}
    row = model.plan.encode(rows_for(model, [alarm.row]))
    found = zip(model.kinds, model.kind_p_values(row)[0].tolist(), strict=True)
    return {kind: p for kind, p in found if model.evidence.kinds.n_units(kind)}


def _few_rows(model: Model, kind: str) -> tuple[str, ...]:
    """A warning where a kind has too few rows for a promise on its name."""
    rate = model.promise.unseen_rate
    n, needed = model.evidence.kinds.n_units(kind), rows_needed(rate)
    if n >= needed:
        return ()
    return (
        f"Few rows of {kind!r} so far: {n} including these. From {needed} rows on, at most "
        f"{rate:.0%} of its alarms are named unseen; until then it may be more, and names may "
        f"change with each verdict.",
    )


def n_like_it(model: Model, row: dict[str, Any]) -> int | None:
    """How many rows like it, learnt as normal, until they raise no alarm; None if over 1,000."""
    one = learnt_from(model, Lesson([row], [NORMAL], judged=True))
    encoded = model.plan.encode(rows_for(model, [row]))
    powers = [one]
    while len(powers) < _POWERS:
        powers.append(powers[-1] + powers[-1])

    def raises(n: int) -> bool:
        parts = (power for bit, power in enumerate(powers) if n >> bit & 1)
        after = model.taught(sum(parts, start=model.evidence))
        return bool(after.score(encoded)[0] > after.threshold)

    high = next((1 << bit for bit in range(_POWERS) if not raises(1 << bit)), None)
    if high is None:
        return None
    low = high // 2  # it still raises an alarm
    while high - low > max(1, high // 8):  # near enough
        middle = (low + high) // 2
        low, high = (middle, high) if raises(middle) else (low, middle)
    return high


def name_now(label: str, renames: Iterable[Sequence[str]]) -> str:
    """What a kind is called after it was renamed."""
    for old, new in renames:
        label = new if label == old else label
    return label


def _differs(now: tuple[bool, str], then: Said) -> bool:
    """Whether a row would no longer raise an alarm, would begin to, or has another name."""
    alarm, kind = now
    return alarm != then.alarm or (alarm and kind != then.kind and then.kind != "")


def _rows(numbers: Sequence[int]) -> Update:
    return update(schema.rows).where(schema.rows.c.id.in_(numbers))


def _swayed(connection: Connection, model: str, line: set[int]) -> list[Any]:
    """The verdicts that would be undone by going back to a lineage, or would stand again."""
    table = schema.verdicts
    query = select(table).where(table.c.model == model, table.c.version.is_not(None))
    return [
        row
        for row in connection.execute(query)
        if (row.version in line and row.undone_version not in line) != (row.undone_at is None)
    ]


class Outdated(Conflict):
    """After a verdict was previewed, another version went live or others judged its rows."""


class VerdictBook:
    """The verdicts of a store: true alarms teach rows with their kind, false ones as normal."""

    def __init__(self, store: Store, ledger: Ledger, alarms: Alarms) -> None:
        self._store, self._ledger, self._alarms = store, ledger, alarms

    def preview(
        self, numbers: Sequence[int], verdict: str, *, kind: str | None = None, named: bool = True
    ) -> Preview:
        """What a verdict would change; without `named`, which takes longest, no names, warnings."""
        alarms, kind = self._judgeable(numbers, verdict, kind)
        name, judged = alarms[0].model, set(numbers)
        names = self._alarms.names(name)
        others = {number: now for number, now in names.items() if number not in judged}
        live = self._ledger.in_use(name)[0]
        before, teaches = self._ledger.model(live), verdict in TEACHING
        lesson = _lesson(alarms, verdict, kind)
        learned = self._ledger.learnt(live, lesson) if teaches else Learned(before)
        after, named = learned.model, named or not teaches
        warnings = messages(learned) if named else ()
        if named and verdict == TRUE and kind is not None:
            warnings += _few_rows(after, kind)
        then = self._alarms.said_by(after, live, name, [*numbers, *others], named=named)
        still = [alarm for alarm in alarms if then[alarm.id].alarm] if verdict == FALSE else []
        differ = [n for n in others if n in then and _differs(others[n], then[n])]
        changes = [RowChange(alarm, then[alarm.id]) for alarm in self._alarms.some(differ)]
        return Preview(
            rows=[RowChange(alarm, then[alarm.id]) for alarm in alarms],
            goes=[c for c in changes if c.alarm.now.alarm and not c.then.alarm],
            rises=[c for c in changes if c.then.alarm and not c.alarm.now.alarm],
            renamed=[c for c in changes if c.alarm.now.alarm and c.then.alarm] if named else [],
            n_looked_at=len(others),
            fits=_fits(before, after, alarms[0]) if named else {},
            threshold=(before.threshold, after.threshold),
            warnings=warnings,
            version=live,
            replaces=tuple(alarm.verdict for alarm in alarms if alarm.verdict is not None),
            n_needed=n_like_it(before, still[0].row) if named and still else None,
        )

    def give(  # noqa: PLR0913  what is decided, and what was seen before
        self,
        numbers: list[int],
        verdict: str,
        *,
        by: str,
        kind: str | None = None,
        note: str = "",
        previewed: int | None = None,
        replaces: Collection[int] | None = None,
    ) -> Given:
        """Judge rows; what that teaches is learnt in the same transaction.

        `previewed` is the version that a preview was of: if another one is live, nothing is done.
        `replaces` are the verdicts that it showed: if others by somebody else stand, nothing is
        done either; None replaces any that teach nothing.
        """
        alarms, kind = self._judgeable(numbers, verdict, kind)
        model, table, note = alarms[0].model, schema.verdicts, texts.note(note)
        said = {"verdict": verdict, "kind": kind}

        def write(connection: Connection, version: int | None, _: Model | None) -> None:
            standing = and_(table.c.row.in_(numbers), table.c.undone_at.is_(None))
            old = connection.execute(select(table).where(standing).order_by(table.c.id)).all()
            for one in old:
                if one.verdict in TEACHING:
                    raise Conflict(f"{one.by} has just judged alarm #{one.row}: reload it.")
                if replaces is not None and one.by != by and one.id not in replaces:
                    raise Outdated(
                        f"{one.by} judged alarm #{one.row} {one.verdict}: look at it again."
                    )
            at = now()  # the same for both: see `replaced`
            connection.execute(update(table).where(standing).values(undone_at=at, undone_by=by))
            values = {**said, "model": model, "note": note, "by": by, "at": at}
            rows = [{"row": number, "version": version} | values for number in numbers]
            connection.execute(insert(table), rows)
            detail = {"version": version} | ({"replaced": [one.id for one in old]} if old else {})
            connection.execute(audit_entry(by, "verdict", rows=numbers, **said, **detail))
            state = UNSURE if verdict == UNSURE else JUDGED
            connection.execute(_rows(numbers).values(state=state, proposal=null()))

        def teaching(live: int) -> NewVersion | None:
            if verdict not in TEACHING:
                return None
            if previewed is not None and live != previewed:
                raise Outdated(
                    f"The model changed after this preview: version {previewed} was live then, "
                    f"version {live} is now. Nothing was learnt. Preview the verdict again."
                )
            count = "1 row" if len(alarms) == 1 else f"{len(alarms):,} rows"
            summary = f"{count}: {verdict if verdict == FALSE else kind}"
            return NewVersion(LEARN, by, summary, _lesson(alarms, verdict, kind))

        version = self._ledger.append(model, teaching, within=write)
        given = [a.verdict for a in self._alarms.some(numbers) if a.verdict is not None]
        return Given(given, version)

    def propose(
        self, numbers: list[int], verdict: str, *, by: str, kind: str | None = None, note: str = ""
    ) -> None:
        """Propose a verdict, which a person may give; it replaces an earlier proposal."""
        _, kind = self._judgeable(numbers, verdict, kind)
        proposal = {"verdict": verdict, "kind": kind, "note": texts.note(note), "by": by}
        self._store.write(_rows(numbers).values(proposal=proposal | {"at": now()}))

    def undo(self, numbers: Sequence[int], *, by: str) -> Version:
        """Undo verdicts, all of one model; the version that is live then."""
        verdicts = [self.get(number) for number in numbers]
        for verdict in verdicts:
            if verdict.undone_at is not None:
                how = "replaced" if self.replaced([verdict]) else "undone"
                raise Conflict(f"Verdict {verdict.id} was already {how} by {verdict.undone_by}.")
        model = _one_model(self._alarms.some([verdict.row for verdict in verdicts]))
        lessons = {verdict.version for verdict in verdicts}
        for lesson in sorted(lessons, key=lambda version: -(version or 0)):  # the newest first
            self._undo(model, [v for v in verdicts if v.version == lesson], by)
        return self._ledger.live(model)

    def _undo(self, model: str, verdicts: list[Verdict], by: str) -> None:
        """Undo verdicts of one lesson: go back if it was the last one, else forget their rows."""
        alarms = self._alarms.some([verdict.row for verdict in verdicts])
        numbers, lesson = [verdict.id for verdict in verdicts], verdicts[0].version
        is_whole = {v.id for v in self._found(schema.verdicts.c.version == lesson)} == {*numbers}
        note = f"verdicts undone: {', '.join(map(str, numbers))}"

        def write(connection: Connection, version: int | None, _: Model | None) -> None:
            table = schema.verdicts
            mine = and_(table.c.id.in_(numbers), table.c.undone_at.is_(None))
            values = {"undone_at": now(), "undone_by": by, "undone_version": version}
            undone = connection.execute(update(table).where(mine).values(**values))
            if undone.rowcount != len(numbers):
                raise Conflict("Somebody has just undone one of these verdicts: reload them.")
            connection.execute(audit_entry(by, "undone", verdicts=numbers))
            rows = [alarm.id for alarm in alarms]
            connection.execute(_rows(rows).values(state=OPEN, now_version=0))  # to be refreshed

        def undoing(live: int) -> NewVersion | None:
            line = self._ledger.lineage(live)
            if lesson is None or lesson not in line:  # the model knows nothing of it
                return None
            if is_whole and line[-1] == lesson:
                return NewVersion(REVERT, by, note, source=line[-2])
            learnt, renamed = self._ledger.lesson(lesson), self._ledger.renames(live, since=lesson)
            labels = [name_now(verdict.kind or NORMAL, renamed) for verdict in verdicts]
            judged = learnt is None or learnt.judged
            gone = Lesson([alarm.row for alarm in alarms], labels, judged=judged)
            return NewVersion(FORGET, by, note, gone)

        self._ledger.append(model, undoing, within=write)

    def rename(self, model: str, old: str, new: str, *, by: str) -> Version:
        """Give a kind another name, or that of another kind: both become one."""
        known = [kind for kind in self._ledger.live_model(model).kinds if kind != old]
        return self._ledger.rename(model, old, _kind(new, known=known), by=by)

    def merging(self, model: str, old: str, new: str) -> Merging | None:
        """What a new name for a kind would merge; None if no other kind has that name."""
        learnt = self._ledger.live_model(model).namer.learnt_by_kind
        kinds = old, _kind(new, known=[kind for kind in learnt if kind != old])
        if not {*kinds} <= learnt.keys() or kinds[0] == kinds[1]:
            return None
        counted = self._alarms.kinds(model)
        return Merging(
            kinds=kinds,
            learnt=(learnt[kinds[0]], learnt[kinds[1]]),
            open=(counted.get(kinds[0], 0), counted.get(kinds[1], 0)),
        )

    def renamed(self, model: str) -> dict[str, str]:
        """Names that kinds had before, each with the name that the kind has now."""
        live = self._ledger.in_use(model)[0]
        renames, known = self._ledger.renames(live, since=0), self._ledger.model(live).kinds
        return {old: name_now(old, renames) for old, _ in renames if old not in known}

    def revert(self, model: str, version: int, *, by: str) -> Version:
        """Go back to a version: the verdicts stand that it has learnt, and no others."""
        table, line = schema.verdicts, set(self._ledger.lineage(version))

        def write(connection: Connection, number: int | None, _: Model | None) -> None:
            for row in _swayed(connection, model, line):
                is_open = row.undone_at is None
                at, who = (now(), by) if is_open else (None, None)
                undone = {"undone_at": at, "undone_by": who, "undone_version": None}
                state = {"state": OPEN, "now_version": 0} if is_open else {"state": JUDGED}
                connection.execute(update(table).where(table.c.id == row.id).values(**undone))
                connection.execute(_rows([row.row]).values(**state))
            connection.execute(audit_entry(by, "revert", model=model, version=number, to=version))

        return self._ledger.revert(model, version, by=by, within=write)

    def swayed(self, model: str, version: int) -> tuple[int, int]:
        """How many verdicts going back would reopen, and how many would stand again."""
        line = set(self._ledger.lineage(version))
        with self._store.reading() as connection:
            stands = [row.undone_at is None for row in _swayed(connection, model, line)]
        return stands.count(True), stands.count(False)

    def get(self, number: int) -> Verdict:
        """A verdict by its number."""
        found = self._found(schema.verdicts.c.id == number)
        if not found:
            raise Missing(f"Verdict {number} does not exist.")
        return found[0]

    def of_row(self, number: int) -> list[Verdict]:
        """All verdicts on a row, also those taken back, the newest first."""
        return self._found(schema.verdicts.c.row == number)

    def replaced(self, verdicts: Iterable[Verdict]) -> set[int]:
        """Those of some verdicts that a later one on their row replaced: nobody undid them."""
        old, new = schema.verdicts, schema.verdicts.alias()
        at_once = and_(new.c.at == old.c.undone_at, new.c.by == old.c.undone_by)
        query = select(old.c.id).join(new, and_(new.c.row == old.c.row, at_once))
        found = self._store.rows(query.where(old.c.id.in_([verdict.id for verdict in verdicts])))
        return {row.id for row in found}

    def latest(
        self, model: str, wanted: Reviewed = _ALL_VERDICTS, *, limit: int = 50, offset: int = 0
    ) -> list[Verdict]:
        """The latest verdicts on rows of a model that pass a filter, the newest first."""
        where = (schema.verdicts.c.model == model, *wanted.conditions(self.renamed(model)))
        return self._store.newest(Verdict, schema.verdicts, *where, limit=limit, offset=offset)

    def counted(self, model: str, wanted: Reviewed = _ALL_VERDICTS) -> dict[str, int]:
        """How many verdicts that pass a filter each person has given, the busiest first."""
        table = schema.verdicts.c
        where = (table.model == model, *wanted.conditions(self.renamed(model)))
        query = select(table.by, func.count()).where(*where)
        found = self._store.rows(query.group_by(table.by).order_by(func.count().desc(), table.by))
        return {by: int(n) for by, n in found}

    def together(self, model: str, *, limit: int = 10) -> list[list[Verdict]]:
        """The latest verdicts, in lists of those that were given, and undone, together."""
        table = schema.verdicts
        parts = (table.c.at, table.c.by, table.c.undone_at)
        mine = table.c.model == model
        query = select(*parts).where(mine).group_by(*parts).order_by(func.max(table.c.id).desc())
        return [
            self._found(mine, *(p.is_not_distinct_from(v) for p, v in zip(parts, row, strict=True)))
            for row in self._store.rows(query.limit(limit))
        ]

    def given_with(self, verdict: Verdict) -> list[Verdict]:
        """The verdicts that were given together with one, including it, and stand."""
        table = schema.verdicts
        model = select(table.c.model).where(table.c.id == verdict.id).scalar_subquery()
        same = and_(table.c.model == model, table.c.at == verdict.at, table.c.by == verdict.by)
        return self._found(same, table.c.undone_at.is_(None))[::-1]

    def _found(self, *where: ColumnElement[bool]) -> list[Verdict]:
        return self._store.newest(Verdict, schema.verdicts, *where)

    def teach(self, model: str, lesson: Lesson, *, by: str, note: str) -> Version:
        """Teach a model labelled rows, all or none; a label is "normal" or the name of a kind."""
        known = self._ledger.live_model(model).kinds
        new = {one: _kind(one, known=known) for one in set(lesson.labels) - {NORMAL}}
        lesson = replace(lesson, labels=[new.get(one, one) for one in lesson.labels])
        return self._ledger.learn(model, lesson, by=by, note=texts.note(note))

    def _judgeable(
        self, numbers: Sequence[int], verdict: str, kind: str | None
    ) -> tuple[list[Alarm], str | None]:
        """The rows of a verdict, and the kind of true alarms; an error if it cannot be given."""
        if verdict not in VERDICTS:
            raise UserError(f"verdict must be one of {', '.join(VERDICTS)}, got {verdict!r}.")
        if not 0 < len(set(numbers)) == len(numbers) <= MOST_AT_ONCE:
            raise UserError(f"Expected 1 to {MOST_AT_ONCE:,} different rows, got {len(numbers):,}.")
        alarms = self._alarms.some(numbers)
        model = _one_model(alarms)
        if verdict == TRUE:
            kind = _kind(kind or "", known=self._ledger.live_model(model).kinds)
        for alarm in alarms:
            if alarm.verdict is not None and alarm.verdict.verdict in TEACHING:
                what = alarm.verdict.kind or alarm.verdict.verdict
                raise Conflict(
                    f"{alarm.verdict.by} has already judged alarm #{alarm.id} ({what}): undo that "
                    f"first, alone or with its batch."
                )
        return alarms, kind if verdict == TRUE else None


def _one_model(alarms: list[Alarm]) -> str:
    models = {alarm.model for alarm in alarms}
    if len(models) != 1:
        raise UserError(f"Expected rows of one model at a time, got {sorted(models)}.")
    return models.pop()


def _kind(text: str, *, known: Collection[str]) -> str:
    """The name of a kind as it is learnt: one of those known, or a new one."""
    if text in known:
        return text
    kind = checked_name(text, what="a kind name")
    if kind in known:
        return kind
    if kind.casefold() in TRUTHS and not any(name.casefold() in TRUTHS for name in known):
        raise texts.Invalid(
            f"{kind!r} cannot be the name of a new kind: it looks like a yes or no, not like a "
            f"name. Use a word, such as 'forged card'."
        )
    same = [name for name in known if name.casefold() == kind.casefold()]
    if same:
        raise texts.Invalid(f"The kind {same[0]!r} exists and is much like {kind!r}: use it.")
    return kind


def _lesson(alarms: list[Alarm], verdict: str, kind: str | None) -> Lesson:
    """What a verdict teaches; if any row was not drawn at random, none of them calibrates."""
    labels = [kind if verdict == TRUE and kind is not None else NORMAL] * len(alarms)
    judged = not all(alarm.drawn for alarm in alarms)
    return Lesson([alarm.row for alarm in alarms], labels, judged=judged)
