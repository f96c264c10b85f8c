"""What lies beside the package says the same as the package."""

import re
from pathlib import Path

import pytest

import eqsep

ROOT = Path(eqsep.__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "CITATION.cff").exists(), reason="installed, without the files beside it"
)


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_is_of_this_version():
    assert f"\nversion: {eqsep.__version__}\n" in text_of("CITATION.cff")


def test_the_paper_is_cited_by_the_same_name_everywhere():
    [title] = re.findall(r'^  title: "(.*)"$', text_of("CITATION.cff"), re.MULTILINE)
    [url] = re.findall(r'^  url: "(.*)"$', text_of("CITATION.cff"), re.MULTILINE)
    for name in ("README.md", "docs/idea.md"):
        assert title in text_of(name)
        assert url in text_of(name)


def test_a_commit_is_checked_as_make_checks():
    entries = re.findall(r"entry: \.venv/bin/(.*)", text_of(".pre-commit-config.yaml"))
    before_commit = {entry.removesuffix(" --force-exclude") for entry in entries}
    rules = re.findall(r"^(?:lint|types):.*\n((?:\t.*\n)+)", text_of("Makefile"), re.MULTILINE)
    by_make = {line.removesuffix(" .") for line in re.findall(r"\$\(BIN\)/(.*)", "".join(rules))}
    assert before_commit == by_make == {"ruff check", "ruff format --check", "mypy"}


def test_the_guards_that_are_named_exist():
    named = re.findall(r"`((?:eqsep|tests)/[\w/]+\.py)`", text_of("SECURITY.md"))
    assert len(named) == 3
    assert [name for name in named if not (ROOT / name).exists()] == []
