"""Figures in the pages: which command prints them, of which commit they are, which are stale.

    python tools/docs_figures.py                     list all figures, and which are stale
    python tools/docs_figures.py --why               with the files that have changed
    python tools/docs_figures.py --refresh           run the quick commands, replace their figures
    python tools/docs_figures.py --refresh --all     run the slow commands too
    python tools/docs_figures.py --only console.md   one page; also with --refresh

A marker is a comment directly above a table or a `text` block:

    <!-- figures: python bench/oddbench.py --markdown | commit ca3a342 | slow -->

`slow`: the command takes hours, or needs a GPU or an idle machine. `part`: someone chose or merged
lines of what it prints, so no refresh replaces them. Of several tables that a command prints, the
one with the same first cell counts.

Figures are stale if code has changed since their commit: the script, the modules that it imports,
or those that determine scores. Comments and docstrings do not count.
"""

import argparse
import ast
import difflib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
MARKER = re.compile(
    r"^<!-- figures: (?P<command>.+?) \| commit (?P<commit>[0-9a-f]{7,40})"
    r"(?P<words>(?: \| (?:slow|part))*) -->\n"
    r"(?P<block>(?:\|.*\n)+|```text\n(?:.*\n)*?```\n)",
    re.MULTILINE,
)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
FIGURE = re.compile(r"\d\.\d")
FOLDERS = ("engine", "separators", "detector", "tables", "networks", "monitor")
MODULES = ("activations", "kernels", "losses", "solvers")
SCORES = [*(f"eqsep/{name}" for name in FOLDERS), *(f"eqsep/{name}.py" for name in MODULES)]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Figures(NamedTuple):
    """A table or block with a marker."""

    page: Path
    line: int
    command: str
    commit: str
    words: str
    block: str

    def __str__(self) -> str:
        marker = f"figures: {self.command} | commit {self.commit}{self.words}"
        return f"<!-- {marker} -->\n{self.block}"


def pages(root: Path, only: str | None = None) -> list[Path]:
    """README and the documentation, or the pages of one name."""
    found = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return [page for page in found if page.is_file() and only in (None, page.name)]


def figures(page: Path) -> Iterator[Figures]:
    """What the markers of a page say, in order."""
    text = page.read_text("utf-8")
    for found in MARKER.finditer(text):
        yield Figures(page, text.count("\n", 0, found.start()) + 1, *found.groups())


@cache
def imported(text: str) -> set[str]:
    """The modules that a script imports by name, as paths without an ending."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        elif isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
    return {name.replace(".", "/") for name in names - {"", "eqsep"}}


def sources(command: str, root: Path) -> set[str]:
    """The script of a command, and the modules and packages of this repository that it imports."""
    waiting, found = [word for word in shlex.split(command) if word.endswith(".py")][:1], set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        if (root / name).is_file() and not name.startswith("eqsep/"):
            for module in imported((root / name).read_text("utf-8")):
                places = (module, f"{module}.py", f"{Path(name).parent}/{module}.py")
                there = [place for place in places if (root / place).exists()]
                waiting += [place for place in there[:1] if place not in found]
    return found


def git(root: Path, *words: str) -> str | None:
    """What git prints; None where it fails."""
    try:
        said = subprocess.run(["git", *words], cwd=root, capture_output=True, encoding="utf-8")
    except FileNotFoundError:
        return None
    return None if said.returncode else said.stdout


@cache
def meaning(text: str | None, *, python: bool) -> str | None:
    """The code of a file without comments and docstrings; other files as they are."""
    if text is None or not python:
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


@cache
def has_changed(commit: str, path: str, root: Path) -> bool:
    """Whether the code of a file is another one than that of a commit."""
    present = (root / path).read_text("utf-8") if (root / path).is_file() else None
    python = path.endswith(".py")
    before = git(root, "show", f"{commit}:{path}")
    return meaning(before, python=python) != meaning(present, python=python)


def changed(item: Figures, root: Path) -> Iterator[str] | None:
    """The files whose code has changed since the figures; None where git cannot tell."""
    if git(root, "cat-file", "-e", f"{item.commit}^{{commit}}") is None:
        return None
    watched = [*sorted(sources(item.command, root)), *SCORES]
    named = git(root, "diff", "--name-only", item.commit, "--", *watched) or ""
    return (path for path in named.splitlines() if has_changed(item.commit, path, root))


def listed(item: Figures, root: Path, *, why: bool = False) -> str:
    """A line on figures: where they are, whether they are stale, their command."""
    found = changed(item, root)
    files = list(found or ())
    if found is None:
        state = "cannot tell: no git, or not this commit"
    else:
        state = f"stale: {len(files)} files changed" if files else "current"
    place = f"{item.page.name}:{item.line}"
    line = f"{place:20} {item.commit}  {state:24} {item.command}{item.words}"
    return "\n    ".join([line, *files]) if why else line


@cache
def output(command: str, root: Path) -> str:
    """What a command of this repository prints."""
    program, *words = shlex.split(command)
    start = {"python": [sys.executable], "eqsep": [sys.executable, "-m", "eqsep"]}[program]
    found = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    env = os.environ | {"PYTHONPATH": found}
    return subprocess.run(
        [*start, *words], cwd=root, env=env, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    ).stdout


def refreshed(block: str, printed: str) -> str:
    """The block with the figures that were printed: all of them, or the table of the same title."""
    new = f"```text\n{printed.strip(chr(10))}\n```\n"
    if not block.startswith("```"):
        title = block.split("|")[1].strip()
        tables = TABLE.findall(f"{printed}\n")
        new = next((table for table in tables if table.split("|")[1].strip() == title), "")
    if len(FIGURE.findall(new)) < len(FIGURE.findall(block)):
        raise LookupError("The command prints fewer figures. Are its data and packages here?")
    return new


def refresh(item: Figures, root: Path) -> str:
    """Run the command of figures, write what it prints and the commit into the page: the diff."""
    watched = [*sources(item.command, root), *SCORES]
    if git(root, "status", "--porcelain", "--", *watched) != "":
        raise LookupError("The code is not committed, or this is not a git clone.")
    commit = (git(root, "rev-parse", "--short", "HEAD") or "").strip()
    new = item._replace(block=refreshed(item.block, output(item.command, root)), commit=commit)
    text = item.page.read_text("utf-8")  # now: it may have been edited while the command ran
    if str(item) not in text:
        raise LookupError("The marker or its figures were edited meanwhile.")
    item.page.write_text(text.replace(str(item), str(new), 1), "utf-8")
    lines = (str(each).splitlines(keepends=True) for each in (item, new))
    return "".join(difflib.unified_diff(*lines, "before", "now", n=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [page.name for page in pages(ROOT)]
    parser.add_argument("--only", choices=names, metavar="PAGE", help="a page by its name")
    parser.add_argument("--why", action="store_true", help="list the files that have changed")
    parser.add_argument("--refresh", action="store_true", help="run commands, replace figures")
    parser.add_argument("--all", action="store_true", help="run the slow commands too")
    args = parser.parse_args()
    failed = False
    for item in (item for page in pages(ROOT, args.only) for item in figures(page)):
        if not args.refresh:
            print(listed(item, ROOT, why=args.why), flush=True)
        elif "part" not in item.words and (args.all or "slow" not in item.words):
            print(f"{item.page.name}:{item.line} {item.command}", flush=True)
            try:
                print(refresh(item, ROOT), flush=True)
            except (subprocess.CalledProcessError, LookupError) as error:
                failed = True
                print(f"Left as it was. {error}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
