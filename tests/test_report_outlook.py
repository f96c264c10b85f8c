"""What a report says of rows to come: the work of alarms, and what changes with time."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from invoking import CliRunner
from report_page import Page

from eqsep.cli import app
from eqsep.evaluation import MeasuredPromise
from eqsep.labels import WITHOUT
from eqsep.report.measured import Workload, workload

N = 400


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of a fit to rows in time, of which the last ones lie elsewhere."""
    folder = tmp_path_factory.mktemp("outlook")
    rng = np.random.default_rng(0)
    kind = np.where(np.arange(N) % 10 == 3, "hot", "normal")
    size = rng.normal(size=N) + 6 * (kind == "hot") - 9 * (np.arange(N) > 0.71 * N)
    days = np.datetime64("2024-01-01T00:00") + np.arange(N) * np.timedelta64(3, "h")
    lines = [f"{day},{s:.3f},{k}" for day, s, k in zip(days, size, kind, strict=True)]
    (folder / "rows.csv").write_text("\n".join(["day,size,kind", *lines]) + "\n")
    told = ("--label", "kind", "--time", "day", "--false-alarm-rate", 0.1)
    out = ("--out", folder / "m.eqsep", "--report", folder / "report.html")
    fast = ("--landmarks", 40, "--bandwidth", 1)
    command = ["fit", folder / "rows.csv", *told, *fast, *out]
    result = CliRunner().invoke(app, list(map(str, command)))
    assert result.exit_code == 0, result.output
    page = Page((folder / "report.html").read_text())
    page.printed = " ".join(result.output.split())
    return page


def said(page, first):
    """The paragraph that begins so."""
    found = (one["text"] for one in page.all("p") if one["text"].startswith(first))
    return " ".join(next(found).split())


def number(text, after):
    return float(text.split(after)[1].split()[0].rstrip("%"))


def test_the_false_share_is_of_all_alarms():
    assert Workload(0.1, 20.0, 5.0).false_share == 0.25
    assert Workload(0.0, 0.0, 0.0).false_share == 0.0


def test_the_work_of_alarms_adds_up(page):
    work = said(page, "The work")
    assert "anomalies of the seen kinds are as common as in the fit, 10.0%" in work
    alarms, false = number(work, "about "), number(work, "rows, and ")
    on_average = number(said(page, "Of the normal rows of "), ", ")
    assert false == pytest.approx(10 * max(on_average, 10) * 0.9, rel=0.02)  # of 900 in a thousand
    assert false < alarms <= round(false) + 100
    commands = [" ".join(one["text"].split()) for one in page.all("code")]
    assert any(one.endswith("--label kind --cost-alarm 5 --cost-miss 500") for one in commands)


def test_rows_of_the_fit_add_up_with_those_left_out_in_between(page):
    rows = dict(page.rows("Rows by kind")[1:])
    names = ("of these, shape the score", "held out, to set the threshold")
    shaping, held = (int(rows[name]) for name in names)
    between = int(rows["left out, too close in time to these"])
    assert shaping + held + between == N
    line = f"divided {shaping} rows shape the score, {held} set the threshold, {between} too near"
    assert f"{line} to these in time are left out" in page.printed
    near = said(page, "These figures come from a copy")
    assert "rows too near to these are in neither." in near  # as each has a label


def test_later_rows_are_measured_by_a_detector_of_earlier_ones(page):
    text = said(page, "Forward in time")
    assert number(text, "learnt only the first ") == pytest.approx(0.7 * N, abs=3)
    assert number(text, "came after, ") > 80
    assert "; at most 10.00% is promised if rows do not change" in text
    assert "Caught of hot: " in text


def test_rows_without_a_label_count_as_normal_in_the_work():
    learnt = SimpleNamespace(
        rate=0.01, promised=True, counts={"normal": 500, WITHOUT: 400, "hot": 100}
    )
    promise = MeasuredPromise(
        rate=0.01, rows=500, alarms=12, low=0.01, high=0.04, rank=2, held_out=199, confidence=0.95
    )
    hot = SimpleNamespace(kind="hot", caught=0.5)
    measured = SimpleNamespace(
        promises=[promise], by_group=None, normal="normal", doubted=False, seen=[hot]
    )
    work = workload(learnt, measured)
    assert work.anomalies == pytest.approx(0.1)
    assert work.alarms == pytest.approx(9 + 50)
    measured.promises = [replace(promise, alarms=60, low=0.09)]  # broken
    assert workload(learnt, measured).false_alarms == pytest.approx(0.12 * 900)
    learnt.promised = False  # then nothing is
    assert workload(learnt, measured) is None
