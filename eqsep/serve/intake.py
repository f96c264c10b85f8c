"""The intake: rows come, are scored, and those to be looked at are kept."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from eqsep.detector.explainer import Explanation
from eqsep.detector.model import Model, Verdicts
from eqsep.errors import ParameterError, UserError
from eqsep.serve import schema
from eqsep.serve.ledger import Ledger, Row, rows_for
from eqsep.serve.runs import OpenRuns
from eqsep.serve.store import Store, now
from eqsep.serve.watching import Watching

MOST_QUIET = 20_000  # rows of a model that raised no alarm and that nobody has judged
_CLEARED_EVERY = 1_000  # such rows


@dataclass(frozen=True)
class Answer:
    """The answer to a row."""

    score: float = math.nan
    p_value: float = math.nan
    alarm: bool = False
    kind: str = ""  # "normal", a seen kind, several ("a or b"), or "unseen"
    version: int = 0  # that scored it
    id: int | None = None  # by which the row is found again, where it is kept
    error: str | None = None  # why it cannot be scored


class Intake:
    """Scores rows by the live version of a model, and keeps alarms and some rows that pass.

    A share of `keep_quiet` of the rows that raise no alarm is kept, drawn at random. Half of them
    are offered to be judged: these measure what is missed, and may calibrate.

    Examples
    --------
    >>> from eqsep import Detector
    >>> rows = [{"x": float(x)} for x in np.random.default_rng(0).normal(size=600)]
    >>> store = Store("sqlite://")
    >>> ledger = Ledger(store)
    >>> detector = Detector(bandwidth=1.0, n_landmarks=30, random_state=0).fit(rows)
    >>> version = ledger.add("pump", detector, by="ada")
    >>> intake = Intake(store, ledger, Watching(store, ledger))
    >>> answer, = intake.take("pump", [{"x": 9.0}])
    >>> answer.alarm, answer.kind, answer.id
    (True, 'unseen', 1)
    """

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        watching: Watching,
        *,
        keep_quiet: float = 0.05,
        random_state: int | None = None,
    ) -> None:
        if not 0 <= keep_quiet <= 1:
            raise ParameterError("keep_quiet", expected="a share between 0 and 1", got=keep_quiet)
        self._store, self._ledger, self._watching = store, ledger, watching
        self.keep_quiet = keep_quiet
        self._rng = np.random.default_rng(random_state)
        self._kept_quiet = 0
        self._lock = threading.Lock()

    def score(self, name: str, rows: list[Row], *, version: int | None = None) -> list[Answer]:
        """What a version, by default the live one, says of rows; nothing is kept."""
        number = self._ledger.in_use(name)[0] if version is None else version
        model = self._ledger.detector(number).model_
        found = self._extended(name, model, rows)
        good = [row for row in found if not isinstance(row, str)]
        answers = iter(_answers(_judged(model, good).verdicts, number) if good else [])
        return [Answer(error=row) if isinstance(row, str) else next(answers) for row in found]

    def explain(self, name: str, rows: list[Row], *, top: int) -> list[Explanation | str]:
        """Why each row has its score by the live version, or why it has none; nothing is kept."""
        model = self._ledger.live_detector(name).model_
        found = self._extended(name, model, rows)
        good = [row for row in found if not isinstance(row, str)]
        why = iter(model.explain(rows_for(model, good), top=top) if good else [])
        return [row if isinstance(row, str) else next(why) for row in found]

    def _extended(self, name: str, model: Model, rows: list[Row]) -> Sequence[Row | str]:
        """Rows with their windows, where the model takes some, or why a row cannot have them."""
        if model.plan.windows is None:
            return rows
        with self._store.reading() as connection:
            return OpenRuns(connection, name, model).extended(rows)

    def take(self, name: str, rows: list[Row]) -> list[Answer]:
        """Score rows, and keep those to be looked at; that is done once this returns.

        A row that cannot be scored gets an error of its own, and the others are served. Rows of a
        model with windows go one after the other, whoever sends them.
        """
        live, shadow, settings = self._ledger.in_use(name)
        model = self._ledger.detector(live).model_
        second = None if shadow is None else self._ledger.detector(shadow).model_
        if model.plan.windows is None:
            scored = _Scored.of(model, second, rows)
            with self._store.writing() as connection:
                ids = self._kept(connection, name, live, scored, settings)
        else:
            with self._store.writing() as connection:
                runs = OpenRuns(connection, name, model)
                runs.lock()
                scored = _Scored.of(model, second, runs.extended(rows))
                ids = self._kept(connection, name, live, scored, settings)
                runs.save()
        found = {i: Answer(error=error) for i, error in scored.errors.items()}
        if scored.judged is not None:
            answers = _answers(scored.judged.verdicts, live)
            for i, answer, number in zip(scored.places, answers, ids, strict=True):
                found[i] = replace(answer, id=number)
            self._watching.update(name, live, scored.rows, *scored.judged)
        return [found[i] for i in range(len(rows))]

    def _kept(
        self,
        connection: Connection,
        name: str,
        version: int,
        scored: "_Scored",
        settings: dict[str, Any],
    ) -> list[int | None]:
        """Write rows that are kept, and count all; the number of each that is."""
        if scored.judged is None:
            return []
        rows, shadow = scored.rows, scored.shadow
        answers = _answers(scored.judged.verdicts, version)
        with self._lock:
            draw = self._rng.random(len(rows)).tolist()
        keep = [a.alarm or d < self.keep_quiet for a, d in zip(answers, draw, strict=True)]
        entity = settings.get("entity")
        values = [
            _values(name, rows[i], answers[i], entity)
            | {
                "drawn": not answers[i].alarm and draw[i] < self.keep_quiet / 2,
                "shadow_score": None if shadow is None else float(shadow.score[i]),
            }
            for i in range(len(rows))
            if keep[i]
        ]
        counted = {
            "rows": len(rows),
            "alarms": sum(answer.alarm for answer in answers),
            "shadow_alarms": 0 if shadow is None else int(shadow.alarm.sum()),
        }
        numbers = iter(_insert(connection, values))
        self._watching.count(connection, name, version, counted)
        self._kept_quiet += len(values) - counted["alarms"]
        if self._kept_quiet >= _CLEARED_EVERY:
            self._kept_quiet = 0
            _clear(connection, name)
        return [next(numbers) if kept else None for kept in keep]


class _Judged(NamedTuple):
    """Encoded rows, and the verdicts on them."""

    encoded: np.ndarray
    verdicts: Verdicts


def _judged(model: Model, rows: list[Row]) -> _Judged:
    encoded = model.plan.encode(rows_for(model, rows))
    return _Judged(encoded, model.judge(encoded))


def _answers(verdicts: Verdicts, number: int) -> list[Answer]:
    columns = zip(*(column.tolist() for column in verdicts), strict=True)
    return [Answer(score, p, alarm, kind, number) for score, p, alarm, kind in columns]


@dataclass(frozen=True)
class _Scored:
    """The rows of a batch that can be scored, their places in it, and errors of the others."""

    rows: list[Row]
    places: list[int]
    judged: _Judged | None
    shadow: Verdicts | None
    errors: dict[int, str]

    @classmethod
    def of(cls, model: Model, shadow: Model | None, found: Sequence[Row | str]) -> Self:
        errors = {i: row for i, row in enumerate(found) if isinstance(row, str)}
        rows = {i: row for i, row in enumerate(found) if not isinstance(row, str)}
        judged = None
        try:
            judged = _judged(model, [*rows.values()]) if rows else None
        except UserError as error:
            if len(rows) == 1:
                errors |= dict.fromkeys(rows, str(error))
            else:
                for i, row in rows.items():
                    alone = cls.of(model, None, [row]).errors
                    errors |= {i: alone[0]} if alone else {}
            rows = {i: row for i, row in rows.items() if i not in errors}
            judged = _judged(model, [*rows.values()]) if rows else None
        second = None if shadow is None or not rows else _judged(shadow, [*rows.values()]).verdicts
        return cls([*rows.values()], [*rows], judged, second, errors)


def _values(name: str, row: Row, answer: Answer, entity: str | None) -> dict[str, Any]:
    """A row as it is kept."""
    verdict = {key: getattr(answer, key) for key in ("score", "p_value", "kind", "alarm")}
    who = None if entity is None or row.get(entity) is None else str(row[entity])[:200]
    return (
        {"model": name, "version": answer.version, "at": now(), "row": row, "entity": who}
        | verdict
        | {"state": "open", "note": "", "now_version": answer.version}
        | {f"now_{key}": value for key, value in verdict.items()}
    )


def _insert(connection: Connection, values: list[dict[str, Any]]) -> list[int]:
    if not values:
        return []
    table = schema.rows
    statement = insert(table).returning(table.c.id, sort_by_parameter_order=True)
    return list(connection.execute(statement, values).scalars())


def _clear(connection: Connection, name: str) -> None:
    """Let the oldest rows go that raised no alarm and that nobody has judged."""
    table = schema.rows
    quiet = (table.c.model == name) & ~table.c.alarm & (table.c.state == "open")
    newest = select(table.c.id).where(quiet).order_by(table.c.id.desc())
    last = connection.execute(newest.offset(MOST_QUIET).limit(1)).scalar()
    if last is not None:
        connection.execute(delete(table).where(quiet & (table.c.id <= last)))
