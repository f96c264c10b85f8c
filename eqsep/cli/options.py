"""Arguments and options that several commands have: their names, and what help says of them."""

import csv
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from eqsep.cli.console import print_warnings
from eqsep.cli.labelled import InputSpec
from eqsep.errors import UserError
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


def split_columns(given: list[str] | None) -> list[str]:
    """Names of columns, divided by commas; one that has a comma itself stands in quotes."""
    return [name for one in csv.reader(given or [], skipinitialspace=True) for name in one]


Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS", callback=split_columns, help="Leave these columns out: a,b; repeatable."
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical",
        "--names",
        metavar="COLUMNS",
        callback=split_columns,
        help="Treat these columns as categorical; repeatable.",
    ),
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
Ordered = Annotated[
    bool,
    typer.Option(
        "--ordered", help="Rows are in time order but have no time column: their numbers are it."
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
        given = {name: options.pop(name) for name in _TEXT_FILES}
        given["missing"] = tuple(given["missing"]) if given["missing"] else None
        path = given.pop("bad_rows")
        if path is None:
            command(**options, layout=Layout(**given))
            return
        if options.get("ray") is not None:
            raise UserError("--bad-rows and --ray contradict each other: read the rows here.")
        bad = BadRows(path)
        for used in options.values():
            if isinstance(used, str | Path):
                bad.check(used)
        with print_warnings(), bad.written():
            command(**options, layout=Layout(**given, bad_rows=bad))

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


def options_of(layout: Layout) -> list[str]:
    """The options that say the same as a layout.

    Examples
    --------
    >>> options_of(Layout(delimiter=";", header=False, missing=("?",)))
    ['--delimiter', ';', '--no-header', '--missing', '?']
    """
    words: list[str] = []
    for name in _TEXT_FILES:
        value = getattr(layout, name)
        if name == "bad_rows":
            words += [] if value is None else ["--bad-rows", str(value.path)]
        elif isinstance(value, bool):
            words += ["--header" if value else "--no-header"]
        elif value is not None:
            each = value if isinstance(value, tuple) else (value,)
            words += [word for one in each for word in (f"--{name}", str(one))]
    return words


def detector_settings(landmarks: int | None, random_state: int, unlabelled: str) -> dict[str, Any]:
    """Parameters of a detector; it chooses what is not given."""
    chosen = {} if landmarks is None else {"n_landmarks": landmarks}
    return chosen | {"random_state": random_state, "unlabelled": unlabelled}


def input_spec(rows: list[str], layout: Layout, **columns: Any) -> InputSpec:
    """The rows of the files, with the columns and labels that the options name."""
    given = {name: value for name, value in columns.items() if value is not None}
    return InputSpec(paths=rows, layout=layout, **given)


def check_model_out(path: Path) -> None:
    """Refuse before the work, not after it, a place where no model can be written."""
    if path.is_dir():
        raise UserError(f"{path} is a folder: pass the name of a file for the model.")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is a device or a pipe: pass the name of a file for the model.")
    check_folder(path)


def check_report_out(
    path: Path | None, reads: Sequence[str | Path], *, beside: Path | None = None
) -> None:
    """Refuse before the work, not after it, a place where no report can be written."""
    if path is None:
        return
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no file: pass the name of a file for the report.")
    if beside is not None and path.resolve() == beside.resolve():
        raise UserError(f"--report and --out are both {path}: pass two names.")
    check_folder(path)
    check_not_read(path, reads)
