"""The options of `eqsep theory`."""

from pathlib import Path
from typing import Annotated

import typer

from eqsep.cli.options import Commands
from eqsep.commands.console import errors_told

app = typer.Typer(cls=Commands, no_args_is_help=True)
ClosingFamily = Annotated[str, typer.Argument(metavar="FAMILY", help="rbf, equality, halfspace.")]
PlaneFamily = Annotated[
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
    separators: Annotated[
        int | None, typer.Option(help="Say how likely this many random ones close a region.")
    ] = None,
) -> None:
    """The fewest separators of a family that enclose a finite volume."""
    with errors_told():
        from eqsep.commands import theory

        theory.show_closing(family, n_features, separators)


@app.command()
def rules(n_features: Dimension) -> None:
    """The three decision rules side by side: what they ask, how local they are, what closes."""
    with errors_told():
        from eqsep.commands import theory

        theory.show_rules(n_features)


@app.command()
def shatters(
    family: PlaneFamily,
    points: Annotated[Path, typer.Option(help="A CSV file: a point a line, no header.")],
) -> None:
    """Whether a family realises every labelling of the points; exit code 1 where it does not."""
    with errors_told():
        from eqsep.commands import theory

        shattered = theory.show_shattering(family, points)
    raise typer.Exit(0 if shattered else 1)


@app.command()
def vc(family: PlaneFamily, n_features: Dimension) -> None:
    """What is proved of the VC dimension of a family, and by what."""
    with errors_told():
        from eqsep.commands import theory

        theory.show_vc_dimension(family, n_features)


@app.command()
def certificate(family: PlaneFamily, n_features: Dimension) -> None:
    """The points behind a lower bound on the VC dimension, and their proof made anew."""
    with errors_told():
        from eqsep.commands import theory

        confirmed = theory.show_certificate(family, n_features)
    raise typer.Exit(0 if confirmed else 1)
