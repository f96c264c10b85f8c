"""Which files of the package run on the way of a row and of a fit: counted by profiling.

    python tools/executed_files.py

A file counts where one of its functions is called; what an import runs does not. The table is the
built-in one of card payments, with numbers, names, dates and missing values.
"""

import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import eqsep

ROOT = Path(eqsep.__file__).parent
MOST = {"Detector.fit": 37, "eqsep score": 49}  # files: more are too long a way; a term has one
FUNCTION = 2  # CO_NEWLOCALS of a code object: that of a function, not of a module or class


def executed(work: Callable[[], Any]) -> list[str]:
    """The files of the package of which a function is called during the work."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, arg: Any) -> None:  # noqa: ARG001
        if event == "call" and frame.f_code.co_flags & FUNCTION:
            found.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    paths = (Path(name) for name in found)
    return sorted(str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT))


def main() -> int:
    """Print the files of each way; 1 where one is too long."""
    from eqsep import Detector
    from eqsep.cli import app
    from eqsep.datasets import make_mixed_demo
    from eqsep.detector import Config

    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"  # threads that wait for work already are not profiled
    payments = make_mixed_demo(n_samples=400, random_state=0, as_frame=True)
    detector = Detector(random_state=0, config=Config.fast())
    with tempfile.TemporaryDirectory() as name:
        model, rows, scores = (str(Path(name) / file) for file in ("m.eqsep", "r.csv", "s.csv"))
        payments.X.assign(kind=payments.kind).to_csv(rows, index=False)
        fit = ["fit", rows, "--label", "kind", "--landmarks", "60", "--out", model]
        score = ["score", model, rows, "--out", scores]
        works = {
            "Detector.fit": lambda: detector.fit(payments.X, payments.kind),
            "eqsep fit": lambda: app(fit, standalone_mode=False),
            "eqsep score": lambda: app(score, standalone_mode=False),
        }
        for work in works.values():  # imports and compiles, which does not count
            work()
        ways = {way: executed(work) for way, work in works.items()}
    for way, files in ways.items():
        limit = f" (at most {MOST[way]})" if way in MOST else ""
        print(f"\n{way}: {len(files)} files{limit}", *files, sep="\n  ")
    modules = subprocess.run(
        ["git", "ls-files", "eqsep/*.py"], cwd=ROOT.parent, capture_output=True, text=True
    ).stdout.split()
    print(f"\nModules of the package: {len(modules)}")
    return int(any(len(ways[way]) > most for way, most in MOST.items()))


if __name__ == "__main__":
    sys.exit(main())
