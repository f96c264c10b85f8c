"""`eqsep data`: list, find and download the real data sets."""

from pathlib import Path
from typing import Annotated

import typer

from eqsep.cli.console import CommandGroup, Screen, opt, progress
from eqsep.datasets.catalogue import DATA_FILES, DataFile
from eqsep.datasets.fetching import fetch_data, state_of
from eqsep.datasets.home import named_home

app = typer.Typer(cls=CommandGroup, no_args_is_help=True)
_HOME = opt(None, "FOLDER", "The folder of data sets (default: EQSEP_DATA).", "--data-home")


@app.command("list")
def list_data() -> None:
    """List the data sets that can be downloaded, with their files."""
    for file in DATA_FILES:  # lines, not a table: an address is of use only as a whole
        Screen().print_line(f"{_path(file)}{file.size:>10,} bytes  {file.url}")


@app.command()
def where(data_home: Path | None = _HOME) -> None:
    """Show which of the files are in the data folder."""
    home = named_home(data_home, wanted="data sets", source="the addresses of `eqsep data list`")
    Screen().print_line(f"Data folder: {home}")
    for file in DATA_FILES:
        Screen().print_line(f"{_path(file)}{state_of(file, home)}")


@app.command()
def fetch(
    data_sets: Annotated[list[str], typer.Argument(metavar="DATA_SET...")],
    data_home: Path | None = _HOME,
) -> None:
    """Download and check data sets; existing files are not downloaded again."""
    paths: list[Path] = []
    with progress("eqsep data fetch", "looking for files") as job:

        def show(file: DataFile, done: int, total: int | None) -> None:
            if file.name != job.name:
                job.phase(file.name, total)
            job.advance(done - job.done)

        for name in data_sets:
            paths += fetch_data(name, data_home=data_home, progress=show)
    for path in paths:
        Screen().print_line(path)


def _path(file: DataFile) -> str:
    return f"{file.folder}/{file.name}".ljust(28)
