"""Labelled rows from files that may be larger than memory: some of them first, then the rest.

Large files are read three times: for the labels, for the first rows, which are drawn at random,
and for all others. What a detector learns adds up, so it need not hold them all.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from eqsep.commands.labelled import Labelled
from eqsep.commands.labelling import Labels, read_labels
from eqsep.commands.models import as_read, columns_for
from eqsep.commands.reading import Choice, files_of, pieces
from eqsep.commands.text_files import STANDARD_INPUT, CsvFile
from eqsep.detector import Detector
from eqsep.tables.reading import Table, read_table

LARGE = 2**28  # bytes of text from which on files are learnt in pieces
FIRST = 200_000  # rows
AT_ONCE = 100_000  # rows of a later piece
_PACKED = 5  # how many bytes of text one of a compressed file stands for
_Piece = tuple[Table, np.ndarray | None]


@dataclass(frozen=True)
class Parts:
    """The rows to begin with, and those that come when these have been learnt.

    Attributes
    ----------
    first : Table
    labels : Labels or None
        Those of the first rows.
    y : ndarray or None
        The same, as a detector takes them.
    normal : str or None
        The normal label, where labels are names.
    counts : dict of str to int
        All rows of each kind, the later ones too.
    later : callable
        From the detector that has learnt the first rows to pieces of the others.
    """

    first: Table
    labels: Labels | None
    y: np.ndarray | None
    normal: str | None
    counts: dict[str, int]
    later: Callable[[Detector], Iterator[_Piece]]

    @property
    def n_rows(self) -> int:
        return sum(self.counts.values())


def read_parts(data: Labelled, like: Detector | None, *, random_state: int) -> Parts:
    """The rows of files, all of them first where they are few."""
    if is_large(data.paths):
        data.check()
        return _large_parts(data, like, np.random.default_rng(random_state))
    rows, labels = data.read(like)
    if labels is None:
        return Parts(rows, None, None, None, {"normal": rows.n_rows}, _nothing)
    normal = None if labels.are_numbers else labels.normal
    return Parts(rows, labels, labels.y, normal, labels.counts, _nothing)


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


def _nothing(detector: Detector) -> Iterator[_Piece]:  # noqa: ARG001
    return iter(())


def _large_parts(data: Labelled, like: Detector | None, rng: np.random.Generator) -> Parts:
    labels, n_rows = _labels(data)
    kept = np.ones(n_rows, dtype=bool)
    if labels is not None and data.seen:
        kept = labels.seen(data.seen)
    is_first = _drawn(kept, labels, rng)
    is_later = kept & ~is_first
    first = _first_rows(data, is_first, like)

    def later(detector: Detector) -> Iterator[_Piece]:
        return _later_pieces(data, is_later, y, detector)

    if labels is None:
        y = None
        return Parts(first, None, None, None, {"normal": n_rows}, later)
    y = labels.y  # of all rows: a few of them need not show what the labels are
    normal = None if labels.are_numbers else labels.normal
    counts = labels.take(kept).counts
    return Parts(first, labels.take(is_first), y[is_first], normal, counts, later)


def _labels(data: Labelled) -> tuple[Labels | None, int]:
    """The labels of all rows, and how many rows there are."""

    def choose(there: list[str]) -> list[str]:
        return [there[0] if data.label is None else data.label]

    n_rows, texts = 0, []
    for _, table in pieces(data.paths, choose, layout=data.layout):
        n_rows += table.num_rows
        if data.label is not None:
            texts += table.column(data.label).cast(pa.string()).dictionary_encode().chunks
    if data.label is None:
        return None, n_rows
    column = pa.chunked_array(texts, pa.dictionary(pa.int32(), pa.string()))
    return read_labels(column, name=data.label, normal=data.normal), n_rows


def _drawn(kept: np.ndarray, labels: Labels | None, rng: np.random.Generator) -> np.ndarray:
    """Which rows come first: anomalies, up to a third of them, and others, all at random."""
    order = rng.permutation(np.flatnonzero(kept))
    rare = np.zeros(len(kept), dtype=bool) if labels is None else labels.is_anomaly
    anomalous = order[rare[order]][: FIRST // 3]
    others = order[~rare[order]][: FIRST - len(anomalous)]
    is_first = np.zeros(len(kept), dtype=bool)
    is_first[np.concatenate([anomalous, others])] = True
    return is_first


def _first_rows(data: Labelled, is_first: np.ndarray, like: Detector | None) -> Table:
    left_out = {*data.drop, data.label}

    def choose(there: list[str]) -> list[str]:
        return [*(column for column in there if column not in left_out), *data.drop, *data.names]

    wanted: Choice = choose if like is None else columns_for(like)
    by_file: dict[str, list[pa.Table]] = {}
    for name, table, rows in _numbered(data, wanted):
        by_file.setdefault(name, []).append(table.filter(pa.array(is_first[rows])))
    tables = [pa.concat_tables(tables) for tables in by_file.values()]
    if like is not None:
        return as_read(pa.concat_tables(tables, promote_options="permissive"), like)
    typed = [_inferred(table.drop_columns(list(data.drop)), data.names) for table in tables]
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


def _later_pieces(
    data: Labelled, is_later: np.ndarray, y: np.ndarray | None, detector: Detector
) -> Iterator[_Piece]:
    held: list[tuple[pa.Table, np.ndarray]] = []

    def piece() -> _Piece:
        table = pa.concat_tables([t for t, _ in held], promote_options="permissive")
        rows = np.concatenate([r for _, r in held])
        return as_read(table, detector), None if y is None else y[rows]

    for _, table, rows in _numbered(data, columns_for(detector)):
        wanted = is_later[rows]
        held.append((table.filter(pa.array(wanted)), np.arange(rows.start, rows.stop)[wanted]))
        if sum(len(r) for _, r in held) >= AT_ONCE:
            yield piece()
            held.clear()
    if sum(len(r) for _, r in held):
        yield piece()


def _numbered(data: Labelled, choose: Choice) -> Iterator[tuple[str, pa.Table, Any]]:
    """Pieces of the files, each with the places of its rows among all."""
    start = 0
    for name, table in pieces(data.paths, choose, layout=data.layout):
        yield name, table, slice(start, start + table.num_rows)
        start += table.num_rows
