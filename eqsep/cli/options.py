"""Arguments and options that several commands have: their names, help and checks."""

import csv
import inspect
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from eqsep.cli.console import flag, opt, print_warnings
from eqsep.cli.labelled import InputSpec
from eqsep.cli.project import COLUMN_LISTS, quoted_column
from eqsep.errors import UserError, did_you_mean, quoted
from eqsep.io.dialect import Layout
from eqsep.io.files import check_not_read
from eqsep.io.text import BadRows
from eqsep.io.writing import check_folder

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that eqsep fit wrote.")]
Rows = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="CSV, JSON lines, Parquet, Arrow, Excel, folders of them; - is the input.",
    ),
]
ModelOut = Annotated[Path, opt("MODEL", "The model to write.", "--out")]
Unlabelled = Annotated[
    str, opt("HOW", "Rows that nobody called anomalous: auto, trusted, or doubted if some may be.")
]


def _split_columns(given: list[str] | None) -> list[str]:
    """Names of columns, divided by commas; a name with a comma stands in quotes."""
    return [name for one in csv.reader(given or [], skipinitialspace=True) for name in one]


OnlyAlarms = Annotated[bool, flag("--only-alarms", "Leave out rows that pass.")]
Persist = Annotated[
    str | None, opt("K/N", "Alarms only where K of the last N rows of the run are ones.")
]
Again = Annotated[
    bool, flag("--again", "Learn rows even if they were learnt before: they count twice.")
]
Landmarks = Annotated[int | None, opt("N", "Rows that a model remembers; fewer are quicker.")]
Bandwidth = Annotated[
    float | None, opt("NUMBER", "Kernel bandwidth: larger is wider (0.5 by default).")
]
Rate = Annotated[
    float | None, opt("SHARE", "Of new normal rows that may raise an alarm; else as fitted.")
]
TableOut = Annotated[
    str, opt("FILE", "CSV, JSON lines, Parquet or Arrow; - is the output.", "--out")
]
Form = Annotated[
    str | None, opt("FORM", "csv, jsonl, parquet, arrow, spreadsheet: safe CSV.", "--format")
]
Report = Annotated[Path | None, opt("FILE", "Write a report: one HTML page.")]
Ray = Annotated[str | None, opt("ADDRESS", "Work on this cluster of Ray; local is this machine.")]
Seed = Annotated[int, opt("N", "The same number gives the same result.", min=0, max=2**32 - 1)]


_TEXTS, _PANEL = list[str] | None, "Text files, where they are not understood"
Label = Annotated[str, opt("COLUMN", "The column of labels.")]
Normal = Annotated[
    _TEXTS, opt("LABEL", 'The label of normal rows; else "normal", 0 or false; repeatable.')
]
NormalHere = Annotated[
    _TEXTS, opt("LABEL", "The label of normal rows; else that of the model; repeatable.")
]
_columns = partial(opt, "COLUMNS", callback=_split_columns)
Keep = Annotated[list[str] | None, _columns("Write these columns too; repeatable.")]
Drop = Annotated[_TEXTS, _columns("Leave these columns out: a,b; repeatable.")]
Categorical = Annotated[
    _TEXTS, _columns("Treat these columns as categorical; repeatable.", "--categorical", "--names")
]
Ordered = Annotated[
    bool, flag("--ordered", "Rows are in time order but have no time column: their numbers are it.")
]
TRAINING = {
    "drop": Drop,
    "categorical": Categorical,
    "group": Annotated[
        str | None, opt("COLUMN", "The run, machine or card of each row: held out whole.")
    ],
    "time": Annotated[
        str | None, opt("COLUMN", "When each row was taken: blocks of it are held out.")
    ],
    "window": Annotated[
        int | None, opt("N", "Sensors: add mean, deviation and slope of the last N rows of a run.")
    ],
    "ordered": Ordered,
}
_TEXT_FILES: dict[str, Any] = {
    name: Annotated[kind, opt(metavar, help, *names, rich_help_panel=_PANEL)]
    for name, kind, metavar, help, *names in (
        ("delimiter", str | None, "CHARACTER", "Between values."),
        (
            "header",
            bool | None,
            None,
            "Whether the first line names the columns.",
            "--header/--no-header",
        ),
        ("decimal", str | None, "MARK", "Before decimals: . or ,"),
        ("thousands", str | None, "MARK", "Between groups of three digits."),
        ("encoding", str | None, "NAME", "utf-8, cp1252, utf-16, …"),
        ("skip", int | None, "N", "Lines before the table."),
        (
            "missing",
            _TEXTS,
            "TEXT",
            "Stands for a missing value, in place of n/a, ?, -, null, …; COLUMN=TEXT: in addition "
            "to them in one column; repeatable.",
        ),
        ("sheet", str | None, "NAME", "Of a spreadsheet; else the first that is not empty."),
        (
            "bad_rows",
            Path | None,
            "FILE",
            "Rows that cannot be read go there, with number and reason, and the others go on.",
        ),
    )
}


class Columns(dict[str, Any]):
    """The options of a command that make its `spec`: the files, and what their columns hold."""

    def __init__(self, **kinds: Any) -> None:
        super().__init__(rows=Rows, **kinds)


_REQUIRED, _KEYWORD = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
_FIELDS = {"rows": "paths", "categorical": "names"}  # of a spec, if they have other names


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """The command with options for its `spec`, its `layout`, and the fields of other records."""
    own = inspect.signature(command).parameters
    columns: Columns = own["spec"].annotation.__metadata__[0] if "spec" in own else {}
    records: dict[str, Any] = {
        name: param.annotation
        for name, param in own.items()
        if is_dataclass(param.annotation) and name != "layout"
    }

    def call(layout: Layout, given: dict[str, Any]) -> None:
        if "layout" in own:
            given["layout"] = layout
        if columns:
            values = {_FIELDS.get(name, name): given.pop(name) for name in columns}
            values = {name: value for name, value in values.items() if value is not None}
            given["spec"] = InputSpec(layout=layout, **values)
        for name, kind in records.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in _fields(kind)})
        command(**given)

    @wraps(command)
    def run(**given: Any) -> None:
        text = {name: given.pop(name) for name in _TEXT_FILES}
        text["missing"] = tuple(text["missing"]) if text["missing"] else None
        path = text.pop("bad_rows")
        if path is None:
            call(Layout(**text), given)
            return
        if given.get("ray") is not None:
            raise UserError("--bad-rows and --ray contradict each other: read the rows here.")
        bad = BadRows(path)
        for used in given.values():
            if isinstance(used, str | Path):
                bad.check(used)
        with print_warnings(), bad.written():
            call(Layout(**text, bad_rows=bad), given)

    params = []
    for name, param in own.items():
        if name == "spec":
            params += [_parameter(one, kind) for one, kind in columns.items()]
        elif name in records:
            params += _fields(records[name])
        elif name != "layout":
            params.append(param.replace(kind=_KEYWORD))
    params += [_parameter(name, kind) for name, kind in _TEXT_FILES.items()]
    run.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]
    run.__annotations__ = {param.name: param.annotation for param in params} | {"return": None}
    return run


def _fields(record: Any) -> list[inspect.Parameter]:
    """The fields of a dataclass that are options."""
    return [
        inspect.Parameter(one.name, _KEYWORD, default=one.default, annotation=one.type)
        for one in fields(record)
        if get_origin(one.type) is Annotated
    ]


def _parameter(name: str, kind: Any) -> inspect.Parameter:
    default = _REQUIRED if kind in (Rows, Label) else False if kind is Ordered else None
    return inspect.Parameter(name, _KEYWORD, default=default, annotation=kind)


def this_command(context: typer.Context) -> str:
    """The words that run the present command again, for its report."""
    words = ["eqsep", str(context.info_name)]
    for param in context.command.params:
        value = context.params[str(param.name)]
        if isinstance(value, bool):
            words += (param.opts if value else param.secondary_opts)[:1]
        elif value is not None:
            for one in value if isinstance(value, list | tuple) else [value]:
                is_option = param.param_type_name == "option"
                text = one if param.name not in COLUMN_LISTS else quoted_column(one)
                words += [*param.opts[:1] * is_option, str(text)]
    return shlex.join(words)


def method_names(against: str, known: Collection[str]) -> list[str]:
    """The methods that `--against` names, each once; refuses unknown ones.

    >>> method_names("xgboost, isolation-forest", ["isolation-forest", "xgboost"])
    ['xgboost', 'isolation-forest']
    """
    names = list(dict.fromkeys(filter(None, map(str.strip, against.split(",")))))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(
            f"--against {quoted(unknown)} is not a known method: expected some of "
            f"{', '.join(known)}.{did_you_mean(unknown, list(known))}"
        )
    return names


def check_most(most: int) -> None:
    """Refuse to list less than one row."""
    if most < 1:
        raise UserError(f"--most expects a number of rows, 1 or more, got {most}.")


def check_model_out(path: Path, reads: Sequence[str | Path | None] = ()) -> None:
    """Refuse before the work a place where no model can be written, or that the command reads."""
    if path.is_dir():
        raise UserError(f"{path} is a folder: pass the name of a file for the model.")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is a device or a pipe: pass the name of a file for the model.")
    check_folder(path)
    check_not_read(path, filter(None, reads))


def check_report_out(
    path: Path | None, reads: Sequence[str | Path | None], *, model: Path | None = None
) -> None:
    """Refuse before the work a place where no report can be written, or that the command uses."""
    if path is None:
        return
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a file: pass the name of a file for the report.")
    if model is not None and path.resolve() == model.resolve():
        raise UserError(f"--report and --out are both {path}: pass two names.")
    check_folder(path)
    check_not_read(path, filter(None, reads))
