"""`eqsep init`: a look at a table, and a project file with a comment for each line."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from eqsep.checks import counting_columns, leaking_columns
from eqsep.cli.console import Screen, print_warnings
from eqsep.cli.labelled import is_usual_normal
from eqsep.cli.options import reads_tables
from eqsep.cli.project import ENDING, NAME, Project
from eqsep.errors import UserError
from eqsep.files import written_whole
from eqsep.io.dialect import Layout
from eqsep.io.files import TypedPieces
from eqsep.tables.reading import Column, Table, read_table

_LABEL_WORDS = {
    *("label", "labels", "class", "kind", "target", "attack", "anomaly", "outlier", "fault"),
    *("failure", "defect", "fraud", "category", "diagnosis", "verdict", "status", "outcome", "y"),
}
_GROUP_NAMES = {
    *("run", "machine", "machine_id", "card", "card_id", "host", "device", "device_id", "unit"),
    *("unit_id", "sensor", "sensor_id", "patient", "patient_id", "customer", "customer_id", "user"),
    *("maschine", "anlage", "gerät", "charge", "los", "patient_nr", "karte", "kunde"),
    *("user_id", "batch", "batch_id", "lot", "session", "session_id", "engine", "engine_id"),
}
_TIME_NAMES = {"time", "timestamp", "datetime", "date", "ts", "day", "t"}
_BY_NAME = "the label of normal rows, by its name"
_MOST_LABELS = 50
_FEW_LABELS = 10
_MARKED = 10  # rows at least
_SAMPLED = 100_000  # rows that are looked at
_DISTINCT = 0.95  # of the rows: texts that differ so often are ids


@reads_tables
def init(
    rows: Annotated[
        list[str], typer.Argument(metavar="FILE", help="The table: a file or a folder of files.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The project file (default: eqsep.toml by the table)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    *,
    layout: Layout,
) -> None:
    """Look at a table and write eqsep.toml: label, ids, leaks and dates, with a comment each."""
    first = Path(rows[0])
    folder = first if first.is_dir() else first.parent
    path = out or folder / NAME
    if path.exists() and not force:
        raise UserError(f"{path} exists: edit it, or replace it with --force.")
    with print_warnings():
        model = f"{first.stem.split('.')[0] or 'model'}{ENDING}"
        lines = [*_lines(rows, layout, model=model), *_layout_lines(layout, path.parent)]
        text = "\n".join(lines).rstrip() + "\n"
    with written_whole(path) as file:
        file.write(text.encode())
    Project.read(path)
    console = Screen()
    console.print(text, markup=False, soft_wrap=True)
    console.print(f"Wrote {path}. Check it, then run: eqsep fit {' '.join(rows)}", markup=False)


def _lines(paths: list[str], layout: Layout, *, model: str) -> Iterator[str]:
    """The lines of the project file of a table."""
    rows = _sample(paths, layout)
    labels = _label_column(rows)
    yield "# Options of eqsep for this table: every command reads them; the command line wins."
    yield f"model = {_quoted(model)}  # the file that eqsep fit writes, from this folder"
    yield ""
    if labels is None:
        yield _unlabelled(rows)
        normal = ""
    else:
        counts = labels.counts()
        normal, why = _normal(counts)
        yield f"label = {_quoted(labels.name)}  # {_shown(counts)}{', …' * (len(counts) > 8)}"
        unknown = "" if why == _BY_NAME else "# "
        yield f"{unknown}normal = {_quoted(normal)}  # {why}"
    yield ""
    yield "# Columns to leave out: ids, and what is only known together with the label."
    drops, hints = _drops(rows, labels, normal)
    yield "drop = [" if drops or hints else "drop = [  # none looks like an id"
    for name, why in drops.items():
        yield f"    {_quoted(name)},  # {why}"
    for name, why in hints.items():
        yield f"    # {_quoted(name)},  # {why}"
    yield "]"
    ids = list(drops)
    if ids:
        yield f"keep = {json.dumps(ids, ensure_ascii=False)}  # written with the scores"
    codes = [c.name for c in rows.columns if c.name not in drops and _looks_like_codes(c)]
    if codes:
        listed = json.dumps(codes, ensure_ascii=False)
        yield f"categorical = {listed}  # numbers that look like codes"
    else:
        yield '# categorical = ["zip"]  # columns whose numbers are names'
    yield ""
    others = [c for c in rows.columns if c.name not in drops and c is not labels]
    times = [c.name for c in others if c.kind == "date" or c.name.casefold() in _TIME_NAMES]
    groups = [c.name for c in others if c.name.casefold() in _GROUP_NAMES]
    time, group = (times or ["timestamp"])[0], (groups or ["machine"])[0]
    yield f"# time = {_quoted(time)}  # if rows depend on the rows before: whole blocks calibrate"
    yield f"# group = {_quoted(group)}  # if rows of one machine, card or run are alike"
    yield "# window = 10  # sensors: add mean, deviation and slope of the last rows of a run"
    yield ""
    yield "false_alarm_rate = 0.01  # the share of new normal rows that may raise an alarm"
    yield '# missing = ["-999"]  # words for a missing value, instead of n/a, ?, null, …'
    yield ""


def _unlabelled(rows: Table) -> str:
    """The line where no column looks like labels; the last one may still be."""
    last = rows.columns[-1]
    counts = last.counts()
    if 1 < len(counts) <= _FEW_LABELS and last.kind in ("text", "number", "boolean"):
        check = f"CHECK: the last column may hold labels: {_shown(counts)}"
        return f"# label = {_quoted(last.name)}  # {check}"
    return '# label = "kind"  # no column looks like labels: without one, all rows are normal'


def _shown(counts: Counter[str]) -> str:
    return ", ".join(f"{label} ({n:,})" for label, n in counts.most_common(8))


def _layout_lines(layout: Layout, folder: Path) -> Iterator[str]:
    """How the table is written, as far as options say it."""
    for name, value in vars(layout).items():
        if name == "bad_rows" and value is not None:
            path = os.path.relpath(value.path, folder)
            yield f"bad_rows = {_quoted(path)}  # rows that cannot be read go there"
        elif value is not None:
            shown = list(value) if isinstance(value, tuple) else value
            yield f"{name} = {json.dumps(shown, ensure_ascii=False)}  # as given to eqsep init"


def _sample(paths: list[str], layout: Layout) -> Table:
    """The first rows of the files, as columns."""
    found, n = [], 0
    for batch in TypedPieces(paths, list, layout):
        found.append(batch)
        n += batch.num_rows
        if n >= _SAMPLED:
            break
    if not found:
        raise UserError(f"{', '.join(paths)} has no rows: expected a header and rows below it.")
    return read_table(pa.concat_tables(found, promote_options="permissive"), name="eqsep init")


def _label_column(rows: Table) -> Column | None:
    """The column that most likely holds labels, if there is one: the last of equal ones."""
    likely = max(rows.columns, key=lambda column: (_likeness(column), rows.columns.index(column)))
    return likely if _likeness(likely) > 1 else None


def _likeness(column: Column) -> int:
    """How much a column looks like labels, by its name and its values."""
    if column.kind not in ("text", "boolean", "number"):
        return 0
    values = set(column.counts())
    if not 1 < len(values) <= _MOST_LABELS:
        return 0
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", column.name).casefold())
    named = bool(_LABEL_WORDS & set(words))
    if column.kind == "number":
        return 2 * (named and values == {"0", "1"}) + (named and words[0] in _LABEL_WORDS)
    return 2 * named + 2 * any(map(is_usual_normal, values - {"0", "false"}))


def _normal(counts: Mapping[str, int]) -> tuple[str, str]:
    """The label of normal rows, and why."""
    usual = [label for label in counts if is_usual_normal(label)]
    if len(usual) == 1:
        return usual[0], _BY_NAME
    most = max(usual or counts, key=lambda label: counts[label])
    return most, "CHECK: which label is normal? Name it here: eqsep fit does not guess"


def _drops(
    rows: Table, labels: Column | None, normal: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Columns to leave out, and columns that somebody should look at, each with the reason."""
    others = [column for column in rows.columns if column is not labels]
    drops = {found.fields["column"]: "counts the rows" for found in counting_columns(rows)}
    hints: dict[str, str] = {}
    for column in others:
        if column.kind == "text":
            counts = column.counts()
            if counts.total() > 20 and len(counts) > _DISTINCT * counts.total():
                drops[column.name] = "an id: it differs from row to row"
        elif column.kind == "date":
            hints[column.name] = "a date: leave it out unless the time of a row matters"
    if labels is not None:
        drops.pop(labels.name, None)
        labelled = labels.texts()
        kinds = sorted({text for text in labelled if text not in (None, normal)})
        places = {None: -1, normal: 0} | {kind: i + 1 for i, kind in enumerate(kinds)}
        code = np.array([places[text] for text in labelled])
        for found in leaking_columns(rows, code):
            name = found.fields["column"]
            if name != labels.name and name not in drops:
                hints[name] = "separates the labels alone: leave it out if it comes with the label"
        for column in others:
            if column.name not in (*drops, *hints) and _marks_anomalies(column, code):
                hints[column.name] = (
                    "set in anomalous rows alone: leave it out if it is a label too"
                )
    return drops, hints


def _marks_anomalies(column: Column, code: np.ndarray) -> bool:
    """Whether the rarer of two values comes in anomalous rows alone."""
    names, places = column.names()
    if len(names) != 2 or None in names:
        return False
    rows = places == np.argmin(np.bincount(places))
    return bool(rows.sum() >= _MARKED and (code[rows] > 0).mean() > _DISTINCT)


def _looks_like_codes(column: Column) -> bool:
    """Whether a column of numbers is one of codes, by its name."""
    return column.kind == "number" and column.name.casefold().endswith(
        ("_code", "_type", "zip", "postcode", "protocol")
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
