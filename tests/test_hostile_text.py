"""Names and values that a terminal, a picture or a spreadsheet would obey: they are text here."""

import io
import re
import sys

import numpy as np
import pyarrow as pa
import pytest
from invoking import CliRunner
from matplotlib.figure import Figure
from rich.table import Table

from eqsep.cli import app
from eqsep.cli.console import Screen, print_stderr
from eqsep.errors import visible
from eqsep.evaluation import score_histogram
from eqsep.io.writing import table_writer
from eqsep.plots import PrecisionRecallByKindDisplay, ScoreHistogramDisplay
from eqsep.plots.figures import inline_svg

ESCAPE = "\x1b[31mred\x1b[0m\x07\x9b2J\u202e"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
DOLLARS = r"$\frac{$"


def run(*words):
    return CliRunner().invoke(app, [str(w) for w in words], env={"COLUMNS": "200"})


def written(folder, *, column, kind, name="rows.csv"):
    rng = np.random.default_rng(0)
    lines = [f"{column},b,kind"]
    lines += [f"{x:.3f},{kind},normal" for x in rng.normal(size=60)]
    lines += [f"{x:.3f},{kind},{kind}" for x in rng.normal(6, size=10)]
    path = folder / name
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("character", [*map(chr, range(32)), "\x7f", "\x9b", "\u202e", "\udc80"])
def test_what_a_terminal_obeys_is_made_visible(character):
    if character in "\t\n":
        assert visible(character) == character
    else:
        assert visible(f"a{character}b") == f"a{repr(character)[1:-1]}b"


def test_letters_of_all_languages_stay():
    text = "Zürich, Łódź, 東京, भारत, 👩\u200d🔬"
    assert visible(text) == text


def test_a_screen_shows_no_control_of_a_text_or_a_cell_and_its_own_styles(capsys):
    table = Table("name")
    table.add_row(ESCAPE)
    console = Screen(force_terminal=True, color_system="standard")
    console.print(table)
    console.print(ESCAPE, style="red", markup=False, soft_wrap=True)
    print_stderr(ESCAPE)
    shown, told = capsys.readouterr()
    assert r"\x1b[31mred" in shown
    assert r"\x1b[31mred" in told
    assert OBEYED.search(told) is None
    assert set(OBEYED.findall(shown)) == {"\x1b"}
    assert "\x1b[31m\\x1b[31mred" in shown  # the style, and what the text says


def test_no_command_lets_escapes_through(tmp_path):
    rows = written(tmp_path, column=f"a{ESCAPE}", kind=f"k{ESCAPE}", name=f"r{ESCAPE}.csv")
    model, label = tmp_path / f"m{ESCAPE}.eqsep", ("--label", "kind")
    commands = [
        ("fit", rows, *label, "--out", model),
        ("info", model),
        ("explain", model, rows),
        ("score", model, rows, "--out", tmp_path / f"s{ESCAPE}.csv"),
        ("evaluate", rows, *label),
        ("score", tmp_path / f"no{ESCAPE}", rows),
        ("fit", tmp_path / f"no{ESCAPE}", "--out", model),
    ]
    for words in commands:
        result = run(*words)
        assert result.exit_code == (2 if words[1].name.startswith("no") else 0), result.output
        assert OBEYED.search(result.output) is None, words
        assert r"\x1b[31mred" in result.output or words[0] == "score", words


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("screen", [Terminal, io.TextIOWrapper])
def test_tables_are_written_raw_but_to_a_terminal(kind, screen, monkeypatch):
    file = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", screen(file))
    with table_writer("-", kind) as write:
        write(pa.table({"a": ["\x9b2J"], "b": [1.5]}))
    assert (b"\\x9b2J" in file.getvalue()) == (screen is Terminal)
    assert ("\x9b2J".encode() in file.getvalue()) == (screen is not Terminal)


@pytest.mark.parametrize("name", [DOLLARS, "$a_$ and $b^$", r"\$x$", "$"])
def test_dollars_in_names_are_dollars_in_pictures(name):
    score, kind = np.linspace(0, 1, 40), np.where(np.arange(40) < 30, "normal", name)
    for draw in (
        lambda ax: PrecisionRecallByKindDisplay.from_predictions(score, kind, ax=ax),
        lambda ax: ScoreHistogramDisplay(histogram=score_histogram(score, kind)).plot(ax=ax),
    ):
        figure = Figure()
        draw(figure.subplots())
        assert name in re.sub("<title>.*?</title>", "", inline_svg(figure, name="x", text=""))


def test_a_report_of_names_with_dollars_and_controls_warns_of_nothing(tmp_path, recwarn):
    page = tmp_path / "report.html"
    rows = written(tmp_path, column=f"{DOLLARS}東", kind=f"{DOLLARS}\x07")
    result = run("fit", rows, "--label", "kind", "--out", tmp_path / "m", "--report", page)
    assert result.exit_code == 0, result.output
    assert DOLLARS in page.read_text()
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


@pytest.mark.parametrize("form", ["csv", "spreadsheet"])
def test_formulas_are_warned_of_or_made_text_where_that_is_asked_for(form, tmp_path):
    rows, model = written(tmp_path, column="a", kind="=1+1"), tmp_path / "m"
    assert run("fit", rows, "--label", "kind", "--out", model).exit_code == 0
    rows.write_text("a,b,note\n0.1,=1+1,-5\n9.5,=1+1,@x\n0.2,=1+1,+SUM(A1)\n")
    result = run("score", model, rows, "--keep", "note", "--keep", "b", "--format", form)
    assert result.exit_code == 0, result.output
    cells = [line.split(",")[:3] for line in result.stdout.splitlines()[1:4]]
    mark = "'" if form == "spreadsheet" else ""
    assert [cell[1:] for cell in cells] == [
        ["-5", f"{mark}=1+1"],
        [f"{mark}@x", f"{mark}=1+1"],
        [f"{mark}+SUM(A1)", f"{mark}=1+1"],
    ]
    assert ("In the format 'spreadsheet'" in result.stderr) == (form == "csv")
