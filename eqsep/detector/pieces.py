"""Pieces of the data: what their rows teach, as sums that add up, and the rows held out of them.

A fit is the same three steps in memory, over a stream and over several machines: agree on the terms
from some rows (`terms`), sum up the pieces, and finish. A piece depends on the terms and its own
rows alone, terms and pieces can be sent, and pieces add up in any order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eqsep.batches.joining import joined
from eqsep.detector.answers import UNLABELLED, Answers, read_answers
from eqsep.detector.calibration import MOST_HELD, held_out
from eqsep.detector.feature_map import FeatureMap
from eqsep.engine.statistics import Statistics, widened
from eqsep.tables.reading import Table

Names = Mapping[str, frozenset[str]]  # some names of some columns


@dataclass(frozen=True)
class Terms:
    """What is agreed before rows are learnt, so that what pieces teach adds up.

    Attributes
    ----------
    feature_map : FeatureMap
    known : Answers
        How labels are read, and the kinds known so far; no rows.
    one_class : bool
        Whether rows without a label are normal ones.
    normal : label or None
    unlabelled_weight : float
    device : {"cpu", "cuda", "auto"}
        Where kernel values are computed and summed up.
    in_doubt : mapping of str to set of str
        Names that the encoder knows only from having counted all rows: such a name goes in the
        end where none but held-out rows have it.
    """

    feature_map: FeatureMap
    known: Answers
    one_class: bool
    normal: Any = None
    unlabelled_weight: float = 0.01
    device: str = "cpu"
    in_doubt: Names = field(default_factory=dict)

    def answers(self, y: Any, *, n_rows: int) -> Answers:
        """What the labels of more rows say."""
        answers = read_answers(y, n_rows=n_rows, normal=self.normal, known=self.known)
        return answers.trusting_unlabelled() if self.one_class else answers

    def below(self, cut: int) -> "Terms":
        """The same where fewer rows calibrate."""
        return replace(self, feature_map=replace(self.feature_map, cut=int(cut)))


@dataclass(frozen=True)
class Held:
    """Normal rows that calibrate: as they came, and their hashes, all of them below the cut."""

    table: Table
    hashes: np.ndarray

    def __add__(self, other: "Held") -> "Held":
        if not len(other.hashes):
            return self
        table = joined([self.table, other.table]) if len(self.hashes) else other.table
        return Held(table, np.concatenate([self.hashes, other.hashes]))

    def take(self, rows: np.ndarray) -> "Held":
        """Some of them."""
        return Held(self.table.take(rows), self.hashes[rows])


@dataclass(frozen=True)
class Piece:
    """What some rows teach.

    Attributes
    ----------
    statistics : Statistics
        The sums over the rows that are learnt.
    held : Held
    known : Answers
        How labels are read, and the kinds known so far; no rows.
    n_normal : int
        The normal rows, held out or not.
    met : mapping of str to set of str
        Which of the terms' names in doubt a learnt row has.
    """

    statistics: Statistics
    held: Held
    known: Answers
    n_normal: int
    met: Names

    def __add__(self, other: "Piece") -> "Piece":
        kinds = tuple(dict.fromkeys((*self.known.kinds, *other.known.kinds)))
        places = [0, *(1 + kinds.index(kind) for kind in other.known.kinds)]
        mine = widened(self.statistics, 1 + len(kinds))
        met = {c: self.met.get(c, frozenset()) | names for c, names in other.met.items()}
        return Piece(
            mine + widened(other.statistics, 1 + len(kinds), places=places),
            self.held + other.held,
            self.known.joined(other.known),
            self.n_normal + other.n_normal,
            {**self.met, **met},
        )


def piece_of(terms: Terms, X: Any, y: Any = None) -> Piece:
    """What the rows of the table `X` with the labels `y` teach under these terms.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> detector = Detector(n_landmarks=50, width=2.0, random_state=0).fit(X)
    >>> terms = detector.terms()
    >>> both = piece_of(terms, X[:300]) + piece_of(terms, X[300:])
    >>> bool(np.allclose(both.statistics.gram, detector.statistics_.gram))
    True
    """
    table = terms.feature_map.encoder.align(X)
    return summed(terms, table, terms.answers(y, n_rows=table.n_rows))


def summed(terms: Terms, table: Table, answers: Answers, Z: np.ndarray | None = None) -> Piece:
    """The piece of an aligned table whose labels have been read; `Z` are its rows encoded."""
    feature_map = terms.feature_map
    Z = feature_map.rows(table) if Z is None else Z
    hashes = feature_map.hashes(table)
    held = (hashes < np.uint64(feature_map.cut)) & (answers.code == 0)
    learnt, calibrating = np.flatnonzero(~held), np.flatnonzero(held)
    return Piece(
        _sums(terms, Z[learnt], answers.code[learnt], n_kinds=len(answers.kinds)),
        Held(table.take(calibrating), hashes[calibrating]),
        answers.of_no_row(),
        int((answers.code == 0).sum()),
        _met(terms, table, learnt),
    )


def trimmed(terms: Terms, piece: Piece, *, most: int) -> tuple[Terms, Piece]:
    """The terms with a lower cut, under which at most so many rows of the piece calibrate.

    The others are learnt: all is as if the cut had been that from the start. Equal rows of
    different pieces go together; where that would leave less than half, more rows calibrate.
    """
    hashes = piece.held.hashes
    if len(hashes) <= most:
        return terms, piece
    cut = np.sort(hashes)[most]
    if 2 * (hashes < cut).sum() < most:
        cut = cut + np.uint64(1)
    lower = terms.below(cut)
    kept, moved = np.flatnonzero(hashes < cut), np.flatnonzero(hashes >= cut)
    table = piece.held.table.take(moved)
    code = np.zeros(len(moved), dtype=int)
    sums = _sums(lower, lower.feature_map.rows(table), code, n_kinds=len(piece.known.kinds))
    more = Piece(
        sums, piece.held.take(moved[:0]), piece.known, 0, _met(lower, table, np.arange(len(moved)))
    )
    return lower, replace(piece, held=piece.held.take(kept)) + more


def bounded(terms: Terms, piece: Piece) -> tuple[Terms, Piece]:
    """The same, or a lower cut where more rows calibrate than are ever needed."""
    if len(piece.held.hashes) > 2 * MOST_HELD:
        return trimmed(terms, piece, most=MOST_HELD)
    return terms, piece


def settled(terms: Terms, piece: Piece) -> tuple[Terms, Piece]:
    """The cut that all rows together ask for: the one that a fit in memory would have chosen."""
    return trimmed(terms, piece, most=held_out(piece.n_normal))


def _sums(terms: Terms, Z: np.ndarray, code: np.ndarray, *, n_kinds: int) -> Statistics:
    weight = np.where(code == UNLABELLED, terms.unlabelled_weight, 1.0)
    target = np.zeros((len(code), 1 + n_kinds))
    target[np.arange(len(code)), np.maximum(code, 0)] = 1.0
    total = weight @ target
    return terms.feature_map.on(terms.device).statistics(Z, target, weight, total=total)


def _met(terms: Terms, table: Table, learnt: np.ndarray) -> Names:
    """Which names in doubt some learnt rows have."""
    met: dict[str, frozenset[str]] = {}
    for column in table.columns:
        doubt = terms.in_doubt.get(column.name)
        if doubt:
            names, place = column.names()
            found = np.unique(place[learnt]).tolist()
            met[column.name] = frozenset(n for i in found if (n := names[i]) in doubt)
    return met
