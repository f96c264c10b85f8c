"""Experiments as data: a cell names what is measured, its result is one JSON, a table reads those.

A cell is a frozen dataclass with a field `table`. What was measured before is not measured again.
"""

import json
import re
from collections.abc import Callable
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


def path_of(cell: Any, out: Path) -> Path:
    """A path that all fields of the cell go into."""
    fields = asdict(cell)
    folder = fields.pop("table")
    words = (re.sub(r"\W+", "_", f"{name}_{value}").strip("_") for name, value in fields.items())
    return out / folder / ("-".join(words) + ".json")
