"""Named columns as a pandas frame, for those who ask for one."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from eqsep.errors import MissingExtraError


def frame_of(columns: Mapping[str, np.ndarray]) -> Any:
    """The columns as a pandas frame; words become Python strings.

    Examples
    --------
    >>> frame_of({"speed": np.array([1.5, 2.0]), "type": np.array(["L", "M"])}).shape
    (2, 2)
    """
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise MissingExtraError(
            "as_frame=True needs pandas: pip install pandas, or take arrays with as_frame=False."
        ) from error
    return pandas.DataFrame(
        {
            name: column.astype(object) if column.dtype.kind == "U" else column
            for name, column in columns.items()
        }
    )


def named_columns(X: np.ndarray, names: Sequence[str], *, as_frame: bool) -> Any:
    """`X` as it is, or as a frame with these column names.

    Examples
    --------
    >>> named_columns(np.zeros((2, 1)), ["speed"], as_frame=True).columns.tolist()
    ['speed']
    """
    return frame_of(dict(zip(names, X.T, strict=True))) if as_frame else X
