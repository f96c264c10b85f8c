"""The monitor: a word that rows have changed is seldom wrong, and soon said when it is right."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from report_page import Page

from eqsep import Detector, Monitor
from eqsep.checks import DependentRowsWarning
from eqsep.cli import app
from eqsep.detector import Config
from eqsep.errors import UserError
from eqsep.monitor.martingale import SequentialRanks, SimpleJumper
from eqsep.monitor.monitor import chance_at, far_off, too_many
from eqsep.report import html, watch_report
from eqsep.tables.encoder import Encoder


@pytest.fixture
def detector():
    X = np.random.default_rng(0).normal(size=(1_000, 2))
    return Detector(n_landmarks=60, bandwidth=1.0, random_state=0).fit(X)


def highest_capital(scores, rng, *, n_held):
    ranks, jumper, highest = SequentialRanks(scores[:n_held]), SimpleJumper(), 1.0
    for score, tie in zip(scores[n_held:], rng.random(len(scores) - n_held), strict=True):
        jumper.bet(ranks.p_value(score, tie=tie))
        highest = max(highest, jumper.capital)
    return highest


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda r, n: r.normal(size=n), marks=pytest.mark.extra),
        lambda r, n: r.poisson(1.0, n),  # with ties
    ],
)
def test_shuffled_rows_are_wrongly_called_changed_at_most_so_often(draw):
    """300 streams of 300 rows after 99 held-out ones; where scores tie, too."""
    highest = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        highest.append(highest_capital(draw(rng, 399).tolist(), rng, n_held=99))
    for delta in (0.01, 0.05, 0.2):
        error = np.sqrt(delta * (1 - delta) / len(highest))
        assert np.mean(np.array(highest) >= 1 / delta) <= delta + 2 * error


@pytest.mark.extra
def test_quiet_rows_alone_are_wrongly_called_changed_at_most_so_often():
    """150 streams of normal rows among anomalies, after fits of their own."""
    broken = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        model = Detector(n_landmarks=20, bandwidth=1.0, false_alarm_rate=0.05, random_state=0)
        model.fit(rng.normal(size=(300, 1)))
        X = rng.normal(size=(800, 1))
        X[rng.random(800) < 0.1] += 9.0
        broken.append(Monitor(model, delta=0.1, quiet_only=True).update(X).broken_at is not None)
    assert np.mean(broken) <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 150)


def test_anomalies_are_no_drift_where_quiet_rows_alone_bet(detector, tmp_path):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2_000, 2))
    X[rng.random(2_000) < 0.2] += 8.0
    every, quiet = Monitor(detector), Monitor(detector, quiet_only=True)
    assert every.update(X).broken_at < 1_000
    assert every.shifts()[0].standard_errors > 5
    watched = quiet.update(X[:1_100])
    assert (watched.rows, watched.broken_at) == (1_100, None)
    quiet.save(tmp_path / "watched")
    quiet = Monitor.load(tmp_path / "watched", detector)  # goes on as it was
    whole = Monitor(detector, quiet_only=True)
    assert quiet.update(X[1_100:]) == whole.update(X)
    assert_array_equal(quiet.history.rows, whole.history.rows)
    assert quiet.recent() == whole.recent()
    assert whole.watched.broken_at is None
    assert whole.recent().too_many
    assert abs(whole.shifts()[0].standard_errors) < 4
    assert 2_000 < whole.update(rng.normal((1.2, 0), size=(500, 2))).broken_at < 2_300


def test_groups_bet_by_their_quiet_rows():
    rng = np.random.default_rng(0)
    host, X = np.repeat(np.arange(300), 5), rng.normal(size=(1_500, 2))
    model = Detector(n_landmarks=40, bandwidth=1.0, random_state=0, config=Config.fast())
    model.fit(X, groups=host)
    host, X = np.repeat(np.arange(1_000, 1_200), 5), rng.normal(size=(1_000, 2))
    X[host % 10 < 3] += 8.0
    assert Monitor(model).update(X, groups=host).broken_at is not None
    watched = Monitor(model, quiet_only=True).update(X, groups=host)
    assert watched.broken_at is None
    assert 130 < watched.units <= 140


def test_the_capital_is_a_martingale():
    """One row more gains nothing on average, over p that are spread evenly."""
    jumper, rng = SimpleJumper(), np.random.default_rng(0)
    for p in rng.random(50):
        jumper.bet(p)
        after = []
        for other in (np.arange(100) + 0.5) / 100:
            copy = SimpleJumper()
            copy.accounts, copy.n = jumper.accounts, jumper.n
            copy.bet(other)
            after.append(copy.capital)
        assert_allclose(np.mean(after), jumper.capital, rtol=1e-12)


def plain_jumper(p):
    """Algorithm 8.1 of Algorithmic Learning in a Random World: the capital after all of p."""
    accounts = np.full(3, 1 / 3)
    for one in p:
        accounts = 0.99 * accounts + 0.01 * accounts.sum() / 3
        accounts *= 1 + np.array([-1, 0, 1]) * (one - 0.5)
    return accounts.sum()


def test_the_capital_is_the_mean_of_simple_jumpers_that_begin_at_every_row():
    p, jumper = np.random.default_rng(1).beta(0.7, 1.0, size=80), SimpleJumper()
    for one in p:
        jumper.bet(one)
    left = 0.5 / np.log(np.e + np.arange(81))
    begun = sum((left[k] - left[k + 1]) * plain_jumper(p[k:]) for k in range(80))
    assert_allclose(jumper.capital, 0.5 * plain_jumper(p) + begun + left[80], rtol=1e-12)


@pytest.mark.parametrize("quiet", [0, 2_000])
def test_changed_rows_are_soon_called_so(detector, quiet):
    rng = np.random.default_rng(3)
    monitor = Monitor(detector)
    if quiet:
        assert monitor.update(rng.normal(size=(quiet, 2))).broken_at is None
    watched = monitor.update(rng.normal((1.5, 0), size=(600, 2)))
    assert quiet < watched.broken_at < quiet + 200
    assert monitor.shifts()[0].column == "x0"
    assert monitor.shifts()[0].standard_errors > 10
    assert watched.alarm_rate > 0.01


@pytest.mark.parametrize("sizes", [[400], [1] * 30 + [370], [100, 0, 300]])
def test_states_that_are_saved_in_between_change_nothing(detector, tmp_path, sizes):
    """Rows repeat, so that ties are broken."""
    X = np.round(np.random.default_rng(4).normal(0.3, 1, size=(400, 2)))
    whole = Monitor(detector, delta=0.05, random_state=7)
    whole.update(X)
    path, start = tmp_path / "state.npz", 0
    Monitor(detector, delta=0.05, random_state=7).save(path)
    for size in sizes:
        monitor = Monitor.load(path, detector)
        if size:
            monitor.update(X[start : start + size])
        monitor.save(path)
        start += size
    again = Monitor.load(path, detector)
    assert again.watched == whole.watched
    assert again.delta == 0.05
    for mine, other in zip(again.shifts(), whole.shifts(), strict=True):
        assert_allclose(mine.standard_errors, other.standard_errors, rtol=1e-6)
    assert_allclose(again.history.martingale, whole.history.martingale)
    assert_array_equal(again.history.alarms, whole.history.alarms)
    assert again.history.rows.tolist() == list(range(50, 401, 50))


def test_columns_are_compared_by_the_last_two_blocks_of_rows(detector):
    X = np.random.default_rng(8).normal(np.linspace(0, 1, 1_730)[:, None], 1, size=(1_730, 2))
    monitor = Monitor(detector)
    for part in np.split(X, [10, 499, 500, 501, 1_300]):
        monitor.update(part)
    Z, held = (detector.plan_.encode(X[1_000:]), detector.model_.evidence.held_out.normal)
    error = np.sqrt(Z.var(axis=0) / len(Z) + held.var(axis=0) / len(held))
    away, source = (Z.mean(axis=0) - held.mean(axis=0)) / error, detector.plan_.encoder.source
    wanted = {f"x{column}": np.abs(away[source == column]).max() for column in (0, 1)}
    found = {shift.column: abs(shift.standard_errors) for shift in monitor.shifts()}
    assert found == pytest.approx(wanted, rel=1e-3)


def test_what_a_model_learns_begins_a_new_episode(detector, tmp_path):
    rng = np.random.default_rng(5)
    monitor = Monitor(detector)
    monitor.update(rng.normal(3, 1, size=(200, 2)))
    assert monitor.watched.broken_at is not None
    monitor.save(tmp_path / "state")
    more = rng.normal(size=(300, 2))
    detector.partial_fit(more)
    watched = monitor.update(rng.normal(size=(100, 2)))
    assert (watched.episode, watched.rows, watched.broken_at) == (2, 100, None)
    assert (monitor.before.episode, monitor.before.rows) == (1, 200)
    loaded = Monitor.load(tmp_path / "state", detector)
    assert (loaded.watched.episode, loaded.watched.rows) == (2, 0)
    assert loaded.before.rows == 200
    assert not len(loaded.history.rows)
    detector.forget(more)
    assert monitor.update(rng.normal(size=(10, 2))).episode == 3
    detector.false_alarm_rate = 0.1  # teaches nothing
    assert monitor.update(rng.normal(size=(10, 2))).episode == 3


def test_the_history_is_what_was_seen_at_each_point(detector):
    X = np.random.default_rng(9).normal((0.0, 0.4), 1, size=(1_040, 2))
    monitor, points = Monitor(detector), []
    for part in np.split(X, np.arange(50, 1_040, 50)):
        watched = monitor.update(part)
        points.append((watched.rows, watched.martingale, watched.alarms))
        if watched.rows == 1_000:
            shifts = {one.column: one.standard_errors for one in monitor.shifts()}
    history = Monitor(detector)
    history.update(X)
    history = history.history
    drawn = zip(history.rows, history.martingale, history.alarms, strict=True)
    assert_allclose(list(drawn), points[:-1])
    assert history.shift_rows.tolist() == [500, 1_000]
    assert {name: moves[1] for name, moves in history.shifts.items()} == pytest.approx(shifts)


def test_ranks_are_those_among_all_before():
    scores = np.random.default_rng(0).integers(0, 9, 60)
    ranks, ties = SequentialRanks(scores[:20]), np.random.default_rng(1).random(60)
    for i in range(20, 60):
        before = scores[: i + 1]
        above, equal = (before > scores[i]).sum(), (before == scores[i]).sum()
        p = ranks.p_value(int(scores[i]), tie=ties[i])
        assert_allclose(p, (above + ties[i] * equal) / (i + 1))
    assert_array_equal(ranks.ordered, np.sort(scores))


def test_what_is_no_state_is_refused(detector, tmp_path):
    (tmp_path / "text").write_text("rows")
    np.savez(tmp_path / "other.npz", words=np.array(json.dumps({"form": "other"})))
    Monitor(detector).save(tmp_path / "whole")
    with np.load(tmp_path / "whole") as kept:
        np.savez(tmp_path / "without.npz", **{n: kept[n] for n in kept if n != "points"})
    for name in ("text", "other.npz", "without.npz"):
        with pytest.raises(UserError, match="does not hold the state of a monitor"):
            Monitor.load(tmp_path / name, detector)
    for delta in (0, 1, "low"):
        with pytest.raises(UserError, match="delta must be a number between 0 and 1"):
            Monitor(detector, delta=delta)
    with pytest.raises(UserError, match="random_state must be a whole number"):
        Monitor(detector, random_state=-1)


def test_the_command_goes_on_from_its_state(detector, tmp_path, capsys):
    rng = np.random.default_rng(6)
    for name, mean in (("a", 0.0), ("b", 2.0)):
        rows = rng.normal((mean, 0), size=(300, 2))
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header="a,b", comments="")
    detector.save(tmp_path / "m.eqsep")

    def watch(*words):
        with pytest.raises(SystemExit) as ended:
            app(["watch", str(tmp_path / "m.eqsep"), *words, "--exit-code"])
        return ended.value.code, " ".join(capsys.readouterr().out.split())

    a, b, state = (str(tmp_path / name) for name in ("a.csv", "b.csv", "state"))
    code, told = watch(a, "--state", state)
    assert code == 0
    assert told.startswith("rows 300 in episode 1 changed no: martingale")
    code, told = watch(b, "--state", state)
    assert code == 1
    assert told.startswith("rows 600 in episode 1 changed yes, since row 3")
    assert re.search(r"moved in the last 600 rows: x0: higher, mean \S+ \(was \S+\)[; ]", told)
    assert "next fit again to newer rows if these are normal; --report shows which" in told
    assert watch(a, b) == (1, told)
    with pytest.raises(SystemExit):
        app(["watch", str(tmp_path / "m.eqsep"), a, "--state", state, "--delta", "0.2"])
    assert "was started with --delta 0.01: leave it out" in " ".join(
        capsys.readouterr().err.split()
    )


def test_the_command_says_why_an_episode_begins_selects_rows_and_draws(detector, tmp_path, capsys):
    rng = np.random.default_rng(6)
    rows = np.vstack([rng.normal(size=(600, 2)), [[9.0, 9.0]]])
    model, a, empty = (str(tmp_path / name) for name in ("m.eqsep", "a.csv", "empty.csv"))
    np.savetxt(a, rows, delimiter=",", header="a,b", comments="")
    Path(empty).write_text("a,b\n")
    page, picked, state = (str(tmp_path / name) for name in ("page.html", "picked.csv", "state"))
    detector.save(model)

    def watch(*words):
        with pytest.raises(SystemExit) as ended:
            app(["watch", model, *words])
        told = capsys.readouterr()
        return ended.value.code, " ".join(told.out.split()), " ".join(told.err.split())

    code, told, _ = watch(a, "--state", state, "--fdr", "0.1", "--alarms", picked)
    assert code == 0
    assert "new episode" not in told
    assert re.search(r"selected \d+ rows?, of which at most 10% .* in a memory of 20 rows", told)
    lines = Path(picked).read_text().splitlines()
    assert lines[0] == "row,score,p_value,kind,kind_probability"
    assert lines[-1].startswith("601,")
    detector.partial_fit(rng.normal(size=(200, 2))).save(model)
    code, told, _ = watch(a, "--state", state, "--report", page)
    assert "new episode the model has changed since episode 1, of 601 rows" in told
    shown = Page(Path(page).read_text())
    assert "The model has changed, so episode 2 has begun" in shown.whole
    assert [line[0] for line in shown.rows("Shift by column")[1:]] != []
    assert "The martingale, " in shown.whole
    before = Path(state).read_bytes()
    code, _, told = watch(empty, "--state", state)
    assert code == 2
    assert "empty.csv has no rows" in told
    assert Path(state).read_bytes() == before
    assert "Pass both --fdr and --alarms" in watch(a, "--fdr", "0.1")[2]


def test_what_the_fit_warned_of_is_said_again_and_voids_the_chance(tmp_path, capsys):
    """Rows in runs: a bound on a false word would be none, and groups are no way round it."""
    X = np.random.default_rng(0).normal(size=(1_000, 2)).cumsum(axis=0) / 10
    with pytest.warns(DependentRowsWarning):
        runs = Detector(n_landmarks=60, bandwidth=1.0, random_state=0).fit(X)
    with pytest.warns(DependentRowsWarning, match="Pass groups="):
        monitor = Monitor(runs)
    assert "unknown" in monitor.chance
    model, a, page = (str(tmp_path / name) for name in ("m.eqsep", "a.csv", "page.html"))
    runs.save(model)
    np.savetxt(a, X[:400] + 5, delimiter=",", header="a,b", comments="")
    with pytest.raises(SystemExit):
        app(["watch", model, a, "--report", page])
    told = capsys.readouterr()
    assert "changed yes" in (out := " ".join(told.out.split()))
    assert "a false report with unknown probability" in out
    assert "at most 0.01" not in out
    assert "with --group COLUMN" in " ".join(told.err.split())
    shown = Page(Path(page).read_text()).whole
    assert "The fit warned: " in shown
    assert "probability at most" not in shown


def runs_of(rng, n_runs, *, n_rows=20, shift=0.0, first=0):
    """Rows of runs, each around a mean of its own."""
    means = rng.normal(size=(n_runs, 1, 2)) + shift
    rows = (means + 0.3 * rng.normal(size=(n_runs, n_rows, 2))).reshape(-1, 2)
    frame = pd.DataFrame(rows, columns=["a", "b"])
    return frame.assign(
        run=np.repeat([f"r{i}" for i in range(first, first + n_runs)], n_rows),
        minute=np.tile(np.arange(n_rows), n_runs),
    )


def by_run(**settings):
    settings = {"n_landmarks": 60, "bandwidth": 1.0, "false_alarm_rate": 0.1} | settings
    detector = Detector(**settings, random_state=0, config=Config.fast())
    return detector.fit(runs_of(np.random.default_rng(0), 120).drop(columns="minute"), groups="run")


def test_runs_that_are_alike_within_are_one_bet_each():
    """Whole runs are exchangeable, their rows are not: one by one they would be called changed."""
    detector = by_run()
    highest = []
    for seed in range(1, 31):
        watched = Monitor(detector).update(
            runs_of(np.random.default_rng(seed), 60).drop(columns="minute")
        )
        highest.append(watched.highest)
        assert watched.units == 59  # the last may go on
        assert watched.rows == 1_200
    assert np.mean(np.array(highest) >= 10) <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 30)
    rng = np.random.default_rng(1)
    changed = Monitor(detector).update(runs_of(rng, 60, shift=4.0).drop(columns="minute"))
    assert changed.broken_at is not None
    assert changed.broken_at % 20 == 0  # a run has ended then
    moved = Monitor(detector)
    moved.update(runs_of(rng, 120, shift=np.array([3.0, 0.0])).drop(columns="minute"))
    assert moved.recent().moved[0].column == "a"
    assert not moved.recent().too_many


def test_runs_and_windows_go_on_in_pieces_and_from_a_file(tmp_path):
    detector = by_run(window=4)
    rows = runs_of(np.random.default_rng(1), 30).drop(columns="minute")
    whole, pieces = Monitor(detector), Monitor(detector)
    whole.update(rows)
    for start in range(0, len(rows), 37):
        pieces.update(rows[start : start + 37])
        pieces.save(tmp_path / "state")
        pieces = Monitor.load(tmp_path / "state", detector)
    assert pieces.watched.units == 29
    assert pieces.watched == whole.watched
    assert_allclose(
        [s.standard_errors for s in pieces.shifts()], [s.standard_errors for s in whole.shifts()]
    )
    alarms = detector.predict(rows).sum()
    assert whole.watched.alarms == alarms  # windows, as when all rows are scored at once


def test_runs_that_come_side_by_side_are_known_apart():
    detector = by_run()
    rows = runs_of(np.random.default_rng(1), 40)
    one_by_one, mixed = Monitor(detector), Monitor(detector)
    one_by_one.update(rows.drop(columns="minute"))
    pairs = rows.assign(pair=np.arange(len(rows)) // 40).sort_values(["pair", "minute"])
    mixed.update(pairs.drop(columns=["minute", "pair"]))
    assert mixed.watched.units >= 37
    assert mixed.watched.alarms == one_by_one.watched.alarms
    with pytest.raises(UserError, match="The first fit had groups from the column 'run'"):
        mixed.update(rows[["a", "b"]])


@pytest.mark.parametrize("named", [True, False])
def test_blocks_of_time_are_one_bet_each_and_row_numbers_may_be_the_times(named):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(2_000, 2)), columns=["a", "b"])
    settings = {"n_landmarks": 60, "bandwidth": 1.0, "false_alarm_rate": 0.1, "random_state": 0}
    time = np.arange(2_000.0)
    detector = Detector(**settings)
    if named:
        detector.fit(rows.assign(second=time), time="second")
    else:
        detector.fit(rows, time=time)
    new = pd.DataFrame(rng.normal(size=(900, 2)), columns=["a", "b"])
    monitor = Monitor(detector)
    if named:
        with pytest.raises(UserError, match="The first fit had time from the column 'second'"):
            monitor.update(new)
    monitor.update(new[:400], ordered=named)
    watched = monitor.update(new[400:], ordered=named)
    assert watched.rows == 900
    assert 35 <= watched.units <= 40  # of about 22 rows
    assert watched.broken_at is None
    assert Monitor(detector).update(new, time=time[:900]) == watched


def test_the_command_watches_runs_with_windows_from_file_to_file(tmp_path, capsys):
    detector = by_run(window=4)
    detector.save(model := tmp_path / "m.eqsep")
    rows = runs_of(np.random.default_rng(1), 30).drop(columns="minute")
    for name, part in (("a", rows[:310]), ("b", rows[310:]), ("all", rows)):
        part.to_csv(tmp_path / f"{name}.csv", index=False)

    def watch(*words):
        with pytest.raises(SystemExit) as ended:
            app(["watch", str(model), *map(str, words)])
        assert ended.value.code == 0
        return capsys.readouterr().out

    told = watch(tmp_path / "all.csv")
    watch(tmp_path / "a.csv", "--state", tmp_path / "state")
    assert watch(tmp_path / "b.csv", "--state", tmp_path / "state") == told
    assert "600 in episode 1, 29 groups ended" in told
    assert "are promised, on average over groups\n" in told
    assert "columns are not judged yet: that takes 100 groups, and there are 29\n" in told
    rows.drop(columns="run").to_csv(tmp_path / "no_run.csv", index=False)
    with pytest.raises(SystemExit):
        app(["watch", str(model), str(tmp_path / "no_run.csv")])
    assert "'run' is missing" in " ".join(capsys.readouterr().err.split())


def test_absurd_rows_of_one_group_are_to_be_looked_at_and_columns_are_not_judged():
    """One group cannot move the bet, but its alarms are far more than are promised."""
    detector = by_run().set_params(false_alarm_rate=0.04)
    monitor = Monitor(detector)
    rows = runs_of(np.random.default_rng(1), 1, n_rows=10).drop(columns="minute")
    rows.loc[:8, ["a", "b"]] = 1e6
    assert monitor.update(rows).units == 0
    recent = monitor.recent()
    assert (recent.rows, recent.alarms, recent.too_many) == (10, 9, True)
    assert "the last 10 rows raised more alarms than promised" in recent.told
    assert "that takes 100 groups, and there are 0" in html(watch_report(monitor))
    assert "inf standard errors" not in html(watch_report(monitor))
    usual = Monitor(detector)
    usual.update(runs_of(np.random.default_rng(2), 1, n_rows=10).drop(columns="minute"))
    assert not usual.recent().told


def test_the_command_takes_row_numbers_for_times(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(1_000, 2)), columns=["a", "b"])
    settings = {"n_landmarks": 60, "bandwidth": 1.0, "false_alarm_rate": 0.1, "random_state": 0}
    Detector(**settings).fit(rows.assign(at=np.arange(1_000)), time="at").save(
        model := tmp_path / "m.eqsep"
    )
    rows.to_csv(path := tmp_path / "rows.csv", index=False)
    with pytest.raises(SystemExit):
        app(["watch", str(model), str(path)])
    assert "had time from the column 'at'" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit):
        app(["watch", str(model), str(path), "--ordered"])
    assert "time blocks ended" in capsys.readouterr().out


def with_outliers(rng, *, share):
    rows = rng.normal(size=(1_200, 2))
    rows[rng.random(len(rows)) < share] = 9.0
    return rows


def folded(rng):
    """One column moves, and the scores, the same on either side, stay as they are."""
    rows = rng.normal(size=(1_200, 2))
    return np.c_[rows[:, 0], np.abs(rows[:, 1])]


def test_how_a_column_has_moved_is_said_in_its_words_and_units():
    rng, hour = np.random.default_rng(0), pd.Timedelta("1h")

    def rows(n, line="AAABBC", **others):
        day = pd.Timestamp("2026-01-01") + rng.integers(0, 30 * 24, n) * hour
        found = {"line": rng.choice([*line], n), "heat": rng.normal(50, 3, n), "day": day}
        return pd.DataFrame(found | others)

    old = rows(1500, gap=np.where(rng.random(1500) < 0.1, np.nan, 1.0 + rng.random(1500)))
    detector = Detector(n_landmarks=50, bandwidth=1.0, random_state=0).fit(old)
    share, heat = r"in \d+\.\d% of rows \(was \d+\.\d%\)", partial(rng.normal, scale=3, size=900)
    for column, changed, told in (
        ("line", {"line": "ABBBBC"}, f"'B' {share}, 'A' {share}"),
        ("line", {"line": "XYBBBC"}, r"missing or never learnt in 3\d\.\d% .* \(was 0\.0%\), .*"),
        ("heat", {"heat": heat(53)}, r"higher, mean 53\S* \(was 50\S*\)"),
        ("heat", {"heat": heat(48)}, r"lower, mean 48\S* \(was 50\S*\)"),
        ("gap", {"gap": np.nan}, r"missing in 100\.0% of rows \(was \d+\.\d%\)"),
        ("day", {"day": pd.Timestamp("2026-03-01")}, r"later, mean 2026-03-01 \(was 2026-01-1\d\)"),
    ):
        monitor = Monitor(detector)
        monitor.update(rows(900, **{"gap": 1.5} | changed))
        found = {one.column: one.change for one in monitor.recent().moved}
        assert re.fullmatch(told, found[column]), found


def jobs(rng, n):
    """Mostly 20 tries, no wait in half of the rows and a long tail, and two columns more."""
    tries = np.where(rng.random(n) < 0.6, 20.0, rng.integers(1, 60, n))
    wait = np.where(rng.random(n) < 0.5, 0.0, np.round(rng.lognormal(2, 1.5, n)))
    found = {"tries": tries, "wait": wait, "acid": rng.normal(1.8, 0.3, n).round(2)}
    return pd.DataFrame(found | {"line": rng.choice([*"ABC"], n, p=[0.7, 0.2, 0.1])})


def changed(column, change, *, share=1.0):
    """The rows with a column changed, in a part of them."""

    def rows(rng, n):
        found = jobs(rng, n)
        some = rng.random(n) < share
        return found.assign(**{column: found[column].where(~some, change(found[column]))})

    return rows


@pytest.fixture(scope="module")
def jobs_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("jobs") / "jobs.eqsep"
    detector = Detector(n_landmarks=50, bandwidth=1.0, random_state=0, config=Config.fast())
    detector.fit(jobs(np.random.default_rng(0), 3_000)).save(path)
    return path


def test_the_words_are_those_of_the_values_of_the_last_rows(jobs_model, tmp_path, capsys):
    def folded(wait):  # more zeros, and a longer tail
        return np.where(wait < 12, 0.0, 3 * wait)

    for column, rows, way in (
        ("tries", changed("tries", lambda x: 2 * x, share=0.25), "higher"),
        ("tries", changed("tries", lambda x: x // 2, share=0.6), "lower"),
        ("wait", changed("wait", lambda x: x + 3, share=0.6), "higher"),
        ("wait", changed("wait", lambda x: x // 3), "lower"),
        ("wait", changed("wait", folded), "distribution differs"),
        ("acid", changed("acid", lambda x: x - 0.5), "lower"),
        ("acid", changed("acid", lambda x: x + 0.5, share=0.5), "higher"),
        ("acid", changed("acid", lambda x: x * np.nan, share=0.1), None),
        ("acid", changed("acid", lambda x: (x + 1).where(x > 1.5)), "higher"),
        ("line", changed("line", lambda _: "A"), None),
        ("line", changed("line", lambda _: None, share=0.2), None),
    ):
        seen = rows(np.random.default_rng(1), 1_063)
        seen.to_csv(tmp_path / "new.csv", index=False)
        with pytest.raises(SystemExit):
            app(["watch", str(jobs_model), str(tmp_path / "new.csv")])
        out = " ".join(capsys.readouterr().out.split())
        assert " of the last 1,013; 1.00% of normal ones" in out
        line = re.search(r"moved in the last 563 rows: (.*?) look", out)[1]
        told, last = line.partition(f"{column}: ")[2].partition(";")[0], seen[column].tail(563)
        if way is not None:
            found = re.match(rf"{way}, mean (\S+) \(was (\S+)\)", told)
            assert found, (column, line)
            mean, was = map(float, found.groups())
            assert abs(mean - last.mean()) <= abs(mean - was) / 15, (column, line)
        gone = last.isna().mean()
        what = "missing or never learnt" if column == "line" else "missing"
        assert (f"{what} in {gone:.1%} of rows (was 0.0%)" in told) == (gone > 0), (column, line)
        assert gone == 0 or way or told.startswith(what)


def test_values_of_encoded_rows_are_those_of_the_table():
    rng = np.random.default_rng(0)
    rows = jobs(rng, 400).assign(same=7.0, two=rng.integers(0, 2, 400), at="2026-01-01")
    rows["at"] = pd.to_datetime(rows["at"]) + pd.to_timedelta(rng.integers(0, 10**6, 400), unit="s")
    rows["gap"] = np.where(rng.random(400) < 0.2, np.nan, rng.normal(size=400))
    encoder = Encoder.learn(rows)
    new = jobs(rng, 300).assign(same=9.0, two=1, at=rows["at"], gap=rows["gap"])
    new.loc[:50, ["tries", "same", "two", "at"]] = None
    new.loc[60, ["wait", "acid", "same"]] = [1e12, -1e9, -40.0]
    numbers = [column for column in new if column != "line"]
    expected = new[numbers].assign(at=new["at"].to_numpy().astype("datetime64[s]").astype(float))
    expected["at"] = expected["at"].where(new["at"].notna())
    found = encoder.with_values(encoder.encode(new))[:, -2 * len(numbers) :]
    assert_array_equal(found[:, len(numbers) :], expected.isna())
    assert_allclose(found[:, : len(numbers)], expected.fillna(0), rtol=1e-5, atol=1e-5)


def test_what_the_scores_do_not_show_is_to_be_looked_at(detector, tmp_path, capsys):
    model, path, page = (str(tmp_path / name) for name in ("m.eqsep", "a.csv", "page.html"))
    detector.save(model)

    def watch(rows):
        np.savetxt(path, rows, delimiter=",", header="a,b", comments="")
        with pytest.raises(SystemExit) as ended:
            app(["watch", model, path, "--exit-code", "--report", page])
        told = " ".join(capsys.readouterr().out.split())
        return ended.value.code, told, Page(Path(page).read_text()).whole

    rng = np.random.default_rng(3)
    code, told, shown = watch(rng.normal(size=(1_200, 2)))
    assert code == 0
    assert "changed no" in told
    assert "look" not in told
    assert "no sign of it" in shown
    code, told, shown = watch(folded(rng))
    assert code == 3
    assert "changed no" in told
    assert re.search(r"moved in the last 700 rows: x1: higher, mean \S+ \(was \S+\) look", told)
    assert re.search(r">higher, mean [\d.]+ \(was", shown)
    assert "look a column has moved by more than chance report" in told
    assert "not by the scores, but look" in shown
    code, told, _ = watch(with_outliers(np.random.default_rng(1), share=0.08))
    assert code == 3
    assert "changed no" in told
    assert "the last 1,000 rows raised more alarms than promised" in told
    assert re.search(r"alarms \d+\.\d\d% of the rows, \d+\.\d\d% of the last 1,000;", told)


def test_recent_alarms_are_those_of_the_last_rows(detector, tmp_path):
    rng, monitor = np.random.default_rng(4), Monitor(detector)
    assert monitor.recent().rows == 0
    monitor.update(with_outliers(rng, share=0.5))
    before = monitor.watched.alarms
    calm = np.zeros((1_030, 2))
    monitor.update(calm)
    assert (monitor.recent().rows, monitor.recent().alarms) == (1_030, 0)
    assert monitor.watched.alarms == before > 500
    assert not monitor.recent().too_many
    monitor.save(tmp_path / "state")
    assert Monitor.load(tmp_path / "state", detector).recent() == monitor.recent()


def test_looks_are_wrong_at_most_so_often():
    """2,000 episodes of 20 looks, by alarms above the 25th of 499 scores, and by five columns."""
    rng, delta, looks = np.random.default_rng(0), 0.1, np.arange(50, 1_001, 50)
    held, new = rng.random((2_000, 499)), rng.random((2_000, 1_000))
    above = new > np.sort(held, axis=1)[:, [-25]]
    alarms = above.cumsum(axis=1)[:, looks - 1]
    most = []
    for look, rows in enumerate(looks, start=1):
        told = {"rank": 25, "n_held": 499, "chance": chance_at(look, delta=delta)}
        most.append(next(n for n in range(rows + 1) if too_many(n, int(rows), **told)))
    error = np.sqrt(delta * (1 - delta) / 2_000)
    assert 0 < (alarms >= most).any(axis=1).mean() <= delta + 2 * error
    off = rng.normal(size=(2_000, 20, 5)).cumsum(axis=1) / np.sqrt(np.arange(1, 21))[:, None]
    far = [far_off(chance_at(look, delta=delta), rows=500, n_values=5) for look in range(1, 21)]
    assert 0 < (np.abs(off) > np.array(far)[:, None]).any(axis=(1, 2)).mean() <= delta + 2 * error
    assert far_off(delta, rows=99, n_values=5) == np.inf
    assert not too_many(50, 50, rank=0, n_held=30, chance=0.5)


def test_a_bet_on_low_p_values_wins():
    ranks, jumper = SequentialRanks([0.0, 1.0, 2.0]), SimpleJumper()
    assert (ranks.p_value(9.0, tie=0.5), ranks.p_value(1.5, tie=0.5)) == (0.125, 0.5)
    for _ in range(30):
        jumper.bet(0.02)
    assert round(jumper.capital) == 24788
