"""`eqsep watch`: whether new rows still look like those that set a model's threshold."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import typer

from eqsep.cli import options
from eqsep.cli.console import Screen, flag, in_command, opt, print_warnings, progress
from eqsep.cli.inputs import RowReader, errors_placed, load_detector, placed_pieces
from eqsep.detector import Detector
from eqsep.detector.calibration import NO_PROMISE
from eqsep.errors import UserError, counted
from eqsep.files import written_whole
from eqsep.io.dialect import Layout
from eqsep.io.files import no_rows
from eqsep.io.text import BadRows
from eqsep.monitor import Monitor, OnlineSelector
from eqsep.report import watch_report, write_report
from eqsep.tables.reading import Table

_CHANGED, _LOOK = 1, 3  # exit codes
_COLUMNS = 3  # that have moved most are named
_NEXT = "fit again to newer rows if these are normal"


@options.reads_tables
def watch(
    model: Path = options.MODEL,
    rows: list[str] = options.ROWS,
    state: Path | None = opt(None, "FILE", "Continue from this state, and save it again."),
    delta: float | None = opt(
        None, "CHANCE", "Probability of a false report of change (default: 0.01)."
    ),
    random_state: int = options.SEED,
    fdr: float | None = opt(None, "SHARE", "Select rows online; this share may be false."),
    alarms: Path | None = opt(None, "FILE", "Write the selected rows to this CSV file."),
    report: Path | None = options.REPORT,
    ordered: bool = flag("--ordered", "Rows are in time order: use row numbers as times."),
    exit_code: bool = flag(
        "--exit-code", "Exit with 1 if rows have changed, with 3 if something needs a look."
    ),
    *,
    layout: Layout,
    bad_rows: BadRows | None,
) -> None:
    """Check whether rows still look like those that set the model's threshold."""
    options.check_report_out(report, [model, *rows])
    if (fdr is None) != (alarms is None):
        raise UserError("Pass both --fdr and --alarms; eqsep score --only-alarms writes any alarm.")
    for out in (state, alarms):
        if out is not None:
            options.check_model_out(out, [model, *rows])
    with print_warnings():
        detector = load_detector(model, rows=rows)
        monitor = _monitor(detector, state, delta=delta, seed=random_state)
        selection = None if fdr is None else Selection(detector, fdr)
        _watch(monitor, selection, rows, layout=layout, bad_rows=bad_rows, ordered=ordered)
        if state is not None:
            monitor.save(state)
        if selection is not None and alarms is not None:
            selection.write(alarms)
    if report is not None:
        page = watch_report(monitor, title=f"{model.name}, watched", words=in_command)
        write_report(page, report)
    lines = _watched(monitor)
    if selection is not None:
        lines["selected"] = f"{selection}: {alarms}"
    if report is not None:
        lines["report"] = str(report)
    elif "next" in lines:
        lines["next"] += "; --report shows which columns moved most"
    Screen().print_lines(lines)
    code = _LOOK if monitor.recent().told else 0
    code = code if monitor.watched.broken_at is None else _CHANGED
    raise typer.Exit(code if exit_code else 0)


class Selection:
    """Rows that are selected as they come; a share of them may be false alarms."""

    def __init__(self, detector: Detector, fdr: float) -> None:
        self._selector, self._fdr = OnlineSelector(detector, fdr=fdr), fdr
        self._found: list[list[Any]] = []

    def __str__(self) -> str:
        return (
            f"{counted(self._selector.alarms, 'row')}, of which at most {self._fdr:.0%} are normal "
            f"on average, in a memory of {counted(self._selector.memory, 'row')}"
        )

    def take(self, rows: Table, *, before: int) -> None:
        """Decide on the next rows; so many came before."""
        model = self._selector.detector.model_
        chosen = self._selector.decide(model.p_value(rows)).nonzero()[0]
        if not len(chosen):
            return
        found = model.verdicts(rows.take(chosen), threshold=-np.inf)  # each of them has a name
        for i, one in zip(chosen.tolist(), found.each(), strict=True):
            probability = one["kind_probability"]
            named = "" if probability is None else f"{probability:.6g}"
            numbers = (f"{one['score']:.6g}", f"{one['p_value']:.6g}")
            self._found.append([before + i + 1, *numbers, one["kind"], named])

    def write(self, path: Path) -> None:
        """Write the selected rows: their numbers, scores, p-values and kinds."""
        text = StringIO()
        columns = ("row", "score", "p_value", "kind", "kind_probability")
        csv.writer(text, lineterminator="\n").writerows([columns, *self._found])
        with written_whole(path) as file:
            file.write(text.getvalue().encode())


def _monitor(detector: Detector, state: Path | None, *, delta: float | None, seed: int) -> Monitor:
    if state is None or not state.exists():
        delta = 0.01 if delta is None else delta
        return Monitor(detector, delta=delta, random_state=seed)
    monitor = Monitor.load(state, detector)
    if delta not in (None, monitor.delta):
        raise UserError(f"{state} was started with --delta {monitor.delta:g}: leave it out.")
    return monitor


def _watch(
    monitor: Monitor,
    selected: Selection | None,
    paths: list[str],
    *,
    layout: Layout,
    bad_rows: BadRows | None,
    ordered: bool,
) -> None:
    model, done = monitor.detector.model_, 0
    with progress("eqsep watch", "watching") as job:
        reader = RowReader(model, in_runs=model.plan.holdout.grouping is not None)
        if reader.looks_back:
            reader.runs = monitor.runs  # windows go on from the rows of the command before
        columns = reader.columns()
        placed = placed_pieces(model.plan, paths, columns, layout=layout, bad_rows=bad_rows)
        for name, table, before in placed:
            with errors_placed(name, before=before):
                if table.num_rows:
                    rows = reader(table)
                    monitor.update(rows, ordered=ordered)
                    if selected is not None:
                        selected.take(rows, before=done)
            done += table.num_rows
            job.note = counted(done, "row")
    if not done:
        raise no_rows(paths)


def _watched(monitor: Monitor) -> dict[str, str]:
    """Whether the rows have changed, which columns have moved, and what share raises an alarm."""
    watched, limit = monitor.watched, 1 / monitor.delta
    so_far = f"martingale {watched.martingale:.3g}, highest so far {watched.highest:.3g}"
    changed = f"no: {so_far}; a change is reported above {limit:,.0f}"
    if watched.broken_at is not None:
        changed = (
            f"yes, since row {watched.broken_at} at the latest: {so_far}, above {limit:,.0f}; a "
            f"false report {monitor.chance}"
        )
    recent, rate = monitor.recent(), monitor.detector.model_.promise.false_alarm_rate
    promised = f"{rate:.2%} of normal ones are promised"
    if not monitor.detector.model_.rank:
        unit = monitor.detector.model_.plan.holdout.unit
        promised = f"{NO_PROMISE}: too few {unit}s calibrate for {rate:.2%}"
    moved = [f"{shift.column}: {shift.change}" for shift in recent.moved]
    more = len(moved) - _COLUMNS
    moved[_COLUMNS:] = [f"{counted(more, 'more column')}"] * (more > 0)
    lines = {"rows": f"{watched.rows:,} in episode {watched.episode}"}
    grouping = monitor.detector.model_.plan.holdout.grouping
    if grouping is not None and watched.units is not None:
        promised += f", on average over {grouping.unit}s" * bool(monitor.detector.model_.rank)
        lines["rows"] += f", {counted(watched.units, grouping.unit)} ended"
    if monitor.before is not None:
        ended = monitor.before
        lines["new episode"] = (
            f"the model has changed since episode {ended.episode}, of {counted(ended.rows, 'row')} "
            f"(highest martingale {ended.highest:.3g}): its scores differ, so the watch starts "
            f"again"
        )
    lines |= {
        "changed": changed,
        "alarms": f"{watched.alarm_rate:.2%} of the rows, {recent.alarm_rate:.2%} of the last "
        f"{recent.rows:,}; {promised}",
        "moved": recent.unjudged or f"no column in {recent.compared}",
    }
    if moved:
        lines["moved"] = f"in {recent.compared}: {'; '.join(moved)}"
    lines |= {"look": recent.told, "next": _NEXT if watched.broken_at is not None else ""}
    return {name: line for name, line in lines.items() if line}
