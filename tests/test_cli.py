"""The command: what it prints, where it writes, how it fails."""

import re
import subprocess
import sys

import pytest
from invoking import CliRunner, all_commands

import eqsep
from eqsep.cli import app
from eqsep.datasets.catalogue import DATA_FILES
from eqsep.errors import UserError

SQUARE = "0,0\n0,1\n1,0\n1,1\n"


def run(*words, columns="200"):
    """What `eqsep WORDS` answers on a screen so wide that no line is broken."""
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": columns})
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def square(tmp_path):
    path = tmp_path / "square.csv"
    path.write_text(SQUARE)
    return path


def test_the_version_is_the_packages():
    assert run("--version").output.strip() == f"eqsep {eqsep.__version__}"


def test_names_of_files_are_not_broken_on_a_narrow_screen(tmp_path):
    """They are of use only as a whole."""
    printed = run("data", "where", "--data-home", tmp_path, columns="20").output
    assert f"Data folder: {tmp_path}\n" in printed
    assert len(printed.splitlines()) == 1 + len(DATA_FILES)
    assert len(run("data", "list", columns="20").output.splitlines()) == len(DATA_FILES)


def test_without_words_the_help_names_the_commands():
    assert {"demo", "theory"} <= set(re.findall(r"\w+", run("--help").output))


def test_the_version_comes_without_the_heavy_imports():
    code = (
        "import sys, eqsep.cli;"
        "sys.exit(bool({'sklearn', 'matplotlib', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_package_is_a_command_too():
    words = [sys.executable, "-m", "eqsep", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"eqsep {eqsep.__version__}"


def test_the_decision_rules_are_those_of_the_first_table_of_the_paper():
    *_, last = run("theory", "rules", 7).output.rstrip().splitlines()
    assert re.findall(r"([\w-]+) \((\d+)\)", last) == [
        ("global", "8"),
        ("semi-local", "7"),
        ("local", "1"),
    ]


def test_closing_says_the_number_and_the_chance():
    assert run("theory", "closing", "halfspace", 10).output.strip().endswith("R^10: 11")
    told = run("theory", "closing", "halfspace", 10, "--separators", 20).output
    assert told.splitlines()[1:] == [
        "chance that 20 random ones leave no way out: 0.5",
        "and that they enclose a positive volume, with random offsets: 0.0880985",
    ]
    told = run("theory", "closing", "equality", 2, "--separators", 4).output
    assert re.search(r"random offsets: 0\.\d+ ± 0\.0\d+$", told.strip())
    assert len(run("theory", "closing", "rbf", 2, "--separators", 4).output.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("closing", "cube", 3), "unknown family 'cube'"),
        (("closing", "equality", 0), "at least 1, got 0"),
        (("closing", "equality", 3, "--separators", 0), "at least 1, got 0"),
        (("shatters", "cube", "--points", "square.csv"), "unknown family 'cube'"),
        (("shatters", "halfspace", "--points", "none.csv"), "none.csv"),
        (("shatters", "halfspace", "--points", "words.csv"), "finite real numbers"),
        (("vc", "cube", 3), "unknown family 'cube'"),
        (("certificate", "halfspace", 2), "expected one of epsilon-equality 1, "),
    ],
)
def test_theory_refuses_what_it_cannot_answer(square, monkeypatch, words, message):
    (square.parent / "words.csv").write_text("x1,x2\n0,0\n")
    monkeypatch.chdir(square.parent)
    result = run("theory", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_shatters_answers_by_text_and_exit_code(square):
    yes = run("theory", "shatters", "strict-equality", "--points", square)
    assert yes.exit_code == 0
    assert "shatter these 4 points: 16 labellings" in yes.output
    assert "checked in exact arithmetic" in yes.output
    no = run("theory", "shatters", "halfspace", "--points", square)
    assert no.exit_code == 1
    assert re.search("none gives (0 1 1 0|1 0 0 1)$", no.output.strip())


def test_vc_says_both_bounds_and_where_they_come_from():
    title, lower, upper = run("theory", "vc", "epsilon-equality", 3).output.splitlines()
    assert title.endswith("R^3")
    assert lower.startswith("at least 10: 10 points")
    assert upper.startswith("at most 10: ")


@pytest.mark.parametrize(("n_features", "size"), [(1, 3), (2, 6), (3, 10)])
def test_a_certificate_is_shown_and_proved(n_features, size):
    output = run("theory", "certificate", "epsilon-equality", n_features).output
    points = [line for line in output.splitlines() if re.fullmatch(r"(\s*-?[\d.]+)+\s*", line)]
    assert [len(point.split()) for point in points] == [n_features] * size
    assert f"shatter these {size} points: {2**size:,} labellings" in output
    assert "checked in exact arithmetic" in output


def test_a_certificate_that_does_not_hold_is_an_error(monkeypatch):
    monkeypatch.setattr("eqsep.theory.certificate.Shattering.verify", lambda _: False)
    result = run("theory", "certificate", "epsilon-equality", 1)
    assert result.exit_code == 1
    assert "NOT confirmed" in result.output


def test_decimals_in_a_file_are_read_exactly(tmp_path):
    path = tmp_path / "line.csv"
    path.write_text("0.1,0.3\n0.2,0.6\n0.3,0.9\n")  # on a line as decimals, not as floats
    assert run("theory", "shatters", "halfspace", "--points", path).exit_code == 1


def bugged(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("eqsep.theory.vc_dimension", fail)


def test_a_fault_of_the_software_keeps_its_traceback(monkeypatch):
    bugged(monkeypatch, ZeroDivisionError("division by zero"))
    result = CliRunner().invoke(app, ["theory", "vc", "halfspace", "3"])
    assert result.exit_code == 70  # not 1, which says "alarm" of a score
    assert "Traceback" in result.stderr
    assert "ZeroDivisionError: division by zero" in result.stderr
    assert "a bug in eqsep" in result.stderr
    debugged = CliRunner().invoke(app, ["--debug", "theory", "vc", "halfspace", "3"])
    assert isinstance(debugged.exception, ZeroDivisionError)


def test_a_plain_value_error_is_such_a_fault(monkeypatch):
    bugged(monkeypatch, ValueError("operands could not be broadcast"))
    result = CliRunner().invoke(app, ["theory", "vc", "halfspace", "3"])
    assert (result.exit_code, "ValueError: operands" in result.stderr) == (70, True)


def test_debugging_keeps_every_traceback():
    words = ["theory", "vc", "cube", "3"]
    debugged = CliRunner().invoke(app, ["--debug", *words])
    assert isinstance(debugged.exception, UserError)
    assert "Error:" not in debugged.stderr
    plain = CliRunner().invoke(app, words)  # and only where it is asked for
    assert (plain.exit_code, plain.stderr.startswith("Error: ")) == (2, True)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_cannot_be_is_refused(seed):
    result = run("fit", "rows.csv", "--out", "m.eqsep", "--random-state", seed)
    assert result.exit_code == 2
    assert "Invalid value for '--random-state'" in result.stderr


@pytest.mark.parametrize("words", all_commands(), ids=" ".join)
def test_help_shows_flags_as_flags_and_is_not_cut_off(words):
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert "bool" not in result.stdout.lower()
    assert not re.search(r"\w…", result.stdout)


def test_equality_is_a_family_of_all_theory():
    told = [
        CliRunner().invoke(app, ["theory", "vc", family, "3"]).stdout
        for family in ("equality", "epsilon-equality")
    ]
    assert told[0] == told[1]
    assert "at most 10" in told[0]


def test_a_bandwidth_is_taken_and_methods_are_gathered(tmp_path, monkeypatch):
    path, taken = tmp_path / "rows.csv", []
    path.write_text("a,kind\n" + "".join(f"{i % 7 + 0.5},normal\n" for i in range(60)) + "99,x\n")
    words = ["fit", str(path), "--label", "kind", "--bandwidth", "1.5"]
    assert CliRunner().invoke(app, [*words, "--out", str(tmp_path / "m")]).exit_code == 0
    assert eqsep.load_model(tmp_path / "m").bandwidth == 1.5

    def evaluate(*_, against, **__):
        taken.append(against)
        raise UserError("enough")

    monkeypatch.setattr("eqsep.cli.evaluate.evaluate_files", evaluate)
    against = ["--against", "xgboost", "--against", "random-forest,isolation-forest"]
    CliRunner().invoke(app, ["evaluate", str(path), "--label", "kind", *against])
    assert taken == ["xgboost,random-forest,isolation-forest"]
