"""`python -m eqsep` is the command `eqsep`."""

from eqsep.cli import app


def main() -> None:
    """Run the command."""
    app(prog_name="eqsep")


if __name__ == "__main__":
    main()
