"""The commands around a detector: from files to a model, and from rows to explained alarms."""

import gzip
import io
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import typer
from invoking import CliRunner
from pyarrow import feather, parquet

from eqsep import Detector, load_model
from eqsep.cli import app
from eqsep.cli import fit as training_data
from eqsep.cli.console import print_errors, print_stderr
from eqsep.cli.score import Highest, ScoredCounts, ranked
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config, Model
from eqsep.errors import UserError
from eqsep.files import changed_alone
from eqsep.io.text import ROWS_AT_ONCE
from eqsep.io.writing import table_writer
from eqsep.tables import batches

ANSWERS = ["score", "p_value", "alarm", "kind", "kind_probability"]
SIX_DIGITS = 5e-6  # how far a number of so many is off at most
FAST = ("--landmarks", 60)
COLUMNS = "columns     10: 5 numbers, 4 names, 1 date"  # of payments
SEEN = ("--seen", "takeover", "--seen", "skimming")


def run(*words, stdin=None):
    """What `eqsep WORDS` answers; anything but an orderly end is an error."""
    result = CliRunner().invoke(app, [str(w) for w in words], input=stdin, env={"COLUMNS": "200"})
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    return result


def done(*words, stdin=None):
    """What a command that ends well prints on standard output."""
    result = run(*words, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def eqsep(*words, **options):
    """The command in a process of its own."""
    command = [sys.executable, "-c", "from eqsep.cli import app; app()", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def files(folder):
    return [path.name for path in folder.iterdir()]


def payments(seed, *, n=600):
    table = make_mixed_demo(n_samples=n, anomaly_fraction=0.2, as_frame=True, random_state=seed)
    ids = [f"P{seed}-{i:04d}" for i in range(n)]
    return table.X.assign(payment=ids, kind=table.kind)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labelled payments and new ones in every format."""
    folder = tmp_path_factory.mktemp("payments")
    for name, seed in (("train", 0), ("new", 1)):
        frame = payments(seed)
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_csv(folder / f"{name}.csv.gz", index=False)
        frame.to_csv(folder / f"{name}.tsv", index=False, sep="\t")
        frame.to_csv(folder / f"{name}.txt", index=False, sep=";")
        frame.to_parquet(folder / f"{name}.parquet")
        feather.write_feather(pa.Table.from_pandas(frame), folder / f"{name}.feather")
        frame.to_json(folder / f"{name}.jsonl", orient="records", lines=True, date_format="iso")
        (folder / name).mkdir()
        frame[:250].to_csv(folder / name / "a.csv", index=False)
        frame[250:].to_parquet(folder / name / "b.parquet")
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    """What the command says when it fits the model of this file to the labelled payments."""
    words = ("--label", "kind", *SEEN, *FAST, "--out", folder / "m.eqsep")
    result = run("fit", folder / "train.csv", *words)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def model(folder, fitted):  # noqa: ARG001
    return folder / "m.eqsep"


@pytest.fixture(scope="module")
def expected(model):
    """What the library says of the new payments."""
    X = payments(1).drop(columns="kind")
    detector = load_model(model)
    return pd.DataFrame(
        {
            "payment": X["payment"],
            "score": detector.score_samples(X),
            "p_value": detector.p_value(X),
            "alarm": detector.predict(X) == 1,
            "kind": detector.predict_kind(X),
            "kind_probability": detector.kind_probability(X),
        }
    )


def assert_same(frame, expected, *, rtol=0.0):
    assert frame["payment"].tolist() == expected["payment"].tolist()
    np.testing.assert_allclose(frame["score"], expected["score"], rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(frame["p_value"], expected["p_value"], rtol=rtol, atol=1e-9)
    assert frame["alarm"].tolist() == expected["alarm"].tolist()
    assert frame["kind"].tolist() == expected["kind"].tolist()
    found, wanted = frame["kind_probability"], expected["kind_probability"]
    np.testing.assert_allclose(found.astype(float), wanted, rtol=rtol, atol=1e-9)


def test_a_fit_from_a_file_is_the_librarys(model):
    frame = payments(0)
    frame = frame[frame["kind"].isin(["normal", "takeover", "skimming"])]
    detector = Detector(n_landmarks=60, random_state=0)
    with pytest.warns(UserWarning, match="payment"):
        detector.fit(frame.drop(columns="kind"), frame["kind"])
    X = payments(1).drop(columns="kind")
    np.testing.assert_allclose(
        load_model(model).score_samples(X), detector.score_samples(X), atol=1e-9
    )


@pytest.mark.parametrize(
    "file",
    [
        "train.parquet",
        "train",
        pytest.param("train.feather", marks=pytest.mark.extra),
        pytest.param("train.csv.gz", marks=pytest.mark.extra),
    ],
)
def test_every_format_gives_the_same_model(folder, model, tmp_path, file):
    out = tmp_path / "model.eqsep"
    done("fit", folder / file, "--label", "kind", *SEEN, *FAST, "--out", out)
    X = payments(1).drop(columns="kind")
    np.testing.assert_allclose(
        load_model(out).score_samples(X), load_model(model).score_samples(X), atol=1e-9
    )


@pytest.mark.parametrize("file", [pytest.param("train.csv", marks=pytest.mark.extra), "train"])
def test_large_files_are_learnt_in_pieces(folder, tmp_path, monkeypatch, file):
    for name, rows in (("LARGE", 0), ("ROWS_AT_ONCE", 70)):
        monkeypatch.setattr(training_data, name, rows)
    monkeypatch.setattr(batches, "SAMPLE", 300)
    out = tmp_path / "m.eqsep"
    words = ("fit", folder / file, "--label", "kind", *SEEN, *FAST, "--out", out)
    assert "520: 480 normal, 20 skimming, 20 takeover" in done(*words)
    detector = load_model(out)
    frame = payments(0)
    frame = frame[frame["kind"].isin(["normal", "takeover", "skimming"])]
    X, kind = frame.drop(columns="kind"), frame["kind"]
    whole = Detector(plan=detector.plan_).fit(X, kind)
    np.testing.assert_allclose(detector.score_samples(X), whole.score_samples(X), atol=1e-6)
    assert set(detector.kinds_) == {"takeover", "skimming"}
    unlabelled = ("fit", folder / file, "--drop", "kind", *FAST, "--out", out)
    assert "600: 600 without a label" in done(*unlabelled)
    assert load_model(out).model_.n_learnt.sum() + len(load_model(out).calibration_.scores) == 600


@pytest.mark.parametrize(
    "file",
    [
        "t.csv",
        *(pytest.param(f"t.{form}", marks=pytest.mark.extra) for form in ("parquet", "jsonl")),
    ],
)
def test_large_files_may_have_numbers_truths_and_columns_of_names(tmp_path, monkeypatch, file):
    frame = payments(0).drop(columns=["payment", "time"])
    frame["kind"] = (frame["kind"] != "normal").astype(object).where(frame.index % 9 > 0, None)
    frame["zip"] = frame.index % 5
    frame["nothing"] = None
    write = {"t.csv": frame.to_csv, "t.parquet": frame.to_parquet}
    if file in write:
        write[file](tmp_path / file, index=False)
    else:
        frame.to_json(tmp_path / file, orient="records", lines=True)
    words = ("fit", tmp_path / file, "--label", "kind", "--names", "zip", *FAST, "--out")
    small, large = tmp_path / "small.eqsep", tmp_path / "large.eqsep"
    expected = done(*words, small)
    monkeypatch.setattr(training_data, "LARGE", 0)
    monkeypatch.setattr(training_data, "ROWS_AT_ONCE", 130)
    assert done(*words, large).replace("large.eqsep", "small.eqsep") == expected
    X = frame.drop(columns="kind")
    first, second = load_model(small), load_model(large)
    np.testing.assert_allclose(second.score_samples(X), first.score_samples(X), atol=1e-9)
    assert second.predict(X).tolist() == first.predict(X).tolist()
    monkeypatch.setattr(batches, "SAMPLE", 200)
    done(*words[:-3], "--like", small, "--out", large)
    again = load_model(large)
    assert again.plan_.is_same(first.plan_)
    np.testing.assert_allclose(again.score_samples(X), first.score_samples(X), atol=1e-6)


def test_the_summary_says_rows_kinds_threshold_and_promise(folder, tmp_path):
    words = ("fit", folder / "train.csv", "--label", "kind", "--normal", "normal", *SEEN, *FAST)
    out = tmp_path / "model.eqsep"
    result = run(*words, "--false-alarm-rate", 0.05, "--out", out)
    threshold = load_model(out).threshold_
    assert "520: 480 normal, 20 skimming, 20 takeover" in result.stdout
    assert COLUMNS + "; without payment\n" in result.stdout
    assert "seen kinds  skimming, takeover" in result.stdout
    assert f"threshold   {threshold:.3f}" in result.stdout
    assert "5.00% of new normal rows raise an alarm" in result.stdout
    assert "'payment': 100% of its values occur once" in result.stderr


DOUBTED = (
    f"doubted: some may be anomalies, and the {Config().isolated_share:.0%} most isolated do not "
    "describe normal rows"
)
LINES = {  # what the labels say of normal rows, the options, and what the summary says of them
    ("normal", ""): "480 rows labelled normal are trusted",
    ("normal", "doubted"): f"480 rows labelled normal are {DOUBTED}",
    (None, ""): f"480 rows without a label are {DOUBTED}",
    (None, "trusted"): "480 rows without a label are trusted",
}


@pytest.mark.parametrize(("says", "asked"), LINES)
def test_the_summary_says_what_normal_rows_are_taken_for(tmp_path, says, asked):
    frame, out = payments(0), tmp_path / "m.eqsep"
    frame["kind"] = frame["kind"].where(frame["kind"] != "normal", says)
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--label", "kind", "--normal", "normal", *FAST)
    printed = done(*words, *(["--unlabelled", asked] if asked else []), "--out", out)
    assert f"normal      {LINES[says, asked]}\n" in printed
    doubted = "doubted" in LINES[says, asked]
    assert load_model(out).plan_.labels.doubted == doubted
    assert ("at most 1.00% of new normal rows" in printed) == doubted
    assert load_model(out).unlabelled == (asked or "auto")


def test_where_all_labels_are_anomalies_the_way_out_is_told(tmp_path):
    frame = payments(0)
    frame["kind"] = frame["kind"].where(frame["kind"] != "normal", None)
    frame.to_csv(tmp_path / "t.csv", index=False)
    told = run("fit", tmp_path / "t.csv", "--label", "kind", *FAST, "--out", tmp_path / "m").stderr
    assert "rows without a label stand for the others, pass --normal normal" in told


def test_rows_without_a_label_count_little_beside_labelled_ones(tmp_path):
    frame, out = payments(0), tmp_path / "m.eqsep"
    frame["kind"] = [str(int(kind != "normal")) for kind in frame["kind"]]
    frame.loc[frame.index[frame["kind"] == "0"][:10], "kind"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--label", "kind", *FAST, "--out", out)
    printed = done(*words)
    assert "470 rows labelled 0 are trusted; 10 without a label count 0.01 each\n" in printed
    assert "470 normal (0), " in printed
    assert " anomaly (1), 10 without a label\n" in printed
    told = "normal      rows labelled 0 are trusted; any without a label counts 0.01\n"
    assert told in done("info", out)


MIXED = {  # the option, the rows labelled normal, and what is said of these and of the others
    ("trusted", 300): "300 rows labelled normal and 180 rows without a label are trusted",
    ("doubted", 300): "300 rows labelled normal are trusted and set the threshold; 180 rows "
    f"without a label are {DOUBTED}",
    ("doubted", 90): f"90 rows labelled normal and 390 rows without a label are {DOUBTED}",
}


@pytest.mark.parametrize(("asked", "n_normal"), MIXED)
def test_rows_without_a_label_are_what_is_said_beside_rows_labelled_normal(
    tmp_path, asked, n_normal
):
    frame, out = payments(0), tmp_path / "m.eqsep"
    frame.loc[frame.index[frame["kind"] == "normal"][n_normal:], "kind"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--label", "kind", "--unlabelled", asked, *FAST)
    printed = done(*words, "--out", out)
    assert f"normal      {MIXED[asked, n_normal]}\n" in printed
    assert ("on average (calibrated on 99 held-out normal rows)\n" in printed) == (n_normal == 300)
    told = re.sub(r"\d+ rows", "rows", MIXED[asked, n_normal]).replace(" and rows", " or")
    assert f"normal      {told}\n" in done("info", out)


def test_the_summary_counts_held_out_rows_that_are_taken_for_anomalies(tmp_path):
    frame, out = payments(0, n=2_000), tmp_path / "m.eqsep"
    unnoticed = (frame["kind"] == "normal") | (np.arange(2_000) % 2 == 0)
    frame["kind"] = frame["kind"].mask(unnoticed, None)
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("--label", "kind", "--normal", "normal", "--drop", "payment", *FAST, "--out", out)
    printed = done("fit", tmp_path / "t.csv", *words)
    calibration = load_model(out).calibration_
    left_out, held = calibration.n_left_out, len(calibration.counting)
    assert left_out > 0
    assert held % 100 == 99  # as many as the interval is of
    assert f"(calibrated on {held:,} held-out rows, without {left_out} taken for" in printed


def test_info_says_what_a_model_has_learnt(model, fitted):
    fitted = fitted.stdout.splitlines()
    told = done("info", model).splitlines()
    line = "normal      rows labelled normal are trusted; any without a label counts 0.01"
    assert told[2] == line
    assert [*told[:2], *told[3 : len(fitted) - 1]] == [*fitted[1:3], *fitted[4:]]
    assert told[len(fitted) - 1].startswith("learnt      ")


def test_a_model_like_another_doubts_as_that_does(tmp_path):
    frame, first, second = payments(0), tmp_path / "a.eqsep", tmp_path / "b.eqsep"
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--label", "kind", *FAST)
    done(*words, "--unlabelled", "doubted", "--out", first)
    assert "480 rows labelled normal are doubted" in done(*words, "--like", first, "--out", second)
    assert load_model(second).unlabelled == "doubted"


def test_the_summary_names_all_columns_that_were_left_out(folder, tmp_path):
    words = ("fit", folder / "train.csv", "--drop", "kind", *FAST, "--out", tmp_path / "m.eqsep")
    printed = done(*words, "--drop", "amount")
    assert "4 numbers" in printed
    assert "; without payment, kind, amount\n" in printed


def test_decimal_commas_are_understood_by_a_fit_and_later(tmp_path):
    frame = payments(0).drop(columns=["payment", "kind"])
    commas = frame.assign(amount=frame["amount"].map(str).str.replace(".", ","))
    for name, written in (("points.csv", frame), ("commas.csv", commas)):
        written.to_csv(tmp_path / name, index=False)
        words = ("fit", tmp_path / name, *FAST, "--out")
        told = run(*words, tmp_path / f"{name}.eqsep").stderr
        assert ("Note: amount: numbers with decimal comma." in told) == (written is commas)
        done("score", tmp_path / f"{name}.eqsep", tmp_path / name, "--out", tmp_path / f"{name}.pq")
    scores = [parquet.read_table(tmp_path / f"{name}.csv.pq") for name in ("points", "commas")]
    assert scores[0].equals(scores[1])
    assert "decimal comma" not in run(*words, tmp_path / "n.eqsep", "--names", "amount").stderr


def test_a_promise_that_cannot_be_kept_is_none(folder, tmp_path):
    words = ("fit", folder / "train.csv", "--drop", "kind", *FAST, "--out", tmp_path / "m.eqsep")
    result = run(*words, "--false-alarm-rate", 0.001)
    assert "none: " in result.stdout
    assert "0.001 cannot be promised" in result.stderr
    assert re.search(r"or pass --false-alarm-rate 0\.\d+\.", result.stderr)


def test_a_column_that_gives_the_label_away_is_named(tmp_path):
    frame = payments(0)
    frame["verdict"] = np.where(frame["kind"] == "normal", "fine", "fraud")
    frame["refund"] = np.where(frame["kind"] == "normal", 0.0, frame["amount"].abs() + 1)
    frame.to_csv(tmp_path / "leaky.csv", index=False)
    words = ("fit", tmp_path / "leaky.csv", "--label", "kind", *FAST, "--out", tmp_path / "m.eqsep")
    told = re.findall(r"Column '(\w+)' alone tells", run(*words).stderr)
    assert told == ["verdict", "refund"]
    dropped = run(*words, "--drop", "verdict", "--drop", "refund")
    assert "alone tells" not in dropped.stderr
    assert load_model(tmp_path / "m.eqsep").n_features_in_ == 11


def test_a_column_that_counts_the_rows_is_named(tmp_path):
    ties, flag = np.arange(600) // 3, np.arange(600) // 400
    frame = payments(0).assign(number=range(600), back=range(600, 0, -1), ties=ties, flag=flag)
    frame.drop(columns="kind").to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", *FAST, "--out", tmp_path / "m.eqsep")
    assert re.findall(r"Column '(\w+)' rises or falls", run(*words).stderr) == [
        "number",
        "back",
        "ties",
    ]


def test_dates_beyond_those_learnt_are_told(tmp_path):
    frame = payments(0)[["amount", "time"]]
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m.eqsep"
    words = ("fit", tmp_path / "t.csv", *FAST, "--out", out)
    told = run(*words).stderr
    first, last = frame["time"].min(), frame["time"].max()
    assert f"Column 'time' holds dates, from {first:%Y-%m-%d}" in told
    assert "--drop 'time'" in told
    assert "holds dates" not in run(*words, "--drop", "time", "--out", tmp_path / "d.eqsep").stderr
    for days, side, limit in ((999, "a later", last), (-999, "an earlier", first)):
        moved = frame.assign(time=frame["time"] + pd.Timedelta(days=days))
        moved.to_csv(tmp_path / "moved.csv", index=False)
        beyond = f"600 of 600 rows have {side} date in column 'time' than all"
        told = run("score", out, tmp_path / "moved.csv").stderr
        assert beyond in told
        assert f"({limit:%Y-%m-%d}" in told
    assert "date in column" not in run("score", out, tmp_path / "t.csv").stderr


def test_anomalies_that_hardly_raise_an_alarm_are_told(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=600), "kind": np.resize(["normal", "odd"], 600)})
    frame.loc[frame["kind"] == "odd", "a"] += 1
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("fit", tmp_path / "t.csv", "--label", "kind", *FAST, "--out", tmp_path / "m.eqsep")
    told = run(*words).stderr
    few = r"Of \d+ learnt anomalies kept in the model, only \d+% score above the threshold, \d"
    assert re.search(few, told)
    assert re.search(r"or allow more false alarms: --false-alarm-rate 0\.[125]", told)


def test_labels_that_may_be_misspelt_are_told(model, fitted, tmp_path):
    frame = payments(0)
    frame.loc[frame.index[frame["kind"] == "takeover"][:3], "kind"] = "Takeover "
    frame.loc[0, "kind"] = "tkeover"
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = (tmp_path / "t.csv", "--label", "kind", "--out", tmp_path / "m.eqsep")
    told = run("fit", *words, *FAST).stderr
    assert "Labels of kind: 'Takeover ', 'takeover' are read as one, 'takeover'." in told
    assert "Label 'tkeover' has one row" in told
    assert "Label" not in fitted.stderr
    frame[frame["kind"] != "takeover"].to_csv(tmp_path / "t.csv", index=False)
    told = run("learn", model, *words, "--again").stderr
    assert "Labels of kind: 'Takeover ' is read as 'takeover'." in told


def test_without_labels_all_rows_are_taken_as_normal(folder, tmp_path):
    out = tmp_path / "m.eqsep"
    printed = done("fit", folder / "train.csv", "--drop", "kind", *FAST, "--out", out)
    assert "600: 600 without a label" in printed
    assert load_model(out).plan_.labels.unlabelled_is_normal


@pytest.mark.parametrize(
    "labels", [(0, 1), pytest.param((0.0, 1.0), marks=pytest.mark.extra), (False, True)]
)
def test_numbers_and_truth_values_are_labels_too(tmp_path, labels):
    frame = payments(0)
    frame["kind"] = pd.Series([labels[k != "normal"] for k in frame["kind"]], dtype=object)
    frame.loc[:9, "kind"] = None
    frame.to_csv(tmp_path / "train.csv", index=False)
    out = tmp_path / "m.eqsep"
    printed = done("fit", tmp_path / "train.csv", "--label", "kind", *FAST, "--out", out)
    assert "10 without a label" in printed
    assert load_model(out).kinds_ == ("anomaly",)
    words = ("--label", "kind", "--again", "--out", out)
    more = done("learn", out, tmp_path / "train.csv", *words)
    assert "10 without a label" in more


def test_names_may_look_like_numbers(tmp_path):
    frame = payments(0).assign(code=[f"{i % 7:03d}" for i in range(600)])
    frame.drop(columns="kind").to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m.eqsep"
    done("fit", tmp_path / "t.csv", "--names", "code", *FAST, "--out", out)
    assert "003" in load_model(out).plan_.encoder.by_name["code"].frequent


@pytest.mark.parametrize(
    "file",
    ["new.csv", "new.csv.gz", "new.tsv", "new.parquet", "new.feather", "new.jsonl", "new"],
)
def test_scores_are_the_librarys_from_every_format(folder, model, expected, tmp_path, file):
    out = tmp_path / "scores.parquet"
    printed = done("score", model, folder / file, "--out", out)
    frame = parquet.read_table(out).to_pandas()
    assert list(frame) == ["row", "payment", *ANSWERS]
    assert_same(frame, expected)
    assert f"600 rows, {expected['alarm'].sum()} alarms" in printed
    assert files(tmp_path) == ["scores.parquet"]


def test_the_delimiter_can_be_said(folder, model, expected, tmp_path):
    words = ("score", model, folder / "new.txt", "--delimiter", ";")
    done(*words, "--out", tmp_path / "s.csv")
    assert_same(pd.read_csv(tmp_path / "s.csv"), expected, rtol=SIX_DIGITS)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("s.csv", pd.read_csv),
        ("s.csv.gz", pd.read_csv),
        ("s.jsonl", lambda path: pd.read_json(path, lines=True)),
        ("s.arrow", lambda path: feather.read_table(path).to_pandas()),
    ],
)
def test_scores_are_written_in_every_format(folder, model, expected, tmp_path, name, read):
    done("score", model, folder / "new.csv", "--out", tmp_path / name)
    assert_same(read(tmp_path / name), expected, rtol=SIX_DIGITS if ".csv" in name else 0)


def test_a_packed_table_does_not_name_the_file_it_was_written_to_meanwhile(tmp_path):
    with table_writer(str(tmp_path / "s.csv.gz"), "csv") as write:
        write(pa.table({"score": [1.0]}))
    packed = (tmp_path / "s.csv.gz").read_bytes()
    assert b".part" not in packed
    assert gzip.decompress(packed).split() == [b"score", b"1"]


def test_the_types_of_other_programs_are_read(folder, model, expected, tmp_path):
    frame = pl.read_csv(folder / "new.csv", try_parse_dates=True)
    frame.write_ipc(tmp_path / "views.arrow")
    table = parquet.read_table(folder / "new.parquet")
    for name, kind in (("amount", pa.decimal128(12, 2)), ("time", pa.timestamp("us", "UTC"))):
        i = table.schema.get_field_index(name)
        table = table.set_column(i, name, table.column(i).cast(kind))
    i = table.schema.get_field_index("country")
    table = table.set_column(i, "country", table.column(i).dictionary_encode())
    parquet.write_table(table, tmp_path / "odd.parquet")
    for name in ("views.arrow", "odd.parquet"):
        done("score", model, tmp_path / name, "--out", tmp_path / "s.csv")
        assert_same(pd.read_csv(tmp_path / "s.csv"), expected, rtol=SIX_DIGITS)


def test_several_files_are_scored_one_after_the_other(folder, model, tmp_path):
    out = tmp_path / "s.csv"
    done("score", model, folder / "new.csv", folder / "train.parquet", "--out", out)
    frame = pd.read_csv(out)
    assert frame["payment"].tolist() == [*payments(1)["payment"], *payments(0)["payment"]]


def test_pieces_are_written_in_their_order_however_long_one_takes(model, tmp_path, monkeypatch):
    """Several are scored at a time; which of them is at fault is told, too."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr("eqsep.io.text.ROWS_AT_ONCE", 50)
    begun, verdicts = [], Model.verdicts

    def slow_at_first(self, rows, **options):
        begun.append(rows.n_rows)
        if len(begun) == 1:
            time.sleep(0.5)
            assert len(begun) > 1  # another thread has others meanwhile
        return verdicts(self, rows, **options)

    monkeypatch.setattr(Model, "verdicts", slow_at_first)
    rows = payments(1).drop(columns="kind")
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True, date_format="iso")
    done("score", model, tmp_path / "rows.jsonl", "--out", tmp_path / "s.csv")
    assert pd.read_csv(tmp_path / "s.csv")["payment"].tolist() == rows["payment"].tolist()
    assert len(begun) == -(-len(rows) // 50)
    rows["amount"] = rows["amount"].astype(object)
    rows.loc[[420, 510], "amount"] = "much"
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True, date_format="iso")
    assert "rows.jsonl, row 421: " in run("score", model, tmp_path / "rows.jsonl").stderr


def test_one_row_is_a_row_and_its_score_short(folder, model, tmp_path):
    lines = (folder / "new.csv").read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join(lines[:2]))
    result = run("score", model, tmp_path / "one.csv")
    assert result.stderr.startswith("1 row, 0 alarms (0.0%), ")
    assert "rows/s" not in result.stderr  # nothing but the start was timed
    done("score", model, folder / "new.csv", "--out", tmp_path / "s.csv")
    texts = pd.read_csv(tmp_path / "s.csv", dtype=str)[["score", "p_value"]].to_numpy().ravel()
    digits = [len(t.split("e")[0].replace(".", "").lstrip("-0")) for t in texts]
    assert max(digits) == 6


def test_the_rate_is_that_after_the_first_piece(folder, model):
    rows = (folder / "new.csv", folder / "new.parquet")
    assert re.search(
        r"1,200 rows, .* [\d,]+ rows/s after the first piece", run("score", model, *rows).stderr
    )
    tally = ScoredCounts()
    tally.rows, tally.first_rows = 300, 256
    assert "rows/s" not in tally.summary()  # the few others tell little


def test_where_no_id_is_there_rows_are_numbered(model, expected, tmp_path):
    payments(1).drop(columns=["payment", "kind"]).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "s.csv"
    done("score", model, tmp_path / "rows.csv", "--only-alarms", "--out", out)
    frame = pd.read_csv(out)
    assert list(frame) == ["row", *ANSWERS]
    assert frame["row"].tolist() == (np.flatnonzero(expected["alarm"]) + 1).tolist()


def test_rows_are_numbered_through_all_files(model, expected, tmp_path):
    payments(1).drop(columns=["payment", "kind"]).to_csv(tmp_path / "rows.csv", index=False)
    twice = (model, tmp_path / "rows.csv", tmp_path / "rows.csv")
    done("score", *twice, "--out", tmp_path / "s.parquet")
    rows = parquet.read_table(tmp_path / "s.parquet").column("row").to_pylist()
    assert rows == list(range(1, 1201))
    printed = done("explain", *twice, "--top", 1, "--only-alarms", "--most", 1200)
    alarms = np.flatnonzero(expected["alarm"]) + 1  # rows that come again are shown once
    told = re.findall(r"^row ([\d,]+):", printed, re.MULTILINE)
    assert sorted(int(number.replace(",", "")) for number in told) == alarms.tolist()


def test_columns_are_kept_as_they_are_written(model, tmp_path):
    payments(1).assign(number=[f"{i:05d}" for i in range(600)]).to_csv(
        tmp_path / "rows.csv", index=False
    )
    words = ("score", model, tmp_path / "rows.csv", "--keep", "number", "--keep", "amount")
    printed = done(*words)
    lines = printed.splitlines()
    assert lines[0] == "row,number,amount,score,p_value,alarm,kind,kind_probability"
    first = (tmp_path / "rows.csv").read_text().splitlines()[1].split(",")
    assert lines[1].startswith(f"1,00000,{first[1]},")


def test_alarms_come_with_their_reasons(folder, model, expected, tmp_path):
    words = ("score", model, folder / "new.csv", "--explain", 2, "--only-alarms")
    done(*words, "--out", tmp_path / "s.parquet")
    rows = parquet.read_table(tmp_path / "s.parquet").to_pylist()
    assert len(rows) == expected["alarm"].sum() > 20
    X = payments(1).drop(columns="kind")[expected["alarm"].to_numpy()]
    for row, explanation in zip(rows, load_model(model).explain(X, top=2), strict=True):
        assert [r["column"] for r in row["reasons"]] == [r.column for r in explanation.shown()[0]]
        assert row["reasons"][0]["contribution"] == explanation.reasons[0].contribution
    text = done(*words).splitlines()
    assert len({row["reasons"][0]["usual"] for row in rows}) == 2
    for line, row in zip(text[1:], rows, strict=False):
        reason = row["reasons"][0]
        normal = "usual by itself; normal here" if reason["usual"] else "normal"
        said = f"{reason['column']} = {reason['value']} ({normal}: {reason['normal_value']})"
        assert said in line


def test_rows_that_pass_have_no_reasons(folder, model, expected):
    printed = done("score", model, folder / "new.csv", "--explain", 1, "--format", "jsonl")
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert [row["reasons"] is not None for row in rows] == expected["alarm"].tolist()


def test_every_piece_of_a_file_is_read_alike(model, tmp_path):
    """Columns that are empty, or whole numbers, or words for a while."""
    frame = pd.concat([payments(1)] * 30, ignore_index=True)
    frame["distance_km"] = frame["distance_km"].astype(object)
    frame.loc[: 2 * ROWS_AT_ONCE, ["items", "country", "distance_km", "time"]] = None
    frame.loc[:100, "distance_km"] = "NA"
    frame.to_csv(tmp_path / "long.csv", index=False)
    done("score", model, tmp_path / "long.csv", "--out", tmp_path / "s.parquet")
    scores = parquet.read_table(tmp_path / "s.parquet").column("score").to_numpy()
    frame["distance_km"] = pd.to_numeric(frame["distance_km"], errors="coerce")
    X = frame.drop(columns="kind")
    np.testing.assert_allclose(scores, load_model(model).score_samples(X), atol=1e-9)


def test_a_table_without_rows_gives_one_without_rows(folder, model, tmp_path):
    header = (folder / "new.csv").read_text().splitlines()[0]
    (tmp_path / "none.csv").write_text(header + "\n")
    done("score", model, tmp_path / "none.csv", "--out", tmp_path / "s.parquet")
    table = parquet.read_table(tmp_path / "s.parquet")
    assert (table.num_rows, table.schema.names) == (0, ["row", "payment", *ANSWERS])


def test_alarms_can_be_an_exit_code(folder, model, tmp_path):
    frame = payments(1)
    calm = ~load_model(model).predict(frame.drop(columns="kind")).astype(bool)
    frame[calm].to_csv(tmp_path / "calm.csv", index=False)
    assert run("score", model, folder / "new.csv", "--exit-code").exit_code == 1
    assert run("score", model, folder / "new.csv").exit_code == 0
    assert run("score", model, tmp_path / "calm.csv", "--exit-code").exit_code == 0


@pytest.mark.parametrize("file", ["new.csv", "new.jsonl"])
def test_rows_may_come_by_standard_input(folder, model, expected, tmp_path, file):
    out = tmp_path / "s.csv"
    done("score", model, "-", "--out", out, stdin=(folder / file).read_bytes())
    assert_same(pd.read_csv(out), expected, rtol=SIX_DIGITS)


def test_columns_without_names_are_numbered(tmp_path):
    frame = payments(0).drop(columns="payment")
    frame.to_csv(tmp_path / "bare.csv", index=False, header=False)
    out = tmp_path / "m.eqsep"
    words = ("fit", tmp_path / "bare.csv", "--no-header", "--label", "c11", *FAST, "--out", out)
    assert "600: 480 normal" in done(*words)
    printed = done("score", out, "-", "--no-header", stdin=(tmp_path / "bare.csv").read_bytes())
    assert len([line for line in printed.splitlines() if re.match(r"\d+,", line)]) == 600


def test_a_model_of_an_array_takes_columns_by_their_place(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 2))
    Detector(n_landmarks=50, random_state=0).fit(X).save(tmp_path / "m.eqsep")
    (tmp_path / "r.csv").write_text("id,a,b\nnear,0,0\nfar,0,90\n")
    printed = done("score", tmp_path / "m.eqsep", tmp_path / "r.csv", "--keep", "id")
    assert re.search(r"^1,near,.*,false,normal,$", printed, re.MULTILINE)
    assert re.search(r"^2,far,.*,true,unseen,$", printed, re.MULTILINE)


def test_kinds_that_an_alarm_may_be_of_are_written_on_request(folder, model, tmp_path):
    run("score", model, folder / "new.csv", "--kinds", "--out", tmp_path / "s.csv")
    frame = pd.read_csv(tmp_path / "s.csv", keep_default_na=False)
    detector, X = load_model(model), payments(1).drop(columns="kind")
    assert frame["kinds"].tolist() == detector.predict_kinds(X).texts()
    names = [text.split(" or ")[0].rstrip("*") for text in frame["kinds"]]
    assert names == frame["kind"].replace("normal", "").tolist()


def test_explain_prints_what_the_library_says(folder, model, expected):
    words = ("explain", model, folder / "new.csv", "--top", 2, "--only-alarms")
    result = run(*words, "--most", 5)
    places = np.argsort(-expected["score"].to_numpy(), kind="stable")[:5]
    X = payments(1).drop(columns="kind").iloc[places]
    said = [
        f"row {i + 1}: alarm, {expected['kind'][i]}"
        + f" ({min(expected['kind_probability'][i], 0.99):.0%} if it is of a seen kind)"
        * (expected["kind"][i] != "unseen")
        + "; "
        for i in places
    ]
    found = map(str, load_model(model).explain(X, top=2))
    assert result.stdout == "".join(s + f + "\n" for s, f in zip(said, found, strict=True))
    n_alarms = expected["alarm"].sum()
    assert f"Shown: the 5 highest of {n_alarms} alarms;" in result.stderr
    every = run(*words, "--most", 600)
    assert len(re.findall("^row ", every.stdout, re.MULTILINE)) == n_alarms
    assert every.stderr == ""


def test_explain_names_rows_by_kept_columns(folder, model):
    words = ("explain", model, folder / "new.csv", "--top", 1, "--most", 2, "--keep", "kind,amount")
    new = payments(1)
    found = re.findall(r"^row (\d+) \(kind (.*), amount (.*)\): ", done(*words), re.MULTILINE)
    assert len(found) == 2
    for number, kind, amount in found:
        row = new.iloc[int(number) - 1]
        assert (kind, float(amount)) == (row["kind"], row["amount"])
    assert "'knd'" in run(*words[:-1], "knd").stderr


def test_a_model_without_labels_learns_kinds_alone_where_that_is_said(tmp_path):
    rng, model, kinds = np.random.default_rng(0), tmp_path / "m.eqsep", tmp_path / "kinds.csv"
    pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"]).to_csv(
        tmp_path / "normal.csv", index=False
    )
    far = pd.DataFrame(rng.normal(size=(60, 2)) + 9, columns=["a", "b"])
    far.assign(kind=["dos", "probe", "worm"] * 20).to_csv(kinds, index=False)
    done("fit", tmp_path / "normal.csv", "--out", model, "--landmarks", 50)
    words = ("learn", model, kinds, "--label", "kind", "--out", model)
    refused = run(*words)
    assert refused.exit_code == 2
    assert "'worm' (20 rows). If these are all anomalies, pass --normal" in refused.stderr
    assert "seen kinds  dos, probe, worm" in done(*words, "--normal", "normal")
    untested = run("test", model, kinds, "--label", "kind")
    assert "column 'kind' holds 'dos' (20 rows)" in untested.stderr
    assert "if they are not called 'normal', as in the model: --normal LABEL" in untested.stderr
    named = run("test", model, kinds, "--label", "kind", "--normal", "worms")
    assert (
        "--normal 'worms' is not a label in column 'kind', which holds 'dos' (20 " in named.stderr
    )


def test_the_rate_of_false_alarms_can_be_another(folder, model, expected, tmp_path):
    rate = ("--false-alarm-rate", 0.2)
    done("score", model, folder / "new.csv", *rate, "--out", tmp_path / "s.parquet")
    frame = parquet.read_table(tmp_path / "s.parquet").to_pandas()
    detector = load_model(model).set_params(false_alarm_rate=0.2)
    alarm = expected["score"] > detector.threshold_
    assert alarm.sum() > expected["alarm"].sum() + 40
    assert frame["alarm"].tolist() == alarm.tolist()
    assert frame["p_value"].tolist() == expected["p_value"].tolist()
    told = run("explain", model, folder / "new.csv", *rate, "--only-alarms", "--top", 1).stderr
    assert f"the 20 highest of {alarm.sum()} alarms" in told
    few = run("score", model, folder / "new.csv", "--false-alarm-rate", 0.0001).stderr
    assert "0.0001 cannot be promised" in few


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.parquet", "s.arrow"])
def test_the_highest_scores_come_first(folder, model, expected, tmp_path, name):
    words = ("score", model, folder / "new.csv", folder / "new.parquet", "--keep", "amount")
    words += ("--explain", 1, "--most", 40, "--out", tmp_path / name)
    n_alarms = 2 * expected["alarm"].sum()
    assert re.search(rf"1,200 rows, {n_alarms} alarms .*; the 40 highest: ", done(*words))
    read = {
        "s.csv": pd.read_csv,
        "s.jsonl": lambda path: pd.read_json(path, lines=True),
        "s.parquet": pd.read_parquet,
        "s.arrow": pd.read_feather,
    }
    frame = read[name](tmp_path / name)
    twice = pd.concat([expected, expected], ignore_index=True)
    best = np.argsort(-twice["score"].to_numpy(), kind="stable")[:40]
    np.testing.assert_allclose(frame["score"], twice["score"][best], rtol=1e-5)
    amount = np.tile(payments(1)["amount"], 2)[best]
    np.testing.assert_allclose(frame["amount"].astype(float), amount)
    assert frame["row"].tolist() == (best + 1).tolist()
    assert frame["reasons"].notna().all()


def test_the_highest_may_be_fewer(folder, model, expected, tmp_path):
    words = ("score", model, folder / "new.csv", "--only-alarms", "--most", 599, "--out")
    done(*words, tmp_path / "s.parquet")
    frame = parquet.read_table(tmp_path / "s.parquet").to_pandas()
    assert frame["alarm"].all()
    assert len(frame) == expected["alarm"].sum()
    assert frame["score"].is_monotonic_decreasing


def test_of_equal_rows_the_first_is_among_the_highest():
    highest, rows = Highest(2), np.arange(3)
    first = highest.entering(np.array([0.1, 0.5, 0.5]), pa.table({"x": [1, 2, 2]}), rows)
    assert first.tolist() == [0, 1]
    later = highest.entering(np.array([0.4, 0.2, 0.1]), pa.table({"x": [3, 4, 5]}), rows)
    assert later.tolist() == [0]


def test_highest_rows_are_found_piece_by_piece():
    scores = np.random.default_rng(0).integers(0, 50, 1_000) / 50
    highest = Highest(30)
    pieces = []
    for start in range(0, 1_000, 90):
        here = scores[start : start + 90]
        table, rows = pa.table({"row": np.arange(start, start + len(here))}), np.arange(len(here))
        rows = highest.entering(here, table, rows) + start
        pieces.append(pa.table({"row": rows, "score": scores[rows]}))
    assert sum(map(len, pieces)) < 400
    (table,) = ranked(pieces, most=30)
    best = np.argsort(-scores, kind="stable")[:30]
    assert table.column("row").to_pylist() == best.tolist()


@pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning")  # scores are compared
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs locks")
def test_two_commands_that_change_a_model_wait_for_each_other(folder, model, tmp_path):
    path = tmp_path / "m.eqsep"
    path.write_bytes(model.read_bytes())
    rows = payments(2)
    with changed_alone(path, on_wait=pytest.fail):
        other = eqsep("learn", path, folder / "new.csv", "--label", "kind", "--out", path)
        assert b"waiting" in other.stderr.readline()
        load_model(path).partial_fit(rows.drop(columns="kind"), rows["kind"]).save(path)
    other.communicate(timeout=60)
    assert other.returncode == 0
    before, after = (load_model(one).model_.n_learnt.sum() for one in (model, path))
    held = [len(load_model(one).calibration_.scores) for one in (model, path)]
    n_new = len(rows) + len(pd.read_csv(folder / "new.csv"))
    assert after - before + held[1] - held[0] == pytest.approx(n_new)


@pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning")  # scores are compared
def test_learning_is_what_the_library_learns(folder, model, tmp_path):
    out = tmp_path / "more.eqsep"
    printed = done("learn", model, folder / "new.csv", "--label", "kind", "--out", out)
    assert "sleeper" in printed
    X = payments(1)
    detector = load_model(model).partial_fit(X.drop(columns="kind"), X["kind"])
    np.testing.assert_allclose(
        load_model(out).score_samples(X.drop(columns="kind")),
        detector.score_samples(X.drop(columns="kind")),
        atol=1e-6,
    )


@pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning")  # scores are compared
@pytest.mark.parametrize(("first", "words"), [("normal", "anomaly"), ("0", "1"), (None, "1")])
def test_rows_that_call_normal_ones_otherwise_are_learnt_where_that_is_said(tmp_path, first, words):
    """Into a model of names, of numbers, and of no labels at all."""
    old, new = payments(0).drop(columns="payment"), payments(1).drop(columns="payment")
    taken = {"anomaly": ("normal", "anomaly"), "1": (0, 1)}[words]
    model, out = tmp_path / "m.eqsep", tmp_path / "out.eqsep"
    y = None if first is None else old["kind"]
    if first == "0":
        y = (y != "normal").astype(int)
    quick = Detector(n_landmarks=60, bandwidth=0.5, random_state=0, config=Config.fast())
    quick.fit(old.drop(columns="kind"), y).save(model)
    is_normal = new["kind"] == "normal"
    new["kind"] = np.where(is_normal, "false", "true")
    new.to_csv(tmp_path / "new.csv", index=False)
    run("learn", model, tmp_path / "new.csv", "--label", "kind", "--normal", "0", "--out", out)
    X = new.drop(columns="kind")
    expected = load_model(model).partial_fit(X, np.where(is_normal, *taken))
    assert load_model(out).kinds_ == expected.kinds_
    np.testing.assert_allclose(
        load_model(out).score_samples(X), expected.score_samples(X), atol=1e-6
    )


@pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning")  # scores are compared
def test_models_that_are_alike_are_merged(folder, model, tmp_path):
    other, both = tmp_path / "other.eqsep", tmp_path / "both.eqsep"
    words = ("fit", folder / "new.csv", "--label", "kind", "--like", model, "--out", other)
    done(*words)
    done("merge", model, other, "--out", both)
    X = payments(1)
    learnt = load_model(model).partial_fit(X.drop(columns="kind"), X["kind"])
    np.testing.assert_allclose(
        load_model(both).score_samples(X.drop(columns="kind")),
        learnt.score_samples(X.drop(columns="kind")),
        atol=1e-6,
    )


def test_a_model_becomes_a_graph(model, tmp_path):
    onnx = pytest.importorskip("onnx", reason="needs eqsep[onnx]")
    done("export", model, "--onnx", tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert [o.name for o in graph.output] == ["score", "decision", "label", "p_value"]


def test_evaluation_shows_each_kind_beside_chance_and_peers(tmp_path):
    table = payments(0)
    table = table[table["kind"].isin(["normal", "takeover", "sleeper"])]
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("evaluate", tmp_path / "t.csv", "--label", "kind", "--drop", "payment", *FAST)
    printed = done(*words, "--against", "random-forest,isolation-forest")
    blocks = dict(re.findall(r"^ *seen: (\w+) *\n((?: {3}.*\n)+)", printed, re.MULTILINE))
    assert list(blocks) == ["sleeper", "takeover"]
    lines = [line.split(maxsplit=1) for line in blocks["takeover"].splitlines()]
    found = {name: list(map(float, re.findall(r"[\d.]+", rest))) for name, rest in lines}
    assert list(found) == ["eqsep", "random-forest", "isolation-forest", "chance"]
    chance = found.pop("chance")
    assert chance[1] == pytest.approx(20 / (20 + 240), abs=1e-3)  # of the unseen kind
    for name in found:
        for value, low, high in np.reshape(found[name], (3, 3)):  # seen, unseen, overall
            assert 0 <= low <= value + 0.005 <= high + 0.01 <= 1.01
    assert found["eqsep"][3] > 2 * chance[1]
    assert re.search(
        r"mean over 2 seen kinds *\n +eqsep +0\.\d{3} +0\.\d{3} +0\.\d{3} *$", printed, re.M
    )
    assert (
        "Mean over kinds, each by itself: a rare kind counts as much as a common one.\n" in printed
    )
    assert re.search(r"^ +seen +unseen, together +overall *$", printed, re.M)


@pytest.mark.extra
def test_an_evaluation_fits_only_what_is_asked_for(tmp_path):
    table = payments(0)
    table = table[table["kind"].isin(["normal", "takeover", "sleeper"])]
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("evaluate", tmp_path / "t.csv", "--label", "kind", "--drop", "payment", *FAST)
    report = tmp_path / "page.html"
    against = ("--against", "random-forest")
    printed = done(*words, *against, "--seen", "takeover", "--report", report)
    assert re.findall(r"seen: (\w+)", printed) == ["takeover"]
    assert "mean over" not in printed
    leads = re.findall(r"seen [01]\.\d+, unseen [01]\.\d+; leads in (\d) of 2 cells", printed)
    assert len(leads) == 2
    assert sum(map(int, leads)) <= 2
    assert "random-forest is better at: " in printed
    assert "--seen takeover" in re.sub("<[^>]*>", "", report.read_text())
    assert "a forest is better at" not in printed
    assert "a forest is better at" in done(*words, "--seen", "takeover")
    assert "'nothing' is not a kind" in run(*words, "--seen", "nothing").stderr


@pytest.fixture(scope="module")
def three_kinds():
    """Two kinds of anomaly, a quarter of which has no label."""
    frame = payments(0).drop(columns="payment")
    frame = frame[frame["kind"].isin(["normal", "takeover", "sleeper"])].reset_index(drop=True)
    unnoticed = (frame["kind"] != "normal") & (frame.index % 4 == 0)
    return frame.assign(kind=frame["kind"].mask(unnoticed, None))


def evaluated(frame, tmp_path, *options, seen=("--seen", "takeover")):
    """What an evaluation prints, and by part what eqsep gets and chance."""
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("evaluate", tmp_path / "t.csv", "--label", "kind", *seen)
    printed = done(*words, *options, *FAST)
    block = re.search(r"^ *seen: .*\n((?: {3}.*\n)+)", printed, re.MULTILINE)[1].splitlines()
    lines = [line.split(maxsplit=1) for line in block if line.strip()]
    return printed, {name: re.findall(r"[\d.]+", rest) for name, rest in lines}


@pytest.mark.extra
def test_rows_without_a_label_stand_for_normal_ones_in_an_evaluation(three_kinds, tmp_path):
    """They are doubted, as a fit doubts them; trusted they are what a labelled table is."""
    only = three_kinds.assign(kind=three_kinds["kind"].mask(three_kinds["kind"] == "normal", None))
    n = int(only["kind"].isna().sum())
    printed, doubted = evaluated(only, tmp_path, "--normal", "normal")
    assert f"{n} rows without a label count as normal, and some may be" in printed
    assert "every figure would be as high or higher" in printed
    zero = only.assign(kind=only["kind"].fillna("zero"))  # in the order of kinds at the same place
    said, by_label = evaluated(zero, tmp_path, "--normal", "zero", "--unlabelled", "doubted")
    assert f"{n} rows labelled zero count as normal, and some may be" in said
    assert by_label == doubted
    as_normal = only.assign(kind=only["kind"].fillna("normal"))
    trusted, figures = evaluated(only, tmp_path, "--normal", "normal", "--unlabelled", "trusted")
    assert "count as normal" not in trusted
    assert figures == evaluated(as_normal, tmp_path)[1] != doubted


@pytest.mark.extra
def test_beside_rows_labelled_normal_those_without_a_label_are_learnt_alone(three_kinds, tmp_path):
    few = three_kinds.assign(kind=three_kinds["kind"].mask(three_kinds.index % 3 == 0, None))
    printed, found = evaluated(few, tmp_path, "--against", "random-forest")
    known = few[few["kind"].notna()]
    n = len(few) - len(known)
    assert f"Only eqsep learns the {n} rows without a label, as in a fit" in printed
    said, without = evaluated(known, tmp_path, "--against", "random-forest")
    assert "without a label" not in said
    assert found["random-forest"] == without["random-forest"]
    assert found["chance"] == without["chance"]
    assert found["eqsep"] != without["eqsep"]
    doubted = evaluated(few, tmp_path, "--unlabelled", "doubted")
    assert "count as normal" not in doubted[0]
    assert doubted[1]["eqsep"] != found["eqsep"]


@pytest.mark.parametrize("numbers", [False, True])
def test_of_one_kind_alone_what_is_seen_is_measured(three_kinds, tmp_path, numbers):
    frame = three_kinds[three_kinds["kind"].isin(["normal", "takeover"])]
    if numbers:
        frame = frame.assign(kind=1 * (frame["kind"] == "takeover"))
    printed, found = evaluated(frame, tmp_path, seen=())
    one = "1" if numbers else "takeover"
    assert "Every row is scored by a model that has not learnt it" in printed
    assert f"one kind, {'kind = 1' if numbers else one}, so unseen kinds could not be" in printed
    assert "Give each kind its own name, or label anomalies of a second kind" in printed
    assert len(found["eqsep"]) == 3  # the value and its ends
    assert {len(text.split(".")[1]) for text in found["eqsep"]} == {
        3
    }  # 0.998 is in no [1.00, 1.00]
    share = len(frame[frame["kind"].astype(str) == one]) / len(frame)
    assert float(found["chance"][0]) == pytest.approx(share, abs=1e-3)
    assert float(found["eqsep"][0]) > 5 * share
    assert "mean over" not in printed


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["score"], b"row,payment,score"),
        pytest.param(["explain", "--top", 1, "--most", 2_000], b"row ", marks=pytest.mark.extra),
    ],
)
def test_a_pipe_may_end_early(folder, model, tmp_path, words, first):
    """As before `| head -2`: standard output is closed while rows are still coming."""
    rows = (folder / "new.csv").read_bytes()
    header, rest = rows.split(b"\n", 1)
    (tmp_path / "long.csv").write_bytes(header + b"\n" + rest * 12)
    with eqsep(*words, model, tmp_path / "long.csv") as process:
        assert process.stdout.readline().startswith(first)
        process.stdout.close()
        told = process.stderr.read().decode()
        assert process.wait(timeout=120) == 141
    assert told == ""


def test_standard_error_may_be_closed_too(monkeypatch):
    """As before `2>&1 | head -2`: what is told last finds nobody."""

    class Closed(io.StringIO):
        def write(self, _):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # it is given up, and is back after the test
    with pytest.raises(typer.Exit) as end, print_errors():
        print_stderr("600 rows")
    assert end.value.exit_code == 141
    with pytest.raises(typer.Exit) as end, print_errors():
        raise UserError("There is no file rows.csv.")
    assert end.value.exit_code == 2


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_being_ended_leaves_no_half_file(folder, model, tmp_path):
    out = tmp_path / "s.parquet"
    with eqsep("score", model, "-", "--out", out, stdin=subprocess.PIPE) as process:
        process.stdin.write((folder / "new.csv").read_bytes())
        process.stdin.flush()
        end = time.monotonic() + 60
        while not files(tmp_path) and time.monotonic() < end:
            time.sleep(0.05)
        assert [name.startswith(".eqsep-") for name in files(tmp_path)] == [True]
        process.send_signal(signal.SIGTERM)
        process.stdin.close()
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert files(tmp_path) == []


REAL = re.findall(
    r"^eqsep fit (?:KDDTrain|ann-train|ai4i).*\neqsep score .*",
    (Path(__file__).parents[1] / "docs" / "commands.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.parametrize(
    ("data_set", "lines"), list(zip(("nsl-kdd", "ann-thyroid", "ai4i2020"), REAL, strict=True))
)
def test_real_files_are_scored_as_the_page_says(home_of, data_set, lines, tmp_path, monkeypatch):
    home = home_of(data_set) / data_set
    monkeypatch.chdir(tmp_path)
    for path in home.iterdir():  # as many rows as will do
        with path.open("rb") as rows:
            (tmp_path / path.name).write_bytes(b"".join(islice(rows, 4_000)))
    fit, score = (shlex.split(line)[1:] for line in lines.splitlines())
    label = fit[fit.index("--label") + 1]
    done(*fit, *FAST)
    done(*score, "--keep", label)
    scores = parquet.read_table(tmp_path / score[-1]).to_pandas()
    scores[label] = scores[label].astype(str)  # which has the type of its values
    normal = scores[label].isin(["normal", "0", "3"])  # the normal label of each of the three
    assert scores["alarm"][~normal].mean() > 2 * scores["alarm"][normal].mean() > 0


def test_learn_says_as_fit_does_that_the_threshold_is_too_high(tmp_path):
    """Each time: the rows may have been learnt to lower it."""
    rng, model = np.random.default_rng(0), tmp_path / "m.eqsep"

    def rows(name, wrong):
        X = np.vstack([rng.normal(size=(400, 2)), rng.normal((6, 0), 0.5, size=(40 + wrong, 2))])
        kind = np.repeat(["normal", "pump", "normal"], [400, 40, wrong])
        pd.DataFrame(X, columns=["a", "b"]).assign(kind=kind).to_csv(tmp_path / name, index=False)
        return tmp_path / name

    options = ("--label", "kind", "--out", model)
    assert "#high-threshold" not in run("fit", rows("a.csv", 0), *options, "--landmarks", 50).stderr
    for name in ("b.csv", "c.csv"):
        said = run("learn", model, rows(name, 80), *options).stderr
        assert said.count("#high-threshold") == 1
        assert "normal rows with the highest scores" in said


def test_a_model_knows_all_labels_of_its_normal_rows(tmp_path, monkeypatch):
    """A later command reads them as the fit did, though the model calls them by the first."""
    rng, model = np.random.default_rng(0), tmp_path / "m.eqsep"
    labels = np.array(["grass", "Path", "cement", "sky"])

    def write(name, n, kinds=labels):
        kind = np.resize(kinds, n)
        X = rng.normal(size=(n, 2)) + 8 * (kind == "sky")[:, None]
        pd.DataFrame(X, columns=["a", "b"]).assign(kind=kind).to_csv(tmp_path / name, index=False)
        return tmp_path / name

    normal = [word for label in ("grass", "path", "cement") for word in ("--normal", label)]
    options = ("--label", "kind", "--landmarks", 30, "--false-alarm-rate", 0.05)
    run("fit", write("old.csv", 800), *options, *normal, "--out", model)
    for said in ([], normal):
        out = run("test", model, write("new.csv", 400), "--label", "kind", *said).stdout
        assert "rows          400: 300 normal, 100 sky" in out
    judged, later = write("judged.csv", 20, labels[1:]), tmp_path / "later.eqsep"
    told = run("learn", model, judged, "--label", "kind", "--judged", "--out", later)
    assert load_model(later).model_.kinds == ("sky",)
    assert told.stderr == ""
    assert "rows labelled grass or Path or cement are trusted" in run("info", later).stdout
    alone = write("sky.csv", 20, labels[3:])  # the project file's normal labels need not be there
    toml = 'label = "kind"\nnormal = ["grass", "path", "cement"]\n'
    (tmp_path / "eqsep.toml").write_text(toml)
    monkeypatch.chdir(tmp_path)
    run("learn", model, alone, "--judged", "--out", later)
    assert load_model(later).model_.n_learnt[1] == load_model(model).model_.n_learnt[1] + 20
    said = run("test", model, alone).stderr
    assert "A test needs normal rows" in said
    assert "learn anomalies alone" not in said
