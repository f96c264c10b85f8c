"""The project file: options written once, beside the data."""

import csv
import datetime as dt
import json
import re
import tomllib

import numpy as np
import pytest
from invoking import CliRunner

from eqsep import Detector, load_model
from eqsep.cli import app, option_defaults, with_model
from eqsep.cli.project import Project
from eqsep.detector import Config
from eqsep.errors import UserError
from eqsep.io import write_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows with an id, a leak, a date and labels; and a model that a project file made."""
    folder = tmp_path_factory.mktemp("project")
    rng = np.random.default_rng(0)
    with (folder / "sensors.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "heat", "load", "note", "day", "status"])
        for i in range(400):
            hot = i % 20 == 0
            heat, load = rng.normal(size=2) + (4 if hot else 0)
            note = "bad" if hot else "good"
            rows.writerow([i, heat, load, note, f"2025-01-{1 + i % 28:02}", ["Ok", "hot"][hot]])
    return folder


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def fitted(folder):
    run("init", folder / "sensors.csv")
    run("fit", folder / "sensors.csv", "--drop", "note,day", "--landmarks", 50)
    return folder


def test_init_writes_what_it_saw_with_a_comment_for_each_line(folder, tmp_path):
    out = tmp_path / "eqsep.toml"
    run("init", folder / "sensors.csv", "--out", out)
    text = out.read_text()
    found = tomllib.loads(text)
    assert found["label"] == "status"
    assert found["normal"] == "Ok"
    assert found["drop"] == ["id", "day"]
    assert found["keep"] == ["id", "day"]
    assert found["model"] == "sensors.eqsep"
    assert '# "note",  # tells anomalous rows from normal ones: its average precision is' in text
    assert '    "day",  # a date' in text
    assert '# time = "day"  # if rows depend on those before; not learnt, and may stay in' in text
    assert "# group: no column found by its name" in text
    lines = [line for line in text.splitlines() if line.strip(" []\n") and line != "drop = ["]
    assert all("#" in line for line in lines)


@pytest.fixture
def plant(tmp_path):
    """The table of a plant: a comment at the top, semicolons, and text that is not UTF-8."""
    rng = np.random.default_rng(0)
    lines = ["# Export Kläranlage", "Zeit;Anlage;Trübung;pH;Befund"]
    for i in range(400):
        bad = i % 20 == 0
        x, y = rng.normal(size=2) + 4 * bad
        when = f"{1 + i // 24:02}.03.2026 {i % 24:02}:00"
        values = f"{x:.3f};{y:.3f}".replace(".", ",")
        lines.append(f"{when};L{i % 3};{values};{'Störung' if bad else 'i.O.'}")
    path = tmp_path / "plant.csv"
    path.write_bytes("\n".join(lines).encode("cp1252"))
    return path


def test_init_says_when_and_which_and_how_the_table_is_written(plant):
    noted = run("init", plant).stderr
    assert "Values are separated by semicolons" in noted
    assert "Note: Skipped 1 line before the table." in noted
    project = plant.parent / "eqsep.toml"
    text = project.read_text()
    found = tomllib.loads(text)
    assert found["keep"] == ["Zeit", "Anlage"]
    assert found["drop"] == ["Zeit"]
    assert (found["delimiter"], found["encoding"]) == (";", "cp1252")
    project.write_text(text.replace("# time", "time").replace("# group", "group"))
    told = run("fit", plant, "--landmarks", 30, "--false-alarm-rate", 0.2)
    assert "semicolons" not in told.stderr
    assert "cp1252" not in told.stderr
    assert "held out by time block; groups by column 'Anlage' and times by column" in told.stdout
    assert run("score", plant).stdout.startswith("row,Zeit,Anlage,score")


def test_a_mixture_of_encodings_is_not_one(tmp_path):
    path = tmp_path / "t.csv"
    rows = ["Köln".encode("cp1252"), "Wörth".encode(), b"Bern"]
    path.write_bytes(b"town,x\n" + b"".join(b"%s,%d\n" % (rows[i % 3], i % 7) for i in range(90)))
    run("init", path)
    assert "encoding" not in (tmp_path / "eqsep.toml").read_text()


@pytest.mark.parametrize(
    ("name", "first", "step", "time"),
    [
        ("ts", 1_770_000_000, 30, '# time = "ts"  #'),
        ("seen", 1_770_000_000_000, 1000, '# time = "seen"  #'),
        ("order", 1_770_000_000, 1, "# ordered = true  # no times found"),
        ("size", 20, -1, "# ordered = true  # no times found"),
    ],
)
def test_init_knows_unix_times(tmp_path, name, first, step, time):
    path = tmp_path / "t.jsonl"
    rows = ({name: first + step * i, "cpu": i * i % 7 / 10} for i in range(100))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("init", path)
    text = (tmp_path / "eqsep.toml").read_text()
    assert time in text
    assert f'"{name}",  # {"Unix" if "ordered" not in time else "counts"}' in text
    assert "timestamp" not in text


def test_hints_name_the_project_file_where_there_is_one(folder, tmp_path):
    rows, project = tmp_path / "sensors.csv", tmp_path / "eqsep.toml"
    rows.write_text((folder / "sensors.csv").read_text())
    words = ("--label", "status", "--normal", "Ok", "--landmarks", 30, "--out", tmp_path / "m")
    assert "Unless it matters, leave it out: --drop 'day'." in run("fit", rows, *words).stderr
    project.write_text('drop = ["id"]\n')
    said = run("fit", rows, *words).stderr
    assert "Unless it matters, leave it out: add 'day' to drop in eqsep.toml." in said
    assert "--drop" not in said


def test_errors_about_labels_name_the_project_file_where_there_is_one(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("x,kind\n" + "".join(f"{i}.5,{'ab'[i % 2]}\n" for i in range(40)))
    said = run("fit", rows, "--label", "kind", "--out", tmp_path / "m", code=2).stderr
    assert "Say which label of column 'kind' is normal: --normal LABEL." in said
    (tmp_path / "eqsep.toml").write_text('label = "kind"\nmodel = "m"\n')
    said = run("fit", rows, code=2).stderr
    expected = "Say which label of column 'kind' is normal: normal = \"LABEL\" in eqsep.toml."
    assert expected in said
    rows.write_text(
        "x,kind\n" + "".join(f"{i}.5,{('ok', 'fine', 'b')[i % 3]}\n" for i in range(40))
    )
    said = run("fit", rows, "--landmarks", 30).stderr
    assert 'Use normal = ["ok", "fine"] in eqsep.toml if such rows are normal.' in said


@pytest.mark.parametrize(("labels", "most"), [(["fine", "ok", "bad"], "ok"), (["a", "b"], "a")])
def test_init_does_not_guess_which_label_is_normal(tmp_path, labels, most):
    rows = [f"{i * i % 7}.5,{most if i % 7 else labels[i % len(labels)]}" for i in range(300)]
    (tmp_path / "t.csv").write_text("\n".join(["x,kind", *rows]) + "\n")
    run("init", tmp_path / "t.csv")
    text = (tmp_path / "eqsep.toml").read_text()
    assert "normal" not in tomllib.loads(text)
    assert '# normal = "..."  # CHECK: choose the label of normal rows: ' in text
    assert re.search(rf"normal rows: .*\b{most} \(\d+\)", text)
    assert ("Several labels may be normal: a list of them" in text) == (len(labels) > 2)


def test_init_counts_rows_without_a_label_where_no_label_is_a_name_of_normal_rows(tmp_path):
    rows = [f"{i * i % 7}.5,{f'cause {i % 10}' if i % 3 else ''}" for i in range(300)]
    (tmp_path / "t.csv").write_text("\n".join(["x,kind", *rows]) + "\n")
    text = run("init", tmp_path / "t.csv").stdout
    assert re.search(r"normal rows: (cause \d \(20\), ){8}…", text)  # of ten causes
    assert '# normal = "normal"  # if these are all anomalies, and the 100 rows without a' in text


def test_init_does_not_replace_a_file_unasked(folder, tmp_path):
    out = tmp_path / "eqsep.toml"
    out.write_text('label = "mine"\n')
    assert (
        "exists: edit it, or replace it with --force"
        in run("init", folder / "sensors.csv", "--out", out, code=2).stderr
    )
    assert out.read_text() == 'label = "mine"\n'
    run("init", folder / "sensors.csv", "--out", out, "--force")
    assert "status" in out.read_text()


def test_every_command_reads_it_and_no_option_is_repeated(fitted):
    assert (fitted / "sensors.eqsep").is_file()
    rows = fitted / "sensors.csv"
    assert run("score", rows).stdout.count("\n") == 401
    assert "heat" in run("explain", rows, "--most", 1).stdout
    assert "hot" in run("test", rows, "--learnt-too").stdout
    assert "rows" in run("suspects", rows).stderr


def test_the_command_line_wins(fitted, tmp_path):
    other = tmp_path / "other.eqsep"
    told = run(
        *("fit", fitted / "sensors.csv", "--label", "note", "--normal", "good", "--drop", "status"),
        *("--drop", "id", "--drop", "day", "--out", other, "--landmarks", 50),
    ).stdout
    assert "380 normal (good), 20 bad" in told
    assert other.is_file()


def test_columns_may_be_divided_by_commas_or_repeated(fitted, tmp_path):
    for drop in (["--drop", "note,day,id"], ["--drop", "note", "--drop", "day", "--drop", "id"]):
        out = run(
            "fit", fitted / "sensors.csv", *drop, "--landmarks", 50, "--out", tmp_path / "m"
        ).stdout
        assert "without note, day, id" in out


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('lable = "kind"', "unknown key 'lable'.* Did you mean 'label'?"),
        ("window = 1.5", "window must be a whole number, got 1.5"),
        ("header = 'yes'", "header must be true or false, got 'yes'"),
        ("drop = [[1]]", "drop must be a text or a list of texts"),
        ("false_alarm_rate = 'low'", "false_alarm_rate must be a number, got 'low'"),
        ("label = ", "is not valid TOML"),
    ],
)
def test_what_no_command_knows_is_refused(tmp_path, text, reason):
    path = tmp_path / "eqsep.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=reason):
        Project.read(path)


def test_a_bad_project_file_is_one_sentence(tmp_path):
    rows = tmp_path / "t.csv"
    rows.write_text("x\n1\n")
    (tmp_path / "eqsep.toml").write_text("lable = 1\n")
    result = run("fit", rows, "--out", tmp_path / "m", code=2)
    assert result.stderr.count("\n") == 1
    assert "Did you mean 'label'?" in result.stderr


def test_the_model_is_that_of_the_folder_unless_one_is_named(tmp_path):
    (tmp_path / "eqsep.toml").write_text('model = "m.eqsep"\nfalse_alarm_rate = 0.05\n')
    found = Project.read(tmp_path / "eqsep.toml")
    model = str(tmp_path / "m.eqsep")
    assert with_model(found, "score", ["rows.csv"]) == [model, "rows.csv"]
    assert with_model(found, "score", ["a.eqsep", "rows.csv"]) == ["a.eqsep", "rows.csv"]
    assert with_model(found, "fit", ["rows.csv"]) == ["rows.csv"]
    assert with_model(found, "serve", ["token", "ada"]) == ["token", "ada"]
    assert option_defaults(found, "fit", []) == {"false_alarm_rate": 0.05, "out": model}
    assert option_defaults(found, "score", ["rows.csv", "--fdr", "0.1"]) == {}


def test_the_model_of_the_project_is_found_from_its_folder(fitted, monkeypatch):
    monkeypatch.chdir(fitted)
    assert "sensors.eqsep" in run("info").stdout


def test_names_with_commas_are_taken_whole(tmp_path):
    rows = ['"id, x",a,kind', *(f"{i},{i * i % 7}.5,normal" for i in range(300))]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    run("init", tmp_path / "t.csv")
    assert tomllib.loads((tmp_path / "eqsep.toml").read_text())["drop"] == ["id, x"]
    assert "without id, x" in run("fit", tmp_path / "t.csv", "--landmarks", 20).stdout


def test_ragged_rows_are_set_aside_by_every_command_once_init_was_told(tmp_path):
    rows = [f"{i},{i * i % 7}.5,{'bad' if i % 9 == 0 else 'ok'}" for i in range(300)]
    rows.insert(40, "1,2,3,4")
    (tmp_path / "t.dat").write_text("\n".join(["nr,x,status", *rows]) + "\n")
    assert "line 42" in run("init", tmp_path / "t.dat", code=2).stderr
    assert not (tmp_path / "eqsep.toml").exists()
    run("init", tmp_path / "t.dat", "--bad-rows", tmp_path / "bad.csv")
    assert tomllib.loads((tmp_path / "eqsep.toml").read_text())["bad_rows"] == "bad.csv"
    run("fit", tmp_path / "t.dat", "--landmarks", 20)
    (tmp_path / "bad.csv").unlink()
    out = run("score", tmp_path / "t.dat").stdout
    assert out.startswith("row,nr,score")  # the id is left out of the fit, and kept
    assert "1,2,3,4" in (tmp_path / "bad.csv").read_text()


def test_a_column_that_the_command_line_uses_is_not_left_out(fitted):
    rows = fitted / "sensors.csv"
    words = ("--time", "id", "--every", 100, "--delay", 50, "--first", 100, "--against", "")
    assert "hot" in run("backtest", rows, *words, "--landmarks", 30).stdout


def test_a_column_of_times_may_stay_in_the_drop_of_the_project(tmp_path):
    project = tmp_path / "eqsep.toml"
    project.write_text('label = "kind"\ntime = "day"\ngroup = "run"\n')
    drop = 'drop = ["id", "day", "run", "kind", "late"]\n'
    project.write_text(project.read_text() + drop)
    found = Project.read(project)
    assert option_defaults(found, "fit", ["t.csv"])["drop"] == ["id", "late"]
    assert option_defaults(found, "fit", ["--time=late"])["drop"] == ["id", "day"]
    assert option_defaults(found, "fit", ["--time", "late"])["drop"] == ["id", "day"]
    assert "run" in option_defaults(found, "backtest", [])["drop"]  # which knows no groups


def test_a_changed_drop_is_noted_until_the_next_fit(folder, tmp_path):
    text = (folder / "sensors.csv").read_text()
    (tmp_path / "sensors.csv").write_text(text)
    project, rows = tmp_path / "eqsep.toml", tmp_path / "sensors.csv"
    rest = 'model = "m.eqsep"\nlabel = "status"\nnormal = "Ok"\nlandmarks = 50\n'
    project.write_text(rest + 'drop = ["id", "note"]\n')
    run("fit", rows)
    assert "drop in" not in run("score", rows).stderr
    project.write_text(rest + 'drop = ["id", "day"]\n')
    note = "Note: drop in eqsep.toml is not what the model was fitted by: it was fitted with 'day' "
    for words in (("score", rows), ("explain", rows), ("info", tmp_path / "m.eqsep")):
        assert f"{note}and without 'note'. To apply" in run(*words).stderr
    run("fit", rows)
    assert "drop in" not in run("score", rows).stderr
    project.write_text(rest + 'drop = ["id", "day"]\nfalse_alarm_rate = 0.2\n')
    note = "Note: The false-alarm rate is 0.2 by eqsep.toml; the model was fitted for 0.01.\n"
    for command in ("score", "explain", "test"):
        assert note in run(command, rows, *["--learnt-too"] * (command == "test")).stderr
    assert note not in run("score", rows, "--false-alarm-rate", "0.1").stderr


def test_a_missing_model_is_said_in_words_of_the_project(tmp_path):
    rows = tmp_path / "t.csv"
    rows.write_text("x\n1\n")
    assert "Pass --out MODEL, or run eqsep init first" in run("fit", rows, code=2).stderr
    assert "Which model? Pass its file before" in run("score", rows, code=2).stderr


def test_an_error_says_whose_options_were_used(fitted):
    told = run("fit", fitted / "sensors.csv", "--label", "lost", code=2).stderr
    assert f"Note: some options come from {fitted / 'eqsep.toml'}." in told


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "false_alarm_rate = 1",
            "false_alarm_rate in {} (line 4) must be a number between 0 and 1",
        ),
        ("random_state = -1", "random_state in {} (line 4): "),
        ('seen = "cold"', "seen = 'cold' in {} (line 4) is not a kind in column 'status'"),
        ('unlabelled = "none"', "unlabelled in {} (line 4) must be one of"),
        ('drop = ["idd"]', "Did you mean 'id'? 'idd' comes from drop in {} (line 4)."),
        (
            'time = "day"\nordered = true',
            "ordered in {} (line 5) and time in ",
        ),
        ('normal = "fine"', "labelled 'fine', the normal label by normal in {} (line 4): it holds"),
    ],
)
def test_an_error_about_a_value_of_the_file_names_key_and_line(folder, tmp_path, line, said):
    rows, project = tmp_path / "sensors.csv", tmp_path / "eqsep.toml"
    rows.write_text((folder / "sensors.csv").read_text())
    first = 'model = "m.eqsep"\nlandmarks = 30\nlabel = "status"\n'
    project.write_text(first + line + "\n")
    assert said.format(project) in run("fit", rows, code=2).stderr


def test_an_error_names_the_key_that_the_command_uses(fitted, tmp_path):
    rows = tmp_path / "new.csv"
    rows.write_text("id,heat,load\n1,0.5,0.5\n")  # 'day' is in drop, too
    said = run("score", fitted / "sensors.eqsep", rows, code=2).stderr
    assert f"'day' comes from keep in {fitted / 'eqsep.toml'} (line" in said


def test_an_error_about_an_option_of_the_command_line_names_the_option(fitted):
    said = run("fit", fitted / "sensors.csv", "--false-alarm-rate=1", code=2).stderr
    assert "--false-alarm-rate must be" in said


@pytest.mark.parametrize("normal", ["Ok", "OK "])
def test_a_label_that_is_named_and_not_there_is_not_asked_for(tmp_path, normal, monkeypatch):
    rows = tmp_path / "rows.csv"
    rows.write_text("x,kind\n" + "".join(f"{i}.5,{'ab'[i % 2]}\n" for i in range(40)))
    words = ("--label", "kind", "--normal", normal, "--out", tmp_path / "m.eqsep")
    said = run("fit", rows, *words, code=2).stderr
    expected = f"holds no row labelled {normal!r}, the normal label by --normal: it holds 'a' (20 r"
    assert expected in said
    with monkeypatch.context() as large:
        large.setattr("eqsep.cli.fit.LARGE", 0)
        assert expected in run("fit", rows, *words, code=2).stderr
    rows.write_text(rows.read_text() + "7,\n")
    said = run("fit", rows, *words, code=2).stderr
    assert f"No label is {normal!r}: every label is a kind of anomaly, 'a' (20 rows), 'b'" in said
    assert "and 1 row without a label. Correct --normal, or add rows without a label" in said


def test_a_kind_with_one_row_is_left_out_of_an_evaluation(tmp_path):
    rows = [f"{i % 13}.5,{('a', 'b')[i % 2] if i % 10 == 0 else 'normal'}" for i in range(200)]
    rows[50] = "3.5,c"
    (tmp_path / "t.csv").write_text("\n".join(["x,kind", *rows]) + "\n")
    told = run("evaluate", tmp_path / "t.csv", "--label", "kind", "--landmarks", 20).stderr
    assert "Left out: 'c', with one row each." in told


def test_init_proposes_a_rate_that_can_be_promised_and_groups_that_repeat(tmp_path):
    rows = [f"{i % 7}.5,{i},{'ok' if i % 9 else 'leak'}" for i in range(150)]
    (tmp_path / "t.csv").write_text("\n".join(["size,machine,state", *rows]) + "\n")
    run("init", tmp_path / "t.csv")
    text = (tmp_path / "eqsep.toml").read_text()
    assert "false_alarm_rate = 0.02 " in text
    assert "# group: no column found by its name" in text


def test_a_long_list_of_columns_is_not_taken_for_a_file(tmp_path):
    names = ",".join(f"a_rather_long_name_of_a_column_{i}" for i in range(40))
    rows = "\n".join(f"{i % 7}.5" + f",{i}" * 40 for i in range(60))
    (tmp_path / "t.csv").write_text(f"size,{names}\n{rows}\n")
    result = run("fit", tmp_path / "t.csv", "--drop", names, "--out", tmp_path / "m.eqsep")
    assert "columns     1" in result.output


@pytest.mark.parametrize(("nothing", "said"), [("0", "0"), ("", "0 or no value")])
def test_init_calls_zeros_by_their_value(tmp_path, nothing, said):
    """Of rows with 0, nearly all are faulty: these are not rows without a value."""
    rng = np.random.default_rng(0)
    rows = [(0, "fault")] * 120 + [(5 + rng.integers(40), "fault") for _ in range(180)]
    rows += [(5 + rng.integers(40), "normal") for _ in range(500)]
    lines = [f"{rng.normal():.3f},{b},{kind}" for b, kind in rows]
    lines[0] = f"0.1,{nothing},fault"
    (tmp_path / "t.csv").write_text("\n".join(["a,b,kind", *lines]))
    drafted = run("init", tmp_path / "t.csv").stdout
    assert f"all 120 rows with {said} are anomalous" in drafted
    assert "rows without a value" not in drafted


def test_init_looks_for_leaks_of_the_likeliest_label_too(tmp_path):
    cuts = ["Ideal" if i % 10 else "Poor" for i in range(400)]
    rows = [f"{i * i % 17},{int(cut == 'Poor')},{cut}" for i, cut in enumerate(cuts)]
    (tmp_path / "t.csv").write_text("\n".join(["x,repaired,cut", *rows]))
    drafted = run("init", tmp_path / "t.csv").stdout
    assert '# label = "cut"  # CHECK: may hold labels: Ideal (360), Poor (40)\n' in drafted
    assert (
        '# normal = "..."  # CHECK: choose the label of normal rows: Ideal (360), Poor' in drafted
    )
    assert "    # \"repaired\",  # if 'Ideal' is normal, tells anomalous rows from" in drafted
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i}.5,{i % 11}.25\n" for i in range(90)))
    drafted = run("init", tmp_path / "t.csv", "--force").stdout
    assert "With a label, eqsep fit warns of columns that\n# give it away, too." in drafted


def test_init_shows_columns_that_are_filled_only_for_anomalies(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "t.csv"
    lines = [",x,recovered,paid,note,died,fees,status"]
    for i in range(400):
        bad = i % 8 == 0
        some = bad and i % 16 == 0
        numbers = f"{rng.gamma(2):.2f}" if some else "0"
        texts = f"{'' if some else i % 9},{f'note {i % 3}' if some else ''}"
        died, fees = f"2020-01-{1 + i % 28:02}" if some else "", i % 5 if i % 3 else ""
        lines.append(f"{i},{i * i % 17},{numbers},{texts},{died},{fees},{['ok', 'late'][bad]}")
    path.write_text("\n".join(lines))
    drafted = run("init", path).stdout
    hints = re.findall(
        r'^    (# )?"(\w+)",  # gives .* (with\S* .*) are anomalous.* Known (\w+)', drafted, re.M
    )
    assert hints == [
        ("", "died", "with a value", "before"),
        ("# ", "recovered", "with a value other than 0", "only"),
        ("# ", "paid", "without a value", "only"),
        ("# ", "note", "with a value", "only"),
    ]
    assert '"",  # (no name) counts or names the rows' in drafted
    assert tomllib.loads(drafted[: drafted.index("\nWrote")])["keep"] == [""]


def test_a_report_repeats_only_options_of_the_command_line(fitted):
    page = fitted / "page.html"
    words = ("--drop", "note,day", "--landmarks", 50, "--report", page)
    run("fit", fitted / "sensors.csv", *words)
    text = re.sub("<[^>]*>", "", page.read_text())
    assert f"eqsep test {fitted}/labelled.csv --report test.html" in text
    assert f"eqsep score {fitted}/new.csv --out scores.csv --explain 3" in text
    run("test", fitted / "sensors.csv", "--learnt-too", "--report", page)
    text = re.sub("<[^>]*>", "", page.read_text())
    assert f"eqsep test {fitted}/sensors.csv --learnt-too --report {page}\n" in text


def test_a_hint_names_the_column_of_times_that_init_drafted(tmp_path):
    walk = np.cumsum(np.random.default_rng(0).normal(size=300))
    days = np.datetime_as_string(np.datetime64("2024-01-01") + np.arange(300))
    rows = "".join(f"{day},{x:.3f}\n" for day, x in zip(days, walk, strict=True))
    (tmp_path / "t.csv").write_text(f"day,x\n{rows}")
    words = ("fit", tmp_path / "t.csv", "--landmarks", 30)
    assert "that of times with --time day." in run(*words, "--out", tmp_path / "m").stderr
    run("init", tmp_path / "t.csv")
    assert 'that of times with time = "day" in eqsep.toml.' in run(*words).stderr


def test_an_evaluation_reads_the_rates_of_the_project(fitted, tmp_path, monkeypatch):
    (tmp_path / "sensors.csv").write_text((fitted / "sensors.csv").read_text())
    rates = "unseen_rate = 0.2\nconfidence = 0.9\nbandwidth = 0.7\n"
    text = 'label = "status"\nnormal = "Ok"\ndrop = ["id", "note", "day"]\nlandmarks = 20\n'
    (tmp_path / "eqsep.toml").write_text(text + rates)
    tried = []
    monkeypatch.setattr("eqsep.cli.evaluate.try_names", lambda one, *_, **__: tried.append(one))
    run("evaluate", tmp_path / "sensors.csv")
    assert (tried[0].unseen_rate, tried[0].confidence, tried[0].bandwidth) == (0.2, 0.9, 0.7)


def test_a_fit_cautions_that_a_drafted_label_is_learnt(tmp_path):
    rows = tmp_path / "t.csv"
    lines = [f"{i},{i % 7}.5,{'yes' if i % 9 == 0 else 'no'}" for i in range(120)]
    rows.write_text("\n".join([",size,deny", *lines]))
    run("init", rows)
    project = tmp_path / "eqsep.toml"
    assert '# label = "deny"' in project.read_text()
    page = tmp_path / "page.html"
    caution = (
        'caution     eqsep.toml drafts label = "deny", still commented out, so it is learnt as a '
        "column. Uncomment it, or add 'deny' to drop."
    )
    assert caution in run("fit", rows, "--landmarks", 20, "--report", page).stdout
    text = re.sub("<[^>]*>", "", page.read_text()).replace("\xa0", " ")
    assert "Left out: (no name) (by drop in eqsep.toml)." in text
    assert f"eqsep watch {tmp_path}/new.csv --report watch.html" in text
    assert "--label" not in text
    for words in (("--label", "deny", "--normal", "no"), ("--drop", "deny")):
        assert "drafts" not in run("fit", rows, "--landmarks", 20, *words).stdout
    missing = " ".join(run("test", rows, code=2).stderr.replace("│", "").split())
    assert "set label in eqsep.toml. Rows without labels are for eqsep watch." in missing


def test_the_command_that_shows_why_a_threshold_is_high_runs(tmp_path):
    rng, rows = np.random.default_rng(0), tmp_path / "t.csv"
    lines = [
        f"{a},{b},{'fault' if i % 4 == 0 else 'ok'}"
        for i, (a, b) in enumerate(rng.normal(size=(300, 2)))
    ]
    rows.write_text("\n".join(["a,b,state", *lines]))
    run("init", rows)
    told = " ".join(run("fit", rows, "--landmarks", 20).stderr.split())
    command = re.search(
        r"run eqsep (score .*? --out scores.csv), and look at the normal rows", told
    )
    assert command[1] == f"score {rows} --keep state --out scores.csv"
    out = tmp_path / "scores.csv"
    run(*command[1].split()[:-1], out)
    with out.open() as file:
        normal = [float(row["score"]) for row in csv.DictReader(file) if row["state"] == "ok"]
    threshold = load_model(tmp_path / "t.eqsep").threshold_
    assert max(normal) >= threshold - 1e-5


def test_a_report_says_by_what_a_column_was_left_out(folder, tmp_path):
    rows, project = tmp_path / "sensors.csv", tmp_path / "eqsep.toml"
    rows.write_text((folder / "sensors.csv").read_text())
    rest = 'model = "m.eqsep"\nlabel = "status"\nnormal = "Ok"\nlandmarks = 30\n'
    project.write_text(rest + 'drop = ["id", "note", "day"]\nfalse_alarm_rate = 0.05\n')
    for words, by in [((), "by drop in eqsep.toml"), (("--drop", "id,note,day"), "by --drop")]:
        run("fit", rows, *words, "--report", tmp_path / "page.html")
        text = re.sub("<[^>]*>", "", (tmp_path / "page.html").read_text()).replace("\xa0", " ")
        assert f"Left out: id ({by}), note ({by}), day ({by})." in text


@pytest.mark.parametrize(
    ("keep", "name"),
    [("", r"wafer W-\d+"), ('keep = ["id", "day"]\n', r"id \d+, day 2025-01-\d\d")],
)
def test_reports_call_alarms_by_the_columns_to_keep_and_else_by_an_id(folder, tmp_path, keep, name):
    rows, page = tmp_path / "sensors.csv", tmp_path / "page.html"
    head, *lines = (folder / "sensors.csv").read_text().splitlines()
    lines = [f"{line},W-{i},remark {i}" for i, line in enumerate(lines)]
    rows.write_text("\n".join([f"{head},wafer,remark", *lines]))
    text = 'model = "m.eqsep"\nlabel = "status"\nlandmarks = 30\nfalse_alarm_rate = 0.05\n'
    text += f'normal = "Ok"\ndrop = ["id", "note", "day"]\n{keep}'
    (tmp_path / "eqsep.toml").write_text(text)
    for words in (("fit", rows), ("test", rows, "--learnt-too")):
        page.unlink(missing_ok=True)
        assert "Taken as" not in run(*words, "--report", page).stderr
        called = re.findall('aria-label="Alarm: (.*?)"', page.read_text())
        assert called
        assert all(re.fullmatch(name, one) for one in called), called


def test_a_grade_called_good_is_not_the_normal_label_unless_most_rows_have_it(tmp_path):
    def drafted(grades):
        rows = [f"{i % 7},{grade}" for i, grade in enumerate(grades)]
        (tmp_path / "t.csv").write_text("\n".join(["x,cut", *rows]))
        run("init", tmp_path / "t.csv", "--force")
        return (tmp_path / "eqsep.toml").read_text()

    assert "# label =" in drafted(["Ideal"] * 50 + ["Good"] * 12 + ["Fair"] * 4)
    assert 'normal = "Good"' in drafted(["Ideal"] * 8 + ["Good"] * 50 + ["Fair"] * 4)


def test_init_reads_dates_as_a_fit_does(tmp_path):
    path = tmp_path / "t.csv"
    hours = [dt.datetime(2013, 1, 1) + dt.timedelta(hours=i) for i in range(600)]
    path.write_text("taken at,x\n" + "".join(f"{t:%m/%d/%Y %H:%M},1.5\n" for t in hours))
    assert '# time = "taken at"' in run("init", path).stdout


def station(folder, *, word_at=0):
    """A log with words for a missing value among the numbers of two columns."""
    rows = [[f"{i % 50}.5 °F", f"{i % 40}.25", i % 7] for i in range(100)]
    rows[word_at][0], rows[word_at][1] = "M", "T"
    path = folder / "log.csv"
    path.write_text("air temp,rain,x\n" + "".join("{},{},{}\n".format(*row) for row in rows))
    return path


def test_notes_of_a_draft_name_its_keys_and_words_that_stop_a_fit(tmp_path):
    rows = [(["NA", "x", "y", "z"][i % 4], "low" if i == 7 else i * i % 97) for i in range(400)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *(f"{a},{b}" for a, b in rows)]))
    made = run("init", tmp_path / "t.csv")
    assert "as a name, add 'a' to categorical in eqsep.toml." in made.stderr
    assert "'low' in 'b'. eqsep fit stops at them. If they are missing values, list" in made.stderr
    assert "Decide on its lines marked CHECK, then run: eqsep fit" in made.stdout
    assert "'b' holds numbers and also 'low'" in run("fit", tmp_path / "t.csv", code=2).stderr


@pytest.mark.parametrize("word_at", [0, 99])
def test_init_proposes_the_words_among_numbers_as_missing_values(tmp_path, word_at):
    path = station(tmp_path, word_at=word_at)
    made = run("init", path)
    assert "'M' in 'air temp', 'T' in 'rain'" in made.stderr
    assert made.stderr.count("air temp: numbers in °F") == 1
    project = tmp_path / "eqsep.toml"
    text = project.read_text()
    assert '# missing = ["air temp=M", "rain=T"]  # ' in text
    assert "missing" not in tomllib.loads(text)
    project.write_text(text.replace("# missing", "missing").replace("0.01", "0.1"))
    run("fit", path, "--landmarks", 20)


def test_the_draft_has_one_line_for_missing_values(tmp_path):
    run("init", station(tmp_path), "--missing", "rain=T", "--missing", "?")
    text = (tmp_path / "eqsep.toml").read_text()
    assert tomllib.loads(text)["missing"] == ["rain=T", "?"]
    assert text.count("missing = ") == 1
    assert 'words for a missing value; add "air temp=M"' in text


def test_a_key_that_stands_twice_is_named(tmp_path):
    (tmp_path / "eqsep.toml").write_text('missing = ["-"]\nskip = 1\nmissing = ["?"]\n')
    error = run("fit", station(tmp_path), code=2).stderr
    assert "has the key 'missing' twice, in lines 1 and 3: keep one of them." in error


def test_a_fit_lists_all_columns_with_words_among_numbers(tmp_path):
    path = station(tmp_path)
    error = run("fit", path, "--out", tmp_path / "m", code=2).stderr
    assert "Column 'air temp' holds numbers and also 'M'. Column 'rain' holds numbers and" in error
    assert "pass --missing 'air temp=M' --missing 'rain=T'." in error
    (tmp_path / "eqsep.toml").write_text('model = "m"\n')
    assert "add 'air temp=M', 'rain=T' to missing in" in run("fit", path, code=2).stderr


def test_a_title_and_a_header_without_rows_are_a_table_without_rows(fitted, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Report of June;;;;;\nconfidential\n\nid;heat;load;note;day;status\n")
    for words in (["init", path], ["fit", path, "--out", tmp_path / "m"]):
        error = run(*words, code=2).stderr
        assert "t.csv has no rows: expected a header and rows below it." in error
    assert "0 rows, 0 alarms" in run("score", fitted / "sensors.eqsep", path).stderr


def draft(folder, header, rows, *options):
    path = folder / "t.csv"
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    run("init", path, "--force", *options)
    return (folder / "eqsep.toml").read_text()


@pytest.mark.parametrize(
    ("name", "values", "shared"),
    [
        ("julday", np.repeat(np.arange(373, 413), 3), "40 values, each in a run of rows: if rows"),
        ("ID", np.r_[np.arange(110)[::-1], :10] * 7919, "110 values in 120 rows: if rows"),
    ],
)
def test_init_drafts_ids_and_days_that_rows_share_as_groups(name, values, shared, tmp_path):
    text = draft(tmp_path, f"{name},a", zip(values, np.sin(values), strict=True))
    assert f'# group = "{name}"  # {shared}' in text
    assert f'"{name}",  # an id or a date that rows share' in text
    assert "counts or names" not in text


def test_init_drafts_no_group_of_numbers_that_count(tmp_path):
    counter = np.arange(120) + np.arange(120) % 2  # two rows share each
    text = draft(tmp_path, "total,at", zip(counter, 10**9 + counter // 4 * 60, strict=True))
    assert '"total",  # counts or names the rows' in text
    assert "# group: no column found by its name" in text


@pytest.mark.parametrize(
    ("name", "values", "is_time"),
    [
        ("pan_day", np.arange(300) // 4, True),
        ("time", np.arange(300) % 50 / 2, True),  # of six runs
        ("day", 1 + np.arange(300) // 4 % 31, False),  # of the month
        ("day_of_week", np.arange(300) // 24 % 7, False),
        ("t", np.arange(300) * 7919 % 300 // 2, False),
        ("day", np.arange(300) // 60, False),  # too few to hold out
    ],
)
def test_init_proposes_numbers_as_times_only_if_they_order_the_rows(
    name, values, is_time, tmp_path
):
    text = draft(tmp_path, f"{name},a", zip(values, np.sin(values), strict=True))
    assert (f'# time = "{name}"' in text) == is_time
    assert tomllib.loads(text).get("keep") == ([name] if is_time else None)


def test_init_does_not_take_a_date_of_few_years_for_a_time(tmp_path):
    years = [f"{1970 + i // 30}-01-01" for i in range(360)]
    text = draft(tmp_path, "Year,a", zip(years, np.sin(np.arange(360)), strict=True))
    assert "# ordered = true  # no times found" in text
    assert '"Year",  # a date: later rows lie beyond it' in text


def test_init_does_not_take_a_part_of_a_date_for_a_time(tmp_path):
    start, step = dt.datetime(2001, 1, 1), dt.timedelta(minutes=20)
    at = [start + i * step for i in range(4000)]
    rows = [(f"{t:%H%M}", t.month, t.day, t.year, i * i % 17) for i, t in enumerate(at)]
    text = draft(tmp_path, "time,month,day,year,x", rows)
    assert '# time: join "month", "day", "year" into one column of dates, and name it' in text
    assert "time =" not in text
    assert "keep" not in tomllib.loads(text)
    for name, values in (("t", range(4000)), ("at", at)):
        timed = [(value, *row) for value, row in zip(values, rows, strict=True)]
        text = draft(tmp_path, f"{name},time,month,day,year,x", timed)
        assert f'# time = "{name}"' in text
        assert tomllib.loads(text)["keep"] == [name]


def test_init_proposes_groups_by_the_last_word_of_their_names(tmp_path):
    rows = [(["JFK", "LGA"][i % 2], ["up", "down"][i % 2], i % 9 / 2) for i in range(60)]
    text = draft(tmp_path, "Weather station,station mode,x", rows)
    assert '# group = "Weather station"  # if rows of one machine' in text
    assert 'keep = ["Weather station"]' in text


def test_init_counts_labels_as_a_fit_does_and_shows_other_candidates(tmp_path):
    kinds = ["heart", "liver", "lungs"]
    labels = ["OK", "ok ", "OK", "bad"]
    rows = [(i % 9 / 2, labels[i % 4], kinds[i % 3]) for i in range(60)]
    text = draft(tmp_path, "x,status,cause", rows)
    assert 'label = "status"  # OK (45), bad (15)' in text
    assert '\nnormal = "OK"  # the label of normal rows, by its name' in text
    assert '# CHECK: or label = "cause"?  heart (20), liver (20), lungs (20)' in text
    text = draft(tmp_path, "x,status,cause", rows, "--label", "cause")
    assert '\nlabel = "cause"  # heart (20)' in text
    assert "or label" not in text
    error = run("init", tmp_path / "t.csv", "--force", "--label", "casue", code=2).stderr
    assert "has no column 'casue'" in error


@pytest.mark.parametrize(
    ("header", "label", "other"),
    [
        ("result,ward_class", "result", "ward_class"),  # which lacks values
        ("category,outcome", "outcome", "category"),  # which has many kinds
        ("verdict,status", "verdict", "status"),  # of which none sounds normal
    ],
)
def test_init_ranks_columns_that_may_hold_labels_and_names_the_second(
    header, label, other, tmp_path
):
    columns = {
        "result": ["negative", "positive", "negative", "invalid"],
        "ward_class": ["a", "", "b", ""],
        "category": [f"c{i}" for i in range(24)],
        "outcome": ["won", "lost"],
        "verdict": ["no", "maybe", "no"],
        "status": ["open", "closed", "lost"],
    }
    values = [columns[name] for name in header.split(",")]
    rows = [(i % 9 / 2, *(kinds[i % len(kinds)] for kinds in values)) for i in range(120)]
    text = draft(tmp_path, f"x,{header}", rows)
    assert re.search(rf'^label = "{label}"  #.*\n# CHECK: or label = "{other}"\?  ', text, re.M)
    assert "CHECK: or" not in draft(tmp_path, f"x,{header}", rows, "--label", label)


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("default,x,student", ["student", "default"]),
        ("default,student,x", ["default", "student"]),
        ("purchase,x,student,store", ["purchase", "student", "store"]),
        ("x,student,y", ["student"]),
        ("marital_status,x,income", ["marital_status", "income"]),
        ("purchase,x,student,state", ["state"]),
        ("host,x,y", []),  # a group
    ],
)
def test_init_names_all_columns_that_may_hold_labels_if_none_is_clear(header, named, tmp_path):
    columns = {
        "default": ["No", "No", "Yes"],
        "student": ["No", "Yes"],
        "purchase": ["CH", "MM"],
        "store": [0, 2, 1],
        "marital_status": ["single", "wed"],
        "income": ["<=50K", ">50K", "<=50K"],
        "state": ["ok", "ok", "bad"],
        "host": ["a1", "b2"],
        **dict.fromkeys("xy", np.random.default_rng(0).normal(size=90)),
    }
    values = [columns[name] for name in header.split(",")]
    text = draft(tmp_path, header, [[v[i % len(v)] for v in values] for i in range(90)])
    assert re.findall('label = "(.*?)"', text) == named
    clear = [named[0]] if named[:1] in (["state"], ["marital_status"]) else []
    assert re.findall('^label = "(.*?)"', text, re.MULTILINE) == clear
    assert re.findall('^# CHECK: or label = "(.*?)"', text, re.MULTILINE) == named[1:]


@pytest.mark.parametrize(
    ("labels", "sure"),
    [
        ([0, 0, 1], True),
        ([0, 1, 1], False),  # 0 is benign or malignant
        ([0, 0, 0, 1, 2], True),
        (range(10), False),  # digits
        ([0, "leak", "worn"], True),
    ],
)
def test_init_is_sure_that_0_is_normal_only_if_most_rows_have_it(labels, sure, tmp_path):
    rows = [(i * i % 97, labels[i % len(labels)]) for i in range(200)]
    text = draft(tmp_path, "x,target", rows)
    assert ('normal = "0"  # the label of normal rows, as 0 usually is' in text) == sure
    guess = '# normal = "0"  # CHECK: eqsep fit takes 0 for normal unless you name another label: '
    assert (guess in text) != sure


def test_init_does_not_take_any_truth_values_for_labels(tmp_path):
    rows = [(i % 9 / 2, i % 4 > 0, ["ok", "bad"][i % 2]) for i in range(60)]
    assert "CHECK" not in draft(tmp_path, "x,present,state", rows)


def test_init_writes_kinds_as_the_table_has_them(tmp_path):
    kinds = ["Rat", "Rat", "Rat", "Emu", "Rat", "Mouse"]
    rows = [(i * i % 17, "Bird" if i % 6 == 3 else "Rodent", kinds[i % 6]) for i in range(240)]
    text = draft(tmp_path, "x,taxa,kind", rows)
    assert "40 of the 40 rows of the kind 'Emu' are among them" in text


@pytest.mark.parametrize(
    ("command", "key"), [("fit", "model"), ("test", "label"), ("info", "model")]
)
def test_help_says_that_the_project_file_may_give_what_is_required(command, key):
    words = re.sub(r"[\s│]+", " ", run(command, "--help").stdout)
    assert f"; or set {key} in eqsep.toml." in words


def test_several_missing_columns_are_named_in_the_plural(fitted, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,day\n1,2025-01-01\n")
    error = run("score", fitted / "sensors.eqsep", path, "--keep", "id", code=2).stderr
    assert "Columns 'heat', 'load' are missing: the model was fitted with them, and" in error
    path.write_text("id,day,heat\n1,2025-01-01,2\n")
    error = run("score", fitted / "sensors.eqsep", path, "--keep", "id", code=2).stderr
    assert "Column 'load' is missing: the model was fitted with it, and" in error


def test_info_shows_many_weighted_rows_as_a_whole_number(tmp_path):
    quick = Detector(false_alarm_rate=0.05, n_landmarks=20, config=Config.fast())
    X = np.random.default_rng(0).normal(size=(400, 2))
    quick.fit(X, sample_weight=np.full(400, 0.777)).save(tmp_path / "m.eqsep")
    learnt = re.search(r"learnt +(\S+) normal", run("info", tmp_path / "m.eqsep").stdout)
    assert learnt[1].isdigit()


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_words_for_missing_values_are_missing_in_files_of_all_formats(tmp_path, form):
    """At a fit, from the project file too, and later by the model, whatever the first format."""
    rng = np.random.default_rng(0)
    table = {"heat": rng.normal(size=300), "state": rng.choice(["on", "off", "gone"], size=300)}
    table["heat"][::9] = -999
    for other in ("csv", "jsonl", "parquet"):
        write_table(table, tmp_path / f"rows.{other}")
    table["heat"][::9] = np.nan
    table["state"][table["state"] == "gone"] = ""
    write_table(table, tmp_path / "plain.csv")
    model, out = tmp_path / "m.eqsep", tmp_path / "s.csv"

    def scores(*words):
        run("score", model, *words, "--out", out)
        return out.read_bytes()

    run("fit", tmp_path / "plain.csv", "--landmarks", 50, "--out", model)
    plain = scores(tmp_path / "plain.csv")
    words = ["--missing", "heat=-999", "--missing", "state=gone"]
    assert scores(tmp_path / f"rows.{form}", *words) == plain
    assert scores(tmp_path / f"rows.{form}") != plain
    (tmp_path / "eqsep.toml").write_text('missing = ["heat=-999", "state=gone"]\n')
    fitted = run("fit", tmp_path / f"rows.{form}", "--landmarks", 50, "--out", model)
    assert "Taken as missing" not in fitted.stderr  # it was asked for
    (tmp_path / "eqsep.toml").unlink()
    assert {scores(tmp_path / f"rows.{other}") for other in ("csv", "jsonl", "parquet")} == {plain}


def test_a_word_for_a_column_that_no_file_has_is_refused(fitted):
    words = ("score", fitted / "sensors.eqsep", fitted / "sensors.csv", "--missing", "hat=-1")
    assert "Did you mean 'heat'?" in run(*words, code=2).stderr


def test_extra_columns_are_noted_unless_the_fit_left_them_out(tmp_path, fitted):
    said = "Note: Columns that the model has not learnt are ignored: 'humidity'.\n"
    lines = (fitted / "sensors.csv").read_text().splitlines()
    rows = tmp_path / "more.csv"
    rows.write_text("\n".join([lines[0] + ",humidity", *(line + ",1" for line in lines[1:])]))
    model = fitted / "sensors.eqsep"
    for words in (
        ["score"],
        ["explain", "--most", 3],
        ["test", "--label", "status", "--learnt-too"],
    ):
        found = run(words[0], model, rows, *words[1:])
        assert found.stderr.count(said) == 1, words
        assert "ignored" not in run(words[0], model, fitted / "sensors.csv", *words[1:]).stderr
    assert "ignored" not in run("score", model, rows, "--keep", "humidity").stderr
    assert (
        "ignored: 'humidity'"
        in run(
            "learn", model, rows, "--label", "status", "--again", "--out", tmp_path / "more.eqsep"
        ).stderr
    )


def test_init_asks_of_a_measurement_whether_rows_are_only_sorted_by_it(tmp_path):
    """It is no counter: its steps differ, some are 0, and it is not named as a time or an id."""
    rng = np.random.default_rng(0)
    columns = [np.sort(rng.normal(180, 50, 400).round(1)), np.arange(400) * 0.5, np.arange(400)]
    columns += [np.sort(rng.integers(0, 5000, 400)), rng.integers(3, size=400)]
    header = "minutes,elapsed,nr,Time,area"
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    lines = [f"{line},{'north' if i % 2 else 'south'}" for i, line in enumerate(lines)]
    (tmp_path / "t.csv").write_text("\n".join([header + ",side", *lines]))
    drafted = run("init", tmp_path / "t.csv", "--label", "area").stdout
    left_out = re.findall(r'^    (# )?"(\w+)",  # (rises|counts)', drafted, re.M)
    assert left_out == [
        *(("", name, "counts") for name in ("elapsed", "nr", "Time")),
        ("# ", "minutes", "rises"),
    ]


def test_init_lists_columns_of_few_names_where_none_is_clearly_one_of_labels(tmp_path):
    lines = [f"{i % 7}.5,{'abc'[i % 3]},{i * 0.37}" for i in range(90)]
    (tmp_path / "t.csv").write_text("\n".join(["x,area,y", *lines]))
    drafted = run("init", tmp_path / "t.csv").stdout
    assert (
        '# label: no column is clearly one of labels (text columns with few values: "area"); '
        in drafted
    )


def test_init_asks_of_names_that_few_rows_share_whether_they_are_ids(tmp_path):
    lines = [
        f"c{i * 7 % 150},{'ab'[i % 2]},{i % 7}.5,{'ok' if i % 9 else 'bad'}" for i in range(400)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["case,side,x,state", *lines]))
    drafted = run("init", tmp_path / "t.csv").stdout
    assert (
        '    # "case",  # 150 names in 400 rows: are these ids that new rows will not share?'
        in drafted
    )
    assert '"side"' not in drafted
