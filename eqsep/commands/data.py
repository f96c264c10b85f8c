"""`eqsep data`: the files of real data sets, listed, looked for and fetched."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from eqsep.commands.console import Screen
from eqsep.datasets.catalogue import DATA_FILES, DataFile
from eqsep.datasets.fetching import fetch_data, state_of
from eqsep.datasets.home import named_home


def list_files(console: Console) -> None:
    """Show every file that can be fetched, with its size and address."""
    for file in DATA_FILES:  # lines, not a table: an address is of use only as a whole
        console.print(f"{_place(file)}{file.size:>10,} bytes  {file.url}", soft_wrap=True)


def show_states(console: Console, *, data_home: Path | None) -> None:
    """Show which files are in the data folder."""
    home = named_home(data_home, wanted="data sets", source="the addresses of `eqsep data list`")
    console.print(f"Data folder: {home}", soft_wrap=True)
    for file in DATA_FILES:
        console.print(f"{_place(file)}{state_of(file, home)}", soft_wrap=True)


def fetch(console: Console, data_sets: Iterable[str], *, data_home: Path | None) -> None:
    """Fetch data sets with a bar for each file, then show where the files are."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(*columns, console=Screen(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def show(file: DataFile, done: int, total: int | None) -> None:
            if file.name not in tasks:
                tasks[file.name] = bars.add_task(file.name, total=total)
            bars.update(tasks[file.name], completed=done)

        paths = [
            p for name in data_sets for p in fetch_data(name, data_home=data_home, progress=show)
        ]
    for path in paths:
        console.print(path, soft_wrap=True)


def _place(file: DataFile) -> str:
    return f"{file.folder}/{file.name}".ljust(28)
