"""`eqsep init`: a look at a table, and a project file with a comment for each line."""

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path

import numpy as np

from eqsep.checks import FEWEST_TIMES, TIME_WORDS, counting_columns, leaking_columns, name_words
from eqsep.cli.console import Screen, arg, flag, opt, print_warnings
from eqsep.cli.inputs import folded, is_usual_normal
from eqsep.cli.options import reads_tables
from eqsep.cli.project import ENDING, NAME, Project, current_project
from eqsep.errors import Note, UserError, quoted, warn
from eqsep.files import written_whole
from eqsep.io.dialect import Layout
from eqsep.io.files import chosen, files_of, joined, mixed_columns, no_rows, open_file, pieces
from eqsep.io.inference import understood
from eqsep.io.notation import is_number
from eqsep.io.notes import without_notes
from eqsep.io.streams import WESTERN, decoded, raw_stream
from eqsep.io.text import BadRows, CsvFile
from eqsep.labels import usual_normal
from eqsep.tables.reading import NUMERIC, Column, Table, read_table

_RATES = (0.01, 0.02, 0.05, 0.1)  # the least that half of the normal rows can promise
_LABEL_WORDS = {
    *("label", "labels", "class", "kind", "target", "attack", "anomaly", "outlier", "fault"),
    *("failure", "defect", "fraud", "category", "diagnosis", "verdict", "status", "outcome", "y"),
    *("result", "results", "severity", "churn", "attrition", "dead", "died"),
}
_NORMAL_WORDS = {"negative", "neg", "negativ", "no", "nein", "none"}  # and of many other columns
_GROUP_NAMES = {
    *("run", "machine", "machine_id", "card", "card_id", "host", "device", "device_id", "unit"),
    *("unit_id", "sensor", "sensor_id", "patient", "patient_id", "customer", "customer_id", "user"),
    *("maschine", "anlage", "gerät", "charge", "los", "patient_nr", "karte", "kunde"),
    *("user_id", "batch", "batch_id", "lot", "session", "session_id", "engine", "engine_id"),
}
_GROUP_WORDS = {"station", "line", "pump", "site", "plant", "robot", "turbine", "vehicle", "meter"}
_GROUP_WORDS |= {name for name in _GROUP_NAMES if "_" not in name}  # last in the name of texts
_ID_WORDS = {"id", "nr", "no", "name", "number", "code"}  # after such a word
_SHOWN_LABELS = 8
_MANY_ROWS = 10  # of each group, at least on average
_DATE_PARTS = {"year", "month", "day", "jahr", "monat", "tag"}
_LAST_DAY = 31  # of a month: whole numbers up to it that start again are parts of a date
_RESTARTS = 0.05  # of the rows: at most so often times start again, with a new run
_YEARS = 946_684_800, 4_102_444_800  # the years 2000 to 2100, in seconds
_UNITS = (1, 10**3, 10**6, 10**9)  # of a second: seconds, milliseconds and so on
_CODES = ("_code", "_type", "zip", "postcode", "protocol")  # ends of names of numbers
_KNOWN_BEFORE = "Known before? Then remove this line"
_SORTED = "rises or falls from row to row: a counter or time, or are the rows only sorted by it?"
_LATER = "later rows lie beyond it; remove this line if it matters"
# What the place of texts adds to their likeness to labels.
_FIRST_BONUS, _LAST_BONUS = 0.2, 0.3
_MOST_LABELS = 50
_FEW_LABELS = 10
_MANY_LABELS = 20  # kinds: more are less likely
_SAMPLED = 100_000  # rows that are looked at
_quoted = partial(json.dumps, ensure_ascii=False)  # as TOML writes texts, numbers and lists
_DISTINCT = 0.95  # of the rows: texts that differ so often are ids


@reads_tables
def init(
    rows: list[str] = arg(..., "FILE", "The table: a file or a folder of files."),
    out: Path | None = opt(None, "FILE", "Project file (default: eqsep.toml next to the data)."),
    label: str | None = opt(None, "COLUMN", "The label column (default: the likeliest)."),
    force: bool = flag("--force", "Replace an existing file."),
    *,
    layout: Layout,
    bad_rows: BadRows | None,
) -> None:
    """Look at a table and write eqsep.toml: label, ids, leaks and dates, with comments."""
    first = Path(rows[0])
    folder = first if first.is_dir() else first.parent
    path = out or folder / NAME
    if path.exists() and not force:
        raise UserError(f"{path} exists: edit it, or replace it with --force.")
    with print_warnings():
        model = f"{first.stem.split('.')[0] or 'model'}{ENDING}"
        table, unread = _sample(rows, layout, bad_rows=bad_rows, label=label)
        lines = [
            *_lines(table, model=model, label=label),
            *_missing_lines(unread, layout),
            *_layout_lines(rows, layout, bad_rows=bad_rows, folder=path.parent),
        ]
        text = "\n".join(lines).rstrip() + "\n"
        outer = current_project.set(Project(path, {}))  # hints of notes name its keys
    current_project.reset(outer)
    with written_whole(path) as file:
        file.write(text.encode())
    Project.read(path)
    console = Screen()
    console.print(text, markup=False, soft_wrap=True)
    do = "Decide on its lines marked CHECK" if "# CHECK" in text else "Check it"
    do = "Name the column of labels in it, if there is one" if "\n# label:" in text else do
    console.print(f"Wrote {path}. {do}, then run: eqsep fit {' '.join(rows)}", markup=False)


def _lines(rows: Table, *, model: str, label: str | None) -> Iterator[str]:
    found = _candidates(rows, label)
    likeness, likely = found[0] if found else (0, None)
    labels = likely if likeness > 1 else None
    yield "# Options of eqsep for this table: every command reads them; the command line wins."
    yield f"model = {_quoted(model)}  # the file that eqsep fit writes, in this folder"
    yield ""
    counts = Counter[str]() if likely is None else _label_counts(likely)
    normal, is_sure = _normal(counts) if counts else ("", False)
    n_normal = rows.n_rows
    names = {column.name for _, column in found}
    texts = (one for one in rows.columns if one.kind == "text" and one.name not in names)
    few = [_quoted(text.name) for text in texts if 1 < len(text.counts()) <= _MANY_LABELS]
    if likely is None:
        hint = f" (text columns with few values: {', '.join(few)})" if few else ""
        yield f"# label: no column is clearly one of labels{hint}; without it, nobody has looked"
        yield "# clean = true  # if all rows are known to be normal"
    elif labels is None:
        yield f"# label = {_quoted(likely.name)}  # CHECK: may hold labels: {_shown(counts)}"
    else:
        n_normal = counts.get(normal, rows.n_rows)
        yield f"label = {_quoted(labels.name)}  # {_shown(counts)}"
    for likeness, other in found[1 : _SHOWN_LABELS + 1]:
        kinds = _label_counts(other)
        # with texts in the last column
        has_more = len(counts) == 2 < len(kinds) and likeness > _FIRST_BONUS
        if likeness > 1 or has_more or not (is_sure and labels):
            yield f"# CHECK: or label = {_quoted(other.name)}?  {_shown(kinds)}"
    if few and likely is not None and labels is None:
        yield f"# or another text column with few values: {', '.join(few)}"
    if is_sure:
        on = "# " * (labels is None)
        why = "as 0 usually is" if normal == "0" else "by its name"
        yield f"{on}normal = {_quoted(normal)}  # the label of normal rows, {why}"
    elif normal == "0":
        why = "eqsep fit takes 0 for normal unless you name another label"
        yield f'# normal = "0"  # CHECK: {why}: {_shown(counts)}'
    elif counts:
        yield f'# normal = "..."  # CHECK: choose the label of normal rows: {_shown(counts)}'
        if n_without := rows.n_rows - counts.total():
            rest = f"if these are all anomalies, and the {n_without:,} rows without a label are not"
            yield f'# normal = "normal"  # {rest}'
        elif len(counts) > 2:
            yield "# Several labels may be normal: a list of them."
    yield ""
    if likely is None:
        yield "# Columns to leave out: ids and dates. With a label, eqsep fit warns of columns that"
        yield "# give it away, too."
    else:
        yield "# Columns to leave out: ids, dates, and what is only known together with the label."
    others = [column for column in rows.columns if column is not labels]
    drops, hints = _drops(
        rows, others, likely, normal, doubt="" if is_sure else f"if {normal!r} is normal, "
    )
    yield "drop = [" if drops or hints else "drop = [  # none looks like an id"
    for name, why in drops.items():
        yield f"    {_quoted(name)},  # {'(no name) ' * (not name)}{why}"
    for name, why in hints.items():
        yield f"    # {_quoted(name)},  # {why}"
    yield "]"
    parts = [c.name for c in others if c.name.casefold() in _DATE_PARTS and c.kind == "number"]
    parts = parts if len(parts) > 1 else []
    times = _time_columns([c for c in others if c.name not in parts], _RESTARTS * (not parts))
    groups = {c.name: "" for c in others if _may_be_group(c, rows.n_rows)}
    ids = [c for c in others if c.name in drops.keys() - {*times, *groups}]
    groups |= {c.name: why for c in ids if (why := _shared(c))}
    leaks = {name for name, why in drops.items() if why.endswith(_KNOWN_BEFORE)}
    which = {*drops, *times[:1], *groups} - {*parts} - leaks
    kept = [column.name for column in others if column.name in which]
    if kept:
        yield f"keep = {_quoted(kept)}  # written with the scores: which row it is"
    numbers = [c.name for c in rows.columns if c.kind == "number" and c.name not in drops]
    codes = [name for name in numbers if name.casefold().endswith(_CODES)]
    if codes:
        yield f"categorical = {_quoted(codes)}  # numbers that look like codes"
    else:
        yield "# categorical = []  # columns whose numbers are names, such as postcodes"
    yield ""
    if times:
        stays = ", and may stay in drop" * (times[0] in drops)
        yield f"# time = {_quoted(times[0])}  # if rows depend on those before; not learnt{stays}"
    elif parts:
        join = f"join {', '.join(map(_quoted, parts))} into one column of dates, and name it"
        yield f"# time: {join} if rows depend on those before"
    else:
        yield "# ordered = true  # no times found: if rows are in order and depend on those before"
    alike = "if rows of one machine, card or run are alike"
    if groups:
        name, why = next(iter(groups.items()))
        yield f"# group = {_quoted(name)}  # {why}{alike}; not learnt"
    else:
        yield f"# group: no column found by its name; name one {alike}"
    yield "# window = 10  # sensors: add mean, deviation and slope of the last rows of a run"
    yield ""
    rate = next((rate for rate in _RATES if n_normal // 2 >= 1 / rate - 1), _RATES[-1])
    yield f"false_alarm_rate = {rate}  # the share of new normal rows that may raise an alarm"


def _missing_lines(unread: list[str], layout: Layout) -> Iterator[str]:
    """The words for a missing value that were given, or those that stand among numbers."""
    listed = ", ".join(map(_quoted, unread))
    if layout.missing:
        why = f"words for a missing value; add {listed}?" if unread else "as given to eqsep init"
        yield f"missing = {_quoted(list(layout.missing))}  # {why}"
    elif unread:
        yield f"# missing = [{listed}]  # CHECK: COLUMN=word; are these missing values?"
    else:
        more = "words for a missing value, instead of n/a, ?, null, …; COLUMN=word for one column"
        yield f'# missing = ["-999"]  # {more}'
    yield ""


def _shown(counts: Counter[str]) -> str:
    shown = [f"{label} ({n:,})" for label, n in counts.most_common(_SHOWN_LABELS)]
    return ", ".join(shown + ["…"] * (len(counts) > _SHOWN_LABELS))


def _layout_lines(
    paths: list[str], layout: Layout, *, bad_rows: BadRows | None, folder: Path
) -> Iterator[str]:
    """How the table is written, as far as options or its bytes say it."""
    for name, value in vars(layout).items():
        if value is not None and name != "missing":
            yield f"{name} = {_quoted(value)}  # as given to eqsep init"
    if bad_rows is not None:
        path = os.path.relpath(bad_rows.path, folder)
        yield f"bad_rows = {_quoted(path)}  # rows that cannot be read go there"
    first = files_of(paths)[0]
    if not Path(first).is_file():
        return
    with open_file(first, layout=layout, bad_rows=bad_rows) as file:
        if not isinstance(file, CsvFile):
            return
        delimiter = file.dialect.delimiter
        is_usual = delimiter == "," or (delimiter == "\t" and ".tsv" in Path(first).suffixes)
        is_known = is_usual or file.dialect.split is not None or len(file.columns) == 1
        if layout.delimiter is None and not is_known:
            yield f"delimiter = {_quoted(delimiter)}  # between values"
    if layout.encoding is None and _is_western(first):
        yield f"encoding = {_quoted(WESTERN)}  # the text is not UTF-8"


def _is_western(path: str) -> bool:
    """Whether no line with other letters than ASCII is UTF-8, in the first lines of a file."""
    with raw_stream(path) as raw:
        lines = [line for line in islice(raw, _SAMPLED) if not line.isascii()]
    return bool(lines) and all(
        b"\0" not in line and decoded(line).encode(WESTERN, "ignore") == line for line in lines
    )


def _sample(
    paths: list[str], layout: Layout, *, bad_rows: BadRows | None, label: str | None
) -> tuple[Table, list[str]]:
    """The first rows, read as by a fit, and as "column=word" the words among numbers."""
    parts, n = [], 0
    for name, piece in pieces(paths, list, layout=layout, bad_rows=bad_rows):
        layout.check_missing(piece.schema.names, name=name)
        chosen([] if label is None else [label], piece.schema.names, name=name)
        parts += [piece] if piece.num_rows else []
        n += piece.num_rows
        if n >= _SAMPLED:
            break
    if not parts:
        raise no_rows(paths)
    written = joined(parts)
    with without_notes():  # they are repeated below
        found = mixed_columns(understood(written, layout), categorical=[label or ""])
        mixed = {one.name: one.few_words for one in found if one.few_words}
    unread = [f"{name}={word}" for name, words in mixed.items() for word in words]
    if unread:
        shown = ", ".join(f"{quoted(words, most=3)} in {name!r}" for name, words in mixed.items())
        message = f"Words among numbers or dates: {shown}. eqsep fit stops at them."
        warn(Note(f"{message} If they are missing values, list them under missing in the file."))
    rows = understood(written, replace(layout, missing=(*(layout.missing or ()), *unread) or None))
    return read_table(rows, name="eqsep init"), unread


def _label_counts(column: Column) -> Counter[str]:
    """The rows of each label; labels that a fit takes for one are one, as most rows spell it."""
    spelt: dict[str, Counter[str]] = {}
    for text, n in column.counts().items():
        spelt.setdefault(folded(text), Counter())[text.strip()] += n
    return Counter({one.most_common(1)[0][0]: one.total() for one in spelt.values()})


def _candidates(rows: Table, label: str | None) -> list[tuple[float, Column]]:
    """How much columns look like labels, the likeliest first: above 1 clearly, above 0 maybe."""
    if label is not None:
        return [(math.inf, column) for column in rows.columns if column.name == label]
    found = []
    for column in rows.columns:
        place = _LAST_BONUS * (column is rows.columns[-1])
        place = place or _FIRST_BONUS * (column is rows.columns[0])
        likeness = _likeness(column, 0 if _may_be_group(column, rows.n_rows) else place)
        if likeness > 1 or (likeness > 0 and len(_label_counts(column)) <= _FEW_LABELS):
            found.append((likeness, column))
    return sorted(found, key=itemgetter(0), reverse=True)


def _likeness(column: Column, place: float) -> float:
    """The sum for the name of a column, its values, and its place among the columns."""
    counts = _label_counts(column) if column.kind in ("text", "number", "boolean") else {}
    if not 1 < len(counts) <= _MOST_LABELS:
        return 0
    words = name_words(column.name)
    named = bool(_LABEL_WORDS & set(words))
    if column.kind == "number":
        place = 0.1 * (place == _LAST_BONUS) + 0.5 * named
        likeness = 2.0 * (named and counts.keys() == {"0", "1"})
    else:
        texts = {text for text in counts if folded(text) not in ("0", "false")}
        may_mean = any(is_usual_normal(text) or folded(text) in _NORMAL_WORDS for text in texts)
        means = any(_means_normal(text, counts) for text in texts)
        likeness = 2 * named + max(2 * means, may_mean * (1 if named else 0.15))
    missing = 1 - sum(counts.values()) / len(column.names()[1])
    return (likeness + place) * (1 - missing / 4) - (len(counts) > _MANY_LABELS) / 4


def _means_normal(label: str, counts: Mapping[str, int]) -> bool:
    """Whether a label is one for normal rows: "good" only where most rows have it."""
    is_most = counts[label] == max(counts.values())
    return bool(usual_normal([label])) or (is_usual_normal(label) and is_most)


def _normal(counts: Counter[str]) -> tuple[str, bool]:
    """The likeliest label of normal rows, and whether its name says so: 0 only if most have it."""
    usual = [label for label in counts if is_usual_normal(label)]
    if len(usual) == 1 and _means_normal(usual[0], counts):
        is_most = 2 * counts[usual[0]] > counts.total()
        return usual[0], is_most or not all(map(is_number, counts))
    return max(usual or counts, key=lambda label: counts[label]), False


def _drops(
    rows: Table, others: list[Column], labels: Column | None, normal: str, *, doubt: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Columns to leave out, and columns that somebody should look at, each with the reason."""
    named = {found.fields["column"] for found in counting_columns(rows)}
    why = ("counts or names the rows", "an id or a date that rows share")
    drops = {c.name: why[bool(_shared(c))] for c in rows.columns if c.name in named}
    hints = {c.name: _SORTED for c in rows.columns if c.name in named and _may_be_sorted_by(c)}
    drops = {name: why for name, why in drops.items() if name not in hints}
    for column in others:
        if column.kind == "text":
            counts = column.counts()
            if counts.total() > 20 and len(counts) > _DISTINCT * counts.total():
                drops[column.name] = "an id: it differs from row to row"
            elif len(counts) > max(_MOST_LABELS, counts.total() / _MANY_ROWS):
                some = f"{len(counts):,} names in {counts.total():,} rows"
                hints[column.name] = (
                    f"{some}: are these ids that new rows will not share? Then drop it"
                )
        elif column.kind == "date":
            drops[column.name] = f"a date: {_LATER}"
        elif _is_unix(column):
            drops[column.name] = f"Unix times: {_LATER}"
    if labels is not None:
        drops.pop(labels.name, None)
        kinds = sorted(label for label in _label_counts(labels) if label != normal)
        places = {folded(kind): i for i, kind in enumerate([normal, *kinds])} | {None: -1}
        code = np.array([places[text and folded(text)] for text in labels.texts()])
        kept = [c for c in others if c is not labels and (c.name not in drops or c.kind == "date")]
        for found in leaking_columns(replace(rows, columns=kept), code, kinds):
            name = found.fields["column"]
            leak = found.message.removeprefix(f"Column {name!r} alone ").rstrip(".")
            if name in drops:
                drops[name] = f"{doubt}{leak}. {_KNOWN_BEFORE}"
            else:
                hints[name] = f"{doubt}{leak}. Known only afterwards? Then drop it"
    return drops, hints


def _may_be_sorted_by(column: Column) -> bool:
    """Whether numbers that rise or fall all along may be measured: not whole, or some equal."""
    values = column.values
    is_measured = bool((values % 1).any()) or len(np.unique(values)) < len(values)
    steps = np.diff(np.unique(values))
    is_even = len(steps) > 0 and steps.std() < steps.mean() / 2
    is_named = {*TIME_WORDS, *_ID_WORDS} & set(name_words(column.name))
    return is_measured and not is_even and not is_named and not _shared(column)


def _time_columns(columns: list[Column], restarts: float) -> list[str]:
    """Columns of dates or Unix times, and of numbers that are named so and order the rows."""
    signs = {
        column.name: (column.kind == "date", _is_unix(column), _is_clock(column, restarts))
        for column in columns
        if column.kind in NUMERIC and len(np.unique(column.values)) >= FEWEST_TIMES
    }
    return sorted((name for name in signs if any(signs[name])), key=signs.__getitem__, reverse=True)


def _is_clock(column: Column, restarts: float) -> bool:
    """Whether values are named like times, and rise but for this share of steps to a new run."""
    values = column.values[~np.isnan(column.values)]
    steps = np.diff(values)
    falls = np.count_nonzero(steps < 0)
    if not TIME_WORDS & set(name_words(column.name)) or falls > restarts * len(steps):
        return False
    is_part = falls and values.max() <= _LAST_DAY and not (values % 1).any()
    return not is_part


def _is_unix(column: Column) -> bool:
    """Whether numbers are Unix times, by their range, and by their name or steps."""
    if column.kind != "number":
        return False
    values = column.values[~np.isnan(column.values)]
    steps = np.diff(values)
    rises = bool((steps >= 0).all() and (steps > 1).any())  # numbers of rows rise by 1
    if not len(values) or not (rises or TIME_WORDS & set(name_words(column.name))):
        return False
    (first, last), low, high = _YEARS, values.min(), values.max()
    return any(unit * first <= low and high < unit * last for unit in _UNITS)


def _shared(column: Column) -> str:
    """How rows share the values of a column of ids or days; empty if each has another."""
    values = column.names()[1] if column.kind == "text" else column.values
    n_values, n_runs = len(np.unique(values)), 1 + np.count_nonzero(np.diff(values))
    if n_values == n_runs and 3 * n_values <= len(values) and not (values % 1).any():
        return f"{n_values:,} values, each in a run of rows: "
    is_id = name_words(column.name)[-1:] == ["id"] and n_values < len(values)
    return f"{n_values:,} values in {len(values):,} rows: " if is_id else ""


def _may_be_group(column: Column, n_rows: int) -> bool:
    """Whether a column is named like a machine or run, and several rows share each value."""
    values = column.names()[1] if column.kind in ("text", "mixed") else column.values
    n_values = len(np.unique(values))
    if column.name.casefold() in _GROUP_NAMES:
        return 2 * n_values <= n_rows
    words = [word for word in name_words(column.name) if word not in _ID_WORDS]
    has_many = 1 < n_values <= n_rows / _MANY_ROWS
    return column.kind == "text" and words[-1:] != [] and words[-1] in _GROUP_WORDS and has_many
