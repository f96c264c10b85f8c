"""A sample of the rows of files, as they are written, and the labels of all of them."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from eqsep.batches.sampling import Strata, sample_size
from eqsep.commands.labelled import Labelled
from eqsep.commands.labelling import MOST_KINDS
from eqsep.commands.reading import Choice, pieces
from eqsep.errors import UserError
from eqsep.tables.column import objects

_USUAL = ("normal", "0", "0.0", "false")  # labels that may be those of normal rows


@dataclass(frozen=True)
class _Piece:
    file: str
    table: pa.Table
    label: np.ndarray
    number: np.ndarray


@dataclass(frozen=True)
class Drawn:
    """Some rows of each piece of some files."""

    pieces: list[_Piece]

    def take(self, rows: np.ndarray) -> "Drawn":
        """Some of them; their places are in order."""
        kept, start = [], 0
        for p in self.pieces:
            end = start + len(p.number)
            inside = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)] - start
            if len(inside):
                table = p.table.take(pa.array(inside))
                kept.append(_Piece(p.file, table, p.label[inside], p.number[inside]))
            start = end
        return Drawn(kept)

    def after(self, n: int) -> "Drawn":
        """The same where `n` more rows come before them."""
        return Drawn([replace(piece, number=piece.number + n) for piece in self.pieces])

    @staticmethod
    def joined(parts: "list[Drawn]") -> "Drawn":
        """All of them, those of one file side by side."""
        files: dict[str, list[_Piece]] = {}
        for piece in (piece for part in parts for piece in part.pieces):
            files.setdefault(piece.file, []).append(piece)
        return Drawn([piece for pieces in files.values() for piece in pieces])

    @property
    def tables(self) -> list[pa.Table]:
        """The rows of each file, in the types that it has."""
        files: dict[str, list[pa.Table]] = {}
        for piece in self.pieces:
            files.setdefault(piece.file, []).append(piece.table)
        return [pa.concat_tables(tables) for tables in files.values()]

    @property
    def labels(self) -> np.ndarray:
        """As they are written, None where missing."""
        return np.concatenate([piece.label for piece in self.pieces])

    @property
    def order(self) -> np.ndarray:
        """The places that bring the rows into the order of the files."""
        return np.argsort(np.concatenate([piece.number for piece in self.pieces]))


@dataclass
class Draw:
    """Rows drawn at random, without their labels, and how often each label is written in all.

    Draws of other files merge into one of all.
    """

    times: Counter[str | None] = field(default_factory=Counter)
    strata: Strata[Drawn] | None = None
    n_rows: int = 0

    def merge(self, later: "Draw") -> "Draw":
        """This one, when it has taken in what was drawn of later rows."""
        self.times.update(later.times)
        if self.strata is None:
            self.strata = later.strata
        elif later.strata is not None:
            self.strata.merge(later.strata, moved=lambda rows: rows.after(self.n_rows))
        self.n_rows += later.n_rows
        return self

    def sample(self, data: Labelled) -> Drawn:
        """The rows; refused where there are none."""
        if self.strata is None or not self.n_rows:
            raise UserError(
                f"{', '.join(data.paths)} has no rows: expected a header and rows below it."
            )
        return self.strata.sample()


def draw(data: Labelled, choose: Choice, rng: np.random.Generator) -> Draw:
    """Rows drawn from the files."""
    drawn = Draw()
    for file, table in pieces(data.paths, choose, layout=data.layout):
        label = written(data, table)
        drawn.times.update(label.tolist())
        if len(drawn.times) > 10 * MOST_KINDS:
            break  # refused when they are read
        if data.label is not None:
            table = table.drop_columns([data.label])
        if drawn.strata is None:
            drawn.strata = Strata(sample_size(table.num_columns), Drawn.joined)
        number = np.arange(drawn.n_rows, drawn.n_rows + len(label))
        rows = Drawn([_Piece(file, table, label, number)])
        normal = [_may_be_normal(text, data.normal) for text in label]
        drawn.strata.add(rows, is_normal=np.array(normal, dtype=bool), rng=rng)
        drawn.n_rows += len(label)
    return drawn


def written(data: Labelled, table: pa.Table) -> np.ndarray:
    """The labels of a piece of the files as text, None where there is none."""
    if data.label is None:
        return objects([None] * table.num_rows)
    column = table.column(data.label).cast(pa.string()).combine_chunks()
    return objects(column.to_pylist())


def _may_be_normal(text: str | None, normal: str | None) -> bool:
    return text is None or (text.lower() in _USUAL if normal is None else text == normal)
