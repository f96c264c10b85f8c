"""Where a data set comes from, and how its files are read: alike for all of them."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from eqsep.datasets.home import data_file
from eqsep.errors import UserError


@dataclass(frozen=True)
class Source:
    """A published data set: its title, its folder in the data home, where it can be had.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> tides = Source(title="Tides", folder="tides", url="the harbour")
    >>> with TemporaryDirectory() as home:
    ...     (Path(home) / "tides").mkdir()
    ...     _ = (Path(home) / "tides" / "2024.txt").write_text("1.5 0.2 1\\n1.1 0.3 2\\n")
    ...     path = tides.file("2024.txt", data_home=home)
    ...     X, code = tides.classes(path, width=2)
    ...     tides.kinds(code, {1: "normal", 2: "flood"}, path=path)
    array(['normal', 'flood'], dtype='<U6')
    """

    title: str
    folder: str
    url: str

    def file(self, name: str, *, data_home: Any) -> Path:
        """The path of a file that exists; see `data_file`."""
        return data_file(self.folder, name, source=self.url, data_home=data_home)

    def records(self, path: Path, dtype: np.dtype, *, layout: str, **options: Any) -> np.ndarray:
        """The rows of a text file as records; `options` are those of `numpy.loadtxt`."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # NumPy only warns of a file without rows
                return np.loadtxt(path, dtype, comments=None, ndmin=1, **options)
        except (ValueError, UserWarning) as error:
            self.refuse(path, f"expected {layout}; {error}", error)

    def classes(self, path: Path, *, width: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the class of each, from `width` + 1 numbers a line.  -> (n, width), (n,)"""
        record = np.dtype([("x", "f8", (width,)), ("class", "i8")])
        layout = f"no header and, in every row, {width} numbers and the number of the class, " + (
            "separated by blanks"
        )
        table = self.records(path, record, layout=layout)
        return table["x"], table["class"]

    def kinds(self, codes: np.ndarray, kind_of: Mapping[Any, str], *, path: Path) -> np.ndarray:
        """The kind of every row's code; a code that nobody knows is an error."""
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
        raise UserError(
            f"{path} is not a file of {self.title}: {why}. Take the file from {self.url}."
        ) from cause
