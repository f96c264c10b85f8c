"""`eqsep demo`: payments with kinds that nobody has seen, or the theory behind it."""

import shlex
from collections.abc import Iterable
from dataclasses import replace
from itertools import starmap
from pathlib import Path

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from eqsep import demo
from eqsep.commands.console import Screen
from eqsep.commands.writing import check_folder, table_writer
from eqsep.demo.payments import SEEN, PaymentsDemo
from eqsep.demo.separation import Closing, Contender, Corner, TheoryDemo
from eqsep.errors import UserError
from eqsep.plots import Panel, region_figure, save_figure
from eqsep.report import Usage, write_report

REPORT, MODEL, ROWS, PICTURE = "report.html", "model.eqsep", "new.csv", "regions.png"


def make_folder(out: Path) -> None:
    """The folder of the results, if it can be one."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is no folder: pass the name of one for the results.")
    check_folder(out)
    out.mkdir(exist_ok=True)


def show_payments(console: Console, out: Path) -> None:
    """Run the demonstration, print it, and leave a report, a model and new payments in `out`."""
    make_folder(out)
    with Screen(stderr=True).status("eqsep") as status:
        results = demo.run_payments(on_step=status.update)
    results.detector.save(out / MODEL)
    with table_writer(str(out / ROWS), "csv") as write:
        write(pa.Table.from_pylist(list(results.new.X)))
    usage = Usage(model=str(out / MODEL), rows=str(out / ROWS))
    report = write_report(replace(results.report, usage=usage), out / REPORT)
    _tell_payments(console, results)
    words = shlex.join(["eqsep", "score", str(out / MODEL), str(out / ROWS), "--explain", "2"])
    console.print(f"Go on:  {words}", soft_wrap=True, markup=False)
    console.print(f"Report: {report.resolve().as_uri()}", soft_wrap=True, markup=False)


def show_theory(console: Console, out: Path) -> None:
    """Run the demonstration of the theory, print it, and leave a picture in `out`."""
    make_folder(out)
    results = demo.run_theory()
    path = save_figure(region_figure(starmap(Panel, results.panels)), out / PICTURE)
    _tell_theory(console, results)
    console.print(f"Picture: {path.resolve()}", soft_wrap=True)


def _tell_payments(console: Console, results: PaymentsDemo) -> None:
    console.print(
        f"[bold]Card payments[/]: {len(results.old.kind):,} to learn from, one kind of anomaly "
        f"among them: {SEEN}. {len(results.new.kind):,} new ones with {len(results.unseen)} kinds "
        f"that nobody has seen: {', '.join(results.unseen)}."
    )
    console.print(_contenders(results))
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


def _contenders(results: PaymentsDemo) -> Table:
    table = _table("method", "AP seen", "AP unseen", "caught", "false alarms", "promised")
    for one in results.contenders:
        promised = "–" if one.promised is None else f"{one.promised:.1%}"
        found = (f"{area:.3f}" for area in (one.seen, one.unseen))
        table.add_row(one.method, *found, f"{one.caught:.0%}", f"{one.false_alarms:.1%}", promised)
    table.add_row("chance", *(f"{share:.3f}" for share in results.chance), "", "", "")
    return table


def _tell_theory(console: Console, results: TheoryDemo) -> None:
    console.print("[bold]XOR by one separator[/]: is the point on the line?")
    console.print(_xor_table(results.xor))
    console.print(
        f"In the same way: {len(results.fitted)} of {len(results.functions)} Boolean functions "
        f"that are not constant, and {len(results.constants)} of 2 constant ones, by a line that "
        "meets no corner.\n"
    )
    console.print(
        "[bold]Circles[/]: normal at radius 1, seen anomalies at 2. Are unseen ones at 0.5 found?\n"
        f"Average precision of chance is {results.prevalence:.2f}. Try a few widths of the kernel:"
    )
    console.print(_circles_table(results.circles))
    console.print(
        "[bold]Closing a region[/]: how many separators of a kind does it take, and what is the "
        "chance that k random ones leave no way out?"
    )
    console.print(_closing_table(results.closing))


def _xor_table(corners: Iterable[Corner]) -> Table:
    table = _table("x1", "x2", "y", "predicted", "distance to the line", left=0)
    for corner in corners:
        table.add_row(
            *map(str, (corner.x1, corner.x2, corner.y, corner.predicted)), f"{corner.distance:.3f}"
        )
    return table


def _circles_table(contenders: Iterable[Contender]) -> Table:
    columns = ("average\nprecision", "unseen\nflagged", "false\nalarms", "(1e6, 1e6)\nflagged")
    table = _table("method", "gamma", *columns)
    for one in contenders:
        table.add_row(
            one.method,
            one.gamma,
            f"{one.average_precision:.3f}",
            f"{one.flagged:.0%}",
            f"{one.false_alarms:.0%}",
            "yes" if one.flags_far else "no",
        )
    return table


def _closing_table(rows: Iterable[Closing]) -> Table:
    table = _table("separators", "in R^n", "number", "chance k=n", "k=n+1", "k=2n")
    for row in rows:
        chances = (f"{chance:.3f}" for chance in (row.at_n, row.at_n_plus_1, row.at_2n))
        table.add_row(row.family, f"n={row.n_features}", str(row.number), *chances)
    return table


def _table(*columns: str, left: int = 1) -> Table:
    """An empty table: the first columns flush left, the others flush right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(
            column, justify="left" if i < left else "right", no_wrap=True, vertical="bottom"
        )
    return table
