"""Experiments as data: a cell names what is measured, its result is one JSON, a table reads those.

A cell is a frozen dataclass with a field `table`; where methods are compared, with `method` and
`data` too. What was measured before is not measured again.
"""

import json
import os
import re
import signal
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from multiprocessing import TimeoutError as OutOfTime
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any
from unittest.mock import patch

from eqsep.files import written_whole

RESULTS = Path(__file__).parents[1] / ".cache" / "bench"


def measured(
    cell: Any, measure: Callable[[Any], dict], *, out: Path = RESULTS, again: bool = False
) -> dict:
    """The cell's fields and what `measure` says of it: from its JSON, or into it."""
    path = path_of(cell, out)
    if again or not path.exists():
        result = asdict(cell) | measure(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as file:
            file.write(json.dumps(result, indent=1).encode() + b"\n")
    return json.loads(path.read_text())


def gathered(
    cells: Iterable[Any],
    measure: Callable[[Any], dict],
    *,
    methods: Mapping[str, Any],
    again: Collection[str] = (),
    out: Path = RESULTS,
) -> list[dict]:
    """The results of all cells that can be had; what cannot is said, method by method.

    Parameters
    ----------
    methods : mapping of str to Method
        The methods that cells name (see peers.py).
    again : collection of str
        Methods that are measured anew.
    """
    results, lacking = [], {}
    for cell in cells:
        path, is_again = path_of(cell, out), cell.method in again
        is_kept = path.exists() and not is_again
        if not is_kept and methods[cell.method].package() is None:
            lacking[cell.method] = f"{methods[cell.method].module} is not installed"
            continue
        try:
            results.append(measured(cell, measure, out=out, again=is_again))
        except (FileNotFoundError, ImportError) as missing:
            lacking[cell.data] = str(missing)
        if not is_kept:
            print(path.stem, file=sys.stderr, flush=True)
    for what, why in lacking.items():
        print(f"{what} is left out. {why}", file=sys.stderr)
    return results


def measure_missing(
    cells: Sequence[Any],
    measure: Callable[[Any], dict],
    *,
    out: Path = RESULTS,
    processes: int = 1,
    deadline: float = float("inf"),
) -> dict[str, str]:
    """Measure cells that have no JSON, in processes of one thread each.

    Parameters
    ----------
    deadline : float
        When the processes are ended, by `time.monotonic`; what they measure then is not kept.

    Returns
    -------
    dict of str to str
        The error of each cell that failed.
    """
    missing = [cell for cell in cells if not path_of(cell, out).exists()]
    failures = {}
    interrupts = (signal.SIGINT, signal.SIG_IGN)  # this process ends the others
    with (
        suppress(KeyboardInterrupt),
        patch.dict(os.environ, OMP_NUM_THREADS="1"),  # which the processes inherit
        get_context("spawn").Pool(processes, signal.signal, interrupts) as pool,
    ):
        done = pool.imap_unordered(partial(_attempt, measure=measure, out=out), missing)
        for i in range(1, len(missing) + 1):
            try:
                name, error = done.next(min(max(deadline - monotonic(), 0), 1e6))
            except OutOfTime:
                print(f"Out of time after {i - 1} of {len(missing)} cells.", file=sys.stderr)
                break
            print(f"{i}/{len(missing)} {name} {error}".rstrip(), file=sys.stderr, flush=True)
            if error:
                failures[name] = error
    return failures


def _attempt(cell: Any, *, measure: Callable[[Any], dict], out: Path) -> tuple[str, str]:
    """The cell's name, and what went wrong: one failure must not end a long run."""
    try:
        measured(cell, measure, out=out)
    except Exception as error:
        return path_of(cell, out).stem, repr(error)
    return path_of(cell, out).stem, ""


def measured_in_processes(
    cells: Sequence[Any],
    measure: Callable[[Any], dict],
    *,
    methods: Mapping[str, Any],
    args: Namespace,
    begin: float,
) -> list[dict]:
    """The results of all cells that can be had, by the options of `add_processes`.

    Parameters
    ----------
    methods : mapping of str to Method
        The methods that cells name (see peers.py).
    begin : float
        When the seconds of the limit begin, by `time.monotonic`.
    """
    if not args.kept:
        lacking = dict(left_out({cell.method: methods[cell.method] for cell in cells}))
        for method, why in lacking.items():
            print(f"{method} is left out. {why}", file=sys.stderr)
        cells = [cell for cell in cells if cell.method not in lacking]
        for cell in cells:
            if cell.method in args.again:
                path_of(cell, args.out).unlink(missing_ok=True)
    return measured_at_once(cells, measure, args=args, begin=begin)


def measured_at_once(
    cells: Sequence[Any],
    measure: Callable[[Any], dict],
    *,
    args: Namespace,
    begin: float,
    again: bool = False,
) -> list[dict]:
    """The same for cells without methods; `again` measures all of them anew."""
    if not args.kept:
        for cell in cells if again else ():
            path_of(cell, args.out).unlink(missing_ok=True)
        failures = measure_missing(
            cells,
            measure,
            out=args.out,
            processes=args.processes,
            deadline=begin + args.limit_seconds,
        )
        for name, error in failures.items():
            print(f"FAILED: {name}: {error}", file=sys.stderr)
    paths = [path_of(cell, args.out) for cell in cells]
    results = [json.loads(path.read_text()) for path in paths if path.exists()]
    if results:
        print(head_of(results, len(cells)), end="\n\n")
    return results


def left_out(methods: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The methods that cannot be measured here, and why."""
    for name, method in methods.items():
        if method.package() is None:
            yield name, f"{method.module} is not installed."
            continue
        try:
            method.build()
        except ImportError as error:
            yield name, str(error)


def head_of(results: Sequence[dict], n_cells: int) -> str:
    """Which commit the results are of, and whether some are missing."""
    commits = sorted({result["commit"] for result in results})
    words = [f"Commit {commits[0]}." if len(commits) == 1 else f"COMMITS DIFFER: {commits}."]
    if len(results) < n_cells:
        words.append(
            f"INCOMPLETE: {len(results):,} of {n_cells:,} cells. A method counts with the "
            "divisions of which it has all tables below. The same command measures the rest."
        )
    return " ".join(words)


def present_commit() -> str:
    """What git calls the version that is measured."""
    asked = ["git", "describe", "--always", "--dirty"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, cwd=Path(__file__).parent)
    except FileNotFoundError:
        return "unknown"
    return answer.stdout.strip() or "unknown"


def parser_of_methods(
    description: str, *, methods: Collection[str], seeds: Sequence[int]
) -> ArgumentParser:
    """The options of a benchmark that measures methods on divisions of tables."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--only", nargs="+", choices=methods, default=list(methods))
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="by default all")
    parser.add_argument(
        "--seeds", "--divisions", nargs="+", type=int, default=seeds, metavar="SEED"
    )
    parser.add_argument("--again", nargs="+", choices=methods, default=[])
    parser.add_argument("--kept", action="store_true", help="measure nothing")
    parser.add_argument("--by-table", action="store_true", help="every table's figures too")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"for results ({RESULTS})")
    return parser


def add_processes(parser: ArgumentParser) -> None:
    """The options of a benchmark that measures in several processes."""
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--commit", default=present_commit(), help="for a copy without git")


def path_of(cell: Any, out: Path) -> Path:
    """A path that all fields of the cell go into."""
    fields = asdict(cell)
    folder = fields.pop("table")
    words = (re.sub(r"\W+", "_", f"{name}_{value}").strip("_") for name, value in fields.items())
    return out / folder / ("-".join(words) + ".json")
