"""README and documentation pages: their blocks run, and what they name exists."""

import doctest
import pkgutil
import re
import runpy
import shlex
import tomllib
from contextlib import nullcontext
from importlib.metadata import version
from inspect import isfunction
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from fewer import few_trees, plain_pictures, unwritten_pictures
from invoking import CliRunner
from matplotlib import pyplot as plt

import eqsep
from eqsep import datasets, evaluation, io, theory
from eqsep.cli import app
from paper.__main__ import app as paper

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEED = re.compile(r"^<!-- (needs data|needs package|tested with) (.+) -->$", re.MULTILINE)
DOCUMENTED = (eqsep, io, theory, datasets, evaluation)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks(page):
    """The blocks of a page in order, and between them what those that follow need."""
    text = page.read_text()
    found = sorted([*FENCE.finditer(text), *NEED.finditer(text)], key=lambda match: match.start())
    for match in found:
        yield Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1)


def run_python(block, *, page, names):
    if ">>>" not in block.text:
        exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        return
    examples = doctest.DocTestParser().get_doctest(
        block.text, {}, page.name, str(page), block.line - 1
    )
    examples.globs = names
    told = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(examples, out=told.append, clear_globs=False)
    assert not runner.failures, "".join(told)


def run_console(block, *, page, names):  # noqa: ARG001  the shape of all of them
    """Each `$ command` followed by what it prints; white space does not count, ... is anything."""
    for step in re.split(r"^\$ ", unbroken(block.text), flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        printed = run_command(command)
        assert doctest.OutputChecker().check_output(expected, printed, FLAGS), printed


def run_bash(block, *, page, names):  # noqa: ARG001
    """Commands whose figures the page does not show: few trees will do, but in models."""
    for command in unbroken(block.text).splitlines():
        with nullcontext() if command.startswith("eqsep fit ") else few_trees():
            run_command(command)


def shorten(what):
    """`N rows of FILE`: its first ones are enough for the commands that follow."""
    n, _, _, file = what.split()
    Path(file).write_text("".join(Path(file).read_text().splitlines(True)[: 1 + int(n)]))


def unbroken(text):
    """Commands of several lines, each but the last ending in a backslash, as one line."""
    return re.sub(r"\\\n\s*", "", text)


def run_command(command):
    """Run what is ours; of the tools around it, see that what they are asked for exists."""
    program, *words = shlex.split(command, comments=True)
    return COMMANDS[program](words)


def run_eqsep(words):
    result = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.stdout


def run_pipe(words):
    """`cat FILE | eqsep ... | head ...`: what comes out of the middle."""
    first, middle, *_ = (list(part) for bar, part in groupby(words, "|".__ne__) if bar)
    result = CliRunner().invoke(app, middle[1:], input=Path(first[0]).read_bytes())
    assert result.exit_code == 0, result.output
    return result.stdout


def check_make(words):
    """Targets, and `NAME=value` of variables that the Makefile reads."""
    text = (ROOT / "Makefile").read_text()
    known = re.findall(r"^([\w-]+):|\$\((?:if |or )?(?:\$\()?(\w+)", text, re.MULTILINE)
    assert {word.partition("=")[0] for word in words} <= set(map("".join, known))


def check_pip(words):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    action, package = words
    name, _, wanted = package.partition("[")
    assert action == "install"
    assert name in (".", "eqsep", "pandas", "pre-commit")  # "." in a clone
    assert set(re.findall(r"\w+", wanted)) <= set(extras)


def run_python_command(words):
    """`python -m paper` is run, in one process; of other files, see that they are there."""
    if words[:2] != ["-m", "paper"]:
        return check_file(words)
    result = CliRunner().invoke(paper, [*words[2:], "--processes", "1"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.stdout


def check_file(words):
    module = words[1].replace(".", "/") if words[0] == "-m" else None
    places = [f"{module}.py", f"{module}/__main__.py"] if module else words[:1]
    assert any((ROOT / place).is_file() for place in places)


COMMANDS = {
    "eqsep": run_eqsep,
    "cat": run_pipe,
    "make": check_make,
    "pip": check_pip,
    "python": run_python_command,
    ".venv/bin/python": check_file,
    ".venv/bin/pytest": check_file,
}
LANGUAGES = {
    "python": run_python,
    "console": run_console,
    "bash": run_bash,
    "text": lambda block, **_: None,  # noqa: ARG005
}


def run_page(page, home_of):
    """Run the blocks of a page in order, in the present folder."""
    names = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "needs data":  # a folder beside the page's own files, as for a user
            Path(block.text).symlink_to(home_of(block.text) / block.text)
        elif block.language == "needs package":
            pytest.importorskip(block.text)
        elif block.language == "tested with":
            shorten(block.text)
        else:
            LANGUAGES[block.language](block, page=page, names=names)
    plt.close("all")


WITH_RAY = ROOT / "docs" / "ray.md"  # runs where a cluster is: in test_distributed.py


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != WITH_RAY], ids=lambda page: page.name
)
def test_the_blocks_run_in_order(page, tmp_path, monkeypatch, home_of):
    monkeypatch.chdir(tmp_path)
    is_first = page.name in ("README.md", "quickstart.md")  # whose reports have their pictures
    with plain_pictures(), nullcontext() if is_first else unwritten_pictures():
        run_page(page, home_of)


@every_page
def test_every_block_is_one_that_is_run_or_text(page):
    opened = re.findall(r"^[ >]*(?:```|~~~)(\w+)$", page.read_text(), re.MULTILINE)
    found = [block.language for block in blocks(page) if block.language in LANGUAGES]
    assert found == opened


def test_what_is_to_be_typed_in_the_first_minutes_fits_its_box():
    """Eighty letters at 1280 pixels."""
    for _, text in FENCE.findall((ROOT / "docs" / "quickstart.md").read_text()):
        typed = re.findall(r"^(?:>>> |\.\.\. |\$ |eqsep |pip |    ).*", text, re.MULTILINE)
        assert [line for line in typed if len(line) > 80] == []


@every_page
def test_commands_within_a_line_run_too(page):
    """`make TARGET` and `pip install "eqsep[...]"` between backticks; Python's files are there."""
    for command in re.findall(r"`((?:make|pip|python) [^`]+)`", page.read_text()):
        program, *words = shlex.split(command)
        (COMMANDS | {"python": check_file})[program](words)


@every_page
def test_dotted_names_exist(page):
    for name in set(re.findall(r"\beqsep(?:\.\w+)+", page.read_text())):
        if not name.endswith((".png", ".css", ".toml")):
            pkgutil.resolve_name(name)


@every_page
def test_links_lead_somewhere(page):
    outside = r"https?:|\.\./\.\./actions/"  # the site that hosts the repository has the latter
    links = re.findall(rf"\]\((?!{outside})([^)#]+)|src=\"([^\"]+)\"", page.read_text())
    links += re.findall(r"^```\{image\} (.+)()$", page.read_text(), re.MULTILINE)
    for link in map("".join, links):
        assert (page.parent / link).exists(), link


def test_the_readme_is_short_and_names_every_separator():
    text = README.read_text()
    assert len(text.splitlines()) < 160
    assert [name for name in eqsep.__all__ if not name.startswith("_") and name not in text] == []


def test_the_readme_has_the_figures_of_the_benchmark_that_nobody_tuned_on():
    recorded = cells(
        (ROOT / "docs/benchmarks.md").read_text(),
        "Average precision where a share of the anomalies is labelled, 95 %",
    )
    means = {row[0]: [cell.strip("*").partition(" [")[0] for cell in row[1:5]] for row in recorded}
    readme = cells(README.read_text(), r"method \| 1 %")
    assert len(readme) > 5
    assert {row[0]: row[1:] for row in readme[1:]}.items() <= means.items()


def cells(text, corner):
    """The cells of the Markdown table whose first one begins with `corner`, without the rule."""
    table = re.search(rf"^\| {corner}.*?(?=^[^|]|\Z)", text, re.MULTILINE | re.DOTALL)[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n")]
    return [line for line in lines if line and not set(line[0]) <= set(":- ")]


def test_the_api_pages_list_every_public_name():
    text = "".join(page.read_text() for page in ROOT.glob("docs/api_*.md"))
    public = {
        f"{module.__name__}.{name}"
        for module in DOCUMENTED
        for name in module.__all__
        if not name.startswith("_")
    }
    assert {
        name for name in public if not re.search(rf":: {re.escape(name)}$", text, re.M)
    } == set()


def test_every_public_function_and_estimator_has_an_example():
    public = [getattr(module, name) for module in DOCUMENTED for name in module.__all__]
    shown = [thing for thing in public if isfunction(thing) or hasattr(thing, "get_params")]
    shown = [thing for thing in shown if not re.match("load_|fetch_", thing.__name__)]  # need files
    assert [thing.__name__ for thing in shown if ">>>" not in thing.__doc__] == []


def test_every_page_is_in_one_table_of_contents():
    pages = sorted(ROOT.glob("docs/*.md"))
    trees = [tree for page in pages for tree in TREE.findall(page.read_text())]
    listed = [re.sub(r".*<(.+)>", r"\1", line) for tree in trees for line in tree.split("\n")]
    listed = [line for line in listed if re.fullmatch(r"[\w/]+", line)]
    assert sorted(listed) == sorted(
        ["auto_gallery/index", *(page.stem for page in pages if page.stem != "index")]
    )


LOCKED = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())


@pytest.mark.extra
@pytest.mark.skipif(
    any(version(name) != LOCKED[name] for name in ("matplotlib", "scikit-learn")),
    reason="pictures, in which peers are seen too, are drawn by the versions of constraints.txt",
)
def test_the_pictures_are_those_that_the_script_draws(tmp_path):
    drawn = runpy.run_path(str(ROOT / "docs" / "figures.py"))["write"](tmp_path)
    kept = ROOT / "docs" / "_static"
    others = {path.name for path in kept.glob("console_*.png")}  # tools/console_pictures.py
    others |= {"cost.png"}  # bench/cost.py
    assert {path.name for path in drawn} | others == {path.name for path in kept.glob("*.png")}
    for path in drawn:
        assert (kept / path.name).stat().st_size < 150_000
        now, then = plt.imread(path)[..., :3], plt.imread(kept / path.name)[..., :3]
        assert now.shape == then.shape
        assert np.abs(now - then).mean() < 0.01, f"{path.name} is stale: run docs/figures.py"
