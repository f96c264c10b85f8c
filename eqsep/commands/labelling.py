"""The column of labels: which rows are normal, of which kind the others are."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eqsep.commands.console import listed
from eqsep.errors import UserError
from eqsep.tables.column import column_of, objects, text_of

MOST_KINDS = 500  # more labels than that are ids or measurements
WITHOUT = "without a label"
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_TRUTHS = {"false": "0", "true": "1"}


@dataclass(frozen=True)
class Labels:
    """Labels as text, None where missing, and which of them is normal."""

    texts: np.ndarray
    normal: str
    column: str

    @property
    def y(self) -> np.ndarray:
        """What a detector takes: 0 and 1 as numbers, other labels as names."""
        return numbers_of(self.texts) if self.are_numbers else self.texts

    @property
    def are_numbers(self) -> bool:
        return self.normal == "0" and set(self.texts) <= {"0", "1", None}

    @property
    def is_anomaly(self) -> np.ndarray:
        return (self.texts != self.normal) & (self.texts != None)  # noqa: E711  one by one

    @property
    def is_normal(self) -> np.ndarray:
        return self.texts == self.normal

    @property
    def counts(self) -> dict[str, int]:
        """The rows of each kind, the normal one first and those without a label last."""
        return self.ordered(Counter(self.texts.tolist()))

    def ordered(self, found: Counter[str | None]) -> dict[str, int]:
        """How often each label was found, in that order."""
        kinds = sorted(text for text in found if text not in (None, self.normal))
        named = {kind: found[kind] for kind in (self.normal, *kinds) if found[kind]}
        return named | ({WITHOUT: found[None]} if found[None] else {})

    def take(self, rows: np.ndarray) -> "Labels":
        """Those of some rows."""
        return replace(self, texts=self.texts[rows])

    def seen(self, kinds: Sequence[str]) -> np.ndarray:
        """Which rows stay where only these kinds of anomaly are seen."""
        known = {text for text in self.texts if text not in (None, self.normal)}
        unknown = [kind for kind in kinds if kind not in known]
        if unknown:
            raise UserError(
                f"--seen {listed(unknown)} is no kind in column {self.column!r}, which holds "
                f"{listed(sorted(known))} beside {self.normal!r}."
            )
        return ~self.is_anomaly | np.isin(self.texts.astype(str), kinds)


def read_labels(column: pa.ChunkedArray, *, name: str, normal: str | None) -> Labels:
    """The labels in a column; without a word for the normal ones "normal", 0 or False is it."""
    texts = texts_of(column, name)
    known = sorted({text for text in texts if text is not None})
    if not known:
        raise UserError(f"Column {name!r} holds no label: every value is missing.")
    if len(known) > MOST_KINDS:
        raise UserError(
            f"Column {name!r} holds {len(known):,} different labels: expected names of kinds, at "
            f"most {MOST_KINDS}. Pass the column that holds them."
        )
    usual = [text for text in ("normal", "0") if text in known]
    if normal is None and usual:
        normal = usual[0]
    elif normal is None:
        raise UserError(
            f"Say which label of column {name!r} is normal: --normal LABEL. It holds "
            f"{listed(known)}."
        )
    normal = _TRUTHS.get(normal.lower(), normal) if set(known) <= {"0", "1"} else normal
    if normal not in known and None not in texts:
        raise UserError(
            f"Column {name!r} holds no row labelled {normal!r}, which is to be the normal one: it "
            f"holds {listed(known)}. Name the normal label with --normal."
        )
    return Labels(texts, normal, name)


def odd_labels(counts: Mapping[str, int], *, known: Iterable[str] = ()) -> list[str]:
    """Sentences on labels that may be misspelt: alike but for case or blanks, or of one row.

    Parameters
    ----------
    counts : mapping of str to int
        The rows of each label.
    known : iterable of str
        Labels that were learnt before.

    Examples
    --------
    >>> odd_labels({"ok": 90, "OK": 7})
    ["Labels 'OK', 'ok' differ only by case or blanks: if they mean the same, write them alike."]
    """
    alike: dict[str, set[str]] = {}
    for text in (*counts, *known):
        alike.setdefault(text.strip().casefold(), set()).add(text)
    found = [
        f"Labels {listed(sorted(texts))} differ only by case or blanks: if they mean the same, "
        f"write them alike."
        for texts in alike.values()
        if len(texts) > 1 and texts & set(counts)
    ]
    single = [text for text, n in counts.items() if n == 1 and text not in (*known, WITHOUT)]
    if single:
        found.append(
            f"Label {listed(single)} has one row: check its spelling, for one row teaches little."
            if len(single) == 1
            else f"Labels {listed(single)} have one row each: check their spelling, for one row "
            f"teaches little."
        )
    return found


def texts_of(column: pa.ChunkedArray, name: str) -> np.ndarray:
    """Labels as text: 1 and 1.0 alike, and false and true as 0 and 1."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    distinct = column_of(name, array.dictionary.to_numpy(zero_copy_only=False)).texts()
    known = {text for text in distinct if text}
    short: dict[str, str] = {}
    if known and all(text.lower() in _TRUTHS for text in known):
        short = {text: _TRUTHS[text.lower()] for text in known}
    elif all(_NUMBER.fullmatch(text) for text in known):
        short = {text: text_of(float(text)) for text in known}
    texts = objects([*(short.get(text, text) if text else None for text in distinct), None])
    return texts[array.indices.fill_null(len(distinct)).to_numpy()]


def numbers_of(texts: np.ndarray) -> np.ndarray:
    """0 / 1 as numbers, None where missing; refuses other labels."""
    other = {text for text in texts if text not in ("0", "1", None)}
    if other:
        raise UserError(
            f"The model knows the labels 0 and 1, and these rows have {listed(sorted(other))}. "
            f"Label them 0 or 1, or fit a model to names of kinds."
        )
    return objects(None if text is None else int(text) for text in texts)


def y_for(detector: Any, column: pa.ChunkedArray, *, name: str) -> np.ndarray:
    """The labels of more rows, as those that a fitted detector has learnt."""
    texts = texts_of(column, name)
    if all(text is None for text in texts):
        raise UserError(f"Column {name!r} holds no label: every value is missing.")
    labels = detector.answers_.labels
    return texts if labels is None or labels.by_name else numbers_of(texts)
