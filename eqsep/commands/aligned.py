"""Lines whose values stand below each other, with nothing but spaces between them."""

import re
from collections.abc import Callable, Sequence
from functools import partial

from eqsep.commands.notation import is_number, is_ruler

_AGREED = 0.95  # of the lines, that must have one number of values if nothing else shows them
_GAP = re.compile(r"\s{2,}|\t")
_FEWEST = 3  # lines, below which blanks below each other say nothing
_MANY = 10  # lines, from which on they say more than two spaces between values do
MOST_TITLES = 12
Row = list[str]


def aligned(lines: Sequence[str]) -> Callable[[str], Row] | None:
    """The function from a line to its values, of which some are numbers; None if there is none.

    Examples
    --------
    >>> split = aligned(["name     size", "page 1   2.5", "page 20  13"])
    >>> split("page 3   0.5")
    ['page 3', '0.5']
    """
    lines = [line.expandtabs().rstrip() for line in lines if line.strip()]
    if not lines:
        return None
    by_gaps, by_spaces = _rows(lines, split_at_gaps), _rows(lines, str.split)
    starts = _starts(lines)
    fixed = partial(split_at, starts)
    by_place = _rows(lines, fixed)
    below = len(lines) >= _FEWEST and len(starts) > 1 and _numeric(by_place) > 0
    if len(lines) >= _MANY and len(starts) > 1 and _numeric(by_place) > _numeric(by_gaps) > 0:
        return str.split if _agree(by_spaces, 1.0) else fixed  # one space between two values
    for least in (1.0, _AGREED):
        if _agree(by_gaps, least):
            joined = (value.split() for row in by_gaps[1:] for value in row)
            if _agree(by_spaces, least) and any(
                len(v) > 1 and all(map(is_number, v)) for v in joined
            ):
                return str.split  # numbers that two spaces happen to stand beside
            return split_at_gaps
        if _agree(by_spaces, least):
            return str.split
        if below:
            return fixed
    return None


def aligned_below(lines: Sequence[str]) -> tuple[int, Callable[[str], Row]] | None:
    """The same of lines below titles that a blank line ends, and how many lines these have."""
    for n, line in enumerate(lines[:MOST_TITLES]):
        if not line.strip() and len(lines) > n + _FEWEST:
            split = aligned(lines[n + 1 :])
            if split is not None:
                return sum(bool(title.strip()) for title in lines[:n]), split
    return None


def split_at_gaps(line: str) -> Row:
    """The values of a line between which two spaces or more stand."""
    return _GAP.split(line.strip())


def split_at(starts: tuple[int, ...], line: str) -> Row:
    """The values of a line that begin at these places."""
    line = line.expandtabs().rstrip("\r\n")
    ends = (*starts[1:], max(len(line), starts[-1]))
    return [line[i:j].strip() for i, j in zip((0, *starts[1:]), ends, strict=True)]


def _rows(lines: Sequence[str], split: Callable[[str], Row]) -> list[Row]:
    return [split(line) for line in lines]


def _agree(rows: Sequence[Row], least: float) -> bool:
    """Whether this share of the rows has as many values as the first, and a column has numbers."""
    width = len(rows[0])
    same = sum(len(row) == width for row in rows)
    return width > 1 and same >= least * len(rows) and _numeric(rows) > 0


def _starts(lines: Sequence[str]) -> tuple[int, ...]:
    """Where columns begin: after places that are blank in all lines, under a name."""
    width = max(map(len, lines))
    blank = [all(line[i : i + 1] in ("", " ") for line in lines) for i in range(width)]
    starts = [i for i in range(width) if not blank[i] and (i == 0 or blank[i - 1])]
    ends = [*starts[1:], width]
    return tuple(i for i, j in zip(starts, ends, strict=True) if lines[0][i:j].strip())


def _numeric(rows: Sequence[Row]) -> int:
    """How many columns hold numbers alone below their first value."""
    width = len(rows[0])
    below = [row for row in rows[1:] if len(row) == width and not is_ruler(row)]
    columns = zip(*below, strict=True)
    return sum(any(column) and all(is_number(v) for v in column if v) for column in columns)
