"""How soon a fault is found: episodes of anomalous rows in a run, and the first alarm in each."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import poisson

from eqsep.errors import UserError
from eqsep.evaluation.kinds import OVERALL
from eqsep.evaluation.promises import Share
from eqsep.labels import NORMAL

_CHANCE = 0.05  # of alarms that come as soon where nothing is wrong


@dataclass(frozen=True)
class KindDelay:
    """The episodes of one kind, or of all together."""

    kind: str
    found: Share  #: Of its episodes, those in which a row raises an alarm.
    rows: tuple[int, ...]  #: The rows before the first alarm of each episode that is found, sorted.
    times: tuple[float, ...] = ()  #: The same in time, if known; in seconds if times are dates.
    by_chance: float = 0.0  #: The share of its episodes that false alarms alone would find.
    chance_rows: float = 0.0  #: The median delay of these.
    #: Whether alarms come sooner, or in more episodes, than false alarms alone explain (in 5 % of
    #: draws at most). If not, the delay says nothing.
    beats_chance: bool = True


@dataclass(frozen=True)
class DetectionDelay:
    """How many episodes are found and how soon, and how many false alarms there are on the way."""

    kinds: tuple[KindDelay, ...]  #: In alphabetical order, and last "overall", all together.
    false_episodes: int  #: Stretches of consecutive normal rows in a run that all raise an alarm.
    normal_rows: int
    by_date: bool = False  #: Whether times are dates.
    persistent: bool = False  #: Whether only persistent alarms count.


def detection_delay(
    alarm: Any,
    kind: Any,
    *,
    time: Any = None,
    groups: Any = None,
    normal: str = NORMAL,
    persist: Callable[..., np.ndarray] | None = None,
) -> DetectionDelay:
    """How soon the episodes of anomalous rows are found.

    An episode is a stretch of rows of one kind in a run. False alarms alone would find some too, by
    how often they begin on normal rows and how long they last: the alarms that find episodes are
    compared with those expected until then (the log-rank test of one sample).

    Parameters
    ----------
    alarm : array-like of shape (n_rows,)
        Whether each row raises an alarm.
    kind : array-like of str of shape (n_rows,)
    time : array-like of shape (n_rows,), default=None
        Numbers or dates that put the rows of a run in order.
    groups : array-like of shape (n_rows,), default=None
        The run of each row (default: all rows are one).
    normal : str, default="normal"
    persist : callable, default=None
        From alarms in order, and their runs, to those that count: `PersistentAlarms(3, 5).update`.

    Examples
    --------
    >>> kind = ["normal", "leak", "leak", "leak", "normal", "jam"]
    >>> found = detection_delay([0, 0, 0, 1, 1, 0], kind)
    >>> [(one.kind, one.found.count, one.rows) for one in found.kinds], found.false_episodes
    ([('jam', 0, ()), ('leak', 1, (2,)), ('overall', 1, (2,))], 1)
    """
    alarm, kind = np.asarray(alarm).astype(bool), np.asarray(kind).astype(str)
    seconds = np.zeros(len(kind)) if time is None else np.asarray(time)
    by_date = seconds.dtype.kind == "M"
    seconds = seconds.astype("M8[us]").astype(np.int64) / 1e6 if by_date else seconds.astype(float)
    run = np.zeros(len(kind), int) if groups is None else np.unique(groups, return_inverse=True)[1]
    for name, values in (("alarm", alarm), ("time", seconds), ("groups", run)):
        if len(values) != len(kind):
            raise UserError(f"Expected the {name} of each of {len(kind):,} rows: {len(values):,}.")
    order = np.lexsort([seconds, run])
    alarm, kind, seconds, run = alarm[order], kind[order], seconds[order], run[order]
    alarm = alarm if persist is None else persist(alarm, run)
    is_next = (run[1:] == run[:-1]) & (kind[1:] == kind[:-1])
    starts = np.flatnonzero(np.concatenate([[True], ~is_next]))
    ends = np.append(starts[1:], len(kind))
    rows = np.array([np.argmax(alarm[a:b]) for a, b in zip(starts, ends, strict=True)])
    times = seconds[starts + rows] - seconds[starts]
    hit = alarm[starts + rows]

    names, is_normal = kind[starts], kind == normal
    false = alarm & is_normal
    begins = false & ~np.concatenate([[False], false[:-1] & is_next])
    # Where nothing is wrong: how likely an alarm is at the first row, and one that begins later.
    at_once = (false.sum() + 1) / (is_normal.sum() + 1)
    later = (begins.sum() + 1) / ((is_normal & ~false).sum() + 1)
    at_once, later = min(at_once, 0.999), min(later, 0.999)
    length = ends - starts

    def one(name: str, of_kind: np.ndarray) -> KindDelay:
        there = of_kind & hit
        delays = tuple(np.sort(times[there]).tolist()) if time is not None else ()
        found = Share.counted(int(there.sum()), int(of_kind.sum()))
        waited = np.where(hit, rows, length - 1)[of_kind]
        by_chance = 1 - (1 - at_once) * (1 - later) ** (length[of_kind] - 1.0)
        expected = (at_once + later * waited).sum()
        quiet = (1 - np.median(by_chance) / 2) / (1 - at_once)  # at the median delay
        return KindDelay(
            name,
            found,
            tuple(np.sort(rows[there]).tolist()),
            delays,
            by_chance=float(by_chance.mean()),
            chance_rows=max(math.ceil(math.log(quiet) / math.log(1 - later)), 0),
            beats_chance=bool(poisson.sf(found.count - 1, expected) < _CHANCE),
        )

    kinds = [one(name, names == name) for name in np.unique(names).tolist() if name != normal]
    overall = [one(OVERALL, names != normal)] if kinds else []
    return DetectionDelay(
        kinds=(*kinds, *overall),
        false_episodes=int(begins.sum()),
        normal_rows=int(is_normal.sum()),
        by_date=by_date,
        persistent=persist is not None,
    )
