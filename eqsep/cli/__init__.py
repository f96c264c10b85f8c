"""The command `eqsep`: its options. What the commands do is in `eqsep.commands`.

A command imports its modules of `eqsep.commands` when it runs, so that help needs none of them.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eqsep import __version__
from eqsep.cli import backtest, data, learn, mcp, serve, test, theory, watch
from eqsep.cli.options import (
    Again,
    Bandwidth,
    Commands,
    Drop,
    Form,
    Group,
    Label,
    Landmarks,
    Model,
    ModelOut,
    Names,
    Normal,
    Persist,
    Rate,
    Ray,
    Report,
    Rows,
    Seed,
    SeenInTurn,
    TableOut,
    Time,
    Unlabelled,
    Window,
    input_spec,
    reads_tables,
)
from eqsep.commands.console import Screen, counted, debugging, errors_told, warnings_told
from eqsep.errors import UserError, visible

if TYPE_CHECKING:
    from eqsep.commands.dialects import Layout

app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_show_locals=False)
app.add_typer(theory.app, name="theory", help="Closing numbers, VC dimensions and shattering.")
app.add_typer(data.app, name="data", help="The files of real data sets: what, where, and fetch.")
app.add_typer(serve.app, name="serve", help="A service: an API, and a console to judge alarms.")


def _show_version(wanted: bool) -> None:
    if wanted:
        Screen().print(f"eqsep {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # noqa: ARG001  its callback has shown it
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from: the whole traceback.")
    ] = False,
) -> None:
    """Anomaly detection by equality separation."""
    debugging.set(debug)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results go.")] = Path(
        "eqsep-demo"
    ),
    theory: Annotated[
        bool, typer.Option("--theory", help="XOR, circles and closing numbers instead.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="The service and its console, with payments arriving.")
    ] = False,
    speed: Annotated[
        float, typer.Option(metavar="N", help="Payments that arrive in a second, with --serve.")
    ] = 3.0,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where --serve listens; 0 is any free port.")
    ] = 8765,
) -> None:
    """Find kinds of anomaly that nobody has seen, on built-in data: half a minute, no network."""
    with errors_told():
        if serve:
            from eqsep.commands import live_demo

            live_demo.serve_payments(Screen(), out, speed=speed, port=port)
            return
        from eqsep.commands import demo as command

        show = command.show_theory if theory else command.show_payments
        show(Screen(), out)


@app.command(
    hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def reproduce() -> None:
    """The paper's tables and figures are measured from a clone: python -m paper."""
    with errors_told():
        raise UserError(
            "The paper's tables and figures are measured from a clone of eqsep's repository, where "
            "`python -m paper` takes the names and options that `eqsep reproduce` took."
        )


@app.command()
@reads_tables
def fit(  # noqa: PLR0913  the options of a command
    rows: Rows,
    out: ModelOut,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of labels; without it all are normal."),
    ] = None,
    normal: Normal = None,
    seen: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Learn this kind, and leave rows of others out."),
    ] = None,
    unlabelled: Unlabelled = "auto",
    drop: Drop = None,
    names: Names = None,
    group: Group = None,
    time: Time = None,
    window: Window = None,
    false_alarm_rate: Annotated[
        float, typer.Option(metavar="SHARE", help="Of new normal rows that may raise an alarm.")
    ] = 0.01,
    confidence: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Of models that keep that rate; else it is the mean."),
    ] = None,
    unseen_rate: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Of rows of a seen kind that may be called unseen."),
    ] = 0.05,
    like: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Encode as this model does, to merge the two later."),
    ] = None,
    landmarks: Landmarks = None,
    bandwidth: Bandwidth = None,
    random_state: Seed = 0,
    report: Report = None,
    ray: Ray = None,
    *,
    layout: "Layout",
) -> None:
    """Learn what is normal, and the labelled kinds of anomaly, from the rows of files."""
    with errors_told():
        from eqsep.commands import fitting, reporting, writing

        labels = {"label": label, "normal": normal, "seen": seen}
        columns = {"drop": drop, "names": names, "group": group, "time": time, "window": window}
        spec = input_spec(rows, layout, **labels, **columns)
        writing.check_report_out(report, [*rows, *([] if like is None else [like])], beside=out)
        settings = _settings(landmarks, random_state, unlabelled)
        settings |= {} if bandwidth is None else {"bandwidth": bandwidth}
        settings |= {"false_alarm_rate": false_alarm_rate, "confidence": confidence}
        settings |= {"unseen_rate": unseen_rate}
        with warnings_told() as warned:
            detector, data = fitting.fit_files(spec, out, settings, like=like, ray=ray)
        console = Screen()
        fitting.tell_fitted(console, detector, data.counts, out)
        if report is not None:
            reporting.write_fit_report(report, spec, detector, data, model=out, warnings=warned)
            console.print(f"report      {report}", soft_wrap=True, markup=False)


@app.command()
@reads_tables
def score(  # noqa: PLR0913
    model: Model,
    rows: Rows,
    out: TableOut = "-",
    explain: Annotated[
        int, typer.Option(metavar="N", help="Give each alarm this many reasons.")
    ] = 0,
    only_alarms: Annotated[
        bool, typer.Option("--only-alarms", help="Leave out rows that pass.")
    ] = False,
    most: Annotated[
        int | None,
        typer.Option(metavar="N", help="Only the N highest scores, the highest first."),
    ] = None,
    false_alarm_rate: Rate = None,
    fdr: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Of the alarms that may be false, in all rows at once."),
    ] = None,
    persist: Persist = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Write this column beside the scores; repeatable."),
    ] = None,
    form: Form = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 1 where a row raises an alarm.")
    ] = False,
    ray: Ray = None,
    *,
    layout: "Layout",
) -> None:
    """Score rows, as many as there are: score, p_value, alarm and kind of each."""
    with errors_told():
        from eqsep.commands import outcomes, scoring

        wanted = scoring.Wanted(
            *(most, explain, only_alarms, false_alarm_rate, keep or (), ray, fdr), persist=persist
        )
        with warnings_told():
            outcome = scoring.score_files(model, rows, out, kind=form, layout=layout, wanted=wanted)
        outcomes.tell_outcome(Screen(), outcome, out)
    raise typer.Exit(1 if exit_code and outcome.alarms else 0)


@app.command()
@reads_tables
def explain(  # noqa: PLR0913
    model: Model,
    rows: Rows,
    top: Annotated[int, typer.Option(metavar="N", help="How many columns to name.")] = 5,
    most: Annotated[
        int, typer.Option(metavar="N", help="How many rows: those with the highest scores.")
    ] = 20,
    only_alarms: Annotated[
        bool, typer.Option("--only-alarms", help="Leave out rows that pass.")
    ] = False,
    false_alarm_rate: Rate = None,
    *,
    layout: "Layout",
) -> None:
    """Say why rows have their scores, the highest first: the columns that drive them."""
    with errors_told():
        from eqsep.commands import explaining, scoring

        if top < 1:
            raise UserError(f"--top expects at least 1 reason, got {top}.")
        wanted = scoring.Wanted(most, top, only_alarms, false_alarm_rate)
        with warnings_told():
            for text in explaining.explain_files(model, rows, layout=layout, wanted=wanted):
                typer.echo(visible(text))


@app.command()
def merge(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL", help="Fitted to rows of their own.")
    ],
    out: ModelOut,
    again: Again = False,
) -> None:
    """Put together what several models have learnt; eqsep fit --like makes such models."""
    with errors_told():
        from eqsep.commands import fitting

        with warnings_told():
            detector = fitting.merge_models(models, out, again=again)
        held = counted(len(detector.calibration_.scores), "held-out normal row")
        Screen().print(f"{len(models)} models, {held}: {out}", soft_wrap=True, markup=False)


@app.command()
def info(model: Model) -> None:
    """Say what a model is: columns, kinds, rows, settings, what it promises, who wrote it."""
    with errors_told():
        from eqsep.commands import informing

        informing.tell_info(Screen(), model)


@app.command()
def export(
    model: Model,
    onnx: Annotated[Path, typer.Option(metavar="FILE", help="The ONNX graph to write.")],
) -> None:
    """Write a model as an ONNX graph, from the columns of the table to alarms."""
    with errors_told():
        from eqsep.commands import reading, writing

        writing.check_model_out(onnx)
        reading.check_not_read(onnx, [model])
        reading.load_detector(model).to_onnx(onnx)
        Screen().print(f"ONNX graph: {onnx}", soft_wrap=True, markup=False)


@app.command()
@reads_tables
def evaluate(  # noqa: PLR0913
    rows: Rows,
    label: Label,
    normal: Normal = None,
    seen: SeenInTurn = None,
    unlabelled: Unlabelled = "auto",
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHODS", help="Some of xgboost, random-forest, isolation-forest; repeatable."
        ),
    ] = None,
    drop: Drop = None,
    names: Names = None,
    group: Group = None,
    time: Time = None,
    window: Window = None,
    landmarks: Landmarks = None,
    random_state: Seed = 0,
    report: Report = None,
    *,
    layout: "Layout",
) -> None:
    """Let one kind at a time be the seen one, and measure what is found of the others."""
    with errors_told():
        from eqsep.commands import evaluating, writing
        from eqsep.report import write_report

        columns = {"drop": drop, "names": names, "window": window, "group": group, "time": time}
        spec = input_spec(rows, layout, label=label, normal=normal, **columns)
        writing.check_report_out(report, rows)
        settings = _settings(landmarks, random_state, unlabelled)
        with warnings_told(), Screen(stderr=True).status("reading") as status:
            results = evaluating.evaluate_files(
                spec,
                settings,
                against=",".join(against or ()),
                seen=seen or (),
                on_method=status.update,
            )
        console = Screen()
        evaluating.tell_results(console, results)
        if report is not None:
            write_report(results, report)
            console.print(f"\nreport: {report}", soft_wrap=True, markup=False)


app.command("learn")(learn.run_learn)
app.command("forget")(learn.run_forget)
app.command("suspects")(learn.run_suspects)
app.command("test")(test.run_test)
app.command("backtest")(backtest.run_backtest)
app.command("watch")(watch.run_watch)
app.command("mcp")(mcp.run_mcp)


def _settings(landmarks: int | None, random_state: int, unlabelled: str) -> dict[str, Any]:
    """Parameters of a detector; what is not said is its own to choose."""
    chosen = {} if landmarks is None else {"n_landmarks": landmarks}
    return chosen | {"random_state": random_state, "unlabelled": unlabelled}
