"""`eqsep serve`: a service with a console, its tokens, and the proof that its log is its model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eqsep.commands.console import Screen, counted, errors_told, tell, warnings_told
from eqsep.commands.options import Commands
from eqsep.errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from eqsep.serve.web.server import Serving
    from eqsep.serve.workspace import Workspace

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
        _check_extra()
        from eqsep.serve.web.server import Serving, serve

        asked = Serving(
            _url(data, database), host, port, workers, keep_quiet, tuple(map(str.lower, name or ()))
        )
        with asked.bound() as sock:
            ws = asked.workspace()
            try:
                with warnings_told():
                    added = _added(ws, model, entity)
                token = _first_token(ws, is_shared=database is not None)
            finally:
                ws.close()
            _tell_served(asked, sock.getsockname()[1], token, added)
            serve(asked, sock)


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
        same = True
        ws = _workspace(data, database)
        try:
            for name in ws.ledger.names() if model is None else [model]:
                done = ws.ledger.replay(name)
                told = "the same bits" if done.same_bits else "other bits"
                same &= done.same_bits
                Screen().print(
                    f"{name}: {counted(done.versions, 'version')} made again, {told}; largest "
                    f"difference {done.largest_difference:.1e}",
                    markup=False,
                    soft_wrap=True,
                )
        finally:
            ws.close()
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
        ws = _workspace(data, database)
        try:
            if revoke:
                ws.people.revoke(name, by="eqsep serve token")
                Screen().print(f"The token of {name} is void.", markup=False)
            else:
                typer.echo(ws.people.issue(name, role, by="eqsep serve token"))
        finally:
            ws.close()


def _check_extra() -> None:
    from importlib.util import find_spec

    lacking = [name for name in ("sqlalchemy", "fastapi", "uvicorn") if find_spec(name) is None]
    if lacking:
        told = f"eqsep serve needs {', '.join(lacking)}. Install: pip install 'eqsep[serve]'"
        raise MissingExtraError(told)


def _url(data: Path, database: str | None) -> str:
    if database is not None:
        return database
    data.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{data.resolve() / 'eqsep.db'}"


def _workspace(data: Path, database: str | None) -> "Workspace":
    """The store of a service that was there before."""
    _check_extra()
    from eqsep.serve.workspace import Workspace

    if database is None and not (data / "eqsep.db").is_file():
        raise UserError(f"{data} holds no service: pass --data with the folder of one.")
    return Workspace(_url(data, database))


def _added(ws: "Workspace", model: Path | None, entity: str | None) -> str | None:
    """Add the model if there is none of its name, and say which column names the entity."""
    names = ws.ledger.names()
    if model is None:
        if entity is not None:
            raise UserError("--entity is a column of the rows of MODEL: pass the model too.")
        return None
    name = model.stem
    if name not in names:
        from eqsep.commands.reading import load_detector

        ws.ledger.add(name, load_detector(model), by="eqsep serve")
    if entity is not None:
        ws.ledger.set_settings(name, entity=entity)
    return None if name in names else name


def _first_token(ws: "Workspace", *, is_shared: bool) -> str | None:
    """A token to begin with: a new one at each start, and once where the store is a team's."""
    if is_shared and ws.people.all():
        return None
    return ws.people.issue("owner", "admin", by="eqsep serve")


def _tell_served(asked: "Serving", port: int, token: str | None, added: str | None) -> None:
    host = "127.0.0.1" if asked.host in ("0.0.0.0", "::") else asked.host
    lines = {"console": f"http://{f'[{host}]' if ':' in host else host}:{port}"}
    lines["token"] = token or "as issued; a new one: eqsep serve token NAME --role admin"
    if added is not None:
        lines["model"] = f"{added}, added"
    console = Screen()
    for name, told in lines.items():
        console.print(f"{name:11} {told}", markup=False, soft_wrap=True)
    if not asked.is_local:
        tell(
            f"Warning: {asked.host} can be reached from other machines, and what is sent is not "
            f"encrypted: put a proxy with TLS before it, and name the service with --name HOST.",
            style="yellow",
        )
    console.file.flush()
