"""Which rows calibrate: by a hash of each row, by whole groups, or by blocks of time."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

from eqsep import Detector, load_model
from eqsep.checks import DependentRowsWarning, check_dependence
from eqsep.datasets import make_process
from eqsep.detector import CalibrationWarning, Config
from eqsep.detector.holdout import (
    Grouping,
    HoldOut,
    groups_needed,
    n_held_out,
    n_held_out_groups,
    row_hashes,
)
from eqsep.errors import UserError
from eqsep.labels import RowLabels, read_row_labels
from eqsep.tables.encoder import Encoder
from eqsep.tables.reading import RowGroups, read_table, with_groups

pytestmark = pytest.mark.filterwarnings("ignore::eqsep.errors.EqsepWarning")
RATE = 0.1


def runs(n: int, *, rows: int = 30, spread: float = 0.3, seed: int = 0) -> pd.DataFrame:
    """Normal runs, each around a place of its own, and a fault in half of every tenth."""
    rng = np.random.default_rng(seed)
    run = np.repeat(np.arange(n), rows)
    X = rng.normal(size=(n, 3))[run] + rng.normal(0, spread, size=(len(run), 3))
    kind = np.where((run % 10 == 0) & (np.arange(len(run)) % rows >= rows // 2), "fault", "normal")
    X[kind == "fault"] += 6
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return frame.assign(run=[f"run {i}" for i in run], time=np.tile(np.arange(rows), n), kind=kind)


# ------------------------------------------------------------------------ without a detector


def rule_for(table, labels=None, **more):
    """The rule for some rows, how it splits them, and the encoder of the columns."""
    table = read_table(table, name="me") if not hasattr(table, "columns") else table
    labels = RowLabels(np.zeros(table.n_rows, dtype=int), (), None) if labels is None else labels
    asked = {"config": Config(), "doubted": False, "rate": 0.1, "window": None} | more
    rule, split = HoldOut.choose(table, labels, **asked, rng=np.random.RandomState(0))
    return rule, split, Encoder.learn(table)


def all_normal(n):
    return RowLabels(np.zeros(n, dtype=int), (), None)


def test_the_fate_of_a_row_does_not_depend_on_the_others():
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    rule, split, encoder = rule_for(rows)
    assert split.held_out.sum() == n_held_out(1000, config=Config()) == 199
    assert_array_equal(split.learnt, ~split.held_out)

    def held(some):
        table = read_table(some, name="me")
        return rule.split(table, all_normal(table.n_rows), encoder=encoder).held_out

    assert_array_equal(held(rows), split.held_out)
    order = np.random.default_rng(1).permutation(1000)
    assert_array_equal(held(rows[order]), split.held_out[order])
    pieces = [held(part) for part in np.array_split(rows, 7)]
    assert_array_equal(np.concatenate(pieces), split.held_out)
    new = held(np.random.default_rng(2).normal(size=(4000, 3)))
    assert abs(new.mean() - 0.2) < 0.03


def test_equal_rows_are_held_out_one_by_one():
    hashes = row_hashes(np.repeat([[1.0], [2.0]], 500, axis=0), key=3)
    assert len(np.unique(hashes)) == 1000
    assert_array_equal(hashes[:3], row_hashes(np.ones((3, 1)), key=3))
    assert (hashes != row_hashes(np.repeat([[1.0], [2.0]], 500, axis=0), key=4)).any()
    _, split, _ = rule_for(np.ones((1000, 2)))
    assert split.held_out.sum() == 199


def test_only_normal_rows_are_held_out_and_where_rows_are_doubted_some_of_common_kinds():
    rows = np.random.default_rng(0).normal(size=(1200, 2))
    y = np.repeat(["normal", "leak", "rare"], [1000, 190, 10])
    labels = read_row_labels(y, n_rows=1200, normal=None)
    rule, split, encoder = rule_for(rows, labels)
    assert set(y[split.held_out]) == {"normal"}
    rule, split, encoder = rule_for(rows, labels, doubted=True)
    assert rule.anomaly_kinds == ("leak",)
    assert (y[split.held_out] == "leak").sum() == 19
    assert "rare" not in y[split.held_out]
    none = replace(rule, bound=0, anomaly_bound=0).split(
        read_table(rows, name="me"), labels, encoder=encoder
    )
    assert none.learnt.all()
    assert not none.held_out.any()


def test_groups_are_held_out_whole_in_pieces_too():
    rng = np.random.default_rng(0)
    rows, group = rng.normal(size=(1200, 2)), rng.integers(60, size=1200)
    table = with_groups(read_table(rows, name="me"), groups=group)
    rule, split, encoder = rule_for(table)
    n_held = n_held_out_groups(60, rate=0.1, config=Config())
    assert len(set(group[split.held_out])) == n_held == 30
    assert not set(group[split.held_out]) & set(group[split.learnt])
    for part in np.array_split(rng.permutation(1200), 5):
        found = rule.split(table.take(part), all_normal(len(part)), encoder=encoder)
        assert_array_equal(found.held_out, split.held_out[part])
    with pytest.raises(UserError, match="these rows need theirs too"):
        rule.split(read_table(rows, name="me"), all_normal(1200), encoder=encoder)
    alone, _, _ = rule_for(rows)
    with pytest.raises(UserError, match="had no groups"):
        alone.split(table, all_normal(1200), encoder=encoder)
    assert groups_needed(0.1) == 18
    assert n_held_out_groups(1000, rate=0.1, config=Config()) == 200  # a fifth is enough


def test_beside_a_block_of_time_is_a_gap_and_it_is_wider_where_rows_look_back():
    rows, time = np.random.default_rng(0).normal(size=(2500, 2)), np.arange(2500.0)
    table = with_groups(read_table(rows, name="me"), time=time)
    for window, share in ((None, 0.1), (5, 0.25)):
        rule, split, encoder = rule_for(table, window=window)
        assert rule.grouping.gap == share
        gap = ~split.learnt & ~split.held_out
        assert gap.any()
        beside = np.flatnonzero(split.held_out[:-1] != split.held_out[1:])
        width = int(share * 0.9 * np.diff(rule.grouping.edges).min())
        for edge in beside:
            inside = split.held_out[edge]
            outside = (
                slice(edge + 1, edge + 1 + width) if inside else slice(edge + 1 - width, edge + 1)
            )
            assert gap[outside].all()
        again = rule.split(table, all_normal(2500), encoder=encoder)
        assert_array_equal(again.learnt, split.learnt)


def test_rules_are_the_same_where_every_row_is_treated_alike():
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    rule = rule_for(rows)[0]
    assert rule.is_same(rule_for(rows)[0])
    assert not rule.is_same(rule_for(rows + 1)[0])
    assert not rule.is_same(replace(rule, kind_bounds={"leak": 5}))


# -------------------------------------------------------------------------- in a detector


TABLE = runs(120)
X, Y = TABLE[["a", "b", "c", "run"]], TABLE["kind"]


def detector(**more) -> Detector:
    settings = {"n_landmarks": 60, "bandwidth": 1.0, "false_alarm_rate": RATE, "random_state": 0}
    return Detector(**{"config": Config.fast()} | settings | more)


@pytest.fixture(scope="module")
def fitted() -> Detector:
    return detector().fit(X, Y, groups="run")


def assert_same(one: Detector, other: Detector) -> None:
    mine, theirs = one.model_.evidence.held_out, other.model_.evidence.held_out
    assert_array_equal(mine.rows, theirs.rows)
    assert_array_equal(mine.groups, theirs.groups)
    assert_allclose(one.coef_, other.coef_, atol=1e-8)
    assert one.threshold_ == pytest.approx(other.threshold_)


def test_whole_groups_calibrate_and_no_normal_row_of_them_is_learnt(fitted):
    n_held = fitted.calibration_.n_units
    assert n_held == n_held_out_groups(120, rate=RATE, config=Config()) == 49
    assert fitted.calibration_.least_rate == 1 / (n_held + 1)
    sizes = np.unique(fitted.calibration_.groups, return_counts=True)[1]
    assert set(sizes) <= {15, 30}  # all normal rows of a run
    n_normal = (Y == "normal").sum()
    learnt = fitted.model_.evidence.weight
    assert learnt[0] == n_normal - len(fitted.model_.evidence.held_out.normal)
    assert learnt[1] == (Y == "fault").sum()  # anomalies are learnt wherever they are


def test_the_column_is_no_feature_and_its_name_is_remembered(fitted):
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert fitted.plan_.holdout.grouping.columns == ("run", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = fitted.score_samples(X)
    assert_array_equal(scores, fitted.score_samples(X[["a", "b", "c"]]))


def test_the_rate_is_kept_for_new_runs_where_rows_held_out_one_by_one_break_it():
    by_groups, by_rows = [], []
    for seed in range(6):
        train, new = (runs(100, rows=10, spread=0.05, seed=seed + i) for i in (0, 100))
        rows, new = train[["a", "b", "c"]], new.query("kind == 'normal'")[["a", "b", "c"]]
        narrow = {"bandwidth": 0.2, "n_landmarks": 300}
        grouped = detector(**narrow).fit(rows, train["kind"], groups=train["run"])
        by_groups.append(grouped.predict(new).mean())
        by_rows.append(detector(**narrow).fit(rows, train["kind"]).predict(new).mean())
    error = np.std(by_groups) / np.sqrt(len(by_groups))
    assert RATE / 2 < np.mean(by_groups) < RATE + 2 * error
    assert np.mean(by_rows) > RATE + 4 * error


@pytest.mark.parametrize("time", [None, "time"])
def test_pieces_merged_and_forgotten_are_what_one_fit_is(time):
    rows = X if time is None else X.assign(time=TABLE["time"])
    rate = RATE if time is None else 0.01  # for which runs are too few: blocks of time calibrate
    whole = detector(false_alarm_rate=rate).fit(rows, Y, groups="run", time=time)
    assert whole.plan_.holdout.grouping.unit == ("group" if time is None else "time block")
    like = {"plan": whole.plan_, "false_alarm_rate": rate}
    part = np.random.default_rng(0).integers(3, size=len(X))  # pieces cut through runs
    first, second, third = (rows[part == i] for i in range(3))
    pieces = detector(**like).fit(first, Y[part == 0], groups="run", time=time)
    pieces.partial_fit(second, Y[part == 1]).partial_fit(third, Y[part == 2])
    assert_same(pieces, whole)
    other = detector(**like).fit(third, Y[part == 2], groups="run", time=time)
    merged = detector(**like).fit(rows[part < 2], Y[part < 2], groups="run", time=time).merge(other)
    assert_same(merged, whole)
    less = detector(**like).fit(rows[part < 2], Y[part < 2], groups="run", time=time)
    assert_same(merged.forget(third, Y[part == 2]), less)


def test_batches_are_what_one_fit_is(fitted):
    frame = X.assign(kind=Y)
    batches = [frame[i : i + 500] for i in range(0, len(frame), 500)]
    assert_same(detector().fit(batches, "kind", groups="run"), fitted)
    like = detector(plan=fitted.plan_)
    assert_same(like.fit(iter(batches), "kind", groups="run"), fitted)


def test_of_large_groups_some_rows_calibrate_the_same_ones_in_pieces():
    config = replace(Config.fast(), max_held_out_in_groups=300)
    whole = detector(config=config).fit(X, Y, groups="run")
    assert 200 < len(whole.model_.evidence.held_out.normal) < 400
    assert whole.calibration_.n_units > 40
    pieces = detector(plan=whole.plan_).fit(X[:999], Y[:999], groups="run")
    assert_same(pieces.partial_fit(X[999:], Y[999:]), whole)


def test_whole_groups_are_told_by_name_or_by_value(fitted):
    new = runs(20, seed=5)
    whole = fitted.p_value(new[["a", "b", "c", "run"]], groups="run")
    assert_array_equal(fitted.p_value(new[["a", "b", "c"]], groups=new["run"]), whole)
    assert (whole <= fitted.p_value(new[["a", "b", "c"]]) + 1e-9).all()
    assert whole.min() < fitted.calibration_.least_rate


def test_too_few_groups_are_said_and_what_can_be_promised():
    few = TABLE["run"].isin([f"run {i}" for i in range(12)])
    with pytest.warns(
        CalibrationWarning, match=r"it takes 99 held-out groups .* there are 6.*=0\.2"
    ):
        detector(false_alarm_rate=0.01).fit(X[few], Y[few], groups="run")
    told = r"99 held-out time blocks of normal rows, and there are \d+\. Add rows of a longer time "
    with pytest.warns(CalibrationWarning, match=told):
        detector(false_alarm_rate=0.01).fit(X.loc[few, ["a", "b"]], Y[few], time=range(few.sum()))
    with pytest.raises(UserError, match="at least 2 groups"):
        detector().fit(X[:30], Y[:30], groups="run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.partial_fit(X[["a", "b", "c"]], Y), "Pass groups='run'"),
        (lambda _: detector().fit(X, Y, groups="ran"), "groups must be a column .*, got 'ran'"),
        (lambda _: detector().fit(X[["a", "b", "c"]], Y, groups=[1, 2]), "2 values"),
        (lambda _: detector().fit(X.replace({"run": {"run 7": None}}), Y, groups="run"), "row 211"),
        (lambda _: detector().fit([X, X], groups=Y), "name of a column"),
        (lambda _: detector(confidence=0.9).fit(X, Y, groups="run"), "confidence"),
        (
            lambda _: detector().fit(X[["a"]], Y).partial_fit(X[["a"]], Y, groups=Y),
            "had no groups",
        ),
        (lambda _: detector().fit(X, Y, time=np.ones(len(X))), "same time"),
        (lambda d: d.p_value(X, groups="ran"), "groups must be a column .*, got 'ran'"),
        (lambda d: d.p_value(X, groups=3), "groups must be a column .*, got '3'"),
        (lambda d: d.p_value(X, groups=0.5), "value for each row, or be a name, got 0.5"),
        (lambda _: detector().fit(X, Y, groups=np.ones((len(X), 2))), "one value for each row"),
        (lambda _: detector().fit(X[["a"]], Y).p_value(X[["a"]], groups=Y), "rows one by one"),
        (
            lambda _: detector().fit(X[["a"]], Y, time=range(len(X))).p_value(X[["a"]], groups=Y),
            "held out blocks of time",
        ),
    ],
)
def test_what_cannot_be_is_refused(fitted, change, message):
    with pytest.raises(UserError, match=message):
        change(fitted)


def test_blocks_of_time_and_the_gap_beside_them():
    n = 2500
    rows = np.random.default_rng(0).normal(size=(n, 2))
    found = detector().fit(rows, time=np.arange(n))
    assert len(found.plan_.holdout.grouping.edges) == 101  # 2 sqrt(n) blocks of 25 rows
    table = with_groups(read_table(rows, name="Detector"), time=np.arange(n))
    plan, labels = found.plan_, RowLabels(np.zeros(n, dtype=int), (), None)
    learnt, kept, _ = plan.holdout.split(table, labels, encoder=plan.encoder)
    assert kept.sum() == len(found.model_.evidence.held_out.normal)
    beside = np.flatnonzero(kept[:-1] != kept[1:])
    gap = ~learnt & ~kept
    assert gap.any()
    for (
        edge
    ) in beside:  # from a block that is held out to one that is not: two rows of 25 are left out
        outside = slice(edge + 1, edge + 3) if kept[edge] else slice(edge - 1, edge + 1)
        assert gap[outside].all()
    assert not gap[~kept].all()


@pytest.mark.parametrize("start", [0.0, 500.0])
def test_a_time_has_its_block_whatever_else_is_there(start):
    grouping = Grouping(("", ""), (start, start + 10, start + 30))
    time = start + np.array([-1.0, 0.0, 9.9, 10.0, 29.0, 30.0, 31.0, 44.0, 46.0])
    groups = RowGroups(np.zeros(len(time), np.uint64), time, ("", ""))
    units = grouping.units(groups, key=3)
    _, place = np.unique(units, return_inverse=True)
    same = place[:, None] == place
    expected = np.array([0, 1, 1, 2, 2, 2, 3, 3, 4])
    assert_array_equal(same, expected[:, None] == expected)
    later = grouping.units(groups, key=3, step=1)
    assert later[1] == units[3]
    assert later[4] == units[6]


def test_a_file_and_a_graph_keep_the_groups(fitted, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    fitted.save(tmp_path / "model.eqsep")
    loaded = load_model(tmp_path / "model.eqsep")
    assert loaded.plan_.is_same(fitted.plan_)
    new = runs(5, seed=2)[["a", "b", "c"]]
    assert_array_equal(loaded.p_value(new), fitted.p_value(new))
    fitted.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    inputs = {name: new[name].to_numpy() for name in new}
    names = [output.name for output in session.get_outputs()]
    got = dict(zip(names, session.run(None, inputs), strict=True))
    p = fitted.p_value(new)
    assert np.mean(np.abs(got["p_value"].ravel() - p) < 1e-9) > 0.98
    assert_array_equal(got["label"].ravel().astype(int), fitted.predict(new))


def sensors(n: int, seed: int = 0) -> np.ndarray:
    """Four columns, three of which follow themselves."""
    noise = np.random.default_rng(seed).normal(size=(n, 4))
    noise[:, :3] = lfilter([1.0], [1.0, -0.9], noise[:, :3], axis=0)
    return noise


@pytest.mark.parametrize("name", [None, "machine"])
def test_rows_that_follow_each_other_are_said_and_the_option_is_named(name):
    rows = pd.DataFrame(sensors(600), columns=list("abcd"))
    if name is not None:
        rows = rows.assign(machine=np.repeat([f"m{i}" for i in range(12)], 50))
    looks = r"time \(column 'machine' looks like it\)\." if name else r"time\."
    hint = rf"Pass groups={repr(name) if name else ''}, which of these each row is from, or time=\."
    with pytest.warns(DependentRowsWarning, match=f"{looks} {hint}"):
        detector().fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DependentRowsWarning)
        detector().fit(rows.sample(frac=1, random_state=0))
        detector().fit(rows, time=np.arange(600))


def test_the_promise_holds_for_independent_rows_that_are_sorted_and_shuffling_ends_the_warning():
    alarms = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, new = rng.normal(size=(400, 2)), rng.normal(size=(2000, 2))
        rows = rows[np.argsort(rows[:, 0])] + 0.01 * rng.normal(size=(400, 2))
        with pytest.warns(DependentRowsWarning, match="only sorted, the rate holds: shuffle them"):
            by_order = detector(false_alarm_rate=0.1).fit(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DependentRowsWarning)
            shuffled = detector(false_alarm_rate=0.1).fit(rng.permutation(rows))
        alarms.append([fitted.predict(new).mean() for fitted in (by_order, shuffled)])
    assert (np.mean(alarms, axis=0) < 0.1 + 2 * np.std(alarms, axis=0) / 20**0.5).all()


def test_a_slow_sensor_is_not_taken_for_a_group():
    rows = pd.DataFrame(sensors(600), columns=list("abcd"))
    slow = np.repeat(np.random.default_rng(0).normal(size=120), 5)  # every fifth row
    code = np.zeros(600, dtype=int)
    (found,) = check_dependence(read_table(rows.assign(slow=slow), name="Detector"), code)
    assert "looks like it" not in found.message
    numbered = rows.assign(slow=slow, run=np.repeat(np.arange(24), 25))
    (found,) = check_dependence(read_table(numbered, name="Detector"), code)
    assert "(column 'run', which never decreases, looks like it)" in found.message
    assert found.fields == {"time": "run"}
    named = rows.assign(price=np.repeat(np.arange(24)[::-1], 25), month=numbered["run"])
    (found,) = check_dependence(read_table(named, name="Detector"), code)
    assert "(column 'month', which never decreases, looks like it)" in found.message
    few = rows.assign(run=np.repeat(np.arange(12), 50))  # as times they would be too few
    (found,) = check_dependence(read_table(few, name="Detector"), code)
    assert "(column 'run' looks like it)" in found.message
    assert found.fields == {"group": "run"}


def test_three_sites_are_too_few_to_hold_some_out():
    rows = pd.DataFrame(sensors(600), columns=list("abcd"))
    rows = rows.assign(site=np.repeat(["north", "south", "west"], 200))
    (found,) = check_dependence(read_table(rows, name="Detector"), np.zeros(600, dtype=int))
    assert found.fields == {}


def test_of_several_columns_that_may_tell_the_run_the_one_with_most_runs_is_named():
    years = np.repeat(range(12), 50)
    storm = np.repeat([f"storm {i}" for i in range(120)], 5)
    rows = pd.DataFrame(sensors(600), columns=list("abcd")).assign(year=years, storm=storm)
    (found,) = check_dependence(read_table(rows, name="Detector"), np.zeros(600, dtype=int))
    assert "(column 'storm' looks like it)" in found.message
    assert found.fields == {"group": "storm"}


def test_the_hint_names_the_column_that_looks_like_times():
    rows = pd.DataFrame(sensors(600), columns=list("abcd")).assign(year=np.repeat(range(24), 25))
    code = np.zeros(600, dtype=int)
    (found,) = check_dependence(read_table(rows, name="Detector"), code)
    assert "(column 'year', which never decreases, looks like it)" in found.message
    assert "each row is from, or time='year'. If" in found.hint
    dated = rows.assign(at=pd.date_range("2001-01-01", periods=600))
    (found,) = check_dependence(read_table(dated, name="Detector"), code)
    assert "(column 'at' looks like it)" in found.message
    assert "each row is from, or time='at'. If" in found.hint


def test_a_process_in_order_is_said_to_follow_itself_and_shuffled_rows_never_are():
    process = make_process(n_normal_runs=4, n_fault_runs=0, n_rows=100, random_state=0)
    table = read_table(process.X, name="Detector")
    order = np.random.default_rng(0).permutation(table.n_rows)
    code = np.zeros(table.n_rows, dtype=int)
    assert len(check_dependence(table, code)) == 1
    assert not check_dependence(table.take(order), code)
    for seed in range(50):  # nor rows that are few
        few = read_table(sensors(120, seed)[order[order < 120]], name="Detector")
        assert not check_dependence(few, np.zeros(120, dtype=int))


def test_one_column_that_moves_slowly_is_enough():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 8))
    rows[:, 0] = np.cumsum(rows[:, 0])  # one temperature among noise
    code = np.zeros(400, dtype=int)
    (said,) = check_dependence(read_table(rows, name="Detector"), code)
    assert "'x0'" in said.message
    assert not check_dependence(read_table(rng.permutation(rows), name="Detector"), code)


def test_runs_of_a_test_bench_follow_themselves(home_of):
    paths = sorted((home_of("skab") / "skab").glob("*/*.csv"))
    found = []
    for path in (path for path in paths if path.parent.name != "anomaly-free"):
        rows = pd.read_csv(path, sep=";").iloc[:400, 1:9]
        found += [bool(check_dependence(read_table(rows, name="x"), np.zeros(400, dtype=int)))]
    assert np.mean(found) >= 0.9


def test_a_column_that_holds_no_times_is_said():
    with pytest.raises(UserError, match=r"'run' does not hold times: .* such as 'run 0'"):
        detector().fit(X, Y, time="run")


def test_how_many_rows_are_held_out():
    sizes = (10, 300, 1000, 50_000, 200_000, 1_000_000)
    want = [5, 99, 199, 3999, 7999, 19_999]
    assert [n_held_out(n, config=Config()) for n in sizes] == want
    assert [groups_needed(rate) for rate in (0.01, 0.1)] == [198, 18]
