"""Where data files are found: in the folder a caller names, else in $EQSEP_DATA."""

import os
from pathlib import Path
from typing import Any

from eqsep.datasets.catalogue import DATA_FILES
from eqsep.errors import UserError

VARIABLE = "EQSEP_DATA"
_NAMED = f"data_home=... or {VARIABLE}=..."


class MissingDataError(UserError, FileNotFoundError):
    """The files of a data set are not where they were looked for."""


def data_file(folder: str, name: str, *, source: str, data_home: Any = None) -> Path:
    """The path of a data file that exists.

    Parameters
    ----------
    folder, name : str
        The data set's folder inside the data home, and the file in it.
    source : str
        Where the file can be had, for the message where there is none.
    data_home : path-like or None, default=None
        The folder of all data sets; the variable EQSEP_DATA names it where this is None.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as home:
    ...     (Path(home) / "tides").mkdir()
    ...     _ = (Path(home) / "tides" / "2024.csv").write_text("1.5,high")
    ...     data_file("tides", "2024.csv", source="the harbour", data_home=home).read_text()
    '1.5,high'
    """
    place = named_home(data_home, wanted=f"{folder}/{name}", source=source) / folder
    if not (place / name).is_file():
        raise MissingDataError(
            f"There is no {name} in {place}. Put the file there, from {source}{_command(folder)}.",
            hint=f"Or name another folder that has it in a subfolder {folder}: {_NAMED}.",
            where=f" that has it in a subfolder {folder}",
            variable=VARIABLE,
        )
    return place / name


def data_folder(folder: str, *, source: str, data_home: Any = None) -> Path:
    """The path of a data set's folder that exists; the parameters are those of `data_file`.

    Examples
    --------
    >>> data_folder("tides", source="the harbour", data_home="/nowhere")
    Traceback (most recent call last):
        ...
    eqsep.datasets.home.MissingDataError: There is no folder tides in /nowhere. Put it there, ...
    """
    home = named_home(data_home, wanted=folder, source=source)
    if not (home / folder).is_dir():
        raise MissingDataError(
            f"There is no folder {folder} in {home}. Put it there, from {source}.",
            hint=f"Or name another folder that has it: {_NAMED}.",
            where=" that has it",
            variable=VARIABLE,
        )
    return home / folder


def named_home(data_home: Any, *, wanted: str, source: str) -> Path:
    """The folder of all data sets, as the caller or the variable EQSEP_DATA names it.

    Examples
    --------
    >>> named_home("/data", wanted="tides/2024.csv", source="the harbour").as_posix()
    '/data'
    """
    home = os.environ.get(VARIABLE) if data_home is None else data_home
    if not home:
        raise MissingDataError(
            f"No folder was named to look for {wanted} in, and the variable {VARIABLE} is not set. "
            f"Put {wanted} into a folder, from {source}{_command(wanted.split('/')[0])}.",
            hint=f"Name that folder: {_NAMED}.",
            where="",
            variable=VARIABLE,
        )
    return Path(home).expanduser()


def _command(folder: str) -> str:
    """The command that fetches the data set, in words, where there is one."""
    known = any(file.folder == folder for file in DATA_FILES)
    return f" or with `eqsep data fetch {folder}`" if known else ""
