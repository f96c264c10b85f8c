"""The command `eqsep`: the only place that prints.

Commands import what they compute with when they run, so that help and version come at once.
"""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from eqsep import __version__
from eqsep.commands import detecting
from eqsep.commands.console import Screen, debugging, errors_told
from eqsep.errors import UserError

if TYPE_CHECKING:
    from eqsep.datasets.catalogue import DataFile
    from eqsep.theory.certificate import Shattering

app = typer.Typer(no_args_is_help=True, pretty_exceptions_show_locals=False)
app.add_typer(detecting.app)
theory_app = typer.Typer(no_args_is_help=True)
app.add_typer(theory_app, name="theory", help="Closing numbers, VC dimensions and shattering.")
data_app = typer.Typer(no_args_is_help=True)
app.add_typer(data_app, name="data", help="The files of real data sets: what, where, and fetch.")


def _show_version(wanted: bool) -> None:
    if wanted:
        _console().print(f"eqsep {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # noqa: ARG001  its callback has shown it
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from: the whole traceback.")
    ] = False,
) -> None:
    """Anomaly detection by equality separation."""
    debugging.set(debug)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results go.")] = Path(
        "eqsep-demo"
    ),
    theory: Annotated[
        bool, typer.Option("--theory", help="XOR, circles and closing numbers instead.")
    ] = False,
) -> None:
    """Find kinds of anomaly that nobody has seen, on built-in data: half a minute, no network."""
    with errors_told():
        from eqsep.commands import demo as command

        show = command.show_theory if theory else command.show_payments
        show(_console(), out)


@app.command(
    hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def reproduce() -> None:
    """The paper's tables and figures are measured from a clone: python -m paper."""
    with errors_told():
        raise UserError(
            "The paper's tables and figures are measured from a clone of eqsep's repository, where "
            "`python -m paper` takes the names and options that `eqsep reproduce` took."
        )


ClosingFamily = Annotated[str, typer.Argument(metavar="FAMILY", help="rbf, equality, halfspace.")]
PlaneFamily = Annotated[
    str,
    typer.Argument(
        metavar="FAMILY", help="epsilon-equality, hyper-ridge, strict-equality, halfspace."
    ),
]
Dimension = Annotated[int, typer.Argument(metavar="N_FEATURES", help="The dimension.")]


@theory_app.command()
def closing(
    family: ClosingFamily,
    n_features: Dimension,
    separators: Annotated[
        int | None, typer.Option(help="Say how likely this many random ones close a region.")
    ] = None,
) -> None:
    """The fewest separators of a family that enclose a finite volume."""
    from eqsep.theory import closing_number, closing_probability

    with errors_told():
        number = closing_number(family, n_features)
        chance = None if separators is None else closing_probability(family, n_features, separators)
    _console().print(f"closing number of {family} separators in R^{n_features}: {number}")
    if chance is not None:
        _console().print(f"chance that {separators} random ones close a region: {chance:.6g}")


@theory_app.command()
def shatters(
    family: PlaneFamily,
    points: Annotated[Path, typer.Option(help="A CSV file: a point a line, no header.")],
) -> None:
    """Whether a family realises every labelling of the points; exit code 1 where it does not."""
    from eqsep.theory import shatters as decide

    with errors_told(), points.open(newline="") as file:
        # As text: "0.1" is a tenth, not the float next to it.
        answer = decide([row for row in csv.reader(file) if row], family, certificates=True)
    raise typer.Exit(0 if _tell_shattering(answer) else 1)


@theory_app.command()
def vc(family: PlaneFamily, n_features: Dimension) -> None:
    """What is proved of the VC dimension of a family, and by what."""
    from eqsep.theory import vc_dimension

    with errors_told():
        bounds = vc_dimension(family, n_features)
    console = _console()
    console.print(f"VC dimension of {family} separators in R^{n_features}")
    console.print(f"at least {bounds.lower}: {bounds.lower_source}")
    console.print(f"at most {bounds.upper}: {bounds.upper_source}")


@theory_app.command()
def certificate(family: PlaneFamily, n_features: Dimension) -> None:
    """The points behind a lower bound on the VC dimension, and their proof made anew."""
    from eqsep.theory import WITNESSES
    from eqsep.theory import shatters as decide

    with errors_told():
        if (family, n_features) not in WITNESSES:
            known = ", ".join(f"{name} {n}" for name, n in sorted(WITNESSES))
            raise UserError(
                f"There are no points for {family} in R^{n_features}: expected one of {known}. "
                "Search for some with eqsep.theory.find_shattered."
            )
    points = WITNESSES[family, n_features]
    table = _table(*(f"x{i + 1}" for i in range(n_features)), left=0)
    for point in points:
        table.add_row(*point)
    _console().print(table)
    raise typer.Exit(0 if _tell_shattering(decide(points, family, certificates=True)) else 1)


DataHome = Annotated[
    Path | None,
    typer.Option(
        "--data-home", metavar="FOLDER", help="The folder of data sets; else EQSEP_DATA names it."
    ),
]


@data_app.command("list")
def list_data() -> None:
    """The data sets that can be fetched, with their files."""
    from eqsep.datasets.catalogue import DATA_FILES

    for file in DATA_FILES:  # lines, not a table: an address is of use only as a whole
        _console().print(f"{_path(file)}{file.size:>10,} bytes  {file.url}", soft_wrap=True)


@data_app.command()
def where(data_home: DataHome = None) -> None:
    """Which of the files are in the data folder."""
    from eqsep.datasets.catalogue import DATA_FILES
    from eqsep.datasets.fetching import state_of
    from eqsep.datasets.home import named_home

    with errors_told():
        source = "the addresses of `eqsep data list`"
        home = named_home(data_home, wanted="data sets", source=source)
        _console().print(f"Data folder: {home}", soft_wrap=True)
        for file in DATA_FILES:
            _console().print(f"{_path(file)}{state_of(file, home)}", soft_wrap=True)


@data_app.command()
def fetch(
    data_sets: Annotated[list[str], typer.Argument(metavar="DATA_SET...")],
    data_home: DataHome = None,
) -> None:
    """Download data sets and check them; what is there already is not fetched again."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

    from eqsep.datasets.fetching import fetch_data

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    tasks: dict[str, TaskID] = {}
    paths: list[Path] = []
    with errors_told():
        with Progress(*columns, console=Screen(stderr=True)) as bars:

            def show(file: "DataFile", done: int, total: int | None) -> None:
                if file.name not in tasks:
                    tasks[file.name] = bars.add_task(file.name, total=total)
                bars.update(tasks[file.name], completed=done)

            for name in data_sets:
                paths += fetch_data(name, data_home=data_home, progress=show)
        for path in paths:
            _console().print(path, soft_wrap=True)


def _path(file: "DataFile") -> str:
    return f"{file.folder}/{file.name}".ljust(28)


def _console() -> Console:
    return Screen(highlight=False)


def _tell_shattering(answer: "Shattering") -> bool:
    """Print the answer; true where the points are shattered and the proof stood the check."""
    size, dimension = len(answer.points), len(answer.points[0])
    subject = f"{answer.family} separators of R^{dimension}"
    if answer.refused is not None:
        labels = " ".join(map(str, answer.refused))
        _console().print(f"{subject} do not shatter these {size} points: none gives {labels}")
        return False
    confirmed = answer.verify()
    _console().print(
        f"{subject} shatter these {size} points: {len(answer.planes):,} labellings, each with its "
        f"own plane, {'checked' if confirmed else 'NOT confirmed'} in exact arithmetic"
    )
    return confirmed


def _table(*columns: str, left: int = 1) -> Table:
    """An empty table: the first columns flush left, the others flush right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < left else "right", no_wrap=True)
    return table
