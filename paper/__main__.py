"""`python -m paper`: measure the paper's tables and figures anew, and say which figures hold."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from eqsep.cli.console import Screen, print_errors
from eqsep.cli.options import RAY
from eqsep.errors import UserError
from paper.cells import OUT

app = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)


@app.command()
def reproduce(  # noqa: PLR0913  the options of a command
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE|FIGURE... | verify [ARCHIVE] | render [ARCHIVE]",
            help="Some names, or: all. verify: recompute a page from the archive beside it, and "
            "compare. render: write that page again by the code as it is now.",
        ),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="Name all tables and figures, with the time they take.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(help="Repetitions; else ours by study.")] = None,
    quick: Annotated[bool, typer.Option(help="Few seeds, few rows, short trainings.")] = False,
    protocol: Annotated[str, typer.Option(help="paper, corrected or both.")] = "both",
    out: Annotated[Path, typer.Option(help="The folder of results and pages.")] = OUT,
    processes: Annotated[int | None, typer.Option(help="How many; else one a core.")] = None,
    keep_stale: Annotated[
        bool, typer.Option(help="Keep results of code that has changed; the page counts them.")
    ] = False,
    ray: str | None = RAY,
) -> None:
    """Measure the paper's tables and figures anew, and say which published figures hold.

    What was measured stays measured, unless the code that it ran through has changed: run it again
    to go on where it ended. Ctrl-C leaves a page of what is there. Real data is looked for where
    EQSEP_DATA says.
    """
    from paper import console

    screen = Screen()
    with print_errors():
        plan = console.plan_of(protocol, seeds=seeds, quick=quick)
        if show_list:
            console.list_names(screen, plan, out=out)
            return
        if names and names[0] in ("verify", "render"):
            do = console.verify_archive if names[0] == "verify" else console.render_archive
            raise typer.Exit(do(screen, _archive_of(names[1:], to=names[0])))
        executor = console.executor_of(processes, ray)
        status = console.run_names(
            screen, names or [], plan, out=out, executor=executor, keep_stale=keep_stale
        )
    raise typer.Exit(status)


def _archive_of(words: list[str], *, to: str) -> Path:
    """The archive that is named, or that of the page in the docs."""
    from paper.archive import KEPT

    if len(words) > 1:
        raise UserError(f"{to} takes one archive, got {', '.join(words)}.")
    return Path(words[0]) if words else KEPT


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to end in order, as by Ctrl-C
    app(prog_name="python -m paper")
