"""The options of `eqsep test`."""

from typing import TYPE_CHECKING, Annotated

import typer

from eqsep.cli.options import (
    Label,
    Model,
    NormalHere,
    Rate,
    Report,
    Rows,
    input_spec,
    reads_tables,
)
from eqsep.commands.console import Screen, errors_told, warnings_told

if TYPE_CHECKING:
    from eqsep.commands.dialects import Layout


@reads_tables
def run_test(  # noqa: PLR0913  the options of a command
    model: Model,
    rows: Rows,
    label: Label,
    normal: NormalHere = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="When: the highest scores of each day, and delays."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The run of each row, for delays; else the model's."),
    ] = None,
    persist: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="Delays of alarms with K of the last N rows of the run; the rest of single ones.",
        ),
    ] = None,
    entity: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Card, host, machine: its rows of one day are one incident."
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(metavar="N", help="How many of the highest scores are looked at.")
    ] = 20,
    cost_alarm: Annotated[
        float | None, typer.Option(metavar="COST", help="Of looking at an alarm, true or false.")
    ] = None,
    cost_miss: Annotated[
        float | None, typer.Option(metavar="COST", help="Of an anomaly that raises no alarm.")
    ] = None,
    false_alarm_rate: Rate = None,
    learnt_too: Annotated[
        bool, typer.Option("--learnt-too", help="Measure even on rows that the model has learnt.")
    ] = False,
    report: Report = None,
    *,
    layout: "Layout",
) -> None:
    """Test a model on labelled rows: what it finds and names, and does it keep its promise?"""
    with errors_told():
        from eqsep.commands import assessing, writing
        from eqsep.report import write_report

        writing.check_report_out(report, [model, *rows])
        spec = input_spec(rows, layout, label=label, normal=normal)
        review = assessing.ReviewSpec(
            *(top, time, entity, cost_alarm, cost_miss), group=group, persist=persist
        )
        with warnings_told():
            found = assessing.assess_files(
                model, spec, review, rate=false_alarm_rate, learnt_too=learnt_too
            )
        if report is not None:
            write_report(found, report)  # before all that is printed, which nobody may read on
        console = Screen()
        assessing.tell_assessment(console, found)
        if report is not None:
            console.print(f"\nreport: {report}", soft_wrap=True, markup=False)
