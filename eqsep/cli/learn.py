"""The options of `eqsep learn`, `forget` and `suspects`."""

from typing import TYPE_CHECKING, Annotated

import typer

from eqsep.cli.options import (
    Again,
    Form,
    Label,
    LabelHad,
    Model,
    ModelOut,
    NormalHere,
    Rows,
    TableOut,
    input_spec,
    reads_tables,
)
from eqsep.commands.console import Screen, errors_told, warnings_told

if TYPE_CHECKING:
    from eqsep.commands.dialects import Layout

Judged = Annotated[
    bool,
    typer.Option(
        "--judged", help="Rows were judged because they raised an alarm: none calibrates."
    ),
]
Seen = Annotated[
    list[str] | None,
    typer.Option(metavar="KIND", help="Take rows of this kind, and leave those of others out."),
]


@reads_tables
def run_learn(  # noqa: PLR0913  the options of a command
    model: Model,
    rows: Rows,
    label: Label,
    out: ModelOut,
    normal: NormalHere = None,
    seen: Seen = None,
    judged: Judged = False,
    again: Again = False,
    *,
    layout: "Layout",
) -> None:
    """Teach a model more labelled rows; its landmarks stay those of its first fit."""
    with errors_told():
        from eqsep.commands import fitting

        spec = input_spec(rows, layout, label=label, normal=normal, seen=seen)
        spec.check()
        with warnings_told():
            detector, counts = fitting.learn_files(model, spec, out=out, again=again, judged=judged)
        fitting.tell_fitted(Screen(), detector, counts, out)


@reads_tables
def run_forget(  # noqa: PLR0913
    model: Model,
    rows: Rows,
    out: ModelOut,
    label: LabelHad = None,
    normal: NormalHere = None,
    seen: Seen = None,
    judged: Judged = False,
    *,
    layout: "Layout",
) -> None:
    """Let a model unlearn rows, as if it had never learnt them; its landmarks stay."""
    with errors_told():
        from eqsep.commands import fitting

        spec = input_spec(rows, layout, label=label, normal=normal, seen=seen)
        spec.check()
        with warnings_told():
            detector, counts = fitting.forget_files(model, spec, out=out, judged=judged)
        fitting.tell_fitted(Screen(), detector, {}, out, gone=counts)


@reads_tables
def run_suspects(  # noqa: PLR0913
    model: Model,
    rows: Rows,
    label: LabelHad = None,
    normal: NormalHere = None,
    most: Annotated[int, typer.Option(metavar="N", help="How many rows to list at most.")] = 20,
    out: TableOut = "-",
    form: Form = None,
    *,
    layout: "Layout",
) -> None:
    """List learnt rows that are likely to be anomalies which nobody has labelled, to judge them."""
    with errors_told():
        from eqsep.commands import suspecting

        spec = input_spec(rows, layout, label=label, normal=normal)
        spec.check()
        with warnings_told():
            detector, n = suspecting.list_suspects(model, spec, out, kind=form, most=most)
        suspecting.tell_suspects(Screen(), detector, n, out)
