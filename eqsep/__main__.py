"""`python -m eqsep` is the command `eqsep`."""

import atexit
import gc

from eqsep.cli import app

# Most of what a command makes are modules, which stay: looking through them for garbage, over and
# over while they are imported and once more at the end, takes a fifth of the time of a row.
OBJECTS_BETWEEN_LOOKS = 50_000


def main() -> None:
    """Run the command."""
    gc.set_threshold(OBJECTS_BETWEEN_LOOKS)
    atexit.register(gc.freeze)
    app(prog_name="eqsep")


if __name__ == "__main__":
    main()
