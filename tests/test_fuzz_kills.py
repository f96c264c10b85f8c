"""Commands killed outright: some of those that `tools/fuzz_kills.py` kills by the hundred."""

import os
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")
FUZZER = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "fuzz_kills.py"))


@pytest.mark.extra
@pytest.mark.parametrize("by", ["SIGKILL", "SIGHUP"])
def test_no_kill_leaves_half_a_file_or_a_rest_for_good(by, tmp_path):
    pytest.importorskip("onnx", reason="needs eqsep[onnx]")
    ended, wrong = FUZZER["fuzz"](range(4), tmp_path, by=by)
    assert wrong == []
    assert ended["killed"] > 2


def test_what_is_amiss_is_seen(tmp_path):
    amiss = FUZZER["amiss"]
    (tmp_path / "new.html").write_text("<html>")
    assert list(amiss(tmp_path, killed=True, may_leave=True)) == ["new.html is not whole"]
    (tmp_path / "new.html").write_bytes(FUZZER["OLD"])
    (tmp_path / ".eqsep-1.part").write_bytes(b"")  # no name that the package gives
    assert "new.html is not whole" in list(amiss(tmp_path, killed=False, may_leave=False))
    (tmp_path / "another").unlink()
    assert list(amiss(tmp_path, killed=True, may_leave=True)) == [".eqsep-1.part stays"]
