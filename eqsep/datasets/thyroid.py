"""Thyroid: patients by laboratory values and history, normal or of two kinds."""

from typing import Any

import numpy as np

from eqsep.datasets.home import DatasetSource
from eqsep.datasets.records import TrainTestSplit, for_protocol, named_columns, split_of

_URL = "https://archive.ics.uci.edu/dataset/102/thyroid+disease"
_SOURCE = DatasetSource(title="the thyroid data", folder="ann-thyroid", url=_URL)
THYROID_COLUMNS = (
    *("age", "sex", "on_thyroxine", "query_on_thyroxine", "on_antithyroid_medication", "sick"),
    *("pregnant", "thyroid_surgery", "i131_treatment", "query_hypothyroid", "query_hyperthyroid"),
    *("lithium", "goitre", "tumor", "hypopituitary", "psych", "tsh", "t3", "tt4", "t4u", "fti"),
)
_KIND_OF = {1: "hyperfunction", 2: "subnormal", 3: "normal"}
# Which rows of the training file are tested on.
_MOVED = {"corrected": (), "paper": ("subnormal",)}


def load_thyroid(
    *, data_home: Any = None, protocol: str = "corrected", as_frame: bool = False
) -> TrainTestSplit:
    """Thyroid patients: normal ones and hyperfunction to learn from, subnormal ones to find.

    Parameters
    ----------
    data_home : path-like or None, default=None
        The folder that holds `ann-thyroid/ann-train.data` and `ann-thyroid/ann-test.data`, from
        https://archive.ics.uci.edu/dataset/102/thyroid+disease. Default: the variable EQSEP_DATA.
    protocol : {"corrected", "paper"}, default="corrected"
        "corrected": the test rows are those of ann-test, as they were published. "paper": the
        subnormal rows of ann-train are tested on as well, behind those of ann-test.
    as_frame : bool, default=False
        Whether the rows are pandas frames with named columns rather than arrays.

    Returns
    -------
    TrainTestSplit
        With the kinds "normal", "hyperfunction" and "subnormal", the last in the test only, and 21
        features, not scaled. The rows are in the order of the files.

    Notes
    -----
    Moving rows that are never learnt leaks nothing, but doubles the unseen kind, and average
    precision grows with the share of a kind: compare figures of one protocol only.
    """
    moved_kinds = for_protocol(protocol, _MOVED)
    (X_train, kind_train), (X_test, kind_test) = _SOURCE.classes(
        "ann-train.data", "ann-test.data", width=21, kind_of=_KIND_OF, data_home=data_home
    )
    moved, used = np.isin(kind_train, moved_kinds), kind_train != "subnormal"
    X_test = np.concatenate([X_test, X_train[moved]])
    kind_test = np.concatenate([kind_test, kind_train[moved]])
    X_train, X_test = (
        named_columns(X, THYROID_COLUMNS, as_frame=as_frame) for X in (X_train[used], X_test)
    )
    return split_of((X_train, kind_train[used]), (X_test, kind_test), THYROID_COLUMNS)
