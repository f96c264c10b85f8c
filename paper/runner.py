"""Running cells: on all cores, a process each, one thread each; what is measured stays measured."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path

from eqsep.errors import UserError
from paper.cells import Cell, Result, Skipped, Study, measured_before, write_result
from paper.claims import STUDIES as CLAIM_STUDIES
from paper.dependencies import digest, is_stale, recorded
from paper.figures import STUDIES as FIGURE_STUDIES
from paper.provenance import here
from paper.tables import STUDIES as TABLE_STUDIES

STUDIES: dict[str, Study] = TABLE_STUDIES | FIGURE_STUDIES | CLAIM_STUDIES
# What measures cells, here or elsewhere: from cells and the folder of the results to each cell and
# how it ended (see `measure_cell`), as they end.
Executor = Callable[[list[Cell], Path], Iterator[tuple[Cell, str]]]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Progress:
    """How far a run is: cells done of all, and what share of the work that they are.

    `word` is how the last cell ended (see `measure_cell`).
    """

    cell: Cell
    word: str
    done: int
    total: int
    share: float


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run did.

    Attributes
    ----------
    measured, kept, skipped, stale : int
        Cells measured now, measured before, skipped for want of something, and measured before by
        code that has changed since, whether they were kept or measured anew.
    failed : tuple of (Cell, str)
        Cells that raised an error, and its message.
    seconds : float
    is_interrupted : bool
        Whether it was told to end (Ctrl-C) before all cells were done.
    """

    measured: int
    kept: int
    skipped: int
    stale: int
    failed: tuple[tuple[Cell, str], ...]
    seconds: float
    is_interrupted: bool


def run(
    cells: Iterable[Cell],
    out: Path,
    *,
    processes: int | None = None,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    keep_stale: bool = False,
) -> Outcome:
    """Measure every cell that has no result in `out` yet, or one of code that has changed since.

    Parameters
    ----------
    cells : iterable of Cell
    out : Path
        The folder of the results, one small JSON a cell.
    processes : int, default=None
        How many; as many as there are cores by default. With 1, this process.
    executor : callable, default=None
        What measures the cells, in place of processes of this machine.
    on_progress : callable, default=None
        Called with a `Progress` after each cell.
    keep_stale : bool, default=False
        Whether results stay that are of code that has changed since.
    """
    executor = executor or in_processes(processes)
    begin, wanted = time.monotonic(), list(dict.fromkeys(cells))
    before = {cell: result for cell in wanted if (result := measured_before(cell, out)) is not None}
    stale = {cell for cell, result in before.items() if is_stale(result.get("made", {}))}
    todo = [c for c in wanted if c not in before or (c in stale and not keep_stale)]
    words: list[str] = []
    failed: list[tuple[Cell, str]] = []
    planned, done, is_interrupted = sum(map(_seconds, todo)), 0.0, False
    try:
        for cell, word in executor(todo, out):
            words.append(word)
            if word not in ("measured", "skipped"):
                failed.append((cell, word))
            done += _seconds(cell)
            if on_progress is not None:
                share = done / planned
                on_progress(Progress(cell, word, len(words), len(todo), share))
    except KeyboardInterrupt:
        is_interrupted = True
    return Outcome(
        measured=words.count("measured"),
        kept=len(wanted) - len(todo),
        skipped=words.count("skipped"),
        stale=len(stale),
        failed=tuple(failed),
        seconds=time.monotonic() - begin,
        is_interrupted=is_interrupted,
    )


def measure_cell(cell: Cell, out: Path) -> str:
    """Measure a cell and keep its result: "measured", "skipped", or the message of an error."""
    return keep_result(cell, out, result_of(cell, kept=out / "kept"))


def result_of(cell: Cell, *, kept: Path) -> Result:
    """What measuring a cell gives, as plain data: "values", or "skipped" or "failed" and why.

    `kept` is the folder for what a study keeps from one cell to the next.
    """
    return measured(STUDIES[cell.study], cell, kept=kept)


def measured(study: Study, cell: Cell, *, kept: Path) -> Result:
    """The same by a study that is named."""
    folder = {"kept": kept} if study.keeps else {}
    begin, processor = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings(record=True) as warned, recorded() as names:
            warnings.simplefilter("default")
            values, more = study.measure(cell, **folder)
    except Skipped as reason:
        return {"skipped": str(reason)}
    except Exception as error:  # one cell must not end a run of hours: it is said at the end
        return {"failed": f"{type(error).__name__}: {error}"}
    made = {
        "seconds": round(time.perf_counter() - begin, 2),
        "processor_seconds": round(time.process_time() - processor, 2),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **here(),
        "code": digest(names),
        "names": names,
        "warnings": sorted({str(warning.message) for warning in warned}),
    }
    return {"values": values, "more": more, "made": made}


def keep_result(cell: Cell, out: Path, result: Result) -> str:
    """Write a result, but for that of a cell that failed; how the cell ended, in a word."""
    if "failed" in result:
        return str(result["failed"])
    write_result(cell, out, result)
    return "skipped" if "skipped" in result else "measured"


def _seconds(cell: Cell) -> float:
    return STUDIES[cell.study].seconds(cell)


def in_processes(processes: int | None = None) -> Executor:
    """So many processes, else as many as there are cores; of 1, this one."""
    if processes is not None and processes < 1:
        raise UserError(
            f"processes must be at least 1, got {processes}. Leave it out for all cores."
        )
    n_processes = processes or os.cpu_count() or 1
    return partial(_in_processes, n_processes=n_processes) if n_processes > 1 else _here


def _here(cells: list[Cell], out: Path) -> Iterator[tuple[Cell, str]]:
    """One after the other, the short ones first: a run that is killed has the most of them."""
    for cell in sorted(cells, key=_seconds):
        yield cell, measure_cell(cell, out)


def _in_processes(cells: list[Cell], out: Path, *, n_processes: int) -> Iterator[tuple[Cell, str]]:
    """Side by side, the long ones first: none is left for the end."""
    n_processes, others = min(n_processes, max(len(cells), 1)), set(active_children())
    with (
        _one_thread(),
        ProcessPoolExecutor(
            n_processes, mp_context=get_context("spawn"), initializer=_end_with_parent
        ) as pool,
    ):
        in_order = sorted(cells, key=_seconds, reverse=True)
        cell_of = {pool.submit(measure_cell, cell, out): cell for cell in in_order}
        try:
            for future in as_completed(cell_of):
                yield cell_of[future], _end_of(future)
        except (KeyboardInterrupt, GeneratorExit):  # nobody waits for the cells under way
            for process in set(active_children()) - others:
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end_of(future: "Future[str]") -> str:
    """How a cell ended; all that are under way end with a process that ends."""
    try:
        return future.result()
    except BrokenProcessPool:
        return (
            "a process ended without a word, probably for want of memory. Run again, with fewer "
            "processes (--processes): what is measured is kept."
        )


@contextmanager
def _one_thread() -> Iterator[None]:
    """New processes compute with one thread each: there are as many as cores."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _end_with_parent() -> None:
    """End this worker when the run is killed, and only then: Ctrl-C is for the run to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
