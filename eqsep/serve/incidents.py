"""Incidents: alarms of one entity, or of one look, that follow each other closely."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from eqsep.labels import UNSEEN
from eqsep.serve import schema
from eqsep.serve.alarms import OPEN, Alarms, Filter, first_name
from eqsep.serve.ledger import Ledger
from eqsep.serve.store import Missing, Store

GAP = 10.0  # minutes without an alarm that end an incident, unless the model has its own
MOST_GAP = 10_080.0  # minutes
_MAX_ALARMS_FOLDED = 20_000  # alarms that are folded: the newest
_BARS = 60
_WIDTHS = (1, 5, 15, 30, 60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400)  # seconds of a bar


@dataclass(frozen=True)
class Incident:
    """Alarms that belong together; a verdict on it is a verdict on all of them."""

    id: int  # the number of its first alarm
    entity: str | None
    kind: str  # the first name that most of its alarms have; of several, the worst one's
    kinds: dict[str, int]  # how many alarms have each first name
    first: float  # when the first and the last alarm came, in seconds since 1970
    last: float
    score: float  # the highest
    worst: int  # the alarm that has it
    assignees: list[str]
    alarms: list[int]  # by number, oldest first


@dataclass(frozen=True)
class Bar:
    """How many alarms came between two times."""

    start: float
    end: float
    alarms: int


@dataclass(frozen=True)
class Incidents:
    """Some of the incidents that were asked for, how many there are, and their alarms over time."""

    incidents: list[Incident]
    total: int
    n_alarms: int
    over_time: list[Bar]


def folded(keys: Sequence[Hashable], at: Sequence[float], *, gap: float) -> list[list[int]]:
    """The places of values with the same key, each at most `gap` after the one before."""
    found: list[list[int]] = []
    latest: dict[Hashable, list[int]] = {}
    for place in sorted(range(len(at)), key=at.__getitem__):
        before = latest.get(keys[place])
        if before is None or at[place] - at[before[-1]] > gap:
            before = latest[keys[place]] = []
            found.append(before)
        before.append(place)
    return found


def over_time(at: Sequence[float]) -> list[Bar]:
    """How many times lie in each of up to 60 bars of equal width."""
    if not at:
        return []
    width = next((w for w in _WIDTHS if max(at) // w - min(at) // w < _BARS), _WIDTHS[-1])
    start, end = int(min(at) // width), int(max(at) // width)
    counted = Counter(int(one // width) for one in at)
    bars = range(max(start, end - _BARS + 1), end + 1)
    return [Bar(float(bar * width), float((bar + 1) * width), counted[bar]) for bar in bars]


class Folding:
    """Folds stored alarms into incidents: by entity, else by kind or by look, and by time."""

    def __init__(self, store: Store, ledger: Ledger, alarms: Alarms) -> None:
        self._store, self._ledger, self._alarms = store, ledger, alarms

    def incidents(
        self, name: str, wanted: Filter | None = None, *, limit: int = 50, offset: int = 0
    ) -> Incidents:
        """The incidents among the alarms that pass a filter."""
        wanted = Filter() if wanted is None else wanted
        rows = self._rows(name, wanted)
        found = self._folded(name, rows)
        found.sort(key=lambda one: -(one.score if wanted.order == "score" else one.last))
        some, bars = found[offset : offset + limit], over_time([row.at for row in rows])
        return Incidents(incidents=some, total=len(found), n_alarms=len(rows), over_time=bars)

    def incident(self, name: str, number: int) -> Incident:
        """The incident of an alarm, among alarms of the same state."""
        alarm = self._alarms.get(number)
        state: Any = alarm.state if alarm.state != OPEN or alarm.now.alarm else "cleared"
        wanted = Filter(state=state, entity=alarm.entity)
        for incident in self._folded(name, self._rows(name, wanted)):
            if number in incident.alarms:
                return incident
        raise Missing(f"Row {number} is not in an incident of {name!r}.")

    def _rows(self, name: str, wanted: Filter) -> list[Any]:
        """The newest alarms that pass a filter: what folding needs of them."""
        self._alarms.refresh(name)
        table = schema.rows.c
        columns = (table.id, table.at, table.entity, table.now_kind, table.now_score)
        query = select(*columns, table.assignee).where(table.model == name, *wanted.conditions())
        return self._store.rows(
            query.order_by(table.at.desc(), table.id.desc()).limit(_MAX_ALARMS_FOLDED)
        )

    def _folded(self, name: str, rows: list[Any]) -> list[Incident]:
        rows = sorted(rows, key=lambda row: row.id)
        unseen = [row.id for row in rows if row.entity is None and row.now_kind == UNSEEN]
        # the group of each unseen alarm without an entity; older ones than the last are alone
        alike = {number: -number for number in unseen} | self._alarms.looks(name, unseen)
        looks = [(first_name(row.now_kind), alike.get(row.id)) for row in rows]
        keys = [look if r.entity is None else r.entity for r, look in zip(rows, looks, strict=True)]
        gap = 60.0 * float(self._ledger.settings(name).get("gap") or GAP)
        found = folded(keys, [row.at for row in rows], gap=gap)
        return [_incident([rows[place] for place in places]) for places in found]


def _incident(rows: list[Any]) -> Incident:
    worst = max(rows, key=lambda row: row.now_score)
    names = Counter(first_name(row.now_kind) for row in rows)
    likeliest = max(names, key=lambda name: (names[name], name == first_name(worst.now_kind)))
    return Incident(
        id=rows[0].id,
        entity=rows[0].entity,
        kind=likeliest,
        kinds=dict(names),
        first=rows[0].at,
        last=rows[-1].at,
        score=worst.now_score,
        worst=worst.id,
        assignees=sorted({row.assignee for row in rows if row.assignee}),
        alarms=[row.id for row in rows],
    )
