"""Verdicts: what people decide of rows, what that would change, and how it is taken back."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, and_, func, select, update

from eqsep.detector import Detector
from eqsep.errors import UserError
from eqsep.labels import NORMAL, OR, UNSEEN
from eqsep.serve import schema
from eqsep.serve.alarms import Alarms
from eqsep.serve.ledger import ATTEMPTS, Ledger, Moved
from eqsep.serve.log import REVERT, Lesson, Version
from eqsep.serve.people import noted
from eqsep.serve.previews import Learning, Preview, few_rows, preview_of
from eqsep.serve.records import UNSURE, Alarm, Proposal, Verdict, verdict_of
from eqsep.serve.standing import (
    EXPECTED,
    FALSE,
    TEACHING,
    TRUE,
    VERDICTS,
    check_open,
    reconcile,
    reopen,
    take_back,
    unlike,
    write_down,
)
from eqsep.serve.store import Conflict, Missing, Store, now
from eqsep.serve.teaching import after_learning

MOST_AT_ONCE = 1_000  # rows


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
        kind: str | None = None,
        note: str = "",
        by: str,
    ) -> Given:
        """Decide of rows; what that teaches is learnt in the same transaction."""
        alarms = self._judgeable(numbers, verdict, kind)
        model = alarms[0].model
        values = {"verdict": verdict, "kind": kind if verdict == TRUE else None, "note": note}

        def write(connection: Connection, version: int | None, _: Detector | None) -> None:
            check_open(connection, numbers, by)
            write_down(connection, alarms, values | {"by": by, "version": version})

        if verdict in TEACHING:
            told = _told(alarms, verdict, kind)
            lesson = _lesson(alarms, verdict, kind)
            version = self._ledger.learn(model, lesson, by=by, note=told, within=write)
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
        kind: str | None = None,
        note: str = "",
        by: str,
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
            told: dict[str, Any] = {"by": by, "note": note, "within": write, "seen": live}
            try:
                if lesson is None or lesson not in line:  # the model knows nothing of it
                    with self._store.writing() as connection:
                        write(connection)
                elif self._is_whole(lesson, numbers) and line[-1] == lesson:
                    self._ledger.revert(model, line[-2], **told)
                else:
                    learnt = self._ledger.lesson(lesson)
                    gone = Lesson(
                        [alarm.row for alarm in alarms],
                        [verdict.kind or NORMAL for verdict in verdicts],
                        judged=learnt is None or learnt.judged,
                    )
                    self._ledger.forget(model, gone, **told)
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
        table = schema.verdicts
        with self._store.reading() as connection:
            row = connection.execute(select(table).where(table.c.id == number)).first()
        if row is None:
            raise Missing(f"There is no verdict {number}.")
        return verdict_of(row)

    def of_row(self, number: int) -> list[Verdict]:
        """All verdicts on a row, those taken back too, the newest first."""
        table = schema.verdicts
        query = select(table).where(table.c.row == number).order_by(table.c.id.desc())
        with self._store.reading() as connection:
            return [verdict_of(row) for row in connection.execute(query)]

    def latest(self, model: str, *, limit: int = 50) -> list[Verdict]:
        """The latest verdicts on rows of a model, the newest first."""
        table = schema.verdicts
        query = select(table).where(table.c.model == model).order_by(table.c.id.desc())
        with self._store.reading() as connection:
            return [verdict_of(row) for row in connection.execute(query.limit(limit))]

    def together(self, model: str, *, limit: int = 10) -> list[list[Verdict]]:
        """The latest verdicts, those that were given and taken back at once together."""
        table = schema.verdicts
        parts = (table.c.at, table.c.by, table.c.undone_at)
        newest = func.max(table.c.id)
        query = select(*parts).where(table.c.model == model).group_by(*parts)
        with self._store.reading() as connection:
            keys = connection.execute(query.order_by(newest.desc()).limit(limit)).all()
            return [
                [
                    verdict_of(row)
                    for row in connection.execute(
                        select(table)
                        .where(table.c.model == model, table.c.at == at, table.c.by == by)
                        .where(table.c.undone_at.is_not_distinct_from(undone_at))
                        .order_by(table.c.id.desc())
                    )
                ]
                for at, by, undone_at in keys
            ]

    def given_with(self, verdict: Verdict) -> list[Verdict]:
        """The verdicts that were given together with one, it among them, and stand."""
        table = schema.verdicts
        model = select(table.c.model).where(table.c.id == verdict.id).scalar_subquery()
        same = and_(table.c.model == model, table.c.at == verdict.at, table.c.by == verdict.by)
        query = select(table).where(same, table.c.undone_at.is_(None)).order_by(table.c.id)
        with self._store.reading() as connection:
            return [verdict_of(row) for row in connection.execute(query)]

    def last_given(self, model: str) -> list[Verdict]:
        """The verdicts that were given together last, and stand: what an undo takes back."""
        groups = self.together(model, limit=50)
        return next((group for group in groups if group[0].undone_at is None), [])

    def _is_whole(self, lesson: int, numbers: Sequence[int]) -> bool:
        """Whether these verdicts are all that a version has learnt."""
        table = schema.verdicts
        with self._store.reading() as connection:
            there = connection.execute(select(table.c.id).where(table.c.version == lesson))
            return set(there.scalars()) == set(numbers)

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
    """What a verdict teaches."""
    label = kind if verdict == TRUE and kind is not None else NORMAL
    return Lesson([a.row for a in alarms], [label] * len(alarms), judged=_is_judged(alarms))


def _is_judged(alarms: Iterable[Alarm]) -> bool:
    """Whether some were judged since they stood out: then none calibrates."""
    return not all(alarm.drawn for alarm in alarms)


def _told(alarms: list[Alarm], verdict: str, kind: str | None) -> str:
    count = "1 row" if len(alarms) == 1 else f"{len(alarms):,} rows"
    return f"{count}: {verdict}" if verdict == FALSE else f"{count}: {kind}"
