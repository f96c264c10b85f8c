"""`eqsep serve` and `eqsep mcp`: the service, its tokens and logs."""

from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from eqsep.cli.console import CommandGroup, Screen, arg, flag, opt, print_stderr, print_warnings
from eqsep.cli.inputs import load_detector
from eqsep.errors import MissingExtraError, UserError, counted

try:
    from eqsep.serve import backups
    from eqsep.serve.ledger import digest
    from eqsep.serve.web.server import Serving, serve
    from eqsep.serve.workspace import DATABASE, Workspace, make_folder
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"eqsep serve needs the package {error.name}. Install: pip install 'eqsep[serve]'"
    ) from error

_RUN = "run"
_BY = "eqsep serve token"
_HERE = "eqsep serve"
_OTHER = "which differs from the file that was added: --take makes it live"


class _Serve(CommandGroup):
    """Commands, with `run` if none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = [_RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Serve)
HERE = Path("eqsep-serve")
_DATA = opt(HERE, "FOLDER", "Where the service keeps its data.")
_DATABASE = opt(None, "URL", "A database for a team: postgresql+psycopg://…")


@app.command(_RUN)
def run(
    model: Path | None = arg(None, "[MODEL]", "A file that eqsep fit wrote; it is added once."),
    data: Path = _DATA,
    database: str | None = _DATABASE,
    host: str = opt("127.0.0.1", None, "Address to listen on; 0.0.0.0 is all interfaces."),
    port: int = opt(8000, None, "Port to listen on; 0 picks any free port.", min=0, max=65535),
    workers: int = opt(1, "N", "Processes that share the store.", min=1, max=64),
    take: bool = flag("--take", "Make MODEL live if its file differs from the one that was added."),
    entity: str | None = opt(
        None, "COLUMN", "Column that identifies a row's card, host or machine."
    ),
    keep_quiet: float = opt(0.05, "SHARE", "Share of rows without an alarm to keep."),
    name: list[str] | None = opt(None, "HOST", "A host name of the service; repeatable."),
) -> None:
    """Run an API that scores rows, and a console where verdicts teach the model."""
    url, names = _url(data, database), tuple(map(str.lower, name or ()))
    asked = Serving(url, host=host, port=port, workers=workers, keep_quiet=keep_quiet, names=names)
    path = data / DATABASE
    if database is None and path.is_file() and path.stat().st_size:  # not the first start
        backups.check(path)
    with asked.bound() as sock:
        with closing(asked.workspace()) as ws:
            with print_warnings():
                live = _live(ws, model, entity, take=take)
            token = None  # a new one at each start, and once where the store is a team's
            if database is None or not ws.people.all():
                token = ws.people.issue("owner", "admin", by=_HERE)
        _print_served(asked, sock.getsockname()[1], token, live)
        serve(asked, sock)


@app.command()
def replay(
    data: Path = _DATA,
    database: str | None = _DATABASE,
    model: str | None = opt(None, "NAME", "Replay only this model (default: all)."),
) -> None:
    """Replay the log of each model from the start, and compare with the live model."""
    same = True
    with closing(_workspace(data, database)) as ws:
        for name in ws.ledger.names() if model is None else [model]:
            done = ws.ledger.replay(name)
            same &= done.same_bits
            Screen().print_line(
                f"{name}: {counted(done.versions, 'version')} replayed, "
                f"{'identical' if done.same_bits else 'different'} bits; largest difference "
                f"{done.largest_difference:.1e}"
            )
    raise typer.Exit(0 if same else 1)


@app.command()
def token(
    name: str = arg(..., "NAME", "Name of a person or a program."),
    role: str = opt("judge", "ROLE", "view, judge (gives verdicts) or admin."),
    days: float | None = opt(None, "N", "Days until the token expires (default: never)."),
    revoke: bool = flag("--revoke", "Revoke the token instead."),
    data: Path = _DATA,
    database: str | None = _DATABASE,
) -> None:
    """Issue a token, shown only once; it replaces an earlier one of this name."""
    with closing(_workspace(data, database)) as ws:
        if revoke:
            ws.people.revoke(name, by=_BY)
            Screen().print_line(f"The token of {name} is revoked.")
        else:
            typer.echo(ws.people.issue(name, role, by=_BY, days=days))


@app.command()
def backup(
    file: Path = arg(..., "FILE", "The backup to write; it must not exist."), data: Path = _DATA
) -> None:
    """Copy the database of a service to a file, running or not."""
    backups.back_up(_database(data), file)
    Screen().print_line(f"{file}: {file.stat().st_size / 1e6:.1f} MB, checked")


@app.command()
def restore(file: Path = arg(..., "FILE", "The backup to restore."), data: Path = _DATA) -> None:
    """Replace the database of a stopped service with a backup."""
    make_folder(data)
    aside = backups.restore(file, data / DATABASE)
    kept = "" if aside is None else f"; the database that was there is now {aside}"
    Screen().print_line(f"{data / DATABASE} is {file} again{kept}")


def mcp(data: Path = _DATA, database: str | None = _DATABASE) -> None:
    """Let an assistant read alarms and propose verdicts (Model Context Protocol)."""
    from eqsep.serve.mcp import server

    with closing(Workspace.in_folder(data) if database is None else Workspace(database)) as ws:
        server(ws).run()


def _url(data: Path, database: str | None) -> str:
    if database is not None:
        return database
    make_folder(data)
    return f"sqlite:///{data.resolve() / DATABASE}"


def _database(data: Path) -> Path:
    if not (data / DATABASE).is_file():
        raise UserError(f"There is no service in {data}: pass its folder as --data.")
    return data / DATABASE


def _workspace(data: Path, database: str | None) -> Workspace:
    if database is None:
        _database(data)
    return Workspace(_url(data, database))


def _live(ws: Workspace, model: Path | None, entity: str | None, *, take: bool) -> list[str]:
    """Add the model if there is none of its name; which version of each model is live, in words."""
    said = {}
    if model is not None:
        name, detector = model.stem, load_detector(model)
        if name not in ws.ledger.names():
            ws.ledger.add(name, detector, by=_HERE)
            said[name] = "added"
        elif digest(detector.model_) != ws.ledger.added(name).digest:
            if take:
                ws.ledger.take(name, detector, by=_HERE)
            said[name] = f"taken from {model}" if take else f"not that of {model}, {_OTHER}"
        if entity is not None:
            ws.ledger.set_settings(name, entity=entity)
    elif entity is not None or take:
        option = "--take" if take else "--entity"
        raise UserError(f"{option} needs MODEL: pass the model too.")
    lives = {name: ws.ledger.live(name).id for name in ws.ledger.names()}
    return [f"{n}, version {v}{f': {said[n]}' if n in said else ''}" for n, v in lives.items()]


def _print_served(asked: Serving, port: int, token: str | None, live: list[str]) -> None:
    host = "127.0.0.1" if asked.host in ("0.0.0.0", "::") else asked.host
    lines = {"console": f"http://{f'[{host}]' if ':' in host else host}:{port}"}
    lines["token"] = token or "as issued; a new one: eqsep serve token NAME --role admin"
    if live:
        lines["model"] = "; ".join(live)
    console = Screen()
    console.print_lines(lines)
    if not asked.is_local:
        print_stderr(
            f"Warning: {asked.host} can be reached from other machines, and what is sent is not "
            f"encrypted: put a TLS proxy in front of it, and name the service with --name HOST.",
            style="yellow",
        )
    console.file.flush()
