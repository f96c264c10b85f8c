"""Two pages of a reproduction beside each other."""

import re
import runpy
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "compare_pages.py"
lines = runpy.run_path(str(TOOL))["lines"]
HEAD = "<tr><th>row</th><th>column</th><th>published</th><th>ours, paper</th></tr>"


def page(*rows, head=HEAD):
    cells = ("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    summary = (
        '<h2>All</h2><table><tr><th>table</th></tr><tr><td>x</td></tr></table><h2 id="t">T</h2>'
    )
    return f"{summary}<table>{head}{''.join(cells)}</table>"


def test_figures_of_both_pages_are_compared_by_their_place():
    old = page(("A", "x", "1", "0.500±0.100"), ("B", "x", "1", "0.7"), ("C", "x", "1", "–"))
    new = page(
        ("left", "A", "x", "1", "0.530±0.100"),
        ("left", "B", "x", "1", "0.700"),
        ("left", "D", "x", "1", "0.1"),
        head=HEAD.replace("<tr>", "<tr><th>more</th>"),
    )
    assert lines(old, new) == ["t: 1 of 2 equal; A x 0.500±0.100 to 0.530±0.100"]
    assert lines(old, old) == ["t: 2 of 2 equal; all are"]


def test_the_page_that_is_kept_can_be_read():
    kept = Path(__file__).parents[1] / "docs" / "_static" / "reproduction.html"
    compared = lines(kept.read_text("utf-8"), kept.read_text("utf-8"))
    (table,) = (line for line in compared if line.startswith("nsl_kdd_full: "))
    equal = re.fullmatch(r"nsl_kdd_full: (\d+) of \1 equal; all are", table)
    assert equal is not None
    assert int(equal[1]) > 100
