"""What the column of labels of a file says: one spelling of each, and which of them is normal."""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eqsep.arrays import objects
from eqsep.commands.console import meant
from eqsep.errors import EqsepWarning, Note, UserError, quoted, warn
from eqsep.labels import NORMAL, USUAL_NORMAL, WITHOUT, RowLabels
from eqsep.tables.reading import column_of, text_of

MOST_KINDS = 500  # more labels than that are ids or measurements
NUMBER = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"
_TRUTHS = {"false": "0", "true": "1"}
_FINE = {
    *("ok", "okay", "o.k.", "fine", "good", "pass", "passed", "healthy", "benign", "no finding"),
    *("i.o.", "io", "in ordnung", "gut", "gutteil", "o.b.", "ohne befund", "bestanden", NORMAL),
}  # words that people have for normal rows


@dataclass(frozen=True)
class LabelColumn:
    """Labels as text, None where missing, and which of them is normal."""

    texts: np.ndarray
    normal: str
    name: str

    @property
    def y(self) -> np.ndarray:
        """What a detector takes: 0 and 1 as numbers, other labels as names."""
        return numbers_of(self.texts) if self.are_numbers else self.texts

    @property
    def are_numbers(self) -> bool:
        return self.normal == "0" and set(self.texts) <= {"0", "1", None}

    @property
    def counts(self) -> dict[str, int]:
        """The rows of each kind, the normal one first and those without a label last."""
        return self.ordered(Counter(self.texts.tolist()))

    def ordered(self, found: Mapping[str | None, int]) -> dict[str, int]:
        """How often each label was found, in that order."""
        kinds = sorted(text for text in found if text not in (None, self.normal))
        named = {kind: found[kind] for kind in (self.normal, *kinds) if found.get(kind)}
        return named | ({WITHOUT: found[None]} if found.get(None) else {})

    def take(self, rows: np.ndarray) -> "LabelColumn":
        """Those of some rows."""
        return replace(self, texts=self.texts[rows])

    def seen(self, kinds: Sequence[str]) -> np.ndarray:
        """Which rows stay where only these kinds of anomaly are seen."""
        known = {text for text in self.texts if text not in (None, self.normal)}
        kinds = [as_label(kind, known) for kind in kinds]
        unknown = [kind for kind in kinds if kind not in known]
        if unknown:
            raise UserError(
                f"--seen {quoted(unknown)} is no kind in column {self.name!r}, which holds "
                f"{quoted(sorted(known))} beside {self.normal!r}.{meant(unknown, sorted(known))}"
            )
        return np.array([text in (None, self.normal, *kinds) for text in self.texts], dtype=bool)


def read_label_column(
    column: pa.ChunkedArray, *, name: str, normal: Sequence[str] = (), missing: Sequence[str] = ()
) -> LabelColumn:
    """The labels in a column; without a word for the normal ones "normal", 0 or False is it.

    Of several words for normal rows the first is their label. Those in `missing` stand for none.
    """
    texts = label_texts(column, name, missing=missing)
    spelt = [word for word in normal if word in {*texts}] if normal else [NORMAL]
    texts = _one_normal(_alike(texts, name, known=spelt), normal)
    check_some_label(texts, name=name)
    known = sorted({text for text in texts if text is not None})
    if len(known) > MOST_KINDS:
        raise UserError(
            f"Column {name!r} holds {len(known):,} different labels: expected names of kinds, at "
            f"most {MOST_KINDS}. Pass the column that holds them."
        )
    usual = [text for text in map(str, USUAL_NORMAL) if text in known]
    if not normal and not usual:
        raise UserError(
            f"Say which label of column {name!r} is normal: --normal LABEL. It holds "
            f"{quoted(known)}."
            + " If these are all anomalies, and rows without a label stand for the others, pass "
            "--normal normal." * (None in texts)
        )
    label = as_label(normal[0], known) if normal else usual[0]
    if label not in known and None not in texts:
        raise UserError(
            f"Column {name!r} holds no row labelled {label!r}, which is to be the normal one: it "
            f"holds {quoted(known)}. Name the normal label with --normal."
        )
    if NORMAL in known and label != NORMAL:
        raise UserError(
            f"Column {name!r} holds both {label!r}, which is to be the normal label, and "
            f"{NORMAL!r}. If both are normal rows, say {_said(NORMAL, label)}; else rename one."
        )
    _warn_of_fine(known, label, name)
    return LabelColumn(texts, label, name)


def _one_normal(texts: np.ndarray, normal: Sequence[str]) -> np.ndarray:
    """The labels with the first of some words for normal rows in place of the others."""
    if len(normal) < 2:
        return texts
    known = {text for text in texts if text is not None}
    first, *others = (as_label(word, known) for word in normal)
    return objects(first if text in others else text for text in texts)


def _warn_of_fine(known: Iterable[str], normal: str, name: str) -> None:
    """Warn of kinds of anomaly by which people call normal rows."""
    fine = sorted(text for text in known if _folded(text) in _FINE and text != normal)
    if fine:
        warn(
            EqsepWarning(
                f"Labels of {name}: {quoted(fine)} beside {normal!r}, the normal one, is taken for "
                f"a kind of anomaly. With {_said(normal, *fine)} such rows are normal, too."
            )
        )


def _said(*labels: str) -> str:
    """The options that name these labels as normal ones."""
    return shlex.join(word for label in labels for word in ("--normal", label))


def as_label(said: str, known: Collection[str]) -> str:
    """A label as somebody says it, as it is known: 1.0 is 1, true is 1, NORMAL may be normal.

    Examples
    --------
    >>> as_label("1.0", ["1", "2"]), as_label("Fine ", ["fine", "bad"]), as_label("x", ["y"])
    ('1', 'fine', 'x')
    """
    if said in known:
        return said
    if re.fullmatch(NUMBER, said) and text_of(float(said)) in known:
        return text_of(float(said))
    if set(known) <= {"0", "1"}:
        return _TRUTHS.get(said.lower(), said)
    return next((text for text in known if _folded(text) == _folded(said)), said)


def _folded(text: str) -> str:
    return text.strip().casefold()


def _alike(texts: np.ndarray, name: str, *, known: Iterable[str]) -> np.ndarray:
    """Labels in one spelling, where they differ by case or blanks alone: a known one, if any."""
    groups: dict[str, set[str]] = {}
    for text in sorted({text for text in texts if text is not None}):
        groups.setdefault(_folded(text), set()).add(text)
    usual = {_folded(text): text for text in known}
    words = {
        text: usual.get(folded, max(group, key=str.strip).strip())  # small letters come last
        for folded, group in groups.items()
        for text in group
    }
    for group in groups.values():
        one = words[min(group)]
        if len(group) > 1:
            warn(Note(f"Labels of {name}: {quoted(sorted(group))} are one, {one!r}."))
        elif one not in group:
            warn(Note(f"Labels of {name}: {quoted(group)} is taken for {one!r}."))
    if all(text == word for text, word in words.items()):
        return texts
    return objects(None if text is None else words[text] for text in texts)


def y_for(
    known: RowLabels,
    column: pa.ChunkedArray,
    *,
    name: str,
    normal: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> np.ndarray:
    """The labels of more rows, read as those that were learnt, which are `known`.

    `normal` is what the column calls normal rows, where that is not what the model does, or in
    several words; labels in `missing` are none.
    """
    labels = known.labels
    learnt = [] if labels is None else [text_of(labels.classes[0]), *known.kinds]
    texts = _alike(label_texts(column, name, missing=missing), name, known=learnt)
    texts = _one_normal(texts, normal)
    are_truths = set(texts) <= {"0", "1", None}
    by_number = are_truths if labels is None else not labels.by_name
    word = NORMAL if labels is None else text_of(labels.classes[0])
    if normal:
        other = "1" if by_number else "anomaly" if are_truths else None
        word = "0" if by_number else word
        texts = _translated(texts, normal[0], name=name, word=word, other=other)
    _warn_of_fine({*texts} - {None, *learnt}, word, name)
    return numbers_of(texts) if by_number else texts


def _translated(
    texts: np.ndarray, normal: str, *, name: str, word: str, other: str | None
) -> np.ndarray:
    """Labels of which one is normal in the words of a model; all others are as they were or one."""
    known = sorted({text for text in texts if text is not None})
    normal = as_label(normal, known)
    if normal not in known:
        raise UserError(
            f"--normal {normal!r} is no label in column {name!r}, which holds {quoted(known)}. "
            f"Name the one of normal rows, or leave out --normal where there are none."
        )
    words = {text: other or text for text in known} | {None: None, normal: word}
    return objects(words[text] for text in texts)


def label_texts(column: pa.ChunkedArray, name: str, *, missing: Sequence[str] = ()) -> np.ndarray:
    """Labels as text: 1 and 1.0 alike, and false and true as 0 and 1; None where one is missing."""
    none = {_folded(word) for word in missing}
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    distinct = column_of(name, array.dictionary.to_numpy(zero_copy_only=False)).texts()
    distinct = [None if text is None or _folded(text) in none else text for text in distinct]
    known = {text for text in distinct if text}
    short: dict[str, str] = {}
    if known and all(text.lower() in _TRUTHS for text in known):
        short = {text: _TRUTHS[text.lower()] for text in known}
    elif all(re.fullmatch(NUMBER, text) for text in known):
        short = {text: text_of(float(text)) for text in known}
    texts = objects([*(short.get(text, text) if text else None for text in distinct), None])
    found: np.ndarray = texts[array.indices.fill_null(len(distinct)).to_numpy()]
    return found


def check_some_label(texts: np.ndarray, *, name: str) -> None:
    """Refuse labels of which all are missing."""
    if all(text is None for text in texts):
        raise UserError(f"Column {name!r} holds no label: every value is missing.")


def check_labelled(known: RowLabels, label: str | None) -> None:
    """Refuse learnt rows without the column of their labels, where labels are `known`."""
    if label is None and known.labels is not None:
        raise UserError(
            "The model has learnt labels: pass their column as --label, with the labels that these "
            "rows had, empty where they had none."
        )


def numbers_of(texts: Iterable[Any]) -> np.ndarray:
    """0 / 1 as numbers, None where missing; refuses other labels."""
    texts = list(texts)
    other = {text for text in texts if text not in ("0", "1", None)}
    if other:
        raise UserError(
            f"The model knows the labels 0 and 1, and these rows have {quoted(sorted(other))}. "
            f"Say which of them is normal, --normal LABEL, or fit a model to names of kinds."
        )
    return objects(None if text is None else int(text) for text in texts)
