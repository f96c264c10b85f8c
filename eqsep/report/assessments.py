"""The report of a test: how a model does on labelled rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from eqsep.detector import Detector
from eqsep.evaluation import Assessment, MeasuredPromise, Review, Share, assess
from eqsep.labels import NORMAL
from eqsep.report.measured import Spread, spread_of
from eqsep.report.reasons import ExplainedAlarm, top_alarms
from eqsep.tables.reading import read_table

CHANCE_DELAYS = (
    "The last column shows the share of stretches that false alarms alone would find (with one "
    'extra false alarm), and their median delay; "as by chance" means that this explains how soon '
    "alarms came."
)


@dataclass(frozen=True)
class AssessmentReport:
    """All that the page of a test shows."""

    title: str
    rate: float  #: The requested false-alarm rate.
    promised: bool  #: Whether enough rows, or groups of rows, calibrate to promise it.
    unit: str  #: What calibrates: "row", "group" or "time block".
    counts: dict[str, int]  #: The rows of each label.
    assessment: Assessment
    measured: Spread  #: Curves, scores and false alarms at several rates.
    alarms: tuple[ExplainedAlarm, ...]  #: The highest of each label.
    notes: tuple[str, ...]  #: What to know about the rows.
    command: str = ""  #: The command that makes this report again.

    template = "assessment.html.jinja"
    chance_delays = CHANCE_DELAYS

    def of_learnt_rows(self) -> Self:
        """The same where the model has learnt from these rows, so that no promise is judged."""
        found = self.assessment
        names = replace(found.names, promise=_unjudged(found.names.promise))
        return replace(
            self, assessment=replace(found, promise=_unjudged(found.promise), names=names)
        )

    @property
    def delays(self) -> tuple[tuple[str, Share, str, str, str], ...]:
        """For each kind: the episodes found, the delays in rows and time, and both by chance."""
        delay = self.assessment.delay
        if delay is None:
            return ()
        spell = spelled if delay.by_date else "{:g}".format
        shown = []
        for one in delay.kinds:
            rows, times = _typical(one.rows, "{:g}".format), _typical(one.times, spell)
            if not one.beats_chance:  # false alarms alone explain the delays
                rows, times = "as by chance" if rows else "", ""
            chance = f"{one.by_chance:.0%}, {one.chance_rows:,g} rows"
            shown.append((one.kind, one.found, rows, times, chance))
        return tuple(shown)

    @property
    def false_episodes(self) -> str:
        """How many stretches of normal rows raise an alarm, in a sentence."""
        delay = self.assessment.delay
        assert delay is not None  # the page shows this only with delays
        n, rows = delay.false_episodes, delay.normal_rows
        stretch = "1 stretch" if n == 1 else f"{n:,} stretches"
        each = f", one in {rows / n:,.0f} rows" if n else ""
        return f"In {rows:,} normal rows, false alarms come in {stretch}{each}."


def assessment_report(
    detector: Detector,
    X: Any,
    kind: Any,
    *,
    review: Review | None = None,
    notes: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> AssessmentReport:
    """Measure a fitted detector on labelled rows, and gather all that its page shows.

    Parameters
    ----------
    detector, X, kind, review
        As in `eqsep.evaluation.assess`; normal rows are called "normal".
    notes : sequence of str
        What to know about the rows.
    names : sequence of str, default=None
        The name of each row (default: its number).

    Examples
    --------
    >>> from eqsep.datasets import make_mixed_demo
    >>> old, new = (make_mixed_demo(n_samples=600, random_state=seed) for seed in (0, 1))
    >>> detector = Detector(n_landmarks=50, bandwidth=1.0, false_alarm_rate=0.05, random_state=0)
    >>> report = assessment_report(detector.fit(old.X, old.kind), new.X, new.kind)
    >>> report.assessment.false_alarms.total, len(report.alarms)
    (540, 12)
    """
    table, model = read_table(X, name="assessment_report"), detector.model_
    kind = np.asarray(kind).astype(str)
    assessment = assess(detector, table, kind, review=review)
    kinds, times = np.unique(kind, return_counts=True)
    counts = dict(zip(kinds.tolist(), times.tolist(), strict=True))
    return AssessmentReport(
        title="Test of a detector",
        rate=float(detector.false_alarm_rate),
        promised=model.rank > 0,
        unit=model.plan.holdout.unit,
        counts={NORMAL: counts.pop(NORMAL)} | counts,
        assessment=assessment,
        measured=spread_of(model, model.scores(table), kind, normal=NORMAL),
        alarms=top_alarms(detector, table, kind, names=names),
        notes=tuple(notes),
    )


def _unjudged(promise: MeasuredPromise | None) -> MeasuredPromise | None:
    return None if promise is None else replace(promise, learnt=True)


def _typical(delays: Sequence[float], spell: Callable[[float], str]) -> str:
    """The median and the longest of some delays; empty if there are none."""
    return f"{spell(float(np.median(delays)))}, at most {spell(max(delays))}" if delays else ""


def spelled(seconds: float) -> str:
    """A duration in the largest unit that it reaches: 90 s is "1.5 min"."""
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= size), units[-1])
    return f"{seconds / size:.2g} {unit}" if size > 1 else f"{seconds:.3g} {unit}"
