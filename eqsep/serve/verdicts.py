"""Verdicts: what people decide about rows, what that would change, and how it is undone."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, insert, null, select, update

from eqsep.detector import Detector
from eqsep.detector.model import Model
from eqsep.detector.namer import rows_for as rows_needed
from eqsep.errors import UserError
from eqsep.labels import NORMAL, OR, UNSEEN
from eqsep.serve import schema
from eqsep.serve.alarms import (
    EXPECTED,
    FALSE,
    JUDGED,
    OPEN,
    TRUE,
    UNSURE,
    Alarm,
    Alarms,
    Proposal,
    Said,
    Verdict,
    said_of,
    verdict_of,
)
from eqsep.serve.ledger import (
    ATTEMPTS,
    REVERT,
    Ledger,
    Lesson,
    Moved,
    Version,
    after_learning,
    lineage,
    rows_for,
)
from eqsep.serve.people import noted
from eqsep.serve.store import Conflict, Missing, Store, now

VERDICTS = (TRUE, FALSE, EXPECTED, UNSURE)
TEACHING = (TRUE, FALSE)
NOT_NAMED = ""  # the kind of an alarm whose name was not asked for
MOST_AT_ONCE = 1_000  # rows


def check_open(connection: Connection, numbers: Sequence[int], by: str) -> None:
    """See that nobody was first; what taught nothing makes way."""
    table = schema.verdicts
    standing = and_(table.c.row.in_(numbers), table.c.undone_at.is_(None))
    taught = select(table.c.row, table.c.by).where(standing, table.c.verdict.in_(TEACHING))
    first = connection.execute(taught).first()
    if first is not None:
        raise Conflict(f"Row {first.row} was judged by {first.by} just now: look at it again.")
    connection.execute(update(table).where(standing).values(undone_at=now(), undone_by=by))


def write_down(connection: Connection, alarms: list[Alarm], values: dict[str, object]) -> None:
    """Write verdicts, and the new state of their rows."""
    at = now()
    connection.execute(
        insert(schema.verdicts),
        [{"row": alarm.id, "model": alarm.model, "at": at} | values for alarm in alarms],
    )
    logged = {key: values[key] for key in ("verdict", "kind", "version")}
    rows = [alarm.id for alarm in alarms]
    connection.execute(noted(str(values["by"]), "verdict", rows=rows, **logged))
    state = UNSURE if values["verdict"] == UNSURE else JUDGED
    among = schema.rows.c.id.in_(rows)
    connection.execute(update(schema.rows).where(among).values(state=state, proposal=null()))


def take_back(connection: Connection, numbers: Sequence[int], by: str, version: int | None) -> None:
    """Write down that verdicts stand no more, once a version has forgotten them."""
    table = schema.verdicts
    mine = and_(table.c.id.in_(numbers), table.c.undone_at.is_(None))
    values = {"undone_at": now(), "undone_by": by, "undone_version": version}
    gone = connection.execute(update(table).where(mine).values(**values))
    if gone.rowcount != len(numbers):
        raise Conflict("Somebody has taken one of these verdicts back just now: look again.")
    connection.execute(noted(by, "undone", verdicts=list(numbers)))


def reopen(connection: Connection, rows: Sequence[int]) -> None:
    """Open rows again; the live version has not looked at them meanwhile."""
    among = schema.rows.c.id.in_(rows)
    connection.execute(update(schema.rows).where(among).values(state=OPEN, now_version=0))


def unlike(connection: Connection, model: str, version: int) -> list[Any]:
    """The verdicts that stand and would not by a version, and those that would and do not."""
    table = schema.verdicts
    line = set(lineage(connection, version))
    query = select(table).where(table.c.model == model, table.c.version.is_not(None))
    return [
        row
        for row in connection.execute(query)
        if (row.version in line and row.undone_version not in line) != (row.undone_at is None)
    ]


def reconcile(connection: Connection, model: str, version: int, by: str) -> None:
    """Let those verdicts stand that a version has learnt and not forgotten, and no others."""
    table = schema.verdicts
    for row in unlike(connection, model, version):
        stands = row.undone_at is not None
        values: dict[str, Any] = {"undone_at": None, "undone_by": None, "undone_version": None}
        if not stands:
            values |= {"undone_at": now(), "undone_by": by}
        connection.execute(update(table).where(table.c.id == row.id).values(**values))
        if stands:
            judged = update(schema.rows).where(schema.rows.c.id == row.row).values(state=JUDGED)
            connection.execute(judged)
        else:
            reopen(connection, [row.row])


@dataclass(frozen=True)
class Change:
    """A row, and what its score and name would be."""

    alarm: Alarm
    then: Said

    @property
    def is_renamed(self) -> bool:
        """Whether an alarm stays one, under another name."""
        now, then = self.alarm.now, self.then
        return now.alarm and then.alarm and now.kind != then.kind


@dataclass(frozen=True)
class Fit:
    """How well a row fits a kind."""

    # the p-value of "it is of this kind": the share of the rows learnt of it that are as unlike it
    # as this row, or more. None where the kind was not known.
    before: float | None
    after: float | None
    n_rows: int  # how many rows, or groups of rows, of the kind there are to compare with, after
    n_needed: int  # from how many on its name comes with a promise

    @property
    def is_short(self) -> bool:
        """Whether the kind has too few rows for a promise."""
        return self.n_rows < self.n_needed


@dataclass(frozen=True)
class Preview:
    """What verdicts would change."""

    rows: list[Change]  # the rows that they are of
    # open alarms that would be none, rows that pass and would not, and alarms that would get
    # another name; among the newest rows that are kept
    goes: list[Change]
    rises: list[Change]
    renamed: list[Change]
    n_looked_at: int  # how many these are
    fits: dict[str, Fit]  # how well the first row fits each kind
    threshold: tuple[float, float]  # before and after
    warnings: tuple[str, ...]  # what is to be known before it is done


@dataclass(frozen=True)
class Learning:
    """A model before and after a lesson, with the warnings; `named` also asks for its names."""

    before: Model
    after: Model
    warnings: tuple[str, ...] = ()
    named: bool = True


def preview_of(learning: Learning, alarms: list[Alarm], others: list[Alarm]) -> Preview:
    """What a lesson on rows would change for them and for the others.

    Where names are not asked for, scores and alarms are exact all the same.
    """
    changes = _changes(learning, others)
    rows = _changes(learning, alarms)
    return Preview(
        rows=rows,
        goes=[c for c in changes if c.alarm.now.alarm and not c.then.alarm],
        rises=[c for c in changes if c.then.alarm and not c.alarm.now.alarm],
        renamed=[c for c in changes if learning.named and c.is_renamed],
        n_looked_at=len(others),
        fits=_fits(learning, alarms[0]) if learning.named else {},
        threshold=(learning.before.threshold, learning.after.threshold),
        warnings=learning.warnings,
    )


def fits_now(model: Model, alarm: Alarm) -> dict[str, Fit]:
    """How well a row fits each kind by a model, the best first."""
    found = _fits(Learning(model, model), alarm)
    return dict(sorted(found.items(), key=lambda one: -(one[1].after or 0.0)))


def few_rows(model: Model, kind: str) -> str | None:
    """What is to be known of a kind with too few rows for a promise on its name."""
    if not model.namer.has_promise:
        return None
    rate = model.promise.unseen_rate
    n, needed = model.evidence.kinds.n_units(kind), rows_needed(rate)
    if n >= needed:
        return None
    return (
        f"Few rows of {kind!r} so far: {n} with these. From {needed} on, at most "
        f"{rate:.0%} of its alarms are called unseen; until then more may be, and "
        f"names may change with each verdict."
    )


def _changes(learning: Learning, alarms: Sequence[Alarm]) -> list[Change]:
    if not alarms:
        return []
    rows = [alarm.row for alarm in alarms]
    answer = said_of if learning.named else _scored
    then = answer(learning.after, alarms[0].now.version, rows)
    return [Change(alarm, one) for alarm, one in zip(alarms, then, strict=True)]


def _scored(model: Model, number: int, rows: list[dict[str, object]]) -> list[Said]:
    """What a version says of rows, without names."""
    scores = model.scores(rows_for(model, rows))
    columns = (scores, model.calibration.p_value(scores), scores > model.threshold)
    return [
        Said(number, score, p_value, alarm, NOT_NAMED if alarm else NORMAL)
        for score, p_value, alarm in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _fits(learning: Learning, alarm: Alarm) -> dict[str, Fit]:
    before, after = (_p_values(one, alarm) for one in (learning.before, learning.after))
    needed = rows_needed(learning.after.promise.unseen_rate)
    kept = learning.after.evidence.kinds
    return {
        kind: Fit(before.get(kind), after.get(kind), kept.n_units(kind), needed)
        for kind in {**before, **after}
    }


def _p_values(model: Model, alarm: Alarm) -> dict[str, float]:
    """Of a row, for each kind that has rows to compare with."""
    if not model.namer.has_promise or not model.kinds:
        return {}
    row = model.plan.encode(rows_for(model, [alarm.row]))
    found = zip(model.kinds, model.kind_p_values(row)[0].tolist(), strict=True)
    return {kind: p for kind, p in found if model.evidence.kinds.n_units(kind)}


@dataclass(frozen=True)
class Given:
    """What verdicts have done: themselves, and the version that is live now."""

    verdicts: list[Verdict]
    version: Version


class Verdicts:
    """The verdicts of a store, which teach its models.

    A true alarm teaches its row with its kind, a false one teaches it as a normal row. Rows that
    were judged because they raised an alarm never calibrate; one that was drawn at random may. What
    was expected, and what nobody is sure of, teaches nothing.
    """

    def __init__(self, store: Store, ledger: Ledger, alarms: Alarms) -> None:
        self._store, self._ledger, self._alarms = store, ledger, alarms

    def preview(
        self, numbers: Sequence[int], verdict: str, *, kind: str | None = None, named: bool = True
    ) -> Preview:
        """What a verdict on rows would change; nothing is kept.

        Names take longest, as what tells the kinds apart is made again; without `named` there are
        scores and alarms alone, and no warnings.
        """
        alarms = self._judgeable(numbers, verdict, kind)
        others = [
            alarm for alarm in self._alarms.looked_at(alarms[0].model) if alarm.id not in numbers
        ]
        live = self._ledger.in_use(alarms[0].model)[0]
        before = self._ledger.detector(live).model_
        learning = Learning(before, before)
        if verdict in TEACHING:
            lesson = _lesson(alarms, verdict, kind)
            if named:
                made, warnings = self._ledger.learnt(live, lesson)
                after = made.model_
                few = few_rows(after, kind) if verdict == TRUE and kind is not None else None
                learning = Learning(before, after, (*warnings, *([few] if few else [])))
            else:
                learning = Learning(before, after_learning(before, lesson), named=False)
        return preview_of(learning, alarms, others)

    def give(
        self,
        numbers: Sequence[int],
        verdict: str,
        *,
        by: str,
        kind: str | None = None,
        note: str = "",
    ) -> Given:
        """Decide of rows; what that teaches is learnt in the same transaction."""
        alarms = self._judgeable(numbers, verdict, kind)
        model = alarms[0].model
        values = {"verdict": verdict, "kind": kind if verdict == TRUE else None, "note": note}

        def write(connection: Connection, version: int | None, _: Detector | None) -> None:
            check_open(connection, numbers, by)
            write_down(connection, alarms, values | {"by": by, "version": version})

        if verdict in TEACHING:
            summary = _summary(alarms, verdict, kind)
            lesson = _lesson(alarms, verdict, kind)
            version = self._ledger.learn(model, lesson, by=by, note=summary, within=write)
        else:
            with self._store.writing() as connection:
                write(connection, None, None)
            version = self._ledger.live(model)
        given = [a.verdict for a in self._alarms.some(numbers) if a.verdict is not None]
        return Given(given, version)

    def propose(
        self,
        numbers: Sequence[int],
        verdict: str,
        *,
        by: str,
        kind: str | None = None,
        note: str = "",
    ) -> None:
        """Propose a verdict, which a person may give; it replaces one proposed before."""
        self._judgeable(numbers, verdict, kind)
        proposal = Proposal(verdict, kind if verdict == TRUE else None, note, by, now())
        among = schema.rows.c.id.in_(numbers)
        with self._store.writing() as connection:
            connection.execute(update(schema.rows).where(among).values(proposal=asdict(proposal)))

    def undo(self, numbers: Sequence[int], *, by: str) -> Version:
        """Take verdicts back, all of one model; the version that is live then.

        Where they are all that the model was taught last, it goes back to the very version before.
        What was taught earlier is forgotten: its sums are subtracted.
        """
        verdicts = [self.get(number) for number in numbers]
        for verdict in verdicts:
            if verdict.undone_at is not None:
                raise Conflict(f"Verdict {verdict.id} was taken back by {verdict.undone_by}.")
        model = _one_model(self._alarms.some([verdict.row for verdict in verdicts]))
        lessons = {verdict.version for verdict in verdicts}
        for lesson in sorted(lessons, key=lambda version: -(version or 0)):  # the newest first
            self._undo(model, [v for v in verdicts if v.version == lesson], by)
        return self._ledger.live(model)

    def _undo(self, model: str, verdicts: list[Verdict], by: str) -> None:
        """Take back verdicts of one lesson."""
        alarms = self._alarms.some([verdict.row for verdict in verdicts])
        numbers, lesson = [verdict.id for verdict in verdicts], verdicts[0].version
        note = f"verdicts taken back: {', '.join(map(str, numbers))}"

        def write(connection: Connection, version: int | None = None, *_: object) -> None:
            take_back(connection, numbers, by, version)
            reopen(connection, [alarm.id for alarm in alarms])

        for _ in range(ATTEMPTS):
            live = self._ledger.in_use(model)[0]
            line = self._ledger.lineage(live)
            options: dict[str, Any] = {"by": by, "note": note, "within": write, "seen": live}
            try:
                if lesson is None or lesson not in line:  # the model knows nothing of it
                    with self._store.writing() as connection:
                        write(connection)
                elif self._is_whole(lesson, numbers) and line[-1] == lesson:
                    self._ledger.revert(model, line[-2], **options)
                else:
                    learnt = self._ledger.lesson(lesson)
                    gone = Lesson(
                        [alarm.row for alarm in alarms],
                        [verdict.kind or NORMAL for verdict in verdicts],
                        judged=learnt is None or learnt.judged,
                    )
                    self._ledger.forget(model, gone, **options)
                return
            except Moved:
                continue
        raise Conflict(f"Others change the model {model!r} all the time: try again.")

    def revert(self, model: str, version: int, *, by: str) -> Version:
        """Go back to a version: the verdicts stand that it has learnt, and no others."""

        def write(connection: Connection, number: int, _: Detector) -> None:
            reconcile(connection, model, number, by)
            connection.execute(noted(by, REVERT, model=model, version=number, to=version))

        return self._ledger.revert(model, version, by=by, within=write)

    def swayed(self, model: str, version: int) -> tuple[int, int]:
        """How many verdicts going back would reopen, and how many would stand again."""
        with self._store.reading() as connection:
            stands = [row.undone_at is None for row in unlike(connection, model, version)]
        return stands.count(True), stands.count(False)

    def get(self, number: int) -> Verdict:
        """The verdict of a number."""
        found = self._found(schema.verdicts.c.id == number)
        if not found:
            raise Missing(f"There is no verdict {number}.")
        return found[0]

    def of_row(self, number: int) -> list[Verdict]:
        """All verdicts on a row, those taken back too, the newest first."""
        return self._found(schema.verdicts.c.row == number)

    def latest(self, model: str, *, limit: int = 50) -> list[Verdict]:
        """The latest verdicts on rows of a model, the newest first."""
        return self._found(schema.verdicts.c.model == model, limit=limit)

    def together(self, model: str, *, limit: int = 10) -> list[list[Verdict]]:
        """The latest verdicts, those that were given and taken back at once together."""
        table = schema.verdicts
        parts = (table.c.at, table.c.by, table.c.undone_at)
        mine = table.c.model == model
        query = select(*parts).where(mine).group_by(*parts).order_by(func.max(table.c.id).desc())
        return [
            self._found(
                mine,
                table.c.at == at,
                table.c.by == by,
                table.c.undone_at.is_not_distinct_from(undone_at),
            )
            for at, by, undone_at in self._store.rows(query.limit(limit))
        ]

    def given_with(self, verdict: Verdict) -> list[Verdict]:
        """The verdicts that were given together with one, it among them, and stand."""
        table = schema.verdicts
        model = select(table.c.model).where(table.c.id == verdict.id).scalar_subquery()
        same = and_(table.c.model == model, table.c.at == verdict.at, table.c.by == verdict.by)
        return self._found(same, table.c.undone_at.is_(None))[::-1]

    def last_given(self, model: str) -> list[Verdict]:
        """The verdicts that were given together last, and stand: what an undo takes back."""
        groups = self.together(model, limit=50)
        return next((group for group in groups if group[0].undone_at is None), [])

    def _is_whole(self, lesson: int, numbers: Sequence[int]) -> bool:
        """Whether these verdicts are all that a version has learnt."""
        taught = self._found(schema.verdicts.c.version == lesson)
        return {verdict.id for verdict in taught} == set(numbers)

    def _found(self, *where: ColumnElement[bool], limit: int | None = None) -> list[Verdict]:
        """The verdicts for which all of this holds, the newest first."""
        table = schema.verdicts
        query = select(table).where(*where).order_by(table.c.id.desc()).limit(limit)
        return [verdict_of(row) for row in self._store.rows(query)]

    def _judgeable(self, numbers: Sequence[int], verdict: str, kind: str | None) -> list[Alarm]:
        """The rows that a verdict is on, or why it cannot be."""
        if verdict not in VERDICTS:
            raise UserError(f"A verdict is one of {', '.join(VERDICTS)}; got {verdict!r}.")
        if not 0 < len(set(numbers)) == len(numbers) <= MOST_AT_ONCE:
            raise UserError(
                f"Expected 1 to {MOST_AT_ONCE:,} different rows to judge, got {len(numbers):,}."
            )
        alarms = self._alarms.some(numbers)
        model = _one_model(alarms)
        if verdict == TRUE:
            live = self._ledger.in_use(model)[0]
            _check_kind(kind, known=self._ledger.detector(live).kinds_)
        for alarm in alarms:
            if alarm.verdict is not None and alarm.verdict.verdict in TEACHING:
                raise Conflict(
                    f"Row {alarm.id} was judged by {alarm.verdict.by} already "
                    f"({alarm.verdict.verdict}): take that back first, alone or with its batch."
                )
        return alarms


def _one_model(alarms: list[Alarm]) -> str:
    models = {alarm.model for alarm in alarms}
    if len(models) != 1:
        raise UserError(f"Expected rows of one model at a time, got {sorted(models)}.")
    return models.pop()


def _check_kind(kind: str | None, *, known: Iterable[str]) -> None:
    reserved = (NORMAL, UNSEEN, FALSE, EXPECTED, UNSURE)
    if not kind or not kind.strip() or kind != kind.strip() or len(kind) > 100:
        raise UserError(f"A true alarm needs the name of its kind, up to 100 characters: {kind!r}.")
    if kind.casefold() in reserved or OR in kind or not kind.isprintable():
        raise UserError(
            f"{kind!r} cannot be the name of a kind: {', '.join(reserved)} and names with "
            f"{OR.strip()!r} in them have a meaning of their own. Choose another."
        )
    same = [name for name in known if name.casefold() == kind.casefold() and name != kind]
    if same:
        raise UserError(f"There is a kind {same[0]!r}, which {kind!r} would be taken for: use it.")


def _lesson(alarms: list[Alarm], verdict: str, kind: str | None) -> Lesson:
    """What a verdict teaches; none of the rows calibrates where some stood out."""
    label = kind if verdict == TRUE and kind is not None else NORMAL
    judged = not all(alarm.drawn for alarm in alarms)
    return Lesson([alarm.row for alarm in alarms], [label] * len(alarms), judged=judged)


def _summary(alarms: list[Alarm], verdict: str, kind: str | None) -> str:
    count = "1 row" if len(alarms) == 1 else f"{len(alarms):,} rows"
    return f"{count}: {verdict}" if verdict == FALSE else f"{count}: {kind}"
