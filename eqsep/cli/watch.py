"""The options of `eqsep watch`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from eqsep.cli.console import Screen, in_command, print_warnings, progress
from eqsep.cli.inputs import RunReader, errors_placed, load_detector, pieces_for, reader_of
from eqsep.cli.options import (
    ModelFile,
    Report,
    Rows,
    Seed,
    check_model_out,
    check_report_out,
    reads_tables,
)
from eqsep.detector import Detector
from eqsep.errors import UserError, counted
from eqsep.files import written_whole
from eqsep.io.dialect import Layout
from eqsep.io.files import check_not_read, files_of, no_rows
from eqsep.monitor import Monitor, OnlineSelector
from eqsep.report import watch_report, write_report
from eqsep.tables.reading import Table

_CHANGED, _LOOK = 1, 3  # exit codes


@reads_tables
def watch(
    model: ModelFile,
    rows: Rows,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Go on from this state, and keep it there."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(metavar="CHANCE", help="Of saying wrongly that rows have changed; else 0.01."),
    ] = None,
    random_state: Seed = 0,
    fdr: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Select rows as they come: of these, may be false."),
    ] = None,
    alarms: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the selected rows go, as CSV.")
    ] = None,
    report: Report = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Rows are in time order: row numbers are the times.")
    ] = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code", help="End with 1 where rows have changed, else 3 where to look."
        ),
    ] = False,
    *,
    layout: Layout,
) -> None:
    """Watch rows as they come: are they still as those that set the model's threshold?"""
    check_report_out(report, [model, *rows])
    selection = Selection(fdr, alarms)
    with print_warnings():
        monitor = watch_files(
            model,
            rows,
            state,
            layout=layout,
            begin=(delta, random_state),
            selection=selection,
            ordered=ordered,
        )
    if report is not None:
        page = watch_report(monitor, title=f"{model.name}, watched", words=in_command)
        write_report(page, report)
    console = Screen()
    print_watched(console, monitor)
    selection.print_stderr(console)
    if report is not None:
        console.print(f"{'report':11} {report}", soft_wrap=True, markup=False)
    code = _LOOK if monitor.recent().told else 0
    code = code if monitor.watched.broken_at is None else _CHANGED
    raise typer.Exit(code if exit_code else 0)


_COLUMNS = 3  # that have moved most are named


class Selection:
    """Rows that are selected as they come, where a share of false alarms is asked for."""

    def __init__(self, fdr: float | None, out: Path | None) -> None:
        if (fdr is None) != (out is None):
            raise UserError(
                "--fdr selects rows as they come, and --alarms says where they go: pass both, or "
                "neither."
            )
        self.fdr, self.out = fdr, out
        self._selector: OnlineSelector | None = None
        self._found: list[str] = []

    def begin(self, detector: Detector) -> None:
        """For the rows of this model."""
        if self.fdr is not None:
            self._selector = OnlineSelector(detector, fdr=self.fdr)

    def take(self, rows: Table, *, before: int) -> None:
        """Decide on some more rows, so many after the first."""
        if self._selector is None:
            return
        score = self._selector.detector.score_samples(rows)
        p = self._selector.detector.calibration_.p_value(score)
        for i in self._selector.decide(p).nonzero()[0].tolist():
            self._found.append(f"{before + i + 1},{score[i]:.6g},{p[i]:.6g}\n")

    def write(self) -> None:
        """The rows that were selected: their numbers, scores and p-values."""
        if self.out is not None:
            with written_whole(self.out) as file:
                file.write("".join(["row,score,p_value\n", *self._found]).encode())

    def print_stderr(self, console: Screen) -> None:
        """How many rows were selected, and what is promised of them."""
        if self._selector is not None:
            told = (
                f"{counted(self._selector.alarms, 'row')}, of which at most {self.fdr:.0%} are "
                f"normal on average, in a memory of {counted(self._selector.memory, 'row')}: "
                f"{self.out}"
            )
            console.print(f"{'selected':11} {told}", markup=False, soft_wrap=True)


def watch_files(
    model: Path,
    paths: Sequence[str],
    state: Path | None,
    *,
    layout: Layout,
    begin: tuple[float | None, int],
    selection: Selection,
    ordered: bool = False,
) -> Monitor:
    """Watch the rows of files piece by piece, and keep the state.

    Where there is no state yet, `begin` has the delta and the seed of a new one. Where rows are
    `ordered`, their numbers stand for times that the files lack.
    """
    inputs = files_of(paths)
    if state is not None:
        check_model_out(state)
        check_not_read(state, [model, *inputs])
    detector = load_detector(model, rows=paths)
    delta, seed = begin
    if state is not None and state.exists():
        monitor = Monitor.load(state, detector)
        if delta not in (None, monitor.delta):
            raise UserError(f"{state} was begun with --delta {monitor.delta:g}: leave it out.")
    else:
        monitor = Monitor(detector, delta=0.01 if delta is None else delta, random_state=seed)
    if selection.out is not None:
        check_model_out(selection.out)
        check_not_read(selection.out, [model, *inputs])
    selection.begin(detector)
    done = 0
    with progress("eqsep watch", "watching") as job:
        reader = reader_of(detector.model_)
        if detector.plan_.holdout.grouping is not None or isinstance(reader, RunReader):
            reader = RunReader(detector.model_)
            reader.runs = monitor.runs  # windows go on from the rows of the command before
        for name, table in pieces_for(detector.plan_, inputs, reader.columns(), layout=layout):
            with errors_placed(name, before=done):
                if table.num_rows:
                    rows = reader(table)
                    monitor.update(rows, ordered=ordered)
                    selection.take(rows, before=done)
            done += table.num_rows
            job.note = counted(done, "row")
    if not done:
        raise no_rows(paths)
    if state is not None:
        monitor.save(state)
    selection.write()
    return monitor


def print_watched(console: Screen, monitor: Monitor) -> None:
    """Whether the rows have changed, which columns have moved, and what share raises an alarm."""
    watched, limit = monitor.watched, 1 / monitor.delta
    so_far = f"martingale {watched.martingale:.3g}, at its highest {watched.highest:.3g}"
    if watched.broken_at is None:
        told = f"no: {so_far}; above {limit:,.0f} it is said"
    else:
        told = (
            f"yes, since row {watched.broken_at:,} at the latest: {so_far}, above {limit:,.0f}; "
            f"wrongly said {monitor.chance}"
        )
    recent, promised = monitor.recent(), monitor.detector.false_alarm_rate
    named = recent.moved[:_COLUMNS]
    moved = ", ".join(f"{s.column} {s.standard_errors:+.1f}" for s in named)
    lines = {"rows": f"{watched.rows:,} in episode {watched.episode}"}
    grouping = monitor.detector.plan_.holdout.grouping
    if grouping is not None and watched.units is not None:
        lines["rows"] += f", {counted(watched.units, grouping.unit)} ended"
    if monitor.before is not None:
        ended = monitor.before
        lines["new episode"] = (
            f"the model has changed since episode {ended.episode}, of {counted(ended.rows, 'row')} "
            f"(martingale at its highest {ended.highest:.3g}): its scores are others, and the "
            f"watch begins anew"
        )
    lines |= {
        "changed": told,
        "alarms": f"{watched.alarm_rate:.2%} of the rows, {recent.alarm_rate:.2%} of the last "
        f"{recent.rows:,}; {promised:.2%} of normal ones are promised",
        "moved": f"{moved} (means, in standard errors; by chance up to {recent.far:.1f})"
        if named
        else "no column",
    }
    if recent.told:
        lines["look"] = recent.told
    for name, text in lines.items():
        console.print(f"{name:11} {text}", markup=False, soft_wrap=True)
