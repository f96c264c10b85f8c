"""The console of the command: sentences for errors and warnings, exit codes, and words."""

import sys
import warnings

import pytest
import typer

from eqsep.checks import LabelSpellingWarning
from eqsep.cli.console import (
    BROKEN_PIPE,
    Job,
    Screen,
    debugging,
    format_counts,
    print_errors,
    print_stderr,
    print_warnings,
    sentence,
    table,
)
from eqsep.cli.options import method_names
from eqsep.errors import (
    EqsepWarning,
    MissingExtraError,
    ParameterError,
    UserError,
    UserTypeError,
    counted,
    did_you_mean,
    quoted,
)
from eqsep.tables import DroppedColumnWarning


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            ParameterError("fdr", expected="above 0", got=0),
            "Error: --fdr must be above 0, got 0.\n",
        ),
        (UserTypeError("No number."), "Error: No number.\n"),
        (MissingExtraError("Install it."), "Error: Install it.\n"),
        (OSError(28, "No space left on device"), "Error: No space left on device.\n"),
        (FileNotFoundError("no train.csv in data"), "Error: no train.csv in data\n"),
        (
            PermissionError(13, "Permission denied", "m.eqsep"),
            "Error: m.eqsep: permission denied. Change its permissions, or pass another file.\n",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_user_can_mend_is_a_sentence_and_exit_code_2(error, told, capsys):
    with pytest.raises(typer.Exit) as end, print_errors():
        raise error
    assert end.value.exit_code == 2
    assert end.value.__cause__ is error
    assert capsys.readouterr() == ("", told)


@pytest.mark.parametrize("error", [ValueError("x"), ImportError("x"), KeyError("x")], ids=repr)
def test_any_other_error_is_a_fault_of_the_software(error, capsys):
    with pytest.raises(typer.Exit) as end, print_errors():
        raise error
    assert end.value.exit_code == 70
    assert f"{type(error).__name__}: " in capsys.readouterr().err


def test_debugging_lets_every_error_through(capsys):
    before = debugging.set(True)
    try:
        with pytest.raises(UserError), print_errors():
            raise UserError("x")
    finally:
        debugging.reset(before)
    assert capsys.readouterr().err == ""


def test_a_pipe_that_ends_is_no_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # it is given up, and is back after the test
    with pytest.raises(typer.Exit) as end, print_errors():
        Screen().on_broken_pipe()
    assert end.value.exit_code == BROKEN_PIPE == 141
    assert sys.stdout is None
    assert capsys.readouterr().err == ""


def test_each_warning_is_printed_once_in_the_words_of_the_command(capsys):
    topic = "no_windows"
    with print_warnings() as found:
        for _ in range(2):
            warnings.warn(EqsepWarning("All.", hint="Set window=None.", topic=topic), stacklevel=1)
        warnings.warn("Look\n  here.", stacklevel=1)
        warnings.warn("of a library", DeprecationWarning, stacklevel=1)
        warnings.warn(LabelSpellingWarning("Two alike."), stacklevel=1)
    messages = [sentence(warning) for warning in found]
    assert messages == ["All. Leave out --window.", "Look here.", "Two alike."]
    *plain, explained = capsys.readouterr().err.splitlines()
    assert plain == [f"Warning: {text}" for text in messages[:2]]
    assert explained == "Warning: Two alike. See docs/troubleshooting.md#label-spelling"


def test_fits_to_parts_of_the_rows_do_not_repeat_which_columns_are_dropped(capsys):
    with print_warnings():
        for share in (79, 82):
            told = DroppedColumnWarning(f"'note': {share}% occur once.", dropped=("note",))
            warnings.warn(told, stacklevel=1)
    assert capsys.readouterr().err.count("Warning: ") == 1


def test_a_long_sentence_stays_one_line(capsys):
    print_stderr("word " * 60 + "[bold]end[/]")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("[bold]end[/]")


def test_the_systems_errors_name_the_file():
    assert sentence(FileNotFoundError(2, "No such file", "a.csv")) == "a.csv: no such file."
    assert sentence(OSError(5, "Input/output error")) == "Input/output error."
    assert sentence("two\nlines") == "two lines"


@pytest.mark.parametrize(
    ("absent", "there", "told"),
    [
        (["Kind"], ["kind", "size"], " Did you mean 'kind'?"),
        ([" kind"], ["Kind "], " Did you mean 'Kind '?"),
        (["qualty"], ["size", "quality"], " Did you mean 'quality'?"),
        (["weight"], ["shape"], ""),
        (["a,c"], ["a", "b"], ""),
    ],
)
def test_a_name_that_is_nearly_there_is_asked_for(absent, there, told):
    assert did_you_mean(absent, there) == told


def test_numbers_and_lists_in_words():
    assert [counted(n, "row") for n in (0, 1, 2, 1200)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "1,200 rows",
    ]
    names = list("abcdefghijklm")
    assert quoted(names[:12]) == "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'"
    assert quoted(names).endswith("'l' and 1 more")
    assert quoted([]) == ""


def test_a_table_in_a_pipe_is_as_wide_as_it_need_be(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    row = ("drizzle with fog", *["0.95 [0.90, 1.00]"] * 5)
    Screen().print(table(("kind", *"abcde"), [row]))
    assert capsys.readouterr().out.splitlines()[3].split() == " ".join(row).split()


def test_a_long_kind_goes_on_in_the_next_line(capsys):
    kinds = [("exfiltration", "12", "0.95 [0.90, 1.00]")]
    Screen(width=36).print(table(("kind", "rows", "recall"), kinds))
    shown = capsys.readouterr().out
    assert "…" not in shown
    below = shown.splitlines()[3:]
    assert "".join(word for line in below for word in line.split()[:1]) == "exfiltration"


def test_a_job_says_its_phase_and_the_share_that_is_done():
    job = Job("eqsep fit", "reading")
    job.phase("learning", total=4)
    job.advance(4)
    assert job.line == "eqsep fit: learning, 100 %"


def test_an_error_is_one_line_in_the_words_of_the_command():
    absent = FileNotFoundError(2, "No such file or directory", "rows.csv")
    assert sentence(absent) == "rows.csv: no such file or directory."
    few = ParameterError("n_landmarks", expected="at least 2", got=1)
    assert sentence(few) == "--landmarks must be at least 2, got 1."


def test_counts_name_labels_that_are_numbers_as_labels():
    assert format_counts({"normal": 1200, "leak": 3}) == "1,200 normal, 3 leak"
    assert format_counts({"0": 1200, "leak": 3}) == "1,200 '0', 3 leak"


def test_methods_are_named_in_any_order():
    known = ["isolation-forest", "xgboost"]
    assert method_names("xgboost, isolation-forest", known) == ["xgboost", "isolation-forest"]
