"""What one pass over many rows can tell in bounded memory: labels, names, and a fair sample."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eqsep.batches.joining import joined, width
from eqsep.batches.sampling import Strata, frequent, sample_size
from eqsep.detector.answers import UNLABELLED, Answers, coded, read_answers
from eqsep.errors import UserError
from eqsep.tables.column import Column, objects
from eqsep.tables.reading import Table

MOST_NAMES = 10_000  # that are counted in a column
MOST_LABELS = 1000  # different ones: more are ids or measurements
_NAMED = ("text", "mixed")


@dataclass(frozen=True)
class Sampled:
    """Rows, their labels (None where missing), and their places among all."""

    table: Table
    y: np.ndarray
    number: np.ndarray

    def take(self, rows: np.ndarray) -> "Sampled":
        """Some of them."""
        return Sampled(self.table.take(rows), self.y[rows], self.number[rows])

    def after(self, n: int) -> "Sampled":
        """The same where `n` more rows come before them."""
        return replace(self, number=self.number + n)

    @staticmethod
    def joined(parts: "list[Sampled]") -> "Sampled":
        """Several below each other."""
        return Sampled(
            joined([part.table for part in parts]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.number for part in parts]),
        )


class Survey:
    """The labels and names of all rows, counted, and a uniform sample of the rows.

    Surveys of pieces of the data `merge` into one of all of it.

    Parameters
    ----------
    normal : label or None
        As of the detector. Rows whose label is another one than this (than 0, False and "normal")
        are sampled apart, so that there are enough of them.
    rng : Generator
        Draws the sample.
    most : int, default=None
        The most rows of the sample, `eqsep.batches.sampling.SAMPLE` by default; fewer where rows
        are wide.
    """

    def __init__(self, *, normal: Any, rng: np.random.Generator, most: int | None = None) -> None:
        self.n_rows = 0
        self.labelled = False
        self.names: dict[str, Counter[str]] = {}
        self._counts: Counter[Any] = Counter()  # in the order in which labels were first seen
        self._normal = (0, "normal") if normal is None else (normal,)
        self._rng = rng
        self._most = most
        self._strata: Strata[Sampled] | None = None

    def add(self, table: Table, y: Any) -> None:
        """See one more batch."""
        labels, place = self._count_labels(y, table.n_rows)
        for column in table.columns:
            if column.kind in _NAMED:
                self._count_names(column.name, counted(column))
        if self._strata is None:
            self._strata = Strata(sample_size(width(table), most=self._most), Sampled.joined)
        is_normal = np.array([*map(self._is_normal, labels), True])[place]
        y = objects([*labels, None])[place]
        rows = Sampled(table, y, np.arange(self.n_rows, self.n_rows + table.n_rows))
        self._strata.add(rows, is_normal=is_normal, rng=self._rng)
        self.n_rows += table.n_rows

    def add_labels(self, y: Any, *, n_rows: int) -> None:
        """See the labels of one more batch, and nothing else of it."""
        self._count_labels(y, n_rows)
        self.n_rows += n_rows

    def merge(self, other: "Survey") -> None:
        """Take in what a survey of later rows has seen."""
        for name, counts in other.names.items():
            self._count_names(name, counts)
        self._add_counts(other._counts)
        self.labelled |= other.labelled
        if self._strata is None:
            self._strata = other._strata
        elif other._strata is not None:
            self._strata.merge(other._strata, moved=lambda rows: rows.after(self.n_rows))
        self.n_rows += other.n_rows

    @property
    def is_whole(self) -> bool:
        """Whether the sample holds all rows."""
        return self._strata is not None and self._strata.is_whole

    def answers(self, *, normal: Any) -> tuple[Answers, np.ndarray]:
        """What each different label says, a missing one too, and how many rows have it."""
        labels = list(self._counts) or [None]
        answers = read_answers(objects(labels), n_rows=len(labels), normal=normal)
        return answers, np.array([self._counts[label] for label in labels])

    def sample(self) -> Sampled:
        """All rows where they are few, else some, in the order in which they came."""
        if self._strata is None:
            raise UserError("There are no rows: expected at least one batch with some.")
        sample = self._strata.sample()
        return sample.take(np.argsort(sample.number))

    def _is_normal(self, label: Any) -> bool:
        return label is None or label in self._normal

    def _count_labels(self, y: Any, n_rows: int) -> tuple[list[Any], np.ndarray]:
        """The different labels of a batch, and the place of each row's; counted."""
        distinct, place = coded(y, n_rows)
        if y is not None and len(place) != n_rows:
            read_answers(y, n_rows=n_rows, normal=None)  # says what is wrong
        labels = distinct.tolist()
        times = np.bincount(np.where(place == UNLABELLED, len(labels), place))
        self._add_counts({k: n for k, n in zip([*labels, None], times.tolist(), strict=False) if n})
        self.labelled |= y is not None
        return labels, place

    def _add_counts(self, counts: dict[Any, int]) -> None:
        self._counts.update(counts)
        if len(self._counts) > MOST_LABELS:
            raise UserError(
                f"There are more than {MOST_LABELS:,} different labels: expected 0 and 1, or names "
                f"of kinds. Pass the column that holds them."
            )

    def _count_names(self, column: str, counts: Counter[str]) -> None:
        counts = self.names.get(column, Counter()) + counts
        self.names[column] = frequent(counts, most=MOST_NAMES)


def counted(column: Column) -> Counter[str]:
    """How often each name occurs in a column."""
    names, rows = column.names()
    times = np.bincount(rows, minlength=len(names)).tolist()
    return Counter({name: n for name, n in zip(names, times, strict=True) if name is not None})
