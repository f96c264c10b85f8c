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

from eqsep.cli.console import print_warnings
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
ModelOut = Annotated[Path, typer.Option("--out", metavar="MODEL", help="The model to write.")]
Unlabelled = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="Rows that nobody called anomalous: auto, trusted, or doubted if some may be.",
    ),
]


def _split_columns(given: list[str] | None) -> list[str]:
    """Names of columns, divided by commas; a name with a comma stands in quotes."""
    return [name for one in csv.reader(given or [], skipinitialspace=True) for name in one]


Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS", callback=_split_columns, help="Write these columns too; repeatable."
    ),
]
OnlyAlarms = Annotated[bool, typer.Option("--only-alarms", help="Leave out rows that pass.")]
Persist = Annotated[
    str | None,
    typer.Option(metavar="K/N", help="Alarms only where K of the last N rows of the run are ones."),
]
Again = Annotated[
    bool,
    typer.Option("--again", help="Learn rows even if they were learnt before: they count twice."),
]
Landmarks = Annotated[
    int | None, typer.Option(metavar="N", help="Rows that a model remembers; fewer are quicker.")
]
Bandwidth = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="Kernel bandwidth: larger is wider (0.5 by default)."),
]
Rate = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE", help="Of new normal rows that may raise an alarm; else as fitted."
    ),
]
TableOut = Annotated[
    str,
    typer.Option(
        "--out", metavar="FILE", help="CSV, JSON lines, Parquet or Arrow; - is the output."
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORM", help="csv, jsonl, parquet, arrow, spreadsheet: safe CSV."
    ),
]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a report: one HTML page.")]
Ray = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Work on this cluster of Ray; local is this machine."),
]
Seed = Annotated[
    int,
    typer.Option(metavar="N", min=0, max=2**32 - 1, help="The same number gives the same result."),
]


def option(kind: Any, help: str, *names: str, metavar: str | None = None, **more: Any) -> Any:
    """The annotation of an option among `Columns`."""
    return Annotated[kind, typer.Option(*names, metavar=metavar, help=help, **more)]


_TEXTS, _TEXT = list[str] | None, str | None
Label = option(str, "The column of labels.", metavar="COLUMN")
Normal = option(
    _TEXTS, 'The label of normal rows; else "normal", 0 or false; repeatable.', metavar="LABEL"
)
NormalHere = option(
    _TEXTS, "The label of normal rows; else that of the model; repeatable.", metavar="LABEL"
)
_columns = partial(option, _TEXTS, metavar="COLUMNS", callback=_split_columns)
Drop = _columns("Leave these columns out: a,b; repeatable.")
Categorical = _columns(
    "Treat these columns as categorical; repeatable.", "--categorical", "--names"
)
Ordered = option(
    bool, "Rows are in time order but have no time column: their numbers are it.", "--ordered"
)
TRAINING = {
    "drop": Drop,
    "categorical": Categorical,
    "group": option(
        _TEXT, "The run, machine or card of each row: held out whole.", metavar="COLUMN"
    ),
    "time": option(_TEXT, "When each row was taken: blocks of it are held out.", metavar="COLUMN"),
    "window": option(
        int | None,
        "Sensors: add mean, deviation and slope of the last N rows of a run.",
        metavar="N",
    ),
    "ordered": Ordered,
}
_text_file = partial(option, rich_help_panel="Text files, where they are not understood")
_TEXT_FILES = {
    "delimiter": _text_file(str | None, "Between values.", metavar="CHARACTER"),
    "header": _text_file(
        bool | None, "Whether the first line names the columns.", "--header/--no-header"
    ),
    "decimal": _text_file(str | None, "Before decimals: . or ,", metavar="MARK"),
    "thousands": _text_file(str | None, "Between groups of three digits.", metavar="MARK"),
    "encoding": _text_file(str | None, "utf-8, cp1252, utf-16, …", metavar="NAME"),
    "skip": _text_file(int | None, "Lines before the table.", metavar="N"),
    "missing": _text_file(
        list[str] | None,
        "Stands for a missing value, in place of n/a, ?, -, null, …; COLUMN=TEXT: in addition to "
        "them in one column; repeatable.",
        metavar="TEXT",
    ),
    "sheet": _text_file(
        str | None, "Of a spreadsheet; else the first that is not empty.", metavar="NAME"
    ),
    "bad_rows": _text_file(
        Path | None,
        "Rows that cannot be read go there, with number and reason, and the others go on.",
        metavar="FILE",
    ),
}


class Columns(dict[str, Any]):
    """The options of a command that make its `spec`: the files, and what their columns hold."""

    def __init__(self, **kinds: Any) -> None:
        super().__init__(rows=Rows, **kinds)


_REQUIRED, _KEYWORD = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
_FIELDS = {"rows": "paths", "categorical": "names"}  # of a spec, if they have other names


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """The command with options for its `spec`, and on how text files are written, its `layout`.

    A parameter that is a dataclass stands for the options that are fields of it.
    """
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
