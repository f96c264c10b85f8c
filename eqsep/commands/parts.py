"""Labelled rows from files that may be larger than memory: a sample of them, then all in batches.

Large files are read three times: here for the labels and a sample, which shows of what type columns
of text are, and twice by the detector, which takes the rows in batches of these types.
"""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from eqsep.commands.drawing import Draw, draw, written
from eqsep.commands.labelled import Labelled
from eqsep.commands.labelling import Labels, numbers_of, read_labels
from eqsep.commands.models import as_read, cast, columns_for
from eqsep.commands.reading import Choice, chosen, files_of, pieces
from eqsep.commands.text_files import STANDARD_INPUT, CsvFile
from eqsep.detector import Detector
from eqsep.distributed.mapping import total
from eqsep.distributed.units import Divided, as_units
from eqsep.errors import UserError
from eqsep.tables.column import objects
from eqsep.tables.reading import Table, read_table

LARGE = 2**28  # bytes of text from which on files are learnt in batches
AT_ONCE = 100_000  # rows of a batch
_PACKED = 5  # how many bytes of text one of a compressed file stands for


@dataclass(frozen=True)
class Parts:
    """Rows to fit a detector to, and some of them to look at.

    Attributes
    ----------
    first : Table
        All rows, or a sample.
    labels : Labels or None
        Theirs.
    normal : str or None
        The normal label, where labels are names.
    counts : dict of str to int
        All rows of each kind.
    rows, y : table and labels, or batches and None
        What a detector takes: all rows.
    """

    first: Table
    labels: Labels | None
    normal: str | None
    counts: dict[str, int]
    rows: Any
    y: np.ndarray | None

    @property
    def n_rows(self) -> int:
        return sum(self.counts.values())


def read_parts(data: Labelled, like: Detector | None, *, random_state: int) -> Parts:
    """The rows of files, at once where they are few."""
    if is_large(data.paths):
        data.check()
        drawn = draw(data, _choice(data, like), np.random.default_rng(random_state))
        return _in_batches(data, like, drawn)
    rows, labels = data.read(like)
    if labels is None:
        return Parts(rows, None, None, {"normal": rows.n_rows}, rows, None)
    normal = None if labels.are_numbers else labels.normal
    return Parts(rows, labels, normal, labels.counts, rows, labels.y)


def read_divided(data: Labelled, like: Detector | None, *, random_state: int) -> Parts:
    """The rows of files, which the processes of the cluster that was joined read file by file."""
    data.check()
    files = files_of(data.paths)
    if STANDARD_INPUT in files:
        raise UserError("Standard input cannot be read on a cluster: pass files.")
    files = [str(Path(file).resolve()) for file in files]  # other processes are elsewhere
    drawing = _Drawing(data, like, random_state)
    drawn = total(as_units(files, str), drawing, Draw.merge) or Draw()
    parts = _in_batches(data, like, drawn)
    return replace(parts, rows=Divided(files, parts.rows.of))


@dataclass(frozen=True)
class _Drawing:
    """From a file to the rows that are drawn from it."""

    data: Labelled
    like: Detector | None
    random_state: int

    def __call__(self, file: str, number: int) -> Draw:
        mine = replace(self.data, paths=[file])
        rng = np.random.default_rng([self.random_state, number])
        return draw(mine, _choice(mine, self.like), rng)


def is_large(paths: Sequence[str]) -> bool:
    """Whether files should not be held in memory; standard input, read once, always is."""
    files = files_of(paths)
    if STANDARD_INPUT in files:
        return False
    packed = (".gz", ".parquet", ".pq")
    sizes = (
        Path(file).stat().st_size * (_PACKED if file.endswith(packed) else 1) for file in files
    )
    return sum(sizes) > LARGE


def _in_batches(data: Labelled, like: Detector | None, draw: Draw) -> Parts:
    drawn, times = draw.sample(data), draw.times
    first = _typed(data, drawn.tables, like).take(drawn.order)
    reader = _Reader(data, like, {} if like else _kinds(first))
    if data.label is None:
        return Parts(first, None, None, {"normal": times[None]}, reader, None)
    raw = list(times)
    column = pa.chunked_array([pa.array(raw, pa.string())])
    labels = read_labels(column, name=data.label, normal=data.normal)
    kept = labels.seen(data.seen) if data.seen else np.ones(len(raw), dtype=bool)
    text = dict(zip(raw, labels.texts, strict=True))
    known = {name: text[name] for name, wanted in zip(raw, kept, strict=True) if wanted}
    counts: Counter[str | None] = Counter()
    for name in known:
        counts[text[name]] += times[name]
    texts = drawn.labels[drawn.order]
    there = np.flatnonzero([name in known for name in texts])
    mine = replace(labels, texts=objects(text[name] for name in texts[there]))
    are_numbers = labels.take(kept).are_numbers
    values = numbers_of(objects(known.values())) if are_numbers else known.values()
    reader = replace(reader, labels=dict(zip(known, values, strict=True)))
    normal = None if are_numbers else labels.normal
    return Parts(first.take(there), mine, normal, labels.ordered(counts), reader, None)


def _choice(data: Labelled, like: Detector | None) -> Choice:
    """The columns of a file that are wanted, the label among them."""
    beside = [] if data.label is None else [data.label]
    if like is not None:
        return columns_for(like, beside=beside)

    def choose(there: list[str]) -> list[str]:
        rest = (column for column in there if column not in data.drop and column != data.label)
        chosen([*data.drop, *data.names], there, name="The table")
        return [*rest, *beside]

    return choose


def _typed(data: Labelled, tables: list[pa.Table], like: Detector | None) -> Table:
    if like is not None:
        return as_read(pa.concat_tables(tables, promote_options="permissive"), like)
    typed = [_inferred(table, data.names) for table in tables]
    joined = pa.concat_tables(typed, promote_options="permissive")
    return read_table(data.named(joined), name="Detector")


def _inferred(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """A table of strings in types that all values of a column allow."""
    if not all(pa.types.is_string(field.type) for field in table.schema):
        return table
    sink = pa.BufferOutputStream()
    arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(include_header=False))
    file = CsvFile("", table.schema.names, io.BytesIO(sink.getvalue().to_pybytes()), ",")
    return file.whole(table.schema.names, as_text=names)


def _kinds(rows: Table) -> dict[str, str]:
    """What each column is read as."""
    return {c.name: "text" if c.is_empty else c.kind for c in rows.columns}


@dataclass(frozen=True)
class _Reader:
    """All rows in batches, each time it is called: what a detector takes.

    Attributes
    ----------
    like : Detector or None
        The detector as whose columns the rows are read.
    kinds : mapping of str to str
        Without it: what each column is read as.
    labels : mapping of str to label
        From labels as they are written to those a detector takes; rows of others are left out.
    """

    data: Labelled
    like: Detector | None
    kinds: Mapping[str, str]
    labels: Mapping[str | None, Any] | None = None

    def of(self, file: str) -> "_Reader":
        """The same of one file."""
        return replace(self, data=replace(self.data, paths=[file]))

    def __call__(self) -> Iterator[tuple[Table, np.ndarray | None]]:
        waiting: list[tuple[pa.Table, np.ndarray]] = []
        for _, table in pieces(
            self.data.paths, _choice(self.data, self.like), layout=self.data.layout
        ):
            raw = written(self.data, table)
            if self.labels is not None:
                there = np.array([text in self.labels for text in raw], dtype=bool)
                table, raw = table.filter(pa.array(there)), raw[there]
            waiting.append((self._cast(table), raw))
            if sum(len(labels) for _, labels in waiting) >= AT_ONCE:
                yield self._batch(waiting)
                waiting = []
        if waiting:
            yield self._batch(waiting)

    def _cast(self, table: pa.Table) -> pa.Table:
        """The columns in the types of the sample."""
        if self.like is not None:
            return table
        columns = {name: cast(table.column(name), kind) for name, kind in self.kinds.items()}
        return pa.table(
            {
                name: column.cast(pa.string()) if name in self.data.names else column
                for name, column in columns.items()
            }
        )

    def _batch(self, waiting: list[tuple[pa.Table, np.ndarray]]) -> tuple[Table, np.ndarray | None]:
        table = pa.concat_tables([table for table, _ in waiting], promote_options="permissive")
        rows = as_read(table, self.like) if self.like else read_table(table, name="Detector")
        if self.labels is None:
            return rows, None
        raw = np.concatenate([labels for _, labels in waiting])
        return rows, objects(self.labels[text] for text in raw)
