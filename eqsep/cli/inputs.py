"""What commands read: model files, and the rows of tables as a model takes them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eqsep.arrays import objects
from eqsep.cli.project import NAME, current_project
from eqsep.detector.calibration import checked_rate
from eqsep.detector.model import Model
from eqsep.detector.plan import Plan
from eqsep.detector.runs import PersistentAlarms, Runs
from eqsep.errors import Note, UserError, did_you_mean, quoted, warn
from eqsep.io.dialect import Layout
from eqsep.io.files import Choice, cast, chosen, is_table, pieces
from eqsep.io.inference import is_text, without_missing, written
from eqsep.io.text import unreadable
from eqsep.persistence import ModelFileError, load_model, read_model
from eqsep.persistence.container import MAGIC
from eqsep.tables import reading
from eqsep.tables.reading import NUMERIC, Column, Table, UnreadableError

if TYPE_CHECKING:
    from eqsep.detector import Detector  # which needs scikit-learn

NUMBER = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"
TRUTHS = {"false": "0", "true": "1"}


def load_detector(path: Path, *, rows: Iterable[str] = (), rate: float | None = None) -> "Detector":
    """The detector in a model file, with another false-alarm rate where one is given."""
    detector = _loaded(path, load_model, rows=rows)
    _check_detector(path, detector, getattr(detector, "model_", None))
    if rate is not None:
        detector.false_alarm_rate = checked_rate(rate)
        detector.threshold_  # noqa: B018  warns where rows are too few
    return detector


def load_scoring(path: Path, *, rows: Iterable[str] = (), rate: float | None = None) -> Model:
    """The same without scikit-learn, which takes longer to import than a row to score."""
    model = _loaded(path, read_model, rows=rows)
    _check_detector(path, model, model)
    if rate is None:
        return model
    return model.promising(replace(model.promise, false_alarm_rate=checked_rate(rate)))


def _loaded(path: Path, load: Callable[[Path], Any], *, rows: Iterable[str]) -> Any:
    if not path.exists():
        raise UserError(f"There is no model {path}: write one with eqsep fit.")
    if path.is_file() and not is_model(path):
        models = [file for file in rows if is_model(Path(file))]
        instead = "pass a file that eqsep fit wrote."
        if models:
            instead = f"the model comes first. Pass {models[0]} before {path}."
        elif is_table(path):
            instead = f"make one of a table with eqsep fit {path} --out model.eqsep, and pass that."
        raise UserError(f"{path} is not an eqsep model: {instead}")
    try:
        return load(path)
    except ModelFileError as error:
        raise error.at(str(path)) from error


def _check_detector(path: Path, found: object, model: object) -> None:
    """Refuse a file without a detector; note where the project file has changed since its fit."""
    if not isinstance(model, Model):
        raise UserError(
            f"{path} holds a {type(found).__name__}: expected a detector, as eqsep fit writes it."
        )
    project = current_project.get()
    if project is None or project.model is None or Path(project.model).resolve() != path.resolve():
        return
    dropped, columns = project.values.get("drop", ()), model.plan.table_columns
    learnt = [name for name in dropped if columns.get(name) is not None]
    left_out = [name for name in model.left_out if name not in dropped]
    fitted = [f"with {quoted(learnt)}"] * bool(learnt)
    fitted += [f"without {quoted(left_out)}"] * bool(left_out)
    if fitted:
        warn(
            Note(
                f"drop in {NAME} is not what the model was fitted by: it was fitted "
                f"{' and '.join(fitted)}. To apply drop, fit again."
            )
        )


def is_model(path: Path) -> bool:
    """Whether a file is an eqsep model, by its first bytes."""
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
                    f"The model knows its {len(learnt)} columns by their place, and "
                    f"the table has {len(used)}: {quoted(used)}. Pass these columns alone."
                )
            return [*used, *more]
        used = [name for name, column in learnt.items() if column is not None]
        absent = [column for column in used if column not in there]
        if absent:
            raise UserError(
                f"Column {quoted(absent)} is missing: the model was fitted with it, and the table "
                f"has {quoted(there)}. Add it, empty where a value is not known."
                f"{did_you_mean(absent, [column for column in there if column not in used])}"
            )
        _check_groups(plan, more, there)
        return [*used, *more]

    return choose


def _check_groups(plan: Plan, more: Sequence[str], there: Sequence[str]) -> None:
    """Refuse rows without the column of groups or of times that is asked for, and say why."""
    grouping = plan.holdout.grouping
    if grouping is None:
        return
    for name in filter(None, grouping.columns):
        if name in more and name not in there:
            raise UserError(
                f"Column {name!r} is missing: by it the model holds out whole {grouping.unit}s, "
                f"so that it must know which one each row belongs to. The table has "
                f"{quoted(there)}. Add it.{did_you_mean([name], there)}"
            )


def all_columns(plan: Plan, more: Sequence[str]) -> Choice:
    """All columns of a file, where those that a model needs and some others are there."""
    needed = columns_for(plan, more=more)

    def choose(there: list[str]) -> list[str]:
        chosen(needed(there), there, name="The table")
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
        return cast(table.column(name), reads)
    return cast(table.column(name), reads, written(field, known))


@contextmanager
def errors_placed(name: str, *, before: int) -> Iterator[None]:
    """Let errors in a piece name its file and row; so many rows came `before` the piece."""
    try:
        yield
    except UnreadableError as error:
        raise error.at(f"{name}, row {before + error.row + 1:,}") from error
    except UserError as error:
        raise error.at(name) from error


def pieces_for(
    plan: Plan | None, paths: Sequence[str], choose: Choice, *, layout: Layout
) -> Iterator[tuple[str, pa.Table]]:
    """Some thousand rows at a time, with the name of their file; text files give strings."""
    find_bad = None if plan is None else partial(_unreadable, plan=plan)
    for name, table in pieces(paths, choose, layout=layout, find_bad=find_bad):
        yield name, table if plan is None else _without_missing(table, plan, layout)


def placed_pieces(
    plan: Plan, paths: Sequence[str], choose: Choice, *, layout: Layout
) -> Iterator[tuple[str, pa.Table, int]]:
    """The same, with how many rows of its file came before each piece."""
    done: Counter[str] = Counter()
    for name, table in pieces_for(plan, paths, choose, layout=layout):
        yield name, table, done[name]
        done[name] += table.num_rows


def _without_missing(table: pa.Table, plan: Plan, layout: Layout) -> pa.Table:
    """The table with null for the words that the options name as missing values."""
    for name in plan.table_columns if layout.missing else ():
        words = layout.said_missing(name)
        if words and name in table.schema.names and is_text(table.schema.field(name).type):
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
        raise UserError(
            f"--persist must be two whole numbers as in 3/5, the first at least 1 and not above "
            f"the second, got {text!r}."
        )
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
                    f"Column {self.grouped.group!r} is missing: it says which run a row is of, and "
                    f"windows and alarms that persist go on within a run. The table has "
                    f"{quoted(there)}."
                )
            return columns_for(self.model.plan, more=[*more, *self._there(there).names])(there)

        return choose

    def _there(self, names: list[str]) -> GroupColumns:
        """The same without a missing column of times: rows are then in their order."""
        return self.grouped if self.grouped.time in names else replace(self.grouped, time=None)

    def __call__(self, table: pa.Table) -> Table:
        """The rows of a piece."""
        rows = as_read(table, self.model.plan)
        if self.looks_back:
            rows = self._there(table.schema.names).attach(rows, table)
        return rows if self.windows is None else self.windows.transform(rows, runs=self.runs)

    def persisting(self, alarm: np.ndarray, rows: Table) -> np.ndarray:
        """Which alarms stay: those of runs in which enough of the last rows are alarms."""
        if self.alarms is None:
            return alarm
        return self.alarms.update(alarm, None if rows.groups is None else rows.groups.group)


def _column(table: pa.Table, name: str, *, reads: Sequence[str]) -> Column:
    """A column of a table, strings in the first type that all of them can have."""
    column = table.column(name)
    types = (found for kind in reads if (found := cast(column, kind)).type != column.type)
    column = next(types, column)
    if reads == ["text"] and not pa.types.is_string(column.type):
        column = pa.chunked_array([pa.array(label_texts(column, name), pa.string())])
    found = reading.read_table(pa.table({name: column}), name="Detector")
    return found.columns[0]


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
    found: np.ndarray = texts[array.indices.fill_null(len(distinct)).to_numpy()]
    return found


def folded(text: str) -> str:
    """Text as it is compared: without case and blanks around it."""
    return text.strip().casefold()
