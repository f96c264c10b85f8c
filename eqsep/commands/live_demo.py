"""`eqsep demo --serve`: the service in a folder, with payments that arrive while one looks."""

import os
import sys
import webbrowser
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

from rich.console import Console

from eqsep.commands.console import Screen
from eqsep.commands.demo import make_folder
from eqsep.demo.arrivals import ENTITY, FRAUDS, arriving, arriving_live, fitted_detector
from eqsep.errors import MissingExtraError, UserError

try:
    from eqsep.serve.web.server import Serving, serve
    from eqsep.serve.workspace import Workspace
except ModuleNotFoundError as error:
    raise MissingExtraError(
        f"eqsep demo --serve needs the package {error.name}: pip install 'eqsep[serve]'."
    ) from error

FOLDER, MODEL, BY = "serve", "payments", "eqsep demo"
_BEFORE, _AT_ONCE = 900, 50  # payments that are there when one comes


def serve_payments(console: Console, out: Path, *, speed: float, port: int) -> None:
    """Serve a detector that knows one kind of fraud, until it is interrupted."""
    if not 0 < speed <= 1_000:
        raise UserError(f"--speed expects up to 1,000 payments a second, got {speed:g}.")
    make_folder(out)
    folder = out / FOLDER
    ws = Workspace.in_folder(folder)
    asked = Serving(str(ws.store.engine.url), port=port)
    with closing(ws), closing(asked.bound()) as listener:
        if MODEL not in ws.ledger.names():
            with Screen(stderr=True).status("learning payments"):
                _fill(ws)
        token = ws.people.issue("demo", "admin", by=BY)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        _tell(console, f"{address}/login#{token}", folder)
        with (
            arriving_live(lambda rows: ws.intake.take(MODEL, rows), speed=speed),
            suppress(KeyboardInterrupt),
        ):
            serve(asked, listener)


def _fill(ws: Workspace) -> None:
    """The model, and the payments of a while ago."""
    ws.ledger.add(MODEL, fitted_detector(), by=BY, settings={"entity": ENTITY})
    rows = [row for row, _ in islice(arriving(random_state=0), _BEFORE)]
    for i in range(0, _BEFORE, _AT_ONCE):
        ws.intake.take(MODEL, rows[i : i + _AT_ONCE])


def _tell(console: Console, link: str, folder: Path) -> None:
    seen, *unseen = FRAUDS
    console.print(
        f"[bold]Card payments[/] arrive now, with {len(FRAUDS)} kinds of fraud: {seen} was seen, "
        f"{', '.join(unseen)} were not."
    )
    console.print(f"Console: {link}", soft_wrap=True, markup=False)
    console.print(f"Data:    {folder} (delete it to begin anew); Ctrl-C ends it.", markup=False)
    if console.is_terminal and _is_desktop():
        webbrowser.open(link)


def _is_desktop() -> bool:
    """Whether there is a screen on which a browser can be opened."""
    has_screen = "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    return has_screen or sys.platform in ("darwin", "win32")
