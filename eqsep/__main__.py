"""`python -m eqsep` is the command `eqsep`."""

import atexit
import gc
import os
import sys

from eqsep.commands.postponing import postpone

_OBJECTS = 50_000  # that are made before it is looked which are lost: imports lose hardly any


def main() -> None:
    """Run the command in a process of its own."""
    gc.set_threshold(_OBJECTS)
    postpone("pandas", "scipy.stats")
    codes: list[int] = []
    atexit.register(_leave, codes)  # the first one is the last to run
    from eqsep.cli import app

    try:
        app(prog_name="eqsep")
    except SystemExit as end:
        if isinstance(end.code, int):
            codes.append(end.code)
        raise


def _leave(codes: list[int]) -> None:
    """End at once where all is done: to take all modules apart takes as long as many rows."""
    if not codes:
        return
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError:  # which the interpreter tells in its own way
        return
    os._exit(codes[0])


if __name__ == "__main__":
    main()
