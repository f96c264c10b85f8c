"""AI4I 2020: a milling machine at work, and five kinds of failure."""

from pathlib import Path
from typing import Any

import numpy as np

from eqsep.datasets.home import DatasetSource
from eqsep.datasets.records import LabelledTable, frame_of

_URL = "https://archive.ics.uci.edu/dataset/601/ai4i+2020+predictive+maintenance+dataset"
_SOURCE = DatasetSource(title="AI4I 2020", folder="ai4i2020", url=_URL)
_IDS = ("UDI", "Product ID")
_TYPE = "Type"
_TYPES = np.array(["H", "L", "M"])
_NUMERIC = (
    *("Air temperature [K]", "Process temperature [K]", "Rotational speed [rpm]"),
    *("Torque [Nm]", "Tool wear [min]"),
)
_FAILURE = "Machine failure"
_FLAGS = ("TWF", "HDF", "PWF", "OSF", "RNF")
_HEADER = (*_IDS, _TYPE, *_NUMERIC, _FAILURE, *_FLAGS)
_RECORD = np.dtype([(name, "U64" if name in (*_IDS, _TYPE) else "f8") for name in _HEADER])


def load_ai4i2020(*, data_home: Any = None, as_frame: bool = False) -> LabelledTable:
    """A milling machine's states: no failure is normal, and failures are of five kinds.

    Parameters
    ----------
    data_home : path-like or None, default=None
        The folder that holds `ai4i2020/ai4i2020.csv`, from
        https://archive.ics.uci.edu/dataset/601/ai4i+2020+predictive+maintenance+dataset. Default:
        the variable EQSEP_DATA.
    as_frame : bool, default=False
        Whether the rows are a pandas frame, rather than an array with a column of 0 and 1 for each
        of the types H, L and M.

    Returns
    -------
    LabelledTable
        10,000 rows in the order of the file. The features are the type and five measurements,
        without the numbers of row and product.

    Notes
    -----
    The kind of a row comes from its flags:

    - none of them, and no machine failure: "normal";
    - one: "TWF" (tool wear), "HDF" (heat dissipation), "PWF" (power), "OSF" (overstrain) or "RNF"
      (random failure);
    - more than one: "several", so that an unseen kind stays unseen;
    - a machine failure without any: "unassigned".

    Random failures do not depend on the features, so no detector can find them; 18 of the 19 are
    not marked as machine failures in the file.
    """
    table = _read(_SOURCE.file("ai4i2020.csv", data_home=data_home))
    names: tuple[str, ...] = (_TYPE, *_NUMERIC)
    if as_frame:
        X = frame_of({name: table[name] for name in names})
    else:
        names = (*(f"{_TYPE}={value}" for value in _TYPES), *_NUMERIC)
        numeric = [table[name][:, None] for name in _NUMERIC]
        X = np.hstack([table[_TYPE][:, None] == _TYPES, *numeric], dtype=np.float64)
    flags = np.column_stack([table[name] == 1 for name in _FLAGS])
    n_flags = flags.sum(axis=1)
    without = np.where(table[_FAILURE] == 1, "unassigned", "normal")
    one = np.array(_FLAGS)[flags.argmax(axis=1)]
    kind = np.select([n_flags == 0, n_flags == 1], [without, one], "several")
    return LabelledTable(X=X, kind=kind, feature_names=names)


def _read(path: Path) -> np.ndarray:
    """The rows as records; unknown labels and types are refused."""
    with path.open(encoding="utf-8-sig") as file:  # the file starts with a byte order mark
        header = tuple(file.readline().strip().split(","))
    if header != _HEADER:
        _SOURCE.refuse(path, f"expected the header {','.join(_HEADER)}, got {','.join(header)}")
    layout = f"{len(_HEADER)} columns separated by commas in every row"
    options: dict[str, Any] = {"delimiter": ",", "skiprows": 1, "encoding": "utf-8-sig"}
    table = _SOURCE.records(path, _RECORD, layout=layout, **options)
    known = dict.fromkeys((_FAILURE, *_FLAGS), (0.0, 1.0)) | {_TYPE: tuple(_TYPES.tolist())}
    for name, values in known.items():
        unknown = np.setdiff1d(table[name], values).tolist()
        if unknown:
            _SOURCE.refuse(path, f"{name} is one of {list(values)}, got {unknown}")
    return table
