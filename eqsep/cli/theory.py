"""`eqsep theory`: closing numbers, VC dimensions and shattering."""

import csv
from pathlib import Path
from typing import Annotated

import typer

from eqsep import theory
from eqsep.cli.console import CommandGroup, Screen, opt, table
from eqsep.errors import UserError
from eqsep.theory.certificate import Shattering

app = typer.Typer(cls=CommandGroup, no_args_is_help=True)
ClosingFamily = Annotated[str, typer.Argument(metavar="FAMILY", help="rbf, equality, halfspace.")]
FamilyArgument = Annotated[
    str,
    typer.Argument(
        metavar="FAMILY",
        help="equality (epsilon-equality), hyper-ridge, strict-equality, halfspace.",
        callback=lambda family: "epsilon-equality" if family == "equality" else family,
    ),
]
Dimension = Annotated[int, typer.Argument(metavar="N_FEATURES", help="The dimension.")]


@app.command()
def closing(
    family: ClosingFamily,
    n_features: Dimension,
    separators: int | None = opt(
        None, None, "Show how likely this many random ones are to close a region."
    ),
) -> None:
    """Show the fewest separators of a family that enclose a finite volume."""
    number = theory.closing_number(family, n_features)
    lines = [f"closing number of {family} separators in R^{n_features}: {number}"]
    if separators is not None:
        bounded = theory.closing_probability(family, n_features, separators)
        lines.append(f"chance that {separators} random ones leave no way out: {bounded:.6g}")
    # Whether several balls meet is a question of their centres.
    if separators is not None and (family != "rbf" or separators == 1):
        value, error = theory.enclosing_probability(family, n_features, separators)
        shown = f"{value:.6g}" if error == 0 else f"{value:.3g} ± {error:.1g}"
        lines.append(f"and that they enclose a positive volume, with random offsets: {shown}")
    Screen().print("\n".join(lines))


@app.command()
def rules(n_features: Dimension) -> None:
    """Compare the three decision rules: what they ask, how local they are, what closes."""
    halfspaces, planes, balls = (
        theory.closing_number(family, n_features) for family in ("halfspace", "equality", "rbf")
    )
    reach = (f"global ({halfspaces})", f"semi-local ({planes})", f"local ({balls})")
    rows = [
        ("bias in input space", "halfspace", "hyperplane", "point"),
        ("activation function", "sigmoid, ReLU", "bump", "RBF"),
        ("reach (closing number)", *reach),
    ]
    columns = ["decision rule", "perceptron", "equality separator", "RBF network"]
    Screen().print(table(columns, rows, wrapped=0, padding=1))


@app.command()
def shatters(
    family: FamilyArgument,
    points: Path = opt(..., None, "CSV file: one point per line, no header."),
) -> None:
    """Check whether a family realises every labelling of the points; exit with 1 if not."""
    with points.open(newline="") as file:
        # As text: "0.1" is a tenth, not the float next to it.
        rows = [row for row in csv.reader(file) if row]
    shattered = _print_shattering(theory.shatters(rows, family, certificates=True))
    raise typer.Exit(0 if shattered else 1)


@app.command()
def vc(family: FamilyArgument, n_features: Dimension) -> None:
    """Show the proved bounds on the VC dimension of a family, and their sources."""
    bounds = theory.vc_dimension(family, n_features)
    console = Screen()
    console.print(f"VC dimension of {family} separators in R^{n_features}")
    console.print(f"at least {bounds.lower}: {bounds.lower_source}")
    console.print(f"at most {bounds.upper}: {bounds.upper_source}")


@app.command()
def certificate(family: FamilyArgument, n_features: Dimension) -> None:
    """Show the points behind a lower bound on the VC dimension, and recheck their proof."""
    if (family, n_features) not in theory.WITNESSES:
        known = ", ".join(f"{name} {n}" for name, n in sorted(theory.WITNESSES))
        raise UserError(
            f"There are no points for {family} in R^{n_features}: expected one of {known}. "
            "Search for some with eqsep.theory.find_shattered."
        )
    points = theory.WITNESSES[family, n_features]
    columns = [f"x{i + 1}" for i in range(n_features)]
    Screen().print(table(columns, points, left=0, wrapped=0, padding=1))
    confirmed = _print_shattering(theory.shatters(points, family, certificates=True))
    raise typer.Exit(0 if confirmed else 1)


def _print_shattering(answer: Shattering) -> bool:
    """Print the answer; true where the points are shattered and the proof stood the check."""
    size, dimension = len(answer.points), len(answer.points[0])
    subject = f"{answer.family} separators of R^{dimension}"
    if answer.refused is not None:
        labels = " ".join(map(str, answer.refused))
        Screen().print(f"{subject} do not shatter these {size} points: none gives {labels}")
        return False
    confirmed = answer.verify()
    Screen().print(
        f"{subject} shatter these {size} points: {len(answer.planes):,} labellings, each with its "
        f"own plane, {'checked' if confirmed else 'NOT confirmed'} in exact arithmetic"
    )
    return confirmed
