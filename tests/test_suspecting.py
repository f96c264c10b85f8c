"""`eqsep suspects`, `forget` and `learn`: rows that a person judges, from file to model."""

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
from invoking import CliRunner
from summed import gram_of

from eqsep import Detector, load_model
from eqsep.cli import app
from eqsep.datasets import make_mixed_demo
from eqsep.detector import suspects

N = 900


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(w) for w in words], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def truth():
    table = make_mixed_demo(n_samples=N, anomaly_fraction=0.2, as_frame=True, random_state=0)
    return table.X.assign(payment=[f"P{i}" for i in range(N)], kind=table.kind)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, truth):
    """Payments of which half of the anomalies are labelled, and models of them."""
    folder = tmp_path_factory.mktemp("doubted")
    noticed = (truth["kind"] != "normal") & (np.arange(N) % 2 == 0)
    rows = truth.assign(kind=truth["kind"].where(noticed, None))
    rows.to_csv(folder / "rows.csv", index=False)
    rows.to_parquet(folder / "rows.parquet")
    rows.assign(kind=1 * noticed).to_csv(folder / "numbers.csv", index=False)
    truth.to_csv(folder / "labelled.csv", index=False)
    fit = ("--landmarks", 60, "--drop", "payment")
    named = ("--label", "kind", "--normal", "normal")
    run("fit", folder / "rows.csv", *named, *fit, "--out", folder / "m.eqsep")
    doubted = ("--label", "kind", "--unlabelled", "doubted")
    run("fit", folder / "numbers.csv", *doubted, *fit, "--out", folder / "numbers.eqsep")
    run("fit", folder / "labelled.csv", *named, *fit, "--out", folder / "labelled.eqsep")
    run("fit", folder / "rows.csv", "--drop", "kind", *fit, "--out", folder / "none.eqsep")
    return folder


def test_the_word_for_normal_that_the_fit_needed_may_stay_where_no_row_has_it(folder, tmp_path):
    """A project file has it for all commands."""
    labels, out = ("--label", "kind", "--normal", "normal"), tmp_path / "suspects.csv"
    run("suspects", folder / "m.eqsep", folder / "rows.csv", *labels, "--out", out)
    run("forget", folder / "m.eqsep", out, *labels, "--out", tmp_path / "less.eqsep")
    told = run(
        "test", folder / "m.eqsep", folder / "rows.csv", "--label", "kind", "--normal", "ok", code=2
    )
    assert "--normal 'ok' is not a label in column 'kind'" in " ".join(told.output.split())


def test_suspects_are_those_of_the_library_with_all_their_columns(folder, tmp_path):
    rows = pd.read_csv(folder / "rows.csv", dtype=str, keep_default_na=False)
    detector = load_model(folder / "m.eqsep")
    X = pd.read_csv(folder / "rows.csv", parse_dates=["time"])
    y = X.pop("kind").astype(object).where(rows["kind"] != "", None)
    X = X.drop(columns="payment")
    places = suspects(detector, X, y, n=12)
    out = tmp_path / "suspects.csv"
    words = ("suspects", folder / "m.eqsep", folder / "rows.csv", "--label", "kind")
    printed = run(*words, "--most", 12, "--out", out).stdout
    listed = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert (listed["row"].astype(int) - 1).tolist() == places.tolist()
    assert listed.columns.tolist() == ["row", "score", "p_value", *rows.columns]
    pd.testing.assert_frame_equal(
        listed[rows.columns], rows.iloc[places].reset_index(drop=True), check_dtype=False
    )
    scores = detector.score_samples(X.iloc[places])
    np.testing.assert_allclose(listed["score"].astype(float), scores, rtol=5e-6)
    np.testing.assert_allclose(
        listed["p_value"].astype(float), detector.p_value(X.iloc[places]), rtol=5e-6
    )
    held = len(detector.model_.evidence.held_out.normal)
    assert f"12 rows, the highest score first, of {held:,} that were held out: {out}" in printed


def test_suspects_go_to_the_output_and_to_every_form_of_table(folder, tmp_path):
    words = ("suspects", folder / "m.eqsep", folder / "rows.parquet", "--label", "kind")
    answer = run(*words)
    assert len(answer.stdout.splitlines()) == 21
    assert "20 rows, the highest score first" in answer.stderr
    run(*words, "--out", tmp_path / "s.parquet")
    table = parquet.read_table(tmp_path / "s.parquet")
    assert table.num_rows == 20
    assert table.column("payment")[0].as_py() == answer.stdout.splitlines()[1].split(",")[-2]


@pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning")  # thresholds are compared
def test_a_person_judges_and_the_model_is_as_if_that_had_been_known(folder, truth, tmp_path):
    """List, forget them as they were, label them, learn them as they are."""
    listed, less, more = (tmp_path / name for name in ("s.csv", "less.eqsep", "more.eqsep"))
    label = ("--label", "kind")
    run("suspects", folder / "m.eqsep", folder / "rows.csv", *label, "--out", listed)
    printed = run("forget", folder / "m.eqsep", listed, *label, "--out", less).stdout
    assert "forgotten   20: 20 without a label\n" in printed
    assert "normal      rows without a label are doubted: some may be anomalies" in printed
    rows = pd.read_csv(listed, dtype=str, keep_default_na=False)
    kinds = truth["kind"].iloc[rows["row"].astype(int) - 1].to_numpy()
    assert np.mean(kinds != "normal") > 0.5
    rows["kind"] = np.where(kinds == "normal", "", kinds)
    rows.to_csv(listed, index=False)
    run("learn", less, listed, *label, "--out", more)
    before, after = load_model(folder / "m.eqsep"), load_model(more)
    assert after.threshold_ < before.threshold_
    X = truth.drop(columns=["kind", "payment"])
    judged = pd.read_csv(folder / "rows.csv")["kind"].astype(object)
    judged = judged.where(judged.notna(), None).to_numpy(copy=True)
    judged[rows["row"].astype(int) - 1] = np.where(kinds == "normal", None, kinds)
    never = Detector(plan=before.plan_).fit(X, judged)
    np.testing.assert_allclose(after.score_samples(X), never.score_samples(X), atol=1e-6)
    np.testing.assert_allclose(after.threshold_, never.threshold_, atol=1e-6)


def test_what_is_learnt_and_forgotten_leaves_the_model_as_it_was(folder, tmp_path):
    words, out = ("--label", "kind", "--out"), tmp_path / "m.eqsep"
    run("learn", folder / "numbers.eqsep", folder / "numbers.csv", "--again", *words, out)
    run("forget", out, folder / "numbers.csv", *words, out)
    before, after = load_model(folder / "numbers.eqsep"), load_model(out)
    np.testing.assert_allclose(
        gram_of(after.model_.evidence), gram_of(before.model_.evidence), atol=1e-6
    )
    np.testing.assert_array_equal(
        after.model_.evidence.held_out.normal, before.model_.evidence.held_out.normal
    )


def test_rows_of_a_model_without_labels_are_listed_and_forgotten_without_them(folder, tmp_path):
    listed, out = tmp_path / "s.csv", tmp_path / "m.eqsep"
    run("suspects", folder / "none.eqsep", folder / "rows.csv", "--out", listed, "--most", 5)
    printed = run("forget", folder / "none.eqsep", listed, "--out", out).stdout
    assert "forgotten   5: 5 without a label\n" in printed
    before, after = (
        len(load_model(m).model_.evidence.held_out.normal) for m in (folder / "none.eqsep", out)
    )
    assert after == before - 5


NOBODY = {
    "labelled": ("labelled.csv", "No row to list: rows labelled normal set the threshold"),
    "m": ("new.csv", "No row to list: none of these set the threshold without a label"),
}


@pytest.mark.parametrize("model", NOBODY)
def test_where_no_row_is_listed_the_reason_is_told(folder, model):
    other = make_mixed_demo(n_samples=200, as_frame=True, random_state=7).X
    other.assign(payment="P", kind=None).to_csv(folder / "new.csv", index=False)
    file, told = NOBODY[model]
    answer = run("suspects", folder / f"{model}.eqsep", folder / file, "--label", "kind")
    assert told in answer.stderr
    assert len(answer.stdout.splitlines()) == 1


REFUSED = {
    "no labels": (
        lambda f: ["suspects", f / "m.eqsep", f / "rows.csv"],
        "The model has learnt labels: pass those of these rows as --label",
    ),
    "no labels to forget by": (
        lambda f: ["forget", f / "m.eqsep", f / "rows.csv", "--out", f / "x.eqsep"],
        "The model has learnt labels: pass those of these rows as --label",
    ),
    "normal rows without labels": (
        lambda f: ["suspects", f / "none.eqsep", f / "rows.csv", "--normal", "ok"],
        "need labels: name their column with --label",
    ),
    "rows that were not learnt": (
        lambda f: ["forget", f / "m.eqsep", f / "labelled.csv", *_label(f)],
        "Cannot forget",
    ),
    "the rows themselves": (
        lambda f: ["forget", f / "m.eqsep", f / "rows.csv", *_label(f, "rows.csv")],
        "is also read",
    ),
    "listed over the rows": (
        lambda f: ["suspects", f / "m.eqsep", f / "rows.csv", *_label(f, "rows.csv")],
        "is also read",
    ),
    "no rows to list": (
        lambda f: ["suspects", f / "m.eqsep", f / "rows.csv", "--label", "kind", "--most", 0],
        "--most expects a number of rows, 1 or more, got 0.",
    ),
    "a column that is called as a result": (
        lambda f: ["suspects", f / "m.eqsep", _scored(f), "--label", "kind"],
        "Column 'score' has the name of a result",
    ),
}


def _label(folder, out="x.eqsep"):
    return ["--label", "kind", "--out", folder / out]


def _scored(folder):
    pd.read_csv(folder / "rows.csv").assign(score=1).to_csv(folder / "scored.csv", index=False)
    return folder / "scored.csv"


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence(folder, name):
    words, told = REFUSED[name]
    answer = run(*words(folder), code=2)
    assert told in answer.stderr
    assert not (folder / "x.eqsep").exists()
