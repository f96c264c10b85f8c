"""The options of `eqsep backtest`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eqsep.cli.options import (
    Drop,
    Label,
    Landmarks,
    Names,
    Normal,
    Report,
    Rows,
    Seed,
    input_spec,
    reads_tables,
)
from eqsep.commands.console import Screen, errors_told, warnings_told

if TYPE_CHECKING:
    from eqsep.commands.dialects import Layout


@reads_tables
def run_backtest(  # noqa: PLR0913  the options of a command
    rows: Rows,
    label: Label,
    time: Annotated[
        str, typer.Option(metavar="COLUMN", help="Dates, or numbers that put rows in order.")
    ],
    normal: Normal = None,
    every: Annotated[
        str, typer.Option(metavar="SPAN", help="A period: 1d, 12h; of numbers, so many rows.")
    ] = "1d",
    delay: Annotated[
        str, typer.Option(metavar="SPAN", help="How long after a row its label is known.")
    ] = "7d",
    verdict: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="After its period, a verdict on an alarm, if sooner."),
    ] = None,
    alarms: Annotated[
        int, typer.Option(metavar="N", help="The highest scores of a period that are looked at.")
    ] = 50,
    first: Annotated[
        int, typer.Option(metavar="N", help="The labelled rows that the first model takes.")
    ] = 500,
    refit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Fit anew before each N periods; else never.")
    ] = 0,
    pending: Annotated[
        bool, typer.Option("--pending", help="Rows teach before their label comes, without one.")
    ] = False,
    against: Annotated[
        str,
        typer.Option(metavar="METHODS", help="Retrained each period: random-forest,xgboost; or ''"),
    ] = "random-forest",
    shadow: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Runs beside, and stays as it is.")
    ] = None,
    drop: Drop = None,
    names: Names = None,
    landmarks: Landmarks = None,
    random_state: Seed = 0,
    report: Report = None,
    *,
    layout: "Layout",
) -> None:
    """Replay labelled rows in time: what would have been caught, with labels that come late?"""
    with errors_told():
        from eqsep.commands import replaying, writing
        from eqsep.evaluation import Schedule
        from eqsep.report import write_report

        writing.check_report_out(report, [*rows, *([] if shadow is None else [shadow])])
        spec = input_spec(rows, layout, label=label, normal=normal, drop=drop, names=names)
        settings: dict[str, Any] = {"random_state": random_state}
        settings |= {} if landmarks is None else {"n_landmarks": landmarks}
        rivals = replaying.Rivals(settings, refit, pending, against, shadow)
        schedule = Schedule(every=every, delay=delay, verdict=verdict, alarms=alarms, first=first)
        with warnings_told(), Screen(stderr=True).status("playing back"):
            found = replaying.backtest_files(spec, time, schedule, rivals)
        if report is not None:
            write_report(found, report)
        console = Screen()
        replaying.tell_backtest(console, found)
        if report is not None:
            console.print(f"\nreport: {report}", soft_wrap=True, markup=False)
