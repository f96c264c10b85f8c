"""The record that every data set is returned in, and the look-up of a protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Split:
    """Training and test rows with the kind of each row.

    Attributes
    ----------
    X_train, X_test : array or frame of shape (n_rows, n_features)
        The rows.
    kind_train, kind_test : ndarray of str
        "normal", or the name of the row's kind of anomaly.
    y_train, y_test : ndarray of int
        1 where the row is anomalous, 0 where it is normal. Derived from the kinds.
    feature_names : tuple of str
        The names of the columns.

    Examples
    --------
    >>> split = Split(
    ...     X_train=[[0.0], [9.0]], kind_train=["normal", "scan"],
    ...     X_test=[[0.1], [-9.0]], kind_test=["normal", "flood"], feature_names=["load"],
    ... )
    >>> split
    Split(1 feature; train: 1 normal, 1 scan; test: 1 flood, 1 normal)
    >>> split.y_test
    array([0, 1])
    """

    X_train: Any
    kind_train: np.ndarray
    X_test: Any
    kind_test: np.ndarray
    feature_names: tuple[str, ...]

    def __post_init__(self) -> None:
        # The record is frozen: object.__setattr__ is the one way to store the arrays made of lists.
        for part in ("train", "test"):
            rows, kind = getattr(self, f"X_{part}"), np.asarray(getattr(self, f"kind_{part}"))
            if len(rows) != len(kind):
                raise ValueError(
                    f"Split expects one kind for each row: X_{part} has {len(rows)} rows, "
                    f"kind_{part} has {len(kind)}. Pass the kinds of these rows."
                )
            object.__setattr__(self, f"kind_{part}", kind)
        object.__setattr__(self, "feature_names", tuple(self.feature_names))

    @property
    def y_train(self) -> np.ndarray:
        return (self.kind_train != "normal").astype(int)

    @property
    def y_test(self) -> np.ndarray:
        return (self.kind_test != "normal").astype(int)

    def __repr__(self) -> str:
        width = len(self.feature_names)
        features = f"{width} feature{'' if width == 1 else 's'}"
        return (
            f"Split({features}; train: {_counted(self.kind_train)}; "
            f"test: {_counted(self.kind_test)})"
        )


def for_protocol(protocol: str, choices: Mapping[str, T]) -> T:
    """What `choices` holds for `protocol`; an unknown protocol is an error.

    Examples
    --------
    >>> for_protocol("paper", {"corrected": 2.0, "paper": 4.0})
    4.0
    """
    if protocol not in choices:
        raise ValueError(
            f"Unknown protocol {protocol!r}: expected one of {sorted(choices)}. Take 'corrected', "
            f"or 'paper' to repeat what produced the published numbers."
        )
    return choices[protocol]


def _counted(kind: np.ndarray) -> str:
    """The kinds with their numbers of rows, in words."""
    names, numbers = np.unique(kind, return_counts=True)
    return ", ".join(f"{n} {name}" for name, n in zip(names, numbers, strict=True))
