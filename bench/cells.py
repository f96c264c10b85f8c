"""Experiments as data: a cell names what is measured, its result is one JSON, a table reads those.

A cell is a frozen dataclass with a field `table`; where methods are compared, with `method` and
`data` too. What was measured before is not measured again.
"""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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


def path_of(cell: Any, out: Path) -> Path:
    """A path that all fields of the cell go into."""
    fields = asdict(cell)
    folder = fields.pop("table")
    words = (re.sub(r"\W+", "_", f"{name}_{value}").strip("_") for name, value in fields.items())
    return out / folder / ("-".join(words) + ".json")
