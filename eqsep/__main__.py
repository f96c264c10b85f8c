"""`python -m eqsep` is the command `eqsep`."""

import gc

from eqsep.commands.postponing import postpone

_OBJECTS = 50_000  # that are made before it is looked which are lost: imports lose hardly any


def main() -> None:
    """Run the command in a process of its own."""
    gc.set_threshold(_OBJECTS)
    postpone("pandas", "scipy.stats")
    from eqsep.cli import app

    app(prog_name="eqsep")


if __name__ == "__main__":
    main()
