"""Checks of data: what in a table or its labels may spoil a model, or its answers.

A check returns findings, which `Detector.fit` raises as warnings, all of them `DataWarning`. To
keep a column that you have checked: ``warnings.simplefilter("ignore", DateColumnWarning)``.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Self

import numpy as np

from eqsep.engine.nystroem import row_keys
from eqsep.errors import EqsepWarning, counted, quoted, warn
from eqsep.labels import RowLabels
from eqsep.schemas import TEXT, check_parts, entries, plain, word
from eqsep.tables.encoder import Encoder
from eqsep.tables.encodings import Date, Number
from eqsep.tables.reading import NUMERIC, WRITERS, Column, Table

TIME_WORDS = {
    *("time", "timestamp", "datetime", "date", "ts", "day", "t", "epoch", "unix"),
    *("zeit", "zeitstempel", "datum"),
}
_YEARS = {"year", "jahr"}  # that order the rows of a table, or are one more property
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_CHANCE_ROWS = 20  # rows, or steps of a counter: fewer may rise by chance
_MOVES = 0.1  # the share of a counter's steps that are not 0: fewer are those of a time
_LEAK_ANOMALIES = 5  # anomalies: fewer are separated by chance
_WEEK = 7 * 86_400.0  # seconds
_SPANS = 3  # of the dates that were learnt: how long a model may be used
_MORE_ALARMS = 3  # times the promised rate of false alarms: worth a warning
_LEAKS = 0.99  # the average precision of a column above which it gives the labels away
_MEASURED_ANOMALIES = 40  # fewer are separated by a measurement, too, which makes it no leak
_WRONG_ROWS = 0.01  # the share of the rows that disagree with a leak
_WRONG_NUMBERS, _WRONG_NAMES = 0.05, 1 / 8  # the same in shares of the anomalies
_MOST_CODES, _ROWS_A_CODE = 50, 4  # distinct numbers, and rows for each: others are measured
_MARKED_ROWS = 10  # rows that a flag marks: fewer are anomalous by chance
# Of an anomalous kind, or of all anomalies, the share that a flag marks if it is a label.
_WHOLE_KIND, _MARKED_SHARE, _MARKED_BY_NUMBERS = 0.9, 1 / 8, 1 / 3
_COLLISIONS = 10  # pairs of equal numbers by chance: ids have none
# Above the threshold, at least: with fewer, less than half of new anomalies are.
HELD_OUT, LEARNT = "held-out anomalies", "learnt anomalies kept in the model"
MADE_UP = "made-up rows"  # far out in every column
_LEAST_ABOVE = {HELD_OUT: 0.5, LEARNT: 0.65, MADE_UP: 0.5}
_SCORED_ROWS = 10  # anomalies: fewer tell little of how many are caught
_HIGHEST_RATE = 0.2  # of false alarms: nobody would look at the alarms of a higher one
_ORDER_ROWS = 20_000  # the first rows, in which rows that follow each other are looked for
_FEWEST_ROWS, _FEWEST_VALUES = 100, 10
_FEWEST_DISTINCT = 20  # rows: fewer may occur equally often by chance
_COPIED = 0.9  # the share of distinct rows that occur equally often if they were copied
FEWEST_TIMES = 20  # distinct ones: fewer are too few blocks to hold out
_FALLS = 0.05  # the share of steps in which times that order the rows may go back, as a run ends
_FOLLOWS = 0.85  # the correlation of a column with the row before, which is 0 by chance
_SPELT_ALIKE = 0.8  # the share of letters that two labels have in common, in their order
Beyond = Counter[tuple[str, str, str]]  # rows by column, "later date", and the last date


class DataWarning(EqsepWarning):
    """Something in the data that may spoil a model or its answers."""


class LeakingColumnWarning(DataWarning):
    """A column alone tells anomalous rows, or those of one kind, from all others."""


class CountingColumnWarning(DataWarning):
    """A column of numbers counts the rows, or is an id."""


class DecimalCommaWarning(DataWarning):
    """Columns of names are mostly numbers with a decimal comma."""


class DateColumnWarning(DataWarning):
    """The model learns dates or times, so later rows will raise an alarm because of theirs."""


class NewDateWarning(DataWarning):
    """Most rows have a date or time beyond all learnt ones."""


class LabelSpellingWarning(DataWarning):
    """Labels differ only by case or blanks, or a label occurs in a single row."""


class HighThresholdWarning(DataWarning):
    """Too few of the labelled anomalies, or of any rows, score above the threshold."""


class DoubtedThresholdWarning(HighThresholdWarning):
    """The same, if rows that may be unlabelled anomalies set the threshold."""


class DependentRowsWarning(DataWarning):
    """Rows are like those before them, and neither groups nor times were given."""


class DriftWarning(DataWarning):
    """Rows change over time: a fit to earlier ones breaks its promise on those that came next."""


class TimeOrderWarning(DataWarning):
    """Times start again from row to row, as in a table of several runs."""


class CopiedRowsWarning(DataWarning):
    """All rows are copied equally often; each is learnt once."""


CAUTIONS = (DependentRowsWarning, DriftWarning)  # that break the promise, and are kept in a model


@dataclass(frozen=True)
class Finding:
    """What a check has found and why it matters, and a hint at what to do about it, in Python."""

    category: type[EqsepWarning]
    message: str
    hint: str
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)  # the column, for example

    @classmethod
    def of(cls, warning: EqsepWarning) -> Self:
        """The finding that a warning tells of."""
        fields = {**warning.fields, "topic": warning.topic}
        return cls(type(warning), warning.message, warning.hint, fields)

    def warning(self) -> EqsepWarning:
        """The finding as a warning."""
        return self.category(self.message, hint=self.hint, **self.fields)

    def state(self) -> dict[str, Any]:
        """The parts of a model file, which keeps what breaks the promise."""
        return vars(self) | {"category": self.category.__name__, "fields": dict(self.fields)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The finding of these parts."""
        check_parts(state, _FINDING, "Finding")
        found = next(c for c in CAUTIONS if c.__name__ == state["category"])
        return cls(found, state["message"], state["hint"], state["fields"])


_FINDING = {
    "category": word(*(category.__name__ for category in CAUTIONS)),
    **dict.fromkeys(("message", "hint"), TEXT),
    "fields": entries(plain("a string or number", lambda v: type(v) in (str, int, float))),
}


def warn_of(findings: Iterable[Finding]) -> None:
    """Warn of each finding, at the line outside of eqsep that asked for the check."""
    for finding in findings:
        warn(finding.warning())


def check_columns(rows: Table, code: np.ndarray, kinds: Sequence[str] = ()) -> list[Finding]:
    """Findings on the columns of rows to learn: `code` is 0 if normal, i + 1 if of `kinds[i]`."""
    return [*counting_columns(rows), *decimal_commas(rows), *leaking_columns(rows, code, kinds)]


def counting_columns(rows: Table) -> list[Finding]:
    """A finding for each column of numbers that counts the rows, or is an id in any order."""
    numbers = [c for c in rows.columns if c.kind == "number" and rows.n_rows > _CHANCE_ROWS]
    return [
        Finding(
            CountingColumnWarning,
            f"Column {column.name!r} {what}: new rows may lie beyond all that was learnt, and "
            f"may raise alarms for that alone.",
            "If it only counts or names the rows, leave it out of X.",
            {"column": column.name},
        )
        for column in numbers
        if (what := _how_it_counts(column.values, column.name))
    ]


def _how_it_counts(values: np.ndarray, name: object) -> str:
    """Whether values rise or fall all along, or are distinct where drawn ones would not be."""
    steps = np.diff(values)
    moves = np.count_nonzero(steps) >= max(_CHANCE_ROWS, _MOVES * len(steps))
    if moves and ((steps >= 0).all() or (steps <= 0).all()):
        return "rises or falls from row to row, as numbers of rows do"
    low, high = values.min(), values.max()  # NaN, which fails the next test, if one is missing
    dense = len(values) ** 2 > 2 * _COLLISIONS * (high - low + 1) and not (values % 1).any()
    n_distinct = len(np.unique(values))
    if dense and n_distinct == len(values):
        return "is another whole number in each row, as ids are"
    named = re.search(r"(^|[_ .-])(?i:id)$|[a-z]I[Dd]$", str(name)) and not (values % 1).any()
    return "is an id by its name and its values" if named and n_distinct > 0.8 * len(values) else ""


def decimal_commas(rows: Table) -> list[Finding]:
    """A finding if columns of text, not categorical ones, are mostly numbers with a comma."""
    found: dict[str, str] = {}
    for column in rows.columns:
        if column.kind != "text" or column.categorical:
            continue
        texts = [text for text in column.names()[0] if text is not None]
        commas = [text for text in texts if _COMMA.fullmatch(text)]
        if 2 * len(commas) > len(texts):
            found[column.name] = commas[0]
    if not found:
        return []
    name, text = next(iter(found.items()))
    which, hold = ("Column", "holds") if len(found) == 1 else ("Columns", "hold")
    others = ", and so on" * (len(found) > 1)
    message = (
        f"{which} {quoted(found, most=len(found))} {hold} numbers with a decimal comma, such as "
        f"{text!r}, read as names here: write them with a point, {text.strip().replace(',', '.')}."
    )
    hint = f"If they are names, make it a categorical column{others}."
    return [Finding(DecimalCommaWarning, message, hint, {"column": name, "others": others})]


def leaking_columns(rows: Table, code: np.ndarray, kinds: Sequence[str] = ()) -> list[Finding]:
    """A finding for each column that alone gives the labels away, or those of one kind."""
    known = code >= 0
    is_anomaly = code[known] > 0
    if not _LEAK_ANOMALIES <= is_anomaly.sum() <= len(is_anomaly) - _LEAK_ANOMALIES:
        return []
    found = []
    for column in rows.columns:
        leak = max(_rankings(column, known, is_anomaly), default=_NO_RANKING)
        if leak.is_leak:
            what = f"tells anomalous rows from normal ones{leak}"
        elif (mark := _marked(column, code, kinds)) is not None:
            leak, what = mark
        else:
            continue
        message = f"Column {column.name!r} alone {what}."
        hint = "If it is known only together with the label, leave it out of X."
        fields = {"column": column.name, "average_precision": round(leak.average_precision, 4)}
        found.append(Finding(LeakingColumnWarning, message, hint, fields))
    return found


@dataclass(frozen=True, order=True)
class _Ranking:
    """How well a column alone ranks anomalies above all other rows."""

    average_precision: float
    wrong: int  # rows on the wrong side of the best limit
    rows: int
    anomalies: int
    tolerated: float = 0.0  # rows that may be wrong
    alone: int = 0  # of the wrong ones, anomalies with a value that no other row has

    @property
    def is_leak(self) -> bool:
        if self.average_precision > _LEAKS:
            return not self.wrong or self.anomalies >= _MEASURED_ANOMALIES
        return self.rows > 0 and self.wrong <= self.tolerated

    def __str__(self) -> str:
        wrong, alone = self.wrong - self.alone, counted(self.alone, "row")
        rest = f", and {wrong:,} of {self.rows:,} rows disagree" if wrong > 0 else ""
        rest += f", not counting {alone} whose value no other row has" if self.alone else ""
        return f": its average precision is {self.average_precision:.3f}{rest}"


_NO_RANKING = _Ranking(average_precision=0.0, wrong=0, rows=0, anomalies=0)


def _ranked(score: np.ndarray, is_anomaly: np.ndarray) -> _Ranking:
    """The average precision of a score, equal ones together, and the errors of the best limit."""
    order = np.argsort(-score, kind="stable")
    score, n = score[order], int(is_anomaly.sum())
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    found = np.cumsum(is_anomaly[order])[last]
    precision = np.diff(found, prepend=0) @ (found / (last + 1)) / n
    wrong = int((last + 1 - found + n - found).min())
    return _Ranking(average_precision=float(precision), wrong=wrong, rows=len(score), anomalies=n)


def _rankings(column: Column, known: np.ndarray, is_anomaly: np.ndarray) -> Iterator[_Ranking]:
    """How a column ranks the rows that have a label, where it may be a leak."""
    n = int(is_anomaly.sum())
    for score, share, alone in _scores(column, known, is_anomaly):
        tolerated = min(_WRONG_ROWS * len(score), share * n)
        middle = np.partition(score[is_anomaly], n // 2)[n // 2]
        # In a leak hardly a normal row scores as high as half of the anomalies.
        if (score[~is_anomaly] >= middle).sum() <= tolerated + _WRONG_NUMBERS * n + 1:
            yield replace(_ranked(score, is_anomaly), tolerated=tolerated, alone=alone)


def _scores(
    column: Column, known: np.ndarray, is_anomaly: np.ndarray
) -> Iterator[tuple[np.ndarray, float, int]]:
    """The numbers of a column, and the rates of its values.

    Each with the share that may err, and how many anomalies have a value that no other row has.
    """
    if column.kind in NUMERIC:
        values = column.values[known]
        missing = np.isnan(values)
        lowest = np.where(missing, -np.inf, values)
        if is_anomaly.sum() >= _MEASURED_ANOMALIES or _are_apart(
            lowest[is_anomaly], lowest[~is_anomaly]
        ):
            scores = lowest, np.where(missing, -np.inf, -values), missing.astype(float)
            yield from ((score, _WRONG_NUMBERS, 0) for score in scores)
    place = _places(column)
    if place is not None:
        place = place[known]
        rows, anomalies = np.bincount(place), np.bincount(place, is_anomaly)
        # Without the row itself, so that a value of one row says nothing.
        rates = (anomalies[place] - is_anomaly) / np.maximum(rows[place] - 1, 1)
        yield rates, _WRONG_NAMES, int(((rows == 1) & (anomalies == 1)).sum())


def _are_apart(some: np.ndarray, normal: np.ndarray) -> bool:
    """Whether numbers are farther from all normal ones than these are from each other."""
    low, high = normal.min(), normal.max()
    if np.isinf(low):  # missing values of normal rows
        return False
    gap = max(some.min() - high, low - some.max())
    return bool(gap > 0 and (low == high or gap > high - low))


def _places(column: Column) -> np.ndarray | None:
    """The place of each row's value among the distinct ones; None where numbers are not codes."""
    if column.kind in ("text", "mixed"):
        return column.names()[1]
    most = min(_MOST_CODES, len(column.values) // _ROWS_A_CODE)
    if len(np.unique(column.values[: 20 * _MOST_CODES])) > most:
        return None
    distinct, place = np.unique(column.values, return_inverse=True)
    return None if len(distinct) > most else place


def _marks(column: Column) -> Iterator[tuple[np.ndarray, str, bool]]:
    """The rows with the rarer of two values, with any or none, or 0 or not; if it is a flag."""
    place = _places(column)
    if place is not None and len(times := np.bincount(place)) == 2:
        marked = place == np.argmin(times)
        value = column.texts()[int(np.argmax(marked))]
        yield marked, "without a value" if value is None else f"with {value!r}", True
        return
    if column.kind in NUMERIC:
        some = ~np.isnan(column.values)
    else:
        texts, place = column.names()
        some = np.array([text is not None for text in texts])[place]
    yield some, "with a value", False
    yield ~some, "without a value", False
    if column.kind == "number":
        other = some & (column.values != 0)
        yield other, "with a value other than 0", False
        yield ~other, "with 0" if some.all() else "with 0 or no value", False


def _marked(column: Column, code: np.ndarray, kinds: Sequence[str]) -> tuple[_Ranking, str] | None:
    """How rows that a value marks rank anomalies, and of which kind, if all of them are."""
    known = code >= 0
    for marked, where, is_flag in _marks(column):
        leak = _all_anomalous(marked & known, where, code, kinds, is_flag=is_flag)
        if leak is not None:
            return leak
    return None


def _all_anomalous(
    marked: np.ndarray, where: str, code: np.ndarray, kinds: Sequence[str], *, is_flag: bool
) -> tuple[_Ranking, str] | None:
    """How marked rows rank anomalies, if nearly all of them are anomalous, and these are many."""
    n, known = int(marked.sum()), code >= 0
    least = _MARKED_SHARE if is_flag else _MARKED_BY_NUMBERS
    if n < _MARKED_ROWS or (code[marked] == 0).sum() > _WRONG_ROWS * n:
        return None
    inside, rows = (np.bincount(code[some], minlength=2)[1:] for some in (marked, known))
    share = inside / np.maximum(rows[: len(inside)], 1)
    best = int(share.argmax())
    if len(kinds) > 1 and share[best] >= _WHOLE_KIND and is_flag:
        own, name = code == best + 1, f"rows of the kind {kinds[best]!r}"
    elif n >= max(least * (code > 0).sum(), 2 * _MARKED_ROWS):
        own, name = code > 0, "anomalous ones"
    else:
        return None
    leak = _ranked(marked[known].astype(float), own[known])
    n_anomalous = int((marked & (code > 0)).sum())
    rows_with = f"all {n:,} rows" if n_anomalous == n else f"{n_anomalous:,} of {n:,} rows"
    part = f"{(marked & own).sum():,} of the {own.sum():,} {name} are among them"
    return leak, f"gives anomalies away: {rows_with} {where} are anomalous, and {part}"


def check_labels(counts: Mapping[str, int], *, known: Iterable[str] = ()) -> list[Finding]:
    """Findings on labels that may be misspelt, by the rows of each, and those learnt before."""
    known = list(known)
    new = set(counts) - set(known)
    alike: dict[str, set[str]] = {}
    for text in (*counts, *known):
        alike.setdefault(text.strip().casefold(), set()).add(text)
    messages = [
        f"Labels {quoted(sorted(texts))} differ only by case or blanks."
        for texts in alike.values()
        if len(texts) > 1 and texts & new
    ]
    common = [*known, *(text for text, n in counts.items() if n > 1)]
    for text in sorted(text for text in new if counts[text] == 1):
        for other in get_close_matches(text, common, n=1, cutoff=_SPELT_ALIKE):
            bare = (re.sub(r"\d+", "", one.strip().casefold()) for one in (text, other))
            if len({*bare}) > 1:  # neither by case alone, nor numbers of kinds
                messages.append(f"Label {text!r} has one row, and is spelt like {other!r}.")
    hint = "If they mean the same, write them alike."
    return [Finding(LabelSpellingWarning, message, hint) for message in messages]


def check_row_labels(
    labels: RowLabels, times: np.ndarray | None = None, *, known: RowLabels | None = None
) -> list[Finding]:
    """The same of the labels of rows, each standing for several where `times` are given."""
    names = _label_names(labels)
    if not names:
        return []
    there = labels.code >= 0
    weights = None if times is None else times[there]
    counts = np.bincount(labels.code[there], weights, minlength=len(names)).tolist()
    found = {name: int(n) for name, n in zip(names, counts, strict=True) if n}
    return check_labels(found, known=[] if known is None else _label_names(known))


def _label_names(labels: RowLabels) -> list[str]:
    """The normal label and those of anomalies as text; none if no label was ever given."""
    if labels.reader is None:
        return []
    normal, other = map(str, labels.reader.classes)
    return [normal, *(labels.kinds if labels.reader.by_name else [other])]


def check_threshold(
    threshold: float,
    scores: Mapping[str, np.ndarray],
    *,
    rate: float,
    thresholds: Mapping[float, float],
    n_columns: int,
    doubted: bool,
) -> list[Finding]:
    """A finding if few of the scores, of anomalies or `MADE_UP` rows, exceed the threshold.

    `thresholds` are those of the rates that can be promised; the lowest that is enough is advised.
    """

    def share(of: str, limit: float) -> float:
        return float(np.mean(scores[of] > limit))

    def reached(goal: Sequence[str], limit: float) -> bool:
        return all(share(of, limit) >= _LEAST_ABOVE[of] for of in goal)

    few = [of for of in scores if len(scores[of]) >= _SCORED_ROWS and not reached([of], threshold)]
    if not few:
        return []
    message = ""
    for of in few:
        above, start = share(of, threshold), "Of"
        if of == MADE_UP:
            where = f"all {n_columns:,} columns" if n_columns > 1 else "its only column"
            raises = "may raise no alarm" if above else "raises no alarm"
            start = f"Even a row with strange values in {where} {raises}: of"
        scored = f"only {above:.0%} score" if above else "none scores"
        it = "it" if of != few[0] else f"the threshold, {threshold:.3f}"
        later = ", and new ones usually score lower" * (of == LEARNT and above > 0)
        message += f"{start} {len(scores[of]):,} {of}, {scored} above {it}{later}. "
    limits = {higher: limit for higher, limit in thresholds.items() if higher <= _HIGHEST_RATE}
    goals = (few, [MADE_UP]) if MADE_UP in few else (few,)
    enough = next((r for goal in goals for r, t in limits.items() if reached(goal, t)), None)
    change = f"No false-alarm rate up to {_HIGHEST_RATE:g} is enough to change that."
    fields: dict[str, Any] = {}
    if enough is not None:
        reach = {of: f"{share(of, limits[enough]):.0%}" for of in few}
        if LEARNT in few:  # new anomalies score lower than those that were learnt
            more = share(LEARNT, limits[enough]) > share(LEARNT, threshold)
            reach[LEARNT] = "more" if more else "no more"
        shares = " and ".join(f"{reach[of]} of the {of}" for of in few)
        change = f"At a rate of {enough:g} instead of {rate:g}, {shares} would."
        fields = {"rate": enough}
    if doubted and few != [MADE_UP]:
        message += (
            f"More than {rate:.2%} of the held-out rows score this high, and nobody has called "
            f"them normal: some are likely to be anomalies that nobody has labelled. {change}"
        )
        hint = "eqsep.detector.suspects lists them: label the anomalies among them."
        return [Finding(DoubtedThresholdWarning, message, hint, fields)]
    message += f"Some held-out normal rows score that high, which puts it there. {change}"
    hint = "Look at the normal rows with the highest scores, and correct wrong labels among them. "
    hint += "Add normal rows, or columns that show anomalies"
    hint += "." if enough is None else f", or set false_alarm_rate={enough:g}."
    fields = fields or {"topic": "high_at_any_rate"}
    return [Finding(HighThresholdWarning, message, hint, fields)]


def name_words(name: str) -> list[str]:
    """The words in the name of a column, in small letters."""
    return re.findall(r"[a-zäöü]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).casefold())


def times_in_order(rows: Table) -> list[str]:
    """The columns of numbers that are named as times, and that never fall from row to row.

    Without those that count the rows, which have a finding of their own.
    """
    columns = [c for c in rows.columns if c.kind == "number" and _is_named_as_time(c.name)]
    rising = [c for c in columns if _never_decreases(c) and c.values[-1:] > c.values[:1]]
    return [c.name for c in rising if not _how_it_counts(c.values, c.name)]


def _is_named_as_time(name: str) -> bool:
    return not (TIME_WORDS | _YEARS).isdisjoint(name_words(name))


def check_dates(
    encoder: Encoder,
    alarms: Callable[[int, Column], float],
    *,
    rate: float,
    times: Collection[str] | None = None,
) -> list[Finding]:
    """A finding for each column of dates by which `alarms` says that later rows raise them.

    So too for numbers that are named as times: those among `times`, or all.
    """
    found = []
    for index, name, learnt in _dates(encoder):
        knots, is_date = np.array(learnt.number.knots), isinstance(learnt, Date)
        if not is_date and times is not None and name not in times:
            continue
        unit = _WEEK if is_date else 1.0
        moved = knots + np.ceil(_SPANS * np.ptp(knots) / unit) * unit
        share = alarms(index, Column(name, learnt.reads, moved))
        if share > _MORE_ALARMS * rate:
            what = "dates" if is_date else "times in order"
            message = (
                f"Column {name!r} holds {what}, from {_written(learnt, 0)} to "
                f"{_written(learnt, -1)}: {share:.0%} of normal rows would raise an alarm once "
                f"three times as long has passed."
            )
            hint = "Unless it matters, leave it out of X."
            found.append(Finding(DateColumnWarning, message, hint, {"column": name}))
    return found


def rows_beyond(rows: Table, encoder: Encoder) -> Beyond:
    """How many rows have a later date or time, or an earlier one, than all learnt rows."""
    found: Beyond = Counter()
    for index, name, learnt in _dates(encoder):
        values, knots = rows.columns[index].numbers(learnt.reads), learnt.number.knots
        one = "date" if isinstance(learnt, Date) else "time"
        found[name, f"later {one}", _written(learnt, -1)] += int(np.sum(values > knots[-1]))
        found[name, f"earlier {one}", _written(learnt, 0)] += int(np.sum(values < knots[0]))
    return found


def check_beyond(beyond: Beyond, *, n_rows: int) -> list[Finding]:
    """A finding for each column with more than half of its dates beyond those learnt."""
    return [
        Finding(
            NewDateWarning,
            f"{n:,} of {n_rows:,} row{'s' * (n_rows != 1)} {'has' if n == 1 else 'have'} "
            f"{'an' if side.startswith('e') else 'a'} {side} in column {name!r} than all that were "
            f"learnt ({limit}), and may raise alarms for that alone.",
            "Fit to rows of their time, or without the column.",
            {"column": name},
        )
        for (name, side, limit), n in beyond.items()
        if 2 * n > n_rows
    ]


def _dates(encoder: Encoder) -> Iterator[tuple[int, str, Date | Number]]:
    """The index, name and encoding of each column of dates, or of numbers named as times."""
    for i, (name, learnt) in enumerate(encoder.by_name.items()):
        if isinstance(learnt, Date) or (isinstance(learnt, Number) and _is_named_as_time(name)):
            yield i, name, learnt


def _written(learnt: Date | Number, knot: int) -> str:
    return WRITERS[learnt.reads](learnt.number.knots[knot]).replace("T", " ")


def distinct_rows(table: Table, code: np.ndarray) -> tuple[np.ndarray, list[Finding]]:
    """All places; or each row once, and a finding, if all were copied equally often.

    A copy of a learnt row must not calibrate.
    """
    normal, every = code == 0, np.arange(table.n_rows)
    if table.groups is not None or normal.sum() < 2 * _FEWEST_DISTINCT:
        return every, []
    keys = np.zeros(table.n_rows, dtype=np.uint64)
    for j in sorted(range(len(table.columns)), key=lambda j: table.columns[j].kind not in NUMERIC):
        values = table.contents([j], [table.columns[j].kind])[:, 0]
        halves = (keys >> np.uint64(32)).astype(float), (keys & np.uint64(2**32 - 1)).astype(float)
        keys = row_keys(np.column_stack([*halves, values]), rng=np.random.RandomState(0))
        times = np.unique(keys[normal], return_counts=True)[1]
        if (times == 1).sum() > (1 - _COPIED) * normal.sum():  # and with more columns more
            return every, []
    usual = int(np.bincount(times).argmax())
    if usual < 2 or len(times) < _FEWEST_DISTINCT or (times == usual).mean() < _COPIED:
        return every, []
    with_labels = np.column_stack([keys, code.astype(np.uint64)])
    kept = np.sort(np.unique(with_labels, axis=0, return_index=True)[1])
    message = (
        f"Each row occurs {usual} times: of {normal.sum():,} normal rows {len(times):,} are "
        f"distinct. Each is learnt once, as copies of a row say nothing about new ones."
    )
    hint = "If they were measured again each time, add a column that tells them apart."
    return kept, [Finding(CopiedRowsWarning, message, hint)]


def check_dependence(table: Table, code: np.ndarray) -> list[Finding]:
    """A finding if normal rows (`code` 0) are like those before them, without groups or times."""
    normal = np.flatnonzero(code == 0)[:_ORDER_ROWS]
    if table.groups is not None or len(normal) < _FEWEST_ROWS:
        return []
    numbers = [c for c in table.columns if c.kind == "number" and len(c.values)]
    found = {c.name: _follows(c.values[normal]) for c in numbers}
    name = max(found, key=found.__getitem__, default=None)
    if name is None or found[name] <= _FOLLOWS:
        return []
    dates = [c.name for c in table.columns if c.kind == "date" and _orders(c)]
    stretches = [c for c in table.columns if _in_stretches(c) and not _is_coarse_time(c)]
    # The one of most values, as few runs promise little; of as many, one that never decreases.
    likely = max(stretches, key=lambda c: (len(c.names()[0]), _never_decreases(c)), default=None)
    fields, never, looks = {}, "", ""
    if likely is not None:
        is_time = _never_decreases(likely) and len(likely.names()[0]) >= FEWEST_TIMES
        if not (is_time and dates):
            fields["time" if is_time else "group"] = likely.name
        never = ", which never decreases," * ("time" in fields)
    if dates:
        fields["time"] = dates[0]
    if fields:
        looks = f" (column {next(iter(fields.values()))!r}{never} looks like it)"
    message = (
        f"Rows are like those before them: of column {name!r} the rank correlation of normal rows "
        f"with the row before is {found[name]:.2f}, and 0 where rows are shuffled. The promised "
        f"rate of false alarms holds for rows drawn from among these, not for another run, "
        f"machine or time{looks}."
    )
    groups, time = (repr(fields[role]) if role in fields else "" for role in ("group", "time"))
    hint = (
        f"Pass groups={groups}, which of these each row is from, or time={time}. If the rows are "
        f"independent and only sorted, the rate holds: shuffle them to end this warning."
    )
    return [Finding(DependentRowsWarning, message, hint, fields)]


def _follows(values: np.ndarray) -> float:
    """The rank correlation of values with the one before; 0 for few values and for counters."""
    values = values[~np.isnan(values)]
    steps = np.diff(values)
    if len(np.unique(values)) < _FEWEST_VALUES or (steps >= 0).all() or (steps <= 0).all():
        return 0.0
    from scipy.stats import rankdata  # half a second: scoring does not wait for it

    ranks = rankdata(values)
    ranks = (ranks - ranks.mean()) / ranks.std()
    return float(np.mean(ranks[1:] * ranks[:-1]))


def _orders(column: Column) -> bool:
    """Whether enough different values rise with the rows, or fall, but for a few steps."""
    values = column.values[~np.isnan(column.values)]
    steps, most = np.diff(values), _FALLS * len(values)
    is_ordered = min(np.count_nonzero(steps < 0), np.count_nonzero(steps > 0)) <= most
    return bool(is_ordered) and len(np.unique(values)) >= FEWEST_TIMES


def _is_coarse_time(column: Column) -> bool:
    """Whether a column is named as a time, such as a year, and has few different values."""
    return _is_named_as_time(column.name) and len(column.names()[0]) < FEWEST_TIMES


def _never_decreases(column: Column) -> bool:
    return column.kind == "number" and bool((np.diff(column.values) >= 0).all())


def _in_stretches(column: Column) -> bool:
    """Whether the rows of each name, a text or a whole number, are consecutive; of ten or more."""
    if column.kind not in ("text", "number") or not len(column.values) or column.is_empty:
        return False
    if column.kind == "number" and not (column.values % 1 == 0).all():
        return False  # measured, by a slow sensor if they repeat
    values = column.values if column.kind == "number" else column.names()[1]
    changes, n_values = np.count_nonzero(np.diff(values)), len(np.unique(values))
    return _FEWEST_VALUES <= n_values == changes + 1 and 3 * n_values <= len(values)
