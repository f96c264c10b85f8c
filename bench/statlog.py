"""Two tables of the Statlog project, each with several kinds: Shuttle and Satimage."""

from collections.abc import Collection
from typing import Any

import numpy as np

from eqsep.datasets.home import DatasetSource
from eqsep.datasets.records import LabelledTable, Rows, named_columns
from eqsep.errors import UserError

_UCI = "https://archive.ics.uci.edu/dataset"
_SHUTTLE = DatasetSource(title="Shuttle", folder="shuttle", url=f"{_UCI}/148/statlog+shuttle")
_SHUTTLE_COLUMNS = tuple(f"x{i}" for i in range(1, 10))
_STATES = ("normal", "fpv close", "fpv open", "high", "bypass", "bpv close", "bpv open")
_SHUTTLE_KINDS = dict(enumerate(_STATES, start=1))

_SATIMAGE = DatasetSource(
    title="Satimage", folder="satimage", url=f"{_UCI}/146/statlog+landsat+satellite"
)
_SATIMAGE_COLUMNS = tuple(f"pixel{p}_band{b}" for p in range(1, 10) for b in range(1, 5))
# Class 6 is missing: mixed ground was left out when the data were published.
_GROUND = {
    **{1: "red soil", 2: "cotton crop", 3: "grey soil", 4: "damp grey soil"},
    **{5: "vegetation stubble", 7: "very damp grey soil"},
}


def load_shuttle(*, data_home: Any = None, as_frame: bool = False) -> LabelledTable:
    """States of a space shuttle's radiators: flow as usual, and six other kinds.

    Parameters
    ----------
    data_home : path-like or None, default=None
        The folder that holds `shuttle/shuttle.trn` and `shuttle/shuttle.tst`, from
        https://archive.ics.uci.edu/dataset/148/statlog+shuttle. Default: the variable EQSEP_DATA.
    as_frame : bool, default=False
        Whether the rows are a pandas frame with the columns x1 to x9 rather than an array.

    Returns
    -------
    LabelledTable
        The 58,000 rows of both files, those of shuttle.trn first. Class 1 (rad flow, 79 % of the
        rows) is normal; the kinds are "fpv close", "fpv open", "high", "bypass" and, with 10 and 13
        rows, "bpv close" and "bpv open".
    """
    parts = _SHUTTLE.classes(
        "shuttle.trn", "shuttle.tst", width=9, kind_of=_SHUTTLE_KINDS, data_home=data_home
    )
    return _table(parts, _SHUTTLE_COLUMNS, as_frame=as_frame)


def load_satimage(
    *,
    data_home: Any = None,
    normal: Collection[str] = ("red soil", "grey soil", "very damp grey soil"),
    as_frame: bool = False,
) -> LabelledTable:
    """Ground seen by a satellite, in four spectral bands: frequent kinds and other ones.

    Parameters
    ----------
    data_home : path-like or None, default=None
        The folder that holds `satimage/sat.trn` and `satimage/sat.tst`, from
        https://archive.ics.uci.edu/dataset/146/statlog+landsat+satellite. Default: the variable
        EQSEP_DATA.
    normal : collection of str, default=("red soil", "grey soil", "very damp grey soil")
        The grounds that count as normal, out of these and "cotton crop", "damp grey soil" and
        "vegetation stubble". The default, the three largest classes, is that of the benchmark known
        as *satellite*.
    as_frame : bool, default=False
        Whether the rows are a pandas frame rather than an array.

    Returns
    -------
    LabelledTable
        The 6,435 rows of both files, those of sat.trn first. Every ground that is not normal is a
        kind of its own. The 36 features are the four bands of the pixel in question and of its
        eight neighbours: pixel1_band1, pixel1_band2, ... from the top left to the bottom right.
    """
    grounds = sorted(_GROUND.values())
    wanted = {normal} if isinstance(normal, str) else set(normal)
    unknown = sorted(wanted.difference(grounds))
    if unknown:
        raise UserError(f"normal names unknown grounds: {unknown}. Expected some of {grounds}.")
    if not wanted:
        raise UserError(f"normal names no ground: expected at least one of {grounds}.")
    kind_of = {code: "normal" if name in wanted else name for code, name in _GROUND.items()}
    parts = _SATIMAGE.classes("sat.trn", "sat.tst", width=36, kind_of=kind_of, data_home=data_home)
    return _table(parts, _SATIMAGE_COLUMNS, as_frame=as_frame)


def _table(parts: list[Rows], columns: tuple[str, ...], *, as_frame: bool) -> LabelledTable:
    """The rows and kinds of all files, one after the other."""
    X, kind = map(np.concatenate, zip(*parts, strict=True))
    return LabelledTable(
        X=named_columns(X, columns, as_frame=as_frame), kind=kind, feature_names=columns
    )
