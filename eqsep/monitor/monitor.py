"""The monitor: whether rows still are as those that a detector was calibrated by."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np

from eqsep.detector import Detector
from eqsep.detector.model import Model
from eqsep.errors import ParameterError, UserError, warn
from eqsep.files import written_whole
from eqsep.monitor.martingale import SequentialRanks, SimpleJumper
from eqsep.monitor.recent import ColumnShift, Recent, chance_at, far_off, too_many

_FORM = "eqsep monitor 1"
_BLOCK = 500  # rows: columns are compared by those of the last two blocks
_STEP = 50  # rows between the points of the history
_RECENT = 1_000  # rows by which recent alarms are counted, or a few more
_ARRAYS = ("accounts", "scores", "sums", "squares")


@dataclass(frozen=True)
class Watched:
    """What was seen in one episode: the rows watched since the model last changed.

    Attributes
    ----------
    episode : int
        1 for the first; each change of the model begins another.
    rows : int
    alarms : int
        Rows above the threshold.
    martingale, highest : float
        The capital of the bet against exchangeability, now and at its highest.
    broken_at : int or None
        The number of the row at which it exceeded 1 / delta, counted from 1 in the episode.
    """

    episode: int = 1
    rows: int = 0
    alarms: int = 0
    martingale: float = 1.0
    highest: float = 1.0
    broken_at: int | None = None

    @property
    def alarm_rate(self) -> float:
        """The share of the rows that raise an alarm."""
        return self.alarms / max(self.rows, 1)


@dataclass(frozen=True, eq=False)
class History:
    """An episode over time.

    Attributes
    ----------
    rows : ndarray of shape (n_points,)
        After how many rows.
    martingale, alarms : ndarray of shape (n_points,)
        The capital then, and how many rows had raised an alarm.
    shift_rows : ndarray of shape (n_blocks,)
    shifts : dict of str to ndarray of shape (n_blocks,)
        How far the mean of each column had moved, in standard errors.
    """

    rows: np.ndarray
    martingale: np.ndarray
    alarms: np.ndarray
    shift_rows: np.ndarray
    shifts: dict[str, np.ndarray]


class Monitor:
    """Watches rows as they come, and says when they are no longer exchangeable with the old ones.

    The rows that calibrate a detector stand for what it knows. While new rows come from where these
    came from, in any order, a false word that "exchangeability is broken" is said with a chance of
    at most `delta` in an episode, however long one looks. Rows that are mostly normal are meant, as
    they come: not rows that were picked for their scores, and not a batch full of anomalies. Where
    the fit has found that rows are alike or change over time (`caution_`), nothing bounds that
    chance: the monitor warns of it once more.

    Parameters
    ----------
    detector : Detector
        Fitted. When it has learnt, merged or forgotten something, a new episode begins.
    delta : float, default=0.01
        The chance of a false word.
    random_state : int, default=0
        Breaks ties between equal scores.

    Attributes
    ----------
    watched : Watched
        What was seen in the present episode.
    before : Watched or None
        What was seen in the episode before, which a change of the model has ended.

    Examples
    --------
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

    def __init__(self, detector: Detector, *, delta: float = 0.01, random_state: int = 0) -> None:
        self.delta, self.random_state = _checked(delta, random_state)
        self.detector = detector
        self._begin(1)
        caution = detector.model_.caution
        if caution is not None:
            warn(caution.warning())

    def _begin(self, episode: int) -> None:
        """A new episode, with the rows that calibrate now."""
        model = self.detector.model_
        self.model_ = fingerprint(model)
        calibration = model.calibration
        if model.plan.holdout.grouping:
            raise UserError(
                "Rows in groups or in time cannot be watched one by one: rows of one group are "
                "alike, so a monitor would soon call them changed, even with a model that was "
                "fitted without groups.",
                hint="Compare the share of alarms among new groups with false_alarm_rate instead.",
                topic="watched_groups",
            )
        if not len(calibration.counting):
            raise UserError(
                "The detector has no held-out rows, so there is nothing to compare new rows with. "
                "Fit it to more normal rows."
            )
        self.watched = Watched(episode=episode)
        self._evidence = model.evidence
        self._ranks, self._jumper = SequentialRanks(calibration.ordered), SimpleJumper()
        n_encoded = len(model.plan.encoder.counted)
        self._sums = np.zeros((2, n_encoded))  # of the last block, and this one
        self._squares = np.zeros_like(self._sums)
        self._points, self._moves = np.empty((0, 3)), np.empty((0, 1 + len(self._columns)))

    def update(self, X: Any) -> Watched:
        """Watch the rows of a table, in their order; what was seen in this episode so far."""
        model = self.detector.model_
        rows = model.plan.encode(X)
        return self.update_scored(rows, model.score(rows))

    def update_scored(self, rows: np.ndarray, scores: np.ndarray) -> Watched:
        """The same for rows that were encoded and scored by the detector already."""
        model = self.detector.model_
        if model.evidence is not self._evidence:  # else it has learnt nothing
            self._evidence = model.evidence
            if fingerprint(model) != self.model_:
                self.before = self.watched
                self._begin(self.watched.episode + 1)
        self._sum_up(rows)
        highest, broken_at = self.watched.highest, self.watched.broken_at
        alarm = scores > model.threshold
        so_far = self.watched.alarms + np.cumsum(alarm)
        points = []
        ties = self._ties(len(scores))
        for score, tie, alarms in zip(scores.tolist(), ties, so_far.tolist(), strict=True):
            self._jumper.bet(self._ranks.p_value(score, tie=tie))
            highest = max(highest, self._jumper.capital)
            if broken_at is None and highest >= 1 / self.delta:
                broken_at = self._jumper.n
            if self._jumper.n % _STEP == 0:
                points.append((self._jumper.n, self._jumper.capital, alarms))
        self._points = np.vstack([self._points, np.reshape(points, (-1, 3))])
        self.watched = Watched(
            episode=self.watched.episode,
            rows=self.watched.rows + len(scores),
            alarms=self.watched.alarms + int(alarm.sum()),
            martingale=self._jumper.capital,
            highest=highest,
            broken_at=broken_at,
        )
        return self.watched

    def _sum_up(self, rows: np.ndarray) -> None:
        """Add up encoded rows, block by block; of these the last two are kept."""
        n_rows = self.watched.rows
        for part in np.split(rows, range(-n_rows % _BLOCK, len(rows), _BLOCK)):
            if len(part) and n_rows % _BLOCK == 0:
                for sums in (self._sums, self._squares):
                    sums[0], sums[1] = sums[1], 0.0
            self._sums[1] += part.sum(axis=0, dtype=float)
            self._squares[1] += np.square(part, dtype=float).sum(axis=0)
            n_rows += len(part)
            if len(part) and n_rows % _BLOCK == 0:
                self._moves = np.vstack([self._moves, [n_rows, *self._moved(n_rows)]])

    def _ties(self, n: int) -> list[float]:
        """The next draws that break ties: the same ones, however the rows are divided."""
        stream = np.random.PCG64([self.random_state, self.watched.episode])
        return np.random.Generator(stream.advance(self.watched.rows)).random(n).tolist()

    def shifts(self) -> list[ColumnShift]:
        """How far the mean of each column has moved from the held-out rows, the farthest first.

        The mean is that of the last 500 to 1,000 rows. Of a column that is encoded by several
        values, the one that has moved most. Of many columns some are 3 standard errors away by
        chance: `recent` says from where on they have moved.
        """
        moved = self._moved(self.watched.rows)
        found = [
            ColumnShift(column, float(errors))
            for column, errors in zip(self._columns, moved, strict=True)
        ]
        known = [shift for shift in found if not np.isnan(shift.standard_errors)]
        return sorted(known, key=lambda shift: -abs(shift.standard_errors))

    def recent(self) -> Recent:
        """What is to be looked at in the last rows: columns that have moved, too many alarms.

        Each is wrongly said with a chance of at most delta in an episode, if one looks every 50
        rows or less often; of columns as far as means of 100 rows and more are normal.
        """
        seen, model = self.watched, self.detector.model_
        promise, calibration = model.promise, model.calibration
        before = self._points[self._points[:, 0] <= seen.rows - _RECENT]
        rows, alarms = before[-1, [0, 2]].astype(int).tolist() if len(before) else (0, 0)
        rows, alarms = seen.rows - rows, seen.alarms - alarms
        chance = chance_at(seen.rows // _STEP + 1, delta=self.delta)
        rank = calibration.rank(promise.false_alarm_rate, promise.confidence)
        n_held = len(calibration.counting)
        far = far_off(chance, rows=seen.rows, n_values=len(model.plan.encoder.counted))
        return Recent(
            rows=rows,
            alarms=alarms,
            too_many=too_many(alarms, rows, rank=rank, n_held=n_held, chance=chance),
            far=far,
            moved=tuple(shift for shift in self.shifts() if abs(shift.standard_errors) > far),
        )

    @property
    def chance(self) -> str:
        """How often it is wrongly said that rows have changed, in words."""
        if self.detector.model_.caution is not None:
            return (
                "with a chance that is not known: the fit found that its rows are not independent"
            )
        return f"with a chance of at most {self.delta:g}"

    @property
    def history(self) -> History:
        """The present episode over time: a point for every 50 rows, shifts for every 500."""
        rows, martingale, alarms = self._points.T
        shift_rows, *moves = self._moves.T
        shifts = dict(zip(self._columns, moves, strict=True))
        return History(
            rows=rows, martingale=martingale, alarms=alarms, shift_rows=shift_rows, shifts=shifts
        )

    @property
    def _columns(self) -> list[str]:
        """The columns that are encoded, by the names that the table gives them."""
        encoder = self.detector.plan_.encoder
        names = encoder.column_names
        return [names[place] for place in dict.fromkeys(encoder.source.tolist())]

    def _moved(self, rows: int) -> np.ndarray:
        """How far the mean of each column has moved after so many rows; NaN of fewer than two."""
        model = self.detector.model_
        source = model.plan.encoder.source.tolist()
        farthest = dict.fromkeys(source, np.nan)
        held = model.evidence.held_out.normal[model.calibration.counting].astype(float)
        n = rows if rows <= _BLOCK else _BLOCK + (rows - 1) % _BLOCK + 1
        if n < 2 or len(held) < 2:
            return np.array(list(farthest.values()))
        mean = self._sums.sum(axis=0) / n
        spread = np.maximum(self._squares.sum(axis=0) / n - mean**2, 0) / n + held.var(
            axis=0
        ) / len(held)
        away = (mean - held.mean(axis=0)) / np.sqrt(np.maximum(spread, 1e-12))
        for column, errors in zip(source, away.tolist(), strict=True):
            if not abs(errors) < abs(farthest[column]):
                farthest[column] = errors
        return np.array(list(farthest.values()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was seen to a file, without pickle: `load` goes on as if never stopped."""
        with written_whole(path) as file:
            self.write(file)

    def write(self, file: BinaryIO) -> None:
        """Write what was seen to an open file."""
        words = {"form": _FORM, "model": self.model_, "delta": self.delta}
        words |= {"random_state": self.random_state} | asdict(self.watched)
        np.savez(
            file,
            words=np.array(json.dumps(words)),
            accounts=np.array(self._jumper.accounts),
            scores=np.array(self._ranks.ordered),
            sums=self._sums,
            squares=self._squares,
            points=self._points,
            moves=self._moves,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], detector: Detector) -> "Monitor":
        """The monitor in a file; with a model that has changed since, a new episode begins."""
        with Path(path).open("rb") as file:
            return cls.read(file, detector, path=os.fspath(path))

    @classmethod
    def read(cls, file: BinaryIO, detector: Detector, *, path: str = "The file") -> "Monitor":
        """The monitor in an open file, which messages call `path`."""
        try:
            with np.load(file, allow_pickle=False) as kept:
                words = json.loads(str(kept["words"]))
                accounts, scores, sums, squares = (kept[name].astype(float) for name in _ARRAYS)
                points, moves = kept.get("points"), kept.get("moves")
            if words.pop("form") != _FORM:
                raise ValueError("another form")
            delta, seed, model = (words.pop(name) for name in ("delta", "random_state", "model"))
            watched = Watched(**{f.name: words[f.name] for f in fields(Watched)})
        except (ValueError, KeyError, TypeError, BadZipFile) as error:
            raise UserError(
                f"{path} does not hold the state of a monitor, or is damaged.",
                hint="Pass the file that Monitor.save wrote, or start without it.",
                topic="damaged_watch",
            ) from error
        monitor = cls(detector, delta=delta, random_state=seed)
        if model != monitor.model_:
            monitor.before = watched
            monitor._begin(watched.episode + 1)
            return monitor
        monitor.watched, monitor._sums, monitor._squares = watched, sums, squares
        monitor._ranks = SequentialRanks(scores)
        monitor._jumper.accounts, monitor._jumper.n = tuple(accounts.tolist()), watched.rows
        if points is not None and moves is not None:  # else it was written without a history
            monitor._points, monitor._moves = points.astype(float), moves.astype(float)
        return monitor


def _checked(delta: Any, random_state: Any) -> tuple[float, int]:
    """The parameters of a monitor, or an error that says what is wrong with them."""
    if not isinstance(delta, Real) or not 0 < float(delta) < 1:
        raise ParameterError(
            "delta",
            expected="a number between 0 and 1",
            got=delta,
            hint="It is the probability of a false drift alert.",
        )
    if not isinstance(random_state, Integral) or int(random_state) < 0:
        raise ParameterError(
            "random_state", expected="a whole number of at least 0", got=random_state
        )
    return float(delta), int(random_state)


def fingerprint(model: Model) -> str:
    """What a model has learnt, as a hash: another one once that has changed."""
    score = model.score
    parts = (score.coef, score.likeness_coef, score.leaf_votes)
    learnt = hashlib.sha256()
    for part in (*parts, model.evidence.held_out.normal, model.plan.terms.landmarks):
        learnt.update(np.ascontiguousarray(part).tobytes())
    return learnt.hexdigest()
