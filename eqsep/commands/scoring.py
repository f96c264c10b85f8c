"""`eqsep score` and `eqsep explain`: rows from files in, scores and reasons out."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from eqsep.commands.models import as_read, columns_for, load_detector
from eqsep.commands.reading import check_not_read, files_of, open_table, pieces
from eqsep.commands.telling import listed, tell
from eqsep.commands.text_files import STANDARD_INPUT, Layout
from eqsep.commands.writing import STANDARD_OUTPUT, check_table_out, output_format, table_writer
from eqsep.detector import Detector
from eqsep.detector.verdicts import verdicts
from eqsep.distributed.cluster import cluster
from eqsep.distributed.mapping import each
from eqsep.distributed.units import as_units

_REASON = {
    "column": pa.string(),
    "value": pa.string(),
    "normal_value": pa.string(),
    "contribution": pa.float64(),
}
_ANSWERS = {
    "score": pa.float64(),
    "p_value": pa.float64(),
    "alarm": pa.bool_(),
    "kind": pa.string(),
}
_REASONS = {"reasons": pa.list_(pa.struct(_REASON))}
_NUMBER = "row"
_RESULTS = (_NUMBER, *_ANSWERS, *_REASONS)


@dataclass(frozen=True)
class Wanted:
    """What is wanted of each row.

    Attributes
    ----------
    keep : sequence of str
        Columns that are written beside the scores; by default those that the model has taken for
        ids, and where there are none the number of the row.
    explain : int
        How many reasons an alarm comes with.
    only_alarms : bool
    ray : str or None
        The cluster whose processes read and score the rows; else this one does.
    """

    keep: Sequence[str] = ()
    explain: int = 0
    only_alarms: bool = False
    ray: str | None = None

    def __post_init__(self) -> None:
        if self.explain < 0:
            raise ValueError(f"--explain expects a number of reasons, got {self.explain}.")
        taken = [name for name in self.keep if name in _RESULTS]
        if taken:
            raise ValueError(
                f"--keep {listed(taken)}: the table of scores has a column of that name already, "
                f"as of every result ({', '.join(_RESULTS)}). Rename yours in the rows, or keep an "
                f"id and join the two tables by it."
            )


@dataclass(frozen=True)
class Outcome:
    """How many rows were scored, and how many raise an alarm."""

    rows: int
    alarms: int
    seconds: float


def score_files(
    model: Path, paths: Sequence[str], out: str, *, kind: str | None, layout: Layout, wanted: Wanted
) -> Outcome:
    """Score the rows of files piece by piece and write what is wanted of them."""
    kind = output_format(out, kind)
    check_table_out(out)
    inputs = files_of(paths)
    check_not_read(out, [model, *inputs])
    detector = load_detector(model)
    started, rows, alarms = time.perf_counter(), 0, 0
    with table_writer(out, kind) as write, _counter() as count:
        score = scored if wanted.ray is None else scored_on_ray
        for table, n_rows in score(detector, inputs, layout=layout, wanted=wanted):
            write(table)
            rows += n_rows
            alarms += int(np.sum(table.column("alarm")))
            count(rows)
    return Outcome(rows, alarms, time.perf_counter() - started)


def scored(
    detector: Detector, paths: Sequence[str], *, layout: Layout, wanted: Wanted
) -> Iterator[tuple[pa.Table, int]]:
    """The answers for some thousand rows at a time, and how many rows they come from."""
    return _numbered(_answers(detector, paths, None, layout=layout, wanted=wanted))


def scored_on_ray(
    detector: Detector, paths: Sequence[str], *, layout: Layout, wanted: Wanted
) -> Iterator[tuple[pa.Table, int]]:
    """The same by the processes of a cluster, each of which reads files of its own."""
    if STANDARD_INPUT in paths:
        raise ValueError("Standard input cannot be read on a cluster: pass files.")
    files = [str(Path(path).resolve()) for path in paths]  # other processes are elsewhere
    with open_table(files[0], layout=layout) as first:
        kept = _kept(detector, first.columns, wanted)
    with cluster(wanted.ray):
        scoring = _Scoring(detector, kept, layout, wanted)
        yield from _numbered(each(as_units(files, str), scoring))


@dataclass(frozen=True)
class _Scoring:
    """From a file to the answers for its rows."""

    detector: Detector
    kept: list[str]
    layout: Layout
    wanted: Wanted

    def __call__(self, file: str) -> Iterator[tuple[str, pa.Table, int]]:
        return _answers(self.detector, [file], self.kept, layout=self.layout, wanted=self.wanted)


def _numbered(answers: Iterator[tuple[str, pa.Table, int]]) -> Iterator[tuple[pa.Table, int]]:
    """Answers with rows numbered in all files, in the types of the first ones."""
    done, schema = 0, None
    for name, answer, n_rows in answers:
        if _NUMBER in answer.schema.names:
            number = pc.add(answer.column(_NUMBER), done)
            answer = answer.set_column(0, _NUMBER, number)
        schema = schema or answer.schema
        try:
            yield answer.cast(schema), n_rows
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        done += n_rows


def _kept(detector: Detector, there: Sequence[str], wanted: Wanted) -> list[str]:
    """The columns that are written beside the answers: those asked for, or ids."""
    dropped = detector.feature_map_.encoder.dropped_
    ids = [c for c in dropped if c in there and c not in _RESULTS]
    return list(dict.fromkeys(wanted.keep)) or ids


def _answers(
    detector: Detector,
    paths: Sequence[str],
    kept: list[str] | None,
    *,
    layout: Layout,
    wanted: Wanted,
) -> Iterator[tuple[str, pa.Table, int]]:
    """The file, the answers and the number of rows, some thousand rows at a time.

    Where it is not said which columns are kept, the first file says what ids there are.
    """

    def choose(there: list[str]) -> list[str]:
        nonlocal kept
        if kept is None:
            kept = _kept(detector, there, wanted)
        return list(columns_for(detector, beside=kept)(there))

    for name, table in pieces(paths, choose, layout=layout):
        try:
            yield name, _answer(detector, table, kept or [], wanted=wanted), table.num_rows
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def _answer(
    detector: Detector, table: pa.Table, kept: Sequence[str], *, wanted: Wanted
) -> pa.Table:
    """The columns that are kept, or numbers of rows, and what the detector says of each row."""
    beside = {name: table.column(name) for name in kept}
    if not kept:
        beside = {_NUMBER: pa.array(np.arange(1, 1 + table.num_rows))}
    types = _ANSWERS | (_REASONS if wanted.explain else {})
    if not table.num_rows:
        empty = {name: pa.array([], kind) for name, kind in types.items()}
        return pa.table(beside | empty)
    rows = as_read(table, detector)
    answers = verdicts(detector, rows)
    alarm = answers["alarm"]
    if wanted.explain:
        reasons = np.full(len(alarm), None, dtype=object)
        alarms = np.flatnonzero(alarm)
        found = detector.explain(rows.take(alarms), top=wanted.explain) if len(alarms) else []
        for i, explanation in zip(alarms, found, strict=True):
            reasons[i] = [vars(reason) for reason in explanation.reasons]
        answers["reasons"] = reasons
    arrays = {name: pa.array(answers[name], kind) for name, kind in types.items()}
    whole = pa.table(beside | arrays)
    return whole.filter(pa.array(alarm)) if wanted.only_alarms else whole


def explain_files(
    model: Path,
    paths: Sequence[str],
    *,
    layout: Layout,
    top: int,
    only_alarms: bool = False,
) -> Iterator[str]:
    """Why each row, or each alarm, has its score, as text."""
    detector = load_detector(model)
    if top < 1:
        raise ValueError(f"--top expects at least 1 reason, got {top}.")
    done = 0
    for name, table in pieces(paths, columns_for(detector), layout=layout):
        if not table.num_rows:
            continue
        try:
            rows = as_read(table, detector)
            kinds = detector.predict_kind(rows)
            alarm = detector.decision_function(rows) > 0
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        picked = np.flatnonzero(alarm) if only_alarms else np.arange(len(kinds))
        for start in range(0, len(picked), 64):  # so that the first ones come at once
            some = picked[start : start + 64]
            for i, explanation in zip(
                some.tolist(), detector.explain(rows.take(some), top=top), strict=True
            ):
                said = f"alarm, {kinds[i]}" if alarm[i] else "passes"
                yield f"row {done + i + 1:,}: {said}; {explanation}"
        done += table.num_rows


def tell_outcome(console: Console, outcome: Outcome, out: str) -> None:
    """Say what was scored, where it does not stand in the way of the scores."""
    rate = outcome.rows / max(outcome.seconds, 1e-9)
    share = outcome.alarms / max(outcome.rows, 1)
    text = (
        f"{outcome.rows:,} rows, {outcome.alarms:,} alarms ({share:.1%}), {outcome.seconds:.1f} s, "
        f"{rate:,.0f} rows/s"
    )
    if out == STANDARD_OUTPUT:
        tell(text)
    else:
        console.print(f"{text}: {out}", soft_wrap=True)


@contextmanager
def _counter() -> Iterator[Callable[[int], None]]:
    """Rows counted on the screen, where there is one."""
    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.completed:,} rows"), TimeElapsedColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("rows", total=None)
        yield lambda rows: bar.update(task, completed=rows)
