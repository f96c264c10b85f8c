"""Figures in the pages have a marker with the command that prints them and a commit."""

import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "docs_figures.py"))
PAGES = TOOL["pages"](ROOT)
MARKED = [item for page in PAGES for item in TOOL["figures"](page)]
DECIMAL = re.compile(r"[*+-]*\d+\.\d+[*%]*(?: \[.*\])?[*]*")
PAGE = """# A page
<!-- figures: python bench/made.py --markdown | commit {commit} -->
| kind | precision |
| --- | ---: |
| old | 0.1 |

Words | stay.

<!-- figures: python bench/made.py | commit {commit} | slow -->
```text
old 0.1
```
"""
TABLES = """| other | x |
| --- | --- |
| a | 1 |

| kind | precision |
| --- | --- |
| new | 0.2 |
"""
SCRIPT = f"'Print two tables.'\n\nprint({TABLES!r})\n"


def is_of_figures(table):
    """Whether most cells, without the titles, are decimal figures."""
    rows = [line.strip("|\n").split("|")[1:] for line in table.splitlines()[2:]]
    cells = [cell.strip() for row in rows for cell in row]
    return 2 * sum(DECIMAL.fullmatch(cell) is not None for cell in cells) > len(cells)


@pytest.mark.parametrize("name", ["README.md", "docs/benchmarks.md"])
def test_every_table_of_figures_has_a_marker(name):
    page = ROOT / name
    marked = [item.block for item in MARKED if item.page == page]
    tables = list(filter(is_of_figures, TOOL["TABLE"].findall(page.read_text("utf-8"))))
    assert tables
    assert [table.split("\n")[0] for table in tables if table not in marked] == []


def test_every_marker_is_directly_above_its_figures():
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    lines = re.findall(r"^.*<!-- *figures.*$", pages, re.MULTILINE)
    assert lines == [str(item).split("\n")[0] for item in MARKED]


@pytest.mark.parametrize("command", sorted({item.command for item in MARKED}))
def test_the_script_of_a_marker_exists_and_has_its_options(command):
    program, script, *words = shlex.split(command)
    assert program == "python"
    sources = [ROOT / name for name in TOOL["sources"](command, ROOT) if name.startswith("bench/")]
    assert ROOT / script in sources
    text = "".join(path.read_text("utf-8") for path in sources)
    assert [w for w in words if w.startswith("--") and f'"{w}"' not in text] == []


@pytest.fixture
def clone(tmp_path):
    """A small repository with a page, a script and a module that determines scores."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name, text in {
        "bench/made.py": SCRIPT,
        "bench/helper.py": "DIGITS = 3\n",
        "eqsep/__init__.py": "",
        "eqsep/engine/trees.py": "N_TREES = 70\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    commit(tmp_path, "first")
    (tmp_path / "README.md").write_text(PAGE.format(commit=head(tmp_path)))
    commit(tmp_path, "page")
    return tmp_path


def commit(root, message):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", message]):
        subprocess.run(["git", *words], cwd=root, check=True)


def head(root):
    return TOOL["git"](root, "rev-parse", "--short", "HEAD").strip()


def test_a_refresh_replaces_the_table_of_the_same_title_and_the_commit(clone):
    page = clone / "README.md"
    first, second = TOOL["figures"](page)
    before = first.commit
    told = TOOL["refresh"](first, clone)
    assert "-| old | 0.1 |\n" in told
    assert "+| new | 0.2 |\n" in told
    expected = PAGE.replace("{commit} -->", f"{head(clone)} -->", 1).format(commit=before)
    assert page.read_text() == expected.replace(
        "| --- | ---: |\n| old | 0.1 |", "| --- | --- |\n| new | 0.2 |"
    )
    TOOL["refresh"](second, clone)
    assert f"```text\n{TABLES}```\n" in page.read_text()


@pytest.mark.parametrize(
    "printed", ["Nothing to measure.", "| other | x |\n| --- | --- |\n| a | 0.1 |"]
)
def test_a_command_without_its_data_replaces_nothing(printed):
    with pytest.raises(LookupError, match="fewer figures"):
        TOOL["refreshed"]("| kind | precision |\n| --- | ---: |\n| old | 0.1 |\n", printed)


def test_figures_of_code_that_is_not_committed_are_not_written(clone):
    item, _ = TOOL["figures"](clone / "README.md")
    (clone / "eqsep/engine/trees.py").write_text("N_TREES = 71\n")
    with pytest.raises(LookupError, match="not committed"):
        TOOL["refresh"](item, clone)


def test_figures_are_stale_once_code_has_changed_but_not_for_its_words(clone):
    def state():
        TOOL["has_changed"].cache_clear()
        return TOOL["listed"](next(TOOL["figures"](clone / "README.md")), clone)

    assert "current" in state()
    (clone / "bench/made.py").write_text(f"# why\n{SCRIPT.replace('two tables', 'tables')}")
    (clone / "bench/other.py").write_text("")
    assert "current" in state()
    (clone / "eqsep/engine/trees.py").write_text("N_TREES = 71\n")
    assert "stale: 1 files" in state()
    (clone / "bench/made.py").write_text(f"from helper import DIGITS\n{SCRIPT}")
    (clone / "bench/helper.py").write_text("DIGITS = 4\n")
    assert "stale: 3 files" in state()
    (clone / "README.md").write_text(PAGE.format(commit="0123456"))
    assert "cannot tell" in state()


@pytest.mark.extra
def test_which_figures_are_stale():
    """Not a failure: figures that take hours are older than the code. The reason names them."""
    stale = [item for item in MARKED if any(TOOL["changed"](item, ROOT) or ())]
    if stale:
        places = ", ".join(f"{item.page.name}:{item.line}" for item in stale)
        pytest.skip(f"{len(stale)} of {len(MARKED)} figures are stale: {places}")
