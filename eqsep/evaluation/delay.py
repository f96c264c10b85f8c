"""How soon a fault is found: episodes of anomalous rows in a run, and the first alarm in each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.errors import UserError
from eqsep.evaluation.kinds import OVERALL
from eqsep.evaluation.promises import Share
from eqsep.labels import NORMAL


@dataclass(frozen=True)
class KindDelay:
    """The episodes of one kind, or of all together."""

    kind: str
    found: Share  #: Of its episodes, those in which a row raises an alarm.
    rows: tuple[int, ...]  #: The rows before the first alarm of each episode that is found, sorted.
    times: tuple[float, ...] = ()  #: The same in time, if known; in seconds if times are dates.


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

    An episode is a stretch of rows of one kind in a run. All alarms on normal rows are false.

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

    def one(name: str, of_kind: np.ndarray) -> KindDelay:
        there = of_kind & hit
        delays = tuple(np.sort(times[there]).tolist()) if time is not None else ()
        found = Share.counted(int(there.sum()), int(of_kind.sum()))
        return KindDelay(name, found, tuple(np.sort(rows[there]).tolist()), delays)

    names = kind[starts]
    kinds = [one(name, names == name) for name in np.unique(names).tolist() if name != normal]
    false = alarm & (kind == normal)
    begins = false & ~np.concatenate([[False], false[:-1] & is_next])
    overall = [one(OVERALL, names != normal)] if kinds else []
    return DetectionDelay(
        kinds=(*kinds, *overall),
        false_episodes=int(begins.sum()),
        normal_rows=int((kind == normal).sum()),
        by_date=by_date,
        persistent=persist is not None,
    )
