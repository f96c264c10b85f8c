"""The records of data sets: a `TrainTestSplit`, or a `LabelledTable` that is not divided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

import numpy as np

from eqsep.errors import MissingExtraError, UserError

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabelledTable:
    """Rows with the kind of each row, to be divided by the caller.

    Attributes
    ----------
    X : array or frame of shape (n_rows, n_features)
    kind : ndarray of str
        "normal", or the name of the row's kind of anomaly.
    y : ndarray of int
        1 where the row is anomalous, 0 where it is normal.
    feature_names : tuple of str
    groups : ndarray or None
        Where rows belong together, as those of one run of a process do: the group of each row.
    time : ndarray or None
        Where rows follow each other in time: the time of each row in its group.

    Examples
    --------
    >>> LabelledTable(X=[[0.0], [9.0]], kind=["normal", "scan"], feature_names=["load"])
    LabelledTable(1 feature; 1 normal, 1 scan)
    """

    X: Any
    kind: np.ndarray
    feature_names: tuple[str, ...]
    groups: np.ndarray | None = None
    time: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("kind", "groups", "time"):
            if getattr(self, name) is not None:
                _keep_as_array(self, name.removesuffix("s"), rows="X", values=name)
        object.__setattr__(self, "feature_names", tuple(self.feature_names))

    @property
    def y(self) -> np.ndarray:
        return (self.kind != "normal").astype(int)

    def __repr__(self) -> str:
        return f"LabelledTable({_in_words(self.feature_names)}; {_kinds_in_words(self.kind)})"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TrainTestSplit:
    """Training and test rows with the kind of each row.

    Attributes
    ----------
    X_train, X_test : array or frame of shape (n_rows, n_features)
    kind_train, kind_test, y_train, y_test, feature_names
        As in `LabelledTable`.

    Examples
    --------
    >>> split = TrainTestSplit(
    ...     X_train=[[0.0], [9.0]], kind_train=["normal", "scan"],
    ...     X_test=[[0.1], [-9.0]], kind_test=["normal", "flood"], feature_names=["load"],
    ... )
    >>> split
    TrainTestSplit(1 feature; train: 1 normal, 1 scan; test: 1 flood, 1 normal)
    """

    X_train: Any
    kind_train: np.ndarray
    X_test: Any
    kind_test: np.ndarray
    feature_names: tuple[str, ...]

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            _keep_as_array(self, "kind", rows=f"X_{part}", values=f"kind_{part}")
        object.__setattr__(self, "feature_names", tuple(self.feature_names))

    @property
    def y_train(self) -> np.ndarray:
        return (self.kind_train != "normal").astype(int)

    @property
    def y_test(self) -> np.ndarray:
        return (self.kind_test != "normal").astype(int)

    def __repr__(self) -> str:
        train, test = _kinds_in_words(self.kind_train), _kinds_in_words(self.kind_test)
        return f"TrainTestSplit({_in_words(self.feature_names)}; train: {train}; test: {test})"


Rows: TypeAlias = tuple[Any, np.ndarray]  # with the kind of each row


def split_of(train: Rows, test: Rows, feature_names: tuple[str, ...]) -> TrainTestSplit:
    """The split into these rows and kinds."""
    (X, kind), (X_test, kind_test) = train, test
    kinds = {"kind_train": kind, "kind_test": kind_test}
    return TrainTestSplit(X_train=X, X_test=X_test, **kinds, feature_names=feature_names)


def numbered(letter: str, X: np.ndarray) -> tuple[str, ...]:
    """A name for each column of `X`: the letter and a number, from 1."""
    return tuple(f"{letter}{i + 1}" for i in range(X.shape[1]))


def for_protocol(protocol: str, choices: Mapping[str, T]) -> T:
    """What `choices` holds for `protocol`; an unknown protocol is an error."""
    if protocol not in choices:
        raise UserError(
            f"Unknown protocol {protocol!r}: expected one of {sorted(choices)}. Take 'corrected', "
            f"or 'paper' to repeat what produced the published numbers."
        )
    return choices[protocol]


def frame_of(columns: Mapping[str, np.ndarray]) -> Any:
    """The columns as a pandas frame; words become Python strings."""
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        how = "pip install pandas, or take arrays with as_frame=False"
        raise MissingExtraError(f"as_frame=True needs pandas: {how}.") from error
    texts = {name: c.astype(object) for name, c in columns.items() if c.dtype.kind == "U"}
    return pandas.DataFrame({**columns, **texts})


def named_columns(X: np.ndarray, names: Sequence[str], *, as_frame: bool) -> Any:
    """`X` as it is, or as a frame with these column names."""
    return frame_of(dict(zip(names, X.T, strict=True))) if as_frame else X


def _keep_as_array(record: Any, noun: str, *, rows: str, values: str) -> None:
    """Make the values of a frozen record an array, if there is one for each row."""
    n_rows, array = len(getattr(record, rows)), np.asarray(getattr(record, values))
    if n_rows != len(array):
        raise UserError(
            f"{type(record).__name__} expects one {noun} for each row: {rows} has {n_rows} rows, "
            f"{values} has {len(array)}. Pass the {noun}s of these rows."
        )
    object.__setattr__(record, values, array)


def _in_words(names: tuple[str, ...]) -> str:
    return f"{len(names)} feature{'s' * (len(names) != 1)}"


def _kinds_in_words(kind: np.ndarray) -> str:
    names, numbers = np.unique(kind, return_counts=True)
    return ", ".join(f"{n} {name}" for name, n in zip(names, numbers, strict=True))
