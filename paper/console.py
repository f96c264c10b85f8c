"""What `python -m paper` does with its options, and what it shows: progress and verdicts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from eqsep.cli.console import progress
from eqsep.distributed.units import spread
from eqsep.errors import UserError
from paper import runner
from paper.archive import ARCHIVE, KEPT, render, verify, write_archive
from paper.cells import Cell
from paper.claims import CLAIMS, NAME
from paper.claims.claim import Told
from paper.comparison import Comparison
from paper.figures import FIGURES
from paper.page import HTML, cells_of, lines_of, report, write_pages
from paper.plan import PROTOCOLS, Plan
from paper.tables import TABLES
from paper.times import Times
from paper.verdicts import WORDS

NAMES = (*TABLES, *FIGURES, NAME)
LOG = "progress.log"  # in the folder of the results: a line for each cell as it ends
INTERRUPTED = 130  # the exit status of a command that Ctrl-C has ended
_DIFFERENCES_SHOWN = 20
_LINES_SHOWN = 60  # of several tables; more are on the page


def list_names(console: Console, plan: Plan, *, out: Path) -> None:
    """Show every table and figure with its name, and the processor time that it takes."""
    sources = [source for source in (out, KEPT) if source.exists()]
    times = Times.of((cell for name in NAMES for cell in cells_of(name, plan)), sources)
    table = _table("name", "what it is", "figures", "time", names=2)
    for name, one in TABLES.items():
        n_figures = str(len(list(one.entries())))
        table.add_row(name, one.published.title, n_figures, times.of_cells(cells_of(name, plan)))
    for name, figure in FIGURES.items():
        table.add_row(name, figure.title, "picture", times.of_cells(cells_of(name, plan)))
    says, n_claims = "Claims of the text that compare figures", str(len(CLAIMS.claims))
    table.add_row(NAME, says, n_claims, times.of_cells(cells_of(NAME, plan)))
    console.print(table)
    console.print(
        "Time: of one processor, as recorded with the results; about, where some cells are not "
        "measured and go by those of their kind; –, where nothing of the kind is recorded. Cells "
        "that several share are measured once.",
        soft_wrap=True,
    )


def chosen(names: Sequence[str]) -> list[str]:
    """The names asked for, "all" among them; refuses what there is not.

    Examples
    --------
    >>> chosen(["thyroid", "logic", "thyroid"])
    ['thyroid', 'logic']
    """
    unknown = [name for name in names if name not in (*NAMES, "all")]
    if unknown or not names:
        word = (
            f"Unknown table or figure {', '.join(unknown)}" if unknown else "Nothing was asked for"
        )
        raise UserError(
            f"{word}: expected 'all' or some of {', '.join(NAMES)}. "
            f"`python -m paper --list` says what they are."
        )
    return list(NAMES) if "all" in names else list(dict.fromkeys(names))


def plan_of(protocol: str, *, seeds: int | None, quick: bool) -> Plan:
    """The plan that the options ask for; "both" is both protocols."""
    protocols = PROTOCOLS if protocol == "both" else (protocol,)
    return Plan(protocols, seeds, quick)


def executor_of(processes: int | None, ray: str | None) -> runner.Executor:
    """How cells are measured: by tasks of a cluster where one is named, else by processes."""
    if ray is None:
        return runner.in_processes(processes)
    if processes is not None:
        raise UserError("--processes counts processes of this machine, and --ray has its own.")
    return partial(_on_ray, address=ray)


def _on_ray(cells: list[Cell], out: Path, *, address: str) -> Iterator[tuple[Cell, str]]:
    """Each cell a task; results come here, where they are kept as they come."""
    if cells:
        measured = partial(runner.result_of, kept=out.resolve() / "kept")
        for cell, result in spread(measured, cells, address=address):
            if isinstance(result, Exception):
                result = {"failed": f"{type(result).__name__}: {result}"}
            yield cell, runner.keep_result(cell, out, result)


def run_names(
    console: Console,
    names: Sequence[str],
    plan: Plan,
    *,
    out: Path,
    executor: runner.Executor | None = None,
    keep_stale: bool = False,
) -> int:
    """Measure what is not measured yet, write the page and show it; the status to exit with.

    After an interruption the page has what is measured by then.
    """
    wanted = chosen(names)
    cells = [cell for name in wanted for cell in cells_of(name, plan)]
    out.mkdir(parents=True, exist_ok=True)
    with progress("python -m paper", "measuring") as job:

        def show(now: runner.Progress) -> None:
            job.advance(now.share - job.done)
            job.note = f"{now.done:,} of {now.total:,} cells"
            with (out / LOG).open("a", encoding="utf-8") as log:
                log.write(_log_line(now))

        job.expect(1.0)
        outcome = runner.run(cells, out, executor=executor, on_progress=show, keep_stale=keep_stale)
    on_page = _on_page(wanted, plan, out)
    archive = write_archive(on_page, plan, out)
    found = replace(report(on_page, plan, out), archive=archive)
    text, page = write_pages(found, out)
    comparisons = [one for one in found.comparisons if one.name in wanted]
    if len(comparisons) > 1:
        console.print(_summary(comparisons, protocol=found.protocol))
        for sentence in found.summary:
            console.print(sentence, soft_wrap=True)
    if sum(len(one.lines) for one in comparisons) <= _LINES_SHOWN or len(comparisons) == 1:
        for comparison in comparisons:
            console.print(_lines(comparison))
    if NAME in wanted:
        console.print(_claims(found.claims))
    console.print(
        f"{outcome.measured} cells measured in {outcome.seconds:.0f} s, {outcome.kept} kept from "
        f"before, {outcome.skipped} skipped, {len(outcome.failed)} failed."
    )
    if outcome.stale:
        done = "kept all the same" if keep_stale else "measured anew"
        console.print(f"Of code that has changed since: {outcome.stale} cells, {done}.")
    for reason in dict.fromkeys(
        line.verdict.reason
        for comparison in comparisons
        for line in comparison.lines
        if line.verdict.word == "skipped"
    ):
        console.print(f"Skipped: {reason}", soft_wrap=True)
    for cell, message in outcome.failed:
        console.print(f"Failed: {cell.study}, {cell.dataset}, {cell.method}: {message}")
    console.print(f"Markdown: {text.resolve()}", soft_wrap=True)
    console.print(f"Page: {page.resolve()}", soft_wrap=True)
    console.print(f"Results: {(out / ARCHIVE).resolve()}", soft_wrap=True)
    if outcome.is_interrupted:
        console.print(
            f"Interrupted: {found.lacking} of {found.planned} cells have not been measured, and "
            "the page says that it is incomplete. Run the same command again to go on.",
            soft_wrap=True,
        )
        return INTERRUPTED
    return 1 if outcome.failed else 0


def verify_archive(console: Console, path: Path) -> int:
    """Show whether the page beside an archive is what its results come to; 1 where it is not."""
    done = verify(path)
    found, page = done.found, path.with_name(HTML)
    n_figures = sum(len(table.lines) for table in found.comparisons)
    console.print(
        f"{n_figures} figures and {len(found.claims)} claims, recomputed from "
        f"{found.planned - found.lacking} results of {path}.",
        soft_wrap=True,
    )
    if not done.differences:
        console.print(f"{page} has the same figures and verdicts.", soft_wrap=True)
        return 0
    for line in done.differences[:_DIFFERENCES_SHOWN]:
        console.print(line, soft_wrap=True, markup=False)
    n_left = len(done.differences) - _DIFFERENCES_SHOWN
    if n_left > 0:
        console.print(f"... and {n_left} more lines.")
    console.print(f"{page} is not what the results come to.", soft_wrap=True)
    return 1


def render_archive(console: Console, path: Path) -> int:
    """Write the page beside an archive again, and show of which code it is now."""
    found = render(path)
    console.print(
        f"{path.with_name(HTML)} is rendered again from {found.planned - found.lacking} results.",
        soft_wrap=True,
    )
    console.print(found.provenance.of_commits, soft_wrap=True)
    return 0


def _log_line(now: runner.Progress) -> str:
    cell, time = now.cell, datetime.now(UTC).isoformat(timespec="seconds")
    size = f"{cell.seeds} seeds, {cell.protocol}" + (", quick" if cell.quick else "")
    return (
        f"{time} {now.done}/{now.total} {now.share:.1%} {cell.study}: {cell.dataset}, "
        f"{cell.method}, {size}: {now.word}\n"
    )


def _on_page(wanted: Sequence[str], plan: Plan, out: Path) -> list[str]:
    """What was asked for, and what the folder has whole from before: the page does not forget."""

    def is_there(name: str) -> bool:
        return all(cell.path(out).exists() for cell in cells_of(name, plan))

    return [name for name in NAMES if name in wanted or is_there(name)]


def _summary(comparisons: Sequence[Comparison], *, protocol: str) -> Table:
    count = partial(Comparison.count, protocol=protocol)
    words = [word for word in WORDS if any(count(one, word) for one in comparisons)]
    table = _table("table", "figures", *words, "by chance")
    for comparison in comparisons:
        counts = (str(count(comparison, word) or "") for word in words)
        by_chance = str(comparison.passed_by_chance or "")
        table.add_row(comparison.name, str(len(comparison.lines)), *counts, by_chance)
    return table


def _lines(comparison: Comparison) -> Table:
    columns = ("published", "paper", "verdict", "corrected", "its verdict")
    table = _table("row", "column", *columns, names=2)
    table.title = comparison.title
    for words in lines_of(comparison):
        table.add_row(*words)
    return table


def _claims(told: Sequence[Told]) -> Table:
    table = _table("claim", "the paper", "ours", "published", names=2)
    table.title = "Claims that compare figures"
    for one in told:
        table.add_row(one.claim.name, one.claim.says, one.verdict.word, one.published.word)
    return table


def _table(*columns: str, names: int = 1) -> Table:
    """An empty table: the first columns hold names, which may be broken, the others numbers.

    It is narrow enough for the names of all tables in a terminal of 80 columns.
    """
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False)
    for i, column in enumerate(columns):
        if i < names:
            table.add_column(column, overflow="fold", min_width=len(column))
        else:
            table.add_column(column.replace(" ", "\n"), justify="right", no_wrap=True)
    return table
