"""`eqsep demo`: payments with kinds that nobody has seen."""

import os
import shlex
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pyarrow as pa

from eqsep.cli.console import Screen, flag, opt, progress, table
from eqsep.demo import run_payments
from eqsep.demo.arrivals import ENTITY, FRAUDS, arriving, arriving_live, fitted_detector
from eqsep.demo.payments import SEEN, PaymentsDemo
from eqsep.errors import MissingExtraError, UserError
from eqsep.io.writing import check_folder, table_writer
from eqsep.progress import reported_to
from eqsep.report import Usage, write_report

REPORT, MODEL, ROWS = "report.html", "model.eqsep", "new.csv"
FOLDER, _SERVED, BY = "serve", "payments", "eqsep demo"
_EARLIER_PAYMENTS, _PAYMENTS_PER_REQUEST = 900, 50  # payments that are there when one comes


def demo(
    out: Path = opt(Path("eqsep-demo"), "FOLDER", "Folder for the results."),
    serve: bool = flag("--serve", "Run the service and its console while payments arrive."),
    speed: float = opt(3.0, "N", "Payments per second, with --serve."),
    port: int = opt(8765, None, "Port for --serve; 0 picks any free port.", min=0, max=65_535),
) -> None:
    """Find unseen kinds of anomaly in built-in data: half a minute, no network."""
    if serve:
        serve_payments(Screen(), out, speed=speed, port=port)
    else:
        show_payments(Screen(), out)


def make_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is not a folder: pass the name of one for the results.")
    check_folder(out)
    out.mkdir(exist_ok=True)


def show_payments(console: Screen, out: Path) -> None:
    """Run the demonstration, print it, and leave a report, a model and new payments in `out`."""
    make_folder(out)
    with progress("eqsep demo", "eqsep") as job, reported_to(None):
        results = run_payments(on_step=job.phase)
    results.detector.save(out / MODEL)
    with table_writer(str(out / ROWS), "csv") as write:
        write(pa.Table.from_pylist(list(results.new.X)))
    usage = Usage(model=str(out / MODEL), rows=str(out / ROWS))
    report = write_report(replace(results.report, usage=usage), out / REPORT)
    _print_payments(console, results)
    words = shlex.join(["eqsep", "score", str(out / MODEL), str(out / ROWS), "--explain", "2"])
    console.print_line(f"Go on:  {words}")
    console.print_line(f"Report: {report.resolve().as_uri()}")


def _print_payments(console: Screen, results: PaymentsDemo) -> None:
    console.print(
        f"[bold]Card payments[/]: {len(results.old.kind):,} to learn from, one kind of anomaly "
        f"among them: {SEEN}. {len(results.new.kind):,} new ones with {len(results.unseen)} kinds "
        f"that nobody has seen: {', '.join(results.unseen)}."
    )
    columns = ("method", "AP seen", "AP unseen", "caught", "false alarms", "promised")
    console.print(table(columns, _contenders(results), wrapped=0, padding=1))
    console.print(
        f"AP: average precision, of the seen kind and of the {len(results.unseen)} unseen ones. "
        "Caught: the share of unseen kinds that raises an alarm; false alarms: of normal payments, "
        "and what was promised.\n"
    )
    console.print("[bold]Why[/] some payments of unseen kinds raise an alarm:")
    for alarm in results.alarms:
        lines = str(alarm.explanation).splitlines()[1:4]
        console.print(f"{alarm.row} ({alarm.label}), score {alarm.score:.3f}")
        console.print("\n".join(lines), markup=False)
    console.print()


def _contenders(results: PaymentsDemo) -> Iterator[tuple[str, ...]]:
    for one in results.contenders:
        promised = "–" if one.promised is None else f"{one.promised:.1%}"
        found = (f"{area:.3f}" for area in (one.seen, one.unseen))
        yield one.method, *found, f"{one.caught:.0%}", f"{one.false_alarms:.1%}", promised
    yield "chance", *(f"{share:.3f}" for share in results.chance), "", "", ""


def serve_payments(console: Screen, out: Path, *, speed: float, port: int) -> None:
    """Serve a detector that knows one kind of fraud, until it is interrupted."""
    try:
        from eqsep.serve.web.server import Serving, serve
        from eqsep.serve.workspace import Workspace
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"eqsep demo --serve needs the package {error.name}: pip install 'eqsep[serve]'."
        ) from error
    if not 0 < speed <= 1_000:
        raise UserError(f"--speed expects up to 1,000 payments a second, got {speed:g}.")
    make_folder(out)
    folder = out / FOLDER
    ws = Workspace.in_folder(folder)
    asked = Serving(str(ws.store.engine.url), port=port)
    with closing(ws), closing(asked.bound()) as listener:
        if _SERVED not in ws.ledger.names():
            with progress("eqsep demo", "learning payments"), reported_to(None):
                ws.ledger.add(_SERVED, fitted_detector(), by=BY, settings={"entity": ENTITY})
                rows = [row for row, _ in islice(arriving(random_state=0), _EARLIER_PAYMENTS)]
                for i in range(
                    0, _EARLIER_PAYMENTS, _PAYMENTS_PER_REQUEST
                ):  # the payments of a while ago
                    ws.intake.take(_SERVED, rows[i : i + _PAYMENTS_PER_REQUEST])
        token = ws.people.issue("demo", "admin", by=BY)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        _print_address(console, f"{address}/login#{token}", folder)
        with (
            arriving_live(lambda rows: ws.intake.take(_SERVED, rows), speed=speed),
            suppress(KeyboardInterrupt),
        ):
            serve(asked, listener)


def _print_address(console: Screen, link: str, folder: Path) -> None:
    seen, *unseen = FRAUDS
    console.print(
        f"[bold]Card payments[/] arrive now, with {len(FRAUDS)} kinds of fraud: {seen} was seen, "
        f"{', '.join(unseen)} were not."
    )
    console.print_line(f"Console: {link}")
    console.print_line(f"Data:    {folder} (delete it to start again); Ctrl-C ends it.")
    has_screen = "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if console.is_terminal and (has_screen or sys.platform in ("darwin", "win32")):
        webbrowser.open(link)
