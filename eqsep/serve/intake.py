"""The intake: rows come, are scored, and those to be looked at are stored."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from eqsep.detector.explainer import Explanation
from eqsep.detector.model import VERDICTS, Model, Verdicts
from eqsep.errors import ParameterError, UserError
from eqsep.serve import schema
from eqsep.serve.alarms import EXEMPT, OPEN
from eqsep.serve.exemptions import Exemption, in_force
from eqsep.serve.ledger import Ledger, Row, entity_column, rows_for
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
    kind: str = ""  # "normal", a seen kind, or "unseen"
    version: int = 0  # that scored it
    id: int | None = None  # of the row, where it is stored
    error: str | None = None  # why it cannot be scored
    kind_probability: float | None = None  # that the kind of an alarm is right


class _Scored(NamedTuple):
    """Rows, with an error in place of each that cannot be scored, and verdicts on the others."""

    rows: Sequence[Row | str]
    good: list[Row]
    encoded: np.ndarray
    verdicts: Verdicts | None  # None without good rows
    shadow: Verdicts | None  # of the shadow model, if there is one


def _scored(model: Model, rows: Sequence[Row | str], shadow: Model | None = None) -> _Scored:
    good = [row for row in rows if not isinstance(row, str)]
    if not good:
        return _Scored(rows, good, np.empty(0), None, None)
    try:
        encoded = model.plan.encode(rows_for(model, good))
        second = None if shadow is None else _scored(shadow, good).verdicts
        return _Scored(rows, good, encoded, model.judge(encoded), second)
    except UserError as error:
        if len(rows) == 1:
            return _scored(model, [str(error)])
        alone = [_scored(model, [row]).rows[0] for row in rows]
        if alone == [*rows]:  # each is good, but not together
            raise
        return _scored(model, alone, shadow)


def _answers(verdicts: Verdicts | None, version: int) -> list[Answer]:
    return [] if verdicts is None else [Answer(**one, version=version) for one in verdicts.each()]


def _spread(rows: Sequence[Row | str], answers: Sequence[Answer]) -> list[Answer]:
    """An answer for each row, in order: the next one for a good row, its error for another."""
    following = iter(answers)
    return [Answer(error=row) if isinstance(row, str) else next(following) for row in rows]


class Intake:
    """Scores rows by the live version of a model, and stores alarms and some rows that pass.

    A random share `keep_quiet` of the rows that raise no alarm is stored. Half of these are offered
    to be judged: they measure what is missed, and may calibrate.
    """

    def __init__(
        self, store: Store, ledger: Ledger, watching: Watching, *, keep_quiet: float
    ) -> None:
        if not 0 <= keep_quiet <= 1:
            raise ParameterError("keep_quiet", expected="a share between 0 and 1", got=keep_quiet)
        self._store, self._ledger, self._watching = store, ledger, watching
        self._keep_quiet = keep_quiet
        self._rng = np.random.default_rng()
        self._n_quiet = 0  # stored since the oldest were last cleared
        self._lock = threading.Lock()

    def score(self, name: str, rows: list[Row], *, version: int | None = None) -> list[Answer]:
        """The answers of a version, by default the live one; nothing is stored."""
        number = self._ledger.in_use(name)[0] if version is None else version
        model = self._ledger.detector(number).model_
        scored = _scored(model, self._extended(name, model, rows))
        return _spread(scored.rows, _answers(scored.verdicts, number))

    def explain(self, name: str, rows: list[Row], *, top: int) -> list[Explanation | str]:
        """Why each row has its score by the live version, or why it has none; nothing is stored."""
        model = self._ledger.live_detector(name).model_
        found = self._extended(name, model, rows)
        good = [row for row in found if not isinstance(row, str)]
        why = iter(model.explain(rows_for(model, good), top=top) if good else [])
        return [row if isinstance(row, str) else next(why) for row in found]

    def _extended(self, name: str, model: Model, rows: list[Row]) -> Sequence[Row | str]:
        """Rows with their windows, if the model has any, or why a row cannot have them."""
        if model.plan.windows is None:
            return rows
        with self._store.reading() as connection:
            return OpenRuns(connection, name, model).extended(rows)

    def take(self, name: str, rows: list[Row]) -> list[Answer]:
        """Score rows, and store those to be looked at before this returns.

        A row that cannot be scored gets an error of its own. Rows of a model with windows are taken
        one request after the other.
        """
        live, shadow, settings = self._ledger.in_use(name)
        model = self._ledger.detector(live).model_
        second = None if shadow is None else self._ledger.detector(shadow).model_
        if model.plan.windows is None:
            scored = _scored(model, rows, second)
            with self._store.writing(synced=False) as connection:
                answers = self._stored(connection, name, live, scored, settings)
        else:
            with self._store.writing(synced=False) as connection:
                runs = OpenRuns(connection, name, model)
                runs.lock()
                scored = _scored(model, runs.extended(rows), second)
                answers = self._stored(connection, name, live, scored, settings)
                runs.save()
        if scored.verdicts is not None:
            self._watching.update(name, live, scored.good, scored.encoded, scored.verdicts)
        return _spread(scored.rows, answers)

    def _stored(
        self,
        connection: Connection,
        name: str,
        version: int,
        scored: _Scored,
        settings: dict[str, Any],
    ) -> list[Answer]:
        """Count rows and store some; the answers to all, with the numbers of those stored."""
        if scored.verdicts is None:
            return []
        answers, shadow = _answers(scored.verdicts, version), scored.shadow
        with self._lock:
            draws = self._rng.random(len(answers)).tolist()
        entity = entity_column(settings, self._ledger.detector(version).plan_)
        stored = [i for i, a in enumerate(answers) if a.alarm or draws[i] < self._keep_quiet]
        values = [
            _values(name, scored.good[i], answers[i], entity)
            | {
                "drawn": not answers[i].alarm and draws[i] < self._keep_quiet / 2,
                "shadow_score": None if shadow is None else float(shadow.score[i]),
            }
            for i in stored
        ]
        if any(value["alarm"] for value in values):
            _exempt(values, in_force(connection, name))
        if values:
            table = schema.rows
            statement = insert(table).returning(table.c.id, sort_by_parameter_order=True)
            numbers = connection.execute(statement, values).scalars()
            for i, number in zip(stored, numbers, strict=True):
                answers[i] = replace(answers[i], id=number)
        counted = {
            "rows": len(answers),
            "alarms": sum(answer.alarm for answer in answers),
            "shadow_alarms": 0 if shadow is None else int(shadow.alarm.sum()),
        }
        self._watching.count(connection, name, version, counted)
        self._n_quiet += len(values) - counted["alarms"]
        if self._n_quiet >= _CLEARED_EVERY:
            self._n_quiet = 0
            _clear(connection, name)
        return answers


def _values(name: str, row: Row, answer: Answer, entity: str | None) -> dict[str, Any]:
    """A row as it is stored."""
    said = {key: getattr(answer, key) for key in ("version", *VERDICTS)}
    who = None if entity is None or row.get(entity) is None else str(row[entity])[:200]
    now_said = {f"now_{key}": value for key, value in said.items()}
    plain = {"model": name, "at": now(), "row": row, "entity": who, "state": OPEN, "note": ""}
    plain["exemption"] = None
    return plain | said | now_said


def _exempt(values: list[dict[str, Any]], exemptions: list[Exemption]) -> None:
    """Keep expected alarms out of the inbox."""
    for value in values if exemptions else ():
        covers = (one.id for one in exemptions if one.covers(value["row"], value["entity"]))
        number = next(covers, None) if value["alarm"] else None
        if number is not None:
            value |= {"state": EXEMPT, "exemption": number}


def _clear(connection: Connection, name: str) -> None:
    """Delete the oldest rows that raised no alarm and that nobody has judged."""
    table = schema.rows
    quiet = (table.c.model == name) & ~table.c.alarm & (table.c.state == OPEN)
    newest = select(table.c.id).where(quiet).order_by(table.c.id.desc())
    last = connection.execute(newest.offset(MOST_QUIET).limit(1)).scalar()
    if last is not None:
        connection.execute(delete(table).where(quiet & (table.c.id <= last)))
