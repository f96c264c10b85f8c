"""The options of `eqsep watch`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eqsep.cli.options import Model, Report, Rows, Seed, reads_tables
from eqsep.commands.console import Screen, errors_told, warnings_told

if TYPE_CHECKING:
    from eqsep.commands.dialects import Layout

_CHANGED, _LOOK = 1, 3  # exit codes


@reads_tables
def run_watch(  # noqa: PLR0913  the options of a command
    model: Model,
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
    layout: "Layout",
) -> None:
    """Watch rows as they come: are they still as those that set the model's threshold?"""
    with errors_told():
        from eqsep.commands import watching, writing
        from eqsep.commands.wording import in_command
        from eqsep.report import watch_report, write_report

        writing.check_report_out(report, [model, *rows])
        selection = watching.Selection(fdr, alarms)
        with warnings_told():
            monitor = watching.watch_files(
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
        watching.tell_watched(console, monitor)
        selection.tell(console)
        if report is not None:
            console.print(f"{'report':11} {report}", soft_wrap=True, markup=False)
        code = _LOOK if monitor.recent().told else 0
        code = code if monitor.watched.broken_at is None else _CHANGED
    raise typer.Exit(code if exit_code else 0)
