"""Changed requests: some of those that `tools/fuzz_requests.py` makes by the thousand."""

import asyncio
import runpy
from pathlib import Path

import pytest
from databases import HOMES, WHY_NOT

from eqsep.serve.alarms import Alarms

FUZZER = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "fuzz_requests.py"))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.extra)])
def fuzzer(request):
    if request.param == "postgresql" and not HOMES:
        pytest.skip(WHY_NOT)
    with FUZZER["database"](request.param) as url:
        yield FUZZER["Fuzzer"](url)


def test_no_request_ends_in_a_fault(fuzzer):
    ended, wrong = asyncio.run(fuzzer.run(range(90_000, 90_250)))
    assert wrong == []
    assert ended[200] > 50
    assert ended[422] > 20


def test_all_routes_are_asked():
    fuzzer = FUZZER["Fuzzer"]("sqlite://")
    asked = {path for _, path in fuzzer.routes}
    for path in ("/api/v1/verdicts", "/api/v1/models/{name}/score", "/m/{model}/inbox", "/login"):
        assert path in asked


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_is_seen(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr(Alarms, "inbox", fail)
    _, wrong = asyncio.run(FUZZER["Fuzzer"]("sqlite://").run(range(90_000, 90_100)))
    assert wrong
    assert "500 to" in wrong[0]
