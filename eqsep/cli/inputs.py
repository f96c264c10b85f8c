"""What commands read: model files, and rows as a model takes them, with labels or without."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eqsep.arrays import objects
from eqsep.checks import warn_of
from eqsep.cli.project import NAME, current_project, label_column
from eqsep.detector.calibration import checked_rate
from eqsep.detector.model import Model
from eqsep.detector.plan import Plan
from eqsep.detector.runs import PersistentAlarms, Runs, Windows
from eqsep.errors import EqsepWarning, Note, UserError, counted, did_you_mean, quoted, warn
from eqsep.io import files
from eqsep.io.dialect import Layout
from eqsep.io.files import Choice
from eqsep.io.inference import without_missing, written
from eqsep.io.text import BadRows, unreadable
from eqsep.labels import NORMAL, WITHOUT, RowLabels, natural_order, usual_normal, with_counts
from eqsep.persistence import ModelFileError, load_model, read_model
from eqsep.persistence.container import MAGIC
from eqsep.tables import reading
from eqsep.tables.reading import NUMERIC, Column, Table, UnreadableError, read_table, text_of

if TYPE_CHECKING:
    from eqsep.detector import Detector  # which needs scikit-learn

NUMBER = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"
TRUTHS = {"false": "0", "true": "1"}


def load_detector(path: Path, *, rows: Iterable[str] = (), rate: float | None = None) -> "Detector":
    """The detector in a model file, with another false-alarm rate where one is given."""
    detector = _loaded(path, load_model, rows=rows)
    _check_detector(path, detector, getattr(detector, "model_", None), rate=rate)
    if rate is not None:
        detector.false_alarm_rate = checked_rate(rate)
        warn_of(detector.model_.check_promise())
    return detector


def load_scoring(path: Path, *, rows: Iterable[str] = (), rate: float | None = None) -> Model:
    """The same without scikit-learn, which takes longer to import than a row to score."""
    model = _loaded(path, read_model, rows=rows)
    _check_detector(path, model, model, rate=rate)
    if rate is None:
        return model
    model = model.promising(replace(model.promise, false_alarm_rate=checked_rate(rate)))
    warn_of(model.check_promise())
    return model


def _loaded(path: Path, load: Callable[[Path], Any], *, rows: Iterable[str]) -> Any:
    if not path.exists():
        raise UserError(f"There is no model {path}: write one with eqsep fit.")
    if path.is_file() and not is_model(path):
        models = [file for file in rows if is_model(Path(file))]
        instead = "pass a file that eqsep fit wrote."
        if models:
            instead = f"the model comes first. Pass {models[0]} before {path}."
        elif files.is_table(path):
            instead = f"make one of a table with eqsep fit {path} --out model.eqsep, and pass that."
        raise UserError(f"{path} is not an eqsep model: {instead}")
    try:
        return load(path)
    except ModelFileError as error:
        raise error.at(str(path)) from error


def _check_detector(path: Path, found: object, model: object, *, rate: float | None) -> None:
    """Refuse a file without a detector; note where the project file has changed since its fit."""
    if not isinstance(model, Model):
        raise UserError(f"{path} holds a {type(found).__name__}: pass a model of eqsep fit.")
    label_column.set(label_column.get() or model.label_column)
    project, own = current_project.get(), model.promise.false_alarm_rate
    if project is not None and rate not in (None, own) and project.gives("false_alarm_rate"):
        warn(Note(f"The false-alarm rate is {rate:g} by {NAME}; the model was fitted for {own:g}."))
    if project is None or project.model is None or Path(project.model).resolve() != path.resolve():
        return
    dropped, columns = project.values.get("drop", ()), model.plan.table_columns
    learnt = [name for name in dropped if columns.get(name) is not None]
    left_out = [name for name in model.left_out if name not in dropped]
    fitted = [f"with {quoted(learnt)}"] * bool(learnt)
    fitted += [f"without {quoted(left_out)}"] * bool(left_out)
    if fitted:
        said = f"drop in {NAME} is not what the model was fitted by"
        said += f": it was fitted {' and '.join(fitted)}"
        warn(Note(f"{said}. To apply drop, fit again."))


def is_model(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def columns_for(plan: Plan, *, more: Iterable[str] = ()) -> Choice:
    """Which columns of a file are read: those that a model needs, and some more."""
    more = list(more)
    learnt = plan.table_columns

    def choose(there: list[str]) -> list[str]:
        if not plan.is_named:
            used = [column for column in there if column not in more]
            if len(used) != len(learnt):
                raise UserError(
                    f"The model knows its {len(learnt)} columns by position, but the table has "
                    f"{len(used)}: {quoted(used)}. Pass only the columns that it learnt."
                )
            return [*used, *more]
        used = [name for name, column in learnt.items() if column is not None]
        absent = [column for column in used if column not in there]
        if absent:
            many = len(absent) > 1
            columns = f"Columns {quoted(absent)} are" if many else f"Column {absent[0]!r} is"
            it = "them" if many else "it"
            raise UserError(
                f"{columns} missing: the model was fitted with {it}, and the table has "
                f"{quoted(there)}. Add {'their' if many else 'its'} values (rows without them may "
                f"raise alarms), or fit without {it}."
                f"{did_you_mean(absent, [column for column in there if column not in used])}"
            )
        _check_groups(plan, more, there)
        return [*used, *more]

    return choose


def note_extra(model: Model, there: Iterable[str], used: Iterable[str]) -> None:
    """Note columns of a file that are ignored, unless they were left out of the fit on purpose."""
    if model.evidence.labels.reader is not None and not model.label_column:
        return  # fitted in Python: labels may be among them
    grouping, project = model.plan.holdout.grouping, current_project.get()
    known: set[str | None] = {*model.plan.table_columns, *model.left_out, model.label_column, *used}
    known |= set() if grouping is None else {*grouping.columns}
    known |= set() if project is None else {project.values.get("label")}
    extra = [name for name in there if name not in known]
    if extra and model.plan.is_named:
        warn(Note(f"Columns that the model has not learnt are ignored: {quoted(extra)}."))


def naming_columns(ids: Iterable[str]) -> list[str]:
    """The columns that say which row it is: those that the project keeps, else the first id."""
    project = current_project.get()
    return list((project and project.values.get("keep")) or [*ids][:1])


def row_names(table: pa.Table, rows: np.ndarray, *, other: str = "row {}") -> list[str]:
    """What rows are called by these columns: "payment P-7, day 2026-01-02"; `other` without any."""
    found = table.take(pa.array(rows)).to_pylist() if table.num_columns else [{}] * len(rows)
    said = (
        ", ".join(f"{c} {text_of(v)}".strip() for c, v in r.items() if v is not None) for r in found
    )
    return [name or other.format(i + 1) for i, name in zip(rows.tolist(), said, strict=True)]


def _check_groups(plan: Plan, more: Sequence[str], there: Sequence[str]) -> None:
    """Refuse rows without the column of groups or of times that is asked for, and say why."""
    grouping = plan.holdout.grouping
    if grouping is None:
        return
    for name in filter(None, grouping.columns):
        if name in more and name not in there:
            raise UserError(
                f"Column {name!r} is missing: the model needs it to hold out whole "
                f"{grouping.unit}s. The table has {quoted(there)}. Add "
                f"it.{did_you_mean([name], there)}"
            )


def all_columns(plan: Plan, more: Sequence[str]) -> Choice:
    """All columns of a file, where those that a model needs and some others are there."""
    needed = columns_for(plan, more=more)

    def choose(there: list[str]) -> list[str]:
        files.chosen(needed(there), there, name="The table")
        return there

    return choose


def as_read(table: pa.Table, plan: Plan) -> Table:
    """A table, of strings or not, as the rows that a plan takes."""
    known = plan.table_columns
    names: Iterable[str] = known if plan.is_named else table.schema.names
    columns = {
        name: pa.nulls(len(table)) if learnt is None else _like(table, name, learnt.reads, plan)
        for name, learnt in zip(names, known.values(), strict=False)
    }
    return replace(reading.read_table(pa.table(columns), name="Detector"), named=plan.is_named)


def _like(table: pa.Table, name: str, reads: str, plan: Plan) -> pa.ChunkedArray:
    """A column in the type that a model knows it by, as the file or else the model writes it."""
    field, known = table.schema.field(name), plan.encoder.notation.get(name)
    if not known and field.metadata in (None, reading.PLAINLY):
        return files.cast(table.column(name), reads)
    return files.cast(table.column(name), reads, written(field, known))


@contextmanager
def errors_placed(name: str, *, before: int) -> Iterator[None]:
    """Let errors in a piece name its file and row; so many rows came `before` the piece."""
    try:
        yield
    except UnreadableError as error:
        raise error.at(f"{name}, row {before + error.row + 1}") from error
    except UserError as error:
        raise error.at(name) from error


def pieces_for(
    plan: Plan | None,
    paths: Sequence[str],
    choose: Choice,
    *,
    layout: Layout,
    bad_rows: BadRows | None,
) -> Iterator[tuple[str, pa.Table]]:
    """Some thousand rows at a time, with the name of their file; text files give strings."""
    find_bad = None if plan is None else partial(_unreadable, plan=plan)
    project = current_project.get()

    def checked(there: list[str]) -> Iterable[str]:
        if project is None or not project.gives("missing"):  # it also names columns of other files
            layout.check_missing(there, name="the table")
        return choose(there)

    tables = files.pieces(paths, checked, layout=layout, bad_rows=bad_rows, find_bad=find_bad)
    for name, table in tables:
        yield name, table if plan is None else _without_missing(table, plan, layout)


def placed_pieces(
    plan: Plan,
    paths: Sequence[str],
    choose: Choice,
    *,
    layout: Layout,
    bad_rows: BadRows | None,
) -> Iterator[tuple[str, pa.Table, int]]:
    """The same, with how many rows of its file came before each piece."""
    done: Counter[str] = Counter()
    for name, table in pieces_for(plan, paths, choose, layout=layout, bad_rows=bad_rows):
        yield name, table, done[name]
        done[name] += table.num_rows


def _without_missing(table: pa.Table, plan: Plan, layout: Layout) -> pa.Table:
    """The table with null for the words that the options name as missing values."""
    for name in plan.table_columns if layout.missing else ():
        words = layout.said_missing(name)
        if words and name in table.schema.names:
            place = table.schema.get_field_index(name)
            column, _ = without_missing(table.column(name), words)
            table = table.set_column(place, table.schema.field(name), column)
    return table


def _unreadable(table: pa.Table, plan: Plan) -> dict[str, pa.ChunkedArray]:
    """Which values of each column a detector cannot read, if there are any."""
    bad: dict[str, Any] = {}
    for name, learnt in plan.table_columns.items():
        if learnt is None or name not in table.schema.names:
            continue
        column = _like(table, name, learnt.reads, plan)
        if learnt.reads in NUMERIC and pa.types.is_string(column.type):
            mask = unreadable(column, name, learnt.reads)
            bad |= {} if mask is None else {name: mask}
    return bad


def persistent_alarms(text: str) -> PersistentAlarms:
    """Alarms that persist for 3 of 5 rows, from "3/5"."""
    found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(f"--persist must be K/N with 1 <= K <= N, such as 3/5, got {text!r}.")
    return PersistentAlarms(int(found[1]), int(found[2]))


@dataclass(frozen=True)
class GroupColumns:
    """The columns that say to which group a row belongs, and when it was taken."""

    group: str | None = None
    time: str | None = None

    @property
    def names(self) -> list[str]:
        return [name for name in (self.group, self.time) if name is not None]

    def like(self, plan: Plan) -> "GroupColumns":
        """The same with the columns that a model knows, where none is named."""
        grouping = plan.holdout.grouping
        group, time = (None, None) if grouping is None else grouping.columns
        return GroupColumns(self.group or group or None, self.time or time or None)

    def attach(self, rows: Table, table: pa.Table) -> Table:
        """Rows with their groups and times, from the table that they were read from."""
        group = None if self.group is None else _column(table, self.group, reads=["text"])
        time = None if self.time is None else _column(table, self.time, reads=NUMERIC)
        grouped = reading.with_groups(rows, group, time)
        if grouped.groups is None:
            return rows
        return replace(grouped, groups=replace(grouped.groups, columns=(self.group, self.time)))


class RowReader:
    """From pieces of files, in their order, to the rows that a detector takes."""

    def __init__(self, model: Model, *, persist: str | None = None, in_runs: bool = False) -> None:
        self.model, self.windows = model, model.plan.windows
        self.looks_back = in_runs or persist is not None or self.windows is not None
        self.runs = Runs() if self.looks_back else None
        self.alarms = None if persist is None else persistent_alarms(persist)
        self.short = np.zeros(0, dtype=bool)  # rows of the last table with windows that are short
        self.grouped = GroupColumns().like(model.plan) if self.looks_back else GroupColumns()
        grouping = model.plan.holdout.grouping
        if self.looks_back and grouping is not None and grouping.columns[0] == "":
            raise UserError(
                "The model was fitted in Python with groups that are not a column, so the command "
                "does not know which rows are of one run: use windows and --persist in Python."
            )

    def columns(self, *, more: Iterable[str] = ()) -> Choice:
        """The columns of a file that are read, those of the run too."""

        def choose(there: list[str]) -> Iterable[str]:
            if self.grouped.group is not None and self.grouped.group not in there:
                raise UserError(
                    f"Column {self.grouped.group!r} is missing: it says which run a row belongs "
                    f"to, as windows and --persist need to know. The table has {quoted(there)}."
                )
            used = list(
                columns_for(self.model.plan, more=[*more, *self._there(there).names])(there)
            )
            note_extra(self.model, there, used)
            return used

        return choose

    def _there(self, names: list[str]) -> GroupColumns:
        """The same without a missing column of times: rows are then in their order."""
        return self.grouped if self.grouped.time in names else replace(self.grouped, time=None)

    def __call__(self, table: pa.Table) -> Table:
        rows = as_read(table, self.model.plan)
        if self.looks_back:
            rows = self._there(table.schema.names).attach(rows, table)
        if self.windows is None:
            return rows
        self.short = self.windows.short(rows, self.runs)
        return self.windows.transform(rows, runs=self.runs)

    def persisting(self, alarm: np.ndarray, rows: Table) -> np.ndarray:
        """Which alarms stay: those of runs in which enough of the last rows are alarms."""
        if self.alarms is None:
            return alarm
        return self.alarms.update(alarm, None if rows.groups is None else rows.groups.group)


def note_short_windows(windows: Windows | None, alarms: Collection[bool]) -> None:
    """Note rows with short windows, if there are any; `alarms` says which of them are alarms."""
    if windows is None or not alarms:
        return
    n = sum(alarms)
    warn(
        Note(
            f"{counted(len(alarms), 'row')} near the start of a run: windows of {windows.length} "
            f"rows are not full there, and {n:,} of these rows raise{'s' * (n == 1)} an alarm. So "
            f"few values vary little, like those of a frozen sensor. If a run continues from "
            f"earlier rows, score these in the same call."
        )
    )


def _column(table: pa.Table, name: str, *, reads: Sequence[str]) -> Column:
    """A column of a table, strings in the first type that all of them can have."""
    column = table.column(name)
    types = (found for kind in reads if (found := files.cast(column, kind)).type != column.type)
    column = next(types, column)
    if reads == ["text"] and not pa.types.is_string(column.type):
        column = pa.chunked_array([pa.array(label_texts(column, name), pa.string())])
    return reading.read_table(pa.table({name: column}), name="Detector").columns[0]


def label_texts(column: pa.ChunkedArray, name: str, *, missing: Sequence[str] = ()) -> np.ndarray:
    """Labels as text: 1 and 1.0 alike, and false and true as 0 and 1; None where one is missing."""
    none = {folded(word) for word in missing}
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    array = column.unify_dictionaries().combine_chunks()
    distinct = reading.column_of(name, array.dictionary.to_numpy(zero_copy_only=False)).texts()
    distinct = [None if text is None or folded(text) in none else text for text in distinct]
    known = {text for text in distinct if text}
    short: dict[str, str] = {}
    if known and all(text.lower() in TRUTHS for text in known):
        short = {text: TRUTHS[text.lower()] for text in known}
    elif all(re.fullmatch(NUMBER, text) for text in known):
        short = {text: reading.text_of(float(text)) for text in known}
    texts = objects([*(short.get(text, text) if text else None for text in distinct), None])
    return np.asarray(texts[array.indices.fill_null(len(distinct)).to_numpy()])


def folded(text: str) -> str:
    """Text as it is compared: without case and blanks around it."""
    return text.strip().casefold()


_MOST_MIXED = 5  # columns that an error describes
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
    words: tuple[str, ...] = ()  # for normal rows, if they were named
    there: frozenset[str] = frozenset()  # which of these are written in the column

    @property
    def called(self) -> str:
        """What normal rows are called in the column: by one word, or by several."""
        return " or ".join(word for word in self.words if word in self.there) or self.normal

    @property
    def other_normal(self) -> tuple[str, ...]:
        """All words for normal rows but the first, which labels are read as."""
        return tuple(word for word in self.words if word != self.normal)

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
        return replace(self, texts=self.texts[rows])

    def seen(self, kinds: Sequence[str]) -> np.ndarray:
        """Which rows stay where only these kinds of anomaly are seen."""
        known = {text for text in self.texts if text not in (None, self.normal)}
        kinds = [as_label(kind.removeprefix(f"{self.name} = "), known) for kind in kinds]
        unknown = [kind for kind in kinds if kind not in known]
        if unknown:
            raise UserError(
                f"--seen {quoted(unknown)} is not a kind in column {self.name!r}, whose kinds are "
                f"{quoted(sorted(known))}."
                f"{did_you_mean(unknown, sorted(known))}"
            )
        return np.array([text in (None, self.normal, *kinds) for text in self.texts], dtype=bool)


def read_label_column(
    column: pa.ChunkedArray,
    *,
    name: str,
    normal: Sequence[str] = (),
    missing: Sequence[str] = (),
    times: Iterable[int] | None = None,
) -> LabelColumn:
    """The labels in a column, each of `times` rows; without `normal`, "normal" or 0 is normal."""
    texts = label_texts(column, name, missing=missing)
    spelt = [word for word in normal if word in {*texts}] if normal else [NORMAL]
    written = _alike(texts, name, known=spelt, rows=_rows_of(texts, times))
    texts = _one_normal(written, normal)
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
            f"are normal, use {say_normal(*usual)}; otherwise name the one that is."
        )
    if not normal and not usual:
        rest = f", and rows without a label stand for the others, pass {say_normal(NORMAL)}."
        raise _no_normal_label(name, _counts(texts, times), rest if None in texts else "")
    label = as_label(normal[0], known) if normal else usual[0]
    if not normal and label not in (NORMAL, "0"):
        warn(Note(f"Labels of {name}: {label!r} is the normal one. --normal names another."))
    if label not in known and None not in texts:
        raise UserError(
            f"Column {name!r} holds no row labelled {label!r}, the normal label by --normal: it "
            f"holds {_counts(texts, times)}. Correct the label, or add rows that are normal or "
            f"without a label.{did_you_mean([label], known)}"
        )
    if NORMAL in known and label != NORMAL:
        both = say_normal(NORMAL, label)
        raise UserError(
            f"Column {name!r} holds both {label!r}, the normal label, and {NORMAL!r}. If both are "
            f"normal rows, use {both}; otherwise rename one."
        )
    there = {text for text in written if text is not None}
    words = dict.fromkeys(as_label(word, there) for word in normal)
    _warn_of_fine({*known} - {label}, list(words) or [label], name)
    named = frozenset(there & words.keys())
    return LabelColumn(texts, label, name, words=tuple(words), there=named)


def _no_normal_label(name: str, held: str, if_all_are_anomalies: str) -> UserError:
    hint = f" If these are all anomalies{if_all_are_anomalies}" if if_all_are_anomalies else ""
    say = say_normal("LABEL")
    return UserError(f"Say which label of column {name!r} is normal: {say}. It holds {held}.{hint}")


def _counts(texts: np.ndarray, times: Iterable[int] | None = None) -> str:
    """The labels, each with its rows."""
    return with_counts(_rows_of(texts, times))


def _rows_of(texts: np.ndarray, times: Iterable[int] | None = None) -> Counter[str]:
    """The rows of each label."""
    rows: Counter[str] = Counter()
    for text, n in zip(texts.tolist(), repeat(1) if times is None else times, strict=False):
        rows.update({} if text is None else {text: n})
    return rows


def normal_words(model: Model) -> list[str]:
    """What normal rows are called in the files of a model; nothing before the first label."""
    labels = model.evidence.labels.reader
    return [] if labels is None else [text_of(labels.classes[0]), *model.other_normal]


def or_name_normal(named: Sequence[str], learnt: Sequence[str] = ()) -> str:
    """What else to do where no row is normal: correct the label that was named, or name one."""
    if named:
        return f"or correct --normal {named[0]!r}"
    called = f" if they are not called {quoted(learnt)}, as in the model" if learnt else ""
    return f"or say what they are called{called}: {say_normal('LABEL')}"


def _one_normal(texts: np.ndarray, normal: Sequence[str]) -> np.ndarray:
    """The labels with the first of some words for normal rows in place of the others."""
    if len(normal) < 2:
        return texts
    known = {text for text in texts if text is not None}
    first, *others = (as_label(word, known) for word in normal)
    return objects(first if text in others else text for text in texts)


def _warn_of_fine(known: Iterable[str], normal: Sequence[str], name: str) -> None:
    """Warn of kinds of anomaly by which people call normal rows."""
    fine = sorted(text for text in known if folded(text) in _FINE)
    if fine:
        labels = "label is" if len(normal) == 1 else "labels are"
        taken = f"a kind of anomaly here, because the normal {labels} {quoted(normal)}"
        too = f"Use {say_normal(*normal, *fine)} if such rows are normal."
        warn(EqsepWarning(f"Labels of {name}: {quoted(fine)} is {taken}. {too}"))


def say_normal(*labels: str) -> str:
    """What names these labels as normal ones: options, or the key of the project file in use."""
    if current_project.get() is None:
        return shlex.join(word for label in labels for word in ("--normal", label))
    named = json.dumps(labels[0] if len(labels) == 1 else labels, ensure_ascii=False)
    return f"normal = {named} in {NAME}"


def is_usual_normal(label: str) -> bool:
    return folded(label) in {*_FINE, "0", "false"}


def as_label(said: str, known: Collection[str]) -> str:
    """The known label that an option means: 1.0 is 1, true is 1, NORMAL may be normal."""
    if said in known:
        return said
    if re.fullmatch(NUMBER, said) and text_of(float(said)) in known:
        return text_of(float(said))
    if set(known) <= {"0", "1"}:
        return TRUTHS.get(said.lower(), said)
    return next((text for text in known if folded(text) == folded(said)), said)


def _alike(texts: np.ndarray, name: str, *, known: Iterable[str], rows: Counter[str]) -> np.ndarray:
    """Labels in one spelling, if they differ by case or blanks alone: a known or the usual one."""
    groups: dict[str, set[str]] = {}
    for text in sorted(rows):
        groups.setdefault(folded(text), set()).add(text)
    usual = {folded(text): text for text in known}
    words = {
        text: usual.get(folded, max(group, key=lambda one: (rows[one], one.strip())).strip())
        for folded, group in groups.items()
        for text in group
    }
    for group in groups.values():
        one = words[min(group)]
        if len(group) > 1:
            warn(Note(f"Labels of {name}: {quoted(sorted(group))} are read as one, {one!r}."))
        elif one not in group:
            warn(Note(f"Labels of {name}: {quoted(group)} is read as {one!r}."))
    if all(text == word for text, word in words.items()):
        return texts
    return objects(None if text is None else words[text] for text in texts)


def y_for(
    model: Model,
    column: pa.ChunkedArray,
    *,
    name: str,
    normal: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> np.ndarray:
    """The labels of more rows, read as those that a model has learnt."""
    labels, words = model.evidence.labels.reader, normal_words(model)
    learnt = [*words, *model.kinds]
    texts = label_texts(column, name, missing=missing)
    texts = _alike(texts, name, known=learnt, rows=_rows_of(texts))
    texts = _one_normal(_one_normal(texts, words), normal)
    are_truths = set(texts) <= {"0", "1", None}
    by_number = are_truths if labels is None else not labels.by_name
    word = words[0] if words else NORMAL
    names = sorted({text for text in texts if text is not None}, key=natural_order)
    usual = [text for text in usual_normal(names) if text not in learnt]
    if {as_label(one, words) for one in normal} <= {*words} and (word in names or not usual):
        normal = ()  # as the model knows: no normal row need be here
    if labels is not None and not by_number and not normal and usual and usual != ["0"]:
        raise UserError(
            f"Column {name!r} holds {quoted(usual)}, a name of normal rows, which the model calls "
            f"{word!r}. If these are normal, use {say_normal(usual[0])}; otherwise rename it."
        )
    is_new = labels is None and not by_number and None not in texts and not usual
    if is_new and not normal and len(names) > 1:
        raise _no_normal_label(name, _counts(texts), f", pass {say_normal(NORMAL)}.")
    if [folded(one) for one in normal] == [NORMAL] == [word] and not {NORMAL, *usual} & {*names}:
        normal = ()  # rows without a label stand for the normal ones, or no normal row is here
    if normal:
        other = "1" if by_number else "anomaly" if are_truths else None
        word = "0" if by_number else word
        texts = _translated(texts, normal[0], name=name, word=word, other=other)
    _warn_of_fine({*texts} - {None, word, *learnt}, normal or [word], name)
    return numbers_of(texts) if by_number else texts


def _translated(
    texts: np.ndarray, normal: str, *, name: str, word: str, other: str | None
) -> np.ndarray:
    """Labels with the model's word for the normal one; all others stay, or become one."""
    known = sorted({text for text in texts if text is not None})
    normal = as_label(normal, known)
    if normal not in known:
        raise UserError(
            f"--normal {normal!r} is not a label in column {name!r}, which holds "
            f"{_counts(texts) or 'none'}. Name the label of normal rows, or add such rows; to "
            f"learn anomalies alone, leave out --normal."
        )
    words = {text: other or text for text in known} | {None: None, normal: word}
    return objects(words[text] for text in texts)


def check_some_label(texts: np.ndarray, *, name: str) -> None:
    if all(text is None for text in texts):
        raise UserError(f"Column {name!r} holds no label: every value is missing.")


def check_labelled(known: RowLabels, label: str | None) -> None:
    """Refuse learnt rows without the column of their labels, where labels are `known`."""
    if label is None and known.reader is not None:
        raise UserError("The model has learnt labels: pass those of these rows as --label.")


def numbers_of(texts: Iterable[Any]) -> np.ndarray:
    """0 / 1 as numbers, None where missing; refuses other labels."""
    texts = list(texts)
    other = {text for text in texts if text not in ("0", "1", None)}
    if other:
        raise UserError(
            f"The model knows the labels 0 and 1, and these rows have {quoted(sorted(other))}. Say "
            f"which of them is normal, {say_normal('LABEL')}, or fit a model to names of kinds."
        )
    return objects(None if text is None else int(text) for text in texts)


@dataclass(frozen=True)
class InputSpec:
    """Which files hold the rows, and what their columns are; without labels, nobody has looked."""

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
    bad_rows: BadRows | None = None  # where unreadable rows go; else the first is an error

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
        own = [word for word in self.layout.missing or () if word.startswith(f"{self.label}=")]
        said = [*(("--normal", label) for label in several), *(("--missing", word) for word in own)]
        return tuple(chain.from_iterable(said))

    def read(self, like: Plan | None = None) -> tuple[Table, LabelColumn | None]:
        """The rows without columns left out, and labels; read as by a plan, if there is one."""
        self.check()
        if like is None:
            texts = [*self.names, *(name for name in (self.label, self.group) if name is not None)]
            table = files.whole(
                self.paths,
                layout=self.layout,
                bad_rows=self.bad_rows,
                as_text=texts,
                but=self.drop,
            )
            files.chosen(self.grouped.names, table.column_names, name="The table")
            rows = self.grouped.attach(self.typed(table.drop_columns(self.not_learnt)), table)
        else:
            rows, table = self.read_like(like)
            rows = rows if like.windows is None else like.windows.transform(rows)
        rows = self.in_order(rows, Runs())
        if self.window is not None:  # before rows are left out
            rows = Windows.of(rows, self.window).transform(rows)
        if self.label is None:
            return rows, None
        return rows, self.read_labels(table.column(self.label))

    def read_like(self, plan: Plan, choose: Choice | None = None) -> tuple[Table, pa.Table]:
        """The rows as a model takes them, with their groups; and the table, as it is written."""
        choose = choose or self.columns(plan)
        pieces = pieces_for(plan, self.paths, choose, layout=self.layout, bad_rows=self.bad_rows)
        tables = [table for _, table in pieces if table.num_rows]
        if not tables:
            raise files.no_rows(self.paths)
        table = files.joined(tables)
        return self.grouped.attach(as_read(table, plan), table), table

    def read_labels(
        self, column: pa.ChunkedArray, *, times: Iterable[int] | None = None
    ) -> LabelColumn:
        return read_label_column(column, times=times, **self._label_options)

    def labels_for(self, model: Model, table: pa.Table) -> np.ndarray | None:
        """The labels of more rows, read as those that a model has learnt."""
        if self.label is None:
            return None
        return y_for(model, table.column(self.label), **self._label_options)

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
        used = self.not_learnt
        twice = [name for name in used if used.count(name) > 1 or name in self.drop]
        if (self.group is not None or self.time is not None) and twice:
            raise UserError(f"Column {twice[0]!r} is in two of --label, --group, --time, --drop.")
        if self.ordered and self.time is not None:
            raise UserError("--ordered and --time contradict each other: pass one of them.")
        if self.label is None and (self.normal or self.seen):
            raise UserError("--normal and --seen need labels: name their column with --label.")
        if self.label in (*self.drop, *self.names):
            raise UserError(
                f"Column {self.label!r} holds the labels: it cannot be in --drop or --categorical."
            )
        both = [name for name in self.names if name in self.drop]
        if both:
            raise UserError(f"Column {quoted(both)} cannot be both --categorical and --drop.")

    def columns(self, like: Plan | None) -> Choice:
        """The columns of a file that are wanted, the label last: those of a model, or all."""
        used = self.not_learnt
        if like is not None:
            return columns_for(like, more=used)

        def choose(there: list[str]) -> list[str]:
            rest = (column for column in there if column not in (*self.drop, *used))
            files.chosen([*self.drop, *self.names, *self.grouped.names], there, name="The table")
            return [*rest, *used]

        return choose

    def written_labels(self, table: pa.Table) -> np.ndarray:
        """The labels of some rows as they are written, None where there is none."""
        if self.label is None:
            return objects([None] * table.num_rows)
        return objects(table.column(self.label).cast(pa.string()).combine_chunks().to_pylist())

    def typed(self, table: pa.Table) -> Table:
        """Rows of a typed table; refuses numbers with words among them, unless they are names."""
        mixed = list(files.mixed_columns(table, categorical=self.names))
        if mixed:
            raise _mixed(mixed)
        return read_table(files.with_categories(table, self.names), name="Detector")


def _mixed(found: Sequence[files.MixedColumn]) -> UserError:
    """The error for columns of numbers with words among them, with all entries to add."""
    entries = [f"{one.name}={word}" for one in found for word in one.few_words]
    if len(entries) < 2:
        return UserError(**found[0].words())
    shown = [one.words()["message"] for one in found[:_MOST_MIXED]]
    shown += [f"So do {len(found) - _MOST_MIXED} more columns."] * (len(found) > _MOST_MIXED)
    between = " --missing " if current_project.get() is None else ", "
    return UserError(
        " ".join(shown),
        hint=f"If these are missing values, pass missing={entries}.",
        topic="mixed_columns",
        word=between.join(map(repr, entries)),
    )
