"""How far the measured figures of two pages of `python -m paper` lie apart.

    python tools/compare_pages.py OLD.html NEW.html

By the paper's protocol, table by table: how many figures both pages have, how many are equal to
three digits, and the largest differences of means. Two machines that run the same code differ in
the last bits of a sum, which the training of a network makes larger.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

SHOWN = 3  # of the largest differences of a table


class Place(NamedTuple):
    """Where a figure stands."""

    table: str
    row: str
    column: str


class _Page(HTMLParser):
    """The cells of all rows that have a column "ours, paper", by the place of their figure."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[Place, str] = {}
        self._table, self._head, self._row = "", [""], [""]
        self._cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "h2":
            self._table = dict(attrs).get("id") or ""
        elif tag == "tr":
            self._row = []
        elif tag in ("td", "th"):
            self._cell = []

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._row.append("".join(self._cell or []))
            self._cell = None
            if tag == "th":
                self._head = self._row
        elif tag == "tr" and self._row is not self._head and "ours, paper" in self._head:
            at = dict(zip(self._head, self._row, strict=True))
            self.found[Place(self._table, at["row"], at["column"])] = at["ours, paper"]


def figures(page: str) -> dict[Place, tuple[float, float]]:
    """The means and standard deviations that a page has by the paper's protocol."""
    parser = _Page()
    parser.feed(page)
    measured = {place: text for place, text in parser.found.items() if text != "–"}
    return {
        place: (float(text.partition("±")[0]), float(text.partition("±")[2] or 0))
        for place, text in measured.items()
    }


def lines(old: str, new: str) -> list[str]:
    """A line for each table that both pages have."""
    one, two = figures(old), figures(new)
    shared = [place for place in one if place in two]
    told = []
    for table in dict.fromkeys(place.table for place in shared):
        here = [place for place in shared if place.table == table]
        apart = {place: two[place][0] - one[place][0] for place in here}
        equal = sum(abs(difference) < 5e-4 for difference in apart.values())
        far = sorted(here, key=lambda place: -abs(apart[place]))[:SHOWN]
        words = [
            f"{place.row} {place.column} {one[place][0]:.3f}±{one[place][1]:.3f} to "
            f"{two[place][0]:.3f}±{two[place][1]:.3f}"
            for place in far
            if abs(apart[place]) >= 5e-4
        ]
        told.append(f"{table}: {equal} of {len(here)} equal; {'; '.join(words) or 'all are'}")
    return told


if __name__ == "__main__":
    print(*lines(*(Path(name).read_text("utf-8") for name in sys.argv[1:3])), sep="\n")
