"""Changed model files: some of those that `tools/fuzz_files.py` makes by the thousand."""

import os
import runpy
from pathlib import Path

import pytest

FUZZER = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "fuzz_files.py"))


@pytest.mark.skipif(os.name != "posix", reason="needs pipes with names")
def test_no_file_ends_in_anything_but_a_model_or_a_sentence(tmp_path):
    ended, wrong = FUZZER["fuzz"](range(90_000, 90_150), tmp_path)
    assert wrong == []
    assert ended["refused"] > 50
    assert ended["read"] > 0


def test_a_fault_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(FUZZER["fuzz"].__globals__, "sound_files", lambda _: [b"x" * 99])
    monkeypatch.setitem(FUZZER["fuzz"].__globals__, "forged_copy", lambda data, *_: data)
    monkeypatch.setitem(FUZZER["fuzz"].__globals__, "damaged_copy", lambda data, *_: data)
    monkeypatch.setitem(FUZZER["fuzz"].__globals__, "load_model", lambda _: 1 / 0)
    ended, wrong = FUZZER["fuzz"](range(2), tmp_path)
    assert ended == {"wrong": 2}
    assert "ZeroDivisionError" in wrong[0]
