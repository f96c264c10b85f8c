"""The server for assistants: they look, explain and propose; they teach nothing."""

import json
import sys

import anyio
import numpy as np
import pytest

from eqsep import Detector
from eqsep.serve.workspace import Workspace


@pytest.fixture(scope="module")
def detector():
    rng = np.random.default_rng(0)
    X = [{"x": x, "y": y} for x, y in rng.normal(size=(700, 2)).tolist()]
    return Detector(bandwidth=1.0, n_landmarks=40, random_state=0).fit(X)


@pytest.fixture
def work(tmp_path, detector):
    work = Workspace.in_folder(tmp_path)
    work.ledger.add("pump", detector, by="ada")
    work.intake.take("pump", [{"x": 0.1 * i, "y": 7.0} for i in range(3)])
    yield work
    work.close()


def connected(work):
    """A client of the server; mcp takes a second to import, which not every process needs."""
    from mcp import Client

    from eqsep.serve.mcp import server

    return Client(server(work))


def call(work, tool, **told):
    """What a tool answers, and whether that is an error; through the protocol itself."""

    async def ask():
        async with connected(work) as client:
            return await client.call_tool(tool, told)

    answer = anyio.run(ask)
    text = "".join(part.text for part in answer.content)
    return text if answer.is_error else json.loads(json.dumps(answer.structured_content))


def test_tools_are_what_people_may_do_but_teach(work):
    async def ask():
        async with connected(work) as client:
            return await client.list_tools()

    tools = {tool.name: tool for tool in anyio.run(ask).tools}
    assert set(tools) == {
        *("models", "alarms", "explain", "groups", "preview", "propose", "watch"),
    }
    assert "work" not in json.dumps(tools["explain"].input_schema)
    assert tools["propose"].description.startswith("Propose a verdict")


def test_an_assistant_looks_explains_and_proposes(work):
    assert call(work, "models")["result"][0]["open_alarms"] == {"unseen": 3}
    found = call(work, "alarms", model="pump", limit=2)
    assert (found["total"], len(found["alarms"])) == (3, 2)
    number = found["alarms"][0]["id"]
    told = call(work, "explain", alarm=number)
    assert told["reasons"]["reasons"][0]["column"] == "y"
    (group,) = call(work, "groups", model="pump")["result"]
    assert len(group["alarms"]) == 3
    before = work.ledger.live("pump")
    seen = call(work, "preview", alarms=[number], verdict="true", kind="leak")
    assert seen["rows"][0]["alarm"] == number
    call(work, "propose", alarms=group["alarms"], verdict="true", kind="leak", reason="all at y=7")
    assert work.ledger.live("pump") == before
    proposal = work.alarms.get(number).proposal
    assert (proposal.kind, proposal.by, proposal.note) == ("leak", "assistant", "all at y=7")
    assert work.people.audit()[0].action == "verdict proposed"
    work.verdicts.give([number], "true", kind="leak", by="ada")
    assert work.alarms.get(number).proposal is None
    assert call(work, "watch", model="pump")["rows"] == 0  # of the version that has learnt it


@pytest.mark.extra
@pytest.mark.usefixtures("work")
def test_the_command_speaks_over_standard_input_and_output(tmp_path):
    from mcp import Client, StdioServerParameters, stdio_client

    command = [sys.executable, "-m", "eqsep", "mcp", "--data", str(tmp_path)]

    async def ask():
        spoken = StdioServerParameters(command=command[0], args=command[1:])
        async with Client(stdio_client(spoken)) as client:
            return await client.call_tool("models", {})

    assert anyio.run(ask).structured_content["result"][0]["model"] == "pump"


def test_errors_say_what_to_do(work):
    assert "Row 99 does not exist" in call(work, "explain", alarm=99)
    assert "between 1 and 50" in call(work, "alarms", model="pump", limit=1000)
    assert "cannot be a kind name" in call(
        work, "propose", alarms=[1], verdict="true", kind="unseen", reason="why not"
    )
