"""`python -m eqsep` is the command `eqsep`."""

import atexit
import gc

from eqsep.cli import app

# Most objects of a command belong to modules, which live until it ends. At Python's own threshold
# the garbage collector would scan them many times while they are imported, and again at the end.
COLLECTION_THRESHOLD = 50_000


def main() -> None:
    """Run the command."""
    gc.set_threshold(COLLECTION_THRESHOLD)
    atexit.register(gc.freeze)
    app(prog_name="eqsep")


if __name__ == "__main__":
    main()
