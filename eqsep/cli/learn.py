"""The options of `eqsep learn`, `forget` and `suspects`."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from rich.console import Console

from eqsep import detector as detecting
from eqsep.arrays import objects
from eqsep.cli.console import (
    Screen,
    print_stderr,
    print_warnings,
    progress,
)
from eqsep.cli.inputs import all_columns, as_read, load_detector, whole_pieces
from eqsep.cli.labelled import InputSpec, LabelColumn, check_labelled, check_some_label, y_for
from eqsep.cli.models import normal_word, print_summary, refuse_repeats
from eqsep.cli.options import (
    Again,
    Form,
    Label,
    LabelHad,
    ModelFile,
    ModelOut,
    NormalHere,
    Rows,
    TableOut,
    check_model_out,
    input_spec,
    reads_tables,
)
from eqsep.detector import Detector
from eqsep.errors import UserError, counted, quoted
from eqsep.files import changed_alone
from eqsep.io.dialect import Layout
from eqsep.io.files import check_not_read, files_of
from eqsep.io.writing import (
    STANDARD_OUTPUT,
    check_table_out,
    output_format,
    shortened,
    table_writer,
)
from eqsep.labels import WITHOUT, natural_order
from eqsep.tables.reading import Table

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
def learn(
    model: ModelFile,
    rows: Rows,
    label: Label,
    out: ModelOut,
    normal: NormalHere = None,
    seen: Seen = None,
    judged: Judged = False,
    again: Again = False,
    *,
    layout: Layout,
) -> None:
    """Teach a model more labelled rows; its landmarks stay those of its first fit."""
    spec = input_spec(rows, layout, label=label, normal=normal, seen=seen)
    spec.check()
    with print_warnings():
        detector, counts = learn_files(model, spec, out=out, again=again, judged=judged)
    print_summary(Screen(), detector, counts, out)


@reads_tables
def forget(
    model: ModelFile,
    rows: Rows,
    out: ModelOut,
    label: LabelHad = None,
    normal: NormalHere = None,
    seen: Seen = None,
    judged: Judged = False,
    *,
    layout: Layout,
) -> None:
    """Let a model unlearn rows, as if it had never learnt them; its landmarks stay."""
    spec = input_spec(rows, layout, label=label, normal=normal, seen=seen)
    spec.check()
    with print_warnings():
        detector, counts = forget_files(model, spec, out=out, judged=judged)
    print_summary(Screen(), detector, {}, out, gone=counts)


@reads_tables
def suspects(
    model: ModelFile,
    rows: Rows,
    label: LabelHad = None,
    normal: NormalHere = None,
    most: Annotated[int, typer.Option(metavar="N", help="How many rows to list at most.")] = 20,
    out: TableOut = "-",
    form: Form = None,
    *,
    layout: Layout,
) -> None:
    """List learnt rows that are likely to be anomalies which nobody has labelled, to judge them."""
    spec = input_spec(rows, layout, label=label, normal=normal)
    spec.check()
    with print_warnings():
        detector, n = list_suspects(model, spec, out, kind=form, most=most)
    tell_suspects(Screen(), detector, n, out)


def learn_files(
    model: Path, spec: InputSpec, *, out: Path, again: bool = False, judged: bool = False
) -> tuple[Detector, dict[str, int]]:
    """Teach a model more labelled rows and write what it knows then; the rows of each kind.

    Parameters
    ----------
    again : bool
        Whether rows may be learnt that were learnt before.
    judged : bool
        Whether rows were judged because they raised an alarm, so that none calibrates.
    """

    def learn(detector: Detector, rows: Table, y: np.ndarray | None) -> None:
        if y is not None and not detector.plan_.labels.unlabelled_is_normal:
            check_some_label(y, name=str(spec.label))
        with refuse_repeats(again=again):
            detector.partial_fit(rows, y, judged=judged)

    return _changed("eqsep learn", model, spec, learn, out=out)


def forget_files(
    model: Path, spec: InputSpec, *, out: Path, judged: bool = False
) -> tuple[Detector, dict[str, int]]:
    """Let a model unlearn rows, with the labels they had, and write what it knows then."""

    def forget(detector: Detector, rows: Table, y: np.ndarray | None) -> None:
        check_labelled(detector.model_.evidence.labels, spec.label)
        detector.forget(rows, y, judged=judged)

    return _changed("eqsep forget", model, spec, forget, out=out)


def _changed(
    command: str,
    model: Path,
    spec: InputSpec,
    change: Callable[[Detector, Table, np.ndarray | None], None],
    *,
    out: Path,
) -> tuple[Detector, dict[str, int]]:
    """The model when rows of files have changed it, written, and the rows of each kind."""
    check_model_out(out)
    check_not_read(out, spec.paths)  # the model itself may learn on
    with _alone(model, out), progress(command, "reading") as job:
        detector = load_detector(model, rows=spec.paths)
        plan, known = detector.plan_, detector.model_.evidence.labels
        spec = spec.grouped_like(plan)
        (rows, column), y = spec.read_like(plan), None
        if column is not None:
            y = y_for(known, column, name=str(spec.label), **spec.told)
            if spec.seen:
                rows, y = _of_seen(rows, y, detector, spec)
        job.phase("changing the model", rows.n_rows, "rows")
        change(detector, rows, y)
        job.phase("writing")
        detector.save(out)
    labels = [None] * rows.n_rows if y is None else y
    return detector, dict(
        Counter(sorted((WITHOUT if k is None else str(k) for k in labels), key=natural_order))
    )


def _alone(model: Path, out: Path) -> AbstractContextManager[None]:
    """Let nobody else change a model that is to be replaced: what he learns would be lost."""
    if not model.is_file() or model.resolve() != out.resolve():
        return nullcontext()
    wait = f"Note: {model} is being changed by another command: waiting for it."
    return changed_alone(model, on_wait=lambda: print_stderr(wait))


def _of_seen(
    rows: Table, y: np.ndarray, detector: Detector, spec: InputSpec
) -> tuple[Table, np.ndarray]:
    """Rows but those of kinds that are not to be seen, as `eqsep fit --seen` leaves them out."""
    labels = LabelColumn(
        objects(None if label is None else str(label) for label in y),
        normal_word(detector.model_),
        str(spec.label),
    )
    kept = np.flatnonzero(labels.seen(spec.seen))
    return rows.take(kept), y[kept]


_RESULTS = ("row", "score", "p_value")


def list_suspects(
    model: Path, spec: InputSpec, out: str, *, kind: str | None, most: int
) -> tuple[Detector, int]:
    """Write the suspects among learnt rows, at most so many; the detector, and how many they are.

    A row is written as it stands in its file, after its number, score and p-value, so that it can
    be labelled there, forgotten as it was and learnt as it is.
    """
    kind = output_format(out, kind)
    check_table_out(out)
    check_not_read(out, [model, *files_of(spec.paths)])
    if most < 1:
        raise UserError(f"--most expects a number of rows, 1 or more, got {most}.")
    detector = load_detector(model, rows=spec.paths)
    plan, known = detector.plan_, detector.model_.evidence.labels
    check_labelled(known, spec.label)
    spec = spec.grouped_like(plan)
    table = whole_pieces(spec.paths, all_columns(plan, spec.beside), layout=spec.layout, like=plan)
    _check_names(table.schema.names)
    rows = spec.with_groups(as_read(table, plan), table)
    y = None
    if spec.label is not None:
        y = y_for(known, table.column(spec.label), name=spec.label, **spec.told)
    places = detecting.suspects(detector, rows, y, n=most)
    found = rows.take(places)
    score = detector.score_samples(found) if len(places) else np.empty(0)
    answers = {
        "row": pa.array(places + 1),
        "score": pa.array(score),
        "p_value": pa.array(detector.calibration_.p_value(score)),
    }
    picked = table.take(pa.array(places, pa.int64()))
    answer = pa.table(answers | {name: picked.column(name) for name in table.schema.names})
    with table_writer(out, kind) as write:
        write(shortened(answer, kind))
    return detector, len(places)


def _check_names(columns: Sequence[str]) -> None:
    taken = [name for name in columns if name in _RESULTS]
    if taken:
        raise UserError(
            f"Column {quoted(taken)} is called as one of the results ({', '.join(_RESULTS)}), "
            f"beside which rows are written: rename it."
        )


def tell_suspects(console: Console, detector: Detector, n: int, out: str) -> None:
    """Say how many rows are listed, of how many, and why where there are none."""
    held = len(detector.calibration_.scores)
    if n:
        text = f"{counted(n, 'row')}, the highest score first, of {held:,} that set the threshold"
    elif not detector.plan_.labels.unlabelled_is_normal:
        text = (
            "No row is listed: those labelled normal set the threshold, and none of them is to be "
            "judged. To label more, look at the highest scores of new rows (eqsep score --most 20) "
            "and teach what you find with eqsep learn --judged"
        )
    else:
        text = (
            "No row is listed: none of these is without a label and among those that set the "
            "threshold. Pass the rows that were learnt, with the labels that they had"
        )
    if out == STANDARD_OUTPUT:
        print_stderr(f"{text}.")
    else:
        console.print(f"{text}: {out}", soft_wrap=True, markup=False)
