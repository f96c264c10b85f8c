"""The labelled rows of files: which columns they have, and what the column of labels says."""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eqsep.arrays import objects
from eqsep.cli import inputs
from eqsep.cli.inputs import GroupColumns, folded
from eqsep.detector.plan import Plan
from eqsep.detector.runs import Runs, Windows
from eqsep.errors import EqsepWarning, Note, UserError, did_you_mean, quoted, warn
from eqsep.io.dialect import Layout
from eqsep.io.files import Choice, chosen, joined, mixed_columns, no_rows, whole, with_categories
from eqsep.labels import NORMAL, WITHOUT, RowLabels, natural_order, usual_normal, with_counts
from eqsep.tables.reading import Table, read_table, text_of

MOST_KINDS = 500  # more labels than that are ids or measurements
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
        known = (text for text in found if text is not None and text != self.normal)
        kinds = (self.normal, *sorted(known, key=natural_order))
        counts = {kind: found.get(kind, 0) for kind in kinds} | {WITHOUT: found.get(None, 0)}
        return {kind: n for kind, n in counts.items() if n}

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
                f"--seen {quoted(unknown)} is not a kind in column {self.name!r}, which holds "
                f"{self.normal!r} and {quoted(sorted(known))}."
                f"{did_you_mean(unknown, sorted(known))}"
            )
        return np.array([text in (None, self.normal, *kinds) for text in self.texts], dtype=bool)


def read_label_column(
    column: pa.ChunkedArray, *, name: str, normal: Sequence[str] = (), missing: Sequence[str] = ()
) -> LabelColumn:
    """The labels in a column; normal is the first word of `normal`, or else "normal", 0, …"""
    texts = inputs.label_texts(column, name, missing=missing)
    spelt = [word for word in normal if word in {*texts}] if normal else [NORMAL]
    texts = _one_normal(_alike(texts, name, known=spelt), normal)
    check_some_label(texts, name=name)
    known = sorted({text for text in texts if text is not None}, key=natural_order)
    if len(known) > MOST_KINDS:
        raise UserError(
            f"Column {name!r} holds {len(known):,} different labels: expected names of kinds, at "
            f"most {MOST_KINDS}. Pass the column that holds them."
        )
    usual = usual_normal(known)
    if not normal and len(usual) > 1:
        raise UserError(
            f"Column {name!r} holds several names of normal rows: {quoted(usual)}. If all of these "
            f"are normal, say {_said(*usual)}; else name the one that is."
        )
    if not normal and not usual:
        rest = ", and rows without a label stand for the others, pass --normal normal."
        raise _no_normal_label(name, texts, rest if None in texts else "")
    label = as_label(normal[0], known) if normal else usual[0]
    if not normal and label not in (NORMAL, "0"):
        warn(Note(f"Labels of {name}: {label!r} is the normal one. --normal names another."))
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


def _no_normal_label(name: str, texts: np.ndarray, if_all_are_anomalies: str) -> UserError:
    hint = f" If these are all anomalies{if_all_are_anomalies}" if if_all_are_anomalies else ""
    found = with_counts(Counter(text for text in texts if text is not None))
    return UserError(
        f"Say which label of column {name!r} is normal: --normal LABEL. It holds {found}.{hint}"
    )


def _one_normal(texts: np.ndarray, normal: Sequence[str]) -> np.ndarray:
    """The labels with the first of some words for normal rows in place of the others."""
    if len(normal) < 2:
        return texts
    known = {text for text in texts if text is not None}
    first, *others = (as_label(word, known) for word in normal)
    return objects(first if text in others else text for text in texts)


def _warn_of_fine(known: Iterable[str], normal: str, name: str) -> None:
    """Warn of kinds of anomaly by which people call normal rows."""
    fine = sorted(text for text in known if folded(text) in _FINE and text != normal)
    if fine:
        warn(
            EqsepWarning(
                f"Labels of {name}: {quoted(fine)} is taken for a kind of anomaly, as the normal "
                f"label is {normal!r}. With {_said(normal, *fine)} such rows are normal, too."
            )
        )


def _said(*labels: str) -> str:
    """The options that name these labels as normal ones."""
    return shlex.join(word for label in labels for word in ("--normal", label))


def is_usual_normal(label: str) -> bool:
    """Whether people call normal rows so.

    >>> is_usual_normal("Benign"), is_usual_normal("0"), is_usual_normal("flood")
    (True, True, False)
    """
    return folded(label) in {*_FINE, "0", "false"}


def as_label(said: str, known: Collection[str]) -> str:
    """The known label that an option means: 1.0 is 1, true is 1, NORMAL may be normal.

    >>> as_label("1.0", ["1", "2"]), as_label("Fine ", ["fine", "bad"]), as_label("x", ["y"])
    ('1', 'fine', 'x')
    """
    if said in known:
        return said
    if re.fullmatch(inputs.NUMBER, said) and text_of(float(said)) in known:
        return text_of(float(said))
    if set(known) <= {"0", "1"}:
        return inputs.TRUTHS.get(said.lower(), said)
    return next((text for text in known if folded(text) == folded(said)), said)


def _alike(texts: np.ndarray, name: str, *, known: Iterable[str]) -> np.ndarray:
    """Labels in one spelling, where they differ by case or blanks alone: a known one, if any."""
    groups: dict[str, set[str]] = {}
    for text in sorted({text for text in texts if text is not None}):
        groups.setdefault(folded(text), set()).add(text)
    usual = {folded(text): text for text in known}
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
    """The labels of more rows, read as the `known` ones that a model has learnt."""
    labels = known.labels
    learnt = [] if labels is None else [text_of(labels.classes[0]), *known.kinds]
    texts = _alike(inputs.label_texts(column, name, missing=missing), name, known=learnt)
    texts = _one_normal(texts, normal)
    are_truths = set(texts) <= {"0", "1", None}
    by_number = are_truths if labels is None else not labels.by_name
    word = NORMAL if labels is None else text_of(labels.classes[0])
    names = sorted({text for text in texts if text is not None}, key=natural_order)
    usual = [text for text in usual_normal(names) if text not in learnt]
    if labels is not None and not by_number and not normal and usual and usual != ["0"]:
        raise UserError(
            f"Column {name!r} holds {quoted(usual)}, a name of normal rows, which the model calls "
            f"{word!r}. Say {_said(usual[0])}, if these are normal; else rename that kind."
        )
    if labels is None and not by_number and None not in texts and not usual:
        if not normal and len(names) > 1:
            raise _no_normal_label(name, texts, ", pass --normal normal.")
        if [folded(word) for word in normal] == [NORMAL]:
            normal = ()
    if normal:
        other = "1" if by_number else "anomaly" if are_truths else None
        word = "0" if by_number else word
        texts = _translated(texts, normal[0], name=name, word=word, other=other)
    _warn_of_fine({*texts} - {None, *learnt}, word, name)
    return numbers_of(texts) if by_number else texts


def _translated(
    texts: np.ndarray, normal: str, *, name: str, word: str, other: str | None
) -> np.ndarray:
    """Labels with the model's word for the normal one; all others stay, or become one."""
    known = sorted({text for text in texts if text is not None})
    normal = as_label(normal, known)
    if normal not in known:
        raise UserError(
            f"--normal {normal!r} is not a label in column {name!r}, which holds {quoted(known)}. "
            f"Name the one of normal rows, or leave out --normal where there are none."
        )
    words = {text: other or text for text in known} | {None: None, normal: word}
    return objects(words[text] for text in texts)


def check_some_label(texts: np.ndarray, *, name: str) -> None:
    """Refuse labels that are all missing."""
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


@dataclass(frozen=True)
class InputSpec:
    """Which files hold the rows, and what their columns are; without labels all rows are normal."""

    paths: Sequence[str]
    layout: Layout
    label: str | None = None
    normal: Sequence[str] = ()  # the label of normal rows, and other words for it
    seen: Sequence[str] = ()  # if any, rows of other kinds are left out
    drop: Sequence[str] = ()
    names: Sequence[str] = ()  # categorical columns
    group: str | None = None
    time: str | None = None
    window: int | None = None
    ordered: bool = False  # whether row numbers are the times

    @property
    def grouped(self) -> GroupColumns:
        return GroupColumns(self.group, self.time)

    @property
    def not_learnt(self) -> list[str]:
        """The columns of groups and of times, and last the column of labels."""
        return self.grouped.names + ([] if self.label is None else [self.label])

    @property
    def _label_options(self) -> dict[str, Any]:
        missing = () if self.label is None else self.layout.said_missing(self.label)
        return {"name": self.label, "normal": self.normal, "missing": missing}

    def label_words(self) -> tuple[str, ...]:
        """The options by which other files with the same labels are read."""
        several = self.normal if len(self.normal) > 1 else ()
        said = [("--normal", label) for label in several]
        own = (word for word in self.layout.missing or () if word.startswith(f"{self.label}="))
        said += [("--missing", word) for word in own]
        return tuple(word for option in said for word in option)

    def read(self, like: Plan | None = None) -> tuple[Table, LabelColumn | None]:
        """The rows without what is left out, and their labels; inferred, or read as by a plan."""
        self.check()
        if like is None:
            rows, table = self._inferred()
        else:
            rows, table = self.read_like(like)
            rows = rows if like.windows is None else like.windows.transform(rows)
        rows = self.in_order(rows, Runs())
        if self.window is not None:  # before rows are left out
            rows = Windows.of(rows, self.window).transform(rows)
        if self.label is None:
            return rows, None
        labels = self.read_labels(table.column(self.label))
        if self.seen:
            kept = np.flatnonzero(labels.seen(self.seen))
            return rows.take(kept), labels.take(kept)
        return rows, labels

    def read_like(self, plan: Plan, choose: Choice | None = None) -> tuple[Table, pa.Table]:
        """The rows as a model takes them, with their groups; and the table, as it is written."""
        pieces = inputs.pieces_for(
            plan, self.paths, choose or self.columns(plan), layout=self.layout
        )
        tables = [table for _, table in pieces if table.num_rows]
        if not tables:
            raise no_rows(self.paths)
        table = joined(tables)
        return self.grouped.attach(inputs.as_read(table, plan), table), table

    def read_labels(self, column: pa.ChunkedArray) -> LabelColumn:
        """The labels of the first fit."""
        return read_label_column(column, **self._label_options)

    def labels_for(self, known: RowLabels, table: pa.Table) -> np.ndarray | None:
        """The labels of more rows, read as the `known` ones that a model has learnt."""
        if self.label is None:
            return None
        return y_for(known, table.column(self.label), **self._label_options)

    def grouped_like(self, plan: Plan) -> "InputSpec":
        """The same with the columns of groups and times that a model knows, where none is named."""
        found = self.grouped.like(plan)
        return replace(self, group=found.group, time=found.time)

    def in_order(self, rows: Table, runs: Runs) -> Table:
        """Rows with their numbers for times, after those of `runs`, where they are ordered."""
        if not self.ordered:
            return rows
        return replace(rows, groups=runs.in_order(rows.groups, rows.n_rows))

    def check(self) -> None:
        """Refuse options that contradict each other."""
        used = self.not_learnt
        twice = [name for name in used if used.count(name) > 1 or name in self.drop]
        if (self.group is not None or self.time is not None) and twice:
            raise UserError(
                f"Column {twice[0]!r} cannot be two of --label, --group, --time and --drop."
            )
        if self.ordered and self.time is not None:
            raise UserError(
                f"--ordered is for rows without a column of times: leave it out, as --time is "
                f"{self.time!r}."
            )
        if self.label is None and (self.normal or self.seen):
            raise UserError("--normal and --seen speak of labels: pass their column as --label.")
        if self.label in (*self.drop, *self.names):
            raise UserError(f"Column {self.label!r} holds the labels: it is not to --drop or name.")
        both = [name for name in self.names if name in self.drop]
        if both:
            raise UserError(f"Column {quoted(both)} cannot be both --categorical and --drop.")

    def columns(self, like: Plan | None) -> Choice:
        """The columns of a file that are wanted, the label last: those of a model, or all."""
        used = self.not_learnt
        if like is not None:
            return inputs.columns_for(like, more=used)

        def choose(there: list[str]) -> list[str]:
            rest = (column for column in there if column not in (*self.drop, *used))
            chosen([*self.drop, *self.names, *self.grouped.names], there, name="The table")
            return [*rest, *used]

        return choose

    def written_labels(self, table: pa.Table) -> np.ndarray:
        """The labels of some rows as they are written, None where there is none."""
        if self.label is None:
            return objects([None] * table.num_rows)
        column = table.column(self.label).cast(pa.string()).combine_chunks()
        return objects(column.to_pylist())

    def typed(self, table: pa.Table) -> Table:
        """Rows of a typed table; refuses numbers with words among them, unless they are names."""
        for mixed in mixed_columns(table, categorical=self.names):
            raise UserError(**mixed.words())
        return read_table(with_categories(table, self.names), name="Detector")

    def _inferred(self) -> tuple[Table, pa.Table]:
        texts = [*self.names, *(name for name in (self.label, self.group) if name is not None)]
        table = whole(self.paths, layout=self.layout, as_text=texts, but=self.drop)
        chosen(self.grouped.names, table.column_names, name="The table")
        rows = self.typed(table.drop_columns(self.not_learnt))
        return self.grouped.attach(rows, table), table
