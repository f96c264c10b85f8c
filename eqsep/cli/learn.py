"""`eqsep learn`, `forget` and `suspects`: more rows for a model, fewer, and rows to judge."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa

from eqsep import detector as detecting
from eqsep.arrays import objects
from eqsep.cli import console, options
from eqsep.cli.console import Screen, flag, opt, print_warnings, print_written, progress
from eqsep.cli.inputs import all_columns, load_detector
from eqsep.cli.labelled import InputSpec, LabelColumn, check_labelled, check_some_label
from eqsep.cli.models import normal_word, print_summary, refuse_repeats
from eqsep.detector import Detector
from eqsep.errors import UserError, counted, quoted
from eqsep.files import changed_alone
from eqsep.io.files import check_not_read, files_of
from eqsep.io.writing import check_table_out, output_format, shortened, table_writer
from eqsep.labels import WITHOUT, natural_order
from eqsep.tables.reading import Table

LabelHad = Annotated[
    str | None, opt("COLUMN", "The column of the labels that the rows were learnt with.")
]
Judged = Annotated[
    bool, flag("--judged", "Rows were judged because they raised an alarm: none calibrates.")
]
_RESULTS = ("row", "score", "p_value")  # of suspects
Seen = Annotated[
    list[str] | None, opt("KIND", "Take rows of this kind, and leave those of others out.")
]


@options.reads_tables
def learn(
    model: options.ModelFile,
    spec: Annotated[
        InputSpec, options.Columns(label=options.Label, normal=options.NormalHere, seen=Seen)
    ],
    out: options.ModelOut,
    judged: Judged = False,
    again: options.Again = False,
) -> None:
    """Teach a model more labelled rows; its landmarks stay those of its first fit."""
    with print_warnings(), _changed("eqsep learn", model, spec, out=out) as (detector, table, y):
        if y is not None and not detector.plan_.labels.unlabelled_is_normal:
            check_some_label(y, name=str(spec.label))
        with refuse_repeats(again=again):
            detector.partial_fit(table, y, judged=judged)
    print_summary(Screen(), detector, _counts(table, y), out)


@options.reads_tables
def forget(
    model: options.ModelFile,
    spec: Annotated[
        InputSpec, options.Columns(label=LabelHad, normal=options.NormalHere, seen=Seen)
    ],
    out: options.ModelOut,
    judged: Judged = False,
) -> None:
    """Let a model unlearn rows, as if it had never learnt them; its landmarks stay."""
    with print_warnings(), _changed("eqsep forget", model, spec, out=out) as (detector, table, y):
        check_labelled(detector.model_.evidence.labels, spec.label)
        detector.forget(table, y, judged=judged)
    print_summary(Screen(), detector, {}, out, gone=_counts(table, y))


@contextmanager
def _changed(
    command: str, model: Path, spec: InputSpec, *, out: Path
) -> Iterator[tuple[Detector, Table, np.ndarray | None]]:
    """A model to change, with the rows of files and their labels; it is written afterwards."""
    spec.check()
    options.check_model_out(out, spec.paths)  # the model itself may learn on
    with _alone(model, out), progress(command, "reading") as job:
        detector = load_detector(model, rows=spec.paths)
        plan, known = detector.plan_, detector.model_.evidence.labels
        rows, table = spec.grouped_like(plan).read_like(plan)
        rows = rows if plan.windows is None else plan.windows.transform(rows)
        y = spec.labels_for(known, table)
        if y is not None and spec.seen:  # as eqsep fit --seen leaves the others out
            texts = objects(None if label is None else str(label) for label in y)
            labels = LabelColumn(texts, normal_word(detector.model_), str(spec.label))
            kept = np.flatnonzero(labels.seen(spec.seen))
            rows, y = rows.take(kept), y[kept]
        job.phase("changing the model", rows.n_rows, "rows")
        yield detector, rows, y
        job.phase("writing")
        detector.save(out)


def _counts(rows: Table, y: np.ndarray | None) -> dict[str, int]:
    """The rows of each kind."""
    labels = [None] * rows.n_rows if y is None else y
    kinds = (WITHOUT if label is None else str(label) for label in labels)
    return dict(Counter(sorted(kinds, key=natural_order)))


def _alone(model: Path, out: Path) -> AbstractContextManager[None]:
    """Lock a model that is to be replaced: what another command teaches it would be lost."""
    if not model.is_file() or model.resolve() != out.resolve():
        return nullcontext()
    wait = f"Note: {model} is being changed by another command: waiting for it."
    return changed_alone(model, on_wait=lambda: console.print_stderr(wait))


@options.reads_tables
def suspects(
    model: options.ModelFile,
    spec: Annotated[InputSpec, options.Columns(label=LabelHad, normal=options.NormalHere)],
    most: Annotated[int, opt("N", "How many rows to list at most.")] = 20,
    out: options.TableOut = "-",
    form: options.Form = None,
) -> None:
    """List learnt rows that are likely to be anomalies which nobody has labelled, to judge them."""
    spec.check()
    options.check_most(most)
    kind = output_format(out, form)
    check_table_out(out)
    check_not_read(out, [model, *files_of(spec.paths)])
    with print_warnings():
        detector = load_detector(model, rows=spec.paths)
        found = _suspects(detector, spec, most=most)
        with table_writer(out, kind) as write:
            write(shortened(found, kind))
    text = _listed(detector, found.num_rows)
    print_written(f"{text}." if out == "-" else text, out)


def _suspects(detector: Detector, spec: InputSpec, *, most: int) -> pa.Table:
    """The number, score and p-value of suspects among learnt rows, then the row as in its file."""
    plan, known = detector.plan_, detector.model_.evidence.labels
    check_labelled(known, spec.label)
    spec = spec.grouped_like(plan)
    rows, table = spec.read_like(plan, all_columns(plan, spec.not_learnt))
    taken = [name for name in table.schema.names if name in _RESULTS]
    if taken:
        raise UserError(
            f"Column {quoted(taken)} has the name of one of the results ({', '.join(_RESULTS)}) "
            f"that rows are written with: rename it."
        )
    places = detecting.suspects(detector, rows, spec.labels_for(known, table), n=most)
    score = detector.score_samples(rows.take(places)) if len(places) else np.empty(0)
    values = (places + 1, score, detector.calibration_.p_value(score))
    results = dict(zip(_RESULTS, map(pa.array, values), strict=True))
    picked = table.take(pa.array(places, pa.int64()))
    return pa.table(results | {name: picked.column(name) for name in table.schema.names})


def _listed(detector: Detector, n: int) -> str:
    """How many rows are listed, of how many, and why if there are none."""
    held = len(detector.calibration_.scores)
    if n:
        return f"{counted(n, 'row')}, the highest score first, of {held:,} that were held out"
    if not detector.plan_.labels.unlabelled_is_normal:
        return (
            "No row is listed: those labelled normal set the threshold, and none of them is to be "
            "judged. To label more, look at the highest scores of new rows (eqsep score --most 20) "
            "and teach what you find with eqsep learn --judged"
        )
    return (
        "No row is listed: none of these is without a label and among those that set the "
        "threshold. Pass the rows that were learnt, with the labels that they had"
    )
