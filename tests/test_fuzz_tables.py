"""Hostile tables: some of those that `tools/fuzz_tables.py` makes by the thousand."""

import os
import runpy
from functools import cache
from pathlib import Path

import pytest

FUZZER = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "fuzz_tables.py"))


@pytest.mark.skipif(os.name != "posix", reason="needs pipes with names")
def test_no_table_makes_a_traceback_or_hangs(tmp_path):
    codes, wrong = FUZZER["fuzz"](range(100_000, 100_040), tmp_path)
    assert wrong == []
    assert min(codes[0], codes[2]) > 5  # some are read, some refused


def test_a_seed_makes_the_same_table_again():
    assert FUZZER["table_of"](5) == FUZZER["table_of"](5) != FUZZER["table_of"](6)


def test_a_fault_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("eqsep.cli.score.files_of", lambda *_, **__: 1 / 0)
    codes, wrong = FUZZER["fuzz"](range(1, 3), tmp_path)
    assert codes == {70: 2}
    assert "ZeroDivisionError" in wrong[0]


@pytest.mark.parametrize("ending", FUZZER["MAKERS"])
def test_every_form_is_made(ending):
    assert ending in endings_made()


@cache
def endings_made():
    return {FUZZER["table_of"](seed)[0] for seed in range(200)}
