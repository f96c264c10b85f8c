"""Rows in groups and in time: whole groups calibrate, in pieces too, and the rate is kept."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from typer.testing import CliRunner

from eqsep import Detector, load_model
from eqsep.checks import DependentRowsWarning
from eqsep.cli import app
from eqsep.datasets import make_process
from eqsep.detector import CalibrationWarning, grouping
from eqsep.detector.grouping import Grouping, held_out_groups
from eqsep.detector.holdout import check_dependence, with_groups
from eqsep.detector.scoring import Calibration
from eqsep.errors import UserError
from eqsep.tables.reading import RowGroups, read_table

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


TABLE = runs(120)
X, Y = TABLE[["a", "b", "c", "run"]], TABLE["kind"]


def detector(**more) -> Detector:
    settings = {"n_landmarks": 60, "bandwidth": 1.0, "false_alarm_rate": RATE, "random_state": 0}
    return Detector(**settings | more)


@pytest.fixture(scope="module")
def fitted() -> Detector:
    return detector().fit(X, Y, groups="run")


def assert_same(one: Detector, other: Detector) -> None:
    for mine, theirs in zip(one.calibration_.held, other.calibration_.held, strict=True):
        assert_array_equal(mine, theirs)
    assert_allclose(one.coef_, other.coef_, atol=1e-8)
    assert one.threshold_ == pytest.approx(other.threshold_)


def test_whole_groups_calibrate_and_no_normal_row_of_them_is_learnt(fitted):
    n_held = fitted.calibration_.n_units
    assert n_held == held_out_groups(120, rate=RATE) == 49
    assert fitted.calibration_.least_rate == 1 / (n_held + 1)
    sizes = np.unique(fitted.calibration_.groups, return_counts=True)[1]
    assert set(sizes) <= {15, 30}  # all normal rows of a run
    n_normal = (Y == "normal").sum()
    learnt = fitted.model_.evidence.sums.weight
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


def test_of_large_groups_some_rows_calibrate_the_same_ones_in_pieces(monkeypatch):
    monkeypatch.setattr(grouping, "MOST_IN_GROUPS", 300)
    whole = detector().fit(X, Y, groups="run")
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
    told = r"99 held-out time blocks of normal rows, and there are \d+\. Add rows of a longer time,"
    with pytest.warns(CalibrationWarning, match=told):
        detector(false_alarm_rate=0.01).fit(X.loc[few, ["a", "b"]], Y[few], time=range(few.sum()))
    with pytest.raises(UserError, match="at least 2 groups"):
        detector().fit(X[:30], Y[:30], groups="run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.partial_fit(X[["a", "b", "c"]], Y), "pass groups='run'"),
        (lambda _: detector().fit(X, Y, groups="ran"), "'ran' is no column"),
        (lambda _: detector().fit(X[["a", "b", "c"]], Y, groups=[1, 2]), "2 values"),
        (lambda _: detector().fit(X.replace({"run": {"run 7": None}}), Y, groups="run"), "row 211"),
        (lambda _: detector().fit([X, X], groups=Y), "name of a column"),
        (lambda _: detector(confidence=0.9).fit(X, Y, groups="run"), "confidence"),
        (
            lambda _: detector().fit(X[["a"]], Y).partial_fit(X[["a"]], Y, groups=Y),
            "not told groups",
        ),
        (lambda _: detector().fit(X, Y, time=np.ones(len(X))), "same time"),
        (lambda d: d.p_value(X, groups="ran"), "'ran' is no column"),
        (lambda d: d.p_value(X, groups=3), "one value for each row, or be a name, got 3"),
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
    plan = found.plan_
    labels = found.labels_.trusting_unlabelled()
    learnt, kept, _ = plan.divided(table, replace(labels, code=np.zeros(n, dtype=int)))
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


def test_a_time_has_its_block_whatever_else_is_there():
    grouping = Grouping(("", ""), (0.0, 10.0, 30.0))
    time = np.array([-1.0, 0.0, 9.9, 10.0, 29.0, 30.0, 31.0, 44.0, 46.0])
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


def test_bandwidths_are_compared_on_whole_groups(monkeypatch):
    from eqsep.detector import bandwidth

    seen = []
    divisions = bandwidth._divisions

    def noted(rows, *args):
        seen.append((rows, list(divisions(rows, *args))))
        return iter(seen[-1][1])

    monkeypatch.setattr(bandwidth, "_divisions", noted)
    detector(bandwidth=None).fit(X, Y, groups="run")
    rows, parts = seen[0]
    for part in parts:
        held = np.concatenate([part.held_normal, part.held_anomalous])
        assert len(held) > 300
        assert not set(rows.groups[held]) & set(rows.groups[part.train])


def test_commands(tmp_path):
    path, model = str(tmp_path / "rows.csv"), str(tmp_path / "m.eqsep")
    TABLE.drop(columns="time").to_csv(path, index=False)
    options = ["--label", "kind", "--out", model]
    fit = ["fit", path, "--group", "run", "--false-alarm-rate", "0.1", "--landmarks", "60"]
    done = CliRunner().invoke(app, [*fit, *options, "--report", str(tmp_path / "r.html")])
    assert done.exit_code == 0, done.output
    assert "at most 10.00% of new normal rows of new groups" in done.output
    assert "by 49 held-out groups" in done.output
    assert "rows of new groups" in " ".join((tmp_path / "r.html").read_text().split())
    before = load_model(model)
    assert before.plan_.holdout.grouping.columns == ("run", None)
    for command in (["learn", "--again"], ["forget"]):
        done = CliRunner().invoke(app, [*command, model, path, *options])
        assert done.exit_code == 0, done.output
    assert_same(load_model(model), before)
    assert (
        CliRunner().invoke(app, ["score", model, path, "--out", str(tmp_path / "s.csv")]).exit_code
        == 0
    )
    twice = CliRunner().invoke(app, [*fit, "--label", "run", "--out", model])
    assert "cannot be two of" in twice.output


def test_commands_in_batches_and_on_a_cluster(tmp_path, monkeypatch):
    from eqsep.commands import training_data

    path, model = str(tmp_path / "rows.csv"), str(tmp_path / "m.eqsep")
    TABLE.to_csv(path, index=False)
    fit = ["fit", path, "--label", "kind", "--group", "run", "--time", "time", "--landmarks", "60"]
    assert CliRunner().invoke(app, [*fit, "--out", model]).exit_code == 0
    monkeypatch.setattr(training_data, "LARGE", 100)
    done = CliRunner().invoke(app, [*fit, "--out", f"{model}2"])
    assert done.exit_code == 0, done.output
    whole, batches = load_model(model), load_model(f"{model}2")
    assert batches.plan_.holdout.grouping.columns == ("run", "time")
    assert_same(batches, whole)


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
    looks = r"\(column 'machine' looks like it\)" if name else "from, or"
    with pytest.warns(DependentRowsWarning, match=rf"groups=, .*{looks}"):
        detector().fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DependentRowsWarning)
        detector().fit(rows.sample(frac=1, random_state=0))
        detector().fit(rows, time=np.arange(600))


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
    assert "'x0'" in said.told
    assert not check_dependence(read_table(rng.permutation(rows), name="Detector"), code)


def test_runs_of_a_test_bench_follow_themselves(home_of):
    paths = sorted((home_of("skab") / "skab").glob("*/*.csv"))
    for path in (path for path in paths if path.parent.name != "anomaly-free"):
        rows = pd.read_csv(path, sep=";").iloc[:400, 1:9]
        assert check_dependence(read_table(rows, name="Detector"), np.zeros(400, dtype=int)), path


def test_a_column_that_holds_no_times_is_said():
    with pytest.raises(UserError, match=r"'run' holds no times: .* such as 'run 0'"):
        detector().fit(X, Y, time="run")


def test_rows_to_learn_without_their_group_are_told_why_it_is_needed(fitted, tmp_path):
    fitted.save(tmp_path / "m.eqsep")
    TABLE.drop(columns=["run", "time"])[:40].to_csv(tmp_path / "rows.csv", index=False)
    for command in ("learn", "forget"):
        words = [command, str(tmp_path / "m.eqsep"), str(tmp_path / "rows.csv"), "--label", "kind"]
        done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "n.eqsep")])
        assert done.exit_code == 2
        assert "by it the model holds out whole groups" in done.output


def test_a_time_that_is_misspelt_is_said(tmp_path):
    path = str(tmp_path / "rows.csv")
    TABLE.to_csv(path, index=False)
    fit = ["fit", path, "--label", "kind", "--time", "tiem", "--out", str(tmp_path / "m.eqsep")]
    done = CliRunner().invoke(app, fit)
    assert done.exit_code == 2
    assert "no column 'tiem'" in done.output


@pytest.mark.parametrize(
    ("n_runs", "told"),
    [
        (120, "rows of new groups raise"),
        (6, "rows of new time blocks of known groups raise"),
    ],
)
def test_a_promise_in_time_speaks_of_groups_where_there_are_enough(n_runs, told, tmp_path):
    path = str(tmp_path / "rows.csv")
    TABLE[: 30 * n_runs].to_csv(path, index=False)
    options = ["--label", "kind", "--group", "run", "--time", "time", "--landmarks", "60"]
    rate = ["--false-alarm-rate", "0.2", "--out", str(tmp_path / "m.eqsep")]
    done = CliRunner().invoke(app, ["fit", path, *options, *rate])
    assert done.exit_code == 0, done.output
    assert told in done.output
    assert ("nothing of new groups, which takes 8 groups or more" in done.output) == (n_runs == 6)


def test_rows_without_a_label_are_no_kind_in_a_report(tmp_path):
    path, page = str(tmp_path / "rows.csv"), tmp_path / "r.html"
    partly = TABLE.drop(columns="time")
    partly["kind"] = partly["kind"].where(np.arange(len(partly)) % 3 > 0)
    partly.to_csv(path, index=False)
    options = ["--label", "kind", "--group", "run", "--false-alarm-rate", "0.1"]
    out = ["--landmarks", "60", "--out", str(tmp_path / "m.eqsep"), "--report", str(page)]
    done = CliRunner().invoke(app, ["fit", path, *options, "--drop", "c", *out])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "None" not in text
    assert "of new normal rows of new groups, at most, on average" in text
    assert "raise an alarm on average over the groups (standard error" in text
    told = CliRunner().invoke(app, ["info", str(tmp_path / "m.eqsep")]).output
    assert "columns     2: 2 numbers; without c\n" in told
    assert "held out by group; groups by column 'run', not learnt" in told
