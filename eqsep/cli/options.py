"""Arguments and options that several commands have: their names, and what help says of them."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from eqsep.commands.console import errors_told
from eqsep.errors import UserError

if TYPE_CHECKING:
    from eqsep.commands.dialects import Layout
    from eqsep.commands.inputs import InputSpec


class Commands(TyperGroup):
    """Commands whose help shows flags without a type."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_flag_types(command.get_params(ctx))
        return command

    def get_params(self, ctx: Any) -> Any:
        return _without_flag_types(super().get_params(ctx))


def _without_flag_types(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False):  # arguments have no such attribute
            param.metavar = ""
    return params


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that eqsep fit wrote.")]
Rows = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="CSV, JSON lines, Parquet, Arrow, Excel, folders of them; - is the input.",
    ),
]
ModelOut = Annotated[Path, typer.Option("--out", metavar="MODEL", help="The model to write.")]
Label = Annotated[str, typer.Option(metavar="COLUMN", help="The column of labels.")]
LabelHad = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column of the labels that the rows were learnt with."),
]
Normal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABEL", help='The label of normal rows; else "normal", 0 or false; repeatable.'
    ),
]
NormalHere = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABEL", help="The label of normal rows; else that of the model; repeatable."
    ),
]
Unlabelled = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="Rows that nobody called anomalous: auto, trusted, or doubted if some may be.",
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave this column out; may be repeated.")
]
Names = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="It holds names, even if they look like numbers."),
]
Group = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The run, machine or card of each row: held out whole."),
]
Time = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="When each row was taken: blocks of it are held out."),
]
Window = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Sensors: add mean, deviation and slope of the last N rows of a run."
    ),
]
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
SeenInTurn = Annotated[
    list[str] | None,
    typer.Option("--seen", metavar="KIND", help="Fit with this kind as the seen one; else each."),
]
Seed = Annotated[
    int,
    typer.Option(metavar="N", min=0, max=2**32 - 1, help="The same number gives the same result."),
]
_PANEL = "Text files, where they are not understood"
_TEXT_FILES: dict[str, Any] = {
    "delimiter": Annotated[
        str | None,
        typer.Option(metavar="CHARACTER", help="Between values.", rich_help_panel=_PANEL),
    ],
    "header": Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first line names the columns.",
            rich_help_panel=_PANEL,
        ),
    ],
    "decimal": Annotated[
        str | None,
        typer.Option(metavar="MARK", help="Before decimals: . or ,", rich_help_panel=_PANEL),
    ],
    "thousands": Annotated[
        str | None,
        typer.Option(
            metavar="MARK", help="Between groups of three digits.", rich_help_panel=_PANEL
        ),
    ],
    "encoding": Annotated[
        str | None,
        typer.Option(metavar="NAME", help="utf-8, cp1252, utf-16, …", rich_help_panel=_PANEL),
    ],
    "skip": Annotated[
        int | None,
        typer.Option(metavar="N", help="Lines before the table.", rich_help_panel=_PANEL),
    ],
    "missing": Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Stands for a missing value, in place of n/a, ?, -, null, …; COLUMN=TEXT: beside "
            "them in one column; repeatable.",
            rich_help_panel=_PANEL,
        ),
    ],
    "sheet": Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of a spreadsheet; else the first that is not empty.",
            rich_help_panel=_PANEL,
        ),
    ],
    "bad_rows": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Rows that cannot be read go there, with number and reason, and the others go on.",
            rich_help_panel=_PANEL,
        ),
    ],
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """The command with options on how text files are written, which it takes as one `layout`."""

    @wraps(command)
    def run(**options: Any) -> None:
        said = {name: options.pop(name) for name in _TEXT_FILES}
        with errors_told():
            said["missing"] = tuple(said["missing"]) if said["missing"] else None
            layout = _layout(said, ray=options.get("ray"))
        bad = layout.bad_rows
        if bad is None:
            command(**options, layout=layout)
            return
        with errors_told():
            for used in options.values():
                if isinstance(used, str | Path):
                    bad.check(used)
            with bad.written():
                command(**options, layout=layout)

    own = inspect.signature(command)
    keyword = inspect.Parameter.KEYWORD_ONLY
    more = [
        inspect.Parameter(name, keyword, default=None, annotation=kind)
        for name, kind in _TEXT_FILES.items()
    ]
    kept = [p.replace(kind=keyword) for name, p in own.parameters.items() if name != "layout"]
    run.__signature__ = own.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*kept, *more)} | {"return": None}
    return run


def _layout(said: dict[str, Any], *, ray: str | None) -> "Layout":
    """What the options say."""
    from eqsep.commands import bad_rows, dialects

    bad = said.pop("bad_rows")
    if bad is None:
        return dialects.Layout(**said)
    if ray is not None:
        raise UserError("--bad-rows and --ray contradict each other: read the rows here.")
    return dialects.Layout(**said, bad_rows=bad_rows.BadRows(bad))


def input_spec(rows: list[str], layout: "Layout", **columns: Any) -> "InputSpec":
    """The rows of the files, with the columns and labels that the options name."""
    from eqsep.commands import inputs

    given = {name: value for name, value in columns.items() if value is not None}
    return inputs.InputSpec(rows, layout, **given)
