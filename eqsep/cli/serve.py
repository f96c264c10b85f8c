"""The options of `eqsep serve`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from eqsep.cli.options import Commands
from eqsep.commands.console import errors_told

_RUN = "run"


class _Serve(Commands):
    """Commands of which one is meant where none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = [_RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Serve)
Data = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Where the service keeps what it is told.")
]
Database = Annotated[
    str | None,
    typer.Option(metavar="URL", help="A database for a team: postgresql+psycopg://…"),
]
HERE = Path("eqsep-serve")


@app.command(_RUN)
def run(  # noqa: PLR0913  the options of a command
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="A file that eqsep fit wrote: it is added once."),
    ] = None,
    data: Data = HERE,
    database: Database = None,
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 is everywhere.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any that is free.")] = 8000,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Processes that share the store.")
    ] = 1,
    entity: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="That says whose a row is: a card, a host, a machine."),
    ] = None,
    keep_quiet: Annotated[
        float, typer.Option(metavar="SHARE", help="Of rows without an alarm that are kept.")
    ] = 0.05,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A name that the service is called by; repeatable."),
    ] = None,
) -> None:
    """Serve: an API that scores rows, and a console in which verdicts teach the model."""
    with errors_told():
        from eqsep.commands import serving

        serving.serve_model(
            model,
            entity,
            data=data,
            database=database,
            host=host,
            port=port,
            workers=workers,
            keep_quiet=keep_quiet,
            names=tuple(map(str.lower, name or ())),
        )


@app.command()
def replay(
    data: Data = HERE,
    database: Database = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="This model alone; else all.")
    ] = None,
) -> None:
    """Do the log of each model again from its beginning: is it the model that is live?"""
    with errors_told():
        from eqsep.commands import serving

        same = serving.replay_logs(data, database, model)
    raise typer.Exit(0 if same else 1)


@app.command()
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of a person or a program.")],
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="view, judge (gives verdicts) or admin.")
    ] = "judge",
    revoke: Annotated[bool, typer.Option("--revoke", help="Take the token back instead.")] = False,
    data: Data = HERE,
    database: Database = None,
) -> None:
    """Issue a token, in place of the one that this name had; it is shown this once."""
    with errors_told():
        from eqsep.commands import serving

        if revoke:
            serving.revoke_token(data, database, name)
        else:
            serving.issue_token(data, database, name, role)
