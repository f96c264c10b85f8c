"""The intake: rows come, are scored, and those to be looked at are kept."""

import math
import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from eqsep.detector import Detector
from eqsep.detector.scoring import VERDICTS, encoded_verdicts
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
        detector = self._ledger.detector(number)
        return _answers(_judged(detector, rows), number)

    def take(self, name: str, rows: list[Row]) -> list[Answer]:
        """Score rows, and keep those to be looked at; that is done once this returns.

        A row that cannot be scored gets an error of its own, and the others are served.
        """
        live, shadow, settings = self._ledger.in_use(name)
        detector = self._ledger.detector(live)
        good, judged, errors = _judged_each(detector, rows)
        told: list[Answer | None] = [errors.get(i) for i in range(len(rows))]
        if good:
            taken = [rows[i] for i in good]
            answers = _answers(judged, live)
            ids = self._kept(name, taken, answers, self._shadowed(shadow, taken), settings)
            for i, answer, number in zip(good, answers, ids, strict=True):
                told[i] = replace(answer, id=number)
            self._watching.update(name, live, judged["encoded"], judged["score"])
        return [answer for answer in told if answer is not None]

    def _shadowed(self, shadow: int | None, rows: list[Row]) -> dict[str, Any] | None:
        return None if shadow is None else _judged(self._ledger.detector(shadow), rows)

    def _kept(
        self,
        name: str,
        rows: list[Row],
        answers: list[Answer],
        shadow: dict[str, Any] | None,
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
                "shadow_score": None if shadow is None else float(shadow["score"][i]),
            }
            for i in range(len(rows))
            if keep[i]
        ]
        counted = {
            "rows": len(rows),
            "alarms": sum(answer.alarm for answer in answers),
            "shadow_alarms": 0 if shadow is None else int(shadow["alarm"].sum()),
        }
        with self._store.writing() as connection:
            numbers = iter(_insert(connection, values))
            self._watching.count(connection, name, answers[0].version, counted)
            self._kept_quiet += len(values) - counted["alarms"]
            if self._kept_quiet >= _CLEARED_EVERY:
                self._kept_quiet = 0
                _clear(connection, name)
        return [next(numbers) if kept else None for kept in keep]


def _judged(detector: Detector, rows: list[Row]) -> dict[str, Any]:
    """The encoded rows, and the columns score, p_value, alarm and kind."""
    Z = detector.feature_map_.rows(rows_for(detector, rows))
    return {"encoded": Z} | encoded_verdicts(detector, Z, threshold=None)


def _answers(judged: dict[str, Any], number: int) -> list[Answer]:
    columns = (judged[name].tolist() for name in VERDICTS)
    rows = zip(*columns, strict=True)
    return [Answer(score, p, alarm, kind, number) for score, p, alarm, kind in rows]


def _judged_each(
    detector: Detector, rows: list[Row]
) -> tuple[list[int], dict[str, Any], dict[int, Answer]]:
    """The places of rows that can be scored, what is said of them, and errors of the others."""
    try:
        return list(range(len(rows))), _judged(detector, rows), {}
    except UserError as error:
        if len(rows) == 1:
            return [], {}, {0: Answer(error=str(error))}
    errors: dict[int, Answer] = {}
    for i, row in enumerate(rows):
        *_, bad = _judged_each(detector, [row])
        if bad:
            errors[i] = bad[0]
    good = [i for i in range(len(rows)) if i not in errors]
    return good, _judged(detector, [rows[i] for i in good]) if good else {}, errors


def _values(name: str, row: Row, answer: Answer, entity: str | None) -> dict[str, Any]:
    """A row as it is kept."""
    said = {
        "score": answer.score,
        "p_value": answer.p_value,
        "kind": answer.kind,
        "alarm": answer.alarm,
    }
    who = None if entity is None or row.get(entity) is None else str(row[entity])[:200]
    return (
        {"model": name, "version": answer.version, "at": now(), "row": row, "entity": who}
        | said
        | {"state": "open", "note": "", "now_version": answer.version}
        | {f"now_{key}": value for key, value in said.items()}
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
