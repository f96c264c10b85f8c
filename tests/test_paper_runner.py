"""Running the paper's cells: what is measured stays measured, whatever happens to a run."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from ending import end_at_once

from paper import runner
from paper.cells import Cell, Skipped, Study, read_result, write_result
from paper.plan import Plan
from paper.runner import STUDIES, run
from paper.tables import TABLES

TINY = Plan(seeds=2, quick=True)
CHEAP = [Cell("formulas", "output", "tanh"), Cell("formulas", "derivative", "tanh")]


def test_a_second_run_does_nothing(tmp_path):
    first = run(CHEAP, tmp_path, processes=1)
    assert (first.measured, first.kept) == (2, 0)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    seen = []
    second = run([*CHEAP, CHEAP[0]], tmp_path, processes=1, on_progress=seen.append)
    assert (second.measured, second.kept, seen) == (0, 2, [])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == before


def test_progress_counts_the_cells_and_their_share_of_the_work(tmp_path):
    seen = []
    run(CHEAP, tmp_path, processes=1, on_progress=seen.append)
    assert [(now.done, now.total) for now in seen] == [(1, 2), (2, 2)]
    assert 0 < seen[0].share < seen[1].share == 1


def test_alone_short_cells_come_first_and_side_by_side_long_ones(tmp_path, monkeypatch):
    cells = [c for c in TABLES["hyperplane_mse_20d"].cells(TINY) if "noise 0.0" in c.dataset]
    seen = []
    run([cells[-1], cells[0]], tmp_path, processes=1, on_progress=seen.append)
    seconds = [STUDIES[now.cell.study].seconds(now.cell) for now in seen]
    assert seconds == sorted(seconds)
    submitted = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, n_workers, **told):  # noqa: ARG002
            super().__init__(n_workers)

        def submit(self, work, cell, out):
            submitted.append(STUDIES[cell.study].seconds(cell))
            return super().submit(work, cell, out)

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(runner, "measure_cell", lambda cell, out: "measured")  # noqa: ARG005
    run([cells[0], cells[-1]], tmp_path / "two", processes=2)
    assert submitted == sorted(seconds, reverse=True)
    assert len(set(submitted)) == 2


def test_two_processes_measure_what_one_does(tmp_path):
    cells = TABLES["gaussians_summary"].cells(replace(TINY, protocols=("paper",)))[:4]
    before = dict(os.environ)
    run(cells, tmp_path / "one", processes=1)
    outcome = run(cells, tmp_path / "two", processes=2)
    assert outcome.measured == len(cells)
    assert dict(os.environ) == before
    for cell in cells:
        one, two = (read_result(cell, tmp_path / name) for name in ("one", "two"))
        assert one["values"] == two["values"]


def test_cells_may_be_measured_elsewhere_and_are_kept_here(tmp_path, monkeypatch):
    """Another executor sees only what is not measured yet, and hands plain data back."""
    run(CHEAP[:1], tmp_path, processes=1)
    failing = Cell("fake", "data", "method")
    monkeypatch.setitem(runner.STUDIES, "fake", Study("fake", lambda cell: cell.nothing))
    asked = []

    def elsewhere(cells, out):
        for cell in cells:
            asked.append(cell)
            text = json.dumps(runner.result_of(cell, kept=tmp_path / "there"))
            yield cell, runner.keep_result(cell, out, json.loads(text))

    outcome = run([*CHEAP, failing], tmp_path, executor=elsewhere)
    assert set(asked) == {CHEAP[1], failing}
    assert (outcome.measured, outcome.kept, len(outcome.failed)) == (1, 1, 1)
    assert read_result(CHEAP[1], tmp_path)["more"]["x"]
    assert read_result(failing, tmp_path) is None


def test_a_cell_that_lacks_something_is_skipped_and_tried_again(tmp_path, monkeypatch):
    lacking = [True]

    def measure(cell):  # noqa: ARG001
        if lacking[0]:
            raise Skipped("there is no file")
        return {"area": [1.0]}, {}

    monkeypatch.setitem(runner.STUDIES, "fake", Study("fake", measure))
    cell = Cell("fake", "data", "method")
    assert run([cell], tmp_path, processes=1).skipped == 1
    assert read_result(cell, tmp_path)["skipped"] == "there is no file"
    lacking[0] = False
    assert run([cell], tmp_path, processes=1).measured == 1
    assert read_result(cell, tmp_path)["values"] == {"area": [1.0]}


def test_a_study_that_keeps_things_is_told_where(tmp_path, monkeypatch):
    def measure(cell, *, kept):
        kept.mkdir(exist_ok=True)
        return {"area": [float(len(list(kept.iterdir())))]}, {"kept": str(kept / cell.method)}

    monkeypatch.setitem(runner.STUDIES, "fake", Study("fake", measure, keeps=True))
    cell = Cell("fake", "data", "method")
    assert run([cell], tmp_path, processes=1).measured == 1
    assert Path(read_result(cell, tmp_path)["more"]["kept"]).is_relative_to(tmp_path)


def test_an_error_in_one_cell_does_not_end_the_run(tmp_path, monkeypatch):
    def measure(cell):
        return {"area": [1 / (cell.seeds - 1)]}, {}

    monkeypatch.setitem(runner.STUDIES, "fake", Study("fake", measure))
    good, bad = Cell("fake", "data", "m", seeds=2), Cell("fake", "data", "m", seeds=1)
    outcome = run([bad, good], tmp_path, processes=1)
    assert outcome.measured == 1
    assert outcome.failed == ((bad, "ZeroDivisionError: division by zero"),)
    assert read_result(bad, tmp_path) is None


class Bare(ProcessPoolExecutor):
    """Processes that begin with nothing: what they would begin with imports the runner."""

    def __init__(self, n_workers, *, mp_context, initializer):  # noqa: ARG002
        super().__init__(n_workers, mp_context=mp_context)


def test_a_process_that_ends_is_told_and_what_is_measured_is_kept(tmp_path, monkeypatch):
    run(CHEAP[:1], tmp_path, processes=1)
    others = [Cell("formulas", "output", "Gaussian"), CHEAP[1]]
    with monkeypatch.context() as patch:
        patch.setattr(runner, "measure_cell", end_at_once)
        patch.setattr(runner, "ProcessPoolExecutor", Bare)
        outcome = run([*CHEAP[:1], *others], tmp_path, processes=2)
    assert {cell for cell, _ in outcome.failed} == set(others)
    assert all("probably for want of memory" in message for _, message in outcome.failed)
    assert run([*CHEAP[:1], *others], tmp_path, processes=1).kept == 1


def test_a_damaged_result_is_told_with_its_place(tmp_path):
    path = write_result(CHEAP[0], tmp_path, {"values": {}})
    path.write_text('{"cell": ')
    with pytest.raises(ValueError, match=r"is not a result: expected JSON.*Remove it"):
        run(CHEAP, tmp_path, processes=1)


def test_a_result_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = write_result(CHEAP[0], tmp_path, {"values": {"area": [1.0]}})
    before = path.read_text()

    def interrupted(handle):  # noqa: ARG001  all is written, nothing has its name yet
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_result(CHEAP[0], tmp_path, {"values": {"area": [2.0]}})
    assert path.read_text() == before
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [path]


# One interpreter that forks ten times: importing everything anew would take most of the time.
KILLED_AGAIN_AND_AGAIN = """
import json, os, signal, sys, time
from pathlib import Path
from paper.provenance import here
from paper.runner import run
from paper.plan import Plan
from paper.tables import TABLES

here()  # it imports torch, once for all
out = Path(sys.argv[1])
cells = TABLES["gaussians_sigma_mse"].cells(Plan(protocols=("corrected",), seeds=1, quick=True))
told = []
for patience in range(0, 10, 2):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        def tell(now):
            os.write(writer, (str(now.cell.path(out)) + "\\n").encode())
        run(cells, out, processes=1, on_progress=tell)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as lines:
        for _ in range(3 + patience):
            told.append(lines.readline().decode().strip())
        time.sleep(0.004 * patience)
        os.kill(child, signal.SIGKILL)
        told.extend(line.decode().strip() for line in lines if line.endswith(b"\\n"))
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    whole = {str(path) for path in out.rglob("*.json") if json.loads(path.read_text())["values"]}
    assert set(told) <= whole, "a cell that was done is lost"
    assert len(whole) <= len(set(told)) + 1 + patience
assert len(told) == len(set(told)), "a cell was measured twice"
before = sum(1 for _ in out.rglob("*.json"))
outcome = run(cells[:before + 5], out, processes=1)
print(before, len(told), outcome.kept + outcome.measured, outcome.failed)
"""


def test_killed_again_and_again_a_run_loses_only_the_cells_in_progress(tmp_path):
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AGAIN_AND_AGAIN, tmp_path],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, told, _ = map(int, done.stdout.split()[:3])
    assert before >= told >= 10


RUN_IN_PROCESSES = """
import sys
from pathlib import Path
from paper.runner import run
from paper.plan import Plan
from paper.tables import TABLES

if __name__ == "__main__":
    cells = TABLES["gaussians_sigma_ll"].cells(Plan(seeds=4))
    run(cells, Path(sys.argv[1]), processes=2, on_progress=lambda now: print(now.done, flush=True))
"""


def test_processes_end_with_a_run_that_is_killed(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(RUN_IN_PROCESSES)
    parent = subprocess.Popen(
        [sys.executable, script, tmp_path / "out"], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout.readline().strip() == "1"
        workers = children_of(parent.pid)
        parent.send_signal(signal.SIGKILL)
    assert len(workers) >= 2
    assert all_end(workers)
    for path in (tmp_path / "out").rglob("*.json"):
        assert json.loads(path.read_text())["values"]


RUN_UNTIL_INTERRUPTED = """
import sys
from pathlib import Path
from paper import runner
from paper.cells import Cell

if __name__ == "__main__":
    cells = [Cell("hyperplane", "35 dimensions, 700 rows, noise 2.0", "ES, LL", seeds=n)
             for n in (1, 10**5)]
    def tell(now):
        print(now.done, flush=True)
        if "itself" in sys.argv:
            raise KeyboardInterrupt

    print(runner.run(cells, Path(sys.argv[1]), processes=2, on_progress=tell).is_interrupted)
"""


@pytest.mark.parametrize("where", ["anywhere", "itself"], ids=["anywhere", "while it is told"])
def test_an_interrupted_run_does_not_wait_for_the_cells_under_way(tmp_path, where):
    script = tmp_path / "run.py"
    script.write_text(RUN_UNTIL_INTERRUPTED)
    parent = subprocess.Popen(
        [sys.executable, script, tmp_path / "out", where], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout.readline().strip() == "1"
        begun = children_of(parent.pid)
        if where == "anywhere":
            parent.send_signal(signal.SIGINT)
        try:
            parent.wait(timeout=30)
        finally:
            parent.kill()
        assert parent.stdout.read().split()[-1] == "True"
    assert len(begun) >= 2
    assert all_end(begun)


def children_of(pid):
    """The processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.is_dir():
        pytest.skip("there is no /proc on this system to find the processes of a run in")
    return [
        int(word) for task in tasks.iterdir() for word in (task / "children").read_text().split()
    ]


def all_end(pids):
    """Whether the processes end within half a minute."""
    deadline = time.monotonic() + 30
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(is_running, pids))


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
