"""The demonstration with payments: its records, and what the command leaves and prints."""

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlparse

import numpy as np
import pandas as pd
import pytest
from invoking import CliRunner

from eqsep import load_model
from eqsep.cli import app
from eqsep.demo import payments, run_payments
from eqsep.demo.payments import SEEN

small = partial(run_payments, n_rows=1500, n_landmarks=100)


@pytest.fixture(scope="module")
def demo():
    return small()


def test_one_kind_is_learnt_and_five_are_not(demo):
    assert set(demo.old.kind) == {"normal", SEEN}
    assert demo.detector.kinds_ == (SEEN,)
    assert set(demo.unseen) == set(demo.new.kind) - {"normal", SEEN}
    assert len(demo.unseen) == 5
    counts = {name: int(np.sum(demo.old.kind == name)) for name in ("normal", SEEN)}
    assert demo.report.learnt.counts == counts
    assert sum(counts.values()) == len(demo.old.kind)


def test_the_detector_finds_unseen_kinds_where_a_forest_does_not(demo):
    ours, forest, isolation = demo.contenders
    assert forest.seen > 0.95
    assert ours.seen > 0.8
    assert ours.unseen > 0.7 > 0.4 > forest.unseen
    assert ours.unseen > isolation.unseen
    assert ours.caught > forest.caught


def test_alarms_are_counted_among_new_payments_normal_or_unseen(demo):
    ours = demo.contenders[0]
    rows = list(zip(demo.new.X, demo.new.kind, strict=True))
    normal = [row for row, kind in rows if kind == "normal"]
    unseen = [row for row, kind in rows if kind in demo.unseen]
    assert ours.false_alarms == pytest.approx(np.mean(demo.detector.predict(normal)))
    assert ours.caught == pytest.approx(np.mean(demo.detector.predict(unseen)))
    assert ours.promised == demo.detector.false_alarm_rate == 0.01
    assert [one.promised for one in demo.contenders[1:]] == [None, None]
    assert ours.false_alarms < 0.05


def test_chance_is_the_share_of_anomalies(demo):
    normal, seen = (int(np.sum(demo.new.kind == name)) for name in ("normal", SEEN))
    others = len(demo.new.kind) - normal - seen
    assert demo.chance == pytest.approx((seen / (seen + normal), others / (others + normal)))


def test_alarms_are_of_three_unseen_kinds_with_reasons(demo):
    assert len({alarm.label for alarm in demo.alarms}) == len(demo.alarms) == 3
    for alarm in demo.alarms:
        assert alarm.label in demo.unseen
        assert alarm.explanation.reasons[0].contribution > 0


def test_of_alarms_the_highest_of_each_unseen_kind_is_kept_and_three_of_them():
    labels = ["a", "b", SEEN, "a", "normal", "c", "d", "b"]
    alarms = tuple(SimpleNamespace(label=x, score=9 - i) for i, x in enumerate(labels))
    assert payments._one_of_each(alarms) == (alarms[0], alarms[1], alarms[5])


def test_the_same_seed_tells_the_same_story(demo):
    assert small().contenders == demo.contenders


@pytest.fixture(scope="module")
def printed(tmp_path_factory, demo):
    """What the command prints on a narrow screen, and what it leaves."""
    folder = tmp_path_factory.mktemp("demo") / "a folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eqsep.cli.demo.run_payments", lambda **_: demo)
        result = CliRunner().invoke(app, ["demo", "--out", str(folder)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout, folder


def test_the_command_ends_with_the_address_of_the_report(printed):
    output, folder = printed
    address = urlparse(output.splitlines()[-1].removeprefix("Report: "))
    assert address.scheme == "file"
    report = Path(unquote(address.path))
    assert report == (folder / "report.html").resolve()
    assert report.read_text().startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.eqsep",
        "new.csv",
        "report.html",
    ]


def test_the_command_prints_the_table_and_the_reasons(printed, demo):
    output, _ = printed
    for one in demo.contenders:
        promised = "–" if one.promised is None else f"{one.promised:.1%}"
        cells = (f"{one.seen:.3f}", f"{one.unseen:.3f}", f"{one.caught:.0%}")
        alarms = (f"{one.false_alarms:.1%}", promised)
        pattern = " +".join(map(re.escape, (one.method, *cells, *alarms)))
        assert re.search(rf"^ *{pattern} *$", output, re.MULTILINE)
    for alarm in demo.alarms:
        assert f"({alarm.label}), score {alarm.score:.3f}" in output
    assert max(map(len, output.splitlines()[:-2])) <= 80
    assert "…" not in output
    heads = ("method", "AP seen", "AP unseen", "caught", "false alarms", "promised")
    assert re.search(" +".join(heads), output)  # in one line


def test_the_model_and_the_payments_go_together(printed, demo):
    _, folder = printed
    frame = pd.read_csv(folder / "new.csv")
    score = load_model(folder / "model.eqsep").score_samples(frame)
    np.testing.assert_allclose(score, demo.detector.score_samples(demo.new.X), atol=1e-6)
    words = ["score", str(folder / "model.eqsep"), str(folder / "new.csv"), "--explain", "2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 1501


@pytest.mark.parametrize(("place", "message"), [("file", "is not a folder"), ("no/x", "no folder")])
def test_a_bad_place_is_refused_before_any_work(tmp_path, monkeypatch, place, message):
    (tmp_path / "file").write_text("")
    name = "eqsep.cli.demo.run_payments"
    monkeypatch.setattr(name, lambda **_: pytest.fail("worked for nothing"))
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / place)])
    assert result.exit_code == 2
    assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
