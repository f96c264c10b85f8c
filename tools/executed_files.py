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
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from types import FrameType
from typing import Any

import eqsep

ROOT = Path(eqsep.__file__).parent
MOST = {"Detector.fit": 22, "eqsep score": 38}  # files, beyond which the way is too long
FUNCTION = 2  # CO_NEWLOCALS of a code object: that of a function, not of a module or class


def executed(work: Callable[[], Any]) -> list[str]:
    """The files of the package of which a function is called during the work."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, arg: Any) -> None:  # noqa: ARG001
        code = frame.f_code
        if event == "call" and code.co_flags & FUNCTION and code.co_filename.startswith(str(ROOT)):
            found.add(str(Path(code.co_filename).relative_to(ROOT)))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(found)


def of_a_fit() -> list[str]:
    """Of `Detector.fit` on the rows in memory."""
    from eqsep import Detector
    from eqsep.datasets import make_mixed_demo

    payments = make_mixed_demo(random_state=0)
    return executed(lambda: Detector(random_state=0).fit(payments.X, payments.kind))


def of_a_command(*words: str) -> list[str]:
    """Of `eqsep` with these words."""
    from eqsep.cli import app

    return executed(lambda: app(list(words), standalone_mode=False))


def load_all() -> None:
    """Import every module, so that no import is counted."""
    for module in walk_packages(eqsep.__path__, "eqsep."):
        triton = module.name.endswith(".tiles") and find_spec("triton") is None
        if not triton and not module.name.endswith("__main__"):
            import_module(module.name)


def main() -> int:
    """Print the files of each way; 1 where one is too long."""
    from eqsep.datasets import make_mixed_demo

    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"  # threads that wait for work already are not profiled
    load_all()
    with tempfile.TemporaryDirectory() as name:
        model, rows, scores = (str(Path(name) / file) for file in ("m.eqsep", "r.csv", "s.csv"))
        made = make_mixed_demo(random_state=0, as_frame=True)
        made.X.assign(kind=made.kind).to_csv(rows, index=False)
        for _ in range(2):  # at the second time all is compiled
            ways = {
                "Detector.fit": of_a_fit(),
                "eqsep fit": of_a_command("fit", rows, "--label", "kind", "--out", model),
                "eqsep score": of_a_command("score", model, rows, "--out", scores),
            }
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
