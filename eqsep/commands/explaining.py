"""`eqsep explain`: why the rows with the highest scores have them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eqsep.commands.console import counted, tell
from eqsep.commands.dialects import Layout
from eqsep.commands.ranking import Highest
from eqsep.commands.reading import errors_placed, load_scoring, pieces
from eqsep.commands.scoring import Wanted, reader_of
from eqsep.detector.model import Model
from eqsep.tables.batches import joined
from eqsep.tables.reading import Table

_AT_ONCE = 64  # rows that are explained together, so that the first ones come at once


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
    highest = Highest(wanted.most)
    done = candidates = 0
    in_file: Counter[str] = Counter()
    reader = reader_of(model)
    for name, table in pieces(paths, reader.columns(), layout=layout, like=model.plan):
        if not table.num_rows:
            continue
        with errors_placed(name, before=in_file[name]):
            rows = reader(table)
            score, _, alarm, kind = model.verdicts(rows)
        among = np.flatnonzero(alarm) if wanted.only_alarms else np.arange(len(score))
        for i in among[highest.entering(score[among])].tolist():
            said = f"row {done + i + 1:,}: " + (f"alarm, {kind[i]}" if alarm[i] else "passes")
            held.append(_Held(score[i], said, rows.take(np.array([i]))))
        held = sorted(held, key=lambda row: -row.score)[: wanted.most]
        done += table.num_rows
        in_file[name] += table.num_rows
        candidates += len(among)
    yield from _explained(model, held, top=wanted.explain)
    if candidates > len(held):
        all_of_them = counted(candidates, "alarm" if wanted.only_alarms else "row")
        tell(f"Shown: the {len(held):,} highest of {all_of_them}; --most N shows more.")


def _explained(model: Model, held: Sequence[_Held], *, top: int) -> Iterator[str]:
    for start in range(0, len(held), _AT_ONCE):
        some = held[start : start + _AT_ONCE]
        found = model.explain(joined([held.row for held in some]), top=top)
        for row, explanation in zip(some, found, strict=True):
            yield f"{row.said}; {explanation}"
