"""Labels: which one is normal. Whatever the classes are called, 1 is the anomaly from here on."""

import re
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, Self

import numpy as np

from eqsep.arrays import objects, to_numpy
from eqsep.errors import EqsepWarning, ParameterError, UserError, quoted, warn
from eqsep.schemas import NONE, TEXTS, check_parts, damaged, either, kept

UNLABELLED = -1  # the code of a row without a label
NORMAL = "normal"  # the default name of normal rows
WITHOUT = "without a label"  # the name under which unlabelled rows are counted
UNSEEN, OR = "unseen", " or "  # the name of alarms like no seen kind; between several names
TRUTHS = ("0", "1", "false", "true")  # as texts: not names of kinds


def natural_order(label: str) -> tuple[tuple[bool, float, str], ...]:
    """The key by which labels are listed: numbers in them by their value.

    >>> sorted(["10", "2", "1", "dos 10", "dos 9"], key=natural_order)
    ['1', '2', '10', 'dos 9', 'dos 10']
    """
    parts = re.split(r"(\d+)", label)
    return tuple((not p.isdigit(), float(p) if p.isdigit() else 0.0, p) for p in parts if p)


USUAL_NORMAL = (NORMAL, 0)  # the labels of normal rows by default; False is 0 too


class GuessedLabelWarning(EqsepWarning):
    """Nothing said which of two labels is the normal one."""


@dataclass(frozen=True)
class Labels:
    """The two classes of a fit: the normal label, and what counts as anomalous.

    `classes` are the normal and the anomalous label, which `predict` returns; several kinds share
    the name "anomaly". `kinds` are the labels that count as anomalous: none if labels are numbers
    and only the normal one has been seen. The first other one will be it, and until then `classes`
    holds 1 (or 0, if 1 is normal).
    """

    classes: np.ndarray
    kinds: np.ndarray
    by_name: bool  # the normal class was known by its name: any other name is an anomaly

    def encode(self, y: Any) -> np.ndarray:
        """1.0 where `y` is anomalous, 0.0 where it is normal; an unknown label is an error."""
        y = column(y)
        if self.by_name and y.dtype.kind not in "US":
            raise UserError(
                f"Labels were names with {self.classes[0]!s} among them, and are now numbers "
                f"({listed(y)}), which no name stands for. Pass names again, "
                f"{str(self.classes[0])!r} for normal rows."
            )
        is_normal = y == self.classes[0]
        unknown = ~is_normal & ~np.isin(y, self.kinds)
        if unknown.any() and not self.by_name:
            anomalous = f" or {listed(self.kinds)} (anomalous)" if len(self.kinds) else ""
            raise UserError(
                f"Unknown labels {listed(y[unknown])}: expected {self.classes[0]} (normal)"
                f"{anomalous}. Correct them, or fit again with them."
            )
        return 1.0 - is_normal

    def including(self, kinds: Any) -> "Labels":
        """The same with more kinds among the anomalous: names, or the number not yet known."""
        if not len(kinds):
            return self
        kinds = column(kinds)
        others = np.unique(kinds[kinds != self.classes[0]])
        if not self.by_name and not len(self.kinds) and len(others) == 1:
            return _labels(others, self.classes[0], by_name=False)
        self.encode(kinds)
        if not self.by_name:
            return self
        return _labels(np.union1d(self.kinds, kinds), self.classes[0], by_name=True)


def may_be_normal(label: Any, *, normal: Any) -> bool:
    """Whether a row with this label, or None, may be normal, before all labels have been seen.

    >>> [may_be_normal(label, normal=None) for label in ("normal", False, None, "smurf", 1)]
    [True, True, True, False, False]
    >>> may_be_normal("normal", normal="good")
    False
    """
    return label is None or label in (USUAL_NORMAL if normal is None else (normal,))


def column(y: Any) -> np.ndarray:
    """`y` as a one-dimensional array of labels, none of them missing."""
    from sklearn.utils.multiclass import check_classification_targets  # slow
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise UserError("requires y to be passed, but the target y is None")
    y = column_or_1d(to_numpy(y), warn=True)
    if y.dtype.kind == "O" and any(label is None or label != label for label in y):
        raise UserError("y has missing labels: expected one a row. Drop the unlabelled rows.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise UserError("y contains NaN or infinity: expected one label a row. Drop those rows.")
    if y.dtype.kind == "O" and any(isinstance(label, str) for label in y):
        y = y.astype(str)
    if y.dtype.kind not in "US":  # names are never measurements, however many there are
        check_classification_targets(y)
    return y


def listed(labels: np.ndarray) -> str:
    """The distinct labels as text for a message, at most eight of them."""
    names = [str(label) for label in np.unique(labels)]
    return ", ".join(names[:8]) + (f", … ({len(names)} in all)" if len(names) > 8 else "")


def read_labels(y: Any, *, normal: Any = None, one_class: bool = False) -> Labels:
    """Which label of `y` is normal, and which labels are anomalous.

    `normal=None` means 0, False or "normal", whichever occurs. If none does, two labels are taken
    in sorted order, as scikit-learn does, with a warning; more are an error. `one_class=True` lets
    one of the two classes be absent, if the label is 0, 1 or a name, or `normal` is given.

    >>> read_labels([0, 1, 1]).classes
    array([0, 1])
    >>> read_labels(["smurf", "normal", "neptune"]).classes
    array(['normal', 'anomaly'], dtype='<U7')
    >>> read_labels(["bad", "good"], normal="good").classes
    array(['good', 'bad'], dtype='<U4')
    """
    labels = np.unique(column(y))
    named = labels.dtype.kind in "US"
    if one_class and len(labels) == 1:
        return _from_one(labels[0], named=named, normal=normal)
    if len(labels) < 2:
        raise UserError(
            f"normal and anomalous rows are needed: expected at least 2 classes in y, got "
            f"{len(labels)} class ({listed(labels)}). Add labelled rows of the other class."
        )
    known = _normal_of(labels, named=named, normal=normal)
    if len(labels) > 2 and (known is None or not named):
        from sklearn.utils.multiclass import type_of_target

        example = str(labels[0] if known is None else known)
        hint = f"Say which of these names is the normal one: normal={example!r}, for example."
        if not named:
            hint = (
                f"Several kinds of anomaly go by names, not numbers: pass y.astype(str) with "
                f"normal={example!r}, for example, or label normal rows 0 and all others 1."
            )
        raise UserError(
            f"Only binary classification is supported. The type of the target is "
            f"{type_of_target(labels)}: there are {len(labels)} labels ({listed(labels)}).",
            hint=hint,
            topic="many_names" if named else "many_numbers",
            label=example,
        )
    if known is None:
        other = labels[1].item()
        warn(
            GuessedLabelWarning(
                f"Neither of the labels {listed(labels)} is 0 or 'normal': {labels[0]} was taken "
                f"as normal because it sorts first.",
                hint=f"Say which one is: normal={other!r}, for example.",
                label=other,
            )
        )
    return _labels(labels, labels[0] if known is None else known, by_name=known is not None)


def _normal_of(labels: np.ndarray, *, named: bool, normal: Any) -> Any:
    """The normal one of `labels`, or None if that is not known."""
    if normal is not None:
        if normal not in labels.tolist():
            raise ParameterError(
                "normal", expected=f"one of the labels ({listed(labels)})", got=normal
            )
        return normal
    usual = NORMAL if named else 0
    return usual if usual in labels.tolist() else None


def _labels(labels: np.ndarray, known: Any, *, by_name: bool) -> Labels:
    kinds = labels[labels != known]
    if len(kinds) == 1:
        dtype = None if labels.dtype.kind == "U" else labels.dtype  # a longer name is not cut
        classes = np.array([known, kinds[0]], dtype=dtype)
    else:
        classes = np.array([known, "anomaly"])
    return Labels(classes, kinds, by_name and labels.dtype.kind in "US")


def _from_one(label: Any, *, named: bool, normal: Any) -> Labels:
    """The classes if only one label has been seen, and its meaning is known."""
    if named:
        known = NORMAL if normal is None else normal
        return _labels(np.array([label]), known, by_name=True)
    if normal is None and label in (0, 1):
        return _labels(np.array([0, 1], dtype=label.dtype), 0, by_name=False)
    if isinstance(normal, Number | np.bool_):
        if label != normal:
            return _labels(np.array([normal, label]), normal, by_name=False)
        classes = np.array([label, label != 1], dtype=label.dtype)
        return Labels(classes, classes[:0], by_name=False)
    raise UserError(
        f"Only the label {label} occurs, so its meaning is open: expected 0 / 1 or names of kinds.",
        hint=f"Say which label is normal: normal={label.item()!r}, if these rows are.",
        topic="one_label",
        label=label.item(),
    )


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, pandas' NA, or an empty name."""
    return label is None or type(label).__name__ == "NAType" or label != label or label == ""


@dataclass(frozen=True)
class RowLabels:
    """What is known of each row."""

    code: np.ndarray  # 0 if normal, the place in `kinds` plus one, or `UNLABELLED`
    kinds: tuple[str, ...]  # of anomaly, in the order in which they were first seen
    labels: Labels | None  # how labels are read from here on; None before the first label

    @property
    def is_anomaly(self) -> np.ndarray:
        """1.0 where a row is of a known kind."""
        return (self.code > 0).astype(float)

    def trusting_unlabelled(self) -> "RowLabels":
        """The same with unlabelled rows as normal ones."""
        return replace(self, code=np.where(self.code == UNLABELLED, 0, self.code))

    def of_no_row(self) -> "RowLabels":
        """How labels are read, and the kinds, without the rows."""
        return replace(self, code=self.code[:0])

    def joined(self, other: "RowLabels") -> "RowLabels":
        """The kinds of both, and the reading of labels that knows more of them; no rows."""
        kinds = tuple(dict.fromkeys((*self.kinds, *other.kinds)))
        labels, others = self.labels, other.labels
        if labels is None or (others is not None and len(others.kinds) > len(labels.kinds)):
            labels = others
        return RowLabels(self.code[:0], kinds, labels)

    def state(self) -> dict[str, Any]:
        """The parts of a model file: how labels are read, without rows."""
        return {"kinds": list(self.kinds), "labels": self.labels}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The reading of these parts."""
        schemas = {"kinds": TEXTS, "labels": either(NONE, kept(Labels))}
        check_parts(state, schemas, "RowLabels")
        kinds, labels = state["kinds"], state["labels"]
        if "" in kinds or (kinds and labels is None):
            damaged("its kinds of anomaly have no name, or no normal class with them")
        named = labels is not None and labels.by_name
        if named and {labels.classes.dtype.kind, labels.kinds.dtype.kind} != {"U"}:
            damaged("its labels are said to be names, and are numbers")
        return cls(np.empty(0, dtype=int), tuple(kinds), labels)


def read_row_labels(
    y: Any, *, n_rows: int, normal: Any, known: "RowLabels | None" = None
) -> RowLabels:
    """The labels `y` of `n_rows` rows, which may be missing, or None for all rows.

    `normal` is that of `read_labels`. They are read as the `known` ones of earlier rows were, and
    may name more kinds.

    >>> labels = read_row_labels(["normal", None, "smurf"], n_rows=3, normal=None)
    >>> labels.code.tolist(), labels.kinds
    ([0, -1, 1], ('smurf',))
    """
    labels = known.labels if known else None
    kinds = known.kinds if known else ()
    distinct, place = label_codes(y, n_rows)
    if len(place) != n_rows:
        raise UserError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y "
            f"has {len(place)} labels. Pass one label a row, None where it is not known."
        )
    if not len(distinct):
        return RowLabels(np.full(n_rows, UNLABELLED), kinds, labels)
    given = column(distinct)
    if labels is None:
        first = given
        some_missing = known is not None or bool((place == UNLABELLED).any())
        if some_missing and given.dtype.kind in "US":  # none need be the normal one
            first = np.append(given, NORMAL if normal is None else normal)
        labels = read_labels(first, normal=normal, one_class=True)
    labels = labels.including(given)
    own = given.astype(str) if labels.by_name else "anomaly"
    names = np.where(labels.encode(given) == 1, own, "").tolist()
    new = [name for name in dict.fromkeys(names) if name not in ("", *kinds)]
    _check_words(new)
    if known and known.labels:
        _check_truths(new, kinds, normal=str(labels.classes[0]))
    kinds = (*kinds, *new)
    code = [("", *kinds).index(name) for name in names]
    return RowLabels(np.array([*code, UNLABELLED])[place], kinds, labels)


def _check_words(kinds: list[str]) -> None:
    """Refuse names that `predict_kind` returns for other rows."""
    for word, rows in (("normal", "rows that pass"), ("unseen", "alarms like no seen kind")):
        if word in kinds:
            raise UserError(
                f"A kind of anomaly is called {word!r}, which is what {rows} are called. Rename "
                f"that kind."
            )


def _check_truths(new: list[str], kinds: tuple[str, ...], *, normal: str) -> None:
    """Refuse 0 and 1 as new kinds among names: more likely they mean normal and anomalous."""
    found = [name for name in new if name.casefold() in TRUTHS]
    if found and not any(kind.casefold() in TRUTHS for kind in kinds):
        raise UserError(
            f"Labels were names, {quoted((normal, *kinds))}, and are now {quoted(found)}, which "
            f"would be new kinds of anomaly.",
            hint=f"Where 0 means normal, pass {normal!r}, and for 1 the name of a kind.",
            topic="numbers_for_names",
        )


def label_codes(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels, in the order in which they come, and the place of each row's label.

    The place of a missing label (None, NaN, pandas' NA, an empty name) is `UNLABELLED`.

    >>> label_codes(["smurf", None, "normal", "smurf"], 4)
    (array(['smurf', 'normal'], dtype='<U6'), array([ 0, -1,  1,  0]))
    """
    if y is None:
        return np.empty(0), np.full(n_rows, UNLABELLED)
    if hasattr(y, "dictionary_encode"):  # pyarrow
        return _arrow_coded(y)
    if isinstance(y, str):
        raise UserError(
            f"y must hold one label a row, got {y!r}.",
            hint=f"If that is a column of X, pass its values, X[{y!r}], and leave it out of X.",
        )
    y = _array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.utils.validation import column_or_1d  # warns

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


def label_objects(y: Any, n_rows: int) -> np.ndarray:
    """The labels of `n_rows` rows as objects, None for a missing one."""
    distinct, place = label_codes(y, n_rows)
    return objects([*distinct.tolist(), None])[place]


def _arrow_coded(y: Any) -> tuple[np.ndarray, np.ndarray]:
    y = y.combine_chunks() if hasattr(y, "combine_chunks") else y
    if not hasattr(y, "dictionary"):
        y = y.dictionary_encode()
    place = y.indices.fill_null(UNLABELLED).to_numpy(zero_copy_only=False).astype(int)
    return _without_missing(objects(y.dictionary.to_pylist()), place)


def _without_missing(labels: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels that are not missing, in their type, and the places among them."""
    kept = np.array([not is_missing(label) for label in labels.tolist()], dtype=bool)
    known = labels[kept].tolist()
    values = labels[kept] if labels.dtype.kind != "O" else np.array(known)
    if any(isinstance(label, str) for label in known):
        values = np.array([str(label) for label in known])
    new = np.append(np.where(kept, np.cumsum(kept) - 1, UNLABELLED), UNLABELLED)
    return values, new[place]


def _array(y: Any) -> np.ndarray:
    """Labels of any library as an array; in a list of names, missing ones stay missing."""
    array = to_numpy(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if isinstance(y, list | tuple) and array.dtype.kind in "US" and array.ndim == 1:
        return objects(y)
    return array
