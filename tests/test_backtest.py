"""Backtests: what was known when, exactly; no word of the future; kinds caught before a label."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from invoking import CliRunner
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from report_page import Page
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from eqsep import Detector
from eqsep.checks import DependentRowsWarning
from eqsep.cli import app
from eqsep.detector import Config
from eqsep.detector.calibration import NO_PROMISE
from eqsep.errors import UserError
from eqsep.evaluation import CaughtKind, Fixed, Learning, Retrained, Schedule, Share, backtest
from eqsep.plots import BacktestDisplay

DETECTOR = Detector(
    n_landmarks=40, bandwidth=1.0, false_alarm_rate=0.05, random_state=0, config=Config.fast()
)
PLAN = Schedule(every="1d", delay="3d", alarms=8, first=150)
pytestmark = pytest.mark.filterwarnings("ignore::eqsep.errors.EqsepWarning")


def story(seed=0, *, days=14, a_day=60):
    """Rows of some days; "pump" from the first, "valve" from the tenth on, both far out."""
    rng = np.random.default_rng(seed)
    n = days * a_day
    X, kind = rng.normal(size=(n, 2)), np.full(n, "normal", dtype=object)
    day = np.repeat(np.arange(days), a_day)
    kind[::20], X[::20] = "pump", rng.normal((6, 0), 0.3, size=(n // 20, 2))
    late = np.flatnonzero((day >= 9) & (np.arange(n) % 20 == 7))
    kind[late], X[late] = "valve", rng.normal((0, -6), 0.3, size=(len(late), 2))
    time = np.datetime64("2026-01-01") + (day * 86_400 + np.arange(n) % a_day + 1).astype("m8[s]")
    return X, kind, time


@pytest.fixture(scope="module")
def found():
    X, kind, time = story()
    methods = {"eqsep": Learning(DETECTOR), "logistic": Retrained(LogisticRegression())}
    methods["shadow"] = Fixed(clone(DETECTOR).fit(X[kind == "normal"][:300]))
    return backtest(methods, X, kind, time=time, schedule=PLAN)


def test_models_begin_when_labels_are_there_and_alarms_are_so_many_a_day(found):
    assert found.waited == 6 * 60  # three days of 60 are known when the seventh begins
    assert [one.name for one in found.periods][:2] == ["2026-01-07", "2026-01-08"]
    assert [one.known for one in found.periods][:2] == [180, 240]
    assert {one.alarms["eqsep"] for one in found.periods} == {8}
    assert found.alarms["eqsep"].sum() == found.precision["eqsep"].total == 64
    assert found.recall["eqsep"].total == 8 * 3 + 5 * 3
    assert found.false_alarms["eqsep"].total == 8 * 60 - 39
    assert found.promises["eqsep"].alarms == found.false_alarms["eqsep"].count
    assert found.promises["shadow"].rank > 0


def test_a_promise_is_judged_by_rows_scored_when_it_was_made(found):
    """At 3 % the first models hold out too few rows to make one; at 0.1 % no model can."""
    X, kind, time = story()
    rate = {"late": 0.03, "never": 0.001}
    methods = {
        name: Learning(clone(DETECTOR).set_params(false_alarm_rate=one))
        for name, one in rate.items()
    }
    found = backtest(methods, X, kind, time=time, schedule=replace(PLAN, first=60, delay="1d"))
    assert 0 < found.promises["late"].rows < found.false_alarms["late"].total
    assert str(found.promises["never"].verdict) == NO_PROMISE


def test_each_kind_has_a_low_tick_where_its_first_row_came(found):
    lines = BacktestDisplay(found=found).plot(ax=Figure().subplots()).ax_.lines
    ticks = [line.get_data() for line in lines if len(line.get_xdata()) == 2]
    assert [list(x) for x, _ in ticks] == [[one.appeared] * 2 for one in found.kinds["eqsep"]]
    assert_allclose([y for _, y in ticks], [[0, 0.03 * 39]] * 2)


def test_nobody_is_told_to_pass_times_that_a_backtest_goes_by():
    X, kind, time = story()
    X[:, 0] += np.cumsum(np.random.default_rng(1).normal(size=len(X)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        backtest({"eqsep": Learning(DETECTOR)}, X, kind, time=time, schedule=PLAN)
        assert not [w for w in caught if issubclass(w.category, DependentRowsWarning)]
        clone(DETECTOR).fit(X, kind)  # where rows come without times
    assert [w for w in caught if issubclass(w.category, DependentRowsWarning)]


def test_a_kind_is_caught_with_its_first_rows_before_any_label(found):
    pump, valve = found.kinds["eqsep"]
    assert (pump.kind, pump.early.total) == ("pump", 0)
    assert pump.told == "with its first rows; known before the first period"
    assert (valve.kind, valve.appeared, valve.caught, valve.early.count) == ("valve", 4, 4, 12)
    assert valve.told == "with its first rows, before any label"
    assert (pump.first, valve.first) == ("2026-01-07 00:00:01", "2026-01-10 00:00:08")
    assert found.recall["shadow"].value == 1
    assert found.kinds["logistic"][1].recall.value < 0.5  # it knows the other side alone


def test_folded_periods_are_at_most_so_many_and_lose_nothing(found):
    folded = found.folded(3)
    assert folded[0].name == "2026-01-07 to 2026-01-09"
    assert len(folded) == 3
    assert sum(one.caught["eqsep"] for one in folded) == found.recall["eqsep"].count


@pytest.mark.parametrize("verdict", [None, "0d"])
def test_the_future_changes_nothing_of_the_past(verdict):
    plan = replace(PLAN, verdict=verdict)
    X, kind, time = story()
    before = backtest({"eqsep": Learning(DETECTOR)}, X, kind, time=time, schedule=plan)
    cut = 11 * 60
    order = np.concatenate([np.arange(cut), cut + np.random.default_rng(1).permutation(180)])
    kind = np.concatenate([kind[:cut], np.roll(kind[order][cut:], 5)])
    after = backtest({"eqsep": Learning(DETECTOR)}, X[order], kind, time=time, schedule=plan)
    assert_array_equal(before.alarms["eqsep"][:cut], after.alarms["eqsep"][:cut])
    assert (before.alarms["eqsep"][cut:] != after.alarms["eqsep"][cut:]).any()


def test_labels_within_the_delay_are_not_known():
    X, kind, time = story()
    wrong = kind.copy()
    day = 8 * 60  # the ninth day: its labels come when all but the last two have been seen
    wrong[day : day + 60] = np.where(kind[day : day + 60] == "normal", "pump", "normal")
    runs = [
        backtest({"eqsep": Learning(DETECTOR)}, X, k, time=time, schedule=PLAN).alarms["eqsep"]
        for k in (kind, wrong)
    ]
    assert_array_equal(runs[0][: 12 * 60], runs[1][: 12 * 60])
    assert (runs[0] != runs[1]).any()


@pytest.mark.parametrize("pending", [False, True])
def test_each_model_is_the_sum_of_what_is_known(pending):
    X, kind, time = story()
    contender = Learning(DETECTOR, pending=pending)
    plan = replace(PLAN, verdict="0d")
    found = backtest({"eqsep": contender}, X, kind, time=time, schedule=plan)
    alarms = found.alarms["eqsep"]
    labelled = np.arange(len(X)) < 10 * 60  # when the last day begins
    judged = alarms & ~labelled & (np.arange(len(X)) < 13 * 60)
    seen = ~labelled & ~judged & (np.arange(len(X)) < 13 * 60)
    direct = clone(DETECTOR).fit(X[:180], kind[:180])
    direct.partial_fit(X[180:600], kind[180:600])
    direct.partial_fit(X[judged], kind[judged], judged=True)
    if pending:
        direct.partial_fit(X[seen], [None] * seen.sum(), judged=True)
    assert judged.sum() == 24
    assert_allclose(contender.detector.coef_[:, 0], direct.coef_[:, 0], atol=1e-5)
    held = [
        np.sort(d.model_.evidence.held_out.normal, axis=0) for d in (contender.detector, direct)
    ]
    assert_array_equal(*held)


def test_a_fit_anew_has_landmarks_of_later_rows():
    X, kind, time = story(days=8)
    stays, anew = Learning(DETECTOR), Learning(DETECTOR, refit=1)
    backtest({"stays": stays, "anew": anew}, X, kind, time=time, schedule=PLAN)
    lowest = [d.detector.plan_.kernel.landmarks.min() for d in (stays, anew)]
    assert stays.detector.plan_ is not anew.detector.plan_
    assert lowest[0] != lowest[1]


def test_times_that_are_numbers_count_rows():
    X, kind, _ = story()
    order = np.random.default_rng(0).permutation(len(X))
    plan = Schedule(every=60, delay=180, alarms=8, first=150)
    run = backtest({"eqsep": Learning(DETECTOR)}, X[order], kind[order], time=order, schedule=plan)
    assert [one.name for one in run.periods][:2] == ["row 361", "row 421"]
    assert {one.rows for one in run.periods} == {60}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"every": 60}, "every must be a span such as 7d"),
        ({"delay": "soon"}, "delay must be a span such as 7d, .* got 'soon'"),
        ({"every": "0d"}, "every must be a span above 0"),
        ({"alarms": 0}, "alarms must be a whole number of at least 1, got 0"),
        ({"first": 5_000}, "The first model needs 5,000 labelled rows, .* only 600 have"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    X, kind, time = story()
    plan = replace(PLAN, **change)
    with pytest.raises(UserError, match=message):
        backtest({"eqsep": Learning(DETECTOR)}, X, kind, time=time, schedule=plan)


def run(*words):
    return CliRunner().invoke(app, [str(w) for w in words], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("backtest") / "rows.csv"
    X, kind, time = story()
    lines = zip(X.tolist(), kind, time.tolist(), strict=True)
    path.write_text(
        "\n".join(["x0,x1,kind,when", *(f"{a},{b},{k},{t.isoformat()}" for (a, b), k, t in lines)])
    )
    return path


def test_the_command_plays_files_back_and_writes_a_page(file, tmp_path):
    page, model = tmp_path / "page.html", tmp_path / "model.eqsep"
    too_low = clone(DETECTOR).set_params(false_alarm_rate=0.001)
    too_low.fit(story(1)[0], story(1)[1]).save(model)
    words = ("--time", "when", "--label", "kind", "--delay", "3d", "--alarms", 8, "--first", 150)
    words += ("--landmarks", 60, "--against", "", "--shadow", model, "--report", page)
    result = run("backtest", file, *words)
    assert result.exit_code == 0, result.output
    assert "480 rows in 8 periods, after 360 before the first model." in result.stdout
    assert re.search(
        r"eqsep +64 +\d\d\.\d% \[.*\] 100\.0%.* 1\.00%: (kept|cannot tell)", result.stdout
    )
    assert re.search(r"shadow .*\] +no promise was made", result.stdout)
    assert re.search(
        r"valve +2026-01-10 00:00:08 +15 of 15 \(12 of 12\): with its first", result.stdout
    )
    read = Page(page.read_text())
    assert [line[0] for line in read.rows("Methods")[1:]] == ["eqsep", "shadow model.eqsep"]
    assert len(read.rows("Periods")) == 9
    assert "--delay 3d" in re.sub("<[^>]*>", "", read.whole)
    assert "39 in all; caught: eqsep 39" in read.whole


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--time", "kind"), "cannot be two of --label, --time and --drop"),
        (("--time", "wen"), "'wen' is not a column: .* Did you mean 'when'?"),
        (("--time", "x0", "--every", "1d"), "--every must be a number of rows, since times are"),
        (("--time", "when", "--against", "forest"), "'forest' is not a known method"),
    ],
)
def test_the_command_refuses_in_a_sentence(file, words, message):
    result = run("backtest", file, "--label", "kind", *words)
    assert result.exit_code == 2
    assert re.search(message, " ".join(result.stderr.split()))


def test_a_kind_that_is_caught_no_more_than_others_is_caught_by_chance():
    def told(count):
        return CaughtKind("leak", Share.counted(count, 50), Share.counted(0, 0), "", 1, 1, 0.1).told

    assert told(6) == "no more than by chance"
    assert told(20) == "with its first rows; known before the first period"
