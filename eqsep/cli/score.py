"""`eqsep score` and `eqsep explain`: rows from files in, scores and reasons out."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from pathlib import Path
from secrets import randbits
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import typer

from eqsep.checks import Beyond, has_dates, rows_beyond, warn_of
from eqsep.cli import options
from eqsep.cli.console import Job, flag, opt, print_stderr, print_warnings, print_written, progress
from eqsep.cli.inputs import (
    RowReader,
    errors_placed,
    load_scoring,
    note_short_windows,
    placed_pieces,
    row_names,
)
from eqsep.cli.project import shown_kind
from eqsep.detector.calibration import alarms_needed, checked_fdr, select
from eqsep.detector.model import Model
from eqsep.engine.backends import NUMPY
from eqsep.engine.keys import KeyTable, mixed_numbers, mixed_texts
from eqsep.engine.loops import threads, workers
from eqsep.errors import UserError, counted, visible
from eqsep.io import writing
from eqsep.io.dialect import Layout
from eqsep.io.files import check_not_read, files_of, open_file
from eqsep.io.streams import STANDARD_INPUT
from eqsep.io.text import BadRows
from eqsep.io.writing import STANDARD_OUTPUT, as_column, with_nulls
from eqsep.labels import NORMAL, UNSEEN
from eqsep.tables.batches import joined
from eqsep.tables.reading import Table, arrow_numbers

_NAMES = ("score", "p_value", "alarm", "kind", "kind_probability")
_COLUMNS = dict.fromkeys(_NAMES, pa.float64()) | {"alarm": pa.bool_(), "kind": pa.string()}
_KINDS = {"kinds": pa.string()}
_REASON = dict.fromkeys(("column", "value", "normal_value"), pa.string())
_REASON |= {"contribution": pa.float64(), "usual": pa.bool_()}
_REASONS = {"reasons": pa.list_(pa.struct(_REASON))}
_NUMBER = "row"
_PREFIX = "kept: "  # before the names of columns that are kept, until they are written
_PIECES_IN_THREADS = 4  # pieces that are scored, each in a thread
MOST = 2**20  # rows with verdicts in memory
WORTH = 1 / 16  # the share of repeated rows below which looking them up does not pay
_TEXTS = {pa.string(): np.int32, pa.large_string(): np.int64}
_WIDE_TYPES = {"b": np.uint64, "u": np.uint64, "i": np.int64, "f": np.float64}
_MISSING = np.uint64(1)
VerdictColumns = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """What is wanted of which rows: the options of the command."""

    explain: int = opt(0, "N", "Give each alarm this many reasons.")
    kinds: bool = flag("--kinds", "Also list the kinds that each alarm may be of.")
    only_alarms: bool = options.ONLY_ALARMS
    most: int | None = opt(None, "N", "Only the N highest scores, highest first.")
    false_alarm_rate: float | None = options.RATE
    fdr: float | None = opt(None, "SHARE", "Share of all alarms that may be false.")
    persist: str | None = options.PERSIST
    keep: list[str] | None = options.KEEP
    ray: str | None = options.RAY
    layout: Layout = field(default_factory=Layout)
    bad_rows: BadRows | None = None
    threshold: float | None = None  # the one that `fdr` leads to

    def __post_init__(self) -> None:
        if self.persist is not None and (self.fdr is not None or self.ray is not None):
            raise UserError("--persist cannot be used with --fdr or --ray: pass one of them.")
        if self.fdr is not None and self.false_alarm_rate is not None:
            raise UserError("--fdr and --false-alarm-rate are two promises: pass one of them.")
        if self.explain < 0:
            raise UserError(f"--explain expects a number of reasons, got {self.explain}.")
        if self.most is not None:
            options.check_most(self.most)


@options.reads_tables
def score(
    model: Path = options.MODEL,
    rows: list[str] = options.ROWS,
    out: str = options.TABLE_OUT,
    *,
    wanted: ScoreOptions,
    form: str | None = options.FORM,
    exit_code: bool = flag("--exit-code", "Exit with 1 if a row raises an alarm."),
    layout: Layout,
    bad_rows: BadRows | None,
) -> None:
    """Score rows: write score, p_value, alarm, kind and its probability among the seen kinds."""
    wanted = replace(wanted, layout=layout, bad_rows=bad_rows)
    with print_warnings():
        tally = score_files(model, rows, wanted, out=out, kind=writing.output_format(out, form))
    print_written(tally.summary(), out)
    raise typer.Exit(1 if exit_code and tally.alarms else 0)


@dataclass(frozen=True)
class ScoredRows:
    """What is written of a piece of a file; how many rows, alarms and odd dates it has."""

    file: str
    table: pa.Table
    rows: int = 0
    alarms: int = 0
    beyond: Beyond = field(default_factory=Counter)
    short: tuple[bool, ...] = ()  # of rows with short windows, which are alarms


class ScoredCounts:
    """What is counted while answers go by."""

    def __init__(self) -> None:
        self.rows = self.alarms = self.first_rows = 0
        self.beyond: Beyond = Counter()
        self.short: list[bool] = []  # of rows with short windows, which are alarms
        self.started = self.warm = time.perf_counter()
        self.highest: int | None = None  # rows written, where only the highest were wanted
        self.needed = 0  # the smallest number of alarms other than zero that --fdr can report

    def counted(self, pieces: Iterator[ScoredRows], job: Job) -> Iterator[pa.Table]:
        """The tables of answers, once these are counted."""
        for answers in pieces:
            self.alarms += answers.alarms
            self.beyond.update(answers.beyond)
            self.short += answers.short
            if not self.rows:
                self.first_rows, self.warm = answers.rows, time.perf_counter()
            self.rows += answers.rows
            job.note = counted(self.rows, "row")
            yield answers.table

    def summary(self) -> str:
        """How many rows were scored, how many raise an alarm, and how fast it went."""
        now, later = time.perf_counter(), self.rows - self.first_rows
        rows, alarms = counted(self.rows, "row"), counted(self.alarms, "alarm")
        share = self.alarms / max(self.rows, 1)
        text = f"{rows}, {alarms} ({share:.1%}), {now - self.started:.1f} s"
        if later and later >= self.first_rows:  # which waits for compiled code
            text += f", {later / max(now - self.warm, 1e-9):,.0f} rows/s after the first piece"
        if self.needed > 1:
            text += f"; --fdr gives {self.needed:,} alarms or more, or none (fewer could be chance)"
        if self.highest is not None:
            text += f"; the {self.highest:,} highest"
        return text


def score_files(
    path: Path, paths: Sequence[str], wanted: ScoreOptions, *, out: str, kind: str
) -> ScoredCounts:
    """Score the rows of files piece by piece and write what is wanted of them."""
    writing.check_table_out(out)
    inputs = files_of(paths, noted=True)
    check_not_read(out, [path, *inputs])
    model = load_scoring(path, rows=paths, rate=wanted.false_alarm_rate)
    tally = ScoredCounts()
    first = "scoring" if wanted.fdr is None else "selecting"
    with progress("eqsep score", first, prints=out == STANDARD_OUTPUT) as job:
        if wanted.fdr is not None:
            threshold, tally.needed = _selecting(model, inputs, wanted, job)
            wanted = replace(wanted, threshold=threshold)
            job.phase("scoring")
        with writing.table_writer(out, kind) as write:
            tables = tally.counted(scored(model, inputs, wanted), job)
            if wanted.most is not None:
                tables, tally.highest = ranked(tables, most=wanted.most), 0
            for table in tables:
                write(_with_names(writing.shortened(table, kind)))
                if tally.highest is not None:
                    tally.highest += table.num_rows
    warn_of(model.check_beyond(tally.beyond, n_rows=tally.rows))
    note_short_windows(model.plan.windows, tally.short)
    return tally


def _selecting(
    model: Model, paths: Sequence[str], wanted: ScoreOptions, job: Job
) -> tuple[float, int]:
    """The threshold by `fdr`, and the smallest number of alarms that it can report."""
    if STANDARD_INPUT in paths:
        raise UserError("--fdr reads all rows twice, and standard input comes once: pass files.")
    fdr, n = checked_fdr(wanted.fdr or 0.0), model.n_calibrating()
    off: dict[str, Any] = {"most": None, "fdr": None, "explain": 0, "keep": None, "kinds": False}
    every_row = replace(wanted, only_alarms=False, **off)
    tables = ScoredCounts().counted(scored(model, paths, every_row), job)
    p = np.concatenate([arrow_numbers(table.column("p_value")) for table in tables])
    rows = select(p, fdr=fdr)
    warn_of(model.check_selection(rows, fdr=fdr))
    threshold = model.calibration.threshold(p[rows].max()) if rows.any() else np.inf
    return float(threshold), alarms_needed(len(p), fdr=fdr, n_calibrating=n)


def scored(model: Model, paths: Sequence[str], wanted: ScoreOptions) -> Iterator[ScoredRows]:
    """Some thousand answers at a time, numbered in all files, in the types of the first ones."""
    done, schema = 0, None
    score = _answers if wanted.ray is None else _answers_on_ray
    for answers in score(paths, model=model, wanted=wanted):
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


def _answers_on_ray(
    paths: Sequence[str], *, model: Model, wanted: ScoreOptions
) -> Iterator[ScoredRows]:
    """The answers of a cluster, where each process reads some of the files."""
    from eqsep.distributed.cluster import check_no_windows, cluster
    from eqsep.distributed.units import as_units, each

    if STANDARD_INPUT in paths:
        raise UserError("Standard input cannot be read on a cluster: pass files.")
    check_no_windows(model.plan.windows)
    files = [str(Path(path).resolve()) for path in paths]  # processes have other folders
    with open_file(files[0], layout=wanted.layout, bad_rows=wanted.bad_rows) as first:
        kept = _kept(model, first.columns, wanted)
    work = partial(_answers, model=model, wanted=wanted, kept=kept)
    with cluster(wanted.ray):
        yield from each(as_units(files, str), work)


def _answers(
    paths: Sequence[str] | str, *, model: Model, wanted: ScoreOptions, kept: list[str] | None = None
) -> Iterator[ScoredRows]:
    """The answers for some thousand rows at a time, of one file or of several."""
    scorer = _Scorer(model, wanted, kept)
    files = [paths] if isinstance(paths, str) else paths
    placed = placed_pieces(
        model.plan, files, scorer.choose, layout=wanted.layout, bad_rows=wanted.bad_rows
    )
    n = min(threads(), _PIECES_IN_THREADS)
    one_by_one = scorer.reader.looks_back or wanted.most is not None
    one_by_one |= model.score.backend is not NUMPY
    return starmap(scorer, placed) if one_by_one or n == 1 else _in_threads(scorer, placed, n)


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


def _kept(model: Model, there: Sequence[str], wanted: ScoreOptions) -> list[str]:
    """The columns that are written with the answers: those asked for, or ids."""
    dropped = model.plan.encoder.dropped
    return list(dict.fromkeys(wanted.keep or ())) or [c for c in dropped if c in there]


def _with_names(table: pa.Table) -> pa.Table:
    """The table with kept columns by their names; results of the same names get a prefix."""
    kept = {name.removeprefix(_PREFIX) for name in table.column_names if name.startswith(_PREFIX)}
    names = {name: f"eqsep_{name}" for name in kept}
    return table.rename_columns([names.get(n, n.removeprefix(_PREFIX)) for n in table.column_names])


class _Scorer:
    """From a piece of a file to what is kept and found of its rows that are wanted."""

    def __init__(self, model: Model, wanted: ScoreOptions, kept: list[str] | None) -> None:
        self.model, self.wanted, self.kept = model, wanted, kept
        self.reader = RowReader(model, persist=wanted.persist)
        self.highest = None if wanted.most is None else Highest(wanted.most)
        dated = has_dates(model.plan.encoder)
        by_values = not (self.reader.looks_back or wanted.explain or dated)
        self.repeats = VerdictCache(lambda t: self._verdicts(self.reader(t))) if by_values else None

    def choose(self, there: list[str]) -> Iterable[str]:
        """The columns of a file that are read, those that are kept too."""
        if self.kept is None:
            self.kept = _kept(self.model, there, self.wanted)
        return self.reader.columns(more=self.kept)(there)

    def __call__(self, name: str, table: pa.Table, before: int) -> ScoredRows:
        kept = self.kept or []
        first = {_NUMBER: as_column(np.arange(1, 1 + table.num_rows), pa.int64())}
        first |= {f"{_PREFIX}{column}": table.column(column) for column in kept}
        types = _COLUMNS | (_KINDS if self.wanted.kinds else {})
        types |= _REASONS if self.wanted.explain else {}
        if not table.num_rows:
            empty = {name: pa.nulls(0, kind) for name, kind in types.items()}
            return ScoredRows(name, pa.table(first | empty))
        with errors_placed(name, before=before):
            answers, rows = self._judged(table, kept)
            alarm = answers["alarm"]
            picked = np.flatnonzero(alarm) if self.wanted.only_alarms else np.arange(len(alarm))
            if self.highest is not None:
                picked = picked[self.highest.entering(answers["score"][picked], table, picked)]
            if rows is not None and self.wanted.explain:
                answers["reasons"] = self._reasons(rows, picked[alarm[picked]])
        found = {name: as_column(answers[name][picked], kind) for name, kind in types.items()}
        found["kind_probability"] = with_nulls(answers["kind_probability"][picked])
        some = pa.table(first)
        if len(picked) < len(alarm):
            some = some.take(as_column(picked, pa.int64()))
        return ScoredRows(
            file=name,
            table=pa.table({column: some[column] for column in first} | found),
            rows=len(alarm),
            alarms=int(alarm.sum()),
            beyond=Counter() if rows is None else rows_beyond(rows, self.model.plan.encoder),
            short=tuple(alarm[np.flatnonzero(self.reader.short)].tolist()),
        )

    def _judged(self, table: pa.Table, kept: Sequence[str]) -> tuple[VerdictColumns, Table | None]:
        """The verdicts on the rows; the rows too, unless these may come from memory."""
        if self.repeats is not None:
            read = list(self.reader.columns(more=kept)(table.schema.names))
            return self.repeats(table, read[: len(read) - len(kept)]), None
        rows = self.reader(table)
        answers = self._verdicts(rows)
        answers["alarm"] = alarm = self.reader.persisting(answers["alarm"], rows)
        answers["kind"][~alarm], answers["kind_probability"][~alarm] = NORMAL, np.nan
        if self.wanted.kinds:
            answers["kinds"][~alarm] = ""
        return answers, rows

    def _verdicts(self, rows: Table) -> VerdictColumns:
        threshold = self.wanted.threshold
        found = self.model.verdicts(rows, threshold=threshold).columns()
        if self.wanted.kinds:
            sets = self.model.kind_sets(rows, threshold=threshold)
            found["kinds"] = np.array(sets.texts(), dtype=object)
        return found

    def _reasons(self, rows: Table, alarms: np.ndarray) -> np.ndarray:
        """The reasons of the alarms among the rows; None for others."""
        reasons = np.full(rows.n_rows, None, dtype=object)
        if len(alarms):
            found = self.model.explain(rows.take(alarms), top=self.wanted.explain)
            for i, explanation in zip(alarms, found, strict=True):
                reasons[i] = [vars(reason) for reason in explanation.worth_a_line()]
        return reasons


class Highest:
    """The highest scores so far, at most so many, of rows that differ."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._scores = np.empty(0)
        self._seen: set[str] = set()

    def entering(self, scores: np.ndarray, table: pa.Table, rows: np.ndarray) -> np.ndarray:
        """Which of these rows are among the highest now; of equal ones the first stays."""
        full = len(self._scores) >= self.most
        likely = np.flatnonzero(scores > self._scores.min()) if full else np.arange(len(scores))
        rows = table.take(as_column(rows[likely], pa.int64())).to_pylist()
        pairs = zip(likely, rows, strict=True)
        new = np.array([i for i, row in pairs if self._is_new(repr(row))], int)
        both = np.concatenate([self._scores, scores[new]])
        order = np.argsort(-both, kind="stable")[: self.most]
        before, self._scores = len(self._scores), both[order]
        return new[np.sort(order[order >= before] - before)]

    def _is_new(self, row: str) -> bool:
        if row in self._seen:
            return False
        self._seen.add(row)
        return True


def ranked(tables: Iterable[pa.Table], *, most: int) -> Iterator[pa.Table]:
    """One table: the rows of all of them with the highest scores, in falling order."""
    held: pa.Table | None = None
    for table in tables:
        both = table if held is None else pa.concat_tables([held, table])
        order = np.argsort(-both.column("score").to_numpy(), kind="stable")[:most]
        held = both.take(pa.array(order, pa.int64())).combine_chunks()
    if held is not None:
        yield held


class VerdictCache:
    """A cache of verdicts on rows by the values that a model reads, for several threads."""

    def __init__(self, verdicts: Callable[[pa.Table], VerdictColumns]) -> None:
        self._verdicts = verdicts
        self._factors = np.array([randbits(64) | 1 for _ in range(2)], dtype=np.uint64)
        self._lock, self._table = Lock(), KeyTable(most=MOST)
        self._held: dict[str, np.ndarray] = {}
        self._tried = self._found = 0

    def __call__(self, table: pa.Table, columns: Sequence[str]) -> VerdictColumns:
        """The verdicts on the rows of a table, by the values of these columns."""
        is_worth_it = self._tried < 2 * MOST or self._found > WORTH * self._tried
        keys = self._keys(table, columns) if is_worth_it else None
        if keys is None:
            return self._verdicts(table)
        with self._lock:
            places = self._table.places(keys)
            known = {name: values[places] for name, values in self._held.items()}
        new = np.flatnonzero(places < 0)
        self._tried, self._found = self._tried + len(places), self._found + len(places) - len(new)
        if not len(new):
            return known
        some = KeyTable(most=len(new))
        first = new[some.add(keys[new])]
        rows = table if len(first) == len(table) else table.take(as_column(first, pa.int64()))
        try:
            found = self._verdicts(rows)
        except UserError:
            return self._verdicts(table)  # so that the error names the right row
        self._keep(keys[first], found)
        again = some.places(keys[new])
        for name, values in found.items():
            known.setdefault(name, np.empty(len(table), values.dtype))[new] = values[again]
        return known

    def _keep(self, keys: np.ndarray, found: VerdictColumns) -> None:
        with self._lock:
            n = len(self._table)
            added = self._table.add(keys)
            for name, values in found.items():
                if name not in self._held:
                    self._held[name] = np.empty(MOST, values.dtype)
                self._held[name][n : n + len(added)] = values[added]

    def _keys(self, table: pa.Table, columns: Sequence[str]) -> np.ndarray | None:
        """Two numbers for each row, the same for the same values; None where some have none."""
        fields = [table.schema.field(name) for name in columns]
        written = hash(tuple((str(f.type), str(f.metadata)) for f in fields))
        keys = np.full((len(table), 2), written % 2**64, dtype=np.uint64)
        for name in columns:
            column = table.column(name)
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            if column.null_count:
                keys[arrow_numbers(column.is_null())] += _MISSING
            if column.type in _TEXTS:
                _, offsets, data = column.buffers()
                here = slice(column.offset, column.offset + len(column) + 1)
                ends = np.frombuffer(offsets, _TEXTS[column.type])[here]
                mixed_texts(ends, np.frombuffer(data or b"", np.uint8), self._factors, keys)
            elif pa.types.is_floating(column.type) or (
                not column.null_count
                and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type))
            ):
                x = arrow_numbers(column)
                mixed_numbers(x.astype(_WIDE_TYPES[x.dtype.kind]), self._factors, keys)
            else:
                return None
        return keys


_Held = tuple[float, str, str, Table]  # a row's score, name, verdict in words, and values
_EXPLAINED = 64  # rows that are explained together, so that the first ones come at once


@options.reads_tables
def explain(
    model: Path = options.MODEL,
    rows: list[str] = options.ROWS,
    top: int = opt(5, "N", "Number of columns to name."),
    most: int = opt(20, "N", "Number of rows: those with the highest scores."),
    only_alarms: bool = options.ONLY_ALARMS,
    false_alarm_rate: float | None = options.RATE,
    keep: list[str] | None = options.KEEP,
    *,
    layout: Layout,
    bad_rows: BadRows | None,
) -> None:
    """Show which columns drive the highest scores, highest first."""
    if top < 1:
        raise UserError(f"--top expects at least 1 reason, got {top}.")
    options.check_most(most)
    with print_warnings():
        scoring = load_scoring(model, rows=rows, rate=false_alarm_rate)
        held, n = _highest(
            scoring,
            rows,
            keep or [],
            layout=layout,
            bad_rows=bad_rows,
            most=most,
            alarms=only_alarms,
        )
        for text in _explained(scoring, held, top=top):
            typer.echo(visible(text))
        if n > len(held):
            among = counted(n, "alarm" if only_alarms else "row")
            print_stderr(f"Shown: the {len(held):,} highest of {among}; --most N shows more.")


def _highest(
    model: Model,
    paths: list[str],
    keep: list[str],
    *,
    layout: Layout,
    bad_rows: BadRows | None,
    most: int,
    alarms: bool,
) -> tuple[list[_Held], int]:
    """The rows, or alarms, with the highest scores, the highest first; and of how many."""
    held: list[_Held] = []
    short: list[bool] = []
    highest = Highest(most)
    done = candidates = 0
    reader, kept = RowReader(model), list(dict.fromkeys(keep))
    with progress("eqsep explain", "scoring") as job:
        choose = reader.columns(more=kept)
        placed = placed_pieces(model.plan, paths, choose, layout=layout, bad_rows=bad_rows)
        for name, table, before in placed:
            if not table.num_rows:
                continue
            with errors_placed(name, before=before):
                rows = reader(table)
                score, _, alarm, kind, probability = model.verdicts(rows)
            short += alarm[np.flatnonzero(reader.short)].tolist()
            among = np.flatnonzero(alarm) if alarms else np.arange(len(score))
            for i in among[highest.entering(score[among], table, among)].tolist():
                (said,) = row_names(table.select(kept), np.array([i]), other="")
                row = f"row {done + i + 1}" + f" ({said})" * bool(said)
                verdict = _verdict(model, kind[i], probability[i]) if alarm[i] else "passes"
                held.append((score[i], kind[i], f"{row}: {verdict}", rows.take(np.array([i]))))
            held = sorted(held, key=lambda row: -row[0])[:most]
            done += table.num_rows
            job.note = counted(done, "row")
            candidates += len(among)
    note_short_windows(model.plan.windows, short)
    return held, candidates


def _verdict(model: Model, kind: str, probability: float) -> str:
    """The name of an alarm, with its probability where that is known, and is calibrated."""
    if kind == UNSEEN or np.isnan(probability):
        return f"alarm, {shown_kind(kind)}"
    likely = f"{min(probability, 0.99):.0%} if it is of a seen kind"
    return f"alarm, {shown_kind(kind)} ({likely if len(model.kinds) > 1 else 'the only seen kind'})"


def _explained(model: Model, held: Sequence[_Held], *, top: int) -> Iterator[str]:
    with progress("eqsep explain", "explaining", prints=True) as job:
        job.expect(len(held))
        for start in range(0, len(held), _EXPLAINED):
            some = held[start : start + _EXPLAINED]
            found = model.explain(joined([row for *_, row in some]), top=top)
            job.advance(len(some))
            for (_, name, verdict, _), why in zip(some, found, strict=True):
                other = name in model.kinds and name != why.nearest_kind
                like = None if other or not why.nearest_kind else shown_kind(why.nearest_kind)
                yield f"{verdict}; {replace(why, nearest_kind=like)}"
