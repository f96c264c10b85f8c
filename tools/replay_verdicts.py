"""Give random verdicts, take them back, merge and go back; then do the whole log again.

    python tools/replay_verdicts.py --n 10000 --seed 0

A small detector of two columns meets rows of seven kinds. At the end the log is done again from
its first version, and the model must hold the same bits.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from eqsep import Detector
from eqsep.errors import EqsepWarning
from eqsep.serve.ledger import Replay
from eqsep.serve.workspace import Workspace

KINDS = [f"kind {i}" for i in range(6)]
CENTRES = {kind: 6 * np.array([np.cos(i), np.sin(i)]) for i, kind in enumerate(KINDS)}


def run(n: int, seed: int, url: str) -> tuple[Counter[str], Replay]:
    """Do `n` random things to a model in the database; how many of each, and the replay."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat(["normal", *KINDS], [600, *[20] * len(KINDS)])
    detector = Detector(bandwidth=1.0, n_landmarks=40, random_state=seed)
    detector.fit(_rows(kinds, rng), kinds)
    work = Workspace(url, keep_quiet=1.0)
    work.ledger.add("random", detector, by="tool")
    kinds = rng.choice(["normal", *KINDS], size=2 * n)
    answers = work.intake.take("random", _rows(kinds, rng))
    waiting = [(answer.id, str(kind)) for answer, kind in zip(answers, kinds, strict=True)]
    done: Counter[str] = Counter()
    standing: list[int] = []
    for _ in range(n):
        draw = rng.random()
        if draw < 0.35 and standing:
            verdict = standing.pop(int(rng.integers(len(standing))))
            work.verdicts.undo([verdict], by="tool")
            done["undo"] += 1
        elif draw < 0.36:
            other = Detector(plan=detector.plan_, false_alarm_rate=0.5)
            normal = np.repeat("normal", 40)
            work.ledger.merge("random", other.fit(_rows(normal, rng), normal), by="tool")
            done["merge"] += 1
        elif draw < 0.37 and standing:
            back = work.ledger.versions("random", limit=4)[-1].id
            work.ledger.revert("random", back, by="tool")
            done["revert"] += 1
        else:
            standing += _judge(work, waiting, int(rng.integers(1, 3)))
            done["verdict"] += 1
    return done, work.ledger.replay("random")


def _judge(work: Workspace, waiting: list[tuple[int | None, str]], n: int) -> list[int]:
    """Judge the next row, and up to `n` that are of its kind; the numbers of the verdicts."""
    number, kind = waiting.pop()
    numbers = [number]
    while waiting and len(numbers) < n and waiting[-1][1] == kind:
        numbers.append(waiting.pop()[0])
    told = {"verdict": "false alarm"} if kind == "normal" else {"verdict": "true", "kind": kind}
    given = work.verdicts.give([one for one in numbers if one is not None], by="tool", **told)
    return [verdict.id for verdict in given.verdicts]


def _rows(kinds: np.ndarray, rng: np.random.Generator) -> list[dict[str, float]]:
    centres = np.array([CENTRES.get(kind, np.zeros(2)) for kind in kinds.tolist()])
    return [{"x": float(x), "y": float(y)} for x, y in rng.normal(centres, 0.5)]


def main() -> int:
    """Run, print what was done, and end with 1 where the replay differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    warnings.simplefilter("ignore", EqsepWarning)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'eqsep.db'}"
        done, replay = run(wanted.n, wanted.seed, url)
    counts = ", ".join(f"{n:,} of {what}" for what, n in sorted(done.items()))
    print(f"done        {counts}, in {time.perf_counter() - start:.0f} s")
    print(f"replayed    {replay.versions:,} versions that the live one is made of")
    print(f"same bits   {'yes' if replay.same_bits else 'no'}")
    print(f"difference  {replay.largest_difference:g} at most, of a coefficient")
    return 0 if replay.same_bits else 1


if __name__ == "__main__":
    sys.exit(main())
