"""The intake: rows get the windows of their runs, are scored, and those to look at are stored."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, delete, insert, select

from eqsep.detector.explainer import Explanation
from eqsep.detector.model import Model, Verdicts
from eqsep.detector.plan import Plan
from eqsep.detector.runs import Runs
from eqsep.errors import ParameterError, UserError
from eqsep.serve import schema
from eqsep.serve.alarms import EXEMPT, OPEN, Alarms
from eqsep.serve.exemptions import Exemption, covers, in_force
from eqsep.serve.ledger import Ledger, Row, entity_column, rows_for
from eqsep.serve.store import Store, now
from eqsep.serve.watching import Watching

MOST_QUIET = 20_000  # rows of a model that raised no alarm and that nobody has judged
_CLEARED_EVERY = 1_000  # such rows
_INSERTED = insert(schema.rows).returning(schema.rows.c.id, sort_by_parameter_order=True)
MOST_RUNS = 100_000  # of a model: those with the oldest last row are forgotten first


def run_columns(plan: Plan) -> tuple[str | None, str | None]:
    """The columns of the run and of the time, if any; without time, rows are in order."""
    grouping = plan.holdout.grouping
    if plan.windows is None or grouping is None:
        return None, None
    return grouping.columns[0], grouping.columns[1] or None


class OpenRuns:
    """The runs of a model, within a transaction; the last rows of each run are in the store."""

    def __init__(self, connection: Connection, name: str, model: Model) -> None:
        self._connection, self._name, self._model = connection, name, model
        self._runs = Runs()
        self._shown: dict[int, tuple[str, str]] = {}  # the name of each run, and its last time

    def extended(self, rows: Sequence[Row]) -> list[Row | str]:
        """Each row with its windows, or what is wrong with it: it is then not part of its run."""
        added = {*self._model.plan.windows.added}  # type: ignore[union-attr]  # it has windows
        plain = [{n: value for n, value in row.items() if n not in added} for row in rows]
        try:
            return self._extended(plain)
        except UserError as error:
            if len(rows) == 1:
                return [str(error)]
        return [found for row in plain for found in self.extended([row])]

    def _extended(self, rows: list[Row]) -> list[Row | str]:
        plan = self._model.plan
        group, time = run_columns(plan)
        named = rows if group is None else [{**row, group: _name(row.get(group))} for row in rows]
        table = plan.grouped(rows_for(self._model, named))
        keys = [0] * len(rows) if table.groups is None else table.groups.group.tolist()
        times = [0.0] * len(rows) if table.groups is None else table.groups.time.tolist()
        self._read(keys)
        found: list[Row | str] = [*rows]
        latest, good = dict(self._runs.time), []
        shown = {key: text for key, (_, text) in self._shown.items()}
        for i, (key, at) in enumerate(zip(keys, times, strict=True)):
            if at < latest.get(key, at):
                run = "the run" if group is None else f"{group} {rows[i][group]!r}"
                found[i] = (
                    f"column {time!r}: expected {shown[key]} or later, the time of the last row of "
                    f"{run}, got {rows[i][str(time)]!r}"
                )
            else:
                good.append(i)
                latest[key], shown[key] = at, str(rows[i].get(str(time)))
        if good:
            windowed = plan.windows.apply(  # type: ignore[union-attr]  # it has windows
                table.take(np.array(good)), plan.holdout.grouping, runs=self._runs
            )
            values = {c.name: c.values.tolist() for c in windowed.columns if c.derived_from}
            for place, i in enumerate(good):
                own = {n: column[place] for n, column in values.items()}
                found[i] = rows[i] | {n: None if v != v else v for n, v in own.items()}  # NaN: null
                name = "" if group is None else str(named[i][group])
                self._shown[keys[i]] = name, shown[keys[i]]
        return found

    def save(self) -> None:
        """Store the last rows of the runs."""
        table, runs, at = schema.runs, self._runs, now()
        values: list[dict[str, Any]] = []
        for key, last in runs.last.items():
            name, time = self._shown[key]
            own = {"run": f"{key:016x}", "name": name[:200], "time_shown": time, "at": at}
            own["last"] = np.ascontiguousarray(last, dtype="<f8").tobytes()
            values.append({"model": self._name, "time": runs.time[key], **own})
        if not values:
            return
        mine = table.c.model == self._name
        there = mine & table.c.run.in_([value["run"] for value in values])
        n_before = self._connection.execute(delete(table).where(there)).rowcount
        self._connection.execute(insert(table), values)
        if len(values) > n_before:  # some are new
            newest = select(table.c.run).where(mine).order_by(table.c.at.desc(), table.c.run.desc())
            oldest = table.c.run.in_(newest.offset(MOST_RUNS).scalar_subquery())
            self._connection.execute(delete(table).where(mine, oldest))

    def _read(self, keys: list[int]) -> None:
        """Read those of these runs that are not in memory."""
        table, windows = schema.runs, self._model.plan.windows
        lacking = sorted({f"{key:016x}" for key in keys if key not in self._runs.last})
        query = select(table).where(table.c.model == self._name, table.c.run.in_(lacking))
        for row in self._connection.execute(query) if lacking else ():
            key, last = int(row.run, 16), np.frombuffer(row.last, dtype="<f8")
            n_columns = len(windows.windowed)  # type: ignore[union-attr]  # it has windows
            self._runs.last[key] = last.reshape(-1, n_columns)
            self._runs.time[key] = row.time
            self._shown[key] = row.name, row.time_shown


def _name(value: Any) -> Any:
    """The name of a run, the same in every request: 3 and 3.0 are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None else str(value)


@dataclass(frozen=True)
class RowAnswer:
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


def _spread(rows: Sequence[Row | str], answers: Sequence[RowAnswer]) -> list[RowAnswer]:
    """An answer for each row, in order: the next one for a good row, its error for another."""
    following = iter(answers)
    return [RowAnswer(error=row) if isinstance(row, str) else next(following) for row in rows]


class Intake:
    """Scores rows by the live version, and stores alarms and a random share of the other rows."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        watching: Watching,
        alarms: Alarms,
        *,
        keep_quiet: float,
    ) -> None:
        if not 0 <= keep_quiet <= 1:
            raise ParameterError("keep_quiet", expected="a share between 0 and 1", got=keep_quiet)
        self._store, self._ledger, self._watching = store, ledger, watching
        self._alarms = alarms
        self._keep_quiet = keep_quiet
        self._rng = np.random.default_rng()
        self._n_quiet = 0  # stored since the oldest were last cleared
        self._lock = threading.Lock()

    def score(self, name: str, rows: list[Row], *, version: int | None = None) -> list[RowAnswer]:
        """The answers of a version, by default the live one; nothing is stored."""
        number = self._ledger.in_use(name)[0] if version is None else version
        model = self._ledger.model(number)
        scored = _scored(model, self._extended(name, model, rows))
        said = [] if scored.verdicts is None else scored.verdicts.each()
        return _spread(scored.rows, [RowAnswer(**one, version=number) for one in said])

    def explain(self, name: str, rows: list[Row], *, top: int) -> list[Explanation | str]:
        """Why each row has its score by the live version, or why it has none; nothing is stored."""
        model = self._ledger.live_model(name)
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

    def take(self, name: str, rows: list[Row]) -> list[RowAnswer]:
        """Score rows, each alone if it is bad, and store those to look at before this returns."""
        live, shadow, settings = self._ledger.in_use(name)
        model = self._ledger.model(live)
        second = None if shadow is None else self._ledger.model(shadow)
        entity = entity_column(settings, model.plan)
        if model.plan.windows is None:
            scored = _scored(model, rows, second)
            with self._store.writing(synced=False) as connection:
                answers = self._stored(connection, name, live, scored, entity)
        else:  # one request after the other
            with self._store.writing(synced=False) as connection:
                runs = OpenRuns(connection, name, model)
                mine = select(schema.models.c.name).where(schema.models.c.name == name)
                connection.execute(mine.with_for_update())  # until the transaction ends
                scored = _scored(model, runs.extended(rows), second)
                answers = self._stored(connection, name, live, scored, entity)
                runs.save()
        if scored.verdicts is not None:
            places = {a.id: i for i, a in enumerate(answers) if a.id is not None}
            kept = scored.encoded[[*places.values()]]  # a copy: a view would keep all rows
            self._alarms.encoded.keep(name, model, dict(zip(places, kept, strict=True)))
            self._watching.update(name, live, scored.good, scored.encoded, scored.verdicts)
        return _spread(scored.rows, answers)

    def _stored(
        self, connection: Connection, name: str, version: int, scored: _Scored, entity: str | None
    ) -> list[RowAnswer]:
        """Count rows and store some; the answers to all, with the numbers of those stored."""
        if scored.verdicts is None:
            return []
        said = [one | {"version": version} for one in scored.verdicts.each()]
        shadow, numbers = scored.shadow, dict[int, int]()
        with self._lock:
            draws = self._rng.random(len(said)).tolist()
        stored = [i for i, a in enumerate(said) if a["alarm"] or draws[i] < self._keep_quiet]
        n_alarms = int(scored.verdicts.alarm.sum())
        exemptions = in_force(connection, name) if n_alarms else []
        values = []
        for i in stored:
            row = _values(name, scored.good[i], said[i], entity, exemptions)
            # half of the random share is offered to be judged: it may calibrate
            row["drawn"] = not said[i]["alarm"] and draws[i] < self._keep_quiet / 2
            row["shadow_score"] = None if shadow is None else float(shadow.score[i])
            values.append(row)
        if values:
            made = connection.execute(_INSERTED, values).scalars()
            numbers = dict(zip(stored, made, strict=True))
        counted = {"rows": len(said), "alarms": n_alarms}
        counted["shadow_alarms"] = 0 if shadow is None else int(shadow.alarm.sum())
        self._watching.count(connection, name, version, counted)
        self._n_quiet += len(values) - n_alarms
        if self._n_quiet >= _CLEARED_EVERY:
            self._n_quiet = 0
            _clear(connection, name)
        return [RowAnswer(**one, id=numbers.get(i)) for i, one in enumerate(said)]


def _values(
    name: str, row: Row, said: dict[str, Any], entity: str | None, exemptions: list[Exemption]
) -> dict[str, Any]:
    """A row as it is stored; an exemption keeps an expected alarm out of the inbox."""
    who = None if entity is None or row.get(entity) is None else str(row[entity])[:200]
    exemption = next((x.id for x in exemptions if said["alarm"] and covers(x, row, who)), None)
    state = OPEN if exemption is None else EXEMPT
    plain = {"model": name, "at": now(), "row": row, "entity": who, "state": state, "note": ""}
    now_said = {f"now_{key}": value for key, value in said.items()}
    return plain | {"exemption": exemption} | said | now_said


def _clear(connection: Connection, name: str) -> None:
    """Delete the oldest rows that raised no alarm and that nobody has judged."""
    table = schema.rows
    quiet = (table.c.model == name) & ~table.c.alarm & (table.c.state == OPEN)
    newest = select(table.c.id).where(quiet).order_by(table.c.id.desc())
    last = connection.execute(newest.offset(MOST_QUIET).limit(1)).scalar()
    if last is not None:
        connection.execute(delete(table).where(quiet & (table.c.id <= last)))
