"""The monitor: whether rows are still like those that calibrated a detector."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from scipy.special import ndtri

from eqsep.detector.audit import Fitted
from eqsep.detector.calibration import checked_share
from eqsep.detector.holdout import Grouping
from eqsep.detector.model import Model
from eqsep.detector.runs import Runs
from eqsep.errors import ParameterError, UserError, counted, warn
from eqsep.files import written_whole
from eqsep.monitor.martingale import SequentialRanks, SimpleJumper
from eqsep.tables.reading import RowGroups

_FORM = "eqsep monitor 1"
_BLOCK = 500  # rows: columns are compared by those of the last two blocks
_STEP = 50  # rows between the points of the history
_RECENT_ROWS = 1_000  # rows by which recent alarms are counted, or a few more
_MIN_ROWS_TO_COMPARE = 100  # rows by which columns are compared
_CHANCE_PER_LOOK = 0.05  # of too many alarms, with groups
_MIN_TOO_MANY = 5  # alarms, with groups: fewer are never too many
_ARRAYS = ("accounts", "scores", "sums", "squares")


@dataclass(frozen=True)
class Watched:
    """What was seen in one episode: the rows since the model last changed."""

    episode: int = 1  #: each change of the model begins a new one
    rows: int = 0
    alarms: int = 0  #: rows above the threshold
    martingale: float = 1.0  #: the capital of the bet against exchangeability
    highest: float = 1.0  #: its highest value
    broken_at: int | None = None  #: the row at which it exceeded 1 / delta, from 1 in the episode
    #: groups or blocks of time that have ended, each one bet; None if rows are watched one by one
    units: int | None = None

    @property
    def alarm_rate(self) -> float:
        """The share of the rows that raise an alarm."""
        return self.alarms / max(self.rows, 1)


@dataclass(frozen=True, eq=False)
class History:
    """An episode over time."""

    rows: np.ndarray  #: the number of rows at each point
    martingale: np.ndarray  #: the capital then
    alarms: np.ndarray  #: how many rows had raised an alarm
    shift_rows: np.ndarray  #: the number of rows at each shift
    shifts: dict[str, np.ndarray]  #: how far the mean of each column had moved, in standard errors


@dataclass(frozen=True)
class ColumnShift:
    """How far the mean of a column, as encoded, has moved, in standard errors."""

    column: str
    standard_errors: float
    change: str = ""  #: how, in words, such as "higher, mean 3 (was 2)"


@dataclass(frozen=True)
class Recent:
    """What to check in the last rows, whether or not the scores have changed."""

    rows: int  #: the last 1,000 to 1,049 rows, or all if there are fewer
    alarms: int  #: those above the threshold
    too_many: bool  #: whether there are more alarms than the promise and chance allow
    far: float  #: the standard errors from which a column has moved; infinite for few rows
    moved: tuple[ColumnShift, ...]  #: the columns that have, the farthest first
    unjudged: str = ""  #: why columns cannot be judged yet, in words; else empty
    compared: str = ""  #: the rows by which columns are judged, such as "the last 563 rows"

    @property
    def alarm_rate(self) -> float:
        """The share of the rows that raise an alarm."""
        return self.alarms / max(self.rows, 1)

    @property
    def told(self) -> str:
        """What to check, in words; empty if nothing stands out."""
        moved = f"{len(self.moved):,} columns have" if len(self.moved) > 1 else "a column has"
        words = [f"{moved} moved by more than chance"] if self.moved else []
        if self.too_many:
            words.append(
                f"the last {self.rows:,} rows raised more alarms than promised for normal rows: "
                f"some of them are anomalies, or normal rows have changed"
            )
        return "; ".join(words)


class Monitor:
    """Watches rows as they arrive, and reports when they stop being exchangeable with the old ones.

    While new rows come from the same source as those that calibrate the detector, a false alert
    has a probability of at most `delta` in an episode, however long you watch, unless the fit has
    found that rows are alike or change over time (`caution_`). Pass all rows as they arrive.

    If the detector was fitted with groups or times, each group or block of time is one bet, on the
    mean score of its rows. The bet is made once no row of the group has come for as many rows as
    the largest held-out group has.

    Parameters
    ----------
    detector : Detector
        A fitted one. When it learns, merges or forgets rows, a new episode begins.
    delta : float, default=0.01
        The probability of a false alert.
    random_state : int, default=0
        Breaks ties between equal scores.
    quiet_only : bool, default=False
        Bet only on rows below the threshold, so that anomalies that raise an alarm do not count as
        drift. Normal rows that have moved above it do not count either: see `Recent.too_many`.

    Attributes
    ----------
    watched : Watched
        The current episode.
    before : Watched or None
        The previous episode, ended by a change of the model.
    runs : Runs
        The last rows of each run, from which the windows of the next rows continue.

    Examples
    --------
    >>> from eqsep import Detector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1500, 2))
    >>> detector = Detector(n_landmarks=50, bandwidth=1.0, random_state=0).fit(X)
    >>> monitor = Monitor(detector)
    >>> monitor.update(rng.normal(size=(500, 2))).broken_at is None
    True
    >>> watched = monitor.update(rng.normal((0, 1.5), size=(500, 2)))
    >>> 500 < watched.broken_at < 600
    True
    >>> monitor.shifts()[0].column
    'x1'
    """

    watched: Watched
    before: Watched | None = None
    model_: str

    def __init__(
        self,
        detector: Fitted,
        *,
        delta: float = 0.01,
        random_state: Any = 0,
        quiet_only: bool = False,
    ) -> None:
        hint = "This is the probability of a false drift alert."
        self.delta = checked_share(delta, name="delta", hint=hint)
        if not isinstance(random_state, Integral) or int(random_state) < 0:
            expected = "a whole number of at least 0"
            raise ParameterError("random_state", expected=expected, got=random_state)
        self.random_state, self.quiet_only = int(random_state), quiet_only
        self.detector, self.runs = detector, Runs()
        self._begin(1)
        caution = detector.model_.caution
        if caution is not None:
            warn(caution.warning())

    def _begin(self, episode: int) -> None:
        """A new episode, with the rows that calibrate now."""
        model = self.detector.model_
        self.model_ = fingerprint(model)
        calibration = model.calibration
        if not len(calibration.counting):
            raise UserError(
                "The detector has no held-out rows, so there is nothing to compare new rows with. "
                "Fit it to more normal rows."
            )
        counting = calibration.counting
        if self.quiet_only:  # of n scores that count, the threshold is the rank-highest
            counting = counting[np.argsort(calibration.scores[counting], kind="stable")]
            counting = np.sort(counting[: len(counting) - model.rank])
        units = calibration.groups[counting] if self._grouping else None
        held = model.plan.encoder.with_values(model.evidence.held_out.normal[counting])
        scores = calibration.scores[counting]
        self._patience, self._open = 1, dict[int, np.ndarray]()
        if units is not None:
            self._patience = int(np.unique(units, return_counts=True)[1].max())
            held = _means(held, units)
            scores = _means(scores[:, None], units)[:, 0]
        self._held = held
        self.watched = Watched(episode=episode, units=None if units is None else 0)
        self._evidence = model.evidence
        self._ranks, self._jumper = SequentialRanks(scores), SimpleJumper()
        self._sums = np.zeros((2, held.shape[1]))  # of the last block, and this one
        self._squares = np.zeros((2, len(model.plan.encoder.counted)))
        self._points, self._moves = np.empty((0, 3)), np.empty((0, 1 + len(self._columns)))

    @property
    def _grouping(self) -> Grouping | None:
        return self.detector.model_.plan.holdout.grouping

    def update(
        self, X: Any, groups: Any = None, time: Any = None, *, ordered: bool = False
    ) -> Watched:
        """Watch the rows of a table, in order, and return the current episode so far.

        Parameters
        ----------
        X : table
        groups, time : array-like of shape (n_rows,) or str, default=None
            As in `Detector.fit`, for a detector that was fitted with them. Not needed if it knows
            their columns by name.
        ordered : bool, default=False
            Whether row numbers replace missing times. They always do if the times of the fit were
            not a column either.
        """
        model, grouping = self.detector.model_, self._grouping
        if grouping is None and model.plan.windows is None:
            rows = model.plan.encode(X)
            return self.update_scored(rows, model.score(rows))
        table = model.plan.continued(X, self.runs, groups, time)
        rows = model.plan.encode(table)
        return self.update_scored(rows, model.score(rows), groups=table.groups, ordered=ordered)

    def update_scored(
        self,
        rows: np.ndarray,
        scores: np.ndarray,
        *,
        groups: RowGroups | None = None,
        ordered: bool = False,
    ) -> Watched:
        """The same for rows that the detector has already encoded and scored."""
        model = self.detector.model_
        if model.evidence is not self._evidence:  # else it has learnt nothing
            self._evidence = model.evidence
            if fingerprint(model) != self.model_:
                self.before = self.watched
                self._begin(self.watched.episode + 1)
        alarm = scores > model.threshold
        so_far = self.watched.alarms + np.cumsum(alarm)
        at = self.watched.rows + np.arange(1, len(scores) + 1)
        grouping, holdout = self._grouping, model.plan.holdout
        bets_on = ~alarm if self.quiet_only else np.ones(len(alarm), dtype=bool)
        rows = model.plan.encoder.with_values(rows[bets_on])
        scores, at = scores[bets_on], at[bets_on]
        if grouping is not None:
            if grouping.columns[1] == "" or (ordered and grouping.edges):
                groups = self.runs.in_order(groups, len(alarm))
            holdout.check_grouped(groups)
            assert groups is not None  # it was checked
            units = grouping.units(groups, key=holdout.key)[bets_on]
            rows, scores, at = self._ended(rows, scores, units, at)
        self._sum_up(rows, at)
        highest, broken_at, points = self.watched.highest, self.watched.broken_at, []
        step = _STEP if grouping is None else 1
        bets = zip(at.tolist(), scores.tolist(), self._ties(len(scores)), strict=True)
        for row, score, tie in bets:
            self._jumper.bet(self._ranks.p_value(score, tie=tie))
            highest = max(highest, self._jumper.capital)
            if broken_at is None and highest >= 1 / self.delta:
                broken_at = row
            if self._jumper.n % step == 0:
                points.append((row, self._jumper.capital, so_far[row - self.watched.rows - 1]))
        self._points = np.vstack([self._points, np.reshape(points, (-1, 3))])
        self.watched = replace(
            self.watched,
            rows=self.watched.rows + len(alarm),
            alarms=self.watched.alarms + int(alarm.sum()),
            martingale=self._jumper.capital,
            highest=highest,
            broken_at=broken_at,
            units=None if grouping is None else self._jumper.n,
        )
        return self.watched

    def _ended(
        self, rows: np.ndarray, scores: np.ndarray, units: np.ndarray, numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mean rows and mean scores of the units that end, and the row at which each does."""
        none = np.zeros(3 + rows.shape[1])  # the last row, how many, and sums: of scores, of values
        ended = []
        values = np.column_stack([np.ones(len(rows)), scores, rows])
        for at, unit, value in zip(numbers.tolist(), units.tolist(), values, strict=True):
            open_ = self._open.pop(unit, none).copy()
            open_[0] = at
            open_[1:] += value
            self._open[unit] = open_  # the units without a row for longest come first
            first = next(iter(self._open))
            while at - self._open[first][0] >= self._patience:
                ended.append([at, *self._open.pop(first)[1:]])
                first = next(iter(self._open))
        found = np.reshape(ended, (-1, 3 + rows.shape[1]))
        means = found[:, 2:] / found[:, 1:2]
        return means[:, 1:], means[:, 0], found[:, 0].astype(int)

    def _sum_up(self, rows: np.ndarray, at: np.ndarray) -> None:
        """Add rows with values, or means of units, to the sums of the last two blocks."""
        n = self._jumper.n
        for places in np.split(np.arange(len(rows)), range(-n % _BLOCK, len(rows), _BLOCK)):
            part = rows[places]
            if len(part) and n % _BLOCK == 0:
                for sums in (self._sums, self._squares):
                    sums[0], sums[1] = sums[1], 0.0
            self._sums[1] += part.sum(axis=0, dtype=float)
            self._squares[1] += np.square(part[:, : self._squares.shape[1]]).sum(axis=0)
            n += len(part)
            if len(part) and n % _BLOCK == 0:
                self._moves = np.vstack(
                    [self._moves, [at[places[-1]], *self._moved(self._means(n)[1])]]
                )

    def _ties(self, n: int) -> list[float]:
        """The next draws that break ties, the same however the rows are divided."""
        stream = np.random.PCG64([self.random_state, self.watched.episode])
        return np.random.Generator(stream.advance(self._jumper.n)).random(n).tolist()

    def shifts(self) -> list[ColumnShift]:
        """How far the mean of each column has moved from the held-out rows, the farthest first.

        The mean is that of `Recent.compared`: the last 501 to 1,000 rows, or groups. Among many
        columns, some are 3 standard errors away by chance: see `recent` for the limit beyond which
        they have moved.
        """
        now, errors = self._means(self._jumper.n)
        if np.isnan(errors).any():
            return []
        changes = self.detector.model_.plan.encoder.moved(self._held.mean(axis=0), now, errors)
        moved = zip(self._columns, self._moved(errors).tolist(), strict=True)
        known = [ColumnShift(column, far, changes[column]) for column, far in moved]
        return sorted(known, key=lambda shift: -abs(shift.standard_errors))

    def recent(self) -> Recent:
        """What to check in the last rows: columns that have moved, and too many alarms.

        Each is a false alert with probability at most delta in an episode, if you look every 50
        rows or less often. With groups, alarms are too many if the promise leaves their share a
        probability of at most 5 % at a single look, by Markov's inequality.
        """
        seen, model = self.watched, self.detector.model_
        before = self._points[self._points[:, 0] <= seen.rows - _RECENT_ROWS]
        rows, alarms = before[-1, [0, 2]].astype(int).tolist() if len(before) else (0, 0)
        rows, alarms = seen.rows - rows, seen.alarms - alarms
        chance = chance_at(seen.rows // _STEP + 1, delta=self.delta)
        n, n_held = self._jumper.n, len(model.calibration.counting)
        quiet = " without an alarm" * self.quiet_only
        far = far_off(chance, rows=n, n_values=len(model.plan.encoder.counted))
        many, unit = too_many(alarms, rows, rank=model.rank, n_held=n_held, chance=chance), "row"
        if self._grouping is not None:  # rows of a group raise alarms together
            most = rows * float(model.promise.false_alarm_rate) / _CHANCE_PER_LOOK
            many = model.rank > 0 and alarms >= max(most, _MIN_TOO_MANY)
            unit = self._grouping.unit
        needed = f"that takes {_MIN_ROWS_TO_COMPARE} {unit}s, and there are {n:,}"
        return Recent(
            rows=rows,
            alarms=alarms,
            too_many=many,
            far=far,
            moved=tuple(shift for shift in self.shifts() if abs(shift.standard_errors) > far),
            unjudged=f"columns are not judged yet: {needed}" if n < _MIN_ROWS_TO_COMPARE else "",
            compared=f"the last {counted(_compared(n), unit)}{quiet}",
        )

    @property
    def chance(self) -> str:
        """The probability of a false drift alert, in words."""
        if self.detector.model_.caution is not None:
            return "with unknown probability: the fit found that rows are dependent"
        return f"with probability at most {self.delta:g}"

    @property
    def history(self) -> History:
        """The current episode over time: a point every 50 rows, shifts every 500."""
        rows, martingale, alarms = self._points.T
        shift_rows, *moves = self._moves.T
        shifts = dict(zip(self._columns, moves, strict=True))
        return History(
            rows=rows, martingale=martingale, alarms=alarms, shift_rows=shift_rows, shifts=shifts
        )

    @property
    def _columns(self) -> list[str]:
        """The names of the columns that are encoded."""
        encoder = self.detector.model_.plan.encoder
        return [encoder.column_names[place] for place in dict.fromkeys(encoder.source.tolist())]

    def _means(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The mean of the last rows of so many, and how far it is; NaN for less than two.

        -> (n_encoded + those of the values,), (n_encoded,)
        """
        n, n_encoded = _compared(rows), self._squares.shape[1]
        held = self._held[:, :n_encoded]
        if n < 2 or len(held) < 2:
            return np.full(self._held.shape[1], np.nan), np.full(n_encoded, np.nan)
        means = self._sums.sum(axis=0) / n
        mean = means[:n_encoded]
        variance = np.maximum(self._squares.sum(axis=0) / n - mean**2, 0)
        spread = variance / n + held.var(axis=0) / len(held)
        return means, (mean - held.mean(axis=0)) / np.sqrt(np.maximum(spread, 1e-12))

    def _moved(self, errors: np.ndarray) -> np.ndarray:
        """How far each column has moved, by its encoded one that did so farthest."""
        source = self.detector.model_.plan.encoder.source.tolist()
        farthest = dict.fromkeys(source, np.nan)
        for column, away in zip(source, errors.tolist(), strict=True):
            if not abs(away) < abs(farthest[column]):
                farthest[column] = away
        return np.array(list(farthest.values()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the state to a file, without pickle; `load` continues from it."""
        with written_whole(path) as file:
            self.write(file)

    def write(self, file: BinaryIO) -> None:
        """Write the state to an open file."""
        words = {"form": _FORM, "model": self.model_, "delta": self.delta}
        words |= {"random_state": self.random_state, "quiet_only": self.quiet_only}
        words |= asdict(self.watched)
        runs: dict[str, Any] = self.runs.arrays()
        np.savez(
            file,
            words=np.array(json.dumps(words)),
            accounts=np.array(self._jumper.accounts),
            scores=np.array(self._ranks.ordered),
            sums=self._sums,
            squares=self._squares,
            points=self._points,
            moves=self._moves,
            open_units=np.array(list(self._open), dtype=np.uint64),
            open_sums=np.reshape(list(self._open.values()), (-1, 3 + self._sums.shape[1])),
            **runs,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], detector: Fitted) -> "Monitor":
        """The monitor in a file; if the model has changed since, a new episode begins."""
        with Path(path).open("rb") as file:
            return cls.read(file, detector, path=os.fspath(path))

    @classmethod
    def read(cls, file: BinaryIO, detector: Fitted, *, path: str = "The file") -> "Monitor":
        """The monitor in an open file, which messages call `path`."""
        try:
            with np.load(file, allow_pickle=False) as kept:
                words = json.loads(str(kept["words"]))
                accounts, scores, sums, squares = (kept[name].astype(float) for name in _ARRAYS)
                points, moves = (kept[name].astype(float) for name in ("points", "moves"))
                runs = Runs.from_arrays(kept) if "runs" in kept else Runs()
                opened, open_sums = kept["open_units"], kept["open_sums"]
            if words.pop("form") != _FORM:
                raise ValueError("another form")
            delta, seed, model = (words.pop(name) for name in ("delta", "random_state", "model"))
            quiet_only = words.pop("quiet_only")
            watched = Watched(**{f.name: words[f.name] for f in fields(Watched)})
        except (ValueError, KeyError, TypeError, BadZipFile) as error:
            raise UserError(
                f"{path} does not hold the state of a monitor, or is damaged.",
                hint="Pass the file that Monitor.save wrote, or start without it.",
                topic="damaged_watch",
            ) from error
        monitor = cls(detector, delta=delta, random_state=seed, quiet_only=quiet_only)
        monitor.runs = runs
        if model != monitor.model_:
            monitor.before = watched
            monitor._begin(watched.episode + 1)
            return monitor
        monitor.watched, monitor._sums, monitor._squares = watched, sums, squares
        monitor._ranks = SequentialRanks(scores)
        monitor._jumper.accounts = tuple(accounts.tolist())
        n_bets = watched.rows - watched.alarms if quiet_only else watched.rows
        monitor._jumper.n = n_bets if watched.units is None else watched.units
        monitor._open = dict(zip(opened.tolist(), open_sums, strict=True))
        monitor._points, monitor._moves = points, moves
        return monitor


def _means(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The mean of the rows of each unit.  (n, d) -> (n_units, d)"""
    _, place, n_rows = np.unique(units, return_inverse=True, return_counts=True)
    sums = np.zeros((len(n_rows), values.shape[1]))
    np.add.at(sums, place, values)
    return sums / n_rows[:, None]


def _compared(rows: int) -> int:
    """Of so many rows, how many are in the last two blocks."""
    return rows if rows <= _BLOCK else _BLOCK + (rows - 1) % _BLOCK + 1


def fingerprint(model: Model) -> str:
    """A hash of what a model has learnt, which changes with it."""
    learnt = hashlib.sha256()
    solved = [array for parts in model.score.state().values() for array in parts.values()]
    for part in (*solved, model.evidence.held_out.normal, model.plan.kernel.landmarks):
        learnt.update(np.ascontiguousarray(part).tobytes())
    return learnt.hexdigest()


# A bet on scores is slow to notice a few more alarms, or a column that matters little. `recent`
# checks both separately, as if every 50 rows.


def chance_at(look: int, *, delta: float) -> float:
    """The probability of a false alert at the j-th look: over all looks it adds up to delta."""
    return delta / (look * (look + 1))


def far_off(chance: float, *, rows: int, n_values: int) -> float:
    """The standard errors from which one of several values has moved; infinite for few rows."""
    return float(-ndtri(chance / (2 * n_values))) if rows >= _MIN_ROWS_TO_COMPARE else float("inf")


def too_many(alarms: int, rows: int, *, rank: int, n_held: int, chance: float) -> bool:
    """Whether so many alarms are less likely than this (beta-binomial); a rank of 0 says no."""
    from scipy.stats import betabinom  # takes long to import

    if not rank:
        return False
    return bool(betabinom(rows, rank, n_held + 1 - rank).sf(alarms - 1) < chance)
