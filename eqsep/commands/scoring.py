"""`eqsep score`: rows from files in, scores and reasons out."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from eqsep.checks import Beyond, check_beyond, rows_beyond, warn_of
from eqsep.commands.console import progress
from eqsep.commands.dialects import Layout
from eqsep.commands.outcomes import Outcome, ScoredRows, Tally
from eqsep.commands.ranking import Highest, ranked
from eqsep.commands.reading import (
    Choice,
    as_read,
    check_not_read,
    columns_for,
    errors_placed,
    files_of,
    load_scoring,
    open_table,
    pieces,
)
from eqsep.commands.repeats import Repeats
from eqsep.commands.runs import RunReader
from eqsep.commands.streams import STANDARD_INPUT
from eqsep.commands.writing import (
    as_column,
    check_table_out,
    output_format,
    shortened,
    table_writer,
)
from eqsep.detector.calibration import alarms_needed, checked_fdr, select
from eqsep.detector.model import Model
from eqsep.engine.loops import threads, workers
from eqsep.errors import UserError, quoted
from eqsep.labels import NORMAL
from eqsep.tables.reading import Table, arrow_numbers

_REASON = {
    "column": pa.string(),
    "value": pa.string(),
    "normal_value": pa.string(),
    "contribution": pa.float64(),
}
_COLUMNS = {
    "score": pa.float64(),
    "p_value": pa.float64(),
    "alarm": pa.bool_(),
    "kind": pa.string(),
}
_REASONS = {"reasons": pa.list_(pa.struct(_REASON))}
_NUMBER = "row"
_AT_ONCE = 4  # pieces that are scored, each in a thread
_RESULTS = (_NUMBER, *_COLUMNS, *_REASONS)


@dataclass(frozen=True)
class Wanted:
    """What is wanted of which rows.

    Attributes
    ----------
    most : int or None
        How many rows: those with the highest scores, the highest first; else all in their order.
    explain : int
        How many reasons a row comes with.
    only_alarms : bool
    rate : float or None
        The share of new normal rows that may raise an alarm; else as the model was fitted.
    keep : sequence of str
        Columns that are written before the score; by default those that were taken for ids.
    ray : str or None
        The cluster whose processes read and score the rows; else this one does.
    fdr : float or None
        The share of the alarms that may be false; all rows are one batch then.
    threshold : float or None
        Alarms are above it; else above that of the model.
    persist : str or None
        How many of how many last rows must be above it, as in "3/5".
    """

    most: int | None = None
    explain: int = 0
    only_alarms: bool = False
    rate: float | None = None
    keep: Sequence[str] = ()
    ray: str | None = None
    fdr: float | None = None
    threshold: float | None = None
    persist: str | None = None

    def __post_init__(self) -> None:
        if self.persist is not None and (self.fdr is not None or self.ray is not None):
            raise UserError(
                "--persist goes from row to row: --fdr selects among all rows, and --ray reads "
                "files apart. Pass one of them."
            )
        if self.fdr is not None and self.rate is not None:
            raise UserError(
                "--fdr and --false-alarm-rate are two promises: --fdr says which share of the "
                "alarms may be false, the other which share of the normal rows. Pass one of them."
            )
        if self.explain < 0:
            raise UserError(f"--explain expects a number of reasons, got {self.explain}.")
        if self.most is not None and self.most < 1:
            raise UserError(f"--most expects a number of rows, 1 or more, got {self.most}.")
        taken = [name for name in self.keep if name in _RESULTS]
        if taken:
            raise UserError(
                f"--keep {quoted(taken)}: the table of scores has a column of that name already, "
                f"as of every result ({', '.join(_RESULTS)}). Rename yours in the rows, or keep an "
                f"id and join the two tables by it."
            )


@dataclass(frozen=True)
class RowReader:
    """From pieces of files to the rows that a detector takes, each for itself."""

    model: Model
    looks_back: ClassVar[bool] = False

    def columns(self, *, beside: Iterable[str] = ()) -> Choice:
        """The columns of a file that are read."""
        return columns_for(self.model.plan, beside=beside)

    def __call__(self, table: pa.Table) -> Table:
        """The rows of a piece."""
        return as_read(table, self.model.plan)

    def persisting(self, alarm: np.ndarray, rows: Table) -> np.ndarray:  # noqa: ARG002
        """Which alarms stay: all."""
        return alarm


def reader_of(model: Model, *, persist: str | None = None) -> RowReader | RunReader:
    """How pieces of files become rows: with the rows before them, where something looks back."""
    if model.plan.windows is None and persist is None:
        return RowReader(model)
    return RunReader(model, persist=persist)


def score_files(
    path: Path, paths: Sequence[str], out: str, *, kind: str | None, layout: Layout, wanted: Wanted
) -> Outcome:
    """Score the rows of files piece by piece and write what is wanted of them."""
    kind = output_format(out, kind)
    check_table_out(out)
    inputs = files_of(paths)
    check_not_read(out, [path, *inputs])
    model = load_scoring(path, rows=paths, rate=wanted.rate)
    tally, needed = Tally(), None
    if wanted.fdr is not None:
        wanted, needed = _selecting(model, inputs, layout=layout, wanted=wanted)
    with table_writer(out, kind) as write, progress("rows") as say:
        score = scored if wanted.ray is None else scored_on_ray
        tables = tally.counted(score(model, inputs, layout=layout, wanted=wanted), say)
        for table in tables if wanted.most is None else ranked(tables, most=wanted.most):
            write(shortened(table, kind))
            tally.written += table.num_rows
    warn_of(check_beyond(tally.beyond, n_rows=tally.rows))
    return replace(tally.outcome(ranked=wanted.most is not None), needed=needed)


def _selecting(
    model: Model, paths: Sequence[str], *, layout: Layout, wanted: Wanted
) -> tuple[Wanted, int]:
    """What is wanted, with the threshold of a selection; how few alarms there can be.

    All rows are read and scored once before; nothing but their p-values is held.
    """
    if STANDARD_INPUT in paths:
        raise UserError("--fdr reads all rows twice, and standard input comes once: pass files.")
    fdr, n, first = checked_fdr(wanted.fdr or 0.0), model.n_calibrating(), Wanted(ray=wanted.ray)
    score = scored if wanted.ray is None else scored_on_ray
    with progress("rows") as say:
        tables = Tally().counted(score(model, paths, layout=layout, wanted=first), say)
        p = np.concatenate([arrow_numbers(table.column("p_value")) for table in tables])
    rows = select(p, fdr=fdr, n_calibrating=n)
    threshold = model.calibration.threshold(p[rows].max()) if rows.any() else np.inf
    needed = alarms_needed(len(p), fdr=fdr, n_calibrating=n)
    return replace(wanted, threshold=float(threshold)), needed


def scored(
    model: Model, paths: Sequence[str], *, layout: Layout, wanted: Wanted
) -> Iterator[ScoredRows]:
    """The answers for some thousand rows at a time."""
    return _numbered(_answers(model, paths, None, layout=layout, wanted=wanted))


def scored_on_ray(
    model: Model, paths: Sequence[str], *, layout: Layout, wanted: Wanted
) -> Iterator[ScoredRows]:
    """The same by the processes of a cluster, each of which reads files of its own."""
    from eqsep.distributed.cluster import check_no_windows, cluster
    from eqsep.distributed.mapping import each
    from eqsep.distributed.units import as_units

    if STANDARD_INPUT in paths:
        raise UserError("Standard input cannot be read on a cluster: pass files.")
    check_no_windows(model.plan.windows)
    files = [str(Path(path).resolve()) for path in paths]  # other processes are elsewhere
    with open_table(files[0], layout=layout) as first:
        kept = _kept(model, first.columns, wanted)
    with cluster(wanted.ray):
        yield from _numbered(each(as_units(files, str), _Scoring(model, kept, layout, wanted)))


@dataclass(frozen=True)
class _Scoring:
    """From a file to the answers for its rows."""

    model: Model
    kept: list[str]
    layout: Layout
    wanted: Wanted

    def __call__(self, file: str) -> Iterator[ScoredRows]:
        return _answers(self.model, [file], self.kept, layout=self.layout, wanted=self.wanted)


def _numbered(pieces: Iterator[ScoredRows]) -> Iterator[ScoredRows]:
    """ScoredRows with rows numbered in all files, in the types of the first ones."""
    done, schema = 0, None
    for answers in pieces:
        table = answers.table
        numbers = as_column(done + arrow_numbers(table.column(_NUMBER)), pa.int64())
        table = table.set_column(0, _NUMBER, numbers)
        schema = schema or table.schema
        try:
            table = table.cast(schema)
        except (pa.ArrowException, ValueError) as error:
            raise UserError(f"{answers.file}: {error}") from error
        yield replace(answers, table=table)
        done += answers.rows


def _kept(model: Model, there: Sequence[str], wanted: Wanted) -> list[str]:
    """The columns that are written beside the answers: those asked for, or ids."""
    dropped = model.plan.encoder.dropped
    ids = [c for c in dropped if c in there and c not in _RESULTS]
    return list(dict.fromkeys(wanted.keep)) or ids


def _answers(
    model: Model,
    paths: Sequence[str],
    kept: list[str] | None,
    *,
    layout: Layout,
    wanted: Wanted,
) -> Iterator[ScoredRows]:
    """The answers for some thousand rows at a time.

    Where it is not said which columns are kept, the first file says what ids there are.
    """

    def choose(there: list[str]) -> list[str]:
        nonlocal kept
        if kept is None:
            kept = _kept(model, there, wanted)
        return list(reader.columns(beside=kept)(there))

    def answer(name: str, table: pa.Table, before: int) -> ScoredRows:
        with errors_placed(name, before=before):
            return answering(name, table, kept or [])

    def placed() -> Iterator[tuple[str, pa.Table, int]]:
        done: Counter[str] = Counter()
        for name, table in pieces(paths, choose, layout=layout, like=model.plan):
            yield name, table, done[name]
            done[name] += table.num_rows

    reader = reader_of(model, persist=wanted.persist)
    answering = _Answering.of(reader, wanted)
    n = min(threads(), _AT_ONCE)
    one_by_one = (
        reader.looks_back or wanted.most is not None or model.score.device != "cpu" or n == 1
    )
    return starmap(answer, placed()) if one_by_one else _in_threads(answer, placed(), n)


def _in_threads(
    answer: Callable[..., ScoredRows], pieces: Iterator[tuple[Any, ...]], n: int
) -> Iterator[ScoredRows]:
    """Answers in the order of pieces, of `n` at a time, while others are read and written."""
    waiting = deque[Future[ScoredRows]]()
    with workers(n) as pool:
        try:
            for piece in pieces:
                waiting.append(pool.submit(answer, *piece))
                if len(waiting) > n:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class _Answering:
    """From a piece of a file to what is kept and said of its rows that are wanted.

    Attributes
    ----------
    repeats : Repeats or None
        What is told of rows that come again; None where more than their values is looked at.
    """

    reader: RowReader | RunReader
    wanted: Wanted
    highest: Highest | None
    repeats: Repeats | None

    @classmethod
    def of(cls, reader: RowReader | RunReader, wanted: Wanted) -> "_Answering":
        highest = None if wanted.most is None else Highest(wanted.most)
        model = reader.model
        learnt = model.plan.encoder.columns
        has_dates = any(column is not None and column.kind == "date" for column in learnt)
        if reader.looks_back or wanted.explain or has_dates:
            return cls(reader, wanted, highest, None)
        repeats = Repeats(lambda t: model.verdicts(reader(t), threshold=wanted.threshold).columns())
        return cls(reader, wanted, highest, repeats)

    def __call__(self, name: str, table: pa.Table, kept: Sequence[str]) -> ScoredRows:
        beside = {_NUMBER: as_column(np.arange(1, 1 + table.num_rows), pa.int64())}
        beside |= {column: table.column(column) for column in kept}
        types = _COLUMNS | (_REASONS if self.wanted.explain else {})
        if not table.num_rows:
            empty = {name: pa.nulls(0, kind) for name, kind in types.items()}
            return ScoredRows(
                file=name, table=pa.table(beside | empty), rows=0, alarms=0, beyond=Counter()
            )
        answers, rows, beyond = self._judged(table, kept)
        alarm = answers["alarm"]
        picked = np.flatnonzero(alarm) if self.wanted.only_alarms else np.arange(len(alarm))
        if self.highest is not None:
            picked = picked[self.highest.entering(answers["score"][picked])]
        if rows is not None and self.wanted.explain:
            answers["reasons"] = self._reasons(rows, picked[alarm[picked]])
        arrays = {name: as_column(answers[name][picked], kind) for name, kind in types.items()}
        some = as_column(picked, pa.int64())
        there = pa.table(beside).take(some) if len(picked) < len(alarm) else beside
        answer = pa.table({column: there[column] for column in beside} | arrays)
        return ScoredRows(
            file=name, table=answer, rows=len(alarm), alarms=int(alarm.sum()), beyond=beyond
        )

    def _judged(
        self, table: pa.Table, kept: Sequence[str]
    ) -> tuple[dict[str, np.ndarray], Table | None, Beyond]:
        """What is told of the rows; the rows, unless they came before; how many have odd dates."""
        reader, model = self.reader, self.reader.model
        if self.repeats is not None:
            read = list(reader.columns(beside=kept)(table.schema.names))
            return self.repeats(table, read[: len(read) - len(kept)]), None, Counter()
        rows = reader(table)
        answers = model.verdicts(rows, threshold=self.wanted.threshold).columns()
        answers["alarm"] = alarm = reader.persisting(answers["alarm"], rows)
        answers["kind"][~alarm] = NORMAL
        return answers, rows, rows_beyond(rows, model.plan.encoder)

    def _reasons(self, rows: Table, alarms: np.ndarray) -> np.ndarray:
        """Those of the alarms among the rows; None for others."""
        reasons = np.full(rows.n_rows, None, dtype=object)
        if len(alarms):
            found = self.reader.model.explain(rows.take(alarms), top=self.wanted.explain)
            for i, explanation in zip(alarms, found, strict=True):
                reasons[i] = [vars(reason) for reason in explanation.reasons]
        return reasons
