"""`eqsep data`: the files of real data sets, listed, looked for and fetched."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eqsep.commands.console import Screen, errors_told
from eqsep.commands.options import Commands

if TYPE_CHECKING:
    from eqsep.datasets.catalogue import DataFile

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
    from eqsep.datasets.catalogue import DATA_FILES

    for file in DATA_FILES:  # lines, not a table: an address is of use only as a whole
        Screen().print(f"{_path(file)}{file.size:>10,} bytes  {file.url}", soft_wrap=True)


@app.command()
def where(data_home: DataHome = None) -> None:
    """Which of the files are in the data folder."""
    from eqsep.datasets.catalogue import DATA_FILES
    from eqsep.datasets.fetching import state_of
    from eqsep.datasets.home import named_home

    with errors_told():
        source = "the addresses of `eqsep data list`"
        home = named_home(data_home, wanted="data sets", source=source)
        Screen().print(f"Data folder: {home}", soft_wrap=True)
        for file in DATA_FILES:
            Screen().print(f"{_path(file)}{state_of(file, home)}", soft_wrap=True)


@app.command()
def fetch(
    data_sets: Annotated[list[str], typer.Argument(metavar="DATA_SET...")],
    data_home: DataHome = None,
) -> None:
    """Download data sets and check them; what is there already is not fetched again."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

    from eqsep.datasets.fetching import fetch_data

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    tasks: dict[str, TaskID] = {}
    paths: list[Path] = []
    with errors_told():
        with Progress(*columns, console=Screen(stderr=True)) as bars:

            def show(file: "DataFile", done: int, total: int | None) -> None:
                if file.name not in tasks:
                    tasks[file.name] = bars.add_task(file.name, total=total)
                bars.update(tasks[file.name], completed=done)

            for name in data_sets:
                paths += fetch_data(name, data_home=data_home, progress=show)
        for path in paths:
            Screen().print(path, soft_wrap=True)


def _path(file: "DataFile") -> str:
    return f"{file.folder}/{file.name}".ljust(28)
