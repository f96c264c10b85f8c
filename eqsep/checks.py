"""Checks of data: what in a table or its labels may spoil a model, or its answers.

Each check is a small function that returns findings. `Detector.fit` raises them as warnings of the
categories below, all of them `DataWarning`. To keep a column that you have checked, silence its
warning: ``warnings.simplefilter("ignore", DateColumnWarning)``.

| finding | category |
|---|---|
| a column alone tells anomalous rows from normal ones | `LeakingColumnWarning` |
| a column counts the rows | `CountingColumnWarning` |
| numbers with a decimal comma, read as names | `DecimalCommaWarning` |
| dates: later rows lie beyond what was learnt | `DateColumnWarning`, `NewDateWarning` |
| labels that may be misspelt | `LabelSpellingWarning` |
| a threshold that few anomalies get above | `HighThresholdWarning`, `DoubtedThresholdWarning` |
| rows that are like those before them | `DependentRowsWarning` |
| rows that change over time | `DriftWarning` |
| times that begin anew | `TimeOrderWarning` |
| rows that are copies of each other | `CopiedRowsWarning` |
| rows to doubt, and no labelled anomaly by which to tell | `UnusedDoubtWarning` |
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eqsep.errors import EqsepWarning, quoted, warn
from eqsep.labels import RowLabels
from eqsep.tables.column import WRITERS, Column
from eqsep.tables.encodings import Date
from eqsep.tables.fitted import FittedEncoder
from eqsep.tables.reading import Table

_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_FEW = 20  # rows, or steps of a counter: fewer may rise by chance
_ENOUGH = 5  # anomalies: fewer are told apart by chance
_REPEATED = 2  # rows for each name: where there are fewer, names tell rows apart, not kinds
_HIGH = {False: 0.97, True: 0.9}  # thresholds above which little is left for anomalies, by doubt
Beyond = Counter[tuple[str, str, str]]  # rows by column, "later" or "earlier", and the last date


class DataWarning(EqsepWarning):
    """Something in the data that may spoil a model, or its answers."""


class LeakingColumnWarning(DataWarning):
    """A column alone tells all anomalous rows from the normal ones."""


class CountingColumnWarning(DataWarning):
    """A column of numbers rises or falls from row to row."""


class DecimalCommaWarning(DataWarning):
    """Columns of names are mostly numbers with a decimal comma."""


class DateColumnWarning(DataWarning):
    """A column of dates is learnt: rows that come later lie beyond it."""


class NewDateWarning(DataWarning):
    """Most rows have a date beyond all that were learnt."""


class LabelSpellingWarning(DataWarning):
    """Labels are alike but for case or blanks, or one row alone has a label."""


class HighThresholdWarning(DataWarning):
    """The threshold is so high that anomalies hardly get above it."""


class DoubtedThresholdWarning(HighThresholdWarning):
    """It is so high by rows that may be anomalies which nobody has labelled."""


class DependentRowsWarning(DataWarning):
    """Rows are like those before them, and neither groups nor times were given."""


class DriftWarning(DataWarning):
    """Rows change over time: what is promised would not hold for the rows that follow."""


class TimeOrderWarning(DataWarning):
    """Times begin anew from row to row, as where several runs stand below each other."""


class CopiedRowsWarning(DataWarning):
    """Each row is there as often as the others, copied: it is learnt once."""


class UnusedDoubtWarning(DataWarning):
    """Rows are to be doubted, and no anomaly is labelled that they could be like."""


CAUTIONS = (DependentRowsWarning, DriftWarning)  # that break the promise, and are kept in a model


@dataclass(frozen=True)
class Finding:
    """What a check has found.

    Attributes
    ----------
    category : type of DataWarning
    message : str
        What was found, and why it matters.
    hint : str
        What to do about it, in Python.
    fields : mapping of str to str or number
        What it is about, such as the name of a column.
    """

    category: type[DataWarning]
    message: str
    hint: str
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def warning(self) -> DataWarning:
        """The finding as a warning."""
        return self.category(self.message, hint=self.hint, **self.fields)


def warn_of(findings: Iterable[Finding]) -> None:
    """Warn of each finding, at the line outside of eqsep that asked for what was checked."""
    for finding in findings:
        warn(finding.warning())


def check_columns(rows: Table, code: np.ndarray) -> list[Finding]:
    """What is to be looked at in the columns of rows that are learnt.

    Parameters
    ----------
    code : ndarray of int of shape (n_rows,)
        0 where a row is normal, above 0 where it is anomalous, below where nobody knows.
    """
    return [*counting_columns(rows), *decimal_commas(rows), *leaking_columns(rows, code)]


def counting_columns(rows: Table) -> list[Finding]:
    """A finding for each column of numbers that rises or falls from row to row; some may tie.

    Examples
    --------
    >>> from eqsep.tables.reading import read_table
    >>> rows = read_table([{"id": i, "size": i % 7} for i in range(30)], name="checks")
    >>> [finding.fields for finding in counting_columns(rows)]
    [{'column': 'id'}]
    """
    if rows.n_rows <= _FEW:
        return []
    return [
        Finding(
            CountingColumnWarning,
            f"Column {column.name!r} rises or falls from row to row, as numbers of rows do: new "
            f"rows may lie beyond all that was learnt, and raise alarms for that alone.",
            "If it only counts the rows, leave it out of X.",
            {"column": column.name},
        )
        for column in rows.columns
        if column.kind == "number" and _is_counter(column.values)
    ]


def _is_counter(values: np.ndarray) -> bool:
    steps = np.diff(values)
    one_way = bool((steps >= 0).all() or (steps <= 0).all())
    return one_way and int(np.count_nonzero(steps)) >= _FEW


def decimal_commas(rows: Table) -> list[Finding]:
    """A finding, where columns of text are mostly numbers with a decimal comma.

    A categorical column is said to hold names, and is left alone.
    """
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
    point = text.strip().replace(",", ".")
    which, hold = ("Column", "holds") if len(found) == 1 else ("Columns", "hold")
    others = ", and so on" * (len(found) > 1)
    return [
        Finding(
            DecimalCommaWarning,
            f"{which} {quoted(found, most=len(found))} {hold} numbers with a decimal comma, such "
            f"as {text!r}, read as names here: write them with a point, {point}.",
            f"If they are names, make it a categorical column{others}.",
            {"column": name, "others": others},
        )
    ]


def leaking_columns(rows: Table, code: np.ndarray) -> list[Finding]:
    """A finding for each column that alone tells all anomalous rows from the normal ones.

    The code of a row is that of `check_columns`.
    """
    anomalous, normal = code > 0, code == 0
    if anomalous.sum() < _ENOUGH or normal.sum() < _ENOUGH:
        return []
    return [
        Finding(
            LeakingColumnWarning,
            f"Column {column.name!r} alone tells every anomalous row from every normal one.",
            "If it is known only together with the label, leave it out of X.",
            {"column": column.name},
        )
        for column in rows.columns
        if _separates(column, anomalous, normal)
    ]


def _separates(column: Column, anomalous: np.ndarray, normal: np.ndarray) -> bool:
    if column.kind in ("text", "mixed", "boolean"):
        names, place = column.names()
        few = len(names) * _REPEATED <= len(place)
        return few and not set(place[anomalous].tolist()) & set(place[normal].tolist())
    values = np.where(np.isnan(column.values), -np.inf, column.values)
    high, low = values[anomalous], values[normal]
    return bool(high.min() > low.max() or high.max() < low.min())


def check_labels(counts: Mapping[str, int], *, known: Iterable[str] = ()) -> list[Finding]:
    """Findings on labels that may be misspelt: alike but for case or blanks, or of one row.

    Parameters
    ----------
    counts : mapping of str to int
        The rows of each label.
    known : iterable of str
        Labels that were learnt before.

    Examples
    --------
    >>> [finding.message for finding in check_labels({"ok": 90, "OK": 7})]
    ["Labels 'OK', 'ok' differ only by case or blanks."]
    """
    known = list(known)
    new = set(counts) - set(known)
    alike: dict[str, set[str]] = {}
    for text in (*counts, *known):
        alike.setdefault(text.strip().casefold(), set()).add(text)
    found = [
        Finding(
            LabelSpellingWarning,
            f"Labels {quoted(sorted(texts))} differ only by case or blanks.",
            "If they mean the same, write them alike.",
        )
        for texts in alike.values()
        if len(texts) > 1 and texts & new
    ]
    single = [text for text, n in counts.items() if n == 1 and text in new]
    if single:
        one = len(single) == 1
        which = f"Label {quoted(single)} has one row."
        many = f"Labels {quoted(single)} have one row each."
        check = f"Check {'its' if one else 'their'} spelling: one row teaches little."
        found.append(Finding(LabelSpellingWarning, which if one else many, check))
    return found


def check_row_labels(
    labels: RowLabels, times: np.ndarray | None = None, *, known: RowLabels | None = None
) -> list[Finding]:
    """The same of the labels of rows; each stands for so many of them, else for one.

    Those that are `known` were learnt before.
    """
    names = _label_names(labels)
    if not names:
        return []
    there = labels.code >= 0
    weights = None if times is None else times[there]
    counts = np.bincount(labels.code[there], weights, minlength=len(names)).tolist()
    found = {name: int(n) for name, n in zip(names, counts, strict=True) if n}
    return check_labels(found, known=[] if known is None else _label_names(known))


def _label_names(labels: RowLabels) -> list[str]:
    """The normal label and those of anomalies as text; none where no label was ever given."""
    if labels.labels is None:
        return []
    normal, other = map(str, labels.labels.classes)
    return [normal, *(labels.kinds if labels.labels.by_name else [other])]


def check_doubt(asked: str, *, kinds: Collection[str]) -> list[Finding]:
    """A finding where rows are to be doubted, as `asked`, and no kind of anomaly is labelled."""
    if asked != "doubted" or kinds:
        return []
    return [
        Finding(
            UnusedDoubtWarning,
            "Rows are to be doubted, and no anomaly is labelled, by which others could be found "
            "among them: all rows are taken for normal ones.",
            "Pass y with some labelled anomalies, or leave out unlabelled='doubted'.",
        )
    ]


def check_threshold(threshold: float, *, rate: float, doubted: bool = False) -> list[Finding]:
    """A finding where the threshold is so high that anomalies hardly get above it.

    The share of new normal rows that may raise an alarm is `rate`; held-out rows that set the
    threshold may be anomalies where they are `doubted`.
    """
    if threshold < _HIGH[doubted]:
        return []
    near = f"The threshold, {threshold:.3f}, is near 1 or above, the score of rows far from all"
    if doubted:
        return [
            Finding(
                DoubtedThresholdWarning,
                f"{near}: more than {rate:.2%} of the held-out rows score this high, and nobody "
                f"has called them normal. Some of these are likely to be anomalies that nobody has "
                f"labelled; while they set the threshold, few anomalies will raise an alarm.",
                "eqsep.detector.suspects lists them: label the anomalies among them, or allow a "
                "higher false_alarm_rate.",
            )
        ]
    return [
        Finding(
            HighThresholdWarning,
            f"{near}: more than {rate:.2%} of the normal rows score this high. Few anomalies will "
            f"raise an alarm.",
            "Leave out columns of codes or ids, set a larger n_landmarks, or allow a higher "
            "false_alarm_rate.",
        )
    ]


def check_dates(encoder: FittedEncoder) -> list[Finding]:
    """A finding for each column of dates that a fitted encoder has learnt."""
    return [
        Finding(
            DateColumnWarning,
            f"Column {name!r} holds dates, from {_written(learnt, 0)} to {_written(learnt, -1)}: "
            f"rows that come later lie beyond all that was learnt, and may raise alarms for that "
            f"alone.",
            "Unless the date matters, leave it out of X.",
            {"column": name},
        )
        for _, name, learnt in _dates(encoder)
    ]


def rows_beyond(rows: Table, encoder: FittedEncoder) -> Beyond:
    """How many rows have a later date, or an earlier one, than all that were learnt."""
    found: Beyond = Counter()
    for index, name, learnt in _dates(encoder):
        seconds = rows.columns[index].numbers("date")
        knots = learnt.elapsed.knots
        found[name, "later", _written(learnt, -1)] += int(np.sum(seconds > knots[-1]))
        found[name, "earlier", _written(learnt, 0)] += int(np.sum(seconds < knots[0]))
    return found


def check_beyond(beyond: Beyond, *, n_rows: int) -> list[Finding]:
    """A finding for each column by which more than half of the rows are beyond what was learnt."""
    return [
        Finding(
            NewDateWarning,
            f"{n:,} of {n_rows:,} row{'s' * (n_rows != 1)} {'has' if n == 1 else 'have'} a {side} "
            f"date in column {name!r} than all that were learnt ({limit}), and may raise alarms "
            f"for that alone.",
            "Fit to rows of their time, or without the column.",
            {"column": name},
        )
        for (name, side, limit), n in beyond.items()
        if 2 * n > n_rows
    ]


def _dates(encoder: FittedEncoder) -> Iterator[tuple[int, str, Date]]:
    """The index, name and encoding of each column of dates."""
    names = getattr(encoder, "feature_names_in_", None)
    for i, learnt in enumerate(encoder.columns_):
        if isinstance(learnt, Date):
            yield i, f"x{i}" if names is None else str(names[i]), learnt


def _written(learnt: Date, knot: int) -> str:
    return WRITERS["date"](learnt.elapsed.knots[knot]).replace("T", " ")
