"""`python -m eqsep` is the command `eqsep`."""

from eqsep.cli import app

app(prog_name="eqsep")
