"""Nothing that was accepted is lost: the service is killed under load, and writers meet."""

import os
import runpy
from pathlib import Path

import pytest
from served import HOT, small_detector

from eqsep.serve.workspace import Workspace

if os.name != "posix":
    pytest.skip("needs SIGKILL and fork", allow_module_level=True)
KILL = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "kill_service.py"))


@pytest.mark.parametrize("times", [2, pytest.param(5, marks=pytest.mark.extra)])
def test_what_was_accepted_survives_kills(url, times):
    found = KILL["kill_again_and_again"](url, times=times, named=0.0)
    assert found.lost == []
    assert found.same_bits
    assert found.alarms >= found.verdicts >= times


def test_a_loss_would_be_counted(tmp_path):
    ws = Workspace(f"sqlite:///{tmp_path / 'eqsep.db'}")
    ws.ledger.add("machines", small_detector(), by="test")
    (answer,) = ws.intake.take("machines", [HOT])
    given = ws.verdicts.give([answer.id], "unsure", by="test").verdicts[0]
    accepted = KILL["Accepted"](
        alarms={answer.id: HOT, 77: HOT}, verdicts={given.id: answer.id, 99: 1}, undone={given.id}
    )
    found = KILL["_counted"](ws, accepted, 1)
    assert found.lost == ["alarm 77", f"the undoing of verdict {given.id}", "verdict 99"]
    ws.close()


def write(url, n, pipe):
    """Send rows, judge each, and take every third verdict back; the numbers of all of them."""
    ws = Workspace(url)
    done = []
    for i in range(n):
        (answer,) = ws.intake.take("two", [HOT | {"heat": 200.0 + i}])
        given = ws.verdicts.give([answer.id], "false alarm", by="test").verdicts[0]
        if i % 3 == 2:
            ws.verdicts.undo([given.id], by="test")
        done.append((answer.id, given.id, i % 3 == 2))
    ws.close()
    pipe.send(done)


def test_two_processes_that_write_at_once_lose_nothing(url):
    ws = Workspace(url)
    ws.ledger.add("two", small_detector(), by="test")
    ws.close()
    n, forks = 9, KILL["FORKS"]
    ends = [forks.Pipe(duplex=False) for _ in range(2)]
    processes = [forks.Process(target=write, args=(url, n, end)) for _, end in ends]
    for process, (_, end) in zip(processes, ends, strict=True):
        process.start()
        end.close()  # else nobody notices that the process has died
    done = [one for mine, _ in ends for one in mine.recv()]
    for process in processes:
        process.join()
    ws = Workspace(url)
    assert len({row for row, *_ in done}) == len({verdict for _, verdict, _ in done}) == 2 * n
    for row, verdict, is_undone in done:
        kept = ws.verdicts.get(verdict)
        assert (kept.row, kept.undone_at is not None) == (row, is_undone)
        assert ws.alarms.get(row).model == "two"
    assert sum(minute.rows for minute in ws.watching.status("two").per_minute) == 2 * n
    operations = [version.operation for version in ws.ledger.versions("two")]
    assert operations.count("learn") == 2 * n
    assert len(operations) == 1 + 2 * n + 2 * (n // 3)
    assert ws.ledger.replay("two").same_bits
    ws.close()
