"""Golden model files: what was asked of each model when it was saved, and what it answered.

`tests/golden/FORMAT/` holds files of that format, and `answers.json`: rows, labels and answers,
numbers by their bytes. `tools/golden.py` writes the folder of the present format.
"""

import json
import warnings
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from threadpoolctl import threadpool_info

from eqsep import Detector

FOLDER = Path(__file__).parent / "golden"
ASKED = ("score_samples", "decision_function", "distance", "p_value", "predict", "predict_kind")


def written(array):
    """An array as JSON: text as it is, numbers by their bytes."""
    array = np.asarray(array)
    if array.dtype.kind in "OU":
        return {"text": array.tolist()}
    little = array.astype(array.dtype.newbyteorder("<"))
    return {"dtype": little.dtype.str, "shape": array.shape, "hex": little.tobytes().hex()}


def read(entry):
    """The array that `written` has written."""
    if "text" in entry:
        return np.array(entry["text"], dtype=object)
    flat = np.frombuffer(bytes.fromhex(entry["hex"]), dtype=entry["dtype"])
    return flat.reshape(entry["shape"])


def written_rows(rows):
    """Rows as JSON: an array, or a table by its columns."""
    if isinstance(rows, np.ndarray):
        return written(rows)
    return {"columns": {name: _written_column(column) for name, column in rows.items()}}


def _written_column(column):
    if column.dtype.kind in "mM":
        return {"time": column.dtype.str.lstrip("<"), **written(column.to_numpy().view(np.int64))}
    if column.dtype.kind in "biuf":
        return written(column.to_numpy())
    return {"text": [None if pd.isna(value) else value for value in column]}


def read_rows(entry):
    """The array or table that `written_rows` has written."""
    if "columns" not in entry:
        return read(entry)
    columns = entry["columns"]
    return pd.DataFrame(
        {name: read(c).view(c["time"]) if "time" in c else read(c) for name, c in columns.items()}
    )


def answers(model, rows):
    """All that a model says of rows, by the name of the method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns in which many values are new
        return {name: getattr(model, name)(rows) for name in ASKED if hasattr(model, name)}


def learn_on(model, rows, labels):
    """The model after rows that it learnt, merged and forgot."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows promise little
        if isinstance(model, Detector):
            other = clone(model).set_params(plan=model.plan_).fit(rows, labels)
            return model.partial_fit(rows, labels).merge(other).forget(rows, labels)
        n = len(rows) // 2
        return model.partial_fit(rows, labels).forget(rows[:n], labels[:n])


@cache
def surroundings():
    """What the last bits of a sum depend on: the processor, and those who add."""
    packages = ("numpy", "scipy", "scikit-learn", "numba", "torch")
    return {
        "processor": sorted({i["architecture"] for i in threadpool_info() if "architecture" in i}),
        "packages": {name: version(name) for name in packages},
    }


@cache
def golden(folder):
    """What `answers.json` in the folder says."""
    return json.loads((folder / "answers.json").read_text(encoding="utf-8"))
