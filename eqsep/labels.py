"""Labels: which one is normal. Whatever the classes are called, 1 is the anomaly from here on."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, Self

import numpy as np

from eqsep.arrays import objects, to_numpy
from eqsep.errors import EqsepWarning, ParameterError, UserError, counted, quoted, warn
from eqsep.schemas import NONE, TEXTS, check_parts, damaged, either, kept

UNLABELLED = -1  # the code of a row without a label
NORMAL = "normal"  # the default name of normal rows
_NORMAL_WORDS = (NORMAL, "benign", "ok", "regular", "0", "false")  # in any case
WITHOUT = "without a label"  # the name under which unlabelled rows are counted
UNSEEN, OR = "unseen", " or "  # the name of alarms like no seen kind; between several names
TRUTHS = ("0", "1", "false", "true")  # as texts: not names of kinds


def natural_order(label: str) -> tuple[tuple[bool, float, str], ...]:
    """The key by which labels are listed: numbers in them by their value."""
    parts = re.split(r"(\d+)", label)
    return tuple((not p.isdigit(), float(p) if p.isdigit() else 0.0, p) for p in parts if p)


def usual_normal(labels: Iterable[Any]) -> list[Any]:
    """Those of some labels that mean normal unless another one is named."""
    return [label for label in labels if may_be_normal(label, normal=None)]


class GuessedLabelWarning(EqsepWarning):
    """Nothing said which of two labels is the normal one: a separator took the first, sorted."""


@dataclass(frozen=True)
class LabelReader:
    """The two classes of a fit: the normal label, and what counts as anomalous."""

    classes: np.ndarray  # normal, and anomalous: "anomaly" for several kinds
    # What counts as anomalous. None as long as labels are numbers and all normal: the first other
    # one will be it, and until then `classes` holds 1, or 0 if 1 is normal.
    kinds: np.ndarray
    by_name: bool  # the normal class was known by its name: any other name is an anomaly

    @property
    def normal(self) -> Any:
        """The normal label, a whole number where labels were numbers."""
        label = self.classes[0].item()
        return int(label) if self.numbers_are_names or isinstance(label, float) else label

    @property
    def numbers_are_names(self) -> bool:
        """Whether labels were several whole numbers, whose texts name kinds."""
        labels = (self.classes[0], *self.kinds)
        return self.by_name and all(str(label).isdigit() for label in labels)

    def encode(self, y: Any) -> np.ndarray:
        """1.0 where `y` is anomalous, 0.0 where it is normal; an unknown label is an error."""
        y = self.as_names(column(y))
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

    def as_names(self, y: np.ndarray) -> np.ndarray:
        """Whole numbers as texts, if names are numbers: 0, 1, 2 where labels were 0, 1, 2."""
        return y.astype(str) if self.numbers_are_names and y.dtype.kind in "iu" else y

    def including(self, kinds: Any) -> "LabelReader":
        """The same with more kinds among the anomalous: names, or the number not yet known."""
        if not len(kinds):
            return self
        kinds = self.as_names(column(kinds))
        others = np.unique(kinds[kinds != self.classes[0]])
        if not self.by_name and not len(self.kinds) and len(others) == 1:
            return _labels(others, self.classes[0], by_name=False)
        self.encode(kinds)
        if not self.by_name:
            return self
        return _labels(np.union1d(self.kinds, kinds), self.classes[0], by_name=True)

    def renamed(self, old: str, new: str) -> "LabelReader":
        """The same with a kind under another name, which may be that of another kind."""
        if not self.by_name or self.numbers_are_names:
            raise UserError("Labels were numbers, which cannot be renamed: fit again with names.")
        kinds = np.unique(np.where(self.kinds == old, new, self.kinds))
        return _labels(kinds, self.classes[0], by_name=True)


def may_be_normal(label: Any, *, normal: Any) -> bool:
    """Whether a row with this label, or None, may be normal, before all labels have been seen."""
    if label is None or normal is not None:
        return label in (None, normal)
    word = label.strip().casefold() if isinstance(label, str) else label
    return word == 0 or word in _NORMAL_WORDS


def column(y: Any) -> np.ndarray:
    """`y` as a one-dimensional array of labels, none of them missing; whole numbers as integers."""
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
    return y.astype(np.int64) if y.dtype.kind in "iuf" else y


def listed(labels: np.ndarray) -> str:
    """The distinct labels as text for a message, at most eight of them."""
    names = [str(label) for label in np.unique(labels)]
    return ", ".join(names[:8]) + (f", … ({len(names)} in all)" if len(names) > 8 else "")


def with_counts(rows: Counter[Any]) -> str:
    """Labels and the rows with each of them, the most frequent ones first."""
    found = [f"{label!r} ({counted(n, 'row')})" for label, n in rows.most_common(8)]
    return ", ".join(found) + (f" and {len(rows) - 8:,} more" if len(rows) > 8 else "")


def read_labels(
    y: Any, *, normal: Any = None, one_class: bool = False, counts: np.ndarray | None = None
) -> LabelReader:
    """Which label of `y` is normal, and which labels are anomalous.

    `normal=None` means 0, False, or a name such as "normal" or "benign", whichever occurs. If none
    does, two labels are taken in sorted order, with a warning; more are an error. `one_class=True`
    lets a class be absent, if the label is 0, 1 or a name, or `normal` is given. For a detector,
    `y` are distinct labels, and `counts` the rows with each of them. Then nothing is taken in
    sorted order, and whole numbers may be the names of several kinds.
    """
    given = column(y)
    labels = np.unique(given)
    named = labels.dtype.kind in "US"
    if one_class and len(labels) == 1:
        return _from_one(labels[0], named=named, normal=normal)
    if len(labels) < 2:
        raise UserError(
            f"normal and anomalous rows are needed: expected at least 2 classes in y, got "
            f"{len(labels)} class ({listed(labels)}). Add labelled rows of the other class."
        )
    known = _normal_of(labels, normal=normal)
    if known is None and (named or counts is not None) and (len(labels) > 2 or counts is not None):
        raise _no_normal(given, np.ones(len(given), dtype=int) if counts is None else counts)
    if len(labels) > 2 and not named:
        if counts is not None and labels[0] >= 0:
            return _labels(labels.astype(str), str(labels[labels == known][0]), by_name=True)
        if counts is not None:
            raise UserError(
                f"There are negative numbers among {len(labels)} labels ({listed(labels)}).",
                hint="Pass None where nothing is known of a row, and 0 or a name for each kind.",
            )
        two = "" if known is None else f": y != {known}"
        raise UserError(
            f"Only binary classification is supported. The type of the target is multiclass: there "
            f"are {len(labels)} labels ({listed(labels)}).",
            hint=f"Label normal rows 0 and all others 1{two}, or pass names of kinds.",
        )
    if known is None:
        message = (
            f"Neither of the labels {listed(labels)} is 0 or 'normal': {labels[0]} was taken as "
            f"normal because it sorts first."
        )
        hint = f"Say which one is: normal={labels[1].item()!r}, for example."
        warn(GuessedLabelWarning(message, hint=hint))
    return _labels(labels, labels[0] if known is None else known, by_name=known is not None)


def _normal_of(labels: np.ndarray, *, normal: Any) -> Any:
    """The normal one of `labels`, or None if that is not known."""
    if normal is None:
        usual = usual_normal(labels.tolist())
        _check_one_normal(usual)
        return usual[0] if usual else None
    if normal not in labels.tolist():
        raise ParameterError("normal", expected=f"one of the labels ({listed(labels)})", got=normal)
    return normal


def _check_one_normal(usual: list[Any]) -> None:
    """Refuse several labels that all mean normal where none of them is named."""
    if len(usual) > 1:
        raise UserError(
            f"Several labels are names of normal rows: {quoted(usual)}.",
            hint=f"Call them by one name; or say which one is normal, normal={usual[0]!r} for "
            f"example, if the others are kinds of anomaly.",
            topic="two_normal_labels",
            label=usual[0],
        )


def _no_normal(labels: np.ndarray, counts: np.ndarray) -> UserError:
    """The error for labels none of which is known to be normal, with the rows of each."""
    found: Counter[Any] = Counter()
    for label, n in zip(labels.tolist(), counts.tolist(), strict=True):
        found[label] += int(n)
    [(most, _)] = found.most_common(1)
    return UserError(
        f"Which label is normal is not known: none is 0, False, 'normal', 'benign', 'ok' or "
        f"'regular'. The labels are {with_counts(found)}.",
        hint=f"Name the normal one: normal={most!r}, if that is it.",
        topic="which_normal",
        label=most,
    )


def _labels(labels: np.ndarray, known: Any, *, by_name: bool) -> LabelReader:
    kinds = labels[labels != known]
    if len(kinds) == 1:
        dtype = None if labels.dtype.kind == "U" else labels.dtype  # a longer name is not cut
        classes = np.array([known, kinds[0]], dtype=dtype)
    else:
        classes = np.array([known, "anomaly"])
    return LabelReader(classes, kinds, by_name and labels.dtype.kind in "US")


def _from_one(label: Any, *, named: bool, normal: Any) -> LabelReader:
    """The classes if only one label has been seen, and its meaning is known."""
    if named:
        usual = usual_normal([label.item()]) or [NORMAL]
        return _labels(np.array([label]), usual[0] if normal is None else normal, by_name=True)
    if normal is None and label in (0, 1):
        return _labels(np.array([0, 1], dtype=label.dtype), 0, by_name=False)
    if isinstance(normal, Number | np.bool_):
        if label != normal:
            return _labels(column([normal, label]), normal, by_name=False)
        classes = np.array([label, label != 1], dtype=label.dtype)
        return LabelReader(classes, classes[:0], by_name=False)
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
    reader: LabelReader | None  # how labels are read from here on; None before the first label
    trusted: np.ndarray | None = None  # the unlabelled rows that count as normal ones, if any do

    @property
    def is_unlabelled(self) -> np.ndarray:
        """Whether a row has no label, even if it counts as a normal one."""
        missing: np.ndarray = self.code == UNLABELLED
        return missing if self.trusted is None else missing | self.trusted

    @property
    def is_anomaly(self) -> np.ndarray:
        """1.0 where a row is of a known kind."""
        return (self.code > 0).astype(float)

    def trusting_unlabelled(self) -> "RowLabels":
        """The same with unlabelled rows as normal ones."""
        code = np.where(self.code == UNLABELLED, 0, self.code)
        return replace(self, code=code, trusted=self.is_unlabelled)

    def take(self, places: np.ndarray) -> "RowLabels":
        """The subset at these places."""
        trusted = None if self.trusted is None else self.trusted[places]
        return replace(self, code=self.code[places], trusted=trusted)

    def of_no_row(self) -> "RowLabels":
        """How labels are read, and the kinds, without the rows."""
        return replace(self, code=self.code[:0], trusted=None)

    def joined(self, other: "RowLabels") -> "RowLabels":
        """The kinds of both, and a reading of labels that knows all of them; no rows."""
        kinds = tuple(dict.fromkeys((*self.kinds, *other.kinds)))
        mine, theirs = self.reader, other.reader
        reader = mine if mine is not None else theirs
        if mine is not None and theirs is not None:
            reader = mine.including(theirs.kinds)
        return RowLabels(self.code[:0], kinds, reader)

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        return {"kinds": list(self.kinds), "reader": self.reader}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The reading of these parts."""
        schemas = {"kinds": TEXTS, "reader": either(NONE, kept(LabelReader))}
        check_parts(state, schemas, "RowLabels")
        kinds, reader = state["kinds"], state["reader"]
        if "" in kinds or (kinds and reader is None):
            damaged("its kinds of anomaly have no name, or no normal class with them")
        named = reader is not None and reader.by_name
        if named and {reader.classes.dtype.kind, reader.kinds.dtype.kind} != {"U"}:
            damaged("its labels are said to be names, and are numbers")
        return cls(np.empty(0, dtype=int), tuple(kinds), reader)


def read_row_labels(
    y: Any,
    *,
    n_rows: int,
    normal: Any,
    known: RowLabels | None = None,
    counts: np.ndarray | None = None,
) -> RowLabels:
    """The labels of `n_rows` rows, read as the `known` ones were; `y` may be None, or lack some."""
    labels, kinds = (known.reader, known.kinds) if known else (None, ())
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
        first, has_label = given, place != UNLABELLED
        weights = None if counts is None else counts[has_label]
        n_each = np.bincount(place[has_label], weights=weights, minlength=len(given))
        word = NORMAL if normal is None and given.dtype.kind in "US" else normal
        some_missing = known is not None or not has_label.all()
        if some_missing and word is not None and (normal is not None or not usual_normal(given)):
            first, n_each = np.append(given, word), np.append(n_each, 0)  # it need not be there
        labels = read_labels(first, normal=normal, one_class=True, counts=n_each)
    labels = labels.including(given)
    given = labels.as_names(given)
    own = given.astype(str) if labels.by_name else "anomaly"
    names = np.where(labels.encode(given) == 1, own, "").tolist()
    new = [name for name in dict.fromkeys(names) if name not in ("", *kinds)]
    _check_words(new)
    word = str(labels.classes[0])
    if known and known.reader and not labels.numbers_are_names:
        _check_truths(new, kinds, normal=word)
    if normal is None and labels.by_name:
        _check_one_normal([word, *usual_normal(new)])
    kinds = (*kinds, *new)
    code = [("", *kinds).index(name) for name in names]
    return RowLabels(np.array([*code, UNLABELLED])[place], kinds, labels)


def _check_words(kinds: list[str]) -> None:
    """Refuse names that `predict_kind` returns for other rows."""
    joined = f"and {OR.strip()!r} is what several names of one alarm are joined by"
    taken = {kind: joined for kind in kinds if OR in kind}
    taken[NORMAL] = "which is what rows that pass are called"
    taken[UNSEEN] = "which is what alarms like no seen kind are called"
    for kind, why in taken.items():
        if kind in kinds:
            raise UserError(f"A kind of anomaly is called {kind!r}, {why}. Rename that kind.")


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
    """The distinct labels, as they come, and the place of each row's, `UNLABELLED` if missing."""
    if y is None:
        return np.empty(0), np.full(n_rows, UNLABELLED)
    if hasattr(y, "dictionary_encode"):  # pyarrow
        y = y.combine_chunks() if hasattr(y, "combine_chunks") else y
        coded = y if hasattr(y, "dictionary") else y.dictionary_encode()
        place = coded.indices.fill_null(UNLABELLED).to_numpy(zero_copy_only=False).astype(int)
        return _without_missing(objects(coded.dictionary.to_pylist()), place)
    if isinstance(y, str):
        raise UserError(
            f"y must hold one label a row, got {y!r}.",
            hint=f"If that is a column of X, pass its values, X[{y!r}], and leave it out of X.",
        )
    array = to_numpy(y.to_numpy() if hasattr(y, "to_numpy") else y)
    in_list = isinstance(y, list | tuple) and array.dtype.kind in "US" and array.ndim == 1
    y = objects(y) if in_list else array  # in a list of names, missing ones stay missing
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
    """The labels of rows as objects, None for a missing one."""
    distinct, place = label_codes(y, n_rows)
    return objects([*distinct.tolist(), None])[place]


def _without_missing(labels: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels that are not missing, in their type, and the places among them."""
    kept = np.array([not is_missing(label) for label in labels.tolist()], dtype=bool)
    known = labels[kept].tolist()
    values = labels[kept] if labels.dtype.kind != "O" else np.array(known)
    if any(isinstance(label, str) for label in known):
        values = np.array([str(label) for label in known])
    new = np.append(np.where(kept, np.cumsum(kept) - 1, UNLABELLED), UNLABELLED)
    return values, new[place]
