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

WHERE = ["data", "where", "--data-home", "."]


def run(*words, columns="200"):
    """What `eqsep WORDS` answers on a screen so wide that no line is broken."""
    result = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": columns})
    assert not result.exception or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_version_is_the_packages():
    assert run("--version").output.strip() == f"eqsep {eqsep.__version__}"


def test_names_of_files_are_not_broken_on_a_narrow_screen(tmp_path):
    """They are of use only as a whole."""
    printed = run("data", "where", "--data-home", tmp_path, columns="20").output
    assert f"Data folder: {tmp_path}\n" in printed
    assert len(printed.splitlines()) == 1 + len(DATA_FILES)
    assert len(run("data", "list", columns="20").output.splitlines()) == len(DATA_FILES)


def test_without_words_the_help_names_the_commands():
    assert {"demo", "data"} <= set(re.findall(r"\w+", run("--help").output))


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


def bugged(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("eqsep.cli.data.state_of", fail)


def test_a_fault_of_the_software_keeps_its_traceback(monkeypatch):
    bugged(monkeypatch, ZeroDivisionError("division by zero"))
    result = CliRunner().invoke(app, WHERE)
    assert result.exit_code == 70  # not 1, which says "alarm" of a score
    assert "Traceback" in result.stderr
    assert "ZeroDivisionError: division by zero" in result.stderr
    assert "a bug in eqsep" in result.stderr
    debugged = CliRunner().invoke(app, ["--debug", *WHERE])
    assert isinstance(debugged.exception, ZeroDivisionError)


def test_a_plain_value_error_is_such_a_fault(monkeypatch):
    bugged(monkeypatch, ValueError("operands could not be broadcast"))
    result = CliRunner().invoke(app, WHERE)
    assert (result.exit_code, "ValueError: operands" in result.stderr) == (70, True)


def test_debugging_keeps_every_traceback():
    words = ["data", "fetch", "moons", "--data-home", "."]
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
