"""The report of a detector: all parts of it, as records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eqsep.checks import Finding
from eqsep.detector import Detector, closedness_by_column
from eqsep.detector.closedness import varied_rows
from eqsep.detector.namer import kind_text
from eqsep.errors import UserError
from eqsep.labels import WITHOUT
from eqsep.report.advice import Advice, Words, answer
from eqsep.report.learnt import LearntSummary, learnt_by
from eqsep.report.measured import (
    LaterRows,
    LaterShares,
    Measured,
    Workload,
    later_shares,
    measured_on,
    workload,
)
from eqsep.report.reasons import (
    ColumnVerdict,
    ExplainedAlarm,
    column_verdicts,
    that_matter,
    top_alarms,
)
from eqsep.tables.reading import read_table

_MIN_LEARNT = 30  # rows of a kind: fewer teach little


@dataclass(frozen=True)
class HeldOut:
    """Rows that a detector has not learnt, and their kinds."""

    X: Any  #: A table.
    kind: Any  #: The kind of each row, array-like of str.
    normal: str = "normal"  #: The label of the normal rows; the page calls them "normal".
    doubted: bool = False  #: Whether some of these may be unnoticed anomalies.
    names: Sequence[str] | None = None  #: The name of each row (default: its number).
    detector: Detector | None = None  #: The detector to measure (default: that of the report).
    note: str = ""  #: Which rows they are, in a sentence or two.
    usual: Any = None  #: More normal rows, learnt or not, to show what is far out.
    later: LaterRows | None = None  #: The last rows in time, and a detector of those before.


@dataclass(frozen=True)
class Usage:
    """How the model is used from here on."""

    model: str = "model.eqsep"  #: Its file.
    rows: str = "new.csv"  #: A file of new rows.
    label: str = "kind"  #: The column of labels; empty if there is none.
    options: tuple[str, ...] = ()  #: Options that the labels of the fit needed.
    folder: str | None = None  #: The folder of a project file with the model and the label.
    words: Words = str  #: Turns a warning into text; the default is for users of Python.
    called: Callable[[str], str] = kind_text  #: Turns a kind into text.


@dataclass(frozen=True)
class DetectorReport:
    """All that the page of a detector shows."""

    title: str
    answer: Advice  #: What is caught, what is not, and what to do next.
    learnt: LearntSummary
    measured: Measured
    note: str  #: Which rows were measured on.
    alarms: tuple[ExplainedAlarm, ...]  #: Among the held-out rows.
    columns: tuple[ColumnVerdict, ...]  #: What one unusual value of each does.
    warnings: tuple[str, ...]  #: What to check in the data, except for what the answer mentions.
    usage: Usage
    workload: Workload | None = None  #: How many alarms there are to look at, if that is known.
    later: LaterShares | None = None  #: How a detector of earlier rows does on the last rows.
    #: How many rows of each seen kind the measured copy and the detector itself have learnt.
    copied: dict[str, tuple[int, int]] = field(default_factory=dict)

    template = "detector.html.jinja"

    @property
    def few_copied(self) -> list[str]:
        """The kinds of which a copy with so few rows misses some, and the detector fewer."""
        few = {kind for kind, (copy, own) in self.copied.items() if copy < min(own, _MIN_LEARNT)}
        measured = *self.measured.seen, *self.measured.unseen
        return [one.kind for one in measured if one.kind in few and one.caught < 1]

    @property
    def shown(self) -> tuple[ColumnVerdict, ...]:
        """The columns that matter: all of them, unless they are many."""
        return that_matter(self.columns)

    @property
    def folded(self) -> tuple[ColumnVerdict, ...]:
        """The others."""
        shown = {one.name for one in self.shown}
        return tuple(one for one in self.columns if one.name not in shown)


def detector_report(
    detector: Detector,
    held: HeldOut,
    *,
    counts: Mapping[str, int] | None = None,
    title: str = "Anomaly detector",
    warnings: Sequence[str | Finding] = (),
    usage: Usage | None = None,
) -> DetectorReport:
    """Measure a fitted detector on held-out rows, and gather all that its page shows.

    Parameters
    ----------
    detector : Detector
    held : HeldOut
        Some rows must be normal.
    counts : mapping of str to int, default=None
        How many rows of each kind were learnt, if that is known.
    title : str
    warnings : sequence of str or Finding
        What to check in the data. Findings may become next steps.
    usage : Usage, default=None

    Examples
    --------
    >>> from eqsep.datasets import make_mixed_demo
    >>> old, new = (make_mixed_demo(n_samples=600, random_state=seed) for seed in (0, 1))
    >>> detector = Detector(n_landmarks=50, false_alarm_rate=0.05, random_state=0)
    >>> report = detector_report(detector.fit(old.X, old.kind), HeldOut(new.X, new.kind))
    >>> report.measured.together["seen"].rows, len(report.columns)
    (60, 10)
    """
    table = read_table(held.X, name="detector_report")
    kind = np.asarray(held.kind).astype(str)
    normal = np.flatnonzero(kind == held.normal)
    if not len(normal):
        raise UserError(
            f"A report measures false alarms, and no held-out row is {held.normal!r}: the kinds "
            f"are {sorted(set(kind.tolist()))}. Pass the name of the normal kind: normal=..."
        )
    word = held.normal if "normal" in kind else "normal"  # unless another kind has that name
    counts = {word if name == held.normal else name: n for name, n in (counts or {}).items()}
    learnt = learnt_by(detector, normal=held.normal, counts=counts)
    if held.doubted:
        word = learnt.doubted or WITHOUT
    kind = np.where(kind == held.normal, word, kind)
    trial = held.detector or detector
    usual = table.take(normal) if held.usual is None else read_table(held.usual, name="usual")
    found: Any = {"limit": learnt.threshold, "doubted": held.doubted}
    measured = measured_on(trial, table, kind, normal=word, **found)
    alarms = top_alarms(trial, table, kind, names=held.names)
    closed = closedness_by_column(detector, varied_rows(usual))
    columns = column_verdicts(closed, reads=learnt.columns, usual=usual, alarms=alarms)
    usage = usage or Usage()
    found = {"learnt": learnt, "measured": measured, "columns": columns}
    findings = [one for one in warnings if isinstance(one, Finding)]
    first = answer(detector, **found, findings=findings, words=usage.words, called=usage.called)
    texts = [usage.words(w.warning()) if isinstance(w, Finding) else w for w in warnings]
    given = [step.finding for step in first.steps if step.finding]
    return DetectorReport(
        title=title,
        answer=first,
        **found,
        note=held.note,
        alarms=alarms,
        warnings=tuple(text for text in texts if not any(one in text for one in given)),
        usage=usage,
        workload=workload(learnt, measured),
        later=None if held.later is None else later_shares(held.later, normal=held.normal),
        copied={} if trial is detector else _copied(trial, detector),
    )


def _copied(trial: Detector, detector: Detector) -> dict[str, tuple[int, int]]:
    """How many rows of each kind two detectors have learnt."""
    copy, own = (one.model_.namer.learnt_by_kind for one in (trial, detector))
    return {kind: (round(copy.get(kind, 0)), round(n)) for kind, n in own.items()}
