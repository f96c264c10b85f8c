"""The data home, which a caller or $EQSEP_DATA names: where data files are, how they are read."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from eqsep.datasets.catalogue import DATA_FILES
from eqsep.errors import UserError

VARIABLE = "EQSEP_DATA"
_NAMED = f"data_home=... or {VARIABLE}=..."


class MissingDataError(UserError, FileNotFoundError):
    """The files of a data set are not where they were looked for."""


def data_file(folder: str, name: str, *, source: str, data_home: Any = None) -> Path:
    """The path of a data file that exists; messages say that it can be had from `source`."""
    place = named_home(data_home, wanted=f"{folder}/{name}", source=source) / folder
    if not (place / name).is_file():
        there = f"Put the file there, from {source}{_command(folder)}."
        where = f" that has it in a subfolder {folder}"
        hint = f"Or name another folder{where}: {_NAMED}."
        raise _missing(f"{place} has no {name}. {there}", hint=hint, where=where)
    return place / name


def data_folder(folder: str, *, source: str, data_home: Any = None) -> Path:
    """The path of a data set's folder that exists; the parameters are those of `data_file`."""
    home = named_home(data_home, wanted=folder, source=source)
    if not (home / folder).is_dir():
        raise _missing(
            f"{home} has no folder {folder}. Put it there, from {source}.",
            hint=f"Or name another folder that has it: {_NAMED}.",
            where=" that has it",
        )
    return home / folder


def named_home(data_home: Any, *, wanted: str, source: str) -> Path:
    """The folder of all data sets, as the caller or the variable EQSEP_DATA names it."""
    home = os.environ.get(VARIABLE) if data_home is None else data_home
    if not home:
        raise _missing(
            f"No folder was named to look for {wanted} in, and the variable {VARIABLE} is not set. "
            f"Put {wanted} into a folder, from {source}{_command(wanted.split('/')[0])}.",
            hint=f"Name that folder: {_NAMED}.",
        )
    return Path(home).expanduser()


def _missing(what: str, *, hint: str, where: str = "") -> MissingDataError:
    return MissingDataError(what, hint=hint, where=where, variable=VARIABLE)


@dataclass(frozen=True)
class DatasetSource:
    """A published data set: its title, its folder in the data home, where it can be had."""

    title: str
    folder: str
    url: str

    def file(self, name: str, *, data_home: Any) -> Path:
        """The path of a file that exists."""
        return data_file(self.folder, name, source=self.url, data_home=data_home)

    def records(self, path: Path, dtype: np.dtype, *, layout: str, **options: Any) -> np.ndarray:
        """The rows of a text file as records; `options` are those of `numpy.loadtxt`."""
        with path.open("rb") as file:
            if not any(line.strip() for line in islice(file, options.get("skiprows", 0), None)):
                self.refuse(path, f"expected {layout}, got no row")  # NumPy would only warn
        try:
            return np.loadtxt(path, dtype, comments=None, ndmin=1, **options)
        except ValueError as error:
            self.refuse(path, f"expected {layout}; {error}", error)

    def classes(
        self, *names: str, width: int, kind_of: Mapping[int, str], data_home: Any
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The rows and kinds of each file, with `width` numbers and a class in every line."""
        record = np.dtype([("x", "f8", (width,)), ("class", "i8")])
        layout = f"no header and, in every row, {width} numbers and the number of the class"
        paths = [self.file(name, data_home=data_home) for name in names]
        tables = [self.records(p, record, layout=f"{layout}, separated by blanks") for p in paths]
        return [
            (table["x"], self.kinds(table["class"], kind_of, path=path))
            for table, path in zip(tables, paths, strict=True)
        ]

    def kinds(self, codes: np.ndarray, kind_of: Mapping[Any, str], *, path: Path) -> np.ndarray:
        """The kind of every row's code; an unknown code is an error."""
        names, place = np.unique(codes, return_inverse=True)
        unknown = [name for name in names.tolist() if name not in kind_of]
        if unknown:
            raise UserError(
                f"{path} names what belongs to no kind: {unknown}. Expected one of "
                f"{sorted(kind_of)}. Take the file of {self.title} from {self.url}."
            )
        return np.array([kind_of[name] for name in names.tolist()])[place]

    def refuse(self, path: Path, why: str, cause: BaseException | None = None) -> NoReturn:
        """Say that `path` is not a file of this data set, and where to take one from."""
        message = f"{path} is not a file of {self.title}: {why}. Take the file from {self.url}."
        raise UserError(message) from cause


def _command(folder: str) -> str:
    """The command that fetches the data set, in words, where there is one."""
    known = any(file.folder == folder for file in DATA_FILES)
    return f" or with `eqsep data fetch {folder}`" if known else ""
