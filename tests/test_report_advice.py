"""What a report says first: what is caught, what is not, what to do; and which columns matter."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from invoking import CliRunner
from report_page import Page

from eqsep import Detector
from eqsep.checks import (
    DoubtedThresholdWarning,
    Finding,
    HighThresholdWarning,
    LeakingColumnWarning,
)
from eqsep.cli import app
from eqsep.detector import ColumnClosedness, Config, End
from eqsep.evaluation import Interval
from eqsep.report import HeldOut, detector_report, html
from eqsep.report.advice import answer
from eqsep.report.measured import measured_on
from eqsep.report.reasons import ColumnVerdict, column_verdicts, that_matter
from eqsep.tables.reading import read_table

RNG = np.random.default_rng(0)
MORE = "Allow more false alarms, if a miss costs more"
CLOSE = (End("below", 1.0, "-9", 0.1), End("above", 1.0, "9", 0.1), End("missing", 1.0))


def closedness(name, ends=CLOSE):
    return ColumnClosedness(name, (), None, np.zeros((0, 3)), 0.5, ends)


def word(ends, *, reads="numbers", values=(3.0, 1.0, 2.0)):
    usual = read_table(pd.DataFrame({"a": np.resize(values, 30)}), name="usual")
    (one,) = column_verdicts([closedness("a", ends)], reads={"a": reads}, usual=usual, alarms=())
    return one.word, one.style


def test_a_column_that_rows_outgrow_within_a_few_ranges_is_a_finding():
    for beyond, outgrown in ((3.0, True), (4.0, False), (None, False)):  # None: any date does
        ends = (CLOSE[0], End("above", 1.0, "9", beyond), CLOSE[2])
        assert (word(ends, reads="dates") == ("later rows", "bad")) is outgrown


def test_a_column_that_rows_outgrow_is_a_finding():
    assert word(CLOSE) == ("close", "good")
    assert word(CLOSE, reads="dates") == ("later rows", "bad")
    assert word(CLOSE, values=np.arange(30.0)) == ("later rows", "bad")
    quiet = (CLOSE[0], End("above", 0.1), CLOSE[2])
    assert word(quiet, reads="dates") == ("one side", "late")  # only earlier rows raise alarms


def test_missing_values_that_alone_raise_no_alarm_are_named():
    assert word((*CLOSE[:2], End("missing", 0.1))) == ("no, where missing", "late")
    assert word((End("below", 0.1), End("above", 0.1), End("missing", 0.1))) == ("no", "bad")
    assert word((End("new name", 0.1), CLOSE[2])) == ("no", "bad")
    late = (CLOSE[0], End("above", 1.0, "90", 4.0), CLOSE[2])
    assert word(late) == ("late", "late")


def test_of_many_columns_ten_matter():
    columns = [ColumnVerdict(closedness(f"c{i}")) for i in range(13)]
    assert that_matter(columns[:12]) == tuple(columns[:12])
    columns[7] = replace(columns[7], weight=0.4)
    columns[9] = replace(columns[9], outgrown="above")
    columns[11] = ColumnVerdict(closedness("c11", (End("above", 0.0),)))
    assert [one.name for one in that_matter(columns)[:3]] == ["c9", "c7", "c11"]
    assert len(that_matter(columns)) == 10


@pytest.fixture(scope="module")
def wide():
    X = RNG.normal(size=(900, 14))
    X[:60, 3] += 9
    X[60:70, 5] += 1
    y = np.array(["leak"] * 60 + ["rare"] * 10 + ["normal"] * 830)
    train = np.arange(900) % 2 == 0
    detector = Detector(
        n_landmarks=60, bandwidth=0.5, false_alarm_rate=0.05, random_state=0, config=Config.fast()
    )
    detector.fit(X[train], y[train])
    counts = {"normal": 415, "leak": 30, "rare": 5}
    return detector, detector_report(detector, HeldOut(X[~train], y[~train]), counts=counts)


@pytest.fixture(scope="module")
def page(wide):
    return Page(html(wide[1]))


def test_the_page_of_a_wide_table_folds_what_matters_less(page):
    shown = [line[0] for line in page.rows("Closedness by column")[1:]]
    folded = [line[0] for line in page.rows("Closedness of the other columns")[1:]]
    assert shown[0] == "x3"  # most of the alarms are for it
    assert (len(shown), len(folded)) == (10, 4)
    assert {*shown, *folded} == {f"x{i}" for i in range(14)}
    assert len(page.all("details")) == 2


def test_the_page_begins_with_what_is_caught_and_what_is_not(wide, page):
    report = wide[1]
    caught = {one.kind: one.caught for one in report.measured.seen}
    assert [one.kind for one in report.answer.caught] == ["leak"]
    assert [one.kind for one in report.answer.few] == ["rare"]  # five rows say nothing of a kind
    assert not (*report.answer.in_part, *report.answer.missed)
    assert page.all("h2")[0]["text"] == "In short"
    few = f"Fewer than 10 held-out rows, too few to tell: rare {5 * caught['rare']:.0f} of 5."
    assert few in [p["text"] for p in page.all("p")]
    assert "Mostly missed" not in page.whole  # as no other kind was measured
    assert "Label more rows of rare" not in steps(wide)
    leak = tuple(one for one in report.measured.seen if one.kind == "leak")
    told = steps(wide, measured=replace(report.measured, seen=leak))
    assert "Label more rows of rare" in told  # five were learnt, and none is measured
    told = steps(wide, measured=replace(report.measured, seen=leak), seen=("7",), counts={"7": 5})
    assert "Label more rows of '7'" in told


def test_a_share_of_few_rows_is_shown_with_its_interval(wide, page):
    by_kind = {one.kind: one for one in wide[1].measured.seen}
    for line in page.rows("Average precision by kind"):
        if line[0] in by_kind:
            share = by_kind[line[0]].recall
            assert (share.total, share.value) == (by_kind[line[0]].rows, by_kind[line[0]].caught)
            assert line[1] == f"{share.value:.1%} [{share.low:.1%}, {share.high:.1%}]"
    detector, report = wide
    some = replace(by_kind["leak"], rows=20, caught=0.95)
    measured = replace(report.measured, seen=(some,))
    told = answer(detector, learnt=report.learnt, measured=measured, columns=())
    few = Page(html(replace(report, measured=measured, answer=told)))
    assert "Caught: leak 95% (19 of 20 rows: 75% to 100%)." in [p["text"] for p in few.all("p")]


def test_numbers_of_rows_add_up(wide, page):
    learnt = wide[1].learnt
    assert learnt.shaping + learnt.held == learnt.rows == 450
    assert learnt.held == len(wide[0].calibration_.scores)
    rows = dict(page.rows("Rows by kind")[1:])
    assert int(rows["of these, shape the score"]) == learnt.shaping


def steps(wide, **changed):
    detector, report = wide
    parts = {name: changed.pop(name, getattr(report, name)) for name in ("measured", "columns")}
    learnt = replace(report.learnt, **{k: v for k, v in changed.items() if k != "findings"})
    told = answer(detector, learnt=learnt, findings=changed.get("findings", ()), **parts)
    return [step.what for step in told.steps]


def test_steps_come_by_gain_and_are_five_at_most(wide):
    leak = Finding(LeakingColumnWarning, "Column 'x3' tells all.", "Leave it.", {"column": "x3"})
    beyond = (replace(wide[1].columns[0], outgrown="above"), *wide[1].columns[1:])
    high = Finding(DoubtedThresholdWarning, "Few score above the threshold.", "Look.")
    look = "Look for unlabelled anomalies"
    missed = tuple(replace(one, caught=0.1) for one in wide[1].measured.seen)
    told = steps(
        wide,
        findings=[high, leak],
        columns=beyond,
        promised=False,
        measured=replace(wide[1].measured, seen=missed),
    )
    first = ["Check for a leak of the label", "Leave out the column x0", look]
    assert told[:4] == [*first, "Add normal rows"]
    assert len(told) == 5
    assert sum(one.rows * one.caught for one in wide[1].measured.seen) > 18  # of 35
    assert look not in steps(wide, findings=[high])


def test_a_higher_rate_is_advised_where_it_catches_much_more(wide):
    (one,) = (one for one in wide[1].measured.seen if one.kind == "rare")
    one = replace(one, caught_by_copy=0.2)
    for gain, advised in ((0.3, True), (0.05, False)):
        better = replace(one, caught=0.2, caught_at={0.05: 0.2 + gain}, rows=40)
        measured = replace(wide[1].measured, seen=(better,))
        told = steps(wide, measured=measured, rate=0.01)
        assert (MORE in told) == advised
    better = replace(one, caught=0.2, caught_at={0.02: 0.4, 0.05: 0.5, 0.1: 0.6}, rows=40)
    measured = replace(wide[1].measured, seen=(better,))
    high = Finding(HighThresholdWarning, "Few score above.", "Allow 0.1.", {"rate": 0.1})
    for findings, rate in (((), 0.02), ([high], 0.1)):  # the lowest, or the one of the warning
        parts = {"measured": measured, "columns": (), "findings": findings}
        learnt = replace(wide[1].learnt, rate=0.01, promised=False, advised_rate=0.05)
        told = answer(wide[0], learnt=learnt, **parts)
        why = {step.what: step.why for step in told.steps}
        assert f"set the false-alarm rate to {rate:g} when" in why[MORE]
        assert "enough for 0.05: add rows" in why["Add normal rows"]  # that can be promised
    few = replace(one, caught=0.2, caught_at={0.05: 0.5}, rows=10)  # three rows may be chance
    told = steps(wide, measured=replace(wide[1].measured, seen=(few,)), rate=0.01)
    assert MORE not in told


def test_a_warning_of_the_fit_comes_before_all_that_is_measured(wide):
    """And "Nothing to fix" is said only of a fit without warnings."""
    detector, report = wide
    high = Finding(HighThresholdWarning, "Few score above.", "Allow 0.1.", {"rate": 0.1})
    learnt = replace(report.learnt, seen=("leak",), counts={})
    parts = {"learnt": learnt, "measured": report.measured, "columns": ()}
    told = answer(detector, **parts, findings=[high])
    assert [(step.what, step.why) for step in told.steps] == [
        ("Act on this warning of the fit", "Few score above. Allow 0.1.")
    ]
    plain = replace(report, answer=answer(detector, **parts), columns=report.columns[:1])
    assert "Nothing to fix" in html(plain)
    assert "Nothing to fix" not in html(replace(plain, warnings=("Look at x3.",)))


def test_kinds_that_are_mostly_missed_are_a_step_where_nothing_else_is(wide):
    """With what a higher rate would catch; "Nothing to fix" stands only without such kinds."""
    detector, report = wide
    (one,) = (one for one in report.measured.seen if one.kind == "rare")
    precision = Interval(0.106, 0.08, 0.15, 0.051)
    for caught, expected in ((0.07, True), (0.25, False)):
        bad = replace(one, kind="5", rows=105, precision=precision, caught=caught)
        bad = replace(bad, caught_by_copy=caught, caught_at={0.01: 0.1, 0.05: 0.16, 0.1: 0.3})
        parts = {"measured": replace(report.measured, seen=(bad,), unseen=()), "columns": ()}
        learnt = replace(report.learnt, rate=0.01, seen=("5",), counts={"5": 352})
        called = {"called": lambda kind: f"class = {kind}"}
        told = answer(detector, learnt=learnt, **parts, **called)
        shown = html(replace(report, answer=told, columns=report.columns[:1]))
        assert ("Nothing to fix" in shown) != expected
        assert [step.what for step in told.steps] == ["Expect misses, or look for other columns"][
            : 1 * expected
        ]
        assert [one.kind for one in (*told.missed, *told.in_part)] == ["5"]
        if expected:
            assert (
                "catches 7% of class = 5 (30% at 10.00%), with an average precision of 0.106 "
                "[0.080, 0.150] (chance 0.051). Look for columns" in told.steps[0].why
            )
            assert "label more" not in told.steps[0].why
            learnt = replace(learnt, counts={"5": 29})
            told = answer(detector, learnt=learnt, **parts)
            assert "from normal ones, or label more of them." in told.steps[0].why
        leak = Finding(LeakingColumnWarning, "Column 'x3' tells all.", "Leave it.")
        told = answer(detector, learnt=learnt, **parts, findings=[leak])
        assert [step.what for step in told.steps] == ["Check for a leak of the label"]


def test_a_higher_rate_comes_with_the_false_alarms_that_were_measured(wide):
    detector, report = wide
    (one,) = (one for one in report.measured.seen if one.kind == "rare")
    (own,) = (one for one in report.measured.promises if one.rate == 0.1)
    one = replace(one, rows=40, caught=0.3, caught_by_copy=0.2, caught_at={0.1: 0.6})
    high = Finding(HighThresholdWarning, "Few score above.", "Allow 0.1.", {"rate": 0.1})
    measured = replace(report.measured, seen=(one,))
    told = answer(
        detector, learnt=report.learnt, measured=measured, columns=(), findings=[high]
    ).steps
    (why,) = (step.why for step in told if step.what == MORE)
    assert f"60% of rare, not 20%, with false alarms on {own.measured:.2%} of normal rows." in why


def test_no_rate_is_advised_by_a_copy_with_a_threshold_of_its_own(wide):
    (one,) = (one for one in wide[1].measured.seen if one.kind == "rare")
    itself = "Test the model itself"
    for as_fitted, rows, advised in ((0.9, 40, itself), (0.4, 15, itself), (0.25, 40, MORE)):
        better = {"caught": 0.2, "caught_at": {0.1: 0.9}, "rows": rows}
        seen = (replace(one, **better, caught_by_copy=as_fitted),)
        measured = replace(wide[1].measured, seen=seen)
        findings = [Finding(HighThresholdWarning, "Few.", "Allow 0.1.", {"rate": 0.1})]
        found = steps(wide, measured=measured, findings=findings)
        assert [step for step in found if step in (itself, MORE)][:1] == [advised]


def test_a_kind_that_is_missed_is_shown_with_the_share_that_is_caught(wide):
    detector, report = wide
    seen = (replace(report.measured.seen[0], kind="yes", rows=59, caught=0.153),)
    measured = replace(report.measured, seen=seen)
    told = answer(detector, learnt=report.learnt, measured=measured, columns=())
    shown = replace(report, measured=measured, answer=told, columns=report.columns[:1])
    text = [p["text"] for p in Page(html(shown)).all("p")]
    assert "Mostly missed: 'yes' (15% caught) (never seen)." in text


def test_kinds_that_the_columns_hardly_show_are_named_with_chance(wide):
    """Only if the whole interval is near chance, and there are rows enough."""
    detector, report = wide
    (one,) = (one for one in report.measured.seen if one.kind == "rare")
    (leak,) = (one for one in report.measured.seen if one.kind == "leak")
    add = "Add columns that show the anomalies"
    near = replace(one, rows=30, precision=Interval(0.038, 0.022, 0.07, 0.019))
    for changed, advised in (
        ({}, True),
        ({"rows": 9}, False),
        ({"precision": Interval(0.038, 0.022, 0.13, 0.019)}, False),  # it may be far from chance
        ({"precision": Interval(0.05, 0.03, 0.07, 0.001)}, False),  # it is, as such rows are rare
    ):
        measured = replace(report.measured, seen=(leak, replace(near, **changed)))
        assert (add in steps(wide, measured=measured)) == advised
        assert add not in steps(wide, measured=replace(measured, doubted=True))
    measured = replace(report.measured, seen=(leak, near))
    told = answer(detector, learnt=report.learnt, measured=measured, columns=())
    why = next(step.why for step in told.steps if step.what == add)
    assert (
        "hardly show rare, with an average precision of 0.038 [0.022, 0.070] (chance 0.019). Add"
        in why
    )
    measured = replace(measured, together={"seen": near})
    told = answer(detector, learnt=report.learnt, measured=measured, columns=())
    assert "all seen kinds together, with an average precision of 0.038" in told.steps[0].why


def test_labels_are_advised_for_unseen_kinds_that_look_normal(wide):
    """More columns are not: a model with labels may well find them in those that there are."""
    _, report = wide
    near = replace(report.measured.seen[0], rows=30, precision=Interval(0.038, 0.022, 0.07, 0.019))
    measured = replace(report.measured, seen=(), unseen=(near,))
    assert "Label some anomalies" in steps(wide, measured=measured)
    assert "Add columns that show the anomalies" not in steps(wide, measured=measured)
    far = replace(near, precision=Interval(0.9, 0.8, 0.95, 0.019))
    for changed in ({"unseen": (far,)}, {"doubted": True}):
        assert "Label some anomalies" not in steps(wide, measured=replace(measured, **changed))


def test_a_fit_weighs_what_it_warns_of(tmp_path):
    n = 400
    is_bad = np.arange(n) % 8 == 0
    rows = {
        "when": pd.date_range("2025-01-01", periods=n, freq="D"),
        "size": RNG.normal(size=n),
        "code": np.where(is_bad, "E", "ok"),
        "kind": np.where(is_bad, "fault", "normal"),
    }
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    words = ["--label", "kind", "--landmarks", "40", "--false-alarm-rate", "0.1"]
    words += ["--out", str(tmp_path / "m"), "--report", str(tmp_path / "r.html")]
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "rows.csv"), *words])
    assert result.exit_code == 0, result.output
    page = Page((tmp_path / "r.html").read_text())
    told = [item["text"] for item in page.all("li") if "." in item["text"]]
    assert told[0].startswith("Check for a leak of the label. Column 'code' alone tells")
    advice = r"Leave out the column when\. From 202\S+ on, at least half of the normal rows "
    assert re.match(advice, told[1])
    assert page.whole.count("alone tells anomalous rows") == 1  # and no second time below


def test_rows_that_are_the_same_are_one_alarm(wide):
    detector, _ = wide
    X = RNG.normal(size=(40, 14))
    X[:5] = X[0] + 9
    X[5, 3] = 40
    kind = np.array(["leak"] * 6 + ["normal"] * 34)
    report = detector_report(detector, HeldOut(X, kind))
    leaks = {one.row: one.alike for one in report.alarms if one.label == "leak"}
    assert leaks == {"row 1": 5, "row 6": 1}
    brief = replace(report, columns=report.columns[:1])  # a picture each
    card = next(a for a in Page(html(brief)).all("article") if "row 1" in a["text"])
    assert "row 1 and 4 rows more, alike" in " ".join(card["text"].split())


def test_what_is_caught_is_counted_at_the_threshold_of_the_model_that_is_used():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + np.where(np.arange(300) < 30, 9, 0)[:, None]
    kind = np.where(np.arange(300) < 30, "far", "normal")
    copy = Detector(config=Config.fast(), random_state=0).fit(X, kind)
    table = read_table(X, name="test")
    for limit, caught in ((copy.threshold_, 1.0), (9.0, 0.0)):
        found = measured_on(copy, table, kind, normal="normal", limit=limit, doubted=False)
        (far,) = found.seen
        assert (far.caught, far.caught_by_copy) == (caught, 1.0)
        assert far.recall.count == 30 * caught
