"""A cell: one method on one data set by one protocol, and the small JSON that holds its result.

What was measured is never measured again, and a result is written whole or not at all: a run that
is killed loses the cells it was working on and nothing else.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from eqsep.errors import UserError
from eqsep.files import written_whole

Result = Mapping[str, Any]
Measured = tuple[dict[str, list[float]], dict[str, Any]]
OUT = Path("eqsep-reproduction")  # where results and pages go, unless another folder is named


@dataclass(frozen=True, order=True)
class Cell:
    """What is measured: a method on a data set, from `seeds` seeds, by a protocol.

    Seeds are 0, 1, ..., seeds - 1. The starts of a network are members of one ensemble, so all
    repetitions of a cell are measured together.

    Examples
    --------
    >>> Cell("circles", "circles", "ES (LL)", seeds=20).path(Path("out")).as_posix()
    'out/full/paper/circles/circles/ES (LL), 20 seeds.json'
    """

    study: str
    dataset: str
    method: str
    protocol: str = "paper"
    seeds: int = 1
    quick: bool = False

    def path(self, out: Path) -> Path:
        """Where its result is kept: another place for every other cell."""
        size = "quick" if self.quick else "full"
        words = (self.study, self.dataset, f"{self.method}, {self.seeds} seeds.json")
        return Path(out, size, self.protocol, *map(_file_name, words))


@dataclass(frozen=True)
class Study:
    """A family of cells that are measured alike.

    Attributes
    ----------
    name : str
    measure : callable
        From a cell to its values, numbers by key with one for each seed, and to what else figures
        draw. Raises `Skipped` where something that it needs is not there. Where the study keeps
        things, it takes the folder to keep them in, too: kept=...
    seconds : callable
        From a cell to roughly how long it takes on one core: long cells start first.
    keeps : bool
        Whether measuring keeps things from one cell to the next, such as embedded images.
    """

    name: str
    measure: Callable[..., Measured]
    seconds: Callable[[Cell], float] = lambda cell: 1.0  # noqa: ARG005
    keeps: bool = False


class Skipped(Exception):
    """A cell that cannot be measured here, with the reason in words."""


def read_result(cell: Cell, out: Path) -> Result | None:
    """What was measured of the cell, or why it was skipped; None where it has not been run."""
    path = cell.path(out)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(
            f"{path} is not a result: expected JSON, got {text[:40]!r}. Remove it and run again."
        ) from error


def write_result(cell: Cell, out: Path, result: Result) -> Path:
    """Write the cell's fields and its result, whole or not at all."""
    return write_text(
        cell.path(out), json.dumps({"cell": asdict(cell)} | dict(result), indent=1) + "\n"
    )


def write_text(path: Path, text: str) -> Path:
    """Write `text` to `path`, whole or not at all, with the folders on the way to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(text.encode())
    return path


def measured_before(cell: Cell, out: Path) -> Result | None:
    """The result, but for a skipped cell: that is tried again, as what it lacked may be there."""
    result = read_result(cell, out)
    return None if result is None or "skipped" in result else result


def _file_name(words: str) -> str:
    """`words` as the name of a file on any system, other words under another name."""
    return quote(words, safe=" ,=()")


class Results:
    """A folder of results, each read once: all that rendering looks at.

    `commit` is that of the code that a page was made by, where that is not this one.

    Examples
    --------
    >>> Results(Path("/nowhere")).of(Cell("circles", "circles", "DT")) is None
    True
    """

    def __init__(self, out: Path, *, commit: str = "") -> None:
        self.out, self.commit = out, commit
        self._read: dict[Cell, Result | None] = {}

    def of(self, cell: Cell) -> Result | None:
        """The result of a cell; None where it has not been run."""
        if cell not in self._read:
            self._read[cell] = read_result(cell, self.out)
        return self._read[cell]

    def made(self, cells: Iterable[Cell] | None = None) -> list[Mapping[str, Any]]:
        """What measured results say of their making: those of the cells, or all that were read."""
        found = self._read.values() if cells is None else map(self.of, cells)
        return [result["made"] for result in found if result and "made" in result]


class Seeds(NamedTuple):
    """The seed that draws the rows, and another one that starts the model.

    The synthetic problems draw a standard normal hyperplane before their rows. A model that starts
    from a standard normal draw of the same seed would start from that very hyperplane.
    """

    data: int
    model: int


def seeds_of(seed: int) -> Seeds:
    """Both seeds of a repetition.

    Examples
    --------
    >>> first, second = seeds_of(0), seeds_of(1)
    >>> len({*first, *second})
    4
    """
    return Seeds(*(int(word) for word in np.random.SeedSequence(seed).generate_state(2)))
