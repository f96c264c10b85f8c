"""Kill the service under load, again and again, and count: is all that it accepted still there?

    python tools/kill_service.py              50 times, some minutes
    python tools/kill_service.py --times 5 --database postgresql+psycopg://…

The service runs as a process of its own and is killed by SIGKILL while several callers send rows,
give verdicts and take them back. Whatever was answered with 200 must be there afterwards: alarms
under their numbers, verdicts as they were given. After the last time the log of the model is done
again: it must be the live version, bit by bit.
"""

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from eqsep import Detector
from eqsep.serve.web.server import Serving, serve
from eqsep.serve.workspace import Workspace

MODEL = "machines"
_CALLERS = 4
# Forks of a process that has only imported: a library in use, such as ray, may crash in a fork.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["eqsep.serve.web.server"])
_REFUSED = (HTTPException, OSError, ValueError)  # the service is gone, or not there yet


@dataclass
class Accepted:
    """What the service has said that it holds."""

    alarms: dict[int, dict[str, Any]] = field(default_factory=dict)
    verdicts: dict[int, int] = field(default_factory=dict)  # of which row
    undone: set[int] = field(default_factory=set)
    doubtful: set[int] = field(default_factory=set)  # asked to be undone, and no answer came


@dataclass(frozen=True)
class Found:
    """What was counted after the last kill."""

    kills: int
    alarms: int
    verdicts: int
    undone: int
    lost: list[str]
    same_bits: bool

    def __str__(self) -> str:
        return (
            f"killed {self.kills} times: {self.alarms:,} alarms, {self.verdicts:,} verdicts and "
            f"{self.undone:,} undone ones were accepted, {len(self.lost)} lost; the log gives "
            f"{'the same bits' if self.same_bits else 'OTHER BITS'}"
        )


def kill_again_and_again(url: str, *, times: int, named: float, seed: int = 0) -> Found:
    """Start the service, load it and kill it, so many times; what was accepted and what is lost.

    A share of the verdicts, `named`, teaches a kind, which takes longer; others teach normal rows.
    """
    ws = Workspace(url)
    rng = np.random.default_rng(seed)
    rows = [{"heat": h, "load": x} for h, x in rng.normal((60, 0), (2, 1), (600, 2)).tolist()]
    detector = Detector(bandwidth=1.0, n_landmarks=40, random_state=0).fit(rows)
    ws.ledger.add(MODEL, detector, by="test")
    token = ws.people.issue("killer", "judge", by="test")
    ws.close()
    accepted, draw = Accepted(), random.Random(seed)
    for _ in range(times):
        with Serving("", port=0).bound() as sock:  # the process has one of its own
            port = sock.getsockname()[1]
            process = FORKS.Process(target=serve, args=(Serving(url, port=port), sock))
            process.start()
        _load(_Caller(port, token, named, accepted), process, draw)
        process.join()
    ws = Workspace(url)
    try:
        return _counted(ws, accepted, times)
    finally:
        ws.close()


@dataclass(frozen=True)
class _Caller:
    """Sends rows, gives verdicts and takes them back, and writes down what was accepted."""

    port: int
    token: str
    named: float
    accepted: Accepted
    judged: threading.Event = field(default_factory=threading.Event)
    ends: threading.Event = field(default_factory=threading.Event)

    def run(self, seed: float) -> None:
        """Ask until the end."""
        draw, mine = random.Random(seed), list[int]()
        while not self.ends.is_set():
            try:
                verdict = self._verdict(self._alarm(draw), draw)
                if verdict is not None:
                    mine.append(verdict)
                    self.judged.set()
                if mine and draw.random() < 0.4:
                    self._undo(mine.pop(draw.randrange(len(mine))))
            except _REFUSED:
                time.sleep(0.02)

    def _alarm(self, draw: random.Random) -> int:
        row = {"heat": draw.uniform(200, 900), "load": draw.uniform(50, 90), "id": draw.random()}
        status, body = self._post(f"/api/v1/models/{MODEL}/score", row)
        if status != 200:
            raise ValueError(body)
        number: int = body["answers"][0]["id"]
        self.accepted.alarms[number] = row
        return number

    def _verdict(self, number: int, draw: random.Random) -> int | None:
        asked: dict[str, Any] = {"rows": [number], "verdict": "false alarm"}
        if draw.random() < self.named:
            asked |= {"verdict": "true", "kind": draw.choice(["hot", "warm"])}
        status, body = self._post("/api/v1/verdicts", asked)
        if status != 200:  # others were first, too often
            return None
        verdict: int = body["verdicts"][0]["id"]
        self.accepted.verdicts[verdict] = number
        return verdict

    def _undo(self, verdict: int) -> None:
        self.accepted.doubtful.add(verdict)
        status, _ = self._post(f"/api/v1/verdicts/{verdict}/undo", {})
        if status == 200:
            self.accepted.undone.add(verdict)
        self.accepted.doubtful.discard(verdict)

    def _post(self, path: str, body: Any) -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


def _load(caller: _Caller, process: Any, draw: random.Random) -> None:
    """Let several ask until the service, some time after it has learnt something, is killed."""
    seeds = [draw.random() for _ in range(_CALLERS)]
    threads = [threading.Thread(target=caller.run, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    caller.judged.wait(60)
    time.sleep(draw.uniform(0.0, 0.5))
    os.kill(process.pid, signal.SIGKILL)
    caller.ends.set()
    for thread in threads:
        thread.join()


def _counted(ws: Workspace, accepted: Accepted, times: int) -> Found:
    lost = []
    for number, row in accepted.alarms.items():
        try:
            if ws.alarms.get(number).row != row:
                lost.append(f"alarm {number} is another")
        except ValueError:
            lost.append(f"alarm {number}")
    for verdict, number in accepted.verdicts.items():
        try:
            kept = ws.verdicts.get(verdict)
        except ValueError:
            lost.append(f"verdict {verdict}")
            continue
        is_undone = kept.undone_at is not None
        if verdict not in accepted.doubtful and is_undone != (verdict in accepted.undone):
            lost.append(f"the undoing of verdict {verdict}")
        if kept.row != number:
            lost.append(f"verdict {verdict} is another")
    replay = ws.ledger.replay(MODEL)
    counts = (len(accepted.alarms), len(accepted.verdicts), len(accepted.undone))
    return Found(times, *counts, lost=lost, same_bits=replay.same_bits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--database", help="its URL; by default SQLite in a new folder")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = asked.database or f"sqlite:///{Path(folder) / 'eqsep.db'}"
        found = kill_again_and_again(url, times=asked.times, named=0.2)
    print(found)
    for what in found.lost:
        print(f"lost: {what}")
    sys.exit(0 if not found.lost and found.same_bits else 1)


if __name__ == "__main__":
    main()
