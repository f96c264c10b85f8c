"""The options of `eqsep data`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from eqsep.cli.console import CommandGroup, Screen, progress
from eqsep.datasets.catalogue import DATA_FILES, DataFile
from eqsep.datasets.fetching import fetch_data, state_of
from eqsep.datasets.home import named_home

app = typer.Typer(cls=CommandGroup, no_args_is_help=True)
DataHome = Annotated[
    Path | None,
    typer.Option(
        "--data-home", metavar="FOLDER", help="The folder of data sets; else EQSEP_DATA names it."
    ),
]


@app.command("list")
def list_data() -> None:
    """The data sets that can be fetched, with their files."""
    list_files()


@app.command()
def where(data_home: DataHome = None) -> None:
    """Which of the files are in the data folder."""
    show_states(data_home)


@app.command()
def fetch(
    data_sets: Annotated[list[str], typer.Argument(metavar="DATA_SET...")],
    data_home: DataHome = None,
) -> None:
    """Download data sets and check them; what is there already is not fetched again."""
    fetch_files(data_sets, data_home)


def list_files() -> None:
    """Print every file with its size and address."""
    for file in DATA_FILES:  # lines, not a table: an address is of use only as a whole
        Screen().print(f"{_path(file)}{file.size:>10,} bytes  {file.url}", soft_wrap=True)


def show_states(data_home: Path | None) -> None:
    """Print which of the files are in the data folder."""
    source = "the addresses of `eqsep data list`"
    home = named_home(data_home, wanted="data sets", source=source)
    Screen().print(f"Data folder: {home}", soft_wrap=True)
    for file in DATA_FILES:
        Screen().print(f"{_path(file)}{state_of(file, home)}", soft_wrap=True)


def fetch_files(data_sets: Sequence[str], data_home: Path | None) -> None:
    """Download data sets, and print where the files are."""
    paths: list[Path] = []
    with progress("eqsep data fetch", "looking for files") as job:

        def show(file: DataFile, done: int, total: int | None) -> None:
            if file.name != job.name:
                job.phase(file.name, total)
            job.advance(done - job.done)

        for name in data_sets:
            paths += fetch_data(name, data_home=data_home, progress=show)
    for path in paths:
        Screen().print(path, soft_wrap=True)


def _path(file: DataFile) -> str:
    return f"{file.folder}/{file.name}".ljust(28)
