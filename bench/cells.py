"""Experiments as data: a cell names what is measured, its result is one JSON, a table reads those.

A cell is a frozen dataclass with a field `table`; where methods are compared, with `method` and
`data` too. What was measured before is not measured again.
"""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

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


def path_of(cell: Any, out: Path) -> Path:
    """A path that all fields of the cell go into."""
    fields = asdict(cell)
    folder = fields.pop("table")
    words = (re.sub(r"\W+", "_", f"{name}_{value}").strip("_") for name, value in fields.items())
    return out / folder / ("-".join(words) + ".json")
