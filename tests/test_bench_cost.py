"""The benchmark of what a row costs: where it stops, and what its picture shows."""

from importlib import import_module
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
ALARMS = """  100,000 rows:     0.03 s,  290.6 ns a row, 3.44 million rows/s, 40,866 alarms
1,000,000 rows:     0.15 s,  151.3 ns a row, 6.61 million rows/s, 406,432 alarms
"""


@pytest.fixture
def cost(monkeypatch):
    """The module, as its script imports it: from its folder."""
    monkeypatch.syspath_prepend(BENCH)
    return import_module("cost")


def test_a_method_ends_before_a_fit_that_would_take_too_long(cost, monkeypatch, capsys):
    """Ten times the rows cost ten times as much each: 0.1 s, 10 s, and 1,000 s."""

    def slow(cell, _):
        return {"rows": cell.rows, "fit": cell.rows / 10, "score": 1.0}

    monkeypatch.setattr(cost, "measured", slow)
    found = cost.costs("LOF", [100_000, 1_000, 10_000])
    assert [one["rows"] for one in found] == [1_000, 10_000]
    assert "10,000" in capsys.readouterr().out


def test_lines_of_a_gpu_are_read_as_printed(cost):
    rows, microseconds = cost.on_a_gpu(ALARMS)
    assert rows == [100_000, 1_000_000]
    assert microseconds == pytest.approx([0.2906, 0.1513])


def test_the_picture_has_a_line_for_each_method(cost, tmp_path):
    (tmp_path / "alarms.txt").write_text(ALARMS)
    found = [{"rows": 1000, "fit": 5.0, "score": 2.0}, {"rows": 10_000, "fit": 3.0, "score": 2.0}]
    figure = cost.picture(dict.fromkeys(cost.NAMES, found), tmp_path / "alarms.txt")
    fitted, scored = figure.axes
    assert [len(ax.lines) for ax in (fitted, scored)] == [len(cost.NAMES), len(cost.NAMES) + 1]
    assert list(fitted.lines[0].get_ydata()) == [5.0, 3.0]
    assert list(scored.lines[-1].get_xdata()) == [100_000, 1_000_000]
