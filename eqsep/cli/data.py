"""The options of `eqsep data`."""

from pathlib import Path
from typing import Annotated

import typer

from eqsep.cli.options import Commands
from eqsep.commands.console import errors_told

app = typer.Typer(cls=Commands, no_args_is_help=True)
DataHome = Annotated[
    Path | None,
    typer.Option(
        "--data-home", metavar="FOLDER", help="The folder of data sets; else EQSEP_DATA names it."
    ),
]


@app.command("list")
def list_data() -> None:
    """The data sets that can be fetched, with their files."""
    with errors_told():
        from eqsep.commands import data

        data.list_files()


@app.command()
def where(data_home: DataHome = None) -> None:
    """Which of the files are in the data folder."""
    with errors_told():
        from eqsep.commands import data

        data.show_states(data_home)


@app.command()
def fetch(
    data_sets: Annotated[list[str], typer.Argument(metavar="DATA_SET...")],
    data_home: DataHome = None,
) -> None:
    """Download data sets and check them; what is there already is not fetched again."""
    with errors_told():
        from eqsep.commands import data

        data.fetch_files(data_sets, data_home)
