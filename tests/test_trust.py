"""What rows are assumed to be, what is said of it, and the options that say otherwise."""

import warnings

import numpy as np
import pandas as pd
import pytest
from invoking import CliRunner
from report_page import payments

from eqsep import Detector, load_model
from eqsep.cli import app
from eqsep.detector import Config
from eqsep.report import HeldOut, detector_report, html
from eqsep.report.learnt import learnt_by

SHARE, LARGER_SHARE = (
    f"{share:.0%}" for share in (Config().isolated_share, Config().doubted_isolated_share)
)
NOBODY = f"taken as normal, though nobody has looked: the {SHARE} most isolated count less"
DOUBTED = "doubted: some may be anomalies, and the {} most isolated do not describe normal rows"


def rows(seed=0, n=400):
    return np.random.default_rng(seed).normal(size=(n, 3))


def cheap(**asked):
    return Detector(config=Config.fast(), random_state=0, **asked)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table, and some labels in another."""
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(rows(), columns=["a", "b", "c"])
    table.to_csv("rows.csv", index=False)
    table["kind"] = None
    table.loc[:39, ["a", "b"]] += 6
    table.loc[:39, "kind"] = "leak"
    table.to_csv("some.csv", index=False)
    return tmp_path


def run(*words):
    with Config.fast().as_default():
        result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_a_fit_without_labels_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cheap().fit(rows())


@pytest.mark.parametrize(
    ("words", "trust", "otherwise"),
    [
        (
            ["rows.csv"],
            f"400 rows without a label are {NOBODY}",
            "otherwise pass --clean if these rows are known to be normal, --unlabelled doubted if",
        ),
        (["rows.csv", "--clean"], "400 rows without a label are trusted threshold", ""),
        (["rows.csv", "--unlabelled", "trusted"], "400 rows without a label are trusted t", ""),
        (
            ["rows.csv", "--unlabelled", "doubted"],
            f"400 rows without a label are {DOUBTED.format(LARGER_SHARE)}",
            "",
        ),
        (
            ["some.csv", "--label", "kind", "--normal", "normal"],
            f"360 rows without a label are {DOUBTED.format(SHARE)}",
            "otherwise pass --clean if the rows without a label are known to be normal",
        ),
        (
            ["some.csv", "--label", "kind", "--normal", "normal", "--clean"],
            "360 rows without a label are trusted threshold",
            "",
        ),
    ],
)
def test_a_fit_says_what_was_assumed_and_what_to_pass_otherwise(folder, words, trust, otherwise):
    said = run("fit", *words, "--out", folder / "m.eqsep")
    assert f"normal {trust}" in said
    assert otherwise in said
    assert ("otherwise" in said) == bool(otherwise)
    assert ("at most 1.00%" in said) == ("trusted" not in trust)


@pytest.mark.usefixtures("folder")
def test_rows_that_nobody_has_looked_at_are_not_counted_as_normal():
    assert "rows 400: 400 without a label columns" in run("fit", "rows.csv", "--out", "m.eqsep")
    assert "rows 400: 400 normal columns" in run("fit", "rows.csv", "--clean", "--out", "m.eqsep")


@pytest.mark.usefixtures("folder")
def test_info_says_what_was_assumed():
    run("fit", "rows.csv", "--out", "m.eqsep")
    assert f"normal rows without a label are {NOBODY}" in run("info", "m.eqsep")


def test_clean_rows_are_trusted_ones(folder):
    for n, words in enumerate((["--clean"], ["--unlabelled", "trusted"])):
        run("fit", "rows.csv", *words, "--out", f"{n}.eqsep")
    models = [load_model(folder / f"{n}.eqsep") for n in (0, 1)]
    table = pd.read_csv("rows.csv")
    assert np.array_equal(*(model.score_samples(table) for model in models))
    assert {model.unlabelled for model in models} == {"trusted"}


@pytest.mark.parametrize(
    ("line", "words", "trust"),
    [
        ("clean = true", [], "trusted"),
        ("clean = true", ["--unlabelled", "doubted"], "doubted"),
        ('unlabelled = "doubted"', [], "doubted"),
        ('unlabelled = "doubted"', ["--clean"], "trusted"),
        ("clean = false", [], "taken as normal"),
    ],
)
def test_the_project_file_says_it_too_and_the_command_line_wins(folder, line, words, trust):
    (folder / "eqsep.toml").write_text(f'model = "m.eqsep"\n{line}\n')
    assert f"400 rows without a label are {trust}" in run("fit", "rows.csv", *words)


def test_a_model_settles_what_the_project_file_says(folder):
    run("fit", "rows.csv", "--out", "first.eqsep")
    (folder / "eqsep.toml").write_text('model = "m.eqsep"\nclean = true\n')
    assert NOBODY in run("fit", "rows.csv", "--like", "first.eqsep")


@pytest.mark.usefixtures("folder")
def test_an_evaluation_takes_clean_rows_as_normal():
    asked = ["evaluate", "some.csv", "--label", "kind", "--normal", "normal"]
    doubted = "count as normal, and some may be anomalies that nobody has noticed"
    assert doubted in run(*asked)
    clean = run(*asked, "--clean")
    assert doubted not in clean
    assert clean == run(*asked, "--unlabelled", "trusted")


def test_a_page_says_what_was_assumed_and_counts_no_row_as_normal():
    old, new = payments(0), payments(1)
    normal = new.kind == "normal"
    detector = cheap(false_alarm_rate=0.05).fit(old.X[old.kind == "normal"])
    held = HeldOut(new.X[normal], new.kind[normal], doubted=True)
    report = detector_report(detector, held, counts={"normal": 720})
    assert report.learnt.counts == {"without a label": 720}
    page = html(report)
    assert f"720 rows without a label are {NOBODY}. Otherwise pass <code>--clean</code>" in page
    assert "labelled normal" not in page


def test_nothing_is_assumed_of_rows_labelled_normal():
    learnt = learnt_by(cheap().fit(rows(), np.zeros(400)), normal="normal", counts={"normal": 400})
    assert learnt.trust == "400 rows labelled normal are trusted"
    assert (learnt.assumed, learnt.doubted) == ("", None)


def test_rows_labelled_normal_that_are_doubted_are_said_to_be():
    detector = cheap(unlabelled="doubted").fit(rows(), np.zeros(400))
    learnt = learnt_by(detector, normal="normal", counts={"normal": 400})
    assert learnt.trust.startswith("400 rows labelled normal are doubted: some may be anomalies")
    assert learnt.doubted == "labelled normal"


def test_too_few_rows_to_be_isolated_are_not_said_to_count_less():
    with pytest.warns(UserWarning, match="cannot be promised"):
        detector = cheap().fit(rows(n=30))
    learnt = learnt_by(detector, normal="normal", counts={"normal": 30})
    assert learnt.trust == "30 rows without a label are taken as normal, though nobody has looked"
