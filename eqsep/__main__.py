"""`python -m eqsep` is the command `eqsep`."""

from eqsep.commands.postponing import postpone


def main() -> None:
    """Run the command in a process of its own."""
    postpone("pandas", "scipy.stats")
    from eqsep.cli import app

    app(prog_name="eqsep")


if __name__ == "__main__":
    main()
