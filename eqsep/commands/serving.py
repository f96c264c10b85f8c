"""`eqsep serve`: a service with a console, its tokens, and the proof that its log is its model."""

from contextlib import closing
from pathlib import Path

import typer

from eqsep.commands.console import Screen, counted, tell, warnings_told
from eqsep.commands.reading import load_detector
from eqsep.errors import MissingExtraError, UserError

try:
    from eqsep.serve.web.server import Serving, serve
    from eqsep.serve.workspace import Workspace
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"eqsep serve needs the package {error.name}. Install: pip install 'eqsep[serve]'"
    ) from error

_BY = "eqsep serve token"


def serve_model(  # noqa: PLR0913  what the options say
    model: Path | None,
    entity: str | None,
    *,
    data: Path,
    database: str | None,
    host: str,
    port: int,
    workers: int,
    keep_quiet: float,
    names: tuple[str, ...],
) -> None:
    """Serve until interrupted, with the model added to the store if there is one."""
    asked = Serving(
        _url(data, database),
        host=host,
        port=port,
        workers=workers,
        keep_quiet=keep_quiet,
        names=names,
    )
    with asked.bound() as sock:
        with closing(asked.workspace()) as ws:
            with warnings_told():
                added = _added(ws, model, entity)
            token = _first_token(ws, is_shared=database is not None)
        _tell_served(asked, sock.getsockname()[1], token, added)
        serve(asked, sock)


def replay_logs(data: Path, database: str | None, model: str | None) -> bool:
    """Do the log of each model, or of one, again; whether all give the bits of the live model."""
    same = True
    with closing(_workspace(data, database)) as ws:
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
    return same


def issue_token(data: Path, database: str | None, name: str, role: str) -> None:
    """Print a new token, which replaces any earlier one of this name."""
    with closing(_workspace(data, database)) as ws:
        typer.echo(ws.people.issue(name, role, by=_BY))


def revoke_token(data: Path, database: str | None, name: str) -> None:
    """Take the token of this name back."""
    with closing(_workspace(data, database)) as ws:
        ws.people.revoke(name, by=_BY)
        Screen().print(f"The token of {name} is void.", markup=False)


def _url(data: Path, database: str | None) -> str:
    if database is not None:
        return database
    data.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{data.resolve() / 'eqsep.db'}"


def _workspace(data: Path, database: str | None) -> Workspace:
    """The store of an existing service."""
    if database is None and not (data / "eqsep.db").is_file():
        raise UserError(f"{data} holds no service: pass --data with the folder of one.")
    return Workspace(_url(data, database))


def _added(ws: Workspace, model: Path | None, entity: str | None) -> str | None:
    """Add the model if there is none of its name, and say which column names the entity."""
    names = ws.ledger.names()
    if model is None:
        if entity is not None:
            raise UserError("--entity is a column of the rows of MODEL: pass the model too.")
        return None
    name = model.stem
    if name not in names:
        ws.ledger.add(name, load_detector(model), by="eqsep serve")
    if entity is not None:
        ws.ledger.set_settings(name, entity=entity)
    return None if name in names else name


def _first_token(ws: Workspace, *, is_shared: bool) -> str | None:
    """A token to begin with: a new one at each start, and once where the store is a team's."""
    if is_shared and ws.people.all():
        return None
    return ws.people.issue("owner", "admin", by="eqsep serve")


def _tell_served(asked: Serving, port: int, token: str | None, added: str | None) -> None:
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
