"""Labels as a detector takes them: normal, a kind of anomaly, or missing."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from eqsep.arrays import to_numpy
from eqsep.labels import Labels, column, listed, read_labels
from eqsep.tables.column import objects

UNLABELLED = -1


@dataclass(frozen=True)
class Answers:
    """What is known of each row.

    Attributes
    ----------
    code : ndarray of int of shape (n_rows,)
        0 where a row is normal, the place in `kinds` plus one where it is of that kind, and
        `UNLABELLED` where nothing is known.
    kinds : tuple of str
        The kinds of anomaly, in the order in which they were first seen.
    labels : Labels or None
        How labels are read from here on; None while no label was ever given.
    """

    code: np.ndarray
    kinds: tuple[str, ...]
    labels: Labels | None

    @property
    def is_anomaly(self) -> np.ndarray:
        """1.0 where a row is of a known kind."""
        return (self.code > 0).astype(float)

    def trusting_unlabelled(self) -> "Answers":
        """The same with rows without a label as normal ones."""
        return replace(self, code=np.where(self.code == UNLABELLED, 0, self.code))


def read_answers(y: Any, *, n_rows: int, normal: Any, known: "Answers | None" = None) -> Answers:
    """The labels `y` of `n_rows` rows; None, or a missing one, says that nothing is known.

    Parameters
    ----------
    normal : label or None
        Which label is normal; None means 0, False or "normal", whichever occurs.
    known : Answers or None
        What earlier labels were: later ones are read the same way, and may name more kinds.

    Examples
    --------
    >>> answers = read_answers(["normal", None, "smurf"], n_rows=3, normal=None)
    >>> answers.code.tolist(), answers.kinds
    ([0, -1, 1], ('smurf',))
    """
    labels = known.labels if known else None
    kinds = known.kinds if known else ()
    y, missing = _missing(y, n_rows)
    if len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y "
            f"has {len(y)} labels. Pass one label a row, None where it is not known."
        )
    code = np.full(n_rows, UNLABELLED)
    if missing.all():
        return Answers(code, kinds, labels)
    given = column(y[~missing])
    if labels is None:
        labels = _first_labels(given, normal=normal, some_missing=bool(missing.any()))
    labels = labels.including(given)
    names = np.where(labels.encode(given) == 1, _names(given, labels), "")
    kinds = (*kinds, *(name for name in dict.fromkeys(names.tolist()) if name not in ("", *kinds)))
    place = {name: i for i, name in enumerate(("", *kinds))}
    code[~missing] = [place[name] for name in names.tolist()]
    return Answers(code, kinds, labels)


def _names(given: np.ndarray, labels: Labels) -> np.ndarray:
    """What each label is called as a kind: its own name, or "anomaly" for a number."""
    return given.astype(str) if labels.by_name else np.full(len(given), "anomaly")


def _first_labels(given: np.ndarray, *, normal: Any, some_missing: bool) -> Labels:
    """How labels are read. Beside missing ones no name need be the normal one."""
    if some_missing and given.dtype.kind in "US":
        given = np.append(given, "normal" if normal is None else normal)
    return read_labels(given, normal=normal, one_class=True)


def _missing(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The labels as an array, and which of them are missing."""
    if y is None:
        return np.full(n_rows, None), np.ones(n_rows, dtype=bool)
    y = _array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if y.ndim != 1:
        raise ValueError(
            f"y should be a 1d array with one label a row, got an array of shape {y.shape} "
            f"instead. Pass one column of labels."
        )
    if y.dtype.kind == "f":
        return y, np.isnan(y)
    if y.dtype.kind in "US":
        return y, y == ""
    if y.dtype.kind != "O":
        return y, np.zeros(len(y), dtype=bool)
    missing = np.fromiter((is_missing(label) for label in y), bool, len(y))
    if missing.all() or any(isinstance(label, str) for label in y):
        return y, missing
    known = np.array(y[~missing].tolist())  # numbers and truth values in their own type
    values = np.zeros(len(y), dtype=known.dtype)
    values[~missing] = known
    return values, missing


def _array(y: Any) -> np.ndarray:
    """Labels of any library as an array; in a list, what is missing stays so beside names."""
    if hasattr(y, "to_pylist"):  # pyarrow
        y = y.to_pylist()
    array = to_numpy(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if isinstance(y, list | tuple) and array.dtype.kind in "US" and array.ndim == 1:
        return objects(y)
    return array


def is_missing(label: Any) -> bool:
    """Whether a label says nothing: None, NaN, pandas' NA, or an empty name."""
    return label is None or type(label).__name__ == "NAType" or label != label or label == ""


def check_answers(answers: Answers, *, normal: Any, given: bool) -> None:
    """Refuse the labels of a first fit where no row stands for the normal ones, or none says.

    Labels that are `given`, and all of them missing, are more often a mistake than a choice.
    """
    if given and answers.labels is None:
        raise ValueError(
            "y holds no label: all of them are missing (None, NaN). Pass y=None to learn all rows "
            "as normal ones, or check where the labels were lost."
        )
    if (answers.code <= 0).any():
        return
    wanted = "0, False or 'normal'" if normal is None else repr(normal)
    found = listed(np.array(answers.kinds))
    raise ValueError(
        f"Normal rows are needed, got one class only: every label ({found}) is a kind of anomaly, "
        f"and none is {wanted}. Say which label is normal: normal=..., or add rows that are normal "
        f"or without a label."
    )
