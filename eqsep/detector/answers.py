"""Labels as a detector takes them: normal, a kind of anomaly, or missing."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from eqsep.arrays import to_numpy
from eqsep.errors import UserError
from eqsep.labels import Labels, column, is_missing, listed, read_labels
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

    def of_no_row(self) -> "Answers":
        """How labels are read, and the kinds, without the rows."""
        return replace(self, code=self.code[:0])

    def joined(self, other: "Answers") -> "Answers":
        """The kinds of both, and the reading of labels that knows more of them; no rows."""
        kinds = tuple(dict.fromkeys((*self.kinds, *other.kinds)))
        labels, others = self.labels, other.labels
        if labels is None or (others is not None and len(others.kinds) > len(labels.kinds)):
            labels = others
        return Answers(self.code[:0], kinds, labels)


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
    distinct, place = coded(y, n_rows)
    if len(place) != n_rows:
        raise UserError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y "
            f"has {len(place)} labels. Pass one label a row, None where it is not known."
        )
    if not len(distinct):
        return Answers(np.full(n_rows, UNLABELLED), kinds, labels)
    given = column(distinct)
    if labels is None:
        some_missing = bool((place == UNLABELLED).any())
        labels = _first_labels(given, normal=normal, some_missing=some_missing)
    labels = labels.including(given)
    names = np.where(labels.encode(given) == 1, _names(given, labels), "").tolist()
    new = [name for name in dict.fromkeys(names) if name not in ("", *kinds)]
    _check_words(new)
    kinds = (*kinds, *new)
    code = [("", *kinds).index(name) for name in names]
    return Answers(np.array([*code, UNLABELLED])[place], kinds, labels)


def _check_words(kinds: list[str]) -> None:
    """Refuse a kind whose name is what `predict_kind` says of other rows."""
    for word, rows in (("normal", "rows that pass"), ("unseen", "alarms like no seen kind")):
        if word in kinds:
            raise UserError(
                f"y has a kind of anomaly called {word!r}, which is what predict_kind says of "
                f"{rows}. Rename that kind."
            )


def _names(given: np.ndarray, labels: Labels) -> np.ndarray:
    """What each label is called as a kind: its own name, or "anomaly" for a number."""
    return given.astype(str) if labels.by_name else np.full(len(given), "anomaly")


def _first_labels(given: np.ndarray, *, normal: Any, some_missing: bool) -> Labels:
    """How labels are read. Beside missing ones no name need be the normal one."""
    if some_missing and given.dtype.kind in "US":
        given = np.append(given, "normal" if normal is None else normal)
    return read_labels(given, normal=normal, one_class=True)


def coded(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels, in the order in which they come, and the place of each row's label.

    The place of a missing label is `UNLABELLED`: None, NaN, pandas' NA, or an empty name.

    Examples
    --------
    >>> coded(["smurf", None, "normal", "smurf"], 4)
    (array(['smurf', 'normal'], dtype='<U6'), array([ 0, -1,  1,  0]))
    """
    if y is None:
        return np.empty(0), np.full(n_rows, UNLABELLED)
    if hasattr(y, "dictionary_encode"):  # pyarrow
        return _arrow_coded(y)
    y = _array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if y.ndim != 1:
        raise UserError(
            f"y should be a 1d array with one label a row, got an array of shape {y.shape} "
            f"instead. Pass one column of labels."
        )
    if y.dtype.kind == "O":
        places: dict[Any, int] = {}
        place = np.array([places.setdefault(label, len(places)) for label in y], dtype=int)
        return _without_missing(objects(places), place)
    distinct, first, place = np.unique(y, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return _without_missing(distinct[order], np.argsort(order)[place])


def labels_of(y: Any, n_rows: int) -> np.ndarray:
    """The labels of `n_rows` rows as objects, None where one is missing."""
    distinct, place = coded(y, n_rows)
    return objects([*distinct.tolist(), None])[place]


def _arrow_coded(y: Any) -> tuple[np.ndarray, np.ndarray]:
    if hasattr(y, "combine_chunks"):
        y = y.combine_chunks()
    if not hasattr(y, "dictionary"):
        y = y.dictionary_encode()
    place = y.indices.fill_null(UNLABELLED).to_numpy(zero_copy_only=False).astype(int)
    return _without_missing(objects(y.dictionary.to_pylist()), place)


def _without_missing(labels: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels that say something, in their own type; the places of the others are one."""
    known = [label for label in labels.tolist() if not is_missing(label)]
    kept = np.array([not is_missing(label) for label in labels.tolist()], dtype=bool)
    values = labels[kept] if labels.dtype.kind != "O" else np.array(known)
    if any(isinstance(label, str) for label in known):
        values = np.array([str(label) for label in known])
    new = np.append(np.where(kept, np.cumsum(kept) - 1, UNLABELLED), UNLABELLED)
    return values, new[place]


def _array(y: Any) -> np.ndarray:
    """Labels of any library as an array; in a list, what is missing stays so beside names."""
    array = to_numpy(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if isinstance(y, list | tuple) and array.dtype.kind in "US" and array.ndim == 1:
        return objects(y)
    return array


def check_answers(answers: Answers, counts: np.ndarray, *, normal: Any, given: bool) -> None:
    """Refuse the labels of a first fit where no row stands for the normal ones, or none says.

    Labels that are `given`, and all of them missing, are more often a mistake than a choice. So are
    labels of which none is normal, where the rows without one, which would have to be, are few, or
    a kind is called as the normal rows are but for case and blanks.

    Parameters
    ----------
    counts : ndarray of shape (n,)
        How many rows each of the answers stands for.
    """
    if given and answers.labels is None:
        told = "y holds no label: all of them are missing (None, NaN)."
        rest = "to learn all rows as normal ones, or check where the labels were lost."
        raise UserError(f"{told} Pass y=None {rest}", command=f"{told} Leave out --label {rest}")
    unlabelled, labelled = (int(counts[answers.code == UNLABELLED].sum()), int(counts.sum()))
    labelled -= unlabelled
    if (answers.code == 0).any() or not labelled:
        return
    wanted = "0, False or 'normal'" if normal is None else repr(normal)
    found = f"every label ({listed(np.array(answers.kinds))}) is a kind of anomaly"
    if not unlabelled:
        raise _normal_unsaid(
            f"Normal rows are needed, got one class only: {found}, and none is {wanted}.",
            "add rows that are normal or without a label.",
        )
    alike = {kind.strip().casefold() for kind in answers.kinds}
    if labelled >= unlabelled or str(normal).strip().casefold() in alike:
        raise _normal_unsaid(
            f"No label is {wanted}: {found}, of {labelled:,} rows, and {unlabelled:,} rows have "
            f"none.",
            "add rows without a label, if these are to be the normal ones.",
        )


def _normal_unsaid(told: str, other: str) -> UserError:
    """The error where no label is the normal one, and what else can be done about it."""
    wanted = f"{told} Say which label is normal:"
    return UserError(
        f"{wanted} normal=..., or {other}", command=f"{wanted} --normal LABEL, or {other}"
    )
