"""The names that alarms are given, counted by hand, and whether "unseen" is said as promised."""

import re
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest

from eqsep.cli import app
from eqsep.cli.console import Screen
from eqsep.cli.evaluate import _print_names
from eqsep.cli.test import name_lines, print_assessment
from eqsep.detector import Config, Detector
from eqsep.detector.model import Verdicts
from eqsep.detector.namer import KindSets, kind_text
from eqsep.evaluation import NamesTried, Reliability
from eqsep.evaluation.names import names_given, names_on, try_names
from eqsep.persistence import load_model
from eqsep.report.assessments import assessment_report
from eqsep.report.page import _environment, html
from eqsep.tables.reading import read_table

KINDS = {"belt slip": (7.0, 0.0), "pump wear": (7.6, 0.4), "clogged": (0.0, 9.0), "rare": (-9.0, 0)}


def rows_of(seed, counts):
    rng = np.random.default_rng(seed)
    centres = {"normal": (0.0, 0.0), "ghost": (-9.0, -9.0)} | KINDS
    X = np.vstack([rng.normal(centres[k], 0.7, size=(n, 2)) for k, n in counts.items()])
    return X, np.repeat(list(counts), list(counts.values()))


@pytest.fixture(scope="module")
def report():
    detector = Detector(
        n_landmarks=60, bandwidth=1.0, false_alarm_rate=0.05, random_state=0, config=Config.fast()
    )
    counts = {"normal": 400, "belt slip": 60, "pump wear": 60, "clogged": 60, "rare": 5}
    detector.fit(*rows_of(0, counts))
    return assessment_report(detector, *rows_of(1, dict.fromkeys(counts, 40) | {"ghost": 30}))


def counted(kind, given, *, sets=None, **fields):
    """Names counted from what a model with the kinds pump and valve gives rows."""
    kind, given = np.array(kind), np.array(given, dtype=object)
    verdicts = Verdicts(
        score=np.array(fields.get("score", np.ones(len(kind)))),
        p_value=np.ones(len(kind)),
        alarm=given != "normal",
        kind=given,
        kind_probability=np.where(given == "normal", np.nan, 0.9),
    )
    model = SimpleNamespace(
        kinds=("pump", "valve"),
        threshold=1.5,
        promise=SimpleNamespace(unseen_rate=0.05),
        evidence=SimpleNamespace(kinds=SimpleNamespace(groups=fields.get("groups", ()))),
        plan=SimpleNamespace(holdout=SimpleNamespace(grouping=SimpleNamespace(unit="time block"))),
        namer=SimpleNamespace(judges=fields.get("judges", judges_of(99))),
    )
    names = tuple((name,) for name in given) if sets is None else tuple(sets)
    sets = KindSets(names, fields.get("without_promise", ()))
    return names_given(model, kind, verdicts, sets, normal="normal")


def judges_of(n):
    return SimpleNamespace(all_ranks=SimpleNamespace(weight=np.ones(n)))


def names(n_unseen, **fields):
    given = ["unseen"] * n_unseen + ["normal"] * 20 + ["pump"] * (380 - n_unseen)
    return counted(np.repeat(["pump", "valve"], 200), given, **fields)


def promise(n_unseen, **fields):
    return names(n_unseen, **fields).promise


def test_names_are_counted_by_hand():
    kind = ["pump", "pump", "pump", "valve", "valve", "leak", "leak", "normal"]
    given = ["pump", "valve", "unseen", "valve", "normal", "unseen", "pump", "unseen"]
    sets = [("pump",), ("valve", "pump"), ("unseen", "pump"), ("valve",), ()]
    names = counted(kind, given, sets=[*sets, ("unseen", "valve"), ("pump",), ("unseen", "pump")])
    assert (names.right.count, names.right.total) == (2, 3)
    assert (names.false.count, names.false.total) == (0, 4)
    assert (names.called_unseen.count, names.called_unseen.total) == (1, 5)
    assert (names.power.count, names.power.total) == (1, 2)
    assert (names.sets.covered.count, names.sets.covered.total) == (4, 4)
    assert names.sets.size == 5 / 4
    assert names.reliability.points == (pytest.approx((0.9, 2 / 3, 3)),)
    by_kind = {one.kind: (one.alarms, one.right, one.other, one.unseen) for one in names.kinds}
    assert by_kind["pump"] == (3, 1, 1, 1)
    assert by_kind["leak"] == (2, 0, 1, 1)


def test_false_alarms_with_the_name_of_a_kind_are_counted_and_said():
    """No probability of a name counts them: 3 of 5 alarms called "pump" are normal rows."""
    kind, given = ["pump"] * 2 + ["normal"] * 5, ["pump"] * 5 + ["unseen", "normal"]
    names = counted(kind, given)
    assert (names.right.count, names.right.total) == (2, 2)
    assert (names.false.count, names.false.total) == (3, 5)
    told = name_lines(names)["named falsely"]
    assert told.startswith("60.00% [")
    assert told.endswith("of 5 alarms with the name of a seen kind are normal rows")


def test_alarms_of_unseen_kinds_with_the_name_of_a_seen_one_are_counted_and_said():
    kind, given = ["pump"] * 2 + ["leak"] * 3 + ["normal"], ["pump"] * 4 + ["unseen", "normal"]
    names = replace(counted(kind, given), seen=("pump",))
    assert (names.mistaken.count, names.mistaken.total) == (2, 4)
    told = name_lines(names)["named falsely"]
    assert told.startswith("0.00% [")
    assert told.endswith(
        "with the name of a seen kind are normal rows, 50.00% rows of unseen kinds"
    )


def test_no_promise_is_said_to_be_made_where_kinds_have_too_few_rows_for_one():
    kind = ["pump", "valve"]
    told = name_lines(counted(kind, kind))
    assert told["sets of kinds"].endswith("promised 95% if kinds are as common as in the fit")
    assert "; promised at most 5.00%: " in told["called unseen"]
    none = {"without_promise": ("pump", "valve"), "judges": None}
    told = name_lines(counted(kind, kind, **none))
    assert told["sets of kinds"].endswith("2 sets include the true kind, no promise was made")
    assert told["called unseen"].endswith("rows of seen kinds; no promise was made")
    assert (
        "of 1 named alarm of seen kinds" in name_lines(counted(["pump"], ["pump"]))["names right"]
    )


def test_of_one_seen_kind_no_share_of_right_names_is_shown():
    """It could not be less than 100%."""
    one = replace(counted(["pump"] * 3, ["pump"] * 3), seen=("pump",))
    assert name_lines(one)["names right"] == "not measured: only one kind was seen"
    page = _environment().get_template("words.html.jinja").module.names_summary
    assert "<p>Only one kind was seen, so names cannot be confused." in page(one, None)
    assert "right name" not in page(one, None)


def test_a_name_that_is_an_answer_or_a_number_comes_with_its_column_or_in_quotes():
    assert [kind_text(kind, "premium") for kind in ("no", "TRUE", "-1.5", "pump 2")] == [
        *("premium = no", "premium = TRUE", "premium = -1.5", "pump 2")
    ]
    assert [kind_text(kind) for kind in ("no", "3", "pump")] == ["'no'", "'3'", "pump"]


def test_the_calibration_error_is_the_mean_distance_of_probability_and_share():
    rng = np.random.default_rng(0)
    probability = rng.uniform(0.2, 1, size=2000)
    fair = Reliability.of(probability, rng.uniform(size=2000) < probability)
    proud = Reliability.of(probability, rng.uniform(size=2000) < probability - 0.2)
    assert fair.error < 0.05
    assert proud.error == pytest.approx(0.2, abs=0.04)
    both = Reliability.counted(np.add(fair.bins, proud.bins))
    assert sum(n for _, _, n in both.points) == 4000
    assert both.error == pytest.approx(0.1, abs=0.04)


def test_whether_unseen_is_said_as_promised_has_three_outcomes():
    assert promise(10).verdict.word == "kept"
    assert promise(80).verdict.word == "broken"
    assert promise(35).verdict.word == "cannot tell"
    few = counted(["pump"] * 20, ["pump"] * 19 + ["unseen"]).promise
    assert re.fullmatch(r"cannot tell: about .* such rows are needed", str(few.verdict))
    assert promise(3, judges=None) is None
    assert promise(3, groups=np.zeros(9)) is None  # rows of a group are alike


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "promised at most 5.00%: kept"),
        ({"judges": None}, "no promise was made"),
        (
            {"groups": np.zeros(9)},
            "promised at most 5.00%: not judged: rows of one time block are alike",
        ),
    ],
)
def test_the_line_of_called_unseen_has_a_verdict_or_says_why_not(fields, said):
    line = name_lines(names(10, **fields))["called unseen"]
    assert line.endswith(f" of 400 rows of seen kinds; {said}")


def test_the_forest_beside_names_knows_how_frequent_kinds_are_as_the_model_does():
    """All of 900 rows are of one kind or of another that nothing tells from it."""
    rng = np.random.default_rng(0)
    counts = {"normal": 400, "frequent": 900, "seldom": 100}
    y = np.repeat(list(counts), list(counts.values()))
    X = rng.normal(size=(len(y), 2)) + 7.0 * (y != "normal")[:, None]
    config = replace(Config.fast(), max_kind_rows=100)
    quick = Detector(n_landmarks=60, false_alarm_rate=0.05, random_state=0, config=config)
    new = y != "normal"
    shown = names_on(quick.fit(X, y).model_, X[new] + 0.01, y[new], normal="normal")
    assert shown.forest.value > 0.8 < shown.right.value


def test_the_command_says_accuracy_beside_a_forest_sets_and_promises(report):
    names = report.assessment.names
    told = name_lines(names)
    others = ["sets of kinds", "called unseen", "named unseen"]
    falsely = names.false.count + names.mistaken.count
    assert list(told) == ["names right", *["named falsely"] * bool(falsely), *others]
    assert told["names right"].startswith(f"{names.right.value:.2%} [")
    assert told["names right"].endswith(f"; a random forest {names.forest.value:.2%}")
    assert names.forest.total == names.right.total
    assert abs(names.forest.value - names.right.value) < 0.1
    assert names.right.value > 0.7  # two kinds overlap
    assert f"{names.sets.size:.2f} kinds on average" in told["sets of kinds"]
    assert "promised at most 5.00%: " in told["called unseen"]
    assert "named right" not in " ".join(told)


def test_names_are_tried_with_all_kinds_and_with_some_left_out():
    detector = Detector(n_landmarks=60, bandwidth=1.0, random_state=0, config=Config.fast())
    X, kind = rows_of(0, {"normal": 400, "belt slip": 60, "clogged": 60, "rare": 1})
    kind = np.where(kind == "normal", "ok", kind)
    tried = try_names(detector, read_table(X, name="test"), kind, normal="ok", random_state=0)
    assert tried.seen.seen == ("belt slip", "clogged")
    assert tried.seen.right.value > 0.95
    digits = np.array([{"ok": "1", "clogged": "0"}.get(one, "5") for one in kind])
    zeros = try_names(detector, read_table(X, name="test"), digits, normal="1", random_state=0)
    assert {*zeros.seen.seen} == {"0", "5"}  # though 0 is a usual name of normal rows
    assert sorted(tried.power) == [("belt slip",), ("clogged",)]  # each is left out once
    for names, share in zip(tried.left_out, tried.power.values(), strict=True):
        assert len(names.seen) == 1
        assert share.total > 20
        assert share.value > 0.9
    one = try_names(
        detector, read_table(X, name="test"), np.where(kind == "ok", "ok", "bad"), normal="ok"
    )
    assert one.left_out == ()
    rare = kind == "rare"
    assert (
        try_names(detector, read_table(X, name="test"), np.where(rare, "rare", "ok"), normal="ok")
        is None
    )


def test_the_table_of_names_keeps_its_labels_at_80_columns(report):
    told = StringIO()
    print_assessment(Screen(width=80, file=told), report)
    lines = [line.split() for line in told.getvalue().splitlines()]
    assert ["label", "alarms", "own", "name", "another", "unseen"] in lines
    for one in report.assessment.names.kinds:
        own = [f"{one.right}"] if one.kind in report.assessment.names.seen else "–"
        assert [*one.kind.split(), f"{one.alarms}", *own, f"{one.other}", f"{one.unseen}"] in lines


def test_the_page_says_the_same(report):
    names, text = report.assessment.names, html(report)
    assert f"{names.right.value:.1%}" in text
    assert "a random forest grown on the rows that the model keeps names" in text
    assert f"the expected calibration error is {names.reliability.error:.3f}" in text
    assert "Probability of names, and the share of right names" in text
    assert 'are called "unseen"; at most 5.0% is promised' in text
    assert (
        text.count('<td class="shade own"') == 5
    )  # the names of four kinds, and of the unseen one


@pytest.mark.parametrize("called", ["pump", "unseen"])
def test_the_page_says_what_the_probability_of_a_name_compares(report, called):
    names = replace(counted(["pump", "leak"], ["pump", called]), seen=("pump",))
    text = html(replace(report, assessment=replace(report.assessment, names=names)))
    is_said = "its probability compares seen kinds only, so it may be high" in text
    assert is_said is (called != "unseen")


def test_a_fit_says_which_kinds_have_too_few_rows_for_the_promise_of_names(tmp_path, capsys):
    X, kind = rows_of(0, {"normal": 120, "clogged": 25, "rare": 5})
    table = np.column_stack([X.round(3), kind])
    np.savetxt(tmp_path / "t.csv", table, "%s", delimiter=",", header="a,b,kind", comments="")
    words = ["--false-alarm-rate", "0.1", "--landmarks", "60", "--out", str(tmp_path / "m.eqsep")]
    with pytest.raises(SystemExit):
        app(["fit", str(tmp_path / "t.csv"), "--label", "kind", *words])
    told = capsys.readouterr().out
    assert "clogged, rare; too rare for a promise by kind (19 rows needed): rare (5)\n" in told


def test_commands_show_answers_with_the_label_column_and_call_normal_rows_as_the_file_does(
    tmp_path, capsys
):
    path, model = tmp_path / "t.csv", str(tmp_path / "m.eqsep")

    def said(command, *words, seed=0):
        X, kind = rows_of(seed, {"normal": 120, "clogged": 25})
        table = np.column_stack([X.round(3), np.where(kind == "normal", "yes", "no")])
        np.savetxt(path, table, "%s", delimiter=",", header="a,b,paid", comments="")
        with pytest.raises(SystemExit):
            app([command, *words])
        return capsys.readouterr().out

    labels = (str(path), "--label", "paid", "--out", model)
    few = ("--normal", "yes", "--false-alarm-rate", "0.1", "--landmarks", "60")
    told = said("fit", *labels, *few)
    assert "145: 120 normal (yes), 25 paid = no\n" in told
    assert "seen kinds  paid = no\n" in told
    told = said("learn", model, *labels, seed=1)
    assert "145: 25 paid = no, 120 normal (yes)\n" in told
    assert "120 rows labelled yes are trusted" in told
    assert "seen kinds  paid = no\n" in said("info", model)
    told = said("explain", model, str(path), "--most", "1", seed=2)
    assert "alarm, paid = no (the only seen kind); " in told
    assert "  likeness to paid = no: " in told
    page = tmp_path / "t.html"
    told = said("test", model, str(path), "--label", "paid", "--report", str(page), seed=2)
    assert "of paid = no, the only kind" in told
    assert "of paid = no, the only kind" in page.read_text()
    loaded = load_model(model)
    loaded.with_model(replace(loaded.model_, label_column="")).save(model)
    assert "seen kinds  'no'\n" in said("info", model), "fitted in Python"


def test_two_models_that_name_alarms_have_two_headings():
    names = replace(counted(["pump", "leak"], ["pump", "unseen"]), seen=("pump",))
    screen = Screen(file=StringIO(), width=200)
    _print_names(screen, NamesTried(replace(names, seen=("leak", "pump")), (names,)))
    lines = screen.file.getvalue().splitlines()
    assert lines[-2] == "Alarms named unseen, by models that have not learnt their kinds:"
    assert re.fullmatch(r"leak 100.00% \[.*\] of 1 alarm", lines[-1])


def test_how_rows_of_a_kind_without_an_alarm_score_is_said():
    silent = counted(["leak", "leak", "normal", "pump"], ["normal"] * 4, score=[0.5, 0.9, 0.2, 1.0])
    screen = Screen(file=StringIO(), width=200)
    _print_names(screen, NamesTried(replace(silent, seen=("leak", "pump", "valve")), (silent,)))
    assert screen.file.getvalue().splitlines()[-1] == (
        "leak none of their 2 rows raises an alarm: their median score is 0.700, that of normal "
        "rows 0.200, and the threshold 1.500"
    )
