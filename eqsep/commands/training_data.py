"""The rows that a detector is fitted to: all of them, or batches of files larger than memory.

Large files are read three times: here for the labels and a sample, which shows of what type columns
of text are, and twice by the detector, which takes the rows in batches of these types.
"""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eqsep.arrays import objects
from eqsep.commands.arrow_files import count_values
from eqsep.commands.inputs import InputSpec
from eqsep.commands.label_columns import (
    MOST_KINDS,
    LabelColumn,
    as_label,
    numbers_of,
    read_label_column,
)
from eqsep.commands.notation import Notation
from eqsep.commands.reading import as_read, cast, files_of, joined, no_rows, pieces
from eqsep.commands.streams import STANDARD_INPUT, stamp_of
from eqsep.commands.texts import annotated, understood, written
from eqsep.detector.plan import Plan
from eqsep.distributed.mapping import total
from eqsep.distributed.units import Divided, as_units
from eqsep.errors import UserError, quoted
from eqsep.files import FORMATS, ending_of
from eqsep.labels import NORMAL, USUAL_NORMAL
from eqsep.tables import batches
from eqsep.tables.batches import LabelledRows, Strata, sample_size
from eqsep.tables.reading import Table, read_table

LARGE = 2**28  # bytes of text from which on files are learnt in batches
ROWS_AT_ONCE = 100_000  # of a batch
_PACKED = 5  # how many bytes of text one of a Parquet file stands for
_NUMBER = 8  # bytes of a number
_USUAL = {*map(str, USUAL_NORMAL), "0.0", "false"}  # as files write the labels of normal rows


@dataclass(frozen=True)
class TrainingData:
    """Rows to fit a detector to, and some of them to look at.

    Attributes
    ----------
    sample : Table
        All rows, or some.
    labels : LabelColumn or None
        Theirs.
    counts : dict of str to int
        All rows of each kind.
    rows, y : table and labels, or batches and None
        What a detector takes: all rows.
    normal : str or None
        The normal label, where labels are names.
    """

    sample: Table
    labels: LabelColumn | None
    counts: dict[str, int]
    rows: Any
    y: np.ndarray | None
    normal: str | None = None

    @property
    def n_rows(self) -> int:
        return sum(self.counts.values())


def read_training_data(spec: InputSpec, like: Plan | None, *, random_state: int) -> TrainingData:
    """The rows of files, at once where they are few."""
    if is_large(spec.paths):
        spec.check()
        stamps = {file: stamp_of(file) for file in files_of(spec.paths)}
        sample = sample_files(spec, like, np.random.default_rng(random_state))
        data = _in_batches(spec, like, sample)
        return replace(data, rows=replace(data.rows, stamps=stamps))
    rows, labels = spec.read(like)
    if labels is None:
        counts = {NORMAL: rows.n_rows}
        return TrainingData(sample=rows, labels=None, counts=counts, rows=rows, y=None)
    normal = None if labels.are_numbers else labels.normal
    return TrainingData(
        sample=rows, labels=labels, counts=labels.counts, rows=rows, y=labels.y, normal=normal
    )


def read_on_cluster(spec: InputSpec, like: Plan | None, *, random_state: int) -> TrainingData:
    """The rows of files, which the processes of the cluster that was joined read file by file."""
    spec.check()
    files = files_of(spec.paths)
    if STANDARD_INPUT in files:
        raise UserError("Standard input cannot be read on a cluster: pass files.")
    files = [str(Path(file).resolve()) for file in files]  # other processes are elsewhere
    sampling = _Sampling(spec, like, random_state)
    sample = total(as_units(files, str), sampling, FileSample.merge) or FileSample()
    data = _in_batches(spec, like, sample)
    return replace(data, rows=Divided(files, data.rows.of))


def is_large(paths: Sequence[str]) -> bool:
    """Whether files should not be held in memory; standard input, read once, always is."""
    files = files_of(paths)
    if STANDARD_INPUT in files:
        return False
    return sum(map(_size, files)) > LARGE


def _size(file: str) -> int:
    """About how many bytes of text a file holds; no more are counted than make it large."""
    size = Path(file).stat().st_size
    if FORMATS.get(ending_of(file)) == "parquet" and Path(file).is_file():
        return max(size * _PACKED, _NUMBER * count_values(file))
    if not file.endswith(".gz") or size > LARGE or not Path(file).is_file():
        return size
    size = 0
    with suppress(OSError, EOFError, zlib.error), gzip.open(file, "rb") as text:
        while size <= LARGE and (part := text.read(2**20)):
            size += len(part)
    return size


@dataclass(frozen=True)
class FileRows:
    """Rows of files, a table for each piece that was read, in the types that its file has."""

    parts: list[tuple[str, pa.Table]]

    def take(self, rows: np.ndarray) -> "FileRows":
        """Some of them, by positions in rising order."""
        kept, start = [], 0
        for file, table in self.parts:
            low, high = np.searchsorted(rows, (start, start + table.num_rows))
            if low < high:
                kept.append((file, table.take(pa.array(rows[low:high] - start))))
            start += table.num_rows
        return FileRows(kept)

    def by_file(self) -> tuple[list[pa.Table], np.ndarray]:
        """The rows of each file as one table, and the positions that these rows have here."""
        tables: dict[str, list[pa.Table]] = {}
        positions: dict[str, list[np.ndarray]] = {}
        start = 0
        for file, table in self.parts:
            tables.setdefault(file, []).append(table)
            positions.setdefault(file, []).append(np.arange(start, start + table.num_rows))
            start += table.num_rows
        order = np.concatenate([part for parts in positions.values() for part in parts])
        return [pa.concat_tables(parts) for parts in tables.values()], order


def _joined(parts: list[LabelledRows[FileRows]]) -> LabelledRows[FileRows]:
    return LabelledRows.join(parts, lambda all_: FileRows([p for rows in all_ for p in rows.parts]))


@dataclass
class FileSample:
    """Rows of files sampled at random, and how often each label is written in all of them.

    Samples of other files merge into one of all.
    """

    counts: Counter[str | None] = field(default_factory=Counter)
    strata: Strata[LabelledRows[FileRows]] | None = None
    n_rows: int = 0

    def merge(self, later: "FileSample") -> "FileSample":
        """This one, when it has taken in the sample of later rows."""
        self.counts.update(later.counts)
        if self.strata is None:
            self.strata = later.strata
        elif later.strata is not None:
            self.strata.merge(later.strata, moved=lambda rows: rows.after(self.n_rows))
        self.n_rows += later.n_rows
        return self

    def add(self, spec: InputSpec, file: str, table: pa.Table, rng: np.random.Generator) -> None:
        """See one more piece of a file."""
        labels = spec.written_labels(table)
        self.counts.update(labels.tolist())
        if spec.label is not None:
            table = table.drop_columns([spec.label])
        if self.strata is None:
            size, most = sample_size(table.num_columns), batches.ANOMALIES
            self.strata = Strata(size, _joined, most_others=most)
        positions = np.arange(self.n_rows, self.n_rows + len(labels))
        rows = LabelledRows(FileRows([(file, table)]), labels, positions)
        normal = [_may_be_normal(text, spec.normal) for text in labels]
        self.strata.add(rows, is_normal=np.array(normal, dtype=bool), rng=rng)
        self.n_rows += len(labels)


def sample_files(spec: InputSpec, like: Plan | None, rng: np.random.Generator) -> FileSample:
    """A sample of the rows of the files."""
    sample = FileSample()
    for file, table in pieces(spec.paths, spec.columns(like), layout=spec.layout, like=like):
        sample.add(spec, file, table, rng)
        if len(sample.counts) > 10 * MOST_KINDS:
            break  # refused when they are read
    return sample


def _may_be_normal(text: str | None, normal: Sequence[str]) -> bool:
    if text is None or normal:
        return text is None or any(as_label(word, [text]) == text for word in normal)
    return text.strip().casefold() in _USUAL


@dataclass(frozen=True)
class _Sampling:
    """From a file to a sample of its rows."""

    spec: InputSpec
    like: Plan | None
    random_state: int

    def __call__(self, file: str, number: int) -> FileSample:
        rng = np.random.default_rng([self.random_state, number])
        return sample_files(replace(self.spec, paths=[file]), self.like, rng)


def _in_batches(spec: InputSpec, like: Plan | None, sample: FileSample) -> TrainingData:
    if sample.strata is None or not sample.n_rows:
        raise no_rows(spec.paths)
    sampled = sample.strata.sample()
    tables, order = sampled.rows.by_file()
    rows = _typed(spec, tables, like).take(np.argsort(sampled.positions[order]))
    reader = _Reader(spec, like, {} if like else _kinds(rows))
    if spec.label is None:
        return TrainingData(
            sample=rows, labels=None, counts={NORMAL: sample.n_rows}, rows=reader, y=None
        )
    written = list(sample.counts)
    column = pa.chunked_array([pa.array(written, pa.string())])
    labels = read_label_column(column, name=spec.label, **spec.told)
    kept = labels.seen(spec.seen) if spec.seen else np.ones(len(written), dtype=bool)
    text = dict(zip(written, labels.texts, strict=True))
    known = [name for name, wanted in zip(written, kept, strict=True) if wanted]
    counts: Counter[str | None] = Counter()
    for name in known:
        counts[text[name]] += sample.counts[name]
    in_order = sampled.y[np.argsort(sampled.positions)]
    there = np.flatnonzero([name in known for name in in_order])
    mine = replace(labels, texts=objects(text[name] for name in in_order[there]))
    are_numbers = labels.take(kept).are_numbers
    values = [text[name] for name in known]
    taken = dict(zip(known, numbers_of(values) if are_numbers else values, strict=True))
    reader = replace(reader, labels=taken)
    normal = None if are_numbers else labels.normal
    return TrainingData(
        sample=rows.take(there),
        labels=mine,
        counts=labels.ordered(counts),
        rows=reader,
        y=None,
        normal=normal,
    )


def _typed(spec: InputSpec, tables: list[pa.Table], like: Plan | None) -> Table:
    beside = joined([table.select(spec.groups) for table in tables])
    values = [table.drop_columns(spec.groups) for table in tables]
    if like is not None:
        return spec.with_groups(as_read(joined(values), like), beside)
    typed = joined([understood(table, spec.layout, as_text=spec.names) for table in values])
    return spec.with_groups(read_table(spec.with_names(typed), name="Detector"), beside)


def _kinds(rows: Table) -> dict[str, tuple[str, dict[str, Any] | None]]:
    """What each column is read as, and how it is written."""
    return {c.name: ("text" if c.is_empty else c.kind, c.notation) for c in rows.columns}


@dataclass(frozen=True)
class _Reader:
    """All rows in batches, each time it is called: what a detector takes.

    Attributes
    ----------
    like : Plan or None
        The detector as whose columns the rows are read.
    kinds : mapping of str to str and dict
        Without it: what each column is read as, and how it is written.
    labels : mapping of str to label
        From labels as they are written to those a detector takes; rows of others are left out.
    stamps : mapping of str to stamp
        What must be as it was when the files were read first.
    """

    spec: InputSpec
    like: Plan | None
    kinds: Mapping[str, tuple[str, dict[str, Any] | None]]
    labels: Mapping[str | None, Any] | None = None
    stamps: Mapping[str, Any] = field(default_factory=dict)

    def of(self, file: str) -> "_Reader":
        """The same of one file."""
        return replace(self, spec=replace(self.spec, paths=[file]))

    def __call__(self) -> Iterator[tuple[Table, np.ndarray | None]]:
        waiting: list[tuple[pa.Table, np.ndarray]] = []
        columns = self.spec.columns(self.like)
        changed = [file for file, stamp in self.stamps.items() if stamp_of(file) != stamp]
        if changed:
            raise UserError(
                f"{quoted(changed)} was changed since it was first read: rows are read three times "
                f"where they are many. Try again when nobody writes to it."
            )
        for _, table in pieces(self.spec.paths, columns, layout=self.spec.layout, like=self.like):
            written = self.spec.written_labels(table)
            if self.labels is not None:
                there = np.array([text in self.labels for text in written], dtype=bool)
                table, written = table.filter(pa.array(there)), written[there]
            waiting.append((self._cast(table), written))
            if sum(len(labels) for _, labels in waiting) >= ROWS_AT_ONCE:
                yield self._batch(waiting)
                waiting = []
        if waiting:
            yield self._batch(waiting)

    def _cast(self, table: pa.Table) -> pa.Table:
        """The columns in the types of the sample."""
        if self.like is not None:
            return table
        columns, fields = [], []
        for name, (kind, known) in self.kinds.items():
            field = table.schema.field(name)
            column = cast(table.column(name), kind, written(field, known))
            if name in self.spec.names:
                column = column.cast(pa.string()).dictionary_encode()
            columns.append(column)
            fields.append(pa.field(name, column.type))
            if known:
                fields[-1] = annotated(fields[-1], Notation.of(known))
        for name in self.spec.groups:
            columns.append(table.column(name))
            fields.append(table.schema.field(name))
        return pa.table(columns, schema=pa.schema(fields))

    def _batch(self, waiting: list[tuple[pa.Table, np.ndarray]]) -> tuple[Table, np.ndarray | None]:
        table = joined([table for table, _ in waiting])
        values = table.drop_columns(self.spec.groups)
        rows = as_read(values, self.like) if self.like else read_table(values, name="Detector")
        rows = self.spec.with_groups(rows, table)
        if self.labels is None:
            return rows, None
        written = np.concatenate([labels for _, labels in waiting])
        return rows, objects(self.labels[text] for text in written)
