"""`eqsep explain`: why the rows with the highest scores have them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer

from eqsep.cli import options
from eqsep.cli.console import print_stderr, print_warnings, progress
from eqsep.cli.inputs import RowReader, errors_placed, load_scoring, placed_pieces
from eqsep.cli.score import Highest
from eqsep.detector.model import Model
from eqsep.errors import UserError, counted, visible
from eqsep.io.dialect import Layout
from eqsep.tables.batches import joined
from eqsep.tables.reading import Table, text_of

_AT_ONCE = 64  # rows that are explained together, so that the first ones come at once


@options.reads_tables
def explain(
    model: options.ModelFile,
    rows: options.Rows,
    top: Annotated[int, typer.Option(metavar="N", help="How many columns to name.")] = 5,
    most: Annotated[
        int, typer.Option(metavar="N", help="How many rows: those with the highest scores.")
    ] = 20,
    only_alarms: options.OnlyAlarms = False,
    false_alarm_rate: options.Rate = None,
    keep: options.Keep = None,
    *,
    layout: Layout,
) -> None:
    """Say why rows have their scores, the highest first: the columns that drive them."""
    if top < 1:
        raise UserError(f"--top expects at least 1 reason, got {top}.")
    options.check_most(most)
    with print_warnings():
        scoring = load_scoring(model, rows=rows, rate=false_alarm_rate)
        held, n = _highest(
            scoring, rows, keep or (), layout=layout, most=most, only_alarms=only_alarms
        )
        for text in _explained(scoring, held, top=top):
            typer.echo(visible(text))
        if n > len(held):
            among = counted(n, "alarm" if only_alarms else "row")
            print_stderr(f"Shown: the {len(held):,} highest of {among}; --most N shows more.")


@dataclass(frozen=True)
class _Held:
    """A row with one of the highest scores: its verdict in words, and its values."""

    score: float
    verdict: str
    row: Table


def _highest(
    model: Model,
    paths: Sequence[str],
    keep: Sequence[str],
    *,
    layout: Layout,
    most: int,
    only_alarms: bool,
) -> tuple[list[_Held], int]:
    """The rows, or alarms, with the highest scores, the highest first; and of how many."""
    held: list[_Held] = []
    highest = Highest(most)
    done = candidates = 0
    reader, kept = RowReader(model), list(dict.fromkeys(keep))
    with progress("eqsep explain", "scoring") as job:
        choose = reader.columns(more=kept)
        for name, table, before in placed_pieces(model.plan, paths, choose, layout=layout):
            if not table.num_rows:
                continue
            with errors_placed(name, before=before):
                rows = reader(table)
                score, _, alarm, kind, probability = model.verdicts(rows)
            among = np.flatnonzero(alarm) if only_alarms else np.arange(len(score))
            for i in among[highest.entering(score[among], table, among)].tolist():
                values = ((column, table.column(column)[i].as_py()) for column in kept)
                said = [
                    f"{column} {text_of(value)}" for column, value in values if value is not None
                ]
                row = f"row {done + i + 1:,}" + f" ({', '.join(said)})" * bool(said)
                verdict = _verdict(kind[i], probability[i]) if alarm[i] else "passes"
                held.append(_Held(score[i], f"{row}: {verdict}", rows.take(np.array([i]))))
            held = sorted(held, key=lambda row: -row.score)[:most]
            done += table.num_rows
            job.note = counted(done, "row")
            candidates += len(among)
    return held, candidates


def _verdict(kind: str, probability: float) -> str:
    """The name of an alarm, with its probability where that is known."""
    known = "" if np.isnan(probability) else f" ({int(100 * probability + 1e-9)}%)"
    return f"alarm, {kind}{known}"


def _explained(model: Model, held: Sequence[_Held], *, top: int) -> Iterator[str]:
    with progress("eqsep explain", "explaining", prints=True) as job:
        job.expect(len(held))
        for start in range(0, len(held), _AT_ONCE):
            some = held[start : start + _AT_ONCE]
            found = model.explain(joined([held.row for held in some]), top=top)
            job.advance(len(some))
            for row, explanation in zip(some, found, strict=True):
                yield f"{row.verdict}; {explanation}"
