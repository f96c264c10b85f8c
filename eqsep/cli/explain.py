"""`eqsep explain`: why the rows with the highest scores have them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from eqsep.cli.console import print_stderr, print_warnings, progress
from eqsep.cli.inputs import errors_placed, load_scoring, pieces_for, reader_of
from eqsep.cli.options import ModelFile, Rate, Rows, reads_tables
from eqsep.cli.score import Highest, Wanted
from eqsep.detector.model import Model
from eqsep.errors import UserError, counted, visible
from eqsep.io.dialect import Layout
from eqsep.tables.batches import joined
from eqsep.tables.reading import Table

_AT_ONCE = 64  # rows that are explained together, so that the first ones come at once


@reads_tables
def explain(
    model: ModelFile,
    rows: Rows,
    top: Annotated[int, typer.Option(metavar="N", help="How many columns to name.")] = 5,
    most: Annotated[
        int, typer.Option(metavar="N", help="How many rows: those with the highest scores.")
    ] = 20,
    only_alarms: Annotated[
        bool, typer.Option("--only-alarms", help="Leave out rows that pass.")
    ] = False,
    false_alarm_rate: Rate = None,
    *,
    layout: Layout,
) -> None:
    """Say why rows have their scores, the highest first: the columns that drive them."""
    if top < 1:
        raise UserError(f"--top expects at least 1 reason, got {top}.")
    wanted = Wanted(most=most, explain=top, only_alarms=only_alarms, rate=false_alarm_rate)
    with print_warnings():
        for text in explain_files(model, rows, layout=layout, wanted=wanted):
            typer.echo(visible(text))


@dataclass(frozen=True)
class _Held:
    """A row with one of the highest scores: what is said of it, and its values."""

    score: float
    said: str
    row: Table


def explain_files(
    path: Path, paths: Sequence[str], *, layout: Layout, wanted: Wanted
) -> Iterator[str]:
    """Why the rows, or alarms, with the highest scores have them, as text; the highest first."""
    model = load_scoring(path, rows=paths, rate=wanted.rate)
    held: list[_Held] = []
    highest = Highest(wanted.most or 1)
    done = candidates = 0
    in_file: Counter[str] = Counter()
    reader = reader_of(model)
    with progress("eqsep explain", "scoring") as job:
        for name, table in pieces_for(model.plan, paths, reader.columns(), layout=layout):
            if not table.num_rows:
                continue
            with errors_placed(name, before=in_file[name]):
                rows = reader(table)
                score, _, alarm, kind = model.verdicts(rows)
            among = np.flatnonzero(alarm) if wanted.only_alarms else np.arange(len(score))
            for i in among[highest.entering(score[among], table, among)].tolist():
                said = f"row {done + i + 1:,}: " + (f"alarm, {kind[i]}" if alarm[i] else "passes")
                held.append(_Held(score[i], said, rows.take(np.array([i]))))
            held = sorted(held, key=lambda row: -row.score)[: wanted.most]
            done += table.num_rows
            in_file[name] += table.num_rows
            job.note = counted(done, "row")
            candidates += len(among)
    yield from _explained(model, held, top=wanted.explain)
    if candidates > len(held):
        all_of_them = counted(candidates, "alarm" if wanted.only_alarms else "row")
        print_stderr(f"Shown: the {len(held):,} highest of {all_of_them}; --most N shows more.")


def _explained(model: Model, held: Sequence[_Held], *, top: int) -> Iterator[str]:
    with progress("eqsep explain", "explaining", prints=True) as job:
        job.expect(len(held))
        for start in range(0, len(held), _AT_ONCE):
            some = held[start : start + _AT_ONCE]
            found = model.explain(joined([held.row for held in some]), top=top)
            job.advance(len(some))
            for row, explanation in zip(some, found, strict=True):
                yield f"{row.said}; {explanation}"
