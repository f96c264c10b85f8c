"""`python -m paper`: measure the paper's tables and figures anew, and say which figures hold."""

from pathlib import Path
from typing import Annotated

import typer

from eqsep.cli.console import Screen, print_errors
from eqsep.cli.options import Ray
from paper.cells import OUT

app = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)


@app.command()
def reproduce(  # noqa: PLR0913  the options of a command
    names: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE|FIGURE...", help="Some names, or: all.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="Name all tables and figures.")] = False,
    seeds: Annotated[int | None, typer.Option(help="Repetitions; else the paper's.")] = None,
    quick: Annotated[bool, typer.Option(help="Few seeds, few rows, short trainings.")] = False,
    protocol: Annotated[str, typer.Option(help="paper, corrected or both.")] = "both",
    out: Annotated[Path, typer.Option(help="The folder of results and pages.")] = OUT,
    workers: Annotated[int | None, typer.Option(help="Processes; else one a core.")] = None,
    keep_stale: Annotated[
        bool, typer.Option(help="Keep results of code that has changed; the page counts them.")
    ] = False,
    ray: Ray = None,
) -> None:
    """Measure the paper's tables and figures anew, and say which published figures hold.

    What was measured stays measured, unless the code that it ran through has changed: run it again
    to go on where it ended. Real data is looked for where EQSEP_DATA says.
    """
    from paper import console

    screen = Screen()
    if show_list:
        console.list_names(screen)
        return
    with print_errors():
        plan = console.plan_of(protocol, seeds=seeds, quick=quick)
        executor = console.executor_of(workers, ray)
        sound = console.run_names(
            screen, names or [], plan, out=out, executor=executor, keep_stale=keep_stale
        )
    raise typer.Exit(0 if sound else 1)


if __name__ == "__main__":
    app(prog_name="python -m paper")
