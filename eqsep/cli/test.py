"""`eqsep test`: a model on labelled rows that it has not learnt."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.console import RenderableType
from rich.text import Text

from eqsep.arrays import objects
from eqsep.cli import console, inputs, options
from eqsep.cli.console import Screen, flag, format_counts, interval, opt, print_warnings, table
from eqsep.cli.inputs import InputSpec, load_detector
from eqsep.cli.project import known_label, shown_kind
from eqsep.detector import Detector, learnt_before
from eqsep.detector.audit import Repeats
from eqsep.detector.calibration import NO_PROMISE
from eqsep.detector.runs import Runs
from eqsep.errors import UserError, counted
from eqsep.evaluation import AssessedKind, Assessment, Names, Review, Share
from eqsep.io.files import cast
from eqsep.labels import NORMAL, WITHOUT, read_row_labels, with_counts
from eqsep.report import write_report
from eqsep.report.assessments import CHANCE_DELAYS, AssessmentReport, assessment_report


@dataclass(frozen=True, kw_only=True)
class ReviewSpec:
    """How alarms are worked off: the options of the command, with names of columns."""

    time: str | None = opt(None, "COLUMN", "Time of each row, for daily figures and delays.")
    group: str | None = opt(None, "COLUMN", "Run of each row, for delays (default: the model's).")
    persist: str | None = opt(
        None,
        "K/N",
        "Measure delays of alarms with K of the last N rows of a run; the rest is unaffected.",
    )
    entity: str | None = opt(
        None, "COLUMN", "Card, host or machine: its rows of one day are one incident."
    )
    top: int = opt(20, "N", "Number of highest scores to check.")
    cost_alarm: float | None = opt(None, "COST", "Cost of checking an alarm, true or false.")
    cost_miss: float | None = opt(None, "COST", "Cost of an anomaly that raises no alarm.")

    @property
    def columns(self) -> list[str]:
        return [name for name in (self.time, self.entity, self.group) if name is not None]

    def review(self, table: pa.Table) -> Review:
        """The same, with the values of the columns."""
        day, time = (None, None) if self.time is None else _days(table.column(self.time), self.time)
        if self.persist is not None and time is None and self.group is None:
            raise UserError("--persist needs --time, when a row was taken, or --group, its run.")
        return Review(
            top=self.top,
            day=day,
            entity=None if self.entity is None else _texts(table.column(self.entity)),
            cost_alarm=self.cost_alarm,
            cost_miss=self.cost_miss,
            time=time,
            run=None if self.group is None else _texts(table.column(self.group)),
            persist=None if self.persist is None else inputs.persistent_alarms(self.persist).update,
        )


@options.reads_tables
def test(
    context: typer.Context,
    model: Path = options.MODEL,
    spec: InputSpec = options.columns(label=options.LABEL, normal=options.NORMAL_HERE),
    *,
    review: ReviewSpec,
    false_alarm_rate: float | None = options.RATE,
    learnt_too: bool = flag("--learnt-too", "Measure even on rows that the model has learnt."),
    report: Path | None = options.REPORT,
) -> None:
    """Test a model on labelled rows: what it finds and names, and whether its promise holds."""
    options.check_report_out(report, [model, *spec.paths])
    with print_warnings():
        detector = load_detector(model, rows=spec.paths, rate=false_alarm_rate)
        found = assess_files(detector, spec, review, learnt_too=learnt_too)
    title = f"{model.name}, tested on {', '.join(Path(path).name for path in spec.paths)}"
    print_report(replace(found, title=title), print_assessment, context, report)


def print_report(
    found: Any, show: Callable[[Screen, Any], None], context: typer.Context, path: Path | None
) -> None:
    """Write the report with its command to a path, if given, and show what was found."""
    found = replace(found, command=options.this_command(context))
    if path is not None:  # before printing, which a closed pipe may end
        write_report(found, path, label=known_label())
    console = Screen()
    show(console, found)
    if path is not None:
        console.print_line(f"\nreport: {path}")


def _days(column: pa.ChunkedArray, name: str) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The day of each row, unless times are numbers, and its time; refuses other values."""
    numbers, dates = cast(column, "number"), cast(column, "date")
    if pa.types.is_integer(numbers.type) or pa.types.is_floating(numbers.type):
        return None, numbers.to_numpy()
    if pa.types.is_timestamp(dates.type) or pa.types.is_date(dates.type):
        return _texts(pc.strftime(dates, format="%Y-%m-%d")), dates.to_numpy().astype("M8[us]")
    raise UserError(
        f"--time expects dates, or numbers to sort rows by, but column {name!r} holds "
        f"{next((text for text in _texts(column).tolist() if text), '')!r}. Pass the column of "
        f"times; a card, host or machine is --entity."
    )


def _texts(column: pa.ChunkedArray) -> np.ndarray:
    values = column.cast(pa.string()).to_pylist()
    return np.array(["" if value is None else value for value in values], dtype=str)


def assess_files(
    detector: Detector, spec: InputSpec, review: ReviewSpec, *, learnt_too: bool
) -> AssessmentReport:
    """Measure a model on the labelled rows of files; if need be on those that it has learnt."""
    plan, caution = detector.plan_, detector.caution_
    grouped = spec.grouped.like(plan)
    called = inputs.naming_columns(plan.encoder.dropped) if plan.is_named else []

    def choose(there: list[str]) -> Iterable[str]:
        groups = [name for name in grouped.names if name in there]
        more = [*spec.not_learnt, *review.columns, *groups, *(n for n in called if n in there)]
        used = list(inputs.columns_for(plan, more=more)(there))
        inputs.note_extra(detector.model_, there, used)
        return used

    rows, table = spec.read_like(plan, choose)
    group, time = (n if n in table.schema.names else None for n in (grouped.group, grouped.time))
    review = replace(review, group=review.group or group, time=review.time or time)
    y = spec.labels_for(detector.model_, table)
    assert y is not None  # the option is required
    label = str(spec.label)
    inputs.check_some_label(y, name=label)
    kind = _kinds(detector, y)
    if NORMAL not in kind:
        raise UserError(
            f"A test needs normal rows to measure false alarms, but column {label!r} holds "
            f"{with_counts(Counter(kind.tolist()))}. Add normal rows, "
            f"{inputs.or_name_normal(spec.normal, inputs.normal_words(detector.model_))}."
        )
    notes = [] if caution is None else [f"The fit warned: {console.in_command(caution.warning())}"]
    if set(grouped.names) <= set(table.schema.names):
        rows = grouped.attach(rows, table)
    rows = plan.align(rows)  # with windows, before rows are left out
    learnt = learnt_before(detector, rows, y)
    notes += _checked_new(learnt, spec.paths, learnt_too=learnt_too)
    grouping, columns = plan.holdout.grouping, (group or None, "")
    if grouping is not None and grouping.edges and grouping.columns == columns:  # as with --ordered
        first = 0 if learnt_too else int(grouping.edges[-1]) + 1
        rows = replace(rows, groups=Runs(n_rows=first).in_order(rows.groups, rows.n_rows))
        notes += ["Rows are taken to be in time order, after those of the fit."] * (not learnt_too)
    known = np.flatnonzero(kind != WITHOUT)
    if len(known) < len(kind):
        notes.append(f"Left out: {counted(len(kind) - len(known), 'row')} {WITHOUT}.")
    if set(kind[known].tolist()) == {NORMAL}:
        notes.append(
            "No row is an anomaly: only false alarms are measured. Label some to see more."
        )
    if (windows := plan.windows) is not None:
        short = known[windows.short(rows)[known]]
        alarm = detector.model_.scores(rows.take(short)) > detector.threshold_
        inputs.note_short_windows(windows, alarm.tolist())
    called = [name for name in called if name in table.column_names]
    report = assessment_report(
        detector,
        rows.take(known),
        kind[known],
        review=review.review(table.take(pa.array(known))),
        notes=notes,
        names=inputs.row_names(table.select(called), known),
    )
    return report.of_learnt_rows() if learnt.are_learnt else report


def _checked_new(found: Repeats, paths: Iterable[str], *, learnt_too: bool) -> list[str]:
    """Refuse rows that were learnt, or note that some equal learnt ones, or may do so."""
    are_alike = found.by_chance >= 1  # so many that new rows may equal learnt ones, too
    normal = found.exceeds_chance or (are_alike and 2 * found.found > found.checked)
    parts = {"normal rows": found} if normal else {}
    parts |= {f"rows of {shown_kind(kind)}": one for kind, one in found.repeated_kinds.items()}
    had = ", ".join(
        f"{one.found / one.checked:.0%} of the {name} ({one.found:,} of {one.checked:,} that it "
        f"would keep)"
        for name, one in parts.items()
    )
    if found.are_learnt and not learnt_too:
        raise UserError(
            f"The model has learnt rows of {', '.join(paths)}: about {had}. It does better on "
            f"them than on new rows. Pass others, or measure anyway with --learnt-too."
        )
    if found.are_learnt:
        said = "The model has learnt from these rows, and does better on them than on new ones"
        return [f"{said}: about {had}."]
    if parts:
        return [
            f"Some rows equal learnt ones: about {had}. If they are the same rows, the figures of "
            f"these are too good."
        ]
    if not found.checked or (are_alike and found.found):
        return ["It is not known whether the model has learnt some of these rows."]
    return []


def _kinds(detector: Detector, y: np.ndarray) -> np.ndarray:
    """What the detector calls the kind of each row."""
    known = detector.model_.evidence.labels
    labels = read_row_labels(y, n_rows=len(y), normal=detector.normal, known=known)
    words = objects([NORMAL, *labels.kinds, WITHOUT])
    found: np.ndarray = words[labels.code].astype(str)  # the code of no label is -1: the last word
    return found


def print_assessment(console: Screen, report: AssessmentReport) -> None:
    """False alarms against the promise, what is found of each kind, names, top scores and costs."""
    found = report.assessment
    lines = {"rows": f"{sum(report.counts.values()):,}: {format_counts(report.counts)}"}
    lines |= {"false alarms": promise_line(report)}
    if found.overall is not None:
        of = f", mean over {len(found.kinds):,} kinds"
        of = of if len(found.kinds) > 1 else f" of {shown_kind(found.kinds[0].kind)}, the only kind"
        lines["found"] = f"average precision {found.mean_average_precision:.3f}{of}"
    console.print_lines(lines | name_lines(found.names), width=13)
    for note in report.notes:
        console.print_line(note)
    if found.overall is not None:
        console.print(
            "\nWhat is found of each kind, against normal rows, with 95% intervals; the last two "
            "do not depend on the threshold:"
        )
        columns = ("", "rows", "recall", "precision", "average precision", "ROC AUC")
        console.print(table(columns, _kind_rows(found, found.overall)))
        console.print("Alarms by label, and by the name that they are given:")
        header = ("label", "alarms", "own name", "another", "unseen")
        console.print(table(header, _name_rows(found.names)))
        console.print(f"If you check only the {found.review.top} highest scores:")
        header = ("", "looked at", "anomalous", "precision", "recall")
        console.print(table(header, _top_rows(found)))
    if found.delay is not None and found.delay.kinds:
        stay = " that persists" * found.delay.persistent
        console.print(f"How soon: the first alarm{stay} in each stretch of rows of a kind:")
        columns = ("", "stretches", "found", "delay in rows", "delay in time", "by chance")
        console.print(table(columns, _delay_rows(report)))
        rest = " All other figures are of single alarms, persistent or not." * bool(stay)
        console.print_line(f"{report.false_episodes} {CHANCE_DELAYS}{rest}\n")
    if found.costs:
        console.print("What it costs; the best threshold is the best for these rows:")
        columns = ("threshold", "score", "alarms", "false", "missed", "cost")
        console.print(table(columns, _cost_rows(found)))


def promise_line(report: AssessmentReport) -> str:
    """How many normal rows raise an alarm, and whether that is what was promised."""
    found = report.assessment
    alarms = f"{percent(found.false_alarms, 'normal row')}"
    if not report.promised:
        return f"{alarms}; {NO_PROMISE}: too few {report.unit}s calibrate for {report.rate:.2%}"
    if found.promised_for is None:
        return f"{alarms}; promised {report.rate:.2%}: {found.verdict}"
    promised = f"promised at most {report.rate:.2%} of those of {found.promised_for}, on average"
    if found.groups is None:
        return f"{alarms}; {promised} over them: add their column to see whether it is kept"
    return f"{alarms}; {promised}: {found.groups}"


def name_lines(names: Names) -> dict[str, str]:
    """How often alarms are named right, by a forest too, and whether promises on names are kept."""
    lines = {}
    if len(names.seen) == 1:
        lines["names right"] = "not measured: only one kind was seen"
    elif names.right.total:
        forest = "" if names.forest is None else f"; a random forest {names.forest.value:.2%}"
        lines["names right"] = f"{percent(names.right, 'named alarm')} of seen kinds{forest}"
    elif names.called_unseen.total:
        lines["names right"] = "none to measure: no row of a seen kind raises a named alarm"
    if names.false.count or names.mistaken.count:
        falsely = f"{percent(names.false, 'alarm')} with the name of a seen kind are normal rows"
        others = f", {names.mistaken.value:.2%} rows of unseen kinds" * bool(names.mistaken.count)
        lines["named falsely"] = f"{falsely}{others}"
    if names.sets is not None and len(names.seen) > 1:
        promised = NO_PROMISE
        if names.sets.promised is not None:
            promised = f"promised {names.sets.promised:.0%} if kinds are as common as in the fit"
        lines["sets of kinds"] = (
            f"{names.sets.size:.2f} kinds on average; {percent(names.sets.covered, 'set')} "
            f"include the true kind, {promised}"
        )
    if names.called_unseen.total:
        promised = f"promised at most {names.rate:.2%}: {names.judged}"
        promised = NO_PROMISE if names.judged == NO_PROMISE else promised
        share = percent(names.called_unseen, "row")
        lines["called unseen"] = f"{share} of seen kinds; {promised}"
    if names.power.total:
        lines["named unseen"] = f"{percent(names.power, 'alarm')} of unseen kinds"
    return lines


def percent(share: Share, what: str) -> str:
    """A share with its interval, and of how many things it is one."""
    found = f"{share.value:.2%} [{share.low:.2%}, {share.high:.2%}]"
    return f"{found} of {counted(share.total, what)}"


_Cells = Iterator[tuple[RenderableType, ...]]  # the rows of a table


def _kind_rows(found: Assessment, overall: AssessedKind) -> _Cells:
    def cells(one: AssessedKind, name: str) -> tuple[RenderableType, ...]:
        shares = (interval(one.recall), interval(one.precision), interval(one.average_precision))
        return (Text(name), f"{one.rows:,}", *shares, f"{one.roc_auc.value:.3f}")

    for word, seen in (("seen kinds", True), ("unseen kinds", False)):
        kinds = [one for one in found.kinds if one.seen == seen]
        if kinds:
            yield (Text(word, style="bold"),)
        yield from (cells(one, shown_kind(one.kind)) for one in kinds)
    yield cells(overall, "overall")


def _name_rows(names: Names) -> _Cells:
    for one in names.kinds:
        counts = (one.alarms, one.right if one.kind in names.seen else None, one.other, one.unseen)
        yield Text(shown_kind(one.kind)), *("–" if n is None else f"{n:,}" for n in counts)


def _top_rows(found: Assessment) -> _Cells:
    for one in found.top:
        what = "incidents" if one.incidents else "rows"
        among = f"{what} of each {one.among} ({one.groups:,})"
        among = f"all {what}" if one.among == "all" else among
        looked = (f"{one.precision.total:,}", f"{one.precision.count:,}")
        yield among, *looked, interval(one.precision), interval(one.recall)


def _delay_rows(report: AssessmentReport) -> _Cells:
    for kind, found, rows, times, chance in report.delays:
        name, n = Text(shown_kind(kind)), f"{found.total:,}"
        yield name, n, interval(found), rows or "–", times or "–", chance


def _cost_rows(found: Assessment) -> _Cells:
    for name, cost in found.costs.items():
        counts = (f"{cost.alarms:,}", f"{cost.false_alarms:,}", f"{cost.missed:,}")
        yield name, f"{cost.threshold:.3f}", *counts, f"{cost.total:,.10g}"
