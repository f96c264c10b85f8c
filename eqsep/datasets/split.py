"""The record of a data set divided into training and test, and the look-up of a protocol."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from eqsep.datasets.table import kinds_in_words, one_a_row, width_in_words
from eqsep.errors import UserError

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
            kind = one_a_row(self, "kind", rows=f"X_{part}", values=f"kind_{part}")
            object.__setattr__(self, f"kind_{part}", kind)
        object.__setattr__(self, "feature_names", tuple(self.feature_names))

    @property
    def y_train(self) -> np.ndarray:
        return (self.kind_train != "normal").astype(int)

    @property
    def y_test(self) -> np.ndarray:
        return (self.kind_test != "normal").astype(int)

    def __repr__(self) -> str:
        return (
            f"Split({width_in_words(self.feature_names)}; "
            f"train: {kinds_in_words(self.kind_train)}; test: {kinds_in_words(self.kind_test)})"
        )


def for_protocol(protocol: str, choices: Mapping[str, T]) -> T:
    """What `choices` holds for `protocol`; an unknown protocol is an error.

    Examples
    --------
    >>> for_protocol("paper", {"corrected": 2.0, "paper": 4.0})
    4.0
    """
    if protocol not in choices:
        raise UserError(
            f"Unknown protocol {protocol!r}: expected one of {sorted(choices)}. Take 'corrected', "
            f"or 'paper' to repeat what produced the published numbers."
        )
    return choices[protocol]
