"""One JSON a commit: what jobs cost in units of a fixed loop of the same run, beside the last one.

    python bench/history.py          measure, print, and write bench/history/<number>-<commit>.json
    python bench/history.py --show   print what was kept

The built-in table of payments, 60 landmarks: a minute. The unit is the time that a loop of Python
and NumPy takes in the same process, so that runs of a busy or another machine can be compared, with
caution; both are seconds of the processor, the best of several, with one thread. Nothing is
asserted: a ratio that rises from one commit to the next is for a person to look at.
"""

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before anything divides work

import numpy as np

from eqsep import Detector
from eqsep.datasets import make_mixed_demo

KEPT = Path(__file__).parent / "history"
QUICK = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0}


def reference() -> float:
    """The loop that all is measured by: dicts, strings, sums, sorting and a product."""
    rng = np.random.default_rng(0)
    A = rng.random((300, 300))
    counts: dict[str, int] = {}
    for i in range(60_000):
        counts[str(i % 997)] = counts.get(str(i % 997), 0) + i
    for _ in range(6):
        A = np.tanh(A @ A.T / 300)
        A = np.sort(A, axis=1) + rng.random((300, 300))
    return float(A.sum()) + counts["1"]


def best(task: Callable[[], Any], *, repeats: int = 7) -> float:
    """The least processor time of a task, which is done once before."""
    task()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def measured() -> dict[str, float]:
    """What each job costs, in units of the reference loop."""
    payments = make_mixed_demo(n_samples=4_000, as_frame=True, random_state=0)
    frame = payments.X.drop(columns="time")  # else a fit warns that it grows
    detector, rows = Detector(**QUICK).fit(frame, payments.kind), frame[:200].to_dict("records")
    encode = detector.plan_.encode
    jobs: dict[str, Callable[[], Any]] = {
        "fit 4,000 rows": lambda: Detector(**QUICK).fit(frame, payments.kind),
        "encode 4,000 rows": lambda: encode(frame),
        "score 4,000 rows": lambda: detector.score_samples(frame),
        "score 200 rows one by one": lambda: [detector.score_samples([row]) for row in rows],
        "name 200 rows one by one": lambda: [detector.predict_kind([row]) for row in rows],
        "explain 200 rows": lambda: detector.explain(frame[:200]),
    }
    unit = best(reference)
    return {name: best(job, repeats=5) / unit for name, job in jobs.items()}


def kept() -> list[dict[str, Any]]:
    """What was measured before, the oldest first."""
    return [json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))]


def tell(entry: dict[str, Any], before: dict[str, Any] | None) -> None:
    """The ratios of one commit, and how they have changed."""
    print(f"{entry['commit']}  {entry['at'][:10]}  {entry['machine']}")
    for name, ratio in entry["ratios"].items():
        last = (before or {"ratios": {}})["ratios"].get(name)
        change = "" if last is None else f"{ratio / last:8.2f} times {before['commit']}"
        print(f"  {name:28}{ratio:9.3f}{change}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true", help="print what was kept")
    args = parser.parse_args()
    earlier = kept()
    if args.show:
        for before, entry in zip([None, *earlier], earlier, strict=False):
            tell(entry, before)
        return
    asked = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    at = datetime.now(UTC).isoformat(timespec="seconds")
    entry = {"commit": commit, "at": at, "machine": machine, "ratios": measured()}
    tell(entry, earlier[-1] if earlier else None)
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{len(earlier) + 1:04}-{commit}.json"
    path.write_text(json.dumps(entry, indent=2) + "\n")
    print(path)


if __name__ == "__main__":
    main()
