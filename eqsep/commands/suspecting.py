"""`eqsep suspects`: rows that set the threshold and may be anomalies, for a person to judge."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

from eqsep.commands.console import counted, tell
from eqsep.commands.inputs import InputSpec
from eqsep.commands.label_columns import check_labelled, y_for
from eqsep.commands.reading import (
    all_columns,
    as_read,
    check_not_read,
    files_of,
    load_detector,
    whole_pieces,
)
from eqsep.commands.writing import (
    STANDARD_OUTPUT,
    check_table_out,
    output_format,
    shortened,
    table_writer,
)
from eqsep.detector import Detector, suspects
from eqsep.errors import UserError, quoted

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
    places = suspects(detector, rows, y, n=most)
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
        tell(f"{text}.")
    else:
        console.print(f"{text}: {out}", soft_wrap=True, markup=False)
