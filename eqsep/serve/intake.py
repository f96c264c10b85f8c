"""The intake: rows come, are scored, and those to be looked at are kept."""

import math
import threading
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from eqsep.detector.model import Model, Verdicts
from eqsep.errors import ParameterError, UserError
from eqsep.serve import schema
from eqsep.serve.ledger import Ledger
from eqsep.serve.log import Row
from eqsep.serve.store import Store, now
from eqsep.serve.teaching import rows_for
from eqsep.serve.watching import Watching

MOST_QUIET = 20_000  # rows of a model that raised no alarm and that nobody has judged
_CLEARED_EVERY = 1_000  # such rows


@dataclass(frozen=True)
class Answer:
    """What is said of a row.

    Attributes
    ----------
    score, p_value : float
    alarm : bool
    kind : str
        "normal", a seen kind, several ("a or b"), or "unseen".
    version : int
        That says so.
    id : int or None
        By which the row is found again, where it is kept.
    error : str or None
        Why nothing can be said of it.
    """

    score: float = math.nan
    p_value: float = math.nan
    alarm: bool = False
    kind: str = ""
    version: int = 0
    id: int | None = None
    error: str | None = None


class Intake:
    """Scores rows by the live version of a model, and keeps alarms and some rows that pass.

    Parameters
    ----------
    store, ledger, watching
    keep_quiet : float, default=0.05
        The share of rows that raise no alarm which are kept, drawn at random. Half of them are
        offered to be judged: these measure what is missed, and may calibrate.
    random_state : int, default=None
        Of the draws.

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
        return _answers(_judged(self._ledger.detector(number).model_, rows).verdicts, number)

    def take(self, name: str, rows: list[Row]) -> list[Answer]:
        """Score rows, and keep those to be looked at; that is done once this returns.

        A row that cannot be scored gets an error of its own, and the others are served.
        """
        live, shadow, settings = self._ledger.in_use(name)
        places, judged, found = _judged_each(self._ledger.detector(live).model_, rows)
        if judged is not None:
            taken = [rows[i] for i in places]
            answers = _answers(judged.verdicts, live)
            ids = self._kept(name, taken, answers, self._shadowed(shadow, taken), settings)
            for i, answer, number in zip(places, answers, ids, strict=True):
                found[i] = replace(answer, id=number)
            self._watching.update(name, live, judged.encoded, judged.verdicts.score)
        return [found[i] for i in range(len(rows))]

    def _shadowed(self, shadow: int | None, rows: list[Row]) -> Verdicts | None:
        if shadow is None:
            return None
        return _judged(self._ledger.detector(shadow).model_, rows).verdicts

    def _kept(
        self,
        name: str,
        rows: list[Row],
        answers: list[Answer],
        shadow: Verdicts | None,
        settings: dict[str, Any],
    ) -> list[int | None]:
        """Write rows that are kept, and count all; the number of each that is."""
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
        with self._store.writing() as connection:
            numbers = iter(_insert(connection, values))
            self._watching.count(connection, name, answers[0].version, counted)
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
    return [
        Answer(score=score, p_value=p_value, alarm=alarm, kind=kind, version=number)
        for score, p_value, alarm, kind in zip(*(v.tolist() for v in verdicts), strict=True)
    ]


def _judged_each(
    model: Model, rows: list[Row]
) -> tuple[list[int], _Judged | None, dict[int, Answer]]:
    """The places of rows that can be scored, the verdicts on them, and errors of the others."""
    try:
        return list(range(len(rows))), _judged(model, rows), {}
    except UserError as error:
        if len(rows) == 1:
            return [], None, {0: Answer(error=str(error))}
    errors: dict[int, Answer] = {}
    for i, row in enumerate(rows):
        *_, bad = _judged_each(model, [row])
        if bad:
            errors[i] = bad[0]
    good = [i for i in range(len(rows)) if i not in errors]
    return good, _judged(model, [rows[i] for i in good]) if good else None, errors


def _values(name: str, row: Row, answer: Answer, entity: str | None) -> dict[str, Any]:
    """A row as it is kept."""
    verdict = {
        "score": answer.score,
        "p_value": answer.p_value,
        "kind": answer.kind,
        "alarm": answer.alarm,
    }
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
