"""Arguments and options that several commands have: their names, help and checks."""

import csv
import inspect
import shlex
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import typer
from typer.models import OptionInfo

from eqsep.cli.console import arg, flag, opt, print_warnings
from eqsep.cli.inputs import InputSpec
from eqsep.cli.project import COLUMN_LISTS, current_project, label_column, quoted_column
from eqsep.errors import UserError, did_you_mean, quoted
from eqsep.io.dialect import Layout
from eqsep.io.files import check_not_read
from eqsep.io.text import BadRows
from eqsep.io.writing import check_folder


def _split_columns(given: list[str] | None) -> list[str]:
    """Names of columns, divided by commas; a name with a comma stands in quotes."""
    return [name for one in csv.reader(given or [], skipinitialspace=True) for name in one or [""]]


_columns = partial(opt, None, "COLUMNS", callback=_split_columns)
MODEL = arg(..., "MODEL", "A file that eqsep fit wrote; or set model in eqsep.toml.")
ROWS = arg(..., "FILE", "CSV, JSON lines, Parquet, Arrow, Excel, or folders of them; - is stdin.")
MODEL_OUT = opt(..., "MODEL", "The model to write; or set model in eqsep.toml.", "--out")
UNLABELLED = opt(
    "auto", "HOW", "Rows not labelled anomalous: auto, trusted, or doubted (some may be)."
)
CLEAN = flag("--clean", "Rows without a label are known to be normal (--unlabelled trusted).")
KEEP = _columns("Write these columns too; repeatable.")
ONLY_ALARMS = flag("--only-alarms", "Leave out rows that pass.")
PERSIST = opt(None, "K/N", "Raise an alarm only if K of the last N rows of a run are alarms.")
AGAIN = flag("--again", "Learn rows even if the model has learnt them before: they count twice.")
LANDMARKS = opt(None, "N", "Number of landmarks: rows that the model keeps; fewer is faster.")
CONFIDENCE = opt(
    None, "SHARE", "Share of models that keep that rate (default: it holds on average)."
)
UNSEEN_RATE = opt(0.05, "SHARE", "Share of rows of seen kinds that may be called unseen.")
BANDWIDTH = opt(None, "NUMBER", "Kernel bandwidth; larger is wider (default: 0.5).")
RATE = opt(None, "SHARE", "Share of new normal rows that may raise an alarm (default: as fitted).")
TABLE_OUT = opt("-", "FILE", "CSV, JSON lines, Parquet or Arrow; - is stdout.", "--out")
FORM = opt(None, "FORM", "csv, jsonl, parquet, arrow, or spreadsheet (safe CSV).", "--format")
REPORT = opt(None, "FILE", "Write a report: one HTML page.")
RAY = opt(None, "ADDRESS", "Run on this Ray cluster; local is this machine.")
SEED = opt(0, "N", "Random seed: the same number gives the same result.", min=0, max=2**32 - 1)

LABEL = opt(..., "COLUMN", "The label column; or set label in eqsep.toml.")
NORMAL = opt(None, "LABEL", 'The label of normal rows (default: "normal", "ok", 0, …); repeatable.')
NORMAL_HERE = opt(None, "LABEL", "The label of normal rows (default: as in the model); repeatable.")
TRAINING = {
    "normal": NORMAL,
    "drop": _columns("Leave out these columns: a,b; repeatable."),
    "categorical": _columns(
        "Treat these columns as categorical; repeatable.", "--categorical", "--names"
    ),
    "group": opt(None, "COLUMN", "Run, machine or card of each row; held out whole."),
    "time": opt(None, "COLUMN", "Time of each row; whole blocks are held out."),
    "window": opt(None, "N", "Sensors: add mean, deviation and slope of the last N rows of a run."),
    "ordered": flag(
        "--ordered", "Rows are in time order but have no time column: use row numbers."
    ),
}
_text_file = partial(opt, None, rich_help_panel="Text files, if the format is not recognised")
_TEXT_FILES = {
    "delimiter": _text_file("CHARACTER", "Character between values."),
    "header": _text_file(None, "Whether the first line names the columns.", "--header/--no-header"),
    "decimal": _text_file("MARK", "Decimal mark: . or ,"),
    "thousands": _text_file("MARK", "Thousands mark."),
    "encoding": _text_file("NAME", "Text encoding: utf-8, cp1252, utf-16, …"),
    "skip": _text_file("N", "Skip this many lines before the table."),
    "missing": _text_file(
        "TEXT",
        "Treat this as a missing value instead of n/a, ?, -, null, …; COLUMN=TEXT adds a word "
        "for one column; repeatable.",
    ),
    "sheet": _text_file("NAME", "Sheet of a spreadsheet (default: the first that is not empty)."),
    "bad_rows": _text_file(
        "FILE", "Write rows that cannot be read to this file, with the reason, and continue."
    ),
}
_KINDS: dict[str, Any] = {
    "rows": list[str],
    **dict.fromkeys(("normal", "seen", "drop", "categorical", "missing"), list[str] | None),
    **dict.fromkeys(("window", "skip"), int | None),
    "ordered": bool,
    "header": bool | None,
    "bad_rows": Path | None,
}  # of options whose value is not a text


def columns(**given: Any) -> Any:
    """The options of a command that make its `spec`: the files, and what their columns hold."""
    return {"rows": ROWS, **given}


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_FIELDS = {"rows": "paths", "categorical": "names"}  # of a spec, if they have other names


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """The command with options for its `spec`, its `layout` and `bad_rows`, and other records."""
    own = inspect.signature(command).parameters
    columns: dict[str, Any] = own["spec"].default if "spec" in own else {}
    records: dict[str, Any] = {
        name: param.annotation
        for name, param in own.items()
        if is_dataclass(param.annotation) and name not in ("layout", "spec")
    }

    @wraps(command)
    def run(**given: Any) -> None:
        text = {name: given.pop(name) for name in _TEXT_FILES}
        text["missing"] = tuple(text["missing"]) if text["missing"] else None
        path, bad_rows = text.pop("bad_rows"), None
        if path is not None and given.get("ray") is not None:
            raise UserError("--bad-rows and --ray contradict each other: read the rows here.")
        label_column.set(given.get("label"))
        with ExitStack() as stack:
            if path is not None:
                bad_rows = BadRows(path)
                for used in given.values():
                    if isinstance(used, str | Path):
                        bad_rows.check(used)
                stack.enter_context(print_warnings())
                stack.enter_context(bad_rows.written())
            layout = Layout(**text)
            texts = {"layout": layout, "bad_rows": bad_rows}
            given |= {name: value for name, value in texts.items() if name in own}
            if columns:
                values = {_FIELDS.get(name, name): given.pop(name) for name in columns}
                values = {name: value for name, value in values.items() if value is not None}
                given["spec"] = InputSpec(layout=layout, bad_rows=bad_rows, **values)
            for name, kind in records.items():
                given[name] = kind(**{one.name: given.pop(one.name) for one in _fields(kind)})
            command(**given)

    params = []
    for name, param in own.items():
        if name == "spec":
            params += [_parameter(*one) for one in columns.items()]
        elif name in records:
            params += _fields(records[name])
        elif name not in ("layout", "bad_rows"):
            params.append(param.replace(kind=_KEYWORD))
    params += [_parameter(*one) for one in _TEXT_FILES.items()]
    run.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]
    run.__annotations__ = {param.name: param.annotation for param in params} | {"return": None}
    return run


def _fields(record: Any) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(one.name, _KEYWORD, default=one.default, annotation=one.type)
        for one in fields(record)
        if isinstance(one.default, OptionInfo)
    ]


def _parameter(name: str, given: Any) -> inspect.Parameter:
    return inspect.Parameter(name, _KEYWORD, default=given, annotation=_KINDS.get(name, str | None))


def this_command(context: typer.Context) -> str:
    """The words that run the present command again, for its report."""
    words, project = ["eqsep", str(context.info_name)], current_project.get()
    for param in context.command.params:
        name = str(param.name)
        value, source = context.params[name], context.get_parameter_source(name)
        by_line = source is not None and source.name == "COMMANDLINE"
        if project is not None and (not by_line or str(value) == project.model):
            continue  # the project file gives it again
        if isinstance(value, bool):
            words += (param.opts if value else param.secondary_opts)[:1]
        elif value is not None:
            for one in value if isinstance(value, list | tuple) else [value]:
                is_option = param.param_type_name == "option"
                text = one if param.name not in COLUMN_LISTS else quoted_column(one)
                words += [*param.opts[:1] * is_option, str(text)]
    return shlex.join(words)


def method_names(against: str, known: Collection[str]) -> list[str]:
    """The methods that `--against` names, each once; refuses unknown ones."""
    names = list(dict.fromkeys(filter(None, map(str.strip, against.split(",")))))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(
            f"--against {quoted(unknown)} is not a known method: expected some of "
            f"{', '.join(known)}.{did_you_mean(unknown, list(known))}"
        )
    return names


def trust(unlabelled: str, *, clean: bool) -> str:
    """What rows without a label are, by --unlabelled and --clean."""
    if clean and unlabelled not in ("auto", "trusted"):
        raise UserError(
            f"--clean and --unlabelled {unlabelled} contradict each other: leave out one of them."
        )
    return "trusted" if clean else unlabelled


def check_most(most: int) -> None:
    if most < 1:
        raise UserError(f"--most expects a number of rows, 1 or more, got {most}.")


def check_model_out(
    path: Path, reads: Sequence[str | Path | None] = (), *, what: str = "model"
) -> None:
    """Refuse before the work a place where nothing can be written, or that the command reads."""
    if path.exists() and not path.is_file():
        found = "folder" if path.is_dir() else "device or a pipe"
        raise UserError(f"{path} is a {found}: pass the name of a file for the {what}.")
    check_folder(path)
    check_not_read(path, filter(None, reads))


def check_report_out(
    path: Path | None, reads: Sequence[str | Path | None], *, model: Path | None = None
) -> None:
    """Refuse before the work a place where no report can be written, or that the command uses."""
    if path is None:
        return
    if model is not None and path.resolve() == model.resolve():
        raise UserError(f"--report and --out are both {path}: pass two names.")
    check_model_out(path, reads, what="report")
