"""The record of a data set that has kinds of anomaly but no division into training and test."""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.errors import UserError


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Table:
    """Rows with the kind of each row, to be divided by the caller.

    `leave_one_kind_out(estimator, table.X, table.kind)` divides it for every kind in turn.

    Attributes
    ----------
    X : array or frame of shape (n_rows, n_features)
        The rows.
    kind : ndarray of str
        "normal", or the name of the row's kind of anomaly.
    y : ndarray of int
        1 where the row is anomalous, 0 where it is normal. Derived from the kinds.
    feature_names : tuple of str
        The names of the columns.
    groups : ndarray or None
        Where rows belong together, as those of one run of a process do: the group of each row.
    time : ndarray or None
        Where rows follow each other in time: the time of each row in its group.

    Examples
    --------
    >>> table = Table(X=[[0.0], [9.0]], kind=["normal", "scan"], feature_names=["load"])
    >>> table
    Table(1 feature; 1 normal, 1 scan)
    >>> table.y
    array([0, 1])
    """

    X: Any
    kind: np.ndarray
    feature_names: tuple[str, ...]
    groups: np.ndarray | None = None
    time: np.ndarray | None = None

    def __post_init__(self) -> None:
        # The record is frozen: object.__setattr__ is the one way to store the arrays made of lists.
        object.__setattr__(self, "kind", one_a_row(self, "kind", rows="X", values="kind"))
        if self.groups is not None:
            object.__setattr__(self, "groups", one_a_row(self, "group", rows="X", values="groups"))
        if self.time is not None:
            object.__setattr__(self, "time", one_a_row(self, "time", rows="X", values="time"))
        object.__setattr__(self, "feature_names", tuple(self.feature_names))

    @property
    def y(self) -> np.ndarray:
        return (self.kind != "normal").astype(int)

    def __repr__(self) -> str:
        return f"Table({width_in_words(self.feature_names)}; {kinds_in_words(self.kind)})"


def one_a_row(record: Any, noun: str, *, rows: str, values: str) -> np.ndarray:
    """The kinds of a record, or whatever the noun says, as an array, if each row has one."""
    n_rows, array = len(getattr(record, rows)), np.asarray(getattr(record, values))
    if n_rows != len(array):
        raise UserError(
            f"{type(record).__name__} expects one {noun} for each row: {rows} has {n_rows} rows, "
            f"{values} has {len(array)}. Pass the {noun}s of these rows."
        )
    return array


def kinds_in_words(kind: np.ndarray) -> str:
    """The kinds with their numbers of rows.

    Examples
    --------
    >>> kinds_in_words(np.array(["scan", "normal", "normal"]))
    '2 normal, 1 scan'
    """
    names, numbers = np.unique(kind, return_counts=True)
    return ", ".join(f"{n} {name}" for name, n in zip(names, numbers, strict=True))


def width_in_words(feature_names: Sized) -> str:
    """The number of features.

    Examples
    --------
    >>> width_in_words(["load"]), width_in_words(["load", "speed"])
    ('1 feature', '2 features')
    """
    width = len(feature_names)
    return f"{width} feature{'' if width == 1 else 's'}"
