"""`eqsep demo`: payments with kinds that nobody has seen, or the theory behind it."""

import os
import shlex
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import astuple, replace
from itertools import islice, starmap
from pathlib import Path

import pyarrow as pa

from eqsep.cli.console import Screen, flag, opt, progress, table
from eqsep.demo import run_payments, run_theory
from eqsep.demo.arrivals import ENTITY, FRAUDS, arriving, arriving_live, fitted_detector
from eqsep.demo.payments import SEEN, PaymentsDemo
from eqsep.demo.separation import CirclesResult, Closing, TheoryDemo
from eqsep.errors import MissingExtraError, UserError
from eqsep.io.writing import check_folder, table_writer
from eqsep.plots import Panel, region_figure, save_figure
from eqsep.progress import reported_to
from eqsep.report import Usage, write_report

REPORT, MODEL, ROWS, PICTURE = "report.html", "model.eqsep", "new.csv", "regions.png"
FOLDER, _SERVED, BY = "serve", "payments", "eqsep demo"
_EARLIER_PAYMENTS, _PAYMENTS_PER_REQUEST = 900, 50  # payments that are there when one comes


def demo(
    out: Path = opt(Path("eqsep-demo"), "FOLDER", "Folder for the results."),
    theory: bool = flag("--theory", "Show XOR, circles and closing numbers instead."),
    serve: bool = flag("--serve", "Run the service and its console while payments arrive."),
    speed: float = opt(3.0, "N", "Payments per second, with --serve."),
    port: int = opt(8765, None, "Port for --serve; 0 picks any free port.", min=0, max=65_535),
) -> None:
    """Find unseen kinds of anomaly in built-in data: half a minute, no network."""
    if serve:
        serve_payments(Screen(), out, speed=speed, port=port)
    elif theory:
        show_theory(Screen(), out)
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


def show_theory(console: Screen, out: Path) -> None:
    """Run the demonstration of the theory, print it, and leave a picture in `out`."""
    make_folder(out)
    results = run_theory()
    path = save_figure(region_figure(starmap(Panel, results.panels)), out / PICTURE)
    _print_theory(console, results)
    console.print_line(f"Picture: {path.resolve()}")


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


def _print_theory(console: Screen, results: TheoryDemo) -> None:
    console.print("[bold]XOR by one separator[/]: is the point on the line?")
    columns: tuple[str, ...] = ("x1", "x2", "y", "predicted", "distance to the line")
    corners = ((*map(str, astuple(one)[:4]), f"{one.distance:.3f}") for one in results.xor)
    console.print(table(columns, corners, left=0, wrapped=0, padding=1))
    console.print(
        f"In the same way: {len(results.fitted)} of {len(results.functions)} Boolean functions "
        "of two inputs; the two constant ones by a line that meets no corner.\n"
    )
    console.print(
        "[bold]Circles[/]: normal at radius 1, seen anomalies at 2. Are unseen ones at 0.5 found?\n"
        f"Average precision of chance is {results.prevalence:.2f}. Try a few widths of the kernel:"
    )
    columns = ("average\nprecision", "unseen\nflagged", "false\nalarms", "(1e6, 1e6)\nflagged")
    rows = map(_contender, results.circles)
    console.print(table(("method", "gamma", *columns), rows, wrapped=0, padding=1))
    console.print(
        "[bold]Closing a region[/]: how many separators of a kind does it take, and what is the "
        "chance that k random ones leave no way out?"
    )
    columns = ("separators", "in R^n", "number", "chance k=n", "k=n+1", "k=2n")
    console.print(table(columns, map(_closing, results.closing), wrapped=0, padding=1))


def _contender(one: CirclesResult) -> tuple[str, ...]:
    shares = (f"{one.average_precision:.3f}", f"{one.flagged:.0%}", f"{one.false_alarms:.0%}")
    return (one.method, one.gamma, *shares, "yes" if one.flags_far else "no")


def _closing(row: Closing) -> tuple[str, ...]:
    chances = (f"{chance:.3f}" for chance in (row.at_n, row.at_n_plus_1, row.at_2n))
    return (row.family, f"n={row.n_features}", str(row.number), *chances)


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
