"""Where data files are found: in the folder a caller names, else in $EQSEP_DATA."""

import os
from pathlib import Path
from typing import Any

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
    home = os.environ.get(VARIABLE) if data_home is None else data_home
    if not home:
        raise FileNotFoundError(
            f"No folder was named to look for {folder}/{name} in: data_home is None and the "
            f"variable {VARIABLE} is not set. Put the file, from {source}, into a subfolder "
            f"{folder} of any folder, and name that folder: data_home=... or {VARIABLE}=..."
        )
    place = Path(home).expanduser() / folder
    if not (place / name).is_file():
        raise FileNotFoundError(
            f"There is no {name} in {place}. Put the file there, from {source}, or name another "
            f"folder that has it in a subfolder {folder}: data_home=... or {VARIABLE}=..."
        )
    return place / name
