"""`eqsep test`: a model on labelled files, refused where it has learnt them."""

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from invoking import CliRunner
from report_page import Page, payments

from eqsep import Detector, load_model
from eqsep.cli import app
from eqsep.detector import Config, learnt_before


def run(*words):
    return CliRunner().invoke(app, [str(w) for w in words], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A model of payments, the file that it has learnt and one that it has not."""
    folder = tmp_path_factory.mktemp("test")
    for name, seed in (("old", 0), ("new", 1)):
        table = payments(seed)
        frame = table.X.assign(kind=table.kind, card=[f"c{i % 40}" for i in range(900)])
        frame.to_csv(folder / f"{name}.csv", index=False)
        if name == "old":
            seen = frame["kind"].isin(["normal", "takeover", "skimming"])
            rows = table.X[seen].drop(columns="time")
            detector = Detector(
                n_landmarks=60,
                bandwidth=1.0,
                false_alarm_rate=0.05,
                random_state=0,
                config=Config.fast(),
            )
            detector.fit(rows, table.kind[seen]).save(folder / "model.eqsep")
    return folder


def test_a_model_is_tested_on_new_rows(home):
    page = home / "page.html"
    columns = ("--time", "time", "--entity", "card", "--top", 3)
    costs = ("--cost-alarm", 1, "--cost-miss", 5)
    words = ("--label", "kind", *columns, *costs, "--report", page)
    result = run("test", home / "model.eqsep", home / "new.csv", *words)
    assert result.exit_code == 0, result.output
    told = result.stdout
    assert "rows          900: 720 normal, 30 card testing, 30 money mule" in told
    assert re.search(r"false alarms  [\d.]+% \[.*\] of 720 normal rows; promised 5.00%: kept", told)
    assert told.index("seen kinds") < told.index("unseen kinds") < told.index("stuck scanner  ")
    assert re.search(r"incidents of each day \(\d+\) ", told)
    assert re.search(r"best +[\d.]+ ", told)
    read = Page(page.read_text())
    kinds = [line[0] for line in read.rows("What is found of each kind")]
    assert kinds[1:4] == ["seen kinds", "skimming", "takeover"]
    assert kinds[4].startswith("unseen kinds")
    assert kinds[-1] == "overall"
    assert [line[0] for line in read.rows("Costs")[1:]] == ["present", "best"]
    assert "sleeper (unseen kind)" in [line[0] for line in read.rows("Names by label")]
    assert f"eqsep test {home / 'model.eqsep'}" in read.whole


def test_rows_that_were_learnt_are_refused_unless_told(home):
    words = ("test", home / "model.eqsep", home / "old.csv", "--label", "kind")
    result = run(*words)
    assert result.exit_code == 2
    assert "has learnt" in result.stderr
    assert "about 100% of the normal rows" in result.stderr
    result = run(*words, "--learnt-too")
    assert result.exit_code == 0, result.output
    assert "does better on them than on new ones" in result.stdout
    told = [line for line in result.stdout.splitlines() if "promised" in line]
    assert [line.split()[0] for line in told] == ["false", "sets", "called"]
    for line in (told[0], told[2]):
        assert line.endswith("cannot tell: the model has learnt from these rows")


def test_a_file_that_was_learnt_in_part_is_refused_with_its_share(home):
    result = run(
        "test", home / "model.eqsep", home / "old.csv", home / "new.csv", "--label", "kind"
    )
    assert result.exit_code == 2
    share = int(re.search(r"about (\d+)% of the normal rows", result.stderr)[1])
    assert 35 < share < 65


def test_anomalies_that_were_learnt_are_refused_beside_new_normal_rows(home, tmp_path):
    old, new = (pd.read_csv(home / f"{name}.csv") for name in ("old", "new"))
    learnt, normal = old[old["kind"] == "takeover"], new[new["kind"] == "normal"]
    pd.concat([normal, learnt]).to_csv(tmp_path / "mixed.csv", index=False)
    words = ("test", home / "model.eqsep", tmp_path / "mixed.csv", "--label", "kind")
    result = run(*words)
    assert result.exit_code == 2
    assert "about 100% of the rows of takeover (30 of 30 that it would keep)" in result.stderr
    assert "normal rows (" not in result.stderr
    assert "does better on them" in run(*words, "--learnt-too").stdout


def test_anomalies_that_were_judged_are_known_as_learnt(home, tmp_path):
    new = pd.read_csv(home / "new.csv")
    judged, model = tmp_path / "judged.csv", tmp_path / "later.eqsep"
    new[new["kind"] == "money mule"].to_csv(judged, index=False)
    options = ("--label", "kind", "--judged", "--out", model)
    assert run("learn", home / "model.eqsep", judged, *options).exit_code == 0
    result = run("test", model, judged, "--label", "kind")
    assert "A test needs normal rows" in result.stderr
    new[new["kind"].isin(["money mule", "normal"])].to_csv(judged, index=False)
    result = run("test", model, judged, "--label", "kind")
    assert result.exit_code == 2
    assert "about 100% of the rows of money mule" in result.stderr
    result = run("test", model, home / "new.csv", "--label", "kind")  # with more kinds: said
    assert result.exit_code == 0
    assert "Some rows equal learnt ones: about 100% of the rows of money mule" in result.stdout
    detector = load_model(model)
    found = learnt_before(detector, new.drop(columns=["kind", "time", "card"]), new["kind"])
    assert list(found.repeated_kinds) == ["money mule"]
    assert not found.exceeds_chance  # of the normal rows
    assert not found.are_learnt


def test_rows_without_a_label_are_left_out_and_normal_ones_may_be_called_otherwise(home):
    lines = (home / "new.csv").read_text().replace(",normal,", ",fine,").splitlines()
    lines[1] = re.sub(r",[a-z ]+,(c\d+)$", r",,\1", lines[1])
    path = home / "called.csv"
    path.write_text("\n".join(lines))
    words = ("test", home / "model.eqsep", path, "--label", "kind")
    assert "A test needs normal rows" in run(*words).stderr
    result = run(*words, "--normal", "fine")
    assert result.exit_code == 0, result.output
    assert "Left out: 1 row without a label." in result.stdout
    assert "rows          899: " in result.stdout


def test_a_column_that_is_not_there_is_named(home):
    words = ("test", home / "model.eqsep", home / "new.csv", "--label", "kind", "--entity", "crd")
    result = run(*words)
    assert result.exit_code == 2
    assert "no column 'crd'" in result.stderr
    assert "Did you mean 'card'?" in result.stderr


def test_a_model_of_groups_knows_those_that_it_has_learnt(tmp_path):
    rng = np.random.default_rng(0)
    for name, first in (("learnt", 0), ("fresh", 30)):
        run_of = np.repeat(np.arange(first, first + 30), 20)
        value = rng.normal(size=(600, 2)) + rng.normal(size=(30, 2))[run_of - first]
        kind = np.where(np.arange(600) % 50 == 0, "leak", "normal")
        lines = [f"{a},{b},r{r},{k}" for (a, b), r, k in zip(value, run_of, kind, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,run,kind", *lines]))
    model = tmp_path / "m.eqsep"
    words = ("--label", "kind", "--group", "run", "--landmarks", 60, "--false-alarm-rate", 0.2)
    assert run("fit", tmp_path / "learnt.csv", *words, "--out", model).exit_code == 0
    refused = run("test", model, tmp_path / "learnt.csv", "--label", "kind")
    assert "about 100% of the normal rows" in refused.stderr
    page = tmp_path / "page.html"
    result = run("test", model, tmp_path / "fresh.csv", "--label", "kind", "--report", page)
    assert result.exit_code == 0, result.output
    assert re.search(
        r"promised at most 20.00% of those of new groups, on average: mean over 30 groups [\d.]+% "
        r"\[[\d.]+%, [\d.]+%\], highest [\d.]+%; kept",
        result.stdout,
    )
    assert "mean over 30 groups" in page.read_text()
    assert re.search(r"found +average precision 0\.\d{3} of leak, the only kind\n", result.stdout)
    assert "of leak, the only kind</small>" in page.read_text()


def test_a_column_that_holds_no_times_is_refused(home):
    result = run(
        "test", home / "model.eqsep", home / "new.csv", "--label", "kind", "--time", "channel"
    )
    assert result.exit_code == 2
    assert re.search(r"--time expects dates, or numbers to sort rows by, but", result.stderr)


@pytest.mark.extra
def test_the_report_is_written_even_where_nobody_reads_what_is_printed(home):
    page = home / "unread.html"
    words = ("test", home / "model.eqsep", home / "new.csv", "--label", "kind", "--report", page)
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run([sys.executable, "-m", "eqsep", *map(str, words)], stdout=write)
    os.close(write)
    assert ended.returncode == 141
    assert "Which kinds are found" in page.read_text()


def test_rows_that_are_all_normal_measure_false_alarms_alone(home):
    lines = (home / "new.csv").read_text().splitlines()
    normal = home / "normal.csv"
    normal.write_text("\n".join([lines[0], *(line for line in lines if ",normal," in line)]))
    result = run("test", home / "model.eqsep", normal, "--label", "kind")
    assert result.exit_code == 0, result.output
    assert "No row is an anomaly: only false alarms are measured" in result.stdout


def test_learnt_rows_of_a_table_full_of_copies_are_told_of_and_new_ones_are_not(tmp_path):
    """Where each row stands there three times, some new rows may equal learnt ones, too."""
    rng, old = np.random.default_rng(0), tmp_path / "old.csv"
    rows = pd.DataFrame(rng.normal(size=(600, 3)), columns=list("xyz")).assign(kind="normal")
    rows.loc[570:, "kind"] = "leak"
    rows = rows.loc[np.repeat(rows.index, rng.integers(3, 6, size=600))]
    rows.to_csv(old, index=False)
    run("fit", old, "--label", "kind", "--landmarks", 60, "--out", tmp_path / "m.eqsep")
    rows[rows["kind"] == "normal"].to_csv(tmp_path / "learnt.csv", index=False)
    new = pd.DataFrame(rng.normal(size=(600, 3)), columns=list("xyz")).assign(kind="normal")
    new.to_csv(tmp_path / "new.csv", index=False)
    told = [
        run("test", tmp_path / "m.eqsep", tmp_path / name, "--label", "kind").output
        for name in ("learnt.csv", "new.csv")
    ]
    assert "Some rows equal learnt ones: about 100% of the normal rows" in told[0]
    assert "learnt" not in told[1]
