"""Where data files are found: in the folder a caller names, else in $EQSEP_DATA."""

import os
from pathlib import Path
from typing import Any

from eqsep.datasets.catalogue import DATA_FILES

VARIABLE = "EQSEP_DATA"


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
        raise FileNotFoundError(
            f"There is no {name} in {place}. Put the file there, from {source}, or name another "
            f"folder that has it in a subfolder {folder}: data_home=... or {VARIABLE}=..."
            f"{_command(folder)}"
        )
    return place / name


def data_folder(folder: str, *, source: str, data_home: Any = None) -> Path:
    """The path of a data set's folder that exists; the parameters are those of `data_file`.

    Examples
    --------
    >>> data_folder("tides", source="the harbour", data_home="/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no folder tides in /nowhere. Put it there, from the harbour, or ...
    """
    home = named_home(data_home, wanted=folder, source=source)
    if not (home / folder).is_dir():
        raise FileNotFoundError(
            f"There is no folder {folder} in {home}. Put it there, from {source}, or name another "
            f"folder that has it: data_home=... or {VARIABLE}=..."
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
        raise FileNotFoundError(
            f"No folder was named to look for {wanted} in: data_home is None and the variable "
            f"{VARIABLE} is not set. Put {wanted}, from {source}, into any folder, and name that "
            f"folder: data_home=... (--data-home FOLDER of the command), or {VARIABLE}=..."
            f"{_command(wanted.split('/')[0])}"
        )
    return Path(home).expanduser()


def _command(folder: str) -> str:
    """The command that fetches the data set, in words, where there is one."""
    known = any(file.folder == folder for file in DATA_FILES)
    return f" Or fetch it: `eqsep data fetch {folder}`." if known else ""
