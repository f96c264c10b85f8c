"""Reports from the command line: fits and evaluations of files."""

import re
import warnings

import numpy as np
import pytest
from invoking import CliRunner
from report_page import Page, payments

from eqsep.cli import app


def run(*words, stdin=None):
    return CliRunner().invoke(app, [str(w) for w in words], input=stdin, env={"COLUMNS": "200"})


@pytest.fixture
def rows(tmp_path):
    table, few = payments(0, n=600), ["time", "amount", "items", "distance_km"]  # one picture each
    path = tmp_path / "rows.csv"
    ids = [f"P-{i}" for i in range(600)]
    table.X[few].assign(id=ids, kind=table.kind).to_csv(path, index=False)
    return path


SHAPING, HELD = "of these, shape the score", "held out, to set the threshold"
FAST = ("--landmarks", 60, "--false-alarm-rate", 0.05)


def test_a_report_that_reads_the_rows_again_repeats_no_note(rows):
    head, *lines = rows.read_text().splitlines()
    rows.write_text("\n".join([f"{head},remark", *(f"{line},n/a" for line in lines)]))
    words = ("--label", "kind", "--seen", "takeover", "--out", rows.parent / "m", "--drop", "time")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is not printed by the command
        result = run("fit", rows, *words, "--report", rows.parent / "report.html", *FAST)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("Taken as missing: 'n/a' in 'remark'") == 1


def test_fit_writes_a_report_with_unseen_kinds_and_ids(rows):
    path = rows.parent / "report.html"
    words = ("--label", "kind", "--seen", "takeover", "--out", rows.parent / "m", "--report", path)
    result = run("fit", rows, *words, "--drop", "time", *FAST)
    assert result.exit_code == 0, result.output
    assert f"report      {path}" in result.stdout
    read = Page(path.read_text())
    table = read.rows("Average precision by kind")
    assert {line[4] for line in table if line[0] in ("sleeper", "skimming")} == {"20"}  # all rows
    assert next(line[4] for line in table if line[0] == "takeover") == "6"  # three tenths
    lines = [line[0] for line in table]
    seen, unseen = lines.index("seen in training"), lines.index("never seen in training")
    assert lines[seen + 1 : unseen] == ["takeover"]
    assert len(lines[unseen + 1 :]) == 7  # five kinds, all of them, overall
    assert all(a["attrs"]["aria-label"].startswith("Alarm: id P-") for a in read.all("article"))
    assert "dropped: &#39;id&#39;" in read.whole
    left_out = re.search("Left out</strong>: (.*)</p>", read.whole)[1]
    assert re.findall(r"(\w+) <span class=.soft.>\((\S+)", left_out) == [
        ("id", "100%"),
        ("time", "by"),
    ]
    counts = dict(read.rows("Rows by kind")[1:])
    shaping, held = (int(counts.pop(name)) for name in (SHAPING, HELD))
    assert counts == {"normal": "480", "takeover": "20", "all": "500"}
    assert shaping + held == 500
    assert f"was set by {held} normal rows, held out of" in read.whole
    # Of 480 and 20 some are held out, and all of five kinds of 20.
    first = (
        "These figures come from a copy of the detector that was fitted to 58% of the rows (350 of "
        "600) and tested on 250 others: the model itself has learnt more rows."
    )
    assert read.whole.index(first) < read.whole.index("In short")


@pytest.mark.parametrize(("kind", "shown"), [("bad", "bad"), ("5", "kind = 5")])
def test_a_fit_near_chance_is_said_on_the_console(tmp_path, kind, shown):
    rng = np.random.default_rng(0)
    lines = [
        f"{x:.3f},{y:.3f},{kind if i % 4 == 0 else 'ok'}"
        for i, (x, y) in enumerate(rng.normal(size=(600, 2)))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["x,y,kind", *lines]))
    words = ("--label", "kind", "--out", tmp_path / "m", "--report", tmp_path / "page.html", *FAST)
    said = " ".join(run("fit", tmp_path / "t.csv", *words).stdout.split())
    assert f"caution These columns hardly show {shown}, with an average precision of 0." in said
    assert "Add columns in which such rows differ from normal ones, or check their labels." in said
    assert "&#39;5&#39;" not in (tmp_path / "page.html").read_text()


def test_numbers_as_labels_are_told_in_words_and_standard_input_is_read_once(rows):
    path = rows.parent / "report.html"
    text = re.sub(r",normal$", ",0", rows.read_text(), flags=re.MULTILINE)
    text = re.sub(r",[a-z ]+$", ",1", text, flags=re.MULTILINE).replace(",1", ",kind", 1)
    words = ("--label", "kind", "--out", rows.parent / "m", "--report", path)
    result = run("fit", "-", *words, *FAST, stdin=text)
    assert result.exit_code == 0, result.output
    read = Page(path.read_text())
    assert dict(read.rows("Rows by kind")[1:3]) == {"normal": "480", "anomaly": "120"}
    assert "how well unseen kinds are found.</p>" in read.whole, "one kind cannot be left out"


def test_a_kind_that_says_nothing_by_itself_is_shown_with_its_column(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{x + 6 * (i % 10 == 0):.3f},{'ny'[i % 10 == 0]}"
        for i, x in enumerate(rng.normal(size=600))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["x,fraud", *lines]))
    words = ("--label", "fraud", "--normal", "n", "--out", tmp_path / "m")
    result = run("fit", tmp_path / "t.csv", *words, "--report", tmp_path / "page.html", *FAST)
    assert result.exit_code == 0, result.output
    read = Page((tmp_path / "page.html").read_text())
    assert "fraud = y" in {line[0] for line in read.rows("Average precision by kind")}
    assert "<strong>y</strong>" not in read.whole


def test_a_column_without_a_name_is_left_out_as_the_warning_says(tmp_path):
    lines = [f"{i},{x:.3f}" for i, x in enumerate(np.random.default_rng(0).normal(size=300))]
    (tmp_path / "t.csv").write_text("\n".join([",x", *lines]))
    words = ("fit", tmp_path / "t.csv", "--out", tmp_path / "m", *FAST)
    assert "leave it out: --drop ''" in " ".join(run(*words).output.split())
    said = run(*words, "--drop", "").output
    assert "columns     1: 1 number" in said
    assert "leave it out" not in said


def test_several_labels_of_normal_rows_are_all_named(rows):
    path, head = rows.parent / "report.html", rows.read_text().splitlines()[0]
    lines = rows.read_text().splitlines()[1:]
    labels = iter(["current", "paid", "paid"] * 200)
    lines = [re.sub("normal$", lambda _: next(labels), line) for line in lines]
    rows.write_text("\n".join([head, *lines]))
    words = ("--label", "kind", "--normal", "current", "--normal", "paid", "--report", path)
    result = run("fit", rows, *words, "--out", rows.parent / "m", *FAST)
    assert result.exit_code == 0, result.output
    assert "480 normal (current or paid), 20 " in result.stdout
    assert "480 rows labelled current or paid are trusted" in result.stdout
    assert "Normal rows are those labelled &#34;current or paid&#34;." in path.read_text().replace(
        '"', "&#34;"
    )
    assert "rows labelled current or paid are trusted; any" in run("info", rows.parent / "m").stdout


def test_unlabelled_rows_are_the_normal_ones_where_nothing_else_is(rows):
    path = rows.parent / "report.html"
    text = re.sub(r",normal$", ",", rows.read_text(), flags=re.MULTILINE)
    rows.write_text(text.replace(",kind\n", ",fault\n", 1))
    words = ("--label", "fault", "--normal", "normal", "--out", rows.parent / "m", "--report", path)
    result = run("fit", rows, *words, *FAST)
    assert result.exit_code == 0, result.output
    assert "Each kind against 144 held-out rows without a label. Some of" in path.read_text()
    assert "480 rows without a label are doubted: some may be anomalies" in path.read_text()
    assert "held-out normal row" not in path.read_text()
    learn = f"eqsep learn {rows.parent / 'm'} labelled.csv --label fault --out later.eqsep"
    assert learn in Page(path.read_text()).commands()


LABELLED = {  # how many of 480 rows are labelled normal, and what the page calls the others
    480: "labelled normal",
    90: "not labelled anomalous",
    0: "without a label",
}


@pytest.mark.extra
@pytest.mark.parametrize("n_labelled", LABELLED)
def test_alarms_among_doubted_rows_are_not_called_false(rows, n_labelled):
    path, called = rows.parent / "report.html", LABELLED[n_labelled]
    head, *lines = rows.read_text().splitlines()
    normal = [i for i, line in enumerate(lines) if line.endswith(",normal")]
    for i in normal[n_labelled:]:
        lines[i] = lines[i].removesuffix("normal")
    rows.write_text("\n".join([head, *lines]))
    words = ("--label", "kind", "--normal", "normal", "--unlabelled", "doubted", "--report", path)
    result = run("fit", rows, *words, "--out", rows.parent / "m", *FAST)
    assert result.exit_code == 0, result.output
    read = Page(path.read_text())
    table = read.rows(f"Alarms among rows {called}")
    assert table[0] == ["promised of normal rows, at most", "raise an alarm", "threshold"]
    assert "cannot be measured here: nobody has confirmed that these rows are normal" in read.whole
    assert "of new normal rows, at most, on average" in read.whole
    suspects = f"eqsep suspects {rows.parent / 'm'} learnt.csv --label kind --out suspects.csv"
    assert suspects in read.commands()
    for word in ("false alarms measured", ">verdict<", "held-out normal row"):
        assert word not in read.whole


def test_where_enough_rows_are_labelled_normal_false_alarms_are_measured_on_them(rows):
    path = rows.parent / "report.html"
    head, *lines = rows.read_text().splitlines()
    normal = [i for i, line in enumerate(lines) if line.endswith(",normal")]
    for i in normal[300:]:
        lines[i] = lines[i].removesuffix("normal")
    rows.write_text("\n".join([head, *lines]))
    words = ("--label", "kind", "--unlabelled", "doubted", "--report", path)
    result = run("fit", rows, *words, "--out", rows.parent / "m", *FAST)
    assert result.exit_code == 0, result.output
    assert "false alarms measured" in path.read_text()
    assert "90 held-out normal rows" in path.read_text()  # three tenths of 300


def test_kinds_with_few_labels_are_measured_too(rows):
    """Of three rows one is held out, of a single one none."""
    path, left = rows.parent / "report.html", {"takeover": 3, "sleeper": 1, "normal": 480}
    head, *lines = rows.read_text().splitlines()
    for i, line in enumerate(lines):
        kind = line.rpartition(",")[2]
        left[kind] = left.get(kind, 0) - 1
        if left[kind] < 0 or kind == "normal":
            lines[i] = line.removesuffix(kind)
    rows.write_text("\n".join([head, *lines]))
    words = ("--label", "kind", "--normal", "normal", "--drop", "id", "--report", path)
    result = run("fit", rows, *words, "--out", rows.parent / "m", *FAST)
    assert result.exit_code == 0, result.output
    table = Page(path.read_text()).rows("Average precision by kind")
    assert [(line[0], line[4]) for line in table if len(line) == 5][1:] == [("takeover", "1")]


@pytest.mark.parametrize(
    ("place", "message"),
    [(".", "is a folder"), ("none/r.html", "There is no folder"), ("m", "are both")],
)
def test_a_bad_place_for_the_report_is_refused_before_the_work(rows, place, message):
    words = ("--label", "kind", "--out", rows.parent / "m", "--report", rows.parent / place)
    result = run("fit", rows, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(rows.parent.iterdir()) == [rows]


def test_evaluate_writes_a_report(rows):
    path = rows.parent / "evaluation.html"
    text = re.sub(r",normal$", ",ok", rows.read_text(), flags=re.MULTILINE)
    text = text.replace(",ok\n", ",fit\n", 9).replace(",takeover\n", ",7\n").splitlines()
    rows.write_text("\n".join(t for t in text if re.search("kind$|ok$|fit$|,7$|sleeper$", t)))
    words = ("--label", "kind", "--normal", "ok", "--normal", "fit", "--drop", "id")
    words = (*words, "--landmarks", 60)
    words = (*words, "--unlabelled", "doubted", "--report", path)
    result = run("evaluate", rows, *words)
    assert result.exit_code == 0, result.output
    read = Page(path.read_text())
    again = f"eqsep evaluate {rows} --label kind --normal ok --normal fit --drop id"
    again += " --unlabelled doubted --false-alarm-rate 0.01 --unseen-rate 0.05 --landmarks 60"
    again += f" --random-state 0 --report {path}"
    assert any(again in command for command in read.commands())
    assert read.rows("Rows by kind")[1] == ["normal", "480"]
    assert 'Normal rows are those labelled "ok or fit".' in read.whole
    assert len(read.all("svg")) == 3  # two curves, and how reliable names are
    assert "Names, by a model of half of the rows on the other half:" in result.stdout
    for word in ("names right", "a random forest", "sets of kinds", "Alarms named unseen"):
        assert word in result.stdout
    assert "The same without kind = 7: " in read.whole
    assert "Ahead or behind" not in read.whole  # of one method


def test_the_page_of_an_evaluation_says_what_could_not_be_measured(rows):
    path = rows.parent / "evaluation.html"
    text = rows.read_text().splitlines()
    kept = [t for t in text if re.search("kind$|normal$|takeover$", t)]
    rows.write_text(re.sub(",normal$", ",", "\n".join(kept), flags=re.MULTILINE))
    words = ("--label", "kind", "--normal", "normal", "--drop", "id", "--landmarks", 60)
    result = run("evaluate", rows, *words, "--report", path)
    assert result.exit_code == 0, result.output
    read = Page(path.read_text())
    assert "480 rows without a label count as normal, and some may be" in read.whole
    assert "so unseen kinds could not be measured" in read.whole
    assert read.rows("Rows by kind")[1:] == [["takeover", "20"], ["without a label", "480"]]
    assert read.rows("Average precision by seen kind and method")[0] == ["method", "seen"]
    assert not {"means", "matrix"} & {h["attrs"].get("id") for h in read.all("h2")}
    assert "nan" not in read.whole


def test_of_large_files_a_sample_is_measured(rows, monkeypatch):
    monkeypatch.setattr("eqsep.cli.fit.LARGE", 1000)
    path = rows.parent / "report.html"
    words = ("--label", "kind", "--seen", "takeover", "--out", rows.parent / "m", "--report", path)
    result = run("fit", rows, "--drop", "id", *words, *FAST)
    assert result.exit_code == 0, result.output
    read = Page(path.read_text())
    assert "of the sampled rows" in read.whole
    assert {a["attrs"]["aria-label"] for a in read.all("article")} == {"Alarm: a held-out row"}


@pytest.mark.parametrize("labels", [["normal"], ["normal", "fraud"], [None], ["normal"] * 2])
def test_few_normal_rows_have_a_report_or_one_sentence_says_why_not(labels, tmp_path):
    text = "".join(f"{i}.5,{i * i},{label or 'normal'}\n" for i, label in enumerate(labels))
    (tmp_path / "rows.csv").write_text("a,b,kind\n" + text)
    told = ("--drop", "kind") if labels == [None] else ("--label", "kind")
    report = tmp_path / "report.html"
    words = (*told, "--out", tmp_path / "m", "--report", report)
    result = run("fit", tmp_path / "rows.csv", *words)
    enough = labels.count("normal") > 1
    assert result.exit_code == (0 if enough else 2), result.output
    assert report.exists() == enough
    if not enough:
        assert "which takes at least 2 normal rows, got 1. Add normal rows" in result.stderr
        assert "The model is written" in result.stderr
        assert (tmp_path / "m").exists()


@pytest.mark.parametrize("n_groups", [2, 3])
def test_few_groups_have_a_report_or_one_sentence_says_why_not(n_groups, tmp_path):
    rng, lines = np.random.default_rng(0), ["machine,a,kind"]
    for group in range(n_groups):  # and beside each of them one of anomalies alone
        lines += [f"m{group},{x:.3f},normal" for x in rng.normal(size=20)]
        lines += [f"x{group},{x:.3f},fraud" for x in rng.normal(5, size=5)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    report = tmp_path / "report.html"
    words = ("--label", "kind", "--group", "machine", "--out", tmp_path / "m", "--report", report)
    result = run("fit", tmp_path / "rows.csv", *words)
    assert result.exit_code == (0 if n_groups == 3 else 2), result.output
    assert report.exists() == (n_groups == 3)
    if n_groups == 2:
        assert "takes at least 3 groups with normal rows, got 2" in result.stderr
