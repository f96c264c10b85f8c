"""How often each warning and each piece of advice is right, on known tables and damaged copies.

    python bench/warnings_audit.py                          all cases
    python bench/warnings_audit.py --sample 60 --seed 1     some, drawn at random
    python bench/warnings_audit.py --tables yeast process/0 --processes 4

A case is a table of at most 4,000 rows and what was done to it: labels shuffled or taken away, a
column that gives them away, ids, copies, rows sorted, and so on. A detector with few landmarks is
fitted to half of the rows, or to the first ones where they are in order. What it warns of, and the
steps that its report advises, are then measured on the other rows:

- a threshold that is too high: less than half of the fresh anomalies, or of rows far out in all
  numbers, raise an alarm; where unlabelled rows set it, a quarter of the first twenty
  suspects must be anomalies, too
- a leak: it was planted, or the column alone has an average precision of .95 on fresh rows; it is
  missing where it was planted, or where that of the learnt rows is above .99
- ids, counters: fresh normal rows raise more than twice the promised false alarms once the column
  moves beyond what was learnt; dates, and dates beyond those learnt: more than the promise allows
- rows in runs, drift: false alarms on later rows are more than the promise allows (1 % by chance;
  for blocks of time, one and a half times the rate); where drift is said to be over, nothing
- more alarms: the share of a kind that is caught rises by .05 with them
- more columns, more labels: a forest with all labels hardly finds the named kinds; it finds them
- misses: at most three in ten other rows of the named kinds raise an alarm
- all others: whether what was done to the table is what they say

One line is printed for each warning that came, or should have, as cases are done; then the table,
also if the run is stopped with Ctrl-C.
"""

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from typing import Any

import adbench
import numpy as np
import pandas as pd
import skab
import tasks
from scipy.stats import betabinom
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score
from tasks import DATA_HOME

from eqsep import Detector
from eqsep.checks import Finding, rows_beyond, warn_of
from eqsep.detector import Config, suspects
from eqsep.errors import EqsepWarning, Note
from eqsep.report import HeldOut, detector_report
from eqsep.tables.reading import read_table

MOST_ROWS, MOST_VALUES, MOST_REPORTED = 4000, 400_000, 100  # rows, values, columns of a report
CHANCE = 0.01  # of more false alarms than that, if the promise is kept
RATE = 0.02  # that is promised: small tables can
TIME_RATE = 0.1  # the same for new blocks of time, of which there are fewer than rows
FEWEST = 5  # anomalies, or normal rows: fewer are separated by chance


@dataclass(frozen=True, eq=False)
class Rows:
    """A table in the order of its file, and which columns are known to be what is warned of."""

    frame: pd.DataFrame
    kind: np.ndarray
    in_time: bool = False
    known: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def at(self, index: np.ndarray) -> "Rows":
        return replace(self, frame=self.frame.iloc[index], kind=self.kind[index])

    def of(self, kind: str) -> "Rows":
        return self.at(np.flatnonzero(self.kind == kind))

    def with_column(self, name: str, values: Any, *, warning: str) -> "Rows":
        """One more column, of which this warning is right."""
        known = self.known | {warning: (*self.known.get(warning, ()), name)}
        return replace(self, frame=self.frame.assign(**{name: values}), known=known)


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows to fit with these labels and options, fresh ones, and what should be warned of."""

    train: Rows
    fresh: Rows
    y: Any
    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    due: tuple[str, ...] = ()  # warnings that are right by what was done
    then: Callable[[Detector], Any] | None = None  # what follows the fit
    in_order: bool = False  # whether the fresh rows come later
    reported: bool = False


@dataclass(frozen=True)
class Verdict:
    """A warning that came or should have; `right` is None where nothing can be measured."""

    warning: str
    came: bool
    right: bool | None
    text: str = ""


# Tables


def _kinds(y: np.ndarray) -> np.ndarray:
    return np.where(y == 1, "anomaly", "normal")


def _numbers(X: np.ndarray, y: np.ndarray, **known: Any) -> Rows:
    names = [f"x{i}" for i in range(X.shape[1])]
    return Rows(pd.DataFrame(np.asarray(X, dtype=float), columns=names), _kinds(y), **known)


def _file(path: Any) -> Rows:
    return _numbers(*adbench.rows_of(path))


def _task(name: str) -> Rows:
    rows = tasks.rows_of(name)
    in_time = name in tasks.MADE_UP
    if in_time:  # ten normal runs, and one of each fault
        _, first = np.unique(rows.kind, return_index=True)
        normal = np.unique(rows.group[rows.kind == "normal"])[:10]
        rows = rows.at(np.flatnonzero(np.isin(rows.group, [*normal, *rows.group[first]])))
    return Rows(rows.frame.reset_index(drop=True), rows.kind.astype(str), in_time)


def _run(path: Any) -> Rows:
    X, is_anomaly = skab.run_of(path)
    return _numbers(X, is_anomaly.astype(int), in_time=True)


def _machines(*, by_kind: bool) -> Rows:
    """All columns of the file: a number and an id of each row, and a flag of each kind."""
    frame = pd.read_csv(DATA_HOME / "ai4i2020" / "ai4i2020.csv", encoding="utf-8-sig")
    failed = frame.pop("Machine failure").to_numpy()
    kind, flags = _kinds(failed), ("TWF", "HDF", "PWF", "OSF")
    if by_kind:
        for flag in flags:
            kind = np.where((frame[flag] == 1) & (failed == 1), flag, kind)
    known = {"LeakingColumnWarning": flags, "CountingColumnWarning": ("UDI",)}
    return Rows(frame, kind, known=known | {"DroppedColumnWarning": ("Product ID",)})


def tables() -> dict[str, Callable[[], Rows]]:
    """How each table is read, by its name."""
    found: dict[str, Callable[[], Rows]] = {}
    for folder in ("adbench", "mvtec-embeddings"):
        for path in sorted((DATA_HOME / folder).glob("*.npz")):
            found[path.stem] = lambda path=path: _file(path)
    for name in tasks.ALL_TABLES:
        found[name] = lambda name=name: _task(name)
    found["ai4i2020/file"] = lambda: _machines(by_kind=False)
    found["ai4i2020/file by kind"] = lambda: _machines(by_kind=True)
    for folder in skab.FOLDERS:
        for path in sorted((DATA_HOME / "skab" / folder).glob("*.csv")):
            found[f"skab/{folder}/{path.stem}"] = lambda path=path: _run(path)
    return found


@cache
def rows_of(table: str) -> Rows:
    """Some rows of a table, in their order: consecutive ones of a run."""
    rows = tables()[table]()
    n, most = len(rows.kind), max(min(MOST_ROWS, MOST_VALUES // rows.frame.shape[1]), 400)
    if n <= most or rows.in_time:
        return rows.at(np.arange(min(n, most))) if table.startswith("skab") else rows
    return rows.at(np.sort(np.random.default_rng(0).choice(n, most, replace=False)))


# What is done to them


def _halves(rows: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Half of each kind to fit, in the order of the table, and the others."""
    first = np.zeros(len(rows.kind), dtype=bool)
    for kind in np.unique(rows.kind):
        places = rng.permutation(np.flatnonzero(rows.kind == kind))
        first[places[: (len(places) + 1) // 2]] = True
    return rows.at(np.flatnonzero(first)), rows.at(np.flatnonzero(~first))


def _trial(rows: Rows, rng: np.random.Generator, **changes: Any) -> Trial:
    train, fresh = _halves(rows, rng)
    return Trial(**{"train": train, "fresh": fresh, "y": train.kind.astype(object)} | changes)


def as_it_is(rows: Rows, rng: np.random.Generator) -> Trial:
    return _trial(rows, rng, reported=True)


def a_quarter_labelled(rows: Rows, rng: np.random.Generator) -> Trial:
    """Three in four anomalies, and all normal rows, have no label."""
    trial = _trial(rows, rng, reported=True)
    known = (trial.y != "normal") & (rng.uniform(size=len(trial.y)) < 0.25)
    return replace(trial, y=np.where(known, trial.y, None))


def no_labels(rows: Rows, rng: np.random.Generator) -> Trial:
    train, fresh = _halves(rows, rng)
    return Trial(train=train.of("normal"), fresh=fresh, y=None, reported=True)


def narrow_kernel(rows: Rows, rng: np.random.Generator) -> Trial:
    return replace(no_labels(rows, rng), settings={"bandwidth": 0.002}, reported=False)


def shuffled_labels(rows: Rows, rng: np.random.Generator) -> Trial:
    return _trial(replace(rows, kind=rng.permutation(rows.kind), known=_no_leaks(rows)), rng)


def _no_leaks(rows: Rows) -> dict[str, tuple[str, ...]]:
    return {name: own for name, own in rows.known.items() if name != "LeakingColumnWarning"}


def leak(rows: Rows, rng: np.random.Generator) -> Trial:
    values = (rows.kind != "normal") * 5.0 + rng.uniform(size=len(rows.kind))
    rows = rows.with_column("leak", values, warning="LeakingColumnWarning")
    return replace(_trial(rows, rng), reported=True)


def leak_in_part(rows: Rows, rng: np.random.Generator) -> Trial:
    """One row in four hundred disagrees."""
    values = np.where(rows.kind == "normal", "ok", "E7").astype(object)
    wrong = rng.choice(len(values), max(len(values) // 400, 1), replace=False)
    values[wrong] = np.where(values[wrong] == "ok", "E7", "ok")
    return _trial(rows.with_column("leak", values, warning="LeakingColumnWarning"), rng)


def another_coding(rows: Rows, rng: np.random.Generator) -> Trial:
    kinds, place = np.unique(rows.kind, return_inverse=True)
    codes = rng.permutation(len(kinds) + 3)[place] * 10
    return _trial(rows.with_column("code", codes, warning="LeakingColumnWarning"), rng)


def flag_of_a_kind(rows: Rows, rng: np.random.Generator) -> Trial:
    kinds, counts = np.unique(rows.kind[rows.kind != "normal"], return_counts=True)
    flag = (rows.kind == kinds[counts.argmax()]).astype(float)
    return _trial(rows.with_column("flag", flag, warning="LeakingColumnWarning"), rng)


def counter(rows: Rows, rng: np.random.Generator) -> Trial:
    number = np.arange(len(rows.kind))
    trial = _trial(rows.with_column("number", number, warning="CountingColumnWarning"), rng)
    return replace(trial, reported=True)


def shuffled_ids(rows: Rows, rng: np.random.Generator) -> Trial:
    number = rng.permutation(3 * len(rows.kind))[: len(rows.kind)]
    return _trial(rows.with_column("id", number, warning="CountingColumnWarning"), rng)


def text_ids(rows: Rows, rng: np.random.Generator) -> Trial:
    ids = [f"A{i:06d}" for i in rng.permutation(10**6)[: len(rows.kind)]]
    return _trial(rows.with_column("id", ids, warning="DroppedColumnWarning"), rng)


def dates(rows: Rows, rng: np.random.Generator) -> Trial:
    """The fresh rows are from the time that follows, three times as long."""
    hours = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(4 * len(rows.kind)), "h")
    return _followed(rows, hours, rng)


def numbered_days(rows: Rows, rng: np.random.Generator) -> Trial:
    """The same with the numbers of 30 days, each in many rows."""
    n = len(rows.kind)
    return _followed(rows, 1 + np.arange(4 * n) * 30 // ((n + 1) // 2), rng)


def _followed(rows: Rows, days: Any, rng: np.random.Generator) -> Trial:
    """Rows with the first of these days, then fresh rows over three times as many."""
    train, fresh = _halves(rows.at(rng.permutation(len(rows.kind))), rng)
    n, m = len(train.kind), len(fresh.kind)
    train = train.with_column("day", days[:n], warning="DateColumnWarning")
    train = replace(train, known=train.known | {"NewDateWarning": ("day",)})
    fresh = replace(fresh, frame=fresh.frame.assign(day=days[n + 3 * n * np.arange(m) // m]))

    def score(detector: Detector) -> None:
        found = rows_beyond(read_table(fresh.frame, name="audit"), detector.plan_.encoder)
        warn_of(detector.model_.check_beyond(found, n_rows=len(fresh.kind)))

    y = train.kind.astype(object)
    return Trial(train=train, fresh=fresh, y=y, then=score, reported=True)


def decimal_commas(rows: Rows, rng: np.random.Generator) -> Trial:
    numbers = rng.normal(size=len(rows.kind)).round(1)
    texts = [f"{number:.1f}".replace(".", ",") for number in numbers]
    return _trial(rows.with_column("comma", texts, warning="DecimalCommaWarning"), rng)


def misspelt_labels(rows: Rows, rng: np.random.Generator) -> Trial:
    trial = _trial(rows, rng, due=("LabelSpellingWarning",))
    anomalous = np.flatnonzero(trial.y != "normal")
    trial.y[anomalous[::3]] = [f" {label.upper()}" for label in trial.y[anomalous[::3]]]
    return trial


def copies(rows: Rows, rng: np.random.Generator) -> Trial:
    trial = _trial(rows, rng, due=("CopiedRowsWarning",))
    twice = rng.permutation(np.repeat(np.arange(len(trial.y)), 2))
    return replace(trial, train=trial.train.at(twice), y=trial.y[twice])


def some_copies(rows: Rows, rng: np.random.Generator) -> Trial:
    """One row in five is there twice: no warning says so."""
    trial = _trial(rows, rng)
    n = len(trial.y)
    more = rng.permutation(np.append(np.arange(n), rng.choice(n, n // 5, replace=False)))
    return replace(trial, train=trial.train.at(more), y=trial.y[more])


def near_copies(rows: Rows, rng: np.random.Generator) -> Trial:
    """Each row twice, the second time with a little noise."""
    trial = _trial(rows, rng)
    twice = rng.permutation(np.repeat(np.arange(len(trial.y)), 2))
    train = trial.train.at(twice)
    noisy = train.frame.copy()
    for name in noisy.select_dtypes("number"):
        spread = float(noisy[name].std())
        noisy[name] = noisy[name] + 1e-6 * spread * rng.normal(size=len(noisy))
    return replace(trial, train=replace(train, frame=noisy), y=trial.y[twice])


def few_rows(rows: Rows, rng: np.random.Generator) -> Trial:
    train, fresh = _halves(rows, rng)
    normal = np.flatnonzero(train.kind == "normal")[:60]
    some = np.sort(np.append(normal, np.flatnonzero(train.kind != "normal")[:20]))
    train = train.at(some)
    return Trial(train=train, fresh=fresh, y=train.kind.astype(object), reported=True)


def ten_labels(rows: Rows, rng: np.random.Generator) -> Trial:
    train, fresh = _halves(rows, rng)
    place = np.zeros(len(train.kind), dtype=int)
    for kind in np.unique(train.kind):
        own = train.kind == kind
        place[own] = np.arange(own.sum())
    train = train.at(np.flatnonzero((train.kind == "normal") | (place < 10)))
    return Trial(train=train, fresh=fresh, y=train.kind.astype(object), reported=True)


def learnt_twice(rows: Rows, rng: np.random.Generator) -> Trial:
    trial = _trial(rows, rng, due=("RepeatedRowsWarning",))
    return replace(trial, then=lambda one: one.partial_fit(trial.train.frame, trial.y))


def learnt_on(rows: Rows, rng: np.random.Generator) -> Trial:
    trial = _trial(rows, rng)
    fresh = trial.fresh
    return replace(trial, then=lambda one: one.partial_fit(fresh.frame, fresh.kind.astype(object)))


def a_new_kind(rows: Rows, rng: np.random.Generator) -> Trial:
    """The rarest kind is learnt after the first fit."""
    train, fresh = _halves(rows, rng)
    kinds, counts = np.unique(train.kind, return_counts=True)
    new = train.of(str(kinds[counts.argmin()]))
    old = train.at(np.flatnonzero(train.kind != new.kind[0]))

    def learn(detector: Detector) -> None:
        detector.partial_fit(new.frame, new.kind.astype(object))

    y = old.kind.astype(object)
    return Trial(train=old, fresh=fresh.of(str(new.kind[0])), y=y, then=learn)


def another_table(rows: Rows, rng: np.random.Generator) -> Trial:
    """The rows to score have a column more."""
    trial = _trial(rows, rng, due=("ColumnMatchWarning",))
    return replace(trial, then=lambda one: one.predict(trial.fresh.frame.assign(more=1.0)))


def _in_order(rows: Rows, **changes: Any) -> Trial:
    """The first rows to fit, normal ones, and those that follow."""
    normal = np.flatnonzero(rows.kind == "normal")
    first = normal[: int(0.6 * len(normal))]
    train, fresh = rows.at(first), rows.at(np.arange(first[-1] + 1, len(rows.kind)))
    return Trial(**{"train": train, "fresh": fresh, "y": None, "in_order": True} | changes)


def in_order(rows: Rows, _: np.random.Generator) -> Trial:
    return _in_order(rows, reported=True)


def sorted_rows(rows: Rows, _: np.random.Generator) -> Trial:
    """By the column with the most values."""
    name = rows.frame.nunique().idxmax()
    return _in_order(rows.at(np.argsort(rows.frame[name].to_numpy(), kind="stable")))


def shuffled_rows(rows: Rows, rng: np.random.Generator) -> Trial:
    return _in_order(rows.at(rng.permutation(len(rows.kind))))


def in_time(rows: Rows, _: np.random.Generator) -> Trial:
    return _timed(_in_order(rows, reported=True))


def shuffled_in_time(rows: Rows, rng: np.random.Generator) -> Trial:
    return _timed(shuffled_rows(rows, rng))


def _timed(trial: Trial) -> Trial:
    options = {"time": np.arange(len(trial.train.kind))}
    return replace(trial, options=options, settings={"false_alarm_rate": TIME_RATE})


def seasons(rows: Rows, rng: np.random.Generator) -> Trial:
    """One more column comes round, a bit more than once in the rows to fit; else no change."""
    n_fitted = 0.6 * len(rows.kind)
    start, noise = rng.uniform(0, 2 * np.pi), rng.normal(size=len(rows.kind))
    wave = 4 * np.sin(start + 1.1 * 2 * np.pi * np.arange(len(rows.kind)) / n_fitted) + noise
    rows = rows.at(rng.permutation(len(rows.kind)))
    return in_time(replace(rows, frame=rows.frame.assign(season=wave)), rng)


def several_clocks(rows: Rows, _: np.random.Generator) -> Trial:
    trial = _in_order(rows, due=("TimeOrderWarning",))
    n = len(trial.train.kind)
    return replace(trial, options={"time": np.arange(n) % (n // 4 + 1)})


DAMAGES = {
    damage.__name__.replace("_", " "): damage
    for damage in (
        *(as_it_is, a_quarter_labelled, no_labels, narrow_kernel, shuffled_labels),
        *(leak, leak_in_part, another_coding, flag_of_a_kind),
        *(counter, shuffled_ids, text_ids, dates, numbered_days),
        *(decimal_commas, misspelt_labels),
        *(copies, some_copies, near_copies, few_rows, ten_labels),
        *(learnt_twice, learnt_on, a_new_kind, another_table),
        *(in_order, sorted_rows, shuffled_rows, in_time, shuffled_in_time),
        *(seasons, several_clocks),
    )
}
OF_RUNS = {"in order", "shuffled rows", "in time", "shuffled in time", "seasons", "several clocks"}


# What a detector says, and whether that is right


@dataclass(frozen=True, eq=False)
class Said:
    """A fitted detector, its warnings and the steps of its report, and rows to measure on."""

    trial: Trial
    detector: Detector
    warnings: tuple[EqsepWarning, ...]
    steps: tuple[Any, ...]  # of the report

    def of(self, name: str) -> list[EqsepWarning]:
        return [one for one in self.warnings if type(one).__name__ == name]

    def alarms(self, rows: Rows) -> np.ndarray:
        detector = self.detector
        return detector.score_samples(rows.frame) > detector.threshold_

    def caught(self) -> float:
        """The share of fresh anomalies that raise an alarm, of kinds that were seen."""
        fresh = self.trial.fresh
        labels = set(self.detector.kinds_) or set(fresh.kind) - {"normal"}
        own = np.flatnonzero(np.isin(fresh.kind, [*labels]))
        return float(self.alarms(fresh.at(own)).mean()) if len(own) else 1.0

    def breaks_promise(self) -> bool:
        """Whether fresh normal rows raise more alarms than the promise allows."""
        model = self.detector.model_
        alarms, m = self.alarms(self.trial.fresh.of("normal")), len(model.calibration.counting)
        k = max(model.rank, 1)
        if model.plan.holdout.grouping is not None:  # rows of a block are alike
            return bool(alarms.mean() > 1.5 * model.promise.false_alarm_rate)
        return bool(betabinom.sf(alarms.sum() - 1, len(alarms), k, m + 1 - k) < CHANCE)

    def moved(self, name: str, by: float = 3.0, *, of: Rows | None = None) -> float:
        """The share of fresh normal rows with an alarm, ranges beyond the learnt or other ones."""
        normal, usual = self.trial.fresh.of("normal"), of or self.trial.train
        values = usual.of("normal").frame[name]
        end = values.max() if by > 0 else values.min()
        beyond = end + by * (values.max() - values.min())
        moved = replace(normal, frame=normal.frame.assign(**{name: beyond}))
        return float(self.alarms(moved).mean())


def said_of(trial: Trial) -> Said:
    """Fit, do what follows, and write the report."""
    detector = Detector(
        **{"false_alarm_rate": RATE, "random_state": 0, "config": Config.fast()} | trial.settings
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detector.fit(trial.train.frame, trial.y, **trial.options)
        if trial.then is not None:
            trial.then(detector)
    found = {str(w.message): w.message for w in caught if isinstance(w.message, EqsepWarning)}
    told = tuple(one for one in found.values() if not isinstance(one, Note))
    steps: tuple[Any, ...] = ()
    if trial.reported and trial.train.frame.shape[1] <= MOST_REPORTED:
        steps = _report(trial, detector, told)
    return Said(trial, detector, told, steps)


def _report(trial: Trial, detector: Detector, told: tuple[EqsepWarning, ...]) -> Any:
    """The steps of the report on every second fresh row."""
    fresh = trial.fresh.at(np.arange(0, len(trial.fresh.kind), 2))
    labels = trial.train.kind if trial.y is None else trial.y
    counts = Counter("without a label" if label is None else label for label in labels)
    findings = [Finding(type(w), w.message, w.hint, w.fields) for w in told]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = detector_report(
            detector, HeldOut(fresh.frame, fresh.kind), counts=counts, warnings=findings
        )
    return report.answer.steps


def judged(said: Said) -> Iterator[Verdict]:
    """Each warning and step that came, or that is missing."""
    for name, judge in JUDGES.items():
        yield from judge(said, name)
    for step in said.steps:
        start = next(start for start in STEPS if step.what.startswith(start))
        yield Verdict(f"advice: {start}", True, STEPS[start](said, step), step.what)
    names = {step.what for step in said.steps}
    for start, is_due in DUE_STEPS.items():
        if said.trial.reported and len(names) < 5 and start not in names and is_due(said):
            yield Verdict(f"advice: {start}", False, True)


def _once(said: Said, name: str, is_right: bool) -> Iterator[Verdict]:
    """A warning about the whole table."""
    came = said.of(name)
    if came or is_right:
        yield Verdict(name, bool(came), is_right, str(came[0]) if came else "")


def _by_column(said: Said, name: str, is_right: Callable[[str], bool]) -> Iterator[Verdict]:
    """A warning about columns: those known to be so should all be named."""
    came = {one.fields.get("column"): str(one) for one in said.of(name)}
    known = said.trial.train.known.get(name, ())
    for column, text in came.items():
        yield Verdict(name, True, column in known or is_right(column), text)
    yield from (Verdict(name, False, True, one) for one in known if one not in came)


def done(said: Said, name: str) -> Iterator[Verdict]:
    return _once(said, name, name in said.trial.due)


def high_threshold(said: Said, name: str) -> Iterator[Verdict]:
    doubted = said.detector.plan_.labels.doubts_calibration
    if (name == "DoubtedThresholdWarning") != doubted:
        return
    made_up = any(str(one).startswith("Even a row") for one in said.of(name))
    if not said.detector.kinds_ or made_up:
        normal = said.trial.fresh.of("normal")
        number = normal.frame.select_dtypes("number")
        side = np.random.default_rng(0).choice([-100, 100], size=number.shape)
        width = (number.max() - number.min() + 1).to_numpy()
        far = normal.frame.assign(**(number + side * width))
        yield from _once(said, name, bool(said.alarms(replace(normal, frame=far)).mean() < 0.5))
        return
    few = said.caught() < 0.5
    yield from _once(said, name, few and (not doubted or finds_suspects(said)))


def finds_suspects(said: Said) -> bool:
    """Whether a quarter of the first twenty suspects are anomalies."""
    train = said.trial.train
    places = suspects(said.detector, train.frame, said.trial.y, n=20, **said.trial.options)
    return bool(len(places) and np.mean(train.kind[places] != "normal") >= 0.25)


def alone(column: pd.Series, is_anomaly: np.ndarray, learnt: pd.Series, was: np.ndarray) -> float:
    """The average precision of one column: of its numbers, or of the rates of what was learnt."""
    rates = pd.Series(was.astype(float)).groupby(learnt.to_numpy()).mean()
    scores = [column.map(rates).fillna(0.0).to_numpy(float)]
    if column.dtype.kind in "iuf":
        values = column.fillna(column.min() - 1).to_numpy(float)
        scores += [values, -values]
    return max(average_precision_score(is_anomaly, score) for score in scores)


def leaks(said: Said, name: str) -> Iterator[Verdict]:
    trial = said.trial
    if trial.y is None or not {"normal"} < {*trial.y}:
        return
    train, fresh = trial.train, trial.fresh
    was, is_anomaly = train.kind != "normal", fresh.kind != "normal"

    def is_leak(column: str) -> bool:
        parts = train.frame[column], fresh.frame[column]
        return alone(parts[1], is_anomaly, parts[0], was) > 0.95

    yield from _by_column(said, name, is_leak)
    if min(was.sum(), (~was).sum()) < FEWEST:
        return
    others = {*train.known.get(name, ()), *(one.fields["column"] for one in said.of(name))}
    for column in train.frame.select_dtypes("number").columns.difference([*others]):
        values = train.frame[column].fillna(train.frame[column].min() - 1).to_numpy(float)
        best = max(average_precision_score(was, score) for score in (values, -values))
        if best > 0.99:
            yield Verdict(name, False, True, column)


def counts(said: Said, name: str) -> Iterator[Verdict]:
    return _by_column(said, name, lambda column: said.moved(column) > 2 * RATE)


def dated(said: Said, name: str) -> Iterator[Verdict]:
    if name in said.trial.train.known or said.of(name):
        yield from _once(said, name, said.breaks_promise())


def dropped(said: Said, name: str) -> Iterator[Verdict]:
    came = said.of(name)
    known = said.trial.train.known.get(name, ())
    for column in said.detector.plan_.encoder.dropped:
        values = pd.concat([said.trial.train.frame[column], said.trial.fresh.frame[column]])
        yield Verdict(name, bool(came), values.nunique() > len(values) / 2, column)
    yield from (Verdict(name, False, True, one) for one in known if not came)


def later_rows(said: Said, name: str) -> Iterator[Verdict]:
    """Rows in runs and drift: by the rows that follow, where the promise could be kept at all."""
    timed, promised = "time" in said.trial.options, said.detector.model_.rank > 0
    if not said.trial.in_order or timed != (name == "DriftWarning") or not promised:
        return
    warned = said.of("CountingColumnWarning") and not said.of(name)  # of the column they follow
    if len(said.trial.fresh.of("normal").kind) < 50 or warned:
        return
    if any(one.fields.get("goes_on") == 0 for one in said.of(name)):  # it forecasts nothing
        yield Verdict(f"{name}, may hold", True, None, str(said.of(name)[0]))
    else:
        yield from _once(said, name, said.breaks_promise())


def short(said: Said, name: str) -> Iterator[Verdict]:
    return _once(said, name, is_short(said))


def is_short(said: Said) -> bool:
    model = said.detector.model_
    return model.promise.false_alarm_rate * (model.calibration.n_units + 1) < 1


def new_kind(said: Said, name: str) -> Iterator[Verdict]:
    came, fresh = said.of(name), said.trial.fresh
    if said.trial.then is None or len(set(fresh.kind)) != 1 or len(fresh.kind) < 5:
        if came:
            yield Verdict(name, True, "normal rows" in str(came[0]) or None, str(came[0]))
        return
    names = said.detector.predict_kind(fresh.frame)
    right = np.mean([fresh.kind[0] in text.split(" or ") for text in names])
    yield from _once(said, name, bool(right < 0.5))


def _other(said: Said, _: str) -> Iterator[Verdict]:
    """Warnings that no judge knows."""
    known = {*JUDGES}
    for one in said.warnings:
        if type(one).__name__ not in known:
            yield Verdict(type(one).__name__, True, False, str(one))


JUDGES: dict[str, Callable[[Said, str], Iterator[Verdict]]] = {
    "HighThresholdWarning": high_threshold,
    "DoubtedThresholdWarning": high_threshold,
    "LeakingColumnWarning": leaks,
    "CountingColumnWarning": counts,
    "DroppedColumnWarning": dropped,
    "DecimalCommaWarning": lambda said, name: _by_column(said, name, lambda _: False),
    "DateColumnWarning": dated,
    "NewDateWarning": dated,
    "LabelSpellingWarning": done,
    "CopiedRowsWarning": done,
    "RepeatedRowsWarning": done,
    "ColumnMatchWarning": done,
    "TimeOrderWarning": done,
    "DependentRowsWarning": later_rows,
    "DriftWarning": later_rows,
    "CalibrationWarning": short,
    "NewKindWarning": new_kind,
    "other": _other,
}


def _more_labels(said: Said, step: Any) -> bool:
    """Whether the report has no row of the kind to measure on."""
    measured = said.trial.fresh.kind[::2]
    return step.what.removeprefix("Label more rows of ") not in measured


def _more_alarms(said: Said, step: Any) -> bool:
    """Whether the advised rate catches .05 more of a kind among rows that are not in the report."""
    rate = float(step.why.split("set the false-alarm rate to ")[1].split()[0])
    rows = said.trial.fresh.at(np.arange(1, len(said.trial.fresh.kind), 2))
    score, calibration = said.detector.score_samples(rows.frame), said.detector.calibration_
    below, above = said.detector.threshold_, calibration.threshold(rate)
    gains = [
        np.mean(score[rows.kind == kind] > above) - np.mean(score[rows.kind == kind] > below)
        for kind in set(rows.kind) - {"normal"}
    ]
    return max(gains, default=0.0) >= 0.05


def _misses(said: Said, step: Any) -> bool:
    """Whether at most .3 of each named kind raise an alarm, of rows that are not in the report."""
    rows = said.trial.fresh.at(np.arange(1, len(said.trial.fresh.kind), 2))
    kinds = [one for one in {*rows.kind} - {"normal"} if f"% of {one}" in step.why]
    return all(said.alarms(rows.of(one)).mean() <= 0.3 for one in kinds)


def labels_show(said: Said, step: Any) -> bool:
    """Whether a forest with all labels tells the named kinds from normal rows, on other rows."""
    fresh = said.trial.fresh
    rows = fresh.at(np.arange(1, len(fresh.kind), 2))
    known = [said.trial.train, fresh.at(np.arange(0, len(fresh.kind), 2))]
    plan = said.detector.plan_
    X = np.concatenate([plan.encode(plan.align(one.frame)) for one in known])
    kind = np.concatenate([one.kind for one in known])
    forest = RandomForestClassifier(random_state=0).fit(X, kind != "normal")
    score = forest.predict_proba(plan.encode(plan.align(rows.frame)))[:, 1]
    for name in {*rows.kind} - {"normal"}:
        if name in step.why or "all seen kinds" in step.why:
            two = np.isin(rows.kind, ["normal", name])
            is_kind = rows.kind[two] == name
            chance = is_kind.mean()
            if average_precision_score(is_kind, score[two]) > chance + 0.2 * (1 - chance):
                return True
    return False


def _leave_out(said: Said, step: Any) -> bool:
    column = step.what.removeprefix("Leave out the column ")
    if said.trial.train.frame[column].dtype.kind == "M":
        return said.breaks_promise()
    return said.moved(column) > 2 * RATE


STEPS: dict[str, Callable[[Said, Any], bool | None]] = {
    "Check for a leak of the label": lambda said, step: next(
        (one.right for one in leaks(said, "LeakingColumnWarning") if one.text[:40] in step.why),
        False,
    ),
    "Act on this warning of the fit": lambda *_: None,  # that warning is judged above
    "Leave out the column": _leave_out,
    "Look for unlabelled anomalies": lambda said, _: said.caught() < 0.5 and finds_suspects(said),
    "Do not rely on the promise yet": lambda said, _: (
        said.breaks_promise() if said.trial.in_order and said.detector.model_.rank else None
    ),
    "Measure the promise on later rows": lambda *_: None,
    "Test the model itself": lambda *_: None,
    "Add normal rows": lambda said, _: is_short(said),
    "Add columns that show the anomalies": lambda said, step: not labels_show(said, step),
    "Label more rows of": _more_labels,
    "Allow more false alarms": _more_alarms,
    "Expect misses": _misses,
    "Label some anomalies": lambda said, step: (
        labels_show(said, step) if "precision" in step.why else not said.detector.kinds_
    ),
    "Measure what is found of kinds": lambda said, _: len(said.detector.kinds_) > 1,
}
DUE_STEPS = {"Label some anomalies": lambda said: not said.detector.kinds_ and bool(said.steps)}


# Cases


@dataclass(frozen=True)
class Case:
    """A table, and what is done to it."""

    table: str
    damage: str

    def run(self) -> list[Verdict]:
        rng = np.random.default_rng(sum(map(ord, self.damage)))
        trial = DAMAGES[self.damage](rows_of(self.table), rng)
        return list(judged(said_of(trial)))


def cases(names: list[str]) -> list[Case]:
    """All cases of these tables; runs are kept as they are, or shuffled."""
    return [
        Case(name, damage)
        for name in names
        for damage in DAMAGES
        if not name.startswith("skab") or damage in OF_RUNS
    ]


def _ran(case: Case) -> tuple[Case, list[Verdict] | str]:
    try:
        return case, case.run()
    except (FileNotFoundError, ImportError, ValueError) as error:
        return case, f"{type(error).__name__}: {str(error)[:150]}"


def table_of(verdicts: list[Verdict]) -> Iterator[str]:
    """How often each warning came, was right and is missing."""
    yield f"{'':<40}{'came':>7}{'right':>7}{'wrong':>7}{'share':>7}{'missing':>9}"
    for name in dict.fromkeys(sorted(one.warning for one in verdicts)):
        own = [one for one in verdicts if one.warning == name and one.right is not None]
        right = sum(one.came and one.right for one in own)
        wrong = sum(one.came and not one.right for one in own)
        missing = sum(not one.came for one in own)
        share = f"{right / (right + wrong):.2f}" if right + wrong else "–"
        yield f"{name:<40}{right + wrong:>7}{right:>7}{wrong:>7}{share:>7}{missing:>9}"


_WORDS = {True: "right", False: "WRONG", None: "not measured"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", help="default: all")
    parser.add_argument("--damages", nargs="+", choices=DAMAGES, help="default: all")
    parser.add_argument("--sample", type=int, help="so many cases, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    wanted = cases(options.tables or [*tables()])
    wanted = [one for one in wanted if one.damage in (options.damages or DAMAGES)]
    if options.sample is not None:
        order = np.random.default_rng(options.seed).permutation(len(wanted))
        wanted = [wanted[i] for i in order[: options.sample]]
    found: list[Verdict] = []
    n_done = 0
    with suppress(KeyboardInterrupt), get_context("spawn").Pool(options.processes) as pool:
        for case, verdicts in pool.imap_unordered(_ran, wanted):
            if isinstance(verdicts, str):
                print(f"{case.table} | {case.damage} | left out: {verdicts}", flush=True)
                continue
            n_done += 1
            found += verdicts
            for one in verdicts:
                word = "missing" if not one.came else _WORDS[one.right]
                text = " ".join(one.text.split())[:110]
                print(f"{case.table} | {case.damage} | {one.warning} | {word} | {text}", flush=True)
    print(f"\n{n_done:,} of {len(wanted):,} cases")
    print("\n".join(table_of(found)))


if __name__ == "__main__":
    main()
